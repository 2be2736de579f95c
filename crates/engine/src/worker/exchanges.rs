//! Exchanges: captures of requests and responses, and the log that uses them.

use plimsoll_metrics::LogSink;
use plimsoll_plan::Plan;
use plimsoll_scenario::{FieldList, Session};

use crate::capture::Captures;
use crate::request::InFlight;

/// The kept parts of exchanges under way, and the log of those that have ended.
///
/// The parts that a step needs are in the [capture](Captures) of its request until that has ended. If the log
/// wants whole exchanges, they are kept, too: only their end decides which ones it gets.
#[derive(Debug)]
pub(super) struct Exchanges {
    pub(super) captures: Captures,
    /// The log of single requests.
    pub(super) log: LogSink,
    /// Set if the log wants failed requests with both messages, or all requests that may have changed
    /// something: every exchange is kept until it has ended.
    pub(super) keeps: bool,
    /// Set if exchanges that end well are kept, too.
    pub(super) keeps_good: bool,
    /// For handlers that read and take nothing of a session; nothing is in it but working memory.
    pub(super) no_session: Session,
    /// For responses of which only the body is examined.
    pub(super) no_fields: FieldList,
}

impl Exchanges {
    /// No exchanges so far, of a plan whose requests are logged there.
    pub(super) fn new(plan: &Plan, log: LogSink) -> Self {
        Self {
            captures: Captures::new(log.longest()),
            keeps: log.keeps_failed() || log.keeps_writes(),
            keeps_good: log.keeps_writes() || log.keeps_good(),
            log,
            no_session: Session::new(plan.variables.len()),
            no_fields: FieldList::default(),
        }
    }

    /// The location that the response to a request named.
    #[inline]
    pub(super) fn location(&mut self, request: &InFlight) -> Option<Vec<u8>> {
        self.captures.get_mut(request.capture).fields.get("location").map(<[u8]>::to_vec)
    }
}
