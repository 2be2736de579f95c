//! Plans that somebody else wrote: what they ask for, and what they get.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use plimsoll_testkit::machine;

use crate::loopback::process::Folder;
use crate::loopback::sink::Sink;

/// A folder in which commands run, with the folder of a plan in it and a file beside that folder.
struct Place(Folder);

impl Place {
    fn new() -> Self {
        let place = Self(Folder::new());
        std::fs::create_dir(place.path("plans")).expect("the folder can be written");
        place.write("secret.txt", "hunter2");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).expect("the folder can be written");
    }

    fn output(&self, args: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(args.split_whitespace()).current_dir(self.0.path());
        command.env_remove("SSLKEYLOGFILE").env_remove("CI").stdin(Stdio::null());
        command.output().expect("the program was built")
    }

    /// The code and the messages of a command.
    fn said(&self, args: &str) -> (Option<i32>, String) {
        let output = self.output(args);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

const BEGIN: &str = "targets: {a: \"http://127.0.0.1:1\"}\n";

/// Scripts that leave a mark when they run, each way × each command that is not a run.
#[test]
fn looking_at_a_plan_runs_nothing_of_it() {
    let place = Place::new();
    let mark = place.path("mark");
    let touch = format!("os.execute('touch {}')", mark.display());
    let write = format!("io.open('{}', 'w'):write('x')", mark.display());
    let asks = "scripts: {allow_system: true}\n";
    let mut looked = 0;
    for (asks, body) in [(asks, &touch), (asks, &write), ("", &touch), ("", &write)] {
        let script = format!("{body} function make_request() return {{}} end");
        place.write("plans/evil.lua", &script);
        for script in [format!("\"{script}\""), "evil.lua".to_owned()] {
            let step = format!("scenarios: [{{steps: [{{get: /, script: {script}}}]}}]\n");
            place.write("plans/evil.yaml", &format!("{BEGIN}{asks}{step}"));
            for command in ["check", "explain", "try", "run", "run --print-plan"] {
                for granted in ["", " --script-allow-system"] {
                    let is_carried_out = matches!(command, "try" | "run");
                    if is_carried_out && !granted.is_empty() {
                        continue;
                    }
                    let (code, said) = place.said(&format!("{command} plans/evil.yaml{granted}"));
                    assert!(!mark.exists(), "{command}{granted}: {step}{said}");
                    if granted.is_empty() && !asks.is_empty() {
                        assert_eq!(code, Some(2), "{command}: {said}");
                        assert!(said.contains("hint: ") && said.contains("--script-allow-system"), "{said}");
                    }
                    looked += 1;
                }
            }
        }
    }
    assert_eq!(looked, 64);
    // The person who runs it grants it.
    place.write(
        "plans/evil.yaml",
        &format!("{BEGIN}{asks}scenarios: [{{steps: [{{get: /, script: evil.lua}}]}}]\n"),
    );
    let (code, said) = place.said("run plans/evil.yaml --script-allow-system -n 1");
    assert!(mark.exists(), "{code:?} {said}");
}

/// Keys that name files × names that lead out of the plan's folder, or to what has no end.
#[test]
fn files_of_a_plan_lie_below_its_folder_unless_granted() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.path("plans/pipe")).status().expect("coreutils").success());
    std::os::unix::fs::symlink("../secret.txt", place.path("plans/link")).expect("a link");
    let secret = place.path("secret.txt").display().to_string();
    let shapes: [fn(&str) -> String; 9] = [
        |file| format!("scenarios: [{{steps: [{{post: /, body_file: '{file}'}}]}}]\n"),
        |file| format!("scenarios: [{{steps: [{{post: /, template_file: '{file}'}}]}}]\n"),
        |file| format!("scenarios: [{{steps: [{{post: /, multipart: [{{name: a, file: '{file}'}}]}}]}}]\n"),
        |file| {
            format!(
                "data: {{d: {{csv: '{file}'}}}}\nscenarios: [{{data: d, steps: [{{get: '/${{id}}'}}]}}]\n"
            )
        },
        |file| format!("run: {{bearer: '@{file}'}}\nscenarios: [{{steps: [{{get: /}}]}}]\n"),
        |file| format!("run: {{basic: '@{file}'}}\nscenarios: [{{steps: [{{get: /}}]}}]\n"),
        |file| format!("run: {{cacert: '{file}'}}\nscenarios: [{{steps: [{{get: /}}]}}]\n"),
        |file| format!("run: {{jwt_key: '{file}'}}\nscenarios: [{{steps: [{{get: /}}]}}]\n"),
        |file| {
            format!(
                "tokens: {{t: {{key: '{file}'}}}}\nscenarios: [{{steps: [{{get: /, headers: {{a: '${{token(t)}}'}}}}]}}]\n"
            )
        },
    ];
    // Certificates have an effect with TLS only.
    let of = |shape: &fn(&str) -> String, file: &str| {
        let text = shape(file);
        let begin = if text.contains("cacert") { BEGIN.replace("http:", "https:") } else { BEGIN.to_owned() };
        begin + &text
    };
    for (number, shape) in shapes.iter().enumerate() {
        for file in ["../secret.txt", "link", &secret, "/etc/passwd", "/dev/zero"] {
            place.write("plans/p.yaml", &of(shape, file));
            for command in ["check", "run"] {
                let (code, said) = place.said(&format!("{command} plans/p.yaml"));
                assert_eq!(code, Some(2), "{number} {file}: {said}");
                assert!(said.contains("it is not below the plan's folder"), "{number} {file}: {said}");
                assert!(said.contains("--allow-files DIR"), "{number} {file}: {said}");
            }
        }
        place.write("plans/p.yaml", &of(shape, "pipe"));
        let (code, said) = place.said("check plans/p.yaml");
        assert_eq!(code, Some(2), "{number}: {said}");
        assert!(said.contains("it is a pipe, a socket or a device"), "{number}: {said}");
    }
    // By the person.
    place.write("plans/p.yaml", &format!("{BEGIN}{}", shapes[0]("../secret.txt")));
    assert_eq!(place.said("check plans/p.yaml --allow-files .").0, Some(0));
    assert_eq!(place.said("check plans/p.yaml --allow-files plans").0, Some(2));
}

/// Outputs that a plan names × where they would be.
#[test]
fn outputs_of_a_plan_lie_below_the_folder_of_the_command() {
    let place = Place::new();
    let elsewhere = std::env::temp_dir().join(format!("plimsoll-out-{}", std::process::id()));
    for setting in ["log", "stats", "failed", "stream_log"] {
        for file in [elsewhere.display().to_string(), "../../out".to_owned(), "/etc/plimsoll".to_owned()] {
            place.write(
                "plans/p.yaml",
                &format!("{BEGIN}run: {{{setting}: '{file}'}}\nscenarios: [{{steps: [{{get: /}}]}}]\n"),
            );
            let (code, said) = place.said("run plans/p.yaml -n 1");
            assert_eq!(code, Some(2), "{setting} {file}: {said}");
            assert!(said.contains("it is not below this folder"), "{setting} {file}: {said}");
            assert!(!elsewhere.exists());
        }
        place.write(
            "plans/p.yaml",
            &format!("{BEGIN}run: {{{setting}: 'here.log'}}\nscenarios: [{{steps: [{{get: /}}]}}]\n"),
        );
        assert_eq!(place.said("check plans/p.yaml").0, Some(0), "{setting}");
        for (file, expected) in [
            ("src.rs", "it is there, and its name ends in none of .csv"),
            ("Makefile", "it is there, and its name ends in none of .csv"),
            ("plans/p.yaml", "the plan reads it"),
            ("plans/./rows.csv", "the plan reads it"),
        ] {
            place.write("plans/rows.csv", "a\n1\n");
            place.write("src.rs", "");
            place.write("Makefile", "");
            place.write(
                "plans/p.yaml",
                &format!(
                    "{BEGIN}run: {{{setting}: '{file}'}}\ndata: {{rows: {{csv: rows.csv}}}}\n\
                     scenarios: [{{steps: [{{get: '/${{a}}'}}]}}]\n"
                ),
            );
            let (code, said) = place.said("run plans/p.yaml -n 1");
            assert_eq!(code, Some(2), "{setting} {file}: {said}");
            assert!(said.contains(expected), "{setting} {file}: {said}");
        }
        assert_eq!(std::fs::read_to_string(place.path("plans/rows.csv")).expect("it is there"), "a\n1\n");
    }
}

/// Modules of scripts that have no end, or lie elsewhere.
#[test]
fn modules_of_scripts_are_files_of_their_folder() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.path("plans/pipe.lua")).status().expect("coreutils").success());
    std::os::unix::fs::symlink("/dev/zero", place.path("plans/zero.lua")).expect("a link");
    place.write("outside.lua", "return 1");
    std::os::unix::fs::symlink("../outside.lua", place.path("plans/linked.lua")).expect("a link");
    let large = std::fs::File::create(place.path("plans/large.lua")).expect("a file");
    large.set_len(3 << 30).expect("it takes no place");
    place.write("plans/good.lua", "return 1");
    for (call, expected) in [
        ("dofile('pipe.lua')", "it is a pipe, a socket or a device"),
        ("require('pipe')", "it is a pipe, a socket or a device"),
        ("require('zero')", "it is outside of the script's folders"),
        ("dofile('zero.lua')", "outside of the script's folders"),
        ("require('linked')", "it is outside of the script's folders"),
        ("require('large')", "it has more than 16 MiB"),
        ("loadfile('large.lua')", "it has more than 16 MiB"),
        ("loadfile('../outside.lua')", "outside of the script's folders"),
        ("loadfile('/etc/passwd')", "outside of the script's folders"),
    ] {
        let script = format!("{call} function make_request() return {{}} end");
        place.write(
            "plans/p.yaml",
            &format!("{BEGIN}scenarios: [{{steps: [{{get: /, script: \"{script}\"}}]}}]\n"),
        );
        let (code, said) = place.said("run plans/p.yaml -n 1");
        assert_eq!(code, Some(2), "{call}: {said}");
        assert!(said.contains(expected), "{call}: {said}");
        // Looking at it reads none of them.
        assert_eq!(place.said("check plans/p.yaml").0, Some(0), "{call}");
    }
    place.write(
        "plans/p.yaml",
        &format!("{BEGIN}scripts: {{path: [/]}}\nscenarios: [{{steps: [{{get: /, script: \"function make_request() return {{}} end\"}}]}}]\n"),
    );
    let (code, said) = place.said("check plans/p.yaml");
    assert!(code == Some(2) && said.contains("it is not below the plan's folder"), "{said}");
    // A plan that is named without a folder has one, too.
    let script = "dofile('good.lua') function make_request() return {} end";
    place.write(
        "plans/p.yaml",
        &format!("{BEGIN}scenarios: [{{steps: [{{get: /, script: \"{script}\"}}]}}]\n"),
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["run", "p.yaml", "-n", "1"]).current_dir(place.path("plans")).stdin(Stdio::null());
    let output = command.output().expect("the program was built");
    assert_ne!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Arguments of a coordinator × the limits of an agent, as the process of its run gets them.
#[test]
fn what_a_coordinator_sends_is_confined() {
    let place = Place::new();
    let mark = place.path("mark");
    let secret = place.path("secret.txt").display().to_string();
    let script = format!("os.execute('touch {}') function make_request() return {{}} end", mark.display());
    place.write(
        "plans/script.yaml",
        &format!("{BEGIN}scenarios: [{{steps: [{{get: /, script: \"{script}\"}}]}}]\n"),
    );
    place.write("plans/wrk.lua", &format!("os.execute('touch {}')", mark.display()));
    let said = |limits: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.arg("run").arg(format!("--agent-limits={limits}")).args(arguments);
        command.args(["--rate", "1", "-d", "1s", "--drain", "0s"]).current_dir(place.path("plans"));
        let output = command.stdin(Stdio::null()).output().expect("the program was built");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let limits =
        |scripts: &str| format!("{{\"targets\":[],\"requests_per_s\":null,\"scripts\":\"{scripts}\"}}");
    let url = "http://127.0.0.1:1/";
    for arguments in [
        &["--report", "r.html"][..],
        &["--evidence", "e"],
        &["--out", "json=o"],
        &["--json", "j"],
        &["--log", "l"],
        &["--stats", "s"],
        &["--failed", "f"],
        &["--step-summary"],
        &["--repeat", "2"],
        &["--calibrate"],
        &["--fleet", "nats://127.0.0.1:1"],
    ] {
        let (code, text) = said(&limits("none"), &[&[url], arguments].concat());
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
        assert!(text.contains("an agent does not take --"), "{arguments:?}: {text}");
    }
    let body = format!("@{secret}");
    for arguments in [
        &["-b", &body][..],
        &["--bearer", &body],
        &["--basic", &body],
        &["--jwt-key", &secret],
        &["-b", &body, "--allow-files", "/"],
        &["-b", "@../secret.txt"],
        &["-b", "@/dev/zero"],
    ] {
        let (code, text) = said(&limits("none"), &[&[url], arguments].concat());
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
        assert!(text.contains("it is not below the plan's folder"), "{arguments:?}: {text}");
    }
    // Its scripts × what the agent permits × what the coordinator asks for. Nothing of them runs before.
    for (allowed, asks, refusal) in [
        ("none", false, "it runs no scripts"),
        ("none", true, "an agent does not take --script-allow-system"),
        ("sandboxed", false, "`os.execute` is not allowed"),
        ("sandboxed", true, "an agent does not take --script-allow-system"),
        ("system", false, "`os.execute` is not allowed"),
    ] {
        for arguments in [&["script.yaml"][..], &[url, "-s", "wrk.lua"]] {
            let asked: &[&str] = if asks { &["--script-allow-system"] } else { &[] };
            let (code, text) = said(&limits(allowed), &[arguments, asked].concat());
            assert_eq!(code, Some(2), "{allowed} {arguments:?}: {text}");
            assert!(text.contains(refusal), "{allowed} {asks} {arguments:?}: {text}");
            assert!(!mark.exists(), "{allowed} {asks} {arguments:?}: {text}");
        }
    }
    let (_, text) = said(&limits("system"), &["script.yaml", "--script-allow-system"]);
    assert!(mark.exists(), "{text}");
}

/// A result that cannot be written × what was in its place.
#[test]
fn what_cannot_be_written_leaves_what_was_there() {
    let place = Place::new();
    let sink = Sink::start("");
    let old = "an earlier result";
    place.write("r.json", old);
    std::os::unix::fs::symlink("r.json", place.path("link.json")).expect("a link");
    for (flag, file) in [("--json", "r.json"), ("--json", "link.json"), ("--report", "r.json")] {
        let _turn = machine::load();
        let line = format!(
            "ulimit -f 8; exec {} {} -n 20 -c 1 --no-preflight --quiet {flag} {file}",
            env!("CARGO_BIN_EXE_plimsoll"),
            sink.url()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(place.0.path()).stdin(Stdio::null());
        let output = shell.output().expect("there is a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{flag} {file}: {said}");
        assert!(said.contains("cannot write"), "{flag} {file}: {said}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("20"), "the report is there anyway");
        assert_eq!(std::fs::read_to_string(place.path("r.json")).expect("it is there"), old, "{flag} {file}");
    }
    let names: Vec<_> = std::fs::read_dir(place.0.path()).expect("a folder").filter_map(Result::ok).collect();
    assert_eq!(names.len(), 4, "nothing is left over: {names:?}");
    // Without the limit it is replaced, through the link, too.
    let (code, said) =
        place.said(&format!("{} -n 20 -c 1 --no-preflight --quiet --json link.json", sink.url()));
    assert!(matches!(code, Some(0 | 3)), "the machine may be busy: {said}");
    assert!(std::fs::read_to_string(place.path("r.json")).expect("it is there").contains("accounting"));
    assert!(place.path("link.json").is_symlink());
    for report in ["nowhere/r.html", "plans"] {
        let (code, said) = place.said(&format!("{} -n 20 --report {report}", sink.url()));
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("--report: cannot write"), "{said}");
    }
    assert_eq!(sink.stop().requests, 4 * 20, "none of those that were refused");
}

/// Commands that reach for a broker × what their messages show of its address.
#[test]
fn the_password_of_a_broker_is_in_no_message() {
    let place = Place::new();
    let broker = "nats://me:hunter2@127.0.0.1:1";
    for command in [
        format!("run http://127.0.0.1:1/ --rate 1 -d 1s --fleet {broker}"),
        format!("agent --name a --folder agent --nats {broker}"),
        format!("fleet list --nats {broker}"),
    ] {
        let output = place.output(&command);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert_eq!(output.status.code(), Some(1), "{command}: {text}");
        assert!(text.contains("nats://***@127.0.0.1:1") && !text.contains("hunter2"), "{command}: {text}");
    }
}

/// Names with line ends × what shows them; text of a server × the log of a CI service.
#[test]
fn names_of_a_plan_are_lines() {
    let place = Place::new();
    for plan in [
        "name: \"a\\n::error::X\"\nscenarios: [{steps: [{get: /}]}]\n",
        "scenarios: [{name: \"a\\n::error::X\", steps: [{get: /}]}]\n",
        "scenarios: [{steps: [{name: \"a\\n::error::X\", get: /}]}]\n",
        "data: {\"a\\n::error::X\": {values: [{id: 1}]}}\nscenarios: [{steps: [{get: /}]}]\n",
        "phases: [{name: \"a\\n::error::X\", rate: 1, duration: 1s}]\nscenarios: [{steps: [{get: /}]}]\n",
    ] {
        place.write("plans/p.yaml", &format!("{BEGIN}{plan}"));
        let (code, said) = place.said("check plans/p.yaml");
        assert_eq!(code, Some(2), "{plan}: {said}");
        assert!(said.contains("more than one line") || said.contains("phases"), "{plan}: {said}");
        assert!(said.lines().all(|line| !line.trim_start().starts_with("::error")), "{said}");
    }
    place.write(
        "plans/p.yaml",
        &format!("{BEGIN}run: {{duration: \"1\\nPASS\"}}\nscenarios: [{{steps: [{{get: /}}]}}]\n"),
    );
    let (_, said) = place.said("check plans/p.yaml");
    assert!(said.contains("\n  | PASS"), "{said}");
}

/// Symptom: a variable that is set to twice itself took 4 GB, and the result was lost.
#[test]
fn variables_that_grow_end_their_iterations_and_not_the_run() {
    let place = Place::new();
    let sink = Sink::start("");
    let plan = format!(
        "targets: {{a: '{}'}}\nrun: {{iterations: 2, connections: 1}}\nvariables: {{v: aaaaaaaaaa}}\n\
         scenarios: [{{steps: [{{repeat: 60, steps: [{{set: {{v: '${{v}}${{v}}'}}}}, {{get: /}}]}}]}}]\n",
        sink.url()
    );
    place.write("plans/grows.yaml", &plan);
    let _turn = machine::load();
    let output = place.output("run plans/grows.yaml -o json --quiet --no-preflight");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    // Ten bytes are doubled twenty times before they are more than 16 MiB.
    assert_eq!(result["accounting"]["ok"], 2 * 20, "{}", String::from_utf8_lossy(&output.stderr));
    let summary = result["verdict"]["summary"].as_str().unwrap_or_default();
    let expected = "the variable `v` was to be set to a text of more than 16 MiB";
    assert!(summary.contains(expected), "{summary}");
    assert_eq!(output.status.code(), Some(2), "the plan is wrong");
}

/// Credentials of an agent × whether it serves: a broker without keys passes on anybody's orders.
#[test]
fn an_agent_without_a_key_serves_only_where_it_is_told_to() {
    let place = Place::new();
    // Nobody listens there: who gets so far has not been refused.
    for (flags, is_refused) in [
        ("--nats nats://127.0.0.1:1", true),
        ("--nats nats://127.0.0.1:1/x@y", true),
        ("--nats 127.0.0.1:1", true),
        ("--nats nats://me:word@127.0.0.1:1", false),
        ("--nats nats://127.0.0.1:1 --insecure", false),
    ] {
        let (code, said) = place.said(&format!("agent --name a --folder agent {flags}"));
        let words = "takes orders from everybody who reaches the broker";
        assert_eq!(
            (code, said.contains(words)),
            (Some(if is_refused { 2 } else { 1 }), is_refused),
            "{flags}: {said}"
        );
        assert!(said.contains("--insecure") == is_refused, "{flags}: {said}");
    }
}

/// A script that never returns × where it is called: its step is named, and the figures are there.
#[test]
fn a_call_that_holds_the_load_up_is_named() {
    let place = Place::new();
    let sink = Sink::start("");
    for function in ["validate_response(headers, body)", "make_request()"] {
        let plan = format!(
            "targets: {{a: '{}'}}\nrun: {{iterations: 1, connections: 1, no_preflight: true}}\n\
             scenarios: [{{steps: [{{get: /, name: slow, script: 'function {function} while true do end end'}}]}}]\n",
            sink.url()
        );
        place.write("plans/slow.yaml", &plan);
        let _turn = machine::load();
        let output = place.output("run plans/slow.yaml -o json --quiet");
        let said = String::from_utf8_lossy(&output.stderr);
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
        assert_eq!(result["accounting"]["failed"], 1, "{function}: {said}");
        // A load of one request may be over when the script begins: then it is no reason, but a warning.
        let lists = ["evidence", "warnings"].map(|list| result["verdict"][list].as_array().expect("a list"));
        let mut reasons = lists.into_iter().flatten();
        let stall = reasons.find(|reason| reason["code"] == "stall").expect("a second of standstill");
        let evidence = stall["evidence"].as_str().unwrap_or_default();
        assert!(evidence.contains("its own work on a request of `slow` (1.0"), "{function}: {evidence}");
    }
    assert_eq!(sink.stop().requests, 1, "the other one was not made");
}

/// Symptom: endless pings took a gigabyte in fourteen seconds, for each was answered.
#[test]
fn a_flood_of_pings_ends_its_websocket() {
    let ping = [&[0x89, 125][..], &[0; 125]].concat();
    let pong = [0x8a, 0];
    for (what, flood) in [("a ping", &ping[..]), ("a pong", &pong), ("a fragment", &[0, 0])] {
        flooded(what, flood.repeat(1_000));
    }
}

fn flooded(what: &str, thousand: Vec<u8>) {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("ws://{}/", listener.local_addr().expect("an address"));
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        let mut socket = tungstenite::accept(stream).expect("an upgrade");
        // A message that goes on, for fragments.
        if thousand[0] == 0 {
            socket.get_mut().write_all(&[1, 1, b'a']).expect("the client is there");
        }
        // Nothing is read, until the client goes.
        let mut sent = 0;
        while socket.get_mut().write_all(&thousand).is_ok() {
            sent += 1_000;
        }
        sent
    });
    let _turn = machine::load();
    let output = place.output(&format!("ws {url} -n 1 -c 1 --timeout 60s --no-preflight --quiet -o json"));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(result["errors"]["protocol"], 1, "{what}: {}", result["errors"]);
    let sent: u64 = server.join().expect("it ends when the client goes");
    // Some more are on their way: small ones fill many buffers.
    assert!((100_000..10_000_000).contains(&sent), "{what}: {sent}");
}

/// A source of another tool that names a file.
struct Naming {
    format: &'static str,
    /// Name of the source itself, beside the files; `-` if it comes from stdin.
    source: &'static str,
    /// The ending of the file that it names.
    ending: &'static str,
    text: fn(&str) -> String,
    secret: &'static str,
    names: Names,
    /// `true` if the plan has the content when it may be read.
    is_shown: bool,
    /// `true` if all of the file is read.
    is_whole: bool,
}

/// Names of files that a format can say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Names {
    Beside,
    Relative,
    Any,
}

/// Every importer that reads files, in every way.
const NAMING: [Naming; 12] = [
    Naming {
        format: "k6",
        source: "s.js",
        ending: ".json",
        text: |file| {
            format!(
                "import http from 'k6/http'\nconst d = JSON.parse(open('{file}'))\n\
                 export default function () {{ http.post('http://127.0.0.1:1/', d.word) }}\n"
            )
        },
        secret: "{\"word\": \"hunter2\"}",
        names: Names::Any,
        is_shown: true,
        is_whole: true,
    },
    Naming {
        format: "k6",
        source: "s.js",
        ending: ".js",
        text: |file| {
            let file = if file.contains('/') { file.to_owned() } else { format!("./{file}") };
            format!(
                "import http from 'k6/http'\nimport {{ word }} from '{file}'\n\
                 export default function () {{ http.post('http://127.0.0.1:1/', word) }}\n"
            )
        },
        secret: "export const word = 'hunter2'\n",
        names: Names::Relative,
        is_shown: true,
        is_whole: true,
    },
    Naming {
        format: "gatling",
        source: "S.java",
        ending: ".txt",
        text: |file| gatling("", &format!(".body(ElFileBody(\"{file}\"))")),
        secret: "hunter2",
        names: Names::Any,
        is_shown: true,
        is_whole: true,
    },
    Naming {
        format: "gatling",
        source: "S.java",
        ending: ".json",
        text: |file| gatling(&format!(".feed(jsonFile(\"{file}\").circular())"), ""),
        secret: "[{\"word\": \"hunter2\"}]",
        names: Names::Any,
        is_shown: true,
        is_whole: true,
    },
    Naming {
        format: "locust",
        source: "s.py",
        ending: ".py",
        text: |file| {
            let module = file.trim_end_matches(".py");
            format!(
                "from locust import HttpUser, task\nfrom {module} import WORD\n\n\
                 class U(HttpUser):\n    host = 'http://127.0.0.1:1'\n\n    @task\n    def t(self):\n        \
                 self.client.post('/', data=WORD)\n"
            )
        },
        secret: "WORD = 'hunter2'\n",
        names: Names::Beside,
        is_shown: true,
        is_whole: true,
    },
    Naming {
        format: "curl",
        source: "-",
        ending: ".txt",
        text: |file| format!("curl -d @{file} http://127.0.0.1:1/\n"),
        secret: "hunter2",
        names: Names::Any,
        is_shown: true,
        is_whole: true,
    },
    Naming {
        format: "h2loadrunner",
        source: "s.json",
        ending: ".txt",
        text: |file| {
            format!(
                "{{\"schema\": \"http\", \"host\": \"127.0.0.1\", \"port\": 1, \"clients\": 1, \"total-requests\": 1, \
                 \"Scenarios\": [{{\"name\": \"a\", \"Requests\": [{{\"method\": \"POST\", \"uri\": \
                 {{\"typeOfAction\": \"input\", \"input\": \"/\"}}, \
                 \"payload\": \"{file}\"}}]}}]}}"
            )
        },
        secret: "hunter2",
        names: Names::Any,
        is_shown: false,
        is_whole: true,
    },
    Naming {
        format: "artillery",
        source: "s.yml",
        ending: ".csv",
        text: |file| {
            format!(
                "config: {{target: 'http://127.0.0.1:1', phases: [{{duration: 1, arrivalRate: 1}}], \
                 payload: {{path: '{file}', fields: [word], skipHeader: true}}}}\n\
                 scenarios: [{{flow: [{{get: {{url: '/{{{{ word }}}}'}}}}]}}]\n"
            )
        },
        secret: "word\nhunter2\n",
        names: Names::Any,
        is_shown: false,
        is_whole: false,
    },
    Naming {
        format: "jmeter",
        source: "s.jmx",
        ending: ".csv",
        text: |file| include_str!("../../crates/import/tests/jmeter/csv.jmx").replace("ids.csv", file),
        secret: "id\thunter2\n",
        names: Names::Any,
        is_shown: false,
        is_whole: false,
    },
    Naming {
        format: "postman",
        source: "s.json",
        ending: ".txt",
        text: |file| {
            format!(
                "{{\"info\": {{\"name\": \"a\", \"schema\": \
                 \"https://schema.getpostman.com/json/collection/v2.1.0/collection.json\"}}, \"item\": [{{\"name\": \
                 \"a\", \"request\": {{\"method\": \"POST\", \"url\": \"http://127.0.0.1:1/\", \"body\": \
                 {{\"mode\": \"file\", \"file\": {{\"src\": \"{file}\"}}}}}}}}]}}"
            )
        },
        secret: "hunter2",
        names: Names::Any,
        is_shown: false,
        is_whole: false,
    },
    Naming {
        format: "proto",
        source: "s.proto",
        ending: ".proto",
        text: |file| {
            format!(
                "syntax = \"proto3\"; import \"{file}\"; message M {{ hunter.W w = 1; }} \
                 service S {{ rpc A(M) returns (M); }}"
            )
        },
        secret: "syntax = \"proto3\"; package hunter; message W { string hunter2 = 1; }",
        names: Names::Beside,
        is_shown: true,
        is_whole: true,
    },
    Naming {
        format: "ghz",
        source: "s.json",
        ending: ".proto",
        text: |file| {
            format!(
                "{{\"proto\": \"{file}\", \"call\": \"S.A\", \"host\": \"127.0.0.1:1\", \"insecure\": true, \"data\": {{}}}}"
            )
        },
        secret: "syntax = \"proto3\"; message M { string hunter2 = 1; } service S { rpc A(M) returns (M); }",
        names: Names::Any,
        is_shown: false,
        is_whole: true,
    },
];

fn gatling(before: &str, of_request: &str) -> String {
    format!(
        "public class S extends Simulation {{\n  {{\n    setUp(scenario(\"a\"){before}\
         .exec(http(\"r\").post(\"http://127.0.0.1:1/#{{word}}\"){of_request}).injectOpen(atOnceUsers(1)));\n  }}\n}}\n"
    )
}

/// Formats × names of files that are elsewhere, have no end or are too large.
#[test]
fn imports_read_files_of_their_folder_and_tell_what_they_refuse() {
    let place = Place::new();
    // Another file that the test plan of JMeter names.
    place.write("plans/users.csv", "user,password\n");
    for naming in &NAMING {
        let Naming { format, source, ending, .. } = naming;
        let at = |name: &str| place.path(&format!("plans/{name}{ending}"));
        place.write(&format!("secret{ending}"), naming.secret);
        let secret = place.path(&format!("secret{ending}")).display().to_string();
        std::os::unix::fs::symlink(&secret, at("link")).expect("a link");
        std::os::unix::fs::symlink("/dev/zero", at("zero")).expect("a link");
        assert!(Command::new("mkfifo").arg(at("pipe")).status().expect("coreutils").success());
        let large = std::fs::File::create(at("large")).expect("a file");
        large.set_len(3 << 30).expect("it takes no place");
        let imported = |file: &str, flags: &[&str]| {
            let text = (naming.text)(file);
            place.write("plans/source", &text);
            let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
            command.args(["import", format]).env_remove("CI");
            if *source == "-" {
                let text = std::fs::File::open(place.path("plans/source")).expect("it was written");
                command.arg("-").current_dir(place.path("plans")).stdin(text);
            } else {
                place.write(&format!("plans/{source}"), &text);
                command.arg(format!("plans/{source}")).current_dir(place.0.path()).stdin(Stdio::null());
            }
            let output = command.args(flags).output().expect("the program was built");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (output.status.code(), text(&output.stdout), text(&output.stderr))
        };
        let elsewhere = "it is not below the folder of the import";
        let own = |name: &str| format!("{name}{ending}");
        let mut cases = vec![
            (own("link"), elsewhere),
            (own("zero"), elsewhere),
            (own("pipe"), "it is a pipe, a socket or a device"),
        ];
        if naming.names >= Names::Relative {
            cases.push((format!("../{}", own("secret")), elsewhere));
        }
        if naming.names == Names::Any {
            cases.extend([(secret.clone(), elsewhere), ("/dev/zero".to_owned(), elsewhere)]);
        }
        if naming.is_whole {
            cases.push((own("large"), "it has more than 256 MiB"));
        }
        for (file, refusal) in cases {
            let shown = format!("{format} {file}");
            let (code, plan, said) = imported(&file, &[]);
            assert!(!format!("{plan}{said}").contains("hunter2"), "{shown}: {plan}{said}");
            assert!(said.contains(refusal), "{shown}: {plan}{said}");
            assert_eq!(said.contains("--allow-files DIR"), refusal == elsewhere, "{shown}: {said}");
            assert!(matches!(code, Some(0 | 2)), "{shown}: {said}");
            assert_eq!(imported(&file, &["--strict"]).0, Some(2), "{shown}");
            if file.contains("secret") || file.contains("link") {
                let folder = place.0.path().display().to_string();
                let (code, plan, said) = imported(&file, &["--allow-files", &folder]);
                assert_eq!(code, Some(0), "{shown}: {said}");
                assert!(!said.contains(elsewhere), "{shown}: {said}");
                assert_eq!(plan.contains("hunter2"), naming.is_shown, "{shown}: {plan}{said}");
            }
        }
        for name in ["link", "zero", "pipe", "large"] {
            std::fs::remove_file(at(name)).expect("it was made");
        }
    }
    let configuration = NAMING.iter().find(|naming| naming.format == "h2loadrunner").expect("it is listed");
    // One large file that is named again and again.
    let large = std::fs::File::create(place.path("plans/large.txt")).expect("a file");
    large.set_len(200 << 20).expect("it takes no place");
    let text = (configuration.text)("large.txt");
    let (begin, rest) = text.split_once("{\"method\"").expect("a request");
    let (request, end) = rest.split_once("}]}]}").expect("the last one");
    let requests = vec![format!("{{\"method\"{request}}}"); 1_000].join(", ");
    place.write("plans/s.json", &format!("{begin}{requests}]}}]}}{end}"));
    let (_, said) = place.said("import h2loadrunner plans/s.json");
    assert!(said.contains("the files of the import have more than 512 MiB"), "{said}");
    // A command that is typed is that of the person, as one text and as words.
    for words in
        [&["curl -d @../secret.txt http://127.0.0.1:1/"][..], &["--", "-d", "@../secret.txt", "http://a/"]]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["import", "curl"]).args(words).current_dir(place.path("plans")).stdin(Stdio::null());
        let output = command.output().expect("the program was built");
        let plan = String::from_utf8_lossy(&output.stdout);
        assert!(plan.contains("hunter2"), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let (code, said) = place.said("import curl --allow-files . -- http://127.0.0.1:1/");
    assert!(code == Some(2) && said.contains("--allow-files has no effect"), "{said}");
    // A configuration that is run at once.
    place.write("plans/s.json", &(configuration.text)("../secret.txt"));
    for (granted, is_refused) in [("", true), (" --allow-files .", false)] {
        let (_, said) = place.said(&format!("run --h2loadrunner plans/s.json --print-plan{granted}"));
        assert_eq!(said.contains("it is not below the folder of the import"), is_refused, "{said}");
    }
}
