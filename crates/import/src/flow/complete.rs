//! The end of an import: one target if there is one server, and a first value for every variable that steps
//! may read before they have set it.

use std::collections::BTreeSet;

use plimsoll_document::{Document, Field, StepKind, StepSpec, TargetSpec, Text};
use serde_json::Value;

use super::Variables;
use crate::draft::text;
use crate::findings::Findings;

/// Gives the document its target and its variables. URLs of its steps are whole so far.
pub(crate) fn settle(document: &mut Document, mut variables: Variables, findings: &mut Findings) {
    place(document);
    let columns: BTreeSet<String> = columns(document);
    let mut readings = Readings::default();
    let mut given = columns.clone();
    readings.steps(&document.setup, &mut given);
    readings.steps(&document.teardown, &mut given.clone());
    for scenario in document.scenarios.iter().filter_map(Field::get) {
        let mut certain = given.clone();
        // Headers of scenarios are a part of each request.
        for (_, _, value) in &scenario.headers.0 {
            readings.text(value.get().map_or("", Text::as_str), &certain);
        }
        readings.steps(&scenario.steps, &mut certain);
    }
    if let Some(dollar) = variables.dollar.take() {
        document.variables.push(dollar, text("$"));
    }
    let mut without_use = Vec::new();
    let known = variables.known.clone();
    for (source, variable) in known {
        let given = match (&variable.template, variable.value) {
            (Some(template), _) => Some(template.clone()),
            (None, Some(_)) => {
                let value = variables.value(&source).unwrap_or_default();
                Some(variables.constant_template(&value, &variable.at, findings))
            }
            (None, None) => None,
        };
        let is_read = readings.read.contains(&variable.name);
        match given {
            _ if columns.contains(&variable.name) => {}
            Some(first) if readings.early.contains(&variable.name) => {
                document.variables.push(variable.name, text(first));
            }
            Some(_) if !is_read => without_use.push(source),
            None if readings.early.contains(&variable.name) => {
                let becomes = "nothing gives it a value before it is read: it is empty then; give it a \
                               first value \
                               under `variables`";
                findings.note("variables", &source, becomes);
                document.variables.push(variable.name, text(""));
            }
            _ => {}
        }
    }
    let written_out = variables.written_out.take();
    for source in &written_out {
        let name = variables.name(source);
        if readings.sets.contains(&name) {
            let becomes =
                "its first value is written out in an address or a number, although a step sets it, too";
            findings.note("variables", source, becomes);
        }
    }
    without_use.retain(|source| !written_out.contains(source));
    if !without_use.is_empty() {
        findings.note("variables", &without_use.join(", "), "no step needs them: they are left out");
    }
}

/// Makes the only server the target, so that steps have paths.
fn place(document: &mut Document) {
    let mut origins = BTreeSet::new();
    let mut all_whole = true;
    for steps in document.step_lists_mut() {
        each_request(steps, &mut |step| {
            let url = step.request_mut().address.url_mut().map(|url| url.0.clone()).unwrap_or_default();
            match origin_of(&url) {
                _ if url.starts_with("${") => {}
                Some(origin) => {
                    origins.insert(origin.to_owned());
                }
                None => all_whole = false,
            }
        });
    }
    let (true, 1, Some(origin)) = (all_whole, origins.len(), origins.pop_first()) else { return };
    for steps in document.step_lists_mut() {
        each_request(steps, &mut |step| {
            if let Some(url) = step.request_mut().address.url_mut()
                && url.0.starts_with(&origin)
            {
                url.0.drain(..origin.len());
            }
        });
    }
    let mut target = TargetSpec::default();
    target.url = text(origin);
    document.targets.push("server", target);
}

/// The origin that a whole URL begins with.
fn origin_of(url: &str) -> Option<&str> {
    let start = url.find("://")? + 3;
    let end = url[start..].find('/').map_or(url.len(), |end| start + end);
    Some(&url[..end])
}

/// Changes every request among steps, also within others.
pub(crate) fn each_request(steps: &mut [Field<StepSpec>], change: &mut dyn FnMut(&mut StepSpec)) {
    for step in steps {
        let Field::Given(step, _) = step else { continue };
        match &mut step.kind {
            StepKind::Request(_) => change(step),
            StepKind::Branch(branch) => {
                each_request(&mut branch.then, change);
                each_request(&mut branch.otherwise, change);
            }
            StepKind::Repetition(repetition) => each_request(&mut repetition.steps, change),
            StepKind::Parallel(parallel) => each_request(&mut parallel.parallel, change),
            _ => {}
        }
    }
}

/// Names of the columns of all data sources.
fn columns(document: &Document) -> BTreeSet<String> {
    let mut columns = BTreeSet::new();
    for (name, _, source) in &document.data.0 {
        if !source.range.is_empty() {
            columns.insert(name.as_str().to_owned());
        }
        columns.extend(source.columns.iter().filter_map(Field::get).map(|column| column.as_str().to_owned()));
    }
    columns
}

/// Variables that steps read and set.
#[derive(Default)]
struct Readings {
    sets: BTreeSet<String>,
    read: BTreeSet<String>,
    /// Variables that may not have been set where they are read.
    early: BTreeSet<String>,
}

impl Readings {
    fn steps(&mut self, steps: &[Field<StepSpec>], certain: &mut BTreeSet<String>) {
        for step in steps.iter().filter_map(Field::get) {
            self.step(step, certain);
        }
    }

    fn step(&mut self, step: &StepSpec, certain: &mut BTreeSet<String>) {
        match &step.kind {
            StepKind::Branch(branch) => {
                self.text(branch.condition.get().map_or("", Text::as_str), certain);
                let (mut then, mut otherwise) = (certain.clone(), certain.clone());
                self.steps(&branch.then, &mut then);
                self.steps(&branch.otherwise, &mut otherwise);
                *certain = then.intersection(&otherwise).cloned().collect();
            }
            StepKind::Repetition(repetition) => {
                let times = repetition.repeat.get().map_or("", Text::as_str);
                self.text(times, certain);
                self.text(repetition.while_condition.get().map_or("", Text::as_str), certain);
                let mut within = certain.clone();
                self.steps(&repetition.steps, &mut within);
                if times.parse::<u64>().is_ok_and(|times| times > 0) {
                    *certain = within;
                }
            }
            StepKind::Parallel(parallel) => {
                let before = certain.clone();
                for step in parallel.parallel.iter().filter_map(Field::get) {
                    let mut own = before.clone();
                    self.step(step, &mut own);
                    certain.extend(own);
                }
            }
            StepKind::Set(set) => {
                for (name, _, value) in &set.set.0 {
                    self.text(value.get().map_or("", Text::as_str), certain);
                    self.sets.insert(name.as_str().to_owned());
                    certain.insert(name.as_str().to_owned());
                }
            }
            _ => {
                if let Ok(value) = serde_json::to_value(step) {
                    self.value(&value, certain);
                }
                for (name, ..) in &step.extract.0 {
                    self.sets.insert(name.as_str().to_owned());
                    certain.insert(name.as_str().to_owned());
                }
            }
        }
    }

    /// All texts of a step; there are no steps within it.
    fn value(&mut self, value: &Value, certain: &BTreeSet<String>) {
        match value {
            Value::String(text) => self.text(text, certain),
            Value::Array(items) => items.iter().for_each(|item| self.value(item, certain)),
            Value::Object(members) => members.iter().for_each(|(name, member)| {
                self.text(name, certain);
                self.value(member, certain);
            }),
            _ => {}
        }
    }

    /// The names in the slots of a template. A word in the arguments of a function may be no name: then it
    /// is that of no variable.
    fn text(&mut self, template: &str, certain: &BTreeSet<String>) {
        let mut rest = template;
        while let Some(at) = rest.find("${") {
            let is_literal = rest[..at].ends_with('$');
            rest = &rest[at + 2..];
            if is_literal {
                continue;
            }
            let mut depth = 1_usize;
            let mut end = rest.len();
            for (at, byte) in rest.bytes().enumerate() {
                match byte {
                    b'{' => depth += 1,
                    b'}' => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    end = at;
                    break;
                }
            }
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            for name in rest[..end].split(|c| !is_name(c)).filter(|name| !name.is_empty()) {
                self.read.insert(name.to_owned());
                if !certain.contains(name) {
                    self.early.insert(name.to_owned());
                }
            }
            rest = &rest[end..];
        }
    }
}
