//! Functions of a text.

use std::ops::Range;

use plimsoll_core::Random;
use sha2::{Digest, Sha256};

use super::write::{encode_from, json_escape, percent_encode, write_hex};
use super::{Slot, Writing, digest};
use crate::pointer::JsonPointer;
use crate::{Context, Template};

/// A function and its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub(super) function: Function,
    pub(super) argument: Template,
    pub(super) writing: Writing,
}

/// Function that a slot applies to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `hash(sha256,text)`: SHA-256 (FIPS 180-4), 64 hexadecimal digits.
    Sha256,
    /// `hash(crc32,text)`: CRC-32 as in gzip (RFC 1952 section 8), 8 hexadecimal digits.
    Crc32,
    /// `base64(text)`: RFC 4648 section 4, with padding.
    Base64,
    /// `base64url(text)`: RFC 4648 section 5, without padding, as in a JSON Web Token.
    Base64Url,
    /// `urlencode(text)`: percent-encoded except for the unreserved characters (RFC 3986 section 2.3).
    UrlEncode,
    /// `upper(text)`: ASCII letters as capitals.
    Upper,
    /// `lower(text)`: ASCII letters as small ones.
    Lower,
    /// `json(text)`: escaped for the inside of a JSON string, without the quotes around it.
    Json,
    /// `fill(length,text)`: the text over and over, cut to a length.
    Fill(Length),
    /// `merge(variable,text)`: the JSON object that the variable has, with the members of the one in the text
    /// instead of its own of these names, or behind them. A variable that has no object gives the text.
    Merge {
        /// Position of the variable in [`Context::variables`].
        variable: u16,
    },
    /// `digest(variable,text)`: credentials of Digest authentication (RFC 7616) that answer the challenge
    /// that the variable has, the value of `www-authenticate`. The text is `user:password, METHOD target`.
    /// Nothing if the challenge cannot be answered.
    Digest {
        /// Position of the variable in [`Context::variables`].
        variable: u16,
    },
    /// `token(name,text)`: a token that is signed for this rendering, with the text as its `sub`.
    Sign {
        /// Position of the token in [`Context::tokens`].
        token: u16,
        /// Random numbers that its claims draw.
        draws: u32,
    },
}

/// Lengths of texts that are [filled](Function::Fill): that of a text is always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// `low-high`: uniform, both ends included; one number is both.
    Uniform {
        /// The smallest, in bytes.
        low: u32,
        /// The largest, not below `low`.
        high: u32,
    },
    /// `exp:mean`: exponential, at least one byte.
    Exponential {
        /// In bytes.
        mean: u32,
    },
}

impl Length {
    /// The choice for a text: its CRC-32 takes the place of randomness.
    fn of(self, text: &[u8]) -> usize {
        match self {
            Self::Uniform { low, high } if low == high => low as usize,
            Self::Uniform { low, high } => {
                let range = u64::from(high - low) + 1;
                low as usize + ((u64::from(crc32fast::hash(text)) * range) >> 32) as usize
            }
            Self::Exponential { mean } => {
                let unit = (f64::from(crc32fast::hash(text)) + 0.5) / 4_294_967_296.0;
                (-unit.ln() * f64::from(mean)).ceil() as usize
            }
        }
    }

    fn longest(self) -> usize {
        match self {
            Self::Uniform { high, .. } => high as usize,
            // −ln(2⁻³³), the most that 32 bits can make of it.
            Self::Exponential { mean } => mean as usize * 23,
        }
    }
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Call {
    pub(super) fn fixed_len(&self) -> Option<usize> {
        let len = self.argument.fixed_len();
        match self.function {
            _ if self.writing.is_start() => None,
            Function::Sha256 => Some(64),
            Function::Crc32 => Some(8),
            Function::Fill(Length::Uniform { low, high }) if low == high && self.writing.keeps_length() => {
                Some(low as usize)
            }
            Function::Fill(_) | Function::Merge { .. } | Function::Digest { .. } | Function::Sign { .. } => {
                None
            }
            Function::Base64 => len.map(|len| base64_len(len, true)),
            Function::Base64Url => len.map(|len| base64_len(len, false)),
            Function::Upper | Function::Lower if self.writing.keeps_length() => len,
            Function::Upper | Function::Lower | Function::UrlEncode | Function::Json => None,
        }
    }

    pub(super) fn longest(&self) -> usize {
        let len = self.argument.longest();
        let longest = match self.function {
            Function::Sha256 => 64,
            Function::Crc32 => 8,
            Function::Base64 | Function::Base64Url => base64_len(len, true),
            Function::UrlEncode => 3 * len,
            Function::Json => 6 * len,
            // The length of the variable, or of the other claims, is not known here.
            Function::Upper | Function::Lower | Function::Merge { .. } | Function::Sign { .. } => len,
            // Names, hashes, and the text with characters that are escaped; the challenge is not known here.
            Function::Digest { .. } => 256 + 2 * len,
            Function::Fill(length) => length.longest(),
        };
        match self.writing {
            Writing::AsIs | Writing::Line => longest,
            Writing::Encoded => 3 * longest,
            Writing::Path | Writing::Resource | Writing::Base => 3 * longest + 1,
        }
    }

    pub(super) fn len_of_variables(&self, len_of: &dyn Fn(u16) -> usize) -> usize {
        let own = self.function.variable().map_or(0, len_of);
        let argument = self.argument.slots().fold(0, |len: usize, slot| {
            let expansion = match slot {
                Slot::Call(inner) => inner.function.expansion(),
                _ => 1,
            };
            len.saturating_add(slot.len_of_variables(len_of).saturating_mul(expansion))
        });
        match self.function {
            // The length of the result is that of the plan.
            Function::Fill(_) | Function::Sha256 | Function::Crc32 => 0,
            _ => argument.saturating_add(own),
        }
    }

    /// Everything happens at the end of `out`, so that no other buffer is needed.
    pub(super) fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        let start = out.len();
        self.argument.render(context, random, out);
        match self.function {
            Function::Merge { variable } => {
                let object = context.variables.get(usize::from(variable)).map_or(&[][..], Vec::as_slice);
                merge(object, start, out);
            }
            Function::Digest { variable } => {
                let challenge = context.variables.get(usize::from(variable)).map_or(&[][..], Vec::as_slice);
                digest::answer(challenge, start, random, out);
            }
            Function::Sign { token, .. } => {
                json_escape(start, out);
                let end = out.len();
                if let Some(signer) = context.tokens.and_then(|tokens| tokens.signer(token)) {
                    signer.write(Some(start..end), context.unix_ns, random, out);
                }
                out.drain(start..end);
            }
            function => function.apply(start, out),
        }
        encode_from(start, self.writing, out);
    }
}

impl Function {
    /// The function of this name, except for the hashes.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "base64" => Self::Base64,
            "base64url" => Self::Base64Url,
            "urlencode" => Self::UrlEncode,
            "upper" => Self::Upper,
            "lower" => Self::Lower,
            "json" => Self::Json,
            _ => return None,
        })
    }

    /// Bytes that one byte of the text can become, at most.
    fn expansion(self) -> usize {
        match self {
            Self::UrlEncode => 3,
            Self::Json => 6,
            Self::Base64 | Self::Base64Url => 2,
            _ => 1,
        }
    }

    /// Returns `true` if a control character of the text can also be one of the result.
    pub(super) fn lets_through(self) -> bool {
        matches!(
            self,
            Self::Upper | Self::Lower | Self::Json | Self::Fill(_) | Self::Merge { .. } | Self::Digest { .. }
        )
    }

    /// The variable that it reads beside those of its text.
    pub(super) fn variable(self) -> Option<u16> {
        match self {
            Self::Merge { variable } | Self::Digest { variable } => Some(variable),
            _ => None,
        }
    }

    /// Returns `true` if the function signs a token, which depends on more than its text.
    pub(super) fn signs(self) -> bool {
        matches!(self, Self::Sign { .. })
    }

    /// Returns the number of random numbers that the function takes besides those of its text.
    pub(super) fn draws(self) -> u32 {
        match self {
            Self::Sign { draws, .. } => draws,
            Self::Digest { .. } => 1,
            _ => 0,
        }
    }

    /// Replaces the text in `out` from `start` on.
    fn apply(self, start: usize, out: &mut Vec<u8>) {
        match self {
            Self::Sha256 => {
                let hash = Sha256::digest(&out[start..]);
                out.truncate(start);
                write_hex(hash.as_ref(), out);
            }
            Self::Crc32 => {
                let hash = crc32fast::hash(&out[start..]);
                out.truncate(start);
                write_hex(&hash.to_be_bytes(), out);
            }
            Self::Base64 => base64(start, STANDARD, true, out),
            Self::Base64Url => base64url(start, out),
            Self::UrlEncode => {
                percent_encode(start, |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte), out);
            }
            Self::Upper => out[start..].make_ascii_uppercase(),
            Self::Lower => out[start..].make_ascii_lowercase(),
            Self::Json => json_escape(start, out),
            Self::Fill(length) => fill(start, length.of(&out[start..]), out),
            // The length of these is not bounded by their text.
            Self::Merge { .. } | Self::Digest { .. } | Self::Sign { .. } => {}
        }
    }
}

/// Replaces the object that stands in `out` from `start` on by its merge with `object`. If either is not an
/// object, nothing changes.
fn merge(object: &[u8], start: usize, out: &mut Vec<u8>) {
    let end = out.len();
    let whole = JsonPointer::default();
    let Some(old) = whole.find(object) else { return };
    if old.each_member(|_, _| {}).is_none() || members(&out[start..end]).is_none() {
        return;
    }
    // Members of the old object are written behind the changes, which are read from there.
    let _ = old.each_member(|name, value| {
        write_name(name, end, out);
        match find_member(&out[start..end], |_, other| other == name) {
            Some((_, changed)) => out.extend_from_within(start + changed.start..start + changed.end),
            None => out.extend_from_slice(value.raw()),
        }
    });
    for number in 0..members(&out[start..end]).unwrap_or_default() {
        let Some((name, value)) = find_member(&out[start..end], |at, _| at == number) else { break };
        let mut known = false;
        let _ = old.each_member(|other, _| known |= *other == out[start + name.start..start + name.end]);
        if !known {
            out.push(if out.len() == end { b'{' } else { b',' });
            // With the quotes around it.
            out.extend_from_within(start + name.start - 1..start + name.end + 1);
            out.push(b':');
            out.extend_from_within(start + value.start..start + value.end);
        }
    }
    if out.len() == end {
        out.push(b'{');
    }
    out.push(b'}');
    out.drain(start..end);
}

fn write_name(name: &[u8], end: usize, out: &mut Vec<u8>) {
    out.push(if out.len() == end { b'{' } else { b',' });
    for part in [b"\"", name, b"\":"] {
        out.extend_from_slice(part);
    }
}

/// Returns the number of members of an object.
fn members(json: &[u8]) -> Option<usize> {
    let mut count = 0;
    JsonPointer::default().find(json)?.each_member(|_, _| count += 1)?;
    Some(count)
}

/// The place of the name and the value of the first member that is `wanted`, by its place and its name.
fn find_member(json: &[u8], wanted: impl Fn(usize, &[u8]) -> bool) -> Option<(Range<usize>, Range<usize>)> {
    let place = |part: &[u8]| {
        let from = part.as_ptr() as usize - json.as_ptr() as usize;
        from..from + part.len()
    };
    let (mut number, mut found) = (0, None);
    let _ = JsonPointer::default().find(json)?.each_member(|name, value| {
        if found.is_none() && wanted(number, name) {
            found = Some((place(name), place(value.raw())));
        }
        number += 1;
    });
    found
}

/// Repeats the text from `start` on, up to `len` bytes of it. Of nothing there is one thing to repeat: `x`.
fn fill(start: usize, len: usize, out: &mut Vec<u8>) {
    if out.len() == start {
        out.push(b'x');
    }
    while out.len() - start < len {
        let there = out.len() - start;
        out.extend_from_within(start..start + there.min(len - there));
    }
    out.truncate(start + len);
}

/// Encodes the text from `start` on as [`Function::Base64Url`] does.
pub(crate) fn base64url(start: usize, out: &mut Vec<u8>) {
    base64(start, URL_SAFE, false, out);
}

/// Characters for `len` bytes.
fn base64_len(len: usize, padded: bool) -> usize {
    if padded { len.div_ceil(3) * 4 } else { (len * 4).div_ceil(3) }
}

/// In place, from the last group of three bytes to the first: a group's characters stand where it stood, or
/// behind it.
fn base64(start: usize, alphabet: &[u8; 64], padded: bool, out: &mut Vec<u8>) {
    let len = out.len() - start;
    out.resize(start + base64_len(len, padded), b'=');
    for group in (0..len.div_ceil(3)).rev() {
        let from = start + group * 3;
        let present = (len - group * 3).min(3);
        let mut bits = 0_u32;
        for offset in 0..3 {
            let byte = if offset < present { out[from + offset] } else { 0 };
            bits = bits << 8 | u32::from(byte);
        }
        let to = start + group * 4;
        for (offset, place) in out[to..].iter_mut().take(4).enumerate() {
            // n bytes take n + 1 characters; what is left of the group is padding.
            *place = match offset {
                _ if offset > present => b'=',
                _ => alphabet[(bits >> (18 - 6 * offset)) as usize & 63],
            };
        }
    }
}
