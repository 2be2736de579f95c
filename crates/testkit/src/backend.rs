//! The simulated backend: a world of its own, with virtual time.
//!
//! Time moves only in [`Backend::wait`], to the next event or to `until`. Work between two waits takes no
//! time, as if the generator's CPU were infinitely fast; a wake-up may overshoot, the first request after a
//! wait may take a while to make, and the generator may stand still ([`SimOptions::overshoot`],
//! [`SimOptions::preparation`], [`SimOptions::stalls`]).

mod messages;
mod streams;

use std::sync::Arc;

use messages::Answers;
use plimsoll_core::{Nanos, Random};
use plimsoll_driver::{
    Backend, Chunk, Close, ConnId, Endpoint, Event, Flush, ListenerId, SocketOptions, SystemError, Wait,
};

use crate::http2::Http2;
use crate::options::SimOptions;
use crate::protocol::{Saying, Speaks};
use crate::request::{self, Recognised};
use crate::server::{Decision, Link, LinkState, Server};
use crate::sockets::{Peer, Ready, Sockets, State, What};
use crate::timeline::Timeline;
use crate::truth::{Action, Truth, TruthLog};

/// Linux error numbers.
const EMFILE: i32 = 24;
const EADDRINUSE: i32 = 98;
const ECONNRESET: i32 = 104;
const ECONNREFUSED: i32 = 111;

/// Header fields without an end come in pieces of this many bytes, one per [`ENDLESS_PERIOD`]: 40 MB/s, so
/// that a client's limit on heads is met within milliseconds of virtual time.
const ENDLESS_PIECE: usize = 4096;
const ENDLESS_PERIOD: Nanos = Nanos::from_micros(100);

/// Bytes that are neither HTTP/1.1 nor, because of the length that they announce, an HTTP/2 frame.
const GARBAGE: &[u8] = b"\x16\x03 no HTTP here\r\n\r\n";

/// Limit of consecutive waits that neither move time nor find an event. Beyond it the caller is in an endless
/// loop.
const IDLE_WAITS_MAX: u32 = 1_000_000;

/// An event that is still to happen in a world.
#[derive(Debug)]
enum Happening {
    /// The answer to a connect call arrives.
    ConnectAnswer { conn: ConnId, error: Option<SystemError> },
    /// A connection attempt arrives at a listener of this backend.
    ConnectRequest { from: ConnId, listener: u32 },
    /// Something arrives at a connection of this backend.
    ToConn { conn: ConnId, message: Message },
    /// Something arrives at a server's machine.
    ToServer { link: usize, message: Message },
    /// A server carries out its decision.
    Act { link: usize, decision: Decision, head_request: bool, entry: usize },
    /// A server carries out its decision about a message of a protocol other than HTTP.
    ActOnMessage { link: usize, decision: Decision, entry: usize, answers: Answers },
    /// A server says something unasked.
    Volunteer { link: usize, saying: Saying },
    /// A server carries out its decision about a stream.
    ActOnStream { link: usize, stream: u32, decision: Decision, head_request: bool, entry: usize },
    /// A server that stood still sends its output on an HTTP/2 connection.
    Say { link: usize },
    /// A server sends more of its endless head, in HTTP/2 on this stream.
    MoreHead { link: usize, stream: u32 },
    /// A connection's send buffer has room again.
    Writable { conn: ConnId },
    /// One of [`SimOptions::timed_actions`], by its number.
    TimedAction(usize),
}

/// A message that travels over a connection.
#[derive(Debug)]
enum Message {
    Data(Vec<u8>),
    Fin,
    Reset,
}

/// A [`Backend`] with virtual time, for one worker. See [`SimOptions`] for its world.
#[derive(Debug)]
pub struct SimBackend {
    options: Arc<SimOptions>,
    truth: TruthLog,
    world: u32,
    now: Nanos,
    preemptions: u64,
    random: Random,
    timeline: Timeline<Happening>,
    sockets: Sockets,
    servers: Vec<Server>,
    links: Vec<Link>,
    /// Listening endpoints by id; `None` after they were closed.
    listeners: Vec<Option<Endpoint>>,
    /// Connections in the order in which they were first written to since the last flush.
    dirty: Vec<ConnId>,
    /// `true` from a wait until something is written: see [`SimOptions::preparation`].
    cold: bool,
    /// Bytes of the event that was reported last, and its number, by which a late reader is caught.
    current: Vec<u8>,
    current_number: u32,
    scratch: Vec<u8>,
    idle_waits: u32,
}

impl SimBackend {
    pub(crate) fn new(options: Arc<SimOptions>, truth: TruthLog, world: u32) -> Self {
        let seed = options.seed.wrapping_add(u64::from(world));
        let mut timeline = Timeline::new();
        for (number, timed_action) in options.timed_actions.iter().enumerate() {
            timeline.push(timed_action.at, Happening::TimedAction(number));
        }
        let servers = options.servers.iter().zip(1..);
        let servers =
            servers.map(|((_, behaviour), stream)| Server::new(behaviour.clone(), Random::new(seed, stream)));
        Self {
            servers: servers.collect(),
            now: options.start,
            preemptions: 0,
            random: Random::new(seed, 0),
            options,
            truth,
            world,
            timeline,
            sockets: Sockets::default(),
            links: Vec::new(),
            listeners: Vec::new(),
            dirty: Vec::new(),
            cold: true,
            current: Vec::new(),
            current_number: 0,
            scratch: Vec::new(),
            idle_waits: 0,
        }
    }

    fn latency(&self) -> Nanos {
        self.options.latency.max(Nanos(1))
    }

    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random.unit() < probability
    }

    // ---- the timeline ------------------------------------------------------------------------------------

    /// Lets everything happen that is due.
    fn happen(&mut self) {
        while let Some((at, happening)) = self.timeline.pop_due(self.now) {
            match happening {
                Happening::ConnectAnswer { conn, error } => self.on_connect_answer(at, conn, error),
                Happening::ConnectRequest { from, listener } => self.on_connect_request(at, from, listener),
                Happening::ToConn { conn, message } => self.on_arrival(at, conn, message),
                Happening::ToServer { link, message } => self.on_server_arrival(at, link, message),
                Happening::Act { link, decision, head_request, entry } => {
                    self.act(at, link, decision, head_request, entry);
                }
                Happening::ActOnMessage { link, decision, entry, answers } => {
                    self.act_on_message(at, link, decision, entry, answers);
                }
                Happening::Volunteer { link, saying } => self.volunteer(at, link, saying),
                Happening::ActOnStream { link, stream, decision, head_request, entry } => {
                    self.act_on_stream(at, link, stream, decision, head_request, entry);
                }
                Happening::Say { link } => self.say(at, link),
                Happening::MoreHead { link, stream } => self.send_more_head(at, link, stream),
                Happening::TimedAction(number) => (self.options.timed_actions[number].run)(at),
                Happening::Writable { conn } => {
                    if let Some(socket) = self.sockets.get_mut(conn) {
                        socket.full = false;
                        self.transmit(at, conn);
                    }
                }
            }
        }
    }

    fn on_connect_answer(&mut self, at: Nanos, conn: ConnId, error: Option<SystemError>) {
        let Some(socket) = self.sockets.get_mut(conn) else { return };
        let lingering = socket.state == State::Lingering;
        match error {
            Some(error) if !lingering => {
                socket.state = State::Ended;
                self.sockets.report(conn, What::ConnectFailed(error));
            }
            Some(_) => self.sockets.release(conn),
            None => {
                if !lingering {
                    socket.state = State::Open;
                    self.sockets.report(conn, What::Connected);
                }
                self.transmit(at, conn);
            }
        }
    }

    fn on_connect_request(&mut self, at: Nanos, from: ConnId, listener: u32) {
        if self.sockets.get(from).is_none() {
            return;
        }
        let open = self.listeners[listener as usize].is_some();
        let error = (!open).then_some(SystemError { errno: ECONNREFUSED });
        if open {
            let accepted = self.sockets.allocate(State::Open, Peer::Conn(from));
            if let Some(socket) = self.sockets.get_mut(from) {
                socket.peer = Peer::Conn(accepted);
            }
            self.sockets.report(accepted, What::Accepted(ListenerId(listener)));
        }
        self.timeline.push(at + self.latency(), Happening::ConnectAnswer { conn: from, error });
    }

    /// Something arrives at this machine.
    fn on_arrival(&mut self, at: Nanos, conn: ConnId, message: Message) {
        let Some(socket) = self.sockets.get_mut(conn) else {
            return;
        };
        match (socket.state, message) {
            (State::Lingering, Message::Data(_)) => {}
            (State::Lingering, Message::Fin | Message::Reset) => self.sockets.release(conn),
            (State::Open, Message::Data(bytes)) => {
                let coalesce = self.options.coalesce;
                match self.sockets.last_received(conn).filter(|_| coalesce) {
                    Some((last, unread)) => {
                        *last = at;
                        unread.extend_from_slice(&bytes);
                    }
                    None => self.sockets.report(conn, What::Received(at, bytes)),
                }
            }
            (State::Open, Message::Fin) => {
                socket.state = State::Ended;
                self.sockets.report(conn, What::Closed);
            }
            (State::Open, Message::Reset) => {
                socket.state = State::Ended;
                self.sockets.report(conn, What::Failed(SystemError { errno: ECONNRESET }));
            }
            (State::Free | State::Connecting | State::Ended, _) => {}
        }
    }

    // ---- sending -----------------------------------------------------------------------------------------

    /// Gives the network the queued bytes of a connection, or a part of them. True if it took anything.
    fn transmit(&mut self, at: Nanos, conn: ConnId) -> bool {
        let probability = self.options.partial_write;
        let Some(socket) = self.sockets.get_mut(conn) else { return false };
        let written = std::mem::take(&mut socket.outbox);
        socket.queued.extend_from_slice(&written);
        socket.dirty = false;
        if socket.peer == Peer::Nobody || socket.state == State::Connecting || socket.full {
            return false;
        }
        let (queued, peer) = (socket.queued.len(), socket.peer);
        if queued == 0 {
            self.finish_lingering(at, conn);
            return false;
        }
        let mut take = queued;
        if queued > 1 && self.chance(probability) {
            take = 1 + self.random.below(queued as u64 - 1) as usize;
        }
        let Some(socket) = self.sockets.get_mut(conn) else { return false };
        let rest = socket.queued.split_off(take);
        let bytes = std::mem::replace(&mut socket.queued, rest);
        socket.full = take < queued;
        if socket.full {
            self.timeline.push(at + self.latency() * 2, Happening::Writable { conn });
        }
        self.send(at, peer, Message::Data(bytes));
        self.finish_lingering(at, conn);
        true
    }

    /// A connection that its owner has closed is gone when everything is sent.
    fn finish_lingering(&mut self, at: Nanos, conn: ConnId) {
        if let Some(socket) = self.sockets.get(conn)
            && socket.state == State::Lingering
            && socket.queued.is_empty()
        {
            let peer = socket.peer;
            self.send(at, peer, Message::Fin);
            self.sockets.release(conn);
        }
    }

    fn send(&mut self, at: Nanos, peer: Peer, message: Message) {
        match peer {
            Peer::Nobody => {}
            Peer::Server(link) => {
                self.timeline.push(at + self.latency(), Happening::ToServer { link, message });
            }
            Peer::Conn(conn) => self.send_to_conn(at, conn, message),
        }
    }

    /// Sends towards a connection of this backend, cut into segments.
    fn send_to_conn(&mut self, at: Nanos, conn: ConnId, message: Message) {
        let (gap, most) = (self.options.segment_gap, self.options.segment_bytes.max(1));
        let Some(socket) = self.sockets.get_mut(conn) else { return };
        let mut arrives = socket.arrives_from.max(at + self.options.latency.max(Nanos(1)));
        let mut push = |message| {
            self.timeline.push(arrives, Happening::ToConn { conn, message });
            arrives += gap;
        };
        match message {
            Message::Data(bytes) => {
                bytes.chunks(most).for_each(|segment| push(Message::Data(segment.to_vec())));
            }
            other => push(other),
        }
        socket.arrives_from = arrives;
    }

    // ---- servers -----------------------------------------------------------------------------------------

    fn connect_to_server(&mut self, server: usize) -> ConnId {
        let established = self.now + self.latency() * 2;
        let conn = self.sockets.allocate(State::Connecting, Peer::Nobody);
        let faults = &self.servers[server].behaviour.faults;
        let (refuse, silent, slow) = (faults.refuse_connect, faults.silent_connect, faults.slow_accept);
        if self.servers[server].chance(silent) {
            return conn;
        }
        let mut error = None;
        if self.servers[server].chance(refuse) {
            error = Some(SystemError { errno: ECONNREFUSED });
        } else {
            let slow = slow.filter(|slow| self.servers[server].chance(slow.probability));
            let reads_from = slow.map_or(Nanos::ZERO, |slow| established + slow.delay);
            let serial = self.links.len() as u64;
            let mut link = Link::new(server, conn, serial, reads_from);
            link.protocol = self.servers[server].behaviour.speaks.as_ref().map(Speaks::begin);
            self.links.push(link);
            if let Some(socket) = self.sockets.get_mut(conn) {
                socket.peer = Peer::Server(self.links.len() - 1);
            }
        }
        self.timeline.push(established, Happening::ConnectAnswer { conn, error });
        conn
    }

    fn on_server_arrival(&mut self, at: Nanos, index: usize, message: Message) {
        let link = &mut self.links[index];
        if at < link.reads_from {
            // Not accepted yet: the data wait in the kernel's buffer, in order.
            self.timeline.push(link.reads_from, Happening::ToServer { link: index, message });
            return;
        }
        match (link.state, message) {
            (LinkState::Gone, _) => {}
            (_, Message::Fin | Message::Reset) => {
                link.state = LinkState::Gone;
                link.inbox = Vec::new();
                link.http2 = None;
            }
            (LinkState::Closed, Message::Data(_)) => {
                let client = link.client;
                self.send_to_conn(at, client, Message::Reset);
            }
            (LinkState::Open | LinkState::Silent, Message::Data(bytes)) => {
                link.inbox.extend_from_slice(&bytes);
                if link.protocol.is_some() {
                    self.take_messages(at, index);
                } else if self.speaks_http2(index) {
                    self.take_streams(at, index);
                } else {
                    self.take_requests(at, index);
                }
            }
        }
    }

    /// Takes every whole request out of a link's inbox, and lets the server decide.
    fn take_requests(&mut self, at: Nanos, index: usize) {
        loop {
            let link = &mut self.links[index];
            let (recognised, rejected) = match request::recognise(&link.inbox) {
                Ok(None) => return,
                Ok(Some(recognised)) => (recognised, false),
                Err(request::NotARequest) => {
                    let length = link.inbox.len();
                    (Recognised { length, body: 0, head_request: false, close: true }, true)
                }
            };
            let bytes: Vec<u8> = link.inbox.drain(..recognised.length).collect();
            let mut decision = self.servers[link.server].decide(link, at, recognised.close);
            if rejected && decision.action != Action::Ignore {
                decision.action = Action::Reject;
            }
            let entry = self.note_request(at, index, decision.action, bytes);
            if !matches!(decision.action, Action::Ignore | Action::Drop) {
                let head_request = recognised.head_request;
                let act = Happening::Act { link: index, decision, head_request, entry };
                self.timeline.push(decision.at, act);
            }
        }
    }

    /// Logs the request that a link received last.
    fn note_request(&mut self, at: Nanos, index: usize, action: Action, request: Vec<u8>) -> usize {
        let link = &self.links[index];
        self.truth.push(Truth {
            world: self.world,
            conn: link.serial,
            index: link.received - 1,
            received: at,
            replied: None,
            action,
            request: if self.options.keep_requests { request } else { Vec::new() },
        })
    }

    /// Sends what a server has decided to send, and ends the connection if it has decided that.
    fn respond(&mut self, at: Nanos, index: usize, bytes: Vec<u8>, end: Option<Message>) {
        let link = &mut self.links[index];
        if end.is_some() {
            link.state = LinkState::Closed;
        }
        let client = link.client;
        let delay = self.servers[link.server].behaviour.faults.close_delay;
        self.send_to_conn(at, client, Message::Data(bytes));
        if let Some(end) = end {
            self.send_to_conn(at + delay, client, end);
        }
    }

    /// A server carries out its decision, unless the connection has ended meanwhile.
    fn act(&mut self, at: Nanos, index: usize, decision: Decision, head_request: bool, entry: usize) {
        let link = &mut self.links[index];
        if matches!(link.state, LinkState::Gone | LinkState::Closed) {
            return;
        }
        self.truth.note_reply(self.world, entry, at);
        let answer = &self.servers[link.server].behaviour.answer;
        let (bytes, end) = match decision.action {
            Action::Reply(status) => {
                let bytes = answer.render(status, head_request, decision.announce);
                (bytes, decision.close.then_some(Message::Fin))
            }
            Action::Reset => (Vec::new(), Some(Message::Reset)),
            Action::Close | Action::Refuse => (Vec::new(), Some(Message::Fin)),
            Action::Truncate => (answer.render_truncated(), Some(Message::Fin)),
            Action::Excess => (answer.render_excess(), decision.close.then_some(Message::Fin)),
            Action::Garbage => (GARBAGE.to_vec(), decision.close.then_some(Message::Fin)),
            Action::Reject => (answer.render(400, false, true), Some(Message::Fin)),
            Action::EndlessHead => {
                self.timeline.push(at + ENDLESS_PERIOD, Happening::MoreHead { link: index, stream: 0 });
                (b"HTTP/1.1 200 Simulated\r\n".to_vec(), None)
            }
            Action::Drop | Action::Ignore => (Vec::new(), None),
        };
        self.respond(at, index, bytes, end);
    }

    fn send_more_head(&mut self, at: Nanos, index: usize, stream: u32) {
        let link = &self.links[index];
        if link.state == LinkState::Gone || self.sockets.get(link.client).is_none() {
            return;
        }
        let client = link.client;
        let piece = if stream > 0 {
            Http2::more_head(stream, ENDLESS_PIECE)
        } else {
            let mut field = b"x-endless: ".to_vec();
            field.resize(ENDLESS_PIECE - 2, b'a');
            field.extend_from_slice(b"\r\n");
            field
        };
        self.send_to_conn(at, client, Message::Data(piece));
        self.timeline.push(at + ENDLESS_PERIOD, Happening::MoreHead { link: index, stream });
    }

    // ---- waiting -----------------------------------------------------------------------------------------

    /// A blocked thread comes back late, and not at all while it is stopped. One that was to poll from
    /// `spin_at` on has slept until then, so that a wake-up which comes before the end of that is in time.
    fn oversleep(&mut self, began: Nanos, spin_at: Nanos) {
        if began < spin_at {
            self.now = self.now.max(self.now.min(spin_at) + self.options.overshoot);
        }
        while let Some(stall) = self.options.stalls.iter().find(|stall| stall.holds(self.now)) {
            self.now = stall.end();
        }
        self.happen();
    }

    fn note_idle(&mut self, moved: bool) {
        if moved || self.sockets.ready() > 0 {
            self.idle_waits = 0;
            return;
        }
        self.idle_waits += 1;
        assert!(self.idle_waits < IDLE_WAITS_MAX, "time stands still at {:?}: endless loop", self.now);
    }
}

impl Backend for SimBackend {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn unix(&self) -> Nanos {
        self.options.start_unix + self.now.since(self.options.start)
    }

    fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// The options change nothing in the simulation.
    fn connect(&mut self, to: &Endpoint, _options: &SocketOptions) -> Result<ConnId, SystemError> {
        let none_left = self.sockets.open() >= self.options.descriptors;
        if none_left || self.chance(self.options.no_descriptor) {
            return Err(SystemError { errno: EMFILE });
        }
        if let Some(server) = self.options.servers.iter().position(|(endpoint, _)| endpoint == to) {
            return Ok(self.connect_to_server(server));
        }
        let conn = self.sockets.allocate(State::Connecting, Peer::Nobody);
        match self.listeners.iter().position(|listener| listener.as_ref() == Some(to)) {
            Some(listener) => {
                let request = Happening::ConnectRequest { from: conn, listener: listener as u32 };
                self.timeline.push(self.now + self.latency(), request);
            }
            None => {
                let error = Some(SystemError { errno: ECONNREFUSED });
                let answer = Happening::ConnectAnswer { conn, error };
                self.timeline.push(self.now + self.latency() * 2, answer);
            }
        }
        Ok(conn)
    }

    fn listen(&mut self, on: &Endpoint, reuse_port: bool) -> Result<(ListenerId, Endpoint), SystemError> {
        let id = self.listeners.len() as u32;
        let mut bound = on.clone();
        if let Endpoint::Tcp(address) = &mut bound
            && address.port() == 0
        {
            // Each listener has its own: the first port of the dynamic range (RFC 6335) and up.
            address.set_port(49_152 + id as u16);
        }
        let taken = self.options.servers.iter().any(|(endpoint, _)| *endpoint == bound)
            || (!reuse_port && self.listeners.contains(&Some(bound.clone())));
        if taken {
            return Err(SystemError { errno: EADDRINUSE });
        }
        self.listeners.push(Some(bound.clone()));
        Ok((ListenerId(id), bound))
    }

    fn close_listener(&mut self, listener: ListenerId) {
        if let Some(endpoint) = self.listeners.get_mut(listener.0 as usize) {
            *endpoint = None;
        }
    }

    fn outbox(&mut self, conn: ConnId) -> &mut Vec<u8> {
        if std::mem::take(&mut self.cold) {
            self.now += self.options.preparation;
        }
        match self.sockets.owned(conn) {
            Some(socket) => {
                if !std::mem::replace(&mut socket.dirty, true) {
                    self.dirty.push(conn);
                }
                &mut socket.outbox
            }
            None => {
                self.scratch.clear();
                &mut self.scratch
            }
        }
    }

    fn send_shared(&mut self, conn: ConnId, body: Arc<[u8]>) {
        let written = std::mem::take(self.outbox(conn));
        if let Some(socket) = self.sockets.owned(conn) {
            socket.queued.extend_from_slice(&written);
            socket.queued.extend_from_slice(&body);
        }
    }

    fn unsent(&self, conn: ConnId) -> usize {
        self.sockets.get(conn).map_or(0, |socket| socket.outbox.len() + socket.queued.len())
    }

    fn flush(&mut self) -> Flush {
        let first = self.now;
        let (probability, interruption) = self.options.interruption;
        let mut sends = 0;
        for conn in std::mem::take(&mut self.dirty) {
            if !self.transmit(self.now, conn) {
                continue;
            }
            sends += 1;
            self.now += self.options.send_time;
            if self.chance(probability) {
                self.now += interruption;
                self.preemptions += 1;
            }
        }
        Flush { first, last: self.now, sends }
    }

    fn close(&mut self, conn: ConnId, how: Close) {
        let Some(socket) = self.sockets.owned(conn) else { return };
        let (peer, ended) = (socket.peer, socket.state == State::Ended);
        if how == Close::AfterSend && !ended {
            socket.state = State::Lingering;
            self.sockets.forget_ready(conn);
            self.transmit(self.now, conn);
            return;
        }
        if !ended {
            let message = if how == Close::Reset { Message::Reset } else { Message::Fin };
            self.send(self.now, peer, message);
        }
        self.sockets.release(conn);
    }

    fn poll_until(&mut self, at: Nanos) -> Nanos {
        self.now = self.now.max(at);
        self.now
    }

    fn wait(&mut self, wait: Wait) -> Option<Nanos> {
        let began = self.now;
        self.cold = true;
        self.happen();
        let want = wait.want.max(1) as usize;
        let floor_at = if want == 1 { began } else { began + wait.floor };
        let spin_at = if wait.spin == Nanos::ZERO { Nanos::MAX } else { wait.until - wait.spin };
        let enough_at = floor_at.min(spin_at);
        loop {
            let ready = self.sockets.ready();
            if ready >= want || (ready > 0 && self.now >= enough_at) || self.now >= wait.until {
                break;
            }
            let enough = if ready > 0 { enough_at } else { Nanos::MAX };
            let next = self.timeline.next_at().min(wait.until).min(enough);
            assert!(next != Nanos::MAX, "nothing will ever happen again after {:?}", self.now);
            self.now = next;
            self.happen();
        }
        let asked = wait.until.min(spin_at);
        let sleeps = began < asked && self.now >= asked;
        if self.now > began {
            self.oversleep(began, spin_at);
        }
        self.note_idle(self.now > began);
        sleeps.then(|| self.options.overshoot)
    }

    fn next_event(&mut self) -> Option<Event> {
        let Ready { conn, what } = self.sockets.next_ready()?;
        self.current_number = self.current_number.wrapping_add(1);
        self.current.clear();
        let at = self.now;
        Some(match what {
            What::Connected => Event::Connected { conn, at },
            What::ConnectFailed(error) => {
                self.sockets.release(conn);
                Event::ConnectFailed { conn, at, error }
            }
            What::Accepted(listener) => Event::Accepted { listener, conn, at },
            What::Received(arrived, bytes) => {
                self.current = bytes;
                let data =
                    Chunk { buffer: self.current_number, offset: 0, length: self.current.len() as u32 };
                let stamped = self.options.receive_stamps;
                let at = if stamped { arrived - self.options.stamp_error } else { at };
                Event::Received { conn, at, stamped, data }
            }
            What::Closed => Event::Closed { conn, at },
            What::Failed(error) => Event::Failed { conn, at, error },
        })
    }

    fn bytes(&self, data: Chunk) -> &[u8] {
        assert_eq!(
            data.buffer, self.current_number,
            "bytes of an event are read after the next one was taken"
        );
        &self.current[data.offset as usize..][..data.length as usize]
    }
}
