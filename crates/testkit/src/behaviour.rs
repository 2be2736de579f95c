//! The behaviour of one simulated server, as a value.

use plimsoll_core::Nanos;

use crate::answer::Answer;
use crate::law::Law;
use crate::protocol::Speaks;

/// A half-open interval `[at, at + length)` of the virtual clock in which a process stands still, as if it
/// had been sent SIGSTOP at its start and SIGCONT at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When it begins.
    pub at: Nanos,
    /// Duration.
    pub length: Nanos,
}

impl Pause {
    /// When it is over.
    pub fn end(self) -> Nanos {
        self.at + self.length
    }

    /// Returns `true` if the process stands still at `instant`.
    pub fn holds(self, instant: Nanos) -> bool {
        self.at <= instant && instant < self.end()
    }
}

/// Limit on the requests that a server works on at once. Waiting requests are served in the order of their
/// arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// Any number: no request waits for another.
    Infinite,
    /// One at a time over all connections: with an exponential law and Poisson arrivals the M/M/1 queue.
    SingleQueue,
    /// One at a time on each connection.
    PerConnection,
    /// At most this many at a time over all connections; zero is taken as one.
    Capacity(usize),
}

/// Accepts that come late: the kernel establishes the connection, the server reads from it only afterwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowAccept {
    /// Probability per connection.
    pub probability: f64,
    /// Time between establishing the connection and the server's first read.
    pub delay: Nanos,
}

/// HTTP/2 (RFC 9113) as a server speaks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2 {
    /// `true` if the server speaks HTTP/2 with a client that begins with the preface; `false` if it takes the
    /// preface for a bad HTTP/1.1 request.
    pub spoken: bool,
    /// Streams that may be open at once on a connection (SETTINGS_MAX_CONCURRENT_STREAMS); more are refused.
    /// `None` sets no limit.
    pub max_streams: Option<u32>,
    /// After this many replies on a connection the server allows no streams on it any more; 0 is from the
    /// beginning.
    pub bars_after: Option<u64>,
    /// With this PING on a connection, counted from 1, it allows any number again.
    pub lets_in_at_ping: Option<u64>,
}

impl Default for Http2 {
    /// Spoken, without limits.
    fn default() -> Self {
        Self { spoken: true, max_streams: None, bars_after: None, lets_in_at_ping: None }
    }
}

/// Faults, by seeded probability. Of the faults of a request at most one happens, so the probabilities of
/// `statuses`, `drop_reply`, `reset`, `close_before_reply`, `truncated_body`, `excess_body`, `garbage`,
/// `endless_head` and `refuse_stream` must not sum up to more than one.
///
/// Where HTTP/1.1 can only spoil the connection, HTTP/2 spoils the stream: that holds for `drop_reply`,
/// `reset`, `truncated_body` and `excess_body`. Streams that end with a closed or broken connection are not
/// answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Answer with one of these statuses instead.
    pub statuses: Vec<(u16, f64)>,
    /// Never answer: the connection falls silent, for later requests too. In HTTP/2 only the stream does.
    pub drop_reply: f64,
    /// Reset the connection instead of answering; in HTTP/2 the stream, with INTERNAL_ERROR.
    pub reset: f64,
    /// Close the connection instead of answering; in HTTP/2 after GOAWAY, which says that later streams were
    /// not processed.
    pub close_before_reply: f64,
    /// Announce twice the body that is sent, and close after it; in HTTP/2 end the stream after it.
    pub truncated_body: f64,
    /// Announce half the body that is sent: the rest belongs to no response.
    pub excess_body: f64,
    /// Answer with something that is not HTTP.
    pub garbage: f64,
    /// Answer with header fields without an end.
    pub endless_head: f64,
    /// Refuse the stream of a request (RST_STREAM with REFUSED_STREAM); in HTTP/1.1 the connection is closed.
    pub refuse_stream: f64,
    /// Close every connection after this many replies; `announce_close` is `true` if the last reply announces
    /// it.
    pub close_after: Option<u64>,
    /// `true` if the reply before a close has `connection: close`. In HTTP/2 GOAWAY comes with it, and the
    /// connection is closed when the streams before it have ended; without an announcement it is closed at
    /// once.
    pub announce_close: bool,
    /// HTTP/1.1: time from the last reply of a connection to its close, in which a further request may come.
    pub close_delay: Nanos,
    /// Refuse a connection.
    pub refuse_connect: f64,
    /// Answer a connection attempt with nothing at all.
    pub silent_connect: f64,
    /// Accept late.
    pub slow_accept: Option<SlowAccept>,
}

/// The behaviour of one simulated server. The default answers `200` with an empty body after no time.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// Law of the service time of a request.
    pub service: Law,
    /// Growth of the service time per second since the first request.
    pub slowing: Nanos,
    /// Limit on the requests that are worked on at once.
    pub concurrency: Concurrency,
    /// When it stands still. Work that is under way goes on afterwards; the kernel keeps accepting and
    /// receiving.
    pub pauses: Vec<Pause>,
    /// The good response.
    pub answer: Answer,
    /// Faults and their probabilities.
    pub faults: Faults,
    /// The protocol in place of HTTP.
    pub speaks: Option<Speaks>,
    /// HTTP/2 settings.
    pub http2: Http2,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            service: Law::Constant(Nanos::ZERO),
            slowing: Nanos::ZERO,
            concurrency: Concurrency::Infinite,
            pauses: Vec::new(),
            answer: Answer::default(),
            faults: Faults::default(),
            speaks: None,
            http2: Http2::default(),
        }
    }
}
