//! wrk's scripts around a run: `setup` before it, `done` after it.

use std::any::Any;
use std::sync::Arc;

use plimsoll_core::ErrorClass;
use plimsoll_document::Problem;
use plimsoll_engine::TargetAddress;
use plimsoll_metrics::RunRecord;
use plimsoll_plan::Plan;
use plimsoll_scenario::{ScriptError, UrlScript};
use plimsoll_script::{WrkErrors, WrkMain, WrkScript, WrkStats, WrkSummary};

use crate::base::failure::Failure;

/// The main state of a script of wrk.
pub(crate) struct Conversation(WrkMain);

impl Conversation {
    /// Runs `setup` for each worker of a plan with such a script.
    pub(crate) fn begin(plan: &Plan, addresses: &[Arc<[TargetAddress]>]) -> Result<Option<Self>, Failure> {
        let Some(script) = &plan.wrk else { return Ok(None) };
        // Scripts of another language have no part before and after the run.
        let script: Arc<dyn Any + Send + Sync> = Arc::<dyn UrlScript>::clone(script);
        let Ok(script) = script.downcast::<WrkScript>() else { return Ok(None) };
        let sites = addresses.iter().flat_map(|list| list.iter());
        let addresses: Vec<String> = sites.map(|site| site.endpoint.to_string()).collect();
        let main = script.setup(plan.threads, &addresses).map_err(|error| failure(&error))?;
        Ok(Some(Self(main)))
    }

    /// Runs `done` with the leftovers of the workers; returns its output.
    pub(crate) fn end(
        self,
        leftovers: Vec<Box<dyn Any + Send>>,
        record: &RunRecord,
    ) -> Result<String, Failure> {
        self.0.done(leftovers, &summary(record)).map_err(|error| failure(&error))
    }
}

fn failure(error: &ScriptError) -> Failure {
    Failure::usage(Problem::new(error.message.clone()))
}

/// Returns the figures that wrk would have counted. wrk's latency is the time from sending to the end of the
/// response: the service time.
fn summary(record: &RunRecord) -> WrkSummary {
    let total = &record.total;
    let of = |classes: &[ErrorClass]| classes.iter().map(|class| total.errors[*class]).sum();
    let seconds = record.duration.as_secs_f64().max(1e-9);
    let per_worker = record.total.completed() as f64 / record.workers.len().max(1) as f64;
    let values = total.service_time.buckets().map(|bucket| (bucket.highest / 1_000, bucket.count));
    WrkSummary {
        duration_us: record.duration.0 / 1_000,
        requests: total.completed(),
        bytes: total.bytes_received,
        errors: WrkErrors {
            connect: of(&[
                ErrorClass::ConnectRefused,
                ErrorClass::ConnectTimeout,
                ErrorClass::ConnectFailed,
                ErrorClass::PortsExhausted,
                ErrorClass::DescriptorsExhausted,
                ErrorClass::Proxy,
                ErrorClass::Tls,
            ]),
            read: of(&[
                ErrorClass::Reset,
                ErrorClass::ClosedBeforeResponse,
                ErrorClass::ClosedInResponse,
                ErrorClass::TlsTruncated,
                ErrorClass::Protocol,
                ErrorClass::HeadTooLarge,
            ]),
            write: of(&[ErrorClass::Io]),
            status: of(&[ErrorClass::Status4xx, ErrorClass::Status5xx]),
            timeout: total.timed_out,
        },
        latency: WrkStats::new(values.collect()),
        requests_per_second: WrkStats::new(vec![(
            (per_worker / seconds).round() as u64,
            record.workers.len() as u64,
        )]),
    }
}
