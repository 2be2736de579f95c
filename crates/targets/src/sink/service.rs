//! The services of a sink: how it answers requests.
//!
//! Each is a variant of [`Service`], with a file of its own. The enums here are all that the rest of the sink
//! knows of them: [`ReplyTable`] is the part that the threads of a sink share, [`ThreadState`] the part of
//! each thread, and [`Ask`] a request as its service understands it.

mod added;
mod canister;
mod crud;
mod plain;
mod resources;
mod websocket;

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_wire::http2::HeaderBlockCache;

use super::encoded_reply::{Answer, EncodedReply};
use super::event_queue::PendingReply;
use super::law::Intent;
use super::options::{SinkOptions, is_share};
use super::reply::Forms;
use super::truth::Action;
use added::AddedForms;
use canister::{CanisterForms, CanisterRequest, ResponseSigner, now_ns};
use crud::CrudForms;
use resources::ResourceRequest;

pub use added::{
    AddedAnswer, AddedBody, AddedForm, AddedPart, AddedReply, AddedRequest, AddedService, TimeoutField,
};
pub use canister::Canister;
pub use crud::{Crud, Location};
pub use plain::{Body, Reply, SlowData};
pub use resources::path_of;
pub(crate) use resources::{ID_DIGITS, digits};
pub use websocket::WebSocket;
pub(crate) use websocket::{WebSocketAsk, WebSocketServer};

/// The service that answers the requests of a sink, unless a fault is drawn for them.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// Always the same.
    Reply(Reply),
    /// Resources that are created, read, changed and deleted.
    Crud(Crud),
    /// A replica of the Internet Computer with a canister that counts.
    Canister(Canister),
    /// Messages on WebSockets, which are sent back.
    WebSocket(WebSocket),
    /// A service of another crate.
    Added(Arc<dyn AddedService>),
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
            Self::WebSocket(_) => {}
            Self::Added(service) => {
                service.problems().iter().for_each(|problem| require(false, problem));
            }
        }
    }

    /// Reports the settings of the whole sink that the service cannot be combined with.
    pub(crate) fn conflicts(&self, faults: &Faults, work: Nanos, require: &mut impl FnMut(bool, &str)) {
        let codes = 1..self.codes().len();
        let is_status = |status| (200..600).contains(&status) || codes.contains(&usize::from(status));
        require(
            faults.statuses.iter().all(|(status, _)| is_status(*status)),
            "the status of a fault is between 200 and 599, or a code of the service",
        );
        match self {
            Self::Reply(_) | Self::Crud(_) | Self::WebSocket(_) | Self::Added(_) => require(
                faults.reject == 0.0 && faults.garbage == 0.0,
                "only a canister rejects, or answers with garbage: add --canister",
            ),
            Self::Canister(_) => require(
                work == Nanos::ZERO,
                "the calls of a canister are certified together: take a delay or a capacity instead of work",
            ),
        }
    }

    /// Returns `true` if a message of one client goes to all.
    pub(crate) const fn broadcasts(&self) -> bool {
        matches!(self, Self::WebSocket(WebSocket { broadcasts: true }))
    }

    /// The pace of bodies that are sent in pieces.
    pub(crate) fn slow(&self) -> Option<SlowData> {
        match self {
            Self::Reply(reply) => reply.slow,
            Self::Crud(_) | Self::Canister(_) | Self::WebSocket(_) => None,
            Self::Added(service) => service.pace(),
        }
    }

    /// The names of its codes of failed requests, by code.
    pub fn codes(&self) -> &'static [&'static str] {
        match self {
            Self::Added(service) => service.codes(),
            Self::Reply(_) | Self::Crud(_) | Self::Canister(_) | Self::WebSocket(_) => &[],
        }
    }
}

/// A request as the service understands it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask<'a> {
    /// The usual reply of the service.
    Usual,
    /// The usual reply, for a person.
    Person,
    /// Something with a resource.
    Resource(ResourceRequest<'a>),
    /// A request to a replica.
    Canister(Box<CanisterRequest>),
    /// Something on a WebSocket.
    WebSocket(WebSocketAsk),
    /// A request to a service of another crate, with its answer.
    Added(AddedAnswer<'a>),
}

impl Ask<'_> {
    /// Returns the request without borrowed parts.
    pub(crate) fn into_owned(self) -> Ask<'static> {
        match self {
            Self::Usual => Ask::Usual,
            Self::Person => Ask::Person,
            Self::Resource(request) => Ask::Resource(request.into_owned()),
            Self::Canister(request) => Ask::Canister(request),
            Self::WebSocket(ask) => Ask::WebSocket(ask),
            Self::Added(answer) => Ask::Added(answer.into_owned()),
        }
    }
}

/// Replies of a service, and the other parts of it that the threads of a sink share.
#[derive(Debug)]
pub(crate) enum ReplyTable {
    /// One reply, and perhaps another one for persons.
    Usual(EncodedReply, Option<Box<EncodedReply>>),
    Crud(Box<CrudForms>),
    Canister(Box<CanisterForms>),
    Added(Box<AddedForms>),
    /// The connections answer by themselves. HTTP/2 gets this.
    WebSocket(WebSocket, EncodedReply),
}

impl ReplyTable {
    /// Encodes the replies of a service, and those with the statuses of faults.
    pub(crate) fn new(options: &SinkOptions, book: &mut HeaderBlockCache) -> (Self, Vec<EncodedReply>) {
        let statuses = options.faults.statuses.iter().map(|&(status, _)| status);
        let table = match &options.service {
            Service::Reply(reply) => {
                let (form, faults) = reply.encoded(statuses, book);
                return (Self::Usual(form, reply.for_persons(book).map(Box::new)), faults);
            }
            Service::Crud(crud) => Self::Crud(Box::new(CrudForms::new(crud, options.threads, book))),
            Service::Canister(canister) => Self::Canister(Box::new(CanisterForms::new(canister, book))),
            Service::WebSocket(service) => Self::WebSocket(*service, EncodedReply::bare(426, book)),
            Service::Added(service) => Self::Added(Box::new(AddedForms::new(service, book))),
        };
        // Codes of a service are statuses of its own replies.
        let statuses = statuses.filter(|status| *status >= 200);
        (table, statuses.map(|status| EncodedReply::bare(status, book)).collect())
    }

    /// Returns `true` if the answer depends on the request.
    pub(crate) const fn are_many(&self) -> bool {
        !matches!(self, Self::Usual(..))
    }

    /// Returns `true` if the service looks into the bodies of requests.
    pub(crate) const fn reads_bodies(&self) -> bool {
        matches!(self, Self::Canister(_) | Self::Added(_))
    }

    /// Returns the replies of a service of another crate, if it is one.
    pub(crate) const fn added(&self) -> Option<&AddedForms> {
        match self {
            Self::Added(forms) => Some(&**forms),
            _ => None,
        }
    }

    /// Returns `true` if connections are WebSockets.
    pub(crate) const fn is_websocket(&self) -> bool {
        matches!(self, Self::WebSocket(..))
    }

    /// Returns `true` if each message goes to all clients.
    pub(crate) const fn broadcasts(&self) -> bool {
        matches!(self, Self::WebSocket(WebSocket { broadcasts: true }, _))
    }

    /// Returns `true` if replies that are due together are [prepared](ThreadState::prepare) together.
    pub(crate) const fn gathers(&self) -> bool {
        matches!(self, Self::Canister(_))
    }

    /// Reads a request as far as the service cares.
    #[inline]
    pub(crate) fn ask<'a>(&self, method: &[u8], target: &'a [u8], body: &'a [u8]) -> Ask<'a> {
        self.ask_over(false, method, target, body, None)
    }

    /// Reads a request, perhaps of HTTP/2, as far as the service cares. `status` is the one that its client
    /// asks for, if it does.
    #[inline]
    pub(crate) fn ask_over<'a>(
        &self,
        is_http2: bool,
        method: &[u8],
        target: &'a [u8],
        body: &'a [u8],
        status: Option<&[u8]>,
    ) -> Ask<'a> {
        match self {
            Self::Usual(..) | Self::WebSocket(..) => Ask::Usual,
            Self::Crud(_) => Ask::Resource(ResourceRequest::read(method, target)),
            Self::Canister(forms) => {
                let path = path_of(target);
                Ask::Canister(Box::new(CanisterRequest::read(&forms.subnet, method, path, body, now_ns())))
            }
            Self::Added(forms) => {
                let status = status.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
                Ask::Added(forms.service.answer(&AddedRequest { is_http2, method, target, body, status }))
            }
        }
    }

    /// Returns `true` if the reply for a request with this `accept` is the one for persons.
    #[inline]
    pub(crate) fn is_for_person(&self, method: &[u8], target: &[u8], accept: Option<&[u8]>) -> bool {
        let Some(accept) = accept else { return false };
        matches!(self, Self::Usual(_, Some(_))) && plain::wants_json(method, target, accept)
    }

    /// Carries out request `number`, which `thread` serves, and returns its answer.
    #[inline]
    pub(crate) fn answer<'a>(&'a self, ask: &'a Ask<'_>, number: u64, thread: u32) -> Answer<'a> {
        match (self, ask) {
            (Self::Usual(_, Some(form)), Ask::Person) => Answer::plain(form, number),
            (Self::Usual(form, _) | Self::WebSocket(_, form), _) => Answer::plain(form, number),
            (Self::Crud(crud), Ask::Resource(request)) => crud.answer(request, thread),
            (Self::Crud(crud), _) => Answer::plain(&crud.nowhere, 0),
            // The state of the thread answers requests to canisters.
            (Self::Canister(forms), _) => Answer::plain(&forms.nowhere, number),
            (Self::Added(forms), Ask::Added(answer)) => forms.answer(answer, number),
            (Self::Added(forms), _) => Answer::plain(forms.usual(), number),
        }
    }

    /// The longest reply.
    pub(crate) fn largest(&self) -> &EncodedReply {
        match self {
            Self::Usual(form, _) | Self::WebSocket(_, form) => form,
            Self::Crud(crud) => crud.largest(),
            Self::Canister(forms) => &forms.usual,
            Self::Added(forms) => forms.usual(),
        }
    }

    /// Sets the origin of locations, once, before anything is answered.
    pub(crate) fn set_origin(&self, origin: String) {
        if let Self::Crud(crud) = self {
            crud.set_origin(origin);
        }
    }

    /// Returns the number of resources.
    pub(crate) fn resources(&self) -> u64 {
        match self {
            Self::Crud(crud) => crud.resources(),
            Self::Usual(..) | Self::Canister(_) | Self::WebSocket(..) | Self::Added(_) => 0,
        }
    }
}

/// State of a service that each thread of a sink has for itself.
#[derive(Debug, Default)]
pub(crate) struct ThreadState {
    /// Unused, and empty, unless the service is a replica.
    signer: ResponseSigner,
}

impl ThreadState {
    /// Prepares replies that are due together, before each is [answered](Self::answer).
    pub(crate) fn prepare(&mut self, table: &ReplyTable, gathered: &[PendingReply], seed: u64) {
        if let ReplyTable::Canister(forms) = table {
            let asked = gathered.iter().filter_map(|due| match &due.arrival.ask {
                Ask::Canister(asked) => Some((&**asked, due)),
                Ask::Usual | Ask::Person | Ask::Resource(_) | Ask::WebSocket(_) | Ask::Added(_) => None,
            });
            self.signer.certify(&forms.subnet, seed, asked);
        }
    }

    /// The answer to a request that is not to be dropped or reset, and its action in the log.
    pub(crate) fn answer<'a>(
        &'a mut self,
        forms: &'a Forms,
        due: &'a PendingReply,
        seed: u64,
        thread: u32,
    ) -> (Answer<'a>, Action) {
        match (&forms.table, &due.arrival.ask, due.intent) {
            (
                ReplyTable::Canister(forms),
                Ask::Canister(asked),
                Intent::Reply | Intent::Reject | Intent::Garbage,
            ) => forms.answer(self.signer.answer(&forms.subnet, asked, due.intent, seed, due.number)),
            (_, ask, intent) => forms.decided(intent, ask, due.number, thread),
        }
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
    /// Shares that are answered with another status: of HTTP, or a code of the [`Service`].
    pub statuses: Vec<(u16, f64)>,
    /// Share of queries and updates that a [`Canister`] rejects, with code 4. On its other addresses it is
    /// answered as usual.
    pub reject: f64,
    /// Share that a [`Canister`] answers with `200` and bytes that are not CBOR.
    pub garbage: f64,
    /// Close a connection after this many requests, without announcing it. Requests of an HTTP/2 client in
    /// the same piece are still served.
    pub close_idle_after: Option<u64>,
    /// Announce the end of a connection after this many requests, and close it when those before are done.
    /// HTTP/2: `GOAWAY` with `NO_ERROR`; requests in the same piece are still served, later ones are ignored.
    /// HTTP/1.1: `connection: close` in the reply to the last of them.
    pub go_away_after: Option<u64>,
}

impl Faults {
    /// Returns `true` if the fate of a request has to be drawn.
    pub(crate) fn are_drawn(&self) -> bool {
        self.shares().any(|share| share > 0.0)
    }

    /// The shares of requests with a fault, each with its fault.
    pub(crate) fn intents(&self) -> impl Iterator<Item = (f64, Intent)> {
        let of_connections =
            [(self.drop, Intent::Drop), (self.reset, Intent::Reset), (self.refuse, Intent::Refuse)];
        let statuses = self.statuses.iter().map(|&(status, share)| (share, Intent::Status(status)));
        let of_services = [(self.reject, Intent::Reject), (self.garbage, Intent::Garbage)];
        of_connections.into_iter().chain(statuses).chain(of_services)
    }

    fn shares(&self) -> impl Iterator<Item = f64> {
        self.intents().map(|(share, _)| share)
    }

    pub(crate) fn problems(&self, require: &mut impl FnMut(bool, &str)) {
        require(self.shares().all(is_share), "the share of a fault is between 0 and 1");
        // A sum of shares that are meant to be 1 may exceed it by rounding.
        require(self.shares().sum::<f64>() <= 1.0 + 1e-9, "the shares of the faults sum up to more than 1");
        let counts = [self.close_idle_after, self.go_away_after];
        require(!counts.contains(&Some(0)), "a connection cannot be closed after 0 requests");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn faults_of_no_share_need_no_draw() {
        let never = Faults { statuses: vec![(404, 0.0)], ..Faults::default() };
        assert!(!never.are_drawn());
        assert!(Faults { refuse: 0.1, ..never }.are_drawn());
    }
}
