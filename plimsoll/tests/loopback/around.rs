//! `setup` and `teardown` of a plan: once per run, before any load and after it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use plimsoll_testkit::machine;
use serde_json::Value;

use crate::loopback::process::{Finished, Folder, Process, plimsoll, run};
use plimsoll_testkit::sink_log::{account, assert_balance, delivered};

/// Begin of the tokens that the server gives out. A report must not have it.
pub(crate) const TOKEN: &str = "k7Qz9";

/// A server with a login. It keeps what it was asked, in order: `POST /login`, `GET /items Bearer …`.
pub(crate) struct Site {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<String>>>,
    /// Gets each request, too.
    news: Receiver<String>,
}

impl Site {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (seen, (tell, news)) = (Arc::new(Mutex::new(Vec::new())), channel());
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (all, tell) = (Arc::clone(&all), tell.clone());
                std::thread::spawn(move || serve(stream, &all, &tell));
            }
        });
        Self { url, seen, news }
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no thread panics").clone()
    }

    pub(crate) fn count(&self, request: &str) -> usize {
        self.seen().iter().filter(|seen| seen.starts_with(request)).count()
    }

    /// Waits until it was asked this so often from now on.
    fn wait_for(&self, request: &str, times: usize) {
        let asked = self.news.iter().filter(|news| news.starts_with(request)).take(times).count();
        assert_eq!(asked, times);
    }
}

/// Answers the requests of a connection. The server of a test ends with it.
fn serve(stream: TcpStream, seen: &Mutex<Vec<String>>, tell: &Sender<String>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut writer = stream;
    loop {
        let (mut first, mut authorization, mut length) = (String::new(), String::new(), 0);
        if !matches!(reader.read_line(&mut first), Ok(read) if read > 0) {
            return;
        }
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a whole head");
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "authorization" => value.clone_into(&mut authorization),
                "content-length" => length = value.parse().expect("a length"),
                _ => {}
            }
        }
        reader.read_exact(&mut vec![0; length]).expect("the body");
        let request = first.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
        let logins = {
            let mut seen = seen.lock().expect("no thread panics");
            seen.push(format!("{request} {authorization}").trim_end().to_owned());
            seen.iter().filter(|seen| seen.starts_with("POST /login")).count()
        };
        // The test may not listen any more.
        let _ = tell.send(request.clone());
        let token = format!("{TOKEN}{logins}");
        let number = authorization.strip_prefix("Bearer ").and_then(|given| given.strip_prefix(TOKEN));
        let known = number
            .and_then(|number| number.parse::<usize>().ok())
            .is_some_and(|given| (1..=logins).contains(&given));
        let (status, body) = match request.split(' ').nth(1).unwrap_or_default() {
            "/login" => ("200 OK", format!("{{\"token\": \"{token}\"}}")),
            // As long as those of an identity provider with many groups.
            "/login/long" => {
                ("200 OK", format!("{{\"token\": \"{token}\", \"more\": \"{}\"}}", "x".repeat(20_000)))
            }
            "/broken" => ("500 Oops", "no such user\nand more".to_owned()),
            "/empty" => ("200 OK", "{}".to_owned()),
            "/silent" => continue,
            _ if known => ("200 OK", "{}".to_owned()),
            _ => ("401 No", "no token".to_owned()),
        };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A plan that logs in at `login`, loads with the token, and ends with `logout`.
pub(crate) fn plan(folder: &Folder, url: &str, login: &str, logout: &str) -> String {
    folder.write(
        "plan.yaml",
        format!(
            "targets: {{api: \"{url}\"}}
setup:
  - post: {login}
    json: {{user: load}}
    extract: {{token: {{json: /token}}}}
scenarios:
  - name: list
    headers: {{authorization: 'Bearer ${{token}}'}}
    steps: [{{get: /items}}]
  - name: read
    steps: [{{get: /items/7, headers: {{authorization: 'Bearer ${{token}}'}}}}]
teardown:
  - delete: {logout}
    headers: {{authorization: 'Bearer ${{token}}'}}
"
        ),
    )
}

#[test]
fn there_is_one_login_before_the_load_and_one_logout_after_it() {
    let (site, folder) = (Site::start(), Folder::new());
    let plan = plan(&folder, &site.url, "/login", "/session");
    let finished = run(&format!("run {plan} -n 200 -c 4 -o json"));
    let result = finished.result();
    assert_balance(&result);
    let seen = site.seen();
    assert_eq!(seen.first().map(String::as_str), Some("POST /login"), "{seen:?}");
    assert_eq!(seen.last(), Some(&format!("DELETE /session Bearer {TOKEN}1")), "{seen:?}");
    assert_eq!((site.count("POST"), site.count("DELETE")), (1, 1));
    assert_eq!(site.count(&format!("GET /items Bearer {TOKEN}1")), 100);
    assert_eq!(site.count(&format!("GET /items/7 Bearer {TOKEN}1")), 100);
    // None of both is a request of the load, and both are accounted for.
    assert_eq!((account(&result, "started"), account(&result, "ok")), (200, 200));
    assert_eq!(account(&result, "unmeasured"), 2);
    assert_eq!(delivered(&result), seen.len() as u64);
    assert_eq!(result["by_step"].as_array().map(Vec::len), Some(2), "{}", result["by_step"]);
    for part in ["setup", "teardown"] {
        let once = &result["run"][part];
        assert_eq!((&once["requests"], &once["failed"]), (&1.into(), &0.into()), "{once}");
        assert!(once["duration_ns"].as_u64().is_some_and(|length| length > 0), "{once}");
        assert!(finished.stderr.contains(&format!("{part}: 1 request, ")), "{}", finished.stderr);
    }
    let long = run(&format!("run {plan} -n 20 -o text"));
    assert!(long.stdout.contains("\nsetup       1 request, "), "{}", long.stdout);
    assert!(long.stdout.contains("\nteardown    1 request, "), "{}", long.stdout);
    for finished in [&finished, &long] {
        assert!(!format!("{finished:?}").contains(TOKEN), "a token is shown: {finished:?}");
    }
}

#[test]
fn what_the_setup_takes_is_in_no_history_and_no_evidence() {
    let (site, folder) = (Site::start(), Folder::new());
    let plan = plan(&folder, &site.url, "/login", "/session");
    let (history, evidence) = (folder.file("history.db"), folder.file("run.evidence"));
    let page = folder.file("page.html");
    let finished = run(&format!(
        "run {plan} -n 50 --save --store {history} --evidence {evidence} --report {page} -o json"
    ));
    finished.result();
    let verified = run(&format!("verify {evidence}"));
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let files: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").flatten().collect();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        let bytes = std::fs::read(file.path()).expect("a file");
        let has = bytes.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes());
        assert!(!has, "a token is in {:?}", file.path());
    }
}

#[test]
fn a_run_that_is_interrupted_is_torn_down() {
    let (site, folder) = (Site::start(), Folder::new());
    let plan = plan(&folder, &site.url, "/login", "/session");
    let process = Process::start(plimsoll(&format!("run {plan} -d 60s -c 2 -o json")));
    site.wait_for("GET", 50);
    process.signal("INT");
    let finished = process.finish();
    assert_eq!(finished.code, Some(130), "{finished:?}");
    let result = finished.result();
    assert_eq!(result["run"]["interrupted_by_signal"], 2);
    assert_eq!((site.count("POST /login"), site.count("DELETE /session")), (1, 1));
    assert!(site.seen().last().is_some_and(|last| last.starts_with("DELETE /session")));
    assert_eq!(result["run"]["teardown"]["requests"], 1);
    assert_eq!(delivered(&result), site.seen().len() as u64);
}

#[test]
fn a_run_that_a_threshold_ends_is_torn_down() {
    let (site, folder) = (Site::start(), Folder::new());
    let plan = plan(&folder, &site.url, "/login", "/session");
    let finished = run(&format!("run {plan} -d 60s -c 2 --threshold p50<1ns --abort-on-fail -o json"));
    // The measurement of so short a run may be invalid.
    assert!(matches!(finished.code, Some(3 | 99)), "{finished:?}");
    assert!(finished.stdout.contains("\"ended_by_threshold\": \"p50<1ns"), "{}", finished.stdout);
    assert_eq!((site.count("POST /login"), site.count("DELETE /session")), (1, 1));
}

#[test]
fn no_load_begins_after_a_setup_that_failed() {
    let folder = Folder::new();
    let refused = |site: &Site, login: &str, message: &str| {
        let plan = plan(&folder, &site.url, login, "/session");
        let finished = run(&format!("run {plan} -n 10 --timeout 300ms --no-preflight"));
        assert_refusal(&finished, message);
        assert_eq!((site.count("GET"), site.count("DELETE")), (0, 0), "{:?}", site.seen());
    };
    let site = Site::start();
    refused(&site, "/broken", "the setup failed: POST /broken: ");
    refused(&site, "/broken", "status 500");
    refused(&site, "/broken", ": no such user");
    refused(&site, "/empty", "the setup failed: POST /empty: ");
    refused(&site, "/empty", "/token");
    refused(&site, "/silent", "the setup failed: POST /silent: ");
    assert_eq!(site.count("POST /silent"), 1);
    // Nothing listens there.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it is bound");
    let dead = Site { url: format!("http://{free}"), ..Site::start() };
    refused(&dead, "/login", "the setup failed: ");
}

fn assert_refusal(finished: &Finished, message: &str) {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(finished.stdout, "", "{finished:?}");
    assert!(finished.stderr.contains("\nhint: no load was begun"), "{}", finished.stderr);
    assert!(finished.stderr.contains(message), "`{message}` is not in: {}", finished.stderr);
}

#[test]
fn a_teardown_that_fails_is_a_warning() {
    let (site, folder) = (Site::start(), Folder::new());
    let plan = plan(&folder, &site.url, "/login", "/broken");
    let evidence = folder.file("run.evidence");
    let finished = run(&format!("run {plan} -n 50 --evidence {evidence} -o json"));
    let result = finished.result();
    assert_eq!((account(&result, "ok"), account(&result, "unmeasured")), (50, 2));
    let warnings = result["verdict"]["warnings"].as_array().expect("a list");
    let warning = warnings.iter().find(|warning| warning["code"] == "teardown_failed").expect("a warning");
    let said = warning["text"].as_str().or(warning["evidence"].as_str()).expect("words");
    assert!(said.contains("DELETE /broken") && said.contains("500"), "{warning}");
    assert!(said.contains("no such user"), "{warning}");
    assert_eq!(result["run"]["teardown"]["failed"], 1);
    let verified = run(&format!("verify {evidence}"));
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
fn several_runs_of_a_command_share_one_setup() {
    let folder = Folder::new();
    for command in [
        "run PLAN --repeat 3 -n 50 -o json",
        "find PLAN --from 50 --to 100 -d 1s --threshold p99<1s --max-time 8s -o json",
        "find PLAN --sweep connections=1,2 -d 1s -o json",
    ] {
        let site = Site::start();
        let plan = plan(&folder, &site.url, "/login", "/session");
        let finished = run(&command.replace("PLAN", &plan));
        assert!(matches!(finished.code, Some(0 | 1 | 3)), "{command}: {finished:?}");
        let seen = site.seen();
        assert_eq!((site.count("POST"), site.count("DELETE")), (1, 1), "{command}");
        assert_eq!(site.count("GET"), site.count("GET /items"));
        let wrong =
            seen.iter().filter(|seen| seen.starts_with("GET") && !seen.ends_with(&format!("{TOKEN}1")));
        assert_eq!(wrong.count(), 0, "{command}: each request has the token");
        assert!(seen.last().is_some_and(|last| last.starts_with("DELETE")), "{command}");
    }
}

#[test]
fn a_trial_shows_the_setup_and_hands_its_values_on() {
    let (site, folder) = (Site::start(), Folder::new());
    let tried = |login: &str| -> (Finished, Value) {
        let plan = plan(&folder, &site.url, login, "/session");
        let finished = run(&format!("try {plan} -o json"));
        let value =
            serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
        (finished, value)
    };
    let (finished, value) = tried("/login");
    assert_eq!(finished.code, Some(0), "{value:#}");
    let names: Vec<_> =
        value["exchanges"].as_array().into_iter().flatten().map(|one| &one["scenario"]).collect();
    assert_eq!(names, ["setup", "list", "read", "teardown"]);
    assert_eq!(site.count(&format!("GET /items Bearer {TOKEN}1")), 1);
    let (finished, value) = tried("/broken");
    assert_eq!(finished.code, Some(1), "{value:#}");
    assert_eq!(value["exchanges"].as_array().map(Vec::len), Some(1), "{value:#}");
    assert_eq!(site.count("DELETE"), 1, "what was not set up is not torn down");
}

#[test]
fn shards_refuse_it_in_words() {
    let (site, folder) = (Site::start(), Folder::new());
    let plan = plan(&folder, &site.url, "/login", "/session");
    let shard = run(&format!("run {plan} -n 10 --shard 1/2 --seed 1"));
    assert!(shard.code == Some(2) && shard.stderr.contains("each shard would carry out"), "{shard:?}");
    assert_eq!(site.seen(), [""; 0]);
}

/// A plan whose login is refreshed every second, by these lines or by the setup once more.
pub(crate) fn refreshed(folder: &Folder, url: &str, steps: &str) -> String {
    let plan = plan(folder, url, "/login", "/session");
    let text = std::fs::read_to_string(&plan).expect("it was written");
    let text = text.replace("scenarios:", &format!("refresh:\n  every: 1s\n{steps}scenarios:"));
    folder.write("refreshed.yaml", text)
}

/// Numbers of the tokens that requests to these paths had, in their order.
pub(crate) fn tokens(site: &Site, request: &str) -> Vec<usize> {
    let of = |seen: &String| seen.strip_prefix(request)?.split(TOKEN).nth(1)?.parse().ok();
    site.seen().iter().filter_map(of).collect()
}

#[test]
fn a_token_is_replaced_while_the_load_goes_on() {
    let (site, folder) = (Site::start(), Folder::new());
    let plan = refreshed(&folder, &site.url, "");
    let finished = run(&format!("run {plan} --rate 40 -d 3500ms -o json"));
    let result = finished.result();
    assert_balance(&result);
    let (refresh, logins) = (&result["run"]["refresh"], site.count("POST /login"));
    assert_eq!(refresh["times"], logins - 1, "{refresh}");
    assert_eq!((&refresh["failed"], &refresh["requests"]), (&0.into(), &refresh["times"]));
    assert!(logins >= 3, "{logins} logins in more than three seconds");
    let used = tokens(&site, "GET /items");
    assert!((1..logins).all(|number| used.contains(&number)), "{used:?}");
    assert_eq!(tokens(&site, "DELETE /session"), [logins], "the teardown has the last one");
    assert_eq!(account(&result, "failed"), 0, "{result}");
    // The setup, its refreshes, the teardown, and the first contact.
    let sent = site.seen().len() as u64;
    assert_eq!(account(&result, "started") + account(&result, "unmeasured"), sent, "{result}");
}

/// A refresh reads the values of the one before, as a refresh token asks for.
#[test]
fn a_refresh_that_fails_leaves_the_values_and_is_a_warning() {
    let (site, folder) = (Site::start(), Folder::new());
    let steps = "  steps: [{post: /broken, headers: {authorization: 'Bearer ${token}'}, \
                 extract: {token: {json: /token}}}]\n";
    let plan = refreshed(&folder, &site.url, steps);
    let finished = run(&format!("run {plan} --rate 20 -d 2500ms -o json"));
    let result = finished.result();
    assert_balance(&result);
    let refresh = &result["run"]["refresh"];
    assert!(refresh["times"].as_u64() >= Some(1) && refresh["failed"] == refresh["times"], "{refresh}");
    assert!(refresh["last_failure"].as_str().is_some_and(|why| why.contains("no such user")), "{refresh}");
    let warnings = result["verdict"]["warnings"].as_array().expect("there are some");
    assert!(warnings.iter().any(|warning| warning["code"] == "refresh_failed"), "{warnings:?}");
    assert!(finished.stderr.contains("warning: the refresh failed: POST /broken"), "{}", finished.stderr);
    assert!(tokens(&site, "GET /items").iter().all(|number| *number == 1));
    assert!(site.count(&format!("POST /broken Bearer {TOKEN}1")) >= 1, "{:?}", site.seen());
}

/// The limit of a request is 30 seconds: the end of a run does not wait for a refresh.
#[test]
fn a_refresh_that_is_under_way_does_not_hold_up_the_end() {
    let (site, folder) = (Site::start(), Folder::new());
    let steps = "  steps: [{post: /silent, extract: {token: {json: /token}}}]\n";
    let plan = refreshed(&folder, &site.url, steps);
    let _turn = machine::load();
    let begin = plimsoll_system::clock::monotonic();
    let result = run(&format!("run {plan} --rate 20 -d 2s -o json")).result();
    let took = plimsoll_system::clock::monotonic().since(begin);
    assert!(took < plimsoll_core::Nanos::from_secs(20), "{took:?}");
    assert_eq!(site.count("POST /silent"), 1);
    assert_eq!(result["run"]["refresh"], serde_json::json!({"times": 0, "failed": 0, "requests": 1}));
    assert_balance(&result);
}

/// Each run counts the refreshes of its time.
#[test]
fn the_refresh_goes_on_between_the_runs_of_a_repetition() {
    let (site, folder) = (Site::start(), Folder::new());
    let plan = refreshed(&folder, &site.url, "");
    let finished = run(&format!("run {plan} --rate 40 -d 1500ms --repeat 2 -o json"));
    let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let runs = result["runs"].as_array().expect("there are runs");
    // A refresh at the end of the last run may be given up: only its request is counted then.
    let sent = |run: &Value| run["run"]["refresh"]["requests"].as_u64().expect("it is counted") as usize;
    let sum: usize = runs.iter().map(sent).sum();
    let times = |run: &Value| run["run"]["refresh"]["times"].as_u64();
    assert!(runs.iter().all(|run| times(run) >= Some(1)), "{result}");
    assert_eq!((runs.len(), sum + 1), (2, site.count("POST /login")), "{result}");
}
