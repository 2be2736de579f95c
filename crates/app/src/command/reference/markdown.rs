//! Markdown of reference pages.

/// Comment at the top of each page.
pub(super) const MADE: &str =
    "<!-- Made by `plimsoll reference docs/reference`; changes belong into the program. -->\n\n";

/// One line, and Markdown takes nothing in it for markup of a table or of HTML. Code stays as it is, since
/// nothing in it is HTML.
pub(super) fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let parts = line.split('`').enumerate();
    let escaped = parts.map(|(n, part)| if n % 2 == 0 { part.replace('<', "&lt;") } else { part.to_owned() });
    escaped.collect::<Vec<_>>().join("`")
}
