//! The calling thread: timer slack and processor.

/// Lets the kernel end sleeps on time instead of up to 50 us late: `PR_SET_TIMERSLACK` of 1 ns. Backends call
/// this when they are opened.
pub fn set_timer_slack_min() {
    // SAFETY: this option takes one integer by value and touches no memory of ours. It cannot fail, and if it
    // did, sleeps would be less exact and nothing else.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
    }
}

/// Binds the calling thread to one processor, counted from 0. Returns whether the system did it.
pub fn pin(cpu: usize) -> bool {
    if cpu >= libc::CPU_SETSIZE as usize {
        return false;
    }
    // SAFETY: a cpu_set_t is a plain array of integers, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `cpu` is below CPU_SETSIZE, so the bit lies inside `set`.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: 0 is the calling thread; `set` is initialised, and the size given is its size.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn slack_becomes_one_nanosecond() {
        set_timer_slack_min();
        // SAFETY: PR_GET_TIMERSLACK takes no argument and returns the value.
        let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        // A real-time thread has no slack at all.
        assert!(slack <= 1, "slack is {slack} ns");
    }

    #[test]
    fn pinning_beyond_the_machine_is_refused() {
        assert!(!pin(usize::MAX));
        assert!(!pin(libc::CPU_SETSIZE as usize - 1));
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn a_pinned_thread_runs_where_it_was_told() {
        // SAFETY: no arguments; returns the number of the processor we run on.
        let here = unsafe { libc::sched_getcpu() };
        assert!(here >= 0);
        let ran = std::thread::spawn(move || {
            assert!(pin(here as usize));
            // SAFETY: as above.
            unsafe { libc::sched_getcpu() }
        });
        assert_eq!(ran.join().expect("the thread pins itself"), here);
    }
}
