//! The transaction that h2loadrunner names as its headline: create a resource, update it where the answer
//! says that it is, delete it; over HTTP/2, with bodies of 300 bytes, while the server leaves 3 % of the
//! requests without an answer and fails 7 % of them. Its authors need one core for 60,000 requests/s.

use std::fs;

use crate::failure::{Failure, Result};
use crate::report::{Finding, Section, cell, invalid_runs, spread};
use crate::run::{Load, Run, run};
use crate::server::{Server, Serves};
use crate::session::Session;

/// The path of the create request: `-USER_ID` stands for the number.
const PATH: &str = "nudm-ee/v2/imsi-2621012-USER_ID/sdm-subscriptions/";

/// Both bodies, of about 300 bytes with ten digits for `-USER_ID`, after h2loadrunner's example.
const CREATE: &str = "{\"callbackReference\":\"http://127.0.0.1/nhss-ee/v1/msisdn-491971103488-USER_ID/\
    ee-subscriptions\",\"monitoringConfiguration\":{\"120984\":{\"eventType\":\"UE_REACHABILITY_FOR_SMS\",\
    \"immediateFlag\":false,\"referenceId\":120984}},\"reportingOptions\":{\"maxNumOfReports\":0,\
    \"monitoringDuration\":\"2030-01-01T00:00:00Z\"}}";
const UPDATE: &str = "{\"callbackReference\":\"http://127.0.0.1/nhss-ee/v1/msisdn-491971103488-USER_ID/\
    ee-subscriptions\",\"monitoringConfiguration\":{\"120984\":{\"eventType\":\"LOSS_OF_CONNECTIVITY\",\
    \"immediateFlag\":true,\"referenceId\":120984}},\"reportingOptions\":{\"maxNumOfReports\":7,\
    \"monitoringDuration\":\"2031-01-01T00:00:00Z\"}}";

/// A load model: the way in which users arrive.
#[derive(Clone, Copy, Debug)]
struct Model {
    name: &'static str,
    shape: &'static [&'static str],
    /// The fewest requests per second of the generator's CPU time.
    per_cpu_second: f64,
}

const MODELS: [Model; 2] = [
    // As fast as answers allow. A request without an answer holds up its user for 2 s, which is 60 ms per
    // request on average, so that many users are needed to keep the generator busy.
    Model { name: "closed", shape: &["-c", "100", "-m", "512"], per_cpu_second: 240_000.0 },
    // As the original was measured, with its figure as the limit.
    Model {
        name: "open, 60,000/s",
        shape: &["-c", "100", "-m", "512", "--rps", "600"],
        per_cpu_second: 60_000.0,
    },
];

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    let (create, update) = (write(session, "create.json", CREATE)?, write(session, "update.json", UPDATE)?);
    let mut series = Vec::new();
    for model in MODELS {
        series.push(Series::measure(session, model, &load(session, model.shape, &create, &update))?);
    }
    let mut section = Section::titled("CRUD over HTTP/2, with 3 % never answered and 7 % failing");
    let mut lines: Vec<&str> = series.iter().flat_map(|series| [&*series.server, &*series.tool]).collect();
    lines.dedup();
    section.commands(&lines);
    section.table(&HEAD, &series.iter().map(Series::row).collect::<Vec<_>>());
    section.note(
        "Requests are all that ended: answered, failed and timed out. The runs are without a preflight and wait \
         for their last timeouts, so that the requests which timed out have to be those that the server left \
         without an answer.",
    );
    for series in &series {
        if let Some(invalid) = invalid_runs(&series.runs) {
            let name = series.model.name;
            section.note(format!("{name}: Plimsoll's verdict on itself was `invalid` in {invalid}."));
        }
    }
    section.findings.extend(series.iter().flat_map(Series::findings));
    Ok(vec![section])
}

const HEAD: [&str; 9] = [
    "load",
    "requests per CPU second",
    "CPU µs per request",
    "requests/s",
    "failed, %",
    "timed out, %",
    "server's use of its core, %",
    "others on the tool's core, %",
    "runs with all timeouts accounted for",
];

/// Writes a body into the session's directory and returns its path.
fn write(session: &Session, name: &str, body: &str) -> Result<String> {
    let path = session.directory().join(name);
    fs::write(&path, body)
        .map_err(|error| Failure::because(format!("cannot write {}", path.display()), error))?;
    Ok(path.display().to_string())
}

fn load(session: &Session, shape: &[&str], create: &str, update: &str) -> Load {
    let (create, update) =
        (format!("--crud-create-data-file={create}"), format!("--crud-update-data-file={update}"));
    let transaction = [
        "--http2",
        "--no-preflight",
        "--stream-timeout-interval-ms=2000",
        // Longer than the timeout.
        "--drain=5s",
        "--crud-create-method=POST",
        "--crud-update-method=PATCH",
        "--crud-delete-method=DELETE",
        "--crud-resource-header=location",
        "--crud-request-variable-name=-USER_ID",
        "--crud-request-variable-value-start=1",
        "--crud-request-variable-value-end=1000000000",
        &create,
        &update,
    ];
    let mut load = Load::plimsoll(session, &[&transaction, shape].concat());
    for arg in load.args.iter_mut().filter(|arg| *arg == "{url}") {
        arg.push_str(PATH);
    }
    load.among_faults = true;
    load
}

/// The runs of one model.
struct Series {
    model: Model,
    /// The command lines of the first run.
    server: String,
    tool: String,
    runs: Vec<Run>,
    /// Requests that the server left without an answer, run by run.
    dropped: Vec<u64>,
}

impl Series {
    fn measure(session: &Session, model: Model, load: &Load) -> Result<Self> {
        let seconds = session.options.seconds;
        let (mut lines, mut runs, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..session.options.pairs {
            // A server per run: it says at its end how many requests it left without an answer.
            let server = Server::start(session, &Serves::Target("crud", Vec::new()))?;
            runs.push(run(session, &server, load, seconds, &[])?);
            let tool = load.pinned(session, &server, seconds)?.line(session.directory());
            lines.push((server.line.clone(), tool));
            dropped.push(parse_dropped(&server.stop()?)?);
        }
        let (server, tool) = lines.into_iter().next().unwrap_or_default();
        Ok(Self { model, server, tool, runs, dropped })
    }

    fn row(&self) -> Vec<String> {
        let share = |part: fn(&Run) -> u64| {
            cell(spread(&self.runs, |run| 100.0 * part(run) as f64 / ended(run) as f64), 2)
        };
        vec![
            self.model.name.to_owned(),
            cell(spread(&self.runs, per_cpu_second), 0),
            cell(spread(&self.runs, |run| 1e6 / per_cpu_second(run)), 2),
            cell(spread(&self.runs, |run| run.reading.per_s), 0),
            share(|run| run.reading.detail.failed),
            share(|run| run.reading.detail.timed_out),
            cell(spread(&self.runs, |run| run.server_share * 100.0), 0),
            cell(spread(&self.runs, |run| run.foreign_share * 100.0), 0),
            format!("{} of {}", self.accounted(), self.runs.len()),
        ]
    }

    /// Runs whose timeouts are the requests that the server dropped. Requests in flight at the end may be
    /// among either.
    fn accounted(&self) -> usize {
        let is_accounted = |(run, dropped): &(&Run, &u64)| {
            let detail = &run.reading.detail;
            detail.timed_out.abs_diff(**dropped) <= detail.in_flight_at_stop
        };
        self.runs.iter().zip(&self.dropped).filter(is_accounted).count()
    }

    fn findings(&self) -> Vec<Finding> {
        let rate = spread(&self.runs, per_cpu_second);
        let timeouts: Vec<String> =
            self.runs.iter().map(|run| run.reading.detail.timed_out.to_string()).collect();
        let dropped: Vec<String> = self.dropped.iter().map(u64::to_string).collect();
        let finding = |figure: &str, measured, limit: String, met| Finding {
            case: format!("crud, {}", self.model.name),
            figure: figure.to_owned(),
            measured,
            limit,
            met,
        };
        vec![
            finding(
                "requests per CPU second",
                cell(rate, 0),
                format!("≥ {:.0}", self.model.per_cpu_second),
                rate.is_some_and(|rate| rate.median >= self.model.per_cpu_second),
            ),
            finding(
                "timed out, beside left without an answer",
                format!("{}; {}", timeouts.join(", "), dropped.join(", ")),
                "equal".to_owned(),
                self.accounted() == self.runs.len(),
            ),
        ]
    }
}

/// Requests that ended, whatever their outcome.
fn ended(run: &Run) -> u64 {
    run.reading.completed + run.reading.detail.failed + run.reading.detail.timed_out
}

/// Requests per second of CPU time.
fn per_cpu_second(run: &Run) -> f64 {
    ended(run) as f64 * 1e6 / (run.usage.user_us + run.usage.sys_us)
}

/// The number before the word "dropped" in the server's last message.
fn parse_dropped(said: &str) -> Result<u64> {
    let words: Vec<&str> = said.split_whitespace().collect();
    let number = words.windows(2).rev().find(|pair| pair[1].trim_end_matches([',', ';', '.']) == "dropped");
    number
        .and_then(|pair| pair[0].replace(',', "").parse().ok())
        .ok_or_else(|| Failure::new(format!("the server did not say how much it dropped: {}", said.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{Detail, Reading};

    fn series(runs: &[(u64, u64, u64)]) -> Series {
        let run = |&(timed_out, in_flight_at_stop, _): &(u64, u64, u64)| {
            let detail = Detail { failed: 60, timed_out, in_flight_at_stop, ..Detail::default() };
            Run::undisturbed(1_000.0, 3_000.0, Reading { completed: 910, detail, ..Reading::default() })
        };
        Series {
            model: MODELS[0],
            server: String::new(),
            tool: String::new(),
            runs: runs.iter().map(run).collect(),
            dropped: runs.iter().map(|run| run.2).collect(),
        }
    }

    #[test]
    fn every_request_that_ended_counts() {
        let series = series(&[(30, 0, 30)]);
        let row = series.row();
        assert_eq!(row[1..3], ["250000 (250000..250000)", "4.00 (4.00..4.00)"]);
        assert_eq!(row[4..6], ["6.00 (6.00..6.00)", "3.00 (3.00..3.00)"]);
        assert!(series.findings().iter().all(|finding| finding.met), "{:?}", series.findings());
    }

    #[test]
    fn a_timeout_that_the_server_knows_nothing_of_is_found() {
        assert_eq!(series(&[(30, 0, 30), (30, 2, 32), (30, 2, 28), (30, 2, 33), (30, 0, 29)]).accounted(), 3);
        let findings = series(&[(30, 0, 30), (31, 0, 30)]).findings();
        assert_eq!((findings[1].met, &*findings[1].measured), (false, "30, 31; 30, 30"));
    }

    #[test]
    fn the_server_says_how_much_it_dropped() {
        let said =
            "target: listening on 127.0.0.1:1\ncrud: 40,100 requests on 8 connections, 1,203 dropped, 7 x\n";
        assert_eq!(parse_dropped(said), Ok(1_203));
        for bad in ["", "dropped", "many dropped", "3 resets"] {
            assert!(parse_dropped(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bodies_have_300_bytes() {
        for body in [CREATE, UPDATE] {
            let length = body.replace("-USER_ID", "0123456789").len();
            assert!((295..=305).contains(&length), "{length}");
        }
    }
}
