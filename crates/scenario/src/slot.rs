//! Slots: what changes from request to request.

use plimsoll_core::Random;

use crate::suggest;
use crate::{Context, Scope, TemplateError};

/// One value to fill in. Every value but that of a variable consists of letters, digits and `-`, so it is
/// safe in a URL, in a header and inside a JSON string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// `sequence`: the index of the arrival, from 0, unique in the run.
    Sequence,
    /// `worker`: the index of the worker thread, from 0.
    Worker,
    /// `uuid`: a random UUID (RFC 9562, version 4).
    Uuid,
    /// `timestamp_s`, `timestamp_ms`, `timestamp_us`, `timestamp_ns`: time since 1970 in units of so many
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
    /// `random_hex(n)`: n random digits 0–9a–f.
    RandomHex(u32),
    /// `random_string(n)`: n random letters and digits.
    RandomString(u32),
    /// `range(start,end)`: the whole numbers from `start` up to, but not including, `end`, over and over, one
    /// per index of the arrival; with leading zeros as wide as `end`.
    Range {
        /// First number.
        start: u64,
        /// How many there are, at least 1.
        count: u64,
        /// Digits of each.
        width: u8,
    },
    /// The value of a variable, under the name that it has in the [`Scope`].
    Variable {
        /// Position in [`Context::variables`].
        index: u16,
        /// How the value is written.
        writing: Writing,
    },
}

/// How the value of a variable is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// As it is: in a header, in a body.
    AsIs,
    /// What has no place in a request target is percent-encoded (RFC 3986 section 2.1): everything but
    /// visible ASCII characters, and `#`. A `%` stays, so that what was encoded is not encoded again.
    Encoded,
    /// The same at the start of a request target: with a `/` in front, unless the value has one.
    Path,
}

/// Most digits that one random slot may render, in bytes: a slot is for values that make a request unique.
const LONGEST_RANDOM: u32 = 1 << 20;

const HEX: &[u8; 16] = b"0123456789abcdef";
/// RFC 3986 section 2.1: percent-encodings are written with capitals.
const UPPER_HEX: &[u8; 16] = b"0123456789ABCDEF";
const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Slot {
    /// Every slot as it is written, for help texts and suggestions.
    pub const FORMS: &'static [&'static str] = &[
        "sequence",
        "worker",
        "uuid",
        "timestamp_s",
        "timestamp_ms",
        "timestamp_us",
        "timestamp_ns",
        "random_int(low,high)",
        "random_hex(n)",
        "random_string(n)",
        "range(start,end)",
    ];

    /// Parses what stands between `${` and `}`: one of [`FORMS`](Self::FORMS), or a variable in `scope`.
    pub fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        let text = text.trim();
        if text.chars().any(char::is_control) {
            return Err(TemplateError::new("a control character between `${` and `}`")
                .with_hint("write $${ for a literal ${"));
        }
        let (name, arguments) = match text.split_once('(') {
            None => (text, Vec::new()),
            Some((name, rest)) => {
                let Some(inner) = rest.strip_suffix(')') else {
                    return Err(TemplateError::new(format!("`${{{text}}}` has no closing `)`")));
                };
                (name.trim_end(), inner.split(',').map(str::trim).collect())
            }
        };
        match (name, arguments.as_slice()) {
            ("sequence", []) => Ok(Self::Sequence),
            ("worker", []) => Ok(Self::Worker),
            ("uuid", []) => Ok(Self::Uuid),
            ("timestamp_s", []) => Ok(Self::Timestamp { unit_ns: 1_000_000_000 }),
            ("timestamp_ms", []) => Ok(Self::Timestamp { unit_ns: 1_000_000 }),
            ("timestamp_us", []) => Ok(Self::Timestamp { unit_ns: 1_000 }),
            ("timestamp_ns", []) => Ok(Self::Timestamp { unit_ns: 1 }),
            ("random_int", [low, high]) => Self::random_int(low, high),
            ("random_hex", [digits]) => Ok(Self::RandomHex(length(name, digits)?)),
            ("random_string", [digits]) => Ok(Self::RandomString(length(name, digits)?)),
            ("range", [start, end]) => Self::range(start, end),
            _ => match scope.variables.iter().position(|variable| variable == text) {
                Some(position) => Self::variable(position),
                None => Err(not_a_slot(name, text, scope)),
            },
        }
    }

    fn variable(position: usize) -> Result<Self, TemplateError> {
        match u16::try_from(position) {
            Ok(index) => Ok(Self::Variable { index, writing: Writing::AsIs }),
            Err(_) => Err(TemplateError::new("more than 65536 variables")),
        }
    }

    fn range(start: &str, end: &str) -> Result<Self, TemplateError> {
        let number = |text: &str| {
            text.parse::<u64>().map_err(|_| {
                TemplateError::new(format!(
                    "`{text}` in `range` is not a whole number from 0 to {}",
                    u64::MAX
                ))
            })
        };
        let (start, end) = (number(start)?, number(end)?);
        if start >= end {
            return Err(TemplateError::new(format!("`range({start},{end})` has no value in its range"))
                .with_hint("the end is not a part of it: it has to be larger than the start"));
        }
        Ok(Self::Range { start, count: end - start, width: digits(end) as u8 })
    }

    fn random_int(low: &str, high: &str) -> Result<Self, TemplateError> {
        let number = |text: &str| {
            text.parse::<i64>().map_err(|_| {
                TemplateError::new(format!("`{text}` in `random_int` is not a whole number of 64 bits"))
            })
        };
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return Err(TemplateError::new(format!("`random_int({low},{high})` has no value in its range"))
                .with_hint(format!("write `random_int({high},{low})`")));
        }
        Ok(Self::RandomInt { low, high })
    }

    /// Bytes that every rendering of this slot has, if they are always as many.
    pub fn fixed_len(&self) -> Option<usize> {
        match *self {
            Self::Uuid => Some(36),
            Self::RandomHex(n) | Self::RandomString(n) => Some(n as usize),
            // All numbers between two of the same sign and the same number of digits have that number too.
            Self::RandomInt { low, high } => {
                let len = decimal_len(low);
                ((low < 0) == (high < 0) && len == decimal_len(high)).then_some(len)
            }
            Self::Range { width, .. } => Some(usize::from(width)),
            Self::Sequence | Self::Worker | Self::Timestamp { .. } | Self::Variable { .. } => None,
        }
    }

    /// Most bytes that a rendering of this slot can have; 0 for a variable, of which it is not known.
    pub fn longest(&self) -> usize {
        match self {
            Self::Variable { .. } => 0,
            _ => self.fixed_len().unwrap_or(20),
        }
    }

    /// Whether the slot reads [`Context::unix_ns`].
    pub fn needs_clock(&self) -> bool {
        matches!(self, Self::Timestamp { .. })
    }

    /// Whether the slot reads [`Context::variables`].
    pub fn is_variable(&self) -> bool {
        matches!(self, Self::Variable { .. })
    }

    /// Appends one value. Allocates only when `out` has to grow.
    pub fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        match *self {
            Self::Sequence => write_decimal(context.index, out),
            Self::Worker => write_decimal(u64::from(context.worker), out),
            Self::Uuid => write_uuid(random, out),
            Self::Timestamp { unit_ns } => write_decimal(context.unix_ns / unit_ns, out),
            Self::RandomInt { low, high } => write_random_int(low, high, random, out),
            Self::RandomHex(n) => write_random_hex(n as usize, random, out),
            Self::RandomString(n) => write_random_string(n as usize, random, out),
            Self::Range { start, count, width } => {
                write_padded(start + context.index % count, usize::from(width), out);
            }
            Self::Variable { index, writing } => {
                let value = context.variables.get(usize::from(index)).map_or(&[][..], Vec::as_slice);
                write_variable(value, writing, out);
            }
        }
    }
}

/// The error for a name that no slot has, or for a known name with other arguments than it takes.
fn not_a_slot(name: &str, text: &str, scope: &Scope<'_>) -> TemplateError {
    let names = || Slot::FORMS.iter().map(|form| form.split('(').next().unwrap_or(form));
    if let Some(index) = names().position(|known| known == name) {
        return TemplateError::new(format!("`${{{text}}}` does not have the arguments of `{name}`"))
            .with_hint(format!("write `${{{}}}`", Slot::FORMS[index]));
    }
    let variables = || scope.variables.iter().map(String::as_str);
    let advice = match suggest::closest(name, variables().chain(names())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let known: Vec<&str> = variables().chain(Slot::FORMS.iter().copied()).collect();
            format!("known: {}", known.join(", "))
        }
    };
    TemplateError::new(format!("unknown template slot `${{{text}}}`"))
        .with_hint(format!("{advice} (write $${{ for a literal ${{)"))
}

fn length(name: &str, text: &str) -> Result<u32, TemplateError> {
    match text.parse::<u32>() {
        Ok(n) if (1..=LONGEST_RANDOM).contains(&n) => Ok(n),
        _ => Err(TemplateError::new(format!(
            "`{name}({text})`: the number of characters must be 1 to {LONGEST_RANDOM}"
        ))),
    }
}

/// Appends `number` in decimal.
pub(crate) fn write_decimal(number: u64, out: &mut Vec<u8>) {
    write_padded(number, 1, out);
}

/// Appends `number` in decimal, with leading zeros up to `width` digits, of which there are at most 20.
fn write_padded(mut number: u64, width: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while number > 0 {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits[start.min(digits.len().saturating_sub(width))..]);
}

/// Digits of `number` in decimal.
fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Characters of `number` in decimal, with its sign.
fn decimal_len(number: i64) -> usize {
    digits(number.unsigned_abs()) + usize::from(number < 0)
}

fn write_variable(value: &[u8], writing: Writing, out: &mut Vec<u8>) {
    if writing == Writing::Path && !value.starts_with(b"/") {
        out.push(b'/');
    }
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    if writing == Writing::AsIs || value.iter().copied().all(fits) {
        out.extend_from_slice(value);
        return;
    }
    for &byte in value {
        if fits(byte) {
            out.push(byte);
        } else {
            let digit = |nibble: u8| UPPER_HEX[usize::from(nibble)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 0xf)]);
        }
    }
}

fn write_random_int(low: i64, high: i64, random: &mut Random, out: &mut Vec<u8>) {
    // The number of values is 2^64 for the whole range of i64, which wraps to 0: then any 64 bits will do.
    let values = high.wrapping_sub(low).cast_unsigned().wrapping_add(1);
    let offset = if values == 0 { random.bits() } else { random.below(values) };
    let number = low.wrapping_add_unsigned(offset);
    if number < 0 {
        out.push(b'-');
    }
    write_decimal(number.unsigned_abs(), out);
}

/// RFC 9562 section 5.4: 122 random bits, version 4, variant 10.
fn write_uuid(random: &mut Random, out: &mut Vec<u8>) {
    let high = random.bits() & !0xf000 | 0x4000;
    let low = random.bits() & !(0b11 << 62) | 0b10 << 62;
    let mut text = [b'-'; 36];
    let mut nibbles = (u128::from(high) << 64) | u128::from(low);
    for (position, byte) in text.iter_mut().enumerate() {
        if !matches!(position, 8 | 13 | 18 | 23) {
            *byte = HEX[(nibbles >> 124) as usize];
            nibbles <<= 4;
        }
    }
    out.extend_from_slice(&text);
}

fn write_random_hex(n: usize, random: &mut Random, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + n, 0);
    for chunk in out[start..].chunks_mut(16) {
        let mut bits = random.bits();
        for byte in chunk {
            *byte = HEX[(bits >> 60) as usize];
            bits <<= 4;
        }
    }
}

fn write_random_string(n: usize, random: &mut Random, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + n, 0);
    // 64 bits as a fraction, multiplied by 62, give a digit in base 62 and the next fraction. Eight digits
    // from one draw keep the bias below 62^8 / 2^64, about 1e-5.
    for chunk in out[start..].chunks_mut(8) {
        let mut fraction = random.bits();
        for byte in chunk {
            let product = u128::from(fraction) * 62;
            *byte = ALPHANUMERIC[(product >> 64) as usize];
            fraction = product as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Slot, TemplateError> {
        Slot::parse(text, &Scope::default())
    }

    fn rendered(text: &str, context: Context<'_>, seed: u64) -> String {
        let mut out = Vec::new();
        parse(text).unwrap().render(&context, &mut Random::new(seed, 0), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_from_the_context() {
        let context = Context { index: 42, worker: 3, unix_ns: 1_700_000_000_123_456_789, variables: &[] };
        for (text, expected) in [
            ("sequence", "42"),
            ("worker", "3"),
            (" timestamp_s ", "1700000000"),
            ("timestamp_ms", "1700000000123"),
            ("timestamp_us", "1700000000123456"),
            ("timestamp_ns", "1700000000123456789"),
            ("random_int(7, 7)", "7"),
            ("range(0,100)", "042"),
            ("range(1,10)", "07"),
            ("range(40, 41)", "40"),
            ("range(99,1000000000)", "0000000141"),
            ("range(18446744073709551614,18446744073709551615)", "18446744073709551614"),
        ] {
            assert_eq!(rendered(text, context, 0), expected, "{text}");
        }
    }

    #[test]
    fn uuids_have_version_and_variant_and_do_not_repeat() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..1000 {
            let uuid = rendered("uuid", Context::default(), seed);
            let bytes = uuid.as_bytes();
            assert_eq!(bytes.len(), 36);
            assert_eq!(bytes[14], b'4', "{uuid}");
            assert!(b"89ab".contains(&bytes[19]), "{uuid}");
            for (position, byte) in bytes.iter().enumerate() {
                let dash = matches!(position, 8 | 13 | 18 | 23);
                assert!(if dash { *byte == b'-' } else { HEX.contains(byte) }, "{uuid}");
            }
            assert!(seen.insert(uuid));
        }
    }

    #[test]
    fn random_integers_reach_both_ends_and_the_extremes_of_the_type() {
        let mut random = Random::new(1, 0);
        let mut seen = std::collections::BTreeSet::new();
        let slot = parse("random_int(-2,2)").unwrap();
        for _ in 0..200 {
            let mut out = Vec::new();
            slot.render(&Context::default(), &mut random, &mut out);
            seen.insert(String::from_utf8(out).unwrap().parse::<i64>().unwrap());
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [-2, -1, 0, 1, 2]);
        let whole = rendered(&format!("random_int({},{})", i64::MIN, i64::MAX), Context::default(), 3);
        whole.parse::<i64>().unwrap();
        let lowest = rendered(&format!("random_int({0},{0})", i64::MIN), Context::default(), 3);
        assert_eq!(lowest, i64::MIN.to_string());
    }

    #[test]
    fn random_strings_use_the_whole_alphabet_evenly() {
        let text = rendered("random_string(62000)", Context::default(), 5);
        let mut counts = [0_u32; 62];
        for byte in text.bytes() {
            counts[ALPHANUMERIC.iter().position(|&c| c == byte).unwrap()] += 1;
        }
        // 1000 expected of each with a standard deviation of 31; six of them are never left by a fair draw.
        assert!(counts.iter().all(|count| (814..=1186).contains(count)), "{counts:?}");
    }

    #[test]
    fn mistakes_have_advice() {
        for (text, message, hint) in [
            (
                "sequenc",
                "unknown template slot `${sequenc}`",
                "did you mean `sequence`? (write $${ for a literal ${)",
            ),
            (
                "random_int(1)",
                "`${random_int(1)}` does not have the arguments of `random_int`",
                "write `${random_int(low,high)}`",
            ),
            ("uuid(4)", "`${uuid(4)}` does not have the arguments of `uuid`", "write `${uuid}`"),
            (
                "range(5,5)",
                "`range(5,5)` has no value in its range",
                "the end is not a part of it: it has to be larger than the start",
            ),
            ("random_int(9,1)", "`random_int(9,1)` has no value in its range", "write `random_int(1,9)`"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.message(), error.hint()), (message, Some(hint)), "{text}");
        }
        let nothing_near = parse("HOME").unwrap_err();
        assert!(nothing_near.hint().unwrap().starts_with("known: sequence, worker, uuid"));
        for text in [
            "random_hex(0)",
            "random_hex(-1)",
            "random_string(2000000)",
            "random_int(a,b)",
            "range(-1,5)",
            "range(1,18446744073709551616)",
            "range(2)",
            "uuid(",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn variables_are_known_and_suggested() {
        let names = ["resource".to_owned(), "uuid".to_owned(), "user id".to_owned()];
        let scope = Scope { variables: &names };
        let variable = |index| Slot::Variable { index, writing: Writing::AsIs };
        assert_eq!(Slot::parse(" resource ", &scope), Ok(variable(0)));
        assert_eq!(Slot::parse("user id", &scope), Ok(variable(2)));
        assert_eq!(Slot::parse("uuid", &scope), Ok(Slot::Uuid));
        let error = Slot::parse("resorce", &scope).unwrap_err();
        assert_eq!(error.message(), "unknown template slot `${resorce}`");
        assert_eq!(error.hint(), Some("did you mean `resource`? (write $${ for a literal ${)"));
        let hint = Slot::parse("HOME", &scope).unwrap_err().hint().map(str::to_owned);
        assert!(hint.unwrap().starts_with("known: resource, uuid, user id, sequence, "));
        assert!(Slot::parse("resource(1)", &scope).is_err());
        let many: Vec<String> = (0..=65_536).map(|number| format!("v{number}")).collect();
        assert!(Slot::parse("v65535", &Scope { variables: &many }).is_ok());
        assert!(Slot::parse("v65536", &Scope { variables: &many }).is_err());
    }

    #[test]
    fn variables_are_written_as_their_place_needs_it() {
        let variables = [b"/a b#c%20\r\n\xff\0{~".to_vec(), b"plain?x=1".to_vec(), Vec::new()];
        let context = Context { variables: &variables, ..Context::default() };
        for (index, writing, expected) in [
            (0, Writing::AsIs, &variables[0][..]),
            (0, Writing::Encoded, b"/a%20b%23c%20%0D%0A%FF%00{~"),
            (0, Writing::Path, b"/a%20b%23c%20%0D%0A%FF%00{~"),
            (1, Writing::Encoded, b"plain?x=1"),
            (1, Writing::Path, b"/plain?x=1"),
            (2, Writing::AsIs, b""),
            (2, Writing::Path, b"/"),
            (3, Writing::Encoded, b""),
        ] {
            let mut out = Vec::new();
            Slot::Variable { index, writing }.render(&context, &mut Random::new(0, 0), &mut out);
            assert_eq!(out, expected, "{index} {writing:?}");
        }
    }

    #[test]
    fn a_range_repeats_itself_without_its_end() {
        let at = |index| rendered("range(8,11)", Context { index, ..Context::default() }, 0);
        assert_eq!([0, 1, 2, 3, 4].map(at), ["08", "09", "10", "08", "09"]);
    }

    #[test]
    fn every_form_that_help_lists_is_known() {
        for form in Slot::FORMS {
            let written = form.replace("low,high", "1,2").replace("start,end", "1,2").replace("(n)", "(3)");
            parse(&written).unwrap();
        }
    }

    proptest! {
        #[test]
        fn decimals_are_those_of_the_standard_library(number in any::<u64>(), shift in 0..64_u32) {
            let number = number >> shift;
            let mut out = Vec::new();
            write_decimal(number, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }

        #[test]
        fn lengths_are_as_promised_and_integers_in_range(
            a in any::<i64>(), b in any::<i64>(), shift in 0..64_u32, seed in any::<u64>(), n in 1..100_u32,
        ) {
            let (low, high) = ((a >> shift).min(b >> shift), (a >> shift).max(b >> shift));
            let (start, end) = (a.unsigned_abs() >> shift, (b.unsigned_abs() >> shift).saturating_add(1));
            let range = parse(&format!("range({},{end})", start.min(end - 1))).unwrap();
            let slots =
                [Slot::RandomInt { low, high }, Slot::RandomHex(n), Slot::RandomString(n), Slot::Uuid, range];
            let context = Context { index: seed.rotate_left(9), ..Context::default() };
            for slot in slots {
                let mut out = Vec::new();
                slot.render(&context, &mut Random::new(seed, 0), &mut out);
                prop_assert!(out.len() <= slot.longest());
                if let Some(len) = slot.fixed_len() {
                    prop_assert_eq!(out.len(), len);
                }
                if let Slot::Range { .. } = slot {
                    let number: u64 = String::from_utf8(out).unwrap().parse().unwrap();
                    prop_assert!((start.min(end - 1)..end).contains(&number));
                } else if let Slot::RandomInt { .. } = slot {
                    let number: i64 = String::from_utf8(out).unwrap().parse().unwrap();
                    prop_assert!((low..=high).contains(&number));
                }
            }
        }
    }
}
