//! Messages about watched processes that end.

use plimsoll_core::figure;
use plimsoll_engine::Progress;

use crate::base::messages::Notify;
use crate::session::observer::Observer;

/// Ends of processes that are said while a run goes on; the result has more.
const ENDS_SAID: u64 = 5;

/// Reports ends of watched processes.
pub(crate) struct Ends {
    notify: Notify,
    said: u64,
}

impl Ends {
    pub(crate) fn new(notify: &Notify) -> Self {
        Self { notify: notify.clone(), said: 0 }
    }
}

impl Observer for Ends {
    /// Looks whether one ended in this interval.
    fn observe(&mut self, progress: &Progress<'_>) {
        let Some(seen) = progress.machine else { return };
        for server in &seen.watched {
            for event in server.events.iter().filter(|event| event.ended) {
                self.said += 1;
                if self.said > ENDS_SAID {
                    continue;
                }
                let left = if server.processes == 0 { ", and none of its server is left" } else { "" };
                let more = if self.said == ENDS_SAID { "; more ends are in the result only" } else { "" };
                let (pid, name, at) = (event.pid, &event.name, figure::nanos(event.at));
                (self.notify)(&format!(
                    "note: the watched process {pid} ({name}) had ended by {at}{left}{more}"
                ));
            }
        }
    }
}
