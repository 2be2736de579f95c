//! Steps: each by what it does.

use plimsoll_scenario::Op;

use super::known::{Known, Last};
use super::scenario::Part;
use super::{Compiler, is_on};
use crate::document::{Field, StepKind, StepSpec};
use crate::{Place, Problem};

impl Compiler<'_, '_> {
    /// Compiles steps, one after the other.
    pub(super) fn steps(
        &mut self,
        steps: &[Field<StepSpec>],
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let mut complete = Some(());
        for step in steps {
            let compiled = match step.get() {
                Some(spec) => self.step(spec, step.place(), part, known),
                None => None,
            };
            complete = complete.and(compiled);
        }
        complete
    }

    fn step(
        &mut self,
        spec: &StepSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        if *spec == StepSpec::default() {
            // What is in it is not known, or nothing is: the reader has reported that.
            return None;
        }
        // A step that does no one thing, and what does not go with that, was reported.
        match spec.step_kind()? {
            StepKind::Request | StepKind::Cache => self.request_step(spec, place, part, known),
            StepKind::Set => self.set_step(spec, part, known),
            StepKind::Keep => self.keep_step(spec, part, known),
            StepKind::Pick => self.pick_step(&spec.pick, false, part, known),
            StepKind::Take => self.pick_step(&spec.take, true, part, known),
            StepKind::If => self.if_step(spec, place, part, known),
            StepKind::Repeat => self.repeat_step(spec, place, part, known),
            StepKind::While => self.while_step(spec, place, part, known),
            StepKind::Parallel => self.parallel_step(spec, part, known),
            StepKind::Think => self.pause(&spec.think).map(|pause| part.ops.push(Op::Pause(pause))),
        }
    }

    /// A request, and what belongs to it.
    fn request_step(
        &mut self,
        spec: &StepSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let cleared = match spec.clear_cookies.is_absent() {
            true => Some(()),
            false => self.clear_cookies(spec, part),
        };
        let draft = match spec.cache.is_absent() {
            true => self.request(spec, place, part, known),
            false => self.cache_request(spec, place, part, known),
        };
        let pause = match spec.think.is_absent() {
            true => Some(None),
            false => self.pause(&spec.think).map(Some),
        };
        // What a request takes is set behind it, even if the rest of it is wrong.
        self.extracted(spec, known);
        let Some(draft) = draft else {
            // There is a request, of which nothing is known.
            known.last = Last::Several;
            return None;
        };
        let index = part.add_draft(draft, known);
        part.ops.push(Op::Send(index));
        part.ops.extend(pause?.map(Op::Pause));
        cleared
    }

    /// Variables that a request sets.
    pub(super) fn extracted(&self, spec: &StepSpec, known: &mut Known) {
        for (name, ..) in &spec.extract.0 {
            self.variable(&name.0).into_iter().for_each(|variable| known.sets(variable));
        }
    }

    fn clear_cookies(&mut self, spec: &StepSpec, part: &mut Part<'_>) -> Option<()> {
        if !part.cookies {
            let problem = Problem::new("`clear_cookies` has no effect: the scenario keeps no cookies");
            return self.fail(
                spec.clear_cookies.place(),
                problem.with_hint("write `cookies: true` in the scenario"),
            );
        }
        if is_on(&spec.clear_cookies) {
            part.ops.push(Op::ClearCookies);
        }
        Some(())
    }
}

/// The words that make a step a request, with their methods as names.
pub(super) fn requests(spec: &StepSpec) -> [(&'static str, &Field<crate::document::Text>); 7] {
    [
        ("get", &spec.get),
        ("post", &spec.post),
        ("put", &spec.put),
        ("patch", &spec.patch),
        ("delete", &spec.delete),
        ("head", &spec.head),
        ("request", &spec.request),
    ]
}
