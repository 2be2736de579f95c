//! The client's half: replies of RESP2, one after the other, out of a byte stream.
//!
//! A reply is a line behind its type: `+OK`, `-ERR text`, `:5`; a length with as many bytes, `$3`; or a
//! number of replies, `*2`. A length or number of -1 is no value.

use plimsoll_core::ErrorClass;
use plimsoll_wire::http1::{LONGEST_KEPT_BODY, Truncated};
use plimsoll_wire::in_turn::{Answer, InTurnClient, Owed, Violation};

/// Bytes of a line before its end: a status, an error, or a number. The server's own are a few hundred.
const LONGEST_LINE: usize = 64 * 1024;
/// Bytes of a value: what a server can be set to send (`proto-max-bulk-len`), by far.
const LONGEST_VALUE: i64 = 1 << 32;
/// Replies in an array.
const MOST_REPLIES: i64 = 1 << 31;

/// Reads the replies of one connection. Its memory is a line of a reply that is not whole.
#[derive(Debug, Default)]
pub(crate) struct ReplyClient {
    /// Received bytes of a line that is not whole.
    line: Vec<u8>,
    /// Bytes of a value that have not come, with the two behind it.
    value: u64,
    /// Replies that have not come of the one that is being read, if it is an array; 1 if it is not.
    pending: u64,
    /// The reply as far as it was read; `None` between replies.
    reply: Option<Reply>,
}

/// A reply that is being read.
#[derive(Debug)]
struct Reply {
    status: u16,
    wire_bytes: u64,
    refusal: Option<String>,
    /// `true` once something of its content was kept: what follows stands on a line of its own.
    has_content: bool,
}

fn violation(reason: String) -> Violation {
    Violation { class: ErrorClass::Protocol, reason }
}

impl ReplyClient {
    /// Reads a line without its end: a type, and what it says.
    fn element(&mut self, line: &[u8], keep: bool, content: &mut Vec<u8>) -> Result<(), Violation> {
        let Some((&kind, text)) = line.split_first() else {
            return Err(violation("the server sent an empty line in place of a reply".to_owned()));
        };
        let is_whole = self.pending == 1;
        self.pending -= 1;
        let reply =
            self.reply.get_or_insert(Reply { status: 200, wire_bytes: 0, refusal: None, has_content: false });
        match kind {
            b'+' => reply.keep(text, keep, content),
            b'-' => {
                let words = String::from_utf8_lossy(text);
                reply.status = status_of(&words);
                reply.refusal.get_or_insert_with(|| words.into_owned());
                reply.keep(text, keep, content);
            }
            b':' => {
                number(text, i64::MIN..=i64::MAX)?;
                reply.keep(text, keep, content);
            }
            b'$' => match number(text, -1..=LONGEST_VALUE)? {
                -1 => reply.none(is_whole, keep, content),
                length => {
                    reply.keep(b"", keep, content);
                    self.value = length as u64 + 2;
                    // The value is the reply.
                    self.pending += 1;
                }
            },
            b'*' => match number(text, -1..=MOST_REPLIES)? {
                -1 => reply.none(is_whole, keep, content),
                replies => self.pending += replies as u64,
            },
            other => {
                let reason = format!("the server sent a reply of unknown type 0x{other:02X}");
                return Err(violation(reason));
            }
        }
        Ok(())
    }

    /// Reads bytes of a value, and the end of its line.
    fn value(&mut self, keep: bool, input: &mut &[u8], content: &mut Vec<u8>) -> Result<(), Violation> {
        let taken = input.len().min(usize::try_from(self.value).unwrap_or(usize::MAX));
        let (bytes, rest) = input.split_at(taken);
        let of_value = usize::try_from(self.value.saturating_sub(2)).unwrap_or(usize::MAX).min(taken);
        let (value, end) = bytes.split_at(of_value);
        if keep {
            let room = LONGEST_KEPT_BODY.saturating_sub(content.len());
            content.extend_from_slice(&value[..value.len().min(room)]);
        }
        // Of the two bytes of the end, those that have come.
        let place = 2 - (self.value - of_value as u64).min(2) as usize;
        if !b"\r\n"[place..].starts_with(end) {
            return Err(violation("a value of the server is longer than it said".to_owned()));
        }
        self.value -= taken as u64;
        if let Some(reply) = &mut self.reply {
            reply.wire_bytes += taken as u64;
        }
        *input = rest;
        if self.value == 0 {
            self.pending -= 1;
        }
        Ok(())
    }

    /// Reads the next line out of the input, or keeps the bytes of one that is not whole.
    fn line(&mut self, keep: bool, input: &mut &[u8], content: &mut Vec<u8>) -> Result<(), Violation> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(input.len(), |end| end + 1);
        if self.line.len() + taken > LONGEST_LINE {
            return Err(violation(format!("the server sent a line of more than {LONGEST_LINE} bytes")));
        }
        let (bytes, rest) = input.split_at(taken);
        *input = rest;
        if end.is_none() {
            self.line.extend_from_slice(bytes);
            return Ok(());
        }
        let mut gathered = std::mem::take(&mut self.line);
        let whole = match gathered.is_empty() {
            true => bytes,
            false => {
                gathered.extend_from_slice(bytes);
                &gathered
            }
        };
        if whole.starts_with(b"HTTP/") {
            let reason = "this port speaks HTTP, not the protocol of Redis".to_owned();
            return Err(Violation { class: ErrorClass::WrongProtocol, reason });
        }
        let Some(line) = whole.strip_suffix(b"\r\n") else {
            return Err(violation("a line of the server does not end with CR LF".to_owned()));
        };
        let length = whole.len() as u64;
        self.element(line, keep, content)?;
        if let Some(reply) = &mut self.reply {
            reply.wire_bytes += length;
        }
        gathered.clear();
        self.line = gathered;
        Ok(())
    }
}

impl Reply {
    /// Keeps a part of the content, each on a line of its own.
    fn keep(&mut self, text: &[u8], keep: bool, content: &mut Vec<u8>) {
        if keep {
            if self.has_content && content.len() < LONGEST_KEPT_BODY {
                content.push(b'\n');
            }
            let room = LONGEST_KEPT_BODY.saturating_sub(content.len());
            content.extend_from_slice(&text[..text.len().min(room)]);
            self.has_content = true;
        }
    }

    /// Notes that there is no value: a miss, if that is the whole reply.
    fn none(&mut self, is_whole: bool, keep: bool, content: &mut Vec<u8>) {
        match is_whole && self.wire_bytes == 0 {
            true => self.status = 404,
            false => self.keep(b"", keep, content),
        }
    }
}

impl InTurnClient for ReplyClient {
    fn next(
        &mut self,
        owed: Owed,
        input: &mut &[u8],
        content: &mut Vec<u8>,
    ) -> Result<Option<Answer>, Violation> {
        if self.pending == 0 {
            self.pending = 1;
        }
        while !input.is_empty() {
            match self.value {
                0 => self.line(owed.keep, input, content)?,
                _ => self.value(owed.keep, input, content)?,
            }
            if self.pending == 0
                && let Some(Reply { status, wire_bytes, refusal, .. }) = self.reply.take()
            {
                return Ok(Some(Answer { status, wire_bytes, refusal }));
            }
        }
        Ok(None)
    }

    fn finish(&mut self) -> Result<(), Truncated> {
        match self.reply.is_some() || !self.line.is_empty() {
            true => Err(Truncated { started: true }),
            false => Ok(()),
        }
    }
}

/// Returns the number of a line, which has to be within a range.
fn number(text: &[u8], range: std::ops::RangeInclusive<i64>) -> Result<i64, Violation> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        let shown = String::from_utf8_lossy(&text[..text.len().min(32)]).into_owned();
        violation(format!("the server sent `{}` in place of a length or number", shown.escape_debug()))
    })
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
