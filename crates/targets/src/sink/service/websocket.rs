//! WebSocket: each message is sent back, or to all clients.

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Close, ConnId};
use plimsoll_wire::http1::write_response_head;
use plimsoll_wire::websocket::{
    Accept, MessageReader, Opcode, Received, Role, ServerHandshake, ServerStream, UpgradeProgress,
    UpgradeRequest, write_close, write_frame, write_upgrade_response,
};

use super::Ask;
use crate::server::event_loop::EventLoop;
use crate::sink::completion::Sent;
use crate::sink::connection::{CloseMode, Protocol, State};
use crate::sink::encoded_reply::{Address, Persistence};
use crate::sink::event_queue::{Arrival, PendingReply};
use crate::sink::law::Intent;
use crate::sink::request_handler::RequestHandler;
use crate::sink::setup::Tally;
use crate::sink::truth::{Action, RequestId, TruthRow};
use crate::sink::worker::{Worker, unread, unread_limit};

/// Longest message that is read, in bytes.
const LONGEST_MESSAGE: usize = 16 << 20;
/// Messages of one connection that may wait for their answers, lest they fill the memory.
const MOST_OUTSTANDING: u32 = 1 << 16;

/// Bytes for a client of HTTP/2 that does not open its windows: with more the connection ends.
const MOST_WAITING: usize = 64 << 20;

/// Memory that a connection keeps for bytes from and for its stream: idle ones are many.
const ROOM: usize = 4 << 10;

/// Status of a close for a message that the sink does not carry out, for one that it refuses, and at the
/// client's wish without a status (RFC 6455 section 7.4.1, and the registry of IANA).
const INTERNAL_ERROR: u16 = 1011;
const TRY_AGAIN_LATER: u16 = 1013;
const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;

const UPGRADE_REQUIRED: u16 = 426;

/// A server of WebSockets, which does nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebSocket {
    /// Each message goes to all clients, and not to its sender alone. Needs one thread, which has all of
    /// them.
    pub broadcasts: bool,
}

/// A connection that is or becomes a WebSocket.
#[derive(Debug)]
pub(crate) struct WebSocketServer {
    /// Until it has been read.
    handshake: Option<Box<ServerHandshake>>,
    /// The stream of HTTP/2 that carries it, instead of the connection itself.
    stream: Option<Box<ServerStream>>,
    /// Bytes from the stream, and bytes for it.
    content: Vec<u8>,
    frames: Vec<u8>,
    reader: MessageReader,
    message: Vec<u8>,
    /// The answer to the upgrade has been sent, and no close frame since.
    is_open: bool,
    /// The status of the close frame that follows the last answer.
    farewell: Option<u16>,
}

/// Something that came on a connection and is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WebSocketAsk {
    Upgrade {
        /// The proof that its answer has over HTTP/1.1.
        accept: Option<Accept>,
        subprotocol: Option<Box<[u8]>>,
    },
    Message {
        binary: bool,
        payload: Box<[u8]>,
    },
    /// The close frame, or a violation, with the status to answer it with.
    Close(u16),
}

impl WebSocketServer {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            handshake: Some(Box::default()),
            stream: None,
            content: Vec::new(),
            frames: Vec::new(),
            reader: MessageReader::new(Role::Server, LONGEST_MESSAGE),
            message: Vec::new(),
            is_open: false,
            farewell: None,
        })
    }

    /// Makes the server for a connection of HTTP/2, whose settings are written to `out`.
    pub(crate) fn over_http2(out: &mut Vec<u8>) -> Box<Self> {
        let mut stream = Box::new(ServerStream::new());
        stream.start(out);
        Box::new(Self { handshake: None, stream: Some(stream), ..*Self::new() })
    }

    /// Writes what answers `ask`.
    fn write(&mut self, ask: &WebSocketAsk, out: &mut Vec<u8>) {
        match ask {
            WebSocketAsk::Upgrade { accept, subprotocol } => {
                self.is_open = true;
                match (&mut self.stream, accept) {
                    (Some(stream), _) => stream.accept(subprotocol.as_deref(), out),
                    (None, Some(accept)) => write_upgrade_response(accept, subprotocol.as_deref(), out),
                    (None, None) => {}
                }
            }
            WebSocketAsk::Message { binary, payload } => self.write_message(*binary, payload, out),
            WebSocketAsk::Close(code) => self.close(*code, out),
        }
    }

    /// Writes a message, unless a close frame was written.
    /// Bytes that are kept until the client opens its windows of HTTP/2.
    pub(in crate::sink) fn held_bytes(&self) -> usize {
        self.stream.as_ref().map_or(0, |stream| stream.held_bytes())
    }

    fn write_message(&mut self, binary: bool, payload: &[u8], out: &mut Vec<u8>) {
        if self.is_open {
            self.emit(out, |out| write_frame(true, opcode(binary), None, payload, out));
        }
    }

    /// Writes the message that was read last.
    fn write_back(&mut self, binary: bool, out: &mut Vec<u8>) {
        let message = std::mem::take(&mut self.message);
        self.write_message(binary, &message, out);
        self.message = message;
    }

    fn write_pong(&mut self, out: &mut Vec<u8>) {
        if self.is_open {
            let payload: Vec<u8> = self.reader.control().to_vec();
            self.emit(out, |out| write_frame(true, Opcode::Pong, None, &payload, out));
        }
    }

    fn close(&mut self, code: u16, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_open) {
            self.emit(out, |out| write_close(Some(code), "", None, out));
        }
    }

    /// Writes a response in place of an upgrade. The connection is closed afterwards.
    fn refuse(&mut self, status: u16, out: &mut Vec<u8>) {
        match &mut self.stream {
            None => write_refusal(status, out),
            Some(stream) => stream.refuse(None, status, REFUSAL, out),
        }
    }

    /// Writes frames to where they go.
    fn emit(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(stream) = &mut self.stream else { return write(out) };
        write(&mut self.frames);
        stream.send(&self.frames, out);
        self.frames.clear();
        self.frames.shrink_to(ROOM);
    }
}

const fn opcode(binary: bool) -> Opcode {
    if binary { Opcode::Binary } else { Opcode::Text }
}

/// The text of a response that is no WebSocket.
const REFUSAL: &str = "this server speaks WebSocket alone\n";

/// Writes a refusal over HTTP/1.1.
fn write_refusal(status: u16, out: &mut Vec<u8>) {
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let more = match status {
        UPGRADE_REQUIRED => vec![field("upgrade", "websocket"), field("sec-websocket-version", "13")],
        _ => Vec::new(),
    };
    write_response_head(out, status, Some("text/plain"), REFUSAL.len() as u64, true, &more);
    out.extend_from_slice(REFUSAL.as_bytes());
}

impl RequestHandler {
    /// Reads what came on a connection of a server of WebSockets.
    pub(in crate::sink) fn read_websocket(
        &mut self,
        server: &mut WebSocketServer,
        conn: ConnId,
        state: &mut State,
        at: Nanos,
        mut input: &[u8],
        tally: &mut Tally,
    ) {
        if server.stream.is_some() {
            return self.read_stream(server, conn, state, at, input, tally);
        }
        if let Some(handshake) = &mut server.handshake {
            match handshake.read(&mut input) {
                UpgradeProgress::Incomplete => return,
                UpgradeProgress::Refused(status) => {
                    server.refuse(status, &mut self.out);
                    (state.deaf, state.farewell) = (true, Some(CloseMode::Silent));
                    tally.refused += 1;
                    return;
                }
                UpgradeProgress::Upgrade(request) => {
                    server.handshake = None;
                    let UpgradeRequest { accept, subprotocol } = request;
                    let ask = WebSocketAsk::Upgrade { accept: Some(accept), subprotocol };
                    self.take_websocket(server, conn, state, at, ask);
                }
            }
        }
        self.read_messages(server, conn, state, at, input, tally);
    }

    /// Reads what came on a connection of HTTP/2.
    fn read_stream(
        &mut self,
        server: &mut WebSocketServer,
        conn: ConnId,
        state: &mut State,
        at: Nanos,
        input: &[u8],
        tally: &mut Tally,
    ) {
        let Some(stream) = &mut server.stream else { return };
        let mut content = std::mem::take(&mut server.content);
        let (news, result) = stream.receive(input, &mut content, &mut self.out);
        for other in news.others {
            stream.refuse(Some(other), UPGRADE_REQUIRED, REFUSAL, &mut self.out);
            tally.refused += 1;
        }
        let is_full = stream.waiting() > MOST_WAITING;
        if let Some(subprotocol) = news.asked {
            let ask = WebSocketAsk::Upgrade { accept: None, subprotocol };
            self.take_websocket(server, conn, state, at, ask);
        }
        self.read_messages(server, conn, state, at, &content, tally);
        content.clear();
        content.shrink_to(ROOM);
        server.content = content;
        if result.is_err() || is_full {
            (state.deaf, state.mute, state.farewell) = (true, true, Some(CloseMode::Broken));
            tally.refused += 1;
        } else if news.ended && !state.deaf {
            (state.deaf, state.farewell) = (true, Some(CloseMode::Silent));
        }
    }

    /// Reads messages and control frames.
    fn read_messages(
        &mut self,
        server: &mut WebSocketServer,
        conn: ConnId,
        state: &mut State,
        at: Nanos,
        mut input: &[u8],
        tally: &mut Tally,
    ) {
        while !state.deaf {
            if state.outstanding >= MOST_OUTSTANDING {
                (state.deaf, state.farewell) = (true, Some(CloseMode::Silent));
                tally.refused += 1;
                return;
            }
            server.message.clear();
            let ask = match server.reader.next(&mut input, &mut server.message) {
                Ok(Some(Received::Message { binary, .. })) if self.at_once && server.is_open => {
                    // The usual case takes no copy.
                    let ends = self.note_websocket(state);
                    server.write_back(binary, &mut self.out);
                    self.answer_websocket(server, at, 200, ends);
                    continue;
                }
                Ok(Some(Received::Message { binary, .. })) => {
                    WebSocketAsk::Message { binary, payload: server.message.as_slice().into() }
                }
                Ok(Some(Received::Ping)) => {
                    server.write_pong(&mut self.out);
                    continue;
                }
                Ok(Some(Received::Pong)) => continue,
                Ok(Some(Received::Close { code })) => WebSocketAsk::Close(code.unwrap_or(NORMAL)),
                Ok(None) => return,
                Err(error) => {
                    tally.refused += 1;
                    WebSocketAsk::Close(error.close_code())
                }
            };
            if let WebSocketAsk::Close(_) = ask {
                state.deaf = true;
            }
            self.take_websocket(server, conn, state, at, ask);
        }
    }

    /// Answers at once, or later. The close comes behind all answers before it, and is no request.
    fn take_websocket(
        &mut self,
        server: &mut WebSocketServer,
        conn: ConnId,
        state: &mut State,
        at: Nanos,
        ask: WebSocketAsk,
    ) {
        if matches!(ask, WebSocketAsk::Close(_)) && state.outstanding == 0 {
            server.write(&ask, &mut self.out);
            state.farewell = Some(CloseMode::Silent);
            return;
        }
        if let WebSocketAsk::Close(code) = ask {
            // It follows the answer to the last message before it.
            server.farewell = Some(code);
            state.farewell = Some(CloseMode::Silent);
            return;
        }
        let ends = self.note_websocket(state);
        if !self.at_once {
            server.farewell = ends.then_some(GOING_AWAY);
            state.outstanding += 1;
            let to = Address { stream: 0, head_only: false, persistence: Persistence::Keep };
            let (deadline, ask) = (Nanos::MAX, Ask::WebSocket(ask));
            return self.arrivals.push(Arrival { conn, at, deadline, id: None, to, ask });
        }
        server.write(&ask, &mut self.out);
        self.answer_websocket(server, at, status_of(&ask), ends);
    }

    /// Notes a request. Returns `true` if it is the last one, after which a close frame is sent.
    fn note_websocket(&self, state: &mut State) -> bool {
        state.requests += 1;
        let faults = &self.setup.options.faults;
        let ends = faults.go_away_after == Some(state.requests);
        if ends || faults.close_idle_after == Some(state.requests) {
            (state.deaf, state.farewell) = (true, Some(CloseMode::Silent));
        }
        ends
    }

    /// Counts and logs a request whose answer has been written.
    fn answer_websocket(&mut self, server: &mut WebSocketServer, at: Nanos, status: u16, ends: bool) {
        let number = self.setup.count();
        if ends {
            server.close(GOING_AWAY, &mut self.out);
        }
        self.answered += 1;
        if self.logs {
            let status = Some(status);
            let id = RequestId::new(None, number);
            self.rows.push(TruthRow { id, number, recv: at, reply: None, action: Action::Replied, status });
        }
    }
}

/// The status in the log: that of HTTP, or 200 for a message.
const fn status_of(ask: &WebSocketAsk) -> u16 {
    match ask {
        WebSocketAsk::Upgrade { accept: Some(_), .. } => 101,
        _ => 200,
    }
}

impl<B: Backend> Worker<B> {
    /// Carries out what is due on a WebSocket.
    pub(in crate::sink) fn conclude_websocket(&mut self, due: PendingReply) {
        let broadcasts = self.setup.forms.table.broadcasts();
        let work = self.setup.options.work;
        if work > Nanos::ZERO {
            let done = self.writer.backend.now() + work;
            while self.writer.backend.now() < done {}
        }
        let Some(connection) = self.table.get(due.arrival.conn) else { return };
        let Protocol::Upgraded(server) = &mut connection.protocol else { return };
        let Ask::WebSocket(ask) = &due.arrival.ask else { return };
        let is_upgrade = matches!(ask, WebSocketAsk::Upgrade { .. });
        let state = &mut connection.state;
        let out = &mut self.handler.out;
        out.clear();
        let mut ends = false;
        let action = match due.intent {
            Intent::Drop => {
                // Without an answer to its upgrade, nothing else on the connection is answered either.
                state.mute |= is_upgrade;
                Action::Dropped
            }
            Intent::Refuse if !is_upgrade => {
                server.close(TRY_AGAIN_LATER, out);
                ends = true;
                Action::Refused
            }
            Intent::Reset | Intent::Refuse => {
                (state.mute, state.deaf) = (true, true);
                self.writer.close(&mut connection.channel, Close::Reset);
                return self.log(due, Action::Reset);
            }
            Intent::Status(fault) => {
                match is_upgrade {
                    true => server.refuse(fault, out),
                    false => server.close(INTERNAL_ERROR, out),
                }
                ends = true;
                Action::Status(fault)
            }
            Intent::Reply | Intent::Reject | Intent::Garbage => {
                server.write(ask, out);
                Action::Replied
            }
        };
        if ends {
            (state.deaf, state.farewell) = (true, Some(CloseMode::Silent));
        }
        if state.outstanding == 0
            && let Some(code) = server.farewell
        {
            server.close(code, out);
        }
        let status = match action {
            Action::Status(fault) => fault,
            _ => status_of(ask),
        };
        self.writer.transmit(&mut connection.channel, out);
        if action != Action::Replied && !matches!(action, Action::Status(_)) {
            return self.log(due, action);
        }
        if let (true, Action::Replied, WebSocketAsk::Message { binary, payload }) = (broadcasts, action, ask)
        {
            let mut bytes = Vec::new();
            let sender = due.arrival.conn;
            let mut full = Vec::new();
            for id in self.table.ids().into_iter().filter(|id| *id != sender) {
                if let Some(other) = self.table.get(id)
                    && let Protocol::Upgraded(server) = &mut other.protocol
                {
                    bytes.clear();
                    server.write_message(*binary, payload, &mut bytes);
                    self.writer.transmit(&mut other.channel, &bytes);
                    if unread(&self.writer.backend, other) > unread_limit(&self.setup, other) {
                        full.push(id);
                    }
                }
            }
            self.finish(due, action, status, Sent::Whole);
            return self.cut_off(&full);
        }
        self.finish(due, action, status, Sent::Whole);
    }

    /// Cuts those of these clients off that have left too much unread: whoever only listens sends nothing by
    /// which it would be noticed.
    fn cut_off(&mut self, full: &[ConnId]) {
        if full.is_empty() {
            return;
        }
        // It may just not have been sent yet.
        self.flush();
        for id in full {
            if let Some(other) = self.table.get(*id)
                && unread(&self.writer.backend, other) > unread_limit(&self.setup, other)
            {
                self.refuse_to_go_on(*id);
            }
        }
        self.flush();
    }
}
