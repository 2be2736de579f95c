//! The command line: which flags there are, and what they are called.
//!
//! Flags are not parsed here beyond their text: `plimsoll_plan` does that, so that all problems of a command
//! are reported together and a plan file will be read by the same rules.

use clap::{Parser, Subcommand};

use crate::args::calibrate::CalibrateArgs;
use crate::args::compare::{CompareArgs, HistoryArgs};
use crate::args::find::FindArgs;
use crate::args::help::{COMPARE_HELP, FIND_HELP, TEMPLATE_HELP};
use crate::args::import::ImportArgs;
use crate::args::plan::PlanArgs;
use crate::args::reference::{CompletionsArgs, ManArgs, ReferenceArgs};
use crate::args::report::ReportArgs;
use crate::args::run::RunArgs;
use crate::args::runs::{ExportArgs, RmArgs, RunsArgs, ShowArgs};
pub(crate) use crate::args::schema::SchemaArgs;
use crate::args::server::sink::SinkArgs;
use crate::args::server::target::TargetArgs;
use crate::args::workload::cache::CacheArgs;
use crate::args::workload::canister::CanisterArgs;
use crate::args::workload::cluster::ClusterArgs;
use crate::args::workload::crud::CrudLoadArgs;
use crate::args::workload::ingest::IngestArgs;
use crate::base::color::ColorChoice;

/// Finds and proves the load line of a server: a load generator whose numbers can be believed
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(
    after_help = "`plimsoll URL` is the same as `plimsoll run URL`. `plimsoll COMMAND --help` says more."
)]
pub(crate) struct Cli {
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    #[arg(help_heading = "Output", hide_short_help = true)]
    pub(crate) color: ColorChoice,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Carry out a plan, or put load on URLs, and report what happened
    ///
    /// Without a rate the model is closed: every user sends its next request when the last one was answered.
    /// With --rate or --stages it is open: requests start at their scheduled times, whatever the
    /// server does, and their response time counts from there.
    ///
    /// Durations are written 100ms, 30s or 1m30s (a bare number is seconds), counts 10k or 1m, rates 5000,
    /// 5k/s or 300/m, sizes 64KiB. A rate is always for the whole run, but for --rps.
    ///
    /// A plan file (YAML or JSON) says all of this and more; `plimsoll schema plan` describes it. Flags
    /// replace its settings, and so do variables such as PLIMSOLL_RATE=5k: PLIMSOLL_ and the setting's
    /// name, lists with one value per line. Other variables of that kind are left alone, unless they look
    /// like a mistake.
    #[command(after_long_help = TEMPLATE_HELP)]
    Run(Box<RunArgs>),
    /// Say everything that is wrong with a plan file, or that it is ok
    ///
    /// Does what `run` would do before it opens a connection, with the same flags.
    Check(Box<PlanArgs>),
    /// Show what a plan file, or a URL and flags, come to: each setting and where it is from, steps, totals
    Explain(Box<PlanArgs>),
    /// Put load on a cache that speaks Carbon's binary protocol: PUT, GET and DELETE over TCP
    ///
    /// By default 10,000 times a PUT and then a GET of a key of its own, on 100 connections, and each GET is
    /// compared with what was put. The flags come to a plan, which --print-plan shows; all flags of `run`
    /// hold.
    Cache(Box<CacheArgs>),
    /// Create, read, update and delete the items of a REST resource, at one server or at a cluster
    ///
    /// By default 10,000 items are created, on 64 connections. Ids for reads, updates and deletes are those
    /// of the items that were created in the run; before there are any, the server is asked for one (GET
    /// /api/NAME/random-id), which is counted apart. The flags come to a plan, which --print-plan shows; all
    /// flags of `run` hold. Without a server at hand, `plimsoll target crud-cluster` is one.
    Crud(Box<CrudLoadArgs>),
    /// Call a canister of the Internet Computer: queries, or updates whose outcome is waited for
    ///
    /// Messages are signed ahead of need, and never sent when they have expired; if too few are ready the run
    /// says that signing was the limit. By default queries of `read` for 10 seconds, as fast as they are
    /// answered, on 64 connections. The flags come to a plan, which --print-plan shows; all flags of `run`
    /// hold. Without a replica at hand, `plimsoll sink --canister` is one.
    Canister(Box<CanisterArgs>),
    /// Send metrics, logs, traces or events to a store, in batches, at so many records a second
    ///
    /// Every batch has new times and values and is made before it is due. The flags come to a plan, which
    /// --print-plan shows; all flags of `run` hold. Without a store at hand, `plimsoll target ingest` is one.
    Ingest(Box<IngestArgs>),
    /// Find the highest rate at which a server holds what is asked of it: an interval, not a number
    ///
    /// Trials in the open model, each of the length -d (2s) or a multiple of it: rates grow until one breaks,
    /// and are bisected until the capacity is near; then it is estimated from trials at it and beside it. The
    /// lower end is tried once more, and again right after an overload. A rate that the generator cannot put
    /// on the server is not blamed on the server; after three such trials in a row the search ends.
    #[command(after_long_help = FIND_HELP)]
    Find(Box<FindArgs>),
    /// Measure what this machine can generate at most, against the built-in server, and keep it
    ///
    /// Requests per second and thread by protocol, TLS, connections, sizes and scripts, and what this machine
    /// adds to response times at half of that. Runs state then how much of it they have used, and warn above
    /// 50 %. `run --calibrate` does the same with the requests of a plan itself.
    Calibrate(CalibrateArgs),
    /// Run the built-in server: it absorbs load, and can be slow, limited or faulty on purpose
    ///
    /// It speaks HTTP/1.1 and HTTP/2 on the same port: with TLS, ALPN chooses; without, the first bytes tell
    /// (HTTP/2 with prior knowledge). Laws of time and faults are those of single requests, so of single
    /// streams on HTTP/2.
    Sink(Box<SinkArgs>),
    /// Run a built-in server that answers what it is asked for, to test scenarios against
    Target(TargetArgs),
    /// Start the servers under test, break them while load is on them, and check what they have
    ///
    /// A spec says what nodes there are, how they are started, what breaks and what has to hold. See
    /// docs/clusters.md.
    Cluster(ClusterArgs),
    /// Show a closed and an open run against the built-in server, 5 s each
    Demo(crate::args::demo::DemoArgs),
    /// Print a description of another tool as a plan file
    ///
    /// What cannot be imported as it is, is noted on stderr.
    Import(ImportArgs),
    /// Say whether one group of runs is better or worse than another, the same, or undecided
    ///
    /// The unit is the run: requests within one run depend on each other, and say little about how runs
    /// differ. From 5 runs a side ranks are compared (Mann-Whitney, Hodges-Lehmann), with 2 to 4 means
    /// (Welch), always with all judged figures in mind (Holm). One run a side shows the change, and leaves it
    /// undecided.
    ///
    /// The same: the interval of the change lies within what does not matter (--effect). Better or worse:
    /// it does not hold zero. Undecided: it holds zero and changes that matter.
    #[command(after_long_help = COMPARE_HELP)]
    Compare(CompareArgs),
    /// Show a figure over many runs, and when it changed
    ///
    /// Changes are found by the energy distance of both sides (E-divisive) and tested by a t-test at 0.001,
    /// as Hunter and Apache Otava do.
    History(HistoryArgs),
    /// Write runs as one page of HTML, with charts, that needs no network
    ///
    /// The verdict first, then times, the course of the run, accounts, answers, the machine and the origin.
    /// Tables and the verdict can be read without JavaScript.
    Report(ReportArgs),
    /// List the runs that were saved (`run --save`), the latest first
    ///
    /// p50 and p99 are those of the response time in the open model, of the service time in the closed one.
    Runs(RunsArgs),
    /// Show a saved run as it was shown when it ended
    Show(ShowArgs),
    /// Write a saved run in another format
    Export(ExportArgs),
    /// Remove saved runs
    Rm(RmArgs),
    /// Print the JSON Schema of a format
    Schema(SchemaArgs),
    /// Print completions for a shell
    ///
    /// For bash: plimsoll completions bash > ~/.local/share/bash-completion/completions/plimsoll
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for every command
    Man(ManArgs),
    /// Write the reference pages of the documentation
    #[command(hide = true)]
    Reference(ReferenceArgs),
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::*;
    use crate::args::command_word::{self, with_command};
    use crate::base::environment::RunEnvironment;
    use crate::session::describe;
    use clap::CommandFactory as _;
    use plimsoll_plan::{Files, KeyLogFile, Plan, PlanPatch, Problem, RawValue, Setting, SettingKind};

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

    /// Commands for load have the short flags of `run`, and others may have them for what they do. Only the
    /// generators whose command lines are to be typed as they are have others.
    #[test]
    fn a_short_flag_means_one_thing_in_all_commands_for_load() {
        const OF_OTHER_GENERATORS: [(&str, char, &str); 2] =
            [("canister", 'n', "seconds"), ("canister", 'm', "call")];
        let cli = command_word::command();
        let shorts = |command: &str| -> Vec<(char, String)> {
            let command = cli.find_subcommand(command).unwrap();
            let named = |arg: &clap::Arg| arg.get_short().zip(arg.get_long().map(str::to_owned));
            command.get_arguments().filter_map(named).collect()
        };
        let of_run: std::collections::BTreeMap<char, String> = shorts("run").into_iter().collect();
        let mut others = Vec::new();
        for command in cli.get_subcommands().map(clap::Command::get_name) {
            for (short, long) in shorts(command) {
                if of_run.get(&short).is_some_and(|of_run| *of_run != long) {
                    others.push((command.to_owned(), short, long));
                }
            }
        }
        let known =
            OF_OTHER_GENERATORS.map(|(command, short, long)| (command.to_owned(), short, long.to_owned()));
        assert_eq!(others, known);
    }

    #[test]
    fn a_bare_url_runs() {
        for url in ["http://a/", "127.0.0.1:8080/", "localhost", "example.test", "[::1]:80", "a/b", "-c"] {
            assert_eq!(rewritten(&[url, "x"]).unwrap(), ["run", url, "x"]);
        }
        let commands = [
            "run", "check", "explain", "find", "sink", "target", "demo", "import", "compare", "--help", "-V",
        ];
        for command in commands {
            assert_eq!(rewritten(&[command]).unwrap(), [command]);
        }
        assert_eq!(rewritten(&[]).unwrap(), [""; 0]);
    }

    #[test]
    fn a_mistyped_command_does_not_become_a_host() {
        let problem = rewritten(&["snik", "--listen", ":0"]).unwrap_err();
        assert_eq!(problem.hint.as_deref(), Some("did you mean `plimsoll sink`?"));
        let problem = rewritten(&["webserver"]).unwrap_err();
        assert_eq!(
            problem.hint.as_deref(),
            Some(
                "commands: run, check, explain, find, calibrate, import, runs, show, report, compare, history, export, \
                 rm, sink, target, cluster, demo, cache, crud, canister, ingest, schema, completions, man; \
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
            let Command::Run(run) = Cli::try_parse_from(args).expect(&flag).command else {
                panic!("not a run")
            };
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
        let Command::Run(run) = Cli::try_parse_from(args).unwrap().command else { panic!("not a run") };
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
        let Command::Run(run) = Cli::try_parse_from(args).unwrap().command else { panic!("not a run") };
        let plan = Plan::resolve(run.plan.to_command(RunEnvironment::default()).flags, &Data).unwrap();
        let names: Vec<_> = plan.steps.iter().map(|step| step.name.as_str()).collect();
        let create = "create POST /nudm-ee/v2/imsi-2621012-USER_ID/sdm-subscriptions/";
        assert_eq!(names, [create, "update PATCH", "delete DELETE"]);
        assert_eq!(
            describe::model(&plan).description,
            ["open: 10000 requests/s (3333.333 iterations/s of 3 requests) uniform, 100 connections × \
              512 streams, then queue, HTTP/2, 5 threads, for 10s"]
        );
    }

    #[test]
    fn familiar_letters_for_duration_and_rate() {
        for (args, duration, rate) in [
            (["-z", "5s"], Some("5s"), None),
            (["-D", "5s"], Some("5s"), None),
            (["-q", "7"], None, Some("7")),
        ] {
            let args = ["plimsoll", "run", "http://a/"].into_iter().chain(args);
            let Command::Run(run) = Cli::try_parse_from(args).unwrap().command else { panic!("not a run") };
            let text = |given: &Option<RawValue>| given.as_ref().map(|given| given.text.clone());
            let patch = &run.plan.settings.patch;
            let owned = |text: Option<&str>| text.map(str::to_owned);
            assert_eq!((text(&patch.duration), text(&patch.rate)), (owned(duration), owned(rate)));
        }
    }
}
