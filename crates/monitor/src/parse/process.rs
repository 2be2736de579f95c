//! Files of processes and threads.

use plimsoll_core::Nanos;

use super::{lines, named, number, ticks, words};

/// What `/proc/PID/stat` (or that of a thread) says of CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Time in user mode.
    pub user: Nanos,
    /// Time in the kernel.
    pub system: Nanos,
    /// Threads of the process.
    pub threads: u64,
}

/// Reads a `stat` file: proc_pid_stat(5), fields 14, 15 and 20.
pub fn stat(bytes: &[u8]) -> Option<Stat> {
    // The name is in parentheses and may have some, and spaces, itself.
    let end = bytes.iter().rposition(|byte| *byte == b')')?;
    let mut fields = words(&bytes[end + 1..]);
    // What follows the name is field 3.
    let user = ticks(number(fields.nth(14 - 3)?)?);
    let system = ticks(number(fields.next()?)?);
    let threads = number(fields.nth(20 - 16)?)?;
    Some(Stat { user, system, threads })
}

/// What a `schedstat` file says: time on a processor, and time waiting for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Time on a processor.
    pub cpu: Nanos,
    /// Time for which the thread was ready to run but had none.
    pub run_delay: Nanos,
}

/// Reads a `schedstat` file: both in nanoseconds, then the number of time slices.
pub fn schedule(bytes: &[u8]) -> Option<Schedule> {
    let mut fields = words(bytes);
    let cpu = Nanos(number(fields.next()?)?);
    Some(Schedule { cpu, run_delay: Nanos(number(fields.next()?)?) })
}

/// Voluntary and involuntary context switches of a `status` file.
pub fn switches(bytes: &[u8]) -> Option<(u64, u64)> {
    Some((named(bytes, b"voluntary_ctxt_switches:")?, named(bytes, b"nonvoluntary_ctxt_switches:")?))
}

/// Resident memory of a `status` file, in bytes.
pub fn resident(bytes: &[u8]) -> Option<u64> {
    named(bytes, b"VmRSS:")?.checked_mul(1024)
}

/// Soft and hard limit of a line of `/proc/PID/limits`; `None` in place of a number is no limit.
pub fn limit(bytes: &[u8], name: &[u8]) -> Option<[Option<u64>; 2]> {
    let line = lines(bytes).find_map(|line| line.strip_prefix(name))?;
    let mut fields = words(line).map(|word| match word {
        b"unlimited" => Some(None),
        word => number(word).map(Some),
    });
    Some([fields.next()??, fields.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_parentheses_and_spaces() {
        let text =
            b"395 (a) R (b) S 391 391 17846 0 -1 4194304 98 0 0 0 120 34 0 0 20 0 3 0 2386282 3133440 362 1";
        let expected = Stat { user: Nanos::from_millis(1_200), system: Nanos::from_millis(340), threads: 3 };
        assert_eq!(stat(text), Some(expected));
        assert_eq!(stat(b"395 (a) R 391 391 17846 0 -1"), None);
        assert_eq!(stat(b"395 a R"), None);
    }

    #[test]
    fn schedules_are_exact() {
        let expected = Schedule { cpu: Nanos(2_031_852), run_delay: Nanos(17) };
        assert_eq!(schedule(b"2031852 17 1\n"), Some(expected));
        assert_eq!(schedule(b"2031852\n"), None);
    }

    #[test]
    fn a_status_has_memory_and_switches() {
        let text = b"Name:\tx\nVmHWM:\t 99 kB\nVmRSS:\t    1234 kB\nvoluntary_ctxt_switches:\t5\n\
                     nonvoluntary_ctxt_switches:\t7\n";
        assert_eq!((resident(text), switches(text)), (Some(1234 << 10), Some((5, 7))));
        assert_eq!((resident(b""), switches(b"")), (None, None));
    }

    #[test]
    fn limits_may_be_none() {
        let text = b"Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max processes             unlimited            7                    processes \n\
                     Max open files            1024                 unlimited            files     \n";
        assert_eq!(limit(text, b"Max open files"), Some([Some(1024), None]));
        assert_eq!(limit(text, b"Max processes"), Some([None, Some(7)]));
        assert_eq!(limit(text, b"Max locks"), None);
    }
}
