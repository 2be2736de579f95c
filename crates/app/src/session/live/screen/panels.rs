//! The parts of the page: rates, times, requests, the instrument, the verdict.

use plimsoll_core::{ErrorClass, Nanos, figure};
use plimsoll_metrics::{FoundBy, Model, OtherUse, RateUnit, Reason, WatchedProcess, WatchedUse, verdict};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _, Wrap};

use super::chart::{self, ChartColumn, Scale};
use super::figures::{Figures, PERCENTILES, Point, Times};
use super::frame::{badge, time, titled};
use super::look::{BAD, DOUBTFUL, GOOD, HEADING, LABEL, RATE, TIME};

/// Columns of the labels on the left of a panel.
const LABELS: usize = 11;
/// Columns of a panel from which a row has two figures.
const BESIDE: u16 = 34;
/// Share of a processor from which another process is named.
const OTHERS_SHARE: f64 = 0.05;
/// Columns of a time: `≥1.23 ms`.
const TIME_WIDTH: usize = 9;

/// Draws the rate: the target, and the achieved one.
pub(super) fn rate(figures: &Figures, area: Rect, buffer: &mut Buffer) {
    let closed = figures.subject.basis.model == Model::Closed;
    // Next to a target, only rates in the same unit can be charted.
    let charted = |point: &Point| if closed { Some(point.rate) } else { point.pace.achieved };
    let top = figures.points.iter().filter_map(charted).fold(0.0, f64::max);
    let unit = match figures.pace.unit {
        RateUnit::Iterations if !closed => "iterations",
        RateUnit::Iterations | RateUnit::Requests => "responses",
    };
    let note = match figures.pace.unit {
        _ if top <= 0.0 => String::new(),
        RateUnit::Iterations => format!("highest {}", figure::per_second_of(unit, top)),
        RateUnit::Requests => format!("highest {}", figure::per_second(top)),
    };
    let inner = titled("rate", &note, area, buffer);
    let wished = figures.wished.or(figures.target);
    let target = match (closed, figures.pace.unit, wished) {
        (true, ..) => "none: closed model, users wait for responses".to_owned(),
        (_, RateUnit::Iterations, Some(target)) => figure::per_second_of("iterations", target),
        (_, RateUnit::Requests, Some(target)) => figure::per_second(target),
        (_, _, None) => "-".to_owned(),
    };
    let paused = if figures.paused { "  paused" } else { "" };
    let run = figures.mean_rate().map_or(String::new(), |mean| format!("mean {}", figure::per_second(mean)));
    let connections = format!("{} connections", figure::count(figures.connections));
    // A second figure does not fit beside the first one on every terminal.
    let beside = |text: String| if inner.width < BESIDE { String::new() } else { text };
    let responses = Span::styled(format!("{:<7}  ", figure::per_second(figures.rate())), RATE.patch(HEADING));
    let in_flight = Span::raw(format!("{:<7}  ", figure::count(figures.in_flight)));
    let mut rows = vec![
        labelled("target", vec![Span::raw(target), Span::styled(paused, DOUBTFUL)]),
        labelled("responses", vec![responses, Span::styled(beside(run), LABEL)]),
        labelled("in flight", vec![in_flight, Span::styled(beside(connections), LABEL)]),
    ];
    if figures.has_streams {
        let tokens = figures.tally.content_events as f64 / figures.length.as_secs_f64().max(1e-9);
        let tokens = Span::raw(format!("{:<7}  ", figure::per_second(tokens)));
        let first = figures.tally.ttft.percentile(50.0);
        let first = first.map_or(String::new(), |p50| format!("TTFT p50 {}", figure::nanos(Nanos(p50))));
        rows.push(labelled("tokens", vec![tokens, Span::styled(beside(first), LABEL)]));
    }
    let area = write(inner, &rows, buffer);
    if figures.points.is_empty() {
        return;
    }
    let asked = figures.points.back().and_then(|point| point.pace.asked);
    let scale = Scale::linear(figures.points.iter().filter_map(charted).chain(asked));
    let mark = |point: &Point| ChartColumn {
        value: charted(point),
        style: if point.warmup {
            LABEL
        } else if point.failed {
            BAD
        } else {
            RATE
        },
    };
    let area = chart::axis(scale, chart::rate, area, buffer);
    chart::line(figures, mark, (scale, asked.filter(|_| !closed)), area, buffer);
}

/// Draws the requests by outcome.
pub(super) fn requests(figures: &Figures, area: Rect, buffer: &mut Buffer) {
    let inner = titled("requests", if figures.warmup { "not counted yet" } else { "" }, area, buffer);
    let total = &figures.standing.record().total;
    let [third, fourth, fifth] = figures.statuses;
    let second = total.completed().saturating_sub(third + fourth + fifth);
    let counted = |name: &'static str, count: u64, style: Style| {
        [
            Span::styled(format!("{name} "), LABEL),
            Span::styled(format!("{}  ", figure::count(count)), if count > 0 { style } else { LABEL }),
        ]
    };
    let ends = [
        counted("ok", total.ok, GOOD),
        counted("failed", total.failed, BAD),
        counted("timed out", total.timed_out, BAD),
    ];
    let statuses = [
        counted("2xx", second, GOOD),
        counted("3xx", third, Style::new()),
        counted("4xx", fourth, DOUBTFUL),
        counted("5xx", fifth, BAD),
    ];
    let mut classes: Vec<(u64, ErrorClass)> =
        total.errors.iter().map(|(class, count)| (count, class)).collect();
    classes.sort_unstable_by(|one, other| other.cmp(one));
    let named = |(count, class): &(u64, ErrorClass)| format!("{class} {}", figure::count(*count));
    let errors: Vec<String> = classes.iter().map(named).collect();
    let mut rows = vec![Line::from(ends.concat()), Line::from(statuses.concat())];
    let room = usize::from(inner.height).saturating_sub(rows.len());
    if errors.is_empty() {
        rows.push(Line::styled("no errors", LABEL));
    } else if errors.len() <= room {
        rows.extend(errors.into_iter().map(|error| Line::styled(error, BAD)));
    } else {
        rows.push(Line::styled(errors.join("  "), BAD));
    }
    write(inner, &rows, buffer);
}

/// Draws the state of the generator itself, with its limits, and the target's process.
pub(super) fn instrument(figures: &Figures, area: Rect, buffer: &mut Buffer) {
    let inner = titled("instrument", "", area, buffer);
    let short = inner.width < 50;
    let mut rows = vec![cpu(figures), lag(figures, short)];
    let stalls = stalls(figures);
    let target = target(figures);
    // With room for three rows, the target comes before the faults.
    if inner.height < 4
        && target.is_some()
        && figures.standing.record().workers.iter().all(|w| w.stalls.is_empty())
    {
        rows.extend(target);
    } else {
        rows.push(stalls);
        rows.extend(target);
        rows.extend(others(figures).iter().map(|(_, line)| line.clone()));
        rows.extend(machine(figures));
    }
    write(inner, &rows, buffer);
}

/// CPU of each worker, as a share of its core.
fn cpu(figures: &Figures) -> Line<'static> {
    let Some(seen) = &figures.machine else {
        return labelled("CPU", vec![Span::styled("not watched", LABEL)]);
    };
    let limit = verdict::limits(figures.standing.record()).cpu;
    let mut shares: Vec<(usize, f64)> =
        seen.workers.iter().map(|thread| seen.share(thread.cpu)).enumerate().collect();
    let workers = shares.len();
    shares.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let style = |share: f64| if share >= limit { BAD } else { Style::new() };
    let mut spans: Vec<Span<'static>> = shares
        .iter()
        .take(3)
        .map(|(number, share)| Span::styled(format!("w{number} {}  ", figure::share(*share)), style(*share)))
        .collect();
    if workers > 3 {
        spans.push(Span::styled(format!("and {} more  ", workers - 3), LABEL));
    }
    spans.push(Span::styled(format!("limit {:.0} %", limit * 100.0), LABEL));
    labelled("CPU", spans)
}

/// The start lag, now and over the run.
fn lag(figures: &Figures, short: bool) -> Line<'static> {
    let record = figures.standing.record();
    if record.model == Model::Closed {
        return labelled("start lag", vec![Span::styled("none: closed model", LABEL)]);
    }
    let p99 = |histogram: &plimsoll_histogram::Histogram| histogram.percentile(99.0);
    let shown = |value: Option<u64>| value.map_or("-".to_owned(), |value| figure::nanos(Nanos(value)));
    let (now, run) = (p99(&figures.lag), p99(&record.total.start_lag));
    let limit = verdict::limits(record).start_lag;
    let style = if run.is_some_and(|run| run > limit.0) { DOUBTFUL } else { Style::new() };
    labelled(
        "start lag",
        vec![
            Span::raw(format!("{}{}  ", if short { "" } else { "p99 " }, shown(now))),
            Span::styled(format!("run {}  ", shown(run)), style),
            Span::styled(
                format!("{}{}", if short { "\u{2264} " } else { "limit " }, figure::nanos(limit)),
                LABEL,
            ),
        ],
    )
}

/// Times in which a worker did not run.
fn stalls(figures: &Figures) -> Line<'static> {
    let record = figures.standing.record();
    let all = record.workers.iter().flat_map(|worker| &worker.stalls);
    let (count, time) =
        all.fold((0_u64, Nanos::ZERO), |(count, time), stall| (count + 1, time + stall.length));
    let limit =
        Span::styled(format!("limit {} of a worker", figure::nanos(verdict::limits(record).stall)), LABEL);
    let words = match count {
        0 => Span::styled("none  ", LABEL),
        _ => Span::styled(format!("{}, {} in all  ", figure::count(count), figure::nanos(time)), DOUBTFUL),
    };
    labelled("stalls", vec![words, limit])
}

/// CPU and memory of the target's process.
fn target(figures: &Figures) -> Option<Line<'static>> {
    let (seen, facts) = (figures.machine.as_ref()?, figures.facts.target.as_ref()?);
    let used = seen.target?;
    let memory = used.rss_bytes.map_or(String::new(), |bytes| format!("  {}", figure::bytes(bytes)));
    let cpus = format!("{:.2} CPUs", seen.share(used.cpu));
    Some(labelled(
        "target",
        vec![
            Span::styled(cpus, HEADING),
            Span::raw(format!("{memory}  {}", facts.name)),
            Span::styled(format!("  {} threads", figure::count(used.threads)), LABEL),
        ],
    ))
}

/// CPU and memory of the servers that are watched beside the target's process, with their numbers.
fn others(figures: &Figures) -> Vec<(usize, Line<'static>)> {
    let Some(seen) = &figures.machine else { return Vec::new() };
    let servers = figures.facts.watched.iter().zip(&seen.watched).enumerate();
    let row = |(number, (facts, watched)): (usize, (&WatchedProcess, &WatchedUse))| {
        let name = match (&facts.found_by, facts.name.as_str()) {
            (FoundBy::Name(name), "") | (FoundBy::Mark(name), _) => name.clone(),
            (_, name) => name.to_owned(),
        };
        let Some(used) = watched.used else {
            let words = Span::styled(format!("{name} has ended"), BAD);
            return (number, labelled("watched", vec![words]));
        };
        let memory = used.rss_bytes.map_or("-".to_owned(), figure::bytes);
        let processes = match watched.processes {
            1 => String::new(),
            several => format!("  {} processes", figure::count(several)),
        };
        let spans = vec![
            Span::styled(format!("{:.2} CPUs", seen.share(used.cpu)), HEADING),
            Span::raw(format!("  {memory}  {name}")),
            Span::styled(processes, LABEL),
        ];
        (number, labelled("watched", spans))
    };
    servers.filter(|(_, (facts, _))| !facts.is_target).map(row).collect()
}

/// Threads, descriptors and disk of a server that is watched; `None` if it has ended.
fn more(figures: &Figures, number: usize) -> Option<Line<'static>> {
    let seen = figures.machine.as_ref()?;
    let (facts, used) = (figures.facts.watched.get(number)?, seen.watched.get(number)?.used?);
    let seconds = seen.length.as_secs_f64().max(1e-9);
    let limit = facts.descriptor_limit.map_or(String::new(), |limit| format!("/{}", figure::count(limit)));
    let open = used.descriptors.map_or("-".to_owned(), |count| format!("{}{limit}", figure::count(count)));
    let disk = used.files.map_or("-".to_owned(), |files| {
        let [read, written] = [files.read_bytes, files.written_bytes]
            .map(|bytes| figure::bytes((bytes as f64 / seconds) as u64));
        format!("{read}/s in, {written}/s out")
    });
    let user = seen.share(used.cpu.since(used.system));
    let words = format!(
        "user {user:.2}  system {:.2}  {} threads  {open} open  disk {disk}",
        seen.share(used.system),
        figure::count(used.threads)
    );
    Some(labelled("", vec![Span::styled(words, LABEL)]))
}

/// The processors of this machine.
fn machine(figures: &Figures) -> Option<Line<'static>> {
    let seen = figures.machine.as_ref().filter(|seen| !seen.cores.is_empty())?;
    let busy = figure::share(seen.cores_share(|core| core.busy));
    let stolen = seen.cores_share(|core| core.steal);
    let mut words = format!("{busy} of {} cores busy", seen.cores.len());
    if stolen >= 0.001 {
        words.push_str(&format!(", {} taken away", figure::share(stolen)));
    }
    let mut spans = vec![Span::raw(words)];
    let share = |other: &&OtherUse| seen.share(other.cpu) >= OTHERS_SHARE;
    if let Some(other) = seen.others.first().filter(share) {
        let used = format!("  {} {:.2} CPUs", other.name, seen.share(other.cpu));
        spans.push(Span::styled(used, DOUBTFUL));
    }
    Some(labelled("machine", spans))
}

/// The view of the instrument: the same, worker by worker, and the verdict in full.
pub(super) fn whole_instrument(figures: &Figures, area: Rect, buffer: &mut Buffer) {
    let mut rows = vec![cpu(figures), lag(figures, false), stalls(figures)];
    rows.extend(target(figures));
    let of_target = figures.facts.watched.iter().position(|server| server.is_target);
    rows.extend(of_target.and_then(|number| more(figures, number)));
    for (number, row) in others(figures) {
        rows.push(row);
        rows.extend(more(figures, number));
    }
    rows.extend(machine(figures));
    if let Some(seen) = &figures.machine {
        for (number, thread) in seen.workers.iter().enumerate() {
            let waited = thread.run_delay.map_or("-".to_owned(), |delay| figure::share(seen.share(delay)));
            let taken = thread.involuntary_switches.map_or("-".to_owned(), figure::count);
            let words = format!(
                "CPU {:>7}   without a CPU {waited:>7}   taken off {taken:>6} times",
                figure::share(seen.share(thread.cpu))
            );
            rows.push(labelled(&format!("worker {number}"), vec![Span::raw(words)]));
        }
    }
    let most = area.height / 2;
    let height = (rows.len() as u16 + 1).min(most);
    let inner = titled("instrument", "now", Rect { height, ..area }, buffer);
    let hidden = rows.len().saturating_sub(usize::from(inner.height));
    if hidden > 0 {
        rows.truncate(usize::from(inner.height).saturating_sub(1));
        rows.push(Line::styled(format!("\u{2026} and {} more", hidden + 1), LABEL));
    }
    write(inner, &rows, buffer);
    verdict(figures, Rect { y: area.y + height, height: area.height - height, ..area }, buffer);
}

/// The verdict so far, in full.
pub(super) fn verdict(figures: &Figures, area: Rect, buffer: &mut Buffer) {
    let inner = titled("verdict as it stands", "by the rules of the one at the end", area, buffer);
    let (words, style) = badge(figures);
    let mut first = vec![Span::styled(words, style)];
    let mut second = None;
    if let Some(headline) = figures.headline.as_ref().filter(|_| !figures.warmup) {
        first.push(Span::raw(format!(": {}", headline.summary)));
        second = Some(Line::raw(headline.validity.clone()));
    }
    let mut lines = vec![Line::from(first)];
    lines.extend(second);
    if let Some(judged) = &figures.verdict {
        let found = judged.reasons.iter().map(|reason| (reason, BAD));
        for (reason, style) in found.chain(judged.warnings.iter().map(|reason| (reason, DOUBTFUL))) {
            lines.push(Line::from(vec![
                Span::styled(format!("{}: ", reason.code), style),
                Span::raw(reason.evidence.clone()),
            ]));
            if !reason.hint.is_empty() {
                lines.push(Line::styled(format!("  hint: {}", reason.hint), LABEL));
            }
        }
        let limited = &judged.limited_by;
        lines.push(Line::from(vec![
            Span::styled(limited.what.words(), HEADING),
            Span::raw(format!(": {}", limited.evidence)),
        ]));
    }
    // The line of messages shows the latest one already.
    let shown = usize::from(figures.latest_message().is_some());
    let messages = figures.messages.iter().rev().skip(shown);
    lines.extend(messages.map(|message| Line::styled(format!("- {message}"), LABEL)));
    Paragraph::new(lines).wrap(Wrap { trim: false }).render(inner, buffer);
}

/// Returns the first reason of the verdict, or else its first warning.
pub(super) fn first_reason(figures: &Figures) -> Option<(&Reason, Style)> {
    let verdict = figures.verdict.as_ref().filter(|_| !figures.warmup)?;
    let reason = verdict.reasons.first().map(|reason| (reason, BAD));
    reason.or_else(|| verdict.warnings.first().map(|reason| (reason, DOUBTFUL)))
}

fn labelled(label: &str, mut spans: Vec<Span<'static>>) -> Line<'static> {
    spans.insert(0, Span::styled(format!("{label:<LABELS$}"), LABEL));
    Line::from(spans)
}

/// Writes rows from the top; returns the area below them.
fn write(area: Rect, rows: &[Line<'_>], buffer: &mut Buffer) -> Rect {
    for (place, line) in area.rows().zip(rows) {
        line.render(place, buffer);
    }
    let used = (rows.len() as u16).min(area.height);
    Rect { y: area.y + used, height: area.height - used, ..area }
}

/// Response times of the last interval and of the run.
pub(super) fn times(figures: &Figures, area: Rect, buffer: &mut Buffer) {
    let p99 = |point: &Point| point.p99.map(|p99| p99 as f64);
    let top = figures.points.iter().filter_map(|point| point.p99).max();
    let note = top.map_or(String::new(), |top| format!("p99, highest {}", figure::nanos(Nanos(top))));
    let inner = titled("response time", &note, area, buffer);
    let head: String = PERCENTILES.iter().map(|name| format!("{name:>TIME_WIDTH$}")).collect();
    let row = |label: &'static str, times: &Times, style: Style| {
        let cells: String =
            (0..PERCENTILES.len()).map(|at| format!("{:>TIME_WIDTH$}", time(times, at))).collect();
        Line::from(vec![Span::styled(format!("{label:<4}"), LABEL), Span::styled(cells, style)])
    };
    let rows = [
        Line::styled(format!("    {head}"), LABEL),
        row("now", &figures.now, TIME.patch(HEADING)),
        row("run", &figures.run, Style::new()),
    ];
    let area = write(inner, &rows, buffer);
    let Some(scale) = Scale::logarithmic(figures.points.iter().filter_map(p99)) else { return };
    let mark =
        |point: &Point| ChartColumn { value: p99(point), style: if point.warmup { LABEL } else { TIME } };
    let area = chart::axis(scale, chart::time, area, buffer);
    chart::bars(figures, mark, scale, area, buffer);
}
