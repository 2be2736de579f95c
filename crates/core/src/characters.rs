//! Characters of texts that others have written.

use std::borrow::Cow;

/// Returns `true` for a character that makes the text behind it, or around it, look other than it is: marks
/// and overrides of its direction, and ends of lines other than `\n` (UTS 55).
pub const fn disguises(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Returns `true` for a character that is invisible or acts on others; ends of lines and tabs do not count.
pub fn is_hidden(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t')) || disguises(character)
}

/// Text in which hidden characters, which could move a cursor or turn the direction of what follows, are
/// visible signs (U+FFFD).
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_hidden) {
        text.chars()
            .map(|c| if is_hidden(c) { char::REPLACEMENT_CHARACTER } else { c })
            .collect::<String>()
            .into()
    } else {
        text.into()
    }
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

    #[test]
    fn nothing_hidden_is_left_but_signs() {
        assert_eq!(
            visible("no answer: \x1b[31mred\x1b]0;title\x07"),
            "no answer: \u{fffd}[31mred\u{fffd}]0;title\u{fffd}"
        );
        assert_eq!(visible("a\r\nb\tc \u{202e}d \u{9b}31m"), "a\u{fffd}\nb\tc \u{fffd}d \u{fffd}31m");
        for active in ["\u{200e}", "\u{200f}", "\u{61c}", "\u{2028}", "\u{2029}", "\u{2069}"] {
            assert_eq!(visible(&format!("a{active}b")), "a\u{fffd}b", "{active:?}");
        }
        assert!(matches!(visible("plain – ünïcode\n"), Cow::Borrowed(_)));
    }
}
