//! Values as they were typed, before anything is parsed.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::document::LoadedDocument;
use crate::{Place, Problem};

use crate::ScriptPatch;

/// One value as it was typed, with its source.
#[derive(Clone, PartialEq, Eq)]
pub struct RawValue {
    /// The text.
    pub text: String,
    /// Name of its source, for messages: `--rate`, `run.rate`, `PLIMSOLL_RATE`.
    pub by: Cow<'static, str>,
    /// Where it stands, if a plan file has it.
    pub place: Option<Place>,
    /// Meaning of this flag's letter in other tools: the advice when the text makes no sense here.
    pub habit: Option<&'static str>,
    /// Set if the value is known to be wrong and has been reported. It causes no further messages.
    pub reported: bool,
}

impl RawValue {
    /// `text`, given by the flag `by`.
    pub fn new(by: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { text: text.into(), by: by.into(), place: None, habit: None, reported: false }
    }

    /// The same at a place in the plan file. The paths that it names are relative to the plan's folder then.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// A problem with this value, at its place.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(message).at(self.place)
    }

    /// The same with advice for people who know the letter from elsewhere.
    #[must_use]
    pub fn with_habit(mut self, habit: &'static str) -> Self {
        self.habit = Some(habit);
        self
    }
}

/// Without the text: it may be a secret.
impl fmt::Debug for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.by)
    }
}

/// A setting without a value, which may be on, off or left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switch(pub Option<RawValue>);

impl Switch {
    /// Switched on by the flag `by`.
    pub fn on(by: impl Into<Cow<'static, str>>) -> Self {
        Self(Some(RawValue::new(by, "true")))
    }

    /// Returns the value that switched it on, if it is on.
    pub fn given(&self) -> Option<&RawValue> {
        self.0.as_ref().filter(|given| given.text == "true" && !given.reported)
    }

    /// Returns `true` if it is on.
    pub fn is_on(&self) -> bool {
        self.given().is_some()
    }
}

/// Values as they were typed, before anything is parsed. Absent fields take their defaults.
///
/// The formats are those of the command line; `plimsoll run --help` describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanPatch {
    /// The URLs; the load is shared evenly.
    pub urls: Vec<RawValue>,
    /// The plan file. Its scenarios take the place of URLs.
    pub document: Option<Arc<LoadedDocument>>,

    /// Connections: users of the closed model, most connections of the open one.
    pub connections: Option<RawValue>,
    /// Iterations to measure.
    pub iterations: Option<RawValue>,
    /// Length of the measured part.
    pub duration: Option<RawValue>,
    /// Worker threads.
    pub threads: Option<RawValue>,
    /// Arrival rate of the open model.
    pub rate: Option<RawValue>,
    /// Requests per second and connection, beside [`crud`](Self::crud).
    pub rps: Option<RawValue>,
    /// `iterations` or `requests`.
    pub rate_of: Option<RawValue>,
    /// Stages of the open model.
    pub stages: Option<RawValue>,
    /// Users of the closed model.
    pub users: Option<RawValue>,
    /// Stages of the closed model.
    pub user_stages: Option<RawValue>,
    /// `uniform` or `poisson`.
    pub arrival: Option<RawValue>,
    /// `queue`, `drop` or `grow`.
    pub overload: Option<RawValue>,
    /// Unrecorded lead-in.
    pub warmup: Option<RawValue>,
    /// Wait for owed responses after the end.
    pub drain: Option<RawValue>,
    /// Limit for a whole response.
    pub timeout: Option<RawValue>,
    /// The same by another name.
    pub stream_timeout: Option<RawValue>,
    /// The same as a number of milliseconds, beside [`crud`](Self::crud).
    pub stream_timeout_ms: Option<RawValue>,
    /// Limit for a connection to be established.
    pub connect_timeout: Option<RawValue>,
    /// Seed of every random choice.
    pub seed: Option<RawValue>,
    /// The seed if none is given; the caller draws it.
    pub default_seed: u64,

    /// Method.
    pub method: Option<RawValue>,
    /// Headers, `Name: value`.
    pub headers: Vec<RawValue>,
    /// Body: text, or `@file`.
    pub body: Option<RawValue>,
    /// `user:password`, or `@file`.
    pub basic: Option<RawValue>,
    /// Token, or `@file`.
    pub bearer: Option<RawValue>,
    /// Which of the credentials are meant: `basic`, `bearer` or `jwt`.
    pub auth: Option<RawValue>,
    /// The key that a JSON Web Token is signed with: a file, or `env:NAME`.
    pub jwt_key: Option<RawValue>,
    /// Algorithm of its signature.
    pub jwt_alg: Option<RawValue>,
    /// Its claims, a JSON object.
    pub jwt_claims: Option<RawValue>,
    /// Its lifetime.
    pub jwt_lifetime: Option<RawValue>,
    /// Share of the requests that clients abort, in percent.
    pub abort_pct: Option<RawValue>,
    /// Part in the middle of which they abort: `request`, `response` or `either`.
    pub abort_at: Option<RawValue>,
    /// Share of the requests whose answer clients do not wait for, in percent.
    pub abandon_pct: Option<RawValue>,
    /// Time that they wait then.
    pub abandon_after: Option<RawValue>,
    /// Redirects to follow.
    pub follow_redirects: Option<RawValue>,

    /// Create, update and delete a resource instead of sending the same request.
    pub crud: CrudPatch,

    /// Let a script of wrk's make the requests.
    pub script: ScriptPatch,

    /// Requests in flight on one HTTP/1.1 connection.
    pub pipeline: Option<RawValue>,
    /// Requests in flight on one HTTP/2 connection; may be given twice with the same value.
    pub streams: Vec<RawValue>,
    /// Close a connection after so many requests.
    pub max_requests_per_connection: Option<RawValue>,
    /// Use every connection for one request.
    pub disable_keepalive: Switch,
    /// Close a connection of this age.
    pub connection_lifetime: Option<RawValue>,
    /// Close a connection that was idle for so long.
    pub connection_inactivity: Option<RawValue>,
    /// New connections per second until all are open.
    pub connection_rate: Option<RawValue>,
    /// Local addresses.
    pub source_ips: Vec<RawValue>,
    /// `host:port:address[,address…]`.
    pub resolve: Vec<RawValue>,
    /// `host1:port1:host2:port2`.
    pub connect_to: Vec<RawValue>,
    /// Path of a unix socket that replaces every address.
    pub unix_socket: Option<RawValue>,
    /// Only IPv4.
    pub ipv4: Switch,
    /// Only IPv6.
    pub ipv6: Switch,

    /// Do not verify certificates.
    pub insecure: Switch,
    /// PEM file of authorities that replaces the system's.
    pub cacert: Option<RawValue>,
    /// PEM file of the client's certificate.
    pub cert: Option<RawValue>,
    /// PEM file of the client's key.
    pub key: Option<RawValue>,
    /// `1.2` or `1.3`.
    pub tls: Option<RawValue>,
    /// Name for SNI and verification instead of the URL's host.
    pub sni: Option<RawValue>,
    /// File that TLS secrets are appended to.
    pub key_log: Option<PathBuf>,

    /// HTTP/1.1 was asked for.
    pub http1: Switch,
    /// HTTP/2 was asked for.
    pub http2: Switch,
    /// HTTP/2 without TLS was asked for.
    pub http2_prior_knowledge: Switch,
    /// Protocols to offer over TLS.
    pub alpn: Option<RawValue>,
    /// Bits of a stream's window.
    pub window_bits: Option<RawValue>,
    /// Bits of a connection's window.
    pub connection_window_bits: Option<RawValue>,
    /// Header table that servers may use.
    pub header_table_size: Option<RawValue>,
    /// Most that is used of a server's header table.
    pub encoder_header_table_size: Option<RawValue>,
    /// Largest frame that servers may send.
    pub max_frame_size: Option<RawValue>,
    /// Time between PINGs.
    pub ping_interval: Option<RawValue>,

    /// Smallest start lag, for a whole core.
    pub precise: Switch,
    /// `adaptive`, `shared` or `precise`.
    pub pacing: Option<RawValue>,
    /// `auto`, `epoll` or `uring`.
    pub backend: Option<RawValue>,
    /// Limit of a response head.
    pub max_head_bytes: Option<RawValue>,
    /// Skip the request before the run.
    pub no_preflight: Switch,
    /// Thresholds on the figures.
    pub thresholds: Vec<RawValue>,
    /// `true` if the run ends as soon as one of them is shown not to hold.
    pub abort_on_fail: bool,
    /// Length of the intervals of live figures.
    pub interval: Option<RawValue>,
    /// File that the live statistics are written to.
    pub stats: Option<RawValue>,
    /// File that gets a line for every request.
    pub log: Option<RawValue>,
    /// File that failed requests and their responses are written to.
    pub failed: Option<RawValue>,
    /// Names of secrets, besides those that are known.
    pub redact: Vec<RawValue>,
    /// File that is watched for the rate.
    pub rate_file: Option<RawValue>,
    /// Address of the control port.
    pub control: Option<RawValue>,
    /// Switches h2loadrunner's `GET /config` on there.
    pub control_h2loadrunner: Switch,
    /// Highest rate that may be set while the run goes on.
    pub max_rate: Option<RawValue>,
}

impl PlanPatch {
    /// Returns the setting that gives the credentials, if there is one.
    pub(crate) fn credentials(&self) -> Option<&RawValue> {
        self.basic.as_ref().or(self.bearer.as_ref()).or(self.jwt_key.as_ref())
    }
}

/// The scenario of h2loadrunner's command line: create a resource, update it, delete it. Any of these asks
/// for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrudPatch {
    /// Method of the request that creates.
    pub create_method: Option<RawValue>,
    /// Method of the request that updates; without it, nothing is updated.
    pub update_method: Option<RawValue>,
    /// Method of the request that deletes; without it, nothing is deleted.
    pub delete_method: Option<RawValue>,
    /// Header of the first response that says where the resource is.
    pub resource_header: Option<RawValue>,
    /// Text that is replaced by a number.
    pub variable_name: Option<RawValue>,
    /// The first number.
    pub variable_start: Option<RawValue>,
    /// The number behind the last one.
    pub variable_end: Option<RawValue>,
    /// File with the body of the request that creates.
    pub create_data: Option<RawValue>,
    /// File with the body of the request that updates.
    pub update_data: Option<RawValue>,
}

impl CrudPatch {
    /// The first of them that is given.
    pub(crate) fn first(&self) -> Option<&RawValue> {
        let all = [
            &self.create_method,
            &self.update_method,
            &self.delete_method,
            &self.resource_header,
            &self.variable_name,
            &self.variable_start,
            &self.variable_end,
            &self.create_data,
            &self.update_data,
        ];
        all.into_iter().flatten().next()
    }
}
