//! How doc comments begin.

use super::sources::Source;

/// Words that open a riddle: "What is owed was queued when its requests came".
const RIDDLES: &[&str] = &["What", "Whether", "Who", "How", "Those", "So"];
/// Share of doc comments that may open with one: some read best so.
const SHARE_MAX: f64 = 0.02;

/// Openings that lean on a comment or a name above: nobody understands "Its URL" in a search, or beside the
/// cursor of an editor.
const LEANING: &[&str] = &["The same", "Its", "It", "They", "This is the"];

/// The first lines of the doc comments of a file, with their numbers.
fn first_lines(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut within = false;
    for (number, line) in (1..).zip(text.lines().map(str::trim_start)) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if let (Some(comment), false) = (comment, within) {
            found.push((number, comment.trim_start()));
        }
        within = comment.is_some();
    }
    found
}

/// The first words of the doc comments of a file.
pub(crate) fn openings(text: &str) -> Vec<&str> {
    first_lines(text).into_iter().filter_map(|(_, line)| line.split_whitespace().next()).collect()
}

/// Complains of doc comments that do not stand alone.
pub(crate) fn leaning(Source { path, text }: &Source) -> Vec<String> {
    let leans = |line: &str| {
        let rest = LEANING.iter().find_map(|opening| line.strip_prefix(opening));
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
    };
    let found = first_lines(text).into_iter().filter(|(_, line)| leans(line));
    found.map(|(number, line)| format!("{path}:{number}: `{line}` leans on something above it")).collect()
}

/// Complains if too many doc comments open with a riddle.
pub(crate) fn complaints(openings: &[&str]) -> Vec<String> {
    let riddles = openings.iter().filter(|word| RIDDLES.contains(word)).count();
    let share = riddles as f64 / openings.len().max(1) as f64;
    let message = format!("{riddles} of {} doc comments open with one of {RIDDLES:?}", openings.len());
    if share > SHARE_MAX { vec![message] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_lean_on_others_are_found() {
        let text =
            "/// Its URL.\nx: u8,\n/// Item.\n/// It goes on.\ny: u8,\n/// The same, twice.\nfn f() {}\n";
        let source = Source { path: "a.rs".to_owned(), text: text.to_owned() };
        assert_eq!(leaning(&source).len(), 2);
        assert!(leaning(&source)[1].starts_with("a.rs:6: `The same, twice.`"));
    }

    #[test]
    fn riddles_are_counted() {
        let text = "//! Mod.\n\n/// What is owed.\n/// So what?\nfn f() {}\n/// Bytes.\nx: u8, // How\n";
        assert_eq!(openings(text), ["Mod.", "What", "Bytes."]);
        assert_eq!(complaints(&openings(text)).len(), 1);
        assert!(complaints(&[&["Bytes"; 99][..], &["How"]].concat()).is_empty());
    }
}
