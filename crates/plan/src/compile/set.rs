//! Assignments to variables.

use plimsoll_document::SetStep;
use plimsoll_scenario::Op;

use super::Compiler;
use super::known::Known;
use super::scenario::Part;

impl Compiler<'_, '_> {
    /// `set`: all values are made in order, so that a later one may read an earlier one.
    pub(super) fn set_step(&mut self, step: &SetStep, part: &mut Part<'_>, known: &mut Known) -> Option<()> {
        let mut complete = Some(());
        for (name, _, field) in &step.set.0 {
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
}
