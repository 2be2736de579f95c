//! Scripts of Artillery, in YAML or JSON.
//!
//! Arrivals of virtual users are iterations of the open model, its phases are phases, and a scenario's `flow`
//! becomes steps. JavaScript in it is noted.

mod check;
mod config;
mod load;
mod steps;

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_document::{Document, Field, Files, Problems, Settings, Text, ThresholdSpec};
use serde_json::Value;

use crate::amount::Ratio;
use crate::draft::{self, text};
use crate::findings::Findings;
use crate::flow::{self, Headed, Slot, Syntax, Variables, plain};
use crate::names::Titles;
use crate::source::{Object, shown};
use crate::{Unchecked, yaml};

/// Artillery's way of writing slots.
const SYNTAX: Syntax = Syntax { open: "{{", close: "}}", slot };

/// Reads a script. Files that it names are looked for in `folder`, which the plan file has to be in as well.
///
/// # Errors
/// All problems with it.
pub fn import(text: &[u8], folder: &Path, files: &dyn Files) -> Result<Unchecked, Problems> {
    let value = yaml::parse(text)?;
    let mut importer = Importer {
        findings: Findings::default(),
        variables: Variables::new(SYNTAX),
        document: Document::default(),
        settings: Settings::default(),
        thresholds: Vec::new(),
        target: String::new(),
        headers: Vec::new(),
        titles: Titles::default(),
        typed: BTreeSet::new(),
        steps: 0,
        written: 0,
        follows: Vec::new(),
        headed: Headed::default(),
        folder,
        files,
    };
    let Some(mut top) = Object::new(&value, "", &mut importer.findings) else {
        return Err(importer.findings.into_problems());
    };
    importer.script(&mut top);
    importer.finish()
}

/// Keys that begin with `x-` are there for anchors of YAML.
fn is_extension(key: &str) -> bool {
    key.starts_with("x-") || key.starts_with('_')
}

/// The meaning of the text between `{{` and `}}`.
fn slot(inside: &str) -> Slot {
    let unknown = |note: &str| Slot::Unknown(note.to_owned());
    let Some(function) = inside.strip_prefix('$') else {
        let is_name = |c: char| c.is_alphanumeric() || "_-$".contains(c);
        return if inside.chars().all(is_name) {
            Slot::Variable(inside.to_owned())
        } else {
            unknown("variables are texts here, without members: it is sent as it is written")
        };
    };
    if let Some(name) = function.strip_prefix("processEnvironment.").or_else(|| function.strip_prefix("env."))
    {
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        return if is_name {
            Slot::Template(format!("env({name},)"))
        } else {
            unknown("it names no variable")
        };
    }
    let (name, arguments) = match function.split_once('(') {
        Some((name, rest)) => (name.trim(), rest.trim_end().strip_suffix(')').unwrap_or(rest)),
        None => (function, ""),
    };
    let numbers: Vec<Option<u64>> = arguments.split(',').map(|text| text.trim().parse().ok()).collect();
    match (name, numbers.as_slice()) {
        ("randomNumber", [Some(low), Some(high)]) if low <= high => {
            Slot::Template(format!("random_int({low}, {high})"))
        }
        ("randomString", [Some(length)]) if (1..=4096).contains(length) => {
            Slot::Template(format!("random_string({length})"))
        }
        ("randomString", _) if arguments.trim().is_empty() => Slot::Template("random_string(10)".to_owned()),
        ("uuid", _) => Slot::Template("uuid".to_owned()),
        ("timestamp", _) => Slot::Template("timestamp_ms".to_owned()),
        ("loopCount" | "loopElement", _) => Slot::Variable(inside.to_owned()),
        _ => unknown("plans have no such function: it is sent as it is written"),
    }
}

/// A script on its way to a document.
struct Importer<'a> {
    findings: Findings,
    variables: Variables,
    document: Document,
    settings: Settings,
    thresholds: Vec<ThresholdSpec>,
    /// The server that paths are asked of.
    target: String,
    /// Headers of all requests.
    headers: Vec<(String, String)>,
    /// Names of scenarios.
    titles: Titles,
    /// Variables that may have other values than texts.
    typed: BTreeSet<String>,
    /// Steps so far, and bytes of those that were written out several times.
    steps: usize,
    written: usize,
    /// For each request: where it is, and `true` if redirects are followed.
    follows: Vec<(String, bool)>,
    headed: Headed,
    folder: &'a Path,
    files: &'a dyn Files,
}

impl Importer<'_> {
    fn script(&mut self, top: &mut Object<'_>) {
        if !top.has("scenarios") || !top.has("config") {
            let hint = "the file has to be a script of Artillery, with `config` and `scenarios`";
            self.findings.hinted("", "`config` or `scenarios` is missing", hint);
            return;
        }
        if let Some(mut config) = top.object("config", &mut self.findings) {
            self.config(&mut config);
        }
        for key in ["before", "after"] {
            if top.value(key).is_some() {
                let becomes = "steps before and after the load are left out: do them beside the run";
                self.findings.note(top.place(key), key, becomes);
            }
        }
        let scenarios = top.objects("scenarios", &mut self.findings);
        top.skip(&["before", "after"]);
        top.rest(&mut self.findings, is_extension);
        let mut weights = Vec::new();
        let count = scenarios.len();
        for (index, mut scenario) in scenarios.into_iter().enumerate() {
            weights.extend(self.scenario(&mut scenario, index, count));
        }
        self.put_weights(&weights);
        if self.document.scenarios.is_empty() && !self.findings.has_problems() {
            let hint = "a scenario has a `flow` with requests of HTTP, and no other engine than `http`";
            self.findings.hinted("/scenarios", "there is no scenario that can be taken over", hint);
        }
    }

    /// Returns the weight of a scenario, if it is taken over.
    fn scenario(&mut self, scenario: &mut Object<'_>, index: usize, count: usize) -> Option<Ratio> {
        let engine = scenario.text("engine", &mut self.findings).unwrap_or("http").to_owned();
        let name = scenario.value("name").map(plain).filter(|name| !name.trim().is_empty());
        let weight = scenario.number("weight", &mut self.findings);
        if engine != "http" {
            let becomes = "only the engine `http` is taken over: the scenario is left out";
            self.findings.note(scenario.place("engine"), &engine, becomes);
            return None;
        }
        if weight.is_some_and(|weight| weight.is_zero()) {
            let becomes = "a scenario of weight 0 is never carried out: it is left out";
            self.findings.note(scenario.place("weight"), "0", becomes);
            return None;
        }
        for key in ["beforeScenario", "afterScenario", "beforeRequest", "afterResponse"] {
            if let Some(function) = scenario.members().get(key) {
                self.note_function(&scenario.place(key), function);
            }
        }
        scenario.skip(&["beforeScenario", "afterScenario", "beforeRequest", "afterResponse", "tags"]);
        let name = match (name, count) {
            (Some(name), _) => name,
            (None, 1) => "scenario".to_owned(),
            (None, _) => format!("scenario {}", index + 1),
        };
        let name = self.titles.take(&flow::title(&name, "scenario"));
        let flow = scenario.list("flow", &mut self.findings);
        scenario.rest(&mut self.findings, is_extension);
        let mut names = Titles::default();
        let steps = self.flow(flow, &mut steps::In { names: &mut names });
        if !flow::has_request(&steps) {
            if !self.findings.has_problems() {
                let becomes = "there is no request in it: it is left out";
                self.findings.note(scenario.at.as_str(), &name, becomes);
            }
            return None;
        }
        let mut drafted = draft::scenario(&name, steps);
        drafted.cookies = Field::new(true);
        for (name, value) in &self.headers {
            drafted.headers.push(name.as_str(), text(value.as_str()));
        }
        self.document.scenarios.push(Field::new(drafted));
        weight.or_else(|| Ratio::new(1, 1))
    }

    fn put_weights(&mut self, weights: &[Ratio]) {
        if flow::weigh(&mut self.document, weights).is_none() {
            self.findings.problem("/scenarios", "the weights are too far apart");
        }
    }

    fn note_function(&mut self, at: &str, function: &Value) {
        let becomes =
            "functions in JavaScript are not carried out: it is left out; a step's `script` in Lua may do";
        self.findings.note(at, &named(function), becomes);
    }

    fn finish(mut self) -> Result<Unchecked, Problems> {
        flow::follow(&self.follows, ("10", "followRedirect: false"), &mut self.settings, &mut self.findings);
        self.document.thresholds = self.thresholds.into_iter().map(Field::new).collect();
        flow::settle(&mut self.document, self.variables, &mut self.findings);
        self.headed.release(&mut self.document);
        let plain = self.document.targets.0.iter().any(|(_, _, target)| {
            target.url.get().map(Text::as_str).is_some_and(|url| url.starts_with("http://"))
        });
        if plain && !self.settings.insecure.is_absent() {
            let becomes = "it has no effect without https, and is left out";
            self.findings.note("/config/tls/rejectUnauthorized", "false", becomes);
            self.settings.insecure = Field::Absent;
        }
        self.document.run = flow::run(self.settings);
        self.findings.finish_whole(self.document)
    }
}

/// A name, or the names of a list.
fn named(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(_) => shown(value),
        other => plain(other),
    }
}

/// A time: a number of seconds, or a text such as `5m`. In nanoseconds.
fn time(value: &Value) -> Option<u64> {
    let written = plain(value);
    let written = written.trim();
    let end = written.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(written.len());
    let (number, unit) = written.split_at(end);
    let unit = match unit.trim() {
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Ratio::new(1, 1000)?,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => Ratio::new(1, 1)?,
        "m" | "min" | "mins" | "minute" | "minutes" => Ratio::new(60, 1)?,
        "h" | "hr" | "hrs" | "hour" | "hours" => Ratio::new(3600, 1)?,
        "d" | "day" | "days" => Ratio::new(86_400, 1)?,
        _ => return None,
    };
    Ratio::decimal(number)?.times(unit)?.nanos()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn slots_have_their_functions() {
        let template = |text: &str| Slot::Template(text.to_owned());
        for (inside, meaning) in [
            ("id", Slot::Variable("id".to_owned())),
            ("$randomNumber(1, 10)", template("random_int(1, 10)")),
            ("$randomNumber(1,10)", template("random_int(1, 10)")),
            ("$randomString(8)", template("random_string(8)")),
            ("$randomString()", template("random_string(10)")),
            ("$uuid", template("uuid")),
            ("$uuid()", template("uuid")),
            ("$processEnvironment.TOKEN", template("env(TOKEN,)")),
            ("$env.TOKEN", template("env(TOKEN,)")),
            ("$loopElement", Slot::Variable("$loopElement".to_owned())),
        ] {
            assert_eq!(slot(inside), meaning, "{inside}");
        }
        for inside in ["user.name", "$randomNumber(9, 1)", "$env.", "$other", "a | b"] {
            assert!(matches!(slot(inside), Slot::Unknown(_)), "{inside}");
        }
    }

    #[test]
    fn times_are_seconds_unless_they_say_more() {
        for (value, nanos) in [
            (json!(5), Some(5_000_000_000)),
            (json!(0.5), Some(500_000_000)),
            (json!("30"), Some(30_000_000_000)),
            (json!("5m"), Some(300_000_000_000)),
            (json!("2 min"), Some(120_000_000_000)),
            (json!("250ms"), Some(250_000_000)),
            (json!("soon"), None),
            (json!("-5"), None),
            (json!(""), None),
        ] {
            assert_eq!(time(&value), nanos, "{value}");
        }
    }
}
