//! Text that may come from elsewhere: from a server, a file or a URL.

use std::borrow::Cow;

use plimsoll_core::disguises;

/// Characters of a message that are shown at most: a key of a file may have megabytes.
const LONGEST: usize = 2_000;

/// Text for a terminal: characters that could move the cursor, change colours or turn the direction of later
/// text are replaced by U+FFFD, lines stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_active) {
        text.chars().map(|c| if is_active(c) { '\u{fffd}' } else { c }).collect::<String>().into()
    } else {
        text.into()
    }
}

/// A message in which no line after the first begins with text that may be foreign: a line end within it
/// could otherwise begin a line that looks like one of ours.
pub(crate) fn in_lines(message: &str) -> Cow<'_, str> {
    match message.contains('\n') {
        true => message.replace('\n', "\n  | ").into(),
        false => message.into(),
    }
}

/// The same, and at most a screenful of it.
pub(crate) fn visible_beginning(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST) {
        None => visible(text),
        Some((end, _)) => format!("{}… ({} more bytes)", visible(&text[..end]), text.len() - end).into(),
    }
}

/// A cell of a CSV file (RFC 4180) with a name. One that a spreadsheet would take for a formula begins with
/// an apostrophe.
pub(crate) fn csv_cell(text: &str) -> String {
    let text = visible(text);
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t']);
    let text = if is_formula { format!("'{text}") } else { text.into_owned() };
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Control characters other than the ends of lines and tabs, and those that [disguise](disguises) a text.
pub(crate) fn is_active(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || disguises(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_it_reaches_the_terminal_but_signs() {
        assert_eq!(
            visible("no answer: \x1b[31mred\x1b]0;title\x07"),
            "no answer: \u{fffd}[31mred\u{fffd}]0;title\u{fffd}"
        );
        assert_eq!(visible("a\r\nb\tc \u{202e}d \u{9b}31m"), "a\u{fffd}\nb\tc \u{fffd}d \u{fffd}31m");
        for active in ["\u{200e}", "\u{200f}", "\u{61c}", "\u{2028}", "\u{2029}", "\u{2069}"] {
            assert_eq!(visible(&format!("a{active}b")), "a\u{fffd}b", "{active:?}");
        }
        assert!(matches!(visible("plain – ünïcode\n"), Cow::Borrowed(_)));
        let long = "ä".repeat(5_000_000);
        let shown = visible_beginning(&long);
        assert!(shown.ends_with("ä… (9996000 more bytes)") && shown.chars().count() < 2_100);
        assert_eq!(visible_beginning("short\x1b"), "short\u{fffd}");
    }

    #[test]
    fn no_line_of_a_message_begins_with_what_it_quotes() {
        assert_eq!(in_lines("step a: no answer"), "step a: no answer");
        assert_eq!(in_lines("step a\nPASS\n: x"), "step a\n  | PASS\n  | : x");
    }

    #[test]
    fn a_spreadsheet_calculates_nothing() {
        for (text, cell) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
            ("@SUM(1+1)", "'@SUM(1+1)"),
            ("+1,2", "\"'+1,2\""),
            ("-", "'-"),
            ("a=b", "a=b"),
            ("\x1b[31m", "\u{fffd}[31m"),
        ] {
            assert_eq!(csv_cell(text), cell);
        }
    }
}
