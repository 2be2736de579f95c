//! The flags of `plimsoll cache`.

use clap::{Args, ValueEnum};
use plimsoll_app::{Alternative, Failure, KeyArgs, LoadArgs, Note, RunArgs, named, of_flag};
use plimsoll_document::{MadeDocument, Problem, RawValue};
use plimsoll_plan::Resolved;
use plimsoll_report::RunResult;

use crate::load::{Api, CacheLoad, Mix, Preset, Size, Targets};
use crate::{figures, reach};

/// Line of the command in the list of commands.
pub(crate) const SUMMARY: &str =
    "Put load on a cache that speaks Carbon's binary protocol: PUT, GET and DELETE over TCP";

/// Description of the command.
pub(crate) const DETAILS: &str = "By default 10,000 iterations, each a PUT and a GET of a key of its own, on 100 connections; each GET is \
     compared with its PUT. The flags make a plan, which --print-plan shows; all flags of `run` apply.";

/// Default address of the cache's HTTP API, on the host of the cache.
const ADMIN_PORT: u16 = 8080;
/// Flag of a comparison with the HTTP API.
const COMPARE_HTTP: &str = "--compare-http";
/// Default number of runs of each side of a comparison: the fewest whose mean has an interval.
const ROUNDS: u32 = 5;
/// User and password that Carbon begins with.
const DEFAULT_USER: &str = "admin:admin123";

#[derive(Debug, Args)]
// `--key` of this command names keys of the cache, so the key of the client certificate is `--client-key`.
#[command(mut_arg("key", |arg| arg.long("client-key")))]
pub(crate) struct CacheArgs {
    #[command(flatten)]
    workload: WorkloadArgs,
    /// Make the same load over the HTTP API at this URL in turn with the one over TCP, and compare
    ///
    /// Each is made --repeat times [default: 5], the two in alternating order; A is TCP, B is HTTP. Keys,
    /// values and checks are the same. The API is asked as --user, or with --bearer.
    #[arg(long, value_name = "URL", help_heading = "Workload", conflicts_with_all = ["probe", "calibrate", "slices"])]
    compare_http: Option<String>,
    #[command(flatten)]
    setup: SetupArgs,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
#[command(mut_arg("key_pattern", |arg| arg.default_value("sequential")))]
struct WorkloadArgs {
    // In rustdoc it would be a link.
    #[arg(help = "Server, host[:port]", long, value_name = "ADDRESS", default_value = "127.0.0.1:5500")]
    server: String,
    /// Name of the cache
    #[arg(long, value_name = "NAME", default_value = "perf_test")]
    cache: String,
    /// A scenario of Carbon's load test: number of iterations, connections and rate
    ///
    /// max: 50,000 on 200 connections; sustained: 100,000 on 50, 5,000 per second; concurrency: 10,000 on
    /// 500; rate-limited: 60,000 on 10, 1,000 per second. Other flags replace parts of it.
    #[arg(long, value_name = "NAME", value_parser = named(&Preset::ALL, Preset::name))]
    preset: Option<Preset>,
    /// Another name of --iterations: the mix, this many times
    #[arg(long, value_name = "N", conflicts_with_all = ["iterations", "duration"])]
    requests: Option<u64>,
    /// Mix of operations: put+get, put+get+delete, put, get, delete, or weights such as put=1,get=9
    #[arg(long, value_name = "MIX", default_value = "put+get")]
    mix: String,
    #[command(flatten)]
    keys: KeyArgs,
    /// Bytes of a key, 32 or more [default: the shortest possible]
    #[arg(long, value_name = "BYTES")]
    key_size: Option<u32>,
    /// Compare the value of each GET with the one that was put [default for put+get and put+get+delete]
    #[arg(long, overrides_with = "no_verify")]
    verify: bool,
    /// Compare nothing
    #[arg(long)]
    no_verify: bool,
    /// Judge the run by Carbon's own targets: throughput, mean, p95, p99 and success
    #[arg(long = "thresholds", value_enum, value_name = "SET")]
    threshold_set: Option<ThresholdSet>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Setup")]
struct SetupArgs {
    /// Create the cache first, over the HTTP API
    #[arg(long)]
    create: bool,
    /// The HTTP API of the server [default: port 8080 of the server's host]
    #[arg(long, value_name = "URL")]
    admin: Option<String>,
    /// User of the HTTP API: user:password, or @file; default: Carbon's initial user
    #[arg(long, value_name = "USER:PASSWORD", default_value = DEFAULT_USER)]
    user: String,
    /// Print the plan that the flags make, and exit
    #[arg(long)]
    print_plan: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ThresholdSet {
    Carbon,
}

impl LoadArgs for CacheArgs {
    fn run(&self) -> &RunArgs {
        &self.run
    }

    fn print_plan(&self) -> bool {
        self.setup.print_plan
    }

    fn beside_plans(&self) -> Vec<(&'static str, bool)> {
        let setup = &self.setup;
        vec![
            (COMPARE_HTTP, self.compare_http.is_some()),
            ("--create", setup.create),
            ("--admin", setup.admin.is_some()),
            ("--user", setup.user != DEFAULT_USER),
        ]
    }

    fn plan(&self) -> Result<MadeDocument, Failure> {
        if !self.run.arguments().is_empty() {
            let problem = Problem::new("`plimsoll cache` takes no URL and no plan file");
            let hint = "name the server with --server, the cache with --cache";
            return Err(Failure::usage(problem.with_hint(hint)));
        }
        made(&self.to_load().map_err(Failure::usage)?)
    }

    fn alternative(&self) -> Result<Option<Alternative>, Failure> {
        let Some(url) = &self.compare_http else { return Ok(None) };
        if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
            let problem = Problem::new(format!("{COMPARE_HTTP}: `{url}` is not a URL of an HTTP API"));
            return Err(Failure::usage(problem.with_hint("write it as in http://127.0.0.1:8080")));
        }
        let load = self.to_load().map_err(Failure::usage)?;
        let over_http = CacheLoad { api: Api::Http(url.trim_end_matches('/').to_owned()), ..load };
        let over_http = made(&over_http)?;
        let user = self.setup.user.clone();
        Ok(Some(Alternative {
            flag: COMPARE_HTTP,
            names: ["TCP", "HTTP"],
            plan: MadeDocument { name: format!("{}, over HTTP", over_http.name), ..over_http },
            amend: [
                Box::new(|flags| {
                    flags.bearer = None;
                    flags.headers.clear();
                }),
                Box::new(move |flags| {
                    if flags.bearer.is_none() {
                        flags.basic = Some(RawValue::new("--user", &*user));
                    }
                }),
            ],
            rounds: ROUNDS,
        }))
    }

    fn before(
        &self,
        resolve: &mut dyn FnMut() -> Result<Resolved, Failure>,
        alternative: Option<&Resolved>,
    ) -> Result<Vec<String>, Failure> {
        // Problems of the plan are reported before the first request to the server.
        if alternative.is_none() {
            resolve()?;
        }
        let load = self.to_load().map_err(Failure::usage)?;
        if self.setup.create {
            reach::create(&self.admin(), &self.setup.user, &load.cache)?;
        }
        reach::reach(&load.server, &load.cache, &self.admin())?;
        if let (Some(http), Some(url)) = (alternative, &self.compare_http) {
            reach::reach_http(url, &load.cache, &http.layered.patch)?;
        }
        Ok(load.notes())
    }

    fn notes(&self, result: &RunResult) -> Vec<Note> {
        figures::notes(self.targets(), result)
    }
}

/// The plan of a load.
fn made(load: &CacheLoad) -> Result<MadeDocument, Failure> {
    load.document().map_err(|error| Failure::usage(of_flag("the workload", &error)))
}

impl CacheArgs {
    fn targets(&self) -> Targets {
        match self.workload.threshold_set {
            None => Targets::None,
            Some(ThresholdSet::Carbon) => Targets::Carbon,
        }
    }

    /// The workload that the flags describe.
    fn to_load(&self) -> Result<CacheLoad, Problem> {
        let args = &self.workload;
        let default = CacheLoad::default();
        let mut size = args.preset.map_or(default.size, Preset::size);
        let settings = self.run.settings();
        let has_rate = settings.rate.is_some() || settings.stages.is_some();
        let iterations = self.run.iterations();
        size = Size { iterations: args.requests.or(iterations).or(size.iterations), ..size };
        // A duration replaces the number of iterations.
        if settings.duration.is_some() {
            size.iterations = None;
        }
        if has_rate {
            size.rate = None;
        }
        let mix = Mix::parse(&args.mix).map_err(|error| of_flag("--mix", &error))?;
        let (keys, value_size) = args.keys.read("sequential")?;
        Ok(CacheLoad {
            server: address(&args.server).to_owned(),
            cache: args.cache.clone(),
            api: Api::Tcp,
            verify: !args.no_verify && (args.verify || mix.knows_values()),
            mix,
            keys,
            key_size: args.key_size,
            value_size,
            is_paced: size.rate.is_some() || has_rate,
            at_once: self.run.at_once(size.connections),
            size,
            targets: self.targets(),
        })
    }

    /// The URL of the HTTP API.
    fn admin(&self) -> String {
        let host = || {
            let server = address(&self.workload.server);
            match server.rsplit_once(':') {
                Some((host, port)) if !port.contains(']') => host.to_owned(),
                _ => server.to_owned(),
            }
        };
        self.setup.admin.clone().unwrap_or_else(|| format!("http://{}:{ADMIN_PORT}", host()))
    }
}

/// The address of a server without the scheme that Carbon's own output has in front of it.
fn address(text: &str) -> &str {
    ["tcp://", "carbon://"].iter().find_map(|scheme| text.strip_prefix(scheme)).unwrap_or(text)
}
