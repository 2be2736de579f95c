//! The names of variables.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_document::{Field, Place, Problem, ScenarioSpec, StepKind, StepSpec, is_function};

use super::Compiler;
use super::pool::own_columns;
use crate::parts::body_part;

/// The variable that has the path of the last request, where a step asks for the same URL. No variable of a
/// plan can be called that.
pub(super) const LAST_PATH: &str = ":path";

/// The variable that has the time in a message.
pub(super) const LAG: &str = ":lag";

/// The variables of a plan, while they are collected.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Names {
    fn add(&mut self, name: &str) {
        if !self.numbers.contains_key(name) {
            self.numbers.insert(name.to_owned(), self.all.len());
            self.all.push(name.to_owned());
        }
    }
}

impl Compiler<'_, '_> {
    /// Gives every variable of the plan its number.
    pub(super) fn name_variables(&mut self) {
        let document = &self.loaded.document;
        let mut names = Names::default();
        for (name, place, _) in &document.variables.0 {
            self.add_variable(&name.0, Some(*place), &mut names);
        }
        for spec in document.scenarios.iter().filter_map(Field::get) {
            self.add_scenario(spec, &mut names);
        }
        self.around.named.iter().for_each(|name| names.add(name));
        for source in &self.sources {
            source.columns.iter().flatten().for_each(|column| names.add(column));
        }
        self.variables = Arc::from(names.all);
        self.numbers = names.numbers;
    }

    fn add_scenario(&mut self, spec: &ScenarioSpec, names: &mut Names) {
        for (name, place, _) in &spec.variables.0 {
            self.add_variable(&name.0, Some(*place), names);
        }
        self.add_steps(&spec.steps, names);
    }

    fn add_steps(&mut self, steps: &[Field<StepSpec>], names: &mut Names) {
        for step in steps.iter().filter_map(Field::get) {
            let set = match &step.kind {
                StepKind::Set(step) => &step.set.0[..],
                _ => &[],
            };
            let set = set.iter().map(|(name, place, _)| (name, place));
            let answers = step.kind.answers().iter().filter_map(Field::get);
            let of_answers = answers.flat_map(|answer| &answer.extract.0);
            let extract = step.extract.0.iter().chain(of_answers).map(|(name, place, _)| (name, place));
            let collected = step.request().map_or(&[][..], |request| &request.collect.0);
            let collected = collected.iter().filter_map(|(_, _, row)| row.get());
            let collected = collected.flat_map(own_columns).map(|(name, place, _)| (name, place));
            for (name, place) in set.chain(extract).chain(collected) {
                self.add_variable(&name.0, Some(*place), names);
            }
            if step.kind.has_lag() {
                names.add(LAG);
            }
            if let Some(request) = step.request() {
                if let Some((body, place)) = body_part(&request.body)
                    && let Some(name) = body.variable()
                {
                    self.add_variable(&name.0, place, names);
                }
                if !request.address.same_url.is_absent() {
                    names.add(LAST_PATH);
                }
            }
            for inner in step.inner() {
                self.add_steps(inner, names);
            }
        }
    }

    fn add_variable(&mut self, name: &str, place: Option<Place>, names: &mut Names) {
        if let Some(problem) = wrong_name(name) {
            self.report(place, problem);
        }
        // Wrong names are added, too, so that their use is not reported as a variable that nothing sets.
        names.add(name);
    }

    /// The number of a variable that [`name_variables`](Self::name_variables) has found.
    pub(super) fn variable(&self, name: &str) -> Option<u16> {
        u16::try_from(*self.numbers.get(name)?).ok()
    }
}

/// Returns `true` if a text begins with a letter and has nothing but letters, digits, `_`, `-` and `.`.
pub(super) fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|first| first.is_alphabetic() || first == '_');
    first && characters.all(|c| c.is_alphanumeric() || "_-.".contains(c))
}

/// Returns the problem with the name of a variable, if there is one.
fn wrong_name(name: &str) -> Option<Problem> {
    if !is_name(name) {
        let problem = Problem::new(format!("`{}` cannot be the name of a variable", name.escape_debug()));
        return Some(
            problem.with_hint("a name begins with a letter and has letters, digits, `_`, `-` and `.`"),
        );
    }
    is_function(name).then(|| {
        Problem::new(format!("`{name}` is a function of templates and cannot be the name of a variable"))
            .with_hint("choose another name")
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_document::{FUNCTIONS, is_function};
    use plimsoll_scenario::Template;
    use plimsoll_scenario::slot::Slot;

    #[test]
    fn the_functions_of_templates_are_those_that_plans_name() {
        let mut forms: Vec<&str> =
            Slot::FORMS.iter().map(|form| form.split('(').next().unwrap_or(form)).collect();
        forms.dedup();
        assert_eq!(forms, FUNCTIONS);
        for name in FUNCTIONS {
            let stands_alone = Template::parse(format!("${{{name}}}").as_bytes()).is_ok();
            assert!(is_function(name) || !stands_alone, "{name}");
        }
        // A name that is no function has no meaning by itself.
        for name in ["id", "timestamp", "random", "sequences", "token", "digest", "uuid_2", "authority"] {
            let stands_alone = Template::parse(format!("${{{name}}}").as_bytes()).is_ok();
            assert_eq!(stands_alone, is_function(name), "{name}");
        }
    }
}
