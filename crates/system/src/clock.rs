//! The clocks of the system, and sleeping by them.

use std::mem::MaybeUninit;

use plimsoll_core::Nanos;

/// `CLOCK_MONOTONIC`: the clock of every instant in a run. About 25 ns, by the vDSO.
pub fn monotonic() -> Nanos {
    read(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME`: nanoseconds since 1970. For the start time of a run and for slots in requests, never for
/// a measurement.
pub fn unix() -> Nanos {
    read(libc::CLOCK_REALTIME)
}

/// Reads the clock of [`monotonic`] until it shows `at`, and returns what it shows then.
pub fn poll_until(at: Nanos) -> Nanos {
    loop {
        let now = monotonic();
        if now >= at {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// Sleeps until `at` on the clock of [`monotonic`]; returns at once if that is past.
pub fn sleep_until(at: Nanos) {
    while !sleep_once(at) {}
}

/// Like [`sleep_until`], but a signal ends the sleep too. Returns whether `at` was reached.
pub fn sleep_once(at: Nanos) -> bool {
    let until = timespec(at);
    // SAFETY: `until` is a valid timespec (nanoseconds below 10^9 by construction) that lives through the
    // call, and the remainder may be null; with TIMER_ABSTIME it is not written anyway.
    let error = unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut())
    };
    error != libc::EINTR
}

/// `span` or instant as the kernel's structure.
pub fn timespec(span: Nanos) -> libc::timespec {
    // u64::MAX nanoseconds are 1.8 * 10^10 seconds: both casts keep the value.
    libc::timespec { tv_sec: (span.0 / 1_000_000_000) as _, tv_nsec: (span.0 % 1_000_000_000) as _ }
}

fn read(clock: libc::clockid_t) -> Nanos {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is valid for writing one timespec. The call can only fail for an unknown clock or a
    // bad pointer; both clocks exist on every Linux.
    let time = unsafe {
        let result = libc::clock_gettime(clock, time.as_mut_ptr());
        debug_assert_eq!(result, 0);
        time.assume_init()
    };
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_does_not_end_early() {
        let at = monotonic() + Nanos::from_micros(200);
        sleep_until(at);
        assert!(monotonic() >= at);
        sleep_until(Nanos::ZERO);
    }
}
