//! Collects the saved parts of a run from its agents after its coordinator has gone.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::Nanos;

use crate::fabric::{Delivery, Now};
use crate::message::{FromAgent, Order, ToAgent, WIRE_VERSION, Word, decode, encode};
use crate::parts::PartInbox;
use crate::subject::{self, Subject, parse};

/// Time after which an agent that has not answered is asked again.
const REPEAT: Nanos = Nanos::from_secs(1);

/// Asks agents for their saved parts of one run.
#[derive(Debug)]
pub struct Collector {
    run: String,
    asked: BTreeSet<String>,
    /// Agents that have nothing, or whose run goes on.
    without: BTreeSet<String>,
    inboxes: BTreeMap<String, PartInbox>,
    next: Nanos,
    heard: Option<Nanos>,
}

impl Collector {
    /// A collector that has not asked any agent yet.
    pub fn new(run: &str, agents: Vec<String>) -> Self {
        Self {
            run: run.to_owned(),
            asked: agents.into_iter().collect(),
            without: BTreeSet::new(),
            inboxes: BTreeMap::new(),
            next: Nanos::ZERO,
            heard: None,
        }
    }

    /// The subject to subscribe to.
    pub fn subscription(&self) -> String {
        subject::words(&self.run)
    }

    /// Takes a message.
    pub fn hear(&mut self, delivery: &Delivery, now: Now) {
        let Some(Subject::Word { run, agent }) = parse(&delivery.subject) else { return };
        let Ok((said, body)) = decode::<FromAgent>(&delivery.payload) else { return };
        if run != self.run || said.agent != agent || said.run != run || !self.asked.contains(agent) {
            return;
        }
        self.heard = Some(now.monotonic);
        match said.word {
            Word::Part(piece) => {
                self.inboxes.entry(agent.to_owned()).or_default().take(&piece, body);
            }
            Word::Nothing | Word::Busy { .. } => drop(self.without.insert(agent.to_owned())),
            _ => {}
        }
    }

    /// Messages that are due now.
    pub fn tick(&mut self, now: Now) -> Vec<Delivery> {
        if now.monotonic < self.next {
            return Vec::new();
        }
        self.next = now.monotonic + REPEAT;
        self.heard.get_or_insert(now.monotonic);
        let silent = self.asked.iter().filter(|agent| !self.is_done(agent));
        let asked = silent.map(|agent| self.order(agent, Order::Collect));
        let arrived = self
            .inboxes
            .iter()
            .map(|(agent, inbox)| self.order(agent, Order::Arrived { part: inbox.arrived(), interval: 0 }));
        asked.chain(arrived).collect()
    }

    fn order(&self, agent: &str, order: Order) -> Delivery {
        let message = ToAgent { wire: WIRE_VERSION, run: self.run.clone(), share: 0, order };
        Delivery { subject: subject::orders(agent), payload: encode(&message, &[]) }
    }

    fn is_done(&self, agent: &str) -> bool {
        self.without.contains(agent) || self.inboxes.get(agent).is_some_and(|inbox| inbox.end().is_some())
    }

    /// Returns `true` once all have answered, or none has for `patience`.
    pub fn is_over(&self, now: Now, patience: Nanos) -> bool {
        let all = self.asked.iter().all(|agent| self.is_done(agent));
        all || self.heard.is_some_and(|heard| now.monotonic.since(heard) > patience)
    }

    /// The saved runs that have arrived completely, as bytes by agent.
    pub fn parts(&self) -> BTreeMap<String, Vec<u8>> {
        let whole = self.inboxes.iter().filter(|(_, inbox)| inbox.end().is_some());
        whole.map(|(agent, inbox)| (agent.clone(), inbox.part().to_vec())).collect()
    }
}
