//! Verification that a store has the records that it acknowledged. The store is asked before the load and
//! after it.

use plimsoll_document::Problem;
use plimsoll_plan::PlanPatch;
use plimsoll_report::RunResult;
use plimsoll_report::reconciliation::{Reconciliation, ReconciliationCheck};
use plimsoll_system::clock;
use plimsoll_workloads::ingest::{Check, IngestLoad, Interface, Store, TableContents, Window};
use serde_json::{Value, json};

use crate::args::workload::ingest::{IngestArgs, problem};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::messages;
use crate::workload::auxiliary_request::answers;

/// Number of times that a store is asked while it does not have everything, a second apart: stores show
/// records some seconds after they have acknowledged them.
const LOOKS: u32 = 12;
/// Number of times to ask a store that shows records at once, or has said that it now shows all of them.
const FEW_LOOKS: u32 = 3;

/// Contents of the store before the load, and how to ask again.
pub(crate) struct Verification<'a> {
    load: &'a IngestLoad,
    flags: PlanPatch,
    store: Store,
    checks: Vec<Check>,
    before: Vec<TableContents>,
    since_s: u64,
    /// `true` if each record is a different one, so that none may be there twice.
    fresh: bool,
    quiet: bool,
}

impl<'a> Verification<'a> {
    /// Asks the store for its contents, with flags for how it is reached.
    pub(crate) fn begin(load: &'a IngestLoad, args: &IngestArgs, flags: PlanPatch) -> Result<Self, Failure> {
        let told = answers(load.origin(), &Interface::steps(), flags.clone())?;
        let told: Vec<(u16, &[u8])> = told.iter().map(|answer| (answer.status, &answer.body[..])).collect();
        let interface = Interface::of(&told);
        let of_load = |error| Failure::usage(problem(&error));
        let mut verification = Self {
            load,
            flags,
            store: load.store(interface).map_err(of_load)?,
            checks: load.checks(interface).map_err(of_load)?,
            before: Vec::new(),
            since_s: seconds(),
            fresh: args.pregenerated().is_none(),
            quiet: args.run.output.quiet,
        };
        // Records that were written just now become visible later, and would count as those of this load.
        let flush = verification.store.flush();
        let status;
        (verification.before, status) = verification.look(flush, verification.window(0), false)?;
        if let Some(status) = status.filter(|status| *status != 200) {
            messages::say(verification.quiet)(&format!(
                "note: the store was not flushed before the load (status {status}): what others wrote in the last \
                 seconds may count as stored but never sent"
            ));
        }
        Ok(verification)
    }

    /// Asks again, and adds the outcome to the result.
    pub(crate) fn end(self, result: &mut RunResult) -> Result<Exit, Failure> {
        let sent: Vec<(u64, u64)> = self.checks.iter().map(|check| self.sent(check, result)).collect();
        messages::say(self.quiet)("counting the records of the store");
        let mut first = self.store.flush();
        let mut looks = 0;
        let mut flushed = first.is_none();
        let accounting = &result.accounting;
        let window = self.window(accounting.started + accounting.unmeasured);
        let reconciliation = loop {
            let (found, status) = self.look(first, window, self.fresh)?;
            flushed |= status == Some(200);
            let reconciliation = self.reconcile(&sent, &found);
            looks += 1;
            let missing = reconciliation.checks.iter().any(|check| check.missing > 0);
            if !missing || looks == if flushed { FEW_LOOKS } else { LOOKS } {
                break reconciliation;
            }
            first = Some(json!({ "think": "1s" }));
        };
        let exit = if reconciliation.consistent { Exit::Success } else { Exit::Inconsistent };
        result.reconcile(reconciliation);
        Ok(exit)
    }

    /// The times that records may have if this many batches were sent until now.
    fn window(&self, batches: u64) -> Window {
        self.load.window(self.since_s, seconds(), batches)
    }

    /// Returns the contents that each check finds. Carries out the step `first` beforehand, and returns its
    /// status if it was a request.
    fn look(
        &self,
        first: Option<Value>,
        window: Window,
        ids: bool,
    ) -> Result<(Vec<TableContents>, Option<u16>), Failure> {
        let of_check = |check: &Check| check.steps(window, ids);
        let questions: Vec<Vec<Value>> = self.checks.iter().map(of_check).collect();
        let asks_first = first.as_ref().is_some_and(|step| step.get("think").is_none());
        let steps: Vec<Value> = first.into_iter().chain(questions.iter().flatten().cloned()).collect();
        let told = answers(self.load.origin(), &steps, self.flags.clone())?;
        let (first, mut told) = told.split_at(usize::from(asks_first));
        let found = self.checks.iter().zip(&questions).map(|(check, questions)| {
            let (own, others) = told.split_at(questions.len());
            told = others;
            let own: Vec<(u16, &[u8])> = own.iter().map(|answer| (answer.status, &answer.body[..])).collect();
            check.found(&own).map_err(|said| {
                let refused = own.iter().any(|(status, _)| matches!(status, 401 | 403));
                let problem = Problem::new(format!("--verify: {said}"));
                Failure::environment(problem.with_hint(match refused {
                    true => "the token (--token) has to be one that may read, too",
                    false => "is --url such a store, and is its database there?",
                }))
            })
        });
        let status = first.first().map(|answer| answer.status);
        Ok((found.collect::<Result<_, _>>()?, status))
    }

    /// Records of the streams of a check: acknowledged, and of an uncertain fate.
    fn sent(&self, check: &Check, result: &RunResult) -> (u64, u64) {
        let streams = || check.streams.iter().map(|&number| (number, &self.load.streams[number].spec));
        let of_steps = streams().filter_map(|(number, spec)| Some((result.by_step.get(number)?, spec)));
        let (acknowledged, failed) = of_steps.fold((0, 0), |(ok, failed), (step, spec)| {
            let records = u64::from(spec.batch_size);
            (ok + step.ok * records, failed + (step.failed + step.timed_out) * records)
        });
        // The result does not say to which steps these belonged.
        let accounting = &result.accounting;
        let others = accounting.in_flight_at_stop + accounting.unmeasured + accounting.aborted;
        let largest = streams().map(|(_, spec)| u64::from(spec.batch_size)).max().unwrap_or(0);
        (acknowledged, failed + others * largest)
    }

    fn reconcile(&self, sent: &[(u64, u64)], found: &[TableContents]) -> Reconciliation {
        let checks = self.checks.iter().zip(sent).zip(self.before.iter().zip(found));
        let checks = checks
            .map(|((check, &sent), (before, now))| {
                let stored = now.records.saturating_sub(before.records);
                let misdated = now.misdated.map(|count| count.saturating_sub(before.misdated.unwrap_or(0)));
                ReconciliationCheck::new(&check.name, sent, stored, now.duplicates)
                    .with_times(misdated, now.times_ms)
            })
            .collect();
        Reconciliation::new(self.store.name(), checks)
    }
}

/// Now, in whole seconds since the epoch.
fn seconds() -> u64 {
    clock::unix().0 / 1_000_000_000
}
