//! Names that are resolved again while a run goes on, off the workers' threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use plimsoll_core::Nanos;
use plimsoll_metrics::AddressChange;
use plimsoll_plan::{Address, Plan, Target};
use plimsoll_system::clock;

use crate::addresses::TargetAddress;
use crate::control::Control;
use crate::error::RunError;
use crate::run::{Resolved, Unresolved, addresses_of_target, is_name};

/// Changes that are kept; a name that changes all the time is no news in the end.
const MOST_CHANGES: usize = 100;

/// The addresses of the targets of a run, as far as they have changed since its start.
///
/// Workers compare the [version](Self::version) whenever they open a connection, and take the
/// [latest](Self::latest) addresses if it is a new one.
#[derive(Debug, Default)]
pub(crate) struct Names {
    version: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    start: Nanos,
    /// By target of the plan.
    addresses: Vec<Arc<[TargetAddress]>>,
    /// By target of the plan: `true` if the last attempt to resolve its names failed.
    failing: Vec<bool>,
    changes: Vec<AddressChange>,
}

impl Names {
    /// Begins a run with these addresses; its [start](Self::start) follows.
    pub(crate) fn begin(&self, addresses: &[Arc<[TargetAddress]>]) {
        let failing = vec![false; addresses.len()];
        *self.lock() = State { addresses: addresses.to_vec(), failing, ..State::default() };
    }

    /// Sets the start of the run on the driver's clock.
    pub(crate) fn start(&self, start: Nanos) {
        self.lock().start = start;
    }

    /// Number of changes of addresses so far, without taking a lock.
    #[inline]
    pub(crate) fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    /// The addresses of each target now; empty before the run has begun.
    pub(crate) fn latest(&self) -> Vec<Arc<[TargetAddress]>> {
        self.lock().addresses.clone()
    }

    /// Notes to which addresses a target leads at an instant of the driver's clock, or why that is not known:
    /// then the last ones stay.
    pub(crate) fn note(
        &self,
        target: usize,
        authority: &str,
        found: Result<&[TargetAddress], &str>,
        at: Nanos,
    ) {
        let mut state = self.lock();
        let Some(before) = state.addresses.get(target).cloned() else { return };
        let was_failing = std::mem::replace(&mut state.failing[target], found.is_err());
        let change = match found {
            Err(_) if was_failing => return,
            Err(reason) => AddressChange { error: Some(reason.to_owned()), ..AddressChange::default() },
            Ok(latest) => {
                let missing = |of: &[TargetAddress], there: &[TargetAddress]| -> Vec<String> {
                    let missing = of.iter().filter(|address| !there.contains(address));
                    missing.map(|address| address.endpoint.to_string()).collect()
                };
                let (added, removed) = (missing(latest, &before), missing(&before, latest));
                if added.is_empty() && removed.is_empty() {
                    return;
                }
                state.addresses[target] = latest.into();
                self.version.fetch_add(1, Ordering::Release);
                AddressChange { added, removed, ..AddressChange::default() }
            }
        };
        if state.changes.len() < MOST_CHANGES {
            let at = at.since(state.start);
            state.changes.push(AddressChange { at, target: authority.to_owned(), ..change });
        }
    }

    /// Takes what has changed since the start of the run.
    pub(crate) fn finish(&self) -> Vec<AddressChange> {
        std::mem::take(&mut self.lock().changes)
    }

    /// Locks the state even if a thread panicked with it: it is consistent between any two statements.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that resolves the names of a plan again. It ends when this is dropped, at the latest when the
/// resolver has answered: nothing waits for it.
#[derive(Debug)]
pub(crate) struct Resolver {
    _alive: Sender<()>,
}

impl Resolver {
    /// Starts the thread; `None` if the plan has no name, or ends before one is due.
    pub(crate) fn start(plan: &Arc<Plan>, control: &Control) -> Option<Self> {
        let every = plan.connections.resolve_every?;
        let length = plan.end.duration.map_or(Nanos::MAX, |duration| plan.warmup + duration);
        if length <= every || !plan.targets.iter().any(has_name) {
            return None;
        }
        let (alive, ended) = channel();
        let (plan, control) = (Arc::clone(plan), control.clone());
        let work = move || resolve_again(&plan, &control, every, &ended);
        // Without the thread the names keep the addresses that they have.
        thread::Builder::new().name("resolver".to_owned()).spawn(work).ok()?;
        Some(Self { _alive: alive })
    }
}

/// Returns `true` if an address of the target, or the way to it, is a name.
fn has_name(target: &Target) -> bool {
    let members = target.pool.iter().map(|member| &member.address);
    let mut addresses = members.chain(target.pool.is_empty().then_some(&target.address));
    let proxy = target.proxy.as_ref().is_some_and(|proxy| is_name(&proxy.host));
    proxy || addresses.any(|address| matches!(address, Address::Host { host, .. } if is_name(host)))
}

/// Resolves the names of a plan's targets again, before a further run of it, unless it says not to. Returns
/// `true` if one leads to other addresses than before: they come in the order of the resolver, those of the
/// family that was first before the others.
///
/// # Errors
/// [`RunError::Resolve`] for the first host without an address; then all addresses stay.
pub fn resolve_anew(plan: &Plan, addresses: &mut Resolved) -> Result<bool, RunError> {
    let mut changed = Vec::new();
    let named = plan.targets.iter().zip(addresses.iter()).enumerate();
    for (number, (target, known)) in named.filter(|(_, (target, _))| has_name(target)) {
        if plan.connections.resolve_every.is_none() {
            continue;
        }
        let found = addresses_of_target(plan, target, known);
        let found =
            found.map_err(|Unresolved { authority, reason }| RunError::Resolve { authority, reason })?;
        changed.extend(other_addresses(known, found).map(|found| (number, found)));
    }
    let has_changed = !changed.is_empty();
    changed.into_iter().for_each(|(number, found)| addresses[number] = found.into());
    Ok(has_changed)
}

/// The addresses that were `found`, those of the family of the first known one first; `None` if they are the
/// known ones in any order.
fn other_addresses(known: &[TargetAddress], mut found: Vec<TargetAddress>) -> Option<Vec<TargetAddress>> {
    if found.len() == known.len() && found.iter().all(|address| known.contains(address)) {
        return None;
    }
    let family = known.first().and_then(TargetAddress::family);
    found.sort_by_key(|address| address.family() != family);
    Some(found)
}

fn resolve_again(plan: &Plan, control: &Control, every: Nanos, ended: &Receiver<()>) {
    while ended.recv_timeout(every.into()) == Err(RecvTimeoutError::Timeout) {
        for (number, target) in plan.targets.iter().enumerate().filter(|(_, target)| has_name(target)) {
            let known = control.names().latest();
            let Some(known) = known.get(number) else { return };
            let at = clock::monotonic();
            match addresses_of_target(plan, target, known) {
                Ok(found) => control.names().note(number, &target.authority, Ok(&found), at),
                Err(Unresolved { authority, reason }) => {
                    control.names().note(number, &authority, Err(&reason), at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<TargetAddress> {
        let address = |text: &&str| {
            let address: core::net::SocketAddr = text.parse().expect("an address");
            plimsoll_driver::Endpoint::Tcp(address).into()
        };
        texts.iter().map(address).collect()
    }

    #[test]
    fn changes_are_those_of_the_set_and_failures_are_told_once() {
        let names = Names::default();
        names.begin(&[addresses(&["192.0.2.1:80", "192.0.2.2:80"]).into()]);
        names.start(Nanos(100));
        let version = names.version();
        let other_order = addresses(&["192.0.2.2:80", "192.0.2.1:80"]);
        names.note(0, "a.test", Ok(&other_order), Nanos(110));
        assert_eq!((names.version(), names.finish().len()), (version, 0));
        for at in [120, 130] {
            names.note(0, "a.test", Err("cannot resolve host `a.test`: it is away"), Nanos(at));
        }
        let moved = addresses(&["192.0.2.2:80", "192.0.2.3:80"]);
        names.note(0, "a.test", Ok(&moved), Nanos(140));
        assert_eq!(names.version(), version + 1);
        assert_eq!(names.latest()[0][..], moved[..]);
        let changes = names.finish();
        let at: Vec<u64> = changes.iter().map(|change| change.at.0).collect();
        assert_eq!(at, [20, 40]);
        assert!(changes[0].error.as_deref().is_some_and(|error| error.contains("it is away")));
        assert_eq!(
            (&changes[1].added[..], &changes[1].removed[..]),
            (&["192.0.2.3:80".to_owned()][..], &["192.0.2.1:80".to_owned()][..],)
        );
    }

    #[test]
    fn addresses_of_a_further_run_are_others_if_their_set_is() {
        let known = addresses(&["[2001:db8::1]:80", "192.0.2.1:80"]);
        let other = |texts: &[&str]| other_addresses(&known, addresses(texts));
        assert_eq!(other(&["192.0.2.1:80", "[2001:db8::1]:80"]), None);
        let (fewer, moved) = (["192.0.2.1:80"], ["192.0.2.2:80", "[2001:db8::1]:80"]);
        assert_eq!(other(&fewer), Some(addresses(&fewer)));
        // The first contact has chosen the family.
        assert_eq!(other(&moved), Some(addresses(&["[2001:db8::1]:80", "192.0.2.2:80"])));
    }

    #[test]
    fn a_name_that_changes_all_the_time_is_kept_within_bounds() {
        let names = Names::default();
        names.begin(&[addresses(&["192.0.2.1:80"]).into()]);
        for turn in 0..1_000_u64 {
            let one = addresses(&[&format!("192.0.2.{}:80", 2 + turn % 200)]);
            names.note(0, "a.test", Ok(&one), Nanos(turn));
        }
        assert_eq!(names.finish().len(), MOST_CHANGES);
    }
}
