//! Resources that this process has used, and the machine that it runs on.

use std::fs;
use std::mem::MaybeUninit;

use plimsoll_core::Nanos;

use crate::limits;

/// Processor time and context switches, since the thread or process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Time in user space.
    pub user: Nanos,
    /// Time in the kernel.
    pub system: Nanos,
    /// Switches because the thread waited for something.
    pub voluntary_switches: u64,
    /// Switches because the scheduler took the processor away.
    pub involuntary_switches: u64,
}

/// The use of the calling thread.
pub fn thread_cpu() -> Cpu {
    rusage(libc::RUSAGE_THREAD)
}

/// The use of the whole process, ended threads included.
pub fn process_cpu() -> Cpu {
    rusage(libc::RUSAGE_SELF)
}

fn rusage(who: libc::c_int) -> Cpu {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for writing one rusage, of which all zeros is a value too, so it is
    // initialised whether or not the call succeeds.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    let nanos = |time: libc::timeval| Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000);
    Cpu {
        user: nanos(usage.ru_utime),
        system: nanos(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}

/// Returns the run delay of the calling thread since it began: the time for which it was ready to run but had
/// no processor. `None` where the kernel keeps no such count.
pub fn thread_run_delay() -> Option<Nanos> {
    let line = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    line.split_ascii_whitespace().nth(1)?.parse().ok().map(Nanos)
}

/// The largest resident set of this process so far, in bytes.
pub fn peak_rss_bytes() -> Option<u64> {
    kib_field(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// The resident set of this process now, in bytes.
pub fn rss_bytes() -> Option<u64> {
    kib_field(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// A field such as `VmRSS:   1234 kB`, in bytes.
fn kib_field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name of the machine.
    pub hostname: String,
    /// Name and release of the kernel.
    pub kernel: String,
    /// The processor's model, or the architecture if the system does not report it.
    pub cpu_model: String,
    /// Processors that this process may use.
    pub cpus: usize,
    /// The frequency governor of the first processor, where there is one.
    pub governor: Option<String>,
    /// Main memory in bytes, 0 if unknown.
    pub memory_bytes: u64,
    /// The soft limit on file descriptors.
    pub soft_descriptors: u64,
}

/// Looks the machine up.
pub fn host() -> Host {
    let (hostname, kernel, machine) = uname();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let governor = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok();
    Host {
        hostname,
        kernel,
        cpu_model: cpu_model(&cpuinfo).unwrap_or(machine),
        cpus: limits::cpus(),
        governor: governor.map(|text| text.trim().to_owned()).filter(|name| !name.is_empty()),
        memory_bytes: kib_field(&meminfo, "MemTotal:").unwrap_or(0),
        soft_descriptors: limits::descriptors().0,
    }
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let value = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    // "model name" on x86; some ARM kernels have "Model" or "Hardware" instead.
    value("model name")
        .or_else(|| value("Model"))
        .or_else(|| value("Hardware"))
        .filter(|name| !name.is_empty())
}

/// Host name, kernel name with release, and architecture.
fn uname() -> (String, String, String) {
    let mut names = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: the pointer is valid for writing one utsname, of which all zeros (empty strings) is a value
    // too.
    let names = unsafe {
        libc::uname(names.as_mut_ptr());
        names.assume_init()
    };
    let text = |field: &[libc::c_char]| {
        let bytes: Vec<u8> = field.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let kernel = format!("{} {}", text(&names.sysname), text(&names.release));
    (text(&names.nodename), kernel, text(&names.machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn work_shows_as_processor_time() {
        let (thread, process) = (thread_cpu(), process_cpu());
        let mut sum = 0_u64;
        // A system call per turn, until the microseconds of rusage move.
        while thread_cpu().user + thread_cpu().system < thread.user + thread.system + Nanos::from_millis(2) {
            sum = sum.wrapping_add(rss_bytes().unwrap_or(1));
        }
        assert!(sum > 0);
        let now = process_cpu();
        assert!(now.user + now.system >= process.user + process.system + Nanos::from_millis(2));
    }

    #[test]
    fn memory_is_counted_in_bytes() {
        let (now, peak) = (rss_bytes().expect("a resident set"), peak_rss_bytes().expect("a peak"));
        assert!(now > 100 << 10 && peak > 100 << 10, "{now} and {peak} bytes");
        assert_eq!(kib_field("A: 1 kB\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12 << 10));
        assert_eq!(kib_field("A: 1 kB\n", "VmRSS:"), None);
    }

    #[test]
    fn run_delay_never_falls() {
        let Some(first) = thread_run_delay() else { return };
        assert!(thread_run_delay().expect("still kept") >= first);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn the_host_is_described() {
        let host = host();
        assert!(host.kernel.starts_with("Linux "), "{host:?}");
        assert!(!host.cpu_model.is_empty() && host.memory_bytes > 0 && host.soft_descriptors > 0, "{host:?}");
    }

    #[test]
    fn the_model_is_found_where_kernels_put_it() {
        let x86 = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2 GHz\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(cpu_model("Hardware\t: Board\n").as_deref(), Some("Board"));
        assert_eq!(cpu_model(""), None);
    }
}
