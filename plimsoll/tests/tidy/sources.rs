//! Rules about source files.

use std::path::Path;

use crate::tokens::{Token, tokens};

/// Lines of a file. Files are a few hundred; this is where a reader is lost for certain.
const LINES_MAX: usize = 1_200;
/// Characters of a line: the width of `rustfmt.toml`, which does not break comments and strings.
const COLUMNS_MAX: usize = 110;
/// Names that say nothing about the contents.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];

/// Files that may contain `unsafe`: the driver, the calls of the system, one file of scripts with the signal
/// that reaches into a call, and one of the benchmarks that asks for a child's CPU time.
const UNSAFE: &[&str] =
    &["crates/driver/", "crates/system/", "crates/script/src/alarm.rs", "bench/src/child.rs"];
/// Crates that contain one of these files, so that their root cannot forbid it.
const UNSAFE_CRATES: &[&str] = &["crates/driver/", "crates/system/", "crates/script/", "bench/"];

/// A rule: a sequence of tokens that is banned outside of some places, and why.
struct Ban {
    tokens: &'static [&'static str],
    /// Prefixes of the paths where it is allowed.
    allowed: &'static [&'static str],
    why: &'static str,
}

/// Hostile servers attack the program as a whole: they are carried out on real sockets, with a limit of time.
/// The parsing of other people's programs has one, too.
const DRIVER: &[&str] = &[
    "crates/driver/",
    "crates/system/",
    "crates/import/src/syntax.rs",
    "crates/testkit/src/hostile/",
    "bench/",
];
/// The fault proxy blocks on both sides of a connection: a slow side has to hold up the sender, which a
/// backend that reads all input cannot.
const SOCKETS: &[&str] = &[
    "crates/driver/",
    "crates/system/",
    "crates/cluster/src/proxy",
    "crates/testkit/src/hostile/",
    "crates/testkit/src/ports.rs",
    "bench/",
];
const APP: &[&str] = &["crates/app/", "bench/"];
/// The seeds of simulations are asked for from outside of a test, whether a test may be skipped, where exit
/// codes are noted, and where the lock of the machine is.
const ENVIRONMENT: &[&str] = &[
    "crates/app/",
    "bench/",
    "crates/testkit/src/machine.rs",
    "crates/testkit/src/program.rs",
    "crates/testkit/src/seeds.rs",
    "crates/testkit/src/skip.rs",
    "crates/testkit/src/verdict.rs",
];
/// Where text is printed without a look at it: tests and benchmarks.
const PRINTS: &[&str] = &["plimsoll/tests/", "bench/"];
/// Where stdout and stderr are written to: one module, in which text of others is made harmless, and the one
/// that draws the screen cell by cell.
const STREAMS: &[&str] = &[
    "crates/app/src/base/streams.rs",
    "crates/app/src/base/terminal.rs",
    "plimsoll/tests/",
    "crates/testkit/src/skip.rs",
    "bench/",
];
const NEVER: &[&str] = &[];
/// Where a foreign server runs within a test or to be measured, the node of the reference cluster, the server
/// of the web UI, and the recording proxy.
const ASYNC: &[&str] = &[
    "plimsoll/tests/",
    "bench/examples/",
    "bench/src/relay.rs",
    "crates/replica/",
    "crates/web/",
    "crates/fleet/",
    "crates/record/",
];

/// Modules of the standard library, checked with their `use` trees, see [`names_path`]; where they are
/// allowed, and whether unit tests may name them (a temporary folder is in the environment).
const PATH_BANS: &[(&str, &str, &[&str], bool, &str)] = &[
    (
        "std",
        "net",
        SOCKETS,
        false,
        "only the driver and `system` touch sockets; plain addresses are in `core::net`",
    ),
    ("std", "env", ENVIRONMENT, true, "only the command reads its environment"),
];

const BANS: &[Ban] = &[
    Ban { tokens: &["Instant", "::", "now"], allowed: DRIVER, why: "time is an argument" },
    Ban { tokens: &["SystemTime"], allowed: DRIVER, why: "time is an argument" },
    Ban { tokens: &["println", "!"], allowed: PRINTS, why: "write by `streams` of the command" },
    Ban { tokens: &["eprintln", "!"], allowed: PRINTS, why: "write by `streams` of the command" },
    Ban { tokens: &["print", "!"], allowed: PRINTS, why: "write by `streams` of the command" },
    Ban { tokens: &["eprint", "!"], allowed: PRINTS, why: "write by `streams` of the command" },
    Ban { tokens: &["process", "::", "exit"], allowed: APP, why: "return an error; only the command exits" },
    Ban {
        tokens: &["env", "::", "var"],
        allowed: ENVIRONMENT,
        why: "only the command reads its environment",
    },
    Ban { tokens: &["thread", "::", "sleep"], allowed: DRIVER, why: "wait for an event, not for a time" },
    Ban { tokens: &["tokio"], allowed: ASYNC, why: "the hot loop is the only executor" },
    Ban { tokens: &["dbg", "!"], allowed: NEVER, why: "left over" },
    Ban { tokens: &["todo", "!"], allowed: NEVER, why: "left over" },
    Ban { tokens: &["unimplemented", "!"], allowed: NEVER, why: "left over" },
];

/// One file of the repository.
#[derive(Debug)]
pub(crate) struct Source {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Returns `true` for the root of a library or program. A test or a benchmark is none.
    pub(crate) fn is_crate_root(&self) -> bool {
        self.path.ends_with("/src/lib.rs") || self.path.ends_with("/src/main.rs")
    }

    /// Tests that stand outside of a crate act as its users, with sockets, clocks and an environment of their
    /// own.
    pub(crate) fn is_outside_test(&self) -> bool {
        self.path.contains("/tests/")
    }
}

/// Every Rust file and script of the repository, generated ones aside.
pub(crate) fn read_all(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    let folders = ["plimsoll", "crates", "ext", "bench", "fuzz", ".ci"];
    let mut folders: Vec<_> = folders.iter().map(|name| root.join(name)).collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("a folder of the repository can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["target", "corpus", "artifacts"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if [".rs", ".lua", "run"].iter().any(|end| name.ends_with(end)) {
                let text = std::fs::read_to_string(&path).expect("sources are UTF-8");
                let relative = path.strip_prefix(root).expect("it was found below the root");
                found.push(Source { path: relative.to_string_lossy().replace('\\', "/"), text });
            }
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Everything that is wrong with a file.
pub(crate) fn complaints(source: &Source) -> Vec<String> {
    let mut complaints = shape_complaints(source);
    if source.path.ends_with(".rs") {
        complaints.extend(code_complaints(source));
    }
    complaints
}

/// Rules about text: size, width, names, leftovers.
fn shape_complaints(Source { path, text }: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    let count = text.lines().count();
    if count > LINES_MAX {
        complaints.push(format!("{path}: {count} lines, more than {LINES_MAX}"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        let columns = line.chars().count();
        // A string literal is not broken for the sake of a column: rustfmt leaves it alone, too.
        if columns > COLUMNS_MAX && !line.contains('"') {
            complaints.push(format!("{path}:{number}: {columns} columns, more than {COLUMNS_MAX}"));
        }
        // Put together here, so that this line is not one of them.
        if [concat!("FIX", "ME"), concat!("XX", "X:")].iter().any(|mark| line.contains(mark)) {
            complaints.push(format!("{path}:{number}: left over"));
        }
    }
    let names = path.split('/').map(|part| part.split('.').next().unwrap_or_default());
    for name in names.filter(|name| EMPTY_NAMES.contains(name)) {
        complaints.push(format!("{path}: `{name}` does not say what is inside"));
    }
    complaints
}

/// Rules about code.
fn code_complaints(source: &Source) -> Vec<String> {
    let Source { path, text } = source;
    let found = tokens(text);
    let mut complaints = Vec::new();
    let mut complain = |line: usize, what: String, why: &str| {
        complaints.push(format!("{path}:{line}: {what}: {why}"));
    };
    let is_allowed = |allowed: &[&str]| allowed.iter().any(|prefix| path.starts_with(prefix));
    for token in found.iter().filter(|token| token.text == "unsafe") {
        if !is_allowed(UNSAFE) {
            complain(token.line, "unsafe".to_owned(), "only the driver and `system` may");
        }
    }
    for ban in BANS {
        // Leftovers such as `dbg!` are banned in tests, too.
        if is_allowed(ban.allowed) || (source.is_outside_test() && !ban.allowed.is_empty()) {
            continue;
        }
        for window in found.windows(ban.tokens.len()) {
            if window.iter().map(|token| token.text).eq(ban.tokens.iter().copied()) {
                complain(window[0].line, ban.tokens.concat(), ban.why);
            }
        }
    }
    let unit_tests_from = unit_tests_from(&found);
    for &(parent, child, allowed, in_unit_tests, why) in PATH_BANS {
        if is_allowed(allowed) || source.is_outside_test() {
            continue;
        }
        for line in names_path(&found, parent, child) {
            if !in_unit_tests || line < unit_tests_from {
                complain(line, format!("{parent}::{child}"), why);
            }
        }
    }
    for stream in ["stdout", "stderr"].into_iter().filter(|_| !is_allowed(STREAMS)) {
        for line in writers(&found, stream).into_iter().filter(|_| !source.is_outside_test()) {
            complain(line, format!("io::{stream}"), "write by `streams` of the command");
        }
    }
    complaints
}

/// Lines that name a stream of the process for more than the question whether it is a terminal.
fn writers(found: &[Token<'_>], stream: &str) -> Vec<usize> {
    let question = ["io", "::", stream, "(", ")", ".", "is_terminal"];
    let is_question = |window: &&[Token<'_>]| window.iter().map(|token| token.text).eq(question);
    let mut asked: Vec<usize> =
        found.windows(question.len()).filter(is_question).map(|w| w[2].line).collect();
    let mut lines = names_path(found, "io", stream);
    lines.retain(|line| match asked.iter().position(|other| other == line) {
        Some(at) => {
            asked.swap_remove(at);
            false
        }
        None => true,
    });
    lines
}

/// The line where the unit tests begin, which stand last in a file.
pub(crate) fn unit_tests_from(found: &[Token<'_>]) -> usize {
    let begin = ["#", "[", "cfg", "(", "test", ")", "]"];
    // A module of tests that other modules of the crate share is visible to them.
    let seen = ["pub", "(", "crate", ")"];
    let is = |from: usize, wanted: &[&str]| {
        let texts = found[from.min(found.len())..].iter().map(|token| token.text);
        texts.take(wanted.len()).eq(wanted.iter().copied())
    };
    let begins = |from: &usize| {
        let after = from + begin.len();
        is(*from, &begin) && (is(after, &["mod"]) || (is(after, &seen) && is(after + seen.len(), &["mod"])))
    };
    (0..found.len()).find(begins).map_or(usize::MAX, |from| found[from].line)
}

/// Lines that name `parent::child`, also within a group: `parent::{child, …}`.
fn names_path(found: &[Token<'_>], parent: &str, child: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    for (index, _) in found.iter().enumerate().filter(|(_, token)| token.text == parent) {
        let mut after = found[index + 1..].iter();
        if after.next().is_none_or(|token| token.text != "::") {
            continue;
        }
        let Some(next) = after.next() else { continue };
        if next.text == child {
            lines.push(next.line);
        }
        if next.text != "{" {
            continue;
        }
        let mut depth = 1;
        let mut before = "{";
        for token in after {
            match token.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                text if depth == 1 && text == child && before != "::" => lines.push(token.line),
                _ => {}
            }
            if depth == 0 {
                break;
            }
            before = token.text;
        }
    }
    lines
}

/// A crate root without `#![forbid(unsafe_code)]` that is not on the list.
pub(crate) fn unforbidden_unsafe(source: &Source) -> Option<String> {
    let listed = UNSAFE_CRATES.iter().any(|prefix| source.path.starts_with(prefix));
    let forbid = ["#", "!", "[", "forbid", "(", "unsafe_code", ")", "]"];
    let found = tokens(&source.text);
    let forbids = found.windows(forbid.len()).any(|window| window.iter().map(|token| token.text).eq(forbid));
    (!listed && !forbids).then(|| format!("{}: lacks #![forbid(unsafe_code)]", source.path))
}

fn complaints_about(path: &str, text: &str) -> Vec<String> {
    complaints(&Source { path: path.to_owned(), text: text.to_owned() })
}

#[test]
fn what_only_some_may_is_complained_about_elsewhere() {
    let bad = [
        "use std::net::TcpStream;",
        "use std::{io, net::TcpStream};",
        "use std::{fmt::{self, Display}, net};",
        "let x = std::net::Ipv4Addr::LOCALHOST;",
        "let now = Instant::now();",
        "let now = std::time::SystemTime::UNIX_EPOCH;",
        "unsafe { f() }",
        "println!(\"{x}\");",
        "eprint!(\"x\");",
        "let out = std::io::stdout();",
        "std::process::exit(1)",
        "let home = std::env::var_os(\"HOME\");",
        "use std::env;",
        "std::thread::sleep(d);",
        "use tokio::net::TcpStream;",
        "fn f() { std::env::temp_dir(); }\n#[cfg(test)]\nmod tests {}",
        "dbg!(x)",
        "todo!()",
        "unimplemented!()",
    ];
    for line in bad {
        let complaints = complaints_about("crates/wire/src/bad.rs", line);
        assert!(!complaints.is_empty(), "not complained about: {line}");
        assert!(complaints[0].starts_with("crates/wire/src/bad.rs:1: "), "{complaints:?}");
    }
}

#[test]
fn what_is_allowed_is_not_complained_about() {
    let good = [
        ("crates/wire/src/x.rs", "use core::net::IpAddr; // std::net is the driver's, Instant::now() too"),
        ("crates/wire/src/x.rs", "use std::{fmt, io}; mod net { } let net = 1; env!(\"CARGO_PKG_VERSION\");"),
        ("crates/wire/src/x.rs", "let text = \"unsafe println!() todo!()\"; #![forbid(unsafe_code)]"),
        ("crates/driver/src/x.rs", "use std::net::TcpStream; unsafe { f(Instant::now()) }"),
        ("crates/app/src/x.rs", "let color = std::env::var(\"NO_COLOR\"); std::process::exit(2)"),
        ("crates/app/src/x.rs", "if std::io::stderr().is_terminal() && io::stdout().is_terminal() {}"),
        ("crates/app/src/base/streams.rs", "io::stderr().write_all(&text)"),
        ("plimsoll/tests/x.rs", "println!(\"{:?}\", std::io::stdout())"),
        ("crates/targets/tests/x.rs", "let peer = std::net::TcpStream::connect(address);"),
        ("bench/src/child.rs", "unsafe { wait4() }"),
        ("crates/plan/src/x.rs", "#[cfg(test)]\nmod tests { fn folder() { std::env::temp_dir(); } }"),
    ];
    for (path, text) in good {
        assert_eq!(complaints_about(path, text), [""; 0], "{path}");
    }
    assert_eq!(complaints_about("crates/targets/tests/x.rs", "dbg!(1); unsafe { }").len(), 2);
    assert_eq!(complaints_about("bench/src/main.rs", "unsafe { }").len(), 1);
}

#[test]
fn the_command_writes_to_its_streams_in_one_place() {
    for line in [
        "println!(\"{x}\");",
        "eprint!(\"x\");",
        "let _ = std::io::stderr().write_all(text);",
        "let out = io::stdout().lock();",
        "use std::io::stderr;",
        "use std::io::{self, stdout};",
        "if io::stderr().is_terminal() { io::stderr().write_all(b\"x\") }",
    ] {
        assert_eq!(complaints_about("crates/app/src/run.rs", line).len(), 1, "{line}");
        assert_eq!(complaints_about("crates/report/src/x.rs", line).len(), 1, "{line}");
    }
}

#[test]
fn shapes_are_complained_about() {
    let about = |path, text: &str| complaints_about(path, text).len();
    assert_eq!(about("crates/core/src/x.rs", &"\n".repeat(LINES_MAX)), 0);
    assert_eq!(about("crates/core/src/x.rs", &"\n".repeat(LINES_MAX + 1)), 1);
    assert_eq!(about("crates/core/src/x.rs", &format!("//{}", "ü".repeat(COLUMNS_MAX - 2))), 0);
    assert_eq!(about("crates/core/src/x.rs", &format!("//{}", "ü".repeat(COLUMNS_MAX - 1))), 1);
    let literal = format!("    \"{}\"", "x".repeat(COLUMNS_MAX));
    assert_eq!(about("crates/core/src/x.rs", &literal), 0);
    assert_eq!(about("crates/core/src/x.rs", concat!("// FIX", "ME: later")), 1);
    assert_eq!(about("crates/core/src/utils.rs", ""), 1);
    assert_eq!(about("crates/core/src/helpers/mod.rs", ""), 1);
    assert_eq!(about("crates/core/src/connection_manager.rs", ""), 0);
}

#[test]
fn a_crate_root_that_allows_unsafe_is_complained_about() {
    let root =
        |path: &str, text: &str| unforbidden_unsafe(&Source { path: path.to_owned(), text: text.to_owned() });
    assert_eq!(root("crates/wire/src/lib.rs", "//! Doc.\n#![forbid(unsafe_code)]\n"), None);
    assert!(root("crates/wire/src/lib.rs", "// #![forbid(unsafe_code)]\n").is_some());
    assert!(root("plimsoll/src/main.rs", "#![deny(unsafe_code)]\n").is_some());
    assert_eq!(root("crates/driver/src/lib.rs", ""), None);
    assert_eq!(root("bench/src/main.rs", ""), None);
}
