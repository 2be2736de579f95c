//! One figure of a run, as runs are compared by it.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use plimsoll_core::{Nanos, figure};
use plimsoll_histogram::Histogram;
use plimsoll_metrics::EventStreamRecord;
use plimsoll_metrics::threshold::TimeKind;
use plimsoll_statistics::judgement::Orientation;

use crate::contract::event_streams::EventStreamsResult;
use crate::contract::result::{ModelKind, RunResult};
use crate::contract::summary::{PERCENTILES, Summary};

/// A figure of a run. Its names are those of thresholds, `p99`, `service_time.p99.9`, `mean`, `rate`, and
/// `errors` and `cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A figure of a time; without its kind, that of the model: response time in the open model, service time
    /// in the closed one.
    Time(Option<TimeKind>, TimeFigure),
    /// Responses per second.
    Rate,
    /// The share of requests that failed or timed out, of those that ended or have no answer at the end.
    Errors,
    /// CPU time of the generator per response, in microseconds.
    Cpu,
}

/// A figure of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeFigure {
    /// The arithmetic mean.
    Mean,
    /// One of [`PERCENTILES`], by its index.
    Percentile(usize),
}

/// A name that no figure has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMeasure(String);

impl UnknownMeasure {
    /// Advice on the names of figures.
    pub const HINT: &'static str = "write a percentile (p50, p75, p90, p95, p99, p99.9, p99.99), mean, rate, errors or cpu; a time other \
         than the usual one stands in front, as in service_time.p99";
}

impl fmt::Display for UnknownMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a figure of a run", self.0)
    }
}

impl std::error::Error for UnknownMeasure {}

impl FromStr for Measure {
    type Err = UnknownMeasure;

    fn from_str(text: &str) -> Result<Self, UnknownMeasure> {
        let unknown = || UnknownMeasure(text.to_owned());
        match text {
            "rate" => return Ok(Self::Rate),
            "errors" => return Ok(Self::Errors),
            "cpu" => return Ok(Self::Cpu),
            _ => {}
        }
        // The point of p99.9 separates nothing.
        let kind = TimeKind::ALL
            .iter()
            .find(|kind| text.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with('.')));
        let rest = kind.map_or(text, |kind| &text[kind.name().len() + 1..]);
        if rest == "mean" {
            return Ok(Self::Time(kind.copied(), TimeFigure::Mean));
        }
        let name = rest.strip_prefix('p').ok_or_else(unknown)?;
        let index = PERCENTILES.iter().position(|(known, _)| *known == name).ok_or_else(unknown)?;
        Ok(Self::Time(kind.copied(), TimeFigure::Percentile(index)))
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(kind, figure) => {
                if let Some(kind) = kind {
                    write!(f, "{}.", kind.name())?;
                }
                match figure {
                    TimeFigure::Mean => f.write_str("mean"),
                    TimeFigure::Percentile(index) => write!(f, "p{}", PERCENTILES[*index].0),
                }
            }
            Self::Rate => f.write_str("rate"),
            Self::Errors => f.write_str("errors"),
            Self::Cpu => f.write_str("cpu"),
        }
    }
}

impl Measure {
    /// The percentile of this name, as in [`PERCENTILES`], of the model's time.
    pub(crate) fn percentile(name: &str) -> Self {
        let index = PERCENTILES.iter().position(|(known, _)| *known == name);
        Self::Time(None, TimeFigure::Percentile(index.expect("the names are those of the table")))
    }

    /// Returns the measure with the kind of time that counts in this model.
    #[must_use]
    pub fn in_model(self, model: ModelKind) -> Self {
        match (self, model) {
            (Self::Time(None, figure), ModelKind::Open) => Self::Time(Some(TimeKind::Response), figure),
            (Self::Time(None, figure), ModelKind::Closed) => Self::Time(Some(TimeKind::Service), figure),
            (other, _) => other,
        }
    }

    /// Which way it should go.
    pub const fn orientation(self) -> Orientation {
        match self {
            Self::Rate => Orientation::Higher,
            Self::Time(..) | Self::Errors | Self::Cpu => Orientation::Lower,
        }
    }

    /// Returns `true` if its changes are differences, `false` if they are ratios.
    pub const fn is_absolute(self) -> bool {
        matches!(self, Self::Errors)
    }

    /// The unit of its values.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Time(..) => "ns",
            Self::Rate => "per_s",
            Self::Errors => "share",
            Self::Cpu => "us",
        }
    }

    /// A value of it for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Time(..) => figure::nanos_f64(value),
            Self::Rate => figure::per_second(value),
            Self::Errors => figure::share(value),
            Self::Cpu => figure::nanos_f64(value * 1e3),
        }
    }

    /// Returns the value of the measure in a run.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn of(self, result: &RunResult) -> Result<f64, String> {
        match self.in_model(result.model.kind) {
            Self::Time(kind, figure) => {
                let summary = summary(result, kind.unwrap_or(TimeKind::Response));
                let (value, missing) = match figure {
                    TimeFigure::Mean => (summary.mean, None),
                    TimeFigure::Percentile(index) => {
                        (summary.p.values()[index], summary.p_missing.get(PERCENTILES[index].0))
                    }
                };
                let reason = || missing.cloned().unwrap_or_else(|| "no samples".to_owned());
                value.map(|value| value as f64).ok_or_else(reason)
            }
            Self::Rate => result.rate.achieved_per_s.ok_or_else(|| "the run had no length".to_owned()),
            Self::Errors => {
                let bad = result.accounting.failed.saturating_add(result.accounting.timed_out);
                share_of(bad, result).ok_or_else(|| "no request ended".to_owned())
            }
            Self::Cpu => result.generator.cpu_us_per_request.ok_or_else(|| "no responses".to_owned()),
        }
    }

    /// The most that its value in a run may be, if requests without an answer at the end may yet raise it;
    /// `None` if they do not, or if nothing bounds it.
    pub(crate) fn most(self, result: &RunResult) -> Option<f64> {
        if self != Self::Errors || result.accounting.in_flight_at_stop == 0 {
            return None;
        }
        let accounting = &result.accounting;
        let all = [accounting.failed, accounting.timed_out, accounting.in_flight_at_stop];
        share_of(all.into_iter().fold(0, u64::saturating_add), result)
    }

    /// Returns `true` if its value in a run is only a lower bound, because of requests without an answer.
    pub fn is_at_least(self, result: &RunResult) -> bool {
        if self == Self::Errors {
            return result.accounting.in_flight_at_stop > 0;
        }
        let Self::Time(kind, figure) = self.in_model(result.model.kind) else { return false };
        let name = match figure {
            TimeFigure::Mean => "mean",
            TimeFigure::Percentile(index) => PERCENTILES[index].0,
        };
        summary(result, kind.unwrap_or(TimeKind::Response)).is_at_least(name)
    }
}

/// A number of requests as a share of those that ended or have no answer at the end; `None` without any.
fn share_of(count: u64, result: &RunResult) -> Option<f64> {
    let all = result.accounting.requests();
    (all > 0).then(|| count as f64 / all as f64)
}

/// The streams of a run without any.
static NO_STREAMS: LazyLock<EventStreamsResult> =
    LazyLock::new(|| EventStreamsResult::new(&EventStreamRecord::default(), Nanos::ZERO));

/// A time that nothing has.
static NO_TIMES: LazyLock<Summary> = LazyLock::new(|| Summary::exact(&Histogram::new()));

fn summary(result: &RunResult, kind: TimeKind) -> &Summary {
    let streams = result.event_streams.as_ref().unwrap_or(&NO_STREAMS);
    match kind {
        TimeKind::Response => &result.response_time,
        TimeKind::Service => &result.service_time,
        TimeKind::StartLag => &result.start_lag,
        TimeKind::FirstByte => &result.first_byte_time,
        TimeKind::Connect => &result.connect_time,
        TimeKind::Tls => &result.tls_time,
        TimeKind::Failed => &result.failed_response_time,
        TimeKind::Ttft => &streams.ttft,
        TimeKind::TtftFromSent => &streams.ttft_from_sent,
        TimeKind::Ttfa => &streams.ttfa,
        TimeKind::Itl => &streams.itl,
        TimeKind::Tpot => &streams.tpot,
        TimeKind::Ntpot => &streams.ntpot,
        TimeKind::Lag => result.lag.as_ref().unwrap_or(&NO_TIMES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["p50", "p99.9", "service_time.p99.99", "start_lag.mean", "mean", "rate", "errors", "cpu"]
        {
            assert_eq!(name.parse::<Measure>().unwrap().to_string(), name);
        }
        for name in ["", "p", "p98", "99", "service_time", "service_time.", "latency.p99", "p99 "] {
            assert_eq!(name.parse::<Measure>(), Err(UnknownMeasure(name.to_owned())), "{name}");
        }
    }
}
