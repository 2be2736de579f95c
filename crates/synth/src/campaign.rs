//! The story of a marketing campaign, in data of all four kinds: ninety minutes around its start.
//!
//! Half an hour of quiet; half an hour of campaign, in which processors are busy, a tenth of the lines are
//! errors and requests take several times as long; half an hour in which all of it goes back. 4 events, 1,800
//! points of metrics, 5,000 lines of logs, 1,000 traces with 3 spans each, as the script of Arc's
//! demonstration makes them. Differences: the 180 instants of the metrics are 30 s apart, because with the
//! script's 20 s they end with the campaign and nothing is measured after it; spans lie within their parents.

use std::ops::Range;

use plimsoll_core::Random;

use crate::columnar::Columnar;
use crate::kind::Kind;
use crate::lexicon::Lexicon;
use crate::pen::Pen;
use crate::table::{Cells, Column, Table};
use crate::unique::Unique;

const MINUTE: u64 = 60_000;
/// Each part of the story.
const PART: u64 = 30 * MINUTE;
/// All times are in milliseconds.
const STORY: u64 = 3 * PART;

const HOSTS: u32 = 5;
const INSTANTS: u64 = 180;
const LINES: usize = 5_000;
const TRACES: usize = 1_000;
const SERVICES: &[&str] = &["api-gateway", "order-service", "database"];

/// The environment of all of it, as the script has it.
const ENVIRONMENT: &[&str] = &["production"];
const REGION: &[&str] = &["us-east-1"];

/// One batch of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryBatch {
    /// Kind of the records, which decides to which database they go.
    pub kind: Kind,
    /// Number of records.
    pub records: u64,
    /// Arc's columnar MessagePack, not compressed.
    pub body: Vec<u8>,
}

/// The time from which to which a story lasts whose campaign begins at `campaign_ms`, in milliseconds since
/// the epoch: every record of it is of this time.
pub fn span(campaign_ms: u64) -> Range<u64> {
    let begin = campaign_ms.saturating_sub(PART);
    begin..begin.saturating_add(STORY)
}

/// The batches of the story, one of each kind and in the order of [`Kind::ALL`], about a campaign that begins
/// at `campaign_ms` (milliseconds since the epoch; half an hour, at least). The same seed tells the same
/// story.
pub fn story(campaign_ms: u64, seed: u64) -> [StoryBatch; 4] {
    Kind::ALL.map(|kind| {
        let mut random = Random::new(seed, kind as u64);
        let begin = span(campaign_ms).start;
        let table = match kind {
            Kind::Metrics => metrics(begin, &mut random),
            Kind::Logs => logs(begin, &mut random, seed),
            Kind::Traces => traces(begin, &mut random, seed),
            Kind::Events => events(begin),
        };
        let mut pen = Pen::default();
        Columnar::new(&table, |_| 0).write(&table, &mut pen);
        StoryBatch { kind, records: table.rows() as u64, body: pen.written().to_vec() }
    })
}

/// Before, during or after: 0, 1 or 2.
fn part(after_begin: u64) -> usize {
    (after_begin / PART).min(2) as usize
}

/// A uniform number from `low` to `high`.
fn within(random: &mut Random, (low, high): (u64, u64)) -> u64 {
    low + random.below(high - low + 1)
}

/// Which of the texts with these percentages.
fn weighted(random: &mut Random, percentages: [u64; 3]) -> u32 {
    let drawn = random.below(100);
    u32::from(drawn >= percentages[0]) + u32::from(drawn >= percentages[0] + percentages[1])
}

fn table(kind: Kind, rows: usize, columns: Vec<Column>) -> Table {
    Table::new(&[kind.measurement()], rows, columns)
}

/// The machines that metrics and lines are of.
fn hosts() -> Lexicon {
    Lexicon::Numbered { prefix: "web-server-", from: 1, digits: 2, count: HOSTS }
}

/// Two shares of use of five hosts at 180 instants, in thousandths of a percent before, during and after.
fn metrics(begin: u64, random: &mut Random) -> Table {
    const SHARES: [[(u64, u64); 3]; 2] = [
        [(20_000, 30_000), (75_000, 95_000), (25_000, 40_000)],
        [(40_000, 50_000), (65_000, 85_000), (45_000, 55_000)],
    ];
    let columns = vec![
        Column::tag("host", hosts()),
        Column::tag("metric", Lexicon::Fixed(&["cpu_usage", "memory_usage"])),
        Column::field("value", Cells::Milli(Vec::new())),
        Column::tag("environment", Lexicon::Fixed(ENVIRONMENT)),
    ];
    let mut table = table(Kind::Metrics, INSTANTS as usize * HOSTS as usize * 2, columns);
    // The environment is the same everywhere.
    let [hosts, metrics, values, _] = &mut table.columns[..] else { unreachable!("there are four columns") };
    let mut row = 0;
    for instant in 0..INSTANTS {
        let at = instant * (STORY / INSTANTS);
        for host in 0..HOSTS {
            for (metric, shares) in (0..).zip(SHARES) {
                table.times[row] = begin + at;
                hosts.words_mut()[row] = host;
                metrics.words_mut()[row] = metric;
                values.millis_mut()[row] = within(random, shares[part(at)]) as u32;
                row += 1;
            }
        }
    }
    table
}

/// Lines evenly over the time, with more and more warnings and errors while the campaign lasts.
fn logs(begin: u64, random: &mut Random, seed: u64) -> Table {
    const LEVELS: [[u64; 3]; 3] = [[90, 9, 1], [70, 20, 10], [85, 12, 3]];
    /// Milliseconds of an answer.
    const TIMES: [(u64, u64); 3] = [(20, 80), (200, 4_000), (30, 150)];
    const STATUSES: [[u64; 3]; 3] = [[200, 201, 204], [200, 404, 429], [500, 503, 504]];
    /// Three for each level.
    const MESSAGES: &[&str] = &[
        "Request processed successfully",
        "Order placed",
        "Page served from the cache",
        "Slow answer of the database",
        "Connection pool nearly used up",
        "Request repeated after a timeout",
        "Connection pool used up",
        "No answer of order-service in time",
        "Payment could not be completed",
    ];
    let columns = vec![
        Column::tag("level", Lexicon::Fixed(&["INFO", "WARNING", "ERROR"])),
        Column::tag("service", Lexicon::Fixed(SERVICES)),
        Column::text("message", Lexicon::Fixed(MESSAGES)),
        Column::field("response_time_ms", Cells::Count(5_000, Vec::new())),
        Column::field("status_code", Cells::Count(599, Vec::new())),
        Column::field("request_id", Cells::Id(Vec::new())),
        Column::tag("host", hosts()),
        Column::tag("environment", Lexicon::Fixed(ENVIRONMENT)),
    ];
    let mut table = table(Kind::Logs, LINES, columns);
    let requests = Unique::new(seed, 1);
    // Beside the kinds', which have the first four.
    let mut of_hosts = Random::new(seed, Kind::ALL.len() as u64);
    let [levels, services, messages, times, statuses, ids, hosts, _] = &mut table.columns[..] else {
        unreachable!("there are eight columns")
    };
    for row in 0..LINES {
        let at = row as u64 * STORY / LINES as u64;
        let level = weighted(random, LEVELS[part(at)]);
        table.times[row] = begin + at;
        levels.words_mut()[row] = level;
        services.words_mut()[row] = random.below(3) as u32;
        messages.words_mut()[row] = level * 3 + random.below(3) as u32;
        times.counts_mut()[row] = within(random, TIMES[part(at)]);
        statuses.counts_mut()[row] = STATUSES[level as usize][random.below(3) as usize];
        ids.ids_mut()[row] = requests.id(row as u64);
        hosts.words_mut()[row] = of_hosts.below(HOSTS.into()) as u32;
    }
    table
}

/// Traces evenly over the time: gateway, orders, database, each within the one before. Their lengths are
/// three to eight times as long while the campaign lasts, and up to half as long again after it; the gateway
/// fails 5 % of the time then.
fn traces(begin: u64, random: &mut Random, seed: u64) -> Table {
    /// Lengths in nanoseconds before the campaign.
    const LENGTHS: [(u64, u64); 3] =
        [(20_000_000, 40_000_000), (10_000_000, 18_000_000), (3_000_000, 9_000_000)];
    /// Factors of the lengths before, during and after the campaign, in hundredths.
    const FACTORS: [(u64, u64); 3] = [(100, 100), (300, 800), (100, 150)];
    let columns = vec![
        Column::field("trace_id", Cells::TraceId(Vec::new())),
        Column::field("span_id", Cells::Id(Vec::new())),
        Column::field("parent_span_id", Cells::Id(Vec::new())),
        Column::tag("service_name", Lexicon::Fixed(SERVICES)),
        Column::tag("operation_name", Lexicon::Fixed(&["POST /orders", "place_order", "insert"])),
        Column::tag("span_kind", Lexicon::Fixed(&["server", "internal", "client"])),
        Column::field("duration_ns", Cells::Count(u64::from(u32::MAX), Vec::new())),
        Column::field("status_code", Cells::Count(599, Vec::new())),
        Column::field("error", Cells::Flag(Vec::new())),
        Column::tag("http_method", Lexicon::Fixed(&["POST", ""])),
        Column::tag("environment", Lexicon::Fixed(ENVIRONMENT)),
        Column::tag("region", Lexicon::Fixed(REGION)),
    ];
    let mut table = table(Kind::Traces, TRACES * 3, columns);
    let ids = [2, 3, 4].map(|purpose| Unique::new(seed, purpose));
    let [traces, spans, parents, services, operations, kinds, durations, statuses, errors, methods, _, _] =
        &mut table.columns[..]
    else {
        unreachable!("there are twelve columns")
    };
    for trace in 0..TRACES {
        let at = trace as u64 * STORY / TRACES as u64;
        let factor = within(random, FACTORS[part(at)]);
        let is_error = part(at) == 1 && random.below(100) < 5;
        for (span, lengths) in LENGTHS.into_iter().enumerate() {
            let row = trace * 3 + span;
            // A span begins a millisecond after its parent and ends before it: even the longest is shorter by
            // two.
            table.times[row] = begin + at + span as u64;
            traces.trace_ids_mut()[row] = [ids[0].id(trace as u64), ids[1].id(trace as u64)];
            spans.ids_mut()[row] = ids[2].id(row as u64);
            parents.ids_mut()[row] = if span == 0 { 0 } else { ids[2].id(row as u64 - 1) };
            for column in [&mut *services, &mut *operations, &mut *kinds] {
                column.words_mut()[row] = span as u32;
            }
            durations.counts_mut()[row] = within(random, lengths) * factor / 100;
            let is_error = is_error && span == 0;
            statuses.counts_mut()[row] = match (span, is_error) {
                (0, true) => 500,
                (0, false) => 201,
                _ => 0,
            };
            errors.flags_mut()[row] = is_error;
            // Only the gateway is called over HTTP.
            methods.words_mut()[row] = u32::from(span > 0);
        }
    }
    table
}

/// Events of the campaign: it begins, after five minutes there are more machines, after ten an alarm, and
/// after thirty it ends.
fn events(begin: u64) -> Table {
    const TYPES: &[&str] =
        &["marketing_campaign_started", "autoscale_triggered", "alert_triggered", "marketing_campaign_ended"];
    const METADATA: &[&str] = &[
        r#"{"campaign":"autumn-sale","channel":"email","recipients":500000}"#,
        r#"{"from_instances":5,"to_instances":15,"reason":"cpu above 80 %"}"#,
        r#"{"alert":"database connection pool used up","pool_size":100}"#,
        r#"{"campaign":"autumn-sale","orders":12475}"#,
    ];
    const RESOURCES: &[&str] = &["campaign-autumn-sale", "order-service", "database"];
    let columns = vec![
        Column::tag("event_type", Lexicon::Fixed(TYPES)),
        Column::tag("event_category", Lexicon::Fixed(&["business", "infrastructure"])),
        Column::tag("severity", Lexicon::Fixed(&["info", "warning", "critical"])),
        Column::tag("source", Lexicon::Fixed(&["marketing", "autoscaler", "monitor"])),
        Column::text("resource_id", Lexicon::Fixed(RESOURCES)),
        Column::text("metadata", Lexicon::Fixed(METADATA)),
        // The same for all events: they have no particular source.
        Column::tag("environment", Lexicon::Fixed(ENVIRONMENT)),
        Column::text("user_id", Lexicon::Fixed(&[""])),
        Column::field("duration_ms", Cells::Count(u64::from(u32::MAX), Vec::new())),
        Column::field("amount", Cells::Milli(Vec::new())),
        Column::field("success", Cells::Flag(Vec::new())),
    ];
    let mut table = table(Kind::Events, 4, columns);
    let words: [[u32; 4]; 6] =
        [[0, 1, 2, 3], [0, 1, 1, 0], [0, 1, 2, 0], [0, 1, 2, 0], [0, 1, 2, 0], [0, 1, 2, 3]];
    for (column, words) in table.columns.iter_mut().zip(words) {
        column.words_mut().copy_from_slice(&words);
    }
    let minutes = [0, 5, 10, 30];
    table.times.iter_mut().zip(minutes).for_each(|(time, minute)| *time = begin + PART + minute * MINUTE);
    // The duration of the campaign lets queries ask for events within it.
    table.columns[8].counts_mut().copy_from_slice(&[PART, 2 * MINUTE, 20 * MINUTE, 0]);
    table.columns[9].millis_mut()[3] = 1_247_500_000;
    table.columns[10].flags_mut().copy_from_slice(&[true, true, false, true]);
    table
}
