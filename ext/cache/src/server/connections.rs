//! The connections of one thread, to both ports.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;
use plimsoll_targets::server::{Fate, Handler, LoopCounts, Outgoing, Protocol, Table};

use super::http::{Caller, HttpDesk};
use super::request_handler::RequestHandler;
use super::setup::{CacheReport, Setup};
use crate::wire::RequestServer;

/// Listeners by their index: the binary port, and the HTTP port if there is one.
const FRAMES: usize = 0;
const HTTP: usize = 1;

/// Connections of one thread.
#[derive(Debug)]
pub(crate) struct Connections {
    table: Table<Connection>,
    frames: RequestHandler,
    http: HttpDesk,
    /// Connections that were ended because of bytes that the client sent.
    refused: u64,
}

/// The protocol of a connection.
#[derive(Debug)]
enum Connection {
    Frames(RequestServer),
    Http(Box<Caller>),
}

impl Handler for Connections {
    fn accepted(&mut self, conn: ConnId, listener: usize) {
        let connection = match listener {
            HTTP => Connection::Http(Box::default()),
            _ => Connection::Frames(RequestServer::new()),
        };
        self.table.insert(conn, connection);
    }

    fn received(&mut self, conn: ConnId, at: Nanos, bytes: &[u8], out: &mut Outgoing) -> Fate {
        let (is_sound, goes_on, held) = match self.table.get(conn) {
            Some(Connection::Frames(server)) => {
                let is_sound = self.frames.read(server, at, bytes, out).is_ok();
                (is_sound, is_sound, server.held_bytes())
            }
            Some(Connection::Http(caller)) => {
                let read = self.http.read(caller, at, bytes, &mut out.bytes);
                (read.is_ok(), read == Ok(true), caller.held_bytes())
            }
            None => return Fate::Ends,
        };
        self.refused += u64::from(!is_sound);
        if goes_on { Fate::GoesOn { held } } else { Fate::Ends }
    }

    fn over_memory(&mut self, conn: ConnId, most: u64, out: &mut Outgoing) {
        match self.table.get(conn) {
            Some(Connection::Http(_)) => HttpDesk::refuse_for_memory(most, &mut out.bytes),
            _ => self.frames.refuse_for_memory(most, &mut out.bytes),
        }
    }

    fn gone(&mut self, conn: ConnId) {
        self.table.remove(conn);
    }
}

impl Protocol for Setup {
    type Handler = Connections;
    type Report = CacheReport;

    fn handler(self: &Arc<Self>) -> Connections {
        Connections {
            table: Table::default(),
            frames: RequestHandler::new(self),
            http: HttpDesk::new(Arc::clone(self)),
            refused: 0,
        }
    }

    fn report(handler: Connections, counts: LoopCounts) -> CacheReport {
        let mut report = handler.frames.finish();
        report += handler.http.finish();
        let accepted = |listener: usize| counts.accepted.get(listener).copied().unwrap_or_default();
        report.connections = accepted(FRAMES);
        report.http_connections = accepted(HTTP);
        report.refused = handler.refused + counts.unread;
        report.over_memory = counts.over_memory;
        report
    }
}
