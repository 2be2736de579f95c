//! Parsing of the text between `${` and `}`.

use plimsoll_core::suggest;

use super::function::{Call, Function, Length};
use super::write::{digits, encode_from};
use super::{Slot, Writing, Zipf};
use crate::token::Signer;
use crate::{Constants, Scope, Template, TemplateError};

/// Most characters that one random slot may render: a slot is for values that make a request unique.
const LONGEST_RANDOM: u32 = 1 << 20;

/// Most bytes that a text may be filled up to: as many as a frame of the cache protocol takes.
const LONGEST_FILLED: u32 = 8 << 20;

/// Most ranks of a Zipf distribution: up to there, whole numbers are exact in floating point.
const LARGEST_ZIPF: u64 = 1 << 53;

/// Functions within functions, at most.
const DEPTH_MAX: u8 = 8;

/// Most digits of a random fraction: with them a number of 64 bits has room for a part in front of its point.
const PLACES_MAX: u8 = 15;

/// Names that other tools have for the same.
const SYNONYMS: &[(&str, &str)] = &[
    ("iteration", "sequence"),
    ("index", "sequence"),
    ("guid", "uuid"),
    ("now", "timestamp_ms"),
    ("timestamp", "timestamp_ms"),
    ("random", "random_int"),
    ("choice", "pick"),
    ("sha256", "hash"),
    ("crc32", "hash"),
    ("url_encode", "urlencode"),
];

/// Meaning of a slot's text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Slot(Slot),
    /// A text that is the same in every rendering.
    Constant {
        text: Vec<u8>,
        secret: bool,
    },
}

impl Parsed {
    /// Makes it render in the way that its place needs.
    pub(crate) fn write_as(&mut self, place: Writing) {
        match self {
            Self::Constant { text, .. } => encode_from(0, place, text),
            Self::Slot(Slot::Variable { writing, .. }) => {
                *writing = if place == Writing::Path { Writing::Resource } else { place };
            }
            Self::Slot(Slot::Call(call)) => call.writing = place,
            Self::Slot(Slot::Pick(texts)) => {
                for text in texts {
                    let mut written = text.to_vec();
                    encode_from(0, place, &mut written);
                    *text = written.into();
                }
            }
            Self::Slot(_) => {}
        }
    }
}

/// Parses slots, at some depth of functions within functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parser<'s> {
    scope: &'s Scope<'s>,
    depth: u8,
}

impl<'s> Parser<'s> {
    pub(crate) fn new(scope: &'s Scope<'s>) -> Self {
        Self { scope, depth: 0 }
    }

    /// Parses the text between `${` and `}`: one of [`Slot::FORMS`], or a variable.
    pub(crate) fn slot(self, text: &str) -> Result<Parsed, TemplateError> {
        let text = text.trim();
        if text.chars().any(char::is_control) {
            return Err(TemplateError::new("a control character between `${` and `}`")
                .with_hint("write $${ for a literal ${"));
        }
        let (name, inner) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(inner) => (name.trim_end(), Some(inner)),
                None => return Err(TemplateError::new(format!("`${{{text}}}` has no closing `)`"))),
            },
        };
        if let (Some(function), Some(inner)) = (Function::named(name), inner) {
            return self.call(name, function, inner);
        }
        let arguments = inner.map_or_else(Vec::new, split_arguments);
        let slot = match (name, arguments.as_slice()) {
            ("sequence", []) => Slot::Sequence,
            ("worker", []) => Slot::Worker,
            ("uuid", []) => Slot::Uuid,
            ("traceparent", []) => Slot::Traceparent { sampled: u32::MAX },
            ("traceparent", [share]) => traceparent(share)?,
            ("timestamp_s", []) => Slot::Timestamp { unit_ns: 1_000_000_000 },
            ("timestamp_ms", []) => Slot::Timestamp { unit_ns: 1_000_000 },
            ("timestamp_us", []) => Slot::Timestamp { unit_ns: 1_000 },
            ("timestamp_ns", []) => Slot::Timestamp { unit_ns: 1 },
            ("random_int", [low, high]) => random_int(low, high)?,
            ("random_float", [low, high]) => random_float(low, high, None)?,
            ("random_float", [low, high, places]) => random_float(low, high, Some(places))?,
            ("random_hex", [n]) => Slot::RandomHex(length(name, n)?),
            ("random_string", [n]) => Slot::RandomString(length(name, n)?),
            ("range", [start, end]) => range(start, end)?,
            ("pick", [_, ..]) => pick(&arguments)?,
            ("zipf", [count, exponent]) => zipf(count, exponent)?,
            ("fill", [length, _, ..]) => return self.fill(length, inner.unwrap_or_default()),
            ("merge", [name, _, ..]) => return self.merge(name, inner.unwrap_or_default()),
            ("digest", [name, _, ..]) => return self.digest(name, inner.unwrap_or_default()),
            ("hash", [kind, _, ..]) => return self.hash(kind, inner.unwrap_or_default()),
            ("token", [name]) => Slot::Token(self.token(unquoted(name))?.0),
            ("token", [name, _, ..]) => return self.sign(unquoted(name), inner.unwrap_or_default()),
            ("env", [name]) => return self.environment(unquoted(name)),
            ("secret", [name]) => return self.secret(unquoted(name)),
            _ => match self.scope.variables.iter().position(|variable| variable == text) {
                Some(position) => variable(position)?,
                None => return Err(self.not_a_slot(name, text)),
            },
        };
        Ok(Parsed::Slot(slot))
    }

    fn hash(self, kind: &str, inner: &str) -> Result<Parsed, TemplateError> {
        let function = match kind {
            "sha256" => Function::Sha256,
            "crc32" => Function::Crc32,
            _ => {
                return Err(TemplateError::new(format!("`hash` does not know `{kind}`"))
                    .with_hint("it knows sha256 and crc32, as in `${hash(sha256,text)}`"));
            }
        };
        let (_, text) = inner.split_once(',').unwrap_or_default();
        self.call("hash", function, text)
    }

    fn fill(self, length: &str, inner: &str) -> Result<Parsed, TemplateError> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= LONGEST_FILLED);
        let read = match (length.strip_prefix("exp:"), length.split_once('-')) {
            (Some(mean), _) => {
                let mean = number(mean).filter(|mean| (1..=LONGEST_FILLED / 23).contains(mean));
                mean.map(|mean| Length::Exponential { mean })
            }
            (None, Some((low, high))) => {
                let ends = number(low).zip(number(high)).filter(|(low, high)| low <= high);
                ends.map(|(low, high)| Length::Uniform { low, high })
            }
            (None, None) => number(length).map(|number| Length::Uniform { low: number, high: number }),
        };
        let Some(length) = read else {
            return Err(TemplateError::new(format!("`{length}` in `fill` is not a length")).with_hint(
                format!("write a number of bytes up to {LONGEST_FILLED}, `100-2000` or `exp:500`"),
            ));
        };
        let (_, text) = inner.split_once(',').unwrap_or_default();
        self.call("fill", Function::Fill(length), text)
    }

    fn merge(self, name: &str, inner: &str) -> Result<Parsed, TemplateError> {
        let hint = "its first argument is the name of one that has a JSON object, as in \
                    `${merge(order,'{\"open\": false}')}`";
        let variable = self.position("merge", name, hint)?;
        let (_, text) = inner.split_once(',').unwrap_or_default();
        self.call("merge", Function::Merge { variable }, text)
    }

    fn digest(self, name: &str, inner: &str) -> Result<Parsed, TemplateError> {
        let hint = "its first argument is the name of one that has the header `www-authenticate` of a response, \
                    as in `${digest(challenge, 'me:${secret(PASSWORD)}, GET /path')}`";
        let variable = self.position("digest", name, hint)?;
        let (_, text) = inner.split_once(',').unwrap_or_default();
        self.call("digest", Function::Digest { variable }, text)
    }

    /// The position of the variable that a function has as its first argument.
    fn position(self, function: &str, name: &str, hint: &str) -> Result<u16, TemplateError> {
        let position = self.scope.variables.iter().position(|variable| variable == name);
        position.and_then(|position| u16::try_from(position).ok()).ok_or_else(|| {
            TemplateError::new(format!("`{name}` in `{function}` is not a variable")).with_hint(hint)
        })
    }

    /// The place and the signer of a token.
    fn token(self, name: &str) -> Result<(u16, &'s Signer), TemplateError> {
        let tokens = self.scope.tokens;
        let place = tokens.iter().position(|signer| signer.name() == name);
        if let Some(number) = place
            && let Ok(token) = u16::try_from(number)
        {
            return Ok((token, &tokens[number]));
        }
        let names = tokens.iter().map(|signer| signer.name());
        Err(TemplateError::new(format!("there is no token `{name}`")).with_hint(
            match suggest::closest(name, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "define it under `tokens`".to_owned(),
            },
        ))
    }

    fn sign(self, name: &str, inner: &str) -> Result<Parsed, TemplateError> {
        let (token, signer) = self.token(name)?;
        if signer.has_subject() {
            let error =
                TemplateError::new(format!("the token `{name}` has a `sub` among its claims already"));
            return Err(error.with_hint(format!("leave it out there, or write `${{token({name})}}`")));
        }
        let (_, text) = inner.split_once(',').unwrap_or_default();
        self.call("token", Function::Sign { token, draws: signer.draws() }, text)
    }

    fn call(self, name: &str, function: Function, text: &str) -> Result<Parsed, TemplateError> {
        let argument = self.argument(name, text)?;
        let call = Slot::Call(Box::new(Call { function, argument, writing: Writing::AsIs }));
        Ok(match &call {
            Slot::Call(inner)
                if inner.argument.is_static() && function.variable().is_none() && !function.signs() =>
            {
                let (mut text, secret) = (Vec::new(), inner.argument.has_secret());
                // The functions that are tried here do not draw.
                let mut random = plimsoll_core::Random::new(0, 0);
                call.render(&crate::Context::default(), &mut random, &mut text);
                Parsed::Constant { text, secret }
            }
            _ => Parsed::Slot(call),
        })
    }

    /// The text that a function is given: a slot or a variable by its bare name, or a text in quotes or with
    /// slots in it.
    fn argument(self, name: &str, text: &str) -> Result<Template, TemplateError> {
        let text = text.trim();
        if self.depth >= DEPTH_MAX {
            return Err(TemplateError::new(format!("more than {DEPTH_MAX} functions within each other")));
        }
        let inside = Self { depth: self.depth + 1, ..self };
        let literal = unquoted(text);
        if literal.len() < text.len() || text.contains("${") {
            return Template::parse_inside(literal.as_bytes(), inside);
        }
        if text.is_empty() {
            return Err(TemplateError::new(format!("`{name}()` has no text"))
                .with_hint(format!("write `${{{name}(${{variable}})}}` or `${{{name}(\"text\")}}`")));
        }
        match inside.slot(text) {
            Ok(parsed) => Ok(Template::of(parsed)),
            Err(error) => {
                let more = format!("a text stands in quotes, as in `{name}(\"{text}\")`");
                let hint = error.hint().map_or_else(|| more.clone(), |hint| format!("{hint}; {more}"));
                Err(error.with_hint(hint))
            }
        }
    }

    fn constants(self, function: &str) -> Result<&'s Constants, TemplateError> {
        self.scope.constants.ok_or_else(|| TemplateError::new(format!("`{function}` cannot be used here")))
    }

    fn environment(self, name: &str) -> Result<Parsed, TemplateError> {
        match self.constants("env")?.env.get(name) {
            Some(value) => Ok(Parsed::Constant { text: value.clone().into_bytes(), secret: false }),
            None => Err(TemplateError::new(format!("the environment variable `{name}` is not set"))
                .with_hint("set it before the run")),
        }
    }

    fn secret(self, name: &str) -> Result<Parsed, TemplateError> {
        let secrets = &self.constants("secret")?.secrets;
        match secrets.get(name) {
            Some(value) => Ok(Parsed::Constant { text: value.clone().into_bytes(), secret: true }),
            None => {
                let error = TemplateError::new(format!("there is no secret `{name}`"));
                Err(match suggest::closest(name, secrets.keys().map(String::as_str)) {
                    Some(near) => error.with_hint(format!("did you mean `{near}`?")),
                    None => error,
                })
            }
        }
    }

    /// The error for a name that no slot has, or for a known name with other arguments than it takes.
    fn not_a_slot(self, name: &str, text: &str) -> TemplateError {
        let names = || Slot::FORMS.iter().map(|form| form.split('(').next().unwrap_or(form));
        if let Some(index) = names().position(|known| known == name) {
            return TemplateError::new(format!("`${{{text}}}` does not have the arguments of `{name}`"))
                .with_hint(format!("write `${{{}}}`", Slot::FORMS[index]));
        }
        let variables = || self.scope.variables.iter().map(String::as_str);
        let synonym = SYNONYMS.iter().find(|(other, _)| *other == name).map(|(_, ours)| *ours);
        // `${users.name}`: a column of data, as other tools write it.
        let column = text.rsplit_once('.').and_then(|(_, column)| variables().find(|known| *known == column));
        if let Some(column) = column {
            let hint =
                format!("write `${{{column}}}`: a variable has no source in front (columns of data neither)");
            return TemplateError::new(format!("unknown template slot `${{{text}}}`")).with_hint(hint);
        }
        let advice = match synonym.or_else(|| suggest::closest(name, variables().chain(names()))) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let can_be_used = |form: &&str| match *form {
                    "token(name)" => !self.scope.tokens.is_empty(),
                    form => self.scope.constants.is_some() || !form.ends_with("(NAME)"),
                };
                let forms = Slot::FORMS.iter().copied().filter(can_be_used);
                let known: Vec<&str> = variables().chain(forms).collect();
                format!("known: {}", known.join(", "))
            }
        };
        TemplateError::new(format!("unknown template slot `${{{text}}}`"))
            .with_hint(format!("{advice} (write $${{ for a literal ${{)"))
    }
}

fn traceparent(share: &str) -> Result<Slot, TemplateError> {
    let percent = share.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match percent.filter(|percent| (0.0..=100.0).contains(percent)) {
        Some(percent) => {
            Ok(Slot::Traceparent { sampled: (percent / 100.0 * f64::from(u32::MAX)).round() as u32 })
        }
        None => Err(TemplateError::new(format!("`{share}` in `traceparent` is not a share"))
            .with_hint("write the share of requests whose traces are to be recorded, from 0% to 100%")),
    }
}

/// The end of the slot that `text` starts with, after its `${`: the first `}` that belongs to no slot
/// inside of it, and is not in quotes at the start of an argument.
pub fn slot_end(text: &[u8]) -> Option<usize> {
    let (mut depth, mut at, mut begins) = (0_u32, 0, false);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' | b'\'' if begins => at += quoted_len(&text[at..]).map_or(0, |len| len - 1),
            b'$' if text.get(at + 1) == Some(&b'{') => {
                depth += 1;
                at += 1;
            }
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
        begins = matches!(byte, b'(' | b',') || (begins && byte == b' ');
        at += 1;
    }
    None
}

/// Bytes of the quoted text at the start of `text`, with its quotes, if its end is the end of an argument.
fn quoted_len(text: &[u8]) -> Option<usize> {
    let quote = *text.first()?;
    let ends = text.iter().enumerate().skip(1).filter(|&(_, &byte)| byte == quote);
    let behind = |at: usize| text[at + 1..].iter().find(|&&byte| byte != b' ');
    ends.map(|(at, _)| at).find(|&at| matches!(behind(at), None | Some(b',' | b')'))).map(|at| at + 1)
}

/// Cuts at commas that are not in quotes.
fn split_arguments(inner: &str) -> Vec<&str> {
    let (mut arguments, mut rest) = (Vec::new(), inner);
    loop {
        rest = rest.trim();
        let quoted = if rest.starts_with(['"', '\'']) { quoted_len(rest.as_bytes()) } else { None };
        let from = quoted.unwrap_or(0);
        match rest[from..].find(',') {
            Some(comma) => {
                arguments.push(rest[..from + comma].trim());
                rest = &rest[from + comma + 1..];
            }
            None => {
                arguments.push(rest);
                return arguments;
            }
        }
    }
}

/// The text without the quotes around it, if it has both.
fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

fn variable(position: usize) -> Result<Slot, TemplateError> {
    match u16::try_from(position) {
        Ok(index) => Ok(Slot::Variable { index, writing: Writing::AsIs }),
        Err(_) => Err(TemplateError::new("more than 65536 variables")),
    }
}

fn pick(texts: &[&str]) -> Result<Slot, TemplateError> {
    if let Some(text) = texts.iter().find(|text| text.contains("${")) {
        return Err(TemplateError::new(format!("`pick` takes texts without slots, not `{text}`"))
            .with_hint("set a variable to one of them in a step of its own"));
    }
    if texts.iter().any(|text| text.is_empty()) {
        return Err(
            TemplateError::new("a text of `pick` is missing").with_hint("an empty one is written \"\"")
        );
    }
    Ok(Slot::Pick(texts.iter().map(|text| Box::from(unquoted(text).as_bytes())).collect()))
}

fn range(start: &str, end: &str) -> Result<Slot, TemplateError> {
    let number = |text: &str| {
        text.parse::<u64>().map_err(|_| {
            TemplateError::new(format!("`{text}` in `range` is not a whole number from 0 to {}", u64::MAX))
        })
    };
    let (start, end) = (number(start)?, number(end)?);
    if start >= end {
        return Err(TemplateError::new(format!("`range({start},{end})` has no value in its range"))
            .with_hint("the end is excluded: it has to be larger than the start"));
    }
    Ok(Slot::Range { start, count: end - start, width: digits(end) as u8 })
}

fn zipf(count: &str, exponent: &str) -> Result<Slot, TemplateError> {
    let Some(count) = count.parse::<u64>().ok().filter(|count| (1..=LARGEST_ZIPF).contains(count)) else {
        return Err(TemplateError::new(format!(
            "`{count}` in `zipf` is not a whole number from 1 to {LARGEST_ZIPF}"
        )));
    };
    let exact = exponent.split_once('.').is_none_or(|(_, digits)| digits.len() <= 3);
    let thousandths = fraction(exponent, 3).filter(|_| exact).and_then(|number| u32::try_from(number).ok());
    match thousandths.filter(|number| (1..=20_000).contains(number)) {
        Some(thousandths) => Ok(Slot::Zipf(Box::new(Zipf::new(count, thousandths)))),
        None => {
            Err(TemplateError::new(format!("`{exponent}` in `zipf` is not an exponent from 0.001 to 20.000"))
                .with_hint("with 1 the most frequent number is twice as frequent as the next"))
        }
    }
}

fn random_int(low: &str, high: &str) -> Result<Slot, TemplateError> {
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
    Ok(Slot::RandomInt { low, high })
}

fn random_float(low: &str, high: &str, places: Option<&str>) -> Result<Slot, TemplateError> {
    let given = |text: &str| text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let needed = given(low).max(given(high));
    let places = match places {
        None => needed.max(2),
        Some(text) => match text.parse() {
            Ok(places) if (1..=usize::from(PLACES_MAX)).contains(&places) => places,
            _ => {
                return Err(TemplateError::new(format!(
                    "`{text}` in `random_float` is not a number of digits from 1 to {PLACES_MAX}"
                )));
            }
        },
    };
    if needed > places {
        return Err(TemplateError::new(format!(
            "`random_float({low},{high},{places})` has ends with more than {places} digits"
        ))
        .with_hint(format!("write `random_float({low},{high},{needed})`")));
    }
    let scaled = |text| {
        fraction(text, places).ok_or_else(|| {
            TemplateError::new(format!(
                "`{text}` in `random_float` is not a number that has room in 64 bits with {places} digits"
            ))
        })
    };
    let (scaled_low, scaled_high) = (scaled(low)?, scaled(high)?);
    if scaled_low > scaled_high {
        return Err(TemplateError::new(format!("`random_float({low},{high})` has no value in its range"))
            .with_hint(format!("write `random_float({high},{low})`")));
    }
    Ok(Slot::RandomFloat { low: scaled_low, high: scaled_high, digits: places as u8 })
}

/// A decimal fraction times 10 to the power of `places`, exactly.
fn fraction(text: &str, places: usize) -> Option<i64> {
    if places > usize::from(PLACES_MAX) {
        return None;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    if digits.is_empty() || !digits.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{whole}{fraction:0<places$}").parse().ok()
}

fn length(name: &str, text: &str) -> Result<u32, TemplateError> {
    match text.parse::<u32>() {
        Ok(n) if (1..=LONGEST_RANDOM).contains(&n) => Ok(n),
        _ => Err(TemplateError::new(format!(
            "`{name}({text})`: the number of characters must be 1 to {LONGEST_RANDOM}"
        ))),
    }
}
