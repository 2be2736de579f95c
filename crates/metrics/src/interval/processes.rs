//! The intervals of several processes, each with its shard of one load, as those of the whole.

use plimsoll_core::Nanos;

use super::{IntervalMerger, Key};
use crate::{Interval, Outline};

/// Merges the intervals of several processes into those of the load that they carry out together.
///
/// Each process reports its own in order ([`add`](Self::add)). An interval is complete once every process
/// has reported it or a later one; a process that has ended or fallen silent is not waited for
/// ([`leave`](Self::leave)).
#[derive(Debug)]
pub struct ProcessMerger {
    merger: IntervalMerger,
    processes: Vec<Progress>,
    /// The last one that was given out.
    given: Option<Key>,
    late: u64,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    first_worker: u32,
    reached: Option<Key>,
    has_left: bool,
}

impl ProcessMerger {
    /// A merger for processes whose workers are numbered from these numbers on, of a load with these steps,
    /// whose intervals have this length and are cut at these instants; see [`IntervalMerger`].
    pub fn new(first_workers: &[u32], length: Nanos, outline: Outline, cuts: Vec<Nanos>) -> Self {
        let progress = |&first_worker| Progress { first_worker, reached: None, has_left: false };
        let merger = IntervalMerger::new(first_workers.len());
        Self {
            merger: merger.with_length(length).with_outline(outline).with_cuts(cuts),
            processes: first_workers.iter().map(progress).collect(),
            given: None,
            late: 0,
        }
    }

    /// Takes the next interval of a process, by its place. One that the load has passed, because the process
    /// was not waited for, is dropped and counted.
    pub fn add(&mut self, process: usize, interval: &Interval) {
        let Some(progress) = self.processes.get_mut(process) else { return };
        let key = self.merger.key(interval);
        progress.reached = progress.reached.max(Some(key));
        if self.given.is_some_and(|given| key <= given) {
            self.late += 1;
        } else {
            self.merger.add_interval(interval, progress.first_worker);
        }
    }

    /// Takes in another process, whose workers are numbered from this number on. It is not waited for until
    /// it [begins](Self::begin).
    pub fn join(&mut self, first_worker: u32) {
        self.processes.push(Progress { first_worker, reached: None, has_left: true });
    }

    /// Waits for a process that has [joined](Self::join), from the interval on that begins at this instant.
    pub fn begin(&mut self, process: usize, at: Nanos) {
        let key = self.merger.key(&Interval { at, ..Interval::default() });
        if let Some(progress) = self.processes.get_mut(process) {
            (progress.reached, progress.has_left) = (progress.reached.max(Some(key)), false);
        }
    }

    /// Does not wait for a process any more.
    pub fn leave(&mut self, process: usize) {
        if let Some(progress) = self.processes.get_mut(process) {
            progress.has_left = true;
        }
    }

    /// The next complete interval, in order.
    pub fn next_complete(&mut self) -> Option<Interval> {
        let (&key, _) = self.merger.pending.first_key_value()?;
        let has_passed = |one: &Progress| one.has_left || one.reached >= Some(key);
        if !self.processes.iter().all(has_passed) {
            return None;
        }
        self.given = Some(key);
        self.merger.take_first()
    }

    /// Number of intervals that came too late.
    pub const fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tally, WorkerStatus};

    const SECOND: Nanos = Nanos::from_secs(1);

    fn merger() -> ProcessMerger {
        ProcessMerger::new(&[0, 2, 4], SECOND, Outline::EMPTY, Vec::new())
    }

    fn interval(second: u64, ok: u64, drain: bool) -> Interval {
        let statuses = [0, 1].map(|worker| WorkerStatus { worker, completed: ok, ..WorkerStatus::default() });
        Interval {
            at: SECOND * second,
            drain,
            scheduled: ok,
            steps: vec![Tally { ok, started: ok, completed: ok, ..Tally::default() }],
            worker_statuses: statuses.to_vec(),
            ..Interval::default()
        }
    }

    fn shape(interval: &Interval) -> (u64, u64, bool) {
        (interval.at.0 / SECOND.0, interval.ok, interval.drain)
    }

    #[test]
    fn an_interval_is_complete_once_every_process_has_passed_it() {
        let mut merger = merger();
        for second in 1..=3 {
            merger.add(0, &interval(second, 1, false));
            merger.add(1, &interval(second, 10, false));
        }
        assert_eq!(merger.next_complete(), None);
        merger.add(2, &interval(1, 100, false));
        let first = merger.next_complete().unwrap();
        assert_eq!(shape(&first), (1, 111, false));
        let workers: Vec<u32> = first.worker_statuses.iter().map(|status| status.worker).collect();
        assert_eq!(workers, [0, 1, 2, 3, 4, 5]);
        assert_eq!(merger.next_complete(), None);
        // One that ended early is in its own intervals only, and its drain waits for that of the others.
        merger.add(0, &interval(4, 1, true));
        merger.leave(0);
        merger.add(2, &interval(2, 100, false));
        merger.add(2, &interval(3, 100, false));
        let rest: Vec<_> = std::iter::from_fn(|| merger.next_complete()).map(|one| shape(&one)).collect();
        assert_eq!(rest, [(2, 111, false), (3, 111, false)]);
        for process in [1, 2] {
            merger.add(process, &interval(4, 5, false));
            merger.add(process, &interval(6, 7, true));
        }
        let rest: Vec<_> = std::iter::from_fn(|| merger.next_complete()).map(|one| shape(&one)).collect();
        assert_eq!(rest, [(4, 10, false), (6, 15, true)]);
        assert_eq!(merger.late(), 0);
    }

    #[test]
    fn one_that_joins_is_waited_for_from_its_beginning_on() {
        let mut merger = merger();
        for second in 1..=4 {
            (0..2).for_each(|process| merger.add(process, &interval(second, 1, false)));
        }
        merger.leave(2);
        merger.join(4);
        assert_eq!(merger.next_complete().map(|one| shape(&one)), Some((1, 2, false)));
        merger.begin(3, SECOND * 3);
        let given: Vec<_> = std::iter::from_fn(|| merger.next_complete()).map(|one| shape(&one)).collect();
        assert_eq!(given, [(2, 2, false), (3, 2, false)]);
        merger.add(3, &interval(4, 100, false));
        assert_eq!(merger.next_complete().map(|one| shape(&one)), Some((4, 102, false)));
        assert_eq!(merger.late(), 0);
    }

    #[test]
    fn one_that_was_not_waited_for_comes_back_in_the_present() {
        let mut merger = merger();
        for second in 1..=2 {
            merger.add(0, &interval(second, 1, false));
            merger.add(1, &interval(second, 10, false));
        }
        assert_eq!(merger.next_complete(), None);
        merger.leave(2);
        let given: Vec<_> = std::iter::from_fn(|| merger.next_complete()).map(|one| shape(&one)).collect();
        assert_eq!(given, [(1, 11, false), (2, 11, false)]);
        (1..=3).for_each(|second| merger.add(2, &interval(second, 100, false)));
        (0..2).for_each(|process| merger.add(process, &interval(3, 1, false)));
        assert_eq!(merger.next_complete().map(|one| shape(&one)), Some((3, 102, false)));
        assert_eq!(merger.late(), 2);
    }
}
