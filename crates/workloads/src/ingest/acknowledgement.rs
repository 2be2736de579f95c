//! Judgement of the body of a store's response with a good status.

use plimsoll_core::ErrorClass;
use plimsoll_scenario::pointer::{JsonPointer, JsonText};
use plimsoll_scenario::{Judge, Judgement, Received, TemplateError, first_line};

/// Judge of the answers of Elasticsearch's bulk API ("Bulk API", elastic.co), which refuses documents one by
/// one within a 200: `{"errors": true, "items": [{"create": {"status": 400, "error": {…}}}]}`.
///
/// The answer is read up to `errors`, which stands before the items. Only where that is true, and an example
/// is wanted, are they read too.
#[derive(Debug)]
pub(super) struct BulkJudge {
    errors: JsonPointer,
    items: JsonPointer,
    error: JsonPointer,
}

impl BulkJudge {
    pub(super) fn new() -> Result<Self, TemplateError> {
        let [errors, items, error] = ["/errors", "/items", "/error"].map(JsonPointer::parse);
        Ok(Self { errors: errors?, items: items?, error: error? })
    }

    /// The error of the first item that has one, as it stands there.
    fn first_error<'b>(&self, body: &'b [u8]) -> Option<JsonText<'b>> {
        let mut found = None;
        // Malformed data behind the first error do not take it back.
        let _ = self.items.find(body)?.each_element(|item| {
            let _ = item.each_member(|_, action| found = found.or_else(|| self.error.find(action.raw())));
            found.is_none()
        });
        found
    }
}

impl Judge for BulkJudge {
    fn judge(&self, received: &Received<'_>) -> Judgement {
        match self.errors.find(received.body).map(JsonText::raw) {
            Some(b"false") => Judgement::Good,
            Some(b"true") => Judgement::Failed(ErrorClass::Rejected),
            _ => Judgement::Failed(ErrorClass::Check),
        }
    }

    fn needs_id(&self) -> bool {
        false
    }

    fn describe(&self, received: &Received<'_>) -> String {
        let body = received.body;
        if self.errors.find(body).map(JsonText::raw) != Some(b"true") {
            return "the answer does not say `errors`, true or false".to_owned();
        }
        match self.first_error(body) {
            Some(error) => format!("{REFUSED}: {}", first_line(&in_one_line(error.raw()))),
            None => format!("{REFUSED}, and does not say why"),
        }
    }
}

const REFUSED: &str = "the store refused records";

/// As many bytes of a text as are worth a quotation, in one line.
fn in_one_line(text: &[u8]) -> Vec<u8> {
    let spaced = text.iter().map(|byte| if byte.is_ascii_whitespace() { b' ' } else { *byte });
    spaced.take(1_000).collect()
}

/// Judge of the answers of receivers of OpenTelemetry's protocol, which refuse records within a 200 by
/// `partial_success`, field 1 of the answer: their number is field 1 of it, and the reason field 2
/// (opentelemetry-proto, `*_service.proto`; the specification's "Partial Success").
///
/// A body that is not such a message counts as good: some receivers answer in words.
#[derive(Debug)]
pub(super) struct OtlpJudge;

impl Judge for OtlpJudge {
    fn judge(&self, received: &Received<'_>) -> Judgement {
        match refused(received.body) {
            // A reason without a number is a warning.
            None | Some((0, _)) => Judgement::Good,
            Some(_) => Judgement::Failed(ErrorClass::Rejected),
        }
    }

    fn needs_id(&self) -> bool {
        false
    }

    fn describe(&self, received: &Received<'_>) -> String {
        match refused(received.body) {
            Some((count, [])) => format!("{REFUSED}, {count} of them, and does not say why"),
            Some((count, reason)) => {
                format!("{REFUSED}, {count} of them: {}", first_line(&in_one_line(reason)))
            }
            None => String::new(),
        }
    }
}

/// The number of refused records in an answer of OpenTelemetry's protocol, and the reason.
fn refused(mut body: &[u8]) -> Option<(u64, &[u8])> {
    let mut found = (0, &[][..]);
    while let Some((field, value)) = field(&mut body)? {
        if let (1, Value::Bytes(mut partial)) = (field, value) {
            while let Some((number, value)) = self::field(&mut partial)? {
                match (number, value) {
                    (1, Value::Number(count)) => found.0 = count,
                    (2, Value::Bytes(reason)) => found.1 = reason,
                    _ => {}
                }
            }
        }
    }
    Some(found)
}

/// A value of protobuf ("Encoding", protobuf.dev).
enum Value<'b> {
    Number(u64),
    /// Of a message, a text, or a number of fixed length.
    Bytes(&'b [u8]),
}

/// Takes a field off a message: its number and its value. The outer `None` is an invalid message.
#[allow(clippy::option_option)]
fn field<'b>(message: &mut &'b [u8]) -> Option<Option<(u64, Value<'b>)>> {
    if message.is_empty() {
        return Some(None);
    }
    let tag = number(message)?;
    let length = match tag & 7 {
        0 => return Some(Some((tag >> 3, Value::Number(number(message)?)))),
        1 => 8,
        2 => number(message)?,
        5 => 4,
        _ => return None,
    };
    let (value, rest) = message.split_at_checked(usize::try_from(length).ok()?)?;
    *message = rest;
    Some(Some((tag >> 3, Value::Bytes(value))))
}

/// Takes a number of at most ten bytes off a message.
fn number(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use plimsoll_scenario::FieldList;

    use super::*;

    fn judged(judge: &dyn Judge, body: &[u8]) -> (Judgement, String) {
        let fields = FieldList::default();
        let received = Received::new(200, &fields, body);
        (judge.judge(&received), judge.describe(&received))
    }

    #[test]
    fn a_bulk_answer_with_errors_is_a_rejection_and_quotes_the_first() {
        let judge = BulkJudge::new().unwrap();
        let refused = Judgement::Failed(ErrorClass::Rejected);
        let unclear = Judgement::Failed(ErrorClass::Check);
        for (body, judgement, words) in [
            (r#"{"errors":false,"took":3,"items":[{"create":{"status":201}}]}"#, Judgement::Good, ""),
            // Elasticsearch 7.
            (r#"{"took":3, "errors" : false, "items":[]}"#, Judgement::Good, ""),
            // Even the end may be missing.
            (r#"{"errors":false,"items":[{"crea"#, Judgement::Good, ""),
            (
                r#"{"errors":true,"items":[{"create":{"status":201}},{"create":{"status":400,"error":{"type":"a"}}},
                   {"create":{"error":{"type":"b"}}}]}"#,
                refused,
                r#"the store refused records: {"type":"a"}"#,
            ),
            (
                r#"{"errors":true,"items":[{"index":{"error":"full"}},7]}"#,
                refused,
                "the store refused records: \"full\"",
            ),
            (r#"{"errors":true,"items":[{"ind"#, refused, "the store refused records, and does not say why"),
            (
                r#"{"errors":true,"items":[{"create":{"status":400}}]}"#,
                refused,
                "the store refused records, and does not say why",
            ),
            (r#"{"errors":"false"}"#, unclear, "the answer does not say `errors`, true or false"),
            (r#"{"took":3}"#, unclear, "the answer does not say `errors`, true or false"),
            ("", unclear, "the answer does not say `errors`, true or false"),
        ] {
            let (found, described) = judged(&judge, body.as_bytes());
            assert_eq!(found, judgement, "{body}");
            if judgement != Judgement::Good {
                assert_eq!(described, words, "{body}");
            }
        }
    }

    #[test]
    fn an_otlp_answer_with_refused_records_is_a_rejection_and_says_why() {
        let refused = Judgement::Failed(ErrorClass::Rejected);
        let long = b"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        for (body, judgement, words) in [
            (&b""[..], Judgement::Good, ""),
            (b"\x0a\x00", Judgement::Good, ""),
            // A warning.
            (b"\x0a\x05\x12\x03old", Judgement::Good, ""),
            (b"\x0a\x02\x08\x05", refused, "the store refused records, 5 of them, and does not say why"),
            (b"\x0a\x07\x08\x05\x12\x03old", refused, "the store refused records, 5 of them: old"),
            // Unknown fields, of each kind.
            (b"\x19........\x25....\x18\x01\x0a\x02\x08\x05", refused, ""),
            (long, refused, ""),
            (b"what is this", Judgement::Good, ""),
            (b"{}", Judgement::Good, ""),
            (&[0xff; 100], Judgement::Good, ""),
            (b"\x0a\x7f\x08\x05", Judgement::Good, ""),
        ] {
            let (found, described) = judged(&OtlpJudge, body);
            assert_eq!(found, judgement, "{}", body.escape_ascii());
            if !words.is_empty() {
                assert_eq!(described, words);
            }
        }
    }
}
