//! What was typed, before anything is parsed.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// One value as it was typed, and what it was given by.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    /// The text.
    pub text: String,
    /// The flag's name, for messages: `--rate`.
    pub by: Cow<'static, str>,
    /// What this flag's letter means in other tools: the advice when the text makes no sense here.
    pub habit: Option<&'static str>,
}

impl Given {
    /// `text`, given by the flag `by`.
    pub fn new(by: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { text: text.into(), by: by.into(), habit: None }
    }

    /// The same with advice for people who know the letter from elsewhere.
    #[must_use]
    pub fn with_habit(mut self, habit: &'static str) -> Self {
        self.habit = Some(habit);
        self
    }
}

/// Without the text: it may be a secret.
impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.by)
    }
}

/// What was typed, before anything is parsed. Absent fields take their defaults.
///
/// The formats are those of the command line; `plimsoll run --help` describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanPatch {
    /// The URLs; the load is shared evenly.
    pub urls: Vec<Given>,

    /// Connections: users of the closed model, most connections of the open one.
    pub connections: Option<Given>,
    /// Iterations to measure.
    pub iterations: Option<Given>,
    /// Length of the measured part.
    pub duration: Option<Given>,
    /// Worker threads.
    pub threads: Option<Given>,
    /// Arrival rate of the open model.
    pub rate: Option<Given>,
    /// Stages of the open model.
    pub stages: Option<Given>,
    /// `uniform` or `poisson`.
    pub arrival: Option<Given>,
    /// `queue`, `drop` or `grow`.
    pub overload: Option<Given>,
    /// Unrecorded lead-in.
    pub warmup: Option<Given>,
    /// Wait for owed responses after the end.
    pub drain: Option<Given>,
    /// Limit for a whole response.
    pub timeout: Option<Given>,
    /// Limit for a connection to be established.
    pub connect_timeout: Option<Given>,
    /// Seed of every random choice.
    pub seed: Option<Given>,
    /// The seed if none is given; the caller draws it.
    pub default_seed: u64,

    /// Method.
    pub method: Option<Given>,
    /// Headers, `Name: value`.
    pub headers: Vec<Given>,
    /// Body: text, or `@file`.
    pub body: Option<Given>,
    /// `user:password`, or `@file`.
    pub basic: Option<Given>,
    /// Token, or `@file`.
    pub bearer: Option<Given>,
    /// Redirects to follow.
    pub follow_redirects: Option<Given>,

    /// Requests in flight on one connection.
    pub pipeline: Option<Given>,
    /// Close a connection after so many requests.
    pub max_requests_per_connection: Option<Given>,
    /// Use every connection for one request.
    pub disable_keepalive: bool,
    /// Local addresses.
    pub source_ips: Vec<Given>,
    /// `host:port:address[,address…]`.
    pub resolve: Vec<Given>,
    /// `host1:port1:host2:port2`.
    pub connect_to: Vec<Given>,
    /// Path of a unix socket that replaces every address.
    pub unix_socket: Option<Given>,
    /// Only IPv4.
    pub ipv4: bool,
    /// Only IPv6.
    pub ipv6: bool,

    /// Do not verify certificates.
    pub insecure: bool,
    /// PEM file of authorities that replaces the system's.
    pub cacert: Option<Given>,
    /// PEM file of the client's certificate.
    pub cert: Option<Given>,
    /// PEM file of the client's key.
    pub key: Option<Given>,
    /// `1.2` or `1.3`.
    pub tls: Option<Given>,
    /// Name for SNI and verification instead of the URL's host.
    pub sni: Option<Given>,
    /// File that TLS secrets are appended to.
    pub key_log: Option<PathBuf>,
    /// HTTP/2 was asked for.
    pub http2: bool,

    /// Smallest start lag instead of smallest CPU cost.
    pub precise: bool,
    /// `auto`, `epoll` or `uring`.
    pub backend: Option<Given>,
    /// Limit of a response head.
    pub max_head_bytes: Option<Given>,
    /// Skip the request before the run.
    pub no_preflight: bool,
}
