//! Loops.

use plimsoll_document::{Field, Place, Problem, RepetitionStep, StepSpec, Text};
use plimsoll_scenario::{Op, Template};
use plimsoll_schedule::parse_count;

use super::Compiler;
use super::known::{Known, Last};
use super::scenario::Part;

impl Compiler<'_, '_> {
    /// Compiles a loop, which has a number of turns or a condition.
    pub(super) fn repetition_step(
        &mut self,
        repetition: &RepetitionStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        match repetition.repeat.is_absent() {
            false => self.repeat_step(repetition, place, part, known),
            true => self.while_step(repetition, place, part, known),
        }
    }

    /// `repeat`: a number of times, or a template of one.
    fn repeat_step(
        &mut self,
        repetition: &RepetitionStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let times = self.times(&repetition.repeat, part, known);
        let fits = self.check_loop(repetition, place);
        let counter = part.counters;
        part.counters += 1;
        let start = part.here();
        if let Some((template, _)) = &times {
            part.ops.push(Op::Repeat { counter, times: template.clone() });
        }
        let before = known.clone();
        let literal = times.as_ref().and_then(|(_, literal)| *literal);
        if literal != Some(1) && has_request(&repetition.steps) && before.last != Last::Nothing {
            known.last = Last::Several;
        }
        part.ops.push(Op::CountDown { counter, end: 0 });
        let outside = std::mem::take(&mut part.requests);
        let steps = self.steps(&repetition.steps, part, known);
        part.requests = outside.then(part.requests.repeated(literal));
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
    fn while_step(
        &mut self,
        repetition: &RepetitionStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let condition = self.condition(&repetition.while_condition, part, known);
        let fits = self.check_loop(repetition, place);
        let before = known.clone();
        if has_request(&repetition.steps) && before.last != Last::Nothing {
            known.last = Last::Several;
        }
        let start = part.here();
        part.ops.extend(condition.clone().map(|condition| Op::Unless(condition, 0)));
        let outside = std::mem::take(&mut part.requests);
        let steps = self.steps(&repetition.steps, part, known);
        part.requests = outside.then(part.requests.repeated(None));
        part.ops.push(Op::Jump(start));
        let end = part.here();
        *known = before.either(known);
        steps.and(condition)?;
        part.aim(start, end);
        fits
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
                let problem = Problem::new("the loop never runs");
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
    fn check_loop(&mut self, repetition: &RepetitionStep, place: Option<Place>) -> Option<()> {
        if repetition.steps.is_empty() {
            let problem = Problem::new("the loop has no steps");
            return self.form(place, problem.with_hint("add `steps`, the list of steps to repeat"));
        }
        if !has_request(&repetition.steps) && !has_pause(&repetition.steps) {
            let problem = Problem::new("a loop without a request");
            let hint = "it would keep its worker busy and measure nothing: add a request or a think time";
            return self.fail(place, problem.with_hint(hint));
        }
        Some(())
    }
}

fn has_request(steps: &[Field<StepSpec>]) -> bool {
    any(steps, &|step| {
        let address = step.request().map(|request| &request.address);
        // A request of another protocol has a title of its own.
        step.kind.request_title().is_some()
            || address.is_some_and(|address| !address.same_url.is_absent() || address.given_url().is_some())
    })
}

fn has_pause(steps: &[Field<StepSpec>]) -> bool {
    any(steps, &|step| !step.think.is_absent())
}

fn any(steps: &[Field<StepSpec>], holds: &dyn Fn(&StepSpec) -> bool) -> bool {
    steps.iter().any(|step| match step.get() {
        Some(step) => holds(step) || step.inner().any(|steps| any(steps, holds)),
        // A step that could not be read was reported; it may have been one of these.
        None => true,
    })
}
