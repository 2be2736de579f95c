//! Other users of the processors: the processes that are neither the generator nor watched.

use std::collections::HashMap;

use plimsoll_core::Nanos;
use plimsoll_metrics::OtherUse;

use crate::server::{Entry, ProcessTable};

/// Share of one processor that others have to use before their names are looked up: a look at all processes
/// of a machine costs some ten microseconds for each of them, and a quiet machine has none to find.
const WORTH_A_LOOK: f64 = 0.1;

/// The CPU time of all processes at the last look.
#[derive(Debug)]
pub(crate) struct OtherProcesses {
    seen: HashMap<u32, Entry>,
    /// Set when the last interval was examined: everything that the next look finds was then used in one
    /// interval.
    is_fresh: bool,
}

impl OtherProcesses {
    /// Takes the first look.
    pub(crate) fn open(census: ProcessTable) -> Self {
        Self { seen: by_pid(census), is_fresh: true }
    }

    /// Returns the CPU time of processes other than `excluded` in an interval of this length, the largest
    /// first. `cpu` is their total usage in it. `census` takes a look at all processes; it is called where
    /// that is worth it.
    pub(crate) fn sample(
        &mut self,
        cpu: Nanos,
        length: Nanos,
        excluded: impl Fn(u32) -> bool,
        census: impl FnOnce() -> ProcessTable,
    ) -> Vec<OtherUse> {
        if cpu.0 as f64 <= length.0 as f64 * WORTH_A_LOOK {
            self.is_fresh = false;
            return Vec::new();
        }
        let was_fresh = std::mem::replace(&mut self.is_fresh, true);
        let before = std::mem::replace(&mut self.seen, by_pid(census()));
        let same = |entry: &Entry, other: &Entry| entry.began == other.began;
        let used = |(pid, now): (&u32, &Entry)| {
            let known =
                before.get(pid).filter(|entry| same(now, entry)).map_or(Nanos::ZERO, |entry| entry.cpu);
            let cpu = now.cpu.since(known);
            (cpu > Nanos::ZERO && !excluded(*pid)).then(|| OtherUse {
                name: now.name.clone(),
                pid: *pid,
                most: cpu,
                processes: 1,
                cpu,
            })
        };
        let mut found: Vec<OtherUse> = self.seen.iter().filter_map(used).collect();
        let sum = found.iter().fold(Nanos::ZERO, |sum, other| sum + other.cpu);
        // CPU time since a look that is several intervals old does not belong to this interval alone.
        if !was_fresh && sum > cpu {
            let share = cpu.0 as f64 / sum.0 as f64;
            for other in &mut found {
                let part = Nanos((other.cpu.0 as f64 * share) as u64);
                (other.cpu, other.most) = (part, part);
            }
        }
        together(found)
    }
}

/// Processes of one name as one, the largest first.
fn together(mut found: Vec<OtherUse>) -> Vec<OtherUse> {
    found.sort_by(|one, other| one.name.cmp(&other.name).then_with(|| other.cpu.cmp(&one.cpu)));
    let mut named: Vec<OtherUse> = Vec::new();
    for other in found {
        match named.last_mut().filter(|last| last.name == other.name) {
            Some(last) => {
                last.processes += 1;
                last.cpu += other.cpu;
            }
            None => named.push(other),
        }
    }
    let mut largest = Vec::new();
    OtherUse::merge(&mut largest, named);
    largest
}

fn by_pid(census: ProcessTable) -> HashMap<u32, Entry> {
    census.into_entries().map(|entry| (entry.pid, entry)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    fn entry(&(pid, parent, name, cpu_ms): &(u32, u32, &str, u64)) -> Entry {
        Entry { pid, parent, began: 1, name: name.to_owned(), cpu: Nanos::from_millis(cpu_ms) }
    }

    fn census(entries: &[(u32, u32, &str, u64)]) -> ProcessTable {
        ProcessTable::of(entries.iter().map(entry))
    }

    fn told(found: &[OtherUse]) -> Vec<(&str, u32, u64, u64)> {
        found
            .iter()
            .map(|other| (&*other.name, other.pid, other.processes, other.cpu.0 / 1_000_000))
            .collect()
    }

    #[test]
    fn others_are_told_by_name_without_the_watched() {
        let mut others =
            OtherProcesses::open(census(&[(2, 1, "cargo", 100), (3, 1, "nginx", 0), (4, 1, "sh", 7)]));
        let now = census(&[
            (2, 1, "cargo", 200),
            (3, 1, "nginx", 900),
            (4, 1, "sh", 7),
            (5, 2, "rustc", 300),
            (6, 2, "rustc", 500),
        ]);
        let found = others.sample(SECOND, SECOND, |pid| pid == 3, || now);
        assert_eq!(told(&found), [("rustc", 6, 2, 800), ("cargo", 2, 1, 100)]);
        // One child ends, and another one begins with its number.
        let again = Entry { began: 2, ..entry(&(6, 2, "ld", 40)) };
        let now = [(2, 1, "cargo", 250), (3, 1, "nginx", 900), (4, 1, "sh", 7), (5, 2, "rustc", 300)];
        let now = ProcessTable::of(now.iter().map(entry).chain([again]));
        let found = others.sample(SECOND, SECOND, |pid| pid == 3, || now);
        assert_eq!(told(&found), [("cargo", 2, 1, 50), ("ld", 6, 1, 40)]);
    }

    #[test]
    fn a_quiet_machine_is_not_looked_at_and_later_looks_do_not_say_too_much() {
        let mut others = OtherProcesses::open(census(&[(2, 1, "cargo", 0)]));
        let found = others.sample(Nanos::from_millis(90), SECOND, |_| false, || panic!("it is quiet"));
        assert_eq!(found, []);
        let found = others.sample(SECOND, SECOND, |_| false, || census(&[(2, 1, "cargo", 1_090)]));
        assert_eq!(told(&found), [("cargo", 2, 1, 1_000)]);
    }
}
