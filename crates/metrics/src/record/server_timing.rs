//! Server timing: the parts of a response time by the server's own word.
//!
//! <https://www.w3.org/TR/server-timing/>

use std::fmt;

use plimsoll_core::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The header field, in lower case.
pub const SERVER_TIMING: &str = "server-timing";
/// Parts that are kept of a response.
const PARTS: usize = 8;
/// Characters that are kept of a name, and of a description.
const LETTERS: usize = 64;
/// Longest time that is taken for one, in milliseconds: a day.
const LONGEST_MS: f64 = 86_400_000.0;

/// One part of a response time, or a fact without a length, such as a hit of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ServerTimingResult")]
pub struct ServerTiming {
    /// Name of the part; at most 64 characters are kept.
    pub name: String,
    /// Duration in nanoseconds; null if the server gave none.
    pub duration: Option<u64>,
    /// Description of the part, at most 64 characters; null without one.
    pub description: Option<String>,
}

impl ServerTiming {
    /// Reads the values of the header fields of a response, of which the first eight parts are kept. What is
    /// none is left out.
    pub fn all<'v>(values: impl Iterator<Item = &'v [u8]>) -> Vec<Self> {
        let mut all = Vec::new();
        for value in values {
            let value = String::from_utf8_lossy(value);
            all.extend(split(&value, ',').filter_map(Self::parse).take(PARTS - all.len()));
        }
        all
    }

    /// Reads `name;dur=53.2;desc="App server"`. Of a parameter that is there twice the first one counts.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = split(text, ';');
        let name = parts.next().filter(|name| !name.is_empty() && name.bytes().all(is_token))?;
        let mut part = Self { name: kept(name), ..Self::default() };
        let (mut has_length, mut has_words) = (false, false);
        for parameter in parts {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = unquoted(value.trim());
            match name.trim() {
                dur if dur.eq_ignore_ascii_case("dur") && !has_length => {
                    has_length = true;
                    let ms = value.parse().ok().filter(|ms| (0.0..=LONGEST_MS).contains(ms));
                    part.duration = ms.map(|ms: f64| (ms * 1e6).round() as u64);
                }
                desc if desc.eq_ignore_ascii_case("desc") && !has_words => {
                    has_words = true;
                    part.description = Some(kept(&value)).filter(|words| !words.is_empty());
                }
                _ => {}
            }
        }
        Some(part)
    }
}

/// For people: `db 53.2 ms (a shard)`.
impl fmt::Display for ServerTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(duration) = self.duration {
            write!(f, " {}", plimsoll_core::figure::nanos(Nanos(duration)))?;
        }
        match &self.description {
            Some(description) => write!(f, " ({description})"),
            None => Ok(()),
        }
    }
}

/// All parts, for people.
pub fn timing_words(parts: &[ServerTiming]) -> String {
    parts.iter().map(ServerTiming::to_string).collect::<Vec<_>>().join(", ")
}

/// The parts between separators that are not within quotes, without the spaces around them.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |letter| {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => return letter == separator && !quoted,
        }
        false
    })
    .map(str::trim)
}

/// A value without its quotes; of a quoted one, what is behind them is no part of it.
fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else { return value.to_owned() };
    let mut text = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => text.extend(letters.next()),
            letter => text.push(letter),
        }
    }
    text
}

/// As much of a text as is kept, in one line.
fn kept(text: &str) -> String {
    text.chars().take(LETTERS).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// A character of a token (RFC 9110 section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_the_specification_has_them() {
        for (values, expected) in [
            (&["db;dur=53.25"][..], "db 53.2 ms"),
            (
                &["cache;desc=\"Cache Read\";dur=23.2, db;dur=53, app ;\tdur = 47.2"],
                "cache 23.2 ms (Cache Read), db 53.0 ms, app 47.2 ms",
            ),
            (&["miss, hit;desc=edge"], "miss, hit (edge)"),
            (&["db;dur=1", "app;dur=2"], "db 1.00 ms, app 2.00 ms"),
            (&["a;DUR=1;dur=9;Desc=x;desc=y"], "a 1.00 ms (x)"),
            (&["a;desc=\"b, c; \\\"d\\\"\";dur=1"], "a 1.00 ms (b, c; \"d\")"),
            (&["a;dur=\"2\""], "a 2.00 ms"),
            // Not what a part is.
            (&["a;dur=fast;desc=\"\"", "b;dur=-1", "c;dur=1e300", "d;dur=NaN"], "a, b, c, d"),
            (&["", ",,", ";dur=1", "two words;dur=1", "a;dur", "\u{e9};dur=1"], "a"),
            (&["a;desc=\"never ends"], "a (never ends)"),
        ] {
            let parts = ServerTiming::all(values.iter().map(|value| value.as_bytes()));
            assert_eq!(timing_words(&parts), expected, "{values:?}");
        }
    }

    #[test]
    fn a_header_without_end_is_bounded() {
        let long = "x".repeat(10_000);
        let value = format!("{long};desc=\"{long}\",").repeat(100);
        let parts = ServerTiming::all([value.as_bytes(), b"b", b"\xff\xfe"].into_iter());
        assert_eq!(parts.len(), 8);
        let longest =
            parts.iter().map(|part| part.name.len().max(part.description.as_ref().map_or(0, String::len)));
        assert_eq!(longest.max(), Some(64));
    }
}
