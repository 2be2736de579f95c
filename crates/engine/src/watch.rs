//! Watching the machine from the run control, beside the load and never in a worker.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_metrics::{Interval, MachineFacts, MachineInterval, MachineRecord};
use plimsoll_monitor::{Sampler, Watch};
use plimsoll_system::clock;

use crate::addresses::TargetAddress;
use crate::control::Watched;
use crate::run::WORKER_NAME;
use crate::socket_watch::{self, SocketWatch};

/// Looks are at least so far apart, however short the intervals of the plan: one costs some tenths of a
/// millisecond, and CPU time is counted in ticks of 10 ms.
const SHORTEST: Nanos = Nanos::from_millis(100);

/// Looks at the machine while a run goes on.
#[derive(Debug, Default)]
pub(crate) struct MachineWatch {
    sampler: Option<Sampler>,
    sockets: Option<SocketWatch>,
    last: Nanos,
    /// Of a machine that is not watched: none.
    nothing: MachineFacts,
}

impl MachineWatch {
    /// Takes the first look, if the machine is to be watched at all; the worker threads run already.
    pub(crate) fn open(watched: &Watched, addresses: &[Arc<[TargetAddress]>]) -> Self {
        let Watched::Machine(named) = watched else { return Self::default() };
        let watch = Watch { named: named.clone(), ..local_listeners(addresses) };
        let now = clock::monotonic();
        let mut sampler = Sampler::open(WORKER_NAME, &watch, now);
        let sockets = match SocketWatch::open(addresses) {
            Ok(sockets) => Some(sockets),
            Err(reason) => {
                reason.into_iter().for_each(|reason| sampler.note_missing(reason));
                None
            }
        };
        Self { sampler: Some(sampler), sockets, last: now, nothing: MachineFacts::default() }
    }

    /// When the first look was over, on the clock of real backends; `None` if nothing is watched.
    pub(crate) fn opened(&self) -> Option<Nanos> {
        self.sampler.as_ref().map(|_| clock::monotonic())
    }

    /// Returns the activity of the machine in a completed interval of the run; `None` if it is too early for
    /// a look.
    pub(crate) fn look(&mut self, interval: &Interval) -> Option<MachineInterval> {
        let sampler = self.sampler.as_mut()?;
        let now = clock::monotonic();
        if now.since(self.last) < SHORTEST {
            return None;
        }
        self.last = now;
        let mut found = sampler.sample(now);
        (found.at, found.warmup) = (interval.at, interval.warmup);
        found.watched.iter_mut().for_each(|server| server.set_time(interval.at));
        if let Some(sockets) = &mut self.sockets {
            let resent = found.network.retransmitted;
            match sockets.queue().and_then(|queue| Ok((queue, sockets.segments(resent)?))) {
                Ok((queue, segments)) => (found.target_queue, found.own_segments) = (queue, segments),
                Err(error) => {
                    sampler.note_missing(socket_watch::reason(&error));
                    self.sockets = None;
                }
            }
        }
        Some(found)
    }

    /// Returns the facts that do not change during the run.
    pub(crate) fn facts(&self) -> &MachineFacts {
        self.sampler.as_ref().map_or(&self.nothing, Sampler::facts)
    }

    /// The machine's part of a record, with the intervals that were kept.
    pub(crate) fn finish(&self, intervals: Vec<MachineInterval>) -> MachineRecord {
        MachineRecord { facts: self.facts().clone(), intervals }
    }
}

/// The endpoints of a target on this machine: its loopback addresses, and unix sockets.
fn local_listeners(addresses: &[Arc<[TargetAddress]>]) -> Watch {
    let (mut ports, mut sockets) = (Vec::new(), Vec::new());
    for target_address in addresses.iter().flat_map(|list| list.iter()) {
        match &target_address.endpoint {
            Endpoint::Tcp(address) if address.ip().is_loopback() => ports.push(address.port()),
            Endpoint::Tcp(_) => {}
            Endpoint::Unix(path) => sockets.push(path.clone()),
        }
    }
    Watch { ports, sockets, named: Vec::new() }
}
