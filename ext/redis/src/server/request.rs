//! The server's half: commands, one after the other, out of a byte stream.

/// Bytes of a word: Redis's own limit (`proto-max-bulk-len`).
const LONGEST_WORD: usize = 512 << 20;
/// Words of a command: Redis's own limit.
const MOST_WORDS: usize = 1024 * 1024;
/// Bytes of a line before its end: Redis's own limit.
const LONGEST_LINE: usize = 64 * 1024;

/// Reads commands that come in pieces.
#[derive(Debug, Default)]
pub(crate) struct RequestReader {
    /// Received bytes of a command that is not whole.
    held: Vec<u8>,
    /// Length from which on it is worth another look.
    needs: usize,
}

/// A command that is whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    /// Words, the name first.
    Words(Vec<&'a [u8]>),
    /// An empty line.
    Nothing,
}

/// Bytes that are no command, as Redis says it. The connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoCommand(pub(crate) &'static str);

/// Outcome of a look at bytes: the command and its length, or the length that is needed to know more.
type Looked<'a> = Result<Result<(Request<'a>, usize), usize>, NoCommand>;

impl RequestReader {
    /// Bytes that are held.
    pub(crate) fn held(&self) -> usize {
        self.held.capacity()
    }

    /// Gives each whole command of the bytes to `each`.
    ///
    /// # Errors
    /// Something is no command.
    pub(crate) fn read(&mut self, bytes: &[u8], mut each: impl FnMut(Request<'_>)) -> Result<(), NoCommand> {
        if !self.held.is_empty() {
            self.held.extend_from_slice(bytes);
            if self.held.len() < self.needs {
                return Ok(());
            }
            let held = std::mem::take(&mut self.held);
            let left = self.all(&held, &mut each)?.len();
            if left > 0 {
                self.held = held;
                self.held.drain(..self.held.len() - left);
            }
            return Ok(());
        }
        let rest = self.all(bytes, &mut each)?;
        self.held.extend_from_slice(rest);
        Ok(())
    }

    /// Gives all whole commands; returns what is left.
    fn all<'a>(
        &mut self,
        mut rest: &'a [u8],
        each: &mut impl FnMut(Request<'_>),
    ) -> Result<&'a [u8], NoCommand> {
        while !rest.is_empty() {
            match look(rest)? {
                Ok((request, length)) => {
                    each(request);
                    rest = &rest[length..];
                }
                Err(needs) => {
                    self.needs = needs;
                    break;
                }
            }
        }
        Ok(rest)
    }
}

/// Looks at the front of the bytes.
fn look(bytes: &[u8]) -> Looked<'_> {
    if bytes[0] != b'*' {
        return inline(bytes);
    }
    let Some((count, mut at)) = line(bytes, 0)? else { return Ok(Err(bytes.len() + 1)) };
    let count = number(&count[1..]).filter(|count| *count <= MOST_WORDS);
    let count = count.ok_or(NoCommand("Protocol error: invalid multibulk length"))?;
    // Words take four bytes at least.
    let mut words = Vec::with_capacity(count.min(bytes.len() / 4 + 1));
    for _ in 0..count {
        let Some((length, next)) = line(bytes, at)? else { return Ok(Err(bytes.len() + 1)) };
        let Some((b'$', length)) = length.split_first().map(|(first, rest)| (*first, rest)) else {
            return Err(NoCommand("Protocol error: expected '$'"));
        };
        let length = number(length).filter(|length| *length <= LONGEST_WORD);
        let length = length.ok_or(NoCommand("Protocol error: invalid bulk length"))?;
        let end = next + length;
        if bytes.len() < end + 2 {
            return Ok(Err(end + 2));
        }
        words.push(&bytes[next..end]);
        at = end + 2;
    }
    let request = if words.is_empty() { Request::Nothing } else { Request::Words(words) };
    Ok(Ok((request, at)))
}

/// A command as one types it into a terminal: words between spaces.
fn inline(bytes: &[u8]) -> Looked<'_> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return match bytes.len() > LONGEST_LINE {
            true => Err(NoCommand("Protocol error: too big inline request")),
            false => Ok(Err(bytes.len() + 1)),
        };
    };
    let words: Vec<&[u8]> =
        bytes[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let request = if words.is_empty() { Request::Nothing } else { Request::Words(words) };
    Ok(Ok((request, end + 1)))
}

/// The line that begins at a place, and where the next one begins; `None` if it is not whole.
fn line(bytes: &[u8], at: usize) -> Result<Option<(&[u8], usize)>, NoCommand> {
    let rest = &bytes[at..];
    match rest.iter().take(LONGEST_LINE).position(|byte| *byte == b'\n') {
        Some(end) => Ok(Some((rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]), at + end + 1))),
        None if rest.len() >= LONGEST_LINE => Err(NoCommand("Protocol error: too big mbulk count string")),
        None => Ok(None),
    }
}

/// A number without a sign.
fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(stream: &[u8], piece: usize) -> Result<Vec<Vec<Vec<u8>>>, &'static str> {
        let (mut reader, mut all) = (RequestReader::default(), Vec::new());
        for bytes in stream.chunks(piece) {
            let each = |request: Request<'_>| match request {
                Request::Words(words) => all.push(words.iter().map(|word| word.to_vec()).collect()),
                Request::Nothing => {}
            };
            reader.read(bytes, each).map_err(|NoCommand(why)| why)?;
        }
        Ok(all)
    }

    #[test]
    fn commands_are_read_whatever_their_pieces() {
        let stream = b"*1\r\n$4\r\nPING\r\n\r\nGET  key\r\n\
            *3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\nv\r\nw\r\n*0\r\n*1\r\n$0\r\n\r\n";
        for piece in 1..=stream.len() {
            let commands = read(stream, piece).unwrap();
            let shown: Vec<String> = commands
                .iter()
                .map(|words| String::from_utf8_lossy(&words.join(&b'|')).into_owned())
                .collect();
            assert_eq!(shown, ["PING", "GET|key", "SET|k|v\r\nw", ""], "{piece}");
        }
        for (stream, why) in [
            (&b"*x\r\n"[..], "invalid multibulk length"),
            (b"*1048577\r\n", "invalid multibulk length"),
            (b"*1\r\n:4\r\n", "expected '$'"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        ] {
            assert!(read(stream, 1).unwrap_err().contains(why), "{stream:?}");
        }
        assert!(read(&vec![b'x'; LONGEST_LINE + 2], 1_000).unwrap_err().contains("too big inline"));
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
