//! InfluxDB's line protocol, as its documentation has it ("Line protocol reference", InfluxDB 2.7):
//! measurement, tags, fields and a time in each line. Lines that are none are passed over and counted, as the
//! real server does.

use super::batch::Decoded;
use super::column::Value;
use super::msgpack::Item;
use super::rows::Rows;

/// The unit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Nanos,
    Micros,
    Millis,
    Seconds,
}

impl Precision {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "ns" => Self::Nanos,
            "us" => Self::Micros,
            "ms" => Self::Millis,
            "s" => Self::Seconds,
            _ => return None,
        })
    }

    const fn micros(self, number: i64) -> i64 {
        match self {
            Self::Nanos => number / 1000,
            Self::Micros => number,
            Self::Millis => number.saturating_mul(1000),
            Self::Seconds => number.saturating_mul(1_000_000),
        }
    }
}

/// Reads all lines; those without a time are of `now` (microseconds).
pub(crate) fn decode(payload: &[u8], precision: Precision, now: i64) -> Decoded {
    let (mut rows, mut decoded) = (Rows::default(), Decoded::default());
    for line in Lines(payload) {
        let line = line.strip_suffix(b"\r").unwrap_or(line).trim_ascii_start();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        match Line::read(line) {
            Some(line) => line.store(&mut rows, precision, now),
            None => decoded.skipped += 1,
        }
    }
    rows.finish(&mut decoded.batches, &mut decoded.conflict);
    decoded.measurements = decoded.batches.iter().map(|batch| batch.measurement.clone()).collect();
    decoded
}

/// The lines of a payload; a line break in a quoted text ends none.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let mut quoted = false;
        let mut from = 0;
        while let Some(found) = memchr::memchr3(b'\n', b'"', b'\\', &self.0[from..]) {
            let at = from + found;
            from = at + 1;
            match self.0[at] {
                b'\\' => from = (at + 2).min(self.0.len()),
                b'"' => quoted = !quoted,
                _ if quoted => {}
                _ => {
                    let line = &self.0[..at];
                    self.0 = &self.0[at + 1..];
                    return Some(line);
                }
            }
        }
        Some(std::mem::take(&mut self.0))
    }
}

/// One line, taken apart.
struct Line<'a> {
    measurement: Vec<u8>,
    tags: Vec<(Vec<u8>, Vec<u8>)>,
    /// Texts still with their escapes.
    fields: Vec<(Vec<u8>, Value<'a>)>,
    time: Option<i64>,
}

impl<'a> Line<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let (measurement, mut rest) = word(line, b", ");
        let mut tags = Vec::new();
        while let Some(tag) = rest.strip_prefix(b",") {
            let (name, value) = word(tag, b"=, ");
            let (value, behind) = word(value.strip_prefix(b"=")?, b", ");
            if name.is_empty() || value.is_empty() {
                return None;
            }
            tags.push((plain(name), plain(value)));
            rest = behind;
        }
        rest = rest.strip_prefix(b" ")?.trim_ascii_start();
        let mut fields = Vec::new();
        loop {
            let (name, value) = word(rest, b"=, ");
            let (value, behind) = value_of(value.strip_prefix(b"=")?)?;
            if name.is_empty() {
                return None;
            }
            fields.push((plain(name), value));
            match behind.strip_prefix(b",") {
                Some(next) => rest = next,
                None => {
                    rest = behind;
                    break;
                }
            }
        }
        let time = match rest.trim_ascii() {
            b"" => None,
            time => Some(str::from_utf8(time).ok()?.parse().ok()?),
        };
        (!measurement.is_empty()).then(|| Self { measurement: plain(measurement), tags, fields, time })
    }

    fn store(&self, rows: &mut Rows, precision: Precision, now: i64) {
        let time = self.time.map_or(now, |number| precision.micros(number));
        let row = rows.begin(&String::from_utf8_lossy(&self.measurement), time);
        for (name, value) in &self.tags {
            row.set_text(name, &String::from_utf8_lossy(value));
        }
        for (name, value) in &self.fields {
            match value {
                Value::Text(text) if text.contains(&b'\\') => {
                    row.set_text(name, &String::from_utf8_lossy(&unquoted(text)));
                }
                value => row.set(name, Item::Value(*value, value.go_type())),
            }
        }
    }
}

/// Splits a text before the first of these bytes that is not escaped by a backslash.
fn word<'a>(text: &'a [u8], ends: &[u8]) -> (&'a [u8], &'a [u8]) {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if byte == b'\\' {
            at += 1;
        } else if ends.contains(&byte) {
            break;
        }
        at += 1;
    }
    text.split_at(at.min(text.len()))
}

/// A name or a tag without the backslashes before commas, equals signs and spaces.
fn plain(text: &[u8]) -> Vec<u8> {
    unescaped(text, b",= ")
}

/// A text of a field without the backslashes before quotes and backslashes.
fn unquoted(text: &[u8]) -> Vec<u8> {
    unescaped(text, b"\"\\")
}

fn unescaped(text: &[u8], escaped: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind.first()) {
            (b'\\', Some(next)) if escaped.contains(next) => {
                plain.push(*next);
                rest = &behind[1..];
            }
            _ => plain.push(byte),
        }
    }
    plain
}

/// A field's value at the front, and the rest; a text still with its escapes.
fn value_of(text: &[u8]) -> Option<(Value<'_>, &[u8])> {
    if let Some(quoted) = text.strip_prefix(b"\"") {
        let (text, rest) = word(quoted, b"\"");
        return Some((Value::Text(text), rest.strip_prefix(b"\"")?));
    }
    let (word, rest) = word(text, b", ");
    let number = str::from_utf8(word).ok()?;
    let value = match number {
        "t" | "T" | "true" | "True" | "TRUE" => Value::Bool(true),
        "f" | "F" | "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match (number.strip_suffix('i'), number.strip_suffix('u')) {
            (Some(int), _) => Value::Int(int.parse().ok()?),
            (_, Some(int)) => {
                let int: u64 = int.parse().ok()?;
                i64::try_from(int).map_or(Value::Large(int), Value::Int)
            }
            _ => Value::Float(number.parse().ok()?),
        },
    };
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &str) -> (String, u64) {
        let decoded = decode(lines.as_bytes(), Precision::Nanos, 5);
        assert_eq!(decoded.conflict, None);
        let batches = decoded.batches.iter().map(|batch| {
            let row = |row: usize| {
                let cells = batch.columns.iter().map(|(name, column)| {
                    format!(
                        "{name}={}",
                        column.get(row).text().map_or("-".into(), std::borrow::Cow::into_owned)
                    )
                });
                cells.collect::<Vec<_>>().join(" ").replace("time=1970-01-01T00:00:00.0000", "@")
            };
            format!("{}[{}]", batch.measurement, (0..batch.rows).map(row).collect::<Vec<_>>().join("; "))
        });
        (batches.collect::<Vec<_>>().join(" "), decoded.skipped)
    }

    #[test]
    fn lines_are_read() {
        for (lines, expected) in [
            ("cpu,host=a usage=1.5 7000", "cpu[@07Z host=a usage=1.5]"),
            ("cpu usage=1i\r\ncpu usage=2i 9000\n", "cpu[@05Z usage=1; @09Z usage=2]"),
            ("m f=t,g=FALSE,h=\"a \\\"b\\\" c\",i=3u", "m[@05Z f=true g=false h=a \"b\" c i=3]"),
            ("m\\ n,a\\,b=c\\=d e\\ f=1 1000", "m n[@01Z a,b=c=d e f=1.0]"),
            ("# a comment\n\n  m a=1", "m[@05Z a=1.0]"),
            ("m a=\"two\nlines\" 1000\nn a=2", "m[@01Z a=two\nlines] n[@05Z a=2.0]"),
            ("m a=\"x\\\"\ny\" 1000\nn a=2", "m[@01Z a=x\"\ny] n[@05Z a=2.0]"),
            ("a v=1\nb w=2\na w=3", "a[@05Z v=1.0 w=-; @05Z v=- w=3.0] b[@05Z w=2.0]"),
        ] {
            assert_eq!(told(lines), (expected.to_owned(), 0), "{lines}");
        }
    }

    #[test]
    fn what_is_no_line_is_passed_over() {
        for bad in [
            "cpu",
            "cpu,host=a",
            "cpu,host= v=1",
            "cpu,=a v=1",
            "cpu v",
            "cpu v=",
            "cpu v=x",
            "cpu v=1 x",
            "cpu v=\"a",
            ",a=b v=1",
            "cpu =1",
            "cpu v=1,",
            "cpu v=99999999999999999999i",
        ] {
            assert_eq!(told(&format!("m a=1\n{bad}")), ("m[@05Z a=1.0]".to_owned(), 1), "{bad}");
        }
        assert_eq!(told(""), (String::new(), 0));
    }

    /// Symptom: a request of 100,000 measurements stopped the server for more than 30 s, each one being
    /// looked for among all before it. Here that would be 10^11 comparisons.
    #[test]
    fn any_number_of_measurements_and_columns_takes_no_longer_than_its_bytes() {
        let many: String = (0..300_000).map(|number| format!("m{number} v=1 1\n")).collect();
        let decoded = decode(many.as_bytes(), Precision::named("ns").unwrap(), 0);
        assert_eq!((decoded.batches.len(), decoded.measurements.len()), (300_000, 300_000));
        let fields: Vec<String> = (0..100_000).map(|number| format!("f{number}=1")).collect();
        let turned: Vec<String> = fields.iter().rev().cloned().collect();
        let wide = format!("m {} 1\nm {} 2\n", fields.join(","), turned.join(","));
        let decoded = decode(wide.as_bytes(), Precision::named("ns").unwrap(), 0);
        let batch = &decoded.batches[0];
        assert_eq!((decoded.batches.len(), batch.rows, batch.columns.len()), (1, 2, 100_001));
    }

    /// Symptom: 300,000 lines with a field of their own each took 10^11 cells.
    #[test]
    fn columns_that_few_rows_have_are_bounded() {
        let sparse: String = (0..300_000).map(|number| format!("m f{number}=1 1\n")).collect();
        let decoded = decode(sparse.as_bytes(), Precision::Nanos, 0);
        assert_eq!(decoded.conflict.as_deref(), Some(super::super::rows::TOO_LARGE));
        assert!(decoded.batches.is_empty());
    }

    #[test]
    fn times_are_of_their_precision() {
        for (name, micros) in [("ns", 1), ("us", 1500), ("ms", 1_500_000), ("s", 1_500_000_000)] {
            let precision = Precision::named(name).unwrap();
            let decoded = decode(b"m a=1 1500", precision, 0);
            let time = decoded.batches[0].columns[0].1.get(0);
            assert_eq!(time, super::super::column::Cell::Time(micros), "{name}");
        }
        assert_eq!(Precision::named("h"), None);
    }
}
