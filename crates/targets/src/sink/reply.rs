//! Replies, encoded once.

use std::sync::Arc;

use plimsoll_wire::http1::write_response_head;

use super::options::{Body, Reply, SinkOptions};

/// The CBOR body of the Internet Computer's load sink, up to the four bytes of the counter: a definite map of
/// two text keys, without the self-describing tag; 32 bytes with the counter.
const COUNTER_BODY: &[u8] = b"\xa2\x66status\x67replied\x65reply\xa1\x63arg\x44";
/// Bytes of the counter.
const COUNTER_LEN: usize = 4;
/// Fixed bodies up to this size are copied behind their head, larger ones are handed over without a copy: a
/// copy of 16 KiB costs about as much as the second segment of a gathered write.
const INLINE_LIMIT: usize = 16 * 1024;
/// The longest body of no meaning that is held in memory as a whole.
pub(crate) const LARGEST_BODY: u64 = 1 << 30;

/// What a client expects to become of its connection after the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// HTTP/1.1: it stays open, which need not be said.
    Keep,
    /// HTTP/1.0: it stays open, and the client has to be told.
    KeepTold,
    /// It is closed.
    Close,
}

/// One reply, encoded once for each [`Persistence`].
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) status: u16,
    heads: [Vec<u8>; 3],
    body: FormBody,
    /// The status never has a body, though its head may tell a length.
    bodiless: bool,
}

#[derive(Debug)]
enum FormBody {
    Empty,
    Counter,
    Inline(Arc<[u8]>),
    Shared(Arc<[u8]>),
}

impl FormBody {
    fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Counter => COUNTER_BODY.len() + COUNTER_LEN,
            Self::Inline(bytes) | Self::Shared(bytes) => bytes.len(),
        }
    }
}

impl Form {
    fn new(status: u16, content_type: &str, body: FormBody) -> Self {
        // RFC 9110 8.6: a 204 has no length at all, a 304 that of the 200 it stands for.
        let body = if status == 204 { FormBody::Empty } else { body };
        let length = body.len() as u64;
        let content_type = (!matches!(body, FormBody::Empty)).then_some(content_type);
        let head = |persistence| {
            let told = [("connection".to_owned(), "keep-alive".to_owned())];
            let extra = if persistence == Persistence::KeepTold { &told[..] } else { &[] };
            let mut head = Vec::new();
            let close = persistence == Persistence::Close;
            write_response_head(&mut head, status, content_type, length, close, extra);
            head
        };
        let heads = [Persistence::Keep, Persistence::KeepTold, Persistence::Close].map(head);
        Self { status, heads, body, bodiless: matches!(status, 204 | 304) }
    }

    /// Bytes of the whole reply.
    pub(crate) fn len(&self) -> usize {
        self.heads[0].len() + self.body.len()
    }

    /// Whether [`write`](Self::write) never leaves a body to be sent apart.
    pub(crate) const fn is_inline(&self) -> bool {
        !matches!(self.body, FormBody::Shared(_))
    }

    /// Appends the reply to request `number`. Returns the body that has to be sent after it, if it is a large
    /// one.
    #[inline]
    pub(crate) fn write(
        &self,
        number: u64,
        head_only: bool,
        persistence: Persistence,
        out: &mut Vec<u8>,
    ) -> Option<&Arc<[u8]>> {
        out.extend_from_slice(&self.heads[persistence as usize]);
        if head_only || self.bodiless {
            return None;
        }
        match &self.body {
            FormBody::Empty => None,
            FormBody::Counter => {
                out.extend_from_slice(COUNTER_BODY);
                // The counter of the original has 32 bits and wraps.
                out.extend_from_slice(&(number as u32).to_le_bytes());
                None
            }
            FormBody::Inline(bytes) => {
                out.extend_from_slice(bytes);
                None
            }
            FormBody::Shared(bytes) => Some(bytes),
        }
    }
}

/// The replies of one sink.
#[derive(Debug)]
pub(crate) struct Forms {
    usual: Form,
    faults: Vec<Form>,
}

impl Forms {
    pub(crate) fn new(options: &SinkOptions) -> Self {
        let Reply { status, content_type, body } = &options.reply;
        let fixed = match body {
            Body::Counter => None,
            Body::Bytes(length) => Some(vec![b'x'; *length as usize].into()),
            Body::Fixed(bytes) => Some(Arc::clone(bytes)),
        };
        let form = |status| {
            let body = match &fixed {
                None => FormBody::Counter,
                Some(bytes) if bytes.is_empty() => FormBody::Empty,
                Some(bytes) if bytes.len() <= INLINE_LIMIT => FormBody::Inline(Arc::clone(bytes)),
                Some(bytes) => FormBody::Shared(Arc::clone(bytes)),
            };
            Form::new(status, content_type, body)
        };
        Self {
            usual: form(*status),
            faults: options.faults.statuses.iter().map(|&(status, _)| form(status)).collect(),
        }
    }

    /// The usual reply.
    pub(crate) const fn usual(&self) -> &Form {
        &self.usual
    }

    /// The reply with one of the fault statuses.
    pub(crate) fn fault(&self, status: u16) -> &Form {
        self.faults.iter().find(|form| form.status == status).unwrap_or(&self.usual)
    }
}

/// What a client gets that does not speak HTTP/1.1, before its connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    BadRequest,
    VersionNotSupported,
}

impl Refusal {
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let (status, text) = match self {
            Self::BadRequest => (400, "this is not a valid HTTP/1.1 request\n"),
            Self::VersionNotSupported => (505, "only HTTP/1.1 is spoken here\n"),
        };
        write_response_head(out, status, Some("text/plain"), text.len() as u64, true, &[]);
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_driver::Endpoint;

    fn forms(reply: Reply) -> Forms {
        let listen = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
        Forms::new(&SinkOptions { reply, ..SinkOptions::new(listen) })
    }

    fn written(form: &Form, number: u64, head_only: bool) -> (String, Vec<u8>) {
        let mut out = Vec::new();
        assert!(form.write(number, head_only, Persistence::Keep, &mut out).is_none());
        let end = out.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        (String::from_utf8(out[..end].to_vec()).unwrap().to_ascii_lowercase(), out[end..].to_vec())
    }

    #[test]
    fn the_counter_is_the_cbor_of_the_original() {
        let (head, body) = written(forms(Reply::default()).usual(), 0x0102_0304, false);
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        assert!(head.contains("content-type: application/cbor\r\n"), "{head}");
        assert!(head.contains("content-length: 32\r\n"), "{head}");
        let expected = [
            0xa2, 0x66, b's', b't', b'a', b't', b'u', b's', 0x67, b'r', b'e', b'p', b'l', b'i', b'e', b'd',
            0x65, b'r', b'e', b'p', b'l', b'y', 0xa1, 0x63, b'a', b'r', b'g', 0x44, 4, 3, 2, 1,
        ];
        assert_eq!(body, expected);
    }

    #[test]
    fn the_counter_wraps_at_32_bits() {
        let (_, body) = written(forms(Reply::default()).usual(), (1 << 32) + 5, false);
        assert_eq!(body[28..], [5, 0, 0, 0]);
    }

    #[test]
    fn a_head_request_gets_the_length_without_the_body() {
        let (head, body) = written(forms(Reply::default()).usual(), 1, true);
        assert!(head.contains("content-length: 32\r\n"));
        assert!(body.is_empty());
    }

    #[test]
    fn a_204_has_neither_length_nor_body() {
        let (head, body) = written(forms(Reply { status: 204, ..Reply::default() }).usual(), 1, false);
        assert!(!head.contains("content-length") && !head.contains("content-type"), "{head}");
        assert!(body.is_empty());
    }

    #[test]
    fn a_304_tells_the_length_that_it_does_not_send() {
        let (head, body) = written(forms(Reply { status: 304, ..Reply::default() }).usual(), 1, false);
        assert!(head.contains("content-length: 32\r\n"), "{head}");
        assert!(body.is_empty());
    }

    #[test]
    fn each_persistence_has_its_head() {
        let forms = forms(Reply::default());
        let head = |persistence| {
            let mut out = Vec::new();
            forms.usual().write(0, true, persistence, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert!(!head(Persistence::Keep).contains("connection"));
        assert!(head(Persistence::KeepTold).contains("connection: keep-alive\r\n"));
        assert!(head(Persistence::Close).contains("connection: close\r\n"));
    }

    #[test]
    fn large_bodies_are_shared_and_small_ones_inline() {
        let sized = |n| forms(Reply { body: Body::Bytes(n), ..Reply::default() });
        assert!(sized(INLINE_LIMIT as u64).usual().is_inline());
        let large = sized(INLINE_LIMIT as u64 + 1);
        let mut out = Vec::new();
        assert_eq!(
            large.usual().write(0, false, Persistence::Keep, &mut out).unwrap().len(),
            INLINE_LIMIT + 1
        );
        assert!(large.usual().write(0, true, Persistence::Keep, &mut out).is_none());
        assert_eq!(written(sized(0).usual(), 0, false).1, b"");
    }
}
