//! Loads on the real server.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use plimsoll_testkit::program::Process;
use plimsoll_testkit::{machine, skip};

use super::program::{ends, result};

/// A redis-server without persistence, with these flags; `None` if there is none on this machine.
fn start(flags: &[&str]) -> Option<(Process, String)> {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    // What it says is waited for.
    command.args(["--logfile", "/dev/stderr"]).args(flags);
    let Some(mut server) = Process::try_start(&mut command) else {
        skip::without_program("redis-server");
        return None;
    };
    server.stderr.wait_for("Ready to accept connections");
    Some((server, format!("127.0.0.1:{port}")))
}

/// Returns the server's answer to a command of one line.
fn asked(address: &str, command: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
    stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer.trim_end_matches("+OK\r\n").trim_end().to_owned()
}

/// The number of calls of a command, as the server has counted them.
fn calls(address: &str, command: &str) -> u64 {
    let stats = asked(address, "INFO commandstats");
    let row = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
    let calls = row.and_then(|row| row.split_once("calls=")?.1.split(',').next()?.parse().ok());
    calls.unwrap_or(0)
}

#[test]
fn the_real_server_has_every_command_and_every_value() {
    let _turn = machine::load();
    let Some((_server, address)) = start(&[]) else { return };
    for (connections, pipeline) in [("8", "1"), ("4", "16")] {
        asked(&address, "FLUSHALL");
        asked(&address, "CONFIG RESETSTAT");
        // The question before a load would be a call, too.
        let load = ["-n", "20000", "-c", connections, "--pipeline", pipeline, "--no-preflight"];
        let mixed =
            result(&[&[&*address, "--mix", "set=2,get=2,incr=1", "--keys", "500"][..], &load].concat());
        assert_eq!(ends(&mixed), [20_000, 0, 0], "{pipeline}: {}", mixed["error_examples"]);
        let [set, get, incr] = ["set", "get", "incr"].map(|name| calls(&address, name));
        assert_eq!([set, get, incr], [8_000, 8_000, 4_000], "{pipeline}");
        // Counters have counted every INCR.
        let script = "local sum = 0 for i = 0, 499 do sum = sum + (tonumber(redis.call('GET', 'counter:key:' .. i)) or 0) \
                      end return sum";
        assert_eq!(asked(&address, &format!("EVAL \"{script}\" 0")), ":4000", "{pipeline}");
        // Each GET has the value of its key.
        let checked = result(&[&[&*address][..], &load].concat());
        assert_eq!(ends(&checked), [40_000, 0, 0], "{pipeline}: {}", checked["error_examples"]);
    }
}

#[test]
fn the_real_server_has_users_databases_and_errors() {
    let _turn = machine::load();
    let Some((_server, address)) = start(&["--requirepass", "secret"]) else { return };
    let url = format!("redis://default:secret@{address}/3");
    assert_eq!(ends(&result(&[&url, "-n", "50", "-c", "2", "SET", "a", "1"])), [50, 0, 0]);
    let other = format!("redis://:secret@{address}/4");
    let missing = result(&[&other, "-n", "50", "-c", "2", "GET", "a"]);
    assert_eq!((ends(&missing), &missing["statuses"]["404"]), ([50, 0, 0], &50.into()));
    let wrong = result(&[&url, "-n", "50", "-c", "2", "LPUSH", "a", "1"]);
    assert_eq!(ends(&wrong)[1], 50);
    assert!(wrong["error_examples"].to_string().contains("WRONGTYPE"), "{}", wrong["error_examples"]);
    let beyond = format!("redis://:secret@{address}/99");
    let refused = result(&[&beyond, "-n", "50", "-c", "2", "--no-preflight", "GET", "a"]);
    assert_eq!(ends(&refused)[0], 0);
    assert!(refused["error_examples"].to_string().contains("DB index"), "{}", refused["error_examples"]);
}
