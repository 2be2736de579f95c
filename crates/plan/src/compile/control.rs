//! Steps that are no requests: assignments, pauses, conditions, loops, and requests at once.

use plimsoll_core::Nanos;
use plimsoll_scenario::{Condition, Op, Pause, Template};
use plimsoll_schedule::{parse_count, parse_duration};

use super::Compiler;
use super::known::{Known, Last};
use super::scenario::Part;
use super::step::requests;
use crate::document::{Field, PauseSpec, StepSpec, Text};
use crate::{Place, Problem};

impl Compiler<'_, '_> {
    /// `set`: all values are made in order, so that a later one may read an earlier one.
    pub(super) fn set_step(&mut self, spec: &StepSpec, part: &mut Part<'_>, known: &mut Known) -> Option<()> {
        let mut complete = Some(());
        for (name, _, field) in &spec.set.0 {
            let value = self.text(field).and_then(|text| self.template(&text, field.place(), part, known));
            let Some(variable) = self.variable(&name.0) else { continue };
            known.sets(variable);
            match value {
                Some(value) => part.ops.push(Op::Set { variable, value }),
                None => complete = None,
            }
        }
        complete
    }

    /// `if`, with `then` and perhaps `else`.
    pub(super) fn if_step(
        &mut self,
        spec: &StepSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let condition = self.condition(&spec.condition, part, known);
        if spec.then.is_empty() && spec.otherwise.is_empty() {
            let problem = Problem::new("the condition decides about nothing");
            return self.form(place, problem.with_hint("add `then`, a list of steps"));
        }
        let (mut then_known, mut else_known) = (known.clone(), known.clone());
        let said = spec.condition.get().and_then(|text| existence(text.as_str()));
        for (name, exists) in said.unwrap_or_default() {
            let Some(variable) = self.variable(name) else { continue };
            if exists { then_known.sets(variable) } else { else_known.sets(variable) }
        }
        let unless = part.here();
        part.ops.extend(condition.clone().map(|condition| Op::Unless(condition, 0)));
        let then = self.steps(&spec.then, part, &mut then_known);
        let jump = part.here();
        if !spec.otherwise.is_empty() {
            part.ops.push(Op::Jump(0));
        }
        let otherwise_start = part.here();
        let otherwise = self.steps(&spec.otherwise, part, &mut else_known);
        *known = then_known.either(&else_known);
        (then.and(otherwise)).and(condition)?;
        part.aim(unless, otherwise_start);
        if !spec.otherwise.is_empty() {
            let end = part.here();
            part.aim(jump, end);
        }
        Some(())
    }

    /// `repeat`: a number of times, or a template of one.
    pub(super) fn repeat_step(
        &mut self,
        spec: &StepSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let times = self.times(&spec.repeat, part, known);
        let fits = self.check_loop(spec, place);
        let counter = part.counters;
        part.counters += 1;
        let start = part.here();
        if let Some((template, _)) = &times {
            part.ops.push(Op::Repeat { counter, times: template.clone() });
        }
        let before = known.clone();
        let literal = times.as_ref().and_then(|(_, literal)| *literal);
        if literal != Some(1) && has_request(&spec.steps) && before.last != Last::Nothing {
            known.last = Last::Several;
        }
        part.ops.push(Op::CountDown { counter, end: 0 });
        let steps = self.steps(&spec.steps, part, known);
        part.ops.push(Op::Jump(start + 1));
        let end = part.here();
        if literal.is_none() {
            *known = before.either(known);
        }
        steps.and(times)?;
        part.aim(start + 1, end);
        fits
    }

    /// `while`.
    pub(super) fn while_step(
        &mut self,
        spec: &StepSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let condition = self.condition(&spec.while_condition, part, known);
        let fits = self.check_loop(spec, place);
        let before = known.clone();
        if has_request(&spec.steps) && before.last != Last::Nothing {
            known.last = Last::Several;
        }
        let start = part.here();
        part.ops.extend(condition.clone().map(|condition| Op::Unless(condition, 0)));
        let steps = self.steps(&spec.steps, part, known);
        part.ops.push(Op::Jump(start));
        let end = part.here();
        *known = before.either(known);
        steps.and(condition)?;
        part.aim(start, end);
        fits
    }

    /// `parallel`: requests that are sent at once.
    pub(super) fn parallel_step(
        &mut self,
        spec: &StepSpec,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let before = known.clone();
        let start = part.drafts.len() as u32;
        let mut complete = Some(());
        for step in &spec.parallel {
            let Some(spec) = step.get() else {
                complete = None;
                continue;
            };
            let request = requests(spec).iter().any(|(_, field)| !field.is_absent());
            let company = [
                ("think", spec.think.place()),
                ("clear_cookies", spec.clear_cookies.place()),
                ("same_url", spec.same_url.place()),
            ];
            let alien = company.into_iter().find(|(_, place)| place.is_some());
            if let (true, Some((name, place))) = (request, alien) {
                let problem =
                    Problem::new(format!("`{name}` has no place in requests that are sent at once"));
                complete = self.form(place, problem.with_hint("put it before or behind `parallel`"));
                continue;
            }
            if !request {
                let problem = Problem::new("only requests can be sent at once");
                complete =
                    self.form(step.place(), problem.with_hint("put other steps before or behind `parallel`"));
                continue;
            }
            // None of them knows what another takes from its response.
            let mut own = before.clone();
            let draft = self.request(spec, step.place(), part, &own);
            self.extracted(spec, &mut own);
            known.both(&own);
            match draft {
                Some(draft) => {
                    part.add_draft(draft, known);
                }
                None => complete = None,
            }
        }
        let end = part.drafts.len() as u32;
        complete?;
        if end - start > 1 {
            known.last = Last::Several;
            part.ops.push(Op::Fork(start..end));
        } else {
            part.ops.push(Op::Send(start));
        }
        Some(())
    }

    /// Think time.
    pub(super) fn pause(&mut self, field: &Field<PauseSpec>) -> Option<Pause> {
        let spec = field.get()?;
        let given = [!spec.fixed.is_absent(), !spec.uniform.is_empty(), !spec.exponential.is_absent()];
        if given.into_iter().filter(|&given| given).count() != 1 {
            let problem = Problem::new("a think time is exactly one of `fixed`, `uniform`, `exponential`");
            return self.form(
                field.place(),
                problem.with_hint("write `think: 100ms` or `think: {uniform: [1s, 3s]}`"),
            );
        }
        if let [low, high] = spec.uniform.as_slice() {
            let (low, high) = (self.duration(low), self.duration(high));
            let (low, high) = (low?, high?);
            if low > high {
                let problem = Problem::new("the shortest think time is longer than the longest");
                return self.fail(field.place(), problem.with_hint("write the shorter one first"));
            }
            return Some(Pause::Uniform(low, high));
        }
        if let Some(first) = spec.uniform.first() {
            let problem = Problem::new("`uniform` needs two durations");
            return self.form(first.place(), problem.with_hint("write `uniform: [1s, 3s]`"));
        }
        match spec.fixed.is_absent() {
            false => self.duration(&spec.fixed).map(Pause::Fixed),
            true => self.duration(&spec.exponential).map(Pause::Exponential),
        }
    }

    fn duration(&mut self, field: &Field<Text>) -> Option<Nanos> {
        self.read(field, parse_duration)?
    }

    fn condition(&mut self, field: &Field<Text>, part: &mut Part<'_>, known: &Known) -> Option<Condition> {
        let text = self.text(field)?;
        self.without_secrets(&text, field.place(), "a condition")?;
        let condition = match Condition::parse(&text, &self.scope(&self.variables, &self.constants)) {
            Ok(condition) => condition,
            Err(error) => return self.fail_template(field.place(), &error),
        };
        // Whether a variable exists can be asked of any; its first value makes it exist.
        for name in asked_for(&text) {
            if let Some(variable) = self.variable(name)
                && part.has_first(variable)
                && !known.has(variable)
            {
                self.check_read(variable, field.place(), part, known)?;
            }
        }
        let mut complete = Some(());
        for slot in super::text::slots(&text) {
            // What the condition could parse can be parsed alone.
            if let Some(template) = self.parsed(slot.as_bytes(), field.place()) {
                for variable in template.variables() {
                    complete = complete.and(self.check_read(variable, field.place(), part, known));
                }
            }
        }
        complete.map(|()| condition)
    }

    /// The number of turns as a template, and as a number if it is one.
    fn times(
        &mut self,
        field: &Field<Text>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<(Template, Option<u64>)> {
        let text = self.text(field)?;
        self.without_secrets(&text, field.place(), "a number of turns")?;
        if text.contains("${") {
            return self.template(&text, field.place(), part, known).map(|template| (template, None));
        }
        match parse_count(text.trim()) {
            Ok(0) => {
                let problem = Problem::new("the loop is never carried out");
                self.fail(field.place(), problem.with_hint("write a number above 0, or leave the step out"))
            }
            Ok(times) => Some((Template::literal(times.to_string().as_bytes()), Some(times))),
            Err(_) => {
                let problem = Problem::new(format!("`{}` is not a number of turns", text.escape_debug()));
                self.fail(
                    field.place(),
                    problem.with_hint("write a whole number, or a template such as `${n}`"),
                )
            }
        }
    }

    /// A loop has to take time: without a request or a pause it would keep the worker from everything else.
    fn check_loop(&mut self, spec: &StepSpec, place: Option<Place>) -> Option<()> {
        if spec.steps.is_empty() {
            let problem = Problem::new("the loop has no steps");
            return self.form(place, problem.with_hint("add `steps`, a list of what is repeated"));
        }
        if !has_request(&spec.steps) && !has_pause(&spec.steps) {
            let problem = Problem::new("a loop without a request");
            let hint = "it would keep its worker busy and measure nothing: add a request or a think time";
            return self.fail(place, problem.with_hint(hint));
        }
        Some(())
    }
}

impl Part<'_> {
    /// Lets the instruction at `position` lead to `to`.
    fn aim(&mut self, position: u32, to: u32) {
        match self.ops.get_mut(position as usize) {
            Some(Op::Jump(end) | Op::Unless(_, end) | Op::CountDown { end, .. }) => *end = to,
            _ => debug_assert!(false, "the instruction leads nowhere else"),
        }
    }

    /// Returns `true` if the variable has a first value, or would have one if the scenario used its source.
    pub(super) fn has_first(&self, variable: u16) -> bool {
        let first = self.first.get(usize::from(variable));
        first.is_some_and(|first| *first != super::scenario::First::Nothing)
    }
}

fn has_request(steps: &[Field<StepSpec>]) -> bool {
    any(steps, &|step| {
        !step.same_url.is_absent() || requests(step).iter().any(|(_, field)| !field.is_absent())
    })
}

fn has_pause(steps: &[Field<StepSpec>]) -> bool {
    any(steps, &|step| !step.think.is_absent())
}

fn any(steps: &[Field<StepSpec>], holds: &dyn Fn(&StepSpec) -> bool) -> bool {
    steps.iter().any(|step| match step.get() {
        Some(step) => {
            let inner = [&step.then, &step.otherwise, &step.steps, &step.parallel];
            holds(step) || inner.into_iter().any(|steps| any(steps, holds))
        }
        // What could not be understood was reported; it may have been one.
        None => true,
    })
}

/// The names behind the word `exists`.
fn asked_for(text: &str) -> impl Iterator<Item = &str> {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || "()".contains(c)).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let pairs: Vec<&str> = words.windows(2).filter(|pair| pair[0] == "exists").map(|pair| pair[1]).collect();
    pairs.into_iter()
}

/// Of a condition that is nothing but `exists name`, once or several joined with `and`, or `not exists name`:
/// the names, and which.
fn existence(text: &str) -> Option<Vec<(&str, bool)>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let ["not", "exists", name] = words.as_slice() {
        return Some(vec![(name, false)]);
    }
    let of_part = |part: &[&'_ str]| matches!(part, ["exists", _] | ["exists", _, "and"]);
    let parts: Vec<&[&str]> = words.chunks(3).collect();
    let (last, first) = parts.split_last()?;
    let complete = first.iter().all(|part| of_part(part)) && last.len() == 2 && of_part(last);
    complete.then(|| parts.iter().map(|part| (part[1], true)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_behind_exists() {
        let asked = |text| asked_for(text).collect::<Vec<_>>();
        assert_eq!(asked("exists a and (not exists b or ${exists} == c)"), ["a", "b"]);
        assert_eq!(asked("${a} == exists"), Vec::<&str>::new());
        assert_eq!(existence(" exists  a "), Some(vec![("a", true)]));
        assert_eq!(existence("exists a and exists b"), Some(vec![("a", true), ("b", true)]));
        assert_eq!(existence("not exists a"), Some(vec![("a", false)]));
        for other in ["exists a or exists b", "exists a and", "exists", "", "exists a and ${b} == 1"] {
            assert_eq!(existence(other), None, "{other}");
        }
    }
}
