//! `plimsoll calibrate --canister`: the experiment that the load sink was made for, as a command. The same
//! server is asked with plain requests and with calls of a canister, in turn, and the cost of a call is split
//! into encoding and hashing, signature, and HTTP.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use plimsoll_core::{Nanos, figure};
use plimsoll_document::{
    Document, Field, Files, Flags, KeyLogFile, MadeDocument, Problem, RequestStep, ScenarioSpec, Settings,
    TargetSpec,
};
use plimsoll_driver::Endpoint;
use plimsoll_ic::{Call, Identity, Kind, Principal};
use plimsoll_metrics::RunRecord;
use plimsoll_plan::{BackendChoice, Command, Disk, Plan, PlanPatch, PlanSource};
use plimsoll_system::clock;
use plimsoll_targets::sink::service::Canister;
use plimsoll_targets::{Service, SinkOptions};
use plimsoll_workloads::canister::{Api, Argument, CanisterLoad};
use serde_json::{Value, json};

use crate::base::failure::Failure;
use crate::base::plan_parts::plan_parts;
use crate::base::{environment, messages};
use crate::experiment::campaign::Campaign;
use crate::experiment::full_speed::{CONNECTIONS, WARMUP, interrupted};
use crate::session::backend::{self, backend_name};
use crate::session::built_in_sink;

/// Keys without an owner: their signatures are never verified.
const ED25519: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIPX8G5jnHt5tW0cMqAbaqDg8k37K3d/eROQz7YbXMeL6
-----END PRIVATE KEY-----
";
const SECP256K1: &str = "-----BEGIN EC PRIVATE KEY-----
MHQCAQEEIFr3sQdmkbfSdCCmaHlv1jFf6/R9bkcLHX2zE82J549IoAcGBSuBBAAK
oUQDQgAEF5At4daGm1AphK1QjkonFIrFx6aVWDfJ0fX6+b76njVscEDKCao11ZaT
4ECgpmN0y/kjTVjYIB3UfRVo16OPOg==
-----END EC PRIVATE KEY-----
";
/// For how long each part of a call is measured alone.
const PART: Nanos = Nanos::from_millis(200);
/// Calls between two checks of the clock.
const CALLS: u64 = 200;
/// Name of the plan in messages.
const PLAN: &str = "the plan of `plimsoll calibrate`";
/// File name of the key.
const KEY: &str = "key.pem";

/// Kind of request, and its signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    /// Plain requests with a body as long as a signed query.
    Plain,
    /// Unsigned queries.
    Anonymous,
    Ed25519,
    Secp256k1,
    /// Updates, each answered with a certificate.
    Updates,
}

impl Asking {
    const ALL: [Self; 5] = [Self::Plain, Self::Anonymous, Self::Ed25519, Self::Secp256k1, Self::Updates];

    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain POST",
            Self::Anonymous => "query, anonymous",
            Self::Ed25519 => "query, Ed25519",
            Self::Secp256k1 => "query, secp256k1",
            Self::Updates => "update, Ed25519",
        }
    }

    const fn pem(self) -> Option<&'static str> {
        match self {
            Self::Plain | Self::Anonymous => None,
            Self::Ed25519 | Self::Updates => Some(ED25519),
            Self::Secp256k1 => Some(SECP256K1),
        }
    }

    fn identity(self) -> Result<Identity, Failure> {
        let Some(pem) = self.pem() else { return Ok(Identity::anonymous()) };
        Identity::from_pem(pem).map_err(|bad| Failure::environment(Problem::new(bad.problem)))
    }

    fn document(self, url: &str) -> Document {
        if self == Self::Plain {
            let length = envelope(&Identity::from_pem(ED25519).unwrap_or(Identity::anonymous()), 0).len();
            let mut request = RequestStep::new("POST", Field::text("/"));
            request.body.body = Field::text("x".repeat(length));
            let mut document = Document::default();
            document.targets.push("sink", TargetSpec::new(Field::text(url)));
            document.scenarios.push(Field::new(ScenarioSpec::new(self.name(), [request.into()])));
            return document;
        }
        let load = CanisterLoad {
            urls: vec![url.to_owned()],
            api: Api::V4,
            canister: Principal::management().to_string(),
            updates: self == Self::Updates,
            method: if self == Self::Updates { "write" } else { "read" }.to_owned(),
            argument: Argument::Hex(String::new()),
            nonce: None,
            nonce_text: None,
            pem_file: self.pem().map(|_| KEY.to_owned()),
            expiry: None,
            signers: 1,
            duration: None,
            query_timeout: "10s".to_owned(),
            ingress_timeout: "10s".to_owned(),
            poll_every: "1ms".to_owned(),
            host: None,
        };
        load.document().map(|made| made.document).unwrap_or_default()
    }

    fn plan(self, url: &str, backend: BackendChoice) -> Result<Plan, Failure> {
        let mut document = self.document(url);
        let mut run = Settings::default();
        run.connections = Field::text(CONNECTIONS.to_string());
        run.no_preflight = Field::new(true);
        run.backend = Field::text(backend_name(backend));
        document.run = Field::new(run);
        let files = KeyFile { key: self.pem().unwrap_or_default() };
        let default_seed = environment::surroundings().seed;
        let flags =
            PlanPatch { default_seed, parts: plan_parts(), is_plan_of_flags: true, ..PlanPatch::default() };
        let made = MadeDocument { name: PLAN.to_owned(), document, flags: Flags::new(&[]) };
        let plan = PlanSource::from(made);
        let command = Command { plan: Some(plan), environment: Vec::new(), flags };
        Ok(command.resolve(&files)?.plan)
    }
}

/// The file system, and in it the key of the plan.
struct KeyFile {
    key: &'static str,
}

impl Files for KeyFile {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some(KEY) => Ok(self.key.as_bytes().to_vec()),
            _ => Disk.read(path),
        }
    }

    fn key_log(&self, path: &Path) -> io::Result<KeyLogFile> {
        Disk.key_log(path)
    }
}

/// The envelope of a query.
fn envelope(identity: &Identity, number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write(identity, number, &mut out);
    out
}

fn write(identity: &Identity, number: u64, out: &mut Vec<u8>) {
    let (kind, canister, nonce) = (Kind::Query, Principal::management(), Some(&[7_u8; 16][..]));
    let call =
        Call { kind, canister, method: "read", arg: &[], nonce, ingress_expiry_ns: clock::unix().0 ^ number };
    out.clear();
    call.write_envelope(identity, out);
}

/// CPU time of the thread for one envelope, in microseconds.
fn cost(identity: &Identity) -> f64 {
    let (mut out, mut made) = (Vec::new(), 0_u64);
    let start = clock::monotonic();
    let begun = plimsoll_system::usage::thread_cpu();
    while clock::monotonic().since(start) < PART {
        for _ in 0..CALLS {
            write(identity, made, &mut out);
            made += 1;
        }
    }
    let used = plimsoll_system::usage::thread_cpu();
    let busy = (used.user - begun.user) + (used.system - begun.system);
    busy.as_secs_f64() * 1e6 / made as f64
}

/// Measurements of one kind of request.
struct Row {
    asking: Asking,
    per_s: f64,
    /// CPU time of the thread that sends, per call.
    cpu_us: f64,
    /// Encoding and hashing of one message, and its signature: made by another thread, before it is due.
    encoding_us: f64,
    signature_us: f64,
    /// Share of messages that had to be made when they were due.
    late: f64,
}

/// Measures all kinds.
pub(crate) fn report(backend: BackendChoice, length: Nanos, quiet: bool) -> Result<(String, Value), Failure> {
    let of_sink = backend::chosen(backend)?;
    let encoding_us = cost(&Identity::anonymous());
    let mut rows = Vec::new();
    for asking in Asking::ALL {
        let sink = built_in_sink::start(sink(asking), of_sink)?;
        let plan = asking.plan(&format!("http://{}", sink.endpoint()), backend);
        let record = plan.and_then(|plan| full_speed(plan, length, quiet));
        sink.stop();
        let row = row(asking, &record?, encoding_us)?;
        messages::say(quiet)(&format!("{:>12}  {}", figure::per_second(row.per_s), asking.name()));
        rows.push(row);
    }
    Ok((text(&rows), json!(rows.iter().map(Row::json).collect::<Vec<_>>())))
}

/// The server that is asked: for all but updates the plain sink.
fn sink(asking: Asking) -> SinkOptions {
    let mut options = SinkOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()));
    if asking == Asking::Updates {
        options.service = Service::Canister(Canister::default());
    }
    options
}

fn full_speed(plan: Plan, length: Nanos, quiet: bool) -> Result<RunRecord, Failure> {
    let mut plan = plan.at_full_speed(WARMUP, length);
    let campaign = Campaign::begin(&mut plan, quiet, 0)?;
    let record = campaign.run(&plan, &mut |_| true)?;
    interrupted(&campaign)?;
    Ok(record)
}

fn row(asking: Asking, record: &RunRecord, encoding_us: f64) -> Result<Row, Failure> {
    let calls = record.iterations.completed;
    if calls == 0 || record.accounting.failed > 0 {
        let why = record.error_examples.values().next().map_or("nothing was answered", String::as_str);
        let problem =
            Problem::new(format!("{}: {} requests failed: {why}", asking.name(), record.accounting.failed));
        return Err(Failure::environment(problem.with_hint("`plimsoll demo` may show the cause")));
    }
    let busy: f64 =
        record.workers.iter().map(|worker| (worker.cpu_user + worker.cpu_system).as_secs_f64()).sum();
    let [taken, late] = [
        |worker: &plimsoll_metrics::WorkerRecord| worker.bodies,
        |worker: &plimsoll_metrics::WorkerRecord| worker.bodies_late,
    ]
    .map(|of| record.workers.iter().map(of).sum::<u64>() as f64);
    let signature_us = match asking.pem() {
        Some(_) => (cost(&asking.identity()?) - encoding_us).max(0.0),
        None => 0.0,
    };
    Ok(Row {
        asking,
        per_s: calls as f64 / record.duration.as_secs_f64(),
        cpu_us: busy * 1e6 / calls as f64,
        encoding_us: if asking == Asking::Plain { 0.0 } else { encoding_us },
        signature_us,
        late: if taken > 0.0 { late / taken } else { 0.0 },
    })
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "asking": self.asking.name(),
            "calls_per_s": self.per_s,
            "sending_cpu_us": self.cpu_us,
            "encoding_us": self.encoding_us,
            "signature_us": self.signature_us,
            "made_late": self.late,
        })
    }
}

fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<18}{:>12}{:>14}{:>12}{:>12}{:>12}\n",
        "one worker", "per second", "sending, µs", "CBOR, µs", "signing, µs", "made late"
    );
    for Row { asking, per_s, cpu_us, encoding_us, signature_us, late } in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<18}{per_s:>12.0}{cpu_us:>14.2}{encoding_us:>12.2}{signature_us:>12.2}{:>12}",
            asking.name(),
            figure::share(*late),
        );
    }
    text.push_str(
        "\nSending is the CPU time of the thread that sends and receives, with HTTP and the system; CBOR\n\
         and hashing, and the signature, are of a thread that makes messages before they are due. A\n\
         message that is made late is made by the thread that sends, whose time it then takes: more of\n\
         them than 1 % and signing is the limit (--signers).\n",
    );
    text
}
