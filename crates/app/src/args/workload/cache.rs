//! The flags of `plimsoll cache`.

use clap::{Args, ValueEnum};
use plimsoll_plan::Problem;
use plimsoll_workloads::WorkloadError;
use plimsoll_workloads::cache::{Api, CacheLoad, KeyPattern, Mix, Preset, Size, Targets};

use crate::args::named::named;
use crate::args::run::RunArgs;

/// Default address of the cache's HTTP API, on the host of the cache.
const ADMIN_PORT: u16 = 8080;
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
    pub(crate) compare_http: Option<String>,
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
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
    /// Choice of keys: sequential, random, fixed, zipf or zipf:EXPONENT
    #[arg(long = "key", value_name = "PATTERN", default_value = "sequential")]
    key_pattern: String,
    /// Number of keys [default: sequential: a new one each time; random, zipf: 10000]
    #[arg(long, value_name = "N")]
    keys: Option<u64>,
    /// Bytes of a key, 32 or more [default: the shortest possible]
    #[arg(long, value_name = "BYTES")]
    key_size: Option<u32>,
    /// Bytes of a value: 100, 100-2000 (uniform) or exp:500
    #[arg(long, value_name = "BYTES", default_value = "100")]
    value_size: String,
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
pub(crate) struct SetupArgs {
    /// Create the cache first, over the HTTP API
    #[arg(long)]
    pub(crate) create: bool,
    /// The HTTP API of the server [default: port 8080 of the server's host]
    #[arg(long, value_name = "URL")]
    admin: Option<String>,
    /// User of the HTTP API: user:password, or @file; default: Carbon's initial user
    #[arg(long, value_name = "USER:PASSWORD", default_value = DEFAULT_USER)]
    pub(crate) user: String,
    /// Print the plan that the flags make, and exit
    #[arg(long)]
    pub(crate) print_plan: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ThresholdSet {
    Carbon,
}

impl CacheArgs {
    /// The flags that no plan can say, and whether each is given.
    pub(crate) fn beside_plans(&self) -> [(&'static str, bool); 4] {
        let setup = &self.setup;
        [
            ("--compare-http", self.compare_http.is_some()),
            ("--create", setup.create),
            ("--admin", setup.admin.is_some()),
            ("--user", setup.user != DEFAULT_USER),
        ]
    }

    /// The workload that the flags describe.
    pub(crate) fn to_load(&self) -> Result<CacheLoad, Problem> {
        let args = &self.workload;
        let default = CacheLoad::default();
        let mut size = args.preset.map_or(default.size, Preset::size);
        let iterations = self.run.plan.iterations();
        size = Size { iterations: args.requests.or(iterations).or(size.iterations), ..size };
        // A duration replaces the number of iterations.
        if self.run.plan.has_duration() {
            size.iterations = None;
        }
        if self.run.plan.has_rate() {
            size.rate = None;
        }
        let mix = Mix::parse(&args.mix).map_err(|error| problem("--mix", &error))?;
        Ok(CacheLoad {
            server: address(&args.server).to_owned(),
            cache: args.cache.clone(),
            api: Api::Tcp,
            verify: !args.no_verify && (args.verify || mix.knows_values()),
            mix,
            keys: KeyPattern::parse(&args.key_pattern, args.keys)
                .map_err(|error| problem("--key", &error))?,
            key_size: args.key_size,
            value_size: args.value_size.clone(),
            is_paced: size.rate.is_some() || self.run.plan.has_rate(),
            at_once: self.run.plan.at_once(size.connections),
            size,
            targets: match args.threshold_set {
                None => Targets::None,
                Some(ThresholdSet::Carbon) => Targets::Carbon,
            },
        })
    }

    /// The URL of the HTTP API.
    pub(crate) fn admin(&self) -> String {
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

/// Converts an error of the workload to a problem with the flag that was typed.
pub(crate) fn problem(flag: &str, error: &WorkloadError) -> Problem {
    Problem::new(format!("{flag}: {error}")).with_hint(error.hint())
}
