//! Plans that commands make from their flags: a problem of such a plan is a problem of a flag.

use plimsoll_plan::Problem;

use crate::args::workload::PLANS;

/// The problem with its flag in place of the position in a generated text. One about anything else keeps its
/// place.
pub(crate) fn by_flag(problem: &Problem, text: &str) -> Problem {
    let key = problem.place.and_then(|place| key_before(text, place.start as usize));
    let plan = PLANS.into_iter().find(|(plan, _)| text.contains(&format!(r#""name":"{plan}""#)));
    let settings = plan.map(|(_, settings)| settings).unwrap_or_default();
    let Some((key, flag)) = settings.iter().find(|(known, _)| key == Some(known)) else {
        return problem.clone();
    };
    let hint = problem.hint.as_ref().map(|hint| hint.replace(&format!("`{key}`"), &format!("`{flag}`")));
    let message = format!("{flag}: {}", problem.message);
    Problem { message, hint, place: None, also: Vec::new() }
}

/// The name of the JSON value that begins here.
fn key_before(text: &str, start: usize) -> Option<&str> {
    let name = text.get(..start)?.strip_suffix(':')?.strip_suffix('"')?;
    name.rfind('"').map(|quote| &name[quote + 1..])
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::Place;

    use super::*;

    #[test]
    fn flags_take_the_place_of_places() {
        let text =
            r#"{"targets":{"store":"x"},"name":"ingest","headers":{"x-arc-database":7},"post":"read"}"#;
        let within = |text: &str, value: &str| {
            let start = text.find(value).expect("it is there") as u32;
            let problem = Problem::new("wrong").with_hint("leave `store` out");
            by_flag(&Problem { place: Some(Place { start, end: start + 1 }), ..problem }, text)
        };
        let at = |value: &str| within(text, value);
        let store = at("\"x\"");
        assert_eq!((store.message.as_str(), store.place), ("--url: wrong", None));
        assert_eq!(store.hint.as_deref(), Some("leave `--url` out"));
        assert_eq!(at("7").message, "--database: wrong");
        // It comes from no flag, or from several.
        assert!(at("\"read\"").place.is_some() && at("{").place.is_some());
        assert_eq!(by_flag(&Problem::new("elsewhere"), text).message, "elsewhere");
        // Another plan means another thing by the same word.
        assert_eq!(within(&text.replace(r#":"ingest""#, r#":"cache""#), "7").message, "wrong");
    }
}
