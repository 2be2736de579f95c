//! Documents that commands make from their flags: a problem of such a plan is one of a flag.

use crate::{Document, Field, Place, Problem, Problems};

/// A plan that a command made from its flags, and that nothing was read from. The place of a value is that of
/// its flag in the table of [`Flags`]; values that come from no flag, or from several, have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeDocument {
    /// Name of the plan in messages.
    pub name: String,
    /// The content.
    pub document: Document,
    /// Flags that its values come from.
    pub flags: Flags,
}

/// Keys of a document whose values come from one flag each, and that flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(&'static [(&'static str, &'static str)]);

impl Flags {
    /// The table of these keys and flags. A key is here once.
    pub const fn new(table: &'static [(&'static str, &'static str)]) -> Self {
        Self(table)
    }

    /// Returns the value of a key, at the place of its flag.
    ///
    /// # Panics
    /// The table does not have the key.
    pub fn value<T>(self, key: &str, value: impl Into<T>) -> Field<T> {
        Field::Given(value.into(), self.place(key))
    }

    /// Returns the place of the flag that the value of a key comes from.
    ///
    /// # Panics
    /// The table does not have the key.
    pub fn place(self, key: &str) -> Place {
        let number = self.0.iter().position(|(known, _)| *known == key);
        let number = number.unwrap_or_else(|| panic!("`{key}` is in the table")) as u32;
        Place { start: number, end: number + 1 }
    }

    /// Returns the problems in words of the flags: each with the flag of its place in front, in place of the
    /// setting if that is named there, and in its hint in place of the key. The same problem with several
    /// flags becomes as many.
    pub fn translated(self, problems: &Problems) -> Problems {
        let mut translated = Problems::default();
        for problem in problems {
            if problem.place.is_none() {
                translated.push(problem.clone());
            }
            for place in problem.place.iter().chain(&problem.also) {
                translated.push(self.by_flag(problem, *place));
            }
        }
        translated.with_notes(problems.notes().to_vec())
    }

    fn by_flag(self, problem: &Problem, place: Place) -> Problem {
        let Problem { mut message, mut hint, .. } = problem.clone();
        if let Some((key, flag)) = self.0.get(place.start as usize) {
            let of_setting = message.strip_prefix("run.").and_then(|rest| rest.strip_prefix(key));
            let what = of_setting.and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&message);
            message = format!("{flag}: {what}");
            hint = hint.map(|hint| hint.replace(&format!("`{key}`"), &format!("`{flag}`")));
        }
        Problem { message, hint, place: None, also: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Text;

    #[test]
    fn flags_take_the_place_of_places() {
        let flags =
            Flags::new(&[("store", "--url"), ("x-arc-database", "--database"), ("stages", "--trace")]);
        let problem =
            |value: &Field<Text>| Problem::new("wrong").with_hint("leave `store` out").at(value.place());
        let (store, database) = (flags.value("store", "x"), flags.value("x-arc-database", "y"));
        assert_eq!(store.get(), Some(&Text::from("x")));
        let mut problems = Problems::from(problem(&database));
        // A value that comes from no flag, or from several.
        problems.push(problem(&Field::text("read")));
        problems.push(Problem::new("elsewhere"));
        problems.push(problem(&store));
        let stages: Field<Text> = flags.value("stages", "@none");
        problems.push(Problem::new("run.stages: no file").at(stages.place()));
        problems.sort();
        let translated = flags.translated(&problems.with_notes(vec!["a note".to_owned()]));
        let shown: Vec<_> =
            translated.iter().map(|shown| (shown.message.as_str(), shown.hint.as_deref())).collect();
        let expected = [
            ("--url: wrong", Some("leave `--url` out")),
            ("--database: wrong", Some("leave `store` out")),
            ("--trace: no file", None),
            ("wrong", Some("leave `store` out")),
            ("elsewhere", None),
        ];
        assert_eq!(shown, expected);
        assert!(translated.iter().all(|shown| shown.place.is_none() && shown.also.is_empty()));
        assert_eq!(translated.notes(), ["a note"]);
    }
}
