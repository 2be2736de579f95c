//! The tables of the guide for users of five other generators: every flag in them is typed, and has to do
//! what the table says. Loads are run, with bounds that keep them short, against the built-in servers.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_ic::Identity;
use plimsoll_testkit::program::Server;
use plimsoll_testkit::{machine, verdict};
use serde_json::Value;

use crate::loopback::crud_cluster::Cluster;
use crate::loopback::ingest_target::IngestTarget;
use crate::loopback::process::{Folder, Process, plimsoll};
use crate::loopback::sink::{Sink, unhurried};

/// A key without an owner.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIPX8G5jnHt5tW0cMqAbaqDg8k37K3d/eROQz7YbXMeL6\n\
    -----END PRIVATE KEY-----\n";
/// The files that values name.
const FILES: [(&str, &str); 4] = [
    ("body.json", "{\"a\": 1}"),
    ("rate.txt", "50"),
    ("x.lua", "wrk.headers[\"a\"] = \"b\"\n"),
    ("key.pem", KEY),
];
/// Rows that are typed at a time: half of the time, processes start and end.
const AT_ONCE: usize = 4;

/// The servers of all rows. They end with this.
struct Servers {
    _sink: Sink,
    _by_socket: Sink,
    _canister: Sink,
    _resources: Process,
    _cluster: Cluster,
    _cache: Server,
    _store: IngestTarget,
    stage: Stage,
}

/// Where the servers are, and a folder with the files that values name.
struct Stage {
    sink: String,
    canister: String,
    /// A server of resources that are created, changed and deleted.
    resources: String,
    cluster: String,
    cache: String,
    store: String,
    folder: Folder,
    principal: String,
}

/// The name of a socket in the folder.
const SOCKET: &str = "sink.sock";

impl Servers {
    fn start() -> Self {
        let mut resources =
            Process::start(plimsoll(&unhurried("target crud --listen 127.0.0.1:0 --drop 0 --fail 0")));
        let line = resources.stderr.wait_for(": listening on ");
        let address = line.rsplit([' ', '/']).next().expect("an address").to_owned();
        let folder = Folder::new();
        for (name, content) in FILES {
            folder.write(name, content);
        }
        let by_socket = Sink::listen(&format!("unix:{}", folder.file(SOCKET)), "");
        let (sink, canister) = (Sink::start(""), Sink::start("--canister"));
        let cluster = Cluster::start(1, "");
        let cache = Server::start(plimsoll(
            "target cache --listen 127.0.0.1:0 --http off --cache perf_test --cache x",
        ));
        let store = IngestTarget::start("--token x");
        let stage = Stage {
            sink: sink.endpoint.clone(),
            canister: canister.endpoint.clone(),
            resources: address,
            cluster: cluster.address(0).to_owned(),
            cache: cache.address.clone(),
            store: store.address.clone(),
            folder,
            principal: Identity::from_pem(KEY).expect("a key").sender().to_string(),
        };
        Self {
            _sink: sink,
            _by_socket: by_socket,
            _canister: canister,
            _resources: resources,
            _cluster: cluster,
            _cache: cache,
            _store: store,
            stage,
        }
    }
}

impl Stage {
    /// Types a command in the folder.
    fn type_in(&self, args: &[String]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(args).current_dir(self.folder.path());
        for name in ["PLIMSOLL_STORE", "PLIMSOLL_SAVE", "SSLKEYLOGFILE"] {
            command.env_remove(name);
        }
        command.env("XDG_DATA_HOME", self.folder.path()).output().expect("the command starts")
    }
}

/// A command that a row is about.
struct Base {
    words: Vec<String>,
    /// Flags that keep the load short, unless one of these is typed.
    bounds: &'static [(&'static [&'static str], &'static str)],
    kind: CommandKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CommandKind {
    /// A load, whose result is JSON.
    Load,
    /// Another command, which says by its code that it worked.
    Other,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The command of a section.
fn command(section: &str, flags: &[String], stage: &Stage) -> Base {
    let Stage { sink, canister, resources, cluster, cache, store, .. } = stage;
    let has = |start: &str| flags.iter().any(|flag| flag.starts_with(start));
    let load = |text: String, bounds| Base { words: words(&text), bounds, kind: CommandKind::Load };
    match section {
        "h2loadrunner" => {
            let server = if has("--crud") { resources } else { sink };
            load(format!("run http://{server}/a-ID -o json"), &[(&["-n", "-D"], "-n 20"), (&["-c"], "-c 2")])
        }
        "Lithair's generator and its bench script" => {
            let mode = if has("--mode") || has("--preset") { "" } else { "--mode random" };
            let leader = format!("--leader http://{cluster}");
            let leader = if has("--leader") { "" } else { &leader };
            load(
                format!("crud {leader} {mode} -o json"),
                &[
                    (&["--total"], "--total 20"),
                    (&["--concurrency", "--preset"], "--concurrency 2"),
                    (&["--preseed"], "--preseed 20"),
                ],
            )
        }
        "Carbon's load test" => {
            let server = format!("--server {cache}");
            let server = if has("--server") { "" } else { &server };
            load(format!("cache {server} -o json"), &[(&["-n"], "-n 20"), (&["-c"], "-c 2")])
        }
        "Arc's scripts" => {
            let kind = if has("--services") || has("--num-services") { "logs" } else { "metrics" };
            let url = format!("--url http://{store}");
            let url = if has("--url") { "" } else { &url };
            load(
                format!("ingest {kind} {url} -o json"),
                &[
                    (&["--duration"], "-n 4"),
                    (&["--workers"], "--workers 2"),
                    (&["--batch-size"], "--batch-size 20"),
                    (&["--token"], "--token x"),
                ],
            )
        }
        "The Internet Computer's workload generator and load sink" => load(
            format!("canister http://{canister} -o json"),
            &[(&["-n"], "--iterations 20"), (&["-c"], "-c 2")],
        ),
        other => panic!("no command is known for the section `{other}`"),
    }
}

/// The command that a row names instead (*of `plimsoll cluster run`*).
fn other_command(row: &str, stage: &Stage) -> Option<Base> {
    let has = |name: &str| row.contains(&format!("`plimsoll {name}"));
    let other = |text: &str| Base { words: words(text), bounds: &[], kind: CommandKind::Other };
    match row {
        // Not run: a suite starts a cluster of a program that is not here for each of its runs.
        _ if has("cluster run`") => {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
            Some(other(&format!("cluster check {}/examples/cluster/lithair-node.yaml", root.display())))
        }
        _ if has("ingest demo`") => {
            Some(other(&format!("ingest demo --token x --url http://{}", stage.store)))
        }
        _ if has("sink ") => Some(other("sink --listen 127.0.0.1:0 --duration 100ms")),
        _ => None,
    }
}

/// A value for a flag that takes one.
fn value(flag: &str, section: &str, stage: &Stage) -> Option<String> {
    let url = |address: &str| Some(format!("http://{address}"));
    let plain = match flag {
        "--leader" | "--read-targets" => return url(&stage.cluster),
        "--server" => return Some(stage.cache.clone()),
        "--url" => return url(&stage.store),
        "--principal-id" => return Some(stage.principal.clone()),
        "-m" if section.contains("Internet Computer") => "Update",
        "-t" | "-c" | "-n" | "-m" | "--concurrency" | "--workers" | "--threads" | "--pregenerate"
        | "--hosts" | "--services" | "--num-services" | "--databases" => "2",
        "-r" => "200",
        "-D" | "--duration" => "1",
        "--warmup" => "100ms",
        "--timeout-s"
        | "--connection-lifetime"
        | "--connection-inactivity"
        | "--connect-timeout"
        | "--query-timeout-secs"
        | "--ingress-timeout-secs" => "3",
        "-H" => "a:b",
        "--header-table-size" | "--encoder-header-table-size" => "4096",
        "--rps" | "--rate" => "1000",
        "--total" => "40",
        "--keys" => "100",
        "--bulk-size" | "--batch-size" | "--preseed" => "10",
        "--stream-timeout-interval-ms" => "2000",
        "--crud-create-method" => "POST",
        "--crud-update-method" => "PATCH",
        "--crud-delete-method" => "DELETE",
        "--crud-create-data-file" | "--crud-update-data-file" => "body.json",
        "--rate-file" => "rate.txt",
        "--crud-request-variable-name" => "-ID",
        "--crud-request-variable-value-start" => "1",
        "--crud-request-variable-value-end" => "100",
        "--crud-resource-header" => "location",
        "--max-frame-size" => "16384",
        "--window-bits" | "--connection-window-bits" => "20",
        "--connection-rate" => "500",
        "--alpn" => "h2",
        "--log" | "--failed" => "out",
        "--mode" => "bulk",
        "--create-pct" | "--read-pct" | "--update-pct" | "--delete-pct" => "120",
        "--profile" => "balanced",
        "--suite" => "bulk_vs_single",
        "--cache" | "--database" | "--token" => "x",
        "--watch-process" => "plimsoll",
        "--key" => "zipf",
        "--mix" => "put+get",
        "--campaign-time" => "1730246400000",
        "--canister-id" => "aaaaa-aa",
        "--call-method" => "read",
        "--script" => "x.lua",
        "--read-path" => "status",
        "--payload" => "00ff",
        "--payload-size" => "10",
        "--pem-file" => "key.pem",
        "--unix-socket" => SOCKET,
        "--host" => "ic0.app",
        "--chart-size" => "small",
        "-p" | "--pport" | "--prometheus" => "0",
        _ => return None,
    };
    Some(plain.to_owned())
}

/// The spans of code in a cell.
fn spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

struct Row<'t> {
    section: &'t str,
    there: &'t str,
    here: &'t str,
    stage: &'t Stage,
}

impl Row<'_> {
    /// A flag with its value: that of the table, or one that fits in the section.
    fn typed(&self, span: &str) -> Vec<String> {
        let words = words(span);
        match (words.as_slice(), value(span, self.section, self.stage)) {
            // Values may begin with a dash.
            ([flag], Some(value)) if flag.starts_with("--") => vec![format!("{flag}={value}")],
            ([flag], Some(value)) => vec![flag.clone(), value],
            _ => words,
        }
    }

    /// Types flags, and returns what is wrong with what came of it.
    fn run(&self, flags: &[String]) -> Option<String> {
        let other = other_command(self.here, self.stage);
        let Base { words: mut args, bounds, kind } =
            other.unwrap_or_else(|| command(self.section, flags, self.stage));
        let is_typed = |name: &&str| {
            let mut starts = flags.iter().map(|flag| flag.split('=').next().unwrap_or_default());
            starts.any(|flag| flag == *name)
        };
        for (instead, bound) in bounds {
            if !instead.iter().any(is_typed) {
                args.extend(words(bound));
            }
        }
        args.extend_from_slice(flags);
        let output = self.stage.type_in(&args);
        let (code, said) = (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned());
        if kind == CommandKind::Other {
            return (code != Some(0)).then(|| format!("{args:?}: {code:?} {said}"));
        }
        // Thresholds are about a server at its best.
        if !verdict::ran(code) && code != Some(99) {
            return Some(format!("{args:?}: {code:?} {said}"));
        }
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let accounting = &result["accounting"];
        let is_good = accounting["ok"].as_u64().is_some_and(|ok| ok > 0) && accounting["failed"] == 0;
        (!is_good).then(|| format!("{args:?}: {accounting} {} {said}", result["error_examples"]))
    }

    /// Flags that the row asks for beside this one.
    fn context(&self, flag: &str) -> Vec<String> {
        let beside = self.here.strip_prefix("same, with ").unwrap_or_default();
        let beside = beside.split(':').next().unwrap_or_default();
        let others = spans(beside).into_iter().filter(|span| *span != flag);
        others.flat_map(|span| self.typed(span)).collect()
    }

    /// Types every flag, and returns the deviations from the row.
    fn wrong(&self) -> Vec<String> {
        let Self { section, there, here, .. } = self;
        let is_name = |span: &&str| span.starts_with('-') && !span.contains('*');
        let own = spans(there).into_iter().filter(is_name);
        let own = own.filter_map(|flag| match here {
            here if here.starts_with("different") => None,
            here if here.contains("hint") => self.hinted(flag),
            here if here.starts_with("same") => self.same(flag),
            here => Some(format!("{flag} is neither the same, nor hinted, nor different: {here}")),
        });
        // The other names in the cell are flags, too, and flags of commands.
        let is_elsewhere = here.contains("`plimsoll find`") || here.starts_with("same");
        let others = spans(here).into_iter().filter(|_| !is_elsewhere);
        let others = others.filter_map(|span| span.find("--").map(|at| &span[at..]));
        let others = others.filter_map(|flag| self.known(flag));
        own.chain(others).map(|wrong| format!("{section}: {wrong}")).collect()
    }

    /// A flag that is accepted as it is.
    fn same(&self, flag: &str) -> Option<String> {
        let flags: Vec<String> = self.context(flag).into_iter().chain(self.typed(flag)).collect();
        self.run(&flags)
    }

    /// A flag that is refused, with a hint that has one of the names of the table.
    fn hinted(&self, flag: &str) -> Option<String> {
        let typed = words(flag);
        let mut args = command(self.section, &typed, self.stage).words;
        args.extend(typed);
        let output = self.stage.type_in(&args);
        let said = String::from_utf8_lossy(&output.stderr);
        let hint = said.split_once("hint: ").map_or("", |(_, hint)| hint);
        let names = spans(self.here);
        let helps = names.is_empty() || names.iter().any(|name| hint.contains(name));
        let is_hint = !hint.is_empty() && !hint.contains("`-h` lists the flags");
        let right = output.status.code() == Some(2) && is_hint && helps;
        (!right).then(|| format!("{args:?}, and one of {names:?}: {said}"))
    }

    /// A flag that the table names; it may need another one beside it.
    fn known(&self, flag: &str) -> Option<String> {
        let flags = match flag {
            // A file that is none would be found out.
            "--h2loadrunner" => return None,
            // Another command than that of the section, which takes seconds; and one without a result.
            "--canister" | "--print-plan" => return None,
            "--set concurrency=…" => words("--set concurrency=1,2"),
            "--databases N" => words("--databases 2"),
            "--pregenerate 500" => words("--pregenerate 2"),
            "--body @file" => words("--body @body.json"),
            flag => self.typed(flag),
        };
        let wrong = self.run(&flags)?;
        if !wrong.contains("has no effect") {
            return Some(wrong);
        }
        // Windows and frames are of HTTP/2; what has no effect then, either, is known at least.
        let flags: Vec<String> = flags.into_iter().chain(words("--http2")).collect();
        let is_known = |wrong: &str| wrong.contains("has no effect") || wrong.contains("exclude each other");
        self.run(&flags).filter(|wrong| !is_known(wrong))
    }
}

#[test]
fn every_flag_of_the_guide_does_what_the_guide_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides/from-five-generators.md");
    let guide = std::fs::read_to_string(file).expect("the guide");
    let _turn = machine::load();
    let servers = Servers::start();
    let (mut section, mut rows) = ("", Vec::new());
    for line in guide.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title;
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if !line.starts_with("| ") || cells[0].starts_with("there") {
            continue;
        }
        let [there, here] = cells[..] else { panic!("{line}") };
        rows.push(Row { section, there, here, stage: &servers.stage });
    }
    let flags = rows.iter().flat_map(|row| spans(row.there)).filter(|span| span.starts_with('-')).count();
    assert!(rows.len() > 60 && flags > 90, "{} rows with {flags} flags: is it the guide?", rows.len());
    let (next, wrong, cache) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The loads of a cache write the same keys, and check what they read.
                    let alone = row.section.contains("Carbon").then(|| cache.lock().expect("no row panics"));
                    let found = row.wrong();
                    drop(alone);
                    wrong.lock().expect("no row panics").extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no row panics");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The command line that h2loadrunner's own page begins with. Not run: it asks for 10,000 requests per second
/// of a hundred connections.
#[test]
fn the_command_line_of_h2loadrunners_page_is_accepted() {
    let line = "check http://127.0.0.1:8080/a-ID --http2 -t 5 -c 100 -D 10 -m 512 --rps=100 \
                --crud-update-method=PATCH --crud-delete-method=DELETE --crud-create-method=POST \
                --crud-request-variable-name=-ID --crud-request-variable-value-start=1 \
                --crud-request-variable-value-end=1000000000 --crud-resource-header=location \
                --stream-timeout-interval-ms=2000 --crud-create-data-file=README.md \
                --crud-update-data-file=README.md";
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(line.split_whitespace())
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
