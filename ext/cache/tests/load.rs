//! `plimsoll cache` against the cache server, against lies, and against servers that break the protocol.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use plimsoll_testkit::ports::{await_free, lasting_addresses};
use plimsoll_testkit::program::{Finished, Folder, Process};
use plimsoll_testkit::verdict;
use serde_json::Value;

use crate::program::{plimsoll, run};
use crate::target::CacheTarget;

fn json(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {}", finished.stderr))
}

fn count(result: &Value, pointer: &str) -> u64 {
    result.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {result:#}"))
}

/// Runs a load on a cache with JSON as its output.
fn load(server: &str, args: &str) -> Finished {
    run(&format!("cache --server {server} --quiet -o json {args}"))
}

#[test]
fn what_is_put_is_read_back() {
    let target = CacheTarget::start("");
    for args in [
        "--requests 500 -c 10",
        "--requests 500 -c 10 --keys 50 --value-size 1-3000 --key-size 40",
        "--requests 500 -c 10 --keys 5 --value-size 100-300 --pipeline 4",
        "--requests 500 -c 10 --key zipf --keys 20",
        "--requests 500 -c 10 --key random --pipeline 16",
        "--requests 500 -c 10 --key fixed -t 2",
        "--rate 1000 --requests 500 --value-size exp:20 -c 4",
    ] {
        let finished = load(&target.frames, args);
        let result = json(&finished);
        // A busy machine may make the run invalid.
        assert!(verdict::ran(finished.code), "{args}: {}", finished.stderr);
        assert_eq!(count(&result, "/accounting/ok"), 1_000, "{args}: {}", result["accounting"]);
        assert_eq!(count(&result, "/accounting/failed"), 0, "{args}");
        assert_eq!(count(&result, "/statuses/200"), 1_000, "{args}");
        assert_eq!(count(&result, "/protocols/carbon"), 1_000, "{args}");
        assert_eq!(result["by_step"][0]["step"], "put");
        assert_eq!(count(&result, "/by_step/1/ok"), 500);
    }
    let stopped = target.stop();
    assert!(stopped.stderr.contains(", 0 answered with an error"), "{}", stopped.stderr);
}

#[test]
fn weights_share_the_load_and_a_miss_is_an_answer() {
    let target = CacheTarget::start("--not-found");
    let finished =
        load(&target.frames, "--mix put=1,get=8,delete=1 --requests 1000 -c 4 --key random --keys 100");
    let result = json(&finished);
    assert_eq!(count(&result, "/accounting/ok"), 1_000, "{result:#}");
    let steps = result["by_step"].as_array().expect("steps");
    let shares: Vec<u64> = steps.iter().map(|step| step["ok"].as_u64().expect("a count")).collect();
    assert_eq!(shares, [100, 800, 100]);
    assert!(count(&result, "/statuses/404") > 0, "{result:#}");
}

/// Symptom: Carbon's guide customizes its test to a PUT, a GET and a DELETE of one key, and no mix was that.
#[test]
fn a_key_is_put_read_and_deleted() {
    let target = CacheTarget::start("--not-found");
    // Carbon's output names its server with a scheme.
    let server = format!("tcp://{}", target.frames);
    let result = json(&load(&server, "--mix put+get+delete --requests 200 -c 4"));
    let steps = result["by_step"].as_array().expect("steps");
    let of = |step: &Value| (step["step"].as_str().map(str::to_owned), step["ok"].as_u64());
    let expected = ["put", "get", "delete"].map(|name| (Some(name.to_owned()), Some(200)));
    assert_eq!(steps.iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!(count(&result, "/statuses/200"), 600, "each key was there: {result:#}");
    let gone = json(&load(&target.frames, "--mix get --requests 200 -c 1"));
    assert_eq!(count(&gone, "/statuses/404"), 200, "and is not any more: {gone:#}");
    let shared = run("cache --mix put+get+delete --key random --print-plan");
    shared.assert_refused(2, "needs keys that no other iteration has");
}

/// Symptom: a thousand misses were "1,000 ok", and nothing else, in the short report.
#[test]
fn hits_and_misses_are_in_the_short_report() {
    let target = CacheTarget::start("");
    let short = |args: &str| run(&format!("cache --server {} -c 2 {args}", target.frames)).stdout;
    let missed = short("--mix get --requests 100");
    let told =
        "0 hits, 100 misses of 100 GETs (0.0 % hits); values are stored by --mix put, or --mix put+get";
    assert!(missed.lines().any(|line| line == told), "{missed}");
    let found = short("--requests 50");
    assert!(found.lines().any(|line| line.starts_with("50 hits, 0 misses of 50 GETs (100")), "{found}");
    let stored = short("--mix put --requests 50");
    assert!(!stored.contains(" hits"), "{stored}");
}

#[test]
fn lies_are_found_counted_and_shown_with_their_key() {
    for (lie, args) in [
        ("wrong:20%", "--requests 1000 -c 5"),
        ("stale:20%", "--requests 1000 -c 5 --keys 50"),
        ("swapped:20%", "--requests 1000 -c 5 --pipeline 8"),
    ] {
        let (target, folder) = (CacheTarget::start(&format!("--lie {lie} --seed 5")), Folder::new());
        let failed = folder.file("failed.txt");
        let result = json(&load(&target.frames, &format!("{args} --failed {failed}")));
        let found = count(&result, "/accounting/failed");
        let stopped = target.stop();
        assert!(found > 50, "{lie}: {found}: {}", stopped.stderr);
        let shown = std::fs::read_to_string(&failed).expect("it was written");
        assert!(shown.contains(":path: key-"), "{lie}: {shown}");
    }
}

#[test]
fn a_cache_that_is_not_there_has_no_throughput() {
    let target = CacheTarget::start("");
    let missing = load(&target.frames, "--cache nope --requests 10");
    assert_eq!((missing.code, &missing.stdout[..]), (Some(1), ""));
    assert!(missing.stderr.contains("has no cache `nope`"), "{}", missing.stderr);
    assert!(missing.stderr.contains("--create"), "{}", missing.stderr);
    let admin = format!("--admin http://{}", target.http);
    let refused = load(&target.frames, &format!("--cache nope --create {admin} --user me:wrong"));
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("does not accept the user"), "{}", refused.stderr);
    let created = load(&target.frames, &format!("--cache nope --create {admin} --requests 10 -c 1"));
    assert_eq!(count(&json(&created), "/accounting/ok"), 20);
    // The cache is there already: that is as good.
    let again = load(&target.frames, &format!("--cache nope --create {admin} --requests 10 -c 1"));
    assert_eq!(count(&json(&again), "/accounting/ok"), 20);
    let calibrated = load(&target.frames, "--requests 10 --calibrate");
    assert_eq!(calibrated.code, Some(2));
    assert!(
        calibrated.stderr.contains("--calibrate: the built-in server speaks HTTP"),
        "{}",
        calibrated.stderr
    );
    // The HTTP API is not a cache.
    let http = load(&target.http, "--requests 10");
    assert_eq!((http.code, &http.stdout[..]), (Some(1), ""));
    let nobody = load("127.0.0.1:1", "--requests 10");
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("is it running"), "{}", nobody.stderr);
}

#[test]
fn mistakes_are_explained() {
    for (args, message) in [
        ("http://127.0.0.1:1/", "takes no URL"),
        ("--mix put+delete", "not a mix of operations"),
        ("--key some", "not a pattern of keys"),
        ("--key fixed --keys 5", "--keys has no effect"),
        ("--mix get --verify", "only put+get and put+get+delete know"),
        ("--key-size 8", "would not be distinct"),
        ("--key random --value-size 10", "too short"),
        ("--value-size huge", "is not a length"),
        ("--cache a/b", "not a name of a cache"),
        ("--compare-http ftp://127.0.0.1:1", "--compare-http"),
    ] {
        let finished = run(&format!("cache {args}"));
        assert_eq!(finished.code, Some(2), "{args}");
        assert!(finished.stderr.contains(message), "{args}: {}", finished.stderr);
        assert!(finished.stderr.contains("hint: "), "{args}: {}", finished.stderr);
    }
}

/// A server that answers every frame of its first three connections as it should, and the first frame of each
/// further one with these bytes; then it closes.
fn breaking(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            std::thread::spawn(move || serve(stream, if number < 3 { None } else { Some(bytes) }));
        }
    });
    address
}

fn serve(mut stream: TcpStream, broken: Option<&[u8]>) {
    let mut left = if broken.is_some() { 4 } else { 20 };
    let mut length = [0; 4];
    while stream.read_exact(&mut length).is_ok() {
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        if stream.read_exact(&mut frame).is_err() {
            return;
        }
        left -= 1;
        let answer: &[u8] = match (frame.first(), broken) {
            (_, Some(broken)) if left == 0 => broken,
            (Some(1), _) => b"\0\0\0\x01\x01",
            _ => b"\0\0\0\x06\x02\0\0\0\x01v",
        };
        if stream.write_all(answer).is_err() || left == 0 {
            return;
        }
    }
}

#[test]
fn servers_that_break_the_protocol_are_counted_and_left() {
    for (bytes, class) in [
        (&b"\0\0\0\0"[..], "protocol"),
        (b"\0\x80\0\x01\x02", "protocol"),
        (b"\0\0\0\x01\x09", "protocol"),
        (b"\0\0\0\x09\x02\0\0\0\x09v", "protocol"),
        (b"\0\0\0\x01\0", "protocol"),
        (b"\0\0\0\x09\x02\0\0", "closed_in_response"),
        (b"", "closed_before_response"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "wrong_protocol"),
    ] {
        let finished = load(&breaking(bytes), "--no-verify --requests 100 -c 1");
        let result = json(&finished);
        let failed = count(&result, &format!("/errors/{class}"));
        assert!(failed > 3, "{class}: {result:#}");
        // A socket that is closed with unread data resets the connection.
        assert!(failed * 10 >= count(&result, "/accounting/failed") * 8, "{class}: {}", result["errors"]);
        // New connections were opened, and some of what went on them was answered.
        assert!(count(&result, "/connections/opened") > 3, "{result:#}");
        assert!(count(&result, "/accounting/ok") > 3, "{result:#}");
    }
}

#[test]
fn both_protocols_are_compared_in_one_command() {
    let target = CacheTarget::start("--user me:pw");
    let api = format!("--compare-http http://{}/ --user me:pw", target.http);
    let folder = Folder::new();
    let file = folder.file("compared.json");
    let finished =
        load(&target.frames, &format!("{api} --requests 400 -c 4 --repeat 2 --keys 30 --json {file}"));
    // On a machine that has no time for it, the generator says so.
    assert!(verdict::ran(finished.code), "{}", finished.stderr);
    let compared = json(&finished);
    let written = std::fs::read_to_string(&file).expect("it was written");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("it is JSON"), compared);
    for (side, name, protocol) in [("a", "TCP", "carbon"), ("b", "HTTP", "http/1.1")] {
        assert_eq!(compared[side]["name"], name);
        let runs = compared[side]["runs"].as_array().expect("runs");
        assert_eq!(runs.len(), 2, "{protocol}");
    }
    let notes = compared["notes"].to_string();
    assert!(notes.contains("protocols differ: A carbon, B http/1.1"), "{notes}");
    assert!(
        ["better", "worse", "same", "undecided"].contains(&compared["verdict"].as_str().expect("a word"))
    );
    // Each side did 400 PUTs and GETs twice, after one GET for whether the cache is there.
    let stopped = target.stop();
    assert!(stopped.stderr.contains(", 0 answered with an error"), "{}", stopped.stderr);
}

#[test]
fn an_api_that_refuses_the_user_is_a_failure_and_no_comparison() {
    let target = CacheTarget::start("--user me:pw");
    let api = format!("--compare-http http://{} --user me:wrong", target.http);
    // The server is asked before ten runs are made for nothing.
    let refused = run(&format!("cache --server {} {api} --requests 10 -c 1 --repeat 1", target.frames));
    refused.assert_refused(1, "answers 401: it does not accept these credentials");
    let api = format!("--compare-http http://{} --user me:pw", target.http);
    for (args, message) in [
        ("--stats /tmp/x", "--compare-http and --stats exclude each other"),
        ("--evidence /tmp/x", "--compare-http and --evidence exclude each other"),
        ("-o csv", "--compare-http: there is no comparison in this format"),
        ("--out csv=/tmp/x", "--compare-http and --out exclude each other"),
    ] {
        let refused = run(&format!("cache --server {} {api} --requests 10 {args}", target.frames));
        assert_eq!(refused.code, Some(2), "{args}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{args}: {}", refused.stderr);
    }
}

#[test]
fn a_server_that_dies_and_comes_back_is_counted_and_met_again() {
    let [frames, http] = lasting_addresses();
    let target = CacheTarget::start_at(&frames, &http, "");
    let args = "--rate 2000 -d 3s -c 4 --no-verify -o json --quiet";
    let under_way = Process::start(plimsoll(&format!("cache --server {frames} {args}")));
    // By then the load has put at least 200 values.
    while !target.has("key-200") {}
    target.kill();
    await_free(&[&frames, &http]);
    let target = CacheTarget::start_at(&frames, &http, "");
    let result = json(&under_way.finish());
    let figure = |name: &str| count(&result, &format!("/accounting/{name}"));
    let answered = target.stop();
    // The server may have died while no request was in flight.
    let lost = figure("failed") + count(&result, "/connections/closed_idle");
    assert!(lost > 0, "{result:#}");
    let begun = figure("started") + figure("dropped") + figure("never_started");
    assert_eq!(figure("scheduled"), begun, "{result:#}");
    let ended = figure("ok") + figure("failed") + figure("timed_out") + figure("in_flight_at_stop");
    assert_eq!(figure("started"), ended, "{result:#}");
    // The second server has answered only requests of this load.
    let line = answered.stderr.lines().last().expect("it says what it did").to_owned();
    let of_second: u64 = line.split_whitespace().find_map(|word| word.parse().ok()).expect("a count");
    assert!(of_second > 0 && of_second < figure("ok"), "{line}, {result:#}");
    assert!(count(&result, "/connections/opened") > 4, "{result:#}");
}

#[test]
fn carbons_average_is_told_beside_the_mean_and_its_targets_can_be_met() {
    let target = CacheTarget::start("");
    let args = "--requests 2000 -c 40 --thresholds carbon -o json";
    let finished = run(&format!("cache --server {} {args}", target.frames));
    let said = &finished.stderr;
    assert!(
        said.contains("of 40 operations in flight is below 1 ms from 40000 operations per second on"),
        "{said}"
    );
    let line = said.lines().find(|line| line.starts_with("average: ")).unwrap_or_else(|| panic!("{said}"));
    let result = json(&finished);
    let wall_ms =
        result["duration_s"].as_f64().expect("a length") * 1e3 / count(&result, "/accounting/ok") as f64;
    assert!(line.contains(&format!("{wall_ms:.4} ms by Carbon's formula")), "{wall_ms} {line}");
    let mean = count(&result, "/response_time/mean") as f64 / 1e6;
    assert!(line.ends_with(&format!("{mean:.4} ms is the mean of the response times")), "{mean} {line}");
    let word = if wall_ms < 1.0 { "PASS" } else { "FAIL" };
    assert!(line.contains(&format!("(target 1 ms: {word})")), "{line}");
    // The note is in the result, and shown once.
    let notes = result["notes"].as_array().expect("a list");
    let note = notes.iter().find(|note| note["code"] == "average").expect("a note");
    assert_eq!(note["text"], *line);
    for (form, on_stdout) in [("", false), ("--long", true)] {
        let args = format!("--requests 100 -c 4 --thresholds carbon {form}");
        let shown = run(&format!("cache --server {} {args}", target.frames));
        let [out, err] =
            [&shown.stdout, &shown.stderr].map(|text| text.matches("by Carbon's formula").count());
        assert_eq!((out, err), (usize::from(on_stdout), usize::from(!on_stdout)), "{shown:?}");
    }
    // Without a rate the mean is what the connections make it: it is not a threshold.
    let thresholds = result["thresholds"].to_string();
    assert!(thresholds.contains("p99<10ms") && !thresholds.contains("mean<1ms"), "{thresholds}");
}

#[test]
fn what_has_no_effect_or_no_room_is_refused_and_few_iterations_need_few_connections() {
    let target = CacheTarget::start("");
    let fewer = load(&target.frames, "-n 10");
    assert!(verdict::ran(fewer.code), "{}", fewer.stderr);
    assert_eq!(count(&json(&fewer), "/accounting/ok"), 20);
    for (args, message) in [
        ("-H a:b", "--header has no effect: no URL is http or https"),
        ("--value-size 8388608", "does not fit into a frame of the protocol, which has 8 MiB"),
    ] {
        load(&target.frames, args).assert_refused(2, message);
    }
    let paced = run("cache --rate 5k --thresholds carbon --print-plan");
    assert!(paced.stdout.contains("mean<1ms") && !paced.stdout.contains("rate>"), "{}", paced.stdout);
    let help = run("cache --help");
    assert!(help.stdout.contains("[default: admin:admin123]"), "{}", help.stdout);
}
