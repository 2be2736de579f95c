//! The examples of the repository, which are part of the program, with the files that they read.

use serde_json::{Value, json};

/// An example: a plan that has a server to run against, which its second line names.
#[derive(Debug)]
pub(crate) struct Example {
    /// Heading that it is listed under.
    group: &'static str,
    /// Name of its file, without the end.
    pub(crate) name: &'static str,
    /// Title in three to six words.
    title: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! examples {
    ($($group:literal => [$(($name:literal, $title:literal),)*],)*) => {
        &[$($(Example {
            group: $group,
            name: $name,
            title: $title,
            text: include_str!(concat!("../../../examples/", $name, ".yaml")),
        },)*)*]
    };
}

/// All plans that are examples, in the order in which they are shown.
pub(crate) const EXAMPLES: &[Example] = examples![
    "First steps" => [
        ("open-rate", "A constant rate of requests"),
        ("closed-users", "Eight users who never pause"),
        ("think-time", "Users who think between requests"),
        ("weights", "Many who browse, some who buy"),
        ("expectations", "Checks of every response"),
        ("thresholds", "Pass or fail by thresholds"),
        ("timeouts", "A timeout for each step"),
        ("two-targets", "Steps on two servers"),
        ("secrets", "A token from the environment"),
    ],
    "Data" => [
        ("csv-data", "Rows of a CSV file"),
        ("jsonl-data", "Objects of a JSONL file"),
        ("range-and-list", "Numbers and lists as data"),
        ("once-only", "Each row exactly once"),
        ("templates", "Values that change every time"),
        ("multipart", "A form with a file"),
        ("own-metrics", "Metrics of your own"),
        ("script", "Requests made by Lua"),
        ("batches", "Batches of logs and spans"),
    ],
    "Flows" => [
        ("extract-json", "Values out of a JSON answer"),
        ("extract-header", "Follow a Location header"),
        ("extract-regex", "Values by regular expression"),
        ("cookies", "Cookies of a session"),
        ("conditions", "Steps for some users only"),
        ("loops", "Loops with an open end"),
        ("parallel", "Several requests at once"),
        ("poll", "Ask until it is done"),
        ("on-failure", "Clean up after a failure"),
        ("same-url", "The same random URL twice"),
        ("setup", "Steps before and after all"),
        ("refresh", "A value renewed on the way"),
        ("kept-rows", "Users who share their results"),
        ("users-orders-comments", "Users, orders and their comments"),
    ],
    "Shapes of load" => [
        ("stages", "A rate that rises"),
        ("phases", "Warm-up, steady load and peak"),
        ("user-stages", "Users who come and go"),
        ("phases-of-users", "Phases with more and more users"),
        ("delayed-scenario", "A scenario that starts later"),
        ("request-rate", "A rate of single requests"),
        ("ab", "Two scenarios in random turns"),
    ],
    "Protocols" => [
        ("http2", "Many requests over HTTP/2"),
        ("tls", "HTTPS with a test certificate"),
        ("grpc", "Calls of a gRPC service"),
        ("websocket", "A chat over WebSocket"),
        ("stream", "The stream of a language model"),
        ("pool", "Two servers with failover"),
        ("other-servers", "Servers known only during the run"),
    ],
];

macro_rules! files {
    ($($path:literal,)*) => {
        &[$(($path, include_str!(concat!("../../../examples/", $path))),)*]
    };
}

/// Paths and contents of the files that examples read.
const FILES: &[(&str, &str)] =
    files!["data/order.json", "data/products.jsonl", "data/users.csv", "scripts/sign.lua", "sink.proto",];

/// Begin of the line that names the server of an example.
const SERVER: &str = "# Server: plimsoll ";

impl Example {
    /// The example of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        EXAMPLES.iter().find(|example| example.name == name)
    }

    /// The example that this is the text of, without a change.
    pub(crate) fn of_text(text: &str) -> Option<&'static Self> {
        EXAMPLES.iter().find(|example| example.text == text)
    }

    /// The files that it reads: their paths from its own folder on, and what is in them.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        let text = self.text;
        FILES.iter().copied().filter(move |(path, _)| text.contains(path))
    }

    /// The comment that it begins with, but for the line about its server.
    fn description(&self) -> String {
        let comment =
            self.text.lines().map_while(|line| line.strip_prefix('#').map(|said| (line, said.trim())));
        let said = comment.filter(|(line, _)| !line.starts_with(SERVER)).map(|(_, said)| said);
        said.collect::<Vec<_>>().join(" ")
    }
}

/// The arguments of the server that a plan is for, if an example has the same: a page cannot name others.
pub(crate) fn server_of(text: &str) -> Option<&'static str> {
    let named = |text: &str| text.lines().find_map(|line| line.strip_prefix(SERVER)).map(str::to_owned);
    let wanted = named(text)?;
    let known =
        EXAMPLES.iter().filter_map(|example| example.text.lines().find_map(|line| line.strip_prefix(SERVER)));
    known.into_iter().find(|known| *known == wanted)
}

/// The examples as the page lists them.
pub(crate) fn list() -> Value {
    let examples = EXAMPLES.iter().map(|example| {
        json!({
            "name": example.name,
            "group": example.group,
            "title": example.title,
            "description": example.description(),
            "server": server_of(example.text),
            "text": example.text,
        })
    });
    json!({"examples": examples.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_repository_is_in_with_a_short_title_and_its_server() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut present: Vec<String> = files
            .filter_map(|name| name.to_str().and_then(|name| name.strip_suffix(".yaml")).map(str::to_owned))
            .collect();
        present.sort_unstable();
        let mut names: Vec<&str> = EXAMPLES.iter().map(|example| example.name).collect();
        names.sort_unstable();
        assert_eq!(names, present);
        for example in EXAMPLES {
            let Example { name, title, text, .. } = example;
            assert!((3..=6).contains(&title.split(' ').count()), "{name}: {title}");
            assert!(server_of(text).is_some() && text.contains("scenarios:"), "{name}");
            let description = example.description();
            assert!(description.ends_with('.') && !description.contains("plimsoll sink"), "{description}");
        }
    }

    #[test]
    fn an_example_has_the_files_that_it_names_and_no_others() {
        let files = |name| Example::named(name).unwrap().files().map(|(path, _)| path).collect::<Vec<_>>();
        assert_eq!(files("csv-data"), ["data/users.csv"]);
        assert_eq!(files("grpc"), ["sink.proto"]);
        assert!(files("open-rate").is_empty());
        // Each is wanted by one at least.
        for (path, _) in FILES {
            assert!(EXAMPLES.iter().any(|example| example.text.contains(path)), "{path}");
        }
    }

    #[test]
    fn a_plan_names_a_server_of_the_examples_and_no_other() {
        let named = |server: &str| server_of(&format!("# A plan.\n# Server: plimsoll {server}\nrun: {{}}\n"));
        assert_eq!(named("sink"), Some("sink"));
        assert_eq!(named("target crud --drop 0 --fail 0"), Some("target crud --drop 0 --fail 0"));
        assert_eq!(
            (named("sink --truth-log /etc/passwd"), named("cluster run x"), server_of("")),
            (None, None, None)
        );
    }
}
