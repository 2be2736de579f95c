//! `plimsoll calibrate`: the highest load of this machine, against a server that answers at once.

use std::borrow::Cow;

use plimsoll_core::{Nanos, Rate};
use plimsoll_document::{Problem, RawValue};
use plimsoll_driver::Endpoint;
use plimsoll_engine::Progress;
use plimsoll_metrics::{Reason, ReasonCode, RunRecord};
use plimsoll_plan::{BackendChoice, Disk, Plan, PlanPatch, Switch, parse_backend};
use plimsoll_report::{CALIBRATION_SCHEMA_VERSION, Calibration, CalibrationCell, Style, Summary, rfc3339};
use plimsoll_schedule::parse_duration;
use plimsoll_system::clock;
use plimsoll_targets::{Body, Reply, Service, SinkOptions};
use serde_json::Value;

use crate::args::calibrate::CalibrateArgs;
use crate::args::output::TableOutputFormat;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::script_host;
use crate::base::{certificate, environment, files, messages, stdout};
use crate::experiment::campaign::Campaign;
use crate::experiment::full_speed::{CONNECTIONS, WARMUP, interrupted};
use crate::session::backend::{self, backend_name};
use crate::session::calibration::{default_store, load_kind};
use crate::session::request::{PlanRequest, resolve_text};
use crate::session::{built_in_sink, describe};

/// Length of each of the two runs of a cell where nothing says another.
const LENGTH: Nanos = Nanos::from_secs(2);

/// Share of its time for which a worker is busy when its server is not the limit.
const SATURATED: f64 = 0.9;

/// Streams on each of them, for HTTP/2.
const STREAMS: u64 = 16;
/// A body that is no longer small.
const BODY_BYTES: u64 = 16 * 1024;

/// A script that returns the request unchanged, to measure the cost of a call.
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

/// Measurement of a workload in place of plain requests, by runs of this length: a text and a document.
pub(crate) type Comparison = fn(BackendChoice, Nanos, bool) -> Result<(String, Value), Failure>;

/// The command, or a comparison in its place.
pub(crate) fn command(
    args: &CalibrateArgs,
    instead: Option<Comparison>,
    style: &Style,
) -> Result<Exit, Failure> {
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
    if let Some(report) = instead {
        let (text, json) = report(backend, length, args.output.quiet)?;
        stdout::to_stdout(|out| match args.output.output {
            TableOutputFormat::Text => out.write_all(text.as_bytes()),
            _ => writeln!(out, "{json:#}"),
        })?;
        return Ok(Exit::Success);
    }
    let store = match args.store.clone().or_else(default_store) {
        Some(store) => store,
        None => {
            return Err(usage("no folder for data: HOME is not set; give --store FILE".to_owned()));
        }
    };
    let mut cells = Vec::new();
    let mut used = Cow::Borrowed("epoll");
    for kind in KINDS {
        let (cell, backend) = calibrate(kind, backend, length, args.output.quiet)?;
        let line = format!("{:>12}  {}", cell.limit_text(), cell.load.describe());
        messages::say(args.output.quiet)(&line);
        used = backend;
        cells.push(cell);
    }
    let calibration = Calibration {
        schema_version: CALIBRATION_SCHEMA_VERSION,
        tool: describe::tool(),
        made_at: rfc3339(clock::unix()),
        host: describe::host(),
        backend: used.into_owned(),
        cells,
    };
    keep(&calibration, &store)?;
    stdout::to_stdout(|out| match args.output.output {
        TableOutputFormat::Text => out.write_all(calibration.to_text(style).as_bytes()),
        _ => {
            serde_json::to_writer_pretty(&mut *out, &calibration)?;
            out.write_all(b"\n")
        }
    })?;
    if let Some(path) = &args.output.json {
        keep(&calibration, path)?;
    }
    messages::say(args.output.quiet)(&format!("kept in {}", store.display()));
    Ok(Exit::Success)
}

/// Measures one kind of load against a sink of this process.
fn calibrate(
    kind: Kind,
    backend: BackendChoice,
    length: Nanos,
    quiet: bool,
) -> Result<(CalibrationCell, Cow<'static, str>), Failure> {
    let sink = built_in_sink::start(kind.sink()?, backend::chosen(backend)?)?;
    let scheme = if kind.tls { "https" } else { "http" };
    let plan = kind.plan(&format!("{scheme}://{}/", sink.endpoint()), backend)?;
    let measured = measure(plan, length, quiet);
    sink.stop();
    let (cell, record) = measured?;
    Ok((cell, record.backend))
}

/// The limit of a plan, and the time that the machine adds at half of it.
fn measure(plan: Plan, length: Nanos, quiet: bool) -> Result<(CalibrationCell, RunRecord), Failure> {
    let mut plan = plan.at_full_speed(WARMUP, length);
    let campaign = Campaign::begin(&mut plan, quiet, 0)?;
    let go_on: &mut dyn FnMut(&Progress<'_>) -> bool = &mut |_| true;
    let full = campaign.run(&plan, go_on)?;
    interrupted(&campaign)?;
    let seconds = full.duration.as_secs_f64();
    let threads = full.workers.len().max(1) as f64;
    let busy =
        full.workers.iter().map(|worker| (worker.cpu_user + worker.cpu_system).as_secs_f64()).sum::<f64>();
    let (completed, share) = (full.completed_in_window as f64, busy / seconds.max(1e-9) / threads);
    if full.completed_in_window == 0 || share <= 0.0 {
        let problem = Problem::new("the built-in server answered nothing: calibration needs its answers");
        return Err(Failure::environment(problem.with_hint("`plimsoll demo` may show the cause")));
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
            messages::say(quiet)(&format!("note: the time added to {} is unknown: {why}", load.describe()));
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

/// Reason why a run at half of the limit does not show the time that the machine adds: it did not keep up.
fn unusable(at_half: &RunRecord) -> Option<String> {
    let verdict = &at_half.verdict;
    if !verdict.valid {
        return Some(verdict.limited_by.evidence.clone());
    }
    let piles_up = |warning: &&Reason| warning.code == ReasonCode::Overloaded;
    verdict.warnings.iter().find(piles_up).map(|warning| warning.evidence.clone())
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
            script_host: Some(script_host::lua(true)),
            backend: given("--backend", backend_name(backend).to_owned()),
            default_seed: surroundings.seed,
            ..PlanPatch::default()
        };
        if !self.script {
            return Plan::resolve(flags, &Disk).map_err(Failure::usage);
        }
        Ok(resolve_text("calibration.yaml", SCRIPTED.replace("URL", url), flags)?.plan)
    }
}

/// Calibrates by the requests of a plan itself, put on the built-in server instead of its targets.
pub(crate) fn of_plan(
    request: &PlanRequest<'_>,
    plan: &Plan,
    quiet: bool,
) -> Result<CalibrationCell, Failure> {
    if let Some(row) = plan.targets.iter().find_map(|target| target.protocol.row()) {
        let asked = format!("--calibrate: the built-in server speaks HTTP, and the plan asks {}", row.noun);
        let server = row.server_command;
        let hint = format!("put the same load on `{server}` to see the most that this machine generates");
        return Err(Failure::usage(Problem::new(asked).with_hint(hint)));
    }
    let tls = plan.targets.iter().any(|target| target.tls.is_some());
    if tls && plan.targets.iter().any(|target| target.tls.is_none()) {
        let problem = Problem::new("--calibrate: targets with TLS and without cannot be calibrated together");
        return Err(Failure::usage(problem.with_hint("calibrate with `plimsoll calibrate` instead")));
    }
    let kind = Kind { tls, ..KINDS[0] };
    let sink = built_in_sink::start(kind.sink()?, backend::chosen(plan.backend)?)?;
    let Endpoint::Tcp(address) = sink.endpoint().clone() else {
        return Err(Failure::environment(Problem::new("the built-in server has no TCP address")));
    };
    let resolved = request.resolve_amended(|flags| {
        flags.connect_to =
            vec![RawValue::new("--connect-to", format!("::{}:{}", address.ip(), address.port()))];
        flags.resolve.clear();
        flags.proxy = Some(RawValue::new("--proxy", "none"));
        if tls {
            flags.insecure = Switch::on("--insecure");
        }
        Ok(())
    })?;
    messages::say(quiet)("calibrating: the requests of this plan go to the built-in server first");
    let measured = measure(resolved.plan, LENGTH, true);
    sink.stop();
    Ok(measured?.0)
}

/// Writes a calibration, in place of an older one.
fn keep(calibration: &Calibration, path: &std::path::Path) -> Result<(), Failure> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::environment(Problem::new(format!("cannot make {}: {error}", folder.display())))
        })?;
    }
    files::to_file(path, |out| {
        serde_json::to_writer_pretty(&mut *out, calibration)?;
        out.write_all(b"\n")
    })
}

fn usage(message: String) -> Failure {
    Failure::usage(Problem::new(message))
}
