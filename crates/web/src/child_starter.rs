//! Starting processes with the usual priority.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A process to be started.
struct Order {
    command: Command,
    started: oneshot::Sender<io::Result<Child>>,
}

/// Starts processes by a thread that has the priority of the program: a process inherits that of the thread
/// which starts it, and the server's own is the lowest.
#[derive(Clone)]
pub(crate) struct ChildStarter(Sender<Order>);

/// The side of the thread that starts the processes.
pub(crate) struct ChildStarts(Receiver<Order>);

/// A starter and the receiver of its thread.
pub(crate) fn child_starter() -> (ChildStarter, ChildStarts) {
    let (send, receive) = channel();
    (ChildStarter(send), ChildStarts(receive))
}

impl ChildStarter {
    /// Starts a process.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) async fn start(&self, command: Command) -> io::Result<Child> {
        let gone = || io::Error::other("the program is about to end");
        let (started, told) = oneshot::channel();
        self.0.send(Order { command, started }).map_err(|_| gone())?;
        told.await.map_err(|_| gone())?
    }
}

impl ChildStarts {
    /// Starts processes until every starter is gone.
    pub(crate) fn carry_out(self, runtime: &Handle) {
        let _within = runtime.enter();
        for mut order in self.0 {
            // If the caller has gone, the process is not wanted any more.
            if !order.started.is_closed() {
                let _ = order.started.send(order.command.spawn());
            }
        }
    }
}
