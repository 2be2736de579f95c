//! Slots: the parts that change from request to request.

mod digest;
mod function;
mod parse;
#[cfg(test)]
mod tests;
mod trace;
mod write;
mod zipf;

use std::sync::Arc;

use plimsoll_core::Random;

pub(crate) use function::base64url;
pub use function::{Call, Function, Length};
pub use parse::slot_end;
pub(crate) use parse::{Parsed, Parser};
pub use trace::TraceKey;
pub use write::write_decimal;
pub(crate) use write::write_random_hex;
pub use zipf::Zipf;

use crate::{CodedText, Context, SharedText, Template};

/// One value to fill in. Every value but those of variables, [picks](Self::Pick), [calls](Self::Call) and the
/// last three consists of letters, digits, `-` and `.`, so it is safe in a URL, in a header and inside a JSON
/// string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// `sequence`: the index of the arrival, from 0, unique in the run.
    Sequence,
    /// `worker`: the index of the worker thread, from 0.
    Worker,
    /// `uuid`: a random UUID (RFC 9562, version 4).
    Uuid,
    /// `traceparent`, `traceparent(share)`: the header of W3C Trace Context, with the [id](TraceKey::id_of)
    /// of the request.
    Traceparent {
        /// Share of the requests whose servers are to record their traces, in parts of 2^32 - 1.
        sampled: u32,
    },
    /// `timestamp_s`, `timestamp_ms`, `timestamp_us`, `timestamp_ns`: time since 1970 in units of this many
    /// nanoseconds, rounded down.
    Timestamp {
        /// Length of the unit in nanoseconds, at least 1.
        unit_ns: u64,
    },
    /// `random_int(low,high)`: uniform, both ends included.
    RandomInt {
        /// Smallest value.
        low: i64,
        /// Largest value, not below `low`.
        high: i64,
    },
    /// `random_float(low,high)`, `random_float(low,high,digits)`: a decimal fraction with this many digits
    /// behind its point, uniform, both ends included; by default as many digits as the ends have, and at
    /// least two.
    RandomFloat {
        /// Smallest value, times 10 to the power of `digits`.
        low: i64,
        /// Largest value, likewise; not below `low`.
        high: i64,
        /// Digits behind the point, 1 to 15.
        digits: u8,
    },
    /// `random_hex(n)`: n random digits 0–9a–f.
    RandomHex(u32),
    /// `random_string(n)`: n random letters and digits.
    RandomString(u32),
    /// `range(start,end)`: the whole numbers from `start` up to, but not including, `end`, over and over, one
    /// per index of the arrival; with leading zeros as wide as `end`.
    Range {
        /// First number.
        start: u64,
        /// Number of values, at least 1.
        count: u64,
        /// Digits of each.
        width: u8,
    },
    /// `zipf(count,exponent)`: a number from 0 up to, but not including, `count`, of which 0 is the most
    /// frequent and each is rarer than the one before.
    Zipf(Box<Zipf>),
    /// `pick(a,b,c)`: one of these texts, each as likely as the others. Never empty.
    Pick(Box<[Box<[u8]>]>),
    /// The value of a variable, under the name that it has in the [`Scope`](crate::Scope). It is inserted as
    /// it is, also into JSON, where `json(text)` escapes it.
    Variable {
        /// Position in [`Context::variables`].
        index: u16,
        /// Form in which the value is written.
        writing: Writing,
    },
    /// `token(name)`: the worker's token of this place in [`Context::tokens`].
    Token(u16),
    /// `upper(text)` and other functions of a text, which is a template of its own.
    Call(Box<Call>),
    /// [`Context::authority`]. It is not written by users.
    Authority,
    /// [`Context::cookies`]. It is not written by users.
    Cookies(CookieForm),
    /// A text that is replaced now and then. It is not written by users.
    Shared(SharedText),
    /// A body in a binary form, with texts that vary. It is not written by users.
    Coded(Arc<CodedText>),
}

/// Form in which the value of a variable or of a function is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// As it is: in a body.
    AsIs,
    /// As it is, with a space for each control character but the tab: in a header. A request whose header has
    /// such a value is [not sent](crate::RequestTemplate::unfit_value); the spaces are for a value that
    /// another response sets between that examination and the rendering.
    Line,
    /// With the characters percent-encoded that have no place in a request target (RFC 3986 section 2.1):
    /// everything but visible ASCII characters, and `#`. A `%` stays, so that encoded text is not encoded
    /// again.
    Encoded,
    /// [Encoded](Self::Encoded) at the start of a request target: with a `/` in front, unless the value has
    /// one.
    Path,
    /// As a [path](Self::Path), of a value that may be a whole URL of http or https: its path and query. The
    /// request decides about the server.
    Resource,
    /// As a [resource](Self::Resource), in front of a `/`: the `/` at the end of a URL is left out.
    Base,
}

impl Writing {
    /// Returns `true` if a text has as many bytes in this form as it has itself.
    const fn keeps_length(self) -> bool {
        matches!(self, Self::AsIs | Self::Line)
    }

    /// Returns `true` if this form is for the start of a request target.
    pub(crate) const fn is_start(self) -> bool {
        matches!(self, Self::Path | Self::Resource | Self::Base)
    }
}

/// Form in which the cookies of a session are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieForm {
    /// The whole line of HTTP/1.1; nothing if there are none.
    Line,
    /// The value.
    Value,
    /// The value behind other cookies: with `; ` in front; nothing if there are none.
    More,
}

impl Slot {
    /// Returns `true` if it asks a server to record the trace with this id.
    pub(crate) const fn samples_trace(&self, id: u128) -> bool {
        matches!(self, Self::Traceparent { sampled } if trace::is_sampled(id, *sampled))
    }

    /// Every slot as it is written, for help texts and suggestions.
    pub const FORMS: &'static [&'static str] = &[
        "sequence",
        "worker",
        "uuid",
        "traceparent",
        "timestamp_s",
        "timestamp_ms",
        "timestamp_us",
        "timestamp_ns",
        "random_int(low,high)",
        "random_float(low,high,digits)",
        "random_hex(n)",
        "random_string(n)",
        "range(start,end)",
        "zipf(count,exponent)",
        "pick(a,b,c)",
        "hash(sha256,text)",
        "hash(crc32,text)",
        "base64(text)",
        "base64url(text)",
        "urlencode(text)",
        "upper(text)",
        "lower(text)",
        "json(text)",
        "fill(length,text)",
        "merge(variable,text)",
        "digest(variable,text)",
        "token(name)",
        "env(NAME)",
        "secret(NAME)",
    ];

    /// Bytes that every rendering of this slot has, if they are always as many.
    pub fn fixed_len(&self) -> Option<usize> {
        match self {
            Self::Uuid => Some(36),
            Self::Traceparent { .. } => Some(trace::TRACEPARENT_LEN),
            Self::RandomHex(n) | Self::RandomString(n) => Some(*n as usize),
            // All numbers between two of the same sign and the same number of digits have that number too.
            Self::RandomInt { low, high } => {
                let len = write::decimal_len(*low);
                ((*low < 0) == (*high < 0) && len == write::decimal_len(*high)).then_some(len)
            }
            Self::RandomFloat { low, high, digits } => {
                let len = write::fraction_len(*low, *digits);
                ((*low < 0) == (*high < 0) && len == write::fraction_len(*high, *digits)).then_some(len)
            }
            Self::Range { width, .. } => Some(usize::from(*width)),
            Self::Pick(texts) => {
                let len = texts.first().map_or(0, |text| text.len());
                texts.iter().all(|text| text.len() == len).then_some(len)
            }
            Self::Call(call) => call.fixed_len(),
            Self::Sequence
            | Self::Worker
            | Self::Zipf(_)
            | Self::Timestamp { .. }
            | Self::Variable { .. }
            | Self::Token(_)
            | Self::Authority
            | Self::Cookies(_)
            | Self::Shared(_)
            | Self::Coded(_) => None,
        }
    }

    /// Most bytes that a rendering of this slot can have, without those of variables, tokens, shared texts
    /// and of the context's authority and cookies, of which it is not known.
    pub fn longest(&self) -> usize {
        match self {
            Self::Variable { .. } | Self::Token(_) | Self::Authority | Self::Cookies(_) | Self::Shared(_) => {
                0
            }
            Self::Pick(texts) => texts.iter().map(|text| text.len()).max().unwrap_or(0),
            Self::Call(call) => call.longest(),
            Self::Coded(coded) => coded.longest(),
            Self::RandomFloat { low, high, digits } => {
                write::fraction_len(*low, *digits).max(write::fraction_len(*high, *digits))
            }
            _ => self.fixed_len().unwrap_or(20),
        }
    }

    /// Returns `true` if the slot reads [`Context::unix_ns`].
    pub fn needs_clock(&self) -> bool {
        match self {
            Self::Call(call) => call.function.signs() || call.argument.needs_clock(),
            Self::Coded(coded) => coded.parts().iter().any(Template::needs_clock),
            _ => matches!(self, Self::Timestamp { .. }),
        }
    }

    /// Returns `true` if the slot reads [`Context::variables`].
    pub fn is_variable(&self) -> bool {
        match self {
            Self::Call(call) => call.function.variable().is_some() || call.argument.uses_variables(),
            Self::Coded(coded) => coded.parts().iter().any(Template::uses_variables),
            _ => matches!(self, Self::Variable { .. }),
        }
    }

    /// Appends the positions of the variables whose control characters would get into a header.
    pub(crate) fn add_variables_of_line(&self, into: &mut Vec<u16>) {
        match self {
            Self::Variable { index, writing: Writing::Line } => into.push(*index),
            Self::Call(call) if call.writing == Writing::Line && call.function.lets_through() => {
                self.add_variables(into);
            }
            _ => {}
        }
    }

    /// Returns about as many bytes as a rendering takes of values of variables with these lengths, in bytes.
    /// What functions within others escape counts as if each byte were escaped.
    pub(crate) fn len_of_variables(&self, len_of: &dyn Fn(u16) -> usize) -> usize {
        match self {
            Self::Variable { index, .. } => len_of(*index),
            Self::Call(call) => call.len_of_variables(len_of),
            Self::Coded(coded) => coded.len_of_variables(len_of),
            _ => 0,
        }
    }

    /// Appends the positions of the variables that it reads.
    pub(crate) fn add_variables(&self, into: &mut Vec<u16>) {
        match self {
            Self::Variable { index, .. } => into.push(*index),
            Self::Call(call) => {
                into.extend(call.function.variable());
                call.argument.slots().for_each(|slot| slot.add_variables(into));
            }
            Self::Coded(coded) => {
                let slots = coded.parts().iter().flat_map(Template::slots);
                slots.for_each(|slot| slot.add_variables(into));
            }
            _ => {}
        }
    }

    /// Returns `true` if the value is the same as long as the variables are.
    pub(crate) fn depends_on_variables_alone(&self) -> bool {
        match self {
            Self::Call(call) => {
                let is_drawn = call.function.signs() || call.function.draws() > 0;
                !is_drawn && call.argument.depends_on_variables_alone()
            }
            _ => matches!(self, Self::Variable { .. }),
        }
    }

    /// Returns `true` if the slot renders a secret: it is a token, signs one, or has a text with a secret.
    pub(crate) fn has_secret(&self) -> bool {
        match self {
            Self::Token(_) => true,
            Self::Call(call) => call.function.signs() || call.argument.has_secret(),
            Self::Coded(coded) => coded.parts().iter().any(Template::has_secret),
            _ => false,
        }
    }

    /// A byte of a text that it was given, and that it lets through to where it may not be.
    pub(crate) fn unfit_byte(&self) -> Option<u8> {
        match self {
            Self::Call(call) if call.function.lets_through() => call.argument.unfit_byte(),
            _ => None,
        }
    }

    /// Returns `true` if every rendering starts with `/`.
    pub(crate) fn is_path(&self) -> bool {
        match self {
            Self::Variable { writing, .. } => writing.is_start(),
            Self::Call(call) => call.writing.is_start(),
            Self::Pick(texts) => texts.iter().all(|text| text.starts_with(b"/")),
            _ => false,
        }
    }

    /// Returns the number of random numbers that a rendering takes, which is always the same.
    pub(crate) fn draws(&self) -> u32 {
        match self {
            Self::Uuid => 2,
            Self::Traceparent { .. }
            | Self::RandomInt { .. }
            | Self::RandomFloat { .. }
            | Self::Zipf(_)
            | Self::Pick(_) => 1,
            Self::RandomHex(n) => n.div_ceil(write::HEX_OF_ONE_DRAW as u32),
            Self::RandomString(n) => n.div_ceil(write::CHARACTERS_OF_ONE_DRAW as u32),
            Self::Call(call) => call.function.draws() + call.argument.draws(),
            Self::Coded(coded) => coded.draws(),
            Self::Sequence
            | Self::Worker
            | Self::Timestamp { .. }
            | Self::Range { .. }
            | Self::Variable { .. }
            | Self::Token(_)
            | Self::Authority
            | Self::Cookies(_)
            | Self::Shared(_) => 0,
        }
    }

    /// Appends one value. Allocates only when `out` has to grow.
    pub fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        match self {
            Self::Sequence => write_decimal(context.index, out),
            Self::Worker => write_decimal(u64::from(context.worker), out),
            Self::Uuid => write::write_uuid(random, out),
            Self::Traceparent { sampled } => {
                let id = context.trace_key.id_of(context.index, context.step);
                trace::write_traceparent(id, *sampled, random, out);
            }
            Self::Timestamp { unit_ns } => write_decimal(context.unix_ns / unit_ns, out),
            Self::RandomInt { low, high } => write::write_random_int(*low, *high, random, out),
            Self::RandomFloat { low, high, digits } => {
                write::write_random_float(*low, *high, *digits, random, out);
            }
            Self::RandomHex(n) => write::write_random_hex(*n as usize, random, out),
            Self::RandomString(n) => write::write_random_string(*n as usize, random, out),
            Self::Range { start, count, width } => {
                write::write_padded(start + context.index % count, usize::from(*width), out);
            }
            Self::Zipf(zipf) => write_decimal(zipf.draw(random), out),
            Self::Pick(texts) => {
                out.extend_from_slice(&texts[random.below(texts.len() as u64) as usize]);
            }
            Self::Variable { index, writing } => {
                let value = context.variables.get(usize::from(*index)).map_or(&[][..], Vec::as_slice);
                write::write_text(value, *writing, out);
            }
            Self::Token(number) => out.extend_from_slice(context.token(*number)),
            Self::Call(call) => call.render(context, random, out),
            Self::Authority => out.extend_from_slice(context.authority),
            Self::Cookies(form) => form.render(context.cookies, out),
            Self::Shared(text) => text.render(out),
            Self::Coded(coded) => coded.render(context, random, out),
        }
    }
}

impl CookieForm {
    fn render(self, cookies: &[u8], out: &mut Vec<u8>) {
        if cookies.is_empty() {
            return;
        }
        let (before, after): (&[u8], &[u8]) = match self {
            Self::Line => (b"Cookie: ", b"\r\n"),
            Self::Value => (b"", b""),
            Self::More => (b"; ", b""),
        };
        out.extend_from_slice(before);
        out.extend_from_slice(cookies);
        out.extend_from_slice(after);
    }
}
