//! The services of a sink: how it answers requests.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_ic::Principal;

use super::options::is_share;
use super::reply::LARGEST_BODY;

/// The service that answers the requests of a sink, unless a fault is drawn for them.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// Always the same.
    Reply(Reply),
    /// Resources that are created, read, changed and deleted.
    Crud(Crud),
    /// A replica of the Internet Computer with a canister that counts.
    Canister(Canister),
}

impl Default for Service {
    fn default() -> Self {
        Self::Reply(Reply::default())
    }
}

impl Service {
    pub(crate) fn problems(&self, listen: &Endpoint, require: &mut impl FnMut(bool, &str)) {
        match self {
            Self::Reply(reply) => reply.problems(require),
            Self::Crud(crud) => crud.problems(listen, require),
            Self::Canister(canister) => canister.problems(require),
        }
    }

    /// The pace of bodies that are sent in pieces.
    pub(crate) const fn slow(&self) -> Option<SlowData> {
        match self {
            Self::Reply(reply) => reply.slow,
            Self::Crud(_) | Self::Canister(_) => None,
        }
    }
}

/// The one answer of a plain sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code, 200 to 599.
    pub status: u16,
    /// Value of the content-type header.
    pub content_type: String,
    /// The body.
    pub body: Body,
    /// Send the body in pieces. The head leaves with the first one when the reply is due; replies behind it
    /// on the same HTTP/1.1 connection wait for the last one. Serving, and with it a queue, ends before the
    /// first piece.
    pub slow: Option<SlowData>,
}

impl Default for Reply {
    /// `200` and the counter as CBOR.
    fn default() -> Self {
        Self { status: 200, content_type: "application/cbor".to_owned(), body: Body::Counter, slow: None }
    }
}

impl Reply {
    fn problems(&self, require: &mut impl FnMut(bool, &str)) {
        require((200..600).contains(&self.status), "the status of a reply is between 200 and 599");
        require(
            !self.content_type.is_empty() && self.content_type.bytes().all(|b| (0x20..0x7f).contains(&b)),
            "the content type must be printable ASCII",
        );
        require(
            self.status != 204 || self.body == Body::Counter,
            "a reply with status 204 has no body: leave out the body and its size, or take another status",
        );
        let is_bodiless = self.status == 204 || self.body.is_empty();
        require(
            !is_bodiless || USUAL_TYPES.contains(&self.content_type.as_str()),
            "a reply without a body has no content type: leave it out, or give it a body",
        );
        require(
            !matches!(self.body, Body::Bytes(length) if length > LARGEST_BODY),
            "a body is at most 1 GiB: it is held in memory",
        );
        require(
            !self.slow.is_some_and(|slow| slow.bytes == 0 || slow.every == Nanos::ZERO),
            "slow data needs pieces of at least one byte and a time above 0 between them",
        );
    }
}

/// The body of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The answer of the Internet Computer's load sink: the CBOR map `{status: "replied", reply: {arg: <4
    /// bytes>}}` of 32 bytes, `arg` being the number of the request, from 0 over all threads, little-endian,
    /// modulo 2^32.
    Counter,
    /// This many bytes of no meaning.
    Bytes(u64),
    /// These bytes.
    Fixed(Arc<[u8]>),
}

/// Content types that a reply has where none was asked for.
const USUAL_TYPES: [&str; 2] = ["application/cbor", "application/octet-stream"];

impl Body {
    fn is_empty(&self) -> bool {
        match self {
            Self::Counter => false,
            Self::Bytes(length) => *length == 0,
            Self::Fixed(bytes) => bytes.is_empty(),
        }
    }
}

/// The pace of a body that is sent in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowData {
    /// Bytes of a piece, at least 1.
    pub bytes: usize,
    /// Time from one piece to the next, above 0.
    pub every: Nanos,
}

impl SlowData {
    /// Returns the time from the first piece of a body of `length` bytes to its last.
    pub fn span(self, length: usize) -> Nanos {
        self.every * (length.saturating_sub(1) / self.bytes.max(1)) as u64
    }
}

/// A service of resources, kept in memory and shared by all threads.
///
/// * `POST` to any path creates a resource: `201` with its `location`, which is that path (without its
///   query, slashes at its end, and all but one at its front), a slash, and 16 hexadecimal digits that
///   are never given again.
/// * On the path of a resource, `GET` and `HEAD` give `200` and a small JSON body, `PUT` and `PATCH` give
///   `204`, and `DELETE` gives `204` and removes it. Other methods get `405`.
/// * Whatever names no resource gets `404`.
/// * A `POST` beyond [`max_resources`](Self::max_resources) gets `507`.
///
/// The bodies of requests are read and forgotten. A request for which a fault is drawn changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crud {
    /// Most resources at a time over all threads, 1 to 2^32 - 1. Each takes a place of about 12 bytes, which
    /// is kept for the next one that the same thread creates. So memory is that of the most resources that
    /// each thread has held at a time, summed over the threads: at worst this number for each of them.
    pub max_resources: u64,
    /// Form of locations.
    pub location: Location,
}

/// The form of the locations of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// Paths: `/path/id`.
    #[default]
    Relative,
    /// Whole URLs with this authority (`host:port`), or with the address that the sink listens on:
    /// `http://authority/path/id`, with TLS `https`.
    Absolute(Option<String>),
}

impl Location {
    /// Returns the beginning of all locations on a sink that listens on `endpoint`.
    pub(crate) fn origin(&self, endpoint: &Endpoint, tls: bool) -> String {
        let scheme = if tls { "https" } else { "http" };
        match (self, endpoint) {
            (Self::Relative, _) => String::new(),
            (Self::Absolute(Some(authority)), _) => format!("{scheme}://{authority}"),
            (Self::Absolute(None), Endpoint::Tcp(address)) => format!("{scheme}://{address}"),
            // Clients that come over a unix socket name the host as they like.
            (Self::Absolute(None), Endpoint::Unix(_)) => format!("{scheme}://localhost"),
        }
    }
}

impl Default for Crud {
    /// Ten million resources, and locations that are paths.
    fn default() -> Self {
        Self { max_resources: 10_000_000, location: Location::Relative }
    }
}

impl Crud {
    fn problems(&self, listen: &Endpoint, require: &mut impl FnMut(bool, &str)) {
        let is_wildcard = matches!(listen, Endpoint::Tcp(address) if address.ip().is_unspecified());
        require(
            !is_wildcard || self.location != Location::Absolute(None),
            "locations cannot name the address listened on, for it stands for all: give their authority",
        );
        require(
            (1..=u64::from(u32::MAX)).contains(&self.max_resources),
            "the number of resources is between 1 and 2^32 - 1",
        );
        let is_plain = |authority: &str| {
            !authority.is_empty()
                && authority.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@".contains(&byte))
        };
        if let Location::Absolute(Some(authority)) = &self.location {
            require(is_plain(authority), "the authority of locations is a host, or host:port");
        }
    }
}

/// A replica of the Internet Computer, as far as its clients see one: `/api/v2/status`, and below
/// `/api/vN/canister/ID` the addresses `query` (versions 2 and 3), `call` (2 to 4) and `read_state` (2 and
/// 3).
///
/// * Every canister counts, together with the others: the method `read` gives the counter as 4 bytes,
///   little-endian, `write` increases it and gives it. Any other method gives its argument back.
/// * A call of version 2 gets `202`, and is then asked for; one of later versions gets its certificate at
///   once. A call is carried out once, however often the same message comes.
/// * Messages that expire in more than five minutes, or have expired, get `400` with a reason, as does
///   whatever is none. Addresses that a replica does not have get `404`.
/// * The root key, which certificates are signed with, is always the same one. `/api/v2/status` tells it.
///
/// A request for which a fault is drawn changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Canister {
    /// The only canister that there is; calls of others are rejected with code 3. `None`: any.
    pub id: Option<Principal>,
    /// Reject unknown methods, with code 5.
    pub strict: bool,
    /// Look whether messages are from their senders; others get `400`. It costs about as much as all the
    /// rest.
    pub check_signatures: bool,
    /// Sign answers to queries as a node does.
    pub sign_queries: bool,
    /// Share of the calls of versions 3 and 4 that get `202` and have to be asked for.
    pub accepted: f64,
    /// Duration for which clients who ask for a call learn that it is being carried out.
    pub processing: Nanos,
    /// Duration for which `/api/v2/status` says `starting`.
    pub unhealthy_for: Nanos,
    /// Calls whose fate is remembered, at least 1, each in about 200 bytes; then the oldest are forgotten.
    pub max_calls: u64,
}

impl Default for Canister {
    /// Any canister, healthy at once, with a certificate for every call of versions 3 and 4; a hundred
    /// thousand calls are remembered.
    fn default() -> Self {
        Self {
            id: None,
            strict: false,
            check_signatures: false,
            sign_queries: false,
            accepted: 0.0,
            processing: Nanos::ZERO,
            unhealthy_for: Nanos::ZERO,
            max_calls: 100_000,
        }
    }
}

impl Canister {
    fn problems(&self, require: &mut impl FnMut(bool, &str)) {
        require(is_share(self.accepted), "the share of calls to be asked for is between 0 and 1");
        require(self.max_calls > 0, "at least one call has to be remembered");
    }
}

/// Faults, as shares of the requests. Every request is counted first. Which of the faults happens to it is
/// drawn once. The fault happens when the reply would be due.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Share whose reply is never sent. HTTP/1.1: the connection stays open and answers nothing more.
    /// HTTP/2: the stream stays open, the others go on.
    pub drop: f64,
    /// Share that is reset. HTTP/1.1: the connection. HTTP/2: the stream, with `INTERNAL_ERROR`.
    pub reset: f64,
    /// Share that is refused. HTTP/2: the stream is reset with `REFUSED_STREAM`, so that the client may send
    /// the request again. HTTP/1.1 has no word for it: the connection is reset.
    pub refuse: f64,
    /// Shares that are answered with another status.
    pub statuses: Vec<(u16, f64)>,
    /// Share of queries and updates that a [`Canister`] rejects, with code 4. On its other addresses it is
    /// answered as usual.
    pub reject: f64,
    /// Share that a [`Canister`] answers with `200` and bytes that are no CBOR.
    pub garbage: f64,
    /// Close a connection after this many requests, without announcing it. What an HTTP/2 client sent in the
    /// same piece is still served.
    pub close_idle_after: Option<u64>,
    /// Announce the end of a connection after this many requests, and close it when those before are done.
    /// HTTP/2: `GOAWAY` with `NO_ERROR`; what came in the same piece is still served, what comes later is
    /// ignored. HTTP/1.1: `connection: close` in the reply to the last of them.
    pub go_away_after: Option<u64>,
}

impl Faults {
    /// Returns `true` if the fate of a request has to be drawn.
    pub(crate) fn are_drawn(&self) -> bool {
        self.shares().any(|share| share > 0.0)
    }

    /// The shares of requests that something happens to.
    fn shares(&self) -> impl Iterator<Item = f64> {
        let statuses = self.statuses.iter().map(|&(_, share)| share);
        [self.drop, self.reset, self.refuse, self.reject, self.garbage].into_iter().chain(statuses)
    }

    pub(crate) fn problems(&self, require: &mut impl FnMut(bool, &str)) {
        require(self.shares().all(is_share), "the share of a fault is between 0 and 1");
        // A sum of shares that are meant to be 1 may exceed it by rounding.
        require(self.shares().sum::<f64>() <= 1.0 + 1e-9, "the shares of the faults sum up to more than 1");
        require(
            self.statuses.iter().all(|s| (200..600).contains(&s.0)),
            "the status of a fault is between 200 and 599",
        );
        let counts = [self.close_idle_after, self.go_away_after];
        require(!counts.contains(&Some(0)), "a connection cannot be closed after 0 requests");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_of_a_body_follows_after_its_span() {
        let slow = SlowData { bytes: 10, every: Nanos(5) };
        for (length, span) in [(0, 0), (1, 0), (10, 0), (11, 5), (20, 5), (21, 10)] {
            assert_eq!(slow.span(length), Nanos(span), "{length}");
        }
    }

    #[test]
    fn services_know_what_is_wrong_with_them() {
        let count = |service: Service| {
            let mut found = 0;
            let listen = Endpoint::Tcp(([0, 0, 0, 0], 0).into());
            service.problems(&listen, &mut |sound, _| found += usize::from(!sound));
            found
        };
        assert_eq!(count(Service::default()), 0);
        assert_eq!(count(Service::Crud(Crud::default())), 0);
        for authority in ["", "a b", "http://a", "a/b", "me@a"] {
            let location = Location::Absolute(Some(authority.to_owned()));
            assert_eq!(count(Service::Crud(Crud { max_resources: 0, location })), 2, "{authority}");
        }
        let nowhere = Crud { location: Location::Absolute(None), ..Crud::default() };
        assert_eq!(count(Service::Crud(nowhere)), 1);
        for slow in [SlowData { bytes: 0, every: Nanos(1) }, SlowData { bytes: 1, every: Nanos::ZERO }] {
            assert_eq!(count(Service::Reply(Reply { slow: Some(slow), ..Reply::default() })), 1);
        }
    }

    #[test]
    fn replies_without_a_body_have_nothing_that_only_a_body_has() {
        let count = |status, body, content_type: &str| {
            let mut found = 0;
            let reply = Reply { status, body, content_type: content_type.to_owned(), slow: None };
            reply.problems(&mut |sound, _| found += usize::from(!sound));
            found
        };
        let (cbor, bytes) = ("application/cbor", "application/octet-stream");
        assert_eq!(count(204, Body::Counter, cbor), 0);
        assert_eq!(count(204, Body::Bytes(1000), bytes), 1);
        assert_eq!(count(204, Body::Fixed(Arc::from(&b"a"[..])), "text/x"), 2);
        assert_eq!(count(204, Body::Counter, "text/x"), 1);
        assert_eq!(count(200, Body::Bytes(0), bytes), 0);
        assert_eq!(count(200, Body::Bytes(0), "text/x"), 1);
        assert_eq!(count(200, Body::Fixed(Arc::from(&b""[..])), "text/x"), 1);
        assert_eq!(count(200, Body::Bytes(1), "text/x"), 0);
        // Its head tells the length and the type of the body that it stands for.
        assert_eq!(count(304, Body::Bytes(1000), "text/x"), 0);
    }

    #[test]
    fn locations_begin_with_their_origin() {
        let tcp = Endpoint::Tcp(([127, 0, 0, 1], 80).into());
        let absolute = |authority: Option<&str>| Location::Absolute(authority.map(str::to_owned));
        for (location, endpoint, tls, origin) in [
            (Location::Relative, &tcp, true, ""),
            (absolute(None), &tcp, false, "http://127.0.0.1:80"),
            (absolute(Some("a:1")), &tcp, true, "https://a:1"),
            (absolute(None), &Endpoint::Unix("/s".into()), false, "http://localhost"),
        ] {
            assert_eq!(location.origin(endpoint, tls), origin);
        }
    }

    #[test]
    fn faults_of_no_share_need_no_draw() {
        let never = Faults { statuses: vec![(404, 0.0)], ..Faults::default() };
        assert!(!never.are_drawn());
        assert!(Faults { refuse: 0.1, ..never }.are_drawn());
    }
}
