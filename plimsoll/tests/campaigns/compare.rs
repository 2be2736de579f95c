//! `plimsoll compare` and `plimsoll history` as commands: files, exit codes, messages. Conclusions from
//! figures are tested in the crates `report` and `statistics`.

use std::path::PathBuf;
use std::process::Output;

use plimsoll_testkit::verdict;
use serde_json::{Value, json};

use super::bench::{Sink, output, plimsoll};

/// A folder of a test's own, in which the command runs. It goes with this.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plimsoll-compare-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary folder can be written");
        Self(path)
    }

    /// Writes results whose times are those of `result` times one of `factors`.
    fn results(&self, name: &str, result: &Value, factors: &[f64]) {
        std::fs::create_dir_all(self.0.join(name)).expect("the folder can be written");
        for (index, factor) in factors.iter().enumerate() {
            let mut result = result.clone();
            for time in ["response_time", "service_time"] {
                for value in result[time]["p"].as_object_mut().expect("percentiles").values_mut() {
                    if let Some(time) = value.as_f64() {
                        *value = json!((time * factor) as u64);
                    }
                }
            }
            result["rate"]["achieved_per_s"] = json!(1000.0);
            result["run"]["id"] = json!(format!("{name}{index}"));
            result["run"]["started_at"] = json!(format!("2026-03-0{}T12:00:00.000Z", index + 1));
            result["run"]["started_at_unix_ns"] = json!(index);
            result["verdict"]["valid"] = json!(true);
            self.write(&format!("{name}/{index}.json"), &result.to_string());
        }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("the folder can be written");
    }

    fn plimsoll(&self, line: &str) -> Output {
        let args: Vec<&str> = line.split_whitespace().collect();
        plimsoll(&args).current_dir(&self.0).output().expect("the command starts")
    }

    /// Returns the output of a command, with its exit code.
    fn shown(&self, line: &str) -> String {
        let output = self.plimsoll(line);
        let text = |bytes| String::from_utf8(bytes).expect("it prints text");
        let code = output.status.code().expect("no signal ended it");
        format!("$ plimsoll {line}\n{}---\n{}exit {code}\n", text(output.stdout), text(output.stderr))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system cleans up files that cannot be removed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The result of a real run; with the machine being busy, perhaps an invalid one.
fn real_result(folder: &Folder) -> Value {
    let sink = Sink::start(&[]);
    let output = folder.plimsoll(&format!("run {} -n 400 -c 2 --json real.json --quiet", sink.url));
    assert!(verdict::ran(output.status.code()), "{output:?}");
    let text = std::fs::read_to_string(folder.0.join("real.json")).expect("the result was written");
    serde_json::from_str(&text).expect("it is JSON")
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn the_exit_code_is_the_verdict() {
    let folder = Folder::new("codes");
    let result = real_result(&folder);
    folder.results("base", &result, &[1.0, 1.002, 0.998, 1.004, 0.997]);
    folder.results("like", &result, &[1.001, 1.003, 0.999, 1.002, 0.996]);
    folder.results("slow", &result, &[1.10, 1.103, 1.099, 1.102, 1.096]);
    folder.results("wild", &result, &[1.30, 0.8, 1.1, 0.9, 1.2]);
    for (line, expected) in [
        ("compare base like", 0),
        ("compare base slow", 4),
        ("compare slow base", 0),
        ("compare base wild", 0),
        ("compare base wild --strict", 5),
        ("compare base/0.json slow/0.json", 0),
        ("compare base/0.json slow/0.json --strict", 5),
        ("compare base slow --effect 20%", 0),
        ("compare base/*.json slow/[0-9].json", 4),
        (
            "compare base/0.json,base/1.json,base/2.json slow/0.json,slow/1.json,slow/2.json --metric service_time.p90",
            4,
        ),
    ] {
        let output = folder.plimsoll(line);
        assert_eq!(code(&output), Some(expected), "{line}: {output:?}");
        assert!(output.stderr.is_empty() && !output.stdout.is_empty(), "{line}: {output:?}");
    }
    let output = folder.plimsoll("compare base slow -o json");
    let comparison: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((&comparison["verdict"], &comparison["schema_version"]), (&json!("worse"), &json!(1)));
    // Invalid runs lead to no conclusion, unless it is asked for.
    let mut invalid: Value = result.clone();
    invalid["verdict"]["valid"] = json!(false);
    invalid["run"]["id"] = json!("invalid");
    folder.write("slow/invalid.json", &invalid.to_string());
    assert_eq!(code(&folder.plimsoll("compare base slow")), Some(3));
    assert_eq!(code(&folder.plimsoll("compare base slow --allow-invalid --metric p50,p90")), Some(4));
}

#[test]
fn a_history_shows_when_a_figure_changed() {
    let folder = Folder::new("history");
    folder.results("runs", &real_result(&folder), &[1.0, 1.002, 0.998, 1.004, 1.3, 1.303, 1.299, 1.302]);
    let output = folder.plimsoll("history runs --metric service_time.p90 -o json");
    assert_eq!(code(&output), Some(0), "{output:?}");
    let history: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(history["changes"][0]["at"], 4, "{history:#}");
    assert_eq!(history["changes"][0]["verdict"], "worse");
    let text = folder.shown("history runs --metric service_time.p90");
    assert!(text.contains("WORSE by +30.") && text.contains("worse; runs/4.json"), "{text}");
    assert!(text.contains("a judgement takes 5 runs since the last change, there are 3"), "{text}");
    // A single run is no change yet, but may lie outside the interval that the others predict.
    folder.results("newest", &real_result(&folder), &[1.0, 1.002, 0.998, 1.004, 1.001, 1.003, 1.3]);
    let text = folder.shown("history newest --metric service_time.p90");
    assert!(text.contains("newest      WORSE by +29.") && text.contains("by the 6 runs before it"), "{text}");
}

#[test]
fn mistakes_are_explained() {
    let folder = Folder::new("mistakes");
    folder.write("plan.yaml", "run: {rate: 1}\n");
    folder.write("other.json", "{\"name\": \"not a result\"}");
    folder.write("later.json", "{\"schema_version\": 99, \"run\": {}}");
    folder.write("cut.json", "{\"schema_version\": 1, \"run\": {\"id\"");
    folder.write("broken.json", "{\"schema_version\": 1, \"run\": {\"id\": 1}}");
    std::fs::create_dir_all(folder.0.join("empty")).expect("the folder can be written");
    let all: Vec<_> = [
        "compare",
        "compare a",
        "compare a b c",
        "compare missing.json plan.yaml",
        "compare other.json later.json",
        "compare cut.json broken.json",
        "compare empty none*.json",
        "compare empty empty --effect 5 --confidence 100% --error-effect=-1% --metric p98,latency,p50,p50",
        "history",
        "history later.json --metric p42",
    ]
    .into_iter()
    .map(|line| folder.shown(line))
    .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn runs_are_not_counted_twice_and_not_mixed() {
    let folder = Folder::new("mixed");
    let result = real_result(&folder);
    folder.results("base", &result, &[1.0, 1.01]);
    let output = folder.shown("compare base base/1.json");
    assert!(output.contains("error: base/1.json and base/1.json are the same run"), "{output}");
    let mut other = result;
    (other["model"]["kind"], other["run"]["id"]) = (json!("open"), json!("other"));
    folder.write("other.json", &other.to_string());
    let output = folder.shown("compare base other.json");
    assert!(
        output.contains("error: these runs cannot be compared: models differ: A closed, B open"),
        "{output}"
    );
    assert!(output.ends_with("exit 2\n"), "{output}");
    assert!(folder.shown("compare base other.json --force --allow-invalid").ends_with("exit 0\n"));
}

#[test]
fn help() {
    for name in ["compare", "history"] {
        let help = output(&[name, "--help"]);
        insta::assert_snapshot!(format!("help_{name}"), String::from_utf8(help.stdout).unwrap());
    }
}

#[test]
fn reports_are_written_where_asked_and_named_after_their_runs() {
    let folder = Folder::new("report");
    let sink = Sink::start(&[]);
    let line = format!("run {} -c 1 -n 400 --quiet -o json --report own.html", sink.url);
    let made: Value = serde_json::from_slice(&folder.plimsoll(&line).stdout).expect("it prints JSON");
    folder.results("runs", &made, &[1.0; 12]);
    folder.results("more", &made, &[1.0]);
    let read = |name: &str| std::fs::read_to_string(folder.0.join(name)).expect("the page was written");
    let id = made["run"]["id"].as_str().expect("an id");
    assert!(read("own.html").contains(id));
    let output = folder.plimsoll("report runs/3.json --store none.db");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "wrote report-runs3.html\n");
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(read("report-runs3.html").contains("runs3"));
    let output = folder.plimsoll("report runs/0.json,runs/1.json more --store none.db --file -");
    let page = String::from_utf8(output.stdout).expect("a page is text");
    assert!(page.starts_with("<!doctype html>") && page.contains(", compared with "), "{page}");
    let shown = folder.shown("report runs more --store none.db");
    assert!(shown.contains("error: 13 runs on one page") && shown.ends_with("exit 2\n"), "{shown}");
    let shown = folder.shown("report nothing.json --store none.db");
    assert!(shown.contains("error: cannot read nothing.json") && shown.ends_with("exit 2\n"), "{shown}");
}

#[test]
fn two_plans_are_run_in_turn_and_compared() {
    let (sink, folder) = (Sink::measured(&[]), Folder::new("plans"));
    let plan = |pause: &str| {
        format!(
            "targets: {{ it: \"{}\" }}\nrun: {{ iterations: 100, connections: 2, seed: 5 }}\n\
             scenarios: [{{ steps: [{{ get: /, think: {pause} }}] }}]\n",
            sink.url.trim_end_matches('/')
        )
    };
    folder.write("a.yaml", &plan("1ms"));
    folder.write("b.yaml", &plan("10ms"));
    let made = folder.plimsoll("compare a.yaml b.yaml --runs 5 -o json --metric rate --allow-invalid");
    assert_eq!(code(&made), Some(4), "{}", String::from_utf8_lossy(&made.stderr));
    let told = String::from_utf8_lossy(&made.stderr).into_owned();
    // The order ABBA keeps drift of the machine from looking like a difference between the plans.
    let order: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("run "))
        .filter_map(|line| line.split(['(', ')']).nth(1))
        .collect();
    assert_eq!(order, ["A", "B", "B", "A", "A", "B", "B", "A", "A", "B"], "{told}");
    let comparison: Value = serde_json::from_slice(&made.stdout).expect("one object");
    assert_eq!(comparison["verdict"], "worse");
    for (side, name) in [("a", "a.yaml"), ("b", "b.yaml")] {
        assert_eq!(comparison[side]["name"], name);
        assert_eq!(comparison[side]["runs"].as_array().expect("runs").len(), 5);
    }
    folder.write("c.json", "{}");
    let mixed = folder.plimsoll("compare a.yaml c.json");
    assert_eq!(mixed.status.code(), Some(2));
    let message = String::from_utf8_lossy(&mixed.stderr).into_owned();
    assert!(message.contains("a plan and results of runs cannot be compared"), "{message}");
}
