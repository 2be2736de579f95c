//! The flags of `plimsoll ingest`.

use clap::{Args, Subcommand, ValueEnum};
use plimsoll_document::{Problem, Problems};
use plimsoll_schedule::parse_rate;
use plimsoll_synth::{Compression, Format, Kind, Shape, Spec, TimeUnit, precision_in};
use plimsoll_workloads::WorkloadError;
use plimsoll_workloads::ingest::{DEFAULT_URL, IngestLoad, Preset, Stream, unified_rate};

use crate::args::instant::instant;
use crate::args::named::named;
use crate::args::run::RunArgs;
use crate::args::share::parse_percent;
use crate::args::workload::ingest_demo::IngestDemoArgs;

/// Default number of records of a batch.
const BATCH_SIZE: u32 = 1_000;
/// The names of presets: that of the scripts first.
const PRESETS: [PresetName; Preset::ALL.len() + 1] = {
    let mut all = [PresetName::Arc; Preset::ALL.len() + 1];
    let mut index = 0;
    while index < Preset::ALL.len() {
        all[index + 1] = PresetName::Sized(Preset::ALL[index]);
        index += 1;
    }
    all
};

#[derive(Debug, Args)]
// A rate is one of records here; that of the plan is one of batches.
#[command(mut_arg("rate", |arg| arg.long("batch-rate").short(None).help("Batches per second")))]
// `--rps` belongs to h2loadrunner and counts requests on each connection. Arc's scripts mean records by it.
#[command(mut_arg("rps", |arg| arg.long("batch-rps").hide(true)))]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct IngestArgs {
    #[command(subcommand)]
    pub(crate) instead: Option<InsteadOfLoad>,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Subcommands that do not put load on a store.
#[derive(Debug, Subcommand)]
pub(crate) enum InsteadOfLoad {
    /// Send a store the records of a marketing campaign, and query them in SQL
    ///
    /// Ninety minutes of a shop, half an hour of it a campaign: 4 events, 1,800 metrics, 5,000 logs and 1,000
    /// traces of 3 spans, into four databases. The store is asked whether it has them all (exit code 6 if it
    /// has not), what happened when CPU spiked, which errors there were, and how latency changed. The same
    /// seed and time make the same records. The store is Arc, or `plimsoll target ingest`.
    Demo(Box<IngestDemoArgs>),
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
struct DataArgs {
    /// Kind of data; unified is all of them at once
    #[arg(value_enum, value_name = "KIND", required_unless_present = "preset")]
    what: Option<IngestKind>,
    /// A size from Arc's guide to load tests: kind, rate, batches, connections and length
    ///
    /// The name has the kind and the records per second; arc has the defaults of the script for the kind that
    /// is named beside it. Batches are columnar, with gzip at level 1. Other flags replace parts of it. With
    /// --thresholds arc its expectations have to hold.
    #[arg(long, value_name = "NAME", value_parser = named(&PRESETS, PresetName::name))]
    preset: Option<PresetName>,
    /// Judge the run by the guide: p99 of the preset, no errors, 95 % of the rate
    #[arg(long = "thresholds", value_enum, value_name = "SET", requires = "preset")]
    threshold_set: Option<ThresholdSet>,
    /// Records per second in total [default: as fast as the store answers]
    ///
    /// Of unified, the kinds share it as Arc's script has them: 1,000,000 metrics to 500,000 logs, 400,000
    /// spans and 500,000 events. Times are those of batches.
    #[arg(long = "rate", visible_alias = "rps", id = "record_rate", value_name = "RECORDS/S")]
    #[arg(short = 'R', allow_negative_numbers = true, conflicts_with = "rate")]
    rate: Option<String>,
    /// Records of a batch [default: 1000]
    #[arg(long, value_name = "N")]
    batch_size: Option<u32>,
    /// Format of batches [default: columnar; of `ingest metrics --preset arc` row, as its script has it]
    #[arg(long, value_name = "FORMAT", value_parser = named(&Format::ALL, Format::name))]
    format: Option<Format>,
    /// Compression of batches: none, gzip or zstd [default: none]
    #[arg(long, value_enum, value_name = "METHOD")]
    compression: Option<Method>,
    /// Level of the compression: gzip 1 to 9, zstd -7 to 19
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    compression_level: i8,
    /// Measurement, table or index that records go to [default: that of the kind in Arc's scripts]
    #[arg(long, value_name = "NAME")]
    measurement: Option<String>,
    /// Columns of a record: seed, host (of metrics: three shares of use) or small
    #[arg(long, value_name = "SHAPE", value_parser = named(&Shape::ALL, Shape::name))]
    shape: Option<Shape>,
    /// Services of logs or spans [default: 50 of logs, 20 of spans]
    #[arg(long, alias = "num-services", value_name = "N", hide_short_help = true)]
    services: Option<u32>,
    /// Hosts of the metrics [default: 100]
    #[arg(long, value_name = "N", hide_short_help = true)]
    hosts: Option<u32>,
    /// Different series of the metrics at any one time [default: every metric of every host]
    #[arg(long, value_name = "N", hide_short_help = true)]
    cardinality: Option<u32>,
    /// Share of the series that new ones replace per second
    #[arg(long, value_name = "PERCENT", default_value = "0%", hide_short_help = true)]
    churn: String,
    /// Unit of times where the format leaves it open: s, ms, us or ns [default: ms; of unified us; of
    /// metrics and logs with --preset ns]
    #[arg(long, value_name = "UNIT", value_parser = named(&TimeUnit::ALL, TimeUnit::name))]
    #[arg(hide_short_help = true)]
    time_unit: Option<TimeUnit>,
    /// Times of the data begin there, not now: 2026-01-01T00:00:00Z, or an age such as 12h
    ///
    /// From there they follow each other by the rate, whatever the clock says: with --seed every batch is the
    /// same in another run.
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    start_time: Option<String>,
    /// Make N batches of each kind first, and send them repeatedly
    ///
    /// Without it every batch is a new one, made ahead by threads of its own. A store that leaves out records
    /// it already has does less work for repeated batches.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) pregenerate: Option<u32>,
    /// Instead of a single run, make one at each size of batches, such as batch-size=500,1000,5000,20000
    ///
    /// The report has throughput beside the times that batches take: larger ones cost a store less, and each
    /// takes longer. With --threshold each level is judged.
    #[arg(long, value_name = "batch-size=N,N,…")]
    #[arg(conflicts_with_all = ["batch_size", "verify", "pregenerate", "print_plan", "repeat", "probe"])]
    #[arg(conflicts_with_all = ["calibrate", "slices", "report", "save"])]
    sweep: Option<String>,
    /// Print the plan that the flags make, and exit
    #[arg(long)]
    print_plan: bool,
    /// Flag of Arc's script for metrics: batches are columnar, which others are anyway
    #[arg(long, hide = true, conflicts_with = "format")]
    columnar: bool,
    /// Flag of Arc's script for metrics: a rate is kept anyway
    #[arg(long, hide = true)]
    throttle: bool,
}

/// The destination of batches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// The store; batches go to its path, or to that of the format if it has none
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL)]
    url: String,
    /// Token for the store; the same as --bearer, with @FILE to read it from a file
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Database of Arc, sent as x-arc-database
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Databases that share the load, as those of many tenants do: NAME_1, NAME_2 and so on
    ///
    /// NAME is that of --database, else `default`. Each of them has its own figures, and with --verify its
    /// own count.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    databases: Option<u32>,
    /// Check afterwards that the store has every acknowledged record, each once and at its time
    ///
    /// Before the run and after it the store is asked how many it has, and from when to when: Arc and
    /// `plimsoll target ingest` by SQL after a flush, InfluxDB and Prometheus by their query APIs. Records
    /// that are missing, twice there, or never sent (at that time) are exit code 6.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Connections [default: a tenth of the batches per second, from 50 to 500; of remote-write 1]
    #[arg(long, value_name = "N", conflicts_with = "connections")]
    workers: Option<u32>,
}

/// Kind of data to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IngestKind {
    /// Values of series over time
    Metrics,
    /// Lines that services write
    Logs,
    /// Spans
    Traces,
    /// Occurrences
    Events,
    /// All of them at once
    Unified,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ThresholdSet {
    Arc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PresetName {
    /// The defaults of Arc's script for the kind of data.
    Arc,
    Sized(Preset),
}

impl PresetName {
    fn name(self) -> &'static str {
        match self {
            Self::Arc => "arc",
            Self::Sized(preset) => preset.name(),
        }
    }

    /// The preset for these kinds of data, and the kinds: those of the preset, if none are named.
    ///
    /// # Errors
    /// The preset is for other kinds, or for any kind while none is named.
    fn of(self, kinds: Vec<Kind>) -> Result<(Preset, Vec<Kind>), Problem> {
        match (self, &kinds[..]) {
            (Self::Arc, []) => {
                let problem =
                    Problem::new("the preset arc has the defaults of a script, and no kind is named");
                Err(problem.with_hint("write `plimsoll ingest logs --preset arc`"))
            }
            (Self::Arc, [kind]) => Ok((Preset::of_script(*kind), kinds)),
            (Self::Arc, _) => Ok((Preset::OF_UNIFIED_SCRIPT, kinds)),
            (Self::Sized(preset), []) => Ok((preset, vec![preset.kind])),
            (Self::Sized(preset), [kind]) if *kind == preset.kind => Ok((preset, kinds)),
            (Self::Sized(preset), _) => {
                let problem = Problem::new(format!("the preset {} is one of {}", preset.name, preset.kind));
                Err(problem.with_hint("leave out the kind, or take another preset"))
            }
        }
    }
}

/// Compression of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Not at all
    None,
    Gzip,
    Zstd,
}

impl IngestKind {
    fn kinds(self) -> Vec<Kind> {
        match self {
            Self::Metrics => vec![Kind::Metrics],
            Self::Logs => vec![Kind::Logs],
            Self::Traces => vec![Kind::Traces],
            Self::Events => vec![Kind::Events],
            Self::Unified => Kind::ALL.to_vec(),
        }
    }
}

impl IngestArgs {
    /// Returns `true` if only the plan is to be printed.
    pub(crate) fn prints_plan(&self) -> bool {
        self.data.print_plan
    }

    /// Batches of each kind that are made before the run, if they are.
    pub(crate) fn pregenerated(&self) -> Option<u32> {
        self.data.pregenerate
    }

    /// Returns notes on flags that change nothing, since command lines of Arc's scripts have them.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &'static str> {
        let args = &self.data;
        let unthrottled = args.throttle && args.rate.is_none() && !self.run.plan.has_rate();
        [
            (
                args.preset == Some(PresetName::Arc) && args.pregenerate.is_none(),
                "each batch is a new one, where Arc's script sends 500 again and again: --pregenerate 500",
            ),
            (
                args.columnar && !self.is_metrics_script(),
                "--columnar changes nothing: batches are columnar unless --format says something else",
            ),
            (args.throttle, "--throttle changes nothing: a rate is always kept"),
            (unthrottled && args.preset.is_none(), "there is no rate to keep: name it with --rate"),
        ]
        .into_iter()
        .filter_map(|(told, note)| told.then_some(note))
    }

    /// Returns `true` if the defaults are those of Arc's script for metrics.
    fn is_metrics_script(&self) -> bool {
        self.data.preset == Some(PresetName::Arc) && matches!(self.data.what, Some(IngestKind::Metrics))
    }

    /// The format of batches.
    fn format(&self) -> Format {
        let by_default =
            if self.is_metrics_script() && !self.data.columnar { Format::Row } else { Format::Columnar };
        self.data.format.unwrap_or(by_default)
    }

    /// The sizes of batches that are tried, if several are.
    ///
    /// # Errors
    /// There are none, or something else is to be varied.
    pub(crate) fn sweep(&self) -> Result<Option<Vec<u32>>, Problem> {
        let Some(text) = &self.data.sweep else { return Ok(None) };
        let sizes = text.strip_prefix("batch-size=").map(|levels| levels.split(','));
        let sizes = sizes.map(|levels| levels.map(|level| level.trim().parse()).collect());
        match sizes {
            Some(Ok(sizes)) => Ok(Some(sizes)),
            Some(Err(_)) | None => {
                let problem = Problem::new(format!("--sweep: `{text}` names no sizes of batches"));
                Err(problem.with_hint("write it as in --sweep batch-size=500,1000,5000,20000"))
            }
        }
    }

    /// The values that flags have in words of their own.
    ///
    /// # Errors
    /// All problems with them.
    fn values(&self) -> Result<Values, Problems> {
        let args = &self.data;
        let mut problems = Problems::default();
        let rate = args.rate.as_deref().map(|text| match parse_rate(text) {
            Ok(rate) => rate.per_second_f64(),
            Err(error) => {
                let problem = Problem::new(format!("--rate: {error}"));
                problems.push(
                    problem.with_hint("it is in records: --rate 500k are 500 batches of 1,000 a second"),
                );
                0.0
            }
        });
        let churn = parse_percent(&args.churn).filter(|share| (0.0..=1.0).contains(share));
        if churn.is_none() {
            let problem = Problem::new(format!("--churn: `{}` is not a share", args.churn));
            problems.push(problem.with_hint("write it as in 1%"));
        }
        let method = if args.preset.is_some() { Method::Gzip } else { Method::None };
        let method = args.compression.unwrap_or(method);
        let compression = match (method, u8::try_from(args.compression_level)) {
            (Method::None, _) => Compression::None,
            (Method::Zstd, _) => Compression::Zstd { level: args.compression_level },
            (Method::Gzip, Ok(level)) => Compression::Gzip { level },
            (Method::Gzip, Err(_)) => {
                let problem = Problem::new(format!("gzip has no level {}", args.compression_level));
                problems.push(problem.with_hint("a level is from 1 to 9"));
                Compression::None
            }
        };
        let start_ms = args.start_time.as_deref().map(|text| match instant("--start-time", text) {
            Ok(nanos) => nanos / 1_000_000,
            Err(problem) => {
                problems.push(problem);
                0
            }
        });
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Values { rate, churn: churn.unwrap_or(0.0), compression, start_ms })
    }

    /// The workload that the flags describe.
    ///
    /// # Errors
    /// All problems with them.
    pub(crate) fn to_load(&self) -> Result<IngestLoad, Problems> {
        let args = &self.data;
        let Values { rate, churn, compression, start_ms } = self.values()?;
        // Without a preset there is a kind.
        let kinds = args.what.map_or_else(Vec::new, IngestKind::kinds);
        let (preset, kinds) = match args.preset {
            None => (None, kinds),
            Some(name) => name.of(kinds).map(|(preset, kinds)| (Some(preset), kinds))?,
        };
        let is_script = args.preset == Some(PresetName::Arc) && kinds.len() == 1;
        let preset =
            preset.map(|preset| rate.filter(|_| is_script).map_or(preset, |rate| preset.at_rate(rate)));
        let paced = self.run.plan.has_rate();
        let rate = rate.or(preset.filter(|_| !paced).map(|preset| f64::from(preset.rate)));
        let batch_size = args.batch_size.or(preset.map(|preset| preset.batch_size));
        // Only the API that takes these formats has databases of this kind.
        let format = self.format();
        let by_script = args.preset.is_some() && matches!(format, Format::Columnar | Format::Row);
        let database = |kind: Kind| {
            let of_script = || by_script.then(|| Preset::database_of_script(kind).to_owned());
            self.store.database.clone().or_else(of_script)
        };
        let shape = match (args.shape, kinds.len()) {
            (Some(shape), _) => shape,
            (None, 1) => Shape::Seed,
            (None, _) => Shape::Small,
        };
        // With line protocol, the URL may already give the unit.
        let of_url = precision_in(&self.store.url).filter(|_| format == Format::InfluxLine);
        let of_url = of_url.and_then(TimeUnit::of_precision);
        let time_unit = args.time_unit.or(of_url).unwrap_or(match kinds.len() {
            2.. if format.has_unit() => TimeUnit::Us,
            // Those of Arc's scripts for these kinds are.
            1 if by_script && matches!(kinds[..], [Kind::Metrics | Kind::Logs]) => TimeUnit::Ns,
            _ => TimeUnit::Ms,
        });
        let all: f64 = kinds.iter().copied().map(unified_rate).sum();
        // With several kinds, a flag applies to those that know it; with one kind, it has to fit.
        let is_about = |kind: Kind, about: &[Kind]| kinds.len() == 1 || about.contains(&kind);
        let is_about_series = |kind: Kind| is_about(kind, &[Kind::Metrics]);
        let stream = |kind: Kind| Stream {
            database: database(kind),
            spec: Spec {
                kind,
                format,
                compression,
                measurement: args.measurement.clone(),
                batch_size: batch_size.unwrap_or(BATCH_SIZE),
                shape,
                services: args.services.filter(|_| is_about(kind, &[Kind::Logs, Kind::Traces])),
                hosts: args.hosts.filter(|_| is_about_series(kind)),
                cardinality: args.cardinality.filter(|_| is_about_series(kind)),
                churn: if is_about_series(kind) { churn } else { 0.0 },
                start_ms,
                time_unit,
                ..Spec::default()
            },
            records_per_second: rate.map(|rate| rate * unified_rate(kind) / all),
        };
        let load = IngestLoad {
            url: self.store.url.clone(),
            streams: kinds.iter().copied().map(stream).collect(),
            batches: self.run.plan.iterations(),
            connections: self.store.workers.or(preset.map(|preset| preset.connections)),
            seconds: preset.filter(|_| !self.run.plan.has_end()).map(|preset| preset.seconds),
            thresholds: match (args.threshold_set, preset) {
                (Some(ThresholdSet::Arc), Some(preset)) => preset.thresholds(),
                _ => Vec::new(),
            },
        };
        match self.store.databases {
            Some(_) if load.database_of_url().is_some() => {
                let problem =
                    Problem::new("--databases and the database that --url names exclude each other");
                Err(problem.with_hint("leave one of them out").into())
            }
            Some(count) => Ok(load.over_databases(count)),
            None => Ok(load),
        }
    }
}

/// Values of flags that are written in words of their own.
struct Values {
    /// Records per second.
    rate: Option<f64>,
    churn: f64,
    compression: Compression,
    start_ms: Option<u64>,
}

/// Converts an error of the workload to a problem with the flags that were typed.
pub(crate) fn problem(error: &WorkloadError) -> Problem {
    Problem::new(error.to_string()).with_hint(error.hint())
}
