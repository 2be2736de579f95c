//! Tests that `docs/accuracy.md` is right: it lists every rule, and the tests that it names exist.

use std::path::Path;

/// A row of the table: the rule, and the test as file and function.
struct Row<'a> {
    rule: &'a str,
    file: &'a str,
    function: &'a str,
}

/// The rows of the table, of the form ``| R1 | `file` `function` | …``; a rule has as many as it has tests.
fn rows(text: &str) -> Vec<Row<'_>> {
    let lines = text.lines().filter(|line| line.starts_with("| R") && !line.starts_with("| Rule"));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let &[rule, test, figure] = &cells[..] else { panic!("three cells are expected: {line}") };
            assert!(!figure.is_empty(), "a figure, or why there is none: {line}");
            let names: Vec<&str> = test.split('`').skip(1).step_by(2).collect();
            match names[..] {
                [file, function] => Row { rule, file, function },
                _ => panic!("file and function are expected: {line}"),
            }
        })
        .collect()
}

#[test]
fn every_rule_is_listed_and_every_test_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| {
        let path = root.join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let text = read("docs/accuracy.md");
    let rows = rows(&text);
    for number in 1..=22 {
        let rule = format!("R{number}");
        assert!(rows.iter().any(|row| row.rule == rule), "{rule} is not listed");
    }
    for Row { rule, file, function } in &rows {
        let is_test = read(file).split("#[test]").skip(1).any(|part| {
            let head = part.split('{').next().unwrap_or_default();
            head.contains(&format!("fn {function}("))
        });
        assert!(is_test, "{rule}: there is no test `{function}` in {file}");
    }
    let files = ["sending", "counting", "statistics", "load", "instrument", "attribution"];
    for file in files.map(|name| format!("plimsoll/tests/truth/{name}.rs")) {
        for part in read(&file).split("#[test]\nfn ").skip(1) {
            let function = part.split('(').next().unwrap_or_default();
            let listed = rows.iter().any(|row| row.file == file && row.function == function);
            assert!(listed, "`{function}` in {file} is not listed");
        }
    }
}
