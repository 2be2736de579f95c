//! The options of a script, its scenarios, and the functions beside them.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_document::{Field, StepSpec};

use super::load::{Course, Level};
use super::syntax::Span;
use super::value::{Closure, Part, Value, shown};
use super::{Importer, Item, title};
use crate::amount::Ratio;
use crate::draft::{self, text};
use crate::flow;
use crate::names::Titles;

/// Options that say nothing about the load or its requests.
const OF_REPORTS: [&str; 5] =
    ["summaryTrendStats", "summaryTimeUnit", "systemTags", "noUsageReport", "noSummary"];

/// Seconds that an executor of iterations takes at most unless it says so.
const NANOS: u64 = 1_000_000_000;

/// A scenario as the options have it.
struct Planned {
    name: String,
    exec: String,
    environment: BTreeMap<String, String>,
    course: Course,
}

/// Settings of scenarios.
const OF_SCENARIOS: [&str; 19] = [
    "executor",
    "exec",
    "env",
    "startTime",
    "duration",
    "maxDuration",
    "timeUnit",
    "vus",
    "iterations",
    "startVUs",
    "stages",
    "rate",
    "startRate",
    "preAllocatedVUs",
    "maxVUs",
    "gracefulStop",
    "gracefulRampDown",
    "tags",
    "options",
];

impl Importer<'_> {
    /// Takes over what a script exports.
    pub(crate) fn script(&mut self, module: usize) {
        self.is_first = false;
        let exports = self.exports[module].clone();
        let options = exports.get("options").cloned().unwrap_or(Value::Undefined);
        let start = Span { module, ..Span::default() };
        if let Some(lost) = options.lost() {
            let at = self.at(lost.at);
            let hint = "--env NAME=VALUE gives a value of `__ENV`; or write the options into the script";
            self.findings.hinted(&at, format!("`options` are not followed: {}", lost.why), hint);
        }
        let mut planned = self.scenarios_of(&options, start);
        if let Some(only) = &self.options.scenario {
            let known: Vec<String> = planned.iter().map(|planned| planned.name.clone()).collect();
            planned.retain(|planned| planned.name == *only);
            if planned.is_empty() {
                let hint = format!("its scenarios: {}", known.join(", "));
                let message = format!("there is no scenario `{}`", crate::findings::quoted(only));
                self.findings.hinted("options.scenarios", message, hint);
                return;
            }
        }
        self.keep_one_model(&mut planned);
        // Each of them has variables of its own.
        let before = self.before();
        let (data, setup) = self.once(&exports, "setup", &Value::Undefined, start);
        let mut courses = Vec::new();
        for planned in planned {
            self.restore(&before);
            self.scenario_of(planned, &exports, &data, &mut courses);
        }
        self.restore(&before);
        let (_, teardown) = self.once(&exports, "teardown", &data, start);
        // Only now it is known which values of its responses others need.
        self.document.setup = self.once_steps(setup, &exports, "setup");
        self.document.teardown = self.once_steps(teardown, &exports, "teardown");
        if let Some(Value::Function(function)) = exports.get("handleSummary") {
            let span = function.function.span;
            self.called.insert(span);
            let at = self.at(span);
            let becomes = "the report is made by --report and --save: it is left out";
            self.findings.note(at, "handleSummary", becomes);
        }
        for (name, value) in &exports {
            if let Value::Function(function) = value
                && !self.called.contains(&function.function.span)
            {
                let at = self.at(function.function.span);
                self.findings.note(at, name, "no scenario carries it out: it is left out");
            }
        }
        if self.document.scenarios.is_empty() && !self.findings.has_problems() {
            let hint = "a script has a function, `export default`, that makes requests with `k6/http`";
            let at = self.at(start);
            self.findings.without_requests(&at, hint);
            return;
        }
        self.load(&courses);
        self.put_options(&options);
    }

    /// A plan has users or a rate: scenarios of the other kind are left out.
    fn keep_one_model(&mut self, planned: &mut Vec<Planned>) {
        let Some(first) = planned.first() else { return };
        let (is_open, counts) = (first.course.is_open(), first.course.counts());
        let mut others = Vec::new();
        planned.retain(|planned| {
            let fits = planned.course.is_open() == is_open && planned.course.counts() == counts;
            if !fits {
                others.push(planned.name.clone());
            }
            fits
        });
        for name in others {
            let becomes = "a plan has one kind of load, and the first scenario has another: it is \
                           left out; import it \
                           as a plan of its own with --scenario";
            self.findings.note(format!("options.scenarios.{name}"), &name, becomes);
        }
    }

    /// A function that is carried out once for a run. Returns its value, and its items.
    fn once(
        &mut self,
        exports: &BTreeMap<String, Value>,
        name: &str,
        data: &Value,
        start: Span,
    ) -> (Value, Vec<Item>) {
        let Some(Value::Function(function)) = exports.get(name) else {
            return (Value::Undefined, Vec::new());
        };
        let function = Rc::clone(function);
        name.clone_into(&mut self.scenario);
        self.titles = Titles::default();
        self.is_once = true;
        self.items.push(Vec::new());
        self.begin_course();
        let value = self.invoke(&function, vec![data.clone()], start);
        (self.is_once, self.is_ending) = (false, false);
        (value, self.items.pop().unwrap_or_default())
    }

    /// The steps of such a function.
    fn once_steps(
        &mut self,
        items: Vec<Item>,
        exports: &BTreeMap<String, Value>,
        name: &str,
    ) -> Vec<Field<StepSpec>> {
        let steps = self.steps_of(items);
        if flow::has_request(&steps) {
            return flow::fields(steps);
        }
        if let Some(Value::Function(function)) = exports.get(name) {
            let at = self.at(function.function.span);
            self.findings.note(at, name, "there is no request in it: only constants of it are known");
        }
        Vec::new()
    }

    fn scenario_of(
        &mut self,
        planned: Planned,
        exports: &BTreeMap<String, Value>,
        data: &Value,
        courses: &mut Vec<Course>,
    ) {
        let Planned { name, exec, environment, course } = planned;
        let Some(Value::Function(function)) = exports.get(&exec) else {
            let at = format!("options.scenarios.{name}");
            let hint = "export a function of this name";
            self.findings.hinted(
                &at,
                format!("there is no function `{}`", crate::findings::quoted(&exec)),
                hint,
            );
            return;
        };
        let function = Rc::clone(function);
        self.scenario = name.clone();
        self.is_alone = course.is_one_user();
        self.iterations = course.iterations();
        self.environment = environment;
        self.titles = Titles::default();
        self.items.push(Vec::new());
        self.begin_course();
        self.lose_kept(&[Closure::clone(&function)]);
        self.invoke(&function, vec![data.clone()], function.function.span);
        self.is_ending = false;
        let items = self.items.pop().unwrap_or_default();
        self.environment.clear();
        let steps = self.steps_of(items);
        if !flow::has_request(&steps) {
            if !self.findings.has_problems() {
                let at = self.at(function.function.span);
                self.findings.note(at, &name, "there is no request in it: it is left out");
            }
            return;
        }
        let mut scenario = draft::scenario(&title(&name), steps);
        scenario.cookies = Field::new(true);
        if course.start > 0 {
            scenario.start_after = text(crate::amount::time(course.start));
        }
        self.document.scenarios.push(Field::new(scenario));
        self.scenarios += 1;
        courses.push(course);
    }

    /// The scenarios of the options; one without a name if there are none.
    fn scenarios_of(&mut self, options: &Value, start: Span) -> Vec<Planned> {
        let at = self.at(start);
        let mut planned = Vec::new();
        if let Some(Value::Object(scenarios)) = options.member("scenarios") {
            for (name, scenario) in scenarios.iter() {
                let Value::Object(_) = &scenario else {
                    let becomes = "it is not known before the run: it is left out";
                    self.findings.note(format!("options.scenarios.{name}"), name, becomes);
                    continue;
                };
                planned.extend(self.scenario_options(name, scenario));
            }
            for key in ["vus", "duration", "iterations", "stages"] {
                if options.member(key).is_some() {
                    let becomes = "scenarios say what the load is: it is left out";
                    self.findings.note("options", key, becomes);
                }
            }
            return planned;
        }
        let users = self.whole(options.member("vus"), "options.vus");
        let time = self.time(options.member("duration"), "options.duration");
        let iterations = self.whole(options.member("iterations"), "options.iterations");
        let level = match (options.member("stages"), time, iterations) {
            (Some(stages), ..) => {
                let stages = self.stages(stages, Ratio::new(1, 1), "options.stages");
                Level::Stages(whole(users.unwrap_or(1)), stages)
            }
            (None, time, Some(iterations)) => {
                Level::Iterations { users: users.unwrap_or(1), iterations, most: time }
            }
            (None, Some(time), None) => Level::Constant(whole(users.unwrap_or(1)), time),
            (None, None, None) => {
                let becomes = "nothing says how long the script goes on: there is one iteration for each \
                               user; give the \
                               load under `run`";
                self.findings.note(at, "options", becomes);
                let users = users.unwrap_or(1);
                Level::Iterations { users, iterations: users, most: None }
            }
        };
        planned.push(Planned {
            name: "default".to_owned(),
            exec: "default".to_owned(),
            environment: BTreeMap::new(),
            course: Course { start: 0, is_rate: false, level, at: "options".to_owned() },
        });
        planned
    }

    fn scenario_options(&mut self, name: &str, scenario: &Value) -> Option<Planned> {
        let at = format!("options.scenarios.{name}");
        let of = |key: &str| scenario.member(key);
        let (is_rate, level) = self.level_of(scenario, &at)?;
        self.note_without_effect(scenario, is_rate, &at);
        let mut environment = BTreeMap::new();
        if let Some(Value::Object(given)) = of("env") {
            environment
                .extend(given.iter().filter_map(|(key, value)| Some((key.clone(), value.constant()?))));
        }
        if let Value::Object(members) = scenario {
            for (key, _) in members.iter().filter(|(key, _)| !OF_SCENARIOS.contains(&key.as_str())) {
                let becomes = "a scenario has no such setting: it is left out";
                self.findings.note(format!("{at}.{key}"), key, becomes);
            }
        }
        let start = self.time(of("startTime"), &format!("{at}.startTime")).unwrap_or(0);
        let exec = of("exec").and_then(Value::constant).unwrap_or_else(|| "default".to_owned());
        Some(Planned {
            name: name.to_owned(),
            exec,
            environment,
            course: Course { start, is_rate, level, at },
        })
    }

    /// The level of load of a scenario, by its executor; `true` with it if that is a rate. `None` if nothing
    /// says it.
    fn level_of(&mut self, scenario: &Value, at: &str) -> Option<(bool, Level)> {
        let of = |key: &str| scenario.member(key);
        let place = |key: &str| format!("{at}.{key}");
        let executor = of("executor").and_then(Value::constant).unwrap_or_default();
        let duration = self.time(of("duration"), &place("duration"));
        let most = self.time(of("maxDuration"), &place("maxDuration"));
        let unit = self.time(of("timeUnit"), &place("timeUnit")).unwrap_or(NANOS);
        let users = self.whole(of("vus"), &place("vus")).unwrap_or(1);
        let iterations = self.whole(of("iterations"), &place("iterations")).unwrap_or(1);
        let per_unit = Ratio::new(u128::from(NANOS), u128::from(unit));
        let rate = |number: f64| rate_of(number).and_then(|rate| rate.times(per_unit?));
        let number = |importer: &mut Self, key: &str| importer.number(of(key), &place(key));
        Some(match executor.as_str() {
            "constant-vus" => (false, Level::Constant(whole(users), duration?)),
            "ramping-vus" => {
                let first = self.whole(of("startVUs"), &place("startVUs")).unwrap_or(1);
                let stages = self.stages(of("stages")?, Ratio::new(1, 1), &place("stages"));
                (false, Level::Stages(whole(first), stages))
            }
            "shared-iterations" => (false, Level::Iterations { users, iterations, most }),
            "per-vu-iterations" => {
                if users > 1 {
                    let becomes = "users share all iterations: a fast one may do more of them";
                    self.findings.note(place("iterations"), "per-vu-iterations", becomes);
                }
                (false, Level::Iterations { users, iterations: users.saturating_mul(iterations), most })
            }
            "constant-arrival-rate" => {
                let number = number(self, "rate").unwrap_or(0.0);
                (true, Level::Constant(rate(number)?, duration?))
            }
            "ramping-arrival-rate" => {
                let first = number(self, "startRate").unwrap_or(0.0);
                let stages = self.stages(of("stages")?, per_unit, &place("stages"));
                (true, Level::Stages(rate(first)?, stages))
            }
            "externally-controlled" => {
                let becomes =
                    "its users are changed from outside: the number of them at the beginning is taken";
                self.findings.note(place("executor"), &executor, becomes);
                (false, Level::Constant(whole(users), duration.unwrap_or(60 * NANOS)))
            }
            other => {
                let becomes = "there is no such executor: the scenario is left out";
                self.findings.note(place("executor"), other, becomes);
                return None;
            }
        })
    }

    /// Notes the settings of a scenario that plans do not need, or do not have.
    fn note_without_effect(&mut self, scenario: &Value, is_rate: bool, at: &str) {
        let of = |key: &str| scenario.member(key);
        if is_rate {
            let limits: Vec<&str> =
                ["preAllocatedVUs", "maxVUs"].into_iter().filter(|key| of(key).is_some()).collect();
            if !limits.is_empty() {
                let becomes = "users are as many as the rate needs; `connections` with `overload: drop` \
                               limits what is \
                               open at once";
                self.findings.note(at, &limits.join(", "), becomes);
            }
        }
        for (key, becomes) in [
            ("gracefulStop", "iterations under way have the time of `drain` to end: give it under `run`"),
            ("gracefulRampDown", "a user that leaves finishes its iteration first"),
            ("tags", "plans have no tags but the names of scenarios: it is left out"),
            ("options", "browsers are not started: it is left out"),
        ] {
            if let Some(value) = of(key) {
                let said = value.constant().unwrap_or_else(|| key.to_owned());
                self.findings.note(format!("{at}.{key}"), &said, becomes);
            }
        }
    }

    /// The stages of an executor: how long, and the level at the end.
    fn stages(&mut self, stages: &Value, unit: Option<Ratio>, at: &str) -> Vec<(u64, Ratio)> {
        let Value::Array(stages) = stages else {
            self.findings.problem(at, "the stages are not known before the run");
            return Vec::new();
        };
        let mut all = Vec::new();
        for stage in stages.iter() {
            let duration = self.time(stage.member("duration"), &format!("{at}.duration"));
            let target = self.number(stage.member("target"), &format!("{at}.target"));
            let target = target.and_then(rate_of).and_then(|target| target.times(unit?));
            match (duration, target) {
                (Some(duration), Some(target)) => all.push((duration, target)),
                _ => self.findings.hinted(at, "a stage has no `duration` and `target`", "write both of them"),
            }
        }
        all
    }

    /// A value of the options; of the environment its default.
    fn setting(&mut self, value: Option<&Value>, at: &str) -> Option<Value> {
        match value? {
            Value::Undefined | Value::Null => None,
            Value::Text(text) => match text.parts.as_slice() {
                [Part::Environment(name, Some(default))] => {
                    let becomes = format!("the value of `__ENV.{name}` at the import is taken");
                    self.findings.note(at, default, becomes);
                    Some(Value::String(default.clone()))
                }
                [Part::Environment(name, None)] => {
                    let hint = format!("give it with --env {name}=VALUE");
                    self.findings.hinted(at, format!("`__ENV.{name}` has no value"), hint);
                    None
                }
                _ => {
                    self.findings.problem(at, "its value is not known before the run");
                    None
                }
            },
            value if value.constant().is_some() => Some(value.clone()),
            _ => {
                self.findings.problem(at, "its value is not known before the run");
                None
            }
        }
    }

    fn number(&mut self, value: Option<&Value>, at: &str) -> Option<f64> {
        let value = self.setting(value, at)?;
        let number = value.number().filter(|number| *number >= 0.0);
        if number.is_none() {
            let said = crate::findings::quoted(&value.constant().unwrap_or_default());
            self.findings.problem(at, format!("`{said}` is not a number from 0"));
        }
        number
    }

    fn whole(&mut self, value: Option<&Value>, at: &str) -> Option<u64> {
        self.number(value, at).map(|number| number.round() as u64)
    }

    fn time(&mut self, value: Option<&Value>, at: &str) -> Option<u64> {
        let value = self.setting(value, at)?;
        let time = super::call::duration(&value);
        if time.is_none() {
            let said = crate::findings::quoted(&value.constant().unwrap_or_default());
            self.findings.hinted(at, format!("`{said}` is not a time"), "write it as 30s or 1m30s");
        }
        time
    }

    /// Everything in the options that is not the load.
    fn put_options(&mut self, options: &Value) {
        let Value::Object(members) = options else {
            if !matches!(options, Value::Undefined) {
                self.findings.note("options", "", "they are not known before the run: they are left out");
            }
            return;
        };
        for (key, value) in members.iter() {
            let said = match value.constant() {
                Some(value) => format!("{key}: {value}"),
                None => key.clone(),
            };
            match key.as_str() {
                "vus" | "duration" | "iterations" | "stages" | "scenarios" => {}
                "thresholds" => self.thresholds_of(value),
                "insecureSkipTLSVerify" => {
                    if value.truth() == Some(true) {
                        self.settings.insecure = Field::new(true);
                    }
                }
                "userAgent" => {
                    if let Some(agent) = value.constant() {
                        for scenario in &mut self.document.scenarios {
                            if let Field::Given(scenario, _) = scenario {
                                scenario.headers.push("user-agent", draft::literal(&agent));
                            }
                        }
                    }
                }
                "maxRedirects" => {
                    if let Some(most) = value.number() {
                        self.most_redirects = shown(most);
                        if most == 0.0 {
                            self.requests.iter_mut().for_each(|request| request.follows = false);
                        }
                    }
                }
                key if OF_REPORTS.contains(&key) => {
                    self.findings.note("options", &said, "the report is another one: it is left out");
                }
                _ => {
                    let becomes =
                        "it is not taken over: see whether `plimsoll run --help` has something like it";
                    self.findings.note("options", &said, becomes);
                }
            }
        }
    }
}

fn whole(number: u64) -> Ratio {
    Ratio::whole(u128::from(number))
}

/// A number as an exact one.
fn rate_of(number: f64) -> Option<Ratio> {
    Ratio::decimal(&shown(number))
}
