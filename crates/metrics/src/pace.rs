//! Rates beside the wanted ones: made in one place, so that both have the same unit.

use std::fmt;

use plimsoll_core::figure;

use crate::{Interval, Outline};

/// Unit in which the rate of a load is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateUnit {
    /// Requests, where every arrival is one: whole responses, against arrivals.
    #[default]
    Requests,
    /// Iterations, where they have several requests and arrivals are iterations: those that were started,
    /// against arrivals.
    Iterations,
}

/// A rate that came about, beside the one that was asked for, both per second of the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// The unit of both rates.
    pub unit: RateUnit,
    /// The achieved rate per second; `None` over no time.
    pub achieved: Option<f64>,
    /// The target rate per second; `None` in the closed model, and where nothing was due any more.
    pub asked: Option<f64>,
}

impl Pace {
    /// The pace of a time with this many answered requests, started iterations and scheduled arrivals per
    /// second.
    pub fn new(unit: RateUnit, requests: Option<f64>, iterations: Option<f64>, asked: Option<f64>) -> Self {
        let achieved = match unit {
            RateUnit::Requests => requests,
            RateUnit::Iterations => iterations,
        };
        Self { unit, achieved, asked }
    }

    /// The pace of an interval, in which arrivals were asked for at this mean rate. After the end of the load
    /// nothing is.
    pub fn of_interval(interval: &Interval, outline: &Outline, asked: Option<f64>) -> Self {
        let seconds = interval.length.as_secs_f64();
        let rate = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let asked = asked.filter(|_| !interval.drain);
        Self::new(outline.rate_unit(), rate(interval.completed), rate(interval.iterations), asked)
    }

    /// The achieved rate as a share of the target.
    pub fn share(&self) -> Option<f64> {
        self.asked.filter(|asked| *asked > 0.0).and_then(|asked| Some(self.achieved? / asked))
    }

    /// The achieved rate, with its unit unless that is requests: `1,000/s`, `150 iterations/s`.
    pub fn achieved_text(&self) -> String {
        match (self.achieved, self.unit) {
            (Some(rate), _) => self.text(rate),
            (None, RateUnit::Requests) => "-".to_owned(),
            (None, RateUnit::Iterations) => "- iterations/s".to_owned(),
        }
    }

    /// The target rate, in the same way.
    pub fn asked_text(&self) -> Option<String> {
        self.asked.map(|rate| self.text(rate))
    }

    fn text(&self, rate: f64) -> String {
        match self.unit {
            RateUnit::Requests => figure::per_second(rate),
            RateUnit::Iterations => figure::per_second_of("iterations", rate),
        }
    }
}

/// `950/s of 1,000/s`, `150 iterations/s of 150/s`, or the achieved rate alone.
impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.achieved_text())?;
        self.asked.map_or(Ok(()), |asked| write!(f, " of {}", figure::per_second(asked)))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Nanos;

    use super::*;
    use crate::ScenarioOutline;

    fn outline(steps: u32) -> Outline {
        Outline {
            scenarios: vec![ScenarioOutline { name: "buy".to_owned(), steps: 0..steps }],
            steps: (0..steps).map(|step| format!("step {step}")).collect(),
            ..Outline::default()
        }
    }

    #[test]
    fn requests_are_never_compared_with_iterations() {
        let length = Nanos::from_secs(2);
        let interval = Interval { length, completed: 822, iterations: 300, ..Interval::default() };
        let pace = Pace::of_interval(&interval, &outline(3), Some(150.0));
        assert_eq!((pace.to_string().as_str(), pace.share()), ("150 iterations/s of 150/s", Some(1.0)));
        let pace = Pace::of_interval(&interval, &outline(1), Some(500.0));
        assert_eq!((pace.to_string().as_str(), pace.share()), ("411/s of 500/s", Some(0.822)));
        let closed = Pace::of_interval(&interval, &outline(1), None);
        assert_eq!((closed.to_string().as_str(), closed.share()), ("411/s", None));
    }

    #[test]
    fn nothing_is_asked_for_after_the_end() {
        let drain =
            Interval { length: Nanos::from_secs(1), completed: 500, drain: true, ..Interval::default() };
        assert_eq!(Pace::of_interval(&drain, &outline(1), Some(0.0)).to_string(), "500/s");
        let none = Pace::of_interval(&Interval::default(), &outline(1), Some(5.0));
        assert_eq!((none.to_string().as_str(), none.share()), ("- of 5.00/s", None));
    }
}
