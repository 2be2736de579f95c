//! The rules of `deny.toml` about other people's crates, held without `cargo deny`: that takes minutes to
//! build, and these need nothing but the metadata that cargo has. Other checks of `cargo deny` (advisories,
//! texts of licences) are not repeated here.

use std::collections::BTreeSet;

use cargo_metadata::{Metadata, Package, PackageId};
use spdx::{Expression, Licensee, ParseMode};
use toml_edit::{DocumentMut, Item, Value};

/// Where crates may come from besides this repository.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// A crate that is banned, but for those that may need it.
#[derive(Debug)]
struct Ban {
    of: String,
    wrappers: Vec<String>,
}

/// Rules of `deny.toml`, as far as they are checked here.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The platforms whose dependencies are judged.
    pub(crate) platforms: Vec<String>,
    allowed: Vec<Licensee>,
    bans: Vec<Ban>,
}

fn texts(item: Option<&Item>) -> Vec<String> {
    let values = item.and_then(Item::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Rules {
    /// Reads the file.
    pub(crate) fn read(text: &str) -> Self {
        let file: DocumentMut = text.parse().expect("deny.toml is TOML");
        let is = |table: &str, key: &str, value: &str| {
            assert_eq!(file[table][key].as_str(), Some(value), "{table}.{key} of deny.toml");
        };
        // These are held below as they are.
        is("bans", "wildcards", "deny");
        is("sources", "unknown-registry", "deny");
        is("sources", "unknown-git", "deny");
        assert_eq!(file["licenses"]["private"]["ignore"].as_bool(), Some(true), "crates of this repository");
        let allowed = texts(file["licenses"].get("allow"));
        let allowed = allowed.iter().map(|name| Licensee::parse(name).expect("a licence by its SPDX name"));
        let bans = file["bans"]["deny"].as_array().into_iter().flatten().map(|ban| {
            let ban = ban.as_inline_table().expect("a ban is a table");
            let wrappers = ban.get("wrappers").and_then(Value::as_array).into_iter().flatten();
            Ban {
                of: ban.get("crate").and_then(Value::as_str).expect("a ban names its crate").to_owned(),
                wrappers: wrappers.filter_map(Value::as_str).map(str::to_owned).collect(),
            }
        });
        Self {
            platforms: texts(file["graph"].get("targets")),
            allowed: allowed.collect(),
            bans: bans.collect(),
        }
    }

    fn allows(&self, license: &str) -> bool {
        let expression = Expression::parse_mode(license, ParseMode::LAX);
        expression.is_ok_and(|expression| {
            expression.evaluate(|asked| self.allowed.iter().any(|licensee| licensee.satisfies(asked)))
        })
    }
}

/// Everything that a graph of dependencies has against the rules.
pub(crate) fn complaints(rules: &Rules, metadata: &Metadata) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().expect("the metadata are resolved");
    let own = |id: &PackageId| metadata.workspace_members.contains(id);
    let mut complaints = BTreeSet::new();
    for node in &resolve.nodes {
        let package = &metadata[&node.id];
        complaints.extend(of_package(rules, package, own(&node.id)));
        for needed in node.deps.iter().map(|dependency| &metadata[&dependency.pkg]) {
            let banned = rules.bans.iter().find(|ban| ban.of == needed.name.as_str());
            if banned.is_some_and(|ban| !ban.wrappers.contains(&package.name.to_string())) {
                complaints.insert(format!("`{}` needs `{}`, which is banned", package.name, needed.name));
            }
        }
    }
    complaints
}

fn of_package(rules: &Rules, package: &Package, is_own: bool) -> Vec<String> {
    let name = &package.name;
    if is_own {
        let any = package
            .dependencies
            .iter()
            .filter(|needed| needed.path.is_none() && needed.req.to_string() == "*");
        return any.map(|needed| format!("`{name}` takes any version of `{}`", needed.name)).collect();
    }
    let mut complaints = Vec::new();
    match &package.license {
        Some(license) if rules.allows(license) => {}
        Some(license) => complaints.push(format!("`{name}` has the licence {license}, which is not allowed")),
        None => complaints.push(format!("`{name}` names no licence")),
    }
    let source = package.source.as_ref().map_or("a folder", |source| source.repr.as_str());
    if source != REGISTRY {
        complaints.push(format!("`{name}` comes from {source}"));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = r#"
[graph]
targets = ["x86_64-unknown-linux-gnu"]
[licenses]
allow = ["MIT", "Apache-2.0 WITH LLVM-exception"]
[licenses.private]
ignore = true
[bans]
wildcards = "deny"
deny = [{ crate = "tokio", reason = "one executor", wrappers = ["hyper"] }]
[sources]
unknown-registry = "deny"
unknown-git = "deny"
"#;

    #[test]
    fn licences_are_expressions() {
        let rules = Rules::read(DENY);
        for allowed in
            ["MIT", "MIT OR GPL-3.0-only", "MIT/Apache-2.0", "Apache-2.0 WITH LLVM-exception", "(MIT)"]
        {
            assert!(rules.allows(allowed), "{allowed}");
        }
        for refused in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "Apache-2.0", "", "my own"] {
            assert!(!rules.allows(refused), "{refused}");
        }
    }

    /// The crate `bad` needs `tokio`, comes from a repository and has a licence that is not allowed.
    #[test]
    fn what_is_against_the_rules_is_complained_about() {
        let package = |name: &str, license: &str, source: Option<&str>| {
            serde_json::json!({
                "name": name, "version": "1.0.0", "id": name, "license": license, "source": source,
                "dependencies": [], "targets": [], "features": {}, "manifest_path": "/Cargo.toml",
            })
        };
        let node = |id: &str, needs: &[&str]| {
            let deps: Vec<_> =
                needs.iter().map(|id| serde_json::json!({"name": id, "pkg": id, "dep_kinds": []})).collect();
            serde_json::json!({"id": id, "deps": deps, "dependencies": needs, "features": []})
        };
        let metadata = serde_json::json!({
            "packages": [
                package("own", "none", None),
                package("hyper", "MIT", Some(REGISTRY)),
                package("tokio", "MIT", Some(REGISTRY)),
                package("bad", "AGPL-3.0-only", Some("git+https://example.test/bad")),
            ],
            "workspace_members": ["own"], "workspace_root": "/", "target_directory": "/target", "version": 1,
            "resolve": {"root": null, "nodes": [
                node("own", &["hyper", "bad"]), node("hyper", &["tokio"]),
                node("bad", &["tokio"]), node("tokio", &[]),
            ]},
        });
        let metadata: Metadata = serde_json::from_value(metadata).expect("it is what cargo prints");
        let complaints: Vec<String> = complaints(&Rules::read(DENY), &metadata).into_iter().collect();
        assert_eq!(
            complaints,
            [
                "`bad` comes from git+https://example.test/bad",
                "`bad` has the licence AGPL-3.0-only, which is not allowed",
                "`bad` needs `tokio`, which is banned",
            ]
        );
    }
}
