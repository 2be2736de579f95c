//! Locustfiles.

use std::path::{Path, PathBuf};

use plimsoll_import::locust::{Options, import};
use plimsoll_plan::Disk;

use crate::import::{Named, checked, checked_alone, shown};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/locust")
}

fn options(name: &str) -> Options {
    Options { name: name.to_owned(), ..Options::default() }
}

#[test]
fn examples() {
    for file in [
        "catch_response",
        "crud",
        "csv_users",
        "environment",
        "fast",
        "formats",
        "inheritance",
        "login_token",
        "methods",
        "modules",
        "nested",
        "quickstart",
        "random_data",
        "sequential",
        "shape",
        "tasks_dict",
        "unsupported",
        "weights",
    ] {
        let name = format!("{file}.py");
        let text = std::fs::read(folder().join(&name)).unwrap();
        insta::assert_snapshot!(
            file,
            shown(&checked(import(&text, &options(&name), &folder(), &Disk), &folder(), &Disk))
        );
    }
}

fn imported(text: &str, options: &Options) -> String {
    let files = Named(&[("two.csv", b"x,y\n1,2\n"), ("broken.py", b"def ("), ("loop.py", b"import loop\n")]);
    shown(&checked(import(text.as_bytes(), options, Path::new(""), &files), Path::new(""), &files))
}

/// Lines without what is in front of them.
fn flat(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_start().trim_start_matches("- "))).collect()
}

/// The output for a file with this class of users.
fn class(body: &str) -> String {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    imported(
        &format!(
            "import random, re, os\nfrom locust import *\n\nclass U(HttpUser):\n    host = 'http://h'\n{body}"
        ),
        &options("l.py"),
    )
}

/// The output for a file whose only task has these statements.
fn task(statements: &str) -> String {
    let body: String = statements.lines().map(|line| format!("    {line}\n")).collect();
    class(&format!("@task\ndef t(self):\n{body}"))
}

#[test]
fn judgements_are_expectations() {
    let with = |body: &str| {
        let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
        task(&format!("with self.client.get('/a', catch_response=True) as r:\n{body}"))
    };
    for (body, expected) in [
        ("if r.status_code != 200:\n    r.failure('x')", "status:\n200\n"),
        ("if r.status_code == 200:\n    r.success()\nelse:\n    r.failure('x')", "status:\n200\n"),
        ("if r.status_code == 404:\n    r.success()", "status:\n\"200-399\"\n404\n"),
        (
            "if r.status_code == 200:\n    r.success()\nelif r.status_code == 404:\n    r.success()\n\
             else:\n    \
             r.failure('x')",
            "status:\n200\n404\n",
        ),
        ("if not r.ok:\n    r.failure('x')", "status:\n\"200-399\"\n"),
        // A 404 has failed as well, since nothing says that it is a success.
        ("if r.status_code >= 500:\n    r.failure('x')", "status:\n\"200-399\"\n"),
        ("if 'bad' in r.text:\n    r.failure('x')", "body:\ncontains: bad\nnot: true\n"),
        ("if 'good' not in r.text:\n    r.failure('x')", "body:\ncontains: good\n"),
        (
            "if r.status_code != 200 or 'good' not in r.text:\n    r.failure('x')",
            "status:\n200\nbody:\ncontains: good\n",
        ),
        ("if r.json()['a'] != 'b':\n    r.failure('x')", "json:\n/a:\nequals: b\n"),
        ("if 'a' not in r.json():\n    r.failure('x')", "json:\n/a:\nexists: true\n"),
        (
            "if r.headers['X-A'] == 'b':\n    r.success()\nelse:\n    r.failure('x')",
            "headers:\nX-A:\nequals: b\n",
        ),
        ("r.success()", "status:\n\"200-599\"\n"),
        ("if r.elapsed.total_seconds() > 1:\n    r.failure('x')", "it is left out"),
    ] {
        let text = with(body);
        assert!(flat(&text).contains(expected), "{body}: {text}");
    }
    let text = task("r = self.client.get('/a')\nassert r.status_code == 201, 'why'");
    assert!(flat(&text).contains("status:\n201\n") && !text.contains("on_failure"), "{text}");
}

#[test]
fn weights_are_those_of_tasks_users_and_visits() {
    let weights = |text: &str| -> Vec<String> {
        let shown = imported(text, &options("l.py"));
        assert!(!shown.starts_with("error"), "{shown}");
        let mut all = Vec::new();
        for part in shown.split("- name: ").skip(1) {
            let weight = part.lines().find_map(|line| line.trim().strip_prefix("weight: "));
            let name = part.lines().next().unwrap_or_default();
            if part.contains("cookies") {
                all.push(format!("{name} {}", weight.unwrap_or("1")));
            }
        }
        all
    };
    let user = |name: &str, body: &str| format!("class {name}(HttpUser):\n    host = 'http://h'\n{body}");
    let task = |weight: u32, name: &str| {
        format!("    @task({weight})\n    def {name}(self):\n        self.client.get('/{name}')\n")
    };
    let head = "from locust import *\n";
    let text = format!("{head}{}", user("A", &[task(3, "a"), task(1, "b")].concat()));
    assert_eq!(weights(&text), ["a 3", "b 1"]);
    // Three of four users are of A; each of its tasks takes half as long.
    let text = format!(
        "{head}{}{}",
        user("A", &format!("    weight = 3\n    wait_time = constant(1)\n{}", task(1, "a"))),
        user("B", &format!("    wait_time = between(1, 3)\n{}", task(1, "b")))
    );
    assert_eq!(weights(&text), ["A.a 6", "B.b 1"]);
    // A visit of the set has 4 + 2 tasks until it is left, of two visits among three picks.
    let text = format!(
        "{head}class S(TaskSet):\n{}{}    @task\n    def stop(self):\n        self.interrupt()\n{}",
        task(4, "r"),
        task(2, "w"),
        user("U", &format!("    tasks = {{S: 2}}\n{}", task(1, "x")))
    );
    assert_eq!(weights(&text), ["S.r 8", "S.w 4", "U.x 1"]);
    // Nobody leaves it: its tasks share its weight.
    let text = format!(
        "{head}class S(TaskSet):\n{}{}{}",
        task(1, "r"),
        task(1, "w"),
        user("U", &format!("    tasks = {{S: 2}}\n{}", task(1, "x")))
    );
    assert_eq!(weights(&text), ["S.r 1", "S.w 1", "U.x 1"]);
}

#[test]
fn loads_are_those_of_options_and_shapes() {
    let file = "from locust import *\nclass U(HttpUser):\n    host = 'http://h'\n    @task\n    \
                def t(self):\n        \
                self.client.get('/')\n";
    let given = |users: Option<u64>, spawn_rate: Option<f64>, run_time: Option<&str>| Options {
        users,
        spawn_rate,
        run_time: run_time.map(str::to_owned),
        ..options("l.py")
    };
    for (options, expected) in [
        (given(None, None, None), "run:\nusers: 1\n"),
        (given(Some(5), None, None), "run:\nusers: 5\n"),
        (given(Some(10), Some(2.0), Some("1m")), "user_stages: 1ms@0,4999ms@10,55s@10\n"),
        (given(Some(10), Some(20.0), Some("90")), "duration: 90s\nusers: 10\n"),
        (given(Some(10), Some(0.0), None), "error: --users, --spawn-rate: they are numbers above 0\n"),
        (given(None, None, Some("soon")), "error: --run-time: it is not a time\n"),
    ] {
        let text = imported(file, &options);
        assert!(flat(&text).contains(expected), "{options:?}: {text}");
    }
    let shape = |stages: &str| {
        let shape = format!(
            "class S(LoadTestShape):\n    stages = {stages}\n    def tick(self):\n        \
             for s in self.stages:\n            \
             return 1\n"
        );
        imported(&format!("{file}{shape}"), &given(Some(5), None, None))
    };
    let text = shape(
        "[{'duration': 10, 'users': 4, 'spawn_rate': 2}, {'duration': 30, 'users': 0, 'spawn_rate': 1}]",
    );
    assert!(text.contains("user_stages: 1ms@0,1999ms@4,8s@4,4s@0,16s@0\n"), "{text}");
    let text = shape("[{'duration': 10, 'users': 4}, {'duration': 5, 'users': 9}]");
    assert!(text.contains("a stage ends before it begins"), "{text}");
    let text = shape("make()");
    assert!(text.contains("users: 5\n") && text.contains("this shape is a program"), "{text}");
}

#[test]
fn servers_are_those_of_classes_and_options() {
    let file = |host: &str| {
        format!(
            "import os\nfrom locust import *\nclass U(HttpUser):\n{host}\n    @task\n    \
             def t(self):\n        \
             self.client.get('/a')\n"
        )
    };
    let text = imported(&file(""), &options("l.py"));
    assert!(text.starts_with("error: l.py:7: `self.client.get('/a')`: it names no server\n"), "{text}");
    assert!(text.contains("--host URL"), "{text}");
    let given = Options { host: Some("https://x:8443/base".to_owned()), ..options("l.py") };
    let text = imported(&file("    host = 'http://h'"), &given);
    assert!(text.contains("server: https://x:8443\n") && text.contains("get: /base/a\n"), "{text}");
    let text = imported(&file("    host = os.environ['HOST']"), &options("l.py"));
    assert!(text.starts_with("error: l.py:7: `self.client.get('/a')`: `HOST`, with which"), "{text}");
    let environment = [("HOST".to_owned(), "http://e:1".to_owned())].into();
    let text = imported(&file("    host = os.environ['HOST']"), &Options { environment, ..options("l.py") });
    assert!(text.contains("server: ${env(HOST, http://e:1)}\n"), "{text}");
}

#[test]
fn values_keep_their_meaning() {
    for (statements, expected) in [
        ("self.client.get(f'/{[1, 2, 3][-1]}')", "get: /3\n"),
        ("self.client.get('/%05.1f/%s' % (2, None))", "get: /002.0/None\n"),
        ("self.client.get('/a', params={'q': True, 'r': 1.5})", "get: /a?q=True&r=1.5\n"),
        ("x = [] or 'y'\nself.client.get('/' + x)", "get: /y\n"),
        ("x = {'a': 1}.get('b', 'c')\nself.client.get('/' + x)", "get: /c\n"),
        ("if 'a' in ['a']:\n    self.client.get('/in')", "get: /in\n"),
        ("x = 1\nif x is not None:\n    y = 'set'\nself.client.get('/' + y)", "get: /set\n"),
        ("for a, b in {'k': 'v'}.items():\n    self.client.get('/' + a + b)", "get: /kv\n"),
        ("for _ in range(4):\n    self.client.get('/n')", "repeat: 4\n"),
        ("for i in range(2, 4):\n    self.client.get(f'/{i}')", "get: /2\n"),
        ("self.client.get(*['/spread'])", "get: /spread\n"),
        ("self.client.get('/a', **{'name': 'named'})", "name: named\n"),
        ("self.client.get(url='/' + ''.join(c for c in 'abc' if c != 'b'))", "it is left out"),
        ("self.client.get('/' + ''.join([c for c in ['a', 'b'] if c != 'b']))", "get: /a\n"),
        ("x = random.randint(1, 6)\nself.client.get(f'/{x}/{x}')", "x: ${random_int(1, 6)}\n"),
        (
            "r = self.client.get('/a')\nx = r.json()['t']\nself.client.get('/' + x)",
            "extract:\nx:\njson: /t\n",
        ),
        ("r = self.client.get('/a')\nself.client.get('/' + r.json().get('t'))", "get: /${t}\n"),
        (
            "m = re.search(r'v=(\\w+)', self.client.get('/a').text)\nself.client.get('/' + m.group(1))",
            "regex: v=(\\w+)\n",
        ),
        ("self.client.get('/a', auth=('u', 'p'))", "authorization: Basic dTpw\n"),
        ("self.client.get('/a', allow_redirects=False)", "get: /a\n"),
        ("self.other.thing\nself.client.get('/' + self.missing)", "its value comes from a program"),
        ("yield 1\nself.client.get('/a')", "`yield 1`: it is not carried out: it is left out"),
    ] {
        let text = task(statements);
        assert!(flat(&text).contains(expected), "{statements}: {text}");
    }
}

/// Variables of the file that one task changes are what they were for the others.
#[test]
fn tasks_do_not_see_what_others_did() {
    let text = imported(
        "from locust import *\ncount = 0\nclass U(HttpUser):\n    host = 'http://h'\n    @task\n    \
         def a(self):\n        \
         global count\n        count = 1\n        self.client.get(f'/a/{count}')\n    @task\n    \
         def b(self):\n        \
         self.client.get('/b')\n",
        &options("l.py"),
    );
    assert!(text.contains("get: /a/1\n") && text.contains("get: /b\n"), "{text}");
}

#[test]
fn mistakes_have_their_lines() {
    for (text, expected) in [
        ("", "error: l.py:1: there is no request that can be taken over\n"),
        ("{\"a\": 1}", "error: l.py:1: there is no request that can be taken over\n"),
        ("import http from 'k6/http';\n", "error: l.py:1: it is not Python"),
        ("from locust import *\nclass A(:\n    pass\n", "error: l.py:2: it is not Python"),
        ("x = 1\ndef f(:\n", "error: l.py:2: it is not Python"),
        ("import broken\nfrom locust import *\n", "error: l.py:1: there is no request"),
        ("import loop\n", "error: l.py:1: there is no request"),
    ] {
        let shown = imported(text, &options("l.py"));
        assert!(shown.contains(expected), "{text}: {shown}");
    }
    let shown = shown_bytes(b"\xff\xfe");
    assert!(shown.starts_with("error: l.py: it is not a text in UTF-8\n"), "{shown}");
}

fn shown_bytes(bytes: &[u8]) -> String {
    shown(&checked_alone(import(bytes, &options("l.py"), Path::new(""), &Named(&[]))))
}

/// The reader of the tree calls itself: nesting takes stack. So does what calls itself in a file.
#[test]
fn hostile_files_are_bounded() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{1: ", "}"),
        ("f(", ")"),
        ("not ", "1"),
        ("-", "1"),
        ("lambda: ", "1"),
        ("1 + ", "1"),
    ] {
        let text = task(&format!("x = {}{}", open.repeat(20_000), close.repeat(20_000)));
        assert!(text.starts_with("error: l.py:8: "), "{open}: {}", &text[..text.len().min(200)]);
    }
    let mut nested = String::new();
    for depth in 0..90 {
        nested.push_str(&format!("{}if self.x:\n", " ".repeat(depth)));
    }
    assert!(task(&format!("{nested}{}pass", " ".repeat(90))).contains("error: l.py:"), "{nested}");
    let long = format!("x = '{}'\n", "a".repeat(1 << 20));
    assert!(imported(&long, &options("l.py")).starts_with("error: l.py:1: it is longer than 1 MiB\n"));
    for statements in [
        "self.t()",
        "x = 'a'\nfor i in range(1000):\n    x = x + x\nself.client.get('/' + x)",
        "x = ['a']\nfor i in range(1000):\n    x = x + x\nself.client.get('/' + x[0])",
        "x = {}\nfor i in range(1000):\n    x = {'a': x, 'b': x}\nself.client.post('/', json=x)",
        "for i in range(1000):\n    for j in range(1000):\n        self.client.get(f'/{i}/{j}')",
        "x = 1\nwhile x:\n    self.client.get('/')",
        "x = [i for i in range(100000)]\nfor i in x:\n    self.client.get(f'/{i}')",
    ] {
        let text = task(statements);
        assert!(text.len() < 64 << 20, "{statements}: {}", text.len());
    }
    let mut sets = "from locust import *\nclass S0(TaskSet):\n    @task\n    def t(self):\n        \
                    self.client.get('/')\n\
                    class R0(TaskSet):\n    @task\n    def t(self):\n        self.client.get('/')\n"
        .to_owned();
    for depth in 1..40 {
        let below = depth - 1;
        sets.push_str(&format!("class S{depth}(TaskSet):\n    tasks = [S{below}, R{below}]\n"));
        sets.push_str(&format!("class R{depth}(TaskSet):\n    tasks = [S{below}, R{below}]\n"));
    }
    sets.push_str("class U(HttpUser):\n    host = 'http://h'\n    tasks = [S39]\n");
    assert!(imported(&sets, &options("l.py")).contains("there is no request"));
    let chain: String = (1..3_000).map(|n| format!("class C{n}(C{}):\n    pass\n", n - 1)).collect();
    let text = imported(&format!("class C0:\n    pass\n{chain}"), &options("l.py"));
    assert!(text.contains("there is no request"), "{text}");
}
