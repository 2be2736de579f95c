//! The server's half: commands, one after the other, out of a byte stream.

use crate::elements::{Element, ElementReader};

/// Bytes of a word: Redis's own limit (`proto-max-bulk-len`).
const LONGEST_WORD: u64 = 512 << 20;
/// Words of a command: Redis's own limit.
const MOST_WORDS: u64 = 1024 * 1024;
/// Bytes of a command whose memory is kept for the next one.
const KEPT: usize = 64 * 1024;

/// Reads commands that come in pieces.
#[derive(Debug, Default)]
pub(crate) struct RequestReader {
    elements: ElementReader,
    /// Words of the command that have not come, the one that is being read among them.
    missing: u64,
    /// Words that have come, one behind the other, and where each ends.
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl RequestReader {
    /// Returns the bytes that are held of a command that is not whole.
    pub(crate) fn held(&self) -> usize {
        self.elements.held() + self.text.len() + size_of_val(self.ends.as_slice())
    }

    /// Gives the words of each whole command of the bytes to `each`, the name first.
    ///
    /// # Errors
    /// Something is no command, as Redis says it. The connection ends.
    pub(crate) fn read(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[&[u8]])) -> Result<(), String> {
        while !bytes.is_empty() {
            let element = self.elements.next(&mut bytes);
            let element = element.map_err(|broken| format!("Protocol error: {}", broken.reason))?;
            match (element, self.missing) {
                (None, _) => break,
                (Some(Element::Array(words)), 0) if words <= MOST_WORDS => self.missing = words,
                (Some(Element::Array(_)), 0) => {
                    return Err("Protocol error: invalid multibulk length".to_owned());
                }
                (Some(Element::Value(length)), 1..) if length <= LONGEST_WORD => {}
                (Some(Element::Value(_)), 1..) => {
                    return Err("Protocol error: invalid bulk length".to_owned());
                }
                (Some(Element::Bytes(part, is_last)), 1..) => {
                    self.text.extend_from_slice(part);
                    if is_last {
                        self.ends.push(self.text.len());
                        self.missing -= 1;
                    }
                    if self.missing == 0 {
                        self.give(&mut each);
                    }
                }
                _ => return Err("Protocol error: expected an array of words".to_owned()),
            }
        }
        Ok(())
    }

    /// Gives the command that is whole now, and forgets it.
    fn give(&mut self, each: &mut impl FnMut(&[&[u8]])) {
        let mut start = 0;
        let word = |end: usize| &self.text[std::mem::replace(&mut start, end)..end];
        each(&self.ends.drain(..).map(word).collect::<Vec<_>>());
        self.text.clear();
        self.text.shrink_to(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(stream: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, String> {
        let (mut reader, mut all) = (RequestReader::default(), Vec::new());
        for bytes in stream.chunks(piece) {
            reader.read(bytes, |words| all.push(words.join(&b'|')))?;
        }
        Ok(all)
    }

    #[test]
    fn commands_are_read_whatever_their_pieces() {
        let stream =
            b"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\nv\r\nw\r\n*0\r\n*1\r\n$0\r\n\r\n";
        for piece in 1..=stream.len() {
            assert_eq!(read(stream, piece).unwrap(), [&b"PING"[..], b"SET|k|v\r\nw", b""], "{piece}");
        }
        for (stream, why) in [
            (&b"*x\r\n"[..], "in place of a length"),
            (b"*1048577\r\n", "invalid multibulk length"),
            (b"*1\r\n:4\r\n", "expected an array of words"),
            (b"*1\r\n*1\r\n", "expected an array of words"),
            (b"$1\r\n", "expected an array of words"),
            (b"*1\r\n$-1\r\n", "expected an array of words"),
            (b"*1\r\n$536870913\r\n", "invalid bulk length"),
            (b"GET key\r\n", "unknown type 0x47"),
        ] {
            assert!(read(stream, 1).unwrap_err().contains(why), "{stream:?}");
        }
    }

    #[test]
    fn what_is_held_is_that_of_one_command() {
        let mut reader = RequestReader::default();
        reader.read(b"*2\r\n$1\r\na\r\n$900000\r\n", |_| panic!("it is not whole")).unwrap();
        reader.read(&[b'x'; 100_000], |_| panic!("it is not whole")).unwrap();
        assert!(reader.held() > 100_000);
        reader.read(&[&[b'x'; 800_000][..], b"\r\n*1"].concat(), |words| assert_eq!(words.len(), 2)).unwrap();
        assert!(reader.held() < 10 && reader.text.capacity() <= KEPT);
    }

    proptest! {
        #[test]
        fn anything_is_read_alike_in_pieces(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            piece in 1_usize..40,
        ) {
            prop_assert_eq!(read(&bytes, piece), read(&bytes, bytes.len().max(1)));
        }
    }
}
