//! Files as teams have them, which are programs for a good part: each is imported right, is noted, so that
//! `--strict` refuses it, or is refused with its line.

use std::path::Path;

use plimsoll_import::{Imported, Note, gatling, jmeter, postman};
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

/// A test plan with this group, and a request in it. Groups of plugins are named with their packages.
fn group(kind: &str, properties: &[(&str, &str)], rest: &str) -> String {
    let properties: String = properties
        .iter()
        .map(|(name, value)| format!("<stringProp name=\"{name}\">{value}</stringProp>"))
        .collect();
    let request = "<HTTPSamplerProxy testclass=\"HTTPSamplerProxy\" testname=\"R\">\
                   <stringProp name=\"HTTPSampler.domain\">h</stringProp>\
                   <stringProp name=\"HTTPSampler.protocol\">http</stringProp>\
                   <stringProp name=\"HTTPSampler.path\">/a</stringProp>\
                   <stringProp name=\"HTTPSampler.method\">GET</stringProp></HTTPSamplerProxy><hashTree/>";
    format!(
        "<?xml version=\"1.0\"?>\n<jmeterTestPlan><hashTree><TestPlan testclass=\"TestPlan\" testname=\"P\"/><hashTree>\n\
         <x.{kind} testclass=\"x.{kind}\" testname=\"G\">{properties}{rest}</x.{kind}><hashTree>{request}</hashTree>\n\
         </hashTree></hashTree></jmeterTestPlan>\n"
    )
}

#[test]
fn groups_of_plugins_are_stages() {
    let row = |values: [u32; 5]| {
        let values = values.map(|value| format!("<stringProp name=\"v\">{value}</stringProp>")).concat();
        format!("<collectionProp name=\"r\">{values}</collectionProp>")
    };
    let table =
        |rows: String| format!("<collectionProp name=\"ultimatethreadgroupdata\">{rows}</collectionProp>");
    let stepping = [
        ("ThreadGroup.num_threads", "25"),
        ("Threads initial delay", "0"),
        ("Start users count", "10"),
        ("Start users count burst", "0"),
        ("Start users period", "30"),
        ("rampUp", "5"),
        ("flighttime", "60"),
        ("Stop users count", "10"),
        ("Stop users period", "1"),
    ];
    let target = [("TargetLevel", "50"), ("RampUp", "2"), ("Steps", "2"), ("Hold", "10"), ("Unit", "M")];
    let mut all = Vec::new();
    for (text, part) in [
        (
            group("SteppingThreadGroup", &stepping, ""),
            "user_stages: 1ms@0,4999ms@10,30s@10,5s@20,30s@20,2500ms@25,60s@25,1s@=15,1s@=5",
        ),
        (
            group("UltimateThreadGroup", &[], &table(row([10, 0, 30, 60, 10]))),
            "user_stages: 1ms@0,29999ms@10,60s@10,10s@0",
        ),
        (
            group("UltimateThreadGroup", &[], &table(row([10, 0, 10, 30, 0]) + &row([10, 10, 0, 10, 0]))),
            "user_stages: 1ms@0,9999ms@10,10s@=20,20s@=10",
        ),
        (group("ConcurrencyThreadGroup", &target, ""), "user_stages: 60s@25,660s@=50"),
        (group("ArrivalsThreadGroup", &target, ""), "stages: 60s@5/12s,660s@=5/6s"),
    ] {
        let imported = jmeter::import(text.as_bytes(), Path::new(""), &Named(&[]));
        all.extend(wrong("jmx", &text, &imported, &Right(&["GET /a"], &[part])));
    }
    assert_none_wrong(all);
    let timer = "<hashTree/><VariableThroughputTimer testclass=\"VariableThroughputTimer\" testname=\"T\">\
                 <collectionProp name=\"load_profile\"><collectionProp name=\"r\"><stringProp name=\"a\">1</stringProp>\
                 <stringProp name=\"b\">100</stringProp><stringProp name=\"c\">60</stringProp></collectionProp>\
                 </collectionProp></VariableThroughputTimer>";
    let text =
        group("ThreadGroup", &[("ThreadGroup.num_threads", "5")], "").replacen("<hashTree/>", timer, 1);
    let imported = jmeter::import(text.as_bytes(), Path::new(""), &Named(&[]));
    assert_none_wrong(
        wrong("jmx", &text, &imported, &Noted(&["GET /a"], "rates of requests for the whole run"))
            .into_iter()
            .collect(),
    );
    let plan = imported.unwrap().document.to_yaml();
    assert!(plan.contains("stages: 1ms@1,59999ms@100\n") && plan.contains("rate_of: requests\n"), "{plan}");
    for (text, words) in [
        (group("FreeFormArrivalsThreadGroup", &[], ""), "the load of a `FreeFormArrivalsThreadGroup` is not"),
        (group("UltimateThreadGroup", &[], &table(String::new())), "its table has no threads"),
        (group("ConcurrencyThreadGroup", &[("TargetLevel", "many")], ""), "`many` is not a whole number"),
    ] {
        let imported = jmeter::import(text.as_bytes(), Path::new(""), &Named(&[]));
        let shown = shown(&imported);
        assert!(shown.contains(words) && shown.contains("(line 3)"), "{words}: {shown}");
    }
}

#[test]
fn controllers_and_properties_of_jmeter() {
    let timed =
        [("ThreadGroup.num_threads", "5"), ("ThreadGroup.scheduler", "true"), ("ThreadGroup.duration", "60")];
    let plain = group("ThreadGroup", &timed, "");
    let request = &plain[plain.find("<HTTPSamplerProxy").unwrap()..plain.find("</hashTree>\n").unwrap()];
    let parallel = "<x.ParallelSampler testclass=\"x.ParallelSampler\" testname=\"P\"/><hashTree>";
    let twice = plain.replace(request, &format!("{parallel}{request}{request}</hashTree>"));
    let property = plain.replace(">h<", ">${__property(host,,${defHost})}<").replacen(
        "<x.ThreadGroup",
        "<Arguments testclass=\"Arguments\" testname=\"V\"><collectionProp name=\"Arguments.arguments\">\
         <elementProp name=\"defHost\" elementType=\"Argument\"><stringProp name=\"Argument.name\">defHost</stringProp>\
         <stringProp name=\"Argument.value\">10.0.0.1</stringProp></elementProp></collectionProp></Arguments><hashTree/>\n\
         <x.ThreadGroup",
        1,
    );
    let mut all = Vec::new();
    for (text, outcome) in [
        (&plain, Right(&["GET /a"], &["users: 5", "duration: 60s"])),
        (&twice, Right(&["GET /a", "GET /a"], &["parallel:"])),
        (&property, Noted(&["GET /a"], "the default of the property is taken")),
    ] {
        let imported = jmeter::import(text.as_bytes(), Path::new(""), &Named(&[]));
        all.extend(wrong("jmx", text, &imported, &outcome));
    }
    assert_none_wrong(all);
    let imported = jmeter::import(property.as_bytes(), Path::new(""), &Named(&[])).unwrap();
    assert!(lines(&imported).contains(&"server: http://10.0.0.1".to_owned()));
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
