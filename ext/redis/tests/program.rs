//! The program with this extension alone: its command against its own server.

use std::process::Output;

use plimsoll_testkit::machine;
use plimsoll_testkit::program::{self, Folder, Server};
use serde_json::Value;

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_plimsoll-redis");

/// Starts `plimsoll target redis` with these flags.
fn target(flags: &str) -> Server {
    Server::start(program::command(PROGRAM, &format!("target redis --listen 127.0.0.1:0 {flags}")))
}

/// Runs `plimsoll redis` with these words.
pub(crate) fn redis(words: &[&str]) -> Output {
    machine::beside(PROGRAM).arg("redis").args(words).output().expect("the program was built")
}

/// The result of a load in JSON.
pub(crate) fn result(words: &[&str]) -> Value {
    let output = redis(&[words, &["-o", "json", "--quiet"]].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The requests of a result that are ok, failed, and timed out.
pub(crate) fn ends(result: &Value) -> [u64; 3] {
    ["ok", "failed", "timed_out"].map(|end| result["accounting"][end].as_u64().expect("a number"))
}

#[test]
fn a_load_counts_what_its_server_counts() {
    let _turn = machine::load();
    let server = target("");
    let address = server.address.clone();
    let empty = redis(&[&address, "--mix", "get", "-n", "50", "-c", "1", "--keys", "5"]);
    assert!(String::from_utf8_lossy(&empty.stdout).contains("0 hits, 50 misses"), "misses are told");
    let alone = result(&[&address, "-n", "3000", "-c", "8"]);
    assert_eq!(ends(&alone), [6_000, 0, 0]);
    assert_eq!(alone["protocols"]["redis"], 6_000);
    let ahead =
        result(&[&address, "-n", "5000", "-c", "4", "--pipeline", "16", "--mix", "set=2,get=2,incr=1"]);
    assert_eq!(ends(&ahead), [5_000, 0, 0]);
    // Symptom: of a key that is not there GET failed, though a mix takes it for a miss.
    assert_eq!(ends(&result(&[&address, "-n", "3", "-c", "1", "GET", "nothing"])), [3, 0, 0]);
    let one = result(&[&address, "-n", "7", "-c", "1", "INCR", "counted"]);
    assert_eq!(ends(&one), [7, 0, 0]);
    let counted = result(&[&address, "-n", "1", "-c", "1", "INCR counted"]);
    assert_eq!(ends(&counted), [1, 0, 0]);
    // Words with a minus, and words behind `--`, are the command's.
    assert_eq!(ends(&result(&[&address, "-n", "1", "-c", "1", "INCRBY", "counted", "-8"])), [1, 0, 0]);
    let behind = redis(&["-n", "1", "-c", "1", "-o", "json", "--quiet", "--", &address, "SET", "-x", "-1"]);
    assert_eq!(ends(&serde_json::from_slice(&behind.stdout).expect("a result")), [1, 0, 0]);
    assert_eq!(ends(&result(&[&address, "-n", "50", "-c", "1", "--value-size", "3"])), [100, 0, 0]);
    // Each run asks its server once before the load.
    let said = server.stop().stderr;
    assert!(said.contains("commands on") && said.contains(" 0 answered with an error"), "{said}");
}

/// Symptom: a command was shown as a request of HTTP, `:method: SET` with its words as a path.
#[test]
fn a_command_is_tried_and_explained_as_what_it_is() {
    let server = target("");
    let made = redis(&[&server.address, "--print-plan"]).stdout;
    let folder = Folder::new();
    let plan = folder.write("plan.yaml", made);
    let shown = |command: &str| {
        let output = program::command(PROGRAM, &format!("{command} {plan}")).output().expect("it was built");
        String::from_utf8(output.stdout).expect("it is text")
    };
    let (tried, explained) = (shown("try"), shown("explain"));
    let url = format!("redis://{}", server.address);
    for line in [
        format!("SET  {url}  200"),
        "> SET key:0 key:0=0-".to_owned(),
        "< OK".to_owned(),
        "> GET key:0\n".to_owned(),
    ] {
        assert!(tried.contains(&line), "{line}: {tried}");
    }
    assert!(!tried.contains(":path") && !tried.contains("http://"), "{tried}");
    assert!(explained.contains(&format!("{url}  the protocol of Redis")), "{explained}");
}

#[test]
fn wrong_values_are_found() {
    let _turn = machine::load();
    for (lie, class) in [("wrong:20%", "check"), ("missing:20%", "status_4xx")] {
        let server = target(&format!("--lie {lie} --seed 3"));
        let address = server.address.clone();
        let found = result(&[&address, "-n", "1000", "-c", "4"]);
        let [ok, failed, _] = ends(&found);
        assert_eq!(ok + failed, 2_000, "{lie}");
        assert_eq!(found["errors"][class], failed, "{lie}: {}", found["errors"]);
        let said = server.stop().stderr;
        let told =
            said.lines().find_map(|line| line.split_once(" answered wrongly")).expect("it counts them");
        let told: u64 =
            told.0.rsplit(' ').next().unwrap_or_default().replace(',', "").parse().expect("a number");
        // The question before the load is a GET, too.
        assert!((failed..failed + 2).contains(&told) && failed > 100, "{lie}: {failed} of {told}");
    }
}

#[test]
fn passwords_are_given_and_refused() {
    let _turn = machine::load();
    let server = target("--password pw");
    let address = &server.address;
    let known = format!("redis://:pw@{address}");
    assert_eq!(ends(&result(&[&known, "-n", "100", "-c", "2"])), [200, 0, 0]);
    for url in [format!("redis://:no@{address}"), format!("redis://{address}")] {
        let output = redis(&[&url, "-n", "100", "-c", "2"]);
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert_ne!(output.status.code(), Some(0), "{url}: {said}");
        assert!(said.contains("WRONGPASS") || said.contains("NOAUTH"), "{url}: {said}");
        assert!(!said.contains(":no@"), "{url}: {said}");
    }
}

#[test]
fn mistakes_of_the_command_line_are_told() {
    for (words, expected) in [
        (&["127.0.0.1:1", "MULTI"][..], "a step cannot be the command MULTI"),
        (&["--mix", "put"], "--mix: `put` is not a mix of commands"),
        (&["127.0.0.1:1", "--mix", "get", "GET", "a"], "--mix has no effect beside a command"),
        (&["127.0.0.1:1", "--key", "zipf", "--value-size", "3"], "too short to say to which key they belong"),
        (&["--key", "any"], "--key: `any` is not a pattern of keys"),
        (&["127.0.0.1:1", "SET 'a"], "a quote is not closed"),
        (&["16400", "GET", "a"], "a port has its host before it: 127.0.0.1:16400"),
        (&["127.0.0.1:1", "--value-size", "1k"], "write bytes as in 100, 100-2000 or exp:500"),
        (&["127.0.0.1:1", "-P", "16"], "are --pipeline"),
        (&["127.0.0.1:1", "-H", "a:b"], "--header has no effect: no URL is http or https"),
        (&["127.0.0.1:1", "--http2"], "--http2 has no effect: no URL is http or https"),
        (&["127.0.0.1:1", "--basic", "a:b"], "redis://USER:PASSWORD@HOST"),
        (&["http://127.0.0.1:1", "-n", "10", "-c", "1"], "is not a Redis server"),
        (&["127.0.0.1:1/x", "-n", "10", "-c", "1"], "`x` is not a database"),
        (
            &["127.0.0.1:1", "-n", "10", "-c", "1"],
            "`plimsoll target redis --listen 127.0.0.1:1` is one to try",
        ),
    ] {
        let output = redis(words);
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert_ne!(output.status.code(), Some(0), "{words:?}");
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}

#[test]
fn a_printed_plan_is_the_load() {
    let output = redis(&["127.0.0.1:1", "--print-plan", "--mix", "set=1,get=9", "--key", "zipf", "-d", "3s"]);
    let plan = String::from_utf8(output.stdout).expect("it is text");
    for line in
        ["redis: redis://127.0.0.1:1", "weight: 9", "- GET", "- key:${zipf(10000,0.990)}", "duration: 3s"]
    {
        assert!(plan.contains(line), "{line}: {plan}");
    }
    // Symptom: it named `--basic`, which is refused here.
    let output = redis(&["redis://me:secret@127.0.0.1:1/2", "--print-plan"]);
    let [plan, note] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("it is text"));
    assert!(plan.contains("redis: redis://127.0.0.1:1/2") && !plan.contains("secret"), "{plan}");
    assert!(note.contains("write them into the target's URL") && !note.contains("--basic"), "{note}");
}
