//! A server with the APIs of OpenAI, Anthropic and Ollama, as servers of language models have them: answers
//! come when a law says.
//!
//! ```text
//!   POST /v1/chat/completions ──► slot or queue ──► TTFT ──► chunk ── gap ── chunk ── … ──► finish, [DONE]
//!   POST /v1/completions                                     └► truth log: when each was handed over
//!   POST /v1/responses, /v1/messages, /api/chat, /api/generate
//!   GET  /v1/models, /api/tags
//! ```
//!
//! There is no model behind it: the text is made of numbered words, each of which counts as a token, and a
//! prompt has a token for every four of its bytes.

mod api;
mod chunk;
mod dialect;
mod options;
mod request;
mod truth;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::Nanos;
use plimsoll_driver::{Endpoint, KernelBackend, Open, OpenEpoll, OpenUring};
use plimsoll_histogram::Histogram;

pub use options::{LlmOptions, StreamFaults};
pub use truth::{LlmTruthRow, StreamEnd};
pub use worker::LlmCounts;

use crate::budget::Budget;
use crate::server_threads::{Ready, ServerThreads, Stopper, ThreadTask};
use crate::sink::truth::{FinishedSheet, join};
use crate::sink::{Listening, SinkError, listen_with_sheet};
use worker::Worker;

/// Bytes that all connections may have together of unfinished requests and of unread answers: sixteen of the
/// longest prompts.
const BUDGET_BYTES: u64 = 256 << 20;

/// State that the threads of a server share.
#[derive(Debug)]
struct Setup {
    options: LlmOptions,
    counter: AtomicU64,
    stopper: Stopper,
    budget: Budget,
}

impl Setup {
    /// Counts a request and gives it its number.
    // Relaxed: numbers have to be unique and without gaps, nothing else is published by them.
    fn count(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }
}

/// The result of a thread, returned at its end.
#[derive(Debug, Default)]
struct Ended {
    counts: LlmCounts,
    /// From when chunks were due until they were handed to the kernel.
    lateness: Histogram,
    sheet: FinishedSheet<LlmTruthRow>,
}

/// A running server. It stops by [`stop`](Self::stop), by a [`Stopper`], at the end of its
/// [duration](LlmOptions::duration), or when this is dropped.
#[derive(Debug)]
pub struct LlmServer {
    setup: Arc<Setup>,
    endpoint: Endpoint,
    threads: ServerThreads<Ended>,
}

/// The report of a server.
#[derive(Debug, Default)]
pub struct LlmReport {
    /// Sums over all threads.
    pub counts: LlmCounts,
    /// From when each chunk with content was due until it was handed to the kernel, in nanoseconds: the error
    /// of the server against its own laws.
    pub lateness: Histogram,
    /// The log in the order of the requests' numbers, if it was kept in memory.
    pub truth: Vec<LlmTruthRow>,
    /// Reason why the log's file is not complete.
    pub truth_failure: Option<String>,
}

impl LlmServer {
    /// Starts the threads, each with a backend of its own, and returns once all of them listen.
    ///
    /// # Errors
    /// Options that make no sense (all of them are named), an address that cannot be listened on, a log that
    /// cannot be written, no backend.
    pub fn start(options: LlmOptions, backend: KernelBackend) -> Result<Self, SinkError> {
        match backend {
            KernelBackend::Epoll(backend) => Self::start_on(options, OpenEpoll(backend)),
            KernelBackend::Uring(backend) => Self::start_on(options, OpenUring(backend)),
        }
    }

    fn start_on<O: Open + 'static>(options: LlmOptions, open: O) -> Result<Self, SinkError> {
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(SinkError::Options(problems));
        }
        let setup = Arc::new(Setup {
            options,
            counter: AtomicU64::new(0),
            stopper: Stopper::default(),
            budget: Budget::new(BUDGET_BYTES),
        });
        let duty = Arc::new(LlmDuty { setup: Arc::clone(&setup), open });
        let ready = Ready::gather("llm", setup.options.threads, setup.options.listen.clone(), &duty)?;
        let endpoint = ready.place().clone();
        Ok(Self { setup, endpoint, threads: ready.begin() })
    }

    /// The endpoint that it listens on.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Something that can stop it while another waits for it.
    pub fn stopper(&self) -> Stopper {
        self.setup.stopper.clone()
    }

    /// Stops it and says what it did. Answers under way are broken off.
    pub fn stop(self) -> LlmReport {
        self.setup.stopper.stop();
        self.wait()
    }

    /// Waits until it stops and says what it did.
    pub fn wait(mut self) -> LlmReport {
        let mut report = LlmReport::default();
        let mut parts: Vec<(PathBuf, std::io::Result<()>)> = Vec::new();
        for Ended { counts, lateness, sheet } in self.threads.wait() {
            report.counts += counts;
            report.lateness.merge(&lateness);
            report.truth.extend(sheet.rows);
            parts.extend(sheet.file);
        }
        report.truth.sort_by_key(|row| row.number);
        report.truth_failure = join(parts).err().map(|error| error.to_string());
        report
    }
}

impl Drop for LlmServer {
    fn drop(&mut self) {
        self.setup.stopper.stop();
    }
}

/// The task of a thread of the server.
struct LlmDuty<O> {
    setup: Arc<Setup>,
    open: O,
}

impl<O: Open + 'static> ThreadTask for LlmDuty<O> {
    type Place = Endpoint;
    type Ready = Listening<LlmTruthRow, O::Backend>;
    type Error = SinkError;
    type Ended = Ended;

    fn listen(&self, index: u32, place: &Endpoint) -> Result<(Self::Ready, Endpoint), SinkError> {
        let options = &self.setup.options;
        listen_with_sheet(&self.open, (&options.truth, truth::HEADER), (index, options.threads), place)
    }

    fn serve(&self, (sheet, backend, listener): Self::Ready, start: Nanos, _index: u32) -> Ended {
        Worker::new(Arc::clone(&self.setup), backend, listener, sheet, start).run()
    }
}
