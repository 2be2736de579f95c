//! The backends of a run's workers as a value.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use plimsoll_driver::{KernelBackend, Open, OpenEpoll, OpenUring};

use crate::job::Job;

/// Source of the backends of workers: an [`Open`] whose type is hidden. Only the loop of a worker is compiled
/// for each type.
#[derive(Clone)]
pub struct Backends(Arc<dyn Host>);

impl Backends {
    /// The backends that `open` opens, such as those of a simulation.
    pub fn of(open: impl Open + 'static) -> Self {
        Self(Arc::new(open))
    }

    /// The name that all of them have.
    pub(crate) fn name(&self) -> &'static str {
        self.0.backend_name()
    }

    /// Carries out a worker's jobs on this thread.
    pub(crate) fn serve(&self, jobs: &Receiver<Job>) {
        self.0.serve(jobs);
    }
}

/// The loop over the kernel's backends is compiled here and not in the crate of a caller, which may not be
/// optimized.
impl From<KernelBackend> for Backends {
    fn from(backend: KernelBackend) -> Self {
        match backend {
            KernelBackend::Epoll(options) => Self::of(OpenEpoll(options)),
            KernelBackend::Uring(options) => Self::of(OpenUring(options)),
        }
    }
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Backends").field(&self.name()).finish()
    }
}

/// Everything that depends on the type of the backends.
trait Host: Send + Sync {
    fn backend_name(&self) -> &'static str;

    /// Carries out jobs until there are no more to come. The backend of one serves the next.
    fn serve(&self, jobs: &Receiver<Job>);
}

impl<O: Open> Host for O {
    fn backend_name(&self) -> &'static str {
        self.name()
    }

    fn serve(&self, jobs: &Receiver<Job>) {
        let mut kept = None;
        for job in jobs {
            job.carry_out(self, &mut kept);
        }
    }
}
