//! Text that may come from elsewhere: from a server, a file or a URL.

use std::borrow::Cow;

use plimsoll_core::characters::visible;

/// Characters of a message that are shown at most: a key of a file may have megabytes.
const LONGEST: usize = 2_000;

/// A message in which no line after the first begins with text that may be foreign: a line end within it
/// could otherwise begin a line that looks like one of ours.
pub(crate) fn in_lines(message: &str) -> Cow<'_, str> {
    match message.contains('\n') {
        true => message.replace('\n', "\n  | ").into(),
        false => message.into(),
    }
}

/// Returns the beginning of a text, at most a screenful of it, as [`visible`] shows it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_long_text_is_shown() {
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
