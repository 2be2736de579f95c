//! Conditions, and the variables that they ask about.

use plimsoll_document::{Field, Text};
use plimsoll_scenario::Condition;

use super::Compiler;
use super::known::Known;
use super::scenario::Part;

impl Compiler<'_, '_> {
    /// Compiles a condition of a branch or a loop.
    pub(super) fn condition(
        &mut self,
        field: &Field<Text>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Condition> {
        let text = self.text(field)?;
        self.without_secrets(&text, field.place(), "a condition")?;
        let condition = match Condition::parse(&text, &self.scope(&self.variables, &self.constants)) {
            Ok(condition) => condition,
            Err(error) => return self.fail_template(field.place(), &error),
        };
        // Any variable may be tested for existence; its first value makes it exist.
        for name in asked_for(&text) {
            if let Some(variable) = self.variable(name)
                && part.has_first(variable)
                && !known.has(variable)
            {
                self.check_read(variable, field.place(), part, known)?;
            }
        }
        let mut complete = Some(());
        for slot in super::text::slots(&text) {
            // The condition as a whole was parsed, so each of its slots can be.
            if let Some(template) = self.parsed(slot.as_bytes(), field.place()) {
                for variable in template.variables() {
                    complete = complete.and(self.check_read(variable, field.place(), part, known));
                }
            }
        }
        complete.map(|()| condition)
    }
}

impl Part<'_> {
    /// Returns `true` if the variable has a first value, or would have one if the scenario used its source.
    pub(super) fn has_first(&self, variable: u16) -> bool {
        let first = self.first.get(usize::from(variable));
        first.is_some_and(|first| *first != super::scenario::First::Nothing)
    }
}

/// The names behind the word `exists`.
fn asked_for(text: &str) -> impl Iterator<Item = &str> {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || "()".contains(c)).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let pairs: Vec<&str> = words.windows(2).filter(|pair| pair[0] == "exists").map(|pair| pair[1]).collect();
    pairs.into_iter()
}

/// Of a condition that is nothing but `exists name`, once or several joined with `and`, or `not exists name`:
/// the names, and which.
pub(super) fn existence(text: &str) -> Option<Vec<(&str, bool)>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let ["not", "exists", name] = words.as_slice() {
        return Some(vec![(name, false)]);
    }
    let of_part = |part: &[&'_ str]| matches!(part, ["exists", _] | ["exists", _, "and"]);
    let parts: Vec<&[&str]> = words.chunks(3).collect();
    let (last, first) = parts.split_last()?;
    let complete = first.iter().all(|part| of_part(part)) && last.len() == 2 && of_part(last);
    complete.then(|| parts.iter().map(|part| (part[1], true)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_behind_exists() {
        let asked = |text| asked_for(text).collect::<Vec<_>>();
        assert_eq!(asked("exists a and (not exists b or ${exists} == c)"), ["a", "b"]);
        assert_eq!(asked("${a} == exists"), Vec::<&str>::new());
        assert_eq!(existence(" exists  a "), Some(vec![("a", true)]));
        assert_eq!(existence("exists a and exists b"), Some(vec![("a", true), ("b", true)]));
        assert_eq!(existence("not exists a"), Some(vec![("a", false)]));
        for other in ["exists a or exists b", "exists a and", "exists", "", "exists a and ${b} == 1"] {
            assert_eq!(existence(other), None, "{other}");
        }
    }
}
