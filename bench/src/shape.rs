//! Shapes of connections: a server, perhaps a relay before it, and the command that puts load on it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::child::Running;
use crate::failure::{Failure, Result};
use crate::server::{Server, Serves};
use crate::session::Session;

/// Time that a run may take.
const LONGEST: Duration = Duration::from_secs(40);

/// The server of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `plimsoll sink`, whose truth log has each request.
    Sink,
    /// `plimsoll target llm`, whose truth log has each completion.
    Llm,
    /// `plimsoll target cache`, which has no log, and counts operations.
    Cache,
}

/// A way of using connections. In flags `{server}` is host and port of the server, `{relay}` those of the
/// relay, and `{directory}` the directory of the session.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Flags of the server.
    serves: &'static [&'static str],
    /// Command and target of the load.
    load: &'static [&'static str],
    /// Flags of the load in the open model alone.
    open: &'static [&'static str],
    /// `true` if each request has a connection of its own.
    pub(crate) connects: bool,
    /// `true` if a relay is on the way.
    pub(crate) relayed: bool,
}

impl Shape {
    /// `true` if requests are messages of WebSockets.
    pub(crate) fn is_websocket(&self) -> bool {
        self.load[0] == "ws"
    }

    /// `true` if answers have bodies whose length can be chosen.
    pub(crate) fn has_bodies(&self) -> bool {
        self.load[0] == "run"
    }

    /// `true` if the kernel stamps each request for the server: one of HTTP/1.1 over TCP, which is sent as
    /// soon as there is a connection. Several streams of a connection that are read together have the stamp
    /// of the last, and a unix socket has none.
    pub(crate) fn is_stamped_singly(&self) -> bool {
        self.load[0] == "run" && ["--http2", "--unix-socket"].iter().all(|flag| !self.load.contains(flag))
    }

    /// `true` if the log of the server has all of the time that its core took. A relay in front of it has its
    /// own, the kernel stamps nothing on a unix socket, and messages of WebSockets are stamped when they are
    /// taken apart: a figure of these is wrong if it is wrong each time.
    pub(crate) fn is_logged_exactly(&self) -> bool {
        !self.relayed && !self.is_websocket() && !self.load.contains(&"--unix-socket")
    }

    /// `true` if a connection is ready for its first request only after an answer of the server, so that one
    /// that needs a new connection comes late to a server that is busy or stands still.
    pub(crate) fn shakes_hands(&self) -> bool {
        self.load.contains(&"-k")
    }

    /// `true` if the load can go to another address, too: the relay knows of one server only.
    pub(crate) fn takes_another(&self) -> bool {
        self.load[0] == "run" && !self.relayed && !self.load.contains(&"--unix-socket")
    }
}

/// The part of the sink's service of gRPC that is used, for without it the sink would be asked, and have a
/// request more in its log.
const PROTO: &str = "syntax = \"proto3\"; package plimsoll.sink.v1; message Payload { string text = 1; } \
                     service Sink { rpc Echo(Payload) returns (Payload); }";

/// A shape over connections that are kept.
const fn kept(name: &'static str, serves: &'static [&'static str], load: &'static [&'static str]) -> Shape {
    Shape { name, kind: Kind::Sink, serves, load, open: &[], connects: false, relayed: false }
}

/// A shape whose requests have a connection each.
const fn each(name: &'static str, serves: &'static [&'static str], load: &'static [&'static str]) -> Shape {
    Shape { connects: true, ..kept(name, serves, load) }
}

/// The shapes. None is the name of another with something behind it, so that `--only` can choose it.
pub(crate) const SHAPES: [Shape; 18] = [
    kept("kept", &[], &["run", "http://{server}/"]),
    each("close announced", &["--goaway-after", "1"], &["run", "http://{server}/"]),
    each("closed in silence", &["--max-requests-per-connection", "1"], &["run", "http://{server}/"]),
    each("not kept", &[], &["run", "http://{server}/", "--disable-keepalive"]),
    kept("TLS", &["--self-signed"], &["run", "https://{server}/", "-k"]),
    kept("h2c", &[], &["run", "http://{server}/", "--http2"]),
    kept("h2 over TLS", &["--self-signed"], &["run", "https://{server}/", "-k", "--http2"]),
    each(
        "h2c, one a connection",
        &[],
        &["run", "http://{server}/", "--http2", "--max-requests-per-connection", "1"],
    ),
    Shape { relayed: true, ..each("HTTP/1.0 until close", &[], &["run", "http://{relay}/"]) },
    Shape {
        relayed: true,
        ..kept(
            "CONNECT",
            &["--self-signed"],
            &["run", "https://{server}/", "-k", "--proxy", "http://{relay}"],
        )
    },
    Shape {
        relayed: true,
        ..kept("SOCKS5", &[], &["run", "http://{server}/", "--proxy", "socks5://{relay}"])
    },
    Shape {
        relayed: true,
        ..each(
            "SOCKS5, not kept",
            &[],
            &["run", "http://{server}/", "--proxy", "socks5://{relay}", "--disable-keepalive"],
        )
    },
    kept(
        "unix socket",
        &["--listen", "unix:{directory}/socket"],
        &["run", "http://localhost/", "--unix-socket", "{directory}/socket"],
    ),
    Shape {
        open: &["--rate-of", "requests"],
        ..kept("WebSocket", &["--websocket"], &["ws", "ws://{server}/", "--messages", "1000"])
    },
    Shape {
        ..each("WebSocket of one message", &["--websocket"], &["ws", "ws://{server}/", "--messages", "1"])
    },
    kept(
        "gRPC",
        &["--grpc"],
        &["grpc", "{server}", "plimsoll.sink.v1.Sink/Echo", "--proto", "{directory}/sink.proto"],
    ),
    Shape {
        kind: Kind::Llm,
        ..kept("LLM stream", &[], &["llm", "http://{server}/", "--model", "plimsoll", "--output-tokens", "4"])
    },
    // The relay adds the time that this server cannot be told to take.
    Shape {
        kind: Kind::Cache,
        relayed: true,
        ..kept("cache", &["--http", "off"], &["cache", "--server", "{relay}", "--mix", "put"])
    },
];

/// The servers of a shape while they run; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Stand {
    server: Server,
    relay: Option<Server>,
}

impl Stand {
    /// Starts the server of a shape with further flags, and its relay.
    pub(crate) fn start<S: AsRef<str>>(session: &Session, shape: &Shape, flags: &[S]) -> Result<Self> {
        let proto = session.directory().join("sink.proto");
        fs::write(&proto, PROTO).map_err(|error| Failure::because(proto.display(), error))?;
        let server = serve(session, shape, flags, None)?;
        let relay = || Server::start(session, &Serves::Relay(server.authority().to_owned()));
        let relay = shape.relayed.then(relay).transpose()?;
        Ok(Self { server, relay })
    }

    /// Stops the server in its own way, so that its log is whole and its socket is gone, and returns its
    /// stderr.
    pub(crate) fn stop(self) -> Result<String> {
        self.server.stop()
    }

    /// Stops the server, and starts another one at its address.
    pub(crate) fn restart<S: AsRef<str>>(
        self,
        session: &Session,
        shape: &Shape,
        flags: &[S],
    ) -> Result<Self> {
        let address = self.server.authority().to_owned();
        self.server.stop()?;
        Ok(Self { server: serve(session, shape, flags, Some(&address))?, relay: self.relay })
    }

    /// Puts load on it, and returns the result in the format `json`.
    pub(crate) fn load(&self, session: &Session, shape: &Shape, flags: &[&str]) -> Result<Value> {
        self.begin(session, shape, flags, None)?.end()
    }

    /// Begins to put load on it, of which every other request goes to `other`, if that is an address.
    pub(crate) fn begin(
        &self,
        session: &Session,
        shape: &Shape,
        flags: &[&str],
        other: Option<&str>,
    ) -> Result<Loading> {
        let directory = session.directory().display().to_string();
        let relay = self.relay.as_ref().map_or("", Server::authority);
        let is_open = flags.iter().any(|flag| ["--rate", "--stages"].contains(flag));
        let fixed = ["-o", "json", "--quiet", "--no-preflight", "-t", "1"];
        let open = if is_open { shape.open } else { &[] };
        let second = other.map(|other| format!("http://{other}/"));
        let command = shape.load.iter().copied().chain(second.as_deref());
        let all = command.chain(open.iter().copied()).chain(fixed).chain(flags.iter().copied());
        let fill = |arg: &str| {
            arg.replace("{server}", self.server.authority())
                .replace("{relay}", relay)
                .replace("{directory}", &directory)
        };
        let args: Vec<String> = all.map(fill).collect();
        let pinned = session.on_tool_core(&session.plimsoll, &args);
        let line = pinned.to_string();
        let failed = |error| Failure::because(&line, error);
        let [output, errors] = ["load.json", "load.err"].map(|name| session.directory().join(name));
        let mut command = pinned.command();
        command.stdout(File::create(&output).map_err(failed)?);
        command.stderr(File::create(&errors).map_err(failed)?);
        let running = Running::start(&mut command).map_err(failed)?;
        Ok(Loading { running, line, output, errors })
    }
}

/// Starts the server of a shape: at the address that the shape has, or at `address`, or on a free port.
fn serve<S: AsRef<str>>(
    session: &Session,
    shape: &Shape,
    flags: &[S],
    address: Option<&str>,
) -> Result<Server> {
    let directory = session.directory().display().to_string();
    let all = shape.serves.iter().copied().chain(flags.iter().map(AsRef::as_ref));
    let mut flags: Vec<String> = all.map(|flag| flag.replace("{directory}", &directory)).collect();
    if let Some(address) = address.filter(|_| !flags.iter().any(|flag| flag == "--listen")) {
        flags.extend(["--listen".to_owned(), address.to_owned()]);
    }
    let serves = match shape.kind {
        Kind::Sink => Serves::Sink(flags),
        Kind::Llm => Serves::Target("llm", flags),
        Kind::Cache => Serves::Target("cache", flags),
    };
    Server::start(session, &serves)
}

/// A load that is being put on a server; it is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Loading {
    running: Running,
    line: String,
    output: PathBuf,
    errors: PathBuf,
}

impl Loading {
    /// Waits for so long, or until its end.
    pub(crate) fn wait(&self, time: Duration) -> Result<()> {
        self.running.ends_within(time).map(drop).map_err(|error| Failure::because(&self.line, error))
    }

    /// Waits for its end, and returns the result.
    pub(crate) fn end(self) -> Result<Value> {
        let failed = |error: &dyn std::fmt::Display| Failure::because(&self.line, error);
        self.running.finish(LONGEST).map_err(|error| failed(&error))?;
        let read = |path| fs::read_to_string(path).map_err(|error| failed(&error));
        let said = read(&self.errors)?;
        serde_json::from_str(&read(&self.output)?).map_err(|error| match said.trim() {
            "" => failed(&error),
            said => failed(&said),
        })
    }
}

/// Runs `attempt` until its result is a valid run, at most `tries` times. Returns the reasons of the last
/// one if none was.
pub(crate) fn valid<T>(
    tries: u32,
    mut attempt: impl FnMut() -> Result<(Value, T)>,
) -> Result<std::result::Result<(Value, T), String>> {
    let mut last = String::new();
    for _ in 0..tries {
        let (result, more) = attempt()?;
        if result["verdict"]["valid"] == true {
            return Ok(Ok((result, more)));
        }
        last = result["verdict"]["invalid_reasons"].to_string();
    }
    Ok(Err(last))
}

/// The backends that a case is carried out on: the one that was asked for, or both.
pub(crate) fn backends(session: &Session) -> Vec<String> {
    match &session.options.backend {
        Some(backend) => vec![backend.clone()],
        None => ["uring", "epoll"].map(str::to_owned).to_vec(),
    }
}
