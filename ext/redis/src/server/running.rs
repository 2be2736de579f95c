//! The running server: connections, what they are owed, and the report.

use std::collections::VecDeque;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_app::{Failure, RunningServer, percent};
use plimsoll_core::{Nanos, Random, figure};
use plimsoll_driver::{ConnId, KernelBackend};
use plimsoll_targets::Stopper;
use plimsoll_targets::server::{Fate, Handler, LoopCounts, Outgoing, Protocol, Server, ServerOptions, Table};

use super::request::{NoCommand, Request, RequestReader};
use super::store::{Answer, Store, write};
use super::{LieKind, Settings};

const ELSEWHERE: &str = "take another address: --listen; port 0 takes a free one";

/// A server's content and settings, shared by its threads.
#[derive(Debug)]
struct Redis {
    settings: Settings,
    store: Mutex<Store>,
}

/// Counts of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Report {
    connections: u64,
    commands: u64,
    refused: u64,
    lies: u64,
    ended: u64,
}

impl AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        let Self { connections, commands, refused, lies, ended } = other;
        self.connections += connections;
        self.commands += commands;
        self.refused += refused;
        self.lies += lies;
        self.ended += ended;
    }
}

/// The connections of a thread.
#[derive(Debug)]
struct Connections {
    redis: Arc<Redis>,
    table: Table<Connection>,
    /// Answers that are held back, in the order in which they are due.
    held_back: VecDeque<(Nanos, ConnId, Vec<u8>)>,
    random: Random,
    report: Report,
}

#[derive(Debug, Default)]
struct Connection {
    reader: RequestReader,
    is_known: bool,
    /// Set once the client has said QUIT, or something that is no command.
    is_over: bool,
    /// Answers of it that are held back.
    held_back: u32,
}

/// Starts a server.
pub(super) fn start(
    options: ServerOptions,
    settings: Settings,
    backend: KernelBackend,
) -> Result<Box<dyn RunningServer>, Failure> {
    let store = Mutex::new(Store::new(settings.max_bytes));
    let server = Server::start(options, Redis { settings, store }, backend);
    Ok(Box::new(Running(server.map_err(|error| Failure::start(&error, ELSEWHERE))?)))
}

struct Running(Server<Redis>);

impl RunningServer for Running {
    fn stopper(&self) -> Stopper {
        self.0.stopper()
    }

    fn opening(&self) -> Vec<String> {
        let listening = self.0.endpoints().iter().map(|endpoint| format!("listening on {endpoint}"));
        let lie = self.0.protocol().settings.lie.filter(|lie| lie.share > 0.0).map(|lie| {
            let how = match lie.kind {
                LieKind::Wrong => "a wrong value",
                LieKind::Missing => "no value",
            };
            let seed = self.0.protocol().settings.seed;
            format!("faults: {} of the GETs answered with {how}, seed {seed}", percent(lie.share))
        });
        listening.chain(lie).collect()
    }

    fn wait(self: Box<Self>) -> Vec<String> {
        let Report { connections, commands, refused, lies, ended } = self.0.wait();
        let [all, on, refused, lies, ended] =
            [commands, connections, refused, lies, ended].map(figure::count);
        let mut lines = vec![format!("{all} commands on {on} connections, {refused} answered with an error")];
        if lies != "0" {
            lines.push(format!("{lies} answered wrongly on purpose"));
        }
        if ended != "0" {
            lines.push(format!("{ended} connections ended for a violation"));
        }
        lines
    }
}

impl Protocol for Redis {
    type Handler = Connections;
    type Report = Report;

    fn handler(self: &Arc<Self>) -> Connections {
        Connections {
            redis: Arc::clone(self),
            table: Table::default(),
            held_back: VecDeque::new(),
            random: Random::new(self.settings.seed, 0),
            report: Report::default(),
        }
    }

    fn report(handler: Connections, counts: LoopCounts) -> Report {
        let connections = counts.accepted.iter().sum();
        Report {
            connections,
            ended: handler.report.ended + counts.unread + counts.over_memory,
            ..handler.report
        }
    }
}

impl Connections {
    /// Answers a command of a connection.
    fn answer(
        &mut self,
        is_known: &mut bool,
        is_over: &mut bool,
        now: Nanos,
        words: &[&[u8]],
        out: &mut Vec<u8>,
    ) {
        let settings = &self.redis.settings;
        let is = |name: &[u8]| words[0].eq_ignore_ascii_case(name);
        let answer = match (words, &settings.password) {
            _ if is(b"QUIT") => {
                *is_over = true;
                Ok(Answer::Status("OK"))
            }
            ([_, password] | [_, _, password], Some(wanted)) if is(b"AUTH") => {
                *is_known = *password == wanted.as_bytes();
                match *is_known {
                    true => Ok(Answer::Status("OK")),
                    false => Err("WRONGPASS invalid username-password pair or user is disabled.".to_owned()),
                }
            }
            ([_, _], None) if is(b"AUTH") => {
                Err("ERR AUTH <password> called without any password configured for the default user."
                    .to_owned())
            }
            (_, Some(_)) if !*is_known => Err("NOAUTH Authentication required.".to_owned()),
            ([_, b"0"], _) if is(b"SELECT") => Ok(Answer::Status("OK")),
            ([_, _], _) if is(b"SELECT") => Err("ERR DB index is out of range".to_owned()),
            _ => self.redis.store.lock().unwrap_or_else(PoisonError::into_inner).carry_out(now, words),
        };
        let answer = match (answer, settings.lie) {
            (Ok(Answer::Value(Some(value))), Some(lie)) if is(b"GET") && self.random.unit() < lie.share => {
                self.report.lies += 1;
                Ok(Answer::Value(match lie.kind {
                    LieKind::Missing => None,
                    LieKind::Wrong => Some([&b"wrong "[..], &value].concat()),
                }))
            }
            (answer, _) => answer,
        };
        self.report.commands += 1;
        self.report.refused += u64::from(answer.is_err());
        write(&answer, out);
    }
}

impl Handler for Connections {
    fn accepted(&mut self, conn: ConnId, _: usize) {
        self.table.insert(conn, Connection::default());
    }

    fn received(&mut self, conn: ConnId, at: Nanos, bytes: &[u8], out: &mut Outgoing) -> Fate {
        let Some(connection) = self.table.get(conn) else { return Fate::Reset };
        let mut reader = std::mem::take(&mut connection.reader);
        let (mut is_known, mut is_over) = (connection.is_known, connection.is_over);
        let mut answers = 0;
        let read = reader.read(bytes, |request| {
            if let (Request::Words(words), false) = (request, is_over) {
                self.answer(&mut is_known, &mut is_over, at, &words, &mut out.bytes);
                answers += 1;
            }
        });
        if let Err(NoCommand(why)) = read {
            write(&Err(format!("ERR {why}")), &mut out.bytes);
            answers += 1;
            self.report.ended += 1;
            is_over = true;
        }
        let held = reader.held();
        let delay = self.redis.settings.delay;
        let Some(connection) = self.table.get(conn) else { return Fate::Reset };
        *connection = Connection { reader, is_known, is_over, ..*connection };
        if delay > Nanos::ZERO && answers > 0 {
            connection.held_back += 1;
            self.held_back.push_back((at + delay, conn, std::mem::take(&mut out.bytes)));
            return Fate::GoesOn { held };
        }
        out.replies += answers;
        if is_over { Fate::Ends } else { Fate::GoesOn { held } }
    }

    fn closed(&mut self, conn: ConnId) -> bool {
        let Some(connection) = self.table.get(conn) else { return false };
        connection.is_over = true;
        connection.held_back > 0
    }

    fn over_memory(&mut self, _: ConnId, most: u64, out: &mut Outgoing) {
        write(&Err(format!("ERR unfinished commands have more than {most} bytes together")), &mut out.bytes);
    }

    fn gone(&mut self, conn: ConnId) {
        self.table.remove(conn);
    }

    fn next_due(&self, _: Nanos) -> Nanos {
        self.held_back.front().map_or(Nanos::MAX, |(due, ..)| *due)
    }

    fn due(&mut self, now: Nanos, out: &mut Outgoing) -> Option<(ConnId, Fate)> {
        loop {
            self.held_back.front().filter(|(due, ..)| *due <= now)?;
            let (_, conn, bytes) = self.held_back.pop_front()?;
            // One that has ended meanwhile is owed nothing.
            let Some(connection) = self.table.get(conn) else { continue };
            connection.held_back -= 1;
            out.bytes.extend_from_slice(&bytes);
            out.replies += 1;
            let is_last = connection.is_over && connection.held_back == 0;
            return Some((
                conn,
                if is_last { Fate::Ends } else { Fate::GoesOn { held: connection.reader.held() } },
            ));
        }
    }
}
