//! Whatever looks at a run while it goes on.

use plimsoll_engine::{Control, Progress};

use crate::base::messages::Notify;

/// Takes the figures of a run, second by second.
///
/// The run control calls it and waits for it: what takes long is done in a thread of its own.
pub(crate) trait Observer {
    /// Takes the latest figures.
    fn observe(&mut self, progress: &Progress<'_>);
}

/// Makes an observer of a run that begins. It may stop the run, and notify the user.
pub(crate) type StartObserver = Box<dyn FnOnce(&Control, &Notify) -> Box<dyn Observer>>;
