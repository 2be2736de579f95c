//! Other people's stores, Prometheus and InfluxDB: queries show that they have the records that they
//! acknowledged, also if they were killed meanwhile.

use std::process::Command;

use plimsoll_testkit::skip;
use serde_json::Value;

use crate::loopback::ingest_target::exchange;
use crate::loopback::process::{Finished, Folder, Process, plimsoll, run};
use plimsoll_testkit::ports::{await_free, lasting_addresses};
use plimsoll_testkit::sink_log::{assert_balance, count};

/// A store that can be killed and come back.
struct Store {
    product: Product,
    process: Process,
    folder: Folder,
    address: String,
}

#[derive(Clone, Copy)]
enum Product {
    Prometheus,
    InfluxDb,
}

/// Questions that are asked until the answer changes, at most: minutes.
const QUESTIONS: usize = 100_000;

impl Product {
    fn program(self) -> &'static str {
        match self {
            Self::Prometheus => "prometheus",
            Self::InfluxDb => "influxd",
        }
    }

    /// Returns the command of the product, with all that it keeps in the folder.
    fn command(self, folder: &Folder, address: &str) -> Command {
        let mut command = Command::new(self.program());
        match self {
            Self::Prometheus => command
                .arg(format!("--config.file={}", folder.file("prometheus.yml")))
                .arg(format!("--storage.tsdb.path={}", folder.file("data")))
                .arg(format!("--web.listen-address={address}"))
                .arg("--web.enable-remote-write-receiver"),
            Self::InfluxDb => command.args(["run", "-config", &folder.file("influxdb.conf")]),
        };
        command
    }

    fn configure(self, folder: &Folder, address: &str, more: &str) {
        match self {
            Self::Prometheus => folder.write("prometheus.yml", more),
            Self::InfluxDb => {
                let [meta, data, wal] = ["meta", "data", "wal"].map(|name| folder.file(name));
                // The address at the top is for backups, which are not made here.
                let text = format!(
                    "reporting-disabled = true\nbind-address = \"127.0.0.1:0\"\n\
                     [meta]\ndir = \"{meta}\"\n[data]\ndir = \"{data}\"\nwal-dir = \"{wal}\"\n\
                     [monitor]\nstore-enabled = false\n\
                     [http]\nbind-address = \"{address}\"\nlog-enabled = false\n{more}"
                );
                folder.write("influxdb.conf", text)
            }
        };
    }

    /// Starts it and waits until it takes requests; `None` if there is no such program.
    fn start(self, folder: &Folder, address: &str) -> Option<Process> {
        let mut process = Process::try_start(&mut self.command(folder, address))?;
        process.stderr.wait_for(match self {
            Self::Prometheus => "Server is ready to receive web requests",
            Self::InfluxDb => "Listening for signals",
        });
        Some(process)
    }
}

impl Store {
    /// `None`, and a word on stderr, if it is not installed.
    fn start(product: Product, more: &str) -> Option<Self> {
        let folder = Folder::new();
        let [address] = lasting_addresses();
        product.configure(&folder, &address, more);
        let Some(process) = product.start(&folder, &address) else {
            skip::without_program(product.program());
            return None;
        };
        let store = Self { product, process, folder, address };
        if matches!(product, Product::InfluxDb) {
            store.ask("POST", "/query", "q=CREATE DATABASE plimsoll");
        }
        Some(store)
    }

    /// Kills it, and starts it again with its data.
    fn kill_and_start_again(&mut self) {
        self.process.signal("KILL");
        self.process.wait();
        await_free(&[&self.address]);
        self.process = self.product.start(&self.folder, &self.address).expect("it was there before");
    }

    fn ask(&self, method: &str, path: &str, form: &str) -> Value {
        let form = form.replace('+', "%2B").replace(' ', "+");
        let kind = "content-type: application/x-www-form-urlencoded";
        // With HTTP/1.0 replies come in one piece.
        let request =
            format!("{method} {path} HTTP/1.0\r\n{kind}\r\ncontent-length: {}\r\n\r\n{form}", form.len());
        let (status, told) = exchange(&self.address, request.as_bytes());
        assert_eq!(status, 200, "{told}");
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"))
    }

    /// Records of a measurement that it has, of which each has the field.
    fn count(&self, measurement: &str, field: &str) -> u64 {
        let (told, pointer) = match self.product {
            Product::Prometheus => {
                let types = "cpu memory disk network_in network_out temperature power";
                let of = |name| format!("(sum(count_over_time({measurement}_{name}[100y])) or vector(0))");
                let query: Vec<String> = types.split(' ').map(of).collect();
                // Up to the year 2096.
                let form = format!("time=4000000000&query={}", query.join(" + "));
                (self.ask("POST", "/api/v1/query", &form), "/data/result/0/value/1")
            }
            Product::InfluxDb => {
                let form = format!("db=plimsoll&q=SELECT COUNT({field}) FROM {measurement}");
                (self.ask("POST", "/query", &form), "/results/0/series/0/values/0/1")
            }
        };
        match told.pointer(pointer) {
            Some(Value::String(count)) => count.parse().expect("a number"),
            Some(count) => count.as_u64().expect("a number"),
            None => {
                assert!(
                    told.pointer("/results/0").is_some_and(|result| result.get("error").is_none()),
                    "{told}"
                );
                0
            }
        }
    }

    /// Waits until it has more records than before.
    fn wait_for_more(&self, than: u64, measurement: &str, field: &str) -> u64 {
        let counts = std::iter::repeat_with(|| self.count(measurement, field));
        counts.take(QUESTIONS).find(|&count| count > than).expect("more records")
    }

    /// The words of a run that sends data to it.
    fn ingest(&self, args: &str) -> String {
        let (url, format) = match self.product {
            Product::Prometheus => ("", "remote-write"),
            Product::InfluxDb if args.contains("--time-unit ns") => {
                ("/write?db=plimsoll&precision=ns", "influx-line")
            }
            // The path names the precision, by InfluxDB 1's own name.
            Product::InfluxDb if args.contains("--time-unit us") => ("/write?db=plimsoll", "influx-line"),
            Product::InfluxDb => ("/write?db=plimsoll&precision=ms", "influx-line"),
        };
        format!("ingest {args} --url http://{}{url} --format {format} -o json --verify", self.address)
    }
}

/// Records that were acknowledged, and that were in batches that failed. The store has them by its own word.
fn records(finished: &Finished) -> (u64, u64) {
    let result = finished.result();
    assert_balance(&result);
    assert_eq!(result["reconciliation"]["consistent"], true, "{:#}", result["reconciliation"]);
    (count(&result, "/records/acknowledged"), count(&result, "/records/failed"))
}

#[test]
fn influxdb_has_what_it_acknowledged() {
    let Some(store) = Store::start(Product::InfluxDb, "") else { return };
    for (number, (args, field)) in [
        // In milliseconds as many series keep them apart, with batches on several connections.
        ("metrics --rate 20k", "value"),
        ("metrics --rate 20k --batch-size 250 --compression gzip -t 2", "value"),
        ("metrics --cardinality 1000", "value"),
        ("metrics --shape host --rate 20k", "usage_idle"),
        ("metrics --rate 20k --time-unit ns --hosts 3 --churn 50%", "value"),
        ("metrics --rate 20k --time-unit us --hosts 3", "value"),
        ("logs --time-unit ns", "message"),
        ("traces --time-unit ns --rate 20k", "span_id"),
        ("events --time-unit ns", "user_id"),
    ]
    .into_iter()
    .enumerate()
    {
        let measurement = format!("m{number}");
        let sent = run(&store.ingest(&format!("{args} -n 12 --measurement {measurement}")));
        let (acknowledged, failed) = records(&sent);
        assert_eq!((acknowledged % 3_000, failed), (0, 0), "{args}: {}", sent.stderr);
        assert_eq!(store.count(&measurement, field), acknowledged, "{args}: {}", sent.stderr);
        assert!(!sent.stderr.contains("note: "), "{args}: {}", sent.stderr);
    }
}

#[test]
fn what_a_store_will_take_for_the_same_is_said_before() {
    let Some(store) = Store::start(Product::InfluxDb, "") else { return };
    // Records that the store dropped are found to be missing afterwards, too.
    let missing = |sent: &Finished, figures: [u64; 3]| {
        assert_eq!(sent.code, Some(6), "{}", sent.stderr);
        let result: Value = serde_json::from_str(&sent.stdout).expect("a result");
        let check = &result["reconciliation"]["checks"][0];
        let found = ["acknowledged", "stored", "missing"].map(|name| count(check, &format!("/{name}")));
        assert_eq!(found, figures, "{check:#}");
    };
    let sent = run(&store.ingest("logs --rate 200k -n 20 --measurement logs"));
    let stored = store.count("logs", "message");
    assert!(stored < 20_000, "{stored}");
    missing(&sent, [20_000, stored, 20_000 - stored]);
    let note = "note: some logs may have the series and the time (in ms)";
    assert!(sent.stderr.contains(note) && sent.stderr.contains(": --time-unit ns helps"), "{}", sent.stderr);
    let sent = run(&store.ingest("metrics --rate 20k -n 6 --pregenerate 2 --measurement again"));
    assert_eq!(store.count("again", "value"), 2_000, "{}", sent.stderr);
    missing(&sent, [6_000, 2_000, 4_000]);
    assert!(sent.stderr.contains("note: batches that are sent again"), "{}", sent.stderr);
}

#[test]
fn prometheus_has_what_it_acknowledged() {
    let Some(store) = Store::start(Product::Prometheus, "") else { return };
    for (number, args) in ["--rate 20k", "", "--rate 50k --batch-size 200 --cardinality 60", "--churn 50%"]
        .into_iter()
        .enumerate()
    {
        let measurement = format!("m{number}");
        let sent = run(&store.ingest(&format!("metrics {args} -n 12 --measurement {measurement}")));
        let (acknowledged, failed) = records(&sent);
        assert_eq!((acknowledged % 2_400, failed), (0, 0), "{args}: {}", sent.stderr);
        assert_eq!(store.count(&measurement, ""), acknowledged, "{args}: {}", sent.stderr);
        assert!(!sent.stderr.contains("note: "), "{args}: {}", sent.stderr);
    }
    // Batches that were made before the run have times within the verified range, too.
    let sent = run(&store.ingest("metrics --rate 20k -n 12 --pregenerate 12 -t 1 --measurement made"));
    assert_eq!((records(&sent).0, store.count("made", "")), (12_000, 12_000), "{}", sent.stderr);
}

/// Prometheus has to be configured to take samples in any order, as the note before the run says.
#[test]
fn prometheus_with_a_window_takes_batches_on_several_connections() {
    let window = "storage: {tsdb: {out_of_order_time_window: 30m}}\n";
    let Some(store) = Store::start(Product::Prometheus, window) else { return };
    let sent = run(&store.ingest("metrics --workers 4 -t 2 -n 40 --measurement m"));
    assert_eq!(records(&sent), (40_000, 0), "{}", sent.stderr);
    assert_eq!(store.count("m", ""), 40_000, "{}", sent.stderr);
    assert!(
        sent.stderr.contains("note: batches may overtake each other on 4 connections"),
        "{}",
        sent.stderr
    );
}

/// Kills the store in the middle of a run that goes on when it is back.
fn kill_in_the_middle(product: Product, args: &str, field: &str) {
    let Some(mut store) = Store::start(product, "") else { return };
    let load = format!("metrics --rate 20k --batch-size 200 -d 60s --measurement m {args}");
    let run = Process::start(plimsoll(&store.ingest(&load)));
    let before = store.wait_for_more(0, "m", field);
    store.kill_and_start_again();
    // Writes that were acknowledged before the restart may only become visible now.
    let after = store.wait_for_more(before, "m", field);
    store.wait_for_more(after, "m", field);
    run.signal("INT");
    let sent = run.finish();
    let (acknowledged, failed) = records(&sent);
    let stored = store.count("m", field);
    assert!(failed > 0, "{}", sent.stderr);
    assert!(acknowledged > before, "{before} {acknowledged}");
    assert!(
        (acknowledged..=acknowledged + failed).contains(&stored),
        "{stored} stored, {acknowledged} acknowledged, {failed} failed: {}",
        sent.stderr
    );
}

#[test]
fn influxdb_keeps_what_it_acknowledged_before_it_was_killed() {
    kill_in_the_middle(Product::InfluxDb, "--workers 2", "value");
}

#[test]
fn prometheus_keeps_what_it_acknowledged_before_it_was_killed() {
    kill_in_the_middle(Product::Prometheus, "", "value");
}
