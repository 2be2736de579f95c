//! Characters of texts that others have written.

/// Returns `true` for a character that makes the text behind it, or around it, look other than it is: marks
/// and overrides of its direction, and ends of lines other than `\n` (UTS 55).
pub const fn disguises(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_ends_of_lines_disguise_and_letters_do_not() {
        let disguising = "\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";
        assert!(disguising.chars().all(disguises));
        // A joiner is a part of words, and of pictures.
        assert!(!"aä中ع\u{200d}\n\t \u{2027}\u{202f}\u{206a}".chars().any(disguises));
    }
}
