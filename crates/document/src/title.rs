//! Names of the parts of a plan.

use std::collections::{HashMap, HashSet};

use super::{
    Document, Field, PauseSpec, RepetitionStep, RequestStep, RowsStep, ScenarioSpec, StepKind, StepSpec,
    Text, unescaped,
};

impl Document {
    /// Returns the name of the scenario at `index` in reports: its own, or one that distinguishes it from the
    /// others.
    pub fn scenario_name(&self, index: usize) -> String {
        let given = self.scenarios.get(index).and_then(Field::get).and_then(|spec| spec.name.get());
        match (given, self.scenarios.len(), self.name.get()) {
            (Some(name), ..) => unescaped(&name.0),
            (None, 0 | 1, Some(plan)) => unescaped(&plan.0),
            (None, 0 | 1, None) => "scenario".to_owned(),
            (None, ..) => format!("scenario {}", index + 1),
        }
    }
}

impl ScenarioSpec {
    /// Returns the names of its requests in reports, in their order. `None` if one of them depends on the
    /// environment, or could not be understood.
    pub fn step_names(&self) -> Option<Vec<String>> {
        let mut names = StepNames::default();
        let mut all = Vec::new();
        collect(&self.steps, &mut names, &mut all).then_some(all)
    }
}

/// Text in names in place of the URL of the previous request.
pub const SAME_URL: &str = "the same URL";
/// Text in names in place of a path that only a script knows.
pub const BY_SCRIPT: &str = "by a script";

/// The names of a scenario's requests. A second `GET /` is called `GET / #2`.
#[derive(Debug, Default)]
pub struct StepNames {
    known: HashSet<String>,
    /// Last number that was tried for each generated name.
    numbers: HashMap<String, u32>,
}

impl StepNames {
    /// Notes a name that the plan gives; `false` if there is one already.
    pub fn give(&mut self, name: &str) -> bool {
        self.known.insert(name.to_owned())
    }

    /// A name for a request without one, which says `plain`: method and path.
    pub fn make(&mut self, plain: &str) -> String {
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
            let given = step.name.get().map(|name| names.give(&unescaped(&name.0)));
            all.push(if given.is_some() { plain } else { names.make(&plain) });
        }
        step.inner().all(|inner| collect(inner, names, all))
    })
}

impl StepSpec {
    /// Returns the name of a request in reports: its own, or method and path. `None` for other steps, and for
    /// requests whose path is known only during the run.
    pub fn report_name(&self) -> Option<String> {
        match (self.name.get(), &self.kind) {
            (Some(name), _) => Some(unescaped(&name.0)),
            (None, StepKind::Request(request)) => {
                let mut urls = request.address.urls().into_iter();
                let (word, url) = urls.find_map(|(word, url)| Some((word, url.get()?)))?;
                let method = match word {
                    "request" => request.free_method().to_owned(),
                    word => word.to_ascii_uppercase(),
                };
                Some(format!("{method} {}", url.as_str()))
            }
            (None, kind) => kind.request_title(),
        }
    }

    /// Returns the name of the request in reports, without the number that distinguishes it from others of
    /// that name. `None` if the name is not literally in the plan.
    fn plain_name(&self) -> Option<String> {
        let name = match (self.report_name(), self.request()) {
            (Some(name), _) => name,
            (None, Some(request)) if !request.address.same_url.is_absent() => self.title(),
            (None, Some(request)) => format!("{} {BY_SCRIPT}", request.free_method()),
            (None, None) => return None,
        };
        // The environment fills in some names, and passwords must not become a part of one.
        let is_known = !name.contains("env(") && (!self.name.is_absent() || !name.contains('@'));
        is_known.then(|| name.trim().to_owned())
    }

    /// Returns `true` if it is a request.
    pub fn is_request(&self) -> bool {
        let made =
            |request: &RequestStep| !request.address.same_url.is_absent() || !request.script.is_absent();
        self.report_name().is_some() || self.request().is_some_and(made)
    }

    /// Describes the step in a few words.
    pub fn title(&self) -> String {
        if let Some(name) = self.report_name() {
            return name;
        }
        match &self.kind {
            StepKind::Request(request) if !request.address.same_url.is_absent() => {
                format!("{} {SAME_URL}", request.free_method())
            }
            StepKind::Request(request) if !request.script.is_absent() => {
                "request made by a script".to_owned()
            }
            StepKind::Set(step) => {
                let names: Vec<&str> = step.set.0.iter().map(|(name, ..)| name.as_str()).collect();
                format!("set {}", names.join(", "))
            }
            StepKind::Rows(rows) => rows.title(),
            StepKind::Branch(branch) => format!("if {}", words(&branch.condition)),
            StepKind::Repetition(repetition) => repetition.title(),
            StepKind::Parallel(_) => "at once".to_owned(),
            _ => self.think.get().map_or_else(|| "nothing".to_owned(), PauseSpec::title),
        }
    }
}

impl RequestStep {
    /// The method where no field is named after it.
    fn free_method(&self) -> &str {
        self.address.method.get().map_or_else(|| self.default_method(), Text::as_str)
    }

    /// The method where none is given.
    pub fn default_method(&self) -> &'static str {
        if self.body.given().is_empty() { "GET" } else { "POST" }
    }
}

impl RowsStep {
    fn title(&self) -> String {
        match self.keep.0.first() {
            Some((name, ..)) => format!("keep {}", name.as_str()),
            None if !self.pick.is_absent() => format!("pick {}", words(&self.pick)),
            None => format!("take {}", words(&self.take)),
        }
    }
}

impl RepetitionStep {
    fn title(&self) -> String {
        match self.repeat.is_absent() {
            false => format!("repeat {}", words(&self.repeat)),
            true => format!("while {}", words(&self.while_condition)),
        }
    }
}

fn words(field: &Field<Text>) -> &str {
    field.get().map_or("", Text::as_str)
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
        if let Some(pace) = text(&self.pace) {
            return format!("think to keep a pace of {pace}");
        }
        let ends: Vec<String> = self.uniform.iter().filter_map(text).collect();
        format!("think {}", ends.join(" to "))
    }
}
