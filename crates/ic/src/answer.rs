//! Answers of a replica, parsed in place: nothing is allocated, and no signature is verified.

use crate::cbor::{Item, Reader, Undecodable};
use crate::certificate::Certificate;
use crate::message::RequestId;
use crate::tree::{Branch, Lookup, Tree, leb128};

/// The answer to a query, a call or a `read_state` request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// A query was answered: the reply of the canister.
    Replied {
        /// Mostly Candid.
        arg: &'a [u8],
    },
    /// A query or a call was rejected, by one replica and without a proof.
    Rejected(Reject<'a>),
    /// A call was carried out, or state was read: [`request_status`] reads the status from the certificate.
    Certified {
        /// The certificate.
        certificate: &'a [u8],
    },
    /// A call was taken in (status 202, without a body): it is to be asked for.
    Accepted,
}

/// Reason why a message was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject<'a> {
    /// The class ("Reject codes" in the interface specification): 1 fatal system error, 2 transient system
    /// error, 3 destination invalid, 4 rejected by the canister, 5 error of the canister, 6 undelivered.
    pub code: u64,
    /// For people.
    pub message: &'a str,
    /// A finer class that implementations may add, such as `IC0301`.
    pub error_code: Option<&'a str>,
}

impl<'a> Answer<'a> {
    /// Reads the body of an answer with the status 200 or 202.
    ///
    /// # Errors
    /// The bytes are not such an answer.
    #[inline]
    pub fn read(body: &'a [u8]) -> Result<Self, Undecodable> {
        if body.is_empty() {
            return Ok(Self::Accepted);
        }
        let mut reader = Reader::new(body);
        let (mut status, mut reply, mut certificate) = (None, None, None);
        let (mut code, mut message, mut error_code) = (None, None, None);
        reader.each(|key, mut value| {
            match key {
                b"status" => status = Some(value.untagged()?),
                b"reply" => reply = arg_of(value)?,
                b"certificate" => certificate = Some(value.bytes()?),
                b"reject_code" => code = Some(value.number()?),
                b"reject_message" => message = Some(value.text()?),
                b"error_code" => error_code = optional_text(&mut value)?,
                _ => {}
            }
            Ok(None::<()>)
        })?;
        if !reader.rest().is_empty() {
            return Err(reader.error("bytes behind the answer"));
        }
        let rejected = |reader: &Reader<'_>| match code {
            Some(code) => {
                Ok(Self::Rejected(Reject { code, message: message.unwrap_or_default(), error_code }))
            }
            None => Err(reader.error("a rejection without a code")),
        };
        match (status, reply, certificate) {
            (Some(Item::Text(b"replied")) | None, _, Some(certificate)) => {
                Ok(Self::Certified { certificate })
            }
            (Some(Item::Text(b"replied")), Some(arg), None) => Ok(Self::Replied { arg }),
            (Some(Item::Text(b"rejected" | b"non_replicated_rejection")), ..) => rejected(&reader),
            (Some(Item::Text(b"accepted")), ..) => Ok(Self::Accepted),
            _ => Err(reader.error("an answer that is neither a reply nor a rejection")),
        }
    }
}

/// The argument within a reply.
fn arg_of<'a>(mut reply: Reader<'a>) -> Result<Option<&'a [u8]>, Undecodable> {
    reply.each(|key, mut arg| match key {
        b"arg" => arg.bytes().map(Some),
        _ => Ok(None),
    })
}

/// A text, or null where there is none.
fn optional_text<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>, Undecodable> {
    match reader.clone().untagged()? {
        Item::Simple(_) => Ok(None),
        _ => reader.text().map(Some),
    }
}

/// Status of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStatus<'a> {
    /// Nothing is known of the call, or nothing any more.
    Unknown,
    /// The call waits to be carried out.
    Received,
    /// The call is being carried out.
    Processing,
    /// The call was carried out.
    Replied {
        /// Mostly Candid.
        reply: &'a [u8],
    },
    /// The call was rejected.
    Rejected(Reject<'a>),
    /// The call was carried out or rejected, and its result is not kept any more.
    Done,
}

impl<'a> RequestStatus<'a> {
    /// Returns `true` if the status will not change any more.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Replied { .. } | Self::Rejected(_) | Self::Done)
    }

    /// Reads the status of a call from a tree; `None` if the tree does not show the call.
    pub(crate) fn read(tree: Tree<'a>, id: &RequestId) -> Result<Option<Self>, Undecodable> {
        let call = match tree.branch(&[b"request_status", &id.0])? {
            Branch::There(call) => call,
            Branch::Absent => return Ok(Some(Self::Unknown)),
            Branch::Unknown => return Ok(None),
        };
        let broken = |problem| Undecodable { at: 0, problem };
        let value = |label: &[u8]| match call.lookup(&[label])? {
            Lookup::Found(value) => Ok(value),
            Lookup::Absent | Lookup::Unknown => Err(broken("the status of a call with a part missing")),
        };
        let text = |label| {
            value(label).and_then(|text| {
                str::from_utf8(text).map_err(|_| broken("a text in a certificate that is not UTF-8"))
            })
        };
        Ok(Some(match call.lookup(&[b"status"])? {
            Lookup::Absent => Self::Unknown,
            Lookup::Unknown => return Ok(None),
            Lookup::Found(status) => match status {
                b"unknown" => Self::Unknown,
                b"received" => Self::Received,
                b"processing" => Self::Processing,
                b"done" => Self::Done,
                b"replied" => Self::Replied { reply: value(b"reply")? },
                b"rejected" => Self::Rejected(Reject {
                    code: leb128(value(b"reject_code")?)
                        .ok_or(broken("a reject code that is not a number"))?,
                    message: text(b"reject_message")?,
                    error_code: match call.lookup(&[b"error_code"])? {
                        Lookup::Found(_) => Some(text(b"error_code")?),
                        Lookup::Absent | Lookup::Unknown => None,
                    },
                }),
                _ => return Err(broken("an unknown status of a call")),
            },
        }))
    }
}

/// Reads the status of a call from a certificate, without verifying the signature. A call that the
/// certificate does not show is [`Unknown`](RequestStatus::Unknown).
///
/// # Errors
/// The certificate cannot be decoded.
pub fn request_status<'a>(certificate: &'a [u8], id: &RequestId) -> Result<RequestStatus<'a>, Undecodable> {
    let tree = Certificate::read(certificate)?.tree;
    Ok(RequestStatus::read(tree, id)?.unwrap_or(RequestStatus::Unknown))
}

/// The answer to `/api/v2/status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaStatus<'a> {
    /// The root key as DER. A replica behind a proxy may not report it.
    pub root_key: Option<&'a [u8]>,
    /// Health as the replica reports it.
    pub health: Option<&'a str>,
}

impl<'a> ReplicaStatus<'a> {
    /// Reads the body of the answer.
    ///
    /// # Errors
    /// The bytes are not such an answer.
    pub fn read(body: &'a [u8]) -> Result<Self, Undecodable> {
        let (mut root_key, mut health) = (None, None);
        Reader::new(body).each(|key, mut value| {
            match key {
                b"root_key" => root_key = Some(value.bytes()?),
                b"replica_health_status" => health = Some(value.text()?),
                _ => {}
            }
            Ok(None::<()>)
        })?;
        Ok(Self { root_key, health })
    }

    /// Returns `true` if the replica takes requests. One that does not report its health counts as healthy.
    pub fn is_healthy(&self) -> bool {
        self.health.is_none_or(|health| health == "healthy")
    }
}
