//! Limits of the system for this process: descriptors, ports and processors.

use std::fmt;
use std::fs;

/// Fewer file descriptors than needed, even after raising the soft limit to the hard one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The limit that holds.
    pub soft: u64,
    /// The limit up to which the process may raise it without privileges.
    pub hard: u64,
    /// The number of descriptors that was asked for.
    pub needed: u64,
}

impl fmt::Display for DescriptorLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { soft, hard, needed } = self;
        write!(f, "{needed} file descriptors are needed, but the limit is {soft} (hard limit {hard})")
    }
}

impl std::error::Error for DescriptorLimit {}

/// Raises the soft limit on file descriptors until `needed` fit. Returns the soft limit that holds now.
///
/// # Errors
/// When the hard limit is below `needed`, or the system refuses; the limit is then as before.
pub fn raise_descriptors(needed: u64) -> Result<u64, DescriptorLimit> {
    let (soft, hard) = descriptors();
    if soft >= needed {
        return Ok(soft);
    }
    let refused = DescriptorLimit { soft, hard, needed };
    if hard < needed {
        return Err(refused);
    }
    let limit = libc::rlimit { rlim_cur: needed, rlim_max: hard };
    // SAFETY: `limit` is an initialised rlimit that lives through the call.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
        return Err(refused);
    }
    Ok(needed)
}

/// The soft and the hard limit on file descriptors.
pub(crate) fn descriptors() -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing one rlimit. On failure, which needs a bad argument, it stays zero.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (limit.rlim_cur, limit.rlim_max)
}

/// Local ports that a connection without a fixed source port can get, per source address, target address and
/// target port.
pub fn ephemeral_ports() -> u32 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    // The range that the kernel starts with, should the file be hidden.
    port_count(&range).unwrap_or(60_999 - 32_768 + 1)
}

fn port_count(range: &str) -> Option<u32> {
    let mut ends = range.split_ascii_whitespace().map(str::parse::<u32>);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    last.checked_sub(first)?.checked_add(1)
}

/// Processors that this process may use (affinity and control-group quota considered), at least 1.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_counted_with_both_ends() {
        assert_eq!(port_count("32768\t60999\n"), Some(28_232));
        assert_eq!(port_count("5 5"), Some(1));
        assert_eq!(port_count("5 4"), None);
        assert_eq!(port_count(""), None);
        assert!(ephemeral_ports() > 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn what_is_there_needs_no_raise_and_what_cannot_be_is_refused() {
        let (soft, hard) = descriptors();
        assert!(soft > 0 && hard >= soft);
        assert_eq!(raise_descriptors(1), Ok(soft));
        if hard < u64::MAX {
            let error = raise_descriptors(hard + 1).expect_err("beyond the hard limit");
            assert_eq!(error, DescriptorLimit { soft, hard, needed: hard + 1 });
            assert!(error.to_string().contains(&hard.to_string()));
        }
    }

    #[test]
    fn there_is_a_processor() {
        assert!(cpus() >= 1);
    }
}
