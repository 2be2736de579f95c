//! Tests that carry out the commands that documents print, and the plans that `--print-plan` prints.

use std::process::{Command, Output};

use crate::loopback::process::{Folder, Process, plimsoll, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::{machine, printed_commands, verdict};

/// Commands that are not run here, and why; all are read by the unit test of the same name.
const NOT_RUN: [(&str, &str); 20] = [
    ("ShareGPT.json", "the reader's prompts and key"),
    ("https://", "the reader's certificate"),
    ("--http2", "the reader's server"),
    ("9000", "the reader's server"),
    ("72h", "it lasts three days"),
    ("--watch-", "the reader's processes"),
    ("--prometheus", "tests of exports do this"),
    ("--otlp", "tests of exports do this"),
    ("base.yaml", "ten pairs of runs"),
    ("URL", "a word for the reader's"),
    ("--start-at", "it waits for that instant, with other machines"),
    ("peak", "a run of such machines"),
    ("shop.proto", "the reader's service"),
    ("fleet", "tests of fleets do this"),
    ("lab-", "the reader's machines"),
    ("--evidence-key", "the reader's key"),
    ("--proxy", "tests of proxies do this"),
    ("capacity.json", "tests of searches do this"),
    ("capacity.evidence", "tests of searches do this"),
    ("ab.json", "tests of comparisons do this"),
];

/// The stage on which commands are run: plans, results, runs in the history, and a sink.
struct Stage {
    folder: Folder,
    sink: Sink,
    /// A sink that speaks gRPC.
    grpc: Sink,
    /// A sink that speaks WebSocket.
    websocket: Sink,
}

impl Stage {
    fn new() -> Self {
        let (folder, sink, grpc) = (Folder::new(), Sink::start(""), Sink::start("--grpc"));
        let websocket = Sink::start("--websocket");
        let plan = format!(
            "run: {{rate: 200, duration: 300ms}}\ntargets: {{api: 'http://{}'}}\n\
             scenarios: [{{steps: [{{get: /}}]}}]\n",
            sink.endpoint
        );
        folder.write("plan.yaml", &plan);
        for part in ["base", "new", "load"] {
            std::fs::create_dir(folder.path().join(part)).expect("a new folder");
        }
        folder.write("load/plan.yaml", &plan);
        folder.write("sink.proto", include_str!("../../../ext/grpc/src/service/sink.proto"));
        let stage = Self { folder, sink, grpc, websocket };
        for line in [
            "run plan.yaml --json result.json --name checkout --tag branch=main",
            "run plan.yaml --json base.json --name checkout --tag branch=fix",
            "run plan.yaml --json new.json",
        ] {
            let output = stage.run(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
            assert!(verdict::ran(output.status.code()), "{}", String::from_utf8_lossy(&output.stderr));
        }
        for (from, to) in [("base.json", "base/1.json"), ("new.json", "new/1.json")] {
            std::fs::copy(stage.folder.path().join(from), stage.folder.path().join(to)).expect("a result");
        }
        std::fs::create_dir(stage.folder.path().join("baseline")).expect("a new folder");
        std::fs::copy(stage.folder.path().join("new.json"), stage.folder.path().join("baseline/1.json"))
            .expect("a result");
        stage
    }

    fn run(&self, words: &[String]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(words).current_dir(self.folder.path());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PLIMSOLL_"))
        {
            command.env_remove(name);
        }
        command.env("PLIMSOLL_STORE", self.folder.path().join("history.db"));
        command.env("GITHUB_STEP_SUMMARY", self.folder.path().join("summary.md"));
        let _turn = machine::load();
        command.output().expect("the command starts")
    }

    /// The command against the sink, and short: times are tenths of the printed ones, or less.
    fn shortened(&self, words: &[String]) -> Vec<String> {
        let mut short = Vec::new();
        let mut before = "";
        for word in words {
            short.push(match before {
                "-d" if words[0] == "grpc" => word.clone(),
                "-d" | "--duration" => "700ms".to_owned(),
                "--stages" => "100ms@100,100ms@200,100ms@200".to_owned(),
                "--threshold" => "p50<60s".to_owned(),
                _ => word
                    .replace("127.0.0.1:8080", &self.sink.endpoint)
                    .replace("127.0.0.1:50051", &self.grpc.endpoint)
                    .replace("127.0.0.1:9001", &self.websocket.endpoint),
            });
            before = word;
        }
        short
    }
}

#[test]
fn the_commands_of_the_documents_do_what_they_say() {
    const RUN: [&str; 14] = [
        "grpc", "ws", "run", "check", "explain", "try", "runs", "show", "export", "report", "history",
        "compare", "verify", "http://",
    ];
    let stage = Stage::new();
    let mut ran = 0;
    let commands: Vec<_> = printed_commands::all()
        .into_iter()
        .filter(|command| {
            RUN.iter().any(|word| command.words.first().is_some_and(|first| first.starts_with(word)))
        })
        .filter(|command| !NOT_RUN.iter().any(|(part, _)| command.line.contains(part)))
        .collect();
    for command in &commands {
        let words = stage.shortened(&command.words);
        let output = stage.run(&words);
        let said = format!(
            "{}: {}\n{words:?} {}",
            command.document.display(),
            command.line,
            String::from_utf8_lossy(&output.stderr)
        );
        // A busy machine makes runs invalid (3) and comparisons undecided; a mistake is 1 or 2.
        assert!(verdict::ran(output.status.code()), "{:?} {said}", output.status.code());
        ran += 1;
    }
    assert!(ran >= 20, "only {ran} of them");
}

#[test]
fn a_printed_plan_runs_as_its_flags_do() {
    let folder = Folder::new();
    let mut sink = Process::start(plimsoll("sink --canister --listen 127.0.0.1:0"));
    let line = sink.stderr.wait_for("listening on ");
    let url =
        format!("http://{}", line.rsplit(' ').next().expect("an address").trim_start_matches("http://"));
    let flags = format!("canister {url} -d 1s --rate 77 --seed 5 -c 3");
    let printed = run(&format!("{flags} --print-plan"));
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""), "{printed:?}");
    let plan = folder.write("printed.yaml", &printed.stdout);
    let (by_flags, by_plan) =
        (run(&format!("{flags} -o json")).result(), run(&format!("run {plan} -o json")).result());
    assert_eq!(by_flags["run"]["load_checksum"], by_plan["run"]["load_checksum"]);
    assert_eq!(by_plan["rate"]["target_per_s"], 77.0);
    for pointer in ["/rate/target_per_s", "/connections/limit", "/run/seed", "/accounting/scheduled"] {
        assert_eq!(by_flags.pointer(pointer), by_plan.pointer(pointer), "{pointer}");
    }
}
