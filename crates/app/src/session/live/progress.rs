//! Progress of a run as a line on stderr: renewed on a terminal, now and then elsewhere.

use std::io::IsTerminal as _;

use plimsoll_core::{Nanos, figure};
use plimsoll_engine::Progress;
use plimsoll_metrics::RateUnit;

use crate::base::streams;

/// Time between two lines where stderr is no terminal: often enough to show a build machine that something
/// goes on (most give up after ten minutes of silence), and rarely enough for a log.
const BETWEEN_LINES: Nanos = Nanos::from_secs(10);

/// Shows how far a run is.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    kind: Kind,
    /// True while a line that will be overwritten is on the terminal.
    shown: bool,
    /// When the next line is due, since the start of the run.
    next: Nanos,
}

/// The place of the progress line, and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Silent,
    /// One line, renewed each interval.
    Renewed,
    /// A line below the other, at most so often.
    Lines(Nanos),
}

impl ProgressLine {
    /// A line that is renewed on a terminal, and one every ten seconds elsewhere.
    pub(crate) fn new(quiet: bool) -> Self {
        Self::of(match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Kind::Silent,
            (false, true) => Kind::Renewed,
            (false, false) => Kind::Lines(BETWEEN_LINES),
        })
    }

    /// A line for each interval below the other, wherever stderr leads.
    pub(crate) const fn lines() -> Self {
        Self::of(Kind::Lines(Nanos::ZERO))
    }

    const fn of(kind: Kind) -> Self {
        let next = match kind {
            Kind::Lines(every) => every,
            Kind::Silent | Kind::Renewed => Nanos::ZERO,
        };
        Self { kind, shown: false, next }
    }

    /// Takes up an interval.
    pub(crate) fn show(&mut self, progress: &Progress<'_>) {
        self.show_with(progress, None);
    }

    /// Takes up an interval, with something that is known now in place of its percentiles.
    pub(crate) fn show_with(&mut self, progress: &Progress<'_>, known: Option<&str>) {
        let text = match self.kind {
            Kind::Silent => return,
            Kind::Renewed => {
                self.shown = true;
                // A closed terminal does not end a run.
                return streams::renew_line(&line(progress, known));
            }
            Kind::Lines(every) => {
                if !self.is_due(progress.elapsed, every) {
                    return;
                }
                format!("{}\n", line(progress, known))
            }
        };
        streams::to_stderr(&text);
    }

    /// Returns true if a line is due at this instant of the run, and schedules the next one `every` later.
    fn is_due(&mut self, elapsed: Nanos, every: Nanos) -> bool {
        let due = elapsed >= self.next;
        if due {
            self.next = elapsed + every;
        }
        due
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            streams::renew_line("");
        }
    }
}

/// Progress of work before a run, as a line on stderr. Silent where stderr is not a terminal.
#[derive(Debug)]
pub(crate) struct Preparing {
    on: bool,
    count: u32,
    percent: Option<u32>,
}

impl Preparing {
    /// Begins the work on `count` items.
    pub(crate) fn new(count: u32, quiet: bool) -> Self {
        Self { on: !quiet && std::io::stderr().is_terminal(), count, percent: None }
    }

    /// Shows that `made` of the items are ready.
    pub(crate) fn show(&mut self, made: u32) {
        let percent = (u64::from(made) * 100 / u64::from(self.count.max(1))) as u32;
        if self.on && self.percent != Some(percent) {
            self.percent = Some(percent);
            let line = bar(made, self.count);
            // A closed terminal does not end the work.
            streams::renew_line(&line);
        }
    }
}

impl Drop for Preparing {
    fn drop(&mut self) {
        if self.percent.is_some() {
            streams::renew_line("");
        }
    }
}

/// `making batches  ████████░░░░░░░░░░░░  200 of 500`
fn bar(made: u32, count: u32) -> String {
    const WIDTH: u64 = 20;
    let full = (u64::from(made) * WIDTH / u64::from(count.max(1))) as usize;
    let rest = "░".repeat(WIDTH as usize - full.min(WIDTH as usize));
    format!(
        "making batches  {}{rest}  {} of {}",
        "█".repeat(full),
        figure::count(made.into()),
        figure::count(count.into())
    )
}

/// `warm-up  9 s left  50,123/s  64 in flight  0 errors  p50 1.20 ms  p99 3.40 ms`
fn line(progress: &Progress<'_>, known: Option<&str>) -> String {
    let interval = progress.interval;
    let mut parts = Vec::new();
    if interval.warmup {
        parts.push("warm-up".to_owned());
    }
    // The next interval is told when the last answer has come, or is not waited for any longer.
    let is_over = progress.end.is_some_and(|end| progress.elapsed >= end);
    match progress.end {
        Some(_) if is_over && !interval.drain && interval.in_flight > 0 => {
            parts.push("load over, waiting for answers".to_owned());
        }
        Some(end) => parts.push(format!("{:.0} s left", end.since(progress.elapsed).as_secs_f64())),
        None => parts.push(format!("{:.0} s", progress.elapsed.as_secs_f64())),
    }
    let pace = progress.pace;
    if pace.unit == RateUnit::Iterations {
        let requests = interval.completed as f64 / interval.length.as_secs_f64().max(1e-9);
        parts.push(figure::per_second_of("requests", requests));
    }
    // A pause is a wish as well, but no rate.
    parts.push(if progress.paused { pace.achieved_text() } else { pace.to_string() });
    if progress.paused {
        parts.push("paused".to_owned());
    }
    parts.push(format!("{} in flight", figure::count(interval.in_flight)));
    parts.push(format!("{} errors", figure::count(interval.failed + interval.timed_out)));
    if let Some(known) = known {
        parts.push(known.to_owned());
    } else if let Some([p50, _, p99, ..]) = interval.response_time {
        parts.push(format!("p50 {}  p99 {}", span(Nanos(p50)), span(Nanos(p99))));
    }
    if interval.content_events > 0 {
        let tokens = interval.content_events as f64 / interval.length.as_secs_f64().max(1e-9);
        parts.push(figure::per_second_of("tokens", tokens));
    }
    if let Some([p50, ..]) = interval.ttft {
        parts.push(format!("TTFT p50 {}", span(Nanos(p50))));
    }
    parts.join("  ")
}

/// A span with three digits and its unit.
fn span(nanos: Nanos) -> String {
    let ns = nanos.0 as f64;
    match nanos.0 {
        0..1_000_000 => format!("{:.0} us", ns / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::{Interval, MachineFacts, Pace};

    use super::*;

    #[test]
    fn the_line_says_rate_errors_percentiles_and_time_left() {
        let interval = Interval {
            length: Nanos::from_secs(1),
            ok: 50_000,
            failed: 120,
            timed_out: 3,
            completed: 50_123,
            in_flight: 64,
            response_time: Some([1_200_000, 0, 3_400_000, 0, 0]),
            ..Interval::default()
        };
        let facts = MachineFacts::default();
        let pace = |asked| Pace::new(RateUnit::Requests, Some(50_123.0), Some(25_000.0), asked);
        let mut progress = Progress {
            elapsed: Nanos::from_secs(1),
            started_unix: Nanos::ZERO,
            end: Some(Nanos::from_secs(10)),
            target_per_second: None,
            pace: pace(None),
            paused: false,
            interval: &interval,
            machine: None,
            facts: &facts,
        };
        assert_eq!(
            line(&progress, None),
            "9 s left  50,123/s  64 in flight  123 errors  p50 1.20 ms  p99 3.40 ms"
        );
        assert_eq!(line(&progress, Some("p99 ?")), "9 s left  50,123/s  64 in flight  123 errors  p99 ?");
        progress.pace = pace(Some(55_000.0));
        assert!(line(&progress, None).starts_with("9 s left  50,123/s of 55,000/s  64 in flight"));
        progress.paused = true;
        assert!(line(&progress, None).starts_with("9 s left  50,123/s  paused  64 in flight"));
        progress.elapsed = Nanos::from_secs(10);
        let waiting = line(&progress, None);
        assert!(
            waiting.starts_with("load over, waiting for answers  50,123/s  paused  64 in flight"),
            "{waiting}"
        );
        progress.elapsed = Nanos::from_secs(1);
        // Several requests an iteration: each rate with its unit, and iterations beside what was asked for.
        progress.paused = false;
        progress.pace.unit = RateUnit::Iterations;
        progress.pace.achieved = Some(25_000.0);
        let expected = "9 s left  50,123 requests/s  25,000 iterations/s of 55,000/s  64 in flight";
        assert!(line(&progress, None).starts_with(expected), "{}", line(&progress, None));
    }

    #[test]
    fn without_a_terminal_there_is_a_line_every_ten_seconds() {
        let mut shown = ProgressLine::of(Kind::Lines(BETWEEN_LINES));
        let due = |second: &u64| shown.is_due(Nanos::from_secs(*second), BETWEEN_LINES);
        assert_eq!((1..=35).filter(due).collect::<Vec<_>>(), [10, 20, 30]);
        let mut each = ProgressLine::lines();
        assert_eq!((1..=3).filter(|second| each.is_due(Nanos::from_secs(*second), Nanos::ZERO)).count(), 3);
    }

    #[test]
    fn a_bar_fills_up() {
        assert_eq!(bar(0, 500), format!("making batches  {}  0 of 500", "░".repeat(20)));
        assert_eq!(bar(200, 500), format!("making batches  {}{}  200 of 500", "█".repeat(8), "░".repeat(12)));
        assert_eq!(bar(1_500, 1_500), format!("making batches  {}  1,500 of 1,500", "█".repeat(20)));
    }
}
