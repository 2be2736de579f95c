//! The plan file: YAML or JSON, as it is written.
//!
//! These types are the format: the JSON Schema is generated from them, and the descriptions in it are their
//! comments. Scalars are kept as they were typed ([`Text`]), each with its place in the file, so that a
//! problem with a value is reported at its place.
//!
//! Importers make a [`Document`], and the crate `plan` compiles one. Nothing here knows what is sent.
#![forbid(unsafe_code)]

pub mod settings;

mod bounds;
mod check;
mod field;
mod files;
mod form;
mod function;
mod json;
mod made;
mod metric;
mod parts;
mod plan_check;
mod problem;
mod raw_value;
mod reader;
mod schema;
mod secrets;
mod source;
mod step;
mod title;
mod tree;
mod yaml;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use bounds::{LONGEST_DATA_HEAD, MOST_STEPS};
pub use field::{Field, Keyed, Text, unescaped};
pub use files::{ConfinedFiles, FileKind, Files, KeyLogFile, RefusedFile};
pub use form::DocumentFormat;
pub use function::{FUNCTIONS, is_function};
pub use made::{Flags, MadeDocument};
pub use metric::{MetricSpec, RecordSpec};
pub use parts::{
    AddedKey, BodyKey, BodyValue, DocumentParts, ReadValue, StepKey, StepValue, ValueField, ValueKind,
};
pub use plan_check::PlanCheck;
pub use problem::{Place, Problem, Problems};
pub use raw_value::RawValue;
pub use settings::{Setting, SettingKind, SettingLayers, Settings};
pub use source::{DocumentOrigin, LoadedDocument, Source};
pub use step::*;
pub use title::{BY_SCRIPT, SAME_URL, StepNames};
pub use tree::{LARGEST_TEXT, too_large};

/// A plan: targets, scenarios, load and thresholds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Document {
    /// Name of the plan in reports.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub name: Field<Text>,
    /// Purpose of the plan. It has no effect.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub description: Field<Text>,
    /// Settings of the load. Every key is the long name of a flag of `plimsoll run`, with `_` for `-`, and
    /// its value is written as for that flag.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub run: Field<Settings>,
    /// The parts of the run, one after another, each with its own load and length; the model is the same for
    /// all. With them, `run` says nothing about the load over time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Field<PhaseSpec>>,
    /// The servers under test, by the names that scenarios and steps use. Without them, steps have whole
    /// URLs.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub targets: Keyed<TargetSpec>,
    /// Variables and their first values, which are templates rendered at the beginning of each iteration.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub variables: Keyed<Field<Text>>,
    /// Sources of data. Each iteration takes a row of every source that its scenario uses.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub data: Keyed<DataSpec>,
    /// JSON Web Tokens that are signed here, by the names that `${token(name)}` uses.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub tokens: Keyed<TokenSettings>,
    /// Metrics that steps record values of, by their names. A metric that is recorded and not named here is a
    /// trend.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub metrics: Keyed<Field<MetricSpec>>,
    /// Steps that are carried out once per run, before the load: variables that they set are there in every
    /// iteration and in `teardown`. If a request of them fails, no load begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Field<StepSpec>>,
    /// Steps that are carried out again and again beside the load, and replace values of `setup`: a token
    /// before it expires.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub refresh: Field<RefreshSpec>,
    /// Scenarios that users carry out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<Field<ScenarioSpec>>,
    /// Steps that are carried out once per run, after the load, however it ended. A request of them that
    /// fails is a warning.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub teardown: Vec<Field<StepSpec>>,
    /// Conditions that have to hold for the run to pass; if one does not, the exit code is 99.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Field<ThresholdSpec>>,
    /// Permissions and limits of scripts.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub scripts: Field<ScriptSettings>,
}

/// A part of the run: its name, exactly one of `rate`, `stages`, `users` and `user_stages`, and with `rate`
/// and `users` its length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PhaseSpec {
    /// Name of the phase in reports.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub name: Field<Text>,
    /// Length of the phase: `30s`, `5m`. Stages have their own.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub duration: Field<Text>,
    /// Record this phase. Default: true. Phases that are not recorded are the warm-up, and come first.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub measured: Field<bool>,
    /// Open model: the arrival rate of iterations, for the whole run: `5000`, `5k/s`, `300/m`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub rate: Field<Text>,
    /// Open model: stages, `30s@1000,1m@5000`. They go on from the rate at which the phase before ends.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub stages: Field<Text>,
    /// Closed model: the number of users.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub users: Field<Text>,
    /// Closed model: stages, `10s@5,1m@50`. They go on from the users with whom the phase before ends.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub user_stages: Field<Text>,
}

/// A server under test, or a pool of servers that share the load. Written short, it is its URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self", rename = "TargetSpec")]
#[non_exhaustive]
pub struct TargetSpec {
    /// Scheme, host and port, and a path that is put in front of the paths of steps.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub url: Field<Text>,
    /// More servers, `host[:port]`, that connections are spread over evenly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub share: Vec<Field<Text>>,
    /// Replace a lost connection by one to another server of the pool. Default: true.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub fail_over: Field<bool>,
    /// Move connections back when a lost server can be reached again. Default: false.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub fail_back: Field<bool>,
}

/// A JSON Web Token: signed by every worker before the run, and again before it expires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TokenSettings {
    /// The key: a file (bytes for HMAC, else PEM), or `env:NAME` for a variable of the environment.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub key: Field<Text>,
    /// `HS256`, `HS384`, `HS512`, `ES256`, `EdDSA` or `RS256`. Default: HS256.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub algorithm: Field<Text>,
    /// `kid` of its header.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub key_id: Field<Text>,
    /// Claims of the token, an object; texts in it are templates without variables.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub claims: Field<serde_json::Value>,
    /// Claims that are made at each signing, of `iat`, `exp`, `nbf` and `jti`. Default: `iat` and `exp`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<Field<Text>>,
    /// From `iat` to `exp`, in whole seconds. Default: `5m`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub lifetime: Field<Text>,
    /// Sign the token again this time before it expires. Default: a quarter of its lifetime, at most `30s`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub refresh_before: Field<Text>,
}

/// Steps that are carried out again and again beside the load. Values that they set replace those of the
/// setup in iterations that begin later, once all of the steps have succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RefreshSpec {
    /// Time from the end of the setup, or of one refresh, to the next: `4m`; at least a second.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub every: Field<Text>,
    /// The steps. Default: those of `setup`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Field<StepSpec>>,
}

/// Behaviour of one kind of user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ScenarioSpec {
    /// Name of the scenario in reports.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub name: Field<Text>,
    /// The target of its steps; the only one, if there is but one.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub target: Field<Text>,
    /// Share of the iterations, beside the weights of the other scenarios; 0 leaves this one out. Default: 1.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub weight: Field<Text>,
    /// Time after the start of the run at which the scenario joins.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub start_after: Field<Text>,
    /// Keep and send cookies, by RFC 6265. Default: false.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub cookies: Field<bool>,
    /// Headers of all its requests.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub headers: Keyed<Field<Text>>,
    /// Variables and their first values, beside those of the plan.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub variables: Keyed<Field<Text>>,
    /// Names of the data sources that it takes a row of. Default: those whose columns it names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<Field<Text>>,
    /// Steps of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Field<StepSpec>>,
}

/// Expectations on a response. All of them have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ExpectSpec {
    /// Accepted statuses: `200`, `2xx`, `200-204`; one or a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<Field<Text>>,
    /// Fields of the head by name. A plain text has to be equal.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub headers: Keyed<Field<MatchSpec>>,
    /// The body; one or a list. A plain text has to be in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<Field<MatchSpec>>,
    /// Values in the body, by JSON Pointer (`/a/0`) or JSONPath (`$.a[0]`). A plain text has to be equal.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub json: Keyed<Field<MatchSpec>>,
    /// Events of a response that is a `stream`: by `first`, `last`, `any`, or the number of the event from 1.
    /// The `[DONE]` of `stream: llm` is no event here.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub events: Keyed<Field<EventExpectSpec>>,
}

/// Expectations on an event of a stream. All of them have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct EventExpectSpec {
    /// The data of the event; one or a list. A plain text has to be in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<Field<MatchSpec>>,
    /// Values in its data, by JSON Pointer (`/a/0`) or JSONPath (`$.a[0]`). A plain text has to be equal.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub json: Keyed<Field<MatchSpec>>,
}

/// Comparison of a text: exactly one of these, or a plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self", rename = "MatchSpec")]
#[non_exhaustive]
pub struct MatchSpec {
    /// A plain text: what it means depends on what is compared.
    #[serde(rename = "(plain)", skip_serializing_if = "Field::is_absent")]
    #[schemars(skip)]
    pub plain: Field<Text>,
    /// The whole text.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub equals: Field<Text>,
    /// Prefix of the text.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub starts: Field<Text>,
    /// Suffix of the text.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub ends: Field<Text>,
    /// Part of the text.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub contains: Field<Text>,
    /// A regular expression that matches in it.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub regex: Field<Text>,
    /// `true` if the value has to exist, `false` if it must not.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub exists: Field<bool>,
    /// Negate the rest.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub not: Field<bool>,
}

/// A value to take: exactly one place, and its use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ExtractSpec {
    /// A field of the response.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub header: Field<Text>,
    /// A field of the request, or its `:path`, `:method` or `:authority`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub request_header: Field<Text>,
    /// A cookie.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub cookie: Field<Text>,
    /// The status code.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub status: Field<bool>,
    /// The whole body.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub body: Field<bool>,
    /// A value in the body, by JSON Pointer (`/a/0`) or JSONPath (`$.a[0]`).
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub json: Field<Text>,
    /// The event of a `stream` that the value is taken from, with `json`, `regex` or `body: true` for its
    /// data: `first`, `last`, `any` (the first that has it), or its number from 1.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub event: Field<Text>,
    /// A value in the body of the request, by JSON Pointer.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub request_json: Field<Text>,
    /// A value in the body, by XPath.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub xpath: Field<Text>,
    /// Regular expression to apply to the value (to the body, if no place is named). It takes the first
    /// group, or the whole match.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub regex: Field<Text>,
    /// Read the value as a reference to a resource, and resolve it to the path to request.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub as_path: Field<bool>,
    /// Read the value as such a reference, and resolve it to a whole URL: `get: ${name}` then goes to that
    /// server.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub as_url: Field<bool>,
    /// The value if there is none. Without it, the request has failed.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub default: Field<Text>,
}

/// A source of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DataSpec {
    /// A CSV file; its first row has the names of the columns unless `columns` has.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub csv: Field<Text>,
    /// A file of JSON objects, one a line.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub jsonl: Field<Text>,
    /// Values, or rows of values.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub list: Field<Vec<Field<Row>>>,
    /// Whole numbers: `[1, 100]` is 1 to 99; leading zeros of the end are kept: `[0000, 1000]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub range: Vec<Field<Text>>,
    /// Names of the columns: the variables that they go into. Default: the names in the file; of a list or a
    /// range, the name of the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Field<Text>>,
    /// Between the values of a CSV file. Default: `,`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub delimiter: Field<Text>,
    /// `sequential` (default), `random` (with replacement) or `shuffled` (each once).
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub order: Field<Text>,
    /// Take rows from this many equal parts in turn, as if each of as many clients had its own: the first row
    /// of each, then the second of each. Each part begins again behind its own last row. Goes with the order
    /// `sequential`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub slices: Field<Text>,
    /// After the last row: `wrap` (default), `stop` or `fail`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub at_end: Field<Text>,
    /// `split` (default): every worker has its own part; `whole`: each has all of it.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub share: Field<Text>,
    /// `iteration` (default): each takes a row; `user`: each user of the closed model takes one and keeps it.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub per: Field<Text>,
}

/// A row of a list: one value, or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row(pub Vec<Text>);

/// A condition that has to hold. Written short, it is the text: `p99<10ms`, `error_rate<0.1%`,
/// `rate>=0.99*target`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self", rename = "ThresholdSpec")]
#[non_exhaustive]
pub struct ThresholdSpec {
    /// The condition.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub that: Field<Text>,
    /// Of this scenario alone.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub scenario: Field<Text>,
    /// Of this step alone.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub step: Field<Text>,
    /// Of this phase alone.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub phase: Field<Text>,
    /// In every window of this length, instead of over the whole run.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub window: Field<Text>,
    /// End the run as soon as the condition does not hold. Default: false.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub abort_on_fail: Field<bool>,
    /// Time from the start of the measured part during which the condition is not checked.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub delay: Field<Text>,
}

/// Permissions and limits of scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ScriptSettings {
    /// Ask that scripts may open files and start processes (`io`, `os`), which --script-allow-system grants.
    /// Default: false.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub allow_system: Field<bool>,
    /// Longest time of one call. Default: 1s.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub time_limit: Field<Text>,
    /// Most memory of one worker's scripts. Default: 256MiB.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub memory_limit: Field<Text>,
    /// Folders in which `require` looks, beside that of the script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Field<Text>>,
}

impl TargetSpec {
    /// One server.
    pub fn new(url: Field<Text>) -> Self {
        Self { url, ..Self::default() }
    }
}

impl ScenarioSpec {
    /// A scenario that has these steps.
    pub fn new(name: impl Into<String>, steps: impl IntoIterator<Item = StepSpec>) -> Self {
        Self { name: Field::text(name), steps: step::list(steps), ..Self::default() }
    }
}

impl ExpectSpec {
    /// Expectation of one of these statuses.
    pub fn status<'s>(accepted: impl IntoIterator<Item = &'s str>) -> Self {
        Self { status: accepted.into_iter().map(Field::text).collect(), ..Self::default() }
    }

    /// Expectation on the body.
    pub fn body(content: MatchSpec) -> Self {
        Self { body: vec![Field::new(content)], ..Self::default() }
    }

    /// Expectation on the value at a place in the JSON of the body.
    pub fn json(place: &str, value: MatchSpec) -> Self {
        Self { json: Keyed::one(place, Field::new(value)), ..Self::default() }
    }
}

impl MatchSpec {
    /// Comparison with the whole text.
    pub fn equals(text: impl Into<String>) -> Self {
        Self { equals: Field::text(text), ..Self::default() }
    }

    /// Comparison with the beginning of the text.
    pub fn starts(text: impl Into<String>) -> Self {
        Self { starts: Field::text(text), ..Self::default() }
    }

    /// Requirement that the value exists.
    pub fn exists() -> Self {
        Self { exists: Field::new(true), ..Self::default() }
    }
}

impl ExtractSpec {
    /// The value at a place in the JSON of the body.
    pub fn json(place: impl Into<String>) -> Self {
        Self { json: Field::text(place), ..Self::default() }
    }

    /// The value with another one in its place if there is none.
    #[must_use]
    pub fn or(self, default: impl Into<String>) -> Self {
        Self { default: Field::text(default), ..self }
    }
}

impl ThresholdSpec {
    /// A condition that the whole run has to meet.
    pub fn new(condition: impl Into<String>) -> Self {
        Self { that: Field::text(condition), ..Self::default() }
    }
}

impl Document {
    /// The steps of the refresh: its own, or those of the setup; none if there is no refresh.
    pub fn refresh_steps(&self) -> &[Field<StepSpec>] {
        let refresh = self.refresh.get();
        refresh.map_or(&[], |refresh| if refresh.steps.is_empty() { &self.setup } else { &refresh.steps })
    }

    /// The steps of the setup, of the refresh, of each scenario and of the teardown.
    pub fn step_lists_mut(&mut self) -> impl Iterator<Item = &mut Vec<Field<StepSpec>>> {
        let of_scenarios = self.scenarios.iter_mut().filter_map(|scenario| match scenario {
            Field::Given(scenario, _) => Some(&mut scenario.steps),
            Field::Absent | Field::Bad(_) => None,
        });
        let refresh = match &mut self.refresh {
            Field::Given(refresh, _) => Some(&mut refresh.steps),
            Field::Absent | Field::Bad(_) => None,
        };
        let before = std::iter::once(&mut self.setup).chain(refresh);
        before.chain(of_scenarios).chain(std::iter::once(&mut self.teardown))
    }

    /// Document format of plan files.
    pub(crate) const FORM: DocumentFormat = DocumentFormat {
        noun: "plan",
        schema: "plan",
        title: "A plan of Plimsoll",
        short_forms: SHORT_FORMS,
    };
}

/// Types that may be written short, as one of their fields alone; and the name of that field.
pub(crate) const SHORT_FORMS: &[(&str, &str)] = &[
    ("TargetSpec", "url"),
    ("PauseSpec", "fixed"),
    ("MatchSpec", MATCH_PLAIN),
    ("ReceiveSpec", "equals"),
    ("ThresholdSpec", "that"),
    ("MetricSpec", "kind"),
    ("RecordSpec", "value"),
];

/// The name of [`MatchSpec::plain`], which can only be written short.
const MATCH_PLAIN: &str = "(plain)";

macro_rules! short_forms {
    ($($type:ident: $field:ident,)+) => {
        $(
            impl Serialize for $type {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    let short = Self { $field: self.$field.clone(), ..Self::default() };
                    match &self.$field {
                        Field::Given(text, _) if short == *self => text.serialize(serializer),
                        _ => Self::serialize(self, serializer),
                    }
                }
            }

            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    Self::deserialize(deserializer)
                }
            }
        )+
    };
}

short_forms! {
    TargetSpec: url,
    PauseSpec: fixed,
    MatchSpec: plain,
    ReceiveSpec: equals,
    ThresholdSpec: that,
    MetricSpec: kind,
    RecordSpec: value,
}

impl Serialize for Row {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [only] => only.serialize(serializer),
            all => all.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Text>::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Row {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Row".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let value = generator.subschema_for::<Text>();
        schemars::json_schema!({"anyOf": [value, {"type": "array", "items": value}]})
    }
}
