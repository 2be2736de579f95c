//! The fabric of a NATS broker.
//!
//! The client needs an async runtime: it has a single-threaded one on a thread of its own. Everything else
//! of a fleet is synchronous, and communicates with it through channels.
//!
//! That client buffers whatever a broker sends: a line without an end, or a message as long as the broker
//! says it is. So its thread looks ten times a second at how much has come that is no message yet, or one
//! that nobody has taken, and ends the connection for good beyond [`LARGEST_DEBT`].

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use futures_util::StreamExt as _;
use plimsoll_core::Nanos;
use plimsoll_system::{clock, usage};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{interval, timeout};

use crate::credentials::Credentials;
use crate::fabric::{Delivery, Fabric};

/// Interval between two pings; after two without an answer a connection is given up. The client's own
/// default is a minute.
const PING: Duration = Duration::from_secs(2);
/// Longest wait for the broker at the beginning.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest wait between two attempts to connect again.
const RECONNECT: Duration = Duration::from_millis(500);
/// Messages that may be queued for us. Beyond that the client drops them, which is an event.
const WAITING: usize = 65_536;
/// Bytes of messages that may be queued for us behind it. Beyond that they are dropped, too.
const WAITING_BYTES: usize = 256 << 20;
/// Bytes that a broker may have sent beyond the messages that we have taken from it. A message of a fleet has
/// 1 MiB at most, the limit of brokers that are not told otherwise; many may come at once.
const LARGEST_DEBT: u64 = 64 << 20;
/// Bytes by which the memory of this process may grow while it waits for the first words of a broker. The
/// client does not count yet what comes then, and nothing else goes on.
const LARGEST_GROWTH: u64 = 64 << 20;
/// Interval between two looks at them.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes between two looks that are no debt: answers to our pings, and news of the broker's own.
const FORGIVEN: u64 = 4096;
/// Bytes of a message beside its subjects and its payload, at most.
const OVERHEAD: u64 = 64;
/// Bytes of a refusal that are kept.
const LONGEST_REFUSAL: usize = 1000;
/// Longest wait at the end for the last published messages.
const FAREWELL: Duration = Duration::from_secs(2);

/// Address of a broker, and the credentials for it.
#[derive(Clone, Debug)]
pub struct NatsAddress {
    /// `nats://HOST:PORT`, or `tls://HOST:PORT`.
    pub url: String,
    /// Our key, if the broker wants one.
    pub credentials: Option<Credentials>,
    /// Certificates of authorities in PEM, in place of the system's.
    pub authorities: Option<PathBuf>,
    /// Name of the connection, in the broker's monitoring.
    pub name: String,
}

/// A message from the broker, or a change of its connection.
#[derive(Debug)]
pub enum NatsEvent {
    /// A message.
    Delivery(Delivery),
    /// News of the connection.
    Link(LinkEvent),
}

/// News of the connection to a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The connection was made, or made again.
    Connected,
    /// The connection was lost, and is being made again.
    Disconnected,
    /// Messages were dropped, because we did not take them fast enough.
    Dropped,
    /// The broker has refused something, such as a message on a subject that is not permitted.
    Refused(String),
    /// The broker has sent so many bytes that are no message that anybody waits for. The connection has ended
    /// for good: see [`NatsLink::flooded`].
    Flooded(u64),
}

/// A broker that cannot be reached, or rejects our credentials.
#[derive(Debug)]
pub enum LinkError {
    /// The thread cannot be started.
    Thread(io::Error),
    /// No answer.
    Unreachable {
        /// The address.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The broker does not know our key.
    Unauthorized {
        /// The address.
        url: String,
    },
    /// The broker sends more than there can be to say.
    Flooded {
        /// The address.
        url: String,
        /// Bytes that were no message yet, or one that nobody had taken.
        bytes: u64,
    },
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(error) => write!(f, "cannot start the thread of the broker's client: {error}"),
            Self::Unreachable { url, reason } => {
                write!(f, "no NATS broker at {}: {reason}", url.escape_debug())
            }
            Self::Unauthorized { url } => {
                write!(f, "the NATS broker at {} does not accept these credentials", url.escape_debug())
            }
            Self::Flooded { url, bytes } => {
                let (url, mebibytes) = (url.escape_debug(), bytes >> 20);
                write!(f, "the NATS broker at {url} sends more than a fleet does: {mebibytes} MiB at once")
            }
        }
    }
}

impl std::error::Error for LinkError {}

impl LinkError {
    /// Remedy.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Thread(_) => "see how many threads the user may have: `ulimit -u`",
            Self::Unreachable { .. } => {
                "`plimsoll fleet up` starts a broker; an address is nats://HOST:4222, or tls://HOST:4222"
            }
            Self::Unauthorized { .. } => {
                "name the file with the key that the broker knows: --creds FILE; `fleet up` writes them"
            }
            Self::Flooded { .. } => {
                "see whether this is a NATS broker, and whose: `plimsoll fleet up` starts one"
            }
        }
    }
}

/// An order to the thread of the client.
enum Command {
    Publish(String, Vec<u8>),
    Subscribe(String, Sender<()>),
    /// Publish all earlier messages, and end.
    Close(Sender<()>),
}

/// A connection to a broker, which is made again whenever it breaks.
#[derive(Debug)]
pub struct NatsLink {
    url: String,
    commands: UnboundedSender<Command>,
    events: Inlet,
    is_connected: Arc<AtomicBool>,
    /// Patterns that were subscribed to.
    subscribed: BTreeSet<String>,
}

impl NatsLink {
    /// Connects to a broker.
    ///
    /// # Errors
    /// There is none within five seconds, or it rejects our credentials.
    pub fn connect(address: NatsAddress) -> Result<Self, LinkError> {
        let (commands, orders) = unbounded_channel();
        let (events, heard) = queue(WAITING_BYTES);
        let (told, began) = channel();
        let url = address.url.clone();
        let is_connected = Arc::new(AtomicBool::new(false));
        let state = Arc::clone(&is_connected);
        let thread = thread::Builder::new().name("fleet".to_owned());
        let started = thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(serve(address, orders, events, told, state)),
                Err(error) => drop(told.send(Err(LinkError::Thread(error)))),
            }
        });
        started.map_err(LinkError::Thread)?;
        let gone = || LinkError::Thread(io::Error::other("it has ended"));
        began.recv().map_err(|_| gone())??;
        Ok(Self { url, commands, events: heard, is_connected, subscribed: BTreeSet::new() })
    }

    /// The error behind [`LinkEvent::Flooded`].
    pub fn flooded(&self, bytes: u64) -> LinkError {
        LinkError::Flooded { url: self.url.clone(), bytes }
    }

    /// Waits for the next message; `None` after this time without one.
    pub fn receive(&self, patience: Nanos) -> Option<NatsEvent> {
        match self.events.receive(Duration::from_nanos(patience.0)) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The thread ends with us only. Without it all that remains is to wait.
                clock::sleep_until(clock::monotonic() + patience);
                None
            }
        }
    }

    /// Returns `true` while there is a connection.
    pub fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Relaxed)
    }

    /// Publishes all pending messages, and ends the connection.
    pub fn close(self) {
        let (done, closed) = channel();
        if self.commands.send(Command::Close(done)).is_ok() {
            // The thread confirms in any case, or has ended.
            let _ = closed.recv_timeout(FAREWELL + FAREWELL);
        }
    }
}

impl Fabric for NatsLink {
    fn publish(&mut self, subject: &str, payload: Vec<u8>) {
        // Senders repeat a message until it is confirmed. One that is queued meanwhile would only be stale.
        if self.is_connected() {
            let _ = self.commands.send(Command::Publish(subject.to_owned(), payload));
        }
    }

    fn subscribe(&mut self, pattern: &str) {
        // A second subscription would deliver each message twice.
        if !self.subscribed.insert(pattern.to_owned()) {
            return;
        }
        let (done, subscribed) = channel();
        if self.commands.send(Command::Subscribe(pattern.to_owned(), done)).is_ok() {
            let _ = subscribed.recv_timeout(CONNECT);
        }
    }
}

/// Bytes that came and are not accounted for.
#[derive(Debug, Default)]
struct Debt {
    /// Bytes that had come at the last look, and those of them that were taken as messages.
    before: (u64, u64),
    bytes: u64,
}

impl Debt {
    /// Looks again: `came` bytes have come, and `taken` of them were messages that were taken. Gives those
    /// that are owed.
    fn look(&mut self, came: u64, taken: u64) -> u64 {
        let before = std::mem::replace(&mut self.before, (came, taken));
        let paid = taken - before.1 + FORGIVEN;
        self.bytes = (self.bytes + came - before.0).saturating_sub(paid);
        self.bytes
    }
}

/// Ends when the memory of this process has grown by more than it may while it connects; the bytes.
async fn growth() -> u64 {
    let (began, mut looks) = (usage::rss_bytes(), interval(LOOK));
    loop {
        looks.tick().await;
        let grown = began.zip(usage::rss_bytes()).map_or(0, |(began, now)| now.saturating_sub(began));
        if grown > LARGEST_GROWTH {
            return grown;
        }
    }
}

/// The first bytes of a text.
fn front(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST_REFUSAL));
    text
}

/// A queue of events that has no more than `most` bytes.
fn queue(most: usize) -> (Outlet, Inlet) {
    let (sender, receiver) = channel();
    let queued = Arc::new(AtomicUsize::new(0));
    let is_full = Arc::new(AtomicBool::new(false));
    let outlet = Outlet { sender, queued: Arc::clone(&queued), most, is_full };
    (outlet, Inlet { receiver, queued })
}

/// The end of the queue into which the client's thread puts events.
#[derive(Clone, Debug)]
struct Outlet {
    sender: Sender<NatsEvent>,
    /// Bytes that are queued.
    queued: Arc<AtomicUsize>,
    most: usize,
    /// Set while events are dropped, which is told once.
    is_full: Arc<AtomicBool>,
}

impl Outlet {
    /// Queues an event, or drops it if there is no room; news that matter for all that follows always have
    /// some. Nobody may be there to hear it.
    // Relaxed: one thread adds, and the channel publishes the event.
    fn tell(&self, event: NatsEvent) {
        let is_needed = matches!(
            event,
            NatsEvent::Link(LinkEvent::Connected | LinkEvent::Disconnected | LinkEvent::Flooded(_))
        );
        let bytes = bytes(&event);
        let has_room = self.queued.load(Ordering::Relaxed) + bytes <= self.most;
        let event = match has_room || is_needed {
            true => event,
            false if self.is_full.swap(true, Ordering::Relaxed) => return,
            false => NatsEvent::Link(LinkEvent::Dropped),
        };
        if has_room {
            self.is_full.store(false, Ordering::Relaxed);
        }
        self.queued.fetch_add(self::bytes(&event), Ordering::Relaxed);
        let _ = self.sender.send(event);
    }
}

/// The other end.
#[derive(Debug)]
struct Inlet {
    receiver: Receiver<NatsEvent>,
    queued: Arc<AtomicUsize>,
}

impl Inlet {
    fn receive(&self, patience: Duration) -> Result<NatsEvent, RecvTimeoutError> {
        let event = self.receiver.recv_timeout(patience)?;
        self.queued.fetch_sub(bytes(&event), Ordering::Relaxed);
        Ok(event)
    }
}

/// The memory that a queued event takes.
const fn bytes(event: &NatsEvent) -> usize {
    let own = match event {
        NatsEvent::Delivery(Delivery { subject, payload }) => subject.len() + payload.len(),
        NatsEvent::Link(LinkEvent::Refused(why)) => why.len(),
        NatsEvent::Link(_) => 0,
    };
    own + size_of::<NatsEvent>()
}

/// The thread of the client.
async fn serve(
    address: NatsAddress,
    mut orders: UnboundedReceiver<Command>,
    events: Outlet,
    told: Sender<Result<(), LinkError>>,
    is_connected: Arc<AtomicBool>,
) {
    let taken = Arc::new(AtomicU64::new(0));
    let client = match connect(&address, &events, &is_connected).await {
        Ok(client) => client,
        Err(error) => return drop(told.send(Err(error))),
    };
    is_connected.store(client.connection_state() == State::Connected, Ordering::Relaxed);
    if told.send(Ok(())).is_err() {
        return;
    }
    let statistics = client.statistics();
    let flood = async {
        let (mut debt, mut looks) = (Debt::default(), interval(LOOK));
        loop {
            looks.tick().await;
            let came = statistics.in_bytes.load(Ordering::Relaxed);
            let bytes = debt.look(came, taken.load(Ordering::Relaxed));
            if bytes > LARGEST_DEBT {
                return bytes;
            }
        }
    };
    tokio::select! {
        biased;
        bytes = flood => {
            is_connected.store(false, Ordering::Relaxed);
            events.tell(NatsEvent::Link(LinkEvent::Flooded(bytes)));
            // The runtime ends with this, and with it the client and all that it has.
        }
        () = carry_out(&client, &mut orders, &events, &taken) => {}
    }
}

/// Carries out orders until the last of them.
async fn carry_out(
    client: &Client,
    orders: &mut UnboundedReceiver<Command>,
    events: &Outlet,
    taken: &Arc<AtomicU64>,
) {
    while let Some(order) = orders.recv().await {
        match order {
            Command::Publish(subject, payload) => {
                // The client refuses invalid subjects only.
                let _ = client.publish(subject, payload.into()).await;
            }
            Command::Subscribe(pattern, done) => {
                subscribe(client, pattern, events, taken).await;
                let _ = done.send(());
            }
            Command::Close(done) => {
                let _ = timeout(FAREWELL, client.flush()).await;
                let _ = done.send(());
                return;
            }
        }
    }
}

async fn subscribe(client: &Client, pattern: String, events: &Outlet, taken: &Arc<AtomicU64>) {
    let Ok(mut subscription) = client.subscribe(pattern).await else { return };
    // The broker must know the subscription before the first message is published.
    let _ = timeout(CONNECT, client.flush()).await;
    let (events, taken) = (events.clone(), Arc::clone(taken));
    tokio::spawn(async move {
        while let Some(message) = subscription.next().await {
            taken.fetch_add(message.length as u64 + OVERHEAD, Ordering::Relaxed);
            let subject = message.subject.to_string();
            events.tell(NatsEvent::Delivery(Delivery { subject, payload: message.payload.into() }));
        }
    });
}

async fn connect(
    address: &NatsAddress,
    events: &Outlet,
    is_connected: &Arc<AtomicBool>,
) -> Result<Client, LinkError> {
    let (events, is_connected) = (events.clone(), Arc::clone(is_connected));
    let mut options = ConnectOptions::new()
        .name(&address.name)
        .ping_interval(PING)
        .connection_timeout(CONNECT)
        .subscription_capacity(WAITING)
        .ignore_discovered_servers()
        .reconnect_delay_callback(|attempts| {
            Duration::from_millis(20 * attempts.min(100) as u64).min(RECONNECT)
        })
        .event_callback(move |event| {
            let told = match event {
                Event::Connected => Some(LinkEvent::Connected),
                Event::Disconnected | Event::Closed => Some(LinkEvent::Disconnected),
                Event::SlowConsumer(_) => Some(LinkEvent::Dropped),
                Event::ServerError(error) => Some(LinkEvent::Refused(front(error.to_string()))),
                Event::ClientError(_) | Event::LameDuckMode | Event::Draining => None,
            };
            match told {
                Some(LinkEvent::Connected) => is_connected.store(true, Ordering::Relaxed),
                Some(LinkEvent::Disconnected) => is_connected.store(false, Ordering::Relaxed),
                _ => {}
            }
            told.into_iter().for_each(|told| events.tell(NatsEvent::Link(told)));
            std::future::ready(())
        });
    if let Some(credentials) = &address.credentials {
        options = options.nkey(credentials.seed().to_owned());
    }
    if let Some(authorities) = &address.authorities {
        options = options.add_root_certificates(authorities.clone());
    }
    let unreachable = |reason: String| LinkError::Unreachable { url: address.url.clone(), reason };
    let connected = tokio::select! {
        // The looks come first: bytes that keep coming leave them no turn otherwise.
        biased;
        bytes = growth() => return Err(LinkError::Flooded { url: address.url.clone(), bytes }),
        connected = timeout(CONNECT + CONNECT, options.connect(&address.url)) => connected,
    };
    match connected {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(error)) => Err(match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                LinkError::Unauthorized { url: address.url.clone() }
            }
            _ => unreachable(error.to_string()),
        }),
        Err(_) => Err(unreachable("it does not answer".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> NatsEvent {
        NatsEvent::Delivery(Delivery { subject: "a".to_owned(), payload: vec![0; bytes] })
    }

    #[test]
    fn events_that_nobody_takes_have_a_bound_and_losses_are_told_once() {
        let (outlet, inlet) = queue(1000);
        (0..10).for_each(|_| outlet.tell(message(300)));
        outlet.tell(NatsEvent::Link(LinkEvent::Disconnected));
        let mut heard = String::new();
        while let Ok(event) = inlet.receive(Duration::ZERO) {
            heard.push(match event {
                NatsEvent::Delivery(_) => 'm',
                NatsEvent::Link(LinkEvent::Dropped) => 'd',
                NatsEvent::Link(_) => 'l',
            });
        }
        assert_eq!(heard, "mmdl");
        assert_eq!(inlet.queued.load(Ordering::Relaxed), 0);
        outlet.tell(message(900));
        outlet.tell(message(1));
        outlet.tell(message(100));
        assert!(matches!(inlet.receive(Duration::ZERO), Ok(NatsEvent::Delivery(_))), "there is room again");
    }

    #[test]
    fn what_came_is_owed_until_it_is_taken_as_messages() {
        let mut debt = Debt::default();
        // Answers to pings are no debt, for as long as an agent waits.
        assert_eq!((1..100_000).map(|look| debt.look(look * 6, 0)).max(), Some(0));
        let (came, mut debt) = (1 << 30, Debt::default());
        assert_eq!(debt.look(came, came), 0, "messages that were taken");
        assert_eq!(debt.look(came + 1_000_000, came), 1_000_000 - FORGIVEN, "a line that has no end");
        assert_eq!(debt.look(came + 3_000_000, came), 3_000_000 - 2 * FORGIVEN);
        assert_eq!(debt.look(came + 3_000_000, came + 3_000_000), 0, "or just a long message");
        assert_eq!(debt.look(came + 3_000_000 + FORGIVEN + 1, came + 3_000_000), 1, "nothing is paid ahead");
    }

    #[test]
    fn of_a_long_refusal_the_front_is_kept() {
        assert_eq!(front("é".repeat(1000)).len(), LONGEST_REFUSAL);
        assert_eq!(front("no".to_owned()), "no");
    }
}
