//! No crate of the core names a feature of an extension: not by its crate, its keys, its commands, its
//! schemes or its classes of errors.

use plimsoll_app::Extension;

use crate::sources::Source;

/// Files in which the word is one of another format: a field of HAR, and a word of Gatling's.
const OF_OTHERS: &[&str] =
    &["crates/import/src/gatling/steps.rs", "crates/import/src/har.rs", "crates/record/src/recording.rs"];

/// Returns the texts by which an extension is named.
fn names(extension: &Extension) -> Vec<String> {
    let Extension { name, plan, loads, servers, .. } = extension;
    let mut names = vec![format!("plimsoll_{name}"), format!("plimsoll-{name}")];
    let keys = plan.bodies.iter().map(|key| key.key()).chain(plan.steps.iter().map(|key| key.key()));
    names.extend(keys.map(|key| format!("\"{key}\"")));
    names.extend(loads.iter().map(|load| format!("plimsoll {}", load.name())));
    names.extend(servers.iter().map(|server| format!("plimsoll target {}", server.name())));
    let rows = plan.protocols.iter().flat_map(|protocol| protocol.rows);
    names.extend(rows.flat_map(|row| [format!("{}://", row.scheme), format!("\"{}\"", row.scheme)]));
    names.extend(plan.errors.iter().map(|row| format!("\"{}\"", row.name)));
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns `true` if a file belongs to the core, and is no test.
fn is_core(path: &str) -> bool {
    let is_test = path.split('/').any(|part| part == "tests" || part == "tests.rs");
    path.starts_with("crates/") && path.ends_with(".rs") && !is_test
}

/// Complains about files of the core that name an extension, and about files that are excused and name none.
pub(crate) fn complaints(extensions: &[Extension], sources: &[Source], left: &[&str]) -> Vec<String> {
    let names: Vec<String> = extensions.iter().flat_map(names).collect();
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| is_core(&source.path)) {
        let text = source.text.split("#[cfg(test)]").next().unwrap_or_default();
        let named = names.iter().find(|name| text.contains(name.as_str()));
        match (named, left.contains(&source.path.as_str())) {
            (Some(name), false) => {
                complaints.push(format!("{} names `{name}`, which is an extension's", source.path));
            }
            (None, true) => complaints.push(format!("{} is excused, and names nothing", source.path)),
            _ => {}
        }
    }
    complaints
}

#[test]
fn the_core_names_no_extension() {
    let files = crate::sources::read_all(&crate::root());
    assert!(plimsoll::EXTENSIONS.len() > 1 && files.len() > 30);
    crate::assert_tidy(complaints(plimsoll::EXTENSIONS, &files, OF_OTHERS));
}

#[test]
fn names_of_extensions_are_complained_about() {
    let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    let files = [
        source("crates/a/src/b.rs", "match key { \"cache\" => 1 }"),
        source("crates/a/src/c.rs", "// see `plimsoll cache`"),
        source("crates/a/src/d.rs", "const URL: &str = \"redis://h\";"),
        source("crates/a/src/e.rs", "a cache of pages"),
        source("crates/a/src/tests.rs", "\"cache\""),
        source("crates/a/tests/f.rs", "\"cache\""),
        source("ext/cache/src/lib.rs", "\"cache\""),
        source("crates/a/src/g.rs", "nothing"),
        source("crates/a/src/h.rs", "fn h() {}\n#[cfg(test)]\nmod tests { fn t() { \"cache\"; } }"),
    ];
    let said = complaints(plimsoll::EXTENSIONS, &files, &["crates/a/src/c.rs", "crates/a/src/g.rs"]);
    let said: Vec<&str> = said.iter().map(|said| said.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(said, ["crates/a/src/b.rs", "crates/a/src/d.rs", "crates/a/src/g.rs"]);
}
