//! Loads of other clients beside the measured one: a probe, and clients that are slow on purpose.

use std::sync::Arc;

use plimsoll_document::Problem;
use plimsoll_driver::{BackendOptions, KernelBackend};
use plimsoll_engine::{Backends, BackgroundRun, TargetAddress};
use plimsoll_metrics::RunRecord;
use plimsoll_plan::Plan;
use plimsoll_report::slow::SlowRecord;

use crate::base::failure::Failure;
use crate::session::background::SlowClients;
use crate::session::run::RunPreparation;

/// The plans of the company of a run.
pub(crate) struct Company {
    probe: Option<Plan>,
    slow: Option<(SlowClients, Plan)>,
    /// Backends of the slow clients. They read their data long after it arrived, so the kernel's receive
    /// times do not apply.
    slowly: Backends,
}

impl Company {
    /// The company that is asked for.
    ///
    /// # Errors
    /// The plan cannot be a probe.
    pub(crate) fn of(plan: &Plan, before: &RunPreparation) -> Result<Self, Failure> {
        let probe = before.probe.map(|rate| plan.as_probe(rate)).transpose();
        let probe = probe.map_err(|error| Failure::usage(Problem::new(format!("--probe: {error}"))))?;
        let slowly =
            BackendOptions { receive_stamps: false, bytes_per_s: before.slow.map(|slow| slow.bytes_per_s) };
        Ok(Self {
            probe,
            slow: before.slow.map(|slow| (slow, plan.as_slow_clients(slow.clients))),
            slowly: Backends::from(KernelBackend::Epoll(slowly)),
        })
    }

    /// The most connections that the probe and the slow clients open together.
    pub(crate) fn connections(&self) -> u32 {
        self.probe.iter().chain(self.slow.iter().map(|(_, plan)| plan)).map(|plan| plan.connections.max).sum()
    }

    /// The plans of the probe and of the slow clients, to be given the values of a setup.
    pub(crate) fn plans_mut(&mut self) -> impl Iterator<Item = &mut Plan> {
        self.probe.iter_mut().chain(self.slow.iter_mut().map(|(_, plan)| plan))
    }

    /// Makes the runs of the probe and of the slow clients, in this order.
    pub(crate) fn runs<'a>(
        &'a self,
        backends: &'a Backends,
        addresses: &'a [Arc<[TargetAddress]>],
    ) -> Vec<BackgroundRun<'a>> {
        let probe = self.probe.iter().map(|plan| BackgroundRun::new(plan, backends, addresses));
        let slow = self.slow.iter().map(|(_, plan)| BackgroundRun::new(plan, &self.slowly, addresses));
        probe.chain(slow).collect()
    }

    /// Sorts the records of the [runs](Self::runs): that of the probe, and that of the slow clients.
    pub(crate) fn records(self, records: Vec<RunRecord>) -> (Option<Box<RunRecord>>, Option<SlowRecord>) {
        let mut records = records.into_iter().map(Box::new);
        let probe = self.probe.and_then(|_| records.next());
        let slow = self.slow.zip(records.next()).map(|((slow, plan), record)| SlowRecord {
            clients: u64::from(plan.connections.max),
            bytes_per_s: slow.bytes_per_s,
            record,
        });
        (probe, slow)
    }
}
