//! Plans that commands make from their flags: a problem of such a plan is a problem of a flag.

use plimsoll_document::{Problem, Source};

/// A plan that a command made from its flags.
#[derive(Clone, Debug)]
pub struct MadePlan {
    /// Name of the plan in messages.
    pub name: String,
    /// Content of the plan file, in JSON.
    pub text: String,
    /// Settings of the plan that come from one flag each, and that flag.
    pub flags: Flags,
}

/// Settings of a plan, each with the flag that it comes from.
pub type Flags = &'static [(&'static str, &'static str)];

impl MadePlan {
    /// A plan by its name in messages, its text, and the flags of its settings.
    pub fn new(name: impl Into<String>, text: String, flags: Flags) -> Self {
        Self { name: name.into(), text, flags }
    }

    /// The plan as the source that it is resolved from.
    pub(crate) fn source(&self) -> Source {
        Source { name: self.name.clone(), text: self.text.clone() }
    }

    /// The problem with its flag in place of the position in the text. One about anything else keeps its
    /// place.
    pub(crate) fn by_flag(&self, problem: &Problem) -> Problem {
        let key = problem.place.and_then(|place| key_before(&self.text, place.start as usize));
        let Some((key, flag)) = self.flags.iter().find(|(known, _)| key == Some(known)) else {
            return problem.clone();
        };
        let hint = problem.hint.as_ref().map(|hint| hint.replace(&format!("`{key}`"), &format!("`{flag}`")));
        let message = format!("{flag}: {}", problem.message);
        Problem { message, hint, place: None, also: Vec::new() }
    }
}

/// The name of the JSON value that begins here.
fn key_before(text: &str, start: usize) -> Option<&str> {
    let name = text.get(..start)?.strip_suffix(':')?.strip_suffix('"')?;
    name.rfind('"').map(|quote| &name[quote + 1..])
}

#[cfg(test)]
mod tests {
    use plimsoll_document::Place;

    use super::*;

    #[test]
    fn flags_take_the_place_of_places() {
        let text = r#"{"targets":{"store":"x"},"headers":{"x-arc-database":7},"post":"read"}"#;
        let flags: Flags = &[("store", "--url"), ("x-arc-database", "--database")];
        let plan = MadePlan::new("the plan", text.to_owned(), flags);
        let at = |value: &str| {
            let start = text.find(value).expect("it is there") as u32;
            let problem = Problem::new("wrong").with_hint("leave `store` out");
            plan.by_flag(&Problem { place: Some(Place { start, end: start + 1 }), ..problem })
        };
        let store = at("\"x\"");
        assert_eq!((store.message.as_str(), store.place), ("--url: wrong", None));
        assert_eq!(store.hint.as_deref(), Some("leave `--url` out"));
        assert_eq!(at("7").message, "--database: wrong");
        // It comes from no flag, or from several.
        assert!(at("\"read\"").place.is_some() && at("{").place.is_some());
        assert_eq!(plan.by_flag(&Problem::new("elsewhere")).message, "elsewhere");
    }
}
