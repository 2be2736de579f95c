//! `--print-plan`: the complete plan made from the flags of a workload.
//!
//! A workload makes a plan of its own flags, and the flags of `run` stand above it. The printed plan has
//! both, so that `plimsoll run` with it puts the same load on the same servers: its `load_checksum` is the
//! same. Credentials are left out, and a note names the flag that gives them.

use plimsoll_core::redaction::HIDDEN;
use plimsoll_core::redaction::is_secret_header;
use plimsoll_document::{
    Document, Field, Keyed, MadeDocument, Problem, RequestStep, ScenarioSpec, SettingLayers, Settings,
    StepSpec, TargetSpec, Text, ThresholdSpec,
};
use plimsoll_plan::{PlanPatch, Resolved};

use crate::args::find::FindArgs;
use crate::args::run::RunArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::{messages, stdout};
use crate::experiment::run::RunRequest;
use crate::session::describe;
use crate::session::request::PlanRequest;

/// A plan that is printed.
#[derive(Debug)]
pub(crate) struct PrintedPlan {
    /// Text of the plan.
    pub(crate) yaml: String,
    /// Settings that a plan cannot contain, such as credentials, and the flags that set them.
    pub(crate) notes: Vec<String>,
    /// The plan that the flags resolve to when they are run directly.
    pub(crate) resolved: Resolved,
}

impl PrintedPlan {
    /// Puts the plan that a workload made, and the flags beside it together. `amend` adds the command's own
    /// changes of the flags of `run`. `beside` are flags of the workload that plans cannot express, as far as
    /// they were given.
    ///
    /// # Errors
    /// Everything that is wrong with the flags.
    pub(crate) fn new(
        args: &RunArgs,
        made: MadeDocument,
        amend: impl FnOnce(&mut PlanPatch) -> Result<(), Problem>,
        beside: &[(&'static str, bool)],
    ) -> Result<Self, Failure> {
        let document = made.document.clone();
        let resolved = RunRequest::made(args, made).plan(true).only_shown().resolve_amended(amend)?;
        let left_out = args.beside_plans().into_iter().chain(beside.iter().copied()).collect();
        Ok(Self::of(resolved, document, args.settings_beside(), left_out))
    }

    /// Puts a plan and the settings together that it resolves to. The flags of live output and of control are
    /// read where they are used: `more` has theirs. `left_out` are flags that no plan can say, and whether
    /// each is given.
    fn of(
        resolved: Resolved,
        mut plan: Document,
        more: [&PlanPatch; 2],
        left_out: Vec<(&'static str, bool)>,
    ) -> Self {
        let mut notes = Vec::new();
        let patches = [&resolved.layered.patch, more[0], more[1]];
        let run = settings(patches, &mut notes);
        // In a plan, a mapping without anything in it is taken for a mistake.
        plan.run = if run == Settings::default() { Field::Absent } else { Field::new(run) };
        thresholds(&resolved.layered.patch, &mut plan.thresholds);
        let urls = hide_users(&mut plan.targets);
        let speaks_http = |url: &String| url.starts_with("http");
        for (is_there, place) in [
            (urls.iter().any(speaks_http), "give them with --basic"),
            (!urls.iter().all(speaks_http), "write them into the target's URL of the plan"),
        ] {
            let note = || format!("user and password of a URL are not printed: {place}");
            notes.extend(is_there.then(note));
        }
        let left_out = left_out.into_iter().chain(of_flags_only(&resolved.layered.patch));
        let left_out: Vec<&str> = left_out.filter(|(_, given)| *given).map(|(flag, _)| flag).collect();
        if !left_out.is_empty() {
            notes.push(format!(
                "{} cannot be written to a plan: give it again when the plan is run",
                left_out.join(", ")
            ));
        }
        Self { yaml: plan.to_yaml(), notes, resolved }
    }

    /// Prints it: the plan on stdout, the notes on stderr.
    pub(crate) fn show(&self, quiet: bool) -> Result<Exit, Failure> {
        let say = messages::say(quiet);
        self.notes.iter().for_each(|note| say(&format!("note: {note}")));
        stdout::to_stdout(|out| out.write_all(self.yaml.as_bytes()))?;
        Ok(Exit::Success)
    }
}

/// The plan that `plimsoll run` carries out for these flags.
///
/// # Errors
/// All problems with them.
pub(crate) fn of_run(args: &RunArgs) -> Result<PrintedPlan, Failure> {
    let resolved = RunRequest::named(args).plan(args.output.quiet).only_shown().resolve()?;
    let plan = document(&resolved)?;
    Ok(PrintedPlan::of(resolved, plan, args.settings_beside(), args.beside_plans()))
}

/// The plan whose capacity `plimsoll find` looks for with these flags: without rate and length of a trial,
/// which the search chooses.
///
/// # Errors
/// All problems with them.
pub(crate) fn of_find(args: &FindArgs) -> Result<PrintedPlan, Failure> {
    let request = PlanRequest::named(&args.plan, args.output.quiet).only_shown();
    let mut resolved = request.resolve_amended(|flags| args.amend(flags))?;
    if args.sweep().is_none() {
        resolved.layered.patch.rate = None;
    }
    if args.plan.settings.patch.duration.is_none() {
        resolved.layered.patch.duration = None;
    }
    let plan = document(&resolved)?;
    let none = PlanPatch::default();
    Ok(PrintedPlan::of(resolved, plan, [&none, &none], args.beside_plans()))
}

/// The plan file that was read, or one of the URLs that were given.
fn document(resolved: &Resolved) -> Result<Document, Failure> {
    let patch = &resolved.layered.patch;
    if let Some(setting) = patch.settings().into_iter().find_map(|(setting, values)| {
        let is_of_flags = setting.name.starts_with("script") || setting.name.starts_with("crud_");
        (is_of_flags && !values.is_empty()).then_some(setting)
    }) {
        let problem = Problem::new(format!("--{} cannot be written to a plan", setting.long()));
        let hint =
            "write its steps into a plan: `plimsoll import` does so for configurations of h2loadrunner";
        return Err(Failure::usage(problem.with_hint(hint)));
    }
    match &patch.document {
        Some(loaded) => Ok(loaded.document.clone()),
        None => Ok(of_urls(resolved)),
    }
}

/// The plan of URLs: a scenario of one step for each, by the name that it has in reports.
fn of_urls(resolved: &Resolved) -> Document {
    let patch = &resolved.layered.patch;
    let method = match (&patch.method, &patch.body) {
        (Some(given), _) => given.text.as_str(),
        (None, Some(_)) => "POST",
        (None, None) => "GET",
    };
    let (mut document, mut origins) = (Document::default(), Vec::new());
    let mut scenarios = Vec::new();
    for (url, planned) in patch.urls.iter().zip(&resolved.plan.steps) {
        let (origin, path) = parts_of(&url.text);
        let number = origins.iter().position(|known| *known == origin).unwrap_or(origins.len());
        let target = match number {
            0 => "target".to_owned(),
            others => format!("target{}", others + 1),
        };
        if number == origins.len() {
            document.targets.push(target.as_str(), TargetSpec::new(Field::text(&origin)));
            origins.push(origin);
        }
        // Both are templates.
        let mut request = RequestStep::new(method, Field::text(path));
        match patch.body.as_ref().map(|body| (body.text.strip_prefix('@'), &body.text)) {
            Some((Some(file), _)) => request.body.body_file = Field::text(file),
            Some((None, text)) => request.body.body = Field::text(text),
            None => {}
        }
        let step = StepSpec::from(request).named(&*planned.name);
        let mut scenario = ScenarioSpec::new(&*planned.name, [step]);
        scenario.target = Field::text(target);
        scenarios.push(scenario);
    }
    if origins.len() == 1 {
        // What there is one of need not be named.
        scenarios.iter_mut().for_each(|scenario| scenario.target = Field::Absent);
    }
    document.scenarios = scenarios.into_iter().map(Field::new).collect();
    document
}

/// The server of a URL, and its path with what follows, except for a fragment.
fn parts_of(url: &str) -> (String, String) {
    let url = url.trim();
    let begin = url.find("://").map_or(0, |scheme| scheme + 3);
    let end = url[begin..].find(['/', '?', '#']).map_or(url.len(), |end| begin + end);
    let (origin, path) = url.split_at(end);
    let path = path.split('#').next().unwrap_or_default();
    let origin = if begin == 0 { format!("http://{origin}") } else { origin.to_owned() };
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    (origin, path)
}

/// Settings that only flags have, and whether each is given: except for those of a request, which its step
/// has, and those that stand for another one.
fn of_flags_only(patch: &PlanPatch) -> Vec<(&'static str, bool)> {
    vec![("--shard", patch.shard.is_some()), ("--start-at", patch.start_at.is_some())]
}

impl RunArgs {
    /// The settings that are read where they are used: those of live output and of control.
    fn settings_beside(&self) -> [&PlanPatch; 2] {
        [&self.live.files.patch, &self.control.settings().patch]
    }

    /// The flags that no plan can say, and whether each is given.
    pub(crate) fn beside_plans(&self) -> Vec<(&'static str, bool)> {
        let live = &self.live;
        let output = self.output.beside_plans();
        let own = [
            ("--calibrate", self.calibrate),
            ("--repeat", self.repeat.is_some()),
            ("--slices", self.slices),
            ("--probe", self.probe.is_some()),
            ("--slow-clients", self.slow_clients.is_some()),
            ("--slow-client-rate", self.slow_client_rate.is_some()),
            ("--report", self.report.is_some()),
            ("--evidence", self.evidence.evidence.is_some()),
            ("--save", self.save.is_given()),
            ("--control-token", self.control.is_beside_plans()),
            ("--log-sample", live.log_sample.is_some()),
            ("--failed-limit", live.failed_limit.is_some()),
            ("--watch-pid", live.watch.descriptors() > 0),
        ];
        own.into_iter().chain(output).collect()
    }
}

/// The settings of these patches, as `run` has them: a later patch replaces the values of those before.
fn settings(patches: [&PlanPatch; 3], notes: &mut Vec<String>) -> Settings {
    let mut run = Settings::default();
    for (setting, values) in patches.into_iter().flat_map(PlanPatch::settings) {
        if setting.layers == SettingLayers::Flags {
            continue;
        }
        let name = setting.name;
        let mut texts = Vec::new();
        for given in values {
            let header = given.text.split(':').next().unwrap_or_default().trim();
            match name {
                // The name of a file is not secret.
                "basic" | "bearer" if !given.text.starts_with('@') => notes.push(format!(
                    "{} is not printed: set {} when the plan is run, or give --{name}",
                    given.by,
                    setting.variable(),
                )),
                "proxy" if given.text.contains('@') => notes.push(format!(
                    "{} is not printed, as it has a user: set {} when the plan is run, or give --proxy",
                    given.by,
                    setting.variable(),
                )),
                "headers" if is_secret_header(header) => {
                    notes.push(format!(
                        "the header {header} is not printed: give it with -H when the plan is run"
                    ));
                }
                _ => texts.push(&*given.text),
            }
        }
        if !texts.is_empty() {
            run.set(name, &texts);
        }
    }
    // Only flags have this other name of the setting.
    if let Some(limit) = patches.iter().find_map(|patch| patch.stream_timeout.as_ref()) {
        run.timeout = Field::text(&limit.text);
    }
    run
}

/// Puts the thresholds of flags in front of those of the plan that was made: so they are judged.
fn thresholds(patch: &PlanPatch, of_plan: &mut Vec<Field<ThresholdSpec>>) {
    let of_flags = patch.thresholds.iter().map(|given| Field::new(ThresholdSpec::new(&given.text)));
    of_plan.splice(..0, of_flags);
    if patch.abort_on_fail.is_on() {
        for threshold in of_plan {
            if let Field::Given(threshold, _) = threshold {
                threshold.abort_on_fail = Field::new(true);
            }
        }
    }
}

/// Takes user and password out of the URLs of targets, and returns those that had some.
fn hide_users(targets: &mut Keyed<TargetSpec>) -> Vec<String> {
    let mut urls = Vec::new();
    for (_, _, target) in &mut targets.0 {
        for url in std::iter::once(&mut target.url).chain(&mut target.share) {
            let Field::Given(Text(text), _) = url else { continue };
            let shown = describe::without_user(text);
            if shown != *text {
                urls.push(std::mem::replace(text, shown.replacen(&format!("{HIDDEN}@"), "", 1)));
            }
        }
    }
    urls
}
