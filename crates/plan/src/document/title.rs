//! Names of the parts of a plan.

use std::collections::{HashMap, HashSet};

use super::{Document, Field, PauseSpec, ScenarioSpec, StepSpec, Text};

impl Document {
    /// Returns the name of the scenario at `index` in reports: its own, or one that distinguishes it from the
    /// others.
    pub fn scenario_name(&self, index: usize) -> String {
        let given = self.scenarios.get(index).and_then(Field::get).and_then(|spec| spec.name.get());
        match (given, self.scenarios.len(), self.name.get()) {
            (Some(name), ..) => name.0.clone(),
            (None, 0 | 1, Some(plan)) => plan.0.clone(),
            (None, 0 | 1, None) => "scenario".to_owned(),
            (None, ..) => format!("scenario {}", index + 1),
        }
    }
}

impl ScenarioSpec {
    /// Returns the names of its requests in reports, in their order. `None` if one of them depends on the
    /// environment, or could not be understood.
    pub(crate) fn step_names(&self) -> Option<Vec<String>> {
        let mut names = StepNames::default();
        let mut all = Vec::new();
        collect(&self.steps, &mut names, &mut all).then_some(all)
    }
}

/// Text in names in place of the URL of the previous request.
pub(crate) const SAME_URL: &str = "the same URL";
/// Text in names in place of a path that only a script knows.
pub(crate) const BY_SCRIPT: &str = "by a script";

/// The names of a scenario's requests. A second `GET /` is called `GET / #2`.
#[derive(Default)]
pub(crate) struct StepNames {
    known: HashSet<String>,
    /// Last number that was tried for each generated name.
    numbers: HashMap<String, u32>,
}

impl StepNames {
    /// Notes a name that the plan gives; `false` if there is one already.
    pub(crate) fn give(&mut self, name: &str) -> bool {
        self.known.insert(name.to_owned())
    }

    /// A name for a request without one, which says `plain`: method and path.
    pub(crate) fn make(&mut self, plain: &str) -> String {
        let number = self.numbers.entry(plain.to_owned()).or_insert(0);
        loop {
            *number += 1;
            let name = if *number == 1 { plain.to_owned() } else { format!("{plain} #{number}") };
            if self.known.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Adds the names of the requests among steps and the steps within them; `false`: not all are known.
fn collect(steps: &[Field<StepSpec>], names: &mut StepNames, all: &mut Vec<String>) -> bool {
    steps.iter().all(|field| {
        let Some(step) = field.get() else { return false };
        if step.is_request() {
            let Some(plain) = step.plain_name() else { return false };
            let given = step.name.get().map(|name| names.give(&name.0));
            all.push(if given.is_some() { plain } else { names.make(&plain) });
        }
        [&step.then, &step.otherwise, &step.steps, &step.parallel]
            .into_iter()
            .all(|inner| collect(inner, names, all))
    })
}

impl StepSpec {
    /// Returns the name of a request in reports: its own, or method and path. `None` for other steps, and for
    /// requests whose path is known only during the run.
    pub fn report_name(&self) -> Option<String> {
        if let Some(name) = self.name.get() {
            return Some(name.0.clone());
        }
        if let Some(cache) = self.cache.get() {
            return cache.title();
        }
        let fixed = [
            ("GET", &self.get),
            ("POST", &self.post),
            ("PUT", &self.put),
            ("PATCH", &self.patch),
            ("DELETE", &self.delete),
            ("HEAD", &self.head),
            (self.free_method(), &self.request),
        ];
        let (method, path) = fixed.into_iter().find_map(|(method, path)| Some((method, path.get()?)))?;
        Some(format!("{method} {}", path.as_str()))
    }

    /// Returns the name of the request in reports, without the number that distinguishes it from others of
    /// that name. `None` if the name is not literally in the plan.
    fn plain_name(&self) -> Option<String> {
        let name = match self.report_name() {
            Some(name) => name,
            None if !self.same_url.is_absent() => self.title(),
            None => format!("{} {BY_SCRIPT}", self.free_method()),
        };
        // The environment fills some names in, and no password is a part of one.
        let is_known = !name.contains("env(") && (!self.name.is_absent() || !name.contains('@'));
        is_known.then(|| name.trim().to_owned())
    }

    /// Returns `true` if it is a request.
    pub fn is_request(&self) -> bool {
        self.report_name().is_some() || !self.same_url.is_absent() || !self.script.is_absent()
    }

    /// Describes the step in a few words.
    pub fn title(&self) -> String {
        let words = |field: &Field<Text>| field.get().map_or_else(String::new, |text| text.0.clone());
        if let Some(name) = self.report_name() {
            return name;
        }
        if !self.same_url.is_absent() {
            return format!("{} {SAME_URL}", self.free_method());
        }
        if !self.condition.is_absent() {
            return format!("if {}", words(&self.condition));
        }
        if !self.repeat.is_absent() {
            return format!("repeat {}", words(&self.repeat));
        }
        if !self.while_condition.is_absent() {
            return format!("while {}", words(&self.while_condition));
        }
        if !self.parallel.is_empty() {
            return "at once".to_owned();
        }
        if !self.set.is_empty() {
            let names: Vec<&str> = self.set.0.iter().map(|(name, ..)| name.as_str()).collect();
            return format!("set {}", names.join(", "));
        }
        if let Some((name, ..)) = self.keep.0.first() {
            return format!("keep {}", name.as_str());
        }
        if !self.pick.is_absent() {
            return format!("pick {}", words(&self.pick));
        }
        if !self.take.is_absent() {
            return format!("take {}", words(&self.take));
        }
        if !self.script.is_absent() {
            return "request made by a script".to_owned();
        }
        self.think.get().map_or_else(|| "nothing".to_owned(), PauseSpec::title)
    }

    /// The method where no field is named after it.
    fn free_method(&self) -> &str {
        let bodies = [&self.body, &self.body_file, &self.template_file];
        let has_body =
            bodies.iter().any(|body| !body.is_absent()) || !self.json.is_absent() || !self.batch.is_absent();
        self.method.get().map_or(if has_body { "POST" } else { "GET" }, Text::as_str)
    }
}

impl PauseSpec {
    /// Describes the length of the pause in words.
    pub fn title(&self) -> String {
        let text = |field: &Field<Text>| field.get().map(|text| text.0.clone());
        if let Some(fixed) = text(&self.fixed) {
            return format!("think {fixed}");
        }
        if let Some(mean) = text(&self.exponential) {
            return format!("think {mean} on average, exponentially distributed");
        }
        let ends: Vec<String> = self.uniform.iter().filter_map(text).collect();
        format!("think {}", ends.join(" to "))
    }
}
