//! Plans that commands make from their flags: what is wrong with one is wrong with a flag.

use plimsoll_plan::Problem;

/// Settings of made plans by the names of these, and the flags that they come from.
const FLAGS: [(&str, &str, &str); 9] = [
    ("canister", "arg", "--payload"),
    ("canister", "arg_size", "--payload-size"),
    ("canister", "key", "--pem-file"),
    ("canister", "expiry", "--expiry"),
    ("canister", "signers", "--signers"),
    ("canister", "every", "--poll-every"),
    ("canister", "Host", "--host"),
    ("ingest", "store", "--url"),
    ("ingest", "x-arc-database", "--database"),
];

/// The problem with the flag that it is about in place of the place in a text that nobody has written. One
/// about anything else keeps its place.
pub(crate) fn by_flag(problem: &Problem, text: &str) -> Problem {
    let key = problem.place.and_then(|place| key_before(text, place.start as usize));
    let is_of = |plan: &str| text.contains(&format!(r#""name":"{plan}""#));
    let known = FLAGS.into_iter().find(|(plan, known, _)| key == Some(known) && is_of(plan));
    let Some((_, key, flag)) = known else { return problem.clone() };
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
        let text = r#"{"canister":{"query":"read","expiry":"10m","key":7},"name":"canister"}"#;
        let within = |text: &str, value: &str| {
            let start = text.find(value).expect("it is there") as u32;
            let problem = Problem::new("wrong").with_hint("leave `expiry` out");
            by_flag(&Problem { place: Some(Place { start, end: start + 1 }), ..problem }, text)
        };
        let at = |value: &str| within(text, value);
        let expiry = at("\"10m\"");
        assert_eq!((expiry.message.as_str(), expiry.place), ("--expiry: wrong", None));
        assert_eq!(expiry.hint.as_deref(), Some("leave `--expiry` out"));
        assert_eq!(at("7").message, "--pem-file: wrong");
        // It comes from no flag, or from several.
        assert!(at("\"read\"").place.is_some() && at("{").place.is_some());
        assert_eq!(by_flag(&Problem::new("elsewhere"), text).message, "elsewhere");
        // Another plan means another thing by the same word.
        assert_eq!(within(&text.replace(r#":"canister"}"#, r#":"cache"}"#), "7").message, "wrong");
    }
}
