//! Common parts of searches and sweeps: when one began, what it has kept, and what it has found.

use plimsoll_core::Nanos;
use plimsoll_document::Problem;
use plimsoll_metrics::Objective;
use plimsoll_plan::Plan;
use plimsoll_report::capacity::SearchResult;
use plimsoll_report::evidence::{Course, Evidence, SearchEvidence, TrialEvidence};
use plimsoll_report::result::OutcomeResult;
use plimsoll_report::trial_run::{TrialCounts, TrialRun};
use plimsoll_report::{RunResult, Searched};
use plimsoll_system::clock;

use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::session::{describe, run};

/// A search or a sweep that is over.
pub(crate) struct Found {
    pub(crate) result: Searched,
    /// Evidence of the search or sweep, if that was to be kept.
    pub(crate) evidence: Option<SearchEvidence>,
    /// The signal that ended it.
    pub(crate) interrupted: Option<i32>,
}

impl Found {
    /// The exit code: that of the outcome, unless a signal came.
    pub(crate) fn exit(&self) -> Exit {
        let of_outcome = || match self.result.outcome() {
            OutcomeResult::Pass | OutcomeResult::Done => Exit::Success,
            OutcomeResult::Fail => Exit::Thresholds,
            OutcomeResult::NoVerdict => Exit::Invalid,
        };
        self.interrupted.map_or_else(of_outcome, Exit::Interrupted)
    }
}

/// The trials of a search under way, kept for its evidence.
pub(crate) struct KeptTrials {
    /// The text of the plan file, without its secrets.
    text: Option<String>,
    trials: Vec<TrialEvidence>,
}

impl KeptTrials {
    /// Before the first trial of a search by the plan of this text.
    pub(crate) const fn new(text: Option<String>) -> Self {
        Self { text, trials: Vec::new() }
    }

    /// Keeps a trial that was asked for when the search had taken `at`. Of a sweep, `level` is its setting as
    /// it was written.
    ///
    /// # Errors
    /// It has a figure that cannot be written.
    pub(crate) fn keep(
        &mut self,
        at: Nanos,
        level: &str,
        (plan, known): (&Plan, &SearchResult),
        run: &TrialRun,
        counts: TrialCounts,
    ) -> Result<(), Failure> {
        let context = run::context_of(plan, known.args.clone(), known.host.clone());
        let result = RunResult::new(&run.record, context.clone());
        let evidence = Evidence::new(run.record.clone(), context, plan.outline(), None).of_result(&result);
        let run = evidence.map_err(|error| {
            Failure::environment(Problem::new(format!("cannot keep a trial as evidence: {error}")))
        })?;
        self.trials.push(TrialEvidence { at, level: level.to_owned(), counts, run });
        Ok(())
    }

    /// The evidence of a search that is over.
    pub(crate) fn of(self, course: Course, objectives: &[Objective]) -> SearchEvidence {
        SearchEvidence::new(describe::tool(), objectives, course, self.trials, self.text)
    }
}

/// When a search began.
pub(crate) struct Begun {
    /// On the monotonic clock.
    pub(crate) at: Nanos,
    /// The time of day, since 1970.
    unix: Nanos,
}

impl Begun {
    pub(crate) fn now() -> Self {
        Self { at: clock::monotonic(), unix: clock::unix() }
    }

    /// Time since then.
    pub(crate) fn passed(&self) -> Nanos {
        clock::monotonic() - self.at
    }

    /// Circumstances of a search, but for what follows from its course. `plan` is that of its first trial.
    pub(crate) fn circumstances(&self, plan: &Plan) -> SearchResult {
        SearchResult {
            id: describe::run_id(self.unix),
            targets: describe::targets(plan).into_iter().flat_map(|target| target.urls).collect(),
            seed: plan.seed,
            started_at_unix_ns: self.unix.0,
            args: describe::redacted(std::env::args(), &plan.redaction),
            plan_hash: plan.fingerprint().to_string(),
            host: describe::host(),
            load: describe::model(plan).description.first().cloned().unwrap_or_default(),
            ..SearchResult::default()
        }
    }
}
