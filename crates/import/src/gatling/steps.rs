//! Chains of actions, which become steps.

use std::sync::Arc;

use plimsoll_document::{BranchStep, ParallelStep, StepKind, StepSpec};

use super::Importer;
use super::tree::{DEEPEST, Expression, Function, Kind, Link, Span, Statement, StatementKind};
use super::value::only_variable;
use crate::MOST_STEPS;
use crate::amount::Ratio;
use crate::draft::{self, text};
use crate::flow::{self, MOST_WRITTEN_OUT, Writing, in_quotes};
use crate::names::Titles;

/// The place that steps are in.
pub(super) struct In<'s> {
    /// Names of steps so far.
    pub(super) names: &'s mut Titles,
    pub(super) scenario: &'s str,
    pub(super) groups: Vec<String>,
    /// Within a loop, whose turns are parts of one iteration.
    pub(super) in_loop: bool,
    /// Users stay, and repeat the whole: each iteration is one turn.
    pub(super) is_repeated: bool,
    /// Paces so far.
    pub(super) paces: u32,
    /// A failure ends the iteration.
    pub(super) ends: bool,
}

/// A word of Gatling with all that belongs to it: `repeat(5, "n").on(exec(…))`.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) name: String,
    pub(super) span: Span,
    /// Arguments of the word; languages with several lists of them have the steps in a further one.
    pub(super) calls: Vec<Arc<[Expression]>>,
    /// `on`, `then` and `orElse`, with theirs.
    pub(super) behind: Vec<(String, Arc<[Expression]>)>,
}

/// Words that belong to the one in front.
const BEHIND: [&str; 5] = ["on", "then", "then_", "orElse", "doThen"];

/// Words that plans have no step for.
const WITHOUT_STEP: [&str; 11] = [
    "rendezVous",
    "exitHere",
    "exitHereIf",
    "stopLoadGenerator",
    "stopLoadGeneratorIf",
    "crashLoadGenerator",
    "crashLoadGeneratorIf",
    "stopInjector",
    "stopInjectorIf",
    "registerCall",
    "dummy",
];

/// Words about cookies and the cache.
const OF_COOKIES: [&str; 5] =
    ["addCookie", "flushCookieJar", "flushSessionCookies", "flushHttpCache", "getCookieValue"];

/// The words of a chain, in order.
pub(super) fn operations(name: &str, span: Span, links: &[Link]) -> Vec<Operation> {
    let new = |name: &str, span: Span| Operation {
        name: name.to_owned(),
        span,
        calls: Vec::new(),
        behind: Vec::new(),
    };
    let mut all = vec![new(name, span)];
    for link in links {
        let arguments = link.arguments.clone().unwrap_or_default();
        let Some(last) = all.last_mut() else { break };
        match link.name.as_str() {
            "" if last.behind.is_empty() => last.calls.push(arguments),
            // Several lists of arguments behind `orElse`.
            "" => {
                if let Some((_, before)) = last.behind.last_mut() {
                    *before = before.iter().chain(arguments.iter()).cloned().collect();
                }
            }
            name if BEHIND.contains(&name) => {
                last.behind.push((name.to_owned(), arguments));
            }
            name => {
                let mut next = new(name, link.span);
                next.calls.extend(link.arguments.clone());
                all.push(next);
            }
        }
    }
    all
}

impl Operation {
    /// The first arguments.
    pub(super) fn first(&self) -> &[Expression] {
        self.calls.first().map(|list| &list[..]).unwrap_or_default()
    }

    /// The arguments of a word behind it.
    fn behind(&self, names: &[&str]) -> Option<&Arc<[Expression]>> {
        self.behind.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, list)| list)
    }

    /// The steps within it: those of `on` or `then`, or the lists of arguments from the `from`-th on.
    fn body(&self, from: usize) -> Vec<Expression> {
        match self.behind(&["on", "then", "then_", "doThen"]) {
            Some(list) => list.to_vec(),
            None => self.calls.iter().skip(from).flat_map(|list| list.iter().cloned()).collect(),
        }
    }
}

impl Importer<'_> {
    /// The steps of a chain, an action, or a list of them.
    pub(super) fn steps(&mut self, expression: &Expression, within: &mut In<'_>) -> Vec<StepSpec> {
        self.depth += 1;
        let steps = if self.depth > DEEPEST {
            self.note(expression.span, "it is nested too deeply: it is left out");
            Vec::new()
        } else {
            self.steps_within(expression, within)
        };
        self.depth -= 1;
        steps
    }

    fn steps_within(&mut self, expression: &Expression, within: &mut In<'_>) -> Vec<StepSpec> {
        let resolved = self.resolved(expression);
        match &resolved.kind {
            Kind::List(items) => {
                let mut all = Vec::new();
                for item in items.iter() {
                    self.join(&mut all, item, within);
                }
                all
            }
            Kind::Lambda(function) => self.session_function(function, resolved.span, expression.span),
            Kind::Chain(_) => match resolved.chain() {
                Some(("_", _)) => {
                    let statement =
                        Statement { span: resolved.span, kind: StatementKind::Return(resolved.clone()) };
                    let function = Function { parameters: vec!["_".to_owned()], body: vec![statement] };
                    self.session_function(&Arc::new(function), resolved.span, expression.span)
                }
                Some((name, links)) => {
                    let operations = operations(name, resolved.span, links);
                    self.carry_out(&operations, within)
                }
                None => {
                    self.note(expression.span, "there is no such action: it is left out");
                    Vec::new()
                }
            },
            _ => {
                self.note(expression.span, "there is no such action: it is left out");
                Vec::new()
            }
        }
    }

    /// Adds the steps of another action; a pause goes to the request in front of it.
    fn join(&mut self, all: &mut Vec<StepSpec>, expression: &Expression, within: &mut In<'_>) {
        for step in self.steps(expression, within) {
            add(all, step);
        }
    }

    fn all_steps(&mut self, expressions: &[Expression], within: &mut In<'_>) -> Vec<StepSpec> {
        let mut all = Vec::new();
        for expression in expressions {
            self.join(&mut all, expression, within);
        }
        all
    }

    /// The steps of words behind each other.
    pub(super) fn carry_out(&mut self, operations: &[Operation], within: &mut In<'_>) -> Vec<StepSpec> {
        let mut all: Vec<StepSpec> = Vec::new();
        if let Some(first) = operations.first()
            && is_request(first)
        {
            // `http("name").get("/")`: all that is behind it belongs to it.
            return self.request(operations, within);
        }
        for (index, operation) in operations.iter().enumerate() {
            if !self.goes_on(1, operation.span) {
                break;
            }
            match operation.name.as_str() {
                "scenario" => {}
                "exec" => {
                    for action in operation.calls.iter().flat_map(|list| list.iter()) {
                        self.join(&mut all, action, within);
                    }
                }
                "pause" => {
                    if let Some(step) = self.pause(operation) {
                        add(&mut all, step);
                    }
                }
                "pace" => {
                    let is_between = !all.is_empty() && index + 1 < operations.len();
                    all.extend(self.pace(operation, is_between, within));
                }
                "feed" => self.feed(operation, within),
                "group" => {
                    let title = operation.first().first().and_then(|name| self.text_of(name));
                    within.groups.push(title.unwrap_or_else(|| "group".to_owned()));
                    let steps = self.all_steps(&operation.body(1), within);
                    within.groups.pop();
                    steps.into_iter().for_each(|step| add(&mut all, step));
                }
                "exitHereIfFailed" => {
                    // The requests in front of it end the iteration themselves.
                    end_on_failure(&mut all);
                    if all.iter().filter(|step| step.request().is_some()).count() > 1 {
                        let becomes = "each request in front of it ends the iteration if it fails, at once";
                        self.note_call(operation.span, "exitHereIfFailed", becomes);
                    }
                }
                "ws" | "sse" | "jms" | "mqtt" | "grpc" | "jdbc" | "polling" => {
                    let becomes = "only requests of HTTP are taken over: it is left out";
                    self.note(operation.span, becomes);
                    // All that is behind it belongs to it.
                    break;
                }
                "injectOpen" | "injectClosed" | "inject" => break,
                _ => match self.block(operation, within) {
                    Some(steps) => all.extend(steps),
                    None => self.note_left_out(operation),
                },
            }
        }
        all
    }

    /// The steps of a loop, a condition or another word around steps. `None` if it is none of these.
    fn block(&mut self, operation: &Operation, within: &mut In<'_>) -> Option<Vec<StepSpec>> {
        Some(match operation.name.as_str() {
            "repeat" => self.repeat(operation, within),
            "foreach" => self.foreach(operation, within),
            "during" | "forever" | "doWhile" | "asLongAsDuring" | "doWhileDuring" => {
                let becomes = "plans repeat a number of times, or while a variable has a value: the steps \
                               are carried out once";
                self.note_call(operation.span, &operation.name, becomes);
                let from = usize::from(operation.name != "forever" || operation.calls.len() > 1);
                self.turn(&operation.body(from), within)
            }
            "asLongAs" => self.as_long_as(operation, within),
            "doIf" | "doIfOrElse" | "doIfEquals" | "doIfEqualsOrElse" => self.do_if(operation, within),
            "doSwitch" | "doSwitchOrElse" => self.do_switch(operation, within),
            "randomSwitch" | "randomSwitchOrElse" => self.random_switch(operation, within),
            "uniformRandomSwitch" => self.even_switch(operation, "random_int(0, {})", within),
            "roundRobinSwitch" => self.even_switch(operation, "range(0, {})", within),
            "exitBlockOnFail" => {
                let becomes = "a failed request within ends the iteration, and not the block alone";
                self.note_call(operation.span, "exitBlockOnFail", becomes);
                let ends = std::mem::replace(&mut within.ends, true);
                let steps = self.all_steps(&operation.body(0), within);
                within.ends = ends;
                steps
            }
            "tryMax" => {
                let becomes = "nothing is tried again: the steps are carried out once";
                self.note_call(operation.span, "tryMax", becomes);
                self.all_steps(&operation.body(1), within)
            }
            _ => return None,
        })
    }

    /// Says why a word has no steps.
    fn note_left_out(&mut self, operation: &Operation) {
        match operation.name.as_str() {
            name if OF_COOKIES.contains(&name) => {
                let becomes = "cookies of an iteration are kept by RFC 6265, and nothing is cached: it is \
                               left out";
                self.note_call(operation.span, name, becomes);
            }
            name if WITHOUT_STEP.contains(&name) => {
                self.note(operation.span, "plans have no such step: it is left out");
            }
            _ => self.note(operation.span, "there is no such action: it is left out"),
        }
    }

    /// `session -> session.set("a", 1)` sets variables; anything else is a part of a program.
    fn session_function(&mut self, function: &Arc<Function>, span: Span, at: Span) -> Vec<StepSpec> {
        let becomes = "a function of the session is not carried out: it is left out; a step's `script` in \
                       Lua may do";
        let mut pairs = Vec::new();
        let parameter = function.parameters.first().map(String::as_str).unwrap_or_default();
        if let [statement] = function.body.as_slice()
            && let StatementKind::Return(value) = &statement.kind
            && let Some((name, links)) = value.chain()
            && name == parameter
            && !links.is_empty()
        {
            for link in links {
                let given = link.arguments.clone().unwrap_or_default();
                match (link.name.as_str(), given.as_ref()) {
                    ("set", [name, value]) => {
                        let name = self.text_of(name);
                        let Some((name, value)) = name.zip(self.text_of(value)) else {
                            self.note(at, becomes);
                            return Vec::new();
                        };
                        let value = self.written(&value, Writing::Plain, span);
                        pairs.push((self.variables.name(&name), value));
                    }
                    _ => {
                        self.note(at, becomes);
                        return Vec::new();
                    }
                }
            }
        }
        if pairs.is_empty() {
            self.note(at, becomes);
            return Vec::new();
        }
        vec![flow::set(pairs)]
    }

    /// Counts a step; `false` once there are too many, which is reported.
    pub(super) fn counts_step(&mut self, span: Span) -> bool {
        self.steps += 1;
        if self.steps == MOST_STEPS + 1 {
            let at = self.at(span);
            self.findings.problem(&at, format!("there are more than {MOST_STEPS} steps"));
        }
        self.steps <= MOST_STEPS
    }

    /// The times of a pause or a pace in nanoseconds, and `true` if there is nothing else among its
    /// arguments.
    fn times(&mut self, operation: &Operation) -> (Vec<u64>, bool) {
        let given = operation.first().to_vec();
        // The kind of the distribution, and `force`, may stand behind the times; Scala has a unit there, too.
        let unit = given.last().and_then(|last| unit_behind(&self.said(last.span)));
        let mut times = Vec::new();
        for one in &given {
            match (self.time(one), unit) {
                (Some(nanos), Some(unit)) => times.push(nanos / 1_000_000_000 * unit),
                (Some(nanos), None) => times.push(nanos),
                (None, _) => {}
            }
        }
        let is_all = times.len() == given.len() || unit.is_some();
        (times, is_all)
    }

    /// The time between two turns of a loop. It stands at their beginning, or between their requests;
    /// `is_between`: there are words before it and behind it.
    fn pace(&mut self, operation: &Operation, is_between: bool, within: &mut In<'_>) -> Option<StepSpec> {
        if !within.in_loop && !within.is_repeated {
            let becomes = "it waits for nothing outside a loop, where a user comes once: it is left out";
            self.note(operation.span, becomes);
            return None;
        }
        let step = self.pace_step(operation)?;
        within.paces += 1;
        if within.paces > 1 {
            let becomes = "the paces of an iteration share one clock here: it waits since the one before";
            self.note(operation.span, becomes);
        } else if !within.in_loop && is_between {
            let becomes = "here it waits since the iteration began: what follows it comes on top";
            self.note(operation.span, becomes);
        }
        Some(step)
    }

    fn pace_step(&mut self, operation: &Operation) -> Option<StepSpec> {
        let (times, _) = self.times(operation);
        let time = match times.as_slice() {
            [] => {
                self.note(operation.span, "a pace has a fixed time in a plan: it is left out");
                return None;
            }
            [one] => *one,
            [shortest, longest, ..] => {
                self.note(operation.span, "a pace has one time in a plan: it is the mean of both");
                shortest.midpoint(*longest)
            }
        };
        (time > 0).then(|| flow::pause(flow::pace(time)))
    }

    fn pause(&mut self, operation: &Operation) -> Option<StepSpec> {
        let (times, is_all) = self.times(operation);
        let (shortest, longest) = match times.as_slice() {
            [] => {
                let becomes = "a pause has a fixed time or a range of times in a plan: it is left out";
                self.note(operation.span, becomes);
                return None;
            }
            [one] => (*one, *one),
            [shortest, longest, ..] => (*shortest, *longest),
        };
        if !is_all {
            let becomes = "only the times are taken: they are fixed, or uniformly distributed";
            self.note(operation.span, becomes);
        }
        if longest == 0 || self.protocol.without_pauses {
            return None;
        }
        Some(flow::pause(flow::uniform(shortest, longest)))
    }

    /// The steps of one turn of a loop.
    fn turn(&mut self, body: &[Expression], within: &mut In<'_>) -> Vec<StepSpec> {
        let before = std::mem::replace(&mut within.in_loop, true);
        let steps = self.all_steps(body, within);
        within.in_loop = before;
        paced_at_end(steps)
    }

    fn repeat(&mut self, operation: &Operation, within: &mut In<'_>) -> Vec<StepSpec> {
        let body = operation.body(1);
        let given = operation.first().to_vec();
        let counter = given.get(1).and_then(|name| self.text_of(name));
        let times = given.first().and_then(|times| self.text_of(times));
        let number = times.as_deref().and_then(|times| times.trim().parse::<usize>().ok());
        match (number, &times, counter) {
            (Some(0), ..) => Vec::new(),
            (Some(turns), _, Some(counter)) if turns <= MOST_WRITTEN_OUT => {
                let values: Vec<String> = (0..turns).map(|turn| turn.to_string()).collect();
                self.written_out(&counter, &values, &body, within, Some(turns))
            }
            (Some(turns), _, counter) => {
                if let Some(counter) = counter {
                    let becomes = "the number of the turn is not known here: it is empty";
                    self.note_call(operation.span, &counter, becomes);
                }
                repeated(turns.to_string(), self.turn(&body, within))
            }
            (None, Some(times), counter) if only_variable(times).is_some() => {
                if let Some(counter) = counter {
                    let becomes = "the number of the turn is not known here: it is empty";
                    self.note_call(operation.span, &counter, becomes);
                }
                let times = self.written(times, Writing::Plain, operation.span);
                repeated(times, self.turn(&body, within))
            }
            _ => {
                let becomes =
                    "the number of turns is not known before the run: the steps are carried out once";
                self.note_call(operation.span, "repeat", becomes);
                self.turn(&body, within)
            }
        }
    }

    fn foreach(&mut self, operation: &Operation, within: &mut In<'_>) -> Vec<StepSpec> {
        let body = operation.body(1);
        let given = operation.first().to_vec();
        let name = given.get(1).and_then(|name| self.text_of(name));
        let items = given.first().and_then(|items| self.items(items));
        let values: Option<Vec<String>> =
            items.and_then(|items| items.iter().map(|item| self.text_of(item)).collect());
        match (name, values) {
            (Some(name), Some(values)) if values.len() <= MOST_WRITTEN_OUT => {
                self.written_out(&name, &values, &body, within, None)
            }
            _ => {
                let becomes = "plans have no lists in variables: the steps are carried out once";
                self.note_call(operation.span, "foreach", becomes);
                self.turn(&body, within)
            }
        }
    }

    /// The items of a list that is written out: `[…]`, `List.of(…)`, `Seq(…)`.
    pub(super) fn items(&mut self, expression: &Expression) -> Option<Vec<Expression>> {
        let resolved = self.resolved(expression);
        if let Kind::List(items) = &resolved.kind {
            return Some(items.to_vec());
        }
        let (name, links) = resolved.chain()?;
        let (first, rest) = links.split_first()?;
        let is_list = matches!(
            (name, first.name.as_str()),
            ("List" | "Set" | "Stream", "of")
                | ("Arrays", "asList")
                | ("Seq" | "List" | "Array" | "Vector" | "IndexedSeq" | "Set", "" | "apply")
        );
        (is_list && rest.is_empty()).then(|| first.arguments.clone().unwrap_or_default().to_vec())
    }

    /// The steps of a loop once for each value of a variable; a `repeat` of `turns` where no step reads it.
    fn written_out(
        &mut self,
        variable: &str,
        values: &[String],
        body: &[Expression],
        within: &mut In<'_>,
        turns: Option<usize>,
    ) -> Vec<StepSpec> {
        let name = self.variables.name(variable);
        let mut all = Vec::new();
        for (index, value) in values.iter().enumerate() {
            self.counters.push((variable.to_owned(), value.clone()));
            let steps = self.turn(body, within);
            self.counters.pop();
            if index == 0
                && let Some(turns) = turns
                && !reads(&steps, &name)
            {
                return repeated(turns.to_string(), steps);
            }
            if self.findings.has_problems() {
                break;
            }
            let span = body.first().map(|body| body.span).unwrap_or_default();
            let value = self.written(value, Writing::Plain, span);
            all.push(flow::set([(name.clone(), value)]));
            all.extend(steps);
        }
        all
    }

    fn as_long_as(&mut self, operation: &Operation, within: &mut In<'_>) -> Vec<StepSpec> {
        let condition = operation.first().first().cloned().and_then(|given| self.condition(&given));
        let steps = self.turn(&operation.body(1), within);
        match condition {
            Some(condition) if !steps.is_empty() => {
                let mut repetition = plimsoll_document::RepetitionStep::default();
                repetition.while_condition = text(condition);
                repetition.steps = flow::fields(steps);
                vec![StepKind::Repetition(Box::new(repetition)).into()]
            }
            _ => {
                let becomes = "plans repeat while a variable has a value: the steps are carried out once";
                self.note_call(operation.span, "asLongAs", becomes);
                steps
            }
        }
    }

    /// `#{flag}` as a condition.
    fn condition(&mut self, given: &Expression) -> Option<String> {
        let written = self.text_of(given)?;
        if let Some(name) = only_variable(&written) {
            return Some(format!("${{{}}} == true", self.variables.name(name)));
        }
        let inside = written.trim().strip_prefix("#{")?.strip_suffix("()}")?;
        let (name, asked) = inside.rsplit_once('.')?;
        only_variable(&format!("#{{{name}}}"))?;
        let name = self.variables.name(name);
        match asked {
            "exists" if self.optional.contains(&name) => Some(format!("not ${{{name}}} == \"\"")),
            "isUndefined" if self.optional.contains(&name) => Some(format!("${{{name}}} == \"\"")),
            "exists" => Some(format!("exists {name}")),
            "isUndefined" => Some(format!("not exists {name}")),
            _ => None,
        }
    }

    /// `${a} == "b"` for two texts, of which one is a variable.
    fn equality(&mut self, one: &str, other: &str) -> Option<String> {
        let (name, value) = match only_variable(one) {
            Some(name) => (name, other),
            None => (only_variable(other)?, one),
        };
        let name = self.variables.name(name);
        let value = match only_variable(value) {
            Some(value) => format!("${{{}}}", self.variables.name(value)),
            None if value.contains("#{") || value.contains("${") => return None,
            None => in_quotes(value)?,
        };
        Some(format!("${{{name}}} == {value}"))
    }

    fn do_if(&mut self, operation: &Operation, within: &mut In<'_>) -> Vec<StepSpec> {
        let given = operation.first().to_vec();
        let condition = match given.as_slice() {
            [one, other] => match (self.text_of(one), self.text_of(other)) {
                (Some(one), Some(other)) => self.equality(&one, &other),
                _ => None,
            },
            [one] => self.condition(one),
            _ => None,
        };
        let otherwise: Vec<Expression> = match operation.behind(&["orElse"]) {
            Some(list) => list.to_vec(),
            // Scala has a list of arguments for each.
            None if operation.name.ends_with("OrElse") && operation.behind.is_empty() => {
                operation.calls.get(2).map(|list| list.to_vec()).unwrap_or_default()
            }
            None => Vec::new(),
        };
        let body = match operation.behind(&["then", "then_", "on"]) {
            Some(list) => list.to_vec(),
            None => operation.calls.get(1).map(|list| list.to_vec()).unwrap_or_default(),
        };
        let then = self.all_steps(&body, within);
        let otherwise = self.all_steps(&otherwise, within);
        match condition {
            Some(condition) => branch(condition, then, otherwise),
            None => {
                let becomes =
                    "plans compare a variable with a value: the first steps are carried out in any case";
                self.note_call(operation.span, &operation.name, becomes);
                then
            }
        }
    }

    /// A choice of a switch: its key or weight, and its steps.
    fn choice(&mut self, expression: &Expression) -> Option<(Expression, Vec<Expression>)> {
        let resolved = self.resolved(expression);
        match &resolved.kind {
            Kind::Pair(pair) => Some((pair.0.clone(), vec![pair.1.clone()])),
            Kind::Pairs(pairs) => {
                let member = |wanted: &[&str]| {
                    let is = |key: &Expression| match &key.kind {
                        Kind::String(key) => wanted.contains(&key.as_str()),
                        _ => false,
                    };
                    pairs.iter().find(|(key, _)| is(key)).map(|(_, value)| value.clone())
                };
                Some((member(&["weight", "key"])?, vec![member(&["chain"])?]))
            }
            _ => {
                let (name, links) = resolved.chain()?;
                let operations = operations(name, resolved.span, links);
                match (name, operations.as_slice()) {
                    ("percent" | "onCase", [one]) => Some((one.first().first()?.clone(), one.body(1))),
                    ("Choice", [_, one]) => {
                        let (key, body) = one.first().split_first()?;
                        Some((key.clone(), body.to_vec()))
                    }
                    _ => None,
                }
            }
        }
    }

    /// The choices of a switch, and the steps of none of them.
    fn choices(&mut self, operation: &Operation, from: usize) -> (Vec<Expression>, Vec<Expression>) {
        let choices = match operation.behind(&["on"]) {
            Some(list) => list.to_vec(),
            None => operation.calls.get(from).map(|list| list.to_vec()).unwrap_or_default(),
        };
        // A list of them is as good as themselves.
        let choices = match choices.as_slice() {
            [one] => self.items(one).unwrap_or(choices),
            _ => choices,
        };
        let otherwise = match operation.behind(&["orElse"]) {
            Some(list) => list.to_vec(),
            None => operation.calls.get(from + 1).map(|list| list.to_vec()).unwrap_or_default(),
        };
        (choices, otherwise)
    }

    fn do_switch(&mut self, operation: &Operation, within: &mut In<'_>) -> Vec<StepSpec> {
        let (choices, otherwise) = self.choices(operation, 1);
        let value = operation.first().first().cloned().and_then(|value| self.text_of(&value));
        let mut cases = Vec::new();
        for choice in &choices {
            let found = self.choice(choice);
            let key = found.as_ref().and_then(|(key, _)| self.text_of(key));
            let condition = match (&value, &key) {
                (Some(value), Some(key)) => self.equality(value, key),
                _ => None,
            };
            let Some((condition, (_, body))) = condition.zip(found) else {
                self.note(choice.span, "plans compare a variable with a value: the case is left out");
                continue;
            };
            cases.push((condition, self.all_steps(&body, within)));
        }
        let otherwise = self.all_steps(&otherwise, within);
        cascade(cases, otherwise)
    }

    fn random_switch(&mut self, operation: &Operation, within: &mut In<'_>) -> Vec<StepSpec> {
        let (choices, otherwise) = self.choices(operation, 0);
        let drawn = self.variables.fresh("choice", None);
        let mut sum = Ratio::whole(0);
        let mut cases = Vec::new();
        for choice in &choices {
            let found = self.choice(choice);
            let weight = found.as_ref().and_then(|(weight, _)| self.number(weight));
            let reached = weight.and_then(|weight| sum.plus(weight));
            let part = reached.and_then(|reached| reached.times(Ratio::new(1, 100)?));
            let Some(((reached, part), (_, body))) = reached.zip(part).zip(found) else {
                self.note(choice.span, "its percentage is not known before the run: it is left out");
                continue;
            };
            sum = reached;
            let part = if part.is_whole() { part.ceil().to_string() } else { decimal(&part) };
            cases.push((format!("${{{drawn}}} < {part}"), self.all_steps(&body, within)));
        }
        let otherwise = self.all_steps(&otherwise, within);
        let steps = if sum == Ratio::whole(100) && otherwise.is_empty() {
            // The last one is all that is left.
            let last = cases.pop().map(|(_, steps)| steps).unwrap_or_default();
            cascade(cases, last)
        } else {
            cascade(cases, otherwise)
        };
        drawing(drawn, "${random_float(0, 1, 9)}".to_owned(), steps)
    }

    /// A switch whose choices are equally frequent; `function` has `{}` for the number of the last one, or
    /// for the end of the range.
    fn even_switch(&mut self, operation: &Operation, function: &str, within: &mut In<'_>) -> Vec<StepSpec> {
        let (choices, _) = self.choices(operation, 0);
        if choices.is_empty() {
            return Vec::new();
        }
        let drawn = self.variables.fresh("choice", None);
        let mut cases = Vec::new();
        for (index, choice) in choices.iter().enumerate() {
            cases.push((format!("${{{drawn}}} == {index}"), self.steps(choice, within)));
        }
        let last = cases.pop().map(|(_, steps)| steps).unwrap_or_default();
        let steps = cascade(cases, last);
        let end = if function.starts_with("range") { choices.len() } else { choices.len() - 1 };
        let inside = function.replace("{}", &end.to_string());
        drawing(drawn, format!("${{{inside}}}"), steps)
    }

    /// Requests that are sent at once.
    pub(super) fn at_once(&mut self, mut requests: Vec<StepSpec>) -> Vec<StepSpec> {
        requests.retain(|step| step.request().is_some());
        if requests.len() < 2 { requests } else { vec![ParallelStep::new(requests).into()] }
    }
}

/// Returns `true` for the beginning of a request: `http("name")`.
fn is_request(operation: &Operation) -> bool {
    operation.name == "http" && !operation.calls.is_empty()
}

/// Adds a step; a pause goes to a request in front of it that has none.
fn add(all: &mut Vec<StepSpec>, step: StepSpec) {
    match all.last_mut() {
        Some(last)
            if matches!(step.kind, StepKind::Pause) && last.request().is_some() && last.think.is_absent() =>
        {
            last.think = step.think;
        }
        _ => all.push(step),
    }
}

/// Steps that are carried out again and again, with a pace at their beginning moved to their end: at the
/// beginning Gatling's does not wait the first time, and a plan's would.
pub(super) fn paced_at_end(mut steps: Vec<StepSpec>) -> Vec<StepSpec> {
    let paces = |step: &StepSpec| {
        matches!(step.kind, StepKind::Pause) && step.think.get().is_some_and(|think| !think.pace.is_absent())
    };
    if steps.len() > 1 && paces(&steps[0]) {
        let pace = steps.remove(0);
        add(&mut steps, pace);
    }
    steps
}

fn repeated(times: String, steps: Vec<StepSpec>) -> Vec<StepSpec> {
    if steps.is_empty() { steps } else { vec![flow::repeat(times, steps)] }
}

/// Requests end the iteration if they fail.
fn end_on_failure(steps: &mut [StepSpec]) {
    for step in steps.iter_mut().filter(|step| step.request().is_some()) {
        step.on_failure = plimsoll_document::Field::Absent;
    }
}

/// Returns `true` if a text in the steps has the variable.
fn reads(steps: &[StepSpec], name: &str) -> bool {
    let slot = format!("${{{name}}}");
    steps.iter().any(|step| serde_json::to_string(step).is_ok_and(|written| written.contains(&slot)))
}

/// Steps by a condition; nothing where there are none.
fn branch(condition: String, then: Vec<StepSpec>, otherwise: Vec<StepSpec>) -> Vec<StepSpec> {
    match (then.is_empty(), otherwise.is_empty()) {
        (true, true) => Vec::new(),
        (false, true) => vec![flow::branch(condition, then)],
        (true, false) => vec![flow::branch(format!("not ({condition})"), otherwise)],
        (false, false) => {
            let mut both = BranchStep::default();
            both.condition = text(condition);
            both.then = flow::fields(then);
            both.otherwise = flow::fields(otherwise);
            vec![StepKind::Branch(Box::new(both)).into()]
        }
    }
}

/// The steps of the first case that holds, or those of none.
fn cascade(cases: Vec<(String, Vec<StepSpec>)>, otherwise: Vec<StepSpec>) -> Vec<StepSpec> {
    cases.into_iter().rev().fold(otherwise, |rest, (condition, steps)| branch(condition, steps, rest))
}

/// Steps behind the one that draws the variable that they read.
fn drawing(name: String, template: String, steps: Vec<StepSpec>) -> Vec<StepSpec> {
    if steps.is_empty() {
        return steps;
    }
    std::iter::once(flow::set([(name, template)])).chain(steps).collect()
}

/// A fraction of one as digits.
fn decimal(part: &Ratio) -> String {
    let billionths = part.times_whole(1_000_000_000).map_or(0, |part| part.ceil());
    format!("0.{billionths:09}").trim_end_matches('0').to_owned()
}

/// Nanoseconds of a unit that stands behind a number: `pause(1, 2, TimeUnit.SECONDS)`.
fn unit_behind(written: &str) -> Option<u64> {
    match written.trim().rsplit('.').next().unwrap_or_default() {
        "MILLISECONDS" => Some(1_000_000),
        "SECONDS" => Some(1_000_000_000),
        "MINUTES" => Some(60_000_000_000),
        _ => None,
    }
}

/// A title with the values of counters in it.
pub(super) fn titled(title: &str, counters: &[(String, String)]) -> String {
    counters
        .iter()
        .fold(title.to_owned(), |title, (name, value)| title.replace(&format!("#{{{name}}}"), value))
}

/// The title of a step within groups.
pub(super) fn grouped(groups: &[String], title: &str) -> String {
    if groups.is_empty() {
        return draft::escaped(title);
    }
    draft::escaped(&format!("{}: {title}", groups.join(" / ")))
}
