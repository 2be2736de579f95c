//! HTTP/2 with other people: their servers under our load, our sink under theirs, and peers that break the
//! protocol.

mod breaches;
mod clients;
mod conformance;
mod endings;
mod h2o;
mod hyper;
mod nghttpd;
mod nginx;
mod scripted;

use std::process::Command;

use plimsoll_testkit::skip;
use serde_json::{Value, json};

use crate::loopback::foreign::{Certificate, balanced, free_address};
use crate::loopback::process::{Finished, Folder, Process};
use plimsoll_testkit::sink_log::{account, count};

/// A run whose accounts balance and that got all its responses over HTTP/2.
fn http2(args: &str) -> Value {
    let result = balanced(&format!("{args} --http2"));
    assert_spoke(&result, "h2");
    result
}

/// Asserts that every response came by this protocol.
fn assert_spoke(result: &Value, protocol: &str) {
    let statuses = result["statuses"].as_object().expect("an object");
    let responses: u64 = statuses.values().filter_map(Value::as_u64).sum();
    assert!(responses > 0, "{}", result["errors"]);
    let by_protocol = &result["protocols"];
    assert_eq!(by_protocol, &json!({ protocol: responses }), "{statuses:?}");
    assert_eq!(result["run"]["targets"][0]["protocol"], protocol);
}

/// Asserts that every request of a run was answered well, on this number of connections that were all opened
/// once, and that the peer kept the protocol.
fn assert_all_ok(result: &Value, requests: u64, connections: u64) {
    assert_eq!(account(result, "ok"), requests, "{} {}", result["accounting"], result["errors"]);
    assert_eq!(account(result, "started"), requests, "{}", result["accounting"]);
    assert_eq!(count(result, "/connections/opened"), connections, "{}", result["connections"]);
    assert_eq!(count(result, "/http2/connections"), connections, "{}", result["http2"]);
    for frames in ["resets", "go_aways", "violations"] {
        assert_eq!(result["http2"][frames], json!({}), "{}", result["http2"]);
    }
}

/// A server of other people.
struct Server {
    process: Process,
    folder: Folder,
    /// An address without TLS, and one with it.
    plain: String,
    tls: String,
    certificate: Certificate,
}

impl Server {
    /// Starts a program that is `ready` once it has said so; `None`, and a word on stderr, if it is not
    /// installed. `prepare` makes its arguments from the values of the other fields.
    fn start(
        program: &str,
        prepare: impl Fn(&Folder, &str, &str, &Certificate) -> Vec<String>,
        ready: impl Fn(&mut Process) -> Option<String>,
    ) -> Option<Self> {
        // Between finding a port and listening on it another process may take it: then the server ends, and
        // the next attempt finds another.
        for _ in 0..5 {
            let folder = Folder::new();
            let certificate = Certificate::new(&folder);
            let (plain, tls) = (free_address(), free_address());
            let arguments = prepare(&folder, &plain, &tls, &certificate);
            let Some(mut process) = Process::try_start(Command::new(program).args(arguments)) else {
                skip::without_program(program);
                return None;
            };
            if ready(&mut process).is_some() {
                return Some(Self { process, folder, plain, tls, certificate });
            }
        }
        panic!("{program} does not start");
    }

    /// Ends it, and returns its output and the content of its file `log`.
    fn stop(self, log: &str) -> (Finished, String) {
        self.process.signal("TERM");
        let finished = self.process.finish();
        let log = std::fs::read_to_string(self.folder.path().join(log)).unwrap_or_default();
        (finished, log)
    }
}
