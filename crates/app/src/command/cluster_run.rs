//! `plimsoll cluster run`: up, ready, preseed, workload, checks, down.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use plimsoll_cluster::check::{self, After};
use plimsoll_cluster::cluster::provisional;
use plimsoll_cluster::spec::{self, Check, CheckKind, PlanPlace, Suite};
use plimsoll_cluster::template;
use plimsoll_cluster::timeline::{self, CancelSignal, Event};
use plimsoll_cluster::{Cluster, Spec, Staleness};
use plimsoll_core::{Nanos, Random, figure};
use plimsoll_document::{Problem, Source};
use plimsoll_engine::Control;
use plimsoll_monitor::Named;
use plimsoll_plan::plan::Step;
use plimsoll_plan::{Plan, PlanPatch, PlanSource};
use plimsoll_report::fault::{FaultMark, effects, errors_outside};
use plimsoll_report::reconciliation::{ConsistencyFinding, Reconciliation};
use plimsoll_report::result::Note;
use plimsoll_report::{
    RunResult, SUITE_SCHEMA_VERSION, SavedRun, Style, SuiteResult, SuiteRun, TableFormat, render_suite,
};
use plimsoll_scenario::Context;
use plimsoll_system::clock;
use serde_json::json;

use crate::args::output::OutputFormat;
use crate::args::workload::bench_variables;
use crate::args::workload::cluster::ClusterRunArgs;
use crate::base::color::Theme;
use crate::base::exit::{self, Exit};
use crate::base::failure::Failure;
use crate::base::{files, messages, problems, stdout};
use crate::command::cluster::{OwnedCluster, single_values, surroundings};
use crate::experiment::repeat;
use crate::experiment::run::{self, Ready, RunRequest, Workload};
use crate::session::background::Background;
use crate::session::live::fault_log::FaultLog;
use crate::session::live::request_log::WriteListener;
use crate::session::request::PlanRequest;
use crate::session::run::phases::carry_out;
use crate::session::{describe, page};
use crate::workload::audit::{Listing, WriteTracker};
use crate::workload::auxiliary_request;

/// Longest interval of a run with faults. Statements about the faults are as exact as this.
const FAULT_INTERVAL: Nanos = Nanos::from_millis(200);
/// Longest run with such fine intervals. Longer runs keep the plan's interval, because every interval is a
/// line of the result.
const FINE_UNTIL: Nanos = Nanos::from_secs(1_800);
/// Time between two checks whether the load has begun.
const LOOK: Nanos = Nanos::from_millis(1);

/// The command.
pub(crate) fn command(args: &ClusterRunArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    let spec = args.start.spec()?;
    admit(args, &spec)?;
    let suite = args.suite(&spec)?;
    note_unread_variables(args, &spec, suite.as_ref());
    note_idle_parameters(args, &spec, suite.as_ref())?;
    match suite {
        Some(suite) => run_suite(args, &spec, &suite, look, style),
        None => {
            let values = single_values(&args.start, &spec)?;
            let course = CommandContext { args, spec: &spec, suite: None };
            course.check(&values)?;
            let guarded = course.up(&values, &args.start.clean)?;
            let ended = course.single(&guarded, look, style);
            // The result of the run is the primary outcome; a failure to stop the cluster is reported in
            // addition.
            match (ended, guarded.end()) {
                (Ok(exit), Ok(())) => Ok(exit),
                (Ok(exit), Err(failure)) => Err(Failure { exit: exit::worse(exit, failure.exit), ..failure }),
                (Err(failure), _) => Err(failure),
            }
        }
    }
}

/// The command that starts nothing, and says whether `run` could.
pub(crate) fn check(args: &ClusterRunArgs) -> Result<Exit, Failure> {
    let is_json = args.run.output.format() == OutputFormat::Json;
    match checked(args) {
        Err(failure) if is_json => {
            problems::to_stdout_as_json(&failure)?;
            Ok(failure.exit)
        }
        Err(failure) => Err(failure),
        Ok(name) if is_json => {
            let report = json!({ "ok": true, "name": name, "problems": [] });
            stdout::to_stdout(|out| writeln!(out, "{report:#}"))?;
            Ok(Exit::Success)
        }
        Ok(name) => {
            stdout::to_stdout(|out| writeln!(out, "{name}: ok"))?;
            Ok(Exit::Success)
        }
    }
}

/// Checks a spec with its plans, and returns its name.
fn checked(args: &ClusterRunArgs) -> Result<String, Failure> {
    let spec = args.start.spec()?;
    admit(args, &spec)?;
    let chosen = args.suite(&spec)?;
    let suites: Vec<&Suite> = match &chosen {
        Some(suite) => vec![suite],
        None => spec.suites.iter().collect(),
    };
    for suite in suites {
        let course = CommandContext { args, spec: &spec, suite: Some(suite) };
        suite.cells().iter().try_for_each(|values| course.check(values))?;
    }
    if chosen.is_none() && spec.workload.is_some() {
        let values = single_values(&args.start, &spec)?;
        CommandContext { args, spec: &spec, suite: None }.check(&values)?;
    }
    let say = messages::say(args.run.output.quiet);
    spec.unchecked_note().iter().for_each(|note| say(&format!("note: {note}")));
    Ok(spec.source.name)
}

/// Says that variables of Lithair's bench script have no effect, if some are set.
fn note_unread_variables(args: &ClusterRunArgs, spec: &Spec, suite: Option<&Suite>) {
    let of_suites = spec.suites.iter().flat_map(|suite| &suite.matrix).map(|(name, _)| name.as_str());
    let parameters: Vec<&str> =
        spec.parameters.iter().map(|(name, _)| name.as_str()).chain(of_suites).collect();
    let note = bench_variables::unread_by_cluster(&parameters, suite.map(|suite| suite.name.as_str()));
    note.iter().for_each(|note| messages::say(args.run.output.quiet)(&format!("note: {note}")));
}

/// Says that parameters have no effect that were set, if nothing in the spec or in the suite has their value.
fn note_idle_parameters(args: &ClusterRunArgs, spec: &Spec, suite: Option<&Suite>) -> Result<(), Failure> {
    let course = CommandContext { args, spec, suite };
    let mut texts = vec![spec.text_without_plans()];
    for place in course.preseed().into_iter().chain([course.workload()?]) {
        texts.push(course.text(place)?.1);
    }
    let is_named = |suite: &&Suite| spec.suites.iter().any(|known| known.name == suite.name);
    for (name, values) in args.start.sets(spec)? {
        // Several values of one that nothing has are as many runs.
        let is_idle = values.len() == 1 && name != spec::PROFILE;
        if is_idle && !texts.iter().any(|text| template::names_parameter(text, &name)) {
            let of_suite =
                suite.filter(is_named).map_or_else(String::new, |suite| format!(" in {}", suite.name));
            let note = format!("note: --set {name} has no effect{of_suite}: nothing has ${{matrix.{name}}}");
            messages::say(args.run.output.quiet)(&note);
        }
    }
    Ok(())
}

/// Reports settings that cannot be combined with a cluster.
fn admit(args: &ClusterRunArgs, spec: &Spec) -> Result<(), Failure> {
    let refuse =
        |message: &str, hint: &str| Err(Failure::usage(Problem::new(message.to_owned()).with_hint(hint)));
    if args.run.plan.has_urls() {
        return refuse(
            "`plimsoll cluster run` takes no URL and no plan file",
            "name the plan in the spec: `workload: plan.yaml`",
        );
    }
    if args.run.repeat.is_some() {
        return refuse("--repeat does not apply to a cluster", "use a suite: --set run=1,2,3");
    }
    let company = args.run.probe.is_some() || args.run.slow_clients.is_some();
    if company && spec.checks.iter().any(|check| check.kind == CheckKind::Acknowledged) {
        return refuse(
            "--probe and --slow-clients and the check `acknowledged` exclude each other",
            "requests beside the load are not recorded: leave one of them out",
        );
    }
    if args.run.calibrate {
        return refuse("--calibrate does not apply to a cluster", "`plimsoll calibrate` covers all runs");
    }
    Ok(())
}

/// Inputs that the runs of one command share.
struct CommandContext<'a> {
    args: &'a ClusterRunArgs,
    spec: &'a Spec,
    suite: Option<&'a Suite>,
}

impl CommandContext<'_> {
    fn quiet(&self) -> bool {
        self.args.run.output.quiet
    }

    fn workload(&self) -> Result<&PlanPlace, Failure> {
        let place = self.suite.and_then(|suite| suite.workload.as_ref()).or(self.spec.workload.as_ref());
        place.ok_or_else(|| {
            let problem = Problem::new("the spec has no `workload`");
            Failure::usage(problem.with_hint("name a plan: `workload: plan.yaml`, or write it there"))
        })
    }

    fn preseed(&self) -> Option<&PlanPlace> {
        self.suite.and_then(|suite| suite.preseed.as_ref()).or(self.spec.preseed.as_ref())
    }

    fn text(&self, place: &PlanPlace) -> Result<(String, String), Failure> {
        self.spec.plan_text(place).map_err(|error| {
            let what = match place {
                PlanPlace::File(path) => path.display().to_string(),
                PlanPlace::Inline(_) => self.spec.source.name.clone(),
            };
            let problem = Problem::new(format!("cannot read the plan {what}: {error}"));
            Failure::usage(problem.with_hint("plans are looked for in the folder of the spec"))
        })
    }

    /// Checks the plans, so that errors in them are reported before anything is started.
    fn check(&self, values: &[(String, String)]) -> Result<(), Failure> {
        let surroundings = surroundings(values);
        for place in self.preseed().into_iter().chain([self.workload()?]) {
            let (name, text) = self.text(place)?;
            let text = provisional(self.spec, &surroundings, &text)?;
            PlanRequest::made(&self.args.run.plan, PlanSource::Text(Source { name, text }), true)
                .resolve()?;
        }
        Ok(())
    }

    /// Starts the cluster, waits for a leader, and creates the initial contents.
    fn up(&self, values: &[(String, String)], clean: &[PathBuf]) -> Result<OwnedCluster, Failure> {
        let guarded = OwnedCluster::start(self.spec, clean, values, false, self.quiet())?;
        if let Some(place) = self.preseed() {
            let (name, text) = self.text(place)?;
            let text = rendered(&guarded.cluster, &text)?;
            preseed(&name, text, self.quiet())?;
        }
        Ok(guarded)
    }

    /// One run, with its report.
    fn single(&self, guarded: &OwnedCluster, look: Theme, style: &Style) -> Result<Exit, Failure> {
        let (name, text) = self.made(&guarded.cluster, None)?;
        let request = RunRequest::made(&self.args.run, PlanSource::Text(Source { name, text }));
        let mut under_test = UnderTest::new(guarded.cluster.clone(), self.quiet());
        run::carry_out(&request, &mut under_test, look, style)
    }

    /// The plan of the load against a cluster, with these values of parameters, if they are others than those
    /// that the cluster was started with.
    fn made(
        &self,
        cluster: &Cluster,
        values: Option<&[(String, String)]>,
    ) -> Result<(String, String), Failure> {
        let (name, mut text) = self.text(self.workload()?)?;
        if let Some(values) = values {
            let values: Vec<_> = values.iter().chain(&self.spec.parameters).cloned().collect();
            let value = |name: &str| template::of_parameters(name, &values);
            text = template::render(&text, &value);
        }
        Ok((name, rendered(cluster, &text)?))
    }
}

/// A text of the load with its values, the leader's among them.
fn rendered(cluster: &Cluster, text: &str) -> Result<String, Failure> {
    let leader = cluster.await_leader()?;
    Ok(cluster.of_load(text, leader))
}

/// Carries a plan out without a report.
fn preseed(name: &str, text: String, quiet: bool) -> Result<(), Failure> {
    let say = messages::say(quiet);
    let flags = PlanPatch { default_seed: clock::unix().0 >> 11, ..PlanPatch::default() };
    let record = auxiliary_request::load_of(name, text, flags)?;
    let (ok, lost) = (record.accounting.ok, record.accounting.failed + record.accounting.timed_out);
    say(&format!("preseed: {} requests ended well, {} did not", figure::count(ok), figure::count(lost)));
    if ok == 0 {
        let problem =
            Problem::new(format!("preseed: no request ended well: {}", auxiliary_request::reason(&record)));
        return Err(Failure::environment(problem.with_hint("try its plan with `plimsoll run`")));
    }
    Ok(())
}

/// A cluster while a load is on it: the work beside the load, and the checks after it.
struct UnderTest {
    cluster: Arc<Cluster>,
    cancel: Arc<CancelSignal>,
    /// From here comes the thread of the faults, which is begun with the run.
    faults: Option<Receiver<JoinHandle<Vec<Event>>>>,
    /// Trackers of the writes of the load, with the checks that ask for them.
    books: Vec<(Check, WriteTracker)>,
    /// Probes that read beside the load.
    probes: Vec<Staleness>,
    /// Steps of the load that write to the resource of the `writable` check.
    writing: Vec<usize>,
    /// The note that the load writes to a list that is not checked for taking writes, if it does.
    writes_unchecked: Option<String>,
    quiet: bool,
}

impl UnderTest {
    fn new(cluster: Arc<Cluster>, quiet: bool) -> Self {
        Self {
            cluster,
            cancel: Arc::default(),
            faults: None,
            books: Vec::new(),
            probes: Vec::new(),
            writing: Vec::new(),
            writes_unchecked: None,
            quiet,
        }
    }

    /// Ends the faults, and returns their events.
    fn end_faults(&mut self) -> Vec<Event> {
        self.cancel.ring();
        let thread = self.faults.take().and_then(|begun| begun.try_recv().ok());
        thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    /// Returns the findings on the system under test, once the load is over and nothing is broken any more.
    /// Anything else that is to be checked after a workload belongs here.
    fn findings(&self, result: &RunResult, gone: Vec<String>) -> Vec<ConsistencyFinding> {
        let say = messages::say(self.quiet);
        let mut findings = check::survivors(&self.cluster, &gone);
        let checks = self.cluster.spec().checks.iter();
        let shares = checks.filter(|check| check.kind == CheckKind::ErrorShare);
        findings.extend(shares.filter_map(|check| error_share(check, result)));
        for (check, books) in &self.books {
            let origins = check::origins(&self.cluster, check, &gone);
            match books.audit_all(&origins, check.within) {
                Ok(found) => findings.extend(found),
                // A node that does not answer is a finding, too.
                Err(failure) => findings.push(unanswered(check, &failure)),
            }
        }
        let after = After { gone, last_write: self.last_write(result) };
        findings.extend(check::carry_out(&self.cluster, &after, &|text| say(text)));
        findings
    }

    /// When the last write of the load was acknowledged, in words; `None` if it has none.
    fn last_write(&self, result: &RunResult) -> Option<String> {
        let last_ok = |step: &usize| result.by_step.get(*step).and_then(|step| step.last_ok_s);
        let last = self
            .writing
            .iter()
            .filter_map(last_ok)
            .fold(None, |last: Option<f64>, at| Some(last.map_or(at, |last| last.max(at))));
        let said = last.map_or("the start of the load".to_owned(), |at| format!("{at:.1} s into the load"));
        (!self.writing.is_empty()).then_some(said)
    }
}

impl Drop for UnderTest {
    fn drop(&mut self) {
        // A run that failed before its end has faults and probes that go on.
        self.end_faults();
        std::mem::take(&mut self.probes).into_iter().for_each(|probe| drop(probe.end()));
    }
}

impl Workload for UnderTest {
    fn obstacle(&self) -> Option<&'static str> {
        Some("a cluster that this process starts")
    }

    fn prepare(&mut self, plan: &mut Plan) -> Result<(), Failure> {
        let is_short = plan.end.duration.is_none_or(|length| length <= FINE_UNTIL);
        if !self.cluster.spec().faults.is_empty() && is_short {
            plan.interval = plan.interval.min(FAULT_INTERVAL);
        }
        let of_kind = |kind: CheckKind| {
            let checks = self.cluster.spec().checks.iter();
            checks.filter(move |check| check.kind == kind).cloned().collect::<Vec<_>>()
        };
        let lists: Vec<String> =
            of_kind(CheckKind::Writable).into_iter().map(|check| check.content.list).collect();
        self.writing = writing(plan, &lists);
        if !writing(plan, self.cluster.spec().unchecked.as_slice()).is_empty() {
            self.writes_unchecked = self.cluster.spec().unchecked_note();
        }
        let say = messages::say(self.quiet);
        self.writes_unchecked.iter().for_each(|note| say(&format!("note: {note}")));
        // The probe creates its items before the writes of the load are recorded.
        for check in of_kind(CheckKind::Staleness) {
            let probe = Staleness::begin(&self.cluster, &check).map_err(|reason| {
                let problem = Problem::new(format!("the check `staleness`: {reason}"));
                Failure::environment(
                    problem.with_hint("it is for resources whose items have a number `price`"),
                )
            })?;
            self.probes.push(probe);
        }
        for check in of_kind(CheckKind::Acknowledged) {
            let content = &check.content;
            let listing = Listing {
                path: content.list.clone(),
                items: content.items.clone(),
                parameters: [content.take.clone(), content.skip.clone()],
                page: content.page,
            };
            let origins = check::origins(&self.cluster, &check, &[]);
            let Some(first) = origins.first() else { continue };
            let books = WriteTracker::new(first, listing, &content.id, PlanPatch::default(), self.quiet)?;
            books.note_before(first)?;
            self.books.push((check, books));
            // A request before the run may create an item that no record knows of.
            plan.preflight = false;
        }
        Ok(())
    }

    fn background(&mut self) -> Background {
        let marks = self.cluster.marks().into_iter();
        let watched = marks.map(|(id, entry)| Named::Marked { name: format!("node {id}"), entry }).collect();
        let listeners: Vec<_> = self.books.iter().map(|(_, books)| books.listener()).collect();
        let listener = (!listeners.is_empty()).then(|| all_of(listeners));
        if self.cluster.spec().faults.is_empty() {
            return Background { watched, listener, ..Background::default() };
        }
        let (cluster, cancel, say) = (self.cluster.clone(), self.cancel.clone(), messages::say(self.quiet));
        let faults = FaultLog::default();
        let log = faults.clone();
        let (send, begun) = channel();
        self.faults = Some(begun);
        let accompany = move |control: &Control| {
            let control = control.clone();
            let thread = std::thread::Builder::new().name("faults".to_owned()).spawn(move || {
                while control.started().is_none() {
                    if !cancel.goes_on_until(clock::monotonic() + LOOK) {
                        return Vec::new();
                    }
                }
                let start = control.started().unwrap_or_default();
                let told = |events: &[Event]| log.set(events.iter().cloned().map(mark).collect());
                timeline::carry_out(
                    &cluster,
                    start,
                    &cancel,
                    &|at| control.mark(at),
                    &|text| say(text),
                    &told,
                )
            });
            if let Ok(thread) = thread {
                // The thread that began the run waits for this message.
                let _ = send.send(thread);
            }
        };
        Background {
            watched,
            listener,
            accompany: Some(Box::new(accompany)),
            faults,
            ..Background::default()
        }
    }

    fn conclude(&mut self, run: &mut SavedRun) -> Result<Exit, Failure> {
        let read: Vec<ConsistencyFinding> =
            std::mem::take(&mut self.probes).into_iter().flat_map(Staleness::end).collect();
        let events = self.end_faults();
        let gone: Vec<String> = events.iter().flat_map(|event| event.gone.iter().cloned()).collect();
        run.result.faults = effects(run, events.into_iter().map(mark).collect());
        if let Some(text) = self.cluster.network_note() {
            run.result.notes.push(Note { code: "network".to_owned(), text: text.to_owned() });
        }
        let unchecked = self.writes_unchecked.take();
        run.result.notes.extend(unchecked.map(|text| Note { code: "writable".to_owned(), text }));
        // A user who interrupts the run does not want to wait for its checks.
        if run.result.run.interrupted_by_signal.is_some() {
            return Ok(Exit::Success);
        }
        let mut findings = self.findings(&run.result, gone);
        findings.extend(read);
        if findings.is_empty() {
            return Ok(Exit::Success);
        }
        let found = run.result.reconciliation.take();
        let found = found.unwrap_or_else(|| Reconciliation::new(&self.cluster.spec().name, Vec::new()));
        let found = found.with_findings(findings);
        let exit = if found.consistent { Exit::Success } else { Exit::Inconsistent };
        run.result.reconcile(found);
        Ok(exit)
    }
}

/// A listener that passes writes on to all of these.
fn all_of(mut listeners: Vec<WriteListener>) -> WriteListener {
    Box::new(move |writes| listeners.iter_mut().for_each(|listener| listener(writes)))
}

/// The steps of a plan that write to one of these collections, or to an item of it.
fn writing(plan: &Plan, lists: &[String]) -> Vec<usize> {
    let writes = |step: &Step| {
        let mut path = Vec::new();
        step.request.render_path(&Context::default(), &mut Random::new(plan.seed, 0), &mut path);
        let path = String::from_utf8_lossy(&path);
        !step.request.is_safe() && lists.iter().any(|list| path.contains(list.as_str()))
    };
    (0..).zip(&plan.steps).filter(|(_, step)| writes(step)).map(|(number, _)| number).collect()
}

/// Checks that few enough requests of the load failed outside of faults. Returns `None` if none ended.
fn error_share(check: &Check, result: &RunResult) -> Option<ConsistencyFinding> {
    let (bad, all) = errors_outside(result, check.within);
    if all == 0 {
        return None;
    }
    let share = bad as f64 / all as f64;
    let place = if result.faults.is_empty() { "" } else { " outside of faults" };
    let said = format!(
        "{} of {} requests{place} failed: {:.2} %, and {} % may",
        figure::count(bad),
        figure::count(all),
        share * 100.0,
        check.most * 100.0,
    );
    let classes = result.errors.iter().map(|(class, count)| format!("{class}: {}", figure::count(*count)));
    let passed = share <= check.most;
    let evidence = if passed { Vec::new() } else { classes.collect() };
    Some(ConsistencyFinding::new(check.kind.name(), passed, Nanos::ZERO, said, evidence))
}

fn unanswered(check: &Check, failure: &Failure) -> ConsistencyFinding {
    let mut lines = failure.problems.iter().map(|problem| problem.message.clone());
    let said = lines.next().unwrap_or_default();
    ConsistencyFinding::new(check.kind.name(), false, Nanos::ZERO, said, lines.collect())
}

fn mark(event: Event) -> FaultMark {
    FaultMark {
        fault: event.fault,
        nodes: event.nodes,
        at_s: event.at.as_secs_f64(),
        until_s: event.until.map(Nanos::as_secs_f64),
        error: event.error,
    }
}

/// The runs of a suite, and their table.
fn run_suite(
    args: &ClusterRunArgs,
    spec: &Spec,
    suite: &Suite,
    look: Theme,
    style: &Style,
) -> Result<Exit, Failure> {
    let taken = ["--slices", "--probe", "--slow-clients"];
    args.run.admit_several("a suite", &taken).map_err(Failure::usage)?;
    page::admit_file(args.run.report.as_deref())?;
    let (format, json) = table_outputs(args)?;
    let course = CommandContext { args, spec, suite: Some(suite) };
    let cells = suite.cells();
    if args.run.report.is_some() {
        page::admit(cells.len()).map_err(Failure::usage)?;
    }
    for values in &cells {
        course.check(values)?;
    }
    let say = messages::say(course.quiet());
    let mut made = SuiteTotals { runs: Vec::new(), shown: Vec::new(), exit: Exit::Success };
    let mut kept: Option<OwnedCluster> = None;
    for (number, values) in cells.iter().enumerate() {
        let name = cell_name(values);
        // The web UI takes the entries of its page from these two messages.
        let place = format!("run {} of {}", number + 1, cells.len());
        say(&format!("{place}: {name}"));
        // Named folders are removed once: later ones are ours.
        let clean: &[PathBuf] = if number == 0 { &args.start.clean } else { &[] };
        match kept.take().map_or_else(|| course.up(values, clean), Ok) {
            Err(failure) => made.fail(values, failure, &*say)?,
            Ok(guarded) => match made.add(&course, &guarded, name, values, look) {
                Ok(()) if suite.restart => guarded.end()?,
                Ok(()) => kept = Some(guarded),
                Err(failure) => {
                    // The reason why there is no run matters more than the cleanup.
                    let _ = guarded.end();
                    made.fail(values, failure, &*say)?;
                }
            },
        }
        made.runs.last().into_iter().for_each(|run| say(&format!("{place} ended: {}", run.headline())));
        if matches!(made.exit, Exit::Interrupted(_)) {
            break;
        }
    }
    kept.map_or(Ok(()), OwnedCluster::end)?;
    let result = SuiteResult {
        schema_version: SUITE_SCHEMA_VERSION,
        tool: describe::tool(),
        cluster: spec.name.clone(),
        suite: suite.name.clone(),
        parameters: suite.matrix.iter().map(|(name, _)| name.clone()).collect(),
        complete: made.runs.len() == cells.len(),
        runs: made.runs,
    };
    files::write_table(
        json.as_ref(),
        |out| render_suite(&result, format, style, out),
        |out| render_suite(&result, TableFormat::Json, style, out),
    )?;
    if let Some(file) = &args.run.report {
        page::write_runs(made.shown, file, course.quiet())?;
    }
    Ok(made.exit)
}

/// `concurrency 128, profile balanced`
fn cell_name(values: &[(String, String)]) -> String {
    values.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

/// Runs of a suite so far, and how the process ends for them.
struct SuiteTotals {
    runs: Vec<SuiteRun>,
    /// For a page of HTML.
    shown: Vec<(String, Vec<SavedRun>)>,
    exit: Exit,
}

impl SuiteTotals {
    /// Makes one more run.
    fn add(
        &mut self,
        course: &CommandContext<'_>,
        guarded: &OwnedCluster,
        name: String,
        values: &[(String, String)],
        look: Theme,
    ) -> Result<(), Failure> {
        let args = &course.args.run;
        let (name_of_plan, text) = course.made(&guarded.cluster, Some(values))?;
        let request = RunRequest::made(args, PlanSource::Text(Source { name: name_of_plan, text }));
        let mut under_test = UnderTest::new(guarded.cluster.clone(), course.quiet());
        let Ready { plan, live, control, before, .. } = run::ready(&request, &mut under_test, look)?;
        repeat::admit("--suite", &plan, &live, None).map_err(Failure::usage)?;
        let mut outcome = carry_out(plan, &args.output, (&live, &control), before)?;
        let more = under_test.conclude(&mut outcome.run)?;
        let exit = exit::worse(outcome.exit, more);
        self.exit = match exit {
            // An inconsistency counts more than a part that could not be carried out.
            Exit::Inconsistent if self.exit == Exit::Environment => exit,
            exit => exit::worse(self.exit, exit),
        };
        self.runs.push(SuiteRun {
            values: values.iter().cloned().collect(),
            exit_code: exit.code(),
            result: Some(outcome.run.result.clone()),
            error: Vec::new(),
        });
        if args.report.is_some() {
            self.shown.push((name, vec![(*outcome.run).clone()]));
        }
        outcome.kept.map_or(Ok(()), |saver| saver.finish(outcome.run))
    }

    /// Notes a run that could not be made; the others are made all the same.
    ///
    /// # Errors
    /// They could not be made either: the command line is wrong.
    fn fail(
        &mut self,
        values: &[(String, String)],
        failure: Failure,
        say: &dyn Fn(&str),
    ) -> Result<(), Failure> {
        if failure.exit == Exit::Usage {
            return Err(failure);
        }
        let lines = failure.problems.iter().flat_map(|problem| problem.message.lines());
        let error: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
        error.iter().for_each(|line| say(&format!("error: {line}")));
        // A run that could not be made does not hide inconsistencies that earlier runs have found.
        if self.exit != Exit::Inconsistent {
            self.exit = exit::worse(self.exit, failure.exit);
        }
        let values = values.iter().cloned().collect();
        self.runs.push(SuiteRun { values, exit_code: failure.exit.code(), result: None, error });
        Ok(())
    }
}

/// Returns the outputs of a suite: the format of the table on stdout, and the JSON file.
fn table_outputs(args: &ClusterRunArgs) -> Result<(TableFormat, Option<files::EndFile>), Failure> {
    let output = &args.run.output;
    let hint = "write --json FILE, or make the runs one by one";
    if !output.out.is_empty() || output.step_summary {
        let problem = Problem::new("a suite has a table: --out and --step-summary are of a single run");
        return Err(Failure::usage(problem.with_hint(hint)));
    }
    let Some(format) = output.format().for_table() else {
        let problem = Problem::new("a suite is written as text, json or csv only");
        return Err(Failure::usage(problem.with_hint(hint)));
    };
    Ok((format, files::json_file(output.json.as_ref())?))
}
