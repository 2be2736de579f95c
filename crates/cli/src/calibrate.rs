//! `plimsoll calibrate`: what this machine can generate at most, against a server that answers at once.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use plimsoll_core::{Nanos, Rate};
use plimsoll_driver::{BackendOptions, Endpoint, Open, OpenEpoll, OpenUring, clock};
use plimsoll_engine::Progress;
use plimsoll_metrics::{Reason, ReasonCode, RunRecord, figure};
use plimsoll_plan::{
    BackendChoice, Command, Disk, Plan, PlanPatch, Problem, Protocol, RawValue, ScriptHost, Switch,
    parse_backend,
};
use plimsoll_report::calibration::WARNING_SHARE;
use plimsoll_report::{
    CALIBRATION_SCHEMA_VERSION, Calibration, CalibrationCell, CalibrationUse, Host, LoadKind, Style, Summary,
    rfc3339,
};
use plimsoll_schedule::parse_duration;
use plimsoll_targets::{Body, Reply, Service, SinkOptions};

use crate::campaign::Campaign;
use crate::flags::PlanArgs;
use crate::output_flags::{TableOutputArgs, TableOutputFormat};
use crate::script_host::Terminal;
use crate::{
    Exit, Failure, calibrate_canister, certificate, describe, environment, import, outputs, run, serve,
};

/// Length of each of the two runs of a cell where nothing says another.
const LENGTH: Nanos = Nanos::from_secs(2);
/// Time for connections to be opened and caches to be filled.
pub(crate) const WARMUP: Nanos = Nanos::from_millis(300);
/// Share of its time for which a worker is busy when its server is not the limit.
const SATURATED: f64 = 0.9;
/// Connections of the cells that are not about their number.
pub(crate) const CONNECTIONS: u64 = 64;
/// Streams on each of them, for HTTP/2.
const STREAMS: u64 = 16;
/// A body that is no longer small.
const BODY_BYTES: u64 = 16 * 1024;
/// Name of the calibration in the folder of data.
const FILE: &str = "calibration.json";

/// A script that hands on the request as it is: what calling one costs.
const SCRIPTED: &str = "\
targets: {sink: URL}
scenarios:
  - steps:
      - get: /
        script: |
          function make_request(response_headers, response_body, request_headers, request_body)
            return request_headers, request_body
          end
";

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Length of each of the two runs per kind of load [default: 2s]
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,
    /// Where to keep the calibration [default: calibration.json in the user's folder of data]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// System interface: auto, epoll or uring [default: auto]
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Compare plain requests with calls of a canister against the same sink, and keep nothing
    ///
    /// What a call costs is told apart: its encoding and hashing, its signature, and HTTP.
    #[arg(long, conflicts_with = "store")]
    canister: bool,
    #[command(flatten)]
    output: TableOutputArgs,
}

/// One kind of load to calibrate.
#[derive(Clone, Copy)]
struct Kind {
    http2: bool,
    tls: bool,
    connections: u64,
    request_bytes: u64,
    response_bytes: u64,
    script: bool,
}

/// Kinds of load to measure. They vary one thing at a time: the protocol, TLS, the number of connections,
/// sizes, scripts.
const KINDS: [Kind; 11] = {
    let plain = Kind {
        http2: false,
        tls: false,
        connections: CONNECTIONS,
        request_bytes: 0,
        response_bytes: 0,
        script: false,
    };
    let http2 = Kind { http2: true, ..plain };
    [
        plain,
        Kind { connections: 1, ..plain },
        Kind { connections: 1_000, ..plain },
        Kind { request_bytes: BODY_BYTES, ..plain },
        Kind { response_bytes: BODY_BYTES, ..plain },
        Kind { script: true, ..plain },
        Kind { tls: true, ..plain },
        http2,
        Kind { connections: 1, ..http2 },
        Kind { script: true, ..http2 },
        Kind { tls: true, ..http2 },
    ]
};

/// The command.
pub(crate) fn command(args: &CalibrateArgs, style: &Style) -> Result<Exit, Failure> {
    let length = match &args.duration {
        None => LENGTH,
        Some(text) => match parse_duration(text) {
            Ok(length) if length >= Nanos::from_millis(200) => length,
            Ok(_) => return Err(usage("--duration: give each run 200ms at least".to_owned())),
            Err(error) => return Err(usage(format!("--duration: {error}"))),
        },
    };
    let backend = args.backend.as_deref().map(parse_backend).transpose();
    let backend = backend.map_err(|error| usage(format!("--backend: {error}")))?.unwrap_or_default();
    if args.output.output == TableOutputFormat::Csv {
        return Err(usage("a calibration has no CSV; use --output json".to_owned()));
    }
    if args.canister {
        let (text, json) = calibrate_canister::report(backend, length, args.output.quiet)?;
        run::to_stdout(|out| match args.output.output {
            TableOutputFormat::Text => out.write_all(text.as_bytes()),
            _ => writeln!(out, "{json:#}"),
        })?;
        return Ok(Exit::Success);
    }
    let store = match args.store.clone().or_else(default_store) {
        Some(store) => store,
        None => {
            return Err(usage("there is no folder for data: HOME is not set; give --store FILE".to_owned()));
        }
    };
    let mut cells = Vec::new();
    let mut used = "epoll";
    for kind in KINDS {
        let (cell, backend) = calibrate(kind, backend, length, args.output.quiet)?;
        let line = format!("{:>12}  {}", cell.limit_text(), cell.load.describe());
        run::say(args.output.quiet)(&line);
        used = backend;
        cells.push(cell);
    }
    let calibration = Calibration {
        schema_version: CALIBRATION_SCHEMA_VERSION,
        tool: describe::tool(),
        made_at: rfc3339(clock::unix()),
        host: describe::host(),
        backend: used.to_owned(),
        cells,
    };
    keep(&calibration, &store)?;
    run::to_stdout(|out| match args.output.output {
        TableOutputFormat::Text => out.write_all(calibration.to_text(style).as_bytes()),
        _ => {
            serde_json::to_writer_pretty(&mut *out, &calibration)?;
            out.write_all(b"\n")
        }
    })?;
    if let Some(path) = &args.output.json {
        keep(&calibration, path)?;
    }
    run::say(args.output.quiet)(&format!("kept in {}", store.display()));
    Ok(Exit::Success)
}

/// Measures one kind of load against a sink of this process.
fn calibrate(
    kind: Kind,
    backend: BackendChoice,
    length: Nanos,
    quiet: bool,
) -> Result<(CalibrationCell, &'static str), Failure> {
    let uring = run::uses_uring(backend)?;
    let sink = serve::start(kind.sink()?, uring)?;
    let scheme = if kind.tls { "https" } else { "http" };
    let plan = kind.plan(&format!("{scheme}://{}/", sink.endpoint()), backend)?;
    let measured = measure(plan, length, quiet, uring);
    sink.stop();
    let (cell, record) = measured?;
    Ok((cell, record.backend))
}

/// The limit of a plan, and what the machine adds at half of it.
fn measure(
    plan: Plan,
    length: Nanos,
    quiet: bool,
    uring: bool,
) -> Result<(CalibrationCell, RunRecord), Failure> {
    let options = BackendOptions::default();
    if uring {
        measure_on(plan, &OpenUring(options), length, quiet)
    } else {
        measure_on(plan, &OpenEpoll(options), length, quiet)
    }
}

fn measure_on<O: Open + Clone + 'static>(
    plan: Plan,
    open: &O,
    length: Nanos,
    quiet: bool,
) -> Result<(CalibrationCell, RunRecord), Failure> {
    let mut plan = plan.at_full_speed(WARMUP, length);
    let campaign = Campaign::begin(&mut plan, open, quiet, 0)?;
    let go_on: &mut dyn FnMut(&Progress<'_>) -> bool = &mut |_| true;
    let full = campaign.run(&plan, go_on)?;
    interrupted(&campaign)?;
    let seconds = full.duration.as_secs_f64();
    let threads = full.workers.len().max(1) as f64;
    let busy =
        full.workers.iter().map(|worker| (worker.cpu_user + worker.cpu_system).as_secs_f64()).sum::<f64>();
    let (completed, share) = (full.completed_in_window as f64, busy / seconds.max(1e-9) / threads);
    if full.completed_in_window == 0 || share <= 0.0 {
        let problem = Problem::new("the built-in server answered nothing: there is nothing to calibrate by");
        return Err(Failure::environment(problem.with_hint("see `plimsoll demo` for what goes wrong")));
    }
    let saturated = share >= SATURATED;
    // A thread that is not busy all the time could do more in the same proportion.
    let limit_per_s = completed / seconds / threads / if saturated { 1.0 } else { share };
    let iterations = completed / full.iterations.completed.max(1) as f64;
    let half = (completed / seconds / 2.0 / iterations).max(1.0);
    let rate = Rate::per_second(half as u64);
    let at_half = plan
        .at_rate(&[(rate, WARMUP)], rate, length, length)
        .map_err(|error| Failure::environment(Problem::new(error.to_string())))?;
    let at_half = campaign.run(&at_half, go_on)?;
    interrupted(&campaign)?;
    let load = load_kind(&full, &plan);
    let added = match unusable(&at_half) {
        None => {
            let added = Summary::new(&at_half.total.response_time, at_half.total.censored_response).p;
            [added.p50, added.p99]
        }
        Some(why) => {
            run::say(quiet)(&format!("note: what is added to {} is not known: {why}", load.describe()));
            [None; 2]
        }
    };
    let cell = CalibrationCell {
        load,
        limit_per_s,
        reached_per_s: Some(completed / seconds / threads),
        saturated,
        cpu_us_per_request: busy * 1e6 / completed,
        added_p50_ns: added[0],
        added_p99_ns: added[1],
    };
    Ok((cell, full))
}

/// Why the times of a run at half of the limit are not what the machine adds: it did not keep up.
fn unusable(at_half: &RunRecord) -> Option<String> {
    let verdict = &at_half.verdict;
    if !verdict.valid {
        return Some(verdict.limited_by.evidence.clone());
    }
    let piles_up = |warning: &&Reason| warning.code == ReasonCode::Overloaded;
    verdict.warnings.iter().find(piles_up).map(|warning| warning.evidence.clone())
}

pub(crate) fn interrupted<O: Open + Clone + 'static>(campaign: &Campaign<'_, O>) -> Result<(), Failure> {
    match campaign.interrupted() {
        None => Ok(()),
        Some(signal) => Err(Failure {
            exit: Exit::Interrupted(signal),
            ..Failure::environment(Problem::new("interrupted: nothing was kept"))
        }),
    }
}

impl Kind {
    fn sink(self) -> Result<SinkOptions, Failure> {
        let mut options = SinkOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()));
        if self.response_bytes > 0 {
            options.service =
                Service::Reply(Reply { body: Body::Bytes(self.response_bytes), ..Reply::default() });
        }
        if self.tls {
            let config = certificate::self_signed()
                .map_err(|error| Failure::environment(Problem::new(format!("no TLS: {error}"))))?;
            options.tls = Some(config);
        }
        Ok(options)
    }

    fn plan(self, url: &str, backend: BackendChoice) -> Result<Plan, Failure> {
        let given = |by: &'static str, value: String| Some(RawValue::new(by, value));
        let on = |by: &'static str, on: bool| if on { Switch::on(by) } else { Switch::default() };
        let surroundings = environment::surroundings();
        let flags = PlanPatch {
            urls: if self.script { Vec::new() } else { vec![RawValue::new("URL", url)] },
            connections: given("--connections", self.connections.to_string()),
            max_concurrent_streams: if self.http2 {
                vec![RawValue::new("--streams", STREAMS.to_string())]
            } else {
                Vec::new()
            },
            http2: on("--http2", self.http2),
            insecure: on("--insecure", self.tls),
            body: (self.request_bytes > 0)
                .then(|| RawValue::new("--body", "x".repeat(self.request_bytes as usize))),
            script_host: Some(ScriptHost(Arc::new(Terminal { quiet: true }))),
            backend: given("--backend", backend_name(backend).to_owned()),
            default_seed: surroundings.seed,
            ..PlanPatch::default()
        };
        if !self.script {
            return Plan::resolve(flags, &Disk).map_err(Failure::usage);
        }
        let name = "calibration.yaml";
        let files = import::WithPlan { name: name.into(), text: SCRIPTED.replace("URL", url) };
        let command = Command { plan: Some(name.to_owned()), environment: Vec::new(), flags };
        Ok(command.resolve(&files)?.plan)
    }
}

pub(crate) const fn backend_name(backend: BackendChoice) -> &'static str {
    match backend {
        BackendChoice::Auto => "auto",
        BackendChoice::Epoll => "epoll",
        BackendChoice::Uring => "uring",
    }
}

/// Returns the kind of load of a run.
fn load_kind(record: &RunRecord, plan: &Plan) -> LoadKind {
    let model = describe::model(plan);
    let most = record.protocols.iter().max_by_key(|(_, responses)| **responses);
    let mean = |bytes: u64, of: u64| bytes.checked_div(of).unwrap_or(0);
    let protocol = match most {
        _ if plan.targets.iter().any(|target| target.protocol == Protocol::Cache) => "cache",
        Some((protocol, _)) => protocol.as_str(),
        None => "http/1.1",
    };
    LoadKind {
        protocol: protocol.to_owned(),
        tls: !record.tls_versions.is_empty(),
        connections: model.connections,
        depth: if protocol == "h2" { model.depth } else { u64::from(plan.connections.depth) },
        request_bytes: mean(record.total.bytes_sent, record.accounting.started),
        response_bytes: mean(record.total.bytes_received, record.total.completed()),
        script: plan.scripts.is_some(),
    }
}

/// Calibrates by the requests of a plan itself, put on the built-in server instead of its targets.
pub(crate) fn of_plan(args: &PlanArgs, plan: &Plan, quiet: bool) -> Result<CalibrationCell, Failure> {
    if plan.targets.iter().any(|target| target.protocol == Protocol::Cache) {
        let problem = Problem::new("--calibrate: the built-in server speaks HTTP, and the plan asks a cache");
        let hint = "put the same load on `plimsoll target cache` to see what this machine generates at most";
        return Err(Failure::usage(problem.with_hint(hint)));
    }
    let tls = plan.targets.iter().any(|target| target.tls.is_some());
    if tls && plan.targets.iter().any(|target| target.tls.is_none()) {
        let problem = Problem::new("--calibrate: targets with TLS and without cannot be calibrated together");
        return Err(Failure::usage(problem.with_hint("calibrate with `plimsoll calibrate` instead")));
    }
    let kind = Kind { tls, ..KINDS[0] };
    let uring = run::uses_uring(plan.backend)?;
    let sink = serve::start(kind.sink()?, uring)?;
    let Endpoint::Tcp(address) = sink.endpoint().clone() else {
        return Err(Failure::environment(Problem::new("the built-in server has no TCP address")));
    };
    let resolved = import::resolve_amended(args, true, |flags| {
        flags.connect_to =
            vec![RawValue::new("--connect-to", format!("::{}:{}", address.ip(), address.port()))];
        flags.resolve.clear();
        if tls {
            flags.insecure = Switch::on("--insecure");
        }
        Ok(())
    })?;
    run::say(quiet)("calibrating: the requests of this plan go to the built-in server first");
    let measured = measure(resolved.plan, LENGTH, true, uring);
    sink.stop();
    Ok(measured?.0)
}

/// Returns how much of the capacity of the machine, which is `host`, a run has used. The capacity is that of
/// the run's own calibration if there is one, else of the one that was kept. `Err` says why it is not known.
pub(crate) fn used(
    record: &RunRecord,
    plan: &Plan,
    own: Option<&CalibrationCell>,
    host: &Host,
) -> Result<CalibrationUse, Option<String>> {
    let seconds = record.duration.as_secs_f64();
    if seconds <= 0.0 {
        return Err(None);
    }
    let achieved = record.completed_in_window as f64 / seconds;
    let threads = record.workers.len() as u64;
    if let Some(cell) = own {
        let used = cell.used(&rfc3339(record.started_unix), threads, achieved);
        return Ok(CalibrationUse { of_this_plan: true, ..used });
    }
    // Who has never calibrated need not be told each time.
    let text = default_store().and_then(|path| std::fs::read_to_string(path).ok()).ok_or(None)?;
    let calibration = Calibration::read(&text)?;
    calibration.check(&describe::tool(), host, record.backend)?;
    // Of a kind that `calibrate` does not know, doing it again would not help.
    calibration.used(&load_kind(record, plan), threads, achieved).ok_or(None)
}

/// The warning that a run used too much of what the machine can generate to be unaffected by that.
pub(crate) fn warning(used: &CalibrationUse) -> Option<Reason> {
    (used.used_share > WARNING_SHARE).then(|| Reason {
        code: ReasonCode::CalibratedLimit,
        evidence: format!(
            "the generator used {} of what this machine was calibrated for ({} for {})",
            figure::share(used.used_share),
            figure::per_second(used.limit_per_s),
            if used.of_this_plan { "this plan's requests".to_owned() } else { used.load.describe() },
        ),
        hint: "use a lower rate, or more threads (-t) where there are CPUs for them: beyond half of it, response times hold \
               queueing of its own"
            .to_owned(),
    })
}

fn default_store() -> Option<PathBuf> {
    environment::data_folder().map(|folder| folder.join(FILE))
}

/// Writes a calibration, in the place of an older one.
fn keep(calibration: &Calibration, path: &std::path::Path) -> Result<(), Failure> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::environment(Problem::new(format!("cannot make {}: {error}", folder.display())))
        })?;
    }
    outputs::to_file(path, |out| {
        serde_json::to_writer_pretty(&mut *out, calibration)?;
        out.write_all(b"\n")
    })
}

fn usage(message: String) -> Failure {
    Failure::usage(Problem::new(message))
}
