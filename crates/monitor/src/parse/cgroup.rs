//! Files of control groups, of both versions.

use std::path::{Path, PathBuf};

use plimsoll_core::Nanos;
use plimsoll_metrics::Throttling;

use super::{named, number, words};

/// Throttling of `cpu.stat`: of version 2 in microseconds, of version 1 in nanoseconds. `None` where the
/// group has no limit to count for.
pub fn throttling(bytes: &[u8]) -> Option<Throttling> {
    let time = match named(bytes, b"throttled_usec") {
        Some(micros) => Nanos(micros.saturating_mul(1_000)),
        None => Nanos(named(bytes, b"throttled_time")?),
    };
    Some(Throttling {
        periods: named(bytes, b"nr_periods")?,
        throttled: named(bytes, b"nr_throttled")?,
        time,
    })
}

/// Processors' worth of time that `cpu.max` of version 2 allows; `None` for "max" and for other content.
pub fn cpu_max(bytes: &[u8]) -> Option<f64> {
    let mut fields = words(bytes);
    let quota = number(fields.next()?)?;
    share(quota, number(fields.next()?)?)
}

/// Processors' worth of time that `cpu.cfs_quota_us` and `cpu.cfs_period_us` of version 1 allow; `None` for
/// -1, which means no limit, and for other content.
pub fn cfs_quota(quota: &[u8], period: &[u8]) -> Option<f64> {
    share(number(words(quota).next()?)?, number(words(period).next()?)?)
}

fn share(quota: u64, period: u64) -> Option<f64> {
    (period > 0).then(|| quota as f64 / period as f64)
}

/// A limit of memory in bytes; `None` for "max" and for the huge number that version 1 has without one.
pub fn memory_limit(bytes: &[u8]) -> Option<u64> {
    const NO_LIMIT: u64 = 1 << 62;
    number(words(bytes).next()?).filter(|limit| *limit < NO_LIMIT)
}

/// The mount point of a hierarchy of control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The folder.
    pub at: PathBuf,
    /// The group that this folder shows; `/` for all of them.
    pub root: PathBuf,
}

/// The mount of version 2, or that of a controller of version 1, from `/proc/self/mountinfo`.
pub fn mount(mountinfo: &str, controller: Option<&str>) -> Option<Mount> {
    mountinfo.lines().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let mut back = back.split(' ');
        let (kind, _source, options) = (back.next()?, back.next()?, back.next()?);
        let fits = match controller {
            None => kind == "cgroup2",
            Some(name) => kind == "cgroup" && options.split(',').any(|option| option == name),
        };
        let mut front = front.split(' ').skip(3);
        let (root, at) = (front.next()?, front.next()?);
        fits.then(|| Mount { at: at.into(), root: root.into() })
    })
}

/// The group of a process in version 2, or in the hierarchy of a controller of version 1, from
/// `/proc/PID/cgroup`.
pub fn group<'t>(membership: &'t str, controller: Option<&str>) -> Option<&'t Path> {
    membership.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let fits = match controller {
            None => number == "0" && controllers.is_empty(),
            Some(name) => controllers.split(',').any(|controller| controller == name),
        };
        fits.then(|| Path::new(path))
    })
}

/// The folder of a group below a mount. Within a container the mount often shows the own group as its root.
pub fn folder(mount: &Mount, group: &Path) -> PathBuf {
    match group.strip_prefix(&mount.root) {
        Ok(below) => mount.at.join(below.strip_prefix("/").unwrap_or(below)),
        Err(_) => mount.at.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_has_the_unit_of_its_version() {
        let second = b"usage_usec 5\nnr_periods 10\nnr_throttled 4\nthrottled_usec 7\n";
        let first = b"nr_periods 10\nnr_throttled 4\nthrottled_time 7000\nnr_bursts 0\n";
        let expected = Throttling { periods: 10, throttled: 4, time: Nanos(7_000) };
        assert_eq!((throttling(second), throttling(first)), (Some(expected), Some(expected)));
        assert_eq!(throttling(b"usage_usec 5\n"), None);
    }

    #[test]
    fn limits_may_be_absent() {
        assert_eq!((cpu_max(b"150000 100000\n"), cpu_max(b"max 100000\n")), (Some(1.5), None));
        assert_eq!((cfs_quota(b"50000\n", b"100000\n"), cfs_quota(b"-1\n", b"100000\n")), (Some(0.5), None));
        assert_eq!((cpu_max(b"1 0"), cpu_max(b"")), (None, None));
        assert_eq!((memory_limit(b"max\n"), memory_limit(b"4096\n")), (None, Some(4096)));
        assert_eq!(memory_limit(b"9223372036854771712\n"), None);
    }

    #[test]
    fn groups_are_found_in_both_versions() {
        let mounts = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                      41 31 0:38 /box /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let first = mount(mounts, Some("cpu")).expect("it is mounted");
        let second = mount(mounts, None).expect("it is mounted");
        assert_eq!((first.root.to_str(), second.root.to_str()), (Some("/"), Some("/box")));
        assert_eq!(mount(mounts, Some("memory")), None);
        let membership = "4:memory:/m\n1:cpu,cpuacct:/a/b\n0::/box/c\n";
        let (one, two) = (group(membership, Some("cpu")), group(membership, None));
        assert_eq!((one, two), (Some(Path::new("/a/b")), Some(Path::new("/box/c"))));
        assert_eq!(folder(&first, Path::new("/a/b")), Path::new("/sys/fs/cgroup/cpu/a/b"));
        assert_eq!(folder(&second, Path::new("/box/c")), Path::new("/sys/fs/cgroup/unified/c"));
        assert_eq!(folder(&second, Path::new("/elsewhere")), Path::new("/sys/fs/cgroup/unified"));
    }
}
