//! The client's half: replies, one after the other, out of a byte stream.

use plimsoll_core::ErrorClass;
use plimsoll_wire::http1::{LONGEST_KEPT_BODY, Truncated};
use plimsoll_wire::in_turn::{Answer, InTurnClient, Owed, Violation};

use crate::elements::{Element, ElementReader};

/// Reads the replies of one connection.
#[derive(Debug, Default)]
pub(crate) struct ReplyClient {
    elements: ElementReader,
    /// Elements that have not come of the reply that is being read.
    pending: u64,
    reply: Reply,
}

/// A reply as far as it was read.
#[derive(Debug, Default)]
struct Reply {
    /// 0 before its first element.
    status: u16,
    wire_bytes: u64,
    refusal: Option<String>,
    /// `true` once something of its content was kept: what follows stands on a line of its own.
    has_content: bool,
}

impl Reply {
    /// Takes in an element, and keeps its content if that is wanted. Returns the number of elements that
    /// follow from it, less the one that it is.
    #[inline]
    fn take(&mut self, element: Element<'_>, keep: bool, content: &mut Vec<u8>) -> i64 {
        let is_first = self.status == 0;
        self.status = self.status.max(200);
        let kept = if keep { Some(content) } else { None };
        match element {
            Element::Text(text) => self.keep_line(text, kept),
            Element::Error(text) => {
                let words = String::from_utf8_lossy(text);
                self.status = status_of(&words);
                self.refusal.get_or_insert_with(|| words.into_owned());
                self.keep_line(text, kept);
            }
            // A miss, if that is the whole reply.
            Element::Nothing if is_first => self.status = 404,
            Element::Nothing => self.keep_line(b"", kept),
            Element::Array(elements) => return elements as i64 - 1,
            Element::Value(_) => {
                self.keep_line(b"", kept);
                return 0;
            }
            Element::Bytes(bytes, is_last) => {
                kept.into_iter().for_each(|content| append(bytes, content));
                return -i64::from(is_last);
            }
        }
        -1
    }

    /// Keeps a part of the content, each on a line of its own.
    fn keep_line(&mut self, text: &[u8], content: Option<&mut Vec<u8>>) {
        let Some(content) = content else { return };
        if std::mem::replace(&mut self.has_content, true) {
            append(b"\n", content);
        }
        append(text, content);
    }
}

/// Appends to the content of a reply as far as there is room.
fn append(bytes: &[u8], content: &mut Vec<u8>) {
    let room = LONGEST_KEPT_BODY.saturating_sub(content.len());
    content.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

impl InTurnClient for ReplyClient {
    fn next(
        &mut self,
        owed: Owed,
        input: &mut &[u8],
        content: &mut Vec<u8>,
    ) -> Result<Option<Answer>, Violation> {
        self.pending = self.pending.max(1);
        while !input.is_empty() {
            let before = input.len();
            let element = self.elements.next(input).map_err(in_words)?;
            self.reply.wire_bytes += (before - input.len()) as u64;
            let Some(element) = element else { break };
            self.pending = self.pending.saturating_add_signed(self.reply.take(element, owed.keep, content));
            if self.pending == 0 {
                let Reply { status, wire_bytes, refusal, .. } = std::mem::take(&mut self.reply);
                return Ok(Some(Answer { status, wire_bytes, refusal }));
            }
        }
        Ok(None)
    }

    fn finish(&mut self) -> Result<(), Truncated> {
        if self.reply.wire_bytes > 0 { Err(Truncated { started: true }) } else { Ok(()) }
    }
}

/// Puts what the server sent into a sentence.
fn in_words(Violation { class, reason }: Violation) -> Violation {
    let reason = match class {
        ErrorClass::WrongProtocol => "this port speaks HTTP, not the protocol of Redis".to_owned(),
        _ => format!("the server sent {reason}"),
    };
    Violation { class, reason }
}

/// Returns the HTTP status that corresponds to an error, by its first word.
fn status_of(error: &str) -> u16 {
    match error.split(' ').next().unwrap_or_default() {
        "NOAUTH" | "WRONGPASS" => 401,
        "NOPERM" | "DENIED" => 403,
        "BUSY" | "LOADING" | "OOM" | "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN" | "READONLY" => 503,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::elements::LONGEST_LINE;

    /// Status, bytes, refusal and content of a reply.
    type Whole = (u16, u64, Option<String>, String);

    /// Reads all replies of a stream that comes in pieces of this size.
    fn read(stream: &[u8], piece: usize) -> Result<Vec<Whole>, String> {
        let (mut client, mut content, mut all) = (ReplyClient::default(), Vec::new(), Vec::new());
        for mut input in stream.chunks(piece) {
            while !input.is_empty() {
                let owed = Owed { kind: 0, keep: true };
                match client.next(owed, &mut input, &mut content).map_err(|error| error.reason)? {
                    Some(Answer { status, wire_bytes, refusal }) => {
                        let text = String::from_utf8_lossy(&std::mem::take(&mut content)).into_owned();
                        all.push((status, wire_bytes, refusal, text));
                    }
                    None => assert!(input.is_empty()),
                }
            }
        }
        client.finish().map_err(|_| "cut".to_owned())?;
        Ok(all)
    }

    #[test]
    fn replies_are_read_whatever_their_pieces() {
        let stream = b"+OK\r\n:-7\r\n$5\r\nhe\r\no\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n-ERR no\r\n-NOAUTH x\r\n\
            *3\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n+b\r\n*2\r\n+a\r\n-WRONGTYPE b\r\n-LOADING l\r\n";
        for piece in 1..=stream.len() {
            let replies = read(stream, piece).unwrap();
            let texts: Vec<&str> = replies.iter().map(|(.., text)| text.as_str()).collect();
            let expected =
                ["OK", "-7", "he\r\no", "", "", "", "", "ERR no", "NOAUTH x", "a\n1\n\nb", "a\nWRONGTYPE b"];
            assert_eq!(texts[..11], expected, "{piece}");
            let statuses: Vec<u16> = replies.iter().map(|(status, ..)| *status).collect();
            assert_eq!(statuses, [200, 200, 200, 200, 404, 404, 200, 500, 401, 200, 500, 503], "{piece}");
            assert_eq!(replies.iter().map(|(_, bytes, ..)| bytes).sum::<u64>(), stream.len() as u64);
            assert_eq!(replies[7].2.as_deref(), Some("ERR no"));
            assert_eq!(replies[9].2, None);
        }
    }

    #[test]
    fn what_is_no_reply_is_named() {
        for (stream, reason) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], "this port speaks HTTP"),
            (b"HTTP/1.0 400 Bad\n", "this port speaks HTTP"),
            (b"\r\n", "an empty line"),
            (b"?1\r\n", "unknown type 0x3F"),
            (b"+OK\n", "does not end with CR LF"),
            (b"$x\r\n", "`x` in place of a length"),
            (b"$-2\r\n", "`-2` in place of a length"),
            (b":\r\n", "`` in place of a length"),
            (b"*99999999999\r\n", "`99999999999` in place of a length"),
            (b"$2\r\nabc\r\n", "longer than it said"),
            (b"$2\r\nab\rx", "longer than it said"),
            (b"$2\r\nab", "cut"),
            (b"+O", "cut"),
            (b"*2\r\n+a\r\n", "cut"),
        ] {
            for piece in [1, 3, 100] {
                let error = read(stream, piece).unwrap_err();
                assert!(error.contains(reason), "{stream:?} in {piece}: {error}");
            }
        }
        let long = [b"+", &[b'x'; LONGEST_LINE][..]].concat();
        assert!(read(&long, 1_000).unwrap_err().contains("a line of more than"));
    }

    proptest! {
        #[test]
        fn anything_is_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            piece in 1_usize..40,
        ) {
            let whole = read(&bytes, bytes.len().max(1));
            prop_assert_eq!(read(&bytes, piece), whole);
        }

        #[test]
        fn values_come_as_they_are(
            value in prop::collection::vec(any::<u8>(), 0..500),
            piece in 1_usize..40,
        ) {
            let stream = [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
            let replies = read(&stream, piece).unwrap();
            prop_assert_eq!(&replies[0].3, &String::from_utf8_lossy(&value).into_owned());
        }
    }
}
