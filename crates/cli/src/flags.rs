//! The command line: which flags there are, and what they are called.
//!
//! Flags are not parsed here beyond their text: `plimsoll_plan` does that, so that all problems of a command
//! are reported together and a plan file will be read by the same rules.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use plimsoll_plan::{Given, PlanPatch, Problem};
use plimsoll_scenario::suggest;

use crate::sink_flags::SinkArgs;

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
    /// Put load on one or more URLs and report what happened
    ///
    /// Without a rate the model is closed: every connection sends its next request when the last one was
    /// answered. With --rate or --stages it is open: requests start at their scheduled times, whatever the
    /// server does, and their response time counts from there.
    ///
    /// Durations are written 100ms, 30s or 1m30s (a bare number is seconds), counts 10k or 1m, rates 5000,
    /// 5k/s or 300/m, sizes 64KiB. A rate is always for the whole run.
    #[command(after_long_help = TEMPLATE_HELP)]
    Run(Box<RunArgs>),
    /// Run the built-in server: it absorbs load, and can be slow, limited or faulty on purpose
    Sink(Box<SinkArgs>),
    /// Show a closed and an open run against the built-in server, 5 s each
    Demo(DemoArgs),
    /// Print the JSON Schema of a format
    Schema(SchemaArgs),
}

const TEMPLATE_HELP: &str = "\
Templates:
  URL paths, header values and --body text may contain slots that differ from request to request:
    ${sequence}  index in the run, unique        ${worker}                index of the thread
    ${uuid}      random UUID (version 4)         ${random_int(low,high)}  both ends included
    ${timestamp_s}, _ms, _us, _ns  time since 1970
    ${random_hex(n)}, ${random_string(n)}  n random hexadecimal digits, letters and digits
  Write $${ for a literal ${. The body of -b @file is sent as it is.

Exit codes:
  0 ran, numbers valid    1 unreachable target or unexpected error    2 bad usage
  3 measurement invalid   130/143 interrupted, the partial result was written";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// URLs; several share the load evenly
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    instrument: InstrumentArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
struct LoadArgs {
    /// Connections [default: 64; with --rate: as many as needed]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    connections: Option<String>,
    /// Length of the run [default: 10s]
    #[arg(short, long, value_name = "TIME", short_aliases = ['z', 'D'], allow_negative_numbers = true)]
    duration: Option<String>,
    /// End after so many iterations
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true)]
    iterations: Option<String>,
    /// Open model: start so many iterations per second, in total
    #[arg(short = 'R', long, value_name = "RATE", short_alias = 'q', allow_negative_numbers = true)]
    rate: Option<String>,
    /// Open model: rates over time, such as 30s@1000,1m@5000
    #[arg(long, value_name = "STAGES")]
    stages: Option<String>,
    /// How arrivals are spread: uniform or poisson [default: uniform]
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
    /// Header `Name: value`, repeatable; an empty value leaves out a default one
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
    /// Limit for a whole response, from its start [default: 30s]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    timeout: Option<String>,
    /// Follow redirects within the same authority, at most N in a row [default: 10]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(hide_short_help = true)]
    follow_redirects: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
struct ConnectionArgs {
    /// Requests in flight on one connection [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pipeline: Option<String>,
    /// Use every connection for one request
    #[arg(long)]
    disable_keepalive: bool,
    /// Close a connection after so many requests
    #[arg(long, value_name = "N", hide_short_help = true, allow_negative_numbers = true)]
    max_requests_per_connection: Option<String>,
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
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<String>,
    /// Use only IPv4
    #[arg(short = '4', long, hide_short_help = true)]
    ipv4: bool,
    /// Use only IPv6
    #[arg(short = '6', long, hide_short_help = true)]
    ipv6: bool,
    /// Speak HTTP/1.1, as always for now
    #[arg(long = "http1.1", hide_short_help = true, conflicts_with = "http2")]
    http1: bool,
    #[arg(long, hide = true)]
    http2: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
struct TlsArgs {
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
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Instrument")]
struct InstrumentArgs {
    /// Smallest start lag instead of smallest CPU cost: polls busily before every request
    #[arg(long)]
    precise: bool,
    /// System interface: auto, epoll or uring [default: auto]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    backend: Option<String>,
    /// Limit of a response's head [default: 64KiB]
    #[arg(long, value_name = "SIZE", hide_short_help = true, allow_negative_numbers = true)]
    max_head_bytes: Option<String>,
    /// Skip the one request that is tried before the run
    #[arg(long, hide_short_help = true)]
    no_preflight: bool,
}

/// What is written where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Format of the report on stdout
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text, value_name = "FORMAT")]
    pub(crate) output: OutputFormat,
    /// Write the result as JSON to a file, too
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No progress and no messages on stderr
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Format of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    Text,
    /// The result contract
    Json,
    /// One line per interval
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Which format
    #[arg(value_enum, value_name = "FORMAT")]
    pub(crate) of: SchemaOf,
}

/// Formats with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// Plan files (not there yet)
    Plan,
    /// What `run --output json` writes
    Result,
}

/// What a run takes from its surroundings, besides its flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// The seed of a run without `--seed`.
    pub(crate) seed: u64,
    /// `SSLKEYLOGFILE`.
    pub(crate) key_log: Option<PathBuf>,
}

const THREADS_HABIT: &str =
    "`-t` is the number of threads here; hey's and oha's `-t` is --timeout, fortio's is --duration";
const DURATION_HABIT: &str = "the duration is written 30s or 1m30s; curl's, hey's and oha's `-d` is --body here, h2load's --body @file";

impl RunArgs {
    /// The same as a patch of the plan, with the flags' names for messages.
    pub(crate) fn to_patch(&self, surroundings: Surroundings) -> PlanPatch {
        let (load, request) = (&self.load, &self.request);
        let (connection, tls, instrument) = (&self.connection, &self.tls, &self.instrument);
        PlanPatch {
            urls: given_all("URL", &self.urls),

            connections: given("--connections", load.connections.as_ref()),
            iterations: given("--iterations", load.iterations.as_ref()),
            duration: habitual("--duration", load.duration.as_ref(), DURATION_HABIT),
            threads: habitual("--threads", load.threads.as_ref(), THREADS_HABIT),
            rate: given("--rate", load.rate.as_ref()),
            stages: given("--stages", load.stages.as_ref()),
            arrival: given("--arrival", load.arrival.as_ref()),
            overload: given("--overload", load.overload.as_ref()),
            warmup: given("--warmup", load.warmup.as_ref()),
            drain: given("--drain", load.drain.as_ref()),
            timeout: given("--timeout", request.timeout.as_ref()),
            connect_timeout: given("--connect-timeout", connection.connect_timeout.as_ref()),
            seed: given("--seed", load.seed.as_ref()),
            default_seed: surroundings.seed,

            method: given("--method", request.method.as_ref()),
            headers: given_all("--header", &request.headers),
            body: given("--body", request.body.as_ref()),
            basic: given("--basic", request.basic.as_ref()),
            bearer: given("--bearer", request.bearer.as_ref()),
            follow_redirects: given("--follow-redirects", request.follow_redirects.as_ref()),

            pipeline: given("--pipeline", connection.pipeline.as_ref()),
            max_requests_per_connection: given(
                "--max-requests-per-connection",
                connection.max_requests_per_connection.as_ref(),
            ),
            disable_keepalive: connection.disable_keepalive,
            source_ips: given_all("--source-ip", &connection.source_ips),
            resolve: given_all("--resolve", &connection.resolve),
            connect_to: given_all("--connect-to", &connection.connect_to),
            unix_socket: given("--unix-socket", connection.unix_socket.as_ref()),
            ipv4: connection.ipv4,
            ipv6: connection.ipv6,

            insecure: tls.insecure,
            cacert: given("--cacert", tls.cacert.as_ref()),
            cert: given("--cert", tls.cert.as_ref()),
            key: given("--key", tls.key.as_ref()),
            tls: given("--tls", tls.tls.as_ref()),
            sni: given("--sni", tls.sni.as_ref()),
            key_log: surroundings.key_log,
            http2: connection.http2,

            precise: instrument.precise,
            backend: given("--backend", instrument.backend.as_ref()),
            max_head_bytes: given("--max-head-bytes", instrument.max_head_bytes.as_ref()),
            no_preflight: instrument.no_preflight,
        }
    }
}

fn given(by: &'static str, text: Option<&String>) -> Option<Given> {
    text.map(|text| Given::new(by, text.as_str()))
}

fn habitual(by: &'static str, text: Option<&String>, habit: &'static str) -> Option<Given> {
    given(by, text).map(|given| given.with_habit(habit))
}

fn given_all(by: &'static str, texts: &[String]) -> Vec<Given> {
    texts.iter().map(|text| Given::new(by, text.as_str())).collect()
}

/// The commands, for suggestions.
const COMMANDS: [&str; 4] = ["run", "sink", "demo", "schema"];

/// Inserts `run` where it was left out: `plimsoll URL` and `plimsoll -c 8 URL`. `args` starts with the
/// program's name.
pub(crate) fn with_command(mut args: Vec<OsString>) -> Result<Vec<OsString>, Problem> {
    let Some(first) = args.get(1).map(|first| first.to_string_lossy().into_owned()) else {
        return Ok(args);
    };
    let about_program = ["-h", "--help", "-V", "--version"].contains(&first.as_str());
    if COMMANDS.contains(&first.as_str()) || about_program || first.starts_with("--color") {
        return Ok(args);
    }
    // A word that could only be a command is not taken for a host name: `plimsoll snk` must not send load.
    let address = first == "localhost" || first.contains([':', '/', '.']);
    if !first.starts_with('-') && !address {
        let hint = match suggest::closest(&first, COMMANDS) {
            Some(near) => format!("did you mean `plimsoll {near}`?"),
            None => format!("commands: {}; for a host write http://{first}/", COMMANDS.join(", ")),
        };
        let message = format!("unknown command `{}`", first.escape_debug());
        return Err(Problem::new(message).with_hint(hint));
    }
    args.insert(1, "run".into());
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn rewritten(args: &[&str]) -> Result<Vec<String>, Problem> {
        let args = std::iter::once("plimsoll").chain(args.iter().copied()).map(OsString::from).collect();
        let args = with_command(args)?;
        Ok(args.into_iter().skip(1).map(|arg| arg.into_string().unwrap()).collect())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        let commands: Vec<_> = Cli::command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
        assert_eq!(commands, COMMANDS);
    }

    #[test]
    fn a_bare_url_runs() {
        for url in ["http://a/", "127.0.0.1:8080/", "localhost", "example.test", "[::1]:80", "a/b", "-c"] {
            assert_eq!(rewritten(&[url, "x"]).unwrap(), ["run", url, "x"]);
        }
        for command in ["run", "sink", "demo", "schema", "--help", "-V"] {
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
            Some("commands: run, sink, demo, schema; for a host write http://webserver/")
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
            "--disable-keepalive",
            "-4",
            "-6",
            "-k",
            "--http2",
            "--precise",
            "--no-preflight",
        ];
        let Command::Run(run) = Cli::try_parse_from(args).unwrap().command else { panic!("not a run") };
        let patch = run.to_patch(Surroundings { seed: 40, key_log: Some("41".into()) });
        let one = |given: &Option<Given>| given.clone().unwrap();
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
        assert!(patch.disable_keepalive && patch.ipv4 && patch.ipv6 && patch.insecure);
        assert!(patch.http2 && patch.precise && patch.no_preflight);
        assert_eq!((patch.default_seed, patch.key_log), (40, Some("41".into())));
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
            assert_eq!((run.load.duration.as_deref(), run.load.rate.as_deref()), (duration, rate));
        }
    }
}
