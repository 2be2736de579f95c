//! The latest messages of a run.

use std::collections::VecDeque;
use std::sync::Arc;

/// Messages that are kept. Of more, the first ones are forgotten.
pub(crate) const MOST_MESSAGES: usize = 1_000;

/// The latest messages, numbered from the first one on that there ever was.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    kept: VecDeque<Arc<str>>,
    forgotten: u64,
}

impl Messages {
    pub(crate) fn push(&mut self, text: &str) {
        if self.kept.len() == MOST_MESSAGES {
            self.kept.pop_front();
            self.forgotten += 1;
        }
        self.kept.push_back(text.into());
    }

    /// Returns the messages from a number on, as far as they are kept, and the number of the next one.
    pub(crate) fn since(&self, number: u64) -> (Vec<Arc<str>>, u64) {
        let skipped = usize::try_from(number.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        let next = self.forgotten + self.kept.len() as u64;
        (self.kept.iter().skip(skipped).cloned().collect(), next)
    }

    /// All messages that are kept, as lines.
    pub(crate) fn text(&self) -> String {
        self.kept.iter().flat_map(|line| [&**line, "\n"]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_and_each_is_told_once() {
        let mut messages = Messages::default();
        assert_eq!(messages.since(0), (Vec::new(), 0));
        messages.push("0");
        let (first, next) = messages.since(0);
        assert_eq!((first.len(), next), (1, 1));
        (1..1_500).for_each(|number| messages.push(&number.to_string()));
        let (kept, next) = messages.since(0);
        assert_eq!((kept.len(), &*kept[0], next), (MOST_MESSAGES, "500", 1_500));
        let (late, _) = messages.since(1_498);
        assert_eq!(late.iter().map(|text| &**text).collect::<Vec<_>>(), ["1498", "1499"]);
        assert_eq!(messages.since(1_500).0.len(), 0);
        assert!(messages.text().starts_with("500\n501\n"));
    }
}
