//! The record of a run so far, with its thresholds.

use plimsoll_core::Nanos;
use plimsoll_metrics::{
    Basis, GrowingRecord, Interval, IntervalDownsampler, MachineFacts, MachineInterval, Outline, RateChange,
    RunRecord, ThresholdResult, ThresholdSpec, ThresholdWatch, Verdict,
};

/// The record of a run that goes on, as if it ended with the last interval.
#[derive(Debug)]
pub(crate) struct Standing {
    record: GrowingRecord,
    watch: ThresholdWatch,
    thresholds: Vec<ThresholdResult>,
}

impl Standing {
    /// Before the first interval. `length` is that of an interval.
    pub(crate) fn new(
        outline: &Outline,
        basis: Basis,
        downsampler: IntervalDownsampler,
        thresholds: &[ThresholdSpec],
        length: Nanos,
    ) -> Self {
        Self {
            record: GrowingRecord::new(outline, basis, downsampler),
            watch: ThresholdWatch::new(thresholds, outline, length),
            thresholds: Vec::new(),
        }
    }

    /// Takes the next interval, while it has its steps, and the state of the machine in it.
    pub(crate) fn add(
        &mut self,
        interval: &mut Interval,
        machine: Option<(&MachineInterval, &MachineFacts)>,
    ) {
        // The run control has looked at it, too, and has noted in it what it saw.
        let failed = std::mem::take(&mut interval.thresholds_failed);
        self.watch.look(interval);
        interval.thresholds_failed = failed;
        self.record.add(interval, machine);
        if !interval.warmup {
            self.thresholds = self.watch.worker_status(self.record.record());
        }
    }

    /// Sets the changes of the rate so far.
    pub(crate) fn set_changes(&mut self, changes: Vec<RateChange>) {
        self.record.set_changes(changes);
    }

    /// The record so far, with verdict and thresholds and everything else that a result is made from; `None`
    /// before there is anything to judge.
    pub(crate) fn judged(&mut self, started_unix: Nanos) -> Option<&RunRecord> {
        self.record.judged(started_unix, &self.thresholds)
    }

    /// The record so far, without verdict and thresholds.
    pub(crate) const fn record(&self) -> &RunRecord {
        self.record.record()
    }

    /// The thresholds so far, in the order of the plan.
    pub(crate) fn thresholds(&self) -> &[ThresholdResult] {
        &self.thresholds
    }

    /// The verdict so far; `None` before there is anything to judge.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.record.verdict()
    }
}
