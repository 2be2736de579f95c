//! The part of one worker in a run.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use plimsoll_core::{Nanos, Shard};
use plimsoll_driver::{Backend, Open, SystemError};
use plimsoll_metrics::{LogSink, Snapshot};
use plimsoll_plan::Plan;
use plimsoll_scenario::Feeds;

use crate::addresses::TargetAddress;
use crate::control::Control;
use crate::directory::Directory;
use crate::error::RunError;
use crate::supply::BodyQueues;
use crate::worker::{Kept, Resources, Worker, WorkerReport};

/// A message of a worker thread to the run control.
pub(crate) enum Message {
    /// The connections are open. Carries the worker's clock and Unix time.
    Ready(Nanos, Nanos),
    Snapshot(Snapshot),
    Done(Box<WorkerReport>),
    Failed(SystemError),
    /// Data or scripts could not be opened.
    Broken(RunError),
}

/// The part of one worker in a run. It owns what it uses: a worker that does not come back must not keep the
/// run from its end.
pub(crate) struct Job {
    pub(crate) plan: Arc<Plan>,
    pub(crate) addresses: Vec<Arc<[TargetAddress]>>,
    pub(crate) shard: Shard,
    pub(crate) control: Control,
    pub(crate) feeds: Feeds,
    pub(crate) log: LogSink,
    pub(crate) directory: Arc<Directory>,
    pub(crate) body_queues: BodyQueues,
    pub(crate) messages: Sender<Message>,
    /// Carries the instant of the start, once all workers are ready.
    pub(crate) start: Receiver<Nanos>,
    /// Lives as long as the job.
    pub(crate) token: Arc<()>,
}

impl Job {
    /// Carries it out on this thread. `kept` is the thread's backend between two runs: it finds that of the
    /// run before, if there was one, and leaves its own.
    pub(crate) fn carry_out<O: Open>(self, open: &O, kept: &mut Option<Kept<O::Backend>>) {
        let Self { plan, addresses, shard, control, messages, start, token: _token, .. } = self;
        // Sending fails only after the run control has given up: there is no receiver then.
        let opened = kept.take().map_or_else(|| open.open_for(shard).map(Kept::new), Ok);
        let Kept { io, conns } = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let _ = messages.send(Message::Failed(error));
                return;
            }
        };
        let unix_offset = io.unix().0.wrapping_sub(io.now().0);
        let resources = resources(&plan, &addresses, shard, self.feeds, self.log);
        let resources = match resources {
            Ok(resources) => {
                Resources { directory: self.directory, body_queues: self.body_queues, ..resources }
            }
            Err(error) => {
                let _ = messages.send(Message::Broken(error));
                return;
            }
        };
        let mut worker = Worker::new(io, &plan, &addresses, shard, control, unix_offset, resources);
        worker.take_over(conns);
        worker.prepare();
        if messages.send(Message::Ready(worker.now(), worker.unix())).is_err() {
            return;
        }
        let Ok(start) = start.recv() else { return };
        let (report, after) = worker.run_and_keep(start, |snapshot| {
            let _ = messages.send(Message::Snapshot(snapshot));
        });
        *kept = Some(after);
        let _ = messages.send(Message::Done(Box::new(report)));
    }
}

/// Opens the resources of a worker beside its plan.
fn resources(
    plan: &Plan,
    addresses: &[Arc<[TargetAddress]>],
    shard: Shard,
    feeds: Feeds,
    log: LogSink,
) -> Result<Resources, RunError> {
    let addresses: Vec<String> = addresses
        .iter()
        .flat_map(|list| list.iter())
        .map(|target_address| target_address.endpoint.to_string())
        .collect();
    let scripts = match &plan.scripts {
        None => None,
        Some(source) => {
            Some(source.open(shard, &addresses).map_err(|error| RunError::Script(error.message))?)
        }
    };
    Ok(Resources { feeds, scripts, log, ..Resources::default() })
}
