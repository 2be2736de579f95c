//! Plan files on the command line: all problems of the bad ones, and the plans of the good ones.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans").join(name)
}

fn plimsoll(folder: &Path, args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PLIMSOLL_")) {
        command.env_remove(name);
    }
    command.current_dir(folder).args(args).envs(environment.iter().copied());
    command.output().expect("the binary runs")
}

/// The names of the plans in a folder.
fn plans(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder of plans");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("its entries").file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".yaml"));
    names.sort_unstable();
    names
}

/// Each was read to its end, into memory.
#[test]
fn files_without_an_end_are_read_up_to_a_bound() {
    let path = std::env::temp_dir().join(format!("plimsoll-endless-{}.yaml", std::process::id()));
    // It takes no place on the disk.
    let file = std::fs::File::create(&path).expect("the temporary folder can be written");
    file.set_len(300 << 20).expect("a file may have holes");
    let name = path.to_str().expect("a name in UTF-8");
    let words = |args: &[&str]| {
        let output = plimsoll(&folder("good"), args, &[]);
        let said = String::from_utf8(output.stderr).expect("messages are text");
        assert_eq!(output.status.code(), Some(2), "{said}");
        said
    };
    let [plan, import, run] = [&["check", name][..], &["import", "har", name], &["show", name]].map(words);
    let at_file = format!("@{name}");
    let control = ["http://127.0.0.1:1/", "-R", "1", "--control", "127.0.0.1:0", "--control-token", &at_file];
    let payload = ["crud", "--leader", "http://127.0.0.1:1", "--payload", &at_file];
    let key = ["canister", "http://127.0.0.1:1", "--pem-file", name, "--principal-id", "2vxsx-fae"];
    let named = [&control[..], &payload, &key].map(words);
    std::fs::remove_file(&path).expect("it was written");
    assert!(plan.contains("error: the plan has more than 16 MiB\nhint: put data into CSV"), "{plan}");
    assert!(import.contains(" has more than 256 MiB\nhint: import a part of it"), "{import}");
    assert!(run.contains(" has more than 256 MiB: it is not a run\nhint: name a file"), "{run}");
    for said in named {
        assert!(said.contains("it has more than 16 MiB"), "{said}");
    }
}

/// An unknown key of 5 MB took 849 MB and 6 s: it was compared with every key that is known.
#[test]
fn a_key_of_megabytes_takes_memory_in_proportion() {
    let file = std::env::temp_dir().join(format!("plimsoll-long-key-{}.yaml", std::process::id()));
    let text = format!("? {}\n: 1\ntargets: {{a: \"http://h\"}}\n", "x".repeat(5_000_000));
    std::fs::write(&file, text).expect("the temporary folder can be written");
    // Of the address space, with stacks and the program itself.
    let limited =
        format!("ulimit -v 600000; exec {} check {}", env!("CARGO_BIN_EXE_plimsoll"), file.display());
    let output = Command::new("sh").args(["-c", &limited]).output().expect("there is a shell");
    std::fs::remove_file(&file).expect("it was written");
    let said = String::from_utf8(output.stderr).expect("messages are text");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is not known here") || said.contains("more bytes"), "{said}");
    assert!(said.len() < 10_000, "{} bytes", said.len());
}

#[test]
fn everything_that_is_wrong_with_a_bad_plan_is_said_at_once() {
    let folder = folder("bad");
    let names = plans(&folder);
    assert!(names.len() >= 40, "{names:?}");
    for name in names {
        let output = plimsoll(&folder, &["check", &name], &[]);
        let text = String::from_utf8(output.stderr).expect("messages are text");
        assert_eq!(output.status.code(), Some(2), "{name}: {text}");
        assert!(output.stdout.is_empty(), "{name}");
        assert!(!text.contains("topsecret"), "{name}: {text}");
        let run = plimsoll(&folder, &["run", &name], &[]);
        assert_eq!(
            (run.status.code(), String::from_utf8_lossy(&run.stderr)),
            (Some(2), text.as_str().into())
        );
        let short = name.trim_end_matches(".yaml").to_owned();
        insta::with_settings!({ snapshot_path => "plans/bad", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(short, text);
        });
    }
}

/// Symptom: `check` said ok, and the run ended with exit code 2.
#[test]
fn rows_that_no_run_could_read_are_found_by_check() {
    let place = std::env::temp_dir().join(format!("plimsoll-rows-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("it can be made");
    let few = "u,p\na,b\n";
    for (text, more, problems) in [
        ("u,p\n", "", &[": there are no rows"][..]),
        ("u,p\na,b\nc\nd,e\nf\n", "", &[":3: 1 values, but 2 columns", ":5: 1 values, but 2 columns"]),
        ("u,p\na,\"b\nc,d\n", "", &[":2: a quote that begins in this record is never closed"]),
        ("u,p\na,b\"\"c\n", "", &[":2: a quote within a value"]),
        (few, "per: user", &["fewer rows than the 2 users"]),
        (few, "share: split", &["fewer rows than the 2 workers"]),
        (few, "share: whole", &[]),
    ] {
        for order in ["sequential", "shuffled"] {
            std::fs::write(place.join("d.csv"), text).expect("it can be written");
            let plan = format!(
                "run: {{connections: 2, threads: 2}}\ntargets: {{a: \"http://127.0.0.1:1\"}}\n\
                 data: {{d: {{csv: d.csv, order: {order}{}{more}}}}}\n\
                 scenarios: [{{steps: [{{get: \"/${{u}}?${{p}}\"}}]}}]\n",
                if more.is_empty() { "" } else { ", " }
            );
            std::fs::write(place.join("plan.yaml"), plan).expect("it can be written");
            let output = plimsoll(&place, &["check", "plan.yaml"], &[]);
            let said = String::from_utf8(output.stderr).expect("messages are text");
            let code = if problems.is_empty() { 0 } else { 2 };
            assert_eq!(output.status.code(), Some(code), "{text:?} {order} {more}: {said}");
            let found: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
            assert_eq!(found.len(), problems.len(), "{text:?} {order} {more}: {said}");
            for (line, problem) in found.iter().zip(problems) {
                assert!(line.starts_with("error: data source `d`: ") && line.contains(problem), "{said}");
            }
        }
    }
    std::fs::remove_dir_all(&place).expect("it was made");
}

/// Symptom: a step that an import had named `GET /items/$${id}` was shown with both signs.
#[test]
fn what_is_escaped_in_a_name_is_shown_as_it_is() {
    let place = std::env::temp_dir().join(format!("plimsoll-escaped-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("it can be made");
    let plan = "targets: {a: \"http://127.0.0.1:1\"}\nthresholds: [{step: \"$${x}\", that: \
                p99<1s}]\nscenarios: [{name: \"s $${y}\", steps: [{name: \"$${x}\", get: /}]}]\n";
    std::fs::write(place.join("plan.yaml"), plan).expect("it can be written");
    let output = plimsoll(&place, &["explain", "plan.yaml"], &[]);
    let said = String::from_utf8(output.stdout).expect("it is text");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("$$") && said.contains("s ${y}") && said.contains("    ${x}"), "{said}");
    std::fs::remove_dir_all(&place).expect("it was made");
}

/// Symptom: `check` said nothing of slots that other programs have, which are sent as they are.
#[test]
fn slots_of_other_programs_are_noted_by_check() {
    let place = std::env::temp_dir().join(format!("plimsoll-slots-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("it can be made");
    let plan = "targets: {a: \"http://127.0.0.1:1\"}\nvariables: {token: t}\nscenarios:\n  - steps:\n      \
                - get: /items/{item}/${token}\n        headers: {A: \"{{user}}\", B: Bearer $token, C: \
                $other}\n";
    std::fs::write(place.join("plan.yaml"), plan).expect("it can be written");
    let check = |args: &[&str]| {
        let output = plimsoll(&place, &[&["check", "plan.yaml"], args].concat(), &[]);
        assert_eq!(output.status.code(), Some(0));
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("messages are text"))
    };
    let [stdout, stderr] = check(&[]);
    assert_eq!(stdout, "plan.yaml: ok\n");
    insta::assert_snapshot!(stderr);
    let [stdout, _] = check(&["-o", "json"]);
    let value: serde_json::Value = serde_json::from_str(&stdout).expect("it is JSON");
    assert_eq!(value["warnings"].as_array().map(Vec::len), Some(3), "{value:#}");
    std::fs::remove_dir_all(&place).expect("it was made");
}

#[test]
fn a_good_plan_is_ok_and_explained() {
    let folder = folder("good");
    let args = ["settings.yaml", "http://127.0.0.1:1/a", "--http2", "-R", "50"];
    let check = plimsoll(&folder, &[&["check"][..], &args].concat(), &[]);
    assert_eq!(String::from_utf8_lossy(&check.stdout), "settings.yaml: ok\n");
    assert_eq!((check.status.code(), check.stderr.len()), (Some(0), 0));
    let environment = [("PLIMSOLL_TIMEOUT", "7s")];
    let explained = plimsoll(&folder, &[&["explain"][..], &args].concat(), &environment);
    assert_eq!(explained.status.code(), Some(0), "{}", String::from_utf8_lossy(&explained.stderr));
    let text = String::from_utf8(explained.stdout).unwrap();
    assert!(!text.contains("topsecret"), "{text}");
    insta::assert_snapshot!("explain_plan", text);
    let bare = plimsoll(
        &folder,
        &["explain", "http://127.0.0.1:1/", "https://127.0.0.1:2/b", "-k", "-n", "500"],
        &[],
    );
    insta::assert_snapshot!("explain_urls", String::from_utf8(bare.stdout).unwrap());
}

#[test]
fn colour_is_for_terminals_and_wishes() {
    let folder = folder("bad");
    let plain = plimsoll(&folder, &["check", "booleans.yaml"], &[]).stderr;
    assert!(!plain.contains(&0x1b));
    let coloured = plimsoll(&folder, &["check", "booleans.yaml", "--color", "always"], &[]).stderr;
    assert!(coloured.contains(&0x1b));
    let auto = plimsoll(&folder, &["check", "booleans.yaml"], &[("NO_COLOR", "1")]).stderr;
    assert_eq!(auto, plain);
}

#[test]
fn the_schema_of_plans_is_printed() {
    let output = plimsoll(&folder("bad"), &["schema", "plan"], &[]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["scenarios"]["description"], "Scenarios that users carry out.");
}

/// Returns the output of `check`, and its exit code.
fn checked(folder: &Path, args: &[&str]) -> String {
    let output = plimsoll(folder, &[&["check"], args].concat(), &[]);
    let text = |bytes| String::from_utf8(bytes).expect("messages are text");
    let (stdout, stderr, code) = (text(output.stdout), text(output.stderr), output.status.code());
    format!(
        "$ plimsoll check {}\n{stdout}{stderr}exit {}\n",
        args.join(" "),
        code.expect("it ended by itself")
    )
}

#[test]
fn json_is_read_strictly_and_yaml_in_braces_is_yaml() {
    let folder = folder("json");
    let names = ["comma.json", "comment.json", "secret.json", "good.json", "emoji.json", "flow.yaml"];
    let said: Vec<String> = names.into_iter().map(|name| checked(&folder, &[name])).collect();
    let said = said.join("\n");
    assert!(!said.contains("topsecret"), "{said}");
    insta::assert_snapshot!(said);
}

#[test]
fn what_is_no_plan_and_no_url_is_said_with_what_may_be_meant() {
    let folder = folder("good");
    let args = [
        &["."][..],
        &["./"],
        &["../bad"],
        &["../../plans.rs"],
        &["./nothing"],
        &["settings.yml"],
        &["setings.yaml"],
        &["nothing.yaml"],
        &["../json/good.yaml"],
        // Symptom: two plans were "a URL" and a plan.
        &["users.yaml", "settings.yaml"],
        &["users.yaml", "http://127.0.0.1:1/"],
    ];
    let said: Vec<String> = args.into_iter().map(|args| checked(&folder, args)).collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn files_of_other_tools_are_told_for_what_they_are() {
    let folder = folder("foreign");
    let entries = std::fs::read_dir(&folder).expect("the folder of foreign files");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("its entries").file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    let said: Vec<String> = names.iter().map(|name| checked(&folder, &[name])).collect();
    for name in &names {
        let run = plimsoll(&folder, &["run", name, "-c", "1"], &[]);
        let check = plimsoll(&folder, &["check", name, "-c", "1"], &[]);
        assert_eq!((run.status.code(), run.stderr), (Some(2), check.stderr), "{name}");
    }
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn rows_and_the_length_of_iterations_are_explained() {
    let explained = plimsoll(&folder("good"), &["explain", "users.yaml"], &[]);
    assert_eq!(explained.status.code(), Some(0), "{}", String::from_utf8_lossy(&explained.stderr));
    insta::assert_snapshot!(String::from_utf8(explained.stdout).unwrap());
}

#[test]
fn servers_that_only_the_setup_asks_are_explained() {
    let name = format!("plimsoll-around-{}.yaml", std::process::id());
    let file = std::env::temp_dir().join(&name);
    let text = "targets: {api: \"http://127.0.0.1:1\", login: \"https://127.0.0.1:2\"}\n\
                setup: [{post: /token, target: login, extract: {token: {json: /token}}}]\n\
                scenarios: [{target: api, steps: [{get: \"/${token}\"}]}]\n\
                teardown: [{post: /end, target: login}]\n";
    std::fs::write(&file, text).expect("the temporary folder can be written");
    let explained = plimsoll(&std::env::temp_dir(), &["explain", &name], &[]);
    std::fs::remove_file(&file).expect("it was written");
    let said = String::from_utf8(explained.stdout).expect("it is text");
    let (_, targets) = said.split_once("\ntargets\n").expect("there are targets");
    let (targets, _) = targets.split_once("\n\n").expect("something follows");
    assert_eq!(
        targets,
        "  http://127.0.0.1:1  HTTP/1.1\n  https://127.0.0.1:2  HTTP/1.1  in the setup",
        "{}",
        String::from_utf8_lossy(&explained.stderr)
    );
}

/// The points of a schedule, as `explain -o json` has them.
fn schedule(flags: &[&str]) -> serde_json::Value {
    let args = [&["explain", "http://127.0.0.1:1/", "-o", "json"][..], flags].concat();
    let output = plimsoll(&folder("good"), &args, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let text = plimsoll(&folder("good"), &[&["explain", "http://127.0.0.1:1/"][..], flags].concat(), &[]);
    assert_eq!(value["text"].as_str().map(str::as_bytes), Some(&*text.stdout));
    value["schedule"].clone()
}

#[test]
fn the_schedule_of_a_plan_is_what_will_be_sent() {
    use serde_json::json;
    let open = schedule(&["--stages", "10s@100,20s@400"]);
    assert_eq!(open["points"], json!([[0.0, 100.0], [10.0, 100.0], [10.0, 100.0], [30.0, 400.0]]));
    assert_eq!((&open["iterations"], &open["unit"]), (&json!(6000), &json!("iterations/s")));
    let users = schedule(&["--user-stages", "1s@0,9s@50"]);
    assert_eq!((&users["unit"], &users["duration_s"]), (&json!("users"), &json!(10.0)));
    let last = users["points"].as_array().and_then(|points| points.last()).expect("points");
    assert_eq!(last, &json!([10.0, 50.0]));
    let closed = schedule(&["-c", "7", "-d", "2s", "--warmup", "1s"]);
    assert_eq!(closed["points"], json!([[0.0, 7.0], [3.0, 7.0]]));
    assert_eq!(schedule(&["-c", "7", "-n", "9"])["points"], json!([[0.0, 7.0]]));
}
