//! The parts of a plan, once nothing is wrong with any of them, put together.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_core::Redaction;
use plimsoll_metrics::{Goodput, PhaseOutline, ThresholdSpec};
use plimsoll_schedule::Population;
use plimsoll_wire::http1::Limits;
use plimsoll_wire::http2::{ClientOptions, FieldLimits};

use crate::connections::Usage;
use crate::draft::Requests;
use crate::judging::DEFAULT_INTERVAL;
use crate::protocol::Http2Part;
use crate::resolve::LimitPart;
use crate::sharding::Sharding;
use crate::{ClientFaults, Dealing, End, Load, Plan, PlanPatch, PrometheusServer, Refresh};

/// Everything that a plan is made of.
pub(crate) struct Parts {
    pub(crate) requests: Requests,
    pub(crate) load: Load,
    pub(crate) users: Option<Population>,
    pub(crate) phases: Vec<PhaseOutline>,
    pub(crate) end: End,
    pub(crate) warmup: Nanos,
    pub(crate) limits: LimitPart,
    pub(crate) usage: Usage,
    pub(crate) http2: Http2Part,
    pub(crate) sharding: Sharding,
    pub(crate) dealing: Dealing,
    pub(crate) client_faults: Option<ClientFaults>,
    pub(crate) thresholds: Vec<ThresholdSpec>,
    /// Interval of the statistics of a run.
    pub(crate) statistics: Nanos,
    pub(crate) prometheus: Option<PrometheusServer>,
    pub(crate) goodput: Option<Goodput>,
    pub(crate) trace_link: Option<String>,
    pub(crate) redaction: Redaction,
}

impl Parts {
    /// The plan, with the settings that need no reading.
    pub(crate) fn into_plan(self, patch: &PlanPatch) -> Plan {
        let Self { mut requests, limits, usage, http2, .. } = self;
        let (setup, refresh, teardown) =
            (requests.setup.take(), requests.refresh.take(), requests.teardown.take());
        let list_bytes = u32::try_from(limits.head_bytes).unwrap_or(u32::MAX);
        let mut plan = Plan {
            scenarios: requests.scenarios,
            steps: requests.steps,
            variables: requests.variables,
            feeds: requests.feeds,
            pools: requests.pools,
            metrics: requests.metrics,
            leaves: requests.leaves,
            setup: None,
            refresh: None,
            teardown: None,
            supplies: requests.supplies,
            tokens: requests.tokens,
            scripts: requests.scripts,
            wrk: requests.wrk,
            logic: requests.logic,
            targets: requests.targets,
            dynamic_origins: requests.dynamic_origins,
            load: self.load,
            users: self.users,
            phases: self.phases,
            dealing: self.dealing,
            end: self.end,
            warmup: self.warmup,
            drain: limits.drain.unwrap_or(limits.timeout),
            threads: usage.threads,
            shard: self.sharding.shard,
            held: self.sharding.held,
            start: self.sharding.start,
            timeout: limits.timeout,
            connect_timeout: limits.connect_timeout,
            client_faults: self.client_faults,
            redirects: limits.redirects,
            pacing: limits.pacing,
            backend: limits.backend,
            seed: limits.seed,
            limits: Limits { head_bytes: limits.head_bytes, ..Limits::default() },
            http2: ClientOptions {
                max_streams: usage.connections.streams,
                limits: FieldLimits { list_bytes, ..http2.options.limits },
                ..http2.options
            },
            ping_interval: http2.ping_interval,
            preflight: !patch.no_preflight.is_on(),
            resend: !patch.no_resend.is_on(),
            connections: usage.connections,
            thresholds: self.thresholds,
            prometheus: self.prometheus,
            goodput: self.goodput,
            interval: self.statistics.min(DEFAULT_INTERVAL),
            statistics: self.statistics,
            trace_link: self.trace_link,
            redaction: self.redaction,
        };
        if limits.drain.is_none() {
            // Whoever waits is answered or times out.
            let timeouts = (0..plan.steps.len() as u32).map(|step| plan.timeout_of(step));
            plan.drain = timeouts.max().unwrap_or(plan.timeout);
        }
        // What another process carries out is no part of this plan.
        let is_here = !patch.is_set_up_elsewhere;
        plan.setup = setup.filter(|_| is_here).map(|steps| Arc::new(plan.once(*steps)));
        plan.refresh = refresh
            .filter(|_| is_here)
            .map(|(every, steps)| Refresh { every, steps: Arc::new(plan.once(*steps)) });
        plan.teardown = teardown.filter(|_| is_here).map(|steps| Arc::new(plan.once(*steps)));
        plan
    }
}
