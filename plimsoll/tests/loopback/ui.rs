//! `plimsoll ui`: the requests of its page, answered by real processes.
//!
//! Tests wait for answers and events, never for a time.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_testkit::{machine, verdict};
use serde_json::{Value, json};

use crate::examples;
use crate::loopback::process::{Folder, Process, plimsoll, run_beside};
use crate::loopback::sink::Sink;

/// Longest time for the end of a process whose parent has ended.
const PATIENCE: Duration = Duration::from_secs(20);

/// The page's server, and the credentials of a page.
struct Ui {
    process: Process,
    folder: Folder,
    page: Page,
}

impl Deref for Ui {
    type Target = Page;

    fn deref(&self) -> &Page {
        &self.page
    }
}

/// A page: the address of its server, and its cookie.
struct Page {
    address: String,
    cookie: String,
}

/// A stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    /// The next event: its name and its data.
    fn next(&mut self) -> (String, Value) {
        let mut name = String::new();
        for line in self.0.by_ref().lines() {
            let line = line.expect("the stream goes on");
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (name, serde_json::from_str(data).expect("data are JSON"));
            }
        }
        panic!("the stream ended")
    }

    /// Reads up to an event that is as wanted.
    fn wait_for(&mut self, wanted: impl Fn(&str, &Value) -> bool) -> Value {
        loop {
            let (name, data) = self.next();
            if wanted(&name, &data) {
                return data;
            }
            assert_ne!(name, "end", "it ended before: {data}");
        }
    }

    /// Reads to the end of the run.
    fn end(&mut self) -> Value {
        loop {
            let (name, data) = self.next();
            if name == "end" {
                return data;
            }
        }
    }
}

impl Ui {
    fn start() -> Self {
        Self::start_in(&[])
    }

    /// Starts one with more variables in its environment.
    fn start_in(environment: &[(&str, &str)]) -> Self {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("plans")).expect("the folder can be written");
        let arguments =
            format!("ui {} --listen 127.0.0.1:0 --store {}", folder.file("plans"), folder.file("h.db"));
        let mut command = plimsoll(&arguments);
        let mut process =
            Process::try_start(command.envs(environment.iter().copied())).expect("it was built");
        let line = process.stderr.wait_for("ui: open http://");
        let (address, token) =
            line.trim_start_matches("ui: open http://").split_once("/#token=").expect("a token");
        let mut page = Page { address: address.to_owned(), cookie: String::new() };
        let (_, head, _) = page.exchange("POST", "/api/session", &json!({"token": token}).to_string());
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
        page.cookie = cookie.split(';').next().expect("a pair").to_owned();
        Self { process, folder, page }
    }
}

impl Page {
    fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let Self { address, cookie, .. } = self;
        let mut stream = TcpStream::connect(address).expect("it listens");
        let fields = format!(
            "host: {address}\r\norigin: http://{address}\r\ncookie: {cookie}\r\nx-plimsoll-ui: 1\r\n"
        );
        let kind = "content-type: application/json\r\nconnection: close\r\n";
        let length = body.len();
        let text =
            format!("{method} {path} HTTP/1.1\r\n{fields}{kind}content-length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).expect("it reads");
        stream
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> (u16, String, String) {
        let mut text = Vec::new();
        self.send(method, path, body).read_to_end(&mut text).expect("it answers and closes");
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        (status.expect("a status"), head.to_owned(), body.to_owned())
    }

    fn get(&self, path: &str) -> Value {
        let (status, _, body) = self.exchange("GET", path, "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }

    fn post_for(&self, expected: u16, path: &str, body: &Value) -> Value {
        let (status, _, body) = self.exchange("POST", path, &body.to_string());
        assert_eq!(status, expected, "{path}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.post_for(200, path, body)
    }

    fn events(&self, path: &str) -> Events {
        Events(BufReader::new(self.send("GET", path, "")))
    }

    /// Starts a run of a text, and returns its id.
    fn run(&self, text: &str, flags: &[&str]) -> String {
        let start =
            json!({"path": null, "text": text, "command": "run", "flags": flags, "name": "of the page"});
        self.post("/api/live", &start)["id"].as_str().expect("an id").to_owned()
    }

    /// The examples.
    fn examples(&self) -> Vec<Value> {
        self.get("/api/examples")["examples"].as_array().expect("a list").clone()
    }

    /// The text of an example.
    fn example(&self, name: &str) -> String {
        let found = self.examples().into_iter().find(|example| example["name"] == name).expect("an example");
        found["text"].as_str().expect("a text").to_owned()
    }

    /// Has the server of the usual examples started, and returns its URL.
    fn with_sink(&self) -> String {
        self.post("/api/try", &json!({"path": null, "text": self.example("open-rate")}));
        self.get("/api/about")["sink"].as_str().expect("a URL").to_owned()
    }

    /// The saved runs.
    fn saved(&self) -> Vec<Value> {
        self.get("/api/runs")["runs"].as_array().expect("a list").clone()
    }
}

fn plan(sink: &Sink, duration: &str) -> String {
    let url = sink.url();
    format!(
        "run:\n  rate: 200/s\n  duration: {duration}\ntargets:\n  api: {url}\nscenarios:\n  - steps:\n      - get: /\n"
    )
}

#[test]
fn a_run_is_started_steered_stopped_listed_exported_compared_and_deleted() {
    let (sink, ui) = (Sink::start(""), Ui::start());
    let text = plan(&sink, "60s");
    let id = ui.run(&text, &["--tag", "branch=main", "-R", "100"]);
    let path = |what: &str| format!("/api/live/{id}/{what}");
    // Two pages see the same.
    let (mut events, mut others) = (ui.events(&path("events")), ui.events(&path("events")));
    let first = events.wait_for(|name, data| name == "result" && data["result"].is_object());
    assert_eq!((&first["stat"]["running"], &first["stat"]["target_per_s"]), (&json!(true), &json!(100.0)));
    // What only single responses tell is there from the beginning on.
    let (result, step) = (&first["result"], &first["result"]["by_step"][0]);
    assert!(result["statuses"]["200"].as_u64().is_some_and(|responses| responses > 0), "{result}");
    assert_eq!(
        (&step["statuses"], &result["run"]["targets"][0]["protocol"]),
        (&result["statuses"], &json!("http/1.1"))
    );
    // Later ones are joined to the intervals that are known.
    let later = events.wait_for(|name, data| {
        name == "result" && data["result"]["intervals"].as_array().is_some_and(|all| all.len() > 3)
    });
    let ends: Vec<f64> = later["result"]["intervals"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|interval| interval["at_s"].as_f64())
        .collect();
    assert!(ends.is_sorted_by(|one, next| one < next) && ends[0] <= 1.0, "{ends:?}");
    let told = ui.post(&path("rate"), &json!({"rate": "300/s"}));
    assert!(told["told"].as_str().is_some_and(|told| told.starts_with("rate 300/s")), "{told}");
    for events in [&mut events, &mut others] {
        events.wait_for(|name, data| name == "result" && data["stat"]["target_per_s"] == 300.0);
    }
    ui.post_for(400, &path("rate"), &json!({"rate": "fast"}));
    ui.post(&path("pause"), &json!({}));
    events.wait_for(|name, data| name == "result" && data["stat"]["paused"] == true);
    ui.post(&path("resume"), &json!({}));
    events.wait_for(|name, data| name == "result" && data["stat"]["paused"] == false);
    let going_on = &ui.get("/api/live")["runs"][0];
    assert_eq!(
        (&going_on["id"], &going_on["state"], &going_on["from"]),
        (&json!(id), &json!("running"), &json!("ui"))
    );
    ui.post(&path("stop"), &json!({}));
    let (end, other) = (events.end(), others.end());
    assert_eq!(end, other);
    let run = end["run"].as_str().expect("it is saved").to_owned();
    // A late page gets everything once more: messages, the result, the end.
    let mut late = ui.events(&path("events"));
    late.wait_for(|name, data| {
        name == "message" && data["text"].as_str().is_some_and(|text| text.starts_with("saved as"))
    });
    let last = late.wait_for(|name, _| name == "result");
    assert_eq!((&last["stat"]["running"], &last["result"]["run"]["id"]), (&json!(false), &json!(run)));
    assert_eq!(late.end(), end);
    ui.post_for(409, &path("stop"), &json!({}));

    let listed = ui.saved();
    assert_eq!((listed.len(), &listed[0]["id"]), (1, &json!(run)));
    assert_eq!((&listed[0]["name"], &listed[0]["tags"]), (&json!("of the page"), &json!(["branch=main"])));
    assert!(listed[0]["rate_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{}", listed[0]);
    for (filter, total) in [("", 1), ("page", 1), ("branch=main%20of", 1), ("other", 0), ("branch=%25", 0)] {
        assert_eq!(ui.get(&format!("/api/runs?filter={filter}"))["total"], total, "{filter}");
    }
    let result = ui.get(&format!("/api/runs/{run}"));
    let changes = result["rate"]["changes"].as_array().expect("a list");
    assert_eq!(changes.len(), 3, "{changes:?}");
    assert_eq!(result["run"]["stopped_by"], "http");
    for (format, begin) in [
        ("json", "{"),
        ("csv", "at_s,"),
        ("markdown", "#"),
        ("junit", "<?xml"),
        ("ndjson", "{"),
        ("hgrm", ""),
        ("hlog", "#"),
        ("k6", "{"),
        ("html", "<!doctype html>"),
        ("text", ""),
    ] {
        let (status, head, body) = ui.exchange("GET", &format!("/api/runs/{run}/export?format={format}"), "");
        assert_eq!(status, 200, "{format}: {body}");
        assert!(head.contains("content-disposition: attachment; filename=\"plimsoll-"), "{head}");
        assert!(
            !body.is_empty() && body.to_lowercase().contains(begin),
            "{format}: {}",
            body.chars().take(80).collect::<String>()
        );
    }
    let (status, ..) = ui.exchange("GET", &format!("/api/runs/{run}/export?format=exe"), "");
    assert_eq!(status, 422);

    let second = ui.run(&plan(&sink, "1s"), &[]);
    let end = ui.events(&format!("/api/live/{second}/events")).end();
    let compared = ui.post("/api/compare", &json!({"a": [run], "b": [end["run"]]}));
    assert!(compared["schema_version"].is_number() || compared["schema_version"].is_string(), "{compared}");
    ui.post_for(404, "/api/compare", &json!({"a": [run], "b": ["../h.db"]}));
    ui.post(&format!("/api/runs/{run}/delete"), &json!({}));
    assert_eq!(ui.saved().iter().map(|run| &run["id"]).collect::<Vec<_>>(), [&end["run"]]);
}

/// Symptom: searches and sweeps of the history were in `plimsoll runs`, and in no list of the page.
#[test]
fn searches_of_the_history_are_listed_opened_exported_and_deleted() {
    let (sink, ui) = (Sink::start(""), Ui::start());
    let store = ui.folder.file("h.db");
    let find = |flags: &str| {
        let line = format!("find {} {flags} --quiet --save --store {store}", sink.url());
        let output = plimsoll(&line).output().expect("it was built");
        assert!(verdict::ran(output.status.code()), "{}", String::from_utf8_lossy(&output.stderr));
    };
    find("--slo p50<1s --from 20 --to 40 -d 100ms --max-time 10s --name capacity");
    find("--sweep connections=1,2 -d 100ms --name sweep --tag branch=main");
    let listed = ui.saved();
    let of = |name: &str| listed.iter().find(|row| row["name"] == name).expect("it is listed");
    for (name, kind, key, is_of) in
        [("capacity", "search", "search", "capacity"), ("sweep", "sweep", "sweep", "usl")]
    {
        let row = of(name);
        let id = row["id"].as_str().expect("an id");
        assert_eq!(row["kind"], kind);
        assert!(row["answer"].as_str().is_some_and(|answer| !answer.is_empty()), "{row}");
        let found = ui.get(&format!("/api/runs/{id}"));
        assert_eq!(found[key]["id"], id);
        assert!(found.get(is_of).is_some(), "{found}");
        for (format, begin) in
            [("json", "{"), ("csv", ","), ("markdown", "#"), ("junit", "<?xml"), ("html", "<!doctype html>")]
        {
            let path = format!("/api/runs/{id}/export?format={format}");
            let (status, _, body) = ui.exchange("GET", &path, "");
            assert!(status == 200 && body.to_lowercase().contains(begin), "{name} as {format}: {body}");
        }
        let (status, ..) = ui.exchange("GET", &format!("/api/runs/{id}/export?format=hgrm"), "");
        assert_eq!(status, 422, "a search has no histograms");
        let refused = ui.post_for(422, "/api/compare", &json!({"a": [id], "b": [id]}));
        assert!(
            refused["error"].as_str().is_some_and(|error| error.contains("a run is wanted")),
            "{refused}"
        );
        ui.post(&format!("/api/runs/{id}/delete"), &json!({}));
    }
    assert_eq!(ui.saved(), Vec::<Value>::new());
}

#[test]
fn mistakes_are_found_where_they_are_and_nothing_is_started() {
    let ui = Ui::start();
    let wrong =
        "run:\n  rat: 5\ntargets:\n  api: http://127.0.0.1:1\nscenarios:\n  - steps:\n      - get: /\n";
    let draft = json!({"path": null, "text": wrong});
    let checked = ui.post("/api/check", &draft);
    assert_eq!(checked["ok"], false);
    let problem = &checked["problems"][0];
    assert_eq!((&problem["line"], &problem["column"], &problem["length"]), (&json!(2), &json!(3), &json!(3)));
    assert_eq!(problem["hint"], "did you mean `rate`?");
    assert_eq!(ui.post("/api/explain", &draft), checked);
    assert_eq!(ui.post("/api/try", &draft)["problems"], checked["problems"]);
    let start = |text: &str, flags: &[&str]| json!({"path": null, "text": text, "command": "run", "flags": flags, "name": null});
    let refused = ui.post_for(422, "/api/live", &start(wrong, &[]));
    assert_eq!((&refused["problems"], &refused["hint"]), (&checked["problems"], &problem["hint"]));
    let right = wrong.replace("rat:", "rate:");
    assert_eq!(
        ui.post("/api/check", &json!({"path": null, "text": right})),
        json!({"ok": true, "problems": []})
    );
    // The plan is right, but this server cannot carry out these flags.
    let refused = ui.post_for(422, "/api/live", &start(&right, &[]));
    assert_eq!(refused["problems"], json!([]), "{refused}");
    for flag in [
        "--out=json=/tmp/x",
        "--control=127.0.0.1:0",
        "--json=/tmp/x",
        "--save",
        "--store=/tmp/x",
        "--script=x.lua",
        "--prometheus=:0",
    ] {
        let refused = ui.post_for(422, "/api/live", &start(&right, &[flag]));
        assert!(refused["error"].as_str().is_some_and(|error| error.contains("cannot be used")), "{refused}");
    }
    assert_eq!(ui.get("/api/live"), json!({"runs": []}));
    assert_eq!(ui.saved(), [json!(null); 0]);
}

/// A page names files of the opened folder alone, whatever flag or argument of a form names them.
#[test]
fn flags_of_a_page_read_files_of_the_folder_alone() {
    let ui = Ui::start();
    let sink = Sink::start("");
    std::fs::write(ui.folder.path().join("secret"), "topsecret").expect("the folder can be written");
    std::fs::write(ui.folder.path().join("plans/token"), "1234").expect("the folder can be written");
    std::os::unix::fs::symlink("../secret", ui.folder.path().join("plans/link")).expect("a link");
    let text = plan(&sink, "100ms");
    let secure = text.replace("http://", "https://");
    let outside = ui.folder.file("secret");
    for flag in ["--bearer=@", "--basic=@", "--cacert=", "--cert=", "--stages=@", "--body-file="] {
        for file in [outside.as_str(), "../secret", "link", "/dev/zero"] {
            let flags = [format!("{flag}{file}")];
            for (path, more) in
                [("/api/live", json!({"command": "run", "name": null})), ("/api/explain", json!({}))]
            {
                let text = if flag.contains("cert") { &secure } else { &text };
                let mut asked = json!({"path": null, "text": text, "flags": flags});
                let more = more.as_object().expect("an object").clone();
                asked.as_object_mut().expect("an object").extend(more);
                let (status, _, body) = ui.exchange("POST", path, &asked.to_string());
                let why = [
                    "cannot be used",
                    "there is no flag",
                    "it is not below",
                    "it is a pipe, a socket or a device",
                ];
                let is_told = why.iter().any(|why| body.contains(why));
                assert!(is_told && !body.contains("topsecret"), "{path} {flag}{file}: {status} {body}");
            }
        }
    }
    let explained =
        ui.post("/api/explain", &json!({"path": null, "text": text, "flags": ["--bearer=@token"]}));
    assert!(explained["explanation"].is_object(), "{explained}");
    for (command, arguments) in [
        ("crud", json!({"url": "http://127.0.0.1:1", "create": format!("@{outside}")})),
        ("crud", json!({"url": "http://127.0.0.1:1", "create": "@../secret"})),
        ("canister", json!({"urls": ["127.0.0.1:1"], "pem_file": outside})),
        ("run", json!({"urls": ["http://127.0.0.1:1/"], "bearer": format!("@{outside}")})),
        ("ingest", json!({"what": ["logs"], "url": "http://127.0.0.1:1", "token": format!("@{outside}")})),
        ("llm", json!({"url": "http://127.0.0.1:1", "api_key": format!("@{outside}")})),
    ] {
        let asked = json!({"command": command, "arguments": arguments}).to_string();
        let (status, _, body) = ui.exchange("POST", "/api/plan-of", &asked);
        assert!(!body.contains("topsecret"), "{command} {arguments}: {status} {body}");
    }
}

/// Plans of examples and of forms are plans, and trials and imports give the results of the command line.
#[test]
fn examples_forms_and_imports_become_plans() {
    let ui = Ui::start();
    let text = &*ui.example("open-rate");
    assert_eq!(ui.get("/api/about")["sink"], json!(null), "nothing is started before it is wanted");
    let tried = ui.post("/api/try", &json!({"path": null, "text": text, "flags": []}));
    assert_eq!(tried["exchanges"][0]["response"]["status"], 200, "{tried}");
    let url = ui.get("/api/about")["sink"].clone();
    assert!(url.as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")), "{url}");
    let explained = ui.post("/api/explain", &json!({"path": null, "text": text, "flags": ["--rate=7"]}));
    assert_eq!(ui.get("/api/about")["sink"], url, "it is started once");
    assert_eq!(explained["explanation"]["schedule"]["points"][0][1], 7.0, "{explained}");
    for (command, arguments) in [
        ("crud", json!({"rate": "5/s", "duration": "2s"})),
        ("cache", json!({"connections": 3})),
        ("ingest", json!({"what": ["logs"], "url": "http://127.0.0.1:1"})),
        ("canister", json!({"urls": ["127.0.0.1:1"], "seconds": "2"})),
        (
            "run",
            json!({"urls": ["http://127.0.0.1:1/a?b=${uuid}", "127.0.0.1:2"], "rate": "5/s", "body": "x"}),
        ),
        ("find", json!({"urls": ["127.0.0.1:1"], "slo": ["p99<1s"], "to": "50"})),
    ] {
        let made = ui.post("/api/plan-of", &json!({"command": command, "arguments": arguments}));
        let checked = ui.post("/api/check", &json!({"path": null, "text": made["text"]}));
        assert_eq!(checked["ok"], true, "{command}: {checked} {made}");
    }
    // No form reads a file of this machine as a plan.
    let secret = ui.folder.file("secret.yaml");
    std::fs::write(&secret, "name: secret\n").expect("the folder can be written");
    let refused =
        ui.post_for(422, "/api/plan-of", &json!({"command": "run", "arguments": {"urls": [secret]}}));
    assert!(refused["error"].as_str().is_some_and(|error| error.contains("no host")), "{refused}");
    let wrong = ui.post_for(422, "/api/plan-of", &json!({"command": "crud", "arguments": {"rate": "fast"}}));
    assert!(wrong["error"].as_str().is_some_and(|error| error.contains("fast")), "{wrong}");
    let curl = json!({"name": "", "text": "curl -H 'x: y' http://a.test/b", "kind": null});
    let imported = ui.post("/api/import", &curl);
    assert!(imported["plan"].as_str().is_some_and(|plan| plan.contains("get: /b")), "{imported}");
    assert!(imported["notes"].is_array(), "{imported}");
    ui.post_for(422, "/api/import", &json!({"name": "", "text": "{", "kind": "har"}));
    let found = json!({"path": null, "text": text, "command": "find", "name": null,
        "flags": ["--max-time=4s", "-d", "500ms", "--slo=p99<1s", "--to=200"]});
    let id = ui.post("/api/live", &found)["id"].as_str().expect("an id").to_owned();
    let end = ui.events(&format!("/api/live/{id}/events")).end();
    assert!(end["capacity"].is_object(), "{end}");
}

/// Symptom: of 45 examples 21 could not be run by their button in an empty folder, or had failed requests.
#[test]
fn every_example_runs_by_its_button_in_an_empty_folder() {
    // A token of the person is not for a server of an example.
    let ui = Ui::start_in(&[("TOKEN", "topsecret"), ("TARGET", "http://127.0.0.1:1")]);
    let (page, all) = (&ui.page, ui.examples());
    let text_of = |example: &Value, key: &str| example[key].as_str().expect("a text").to_owned();
    let mut names: Vec<String> = all.iter().map(|example| text_of(example, "name")).collect();
    names.sort_unstable();
    assert_eq!(names, examples::examples());
    for example in &all {
        let title = text_of(example, "title");
        assert!(
            (3..=6).contains(&title.split(' ').count()) && !text_of(example, "server").is_empty(),
            "{title}"
        );
    }
    let next = AtomicUsize::new(0);
    // As many as may be run at a time.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(example) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let _turn = machine::load();
                    let (name, text) = (example["name"].as_str(), example["text"].as_str());
                    let (name, text) = (name.expect("a name"), text.expect("a text"));
                    let id = page.run(text, examples::shortened(text));
                    let end = page.events(&format!("/api/live/{id}/events")).end();
                    let code = end["exit_code"].as_i64().and_then(|code| i32::try_from(code).ok());
                    assert!(verdict::ran(code), "{name}: {end}");
                    let run = end["run"].as_str().expect("it is saved");
                    let result = page.get(&format!("/api/runs/{run}"));
                    examples::check(name, &result);
                    assert!(!result.to_string().contains("topsecret"), "{name}");
                }
            });
        }
    });
    let plans = std::fs::read_dir(ui.folder.path().join("plans")).expect("the folder");
    assert_eq!(plans.count(), 0, "nothing was put into the folder of the person");
}

/// The files of an example that is edited are put beside it, and none of the person's is replaced.
#[test]
fn an_example_that_is_edited_has_its_files_and_its_server() {
    let sink = Sink::start("");
    let ui = Ui::start_in(&[("TARGET_2", &sink.endpoint)]);
    let files = |name: &str| ui.post("/api/example/files", &json!({"name": name}));
    assert_eq!(files("csv-data"), json!({"written": ["data/users.csv"], "kept": []}));
    let users = ui.folder.file("plans/data/users.csv");
    std::fs::write(&users, "user,password\nown,row\n").expect("the folder can be written");
    assert_eq!(files("csv-data"), json!({"written": [], "kept": ["data/users.csv"]}));
    assert!(std::fs::read_to_string(&users).is_ok_and(|text| text.contains("own,row")));
    assert_eq!(files("grpc"), json!({"written": ["sink.proto"], "kept": []}));
    assert_eq!(files("open-rate"), json!({"written": [], "kept": []}));
    ui.post_for(404, "/api/example/files", &json!({"name": "../secret"}));
    let tried = |text: &str| ui.post("/api/try", &json!({"path": "mine.yaml", "text": text}));
    let edited = |name: &str| format!("{}# Mine.\n", ui.example(name));
    for (name, status) in [("csv-data", 200), ("extract-header", 201), ("grpc", 200)] {
        let tried = tried(&edited(name));
        let answer = &tried["exchanges"][0]["response"]["status"];
        assert_eq!((&tried["ok"], answer), (&json!(true), &json!(status)), "{name}: {tried}");
    }
    // The variable that the person has set is theirs in plans of theirs.
    let other = tried(&edited("other-servers"));
    assert_eq!(other["ok"], true, "{other}");
    assert!(other.to_string().contains(&sink.endpoint), "{other}");
    // A line of a plan starts no other server than those of examples.
    let log = ui.folder.file("log.csv");
    let wrong = edited("open-rate").replace("plimsoll sink", &format!("plimsoll sink --truth-log {log}"));
    assert_eq!(tried(&wrong)["ok"], false);
    assert!(!Path::new(&log).exists());
}

/// Symptom: a sink that the page had started outlived a server that was killed.
#[test]
fn a_server_that_is_killed_leaves_none_of_those_that_it_has_started() {
    let mut ui = Ui::start();
    let url = ui.with_sink();
    let mut connection = TcpStream::connect(url.trim_start_matches("http://")).expect("it listens");
    connection.set_read_timeout(Some(PATIENCE)).expect("a socket has one");
    ui.process.signal("KILL");
    ui.process.wait();
    // Its end is that of the connection, on which nothing was asked.
    let read = connection.read(&mut [0]);
    let has_ended = match &read {
        Ok(bytes) => *bytes == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    };
    assert!(has_ended, "it goes on: {read:?}");
}

/// Symptom: a script of a page could name any file of the machine.
#[test]
fn imports_read_nothing_beside_the_opened_folder() {
    let ui = Ui::start();
    let secret = ui.folder.file("secret.yaml");
    std::fs::write(&secret, "name: secret\n").expect("the folder can be written");
    for text in [
        format!("curl -d @{secret} http://a.test/b"),
        "curl -d @../secret.yaml http://a.test/b".to_owned(),
        "import http from 'k6/http'\nexport default () => { http.post('http://a.test/', JSON.parse(open('../secret.yaml')).a) }"
            .to_owned(),
    ] {
        let refused = ui.post_for(422, "/api/import", &json!({"name": "", "text": text, "kind": null}));
        assert!(!refused.to_string().contains("name: secret"), "{text}: {refused}");
        let is_told = refused.to_string().contains("it is not below the folder of the import");
        assert!(is_told, "{text}: {refused}");
    }
    std::fs::write(ui.folder.file("plans/own.txt"), "opened").expect("the folder can be written");
    let own = json!({"name": "", "text": "$ curl -d @own.txt http://a.test/b", "kind": null});
    assert!(ui.post("/api/import", &own)["plan"].as_str().is_some_and(|plan| plan.contains("opened")));
}

/// Symptom to be avoided: the page's server dies in the middle of the night, and with it the run.
#[test]
fn a_server_that_is_killed_leaves_its_run_going_and_saved() {
    let (sink, ui) = (Sink::start(""), Ui::start());
    let id = ui.run(&plan(&sink, "4s"), &[]);
    ui.events(&format!("/api/live/{id}/events"))
        .wait_for(|name, data| name == "result" && data["result"].is_object());
    ui.process.signal("KILL");
    let store = ui.folder.file("h.db");
    let state = || {
        let listed: Value =
            serde_json::from_str(&run_beside(&format!("runs -o json --store {store}")).stdout).expect("JSON");
        listed["runs"][0]["state"].as_str().expect("a run").to_owned()
    };
    let Ui { mut process, folder, .. } = ui;
    process.wait();
    let mut states = vec![state()];
    while states.last().is_some_and(|state| state == "running") {
        states.push(state());
    }
    assert_eq!(states.last().map(String::as_str), Some("finished"), "{states:?}");
    assert_eq!(states[0], "running");
    drop(folder);
}

/// The end of the server is that of the sink that it has started, and not that of its runs.
#[test]
fn the_end_says_which_runs_go_on() {
    let mut ui = Ui::start();
    let url = ui.with_sink();
    let sink = Sink::start("");
    let id = ui.run(&plan(&sink, "5s"), &[]);
    let mut events = ui.events(&format!("/api/live/{id}/events"));
    let first = events.wait_for(|name, data| name == "result" && data["result"].is_object());
    let run_id = first["result"]["run"]["id"].as_str().expect("an id");
    ui.process.signal("INT");
    let said = ui.process.stderr.wait_for("is still running as process");
    assert!(said.contains(run_id) && said.contains("`of the page`"), "{said}");
    ui.process.wait();
    assert!(TcpStream::connect(url.trim_start_matches("http://")).is_err(), "the sink has ended");
    // Only the run is left of it.
    let process =
        said.split("process ").nth(1).and_then(|rest| rest.split([',', ';']).next()).expect("a number");
    assert!(Path::new(&format!("/proc/{process}")).exists());
    let store = ui.folder.file("h.db");
    while run_beside(&format!("runs -o json --store {store}")).stdout.contains("\"running\"") {}
    assert!(run_beside(&format!("runs -o json --store {store}")).stdout.contains("\"finished\""));
}

#[test]
fn a_run_of_a_terminal_appears_and_news_are_told() {
    let (sink, ui) = (Sink::start(""), Ui::start());
    let mut events = ui.events("/api/events");
    assert_eq!(events.wait_for(|name, _| name == "live"), json!({"runs": []}));
    let store = ui.folder.file("h.db");
    let terminal = Process::start(plimsoll(&format!(
        "run {} --rate 50 -d 3s --name nightly --store {store}",
        sink.url()
    )));
    let live = events.wait_for(|name, data| name == "live" && data["runs"][0]["from"] == "terminal");
    assert_eq!((&live["runs"][0]["name"], &live["runs"][0]["state"]), (&json!("nightly"), &json!("running")));
    let id = live["runs"][0]["run"].as_str().expect("an id").to_owned();
    ui.post_for(409, &format!("/api/runs/{id}/delete"), &json!({}));
    let (status, ..) = ui.exchange("GET", &format!("/api/runs/{id}"), "");
    assert_eq!(status, 409);
    // It can be looked at, but for what is told only at the end, and not be steered.
    let mut seen = ui.events(&format!("/api/live/{id}/events"));
    let figures = seen.wait_for(|name, data| name == "result" && data["result"]["accounting"]["ok"] != 0);
    assert_eq!((&figures["stat"]["read_only"], &figures["stat"]["running"]), (&json!(true), &json!(true)));
    assert_eq!(figures["result"]["run"]["id"], id);
    ui.post_for(404, &format!("/api/live/{id}/stop"), &json!({}));
    assert!(terminal.finish().code.is_some());
    // Symptom: the page ended with what was known so far, which is DONE whatever comes of it.
    let judged = seen.wait_for(|name, data| name == "result" && data["stat"]["running"] == false);
    assert_eq!(seen.end(), json!({"exit_code": null, "run": id, "capacity": null, "from": "terminal"}));
    assert_eq!(judged["result"]["verdict"], ui.get(&format!("/api/runs/{id}"))["verdict"]);
    let (status, ..) = ui.exchange("GET", &format!("/api/live/{id}/events"), "");
    assert_eq!(status, 404, "it is over");
    events.wait_for(|name, data| name == "live" && *data == json!({"runs": []}));
    assert_eq!(ui.get(&format!("/api/runs/{id}"))["run"]["id"], id);
    // Another page is told, too, when one of them deletes it.
    let mut others = ui.events("/api/events");
    others.wait_for(|name, _| name == "live");
    ui.post(&format!("/api/runs/{id}/delete"), &json!({}));
    events.wait_for(|name, _| name == "runs");
    others.wait_for(|name, _| name == "runs");
    assert_eq!(ui.saved(), [json!(null); 0]);
}

/// A script that says something with each request must not fill the memory of the page or of its server.
#[test]
fn messages_are_bounded() {
    let (sink, ui) = (Sink::start(""), Ui::start());
    let script = "function make_request(h, b, headers, body)\n print('said')\n return headers, body\n end";
    let text = json!({
        "run": {"connections": 1, "iterations": 5000},
        "targets": {"api": sink.url()},
        "scenarios": [{"steps": [{"get": "/", "script": script}]}],
    });
    let text = text.to_string();
    let id = ui.run(&text, &[]);
    ui.events(&format!("/api/live/{id}/events")).end();
    let mut late = ui.events(&format!("/api/live/{id}/events"));
    let mut messages = 0;
    loop {
        match late.next() {
            (name, _) if name == "message" => messages += 1,
            (name, _) if name == "end" => break,
            _ => {}
        }
    }
    assert_eq!(messages, 1_000);
}
