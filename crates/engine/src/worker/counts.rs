//! Counters beside the recorder.

use plimsoll_core::{ErrorClass, Nanos, Outcome, Shard};
use plimsoll_metrics::{Accounting, IterationRecord};
use plimsoll_plan::{Load, Plan};

use crate::connection::PROTOCOLS;
use crate::request::{AT_SEND, InFlight, Intent};

/// Counters of one worker: the accounts of its arrivals and iterations, and progress since the last snapshot.
///
/// Every scheduled arrival ends in exactly one account; `in_flight` counts the requests between.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) accounting: Accounting,
    /// Requests started and not ended, warm-up included.
    pub(super) in_flight: u64,
    pub(super) completed_in_window: u64,
    pub(super) last_done: Nanos,
    /// Iterations that the closed model may still start in the measured part; `None` without a count.
    pub(super) remaining: Option<u64>,
    /// Scheduled since the last snapshot, warm-up included.
    pub(super) new_scheduled: u64,
    /// Iterations started since then.
    pub(super) new_iterations: u64,
    /// When the last snapshot was taken.
    pub(super) last_edge: Nanos,
    /// Iterations begun by this worker, the source of their global index in the closed model.
    pub(super) begun: u64,
    pub(super) iterations: IterationRecord,
    /// Requests of the warm-up that ended well.
    pub(super) warmup_ok: u64,
    /// Measured responses by protocol, in the order of [`PROTOCOLS`].
    pub(super) answered: [u64; PROTOCOLS.len()],
    /// Calls of scripts that have failed in a row, and the requests that had ended well by then.
    script_failures: u64,
    ok_at_failure: u64,
}

impl Counts {
    /// Nothing so far, of this part of a plan.
    pub(super) fn new(plan: &Plan, shard: Shard) -> Self {
        // In the open model the schedule itself counts.
        let remaining = match plan.load {
            Load::Closed => plan.end.iterations.map(|total| shard.share_of(total)),
            Load::Open { .. } => None,
        };
        Self { remaining, ..Self::default() }
    }

    /// Counts arrivals of the measured part that fell due and are never started, some of them for want of
    /// data.
    pub(super) const fn never_start(&mut self, measured: u64, without_data: u64) {
        self.accounting.scheduled += measured;
        self.accounting.never_started += measured;
        self.accounting.without_data += without_data;
    }

    /// Counts an arrival whose scenario has no data any more, while others have.
    pub(super) fn pass_by(&mut self, measured: bool) {
        self.new_scheduled += 1;
        self.never_start(u64::from(measured), u64::from(measured));
    }

    /// Counts a request of the measured part that has ended.
    #[inline]
    pub(super) fn end_measured(&mut self, request: &InFlight, outcome: Outcome, at: Nanos, in_window: bool) {
        let accounting = &mut self.accounting;
        match outcome {
            Outcome::Ok => accounting.ok += 1,
            Outcome::Failed(ErrorClass::AbortedByUs) => {
                accounting.aborted += 1;
                accounting.cut_short += u64::from(request.intent == Intent::CutRequest);
            }
            Outcome::Failed(_) => accounting.failed += 1,
            Outcome::TimedOut => accounting.timed_out += 1,
        }
        accounting.undelivered += u64::from(request.sent == AT_SEND);
        self.completed_in_window += u64::from(in_window);
        self.last_done = self.last_done.max(at);
    }

    /// Counts a request that is sent again, because its answer is still to come.
    #[cold]
    pub(super) const fn poll(&mut self, request: &InFlight) {
        if request.measured {
            self.accounting.polls += 1;
        } else {
            self.accounting.unmeasured += 1;
        }
    }

    /// Counts a request that is sent to where it was redirected. Not earlier than when it is sent: a
    /// connection that has to be opened for it may fail, and then the target does not get it.
    pub(super) const fn redirect(&mut self, request: &InFlight) {
        if request.measured {
            self.accounting.redirects_followed += 1;
        } else {
            self.accounting.unmeasured += 1;
        }
    }

    /// Counts a call of a script that has failed: how many have in a row, without one request in between that
    /// ended well.
    pub(super) const fn script_failure(&mut self) -> u64 {
        let ok = self.accounting.ok + self.warmup_ok;
        self.script_failures = if self.ok_at_failure == ok { self.script_failures + 1 } else { 1 };
        self.ok_at_failure = ok;
        self.script_failures
    }
}
