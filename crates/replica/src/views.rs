//! Views of the state that reads are answered from: the current one and, on a node that lies, an older one.

use std::collections::VecDeque;
use std::sync::{Mutex, RwLock};

use bytes::Bytes;
use plimsoll_core::Nanos;

use crate::change::Reply;
use crate::lies::{Confession, FaultInjector, InjectedFault, LieKind};
use crate::options::ReplicaOptions;
use crate::state::State;

/// The state, for the thread that changes it and the one that reads it.
#[derive(Debug)]
pub(crate) struct Views {
    fresh: RwLock<State>,
    injector: FaultInjector,
    stale: Option<Mutex<Stale>>,
    /// Lies of this node about reads.
    told: Mutex<Confession>,
}

/// The state some time ago.
#[derive(Debug)]
struct Stale {
    by: Nanos,
    state: State,
    /// Entries that it has not carried out, and when they came.
    waiting: VecDeque<(Nanos, u64, Bytes)>,
}

impl Views {
    pub(crate) fn new(options: &ReplicaOptions, state: State) -> Self {
        let injector = FaultInjector::new(options.lie, options.seed);
        let stale = injector.is(LieKind::Stale).then(|| {
            Mutex::new(Stale { by: options.stale_by, state: state.clone(), waiting: VecDeque::new() })
        });
        Self { fresh: RwLock::new(state), injector, stale, told: Mutex::default() }
    }

    /// Carries out an entry.
    pub(crate) fn apply(&self, index: u64, entry: &Bytes, now: Nanos) -> Result<Vec<Reply>, postcard::Error> {
        if let Some(stale) = &self.stale {
            let mut stale = stale.lock().expect("no panic while it is locked");
            stale.waiting.push_back((now, index, entry.clone()));
            stale.advance(now);
        }
        self.fresh.write().expect("no panic while it is locked").apply(index, entry, &self.injector)
    }

    /// Takes another state.
    pub(crate) fn replace(&self, state: State) {
        if let Some(stale) = &self.stale {
            let mut stale = stale.lock().expect("no panic while it is locked");
            stale.waiting.clear();
            stale.state = state.clone();
        }
        *self.fresh.write().expect("no panic while it is locked") = state;
    }

    /// Looks at the state as it is.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.fresh.read().expect("no panic while it is locked"))
    }

    /// Answers a read, now and then from an earlier state. If that makes a difference it is a lie, which
    /// `lie` names.
    pub(crate) fn read<T: PartialEq>(
        &self,
        now: Nanos,
        read: impl Fn(&State) -> T,
        lie: impl FnOnce() -> InjectedFault,
    ) -> T {
        let truth = self.look(&read);
        let Some(stale) = self.stale.as_ref().filter(|_| self.injector.lies(LieKind::Stale)) else {
            return truth;
        };
        let mut stale = stale.lock().expect("no panic while it is locked");
        stale.advance(now);
        let answer = read(&stale.state);
        if answer != truth {
            self.told.lock().expect("no panic while it is locked").add(lie());
        }
        answer
    }

    /// All lies that this node knows of, about items and then about reads, and how many there were.
    pub(crate) fn lies(&self) -> (Vec<InjectedFault>, u64) {
        let (mut told, mut total) = self.look(|state| (state.lies.told().to_vec(), state.lies.total()));
        let of_reads = self.told.lock().expect("no panic while it is locked");
        told.extend_from_slice(of_reads.told());
        total += of_reads.total();
        (told, total)
    }
}

impl Stale {
    fn advance(&mut self, now: Nanos) {
        let honest = FaultInjector::new(None, 0);
        while let Some((_, index, entry)) = self.waiting.pop_front_if(|(at, ..)| *at + self.by <= now) {
            // An entry that the fresh state could not apply has ended the node.
            drop(self.state.apply(index, &entry, &honest));
        }
    }
}
