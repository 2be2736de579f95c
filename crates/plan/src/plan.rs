//! The validated, immutable description of a run.
//!
//! A [`Plan`] has no strings left to parse and no `Option` that means "default": every limit is filled in.

use core::net::{IpAddr, SocketAddr};
use core::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_core::Redaction;
use plimsoll_core::{Nanos, Rate, Shard};
use plimsoll_metrics::{
    Awaited, Basis, Goodput, IntervalDownsampler, MetricSpec, Model, Outline, PhaseOutline, RateUnit,
    ScenarioOutline, ThresholdSpec,
};
use plimsoll_scenario::token::Signer;
use plimsoll_scenario::{
    AtEnd, BodySupply, FeedSpec, Fingerprint, ForwardProxy, Needs, Op, PoolSpec, Program, RequestTemplate,
    ResponseHandler, ScriptSource, Supplied, UrlScript, WebSocketAction,
};
use plimsoll_schedule::{Population, Process, Profile};
use plimsoll_wire::http1::Limits;
use plimsoll_wire::http2::{ClientOptions, HeaderBlockCache};
use plimsoll_wire::tls::ClientConfig;

use crate::{DynamicOrigins, InTurnProtocol, Opening, PrometheusServer, Protocol, Proxy, Refresh, StartTime};

/// The validated, immutable description of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Scenarios that iterations carry out, dealt in turn by their weights. Never empty.
    pub scenarios: Vec<Scenario>,
    /// The requests of all scenarios, scenario by scenario. Never empty.
    pub steps: Vec<Step>,
    /// The names of the variables of one iteration: values that its steps take from responses, and data.
    /// Every iteration has its own values.
    pub variables: Arc<[String]>,
    /// The data sources.
    pub feeds: Vec<FeedSpec>,
    /// Pools of rows that iterations keep for each other.
    pub pools: Vec<PoolSpec>,
    /// Metrics that steps record values of.
    pub metrics: Vec<MetricSpec>,
    /// The pool whose rows the run leaves to its caller.
    pub leaves: Option<u16>,
    /// The steps that are carried out once before the load, as a plan of their own.
    pub setup: Option<Arc<Plan>>,
    /// The steps that are carried out again and again beside the load.
    pub refresh: Option<Refresh>,
    /// The steps that are carried out once after the load, as a plan of their own.
    pub teardown: Option<Arc<Plan>>,
    /// Supplies of bodies that are made for requests.
    pub supplies: Vec<BodySupply>,
    /// The tokens that are signed for requests.
    pub tokens: Vec<Arc<Signer>>,
    /// The scripts, if there are any.
    pub scripts: Option<Arc<dyn ScriptSource>>,
    /// The script of wrk's, if there is one; it has a part before and after the run.
    pub wrk: Option<Arc<dyn UrlScript>>,
    /// Identifies the scenarios of a plan file apart from their requests: programs, checks, variables.
    pub logic: Fingerprint,
    /// The servers that the steps address, each with its own pool of connections. Never empty.
    pub targets: Vec<Target>,
    /// Settings for other servers; present if redirects are followed, or if a step's URL may be that of
    /// another server.
    pub dynamic_origins: Option<Arc<DynamicOrigins>>,
    /// Load model, which decides when iterations start.
    pub load: Load,
    /// Closed model: the users over time, for the whole run, from the start of the warm-up on; `None`: as
    /// many as connections, times the requests in flight on each. `None` in the open model.
    pub users: Option<Population>,
    /// The named parts of the run, in order and without gaps, from its start to its planned end; those that
    /// are not measured come first and are the warm-up. Empty if the plan names none.
    pub phases: Vec<PhaseOutline>,
    /// Order in which iterations go to the scenarios.
    pub dealing: Dealing,
    /// End of the measured part.
    pub end: End,
    /// Unrecorded lead-in before the measured part.
    pub warmup: Nanos,
    /// Time to wait for outstanding responses after the end of the load.
    pub drain: Nanos,
    /// Worker threads, at least 1.
    pub threads: u32,
    /// The part of the load that this process carries out. Rates, users, iterations and connections are those
    /// of the whole load.
    pub shard: Shard,
    /// Number of neighbouring shards that it has, from that one on: of a fleet, a stronger machine has more.
    /// Each has as many of its threads.
    pub held: u32,
    /// When the load begins.
    pub start: StartTime,
    /// Number and use of connections.
    pub connections: Connections,
    /// A request without a whole response after this time has timed out. Counted from its start.
    pub timeout: Nanos,
    /// A connection that is not established after this time has failed.
    pub connect_timeout: Nanos,
    /// Faults that clients make on purpose, if any.
    pub client_faults: Option<ClientFaults>,
    /// Follow at most this many redirects in a row; 0 takes them as responses.
    pub redirects: u32,
    /// Use of wake-ups in the open model.
    pub pacing: Pacing,
    /// Which driver backend to use.
    pub backend: BackendChoice,
    /// Seed of every random choice.
    pub seed: u64,
    /// Limits of the HTTP/1.1 parser.
    pub limits: Limits,
    /// Options of HTTP/2; `max_streams` is [`Connections::streams`].
    pub http2: ClientOptions,
    /// An HTTP/2 connection is asked for a sign of life (PING) as often as this; `None`: never.
    pub ping_interval: Option<Nanos>,
    /// `true` to send one request before the run and stop if it fails.
    pub preflight: bool,
    /// `true` to send a request once more that its server has not processed.
    pub resend: bool,
    /// Thresholds on the figures.
    pub thresholds: Vec<ThresholdSpec>,
    /// The server that thresholds on queries are asked of.
    pub prometheus: Option<PrometheusServer>,
    /// Bounds that a streamed request has to hold to count as goodput.
    pub goodput: Option<Goodput>,
    /// Length of the intervals that the run is cut into, and of which the windows of thresholds are made.
    pub interval: Nanos,
    /// Interval of live statistics: a multiple of [`interval`](Self::interval).
    pub statistics: Nanos,
    /// Link to the trace of a request, for reports.
    pub trace_link: Option<String>,
    /// Names and values that must not be shown: names and URLs of this plan are without secrets already.
    pub redaction: Redaction,
}

impl Plan {
    /// The names of its scenarios, steps and phases.
    pub fn outline(&self) -> Outline {
        let scenario = |scenario: &Scenario| ScenarioOutline {
            name: scenario.name.clone(),
            steps: scenario.steps.clone(),
        };
        Outline {
            scenarios: self.scenarios.iter().map(scenario).collect(),
            steps: self.steps.iter().map(|step| step.name.clone()).collect(),
            awaited: self.awaited(),
            phases: self.phases.clone(),
            paces_requests: self.paces_requests(),
            metrics: self.metrics.clone(),
        }
    }

    /// Kind of response that each step awaits. A message is an answer if the step just before sends one and
    /// awaits none.
    fn awaited(&self) -> Vec<Awaited> {
        let of_step = |step: &Step| match (step.request.websocket(), step.handler.event_stream()) {
            (Some(WebSocketAction::Receive), _) => Awaited::Push,
            (None, Some(_)) => Awaited::Stream,
            _ => Awaited::Answer,
        };
        let mut awaited: Vec<Awaited> = self.steps.iter().map(of_step).collect();
        for scenario in &self.scenarios {
            let mut owed = false;
            for op in scenario.program.ops() {
                match op {
                    Op::Send(step) => {
                        let action = self.steps.get(*step as usize).and_then(|step| step.request.websocket());
                        if owed && action == Some(WebSocketAction::Receive) {
                            awaited[*step as usize] = Awaited::Answer;
                        }
                        owed = matches!(action, Some(WebSocketAction::Send { answered: false, .. }));
                    }
                    Op::Pause(_)
                    | Op::Pace(_)
                    | Op::ScriptPause(_)
                    | Op::Set { .. }
                    | Op::Record(_)
                    | Op::Draw(_) => {}
                    _ => owed = false,
                }
            }
        }
        awaited
    }
}

/// Name of `held` neighbouring shards, by their numbers: `2/3`, or `2-4/7`.
pub fn shard_name(first: Shard, held: u32) -> String {
    let number = first.index + 1;
    match held {
        1 => format!("{number}/{}", first.of),
        _ => format!("{number}-{}/{}", first.index + held, first.of),
    }
}

impl Plan {
    /// Returns the shard of a worker of this process, by its number.
    pub const fn worker_shard(&self, worker: u32) -> Shard {
        let each = self.threads / self.held;
        self.shard.of_worker(worker, if each == 0 { 1 } else { each })
    }

    /// Returns the share of the whole load that this process carries out.
    pub fn share(&self) -> f64 {
        f64::from(self.held) / f64::from(self.shard.of)
    }

    /// Returns the shards of this process by their numbers, as `--shard` takes them: `2/3`, or `2-4/7`;
    /// `None` if it has the whole load.
    pub fn shard_name(&self) -> Option<String> {
        (self.held != self.shard.of).then(|| shard_name(self.shard, self.held))
    }

    /// Returns the number of the worker of this process that has a shard: the inverse of
    /// [`worker_shard`](Self::worker_shard).
    pub const fn worker_of(&self, shard: Shard) -> u32 {
        shard.index - self.worker_shard(0).index
    }

    /// Returns the protocols of other crates that its targets speak, each once.
    pub fn in_turn_protocols(&self) -> impl Iterator<Item = &'static InTurnProtocol> {
        let spoken = |target: &Target| match target.protocol {
            Protocol::InTurn(protocol) => Some(protocol),
            _ => None,
        };
        let is_new = move |(index, protocol): &(usize, &'static InTurnProtocol)| {
            !self.targets[..*index].iter().any(|target| spoken(target) == Some(*protocol))
        };
        let all = self.targets.iter().enumerate();
        all.filter_map(move |(index, target)| Some((index, spoken(target)?)))
            .filter(is_new)
            .map(|(_, protocol)| protocol)
    }

    /// Open model: whether arrivals are requests, and not iterations.
    pub const fn paces_requests(&self) -> bool {
        matches!(self.load, Load::Open { rate_of: RateUnit::Requests, .. })
    }

    /// Records that each request carries, by step; 0 for one that carries none.
    pub fn records(&self) -> Vec<u32> {
        let of_supply = |supplied: Supplied| match supplied.inquiry {
            true => 0,
            false => self.supplies[usize::from(supplied.supply)].records,
        };
        self.steps.iter().map(|step| step.request.supply().map_or(step.records, of_supply)).collect()
    }

    /// Returns the seed for the bodies of a supply, by its position in [`supplies`](Self::supplies). Two
    /// supplies of the same data have different seeds.
    pub fn supply_seed(&self, supply: usize) -> u64 {
        self.seed.wrapping_add((supply as u64) << 32)
    }

    /// Returns the facts about the plan that a record holds before the run begins.
    pub fn basis(&self) -> Basis {
        let (model, profile) = match &self.load {
            Load::Closed => (Model::Closed, None),
            Load::Open { profile, .. } => (Model::Open, Some(profile)),
        };
        Basis {
            model,
            warmup: self.warmup,
            paces_requests: self.paces_requests(),
            precise: self.pacing == Pacing::Precise,
            users: self.users.as_ref().map(|users| u64::from(users.peak())),
            users_pause: profile.is_none() && self.pauses(),
            users_end: profile.is_none() && self.ends_users(),
            asked_per_second: profile
                .filter(|_| self.end.duration.is_none())
                .map(|profile| profile.rate_at(self.warmup) * self.share()),
        }
    }

    /// The planned length of the measured part; `None` if the plan has none, or counts iterations.
    pub fn planned(&self) -> Option<Nanos> {
        self.end.duration.filter(|_| self.end.iterations.is_none())
    }

    /// Returns `true` if iterations pause: by think times, paces or the delays of a script.
    fn pauses(&self) -> bool {
        let pauses = |op: &Op| matches!(op, Op::Pause(_) | Op::Pace(_) | Op::ScriptPause(_));
        self.scenarios.iter().any(|scenario| scenario.program.ops().iter().any(pauses))
    }

    /// Returns `true` if iterations are counted, or data may end: users then end before others do.
    fn ends_users(&self) -> bool {
        self.end.iterations.is_some() || self.feeds.iter().any(|feed| feed.at_end == AtEnd::Stop)
    }

    /// When intervals are cut, since the start of the run: at the ends of the warm-up and of phases, in
    /// ascending order.
    pub fn cuts(&self) -> Vec<Nanos> {
        let warmup = Some(self.warmup).filter(|warmup| *warmup > Nanos::ZERO && self.phases.is_empty());
        warmup.into_iter().chain(self.phases.iter().map(PhaseOutline::end)).collect()
    }

    /// Creates the downsampler that keeps the intervals of a run.
    pub fn downsampler(&self) -> IntervalDownsampler {
        let planned = self.end.duration.map(|duration| self.warmup + duration);
        IntervalDownsampler::new(self.interval, planned, self.cuts(), self.outline())
    }

    /// When the first scenario joins, since the start of the run: before it no load is asked for.
    pub fn first_joining(&self) -> Nanos {
        first_joining(&self.scenarios)
    }

    /// Limit for a whole response to the request of this step.
    #[inline]
    pub fn timeout_of(&self, step: u32) -> Nanos {
        let Step { timeout, deadline, .. } = &self.steps[step as usize];
        timeout.unwrap_or(self.timeout).min(deadline.unwrap_or(Nanos::MAX))
    }
}

/// Steps of one iteration, in order. Each is started when the previous one has ended well, or has ended at
/// all if that one [goes on](Step::goes_on).
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name for the report.
    pub name: String,
    /// Steps of the scenario: a range of [`Plan::steps`], never empty.
    pub steps: Range<u32>,
    /// In which order and under which conditions they are carried out.
    pub program: Program,
    /// Number of the first instructions of the program that [give](Plan::give) variables the values of the
    /// setup.
    pub given: usize,
    /// Share of the iterations, beside the weights of the other scenarios; at least 1.
    pub weight: u32,
    /// Time after the start of the run, warm-up included, at which the scenario joins.
    pub start_after: Nanos,
}

/// One request of the plan.
#[derive(Clone, Debug)]
pub struct Step {
    /// Name for the report: method and URL, or the purpose of the step.
    pub name: String,
    /// Index into [`Plan::targets`].
    pub target: usize,
    /// The compiled request; for HTTP/2, too, if the target has a [`book`](Target::book).
    pub request: RequestTemplate,
    /// Processing of its response.
    pub handler: ResponseHandler,
    /// Identifies the source of the reaction.
    pub logic: Fingerprint,
    /// Parts of the exchange that are kept for the reaction and for scripts.
    pub needs: Needs,
    /// Limit for the whole response, if it is not [`Plan::timeout`].
    pub timeout: Option<Nanos>,
    /// The deadline that the server is told: the client waits no longer, either.
    pub deadline: Option<Nanos>,
    /// `true` if the iteration goes on after its request has failed, provided that it has the values which
    /// the request was to take.
    pub goes_on: bool,
    /// The script that makes its request.
    pub make_script: Option<u32>,
    /// The script that judges its response.
    pub check_script: Option<u32>,
    /// Records that each request carries by the plan's word, where its body is none of a supply; 0 for one
    /// that carries none.
    pub records: u32,
    /// Request to send where the URL is on another server than the target, which is known only when it is
    /// sent: the [leading variable](RequestTemplate::leading_variable) says it. `None` without such a
    /// variable, or where it always is a path of the target.
    pub away: Option<ForeignRequest>,
}

/// A request to a server that the plan need not know: the authority is that of the connection. Without the
/// credentials that are meant for the step's target alone.
#[derive(Clone, Debug)]
pub struct ForeignRequest {
    /// By `http`.
    pub plain: Arc<RequestTemplate>,
    /// By `https`.
    pub secure: Arc<RequestTemplate>,
}

/// One server: where it is and how to speak to it.
#[derive(Clone, Debug)]
pub struct Target {
    /// `host[:port]` as in the URL, for messages and the Host header.
    pub authority: String,
    /// The URLs that address it, for reports: as given, but without user, password and fragment. Each once,
    /// never empty.
    pub urls: Vec<String>,
    /// The address to connect to; resolved outside the hot path, before the run.
    pub address: Address,
    /// The proxy that connections to it, or to the members of its pool, go through.
    pub proxy: Option<Arc<Proxy>>,
    /// The servers that share the load, this one first; empty if there is only this one. Requests to a pool
    /// have the authority of the member in place of a slot.
    pub pool: Vec<PoolMember>,
    /// `true` if a lost connection to a member of the pool is replaced by one to another member.
    pub fail_over: bool,
    /// `true` if connections move back to a lost member when it can be reached again.
    pub fail_back: bool,
    /// TLS, if the scheme is https.
    pub tls: Option<TlsTarget>,
    /// Protocol spoken with it.
    pub protocol: Protocol,
    /// Beginning of each connection to it, if its protocol has one.
    pub opening: Option<Opening>,
    /// The header blocks of the steps that address it, sealed; there unless the protocol is
    /// [`Protocol::Http1`].
    pub book: Option<HeaderBlockCache>,
}

impl Target {
    /// The proxy that is handed its requests, in place of a tunnel to it.
    pub fn forward(&self) -> Option<&ForwardProxy> {
        let is_handed = self.tls.is_none() && self.protocol == Protocol::Http1;
        self.proxy.as_ref().filter(|_| is_handed)?.forward.as_ref()
    }

    /// The scheme of its URLs.
    pub fn scheme(&self) -> &'static str {
        self.protocol.scheme(self.tls.is_some()).scheme
    }
}

/// One of the servers that share the load of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolMember {
    /// `host[:port]`, for the Host header.
    pub authority: String,
    /// The address to connect to.
    pub address: Address,
    /// Name for SNI and verification, if the target speaks TLS.
    pub server_name: String,
}

/// The address of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host name or IP literal and a port, to be resolved; every resolved address is used in turn.
    Host {
        /// Host name or IP literal (without brackets).
        host: String,
        /// Port.
        port: u16,
    },
    /// Fixed addresses (`--resolve`).
    Fixed(Vec<SocketAddr>),
    /// A unix socket.
    Unix(PathBuf),
}

/// TLS towards a target.
#[derive(Clone, Debug)]
pub struct TlsTarget {
    /// Shared configuration (verification, versions, ALPN, session cache).
    pub config: ClientConfig,
    /// Name for SNI and verification.
    pub server_name: String,
    /// Identifies the settings of `config`, except keys: they cannot be read back from it.
    pub settings: Fingerprint,
}

/// Faults that clients commit, drawn for each request by the seed. Of a request at most one happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFaults {
    /// Share of the requests that are aborted, of [`WHOLE`](Self::WHOLE).
    pub abort: u64,
    /// The part in whose middle it is aborted.
    pub abort_at: Parts,
    /// Share of the requests whose answer is given up early, of [`WHOLE`](Self::WHOLE).
    pub abandon: u64,
    /// After this time, counted from the start of the request as its timeout is.
    pub abandon_after: Nanos,
}

/// Parts of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// The request: a part of it is sent.
    Request,
    /// The response: it is broken off when it begins.
    Response,
    /// One of them, each as likely as the other.
    Either,
}

/// Load model, which decides when iterations start.
#[derive(Clone, Debug)]
pub enum Load {
    /// Arrivals are scheduled and ignore responses.
    Open {
        /// The rate over time, for the whole run, from the start of the warm-up on.
        profile: Profile,
        /// Distribution of arrivals over time.
        process: Process,
        /// Unit of the rate. If it counts requests, a request of an iteration under way takes an arrival
        /// before another iteration begins. There are then as many requests as arrivals, however long
        /// iterations are, and weights of scenarios are shares of requests.
        rate_of: RateUnit,
        /// Handling of an arrival that finds every connection busy.
        overload: Overload,
    },
    /// Users, each starting its next iteration when its last one has ended: [`Plan::users`] says how many.
    Closed,
}

/// Order in which iterations go to scenarios, each of which has its share of every round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dealing {
    /// Each scenario is spread evenly over a round, and all rounds are alike.
    #[default]
    Even,
    /// Every round has an order of its own, drawn by the seed.
    Shuffled,
    /// Closed model with a number of users: the scenarios before the one of this number and those from it on
    /// have half of the users each, who carry out no others. The two sides have no target in common.
    Apart(u32),
}

/// Handling of an arrival that finds every connection busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// The arrival waits; its waiting is part of its response time.
    Queue,
    /// The arrival is dropped and counted.
    Drop,
    /// A connection is opened for it, up to [`Connections::max`]; beyond that it waits.
    Grow,
}

/// End of the measured part: whichever comes first. At least one is set. Without a duration, all iterations
/// are finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Length of the measured part.
    pub duration: Option<Nanos>,
    /// Number of measured iterations.
    pub iterations: Option<u64>,
}

/// Number and use of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Connections opened before the start, over all workers and targets.
    pub initial: u32,
    /// Largest number open at once, over all workers and servers; equals `initial` unless overload is `Grow`,
    /// or there are [`Plan::users`], who open one when they need it. In the closed model servers that come up
    /// while the run goes on are left out: each user has one to every server that it is led to.
    pub max: u32,
    /// Requests in flight on one HTTP/1.1 connection (pipelining depth), at least 1.
    pub depth: u32,
    /// Requests in flight on one HTTP/2 connection (concurrent streams), at least 1. A server may allow
    /// fewer.
    pub streams: u32,
    /// `true` if a connection is used again after a response; always for HTTP/2.
    pub keep_alive: bool,
    /// Close a connection after this many requests.
    pub max_requests: Option<u64>,
    /// Close a connection that is so old, once nothing is in flight on it.
    pub lifetime: Option<Nanos>,
    /// Close a connection on which nothing was in flight for this time.
    pub inactivity: Option<Nanos>,
    /// New connections per second, over all workers and targets, until `initial` of them are open; `None`:
    /// all at once. After that, a connection is opened whenever one is needed.
    pub rate: Option<Rate>,
    /// Local addresses to bind to, taken in turn.
    pub sources: Vec<IpAddr>,
    /// Use only addresses of this family.
    pub family: Family,
    /// Interval at which names are resolved again while the run goes on; `None`: once, before it.
    pub resolve_every: Option<Nanos>,
}

/// Address family to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// IPv4 and IPv6, as the resolver orders them.
    #[default]
    Any,
    /// Only IPv4.
    V4,
    /// Only IPv6.
    V6,
}

/// Use of wake-ups: the largest cost of a load generator after the system calls themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Start every request at its time for as long as the core has time to spare: each arrival has its own
    /// wake-up, polled for shortly before it. Above about 70 % of the core some arrivals share wake-ups, and
    /// as few as possible. Responses are gathered, with their kernel receive time.
    #[default]
    Adaptive,
    /// The cheapest load: from some 2,000/s on, arrivals share wake-ups, at most [`Pacing::BUDGET`] late.
    Shared,
    /// Start every request at its time, busy-polling up to 1 ms before it: a core for exactness.
    Precise,
}

impl Pacing {
    /// The name in settings and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adaptive => "adaptive",
            Self::Shared => "shared",
            Self::Precise => "precise",
        }
    }

    /// Most time by which [`Pacing::Shared`] may start a request late to share a wake-up, including the time
    /// to send everything due at that wake-up. It is below 1 ms by the overshoot of the timer (15–200 µs), so
    /// that the 99th percentile of the start lag stays below 1 ms on a machine that wakes its threads in
    /// time.
    pub const BUDGET: Nanos = Nanos::from_micros(800);
}

/// Reads the name of a pacing: `adaptive`, `shared`, `precise`.
///
/// # Errors
/// A message, if it is none of them.
pub fn parse_pacing(text: &str) -> Result<Pacing, String> {
    let all = [Pacing::Adaptive, Pacing::Shared, Pacing::Precise];
    let named = all.into_iter().find(|pacing| pacing.name() == text);
    named.ok_or_else(|| format!("`{text}` is not one of adaptive, shared, precise"))
}

/// When the first of these joins.
pub(crate) fn first_joining(scenarios: &[Scenario]) -> Nanos {
    scenarios.iter().map(|scenario| scenario.start_after).min().unwrap_or_default()
}

/// Which driver backend to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// io_uring where it works, else epoll.
    #[default]
    Auto,
    /// epoll.
    Epoll,
    /// io_uring; an error where it does not work.
    Uring,
}

/// Reads the name of a backend: `auto`, `epoll`, `uring`.
///
/// # Errors
/// A message, if it is none of them.
pub fn parse_backend(text: &str) -> Result<BackendChoice, String> {
    match text {
        "auto" => Ok(BackendChoice::Auto),
        "epoll" => Ok(BackendChoice::Epoll),
        "uring" | "io_uring" => Ok(BackendChoice::Uring),
        _ => Err(format!("`{text}` is not one of auto, epoll, uring")),
    }
}
