//! Options of a cache server.

use std::iter;

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_targets::Lies;
use plimsoll_targets::server::ServerOptions;

use crate::wire::LONGEST_FRAME;

/// Least memory for incomplete requests: two of the longest.
const LEAST_MEMORY: u64 = 2 * (LONGEST_FRAME as u64 + 4);
/// Events of one pass: bounds how long a stop has to wait.
const PASS_EVENTS: u32 = 1024;
/// The least bound of a cache: the minimum of the real server.
pub(crate) const SMALLEST_CACHE: u64 = 1 << 20;

/// Options of a cache server.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Endpoint of the binary protocol.
    pub listen: Endpoint,
    /// Endpoint of the HTTP API; `None`: without it.
    pub http: Option<Endpoint>,
    /// Threads; each serves both ports.
    pub threads: u32,
    /// Caches that exist from the start.
    pub caches: Vec<String>,
    /// Bytes of keys and values that a cache holds, each with some for its own upkeep, unless its creator
    /// says otherwise.
    pub max_bytes: u64,
    /// Time to live of a value.
    pub time_to_live: Nanos,
    /// Answer a GET of a missing key with NOT_FOUND, and not with the error text of the real server.
    pub not_found: bool,
    /// Wrong answers on the binary port. HTTP always answers correctly.
    pub lie: Option<Lie>,
    /// Seed of the choice of wrong answers.
    pub seed: u64,
    /// User who may use the HTTP port,
    pub user: String,
    /// and the password for it.
    pub password: String,
    /// Stop after this time.
    pub duration: Option<Nanos>,
    /// Time for which replies are held back, on both ports.
    pub delay: Nanos,
}

/// Some GETs are answered wrongly.
pub type Lie = Lies<LieKind>;

/// The way in which a GET is answered wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LieKind {
    /// With a value that was never put.
    Wrong,
    /// With the state before the last PUT: the earlier value, or a miss.
    Stale,
    /// With the reply to the next GET that was read with it on its connection, which gets this one's. Where
    /// none follows, with the reply to the GET before it on the same thread.
    Swapped,
}

impl CacheOptions {
    /// The server that tests of clients want: one thread, a cache `perf_test`, no lies; HTTP nowhere.
    pub fn new(listen: Endpoint) -> Self {
        Self {
            listen,
            http: None,
            threads: 1,
            caches: vec!["perf_test".to_owned()],
            max_bytes: 512 << 20,
            time_to_live: Nanos::from_secs(30 * 60),
            not_found: false,
            lie: None,
            seed: 0,
            user: "admin".to_owned(),
            password: "admin123".to_owned(),
            duration: None,
            delay: Nanos::ZERO,
        }
    }

    /// Place, threads and bounds of the server. It listens for the binary protocol, then for the HTTP API.
    pub(crate) fn server(&self) -> ServerOptions {
        ServerOptions {
            threads: self.threads,
            duration: self.duration,
            delay: self.delay,
            memory: self.max_bytes.max(LEAST_MEMORY),
            pass_events: PASS_EVENTS,
            ..ServerOptions::new("cache", iter::once(&self.listen).chain(&self.http).cloned().collect())
        }
    }

    /// Everything that is wrong with these options, each as a sentence; empty if they are sound.
    pub fn problems(&self) -> Vec<String> {
        let mut found = self.server().problems();
        let mut require = |sound: bool, problem: String| {
            if !sound {
                found.push(problem);
            }
        };
        for name in &self.caches {
            require(
                is_name(name),
                format!("`{name}` is not a name of a cache: use letters, digits, - and _"),
            );
        }
        require(self.max_bytes >= SMALLEST_CACHE, "a cache holds at least 1 MiB".to_owned());
        require(self.time_to_live > Nanos::ZERO, "a value that lives no time cannot be found".to_owned());
        require(
            self.lie.is_none_or(|lie| (0.0..=1.0).contains(&lie.share)),
            "the share of lies is between 0 and 1".to_owned(),
        );
        require(!self.user.contains(':'), "a user's name has no colon: Basic ends it there".to_owned());
        found
    }
}

/// Returns `true` if a cache may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || matches!(char, '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_told_at_once() {
        let plain = CacheOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()));
        assert_eq!(plain.problems(), Vec::<String>::new());
        let bad = CacheOptions {
            threads: 2,
            http: Some(Endpoint::Unix("s".into())),
            caches: vec!["good".into(), "a b".into(), String::new()],
            max_bytes: 1000,
            time_to_live: Nanos::ZERO,
            lie: Some(Lie { kind: LieKind::Wrong, share: 1.5 }),
            user: "a:b".into(),
            ..plain
        };
        assert_eq!(bad.problems().len(), 7, "{:#?}", bad.problems());
    }
}
