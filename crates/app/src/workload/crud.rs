//! `plimsoll crud`: load on a REST resource, as a plan made from a few flags.

use std::fmt::Write as _;

use plimsoll_core::{ErrorClass, Nanos, figure};
use plimsoll_document::{MadeDocument, Problem};
use plimsoll_metrics::FailedExchange;
use plimsoll_plan::{Plan, PlanPatch};
use plimsoll_report::reconciliation::Reconciliation;
use plimsoll_report::result::{Note, StepResult};
use plimsoll_report::{RunResult, SavedRun, Style};
use plimsoll_scenario::Row;
use plimsoll_scenario::header::is_value;
use plimsoll_scenario::pointer::JsonPointer;
use plimsoll_workloads::crud::{CrudLoad, Mode, Operation};
use serde_json::json;

use crate::args::workload::crud::{CrudLoadArgs, problem};
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::{messages, stdout};
use crate::experiment::run::{self, RunRequest, Workload};
use crate::session::background::Background;
use crate::workload::audit::{Listing, WriteTracker};
use crate::workload::auxiliary_request::{once, reason, transport, writes_of};
use crate::workload::printed_plan::PrintedPlan;

/// The load that the flags describe, and the plan that it comes to.
fn made(args: &CrudLoadArgs) -> Result<(CrudLoad, MadeDocument), Failure> {
    let load = args.to_load().map_err(Failure::usage)?;
    if args.run.plan.has_urls() {
        let problem = Problem::new("`plimsoll crud` takes no URL and no plan file");
        return Err(Failure::usage(problem.with_hint("name the server with --leader")));
    }
    let made = load.document().map_err(|error| Failure::usage(problem("the workload", &error)))?;
    Ok((load, made))
}

/// The plan made from the flags.
///
/// # Errors
/// All problems with them.
pub(crate) fn printed(args: &CrudLoadArgs) -> Result<PrintedPlan, Failure> {
    let (load, made) = made(args)?;
    args.notes(&load).iter().for_each(|note| messages::say(args.run.output.quiet)(&format!("note: {note}")));
    let verify = args.verify_within().map_err(Failure::usage)?.is_some();
    let beside = [("--preseed", load.before().is_some()), ("--verify", verify)];
    PrintedPlan::new(&args.run, made, |_| Ok(()), &beside)
}

pub(crate) fn command(args: &CrudLoadArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    if args.print_plan {
        return printed(args)?.show(args.run.output.quiet);
    }
    let (load, made) = made(args)?;
    args.notes(&load).iter().for_each(|note| messages::say(args.run.output.quiet)(&format!("note: {note}")));
    let request = RunRequest::made(&args.run, made);
    // Problems of the plan are reported before the first request to the server.
    let resolved = request.plan(true).resolve()?;
    reach(&load, &beside(&resolved.layered.patch))?;
    let books = match args.verify_within().map_err(Failure::usage)? {
        Some(within) => Some((books(args, &load, beside(&resolved.layered.patch))?, within)),
        None => None,
    };
    let flags = resolved.layered.patch;
    let mut workload = Crud { args, load: &load, books, flags };
    run::carry_out(&request, &mut workload, look, style)
}

/// Creates the tracker of the writes, for servers that are verified after the load.
fn books(args: &CrudLoadArgs, load: &CrudLoad, flags: PlanPatch) -> Result<WriteTracker, Failure> {
    for (flag, given) in [
        ("--repeat", args.run.repeat.is_some()),
        ("--probe", args.run.probe.is_some()),
        ("--slow-clients", args.run.slow_clients.is_some()),
    ] {
        if given {
            let problem = Problem::new(format!("--verify and {flag} exclude each other"));
            return Err(Failure::usage(problem.with_hint("leave out one of them: one load is verified")));
        }
    }
    let listing = Listing::new(&load.model.path);
    let quiet = args.run.output.quiet;
    let books = WriteTracker::new(&load.leader, listing, &load.model.id, flags, quiet)?;
    books.note_before(&load.leader)?;
    Ok(books)
}

struct Crud<'a> {
    args: &'a CrudLoadArgs,
    load: &'a CrudLoad,
    /// Tracker of the writes, and the time within which servers must have them; `None` if they are not
    /// verified.
    books: Option<(WriteTracker, Nanos)>,
    /// Flags of the run.
    flags: PlanPatch,
}

impl Workload for Crud<'_> {
    fn obstacle(&self) -> Option<&'static str> {
        let verifies = self.books.is_some().then_some("--verify");
        verifies.or_else(|| self.load.before().is_some().then_some("--preseed"))
    }

    fn background(&mut self) -> Background {
        Background {
            listener: self.books.as_ref().map(|(books, _)| books.listener()),
            ..Background::default()
        }
    }

    fn prepare(&mut self, plan: &mut Plan) -> Result<(), Failure> {
        let Some(before) = self.load.before() else { return Ok(()) };
        let plan_before = before.document().map_err(|error| Failure::usage(problem("--preseed", &error)))?;
        let auth = PlanPatch { default_seed: plan.seed ^ 1, ..beside(&self.flags) };
        let (record, writes) = writes_of(plan_before, auth)?;
        let (ok, all) = (record.accounting.ok, record.accounting.started);
        if ok < all {
            let why = reason(&record);
            let problem = Problem::new(format!("--preseed: {} of {all} requests failed: {why}", all - ok));
            let hint = "the load would lack its items: try `plimsoll crud` with creates alone";
            return Err(Failure::environment(problem.with_hint(hint)));
        }
        if let Some((books, _)) = &self.books {
            (books.listener())(&writes);
        }
        let say = messages::say(self.args.run.output.quiet);
        say(&format!("preseed: {} items are there", figure::count(self.load.preseed)));
        if let Some((name, pointers)) = self.load.rows()
            && let Some(pool) = plan.pools.iter_mut().find(|pool| pool.name == name)
        {
            pool.rows = rows(&writes, &pointers).into();
        }
        Ok(())
    }

    fn conclude(&mut self, run: &mut SavedRun) -> Result<Exit, Failure> {
        let result = &mut run.result;
        let output = &self.args.run.output;
        result.notes.extend(self.redirected(result));
        result.notes.extend(skipped_note(skipped(self.load, result)));
        let asked = concurrency(self.load, &self.flags);
        let text = summary(self.load, &asked, result);
        match output.format() {
            format if format.is_for_people() => stdout::to_stdout(|out| out.write_all(text.as_bytes()))?,
            _ => messages::say(output.quiet)(text.trim_end()),
        }
        let Some((books, within)) = &self.books else { return Ok(Exit::Success) };
        let mut servers = vec![self.load.leader.clone()];
        servers.extend(self.load.read_targets.iter().filter(|url| **url != self.load.leader).cloned());
        let findings = books.audit_all(&servers, *within)?;
        let checks = Reconciliation::new(&self.load.leader, Vec::new()).with_findings(findings);
        let exit = if checks.consistent { Exit::Success } else { Exit::Inconsistent };
        result.reconcile(checks);
        Ok(exit)
    }
}

impl Crud<'_> {
    /// Returns a note with advice if requests were redirected (307, 308) and --follow-redirects is not given.
    fn redirected(&self, result: &RunResult) -> Option<Note> {
        let status = |status: &str| -> u64 {
            result.by_step.iter().filter_map(|step| step.statuses.get(status)).sum()
        };
        let count = status("307") + status("308");
        let follows = self.flags.follow_redirects.is_some();
        (count > 0 && !follows).then(|| Note {
            code: "redirects".to_owned(),
            text: format!(
                "{} requests were redirected (307, 308): name the leader with --leader, or add --follow-redirects",
                figure::count(count)
            ),
        })
    }
}

/// Requests in flight that were asked for.
fn concurrency(load: &CrudLoad, flags: &PlanPatch) -> String {
    // A value with a place comes from the generated plan, not from a flag.
    let mut given = [&flags.users, &flags.connections].into_iter().flatten();
    let given = given.find(|given| given.place.is_none());
    given.map_or_else(|| load.size.concurrency.to_string(), |given| given.text.clone())
}

/// Returns the flags that say how servers are reached and with what credentials, and no others.
fn beside(flags: &PlanPatch) -> PlanPatch {
    PlanPatch {
        basic: flags.basic.clone(),
        bearer: flags.bearer.clone(),
        auth: flags.auth.clone(),
        jwt_key: flags.jwt_key.clone(),
        jwt_alg: flags.jwt_alg.clone(),
        jwt_claims: flags.jwt_claims.clone(),
        jwt_lifetime: flags.jwt_lifetime.clone(),
        headers: flags.headers.clone(),
        follow_redirects: flags.follow_redirects.clone(),
        ..transport(flags)
    }
}

/// The rows of the answers to creates.
fn rows(writes: &[FailedExchange], pointers: &[&str]) -> Vec<Row> {
    let pointers: Vec<JsonPointer> =
        pointers.iter().filter_map(|text| JsonPointer::parse(text).ok()).collect();
    let mut rows = Vec::new();
    let mut add = |item: &[u8]| {
        let value = |pointer: &JsonPointer| {
            let text = pointer.find(item)?.to_text()?.into_owned();
            (!text.is_empty() && is_value(&text)).then_some(text)
        };
        rows.extend(pointers.iter().map(value).collect::<Option<Row>>());
    };
    for write in writes {
        let Some(answer) = JsonPointer::default().find(&write.response.body) else { continue };
        let each = answer.each_element(|item| {
            add(item.raw());
            true
        });
        if each.is_none() {
            add(answer.raw());
        }
    }
    rows
}

/// Checks that the resource is there, and writes nothing. Without this check, a run would measure how fast
/// the server reports that it is missing.
fn reach(load: &CrudLoad, flags: &PlanPatch) -> Result<(), Failure> {
    let collection = format!("{}?take=1", load.model.path);
    let status = ask(&load.leader, &collection, flags)?;
    if status == 404 {
        let problem = Problem::new(format!("there is no resource at {}{}", load.leader, load.model.path));
        return Err(Failure::environment(problem.with_hint("name it with --model NAME or --path PATH")));
    }
    for target in &load.read_targets {
        ask(target, &collection, flags)?;
    }
    Ok(())
}

/// The status of the answer to a GET.
fn ask(server: &str, path: &str, flags: &PlanPatch) -> Result<u16, Failure> {
    let step = json!({ "get": path, "expect": { "status": ["200-599"] } });
    let document = json!({ "targets": { "server": server }, "scenarios": [{ "steps": [step] }] });
    let record = once(document, flags.clone())?;
    record.total.statuses.keys().next().copied().ok_or_else(|| {
        let problem = Problem::new(format!("no answer from {server}: {}", reason(&record)));
        Failure::environment(problem.with_hint(
            "name the servers with --leader and --read-targets; \
             `plimsoll target crud-cluster` is one to try it on",
        ))
    })
}

/// Counts of one operation, by outcome.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    ok: u64,
    failed: u64,
    timed_out: u64,
    /// Aborted by us: they may have happened or not.
    aborted: u64,
    /// The item was gone, and that was to be expected: its id was one that the server had named.
    nothing: u64,
    /// Items of acknowledged requests.
    items: u64,
}

impl Tally {
    fn of<'r>(load: &CrudLoad, steps: impl Iterator<Item = &'r StepResult>) -> Self {
        let mut tally = Self::default();
        for step in steps {
            let nothing = found_nothing(step);
            let ok = step.ok - nothing;
            tally.ok += ok;
            tally.nothing += nothing;
            tally.failed += step.failed;
            tally.timed_out += step.timed_out;
            tally.aborted += aborted(step);
            tally.items += ok
                * match Operation::of_step(&step.step) {
                    Some(Operation::Create) => load.items_of(&step.step),
                    _ => 1,
                };
        }
        tally
    }

    /// Counts all operations of the mix.
    fn of_main(load: &CrudLoad, result: &RunResult) -> Self {
        Self::of(load, Operation::ALL[..4].iter().flat_map(|&operation| steps_of(result, operation)))
    }
}

fn steps_of(result: &RunResult, wanted: Operation) -> impl Iterator<Item = &StepResult> {
    result.by_step.iter().filter(move |step| Operation::of_step(&step.step) == Some(wanted))
}

/// Iterations that came to no operation: there was no item for it.
fn skipped(load: &CrudLoad, result: &RunResult) -> u64 {
    let all = Tally::of_main(load, result);
    result.iterations.completed.saturating_sub(all.ok + all.nothing)
}

fn skipped_note(skipped: u64) -> Option<Note> {
    (skipped > 0).then(|| Note {
        code: "skipped".to_owned(),
        text: format!(
            "{} operations were skipped: there was no item for them; --preseed creates some before the load",
            figure::count(skipped)
        ),
    })
}

/// Good responses of a step that say that there is no such item.
fn found_nothing(step: &StepResult) -> u64 {
    let missing = step.statuses.get("404").copied().unwrap_or(0);
    // A response that was not good counts among the failed ones.
    if missing <= step.ok { missing } else { 0 }
}

/// Requests of a step that we aborted on purpose.
fn aborted(step: &StepResult) -> u64 {
    step.errors.get(ErrorClass::AbortedByUs.name()).copied().unwrap_or(0)
}

/// The lines that the generator of the Lithair project prints, with figures that match their names:
/// acknowledged writes are separate from attempts, and items from requests.
fn summary(load: &CrudLoad, concurrency: &str, result: &RunResult) -> String {
    let of = |wanted: Operation| steps_of(result, wanted);
    let all = Tally::of_main(load, result);
    let (unit, mode) = match load.mode {
        Mode::Single => ("items", "single"),
        Mode::Bulk(_) => ("items", "bulk"),
        Mode::Random(..) => ("ops", "random"),
    };
    let done = if unit == "items" { all.items } else { all.ok };
    let seconds = result.duration_s;
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let mut text = String::from("Crud completed:");
    // Writing to a string cannot fail.
    let _ = match load.size.total {
        Some(total) => write!(text, " total={total}"),
        None => Ok(()),
    };
    let _ = write!(
        text,
        " acknowledged={done} {unit} requests={} failed={} timed_out={} in_flight_at_end={} dur={seconds:.2}s \
         throughput={:.2} {unit}/s mode={mode} bulk_size={} concurrency={concurrency} leader={}",
        all.ok + all.nothing + all.failed + all.timed_out + all.aborted,
        all.failed,
        all.timed_out,
        result.accounting.in_flight_at_stop,
        per_second(done),
        load.mode.bulk_size(),
        load.leader,
    );
    if all.aborted > 0 {
        let _ = write!(text, " aborted={}", all.aborted);
    }
    if all.nothing > 0 {
        let _ = write!(text, " found_nothing={}", all.nothing);
    }
    let skipped = skipped(load, result);
    if skipped > 0 {
        let _ = write!(text, " skipped={skipped}");
    }
    text.push_str(
        "\nLatency percentiles (milliseconds) of good answers, and of the wait for those that never came:\n",
    );
    for operation in Operation::ALL {
        for step in
            of(operation).filter(|step| step.ok + step.failed + step.timed_out + step.unanswered() > 0)
        {
            text.push_str(&percentiles(step));
        }
    }
    text.push('\n');
    text
}

fn percentiles(step: &StepResult) -> String {
    let times = &step.response_time;
    let ms = |time: Option<u64>| match time {
        Some(ns) => format!("{:.2}ms", ns as f64 / 1e6),
        None => "-".to_owned(),
    };
    let mut line = format!(
        "{:>10} (count={}): p50={} p95={} p99={} mean={}",
        step.step,
        times.count,
        ms(times.p.p50),
        ms(times.p.p95),
        ms(times.p.p99),
        ms(times.mean),
    );
    if step.timed_out > 0 {
        let _ = write!(line, "; {} of them timed out", step.timed_out);
    }
    if step.unanswered() > 0 {
        let _ = write!(line, "; {} of them without an answer at the end", step.unanswered());
    }
    if step.failed > 0 {
        let _ = write!(line, "; {} more failed", step.failed);
    }
    match found_nothing(step) {
        0 => {}
        nothing => {
            let _ = write!(line, "; {nothing} of them found nothing");
        }
    }
    line.push('\n');
    line
}
