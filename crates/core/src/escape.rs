//! Texts within other languages: a function for each of them.

use crate::characters::is_hidden;

/// Text within an element or a quoted attribute of HTML. Hidden characters become visible signs.
pub fn html(text: &str) -> String {
    escaped(text, |c, out| match c {
        // A page may be printed into the log of a CI service, which carries out lines.
        '\n' => out.push_str("&#10;"),
        '\'' => out.push_str("&#39;"),
        _ if is_hidden(c) => out.push(char::REPLACEMENT_CHARACTER),
        _ => markup(c, out),
    })
}

/// Text within a quoted attribute of XML. Line ends and tabs are kept by references, which a reader would
/// take for spaces; characters that XML 1.0 cannot have are replaced.
pub fn xml(text: &str) -> String {
    escaped(text, |c, out| match c {
        '\r' => out.push_str("&#13;"),
        '\n' => out.push_str("&#10;"),
        '\t' => out.push_str("&#9;"),
        _ if !is_xml(c) => out.push(char::REPLACEMENT_CHARACTER),
        _ => markup(c, out),
    })
}

/// Text without markup in Markdown: every character is shown as it is, and a line break does not end a row of
/// a table.
pub fn markdown(text: &str) -> String {
    escaped(text, |c, out| match c {
        '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '$' => out.extend(['\\', c]),
        // User and team names would be notified, and issues linked.
        '@' => out.push_str("&#64;"),
        '"' => out.push(c),
        _ if c.is_control() => out.push(' '),
        _ => markup(c, out),
    })
}

/// A text of which each character is written in its own way.
fn escaped(text: &str, write: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| write(c, &mut out));
    out
}

/// Returns `true` if XML 1.0 allows a character at all (section 2.2).
pub const fn is_xml(c: char) -> bool {
    !matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}

/// Writes a character so that it is none of the markup of HTML and XML.
fn markup(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        _ => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_its_escapes() {
        let of = |text: &str| [html(text), xml(text), markdown(text)];
        for (text, expected) in [
            ("a & b", ["a &amp; b", "a &amp; b", "a &amp; b"]),
            ("<i>", ["&lt;i&gt;", "&lt;i&gt;", "&lt;i&gt;"]),
            ("\"a'", ["&quot;a&#39;", "&quot;a'", "\"a'"]),
            ("a|b_c\\", ["a|b_c\\", "a|b_c\\", "a\\|b\\_c\\\\"]),
            ("@team #1", ["@team #1", "@team #1", "&#64;team \\#1"]),
            ("a\r\n\tb", ["a\u{fffd}&#10;\tb", "a&#13;&#10;&#9;b", "a   b"]),
            ("\x1b[2K", ["\u{fffd}[2K", "\u{fffd}[2K", " \\[2K"]),
            ("a\u{202e}b", ["a\u{fffd}b", "a\u{202e}b", "a\u{202e}b"]),
            ("\u{ffff}ä€", ["\u{ffff}ä€", "\u{fffd}ä€", "\u{ffff}ä€"]),
        ] {
            assert_eq!(of(text), expected, "{text:?}");
        }
    }
}
