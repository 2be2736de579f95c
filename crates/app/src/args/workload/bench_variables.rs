//! Variables of Lithair's bench script, which Plimsoll does not read, and the flags that take their place.

use crate::base::environment;

/// A variable, and the flags that take its place.
struct Variable {
    name: &'static str,
    /// Makes flags of `plimsoll crud` from a value; `None` if there are none for it.
    of_crud: fn(&str) -> Option<String>,
    /// Makes flags of `plimsoll cluster run` from a value, in a suite.
    of_cluster: fn(&str, Suite) -> ClusterFlags,
}

/// Flags of `plimsoll cluster run` for a variable.
enum ClusterFlags {
    Write(String),
    /// The variable has no effect there, in the script neither.
    Idle,
    /// There is no flag, and the load of the script differs: a note that says how.
    Missing(String),
}

use ClusterFlags::{Idle, Missing, Write};

/// Suites of the script, and of `lithair-node.yaml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suite {
    None,
    ConcurrencyScaling,
    HeavyVsLightReads,
    BulkVsSingle,
    DurabilityProfiles,
}

impl Suite {
    const ALL: [(&'static str, Self); 4] = [
        ("concurrency_scaling", Self::ConcurrencyScaling),
        ("heavy_vs_light_reads", Self::HeavyVsLightReads),
        ("bulk_vs_single", Self::BulkVsSingle),
        ("durability_profiles", Self::DurabilityProfiles),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(of_suite, _)| *of_suite == name).map(|(_, suite)| *suite)
    }
}

/// Variables of Lithair's bench script, which starts one node or three, and a generator for each node.
const VARIABLES: [Variable; 17] = [
    Variable::new("LOADGEN_MODE", |mode| flag("--mode", mode), mode),
    Variable::new(
        "LOADGEN_BULK_SIZE",
        |size| flag("--bulk-size", size),
        |size, suite| match suite {
            Suite::BulkVsSingle => set("size", &format!("{size},1")),
            // In bulk the mode is told.
            _ => Idle,
        },
    ),
    Variable::new(
        "LOADGEN_CONCURRENCY",
        |of| flag("--concurrency", of),
        |of, suite| if suite == Suite::ConcurrencyScaling { Idle } else { set("concurrency", of) },
    ),
    Variable::new(
        "LOADGEN_TIMEOUT_S",
        |seconds| flag("--timeout-s", seconds),
        |seconds, _| Write(format!("--timeout {seconds}s")),
    ),
    Variable::new(
        "CREATE_PERCENTAGE",
        |share| flag("--create-pct", share),
        |share, suite| of_mix(suite, set("create_pct", share)),
    ),
    Variable::new(
        "READ_PERCENTAGE",
        |share| flag("--read-pct", share),
        |share, suite| of_mix(suite, set("read_pct", share)),
    ),
    Variable::new(
        "UPDATE_PERCENTAGE",
        |share| flag("--update-pct", share),
        |share, suite| of_mix(suite, set("update_pct", share)),
    ),
    Variable::new(
        "DELETE_PERCENTAGE",
        |share| flag("--delete-pct", share),
        |share, suite| of_mix(suite, set("delete_pct", share)),
    ),
    Variable::new(
        "LIGHT_READS",
        |kind| flag("--read-path", read_path(kind)),
        |kind, suite| of_reads(suite, read_path(kind)),
    ),
    Variable::new("READ_PATH", |path| flag("--read-path", path), |path, suite| of_reads(suite, path)),
    Variable::new("READ_TARGETS", |urls| flag("--read-targets", urls), idle),
    Variable::new("LEADER_URL", |url| flag("--leader", url), idle),
    Variable::new(
        PRESEED,
        |items| flag("--preseed", items),
        |items, suite| match suite {
            Suite::HeavyVsLightReads => set("preseed", items),
            _ => Missing(format!("{PRESEED}: only heavy_vs_light_reads is preseeded")),
        },
    ),
    Variable::new("BENCH_SUITE", nothing, |suite, _| Write(format!("--suite {suite}"))),
    Variable::new("STORAGE_PROFILE", nothing, |profile, suite| match suite {
        Suite::DurabilityProfiles => Idle,
        _ => Write(format!("--profile {profile}")),
    }),
    Variable::new("CONC_LIST", nothing, |list, suite| match suite {
        Suite::ConcurrencyScaling | Suite::None => {
            set("concurrency", &list.split_whitespace().collect::<Vec<_>>().join(","))
        }
        _ => Idle,
    }),
    Variable::new("SINGLE_NODE", nothing, idle),
];

/// The variable whose number is of each node.
const PRESEED: &str = "PRESEED_PER_NODE";

impl Variable {
    const fn new(
        name: &'static str,
        of_crud: fn(&str) -> Option<String>,
        of_cluster: fn(&str, Suite) -> ClusterFlags,
    ) -> Self {
        Self { name, of_crud, of_cluster }
    }
}

fn nothing(_: &str) -> Option<String> {
    None
}

fn flag(name: &str, value: &str) -> Option<String> {
    (!value.is_empty()).then(|| format!("{name} {value}"))
}

const fn idle(_: &str, _: Suite) -> ClusterFlags {
    Idle
}

fn set(parameter: &str, value: &str) -> ClusterFlags {
    Write(format!("--set {parameter}={value}"))
}

/// Operations of the load, where the suite has them all.
fn of_mix(suite: Suite, flags: ClusterFlags) -> ClusterFlags {
    if suite == Suite::BulkVsSingle { Idle } else { flags }
}

/// The path of reads, where the suite has not each of them, or none.
fn of_reads(suite: Suite, path: &str) -> ClusterFlags {
    match suite {
        Suite::HeavyVsLightReads | Suite::BulkVsSingle => Idle,
        _ => set("read", path),
    }
}

/// How items are created: the suites have the random mix, but the one that compares.
fn mode(mode: &str, suite: Suite) -> ClusterFlags {
    match (mode, suite) {
        ("random", _) | (_, Suite::BulkVsSingle) => Idle,
        _ => Missing(format!("LOADGEN_MODE={mode}: only `plimsoll crud --mode {mode}` has it")),
    }
}

/// The path that `LIGHT_READS` stands for.
fn read_path(kind: &str) -> &'static str {
    match kind {
        "1" | "true" | "status" => "/status",
        "count" => "/api/products/count",
        _ => "/api/products",
    }
}

/// The variables that are set, with their values.
fn set_ones() -> Vec<(&'static Variable, String)> {
    let named = environment::values_among(&VARIABLES.each_ref().map(|variable| variable.name));
    let with_value = |(name, value)| VARIABLES.iter().find(|one| one.name == name).map(|one| (one, value));
    named.into_iter().filter_map(with_value).collect()
}

fn names(set: &[(&Variable, String)]) -> String {
    set.iter().map(|(variable, _)| variable.name).collect::<Vec<_>>().join(", ")
}

/// The note that `plimsoll crud` reads none of the variables that are set; `None` if none is.
pub(crate) fn unread_by_crud() -> Option<String> {
    let set = set_ones();
    if set.is_empty() {
        return None;
    }
    let flags: Vec<_> = set.iter().filter_map(|(variable, value)| (variable.of_crud)(value)).collect();
    let of_clusters = set.iter().any(|(variable, _)| (variable.of_crud)("1").is_none());
    let mut advice = Vec::new();
    if !flags.is_empty() {
        let each = set.iter().any(|(variable, _)| variable.name == PRESEED);
        let in_all = if each { " (in all: of three nodes, three times that)" } else { "" };
        advice.push(format!("write {}{in_all}", flags.join(" ")));
    }
    if of_clusters {
        advice.push("`plimsoll cluster run` has nodes, profiles and suites".to_owned());
    }
    Some(format!("{}: not read: {}", names(&set), advice.join("; ")))
}

/// The command of the script's load on one node, with its variables that are set. `total` is its argument.
pub(crate) fn crud_command(total: &str) -> String {
    let defaults = [("--mode", "random"), ("--concurrency", "256"), ("--total", total)];
    let set = set_ones();
    let given: Vec<String> = set.iter().filter_map(|(variable, value)| (variable.of_crud)(value)).collect();
    let is_given = |flag: &str| given.iter().any(|given| given.starts_with(&format!("{flag} ")));
    let others = defaults.iter().filter(|(flag, _)| !is_given(flag));
    let flags = others.map(|(flag, value)| format!("{flag} {value}")).chain(given.iter().cloned());
    format!("plimsoll crud --preset lithair {}", flags.collect::<Vec<_>>().join(" "))
}

/// The flags of `plimsoll cluster run` for the variables that are set, where `has` says so of the parameter
/// of a spec, and what there is no flag for.
fn cluster_flags(
    set: &[(&Variable, String)],
    suite: Suite,
    has: impl Fn(&str) -> bool,
) -> (Vec<String>, Vec<String>) {
    let (mut flags, mut missing) = (Vec::new(), Vec::new());
    for (variable, value) in set.iter().filter(|(_, value)| !value.is_empty()) {
        match (variable.of_cluster)(value, suite) {
            Write(flag) => flags.push(flag),
            Missing(what) => missing.push(what),
            Idle => {}
        }
    }
    let is_known =
        |flag: &String| flag.strip_prefix("--set ").and_then(|set| set.split('=').next()).is_none_or(&has);
    flags.retain(is_known);
    (flags, missing)
}

/// The note that `plimsoll cluster run` reads none of the variables that are set, for a suite of a spec with
/// these parameters; `None` if none is.
pub(crate) fn unread_by_cluster(parameters: &[&str], suite: Option<&str>) -> Option<String> {
    let set = set_ones();
    let suite = suite.and_then(Suite::named).unwrap_or(Suite::None);
    let (flags, missing) = cluster_flags(&set, suite, |name| parameters.contains(&name));
    let written = (!flags.is_empty()).then(|| format!("write {}", flags.join(" ")));
    let advice: Vec<String> = written.into_iter().chain(missing).collect();
    (!set.is_empty()).then(|| match advice.is_empty() {
        true => format!("{}: not read: the spec says what is run", names(&set)),
        false => format!("{}: not read: {}", names(&set), advice.join("; ")),
    })
}

/// Hint with the command for the suite that the variables ask for, and with the script's argument if there is
/// one; `None` if they ask for no suite.
pub(crate) fn suite_command(total: Option<&str>) -> Option<String> {
    let set = set_ones();
    let (_, name) =
        set.iter().find(|(variable, value)| variable.name == "BENCH_SUITE" && !value.is_empty())?;
    let Some(suite) = Suite::named(name) else {
        let names: Vec<&str> = Suite::ALL.iter().map(|(name, _)| *name).collect();
        return Some(format!("the script has no suite `{name}`: it has {}", names.join(", ")));
    };
    let (mut flags, missing) = cluster_flags(&set, suite, |_| true);
    flags.extend(total.map(|total| format!("--set total={total}")));
    let missing: String = missing.iter().map(|what| format!("; {what}")).collect();
    Some(format!(
        "its suite is `plimsoll cluster run examples/cluster/lithair-node.yaml {}`, one node as with \
         SINGLE_NODE=1{missing}",
        flags.join(" ")
    ))
}
