//! Statistics while the run goes on: one row per scenario and interval, and one for all of them.

use std::io::Write;
use std::path::Path;

use plimsoll_core::{ErrorClass, Nanos, figure};
use plimsoll_document::Problem;
use plimsoll_engine::Progress;
use plimsoll_histogram::samples_needed;
use plimsoll_metrics::{MetricRecord, MetricSum, Outline, Tally};
use plimsoll_plan::Plan;
use plimsoll_report::metric::{IntervalMetric, OwnMetric};
use serde_json::json;

use crate::args::live::LiveArgs;
use crate::args::rotate::Rotation;
use crate::base::failure::Failure;
use crate::base::foreign_text::csv_cell;
use crate::base::{messages, streams};
use crate::session::live::rotation::RecordFile;

/// The name of the row of all scenarios.
const TOTAL: &str = "total";

/// The columns of a row, in every format. Metrics of the plan's own follow.
const COLUMNS: &str = "unix_s,at_s,length_s,phase,scenario,started,ended,ok,failed,timed_out,status_3xx,status_4xx,\
                       status_5xx,checks,achieved_per_s,min_ns,p50_ns,p95_ns,p99_ns,max_ns,at_least,records,\
                       content_events,ttft_p50_ns,ttft_p99_ns";

/// Writes the statistics. A file that cannot be written any more is named once, and does not end the run.
pub(crate) struct Statistics {
    out: Option<Output>,
    outline: Outline,
    /// Records that a request carries, by step.
    records: Vec<u32>,
    every: Nanos,
    pending: Option<Pending>,
    /// Records acknowledged so far, by scenario.
    so_far: Vec<u64>,
}

struct Output {
    sink: Sink,
    name: String,
    format: Format,
    /// Rows of the table since its head was written.
    rows: usize,
}

/// The destination of rows.
enum Sink {
    File(Box<RecordFile>),
    Stderr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Csv,
    Json,
    /// For people, on stderr.
    Table,
    /// For people, on stderr, of requests that carry records, which are counted then.
    Lines,
}

impl Format {
    const fn is_for_people(self) -> bool {
        matches!(self, Self::Table | Self::Lines)
    }
}

/// Intervals that make the next rows.
struct Pending {
    phase: &'static str,
    unix: Nanos,
    at: Nanos,
    length: Nanos,
    /// Mean of the iterations per second that were asked for, and the time they cover.
    asked: Option<(f64, Nanos)>,
    scenarios: Vec<Tally>,
    /// Records by scenario: of requests that ended well, and of others.
    records: Vec<[u64; 2]>,
    /// Metrics of the plan's own of which there were values.
    metrics: Vec<MetricRecord>,
}

impl Statistics {
    /// Opens the outputs that were asked for.
    pub(crate) fn open(plan: &Plan, live: &LiveArgs, quiet: bool) -> Result<Self, Failure> {
        let (outline, records) = (plan.outline(), plan.records());
        let so_far = vec![0; outline.scenarios.len()];
        let (out, pending, every) = (None, None, plan.statistics);
        let mut this = Self { out, outline, records, every, pending, so_far };
        let rotation = live.rotation().map_err(Failure::usage)?;
        let Some(path) = live.stats() else { return Ok(this) };
        let name = path.display().to_string();
        let (sink, format) = if name == "-" {
            if rotation != Rotation::default() {
                let problem = Problem::new("--stats - is stderr, which cannot be rotated");
                return Err(Failure::usage(problem.with_hint("write the statistics to a file")));
            }
            if quiet {
                let problem = Problem::new("--quiet and --stats - exclude each other");
                return Err(Failure::usage(problem.with_hint("write the statistics to a file")));
            }
            let counted = this.records.iter().any(|&records| records > 0);
            (Sink::Stderr, if counted { Format::Lines } else { Format::Table })
        } else {
            let (header, format) = if is_csv(path) {
                (format!("{}\n", this.columns()), Format::Csv)
            } else {
                (String::new(), Format::Json)
            };
            (Sink::File(Box::new(RecordFile::create(path, &header, rotation)?)), format)
        };
        this.out = Some(Output { sink, name, format, rows: 0 });
        Ok(this)
    }

    /// The columns of all rows.
    fn columns(&self) -> String {
        let metrics = self.outline.metrics.iter();
        let own = metrics.flat_map(|metric| IntervalMetric::columns(&metric.name, metric.kind));
        std::iter::once(COLUMNS.to_owned()).chain(own).collect::<Vec<_>>().join(",")
    }

    /// Returns `true` if the statistics take up stderr.
    pub(crate) fn is_on_stderr(&self) -> bool {
        self.out.as_ref().is_some_and(|out| out.format.is_for_people())
    }

    /// Takes an interval, and writes when it completes the time between two rows.
    pub(crate) fn add(&mut self, progress: &Progress<'_>) {
        if self.out.is_none() {
            return;
        }
        let interval = progress.interval;
        let phase = match (interval.warmup, interval.drain) {
            (true, _) => "warmup",
            (_, true) => "drain",
            _ => "measure",
        };
        if self.pending.as_ref().is_some_and(|pending| pending.phase != phase) {
            self.write();
        }
        let scenarios = self.outline.scenarios.len();
        let pending = self.pending.get_or_insert_with(|| Pending {
            phase,
            unix: Nanos::ZERO,
            at: Nanos::ZERO,
            length: Nanos::ZERO,
            asked: None,
            scenarios: vec![Tally::default(); scenarios],
            records: vec![[0; 2]; scenarios],
            metrics: Vec::new(),
        });
        // The wanted rate is the mean over the intervals.
        if let Some(asked) = progress.pace.asked {
            let (mean, length) = pending.asked.unwrap_or((0.0, Nanos::ZERO));
            let (before, seconds) = (length.as_secs_f64(), interval.length.as_secs_f64());
            let mean = (mean * before + asked * seconds) / (before + seconds).max(1e-9);
            pending.asked = Some((mean, length + interval.length));
        }
        MetricRecord::merge_all(&mut pending.metrics, &interval.metrics);
        pending.at = interval.at;
        pending.unix = progress.started_unix + interval.at;
        pending.length += interval.length;
        let scenarios = self.outline.scenarios.iter().zip(&mut pending.scenarios).zip(&mut pending.records);
        for ((scenario, tally), records) in scenarios {
            for number in scenario.steps.clone() {
                if let Some(step) = interval.steps.get(number as usize) {
                    tally.merge(step);
                    let each = self.records.get(number as usize).map_or(0, |&each| u64::from(each));
                    records[0] += step.ok * each;
                    records[1] += (step.failed + step.timed_out) * each;
                }
            }
        }
        if pending.length >= self.every {
            self.write();
        }
    }

    /// Writes the rest.
    pub(crate) fn finish(mut self) {
        self.write();
    }

    fn write(&mut self) {
        let (Some(pending), Some(out)) = (self.pending.take(), &mut self.out) else { return };
        let mut total = Tally::default();
        pending.scenarios.iter().for_each(|tally| total.merge(tally));
        for (so_far, records) in self.so_far.iter_mut().zip(&pending.records) {
            *so_far += records[0];
        }
        let sum = |number: usize| pending.records.iter().map(|records| records[number]).sum();
        let names = self.outline.scenarios.iter().map(|scenario| scenario.name.as_str());
        let scenarios = names.zip(&pending.scenarios).zip(pending.records.iter().zip(&self.so_far));
        let scenarios = scenarios.map(|((name, tally), (&records, &so_far))| (name, tally, records, so_far));
        let all = (TOTAL, &total, [sum(0), sum(1)], self.so_far.iter().sum());
        let rows: Vec<Row<'_>> = scenarios
            .chain([all])
            .map(|(name, tally, records, so_far)| Row::new(name, tally, (records, so_far), &pending))
            .collect();
        let format = out.format;
        let heads = format == Format::Table && out.rows.is_multiple_of(20);
        out.rows += 1;
        let written = out.write(|out| {
            if heads {
                writeln!(out, "{TABLE_HEAD}")?;
            }
            rows.iter().try_for_each(|row| match format {
                Format::Csv => writeln!(out, "{}{}", row.csv(), pending.metric_cells(&self.outline, row)),
                Format::Json => writeln!(out, "{}", pending.with_metrics(row)),
                Format::Table => writeln!(out, "{}", row.table()),
                // With one scenario, the total says the same.
                Format::Lines if rows.len() == 2 && row.scenario != TOTAL => Ok(()),
                Format::Lines => writeln!(out, "{}", row.line(&pending)),
            })
        });
        if let Err(error) = written {
            let message =
                format!("warning: cannot write statistics to {}: {error}; no more are written", out.name);
            messages::tell(&message);
            self.out = None;
        }
    }
}

impl Pending {
    /// The cells of the metrics behind a row. Values belong to no scenario: only the total has them.
    fn metric_cells(&self, outline: &Outline, row: &Row<'_>) -> String {
        let sums: Vec<MetricSum> = self.metrics.iter().map(MetricSum::new).collect();
        let seen = IntervalMetric::all(&sums, self.length.as_secs_f64());
        let mut cells = String::new();
        for metric in &outline.metrics {
            let seen = seen.iter().find(|one| one.name == metric.name);
            for cell in IntervalMetric::cells(seen, metric.kind) {
                cells.push(',');
                if row.scenario == TOTAL {
                    cells.push_str(&cell);
                }
            }
        }
        cells
    }

    /// A row as JSON; the total has the metrics with their tags, if there are values.
    fn with_metrics(&self, row: &Row<'_>) -> serde_json::Value {
        let mut json = row.json();
        if row.scenario == TOTAL && !self.metrics.is_empty() {
            json["metrics"] = json!(OwnMetric::all(&self.metrics, self.length));
        }
        json
    }
}

impl Output {
    /// Writes rows together, so that a reader never sees half of them.
    fn write(&mut self, rows: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        rows(&mut bytes)?;
        match &mut self.sink {
            Sink::File(file) => file.write(&bytes).and_then(|()| file.flush()),
            Sink::Stderr => streams::try_stderr(&bytes),
        }
    }
}

struct Row<'a> {
    scenario: &'a str,
    tally: &'a Tally,
    phase: &'static str,
    unix_s: f64,
    at_s: f64,
    length_s: f64,
    rate: Option<f64>,
    /// As [`TIMES`].
    times: [Option<u64>; 5],
    /// Which of these are lower bounds.
    at_least: Vec<&'static str>,
    /// Of requests that ended well, and of others.
    records: [u64; 2],
    /// Of requests that ended well since the beginning.
    so_far: u64,
}

/// The times of a row.
const TIMES: [&str; 5] = ["min", "p50", "p95", "p99", "max"];

impl<'a> Row<'a> {
    fn new(
        scenario: &'a str,
        tally: &'a Tally,
        (records, so_far): ([u64; 2], u64),
        pending: &Pending,
    ) -> Self {
        let count = tally.response_time.count();
        let percentile = |p| (count >= samples_needed(p)).then(|| tally.percentile(p)).flatten();
        let times = [tally.min(), percentile(50.0), percentile(95.0), percentile(99.0), tally.max()];
        let named = TIMES.into_iter().zip(times);
        let at_least = named.filter(|(_, time)| time.is_some_and(|time| tally.is_at_least(time)));
        let length_s = pending.length.as_secs_f64();
        Self {
            scenario,
            tally,
            phase: pending.phase,
            // To the millisecond: a double has no more digits for a time since 1970 that look exact.
            unix_s: (pending.unix.0 / 1_000_000) as f64 / 1e3,
            at_s: pending.at.as_secs_f64(),
            length_s,
            rate: (length_s > 0.0).then(|| tally.answers() as f64 / length_s),
            times,
            at_least: at_least.map(|(name, _)| name).collect(),
            records,
            so_far,
        }
    }

    /// p50 and p99 of the time to first token, where there are enough of them.
    fn ttft(&self) -> [Option<u64>; 2] {
        let ttft = &self.tally.ttft;
        [50.0, 99.0].map(|p| (ttft.count() >= samples_needed(p)).then(|| ttft.percentile(p)).flatten())
    }

    /// Responses that were not as expected.
    fn checks(&self) -> u64 {
        self.tally.errors[ErrorClass::Check]
    }

    fn csv(&self) -> String {
        let Self { tally, phase, unix_s, at_s, length_s, .. } = self;
        let [redirects, client, server] = tally.statuses;
        let rate = self.rate.map_or(String::new(), |rate| format!("{rate:.3}"));
        let text = |time: Option<u64>| time.map_or(String::new(), |time| time.to_string());
        let (times, ttft) = (self.times.map(text).join(","), self.ttft().map(text).join(","));
        format!(
            "{unix_s:.3},{at_s:.3},{length_s:.3},{phase},{},{},{},{},{},{},{redirects},{client},{server},{},{rate},\
             {times},{},{},{},{ttft}",
            csv_cell(self.scenario),
            tally.started,
            tally.ended(),
            tally.ok,
            tally.failed,
            tally.timed_out,
            self.checks(),
            self.at_least.join(" "),
            self.records[0],
            tally.content_events,
        )
    }

    fn json(&self) -> serde_json::Value {
        let [min, p50, p95, p99, max] = self.times;
        let [ttft_p50, ttft_p99] = self.ttft();
        let tally = self.tally;
        json!({
            "unix_s": self.unix_s,
            "at_s": self.at_s,
            "length_s": self.length_s,
            "phase": self.phase,
            "scenario": self.scenario,
            "started": tally.started,
            "ended": tally.ended(),
            "ok": tally.ok,
            "failed": tally.failed,
            "timed_out": tally.timed_out,
            "status_3xx": tally.statuses[0],
            "status_4xx": tally.statuses[1],
            "status_5xx": tally.statuses[2],
            "checks": self.checks(),
            "achieved_per_s": self.rate,
            "min_ns": min,
            "p50_ns": p50,
            "p95_ns": p95,
            "p99_ns": p99,
            "max_ns": max,
            "at_least": self.at_least,
            "records": self.records[0],
            "content_events": tally.content_events,
            "ttft_p50_ns": ttft_p50,
            "ttft_p99_ns": ttft_p99,
        })
    }

    fn table(&self) -> String {
        let name: String = self.scenario.chars().filter(|c| !c.is_control()).take(24).collect();
        let number = |value: u64| format!(" {:>10}", figure::count(value));
        let mut line = format!("{:>8.1} {:<7} {name:<24}", self.at_s, self.phase);
        let tally = self.tally;
        let [redirects, client, server] = tally.statuses;
        for value in [tally.started, tally.ended(), tally.ok, redirects, client, server, tally.timed_out] {
            line.push_str(&number(value));
        }
        line.push_str(&format!(" {:>10}", self.rate.map_or("-".to_owned(), figure::per_second)));
        for (name, time) in TIMES.into_iter().zip(self.times) {
            line.push_str(&format!(" {:>9}", self.shown(name, time)));
        }
        line
    }

    fn shown(&self, name: &str, time: Option<u64>) -> String {
        let bound = if self.at_least.contains(&name) { ">=" } else { "" };
        time.map_or("-".to_owned(), |time| format!("{bound}{}", figure::nanos(Nanos(time))))
    }

    /// `[    5.0 s] metrics    500,000/s (target 500,000/s)  total 2,500,000  failed 0  p50 4.20 ms …`
    fn line(&self, pending: &Pending) -> String {
        let [acknowledged, failed] = self.records;
        let per_second = |records: f64| format!("{}/s", figure::count(records.round() as u64));
        let mut line = format!("[{:>7.1} s] {:<8}", self.at_s, self.scenario);
        if self.phase != "measure" {
            line.push_str(&format!(" {}", self.phase));
        }
        line.push_str(&format!(" {:>12}", per_second(acknowledged as f64 / self.length_s.max(1e-9))));
        let ended = self.tally.ended();
        if let Some((asked, _)) = pending.asked.filter(|_| self.scenario == TOTAL && ended > 0) {
            let each = (acknowledged + failed) as f64 / ended as f64;
            line.push_str(&format!(" (target {})", per_second(asked * each)));
        }
        line.push_str(&format!("  total {}", figure::count(self.so_far)));
        line.push_str(&format!("  failed {}", figure::count(failed)));
        for (name, time) in TIMES.into_iter().zip(self.times).skip(1).take(3) {
            line.push_str(&format!("  {name} {}", self.shown(name, time)));
        }
        line
    }
}

const TABLE_HEAD: &str = "    at s phase   scenario                    started      ended         ok        3xx        \
                          4xx        5xx  timed out       rate       min       p50       p95       p99       max";

/// Returns `true` if a file's name ends in `.csv`, in any case.
pub(crate) fn is_csv(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::{Gauges, MetricSpec, Recorder, Sample, SeriesKind};

    use super::*;

    /// 400 responses of 1 to 400 ms, the slowest of which timed out, and one with a status of 404.
    fn pending() -> Pending {
        let mut recorder = Recorder::new(&["step".to_owned()]);
        for ms in 1..=400 {
            recorder.note_started(0);
            let outcome = match ms {
                7 => plimsoll_core::Outcome::Failed(ErrorClass::Status4xx),
                400 => plimsoll_core::Outcome::TimedOut,
                _ => plimsoll_core::Outcome::Ok,
            };
            recorder.record(&Sample {
                step: 0,
                intended: Nanos::ZERO,
                started: Nanos::ZERO,
                sent: Nanos::ZERO,
                first_byte: Nanos::MAX,
                done: Nanos::from_millis(ms),
                outcome,
                status: [200, 404, 0][usize::from(ms == 7) + 2 * usize::from(ms == 400)],
                bytes_sent: 1,
                bytes_received: 1,
            });
        }
        Pending {
            phase: "measure",
            unix: Nanos::from_millis(1_772_366_401_250),
            at: Nanos::from_secs(3),
            length: Nanos::from_secs(2),
            asked: Some((250.0, Nanos::from_secs(2))),
            records: vec![[398_000, 2_000]],
            scenarios: recorder.snapshot(Gauges::default()).steps,
            metrics: Vec::new(),
        }
    }

    #[test]
    fn the_total_has_the_metrics_of_the_plan() {
        let spec = |name: &str, kind| MetricSpec { name: name.to_owned(), kind, unit: String::new() };
        let specs = vec![
            spec("cart", SeriesKind::Trend),
            spec("orders", SeriesKind::Counter),
            spec("stock", SeriesKind::Gauge),
            spec("found", SeriesKind::Rate),
        ];
        let mut metrics: Vec<MetricRecord> = specs.iter().cloned().map(MetricRecord::new).collect();
        let tags = [("shop", &b"north"[..])];
        metrics[0].record(b"10", tags.into_iter(), Nanos(1));
        metrics[0].record(b"20", std::iter::empty(), Nanos(2));
        metrics[1].record(b"3", std::iter::empty(), Nanos(2));
        metrics[3].record(b"true", std::iter::empty(), Nanos(2));
        // Of a gauge without values nothing is told.
        metrics.remove(2);
        let pending = Pending { metrics, ..pending() };
        let outline = Outline { metrics: specs, ..Outline::EMPTY };
        let row = |name| Row::new(name, &pending.scenarios[0], ([0, 0], 0), &pending);
        let (total, one) = (row(TOTAL), row("buy"));
        let cells = ",2,10,15,20,1,3,1.5,0,,,,1,1,1";
        assert_eq!(pending.metric_cells(&outline, &total), cells);
        assert_eq!(pending.metric_cells(&outline, &one), ",".repeat(cells.matches(',').count()));
        let json = pending.with_metrics(&total);
        assert_eq!(json["metrics"][0]["all"]["mean"], 15.0);
        assert_eq!(json["metrics"][0]["tagged"][0]["tags"]["shop"], "north");
        assert_eq!(json["metrics"][1]["all"]["per_s"], 1.5);
        assert_eq!(pending.with_metrics(&one).get("metrics"), None);
        let (out, every) = (None, Nanos::ZERO);
        let (records, so_far) = (Vec::new(), Vec::new());
        let columns = Statistics { out, outline, records, every, pending: None, so_far }.columns();
        let own = columns.strip_prefix(COLUMNS).expect("they follow");
        assert_eq!(own.matches(',').count(), cells.matches(',').count());
        assert!(own.starts_with(",metric_cart_count,metric_cart_min,metric_cart_mean,"), "{own}");
        assert!(own.ends_with(",metric_found_count,metric_found_hits,metric_found_share"), "{own}");
    }

    #[test]
    fn rows_in_every_format() {
        let pending = pending();
        let row = Row::new("buy, \"now\"", &pending.scenarios[0], ([398_000, 2_000], 700_000), &pending);
        let nothing = Tally::default();
        let empty = Row::new("idle", &nothing, ([0, 0], 0), &pending);
        insta::assert_snapshot!([COLUMNS.to_owned(), row.csv(), empty.csv()].join("\n"));
        insta::assert_snapshot!([row.json().to_string(), empty.json().to_string()].join("\n"));
        insta::assert_snapshot!([TABLE_HEAD.to_owned(), row.table(), empty.table()].join("\n"));
        let total = Row::new(TOTAL, &pending.scenarios[0], ([398_000, 2_000], 700_000), &pending);
        insta::assert_snapshot!([total.line(&pending), empty.line(&pending)].join("\n"));
        assert_eq!(COLUMNS.split(',').count(), empty.csv().split(',').count());
        let json = empty.json();
        let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys.join(","), COLUMNS);
    }
}
