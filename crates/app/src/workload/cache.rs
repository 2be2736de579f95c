//! `plimsoll cache`: load on a cache, as a plan made from a few flags.

use plimsoll_core::figure;
use plimsoll_plan::{PlanPatch, Problem, RawValue};
use plimsoll_report::comparison::Question;
use plimsoll_report::result::Note;
use plimsoll_report::{RunResult, SavedRun, Style};
use plimsoll_workloads::cache::{Api, CARBON_AVERAGE_MS, CacheLoad, GET, Targets};
use serde_json::json;

use crate::args::output::OutputFormat;
use crate::args::workload::cache::{CacheArgs, problem};
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::made_plan::MadePlan;
use crate::base::messages;
use crate::experiment::paired::{self, Outputs, Pairing};
use crate::experiment::repeat::Rounds;
use crate::experiment::run::{self, RunRequest, Workload};
use crate::session::request::PlanRequest;
use crate::workload::auxiliary_request::{once, reason, transport};
use crate::workload::printed_plan::PrintedPlan;

/// Name of the plan in messages.
const NAME: &str = "the plan of `plimsoll cache`";
/// Default number of runs of each side of a comparison: the fewest whose mean has an interval.
const ROUNDS: u32 = 5;

/// The load that the flags describe, and the plan that it comes to.
fn made(args: &CacheArgs) -> Result<(CacheLoad, String), Failure> {
    let load = args.to_load().map_err(Failure::usage)?;
    if args.run.plan.has_urls() {
        let problem = Problem::new("`plimsoll cache` takes no URL and no plan file");
        return Err(Failure::usage(
            problem.with_hint("name the server with --server, the cache with --cache"),
        ));
    }
    let document = load.document().map_err(|error| Failure::usage(problem("the workload", &error)))?;
    Ok((load, document.to_string()))
}

/// The plan made from the flags.
///
/// # Errors
/// All problems with them.
pub(crate) fn printed(args: &CacheArgs) -> Result<PrintedPlan, Failure> {
    let (_, text) = made(args)?;
    PrintedPlan::new(&args.run, MadePlan::new(NAME, text, &[]), |_| Ok(()), &args.beside_plans())
}

pub(crate) fn command(args: &CacheArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    if args.setup.print_plan {
        return printed(args)?.show(args.run.output.quiet);
    }
    let (load, text) = made(args)?;
    let request = RunRequest::made(&args.run, MadePlan::new(NAME, text, &[]));
    // Problems of the plans are reported before the first request to the server.
    let pair = match &args.compare_http {
        None => {
            let resolved = request.plan(true).resolve()?;
            if !resolved.layered.patch.headers.is_empty() {
                let problem = Problem::new("-H has no effect: the cache protocol has no header fields");
                return Err(Failure::usage(
                    problem.with_hint("leave it out, or compare with HTTP: --compare-http URL"),
                ));
            }
            None
        }
        Some(url) => Some(pair(args, &request, &load, url)?),
    };
    if args.setup.create {
        create(&args.admin(), &args.setup.user, &load.cache)?;
    }
    reach(&load.server, &load.cache, &args.admin())?;
    let Some(pairing) = pair else {
        let say = messages::say(args.run.output.quiet);
        load.notes().iter().for_each(|note| say(&format!("note: {note}")));
        return run::carry_out(&request, &mut Average { load: &load, args }, look, style);
    };
    if let Some(url) = &args.compare_http {
        reach_http(url, &load.cache, &pairing.sides[1].1.layered.patch)?;
    }
    // The sides differ in properties that a comparison requires to be equal: that is the question here.
    let question = Question { force: true, ..Question::default() };
    // Either protocol may carry more: that is an answer, and no failure.
    paired::command(pairing, &question, style).map(|(exit, _)| exit)
}

/// Reports the average as Carbon computes it, beside ours: as a note of the result, and on stderr unless that
/// is the whole report, which shows it.
struct Average<'a> {
    load: &'a CacheLoad,
    args: &'a CacheArgs,
}

impl Workload for Average<'_> {
    fn conclude(&mut self, run: &mut SavedRun) -> Result<Exit, Failure> {
        let result = &run.result;
        let (good, mean) = (result.accounting.ok, result.response_time.mean);
        if let (Targets::Carbon, 1.., Some(mean)) = (self.load.targets, good, mean) {
            let text = averages(result.duration_s * 1e3 / good as f64, mean);
            let output = &self.args.run.output;
            if output.format() != OutputFormat::Text {
                messages::say(output.quiet)(&text);
            }
            run.result.notes.push(Note { code: "average".to_owned(), text });
        }
        let hits = hits(&run.result).map(|text| Note { code: "hits".to_owned(), text });
        run.result.notes.extend(hits);
        Ok(Exit::Success)
    }
}

/// The values that were found, and those that were not, which are good answers of a cache, too: `80 hits, 20
/// misses of 100 GETs (80 %)`; `None` without GETs.
fn hits(result: &RunResult) -> Option<String> {
    let gets = result.by_step.iter().filter(|step| step.step == GET);
    let [hits, misses] = ["200", "404"].map(|status| {
        let counts = gets.clone().filter_map(|step| step.statuses.get(status));
        counts.fold(0_u64, |sum, count| sum.saturating_add(*count))
    });
    let all = hits.saturating_add(misses);
    if all == 0 {
        return None;
    }
    let share = figure::share(hits as f64 / all as f64);
    let advice = if hits == 0 { "; values are stored by --mix put, or --mix put+get" } else { "" };
    Some(format!(
        "{} hits, {} misses of {} GETs ({share} hits){advice}",
        figure::count(hits),
        figure::count(misses),
        figure::count(all)
    ))
}

/// The wall time by the operations in milliseconds, which is the average as Carbon computes it, and the mean
/// response time in nanoseconds.
fn averages(wall_ms: f64, mean_ns: u64) -> String {
    let verdict = if wall_ms < CARBON_AVERAGE_MS { "PASS" } else { "FAIL" };
    format!(
        "average: {wall_ms:.4} ms by Carbon's formula, wall time / operations (target {CARBON_AVERAGE_MS} ms: \
         {verdict}); {:.4} ms is the mean of the response times",
        mean_ns as f64 / 1e6
    )
}

/// The load over TCP and over HTTP, and how they take turns.
fn pair(
    args: &CacheArgs,
    tcp: &RunRequest<'_>,
    load: &CacheLoad,
    url: &str,
) -> Result<Pairing<'static>, Failure> {
    const FLAG: &str = "--compare-http";
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        let problem = Problem::new(format!("{FLAG}: `{url}` is not a URL of an HTTP API"));
        return Err(Failure::usage(problem.with_hint("write it as in http://127.0.0.1:8080")));
    }
    args.run.admit_several(FLAG, &["--repeat"]).map_err(Failure::usage)?;
    let over_http = CacheLoad { api: Api::Http(url.trim_end_matches('/').to_owned()), ..load.clone() };
    let document = over_http.document().map_err(|error| Failure::usage(problem("the workload", &error)))?;
    let output = &args.run.output;
    let tcp = tcp.plan(output.quiet).resolve_amended(|flags| {
        flags.bearer = None;
        Ok(())
    })?;
    let name = format!("{NAME}, over HTTP");
    let http =
        PlanRequest::made(&args.run.plan, MadePlan::new(name, document.to_string(), &[]), output.quiet);
    let http = http.resolve_amended(|flags| {
        if flags.bearer.is_none() {
            flags.basic = Some(RawValue::new("--user", &*args.setup.user));
        }
        Ok(())
    })?;
    let patch = &tcp.layered.patch;
    Ok(Pairing {
        live: args.run.live.or(Some(patch)),
        control: args.run.control.to_spec(Some(patch)).map_err(Failure::usage)?,
        sides: [("TCP", tcp), ("HTTP", http)],
        flag: FLAG,
        rounds: Rounds { runs: args.run.repeat.unwrap_or(ROUNDS), pause: args.run.pause.unwrap_or_default() },
        saving: args.run.save.to_saving(output.quiet).map_err(Failure::usage)?,
        report: args.run.report.clone(),
        outputs: Outputs::of(FLAG, output)?,
        quiet: output.quiet,
    })
}

/// Asks the HTTP API once with these credentials, so that a refusal ends the command before any run.
fn reach_http(url: &str, cache: &str, patch: &PlanPatch) -> Result<(), Failure> {
    let flags = PlanPatch {
        basic: patch.basic.clone(),
        bearer: patch.bearer.clone(),
        headers: patch.headers.clone(),
        ..transport(patch)
    };
    let step = json!({
        "get": format!("/cache/{cache}/plimsoll"),
        "expect": { "status": ["200-599"] },
    });
    let document =
        json!({ "targets": { "api": url.trim_end_matches('/') }, "scenarios": [{ "steps": [step] }] });
    let record = once(document, flags)?;
    let (message, hint) = match record.total.statuses.keys().next() {
        Some(status @ (401 | 403)) => (
            format!("--compare-http: {url} answers {status}: it does not accept these credentials"),
            "name another user with --user USER:PASSWORD, or a token with --bearer",
        ),
        Some(status @ 500..) => {
            (format!("--compare-http: {url} answers {status} to a GET"), "look at the log of the server")
        }
        Some(_) => return Ok(()),
        None => (
            format!("--compare-http: no answer from {url}: {}", reason(&record)),
            "is this the cache's HTTP API?",
        ),
    };
    Err(Failure::environment(Problem::new(message).with_hint(hint)))
}

/// Creates the cache. One that is there already is as good.
fn create(admin: &str, user: &str, cache: &str) -> Result<(), Failure> {
    let flags = PlanPatch { basic: Some(RawValue::new("--user", user)), ..PlanPatch::default() };
    let request = json!({
        "post": format!("{}/admin/caches", admin.trim_end_matches('/')),
        // The server rejects the further fields that its documentation names.
        "json": { "name": cache, "eviction": "ttl" },
    });
    let record = once(json!({ "scenarios": [{ "steps": [request] }] }), flags)?;
    match record.total.statuses.keys().next() {
        Some(200..300) => Ok(()),
        Some(401 | 403) => Err(Failure::environment(
            Problem::new(format!("--create: {admin} does not accept the user"))
                .with_hint("name another with --user USER:PASSWORD"),
        )),
        Some(status) => Err(Failure::environment(
            Problem::new(format!("--create: {admin} answered {status} to the cache `{cache}`"))
                .with_hint("names have letters, digits, - and _"),
        )),
        None => Err(Failure::environment(
            Problem::new(format!("--create: no answer from {admin}: {}", reason(&record)))
                .with_hint("name the server's HTTP API with --admin URL"),
        )),
    }
}

/// Checks that the server answers, and has the cache. Without this check, a run would measure how fast
/// requests are refused.
fn reach(server: &str, cache: &str, admin: &str) -> Result<(), Failure> {
    let record = once(
        json!({
            "targets": { "cache": format!("carbon://{server}/{cache}") },
            "scenarios": [{ "steps": [
                { "cache": { "get": "plimsoll" }, "expect": { "status": [200, 404] } },
            ] }],
        }),
        PlanPatch::default(),
    )?;
    if record.accounting.ok > 0 {
        return Ok(());
    }
    let why = reason(&record);
    let problem = match why.starts_with("Cache not found") {
        true => {
            let body = json!({ "name": cache, "eviction": "ttl" });
            Problem::new(format!("the server {server} has no cache `{cache}`")).with_hint(format!(
                "add --create, or create it: curl -u USER:PASSWORD -H 'Content-Type: application/json' \
                 -d '{body}' {admin}/admin/caches"
            ))
        }
        false => Problem::new(format!("no answer from the cache server {server}: {why}")).with_hint(
            "is it running, and is this its TCP port (5500 by default)? `lsof -i :5500` shows who listens",
        ),
    };
    Err(Failure::environment(problem))
}
