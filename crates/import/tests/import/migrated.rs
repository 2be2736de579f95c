//! Files as teams have them, which are programs for a good part: each is imported right, is noted, so that
//! `--strict` refuses it, or is refused with its line.

use std::path::Path;

use plimsoll_document::Problems;
use plimsoll_import::{Imported, Note, artillery, gatling, jmeter, k6, locust, postman};

use crate::import::{Named, checked, checked_alone, shown};

/// The plan or the refusal that a file has to become.
#[derive(Debug)]
pub(crate) enum Outcome<'o> {
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
pub(crate) fn wrong(
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

pub(crate) fn assert_none_wrong(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n----\n"));
}

/// A script whose function has these statements, from line 5 on.
pub(crate) fn script(statements: &str) -> String {
    format!(
        "import http from 'k6/http';\nimport {{ check, sleep }} from 'k6';\nconst B = 'http://h';\n\
         export default function () {{\n{statements}\n}}\n"
    )
}

#[test]
fn statements_of_k6() {
    let mut all = Vec::new();
    for (statements, outcome) in [
        // Loops whose ends are known.
        (
            "for (let i = 0; i < 5; i++) { if (i === 2) break; http.get(`${B}/${i}`); }\n\
             http.get(B + '/end');",
            Right(&["GET /0", "GET /1", "GET /end"], &[]),
        ),
        (
            "for (let i = 0; i < 4; i++) { if (i % 2) continue; http.get(`${B}/${i}`); }",
            Right(&["GET /0", "GET /2"], &[]),
        ),
        (
            "const f = () => { for (const x of ['a', 'b']) { if (x === 'b') return 7; \
             http.get(`${B}/${x}`); }\n\
             http.get(B + '/never'); };\nhttp.get(`${B}/${f()}`);",
            Right(&["GET /a", "GET /7"], &[]),
        ),
        (
            "let n = 0; while (n < 2) { http.get(`${B}/${n}`); n++; }\nhttp.get(`${B}/${n}`);",
            Right(&["GET /0", "GET /1", "GET /2"], &[]),
        ),
        (
            "['p', 'q'].forEach((x) => { if (x === 'q') return; http.get(`${B}/${x}`); });",
            Right(&["GET /p"], &[]),
        ),
        // Those that the run decides.
        (
            "for (let i = 0; i < 3; i++) {\nconst r = http.post(B + '/a', 'x'); if (r.status === 200) \
             break;\nsleep(1); }",
            Refused(7, "`sleep(1)`: whether it is carried out is not followed from script.js:6 on"),
        ),
        (
            "const f = () => { for (let i = 0; i < 3; i++) {\nconst r = http.post(B + '/a', 'x');\n\
             if (r.status < 500) return r; } return null; };\nf();",
            Refused(6, "is not followed from script.js:7 on: the run decides whether this holds"),
        ),
        (
            "for (let i = 0; i < 3; i++) { const q = http.get(B + '/poll');\n\
             if (q.json('s') === 'ok') { break; } }",
            Refused(5, "is not followed from script.js:6 on"),
        ),
        (
            "let r, n = 0;\ndo { r = http.post(B + '/a', 'x'); n++; } while (r.status !== 200 && n < 3);",
            Refused(6, "this kind of statement is not followed"),
        ),
        (
            "let s = '';\nwhile (s !== 'done') { s = http.get(B + '/job').json('status'); }",
            Refused(6, "whether it is carried out is not followed"),
        ),
        (
            "const all = http.get(B + '/list').json('items');\nfor (const x of all) {\n\
             http.get(`${B}/${x.id}`); }",
            Refused(7, "the run decides how often these statements are carried out"),
        ),
        (
            "const all = http.get(B + '/list').json('items');\nconst one = all.filter(x => x.id > 1)[0];\n\
             http.get(`${B}/${one.id}`);",
            Noted(&["GET /list", "GET /${id}"], "it is not carried out"),
        ),
        (
            "switch (__ITER) {\ncase 1: http.get(B + '/a'); }",
            Refused(6, "this kind of statement is not followed"),
        ),
        (
            "for (const k in { a: 1 }) {\nhttp.get(B + '/a'); }",
            Refused(6, "this kind of statement is not followed"),
        ),
        ("outer: for (;;) {\nhttp.get(B + '/a'); break outer; }", Refused(6, "is not followed")),
        // Branches.
        (
            "const r = http.get(B + '/a');\nif (r.json('x') === 'y') { return; }\nhttp.get(B + '/b');",
            Right(&["GET /a", "GET /b"], &["if: not (${x} == \"y\")"]),
        ),
        (
            "const f = (r) => { if (r.json('x') === 'y') { return 1; } return 2; };\n\
             http.get(`${B}/${f(http.get(B + '/a'))}`);",
            Refused(6, "a value in it is not followed from script.js:5 on"),
        ),
        (
            "const r = http.get(B + '/a');\nif (r.json('x') === 'y') { if (r.json('z') === 'y') { return; }\n\
             http.get(B + '/b'); }\nhttp.get(B + '/c');",
            Refused(8, "whether it is carried out is not followed from script.js:6 on"),
        ),
        (
            "const path = Math.random() < 0.1 ? '/rare' : '/common';\nhttp.get(B + path);",
            Refused(6, "a value in it is not followed from script.js:5 on"),
        ),
        (
            "if (later() > 5) {\nhttp.get(B + '/a'); } else { http.get(B + '/b'); }",
            Refused(6, "the run decides whether this holds"),
        ),
        (
            "const r = http.get(B + '/a');\nr.json('x') && http.get(B + '/b');",
            Refused(6, "whether it is carried out is not followed"),
        ),
        (
            "const s = { token: null, base: B };\nconst r = http.post(s.base + '/login');\n\
             if (r.json('t')) { s.token = r.json('t'); }\nhttp.get(s.base + '/list');\n\
             http.get(s.base + '/me', { headers: { A: s.token } });",
            Refused(9, "a value in it is not followed from script.js:7 on"),
        ),
        (
            "const p = { headers: {} };\nif (Math.random() < 0.5) { p.headers['X-Id'] = '1'; }\n\
             http.get(B, p);",
            Refused(7, "a value in it is not followed from script.js:6 on"),
        ),
        (
            "const r = http.get(B + '/a'); const f = (x) => (x === 'v' ? '/one' : '/one');\n\
             http.get(B + f(r.json('k')));\nif (r.json('z') === 'x') { throw new Error('x'); }\n\
             http.get(B + '/end');",
            Noted(&["GET /a", "GET /one", "GET /end"], "errors are not thrown"),
        ),
        (
            "const f = (r) => { if (r.json('z') === 'x') { throw new Error('x'); } };\n\
             f(http.get(B + '/a'));\nhttp.get(B + '/end');",
            Refused(7, "whether it is carried out is not followed from script.js:5 on"),
        ),
        ("const f = (n) => { http.get(B); f(n + 1); };\nf(0);", Refused(5, "goes on too long")),
        // Small meanings of the language.
        ("let i = 0; const x = i++ + ++i; http.get(`${B}/${x}${i--}${i}`);", Right(&["GET /221"], &[])),
        (
            "var y = 1; if (true) { var y = 2; var z = 3; } http.get(`${B}/${y}${z}`);",
            Right(
                &["GET \
        /23"],
                &[],
            ),
        ),
        ("http.get(`${B}/${NaN === NaN}/${5 / 0}/${1e21}`);", Right(&["GET /false/Infinity/1e+21"], &[])),
        ("http.get(`${B}/${[null, undefined, 1].join('-')}`);", Right(&["GET /--1"], &[])),
        ("http.get(`${B}/${parseInt('12px') + 1}`);", Refused(5, "the number in this text is not followed")),
        ("http.get(`${B}/${Number('0x10')}`);", Refused(5, "the number in this text is not followed")),
        ("http.get(`${B}/${(255).toString(16)}`);", Noted(&["GET /${_16}"], "it is not carried out")),
        // Objects have several names.
        ("let a = 1, b = 2;\n[a, b] = [b, a];\nhttp.get(`${B}/${a}${b}`);", Right(&["GET /21"], &[])),
        (
            "const sign = (p) => { p.headers['X-A'] = 't1'; };\nconst p = { headers: {} };\nsign(p);\n\
             const q = p; q.headers['X-B'] = 't2'; http.get(B + '/me', p);",
            Right(&["GET /me"], &["X-A: t1", "X-B: t2"]),
        ),
        (
            "const a = [1]; const b = a; b.push(2); a.reverse(); http.get(`${B}/${b.join('')}`);",
            Right(&["GET /21"], &[]),
        ),
        (
            "const o = { a: 1, b: 2 }; delete o.a; Object.assign(o, { c: 3 }); http.get(B + '/' + \
             Object.keys(o).join(''));",
            Right(&["GET /bc"], &[]),
        ),
        (
            "const got = [];\ngot.push(http.post(B + '/cart').json('id'));\n\
             for (const i of got) http.get(`${B}/${i}`);",
            Right(&["POST /cart", "GET /${i}"], &[]),
        ),
        ("const a = [3, 1];\na.sort();\nhttp.get(`${B}/${a[0]}`);", Refused(7, "`sort` changes it")),
        (
            "const a = { x: 1 }; const b = JSON.parse(JSON.stringify(a)); b.x = 2;\nhttp.get(`${B}/${a.x}`);",
            Right(&["GET /1"], &[]),
        ),
        (
            "const a = [2, 3]; a.reduce((x, y) => x + y); http.get(`${B}/${a[0]}`);",
            Noted(&["GET /2"], "it is not carried out"),
        ),
        (
            "const a = []; a.push('x' + Math.random()); http.get(`${B}/${a[0]}`); http.get(`${B}/${a[0]}`);",
            Right(&["GET /${a}", "GET /${a}"], &[]),
        ),
        (
            "const f = () => { const r = http.get(B + '/a'); if (r.status !== 200) { return null; }\n\
             return r.json('t'); };\nhttp.get(`${B}/${f()}`);",
            Noted(&["GET /a", "GET /${t}"], "the function ends after a failure there"),
        ),
        (
            "const a = { x: 1 };\nchange(a);\nhttp.get(`${B}/${a.x}`);",
            Refused(7, "`change(a)` is not carried out"),
        ),
        ("later(() => {\nhttp.get(B + '/a'); });", Refused(6, "is not carried out")),
        // What is drawn is drawn once.
        (
            "const a = { pin: 'p' + Date.now() };\nhttp.post(B + '/a', JSON.stringify(a));\n\
             http.get(`${B}/${a.pin}`);",
            Right(
                &["POST /a", "GET /${pin}"],
                &["pin: p${timestamp_ms}", "body: \"{\\\"pin\\\":\\\"${json(${pin})}\\\"}\""],
            ),
        ),
        (
            "const all = [{ k: 'a' }, { k: 'b' }];\nconst one = all[Math.floor(Math.random() * \
             all.length)];\n\
             http.post(B, JSON.stringify(one), { headers: { 'Content-Type': 'application/json' } });",
            Right(&["POST /"], &["body: ${all_2}"]),
        ),
        // Names that functions of templates have.
        (
            "const json = http.get(B + '/a').json('id'); const lower = http.get(B + '/b').json('x');\n\
             http.get(`${B}/${json}/${lower}`);",
            Right(&["GET /a", "GET /b", "GET /${json_2}/${lower_2}"], &[]),
        ),
        (
            "const res = http.get(B + '/a');\n\
             check(res, { same: (r) => JSON.stringify(r.json().form) === JSON.stringify(['b']) });",
            Noted(&["GET /a"], "check"),
        ),
    ] {
        let text = script(statements);
        let options = k6::Options { name: "script.js".to_owned(), ..k6::Options::default() };
        let imported = checked_alone(k6::import(text.as_bytes(), &options, Path::new(""), &Named(&[])));
        all.extend(wrong("script.js", &text, &imported, &outcome));
    }
    assert_none_wrong(all);
}

#[test]
fn scripts_of_k6() {
    let files = Named(&[
        ("users.json", br#"[{"name": "a"}, {"name": "b"}]"#),
        (
            "state.js",
            b"import http from 'k6/http';\nexport let token = null;\nexport const state = { t: null };\n\
              export function login() { token = 'x'; state.t = http.post('http://h/in').json('t'); }\n",
        ),
        ("load.smoke.json", br#"{"vus": 3, "duration": "20s"}"#),
    ]);
    let mut all = Vec::new();
    for (text, environment, outcome) in [
        // State between iterations.
        (
            "import http from 'k6/http';\nlet token = null;\nexport default function () {\n\
             if (!token) { token = http.post('http://h/login').json('token'); }\n\
             http.get('http://h/me', { headers: { A: `Bearer ${token}` } });\n}",
            None,
            Refused(4, "it is set there, and keeps its value for the next iteration"),
        ),
        (
            "import http from 'k6/http';\nlet token;\nexport default function () {\n\
             if (__ITER === 0) { token = 'a'; }\nhttp.get('http://h/me', { headers: { A: token } });\n}",
            None,
            Refused(5, "a value in it is not followed from script.js:4 on"),
        ),
        (
            "import http from 'k6/http';\nconst ids = [];\nexport default function () {\nids.push(1);\n\
             if (ids.length > 3) http.get('http://h/later');\n}",
            None,
            Refused(5, "is not followed from script.js:4 on: it is set there, and keeps"),
        ),
        (
            "import http from 'k6/http';\nconst p = { headers: { 'X-A': '1' } };\n\
             export default function () {\n\
             const t = http.post('http://h/login').json('t');\np.headers.Auth = t;\n\
             http.get('http://h/me', p);\n}",
            None,
            Right(&["POST /login", "GET /me"], &["Auth: ${t}"]),
        ),
        (
            "import http from 'k6/http';\nconst p = { headers: {} };\nexport default function () {\n\
             const t = http.post('http://h/login', null, p).json('t');\np.headers.Auth = t;\n}",
            None,
            Refused(4, "it is set there, and keeps its value for the next iteration"),
        ),
        // Modules of its own, and classes.
        (
            "import http from 'k6/http';\nimport { login, state } from './state.js';\n\
             export default function () { login();\nhttp.get('http://h/me', { headers: { A: state.t } }); }",
            None,
            Right(&["POST /in", "GET /me"], &["A: ${t}"]),
        ),
        (
            "import http from 'k6/http';\nimport { login, state } from './state.js';\n\
             export default function () {\nhttp.get('http://h/me', { headers: { A: state.t } }); login(); }",
            None,
            Refused(4, "is not followed from state.js:4 on: it is set there, and keeps"),
        ),
        (
            "import http from 'k6/http';\nimport { login, token } from './state.js';\n\
             export default function () { login();\nhttp.get('http://h/me', { headers: { A: token } }); }",
            None,
            Refused(4, "is not followed from state.js:4 on"),
        ),
        (
            "import http from 'k6/http';\nclass Api { get() { return http.get('http://h/a'); } }\n\
             const api = new Api();\nexport default function () {\napi.get();\nhttp.get('http://h/b'); }",
            None,
            Refused(5, "it is made by a class of the script"),
        ),
        // What a module declares behind a condition is declared.
        (
            "import http from 'k6/http';\nif (!__ENV.BASE) { throw new Error('BASE'); }\n\
             const B = 'http://h';\n\
             export default function () { http.get(B + '/a'); }",
            None,
            Noted(&["GET /a"], "errors are not thrown"),
        ),
        // Options that the environment chooses.
        (
            "import http from 'k6/http';\nexport const options = JSON.parse(open('./load.' + \
             __ENV.PROFILE + '.json'));\n\
             export default function () { http.get('http://h/a'); }",
            Some(("PROFILE", "smoke")),
            Noted(&["GET /a"], "the value that the environment has now is taken: `./load.smoke.json`"),
        ),
        (
            "import http from 'k6/http';\nexport const options = JSON.parse(open('./load.' + \
             __ENV.PROFILE + '.json'));\n\
             export default function () { http.get('http://h/a'); }",
            None,
            Refused(2, "`options` are not followed: the name of the file is not known before the run"),
        ),
        (
            "import http from 'k6/http';\nconst kinds = { smoke: { vus: 2, duration: '30s' } };\n\
             export const options = kinds[__ENV.KIND || 'smoke'];\n\
             export default function () { http.get('http://h/a'); }",
            None,
            Noted(&["GET /a"], "the value that the environment has now is taken: `smoke`"),
        ),
        (
            "import http from 'k6/http';\nexport function setup() { return { t: \
             http.post('http://h/in').json('t') }; }\n\
             export default function (data) { http.get('http://h/me', { headers: { A: data.t } }); }",
            None,
            Right(&["POST /in", "GET /me"], &["A: ${t}"]),
        ),
    ] {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let name = "script.js".to_owned();
        let options = k6::Options { name, environment: environment.collect(), scenario: None };
        let imported =
            checked(k6::import(text.as_bytes(), &options, Path::new(""), &files), Path::new(""), &files);
        all.extend(wrong("script.js", text, &imported, &outcome));
    }
    assert_none_wrong(all);
}

/// A locustfile whose only task has these statements, from line 7 on.
fn task(statements: &str) -> String {
    let body: String = statements.lines().map(|line| format!("        {line}\n")).collect();
    format!(
        "import random, csv, os, time\nfrom locust import *\n\
         class A(HttpUser):\n    host = 'http://h'\n    @task\n    \
         def t(self):\n{body}"
    )
}

#[test]
fn tasks_of_locust() {
    let mut all = Vec::new();
    for (statements, outcome) in [
        (
            "for x in ['a', 'b']:\n    self.client.get('/' + x)\n    if x == 'a':\n        break",
            Right(&["GET /a"], &[]),
        ),
        (
            "for i in range(3):\n    r = self.client.get('/r')\n    if r.status_code == 200:\n        return",
            Refused(8, "is not followed from locustfile.py:9 on"),
        ),
        (
            "while self.client.get('/job').json()['s'] != 'ok':\n    time.sleep(1)",
            Refused(7, "whether it is carried out is not followed"),
        ),
        (
            "h = {'X-A': '1'}\ng = h\ng['X-B'] = '2'\nself.client.get('/a', headers=h)",
            Right(&["GET /a"], &["X-A: 1", "X-B: 2"]),
        ),
        (
            "h = {'X-A': '1'}\nh.update({'X-B': '2'})\nl = [1]\nl.extend([2])\n\
             self.client.get(f'/{l[1]}', headers=h)",
            Right(&["GET /2"], &["X-A: 1", "X-B: 2"]),
        ),
        (
            "if not self.token:\n    self.token = self.client.post('/login').json()['t']\n\
             self.client.get('/a')",
            Refused(8, "it is set there, and keeps its value for the next iteration"),
        ),
        (
            "self.cart.append(self.client.post('/cart').json()['id'])\n\
             for i in self.cart:\n    self.client.get(f'/{i}')",
            Refused(9, "it is set there, and keeps its value for the next iteration"),
        ),
        (
            "all = [1, 2]\nrandom.shuffle(all)\nself.client.get(f'/{all[0]}')",
            Refused(9, "`random.shuffle(all)` is not carried out"),
        ),
        (
            "r = self.client.get('/a')\nt = r.json().get('c')\nif t:\n    self.tok = t\n\
             self.client.get('/b')\n\
             self.client.post('/c', data={'t': self.tok})",
            Refused(12, "a value in it is not followed from locustfile.py:10 on"),
        ),
        (
            "r = self.client.get('/a')\nif r.json()['x'] == 'y':\n    self.client.headers['X'] = '1'\n\
             self.client.get('/b')",
            Refused(10, "a value in it is not followed from locustfile.py:8 on"),
        ),
        (
            "all = self.client.get('/a').json()\nif all:\n    self.client.get(f\"/{all[0]['id']}\")",
            Right(&["GET /a", "GET /${id}"], &["then:"]),
        ),
        ("helper(self)\nself.client.get('/a')", Refused(8, "`helper(self)` is not carried out")),
        (
            "with self.client.get('/a', catch_response=True) as r:\n    if r.status_code == \
             404:\n        r.failure('m')\n    \
             elif r.status_code == 401:\n        r.success()\n    elif r.status_code == \
             200:\n        r.success()\n    \
             else:\n        r.failure('o')",
            Right(&["GET /a"], &["200", "401"]),
        ),
        (
            "with self.client.get('/a', catch_response=True) as r:\n    if r.status_code == \
             404:\n        r.failure('m')",
            Right(&["GET /a"], &["\"200-399\""]),
        ),
        (
            "all = []\nwith open('people.csv') as f:\n    for row in \
             csv.reader(f):\n        all.append(row)\n\
             p = random.choice(all)\nself.client.post('/pay', json={'mail': p[1]})",
            Refused(12, "is not followed from locustfile.py:9 on"),
        ),
    ] {
        let text = task(statements);
        let options = locust::Options { name: "locustfile.py".to_owned(), ..locust::Options::default() };
        let files = Named(&[("people.csv", b"id,mail\n1,a@x\n2,b@x\n")]);
        let imported =
            checked(locust::import(text.as_bytes(), &options, Path::new(""), &files), Path::new(""), &files);
        all.extend(wrong("locustfile.py", &text, &imported, &outcome));
    }
    assert_none_wrong(all);
}

#[test]
fn locustfiles() {
    let head = "from locust import *\n";
    let files = Named(&[
        ("flows/__init__.py", b"from flows.one import Flow\n"),
        (
            "flows/one.py",
            b"from locust import TaskSet, task\nclass Flow(TaskSet):\n    @task\n    def a(self):\n        \
              self.client.get('/a')\n",
        ),
    ]);
    let mut all = Vec::new();
    for (text, outcome) in [
        (
            "import flows\nclass U(HttpUser):\n    host = 'http://h'\n    tasks = [flows.Flow]\n",
            Right(&["GET /a"], &[]),
        ),
        (
            "class F(SequentialTaskSet):\n    def on_start(self):\n        self.cart = \
             []\n    @task\n    def one(self):\n        \
             self.cart.append(self.client.post('/cart').json()['id'])\n    @task\n    def \
             two(self):\n        \
             for i in self.cart:\n            self.client.get(f'/{i}')\n\
             class U(HttpUser):\n    host = 'http://h'\n    tasks = [F]\n",
            Refused(11, "it is set there, and keeps its value for the next iteration"),
        ),
        (
            "class F(SequentialTaskSet):\n    @task\n    def one(self):\n        \
             self.id = self.client.post('/cart').json()['id']\n    @task\n    def two(self):\n        \
             self.client.get(f'/{self.id}')\n\
             class U(HttpUser):\n    host = 'http://h'\n    tasks = [F]\n",
            Right(&["POST /cart", "GET /${id}"], &[]),
        ),
        (
            "class U(HttpUser):\n    host = 'http://h'\n    def on_start(self):\n        self.tok = \
             None\n        \
             self.remember(self.client.get('/door'))\n        self.client.post('/door', data={'t': \
             self.tok})\n    \
             def remember(self, r):\n        t = r.cookies.get('c')\n        if t:\n            self.tok \
             = t\n    \
             @task\n    def a(self):\n        self.client.get('/a')\n",
            Refused(7, "a value in it is not followed from locustfile.py:10 on"),
        ),
        (
            "class U(HttpUser):\n    host = 'http://h'\n    seen = 0\n    @task\n    def a(self):\n        \
             self.seen = self.client.get('/a').json()['n']\n    @task\n    def b(self):\n        \
             self.client.get(f'/b/{self.seen}')\n",
            Refused(10, "is not followed from locustfile.py:7 on: it is set there, and keeps"),
        ),
    ] {
        let text = format!("{head}{text}");
        let options = locust::Options { name: "locustfile.py".to_owned(), ..locust::Options::default() };
        let imported =
            checked(locust::import(text.as_bytes(), &options, Path::new(""), &files), Path::new(""), &files);
        all.extend(wrong("locustfile.py", &text, &imported, &outcome));
    }
    assert_none_wrong(all);
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
        "<?xml version=\"1.0\"?>\n<jmeterTestPlan><hashTree><TestPlan testclass=\"TestPlan\" \
         testname=\"P\"/><hashTree>\n\
         <x.{kind} testclass=\"x.{kind}\" testname=\"G\">{properties}{rest}</x.{kind}>\
         <hashTree>{request}</hashTree>\n\
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
        let imported = checked_alone(jmeter::import(text.as_bytes(), Path::new(""), &Named(&[])));
        all.extend(wrong("jmx", &text, &imported, &Right(&["GET /a"], &[part])));
    }
    assert_none_wrong(all);
    let timer = "<hashTree/><VariableThroughputTimer testclass=\"VariableThroughputTimer\" testname=\"T\">\
                 <collectionProp name=\"load_profile\"><collectionProp name=\"r\"><stringProp \
                 name=\"a\">1</stringProp>\
                 <stringProp name=\"b\">100</stringProp><stringProp \
                 name=\"c\">60</stringProp></collectionProp>\
                 </collectionProp></VariableThroughputTimer>";
    let text =
        group("ThreadGroup", &[("ThreadGroup.num_threads", "5")], "").replacen("<hashTree/>", timer, 1);
    let imported = checked_alone(jmeter::import(text.as_bytes(), Path::new(""), &Named(&[])));
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
        let imported = checked_alone(jmeter::import(text.as_bytes(), Path::new(""), &Named(&[])));
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
         <elementProp name=\"defHost\" elementType=\"Argument\"><stringProp \
         name=\"Argument.name\">defHost</stringProp>\
         <stringProp name=\"Argument.value\">10.0.0.1</stringProp></elementProp></collectionProp>\
         </Arguments><hashTree/>\n\
         <x.ThreadGroup",
        1,
    );
    let mut all = Vec::new();
    for (text, outcome) in [
        (&plain, Right(&["GET /a"], &["users: 5", "duration: 60s"])),
        (&twice, Right(&["GET /a", "GET /a"], &["parallel:"])),
        (&property, Noted(&["GET /a"], "the default of the property is taken")),
    ] {
        let imported = checked_alone(jmeter::import(text.as_bytes(), Path::new(""), &Named(&[])));
        all.extend(wrong("jmx", text, &imported, &outcome));
    }
    assert_none_wrong(all);
    let imported = checked_alone(jmeter::import(property.as_bytes(), Path::new(""), &Named(&[]))).unwrap();
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
        let imported =
            checked_alone(postman::import(text.as_bytes(), &options, Path::new(""), &Named(&[]))).unwrap();
        assert_eq!(imported.document.scenarios.len(), scenarios, "{}", imported.document.to_yaml());
        let lines = lines(&imported);
        assert_eq!(requests(&lines), ["POST /in", "GET /things"]);
        assert!(lines.iter().any(|line| line == part), "{lines:?}");
        // Nothing gives the other one a value.
        assert_eq!(imported.notes.is_empty(), name == "tok", "{:?}", imported.notes);
    }
}

#[test]
fn values_that_keep_their_type_are_noted() {
    let text = "config: { target: http://h, phases: [ { duration: 1, arrivalCount: 1 } ] }\n\
    scenarios:\n  - flow:\n      \
                - get: { url: /a, capture: { json: $.id, as: json } }\n      - post: { url: /b, json: { \
                id: \"{{ json }}\" } }\n";
    let imported = checked_alone(artillery::import(text.as_bytes(), Path::new(""), &Named(&[])));
    assert_none_wrong(
        wrong("artillery", text, &imported, &Noted(&["GET /a", "POST /b"], "text")).into_iter().collect(),
    );
}

#[test]
fn simulations_of_gatling() {
    let java = |field: &str| {
        format!(
            "import static io.gatling.javaapi.core.CoreDsl.*;\nimport io.gatling.javaapi.core.*;\n\
             public class S extends Simulation {{\n\
             private static final ScenarioBuilder {field} =\n\
             scenario(\"S\").exec(http(\"s\").get(\"/session\"));\n\
             {{ setUp({field}.injectOpen(atOnceUsers(3))).protocols(http.baseUrl(\"http://h\")); }}\n}}\n"
        )
    };
    let mut all = Vec::new();
    for name in ["scn", "scenario"] {
        let text = java(name);
        let options = gatling::Options { name: "S.java".to_owned() };
        let imported = checked_alone(gatling::import(text.as_bytes(), &options, Path::new(""), &Named(&[])));
        all.extend(wrong(
            "S.java",
            &text,
            &imported,
            &Right(&["GET /session"], &["users: 3", "iterations: 3"]),
        ));
    }
    assert_none_wrong(all);
    let text = "package demo\nimport demo.Conf._\nimport io.gatling.core.Predef._\n\
    class S extends Simulation {\n\
                val scn = scenario(\"a\").exec(http(\"x\").get(\"/x\"))\n\
                setUp(scn.inject(rampUsers(Users) during (Span))).protocols(http.baseUrl(\"http://h\"))\n}\n";
    let options = gatling::Options { name: "S.scala".to_owned() };
    let imported = checked_alone(gatling::import(text.as_bytes(), &options, Path::new(""), &Named(&[])));
    assert_none_wrong(
        wrong("S.scala", text, &imported, &Refused(6, "is not an injection profile")).into_iter().collect(),
    );
}
