//! Servers that come up while a run goes on: found once for all workers, off their hot paths.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use plimsoll_plan::{DynamicOrigin, DynamicOrigins, Family, Target};

use crate::addresses::TargetAddress;
use crate::run::target_addresses_of;

/// A server that was found.
#[derive(Debug)]
pub(crate) struct ResolvedServer {
    pub(crate) target: Arc<Target>,
    /// Never empty.
    pub(crate) target_addresses: Arc<[TargetAddress]>,
}

/// Result of looking up a server.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The server is being looked for.
    Pending,
    Found(Arc<ResolvedServer>),
    /// The server has no address, or cannot be spoken to; the reason in words.
    Lost(Arc<str>),
    /// There are as many already as a run may have.
    Full,
}

/// The servers of a run that its plan does not name, each with what was found about it.
///
/// Workers [`ask`](Self::ask) when they meet one for the first time, and again until they have an answer:
/// that takes a lock, which no request to a known server does. Names are resolved by a thread of its own,
/// which lives as long as the directory; a name server that does not answer delays only the requests to that
/// name.
#[derive(Debug, Default)]
pub struct Directory {
    dynamic_origins: Option<Arc<DynamicOrigins>>,
    family: Family,
    entries: Arc<Mutex<Vec<Entry>>>,
    /// Channel to the thread that resolves names, once there is one; none in simulated time, where a thread
    /// running beside it would not be repeatable.
    asks: Mutex<Option<Sender<usize>>>,
    at_once: bool,
}

#[derive(Debug)]
struct Entry {
    dynamic_origin: DynamicOrigin,
    answer: Answer,
}

impl Directory {
    /// A directory of one run. `at_once`: names are resolved by the calling thread, which blocks.
    pub(crate) fn new(dynamic_origins: Option<Arc<DynamicOrigins>>, family: Family, at_once: bool) -> Self {
        Self { dynamic_origins, family, at_once, ..Self::default() }
    }

    /// Settings for servers that the plan does not name; `None` if the plan has no way to meet one.
    pub(crate) fn dynamic_origins(&self) -> Option<&DynamicOrigins> {
        self.dynamic_origins.as_deref()
    }

    /// Returns the result of looking up a server. Starts the lookup if the server is new, or if it was `Lost`
    /// and the caller wants to try `again`.
    pub(crate) fn ask(&self, dynamic_origin: &DynamicOrigin, again: bool) -> Answer {
        let Some(dynamic_origins) = &self.dynamic_origins else { return Answer::Full };
        let number = {
            let mut entries = lock(&self.entries);
            let known = entries.iter().position(|entry| entry.dynamic_origin.is(dynamic_origin));
            match known {
                Some(number) if again && matches!(entries[number].answer, Answer::Lost(_)) => {
                    entries[number].answer = Answer::Pending;
                    number
                }
                Some(number) => return entries[number].answer.clone(),
                None if entries.len() >= DynamicOrigins::MOST => return Answer::Full,
                None => {
                    entries.push(Entry { dynamic_origin: dynamic_origin.clone(), answer: Answer::Pending });
                    entries.len() - 1
                }
            }
        };
        if self.at_once {
            look_up(dynamic_origins, self.family, &self.entries, number);
            return lock(&self.entries)[number].answer.clone();
        }
        match self.send(dynamic_origins, number) {
            Ok(()) => Answer::Pending,
            Err(reason) => {
                let answer = Answer::Lost(reason.into());
                lock(&self.entries)[number].answer = answer.clone();
                answer
            }
        }
    }

    /// Hands the lookup to the resolver thread, which is started if there is none yet.
    fn send(&self, dynamic_origins: &Arc<DynamicOrigins>, number: usize) -> Result<(), String> {
        let mut asks = lock(&self.asks);
        if asks.is_none() {
            let (send, receive) = channel();
            let (dynamic_origins, family, entries) =
                (Arc::clone(dynamic_origins), self.family, Arc::clone(&self.entries));
            // The end of the run does not wait for this thread: a name server may take its time.
            let work = move || {
                while let Ok(number) = receive.recv() {
                    look_up(&dynamic_origins, family, &entries, number);
                }
            };
            let spawned = thread::Builder::new().name("resolver".to_owned()).spawn(work);
            spawned.map_err(|error| format!("no thread to resolve names with: {error}"))?;
            *asks = Some(send);
        }
        let sent = asks.as_ref().is_some_and(|asks| asks.send(number).is_ok());
        if sent { Ok(()) } else { Err("the thread that resolves names has ended".to_owned()) }
    }
}

/// Looks up the server of this number. This blocks.
fn look_up(dynamic_origins: &DynamicOrigins, family: Family, entries: &Mutex<Vec<Entry>>, number: usize) {
    let dynamic_origin = lock(entries)[number].dynamic_origin.clone();
    let found = dynamic_origins.target(&dynamic_origin).and_then(|target| {
        let target_addresses = target_addresses_of(&target, &target.address, 0, family)?;
        match target_addresses.is_empty() {
            true => Err(format!("`{}` has no address", dynamic_origin.authority())),
            false => {
                Ok(ResolvedServer { target: Arc::new(target), target_addresses: target_addresses.into() })
            }
        }
    });
    lock(entries)[number].answer = match found {
        Ok(found) => Answer::Found(Arc::new(found)),
        Err(reason) => Answer::Lost(reason.into()),
    };
}

/// Locks `mutex` even if it is poisoned: its content is consistent between any two statements, so a thread
/// that panicked leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use plimsoll_document::RawValue;
    use plimsoll_plan::{Disk, Plan, PlanPatch};

    use super::*;

    fn directory(family: Family) -> Directory {
        let patch = PlanPatch {
            urls: vec![RawValue::new("URL", "http://127.0.0.1/")],
            follow_redirects: Some(RawValue::new("--follow-redirects", "1")),
            resolve: vec![RawValue::new("--resolve", "*:81:192.0.2.7")],
            ..PlanPatch::default()
        };
        let plan = Plan::resolve(patch, &Disk).expect("a valid plan");
        Directory::new(plan.dynamic_origins, family, true)
    }

    fn dynamic_origin(authority: &str) -> DynamicOrigin {
        DynamicOrigin::read(false, authority.as_bytes()).expect("a server")
    }

    #[test]
    fn a_server_is_found_as_the_plan_leads_to_it() {
        let directory = directory(Family::Any);
        for (authority, address) in [("a.test:81", "192.0.2.7:81"), ("192.0.2.9", "192.0.2.9:80")] {
            let Answer::Found(found) = directory.ask(&dynamic_origin(authority), false) else {
                panic!("{authority} was not found")
            };
            assert_eq!(found.target_addresses[0].endpoint.to_string(), address);
            assert_eq!(found.target.authority, authority);
        }
    }

    #[test]
    fn another_thread_finds_it_meanwhile() {
        let Directory { dynamic_origins, family, .. } = directory(Family::Any);
        let directory = Directory::new(dynamic_origins, family, false);
        let dynamic_origin = dynamic_origin("192.0.2.9:82");
        assert!(matches!(directory.ask(&dynamic_origin, false), Answer::Pending));
        loop {
            match directory.ask(&dynamic_origin, false) {
                Answer::Pending => std::thread::yield_now(),
                Answer::Found(found) => {
                    break assert_eq!(found.target_addresses[0].endpoint.to_string(), "192.0.2.9:82");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn there_is_an_end_to_new_servers_but_not_to_known_ones() {
        let directory = directory(Family::Any);
        for number in 0..DynamicOrigins::MOST {
            let answer = directory.ask(&dynamic_origin(&format!("h{number}.test:81")), false);
            assert!(matches!(answer, Answer::Found(_)), "{answer:?}");
        }
        assert!(matches!(directory.ask(&dynamic_origin("one-more.test:81"), false), Answer::Full));
        assert!(matches!(directory.ask(&dynamic_origin("H0.test:81"), false), Answer::Found(_)));
    }

    #[test]
    fn a_server_without_an_address_is_lost_and_can_be_asked_for_again() {
        let directory = directory(Family::V4);
        let unknown = dynamic_origin("[::1]");
        for again in [false, false, true] {
            assert!(matches!(directory.ask(&unknown, again), Answer::Lost(_)));
        }
    }
}
