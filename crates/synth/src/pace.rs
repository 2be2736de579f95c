//! Distances between the times of records, and whether they keep the points of a series apart.
//!
//! Some stores identify a point by its series and its time, and keep only one of two points that have both in
//! common. Batches of a run follow each other in time, each in a span of its own ([`Spec::span`]); within and
//! between them a series comes again after as many records as there are series. Therefore no two points are
//! the same if these records take the unit of times at least, or if a batch has no series twice and spans
//! begin on whole units.

use crate::format::Format;
use crate::kind::Kind;
use crate::spec::{HOST_METRICS, Shape, Spec};

/// The scripts' step, in nanoseconds: the longest that follows from a rate.
const LONGEST: u64 = 1_000_000;
/// Steps where neither a step nor a rate is known, in nanoseconds. Times do not run ahead of the clock below
/// 10 million records per second; where points have to be kept apart, below half a million.
const UNKNOWN: u64 = 100;
const UNKNOWN_APART: u64 = 2_000;

impl Spec {
    /// Time from one record of a batch to the next, in nanoseconds.
    pub fn step(&self) -> u64 {
        self.step_ns.unwrap_or_else(|| match self.knows_points_by_time() {
            true => self.least_step().clamp(UNKNOWN, UNKNOWN_APART),
            false => UNKNOWN,
        })
    }

    /// The step for this many records per second: with it, times keep up with the clock and do not run ahead
    /// of it. If it helps to keep points apart, a little less, so that spans are whole units.
    pub fn step_at(&self, records_per_second: f64) -> u64 {
        let step = ((1e9 / records_per_second) as u64).clamp(1, LONGEST);
        let (unit, size) = (self.time_unit.nanos(), u64::from(self.batch_size.max(1)));
        let whole = size.saturating_mul(step) / unit * unit / size;
        let spec = Self { step_ns: Some(whole), ..self.clone() };
        if whole > 0 && spec.keeps_points_apart(u32::MAX) { whole } else { step }
    }

    /// The time that the records of a batch take, in nanoseconds: those of the next begin then, or later. The
    /// rounding of steps to whole nanoseconds is undone if that makes whole units.
    pub fn span(&self) -> u64 {
        let (unit, size) = (self.time_unit.nanos(), u64::from(self.batch_size));
        let span = size.saturating_mul(self.step()).max(1);
        match span.checked_next_multiple_of(unit) {
            Some(whole) if whole - span < size && whole - span < unit => whole,
            _ => span,
        }
    }

    /// Returns `true` if receivers of the format identify a point by its series and its time.
    pub fn knows_points_by_time(&self) -> bool {
        match self.format {
            Format::InfluxLine | Format::RemoteWrite => true,
            Format::OtlpProtobuf => self.kind == Kind::Metrics,
            _ => false,
        }
    }

    /// Returns `true` if no two records of a run with this many threads have the same series and time. Times
    /// of spans are drawn, so that it takes nanoseconds to keep them apart, and nearly always does.
    pub fn keeps_points_apart(&self, threads: u32) -> bool {
        let (unit, step, gap) = (self.time_unit.nanos(), self.step(), u64::from(self.gap()));
        if self.kind == Kind::Traces {
            return unit == 1 && step > 0;
        }
        let is_whole = self.span().is_multiple_of(unit);
        let is_long = gap.saturating_mul(step) >= unit;
        // The batches of one thread follow the order of their records; those of several threads do so if they
        // do not share any unit.
        (is_long && (threads == 1 || is_whole)) || (is_whole && u64::from(self.batch_size) <= gap)
    }

    /// The smallest cardinality that keeps points apart at this many records per second, if there is
    /// one.
    pub fn cardinality_apart(&self, records_per_second: f64, threads: u32) -> Option<u32> {
        if self.kind != Kind::Metrics {
            return None;
        }
        let step = ((1e9 / records_per_second) as u64).clamp(1, LONGEST);
        let gaps = [self.time_unit.nanos().div_ceil(step), self.batch_size.into()];
        let metrics = if self.shape == Shape::Host { HOST_METRICS } else { 1 };
        let enough = gaps.into_iter().filter_map(|gap| {
            let cardinality = u32::try_from(gap).ok()?.checked_mul(metrics)?;
            let mut spec = Self { cardinality: Some(cardinality), ..self.clone() };
            spec.step_ns = Some(spec.step_at(records_per_second));
            (spec.validate().is_ok() && spec.keeps_points_apart(threads)).then_some(cardinality)
        });
        enough.min()
    }

    /// The smallest step with which points are kept apart, of those that make spans of whole units.
    fn least_step(&self) -> u64 {
        let (unit, size) = (self.time_unit.nanos(), u64::from(self.batch_size.max(1)));
        let gap = u64::from(self.gap().max(1));
        let units = size.div_ceil(gap);
        // Steps are rounded down, which one more unit makes up for.
        let steps = [units, units + 1].map(|units| units * unit / size);
        steps.into_iter().find(|step| size <= gap || gap * step >= unit).unwrap_or(steps[1])
    }

    /// Records of a batch after which a series comes again, at the soonest. Neighbouring records of other
    /// kinds may have the same tags.
    fn gap(&self) -> u32 {
        match (self.kind, self.shape) {
            (Kind::Metrics, Shape::Host) => self.series_count() / HOST_METRICS,
            (Kind::Metrics, _) => self.series_count(),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::TimeUnit;

    fn spec(format: Format, kind: Kind, time_unit: TimeUnit) -> Spec {
        Spec { format, kind, time_unit, ..Spec::default() }
    }

    #[test]
    fn steps_follow_from_the_rate() {
        let spec = spec(Format::RemoteWrite, Kind::Metrics, TimeUnit::Ms);
        // Whole milliseconds, if that is enough for 700 series.
        for (rate, step) in [(10.0, 1_000_000), (1e3, 1_000_000), (3e5, 3_000), (6e5, 1_666), (4e9, 1)] {
            assert_eq!(spec.step_at(rate), step, "{rate}");
        }
        assert_eq!(Spec { step_ns: Some(3_000), ..spec.clone() }.span(), 3_000_000);
        assert_eq!(Spec { step_ns: Some(1_666), ..spec.clone() }.span(), 1_666_000);
        let sevens = Spec { batch_size: 700, ..spec.clone() };
        assert_eq!((sevens.step_at(6e5), sevens.step()), (1_428, 1_428));
        assert_eq!(Spec { step_ns: Some(1_428), ..sevens }.span(), 1_000_000);
        assert_eq!((spec.step(), spec.span()), (2_000, 2_000_000));
        assert_eq!(Spec { step_ns: Some(0), ..spec }.span(), 1);
        assert_eq!(Spec::default().step(), UNKNOWN);
    }

    #[test]
    fn it_is_known_when_points_cannot_be_kept_apart() {
        let at = |spec: &Spec, rate: f64, threads| {
            Spec { step_ns: Some(spec.step_at(rate)), ..spec.clone() }.keeps_points_apart(threads)
        };
        let metrics = spec(Format::RemoteWrite, Kind::Metrics, TimeUnit::Ms);
        assert!(at(&metrics, 5e5, 8) && at(&metrics, 6.9e5, 1));
        assert!(!at(&metrics, 6.9e5, 2) && !at(&metrics, 8e5, 1));
        assert_eq!(metrics.cardinality_apart(8e5, 1), Some(800));
        assert_eq!(metrics.cardinality_apart(8e5, 2), Some(1_000));
        assert_eq!(metrics.cardinality_apart(2e6, 2), None);
        let many = Spec { cardinality: Some(1_000), ..metrics.clone() };
        assert!(at(&many, 8e5, 2) && at(&many, 1e6, 2) && !at(&many, 1.1e6, 1));
        let few = Spec { cardinality: Some(1), ..metrics.clone() };
        assert!(at(&few, 1e3, 2) && !at(&few, 1.1e3, 1));
        let hosts = Spec { shape: Shape::Host, format: Format::InfluxLine, ..Spec::default() };
        assert!(at(&hosts, 1e6, 4) && !at(&hosts, 2e6, 1));
        assert_eq!(hosts.cardinality_apart(2e6, 1), Some(6_000));
        let logs = |unit| spec(Format::InfluxLine, Kind::Logs, unit);
        assert!(at(&logs(TimeUnit::Ms), 1e3, 2) && !at(&logs(TimeUnit::Ms), 2e3, 1));
        assert!(at(&logs(TimeUnit::Us), 1e6, 2) && at(&logs(TimeUnit::Ns), 1e8, 2));
        // Without a rate they are, as long as that does not take steps that are too long.
        for (batch_size, cardinality, is_apart) in [
            (1_000, 700, true),
            (2_100, 700, true),
            (500, 700, true),
            (1_000, 1_000, true),
            (1_000, 400, false),
        ] {
            let spec = Spec { batch_size, cardinality: Some(cardinality), ..metrics.clone() };
            assert_eq!(spec.keeps_points_apart(9), is_apart, "{batch_size} {cardinality} {}", spec.step());
        }
        let spans = |unit| spec(Format::InfluxLine, Kind::Traces, unit);
        assert!(at(&spans(TimeUnit::Ns), 1e6, 2) && !at(&spans(TimeUnit::Us), 10.0, 2));
    }
}
