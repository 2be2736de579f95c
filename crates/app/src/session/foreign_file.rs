//! Files of other tools, and files of this one that another command takes: recognised when they are not
//! understood as plans, so that the message says what to do, and does not list their unknown keys.

use std::path::Path;

use plimsoll_core::scripts::{imports_gatling, imports_k6, imports_locust};
use plimsoll_document::{Files as _, Problem};
use plimsoll_plan::Disk;

use crate::base::failure::Failure;

/// Bytes of a file that are examined. A longer file is a recording, which is recognised by its beginning.
const LOOKED_AT: usize = 1 << 20;

/// A kind of file: its name in messages, and the right command for it.
struct Kind {
    what: &'static str,
    /// With `{}` for the name of the file.
    advice: &'static str,
}

const OPENAPI: Kind =
    Kind { what: "an OpenAPI description", advice: "plimsoll import openapi {} > plan.yaml" };
const SWAGGER: Kind = Kind {
    what: "a Swagger 2 description",
    advice: "convert {} to OpenAPI 3 (https://converter.swagger.io), then: plimsoll import openapi FILE > plan.yaml",
};
const HAR: Kind = Kind { what: "a HAR recording", advice: "plimsoll import har {} > plan.yaml" };
const POSTMAN: Kind = Kind {
    what: "a Postman collection",
    advice: "plimsoll import postman {} > plan.yaml, with --environment FILE if it needs one",
};
const POSTMAN_ENVIRONMENT: Kind = Kind {
    what: "an environment of Postman",
    advice: "plimsoll import postman COLLECTION --environment {} > plan.yaml",
};
const ARTILLERY: Kind =
    Kind { what: "an Artillery script", advice: "plimsoll import artillery {} > plan.yaml" };
const JMETER: Kind = Kind { what: "a JMeter test plan", advice: "plimsoll import jmeter {} > plan.yaml" };
const K6: Kind = Kind { what: "a k6 script", advice: "plimsoll import k6 {} > plan.yaml" };
const LOCUST: Kind = Kind {
    what: "a Locust file",
    advice: "plimsoll import locust {} > plan.yaml, with --host URL if the file names no server",
};
const GATLING: Kind = Kind { what: "a Gatling simulation", advice: "plimsoll import gatling {} > plan.yaml" };
const LUA: Kind =
    Kind { what: "a script in Lua", advice: "a script of wrk runs with plimsoll run -s {} URL" };
const H2LOADRUNNER: Kind = Kind {
    what: "a configuration of h2loadrunner",
    advice: "plimsoll run --h2loadrunner {}, or plimsoll import h2loadrunner {} > plan.yaml",
};
const RESULT: Kind = Kind {
    what: "a result of Plimsoll",
    advice: "plimsoll show {} prints it, and plimsoll report {} draws it",
};
const CLUSTER: Kind = Kind {
    what: "a description of a cluster",
    advice: "plimsoll cluster check {}, then plimsoll cluster run {}",
};

/// Replaces the failure to read a plan by the kind of the file, if it belongs to another tool.
///
/// `names` are the arguments in place of plans and URLs.
pub(crate) fn explained<'a>(names: impl IntoIterator<Item = &'a str>, failure: Failure) -> Failure {
    let known = names.into_iter().find_map(|name| Some((name, recognized(name)?)));
    let Some((name, kind)) = known else { return failure };
    let problem = Problem::new(format!("`{}` is {}, and no plan", name.escape_debug(), kind.what));
    Failure::usage(problem.with_hint(kind.advice.replace("{}", name)))
}

/// The kind of a file of another tool; `None` for plans and unknown files.
fn recognized(name: &str) -> Option<Kind> {
    if name == "-" || name.contains("://") {
        return None;
    }
    let content = Disk.read(Path::new(name)).ok()?;
    let text = String::from_utf8_lossy(&content[..content.len().min(LOOKED_AT)]);
    let has = |is: fn(&str) -> bool| text.lines().any(is);
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "har" => Some(HAR),
        "jmx" => Some(JMETER),
        "lua" => Some(LUA),
        "js" | "mjs" | "ts" if has(imports_k6) => Some(K6),
        "py" if has(imports_locust) => Some(LOCUST),
        _ if text.contains("<jmeterTestPlan") => Some(JMETER),
        _ if has(imports_k6) => Some(K6),
        _ if has(imports_gatling) => Some(GATLING),
        _ if has(imports_locust) => Some(LOCUST),
        "json" => of_keys(&keys(&text)?, &text),
        "yaml" | "yml" => of_keys(&keys_of_yaml(&text), &text),
        _ => None,
    }
}

/// The members of a JSON object; nothing of one that is not whole.
fn keys(text: &str) -> Option<Vec<String>> {
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(members)) => Some(members.keys().cloned().collect()),
        // A recording may be longer than the examined part, and flow style is YAML.
        _ => Some(begun(text)),
    }
}

/// The first names of a text that begins like a JSON object.
fn begun(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).take(2).map(str::to_owned).collect()
}

/// The keys that begin lines of a YAML file.
fn keys_of_yaml(text: &str) -> Vec<String> {
    let key = |line: &str| {
        let (key, rest) = line.split_once(':')?;
        let is_key = rest.is_empty() || rest.starts_with([' ', '\r']);
        (is_key && !key.starts_with([' ', '#', '-'])).then(|| key.trim_matches(['"', '\'']).to_owned())
    };
    text.lines().filter_map(key).collect()
}

fn of_keys(keys: &[String], text: &str) -> Option<Kind> {
    let has = |key: &str| keys.iter().any(|known| known == key);
    match () {
        () if has("schema_version") && has("tool") => Some(RESULT),
        () if has("openapi") => Some(OPENAPI),
        () if has("swagger") => Some(SWAGGER),
        () if has("log") && text.contains("\"entries\"") => Some(HAR),
        () if has("info") && has("item") || text.contains("schema.getpostman.com") => Some(POSTMAN),
        () if has("values") && has("_postman_variable_scope") => Some(POSTMAN_ENVIRONMENT),
        // With `run`, the file is a plan that is about to be converted.
        () if has("config") && has("scenarios") && !has("run") => Some(ARTILLERY),
        () if has("nodes") => Some(CLUSTER),
        () if has("schema") && has("host") || has("max-concurrent-streams") => Some(H2LOADRUNNER),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_outermost_level() {
        assert_eq!(
            keys_of_yaml("# a: b\nopenapi: 3.0.0\n'info':\n  item: x\n- c: d\nurl:x\n"),
            ["openapi", "info"]
        );
        assert_eq!(keys("{\"log\": {\"entries\": []}}").unwrap(), ["log"]);
        assert_eq!(keys("{\"log\": {\"entries\": [").unwrap(), ["log", "entries"]);
    }

    /// Symptom: 200 lines of unknown keys, of a result that was taken for a plan.
    #[test]
    fn a_result_is_known_by_its_first_keys_however_long_it_is() {
        let text = "{\n  \"schema_version\": 1,\n  \"tool\": {\n    \"name\": \"plimsoll\"";
        let kind = of_keys(&keys(text).unwrap_or_default(), text);
        assert_eq!(kind.map(|kind| kind.what), Some("a result of Plimsoll"));
    }
}
