//! `docs/limits.md`: the constants and tests that its tables name exist.

use std::path::{Path, PathBuf};

/// A row of a table: the resource, its bound, its constant, and the test that shows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    what: &'a str,
    bound: &'a str,
    constant: &'a str,
    test: &'a str,
}

/// The rows of all tables, but for their heads.
pub(crate) fn rows(text: &str) -> Vec<Row<'_>> {
    let lines = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| What |"));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let &[what, bound, constant, test] = &cells[..] else {
                panic!("four cells are expected: {line}")
            };
            Row { what, bound, constant, test }
        })
        .collect()
}

/// Returns the texts between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns the complaints about a row; `read` gives the text of a file, `sources` those of a crate.
pub(crate) fn complaints(
    row: &Row<'_>,
    read: impl Fn(&str) -> Option<String>,
    sources: impl Fn(&str) -> Vec<String>,
) -> Vec<String> {
    let mut found = Vec::new();
    for constant in quoted(row.constant) {
        let is_there = constant.split_once("::").is_some_and(|(of, name)| {
            sources(of).iter().any(|text| {
                ["const ", "struct ", "enum ", "fn "].iter().any(|kind| {
                    let ends = [":", " ", "(", "<"].map(|end| format!("{kind}{name}{end}"));
                    ends.iter().any(|wanted| text.contains(wanted.as_str()))
                })
            })
        });
        if !is_there {
            found.push(format!("{}: there is no `{constant}`", row.what));
        }
    }
    let names = quoted(row.test);
    // Rows without a bound have no test, and say so.
    if names.is_empty() && !row.bound.contains("none") {
        found.push(format!("{}: no test shows the bound", row.what));
    }
    for pair in names.chunks(2) {
        let is_there = match pair {
            [file, function] => read(file).is_some_and(|text| is_test(&text, function)),
            _ => false,
        };
        if !is_there {
            found.push(format!("{}: there is no test {}", row.what, pair.join(" ")));
        }
    }
    found
}

/// Returns `true` if a file has a test of this name, by itself or on each backend.
fn is_test(text: &str, function: &str) -> bool {
    let alone = text.split("#[test]").skip(1).any(|part| {
        let head = part.split('{').next().unwrap_or_default();
        head.contains(&format!("fn {function}("))
    });
    let listed = text.split("on_every_backend! {").skip(1).any(|part| {
        let names = part.split('}').next().unwrap_or_default();
        names.split(',').any(|name| name.trim() == function)
    });
    let written = ["<", "("].iter().any(|end| text.contains(&format!("fn {function}{end}")));
    alone || listed && written
}

/// The sources of a crate, tests aside.
pub(crate) fn sources(root: &Path, of: &str) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![root.join("crates").join(of).join("src")]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<PathBuf>>() {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(std::fs::read_to_string(&path).expect("a source that can be read"));
            }
        }
    }
    found
}

#[test]
fn rows_are_read_and_judged() {
    let text = "| What | Bound | Constant | Test |\n|---|---|---|---|\n\
                | a | 5 bytes | `wire::MOST` | `x.rs` `holds` |\n\
                | b | none: it is his | – | – |\n\
                | c | 6 | `wire::LESS` | `x.rs` `absent` |\n\
                | d | 7 | `wire::most` | – |\n\
                | e | 8 | `wire::Most` | `x.rs` `everywhere` |\n";
    let rows = rows(text);
    assert_eq!(rows.len(), 5);
    let file = "on_every_backend! {\n    everywhere,\n}\n#[test]\nfn holds() {}\nfn absent() {}\nfn everywhere<O>() {}";
    let read = |path: &str| (path == "x.rs").then(|| file.to_owned());
    let sources = |of: &str| {
        assert_eq!(of, "wire");
        vec!["const MOST: u8 = 5;\nfn most() {}\nstruct Most {}".to_owned()]
    };
    let all: Vec<_> = rows.iter().flat_map(|row| complaints(row, read, sources)).collect();
    assert_eq!(
        all,
        ["c: there is no `wire::LESS`", "c: there is no test x.rs absent", "d: no test shows the bound"]
    );
}
