//! Texts with slots, as sources write them.

use crate::draft::{self, percent_encoded};

/// Meaning of the text of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A variable of the source.
    Variable(String),
    /// Something that means the same as this slot of a plan, written without `${` and `}`.
    Template(String),
    /// A value that is fixed unless somebody sets it from outside, and the slot of a plan for it.
    Default(String, String),
    /// Nearly the same as this slot of a plan; with the difference.
    Noted(String, String),
    /// There is nothing like it: the text stays as it is; with the consequence.
    Unknown(String),
}

/// The way in which a tool writes slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syntax {
    pub(crate) open: &'static str,
    pub(crate) close: &'static str,
    /// Gives the meaning of the text between them.
    pub(crate) slot: fn(&str) -> Slot,
}

impl Syntax {
    /// The first slot of a text: the text before it, its inside, the whole slot, and the text after it.
    pub(crate) fn next_slot<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str, &'t str, &'t str)> {
        let mut from = 0;
        loop {
            let start = from + text[from..].find(self.open)?;
            let inside_at = start + self.open.len();
            match self.length(&text[inside_at..]) {
                Ok(length) => {
                    let inside = text[inside_at..inside_at + length].trim();
                    let end = inside_at + length + self.close.len();
                    if !inside.is_empty() {
                        return Some((&text[..start], inside, &text[start..end], &text[end..]));
                    }
                    from = inside_at;
                }
                // Nothing else that begins on this line ends there.
                Err(line) => from = inside_at + line,
            }
        }
    }

    /// Bytes up to the end of the slot that has begun: slots may stand within slots, and none goes over the
    /// end of a line. Without one, bytes up to the end of the line.
    fn length(&self, text: &str) -> Result<usize, usize> {
        let (bytes, mut depth) = (text.as_bytes(), 0_usize);
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'\n' | b'\r' => return Err(at),
                b'}' if self.close.len() > 1 && !bytes[at..].starts_with(self.close.as_bytes()) => {}
                b'{' if self.close.len() == 1 && at > 0 && bytes[at - 1] == b'$' => depth += 1,
                b'}' if depth == 0 => return Ok(at),
                b'}' => depth -= 1,
                _ => {}
            }
        }
        Err(text.len())
    }

    /// The end of the authority of a URL: the first `/`, `?` or `#` that is in no slot.
    pub(crate) fn authority_end(&self, url: &str, from: usize) -> usize {
        self.end_before(url, from, &['/', '?', '#'])
    }

    /// The place of the first of these signs that is in no slot, or the end of the text.
    pub(crate) fn end_before(&self, url: &str, from: usize, signs: &[char]) -> usize {
        let mut at = from;
        loop {
            let ends = url[at..].find(signs).map_or(url.len(), |end| at + end);
            match self.next_slot(&url[at..]) {
                Some((before, _, whole, _)) if at + before.len() <= ends => at += before.len() + whole.len(),
                _ => return ends,
            }
        }
    }
}

/// The way in which literal text and slots are written in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// As they are.
    Plain,
    /// In a request target: characters that are not allowed there are percent-encoded.
    Target,
    /// In a pair of a query, where a plan encodes slots by itself.
    Query,
    /// In a form.
    Form,
}

/// Reserved characters and encoded ones stay as they are in request targets. Without braces nothing looks
/// like a slot there.
const IN_TARGETS: &[u8] = b":/?#[]@!$&'()*+,;=%";

impl Writing {
    pub(super) fn literal(self, text: &str) -> String {
        match self {
            Self::Plain => draft::escaped(text),
            Self::Target => percent_encoded(text, IN_TARGETS),
            Self::Query => percent_encoded(text, b""),
            Self::Form => draft::form([(text, "")]).trim_end_matches('=').to_owned(),
        }
    }

    /// A slot with this inside, which is the name of a variable or a function.
    pub(super) fn slot(self, inside: &str, is_variable: bool) -> String {
        match self {
            Self::Form if is_variable => format!("${{urlencode(${{{inside}}})}}"),
            _ => format!("${{{inside}}}"),
        }
    }
}
