//! The calling thread: timer slack, processor and scheduling.

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

/// Keeps the calling thread from taking a processor from a thread that runs there when this one wakes up
/// (`SCHED_BATCH`, sched(7)): for work beside that of the workers. Returns `false` if the system refuses.
///
/// Its share of a busy processor stays that of any thread. One of a low weight (nice 19) that ends there
/// holds its entries of `/proc` until it has been given the time to let go of them, and whoever waits for its
/// process (wait4(2)) spins for them in the kernel: agents of a fleet were silent for minutes.
pub fn enter_background() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is valid for reading one sched_param, which the call does not keep.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) == 0 }
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

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn a_background_thread_keeps_its_weight() {
        let policy_and_nice = std::thread::spawn(|| {
            assert!(enter_background());
            let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("it can be read");
            // Fields 41 and 19 of proc_pid_stat(5); the second one ends with the last parenthesis.
            let (_, fields) = stat.rsplit_once(") ").expect("a name");
            let fields: Vec<&str> = fields.split(' ').collect();
            (fields[41 - 3].to_owned(), fields[19 - 3].to_owned())
        });
        let (policy, nice) = policy_and_nice.join().expect("it ends");
        let own = std::fs::read_to_string("/proc/thread-self/stat").expect("it can be read");
        let (_, own) = own.rsplit_once(") ").expect("a name");
        assert_eq!((policy.as_str(), Some(nice.as_str())), ("3", own.split(' ').nth(19 - 3)));
    }
}
