//! A command line, cut into words as bash does.

use plimsoll_document::Problems;

use crate::findings::Findings;

/// The words of one command. Quotes are `'…'`, `"…"` and `$'…'`; a backslash at the end of a line joins it
/// with the next one.
///
/// # Errors
/// Features of a shell beyond words: variables, command substitution, pipes.
pub(crate) fn words(text: &str) -> Result<Vec<String>, Problems> {
    let mut shell = Shell { characters: text.trim_end().chars().collect(), next: 0, line: 1, column: 0 };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    while let Some(c) = shell.take() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\n' | '\r' => {
                words.extend(word.take());
                if c == '\n' && !words.is_empty() && shell.rest_has_more() {
                    return Err(shell.fail("a second command begins on the next line", ONE));
                }
            }
            '#' if word.is_none() => {
                while shell.peek().is_some_and(|c| c != '\n') {
                    shell.take();
                }
            }
            '\\' => match shell.take() {
                Some('\n') => {}
                // Files from Windows end their lines with both.
                Some('\r') if shell.peek() == Some('\n') => {
                    shell.take();
                }
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err(shell.fail("a backslash is the last character", "leave it out")),
            },
            '\'' => shell.single(word.get_or_insert_default())?,
            '"' => shell.double(word.get_or_insert_default())?,
            '$' if shell.peek() == Some('\'') => {
                shell.take();
                shell.ansi(word.get_or_insert_default())?;
            }
            '$' if shell.expands() => return Err(shell.fail(EXPANDS, NO_SHELL)),
            '`' => return Err(shell.fail(EXPANDS, NO_SHELL)),
            '|' | ';' | '&' | '<' | '>' | '(' | ')' => {
                let message = format!("`{c}` belongs to the shell");
                return Err(shell.fail(&message, ONE));
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

const EXPANDS: &str = "the shell would replace this by something else";
const NO_SHELL: &str = "write its value, or quote it with '…'";
const ONE: &str = "give one command alone, and quote characters of the shell with '…'";

struct Shell {
    characters: Vec<char>,
    next: usize,
    line: usize,
    column: usize,
}

impl Shell {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.next).copied()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.next += 1;
        if c == '\n' {
            (self.line, self.column) = (self.line + 1, 0);
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn rest_has_more(&self) -> bool {
        self.characters[self.next..].iter().any(|c| !c.is_whitespace())
    }

    /// Returns `true` if the `$` before this position begins an expansion.
    fn expands(&self) -> bool {
        self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || "_{(?!@*#\"".contains(c))
    }

    fn single(&mut self, word: &mut String) -> Result<(), Problems> {
        loop {
            match self.take() {
                Some('\'') => return Ok(()),
                Some(c) => word.push(c),
                None => return Err(self.open()),
            }
        }
    }

    fn double(&mut self, word: &mut String) -> Result<(), Problems> {
        loop {
            match self.take() {
                Some('"') => return Ok(()),
                Some('\\') => match self.take() {
                    Some('\n') => {}
                    Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                    Some(other) => word.extend(['\\', other]),
                    None => return Err(self.open()),
                },
                Some('$') if self.peek() != Some('"') && self.expands() => {
                    return Err(self.fail(EXPANDS, NO_SHELL));
                }
                Some('`') => return Err(self.fail(EXPANDS, NO_SHELL)),
                Some(c) => word.push(c),
                None => return Err(self.open()),
            }
        }
    }

    /// `$'…'`, with the escapes of C.
    fn ansi(&mut self, word: &mut String) -> Result<(), Problems> {
        let mut bytes = Vec::new();
        loop {
            match self.take() {
                Some('\'') => break,
                Some('\\') => self.escape(&mut bytes)?,
                Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                None => return Err(self.open()),
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) => word.push_str(&text),
            Err(_) => {
                let hint = "put the bytes into a file, and name it: --data-binary @file";
                return Err(self.fail("the text is not UTF-8", hint));
            }
        }
        Ok(())
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), Problems> {
        let Some(c) = self.take() else { return Err(self.open()) };
        let simple = match c {
            'n' => b'\n',
            't' => b'\t',
            'r' => b'\r',
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'v' => 11,
            'x' => self.digits(16, 2) as u8,
            '0'..='7' => {
                self.next -= 1;
                self.column = self.column.saturating_sub(1);
                self.digits(8, 3) as u8
            }
            'u' | 'U' => {
                let code = self.digits(16, if c == 'u' { 4 } else { 8 });
                let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            '\\' | '\'' | '"' | '?' => c as u8,
            other => {
                bytes.push(b'\\');
                bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
        };
        bytes.push(simple);
        Ok(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut number = 0_u32;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else { break };
            number = number.wrapping_mul(radix).wrapping_add(digit);
            self.take();
        }
        number
    }

    fn open(&self) -> Problems {
        self.fail("a quote does not end", "close it, or quote the whole command with '…'")
    }

    fn fail(&self, message: &str, hint: &str) -> Problems {
        Findings::fail(&format!("line {}, column {}", self.line, self.column.max(1)), message, hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_cut_as_bash_does() {
        for (text, expected) in [
            ("", vec![]),
            ("curl http://a/ -X  POST\n", vec!["curl", "http://a/", "-X", "POST"]),
            ("curl \\\n  'a b'\"c d\"e\\ f", vec!["curl", "a bc de f"]),
            ("curl \\\r\n x", vec!["curl", "x"]),
            (r#""a\"b\\c\d\$e""#, vec![r#"a"b\c\d$e"#]),
            (r"'it'\''s'", vec!["it's"]),
            (r"$'a\n\tb\'\x41\101\u00e4\\\q'", vec!["a\n\tb'AA\u{e4}\\\\q"]),
            ("'' \"\"", vec!["", ""]),
            ("a$ $5 b", vec![]),
            ("x # y", vec!["x"]),
            ("a#b 5$", vec!["a#b", "5$"]),
        ] {
            match words(text) {
                Ok(cut) => assert_eq!(cut, expected, "{text:?}"),
                Err(problems) => assert!(expected.is_empty(), "{text:?}: {problems}"),
            }
        }
    }

    #[test]
    fn what_only_a_shell_can_do_is_refused() {
        for (text, message) in [
            ("curl 'a", "line 1, column 7: a quote does not end"),
            ("curl\\\n \"$TOKEN\"", "line 2, column 3: the shell would replace this by something else"),
            ("curl $(x)", "line 1, column 6: the shell would replace this by something else"),
            ("curl `x`", "line 1, column 6: the shell would replace this by something else"),
            ("curl a | jq", "line 1, column 8: `|` belongs to the shell"),
            ("curl http://a/?x=1&y=2", "line 1, column 19: `&` belongs to the shell"),
            ("curl a\ncurl b", "line 2, column 1: a second command begins on the next line"),
            ("curl \\", "line 1, column 6: a backslash is the last character"),
            (r"$'\xff'", "line 1, column 7: the text is not UTF-8"),
        ] {
            assert_eq!(words(text).unwrap_err().to_string(), message, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_or_refused(text in any::<String>()) {
            let _ = words(&text);
        }

        #[test]
        fn any_words_survive_single_quotes(list in proptest::collection::vec("[^\0]{0,20}", 1..4)) {
            let line: Vec<_> = list.iter().map(|w| format!("'{}'", w.replace('\'', r"'\''"))).collect();
            prop_assert_eq!(words(&line.join(" ")).unwrap(), list);
        }
    }
}
