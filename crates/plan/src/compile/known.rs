//! Facts that are certain at a point of a scenario.

use plimsoll_document::{Place, Problem};
use plimsoll_scenario::Template;

use super::Compiler;
use super::scenario::{First, Part};

/// Facts that are certain at one point of a scenario, on every path that leads there.
#[derive(Clone)]
pub(super) struct Known {
    /// The variables that a step has set, by their numbers.
    set: Vec<bool>,
    /// The last request.
    pub(super) last: Last,
}

/// The last request before a point of a scenario, by its position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// There may be none.
    Nothing,
    /// The last request is always this one.
    One(usize),
    /// The last request is one of several.
    Several,
}

impl Known {
    /// Before the first step.
    pub(super) fn nothing(variables: usize) -> Self {
        Self { set: vec![false; variables], last: Last::Nothing }
    }

    /// Returns `true` if a step has set the variable.
    pub(super) fn has(&self, variable: u16) -> bool {
        self.set.get(usize::from(variable)).copied().unwrap_or(false)
    }

    /// A step sets the variable.
    pub(super) fn sets(&mut self, variable: u16) {
        if let Some(set) = self.set.get_mut(usize::from(variable)) {
            *set = true;
        }
    }

    /// A step may leave the variable without a value.
    pub(super) fn forgets(&mut self, variable: u16) {
        if let Some(set) = self.set.get_mut(usize::from(variable)) {
            *set = false;
        }
    }

    /// Keeps only the facts that are certain on both of two paths that meet here.
    pub(super) fn either(mut self, other: &Self) -> Self {
        for (set, also) in self.set.iter_mut().zip(&other.set) {
            *set &= also;
        }
        self.last = match (self.last, other.last) {
            (one, another) if one == another => one,
            (Last::Nothing, _) | (_, Last::Nothing) => Last::Nothing,
            _ => Last::Several,
        };
        self
    }

    /// Adds the variables that are certain after several steps were carried out at once.
    pub(super) fn both(&mut self, other: &Self) {
        for (set, also) in self.set.iter_mut().zip(&other.set) {
            *set |= also;
        }
    }
}

impl Compiler<'_, '_> {
    /// Compiles a template and checks that all of its variables are set where it is rendered.
    pub(super) fn template(
        &mut self,
        text: &str,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Template> {
        let template = self.parsed(text.as_bytes(), place)?;
        let all =
            template.variables().into_iter().map(|variable| self.check_read(variable, place, part, known));
        all.fold(Some(()), Option::and)?;
        Some(template)
    }

    /// Compiles a template.
    pub(super) fn parsed(&mut self, text: &[u8], place: Option<Place>) -> Option<Template> {
        match Template::parse_in(text, &self.scope(&self.variables, &self.constants)) {
            Ok(template) => Some(template),
            Err(error) => self.fail_template(place, &error),
        }
    }

    /// Refuses to read a variable that may not have been set; notes that its first value is needed unless a
    /// step has set it.
    pub(super) fn check_read(
        &mut self,
        variable: u16,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<()> {
        if known.has(variable) {
            return Some(());
        }
        let number = usize::from(variable);
        let name = self.variables.get(number).cloned().unwrap_or_default();
        match part.first.get(number) {
            Some(First::Text(_) | First::Column(_) | First::Setup) => {
                part.used[number] = true;
                Some(())
            }
            Some(First::Ambiguous(one, other)) => {
                let names = [*one, *other].map(|source| self.sources[source].name.as_str());
                let message = format!("both `{}` and `{}` have a column `{name}`", names[0], names[1]);
                let hint = "choose one with `data` in the scenario, or rename one with `columns`";
                self.fail(place, Problem::new(message).with_hint(hint))
            }
            Some(First::Elsewhere(source)) => {
                let source = self.sources[*source].name.clone();
                let problem = Problem::new(format!(
                    "`{name}` is a column of `{source}`, which the scenario does not use"
                ));
                self.fail(place, problem.with_hint(format!("add `{source}` to the scenario's `data`")))
            }
            Some(First::Nothing) | None if self.columns_are_unknown() => None,
            Some(First::Nothing) | None => self.fail(place, self.unset(&name, variable, part)),
        }
    }

    fn unset(&self, name: &str, variable: u16, part: &Part<'_>) -> Problem {
        if part.sets.contains(&variable) {
            let problem = Problem::new(format!("`{name}` may not be set here"));
            if self.is_kept(name) {
                let hint = format!("the pool may have no row: read it within `if: exists {name}`");
                return problem.with_hint(hint);
            }
            return problem.with_hint(
                "set or extract it in a step before this one, on every way to it, or give it a first value under \
                 `variables`",
            );
        }
        if self.around.named.iter().any(|named| named == name) {
            let problem = Problem::new(format!("`{name}` may not be set by the setup"));
            return problem.with_hint(
                "set or extract it on every way through `setup`, or give it a first value under `variables`",
            );
        }
        let problem = Problem::new(format!("`{name}` is never set in this scenario"));
        let near = self.variables.iter().enumerate().filter(|&(number, other)| {
            let is_set = !matches!(part.first.get(number), Some(First::Nothing) | None);
            other != name && (is_set || u16::try_from(number).is_ok_and(|number| part.sets.contains(&number)))
        });
        let near = plimsoll_core::suggest::closest(name, near.map(|(_, other)| other.as_str()));
        problem.with_hint(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "set or extract it in a step before, or give it a first value under `variables`".to_owned()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_ways_meet_only_what_both_have_is_certain() {
        let mut one = Known::nothing(3);
        one.sets(0);
        one.sets(1);
        one.last = Last::One(4);
        let mut other = Known::nothing(3);
        other.sets(1);
        other.last = Last::One(5);
        let met = one.clone().either(&other);
        assert_eq!([0, 1, 2].map(|variable| met.has(variable)), [false, true, false]);
        assert_eq!(met.last, Last::Several);
        assert_eq!(one.clone().either(&Known::nothing(3)).last, Last::Nothing);
        assert_eq!(one.clone().either(&one).last, Last::One(4));
        one.both(&other);
        assert!(one.has(0) && one.has(1) && !one.has(2) && !one.has(9));
    }
}
