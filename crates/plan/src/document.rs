//! The plan file: YAML or JSON, as it is written.
//!
//! These types are the format: the JSON Schema is generated from them, and the descriptions in it are their
//! comments. Scalars are kept as they were typed ([`Text`]), each with its place in the file, so that what is
//! wrong with a value is said where it stands.

mod check;
mod field;
mod form;
mod json;
mod reader;
mod schema;
mod secrets;
mod source;
mod title;
mod tree;
mod yaml;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use check::StepKind;
pub use field::{Field, Keyed, Text};
pub use form::DocumentFormat;
pub use source::{LoadedDocument, Source};
pub(crate) use title::{BY_SCRIPT, SAME_URL, StepNames};
pub(crate) use tree::{LARGEST_TEXT, too_large};

pub use crate::settings::Settings;

/// A plan: who is asked for what, how often, and what has to hold.
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
    /// Variables and their first values, which are templates rendered at the begin of each iteration.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub variables: Keyed<Field<Text>>,
    /// Sources of data. Each iteration takes a row of every source that its scenario uses.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub data: Keyed<DataSpec>,
    /// JSON Web Tokens that are signed here, by the names that `${token(name)}` uses.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub tokens: Keyed<TokenSettings>,
    /// Scenarios that users carry out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<Field<ScenarioSpec>>,
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
    /// Its name in reports.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub name: Field<Text>,
    /// Its length: `30s`, `5m`. Stages have their own.
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
    /// Its claims, an object; its texts are templates without variables.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub claims: Field<serde_json::Value>,
    /// Claims that are made at each signing, of `iat`, `exp`, `nbf` and `jti`. Default: `iat` and `exp`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<Field<Text>>,
    /// From `iat` to `exp`, in whole seconds. Default: `5m`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub lifetime: Field<Text>,
    /// It is signed again so long before it expires. Default: a quarter of its lifetime, at most `30s`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub refresh_before: Field<Text>,
}

/// Behaviour of one kind of user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ScenarioSpec {
    /// Its name in reports.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub name: Field<Text>,
    /// The target of its steps; the only one, if there is but one.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub target: Field<Text>,
    /// Its share of the iterations, beside the weights of the others. Default: 1.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub weight: Field<Text>,
    /// It joins so long after the start of the run.
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
    /// Its steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Field<StepSpec>>,
}

/// One step: a request (`get`, `post`, … or `request`), or one of `set`, `think`, `if`, `repeat`, `while`,
/// `parallel`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct StepSpec {
    /// Its name in reports. Default: method and path.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub name: Field<Text>,
    /// GET this path or URL.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub get: Field<Text>,
    /// POST to this path or URL.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub post: Field<Text>,
    /// PUT to this path or URL.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub put: Field<Text>,
    /// PATCH this path or URL.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub patch: Field<Text>,
    /// DELETE this path or URL.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub delete: Field<Text>,
    /// HEAD of this path or URL.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub head: Field<Text>,
    /// Path or URL for any other `method`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub request: Field<Text>,
    /// Ask a cache, which is a target with a URL like `carbon://127.0.0.1:5500/name`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub cache: Field<CacheSpec>,
    /// Any method. Default: GET, or POST if there is a body.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub method: Field<Text>,
    /// Ask for the same URL as the request before.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub same_url: Field<bool>,
    /// The target, if it is not the scenario's.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub target: Field<Text>,
    /// Headers, beside those of the scenario. An empty value leaves one out.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub headers: Keyed<Field<Text>>,
    /// Body; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub body: Field<Text>,
    /// File with the body, sent as it is.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub body_file: Field<Text>,
    /// File with the body; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub template_file: Field<Text>,
    /// Body as JSON, with `content-type: application/json`; its texts are templates.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub json: Field<serde_json::Value>,
    /// Body as a batch of synthesized metrics, logs, traces or events, another one each time, with the
    /// headers that its format needs: what `plimsoll ingest --print-plan` shows.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub batch: Field<serde_json::Value>,
    /// Body as a signed message for a canister of the Internet Computer, another one each time: what
    /// `plimsoll canister --print-plan` shows.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub canister: Field<CanisterSpec>,
    /// Send the request again until its answer has come. All of that is one request with one response time
    /// and one time limit.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub poll: Field<PollSpec>,
    /// Limit for the whole response, instead of the run's.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub timeout: Field<Text>,
    /// Action after a request that has failed or timed out: `end` ends the iteration, `continue` goes on with
    /// the next step. An iteration that lacks a value which the request was to take ends in any case.
    /// Default: `end`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub on_failure: Field<Text>,
    /// Expectations on the response. Default: a status below 400.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub expect: Field<ExpectSpec>,
    /// Values to take from the exchange, by the names of the variables they go into.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub extract: Keyed<Field<ExtractSpec>>,
    /// Keep a row of a pool for each element of an array in the JSON of the response:
    /// `{orders: {each: /data, id: /id}}`. `each` is where the array is (default: the whole body), the others
    /// are the variables of the pool and where their values are in an element.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub collect: Keyed<Field<Keyed<Field<Text>>>>,
    /// Forget all cookies before the request.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub clear_cookies: Field<bool>,
    /// Lua that makes the request or judges the response: source, or the name of a file.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub script: Field<Text>,
    /// Think time after the request; or, without one, a pause: `100ms`, `{uniform: [1s, 3s]}`,
    /// `{exponential: 2s}`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub think: Field<PauseSpec>,
    /// Set variables to these templates.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub set: Keyed<Field<Text>>,
    /// Keep the values of variables as a row of a pool, for any iteration: `{orders: [id, version]}`.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub keep: Keyed<Field<Row>>,
    /// Set the variables of a pool to one of its rows, which stays. If it is empty, they are not set.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub pick: Field<Text>,
    /// The same with a row that leaves the pool, so that nobody else gets it.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub take: Field<Text>,
    /// A condition: `${role} == admin`. With `then`, and perhaps `else`.
    #[serde(rename = "if", skip_serializing_if = "Field::is_absent")]
    pub condition: Field<Text>,
    /// Steps if the condition holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Field<StepSpec>>,
    /// Steps if it does not.
    #[serde(rename = "else", skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<Field<StepSpec>>,
    /// Number of times to carry out `steps`: a whole number, or a template of one.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub repeat: Field<Text>,
    /// Carry out `steps` as long as this condition holds.
    #[serde(rename = "while", skip_serializing_if = "Field::is_absent")]
    pub while_condition: Field<Text>,
    /// The steps of a loop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Field<StepSpec>>,
    /// Requests that are sent at once; the iteration goes on when all have been answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parallel: Vec<Field<StepSpec>>,
}

/// A request to a cache: exactly one of put, get, delete and ping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CacheSpec {
    /// Store a value under this key; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub put: Field<Text>,
    /// The value of this key; a template. One that is not there has the status 404.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub get: Field<Text>,
    /// Forget this key; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub delete: Field<Text>,
    /// Check that the cache answers.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub ping: Field<bool>,
    /// Value to store; a template. Default: nothing.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub value: Field<Text>,
    /// File with the value to store, sent as it is.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub value_file: Field<Text>,
}

/// A message for a canister: exactly one of query, update and state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CanisterSpec {
    /// Call this method as a query.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub query: Field<Text>,
    /// Call this method as an update.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub update: Field<Text>,
    /// Ask what became of the update that this iteration has called last.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub state: Field<bool>,
    /// The canister: a principal as text, `aaaaa-aa`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub id: Field<Text>,
    /// The argument: bytes in hexadecimal. Default: none.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub arg: Field<Text>,
    /// An argument of so many bytes instead: zeros, or other bytes each time with `random`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub arg_size: Field<Text>,
    /// Use random bytes for `arg_size`, other ones each time.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub random: Field<bool>,
    /// Give each message a nonce, so that no two are the same. Default: true for updates.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub nonce: Field<bool>,
    /// A PEM file with the key that signs: Ed25519, secp256k1, P-256. Default: none; messages are anonymous.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub key: Field<Text>,
    /// Validity of messages. Default: 4m; replicas take no more than 5m.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub expiry: Field<Text>,
    /// Threads per worker that sign ahead. Default: 1.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub signers: Field<Text>,
    /// A variable that is set while the answer to an update is still to come.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub pending: Field<Text>,
}

/// Repetition of a request until its answer has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PollSpec {
    /// Expectations that make a response the answer; the step's other ones are checked only then. A
    /// canister's `state` recognises its answer by itself.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub until: Field<ExpectSpec>,
    /// The first pause. Default: 100ms.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub every: Field<Text>,
    /// Factor by which each pause is longer than the one before. Default: 1.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub backoff: Field<Text>,
    /// The longest pause. Default: 10s.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub at_most: Field<Text>,
}

/// Think time of a user: a duration, or one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self", rename = "PauseSpec")]
#[non_exhaustive]
pub struct PauseSpec {
    /// Always as long. Written short, it is this.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub fixed: Field<Text>,
    /// Uniformly distributed between two durations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uniform: Vec<Field<Text>>,
    /// Exponentially distributed with this mean.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub exponential: Field<Text>,
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

/// A value to take: exactly one place, and what is made of it.
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
    /// Take rows from so many equal parts in turn, as if each of so many clients had its own: the first row
    /// of each, then the second of each. Goes with the order `sequential`.
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
    /// Allow scripts to open files and start processes (`io`, `os`). Default: false.
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

impl Document {
    /// Document format of plan files.
    pub(crate) const FORM: DocumentFormat = DocumentFormat {
        noun: "plan",
        schema: "plan",
        title: "A plan of Plimsoll",
        short_forms: SHORT_FORMS,
    };
}

/// Types that may be written short, as one of their fields alone; and the name of that field.
pub(crate) const SHORT_FORMS: &[(&str, &str)] =
    &[("TargetSpec", "url"), ("PauseSpec", "fixed"), ("MatchSpec", MATCH_PLAIN), ("ThresholdSpec", "that")];

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
    ThresholdSpec: that,
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
