//! The fabric of a NATS broker.
//!
//! The client needs an async runtime: it has a single-threaded one on a thread of its own. Everything else
//! of a fleet is synchronous, and communicates with it through channels.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use futures_util::StreamExt as _;
use plimsoll_core::Nanos;
use plimsoll_driver::clock;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

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
    commands: UnboundedSender<Command>,
    events: Receiver<NatsEvent>,
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
        let (events, heard) = channel();
        let (told, began) = channel();
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
        Ok(Self { commands, events: heard, is_connected, subscribed: BTreeSet::new() })
    }

    /// Waits for the next message; `None` after this time without one.
    pub fn receive(&self, patience: Nanos) -> Option<NatsEvent> {
        match self.events.recv_timeout(Duration::from_nanos(patience.0)) {
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

/// The thread of the client.
async fn serve(
    address: NatsAddress,
    mut orders: UnboundedReceiver<Command>,
    events: Sender<NatsEvent>,
    told: Sender<Result<(), LinkError>>,
    is_connected: Arc<AtomicBool>,
) {
    let client = match connect(&address, &events, &is_connected).await {
        Ok(client) => client,
        Err(error) => return drop(told.send(Err(error))),
    };
    is_connected.store(client.connection_state() == State::Connected, Ordering::Relaxed);
    if told.send(Ok(())).is_err() {
        return;
    }
    while let Some(order) = orders.recv().await {
        match order {
            Command::Publish(subject, payload) => {
                // The client refuses invalid subjects only.
                let _ = client.publish(subject, payload.into()).await;
            }
            Command::Subscribe(pattern, done) => {
                subscribe(&client, pattern, &events).await;
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

async fn subscribe(client: &Client, pattern: String, events: &Sender<NatsEvent>) {
    let Ok(mut subscription) = client.subscribe(pattern).await else { return };
    // The broker must know the subscription before the first message is published.
    let _ = timeout(CONNECT, client.flush()).await;
    let events = events.clone();
    tokio::spawn(async move {
        while let Some(message) = subscription.next().await {
            let subject = message.subject.to_string();
            let delivery = Delivery { subject, payload: message.payload.into() };
            if events.send(NatsEvent::Delivery(delivery)).is_err() {
                return;
            }
        }
    });
}

async fn connect(
    address: &NatsAddress,
    events: &Sender<NatsEvent>,
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
                Event::ServerError(error) => Some(LinkEvent::Refused(error.to_string())),
                Event::ClientError(_) | Event::LameDuckMode | Event::Draining => None,
            };
            match told {
                Some(LinkEvent::Connected) => is_connected.store(true, Ordering::Relaxed),
                Some(LinkEvent::Disconnected) => is_connected.store(false, Ordering::Relaxed),
                _ => {}
            }
            // The receiver has gone.
            told.into_iter().for_each(|told| drop(events.send(NatsEvent::Link(told))));
            std::future::ready(())
        });
    if let Some(credentials) = &address.credentials {
        options = options.nkey(credentials.seed().to_owned());
    }
    if let Some(authorities) = &address.authorities {
        options = options.add_root_certificates(authorities.clone());
    }
    let unreachable = |reason: String| LinkError::Unreachable { url: address.url.clone(), reason };
    match timeout(CONNECT + CONNECT, options.connect(&address.url)).await {
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
