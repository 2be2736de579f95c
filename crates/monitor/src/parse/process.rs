//! Files of processes and threads.

use plimsoll_core::Nanos;
use plimsoll_metrics::FileUse;

use super::{lines, named, number, ticks, words};

/// Content of `/proc/PID/stat`, or of the `stat` file of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Time in user mode.
    pub user: Nanos,
    /// Time in the kernel.
    pub system: Nanos,
    /// Threads of the process.
    pub threads: u64,
    /// The process that started it.
    pub parent: u32,
    /// When it began, in ticks since the start of the system: with its number this names a process.
    pub began: u64,
    /// `true` if the process has ended, and only its number is left until its parent has reaped it.
    pub is_over: bool,
}

/// Reads a `stat` file: proc_pid_stat(5), fields 3, 4, 14, 15, 20 and 22.
pub fn stat(bytes: &[u8]) -> Option<Stat> {
    // The name is in parentheses and may have some, and spaces, itself.
    let end = bytes.iter().rposition(|byte| *byte == b')')?;
    let mut fields = words(&bytes[end + 1..]);
    // The state, which follows the name, is field 3.
    let is_over = matches!(fields.next()?, b"Z" | b"X" | b"x");
    let parent = u32::try_from(number(fields.next()?)?).ok()?;
    let user = ticks(number(fields.nth(14 - 5)?)?);
    let system = ticks(number(fields.next()?)?);
    let threads = number(fields.nth(20 - 16)?)?;
    let began = number(fields.nth(22 - 21)?)?;
    Some(Stat { user, system, threads, parent, began, is_over })
}

/// The name in a `stat` file, which may be cut: the first 15 bytes.
pub fn name(bytes: &[u8]) -> Option<&[u8]> {
    let begin = bytes.iter().position(|byte| *byte == b'(')?;
    let end = bytes.iter().rposition(|byte| *byte == b')')?;
    bytes.get(begin + 1..end)
}

/// Reads `/proc/PID/io`: proc_pid_io(5). Bytes are those of storage, calls are of any kind.
pub fn files(bytes: &[u8]) -> Option<FileUse> {
    Some(FileUse {
        read_bytes: named(bytes, b"read_bytes:")?,
        written_bytes: named(bytes, b"write_bytes:")?,
        read_calls: named(bytes, b"syscr:")?,
        write_calls: named(bytes, b"syscw:")?,
    })
}

/// Content of a `schedstat` file: time on a processor, and time waiting for one.
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

/// Soft and hard limit of a line of `/proc/PID/limits`; `None` in place of a number means no limit.
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
        let expected = Stat {
            user: Nanos::from_millis(1_200),
            system: Nanos::from_millis(340),
            threads: 3,
            parent: 391,
            began: 2_386_282,
            is_over: false,
        };
        assert_eq!((stat(text), name(text)), (Some(expected), Some(b"a) R (b".as_slice())));
        let over = b"7 (x) Z 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 99 0";
        assert_eq!(stat(over).map(|stat| (stat.is_over, stat.parent, stat.began)), Some((true, 1, 99)));
        assert_eq!(stat(b"395 (a) R 391 391 17846 0 -1"), None);
        assert_eq!((stat(b"395 a R"), name(b"395 a R"), name(b")(")), (None, None, None));
    }

    #[test]
    fn what_is_moved_is_bytes_of_storage_and_calls() {
        let text = b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n\
                     cancelled_write_bytes: 7\n";
        let expected = FileUse { read_bytes: 5, written_bytes: 6, read_calls: 3, write_calls: 4 };
        assert_eq!((files(text), files(b"rchar: 1\n")), (Some(expected), None));
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
