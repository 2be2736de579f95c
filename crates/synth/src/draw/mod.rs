//! What the records of each kind say: their distributions.
//!
//! They are those of Arc's guide to load tests and, where that says nothing or another thing, those that were measured on
//! its scripts; the documentation of each module names the differences.

mod events;
mod logs;
mod metrics;
mod traces;

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
    Events(events::Events),
}

/// Which batch is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Its number in the run.
    pub(crate) index: u64,
    /// Nanoseconds since the epoch at its first record.
    pub(crate) now: u64,
}

/// What random numbers and identifiers are for: each purpose has streams of its own.
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
                (Self::Events(source), table)
            }
        }
    }

    /// Fills the table with a batch. Tells of words that have changed: their column, number and text.
    pub(crate) fn draw(&mut self, moment: Moment, table: &mut Table, rename: impl FnMut(usize, u32, &str)) {
        match self {
            Self::Metrics(source) => source.draw(moment, table, rename),
            Self::Logs(source) => source.draw(moment, table),
            Self::Traces(source) => source.draw(moment, table),
            Self::Events(source) => source.draw(moment, table),
        }
    }

    /// How many bytes longer a word of `column` may become by what [`Source::draw`] tells.
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
        Self { step: spec.step_ns, unit: spec.time_unit.nanos() }
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
    low + (u64::from(bits) * (u64::from(high - low) + 1) >> 32) as u32
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

/// A table of 100 numbers in which number `n` comes `weights[n]` times, so that a uniform choice has these percentages.
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

/// Where something runs, for all kinds but metrics of hosts.
const REGIONS: &[&str] = &["us-east-1", "us-west-2", "eu-central-1", "ap-south-1"];
const ENVIRONMENTS: &[&str] = &["prod", "staging", "dev"];
