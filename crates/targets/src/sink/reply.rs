//! The replies of a sink, and which of them a request gets.

use std::sync::{Arc, OnceLock};

use plimsoll_core::Nanos;
use plimsoll_wire::http1::write_response_head;
use plimsoll_wire::http2::HeaderBlockCache;

use super::canister::{CanisterRequest, Subnet, Written, now_ns};
use super::encoded_reply::{Answer, Draft, EncodedReply, FormBody, INLINE_LIMIT};
use super::law::Intent;
use super::options::SinkOptions;
use super::resources::{Ask, Resources, Verb, path_of};
use super::service::{Body, Canister, Crud, Reply, Service, SlowData};
use super::truth::Action;

/// The longest body of no meaning that is held in memory as a whole.
pub(crate) const LARGEST_BODY: u64 = 1 << 30;

/// The replies of one sink.
#[derive(Debug)]
pub(crate) struct Forms {
    table: ReplyTable,
    faults: Vec<EncodedReply>,
    /// Their header blocks for HTTP/2.
    pub(crate) book: HeaderBlockCache,
    pub(crate) slow: Option<SlowData>,
}

#[derive(Debug)]
enum ReplyTable {
    Usual(EncodedReply),
    Crud(Box<CrudForms>),
    Canister(Box<CanisterForms>),
}

/// The replies of a replica, but for their bodies.
#[derive(Debug)]
pub(crate) struct CanisterForms {
    pub(crate) subnet: Subnet,
    usual: EncodedReply,
    accepted: EncodedReply,
    refused: EncodedReply,
    nowhere: EncodedReply,
}

#[derive(Debug)]
struct CrudForms {
    created: EncodedReply,
    found: EncodedReply,
    done: EncodedReply,
    nowhere: EncodedReply,
    not_allowed: EncodedReply,
    full: EncodedReply,
    /// Beginning of all locations; unset until the sink listens.
    origin: OnceLock<Vec<u8>>,
    resources: Resources,
}

impl Forms {
    pub(crate) fn new(options: &SinkOptions) -> Self {
        let mut book = HeaderBlockCache::new();
        let statuses = options.faults.statuses.iter().map(|&(status, _)| status);
        let (table, faults) = match &options.service {
            Service::Reply(reply) => {
                let bytes = fixed_bytes(&reply.body);
                let mut form = |status| EncodedReply::new(usual(reply, status, bytes.as_ref()), &mut book);
                (ReplyTable::Usual(form(reply.status)), statuses.map(form).collect())
            }
            Service::Crud(crud) => {
                let forms = CrudForms::new(crud, options.threads, &mut book);
                (ReplyTable::Crud(Box::new(forms)), statuses.map(|status| bare(status, &mut book)).collect())
            }
            Service::Canister(canister) => {
                let forms = CanisterForms::new(canister, &mut book);
                (
                    ReplyTable::Canister(Box::new(forms)),
                    statuses.map(|status| bare(status, &mut book)).collect(),
                )
            }
        };
        book.seal();
        Self { table, faults, book, slow: options.service.slow() }
    }

    /// Returns `true` if the answer depends on the request.
    pub(crate) const fn are_many(&self) -> bool {
        !matches!(self.table, ReplyTable::Usual(_))
    }

    /// The replies of a replica, if it is one.
    pub(crate) const fn canister(&self) -> Option<&CanisterForms> {
        match &self.table {
            ReplyTable::Canister(forms) => Some(forms),
            ReplyTable::Usual(_) | ReplyTable::Crud(_) => None,
        }
    }

    /// Reads a request as far as the service cares.
    #[inline]
    pub(crate) fn ask<'a>(&self, method: &[u8], target: &'a [u8], body: &[u8]) -> Ask<'a> {
        match &self.table {
            ReplyTable::Usual(_) => Ask::Usual,
            ReplyTable::Crud(_) => Ask::read(method, target),
            ReplyTable::Canister(forms) => {
                let path = path_of(target);
                Ask::Canister(Box::new(CanisterRequest::read(&forms.subnet, method, path, body, now_ns())))
            }
        }
    }

    /// Does what is asked for by request `number`, which `thread` serves, and gives the answer to it.
    #[inline]
    pub(crate) fn answer<'a>(&'a self, ask: &'a Ask<'_>, number: u64, thread: u32) -> Answer<'a> {
        match &self.table {
            ReplyTable::Usual(form) => Answer::plain(form, number),
            ReplyTable::Crud(crud) => crud.answer(ask, thread),
            // Those are answered by a signer.
            ReplyTable::Canister(forms) => Answer::plain(&forms.nowhere, number),
        }
    }

    /// The answer to request `number` with one of the fault statuses.
    pub(crate) fn fault(&self, status: u16, number: u64) -> Answer<'_> {
        let form = self.faults.iter().find(|form| form.status == status);
        Answer::plain(form.unwrap_or_else(|| self.largest()), number)
    }

    /// The answer to a request that is not to be dropped or reset, and what it is in the log.
    pub(crate) fn decided<'a>(
        &'a self,
        intent: Intent,
        ask: &'a Ask<'_>,
        number: u64,
        thread: u32,
    ) -> (Answer<'a>, Action) {
        match intent {
            Intent::Status(status) => (self.fault(status, number), Action::Status(status)),
            _ => (self.answer(ask, number, thread), Action::Replied),
        }
    }

    /// The longest form of the service.
    pub(crate) fn largest(&self) -> &EncodedReply {
        match &self.table {
            ReplyTable::Usual(form) => form,
            ReplyTable::Crud(crud) => &crud.found,
            ReplyTable::Canister(forms) => &forms.usual,
        }
    }

    /// Returns the time that sending a reply takes from its due time on; zero unless bodies are slow.
    pub(crate) fn span(&self, intent: Intent, head_only: bool) -> Nanos {
        let Some(slow) = self.slow else { return Nanos::ZERO };
        let form = match intent {
            Intent::Reply => self.largest(),
            Intent::Status(status) => self.fault(status, 0).form,
            Intent::Drop | Intent::Reset | Intent::Refuse | Intent::Reject | Intent::Garbage => {
                return Nanos::ZERO;
            }
        };
        slow.span(form.sent_body(head_only))
    }

    /// Tells what locations begin with, once, before anything is answered.
    pub(crate) fn set_origin(&self, origin: String) {
        if let ReplyTable::Crud(crud) = &self.table {
            crud.origin.get_or_init(|| origin.into_bytes());
        }
    }

    /// Returns the number of resources.
    pub(crate) fn resources(&self) -> u64 {
        match &self.table {
            ReplyTable::Crud(crud) => crud.resources.count(),
            ReplyTable::Usual(_) | ReplyTable::Canister(_) => 0,
        }
    }
}

impl CrudForms {
    fn new(crud: &Crud, threads: u32, book: &mut HeaderBlockCache) -> Self {
        let created = Draft { located: true, ..draft(201) };
        let found = Draft { body: FormBody::Resource, content_type: "application/json", ..draft(200) };
        // RFC 9110 15.5.6: a 405 has to name what is allowed.
        let methods = "DELETE, GET, HEAD, PATCH, POST, PUT";
        let not_allowed = Draft { extra: Some(("allow", methods)), ..draft(405) };
        Self {
            created: EncodedReply::new(created, book),
            found: EncodedReply::new(found, book),
            done: bare(204, book),
            nowhere: bare(404, book),
            not_allowed: EncodedReply::new(not_allowed, book),
            full: bare(507, book),
            origin: OnceLock::new(),
            resources: Resources::new(threads, crud.max_resources),
        }
    }

    fn answer<'a>(&'a self, ask: &'a Ask<'_>, thread: u32) -> Answer<'a> {
        match ask {
            Ask::Create(parent) => match self.resources.create(thread, parent) {
                Some(token) => {
                    let origin = self.origin.get().map_or(&[][..], Vec::as_slice);
                    Answer { below: [origin, parent], ..Answer::plain(&self.created, token) }
                }
                None => Answer::plain(&self.full, 0),
            },
            &Ask::On(verb, key) => {
                let (exists, form) = match verb {
                    Verb::Read => (self.resources.has(key), &self.found),
                    Verb::Change => (self.resources.has(key), &self.done),
                    Verb::Remove => (self.resources.remove(key), &self.done),
                    Verb::Other => (self.resources.has(key), &self.not_allowed),
                };
                Answer::plain(if exists { form } else { &self.nowhere }, key.id)
            }
            Ask::Nowhere | Ask::Usual | Ask::Canister(_) => Answer::plain(&self.nowhere, 0),
        }
    }
}

impl CanisterForms {
    fn new(canister: &Canister, book: &mut HeaderBlockCache) -> Self {
        let given = |content_type, status| Draft { content_type, body: FormBody::Given, ..draft(status) };
        Self {
            subnet: Subnet::new(canister),
            usual: EncodedReply::new(given("application/cbor", 200), book),
            accepted: bare(202, book),
            refused: EncodedReply::new(given("text/plain; charset=utf-8", 400), book),
            nowhere: bare(404, book),
        }
    }

    /// Puts what a signer has written into its form.
    pub(crate) fn answer<'a>(&'a self, written: Written<'a>) -> (Answer<'a>, Action) {
        let form = match written.status {
            200 => &self.usual,
            202 => &self.accepted,
            400 => &self.refused,
            _ => &self.nowhere,
        };
        (Answer { given: written.body, ..Answer::plain(form, 0) }, written.action)
    }
}

/// The bytes of a body that is always the same.
fn fixed_bytes(body: &Body) -> Option<Arc<[u8]>> {
    match body {
        Body::Counter => None,
        Body::Bytes(length) => Some(vec![b'x'; *length as usize].into()),
        Body::Fixed(bytes) => Some(Arc::clone(bytes)),
    }
}

/// The reply of a plain sink with this status.
fn usual<'a>(reply: &'a Reply, status: u16, bytes: Option<&Arc<[u8]>>) -> Draft<'a> {
    let body = match bytes {
        None => FormBody::Counter,
        Some(bytes) if bytes.is_empty() => FormBody::Empty,
        Some(bytes) if bytes.len() <= INLINE_LIMIT => FormBody::Inline(Arc::clone(bytes)),
        Some(bytes) => FormBody::Shared(Arc::clone(bytes)),
    };
    Draft { content_type: &reply.content_type, body, ..draft(status) }
}

const fn draft(status: u16) -> Draft<'static> {
    Draft { status, content_type: "", body: FormBody::Empty, located: false, extra: None }
}

/// A reply without a body.
fn bare(status: u16, book: &mut HeaderBlockCache) -> EncodedReply {
    EncodedReply::new(draft(status), book)
}

/// Writes the reply to a client that does not speak HTTP. Its connection is closed afterwards.
pub(crate) fn write_refusal(out: &mut Vec<u8>) {
    let text = "this is not a valid HTTP/1.1 request\n";
    write_response_head(out, 400, Some("text/plain"), text.len() as u64, true, &[]);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::encoded_reply::Persistence;
    use crate::sink::service::Faults;
    use plimsoll_driver::Endpoint;

    fn forms(service: Service) -> Forms {
        let listen = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
        let faults = Faults { statuses: vec![(503, 0.1), (204, 0.1)], ..Faults::default() };
        Forms::new(&SinkOptions { service, faults, ..SinkOptions::new(listen) })
    }

    #[test]
    fn bodies_up_to_the_limit_are_inline() {
        let sized = |n| forms(Service::Reply(Reply { body: Body::Bytes(n), ..Reply::default() }));
        assert!(sized(INLINE_LIMIT as u64).largest().is_inline());
        assert!(!sized(INLINE_LIMIT as u64 + 1).largest().is_inline());
        assert!(forms(Service::default()).largest().is_inline());
    }

    #[test]
    fn slow_bodies_take_as_long_as_they_have_pieces() {
        let slow = Some(SlowData { bytes: 10, every: Nanos(5) });
        let forms = forms(Service::Reply(Reply { slow, ..Reply::default() }));
        // The counter's 32 bytes are four pieces.
        assert_eq!(forms.span(Intent::Reply, false), Nanos(15));
        assert_eq!(forms.span(Intent::Status(503), false), Nanos(15));
        for none in [Intent::Status(204), Intent::Drop, Intent::Reset, Intent::Refuse] {
            assert_eq!(forms.span(none, false), Nanos::ZERO, "{none:?}");
        }
        assert_eq!(forms.span(Intent::Reply, true), Nanos::ZERO);
    }

    #[test]
    fn resources_come_and_go() {
        let forms = forms(Service::Crud(Crud { max_resources: 1, ..Crud::default() }));
        let status = |method: &str, target: &[u8]| {
            let ask = forms.ask(method.as_bytes(), target, &[]);
            forms.answer(&ask, 0, 0).form.status
        };
        let created = forms.ask(b"POST", b"/a/?q", &[]);
        let mut out = Vec::new();
        assert!(forms.answer(&created, 0, 0).write(false, Persistence::Keep, &mut out).is_none());
        let head = String::from_utf8(out).unwrap();
        let location = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().to_owned();
        let at = location.as_bytes();
        assert!(location.starts_with("/a/") && location.len() == 19, "{location}");
        assert_eq!(forms.resources(), 1);
        assert_eq!(status("POST", b"/b"), 507);
        for (method, expected) in [("GET", 200), ("HEAD", 200), ("PATCH", 204), ("PUT", 204), ("BREW", 405)] {
            assert_eq!(status(method, at), expected, "{method}");
        }
        assert_eq!((status("DELETE", b"/a"), status("DELETE", at), status("DELETE", at)), (404, 204, 404));
        assert_eq!((status("GET", at), status("PATCH", at), status("BREW", at)), (404, 404, 404));
        assert_eq!(forms.resources(), 0);
        assert_eq!((status("POST", b"*"), status("POST", b"")), (404, 201));
    }

    #[test]
    fn a_location_names_no_host() {
        let forms = forms(Service::Crud(Crud::default()));
        let mut out = Vec::new();
        let created = forms.ask(b"POST", b"//users", &[]);
        forms.answer(&created, 0, 0).write(false, Persistence::Keep, &mut out);
        let head = String::from_utf8(out).unwrap();
        let location = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
        assert!(location.starts_with("/users/"), "{location}");
        for target in [location.to_owned(), format!("/{location}")] {
            let asked = forms.ask(b"GET", target.as_bytes(), &[]);
            assert_eq!(forms.answer(&asked, 0, 0).form.status, 200, "{target}");
        }
    }

    #[test]
    fn faults_of_a_crud_service_are_bare() {
        let forms = forms(Service::Crud(Crud::default()));
        assert_eq!((forms.fault(503, 7).form.status, forms.fault(503, 7).form.sent_body(false)), (503, 0));
    }
}
