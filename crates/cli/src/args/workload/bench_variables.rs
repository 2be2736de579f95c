//! Variables of Lithair's bench script, which Plimsoll does not read, and the flags that take their place.

use crate::base::environment;

/// A variable, and the flags that take its place.
struct Variable {
    name: &'static str,
    /// Makes flags of `plimsoll crud` from a value; `None` if there are none for it.
    of_crud: fn(&str) -> Option<String>,
    /// Makes flags of `plimsoll cluster run` from a value; `None` if there are none for it.
    of_cluster: fn(&str) -> Option<String>,
}

/// Variables of Lithair's bench script, which starts one node or three, and a generator for each node.
const VARIABLES: [Variable; 17] = [
    Variable::new("LOADGEN_MODE", |mode| flag("--mode", mode), nothing),
    Variable::new(
        "LOADGEN_BULK_SIZE",
        |size| flag("--bulk-size", size),
        |size| set("size", &format!("{size},1")),
    ),
    Variable::new("LOADGEN_CONCURRENCY", |of| flag("--concurrency", of), |of| set("concurrency", of)),
    Variable::new(
        "LOADGEN_TIMEOUT_S",
        |seconds| flag("--timeout-s", seconds),
        |seconds| flag("--timeout", &format!("{seconds}s")),
    ),
    Variable::new("CREATE_PERCENTAGE", |share| flag("--create-pct", share), |share| set("create_pct", share)),
    Variable::new("READ_PERCENTAGE", |share| flag("--read-pct", share), |share| set("read_pct", share)),
    Variable::new("UPDATE_PERCENTAGE", |share| flag("--update-pct", share), |share| set("update_pct", share)),
    Variable::new("DELETE_PERCENTAGE", |share| flag("--delete-pct", share), |share| set("delete_pct", share)),
    Variable::new(
        "LIGHT_READS",
        |kind| flag("--read-path", read_path(kind)),
        |kind| set("read", read_path(kind)),
    ),
    Variable::new("READ_PATH", |path| flag("--read-path", path), |path| set("read", path)),
    Variable::new("READ_TARGETS", |urls| flag("--read-targets", urls), nothing),
    Variable::new("LEADER_URL", |url| flag("--leader", url), nothing),
    Variable::new(
        "PRESEED_PER_NODE",
        |items| {
            flag("--preseed", items).map(|flag| format!("{flag} (in all: of three nodes, three times that)"))
        },
        |items| set("preseed", items),
    ),
    Variable::new("BENCH_SUITE", nothing, |suite| flag("--suite", suite)),
    Variable::new("STORAGE_PROFILE", nothing, |profile| flag("--profile", profile)),
    Variable::new("CONC_LIST", nothing, |list| {
        set("concurrency", &list.split_whitespace().collect::<Vec<_>>().join(","))
    }),
    Variable::new("SINGLE_NODE", nothing, nothing),
];

impl Variable {
    const fn new(
        name: &'static str,
        of_crud: fn(&str) -> Option<String>,
        of_cluster: fn(&str) -> Option<String>,
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

fn set(parameter: &str, value: &str) -> Option<String> {
    (!value.is_empty()).then(|| format!("--set {parameter}={value}"))
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
        advice.push(format!("write {}", flags.join(" ")));
    }
    if of_clusters {
        advice.push("`plimsoll cluster run` has nodes, profiles and suites".to_owned());
    }
    Some(format!("{}: not read: {}", names(&set), advice.join("; ")))
}

/// The flags of `plimsoll cluster run` for the variables that are set, where `has` says so of the parameter
/// of a spec.
fn cluster_flags(set: &[(&Variable, String)], has: impl Fn(&str) -> bool) -> String {
    let flags = set.iter().filter_map(|(variable, value)| (variable.of_cluster)(value));
    let is_known =
        |flag: &String| flag.strip_prefix("--set ").and_then(|set| set.split('=').next()).is_none_or(&has);
    flags.filter(is_known).collect::<Vec<_>>().join(" ")
}

/// The note that `plimsoll cluster run` reads none of the variables that are set, for a spec with these
/// parameters; `None` if none is.
pub(crate) fn unread_by_cluster(parameters: &[&str]) -> Option<String> {
    let set = set_ones();
    let flags = cluster_flags(&set, |name| parameters.contains(&name));
    (!set.is_empty()).then(|| match flags.is_empty() {
        true => format!("{}: not read: the spec says what is run", names(&set)),
        false => format!("{}: not read: write {flags}", names(&set)),
    })
}

/// The command that has the suite that the variables ask for; `None` if they ask for none.
pub(crate) fn suite_command() -> Option<String> {
    let set = set_ones();
    if !set.iter().any(|(variable, value)| variable.name == "BENCH_SUITE" && !value.is_empty()) {
        return None;
    }
    let flags = cluster_flags(&set, |_| true);
    Some(format!("plimsoll cluster run examples/cluster/lithair-node.yaml {flags}"))
}
