//! The connections of a thread, and what they are owed.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::{Nanos, Random};
use plimsoll_driver::ConnId;
use plimsoll_targets::Lies;
use plimsoll_targets::server::{Fate, Handler, LoopCounts, Outgoing, Protocol, Table};

use super::LieKind;
use super::request::RequestReader;
use super::store::{Answer, Refusal, Store, write};

/// A server's content and settings, shared by its threads.
#[derive(Debug)]
pub(super) struct Redis {
    /// Password that connections have to give.
    pub(super) password: Option<String>,
    pub(super) lie: Option<Lies<LieKind>>,
    pub(super) seed: u64,
    pub(super) store: Mutex<Store>,
}

/// Counts of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) connections: u64,
    pub(super) commands: u64,
    pub(super) refused: u64,
    pub(super) lies: u64,
    pub(super) ended: u64,
}

plimsoll_targets::add_fields!(Report { connections, commands, refused, lies, ended });

/// The connections of a thread.
#[derive(Debug)]
pub(super) struct Connections {
    redis: Arc<Redis>,
    table: Table<Connection>,
    random: Random,
    report: Report,
}

#[derive(Debug, Default)]
struct Connection {
    reader: RequestReader,
    course: Course,
}

/// State of a connection, by what its client has said.
#[derive(Clone, Copy, Debug, Default)]
struct Course {
    /// Set once it has given the password.
    is_known: bool,
    /// Set once it has said QUIT.
    is_over: bool,
}

impl Protocol for Redis {
    type Handler = Connections;
    type Report = Report;

    fn handler(self: &Arc<Self>) -> Connections {
        Connections {
            redis: Arc::clone(self),
            table: Table::default(),
            random: Random::new(self.seed, 0),
            report: Report::default(),
        }
    }

    fn report(handler: Connections, counts: LoopCounts) -> Report {
        let connections = counts.accepted.iter().sum();
        let ended = handler.report.ended + counts.unread + counts.over_memory;
        Report { connections, ended, ..handler.report }
    }
}

impl Connections {
    /// Answers a command of a connection.
    fn answer(&mut self, course: &mut Course, now: Nanos, words: &[&[u8]]) -> Result<Answer, Refusal> {
        let name = words[0].to_ascii_uppercase();
        match (name.as_slice(), &words[1..], &self.redis.password) {
            (b"QUIT", ..) => course.is_over = true,
            (b"AUTH", [password] | [_, password], Some(wanted)) => {
                course.is_known = *password == wanted.as_bytes();
                if !course.is_known {
                    return Err("WRONGPASS invalid username-password pair or user is disabled.".to_owned());
                }
            }
            (b"AUTH", [_], None) => {
                let text = "ERR AUTH <password> called without any password configured for the default user.";
                return Err(text.to_owned());
            }
            (_, _, Some(_)) if !course.is_known => return Err("NOAUTH Authentication required.".to_owned()),
            (b"SELECT", [b"0"], _) => {}
            (b"SELECT", [_], _) => return Err("ERR DB index is out of range".to_owned()),
            _ => {
                let answer =
                    self.redis.store.lock().unwrap_or_else(PoisonError::into_inner).carry_out(now, words)?;
                return Ok(self.told(answer, name == b"GET"));
            }
        }
        Ok(Answer::Status("OK"))
    }

    /// The answer to a command, or another one where a GET is to be answered wrongly.
    fn told(&mut self, answer: Answer, is_get: bool) -> Answer {
        match (answer, self.redis.lie) {
            (Answer::Value(Some(value)), Some(lie)) if is_get && self.random.unit() < lie.share => {
                self.report.lies += 1;
                Answer::Value(match lie.kind {
                    LieKind::Missing => None,
                    LieKind::Wrong => Some([&b"wrong "[..], &value].concat()),
                })
            }
            (answer, _) => answer,
        }
    }
}

impl Handler for Connections {
    fn accepted(&mut self, conn: ConnId, _: usize) {
        self.table.insert(conn, Connection::default());
    }

    fn received(&mut self, conn: ConnId, at: Nanos, bytes: &[u8], out: &mut Outgoing) -> Fate {
        let Some(connection) = self.table.get(conn) else { return Fate::Reset };
        let Connection { mut reader, mut course } = std::mem::take(connection);
        let read = reader.read(bytes, |words| {
            if !course.is_over {
                let answer = self.answer(&mut course, at, words);
                self.report.commands += 1;
                self.report.refused += u64::from(answer.is_err());
                write(&answer, &mut out.bytes);
                out.replies += 1;
            }
        });
        if let Err(why) = read {
            write(&Err(format!("ERR {why}")), &mut out.bytes);
            self.report.ended += 1;
            return Fate::Ends;
        }
        let held = reader.held();
        if let Some(connection) = self.table.get(conn) {
            *connection = Connection { reader, course };
        }
        if course.is_over { Fate::Ends } else { Fate::GoesOn { held } }
    }

    fn over_memory(&mut self, _: ConnId, most: u64, out: &mut Outgoing) {
        write(&Err(format!("ERR unfinished commands have more than {most} bytes together")), &mut out.bytes);
    }

    fn gone(&mut self, conn: ConnId) {
        self.table.remove(conn);
    }
}
