//! The examples of the repository, which are part of the program.

use serde_json::{Value, json};

/// An example: its name and its text.
pub(crate) type Example = (&'static str, &'static str);

macro_rules! examples {
    ($($name:literal,)*) => {
        &[$(($name, include_str!(concat!("../../../examples/", $name, ".yaml"))),)*]
    };
}

/// All plans that are examples, in the order of their names.
pub(crate) const EXAMPLES: &[Example] = examples![
    "ab",
    "batches",
    "closed-users",
    "conditions",
    "cookies",
    "csv-data",
    "delayed-scenario",
    "expectations",
    "extract-header",
    "extract-json",
    "extract-regex",
    "grpc",
    "http2",
    "jsonl-data",
    "kept-rows",
    "loops",
    "multipart",
    "on-failure",
    "once-only",
    "open-rate",
    "other-servers",
    "parallel",
    "phases",
    "phases-of-users",
    "poll",
    "pool",
    "range-and-list",
    "refresh",
    "request-rate",
    "same-url",
    "script",
    "secrets",
    "setup",
    "stages",
    "stream",
    "templates",
    "think-time",
    "thresholds",
    "timeouts",
    "tls",
    "two-targets",
    "user-stages",
    "users-orders-comments",
    "websocket",
    "weights",
];

/// The examples, each with the first sentence of its first comment as its title and the rest of the comment
/// as its description.
pub(crate) fn list() -> Value {
    let examples = EXAMPLES.iter().map(|(name, text)| {
        let (title, description) = described(text);
        json!({"name": name, "title": title, "description": description, "text": text})
    });
    json!({"examples": examples.collect::<Vec<_>>()})
}

/// The first line of the comment that a text begins with, and the others.
fn described(text: &str) -> (String, String) {
    let mut lines = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
    let title = lines.next().unwrap_or_default().to_owned();
    (title, lines.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_repository_is_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = files
            .filter_map(|name| name.to_str().and_then(|name| name.strip_suffix(".yaml")).map(str::to_owned))
            .collect();
        names.sort_unstable();
        assert_eq!(EXAMPLES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
        for (name, text) in EXAMPLES {
            let (title, _) = described(text);
            assert!(!title.is_empty() && text.contains("scenarios:"), "{name}");
        }
    }

    #[test]
    fn the_comment_at_the_top_describes_it() {
        let (title, description) = described("# One.\n# Two\n#  three\nrun: {}\n# four\n");
        assert_eq!((&*title, &*description), ("One.", "Two three"));
    }
}
