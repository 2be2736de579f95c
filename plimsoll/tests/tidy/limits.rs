//! `docs/limits.md`: the constants and tests that its tables name exist, and the numbers are those of the
//! constants.

use std::path::{Path, PathBuf};

/// A row of a table: the resource, its bound, its constant, and the test that shows it.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    what: &'a str,
    bound: &'a str,
    constant: &'a str,
    test: &'a str,
}

/// The rows of all tables, but for their heads.
fn rows(text: &str) -> Vec<Row<'_>> {
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

/// Returns the complaints about all tables of a page, which have more than `fewest` rows; `has_bounds`: also
/// about numbers that are not those of the constants.
pub(crate) fn of_page(root: &Path, page: &str, fewest: usize, has_bounds: bool) -> Vec<String> {
    let text = std::fs::read_to_string(root.join(page)).expect("the page is there");
    let rows = rows(&text);
    assert!(rows.len() > fewest, "only {} rows were found in {page}", rows.len());
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let of_crate = |of: &str| sources(root, of);
    let judge = |row: &Row<'_>| match has_bounds {
        true => complaints(row, read, of_crate),
        false => existence(row, read, of_crate),
    };
    rows.iter().flat_map(judge).collect()
}

/// Returns the texts between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns the complaints about a row of bounds; `read` gives the text of a file, `sources` those of a crate.
fn complaints(
    row: &Row<'_>,
    read: impl Fn(&str) -> Option<String>,
    sources: impl Fn(&str) -> Vec<String>,
) -> Vec<String> {
    let mut found = existence(row, read, &sources);
    // A bound in words is that of other rows, or of a flag.
    if !row.bound.contains(|c: char| c.is_ascii_digit()) {
        return found;
    }
    for constant in quoted(row.constant) {
        let Some((of, name)) = constant.split_once("::") else { continue };
        // Several modules may have a constant of this name.
        let all: Vec<Number> = sources(of).iter().flat_map(|text| numbers(text, name)).collect();
        if !all.is_empty() && !all.iter().any(|number| number.is_in(row.bound)) {
            let forms: Vec<String> = all.iter().flat_map(Number::forms).collect();
            found.push(format!("{}: `{constant}` is {}, which is not there", row.what, forms.join(" or ")));
        }
    }
    found
}

/// Returns the complaints about a row whose constants or tests do not exist.
fn existence(
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

/// The value of a constant.
#[derive(Debug, PartialEq, Eq)]
enum Number {
    Count(u64),
    Millis(u64),
}

impl Number {
    /// The ways to write it in a table.
    fn forms(&self) -> Vec<String> {
        let grouped = |number: u64| {
            let digits = number.to_string();
            let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
            groups.collect::<Vec<_>>().join(",")
        };
        match self {
            Self::Count(number) => {
                let units = [(10, "KiB"), (20, "MiB"), (30, "GiB")].into_iter();
                let units = units.filter(|(shift, _)| number >> shift << shift == *number && *number > 0);
                let in_units = units.map(|(shift, unit)| format!("{} {unit}", grouped(number >> shift)));
                let words =
                    ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
                let word = words.get(*number as usize).map(|word| (*word).to_owned());
                in_units.chain([grouped(*number)]).chain(word).collect()
            }
            Self::Millis(number) if number % 1_000 == 0 => vec![format!("{} s", grouped(number / 1_000))],
            Self::Millis(number) => vec![format!("{number} ms")],
        }
    }

    /// Returns `true` if a cell has it.
    fn is_in(&self, cell: &str) -> bool {
        let is_edge = |edge: Option<char>| edge.is_none_or(|c| !c.is_alphanumeric() && c != ',');
        self.forms().iter().any(|form| {
            cell.match_indices(form.as_str()).any(|(at, _)| {
                let after = &cell[at + form.len()..];
                // A comma may end a clause.
                let after = after.strip_prefix(", ").map_or(after, |_| "");
                is_edge(cell[..at].chars().next_back()) && is_edge(after.chars().next())
            })
        })
    }
}

/// The values that constants of this name have in a source, as far as they are numbers that are written out.
fn numbers(text: &str, name: &str) -> Vec<Number> {
    let declaration = format!("const {name}: ");
    let values = text.split(&declaration).skip(1).filter_map(|rest| {
        let (_, value) = rest.split_once(';')?.0.split_once(" = ")?;
        let number = |text: &str| text.trim().replace('_', "").parse::<u64>().ok();
        let product = |text: &str| text.split('*').map(number).product::<Option<u64>>();
        if let Some((kind, rest)) = value.split_once("::from_") {
            let (unit, argument) = rest.strip_suffix(')')?.split_once('(')?;
            let of_time = matches!(kind, "Nanos" | "Duration");
            return match (of_time, unit) {
                (true, "secs") => Some(Number::Millis(product(argument)? * 1_000)),
                (true, "millis") => Some(Number::Millis(product(argument)?)),
                _ => None,
            };
        }
        match value.split_once("<<") {
            Some((base, shift)) => Some(Number::Count(number(base)? << number(shift)?)),
            None => product(value).map(Number::Count),
        }
    });
    values.collect()
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

/// The sources of a crate or an extension, tests aside.
fn sources(root: &Path, of: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = ["crates", "ext"].map(|folder| root.join(folder).join(of).join("src")).to_vec();
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
                | a | 50 bytes | `wire::MOST` | `x.rs` `holds` |\n\
                | a | 64 MiB, 30 s, 10,000 | `wire::BYTES`, `wire::TIME`, `wire::MANY` | `x.rs` `holds` |\n\
                | a | 6 MiB, 3 s, 1,000 | `wire::BYTES`, `wire::TIME`, `wire::MANY` | `x.rs` `holds` |\n\
                | b | none: it is his | – | – |\n\
                | c | 6 | `wire::LESS` | `x.rs` `absent` |\n\
                | d | 7 | `wire::most` | – |\n\
                | e | 8 | `wire::Most` | `x.rs` `everywhere` |\n";
    let rows = rows(text);
    assert_eq!(rows.len(), 8);
    let file = "on_every_backend! {\n    everywhere,\n}\n#[test]\nfn holds() {}\nfn absent() {}\nfn everywhere<O>() {}";
    let read = |path: &str| (path == "x.rs").then(|| file.to_owned());
    let sources = |of: &str| {
        assert_eq!(of, "wire");
        let text = "const MOST: u8 = 5;\nfn most() {}\nstruct Most {}\nconst BYTES: usize = 64 << 20;\n\
                    const TIME: Nanos = Nanos::from_secs(30);\npub const MANY: u64 = 10_000;";
        vec![text.to_owned()]
    };
    let all: Vec<_> = rows.iter().flat_map(|row| complaints(row, read, sources)).collect();
    assert_eq!(
        all,
        [
            "a: `wire::MOST` is 5 or five, which is not there",
            "a: `wire::BYTES` is 65,536 KiB or 64 MiB or 67,108,864, which is not there",
            "a: `wire::TIME` is 30 s, which is not there",
            "a: `wire::MANY` is 10,000, which is not there",
            "c: there is no `wire::LESS`",
            "c: there is no test x.rs absent",
            "d: no test shows the bound"
        ]
    );
}
