//! Scripts of k6.

use std::path::{Path, PathBuf};

use plimsoll_import::k6::{Options, import};
use plimsoll_plan::Disk;

use crate::import::{Named, checked, checked_alone, shown};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/k6")
}

fn options(name: &str) -> Options {
    Options { name: name.to_owned(), ..Options::default() }
}

#[test]
fn examples() {
    for file in [
        "arrivals.js",
        "batch.js",
        "csv.js",
        "extraction.js",
        "form.js",
        "get.js",
        "login_flow.js",
        "loops.js",
        "methods.js",
        "modules.js",
        "post_json.js",
        "random.js",
        "scenarios.js",
        "setup_teardown.js",
        "several.js",
        "shared_array.js",
        "stages.js",
        "typed.ts",
        "unsupported.js",
    ] {
        let text = std::fs::read(folder().join(file)).unwrap();
        let name = file.split('.').next().unwrap_or_default();
        insta::assert_snapshot!(
            name,
            shown(&checked(import(&text, &options(file), &folder(), &Disk), &folder(), &Disk))
        );
    }
}

fn imported(text: &str) -> String {
    let files = Named(&[("two.csv", b"x,y\n1,2\n"), ("list.json", b"[1, 2]")]);
    shown(&checked(import(text.as_bytes(), &options("s.js"), Path::new(""), &files), Path::new(""), &files))
}

/// Lines without what is in front of them.
fn flat(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_start())).collect()
}

/// The output for a script whose function has these statements.
fn of(statements: &str) -> String {
    imported(&format!(
        "import http from 'k6/http';\nimport {{ check, group, sleep, fail }} from 'k6';\n\
         import {{ randomIntBetween, randomItem, uuidv4 }}\n from 'https://jslib.k6.io/k6-utils/1/i.js';\n\
         export default function () {{\n{statements}\n}}\n"
    ))
}

fn with_options(options: &str) -> String {
    imported(&format!(
        "import http from 'k6/http';\nexport const options = {options};\n\
         export default function () {{ http.get('http://h/'); }}\n\
         export function other() {{ http.get('http://h/other'); }}\n"
    ))
}

#[test]
fn loads_are_courses() {
    for (options, course) in [
        ("{ vus: 5, duration: '1m' }", "run:\nduration: 60s\nusers: 5\n"),
        ("{ vus: 5, iterations: 20 }", "iterations: 20\nusers: 5\n"),
        ("{ iterations: 3, duration: '90s' }", "duration: 90s\niterations: 3\nusers: 1\n"),
        ("{ stages: [{ duration: '10s', target: 5 }] }", "user_stages: 1ms@1,9999ms@5\n"),
        (
            "{ vus: 3, stages: [{ duration: '10s', target: 3 }, { duration: '5s', target: 0 }] }",
            "user_stages: 10s@3,5s@0\n",
        ),
        (
            "{ stages: [{ duration: '10s', target: 1 }, { duration: 0, target: 9 }, { duration: '1m', \
             target: 9 }] }",
            "user_stages: 10s@1,60s@=9\n",
        ),
        (
            "{ scenarios: { a: { executor: 'constant-arrival-rate', rate: 90, timeUnit: '1m', duration: \
             '5s' } } }",
            "duration: 5s\nrate: 3/2s\n",
        ),
        (
            "{ scenarios: { a: { executor: 'ramping-arrival-rate', stages: [{ duration: '4s', target: 8 \
             }] } } }",
            "stages: 1ms@0,3999ms@8\n",
        ),
        (
            "{ scenarios: { a: { executor: 'per-vu-iterations', vus: 4, iterations: 5 } } }",
            "iterations: 20\nusers: 4\n",
        ),
        (
            "{ scenarios: { a: { executor: 'constant-arrival-rate', rate: 4, duration: '5s' },\n\
           b: { executor: 'constant-arrival-rate', rate: 1, duration: '5s', exec: 'other' } } }",
            "duration: 5s\nrate: 5\n",
        ),
        (
            "{ scenarios: { a: { executor: 'constant-vus', vus: 1, duration: '10s' },\n\
           b: { executor: 'constant-vus', vus: 1, duration: '5s', startTime: '5s', exec: 'other' } } }",
            "user_stages: 5s@1,5s@=2\n",
        ),
        ("{ vus: 'many' }", "error: options.vus: `many` is not a number from 0\n"),
        ("{ duration: 'long' }", "error: options.duration: `long` is not a time\n"),
        (
            "{ scenarios: { a: { executor: 'constant-vus', duration: '5s', exec: 'none' } } }",
            "error: options.scenarios.a: there is no function `none`\n",
        ),
        (
            "{ scenarios: { a: { executor: 'slow' } } }",
            "error: s.js:1: there is no request that can be taken over\n",
        ),
        ("{ vus: __ENV.USERS, duration: '5s' }", "error: options.vus: `__ENV.USERS` has no value\n"),
        ("{ vus: __ENV.USERS || 7, duration: '5s' }", "users: 7\n"),
    ] {
        let text = with_options(options);
        assert!(flat(&text).contains(course), "{options}: {text}");
    }
}

#[test]
fn checks_are_expectations() {
    for (check, expectation) in [
        ("(r) => r.status === 201", "status:\n- 201\n"),
        ("(r) => r.status == 200 || r.status == 404", "status:\n- 200\n- 404\n"),
        ("(r) => r.status >= 200 && r.status < 300", "status:\n- \"2xx\"\n"),
        ("(r) => r.status !== 500", "status:\n- \"200-499\"\n- \"501-599\"\n"),
        ("(r) => [200, 201].includes(r.status)", "status:\n- \"200-201\"\n"),
        ("function (r) { return r.status === 200; }", "status:\n- 200\n"),
        ("(r) => r.body.indexOf('x') !== -1", "body:\n- contains: x\n"),
        ("(r) => r.body.startsWith('x')", "body:\n- starts: x\n"),
        ("(r) => r.body.match(/a+b/i)", "regex: (?i)a+b\n"),
        ("(r) => !r.body.includes('x')", "not: true\n"),
        ("(r) => r.json('a.0.b') === 5", "$.a[0][?@ == $.a[0].b && @ == 5]:\nexists: true\n"),
        ("(r) => r.json().a.b === 'x'", "/a/b:\nequals: x\n"),
        ("(r) => JSON.parse(r.body).a !== undefined", "/a:\nexists: true\n"),
        (
            "(r) => r.json('ok')",
            "$[?@ == $.ok && @ != null && @ != false && @ != 0 && @ != \"\"]:\nexists: true\n",
        ),
        ("(r) => r.json().length > 0", "/0:\nexists: true\n"),
        ("(r) => r.headers['Content-Type'].includes('json')", "Content-Type:\ncontains: json\n"),
        ("(r) => r.timings.duration < 200", "the time of a response is not checked one by one"),
        ("(r) => r.tls_version === 'x'", "nothing in a plan is the same as the check \"c\""),
        ("(r) => r.json('a.#(b==1).c') === 1", "plans have no such selector"),
    ] {
        let text = of(&format!("const res = http.get('http://h/');\ncheck(res, {{ c: {check} }});"));
        assert!(flat(&text).contains(expectation), "{check}: {text}");
    }
}

#[test]
fn values_are_followed_as_far_as_they_are_known() {
    for (statements, expected) in [
        ("const a = 'x'; http.get('http://h/' + a + 1 + 2);", "get: /x12\n"),
        ("http.get(`http://h/${1 + 2 * 3}/${'a,b'.split(',')[1].toUpperCase()}`);", "get: /7/B\n"),
        (
            "const { a, ...rest } = { a: 1, b: 2 }; http.get(`http://h/${a}${Object.keys(rest).join('')}`);",
            "get: /1b\n",
        ),
        ("const f = (x, y = 'z') => `/${x}${y}`; http.get('http://h' + f('a'));", "get: /az\n"),
        ("let n = 1; n += 2; n++; http.get(`http://h/${n}`);", "get: /4\n"),
        ("http.get(`http://h/${true ? 'yes' : 'no'}`);", "get: /yes\n"),
        ("http.get(`http://h/a b?c=d e&ä`);", "get: /a%20b?c=d%20e&%C3%A4\n"),
        ("http.get('http://h/$' + uuidv4());", "get: /${dollar}${uuid}\n"),
        ("http.post('http://h/', '$' + '{x}');", "body: $${x}\n"),
        (
            "const x = randomIntBetween(3, 9); http.get(`http://h/${x}/${x}`);",
            "set:\nx: ${random_int(3, 9)}\n",
        ),
        ("http.get(`http://h/${Math.floor(Math.random() * 6) + 1}`);", "get: /${random_int(1, 6)}\n"),
        ("http.get(`http://h/${randomItem(['a', 'b'])}`);", "get: /${pick(a, b)}\n"),
        ("http.get('http://h/?q=' + encodeURIComponent(uuidv4() + '&'));", "get: /?q=${uuid}%26\n"),
        (
            "const res = http.get('http://h/'); const id = res.json('a.id'); http.get(`http://h/${id}`);",
            "extract:\nid:\njson: /a/id\n",
        ),
        ("const res = http.get('http://h/'); http.get(res.headers.Location);", "get: ${location}\n"),
        (
            "const res = http.get('http://h/'); http.get(`http://h/${res.cookies.sid[0].value}`);",
            "cookie: sid\n",
        ),
        ("sleep(2);\nhttp.get('http://h/');", "- think: 2s\n"),
        ("http.get('http://h/');\nsleep(Math.random() * 2 + 1);", "think:\nuniform:\n- 1s\n- 3s\n"),
        ("group('a', () => group('b', () => { http.get('http://h/x?y=1'); }));", "name: \"a / b: GET /x\"\n"),
        (
            "if (Math.random() < 0.25) { http.get('http://h/a'); } else { http.get('http://h/b'); }",
            "if: ${random_float(0, 1, 9)} < 0.25\n",
        ),
        (
            "const n = randomIntBetween(1, 3); for (let i = 0; i < n; i++) { http.get('http://h/'); }",
            "repeat: ${turns}\n",
        ),
        (
            "const res = http.get('http://h/'); if (!check(res, { ok: (r) => r.status === 200 })) { \
             return; }\nhttp.get('http://h/2');",
            "steps:\n- get: /\nexpect:\nstatus:\n- 200\n- get: /2\non_failure: continue\n",
        ),
        ("http.get('/relative');", "error: s.js:6: `http.get('/relative')`: it names no server\n"),
        (
            "http.get(__ENV.HOST + '/x');",
            "error: s.js:6: `http.get(__ENV.HOST + '/x')`: `__ENV.HOST`, with which the URL begins, has \
             no value\n",
        ),
        (
            "http.get('ftp://h/x');",
            "error: s.js:6: `ftp://h` is not a URL: the scheme `ftp` is not http or https\n",
        ),
    ] {
        let text = of(statements);
        assert!(flat(&text).contains(expected), "{statements}\n{text}");
    }
}

#[test]
fn one_scenario_or_values_of_the_environment_are_chosen() {
    let script = "import http from 'k6/http';\n\
        export const options = { scenarios: { a: { executor: 'constant-vus', vus: 2, duration: '5s' },\n\
        b: { executor: 'constant-arrival-rate', rate: 2, duration: '5s', exec: 'b' } } };\n\
        export default function () { http.get(`${__ENV.BASE}/a`); }\n\
        export function b() { http.get('http://i/b'); }";
    let run = |scenario: Option<&str>, base: &str| {
        let mut options = options("s.js");
        options.scenario = scenario.map(str::to_owned);
        options.environment.insert("BASE".to_owned(), base.to_owned());
        shown(&checked_alone(import(script.as_bytes(), &options, Path::new(""), &Named(&[]))))
    };
    let script_with_default = script.replace("__ENV.BASE}", "__ENV.BASE || 'http://default'}");
    let mut given = options("s.js");
    given.environment.insert("BASE".to_owned(), "http://given".to_owned());
    let given =
        shown(&checked_alone(import(script_with_default.as_bytes(), &given, Path::new(""), &Named(&[]))));
    assert!(given.contains("server: ${env(BASE, http://given)}\n"), "{given}");
    let both = run(None, "http://h");
    assert!(
        both.contains("server: ${env(BASE, http://h)}\n")
            && both.contains("`b`: a plan has one kind of load"),
        "{both}"
    );
    let open = run(Some("b"), "http://h");
    assert!(open.contains("rate: 2\n") && open.contains("get: /b\n"), "{open}");
    let none = run(Some("c"), "http://h");
    assert!(
        none.starts_with("error: options.scenarios: there is no scenario `c`\nhint: its scenarios: a, b\n"),
        "{none}"
    );
}

#[test]
fn mistakes() {
    let mut text = String::new();
    for script in [
        "",
        "export default function () {}",
        "const x = ;",
        "import http from 'k6/http';\nexport default function () {\n  http.get('http://h/';\n}",
        "import http from 'k6/http';\nexport function other() { http.get('http://h/'); }",
        "import http from 'k6/http';\nexport default function () { http.request('A B', 'http://h/'); }",
        "import http from 'k6/http';\nexport default () => { http.post('http://h/', open('missing')); };",
        "import http from 'k6/http';\nconst a = JSON.parse(open('two.csv'));\nexport default () => \
         http.get('http://h/');",
    ] {
        text.push_str(&format!("# {}\n{}\n", script.replace('\n', " "), imported(script)));
    }
    insta::assert_snapshot!(text);
}

/// Functions that call each other, and loops in loops, would be followed without an end.
#[test]
fn scripts_that_go_on_for_ever_are_bounded() {
    for statements in [
        "const f = (n) => { http.get('http://h/'); f(n + 1); f(n + 1); }; f(0);",
        "for (let i = 0; ; i++) { http.get(`http://h/${i}`); }",
        "for (let i = 0; i < 1e9; i++) for (let j = 0; j < 1e9; j++) for (let k = 0; k < 1e9; k++) \
         http.get(`http://h/${i}${j}${k}`);",
        "let s = 'a'; for (let i = 0; i < 1000; i++) { s = s + s; } http.get('http://h/' + s);",
        "let a = [1]; for (let i = 0; i < 1000; i++) { a = a.concat(a); } http.get('http://h/' + a.length);",
        "let a = [1]; for (let i = 0; i < 1000; i++) { a = [...a, ...a]; } http.get('http://h/' + a.length);",
        "let a = [1]; for (let i = 0; i < 100; i++) { a = [a, a]; } http.get('http://h/' + a);",
        "let a = {}; for (let i = 0; i < 1000; i++) { a = { a }; } http.post('http://h/', JSON.stringify(a));",
        "let a = ''; for (let i = 0; i < 99; i++) { a = JSON.stringify(a); } http.post('http://h/', a);",
        "let a = uuidv4(); for (let i = 0; i < 1000; i++) { a = `${a}${a}`; } http.get(`http://h/${a}`);",
        "let s = 'ab'; for (let i = 0; i < 1000; i++) { s = s.replaceAll('a', s); } http.get('http://h/' + s);",
        "let s = ['ab']; for (let i = 0; i < 99; i++) { s = [s.join('a'), s.join('b')]; } http.get(s[0]);",
        "const r = http.get('http://h/'); let t = r.json('a'); for (let i = 0; i < 99; i++) { t = t || t; }\n\
         if (t) { http.get('http://h/2'); }",
        "const r = http.get('http://h/'); let t = check(r, {}); for (let i = 0; i < 99; i++) {\n\
         t = check(r, { a: t, b: t }); }",
        "const f = () => { { { { { { { { { { { { f(); } } } } } } } } } } } }; f();",
    ] {
        let text = of(statements);
        assert!(text.len() < 64 << 20, "{statements}: {}", text.len());
    }
}

/// The parser and the reader of its tree are recursive: nesting takes stack.
#[test]
fn nesting_is_bounded() {
    let nested =
        |open: &str, close: &str, times: usize| of(&format!("{}{}", open.repeat(times), close.repeat(times)));
    for (open, close) in [("(", ")"), ("[", "]"), ("{", "}"), ("f(", ")"), ("`${", "}`"), ("a<", "")] {
        let text = nested(open, close, 20_000);
        assert!(text.starts_with("error: s.js:6: brackets are nested deeper than 300\n"), "{open}: {text}");
    }
    // Without brackets, or with some that are taken for a text.
    for (open, close) in [
        ("!", "0"),
        ("- ", "0"),
        ("() => ", "0"),
        ("a ? b : ", "c"),
        ("a = ", "0"),
        ("if (a) ", ";"),
        ("if (a) ; else ", ";"),
        ("x: ", ";"),
        ("a.", "b"),
        ("a - ", "b"),
        ("new ", "a"),
        ("async x => ", "0"),
        ("a ** ", "0"),
    ] {
        let text = of(&format!("{}{close}", open.repeat(20_000)));
        assert!(!text.is_empty(), "{open}");
    }
    for open in ["(", "[", "{", "((a, b) =>"] {
        let text = of(&format!("/`/;\n{}", open.repeat(20_000)));
        assert!(text.starts_with("error: s.js:"), "{open}: {text}");
    }
    let text = nested("(", ")", 250);
    assert!(!text.starts_with("error: s.js:6: brackets"), "{text}");
    let sum = format!("http.get('http://h/'{});", " + 'a'".repeat(5_000));
    assert!(of(&sum).contains(&"a".repeat(5_000)));
}
