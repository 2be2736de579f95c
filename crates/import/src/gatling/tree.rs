//! A simulation of any language as a tree of calls: the part of Java, Scala and JavaScript that simulations
//! have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Deepest nesting of expressions that is looked at; a chain of calls is one level.
pub(super) const DEEPEST: usize = 100;

/// A place in a simulation: bytes from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// An expression and its place.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) span: Span,
    pub(super) kind: Kind,
}

/// A kind of expression.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    String(String),
    /// Digits, perhaps with a point or an exponent, and a sign.
    Number(String),
    Boolean(bool),
    Chain(Chain),
    /// Terms that `+` joins, or the parts of an interpolated text.
    Sum(Arc<[Expression]>),
    /// A product of two numbers.
    Product(Arc<(Expression, Expression)>),
    /// A list that is written out.
    List(Arc<[Expression]>),
    /// An object of JavaScript.
    Pairs(Arc<[(Expression, Expression)]>),
    /// `a -> b` of Scala.
    Pair(Arc<(Expression, Expression)>),
    Lambda(Arc<Function>),
    /// Anything else.
    Other,
}

/// Calls and members behind something: `http("x").get("/")`.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub(super) head: Head,
    pub(super) links: Vec<Link>,
}

/// The beginning of a chain.
#[derive(Clone, Debug)]
pub(super) enum Head {
    Name(String),
    Value(Arc<Expression>),
}

/// A member, or a call of one.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) span: Span,
    /// Empty where the thing itself is called: `http("x")`.
    pub(super) name: String,
    /// `None` for a member that is not called.
    pub(super) arguments: Option<Arc<[Expression]>>,
}

/// A function of any form.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) parameters: Vec<String>,
    pub(super) body: Vec<Statement>,
}

/// A statement and its place.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) span: Span,
    pub(super) kind: StatementKind,
}

/// A kind of statement.
#[derive(Clone, Debug)]
pub(super) enum StatementKind {
    /// A name for a value, or a function; and the class or object that it is in.
    Define(String, Expression),
    Expression(Expression),
    Return(Expression),
    /// Statements of a class or an object of this name.
    Within(String, Vec<Statement>),
    /// Anything else that is carried out.
    Other,
}

impl Expression {
    /// A chain of a name alone.
    pub(super) fn name(name: &str, span: Span) -> Self {
        Self { span, kind: Kind::Chain(Chain { head: Head::Name(name.to_owned()), links: Vec::new() }) }
    }

    /// The expression with more links behind it. Without any, it stays what it is.
    pub(super) fn followed(self, links: &[Link]) -> Self {
        let Some(last) = links.last() else { return self };
        let span = Span { start: self.span.start.min(last.span.start), end: last.span.end };
        let kind = match self.kind {
            Kind::Chain(mut chain) => {
                chain.links.extend_from_slice(links);
                Kind::Chain(chain)
            }
            _ => Kind::Chain(Chain { head: Head::Value(Arc::new(self)), links: links.to_vec() }),
        };
        Self { span, kind }
    }

    /// The chain, and the name that it begins with.
    pub(super) fn chain(&self) -> Option<(&str, &[Link])> {
        match &self.kind {
            Kind::Chain(Chain { head: Head::Name(name), links }) => Some((name, links)),
            _ => None,
        }
    }

    /// Returns the expression with these values in the places of names. `size` counts what was looked at.
    pub(super) fn with(&self, values: &BTreeMap<String, Expression>, size: &mut usize) -> Self {
        *size += 1;
        let all = |items: &[Expression], size: &mut usize| -> Arc<[Expression]> {
            items.iter().map(|item| item.with(values, size)).collect()
        };
        let kind = match &self.kind {
            Kind::Chain(chain) => {
                let links: Vec<Link> = chain
                    .links
                    .iter()
                    .map(|link| {
                        *size += 1;
                        let arguments = link.arguments.as_ref().map(|arguments| all(arguments, size));
                        Link { span: link.span, name: link.name.clone(), arguments }
                    })
                    .collect();
                let head = match &chain.head {
                    Head::Name(name) => match values.get(name) {
                        Some(value) => return value.clone().followed(&links),
                        None => chain.head.clone(),
                    },
                    Head::Value(value) => Head::Value(Arc::new(value.with(values, size))),
                };
                Kind::Chain(Chain { head, links })
            }
            Kind::Sum(terms) => Kind::Sum(all(terms, size)),
            Kind::List(items) => Kind::List(all(items, size)),
            Kind::Pairs(pairs) => Kind::Pairs(
                pairs.iter().map(|(key, value)| (key.clone(), value.with(values, size))).collect(),
            ),
            Kind::Pair(pair) => Kind::Pair(Arc::new((pair.0.with(values, size), pair.1.with(values, size)))),
            Kind::Product(pair) => {
                Kind::Product(Arc::new((pair.0.with(values, size), pair.1.with(values, size))))
            }
            Kind::Lambda(function) => {
                let body = function
                    .body
                    .iter()
                    .map(|statement| {
                        let kind = match &statement.kind {
                            StatementKind::Define(name, value) => {
                                StatementKind::Define(name.clone(), value.with(values, size))
                            }
                            StatementKind::Expression(value) => {
                                StatementKind::Expression(value.with(values, size))
                            }
                            StatementKind::Return(value) => StatementKind::Return(value.with(values, size)),
                            other => other.clone(),
                        };
                        Statement { span: statement.span, kind }
                    })
                    .collect();
                Kind::Lambda(Arc::new(Function { parameters: function.parameters.clone(), body }))
            }
            other => other.clone(),
        };
        Self { span: self.span, kind }
    }
}

/// A number as it is written, without what languages allow in it besides digits; `None` for other forms.
pub(super) fn number(written: &str) -> Option<String> {
    let digits = written.replace('_', "");
    let digits = digits.trim_end_matches(['l', 'L', 'd', 'D', 'f', 'F']);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (is_plain && digits.starts_with(|c: char| c.is_ascii_digit())).then(|| digits.to_owned())
}

/// A text of Java or Scala without its quotes and escapes: `"a\"b"`, `"""…"""`.
pub(super) fn unquoted(written: &str, is_raw: bool) -> String {
    let (inside, raw) = match written.strip_prefix("\"\"\"").and_then(|rest| rest.strip_suffix("\"\"\"")) {
        Some(inside) => (inside, is_raw),
        None => (written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(written), false),
    };
    if raw { inside.to_owned() } else { unescaped(inside) }
}

/// A text with the characters that its escapes stand for.
pub(super) fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match rest.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('b') => plain.push('\u{8}'),
            Some('f') => plain.push('\u{c}'),
            Some('0') => plain.push('\0'),
            Some('s') => plain.push(' '),
            // A line that goes on.
            Some('\n') | None => {}
            Some('u') => {
                let digits: String = rest.by_ref().skip_while(|c| *c == 'u').take(4).collect();
                let sign = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                plain.push(sign.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => plain.push(other),
        }
    }
    plain
}

/// The text of a text block of Java: without the first line break and the indentation of its lines.
pub(super) fn text_block(inside: &str) -> String {
    let inside = inside.split_once('\n').map_or(inside, |(_, rest)| rest);
    let lines: Vec<&str> = inside.split('\n').collect();
    let last = lines.len().saturating_sub(1);
    let indent = lines
        .iter()
        .enumerate()
        .filter(|(at, line)| *at == last || !line.trim().is_empty())
        .map(|(_, line)| line.len() - line.trim_start_matches([' ', '\t']).len())
        .min()
        .unwrap_or(0);
    let stripped: Vec<&str> =
        lines.iter().map(|line| line.get(indent..).unwrap_or_default().trim_end()).collect();
    unescaped(&stripped.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lose_their_quotes_and_escapes() {
        for (written, is_raw, text) in [
            (r#""a""#, false, "a"),
            (r#""a\"b\\c\n""#, false, "a\"b\\c\n"),
            (r#""\u00e4\uu00e4""#, false, "ää"),
            (r#""""{"a": "\n"}""""#, true, r#"{"a": "\n"}"#),
            (r#""""\t""""#, false, "\t"),
            (r#""""#, false, ""),
        ] {
            assert_eq!(unquoted(written, is_raw), text, "{written}");
        }
    }

    #[test]
    fn text_blocks_lose_their_indentation() {
        assert_eq!(text_block("\n    {\n      \"a\": 1\n    }\n    "), "{\n  \"a\": 1\n}\n");
        assert_eq!(text_block("\n  a\n  b"), "a\nb");
    }

    #[test]
    fn numbers_lose_what_is_no_digit() {
        for (written, digits) in [
            ("1_000L", Some("1000")),
            ("2.5d", Some("2.5")),
            ("0x1F", None),
            ("1e3", None),
            ("7f", Some("7")),
        ] {
            assert_eq!(number(written).as_deref(), digits, "{written}");
        }
    }
}
