//! The intervals that a record keeps: a bounded number, however long the run is.

use plimsoll_core::Nanos;
use plimsoll_histogram::Delta;

use super::{Key, times};
use crate::record::Cell;
use crate::{Interval, MachineInterval, Outline, ScenarioOutline, Tally};

/// Intervals that are kept at most, besides one more for each phase, warm-up and drain: an hour of seconds.
pub const MOST_INTERVALS: u64 = 3_600;
/// Pieces at most that are kept besides them, so that it can be seen when requests began and ended to fail.
pub const MOST_PIECES: u64 = 1_200;
/// Pieces that may be kept from the beginning on. The others are for later: a run that fails now and then
/// from its first hour on is to have some left for its last one.
const FIRST_PIECES: u64 = 240;

/// Keeps at most [`MOST_INTERVALS`] intervals of the intervals that are added, and at most [`MOST_PIECES`]
/// pieces of them.
///
/// A run of planned length is cut into cells, each of as many intervals as it takes to have few enough
/// cells; in one of unknown length cells grow: when there are too many, neighbours become one.
/// Cells start over where phases do, and the warm-up, the measured part and the drain have their own.
///
/// Counts of joined intervals are added up, percentiles are those of their merged histograms, gauges are
/// those at the end, with the smallest and the largest. A cell in which some requests failed, or stood still,
/// and some did not, is kept in [pieces](Cell), so that outages have their times as exactly as the plan's
/// intervals are long.
#[derive(Clone, Debug)]
pub struct IntervalDownsampler {
    width: Nanos,
    /// Set when the length of the run is known: cells then do not grow, and their histograms need not be
    /// kept.
    is_planned: bool,
    cuts: Vec<Nanos>,
    outline: Outline,
    cells: u64,
    pieces: u64,
    last: Option<Open>,
    /// The histograms of the cells before the last, if they are kept.
    packed: Vec<Vec<Packed>>,
}

/// The cell that grows.
#[derive(Clone, Debug)]
struct Open {
    key: Key,
    /// Kind of its last interval.
    kind: Kind,
    /// `true` if its last interval is the first of its kind: the one before it was of another kind.
    is_onset: bool,
    /// Response times of the cell, by scenario.
    whole: Vec<Tally>,
    /// Response times of its last piece, by scenario; `None` if the cell is a single piece.
    piece: Option<Vec<Tally>>,
}

/// Property that joined intervals have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Good,
    /// Requests were in flight, and none ended.
    Still,
    /// Some failed or timed out.
    Failing,
    /// Thresholds did not hold.
    Missed,
}

impl Kind {
    const fn of(interval: &Interval) -> Self {
        if interval.failed + interval.timed_out > 0 {
            Self::Failing
        } else if interval.is_disturbed() {
            Self::Still
        } else if interval.thresholds_failed > 0 {
            Self::Missed
        } else {
            Self::Good
        }
    }
}

impl IntervalDownsampler {
    /// Before the first interval. `length` is that of the plan's intervals, `planned` that of the whole run,
    /// warm-up included, if it is known, `cuts` are the instants at which intervals are counted again.
    pub fn new(length: Nanos, planned: Option<Nanos>, cuts: Vec<Nanos>, outline: Outline) -> Self {
        let length = length.max(Nanos(1));
        let intervals = planned.map_or(0, |planned| planned.0.div_ceil(length.0));
        Self {
            width: length * intervals.div_ceil(MOST_INTERVALS).max(1),
            is_planned: planned.is_some(),
            cuts,
            outline,
            cells: 0,
            pieces: 0,
            last: None,
            packed: Vec::new(),
        }
    }

    /// Adds the next interval, while it still has its steps, to those that are kept, and the state of the
    /// machine in it, if it is known, to theirs. Both lists are the ones that it was given before.
    pub fn add(
        &mut self,
        intervals: &mut Vec<Interval>,
        machine: &mut Vec<MachineInterval>,
        mut interval: Interval,
        seen: Option<MachineInterval>,
    ) {
        let steps = std::mem::take(&mut interval.steps);
        interval.waiting = Vec::new();
        interval.exemplars = Vec::new();
        interval.metrics = Vec::new();
        interval.worker_statuses = Vec::new();
        let times = self.by_scenario(&steps);
        if !self.is_planned && self.cells >= MOST_INTERVALS && !self.goes_on(&interval) {
            self.widen(intervals, machine);
        }
        if self.goes_on(&interval) {
            self.extend(intervals, interval, times);
        } else {
            self.begin(intervals, interval, times);
        }
        let (Some(seen), Some(last)) = (seen, intervals.last()) else { return };
        match machine.last_mut().filter(|part| part.at > last.at.since(last.length)) {
            Some(part) => part.join(&seen),
            None => machine.push(seen),
        }
    }

    /// Response times by scenario, if there are several, which are all that is kept of steps.
    fn by_scenario(&self, steps: &[Tally]) -> Vec<Tally> {
        let times = |steps: &[Tally]| {
            let mut times = Tally::default();
            for step in steps {
                times.response_time.merge(&step.response_time);
                join_limits(&mut times, step.limits);
            }
            times
        };
        match self.outline.scenarios.as_slice() {
            [] | [_] => vec![times(steps)],
            scenarios => {
                let range =
                    |scenario: &ScenarioOutline| scenario.steps.start as usize..scenario.steps.end as usize;
                scenarios.iter().map(|one| times(steps.get(range(one)).unwrap_or_default())).collect()
            }
        }
    }

    fn key(&self, interval: &Interval) -> Key {
        Key::new(interval.at, interval.warmup, interval.drain, &self.cuts, self.width)
    }

    /// Returns `true` if an interval belongs to the last cell.
    fn goes_on(&self, interval: &Interval) -> bool {
        self.last.as_ref().is_some_and(|last| last.key == self.key(interval))
    }

    /// Pieces that may be kept now.
    fn room(&self) -> u64 {
        FIRST_PIECES + (MOST_PIECES - FIRST_PIECES) * self.cells.min(MOST_INTERVALS) / MOST_INTERVALS
    }

    fn begin(&mut self, intervals: &mut Vec<Interval>, interval: Interval, times: Vec<Tally>) {
        let (key, kind) = (self.key(&interval), Kind::of(&interval));
        let before = self.last.take();
        let is_onset = before.as_ref().is_none_or(|before| before.kind != kind);
        if let Some(before) = before.filter(|_| !self.is_planned) {
            self.packed.push(before.whole.iter().map(Packed::new).collect());
        }
        self.last = Some(Open { key, kind, is_onset, whole: times, piece: None });
        self.cells += 1;
        intervals.push(interval);
    }

    fn extend(&mut self, intervals: &mut Vec<Interval>, interval: Interval, times: Vec<Tally>) {
        let kind = Kind::of(&interval);
        let has_room = self.pieces < self.room();
        let (Some(open), Some(last)) = (&mut self.last, intervals.last_mut()) else { return };
        let mut whole = match std::mem::take(&mut last.cell) {
            Cell::Ends(whole) => *whole,
            Cell::Whole | Cell::Part => last.clone(),
        };
        merge_times(&mut open.whole, &times);
        whole.join(&interval);
        set_times(&mut whole, &open.whole);
        // The first failing interval stays alone, since it says when the first request failed; so do
        // intervals with marks.
        let is_alone = (open.is_onset && kind != Kind::Good) || last.marked || interval.marked;
        let is_same = kind == open.kind && !is_alone;
        if is_same || !has_room {
            match &mut open.piece {
                None => *last = whole,
                Some(piece) => {
                    merge_times(piece, &times);
                    last.join(&interval);
                    set_times(last, piece);
                    last.cell = Cell::Ends(Box::new(whole));
                }
            }
        } else {
            last.cell = Cell::Part;
            open.piece = Some(times);
            self.pieces += 1;
            intervals.push(Interval { cell: Cell::Ends(Box::new(whole)), ..interval });
        }
        open.is_onset = kind != open.kind;
        open.kind = kind;
    }

    /// Makes cells twice as wide.
    fn widen(&mut self, intervals: &mut Vec<Interval>, machine: &mut Vec<MachineInterval>) {
        let Some(mut open) = self.last.take() else { return };
        self.width = self.width * 2;
        let mut histograms: Vec<Vec<Tally>> = std::mem::take(&mut self.packed)
            .iter()
            .map(|cell| cell.iter().map(Packed::open).collect())
            .collect();
        histograms.push(std::mem::take(&mut open.whole));
        let mut cells: Vec<Wide> = Vec::new();
        for (pieces, times) in in_cells(std::mem::take(intervals)).into_iter().zip(histograms) {
            let Some(whole) = pieces.last().map(|last| last.whole().clone()) else { continue };
            let next = Wide { key: self.key(&whole), whole, times, times_of_last: None, pieces };
            match cells.last_mut().filter(|cell| cell.key == next.key) {
                Some(cell) => cell.join(next),
                None => cells.push(next),
            }
        }
        (self.cells, self.pieces) = (0, 0);
        let mut histograms = Vec::with_capacity(cells.len());
        for cell in cells {
            let Wide { key, whole, times, times_of_last, mut pieces } = cell;
            self.cells += 1;
            let more = pieces.len() as u64 - 1;
            let is_split = more > 0 && self.pieces + more <= self.room();
            if is_split {
                self.pieces += more;
                pieces.iter_mut().for_each(|piece| piece.cell = Cell::Part);
                if let Some(end) = pieces.last_mut() {
                    end.cell = Cell::Ends(Box::new(whole));
                }
                intervals.append(&mut pieces);
            } else {
                intervals.push(whole);
            }
            histograms.push((key, times, times_of_last.filter(|_| is_split), is_split));
        }
        if let Some((key, whole, times_of_last, is_split)) = histograms.pop() {
            let piece = open.piece.or(times_of_last).filter(|_| is_split);
            self.last = Some(Open { key, whole, piece, ..open });
        }
        let pack = |(_, times, ..): (Key, Vec<Tally>, _, _)| times.iter().map(Packed::new).collect();
        self.packed = histograms.into_iter().map(pack).collect();
        let mut parts = std::mem::take(machine).into_iter();
        let mut kept = parts.next();
        let cell_of = |part: &MachineInterval| intervals.partition_point(|interval| interval.at < part.at);
        for part in parts {
            match &mut kept {
                Some(kept) if cell_of(kept) == cell_of(&part) => kept.join(&part),
                _ => machine.extend(kept.replace(part)),
            }
        }
        machine.extend(kept);
    }
}

/// A cell that is made of narrower ones.
struct Wide {
    key: Key,
    whole: Interval,
    times: Vec<Tally>,
    /// Response times of the last of the narrower cells, if there were several.
    times_of_last: Option<Vec<Tally>>,
    pieces: Vec<Interval>,
}

impl Wide {
    fn join(&mut self, next: Self) {
        self.whole.join(&next.whole);
        merge_times(&mut self.times, &next.times);
        set_times(&mut self.whole, &self.times);
        self.times_of_last = Some(next.times);
        let is_even = |pieces: &[Interval]| match pieces {
            [one] => one.disturbed() == 0 && one.thresholds_failed == 0 && !one.marked,
            _ => false,
        };
        if is_even(&self.pieces) && is_even(&next.pieces) {
            self.pieces = vec![self.whole.clone()];
        } else {
            self.pieces.extend(next.pieces);
        }
    }
}

/// Intervals cell by cell, each of at least one piece.
fn in_cells(intervals: Vec<Interval>) -> Vec<Vec<Interval>> {
    let mut cells = Vec::new();
    let mut pieces = Vec::new();
    for interval in intervals {
        let is_end = interval.cell != Cell::Part;
        pieces.push(interval);
        if is_end {
            cells.push(std::mem::take(&mut pieces));
        }
    }
    cells
}

fn merge_times(mine: &mut [Tally], theirs: &[Tally]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        mine.response_time.merge(&theirs.response_time);
        join_limits(mine, theirs.limits);
    }
}

fn join_limits(mine: &mut Tally, limits: Option<(u64, u64)>) {
    mine.limits = match (mine.limits, limits) {
        (Some((low, high)), Some((lower, higher))) => Some((low.min(lower), high.max(higher))),
        (mine, theirs) => mine.or(theirs),
    };
}

/// Sets the percentiles of an interval to those of its response times by scenario.
fn set_times(interval: &mut Interval, by_scenario: &[Tally]) {
    if let [all] = by_scenario {
        interval.response_time = times(all);
        return;
    }
    let mut all = Tally::default();
    for (scenario, of) in interval.scenarios.iter_mut().zip(by_scenario) {
        scenario.response_time = times(of);
        all.response_time.merge(&of.response_time);
        join_limits(&mut all, of.limits);
    }
    interval.response_time = times(&all);
}

/// The response times of a cell, as small as they can be kept.
#[derive(Clone, Debug)]
struct Packed {
    counts: Box<[u8]>,
    limits: Option<(u64, u64)>,
}

impl Packed {
    fn new(times: &Tally) -> Self {
        Self { counts: times.response_time.packed(), limits: times.limits }
    }

    fn open(&self) -> Tally {
        Tally { response_time: Delta::unpacked(&self.counts), limits: self.limits, ..Tally::default() }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Random;

    use super::*;
    use crate::interval::PERCENTILES;

    const SECOND: Nanos = Nanos::from_secs(1);

    /// A second of a run with some response times, of which some may have failed.
    fn second(number: u64, failed: u64, times: &[u64]) -> Interval {
        let mut tally = Tally { ok: times.len() as u64, failed, ..Tally::default() };
        times.iter().for_each(|&time| tally.response_time.merge(&Delta::of(time, 1)));
        tally.limits = times.iter().min().copied().zip(times.iter().max().copied());
        Interval {
            at: SECOND * number,
            length: SECOND,
            ok: tally.ok,
            completed: tally.ok,
            failed,
            in_flight: number % 7,
            response_time: super::times(&tally),
            steps: vec![tally],
            ..Interval::default()
        }
    }

    fn machine(number: u64) -> MachineInterval {
        let pressure = Some(Nanos(number));
        MachineInterval { at: SECOND * number, length: SECOND, pressure, ..MachineInterval::default() }
    }

    struct Kept {
        downsampler: IntervalDownsampler,
        intervals: Vec<Interval>,
        machine: Vec<MachineInterval>,
    }

    impl Kept {
        fn new(planned: Option<u64>, cuts: &[u64]) -> Self {
            let cuts = cuts.iter().map(|&cut| SECOND * cut).collect();
            let planned = planned.map(|seconds| SECOND * seconds);
            let downsampler = IntervalDownsampler::new(SECOND, planned, cuts, Outline::default());
            Self { downsampler, intervals: Vec::new(), machine: Vec::new() }
        }

        fn add(&mut self, interval: Interval, seen: Option<MachineInterval>) {
            self.downsampler.add(&mut self.intervals, &mut self.machine, interval, seen);
        }

        fn cells(&self) -> Vec<&Interval> {
            self.intervals.iter().filter(|one| one.cell != Cell::Part).map(Interval::whole).collect()
        }
    }

    #[test]
    fn an_hour_of_seconds_is_kept_as_it_was() {
        for planned in [None, Some(3_600)] {
            let mut kept = Kept::new(planned, &[]);
            let all: Vec<Interval> =
                (1..=3_600).map(|number| second(number, number % 2, &[number])).collect();
            all.iter().for_each(|one| kept.add(one.clone(), None));
            let bare = |one: &Interval| Interval { steps: Vec::new(), ..one.clone() };
            assert!(kept.intervals.iter().eq(all.iter().map(bare).collect::<Vec<_>>().iter()));
        }
    }

    /// Percentiles, counts and the state of the machine, against all added intervals; in a run of known
    /// length and in one without an end.
    #[test]
    fn percentiles_of_joined_intervals_are_those_of_all_values() {
        let seconds = 20_011;
        for planned in [None, Some(seconds)] {
            let mut random = Random::new(3, 0);
            let mut kept = Kept::new(planned, &[100, 5_000]);
            let mut all: Vec<Vec<u64>> = vec![Vec::new()];
            for number in 1..=seconds {
                let times: Vec<u64> = (0..random.below(5)).map(|_| 1_000 + random.below(1_000_000)).collect();
                kept.add(second(number, 0, &times), (number % 3 > 0).then(|| machine(number)));
                all.push(times);
            }
            let cells = kept.cells();
            assert!(cells.len() <= MOST_INTERVALS as usize + 3 && cells.len() > 1_500, "{}", cells.len());
            let mut begin = 0;
            for cell in cells {
                let end = cell.at.0 / SECOND.0;
                assert_eq!(cell.length, SECOND * (end - begin));
                assert_eq!(u64::from(cell.joined) + 1, end - begin);
                assert!(![100, 5_000].iter().any(|cut| begin < *cut && *cut < end), "{begin} {end}");
                let mut values = all[begin as usize + 1..=end as usize].concat();
                values.sort_unstable();
                assert_eq!(cell.ok, values.len() as u64);
                let truth = |p: f64| values[((p / 100.0 * values.len() as f64).ceil() as usize).max(1) - 1];
                for (shown, p) in cell.response_time.into_iter().flatten().zip(PERCENTILES) {
                    let truth = truth(p);
                    assert!((truth..=truth + truth / 1_000 + 1).contains(&shown), "{shown} for {truth}");
                }
                begin = end;
            }
            assert_eq!(begin, seconds);
            let pressure: u64 = kept.machine.iter().filter_map(|part| part.pressure).map(|one| one.0).sum();
            assert_eq!(pressure, (1..=seconds).filter(|number| number % 3 > 0).sum::<u64>());
            let place_of =
                |part: &MachineInterval| kept.intervals.partition_point(|interval| interval.at < part.at);
            let places: Vec<usize> = kept.machine.iter().map(place_of).collect();
            assert!(places.is_sorted_by(|a, b| a < b), "one part of an interval");
        }
    }

    #[test]
    fn an_outage_has_its_times_in_a_run_of_days() {
        for planned in [None, Some(259_200)] {
            let mut kept = Kept::new(planned, &[]);
            // It stands still for two seconds, and then requests fail for three minutes.
            let outages = [70_000, 259_001];
            for number in 1..=259_200 {
                let in_it = outages.iter().find(|&&from| (from + 1..=from + 182).contains(&number));
                let one = match in_it {
                    None => second(number, 0, &[number]),
                    Some(&from) if number <= from + 2 => Interval { in_flight: 3, ..second(number, 0, &[]) },
                    Some(_) => second(number, 2, &[]),
                };
                kept.add(one, None);
            }
            assert!(kept.intervals.len() < MOST_INTERVALS as usize + 100, "{}", kept.intervals.len());
            let seconds = |nanos: Nanos| nanos.0 / SECOND.0;
            for from in outages {
                let begins = |one: &&Interval| one.at - one.length == SECOND * from;
                let still = kept.intervals.iter().find(begins).expect("it begins there");
                assert_eq!((still.ok, still.failed, still.disturbed()), (0, 0, still.joined + 1));
                let failing = kept.intervals.iter().filter(|one| one.failed > 0);
                let failing: Vec<_> =
                    failing.filter(|one| seconds(one.at).abs_diff(from + 91) <= 91).collect();
                assert_eq!(failing.first().map(|one| seconds(one.at)), Some(from + 3));
                assert_eq!(failing.last().map(|one| seconds(one.at)), Some(from + 182));
                assert_eq!(failing.iter().map(|one| one.failed).sum::<u64>(), 360);
            }
            let cells = kept.cells();
            assert_eq!(cells.iter().map(|one| one.failed).sum::<u64>(), 720);
            assert_eq!(cells.iter().map(|one| one.length).fold(Nanos::ZERO, |a, b| a + b), SECOND * 259_200);
        }
    }

    #[test]
    fn a_run_that_fails_now_and_then_for_days_is_bounded_and_has_room_for_its_end() {
        for planned in [None, Some(259_200)] {
            let mut kept = Kept::new(planned, &[]);
            for number in 1..=259_200 {
                kept.add(second(number, u64::from(number % 5 == 0), &[7]), Some(machine(number)));
            }
            let most = (MOST_INTERVALS + MOST_PIECES) as usize;
            assert!(kept.intervals.len() <= most && kept.machine.len() <= most, "{}", kept.intervals.len());
            assert_eq!(kept.intervals.iter().map(|one| one.failed).sum::<u64>(), 259_200 / 5);
            assert_eq!(kept.intervals.iter().map(Interval::disturbed).sum::<u32>(), 259_200 / 5);
        }
    }

    #[test]
    fn an_interval_with_a_mark_stays_alone() {
        for planned in [None, Some(36_000)] {
            let mut kept = Kept::new(planned, &[]);
            for number in 1..=36_000 {
                kept.add(Interval { marked: number == 7_777, ..second(number, 0, &[7]) }, None);
            }
            let marked: Vec<&Interval> = kept.intervals.iter().filter(|one| one.marked).collect();
            let shape: Vec<_> = marked.iter().map(|one| (one.at, one.length, one.joined)).collect();
            assert_eq!(shape, [(SECOND * 7_777, SECOND, 0)]);
            assert_eq!(kept.cells().iter().filter(|one| one.marked).count(), 1);
        }
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let mut random = Random::new(9, 0);
        let mut delta = Delta::default();
        for _ in 0..300 {
            delta.merge(&Delta::of(random.below(1 << 40), 1 + random.below(1 << 50)));
        }
        assert_eq!(Delta::unpacked(&delta.packed()), delta);
        assert_eq!(Delta::unpacked(&Delta::default().packed()), Delta::default());
    }
}
