//! The result of a capacity search: an interval, its evidence, and every trial.

use plimsoll_core::figure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::context::Host;
use crate::contract::result::{OutcomeResult, Tool, shell_line};
use crate::contract::trial::TrialFigures;

/// The version of this contract: raised when a field changes its meaning or goes, not when one is added.
pub const CAPACITY_SCHEMA_VERSION: u32 = 1;

/// The result of a capacity search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityResult {
    /// Version of this contract.
    pub schema_version: u32,
    /// The program that searched.
    pub tool: Tool,
    /// Identity and circumstances of the search.
    pub search: SearchResult,
    /// The answer.
    pub capacity: Capacity,
    /// The rates that were tried, ascending: the curve of load against response time.
    pub levels: Vec<LevelResult>,
    /// Every trial in its order.
    pub trials: Vec<TrialResult>,
}

/// Identity and circumstances of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResult {
    /// Identity of the search.
    pub id: String,
    /// Name of the search, if it was given one; omitted without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The URLs of its targets, without user and password; missing in older results.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Seed of every random choice; trials take the numbers that follow it.
    pub seed: u64,
    /// When it started: RFC 3339, UTC.
    pub started_at: String,
    /// Start of the search in nanoseconds since 1970; 0 in older results.
    #[serde(default)]
    pub started_at_unix_ns: u64,
    /// Duration of the search in seconds.
    pub duration_s: f64,
    /// The command line, without secrets.
    pub args: Vec<String>,
    /// Hash of the plan at the first rate.
    pub plan_hash: String,
    /// The machine that generated the load.
    pub host: Host,
    /// The load in words: connections, protocol, arrivals.
    pub load: String,
    /// The SLO, as thresholds.
    pub slo: Vec<String>,
    /// Two-sided confidence of the interval, and of what is known of one rate.
    pub confidence: f64,
    /// The width that was aimed at, as a share of the lower end.
    pub precision: f64,
    /// Length of the shortest trial in seconds.
    pub trial_s: f64,
}

/// The capacity of the server, as an interval of rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capacity {
    /// Lower end of the interval of the capacity, in iterations per second; null if no rate was shown to hold
    /// what was asked for.
    pub low_per_s: Option<f64>,
    /// Upper end of the interval of the capacity, in iterations per second; null if no rate was shown not to
    /// hold what was asked for.
    pub high_per_s: Option<f64>,
    /// The rate that the server was asked to carry at least, in iterations per second; omitted if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// Requests per iteration where it is known.
    pub requests_per_iteration: Option<f64>,
    /// True if the lower end was tried once more, three times as long as a shortest trial, and did not break.
    pub confirmed: bool,
    /// The highest rate, at most the lower end, that did not break right after an overload; null if none was
    /// found.
    pub after_overload_per_s: Option<f64>,
    /// Reason why the search ended: narrow, unclear, highest, generator, lowest, answered or stopped.
    pub end: String,
    /// Reason why the search ended, in a sentence.
    pub statement: String,
    /// Remarks on the capacity, a sentence each.
    pub notes: Vec<String>,
}

/// Findings about one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelResult {
    /// The rate in iterations per second.
    pub rate_per_s: f64,
    /// holds, breaks, unclear, or not_applied if the generator could not put it on the server. A rate above
    /// the lower end of the capacity that held for too short a time to count there is unclear.
    pub finding: String,
    /// Reason for the finding, in a few words, where the figures of a trial or the capacity suggest another
    /// one; omitted without, and in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Measured seconds.
    pub measured_s: f64,
    /// The share of bad requests by each part of the SLO.
    pub shares: Vec<ShareResult>,
}

/// A share of bad requests against its limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShareResult {
    /// The part of the SLO.
    pub slo: String,
    /// The share of bad requests has to be below this.
    pub limit: f64,
    /// Share of requests that were bad; null if none was counted, as where they came faster than they were
    /// answered.
    pub share: Option<f64>,
    /// Lower limit of the interval of the true share; null with too few slices.
    pub low: Option<f64>,
    /// Upper limit.
    pub high: Option<f64>,
    /// Factor by which its variance exceeds that of independent requests; null as well if none or all of the
    /// requests were bad, which does not show how bad ones come together.
    pub variance_inflation: Option<f64>,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialResult {
    /// ramp, bisection, estimation, confirmation or from_above.
    pub purpose: String,
    /// The rate in iterations per second.
    pub rate_per_s: f64,
    /// The rate that was put on the server right before; null if none was.
    pub after_per_s: Option<f64>,
    /// When it started, in seconds since the start of the search.
    pub at_s: f64,
    /// Figures of the trial. The measured part is shorter than planned if the outcome was plain.
    #[serde(flatten)]
    pub figures: TrialFigures,
    /// The finding of its level, from all trials at this rate.
    pub finding: String,
}

impl SearchResult {
    /// The command line as a shell takes it: pasted there, it is the same command.
    pub fn command_line(&self) -> String {
        shell_line(&self.args)
    }

    /// The targets in one line; that of the load where no target is known.
    pub fn target(&self) -> String {
        if self.targets.is_empty() { self.load.clone() } else { self.targets.join(", ") }
    }
}

impl Capacity {
    /// The outcome in the words of a run. A rate that was asked for is carried up to the lower end, and not
    /// from the upper end on. Without one, that no rate holds is an outcome where all of them were tried, and
    /// none where the search ended before.
    pub fn outcome(&self) -> OutcomeResult {
        match self.found() {
            _ if self.is_shown_to_carry() => OutcomeResult::Pass,
            OutcomeResult::Fail => OutcomeResult::Fail,
            _ if self.is_shown_not_to_carry() => OutcomeResult::Fail,
            _ if self.asked_per_s.is_some() => OutcomeResult::NoVerdict,
            found => found,
        }
    }

    /// The outcome of the search by itself, whatever rate was asked for.
    pub(crate) fn found(&self) -> OutcomeResult {
        let (low, high) = (self.low_per_s.is_some(), self.high_per_s.is_some());
        match self.end.as_str() {
            "lowest" => OutcomeResult::Fail,
            "narrow" | "unclear" | "stopped" if low && high => OutcomeResult::Done,
            "highest" if low => OutcomeResult::Pass,
            _ => OutcomeResult::NoVerdict,
        }
    }

    /// Returns `true` if a signal ended the search before it was done.
    pub(crate) fn is_stopped(&self) -> bool {
        self.end == "stopped"
    }

    fn is_shown_to_carry(&self) -> bool {
        self.asked_per_s.zip(self.low_per_s).is_some_and(|(asked, low)| low >= asked)
    }

    fn is_shown_not_to_carry(&self) -> bool {
        self.asked_per_s.zip(self.high_per_s).is_some_and(|(asked, high)| high <= asked)
    }

    /// The rate that was asked for, and whether it is carried: `at least 1,000/s: not met`; `None` if there
    /// was none.
    pub fn asked(&self) -> Option<String> {
        let met = match self.outcome() {
            OutcomeResult::Pass => "met",
            OutcomeResult::Fail => "not met",
            OutcomeResult::Done | OutcomeResult::NoVerdict => "not shown",
        };
        self.asked_per_s.map(|asked| format!("at least {}: {met}", self.rate(asked)))
    }

    /// A rate in words, as one of iterations where these are not requests.
    pub(crate) fn rate(&self, value: f64) -> String {
        match self.requests_per_iteration {
            Some(1.0) => figure::per_second(value),
            _ => figure::per_second_of("iterations", value),
        }
    }

    /// The interval in words: `800/s to 835/s`, or its known part.
    pub fn interval(&self) -> String {
        let plain = |value: f64| self.rate(value);
        match (self.low_per_s, self.high_per_s) {
            (Some(low), Some(high)) => format!("{} to {}", plain(low), plain(high)),
            (Some(low), None) => format!("at least {}", plain(low)),
            (None, Some(high)) => format!("less than {}", plain(high)),
            (None, None) => "unknown".to_owned(),
        }
    }
}

impl LevelResult {
    /// Returns `true` if its rate breaks the SLO because requests come faster than they are answered: no
    /// share of those that were answered says it.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.finding == "breaks" && self.shares.iter().all(|share| !share.is_above())
    }
}

impl ShareResult {
    /// The share and its interval in words: `0.4 % [0.1 %, 0.9 %]`; `-` if nothing was counted.
    pub(crate) fn in_words(&self) -> String {
        let Some(share) = self.share.map(figure::share) else { return "-".to_owned() };
        match self.low.zip(self.high) {
            Some((low, high)) => format!("{share} [{}, {}]", figure::share(low), figure::share(high)),
            None => share,
        }
    }

    /// Returns whether its part of the SLO was shown to hold; `None` if neither was shown.
    pub(crate) fn holds(&self) -> Option<bool> {
        match self.low.zip(self.high)? {
            (low, _) if low > self.limit => Some(false),
            (_, high) if high < self.limit => Some(true),
            _ => None,
        }
    }

    /// Returns `true` if more of the counted requests are bad than may be, by whatever margin.
    pub(crate) fn is_above(&self) -> bool {
        self.share.is_some_and(|share| share > self.limit)
    }
}

impl CapacityResult {
    /// The trial that says most about a level: the longest at its rate that no overload went before.
    pub(crate) fn longest_at(&self, level: &LevelResult) -> Option<&TrialResult> {
        let of_level =
            |trial: &&TrialResult| trial.rate_per_s == level.rate_per_s && trial.after_per_s.is_none();
        // A trial that the generator spoiled says something about the generator only.
        let rank = |trial: &TrialResult| (trial.finding != "not_applied", trial.figures.measured_s);
        self.trials.iter().filter(of_level).max_by(|a, b| {
            let ((a_applied, a), (b_applied, b)) = (rank(a), rank(b));
            a_applied.cmp(&b_applied).then(a.total_cmp(&b))
        })
    }

    /// The trials as CSV.
    pub(crate) fn table(&self) -> String {
        let mut csv = format!("purpose,rate_per_s,after_per_s,at_s,{},finding\n", TrialFigures::CSV_HEADS);
        for TrialResult { purpose, rate_per_s, after_per_s, at_s, figures, finding } in &self.trials {
            let after = after_per_s.map(|rate| rate.to_string()).unwrap_or_default();
            csv.push_str(&format!("{purpose},{rate_per_s},{after},{at_s},{},{finding}\n", figures.csv()));
        }
        csv
    }
}

/// The JSON Schema of [`CapacityResult`].
pub fn schema_capacity() -> serde_json::Value {
    crate::contract::schema_of_written::<CapacityResult>()
}
