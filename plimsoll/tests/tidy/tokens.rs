//! Rust source as tokens, without comments and without the contents of literals: so that a rule about code
//! does not stumble over a sentence about it.

/// An identifier, a literal (as `"`) or one punctuation character, except that `::` is one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// From 1.
    pub(crate) line: usize,
}

/// Splits `source`, which should be Rust that compiles: other text is split somehow.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < source.len() {
        let rest = &source[at..];
        let (length, is_code) = piece(rest);
        if is_code {
            let text = if is_literal(rest) { "\"" } else { &rest[..length] };
            found.push(Token { text, line });
        }
        line += rest[..length].matches('\n').count();
        at += length;
    }
    found
}

/// Length of the piece at the front of `rest`, at least one character, and whether it is code.
fn piece(rest: &str) -> (usize, bool) {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    if rest.starts_with(char::is_whitespace) {
        (first, false)
    } else if rest.starts_with("//") {
        (rest.find('\n').unwrap_or(rest.len()), false)
    } else if rest.starts_with("/*") {
        (block_comment(rest), false)
    } else if let Some(length) = raw_string(rest).or_else(|| quoted(rest)) {
        (length, true)
    } else if rest.starts_with("::") {
        (2, true)
    } else if rest.starts_with(is_word) {
        (rest.find(|c| !is_word(c)).unwrap_or(rest.len()), true)
    } else {
        (first, true)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_literal(rest: &str) -> bool {
    raw_string(rest).or_else(|| quoted(rest)).is_some()
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#`, with `b` or `c` before.
fn raw_string(rest: &str) -> Option<usize> {
    let body =
        rest.strip_prefix("br").or_else(|| rest.strip_prefix("cr")).or_else(|| rest.strip_prefix('r'))?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let text = body[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let before = rest.len() - text.len();
    Some(text.find(&end).map_or(rest.len(), |found| before + found + end.len()))
}

/// `"…"` and `'c'`, with `b` or `c` before; a lifetime is not a literal.
fn quoted(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix(['b', 'c']).filter(|body| body.starts_with(['"', '\''])).unwrap_or(rest);
    let mut chars = body.char_indices();
    let (_, quote) = chars.next().filter(|&(_, c)| c == '"' || c == '\'')?;
    if quote == '\'' {
        let mut ahead = body.chars().skip(1);
        let is_char = ahead.next() == Some('\\') || ahead.next() == Some('\'');
        if !is_char {
            return None;
        }
    }
    let prefix = rest.len() - body.len();
    let mut escaped = false;
    for (at, c) in chars {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(prefix + at + 1),
            _ => {}
        }
    }
    Some(rest.len())
}

fn texts(source: &str) -> Vec<&str> {
    tokens(source).into_iter().map(|token| token.text).collect()
}

#[test]
fn comments_and_insides_of_literals_are_no_tokens() {
    assert_eq!(texts("a::b // c::d\n /* e /* f */ g */ h"), ["a", "::", "b", "h"]);
    assert_eq!(texts(r#"x("std::net \" y", b"z")"#), ["x", "(", "\"", ",", "\"", ")"]);
    assert_eq!(texts("r#\"quote \" inside\"# r\"\\\" end"), ["\"", "\"", "end"]);
    assert_eq!(texts("<'a> 'b' '\\'' b'\"' radius"), ["<", "'", "a", ">", "\"", "\"", "\"", "radius"]);
}

#[test]
fn lines_are_counted_through_everything() {
    let source = "one\n/* \n */ two\n\"a\nb\" three";
    let lines: Vec<usize> = tokens(source).into_iter().map(|token| token.line).collect();
    assert_eq!(lines, [1, 3, 4, 5]);
}
