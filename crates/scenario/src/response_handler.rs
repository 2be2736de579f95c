//! Handling of a step's response: its checks, and the values taken from it.

mod answer;
mod awaiting;
mod budget;
mod check;
mod collect;
mod describe;
mod events;
mod json_path;
mod judge;
mod place;
#[cfg(test)]
mod searches;
mod stamp;
mod take;
#[cfg(test)]
mod tests;
mod xpath;

use std::fmt;
use std::sync::Arc;

use plimsoll_core::{ErrorClass, Random};

use self::answer::{Answer, Heartbeat};
pub use self::answer::{AnswerSpec, Answered, HeartbeatSpec};
use self::budget::Budget;
use self::check::Check;
use self::collect::Collect;
pub use self::events::EventPick;
pub use self::judge::{Judge, JudgeSpec, Judgement, PollSpec, Verdict};
use self::place::{Exchange, Parsed, Place};
use self::take::Take;
use crate::{Conversion, EventStream, Feeds, FieldNeeds, Needs, Received, Scope, Session, TemplateError};

/// A status, or statuses, that a step accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRange {
    /// The first.
    pub first: u16,
    /// The last, included.
    pub last: u16,
}

/// Comparison of a text with an expected one. Expected texts, except for the regular expression, are
/// templates that may name variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matching {
    /// The text is there at all.
    Exists,
    /// The whole text.
    Equals(String),
    /// The start of the text.
    Starts(String),
    /// The end of the text.
    Ends(String),
    /// Anywhere in it.
    Contains(String),
    /// A regular expression (of the `regex` crate), anywhere in it.
    Regex(String),
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The status code.
    Status,
    /// A field of the response. A check holds if it holds for one of several of this name; the first is
    /// taken.
    Header(String),
    /// A field of the request, or its `:path`, `:method`, `:authority`.
    RequestHeader(String),
    /// The whole URL of the request.
    RequestUrl,
    /// A cookie that the response sets, or that the session has.
    Cookie(String),
    /// The whole body of the response.
    Body,
    /// A JSON Pointer (RFC 6901) into the body of the response. The target is a string without quotes and
    /// escapes, or other JSON as it stands there.
    JsonPointer(String),
    /// A JSONPath (RFC 9535): the first match. A string without quotes and escapes, or other JSON without
    /// white space.
    JsonPath(String),
    /// A JSON Pointer into the body of the request.
    RequestJsonPointer(String),
    /// An XPath (1.0) on the body of the response: the string value of the first match. The body has to be
    /// well-formed XML, which most HTML is not, without declarations of entities. Names without a prefix are
    /// those without a namespace; a prefix is one that the outermost element of the body declares.
    XPath(String),
    /// The data of an event, or a place in its JSON, where the response is a [stream](ReactionSpec::stream).
    Event {
        /// The event.
        pick: EventPick,
        /// The place: [`Body`](Self::Body) for all of its data, a pointer or a path.
        of: Box<Source>,
    },
}

impl Source {
    /// Returns `true` if the whole body has to be read as a tree.
    const fn searches(&self) -> bool {
        matches!(self, Self::JsonPath(_) | Self::XPath(_))
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSpec {
    /// Source of the text that is compared.
    pub source: Source,
    /// Comparison with the expected text.
    pub matching: Matching,
    /// `true` if the comparison must not hold.
    pub negated: bool,
}

/// One value to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtractSpec {
    /// Destination of the value: the position of the variable.
    pub variable: u16,
    /// Source of the value.
    pub source: Source,
    /// Expression for the part of the text that is taken: its first group, or its whole match.
    pub regex: Option<String>,
    /// Conversion of the value.
    pub form: Conversion,
    /// Value of the variable if there is none to take; without it, the request has failed. A template that
    /// may name variables.
    pub default: Option<String>,
}

/// Rows of a pool that are taken from the JSON of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectSpec {
    /// The pool, an index into the plan's.
    pub pool: u16,
    /// A JSON Pointer to an array.
    pub each: String,
    /// JSON Pointers into each of its elements, in the order of the pool's columns.
    pub columns: Vec<String>,
}

/// Specification of a [`ResponseHandler`], before it is compiled.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ReactionSpec {
    /// Accepted statuses; empty: below 400.
    pub statuses: Vec<StatusRange>,
    /// Checks, all of which have to hold.
    pub checks: Vec<CheckSpec>,
    /// Values to take.
    pub extract: Vec<ExtractSpec>,
    /// Rows of pools to take.
    pub collect: Vec<CollectSpec>,
    /// Judge of responses with an accepted status, before the checks.
    pub judge: Option<JudgeSpec>,
    /// Repetition of the request until there is an answer to it.
    pub poll: Option<PollSpec>,
    /// The stream of events that the response is.
    pub stream: Option<EventStream>,
    /// Rules by which messages on the WebSocket that the step opens are answered. The first one that is for a
    /// message holds.
    pub answers: Vec<AnswerSpec>,
    /// Message that is sent on it again and again.
    pub heartbeat: Option<HeartbeatSpec>,
    /// The variable whose value is the time that a message has in it: one of [`extract`](Self::extract).
    pub stamp: Option<u16>,
    /// `true` if Set-Cookie fields go into the session's jar.
    pub cookies: bool,
    /// `true` if the request asks for compressed content: a body that is read is unpacked before.
    pub decodes: bool,
}

impl fmt::Debug for ReactionSpec {
    /// This text identifies the plan: unused parts do not change it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { statuses, checks, extract, collect, judge, poll, stream, .. } = self;
        let Self { answers, heartbeat, stamp, cookies, decodes, .. } = self;
        let mut text = f.debug_struct("ReactionSpec");
        text.field("statuses", statuses).field("checks", checks).field("extract", extract);
        if !collect.is_empty() {
            text.field("collect", collect);
        }
        if let Some(judge) = judge {
            text.field("judge", judge);
        }
        if let Some(poll) = poll {
            text.field("poll", poll);
        }
        if let Some(stream) = stream {
            text.field("stream", stream);
        }
        if !answers.is_empty() {
            text.field("answers", answers);
        }
        if let Some(heartbeat) = heartbeat {
            text.field("heartbeat", heartbeat);
        }
        if let Some(stamp) = stamp {
            text.field("stamp", stamp);
        }
        if *decodes {
            text.field("decodes", decodes);
        }
        text.field("cookies", cookies).finish()
    }
}

/// Reason why a response does not meet the expectations of its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The class that it is counted in.
    pub class: ErrorClass,
    /// Which check or extraction, for [`ResponseHandler::describe`].
    pub(crate) what: u16,
}

/// Handler of a step's responses, compiled.
///
/// A copy shares everything but the working memory of its regular expressions: a worker that has a copy of
/// its own takes no lock for them.
#[derive(Clone, Debug, Default)]
pub struct ResponseHandler {
    needs: Needs,
    statuses: Box<[StatusRange]>,
    checks: Box<[Check]>,
    takes: Box<[Take]>,
    collects: Box<[Collect]>,
    /// Checks that come before the others: if one of them does not hold, the answer is still to come.
    until: Box<[Check]>,
    answers: Box<[Answer]>,
    heartbeat: Option<Box<Heartbeat>>,
    /// The value of these that is a time.
    stamp: Option<usize>,
    cookies: bool,
    /// Specification that it was compiled from, for [`describe`](Self::describe).
    spec: Arc<ReactionSpec>,
}

/// The number of the status among all that can fail; checks follow, and then values.
const STATUS: u16 = 0;
/// The number of the [judge](ReactionSpec::judge).
const JUDGE: u16 = u16::MAX;
/// The number of the checks that an answer has to pass to be [awaited](PollSpec::until) no longer.
const UNTIL: u16 = u16::MAX - 1;

impl ResponseHandler {
    /// Compiles one.
    ///
    /// # Errors
    /// The first part that is malformed: a pointer, a path, an expression, a template, a name; a template
    /// that names more than variables; XPath in a build without it.
    pub fn compile(spec: &ReactionSpec, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        if spec.checks.len() + spec.extract.len() + spec.collect.len() >= usize::from(UNTIL) {
            return Err(TemplateError::new("more than 65533 checks and values for one step"));
        }
        if let Some(StatusRange { first, last }) = spec.statuses.iter().find(|range| range.first > range.last)
        {
            return Err(TemplateError::new(format!("there is no status from {first} to {last}")));
        }
        let mut needs = Needs::default();
        let mut compile_place = |source: &Source| {
            let place = Place::compile(source, scope)?;
            place.add_needs(&mut needs);
            Ok(place)
        };
        let mut compile_check =
            |check: &CheckSpec| Check::compile(check, compile_place(&check.source)?, scope);
        let checks = spec.checks.iter().map(&mut compile_check).collect::<Result<_, TemplateError>>()?;
        let until = spec.poll.iter().flat_map(|poll| &poll.until);
        let until = until.map(compile_check).collect::<Result<_, TemplateError>>()?;
        let compile_take = |take: &ExtractSpec| Take::compile(take, compile_place(&take.source)?, scope);
        let takes = spec.extract.iter().map(compile_take).collect::<Result<_, TemplateError>>()?;
        let collects: Box<[Collect]> = spec.collect.iter().map(Collect::compile).collect::<Result<_, _>>()?;
        let answers = spec.answers.iter().map(|answer| Answer::compile(answer, scope));
        let answers = answers.collect::<Result<_, TemplateError>>()?;
        let heartbeat = spec.heartbeat.as_ref().map(|heartbeat| Heartbeat::compile(heartbeat, scope));
        let heartbeat = heartbeat.transpose()?.map(Box::new);
        needs.body |= !collects.is_empty() || spec.judge.iter().any(|spec| spec.judge.needs_body());
        needs.events = spec.stream.is_some();
        needs.in_turn = spec.stream.is_some_and(EventStream::is_in_turn);
        needs.path |= spec.cookies || spec.extract.iter().any(|take| take.form != Conversion::Value);
        if spec.cookies {
            add_field(&mut needs, "set-cookie");
        }
        if spec.decodes && needs.body {
            add_field(&mut needs, "content-encoding");
        }
        for name in spec.judge.iter().flat_map(|spec| spec.judge.fields()) {
            add_field(&mut needs, name);
        }
        Ok(Self {
            needs,
            statuses: spec.statuses.as_slice().into(),
            checks,
            takes,
            collects,
            until,
            answers,
            heartbeat,
            stamp: spec.stamp.and_then(|stamp| spec.extract.iter().position(|take| take.variable == stamp)),
            cookies: spec.cookies,
            spec: Arc::new(spec.clone()),
        })
    }

    /// Returns the parts of an exchange that have to be kept. (A script of the step may need more: that is up
    /// to the plan.)
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Returns `true` if the handler reads nothing but the response, and takes nothing into the session. Any
    /// session will do then.
    pub fn reads_response_alone(&self) -> bool {
        let mut checks = self.checks.iter().chain(&self.until);
        let needs_session = self.spec.judge.as_ref().is_some_and(JudgeSpec::needs_session);
        !needs_session
            && !self.cookies
            && self.spec.stream.is_none()
            && self.takes.is_empty()
            && !self.has_answers()
            && checks.all(Check::reads_response_alone)
    }

    /// Returns `true` if bodies are unpacked by [`decode_content`](crate::decode_content) before they are
    /// read.
    pub fn decodes(&self) -> bool {
        self.spec.decodes && self.needs.body
    }

    /// Returns `true` if the handler unpacks bodies, or searches them for more than the place of a pointer.
    pub fn searches(&self) -> bool {
        let spec = &*self.spec;
        let checks = spec.checks.iter().chain(spec.poll.iter().flat_map(|poll| &poll.until));
        let sources = checks.map(|check| &check.source).chain(spec.extract.iter().map(|take| &take.source));
        let searches = |source: &Source| match source {
            Source::Event { of, .. } => of.searches(),
            source => source.searches(),
        };
        self.decodes() || sources.into_iter().any(searches)
    }

    /// Returns `true` if the handler puts rows into pools.
    pub fn collects(&self) -> bool {
        !self.collects.is_empty()
    }

    /// Returns `true` if the handler reads nothing but the status, and takes nothing. Any `session` will do
    /// then.
    pub fn is_plain(&self) -> bool {
        let spec = &*self.spec;
        let is_settled_by_status = spec.judge.is_none() && spec.poll.is_none() && spec.stream.is_none();
        let takes_nothing = self.takes.is_empty() && self.collects.is_empty() && !self.cookies;
        is_settled_by_status && self.checks.is_empty() && takes_nothing
    }

    /// Returns `true` if the statuses that it accepts are named, and not those below 400 alone.
    pub fn names_statuses(&self) -> bool {
        !self.statuses.is_empty()
    }

    /// Returns the stream of events that the responses are, if they are one.
    pub fn event_stream(&self) -> Option<EventStream> {
        self.spec.stream
    }

    /// Returns the judge of the responses, if there is one.
    pub fn judge(&self) -> Option<&dyn Judge> {
        self.spec.judge.as_ref().map(|spec| &*spec.judge)
    }

    /// Returns the rules by which the request is repeated as long as its answer is [to
    /// come](Verdict::Pending).
    pub fn poll(&self) -> Option<&PollSpec> {
        self.spec.poll.as_ref()
    }

    /// Checks the response and takes its values and cookies into the session. The status is checked first,
    /// then the rest in the order of the plan. Cookies are taken from any response, as RFC 6265 section 3
    /// has it, values only from one that passed. Allocates nothing in steady state but for JSONPath,
    /// XPath and events.
    ///
    /// # Errors
    /// The first failure: [`ErrorClass::Status4xx`] or [`ErrorClass::Status5xx`] for a status that is not
    /// accepted, [`ErrorClass::Check`] for one below 400 and for a check, [`ErrorClass::Extraction`] for a
    /// value, and the verdict of a [judge](Judge).
    pub fn apply(&self, received: &Received<'_>, session: &mut Session) -> Result<Verdict, Failure> {
        if self.cookies {
            let Session { cookies, sent, .. } = &mut *session;
            for cookie in received.fields.all("set-cookie") {
                cookies.store(cookie, received.host, &sent.path, received.secure, received.unix_s);
            }
        }
        self.accepts(received.status)?;
        if let Some(judge) = &self.spec.judge
            && judge.ask(received, session).map_err(|class| Failure { class, what: JUDGE })?
        {
            return Ok(Verdict::Pending);
        }
        if self.checks.is_empty() && self.takes.is_empty() && self.until.is_empty() {
            return Ok(Verdict::Settled);
        }
        let Session { variables, known, cookies, sent, scratch, looked_at, .. } = session;
        let mut json = Vec::new();
        let received = &self.read_by_judge(received, &mut json);
        let budget = Budget::default();
        let mut parsed = Parsed::new(&budget);
        let stream = self.spec.stream;
        let mut exchange = Exchange { received, sent, cookies, parsed: &mut parsed, stream };
        if !self.until.iter().all(|check| check.holds(&mut exchange, variables, looked_at, scratch)) {
            // Another answer of that kind is not waited for.
            return match budget.excess() {
                Some(_) => Err(Failure { class: ErrorClass::Check, what: UNTIL }),
                None => Ok(Verdict::Pending),
            };
        }
        for (number, check) in (STATUS + 1..).zip(&self.checks) {
            if !check.holds(&mut exchange, variables, looked_at, scratch) {
                return Err(Failure { class: ErrorClass::Check, what: number });
            }
        }
        for (number, take) in (STATUS + 1 + self.checks.len() as u16..).zip(&self.takes) {
            if !take.apply(&mut exchange, variables, known, looked_at, scratch) {
                return Err(Failure { class: ErrorClass::Extraction, what: number });
            }
        }
        if let Some(stamp) = self.stamp
            && self.takes[stamp].value(variables).and_then(stamp::unix_time).is_none()
        {
            let what = STATUS + 1 + (self.checks.len() + stamp) as u16;
            return Err(Failure { class: ErrorClass::Extraction, what });
        }
        Ok(Verdict::Settled)
    }

    /// Takes all values that are there of an exchange that has ended badly, whose iteration goes on all the
    /// same: those of the request, and those of the response, if there is [one](Received::is_missing).
    /// Returns `true` if no value is missing.
    pub fn salvage(&self, received: &Received<'_>, session: &mut Session) -> bool {
        let Session { variables, known, cookies, sent, scratch, looked_at, .. } = session;
        let mut json = Vec::new();
        let received = &self.read_by_judge(received, &mut json);
        let budget = Budget::default();
        let mut parsed = Parsed::new(&budget);
        let stream = self.spec.stream;
        let mut exchange = Exchange { received, sent, cookies, parsed: &mut parsed, stream };
        let take = |all, take: &Take| take.apply(&mut exchange, variables, known, looked_at, scratch) && all;
        self.takes.iter().fold(true, take)
    }

    /// The response with the content that the judge reads from its body, which is written to `json`, if there
    /// is a judge that does.
    fn read_by_judge<'r>(&self, received: &Received<'r>, json: &'r mut Vec<u8>) -> Received<'r> {
        let judge = self.spec.judge.as_ref();
        match judge.is_some_and(|spec| spec.judge.write_json(received.body, json)) {
            true => Received { body: json, ..*received },
            false => *received,
        }
    }

    /// Returns the numbers of the variables that it takes values for, in the order of the plan.
    pub fn taken_variables(&self) -> impl Iterator<Item = usize> + '_ {
        self.spec.extract.iter().map(|take| usize::from(take.variable))
    }

    /// The content of a body as text for people, where its protocol has a binary form.
    pub fn show_body(&self, body: &[u8], of_request: bool) -> Option<String> {
        self.spec.judge.as_ref()?.judge.show(body, of_request)
    }

    /// Returns the number of checks beside that of the status.
    pub fn checks(&self) -> usize {
        self.checks.len()
    }

    /// Returns `true` if the handler takes values into the session.
    pub fn takes_values(&self) -> bool {
        !self.takes.is_empty()
    }

    /// Puts the collected values of a response that [passed](Self::apply) into the pools. Allocates nothing
    /// once the pools have been as full as they get, except for strings with escapes.
    ///
    /// # Errors
    /// [`ErrorClass::Extraction`] if there is no such array, or an element lacks a value. Rows of elements in
    /// front of it are kept.
    ///
    /// # Panics
    /// If there is no such pool.
    pub fn collect(
        &self,
        received: &Received<'_>,
        feeds: &mut Feeds,
        random: &mut Random,
    ) -> Result<(), Failure> {
        for (number, collect) in
            (STATUS + 1 + (self.checks.len() + self.takes.len()) as u16..).zip(&self.collects)
        {
            if !collect.apply(received.body, feeds, random) {
                return Err(Failure { class: ErrorClass::Extraction, what: number });
            }
        }
        Ok(())
    }

    /// Checks the status as [`apply`](Self::apply) does, for a [plain](Self::is_plain) handler.
    ///
    /// # Errors
    /// See [`apply`](Self::apply).
    #[inline]
    pub fn accepts(&self, status: u16) -> Result<(), Failure> {
        let accepted = match &*self.statuses {
            [] => status < 400,
            ranges => ranges.iter().any(|range| (range.first..=range.last).contains(&status)),
        };
        if accepted {
            return Ok(());
        }
        let class = match status {
            500.. => ErrorClass::Status5xx,
            400.. => ErrorClass::Status4xx,
            _ => ErrorClass::Check,
        };
        Err(Failure { class, what: STATUS })
    }
}

/// Adds a field of the response, which is in lower case.
fn add_field(needs: &mut Needs, name: &str) {
    match &mut needs.fields {
        FieldNeeds::All => {}
        FieldNeeds::Named(names) if names.iter().any(|known| known == name) => {}
        FieldNeeds::Named(names) => names.push(name.to_owned()),
        nothing @ FieldNeeds::Nothing => *nothing = FieldNeeds::Named(vec![name.to_owned()]),
    }
}
