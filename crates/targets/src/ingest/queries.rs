//! Queries, beside the threads that serve: a few run at once, some wait, and more are refused.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use plimsoll_core::Nanos;
use plimsoll_system::clock;

use super::api::tell;
use super::query;
use super::setup::Setup;
use crate::http_reply::HttpReply;

/// Queries that run at once.
pub(crate) const MOST_RUNNING: usize = 4;
/// Queries that wait until one of those has ended.
pub(crate) const MOST_WAITING: usize = 64;
/// A query is ended after this time.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// A query as it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) sql: String,
    /// The database of measurements that are named without one.
    pub(crate) database: String,
    /// When it came, by the driver's clock,
    pub(crate) at: Nanos,
    /// and as the reply says it.
    pub(crate) timestamp: String,
}

/// The queries of a server that run or wait. A thread lives as long as there is work for it, and the end of
/// the server does not wait for one.
#[derive(Debug, Default)]
pub(crate) struct Queries {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    running: usize,
    waiting: VecDeque<Job>,
}

/// A question, and where the reply goes.
#[derive(Debug)]
struct Job {
    question: Question,
    reply: SyncSender<HttpReply>,
    given_up: Arc<AtomicBool>,
}

/// A query that was taken. Dropped, it ends at its next opportunity.
#[derive(Debug)]
pub(crate) struct Pending {
    reply: Receiver<HttpReply>,
    given_up: Arc<AtomicBool>,
}

impl Pending {
    /// The reply, once it is there.
    pub(crate) fn reply(&self) -> Option<HttpReply> {
        match self.reply.try_recv() {
            Ok(reply) => Some(reply),
            Err(TryRecvError::Empty) => None,
            // The thread of the query has panicked.
            Err(TryRecvError::Disconnected) => Some(HttpReply::text(500, "the query has failed")),
        }
    }
}

impl Drop for Pending {
    // Relaxed: nothing else is published by it.
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

impl Queries {
    /// Takes a query; `None`: the limits of running and waiting ones are reached, or no thread could be
    /// started.
    pub(crate) fn ask(setup: &Arc<Setup>, question: Question) -> Option<Pending> {
        let (reply, is_answered) = sync_channel(1);
        let given_up = Arc::new(AtomicBool::new(false));
        let pending = Pending { reply: is_answered, given_up: Arc::clone(&given_up) };
        let job = Job { question, reply, given_up };
        let mut inner = setup.queries.inner();
        if inner.running < MOST_RUNNING {
            let setup = Arc::clone(setup);
            Builder::new().name("query".to_owned()).spawn(move || work(&setup, job)).ok()?;
            inner.running += 1;
        } else if inner.waiting.len() < MOST_WAITING {
            inner.waiting.push_back(job);
        } else {
            return None;
        }
        Some(pending)
    }

    /// The next query that a client waits for. Without one, this thread does not run any more.
    fn next(&self) -> Option<Job> {
        let mut inner = self.inner();
        while let Some(job) = inner.waiting.pop_front() {
            if !job.given_up.load(Ordering::Relaxed) {
                return Some(job);
            }
        }
        inner.running -= 1;
        None
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread: runs a query, and those that wait.
fn work(setup: &Setup, first: Job) {
    /// Frees the place of a thread that panics.
    struct Place<'a>(&'a Queries, bool);
    impl Drop for Place<'_> {
        fn drop(&mut self) {
            if self.1 {
                self.0.inner().running -= 1;
            }
        }
    }
    let mut place = Place(&setup.queries, true);
    let mut next = Some(first);
    while let Some(Job { question, reply, given_up }) = next {
        let began = clock::monotonic();
        let stopper = setup.stopper.clone();
        let goes_on = move || {
            !stopper.is_stopped()
                && !given_up.load(Ordering::Relaxed)
                && clock::monotonic().since(began) < PATIENCE
        };
        let found = query::run(&setup.store, &question.sql, &question.database, question.at, goes_on);
        let millis = clock::monotonic().since(began).0 / 1_000_000;
        // The receiver may be gone.
        let _ = reply.send(tell(found, millis, &question.timestamp));
        next = setup.queries.next();
    }
    place.1 = false;
}
