//! Files as teams have them, which are programs for a good part: each is imported right, is noted, so that
//! `--strict` refuses it, or is refused with its line.

use std::path::Path;

use plimsoll_import::{Imported, Note, gatling, postman};
use plimsoll_plan::Problems;

use crate::import::{Named, shown};

/// What has to become of a file.
#[derive(Debug)]
enum Outcome<'o> {
    /// These requests in this order, with these lines in the plan, and no note.
    Right(&'o [&'o str], &'o [&'o str]),
    /// These requests, and a note with these words.
    Noted(&'o [&'o str], &'o str),
    /// A problem at this line, with these words.
    Refused(usize, &'o str),
}
use Outcome::{Noted, Refused, Right};

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// Lines of a plan without what is in front of them.
fn lines(imported: &Imported) -> Vec<String> {
    let yaml = imported.document.to_yaml();
    yaml.lines().map(|line| line.trim_start().trim_start_matches("- ").to_owned()).collect()
}

/// `GET /path`, in the order of the plan.
fn requests(lines: &[String]) -> Vec<String> {
    let request = |line: &String| {
        let (method, path) = line.split_once(": ")?;
        METHODS.contains(&method).then(|| format!("{} {path}", method.to_ascii_uppercase()))
    };
    lines.iter().filter_map(request).collect()
}

/// A description of what is wrong, unless this became of the file.
fn wrong(
    name: &str,
    text: &str,
    imported: &Result<Imported, Problems>,
    outcome: &Outcome<'_>,
) -> Option<String> {
    let is_right = match (imported, outcome) {
        (Ok(imported), Right(sent, parts)) => {
            let lines = lines(imported);
            // A script without options does not say how long it goes on.
            let is_note = |note: &&Note| note.said != "options" && note.at != "run";
            imported.notes.iter().filter(is_note).count() == 0
                && requests(&lines) == *sent
                && parts.iter().all(|part| lines.iter().any(|line| line == part))
        }
        (Ok(imported), Noted(sent, words)) => {
            requests(&lines(imported)) == *sent
                && imported.notes.iter().any(|note| note.to_string().contains(words))
        }
        (Err(problems), Refused(line, words)) => {
            let at = format!("{name}:{line}: ");
            problems.iter().any(|problem| problem.message.starts_with(&at) && problem.message.contains(words))
        }
        _ => false,
    };
    (!is_right).then(|| format!("{outcome:?}\n{text}\n{}", shown(imported)))
}

fn assert_none_wrong(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n----\n"));
}

#[test]
fn folders_that_share_a_variable_are_one_sequence() {
    let collection = |name: &str| {
        format!(
            r#"{{"info": {{"name": "c", "schema": "https://x/v2.1.0/c.json"}}, "item": [
            {{"name": "Sign in", "item": [{{"name": "in", "event": [{{"listen": "test", "script": {{"exec":
            ["pm.collectionVariables.set('tok', pm.response.json().token);"]}}}}],
            "request": {{"method": "POST", "url": "http://h/in"}}}}]}},
            {{"name": "Things", "item": [{{"name": "list", "request": {{"method": "GET",
            "header": [{{"key": "A", "value": "Bearer {{{{{name}}}}}"}}], "url": "http://h/things"}}}}]}}]}}"#
        )
    };
    for (name, scenarios, part) in [("tok", 1, "A: Bearer ${tok}"), ("other", 2, "A: Bearer ${other}")] {
        let text = collection(name);
        let options = postman::Options::default();
        let imported = postman::import(text.as_bytes(), &options, Path::new(""), &Named(&[])).unwrap();
        assert_eq!(imported.document.scenarios.len(), scenarios, "{}", imported.document.to_yaml());
        let lines = lines(&imported);
        assert_eq!(requests(&lines), ["POST /in", "GET /things"]);
        assert!(lines.iter().any(|line| line == part), "{lines:?}");
        // Nothing gives the other one a value.
        assert_eq!(imported.notes.is_empty(), name == "tok", "{:?}", imported.notes);
    }
}

#[test]
fn simulations_of_gatling() {
    let java = |field: &str| {
        format!(
            "import static io.gatling.javaapi.core.CoreDsl.*;\nimport io.gatling.javaapi.core.*;\n\
             public class S extends Simulation {{\n\
             private static final ScenarioBuilder {field} = scenario(\"S\").exec(http(\"s\").get(\"/session\"));\n\
             {{ setUp({field}.injectOpen(atOnceUsers(3))).protocols(http.baseUrl(\"http://h\")); }}\n}}\n"
        )
    };
    let mut all = Vec::new();
    for name in ["scn", "scenario"] {
        let text = java(name);
        let options = gatling::Options { name: "S.java".to_owned() };
        let imported = gatling::import(text.as_bytes(), &options, Path::new(""), &Named(&[]));
        all.extend(wrong(
            "S.java",
            &text,
            &imported,
            &Right(&["GET /session"], &["users: 3", "iterations: 3"]),
        ));
    }
    assert_none_wrong(all);
    let text = "package demo\nimport demo.Conf._\nimport io.gatling.core.Predef._\nclass S extends Simulation {\n\
                val scn = scenario(\"a\").exec(http(\"x\").get(\"/x\"))\n\
                setUp(scn.inject(rampUsers(Users) during (Span))).protocols(http.baseUrl(\"http://h\"))\n}\n";
    let options = gatling::Options { name: "S.scala".to_owned() };
    let imported = gatling::import(text.as_bytes(), &options, Path::new(""), &Named(&[]));
    assert_none_wrong(
        wrong("S.scala", text, &imported, &Refused(6, "is not an injection profile")).into_iter().collect(),
    );
}
