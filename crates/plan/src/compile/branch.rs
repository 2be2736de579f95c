//! Steps that depend on a condition.

use plimsoll_document::{BranchStep, Place, Problem};
use plimsoll_scenario::Op;

use super::Compiler;
use super::condition::existence;
use super::known::Known;
use super::scenario::Part;

impl Compiler<'_, '_> {
    /// `if`, with `then` and perhaps `else`.
    pub(super) fn branch_step(
        &mut self,
        branch: &BranchStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let condition = self.condition(&branch.condition, part, known);
        if branch.then.is_empty() && branch.otherwise.is_empty() {
            let problem = Problem::new("the condition has no `then`");
            return self.form(place, problem.with_hint("add `then`, a list of steps"));
        }
        let (mut then_known, mut else_known) = (known.clone(), known.clone());
        let said = branch.condition.get().and_then(|text| existence(text.as_str()));
        for (name, exists) in said.unwrap_or_default() {
            let Some(variable) = self.variable(name) else { continue };
            if exists { then_known.sets(variable) } else { else_known.sets(variable) }
        }
        let unless = part.here();
        part.ops.extend(condition.clone().map(|condition| Op::Unless(condition, 0)));
        let before = std::mem::take(&mut part.requests);
        let then = self.steps(&branch.then, part, &mut then_known);
        let of_then = std::mem::take(&mut part.requests);
        let jump = part.here();
        if !branch.otherwise.is_empty() {
            part.ops.push(Op::Jump(0));
        }
        let otherwise_start = part.here();
        let otherwise = self.steps(&branch.otherwise, part, &mut else_known);
        part.requests = before.then(of_then.or(part.requests));
        *known = then_known.either(&else_known);
        (then.and(otherwise)).and(condition)?;
        part.aim(unless, otherwise_start);
        if !branch.otherwise.is_empty() {
            let end = part.here();
            part.aim(jump, end);
        }
        Some(())
    }
}
