//! Problems of a plan file beyond its form, as far as they can be found without compiling it.

use std::collections::HashSet;

use plimsoll_core::suggest;
use plimsoll_core::text::plural;

use super::{
    DataSpec, Document, ExpectSpec, ExtractSpec, Field, Keyed, MatchSpec, PauseSpec, RequestStep,
    ScenarioSpec, StepKind, StepSpec, TargetSpec, Text, ThresholdSpec,
};
use crate::{DocumentParts, Place, Problem, Problems, unescaped};

impl Document {
    /// Reports fields that do not go together and names that nothing has. Values (paths, durations,
    /// templates) are examined when the plan is compiled. Returns `true` if nothing is wrong.
    pub fn check(&self, problems: &mut Problems) -> bool {
        let mut check = Check { document: self, problems, found: false };
        for (name, place, target) in &self.targets.0 {
            check.target(name, *place, target);
        }
        for (name, place, data) in &self.data.0 {
            check.data(name, *place, data);
        }
        check.names(self.scenarios.iter().filter_map(Field::get).map(|scenario| &scenario.name), "scenarios");
        for scenario in &self.scenarios {
            check.scenario(scenario);
        }
        let refresh = self.refresh.get().map(|refresh| &refresh.steps);
        for steps in [&self.setup, &self.teardown].into_iter().chain(refresh) {
            check.named_steps(steps, "steps");
        }
        if self.refresh.get().is_some() && self.setup.is_empty() {
            let problem = Problem::new("`refresh` has no effect: the plan has no `setup`");
            let hint = "it replaces values of the setup: `setup: [{post: /token, extract: {…}}]`";
            check.report(problem.with_hint(hint), self.refresh.place());
        }
        for threshold in &self.thresholds {
            check.threshold(threshold);
        }
        if self.scenarios.is_empty() {
            check.unused();
        }
        !check.found
    }
}

/// Most names that are listed beside an unknown one.
const LISTED: usize = 32;

/// Collects problems. Empty parts are skipped: the reader has reported them, or their unknown keys.
struct Check<'d, 'p> {
    document: &'d Document,
    problems: &'p mut Problems,
    /// Set once a problem was found.
    found: bool,
}

impl<'d> Check<'d, '_> {
    fn report(&mut self, problem: Problem, place: Option<Place>) {
        self.found = true;
        self.problems.push(problem.at(place));
    }

    /// Reports a name that nothing has.
    fn known(&mut self, noun: &str, named: &Field<Text>, known: &[&str]) {
        let Some(name) = named.get().map(|name| unescaped(name.as_str())) else { return };
        let name = name.as_str();
        if known.contains(&name) {
            return;
        }
        let problem = Problem::new(format!("there is no {noun} `{}`", name.escape_debug()));
        let problem = match suggest::closest(name, known.iter().copied()) {
            Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
            None if known.is_empty() => problem.with_hint(format!("the plan has no {noun}")),
            None if known.len() > LISTED => problem,
            None => problem.with_hint(format!("known here: {}", known.join(", "))),
        };
        self.report(problem, named.place());
    }

    /// Reports names that are there twice, and empty ones.
    fn names<'n>(&mut self, names: impl Iterator<Item = &'n Field<Text>>, noun: &str) {
        let mut known = HashSet::new();
        for field in names {
            let Some(name) = field.get().map(Text::as_str) else { continue };
            if name.trim().is_empty() {
                self.report(Problem::new("the name is empty"), field.place());
            } else if !known.insert(name) {
                let message = format!("two {noun} are called `{}`", name.escape_debug());
                let hint = "reports and thresholds refer to them by name";
                self.report(Problem::new(message).with_hint(hint), field.place());
            }
        }
    }

    fn target(&mut self, name: &Text, place: Place, target: &TargetSpec) {
        let name = name.as_str().escape_debug();
        if target.url.is_absent() && *target != TargetSpec::default() {
            let problem = Problem::new(format!("the target `{name}` has no `url`"));
            self.report(problem.with_hint("give it one: scheme, host and port"), Some(place));
        }
        if target.share.is_empty() {
            for (field, key) in [(&target.fail_over, "fail_over"), (&target.fail_back, "fail_back")] {
                if !field.is_absent() {
                    let problem =
                        Problem::new(format!("`{key}` has no effect: the target `{name}` is one server"));
                    self.report(problem.with_hint("name the others with `share`"), field.place());
                }
            }
        } else if let (Some(false), Some(true)) = (target.fail_over.get(), target.fail_back.get()) {
            let problem = Problem::new("`fail_back` has no effect without `fail_over`");
            self.report(problem, target.fail_back.place());
        }
    }

    fn data(&mut self, name: &Text, place: Place, data: &DataSpec) {
        if *data == DataSpec::default() {
            return;
        }
        let name = name.as_str().escape_debug();
        let range = (!data.range.is_empty()).then(|| data.range[0].place()).flatten();
        let sources = [
            ("csv", data.csv.place()),
            ("jsonl", data.jsonl.place()),
            ("list", data.list.place()),
            ("range", range),
        ];
        let Some(kind) = self.exactly_one(&sources, &format!("the data source `{name}`"), place) else {
            return;
        };
        if kind == "range" && data.range.len() != 2 {
            let problem = Problem::new(format!("`range` has {}", plural(data.range.len() as u64, "number")));
            self.report(problem.with_hint("write the first number and the end: [1, 100]"), range);
        }
        if kind != "csv" && !data.delimiter.is_absent() {
            let problem = Problem::new(format!("`delimiter` has no effect with `{kind}`"));
            self.report(problem.with_hint("it is for CSV files"), data.delimiter.place());
        }
        if kind == "range" && data.columns.len() > 1 {
            let problem =
                Problem::new(format!("a range has one column, and {} are named", data.columns.len()));
            self.report(problem, data.columns[1].place());
        }
        if let (Some(rows), false) = (data.list.get(), data.columns.is_empty()) {
            for row in rows {
                let Some(values) = row.get().filter(|values| values.0.len() != data.columns.len()) else {
                    continue;
                };
                let count = plural(values.0.len() as u64, "value");
                let message = format!(
                    "this row has {count}, and there are {}",
                    plural(data.columns.len() as u64, "column")
                );
                self.report(Problem::new(message), row.place());
            }
        }
    }

    /// The one that is there of fields that exclude each other.
    fn exactly_one(
        &mut self,
        fields: &[(&'static str, Option<Place>)],
        noun: &str,
        whole: Place,
    ) -> Option<&'static str> {
        let mut given = fields.iter().filter_map(|&(name, place)| Some((name, place?)));
        let names = || fields.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let Some((first, _)) = given.next() else {
            let problem = Problem::new(format!("{noun} is missing one of {}", names()));
            self.report(problem, Some(whole));
            return None;
        };
        let Some((second, place)) = given.next() else { return Some(first) };
        let problem = Problem::new(format!("`{first}` and `{second}` exclude each other"));
        self.report(problem.with_hint(format!("{noun} takes exactly one of {}", names())), Some(place));
        None
    }

    fn scenario(&mut self, field: &Field<ScenarioSpec>) {
        let Some(scenario) = field.get().filter(|scenario| **scenario != ScenarioSpec::default()) else {
            return;
        };
        let document = self.document;
        self.known("target", &scenario.target, &self.targets());
        let sources: Vec<&str> = document.data.0.iter().map(|(name, ..)| name.as_str()).collect();
        let mut taken = HashSet::new();
        for name in &scenario.data {
            self.known("data source", name, &sources);
            if let Some(text) = name.get().filter(|text| !taken.insert(*text)) {
                let message = format!("`{}` is there twice", text.as_str().escape_debug());
                self.report(Problem::new(message), name.place());
            }
        }
        if scenario.steps.is_empty() {
            let problem = Problem::new("the scenario has no steps");
            self.report(problem.with_hint("give it some: `steps: [{get: /}]`"), field.place());
        }
        self.named_steps(&scenario.steps, "steps of the scenario");
    }

    /// The names of the targets.
    fn targets(&self) -> Vec<&'d str> {
        self.document.targets.0.iter().map(|(name, ..)| name.as_str()).collect()
    }

    /// Checks steps that are carried out one after the other, and their names.
    fn named_steps(&mut self, steps: &[Field<StepSpec>], noun: &str) {
        self.names(named_steps(steps).into_iter().map(|step| &step.name), noun);
        self.steps(steps, &self.targets(), false);
    }

    /// Checks steps; `at_once`: those of `parallel`.
    fn steps(&mut self, steps: &[Field<StepSpec>], targets: &[&str], at_once: bool) {
        for field in steps {
            let (Some(step), Some(place)) = (field.get(), field.place()) else { continue };
            if *step == StepSpec::default() {
                continue;
            }
            let Some(kind) = step.only_kind() else {
                self.nothing_certain(step, place);
                continue;
            };
            if at_once && step.request().is_none() {
                let problem = Problem::new(format!("{} cannot be a part of `parallel`", noun(step)));
                self.report(problem.with_hint("only requests can be sent at once"), Some(place));
                continue;
            }
            self.belonging(step);
            match kind {
                StepKind::Request(request) => self.request(step, request, targets, at_once),
                StepKind::Pause | StepKind::Record => self.pause(&step.think),
                StepKind::Branch(branch) if branch.then.is_empty() => {
                    let problem = Problem::new("`if` has no `then`");
                    let hint = "`then` has the steps to carry out if the condition holds";
                    self.report(problem.with_hint(hint), Some(place));
                }
                StepKind::Repetition(repetition) if repetition.steps.is_empty() => {
                    let problem = Problem::new(format!("{} has no `steps`", noun(step)));
                    self.report(problem, Some(place));
                }
                StepKind::Parallel(parallel) => {
                    if let [only] = parallel.parallel.as_slice() {
                        let problem = Problem::new("`parallel` has one request only");
                        self.report(
                            problem.with_hint("several are sent at once, and one needs no `parallel`"),
                            only.place(),
                        );
                    }
                }
                // Nothing is missing, or only the keys had to be checked.
                _ => {}
            }
            let at_once = matches!(kind, StepKind::Parallel(_));
            for steps in step.inner() {
                self.steps(steps, targets, at_once);
            }
        }
    }

    /// Reports a step that does several things, or none.
    fn nothing_certain(&mut self, step: &StepSpec, place: Place) {
        if let [(first, _), (second, place), ..] = step.verbs().as_slice() {
            let problem = Problem::new(format!("`{first}` and `{second}` exclude each other"));
            let hint = "a step does one thing; write the other as a step of its own";
            self.report(problem.with_hint(hint), Some(*place));
            return;
        }
        let lost = step.given().into_iter().find(|(name, _)| ["then", "else", "steps"].contains(name));
        let (problem, hint) = match lost {
            Some((name @ ("then" | "else"), _)) => {
                (format!("`{name}` without `if`"), "give the condition with `if`")
            }
            Some(_) => ("`steps` without `repeat` or `while`".to_owned(), "say how often with one of them"),
            None => {
                let requests = DocumentParts::current().request_keys().map(|key| format!("{key}, "));
                let hint = format!(
                    "it needs one of get, post, put, patch, delete, head, request, same_url, {}websocket, set, \
                     record, think, if, repeat, while, parallel",
                    requests.collect::<String>()
                );
                let problem = Problem::new("the step does nothing");
                return self.report(problem.with_hint(hint), Some(place));
            }
        };
        self.report(Problem::new(problem).with_hint(hint), Some(place));
    }

    /// Reports the keys of a step that cannot be combined with its kind.
    fn belonging(&mut self, step: &StepSpec) {
        let known = step.known_keys();
        for (name, place) in step.given() {
            if known.contains(&name) {
                continue;
            }
            let problem = Problem::new(format!("`{name}` cannot be combined with {}", noun(step)));
            let problem = match (&step.kind, name) {
                (StepKind::Request(_), _) => problem,
                (_, "record") => problem.with_hint("record values in a request, or in a step of their own"),
                (_, "think") => problem.with_hint("write the pause as a step of its own: `- think: 1s`"),
                (_, "name") => problem.with_hint("only requests have names in reports"),
                _ => problem.with_hint(format!("known here: {}", known.join(", "))),
            };
            self.report(problem, Some(place));
        }
    }

    fn request(&mut self, step: &StepSpec, request: &RequestStep, targets: &[&str], at_once: bool) {
        self.known("target", &step.target, targets);
        let address = &request.address;
        let is_named = address.given_url().is_some_and(|(method, _)| method != "request");
        if is_named && !address.method.is_absent() {
            let problem = Problem::new("the method is given twice");
            self.report(problem.with_hint("any `method` goes with `request: PATH`"), address.method.place());
        }
        if address.same_url.get() == Some(&false) {
            let problem = Problem::new("`same_url: false` says nothing about the URL");
            self.report(
                problem.with_hint("leave it out, and write `get: PATH` or the like"),
                address.same_url.place(),
            );
        }
        if let [(first, _), (second, place), ..] = request.body.given().as_slice() {
            let problem = Problem::new(format!("`{first}` and `{second}` exclude each other"));
            self.report(problem.with_hint("a request has one body"), Some(*place));
        }
        if at_once && !step.think.is_absent() {
            let problem = Problem::new("`think` cannot be combined with a request within `parallel`");
            self.report(
                problem.with_hint("write the pause as a step behind it: `- think: 1s`"),
                step.think.place(),
            );
        }
        if let (true, Some((_, place, _))) = (at_once, step.record.0.first()) {
            let problem = Problem::new("`record` cannot be combined with a request within `parallel`");
            self.report(problem.with_hint("write it as a step behind it"), Some(*place));
        }
        self.pause(&step.think);
        if let Some(expect) = step.expect.get() {
            self.expect(expect);
        }
        for (name, place, extract) in &step.extract.0 {
            let name = name.as_str();
            if let Some(extract) = extract.get().filter(|extract| **extract != ExtractSpec::default()) {
                self.extract(name, extract, extract_place(extract).unwrap_or(*place), *place);
            }
        }
    }

    fn pause(&mut self, field: &Field<PauseSpec>) {
        let (Some(pause), Some(place)) = (field.get(), field.place()) else { return };
        if *pause == PauseSpec::default() {
            return;
        }
        let uniform = pause.uniform.first().and_then(Field::place);
        let laws = [
            ("fixed", pause.fixed.place()),
            ("uniform", uniform),
            ("exponential", pause.exponential.place()),
            ("pace", pause.pace.place()),
        ];
        let law = self.exactly_one(&laws, "a pause", place);
        if law == Some("uniform") && pause.uniform.len() != 2 {
            let problem =
                Problem::new(format!("`uniform` has {}", plural(pause.uniform.len() as u64, "duration")));
            self.report(problem.with_hint("write the shortest and the longest: [1s, 3s]"), uniform);
        }
    }

    fn expect(&mut self, expect: &ExpectSpec) {
        let named = |fields: &'_ Keyed<Field<MatchSpec>>| {
            fields.0.iter().map(|(_, _, field)| field.clone()).collect::<Vec<_>>()
        };
        let all = named(&expect.headers).into_iter().chain(expect.body.clone()).chain(named(&expect.json));
        for field in all {
            let (Some(spec), Some(place)) = (field.get(), field.place()) else { continue };
            if *spec == MatchSpec::default() {
                continue;
            }
            let ways = [
                ("plain", spec.plain.place()),
                ("equals", spec.equals.place()),
                ("starts", spec.starts.place()),
                ("ends", spec.ends.place()),
                ("contains", spec.contains.place()),
                ("regex", spec.regex.place()),
                ("exists", spec.exists.place()),
            ];
            // `plain` excludes the other keys, so hints do not suggest it beside them.
            let ways = if spec.plain.is_absent() { &ways[1..] } else { &ways[..1] };
            self.exactly_one(ways, "a comparison", place);
        }
    }

    fn extract(&mut self, name: &str, extract: &ExtractSpec, whole: Place, key: Place) {
        if name.trim().is_empty() {
            self.report(Problem::new("the name is empty"), Some(key));
        }
        let sources = [
            ("header", extract.header.place()),
            ("request_header", extract.request_header.place()),
            ("cookie", extract.cookie.place()),
            ("status", extract.status.place()),
            ("body", extract.body.place()),
            ("json", extract.json.place()),
            ("request_json", extract.request_json.place()),
            ("xpath", extract.xpath.place()),
        ];
        if extract.regex.is_absent() || sources.iter().any(|(_, place)| place.is_some()) {
            let noun = format!("the value taken into `{}`", name.escape_debug());
            self.exactly_one(&sources, &noun, whole);
        }
        for (field, key) in [(&extract.status, "status"), (&extract.body, "body")] {
            if field.get() == Some(&false) {
                let problem = Problem::new(format!("`{key}: false` takes no value"));
                self.report(problem.with_hint("leave it out, or write true"), field.place());
            }
        }
    }

    fn threshold(&mut self, field: &Field<ThresholdSpec>) {
        let (Some(threshold), Some(place)) = (field.get(), field.place()) else { return };
        if *threshold == ThresholdSpec::default() {
            return;
        }
        if threshold.that.is_absent() {
            let problem = Problem::new("the threshold has no condition");
            self.report(problem.with_hint("write it behind `that`: `that: p99<10ms`"), Some(place));
        }
        let scenarios = &self.document.scenarios;
        if scenarios.is_empty() {
            // Scenarios are then named after URLs, and are checked when those are known.
            return;
        }
        let names: Vec<String> =
            (0..scenarios.len()).map(|index| self.document.scenario_name(index)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if !names.iter().any(|name| name.contains("env(")) {
            self.known("scenario", &threshold.scenario, &names);
        }
        if threshold.step.is_absent() {
            return;
        }
        let wanted = threshold.scenario.get().map(|name| unescaped(name.as_str()));
        let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
        let of = scenarios.iter().zip(&names).filter(|(_, name)| is_wanted(name));
        let of: Vec<Option<Vec<String>>> =
            of.map(|(scenario, _)| scenario.get().and_then(ScenarioSpec::step_names)).collect();
        // A scenario that could not be read may have the step, and a missing scenario was reported.
        if let (false, Some(steps)) = (of.is_empty(), of.into_iter().collect::<Option<Vec<_>>>()) {
            let steps: Vec<&str> = steps.iter().flatten().map(String::as_str).collect();
            self.known("step", &threshold.step, &steps);
        }
    }

    /// Without scenarios, everything that is for them has no effect.
    fn unused(&mut self) {
        let document = self.document;
        let first = |place: Option<&Place>| place.copied();
        for (name, place) in [
            ("targets", first(document.targets.0.first().map(|(_, place, _)| place))),
            ("variables", first(document.variables.0.first().map(|(_, place, _)| place))),
            ("data", first(document.data.0.first().map(|(_, place, _)| place))),
            ("tokens", first(document.tokens.0.first().map(|(_, place, _)| place))),
            ("metrics", first(document.metrics.0.first().map(|(_, place, _)| place))),
            ("scripts", document.scripts.place()),
            ("setup", document.setup.first().and_then(Field::place)),
            ("refresh", document.refresh.place()),
            ("teardown", document.teardown.first().and_then(Field::place)),
        ] {
            if place.is_some() {
                let problem = Problem::new(format!("`{name}` has no effect: the plan has no scenarios"));
                self.report(
                    problem.with_hint("scenarios say what users do: `scenarios: [{steps: [{get: /}]}]`"),
                    place,
                );
            }
        }
    }
}

/// A noun for the kind of a step.
fn noun(step: &StepSpec) -> String {
    match (&step.kind, step.verbs().first()) {
        (StepKind::Request(_), _) => "a request".to_owned(),
        (_, Some((verb, _))) => format!("`{verb}`"),
        (StepKind::Record, None) => "`record`".to_owned(),
        (_, None) => "a pause".to_owned(),
    }
}

/// All steps, and the steps within them.
fn named_steps(steps: &[Field<StepSpec>]) -> Vec<&StepSpec> {
    let mut found = Vec::new();
    for step in steps.iter().filter_map(Field::get) {
        found.push(step);
        for inner in step.inner() {
            found.extend(named_steps(inner));
        }
    }
    found
}

/// The first thing that an extraction says.
fn extract_place(extract: &ExtractSpec) -> Option<Place> {
    [&extract.header, &extract.json, &extract.regex, &extract.default].into_iter().find_map(Field::place)
}
