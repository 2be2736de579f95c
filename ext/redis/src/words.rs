//! The words of a command that is written as one text, as `redis-cli` reads it.

use plimsoll_scenario::slot::slot_end;

/// Splits a text at its spaces. Words in quotes may have spaces, and in double quotes `\n`, `\r`, `\t`,
/// `\xHH` and a quote behind `\`. Templates (`${…}`) are parts of words, whatever is in them.
///
/// # Errors
/// A quote that is not closed, or is closed within a word; bytes that are no text (`\xff`).
pub(crate) fn split(text: &str) -> Result<Vec<String>, String> {
    let (bytes, mut at, mut words) = (text.as_bytes(), 0, Vec::new());
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        let Some(&first) = bytes.get(at) else { return Ok(words) };
        let mut word = Vec::new();
        let quote = [b'"', b'\''].into_iter().find(|quote| *quote == first);
        at += usize::from(quote.is_some());
        loop {
            match (bytes.get(at).copied(), quote) {
                (None, Some(_)) => return Err("a quote is not closed".to_owned()),
                (None, None) => break,
                (Some(byte), Some(quote)) if byte == quote => {
                    at += 1;
                    if bytes.get(at).is_some_and(|next| !next.is_ascii_whitespace()) {
                        return Err("a quote is closed within a word".to_owned());
                    }
                    break;
                }
                (Some(b'\\'), Some(quote)) => at = escaped(bytes, at, quote, &mut word),
                (Some(byte), None) if byte.is_ascii_whitespace() => break,
                (Some(b'$'), _) if bytes[at..].starts_with(b"${") => {
                    let end = slot_end(&bytes[at + 2..]).map_or(bytes.len(), |end| at + 2 + end + 1);
                    let end = end.min(bytes.len());
                    word.extend_from_slice(&bytes[at..end]);
                    at = end;
                }
                (Some(byte), _) => {
                    word.push(byte);
                    at += 1;
                }
            }
        }
        words.push(String::from_utf8(word).map_err(|_| "bytes that are no text in UTF-8".to_owned())?);
    }
}

/// Reads what stands behind a `\` in quotes; returns where to go on.
fn escaped(bytes: &[u8], at: usize, quote: u8, word: &mut Vec<u8>) -> usize {
    let hex = |range: std::ops::Range<usize>| {
        let digits = std::str::from_utf8(bytes.get(range)?).ok()?;
        u8::from_str_radix(digits, 16).ok()
    };
    let byte = match (bytes.get(at + 1), quote) {
        (Some(b'x'), b'"') if hex(at + 2..at + 4).is_some() => {
            word.extend(hex(at + 2..at + 4));
            return at + 4;
        }
        (Some(b'n'), b'"') => b'\n',
        (Some(b'r'), b'"') => b'\r',
        (Some(b't'), b'"') => b'\t',
        (Some(&next), b'"') => next,
        (Some(b'\''), _) => b'\'',
        _ => {
            word.push(b'\\');
            return at + 1;
        }
    };
    word.push(byte);
    at + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_shell_of_redis() {
        for (text, words) in [
            ("", &[][..]),
            ("  PING ", &["PING"]),
            ("SET a \"b c\"", &["SET", "a", "b c"]),
            ("SET a 'b \"c'  EX 5", &["SET", "a", "b \"c", "EX", "5"]),
            (r#"SET a "x\ny\"z\x41\\""#, &["SET", "a", "x\ny\"zA\\"]),
            (r"SET a 'it\'s \n'", &["SET", "a", r"it's \n"]),
            ("SET k${random_int(1, 9)} ${v}x", &["SET", "k${random_int(1, 9)}", "${v}x"]),
            ("SET a \"${fill(10, \"b c\")}\"", &["SET", "a", "${fill(10, \"b c\")}"]),
            ("SET a \"\"", &["SET", "a", ""]),
            ("GET a\"b", &["GET", "a\"b"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        assert!(split("SET a \"b").unwrap_err().contains("not closed"));
        assert!(split("SET 'a'b c").unwrap_err().contains("within a word"));
        // A plan is text, and so are its templates: other bytes would be changed on the way.
        assert!(split("SET a \"\\xff\\x80\"").unwrap_err().contains("no text in UTF-8"));
        assert_eq!(split("SET a \"\\xc3\\xa4\"").unwrap()[2], "ä");
    }
}
