//! `plimsoll import` as a command, and `--h2loadrunner`: its output on stdout and stderr, and exit codes. The
//! crate `import` tests the imports themselves.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn plimsoll(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(args)
        .env_remove("COLUMNS")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("FORCE_COLOR")
        // In the log of a CI service some texts are shown otherwise.
        .env_remove("CI")
        .env_remove("TF_BUILD")
        .env_remove("TEAMCITY_VERSION")
        .current_dir(examples())
        .output()
        .expect("the command starts")
}

/// The configurations of h2loadrunner that the crate `import` is tested with.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/import/tests/h2loadrunner")
}

/// Returns the output of a command, with its exit code.
fn shown(args: &[&str]) -> String {
    let output = plimsoll(args);
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    format!(
        "$ plimsoll {}\n{}---\n{}exit {}\n",
        args.join(" "),
        text(output.stdout),
        text(output.stderr),
        output.status.code().expect("no signal ended it")
    )
}

#[test]
fn plans_go_to_stdout_and_notes_to_stderr() {
    let all: Vec<_> = [
        &["import", "curl", "curl -sd 'a=${b}' http://127.0.0.1:1/"][..],
        &["import", "curl", "--", "-X", "PUT", "http://127.0.0.1:1/"],
        &["import", "curl", "--strict", "curl -s http://127.0.0.1:1/"],
        &["import", "h2loadrunner", "basic_get.json"],
        &["import", "h2loadrunner", "data_get.json", "--strict"],
        &["import", "h2loadrunner", "missing.json"],
        &["import", "h2loadrunner", "users.csv"],
        &["import", "har", "basic_get.json", "--only", "h", "--no-think"],
        &["import", "openapi", "basic_get.json", "--server", "http://h"],
        &["import", "vegeta", "users.csv", "--steps"],
        &["import", "tsung", "x"],
        &[
            "import",
            "postman",
            "../postman/login.json",
            "--environment",
            "../postman/shop.postman_environment.json",
        ],
        &["import", "postman", "../postman/login.json"],
        &["import", "artillery", "../artillery/ramp_first.yml"],
        &["import", "jmeter", "../jmeter/arrivals.jmx"],
        &["import", "k6", "../k6/login_flow.js", "--env", "BASE_URL=http://h"],
        &["import", "k6", "../k6/several.js", "--scenario", "report"],
        &["import", "k6", "../k6/get.js", "--env", "BASE_URL"],
        &["import", "k6", "../import/program.js"],
        &["import", "gatling", "../gatling/During.scala"],
        &["import", "locust", "../locust/shape.py", "--host", "http://h"],
        &["import", "locust", "../locust/quickstart.py", "-u", "20", "-r", "2", "-t", "1m"],
        &["import", "locust", "../locust/login_token.py", "--tasks", "1", "--strict"],
        &["import", "locust", "../locust/quickstart.py", "-t", "soon"],
        &["import", "locust", "../locust/accounts.csv"],
        &["import"],
        &["import", "curl"],
    ]
    .into_iter()
    .map(shown)
    .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn in_json_notes_stand_beside_the_plan() {
    let output = plimsoll(&["import", "curl", "-o", "json", "curl -s http://127.0.0.1:1/"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let plan = plimsoll(&["import", "curl", "curl -s http://127.0.0.1:1/"]);
    assert_eq!(value["plan"].as_str().map(str::as_bytes), Some(&*plan.stdout));
    let notes = value["notes"].as_array().expect("a list");
    let told = String::from_utf8(plan.stderr).expect("text");
    assert!(!notes.is_empty() && output.stderr.is_empty(), "{value:#}");
    for note in notes {
        let note = note.as_str().expect("a text");
        assert!(told.contains(note), "{note}: {told}");
    }
}

/// Symptom: `import curl FILE` made a plan for a host of the name of the file.
#[test]
fn a_command_of_curl_in_a_file_is_the_typed_one() {
    let command = "curl -X PUT -H 'a: b' -d '{\"c\": 1}' http://127.0.0.1:1/d";
    let folder = std::env::temp_dir().join(format!("plimsoll-curl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("it can be made");
    let typed = plimsoll(&["import", "curl", command]);
    assert_eq!(typed.status.code(), Some(0));
    // One name is as a host's would be.
    for name in ["command.txt", "example.com", "-X"] {
        let file = folder.join(name);
        std::fs::write(&file, format!("{command}\n")).expect("it can be written");
        let read = plimsoll(&["import", "curl", file.to_str().expect("it is UTF-8")]);
        assert_eq!((read.status.code(), &read.stdout), (Some(0), &typed.stdout), "{name}");
    }
    std::fs::remove_dir_all(&folder).expect("it was made");
}

#[test]
fn help() {
    for (name, args) in [("help", &["import", "-h"][..]), ("help_har", &["import", "har", "--help"])] {
        insta::assert_snapshot!(name, String::from_utf8(plimsoll(args).stdout).unwrap());
    }
}

/// Values that only the plan knows to be wrong are shown in the plan that was made.
#[test]
fn a_configuration_is_checked_as_a_plan_with_flags_over_it() {
    let output = plimsoll(&["check", "--h2loadrunner", "basic_get.json", "--duration", "soon"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("--duration: `soon` is not a duration"), "{stderr}");
    let output = plimsoll(&["run", "--h2loadrunner", "basic_get.json", "http://127.0.0.1:1/"]);
    assert_eq!(output.status.code(), Some(2));
}
