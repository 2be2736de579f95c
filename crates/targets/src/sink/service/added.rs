//! Services of other crates.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_wire::http2::{HeaderBlockCache, Indexing};

use super::plain::SlowData;
use crate::sink::encoded_reply::{Answer, Draft, EncodedReply, FormBody};

/// A service of the sink that another crate brings.
///
/// The sink asks for its [replies](Self::replies) once, and encodes them. Each request that is whole gets an
/// [answer](Self::answer), which names one of them and may have the body. On HTTP/2 an answer may begin
/// before the request is whole: see [`answer_part`](Self::answer_part). Numbers, delays, faults and the log
/// are the sink's.
pub trait AddedService: Any + fmt::Debug + Send + Sync {
    /// Returns everything that is wrong with the service, each as a sentence.
    fn problems(&self) -> Vec<String>;

    /// Returns the replies that answers name by their places. The first is the usual one, and that of
    /// answers in parts.
    fn replies(&self) -> Vec<AddedReply>;

    /// Answers a whole request.
    fn answer<'a>(&self, request: &AddedRequest<'_, 'a>) -> AddedAnswer<'a>;

    /// Answers what has come of the body of a request that goes on, on HTTP/2. `at_once`: nothing delays
    /// answers. `None`: the request is answered when it is whole.
    fn answer_part<'a>(&self, target: &[u8], body: &'a [u8], at_once: bool) -> Option<AddedPart<'a>> {
        let _ = (target, body, at_once);
        None
    }

    /// Returns `true` if the answer to a request goes on, after its end, until its client cancels it.
    fn is_endless(&self, target: &[u8]) -> bool {
        let _ = target;
        false
    }

    /// Returns the pace of bodies that are sent in pieces.
    fn pace(&self) -> Option<SlowData> {
        None
    }

    /// Returns the names of the codes of failed requests, by code: statuses below those of HTTP, which
    /// replies may have in the log. Code 0 is success.
    fn codes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns how clients say how long they wait, if they do.
    fn timeout(&self) -> Option<TimeoutField> {
        None
    }
}

impl PartialEq for dyn AddedService {
    /// Compares identities: a service is equal to itself alone.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

/// A request as an [`AddedService`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct AddedRequest<'m, 'a> {
    /// Set if the request came over HTTP/2.
    pub is_http2: bool,
    /// The method, as sent.
    pub method: &'m [u8],
    /// Path and query, as sent.
    pub target: &'a [u8],
    /// The body.
    pub body: &'a [u8],
    /// The status that the client asks for, by the field `x-plimsoll-status`; over HTTP/2 alone.
    pub status: Option<u16>,
}

/// An answer of an [`AddedService`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedAnswer<'a> {
    /// Place of the reply among the [replies](AddedService::replies).
    pub reply: u16,
    /// The body, if the reply has a [given](AddedBody::Given) one.
    pub body: Cow<'a, [u8]>,
}

impl AddedAnswer<'_> {
    /// The reply in this place, without a body of its own.
    pub const fn plain(reply: u16) -> Self {
        Self { reply, body: Cow::Borrowed(&[]) }
    }

    pub(super) fn into_owned(self) -> AddedAnswer<'static> {
        AddedAnswer { reply: self.reply, body: Cow::Owned(self.body.into_owned()) }
    }
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedPart<'a> {
    /// Bytes of the body.
    pub body: Cow<'a, [u8]>,
    /// Bytes of the request's body that are answered with them.
    pub consumed: usize,
}

/// A reply of an [`AddedService`], for any number of answers.
#[derive(Clone, Debug)]
pub struct AddedReply {
    /// Status in the log: that of HTTP, or one of the [codes](AddedService::codes).
    pub status: u16,
    /// The head and the body, as the protocol has them.
    pub form: AddedForm,
}

/// Head and body of an [`AddedReply`].
#[derive(Clone, Debug)]
pub enum AddedForm {
    /// Nothing but the status, over HTTP/1.1 and HTTP/2.
    Bare,
    /// A body of known length, over HTTP/1.1 and HTTP/2.
    Whole {
        /// Value of the field `content-type`.
        content_type: String,
        /// The body.
        body: AddedBody,
    },
    /// A body whose length is not told, over HTTP/2. The status of HTTP is 200. HTTP/1.1 answers 505 instead.
    Streamed {
        /// Fields of the head.
        fields: Vec<(String, String)>,
        /// The body.
        body: AddedBody,
        /// Fields behind the body.
        trailers: Vec<(String, String)>,
        /// Returns the length of the first piece of a body that is sent at a [pace](AddedService::pace).
        piece: fn(&[u8]) -> usize,
    },
}

/// The body of an [`AddedReply`].
#[derive(Clone, Debug)]
pub enum AddedBody {
    /// No bytes.
    Empty,
    /// Comes with the answer.
    Given,
    /// The number of the request in eight bytes, the lowest first, behind these bytes: 24 at most.
    Number(Vec<u8>),
}

impl AddedBody {
    fn encoded(self) -> FormBody {
        match self {
            Self::Empty => FormBody::Empty,
            Self::Given => FormBody::Given,
            Self::Number(before) => FormBody::number(before),
        }
    }
}

/// The field by which clients of an [`AddedService`] say how long they wait, over HTTP/2.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutField {
    /// Name, in lower case.
    pub name: &'static str,
    /// Reads a value.
    pub read: fn(&[u8]) -> Option<Nanos>,
    /// Status of the reply to a request that would be answered later.
    pub status: u16,
}

/// The encoded replies of an added service.
#[derive(Debug)]
pub(crate) struct AddedForms {
    pub(crate) service: Arc<dyn AddedService>,
    pub(crate) timeout: Option<TimeoutField>,
    replies: Vec<EncodedReply>,
}

impl AddedForms {
    pub(super) fn new(service: &Arc<dyn AddedService>, book: &mut HeaderBlockCache) -> Self {
        let encoded = |AddedReply { status, form }| match form {
            AddedForm::Bare => EncodedReply::bare(status, book),
            AddedForm::Whole { content_type, body } => {
                let content_type = &*content_type;
                EncodedReply::new(Draft { content_type, body: body.encoded(), ..Draft::new(status) }, book)
            }
            AddedForm::Streamed { fields, body, trailers, piece } => {
                EncodedReply::streamed(status, &fields, body.encoded(), &trailers, piece, book)
            }
        };
        let replies = service.replies().into_iter().map(encoded).collect();
        Self { service: Arc::clone(service), timeout: service.timeout(), replies }
    }

    /// The usual reply.
    pub(crate) fn usual(&self) -> &EncodedReply {
        &self.replies[0]
    }

    /// The reply with this code.
    pub(crate) fn failure(&self, code: u16) -> Option<&EncodedReply> {
        self.replies.iter().find(|reply| reply.status == code)
    }

    /// The answer to request `number` of the sink.
    pub(super) fn answer<'a>(&'a self, answer: &'a AddedAnswer<'_>, number: u64) -> Answer<'a> {
        let form = &self.replies[usize::from(answer.reply)];
        Answer { given: &answer.body, ..Answer::plain(form, number) }
    }

    /// Appends the header block of an answer in parts.
    pub(crate) fn write_head(&self, book: &HeaderBlockCache, indexing: &mut Indexing, out: &mut Vec<u8>) {
        Answer::plain(self.usual(), 0).write_block(book, indexing, out);
    }

    /// The header block of the trailers of an answer in parts.
    pub(crate) fn trailers(&self) -> &[u8] {
        Answer::plain(self.usual(), 0).trailers().unwrap_or_default()
    }
}
