//! Distributions of the values in the records of each kind.
//!
//! They are those of Arc's guide to load tests. Where the guide says nothing, or something else, they are
//! those measured on its scripts; the documentation of each module names the differences.

mod events;
mod logs;
mod metrics;
mod traces;

pub(crate) use metrics::TYPE_NAMES;
use plimsoll_core::Random;

use crate::kind::Kind;
use crate::spec::Spec;
use crate::table::Table;

/// Draws the batches of one kind.
#[derive(Debug)]
pub(crate) enum Source {
    Metrics(metrics::Metrics),
    Logs(logs::Logs),
    Traces(traces::Traces),
    Events(Box<events::Events>),
}

/// Which batch is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Number of the batch in the run.
    pub(crate) index: u64,
    /// Nanoseconds since the epoch at its first record.
    pub(crate) now: u64,
}

/// Purposes of random numbers and identifiers. Each has streams of its own.
mod purpose {
    pub(super) const METRICS: u64 = 1;
    pub(super) const LOGS: u64 = 2;
    pub(super) const TRACES: u64 = 3;
    pub(super) const EVENTS: u64 = 4;
    pub(super) const ORDER: u64 = 5;
    pub(super) const REQUEST: u64 = 6;
    pub(super) const SPAN: u64 = 7;
    pub(super) const TRACE: u64 = 8;
    pub(super) const TRACE_REST: u64 = 9;
}

impl Source {
    /// The source of a spec without problems, and the table that it fills.
    pub(crate) fn new(spec: &Spec, seed: u64) -> (Self, Table) {
        match spec.kind {
            Kind::Metrics => {
                let (source, table) = metrics::Metrics::new(spec, seed);
                (Self::Metrics(source), table)
            }
            Kind::Logs => {
                let (source, table) = logs::Logs::new(spec, seed);
                (Self::Logs(source), table)
            }
            Kind::Traces => {
                let (source, table) = traces::Traces::new(spec, seed);
                (Self::Traces(source), table)
            }
            Kind::Events => {
                let (source, table) = events::Events::new(spec, seed);
                (Self::Events(Box::new(source)), table)
            }
        }
    }

    /// Fills the table with a batch. Passes words that have changed to `rename`: column, number and text.
    pub(crate) fn draw(&mut self, moment: Moment, table: &mut Table, rename: impl FnMut(usize, u32, &str)) {
        match self {
            Self::Metrics(source) => source.draw(moment, table, rename),
            Self::Logs(source) => source.draw(moment, table),
            Self::Traces(source) => source.draw(moment, table),
            Self::Events(source) => source.draw(moment, table),
        }
    }

    /// Returns the number of bytes by which the changes that [`Source::draw`] reports may lengthen a word of
    /// `column`.
    pub(crate) fn spare(&self, column: usize) -> usize {
        match self {
            Self::Metrics(source) => source.spare(column),
            _ => 0,
        }
    }
}

/// The random numbers of one batch: one of its own for each, so that batches can be made in any order.
fn random(seed: u64, purpose: u64, index: u64) -> Random {
    Random::new(seed ^ crate::unique::mix(purpose), index)
}

/// The times of a batch: one step apart, in units rounded down.
#[derive(Clone, Copy, Debug)]
struct Steps {
    step: u64,
    unit: u64,
}

impl Steps {
    fn new(spec: &Spec) -> Self {
        Self { step: spec.step(), unit: spec.time_unit.nanos() }
    }

    /// Quotient and remainder are carried along, so that nothing is divided for each record.
    fn fill(self, now: u64, times: &mut [u64]) {
        let (mut units, mut rest) = (now / self.unit, now % self.unit);
        let (whole, part) = (self.step / self.unit, self.step % self.unit);
        for time in times {
            *time = units;
            units += whole;
            rest += part;
            if rest >= self.unit {
                rest -= self.unit;
                units += 1;
            }
        }
    }
}

/// A uniform whole number from `low` to `high` of 32 random bits; the bias is below `(high - low) / 2^32`.
#[inline]
fn between(bits: u32, low: u32, high: u32) -> u32 {
    low + ((u64::from(bits) * (u64::from(high - low) + 1)) >> 32) as u32
}

/// One of a list.
#[inline]
fn pick<T: Copy>(bits: u32, list: &[T]) -> T {
    list[between(bits, 0, list.len() as u32 - 1) as usize]
}

/// Two halves of 64 random bits.
#[inline]
fn halves(random: &mut Random) -> (u32, u32) {
    let bits = random.bits();
    (bits as u32, (bits >> 32) as u32)
}

/// A table of 100 numbers in which number `n` comes `weights[n]` times, so that a uniform choice has these
/// percentages.
const fn percentages<const KINDS: usize>(weights: [u8; KINDS]) -> [u8; 100] {
    let mut table = [0; 100];
    let (mut at, mut kind) = (0, 0);
    while kind < KINDS {
        let mut count = 0;
        while count < weights[kind] {
            table[at] = kind as u8;
            at += 1;
            count += 1;
        }
        kind += 1;
    }
    assert!(at == 100, "they are percentages");
    table
}

/// The host of something, for all kinds but metrics of hosts.
const REGIONS: &[&str] = &["us-east-1", "us-west-2", "eu-central-1", "ap-south-1"];
const ENVIRONMENTS: &[&str] = &["prod", "staging", "dev"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use crate::table::Cells;

    /// All identifiers of a column in batches of a thousand.
    fn identifiers(kind: Kind, name: &str, batches: u64) -> Vec<[u64; 2]> {
        let (mut source, mut table) = Source::new(&Spec { kind, ..Spec::default() }, 3);
        let column = table.position(name);
        let mut found = Vec::new();
        for index in 0..batches {
            source.draw(Moment { index, now: 1_000_000_000_000 }, &mut table, |_, _, _| {});
            match &table.columns[column].cells {
                Cells::Id(cells) => found.extend(cells.iter().map(|&cell| [0, cell])),
                Cells::TraceId(cells) => found.extend(cells.iter().step_by(10)),
                other => panic!("{other:?}"),
            }
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn a_million_requests_spans_and_traces_have_ids_of_their_own() {
        for (kind, name, batches) in [
            (Kind::Logs, "request_id", 1_000),
            (Kind::Traces, "span_id", 1_000),
            (Kind::Traces, "trace_id", 10_000),
        ] {
            let mut found = identifiers(kind, name, batches);
            assert_eq!(found.len(), 1_000_000);
            assert_ne!(found[0][1], 0);
            found.dedup();
            assert_eq!(found.len(), 1_000_000, "{name}");
        }
    }

    #[test]
    fn percentages_come_as_often_as_they_say() {
        let table = percentages([30, 50, 20]);
        assert_eq!([0, 1, 2].map(|kind| table.iter().filter(|&&it| it == kind).count()), [30, 50, 20]);
        assert_eq!((between(0, 5, 9), between(u32::MAX, 5, 9)), (5, 9));
        assert_eq!(between(u32::MAX, 0, u32::MAX), u32::MAX);
    }

    #[test]
    fn times_are_rounded_down_and_do_not_drift() {
        for (step, unit) in
            [(1_000_000, 1_000_000), (1, 1_000_000_000), (1_500_007, 1_000), (0, 1_000), (7, 1)]
        {
            let mut times = [0; 2_000];
            let now = 1_790_000_000_123_456_789;
            Steps { step, unit }.fill(now, &mut times);
            assert!((0..).zip(times).all(|(row, time)| time == (now + row * step) / unit), "{step} {unit}");
        }
    }
}
