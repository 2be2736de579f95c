//! Messages about watched processes that end.

use plimsoll_core::figure;
use plimsoll_engine::Progress;

use crate::base::messages::Notify;

/// Ends of processes that are said while a run goes on; the result has more.
const ENDS_SAID: u64 = 5;

/// Reports ends of watched processes.
pub(crate) struct Ends<'a> {
    say: &'a Notify,
    said: u64,
}

impl<'a> Ends<'a> {
    pub(crate) const fn new(say: &'a Notify) -> Self {
        Self { say, said: 0 }
    }

    /// Looks whether one ended in this interval.
    pub(crate) fn note(&mut self, progress: &Progress<'_>) {
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
                (self.say)(&format!(
                    "note: the watched process {pid} ({name}) had ended by {at}{left}{more}"
                ));
            }
        }
    }
}
