//! Answers whose status does not say everything: their meaning, and whether they are still pending.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use plimsoll_core::{ErrorClass, Nanos};

use super::CheckSpec;
use crate::{Received, Session};

/// Judges responses of a protocol on top of HTTP. It is called within the worker's loop, by all workers.
pub trait Judge: Any + fmt::Debug + Send + Sync {
    /// Judges a response whose status is accepted. Its id is that of the session's
    /// [follow-up](crate::FollowUp).
    fn judge(&self, received: &Received<'_>) -> Judgement;

    /// Reports whether the judge looks at the id at all.
    fn needs_id(&self) -> bool;

    /// Names of the fields of the head and of the trailers that the judge reads, in lower case.
    fn fields(&self) -> &[&'static str] {
        &[]
    }

    /// Reports whether the judge reads the body.
    fn needs_body(&self) -> bool {
        true
    }

    /// Writes the content of a good response as JSON, for checks and values that are taken. Returns `false`
    /// where they read the body itself.
    fn write_json(&self, _body: &[u8], _out: &mut Vec<u8>) -> bool {
        false
    }

    /// The content of a whole body as text for people, where its bytes are none; `None` if they are, or the
    /// body is not what the protocol wants.
    fn show(&self, _body: &[u8], _of_request: bool) -> Option<String> {
        None
    }

    /// The reason why such a response was not good.
    fn describe(&self, received: &Received<'_>) -> String;
}

/// Meaning of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The response is the answer.
    Good,
    /// The answer is still to come.
    Pending,
    /// The response is a bad answer, or none.
    Failed(ErrorClass),
}

/// Judge of the responses of a step.
#[derive(Clone)]
pub struct JudgeSpec {
    /// Identity of the judge: the same text, the same judgement.
    pub of: Arc<str>,
    /// The judge itself.
    pub judge: Arc<dyn Judge>,
    /// A variable that has the id (hexadecimal) while the answer is still to come, and is not set otherwise:
    /// without it the request is repeated.
    pub pending: Option<u16>,
}

impl PartialEq for JudgeSpec {
    fn eq(&self, other: &Self) -> bool {
        (&self.of, self.pending) == (&other.of, other.pending)
    }
}

impl Eq for JudgeSpec {}

impl fmt::Debug for JudgeSpec {
    /// This text identifies the plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JudgeSpec").field("of", &self.of).field("pending", &self.pending).finish()
    }
}

impl JudgeSpec {
    /// Returns `true` if something of the session is read or set.
    pub(super) fn needs_session(&self) -> bool {
        self.pending.is_some() || self.judge.needs_id()
    }

    /// Returns `true` if the request has to be repeated, or an error if its response is not good. A
    /// [`pending`](Self::pending) variable is set instead of a repetition.
    pub(super) fn ask(&self, received: &Received<'_>, session: &mut Session) -> Result<bool, ErrorClass> {
        let judgement = self.judge.judge(received);
        let is_pending = match judgement {
            Judgement::Good => false,
            Judgement::Pending => true,
            Judgement::Failed(class) => return Err(class),
        };
        let Some(variable) = self.pending.map(usize::from) else { return Ok(is_pending) };
        session.known[variable] = is_pending;
        let value = &mut session.variables[variable];
        value.clear();
        if let (Some(id), true) = (received.id, is_pending) {
            let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default() as u8;
            value.extend(id.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
        }
        Ok(false)
    }
}

/// Repetition of a request until its answer has come. All of that is one request with one response time, from
/// when it should have started to the answer, and one time limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollSpec {
    /// Checks that a response with an accepted status has to pass to be the answer.
    pub until: Vec<CheckSpec>,
    /// The first pause.
    pub every: Nanos,
    /// Share of the time since the request was sent by which pauses grow, in thousandths: 500 makes each half
    /// as long again as the one before, if responses take no time.
    pub growth: u32,
    /// The longest pause.
    pub at_most: Nanos,
}

impl PollSpec {
    /// The pause before a request is repeated that was sent this long ago.
    pub fn pause(&self, waited: Nanos) -> Nanos {
        let grown = Nanos((u128::from(waited.0) * u128::from(self.growth) / 1_000) as u64);
        (self.every + grown).min(self.at_most.max(self.every))
    }
}

/// Meaning of an accepted response for its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request has its answer.
    Settled,
    /// The answer to the request is still to come: see [`PollSpec`].
    Pending,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_the_time_that_was_waited() {
        let millis = Nanos::from_millis;
        let poll = PollSpec { every: millis(100), growth: 500, at_most: millis(300), ..PollSpec::default() };
        let mut waited = Nanos::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..4 {
            let pause = poll.pause(waited);
            pauses.push(pause);
            waited += pause;
        }
        assert_eq!(pauses, [millis(100), millis(150), millis(225), millis(300)]);
        let steady = PollSpec { growth: 0, at_most: Nanos::ZERO, ..poll };
        assert_eq!(steady.pause(waited), millis(100));
    }
}
