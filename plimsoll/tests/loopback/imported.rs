//! Files of other tools, imported and run: the requests that the tools would make, as the sink saw them.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::loopback::process::{Folder, run};
use crate::loopback::sink::{Saw, Sink};
use plimsoll_testkit::sink_log::{account, assert_balance, count};

/// Imports a file and runs the plan. Returns the result, the requests of each step by its name in the log,
/// and the counts of the sink.
fn imported(
    tool: &str,
    name: &str,
    source: impl FnOnce(&str) -> String,
    flags: &str,
) -> (Value, BTreeMap<String, u64>, Saw) {
    let folder = Folder::new();
    let sink = Sink::start("");
    let file = folder.write(name, source(&sink.endpoint));
    let plan = run(&format!("import {tool} {file}"));
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    let plan = folder.write("plan.yaml", plan.stdout);
    let log = folder.file("log.ndjson");
    let result = run(&format!("run {plan} {flags} --log {log} -o json")).result();
    assert_balance(&result);
    let mut steps = BTreeMap::new();
    let written = std::fs::read_to_string(&log).expect("there is a log");
    for line in written.lines() {
        let row: Value = serde_json::from_str(line).expect("each line is JSON");
        let step = row["step"].as_str().expect("a step has a name").to_owned();
        *steps.entry(step).or_insert(0) += 1;
    }
    (result, steps, sink.stop())
}

fn counts<const N: usize>(steps: [(&str, u64); N]) -> BTreeMap<String, u64> {
    steps.into_iter().map(|(name, requests)| (name.to_owned(), requests)).collect()
}

/// All requests were good, and the sink saw those of the log.
fn assert_true(result: &Value, steps: &BTreeMap<String, u64>, saw: &Saw) {
    let requests: u64 = steps.values().sum();
    assert_eq!(account(result, "ok"), requests, "{}", result["accounting"]);
    assert_eq!(saw.truth.of_run(result).count() as u64, requests);
    assert_eq!(count(result, "/log/dropped"), 0);
}

#[test]
fn a_collection_of_postman_makes_its_requests() {
    let collection = |endpoint: &str| {
        let test = |script: &str| json!([{"listen": "test", "script": {"exec": [script]}}]);
        json!({
            "info": {"name": "Shop", "schema":
            "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
            "variable": [{"key": "base", "value": format!("http://{endpoint}")}],
            "item": [
                {"name": "Log in", "request": {"method": "POST", "url": "{{base}}/login",
                    "body": {"mode": "raw", "raw": "{\"id\": \"{{$guid}}\"}"}},
                 "event": test("pm.environment.set('code', pm.response.code); \
                                pm.response.to.have.status(200);")},
                {"name": "Read", "request": "{{base}}/read/{{code}}"},
            ]
        })
        .to_string()
    };
    let (result, steps, saw) = imported("postman", "shop.json", collection, "-n 6 -c 2");
    assert_eq!(steps, counts([("Log in", 6), ("Read", 6)]));
    assert_true(&result, &steps, &saw);
}

#[test]
fn a_script_of_artillery_makes_its_requests() {
    let script = |endpoint: &str| {
        json!({
            "config": {
                "target": format!("http://{endpoint}"),
                "phases": [{"duration": 1, "arrivalCount": 5}],
            },
            "scenarios": [{"flow": [
                {"get": {"url": "/", "name": "first"}},
                {
                    "loop": [{"post": {"url": "/item/{{ $loopCount }}", "name": "item", "json": {"a": 1}}}],
                    "count": 2,
                },
                {"loop": [{"get": {"url": "/again", "name": "again"}}], "count": 3},
            ]}],
        })
        .to_string()
    };
    let (result, steps, saw) = imported("artillery", "load.json", script, "--drain 5s");
    assert_eq!(steps, counts([("first", 5), ("item", 5), ("item (2)", 5), ("again", 15)]));
    assert_true(&result, &steps, &saw);
}

#[test]
fn a_test_plan_of_jmeter_makes_its_requests() {
    let test_plan = |endpoint: &str| {
        let (host, port) = endpoint.split_once(':').expect("a port");
        let property = |name: &str, value: &str| format!("<stringProp name=\"{name}\">{value}</stringProp>");
        let request = |name: &str, path: &str| {
            format!(
                "<HTTPSamplerProxy testname=\"{name}\">{}</HTTPSamplerProxy><hashTree/>",
                property("HTTPSampler.path", path)
            )
        };
        let defaults = format!(
            "<ConfigTestElement>{}{}</ConfigTestElement><hashTree/>",
            property("HTTPSampler.domain", host),
            property("HTTPSampler.port", port)
        );
        let twice = format!(
            "<LoopController>{}</LoopController><hashTree>{}</hashTree>",
            property("LoopController.loops", "2"),
            request("Second", "/second/${__UUID}")
        );
        let group = format!(
            "<elementProp name=\"ThreadGroup.main_controller\">{}</elementProp>{}",
            property("LoopController.loops", "3"),
            property("ThreadGroup.num_threads", "2")
        );
        format!(
            "<jmeterTestPlan><hashTree><TestPlan testname=\"Load\"/><hashTree><ThreadGroup \
             testname=\"Users\">{group}\
             </ThreadGroup><hashTree>{defaults}{}{twice}</hashTree></hashTree></hashTree></jmeterTestPlan>",
            request("First", "first")
        )
    };
    let (result, steps, saw) = imported("jmeter", "test.jmx", test_plan, "");
    assert_eq!(steps, counts([("First", 6), ("Second", 12)]));
    assert_true(&result, &steps, &saw);
}

/// The files of a tool that the crate `import` is tested with.
fn files_of(tool: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/import/tests").join(tool)
}

/// The answer of the server of `bench/scripts/recorder.py`.
const ANSWER: &str =
    r#"{"token":"t-0","id":7,"user":{"name":"Ann"},"items":[{"id":1},{"id":2}],"next":"/next/1"}"#;

/// A server that gives that answer, and keeps its requests: the first line, the headers that a script
/// decides in their order, and the body.
struct Recorder {
    authority: String,
    requests: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Recorder {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on");
        let authority = listener.local_addr().expect("it has one").to_string();
        let requests = Arc::<Mutex<Vec<Vec<String>>>>::default();
        let noted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let noted = Arc::clone(&noted);
                std::thread::spawn(move || serve(stream, &noted));
            }
        });
        Self { authority, requests }
    }

    fn take(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.requests.lock().expect("no panic"))
    }
}

/// Headers of the connection, and those that name the program.
const IGNORED: [&str; 5] = ["host", "user-agent", "content-length", "connection", "accept-encoding"];

fn serve(mut stream: TcpStream, noted: &Mutex<Vec<Vec<String>>>) {
    loop {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_exact(&mut byte).is_err() {
                return;
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("text");
        let mut lines = head.trim_end().split("\r\n");
        let first = lines.next().expect("a first line").trim_end_matches(" HTTP/1.1").to_owned();
        let headers: Vec<(String, &str)> = lines
            .map(|line| line.split_once(": ").expect("a field"))
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().expect("a number"))];
        stream.read_exact(&mut body).expect("the body");
        let mut kept: Vec<String> = headers
            .iter()
            .filter(|(name, _)| !IGNORED.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        kept.sort();
        let body = String::from_utf8(body).expect("text");
        let is_head = first.starts_with("HEAD ");
        let request = [vec![first], kept, vec![body]].concat();
        noted.lock().expect("no panic").push(request.iter().map(|line| kind(line)).collect());
        let reply = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-trace: trace-1\r\ncontent-length: \
             {}\r\n\r\n{}",
            ANSWER.len(),
            if is_head { "" } else { ANSWER }
        );
        if stream.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// Values that are drawn, by their kinds: as in `bench/scripts/recorder.py`.
fn kind(line: &str) -> String {
    let mut line = line.to_owned();
    for (expression, kind) in [
        ("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
        ("(random=)[^&]+", "${1}RANDOM"),
        ("(\"random\":)\"[^\"]+\"", "${1}\"RANDOM\""),
        ("^(x-random: ).+", "${1}RANDOM"),
        ("(t=)[0-9]{13}", "${1}TIME"),
    ] {
        line = regex::Regex::new(expression).expect("it is one").replace_all(&line, kind).into_owned();
    }
    line
}

/// A file of Locust or Gatling whose users do not wait: `try` would carry the waits out.
fn without_waits(text: &str) -> String {
    let mut text = text.to_owned();
    for (expression, none) in [
        (r"wait_time = [a-z_]+\([0-9., ]+\)", "wait_time = constant(0)"),
        (r"time\.sleep\([0-9.]+\)", "pass"),
        (r"\bpause\((?:[^()]|\([^()]*\))*\)", "pause(0)"),
    ] {
        text = regex::Regex::new(expression).expect("it is one").replace_all(&text, none).into_owned();
    }
    text
}

/// Imports each file of a tool that has one with its requests, `*.requests`, beside it, tries its plan, and
/// compares the requests. Files with the word `at_once` send requests that arrive in any order.
/// `others` are files that they need, `options` those of the import. Returns how many there are.
fn assert_same_requests(
    tool: &str,
    endings: &[&str],
    others: &[&str],
    options: &str,
    at_once: Option<&str>,
) -> usize {
    let server = Recorder::start();
    let mut count = 0;
    for entry in std::fs::read_dir(files_of(tool)).expect("the folder") {
        let wanted = entry.expect("an entry").path();
        if wanted.extension().is_none_or(|ending| ending != "requests") {
            continue;
        }
        count += 1;
        let folder = Folder::new();
        let copied = |name: &str, content: &str| {
            let content = content.replace("127.0.0.1:8080", &server.authority);
            folder.write(name, without_waits(&content));
        };
        for name in others {
            let path = folder.file(name);
            let parent = Path::new(&path).parent().expect("it is in a folder");
            std::fs::create_dir_all(parent).expect("a folder");
            copied(name, &std::fs::read_to_string(files_of(tool).join(name)).expect("the file"));
        }
        let mut scripts = endings.iter().map(|ending| wanted.with_extension(ending));
        let script = &scripts.find(|path| path.exists()).expect("its script");
        let name = script.file_name().and_then(|name| name.to_str()).expect("a name");
        let text = std::fs::read_to_string(script).expect("the script");
        copied(name, &text);
        let plan = run(&format!("import {tool} {} {options}", folder.file(name)));
        assert_eq!(plan.code, Some(0), "{name}: {}", plan.stderr);
        let plan = folder.write("plan.yaml", plan.stdout);
        assert_eq!(run(&format!("check {plan}")).code, Some(0), "{name}");
        server.take();
        let tried = run(&format!("try {plan} -o json"));
        assert_eq!(tried.code, Some(0), "{name}: {}{}", tried.stdout, tried.stderr);
        let mut requests = server.take();
        // Requests that are sent at once arrive in any order.
        if at_once.is_some_and(|word| text.contains(word)) {
            requests.sort();
        }
        let mut shown = String::new();
        for request in requests {
            let lines: Vec<&str> =
                request.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
            shown.push_str(&lines.join("\n"));
            shown.push_str("\n\n");
        }
        let shown = shown.replace(&server.authority, "127.0.0.1:8080");
        assert_eq!(shown, std::fs::read_to_string(&wanted).expect("the requests"), "{name}");
    }
    count
}

/// `bench/scripts/k6.py --write` keeps the requests that k6 itself makes in the files `*.requests`.
#[test]
fn scripts_of_k6_make_the_requests_that_k6_makes() {
    let others = ["lib/api.js", "users.json", "accounts.csv"];
    assert_eq!(assert_same_requests("k6", &["js", "ts"], &others, "", Some("http.batch")), 18);
}

/// The requests are those that Gatling's documentation says of each word, written by hand.
#[test]
fn simulations_of_gatling_make_their_requests() {
    let others = ["search.csv", "users.json", "body.json", "template.json"];
    let others = others.map(|name| format!("resources/{name}"));
    let others = others.each_ref().map(String::as_str);
    let endings = ["java", "scala", "js", "ts"];
    assert_eq!(assert_same_requests("gatling", &endings, &others, "", Some(".resources(")), 14);
}

/// All users of all populations make all of their requests, however the load begins.
#[test]
fn a_simulation_of_gatling_makes_its_requests_under_load() {
    let simulation = |endpoint: &str| {
        let text = std::fs::read_to_string(files_of("gatling").join("Loops.java")).expect("the file");
        let text = text.replace("127.0.0.1:8080", endpoint).replace(".pause(1, 2)", "");
        text.replace("atOnceUsers(2), nothingFor(Duration.ofSeconds(5)), ", "")
    };
    let (result, steps, saw) = imported("gatling", "Loops.java", simulation, "");
    assert_eq!((steps["again"], steps["set"], steps["outer / inner: deep"]), (18, 12, 6), "{steps:?}");
    assert_true(&result, &steps, &saw);
}

/// `bench/scripts/locust.py --write` keeps those of Locust. It picks tasks at random; there as here each task
/// is carried out once, so that the requests come in one order.
#[test]
fn locustfiles_make_the_requests_that_locust_makes() {
    let others = ["common/paths.py", "accounts.csv"];
    assert_eq!(assert_same_requests("locust", &["py"], &others, "--tasks 1", None), 17);
}

#[test]
fn a_locustfile_makes_its_requests_under_load() {
    let file = |endpoint: &str| {
        let text = std::fs::read_to_string(files_of("locust").join("quickstart.py")).expect("the file");
        text.replace("127.0.0.1:8080", endpoint)
            .replace("between(1, 5)", "constant(0)")
            .replace("            time.sleep(1)\n", "")
    };
    let (result, steps, saw) = imported("locust", "quickstart.py", file, "-n 4 --users 2");
    // Of four iterations three have ten times ten items, and one has ten times the other task.
    let of = |begin: &str| -> u64 {
        steps.iter().filter(|(name, _)| name.starts_with(begin)).map(|(_, requests)| requests).sum()
    };
    let sums = ["GET /hello", "GET /world", "/item", "POST /login"].map(of);
    assert_eq!(sums, [10, 10, 300, 4], "{steps:?}");
    assert_true(&result, &steps, &saw);
}

#[test]
fn a_script_of_k6_makes_its_requests_under_load() {
    let script = |endpoint: &str| {
        let text = std::fs::read_to_string(files_of("k6").join("loops.js")).expect("the script");
        text.replace("127.0.0.1:8080", endpoint)
            .split("  const res = http.get('http")
            .next()
            .map_or_else(String::new, |begin| format!("{begin}}}\n"))
    };
    let (result, steps, saw) = imported("k6", "loops.js", script, "-n 4 --users 2");
    let sum: u64 = steps.values().sum();
    assert_eq!((steps["front"], steps["GET /again"], sum), (4, 16, 4 * 12), "{steps:?}");
    assert_true(&result, &steps, &saw);
}
