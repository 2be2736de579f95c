//! Facts that do not change while a run goes on, for the provenance of its result.

use std::path::Path;

use plimsoll_metrics::GroupLimits;

use crate::cgroup::Groups;
use crate::kept::text;
use crate::parse;
use crate::sampler::Tree;

/// Facts about the machine and its limits for us, beside those that every result has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// Name of the hypervisor or container, as it calls itself; `None` where nothing of the kind was noticed.
    pub virtualisation: Option<String>,
    /// Clock source of the kernel, e.g. `tsc`.
    pub clock_source: Option<String>,
    /// Weaknesses of the processor against which something is done at the cost of speed, by name.
    pub mitigations: Vec<String>,
    /// Limits of our control groups.
    pub limits: GroupLimits,
    /// Hard limit of open file descriptors; `None` if there is none.
    pub hard_descriptors: Option<u64>,
    /// Local ports that connections may get: first and last.
    pub port_range: Option<[u64; 2]>,
    /// Connections that may wait to be accepted, at most (`net.core.somaxconn`).
    pub accept_queue: Option<u64>,
}

/// Looks the machine up. Nothing of it is needed for a run, so unreadable parts are left out.
pub fn host() -> Host {
    host_in(&Tree::system())
}

/// Looks the machine up below another root than the system's.
pub fn host_below(root: &Path) -> Host {
    host_in(&Tree::of(root))
}

fn host_in(tree: &Tree) -> Host {
    let limits = text(&tree.at("/proc/self/limits")).unwrap_or_default();
    let hard = parse::process::limit(limits.as_bytes(), b"Max open files").and_then(|[_, hard]| hard);
    let number = |path: &str| text(&tree.at(path)).and_then(|value| parse::number(value.as_bytes()));
    Host {
        virtualisation: virtualisation(tree),
        clock_source: text(&tree.at("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        mitigations: mitigations(tree),
        limits: Groups::of(tree, &tree.at("/proc/self")).limits,
        hard_descriptors: hard,
        port_range: text(&tree.at("/proc/sys/net/ipv4/ip_local_port_range")).and_then(|range| {
            let mut ends = parse::words(range.as_bytes()).map(parse::number);
            Some([ends.next()??, ends.next()??])
        }),
        accept_queue: number("/proc/sys/net/core/somaxconn"),
    }
}

/// A container by the files that its makers leave, a virtual machine by its firmware or processor.
fn virtualisation(tree: &Tree) -> Option<String> {
    for (mark, name) in [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")] {
        if tree.at(mark).exists() {
            return Some(name.to_owned());
        }
    }
    let product = ["sys_vendor", "product_name"].map(|name| text(&tree.at("/sys/class/dmi/id").join(name)));
    let product: Vec<String> = product.into_iter().flatten().collect();
    let processors = text(&tree.at("/proc/cpuinfo"))?;
    let flags = processors.lines().find(|line| line.starts_with("flags"))?;
    let guest = flags.split(' ').any(|flag| flag == "hypervisor");
    guest.then(|| if product.is_empty() { "virtual machine".to_owned() } else { product.join(" ") })
}

fn mitigations(tree: &Tree) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(tree.at("/sys/devices/system/cpu/vulnerabilities")) else {
        return Vec::new();
    };
    let mitigated =
        |path: &std::path::PathBuf| text(path).is_some_and(|state| state.starts_with("Mitigation"));
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(mitigated);
    let mut names: Vec<String> =
        paths.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    names.sort_unstable();
    names
}
