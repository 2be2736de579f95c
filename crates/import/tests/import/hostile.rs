//! For any source, an importer ends with a plan or with problems.

use std::path::Path;

use plimsoll_import::{
    artillery, curl, gatling, h2loadrunner, har, jmeter, k6, locust, openapi, postman, vegeta,
};
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::import::checked::syntax_error;
use crate::import::{Named, checked, checked_alone, shown};

/// Words that the formats have a meaning for, and some that they have none for.
const WORDS: &[&str] = &[
    "schema",
    "host",
    "http",
    "Scenarios",
    "Requests",
    "uri",
    "typeOfAction",
    "input",
    "fromResponseHeader",
    "method",
    "GET",
    "payload",
    "additonalHeaders",
    "a: b",
    "${a}",
    "$$${a}",
    "response-match",
    "headers",
    "header-name",
    ":status",
    "matchType",
    "RegexMatch",
    "[a",
    "value-pickers",
    "source",
    "regexp",
    "save-to-variable",
    "user-id-variable-in-path-and-data",
    "user-id-range-end",
    "range-based-variables",
    "variable-name",
    "variable-range-end",
    "weight",
    "name",
    "log",
    "entries",
    "request",
    "url",
    "http://h/",
    "startedDateTime",
    "2026-01-01T00:00:00Z",
    "time",
    "postData",
    "params",
    "text",
    "openapi",
    "3.0.0",
    "servers",
    "paths",
    "/{a}",
    "get",
    "parameters",
    "in",
    "path",
    "query",
    "$ref",
    "#/paths",
    "requestBody",
    "content",
    "application/json",
    "type",
    "object",
    "properties",
    "allOf",
    "items",
    "-",
    "request-per-second",
    "total-requests",
    "clients",
    "\u{e4}",
    "",
    "body",
    "header",
    "two.csv",
    "info",
    "item",
    "variable",
    "key",
    "value",
    "{{a}}",
    "{{",
    "auth",
    "bearer",
    "event",
    "listen",
    "test",
    "script",
    "exec",
    "pm.environment.set('a', pm.response.json().b);",
    "pm.test('a', () => { pm.response.to.have.status(200) })",
    "mode",
    "raw",
    "formdata",
    "config",
    "target",
    "phases",
    "duration",
    "arrivalRate",
    "rampTo",
    "pause",
    "scenarios",
    "flow",
    "loop",
    "over",
    "count",
    "think",
    "capture",
    "as",
    "json",
    "$.a",
    "expect",
    "statusCode",
    "ifTrue",
    "fields",
    "payload",
];

fn word() -> impl Strategy<Value = String> {
    proptest::sample::select(WORDS).prop_map(str::to_owned)
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        word().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((word(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A configuration that is right but for one part.
fn configuration() -> impl Strategy<Value = Value> {
    (tree(), proptest::sample::select(WORDS), 0..3_usize).prop_map(|(part, key, place)| {
        let mut value = serde_json::json!({"schema": "http", "host": "h", "Scenarios": [{"name": "s",
            "Requests": [{"uri": {"input": "/${a}"}, "method": "GET"}]}]});
        let pointer = ["", "/Scenarios/0", "/Scenarios/0/Requests/0"][place];
        let object = value.pointer_mut(pointer).and_then(Value::as_object_mut);
        object.expect("it is an object").insert(key.to_owned(), part);
        value
    })
}

fn all(text: &[u8]) {
    let files = Named(&[("two.csv", b"x,y\n1,2\n")]);
    let here = Path::new("");
    shown(&checked(h2loadrunner::import(text, here, &files, &syntax_error), here, &files));
    shown(&checked_alone(har::import(text, &har::Options::default())));
    shown(&checked_alone(openapi::import(text, &openapi::Options::default())));
    shown(&checked_alone(vegeta::import(text, &vegeta::Options::default())));
    shown(&checked(
        postman::import(text, &postman::Options { environment: Some(text.to_vec()) }, here, &files),
        here,
        &files,
    ));
    shown(&checked(artillery::import(text, here, &files), here, &files));
    shown(&checked(jmeter::import(text, here, &files), here, &files));
    shown(&checked(k6::import(text, &k6::Options::default(), here, &files), here, &files));
    for name in ["A.java", "A.scala", "a.js"] {
        let options = gatling::Options { name: name.to_owned() };
        shown(&checked(gatling::import(text, &options, here, &files), here, &files));
    }
    shown(&checked(locust::import(text, &locust::Options::default(), here, &files), here, &files));
    if let Ok(text) = std::str::from_utf8(text) {
        shown(&checked(curl::import(text, here, &files), here, &files));
    }
}

/// A collection and a script of Artillery that are right but for one part.
fn behaviour() -> impl Strategy<Value = Value> {
    (tree(), proptest::sample::select(WORDS), 0..8_usize).prop_map(|(part, key, place)| {
        let request = serde_json::json!({"name": "r", "request": {"method": "POST", "url": {"raw":
        "http://h/{{a}}"},
            "body": {"mode": "raw", "raw": "{{a}}"}}, "event": [{"listen": "test", "script": {"exec":
            "a"}}]});
        let step = serde_json::json!({"get": {"url": "/{{a}}", "capture": {"json": "$.a", "as": "a"}}});
        let mut value = serde_json::json!({"info": {"name": "c"}, "item": [{"name": "f", "item": [request]}],
            "config": {"target": "http://h", "phases": [{"duration": 1, "arrivalRate": 1}]},
            "scenarios": [{"flow": [step]}]});
        let pointer = [
            "",
            "/item/0",
            "/item/0/item/0",
            "/item/0/item/0/request",
            "/config",
            "/scenarios/0",
            "/scenarios/0/flow/0",
            "/scenarios/0/flow/0/get",
        ][place];
        let object = value.pointer_mut(pointer).and_then(Value::as_object_mut);
        object.expect("it is an object").insert(key.to_owned(), part);
        value
    })
}

/// Elements of JMeter in each other, in any order.
fn elements() -> impl Strategy<Value = String> {
    let property = proptest::sample::select(vec![
        "<stringProp name='HTTPSampler.domain'>h</stringProp>",
        "<stringProp name='HTTPSampler.path'>${a}/b</stringProp>",
        "<stringProp name='ThreadGroup.num_threads'>${__P(n,3)}</stringProp>",
        "<stringProp name='ThreadGroup.ramp_time'>5</stringProp>",
        "<boolProp name='ThreadGroup.scheduler'>true</boolProp>",
        "<stringProp name='ThreadGroup.duration'>9</stringProp>",
        "<stringProp name='ConstantTimer.delay'>5</stringProp>",
        "<stringProp name='RegexExtractor.regex'>(a)</stringProp>",
        "<stringProp name='RegexExtractor.refname'>a</stringProp>",
        "<stringProp name='JSON_PATH'>$.a[*]</stringProp>",
        "<stringProp name='LoopController.loops'>3</stringProp>",
        "<stringProp name='IfController.condition'>\"${a}\" == \"b\"</stringProp>",
        "<stringProp name='filename'>two.csv</stringProp>",
        "<doubleProp><name>throughput</name><value>60</value></doubleProp>",
        "text &amp; <![CDATA[more]]>",
        "",
    ]);
    let kind = proptest::sample::select(vec![
        "ThreadGroup",
        "HTTPSamplerProxy",
        "HTTPSamplerProxy",
        "LoopController",
        "IfController",
        "ConstantTimer",
        "RegexExtractor",
        "JSONPathAssertion",
        "ResponseAssertion",
        "CSVDataSet",
        "ConstantThroughputTimer",
        "ConfigTestElement",
        "CookieManager",
        "TestAction",
        "OtherThing",
    ]);
    let leaf = (kind, proptest::collection::vec(property, 0..5), any::<bool>()).prop_map(
        |(kind, properties, enabled)| {
            format!("<{kind} testname='{kind}' enabled='{enabled}'>{}</{kind}>", properties.concat())
        },
    );
    let tree = leaf.prop_recursive(5, 40, 6, |inner| {
        (inner.clone(), proptest::collection::vec(inner, 0..5))
            .prop_map(|(element, below)| format!("{element}<hashTree>{}</hashTree>", below.concat()))
    });
    proptest::collection::vec(tree, 0..4).prop_map(|below| {
        let group = "<ThreadGroup><stringProp name='ThreadGroup.num_threads'>2</stringProp></ThreadGroup>";
        let below = below.concat();
        format!(
            "<jmeterTestPlan><hashTree><TestPlan/><hashTree>{below}{group}<hashTree>{below}</hashTree>\
             </hashTree></hashTree></jmeterTestPlan>"
        )
    })
}

/// Files that were cut off in the middle.
#[test]
fn beginnings_of_examples_are_imported_or_refused() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for tool in ["postman", "artillery", "jmeter", "k6", "gatling", "locust"] {
        for entry in std::fs::read_dir(tests.join(tool)).expect("the folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                continue;
            }
            let text = std::fs::read(path).expect("the file");
            // Thirds end in the middle of something in all files.
            for third in 1..=3 {
                all(&text[..text.len() * third / 3]);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_behaviour_is_imported_or_refused(value in behaviour()) {
        all(value.to_string().as_bytes());
    }

    #[test]
    fn any_elements_are_imported_or_refused(document in elements(), end in 0.0..1.2_f64) {
        let end = (document.len() as f64 * end) as usize;
        all(document.as_bytes().get(..end).unwrap_or(document.as_bytes()));
    }

    #[test]
    fn any_script_is_imported_or_refused(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "pm.test('a', ", "() => ", "function () ", "{", "}", ")", "(", ";", "\n",
                "pm.response.to.have.status(200)",
                "pm.expect(", "pm.response.json()", ".a", "[0]", "['b']", ").to.eql(", "5", "'c'",
                "pm.environment.set('d', ",
                "let e = ", "e", "?.", "//", "/*", "*/", "/f/", "`g${", "\"", "'", "\\", "if (",
                "tests['h'] = ", " === ",
                "pm.response.to.", "not.", "+", ",", "\u{e4}",
            ]),
            0..40,
        ),
    ) {
        let event = serde_json::json!([
            {"listen": "test", "script": {"exec": parts.concat()}},
            {"listen": "prerequest", "script": {"exec": parts.concat()}},
        ]);
        let value = serde_json::json!({"info": {}, "item": [{"name": "r", "request": "http://h/", "event":
        event}]});
        all(value.to_string().as_bytes());
    }

    #[test]
    fn any_statements_are_imported_or_refused(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "http.get('http://h/'", "http.post(`http://h/${", "}`", ")", "(", ", ", ";", "\n", "{", "}",
                "[",
                "]", "check(r, { a: (r) => r.status === 200 })", "group('g', () => {", "});", "const r \
                 = ", "r",
                ".json('a')", ".a", "sleep(1)", "Math.random()", " * ", " + ", "if (", " else ", "for \
                 (const x of [1, 2]) ",
                "for (let i = 0; i < 3; i++) ", "while (", "return", "f(", "const f = (x) => ", "__VU",
                "__ENV.A || 'b'",
                "JSON.stringify(", "open('two.csv')", " ? ", " : ", "'${a}'", "\u{e4}", "...", "await ",
            ]),
            0..30,
        ),
    ) {
        let script = format!(
            "import http from 'k6/http'; import {{ check, group, sleep }} from 'k6';\n\
             export default function () {{ http.get('http://h/');\n{}\n}}", parts.concat()
        );
        all(script.as_bytes());
    }

    #[test]
    fn any_actions_are_imported_or_refused(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                ".exec(", "http(\"a\")", ".get(\"/#{b}\")", ".post(", "\"/\"", ")", "(", ", ", ".", "{", "}", ";",
                "\n", ".check(status().is(200))", ".check(", "jsonPath(\"$.b\")", ".saveAs(\"b\")", ".pause(1)",
                ".repeat(2, \"n\")", ".on(", "scn", "b", " -> ", "=> ", "session", ".set(\"b\", 1)", ".during(5)",
                ".forever()", ".randomSwitch()", "percent(50)", ".then(", "60.0", ".doIf(\"#{b}\")", ".feed(",
                "csv(\"two.csv\")", ".circular()", ".group(\"g\")", ".injectOpen(atOnceUsers(1))", "\"${b}\"",
                "\u{e4}", "\"\"\"", " + ", " * ", "5.seconds", "new A()",
            ]),
            0..30,
        ),
    ) {
        let actions = parts.concat();
        for text in [
            format!("class A extends Simulation {{ ScenarioBuilder scn = scenario(\"s\")\n{actions};\n\
                     {{ setUp(scn.injectOpen(rampUsers(5).during(5))).protocols(http.baseUrl(\"http://h\")); }} }}"),
            format!("class A extends Simulation {{\nval scn = scenario(\"s\")\n{actions}\n\
                     setUp(scn.inject(rampUsers(5) during 5)).protocols(http.baseUrl(\"http://h\")) }}"),
            format!("simulation((setUp) => {{ const scn = scenario(\"s\")\n{actions};\n\
                     setUp(scn.injectOpen(rampUsers(5).during(5))).protocols(http.baseUrl(\"http://h\")); }});"),
        ] {
            all(text.as_bytes());
        }
    }

    #[test]
    fn any_tasks_are_imported_or_refused(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "self.client.get('/a'", "self.client.post('/a', json=", "f'/{", "}'", ")", "(", ", ",
                "\n        ",
                "\n            ", "\n    @task(2)\n    def b(self):\n        ", "[", "]", "{", "r = ",
                "r", ".json()['a']", ".status_code", " == 200", "if ", ":", "else:", "for x in range(3):",
                "while ",
                "with self.client.get('/w', catch_response=True) as r:", "r.failure('x')", "r.success()",
                "self.a",
                " = ", "random.choice([1, 2])", "time.sleep(1)", "self.interrupt()", "lambda: ", "return",
                "%s' % ",
                "open('two.csv')", "'${a}'", "\u{e4}", "*", "**", " not in ", " and ", "None", "[x for x in ",
                "assert ", "super().on_start()", "**{'headers': {'a': 'b'}}", "yield", "class C(TaskSet):",
            ]),
            0..30,
        ),
    ) {
        let file = format!(
            "import random, time\nfrom locust import *\n\nclass U(HttpUser):\n    host = 'http://h'\n    \
             wait_time = between(1, 2)\n\n    @task\n    def a(self):\n        self.client.get('/')\n        \
             {}\n",
            parts.concat()
        );
        all(file.as_bytes());
    }

    #[test]
    fn any_bytes_are_imported_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        all(&bytes);
    }

    #[test]
    fn any_tree_is_imported_or_refused(tree in tree()) {
        all(tree.to_string().as_bytes());
    }

    #[test]
    fn any_configuration_is_imported_or_refused(value in configuration()) {
        all(value.to_string().as_bytes());
    }

    #[test]
    fn any_words_of_curl_are_imported_or_refused(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "-X", "-d", "-H", "a: b", "http://h/", "-F", "a=@two.csv;type=", "-G", "-Z", "--data-urlencode",
                "=", "@", "@two.csv", "-", "--", "-sd", "--json", "-u", ":", "-b", "\u{e4}", "", "-\u{e4}x", "-T",
            ]),
            0..8,
        ),
    ) {
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        shown(&checked(curl::import_words(&words, Path::new(""), &Named(&[("two.csv", b"x")])), Path::new(""), &Named(&[("two.csv", b"x")])));
    }

    #[test]
    fn any_lines_of_targets_are_imported_or_refused(text in "((GET|put|@|a:|#| \
        |http://h/|\\{|\"url\"|\n){1,4}\n){0,6}") {
        shown(&checked_alone(vegeta::import(text.as_bytes(), &vegeta::Options { steps: true })));
    }
}
