//! The rate of a run, as it is changed while the run goes on.

use plimsoll_core::{Nanos, Rate, figure};
use plimsoll_engine::{Control, RateCommand};
use plimsoll_metrics::{RateChange, Steering};
use plimsoll_plan::Plan;
use plimsoll_schedule::{ScheduleError, parse_rate};

/// Handle of a run that keys, files and the control port act on.
#[derive(Clone, Debug)]
pub(crate) struct RateController {
    pub(crate) control: Control,
    pub(crate) per_connection: PerConnection,
}

/// Conversion from requests per second on every connection, the unit of h2loadrunner, to iterations of the
/// run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PerConnection {
    pub(crate) connections: u64,
    /// Sum of the weights of the scenarios, and of their steps times these.
    pub(crate) iterations: u64,
    pub(crate) requests: u64,
}

impl PerConnection {
    pub(crate) fn of(plan: &Plan) -> Self {
        let connections = plan.connections.initial.into();
        if plan.paces_requests() {
            return Self { connections, iterations: 1, requests: 1 };
        }
        let mut all = Self { connections, iterations: 0, requests: 0 };
        for scenario in &plan.scenarios {
            all.iterations += u64::from(scenario.weight);
            all.requests += u64::from(scenario.weight) * scenario.steps.len() as u64;
        }
        all
    }

    /// The rate of the run; `None` if it does not fit.
    pub(crate) fn total(&self, requests: Rate) -> Option<Rate> {
        let count = requests.count().checked_mul(self.connections)?.checked_mul(self.iterations)?;
        let period = requests.period().0.checked_mul(self.requests.max(1))?;
        Rate::new(count, Nanos(period))
    }
}

/// Parses a command: a rate, `pause` or `resume`.
///
/// # Errors
/// The problem with the text, in one line.
pub(crate) fn parse_preference(text: &str) -> Result<RateCommand, String> {
    match text.trim() {
        "pause" => Ok(RateCommand::Pause),
        "resume" => Ok(RateCommand::Resume),
        rate => match parse_rate(rate) {
            Ok(rate) => Ok(RateCommand::To(rate)),
            Err(ScheduleError::ZeroRate) => Ok(RateCommand::Pause),
            Err(ScheduleError::NotARate(_)) => {
                Err(format!("`{}` is not a rate: write 5000, 5k/s, pause or resume", rate.escape_debug()))
            }
            Err(error) => Err(error.to_string()),
        },
    }
}

/// Describes a change in words.
pub(crate) fn told(change: Option<RateChange>) -> String {
    let Some(change) = change else { return "nothing to change".to_owned() };
    let at = format!("{:.2} s of the run on", change.at.as_secs_f64());
    match (change.what, change.to_per_second) {
        (Steering::Pause, _) => format!("paused from {at}"),
        (Steering::Resume, None) => format!("resumed from {at}"),
        (Steering::Resume, Some(rate)) => format!("resumed with {} from {at}", per_second(rate)),
        (Steering::Rate, rate) => format!("rate {} from {at}", per_second(rate.unwrap_or_default())),
    }
}

/// A rate with at most three digits behind the point.
pub(crate) fn per_second(rate: f64) -> String {
    let thousandths = (rate * 1e3).round() as u64;
    let (whole, fraction) = (figure::count(thousandths / 1000), thousandths % 1000);
    if fraction == 0 { format!("{whole}/s") } else { format!("{whole}.{fraction:03}/s") }
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::SteeredBy;

    use super::*;

    #[test]
    fn wishes() {
        for (text, expected) in [
            ("5000", RateCommand::To(Rate::per_second(5000))),
            (" 5k/s ", RateCommand::To(Rate::per_second(5000))),
            ("0", RateCommand::Pause),
            ("pause", RateCommand::Pause),
            ("resume", RateCommand::Resume),
        ] {
            assert_eq!(parse_preference(text), Ok(expected), "{text}");
        }
        for text in ["", "fast", "Pause", "-5", "1e3", "99999999999999999999"] {
            let problem = parse_preference(text).unwrap_err();
            assert!(!problem.contains('\n') && problem.len() > 20, "{problem}");
        }
    }

    #[test]
    fn what_h2loadrunner_counts_becomes_iterations() {
        let one = PerConnection { connections: 10, iterations: 1, requests: 1 };
        assert_eq!(one.total(Rate::per_second(100)), Some(Rate::per_second(1000)));
        // Two scenarios of equal weight, one with two steps and one with four.
        let three = PerConnection { connections: 10, iterations: 2, requests: 6 };
        assert_eq!(three.total(Rate::per_second(100)), Rate::new(1000, Nanos::from_secs(3)));
        assert_eq!(three.total(Rate::new(u64::MAX, Nanos(1)).unwrap()), None);
    }

    #[test]
    fn changes_are_told_with_their_time() {
        let change = RateChange {
            at: Nanos::from_millis(1234),
            what: Steering::Rate,
            from_per_second: Some(1.0),
            to_per_second: Some(12_345.5),
            by: SteeredBy::Key,
        };
        assert_eq!(told(Some(change)), "rate 12,345.500/s from 1.23 s of the run on");
        let resumed = RateChange { what: Steering::Resume, to_per_second: Some(10.0), ..change };
        assert_eq!(told(Some(resumed)), "resumed with 10/s from 1.23 s of the run on");
        let paused = RateChange { what: Steering::Pause, to_per_second: None, ..change };
        assert_eq!(told(Some(paused)), "paused from 1.23 s of the run on");
        assert_eq!(told(None), "nothing to change");
    }
}
