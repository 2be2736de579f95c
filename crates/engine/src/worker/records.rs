//! The figures of one worker.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_metrics::{Peer, Recorder, WorkerRecord, WorkerStatus};
use plimsoll_plan::Plan;

use crate::addresses::{TargetAddress, TargetAddresses};
use crate::request::InFlight;

/// The recorders of one worker, and the facts that its report has beside them.
///
/// A request belongs to one recorder from its start to its end, even if its end falls into another part;
/// connections are recorded in that of the measured part.
#[derive(Debug)]
pub(super) struct Records {
    /// Records the measured part, and all connections.
    pub(super) measured: Recorder,
    /// Records the warm-up, for its intervals only.
    pub(super) warmup: Recorder,
    /// Cost of the worker's thread: its CPU time, passes and stalls.
    pub(super) worker: WorkerRecord,
    /// One per target, in their order, followed by those of servers that came up during the run: facts of the
    /// first connection.
    pub(super) peers: Vec<Peer>,
    /// TLS versions by connections.
    pub(super) tls_versions: BTreeMap<String, u64>,
    /// The status of the worker as it was last reported.
    told: Option<Box<WorkerStatus>>,
}

impl Records {
    /// No figures so far, of the steps and targets of a plan; `addresses` has one list per target.
    pub(super) fn new(plan: &Plan, addresses: &[Arc<[TargetAddress]>]) -> Self {
        let names: Vec<String> = plan.steps.iter().map(|step| step.name.clone()).collect();
        let targets = plan.targets.iter().zip(addresses);
        let peers = targets.map(|(target, list)| {
            let addresses = TargetAddresses::new(target, list, 0);
            Self::peer(target.authority.clone(), &addresses)
        });
        let peers = peers.collect();
        Self {
            measured: Recorder::new(&names),
            warmup: Recorder::new(&names),
            worker: WorkerRecord::default(),
            peers,
            tls_versions: BTreeMap::new(),
            told: None,
        }
    }

    /// A server of this name before the first connection to it.
    pub(super) fn peer(authority: String, addresses: &TargetAddresses) -> Peer {
        let (addresses, unused_addresses) = addresses.by_use();
        Peer { authority, addresses, unused_addresses, ..Peer::default() }
    }

    /// The recorder that a request belongs to.
    #[inline]
    pub(super) const fn of(&mut self, request: &InFlight) -> &mut Recorder {
        if request.measured { &mut self.measured } else { &mut self.warmup }
    }

    /// Counts a connection by its version of TLS.
    #[inline]
    pub(super) fn count_tls(&mut self, version: &str) {
        if let Some(count) = self.tls_versions.get_mut(version) {
            *count += 1;
        } else {
            self.tls_versions.insert(version.to_owned(), 1);
        }
    }

    /// Returns the status of the worker, unless it was reported already.
    pub(super) fn news(&mut self, status: WorkerStatus) -> Option<Box<WorkerStatus>> {
        if self.told.as_ref().is_some_and(|told| !status.tells_more_than(told)) {
            return None;
        }
        self.told = Some(Box::new(status.without_lags()));
        Some(Box::new(status))
    }
}
