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
    /// The shares that agents have saved parts of: none, if their run goes on.
    shares: BTreeMap<String, Vec<u32>>,
    /// By agent and share.
    inboxes: BTreeMap<(String, u32), PartInbox>,
    next: Nanos,
    heard: Option<Nanos>,
}

impl Collector {
    /// A collector that has not asked any agent yet.
    pub fn new(run: &str, agents: Vec<String>) -> Self {
        Self {
            run: run.to_owned(),
            asked: agents.into_iter().collect(),
            shares: BTreeMap::new(),
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
        let agent = agent.to_owned();
        match said.word {
            Word::Part(piece) => {
                self.inboxes.entry((agent, said.share)).or_default().take(&piece, body);
            }
            Word::Saved { shares } => drop(self.shares.insert(agent, shares)),
            Word::Busy { .. } => drop(self.shares.insert(agent, Vec::new())),
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
        let asked = silent.map(|agent| self.order((agent, 0), Order::Collect));
        let arrived = self.inboxes.iter().map(|((agent, share), inbox)| {
            self.order((agent, *share), Order::Arrived { part: inbox.arrived(), interval: 0 })
        });
        asked.chain(arrived).collect()
    }

    fn order(&self, (agent, share): (&str, u32), order: Order) -> Delivery {
        let message = ToAgent { wire: WIRE_VERSION, run: self.run.clone(), share, order };
        Delivery { subject: subject::orders(agent), payload: encode(&message, &[]) }
    }

    fn is_done(&self, agent: &str) -> bool {
        let has_come = |share: &u32| {
            let inbox = self.inboxes.get(&(agent.to_owned(), *share));
            inbox.is_some_and(|inbox| inbox.end().is_some())
        };
        self.shares.get(agent).is_some_and(|shares| shares.iter().all(has_come))
    }

    /// Returns `true` once all have answered, or none has for `patience`.
    pub fn is_over(&self, now: Now, patience: Nanos) -> bool {
        let all = self.asked.iter().all(|agent| self.is_done(agent));
        all || self.heard.is_some_and(|heard| now.monotonic.since(heard) > patience)
    }

    /// The saved runs that have arrived completely, as bytes by agent and share: one that began with the run
    /// has the number zero.
    pub fn parts(&self) -> BTreeMap<(String, u32), Vec<u8>> {
        let whole = self.inboxes.iter().filter(|(_, inbox)| inbox.end().is_some());
        whole.map(|(share, inbox)| (share.clone(), inbox.part().to_vec())).collect()
    }
}
