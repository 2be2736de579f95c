//! Arguments of wrk's `done`.

use mlua::{Lua, MetaMethod, Table, UserData, UserDataFields, UserDataMethods};

/// Measurements of a run, for `done`.
#[derive(Clone, Debug, Default)]
pub struct WrkSummary {
    /// Length of the run, in microseconds.
    pub duration_us: u64,
    /// Completed requests.
    pub requests: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Errors by wrk's classes.
    pub errors: WrkErrors,
    /// Response times in microseconds.
    pub latency: WrkStats,
    /// Requests per second, each a measurement of one worker.
    pub requests_per_second: WrkStats,
}

/// Errors by wrk's classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrkErrors {
    /// Connections that could not be opened.
    pub connect: u64,
    /// Connections that failed while a response was read.
    pub read: u64,
    /// Requests that could not be written.
    pub write: u64,
    /// Statuses above 399.
    pub status: u64,
    /// Requests that timed out.
    pub timeout: u64,
}

/// Whole numbers and how often each was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrkStats {
    values: Vec<(u64, u64)>,
}

impl WrkStats {
    /// Statistics of these values and counts; values may come in any order.
    pub fn new(mut values: Vec<(u64, u64)>) -> Self {
        values.retain(|(_, count)| *count > 0);
        values.sort_unstable();
        values.dedup_by(|(next, more), (value, count)| {
            let same = next == value;
            *count += if same { *more } else { 0 };
            same
        });
        Self { values }
    }

    fn count(&self) -> u64 {
        self.values.iter().map(|(_, count)| count).sum()
    }

    fn mean(&self) -> f64 {
        let sum: f64 = self.values.iter().map(|&(value, count)| value as f64 * count as f64).sum();
        if self.values.is_empty() { 0.0 } else { sum / self.count() as f64 }
    }

    /// Of a sample, as wrk's: with `n - 1`.
    fn stdev(&self) -> f64 {
        let (mean, count) = (self.mean(), self.count());
        let square = |value: u64| (value as f64 - mean).powi(2);
        let sum: f64 = self.values.iter().map(|&(value, count)| square(value) * count as f64).sum();
        if count < 2 { 0.0 } else { (sum / (count - 1) as f64).sqrt() }
    }

    /// The smallest value that at least this percentage of all values does not exceed (nearest rank).
    fn percentile(&self, percent: f64) -> u64 {
        let rank = (percent / 100.0 * self.count() as f64).ceil() as u64;
        let mut passed = 0;
        let found = self.values.iter().find(|(_, count)| {
            passed += count;
            passed >= rank
        });
        found.or(self.values.last()).map_or(0, |(value, _)| *value)
    }
}

impl UserData for WrkStats {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("min", |_, stats| Ok(stats.values.first().map_or(0, |v| v.0) as f64));
        fields.add_field_method_get("max", |_, stats| Ok(stats.values.last().map_or(0, |v| v.0) as f64));
        fields.add_field_method_get("mean", |_, stats| Ok(stats.mean()));
        fields.add_field_method_get("stdev", |_, stats| Ok(stats.stdev()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("percentile", |_, stats, percent: f64| {
            if (0.0..=100.0).contains(&percent) {
                return Ok(stats.percentile(percent) as f64);
            }
            Err(mlua::Error::RuntimeError(format!("percentile: {percent} is not between 0 and 100")))
        });
        methods.add_meta_method(MetaMethod::Call, |_, stats, at: f64| {
            let found = (at as usize).checked_sub(1).and_then(|at| stats.values.get(at));
            Ok((found.map(|found| found.0 as f64), found.map(|found| found.1 as f64)))
        });
        methods.add_meta_method(MetaMethod::Len, |_, stats, ()| Ok(stats.values.len()));
    }
}

impl WrkSummary {
    /// The table `summary`.
    pub(crate) fn table(&self, lua: &Lua) -> mlua::Result<Table> {
        let errors = lua.create_table()?;
        let WrkErrors { connect, read, write, status, timeout } = self.errors;
        for (name, count) in
            [("connect", connect), ("read", read), ("write", write), ("status", status), ("timeout", timeout)]
        {
            errors.set(name, count as f64)?;
        }
        let summary = lua.create_table()?;
        summary.set("duration", self.duration_us as f64)?;
        summary.set("requests", self.requests as f64)?;
        summary.set("bytes", self.bytes as f64)?;
        summary.set("errors", errors)?;
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_the_values() {
        let stats = WrkStats::new(vec![(30, 1), (10, 1), (20, 1), (10, 1), (99, 0)]);
        assert_eq!(stats.values, [(10, 2), (20, 1), (30, 1)]);
        assert_eq!((stats.count(), stats.mean()), (4, 17.5));
        // Squares of -7.5, -7.5, 2.5 and 12.5, divided by three.
        assert!((stats.stdev() - (275.0f64 / 3.0).sqrt()).abs() < 1e-9);
        let percentiles = [0.0, 25.0, 50.0, 75.0, 99.0, 100.0].map(|percent| stats.percentile(percent));
        assert_eq!(percentiles, [10, 10, 10, 20, 30, 30]);
        let empty = WrkStats::default();
        assert_eq!((empty.percentile(50.0), empty.mean(), empty.stdev()), (0, 0.0, 0.0));
    }
}
