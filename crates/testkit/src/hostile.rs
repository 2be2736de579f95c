//! Hostile servers as values: a table of a server's actions on each connection, and of the expected outcomes
//! of its requests.
//!
//! [`suites`] are the tables of the core, one for each protocol or kind of answers; an extension has its own
//! in `hostile.rs` of its folder. [`Server`] carries a [`Case`] out on
//! real sockets of the loopback interface; [`attempt()`] runs the program against it and compares. Together
//! they are the same attack twice: `plimsoll/tests/attack` makes it with a few requests in every build, and
//! `cargo run --release -p bench -- attack` with many.
//!
//! Unlike the simulation this touches sockets and the clock: the program as a whole, with its two backends
//! and the kernel below them, is attacked here.

mod attempt;
mod barrage;
mod canister;
mod certificates;
mod http1;
mod http2;
mod mutation;
mod proxy;
mod sealer;
mod server;
mod services;
mod tls;
mod websocket;
mod wire;

use std::fmt;
use std::time::Duration;

pub use plimsoll_core::{ErrorClass, ErrorRow};

pub use attempt::{Attempt, Run, attempt, backends, check};
pub use barrage::{Barrage, barrage};
pub use certificates::{Identity, authority_pem};
pub use http2::{aside, ending, here, literal};
pub use mutation::{Damage, DamagedRequests, ingest_requests, mutate, sink_requests};
pub use server::Server;
pub use tls::{Alpn, Handshake, Tamper, Version};

use crate::http2::frame::put_frame;

/// A table of servers of one protocol.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The name of the protocol, or of the kind of answers.
    pub name: &'static str,
    /// Way in which the server finds the end of a request.
    pub speaks: Speaks,
    /// The command line that is run against it, without the name of the program and the common flags.
    pub command: fn(Load<'_>) -> String,
    /// Connections that are served by [`good`](Self::good) before hostility begins, for commands that ask
    /// the server something before the load.
    pub good_connections: u32,
    /// Acts of a server that means no harm.
    pub good: Vec<Act>,
    /// The servers.
    pub cases: Vec<Case>,
}

/// The way in which a server finds the end of a request.
#[derive(Clone, Copy, Debug)]
pub enum Speaks {
    /// A head that ends with an empty line, and as many bytes as its content-length says.
    Http1,
    /// The preface, and then a HEADERS frame.
    Http2,
    /// A record of TLS: a handshake that is not carried out.
    Records,
    /// A function that returns the length of the request that bytes begin with, if it is known yet.
    By(fn(&[u8]) -> Option<usize>),
}

/// The requests that the command of a suite has to send, and their target.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// Host and port of the server.
    pub address: &'a str,
    /// Requests of the run.
    pub requests: u32,
    /// Connections.
    pub connections: u32,
    /// Limit for a response, in seconds.
    pub timeout: &'a str,
}

/// One hostile server.
#[derive(Clone, Debug)]
pub struct Case {
    /// A few words that describe it.
    pub name: String,
    /// Acts of the server on each connection, in order; the connection is closed after them.
    pub acts: Vec<Act>,
    /// The handshake that comes before the acts, if there is one.
    pub handshake: Option<Handshake>,
    /// The possible ends of a request. Where there is more than one, a comment in the table says why.
    pub ends: Vec<Ends>,
    /// Further arguments of the command, separated by spaces. `{ca}` stands for the file of the authority.
    pub args: &'static str,
}

impl Case {
    /// A server without a handshake.
    pub fn new(name: impl Into<String>, ends: &[Ends], acts: Vec<Act>) -> Self {
        Self { name: name.into(), acts, handshake: None, ends: ends.to_vec(), args: "" }
    }

    /// Returns the case with further arguments of the command.
    pub fn with(self, args: &'static str) -> Self {
        Self { args, ..self }
    }
}

/// The end of a request, as a result counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The request is answered well.
    Ok,
    /// The request times out.
    TimedOut,
    /// The request fails with this class.
    Failed(ErrorClass),
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Ends {
    /// Returns the name of the end in a result: that of the account, or of the class.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::TimedOut => "timed_out",
            Self::Failed(class) => class.name(),
        }
    }
}

/// A good answer, as a list of ends.
pub const OK: &[Ends] = &[Ends::Ok];
/// No answer in time, as a list of ends.
pub const TIMED_OUT: &[Ends] = &[Ends::TimedOut];
/// An answer that breaks the protocol, as a list of ends.
pub const PROTOCOL: &[Ends] = &[Ends::Failed(ErrorClass::Protocol)];
pub(crate) const TOO_LARGE: &[Ends] = &[Ends::Failed(ErrorClass::HeadTooLarge)];
/// The end of the connection before an answer, as a list of ends.
pub const CLOSED_BEFORE: &[Ends] = &[Ends::Failed(ErrorClass::ClosedBeforeResponse)];
/// The end of the connection within an answer, as a list of ends.
pub const CLOSED_WITHIN: &[Ends] = &[Ends::Failed(ErrorClass::ClosedInResponse)];
/// A reset of the connection, as a list of ends.
pub const RESET: &[Ends] = &[Ends::Failed(ErrorClass::Reset)];
/// An answer that is not as it was expected, as a list of ends.
pub const CHECK: &[Ends] = &[Ends::Failed(ErrorClass::Check)];

/// One act of a server on a connection.
#[derive(Clone, Debug)]
pub enum Act {
    /// Waits for the next request. The connection is left when the client has gone.
    Await,
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends a frame of HTTP/2.
    Frame(Frame),
    /// Sends the first bytes of a frame of HTTP/2, this many.
    Part(Frame, usize),
    /// Sends a record of TLS with this type and content, encrypted by the keys of the connection.
    Record(u8, Vec<u8>),
    /// Sends bytes below TLS, as they are.
    Below(Vec<u8>),
    /// Updates the keys of the TLS connection.
    UpdateKeys,
    /// Repeats an act this many times.
    Repeat(u32, Box<Act>),
    /// Sends bytes one at a time, with this pause after each.
    Drip(Vec<u8>, Duration),
    /// Goes on with the acts from the first [`Await`](Self::Await) on.
    Again,
    /// Ends its side of the connection, and reads on until the client has gone.
    Close,
    /// Sends close_notify, ends its side of the connection, and reads on until the client has gone.
    Notify,
    /// Resets the connection.
    Reset,
    /// Sends nothing more, and reads on until the client has gone.
    Hold,
}

/// A frame of HTTP/2.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream.
    pub on: On,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The bytes of the frame, for a server whose last request came on `stream`.
    pub(crate) fn bytes(&self, stream: u32) -> Vec<u8> {
        let stream = match self.on {
            On::Number(number) => number,
            On::Request => stream,
            On::Beyond(distance) => stream + distance,
        };
        let mut bytes = Vec::with_capacity(9 + self.payload.len());
        put_frame(&mut bytes, self.kind, self.flags, stream, &self.payload);
        bytes
    }
}

/// The stream of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The one with this number; 0 is the connection.
    Number(u32),
    /// The stream of the last request.
    Request,
    /// The one that is so far beyond that of the last request.
    Beyond(u32),
}

/// Kinds and flags of the frames of HTTP/2, and the length of the largest payload that a client takes
/// unasked.
pub mod frames {
    pub use crate::http2::frame::{
        CONTINUATION, DATA, END, END_HEADERS, FRAME_BYTES, GOAWAY, HEADERS, PING, RST_STREAM,
    };
}

/// Returns every table of the core.
pub fn suites() -> Vec<Suite> {
    let mut suites = vec![http1::suite(), http2::suite(), tls::records(), tls::suite(), canister::suite()];
    suites.push(websocket::suite());
    suites.extend(services::suites());
    suites.extend(proxy::suites());
    suites
}

/// Returns the end of the row by which the page of assurance counts the servers of some tables, which are in
/// this file.
pub fn counted(suites: &[Suite], file: &str) -> String {
    let count: usize = suites.iter().map(|suite| suite.cases.len()).sum();
    format!("| {count} | `{file}` |")
}

/// Returns the acts of a server that answers each request with these bytes and closes.
pub fn once(answer: impl Into<Vec<u8>>) -> Vec<Act> {
    vec![Act::Await, Act::Send(answer.into()), Act::Close]
}

/// Returns the acts of a server that answers each request with these bytes and keeps the connection.
pub fn kept(answer: impl Into<Vec<u8>>) -> Vec<Act> {
    vec![Act::Await, Act::Send(answer.into()), Act::Again]
}

/// Returns the act that sends bytes this many times.
pub fn flooded(bytes: &[u8], times: u32) -> Act {
    Act::Repeat(times, Box::new(Act::Send(bytes.to_vec())))
}

/// Returns the acts of a server that answers each request with these bytes, and then says nothing more.
pub fn held(answer: impl Into<Vec<u8>>) -> Vec<Act> {
    vec![Act::Await, Act::Send(answer.into()), Act::Hold]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_the_size_of_the_attack_that_they_stand_for_and_names_of_their_own() {
        let suites = suites();
        let size = |name: &str| -> usize {
            suites.iter().filter(|suite| suite.name.starts_with(name)).map(|suite| suite.cases.len()).sum()
        };
        assert!(size("HTTP/1.1") >= 63 && size("HTTP/2") >= 82 && size("TLS") >= 38);
        for suite in &suites {
            let mut names: Vec<&str> = suite.cases.iter().map(|case| &*case.name).collect();
            names.sort_unstable();
            let doubled = names.windows(2).find(|pair| pair[0] == pair[1]);
            assert_eq!(doubled, None, "{}", suite.name);
            for case in &suite.cases {
                assert!(!case.ends.is_empty(), "{}: {}", suite.name, case.name);
            }
        }
    }

    /// A new server has to be added to the page, too.
    #[test]
    fn the_page_of_assurance_counts_the_servers_of_each_table() {
        let page = include_str!("../../../docs/assurance.md");
        let tables = [
            ("HTTP/1.1", "http1"),
            ("HTTP/2", "http2"),
            ("TLS", "tls"),
            ("canister", "canister"),
            ("WebSocket", "websocket"),
            ("ingest, crud", "services"),
            ("proxy", "proxy"),
        ];
        let row = |(name, file): (&str, &str)| {
            let is_in = |suite: &Suite| name.split(", ").any(|start| suite.name.starts_with(start));
            let of_row: Vec<Suite> = suites().into_iter().filter(is_in).collect();
            counted(&of_row, &format!("crates/testkit/src/hostile/{file}.rs"))
        };
        let missing: Vec<String> = tables.map(row).into_iter().filter(|row| !page.contains(row)).collect();
        assert!(missing.is_empty(), "{missing:#?}");
    }
}
