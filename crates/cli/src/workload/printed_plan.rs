//! `--print-plan`: the plan that the flags of a workload come to, whole.
//!
//! A workload makes a plan of its own flags, and the flags of `run` stand above it. The printed plan has
//! both, so that `plimsoll run` with it puts the same load on the same servers: its `load_checksum` is the
//! same. Credentials are left out, and a note names the flag that gives them.

#[cfg(test)]
use plimsoll_plan::Resolved;
use plimsoll_plan::document::{Document, Source};
use plimsoll_plan::{PlanPatch, Problem, Problems, SettingKind, SettingLayers};
use plimsoll_scenario::header::is_secret;
use plimsoll_scenario::redaction::HIDDEN;
use serde_json::{Value, json};

use crate::args::run::RunArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::{messages, stdout};
use crate::experiment::run::RunRequest;
use crate::session::describe;

/// A plan that is printed.
#[derive(Debug)]
pub(crate) struct PrintedPlan {
    /// Its text.
    pub(crate) yaml: String,
    /// Settings that a plan cannot contain, such as credentials, and the flags that set them.
    pub(crate) notes: Vec<String>,
    /// The plan that the flags resolve to when they are run directly.
    #[cfg(test)]
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
        (name, text): (&str, String),
        amend: impl FnOnce(&mut PlanPatch) -> Result<(), Problem>,
        beside: &[(&'static str, bool)],
    ) -> Result<Self, Failure> {
        let resolved = RunRequest::made(args, name, text.clone()).plan(true).resolve_amended(amend)?;
        let mut plan: Value = serde_json::from_str(&text).unwrap_or_default();
        let mut notes = Vec::new();
        // The flags of live output and of control are read where they are used.
        let patches = [&resolved.layered.patch, &args.live.files.patch, &args.control.settings().patch];
        plan["run"] = settings(patches, &plan["run"], &mut notes);
        thresholds(&resolved.layered.patch, &mut plan);
        if hide_users(&mut plan["targets"]) {
            notes.push("user and password of a URL are not printed: give them with --basic".to_owned());
        }
        let left_out = args.beside_plans().into_iter().chain(beside.iter().copied());
        let left_out: Vec<&str> = left_out.filter(|(_, given)| *given).map(|(flag, _)| flag).collect();
        if !left_out.is_empty() {
            notes
                .push(format!("no plan can say {}: give it again when the plan is run", left_out.join(", ")));
        }
        let mut problems = Problems::default();
        let source = Source { name: name.to_owned(), text: plan.to_string() };
        let Some(document) = Document::read(&source, &mut problems) else {
            return Err(Failure::usage(problems));
        };
        Ok(Self {
            yaml: document.to_yaml(),
            notes,
            #[cfg(test)]
            resolved,
        })
    }

    /// Prints it: the plan on stdout, the notes on stderr.
    pub(crate) fn show(&self, quiet: bool) -> Result<Exit, Failure> {
        let say = messages::say(quiet);
        self.notes.iter().for_each(|note| say(&format!("note: {note}")));
        stdout::to_stdout(|out| out.write_all(self.yaml.as_bytes()))?;
        Ok(Exit::Success)
    }
}

impl RunArgs {
    /// The flags that no plan can say, and whether each is given.
    pub(crate) fn beside_plans(&self) -> Vec<(&'static str, bool)> {
        let (live, output) = (&self.live, &self.output);
        vec![
            ("--calibrate", self.calibrate),
            ("--repeat", self.repeat.is_some()),
            ("--slices", self.slices),
            ("--probe", self.probe.is_some()),
            ("--slow-clients", self.slow_clients.is_some()),
            ("--slow-client-rate", self.slow_client_rate.is_some()),
            ("--report", self.report.is_some()),
            ("--out", !output.out.is_empty()),
            ("--json", output.json.is_some()),
            ("--step-summary", output.step_summary),
            ("--save", self.save.is_given()),
            ("--control-token", self.control.is_beside_plans()),
            ("--log-sample", live.log_sample.is_some()),
            ("--failed-limit", live.failed_limit.is_some()),
            ("--watch-pid", live.watch.descriptors() > 0),
        ]
    }
}

/// The settings of these patches, as `run` has them: a later patch replaces the values of those before. A
/// value of the plan that was made is kept as it was written.
fn settings(patches: [&PlanPatch; 3], made: &Value, notes: &mut Vec<String>) -> Value {
    let mut run = serde_json::Map::new();
    for (setting, values) in patches.into_iter().flat_map(PlanPatch::settings) {
        if setting.layers == SettingLayers::Flags {
            continue;
        }
        let name = setting.name;
        let mut texts = Vec::new();
        for given in values {
            let header = given.text.split(':').next().unwrap_or_default().trim();
            match name {
                // The name of a file is no secret.
                "basic" | "bearer" if !given.text.starts_with('@') => notes.push(format!(
                    "{} is not printed: set {} when the plan is run, or give --{name}",
                    given.by,
                    setting.variable(),
                )),
                "headers" if is_secret(header) => {
                    notes.push(format!(
                        "the header {header} is not printed: give it with -H when the plan is run"
                    ));
                }
                _ => texts.push(&*given.text),
            }
        }
        let as_made = |text: &str| match &made[name] {
            Value::Number(number) if number.to_string() == text => json!(number),
            _ if text.len() < 16 && text.parse::<u64>().is_ok_and(|number| number.to_string() == text) => {
                json!(text.parse::<u64>().unwrap_or_default())
            }
            _ => json!(text),
        };
        let value = match (texts.as_slice(), setting.kind == SettingKind::List) {
            ([], _) => continue,
            (texts, true) => json!(texts),
            (["true"], _) => json!(true),
            (["false"], _) => json!(false),
            ([.., last], false) => as_made(last),
        };
        run.insert(name.to_owned(), value);
    }
    // Only flags have this other name of the setting.
    if let Some(limit) = patches.iter().find_map(|patch| patch.stream_timeout.as_ref()) {
        run.insert("timeout".to_owned(), json!(limit.text));
    }
    Value::Object(run)
}

/// The thresholds of flags, in front of those of the plan that was made: so they are judged.
fn thresholds(patch: &PlanPatch, plan: &mut Value) {
    let mut all: Vec<Value> = patch.thresholds.iter().map(|given| json!(given.text)).collect();
    all.extend(plan["thresholds"].as_array().cloned().unwrap_or_default());
    if patch.abort_on_fail.is_on() {
        for threshold in &mut all {
            if threshold.is_string() {
                *threshold = json!({ "that": threshold });
            }
            threshold["abort_on_fail"] = json!(true);
        }
    }
    if !all.is_empty() {
        plan["thresholds"] = Value::Array(all);
    }
}

/// Takes user and password out of the URLs in a part of a plan; whether there were any.
fn hide_users(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let shown = describe::without_user(text);
            let hidden = shown != *text;
            if hidden {
                *text = shown.replacen(&format!("{HIDDEN}@"), "", 1);
            }
            hidden
        }
        Value::Array(items) => items.iter_mut().fold(false, |hidden, item| hide_users(item) | hidden),
        Value::Object(members) => members.values_mut().fold(false, |hidden, item| hide_users(item) | hidden),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
