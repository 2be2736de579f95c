//! Formats of other tools, and how a text is recognised as one.

use plimsoll_core::scripts::{imports_gatling, imports_k6, imports_locust};
use serde::Deserialize;
use serde_json::Value;

/// A format that `plimsoll import` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImportKind {
    Curl,
    Har,
    #[serde(rename = "openapi")]
    OpenApi,
    H2loadrunner,
    Vegeta,
    Postman,
    Artillery,
    #[serde(rename = "jmeter")]
    JMeter,
    K6,
    Gatling,
    Locust,
}

impl ImportKind {
    /// Returns the name of the format on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Curl => "curl",
            Self::Har => "har",
            Self::OpenApi => "openapi",
            Self::H2loadrunner => "h2loadrunner",
            Self::Vegeta => "vegeta",
            Self::Postman => "postman",
            Self::Artillery => "artillery",
            Self::JMeter => "jmeter",
            Self::K6 => "k6",
            Self::Gatling => "gatling",
            Self::Locust => "locust",
        }
    }

    /// Recognises a text, by its content and by the name of its file; `None` if it could be anything.
    pub(crate) fn of(name: &str, text: &str) -> Option<Self> {
        let text = text.trim_start();
        if text.starts_with("curl ") || text.starts_with("$ curl ") {
            return Some(Self::Curl);
        }
        if name.to_ascii_lowercase().ends_with(".har") {
            return Some(Self::Har);
        }
        if text.starts_with('{') {
            return of_json(text);
        }
        if text.contains("<jmeterTestPlan") {
            return Some(Self::JMeter);
        }
        for (is, kind) in [
            (imports_k6 as fn(&str) -> bool, Self::K6),
            (imports_gatling, Self::Gatling),
            (imports_locust, Self::Locust),
        ] {
            if text.lines().any(is) {
                return Some(kind);
            }
        }
        let has_line = |begin: &str| text.lines().any(|line| line.starts_with(begin));
        if has_line("openapi:") {
            return Some(Self::OpenApi);
        }
        if has_line("config:") && has_line("scenarios:") {
            return Some(Self::Artillery);
        }
        let mut words = text.lines().next().unwrap_or_default().split_whitespace();
        let is_method = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase());
        let begins_with_method = words.next().is_some_and(is_method);
        (begins_with_method && words.next().is_some_and(|url| url.contains("://"))).then_some(Self::Vegeta)
    }
}

fn of_json(text: &str) -> Option<ImportKind> {
    // Targets of vegeta in JSON are an object for each line.
    let first = serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()?;
    let has = |name: &str| first.get(name).is_some();
    if first.pointer("/log/entries").is_some() {
        Some(ImportKind::Har)
    } else if first.pointer("/info/schema").is_some() && has("item") {
        Some(ImportKind::Postman)
    } else if has("config") && has("scenarios") {
        Some(ImportKind::Artillery)
    } else if has("openapi") {
        Some(ImportKind::OpenApi)
    } else if has("method") && has("url") {
        Some(ImportKind::Vegeta)
    } else if has("base-uri") || has("base_uri") || has("scenarios") || has("Scenario") || has("host") {
        Some(ImportKind::H2loadrunner)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_recognised() {
        for (name, text, kind) in [
            ("", "curl https://a/ -H 'x: y'", Some(ImportKind::Curl)),
            ("a.har", "{}", Some(ImportKind::Har)),
            ("a.json", "{\"log\": {\"entries\": []}}", Some(ImportKind::Har)),
            ("a.json", "{\"openapi\": \"3.1.0\"}", Some(ImportKind::OpenApi)),
            ("a.yaml", "# of a shop\nopenapi: 3.0.3\npaths: {}", Some(ImportKind::OpenApi)),
            ("targets", "GET http://a/\nx: y\n", Some(ImportKind::Vegeta)),
            ("targets", "{\"method\":\"GET\",\"url\":\"http://a/\"}\n{\"x\":1}", Some(ImportKind::Vegeta)),
            ("a.json", "{\"base-uri\": \"http://a\"}", Some(ImportKind::H2loadrunner)),
            ("a.json", "{\"info\": {\"schema\": \"x\"}, \"item\": []}", Some(ImportKind::Postman)),
            ("a.yml", "config:\n  target: http://a\nscenarios:\n  - flow: []\n", Some(ImportKind::Artillery)),
            ("a.jmx", "<?xml version=\"1.0\"?>\n<jmeterTestPlan version=\"1.2\">", Some(ImportKind::JMeter)),
            ("a.js", "// a shop\nimport http from 'k6/http';\n", Some(ImportKind::K6)),
            ("a.js", "import { k6 } from './k6.js';\n", None),
            ("A.scala", "package a\nimport io.gatling.core.Predef._\n", Some(ImportKind::Gatling)),
            ("a.ts", "import { http } from '@gatling.io/http';\n", Some(ImportKind::Gatling)),
            ("A.java", "// as io.gatling does\nimport java.util.*;\n", None),
            ("a.py", "import time\nfrom locust import HttpUser, task\n", Some(ImportKind::Locust)),
            ("a.py", "import locusts\n", None),
            ("a.json", "{\"x\": 1}", None),
            ("a.txt", "hello", None),
            ("a.txt", "", None),
            ("a.json", "{", None),
        ] {
            assert_eq!(ImportKind::of(name, text), kind, "{text}");
        }
    }
}
