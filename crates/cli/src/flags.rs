//! The command line: which flags there are, and what they are called.
//!
//! Flags are not parsed here beyond their text: `plimsoll_plan` does that, so that all problems of a command
//! are reported together and a plan file will be read by the same rules.

use std::cell::OnceCell;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use plimsoll_plan::{CrudPatch, PlanPatch, Problems, RawValue, Switch, is_plan_name};

use crate::cache_flags::CacheArgs;
use crate::calibrate::CalibrateArgs;
use crate::canister_flags::CanisterArgs;
use crate::cluster_flags::ClusterArgs;
use crate::compare_flags::{CompareArgs, HistoryArgs};
use crate::control_flags::ControlArgs;
use crate::crud_flags::CrudLoadArgs;
use crate::export_flags::MonitoringArgs;
use crate::find_flags::FindArgs;
use crate::help::{COMPARE_HELP, FIND_HELP, TEMPLATE_HELP};
use crate::import_flags::ImportArgs;
use crate::ingest_flags::IngestArgs;
pub(crate) use crate::output_flags::{OutputArgs, OutputFormat};
use crate::redact_flags::RedactArgs;
use crate::reference::{CompletionsArgs, ManArgs, ReferenceArgs};
use crate::report::ReportArgs;
use crate::rotation::{RotateArgs, Rotation};
use crate::runs_flags::{ExportArgs, RmArgs, RunsArgs, ShowArgs};
use crate::saving::SaveArgs;
pub(crate) use crate::schema_flags::{SchemaArgs, SchemaOf};
use crate::script_flags::ScriptArgs;
use crate::sink_flags::SinkArgs;
use crate::target_flags::TargetArgs;
use crate::watch_flags::WatchArgs;

/// Finds and proves the load line of a server: a load generator whose numbers can be believed
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(
    after_help = "`plimsoll URL` is the same as `plimsoll run URL`. `plimsoll COMMAND --help` says more."
)]
pub(crate) struct Cli {
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    #[arg(help_heading = "Output", hide_short_help = true)]
    pub(crate) color: ColorChoice,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Carry out a plan, or put load on URLs, and report what happened
    ///
    /// Without a rate the model is closed: every user sends its next request when the last one was answered.
    /// With --rate or --stages it is open: requests start at their scheduled times, whatever the
    /// server does, and their response time counts from there.
    ///
    /// Durations are written 100ms, 30s or 1m30s (a bare number is seconds), counts 10k or 1m, rates 5000,
    /// 5k/s or 300/m, sizes 64KiB. A rate is always for the whole run, but for --rps.
    ///
    /// A plan file (YAML or JSON) says all of this and more; `plimsoll schema plan` describes it. Flags
    /// replace its settings, and so do variables such as PLIMSOLL_RATE=5k: PLIMSOLL_ and the setting's
    /// name, lists with one value per line. Other variables of that kind are left alone, unless they look
    /// like a mistake.
    #[command(after_long_help = TEMPLATE_HELP)]
    Run(Box<RunArgs>),
    /// Say everything that is wrong with a plan file, or that it is ok
    ///
    /// Does what `run` would do before it opens a connection, with the same flags.
    Check(Box<PlanArgs>),
    /// Show what a plan file, or a URL and flags, come to: each setting and where it is from, steps, totals
    Explain(Box<PlanArgs>),
    /// Put load on a cache that speaks Carbon's binary protocol: PUT, GET and DELETE over TCP
    ///
    /// By default 10,000 times a PUT and then a GET of a key of its own, on 100 connections, and each GET is
    /// compared with what was put. The flags come to a plan, which --print-plan shows; all flags of `run`
    /// hold.
    Cache(Box<CacheArgs>),
    /// Create, read, update and delete the items of a REST resource, at one server or at a cluster
    ///
    /// By default 10,000 items are created, on 64 connections. Ids for reads, updates and deletes are those
    /// of the items that were created in the run; before there are any, the server is asked for one (GET
    /// /api/NAME/random-id), which is counted apart. The flags come to a plan, which --print-plan shows; all
    /// flags of `run` hold. Without a server at hand, `plimsoll target crud-cluster` is one.
    Crud(Box<CrudLoadArgs>),
    /// Call a canister of the Internet Computer: queries, or updates whose outcome is waited for
    ///
    /// Messages are signed ahead of need, and never sent when they have expired; if too few are ready the run
    /// says that signing was the limit. By default queries of `read` for 10 seconds, as fast as they are
    /// answered, on 64 connections. The flags come to a plan, which --print-plan shows; all flags of `run`
    /// hold. Without a replica at hand, `plimsoll sink --canister` is one.
    Canister(Box<CanisterArgs>),
    /// Send metrics, logs, traces or events to a store, in batches, at so many records a second
    ///
    /// Every batch has new times and values and is made before it is due. The flags come to a plan, which
    /// --print-plan shows; all flags of `run` hold. Without a store at hand, `plimsoll target ingest` is one.
    Ingest(Box<IngestArgs>),
    /// Find the highest rate at which a server holds what is asked of it: an interval, not a number
    ///
    /// Trials in the open model, each of the length -d (2s) or a multiple of it: rates grow until one breaks,
    /// and are bisected until the capacity is near; then it is estimated from trials at it and beside it. The
    /// lower end is tried once more, and again right after an overload. A rate that the generator cannot put
    /// on the server is not blamed on the server; after three such trials in a row the search ends.
    #[command(after_long_help = FIND_HELP)]
    Find(Box<FindArgs>),
    /// Measure what this machine can generate at most, against the built-in server, and keep it
    ///
    /// Requests per second and thread by protocol, TLS, connections, sizes and scripts, and what this machine
    /// adds to response times at half of that. Runs state then how much of it they have used, and warn above
    /// 50 %. `run --calibrate` does the same with the requests of a plan itself.
    Calibrate(CalibrateArgs),
    /// Run the built-in server: it absorbs load, and can be slow, limited or faulty on purpose
    ///
    /// It speaks HTTP/1.1 and HTTP/2 on the same port: with TLS, ALPN chooses; without, the first bytes tell
    /// (HTTP/2 with prior knowledge). Laws of time and faults are those of single requests, so of single
    /// streams on HTTP/2.
    Sink(Box<SinkArgs>),
    /// Run a built-in server that answers what it is asked for, to test scenarios against
    Target(TargetArgs),
    /// Start the servers under test, break them while load is on them, and check what they have
    ///
    /// A spec says what nodes there are, how they are started, what breaks and what has to hold. See
    /// docs/clusters.md.
    Cluster(ClusterArgs),
    /// Show a closed and an open run against the built-in server, 5 s each
    Demo(crate::demo::DemoArgs),
    /// Print a description of another tool as a plan file
    ///
    /// What cannot be imported as it is, is noted on stderr.
    Import(ImportArgs),
    /// Say whether one group of runs is better or worse than another, the same, or undecided
    ///
    /// The unit is the run: requests within one run depend on each other, and say little about how runs
    /// differ. From 5 runs a side ranks are compared (Mann-Whitney, Hodges-Lehmann), with 2 to 4 means
    /// (Welch), always with all judged figures in mind (Holm). One run a side shows the change, and leaves it
    /// undecided.
    ///
    /// The same: the interval of the change lies within what does not matter (--effect). Better or worse:
    /// it does not hold zero. Undecided: it holds zero and changes that matter.
    #[command(after_long_help = COMPARE_HELP)]
    Compare(CompareArgs),
    /// Show a figure over many runs, and when it changed
    ///
    /// Changes are found by the energy distance of both sides (E-divisive) and tested by a t-test at 0.001,
    /// as Hunter and Apache Otava do.
    History(HistoryArgs),
    /// Write runs as one page of HTML, with charts, that needs no network
    ///
    /// The verdict first, then times, the course of the run, accounts, answers, the machine and the origin.
    /// Tables and the verdict can be read without JavaScript.
    Report(ReportArgs),
    /// List the runs that were saved (`run --save`), the latest first
    ///
    /// p50 and p99 are those of the response time in the open model, of the service time in the closed one.
    Runs(RunsArgs),
    /// Show a saved run as it was shown when it ended
    Show(ShowArgs),
    /// Write a saved run in another format
    Export(ExportArgs),
    /// Remove saved runs
    Rm(RmArgs),
    /// Print the JSON Schema of a format
    Schema(SchemaArgs),
    /// Print completions for a shell
    ///
    /// For bash: plimsoll completions bash > ~/.local/share/bash-completion/completions/plimsoll
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for every command
    Man(ManArgs),
    /// Write the reference pages of the documentation
    #[command(hide = true)]
    Reference(ReferenceArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// Put the requests of the plan on the built-in server first, and state how much of that speed was used
    #[arg(long, help_heading = "Instrument", hide_short_help = true)]
    pub(crate) calibrate: bool,
    /// Make so many runs, each with new connections and the next seed, and tell how they differ
    ///
    /// What differs between runs is not seen within one, however long it is. From 5 runs on their mean has an
    /// interval. `compare` takes the result as a group of runs. It ends as the worst of them.
    #[arg(long, value_name = "N", help_heading = "Instrument", hide_short_help = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: Option<u32>,
    /// Keep the times of up to 30 parts of the run in the JSON, so that `compare` can compare two single runs
    #[arg(long, help_heading = "Instrument", hide_short_help = true)]
    pub(crate) slices: bool,
    /// Send some requests of the plan beside the load, by a thread of their own, and compare [default rate:
    /// 100/s]
    ///
    /// The thread has its own connections and nothing else to do, so that its times are those of the servers.
    /// Where the load's times are longer, the generator has added to them. Its requests are in no other
    /// figure.
    #[arg(long, value_name = "RATE", num_args = 0..=1, require_equals = true, default_missing_value = "100")]
    #[arg(help_heading = "Instrument", hide_short_help = true)]
    pub(crate) probe: Option<String>,
    /// Let so many clients beside the load send and read slowly, as over a bad link, and see who suffers
    ///
    /// Each has a connection of its own and makes the requests of the plan one after the other. Their
    /// requests are in no figure of the load. A server that has a thread or a process for each connection can
    /// run out of them; one that is well made does not notice.
    #[arg(
        long,
        visible_alias = "slow-client",
        value_name = "N",
        help_heading = "Requests",
        hide_short_help = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) slow_clients: Option<u32>,
    /// Bytes per second that a slow client sends, and reads [default: 100]
    #[arg(long, value_name = "SIZE", help_heading = "Requests", hide_short_help = true)]
    pub(crate) slow_client_rate: Option<String>,
    /// Write the report as a page of HTML with charts, too
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    #[command(flatten)]
    pub(crate) save: SaveArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Everything that a plan is made of.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// A plan file (- is stdin), or URLs, which share the load evenly
    ///
    /// A plan is YAML or JSON, and its name ends in .yaml, .yml or .json. A plan without scenarios goes
    /// together with URLs: its settings apply to them.
    #[arg(value_name = "PLAN|URL")]
    urls: Vec<String>,
    /// The name and the text of a plan that a workload's flags come to.
    #[arg(skip)]
    pub(crate) made: OnceCell<(String, String)>,
    /// Run this JSON configuration of h2loadrunner; flags override it
    #[arg(long, value_name = "FILE", conflicts_with = "urls", hide_short_help = true)]
    pub(crate) h2loadrunner: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    crud: CrudArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    http2: Http2Args,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    instrument: InstrumentArgs,
    #[command(flatten)]
    judging: JudgingArgs,
    #[command(flatten)]
    script: ScriptArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Connections [default: 64; with --rate: as many as needed]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    connections: Option<String>,
    /// Length of the run [default: 10s]
    #[arg(short, long, value_name = "TIME", short_aliases = ['z', 'D'], allow_negative_numbers = true)]
    duration: Option<String>,
    /// End after so many iterations
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) iterations: Option<String>,
    /// Open model: start so many iterations per second, in total
    #[arg(short = 'R', long, value_name = "RATE", short_alias = 'q', allow_negative_numbers = true)]
    rate: Option<String>,
    /// Open model: rates over time: 30s@1000,1m@5000 holds 1000/s, then ramps
    ///
    /// TIME@RATE ramps from the rate before to this one, TIME@=RATE steps to it. The first one has none
    /// before it, and holds: to rise from nothing write 1ms@0 in front. (k6 ramps in the first, too.)
    #[arg(long, value_name = "STAGES")]
    stages: Option<String>,
    /// Closed model: so many users [default: one per connection]
    ///
    /// Each has a connection when it needs one. With --http2 or --pipeline several users share a connection:
    /// as many as may have requests in flight on it.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    users: Option<String>,
    /// Closed model: users over time: 30s@10,1m@50 holds 10, then ramps to 50
    ///
    /// Written like --stages: k6's `10s:50`, which ramps, is 1ms@0,10s@50 here. Whoever goes ends its
    /// iteration first.
    #[arg(long, value_name = "STAGES", hide_short_help = true)]
    user_stages: Option<String>,
    /// Unit of --rate and --stages: iterations or requests [default: iterations]
    ///
    /// With requests, each request of an iteration waits for its turn: there are as many per second as asked
    /// for, however many an iteration has. Weights of scenarios are shares of them.
    #[arg(long, value_name = "UNIT", hide_short_help = true)]
    rate_of: Option<String>,
    /// Arrival process: uniform or poisson [default: uniform]
    #[arg(long, value_name = "KIND")]
    arrival: Option<String>,
    /// When all connections are busy: queue, drop or grow
    ///
    /// queue lets an arrival wait for a connection, and its waiting counts as response time. drop gives it up
    /// and counts it as dropped. grow opens another connection for it, up to -c. The default is queue with
    /// -c, and grow up to 10000 connections without.
    #[arg(long, value_name = "POLICY", hide_short_help = true)]
    overload: Option<String>,
    /// Worker threads [default: 1, which carries more than 100k requests/s]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<String>,
    /// Load before the measured part, not recorded
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    warmup: Option<String>,
    /// Wait for owed responses after the end [default: --timeout, at most 5s]
    #[arg(long, value_name = "TIME", hide_short_help = true, allow_negative_numbers = true)]
    drain: Option<String>,
    /// Seed of every random choice [default: random, and reported]
    #[arg(long, value_name = "SEED", hide_short_help = true, allow_negative_numbers = true)]
    seed: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
struct RequestArgs {
    /// Method [default: GET, with a body POST]
    #[arg(short = 'X', long = "method", value_name = "METHOD")]
    method: Option<String>,
    /// Header `Name: value`, repeatable; an empty value drops a default
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    headers: Vec<String>,
    /// Body: text (a template), or @file as it is (@- reads stdin)
    ///
    /// No Content-Type is added. A text that starts with @ has to come from a file.
    #[arg(short, long, value_name = "BODY", allow_hyphen_values = true)]
    body: Option<String>,
    /// Basic authentication: user:password, or @file
    #[arg(long, value_name = "USER:PASSWORD")]
    basic: Option<String>,
    /// Bearer token, or @file
    #[arg(long, value_name = "TOKEN")]
    bearer: Option<String>,
    /// Which credentials are meant: basic, bearer or jwt, a token that is signed here [default: those given]
    #[arg(long, value_name = "KIND", hide_short_help = true)]
    auth: Option<String>,
    /// Sign a JSON Web Token for every request with this key: a file, or env:NAME
    ///
    /// For HS256, HS384 and HS512 any bytes, else a private key in PEM. The token has `iat` and `exp`, and is
    /// signed again in time before it expires. Several tokens, and one for each user, are a matter of plans.
    #[arg(long, value_name = "KEY", hide_short_help = true)]
    jwt_key: Option<String>,
    /// Its algorithm: HS256, HS384, HS512, ES256, EdDSA or RS256 [default: HS256]
    #[arg(long, value_name = "ALGORITHM", hide_short_help = true)]
    jwt_alg: Option<String>,
    /// Its claims besides iat and exp, a JSON object
    #[arg(long, value_name = "JSON", hide_short_help = true)]
    jwt_claims: Option<String>,
    /// Its lifetime in whole seconds; signed again a quarter of it before its end, at most 30s [default: 5m]
    #[arg(long, value_name = "TIME", hide_short_help = true, allow_negative_numbers = true)]
    jwt_lifetime: Option<String>,
    /// Limit for a whole response, from its start [default: 30s]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    timeout: Option<String>,
    /// Another name of --timeout
    #[arg(long, value_name = "TIME", hide_short_help = true, allow_negative_numbers = true)]
    stream_timeout: Option<String>,
    /// Abort so many percent of the requests on purpose: close the connection, or cancel the stream
    ///
    /// Which, and where, is drawn by the seed. Such requests are counted apart, as aborted: they are no
    /// failures, and no response times. On a pipelined connection those beside one are aborted with it.
    #[arg(long, value_name = "PERCENT", help_heading = "Clients that misbehave", hide_short_help = true)]
    abort_pct: Option<String>,
    /// In the middle of what: request, response or either [default: either]
    #[arg(long, value_name = "PART", help_heading = "Clients that misbehave", hide_short_help = true)]
    abort_at: Option<String>,
    /// Of so many percent of the requests, wait for the answer no longer than --abandon-after
    #[arg(long, value_name = "PERCENT", help_heading = "Clients that misbehave", hide_short_help = true)]
    abandon_pct: Option<String>,
    /// Time from the start of such a request until its connection or stream is aborted
    #[arg(long, value_name = "TIME", help_heading = "Clients that misbehave", hide_short_help = true)]
    abandon_after: Option<String>,
    /// Follow redirects, also to other servers, at most N in a row [default: 10]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(hide_short_help = true)]
    follow_redirects: Option<String>,
    #[command(flatten)]
    redact: RedactArgs,
}

/// The scenario of h2loadrunner's command line.
#[derive(Debug, Args)]
#[command(next_help_heading = "Create, update, delete")]
struct CrudArgs {
    /// Create a resource at the URL with this method [default: POST]
    ///
    /// Any of the --crud flags gives every iteration several steps: a request that creates a resource, then
    /// one that updates and one that deletes it, each when the one before was answered. No Content-Type is
    /// added: give it with -H.
    #[arg(long, value_name = "METHOD", hide_short_help = true)]
    crud_create_method: Option<String>,
    /// Then update the resource with this method, such as PATCH [default: no update]
    #[arg(long, value_name = "METHOD", hide_short_help = true)]
    crud_update_method: Option<String>,
    /// At last delete the resource with this method, such as DELETE [default: no delete]
    #[arg(long, value_name = "METHOD", hide_short_help = true)]
    crud_delete_method: Option<String>,
    /// Header of the first response that says where the resource is [default: location]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    crud_resource_header: Option<String>,
    /// Text in the URL's path and in the data files that stands for a number
    ///
    /// Every iteration has the next number of the range, with zeros in front to the width of its end; the
    /// last one is followed by the first.
    #[arg(long, value_name = "TEXT", hide_short_help = true, allow_hyphen_values = true)]
    crud_request_variable_name: Option<String>,
    /// First number of the range [default: 0]
    #[arg(long, value_name = "N", hide_short_help = true, allow_negative_numbers = true)]
    crud_request_variable_value_start: Option<String>,
    /// End of the range, not a part of it
    #[arg(long, value_name = "N", hide_short_help = true, allow_negative_numbers = true)]
    crud_request_variable_value_end: Option<String>,
    /// Body of the request that creates
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    crud_create_data_file: Option<String>,
    /// Body of the request that updates
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    crud_update_data_file: Option<String>,
    /// Open model: so many requests per second on every connection, with --crud flags only
    #[arg(long, value_name = "RATE", hide_short_help = true, allow_negative_numbers = true)]
    rps: Option<String>,
    /// --timeout in milliseconds, with --crud flags only
    #[arg(long, value_name = "N", hide_short_help = true, allow_negative_numbers = true)]
    stream_timeout_interval_ms: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
struct ConnectionArgs {
    /// Speak HTTP/2, over TLS and without
    #[arg(long)]
    http2: bool,
    /// Speak HTTP/2 without TLS: the same as --http2 for http://
    #[arg(long, hide_short_help = true)]
    http2_prior_knowledge: bool,
    /// Speak HTTP/1.1, as without any of these flags
    #[arg(long = "http1.1", hide_short_help = true)]
    http1: bool,
    /// HTTP/2: streams per connection [default: 1; with a rate: up to 100]
    #[arg(short = 'm', long, value_name = "N", alias = "max-concurrent-streams")]
    #[arg(allow_negative_numbers = true)]
    streams: Vec<String>,
    /// HTTP/1.1: requests in flight on one connection [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, hide_short_help = true)]
    pipeline: Option<String>,
    /// Use every connection for one request
    #[arg(long)]
    disable_keepalive: bool,
    /// Close a connection after so many requests
    #[arg(long, value_name = "N", hide_short_help = true, allow_negative_numbers = true)]
    max_requests_per_connection: Option<String>,
    /// Close a connection of this age, when its requests are answered
    #[arg(long, value_name = "TIME", hide_short_help = true, allow_negative_numbers = true)]
    connection_lifetime: Option<String>,
    /// Close a connection that had nothing to do for so long
    #[arg(long, value_name = "TIME", hide_short_help = true, allow_negative_numbers = true)]
    connection_inactivity: Option<String>,
    /// Open so many connections per second until all are open [default: all at once]
    #[arg(long, value_name = "RATE", hide_short_help = true, allow_negative_numbers = true)]
    connection_rate: Option<String>,
    /// Limit for a connection to be established [default: 10s]
    #[arg(long, value_name = "TIME", hide_short_help = true, allow_negative_numbers = true)]
    connect_timeout: Option<String>,
    /// Connect from this local address, repeatable (taken in turn)
    #[arg(long = "source-ip", value_name = "IP", hide_short_help = true)]
    source_ips: Vec<String>,
    /// Use these addresses for a host, repeatable
    #[arg(long, value_name = "HOST:PORT:ADDR[,ADDR]", hide_short_help = true)]
    resolve: Vec<String>,
    /// Connect to another host, repeatable; empty parts match everything
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2", hide_short_help = true)]
    connect_to: Vec<String>,
    /// Connect to this unix socket
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    unix_socket: Option<String>,
    /// Use only IPv4
    #[arg(short = '4', long, hide_short_help = true)]
    ipv4: bool,
    /// Use only IPv6
    #[arg(short = '6', long, hide_short_help = true)]
    ipv6: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "HTTP/2")]
struct Http2Args {
    /// Window of every stream: 2^N - 1 bytes, N from 16 to 31 [default: 30]
    #[arg(long, value_name = "N", hide_short_help = true, allow_negative_numbers = true)]
    window_bits: Option<String>,
    /// Window of every connection: 2^N - 1 bytes, N from 16 to 31 [default: 30]
    #[arg(long, value_name = "N", hide_short_help = true, allow_negative_numbers = true)]
    connection_window_bits: Option<String>,
    /// Header table that servers may use for responses [default: 4096]
    #[arg(long, value_name = "SIZE", hide_short_help = true, allow_negative_numbers = true)]
    header_table_size: Option<String>,
    /// Most that requests use of a server's header table [default: 4096]
    #[arg(long, value_name = "SIZE", hide_short_help = true, allow_negative_numbers = true)]
    encoder_header_table_size: Option<String>,
    /// Largest frame that servers may send [default: 16KiB]
    #[arg(long, value_name = "SIZE", hide_short_help = true, allow_negative_numbers = true)]
    max_frame_size: Option<String>,
    /// Send a PING on every connection as often as this [default: never]
    #[arg(long, value_name = "TIME", hide_short_help = true, allow_negative_numbers = true)]
    ping_interval: Option<String>,
}

/// Flags for the verification of servers and the identity of the client.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    /// Do not verify certificates
    #[arg(short = 'k', long)]
    insecure: bool,
    /// Trust the authorities in this PEM file instead of the system's
    #[arg(long, value_name = "FILE")]
    cacert: Option<String>,
    /// Client certificate (PEM; may contain the key)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    cert: Option<String>,
    /// Key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    key: Option<String>,
    /// Only this version: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", hide_short_help = true)]
    tls: Option<String>,
    /// Name for SNI and verification instead of the URL's host
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    sni: Option<String>,
    /// Offer these protocols, the preferred one first: h2, http/1.1 [default: http/1.1]
    ///
    /// The server chooses, and the run speaks what it chose. --http2 offers h2 alone.
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    alpn: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Instrument")]
struct InstrumentArgs {
    /// Start every request at its time, for a whole core: polls busily before it, as --pacing precise
    #[arg(long, hide_short_help = true)]
    precise: bool,
    /// Use of wake-ups: adaptive, shared or precise [default: adaptive]
    ///
    /// `adaptive` starts requests at their time as long as less than about 70 % of the core is used, each
    /// with a wake-up of its own; above that as few as possible share wake-ups. `shared` is the
    /// cheapest load: from some 2,000/s on requests start up to 0.8 ms late, on purpose, which is in their
    /// response times. `precise` never sleeps.
    #[arg(long, value_name = "MODE", hide_short_help = true)]
    pacing: Option<String>,
    /// System interface: auto, epoll or uring [default: auto]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    backend: Option<String>,
    /// Limit of a response's head [default: 64KiB]
    #[arg(long, value_name = "SIZE", hide_short_help = true, allow_negative_numbers = true)]
    max_head_bytes: Option<String>,
    /// Skip the first contact before the run
    ///
    /// Each server is tried before the run with the first GET or HEAD of the plan that needs no values of
    /// responses or data and no script; if there is none, it is connected to, and nothing is sent.
    #[arg(long, hide_short_help = true)]
    no_preflight: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Thresholds")]
struct JudgingArgs {
    /// Fail the run (exit code 99) unless this holds: 'p99<10ms', 'errors<1%'
    ///
    /// Repeatable: FIGURE OP LIMIT with <, <=, >, >=, == or !=. Figures: p99 (any percentile), min, mean, max
    /// and stdev of the response time, or of another one: service_time.p99, start_lag, first_byte_time,
    /// connect_time, tls_time, failed_response_time; error_rate, timeout_rate; rate (responses per second;
    /// also rate>=0.99*target); started, dropped, ok, failed, timed_out, errors (failed or timed out;
    /// errors<1% is error_rate<1%), checks, bytes_sent, bytes_received, and the classes of errors, such as
    /// status_5xx, as numbers or in percent. What the data cannot show has failed: without data, with too few
    /// values for a percentile, or where timeouts leave it open.
    #[arg(long = "threshold", value_name = "THRESHOLD", allow_hyphen_values = true)]
    thresholds: Vec<String>,
    /// End the run as soon as a --threshold is shown not to hold
    ///
    /// It is looked at after every interval, over the run so far.
    #[arg(long, hide_short_help = true)]
    abort_on_fail: bool,
    /// Interval between statistics: whole seconds, or from 100ms [default: 1s]
    #[arg(long, value_name = "TIME", hide_short_help = true, allow_negative_numbers = true)]
    interval: Option<String>,
}

/// Flags for output while the run goes on.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Live output")]
pub(crate) struct LiveArgs {
    /// Write statistics per scenario in every interval: CSV to FILE.csv, else lines of JSON; - is stderr
    ///
    /// The last row of an interval is that of all scenarios, `total`. Times are response times in nanoseconds
    /// as they are in the report; a percentile with too few values is empty. Without those of the warm-up,
    /// the rows add up to the accounts of the run.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) stats: Option<PathBuf>,
    /// Write one line per request: CSV to FILE.csv, else lines of JSON
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) log: Option<PathBuf>,
    /// Log only this share of the requests, chosen at random: 1% or 1/100
    #[arg(long, value_name = "SHARE", hide_short_help = true, requires = "log")]
    pub(crate) log_sample: Option<String>,
    /// Write failed requests to a file, with both messages as far as they are kept
    ///
    /// Heads and bodies are cut after 64 KiB each. Secrets are stars, but for those in bodies of responses.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) failed: Option<PathBuf>,
    /// Write so many failed requests at most [default: 1000]
    #[arg(
        long,
        value_name = "N",
        hide_short_help = true,
        requires = "failed",
        allow_negative_numbers = true
    )]
    pub(crate) failed_limit: Option<String>,
    #[command(flatten)]
    rotate: RotateArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    #[command(flatten)]
    pub(crate) exports: MonitoringArgs,
}

impl LiveArgs {
    /// Returns the rotation of the files that are written during the run.
    ///
    /// # Errors
    /// Every problem with the flags.
    pub(crate) fn rotation(&self) -> Result<Rotation, Problems> {
        let files = [&self.stats, &self.log, &self.failed];
        self.rotate.rotation(files.iter().any(|file| file.is_some()))
    }

    /// The same, with what a plan file asks for where nothing was typed.
    pub(crate) fn or(&self, patch: Option<&PlanPatch>) -> Self {
        let file = |typed: &Option<PathBuf>, given: fn(&PlanPatch) -> &Option<RawValue>| {
            typed
                .clone()
                .or_else(|| patch.and_then(|patch| given(patch).as_ref()).map(|g| g.text.clone().into()))
        };
        Self {
            stats: file(&self.stats, |patch| &patch.stats),
            log: file(&self.log, |patch| &patch.log),
            failed: file(&self.failed, |patch| &patch.failed),
            ..self.clone()
        }
    }
}

/// Values that a run takes from its environment, besides its flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunEnvironment {
    /// The seed of a run without `--seed`.
    pub(crate) seed: u64,
    /// `SSLKEYLOGFILE`.
    pub(crate) key_log: Option<PathBuf>,
    /// Settings in variables, by the names of the variables.
    pub(crate) settings: Vec<(String, String)>,
    /// `LUA_PATH`.
    pub(crate) lua_path: Option<String>,
    /// `true` if the output of scripts is not shown.
    pub(crate) quiet: bool,
}

const THREADS_HABIT: &str =
    "`-t` is the number of threads here; hey's and oha's `-t` is --timeout, fortio's is --duration";
const DURATION_HABIT: &str = "the duration is written 30s or 1m30s; curl's, hey's and oha's `-d` is --body here, h2load's --body @file";
const STREAMS_HABIT: &str = "hey's and oha's `-m` is -X here; `-m` is the number of concurrent streams";

impl PlanArgs {
    /// The URLs, and what may be the name of a plan file.
    pub(crate) fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Returns `true` if a plan file, a URL or a configuration of h2loadrunner is named.
    pub(crate) fn has_urls(&self) -> bool {
        !self.urls.is_empty() || self.h2loadrunner.is_some()
    }

    /// Iterations that may be under way at the same time, with so many connections where nothing else is
    /// said: no limit, if it is said in a way that only a plan understands.
    pub(crate) fn at_once(&self, connections: u32) -> u64 {
        let number = |given: &Option<String>, default: u64| match given {
            None => default,
            Some(text) => text.parse().unwrap_or(u64::MAX),
        };
        if self.load.users.is_some() || self.load.user_stages.is_some() {
            return u64::MAX;
        }
        let connections = number(&self.load.connections, u64::from(connections));
        connections.saturating_mul(number(&self.connection.pipeline, 1))
    }

    /// Returns `true` if the flags give the duration of the load.
    pub(crate) fn has_duration(&self) -> bool {
        self.load.duration.is_some()
    }

    /// Returns `true` if the flags say when the load ends.
    pub(crate) fn has_end(&self) -> bool {
        self.has_duration() || self.load.iterations.is_some() || self.load.stages.is_some()
    }

    /// Returns `true` if the flags say how much load there is over time.
    pub(crate) fn has_rate(&self) -> bool {
        self.load.rate.is_some() || self.load.stages.is_some()
    }

    /// The plan file, the environment and the flags. The first argument that names a plan file is it.
    pub(crate) fn to_command(&self, mut surroundings: RunEnvironment) -> plimsoll_plan::Command {
        let environment = std::mem::take(&mut surroundings.settings);
        let mut flags = self.to_patch(surroundings);
        let plan = flags.urls.iter().position(|given| is_plan_name(&given.text));
        let plan = plan.map(|index| flags.urls.remove(index).text);
        plimsoll_plan::Command { plan, environment, flags }
    }

    /// The flags as a patch of the plan, with their names for messages.
    fn to_patch(&self, surroundings: RunEnvironment) -> PlanPatch {
        let (load, request) = (&self.load, &self.request);
        let (connection, instrument) = (&self.connection, &self.instrument);
        let (crud, http2) = (&self.crud, &self.http2);
        PlanPatch {
            // Those of a plan that was made are in it.
            urls: if self.made.get().is_some() { Vec::new() } else { given_all("URL", &self.urls) },
            document: None,

            connections: given("--connections", load.connections.as_ref()),
            iterations: given("--iterations", load.iterations.as_ref()),
            duration: habitual("--duration", load.duration.as_ref(), DURATION_HABIT),
            threads: habitual("--threads", load.threads.as_ref(), THREADS_HABIT),
            rate: given("--rate", load.rate.as_ref()),
            rps: given("--rps", crud.rps.as_ref()),
            stages: given("--stages", load.stages.as_ref()),
            users: given("--users", load.users.as_ref()),
            user_stages: given("--user-stages", load.user_stages.as_ref()),
            rate_of: given("--rate-of", load.rate_of.as_ref()),
            arrival: given("--arrival", load.arrival.as_ref()),
            overload: given("--overload", load.overload.as_ref()),
            warmup: given("--warmup", load.warmup.as_ref()),
            drain: given("--drain", load.drain.as_ref()),
            timeout: given("--timeout", request.timeout.as_ref()),
            stream_timeout: given("--stream-timeout", request.stream_timeout.as_ref()),
            stream_timeout_ms: habitual(
                "--stream-timeout-interval-ms",
                crud.stream_timeout_interval_ms.as_ref(),
                "write a number of milliseconds, such as 2000, or `--timeout 2s`",
            ),
            connect_timeout: given("--connect-timeout", connection.connect_timeout.as_ref()),
            seed: given("--seed", load.seed.as_ref()),
            default_seed: surroundings.seed,
            method: given("--method", request.method.as_ref()),
            headers: given_all("--header", &request.headers),
            redact: given_all("--redact", &request.redact.names),
            body: given("--body", request.body.as_ref()),
            basic: given("--basic", request.basic.as_ref()),
            bearer: given("--bearer", request.bearer.as_ref()),
            auth: given("--auth", request.auth.as_ref()),
            jwt_key: given("--jwt-key", request.jwt_key.as_ref()),
            jwt_alg: given("--jwt-alg", request.jwt_alg.as_ref()),
            jwt_claims: given("--jwt-claims", request.jwt_claims.as_ref()),
            jwt_lifetime: given("--jwt-lifetime", request.jwt_lifetime.as_ref()),
            abort_pct: given("--abort-pct", request.abort_pct.as_ref()),
            abort_at: given("--abort-at", request.abort_at.as_ref()),
            abandon_pct: given("--abandon-pct", request.abandon_pct.as_ref()),
            abandon_after: given("--abandon-after", request.abandon_after.as_ref()),
            follow_redirects: given("--follow-redirects", request.follow_redirects.as_ref()),

            crud: crud.to_patch(),
            script: self.script.to_patch(&surroundings),

            pipeline: given("--pipeline", connection.pipeline.as_ref()),
            streams: given_all("--streams", &connection.streams)
                .into_iter()
                .map(|given| given.with_habit(STREAMS_HABIT))
                .collect(),
            max_requests_per_connection: given(
                "--max-requests-per-connection",
                connection.max_requests_per_connection.as_ref(),
            ),
            disable_keepalive: switch("--disable-keepalive", connection.disable_keepalive),
            connection_lifetime: given("--connection-lifetime", connection.connection_lifetime.as_ref()),
            connection_inactivity: given(
                "--connection-inactivity",
                connection.connection_inactivity.as_ref(),
            ),
            connection_rate: given("--connection-rate", connection.connection_rate.as_ref()),
            source_ips: given_all("--source-ip", &connection.source_ips),
            resolve: given_all("--resolve", &connection.resolve),
            connect_to: given_all("--connect-to", &connection.connect_to),
            unix_socket: given("--unix-socket", connection.unix_socket.as_ref()),
            ipv4: switch("-4", connection.ipv4),
            ipv6: switch("-6", connection.ipv6),

            key_log: surroundings.key_log,

            http1: switch("--http1.1", connection.http1),
            http2: switch("--http2", connection.http2),
            http2_prior_knowledge: switch("--http2-prior-knowledge", connection.http2_prior_knowledge),
            window_bits: given("--window-bits", http2.window_bits.as_ref()),
            connection_window_bits: given("--connection-window-bits", http2.connection_window_bits.as_ref()),
            header_table_size: given("--header-table-size", http2.header_table_size.as_ref()),
            encoder_header_table_size: given(
                "--encoder-header-table-size",
                http2.encoder_header_table_size.as_ref(),
            ),
            max_frame_size: given("--max-frame-size", http2.max_frame_size.as_ref()),
            ping_interval: given("--ping-interval", http2.ping_interval.as_ref()),

            precise: switch("--precise", instrument.precise),
            pacing: given("--pacing", instrument.pacing.as_ref()),
            backend: given("--backend", instrument.backend.as_ref()),
            max_head_bytes: given("--max-head-bytes", instrument.max_head_bytes.as_ref()),
            no_preflight: switch("--no-preflight", instrument.no_preflight),

            thresholds: given_all("--threshold", &self.judging.thresholds),
            abort_on_fail: self.judging.abort_on_fail,
            interval: given("--interval", self.judging.interval.as_ref()),
            // What the flags of outputs and of control give is read where they are.
            ..self.tls.to_patch()
        }
    }
}

impl TlsArgs {
    /// These flags alone.
    pub(crate) fn to_patch(&self) -> PlanPatch {
        PlanPatch {
            insecure: switch("--insecure", self.insecure),
            cacert: given("--cacert", self.cacert.as_ref()),
            cert: given("--cert", self.cert.as_ref()),
            key: given("--key", self.key.as_ref()),
            tls: given("--tls", self.tls.as_ref()),
            sni: given("--sni", self.sni.as_ref()),
            alpn: given("--alpn", self.alpn.as_ref()),
            ..PlanPatch::default()
        }
    }
}

impl CrudArgs {
    fn to_patch(&self) -> CrudPatch {
        CrudPatch {
            create_method: given("--crud-create-method", self.crud_create_method.as_ref()),
            update_method: given("--crud-update-method", self.crud_update_method.as_ref()),
            delete_method: given("--crud-delete-method", self.crud_delete_method.as_ref()),
            resource_header: given("--crud-resource-header", self.crud_resource_header.as_ref()),
            variable_name: given("--crud-request-variable-name", self.crud_request_variable_name.as_ref()),
            variable_start: given(
                "--crud-request-variable-value-start",
                self.crud_request_variable_value_start.as_ref(),
            ),
            variable_end: given(
                "--crud-request-variable-value-end",
                self.crud_request_variable_value_end.as_ref(),
            ),
            create_data: given("--crud-create-data-file", self.crud_create_data_file.as_ref()),
            update_data: given("--crud-update-data-file", self.crud_update_data_file.as_ref()),
        }
    }
}

fn given(by: &'static str, text: Option<&String>) -> Option<RawValue> {
    text.map(|text| RawValue::new(by, text.as_str()))
}

fn switch(by: &'static str, on: bool) -> Switch {
    if on { Switch::on(by) } else { Switch::default() }
}

fn habitual(by: &'static str, text: Option<&String>, habit: &'static str) -> Option<RawValue> {
    given(by, text).map(|given| given.with_habit(habit))
}

fn given_all(by: &'static str, texts: &[String]) -> Vec<RawValue> {
    texts.iter().map(|text| RawValue::new(by, text.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::*;
    use crate::command_word::with_command;
    use crate::describe;
    use clap::CommandFactory as _;
    use plimsoll_plan::{Files, KeyLogFile, Plan, Problem};

    fn rewritten(args: &[&str]) -> Result<Vec<String>, Problem> {
        let args = std::iter::once("plimsoll").chain(args.iter().copied()).map(OsString::from).collect();
        let args = with_command(args)?;
        Ok(args.into_iter().skip(1).map(|arg| arg.into_string().unwrap()).collect())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        let commands: Vec<_> = Cli::command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
        let (mut known, mut defined) = (crate::command_word::commands().collect::<Vec<_>>(), commands);
        known.sort_unstable();
        defined.sort_unstable();
        assert_eq!(defined, known);
    }

    #[test]
    fn a_bare_url_runs() {
        for url in ["http://a/", "127.0.0.1:8080/", "localhost", "example.test", "[::1]:80", "a/b", "-c"] {
            assert_eq!(rewritten(&[url, "x"]).unwrap(), ["run", url, "x"]);
        }
        let commands = [
            "run", "check", "explain", "find", "sink", "target", "demo", "import", "compare", "--help", "-V",
        ];
        for command in commands {
            assert_eq!(rewritten(&[command]).unwrap(), [command]);
        }
        assert_eq!(rewritten(&[]).unwrap(), [""; 0]);
    }

    #[test]
    fn a_mistyped_command_does_not_become_a_host() {
        let problem = rewritten(&["snik", "--listen", ":0"]).unwrap_err();
        assert_eq!(problem.hint.as_deref(), Some("did you mean `plimsoll sink`?"));
        let problem = rewritten(&["webserver"]).unwrap_err();
        assert_eq!(
            problem.hint.as_deref(),
            Some(
                "commands: run, check, explain, find, calibrate, import, runs, show, report, compare, history, export, \
                 rm, sink, target, cluster, demo, cache, crud, canister, ingest, schema, completions, man; \
                 for a host write http://webserver/"
            )
        );
    }

    #[test]
    fn every_flag_reaches_the_patch_under_its_own_name() {
        let args = [
            "plimsoll",
            "run",
            "http://a/",
            "-c1",
            "-n2",
            "-d3",
            "-t4",
            "-R5",
            "--stages=6",
            "--arrival=7",
            "--overload=8",
            "--warmup=9",
            "--drain=10",
            "--timeout=11",
            "--connect-timeout=12",
            "--seed=13",
            "-X14",
            "-H15",
            "-b16",
            "--basic=17",
            "--bearer=18",
            "--follow-redirects=19",
            "--pipeline=20",
            "--max-requests-per-connection=21",
            "--source-ip=22",
            "--resolve=23",
            "--connect-to=24",
            "--unix-socket=25",
            "--cacert=26",
            "--cert=27",
            "--key=28",
            "--tls=29",
            "--sni=30",
            "--backend=31",
            "--max-head-bytes=32",
            "--rps=33",
            "--stream-timeout=34",
            "--stream-timeout-interval-ms=35",
            "-m36",
            "--connection-lifetime=37",
            "--connection-inactivity=38",
            "--connection-rate=39",
            "--alpn=40",
            "--window-bits=41",
            "--connection-window-bits=42",
            "--header-table-size=43",
            "--encoder-header-table-size=44",
            "--max-frame-size=45",
            "--ping-interval=46",
            "--crud-create-method=47",
            "--crud-update-method=48",
            "--crud-delete-method=49",
            "--crud-resource-header=50",
            "--crud-request-variable-name=51",
            "--crud-request-variable-value-start=52",
            "--crud-request-variable-value-end=53",
            "--crud-create-data-file=54",
            "--crud-update-data-file=55",
            "--threshold=56",
            "--interval=57",
            "--abort-on-fail",
            "--disable-keepalive",
            "-4",
            "-6",
            "-k",
            "--http2",
            "--http1.1",
            "--http2-prior-knowledge",
            "--precise",
            "--no-preflight",
            "--script=58",
            "--users=59",
            "--user-stages=60",
            "--pacing=61",
            "--script-allow-system",
            "--",
            "62",
        ];
        let Command::Run(run) = Cli::try_parse_from(args).unwrap().command else { panic!("not a run") };
        let patch = run.plan.to_patch(RunEnvironment {
            seed: 90,
            key_log: Some("91".into()),
            lua_path: Some("92".to_owned()),
            ..RunEnvironment::default()
        });
        let one = |given: &Option<RawValue>| given.clone().unwrap();
        let all = [
            one(&patch.connections),
            one(&patch.iterations),
            one(&patch.duration),
            one(&patch.threads),
            one(&patch.rate),
            one(&patch.stages),
            one(&patch.arrival),
            one(&patch.overload),
            one(&patch.warmup),
            one(&patch.drain),
            one(&patch.timeout),
            one(&patch.connect_timeout),
            one(&patch.seed),
            one(&patch.method),
            patch.headers[0].clone(),
            one(&patch.body),
            one(&patch.basic),
            one(&patch.bearer),
            one(&patch.follow_redirects),
            one(&patch.pipeline),
            one(&patch.max_requests_per_connection),
            patch.source_ips[0].clone(),
            patch.resolve[0].clone(),
            patch.connect_to[0].clone(),
            one(&patch.unix_socket),
            one(&patch.cacert),
            one(&patch.cert),
            one(&patch.key),
            one(&patch.tls),
            one(&patch.sni),
            one(&patch.backend),
            one(&patch.max_head_bytes),
            one(&patch.rps),
            one(&patch.stream_timeout),
            one(&patch.stream_timeout_ms),
            patch.streams[0].clone(),
            one(&patch.connection_lifetime),
            one(&patch.connection_inactivity),
            one(&patch.connection_rate),
            one(&patch.alpn),
            one(&patch.window_bits),
            one(&patch.connection_window_bits),
            one(&patch.header_table_size),
            one(&patch.encoder_header_table_size),
            one(&patch.max_frame_size),
            one(&patch.ping_interval),
            one(&patch.crud.create_method),
            one(&patch.crud.update_method),
            one(&patch.crud.delete_method),
            one(&patch.crud.resource_header),
            one(&patch.crud.variable_name),
            one(&patch.crud.variable_start),
            one(&patch.crud.variable_end),
            one(&patch.crud.create_data),
            one(&patch.crud.update_data),
            patch.thresholds[0].clone(),
            one(&patch.interval),
            one(&patch.script.file),
            one(&patch.users),
            one(&patch.user_stages),
            one(&patch.pacing),
        ];
        for (index, given) in all.iter().enumerate() {
            assert_eq!(given.text, (index + 1).to_string(), "{}", given.by);
            assert!(
                Cli::command().find_subcommand("run").unwrap().get_arguments().any(|argument| {
                    argument.get_long().is_some_and(|long| format!("--{long}") == given.by)
                }),
                "{}",
                given.by
            );
        }
        for switch in [
            &patch.disable_keepalive,
            &patch.ipv4,
            &patch.ipv6,
            &patch.insecure,
            &patch.http1,
            &patch.http2,
            &patch.http2_prior_knowledge,
            &patch.precise,
            &patch.no_preflight,
        ] {
            assert!(switch.is_on(), "{switch:?}");
        }
        assert!(patch.abort_on_fail);
        assert_eq!(
            (patch.script.arguments, patch.script.lua_path),
            (vec!["62".to_owned()], Some("92".to_owned()))
        );
        assert!(patch.script.allow_system && patch.script.host.is_some());
        assert_eq!((patch.default_seed, patch.key_log), (90, Some("91".into())));
    }

    /// Data files of the example below.
    struct Data;

    impl Files for Data {
        fn read(&self, _: &Path) -> std::io::Result<Vec<u8>> {
            Ok(b"{\"callback\":\"/imsi-USER_ID\"}".to_vec())
        }

        fn key_log(&self, _: &Path) -> std::io::Result<KeyLogFile> {
            Err(std::io::ErrorKind::PermissionDenied.into())
        }
    }

    /// h2loadrunner's own example, in its order and with its repetition; only `--http2` is ours.
    #[test]
    fn the_example_of_h2loadrunner_is_understood() {
        let line = "plimsoll http://192.168.1.125:8080/nudm-ee/v2/imsi-2621012-USER_ID/sdm-subscriptions/ \
             -t 5 -c 100 -D 10 -m 512 --rps=100 --crud-update-method=PATCH --crud-delete-method=DELETE \
             --crud-create-method=POST --crud-request-variable-name=-USER_ID \
             --crud-request-variable-value-start=1 --crud-request-variable-value-end=1000000000 \
             --crud-resource-header=location --stream-timeout-interval-ms=2000 -m 512 \
             --crud-create-data-file=datafile.json --crud-update-data-file=updatedatafile.json --http2";
        let args = with_command(line.split_whitespace().map(OsString::from).collect()).unwrap();
        let Command::Run(run) = Cli::try_parse_from(args).unwrap().command else { panic!("not a run") };
        let plan = Plan::resolve(run.plan.to_patch(RunEnvironment::default()), &Data).unwrap();
        let names: Vec<_> = plan.steps.iter().map(|step| step.name.as_str()).collect();
        let create = "create POST /nudm-ee/v2/imsi-2621012-USER_ID/sdm-subscriptions/";
        assert_eq!(names, [create, "update PATCH", "delete DELETE"]);
        assert_eq!(
            describe::model(&plan).description,
            ["open: 10000 requests/s (3333.333 iterations/s of 3 requests) uniform, 100 connections × \
              512 streams, then queue, HTTP/2, 5 threads, for 10s"]
        );
    }

    #[test]
    fn familiar_letters_for_duration_and_rate() {
        for (args, duration, rate) in [
            (["-z", "5s"], Some("5s"), None),
            (["-D", "5s"], Some("5s"), None),
            (["-q", "7"], None, Some("7")),
        ] {
            let args = ["plimsoll", "run", "http://a/"].into_iter().chain(args);
            let Command::Run(run) = Cli::try_parse_from(args).unwrap().command else { panic!("not a run") };
            assert_eq!((run.plan.load.duration.as_deref(), run.plan.load.rate.as_deref()), (duration, rate));
        }
    }
}
