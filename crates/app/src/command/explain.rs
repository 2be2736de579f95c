//! `plimsoll explain`: the meaning of a plan, and the origin of each of its settings.

mod schedule;

use std::fmt::Write as _;

use plimsoll_core::Redaction;
use plimsoll_core::redaction::HIDDEN;
use plimsoll_core::{Nanos, Shard, figure, text::plural};
use plimsoll_document::{DocumentOrigin, Field, LoadedDocument, RawValue, SettingLayers, StepSpec, Text};
use plimsoll_plan::{Connections, Dealing, Load, Overload, Pacing, Plan, Resolved, Target};
use plimsoll_report::Style;
use plimsoll_scenario::{AtEnd, Order, Per, Rows, Share};
use plimsoll_schedule::{Arrivals, Process};
use serde_json::{Value, json};

use crate::args::document::{DocumentArgs, DocumentFormat};
use crate::base::diagnostics::Position;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::{problems, stdout};
use crate::session::backend::SPARE_DESCRIPTORS;
use crate::session::describe;
use crate::session::request::PlanRequest;

/// Memory of a run with one thread, one step and one connection (peak RSS; bench/RESULTS.md, "Memory of
/// 10,000 connections").
const BASE_BYTES: u64 = 7 * MIB;
/// Memory of an HTTP/1.1 connection (0.46 KiB; the same table).
const HTTP1_BYTES: u64 = 471;
/// Memory of an HTTP/2 connection beside its streams (bench/RESULTS.md, "HTTP/2: memory of 1,000 connections
/// x 100 streams").
const HTTP2_BYTES: u64 = 6355;
/// Memory of a stream (the same table).
const STREAM_BYTES: u64 = 229;
/// Memory of the histograms of one more step or thread, at most: seven histograms of 37,900 buckets of 8
/// bytes (`metrics::Recorder`), of which only the pages that are written to count.
const STEP_BYTES: u64 = 7 * 37_900 * 8;
const MIB: u64 = 1024 * 1024;

pub(crate) fn command(args: &DocumentArgs, style: &Style) -> Result<Exit, Failure> {
    let resolved = PlanRequest::shown(&args.plan).resolve();
    let text = match (resolved, args.output) {
        (Err(failure), DocumentFormat::Json) => {
            problems::to_stdout_as_json(&failure)?;
            return Ok(failure.exit);
        }
        (resolved, DocumentFormat::Text) => explanation(&resolved?, style.color),
        (Ok(resolved), DocumentFormat::Json) => format!("{:#}\n", to_json(&resolved)),
    };
    stdout::to_stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Success)
}

fn to_json(resolved: &Resolved) -> Value {
    let Resolved { plan, layered } = resolved;
    let document = layered.patch.document.as_deref();
    let name = document.and_then(|document| document.document.name.get()).map(Text::as_str);
    let settings = |rows: Vec<[String; 3]>| {
        let rows = rows.into_iter();
        rows.map(|[name, value, origin]| json!({ "name": name, "value": value, "origin": origin }))
            .collect::<Vec<_>>()
    };
    let (given, gone) = settings_of(resolved);
    json!({
        "ok": true,
        "name": name,
        "settings": settings(given),
        "without_effect": settings(gone),
        "schedule": schedule::preview(plan),
        "text": explanation(resolved, false),
    })
}

fn explanation(resolved: &Resolved, color: bool) -> String {
    let redaction = resolved.plan.redaction.clone();
    let mut text = Explanation { out: String::new(), color, redaction };
    text.settings(resolved);
    text.targets(&resolved.plan);
    text.data(&resolved.plan);
    let document = resolved.layered.patch.document.as_deref().map(|loaded| &loaded.document);
    let (setup, teardown) =
        document.map(|document| (&*document.setup, &*document.teardown)).unwrap_or_default();
    text.once("setup (once, before the load)", setup);
    if let (Some(refresh), Some(document)) = (&resolved.plan.refresh, document) {
        let headline = format!("refresh (every {}, beside the load)", figure::nanos(refresh.every));
        text.once(&headline, document.refresh_steps());
    }
    text.scenarios(resolved);
    text.once("teardown (once, after the load)", teardown);
    text.phases(&resolved.plan);
    text.totals(&resolved.plan);
    text.thresholds(&resolved.plan);
    text.out
}

/// The explanation as it grows.
struct Explanation {
    out: String,
    color: bool,
    redaction: Redaction,
}

impl Explanation {
    fn headline(&mut self, words: &str) {
        let (bold, reset) = if self.color { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        let gap = if self.out.is_empty() { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{gap}{bold}{words}{reset}");
    }

    fn line(&mut self, indent: usize, words: &str) {
        let _ = writeln!(self.out, "{}{words}", " ".repeat(indent));
    }

    fn settings(&mut self, resolved: &Resolved) {
        let document = resolved.layered.patch.document.as_deref();
        if let Some(document) = document {
            let name = document.document.name.get().map(Text::as_str);
            self.headline(&match name {
                Some(name) => format!("{}: {name}", document.name()),
                None => document.name().to_owned(),
            });
        }
        self.headline("settings");
        let (rows, gone) = settings_of(resolved);
        self.table(&rows);
        if !gone.is_empty() {
            self.headline("without effect");
            self.table(&gone);
        }
    }

    fn table(&mut self, rows: &[[String; 3]]) {
        let width = |column: usize, most: usize| {
            rows.iter().map(|row| row[column].chars().count().min(most)).max().unwrap_or(0)
        };
        let (first, second) = (width(0, 40), width(1, 40));
        for [name, value, origin] in rows {
            self.line(2, &format!("{name:first$}  {value:second$}  {origin}"));
        }
    }

    /// The servers of the load, and those that only the steps around it ask.
    fn targets(&mut self, plan: &Plan) {
        self.headline("targets");
        let parts = [
            ("", Some(plan)),
            ("  in the setup", plan.setup.as_deref()),
            ("  in the refresh", plan.refresh.as_ref().map(|refresh| &*refresh.steps)),
            ("  in the teardown", plan.teardown.as_deref()),
        ];
        let mut shown: Vec<String> = Vec::new();
        for (part, plan) in parts {
            for words in plan.iter().flat_map(|plan| &plan.targets).map(target_words) {
                if !shown.contains(&words) {
                    self.line(2, &format!("{words}{part}"));
                    shown.push(words);
                }
            }
        }
    }

    /// Origin of the rows, and their distribution.
    fn data(&mut self, plan: &Plan) {
        if plan.feeds.is_empty() {
            return;
        }
        self.headline("data");
        for feed in &plan.feeds {
            let rows = match &feed.rows {
                Rows::Range { start, end, .. } => format!("the numbers {start} to {}", end - 1),
                Rows::List(rows) => format!("a list of {}", plural(rows.len() as u64, "row")),
                Rows::Csv { path, .. } | Rows::JsonLines { path, .. } => path.display().to_string(),
            };
            let order = match feed.order {
                Order::Sequential => "in order",
                Order::Random => "at random, with replacement",
                Order::Shuffled => "shuffled",
                Order::Slices(_) => "from several parts in turn",
            };
            let per = match (feed.per, feed.share) {
                (Per::User, _) => "one row for each user, which keeps it",
                (Per::Iteration, Share::Split) => "a row for each iteration, each thread its own part",
                (Per::Iteration, Share::Whole) => "a row for each iteration, each thread all of them",
            };
            let end = match (feed.order, feed.at_end, feed.per) {
                (Order::Random, ..) => "",
                (_, AtEnd::Wrap, _) => ", then from the first again",
                (_, AtEnd::Stop, _) => ", then no more iterations",
                (_, AtEnd::Fail, Per::Iteration) => ", then iterations fail",
                (_, AtEnd::Fail, Per::User) => ", and a user without one fails",
            };
            self.line(2, &format!("{}  {rows}: {order}, {per}{end}", feed.name));
        }
        let lacking = plan.lacking_rows();
        if !lacking.is_empty() {
            self.headline("data without enough rows");
            lacking.iter().for_each(|text| self.line(2, text));
        }
    }

    fn scenarios(&mut self, Resolved { plan, layered }: &Resolved) {
        self.headline("scenarios");
        let all: u64 = plan.scenarios.iter().map(|scenario| u64::from(scenario.weight)).sum();
        let document = layered.patch.document.as_deref();
        let specs = document.map(|loaded| loaded.document.scenarios.as_slice()).unwrap_or_default();
        for (index, scenario) in plan.scenarios.iter().enumerate() {
            let share = 100.0 * f64::from(scenario.weight) / all.max(1) as f64;
            let mut words = format!("{}  weight {} ({share:.1}%)", scenario.name, scenario.weight);
            if scenario.start_after > Nanos::ZERO {
                let _ = write!(words, ", joins after {}", describe::span(scenario.start_after));
            }
            self.line(2, &words);
            match specs.get(index).and_then(Field::get) {
                Some(spec) => self.steps(&spec.steps, 4),
                None => {
                    for step in &plan.steps[scenario.steps.start as usize..scenario.steps.end as usize] {
                        self.line(4, &step.name);
                    }
                }
            }
        }
    }

    /// Steps that are carried out once, if there are any.
    fn once(&mut self, headline: &str, steps: &[Field<StepSpec>]) {
        if !steps.is_empty() {
            self.headline(headline);
            self.steps(steps, 2);
        }
    }

    fn phases(&mut self, plan: &Plan) {
        if plan.phases.is_empty() {
            return;
        }
        self.headline("phases");
        self.table(&describe::phases(plan));
    }

    /// Steps as the plan has them, with the steps within them below.
    fn steps(&mut self, steps: &[Field<StepSpec>], indent: usize) {
        for step in steps.iter().filter_map(Field::get) {
            let mut words = self.redaction.in_text(&step.title()).into_owned();
            if let Some(pause) = step.think.get().filter(|_| step.is_request()) {
                let _ = write!(words, ", then {}", pause.title());
            }
            self.line(indent, &words);
            for (index, steps) in step.inner().enumerate().filter(|(_, steps)| !steps.is_empty()) {
                if index > 0 {
                    self.line(indent, "else");
                }
                self.steps(steps, indent + 2);
            }
        }
    }

    /// Thresholds whose percentile takes more samples than the run will have.
    fn thresholds(&mut self, plan: &Plan) {
        let lacking = plan.lacking_samples();
        if !lacking.is_empty() {
            self.headline("thresholds without enough samples");
            lacking.iter().for_each(|text| self.line(2, text));
        }
    }

    fn totals(&mut self, plan: &Plan) {
        self.headline("totals");
        let rows = [
            ["load", &describe::model(plan).description.join("; ")],
            ["arrivals", &arrivals(plan)],
            ["in flight", &in_flight(plan)],
            ["memory", &memory(plan)],
            ["descriptors", &descriptors(plan)],
        ];
        for [name, value] in rows {
            self.line(2, &format!("{name:11}  {value}"));
        }
    }
}

/// URL and protocol of a target, and the way to it.
fn target_words(target: &Target) -> String {
    let scheme = target.scheme();
    let way = match (&target.proxy, target.forward()) {
        (None, _) => String::new(),
        (Some(proxy), Some(_)) => format!("  handed to the proxy {}", proxy.authority),
        (Some(proxy), None) => format!("  through a tunnel of the proxy {}", proxy.authority),
    };
    format!("{scheme}://{}  {}{way}", target.authority, target.protocol.title())
}

/// Name, value and origin of each setting, and of those that gave way to another.
fn settings_of(Resolved { plan, layered }: &Resolved) -> (Vec<[String; 3]>, Vec<[String; 3]>) {
    let document = layered.patch.document.as_deref();
    let mut rows: Vec<[String; 3]> = Vec::new();
    for (setting, values) in layered.patch.settings() {
        if setting.layers == SettingLayers::Flags {
            continue;
        }
        let name = setting.name;
        if values.is_empty()
            && let Some(value) = default_of(name, plan)
        {
            rows.push([name.to_owned(), value, "default".to_owned()]);
        }
        for given in values {
            rows.push([name.to_owned(), shown(name, given, &plan.redaction), origin(given, document)]);
        }
    }
    let gone = (layered.gave_way.iter()).map(|gone| {
        let by = format!("{}, gave way to {}", origin(&gone.value, document), gone.to.by);
        [gone.name.to_owned(), shown(gone.name, &gone.value, &plan.redaction), by]
    });
    (rows, gone.collect())
}

/// A value as it was typed, without credentials.
fn shown(name: &str, given: &RawValue, redaction: &Redaction) -> String {
    let text = given.text.trim();
    match (name, text.split_once(':')) {
        ("basic" | "bearer", _) if !text.starts_with('@') => HIDDEN.to_owned(),
        // The text may be the key itself, typed by mistake.
        ("jwt_key", _) if !text.starts_with("env:") => HIDDEN.to_owned(),
        // A header without a colon would have been refused.
        ("headers", _) => escaped(&redaction.in_header(text)),
        ("jwt_claims", _) => escaped(&redaction.in_body(text)),
        _ => escaped(&redaction.in_text(text)),
    }
}

/// A value on one line.
fn escaped(text: &str) -> String {
    text.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'")
}

/// The origin of a value: `plan.yaml:12`, `PLIMSOLL_RATE`, `--rate`.
fn origin(given: &RawValue, document: Option<&LoadedDocument>) -> String {
    match (given.place, document.map(|document| &document.origin)) {
        (Some(place), Some(DocumentOrigin::Text(source))) => {
            format!("{}:{}", source.name, Position::of(source, place.start).line)
        }
        _ => given.by.to_string(),
    }
}

/// Returns the value of a setting that was not given; `None` if the plan has no such setting.
fn default_of(name: &str, plan: &Plan) -> Option<String> {
    let Connections { initial, max, .. } = plan.connections;
    let http2 = plan.targets.iter().any(|target| target.protocol.may_be_http2());
    let https = plan.targets.iter().any(|target| target.tls.is_some());
    Some(match name {
        "connections" if initial == max => initial.to_string(),
        "connections" => format!("{initial}, growing to {max}"),
        "duration" => describe::span(plan.end.duration?),
        "iterations" => plan.end.iterations?.to_string(),
        "threads" => plan.threads.to_string(),
        "arrival" | "overload" => match (&plan.load, name) {
            (Load::Closed, _) => return None,
            (Load::Open { process: Process::Uniform, .. }, "arrival") => "uniform".to_owned(),
            (Load::Open { process: Process::Poisson, .. }, "arrival") => "poisson".to_owned(),
            (Load::Open { overload, .. }, _) => match overload {
                Overload::Queue => "queue".to_owned(),
                Overload::Drop => "drop".to_owned(),
                Overload::Grow => "grow".to_owned(),
            },
        },
        "rate_of" if plan.paces_requests() => "requests".to_owned(),
        "rate_of" if matches!(plan.load, Load::Open { .. }) => "iterations".to_owned(),
        "deal" if plan.scenarios.len() > 1 => match plan.dealing {
            Dealing::Even => "even".to_owned(),
            Dealing::Shuffled | Dealing::Apart(_) => "shuffled".to_owned(),
        },
        "warmup" => describe::span(plan.warmup),
        "drain" => describe::span(plan.drain),
        "timeout" => describe::span(plan.timeout),
        "connect_timeout" => describe::span(plan.connect_timeout),
        // Drawn again for each run.
        "seed" => "random".to_owned(),
        "follow_redirects" => plan.redirects.to_string(),
        "pipeline" if !http2 => plan.connections.depth.to_string(),
        "max_concurrent_streams" if http2 => plan.connections.streams.to_string(),
        "disable_keepalive" if !http2 => (!plan.connections.keep_alive).to_string(),
        "insecure" if https => "false".to_owned(),
        "header_table_size" if http2 => plan.http2.header_table_size.to_string(),
        "encoder_header_table_size" if http2 => plan.http2.encoder_table_size.to_string(),
        "max_frame_size" if http2 => plan.http2.max_frame_size.to_string(),
        "window_bits" if http2 => (plan.http2.stream_window + 1).trailing_zeros().to_string(),
        "connection_window_bits" if http2 => (plan.http2.connection_window + 1).trailing_zeros().to_string(),
        "precise" => (plan.pacing == Pacing::Precise).to_string(),
        "pacing" => plan.pacing.name().to_owned(),
        "backend" => "auto".to_owned(),
        "max_head_bytes" => plan.limits.head_bytes.to_string(),
        "no_preflight" => (!plan.preflight).to_string(),
        "resolve_every" => match plan.connections.resolve_every {
            Some(every) => describe::span(every),
            None => "never".to_owned(),
        },
        "no_resend" => (!plan.resend).to_string(),
        _ => return None,
    })
}

/// Iterations that are to start: those of the schedule, warm-up included.
fn arrivals(plan: &Plan) -> String {
    match (&plan.load, plan.end.iterations) {
        (Load::Open { profile, process, .. }, limit) => {
            let about = if *process == Process::Poisson { "about " } else { "" };
            let end = limit.map(|limit| format!(", and the run ends with measured iteration {limit}"));
            let warmup = if plan.warmup > Nanos::ZERO { ", warm-up included" } else { "" };
            // Before a scenario joins nothing is scheduled.
            let all = Arrivals::new(profile, Process::Uniform, plan.seed, Shard::WHOLE);
            let total = profile.total().saturating_sub(all.count_before(plan.first_joining()));
            format!("{about}{total} iterations{warmup}{}", end.unwrap_or_default())
        }
        (Load::Closed, Some(iterations)) => format!("{iterations} iterations measured"),
        (Load::Closed, None) => {
            "as many as the users make: each starts its next when its last has ended".to_owned()
        }
    }
}

/// Requests on one connection at a time, at most.
fn per_connection(plan: &Plan) -> u64 {
    let http2 = plan.targets.iter().any(|target| target.protocol.may_be_http2());
    u64::from(if http2 { plan.connections.streams } else { plan.connections.depth })
}

/// Peak of requests in flight = connections × requests in flight on each.
fn in_flight(plan: &Plan) -> String {
    let (most, each) = (u64::from(plan.connections.max), per_connection(plan));
    if let Some(users) = &plan.users {
        return format!("at most {} requests of as many users, but for parallel steps", users.peak());
    }
    let at_most = if matches!(plan.load, Load::Closed) { "" } else { "at most " };
    format!("{at_most}{} requests ({most} connections × {each})", most.saturating_mul(each))
}

/// Memory = base + connections × (each + streams × each) + (threads × steps − 1) × histograms.
fn memory(plan: &Plan) -> String {
    let http2 = plan.targets.iter().any(|target| target.protocol.may_be_http2());
    let connections = u64::from(plan.connections.max);
    let each =
        if http2 { HTTP2_BYTES + STREAM_BYTES.saturating_mul(per_connection(plan)) } else { HTTP1_BYTES };
    let recorders = (plan.steps.len() as u64).saturating_mul(u64::from(plan.threads)).saturating_sub(1);
    let mut all = connections.saturating_mul(each).saturating_add(BASE_BYTES);
    all = all.saturating_add(recorders.saturating_mul(STEP_BYTES));
    let about = if plan.connections.max > plan.connections.initial { "at most about" } else { "about" };
    let mut words = format!(
        "{about} {} MiB (7 MiB, {connections} connections of {each} B, {recorders} more histogram sets of at most {} KiB)",
        all.div_ceil(MIB),
        STEP_BYTES / 1024
    );
    if plan.targets.iter().any(|target| target.tls.is_some()) {
        words.push_str(", and the state of TLS, scripts and inline data");
    }
    words
}

/// Descriptors = connections + those of the process itself.
fn descriptors(plan: &Plan) -> String {
    let connections = u64::from(plan.connections.max);
    format!("{} ({connections} connections and {SPARE_DESCRIPTORS} others)", connections + SPARE_DESCRIPTORS)
}
