//! State of one iteration.

use std::sync::Arc;

use plimsoll_core::Nanos;

use crate::FollowUp;
use crate::cookie::CookieJar;
use crate::message::{FieldList, SentRequest};

/// State of one iteration of a scenario, kept from step to step. Its memory is used again by the next
/// iteration: call [`reset`](Self::reset) at its start. In the closed model that is the next iteration of the
/// same user: there are as many sessions as users, and a row of data that a user keeps is kept here.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The values of the variables, in the order of the plan's.
    pub variables: Vec<Vec<u8>>,
    /// Which variables have been set, by [`variables`](Self::variables)' order.
    pub known: Vec<bool>,
    /// Cookies that servers have set in this iteration.
    pub cookies: CookieJar,
    /// Inquiry after the last request whose body a supply gave, if its outcome can be asked for.
    pub follow_up: Option<FollowUp>,
    /// Bodies of a supply that are still to be sent, before it gives another one: the supply, and the bodies,
    /// the last one first.
    pub turns: (u16, Vec<Arc<[u8]>>),
    /// The last request, as far as a step needs it.
    pub sent: SentRequest,
    /// The fields of the last response, for scripts.
    pub last_fields: FieldList,
    /// Status of the last response, 0 before the first one.
    pub last_status: u16,
    /// Body of the last response, for scripts.
    pub last_body: Vec<u8>,
    /// The next instruction of the program.
    pub(crate) position: u32,
    /// `true` if the program has sent a request since the last reset.
    pub(crate) has_sent: bool,
    /// End of the last pace, from the beginning of the iteration.
    pub(crate) paced: Nanos,
    /// Rows of data that outlast the iteration.
    pub(crate) kept: Vec<KeptRow>,
    /// Rows of pools that it uses until it is over: see [`Feeds::release`](crate::Feeds::release).
    pub(crate) picked: Vec<u64>,
    /// Remaining runs of each loop.
    pub(crate) counters: Vec<u64>,
    /// Room for texts that are rendered to be examined. It keeps the content of the last use: clear it
    /// first.
    pub(crate) scratch: Vec<u8>,
    /// Where each of several such texts ends.
    pub(crate) ends: Vec<usize>,
    /// Room for the value of a response that is compared with such a text.
    pub(crate) looked_at: Vec<u8>,
}

/// A row that a user has for all of its iterations.
#[derive(Clone, Debug)]
pub(crate) struct KeptRow {
    /// The data source, an index into the plan's.
    pub(crate) feed: u16,
    /// The variables that it sets, with their values.
    pub(crate) values: Vec<(u16, Vec<u8>)>,
}

impl KeptRow {
    /// Sets the variables of an iteration.
    pub(crate) fn give(&self, variables: &mut [Vec<u8>], known: &mut [bool]) {
        for (variable, value) in &self.values {
            let variable = usize::from(*variable);
            variables[variable].clear();
            variables[variable].extend_from_slice(value);
            known[variable] = true;
        }
    }
}

impl Session {
    /// A session with this many variables, at the start of its program.
    pub fn new(variables: usize) -> Self {
        Self { variables: vec![Vec::new(); variables], known: vec![false; variables], ..Self::default() }
    }

    /// Forgets everything but the rows that its user keeps, and keeps the memory; its program starts over.
    pub fn reset(&mut self) {
        self.variables.iter_mut().for_each(Vec::clear);
        self.known.fill(false);
        self.cookies.clear();
        self.follow_up = None;
        self.turns.1.clear();
        self.sent.method.clear();
        self.sent.path.clear();
        self.sent.authority.clear();
        self.sent.fields.clear();
        self.sent.body.clear();
        self.last_fields.clear();
        self.last_status = 0;
        self.last_body.clear();
        self.position = 0;
        self.has_sent = false;
        self.paced = Nanos::ZERO;
        self.counters.clear();
    }
}
