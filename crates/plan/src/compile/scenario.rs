//! Scenarios: first values, steps, and the program that they become.

use std::collections::{BTreeSet, HashSet};

use plimsoll_core::Nanos;
use plimsoll_document::{Field, Place, Problem, ScenarioSpec, StepKind, StepNames, StepSpec};
use plimsoll_scenario::{Op, RequestBounds, Template};
use plimsoll_schedule::{parse_count, parse_duration};

use super::around::Role;
use super::known::{Known, Last};
use super::server::Origin;
use super::variables::LAST_PATH;
use super::{Compiler, is_on, suggestion};
use crate::draft::{Draft, ScenarioDraft};

/// A scenario while it is compiled.
pub(super) struct Part<'d> {
    pub(super) spec: &'d ScenarioSpec,
    pub(super) cookies: bool,
    /// The target of its steps unless they name another; `None` if that is unknown.
    pub(super) origin: Option<Origin>,
    /// Source of the first value of each variable, by its number.
    pub(super) first: Vec<First>,
    /// The variables whose first value is read.
    pub(super) used: Vec<bool>,
    /// The variables that some step sets.
    pub(super) sets: BTreeSet<u16>,
    pub(super) drafts: Vec<Draft>,
    pub(super) names: StepNames,
    pub(super) ops: Vec<Op>,
    /// Number of the requests that these make.
    pub(super) requests: RequestBounds,
    /// Counters of loops.
    pub(super) counters: u16,
    /// The place at which a step asks for the URL of one of several requests.
    pub(super) asks_again: Option<Option<Place>>,
}

/// Source of a variable's first value in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Nothing but steps.
    Nothing,
    /// A template, by its position among those of the plan and, behind them, of the scenario.
    Text(usize),
    /// A column of this data source.
    Column(usize),
    /// Columns of both data sources.
    Ambiguous(usize, usize),
    /// A column of this data source, which the scenario does not use.
    Elsewhere(usize),
    /// The setup of the run.
    Setup,
}

impl Compiler<'_, '_> {
    /// The name of a scenario; each is named once.
    pub(super) fn scenario_name(
        &mut self,
        index: usize,
        scenario: &Field<ScenarioSpec>,
        names: &mut HashSet<String>,
    ) -> String {
        let field = scenario.get().map(|spec| &spec.name);
        let given = field.and_then(|field| self.plain(field));
        if let (Some(name), Some(field)) = (&given, field)
            && names.contains(name)
        {
            self.form::<()>(field.place(), Problem::new(format!("two scenarios are called `{name}`")));
        }
        let name = given.unwrap_or_else(|| self.loaded.document.scenario_name(index));
        self.check_name(&name, field.and_then(Field::place).or(self.loaded.document.name.place()));
        names.insert(name.clone());
        name
    }

    /// Compiles a scenario.
    pub(super) fn scenario(
        &mut self,
        name: String,
        spec: &ScenarioSpec,
        place: Option<Place>,
    ) -> Option<ScenarioDraft> {
        let weight = self.read(&spec.weight, parse_weight);
        let start_after = self.read(&spec.start_after, parse_duration);
        let origin = match spec.target.is_absent() {
            true => Some(self.only_target().and_then(|only| only.origin.clone())),
            false => self.named_target(&spec.target).map(Some),
        };
        let listed = self.listed_sources(spec);
        let mut part = Part {
            spec,
            cookies: is_on(&spec.cookies),
            origin: origin.clone().flatten(),
            first: self.first_values(spec, listed.as_deref()),
            used: vec![false; self.variables.len()],
            sets: BTreeSet::new(),
            drafts: Vec::new(),
            names: StepNames::default(),
            ops: Vec::new(),
            requests: RequestBounds::NONE,
            counters: 0,
            asks_again: None,
        };
        self.collect_sets(&spec.steps, &mut part.sets);
        let mut known = Known::nothing(self.variables.len());
        let steps = self.steps(&spec.steps, &mut part, &mut known);
        let asks_again = self.ask_again(&mut part);
        let set = match self.around.role {
            Role::Load => Vec::new(),
            Role::Setup | Role::Refresh | Role::Teardown => part.set_for_certain(&known),
        };
        set.iter().for_each(|&variable| part.used[usize::from(variable)] = true);
        let name_of = |variable: &u16| self.variables[usize::from(*variable)].clone();
        if self.around.role == Role::Setup {
            self.around.given = set.iter().map(name_of).collect();
            self.around.named = part.sets.iter().map(name_of).collect();
        }
        if self.around.role == Role::Refresh {
            let set: Vec<String> = set.iter().map(name_of).collect();
            self.note_refresh(&set);
        }
        let initial = self.initial(spec, listed.as_deref(), &mut part);
        if steps.is_some() && part.drafts.is_empty() {
            let problem = Problem::new(format!("the scenario `{name}` has no request"));
            return self.form(place, problem.with_hint("write `steps: [{get: /}]`"));
        }
        steps.and(asks_again)?;
        let (mut ops, given) = initial?;
        let shift = ops.len() as u32;
        part.ops.iter_mut().filter_map(Op::leads_to_mut).for_each(|to| *to += shift);
        ops.append(&mut part.ops);
        origin?;
        Some(ScenarioDraft {
            name,
            drafts: part.drafts,
            ops,
            requests: part.requests,
            given,
            set,
            weight: weight?.unwrap_or(1),
            start_after: start_after?.unwrap_or(Nanos::ZERO),
        })
    }

    /// The data sources that the scenario lists, if it does.
    fn listed_sources(&mut self, spec: &ScenarioSpec) -> Option<Vec<usize>> {
        if spec.data.is_empty() {
            return None;
        }
        let mut listed = Vec::new();
        for field in &spec.data {
            let Some(name) = self.plain(field) else { continue };
            match self.sources.iter().position(|source| source.name == name) {
                Some(index) if listed.contains(&index) => {
                    self.form::<()>(field.place(), Problem::new(format!("`{name}` is listed twice")));
                }
                Some(index) => listed.push(index),
                None => {
                    let names = self.sources.iter().map(|source| source.name.as_str());
                    let hint = suggestion(&name, names);
                    let problem = Problem::new(format!("no data source is called `{name}`"));
                    self.form::<()>(field.place(), problem.with_hint(hint));
                }
            }
        }
        Some(listed)
    }

    /// Determines the source of each variable's first value.
    fn first_values(&mut self, spec: &ScenarioSpec, listed: Option<&[usize]>) -> Vec<First> {
        let mut first = vec![First::Nothing; self.variables.len()];
        for index in 0..self.sources.len() {
            let here = listed.is_none_or(|listed| listed.contains(&index));
            for column in self.sources[index].columns.clone().into_iter().flatten() {
                let Some(variable) = self.variable(&column) else { continue };
                let first = &mut first[usize::from(variable)];
                *first = match *first {
                    First::Column(other) if here && other != index => First::Ambiguous(other, index),
                    known @ (First::Column(_) | First::Ambiguous(..)) => known,
                    _ if here => First::Column(index),
                    _ => First::Elsewhere(index),
                };
            }
        }
        let plan = &self.loaded.document.variables;
        let of_plan = plan.0.len();
        for (position, (name, place, _)) in plan.0.iter().chain(&spec.variables.0).enumerate() {
            // The value of the setup takes the place of the plan's, and the scenario's that of both.
            if position == of_plan {
                self.set_by_setup(&mut first);
            }
            let Some(variable) = self.variable(&name.0) else { continue };
            let first = &mut first[usize::from(variable)];
            if let First::Column(source) | First::Ambiguous(source, _) = *first {
                let source = &self.sources[source].name;
                let problem = Problem::new(format!("`{}` is a column of `{source}`, too", name.0));
                self.report(
                    Some(*place),
                    problem.with_hint("rename the variable, or the column with `columns`"),
                );
            }
            *first = First::Text(position);
        }
        if spec.variables.is_empty() {
            self.set_by_setup(&mut first);
        }
        first
    }

    /// The values of the setup are first values.
    fn set_by_setup(&mut self, first: &mut [First]) {
        for name in self.around.given.clone() {
            let Some(variable) = self.variable(&name) else { continue };
            let first = &mut first[usize::from(variable)];
            if let First::Column(source) | First::Ambiguous(source, _) = *first {
                let source = &self.sources[source].name;
                let message = format!("`{name}` is set by the setup, and is a column of `{source}`, too");
                let place = self.loaded.document.setup.first().and_then(Field::place);
                let hint = "rename the variable, or the column with `columns`";
                self.report(place, Problem::new(message).with_hint(hint));
            }
            *first = First::Setup;
        }
    }

    /// The instructions before the first step: values of the setup, rows of data, and first values, as far as
    /// they are read; and the number of the first ones, whose values are still to come.
    fn initial(
        &mut self,
        spec: &ScenarioSpec,
        listed: Option<&[usize]>,
        part: &mut Part<'_>,
    ) -> Option<(Vec<Op>, usize)> {
        let loaded = self.loaded;
        let plan = &loaded.document.variables.0;
        let texts: Vec<_> = plan.iter().chain(&spec.variables.0).collect();
        let mut sets = Vec::new();
        let mut complete = Some(());
        // From the last to the first: a variable that a needed one reads is needed, too.
        for (position, (name, _, field)) in texts.into_iter().enumerate().rev() {
            let value = self.initial_value(position, field, part);
            complete = complete.and(value.as_ref().map(|_| ()));
            let (Some(variable), Some((value, reads))) = (self.variable(&name.0), value) else { continue };
            let number = usize::from(variable);
            if part.used[number] && part.first[number] == First::Text(position) {
                reads.into_iter().for_each(|read| part.used[usize::from(read)] = true);
                sets.push(Op::Set { variable, value });
            }
        }
        let needed = |source: usize| {
            let column =
                |(number, first): (usize, &First)| part.used[number] && *first == First::Column(source);
            part.first.iter().enumerate().any(column)
        };
        let draws: Vec<usize> = (0..self.sources.len())
            .filter(|&source| listed.map_or_else(|| needed(source), |listed| listed.contains(&source)))
            .collect();
        let is_given = |(number, first): (usize, &First)| part.used[number] && *first == First::Setup;
        let given = (0_u16..).zip(part.first.iter().enumerate()).filter(|(_, one)| is_given(*one));
        let mut ops: Vec<Op> =
            given.map(|(variable, _)| Op::Set { variable, value: Template::literal(b"") }).collect();
        let given = ops.len();
        for source in draws {
            self.sources[source].is_drawn = true;
            ops.push(Op::Draw(u16::try_from(source).unwrap_or(u16::MAX)));
        }
        for (number, first) in part.first.iter().enumerate() {
            if let (true, First::Column(source)) = (part.used[number], *first) {
                self.sources[source].use_column(&self.variables[number]);
            }
        }
        ops.extend(sets.into_iter().rev());
        complete.map(|()| (ops, given))
    }

    /// The first value of the variable at a position among the plan's and the scenario's, and its
    /// dependencies: columns, and earlier variables.
    fn initial_value(
        &mut self,
        position: usize,
        field: &Field<plimsoll_document::Text>,
        part: &Part<'_>,
    ) -> Option<(Template, Vec<u16>)> {
        let text = self.text(field)?;
        let value = self.parsed(text.as_bytes(), field.place())?;
        let reads = value.variables();
        let mut complete = Some(());
        for &read in &reads {
            let before = match part.first[usize::from(read)] {
                First::Text(other) => other < position,
                First::Column(_) | First::Setup => true,
                _ => false,
            };
            if !before {
                let name = &self.variables[usize::from(read)];
                let problem = Problem::new(format!("`{name}` is not set yet where this first value is made"));
                let hint = "first values can read columns of data, and variables above them";
                complete = self.fail(field.place(), problem.with_hint(hint));
            }
        }
        complete.map(|()| (value, reads))
    }

    /// The variables that steps set, wherever they stand.
    fn collect_sets(&self, steps: &[Field<StepSpec>], sets: &mut BTreeSet<u16>) {
        for step in steps.iter().filter_map(Field::get) {
            let names = step.extract.0.iter().map(|(name, ..)| name);
            sets.extend(names.filter_map(|name| self.variable(&name.0)));
            match &step.kind {
                StepKind::Set(step) => {
                    let names = step.set.0.iter().map(|(name, ..)| name);
                    sets.extend(names.filter_map(|name| self.variable(&name.0)));
                }
                StepKind::Rows(rows) => {
                    let picked = [&rows.pick, &rows.take].into_iter().filter_map(Field::get);
                    sets.extend(picked.flat_map(|pool| self.columns_of(&pool.0)));
                }
                _ => {}
            }
            for inner in step.inner() {
                self.collect_sets(inner, sets);
            }
        }
    }

    /// If a step asks for the URL of one of several requests, all of them keep theirs.
    fn ask_again(&mut self, part: &mut Part<'_>) -> Option<()> {
        let Some(place) = part.asks_again else { return Some(()) };
        let Some(variable) = self.variable(LAST_PATH) else { return Some(()) };
        if part.drafts.windows(2).any(|pair| pair[0].server != pair[1].server) {
            let problem = Problem::new("the server of the request before is not certain");
            return self.fail(place, problem.with_hint("name the path and, with `target`, the server"));
        }
        for draft in &mut part.drafts {
            keep_path(draft, variable);
        }
        Some(())
    }
}

/// The session is to know the path of this request; its whole URL, if that is not the target's for certain.
pub(super) fn keep_path(draft: &mut Draft, variable: u16) {
    use plimsoll_scenario::Source;
    let source = match draft.away {
        Some(_) => Source::RequestUrl,
        None => Source::RequestHeader(":path".to_owned()),
    };
    let extract = plimsoll_scenario::ExtractSpec {
        variable,
        source,
        regex: None,
        form: plimsoll_scenario::Conversion::Value,
        default: None,
    };
    if !draft.handler.extract.contains(&extract) {
        draft.handler.extract.push(extract);
    }
}

impl Part<'_> {
    /// Notes a request as the last one.
    pub(super) fn add_draft(&mut self, draft: Draft, known: &mut Known) -> u32 {
        known.last = Last::One(self.drafts.len());
        self.drafts.push(draft);
        self.drafts.len() as u32 - 1
    }

    /// The variables that steps set and that have a value at the end of the scenario. A first value that may
    /// remain is read then.
    fn set_for_certain(&self, known: &Known) -> Vec<u16> {
        let has_first =
            |variable: u16| matches!(self.first[usize::from(variable)], First::Text(_) | First::Column(_));
        self.sets.iter().copied().filter(|&variable| known.has(variable) || has_first(variable)).collect()
    }

    /// Sends requests.
    pub(super) fn send(&mut self, op: Op) {
        self.requests = self.requests.then(RequestBounds::exactly(op.requests()));
        self.ops.push(op);
    }

    /// The position of the next instruction.
    pub(super) fn here(&self) -> u32 {
        self.ops.len() as u32
    }
}

fn parse_weight(text: &str) -> Result<u32, String> {
    match parse_count(text).map(u32::try_from) {
        Ok(Ok(weight)) => Ok(weight),
        _ => Err(format!("`{text}` is not a weight: write a whole number, or 0 to leave the scenario out")),
    }
}
