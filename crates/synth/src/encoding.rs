//! Encoding of words in each format.

use crate::pen::varint_length;

/// A word with the text around it.
#[derive(Clone, Debug)]
pub(crate) struct Wrapping {
    before: Vec<u8>,
    style: Style,
    after: Vec<u8>,
}

/// Encoding of the word itself.
#[derive(Clone, Debug)]
pub(crate) enum Style {
    /// As it is.
    Plain,
    /// A string of MessagePack.
    Pack,
    /// A boolean of MessagePack, of `false` and `true`.
    PackFlag,
    /// A string of JSON.
    Json,
    /// A string of JSON within one.
    JsonTwice,
    /// A tag of the line protocol: commas, equals signs and blanks have a backslash before them.
    LineTag,
    /// A string of the line protocol: quotes and backslashes have one.
    LineText,
    /// A field of protobuf that is a string, with this key.
    Field(u8),
    /// OpenTelemetry's `KeyValue` with a string, in a field with this key; nothing for no text.
    Attribute(u8, &'static str),
    /// OpenTelemetry's `KeyValue` with a boolean, of `false` and `true`, in a field with this key.
    AttributeFlag(u8, &'static str),
    /// OpenTelemetry's `AnyValue` with a string, in a field with this key.
    AnyValue(u8),
    /// `severity_number` and `severity_text` of OpenTelemetry's log record.
    Severity,
    /// `kind` of OpenTelemetry's span.
    SpanKind,
    /// `status` of OpenTelemetry's span, of whether there was an error.
    SpanStatus,
    /// OpenTelemetry's `Resource` of this service, in field 1.
    Resource,
    /// A label of Prometheus, in field 1.
    Label(&'static str),
}

impl Wrapping {
    /// A word without anything around it.
    pub(crate) fn new(style: Style) -> Self {
        Self { before: Vec::new(), style, after: Vec::new() }
    }

    /// A word with something before and behind it.
    pub(crate) fn around(before: impl Into<Vec<u8>>, style: Style, after: impl Into<Vec<u8>>) -> Self {
        Self { before: before.into(), style, after: after.into() }
    }

    /// Appends the dressed word.
    pub(crate) fn write(&self, word: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.before);
        self.style.write(word, out);
        out.extend_from_slice(&self.after);
    }
}

impl Style {
    fn write(&self, word: &str, out: &mut Vec<u8>) {
        match *self {
            Self::Plain => out.extend_from_slice(word.as_bytes()),
            Self::Pack => pack_text(word, out),
            Self::PackFlag => out.push(if word == "true" { 0xc3 } else { 0xc2 }),
            Self::Json => json_text(word, out),
            Self::JsonTwice => json_twice(word, out),
            Self::LineTag => escape(word, &[',', '=', ' '], out),
            Self::LineText => {
                out.push(b'"');
                escape(word, &['"', '\\'], out);
                out.push(b'"');
            }
            Self::Field(key) => field(key, word.as_bytes(), out),
            Self::Attribute(_, _) if word.is_empty() => {}
            Self::Attribute(key, name) => text_attribute(key, name, word, out),
            Self::AttributeFlag(key, name) => {
                attribute(key, name, |out| out.extend_from_slice(&[0x10, u8::from(word == "true")]), out);
            }
            Self::AnyValue(key) => message(key, out, |out| field(0x0a, word.as_bytes(), out)),
            Self::Severity => {
                out.extend_from_slice(&[0x10, severity_number(word)]);
                field(0x1a, word.as_bytes(), out);
            }
            Self::SpanKind => {
                let kinds = ["internal", "server", "client", "producer", "consumer"];
                let kind = kinds.iter().position(|&kind| kind == word).map_or(0, |position| position + 1);
                out.extend_from_slice(&[0x30, kind as u8]);
            }
            Self::SpanStatus if word == "true" => out.extend_from_slice(&[0x7a, 2, 0x18, 2]),
            Self::SpanStatus => {}
            Self::Resource => message(0x0a, out, |out| text_attribute(0x0a, "service.name", word, out)),
            Self::Label(name) => message(0x0a, out, |out| {
                field(0x0a, name.as_bytes(), out);
                field(0x12, word.as_bytes(), out);
            }),
        }
    }
}

/// The number that OpenTelemetry's data model gives to a level or severity.
fn severity_number(word: &str) -> u8 {
    match word {
        "DEBUG" => 5,
        "INFO" | "info" => 9,
        "WARN" | "warning" => 13,
        "ERROR" | "error" => 17,
        "FATAL" | "critical" => 21,
        _ => 0,
    }
}

/// A field of protobuf with bytes or a text.
pub(crate) fn field(key: u8, bytes: &[u8], out: &mut Vec<u8>) {
    message(key, out, |out| out.extend_from_slice(bytes));
}

/// A field of protobuf, whose length is written before it once it is known. Nothing is allocated for that.
fn message(key: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(key);
    let begin = out.len();
    write(out);
    let mut length = out.len() - begin;
    let taken = varint_length(length as u64);
    for _ in 1..taken {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out[begin..].rotate_right(taken);
}

/// `KeyValue`, with an `AnyValue`.
pub(crate) fn attribute(key: u8, name: &str, write: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
    message(key, out, |out| {
        field(0x0a, name.as_bytes(), out);
        message(0x12, out, write);
    });
}

/// `KeyValue` with a string.
fn text_attribute(key: u8, name: &str, word: &str, out: &mut Vec<u8>) {
    attribute(key, name, |out| field(0x0a, word.as_bytes(), out), out);
}

/// A string of MessagePack.
pub(crate) fn pack_text(word: &str, out: &mut Vec<u8>) {
    match word.len() {
        length @ 0..32 => out.push(0xa0 | length as u8),
        length @ 32..256 => out.extend_from_slice(&[0xd9, length as u8]),
        length => {
            out.push(0xda);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(word.as_bytes());
}

/// The head of a list of MessagePack.
pub(crate) fn pack_list(count: usize, out: &mut Vec<u8>) {
    match count {
        0..16 => out.push(0x90 | count as u8),
        16..0x1_0000 => {
            out.push(0xdc);
            out.extend_from_slice(&(count as u16).to_be_bytes());
        }
        _ => {
            out.push(0xdd);
            out.extend_from_slice(&(count as u32).to_be_bytes());
        }
    }
}

/// A string of JSON. Words have no control characters.
fn json_text(word: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escape(word, &['"', '\\'], out);
    out.push(b'"');
}

/// A string of JSON as it is within another string of JSON.
fn json_twice(word: &str, out: &mut Vec<u8>) {
    let mut once = Vec::new();
    json_text(word, &mut once);
    let once = std::str::from_utf8(&once).expect("what was a text is one");
    escape(once, &['"', '\\'], out);
}

/// The word with a backslash before each of `special`.
fn escape(word: &str, special: &[char], out: &mut Vec<u8>) {
    for c in word.chars() {
        if special.contains(&c) {
            out.push(b'\\');
        }
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}
