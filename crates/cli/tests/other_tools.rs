//! The tables of the guide for users of five other generators: every flag in them is typed, and has to work
//! as the table says.

use std::path::Path;
use std::process::Command;

const URL: &str = "http://127.0.0.1:8080/a-ID";
const STORE: &str = "http://127.0.0.1:8000";

/// The command that a section is about, as far as it does nothing.
fn command(section: &str) -> Vec<&'static str> {
    match section {
        "h2loadrunner" => vec!["check", URL],
        "Lithair's generator and its bench script" => vec!["crud", "--print-plan"],
        "Carbon's load test" => vec!["cache", "--print-plan"],
        "Arc's scripts" => vec!["ingest", "metrics", "--print-plan"],
        "The Internet Computer's workload generator and load sink" => vec!["canister", URL, "--print-plan"],
        other => panic!("no command is known for the section `{other}`"),
    }
}

/// The command that a row names instead (*of `plimsoll cluster run`*).
fn other_command(row: &str) -> Option<Vec<&'static str>> {
    let has = |name: &str| row.contains(&format!("`plimsoll {name}"));
    match row {
        _ if row.contains("logs and traces") => Some(vec!["ingest", "logs", "--print-plan"]),
        _ if has("cluster run`") => Some(vec!["cluster", "check", "examples/cluster/lithair-node.yaml"]),
        // `--help` ends the command after its flags were read and before anything is sent or served.
        _ if has("ingest demo`") => Some(vec!["ingest", "demo"]),
        _ if has("sink") => Some(vec!["sink"]),
        _ => None,
    }
}

/// A value for a flag that takes one.
fn value(flag: &str, section: &str) -> Option<&'static str> {
    Some(match flag {
        "-m" if section.contains("Internet Computer") => "Update",
        "-t" | "-c" | "-n" | "-m" | "--concurrency" | "--workers" | "--threads" | "--pregenerate" | "-r"
        | "--hosts" | "--services" | "--databases" => "2",
        "-D"
        | "--duration"
        | "--timeout-s"
        | "--warmup"
        | "--connection-lifetime"
        | "--connection-inactivity"
        | "--connect-timeout"
        | "--query-timeout-secs"
        | "--ingress-timeout-secs" => "3",
        "-H" => "a:b",
        "--header-table-size" | "--encoder-header-table-size" => "4096",
        "--rps" | "--rate" | "--total" | "--bulk-size" | "--batch-size" => "1000",
        "--stream-timeout-interval-ms" => "2000",
        "--crud-create-method" => "POST",
        "--crud-update-method" => "PATCH",
        "--crud-delete-method" => "DELETE",
        "--crud-create-data-file" | "--crud-update-data-file" | "--rate-file" => FILE,
        "--crud-request-variable-name" => "-ID",
        "--crud-request-variable-value-start" => "1",
        "--crud-request-variable-value-end" => "100",
        "--crud-resource-header" => "location",
        "--max-frame-size" => "16384",
        "--window-bits" | "--connection-window-bits" => "20",
        "--connection-rate" => "5",
        "--alpn" => "h2",
        "--log" | "--failed" | "--summary-file" => "out",
        "--mode" => "bulk",
        "--create-pct" | "--read-pct" | "--update-pct" | "--delete-pct" => "120",
        "--leader" | "--read-targets" => "http://127.0.0.1:8081",
        "--profile" => "balanced",
        "--suite" => "bulk_vs_single",
        "--server" => "127.0.0.1:5500",
        "--cache" | "--database" | "--token" | "--watch-process" => "x",
        "--key" => "zipf",
        "--mix" => "put+get",
        "--url" => STORE,
        "--campaign-time" => "1730246400000",
        "--canister-id" => "aaaaa-aa",
        "--call-method" => "read",
        "--script" => "x.lua",
        "--read-path" => "status",
        "--preseed" => "10",
        "--payload" => "00ff",
        "--payload-size" => "10",
        "--chart-size" => "small",
        "-p" | "--prometheus" => "9090",
        _ => return None,
    })
}

/// A file that is there.
const FILE: &str = "README.md";

/// The spans of code in a cell.
fn spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// A flag with its value: that of the table, or one that fits in a section.
fn typed(span: &str, section: Option<&str>) -> Vec<String> {
    let words: Vec<String> = span.split(' ').map(str::to_owned).collect();
    match (words.as_slice(), section.and_then(|section| value(span, section))) {
        // Values may begin with a dash.
        ([flag], Some(value)) if flag.starts_with("--") => vec![format!("{flag}={value}")],
        ([flag], Some(value)) => vec![flag.clone(), value.to_owned()],
        _ => words,
    }
}

struct Row<'t> {
    section: &'t str,
    there: &'t str,
    here: &'t str,
}

impl Row<'_> {
    /// Types flags, and returns the exit code and stderr.
    fn run(&self, flags: &[String]) -> (Option<i32>, String) {
        let mut args = other_command(self.here).unwrap_or_else(|| command(self.section));
        if args[0] == "crud" && !flags[0].starts_with("--mode") {
            args.extend(["--mode", "random"]);
        }
        Self::type_in(&args, flags, matches!(args[..], ["ingest", "demo"] | ["sink"]))
    }

    fn type_in(args: &[&str], flags: &[String], helps: bool) -> (Option<i32>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(args)
            .args(flags)
            .args(helps.then_some("--help"))
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .output()
            .expect("the command starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Flags that the row asks for beside this one.
    fn context(&self, flag: &str) -> Vec<String> {
        let beside = self.here.strip_prefix("same, with ").unwrap_or_default();
        let beside = beside.split(':').next().unwrap_or_default();
        spans(beside)
            .into_iter()
            .filter(|span| *span != flag)
            .flat_map(|span| typed(span, Some(self.section)))
            .collect()
    }

    /// Types every flag, and returns the deviations from the row.
    fn wrong(&self) -> Vec<String> {
        let Self { section, there, here } = self;
        let is_name = |span: &&str| span.starts_with('-') && !span.contains('*');
        let own = spans(there).into_iter().filter(is_name);
        let own =
            own.filter_map(|flag| if here.contains("hint") { self.hinted(flag) } else { self.same(flag) });
        // The other names in the cell are flags, too.
        let is_elsewhere = here.contains("`plimsoll find`") || here.starts_with("same");
        let others = spans(here).into_iter().filter(|span| span.starts_with("--") && !is_elsewhere);
        let others = others.filter_map(|flag| self.known(flag));
        own.chain(others).map(|wrong| format!("{section}: {wrong}")).collect()
    }

    /// A flag that is accepted as it is.
    fn same(&self, flag: &str) -> Option<String> {
        if !self.here.starts_with("same") {
            return Some(format!("{flag} is neither the same nor hinted: {}", self.here));
        }
        let beside = self.context(flag);
        // Only a file with a key will do, which is another test's.
        if flag == "--pem-file" || beside.iter().any(|word| word.contains("--pem-file")) {
            let (_, said) = self.run(&[flag.to_owned(), "x".to_owned()]);
            return said.contains("unknown flag").then_some(said);
        }
        let flags: Vec<String> = beside.into_iter().chain(typed(flag, Some(self.section))).collect();
        let (code, said) = self.run(&flags);
        (code != Some(0)).then(|| format!("{flags:?}: {said}"))
    }

    /// A flag that is refused, with a hint that has one of the names of the table.
    fn hinted(&self, flag: &str) -> Option<String> {
        let (code, said) = self.run(&typed(flag, None));
        let hint = said.split_once("hint: ").map_or("", |(_, hint)| hint);
        let names = spans(self.here);
        let helps = names.is_empty() || names.iter().any(|name| hint.contains(name));
        let is_hint = !hint.is_empty() && !hint.contains("`--help` lists the flags");
        let right = code == Some(2) && is_hint && helps;
        (!right).then(|| format!("{flag}, and one of {names:?}: {said}"))
    }

    /// A flag that the table names; it may need another one beside it.
    fn known(&self, flag: &str) -> Option<String> {
        let flags = match flag {
            // A file that is none would be found out.
            "--h2loadrunner" => return None,
            "--set concurrency=…" => typed("--set concurrency=1,2", None),
            "--databases N" => typed("--databases 2", None),
            "--body @file" => typed("--body @README.md", None),
            flag => typed(flag, Some(self.section)),
        };
        let (code, said) = match self.section {
            // `check` does not have all of these flags.
            "h2loadrunner" => Self::type_in(&["run", URL], &flags, true),
            _ => self.run(&flags),
        };
        let idle = !said.contains("unknown flag") && said.contains("has no effect");
        (code != Some(0) && !idle).then(|| format!("{flags:?}: {said}"))
    }
}

#[test]
fn every_flag_of_the_guide_does_what_the_guide_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/from-five-generators.md");
    let guide = std::fs::read_to_string(file).expect("the guide");
    let (mut section, mut rows, mut flags) = ("", 0, 0);
    let mut wrong = Vec::new();
    for line in guide.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title;
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if !line.starts_with("| ") || cells[0].starts_with("there") {
            continue;
        }
        let [there, here] = cells[..] else { panic!("{line}") };
        wrong.extend(Row { section, there, here }.wrong());
        rows += 1;
        flags += spans(there).iter().filter(|span| span.starts_with('-')).count();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows > 60 && flags > 90, "{rows} rows with {flags} flags: is it the guide?");
}

/// The command line that h2loadrunner's own page begins with.
#[test]
fn the_command_line_of_h2loadrunners_page_is_accepted() {
    let row = Row { section: "h2loadrunner", there: "", here: "" };
    let line = "--http2 -t 5 -c 100 -D 10 -m 512 --rps=100 --crud-update-method=PATCH \
                --crud-delete-method=DELETE --crud-create-method=POST --crud-request-variable-name=-ID \
                --crud-request-variable-value-start=1 --crud-request-variable-value-end=1000000000 \
                --crud-resource-header=location --stream-timeout-interval-ms=2000 \
                --crud-create-data-file=README.md --crud-update-data-file=README.md";
    let flags: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (code, said) = row.run(&flags);
    assert_eq!(code, Some(0), "{said}");
}
