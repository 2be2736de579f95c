//! The open model: the cost of holding a rate, and the lateness of requests.

use crate::failure::{Failure, Result};
use crate::options::Peer;
use crate::report::{Finding, Section, cell, spread, verdict};
use crate::run::{Load, Run, Tool, in_turn, run};
use crate::server::{Server, Serves};
use crate::session::Session;
use crate::statistic::{Spread, paired_ratios};

/// Requests per second of the comparison with h2load, which takes a rate per connection: from a rate at which
/// each request has a wake-up of its own to that of the seed's scenario on one core.
const PACED_RATES: [u64; 5] = [1_000, 5_000, 10_000, 30_000, 60_000];
/// The most CPU time per request, in that of h2load.
const MOST_OF_H2LOAD: f64 = 1.5;
/// Rates of the default pacing per second, and the CPU time per request of zrk 1.4.2 at each in the series of
/// 23 November 2026, in microseconds. It cannot be had from a package registry.
const DEFAULT_RATES: [(u64, f64); 5] =
    [(100, 204.0), (1_000, 70.0), (5_000, 65.0), (20_000, 36.0), (50_000, 17.0)];
/// CPU time per request of wrk 4.1.0 in that series in microseconds, on 64 connections to nginx: the measure
/// of that machine's speed.
const WRK_US: f64 = 6.0;
/// The most by which the percentiles 50 and 99 of the response time may lie above those of `--precise`, in
/// microseconds.
const ABOVE_PRECISE_US: [f64; 2] = [20.0, 150.0];
/// The rates of `--precise`, per second.
const PRECISE_RATES: [u64; 2] = [5_000, 50_000];
/// The most that the percentile 99 of the start lag may be with `--precise`.
const PRECISE_LAG_NS: f64 = 50e3;

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    Ok(vec![against_h2load(session)?, default(session)?, precise(session)?])
}

/// The default and the shared pacing beside h2load, whose requests share wake-ups as well.
fn against_h2load(session: &Session) -> Result<Section> {
    if session.options.vs.is_some_and(|peer| peer != Peer::H2load) {
        return Err(Failure::new("wrk cannot hold a rate: leave out --vs for rate"));
    }
    let h2load = Tool::Peer(Peer::H2load);
    // Before anything is started: a missing tool should not cost a run.
    h2load.program(session)?;
    let server = Server::start(session, &Serves::Sink(Vec::new()))?;
    let seconds = session.options.seconds;
    let mut section = Section::titled("GET, open, on 50 connections, beside h2load, against the sink");
    let (mut lines, mut rows) = (vec![server.line.clone()], Vec::new());
    for rate in PACED_RATES {
        let [per_s, per_connection] = [rate, rate / 50].map(|rate| rate.to_string());
        let paced = ["-c", "50", "--rate", &per_s];
        let shared = [&paced[..], &["--pacing", "shared"]].concat();
        let foreign = ["--h1", "-t1", "-c50", "-m1", "--rps", &per_connection, "-D", "{seconds}", "{url}"];
        let loads = [
            ("default", Load::plimsoll(session, &paced)),
            ("shared", Load::plimsoll(session, &shared)),
            ("h2load", Load::new(h2load, &foreign)),
        ];
        for (_, load) in &loads {
            lines.push(load.pinned(session, &server, seconds)?.line(session.directory()));
        }
        let [default, shared, peer] = in_turn(session, &server, &loads)?;
        let due = rate * u64::from(seconds);
        for (name, runs) in [("default", &default), ("--pacing shared", &shared)] {
            let ratio = ratio_of_cpu(runs, &peer);
            let met = ratio.is_some_and(|ratio| ratio.median <= MOST_OF_H2LOAD);
            let valid = runs.iter().filter(|run| run.reading.detail.invalid_reasons.is_empty()).count();
            let exact = runs.iter().filter(|run| is_exact(run, due)).count();
            rows.push(vec![
                format!("{rate}/s"),
                name.to_owned(),
                cell(spread(runs, Run::total_us), 1),
                cell(spread(&peer, Run::total_us), 1),
                cell(ratio, 2),
                format!("≤ {MOST_OF_H2LOAD:.2}"),
                verdict(met).to_owned(),
                micros(lag(runs)),
                format!("{valid} and {exact} of {}", runs.len()),
            ]);
            section.findings.push(Finding {
                case: format!("rate {rate}/s, {name}"),
                figure: "CPU µs per request, ratio to h2load".to_owned(),
                measured: cell(ratio, 2),
                limit: format!("≤ {MOST_OF_H2LOAD:.2}"),
                met,
            });
        }
    }
    section.commands(&lines);
    let head = [
        "rate",
        "pacing",
        "CPU µs per request",
        "of h2load",
        "ratio in pairs",
        "limit",
        "",
        "start lag p99, µs",
        "runs valid, and exact",
    ];
    section.table(&head, &rows);
    section.note(
        "h2load starts the requests of a connection at ticks of up to 10 ms. The default's start lag p99 is to be \
         below 100 µs, that of `--pacing shared` below 1 ms.",
    );
    Ok(section)
}

/// The CPU time per request of these runs, in that of the peer's, pair by pair.
fn ratio_of_cpu(runs: &[Run], peer: &[Run]) -> Option<Spread> {
    let [runs, peer] = [runs, peer].map(|runs| runs.iter().map(Run::total_us).collect::<Vec<_>>());
    Spread::of(paired_ratios(&runs, &peer))
}

/// The default pacing beside `--precise`, against nginx: on time for much less CPU time.
fn default(session: &Session) -> Result<Section> {
    let server = Server::start(session, &Serves::Nginx)?;
    let seconds = session.options.seconds;
    let mut section = Section::titled("GET, open, the default pacing beside --precise, against nginx");
    let yardstick = Load::new(Tool::Peer(Peer::Wrk), &["-t1", "-c64", "-d{seconds}s", "{url}"]);
    let mut lines =
        vec![server.line.clone(), yardstick.pinned(session, &server, seconds)?.line(session.directory())];
    let slowness = run(session, &server, &yardstick, seconds, &[])?.total_us() / WRK_US;
    section.note(format!(
        "wrk needs {slowness:.2} times the CPU time per request that it needed beside zrk: the limits of zrk are \
         scaled by that."
    ));
    let mut rows = Vec::new();
    for (rate, zrk_us) in DEFAULT_RATES.map(|(rate, zrk_us)| (rate, zrk_us * slowness)) {
        let per_s = rate.to_string();
        let loads = [
            ("default", Load::plimsoll(session, &["-c", "50", "--rate", &per_s])),
            ("precise", Load::plimsoll(session, &["-c", "50", "--rate", &per_s, "--precise"])),
        ];
        for (_, load) in &loads {
            lines.push(load.pinned(session, &server, seconds)?.line(session.directory()));
        }
        let [default, precise] = in_turn(session, &server, &loads)?;
        let case = format!("rate {rate}/s, default");
        for (index, percentile) in ["p50", "p99"].into_iter().enumerate() {
            let times = |runs: &[Run]| -> Vec<f64> {
                let times = runs.iter().filter_map(|run| run.reading.detail.response_time_ns);
                times.map(|times| times[index] as f64 / 1e3).collect()
            };
            let (times, least) = (times(&default), times(&precise));
            let above = Spread::of(times.iter().zip(&least).map(|(time, least)| time - least));
            let limit = ABOVE_PRECISE_US[index];
            let met = above.is_some_and(|above| above.median <= limit);
            rows.push(vec![
                format!("{rate}/s"),
                format!("response time {percentile}, µs"),
                cell(Spread::of(times), 1),
                cell(Spread::of(least), 1),
                cell(above, 1),
                format!("{limit:.0} above"),
                verdict(met).to_owned(),
            ]);
            section.findings.push(Finding {
                case: case.clone(),
                figure: format!("response time {percentile} above --precise, µs"),
                measured: cell(above, 1),
                limit: format!("≤ {limit:.0}"),
                met,
            });
        }
        let cpu = spread(&default, Run::total_us);
        let met = cpu.is_some_and(|cpu| cpu.median <= zrk_us);
        section.findings.push(Finding {
            case,
            figure: "CPU µs per request".to_owned(),
            measured: cell(cpu, 1),
            limit: format!("≤ {zrk_us:.0}, zrk"),
            met,
        });
        let [cpu, precise_cpu] = [&default, &precise].map(|runs| cell(spread(runs, Run::total_us), 1));
        let [lags, precise_lags] = [&default, &precise].map(|runs| micros(lag(runs)));
        let valid =
            |runs: &[Run]| runs.iter().filter(|run| run.reading.detail.invalid_reasons.is_empty()).count();
        let [valid, precise_valid] =
            [&default, &precise].map(|runs| format!("{} of {}", valid(runs), runs.len()));
        let row = |figure: &str, default: String, precise: String, limit: String, met: &str| {
            let cells = [format!("{rate}/s"), figure.to_owned(), default, precise, String::new(), limit];
            let mut cells = Vec::from(cells);
            cells.push(met.to_owned());
            cells
        };
        rows.push(row("CPU µs per request", cpu, precise_cpu, format!("{zrk_us:.0}, zrk"), verdict(met)));
        rows.push(row("start lag p99, µs", lags, precise_lags, String::new(), ""));
        rows.push(row("runs valid", valid, precise_valid, String::new(), ""));
    }
    section.commands(&lines);
    section.table(&["rate", "", "default", "--precise", "above, in pairs", "limit", ""], &rows);
    Ok(section)
}

/// `--precise` alone. On a machine that cannot hold it, the verdict has to say so: such a run keeps the
/// promise too, and is shown with its verdict.
fn precise(session: &Session) -> Result<Section> {
    let server = Server::start(session, &Serves::Sink(Vec::new()))?;
    let seconds = session.options.seconds;
    let mut section = Section::titled("GET, open, --precise, against the sink");
    let (mut lines, mut rows) = (vec![server.line.clone()], Vec::new());
    for rate in PRECISE_RATES {
        let load = Load::plimsoll(session, &["-c", "50", "--precise", "--rate", &rate.to_string()]);
        lines.push(load.pinned(session, &server, seconds)?.line(session.directory()));
        let runs = (0..session.options.pairs)
            .map(|_| run(session, &server, &load, seconds, &[]))
            .collect::<Result<Vec<Run>>>()?;
        let due = rate * u64::from(seconds);
        let outcome = Outcome::of(&runs, due);
        let limit = "lag < 50 µs and exact, or invalid";
        rows.push(vec![
            format!("{rate}/s"),
            micros(lag(&runs)),
            cell(spread(&runs, Run::total_us), 2),
            cell(spread(&runs, |run| run.foreign_share * 100.0), 0),
            format!("{}", outcome.precise),
            format!("{}", outcome.invalid),
            format!("{}", outcome.untrue),
            verdict(outcome.untrue == 0).to_owned(),
        ]);
        section.findings.push(Finding {
            case: format!("rate {rate}/s --precise"),
            figure: format!("start lag p99, µs; counts ({due})"),
            measured: format!(
                "{}; {} precise, {} invalid, {} neither",
                micros(lag(&runs)),
                outcome.precise,
                outcome.invalid,
                outcome.untrue
            ),
            limit: limit.to_owned(),
            met: outcome.untrue == 0,
        });
    }
    section.commands(&lines);
    let head = [
        "rate",
        "start lag p99, µs",
        "CPU µs per request",
        "others on the tool's core, %",
        "runs precise",
        "runs `invalid`",
        "runs neither",
        "",
    ];
    section.table(&head, &rows);
    section.note(
        "A run is precise if it is valid, its start lag p99 is below 50 µs, and scheduled = started = due.",
    );
    Ok(section)
}

/// Number of runs that were precise, and number of those that were not, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// Valid, on time and exact.
    precise: usize,
    /// Called invalid by Plimsoll itself.
    invalid: usize,
    /// Called valid, but late or not exact.
    untrue: usize,
}

impl Outcome {
    fn of(runs: &[Run], due: u64) -> Self {
        let mut outcome = Self::default();
        for run in runs {
            let detail = &run.reading.detail;
            let on_time = detail.start_lag_p99_ns.is_some_and(|lag| (lag as f64) < PRECISE_LAG_NS);
            match (detail.invalid_reasons.is_empty(), on_time && is_exact(run, due)) {
                (true, true) => outcome.precise += 1,
                (false, _) => outcome.invalid += 1,
                (true, false) => outcome.untrue += 1,
            }
        }
        outcome
    }
}

fn is_exact(run: &Run, due: u64) -> bool {
    let detail = &run.reading.detail;
    detail.scheduled == due && detail.started == due
}

/// The percentile 99 of the start lag over runs, in nanoseconds.
fn lag(runs: &[Run]) -> Option<Spread> {
    Spread::of(runs.iter().filter_map(|run| run.reading.detail.start_lag_p99_ns).map(|lag| lag as f64))
}

fn micros(nanos: Option<Spread>) -> String {
    cell(nanos.map(|lag| Spread { median: lag.median / 1e3, min: lag.min / 1e3, max: lag.max / 1e3 }), 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{Detail, Reading};

    fn measured(started: u64, lag_ns: Option<u64>, reason: Option<&str>) -> Run {
        let detail = Detail {
            scheduled: 100,
            started,
            start_lag_p99_ns: lag_ns,
            invalid_reasons: reason.map(str::to_owned).into_iter().collect(),
            ..Detail::default()
        };
        Run::undisturbed(1.0, 1.0, Reading { completed: started, per_s: 1.0, detail, ..Reading::default() })
    }

    #[test]
    fn a_late_or_inexact_run_that_calls_itself_valid_breaks_the_promise() {
        let runs = [
            measured(100, Some(49_999), None),
            measured(100, Some(50_000), None),
            measured(99, Some(10), None),
            measured(100, None, None),
            measured(50, Some(90_000), Some("start_lag")),
        ];
        assert_eq!(Outcome::of(&runs, 100), Outcome { precise: 1, invalid: 1, untrue: 3 });
        assert_eq!(Outcome::of(&runs[..1], 101), Outcome { precise: 0, invalid: 0, untrue: 1 });
    }

    #[test]
    fn lags_are_shown_in_microseconds() {
        let runs = [measured(1, Some(41_500), None), measured(1, None, None)];
        assert_eq!(micros(lag(&runs)), "41.5 (41.5..41.5)");
        assert_eq!(micros(lag(&runs[1..])), "–");
    }
}
