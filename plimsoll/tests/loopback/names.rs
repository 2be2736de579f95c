//! A name that leads to another server while a run goes on, or between two runs, as one of the hosts file
//! does.

use std::process::Command;

use plimsoll_testkit::{machine, skip};
use serde_json::json;

use crate::loopback::backends::on_each;
use crate::loopback::process::{Folder, Process};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance};

const PROGRAM: &str = env!("CARGO_BIN_EXE_plimsoll");

/// A command that sees this file as its hosts file.
fn with_hosts(hosts: &str, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    command.args(["--mount", "--", "sh", "-c", script, hosts]).args(words);
    command
}

/// Returns `true` if commands can have a hosts file of their own here; else the test is skipped.
fn can_have_hosts() -> bool {
    let folder = Folder::new();
    let any = folder.write("hosts", "");
    let can = with_hosts(&any, &["true"]).status().is_ok_and(|status| status.success());
    if !can {
        skip::on_this_machine("mount namespaces cannot be made here (not root, or no unshare)");
    }
    can
}

#[test]
fn a_name_that_leads_elsewhere_takes_new_connections_with_it() {
    if !can_have_hosts() {
        return;
    }
    on_each(|backend| {
        let folder = Folder::new();
        let hosts = folder.write("hosts", "127.0.0.1 moving.test\n");
        let mut first = Sink::telling("");
        let port = first.endpoint.rsplit(':').next().expect("a port").to_owned();
        let mut second = Sink::telling_at(&format!("127.0.0.2:{port}"), "");
        let url = format!("http://moving.test:{port}/");
        let load = format!(
            "run {url} --rate 2000 --disable-keepalive -d 60s --resolve-every 100ms -o json --backend {backend}"
        );
        let words: Vec<&str> = [PROGRAM].into_iter().chain(load.split_whitespace()).collect();
        let run = Process::try_start(&mut with_hosts(&hosts, &words)).expect("it was there just now");
        first.wait_for_requests(10);
        // The name is not known for half a second of the load, more than the log holds back: its
        // addresses stay.
        std::fs::write(&hosts, "127.0.0.1 other.test\n").expect("the folder can be written");
        first.wait_for_requests(3_000);
        std::fs::write(&hosts, "127.0.0.2 moving.test\n").expect("the folder can be written");
        second.wait_for_requests(10);
        run.signal("INT");
        let finished = run.finish();
        let result = finished.result();
        assert_balance(&result);
        assert_eq!(account(&result, "failed"), 0, "{}", result["errors"]);
        let changes = result["connections"]["address_changes"].as_array().expect("there are some");
        let (errors, moves): (Vec<_>, Vec<_>) =
            changes.iter().partition(|change| change["error"].is_string());
        assert_eq!(errors.len(), 1, "told once: {changes:?}");
        assert!(errors[0]["error"].as_str().is_some_and(|error| error.contains("moving.test")));
        assert_eq!(moves.len(), 1, "{changes:?}");
        assert_eq!(moves[0]["target"], format!("moving.test:{port}"));
        assert_eq!(moves[0]["added"], json!([format!("127.0.0.2:{port}")]));
        assert_eq!(moves[0]["removed"], json!([format!("127.0.0.1:{port}")]));
        let both = json!([format!("127.0.0.1:{port}"), format!("127.0.0.2:{port}")]);
        assert_eq!(result["run"]["targets"][0]["addresses"], both);
    });
}

/// The capacity of a server that has moved was measured at the old one: all trials had the addresses of the
/// first.
#[test]
fn each_trial_goes_where_the_name_leads_then() {
    if !can_have_hosts() {
        return;
    }
    let _turn = machine::load();
    // The log is written in blocks, of which each run fills one at least.
    for (again, command, flags) in [
        (true, "find", "--slo p99<10s --from 2000 --to 4000"),
        (true, "run", "--rate 2000 --repeat 2"),
        (false, "run", "--rate 2000 --repeat 2 --resolve-every never"),
    ] {
        let folder = Folder::new();
        let hosts = folder.write("hosts", "127.0.0.1 moving.test\n");
        let mut first = Sink::telling("");
        let port = first.endpoint.rsplit(':').next().expect("a port").to_owned();
        let mut second = Sink::telling_at(&format!("127.0.0.2:{port}"), "");
        let load = format!("{command} http://moving.test:{port}/ -d 1s {flags}");
        let words: Vec<&str> = [PROGRAM].into_iter().chain(load.split_whitespace()).collect();
        let run = Process::try_start(&mut with_hosts(&hosts, &words)).expect("it was there just now");
        first.wait_for_requests(10);
        std::fs::write(&hosts, "127.0.0.2 moving.test\n").expect("the folder can be written");
        if command == "find" {
            // The rest of the search takes its time.
            second.wait_for_requests(10);
            run.signal("INT");
        }
        let finished = run.finish();
        let told = finished.stderr.contains("leads to other addresses");
        assert_eq!(told, again, "{load}: {}", finished.stderr);
        assert_eq!(second.stop().requests > 0, again, "{load}");
    }
}
