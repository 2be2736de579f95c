//! Ready-made sizes of a load: those of Arc's guide to load tests.

use plimsoll_synth::Kind;

/// Rate and size of a load of one kind, and the response time of a store of Arc's kind under it. All presets
/// send columnar batches, compressed with gzip at level 1, as Arc's scripts do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name of the preset: the kind and the rate.
    pub name: &'static str,
    /// Kind of data.
    pub kind: Kind,
    /// Records per second.
    pub rate: u32,
    /// Records of a batch.
    pub batch_size: u32,
    /// Connections.
    pub connections: u32,
    /// Length of the run in seconds.
    pub seconds: u32,
    /// Expected upper bound of the 99th percentile of the batches' response times, in milliseconds.
    pub p99_ms: u32,
}

const fn preset(
    name: &'static str,
    kind: Kind,
    [rate, batch_size, connections, seconds, p99_ms]: [u32; 5],
) -> Preset {
    Preset { name, kind, rate, batch_size, connections, seconds, p99_ms }
}

/// Records per second for which Arc's scripts have one more worker.
const RECORDS_OF_WORKER: u32 = 10_000;
/// Workers that they begin with at most.
const MOST_WORKERS: u32 = 30;

impl Preset {
    /// All of them: the tables "Batch Size Recommendations" of the guide, and the reported results of its
    /// scripts.
    pub const ALL: [Self; 12] = [
        preset("metrics-100k", Kind::Metrics, [100_000, 500, 10, 30, 10]),
        preset("metrics-500k", Kind::Metrics, [500_000, 1_000, 50, 30, 20]),
        preset("metrics-1m", Kind::Metrics, [1_000_000, 1_000, 100, 30, 30]),
        preset("metrics-3m", Kind::Metrics, [3_000_000, 1_000, 500, 60, 30]),
        preset("logs-50k", Kind::Logs, [50_000, 1_000, 5, 30, 50]),
        preset("logs-100k", Kind::Logs, [100_000, 5_000, 10, 30, 200]),
        preset("logs-200k", Kind::Logs, [200_000, 10_000, 20, 30, 400]),
        preset("logs-1m", Kind::Logs, [1_000_000, 1_000, 400, 60, 100]),
        preset("logs-1m-large", Kind::Logs, [1_000_000, 20_000, 600, 60, 2_000]),
        preset("traces-100k", Kind::Traces, [100_000, 1_000, 10, 30, 100]),
        preset("traces-800k", Kind::Traces, [800_000, 1_000, 500, 60, 100]),
        preset("events-1m", Kind::Events, [1_000_000, 1_000, 400, 60, 100]),
    ];

    /// Defaults of Arc's script for all kinds at once. Its kind is that of the first one.
    pub const OF_UNIFIED_SCRIPT: Self = preset("arc", Kind::Metrics, [2_400_000, 1_000, 800, 60, 100]);

    /// Returns the defaults of Arc's script for a kind of data. The connections are its workers, one for
    /// 10,000 records per second and at most 30; the percentile is that of the guide at this rate, where it
    /// has one, and else what the guide asks of batches of 1,000.
    pub const fn of_script(kind: Kind) -> Self {
        match kind {
            Kind::Metrics => preset("arc", kind, [500_000, 1_000, 30, 30, 20]),
            Kind::Logs => preset("arc", kind, [50_000, 1_000, 5, 30, 50]),
            Kind::Traces | Kind::Events => preset("arc", kind, [100_000, 1_000, 10, 30, 100]),
        }
    }

    /// Returns the preset of a script at another rate, in records per second: with one worker for 10,000 of
    /// them, as the script counts.
    pub fn at_rate(self, records_per_second: f64) -> Self {
        // A float becomes the nearest integer of the type.
        let rate = records_per_second as u32;
        Self { rate, connections: (rate / RECORDS_OF_WORKER).clamp(1, MOST_WORKERS), ..self }
    }

    /// Returns the database that Arc's script for a kind of data writes to by default.
    pub const fn database_of_script(kind: Kind) -> &'static str {
        match kind {
            Kind::Metrics => "default",
            Kind::Logs => "logs",
            Kind::Traces => "traces",
            Kind::Events => "events",
        }
    }

    /// Returns the name of the preset.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the thresholds by which the guide judges a store: its percentile, no errors, and the share of
    /// the rate that it calls excellent, in batches.
    pub fn thresholds(self) -> Vec<String> {
        let batches = f64::from(self.rate) / f64::from(self.batch_size) * 0.95;
        vec![format!("p99<{}ms", self.p99_ms), "error_rate<=0%".to_owned(), format!("rate>{batches}")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_kind_and_the_rate() {
        for preset in Preset::ALL {
            let mut words = preset.name.split('-');
            assert_eq!(words.next(), Some(preset.kind.name()));
            let rate = words.next().unwrap();
            let number: u32 = rate[..rate.len() - 1].parse().unwrap();
            let unit = if rate.ends_with('m') { 1_000_000 } else { 1_000 };
            assert_eq!(number * unit, preset.rate, "{}", preset.name);
            let same = Preset::ALL.iter().filter(|other| other.name == preset.name);
            assert_eq!(same.count(), 1);
        }
        assert_eq!(Preset::ALL[1].thresholds(), ["p99<20ms", "error_rate<=0%", "rate>475"]);
    }
}
