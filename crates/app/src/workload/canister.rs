//! `plimsoll canister`: calls of a canister, as a plan made from a few flags.

pub(crate) mod calibration;
mod charts;
mod summary;
mod summary_file;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_core::{Nanos, figure};
use plimsoll_document::Problem;
use plimsoll_histogram::Histogram;
use plimsoll_ic::answer::ReplicaStatus;
use plimsoll_ic::{RootKey, Verifier};
use plimsoll_plan::{Plan, PlanPatch};
use plimsoll_report::reconciliation::{ConsistencyFinding, Reconciliation};
use plimsoll_report::result::StepResult;
use plimsoll_report::{SavedRun, Style};
use plimsoll_scenario::{Bodies, BodySupply, SuppliedBody};
use plimsoll_system::clock;
use plimsoll_workloads::canister::{
    CanisterLoad, CanisterNotes, CertificateSample, FIRST_PRESIGNED, QUERY, SUBMIT, WAIT,
};
use serde_json::json;

use crate::args::workload::canister::{CanisterArgs, ChartSize, VerifySpec};
use crate::args::workload::crud::problem;
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::files::EndFile;
use crate::base::{environment, messages, stdout};
use crate::experiment::run::{self, RunRequest, Workload};
use crate::session::background::Background;
use crate::workload::auxiliary_request::{answers_with, transport};
use crate::workload::printed_plan::PrintedPlan;

/// Pause between two checks of a replica that is not healthy yet.
const LOOK: Nanos = Nanos::from_millis(500);
/// Bytes of the answer to a question for the status, at most.
const LONGEST_STATUS: usize = 1 << 20;
/// Certificates that wait to be verified, at most: each has some kilobytes.
const MOST_WAITING: usize = 4_096;
/// Certificates that are shown of those that prove nothing.
const EXAMPLES: usize = 5;

/// The plan made from the flags.
///
/// # Errors
/// All problems with them.
pub(crate) fn printed(args: &CanisterArgs) -> Result<PrintedPlan, Failure> {
    let load = args.to_load().map_err(Failure::usage)?;
    let made = load.document().map_err(|error| Failure::usage(problem("URL", &error)))?;
    let beside = [
        ("--presign", args.presign() > 0),
        ("--verify", args.verify().map_err(Failure::usage)?.is_some()),
        ("--root-key", args.has_root_key()),
        ("--summary-file", args.summary.summary_file.is_some()),
        ("--periodic-output", args.summary.periodic_output),
        ("--chart-size", args.summary.chart_size != ChartSize::None),
    ];
    PrintedPlan::new(&args.run, made, |_| Ok(()), &beside)
}

/// The command.
pub(crate) fn command(args: &CanisterArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    if args.print_plan {
        return printed(args)?.show(args.run.output.quiet);
    }
    let load = args.to_load().map_err(Failure::usage)?;
    let verify = args.verify().map_err(Failure::usage)?;
    if verify.is_some() && !load.updates {
        let problem = Problem::new("--verify has no effect: answers to queries have no certificate");
        return Err(Failure::usage(problem.with_hint("verify updates (-m Update), or leave it out")));
    }
    let patience = args.status_timeout().map_err(Failure::usage)?;
    let say = messages::say(args.run.output.quiet);
    args.notes().iter().for_each(|note| say(&format!("note: {note}")));
    let summary_file = args.summary.summary_file.as_deref();
    let summary_file = summary_file.map(|file| EndFile::fresh("--summary-file", file)).transpose()?;
    let made = load.document().map_err(|error| Failure::usage(problem("URL", &error)))?;
    let request = RunRequest::made(&args.run, made);
    // Problems of the plan are reported before the first request to the server.
    let resolved = request.plan(true).resolve()?;
    args.run.live.exports.to_spec(&environment::otlp()).map_err(Failure::usage)?;
    let flags = transport(&resolved.layered.patch);
    if let Some(patience) = patience {
        // Also with --quiet: a command that says nothing for a minute looks as if it hung.
        let say = messages::say(false);
        load.urls.iter().try_for_each(|url| until_healthy(url, &flags, patience, &*say))?;
    }
    let verifier = verify.map(|spec| verifier(&spec, &load, &flags)).transpose()?;
    let mut workload =
        Calls { args, load: &load, summary_file, verifier, notes: Arc::default(), checks: None };
    run::carry_out(&request, &mut workload, look, style)
}

struct Calls<'a> {
    args: &'a CanisterArgs,
    load: &'a CanisterLoad,
    /// The file for the summary, which is not there yet.
    summary_file: Option<EndFile>,
    /// Verifier of certificates, and which share of them to verify; `None` if none are.
    verifier: Option<(Verifier, VerifySpec)>,
    /// Notes of the plan that is run.
    notes: Arc<CanisterNotes>,
    checks: Option<Checks>,
}

impl Workload for Calls<'_> {
    fn prepare(&mut self, plan: &mut Plan) -> Result<(), Failure> {
        self.notes = CanisterNotes::of(plan);
        presign(plan, self.args.presign(), self.args.run.output.quiet);
        if let Some((verifier, spec)) = self.verifier.take() {
            let (send, receive) = sync_channel(MOST_WAITING);
            self.notes.sample(spec.share, send);
            self.checks = Some(Checks::begin(verifier, spec, receive)?);
        }
        Ok(())
    }

    fn obstacle(&self) -> Option<&'static str> {
        let verifies = self.verifier.is_some().then_some("--verify");
        verifies.or_else(|| (self.args.presign() > 0).then_some("--presign"))
    }

    fn background(&mut self) -> Background {
        Background { periodic: self.args.summary.periodic_output, ..Background::default() }
    }

    fn conclude(&mut self, run: &mut SavedRun) -> Result<Exit, Failure> {
        let output = &self.args.run.output;
        let tally = summary::Tally::of(&run.result, self.load.api);
        let mut text = summary::text(self.load, &run.result, &tally, &self.notes);
        if let Some(cells) = self.args.summary.chart_size.cells() {
            let mut times = Histogram::new();
            let is_main = |step: &&StepResult| step.step == QUERY || step.step == WAIT || step.step == SUBMIT;
            for (step, saved) in run.result.by_step.iter().zip(&run.steps) {
                if is_main(&step) {
                    times.merge(&saved.response_time);
                }
            }
            text.push_str(&charts::charts(&times, cells));
        }
        match output.format() {
            format if format.is_for_people() => stdout::to_stdout(|out| out.write_all(text.as_bytes()))?,
            _ => text.trim_end().lines().for_each(|line| messages::say(output.quiet)(line)),
        }
        if let Some(file) = &self.summary_file {
            let document = summary_file::document(run, &tally, &self.notes);
            file.write(document.to_string().as_bytes()).map_err(Failure::environment)?;
        }
        let Some(checks) = self.checks.take() else { return Ok(Exit::Success) };
        let finding = checks.end(self.notes.skipped());
        let server = self.load.urls.first().map(String::as_str).unwrap_or_default();
        let checks = Reconciliation::new(server, Vec::new()).with_findings(vec![finding]);
        let exit = if checks.consistent { Exit::Success } else { Exit::Inconsistent };
        run.result.reconcile(checks);
        Ok(exit)
    }
}

/// Makes messages that are sent before any other, on all cores.
fn presign(plan: &mut Plan, count: u64, quiet: bool) {
    let Some(seed) = (count > 0).then(|| plan.supply_seed(0)) else { return };
    let Some(BodySupply { bodies: Bodies::Fresh(source), stock, .. }) = plan.supplies.first_mut() else {
        return;
    };
    let start = clock::monotonic();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let part = &|thread: u64| {
        let (mut maker, mut out) = (source.open(seed), Vec::new());
        let numbers = count * thread / threads..count * (thread + 1) / threads;
        // Messages that are signed during the load have other numbers.
        numbers
            .map(|number| maker.made(FIRST_PRESIGNED + number, clock::unix().0, &mut out))
            .collect::<Vec<SuppliedBody>>()
    };
    let made: Vec<SuppliedBody> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let seconds = clock::monotonic().since(start).as_secs_f64();
    let per_s = made.len() as f64 / seconds.max(1e-9);
    *stock = made.into();
    messages::say(quiet)(&format!("made {count} messages in {seconds:.1} s, {}", figure::per_second(per_s)));
}

/// Asks a replica how it is.
fn status(url: &str, flags: &PlanPatch) -> Result<(u16, Vec<u8>), Failure> {
    let steps = [json!({ "get": "/api/v2/status" })];
    let mut answers = answers_with(url, &steps, flags.clone(), LONGEST_STATUS, |_| {})?;
    let answer =
        answers.pop().ok_or_else(|| Failure::environment(Problem::new(format!("no answer from {url}"))))?;
    Ok((answer.status, answer.body))
}

/// Waits until a replica says that it is healthy.
fn until_healthy(url: &str, flags: &PlanPatch, patience: Nanos, say: &dyn Fn(&str)) -> Result<(), Failure> {
    let start = clock::monotonic();
    let mut told = false;
    loop {
        let asked = status(url, flags);
        let problem = match &asked {
            Ok((200, body)) => match ReplicaStatus::read(body) {
                Ok(status) if status.is_healthy() => return Ok(()),
                Ok(status) => Problem::new(format!(
                    "{url} reports its health as {}",
                    status.health.unwrap_or("nothing").escape_debug()
                )),
                Err(error) => {
                    // Waiting will not turn the server into a replica.
                    let problem =
                        Problem::new(format!("the answer of {url}/api/v2/status is not a status: {error}"));
                    let hint =
                        "is it a replica? `plimsoll sink --canister` is one; --no-status-check skips this";
                    return Err(Failure::environment(problem.with_hint(hint)));
                }
            },
            Ok((status, _)) => Problem::new(format!("{url}/api/v2/status answers with status {status}")),
            Err(failure) => {
                failure.problems.iter().next().cloned().unwrap_or_else(|| Problem::new("no answer"))
            }
        };
        let now = clock::monotonic();
        if now.since(start) >= patience {
            let hint =
                "start the replica, give it longer (--status-timeout), or begin at once (--no-status-check)";
            return Err(Failure::environment(problem.with_hint(hint)));
        }
        if !std::mem::replace(&mut told, true) {
            let seconds = patience.as_secs_f64();
            say(&format!("waiting up to {seconds} s until {url} is healthy"));
        }
        clock::sleep_until(now + LOOK);
    }
}

/// Creates the verifier of certificates, with the given root key or else the one that the first replica
/// reports.
fn verifier(
    spec: &VerifySpec,
    load: &CanisterLoad,
    flags: &PlanPatch,
) -> Result<(Verifier, VerifySpec), Failure> {
    let der = match &spec.root_key {
        Some(key) => key.clone(),
        None => {
            let url = load.urls.first().map(String::as_str).unwrap_or_default();
            let (_, body) = status(url, flags)?;
            let status = ReplicaStatus::read(&body).ok();
            status.and_then(|status| status.root_key).map(<[u8]>::to_vec).ok_or_else(|| {
                let problem = Problem::new(format!("{url} reports no root key to verify certificates with"));
                Failure::environment(problem.with_hint("name it with --root-key"))
            })?
        }
    };
    let root = RootKey::from_der(&der).ok_or_else(|| {
        let problem = Problem::new("the root key is not a BLS12-381 key in DER");
        Failure::usage(problem.with_hint("--root-key is the root_key of /api/v2/status, 133 bytes"))
    })?;
    Ok((Verifier::new(root), spec.clone()))
}

/// Verifies certificates beside the load.
struct Checks {
    thread: JoinHandle<Checked>,
    over: Arc<AtomicBool>,
    begun: Nanos,
    share: f64,
}

/// Results of the verification.
#[derive(Default)]
struct Checked {
    verified: u64,
    failed: u64,
    examples: Vec<String>,
}

impl Checks {
    fn begin(
        verifier: Verifier,
        spec: VerifySpec,
        receive: Receiver<CertificateSample>,
    ) -> Result<Self, Failure> {
        let over = Arc::new(AtomicBool::new(false));
        let (is_over, share) = (Arc::clone(&over), spec.share);
        let thread = std::thread::Builder::new()
            .name("verifier".to_owned())
            .spawn(move || check_all(&verifier, &spec, &receive, &is_over))
            .map_err(|error| Failure::environment(Problem::new(format!("cannot start a thread: {error}"))))?;
        Ok(Self { thread, over, begun: clock::monotonic(), share })
    }

    /// Waits for the samples that are still to be verified.
    fn end(self, skipped: u64) -> ConsistencyFinding {
        self.over.store(true, Ordering::Relaxed);
        let checked = self.thread.join().unwrap_or_default();
        let Checked { verified, failed, mut examples } = checked;
        let share = figure::share(self.share);
        let mut said = format!("{} certificates verified, a sample of {share}", figure::count(verified));
        if failed > 0 {
            let _ = write!(said, ", {} prove nothing", figure::count(failed));
            let more = failed.saturating_sub(examples.len() as u64);
            if more > 0 {
                examples.push(format!("and {more} more"));
            }
        }
        if skipped > 0 {
            let _ =
                write!(said, "; {} more of the sample were not: the time ran out", figure::count(skipped));
        }
        let took = clock::monotonic().since(self.begun);
        // Without a verified reply nothing was shown.
        let passed = failed == 0 && verified > 0;
        if verified == 0 && failed == 0 {
            said = "no certificate came that could have been verified".to_owned();
        }
        ConsistencyFinding::new("certificates", passed, took, said, examples)
    }
}

fn check_all(
    verifier: &Verifier,
    spec: &VerifySpec,
    receive: &Receiver<CertificateSample>,
    is_over: &AtomicBool,
) -> Checked {
    let mut checked = Checked::default();
    loop {
        let sample = match receive.recv_timeout(Duration::from_millis(50)) {
            Ok(sample) => sample,
            Err(RecvTimeoutError::Timeout) if !is_over.load(Ordering::Relaxed) => continue,
            Err(_) => return checked,
        };
        let verified = verifier.verify(&sample.certificate, &spec.canister, clock::unix().0);
        match verified.and_then(|verified| verified.request_status(&sample.id)) {
            Ok(status) if status.is_final() => checked.verified += 1,
            Ok(_) => checked.note(&sample, "it does not show an outcome"),
            Err(error) => checked.note(&sample, &error.to_string()),
        }
    }
}

impl Checked {
    fn note(&mut self, sample: &CertificateSample, why: &str) {
        self.failed += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(format!("call {}: {why}", sample.id));
        }
    }
}
