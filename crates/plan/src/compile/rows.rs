//! Steps that keep rows in pools, and take them out.

use plimsoll_document::{Field, Problem, RowsStep, Text};
use plimsoll_scenario::Op;

use super::known::Known;
use super::scenario::Part;
use super::{Compiler, suggestion};

impl Compiler<'_, '_> {
    /// Compiles `keep`, `pick` or `take`.
    pub(super) fn rows_step(
        &mut self,
        rows: &RowsStep,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        if !rows.keep.is_empty() {
            return self.keep_step(rows, part, known);
        }
        match rows.pick.is_absent() {
            false => self.pick_step(&rows.pick, false, part, known),
            true => self.pick_step(&rows.take, true, part, known),
        }
    }

    /// `keep`: the values have to be there.
    fn keep_step(&mut self, rows: &RowsStep, part: &mut Part<'_>, known: &mut Known) -> Option<()> {
        let mut complete = Some(());
        for (name, place, row) in &rows.keep.0 {
            let (Some(row), Some(pool)) = (row.get(), self.pool(&name.0)) else {
                complete = None;
                continue;
            };
            for column in &row.0 {
                let read = match self.variable(&column.0) {
                    Some(variable) => self.check_read(variable, Some(*place), part, known),
                    None => {
                        let problem = Problem::new(format!("`{}` is never set", column.0));
                        self.fail(Some(*place), problem.with_hint("set or extract it in a step before"))
                    }
                };
                complete = complete.and(read);
            }
            part.ops.push(Op::Keep(pool));
        }
        complete
    }

    /// `pick` and `take`. Their variables may stay unset: the pool may be empty.
    fn pick_step(
        &mut self,
        name: &Field<Text>,
        leaves: bool,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let (text, place) = (self.plain(name)?, name.place());
        let Some(pool) = self.pool(&text) else {
            let problem = Problem::new(format!("no step keeps rows in a pool `{text}`"));
            let names: Vec<String> = self.pools.iter().map(|pool| pool.name.clone()).collect();
            return self.fail(
                place,
                problem.with_hint(match names.is_empty() {
                    true => format!("a step fills it: `keep: {{{text}: [id]}}`"),
                    false => suggestion(&text, names.iter().map(String::as_str)),
                }),
            );
        };
        let draft = &mut self.pools[usize::from(pool)];
        draft.is_used = true;
        let mut complete = Some(());
        for column in draft.columns.clone() {
            let Some(variable) = self.variable(&column) else { continue };
            if part.has_first(variable) {
                let problem =
                    Problem::new(format!("`{column}` has a first value, and one of the pool `{text}`"));
                complete = self.fail(place, problem.with_hint("rename one of them"));
            }
            known.forgets(variable);
        }
        part.ops.push(Op::Pick { pool, leaves });
        complete
    }
}
