//! Steps of scenarios. A kind of step is a variant of [`StepKind`], with a file for its keys.
//!
//! In the file, a step is one mapping. Each key belongs to one type: to [`StepSpec`] if several kinds have
//! it, else to the part of one kind. All keys are read into the parts of all kinds; the first key of a kind
//! decides which part is kept. Keys of other parts are kept by their names, so that
//! [`Document::check`](super::Document::check) can report them.

mod added;
mod body;
mod branch;
mod parallel;
mod pause;
mod poll;
mod repetition;
mod request;
mod rows;
mod set;
mod websocket;

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, MapAccess};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

pub use added::{Added, AddedBodies, AddedKeys, AddedStep};
pub use body::*;
pub use branch::BranchStep;
pub use parallel::ParallelStep;
pub use pause::PauseSpec;
pub use poll::PollSpec;
pub use repetition::RepetitionStep;
pub use request::{AddressSpec, RequestStep};
pub use rows::RowsStep;
pub use set::SetStep;
pub use websocket::{AnswerSpec, HeartbeatSpec, ReceiveSpec, WebSocketSpec, WebSocketStep};

use super::{ExpectSpec, ExtractSpec, Field, Keyed, RecordSpec, Text};
use crate::{DocumentParts, Place};

/// One step: a request (`get`, `post`, … or `request`), or one of `set`, `think`, `if`, `repeat`, `while`,
/// `parallel`.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(transform = close)]
#[non_exhaustive]
pub struct StepSpec {
    /// Name of the step in reports. Default: method and path.
    pub name: Field<Text>,
    /// The one thing that the step does, with the keys of that alone.
    #[schemars(flatten)]
    pub kind: StepKind,
    /// The target, if it is not the scenario's.
    pub target: Field<Text>,
    /// Limit for the whole response, instead of the run's.
    pub timeout: Field<Text>,
    /// Action after a request that has failed or timed out: `end` ends the iteration, `continue` goes on with
    /// the next step. An iteration that lacks a value which the request was to take ends in any case.
    /// Default: `end`.
    pub on_failure: Field<Text>,
    /// Expectations on the response. Default: a status below 400.
    pub expect: Field<ExpectSpec>,
    /// Values to take from the exchange, by the names of the variables they go into.
    pub extract: Keyed<Field<ExtractSpec>>,
    /// Values to record of metrics, by the names of these: behind the answer, if that was good; or, without a
    /// request, at once.
    pub record: Keyed<Field<RecordSpec>>,
    /// Think time after the request; or, without one, a pause: `100ms`, `{uniform: [1s, 3s]}`,
    /// `{exponential: 2s}`, or `{pace: 5s}`: until 5 s after the iteration began.
    pub think: Field<PauseSpec>,
    /// Keys of other kinds, which [`Document::check`](super::Document::check) reports. Their values were
    /// read, to report what is wrong with them, and left out.
    #[schemars(skip)]
    pub(crate) strays: Vec<GivenKey>,
    /// Keys of requests of other protocols, beside what the step does.
    #[schemars(skip)]
    pub(crate) stray_requests: Vec<GivenKey>,
}

/// A key of a step that is given, and where its value stands.
pub type GivenKey = (&'static str, Place);

/// The one thing that a step does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StepKind {
    /// Nothing that is known.
    #[default]
    Nothing,
    /// A request over HTTP.
    Request(Box<RequestStep>),
    /// A request of another protocol than HTTP, of a key that another crate adds.
    Added(AddedStep),
    /// An action on a WebSocket.
    WebSocket(Box<WebSocketStep>),
    /// The pause of [`StepSpec::think`] alone.
    Pause,
    /// The values of [`StepSpec::record`], and perhaps the pause behind them.
    Record,
    /// `set`.
    Set(SetStep),
    /// `keep`, `pick` or `take`.
    Rows(Box<RowsStep>),
    /// `if`.
    Branch(Box<BranchStep>),
    /// `repeat` or `while`.
    Repetition(Box<RepetitionStep>),
    /// `parallel`.
    Parallel(ParallelStep),
}

/// The keys of steps that this crate has, in the order in which they are written.
const KEYS: [&str; 41] = joined(&[&REQUEST_KEYS, &KEYS_BEFORE_BODY, &body::KEYS, &KEYS_AFTER_BODY]);

const REQUEST_KEYS: [&str; 8] = ["name", "get", "post", "put", "patch", "delete", "head", "request"];

const KEYS_BEFORE_BODY: [&str; 5] = ["websocket", "method", "same_url", "target", "headers"];

const KEYS_AFTER_BODY: [&str; 23] = [
    "records",
    "poll",
    "stream",
    "timeout",
    "on_failure",
    "expect",
    "extract",
    "record",
    "collect",
    "clear_cookies",
    "script",
    "think",
    "set",
    "keep",
    "pick",
    "take",
    "if",
    "then",
    "else",
    "repeat",
    "while",
    "steps",
    "parallel",
];

/// All keys of steps in the order in which they are written, with keys of requests and of bodies that were
/// added.
fn in_order(
    requests: impl Iterator<Item = &'static str>,
    bodies: impl Iterator<Item = &'static str>,
) -> impl Iterator<Item = &'static str> {
    let (first, rest) = KEYS.split_at(REQUEST_KEYS.len());
    let (before, after) = rest.split_at(rest.len() - KEYS_AFTER_BODY.len());
    let first = first.iter().copied().chain(requests);
    first.chain(before.iter().copied()).chain(bodies).chain(after.iter().copied())
}

/// Lists of keys as one.
const fn joined<const N: usize>(lists: &[&[&'static str]]) -> [&'static str; N] {
    let (mut all, mut list, mut end) = ([""; N], 0, 0);
    while list < lists.len() {
        let mut key = 0;
        while key < lists[list].len() {
            all[end] = lists[list][key];
            (key, end) = (key + 1, end + 1);
        }
        list += 1;
    }
    assert!(end == N, "the lists have as many keys as the whole");
    all
}

/// The keys that say what a step does. It has one of them, unless it is a pause or made by a script.
const VERBS: [&str; 17] = [
    "get",
    "post",
    "put",
    "patch",
    "delete",
    "head",
    "request",
    "same_url",
    "websocket",
    "set",
    "keep",
    "pick",
    "take",
    "if",
    "repeat",
    "while",
    "parallel",
];

/// The keys of a request of another protocol than HTTP among those of [`StepSpec`].
const OF_OTHERS: [&str; 8] =
    ["name", "target", "timeout", "on_failure", "expect", "extract", "record", "think"];

/// Some of the keys of a step.
trait Part {
    /// Reads the value of a key, if it is one of these; else returns `false`.
    fn read<'de, M: MapAccess<'de>>(&mut self, key: &str, map: &mut M) -> Result<bool, M::Error>;

    /// Writes a key with its value, if it is one of these and given.
    fn write<M: SerializeMap>(&self, key: &str, map: &mut M) -> Result<(), M::Error>;

    /// Adds the keys that are given.
    fn add_given(&self, given: &mut Vec<GivenKey>);

    /// Adds all keys.
    fn add_keys(&self, keys: &mut Vec<&'static str>);
}

/// A value that may be absent.
trait Optional {
    /// Returns the place of the value, if it is there.
    fn found(&self) -> Option<Place>;
}

impl<T> Optional for Field<T> {
    fn found(&self) -> Option<Place> {
        self.place()
    }
}

impl<T> Optional for Keyed<T> {
    fn found(&self) -> Option<Place> {
        self.0.first().map(|(_, place, _)| *place)
    }
}

impl<T> Optional for Vec<Field<T>> {
    fn found(&self) -> Option<Place> {
        self.first().and_then(Field::place)
    }
}

/// Implements [`Part`] for a struct: its keys with their fields, then fields that are parts themselves.
macro_rules! part {
    ($name:ident { $($key:literal: $field:ident,)* $(..$inner:ident,)* }) => {
        impl $crate::step::Part for $name {
            fn read<'de, M: serde::de::MapAccess<'de>>(
                &mut self,
                key: &str,
                map: &mut M,
            ) -> Result<bool, M::Error> {
                match key {
                    $($key => self.$field = map.next_value()?,)*
                    _ => return Ok(false $(|| self.$inner.read(key, map)?)*),
                }
                Ok(true)
            }

            fn write<M: serde::ser::SerializeMap>(&self, key: &str, map: &mut M) -> Result<(), M::Error> {
                use $crate::step::Optional as _;
                match key {
                    $($key if self.$field.found().is_some() => map.serialize_entry(key, &self.$field)?,)*
                    _ => {}
                }
                $(self.$inner.write(key, map)?;)*
                Ok(())
            }

            fn add_given(&self, given: &mut Vec<$crate::step::GivenKey>) {
                use $crate::step::Optional as _;
                $(given.extend(self.$field.found().map(|place| ($key, place)));)*
                $(self.$inner.add_given(given);)*
            }

            fn add_keys(&self, keys: &mut Vec<&'static str>) {
                keys.extend([$($key),*] as [&str; [$($key),*].len()]);
                $(self.$inner.add_keys(keys);)*
            }
        }
    };
}
use part;

part!(StepSpec {
    "name": name,
    "target": target,
    "timeout": timeout,
    "on_failure": on_failure,
    "expect": expect,
    "extract": extract,
    "record": record,
    "think": think,
    ..kind,
});

/// Does something with the part of a kind, or something else if it has none.
macro_rules! of_kind {
    ($kind:expr, $part:ident => $with:expr, $without:expr) => {
        match $kind {
            StepKind::Nothing | StepKind::Pause | StepKind::Record => $without,
            StepKind::Request($part) => $with,
            StepKind::Added($part) => $with,
            StepKind::WebSocket($part) => $with,
            StepKind::Set($part) => $with,
            StepKind::Rows($part) => $with,
            StepKind::Branch($part) => $with,
            StepKind::Repetition($part) => $with,
            StepKind::Parallel($part) => $with,
        }
    };
}

impl Part for StepKind {
    fn read<'de, M: MapAccess<'de>>(&mut self, key: &str, map: &mut M) -> Result<bool, M::Error> {
        of_kind!(self, part => part.read(key, map), Ok(false))
    }

    fn write<M: SerializeMap>(&self, key: &str, map: &mut M) -> Result<(), M::Error> {
        of_kind!(self, part => part.write(key, map), Ok(()))
    }

    fn add_given(&self, given: &mut Vec<GivenKey>) {
        of_kind!(self, part => part.add_given(given), ());
    }

    fn add_keys(&self, keys: &mut Vec<&'static str>) {
        of_kind!(self, part => part.add_keys(keys), ());
    }
}

impl StepKind {
    /// All kinds that have keys of their own, with none given.
    fn all() -> [Self; 8] {
        [
            Self::Request(Box::default()),
            Self::Added(AddedStep::default()),
            Self::WebSocket(Box::default()),
            Self::Set(SetStep::default()),
            Self::Rows(Box::default()),
            Self::Branch(Box::default()),
            Self::Repetition(Box::default()),
            Self::Parallel(ParallelStep::default()),
        ]
    }
}

impl StepKind {
    /// Returns the name of a request of another protocol than HTTP, unless it is known only during the run.
    pub fn request_title(&self) -> Option<String> {
        match self {
            Self::Added(step) => step.first()?.value.get()?.title(),
            Self::WebSocket(step) => step.websocket.get()?.title(),
            _ => None,
        }
    }
}

impl StepKind {
    /// Returns `true` if messages that the step awaits have their time in them.
    pub fn has_lag(&self) -> bool {
        match self {
            Self::WebSocket(step) => step.websocket.get().is_some_and(|spec| !spec.lag.is_absent()),
            _ => false,
        }
    }

    /// The rules of the WebSocket that the step opens.
    pub fn answers(&self) -> &[Field<AnswerSpec>] {
        match self {
            Self::WebSocket(step) => step.websocket.get().map_or(&[], |spec| &spec.answer),
            _ => &[],
        }
    }
}

impl StepSpec {
    /// The name by which the reader knows that other crates may add keys.
    pub(super) const NAME: &'static str = "StepSpec";
}

impl From<StepKind> for StepSpec {
    fn from(kind: StepKind) -> Self {
        Self { kind, ..Self::default() }
    }
}

/// Implements the conversion of the part of a kind into a step.
macro_rules! step_of_part {
    ($($part:ty: $kind:ident $(in $container:ident)?,)+) => {
        $(impl From<$part> for StepSpec {
            fn from(part: $part) -> Self {
                StepKind::$kind($($container::new)?(part)).into()
            }
        })+
    };
}

step_of_part! {
    RequestStep: Request in Box,
    AddedStep: Added,
    WebSocketStep: WebSocket in Box,
    SetStep: Set,
    RowsStep: Rows in Box,
    BranchStep: Branch in Box,
    RepetitionStep: Repetition in Box,
    ParallelStep: Parallel,
}

/// Steps that were not read from a file, as a list of a document.
pub(crate) fn list(steps: impl IntoIterator<Item = StepSpec>) -> Vec<Field<StepSpec>> {
    steps.into_iter().map(Field::new).collect()
}

impl StepSpec {
    /// Returns the step with a name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Field::text(name), ..self }
    }

    /// Returns the step with expectations on its response.
    #[must_use]
    pub fn expecting(self, expect: ExpectSpec) -> Self {
        Self { expect: Field::new(expect), ..self }
    }

    /// The request that the step is; it becomes an empty one if it is something else.
    pub fn request_mut(&mut self) -> &mut RequestStep {
        if !matches!(self.kind, StepKind::Request(_)) {
            self.kind = StepKind::Request(Box::default());
        }
        match &mut self.kind {
            StepKind::Request(request) => request,
            _ => unreachable!("it was made a request"),
        }
    }

    /// Returns the request that the step is, if it is one.
    pub fn request(&self) -> Option<&RequestStep> {
        match &self.kind {
            StepKind::Request(request) => Some(request),
            _ => None,
        }
    }

    /// The lists of steps within this one.
    pub fn inner(&self) -> impl Iterator<Item = &[Field<Self>]> {
        let (first, second) = match &self.kind {
            StepKind::Branch(branch) => (branch.then.as_slice(), branch.otherwise.as_slice()),
            StepKind::Repetition(repetition) => (repetition.steps.as_slice(), &[][..]),
            StepKind::Parallel(parallel) => (parallel.parallel.as_slice(), &[][..]),
            _ => (&[][..], &[][..]),
        };
        [first, second].into_iter()
    }

    /// Returns what the step does. `None`: nothing, or several things, which is reported by
    /// [`Document::check`](super::Document::check).
    pub fn only_kind(&self) -> Option<&StepKind> {
        (self.kind != StepKind::Nothing && self.verbs().len() <= 1).then_some(&self.kind)
    }

    /// The keys that say what the step does, in the order of the file.
    pub fn verbs(&self) -> Vec<GivenKey> {
        let mut given = self.given();
        let added = match &self.kind {
            StepKind::Added(step) => step.keys().collect(),
            _ => Vec::new(),
        };
        given.retain(|given| {
            VERBS.contains(&given.0) || added.contains(&given.0) || self.stray_requests.contains(given)
        });
        given
    }

    /// All keys that are given, in the order of the file.
    pub fn given(&self) -> Vec<GivenKey> {
        let mut given = self.strays.clone();
        given.extend(&self.stray_requests);
        self.add_given(&mut given);
        given.sort_by_key(|(_, place)| *place);
        given
    }

    /// The keys that go with what the step does.
    pub fn known_keys(&self) -> Vec<&'static str> {
        let mut own = Vec::new();
        self.kind.add_keys(&mut own);
        match self.kind {
            StepKind::Request(_) => return self.all_keys(),
            // All other steps have a key that names the action, and do not accept another one.
            _ => own.retain(|key| !VERBS.contains(key)),
        }
        own.extend(self.verbs().first().map(|(verb, _)| *verb));
        match self.kind {
            StepKind::Added(_) | StepKind::WebSocket(_) => own.extend(OF_OTHERS),
            StepKind::Pause => own.push("think"),
            StepKind::Record => own.extend(["record", "think"]),
            _ => {}
        }
        let requests = match &self.kind {
            StepKind::Added(step) => step.keys().collect(),
            _ => Vec::new(),
        };
        in_order(requests.into_iter(), std::iter::empty()).filter(|key| own.contains(key)).collect()
    }

    /// The keys of all kinds together with those of its own.
    fn all_keys(&self) -> Vec<&'static str> {
        let mut keys = Vec::new();
        self.add_keys(&mut keys);
        keys
    }

    /// Keeps the kind that the keys decide for; the keys of all others become strays.
    fn decide(&mut self, kinds: [StepKind; 8]) {
        let given = kinds.map(|kind| {
            let mut keys = Vec::new();
            kind.add_given(&mut keys);
            (kind, keys)
        });
        let all = given.iter().flat_map(|(_, keys)| keys);
        let added: Vec<_> = DocumentParts::current().request_keys().collect();
        let is_verb = |key: &&str| VERBS.contains(key) || added.contains(key);
        let verb = all.clone().filter(|(key, _)| is_verb(key)).min_by_key(|(_, place)| *place);
        // A script may choose the server by itself.
        let decisive = verb.or_else(|| all.clone().find(|(key, _)| *key == "script")).copied();
        if decisive.is_none() {
            self.kind = match (self.record.is_empty(), self.think.is_absent()) {
                (false, _) => StepKind::Record,
                (true, false) => StepKind::Pause,
                (true, true) => StepKind::Nothing,
            };
        }
        for (kind, keys) in given {
            match decisive {
                Some(decisive) if keys.contains(&decisive) => self.kind = kind,
                _ if matches!(kind, StepKind::Added(_)) => self.stray_requests.extend(keys),
                _ => self.strays.extend(keys),
            }
        }
    }
}

impl Serialize for StepSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let bodies = self.request().map(|request| request.body.added.keys());
        let requests = match &self.kind {
            StepKind::Added(step) => Some(step.keys()),
            _ => None,
        };
        for key in in_order(requests.into_iter().flatten(), bodies.into_iter().flatten()) {
            self.write(key, &mut map)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for StepSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = StepSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<StepSpec, M::Error> {
                let mut step = StepSpec::default();
                let mut kinds = StepKind::all();
                while let Some(key) = map.next_key::<String>()? {
                    let mut is_known = step.read(&key, &mut map)?;
                    for kind in &mut kinds {
                        is_known = is_known || kind.read(&key, &mut map)?;
                    }
                    if !is_known {
                        return Err(de::Error::unknown_field(&key, &KEYS));
                    }
                }
                step.decide(kinds);
                Ok(step)
            }
        }
        deserializer.deserialize_struct(Self::NAME, &KEYS, Visitor)
    }
}

/// The keys of all kinds.
impl JsonSchema for StepKind {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StepKind".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let parts = [
            AddedStep::json_schema(generator),
            WebSocketStep::json_schema(generator),
            RequestStep::json_schema(generator),
            SetStep::json_schema(generator),
            RowsStep::json_schema(generator),
            BranchStep::json_schema(generator),
            RepetitionStep::json_schema(generator),
            ParallelStep::json_schema(generator),
        ];
        let properties = parts.iter().filter_map(|part| part.get("properties").and_then(Value::as_object));
        let properties: Map<String, Value> =
            properties.flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        schemars::json_schema!({"type": "object", "properties": properties})
    }
}

/// Completes the schema of a step: no key is required, others are not allowed, and they have their order.
fn close(schema: &mut Schema) {
    schema.remove("required");
    schema.insert("additionalProperties".to_owned(), false.into());
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    let mut keyed = std::mem::take(properties);
    let parts = DocumentParts::current();
    let keys = in_order(parts.request_keys(), parts.body_keys());
    properties.extend(keys.filter_map(|key| keyed.remove_entry(key)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_belongs_to_one_part() {
        let mut keys = Vec::new();
        StepSpec::default().add_keys(&mut keys);
        StepKind::all().iter().for_each(|kind| kind.add_keys(&mut keys));
        keys.sort_unstable();
        let mut known = KEYS.to_vec();
        known.sort_unstable();
        assert_eq!(keys, known);
        assert!(VERBS.iter().chain(&OF_OTHERS).all(|key| KEYS.contains(key)));
    }
}
