//! The runs of a series, read from its messages: `run 2 of 4: profile memory` when one begins, and
//! `run 2 of 4 ended: PASS, 812/s, p99 3.4 ms`. Of several runs of one plan, `run 2 of 5, seed 7`.

use serde_json::{Value, json};

/// Runs of a series so far. A suite has as many as its matrix has cells, so there are few.
#[derive(Debug, Default)]
pub(super) struct Entries {
    runs: Vec<Entry>,
    /// Number of runs in all.
    of: u64,
    /// Number of changes so far, by which a listener knows if it has the latest ones.
    changes: u64,
}

/// One run of a series.
#[derive(Debug)]
struct Entry {
    number: u64,
    /// The values of its parameters.
    name: String,
    /// Id of the run in the history.
    saved: Option<String>,
    /// Outcome of the run in words, once it has ended.
    outcome: Option<String>,
}

/// Parts of a message about a run of a series.
#[derive(Debug, PartialEq)]
enum Told<'m> {
    Begun { number: u64, of: u64, name: &'m str },
    Ended { number: u64, outcome: &'m str },
}

fn told(message: &str) -> Option<Told<'_>> {
    let message = message.strip_prefix("run ")?;
    let named = message.split_once(": ");
    let seeded = || message.split_once(", ").filter(|(_, text)| text.starts_with("seed "));
    let (head, text) = named.or_else(seeded)?;
    let (number, of) = head.split_once(" of ")?;
    let number = number.parse().ok()?;
    match of.strip_suffix(" ended") {
        Some(of) => of.parse::<u64>().ok().map(|_| Told::Ended { number, outcome: text }),
        None => of.parse().ok().map(|of| Told::Begun { number, of, name: text }),
    }
}

impl Entries {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Reads a message. Returns `true` if it announces another run.
    pub(super) fn note(&mut self, message: &str) -> bool {
        match told(message) {
            Some(Told::Begun { number, of, name }) => {
                self.of = of;
                self.runs.push(Entry { number, name: name.to_owned(), saved: None, outcome: None });
                self.changes += 1;
                true
            }
            Some(Told::Ended { number, outcome }) => {
                if let Some(entry) = self.runs.last_mut().filter(|entry| entry.number == number) {
                    entry.outcome = Some(outcome.to_owned());
                    self.changes += 1;
                }
                false
            }
            None => false,
        }
    }

    /// The number of the latest run, and that of all.
    pub(super) fn latest(&self) -> Option<(u64, u64)> {
        self.runs.last().map(|entry| (entry.number, self.of))
    }

    /// Stores the id in the history of the run that goes on, unless it is known.
    pub(super) fn save(&mut self, id: &str) {
        if self.saved().any(|known| known == id) {
            return;
        }
        if let Some(entry) = self.runs.last_mut() {
            entry.saved = Some(id.to_owned());
            self.changes += 1;
        }
    }

    /// The ids in the history of the runs so far.
    pub(super) fn saved(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().filter_map(|entry| entry.saved.as_deref())
    }

    /// The runs as the page is told of them.
    pub(super) fn written(&self) -> Value {
        let run = |entry: &Entry| {
            let Entry { number, name, saved, outcome } = entry;
            json!({"number": number, "name": name, "run": saved, "outcome": outcome})
        };
        json!({"of": self.of, "runs": self.runs.iter().map(run).collect::<Vec<_>>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_read_from_its_messages() {
        let mut entries = Entries::default();
        assert!(!entries.note("cluster: 3 nodes are ready") && entries.is_empty());
        assert!(entries.note("run 1 of 2: size 5"));
        entries.save("abc");
        assert!(!entries.note("run 1 of 2 ended: PASS, 812/s, p99 3.4 ms"));
        assert!(entries.note("run 2 of 2: size 6"));
        // Of an earlier look at the history.
        entries.save("abc");
        assert_eq!((entries.saved().collect::<Vec<_>>(), entries.latest()), (vec!["abc"], Some((2, 2))));
        let runs = json!([
            {"number": 1, "name": "size 5", "run": "abc", "outcome": "PASS, 812/s, p99 3.4 ms"},
            {"number": 2, "name": "size 6", "run": null, "outcome": null},
        ]);
        assert_eq!((entries.written(), entries.changes()), (json!({"of": 2, "runs": runs}), 4));
    }

    #[test]
    fn other_messages_are_of_no_series() {
        for other in [
            "run 1 of 2",
            "run 1 of 2, later",
            "run 1 of x: a",
            "run x of 2: a",
            "runs 1 of 2: a",
            "run 1 of 2 begun: a",
        ] {
            assert_eq!(told(other), None, "{other}");
        }
        assert_eq!(told("run 2 of 5, seed 7"), Some(Told::Begun { number: 2, of: 5, name: "seed 7" }));
        assert_eq!(told("run 3 of 4 ended: FAIL: x"), Some(Told::Ended { number: 3, outcome: "FAIL: x" }));
    }
}
