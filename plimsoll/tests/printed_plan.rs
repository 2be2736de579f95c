//! A printed plan puts the same load on the same servers as the flags that it is printed from.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plimsoll_app::inspect::{self, Printed};
use plimsoll_app::plan_parts;
use plimsoll_document::{Problems, RawValue, Setting, Source};
use plimsoll_engine::load_checksum;
use plimsoll_plan::{Disk, Plan, PlanPatch, PlanSource};

/// A command line for each kind of load, without and with TLS where there is such a thing.
const WORKLOADS: [&str; 29] = [
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
    "ingest unified --preset arc --url http://127.0.0.1:1",
    "llm http://127.0.0.1:1 --model m",
    "llm http://127.0.0.1:1/v1 --model m --api completions --input-tokens uniform:5,9 --goodput ttft<1s",
    "grpc 127.0.0.1:1 echo.v1.Echo/Say --proto PROTO",
    "grpc https://127.0.0.1:1 echo.v1.Echo/Say --proto PROTO --deadline 2s --data {\"text\":\"${sequence}\"}",
    "canister http://127.0.0.1:1",
    "canister https://127.0.0.1:1 --api v2 -n 2",
    "canister http://127.0.0.1:1 -u --random-query-payload --call-method put --nonce abc",
    "canister http://localhost:1,http://localhost:2 -m QueryCounter",
    "run http://127.0.0.1:1/a/${uuid}?c=$${d}#e",
    "run 127.0.0.1:1?c -X DELETE",
    "run https://127.0.0.1:1 https://127.0.0.1:1/b http://127.0.0.1:2/ -X PURGE",
    "run http://127.0.0.1:1/ -b {\"a\":\"${uuid}\"} --header Content-Type:application/json",
    "run PLAN",
    "find https://127.0.0.1:1/a",
    "find http://127.0.0.1:1/a --slo p99<10ms --from 20",
    "find PLAN",
];

/// A plan file, for which PLAN stands.
const PLAN: &str = "\
name: shop
run: {rate: 20, duration: 3s, headers: ['x-plan: 1']}
targets: {api: 'http://127.0.0.1:1'}
thresholds: [p99<1s, {that: 'error_rate<1%', window: 1s}]
scenarios:
  - name: browse
    weight: 3
    steps:
      - get: /items/7
        think: 1s
        expect: {status: 200}
      - post: /orders
        json: {item: 1}
  - {name: look, steps: [{get: '/about?a=1'}]}
";

/// A file of a service, for which PROTO stands.
const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ext/grpc/tests/echo.proto");

/// Each setting of plans, and a flag that gives it. CERTIFICATE stands for a file.
const SETTINGS: [(&str, &str); 79] = [
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
    ("deal", "--deal shuffled"),
    ("arrival", "RATE 20 --arrival poisson"),
    ("overload", "RATE 20 -c 4 --overload drop"),
    ("warmup", "--warmup 1s"),
    ("drain", "--drain 3s"),
    ("timeout", "--timeout 3s"),
    ("timeout", "--stream-timeout 3s"),
    ("connect_timeout", "--connect-timeout 3s"),
    ("seed", "--seed 8"),
    ("follow_redirects", "--follow-redirects=3"),
    ("trace_context", "--trace-context=5%"),
    ("prom_url", "--prom-url http://127.0.0.1:9090 --threshold prom(up)>0"),
    ("trace_link", "--trace-context --trace-link https://traces.test/${trace_id}"),
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
    ("resolve_every", "--resolve-every 5s"),
    ("resolve_every", "--resolve-every never"),
    ("unix_socket", "--unix-socket /tmp/none.sock"),
    ("proxy", "--proxy http://127.0.0.1:3128"),
    ("proxy", "--proxy socks5h://127.0.0.1:1080"),
    ("proxy", "--proxy http://me:topsecret@127.0.0.1:3128"),
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
    ("goodput", "--goodput ttft<500ms"),
    ("stats", "--stats out.csv"),
    ("log", "--log out.csv"),
    ("stream_log", "--stream-log out.csv"),
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
const SWITCHES: [(&str, &str); 11] = [
    ("disable_keepalive", "--disable-keepalive"),
    ("ipv4", "-4"),
    ("ipv6", "-6"),
    ("insecure", "-k"),
    ("http1", "--http1.1"),
    ("http2", "--http2"),
    ("http2_prior_knowledge", "--http2-prior-knowledge"),
    ("precise", "--precise"),
    ("no_preflight", "--no-preflight"),
    ("no_resend", "--no-resend"),
    ("control_h2loadrunner", "--control 127.0.0.1:0 --control-h2loadrunner"),
];

/// Settings that no workload takes, as `rps`, which is of h2loadrunner's scenario.
const REFUSED: [&str; 1] = ["rps"];

/// A command line of each workload, and each flag that only this workload has: its name, and words that give
/// it another value than it has anyway.
const OWN_FLAGS: [(&str, &[(&str, &str)]); 11] = [
    (
        "ws ws://127.0.0.1:1/chat",
        &[
            ("message", "--message x"),
            ("message-file", "--message-file MESSAGES"),
            ("binary", "--binary"),
            ("compress", "--compress"),
            ("messages", "--messages 3"),
            ("subprotocol", "--subprotocol chat"),
            ("expect", "--expect x"),
            ("no-answer", "--no-answer"),
            ("think", "--think 1s"),
        ],
    ),
    (
        "grpc 127.0.0.1:1 --proto PROTO --call echo.v1.Echo/Say",
        &[
            ("data", "--data {\"text\":\"x\"}"),
            ("data-file", "--data-file MESSAGES"),
            ("deadline", "--deadline 250ms"),
            ("gzip", "--gzip"),
        ],
    ),
    (
        "grpc 127.0.0.1:1 --proto PROTO --call echo.v1.Echo/Chat",
        &[("send", "--send 3"), ("take", "--take 2"), ("wait", "--send 3 --wait")],
    ),
    (
        "llm http://127.0.0.1:1 --model m",
        &[
            ("api", "--api anthropic"),
            ("endpoint", "--endpoint /ask/responses"),
            ("input-tokens", "--input-tokens normal:9,2"),
            ("output-tokens", "--output-tokens 7"),
            ("shared-prefix", "--shared-prefix 5"),
            ("bytes-per-token", "--bytes-per-token 3.5"),
            ("prompts", "--prompts PROMPTS"),
            ("trace", "--trace TRACE"),
            ("turns", "--turns 3"),
            ("think", "--turns 3 --think 2s"),
            ("session-header", "--turns 3 --session-header x-session"),
            ("ignore-eos", "--ignore-eos"),
            ("extra", "--extra {\"temperature\":0}"),
            ("api-key", "--api-key topsecret"),
        ],
    ),
    (
        "cache",
        &[
            ("server", "--server 127.0.0.1:2"),
            ("cache", "--cache other"),
            ("preset", "--preset sustained"),
            ("requests", "--requests 50"),
            ("mix", "--mix get=9,put=1"),
            ("key", "--key zipf"),
            ("keys", "--key random --keys 500"),
            ("key-size", "--key-size 40"),
            ("value-size", "--value-size 100-200"),
            ("verify", "--no-verify --verify"),
            ("no-verify", "--no-verify"),
            ("thresholds", "--thresholds carbon"),
            ("create", "--create"),
            ("admin", "--create --admin http://127.0.0.1:3"),
            ("user", "--create --user me:topsecret"),
            ("compare-http", "--compare-http http://127.0.0.1:3"),
        ],
    ),
    ("crud", &[("leader", "--leader http://127.0.0.1:2")]),
    ("ingest metrics", &[("url", "--url http://127.0.0.1:2")]),
    (
        "crud --leader http://127.0.0.1:1",
        &[
            ("total", "--total 50"),
            ("concurrency", "--concurrency 5"),
            ("preset", "--preset lithair"),
            ("mode", "--mode bulk"),
            ("bulk-size", "--bulk-size 5"),
            ("preseed", "--preseed 7"),
            ("timeout-s", "--timeout-s 2.5"),
            ("create-pct", "--create-pct 50 --read-pct 20"),
            ("read-pct", "--create-pct 50 --read-pct 20"),
            ("update-pct", "--create-pct 50 --update-pct 20"),
            ("delete-pct", "--create-pct 50 --delete-pct 20"),
            ("read-targets", "--mode random --read-targets http://127.0.0.1:2"),
            ("read-path", "--mode random --read-path /other"),
            ("update", "--mode random --update patch"),
            ("model", "--model consent --payload {}"),
            ("path", "--path /other"),
            ("payload", "--payload {\"name\":\"x\"}"),
            ("changes", "--mode random --changes {\"name\":\"x\"}"),
            ("id", "--mode random --id /key"),
            ("verify", "--verify"),
        ],
    ),
    (
        "ingest metrics --url http://127.0.0.1:1",
        &[
            ("preset", "--preset metrics-500k"),
            ("thresholds", "--preset metrics-500k --thresholds arc"),
            ("rate", "--rate 20k"),
            ("batch-rate", "--batch-rate 20"),
            ("batch-size", "--batch-size 20"),
            ("format", "--format influx-line"),
            ("compression", "--compression zstd"),
            ("compression-level", "--compression gzip --compression-level 3"),
            ("measurement", "--measurement other"),
            ("shape", "--shape small"),
            ("hosts", "--hosts 7"),
            ("cardinality", "--cardinality 70"),
            ("churn", "--churn 1%"),
            ("time-unit", "--time-unit us"),
            ("start-time", "--start-time 2026-01-01T00:00:00Z"),
            ("pregenerate", "--pregenerate 5"),
            ("token", "--token topsecret"),
            ("database", "--database other"),
            ("databases", "--databases 3"),
            ("verify", "--verify"),
            ("workers", "--workers 7"),
        ],
    ),
    ("ingest logs --url http://127.0.0.1:1", &[("services", "--services 7")]),
    (
        "canister http://127.0.0.1:1",
        &[
            ("seconds", "--seconds 3"),
            ("canister-id", "--canister-id rwlgt-iiaaa-aaaaa-aaaaa-cai"),
            ("call", "-m UpdateCounter"),
            ("update", "--update"),
            ("call-method", "--call-method other"),
            ("payload", "--payload 4449"),
            ("payload-size", "--payload-size 100"),
            ("random-query-payload", "--random-query-payload"),
            ("nonce", "--update --nonce abc"),
            ("query-nonce", "--query-nonce"),
            ("pem-file", "--pem-file KEY"),
            ("signers", "--pem-file KEY --signers 3"),
            ("presign", "--pem-file KEY --presign 40"),
            ("expiry", "--expiry 1m"),
            ("api", "--update --api v2"),
            ("host", "--host other.test"),
            ("query-timeout-secs", "--query-timeout-secs 3"),
            ("ingress-timeout-secs", "--update --ingress-timeout-secs 3"),
            ("poll-every", "--update --poll-every 50ms"),
            ("verify", "--update --verify 5%"),
            ("root-key", "--update --verify 5% --root-key ROOT"),
            ("summary-file", "--summary-file out.txt"),
            ("periodic-output", "--periodic-output"),
            ("chart-size", "--chart-size small"),
        ],
    ),
];

/// Flags of workloads that have nothing to do with a printed plan, and why.
const NOT_PRINTED: [(&str, &str); 15] = [
    ("canister", "refused, with a hint"),
    ("install-endpoint", "the same"),
    ("columnar", "the default"),
    ("throttle", "the same"),
    ("print-plan", "prints it"),
    ("sweep", "several plans, and refused beside --print-plan"),
    ("batch-rps", "refused, as `rps` is"),
    ("client-key", "refused: caches do not speak TLS"),
    ("principal-id", "compares a key with a name"),
    ("no-status-check", "the plan checks no status"),
    ("status-timeout", "the same"),
    ("model", "every line has it"),
    ("call", "the same"),
    ("proto", "the same"),
    ("descriptors", "in place of --proto"),
];

/// The plan that a command line stands for; `None` if the command does not take the words.
fn printed(words: &[String]) -> Option<Result<Printed, Problems>> {
    plimsoll_app::install(plimsoll::EXTENSIONS);
    let printed = inspect::printed(words).ok()?;
    Some(printed.map(|printed| printed.unwrap_or_else(|| panic!("{words:?} has no plan"))))
}

fn text_of_a_plan(yaml: &str) -> PlanSource {
    PlanSource::Text(Source { name: "printed.yaml".to_owned(), text: yaml.to_owned() })
}

/// The plan that `plimsoll run` resolves a text to.
fn read_again(yaml: &str) -> Plan {
    read_again_with(yaml, flags())
}

/// The plan that `plimsoll run` resolves a text to, with these flags.
fn read_again_with(yaml: &str, flags: PlanPatch) -> Plan {
    let plan = text_of_a_plan(yaml);
    // A key that is there on every system.
    let environment = vec![("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())];
    let command = plimsoll_plan::Command { plan: Some(plan), environment, flags };
    match command.resolve(&Disk) {
        Ok(resolved) => resolved.plan,
        Err(refused) => panic!("{:?}\n{yaml}", refused.problems),
    }
}

fn flags() -> PlanPatch {
    // The plan lies elsewhere than the files of the flags.
    let allow_files = vec![RawValue::new("--allow-files", "/")];
    PlanPatch { parts: plan_parts(), allow_files, ..PlanPatch::default() }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace('\u{a0}', " ")).collect()
}

/// A certificate and its key in a folder of their own.
fn certificate(test: &str) -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("plimsoll-printed-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    (cert, key)
}

#[test]
fn a_printed_plan_is_the_plan_of_its_flags_for_every_workload_and_setting() {
    let known: BTreeSet<&str> = SETTINGS.iter().chain(&SWITCHES).map(|(name, _)| *name).collect();
    for Setting { name, .. } in Setting::in_plan_files() {
        assert!(known.contains(name), "the setting {name} has no flag in this test");
    }
    let (cert, key) = certificate("settings");
    let plan = cert.with_file_name("plan.yaml");
    std::fs::write(&plan, PLAN).unwrap();
    // Half of the workloads each: there are thousands of lines.
    let of_half = |half: usize| {
        let workloads = WORKLOADS.iter().copied().skip(half).step_by(2);
        workloads.flat_map(|workload| taken_by(workload, &plan, &cert, &key)).collect::<BTreeSet<_>>()
    };
    let taken: BTreeSet<&str> = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| scope.spawn(move || of_half(half)));
        halves.into_iter().flat_map(|half| half.join().expect("a half has failed")).collect()
    });
    let missing: Vec<&str> =
        known.into_iter().filter(|name| !taken.contains(name) && !REFUSED.contains(name)).collect();
    assert!(missing.is_empty(), "lost, or refused everywhere: {missing:?}");
    let _ = std::fs::remove_dir_all(cert.parent().unwrap());
}

/// Asserts for a workload that the plan that it prints with each setting is the plan of its flags. Returns
/// the settings that were in a printed plan.
fn taken_by(workload: &str, plan: &Path, cert: &Path, key: &Path) -> BTreeSet<&'static str> {
    let mut taken = BTreeSet::new();
    let own = words(&workload.replace("PLAN", &plan.display().to_string()).replace("PROTO", PROTO));
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
        // Both ways reject a flag that the workload does not take.
        let Some(Ok(Printed { yaml, notes, plan })) = printed(&[own.clone(), seed, typed].concat()) else {
            continue;
        };
        let line = format!("{workload} {flags}");
        assert!(!yaml.contains("topsecret"), "{line}: {yaml}");
        if flags.contains("topsecret") {
            assert!(notes.iter().any(|note| note.contains("is not printed")), "{line}: {notes:?}");
            taken.insert(*name);
            continue;
        }
        // A search has rate and length of its first trial above the plan.
        let rate = (own[0] == "find").then(|| {
            let from = own.iter().position(|word| word == "--from");
            RawValue::new("--from", from.map_or("100", |at| own[at + 1].as_str()).to_owned())
        });
        let is_short = own[0] == "find" && !flags.contains("--duration");
        let duration = is_short.then(|| RawValue::new("--duration", "2s"));
        let above = PlanPatch { rate, duration, ..self::flags() };
        let (run, again) = (plan, read_again_with(&yaml, above));
        assert_eq!(load_checksum(&run), load_checksum(&again), "{line}\n{yaml}");
        if yaml != plain {
            taken.insert(*name);
        }
        // URLs and plan files leave other traces in a plan than its load: places, and what it is called.
        if matches!(own[0].as_str(), "run" | "find") {
            continue;
        }
        let (run, again) = (format!("{run:#?}"), format!("{again:#?}"));
        let differ = run.lines().zip(again.lines()).find(|(one, other)| one != other);
        assert_eq!(differ, None, "{line}\n{yaml}");
        assert_eq!(run.len(), again.len(), "{line}\n{yaml}");
    }
    taken
}

/// Every flag that a workload has beside those of `run` is in the plan that it prints, or named as one that
/// no plan can say.
#[test]
fn a_printed_plan_has_every_flag_that_only_one_workload_has() {
    let (cert, key) = certificate("own");
    // The owner of the key does not matter before anything is verified.
    let root = cert.with_file_name("root.der");
    std::fs::write(&root, [0; 96]).unwrap();
    let prompts = cert.with_file_name("prompts.jsonl");
    std::fs::write(&prompts, "{\"prompt\": \"one\"}\n").unwrap();
    let messages = cert.with_file_name("messages.json");
    std::fs::write(&messages, "[{\"text\": \"one\"}, {\"text\": \"two\"}]").unwrap();
    let trace = cert.with_file_name("trace.jsonl");
    let line = "{\"timestamp\": 0, \"input_length\": 6, \"output_length\": 2, \"hash_ids\": [1]}\n";
    std::fs::write(&trace, line.repeat(2)).unwrap();
    plimsoll_app::install(plimsoll::EXTENSIONS);
    let commands = inspect::commands();
    let of = |name: &str| commands.find_subcommand(name).unwrap_or_else(|| panic!("no command {name}"));
    let longs = |name: &str| -> BTreeSet<&str> {
        of(name).get_arguments().filter_map(|arg| arg.get_long()).collect()
    };
    let of_run = longs("run");
    for command in ["cache", "crud", "ingest", "llm", "canister", "grpc", "ws"] {
        let entries = OWN_FLAGS.iter().filter(|(workload, _)| workload.split(' ').next() == Some(command));
        let mut known: BTreeSet<&str> =
            entries.flat_map(|(_, flags)| flags.iter().map(|(name, _)| *name)).collect();
        known.extend(NOT_PRINTED.iter().map(|(name, _)| *name).chain(of_run.iter().copied()));
        let missing: Vec<&str> = longs(command).difference(&known).copied().collect();
        assert!(missing.is_empty(), "{command}: flags that this test has to know: {missing:?}");
    }
    let (mut lost, mut refused) = (Vec::new(), Vec::new());
    for (workload, flags) in OWN_FLAGS {
        let own = [words(&workload.replace("PROTO", PROTO)), words("--seed 7")].concat();
        for (name, flags) in flags {
            let flags = flags
                .replace("CERTIFICATE", &cert.display().to_string())
                .replace("KEY", &key.display().to_string())
                .replace("PROMPTS", &prompts.display().to_string())
                .replace("TRACE", &trace.display().to_string())
                .replace("ROOT", &root.display().to_string())
                .replace("MESSAGES", &messages.display().to_string());
            let typed = words(&flags);
            // The same without the flag itself.
            let at = typed.iter().position(|word| word.trim_start_matches('-') == *name);
            let plain = typed[..at.unwrap_or(0)].to_vec();
            let line = format!("{workload} {flags}");
            let of_words = |more: &[String]| printed(&[&own[..], more].concat());
            let (Some(Ok(plain)), Some(Ok(given))) = (of_words(&plain), of_words(&typed)) else {
                refused.push(line);
                continue;
            };
            assert!(!given.yaml.contains("topsecret"), "{line}: {}", given.yaml);
            if !flags.contains("topsecret") {
                let (run, again) = (given.plan, read_again(&given.yaml));
                assert_eq!(load_checksum(&run), load_checksum(&again), "{line}\n{}", given.yaml);
                assert_eq!(format!("{run:#?}"), format!("{again:#?}"), "{line}\n{}", given.yaml);
            }
            if given.yaml == plain.yaml && given.notes == plain.notes {
                lost.push(line);
            }
        }
    }
    assert!(
        refused.is_empty() && lost.is_empty(),
        "refused: {refused:#?}, neither in the plan nor told: {lost:#?}"
    );
    let _ = std::fs::remove_dir_all(cert.parent().unwrap());
}

#[test]
fn credentials_are_given_by_the_environment_when_a_printed_plan_is_run() {
    let line =
        "ingest logs --url http://me:topsecret@127.0.0.1:1 --header Cookie:topsecret --seed 7 --repeat 3";
    let Printed { yaml, notes, .. } = printed(&words(line)).unwrap().unwrap();
    assert!(!yaml.contains("topsecret") && !notes.join("").contains("topsecret"), "{yaml} {notes:?}");
    assert_eq!(
        notes,
        [
            "the header Cookie is not printed: give it with -H when the plan is run",
            "user and password of a URL are not printed: give them with --basic",
            "--repeat cannot be written to a plan: give it again when the plan is run",
        ]
    );
    let Printed { yaml, notes, plan: of_flags } =
        printed(&words("ingest logs --url http://127.0.0.1:1 --token topsecret --seed 7")).unwrap().unwrap();
    assert_eq!(notes, ["--token is not printed: set PLIMSOLL_BEARER when the plan is run, or give --bearer"]);
    let plan = text_of_a_plan(&yaml);
    let environment = vec![("PLIMSOLL_BEARER".to_owned(), "topsecret".to_owned())];
    let command = plimsoll_plan::Command { plan: Some(plan), environment, flags: flags() };
    let again = command.resolve(&Disk).unwrap().plan;
    assert_eq!(load_checksum(&again), load_checksum(&of_flags));
}

#[test]
fn the_plan_of_urls_has_their_requests_and_what_no_plan_can_say_is_told_or_refused() {
    let line = "run http://127.0.0.1:1/a http://me:topsecret@127.0.0.1:2/b -b @/dev/null --seed 7 --shard 1/2 --save";
    let Printed { yaml, notes, .. } = printed(&words(line)).unwrap().unwrap();
    assert!(!yaml.contains("topsecret"), "{yaml}");
    for part in ["post: /a", "post: /b", "body_file: /dev/null", "target2: http://127.0.0.1:2"] {
        assert!(yaml.contains(part), "{part}: {yaml}");
    }
    assert_eq!(
        notes,
        [
            "user and password of a URL are not printed: give them with --basic",
            "--save, --shard cannot be written to a plan: give it again when the plan is run",
        ]
    );
    let Printed { yaml, .. } = printed(&words("run http://127.0.0.1:1/")).unwrap().unwrap();
    assert!(yaml.starts_with("targets:"), "an empty mapping would be refused: {yaml}");
    let line = "find http://127.0.0.1:1/ --slo p99<1s --to 500 --max-time 9s";
    let Printed { yaml, notes, .. } = printed(&words(line)).unwrap().unwrap();
    assert!(yaml.contains("p99<1s") && !yaml.contains("rate:"), "{yaml}");
    assert_eq!(notes, ["--to, --max-time cannot be written to a plan: give it again when the plan is run"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/scripts/post.lua");
    let line = format!("run http://127.0.0.1:1/ --script {script}");
    let refused = printed(&words(&line)).unwrap().err().unwrap();
    assert!(refused.iter().any(|one| one.message == "--script cannot be written to a plan"));
}
