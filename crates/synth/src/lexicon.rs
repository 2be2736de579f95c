//! The words that a column has.

use std::fmt::Write as _;

/// All words of one column, by number. Words are made when they are asked for: millions of hosts need no
/// list.
#[derive(Clone, Debug)]
pub(crate) enum Lexicon {
    /// A list that is part of the program.
    Fixed(&'static [&'static str]),
    /// A list that was put together.
    Made(Vec<String>),
    /// A text and a number, the numbers in order, with at least this many digits.
    Numbered { prefix: &'static str, from: u32, digits: usize, count: u32 },
    /// A few names, and once they are used up, each again with a number: `api-gateway`, …, `api-gateway-2`.
    Repeated { names: &'static [&'static str], count: u32 },
}

impl Lexicon {
    /// Returns the number of words.
    pub(crate) fn count(&self) -> u32 {
        match self {
            Self::Fixed(list) => list.len() as u32,
            Self::Made(list) => list.len() as u32,
            Self::Numbered { count, .. } | Self::Repeated { count, .. } => *count,
        }
    }

    /// Appends the word number `index`.
    pub(crate) fn write(&self, index: u32, out: &mut String) {
        let at = index as usize;
        let written = match self {
            Self::Fixed(list) => out.write_str(list[at]),
            Self::Made(list) => out.write_str(&list[at]),
            Self::Numbered { prefix, from, digits, .. } => {
                write!(out, "{prefix}{number:0digits$}", number = from + index)
            }
            Self::Repeated { names, .. } if at < names.len() => out.write_str(names[at]),
            Self::Repeated { names, .. } => {
                write!(out, "{}-{}", names[at % names.len()], at / names.len() + 1)
            }
        };
        written.expect("a string takes everything");
    }

    /// The word number `index`.
    #[cfg(test)]
    pub(crate) fn word(&self, index: u32) -> String {
        let mut word = String::new();
        self.write(index, &mut word);
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_numbers() {
        let servers = Lexicon::Numbered { prefix: "server", from: 0, digits: 3, count: 1_001 };
        assert_eq!((servers.word(7), servers.word(1_000)), ("server007".to_owned(), "server1000".to_owned()));
        let services = Lexicon::Repeated { names: &["a", "b"], count: 5 };
        let words: Vec<_> = (0..5).map(|index| services.word(index)).collect();
        assert_eq!(words, ["a", "b", "a-2", "b-2", "a-3"]);
    }
}
