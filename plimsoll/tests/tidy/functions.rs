//! The length of functions.

use crate::sources::{Source, unit_tests_from};
use crate::tokens::{Token, tokens};

/// Lines of a function, from its `fn` to its closing brace. Most fit a screen; one that is longer than this
/// does several things.
const LINES_MAX: usize = 100;

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
struct Function<'a> {
    name: &'a str,
    line: usize,
    lines: usize,
}

/// The functions of a source, those within others included.
fn functions<'a>(found: &[Token<'a>]) -> Vec<Function<'a>> {
    let starts = (0..found.len()).filter(|at| found[*at].text == "fn");
    starts.filter_map(|at| function(&found[at..])).collect()
}

/// The function that `found` begins with. `None` for the type of a function, and for one without a body.
fn function<'a>(found: &[Token<'a>]) -> Option<Function<'a>> {
    let [keyword, name, rest @ ..] = found else { return None };
    if name.text == "(" {
        return None;
    }
    let (mut depth, mut is_body) = (0_usize, false);
    for token in rest {
        match token.text {
            ";" if depth == 0 => return None,
            "{" if depth == 0 => (depth, is_body) = (1, true),
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if is_body && depth == 0 {
            let lines = token.line - keyword.line + 1;
            return Some(Function { name: name.text, line: keyword.line, lines });
        }
    }
    None
}

/// Functions that are too long, tests aside.
pub(crate) fn complaints(source: &Source) -> Vec<String> {
    if source.is_outside_test() {
        return Vec::new();
    }
    let found = tokens(&source.text);
    let tests_from = unit_tests_from(&found);
    let long = functions(&found).into_iter().filter(|one| one.line < tests_from && one.lines > LINES_MAX);
    long.map(|Function { name, line, lines }| {
        format!("{}:{line}: `{name}` has {lines} lines, more than {LINES_MAX}", source.path)
    })
    .collect()
}

fn complaints_about(path: &str, text: &str) -> Vec<String> {
    complaints(&Source { path: path.to_owned(), text: text.to_owned() })
}

/// A function of this many lines.
fn of(name: &str, lines: usize) -> String {
    format!("fn {name}(a: [u8; 2]) -> Option<fn(u8)> {{{}}}\n", "\n".repeat(lines - 1))
}

#[test]
fn a_function_of_more_than_a_hundred_lines_is_complained_about() {
    let path = "crates/core/src/x.rs";
    let (at_most, over) = (of("short", LINES_MAX), of("long", LINES_MAX + 1));
    assert_eq!(LINES_MAX, 100);
    assert_eq!(complaints_about(path, &at_most), [""; 0]);
    let found = complaints_about(path, &format!("{at_most}{over}"));
    assert_eq!(found, [format!("{path}:101: `long` has 101 lines, more than 100")]);
    // Its neighbour is no part of it, and neither is what stands in a text.
    assert_eq!(complaints_about(path, &at_most.repeat(3)), [""; 0]);
    assert_eq!(complaints_about(path, &format!("const A: &str = r#\"{over}\"#;")), [""; 0]);
    // Attributes, a head of several lines and a brace in a text do not hide it.
    let head = "#[inline]\npub(crate) async fn long<T>(\n    a: T,\n) -> u8\nwhere\n    T: Into<u8>,\n{\n";
    let text = format!("impl A {{\n{head}\"}}\";{}}}\n}}", "\n".repeat(LINES_MAX));
    assert_eq!(complaints_about(path, &text).len(), 1);
    let within = format!("fn outer() {{\n{over}}}\n");
    assert_eq!(complaints_about(path, &within).len(), 2, "the one within, and the one around it");
}

#[test]
fn tests_and_what_has_no_body_may_be_long() {
    let over = of("long", LINES_MAX + 1);
    assert_eq!(complaints_about("crates/core/tests/x.rs", &over), [""; 0]);
    assert_eq!(
        complaints_about("crates/core/src/x.rs", &format!("#[cfg(test)]\nmod tests {{\n{over}}}")),
        [""; 0]
    );
    let text =
        format!("trait A {{ fn a(&self); }}\ntype F = fn(u8);\nstruct B {{{}}}", "\n".repeat(LINES_MAX));
    assert_eq!(complaints_about("crates/core/src/x.rs", &text), [""; 0]);
}
