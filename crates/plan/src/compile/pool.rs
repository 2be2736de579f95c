//! Pools: rows that iterations keep for each other, and their distribution.

use plimsoll_document::{Field, Keyed, Place, Problem, RequestStep, StepKind, StepSpec, Text};
use plimsoll_scenario::{CollectSpec, PoolSpec, ReactionSpec};

use super::Compiler;

/// The part of a `collect` that is not a variable.
const EACH: &str = "each";

/// A pool, while the plan is compiled.
pub(super) struct PoolDraft {
    pub(super) name: String,
    /// The names of its variables.
    pub(super) columns: Vec<String>,
    /// The place at which it is kept first.
    place: Option<Place>,
    /// `true` if a step picks or takes from it.
    pub(super) is_used: bool,
}

impl Compiler<'_, '_> {
    /// Finds the pools by the steps that keep rows. Before that, no step can name one.
    pub(super) fn name_pools(&mut self) {
        let loaded = self.loaded;
        for scenario in loaded.document.scenarios.iter().filter_map(Field::get) {
            self.find_pools(&scenario.steps);
        }
    }

    fn find_pools(&mut self, steps: &[Field<StepSpec>]) {
        for step in steps.iter().filter_map(Field::get) {
            let kept = match &step.kind {
                StepKind::Rows(rows) => &rows.keep.0[..],
                _ => &[],
            };
            for (name, place, row) in kept {
                let columns = row.get().map(|row| row.0.iter().map(|column| column.0.clone()).collect());
                self.find_pool(&name.0, Some(*place), "keep", columns);
            }
            let collected = step.request().map_or(&[][..], |request| &request.collect.0);
            for (name, place, row) in collected {
                let columns =
                    row.get().map(|row| own_columns(row).map(|(name, ..)| name.0.clone()).collect());
                self.find_pool(&name.0, Some(*place), "collect", columns);
            }
            for inner in step.inner() {
                self.find_pools(inner);
            }
        }
    }

    fn find_pool(&mut self, name: &str, place: Option<Place>, verb: &str, columns: Option<Vec<String>>) {
        let Some(columns) = columns else { return };
        let twice = (1..columns.len()).find(|&at| columns[..at].contains(&columns[at]));
        if columns.is_empty() {
            let problem = Problem::new(format!("no variable is kept in `{name}`"));
            let example = if verb == "keep" { "[id]" } else { "{id: /id}" };
            return self.report(
                place,
                problem.with_hint(format!("name variables: `{verb}: {{{name}: {example}}}`")),
            );
        }
        if let Some(at) = twice {
            return self.report(place, Problem::new(format!("`{}` is kept twice in `{name}`", columns[at])));
        }
        match self.pools.iter().find(|pool| pool.name == name) {
            None => self.pools.push(PoolDraft { name: name.to_owned(), columns, place, is_used: false }),
            Some(pool) if has_same(&pool.columns, &columns) => {}
            Some(pool) => {
                let other = pool.columns.join(", ");
                let problem = Problem::new(format!("elsewhere, `{name}` is kept with {other}"));
                self.report(place, problem.with_hint("a pool has the same variables everywhere"));
            }
        }
    }

    /// `collect`: the values of a response for the pools.
    pub(super) fn collections(&mut self, request: &RequestStep) -> Option<Vec<CollectSpec>> {
        let mut all = Vec::new();
        for (name, place, row) in &request.collect.0 {
            all.push(self.collection(&name.0, *place, row));
        }
        all.into_iter().collect()
    }

    fn collection(
        &mut self,
        name: &str,
        place: Place,
        row: &Field<Keyed<Field<Text>>>,
    ) -> Option<CollectSpec> {
        let (row, pool) = (row.get()?, self.pool(name)?);
        let each = match row.0.iter().find(|(name, ..)| name.0 == EACH) {
            Some((_, _, pointer)) => self.plain(pointer)?,
            None => String::new(),
        };
        let mut columns = Vec::new();
        for column in self.pools[usize::from(pool)].columns.clone() {
            let (_, _, pointer) = own_columns(row).find(|(name, ..)| name.0 == column)?;
            columns.push(self.plain(pointer)?);
        }
        let collect = CollectSpec { pool, each, columns };
        let alone = ReactionSpec { collect: vec![collect.clone()], ..ReactionSpec::default() };
        self.try_handler(alone, Some(place))?;
        Some(collect)
    }

    pub(super) fn pool(&self, name: &str) -> Option<u16> {
        let place = self.pools.iter().position(|pool| pool.name == name)?;
        u16::try_from(place).ok()
    }

    /// Returns `true` if a variable belongs to a pool.
    pub(super) fn is_kept(&self, variable: &str) -> bool {
        self.pools.iter().any(|pool| pool.columns.iter().any(|column| column == variable))
    }

    /// The variables that a pool sets.
    pub(super) fn columns_of(&self, name: &str) -> Vec<u16> {
        let pool = self.pools.iter().find(|pool| pool.name == name);
        let columns = pool.map_or(&[][..], |pool| &pool.columns);
        columns.iter().filter_map(|column| self.variable(column)).collect()
    }

    /// The pools of the plan, once all steps are compiled.
    pub(super) fn finish_pools(&mut self) -> Vec<PoolSpec> {
        let drafts = std::mem::take(&mut self.pools);
        for draft in drafts.iter().filter(|draft| !draft.is_used) {
            let problem = Problem::new(format!("the rows kept in `{}` are never used", draft.name));
            let hint = format!("a step reads them by `pick: {name}` or `take: {name}`", name = draft.name);
            self.report(draft.place, problem.with_hint(hint));
        }
        let columns =
            |draft: &PoolDraft| draft.columns.iter().filter_map(|name| self.variable(name)).collect();
        let pool = |draft: &PoolDraft| PoolSpec {
            name: draft.name.clone(),
            columns: columns(draft),
            rows: [].into(),
        };
        drafts.iter().map(pool).collect()
    }
}

/// Returns the entries of a `collect` that set variables: all but `each`.
pub(super) fn own_columns(row: &Keyed<Field<Text>>) -> impl Iterator<Item = &(Text, Place, Field<Text>)> {
    row.0.iter().filter(|(name, ..)| name.0 != EACH)
}

/// Returns `true` if both lists have the same names, in any order.
fn has_same(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().all(|name| other.contains(name))
}
