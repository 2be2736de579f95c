//! Steps whose bodies are messages for canisters.

use std::io::Write as _;
use std::ops::RangeInclusive;
use std::sync::Arc;

use plimsoll_core::{Nanos, Random, text::hex};
use plimsoll_document::{BodyKey, Field, Place, Problem, RequestStep, Text};
use plimsoll_ic::{BadPrincipal, Identity, Kind, Principal, RequestId, Stencil, expiry, write_read_state};
use plimsoll_plan::{BodyContent, BodyContext, BodyPart, body_key, parse_size};
use plimsoll_scenario::{Bodies, Body, BodyMaker, BodySource, BodySupply, Judge, JudgeSpec};
use plimsoll_schedule::{parse_count, parse_duration};

use super::CanisterSpec;
use super::judge::{CallKind, CanisterJudge, CanisterNotes};

/// Validity of messages unless the step sets another one.
const EXPIRY: Nanos = Nanos::from_secs(240);
/// A message is not sent any more when so little of its time is left: it has to arrive before that is over.
const LAST_MOMENT: Nanos = Nanos::from_secs(5);
/// The shortest time for which messages may be valid.
const SHORTEST_EXPIRY: Nanos = Nanos::from_secs(10);
/// The largest argument: replicas take no more than 2 MiB of a message from outside.
const LARGEST_ARG: u64 = 2 << 20;
/// Threads per worker that sign, at most.
const MOST_SIGNERS: u64 = 64;
/// Messages that are made and handed over at a time.
const BATCH: usize = 32;
/// The number of the first message that is made before the load: those that are made during it begin with 0.
pub const FIRST_PRESIGNED: u64 = 1 << 63;
/// Bytes of the longest text of a nonce: replicas take nonces of 32 bytes, and around the text there are
/// `inc `, a space, and a number of at most 13 characters.
const LONGEST_NONCE_TEXT: usize = 14;

/// Specification of the messages of a step: the call and its sender.
#[derive(Clone, Debug)]
struct Messages {
    kind: Kind,
    canister: Principal,
    method: String,
    argument: Argument,
    nonce: Nonce,
    identity: Identity,
    expiry: Nanos,
    signers: usize,
}

/// The nonces of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Nonce {
    None,
    /// Eight bytes that are the run's, and eight that are the message's.
    Binary,
    /// `inc TEXT NUMBER`, as the Internet Computer's generator writes them.
    Text(String),
}

impl Nonce {
    /// Writes the nonce of one message of a run. Returns `false` if messages have none.
    fn write(&self, seed: u64, number: u64, out: &mut Vec<u8>) -> bool {
        out.clear();
        match self {
            Self::None => return false,
            Self::Binary => {
                out.extend_from_slice(&seed.to_be_bytes());
                out.extend_from_slice(&number.to_be_bytes());
            }
            Self::Text(text) => {
                // Numbers of messages that were made ahead are long: what tells them apart is a letter.
                let (mark, number) = match number.checked_sub(FIRST_PRESIGNED) {
                    Some(number) => ("p", number),
                    None => ("", number),
                };
                // Writing to a vector cannot fail.
                let _ = write!(out, "inc {text} {mark}{number}");
            }
        }
        true
    }
}

/// The argument of a call.
#[derive(Clone, Debug)]
enum Argument {
    /// Always these bytes.
    Fixed(Vec<u8>),
    /// This many random bytes, different ones in each message.
    Random(usize),
}

impl BodySource for Messages {
    fn open(&self, seed: u64) -> Box<dyn BodyMaker> {
        let fixed = match &self.argument {
            Argument::Fixed(bytes) => Some(bytes.as_slice()),
            Argument::Random(_) => None,
        };
        let random_bytes = match self.argument {
            Argument::Fixed(_) => 0,
            Argument::Random(bytes) => bytes,
        };
        Box::new(Maker {
            stencil: Stencil::new(&self.identity, self.kind, &self.canister, &self.method, fixed),
            argument: vec![0; random_bytes],
            seed,
            nonce: self.nonce.clone(),
            nonce_bytes: Vec::new(),
            asks: self.kind == Kind::Update,
            expiry: self.expiry,
            last: (RequestId::default(), 0),
        })
    }

    fn span_ns(&self) -> u64 {
        1
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn makers(&self) -> usize {
        self.signers
    }

    fn is_signed(&self) -> bool {
        !self.identity.is_anonymous()
    }
}

/// Generator of the messages.
struct Maker {
    stencil: Stencil,
    /// Room for an argument that is drawn.
    argument: Vec<u8>,
    seed: u64,
    nonce: Nonce,
    /// Room for the nonce of a message.
    nonce_bytes: Vec<u8>,
    /// Set for updates, whose status is queried afterwards.
    asks: bool,
    expiry: Nanos,
    /// The last message: its id, and when it expires.
    last: (RequestId, u64),
}

impl BodyMaker for Maker {
    fn make(&mut self, number: u64, unix_ns: u64, out: &mut Vec<u8>) {
        if !self.argument.is_empty() {
            let mut random = Random::new(self.seed, number);
            for chunk in self.argument.chunks_mut(8) {
                chunk.copy_from_slice(&random.bits().to_le_bytes()[..chunk.len()]);
            }
        }
        let has_nonce = self.nonce.write(self.seed, number, &mut self.nonce_bytes);
        let expires = unix_ns.saturating_add(self.expiry.0);
        out.clear();
        let nonce = has_nonce.then_some(&*self.nonce_bytes);
        self.last = (self.stencil.write(&self.argument, nonce, expires, out), expires);
    }

    fn inquire(&mut self, out: &mut Vec<u8>) -> Option<[u8; 32]> {
        if !self.asks {
            return None;
        }
        let (id, expires) = self.last;
        out.clear();
        write_read_state(self.stencil.identity(), &[&[b"request_status", &id.0]], expires, out);
        Some(id.0)
    }

    fn window(&self) -> RangeInclusive<u64> {
        let (_, expires) = self.last;
        expires.saturating_sub(Nanos::from(expiry::MAX_AHEAD).0)..=expires.saturating_sub(LAST_MOMENT.0)
    }
}

/// Key of bodies that are messages for a canister, with the judges of the answers to them.
pub static MESSAGE: BodyKey = body_key::<CanisterSpec>(
    "canister",
    "Body as a signed message for a canister of the Internet Computer, another one each time: what `plimsoll \
     canister --print-plan` shows. The answer to `state` is recognised without `poll.until`.",
);

impl BodyPart for CanisterSpec {
    fn variable(&self) -> Option<&Text> {
        self.pending.get()
    }

    fn is_judged(&self) -> bool {
        !self.state.is_absent()
    }

    fn compile(
        &self,
        _: &RequestStep,
        place: Option<Place>,
        context: &mut dyn BodyContext,
    ) -> Option<BodyContent> {
        let (kind, method) = match (self.query.is_absent(), self.update.is_absent(), is_on(&self.state)) {
            (false, true, false) => (Kind::Query, &self.query),
            (true, false, false) => (Kind::Update, &self.update),
            (true, true, true) => return inquiry(self, place, context),
            _ => {
                let problem = Problem::new("a canister is asked exactly one of query, update and state");
                return context
                    .fail_form(place, problem.with_hint("write `canister: {query: read, id: aaaaa-aa}`"));
            }
        };
        if !self.pending.is_absent() && kind == Kind::Query {
            let problem = Problem::new("`pending` has no effect: the answer to a query comes at once");
            return context.fail_form(self.pending.place(), problem);
        }
        let messages = messages(self, kind, method, place, context)?;
        let pending = match self.pending.get() {
            Some(name) => Some(context.variable(name.as_str())?),
            None => None,
        };
        let Some(supply) = context.next_supply() else {
            return context
                .fail(place, Problem::new("the plan has more than 65536 steps with bodies of a supply"));
        };
        let of: Arc<str> = messages.text().into();
        let asked = if kind == Kind::Query { CallKind::Query } else { CallKind::Update };
        let judge = judge(asked, pending, context);
        context.add_supply(BodySupply {
            records: 0,
            bodies: Bodies::Fresh(Arc::new(messages)),
            stock: Arc::from([]),
        });
        Some(BodyContent {
            body: Body::Supplied { supply, inquiry: false, of },
            headers: cbor(),
            judge: Some(judge),
            stream: None,
        })
    }
}

/// The question for the outcome of the last update.
fn inquiry(spec: &CanisterSpec, place: Option<Place>, context: &mut dyn BodyContext) -> Option<BodyContent> {
    let mut alone = CanisterSpec::default();
    alone.state.clone_from(&spec.state);
    if *spec != alone {
        let problem = Problem::new("`state: true` takes no other keys");
        let hint = "it asks for the update that the iteration has called last, as who called that";
        return context.fail_form(place, problem.with_hint(hint));
    }
    let judge = judge(CallKind::State, None, context);
    // The inquiry applies to a call of any supply.
    let body = Body::Supplied { supply: 0, inquiry: true, of: "read_state".into() };
    Some(BodyContent { body, headers: cbor(), judge: Some(judge), stream: None })
}

/// A judge of answers; all of a plan share their notes.
fn judge(asked: CallKind, pending: Option<u16>, context: &dyn BodyContext) -> JudgeSpec {
    let notes = context.judges().iter().find_map(|judge| CanisterNotes::of_judge(&**judge));
    let judge: Arc<dyn Judge> = Arc::new(CanisterJudge::new(asked, notes.unwrap_or_default()));
    JudgeSpec { of: asked.name().into(), judge, pending }
}

fn messages(
    spec: &CanisterSpec,
    kind: Kind,
    method: &Field<Text>,
    place: Option<Place>,
    context: &mut dyn BodyContext,
) -> Option<Messages> {
    if spec.id.is_absent() {
        let problem = Problem::new("no canister is named");
        return context.fail_form(place, problem.with_hint("write its id: `id: aaaaa-aa`"));
    }
    let canister = principal(&spec.id, context);
    let method = context.plain(method);
    let argument = argument(spec, context);
    let nonce = nonce(spec, kind, context);
    let identity = identity(&spec.key, context);
    let expiry = context.read(&spec.expiry, parse_duration);
    let signers = context.read(&spec.signers, parse_count);
    let expiry_place = spec.expiry.place();
    let expiry = expiry?.unwrap_or(EXPIRY);
    if !(SHORTEST_EXPIRY..=Nanos::from(expiry::MAX_AHEAD)).contains(&expiry) {
        let problem = Problem::new("messages are valid for 10s to 5m");
        return context.fail(expiry_place, problem.with_hint("leave `expiry` out for 4m"));
    }
    let signers = signers?.unwrap_or(1);
    if !(1..=MOST_SIGNERS).contains(&signers) {
        let problem = Problem::new(format!("signers per worker are 1 to {MOST_SIGNERS}"));
        return context.fail(spec.signers.place(), problem);
    }
    Some(Messages {
        kind,
        canister: canister?,
        method: method?,
        argument: argument?,
        nonce: nonce?,
        identity: identity?,
        expiry,
        signers: signers as usize,
    })
}

fn nonce(spec: &CanisterSpec, kind: Kind, context: &mut dyn BodyContext) -> Option<Nonce> {
    let has_nonce = spec.nonce.get().copied().unwrap_or(kind == Kind::Update);
    if spec.nonce_text.is_absent() {
        return Some(if has_nonce { Nonce::Binary } else { Nonce::None });
    }
    let text = context.plain(&spec.nonce_text)?;
    let place = spec.nonce_text.place();
    if !has_nonce {
        let problem = Problem::new("`nonce_text` has no effect: these messages have no nonce");
        return context.fail_form(place, problem.with_hint("add `nonce: true`, or leave it out"));
    }
    if text.len() > LONGEST_NONCE_TEXT {
        let problem = Problem::new(format!("a nonce has a text of at most {LONGEST_NONCE_TEXT} bytes"));
        let hint = "replicas take nonces of 32 bytes, and each has a number, too";
        return context.fail(place, problem.with_hint(hint));
    }
    Some(Nonce::Text(text))
}

fn argument(spec: &CanisterSpec, context: &mut dyn BodyContext) -> Option<Argument> {
    if !spec.arg.is_absent() && !spec.arg_size.is_absent() {
        let problem = Problem::new("`arg` and `arg_size` exclude each other");
        return context.fail_form(spec.arg_size.place(), problem);
    }
    if is_on(&spec.random) && spec.arg_size.is_absent() {
        let problem = Problem::new("`random` has no length");
        return context.fail_form(spec.random.place(), problem.with_hint("add `arg_size: 1KB`"));
    }
    let fixed = context.read(&spec.arg, parse_hex)?.unwrap_or_default();
    let size = context.read(&spec.arg_size, parse_size)?;
    let length = size.unwrap_or(fixed.len() as u64);
    if length > LARGEST_ARG {
        let place = spec.arg_size.place().or(spec.arg.place());
        return context
            .fail(place, Problem::new("an argument is at most 2 MiB: replicas take no larger messages"));
    }
    Some(match size {
        None => Argument::Fixed(fixed),
        Some(size) if is_on(&spec.random) => Argument::Random(size as usize),
        Some(size) => Argument::Fixed(vec![0; size as usize]),
    })
}

/// Returns the identity that signs: that of the key in a file, or the anonymous one.
fn identity(key: &Field<Text>, context: &mut dyn BodyContext) -> Option<Identity> {
    if key.is_absent() {
        return Some(Identity::anonymous());
    }
    let name = context.plain(key)?;
    let content = context.file(key)?;
    match Identity::from_pem(&String::from_utf8_lossy(&content)) {
        Ok(identity) => Some(identity),
        Err(bad) => {
            let problem = Problem::new(format!("`{name}`: {}", bad.problem));
            context.fail(key.place(), problem.with_hint(bad.hint))
        }
    }
}

/// Returns the principal that a text names.
fn principal(field: &Field<Text>, context: &mut dyn BodyContext) -> Option<Principal> {
    let text = context.plain(field)?;
    match text.trim().parse() {
        Ok(principal) => Some(principal),
        Err(BadPrincipal { problem, hint }) => {
            context.fail(field.place(), Problem::new(problem).with_hint(hint))
        }
    }
}

/// A switch that is off unless it is given.
fn is_on(field: &Field<bool>) -> bool {
    field.get().copied().unwrap_or(false)
}

impl Messages {
    /// Describes the messages, to distinguish them from others. A key is represented by its sender.
    fn text(&self) -> String {
        let Self { kind, canister, method, argument, nonce, identity, expiry, signers: _ } = self;
        let argument = match argument {
            Argument::Fixed(bytes) => hex(bytes),
            Argument::Random(bytes) => format!("{bytes} random"),
        };
        let (sender, kind) = (identity.sender(), kind.request_type());
        let nonce = match nonce {
            Nonce::None => "false".to_owned(),
            Nonce::Binary => "true".to_owned(),
            Nonce::Text(text) => format!("{text:?}"),
        };
        format!("{kind} {canister} {method:?} {argument} nonce {nonce} sender {sender} expiry {}", expiry.0)
    }
}

/// The header that replicas want.
fn cbor() -> Vec<(String, String)> {
    vec![("Content-Type".to_owned(), "application/cbor".to_owned())]
}

/// Bytes in hexadecimal, perhaps behind `0x`.
fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let byte = |pair: &[u8]| {
        let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
        Some((digit(0)? * 16 + digit(1)?) as u8)
    };
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    bytes.ok_or_else(|| {
        format!("`{text}` is not hexadecimal: write two digits for each byte, such as 4449444c0000")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: `--nonce VALUE` of the Internet Computer's generator was refused.
    #[test]
    fn nonces_are_those_of_the_generator_and_no_two_are_the_same_or_too_long() {
        let mut out = Vec::new();
        let mut written = |nonce: &Nonce, number| nonce.write(7, number, &mut out).then(|| out.clone());
        assert_eq!(written(&Nonce::None, 3), None);
        assert_eq!(written(&Nonce::Binary, 3).unwrap(), [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 3]);
        let longest = Nonce::Text("x".repeat(LONGEST_NONCE_TEXT));
        let text = Nonce::Text("abc".to_owned());
        assert_eq!(written(&text, 3).unwrap(), b"inc abc 3");
        assert_eq!(written(&text, FIRST_PRESIGNED + 3).unwrap(), b"inc abc p3");
        assert_eq!(written(&longest, FIRST_PRESIGNED + 999_999_999_999).unwrap().len(), 32);
    }
}
