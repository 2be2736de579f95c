//! Tokens that are signed again before they expire.
//!
//! A worker looks at its tokens when everything that is due has been sent, and long before one expires.
//! Signing takes some microseconds, which is less than a wait is late; with RSA it takes a millisecond, and
//! is done by a thread that lives as long as that. Where time is virtual the worker signs in any case.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use plimsoll_core::{Nanos, Random, Shard};
use plimsoll_driver::Backend;
use plimsoll_plan::Plan;
use plimsoll_scenario::token::{Signed, Tokens};

use super::{SIMULATED, Worker};

/// Interval at which a worker checks whether a thread has signed the token that it waits for.
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);
/// Stream of the random numbers of tokens, beside those of workers, which count from 1.
const STREAM: u64 = 1 << 40;

/// The tokens of a worker, with the state of their signing.
pub(super) struct TokenCache {
    pub(super) all: Tokens,
    /// When to look at them next, on the driver's clock; never, without tokens.
    pub(super) due: Nanos,
    /// Random numbers of no other use, so that requests are the same whenever tokens are signed.
    random: Random,
    /// Tokens that a thread is signing: their place among all tokens, and the channel of the signed one.
    pending: Vec<(usize, Receiver<Signed>)>,
}

impl TokenCache {
    /// Signs the tokens of a plan for one worker, at a time in nanoseconds since 1970. They are due at once,
    /// so that the worker computes when the next one is.
    pub(super) fn new(plan: &Plan, worker: Shard, unix_ns: u64) -> Self {
        let mut random = Random::new(plan.seed, STREAM + u64::from(worker.index));
        let all = Tokens::new(&plan.tokens, unix_ns, &mut random);
        let due = if plan.tokens.is_empty() { Nanos::MAX } else { Nanos::ZERO };
        Self { all, due, random, pending: Vec::new() }
    }

    /// Takes the tokens that threads have signed.
    fn collect(&mut self) {
        let all = &mut self.all;
        self.pending.retain(|(number, signed)| match signed.try_recv() {
            Ok(signed) => {
                all.replace(*number, signed);
                false
            }
            Err(TryRecvError::Empty) => true,
            // The thread has ended without a token: the worker signs it.
            Err(TryRecvError::Disconnected) => {
                all.defer(*number, 0);
                false
            }
        });
    }
}

impl<B: Backend> Worker<'_, B> {
    /// Signs tokens that have come due again, or lets them be signed.
    #[cold]
    pub(super) fn renew_tokens(&mut self, now: Nanos) {
        let unix_ns = self.clock.unix(now).0;
        let TokenCache { all, random, pending, .. } = &mut self.content.tokens;
        while let Some((number, signer)) = all.due(unix_ns) {
            let signer = Arc::clone(signer);
            let draft = signer.draft(unix_ns, random);
            let dynamic_origins = signer.is_slow() && self.io.name() != SIMULATED;
            if !dynamic_origins {
                all.replace(number, signer.sign(draft));
                continue;
            }
            let (send, signed) = channel();
            // The receiver may be gone by the time the token is signed.
            let sign = move || drop(send.send(signer.sign(draft)));
            match thread::Builder::new().name("tokens".to_owned()).spawn(sign) {
                Ok(_) => {
                    all.defer(number, u64::MAX);
                    pending.push((number, signed));
                }
                Err(_) => {
                    // The draft was lost with the thread.
                    let signer = Arc::clone(&self.plan.tokens[number]);
                    all.replace(number, signer.sign(signer.draft(unix_ns, random)));
                }
            }
        }
        self.content.tokens.collect();
        let due = self.clock.at_unix(self.content.tokens.all.due_ns());
        self.content.tokens.due = match self.content.tokens.pending.is_empty() {
            true => due,
            false => due.min(now + LOOK_AGAIN),
        };
    }
}
