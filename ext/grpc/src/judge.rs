//! Judgement of answers by the status of the call.

use std::borrow::Cow;
use std::sync::Arc;

use crate::fields::{CODES, UNKNOWN, read_status, read_status_message};
use plimsoll_core::ErrorClass;
use plimsoll_scenario::{Judge, Judgement, MessageStream, Received};
use prost_reflect::MethodDescriptor;

use super::error::class_of;
use super::schema::{decode, unframed};
use super::{Schema, SchemaError};

const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
const CONTENT_TYPE: &str = "content-type";

/// Judge of the answers to a method. Messages of a stream are counted elsewhere: of its answers the status
/// alone is judged.
#[derive(Debug)]
pub(super) struct CallJudge {
    method: MethodDescriptor,
    /// The stream that the answers are, if they are one.
    stream: Option<MessageStream>,
    /// Messages of answers may be compressed by gzip.
    gzip: bool,
}

impl CallJudge {
    pub(super) const fn new(method: MethodDescriptor, stream: Option<MessageStream>, gzip: bool) -> Self {
        Self { method, stream, gzip }
    }

    /// The one message of a body, decompressed.
    ///
    /// # Errors
    /// The reason why it is none.
    fn message<'b>(&self, body: &'b [u8]) -> Result<Cow<'b, [u8]>, String> {
        let mut messages = unframed(body, self.gzip);
        let message = messages.next().ok_or("status OK without a message")??;
        match messages.next() {
            None => Ok(message),
            Some(Ok(_)) => Err("more than one message in the answer".to_owned()),
            Some(Err(error)) => Err(error),
        }
    }

    /// The code of a call; a status that is missing or none counts as unknown, and so does a success that
    /// does not come from a server of gRPC (PROTOCOL-HTTP2.md).
    fn code_of(&self, received: &Received<'_>) -> usize {
        // A server that fails on the way may have sent one status in its head: the last one is that of the
        // call.
        let code = match received.fields.all(STATUS).last() {
            Some(status) => read_status(status).unwrap_or(UNKNOWN),
            // A call that was cancelled has none; one that ended too early is noticed by its messages.
            None if self.stream.is_some_and(|stream| stream.take.is_some()) => 0,
            None => UNKNOWN,
        };
        if code == 0 && !speaks_grpc(received) { UNKNOWN } else { code }
    }
}

/// Returns `true` if the content-type is that of gRPC, whatever its codec.
fn speaks_grpc(received: &Received<'_>) -> bool {
    let content_type = received.fields.all(CONTENT_TYPE).next().unwrap_or_default();
    let codec = content_type.strip_prefix(b"application/grpc");
    codec.is_some_and(|codec| matches!(codec.first(), None | Some(b'+' | b';')))
}

/// Returns the judge of the answers of the method at a path: for tests with hostile answers.
///
/// # Errors
/// If there is no such method.
pub fn judge(schema: &Schema, path: &str) -> Result<Arc<dyn Judge>, SchemaError> {
    Ok(Arc::new(CallJudge::new(schema.method(path)?, None, false)))
}

impl Judge for CallJudge {
    fn judge(&self, received: &Received<'_>) -> Judgement {
        match class_of(self.code_of(received)) {
            Some(class) => Judgement::Failed(class),
            None if self.stream.is_some() => Judgement::Good,
            // An answer has exactly one message.
            None => match self.message(received.body) {
                Ok(_) => Judgement::Good,
                Err(_) => Judgement::Failed(ErrorClass::Check),
            },
        }
    }

    fn needs_id(&self) -> bool {
        false
    }

    fn fields(&self) -> &[&'static str] {
        &[STATUS, MESSAGE, CONTENT_TYPE]
    }

    fn needs_body(&self) -> bool {
        self.stream.is_none()
    }

    fn write_json(&self, body: &[u8], out: &mut Vec<u8>) -> bool {
        if self.stream.is_some() {
            return false;
        }
        if let Ok(message) = self.message(body)
            && !decode(&self.method.output(), &message, out)
        {
            out.clear();
        }
        true
    }

    fn show(&self, body: &[u8], of_request: bool) -> Option<String> {
        let descriptor = if of_request { self.method.input() } else { self.method.output() };
        let messages = unframed(body, true).map(|message| {
            let mut text = Vec::new();
            decode(&descriptor, &message.ok()?, &mut text).then_some(text)
        });
        let messages = messages.collect::<Option<Vec<_>>>()?;
        Some(String::from_utf8_lossy(&messages.join(&b'\n')).into_owned())
    }

    fn describe(&self, received: &Received<'_>) -> String {
        let code = self.code_of(received);
        if code == 0 {
            return match self.stream {
                Some(_) => String::new(),
                None => self.message(received.body).err().unwrap_or_default(),
            };
        }
        let status = received.fields.all(STATUS).last();
        if status.is_none() {
            return "the answer has no grpc-status".to_owned();
        }
        if status.and_then(read_status) == Some(0) {
            let content_type = received.fields.all(CONTENT_TYPE).next().unwrap_or_default();
            let shown = String::from_utf8_lossy(&content_type[..content_type.len().min(LONGEST)]);
            return format!("status OK with the content-type `{shown}`, which is not application/grpc");
        }
        let message = received.fields.all(MESSAGE).last().map(read_status_message).unwrap_or_default();
        let message: String = message.chars().take(LONGEST).collect();
        match message.is_empty() {
            true => format!("status {}", CODES[code]),
            false => format!("status {}: {message}", CODES[code]),
        }
    }
}

/// Characters of a status's message that are quoted.
const LONGEST: usize = 300;

#[cfg(test)]
mod tests {
    use plimsoll_scenario::FieldList;

    use super::super::schema::tests::schema;
    use super::*;

    fn judged(fields: &[(&str, &str)], body: &[u8]) -> (Judgement, String) {
        let judge = judge(&schema(), "/shop.v1.Orders/Place").unwrap();
        let mut list = FieldList::default();
        list.push(b"content-type", b"application/grpc");
        fields.iter().for_each(|(name, value)| list.push(name.as_bytes(), value.as_bytes()));
        let received = Received::new(200, &list, body);
        (judge.judge(&received), judge.describe(&received))
    }

    /// Status 5.
    const NOT_FOUND: usize = 5;
    /// Status 13.
    const INTERNAL: usize = 13;

    fn failed(code: usize) -> Judgement {
        Judgement::Failed(class_of(code).expect("a failure"))
    }

    #[test]
    fn every_code_has_its_class() {
        assert_eq!(judged(&[(STATUS, "0")], b"\0\0\0\0\0"), (Judgement::Good, String::new()));
        for (code, name) in CODES.iter().enumerate().skip(1) {
            let status = code.to_string();
            let (judgement, words) = judged(&[(STATUS, &status), (MESSAGE, "no%20%E2%82%AC")], b"");
            assert_eq!(judgement, failed(code));
            assert_eq!(words, format!("status {name}: no €"));
        }
    }

    /// A proxy's page with a status was a success.
    #[test]
    fn a_success_comes_from_a_server_of_grpc() {
        let judge = judge(&schema(), "/shop.v1.Orders/Place").unwrap();
        for (content_type, is_good) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;a=b", true),
            ("application/grpc-web", false),
            ("text/html", false),
            ("", false),
        ] {
            for status in ["0", "5"] {
                let mut list = FieldList::default();
                list.push(CONTENT_TYPE.as_bytes(), content_type.as_bytes());
                list.push(STATUS.as_bytes(), status.as_bytes());
                let received = Received::new(200, &list, b"\0\0\0\0\0");
                let expected = match (status, is_good) {
                    ("5", _) => failed(NOT_FOUND),
                    (_, true) => Judgement::Good,
                    (_, false) => failed(UNKNOWN),
                };
                assert_eq!(judge.judge(&received), expected, "{content_type}, {status}");
                let said = judge.describe(&received);
                assert_eq!(said.contains("is not application/grpc"), expected == failed(UNKNOWN), "{said}");
            }
        }
    }

    #[test]
    fn answers_that_are_none_are_told() {
        let unknown = failed(UNKNOWN);
        let check = Judgement::Failed(ErrorClass::Check);
        for (fields, body, judgement, words) in [
            (&[][..], &b"\0\0\0\0\0"[..], unknown, "the answer has no grpc-status"),
            (&[(STATUS, "99")], b"", unknown, "status UNKNOWN"),
            (&[(STATUS, "x")], b"", unknown, "status UNKNOWN"),
            (&[(STATUS, "0")], b"", check, "status OK without a message"),
            (&[(STATUS, "0")], b"\0\0\0", check, "the body ends within a message"),
            (&[(STATUS, "0")], b"\0\0\0\0\0\0\0\0\0\0", check, "more than one message in the answer"),
            (&[(STATUS, "0")], b"<html>", check, "the body is no sequence of length-prefixed messages"),
            // The trailers' counts.
            (&[(STATUS, "0"), (STATUS, "13")], b"", failed(INTERNAL), "status INTERNAL"),
        ] {
            assert_eq!(judged(fields, body), (judgement, words.to_owned()), "{fields:?}");
        }
    }
}
