//! Steps before, beside and after a load that are over, and the requests that they have sent.

use plimsoll_engine::{Once, RunError};
use plimsoll_metrics::{Accounting, RunRecord};
use plimsoll_plan::Plan;
use plimsoll_report::context::{OnceResult, RefreshResult};

/// A setup, a refresh or a teardown that is over.
#[derive(Clone)]
pub(crate) struct DoneOnce {
    pub(crate) result: OnceResult,
    /// Requests that reached a server.
    pub(crate) sent: u64,
}

/// Refreshes of a run so far.
#[derive(Clone, Default)]
pub(crate) struct Refreshes {
    pub(crate) result: RefreshResult,
    /// Requests that reached a server.
    pub(crate) sent: u64,
}

impl DoneOnce {
    /// The outcome of the steps of a plan.
    pub(crate) fn new(once: Result<&Once, &RunError>, plan: &Plan) -> Self {
        let once = match once {
            Ok(once) => once,
            Err(error) => {
                let result = OnceResult { failure: Some(error.to_string()), ..OnceResult::default() };
                return Self { result, sent: 0 };
            }
        };
        let accounting = once.record.accounting;
        let result = OnceResult {
            requests: accounting.started,
            failed: accounting.failed + accounting.timed_out,
            duration_ns: once.record.duration.0,
            failure: once.failure(plan).map(|failure| failure.to_string()),
        };
        Self { result, sent: sent_beside(&accounting) }
    }
}

/// Requests that reached a server before or beside the load: the unmeasured ones of its account.
pub(crate) const fn sent_beside(accounting: &Accounting) -> u64 {
    let Accounting { started, undelivered, redirects_followed, polls, resent, unmeasured, .. } = *accounting;
    started - undelivered + redirects_followed + polls + resent + unmeasured
}

/// Requests of all records and steps around a load that reached a server.
pub(crate) fn sent_in_all<'a>(
    records: impl Iterator<Item = &'a RunRecord>,
    once: impl Iterator<Item = &'a DoneOnce>,
    refreshes: Option<&Refreshes>,
) -> u64 {
    let records: u64 = records.map(|record| sent_beside(&record.accounting)).sum();
    let once: u64 = once.map(|done| done.sent).sum();
    records + once + refreshes.map_or(0, |refreshes| refreshes.sent)
}
