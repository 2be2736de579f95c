//! Markdown of reference pages.

/// Comment at the top of each page.
pub(super) const MADE: &str =
    "<!-- Made by `plimsoll reference docs/reference`; changes belong into the program. -->\n\n";

/// One line, and Markdown takes nothing in it for markup of a table or of HTML.
pub(super) fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;")
}
