//! Options of an ingest server.

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_wire::http1::LONGEST_KEPT_BODY;

use crate::lies::Lies;
use crate::server::ServerOptions;
use crate::sink::Delay;

/// Payloads of the longest kind for which there is memory before they are whole.
const LEAST_PAYLOADS: u64 = 2;
/// Events of one pass: bounds how long a stop, and the replies of the pass, have to wait.
const PASS_EVENTS: u32 = 64;
/// A client that leaves more than this many bytes unread is cut off, lest it fill the memory. It is above the
/// largest result of a query.
const UNREAD_BYTES: usize = 128 << 20;

/// Options of an ingest server.
#[derive(Clone, Debug)]
pub struct IngestOptions {
    /// The endpoint to listen on.
    pub listen: Endpoint,
    /// Threads, which share the port.
    pub threads: u32,
    /// Tokens from the start, with their permissions; without any, no request needs one.
    pub tokens: Vec<Token>,
    /// Rows are seen this long after the first of their buffer came,
    pub flush_delay: Nanos,
    /// or as soon as the buffer of their measurement has this many.
    pub flush_rows: u64,
    /// Rows of a measurement whose values are kept; of the others the number is known.
    pub keep: u64,
    /// Bytes that all values may take; beyond them the oldest go.
    pub max_memory: u64,
    /// The most bytes of a payload, as it came and decompressed.
    pub max_payload: u64,
    /// Writes are refused as by a full disk after this many bytes of payload.
    pub full_after: Option<u64>,
    /// Law of the time that a write takes.
    pub delay: Delay,
    /// Shares of the writes that are refused with a status and not stored.
    pub fails: Vec<(u16, f64)>,
    /// Share of the writes whose connection is reset, and which are not stored.
    pub reset: f64,
    /// Faults in the handling of acknowledged writes.
    pub lie: Option<Lie>,
    /// Seed of every choice.
    pub seed: u64,
    /// Stop after this time.
    pub duration: Option<Nanos>,
}

/// A token, and its permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Text of the token, as it is sent.
    pub token: String,
    /// Permissions of its bearer.
    pub permissions: Permissions,
}

/// The permissions of a token's bearer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Query.
    pub read: bool,
    /// Write.
    pub write: bool,
    /// Delete. Nothing here can be deleted; the real server has it.
    pub delete: bool,
    /// Flush, make tokens and databases, and everything else.
    pub admin: bool,
}

impl Permissions {
    /// Everything.
    pub const ALL: Self = Self { read: true, write: true, delete: true, admin: true };
}

/// Some writes are treated wrongly, and acknowledged all the same.
pub type Lie = Lies<LieKind>;

/// The way in which a write is treated wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LieKind {
    /// The write is acknowledged and thrown away.
    Lose,
    /// The write is acknowledged once and stored twice.
    Duplicate,
    /// The write is acknowledged and never flushed, so that no query sees it.
    Late,
    /// The write is stored, and the connection reset instead of acknowledging it.
    Unacknowledged,
}

impl IngestOptions {
    /// The server that tests of generators want: one thread, no tokens, the real server's times, no faults.
    pub const fn new(listen: Endpoint) -> Self {
        Self {
            listen,
            threads: 1,
            tokens: Vec::new(),
            flush_delay: Nanos::from_secs(5),
            flush_rows: 50_000,
            keep: 1_000_000,
            max_memory: 1 << 30,
            max_payload: LONGEST_KEPT_BODY as u64,
            full_after: None,
            delay: Delay::None,
            fails: Vec::new(),
            reset: 0.0,
            lie: None,
            seed: 0,
            duration: None,
        }
    }

    /// Place, threads and bounds of the server.
    pub(crate) fn server(&self) -> ServerOptions {
        ServerOptions {
            threads: self.threads,
            duration: self.duration,
            unread_bytes: UNREAD_BYTES,
            memory: self.max_memory.max(LEAST_PAYLOADS * self.max_payload),
            pass_events: PASS_EVENTS,
            ..ServerOptions::new("ingest", vec![self.listen.clone()])
        }
    }

    /// Everything that is wrong with these options, each as a sentence; empty if they are sound.
    pub fn problems(&self) -> Vec<String> {
        let mut found = self.server().problems();
        let mut require = |sound: bool, problem: &str| {
            if !sound {
                found.push(problem.to_owned());
            }
        };
        let is_sound = |token: &Token| {
            !token.token.is_empty() && token.token.bytes().all(|byte| byte.is_ascii_graphic())
        };
        require(
            self.tokens.iter().all(is_sound),
            "a token is of visible ASCII characters, so that it can stand in a header field",
        );
        require(self.flush_rows > 0, "a buffer is flushed at 1 row at the soonest");
        require(self.max_payload > 0, "a payload has at least one byte");
        require(
            self.max_payload <= LONGEST_KEPT_BODY as u64,
            "a payload may have 16 MiB at most: what is on its way is kept in memory",
        );
        let share = |share: f64| (0.0..=1.0).contains(&share);
        let faults = self.reset + self.fails.iter().map(|(_, share)| share).sum::<f64>();
        require(
            share(self.reset) && self.fails.iter().all(|(_, of)| share(*of)) && faults <= 1.0 + 1e-9,
            "the shares of failures are between 0 and 1, and their sum is no more than 1",
        );
        require(self.lie.is_none_or(|lie| share(lie.share)), "the share of lies is between 0 and 1");
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_told_at_once() {
        let plain = IngestOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()));
        assert_eq!(plain.problems(), Vec::<String>::new());
        let bad = IngestOptions {
            threads: 2,
            listen: Endpoint::Unix("s".into()),
            tokens: vec![Token { token: "a b".into(), permissions: Permissions::ALL }],
            flush_rows: 0,
            max_payload: 17 << 20,
            fails: vec![(503, 0.6)],
            reset: 0.6,
            lie: Some(Lie { kind: LieKind::Lose, share: 1.5 }),
            ..plain.clone()
        };
        assert_eq!(bad.problems().len(), 6, "{:#?}", bad.problems());
        let bad = IngestOptions { threads: 0, max_payload: 0, ..plain };
        assert_eq!(bad.problems().len(), 2, "{:#?}", bad.problems());
    }
}
