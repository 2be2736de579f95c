//! The result of a sweep: the figures of a server at several levels of one setting, and the law that fits.

use plimsoll_core::{Nanos, figure};
use plimsoll_metrics::RunRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::capacity::SearchResult;
use crate::contract::event_streams::EventStreamsResult;
use crate::contract::result::{OutcomeResult, Tool};
use crate::contract::trial::TrialFigures;

/// The version of this contract: raised when a field changes its meaning or goes, not when one is added.
pub const SWEEP_SCHEMA_VERSION: u32 = 1;

/// The result of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepResult {
    /// Version of this contract.
    pub schema_version: u32,
    /// The program that made it.
    pub tool: Tool,
    /// Identity and circumstances.
    pub sweep: SearchResult,
    /// The setting that was varied: connections, streams, threads, rate or batch-size.
    pub setting: String,
    /// Levels of the sweep in the order of the command.
    pub levels: Vec<SweepLevel>,
    /// True if a signal ended it; left out otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The Universal Scalability Law that fits throughput against concurrency; null if there is none.
    pub usl: Option<UslResult>,
    /// Reason why there is none.
    pub usl_missing: Option<String>,
}

/// One level of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepLevel {
    /// The setting's value.
    pub value: f64,
    /// Figures of the level.
    #[serde(flatten)]
    pub figures: TrialFigures,
    /// Records acknowledged per second; omitted where requests carry none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records_per_s: Option<f64>,
    /// Figures of its streams of events; omitted where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_streams: Option<StreamLevel>,
    /// Result of the SLO at this level: holds, breaks, unclear, or not_applied if the generator was the
    /// limit; null without an SLO.
    pub finding: Option<String>,
}

/// Streams of events at one level of a sweep. Times are in nanoseconds, null with too few samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamLevel {
    /// Tokens per second, of all users together.
    pub tokens_per_s: Option<f64>,
    /// Tokens per second that one user sees once the answer has begun.
    pub tokens_per_s_per_user: Option<f64>,
    /// Median of the time to first token.
    pub ttft_p50: Option<u64>,
    /// 99th percentile of the time to first token.
    pub ttft_p99: Option<u64>,
    /// 99th percentile of the time between two events with content.
    pub itl_p99: Option<u64>,
}

impl StreamLevel {
    /// The streams of a run; `None` if it had none.
    pub fn new(record: &RunRecord) -> Option<Self> {
        let answered = record.streamed();
        let streams = EventStreamsResult::new(record.total.event_streams.as_ref()?, answered);
        Some(Self {
            tokens_per_s: streams.tokens_per_s,
            tokens_per_s_per_user: streams.tokens_per_s_per_user,
            ttft_p50: streams.ttft.p.p50,
            ttft_p99: streams.ttft.p.p99,
            itl_p99: streams.itl.p.p99,
        })
    }

    /// Heads of the columns that [`cells`](Self::cells) fills.
    pub(crate) const HEADS: [&str; 5] = ["tokens", "for each user", "TTFT p50", "TTFT p99", "ITL p99"];

    /// The figures for people.
    pub(crate) fn cells(&self) -> Vec<String> {
        let rates = [self.tokens_per_s, self.tokens_per_s_per_user];
        let times = [self.ttft_p50, self.ttft_p99, self.itl_p99];
        let rates = rates.map(|rate| rate.map_or("-".to_owned(), figure::per_second));
        let times = times.map(|time| time.map_or("-".to_owned(), |time| figure::nanos(Nanos(time))));
        rates.into_iter().chain(times).collect()
    }

    /// The figures as a part of a line of CSV; all empty without streams.
    fn csv(streams: Option<&Self>) -> String {
        let rate = |of: fn(&Self) -> Option<f64>| streams.and_then(of).map(|rate| format!("{rate:.3}"));
        let time = |of: fn(&Self) -> Option<u64>| streams.and_then(of).map(|time| time.to_string());
        let cells = [
            rate(|one| one.tokens_per_s),
            rate(|one| one.tokens_per_s_per_user),
            time(|one| one.ttft_p50),
            time(|one| one.ttft_p99),
            time(|one| one.itl_p99),
        ];
        cells.map(Option::unwrap_or_default).join(",")
    }
}

/// The law X(N) = λN / (1 + α(N − 1) + βN(N − 1)), fitted (Gunther, Guerrilla Capacity Planning, 2007).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UslResult {
    /// Throughput per second of one request in flight.
    pub lambda_per_s: f64,
    /// Contention: the share of the work that is done one at a time.
    pub alpha: f64,
    /// Coherency: the cost of keeping each pair consistent.
    pub beta: f64,
    /// Requests in flight at which throughput is largest; null if it never falls.
    pub peak_concurrency: Option<f64>,
    /// Lower end of its interval; null if it is not bounded from below.
    pub peak_concurrency_low: Option<f64>,
    /// Upper end of its interval; null if it is not bounded from above.
    pub peak_concurrency_high: Option<f64>,
    /// Throughput per second there.
    pub peak_per_s: Option<f64>,
    /// Lower end of its interval.
    pub peak_per_s_low: Option<f64>,
    /// Upper end of its interval.
    pub peak_per_s_high: Option<f64>,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Root mean square of the relative distances between levels and law.
    pub error: f64,
    /// True if the peak lies beyond the highest level: then it was not seen, but calculated.
    pub extrapolated: bool,
}

/// The JSON Schema of [`SweepResult`].
pub fn schema_sweep() -> serde_json::Value {
    crate::contract::schema_of_written::<SweepResult>()
}

impl SweepResult {
    /// The outcome in the words of a run: that of the level with the worst. Without an SLO nothing is judged,
    /// unless the generator spoiled all levels.
    pub fn outcome(&self) -> OutcomeResult {
        let (all, is_judged) = (self.levels.len(), !self.sweep.slo.is_empty());
        match [self.found("holds"), self.found("breaks"), self.found("not_applied")] {
            [_, breaking, _] if breaking > 0 => OutcomeResult::Fail,
            [holding, ..] if is_judged && holding == all && all > 0 => OutcomeResult::Pass,
            [_, _, spoiled] if is_judged || spoiled == all => OutcomeResult::NoVerdict,
            _ => OutcomeResult::Done,
        }
    }

    /// The number of levels with this finding.
    fn found(&self, finding: &str) -> usize {
        self.levels.iter().filter(|level| level.finding.as_deref() == Some(finding)).count()
    }

    /// What was tried, its largest throughput, and the levels that meet an SLO:
    /// `6 levels of connections, 12,400/s at most, the objectives hold at 4`.
    pub fn headline(&self) -> String {
        let most = self.levels.iter().map(|level| level.figures.achieved_per_s).reduce(f64::max);
        let most = most.map(|most| format!(", {} at most", figure::per_second(most))).unwrap_or_default();
        let levels = if self.levels.len() == 1 { "level" } else { "levels" };
        let holding = match (self.sweep.slo.is_empty(), self.found("holds")) {
            (true, _) => String::new(),
            (false, 0) => ", the objectives hold at none".to_owned(),
            (false, holding) => format!(", the objectives hold at {holding}"),
        };
        format!("{} {levels} of {}{most}{holding}", self.levels.len(), self.setting)
    }

    /// The levels as CSV.
    pub(crate) fn table(&self) -> String {
        let mut csv = format!(
            "{},{},finding,records_per_s,tokens_per_s,\
             tokens_per_s_per_user,ttft_p50_ns,ttft_p99_ns,itl_p99_ns\n",
            self.setting,
            TrialFigures::CSV_HEADS
        );
        for SweepLevel { value, figures, records_per_s, event_streams, finding } in &self.levels {
            let streams = StreamLevel::csv(event_streams.as_ref());
            let records = records_per_s.map(|rate| format!("{rate:.3}")).unwrap_or_default();
            let finding = finding.as_deref().unwrap_or_default();
            csv.push_str(&format!("{value},{},{finding},{records},{streams}\n", figures.csv()));
        }
        csv
    }
}
