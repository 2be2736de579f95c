//! Signal settings that child processes inherit when they start.

/// Lets writes beyond the limit of the size of files (`RLIMIT_FSIZE`) fail with `EFBIG`, in this process and
/// in those that it starts from now on, instead of ending the process by `SIGXFSZ`: so a full disk looks like
/// to a program.
pub fn survive_file_limits() {
    // SAFETY: SIG_IGN is not a handler function, so no code of ours is called. The call cannot fail for this
    // signal.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn the_signal_is_ignored() {
        survive_file_limits();
        let status = std::fs::read_to_string("/proc/self/status").expect("it can be read");
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("it is told");
        let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a mask");
        assert_eq!(ignored >> (libc::SIGXFSZ - 1) & 1, 1);
    }
}
