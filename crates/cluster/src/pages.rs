//! Pagination of a list, in pages as large as its server returns them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Items of a page that are asked for first. A server that sorts all of them for each page (Lithair) takes
/// 0.4 seconds for one of these, and 38 for a hundred smaller ones.
pub const LARGEST: u64 = 100_000;
/// Items of a page that every server gives: Lithair's default.
const SMALLEST: u64 = 1_000;
/// Items that are asked for in one go, in pages that a server has shown to give.
const AT_ONCE: u64 = 20_000;
/// Pages of these at most.
const PAGES: u64 = 20;

/// Position in a list that its server returns page by page. Ask for the [pages](Self::pages), and report the
/// outcome of each in turn.
#[derive(Clone, Debug)]
pub struct Pages {
    take: u64,
    skip: u64,
    /// Set once the server has returned a full page of `take` items, so that a shorter page is the last.
    is_known: bool,
    /// Set once a page was shorter than asked for and `take` was lowered to its length.
    is_limited: bool,
    is_over: bool,
    /// The hash of the last page.
    last: Option<u64>,
}

impl Pages {
    /// From the first item on, in pages of `take` items if the server allows that.
    pub const fn of(take: u64) -> Self {
        Self { take, skip: 0, is_known: false, is_limited: false, is_over: false, last: None }
    }

    /// Items that came.
    pub const fn items(&self) -> u64 {
        self.skip
    }

    /// Pages that are asked for next, each with the number of its items and of those before it; none if that
    /// was all.
    pub fn pages(&self) -> Vec<(u64, u64)> {
        let count = match self.is_known {
            _ if self.is_over => 0,
            true => (AT_ONCE / self.take).clamp(1, PAGES),
            false => 1,
        };
        (0..count).map(|number| (self.take, self.skip + number * self.take)).collect()
    }

    /// Returns `true` if a page differs from the one before. A server that ignores the number of items to
    /// skip returns the same page again; that ends the list.
    pub fn is_new(&mut self, page: &[u8]) -> bool {
        let mut hash = DefaultHasher::new();
        page.hash(&mut hash);
        let hash = Some(hash.finish());
        let is_new = self.last != hash;
        self.last = hash;
        self.is_over |= !is_new;
        is_new
    }

    /// Notes that the next page had `items` items.
    pub fn came(&mut self, items: u64) {
        self.skip += items;
        if items >= self.take {
            self.is_known = true;
        } else if items == 0 || self.is_known || self.is_limited {
            self.is_over = true;
        } else {
            // The page may be the most that the server gives at once: the next page shows whether it is.
            (self.take, self.is_limited) = (items, true);
        }
    }

    /// The next page was refused, or too large: asks for smaller ones. False if no smaller ones are tried.
    pub fn shrink(&mut self) -> bool {
        let may = self.take > SMALLEST && !self.is_over;
        if may {
            (self.take, self.is_known) = ((self.take / 2).max(SMALLEST), false);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of queries to a server with `items` items and pages of at most `limit`, and of the items that
    /// came.
    fn read(items: u64, limit: u64) -> (usize, u64) {
        let (mut pages, mut questions) = (Pages::of(LARGEST), 0);
        loop {
            let asked = pages.pages();
            if asked.is_empty() {
                return (questions, pages.items());
            }
            questions += asked.len();
            for (take, skip) in asked {
                pages.came(items.saturating_sub(skip).min(take).min(limit));
            }
        }
    }

    #[test]
    fn pages_are_as_large_as_a_server_gives_them_and_none_is_missed() {
        for (items, limit, questions) in [
            (0, u64::MAX, 1),
            (30, u64::MAX, 2),
            (240_000, u64::MAX, 3),
            (200_000, u64::MAX, 3),
            (99_999, u64::MAX, 2),
            (300, 100, 22),
            (1_000, 1_000, 2),
            (240_000, 1_000, 242),
        ] {
            assert_eq!(read(items, limit), (questions, items), "{items} of at most {limit}");
        }
    }

    #[test]
    fn a_page_that_is_refused_is_asked_for_in_smaller_ones() {
        let mut pages = Pages::of(LARGEST);
        let mut sizes = vec![pages.take];
        while pages.shrink() {
            sizes.push(pages.take);
        }
        assert_eq!((&sizes[..3], sizes.len()), (&[100_000, 50_000, 25_000][..], 8));
        assert_eq!(pages.pages(), [(1_000, 0)]);
        let mut same = Pages::of(7);
        assert!(same.is_new(b"[1]"));
        same.came(1);
        assert!(!same.is_new(b"[1]") && same.pages().is_empty(), "it knows nothing of pages");
    }
}
