//! Messages that are answered by rules.

use plimsoll_core::{Nanos, Random};

use super::budget::Budget;
use super::check::Check;
use super::place::{Exchange, Parsed, Place};
use super::take::Take;
use super::{CheckSpec, ExtractSpec, ResponseHandler, Source};
use crate::{Body, Context, LONGEST_WITH_VALUES, Received, Scope, Session, Template, TemplateError};

/// A rule by which messages on a WebSocket are answered as they come, whatever the iteration does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerSpec {
    /// The messages that it is for: those for which all of these hold.
    pub receive: Vec<CheckSpec>,
    /// Values that are taken out of the message, for the answer. Without one of them the rule is not for the
    /// message.
    pub extract: Vec<ExtractSpec>,
    /// The answer: [`Body::None`], a text or bytes.
    pub send: Body,
    /// `true` if the answer is not text.
    pub binary: bool,
}

/// A message that is sent on a WebSocket again and again, whatever the iteration does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatSpec {
    /// Time from the opening to the first one, and from each to the next.
    pub every: Nanos,
    /// The message: a text or bytes.
    pub send: Body,
    /// `true` if it is not text.
    pub binary: bool,
}

/// A heartbeat, compiled.
#[derive(Clone, Debug)]
pub(super) struct Heartbeat {
    every: Nanos,
    message: Answer,
}

impl Heartbeat {
    pub(super) fn compile(spec: &HeartbeatSpec, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        let HeartbeatSpec { every, send, binary } = spec;
        let message =
            AnswerSpec { receive: Vec::new(), extract: Vec::new(), send: send.clone(), binary: *binary };
        Ok(Self { every: *every, message: Answer::compile(&message, scope)? })
    }
}

/// A rule, compiled.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    receive: Box<[Check]>,
    takes: Box<[Take]>,
    send: Option<Template>,
    binary: bool,
}

/// What a [rule](AnswerSpec) makes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// Nothing is said to it.
    Silently,
    /// The message is answered by a text.
    Text,
    /// The message is answered by a binary message.
    Binary,
}

impl Answer {
    pub(super) fn compile(spec: &AnswerSpec, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        let place = |source: &Source| Place::compile(source, scope);
        let check = |check: &CheckSpec| Check::compile(check, place(&check.source)?, scope);
        let take = |take: &ExtractSpec| Take::compile(take, place(&take.source)?, scope);
        let send = match &spec.send {
            Body::None => None,
            Body::Text(text) => Some(Template::parse_in(text, scope)?),
            Body::Raw(bytes) => Some(Template::literal(bytes)),
            Body::Coded(_) | Body::Supplied { .. } => {
                return Err(TemplateError::new("an answer is a text, or bytes").at("send"));
            }
        };
        Ok(Self {
            receive: spec.receive.iter().map(check).collect::<Result<_, _>>()?,
            takes: spec.extract.iter().map(take).collect::<Result<_, _>>()?,
            send,
            binary: spec.binary,
        })
    }

    /// Returns `true` if the rule is for this message, whose values it takes then.
    fn takes_up(&self, received: &Received<'_>, session: &mut Session) -> bool {
        let Session { variables, known, cookies, sent, scratch, looked_at, .. } = session;
        let budget = Budget::default();
        let mut parsed = Parsed::new(&budget);
        let mut exchange = Exchange { received, sent, cookies, parsed: &mut parsed, stream: None };
        let mut checks = self.receive.iter();
        checks.all(|check| check.holds(&mut exchange, variables, looked_at, scratch)) && {
            let mut takes = self.takes.iter();
            takes.all(|take| take.apply(&mut exchange, variables, known, looked_at, scratch))
        }
    }

    /// Appends the answer, if it is not longer than a request may be.
    fn write(
        &self,
        variables: &[Vec<u8>],
        context: &Context<'_>,
        random: &mut Random,
        out: &mut Vec<u8>,
    ) -> Option<Answered> {
        let Some(send) = &self.send else { return Some(Answered::Silently) };
        let length = send.len_of_variables(&|index| variables.get(usize::from(index)).map_or(0, Vec::len));
        if length > LONGEST_WITH_VALUES {
            return None;
        }
        send.render(&Context { variables, ..*context }, random, out);
        Some(if self.binary { Answered::Binary } else { Answered::Text })
    }
}

impl ResponseHandler {
    /// Returns `true` if the WebSocket that the step opens sends messages by itself: by rules, or as
    /// heartbeats.
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty() || self.heartbeat.is_some()
    }

    /// Returns the time between two heartbeats on the WebSocket that the step opens, if there are any.
    pub fn heartbeat(&self) -> Option<Nanos> {
        self.heartbeat.as_ref().map(|heartbeat| heartbeat.every)
    }

    /// Appends a heartbeat to `out`. `context` has all but the variables. `None`: there is none, or it would
    /// be too long.
    pub fn beat(
        &self,
        session: &Session,
        context: &Context<'_>,
        random: &mut Random,
        out: &mut Vec<u8>,
    ) -> Option<Answered> {
        self.heartbeat.as_ref()?.message.write(&session.variables, context, random, out)
    }

    /// Deals with a message by the first rule that is for it, and appends the answer to `out`. `context` has
    /// all but the variables. `None`: no rule is for it.
    pub fn answer(
        &self,
        received: &Received<'_>,
        session: &mut Session,
        context: &Context<'_>,
        random: &mut Random,
        out: &mut Vec<u8>,
    ) -> Option<Answered> {
        let rule = self.answers.iter().find(|rule| rule.takes_up(received, session))?;
        rule.write(&session.variables, context, random, out)
    }
}
