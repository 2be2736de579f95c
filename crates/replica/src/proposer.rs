//! Makes entries of the writes that wait: as many as there are while the entry before is on its way.

use std::sync::Arc;
use std::time::Duration;

use openraft::error::ClientWriteError;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::change::Reply;
use crate::consensus::{Batch, Raft};

/// Entries on their way at a time: while one is being written the next gathers.
const ON_THE_WAY: usize = 2;
/// Bytes at which an entry takes no more changes. Followers have a heartbeat's time for it.
const ENTRY_BYTES: usize = 512 << 10;

/// A write that waits.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) change: Vec<u8>,
    pub(crate) done: oneshot::Sender<Outcome>,
}

/// Outcome of a write.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A majority has it; the result, and the index of its entry.
    Committed(Reply, u64),
    /// The write is in no log: this node does not lead.
    NotLeader,
    /// The outcome is unknown: the node is ending.
    Unknown,
}

/// Proposes the entries that arrive, until all senders are gone. An entry that no majority has after
/// `patience` gives its place to the next one: openraft may never report its outcome.
pub(crate) async fn propose(mut proposals: mpsc::Receiver<Proposal>, raft: Raft, patience: Duration) {
    let on_the_way = Arc::new(Semaphore::new(ON_THE_WAY));
    while let Some(first) = proposals.recv().await {
        let Ok(permit) = on_the_way.clone().acquire_owned().await else { return };
        let (mut entry, mut waiting) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(Proposal { change, done }) = next {
            // If the caller no longer waits, the proposal is better not made at all.
            if !done.is_closed() {
                entry.extend_from_slice(&change);
                waiting.push(done);
            }
            next = if entry.len() < ENTRY_BYTES { proposals.try_recv().ok() } else { None };
        }
        if waiting.is_empty() {
            continue;
        }
        // The core takes entries in the order of these calls.
        let written = raft.client_write_ff(Batch(entry.into())).await;
        tokio::spawn(async move {
            let outcome = match written {
                Ok(is_done) => match tokio::time::timeout(patience, is_done).await {
                    Ok(Ok(written)) => written.map_err(Some),
                    _ => Err(None),
                },
                Err(_) => Err(None),
            };
            drop(permit);
            tell(waiting, outcome);
        });
    }
}

type Written = Result<openraft::raft::ClientWriteResponse<crate::consensus::Types>, Option<Refusal>>;
type Refusal = ClientWriteError<u64, openraft::EmptyNode>;

/// Reports each outcome. Callers that have given up are gone.
fn tell(waiting: Vec<oneshot::Sender<Outcome>>, written: Written) {
    match written {
        Ok(written) => {
            for (done, reply) in waiting.into_iter().zip(written.data.0) {
                drop(done.send(Outcome::Committed(reply, written.log_id.index)));
            }
        }
        // The entry was never appended, or was replaced by another leader's.
        Err(Some(ClientWriteError::ForwardToLeader(_))) => {
            waiting.into_iter().for_each(|done| drop(done.send(Outcome::NotLeader)));
        }
        Err(_) => waiting.into_iter().for_each(|done| drop(done.send(Outcome::Unknown))),
    }
}
