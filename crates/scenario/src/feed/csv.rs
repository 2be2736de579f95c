//! Records of CSV files (RFC 4180).

/// Takes a record apart: calls `take` with the position of each value and the value to append, in order.
/// Returns their number.
///
/// A quoted value is the text between its quotes, with doubled quotes for one; any other value is the text
/// between delimiters, spaces included, and has no quotes.
pub(super) fn split<'r>(
    record: &'r [u8],
    delimiter: u8,
    mut take: impl FnMut(usize, Value<'r>) -> Result<(), String>,
) -> Result<usize, String> {
    let mut rest = record;
    for position in 0.. {
        let (value, after) = cut(rest, delimiter)?;
        take(position, value)?;
        match after.split_first() {
            None => return Ok(position + 1),
            Some((_, after)) => rest = after,
        }
    }
    Ok(0)
}

/// One value as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'r> {
    /// Without the quotes around it.
    text: &'r [u8],
    /// `true` if the text has doubled quotes.
    has_quotes: bool,
}

impl Value<'_> {
    /// Replaces the content of `into` by the value.
    pub(super) fn write(&self, into: &mut Vec<u8>) {
        into.clear();
        if !self.has_quotes {
            into.extend_from_slice(self.text);
            return;
        }
        let mut rest = self.text;
        // Every quote in the text is the first of two.
        while let Some(at) = memchr::memchr(b'"', rest) {
            into.extend_from_slice(&rest[..=at]);
            rest = &rest[at + 2..];
        }
        into.extend_from_slice(rest);
    }
}

/// The value in front, and the rest from the delimiter on.
fn cut(text: &[u8], delimiter: u8) -> Result<(Value<'_>, &[u8]), String> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let (text, after) = text.split_at(memchr::memchr(delimiter, text).unwrap_or(text.len()));
        if memchr::memchr(b'"', text).is_some() {
            return Err("a quote within a value that does not begin with one; put quotes around the whole \
                        value and double those in it"
                .to_owned());
        }
        // Else the file of a system whose lines end so would be one long row.
        if memchr::memchr(b'\r', text).is_some() {
            return Err("a carriage return outside of quotes; lines end with LF or with CR and LF".to_owned());
        }
        return Ok((Value { text, has_quotes: false }, after));
    };
    let (mut end, mut has_quotes) = (0, false);
    loop {
        match memchr::memchr(b'"', &quoted[end..]) {
            None => return Err("a quote that is never closed".to_owned()),
            Some(at) => end += at,
        }
        if quoted.get(end + 1) != Some(&b'"') {
            break;
        }
        has_quotes = true;
        end += 2;
    }
    let after = &quoted[end + 1..];
    match after.first() {
        Some(&byte) if byte != delimiter => {
            Err(format!("`{}` behind the closing quote of a value", byte.escape_ascii()))
        }
        _ => Ok((Value { text: &quoted[..end], has_quotes }, after)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(record: &[u8], delimiter: u8) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        let count = split(record, delimiter, |position, value| {
            assert_eq!(position, values.len());
            let mut text = b"before".to_vec();
            value.write(&mut text);
            values.push(String::from_utf8_lossy(&text).into_owned());
            Ok(())
        })?;
        assert_eq!(count, values.len());
        Ok(values)
    }

    #[test]
    fn values_with_and_without_quotes() {
        for (record, expected) in [
            ("a,b", vec!["a", "b"]),
            (" a , b ", vec![" a ", " b "]),
            (",", vec!["", ""]),
            ("", vec![""]),
            ("\"\"", vec![""]),
            ("\"a,b\",\"c\"", vec!["a,b", "c"]),
            ("\"a\"\"b\"\"\",\"\"\"\"", vec!["a\"b\"", "\""]),
            ("\"a\r\nb\",c", vec!["a\r\nb", "c"]),
            ("a;b,c", vec!["a;b", "c"]),
        ] {
            assert_eq!(values(record.as_bytes(), b',').unwrap(), expected, "{record}");
        }
        assert_eq!(values(b"a;\"b;c\";", b';').unwrap(), ["a", "b;c", ""]);
        assert_eq!(values(b"a\tb", b'\t').unwrap(), ["a", "b"]);
    }

    #[test]
    fn stray_quotes_are_errors() {
        for (record, reason) in [
            ("a\"b", "a quote within a value"),
            ("\"a\"b", "`b` behind the closing quote"),
            ("\"a\" ,b", "` ` behind the closing quote"),
            ("\"a", "a quote that is never closed"),
            ("\"a\"\"", "a quote that is never closed"),
        ] {
            let error = values(record.as_bytes(), b',').unwrap_err();
            assert!(error.starts_with(reason), "{record}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_by_the_rules_is_read_back(
            row in prop::collection::vec("[ab,;\"\n\r ]{0,6}", 1..5),
            quote_all in any::<bool>(),
        ) {
            let written: Vec<String> = row.iter().map(|value| {
                let needs_quotes = quote_all || value.contains([',', '"', '\n', '\r']);
                if needs_quotes { format!("\"{}\"", value.replace('"', "\"\"")) } else { value.clone() }
            }).collect();
            prop_assert_eq!(values(written.join(",").as_bytes(), b',').unwrap(), row);
        }

        #[test]
        fn any_record_is_split_or_refused(record in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = values(&record, b',');
        }
    }
}
