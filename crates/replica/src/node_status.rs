//! Status of a node within its cluster.

use openraft::ServerState;

use crate::consensus::Types;
use openraft::RaftMetrics;
use openraft::RaftTypeConfig;

type Metrics = RaftMetrics<<Types as RaftTypeConfig>::NodeId, <Types as RaftTypeConfig>::Node>;

/// Status of a node within its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStatus {
    /// The leader as far as this node knows, once this node has carried out all that was committed before.
    pub leader: Option<u64>,
    /// The term of the last vote.
    pub term: u64,
    /// Index of the last entry in its log.
    pub last_log: Option<u64>,
    /// Index of the last entry that it has carried out.
    pub last_applied: Option<u64>,
    /// Index of the last log entry known to be on each follower, if this node leads.
    pub followers: Vec<(u64, Option<u64>)>,
}

impl NodeStatus {
    /// `lease` is how long a leader that hears of no majority still counts as one, in milliseconds.
    pub(crate) fn of(metrics: &Metrics, lease: u64) -> Self {
        let applied_term = metrics.last_applied.map(|last| last.leader_id.term);
        // The first entry of a leader's term comes after all that was committed before.
        let has_caught_up = applied_term == Some(metrics.current_term);
        let voters = metrics.membership_config.membership().voter_ids().count();
        let leads = metrics.state == ServerState::Leader;
        let is_heard = voters == 1 || metrics.millis_since_quorum_ack.is_some_and(|millis| millis <= lease);
        let replication = metrics.replication.iter().flatten();
        Self {
            leader: metrics.current_leader.filter(|_| has_caught_up && (!leads || is_heard)),
            term: metrics.current_term,
            last_log: metrics.last_log_index,
            last_applied: metrics.last_applied.map(|last| last.index),
            followers: replication
                .filter(|(id, _)| **id != metrics.id)
                .map(|(id, matched)| (*id, matched.map(|log_id| log_id.index)))
                .collect(),
        }
    }
}
