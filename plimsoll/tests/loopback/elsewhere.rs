//! Servers that a plan does not name: its requests go to a second sink, as named by a variable or a script.

use serde_json::Value;

use crate::loopback::foreign::Certificate;
use crate::loopback::process::{Folder, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, delivered};

/// The steps: one to the target, and two to the other server, of which the second has the URL of the first.
fn plan(folder: &Folder, target: &str, base: &str, step: &str) -> String {
    let text = format!(
        "targets: {{api: {target}}}\nscenarios:\n- variables: {{base: '{base}'}}\n  steps:\n  - get: /first\n  {step}\n"
    );
    folder.write("plan.yaml", text)
}

const BY_VARIABLE: &str = "- get: ${base}/second\n  - same_url: true";
const BY_SCRIPT: &str = "- get: /third\n    script: |\n      function make_request(_, _, headers, body)\n        headers[':path'] = 'BASE/third'\n        return headers, body\n      end";

fn carry_out(plan: &str, flags: &str) -> Value {
    let result = run(&format!("run {plan} {flags} --no-preflight -o json")).result();
    assert_balance(&result);
    result
}

fn targets(result: &Value) -> Vec<(&str, &str)> {
    let text =
        |target: &Value, key: &str| target[key].as_str().map(str::to_owned).expect("a text").leak() as &str;
    let targets = result["run"]["targets"].as_array().expect("a list");
    targets.iter().map(|target| (text(target, "authority"), text(target, "protocol"))).collect()
}

/// `localhost` has to be resolved, by the thread that does that, while requests wait.
#[test]
fn a_name_that_comes_up_is_resolved_and_gets_connections_of_its_own() {
    for (flags, protocol) in [("-c 3 -n 90", "http/1.1"), ("-c 2 -n 90 --http2 -m 4", "h2")] {
        for (steps, requests) in [(BY_VARIABLE, [90, 180]), (BY_SCRIPT, [90, 90])] {
            let (first, second, folder) = (Sink::start(""), Sink::start(""), Folder::new());
            let port = second.endpoint.rsplit(':').next().expect("a port").to_owned();
            let authority = format!("localhost:{port}");
            let base = format!("http://{authority}");
            let plan = plan(&folder, &first.url(), &base, &steps.replace("BASE", &base));
            let result = carry_out(&plan, &format!("{flags} -4"));
            assert_eq!(account(&result, "ok"), requests.iter().sum::<u64>(), "{}", result["error_examples"]);
            let own = first.endpoint.clone();
            assert_eq!(targets(&result), [(&*own, protocol), (&*authority, protocol)]);
            let (first, second) = (first.stop(), second.stop());
            assert_eq!([first.requests, second.requests], requests);
            assert_eq!(first.requests + second.requests, delivered(&result));
        }
    }
}

/// The plan's own target has no TLS: the settings for it are those of the run, and the name is that of the
/// URL.
#[test]
fn a_server_that_comes_up_may_speak_tls() {
    let folder = Folder::new();
    let Certificate { certificate, key } = Certificate::new(&folder);
    for (flags, protocols) in [("--alpn h2,http/1.1", ["http/1.1", "h2"]), ("", ["http/1.1", "http/1.1"])] {
        let first = Sink::start("");
        let second = Sink::start(&format!("--tls-cert {certificate} --tls-key {key}"));
        let port = second.endpoint.rsplit(':').next().expect("a port").to_owned();
        let base = format!("https://localhost:{port}");
        let plan = plan(&folder, &first.url(), &base, BY_VARIABLE);
        let result = carry_out(&plan, &format!("-c 2 -n 20 -4 --cacert {certificate} {flags}"));
        assert_eq!(account(&result, "ok"), 60, "{}", result["error_examples"]);
        assert_eq!(targets(&result).iter().map(|target| target.1).collect::<Vec<_>>(), protocols);
        assert!(result["run"]["targets"][1]["tls_version"].is_string());
        assert_eq!([first.stop().requests, second.stop().requests], [20, 40]);
    }
}
