//! Scripts of Postman, cut into statements: enough of JavaScript to know where one ends.

/// A part of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A statement without a block of its own.
    Statement(String),
    /// The beginning of a block: the text before its `{`.
    Open(String),
    /// The end of a block.
    Close,
}

/// A part, and the line on which it begins, from 1.
pub(super) type Placed = (usize, Part);

/// The thing that a `{` has begun.
enum Brace {
    /// A block; how many parentheses are open around it.
    Block(usize),
    /// An object.
    Object,
}

/// Cuts a script into its parts.
pub(super) fn parts(source: &str) -> Vec<Placed> {
    let mut cutter = Cutter { rest: source, line: 1, ..Cutter::default() };
    while let Some(c) = cutter.next() {
        cutter.take(c);
    }
    cutter.flush();
    cutter.parts
}

#[derive(Default)]
struct Cutter<'s> {
    rest: &'s str,
    line: usize,
    parts: Vec<Placed>,
    /// The statement so far, and the line of its first character.
    text: String,
    begun: usize,
    /// Parentheses, brackets and objects that are open in the statement.
    depth: usize,
    braces: Vec<Brace>,
}

impl Cutter<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    /// Adds to the statement; it begins with no space, and has one where several were.
    fn push(&mut self, c: char) {
        if c == ' ' && (self.text.is_empty() || self.text.ends_with(' ')) {
            return;
        }
        if self.text.is_empty() {
            self.begun = self.line;
        }
        self.text.push(c);
    }

    fn take(&mut self, c: char) {
        match c {
            '"' | '\'' | '`' => self.quoted(c),
            '/' if self.rest.starts_with('/') => self.skip_to("\n", false),
            '/' if self.rest.starts_with('*') => self.skip_to("*/", true),
            '/' if self.is_regex() => self.quoted('/'),
            '(' | '[' => {
                self.depth += 1;
                self.push(c);
            }
            ')' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                self.push(c);
            }
            '{' if self.begins_block() => {
                let head = self.text.trim().to_owned();
                let line = if head.is_empty() { self.line } else { self.begun };
                self.parts.push((line, Part::Open(head)));
                self.text.clear();
                self.braces.push(Brace::Block(std::mem::take(&mut self.depth)));
            }
            '{' => {
                self.depth += 1;
                self.braces.push(Brace::Object);
                self.push(c);
            }
            '}' => match self.braces.pop() {
                Some(Brace::Object) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.push(c);
                }
                Some(Brace::Block(depth)) => {
                    self.flush();
                    self.parts.push((self.line, Part::Close));
                    self.depth = depth;
                }
                None => self.flush(),
            },
            ';' if self.depth == 0 => self.flush(),
            '\n' if self.text.is_empty() => {}
            '\n' if self.depth == 0 && !self.goes_on() => self.flush(),
            '\n' | '\r' | '\t' => self.push(' '),
            c => self.push(c),
        }
    }

    /// A text in quotes, or a regular expression, up to its end.
    fn quoted(&mut self, quote: char) {
        self.push(quote);
        let mut in_class = false;
        while let Some(c) = self.next() {
            self.text.push(c);
            match c {
                '\\' => {
                    if let Some(escaped) = self.next() {
                        self.text.push(escaped);
                    }
                }
                '[' if quote == '/' => in_class = true,
                ']' => in_class = false,
                // An unclosed literal ends with its line, so that the code after it is still seen.
                '\n' if quote != '`' => return,
                c if c == quote && !in_class => return,
                _ => {}
            }
        }
    }

    fn skip_to(&mut self, end: &str, with_end: bool) {
        let length =
            self.rest.find(end).map_or(self.rest.len(), |at| at + if with_end { end.len() } else { 0 });
        self.line += self.rest[..length].matches('\n').count();
        self.rest = &self.rest[length..];
    }

    /// A slash behind a value divides.
    fn is_regex(&self) -> bool {
        self.text.trim_end().chars().next_back().is_none_or(|c| "(,=:[!&|?{};+".contains(c))
    }

    fn begins_block(&self) -> bool {
        let head = self.text.trim();
        let word = |word: &str| head == word || head.ends_with(&format!(" {word}"));
        head.is_empty()
            || head.ends_with([')'])
            || head.ends_with("=>")
            || ["else", "try", "finally", "do"].into_iter().any(word)
    }

    /// Returns `true` if the statement does not end with its line; then the lines up to the next one that has
    /// something are skipped.
    fn goes_on(&mut self) -> bool {
        let next = self.rest.trim_start();
        let goes_on = self.text.trim_end().ends_with(['.', ',', '=', '+', '&', '|', '?', ':'])
            || next.starts_with(['.', '?', '+', '&', '|', ':']);
        if goes_on && !self.text.is_empty() {
            self.line += self.rest[..self.rest.len() - next.len()].matches('\n').count();
            self.rest = next;
        }
        goes_on && !self.text.is_empty()
    }

    fn flush(&mut self) {
        let text = self.text.trim();
        // Brackets alone are left over from a call around a block.
        if !text.trim_matches([')', ',', ']', ' ']).is_empty() {
            self.parts.push((self.begun, Part::Statement(text.to_owned())));
        }
        self.text.clear();
        self.depth = 0;
    }
}

/// The characters of a script that are in no quotes, with their places.
fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut escaped) = (None, false);
    text.char_indices().filter(move |&(_, c)| {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None => return true,
        }
        false
    })
}

/// Cuts at `separator`s that are in no parentheses, braces or quotes.
pub(super) fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, c) in outside_quotes(text) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            c if c == separator && depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// A call: the text between the parentheses that `text` begins with, and the text behind them.
pub(super) fn arguments(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('(')?;
    let mut depth = 0_usize;
    for (at, c) in outside_quotes(inside) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => return Some((inside[..at].trim(), &inside[at + 1..])),
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The value of a text in quotes; `None` for anything else, and for templates with slots.
pub(super) fn unquoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| ['"', '\'', '`'].contains(c))?;
    let inside = text.get(1..)?.strip_suffix(quote)?;
    if quote == '`' && inside.contains("${") {
        return None;
    }
    let mut value = String::with_capacity(inside.len());
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    value.push(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)?);
                }
                other => value.push(other),
            },
            c if c == quote => return None,
            c => value.push(c),
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_cut_into_statements_with_their_lines() {
        let source = "// a comment; with a {\nvar a = 1; let b = {x: [1, 2]}\n\
                      pm.test('it; is {', function () {\n  pm.expect(a)\n    .to.eql(/[/;]\\//);\n});\n\
                      /* two\nlines */ if (a) { b() } else c()";
        let shown: Vec<String> = parts(source)
            .into_iter()
            .map(|(line, part)| match part {
                Part::Statement(text) => format!("{line}: {text}"),
                Part::Open(head) => format!("{line}: {head} {{"),
                Part::Close => format!("{line}: }}"),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "2: var a = 1",
                "2: let b = {x: [1, 2]}",
                "3: pm.test('it; is {', function () {",
                "4: pm.expect(a) .to.eql(/[/;]\\//)",
                "6: }",
                "8: if (a) {",
                "8: b()",
                "8: }",
                "8: else c()",
            ]
        );
    }

    #[test]
    fn texts_that_end_anywhere_are_cut_all_the_same() {
        let source = "pm.test(\"a\", () => {\n`b\\`${c}`; d['e'](/f/, {g: [h]})\n}) })}]; \"";
        for (end, _) in source.char_indices() {
            parts(&source[..end]);
            parts(&source[end..]);
        }
    }

    #[test]
    fn calls_and_lists_are_taken_apart() {
        assert_eq!(arguments("(a, \")\", f(b)).to.eql(1)"), Some(("a, \")\", f(b)", ".to.eql(1)")));
        assert_eq!(arguments("(a"), None);
        assert_eq!(split("a, 'b,c', [d, e]", ','), ["a", "'b,c'", "[d, e]"]);
        assert_eq!(unquoted(r#""a\"b\u00e9""#).as_deref(), Some("a\"bé"));
        assert_eq!(unquoted("'a' + 'b'"), None);
        assert_eq!(unquoted("`a${b}`"), None);
        assert_eq!(unquoted("'"), None);
    }
}
