//! The built-in server as a process of its own.

use crate::loopback::process::{Finished, Folder, Process, plimsoll};
use plimsoll_testkit::sink_log::Truth;

/// The arguments of a server: a sink of HTTP that is told no delay answers after two milliseconds. If it
/// answered at once, the time in which the generator wakes up would be a large share of each response time,
/// and its runs invalid for that.
pub(crate) fn unhurried(args: &str) -> String {
    let own = ["--delay", "--grpc", "--websocket"];
    let is_prompt = args.split(' ').next() == Some("sink") && !own.iter().any(|flag| args.contains(flag));
    if is_prompt { format!("{args} --delay constant:2ms") } else { args.to_owned() }
}

/// A running sink.
#[derive(Debug)]
pub(crate) struct Sink {
    process: Process,
    /// `address:port`, or `unix:path`.
    pub(crate) endpoint: String,
    folder: Folder,
}

impl Sink {
    /// Starts a sink on a free port of 127.0.0.1, with more arguments.
    pub(crate) fn start(args: &str) -> Self {
        Self::listen("127.0.0.1:0", args)
    }

    pub(crate) fn listen(address: &str, args: &str) -> Self {
        let folder = Folder::new();
        let log = folder.file("truth.csv");
        Self::logging(folder, &log, address, args)
    }

    /// A sink whose log can be read while it runs, on its stdout.
    pub(crate) fn telling(args: &str) -> Self {
        Self::telling_at("127.0.0.1:0", args)
    }

    pub(crate) fn telling_at(address: &str, args: &str) -> Self {
        Self::logging(Folder::new(), "/dev/stdout", address, args)
    }

    fn logging(folder: Folder, log: &str, address: &str, args: &str) -> Self {
        let sink = format!("sink --listen {address} --truth-log {log} {args}");
        let mut process = Process::start(plimsoll(&unhurried(&sink)));
        let Some(line) = process.stderr.find("sink: listening on ") else {
            panic!("no sink: {}", process.finish().stderr);
        };
        let endpoint = line.trim_start_matches("sink: listening on ").to_owned();
        Self { process, endpoint, folder }
    }

    /// Returns the URL of the sink.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.endpoint)
    }

    /// Waits until it has logged more than the one request of a preflight. The log is written in blocks, so
    /// that the load is then under way for some 100 requests. For a [telling](Self::telling) sink.
    pub(crate) fn wait_for_load(&mut self) {
        let header = self.process.stdout.wait_for("recv_ns");
        assert!(header.starts_with("id,"));
        for _ in 0..2 {
            self.process.stdout.wait_for(",");
        }
    }

    /// Waits until it has logged this much more of the load. For a [telling](Self::telling) sink.
    pub(crate) fn wait_for_requests(&mut self, more: u32) {
        for _ in 0..more {
            self.process.stdout.wait_for(",");
        }
    }

    /// Kills it in the middle of its work; returns the number of requests that it had logged by then.
    pub(crate) fn kill(self) -> u64 {
        let Self { process, folder: _folder, .. } = self;
        process.signal("KILL");
        let Finished { code, stdout, .. } = process.finish();
        assert_eq!(code, None, "a signal ended it");
        stdout.lines().skip(1).count() as u64
    }

    /// Stops it and returns its counts.
    pub(crate) fn stop(self) -> Saw {
        self.process.signal("INT");
        self.wait()
    }

    /// Waits until it stops by itself and returns its counts.
    pub(crate) fn wait(self) -> Saw {
        let Self { process, folder, .. } = self;
        let Finished { code, stderr, stdout } = process.finish();
        assert_eq!(code, Some(0), "{stderr}");
        let summary = stderr.lines().last().expect("it says what it did");
        let words: Vec<&str> = summary.split(' ').collect();
        let figure = |word: &str| word.replace(',', "").parse().expect("a figure");
        let ["sink:", requests, "requests", "on", connections, "connections"] = words[..] else {
            panic!("{summary}")
        };
        let log = match stdout.is_empty() {
            true => std::fs::read_to_string(folder.path().join("truth.csv")).expect("there is a log"),
            false => stdout,
        };
        let saw =
            Saw { requests: figure(requests), connections: figure(connections), truth: Truth::parse(&log) };
        assert_eq!(saw.truth.rows.len() as u64, saw.requests, "the log has a row for every request");
        saw
    }
}

/// Counts and log of a sink.
#[derive(Debug)]
pub(crate) struct Saw {
    pub(crate) requests: u64,
    pub(crate) connections: u64,
    pub(crate) truth: Truth,
}
