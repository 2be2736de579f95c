use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory as _;
use plimsoll_document::{Files, KeyLogFile, Problem, RawValue, Setting, SettingKind};
use plimsoll_plan::{Plan, PlanPatch};

use super::*;
use crate::args::ab::without_thresholds;
use crate::args::command_word::{self, with_command};
use crate::base::environment::RunEnvironment;
use crate::session::describe;

fn rewritten(args: &[&str]) -> Result<Vec<String>, Problem> {
    let args = std::iter::once("plimsoll").chain(args.iter().copied()).map(OsString::from).collect();
    let args = with_command(args)?;
    Ok(args.into_iter().skip(1).map(|arg| arg.into_string().unwrap()).collect())
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
    let commands: Vec<_> = Cli::command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let (mut known, mut defined) = (crate::args::command_word::commands().collect::<Vec<_>>(), commands);
    known.sort_unstable();
    defined.sort_unstable();
    assert_eq!(defined, known);
}

#[test]
fn a_bare_url_runs() {
    for url in ["http://a/", "127.0.0.1:8080/", "localhost", "example.test", "[::1]:80", "a/b", "-c"] {
        assert_eq!(rewritten(&[url, "x"]).unwrap(), ["run", url, "x"]);
    }
    let commands = [
        "run", "check", "explain", "try", "find", "ab", "sink", "target", "demo", "import", "compare",
        "--help", "-V",
    ];
    for command in commands {
        assert_eq!(rewritten(&[command]).unwrap(), [command]);
    }
    assert_eq!(rewritten(&[]).unwrap(), [""; 0]);
}

/// Symptom: `plimsoll help` and `plimsoll version` were unknown commands.
#[test]
fn help_and_version_are_words_as_well() {
    assert_eq!(rewritten(&["help"]).unwrap(), ["--help"]);
    assert_eq!(rewritten(&["help", "ingest", "demo"]).unwrap(), ["ingest", "demo", "--help"]);
    assert_eq!(rewritten(&["version"]).unwrap(), ["--version"]);
}

/// Symptom: `ab -h` said `[default: 10s]` of a run of two minutes, and `find -h` spoke of `--rate`, which it
/// refuses.
#[test]
fn help_of_a_command_has_its_own_defaults() {
    for (command, flag, says) in [
        ("run", "duration", "[default: 10s]"),
        ("find", "duration", "[default: 2s]"),
        ("ab", "duration", "[default: 2m]"),
        ("run", "connections", "with --rate: as many as needed"),
        ("find", "connections", "as many as a rate needs"),
    ] {
        let cli = Cli::command();
        let command = cli.find_subcommand(command).unwrap();
        let arg = command.get_arguments().find(|arg| arg.get_id() == flag).unwrap();
        for help in [arg.get_help(), arg.get_long_help()].into_iter().flatten() {
            assert!(help.to_string().contains(says), "{} {flag}: {help}", command.get_name());
        }
    }
}

/// The settings whose flags a page of help of a command shows: `-h`, or `--help`.
fn shown_settings(command: &str, page: &str) -> Vec<&'static Setting> {
    let cli = Cli::command();
    let command = cli.find_subcommand(command).unwrap();
    let is_shown = |setting: &&'static Setting| {
        let is_on_page =
            |arg: &clap::Arg| !arg.is_hide_set() && (page == "--help" || !arg.is_hide_short_help_set());
        command.get_arguments().any(|arg| arg.get_id() == setting.name && is_on_page(arg))
    };
    Setting::ALL.iter().filter(is_shown).collect()
}

/// A value that suits a flag, as far as its place in a plan is concerned.
fn example(setting: &Setting) -> &'static str {
    match (setting.kind, setting.flag.value_name) {
        (SettingKind::Switch, _) => "true",
        (_, "N" | "RATE" | "SEED") => "2",
        (_, "TIME") => "2s",
        (_, "STAGES") => "2s@3",
        (_, "THRESHOLD") => "p99<50ms",
        _ => "x",
    }
}

/// Symptom: `ab -h` showed `--threshold`, which it refuses.
#[test]
fn help_shows_no_flag_that_its_command_refuses() {
    for command in ["run", "check", "explain", "try", "find", "ab"] {
        // The long page of `find` has flags of sweeps, which a search refuses.
        let settings = shown_settings(command, if command == "find" { "-h" } else { "--help" });
        assert!(settings.len() > 8, "{command}");
        for setting in settings {
            let mut patch =
                PlanPatch { urls: vec![RawValue::new("URL", "http://a/")], ..PlanPatch::default() };
            patch.push(setting, RawValue::new(format!("--{}", setting.long()), example(setting)));
            let line = ["plimsoll", command, "http://a/", "http://b/"];
            let refused = match Cli::try_parse_from(line).unwrap().command {
                Command::Find(args) => args.amend(&mut patch).err(),
                Command::Ab(_) => without_thresholds(&patch).err(),
                _ => None,
            };
            assert_eq!(refused, None, "{command} {}", setting.name);
            // What excludes a flag that the command itself adds.
            let problems = Plan::resolve(patch, &Data).err().unwrap_or_default();
            let excluded = problems.iter().find(|problem| problem.message.contains("exclude"));
            assert_eq!(excluded, None, "{command} {}", setting.name);
        }
    }
}

/// Symptom: `try -h` showed `-c`, `-d`, `--warmup` and `--threshold`, none of which does anything there.
#[test]
fn help_of_a_try_leaves_out_how_much_load_there_is() {
    let names: Vec<&str> = shown_settings("try", "--help").iter().map(|setting| setting.name).collect();
    for ignored in ["connections", "duration", "rate", "stages", "warmup", "threads", "thresholds", "precise"]
    {
        assert!(!names.contains(&ignored), "{ignored}");
    }
    for used in ["headers", "body", "method", "timeout", "seed", "insecure", "http2"] {
        assert!(names.contains(&used), "{used}");
    }
}

/// Symptom: flags that mean something else in the program that a command line was written for were silent.
#[test]
fn habits_of_other_programs_are_told() {
    for (line, note) in [
        ("run -z 2s http://a", Some("-c 50")),
        ("run -z 2s -c 50 http://a", None),
        ("run -q 5 -c 10 http://a", Some("-R 50")),
        ("run -q 5 -c 1 http://a", None),
        ("run -q 0.5 -c 10 http://a", Some("-R 5 ")),
        ("run -z 3s -q 100 http://a", Some("each of its 50 connections")),
        ("run -z 3s -q 100 http://a", Some("-R 5000 -c 50")),
        ("run -n 200 -q 100 http://a", Some("-R 5000 -c 50")),
        ("run -q100 http://a", Some("-R 5000 -c 50")),
        ("run -q 100/s http://a", None),
        ("run -q 100 -d 5s http://a", None),
        ("run -q 100 --quiet http://a", None),
        ("run -z 3s --rate 100 http://a", None),
        ("run -z 3s -R 100 http://a", None),
        ("run -z 3s --stages 10s@5 http://a", None),
        ("run -z 3s --users 5 http://a", None),
        ("run -c 2 -D body.json http://a", None),
        ("run http://a --crud-create-method=POST --rps=10", Some("--http2")),
        ("run http://a --crud-create-method=POST --rps=10", Some("-c 1")),
        (
            "run http://a -n 30 -c 4 --http2 --crud-create-method=POST --crud-delete-method=DELETE",
            Some("-n 15"),
        ),
        ("run http://a -n 30 -c 4 --http2 --crud-create-method=POST", None),
        ("run http://a --crud-create-method=POST --http2", Some("-c 1")),
        ("run http://a --crud-create-method=POST --http2 -c 2", None),
        ("run http://a --crud-create-method=POST --http1.1 -c 2", None),
        ("run http://a -c 2 -D 1", Some("--http2")),
        ("run https://a --crud-create-method=POST -c 2", None),
        ("ws --rps 100", Some("each connection")),
        ("ws --rate 100", None),
        ("ingest metrics --rps 100", Some("--preset arc")),
        ("ingest metrics --rps 100 --preset arc", None),
        ("ingest logs --token T", Some("--preset arc")),
        ("ingest metrics --rps 100 --quiet", None),
        (
            "canister -n 20 -r 400 http://a",
            Some("HTTP/2 (--http2), and this load HTTP/1.1; it signs each message"),
        ),
        ("canister -n20 http://a", Some("as fast as it is answered")),
        ("canister -m Update --http2 --pem-file x -r 5 http://a", Some("has 600 s without -n")),
        ("canister -n 5 -r 5 --http2 --pem-file x http://a", Some("waits 300 s for an answer")),
        ("canister -n 5 -r 5 --http2 --pem-file x --query-timeout-secs 300 http://a", None),
        ("canister -u -n 5 -r 5 --http2 --pem-file x --query-timeout-secs 300 http://a", Some("waits 360 s")),
        ("canister -n 20 --http2 --pem-file x http://a", Some("generator has a rate without -r, too")),
        ("canister -d 5s --rate 5 http://a", None),
        ("runs", None),
    ] {
        let args: Vec<OsString> =
            std::iter::once("plimsoll").chain(line.split(' ')).map(OsString::from).collect();
        let told = command_word::habits(&args);
        assert_eq!(!told.is_empty(), note.is_some(), "{line}: {told:?}");
        assert!(note.is_none_or(|note| told.iter().any(|told| told.contains(note))), "{line}: {told:?}");
    }
}

#[test]
fn a_mistyped_command_does_not_become_a_host() {
    let problem = rewritten(&["snik", "--listen", ":0"]).unwrap_err();
    assert_eq!(problem.hint.as_deref(), Some("did you mean `plimsoll sink`?"));
    let problem = rewritten(&["webserver"]).unwrap_err();
    assert_eq!(
        problem.hint.as_deref(),
        Some(
            "commands: run, check, explain, try, find, ab, calibrate, import, record, ui, runs, show, report, compare, \
             history, export, verify, merge, rm, sink, target, cluster, demo, fleet, agent, ws, \
             crud, ingest, canister, schema, completions, man; \
             for a host write http://webserver/"
        )
    );
}

#[test]
fn every_flag_reaches_the_patch_under_its_own_name() {
    for setting in Setting::ALL {
        let flag = format!("--{}", setting.long());
        let typed = match setting.kind {
            SettingKind::Switch => flag.clone(),
            _ => format!("{flag}=7"),
        };
        let args = ["plimsoll", "run", "http://a/", &typed];
        let Command::Run(args) = Cli::try_parse_from(args).expect(&flag).command else { panic!("not a run") };
        let run = args.run;
        let patch = run.plan.to_command(RunEnvironment::default()).flags;
        let patches = [&patch, &run.live.files.patch, &run.control.settings().patch];
        let given: Vec<_> = patches.into_iter().flat_map(PlanPatch::settings).collect();
        for (other, values) in given.iter().filter(|(_, values)| !values.is_empty()) {
            let text = if setting.kind == SettingKind::Switch { "true" } else { "7" };
            assert_eq!((other.name, &*values[0].by, &*values[0].text), (setting.name, &*flag, text));
        }
        assert_eq!(given.iter().map(|(_, values)| values.len()).sum::<usize>(), 1, "{flag}");
    }
}

#[test]
fn what_is_no_setting_reaches_the_patch_too() {
    let args = ["plimsoll", "run", "http://a/", "--script=s.lua", "--", "62"];
    let Command::Run(args) = Cli::try_parse_from(args).unwrap().command else { panic!("not a run") };
    let run = args.run;
    let command = run.plan.to_command(RunEnvironment {
        seed: 90,
        key_log: Some("91".into()),
        lua_path: Some("92".to_owned()),
        ..RunEnvironment::default()
    });
    let patch = command.flags;
    assert_eq!((patch.script_arguments, patch.lua_path), (vec!["62".to_owned()], Some("92".to_owned())));
    assert_eq!((patch.default_seed, patch.key_log), (90, Some("91".into())));
    assert!(patch.script_host.is_some());
}

/// Data files of the example below.
struct Data;

impl Files for Data {
    fn read(&self, _: &Path) -> std::io::Result<Vec<u8>> {
        Ok(b"{\"callback\":\"/imsi-USER_ID\"}".to_vec())
    }

    fn key_log(&self, _: &Path) -> std::io::Result<KeyLogFile> {
        Err(std::io::ErrorKind::PermissionDenied.into())
    }
}

/// h2loadrunner's own example, in its order and with its repetition; only `--http2` is ours.
#[test]
fn the_example_of_h2loadrunner_is_understood() {
    let line = "plimsoll http://192.168.1.125:8080/nudm-ee/v2/imsi-2621012-USER_ID/sdm-subscriptions/ \
         -t 5 -c 100 -D 10 -m 512 --rps=100 --crud-update-method=PATCH --crud-delete-method=DELETE \
         --crud-create-method=POST --crud-request-variable-name=-USER_ID \
         --crud-request-variable-value-start=1 --crud-request-variable-value-end=1000000000 \
         --crud-resource-header=location --stream-timeout-interval-ms=2000 -m 512 \
         --crud-create-data-file=datafile.json --crud-update-data-file=updatedatafile.json --http2";
    let args = with_command(line.split_whitespace().map(OsString::from).collect()).unwrap();
    let Command::Run(args) = Cli::try_parse_from(args).unwrap().command else { panic!("not a run") };
    let run = args.run;
    let plan = Plan::resolve(run.plan.to_command(RunEnvironment::default()).flags, &Data).unwrap();
    let names: Vec<_> = plan.steps.iter().map(|step| step.name.as_str()).collect();
    let create = "create POST /nudm-ee/v2/imsi-2621012-USER_ID/sdm-subscriptions/";
    assert_eq!(names, [create, "update PATCH", "delete DELETE"]);
    assert_eq!(
        describe::model(&plan).description,
        ["open: 10000/s uniform, 100 connections × 512 streams, then queue, HTTP/2, 5 threads, for 10s"]
    );
}

#[test]
fn familiar_letters_for_duration_and_rate() {
    for (args, duration, rate) in
        [(["-z", "5s"], Some("5s"), None), (["-D", "5s"], Some("5s"), None), (["-q", "7"], None, Some("7"))]
    {
        let args = ["plimsoll", "run", "http://a/"].into_iter().chain(args);
        let Command::Run(args) = Cli::try_parse_from(args).unwrap().command else { panic!("not a run") };
        let run = args.run;
        let text = |given: &Option<RawValue>| given.as_ref().map(|given| given.text.clone());
        let patch = &run.plan.settings.patch;
        let owned = |text: Option<&str>| text.map(str::to_owned);
        assert_eq!((text(&patch.duration), text(&patch.rate)), (owned(duration), owned(rate)));
    }
}
