//! Messages among which one is awaited.

use super::ResponseHandler;
use super::budget::Budget;
use super::place::{Exchange, Parsed};
use crate::{Received, Session};

impl ResponseHandler {
    /// Returns `true` if a message is the one that is awaited: all checks of
    /// [`PollSpec::until`](super::PollSpec::until) hold for it. Without any, each message is.
    pub fn is_awaited(&self, received: &Received<'_>, session: &mut Session) -> bool {
        if self.until.is_empty() {
            return true;
        }
        let Session { variables, cookies, sent, scratch, looked_at, .. } = session;
        let budget = Budget::default();
        let mut parsed = Parsed::new(&budget);
        let mut exchange = Exchange { received, sent, cookies, parsed: &mut parsed, stream: None };
        self.until.iter().all(|check| check.holds(&mut exchange, variables, looked_at, scratch))
    }
}
