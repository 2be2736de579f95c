//! Output before a run: help, and every mistake on the command line with its exit code.

use std::fmt::Write as _;
use std::process::{Command, Output};

use plimsoll_app::inspect;

fn plimsoll(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(args)
        // The width of help, the colour and the key log must not depend on who runs the tests.
        .env_remove("COLUMNS")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("FORCE_COLOR")
        .env_remove("SSLKEYLOGFILE")
        .output()
        .expect("the command starts")
}

fn help(args: &[&str]) -> String {
    let output = plimsoll(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    assert!(output.stderr.is_empty(), "{args:?}: help is a result and goes to stdout");
    String::from_utf8(output.stdout).expect("help is text")
}

/// The exit code and stderr of command lines that are refused.
fn refused(lines: &[&[&str]]) -> String {
    let mut text = String::new();
    for line in lines {
        let output = plimsoll(line);
        assert!(output.stdout.is_empty(), "{line:?}: stdout carries the result only");
        let stderr = String::from_utf8(output.stderr).expect("messages are text");
        // A habit of another program is told before anything is looked at.
        let said = stderr.lines().find(|said| !said.starts_with("note: ")).unwrap_or_default();
        assert!(said.starts_with("error: "), "{line:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{line:?}: {stderr}");
        let code = output.status.code().expect("no signal ended it");
        let _ = writeln!(text, "$ plimsoll {}\n{stderr}exit {code}\n", line.join(" "));
    }
    text
}

const URL: &str = "http://127.0.0.1:1/";

/// Flags of extensions are among those of the program, and none is there twice.
#[test]
fn the_command_line_is_consistent_with_all_extensions() {
    plimsoll_app::install(plimsoll::EXTENSIONS);
    inspect::commands().clone().debug_assert();
}

/// Commands for load have the short flags of `run`, and others may have them for what they do. Only the
/// generators whose command lines are to be typed as they are have others.
#[test]
fn a_short_flag_means_one_thing_in_all_commands_for_load() {
    const OF_OTHER_GENERATORS: [(&str, char, &str); 4] = [
        ("canister", 'n', "seconds"),
        ("canister", 'm', "call"),
        ("grpc", 'd', "data"),
        ("llm", 'm', "model"),
    ];
    plimsoll_app::install(plimsoll::EXTENSIONS);
    let cli = inspect::commands();
    let shorts = |command: &str| -> Vec<(char, String)> {
        let command = cli.find_subcommand(command).unwrap();
        let named = |arg: &clap::Arg| arg.get_short().zip(arg.get_long().map(str::to_owned));
        command.get_arguments().filter_map(named).collect()
    };
    let of_run: std::collections::BTreeMap<char, String> = shorts("run").into_iter().collect();
    let mut others = Vec::new();
    for command in cli.get_subcommands().map(clap::Command::get_name) {
        for (short, long) in shorts(command) {
            if of_run.get(&short).is_some_and(|of_run| *of_run != long) {
                others.push((command.to_owned(), short, long));
            }
        }
    }
    let known =
        OF_OTHER_GENERATORS.map(|(command, short, long)| (command.to_owned(), short, long.to_owned()));
    assert_eq!(others, known);
}

#[test]
fn help_of_the_program() {
    insta::assert_snapshot!("help", help(&["-h"]));
    insta::assert_snapshot!("help_long", help(&["--help"]));
}

#[test]
fn help_of_run() {
    let short = help(&["run", "-h"]);
    assert!(short.lines().count() <= 52, "short help is one screen, not {} lines", short.lines().count());
    insta::assert_snapshot!("help_run", short);
    insta::assert_snapshot!("help_run_long", help(&["run", "--help"]));
}

/// Symptom: `find -h` listed flags that a search refuses, and the length of a run in place of that of a
/// trial.
#[test]
fn help_of_find_has_no_flag_that_a_search_refuses() {
    let [short, long] = ["-h", "--help"].map(|flag| help(&["find", flag]));
    for (flag, value, is_of_sweeps) in [
        ("--rate", "5", false),
        ("--stages", "1s@5", false),
        ("--rps", "5", false),
        ("--users", "3", true),
        ("--iterations", "5", true),
    ] {
        let output = plimsoll(&["find", URL, "--slo", "p99<1s", flag, value]);
        assert_eq!(output.status.code(), Some(2), "{flag} is refused");
        let head = format!("{flag} <");
        assert_eq!((short.contains(&head), long.contains(&head)), (false, is_of_sweeps), "{flag}");
    }
    assert!(
        short.contains("Length of the shortest trial, or of each level of a sweep [default: 2s]"),
        "{short}"
    );
}

#[test]
fn help_of_sink() {
    insta::assert_snapshot!("help_sink", help(&["sink", "-h"]));
    insta::assert_snapshot!("help_sink_long", help(&["sink", "--help"]));
}

#[test]
fn help_of_target() {
    insta::assert_snapshot!("help_target", help(&["target", "-h"]));
    insta::assert_snapshot!("help_target_crud", help(&["target", "crud", "-h"]));
    insta::assert_snapshot!("help_target_crud_long", help(&["target", "crud", "--help"]));
    insta::assert_snapshot!("help_target_cache_long", help(&["target", "cache", "--help"]));
    insta::assert_snapshot!("help_target_ingest_long", help(&["target", "ingest", "--help"]));
    insta::assert_snapshot!("help_target_llm_long", help(&["target", "llm", "--help"]));
    insta::assert_snapshot!("help_target_crud_node_long", help(&["target", "crud-node", "--help"]));
    insta::assert_snapshot!("help_target_crud_cluster_long", help(&["target", "crud-cluster", "--help"]));
}

#[test]
fn help_of_ingest_demo() {
    insta::assert_snapshot!("help_ingest_demo", help(&["ingest", "demo", "-h"]));
    insta::assert_snapshot!("help_ingest_demo_long", help(&["ingest", "demo", "--help"]));
}

#[test]
fn help_of_demo_and_schema() {
    insta::assert_snapshot!("help_demo", help(&["demo", "-h"]));
    insta::assert_snapshot!("help_demo_long", help(&["demo", "--help"]));
    insta::assert_snapshot!("help_schema", help(&["schema", "-h"]));
    insta::assert_snapshot!("help_schema_long", help(&["schema", "--help"]));
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(help(&["--version"]), format!("plimsoll {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn commands() {
    insta::assert_snapshot!(refused(&[
        &[],
        &["rnu", URL],
        &["webserver"],
        &["find", URL],
        &["schema"],
        &["schema", "results"],
        &["run"],
        &["demo", "extra"],
    ]));
}

#[test]
fn values() {
    insta::assert_snapshot!(refused(&[
        &[URL, "-n", "10", "-c", "64"],
        &[URL, "-t", "5s"],
        &[URL, "-t", "8", "-c", "4"],
        &[URL, "-d", "{\"a\":1}"],
        &[URL, "-d", "0"],
        &[URL, "-c", "0"],
        &[URL, "-R", "0"],
        &[URL, "--rate", "-5"],
        &[URL, "-q", "many"],
        &[URL, "--arrival", "poisson"],
        &[URL, "-H", "nothing"],
        &[URL, "-X", "get"],
        &[URL, "-b", "@/nonexistent/body.json"],
        &[URL, "-b", "${usr}"],
        &["https://127.0.0.1:1/", "--cacert", "/nonexistent/ca.pem"],
        &[URL, "-k"],
        &[URL, "-m", "POST"],
        &[URL, "--http2", "-m", "many"],
        &[URL, "-m", "8"],
        &[URL, "--http2", "--pipeline", "8"],
        &[URL, "--http2", "--disable-keepalive"],
        &[URL, "--rps", "100"],
        &[URL, "--crud-create-method", "POST", "--rps", "100", "--rate", "5"],
        &[URL, "--crud-create-data-file", "/nonexistent/data.json"],
        &[URL, "--threshold", "p99<10", "--threshold", "eror_rate<1%", "-c", "0"],
        &[URL, "--threshold", "rate>=0.99*target"],
        &[URL, "--threshold", "service_time.p99<1ms", "--abort-on-fail"],
        &[URL, "--abort-on-fail"],
        &[URL, "--interval", "50ms"],
        &[URL, "--interval", "1500ms"],
        &[URL, "--stats", "-", "--quiet"],
        &[URL, "--stats", "/nonexistent/stats.csv"],
        &[URL, "--evidence", "/nonexistent/run.evidence"],
        &[URL, "--evidence", "-"],
        &[URL, "--evidence-key", "key.pem"],
        &[URL, "--log-sample", "1%"],
        &[URL, "--log", "/dev/null", "--log-sample", "2"],
        &[URL, "--failed", "/dev/null", "--failed-limit", "none"],
        &["htps://127.0.0.1/"],
        &["plan.yaml", "-c", "4", "--dry"],
        &["run", "plan.yaml"],
        &["localhost:x/"],
        &[URL, "--probe", "20"],
        &[URL, "-d", "-5s"],
        &[URL, "--rate", "-5/s"],
        &[URL, "--resolve", "foo"],
        &[URL, "--connect-to", "foo"],
        &[URL, "--proxy", "127.0.0.1:3128"],
        &[URL, "--proxy", "http://me:topsecret@proxy"],
        &[URL, "--proxy", "https://127.0.0.1:3128"],
        &[URL, "--proxy", "socks4://127.0.0.1:1080"],
        &[URL, "--proxy", "http://127.0.0.1:3128", "--unix-socket", "/tmp/none.sock"],
        &[URL, "--proxy", "http://127.0.0.1:3128", "--connect-to", "::127.0.0.1:2"],
        &[URL, "--proxy", "http://127.0.0.1:3128", "-6"],
        &[URL, "--threshold", "errors<0.1"],
        &["https://127.0.0.1:1/", "--cacert", "Cargo.toml"],
        &["https://127.0.0.1:1/", "--cert", "Cargo.toml"],
        &["https://127.0.0.1:1/", "--cert", "Cargo.toml", "--key", "Cargo.toml"],
    ]));
}

#[test]
fn flags() {
    insta::assert_snapshot!(refused(&[
        &[URL, "--conections", "5"],
        &[URL, "--nonsense"],
        &[URL, "-c"],
        &[URL, "-c", "1", "-c", "2"],
        &[URL, "--output", "xml"],
        &[URL, "--http1.1", "--http2"],
        &[URL, "--precise=yes"],
        &[URL, "--color", "pink"],
        &[URL, "-o", "out.json"],
        &[URL, "-o", "out.html"],
        &[URL, "-o", "./load.xml"],
        &[URL, "-o", "results"],
        &[URL, "-o", "html"],
        &[URL, "-o", "jsno"],
        &["compare", "a", "b", "-o", "out.md"],
        &["compare", "a", "b", "-m", "p99"],
        &["history", "a", "-m", "p99"],
        &["report", "latest", "-o", "page.html"],
    ]));
}

#[test]
fn flags_of_other_tools() {
    insta::assert_snapshot!(refused(&[
        &[URL, "-L"],
        &[URL, "--latency"],
        &[URL, "-s", "script.lua"],
        &["--config-file=config.json", "-D", "10"],
        &[URL, "--rps-input-file", "rate.txt"],
        &[URL, "--ciphers=ECDHE-RSA-AES128-GCM-SHA256"],
        &[URL, "--log-file=log"],
        &[URL, "-T", "text/plain"],
        &[URL, "-u", "me:topsecret"],
        &[URL, "-p", "h2c"],
        &[URL, "-r", "5"],
        &[URL, "-W", "30"],
        &[URL, "-N", "5s"],
        &[URL, "--h1"],
        &[URL, "--alpn-list", "h2,http/1.1"],
        &[URL, "--npn-list", "h2"],
        &[URL, "--no-tls-proto", "h2c"],
        &[URL, "--warm-up-time", "5"],
        &[URL, "--data", "x"],
        &[URL, "--follow"],
        &["find", URL, "--objective", "p99<1s"],
        &["ab", "-n", "100", "-c", "10", URL],
        &[URL, "-x", "http://proxy/"],
        &[URL, "--http3"],
        &[URL, "-w"],
        &["run", "--host", "http://127.0.0.1:1/"],
        &[URL, "-u", "10"],
        &[URL, "--ramp-up", "10"],
        &[URL, "--spawn-rate", "10"],
        &[URL, "--headless"],
        &[URL, "--run-time", "10s"],
        &[URL, "--stage", "10s:50"],
        &[URL, "--summary-trend-stats", "p(99)"],
        &[URL, "--input-file=urls.txt"],
        &[URL, "-B", "unix:/run/app.sock"],
        &["crud", "--mode", "perf-status"],
        &["crud", "--mode", "perf-json"],
        &["crud", "--mode", "perf-bytes"],
        &["crud", "--mode", "perf-echo"],
        &["crud", "--perf-path", "/perf/json"],
        &["crud", "--perf-bytes", "1024"],
        &["crud", "--accept-encoding", "gzip"],
    ]));
}

/// Symptom: flags of hey, ab and curl had hints that led elsewhere, or none.
#[test]
fn habits_of_other_programs_have_the_right_hint() {
    insta::assert_snapshot!(refused(&[
        &[URL, "-A", "text/html"],
        &[URL, "-D", "body.json"],
        &[URL, "-disable-keepalive"],
        &[URL, "-disable-redirects"],
        &[URL, "-p", "body.json"],
        &[URL, "-F", "a=b"],
        &[URL, "-I"],
        &["--json", URL],
        &["--report", URL, "-n", "5"],
        &["import", "curl", "-F", "a=b", URL],
        &["import", "curl", "-X", "POST", URL],
        &["import", "curl", "-L", URL],
        &["import", "curl", "@c.sh"],
    ]));
}

/// Symptom: `--json BODY`, as curl has it, sent a GET without a body, and wrote a file that had the password
/// in its name.
#[test]
fn a_body_in_place_of_the_name_of_a_file_is_refused_before_anything_is_sent() {
    let folder = std::env::temp_dir().join(format!("plimsoll-bodies-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("it can be made");
    let bodies =
        ["{\"password\": \"topsecret\"}", "[{\"password\": \"topsecret\"}]", " {\"password\": \"topsecret\""];
    let of_body = "hint: a body of JSON is -b '{…}' -H 'content-type: application/json', or -b @FILE";
    let of_file = "hint: a file of such a name begins with ./";
    let run = [URL, "-n", "1"];
    let find = ["find", URL, "--slo", "p99<1s"];
    let compare = ["ab", URL, URL];
    for (line, flags, hint) in [
        (&run[..], &["json", "report", "log", "failed", "evidence"][..], of_body),
        (&["crud", URL], &["json", "report"], of_body),
        (&find, &["json", "report", "evidence"], of_body),
        (&compare, &["json", "report"], of_body),
        (&["show", "latest"], &["store"], of_file),
    ] {
        for (flag, body) in flags.iter().flat_map(|flag| bodies.map(|body| (flag, body))) {
            let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
                .args(line)
                .arg(format!("--{flag}={body}"))
                .current_dir(&folder)
                .output()
                .expect("the command starts");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{line:?} {flag}: {stderr}");
            assert!(
                stderr.contains(&format!("error: --{flag}: this is a body")),
                "{line:?} {flag}: {stderr}"
            );
            assert!(stderr.contains(hint) && !stderr.contains("topsecret"), "{line:?} {flag}: {stderr}");
        }
    }
    let written = std::fs::read_dir(&folder).expect("it is there").count();
    std::fs::remove_dir(&folder).expect("nothing was written");
    assert_eq!(written, 0);
    insta::assert_snapshot!(refused(&[
        &[URL, "--json", bodies[0]],
        &[URL, "--json", "@body.json"],
        &[URL, "--out", "json={}"],
        &[URL, "-d", bodies[0]],
        &[URL, "--data-raw", bodies[0]],
        &[URL, "--data-binary", "@body.json"],
        &[URL, "--data-urlencode", "a=b"],
        &[URL, "--form", "a=b"],
        &[URL, "-F", "a=@file"],
    ]));
}

#[test]
fn sink() {
    insta::assert_snapshot!(refused(&[
        &["sink", "--listen", "localhost:80"],
        &["sink", "--threads", "0"],
        &["sink", "--status", "42"],
        &["sink", "--body-size", "big"],
        &["sink", "--delay", "soon"],
        &["sink", "--delay", "lognormal:1ms"],
        &["sink", "--queue"],
        &["sink", "--queue", "--delay", "constant:1ms", "--threads", "2"],
        &["sink", "--capacity", "0"],
        &["sink", "--freeze", "3s"],
        &["sink", "--freeze", "3s+0s"],
        &["sink", "--drop", "3"],
        &["sink", "--drop", "60%", "--reset", "60%"],
        &["sink", "--fail", "7%"],
        &["sink", "--fail", "7%:99"],
        &["sink", "--refuse", "5"],
        &["sink", "--goaway-after", "0"],
        &["sink", "--slow-data", "1KiB"],
        &["sink", "--slow-data", "1KiB/1ms", "--work", "1ms"],
        &["sink", "--tls-cert", "a"],
        &["sink", "--tls-cert", "/nonexistent/a", "--tls-key", "/nonexistent/b"],
        &["sink", "--listen", "x", "--status", "1", "--seed", "y", "--backend", "z"],
    ]));
}

#[test]
fn target() {
    insta::assert_snapshot!(refused(&[
        &["target"],
        &["target", "crude"],
        &["target", "crud", "--status", "200"],
        &["target", "crud", "--max-resources", "0"],
        &["target", "crud", "--listen", ":0", "--absolute-location"],
        &["target", "crud", "--absolute-location=http://a/"],
        &["target", "crud", "--fail", "98%:500"],
        &["target", "crud", "--drop", "3"],
        &["target", "cache", "--lie", "white"],
        &["target", "cache", "--cache", "a b", "--max-memory", "1KiB"],
        &["target", "cache", "--user", "admin"],
        &["target", "crud-node"],
        &["target", "crud-node", "--data=d", "--peer=1=a", "--fsync=often", "--lie=white", "--lie-share=1"],
        &["target", "crud-cluster", "--nodes=2", "--lie=lose@3", "--election-timeout=200ms"],
    ]));
}

#[test]
fn a_port_in_use_is_told_with_what_helps() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it has one").to_string();
    for line in [&["sink", "--listen", &address][..], &["target", "crud", "--listen", &address]] {
        let output = plimsoll(line);
        let text = String::from_utf8_lossy(&output.stderr).replace(&address, "ADDRESS");
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("cannot listen on ADDRESS"), "{text}");
        assert!(text.contains("hint: take another address: --listen; port 0 takes a free one"), "{text}");
    }
}

#[test]
fn the_rate_of_heys_q_is_told_to_be_that_of_the_whole_run() {
    let note = |args: &[&str]| {
        let output = plimsoll(args);
        String::from_utf8_lossy(&output.stderr)
            .lines()
            .find(|line| line.starts_with("note: -q"))
            .map(str::to_owned)
    };
    let said = "note: -q 10 is 10/s for the whole run; hey's -q is for each connection: -R 50 is that load";
    for args in [&[URL, "-q", "10", "-c", "5", "-n", "10"][..], &["run", URL, "-q10", "-c5", "-n", "10"]] {
        assert_eq!(note(args).as_deref(), Some(said), "{args:?}");
    }
    // Symptom: there was none without -c, where hey has 50 connections, or one about their number alone.
    let said = "note: -q 10 is 10/s for the whole run, as oha's; hey's is for each of its 50 connections where \
                -c is not given: -R 500 -c 50 is that load";
    for args in [&[URL, "-q", "10", "-n", "10"][..], &[URL, "-z", "1ms", "-q", "10"]] {
        assert_eq!(note(args).as_deref(), Some(said), "{args:?}");
    }
    for args in [
        &[URL, "-q", "10", "-d", "1ms"][..],
        &[URL, "-q", "10", "-c", "1", "-n", "10"],
        &[URL, "-R", "10", "-c", "5", "-n", "10"],
        &[URL, "-q", "10", "-c", "5", "-n", "10", "--quiet"],
    ] {
        assert_eq!(note(args), None, "{args:?}");
    }
}

#[test]
fn secrets_stay_out_of_messages() {
    for line in [
        &[URL, "-H", "Bearer topsecret"][..],
        &["http://me:topsecret@/"],
        &[URL, "--basic", "topsecret"],
        &[URL, "--bearer", "topsecret with space"],
        &[URL, "--basic", "a:topsecret", "--bearer", "topsecret"],
        &["http://a:topsecret@127.0.0.1:1/", "--bearer", "topsecret", "-c", "0"],
    ] {
        let output = plimsoll(line);
        assert_eq!(output.status.code(), Some(2), "{line:?}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("topsecret"), "{line:?}");
    }
}
