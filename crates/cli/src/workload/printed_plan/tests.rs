//! A printed plan puts the same load on the same servers as the flags that it is printed from.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::FromArgMatches as _;
use plimsoll_engine::load_checksum;
use plimsoll_plan::{Disk, Plan, PlanPatch, PlanSource, Setting, Source};
use plimsoll_workloads::BODIES;

use super::PrintedPlan;
use crate::args::cli::{Cli, Command};
use crate::args::command_word;
use crate::base::failure::Failure;
use crate::workload;

/// A command line for each kind of load, without and with TLS where there is such a thing.
const WORKLOADS: [&str; 16] = [
    "cache",
    "cache --mix get=9,put=1 --key zipf --keys 1000",
    "crud --leader http://127.0.0.1:1",
    "crud --leader https://127.0.0.1:1 --mode bulk --bulk-size 5",
    "crud --leader http://127.0.0.1:1 --mode random --create-pct 50 --read-pct 30 --update-pct 15 --delete-pct 5",
    "ingest metrics --url http://127.0.0.1:1",
    "ingest metrics --url https://127.0.0.1:1 --rate 50k --compression gzip",
    "ingest logs --url http://127.0.0.1:1 --format influx-line --batch-size 10",
    "ingest traces --url http://127.0.0.1:1",
    "ingest events --url http://127.0.0.1:1",
    "ingest unified --url http://127.0.0.1:1",
    "ingest --preset logs-50k --thresholds arc --url http://127.0.0.1:1",
    "canister http://127.0.0.1:1",
    "canister https://127.0.0.1:1 --api v2 -n 2",
    "canister http://127.0.0.1:1 -u --random-query-payload --call-method put",
    "canister http://localhost:1,http://localhost:2 -m QueryCounter",
];

/// Each setting of plans, and a flag that gives it. CERTIFICATE stands for a file.
const SETTINGS: [(&str, &str); 68] = [
    ("connections", "--connections 7"),
    ("connections", "-c 128"),
    ("iterations", "--iterations 900"),
    ("duration", "--duration 3s"),
    ("threads", "--threads 2"),
    ("rate", "RATE 77"),
    ("rate", "RATE 5k/s --arrival poisson"),
    ("rps", "--rps 5"),
    ("stages", "--stages 2s@100,1s@=50"),
    ("users", "--users 9"),
    ("user_stages", "--user-stages 2s@5,1s@9"),
    ("rate_of", "RATE 20 --rate-of requests"),
    ("arrival", "RATE 20 --arrival poisson"),
    ("overload", "RATE 20 -c 4 --overload drop"),
    ("warmup", "--warmup 1s"),
    ("drain", "--drain 3s"),
    ("timeout", "--timeout 3s"),
    ("timeout", "--stream-timeout 3s"),
    ("connect_timeout", "--connect-timeout 3s"),
    ("seed", "--seed 8"),
    ("follow_redirects", "--follow-redirects=3"),
    ("basic", "--basic me:topsecret"),
    ("bearer", "--bearer topsecret"),
    ("bearer", "--token topsecret"),
    ("auth", "--jwt-key env:PATH --auth jwt"),
    ("jwt_key", "--jwt-key env:PATH"),
    ("jwt_alg", "--jwt-key env:PATH --jwt-alg HS384"),
    ("jwt_claims", "--jwt-key env:PATH --jwt-claims {\"sub\":\"a\"}"),
    ("jwt_lifetime", "--jwt-key env:PATH --jwt-lifetime 1m"),
    ("abort_pct", "--abort-pct 5"),
    ("abort_at", "--abort-pct 5 --abort-at request"),
    ("abandon_pct", "--abandon-pct 5 --abandon-after 20ms"),
    ("abandon_after", "--abandon-pct 5 --abandon-after 30ms"),
    ("pipeline", "--pipeline 3"),
    ("max_requests_per_connection", "--max-requests-per-connection 100"),
    ("connection_lifetime", "--connection-lifetime 1s"),
    ("connection_inactivity", "--connection-inactivity 1s"),
    ("connection_rate", "--connection-rate 10"),
    ("unix_socket", "--unix-socket /tmp/none.sock"),
    ("cacert", "--cacert CERTIFICATE"),
    ("cert", "--cert CERTIFICATE --key KEY"),
    ("key", "--cert CERTIFICATE --key KEY --tls 1.3"),
    ("tls", "--tls 1.2"),
    ("sni", "--sni other.test"),
    ("alpn", "--alpn h2,http/1.1"),
    ("window_bits", "--http2 --window-bits 20"),
    ("connection_window_bits", "--http2 --connection-window-bits 20"),
    ("header_table_size", "--http2 --header-table-size 100"),
    ("encoder_header_table_size", "--http2 --encoder-header-table-size 100"),
    ("max_frame_size", "--http2 --max-frame-size 32KiB"),
    ("ping_interval", "--http2 --ping-interval 1s"),
    ("backend", "--backend epoll"),
    ("pacing", "RATE 20 --pacing shared"),
    ("max_head_bytes", "--max-head-bytes 8KiB"),
    ("interval", "--interval 500ms"),
    ("stats", "--stats out.csv"),
    ("log", "--log out.csv"),
    ("failed", "--failed out.txt"),
    ("rate_file", "RATE 20 --rate-file rate"),
    ("control", "--control 127.0.0.1:0"),
    ("max_rate", "--control 127.0.0.1:0 --max-rate 5k"),
    ("headers", "--header x-own:\u{a0}1"),
    ("redact", "--redact pin --redact x-own"),
    ("max_concurrent_streams", "--http2 --streams 8"),
    ("source_ip", "--source-ip 127.0.0.1"),
    ("resolve", "--resolve 127.0.0.1:1:127.0.0.2"),
    ("connect_to", "--connect-to ::127.0.0.2:2"),
    ("threshold", "--threshold p99<1s --threshold rate>1 --abort-on-fail"),
];

/// Switches, by the same names.
const SWITCHES: [(&str, &str); 10] = [
    ("disable_keepalive", "--disable-keepalive"),
    ("ipv4", "-4"),
    ("ipv6", "-6"),
    ("insecure", "-k"),
    ("http1", "--http1.1"),
    ("http2", "--http2"),
    ("http2_prior_knowledge", "--http2-prior-knowledge"),
    ("precise", "--precise"),
    ("no_preflight", "--no-preflight"),
    ("control_h2loadrunner", "--control 127.0.0.1:0 --control-h2loadrunner"),
];

/// Settings that no workload takes, as `rps`, which is of h2loadrunner's scenario.
const REFUSED: [&str; 1] = ["rps"];

fn printed(words: &[String]) -> Option<Result<PrintedPlan, Failure>> {
    let words: Vec<&str> = std::iter::once("plimsoll").chain(words.iter().map(String::as_str)).collect();
    let found = command_word::command().try_get_matches_from(&words).ok()?;
    let Command::Workload(command) = Cli::from_arg_matches(&found).ok()?.command else {
        panic!("{words:?} is no workload")
    };
    Some(workload::printed(&command).map(|plan| plan.expect("a plan")))
}

fn text_of_a_plan(yaml: &str) -> PlanSource {
    PlanSource::Text(Source { name: "printed.yaml".to_owned(), text: yaml.to_owned() })
}

/// The plan that `plimsoll run` resolves a text to.
fn read_again(yaml: &str) -> Plan {
    let plan = text_of_a_plan(yaml);
    // A key that is there on every system.
    let environment = vec![("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())];
    let command = plimsoll_plan::Command { plan: Some(plan), environment, flags: flags() };
    match command.resolve(&Disk) {
        Ok(resolved) => resolved.plan,
        Err(refused) => panic!("{:?}\n{yaml}", refused.problems),
    }
}

fn flags() -> PlanPatch {
    PlanPatch { bodies: BODIES, ..PlanPatch::default() }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace('\u{a0}', " ")).collect()
}

/// A certificate and its key in a folder of their own.
fn certificate() -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("plimsoll-printed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (cert, key)
}

#[test]
fn a_printed_plan_is_the_plan_of_its_flags_for_every_workload_and_setting() {
    let known: BTreeSet<&str> = SETTINGS.iter().chain(&SWITCHES).map(|(name, _)| *name).collect();
    for Setting { name, .. } in Setting::in_plan_files() {
        assert!(known.contains(name), "the setting {name} has no flag in this test");
    }
    let (cert, key) = certificate();
    let mut taken = BTreeSet::new();
    for workload in WORKLOADS {
        let own = words(workload);
        let seed = words("--seed 7");
        let plain = printed(&[own.clone(), seed.clone()].concat()).expect(workload);
        let plain = plain.unwrap_or_else(|failure| panic!("{workload}: {failure:?}")).yaml;
        for (name, flags) in [("", "")].iter().chain(&SETTINGS).chain(&SWITCHES) {
            let rate = match own[0].as_str() {
                "ingest" => "--batch-rate",
                _ => "--rate",
            };
            let mut flags = flags.replace("RATE", rate).replace("CERTIFICATE", &cert.display().to_string());
            flags = flags.replace("KEY", &key.display().to_string());
            let typed = if flags.is_empty() { Vec::new() } else { words(&flags) };
            let seed = if *name == "seed" { Vec::new() } else { seed.clone() };
            // What a workload does not take is refused by both ways.
            let Some(Ok(PrintedPlan { yaml, notes, resolved })) =
                printed(&[own.clone(), seed, typed].concat())
            else {
                continue;
            };
            let line = format!("{workload} {flags}");
            assert!(!yaml.contains("topsecret"), "{line}: {yaml}");
            if flags.contains("topsecret") {
                assert!(notes.iter().any(|note| note.contains("is not printed")), "{line}: {notes:?}");
                taken.insert(*name);
                continue;
            }
            let (run, again) = (resolved.plan, read_again(&yaml));
            assert_eq!(load_checksum(&run), load_checksum(&again), "{line}\n{yaml}");
            let (run, again) = (format!("{run:#?}"), format!("{again:#?}"));
            let differ = run.lines().zip(again.lines()).find(|(one, other)| one != other);
            assert_eq!(differ, None, "{line}\n{yaml}");
            assert_eq!(run.len(), again.len(), "{line}\n{yaml}");
            if yaml != plain {
                taken.insert(*name);
            }
        }
    }
    let missing: Vec<&str> =
        known.into_iter().filter(|name| !taken.contains(name) && !REFUSED.contains(name)).collect();
    assert!(missing.is_empty(), "lost, or refused everywhere: {missing:?}");
    let _ = std::fs::remove_dir_all(cert.parent().unwrap());
}

#[test]
fn credentials_are_given_by_the_environment_when_a_printed_plan_is_run() {
    let line =
        "ingest logs --url http://me:topsecret@127.0.0.1:1 --header Cookie:topsecret --seed 7 --repeat 3";
    let PrintedPlan { yaml, notes, .. } = printed(&words(line)).unwrap().unwrap();
    assert!(!yaml.contains("topsecret") && !notes.join("").contains("topsecret"), "{yaml} {notes:?}");
    assert_eq!(
        notes,
        [
            "the header Cookie is not printed: give it with -H when the plan is run",
            "user and password of a URL are not printed: give them with --basic",
            "no plan can say --repeat: give it again when the plan is run",
        ]
    );
    let PrintedPlan { yaml, notes, resolved } =
        printed(&words("ingest logs --url http://127.0.0.1:1 --token topsecret --seed 7")).unwrap().unwrap();
    assert_eq!(notes, ["--token is not printed: set PLIMSOLL_BEARER when the plan is run, or give --bearer"]);
    let plan = text_of_a_plan(&yaml);
    let environment = vec![("PLIMSOLL_BEARER".to_owned(), "topsecret".to_owned())];
    let command = plimsoll_plan::Command { plan: Some(plan), environment, flags: flags() };
    let again = command.resolve(&Disk).unwrap().plan;
    assert_eq!(load_checksum(&again), load_checksum(&resolved.plan));
}
