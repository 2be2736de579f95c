//! Iterations of scenarios that remember something: where they are, and their variables.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::ConnId;
use plimsoll_scenario::Session as State;

use crate::request::NO_SESSION;

/// One iteration under way.
#[derive(Debug)]
pub(crate) struct Session {
    /// Index into the plan's scenarios.
    pub(crate) scenario: u32,
    /// The pool of its first step, to which its user belongs.
    pub(crate) home: u32,
    /// Global index of the iteration.
    pub(crate) index: u64,
    /// When it began: its arrival in the open model.
    pub(crate) begun: Nanos,
    /// `true` if it belongs to the measured part.
    pub(crate) measured: bool,
    /// Number of its requests that are under way.
    pub(crate) outstanding: u32,
    /// Set once one of its requests has ended badly.
    pub(crate) failed: bool,
    /// Set if nothing comes after its requests that are under way.
    pub(crate) stops: bool,
    /// The connection of its last answer from each pool: its next request to the pool goes there, if it can.
    pub(crate) last_connections: Vec<LastConnection>,
    /// The WebSocket that belongs to it.
    pub(crate) link: Option<ConnId>,
    /// Error that ended its last connection; `None` if the session closed it.
    pub(crate) lost: Option<ErrorClass>,
    /// The session's memory: its variables and the values of its steps.
    pub(crate) state: State,
}

/// The connection on which an iteration had its last answer from a pool. It may have ended since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastConnection {
    pub(crate) id: ConnId,
    pub(crate) pool: u32,
    /// The address of the pool that the connection is to.
    pub(crate) target_address: u32,
}

impl Session {
    /// Notes the connection of an answer.
    pub(crate) fn note_connection(&mut self, last: LastConnection) {
        match self.last_connections.iter_mut().find(|known| known.pool == last.pool) {
            Some(known) => *known = last,
            None => self.last_connections.push(last),
        }
    }

    /// The connection of its last answer from a pool; `None` before the first.
    pub(crate) fn last_connection(&self, pool: u32) -> Option<LastConnection> {
        self.last_connections.iter().copied().find(|last| last.pool == pool)
    }
}

/// The sessions of one worker. Ended ones are used again with their memory, the last one first: a user of the
/// closed model that begins its next iteration has its session again, and with it the rows that it keeps.
#[derive(Debug)]
pub(crate) struct Sessions {
    all: Vec<Session>,
    free: Vec<u32>,
    variables: usize,
}

impl Sessions {
    pub(crate) const fn new(variables: usize) -> Self {
        Self { all: Vec::new(), free: Vec::new(), variables }
    }

    /// Begins one at an instant: its number.
    pub(crate) fn begin(
        &mut self,
        scenario: u32,
        home: u32,
        index: u64,
        begun: Nanos,
        measured: bool,
    ) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            let state = State::new(self.variables);
            let (outstanding, failed, stops) = (0, false, false);
            let (last_connections, link, lost) = (Vec::new(), None, None);
            self.all.push(Session {
                scenario,
                home,
                index,
                begun,
                measured,
                outstanding,
                failed,
                stops,
                last_connections,
                link,
                lost,
                state,
            });
            (self.all.len() - 1) as u32
        });
        let session = &mut self.all[number as usize];
        session.state.reset();
        (session.scenario, session.home, session.index) = (scenario, home, index);
        (session.begun, session.measured, session.outstanding) = (begun, measured, 0);
        (session.failed, session.stops) = (false, false);
        session.last_connections.clear();
        (session.link, session.lost) = (None, None);
        number
    }

    pub(crate) fn end(&mut self, number: u32) {
        self.free.push(number);
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Session> {
        if number == NO_SESSION { None } else { self.all.get(number as usize) }
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Session> {
        if number == NO_SESSION { None } else { self.all.get_mut(number as usize) }
    }

    /// The variables of a session; none, if there is no session.
    #[inline]
    pub(crate) fn variables(&self, number: u32) -> &[Vec<u8>] {
        self.get(number).map_or(&[], |session| &session.state.variables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_begins_without_the_values_of_the_one_before() {
        let mut sessions = Sessions::new(2);
        let first = sessions.begin(0, 0, 5, Nanos(7), true);
        let session = sessions.get_mut(first).expect("it began");
        session.state.variables[1].extend_from_slice(b"secret");
        (session.failed, session.stops, session.outstanding) = (true, true, 3);
        sessions.end(first);
        let second = sessions.begin(1, 2, 6, Nanos(9), false);
        assert_eq!(second, first);
        let session = sessions.get(second).expect("it began");
        assert_eq!((session.scenario, session.home, session.index), (1, 2, 6));
        assert!(!session.failed && !session.stops && session.outstanding == 0);
        assert!(sessions.variables(second).iter().all(Vec::is_empty));
        assert!(sessions.variables(NO_SESSION).is_empty() && sessions.get(NO_SESSION).is_none());
        assert_eq!(sessions.begin(0, 0, 0, Nanos::ZERO, true), 1);
    }
}
