//! Options of a server of completions.

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_targets::server::ServerOptions;
use plimsoll_targets::{Delay, Truth};
use plimsoll_wire::tls::ServerConfig;

use super::api::MOST_ANSWER_TOKENS;
use super::{AHEAD_BYTES, BUDGET_BYTES, UNREAD_BYTES};

/// Options of a server of completions.
#[derive(Clone, Debug)]
pub struct LlmOptions {
    /// The endpoint to listen on.
    pub listen: Endpoint,
    /// Threads, which share the port.
    pub threads: u32,
    /// The name of the model, which requests have to ask for.
    pub model: String,
    /// From when a request has its slot until its first content is due.
    pub ttft: Delay,
    /// From one chunk with content to the next.
    pub gap: Delay,
    /// Tokens of an answer, unless its request names another number.
    pub tokens: u64,
    /// Tokens at the front of an answer that are reasoning, in streams of the APIs that have it; one token at
    /// least is not.
    pub reasoning: u64,
    /// Tokens in each chunk.
    pub tokens_per_chunk: u64,
    /// Chunks that come together; the gaps of all but the last are passed over and waited for at once.
    pub burst: u64,
    /// `true` if a chunk that says the role alone comes as soon as a request has its slot.
    pub role_chunk: bool,
    /// Requests that are answered at a time; the others wait.
    pub slots: Option<u64>,
    /// Requests that may wait for a slot; the others are answered 429.
    pub queue: Option<u64>,
    /// Answers that go wrong on purpose.
    pub faults: StreamFaults,
    /// Seed of every random choice.
    pub seed: u64,
    /// Stop after this time.
    pub duration: Option<Nanos>,
    /// TLS, on all connections. ALPN chooses HTTP/2 or HTTP/1.1; without it the first bytes do.
    pub tls: Option<ServerConfig>,
    /// The destination of the truth log.
    pub truth: Truth,
}

/// Shares of answers that go wrong on purpose, in their middle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamFaults {
    /// An event that says so, and the end of the stream.
    pub error: f64,
    /// The connection is closed; on HTTP/2 the stream is reset.
    pub cut: f64,
    /// Nothing more comes, for ever.
    pub stall: f64,
}

impl LlmOptions {
    /// A server that answers at once: one thread, 16 tokens, one in each chunk, no faults, no log.
    pub fn new(listen: Endpoint) -> Self {
        Self {
            listen,
            threads: 1,
            model: "plimsoll".to_owned(),
            ttft: Delay::None,
            gap: Delay::None,
            tokens: 16,
            reasoning: 0,
            tokens_per_chunk: 1,
            burst: 1,
            role_chunk: true,
            slots: None,
            queue: None,
            faults: StreamFaults::default(),
            seed: 0,
            duration: None,
            tls: None,
            truth: Truth::Off,
        }
    }

    /// The options that are those of every server.
    pub(super) fn server(&self) -> ServerOptions {
        ServerOptions {
            threads: self.threads,
            duration: self.duration,
            unread_bytes: UNREAD_BYTES,
            high_water: Some(AHEAD_BYTES),
            memory: BUDGET_BYTES,
            tls: self.tls.clone(),
            ..ServerOptions::new("llm", vec![self.listen.clone()])
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
        require(!self.model.is_empty(), "a model needs a name");
        require((1..=MOST_ANSWER_TOKENS).contains(&self.tokens), "an answer has from 1 to 1,000,000 tokens");
        require((1..=10_000).contains(&self.tokens_per_chunk), "a chunk has from 1 to 10,000 tokens");
        require((1..=10_000).contains(&self.burst), "a burst has from 1 to 10,000 chunks");
        require(self.slots != Some(0), "without a slot nothing is answered");
        require(self.slots.is_none() || self.threads == 1, "slots are counted by one thread: use one thread");
        require(self.queue.is_none() || self.slots.is_some(), "a queue needs slots");
        let StreamFaults { error, cut, stall } = self.faults;
        let shares = [error, cut, stall];
        require(
            shares.iter().all(|share| (0.0..=1.0).contains(share)) && shares.iter().sum::<f64>() <= 1.0,
            "shares of faults lie between 0 and 1, together as well",
        );
        self.ttft.problems(&mut require);
        self.gap.problems(&mut require);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_told_at_once() {
        let plain = LlmOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()));
        assert_eq!(plain.problems(), Vec::<String>::new());
        let bad = LlmOptions {
            listen: Endpoint::Unix("s".into()),
            threads: 2,
            model: String::new(),
            tokens: 0,
            tokens_per_chunk: 0,
            burst: 0,
            slots: Some(0),
            faults: StreamFaults { error: 0.6, cut: 0.6, stall: 0.0 },
            ..plain.clone()
        };
        assert_eq!(bad.problems().len(), 8, "{:#?}", bad.problems());
        assert_eq!(LlmOptions { queue: Some(1), ..plain }.problems().len(), 1);
    }
}
