//! Steps: compiled by kind.

use plimsoll_document::{Field, MOST_STEPS, Place, Problem, StepKind, StepSpec};
use plimsoll_scenario::Op;

use super::Compiler;
use super::known::{Known, Last};
use super::scenario::Part;
use crate::draft::Draft;

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
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return self.too_many_steps(step.place());
            }
            let compiled = match step.get() {
                Some(spec) => self.step(spec, step.place(), part, known),
                None => None,
            };
            complete = complete.and(compiled);
        }
        complete
    }

    /// Reports once that there are more steps than [`MOST_STEPS`].
    fn too_many_steps(&mut self, place: Option<Place>) -> Option<()> {
        if self.steps > MOST_STEPS + 1 {
            return None;
        }
        let problem = Problem::new(format!("there are more than {MOST_STEPS} steps"));
        self.fail(place, problem.with_hint("take what differs from a data file: `data: {d: {csv: FILE}}`"))
    }

    fn step(
        &mut self,
        spec: &StepSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        if *spec == StepSpec::default() {
            // The step is empty, or has only unknown keys, which the reader has reported.
            return None;
        }
        // A step that does no one thing, and what cannot be combined with that, was reported.
        match spec.only_kind()? {
            StepKind::Nothing => None,
            StepKind::Request(request) => self.request_step(spec, request, place, part, known),
            StepKind::Added(step) => self.added_step(spec, step, place, part, known),
            StepKind::WebSocket(step) => self.websocket_step(spec, step, place, part, known),
            StepKind::Pause => self.pause(&spec.think).map(|pause| part.ops.push(pause)),
            StepKind::Record => self.record_step(spec, part, known),
            StepKind::Set(step) => self.set_step(step, part, known),
            StepKind::Rows(rows) => self.rows_step(rows, part, known),
            StepKind::Branch(branch) => self.branch_step(branch, place, part, known),
            StepKind::Repetition(repetition) => self.repetition_step(repetition, place, part, known),
            StepKind::Parallel(step) => self.parallel_step(step, part, known),
        }
    }

    /// Adds the instructions of a step with one request: its compiled request, and its think time.
    pub(super) fn send(
        &mut self,
        spec: &StepSpec,
        draft: Option<Draft>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let pause = match spec.think.is_absent() {
            true => Some(None),
            false => self.pause(&spec.think).map(Some),
        };
        // The variables of a request are set after it, even if the rest of it is wrong.
        self.extracted(spec, known);
        let recordings = self.recordings(spec, part, known);
        let Some(draft) = draft else {
            // There is a request, but its content is unknown.
            known.last = Last::Several;
            return None;
        };
        let index = part.add_draft(draft, known);
        part.send(Op::Send(index));
        part.ops.extend(recordings?);
        part.ops.extend(pause?);
        Some(())
    }

    /// Variables that a request sets.
    pub(super) fn extracted(&self, spec: &StepSpec, known: &mut Known) {
        for (name, ..) in &spec.extract.0 {
            self.variable(&name.0).into_iter().for_each(|variable| known.sets(variable));
        }
    }
}

impl Part<'_> {
    /// Lets the instruction at `position` lead to `to`.
    pub(super) fn aim(&mut self, position: u32, to: u32) {
        match self.ops.get_mut(position as usize).and_then(Op::leads_to_mut) {
            Some(place) => *place = to,
            None => debug_assert!(false, "the instruction leads nowhere else"),
        }
    }
}
