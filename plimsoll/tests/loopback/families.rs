//! Names with addresses of IPv4 and of IPv6, of which a server has one: as `localhost` in any usual hosts
//! file.

use serde_json::{Value, json};

use crate::loopback::backends::on_each;
use crate::loopback::process::{Finished, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, count};

/// A run against a server on 127.0.0.1 whose name has these addresses. Returns its port, too.
fn against(addresses: &str, flags: &str) -> (String, Finished) {
    let sink = Sink::start("");
    let port = sink.endpoint.rsplit(':').next().expect("a port").to_owned();
    let resolve = format!("--resolve localhost:{port}:{addresses}");
    (port.clone(), run(&format!("http://localhost:{port}/ {resolve} -o json {flags}")))
}

fn all_is_well(result: &Value) {
    assert_balance(result);
    assert_eq!((account(result, "ok"), account(result, "failed")), (200, 0), "{}", result["errors"]);
}

fn has_finding(found: &Value, code: &str) -> bool {
    found.as_array().is_some_and(|all| all.iter().any(|one| one["code"] == code))
}

/// Symptom: half of the requests failed, or the run was refused, by the order of the addresses.
#[test]
fn the_dead_family_is_passed_over_and_told() {
    for load in ["-c 8", "-c 8 --disable-keepalive", "--rate 400"] {
        on_each(|backend| {
            let flags = format!("-n 200 {load} --backend {backend}");
            let (port, finished) = against("::1,127.0.0.1", &flags);
            let said = format!("note: no connection to [::1]:{port} (");
            assert!(finished.stderr.contains(&said), "{}", finished.stderr);
            let result = finished.result();
            all_is_well(&result);
            let passed_over = result["run"]["preflight"]["passed_over"][0].as_str().unwrap_or_default();
            assert!(passed_over.starts_with(&format!("[::1]:{port} (")), "{passed_over}");
            assert!(has_finding(&result["notes"], "address_family"), "{}", result["notes"]);
            let target = &result["run"]["targets"][0];
            assert_eq!(target["addresses"], json!([format!("127.0.0.1:{port}")]));
            assert_eq!(target["unused_addresses"], json!([format!("[::1]:{port}")]));
            assert_eq!(count(&result, "/connections/family_switches"), 0);

            let (_, finished) = against("127.0.0.1,::1", &flags);
            assert!(!finished.stderr.contains("no connection"), "{}", finished.stderr);
            let result = finished.result();
            all_is_well(&result);
            assert!(!has_finding(&result["notes"], "address_family"), "{}", result["notes"]);
        });
    }
}

#[test]
fn without_a_first_contact_the_load_finds_the_family() {
    on_each(|backend| {
        let flags = format!("-n 200 -c 8 --disable-keepalive --no-preflight --backend {backend}");
        let (port, finished) = against("::1,127.0.0.1", &flags);
        let result = finished.result();
        all_is_well(&result);
        assert_eq!(count(&result, "/connections/family_switches"), 1, "{}", result["connections"]);
        assert!(has_finding(&result["verdict"]["warnings"], "address_family"), "{}", result["verdict"]);
        let addresses = json!([format!("[::1]:{port}"), format!("127.0.0.1:{port}")]);
        assert_eq!(result["run"]["targets"][0]["addresses"], addresses);
    });
}
