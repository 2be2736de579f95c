//! Evidence of a search: the evidence of each of its trials, and the course that it took.
//!
//! [`SearchEvidence::verify`] makes every trial again from its record, compares the counts by which the
//! search decided with that record, and replays the search: the same measurements at the same times ask for
//! the same rates, and end with the same interval.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;

use plimsoll_core::Nanos;
use plimsoll_metrics::{Objective, RunRecord, ThresholdSpec};
use plimsoll_statistics::Trial;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::comparing::Comparing;
use super::{Contradiction, Evidence, NotCompared, Verification, Why, comparing, counted};
use crate::capacity::SearchResult;
use crate::capacity_search::{CapacitySearch, CapacitySettings};
use crate::level_sweep::{LevelSweep, SweepSettings};
use crate::result::Tool;
use crate::saved::encoding::{broken, compressed, decompressed};
use crate::trial_run::{TrialCounts, TrialRun};
use crate::{ReadError, Searched};

/// The version of the evidence of searches: raised when a field changes its meaning or goes, and when a
/// search decides by other rules.
pub const SEARCH_EVIDENCE_VERSION: u32 = 1;

/// Distance of the arrivals of a trial from those that its rate asks for, in standard deviations of random
/// ones, from which on it is another rate.
const FAR: f64 = 6.0;

/// A search or a sweep with everything that its result was made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchEvidence {
    /// The version of this contract.
    pub search_evidence_version: u32,
    /// The program that searched.
    pub tool: Tool,
    /// Identity and circumstances.
    pub circumstances: SearchResult,
    /// The objectives.
    pub objectives: Vec<ThresholdSpec>,
    /// The way that it took.
    pub course: Course,
    /// Trials of the search, or levels of the sweep, in their order.
    pub trials: Vec<TrialEvidence>,
    /// The text of the plan file, credentials aside; `None` if there was none.
    pub plan: Option<String>,
    /// Parts that the plan's text and the flags give again; `None` where that was not tried.
    pub follows_from_plan: Option<Vec<String>>,
    /// The result as it was reported.
    pub result: Value,
    /// Places at which the text that was read is not as this version writes it.
    #[serde(skip)]
    unread: Vec<String>,
}

/// The way that a search or a sweep took. Times of the search are since its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// Of a search for a capacity.
    Search {
        /// Settings of the search.
        settings: CapacitySettings,
        /// When it started, on the monotonic clock.
        begun: Nanos,
        /// When it asked for a trial for the last time.
        asked: Nanos,
        /// When it was over.
        ended: Nanos,
        /// `true` if a signal ended it.
        stopped: bool,
    },
    /// Of a sweep.
    Sweep {
        /// Settings of the sweep.
        settings: SweepSettings,
        /// When it started, on the monotonic clock.
        begun: Nanos,
        /// When it was over.
        ended: Nanos,
        /// `true` if a signal ended it.
        #[serde(default)]
        stopped: bool,
    },
}

/// One trial of a search, or one level of a sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialEvidence {
    /// When it was asked for, since the start of the search.
    pub at: Nanos,
    /// Of a sweep, its setting as it was written; empty in a search.
    pub level: String,
    /// The counts by which the search decided.
    pub counts: TrialCounts,
    /// Record and result of the trial, as of a run that is alone.
    pub run: Evidence,
}

impl SearchEvidence {
    /// Writes it, compressed.
    ///
    /// # Errors
    /// The figures cannot be written.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        compressed(self)
    }

    /// Reads it back; `None` if it is evidence of a run.
    ///
    /// # Errors
    /// It is no evidence, or of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Option<Self>, ReadError> {
        Self::from_text(&decompressed(bytes).map_err(ReadError::Broken)?)
    }

    /// Reads the text of evidence: its bytes without the compression. `None` if it is that of a run.
    ///
    /// # Errors
    /// It is no evidence, or of a later version.
    pub fn from_text(text: &[u8]) -> Result<Option<Self>, ReadError> {
        #[derive(Deserialize)]
        struct Mark {
            search_evidence_version: Option<u32>,
        }
        let mark: Mark = serde_json::from_slice(text).map_err(ReadError::NotJson)?;
        match mark.search_evidence_version {
            None => return Ok(None),
            Some(SEARCH_EVIDENCE_VERSION) => {}
            Some(found) => return Err(ReadError::TooNew { found, known: SEARCH_EVIDENCE_VERSION }),
        }
        let mut evidence: Self = serde_json::from_slice(text).map_err(ReadError::Broken)?;
        evidence.trials.iter_mut().try_for_each(|trial| trial.run.admit()).map_err(broken)?;
        evidence.unread = comparing::unread(text, &evidence)?;
        Ok(Some(evidence))
    }

    /// The evidence with the result that is reported.
    ///
    /// # Errors
    /// The result has a figure that JSON cannot write.
    pub fn of_result(self, result: &Searched) -> Result<Self, serde_json::Error> {
        let circumstances = result.circumstances().clone();
        Ok(Self { result: as_json(result)?, circumstances, ..self })
    }

    /// The evidence of a search that is over, before its [result](Self::of_result) is known.
    pub fn new(
        tool: Tool,
        objectives: &[Objective],
        course: Course,
        trials: Vec<TrialEvidence>,
        plan: Option<String>,
    ) -> Self {
        Self {
            search_evidence_version: SEARCH_EVIDENCE_VERSION,
            tool,
            circumstances: SearchResult::default(),
            objectives: objectives.iter().map(|objective| objective.spec.clone()).collect(),
            course,
            trials,
            plan,
            follows_from_plan: None,
            result: Value::Null,
            unread: Vec::new(),
        }
    }

    /// The result that was reported.
    ///
    /// # Errors
    /// It has not the fields of one, or does not follow from the trials.
    pub fn to_searched(&self) -> Result<Searched, ReadError> {
        match self.verify().0.contradictions.len() {
            0 => {}
            1 => return Err(broken("1 statement does not follow from its trials".to_owned())),
            many => return Err(broken(format!("{many} statements do not follow from its trials"))),
        }
        let result = self.result.clone();
        match self.course {
            Course::Search { .. } => serde_json::from_value(result).map(Searched::Capacity),
            Course::Sweep { .. } => serde_json::from_value(result).map(Searched::Sweep),
        }
        .map_err(ReadError::Broken)
    }

    /// Makes the result again from the trials, and compares it with the one that was reported. Returns the
    /// trials that the search has asked for, too, as far as it could be replayed; none of a sweep.
    pub fn verify(&self) -> (Verification<Searched>, Vec<Trial>) {
        let same_program = self.tool.version == env!("CARGO_PKG_VERSION");
        let mut replay = Replay {
            evidence: self,
            comparison: Comparing {
                same_program,
                same_rules: true,
                copied: if same_program { HashSet::new() } else { self.texts() },
                compared: 0,
                contradictions: Vec::new(),
                open: BTreeMap::new(),
            },
            asked: Vec::new(),
        };
        for place in &self.unread {
            match same_program {
                true => replay.contradict(
                    place,
                    "evidence of this version has no such field here, or always has it".to_owned(),
                ),
                false => replay.comparison.leave_open(Why::Additional, place, None),
            }
        }
        replay.trials();
        replay.order();
        let result = replay.result();
        let Replay { mut comparison, asked, .. } = replay;
        comparison.made_again("", Ok(self.result.clone()), as_json(&result));
        let (stated, follows) = (&self.circumstances, result.circumstances());
        comparison.made_again("circumstances", serde_json::to_value(stated), serde_json::to_value(follows));
        // They decide nothing but the order of what happened.
        let times: &[&str] = match self.course {
            Course::Search { .. } => &["course/search/begun", "course/search/asked"],
            Course::Sweep { .. } => &["course/sweep/begun"],
        };
        for place in times {
            comparison.leave_open(Why::Unused, place, Some(&Value::from("as recorded")));
        }
        let Comparing { compared, contradictions, open, .. } = comparison;
        (Verification { result, compared, contradictions, open: open.into_values().collect() }, asked)
    }

    /// All texts beside the result.
    fn texts(&self) -> HashSet<String> {
        let mut found = HashSet::new();
        serde_json::to_value(&self.circumstances).into_iter().for_each(|value| {
            comparing::texts(value, &mut found);
        });
        self.trials.iter().for_each(|trial| found.extend(trial.run.texts()));
        found
    }
}

fn as_json(result: &Searched) -> Result<Value, serde_json::Error> {
    match result {
        Searched::Capacity(result) => serde_json::to_value(result),
        Searched::Sweep(result) => serde_json::to_value(result),
    }
}

/// A verification under way.
struct Replay<'a> {
    evidence: &'a SearchEvidence,
    comparison: Comparing,
    asked: Vec<Trial>,
}

impl Replay<'_> {
    fn contradict(&mut self, place: &str, reason: String) {
        self.comparison.contradictions.push(Contradiction { place: place.to_owned(), reason });
    }

    /// Makes the result of each trial again, and looks for its circumstances in those of the search.
    fn trials(&mut self) {
        let mut open: BTreeMap<Why, (NotCompared, BTreeSet<String>)> = BTreeMap::new();
        for (number, trial) in self.evidence.trials.iter().enumerate() {
            let within = |place: &str, number: &str| match place.strip_prefix('/') {
                Some(of_result) => format!("trials/{number}/run/result/{of_result}"),
                None if place.is_empty() => format!("trials/{number}/run/result"),
                None => format!("trials/{number}/run/{place}"),
            };
            let verified = trial.run.verify();
            self.comparison.compared += verified.compared;
            for Contradiction { place, reason } in verified.contradictions {
                self.contradict(&within(&place, &number.to_string()), reason);
            }
            for one in verified.open {
                let places: Vec<String> = one.places.iter().map(|place| within(place, "*")).collect();
                open.entry(one.why).or_insert((one, BTreeSet::new())).1.extend(places);
            }
            self.circumstances(number, trial);
        }
        for (why, (one, places)) in open {
            let nothing = || NotCompared { places: Vec::new(), ..one };
            self.comparison.open.entry(why).or_insert_with(nothing).places.extend(places);
        }
    }

    /// A trial is of the same program, machine, targets and command as its search, and has its own seed.
    fn circumstances(&mut self, number: usize, trial: &TrialEvidence) {
        let (of_search, context) = (&self.evidence.circumstances, &trial.run.context);
        let is_search = matches!(self.evidence.course, Course::Search { .. });
        // Levels of a sweep are plans of their own.
        let has_seed = match is_search {
            true => context.seed == of_search.seed.wrapping_add(number as u64),
            false => number > 0 || context.seed == of_search.seed,
        };
        let targets: Vec<&String> = context.targets.iter().flat_map(|target| &target.urls).collect();
        let tool = &self.evidence.tool;
        for (name, is_same) in [
            ("seed", has_seed),
            ("args", context.args == of_search.args),
            ("host", context.host == of_search.host),
            ("targets", targets.iter().copied().eq(&of_search.targets)),
            ("tool_version", context.tool_version == tool.version && context.tool_name == tool.name),
        ] {
            match is_same {
                true => self.comparison.compared += 1,
                false => self.contradict(
                    &format!("trials/{number}/run/context/{name}"),
                    "not that of the search".to_owned(),
                ),
            }
        }
        if trial.level.is_empty() != is_search {
            self.contradict(
                &format!("trials/{number}/level"),
                "a search has none, a sweep has one".to_owned(),
            );
        }
    }

    /// One trial ended before the next one was asked for.
    fn order(&mut self) {
        let (begun, ended) = match self.evidence.course {
            Course::Search { begun, asked, ended, .. } if asked <= ended => (begun, asked),
            Course::Sweep { begun, ended, .. } => (begun, ended),
            Course::Search { .. } => {
                return self.contradict("course/search/asked", "later than the end of the search".to_owned());
            }
        };
        let all = self.evidence.trials.iter();
        let next = all.clone().skip(1).map(|trial| trial.at).chain([ended]);
        for (number, (trial, next)) in all.zip(next).enumerate() {
            let RunRecord { started_monotonic, warmup, duration, .. } = trial.run.record;
            let is_in_order = begun + trial.at <= started_monotonic
                && started_monotonic + warmup + duration <= begun + next;
            match is_in_order {
                true => self.comparison.compared += 1,
                false => self.contradict(
                    &format!("trials/{number}/at"),
                    "its record begins before it was asked for, or ends after the next one was".to_owned(),
                ),
            }
        }
    }

    /// Replays the search or the sweep.
    fn result(&mut self) -> Searched {
        let evidence = self.evidence;
        let objectives = self.objectives();
        let (known, tool) = (evidence.circumstances.clone(), evidence.tool.clone());
        match &evidence.course {
            Course::Search { settings, asked, ended, stopped, .. } => {
                let mut search = CapacitySearch::new(settings.clone(), objectives);
                self.search(&mut search, (*asked, *stopped));
                Searched::Capacity(search.result(known, tool, *ended, *stopped))
            }
            Course::Sweep { settings, ended, stopped, .. } => {
                let mut sweep = LevelSweep::new(settings.clone(), objectives);
                for (number, trial) in evidence.trials.iter().enumerate() {
                    self.counts(number, trial, sweep.objectives());
                    let run = TrialRun::of_record(trial.run.record.clone());
                    sweep.note(&trial.level, &run, &trial.counts, &trial.run.context.records);
                }
                Searched::Sweep(sweep.result(known, tool, *ended, *stopped))
            }
        }
    }

    fn objectives(&mut self) -> Vec<Objective> {
        let outline = self.evidence.trials.first().map(|trial| trial.run.outline.clone()).unwrap_or_default();
        let mut objectives = Vec::new();
        for (number, spec) in self.evidence.objectives.iter().enumerate() {
            match Objective::new(spec, &outline) {
                Ok(objective) => objectives.push(objective),
                Err(reason) => self.contradict(&format!("objectives/{number}"), reason.to_owned()),
            }
        }
        objectives
    }

    /// Compares the counts of a trial with its record.
    fn counts(&mut self, number: usize, trial: &TrialEvidence, objectives: &[Objective]) {
        let place = format!("trials/{number}/counts");
        // Of a worker that did not come back the record has less than was counted.
        if trial.run.record.workers.iter().any(|worker| worker.absent) {
            return self.comparison.leave_open(Why::Unused, &place, Some(&Value::from("as recorded")));
        }
        let broken = counted::broken(&place, &trial.run.record, objectives, &trial.counts);
        self.comparison.compared += trial.counts.portions().iter().map(Vec::len).sum::<usize>() as u64;
        self.comparison.contradictions.extend(broken);
    }

    fn search(&mut self, search: &mut CapacitySearch, (asked, stopped): (Nanos, bool)) {
        for (number, trial) in self.evidence.trials.iter().enumerate() {
            let Some(next) = search.next(trial.at) else {
                let reason = format!("the search is over after {number} trials, and there are more");
                return self.contradict("trials", reason);
            };
            self.counts(number, trial, search.objectives());
            let record = &trial.run.record;
            if let Err(reason) = is_at_rate(record, next.rate) {
                self.contradict(&format!("trials/{number}/run/record"), reason);
            }
            let length = search.length(&next);
            let is_early = record.duration + longest_interval(record) < length;
            if is_early && !search.was_clear(&next, &trial.counts) {
                let place = format!("trials/{number}/run/record/duration");
                let length = Value::from(format!("{:?} of {length:?}", record.duration));
                self.comparison.leave_open(Why::Early, &place, Some(&length));
            }
            search.note(&next, trial.at, &TrialRun::of_record(record.clone()), &trial.counts);
            self.asked.push(next);
        }
        if let (Some(next), false) = (search.next(asked), stopped) {
            let (made, rate) = (search.trials().len(), next.rate);
            let reason = format!("the search goes on after {made} trials, with one at {rate}/s");
            self.contradict("trials", reason);
        }
    }
}

/// Length of the longest interval of a trial's load.
fn longest_interval(record: &RunRecord) -> Nanos {
    let load = record.intervals.iter().filter(|interval| !interval.drain);
    load.map(|interval| interval.length).max().unwrap_or_default()
}

/// Fails if a trial had not the arrivals of a rate.
fn is_at_rate(record: &RunRecord, rate: f64) -> Result<(), String> {
    let seconds = record.duration.as_secs_f64();
    let expected = rate * seconds;
    let arrived = record.arrivals() as f64;
    match (arrived - expected).abs() <= FAR * expected.sqrt() + 1.0 {
        true => Ok(()),
        false => {
            Err(format!("{arrived:.0} arrivals in {seconds} s are not {rate}/s, which the search asks for"))
        }
    }
}
