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
mod connections;
mod dialect;
mod options;
mod request;
mod truth;

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_driver::{Endpoint, KernelBackend};
use plimsoll_histogram::Histogram;
use plimsoll_targets::server::{LoopCounts, Protocol, Server};
use plimsoll_targets::truth_log::{FinishedSheet, Sheet};
use plimsoll_targets::{StartError, Stopper};

pub use connections::LlmCounts;
pub use options::{LlmOptions, StreamFaults};
pub use truth::{LlmTruthRow, StreamEnd};

use connections::Connections;

/// Bytes that all connections may have together of unfinished requests and of unread answers: sixteen of the
/// longest prompts.
const BUDGET_BYTES: u64 = 256 << 20;
/// A client that sends requests and leaves more than this many bytes of the replies unread is cut off, lest
/// it fill the memory. Completions wait for it long before.
const UNREAD_BYTES: usize = 4 << 20;
/// While this much of a connection is not sent, no further chunk follows. What the kernel keeps comes on top.
const AHEAD_BYTES: usize = 64 << 10;

/// State that the threads of a server share.
#[derive(Debug)]
struct Setup {
    options: LlmOptions,
    counter: AtomicU64,
    /// Sheets of the truth log that no thread has taken yet.
    sheets: Mutex<Vec<Sheet<LlmTruthRow>>>,
}

impl Setup {
    /// Counts a request and gives it its number.
    // Relaxed: numbers have to be unique and without gaps, nothing else is published by them.
    fn count(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes a sheet for a thread.
    fn sheet(&self) -> Sheet<LlmTruthRow> {
        self.sheets.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
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

impl AddAssign for Ended {
    fn add_assign(&mut self, other: Self) {
        self.counts += other.counts;
        self.lateness.merge(&other.lateness);
        self.sheet += other.sheet;
    }
}

impl Protocol for Setup {
    type Handler = Connections;
    type Report = Ended;

    fn handler(self: &Arc<Self>) -> Connections {
        Connections::new(Arc::clone(self))
    }

    fn report(handler: Connections, counts: LoopCounts) -> Ended {
        handler.finish(counts)
    }
}

/// A running server. It stops by [`stop`](Self::stop), by a [`Stopper`], at the end of its
/// [duration](LlmOptions::duration), or when this is dropped.
#[derive(Debug)]
pub struct LlmServer(Server<Setup>);

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
    pub fn start(options: LlmOptions, backend: KernelBackend) -> Result<Self, StartError> {
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(StartError::Options(problems));
        }
        let sheets = (0..options.threads).map(|thread| Sheet::open(&options.truth, thread, truth::HEADER));
        let sheets = sheets.collect::<Result<_, _>>()?;
        let server = options.server();
        let setup = Setup { options, counter: AtomicU64::new(0), sheets: Mutex::new(sheets) };
        Server::start(server, setup, backend).map(Self)
    }

    /// The endpoint that it listens on.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoints()[0]
    }

    /// Something that can stop it while another waits for it.
    pub fn stopper(&self) -> Stopper {
        self.0.stopper()
    }

    /// Stops it and says what it did. Answers under way are broken off.
    pub fn stop(self) -> LlmReport {
        self.stopper().stop();
        self.wait()
    }

    /// Waits until it stops and says what it did.
    pub fn wait(self) -> LlmReport {
        let Ended { counts, lateness, sheet } = self.0.wait();
        let (mut truth, joined) = sheet.join();
        truth.sort_by_key(|row| row.number);
        LlmReport { counts, lateness, truth, truth_failure: joined.err().map(|error| error.to_string()) }
    }
}
