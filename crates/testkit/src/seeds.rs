//! The seeds of the worlds that a test simulates.

use std::env;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The environment variable that has other seeds than the usual ones.
const VARIABLE: &str = "PLIMSOLL_SEEDS";

/// Calls `world` with each of the `usual` seeds, or with those that `PLIMSOLL_SEEDS=A..B` asks for: from A to
/// below B. `test` are the arguments by which `cargo test` runs the calling test.
///
/// # Panics
/// If `world` does, with the command that repeats that world alone; if the variable is not a range of seeds.
pub fn for_each_seed(test: &str, usual: Range<u64>, world: impl Fn(u64)) {
    let seeds = match env::var(VARIABLE) {
        Ok(text) => parse(&text).unwrap_or_else(|| {
            panic!("{VARIABLE} is `{text}`, and a range of seeds is written A..B, as in 300..1300")
        }),
        Err(_) => usual,
    };
    each(test, seeds, world);
}

fn each(test: &str, seeds: Range<u64>, world: impl Fn(u64)) {
    for seed in seeds {
        if catch_unwind(AssertUnwindSafe(|| world(seed))).is_err() {
            panic!("seed {seed} fails: repeat it with {VARIABLE}={seed}..{} cargo test {test}", seed + 1);
        }
    }
}

fn parse(text: &str) -> Option<Range<u64>> {
    let (from, to) = text.split_once("..")?;
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (from < to).then_some(from..to)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_range_has_two_ends_and_something_between() {
        assert_eq!(parse("300..1300"), Some(300..1300));
        assert_eq!(parse(" 0 .. 1 "), Some(0..1));
        for text in ["", "5", "5..5", "6..5", "..5", "5..", "5..=6", "-1..5", "a..b", "5...7"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_failure_names_its_seed_and_what_repeats_it() {
        let seen = RefCell::new(Vec::new());
        let world = |seed| {
            seen.borrow_mut().push(seed);
            assert_ne!(seed, 7, "a world that fails");
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| each("-p a --test b c", 5..10, world)));
        let message = outcome.expect_err("seed 7 fails").downcast::<String>().expect("a text");
        assert_eq!(*message, "seed 7 fails: repeat it with PLIMSOLL_SEEDS=7..8 cargo test -p a --test b c");
        assert_eq!(*seen.borrow(), [5, 6, 7]);
        each("-p a --test b c", 8..10, |seed| assert!(seed > 7));
    }
}
