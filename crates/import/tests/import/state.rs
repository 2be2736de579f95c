//! State that users or scenarios keep, share or count: each file is imported right, noted, or refused.

use std::path::Path;

use plimsoll_import::{artillery, gatling, jmeter, k6, locust, postman};
use serde_json::{Value, json};

use crate::import::migrated::Outcome::{Noted, Refused, Right};
use crate::import::migrated::{assert_none_wrong, wrong};
use crate::import::{Named, checked};

const PER_USER: &str = "each user counts its own iterations there";

#[test]
fn rows_by_number_of_k6() {
    let mut all = Vec::new();
    for (options, index, outcome) in [
        ("vus: 3, iterations: 9", "__ITER % ids.length", Noted(&["GET /${ids_2}"], PER_USER)),
        ("vus: 3, duration: '5s'", "__ITER % 2", Noted(&["GET /${ids_2}"], PER_USER)),
        ("vus: 3, duration: '5s'", "exec.vu.iterationInScenario % 2", Noted(&["GET /${ids_2}"], PER_USER)),
        ("stages: [{ duration: '5s', target: 4 }]", "__ITER % 2", Noted(&["GET /${ids_2}"], PER_USER)),
        ("vus: 1, iterations: 9", "__ITER % ids.length", Right(&["GET /${ids_2}"], &[])),
        (
            "vus: 3, iterations: 9",
            "exec.scenario.iterationInTest % ids.length",
            Right(&["GET /${ids_2}"], &[]),
        ),
        ("vus: 1, iterations: 9", "__ITER", Noted(&["GET /${ids_2}"], "after the last row the first one")),
        ("vus: 1, iterations: 2", "__ITER", Right(&["GET /${ids_2}"], &[])),
        ("vus: 2, iterations: 2", "exec.scenario.iterationInTest", Right(&["GET /${ids_2}"], &[])),
        ("vus: 1, iterations: 9", "__ITER % 1", Noted(&["GET /${ids_2}"], "all rows are taken in turn")),
        ("vus: 1, iterations: 9", "__ITER % later", Noted(&["GET /${ids_2}"], "all rows are taken in turn")),
        ("vus: 1, iterations: 9", "(__ITER + 1) % 2", Noted(&["GET /${ids_2}"], "takes the first row")),
        ("vus: 3, iterations: 9", "__VU % 2", Noted(&["GET /${ids_2}"], "users have no numbers")),
    ] {
        let text = format!(
            "import http from 'k6/http';\nimport exec from 'k6/execution';\n\
             export const options = {{ {options} }};\nconst ids = ['a', 'b'];\n\
             export default function () {{\nconst id = ids[{index}];\nhttp.get(`http://h/${{id}}`);\n}}\n"
        );
        all.extend(of_k6(&text, &outcome));
    }
    assert_none_wrong(all);
}

fn of_k6(text: &str, outcome: &crate::import::migrated::Outcome<'_>) -> Option<String> {
    let options = k6::Options { name: "script.js".to_owned(), ..k6::Options::default() };
    let files = Named(&[]);
    let imported =
        checked(k6::import(text.as_bytes(), &options, Path::new(""), &files), Path::new(""), &files);
    wrong("script.js", text, &imported, outcome)
}

const DRAWN: &str = "each user draws it once there, and each iteration here";

#[test]
fn module_state_of_k6() {
    let mut all = Vec::new();
    for (module, statements, outcome) in [
        ("const n = Math.random();", "http.get(`${B}/${n}`);", Noted(&["GET /${n}"], DRAWN)),
        ("const n = Math.floor(Math.random() * 9);", "http.get(`${B}/${n}`);", Noted(&["GET /${n}"], DRAWN)),
        ("const n = Date.now();", "http.get(`${B}/${n}`);", Noted(&["GET /${n}"], DRAWN)),
        ("const n = uuidv4();", "http.get(`${B}/${n}`);", Noted(&["GET /${n}"], DRAWN)),
        ("const n = `u${Date.now()}`;", "http.get(`${B}/${n}`);", Noted(&["GET /${n}"], DRAWN)),
        (
            "const n = new Date().toISOString();",
            "http.get(`${B}/${n}`);",
            Noted(&["GET /${n}"], "its value comes from a program"),
        ),
        ("const n = { id: uuidv4() };", "http.get(`${B}/${n.id}`);", Noted(&["GET /${id}"], DRAWN)),
        ("const n = [uuidv4()];", "http.get(`${B}/${n[0]}`);", Noted(&["GET /${n}"], DRAWN)),
        ("const n = randomItem(['a', 'b']);", "http.get(`${B}/${n}`);", Noted(&["GET /${n}"], DRAWN)),
        (
            "const n = ['a', 'b'][Math.floor(Math.random() * 2)];",
            "http.get(`${B}/${n}`);",
            Noted(&["GET /${row_2}"], DRAWN),
        ),
        ("const n = __VU;", "http.get(`${B}/${n}`);", Noted(&["GET /${sequence}"], "users have no numbers")),
        ("let n = 0;", "n++;\nhttp.get(`${B}/${n}`);", Refused(7, "keeps its value for the next iteration")),
        ("let n = 0;", "n += 1; if (n > 2) {\nhttp.get(`${B}/a`); }", Refused(7, "keeps its value")),
        ("const n = { c: 0 };", "n.c++;\nhttp.get(`${B}/${n.c}`);", Refused(7, "keeps its value")),
        ("const n = [];", "n.push(1);\nhttp.get(`${B}/${n.length}`);", Refused(7, "keeps its value")),
        (
            "const rare = Math.random() < 0.1;",
            "if (rare) {\nhttp.get(B + '/a'); }",
            Refused(7, "is not kept"),
        ),
    ] {
        let text = format!(
            "import http from 'k6/http';\n\
             import {{ uuidv4, randomItem }} from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';\n\
             const B = 'http://h';\n{module}\nexport default function () {{\n{statements}\n}}\n"
        );
        all.extend(of_k6(&text, &outcome));
    }
    // Within an iteration all is as it is there.
    for (statements, sent) in [
        ("const n = uuidv4(); http.get(`${B}/${n}`); http.get(`${B}/${n}`);", ["GET /${n}"; 2]),
        ("const f = () => Math.random(); http.get(`${B}/a`); sleep(f()); http.get(`${B}/a`);", ["GET /a"; 2]),
    ] {
        let text = format!(
            "import http from 'k6/http';\nimport {{ sleep }} from 'k6';\n\
             import {{ uuidv4 }} from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';\n\
             const B = 'http://h';\nexport default function () {{\n{statements}\n}}\n"
        );
        all.extend(of_k6(&text, &Right(&sent, &[])));
    }
    assert_none_wrong(all);
}

#[test]
fn module_state_of_locust() {
    const DRAWN: &str = "it is drawn once for the run there, and by each iteration here";
    let mut all = Vec::new();
    for (module, statements, outcome) in [
        ("N = random.randint(1, 9)", "self.client.get(f'/{N}')", Noted(&["GET /${N}"], DRAWN)),
        ("N = str(uuid.uuid4())", "self.client.get(f'/{N}')", Noted(&["GET /${N}"], DRAWN)),
        ("N = int(time.time())", "self.client.get(f'/{N}')", Noted(&["GET /${N}"], DRAWN)),
        ("N = random.choice(['a', 'b'])", "self.client.get(f'/{N}')", Noted(&["GET /${N}"], DRAWN)),
        ("N = 0", "global N\nN += 1\nself.client.get(f'/{N}')", Refused(10, "keeps its value")),
        ("N = [0]", "N[0] += 1\nself.client.get(f'/{N[0]}')", Refused(9, "keeps its value")),
        ("N = 1", "n = random.randint(1, 9)\nself.client.get(f'/{n}')", Right(&["GET /${n}"], &[])),
    ] {
        let body: String = statements.lines().map(|line| format!("        {line}\n")).collect();
        let text = format!(
            "import random, uuid, time\nfrom locust import *\n{module}\nclass U(HttpUser):\n    \
             host = 'http://h'\n    @task\n    def t(self):\n{body}"
        );
        let options = locust::Options { name: "l.py".to_owned(), ..locust::Options::default() };
        let files = Named(&[]);
        let imported =
            checked(locust::import(text.as_bytes(), &options, Path::new(""), &files), Path::new(""), &files);
        all.extend(wrong("l.py", &text, &imported, &outcome));
    }
    assert_none_wrong(all);
}

/// A collection with a folder that signs in and one that needs it.
fn two_folders(sign_in: Value, needs: Value, around: Value) -> Value {
    let mut collection = json!({
        "info": { "name": "c", "schema": "https://x/v2.1.0/c.json" },
        "item": [
            { "name": "Sign in", "item": [sign_in] },
            { "name": "Things", "item": [needs] },
        ],
    });
    if let (Some(collection), Some(around)) = (collection.as_object_mut(), around.as_object()) {
        collection.extend(around.clone());
    }
    collection
}

#[test]
fn folders_of_postman_share_sessions_and_variables() {
    let sign_in = |event: &str, script: &str, response: Value| {
        json!({
            "name": "in", "request": { "method": "POST", "url": "http://h/in" }, "response": response,
            "event": [{ "listen": event, "script": { "exec": [script] } }],
        })
    };
    let things = |url: &str| json!({ "name": "list", "request": { "method": "GET", "url": url } });
    let plain = || things("http://h/things");
    let set = |script: &str| sign_in("test", script, json!([]));
    let whole =
        |event: &str, script: &str| json!({ "event": [{ "listen": event, "script": { "exec": [script] } }] });
    let read = || things("http://h/{{tok}}");
    let saved = json!([{ "header": [{ "key": "Set-Cookie", "value": "s=1" }] }]);
    let jar = json!([{ "cookie": [{ "name": "s", "value": "1" }] }]);
    let note = "a session that a cookie of another folder begins";
    let mut wrong = Vec::new();
    for (case, collection, scenarios, noted) in [
        ("a saved cookie", two_folders(sign_in("test", "", saved), plain(), json!({})), 1, None),
        ("a saved jar", two_folders(sign_in("test", "", jar), plain(), json!({})), 1, None),
        (
            "a script on cookies",
            two_folders(
                set("pm.test('c', () => { pm.expect(pm.cookies.has('s')).to.be.true; });"),
                plain(),
                json!({}),
            ),
            1,
            None,
        ),
        ("nothing shown", two_folders(set(""), plain(), json!({})), 2, Some(note)),
        (
            "environment",
            two_folders(set("pm.environment.set('tok', pm.response.json().t);"), read(), json!({})),
            1,
            None,
        ),
        (
            "globals",
            two_folders(set("pm.globals.set('tok', pm.response.json().t);"), read(), json!({})),
            1,
            None,
        ),
        (
            "old call",
            two_folders(
                set("postman.setEnvironmentVariable('tok', JSON.parse(responseBody).t);"),
                read(),
                json!({}),
            ),
            1,
            None,
        ),
        (
            "an alias",
            two_folders(
                set("const env = pm.environment;\nenv.set('tok', pm.response.json().t);"),
                read(),
                json!({}),
            ),
            1,
            None,
        ),
        (
            "a computed name",
            two_folders(set("pm.environment.set(name, pm.response.json().t);"), read(), json!({})),
            1,
            None,
        ),
        (
            "a name with a slot",
            two_folders(set("pm.environment.set(`${x}ok`, pm.response.json().t);"), read(), json!({})),
            1,
            None,
        ),
        (
            "the collection's test",
            two_folders(set(""), read(), whole("test", "pm.environment.set('tok', pm.response.json().t);")),
            1,
            None,
        ),
        (
            "the collection's script in front",
            two_folders(set(""), read(), whole("prerequest", "pm.environment.set('tok', 'a');")),
            2,
            Some(note),
        ),
        (
            "the collection's expectation",
            two_folders(
                set(""),
                plain(),
                whole("test", "pm.test('ok', () => { pm.response.to.have.status(200); });"),
            ),
            2,
            Some(note),
        ),
    ] {
        let text = collection.to_string();
        let options = postman::Options::default();
        let files = Named(&[]);
        let imported =
            checked(postman::import(text.as_bytes(), &options, Path::new(""), &files), Path::new(""), &files)
                .unwrap_or_else(|problems| panic!("{case}: {problems}"));
        let found = imported.notes.iter().any(|known| known.to_string().contains(note));
        if imported.document.scenarios.len() != scenarios || found != noted.is_some() {
            wrong.push(format!("{case}: {:?}\n{}", imported.notes, imported.document.to_yaml()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n----\n"));
}

#[test]
fn sessions_of_gatling() {
    let mut all = Vec::new();
    for (save, condition, outcome) in [
        // Symptom: the default was empty.
        (
            ".withDefault(\"none\").saveAs(\"t\")",
            "doIfEquals(\"#{t}\", \"none\")",
            Right(&["GET /a", "GET /b"], &["default: none", "if: ${t} == \"none\""]),
        ),
        (
            ".withDefault(\"#{u}\").saveAs(\"t\")",
            "doIfEquals(\"#{t}\", \"none\")",
            Noted(&["GET /a", "GET /b"], "the default is not known before the run"),
        ),
        // Symptom: a value with a default exists always.
        (
            ".optional().saveAs(\"t\")",
            "doIf(\"#{t.exists()}\")",
            Right(&["GET /a", "GET /b"], &["default: \"\"", "if: not ${t} == \"\""]),
        ),
        (
            ".optional().saveAs(\"t\")",
            "doIf(\"#{t.isUndefined()}\")",
            Right(&["GET /a", "GET /b"], &["if: ${t} == \"\""]),
        ),
        (".saveAs(\"t\")", "doIf(\"#{t}\")", Right(&["GET /a", "GET /b"], &["if: ${t} == true"])),
    ] {
        let text = format!(
            "import static io.gatling.javaapi.core.CoreDsl.*;\nimport io.gatling.javaapi.core.*;\n\
             public class S extends Simulation {{\nScenarioBuilder scn = scenario(\"S\")\n\
             .exec(http(\"a\").get(\"/a\").check(jsonPath(\"$.t\"){save}))\n\
             .{condition}.then(exec(http(\"b\").get(\"/b\")));\n\
             {{ setUp(scn.injectOpen(atOnceUsers(3))).protocols(http.baseUrl(\"http://h\")); }}\n}}\n"
        );
        let options = gatling::Options { name: "S.java".to_owned() };
        let files = Named(&[]);
        let imported =
            checked(gatling::import(text.as_bytes(), &options, Path::new(""), &files), Path::new(""), &files);
        all.extend(wrong("S.java", &text, &imported, &outcome));
    }
    assert_none_wrong(all);
}

#[test]
fn threads_of_jmeter_keep_their_values() {
    let string = |name: &str, value: &str| format!("<stringProp name=\"{name}\">{value}</stringProp>");
    let request = |path: &str, below: &str| {
        format!(
            "<HTTPSamplerProxy testclass=\"HTTPSamplerProxy\" testname=\"R\">{}{}{}{}</HTTPSamplerProxy>\
             <hashTree>{below}</hashTree>",
            string("HTTPSampler.domain", "h"),
            string("HTTPSampler.protocol", "http"),
            string("HTTPSampler.path", path),
            string("HTTPSampler.method", "GET")
        )
    };
    let take = |name: &str| {
        format!(
            "<JSONPostProcessor testclass=\"JSONPostProcessor\" testname=\"J\">{}{}</JSONPostProcessor><hashTree/>",
            string("JSONPostProcessor.referenceNames", name),
            string("JSONPostProcessor.jsonPathExprs", "$.t")
        )
    };
    let only_if = |below: &str| {
        let condition = string("IfController.condition", "\"${t}\" == \"\"");
        format!(
            "<IfController testclass=\"IfController\" testname=\"I\">{condition}</IfController>\
             <hashTree>{below}</hashTree>"
        )
    };
    let cookies = |flag: &str| {
        format!(
            "<CookieManager testclass=\"CookieManager\" testname=\"C\"><boolProp name=\"CookieManager.{flag}\">true\
             </boolProp></CookieManager><hashTree/>"
        )
    };
    let mut all = Vec::new();
    for (below, outcome) in [
        // Symptom: a user of JMeter signs in once, and one of the plan in each iteration, without a word.
        (
            only_if(&request("/in", &take("t"))) + &request("/a", ""),
            Noted(&["GET /in", "GET /a"], "which a thread keeps for its next iteration"),
        ),
        (request("/in", &take("t")) + &only_if(&request("/a", "")), Right(&["GET /in", "GET /a"], &[])),
        (cookies("clearEachIteration") + &request("/${t}", ""), Right(&["GET /${t}"], &[])),
        (
            cookies("controlledByThreadGroup") + &request("/${t}", ""),
            Noted(&["GET /${t}"], "there the thread group decides"),
        ),
    ] {
        let text = format!(
            "<?xml version=\"1.0\"?>\n<jmeterTestPlan><hashTree><TestPlan testclass=\"TestPlan\" testname=\"P\">\
             <elementProp name=\"TestPlan.user_defined_variables\"><collectionProp name=\"Arguments.arguments\">\
             <elementProp name=\"t\">{}{}</elementProp></collectionProp></elementProp></TestPlan><hashTree>\
             <ThreadGroup testclass=\"ThreadGroup\" testname=\"G\">{}{}<boolProp \
             name=\"ThreadGroup.scheduler\">true</boolProp></ThreadGroup><hashTree>{below}</hashTree>\
             </hashTree></hashTree></jmeterTestPlan>\n",
            string("Argument.name", "t"),
            string("Argument.value", ""),
            string("ThreadGroup.num_threads", "5"),
            string("ThreadGroup.duration", "60"),
        );
        let files = Named(&[]);
        let imported = checked(jmeter::import(text.as_bytes(), Path::new(""), &files), Path::new(""), &files);
        all.extend(wrong("jmx", &text, &imported, &outcome));
    }
    assert_none_wrong(all);
}

/// Symptom: a value of JSON that is `null` counted as true.
#[test]
fn artillery_asks_for_values_that_are_true() {
    let text = "config: { target: http://h, phases: [ { duration: 1, arrivalCount: 1 } ] }\nscenarios:\n  - flow:\n      \
                - get: { url: /a, capture: { json: $.id, as: id, strict: false } }\n      \
                - get: { url: /b, ifTrue: id }\n";
    let files = Named(&[]);
    let imported = checked(artillery::import(text.as_bytes(), Path::new(""), &files), Path::new(""), &files);
    let condition = "if: not (${id} == \"\" or ${id} == false or ${id} == 0 or ${id} == \"null\")";
    let outcome = Right(&["GET /a", "GET /b"], &[condition]);
    assert_none_wrong(wrong("artillery", text, &imported, &outcome).into_iter().collect());
}
