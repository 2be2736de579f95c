//! Steps as a worker has them: one row per step of the plan.

use plimsoll_core::Nanos;
use plimsoll_metrics::LogSink;
use plimsoll_plan::{Plan, Protocol, Step};
use plimsoll_scenario::{FieldNeeds, Needs, ResponseHandler};
use plimsoll_wire::http1::HeadMemo;

use crate::capture::{whole, with_location, with_timing};
use crate::event_stream::StreamedStep;

/// Properties of a step's exchanges: the parts in which the worker has more to do than to send and count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    /// Cookies are sent.
    pub(super) cookies: bool,
    /// The authority is that of the connection's server.
    pub(super) authority: bool,
    /// The request is wanted later.
    pub(super) request: bool,
    /// `true` if responses are judged by their status, and by nothing else.
    pub(super) status_alone: bool,
    /// `true` if responses are judged by their status and body, and nothing of them is taken.
    pub(super) body_alone: bool,
    /// Each of its requests is written with the same bytes: failed ones can be written once more.
    pub(super) repeated: bool,
    /// `true` if responses are streams of events.
    pub(super) streams: bool,
    /// The work for one of its responses may hold up the worker: a script, or the search of a body.
    pub(super) may_take_long: bool,
    /// `true` if requests of the step may change something at the target.
    pub(super) writes: bool,
    /// Requests of the step name their traces, so that `Server-Timing` of their responses is read.
    pub(super) traced: bool,
}

impl Facts {
    /// Returns the properties of a step of the plan.
    pub(super) fn of(plan: &Plan, step: &Step) -> Self {
        let scripted = step.check_script.is_some() || plan.scripts.is_some();
        Self {
            status_alone: step.handler.is_plain() && !scripted,
            body_alone: step.handler.reads_response_alone()
                && !step.handler.collects()
                && step.needs.fields == FieldNeeds::Nothing
                && !scripted,
            may_take_long: step.check_script.is_some() || step.handler.searches(),
            cookies: step.request.uses_cookies(),
            authority: step.request.uses_authority(),
            streams: step.needs.events,
            traced: step.request.is_traced(),
            request: step.needs.path || step.needs.request || has_unknown_base(plan, step),
            // A script may turn a request into a write.
            writes: !step.request.is_safe() || step.make_script.is_some(),
            repeated: step.request.is_static()
                && step.make_script.is_none()
                && plan.targets[step.target].protocol != Protocol::Negotiated,
        }
    }

    /// Returns `true` if its requests are written without a look at their session or connection.
    pub(super) const fn is_plain(self) -> bool {
        !self.cookies && !self.authority && !self.request
    }
}

/// Returns `true` if the redirects of a step are to be followed, and a relative one starts from a path that
/// is only known once the request is made.
fn has_unknown_base(plan: &Plan, step: &Step) -> bool {
    plan.redirects > 0 && (step.make_script.is_some() || step.request.static_path().is_none())
}

/// The steps of the plan, by their number: the data that a worker looks up for each request, and its own
/// copies of parts with memory.
///
/// Only the memos change during a run.
#[derive(Debug)]
pub(super) struct StepTable {
    /// Properties of the exchanges.
    pub(super) facts: Vec<Facts>,
    /// The worker's own: the cache of a regular expression is not shared.
    pub(super) handlers: Vec<ResponseHandler>,
    /// Parts of responses that are kept.
    pub(super) needs: Vec<Needs>,
    /// Reading of responses that are streams of events, by step; `None` for other steps.
    pub(super) streams: Vec<Option<StreamedStep>>,
    /// HTTP/1.1: the last head of a response.
    pub(super) memos: Vec<HeadMemo>,
    /// Set if any bodies are kept.
    pub(super) keeps_bodies: bool,
    /// Set if there are steps whose responses are judged by their bodies alone.
    pub(super) judges_bodies: bool,
    /// Set if there are steps whose responses are streams of events.
    pub(super) has_streams: bool,
    /// The smallest limit for a response.
    pub(super) shortest_timeout: Nanos,
}

impl StepTable {
    /// The steps of a plan whose requests are logged there.
    pub(super) fn new(plan: &Plan, log: &LogSink) -> Self {
        let facts: Vec<Facts> = plan.steps.iter().map(|step| Facts::of(plan, step)).collect();
        let mut streams = Vec::with_capacity(plan.steps.len());
        let needs = plan.steps.iter().zip(&facts).map(|(step, facts)| {
            let mut needs = match log.keeps_failed() || (log.keeps_writes() && facts.writes) {
                true => whole(&step.needs),
                false => with_location(&step.needs, plan.redirects),
            };
            if facts.traced {
                needs = with_timing(needs);
            }
            let (drains, logs) = (!needs.body, log.keeps_streams());
            streams.push(step.handler.event_stream().map(|stream| StreamedStep { stream, drains, logs }));
            // Its events are read out of it.
            needs.body |= needs.events;
            needs
        });
        let needs: Vec<Needs> = needs.collect();
        let timeouts = (0..plan.steps.len() as u32).map(|step| plan.timeout_of(step));
        let abandoned = plan.client_faults.map_or(Nanos::MAX, |faults| faults.abandon_after);
        Self {
            needs,
            has_streams: streams.iter().any(Option::is_some),
            streams,
            handlers: plan.steps.iter().map(|step| step.handler.clone()).collect(),
            memos: plan.steps.iter().map(|_| HeadMemo::new()).collect(),
            keeps_bodies: log.keeps_failed()
                || log.keeps_writes()
                || plan.steps.iter().any(|step| step.needs.body || step.needs.events),
            judges_bodies: facts.iter().any(|facts| facts.body_alone && !facts.status_alone),
            shortest_timeout: timeouts.min().unwrap_or(plan.timeout).min(abandoned),
            facts,
        }
    }
}
