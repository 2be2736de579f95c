//! The examples of the repository, which are part of the program, with the files that they read.

use std::sync::OnceLock;

use serde_json::{Value, json};

/// An example: a plan that has a server to run against, which its second line names.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Heading that the example is listed under.
    pub group: &'static str,
    /// Name of the file, without the end.
    pub name: &'static str,
    /// Title in three to six words.
    pub title: &'static str,
    /// The plan file.
    pub text: &'static str,
    /// Paths and contents of the files that the plan reads, beside those of the core's examples.
    pub files: &'static [(&'static str, &'static str)],
}

macro_rules! examples {
    ($($group:literal => [$(($name:literal, $title:literal),)*],)*) => {
        &[$($(Example {
            group: $group,
            name: $name,
            title: $title,
            text: include_str!(concat!("../../../examples/", $name, ".yaml")),
            files: &[],
        },)*)*]
    };
}

/// The examples of the core, in the order in which they are shown.
const EXAMPLES: &[Example] = examples![
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
    files!["data/order.json", "data/products.jsonl", "data/users.csv", "scripts/sign.lua",];

/// The examples of extensions.
static ADDED: OnceLock<Vec<&'static Example>> = OnceLock::new();

/// Adds the examples of extensions, each behind the others of its group. The first call counts; before it,
/// and without one, there are those of the core.
pub fn add_examples(examples: impl IntoIterator<Item = &'static Example>) {
    // Tests of one process add the same ones.
    let _ = ADDED.set(examples.into_iter().collect());
}

/// All examples, those of extensions behind those of the core.
pub(crate) fn all() -> impl Iterator<Item = &'static Example> {
    EXAMPLES.iter().chain(ADDED.get().into_iter().flatten().copied())
}

/// Begin of the line that names the server of an example.
const SERVER: &str = "# Server: plimsoll ";

impl Example {
    /// The example of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        all().find(|example| example.name == name)
    }

    /// The example that this is the text of, without a change.
    pub(crate) fn of_text(text: &str) -> Option<&'static Self> {
        all().find(|example| example.text == text)
    }

    /// The files that it reads: their paths from its own folder on, and what is in them.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        let text = self.text;
        FILES.iter().copied().filter(move |(path, _)| text.contains(path)).chain(self.files.iter().copied())
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
    let mut known =
        all().filter_map(|example| example.text.lines().find_map(|line| line.strip_prefix(SERVER)));
    known.find(|known| *known == wanted)
}

/// The examples as the page lists them: group by group.
pub(crate) fn list() -> Value {
    let mut groups: Vec<&str> = Vec::new();
    for example in all() {
        if !groups.contains(&example.group) {
            groups.push(example.group);
        }
    }
    let in_groups = groups.into_iter().flat_map(|group| all().filter(move |example| example.group == group));
    let examples = in_groups.map(|example| {
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
    fn every_example_has_a_short_title_and_its_server() {
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
        let own = Example { files: &[("own.txt", "")], ..*Example::named("csv-data").unwrap() };
        let of_both = own.files().map(|(path, _)| path);
        assert_eq!(of_both.collect::<Vec<_>>(), ["data/users.csv", "own.txt"]);
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
