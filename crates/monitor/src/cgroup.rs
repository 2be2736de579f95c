//! The control groups of a process: their limits, and the delays that these cause.

use std::path::{Path, PathBuf};

use plimsoll_metrics::{GroupLimits, Throttling};

use crate::kept::{Buffer, ProcFile, text};
use crate::parse::cgroup as parse;
use crate::sampler::Tree;

/// The groups of one process, as far as they matter: of all on the way to the root, the one with the tightest
/// limit on CPU time, and the process's own for its memory.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(crate) limits: GroupLimits,
    /// `cpu.stat` of the group whose limit is the tightest; without a limit nothing is held up.
    cpu: Option<ProcFile>,
    memory: Option<ProcFile>,
    last: Option<Throttling>,
}

/// Names of files, which differ between the versions.
struct Names {
    /// The controllers of version 1 for CPU time and memory; version 2 has one hierarchy for all.
    controllers: [Option<&'static str>; 2],
    memory: &'static str,
    memory_limit: &'static str,
}

const VERSION_1: Names = Names {
    controllers: [Some("cpu"), Some("memory")],
    memory: "memory.usage_in_bytes",
    memory_limit: "memory.limit_in_bytes",
};
const VERSION_2: Names =
    Names { controllers: [None, None], memory: "memory.current", memory_limit: "memory.max" };

impl Groups {
    /// The groups of the process whose folder in `/proc` this is.
    pub(crate) fn of(tree: &Tree, process: &Path) -> Self {
        let mounts = text(&tree.at("/proc/self/mountinfo")).unwrap_or_default();
        let membership = text(&process.join("cgroup")).unwrap_or_default();
        let mut found = Self::default();
        // If both versions are mounted, each controller belongs to one of them.
        for names in [VERSION_1, VERSION_2] {
            let ways = names.controllers.map(|controller| way(tree, &mounts, &membership, controller));
            let [cpu, memory] = ways;
            for folder in cpu {
                let Some(limit) = cpu_limit(&folder) else { continue };
                if found.limits.cpus.is_none_or(|tightest| limit < tightest) {
                    found.limits.cpus = Some(limit);
                    found.cpu = ProcFile::find(&folder.join("cpu.stat"));
                }
            }
            for (up, folder) in memory.into_iter().enumerate() {
                if up == 0 && found.memory.is_none() {
                    found.memory = ProcFile::find(&folder.join(names.memory));
                }
                let limit = text(&folder.join(names.memory_limit));
                let limit = limit.and_then(|limit| parse::memory_limit(limit.as_bytes()));
                let tightest = found.limits.memory_bytes;
                found.limits.memory_bytes = [tightest, limit].into_iter().flatten().min();
            }
        }
        let mut buffer = Buffer::new();
        found.throttling(&mut buffer);
        found
    }

    /// Returns the throttling since the last call; `None` without a limit.
    pub(crate) fn throttling(&mut self, buffer: &mut Buffer) -> Option<Throttling> {
        let now = parse::throttling(self.cpu.as_ref()?.read(buffer)?)?;
        let last = self.last.replace(now).unwrap_or(now);
        Some(Throttling {
            periods: now.periods.saturating_sub(last.periods),
            throttled: now.throttled.saturating_sub(last.throttled),
            time: now.time.since(last.time),
        })
    }

    /// Memory that the group uses, in bytes.
    pub(crate) fn memory_bytes(&self, buffer: &mut Buffer) -> Option<u64> {
        let bytes = self.memory.as_ref()?.read(buffer)?;
        crate::parse::number(bytes.trim_ascii())
    }
}

/// The folders of a group and of those that it is within, from itself on; none if there is no such hierarchy.
fn way(tree: &Tree, mounts: &str, membership: &str, controller: Option<&str>) -> Vec<PathBuf> {
    let found = parse::mount(mounts, controller).zip(parse::group(membership, controller));
    let Some((mount, group)) = found else { return Vec::new() };
    let folder = parse::folder(&mount, group);
    let inside = folder.ancestors().take_while(|folder| folder.starts_with(&mount.at));
    inside.map(|folder| tree.at(folder)).collect()
}

fn cpu_limit(folder: &Path) -> Option<f64> {
    if let Some(max) = text(&folder.join("cpu.max")) {
        return parse::cpu_max(max.as_bytes());
    }
    let (quota, period) = (text(&folder.join("cpu.cfs_quota_us"))?, text(&folder.join("cpu.cfs_period_us"))?);
    parse::cfs_quota(quota.as_bytes(), period.as_bytes())
}
