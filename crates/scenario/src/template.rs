//! Text with slots.

use std::fmt;
use std::ops::Range;

use plimsoll_core::Random;

use crate::header::is_value;
use crate::slot::{Parsed, Parser, slot_end};
use crate::{Context, Scope, SharedText, Slot, TemplateError, Writing};

/// Bytes with slots, compiled once.
///
/// `${name}` or `${name(arguments)}` is a slot (see [`Slot`]), `$${` a literal `${`; any other `$` is itself.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Template {
    /// All literal bytes, one piece after the other.
    literals: Vec<u8>,
    pieces: Vec<Piece>,
    /// `true` if `literals`, here or in the argument of a function, contain the text of a secret.
    has_secret: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// A range of `literals`; neighbouring literals are merged, so a static template has at most one piece.
    Literal(Range<usize>),
    Slot(Slot),
}

impl Template {
    /// Compiles `text`, without variables.
    pub fn parse(text: &[u8]) -> Result<Self, TemplateError> {
        Self::parse_in(text, &Scope::default())
    }

    /// Compiles `text`, which may use the names in `scope`.
    pub fn parse_in(text: &[u8], scope: &Scope<'_>) -> Result<Self, TemplateError> {
        Self::parse_inside(text, Parser::new(scope))
    }

    /// Compiles a request target, which may use the names in `scope`: values that are unknown then are
    /// rendered [so that they fit](Writing::Encoded).
    pub(crate) fn parse_target(text: &[u8], scope: &Scope<'_>) -> Result<Self, TemplateError> {
        let encode = |template: &mut Self, mut parsed: Parsed| {
            let writing = if template.pieces.is_empty() { Writing::Path } else { Writing::Encoded };
            parsed.write_as(writing);
            template.push_parsed(parsed);
        };
        let mut target = Self::parse_with(text, Parser::new(scope), encode)?;
        if let [Piece::Slot(Slot::Variable { writing, .. }), Piece::Literal(next), ..] = &mut *target.pieces
            && target.literals[next.clone()].starts_with(b"/")
        {
            *writing = Writing::Base;
        }
        Ok(target)
    }

    /// Compiles the value of a header, which may use the names in `scope`: values that are unknown then are
    /// rendered [as one line](Writing::Line).
    pub(crate) fn parse_line(text: &[u8], scope: &Scope<'_>) -> Result<Self, TemplateError> {
        Self::parse_with(text, Parser::new(scope), |template, mut parsed| {
            if let Parsed::Slot(Slot::Variable { .. } | Slot::Call(_)) = parsed {
                parsed.write_as(Writing::Line);
            }
            template.push_parsed(parsed);
        })
    }

    /// The variable that a request target begins with: its value may be a whole URL.
    pub(crate) fn leading_variable(&self) -> Option<u16> {
        match self.pieces.first() {
            Some(Piece::Slot(Slot::Variable { index, writing })) if writing.is_start() => Some(*index),
            _ => None,
        }
    }

    /// The argument of a function, or a whole text.
    pub(crate) fn parse_inside(text: &[u8], parser: Parser<'_>) -> Result<Self, TemplateError> {
        Self::parse_with(text, parser, Self::push_parsed)
    }

    fn parse_with(
        text: &[u8],
        parser: Parser<'_>,
        mut push: impl FnMut(&mut Self, Parsed),
    ) -> Result<Self, TemplateError> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(at) = rest.iter().position(|&byte| byte == b'$') {
            let (before, from) = rest.split_at(at);
            template.push_literal(before);
            rest = if let Some(after) = from.strip_prefix(b"$${") {
                template.push_literal(b"${");
                after
            } else if let Some(after) = from.strip_prefix(b"${") {
                let (parsed, after) = parse_slot(after, parser)?;
                push(&mut template, parsed);
                after
            } else {
                template.push_literal(b"$");
                &from[1..]
            };
        }
        template.push_literal(rest);
        Ok(template)
    }

    /// A template of this alone.
    pub(crate) fn of(parsed: Parsed) -> Self {
        let mut template = Self::default();
        template.push_parsed(parsed);
        template
    }

    fn push_parsed(&mut self, parsed: Parsed) {
        match parsed {
            Parsed::Constant { text, secret } => {
                self.push_literal(&text);
                self.has_secret |= secret;
            }
            Parsed::Slot(slot) => self.push_slot(slot),
        }
    }

    /// Appends a slot.
    pub(crate) fn push_slot(&mut self, slot: Slot) {
        self.has_secret |= slot.has_secret();
        self.pieces.push(Piece::Slot(slot));
    }

    /// A template that is `bytes`, even if they look like slots.
    pub fn literal(bytes: &[u8]) -> Self {
        let mut template = Self::default();
        template.push_literal(bytes);
        template
    }

    /// A template that is the value of a shared text.
    pub fn shared(text: &SharedText) -> Self {
        let mut template = Self::default();
        template.push_slot(Slot::Shared(text.clone()));
        template
    }

    /// `text`, written so that [`parse`](Self::parse) gives it back as it is.
    pub fn escape(text: &str) -> String {
        text.replace("${", "$${")
    }

    /// Escapes the bytes of a file, so that [`parse`](Self::parse) gives them back as they are.
    pub fn escape_bytes(bytes: &[u8]) -> Vec<u8> {
        let mut escaped = Vec::with_capacity(bytes.len());
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == b'$' && bytes.get(at + 1) == Some(&b'{') {
                escaped.push(b'$');
            }
            escaped.push(byte);
        }
        escaped
    }

    /// Appends bytes that are always the same.
    pub fn push_literal(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let start = self.literals.len();
        self.literals.extend_from_slice(bytes);
        match self.pieces.last_mut() {
            Some(Piece::Literal(range)) => range.end = self.literals.len(),
            _ => self.pieces.push(Piece::Literal(start..self.literals.len())),
        }
    }

    /// States whether there is a secret among its literals.
    pub(crate) fn set_secret(&mut self, has_secret: bool) {
        self.has_secret = has_secret;
    }

    /// Appends another template.
    pub fn push(&mut self, other: &Self) {
        for piece in &other.pieces {
            match piece {
                Piece::Literal(range) => self.push_literal(&other.literals[range.clone()]),
                Piece::Slot(slot) => self.pieces.push(Piece::Slot(slot.clone())),
            }
        }
        self.has_secret |= other.has_secret;
    }

    /// Returns `true` if every rendering is empty, for all variables.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns `true` if every rendering starts with `/`, as a request target has to.
    pub(crate) fn starts_with_slash(&self) -> bool {
        match self.pieces.first() {
            Some(Piece::Literal(range)) => self.literals[range.clone()].starts_with(b"/"),
            Some(Piece::Slot(slot)) => slot.is_path(),
            None => false,
        }
    }

    /// The bytes outside of slots, joined.
    pub fn literals(&self) -> &[u8] {
        &self.literals
    }

    /// The slots, in order.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Slot(slot) => Some(slot),
        })
    }

    /// The positions of the variables that it reads, in order, also those within functions.
    pub fn variables(&self) -> Vec<u16> {
        let mut variables = Vec::new();
        self.slots().for_each(|slot| slot.add_variables(&mut variables));
        variables
    }

    /// The variable whose value, as it is, every rendering is.
    pub(crate) fn sole_variable(&self) -> Option<u16> {
        match self.pieces[..] {
            [Piece::Slot(Slot::Variable { index, writing: Writing::AsIs })] => Some(index),
            _ => None,
        }
    }

    /// Returns about as many bytes as values of variables with these lengths, in bytes, take in a rendering.
    pub(crate) fn len_of_variables(&self, len_of: &dyn Fn(u16) -> usize) -> usize {
        self.slots().fold(0, |len, slot| len.saturating_add(slot.len_of_variables(len_of)))
    }

    /// Returns `true` if all renderings are the same: [`literals`](Self::literals).
    pub fn is_static(&self) -> bool {
        self.slots().next().is_none()
    }

    /// Returns `true` if a slot reads the time of the [`Context`].
    pub fn needs_clock(&self) -> bool {
        self.slots().any(Slot::needs_clock)
    }

    /// Returns `true` if a slot reads the variables of the [`Context`].
    pub fn uses_variables(&self) -> bool {
        self.slots().any(Slot::is_variable)
    }

    /// Returns `true` if the template contains a secret. Its [literals](Self::literals) must not be shown to
    /// users then. The values of its variables are not known here.
    pub fn has_secret(&self) -> bool {
        self.has_secret
    }

    /// Returns `true` if a slot reads the cookies of the [`Context`].
    pub(crate) fn uses_cookies(&self) -> bool {
        self.slots().any(|slot| matches!(slot, Slot::Cookies(_)))
    }

    /// A byte outside of slots that a header's value may not have
    /// ([`header::is_value`](crate::header::is_value)); without one, every rendering is fit for a header, if
    /// the values of its variables are.
    pub fn unfit_byte(&self) -> Option<u8> {
        let own = self.literals.iter().copied().find(|&byte| !is_value(&[byte]));
        own.or_else(|| self.slots().find_map(Slot::unfit_byte))
    }

    /// Returns `true` if a rendering is the same as long as the variables are.
    pub(crate) fn depends_on_variables_alone(&self) -> bool {
        self.slots().all(Slot::depends_on_variables_alone)
    }

    /// Returns the number of random numbers that a rendering takes, which is always the same.
    pub(crate) fn draws(&self) -> u32 {
        self.slots().map(Slot::draws).sum()
    }

    /// Bytes of every rendering, if they are always as many.
    pub fn fixed_len(&self) -> Option<usize> {
        self.slots().try_fold(self.literals.len(), |len, slot| Some(len + slot.fixed_len()?))
    }

    /// Most bytes that a rendering can have, without those of variables.
    pub fn longest(&self) -> usize {
        self.literals.len() + self.slots().map(Slot::longest).sum::<usize>()
    }

    /// Appends one rendering. Allocates only when `out` has to grow.
    pub fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Literal(range) => out.extend_from_slice(&self.literals[range.clone()]),
                Piece::Slot(slot) => slot.render(context, random, out),
            }
        }
    }
}

/// Without the bytes if there is a secret among them.
impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_secret {
            return f.write_str("Template(<secret>)");
        }
        let mut list = f.debug_list();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(range) => {
                    list.entry(&self.literals[range.clone()].escape_ascii().to_string());
                }
                Piece::Slot(slot) => {
                    list.entry(slot);
                }
            }
        }
        list.finish()
    }
}

/// Parses up to the closing brace; `text` starts behind `${`.
fn parse_slot<'a>(text: &'a [u8], parser: Parser<'_>) -> Result<(Parsed, &'a [u8]), TemplateError> {
    let Some(end) = slot_end(text) else {
        return Err(TemplateError::new("`${` without a closing `}`").with_hint("write $${ for a literal ${"));
    };
    let Ok(slot) = std::str::from_utf8(&text[..end]) else {
        return Err(TemplateError::new("the text between `${` and `}` is not UTF-8"));
    };
    Ok((parser.slot(slot)?, &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rendered(text: &str) -> String {
        let mut out = Vec::new();
        let context =
            Context { index: 7, worker: 1, unix_ns: 5_000_000_000, variables: &[], ..Context::default() };
        Template::parse(text.as_bytes()).unwrap().render(&context, &mut Random::new(0, 0), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn slots_literals_and_escapes() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("${sequence}", "7"),
            ("a${sequence}b${worker}${timestamp_s}", "a7b15"),
            ("$${sequence}", "${sequence}"),
            ("$$${sequence}", "$${sequence}"),
            ("cost: 5$ $5 $$ $", "cost: 5$ $5 $$ $"),
            ("{\"id\":${sequence}}", "{\"id\":7}"),
        ] {
            assert_eq!(rendered(text), expected, "{text}");
        }
    }

    #[test]
    fn a_static_template_is_one_piece_of_known_length() {
        let template = Template::parse(b"a$b$${c").unwrap();
        assert!(template.is_static());
        assert_eq!(template.pieces.len(), 1);
        assert_eq!(template.fixed_len(), Some(6));
        assert!(!template.needs_clock());
        assert!(Template::parse(b"${timestamp_ns}").unwrap().needs_clock());
        assert_eq!(Template::parse(b"${uuid}!").unwrap().fixed_len(), Some(37));
        assert_eq!(Template::parse(b"${uuid}${sequence}").unwrap().fixed_len(), None);
    }

    #[test]
    fn variables_take_their_place() {
        let names = ["a".to_owned(), "b".to_owned()];
        let template = Template::parse_in(b"<${b}|${a}|$${b}>", &Scope::new(&names)).unwrap();
        assert!(template.uses_variables() && !template.is_static() && !template.is_empty());
        assert_eq!((template.fixed_len(), template.longest()), (None, 8));
        let variables = [b"one".to_vec(), b"two ${a}".to_vec()];
        let context = Context { variables: &variables, ..Context::default() };
        let mut out = Vec::new();
        template.render(&context, &mut Random::new(0, 0), &mut out);
        assert_eq!(out, b"<two ${a}|one|${b}>");
        assert!(Template::parse(b"${a}").is_err());
        assert!(Template::parse(b"").unwrap().is_empty());
    }

    #[test]
    fn an_open_slot_is_an_error() {
        let error = Template::parse(b"a ${uuid").unwrap_err();
        assert_eq!(error.message(), "`${` without a closing `}`");
        assert_eq!(error.hint(), Some("write $${ for a literal ${"));
        assert!(Template::parse(b"\xff${\xff}").is_err());
    }

    proptest! {
        #[test]
        fn any_text_survives_escape_and_parse(text in "[a${}(),]{0,40}") {
            let template = Template::parse(Template::escape(&text).as_bytes()).unwrap();
            prop_assert!(template.is_static());
            prop_assert_eq!(template.literals(), text.as_bytes());
        }

        #[test]
        fn sequences_are_unique(start in any::<u32>()) {
            let template = Template::parse(b"id-${sequence}").unwrap();
            let mut seen = std::collections::BTreeSet::new();
            for index in 0..100 {
                let context = Context { index: u64::from(start) + index, ..Context::default() };
                let mut out = Vec::new();
                template.render(&context, &mut Random::new(0, 0), &mut out);
                prop_assert!(seen.insert(out));
            }
        }

        #[test]
        fn any_bytes_parse_or_fail_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(template) = Template::parse(&bytes) {
                let mut out = Vec::new();
                template.render(&Context::default(), &mut Random::new(0, 0), &mut out);
                prop_assert!(out.len() <= template.longest());
            }
        }
    }
}
