//! The levels of optimization of single packages in `Cargo.toml`.

use std::collections::BTreeMap;

use toml_edit::{DocumentMut, Item};

/// Crates that requests pass through: they are optimized in every profile, as extensions are.
const LOAD_PATH: [&str; 17] = [
    "core",
    "driver",
    "engine",
    "histogram",
    "ic",
    "metrics",
    "replica",
    "scenario",
    "schedule",
    "script",
    "statistics",
    "synth",
    "system",
    "targets",
    "wire",
    "workloads",
    "xml",
];

/// Returns the level of each package that a profile gives one to.
fn levels(manifest: &DocumentMut, profile: &str) -> BTreeMap<String, i64> {
    let packages = manifest.get("profile").and_then(|profiles| profiles.get(profile));
    let packages = packages.and_then(|profile| profile.get("package")).and_then(Item::as_table_like);
    let level = |(name, package): (&str, &Item)| {
        package.get("opt-level").and_then(Item::as_integer).map(|level| (name.to_owned(), level))
    };
    packages.into_iter().flat_map(|packages| packages.iter()).filter_map(level).collect()
}

/// Returns the complaints about a manifest; `lock` is the text of `Cargo.lock`, and these are the extensions.
pub(crate) fn complaints(manifest: &str, lock: &str, extensions: &[&str]) -> Vec<String> {
    let manifest: DocumentMut = manifest.parse().expect("a manifest");
    let [dev, release, dist] = ["dev", "release", "dist"].map(|profile| levels(&manifest, profile));
    let mut found = Vec::new();
    let cold = |levels: &BTreeMap<String, i64>| -> Vec<String> {
        levels.iter().filter(|(_, level)| **level == 0).map(|(name, _)| name.clone()).collect()
    };
    if cold(&release).is_empty() {
        found.push("no package is without optimization in `release`".to_owned());
    }
    if cold(&dev) != cold(&release) {
        found.push("`dev` and `release` leave other packages without optimization".to_owned());
    }
    for name in release.keys() {
        if dist.get(name) != Some(&3) {
            found.push(format!("`dist` takes the level of {name} from `release`: give it 3 there"));
        }
        if !lock.contains(&format!("\nname = \"{name}\"\n")) {
            found.push(format!("{name} has a level and is no dependency"));
        }
        if name
            .strip_prefix("plimsoll-")
            .is_some_and(|name| LOAD_PATH.contains(&name) || extensions.contains(&name))
        {
            found.push(format!("{name} is on the path of the load, and is not optimized in `release`"));
        }
    }
    found
}

#[test]
fn levels_are_read_and_judged() {
    let lock = "\nname = \"axum\"\n\nname = \"plimsoll-wire\"\n\nname = \"zstd-sys\"\n";
    let manifest = |dev: &str, release: &str, dist: &str| {
        format!(
            "[profile.dev.package]\n{dev}\n[profile.release.package]\n{release}\n[profile.dist.package]\n{dist}\n"
        )
    };
    let good = manifest(
        "axum.opt-level = 0",
        "axum.opt-level = 0\nzstd-sys.opt-level = 1",
        "axum.opt-level = 3\nzstd-sys.opt-level = 3",
    );
    assert_eq!(complaints(&good, lock, &[]), Vec::<String>::new());
    let extension =
        manifest("plimsoll-a.opt-level = 0", "plimsoll-a.opt-level = 0", "plimsoll-a.opt-level = 3");
    let lock_of_it = "\nname = \"plimsoll-a\"\n";
    assert_eq!(complaints(&extension, lock_of_it, &[]), Vec::<String>::new());
    let said = complaints(&extension, lock_of_it, &["a"]);
    assert_eq!(said, ["plimsoll-a is on the path of the load, and is not optimized in `release`"]);
    let bad = manifest("plimsoll-wire.opt-level = 0", "axun.opt-level = 0\nplimsoll-wire.opt-level = 1", "");
    assert_eq!(
        complaints(&bad, lock, &[]),
        [
            "`dev` and `release` leave other packages without optimization",
            "`dist` takes the level of axun from `release`: give it 3 there",
            "axun has a level and is no dependency",
            "`dist` takes the level of plimsoll-wire from `release`: give it 3 there",
            "plimsoll-wire is on the path of the load, and is not optimized in `release`",
        ]
    );
    assert_eq!(complaints("[profile.dev]\n", lock, &[]), ["no package is without optimization in `release`"]);
}
