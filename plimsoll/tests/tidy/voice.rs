//! How doc comments begin.

/// Words that open a riddle: "What is owed was queued when its requests came".
const RIDDLES: &[&str] = &["What", "Whether", "Who", "How", "Those", "So"];
/// Share of doc comments that may open with one: some read best so.
const SHARE_MAX: f64 = 0.02;

/// The first words of the doc comments of a file.
pub(crate) fn openings(text: &str) -> Vec<&str> {
    let mut openings = Vec::new();
    let mut within = false;
    for line in text.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if let (Some(comment), false) = (comment, within) {
            openings.extend(comment.split_whitespace().next());
        }
        within = comment.is_some();
    }
    openings
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
    fn riddles_are_counted() {
        let text = "//! Mod.\n\n/// What is owed.\n/// So what?\nfn f() {}\n/// Bytes.\nx: u8, // How\n";
        assert_eq!(openings(text), ["Mod.", "What", "Bytes."]);
        assert_eq!(complaints(&openings(text)).len(), 1);
        assert!(complaints(&[&["Bytes"; 99][..], &["How"]].concat()).is_empty());
    }
}
