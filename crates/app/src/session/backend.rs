//! The system interface of a run, and its file descriptors.

use plimsoll_document::Problem;
use plimsoll_driver::{BackendOptions, KernelBackend, uring_available};
use plimsoll_plan::{BackendChoice, Load, Overload, Plan};
use plimsoll_system::limits;

use crate::base::failure::Failure;

/// Descriptors that a run needs beside its connections: standard streams, rings, files.
pub(crate) const SPARE_DESCRIPTORS: u64 = 64;

/// Spare descriptors of a run with two threads that watches, exports and saves nothing.
const FEWEST_SPARE_DESCRIPTORS: u64 = 32;

/// The backend that was asked for; io_uring where the choice was left open and it works.
///
/// # Errors
/// If it was asked for and does not work.
pub(crate) fn chosen(choice: BackendChoice) -> Result<KernelBackend, Failure> {
    let options = BackendOptions::default();
    match choice {
        BackendChoice::Epoll => Ok(KernelBackend::Epoll(options)),
        BackendChoice::Auto if uring_available().is_err() => Ok(KernelBackend::Epoll(options)),
        BackendChoice::Auto => Ok(KernelBackend::Uring(options)),
        BackendChoice::Uring => match uring_available() {
            Ok(()) => Ok(KernelBackend::Uring(options)),
            Err(reason) => Err(Failure::environment(
                Problem::new(format!("io_uring does not work here: {reason}"))
                    .with_hint("leave out --backend, or use --backend epoll"),
            )),
        },
    }
}

/// Makes sure that there is a descriptor for every connection, and for those `beside` the plan's; where their
/// number was left to us, takes fewer, and gives a note of that.
pub(crate) fn fit_descriptors(plan: &mut Plan, beside: u32) -> Result<Option<String>, Problem> {
    let needed = u64::from(plan.connections.max) + SPARE_DESCRIPTORS + u64::from(beside);
    let Err(limit) = limits::raise_descriptors(needed) else { return Ok(None) };
    let left = |spare: u64| limit.hard.saturating_sub(spare + u64::from(beside));
    let fewest = u64::from(plan.connections.initial);
    // The usual spare is generous, and may be too much where few descriptors are left.
    let possible = [SPARE_DESCRIPTORS, FEWEST_SPARE_DESCRIPTORS].map(left);
    let grows = matches!(plan.load, Load::Open { overload: Overload::Grow, .. });
    if grows && let Some(possible) = possible.into_iter().find(|possible| *possible >= fewest.max(1)) {
        // Bounded by `possible`, so this cannot fail for lack of a higher limit.
        let _ = limits::raise_descriptors(limit.hard);
        let asked = plan.connections.max;
        plan.connections.max = u32::try_from(possible).unwrap_or(u32::MAX).min(asked);
        return Ok(Some(format!(
            "at most {} connections instead of {asked}: this process may open {} file descriptors (ulimit -Hn)",
            plan.connections.max, limit.hard
        )));
    }
    let raise = format!("raise the hard limit (ulimit -Hn {needed}, as root)");
    let [_, possible] = possible;
    Err(Problem::new(format!(
        "{} connections need {needed} file descriptors, but this process may open {} at most",
        plan.connections.max, limit.hard
    ))
    .with_hint(if possible > 0 { format!("{raise}, or use -c {possible}") } else { raise }))
}

pub(crate) const fn backend_name(backend: BackendChoice) -> &'static str {
    match backend {
        BackendChoice::Auto => "auto",
        BackendChoice::Epoll => "epoll",
        BackendChoice::Uring => "uring",
    }
}
