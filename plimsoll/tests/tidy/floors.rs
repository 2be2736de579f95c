//! Rules about the modules of the command: floors, of which each uses itself and those below, and no circles.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{Source, unit_tests_from};
use crate::tokens::{Token, tokens};

const FOLDER: &str = "crates/app/src/";
/// Floors from the ground up.
const FLOORS: &[&str] = &["base", "args", "session", "experiment", "workload", "command"];

/// Modules by the names of their files, `base::exit`, and the modules that each names outside of its unit
/// tests.
pub(crate) type Uses = BTreeMap<String, BTreeSet<String>>;

/// Reads which module of the command names which.
pub(crate) fn uses(sources: &[Source]) -> Uses {
    let files: Vec<(String, &Source)> =
        sources.iter().filter_map(|file| Some((module(file)?, file))).collect();
    let modules: BTreeSet<&str> = files.iter().map(|(module, _)| module.as_str()).collect();
    let of_file = |(module, file): &(String, &Source)| {
        let found = tokens(&file.text);
        let until = unit_tests_from(&found);
        let code: Vec<Token<'_>> = found.into_iter().filter(|token| token.line < until).collect();
        let named = paths(&code, |name| modules.contains(format!("{module}::{name}").as_str()))
            .into_iter()
            .filter_map(|path| resolved(module, &path, &modules));
        (module.clone(), named.filter(|other| other != module).collect())
    };
    files.iter().map(of_file).collect()
}

/// The path of a file's module; `None` for the root, tests, and files of other crates.
fn module(file: &Source) -> Option<String> {
    let path = file.path.strip_prefix(FOLDER)?.strip_suffix(".rs")?;
    let is_test = path == "printed_commands" || path.ends_with("/tests");
    (path != "lib" && !is_test).then(|| path.replace('/', "::"))
}

/// Paths that begin with `crate`, `super`, `self` or a child module, groups flattened.
fn paths(code: &[Token<'_>], is_child: impl Fn(&str) -> bool) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, token) in code.iter().enumerate() {
        let begins = at == 0 || code[at - 1].text != "::";
        let goes_on = code.get(at + 1).is_some_and(|next| next.text == "::");
        if begins && goes_on && (["crate", "super", "self"].contains(&token.text) || is_child(token.text)) {
            tree(code, at, &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Reads a tree of paths from a token on, and returns the index behind it.
fn tree(code: &[Token<'_>], from: usize, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let depth = before.len();
    let mut at = from;
    loop {
        match code.get(at).map(|token| token.text) {
            Some("{") => {
                at += 1;
                while code.get(at).is_some_and(|token| token.text != "}") {
                    at = tree(code, at, before, found).max(at + 1);
                }
                at += 1;
                break;
            }
            Some(name) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                before.push(name.to_owned());
            }
            _ => break,
        }
        at += 1;
        if code.get(at).is_none_or(|token| token.text != "::") {
            found.push(before.clone());
            break;
        }
        at += 1;
    }
    before.truncate(depth);
    at
}

/// The module that a path of `module` leads to: the longest part of it that is one.
fn resolved(module: &str, path: &[String], modules: &BTreeSet<&str>) -> Option<String> {
    let mut full: Vec<&str> = module.split("::").collect();
    for (at, part) in path.iter().enumerate() {
        match part.as_str() {
            "crate" if at == 0 => full.clear(),
            "self" => {}
            "super" => drop(full.pop()),
            name => full.push(name),
        }
    }
    (1..=full.len()).rev().map(|parts| full[..parts].join("::")).find(|name| modules.contains(name.as_str()))
}

/// Names of a higher floor, and circles.
pub(crate) fn complaints(uses: &Uses) -> Vec<String> {
    let floor = |module: &str| {
        let name = module.split("::").next().unwrap_or_default();
        FLOORS.iter().position(|floor| *floor == name)
    };
    let mut complaints = Vec::new();
    for (module, named) in uses {
        if floor(module).is_none() {
            complaints.push(format!("{module} is on no floor: {}", FLOORS.join(", ")));
        }
        for other in named.iter().filter(|other| floor(other) > floor(module)) {
            complaints.push(format!("{module} names {other}, which is on a floor above"));
        }
    }
    // A module that reaches itself is in a circle.
    for module in uses.keys().filter(|module| reach(uses, module).contains(*module)) {
        let next: Vec<&str> = uses[module].iter().map(String::as_str).collect();
        let back = next.into_iter().filter(|next| *next == module || reach(uses, next).contains(module));
        complaints.push(format!("{module} is in a circle, by {}", back.collect::<Vec<_>>().join(", ")));
    }
    complaints
}

/// Everything that a module leads to.
fn reach(uses: &Uses, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for next in uses.get(module).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("{FOLDER}{path}"),
            text: (*text).to_owned(),
        };
        complaints(&uses(&files.iter().map(source).collect::<Vec<_>>()))
    }

    #[test]
    fn floors_above_and_circles_are_complained_about() {
        let up = of(&[("base/a.rs", "use crate::{args::b::{self, C}, x};"), ("args/b.rs", "")]);
        assert_eq!(up, ["base::a names args::b, which is on a floor above"]);
        let circle =
            of(&[("base/a.rs", "fn f() { crate::base::b::g() }"), ("base/b.rs", "use super::a::{f};")]);
        assert_eq!(circle, ["base::a is in a circle, by base::b", "base::b is in a circle, by base::a"]);
        assert_eq!(of(&[("else.rs", "")]).len(), 1);
    }

    #[test]
    fn what_goes_down_is_not_complained_about() {
        let test = "#[cfg(test)]\nmod tests { use crate::command::c; }";
        let files = [
            ("lib.rs", "use crate::command::c;"),
            ("command/c.rs", "use crate::args::b::{self, C}; // crate::command::c"),
            ("command/d.rs", "use super::c::{x, y};"),
            ("args/b.rs", test),
        ];
        assert_eq!(of(&files), [""; 0]);
    }
}
