//! Signals that come while several runs are made: the findings so far are reported in order.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use plimsoll_testkit::machine;
use serde_json::Value;

use super::bench::plimsoll;

/// Event on a connection of the server.
#[derive(Clone, Copy, PartialEq)]
enum Met {
    Opened,
    Closed,
}

/// Gate for requests: while it is shut, they are not answered.
#[derive(Default)]
struct Gate {
    is_shut: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn shut(&self, shut: bool) {
        *self.is_shut.lock().expect("no panic while it is locked") = shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let is_shut = self.is_shut.lock().expect("no panic while it is locked");
        drop(self.changed.wait_while(is_shut, |is_shut| *is_shut).expect("no panic while it is locked"));
    }
}

/// A server that reports its connections. When the first of them is closed, its gate shuts: requests have to
/// wait for their answers.
fn server() -> (String, Receiver<Met>, Arc<Gate>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    let (tell, met) = channel();
    let gate = Arc::new(Gate::default());
    let gates = Arc::clone(&gate);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (tell, gate) = (tell.clone(), Arc::clone(&gates));
            thread::spawn(move || answer(stream, &tell, &gate));
        }
    });
    (url, met, gate)
}

/// Requests come one at a time, each in one piece.
fn answer(mut stream: TcpStream, tell: &Sender<Met>, gate: &Gate) {
    // A receiver that has gone has seen enough.
    let _ = tell.send(Met::Opened);
    let mut request = [0; 4096];
    while stream.read(&mut request).is_ok_and(|length| length > 0) {
        gate.pass();
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
            break;
        }
    }
    gate.shut(true);
    let _ = tell.send(Met::Closed);
}

fn interrupt(child: &Child) {
    let kill = format!("kill -s INT {}", child.id());
    let sent = Command::new("sh").args(["-c", &kill]).status().expect("there is a shell");
    assert!(sent.success(), "{sent}");
}

/// A sweep over 1, 2 and 3 connections, interrupted when its server has met this many of them: its exit
/// code, and the levels of its result.
fn interrupted_sweep(when: Met, times: usize) -> (Option<i32>, Vec<f64>) {
    let _turn = machine::load();
    let (url, met, gate) = server();
    let mut child = plimsoll(&["find", &url, "--sweep", "connections=1,2,3", "--no-preflight"])
        .args(["-n", "20", "--drain", "60s", "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let seen = met.iter().filter(|met| *met == when).take(times).count();
    assert_eq!(seen, times);
    interrupt(&child);
    // If the level were answered first, it might end as if there had been no interrupt.
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("stopping: ")));
    gate.shut(false);
    let output = child.wait_with_output().expect("it ends");
    let result: Value = serde_json::from_slice(&output.stdout).expect("a result, though interrupted");
    let levels = result["levels"].as_array().expect("there are levels");
    let values = levels.iter().map(|level| level["value"].as_f64().expect("a number")).collect();
    (output.status.code(), values)
}

/// When the connection of the first level is closed that level is over, and the run that the signal is meant
/// for may not have begun.
#[test]
fn a_signal_between_two_levels_ends_the_sweep_with_those_before() {
    assert_eq!(interrupted_sweep(Met::Closed, 1), (Some(130), vec![1.0]));
}

#[test]
fn a_signal_in_a_level_ends_the_sweep_with_those_before() {
    assert_eq!(interrupted_sweep(Met::Opened, 3), (Some(130), vec![1.0]));
}
