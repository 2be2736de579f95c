//! The text of a condition.

use plimsoll_core::suggest;

use super::{Node, Orders, Test};
use crate::pattern::Pattern;
use crate::{Scope, Template, TemplateError};

/// Parentheses and `not`s within each other: parsing and evaluation recurse.
const DEEPEST: u32 = 64;

const WORD_OPERATORS: [&str; 3] = ["contains", "starts_with", "ends_with"];
const OTHER_WORDS: [&str; 4] = ["and", "or", "not", "exists"];
/// The longer ones first: a text starts with the first that fits.
const SIGN_OPERATORS: [&str; 8] = ["==", "!=", "<=", ">=", "=~", "!~", "<", ">"];

const OPERATORS_HINT: &str = "the operators are == != < <= > >= =~ !~ contains starts_with ends_with; a text with spaces or \
     parentheses needs quotes";
const QUOTES_HINT: &str = "a text with spaces, parentheses or one of =!<> needs quotes";

/// Parses a whole condition.
pub(super) fn parse(text: &str, scope: &Scope<'_>) -> Result<Node, TemplateError> {
    let tokens = tokens(text)?;
    let end = text.chars().count() + 1;
    let mut parser = Parser { tokens: &tokens, end, scope };
    let node = parser.any(0)?;
    match parser.tokens.first() {
        None => Ok(node),
        Some(&(place, token)) => {
            let error = TemplateError::new(format!("{} is not expected here", token.shown()));
            let hint = match token {
                Token::Close => "nothing to close",
                _ => "write `and` or `or` between conditions, and quotes around a text with spaces",
            };
            Err(error.with_hint(hint).at(format_args!("character {place}")))
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'t> {
    Open,
    Close,
    /// One of [`SIGN_OPERATORS`].
    Sign(&'t str),
    Word(&'t str),
    Quoted(&'t str),
}

impl Token<'_> {
    fn shown(&self) -> String {
        match self {
            Self::Open => "`(`".to_owned(),
            Self::Close => "`)`".to_owned(),
            Self::Sign(text) | Self::Word(text) => format!("`{}`", text.escape_debug()),
            Self::Quoted(text) => format!("the text `{}`", text.escape_debug()),
        }
    }
}

/// Each token with the place of its first character, from 1.
fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, TemplateError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let place = text[..text.len() - rest.len()].chars().count() + 1;
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        let sign = SIGN_OPERATORS.iter().find(|sign| rest.starts_with(**sign));
        let (token, length) = match (first, sign) {
            ('(', _) => (Token::Open, 1),
            (')', _) => (Token::Close, 1),
            ('"' | '\'', _) => match rest[1..].find(first) {
                Some(end) => (Token::Quoted(&rest[1..=end]), end + 2),
                None => {
                    let error = TemplateError::new(format!("{first} without a second one"));
                    return Err(error.at(format_args!("character {place}")));
                }
            },
            (_, Some(sign)) => (Token::Sign(&rest[..sign.len()]), sign.len()),
            ('=' | '!', None) => return Err(no_operator(first, place)),
            _ => {
                let length = word_len(rest);
                (Token::Word(&rest[..length]), length)
            }
        };
        tokens.push((place, token));
        rest = &rest[length..];
    }
}

fn no_operator(sign: char, place: usize) -> TemplateError {
    let hint = if sign == '=' {
        format!("did you mean `==`? ({QUOTES_HINT})")
    } else {
        format!("did you mean `not`, or `!=`? ({QUOTES_HINT})")
    };
    let error = TemplateError::new(format!("`{sign}` is not an operator"));
    error.with_hint(hint).at(format_args!("character {place}"))
}

/// Bytes of the word that `text` starts with. Text between the braces of a slot belongs to it.
fn word_len(text: &str) -> usize {
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        if rest.starts_with("$${") {
            at += 3;
        } else if rest.starts_with("${") {
            // A slot that is not closed is the template's error.
            at += rest.find('}').map_or(rest.len(), |end| end + 1);
        } else if next.is_whitespace() || "()\"'=!<>".contains(next) {
            break;
        } else {
            at += next.len_utf8();
        }
    }
    at
}

struct Parser<'p> {
    tokens: &'p [(usize, Token<'p>)],
    /// The place behind the last character.
    end: usize,
    scope: &'p Scope<'p>,
}

impl<'p> Parser<'p> {
    fn any(&mut self, depth: u32) -> Result<Node, TemplateError> {
        let mut nodes = vec![self.all(depth)?];
        while self.takes(Token::Word("or")) {
            nodes.push(self.all(depth)?);
        }
        Ok(single_or(nodes, Node::Any))
    }

    fn all(&mut self, depth: u32) -> Result<Node, TemplateError> {
        let mut nodes = vec![self.each(depth)?];
        while self.takes(Token::Word("and")) {
            nodes.push(self.each(depth)?);
        }
        Ok(single_or(nodes, Node::All))
    }

    fn each(&mut self, depth: u32) -> Result<Node, TemplateError> {
        let place = self.place();
        if depth > DEEPEST {
            let error = TemplateError::new(format!("more than {DEEPEST} levels within each other"));
            return Err(error.at(format_args!("character {place}")));
        }
        if self.takes(Token::Word("not")) {
            Ok(Node::Not(Box::new(self.each(depth + 1)?)))
        } else if self.takes(Token::Open) {
            let node = self.any(depth + 1)?;
            if self.takes(Token::Close) {
                return Ok(node);
            }
            let error = TemplateError::new(format!("the `(` of character {place} is not closed"));
            Err(error.with_hint(QUOTES_HINT).at(format_args!("character {}", self.place())))
        } else if self.takes(Token::Word("exists")) {
            self.exists()
        } else {
            self.comparison()
        }
    }

    fn exists(&mut self) -> Result<Node, TemplateError> {
        let place = self.place();
        let error = |error: TemplateError| Err(error.at(format_args!("character {place}")));
        let Some((_, Token::Word(word))) = self.advance() else {
            return error(TemplateError::new("the name of a variable is missing behind `exists`"));
        };
        let name = word.strip_prefix("${").and_then(|word| word.strip_suffix('}')).unwrap_or(word).trim();
        let names = || self.scope.variables.iter().map(String::as_str);
        match names().position(|known| known == name).map(u16::try_from) {
            Some(Ok(variable)) => Ok(Node::Exists(variable)),
            Some(Err(_)) => error(TemplateError::new("more than 65536 variables")),
            None => {
                let unknown = TemplateError::new(format!("there is no variable `{}`", name.escape_debug()));
                let known: Vec<&str> = names().collect();
                error(match (suggest::closest(name, names()), known.as_slice()) {
                    (Some(near), _) => unknown.with_hint(format!("did you mean `{near}`?")),
                    (None, []) => unknown.with_hint("there are no variables here"),
                    (None, known) => unknown.with_hint(format!("known: {}", known.join(", "))),
                })
            }
        }
    }

    fn comparison(&mut self) -> Result<Node, TemplateError> {
        let left = self.text("a text or a condition")?;
        let left = self.template(left)?;
        let place = self.place();
        let operator = match self.advance() {
            Some((_, Token::Sign(operator))) => operator,
            Some((_, Token::Word(word))) if WORD_OPERATORS.contains(&word) => word,
            found => {
                let message = match found {
                    Some((_, token)) => format!("{} is not an operator", token.shown()),
                    None => "an operator is missing".to_owned(),
                };
                let error = TemplateError::new(message).with_hint(OPERATORS_HINT);
                return Err(error.at(format_args!("character {place}")));
            }
        };
        let right = self.text("a text")?;
        let template = self.template(right)?;
        let orders = |less, equal, greater| Orders { less, equal, greater };
        let test = match operator {
            "==" => Test::Order(orders(false, true, false), template),
            "!=" => Test::Order(orders(true, false, true), template),
            "<" => Test::Order(orders(true, false, false), template),
            "<=" => Test::Order(orders(true, true, false), template),
            ">" => Test::Order(orders(false, false, true), template),
            ">=" => Test::Order(orders(false, true, true), template),
            "contains" => Test::Contains(template),
            "starts_with" => Test::Starts(template),
            "ends_with" => Test::Ends(template),
            "=~" => Test::Matches(pattern(&template, right.0, self.scope)?),
            _ => Test::MatchesNot(pattern(&template, right.0, self.scope)?),
        };
        Ok(Node::Compare(left, test))
    }

    /// The next text, with its place.
    fn text(&mut self, what: &str) -> Result<(usize, &'p str), TemplateError> {
        let place = self.place();
        let error = match self.advance() {
            Some((_, Token::Quoted(text))) => return Ok((place, text)),
            Some((_, Token::Word(word))) if !is_reserved(word) => return Ok((place, word)),
            Some((_, token)) => {
                let error = TemplateError::new(format!("expected {what}, found {}", token.shown()));
                error.with_hint("an empty text, and one that is a word of this language, needs quotes")
            }
            None => TemplateError::new(format!("{what} is missing"))
                .with_hint("write for example `${name} == value`"),
        };
        Err(error.at(format_args!("character {place}")))
    }

    fn template(&self, (place, text): (usize, &str)) -> Result<Template, TemplateError> {
        Template::parse_in(text.as_bytes(), self.scope)
            .map_err(|error| error.at(format_args!("character {place}")))
    }

    fn place(&self) -> usize {
        self.tokens.first().map_or(self.end, |(place, _)| *place)
    }

    fn advance(&mut self) -> Option<(usize, Token<'p>)> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*first)
    }

    fn takes(&mut self, token: Token<'_>) -> bool {
        let is_next = self.tokens.first().is_some_and(|(_, next)| *next == token);
        if is_next {
            self.advance();
        }
        is_next
    }
}

fn is_reserved(word: &str) -> bool {
    WORD_OPERATORS.contains(&word) || OTHER_WORDS.contains(&word)
}

fn single_or(mut nodes: Vec<Node>, make: fn(Vec<Node>) -> Node) -> Node {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        last => {
            nodes.extend(last);
            make(nodes)
        }
    }
}

fn pattern(template: &Template, place: usize, scope: &Scope<'_>) -> Result<Pattern, TemplateError> {
    let error = if !template.is_static() {
        TemplateError::new("a regular expression has no slots")
            .with_hint("it is compiled before the run; compare with `==` or `contains`")
    } else {
        match Pattern::parse(&String::from_utf8_lossy(template.literals()), scope) {
            Ok(pattern) => return Ok(pattern),
            Err(error) => error,
        }
    };
    Err(error.at(format_args!("character {place}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> (String, String) {
        let names = ["role".to_owned(), "n".to_owned()];
        let error = parse(text, &Scope::new(&names)).expect_err(text);
        (error.message().to_owned(), error.hint().unwrap_or_default().to_owned())
    }

    #[test]
    fn errors_say_where_and_what_to_do() {
        for (text, message, hint) in [
            ("", "character 1: a text or a condition is missing", "write for example"),
            ("${role} = admin", "character 9: `=` is not an operator", "did you mean `==`?"),
            ("!${role}", "character 1: `!` is not an operator", "did you mean `not`"),
            ("${role}", "character 8: an operator is missing", "the operators are =="),
            ("${role} is x", "character 9: `is` is not an operator", "the operators are =="),
            ("${role} ==", "character 11: a text is missing", ""),
            ("${role} == and", "character 12: expected a text, found `and`", "needs quotes"),
            ("${role} == a b", "character 14: `b` is not expected here", "`and` or `or`"),
            ("${role} == abc==", "character 15: `==` is not expected here", ""),
            ("(${n} < 1", "character 10: the `(` of character 1 is not closed", ""),
            ("${n} < 1)", "character 9: `)` is not expected here", "nothing to close"),
            ("${role} == \"a", "character 12: \" without a second one", ""),
            ("exists", "character 7: the name of a variable is missing", ""),
            ("exists rolle", "character 8: there is no variable `rolle`", "did you mean `role`?"),
            ("exists zzzzzzz", "character 8: there is no variable `zzzzzzz`", "known: role, n"),
            ("ü == ${rolle}", "character 6: unknown template slot `${rolle}`", "did you mean `role`?"),
            ("${n} == ${uuid", "character 9: `${` without a closing `}`", ""),
            ("${n} =~ 'a('", "character 9: the regular expression `a(`: unclosed group", ""),
            ("${n} =~ (a|b)", "character 9: expected a text, found `(`", "needs quotes"),
            ("${n} =~ ^${role}", "character 9: a regular expression has no slots", "before the run"),
        ] {
            let (found, advice) = error(text);
            assert!(found.starts_with(message), "{text}: {found}");
            assert!(advice.contains(hint), "{text}: {advice}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |open: &str, levels: usize, close: &str| {
            parse(&format!("{}1 == 1{}", open.repeat(levels), close.repeat(levels)), &Scope::default())
        };
        assert!(nested("(", 64, ")").is_ok() && nested("not ", 64, "").is_ok());
        for error in [nested("(", 65, ")"), nested("not ", 100_000, "")] {
            assert!(error.unwrap_err().message().ends_with("more than 64 levels within each other"));
        }
    }
}
