//! The result of a sweep: the figures of a server at several levels of one setting, and the law that fits.

use std::io;

use plimsoll_core::Nanos;
use plimsoll_metrics::{RunRecord, figure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::capacity::SearchResult;
use crate::contract::event_streams::EventStreamsResult;
use crate::contract::result::Tool;
use crate::contract::trial::TrialFigures;
use crate::render::layout::{Page, Row};
use crate::{Style, TableFormat};

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
    /// Its levels in the order of the command.
    pub levels: Vec<SweepLevel>,
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
    /// Its figures.
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

/// Writes a sweep; as CSV it is the table of its levels.
///
/// # Errors
/// Errors of the writer.
pub fn render_sweep(
    result: &SweepResult,
    format: TableFormat,
    style: &Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    match format {
        TableFormat::Text => out.write_all(page(result, style).as_bytes()),
        TableFormat::Json => crate::render::write_json(result, out),
        TableFormat::Csv => out.write_all(table(result).as_bytes()),
    }
}

/// The JSON Schema of [`SweepResult`].
pub fn schema_sweep() -> serde_json::Value {
    crate::contract::schema_of_written::<SweepResult>()
}

fn page(result: &SweepResult, style: &Style) -> String {
    let mut page = Page::new(style);
    let sweep = &result.sweep;
    page.heading(&format!("{} {} · sweep {}", result.tool.name, result.tool.version, sweep.id));
    if !sweep.slo.is_empty() {
        page.field("slo", &sweep.slo.join(" and "));
    }
    page.field("load", &sweep.load);
    let circumstances = format!(
        "{}, seed {}, {:.0} s, on {} ({} CPUs, {})",
        sweep.started_at,
        sweep.seed,
        sweep.duration_s,
        sweep.host.hostname,
        sweep.host.cpus,
        sweep.host.kernel
    );
    page.field("sweep", &circumstances);
    page.blank();
    levels(&mut page, result);
    page.blank();
    match (&result.usl, &result.usl_missing) {
        (Some(usl), _) => law(&mut page, usl),
        (None, Some(why)) => page.field("scaling", &format!("no law: {why}")),
        (None, None) => {}
    }
    page.finish()
}

/// The table of the levels alone, as text.
pub(crate) fn levels_table(result: &SweepResult, style: &Style) -> String {
    let mut page = Page::new(style);
    levels(&mut page, result);
    page.finish()
}

fn levels(page: &mut Page<'_>, result: &SweepResult) {
    let rows: Vec<Row> = result.levels.iter().map(row).collect();
    let setting = result.setting.as_str();
    let mut heads: Vec<&str> = [setting].into_iter().chain(TrialFigures::HEADS).collect();
    if result.levels.iter().any(|level| level.records_per_s.is_some()) {
        heads.push("records");
    }
    if result.levels.iter().any(|level| level.event_streams.is_some()) {
        heads.extend(StreamLevel::HEADS);
    }
    heads.push("limited by");
    page.table(&heads, &rows);
}

fn row(level: &SweepLevel) -> Row {
    let mut cells = vec![level.value.to_string()];
    cells.extend(level.figures.cells());
    cells.extend(level.records_per_s.map(figure::per_second));
    cells.extend(level.event_streams.iter().flat_map(StreamLevel::cells));
    cells.push(level.figures.limited_by.replace('_', " "));
    let is_spoiled = level.finding.as_deref() == Some("not_applied");
    let note = level.figures.cause().filter(|_| is_spoiled).map(|found| found.evidence.clone());
    let label = level.finding.clone().unwrap_or_default().replace('_', " ");
    Row { label, cells, note: note.unwrap_or_default() }
}

fn law(page: &mut Page<'_>, usl: &UslResult) {
    let line = format!(
        "{} alone; {} of the work is done one at a time, and each pair costs {:.4} % (off by {})",
        figure::per_second(usl.lambda_per_s),
        figure::share(usl.alpha),
        usl.beta * 100.0,
        figure::share(usl.error),
    );
    page.field("scaling", &line);
    let ends = |low: Option<f64>, high: Option<f64>, show: fn(f64) -> String| match (low, high) {
        (Some(low), Some(high)) => format!(" [{}, {}]", show(low), show(high)),
        (Some(low), None) => format!(" (at least {})", show(low)),
        (None, Some(high)) => format!(" (at most {})", show(high)),
        (None, None) => String::new(),
    };
    let Some((concurrency, rate)) = usl.peak_concurrency.zip(usl.peak_per_s) else {
        return page.field("", "by this law throughput never falls");
    };
    let number: fn(f64) -> String = |value| format!("{value:.1}");
    let line = format!(
        "largest throughput {}{} at {}{} in flight{}",
        figure::per_second(rate),
        ends(usl.peak_per_s_low, usl.peak_per_s_high, figure::per_second),
        number(concurrency),
        ends(usl.peak_concurrency_low, usl.peak_concurrency_high, number),
        if usl.extrapolated { ": extrapolated, beyond what was measured" } else { "" },
    );
    page.field("", &line);
}

fn table(result: &SweepResult) -> String {
    let mut csv = format!(
        "{},{},finding,records_per_s,tokens_per_s,\
         tokens_per_s_per_user,ttft_p50_ns,ttft_p99_ns,itl_p99_ns\n",
        result.setting,
        TrialFigures::CSV_HEADS
    );
    for SweepLevel { value, figures, records_per_s, event_streams, finding } in &result.levels {
        let streams = StreamLevel::csv(event_streams.as_ref());
        let records = records_per_s.map(|rate| format!("{rate:.3}")).unwrap_or_default();
        let finding = finding.as_deref().unwrap_or_default();
        csv.push_str(&format!("{value},{},{finding},{records},{streams}\n", figures.csv()));
    }
    csv
}
