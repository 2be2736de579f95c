//! Collections of Postman.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_import::postman::{Options, import};
use plimsoll_plan::Disk;
use serde_json::{Value, json};

use crate::import::{Named, checked, shown};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postman")
}

#[test]
fn examples() {
    for name in [
        "auth", "basic", "bodies", "chained", "crud", "dynamic", "envelope", "login", "nested", "scripts",
        "settings", "v2_0",
    ] {
        let text = std::fs::read(folder().join(format!("{name}.json"))).unwrap();
        let environment = (name == "login")
            .then(|| std::fs::read(folder().join("shop.postman_environment.json")).expect("the environment"));
        let imported = checked(import(&text, &Options { environment }, &folder(), &Disk), &folder(), &Disk);
        insta::assert_snapshot!(name, shown(&imported));
    }
}

fn imported(value: &Value) -> String {
    shown(&checked(
        import(value.to_string().as_bytes(), &Options::default(), Path::new(""), &Named(&[("body", b"x")])),
        Path::new(""),
        &Named(&[("body", b"x")]),
    ))
}

fn collection(items: Value) -> Value {
    json!({"info": {"name": "c", "schema":
    "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
           "item": items})
}

/// A request whose test script is this.
fn tested(script: &str) -> String {
    let script = json!([{"listen": "test", "script": {"exec": script}}]);
    imported(&collection(json!([{"name": "r", "request": "http://h/", "event": script}])))
}

#[test]
fn usual_forms_of_tests_become_expectations() {
    for (script, expect) in [
        ("pm.response.to.have.status(201)", "status:\n            - 201"),
        ("pm.test('a', function() { pm.response.to.have.status(200); })", "status:\n            - 200"),
        ("pm.test('a', () => pm.response.to.have.status('No Content'))", "status:\n            - 204"),
        ("pm.expect(pm.response.code).to.eql(404);", "status:\n            - 404"),
        (
            "pm.expect(pm.response.code).to.be.oneOf([200,201])",
            "status:\n            - 200\n            - 201",
        ),
        ("pm.response.to.not.have.status(200)", "status:\n            - \"201-599\""),
        ("tests['ok'] = responseCode.code === 200;", "status:\n            - 200"),
        ("tests['ok'] = responseBody.has('yes');", "contains: \"yes\""),
        ("pm.response.to.have.header('X-A', 'b')", "X-A:\n              equals: b"),
        ("pm.expect(pm.response.headers.get('X-A')).to.exist", "X-A:\n              exists: true"),
        ("pm.expect(pm.response.text()).to.not.include('error')", "contains: error\n              not: true"),
        (
            "let j = pm.response.json(); pm.expect(j.a[0]['b c']).to.eql(5)",
            "/a/0/b c:\n              equals: 5",
        ),
        ("const {a} = pm.response.json(); pm.expect(pm.response.json().a.b).to.equal(true)", "/a/b:"),
        ("pm.expect(pm.response.json()).to.have.property('a', 'b')", "/a:\n              equals: b"),
        ("pm.expect(pm.response.json().a).to.be.a('string')", "/a:\n              exists: true"),
        ("pm.expect(pm.response.responseTime).to.be.below(200)", "that: max<200ms"),
    ] {
        let text = tested(script);
        assert!(text.contains(expect), "{script}: {text}");
    }
}

#[test]
fn values_that_scripts_set_are_extracted_or_set() {
    for (script, becomes) in [
        ("pm.environment.set('t', pm.response.json().token)", "t:\n            json: /token"),
        ("pm.globals.set(\"t\", JSON.parse(responseBody).a[1])", "t:\n            json: /a/1"),
        ("postman.setGlobalVariable('t', pm.response.headers.get('ETag'))", "t:\n            header: ETag"),
        ("pm.collectionVariables.set('t', pm.cookies.get('sid'))", "t:\n            cookie: sid"),
        ("pm.environment.set('t', `a`)", "set:\n          t: a"),
        ("pm.environment.set('t', 'u-' + Date.now())", "t: u-${timestamp_ms}"),
        ("pm.environment.set('t', Math.floor(Math.random() * 6) + 1)", "t: ${random_int(1, 6)}"),
        ("pm.environment.set('t', pm.environment.get('a'))", "t: ${a}"),
        ("pm.environment.set('t', 1 + 2)", "the variable is not set"),
    ] {
        let text = tested(script);
        assert!(text.contains(becomes), "{script}: {text}");
    }
}

/// No part of a script is dropped without a note of its line.
#[test]
fn everything_else_in_scripts_is_noted_with_its_line() {
    for (script, line, note) in [
        ("\n\nfoo();", 3, "`foo()`: scripts are not carried out"),
        (
            "pm.sendRequest('http://h/', (e, r) => {\n pm.environment.set('a', 1); });",
            1,
            "requests of scripts",
        ),
        ("if (x) {\n pm.response.to.have.status(200);\n}", 1, "conditions, loops and functions"),
        ("console.log(1)", 1, "nothing is logged"),
        ("pm.test('a', () => {\n  pm.expect(a).to.eql(1);\n});", 2, "scripts are not carried out"),
        ("pm.expect(pm.response.json().a).to.eql({b: 1});", 1, "scripts are not carried out"),
        ("pm.execution.setNextRequest(null)", 1, "in order"),
        ("pm.response.to.have.status(200);\npm.response.to.have.status(201);", 2, "said already"),
        (
            "pm.expect(pm.response.json().a).to.eql(1);\npm.expect(pm.response.json().a).to.eql(2);",
            2,
            "one expectation",
        ),
    ] {
        let text = tested(script);
        let at = format!("note: r: test script, line {line}: ");
        assert!(text.contains(&at) && text.contains(note), "{script}: {text}");
    }
}

#[test]
fn the_environment_wins_over_the_collection() {
    let mut value = collection(json!([{"name": "r", "request": "{{base}}/{{a}}"}]));
    value["variable"] = json!([{"key": "base", "value": "http://h"}, {"key": "a", "value": "1"}]);
    let environment = json!({"values": [{"key": "base", "value": "http://g"}]}).to_string().into_bytes();
    let options = Options { environment: Some(environment) };
    let text = shown(&checked(
        import(value.to_string().as_bytes(), &options, Path::new(""), &Disk),
        Path::new(""),
        &Disk,
    ));
    assert!(text.contains("server: http://g\n") && text.contains("a: 1\n"), "{text}");
}

#[test]
fn files_of_a_form_are_parts_of_their_own() {
    let body = json!({"mode": "formdata", "formdata": [
        {"key": "n", "type": "file", "src": ["body", "/gone/b.png"]},
        {"key": "t", "value": "{}", "contentType": "application/json"}]});
    let header = json!([{"key": "Content-Type", "value": "multipart/form-data"}]);
    let items = json!([{"name": "Up", "request": {"method": "POST", "url": "http://h/", "header": header, "body": body}}]);
    let written = imported(&collection(items));
    let lines: Vec<&str> = written.lines().map(str::trim_start).collect();
    let begin = lines.iter().position(|line| *line == "multipart:").expect("a form");
    assert_eq!(
        lines[begin + 1..begin + 9],
        [
            "- name: \"n\"",
            "file: body",
            "- name: \"n\"",
            "value: \"\"",
            "filename: b.png",
            "- name: t",
            "value: \"{}\"",
            "content_type: application/json"
        ],
        "{written}"
    );
    // It would be without a boundary.
    assert!(!written.contains("multipart/form-data"), "{written}");
    assert!(
        written.contains("`/gone/b.png`: the file is not there: an empty one is sent; name yours as `file`")
    );
}

#[test]
fn a_file_that_is_there_is_the_body() {
    let body = json!({"mode": "file", "file": {"src": "body"}});
    let request = json!({"method": "PUT", "url": "http://h/", "body": body});
    let text = imported(&collection(json!([{"name": "r", "request": request}])));
    assert!(text.contains("body_file: body\n") && !text.contains("note"), "{text}");
}

#[test]
fn mistakes() {
    let mut text = String::new();
    for value in [
        json!([]),
        json!({}),
        json!({"requests": [], "name": "v1"}),
        json!({"info": {"schema": "https://schema.getpostman.com/json/collection/v1.0.0/collection.json"},
        "item": []}),
        collection(json!([])),
        collection(json!({})),
        collection(json!([{"name": "r"}])),
        collection(json!([{"name": "r", "request": "{{nowhere}}/a"}])),
        collection(json!([{"name": "r", "request": {"url": "ftp://h/", "method": "GET"}}])),
        collection(json!([{"name": "r", "request": {"url": "http://h/", "method": "G T"}}])),
        collection(
            json!([{"name": "r", "request": {"url": "http://h/", "header": [{"key": "a b", "value": "c"}]}}]),
        ),
        collection(json!([{"name": "r", "request": {"url": {}, "method": 5, "event": []}}])),
    ] {
        text.push_str(&format!("# {value}\n{}\n", imported(&value)));
    }
    let options = Options { environment: Some(b"{".to_vec()) };
    let value = collection(json!([{"name": "r", "request": "http://h/"}]));
    let with = shown(&checked(
        import(value.to_string().as_bytes(), &options, Path::new(""), &Disk),
        Path::new(""),
        &Disk,
    ));
    text.push_str(&format!("# with an environment that is not JSON\n{with}"));
    insta::assert_snapshot!(text);
}

/// Deep folders are refused where JSON is read, and end no stack.
#[test]
fn deep_folders_and_long_scripts_end() {
    let deep = format!("{}{}", "{\"item\":[".repeat(10_000), "]}".repeat(10_000));
    assert!(
        shown(&checked(
            import(deep.as_bytes(), &Options::default(), Path::new(""), &Disk),
            Path::new(""),
            &Disk
        ))
        .starts_with("error: ")
    );
    for script in [
        "pm.test('a', () => ".repeat(20_000),
        "(".repeat(200_000),
        "\n".repeat(500_000),
        "a,\n".repeat(100_000),
        format!("a{}.b", "\n".repeat(300_000)),
        "{".repeat(200_000),
        "pm.environment.set('a', ".repeat(20_000) + "1",
    ] {
        tested(&script);
    }
}

/// Two folders with the same credentials share a token.
#[test]
fn a_token_of_oauth_2_is_fetched_in_the_setup() {
    let oauth2 = |more: &[(&str, &str)]| {
        let pairs = [
            ("grant_type", "client_credentials"),
            ("accessTokenUrl", "{{login}}/oauth/token"),
            ("clientId", "load"),
            ("clientSecret", "{{secret}}"),
            ("scope", "read write"),
            ("accessToken", "expired long ago"),
        ];
        let all: BTreeMap<_, _> = pairs.iter().chain(more).copied().collect();
        let values: Vec<Value> = all.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
        json!({"type": "oauth2", "oauth2": values})
    };
    let folder = |name: &str, auth: Value| {
        let item = json!([{"name": "r", "request": "http://api.test/r"}]);
        json!({"name": name, "auth": auth, "item": item})
    };
    let password = [
        ("grant_type", "password_credentials"),
        ("username", "u"),
        ("password", "p&q"),
        ("client_authentication", "body"),
        ("headerPrefix", "Token"),
    ];
    let folders = [
        folder("a", oauth2(&[])),
        folder("b", oauth2(&[])),
        folder("c", oauth2(&password)),
        folder("d", oauth2(&[("grant_type", "authorization_code")])),
    ];
    let mut all = collection(json!(folders));
    let variable = |key: &str, value: &str| json!({"key": key, "value": value});
    all["variable"] = json!([variable("login", "https://login.test"), variable("secret", "s3")]);
    insta::assert_snapshot!(imported(&all));
}

/// Layouts of a collection of a login, which sets `token`, and of items, which read it.
const LAYOUTS: [&str; 4] = ["folder, folder", "folder, request", "request, folder", "inner folder, folder"];

/// A collection of one of the layouts, of the requests that log in and read.
fn laid_out(layout: &str, login: &Value, reader: &Value) -> Value {
    let folder = |name: &str, items: &Value| json!({"name": name, "item": items});
    collection(match layout {
        "folder, folder" => json!([folder("Auth", &json!([login])), folder("Items", &json!([reader]))]),
        "folder, request" => json!([folder("Auth", &json!([login])), reader]),
        "request, folder" => json!([login, folder("Items", &json!([reader]))]),
        _ => {
            let inner = folder("Inner", &json!([login]));
            json!([folder("Auth", &json!([inner])), folder("Items", &json!([reader]))])
        }
    })
}

/// A request that sets `token` from its response. Credentials that read the token are not its own.
fn login() -> Value {
    let script = "pm.environment.set('token', pm.response.json().token)";
    json!({
        "name": "Login",
        "request": {"method": "POST", "url": "http://h/login", "auth": {"type": "noauth"}},
        "event": [{"listen": "test", "script": {"exec": [script]}}],
    })
}

/// Credentials of every kind, with the token in one of their parameters.
fn all_credentials() -> Vec<Value> {
    let all = [
        ("bearer", "token"),
        ("basic", "password"),
        ("apikey", "value"),
        ("digest", "username"),
        ("oauth2", "accessToken"),
        ("hawk", "authKey"),
        ("awsv4", "sessionToken"),
    ];
    let auth = |(kind, key): (&str, &str)| {
        let list = json!([{"key": "key", "value": "x-key"}, {"key": key, "value": "{{token}}"}]);
        [json!({"type": kind, kind: list}), json!({"type": kind, kind: {"key": "x-key", key: "{{token}}"}})]
    };
    all.into_iter().flat_map(auth).collect()
}

/// Checks that a collection becomes one scenario, which logs in first and reads its own token.
fn assert_one_sequence(case: &str, value: &Value) {
    let text = imported(value);
    assert_eq!(text.matches("steps:").count(), 1, "{case}: {text}");
    assert!(!text.contains("nothing gives it a value"), "{case}: {text}");
    let place = |name: &str| text.find(&format!("name: {name}")).expect("a step of that name");
    assert!(place("Login") < place("Read"), "{case}: {text}");
}

/// The half of the iterations only logged in, and the others were refused with 401, when the credentials were
/// those of the collection.
#[test]
fn folders_that_share_a_token_are_one_sequence_wherever_it_is_read() {
    for layout in LAYOUTS {
        let plain = json!({"name": "Read", "request": "http://h/items"});
        // Credentials of the request, of its folder, of the collection.
        for auth in all_credentials() {
            let own = json!({"name": "Read", "request": {"url": "http://h/items", "auth": auth}});
            assert_one_sequence(&format!("{layout}, {auth}"), &laid_out(layout, &login(), &own));
            let mut inherited = laid_out(layout, &login(), &plain);
            inherited["auth"] = auth.clone();
            assert_one_sequence(&format!("{layout}, collection {auth}"), &inherited);
            if layout.ends_with("folder") {
                let mut folders = laid_out(layout, &login(), &plain);
                folders["item"][1]["auth"] = auth.clone();
                assert_one_sequence(&format!("{layout}, folder {auth}"), &folders);
            }
        }
        let body = |body: Value| json!({"method": "POST", "url": "http://h/", "body": body});
        let script = |listen: &str, exec: Value| json!([{"listen": listen, "script": {"exec": exec}}]);
        for (place, request, event) in [
            ("URL", json!("http://h/{{token}}"), json!([])),
            ("query", json!({"url": {"raw": "http://h/?t={{token}}"}}), json!([])),
            (
                "header",
                json!({"url": "http://h/", "header": [{"key": "a", "value": "{{token}}"}]}),
                json!([]),
            ),
            ("body", body(json!({"mode": "raw", "raw": "{{token}}"})), json!([])),
            (
                "form",
                body(json!({"mode": "urlencoded", "urlencoded": [{"key": "a", "value": "{{token}}"}]})),
                json!([]),
            ),
            (
                "script before",
                json!("http://h/"),
                script("prerequest", json!(["pm.variables.set('a',", "  pm.environment.get(", "'token'));"])),
            ),
            (
                "script after",
                json!("http://h/"),
                script("test", json!("pm.expect(pm.response.json().t).to.eql(pm.globals.get('token'))")),
            ),
        ] {
            let reader = json!({"name": "Read", "request": request, "event": event});
            assert_one_sequence(&format!("{layout}, {place}"), &laid_out(layout, &login(), &reader));
        }
        let mut variable = laid_out(layout, &login(), &json!({"name": "Read", "request": "http://h/{{t}}"}));
        variable["variable"] = json!([{"key": "t", "value": "{{token}}"}]);
        assert_one_sequence(&format!("{layout}, value of a variable"), &variable);
        // The script of the collection sets the token, for the request that has one in its response.
        let mut bare = login();
        bare["event"] = json!([]);
        let read = json!({"name": "Read", "request": "http://h/{{token}}"});
        let mut around = laid_out(layout, &bare, &read);
        around["event"] = login()["event"].clone();
        let text = imported(&around);
        assert_eq!(text.matches("steps:").count(), 1, "{layout}, script of the collection: {text}");
    }
}

/// Folders that share nothing are scenarios of their own, in the order of the collection.
#[test]
fn folders_that_share_no_variable_stay_apart_in_their_order() {
    let bearer = json!({"type": "bearer", "bearer": [{"key": "token", "value": "{{token}}"}]});
    let unused =
        json!({"type": "basic", "basic": [{"key": "username", "value": "u"}], "bearer": bearer["bearer"]});
    let set = |code: &str| json!([{"listen": "prerequest", "script": {"exec": [code]}}]);
    for layout in LAYOUTS {
        let own = |auth: &Value| json!({"name": "Read", "request": {"url": "http://h/items", "auth": auth}});
        let header = json!([{"key": "a", "value": "{{token}}", "disabled": true}]);
        let mut of_collection = laid_out(layout, &login(), &own(&json!({"type": "noauth"})));
        of_collection["auth"] = bearer.clone();
        let mut each = laid_out(layout, &login(), &json!({"name": "Read", "request": "http://h/{{now}}"}));
        each["event"] = set("pm.variables.set('now', Date.now())");
        let commented =
            json!({"name": "Read", "request": "http://h/", "event": set("// pm.environment.get('token')")});
        for (case, value) in [
            ("credentials of another kind", laid_out(layout, &login(), &own(&unused))),
            ("none instead of those of the collection", of_collection),
            (
                "a header that is off",
                laid_out(
                    layout,
                    &login(),
                    &json!({"name": "Read", "request": {"url": "http://h/", "header": header}}),
                ),
            ),
            ("a comment", laid_out(layout, &login(), &commented)),
            ("a value that every request gets", each),
        ] {
            let text = imported(&value);
            assert_eq!(text.matches("steps:").count(), 2, "{layout}, {case}: {text}");
            let place = |name: &str| text.find(&format!("name: {name}")).expect("a step of that name");
            assert!(place("Login") < place("Read"), "{layout}, {case}: {text}");
        }
    }
}
