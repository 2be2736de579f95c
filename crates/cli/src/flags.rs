//! The command line: which flags there are, and what they are called.
//!
//! Flags are not parsed here beyond their text: `plimsoll_plan` does that, so that all problems of a command
//! are reported together and a plan file will be read by the same rules.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Parser, Subcommand, ValueEnum};
use plimsoll_plan::{PlanPatch, Problems, RawValue, ScriptHost, is_plan_name};
use plimsoll_schedule::parse_count;

use crate::cache_flags::CacheArgs;
use crate::calibrate::CalibrateArgs;
use crate::canister_flags::CanisterArgs;
use crate::cluster_flags::ClusterArgs;
use crate::compare_flags::{CompareArgs, HistoryArgs};
use crate::control_flags::ControlArgs;
use crate::crud_flags::CrudLoadArgs;
use crate::export_flags::MonitoringArgs;
use crate::find_flags::FindArgs;
use crate::help::{COMPARE_HELP, FIND_HELP, TEMPLATE_HELP};
use crate::import_flags::ImportArgs;
use crate::ingest_flags::IngestArgs;
pub(crate) use crate::output_flags::{OutputArgs, OutputFormat};
use crate::reference::{CompletionsArgs, ManArgs, ReferenceArgs};
use crate::report::ReportArgs;
use crate::rotation::{RotateArgs, Rotation};
use crate::runs_flags::{ExportArgs, RmArgs, RunsArgs, ShowArgs};
use crate::saving::SaveArgs;
pub(crate) use crate::schema_flags::{SchemaArgs, SchemaOf};
use crate::script_host::Terminal;
use crate::setting_args::{LiveOutputSection, PlanSection, SettingArgs};
use crate::sink_flags::SinkArgs;
use crate::target_flags::TargetArgs;
use crate::watch_flags::WatchArgs;

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

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
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
    Demo(crate::demo::DemoArgs),
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

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// Put the requests of the plan on the built-in server first, and state how much of that speed was used
    #[arg(long, help_heading = "Instrument", hide_short_help = true)]
    pub(crate) calibrate: bool,
    /// Make so many runs, each with new connections and the next seed, and tell how they differ
    ///
    /// What differs between runs is not seen within one, however long it is. From 5 runs on their mean has an
    /// interval. `compare` takes the result as a group of runs. It ends as the worst of them.
    #[arg(long, value_name = "N", help_heading = "Instrument", hide_short_help = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: Option<u32>,
    /// Keep the times of up to 30 parts of the run in the JSON, so that `compare` can compare two single runs
    #[arg(long, help_heading = "Instrument", hide_short_help = true)]
    pub(crate) slices: bool,
    /// Send some requests of the plan beside the load, by a thread of their own, and compare [default rate:
    /// 100/s]
    ///
    /// The thread has its own connections and nothing else to do, so that its times are those of the servers.
    /// Where the load's times are longer, the generator has added to them. Its requests are in no other
    /// figure.
    #[arg(long, value_name = "RATE", num_args = 0..=1, require_equals = true, default_missing_value = "100")]
    #[arg(help_heading = "Instrument", hide_short_help = true)]
    pub(crate) probe: Option<String>,
    /// Let so many clients beside the load send and read slowly, as over a bad link, and see who suffers
    ///
    /// Each has a connection of its own and makes the requests of the plan one after the other. Their
    /// requests are in no figure of the load. A server that has a thread or a process for each connection can
    /// run out of them; one that is well made does not notice.
    #[arg(
        long,
        visible_alias = "slow-client",
        value_name = "N",
        help_heading = "Requests",
        hide_short_help = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) slow_clients: Option<u32>,
    /// Bytes per second that a slow client sends, and reads [default: 100]
    #[arg(long, value_name = "SIZE", help_heading = "Requests", hide_short_help = true)]
    pub(crate) slow_client_rate: Option<String>,
    /// Write the report as a page of HTML with charts, too
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    #[command(flatten)]
    pub(crate) save: SaveArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Everything that a plan is made of.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// A plan file (- is stdin), or URLs, which share the load evenly
    ///
    /// A plan is YAML or JSON, and its name ends in .yaml, .yml or .json. A plan without scenarios goes
    /// together with URLs: its settings apply to them.
    #[arg(value_name = "PLAN|URL")]
    urls: Vec<String>,
    /// The name and the text of a plan that a workload's flags come to.
    #[arg(skip)]
    pub(crate) made: OnceCell<(String, String)>,
    /// Run this JSON configuration of h2loadrunner; flags override it
    #[arg(long, value_name = "FILE", conflicts_with = "urls", hide_short_help = true)]
    pub(crate) h2loadrunner: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: SettingArgs<PlanSection>,
    /// Arguments for the `init` of the script
    #[arg(last = true, value_name = "ARGUMENT", help_heading = "Request", hide_short_help = true)]
    script_arguments: Vec<String>,
}

/// Flags for output while the run goes on.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Live output")]
pub(crate) struct LiveArgs {
    #[command(flatten)]
    pub(crate) files: SettingArgs<LiveOutputSection>,
    /// Log only this share of the requests, chosen at random: 1% or 1/100
    #[arg(long, value_name = "SHARE", hide_short_help = true, requires = "log")]
    pub(crate) log_sample: Option<String>,
    /// Write so many failed requests at most [default: 1000]
    #[arg(
        long,
        value_name = "N",
        hide_short_help = true,
        requires = "failed",
        allow_negative_numbers = true
    )]
    pub(crate) failed_limit: Option<String>,
    #[command(flatten)]
    rotate: RotateArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    #[command(flatten)]
    pub(crate) exports: MonitoringArgs,
}

impl LiveArgs {
    /// Returns the rotation of the files that are written during the run.
    ///
    /// # Errors
    /// Every problem with the flags.
    pub(crate) fn rotation(&self) -> Result<Rotation, Problems> {
        let files = [self.stats(), self.log(), self.failed()];
        self.rotate.rotation(files.iter().any(Option::is_some))
    }

    /// The same, with the files that a plan names where no flag does.
    pub(crate) fn or(&self, patch: Option<&PlanPatch>) -> Self {
        Self { files: self.files.or(patch), ..self.clone() }
    }

    /// The file for statistics.
    pub(crate) fn stats(&self) -> Option<&Path> {
        path(&self.files.patch.stats)
    }

    /// The file that gets a line for every request.
    pub(crate) fn log(&self) -> Option<&Path> {
        path(&self.files.patch.log)
    }

    /// The file for failed requests.
    pub(crate) fn failed(&self) -> Option<&Path> {
        path(&self.files.patch.failed)
    }
}

fn path(given: &Option<RawValue>) -> Option<&Path> {
    given.as_ref().map(|given| Path::new(&given.text))
}

/// Values that a run takes from its environment, besides its flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunEnvironment {
    /// The seed of a run without `--seed`.
    pub(crate) seed: u64,
    /// `SSLKEYLOGFILE`.
    pub(crate) key_log: Option<PathBuf>,
    /// Settings in variables, by the names of the variables.
    pub(crate) settings: Vec<(String, String)>,
    /// `LUA_PATH`.
    pub(crate) lua_path: Option<String>,
    /// `true` if the output of scripts is not shown.
    pub(crate) quiet: bool,
}

impl PlanArgs {
    /// The URLs, and what may be the name of a plan file.
    pub(crate) fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Returns `true` if a plan file, a URL or a configuration of h2loadrunner is named.
    pub(crate) fn has_urls(&self) -> bool {
        !self.urls.is_empty() || self.h2loadrunner.is_some()
    }

    /// Iterations to measure, if that is a number.
    pub(crate) fn iterations(&self) -> Option<u64> {
        self.settings.patch.iterations.as_ref().and_then(|given| parse_count(&given.text).ok())
    }

    /// Iterations that may be under way at the same time, with so many connections where nothing else is
    /// said: no limit, if it is said in a way that only a plan understands.
    pub(crate) fn at_once(&self, connections: u32) -> u64 {
        let number = |given: &Option<RawValue>, default: u64| match given {
            None => default,
            Some(given) => given.text.parse().unwrap_or(u64::MAX),
        };
        let settings = &self.settings.patch;
        if settings.users.is_some() || settings.user_stages.is_some() {
            return u64::MAX;
        }
        let connections = number(&settings.connections, u64::from(connections));
        connections.saturating_mul(number(&settings.pipeline, 1))
    }

    /// Returns `true` if the flags give the duration of the load.
    pub(crate) fn has_duration(&self) -> bool {
        self.settings.patch.duration.is_some()
    }

    /// Returns `true` if the flags say when the load ends.
    pub(crate) fn has_end(&self) -> bool {
        self.has_duration()
            || self.settings.patch.iterations.is_some()
            || self.settings.patch.stages.is_some()
    }

    /// Returns `true` if the flags say how much load there is over time.
    pub(crate) fn has_rate(&self) -> bool {
        self.settings.patch.rate.is_some() || self.settings.patch.stages.is_some()
    }

    /// The plan file, the environment and the flags. The first argument that names a plan file is it.
    pub(crate) fn to_command(&self, mut surroundings: RunEnvironment) -> plimsoll_plan::Command {
        let environment = std::mem::take(&mut surroundings.settings);
        let mut flags = self.to_patch(surroundings);
        let plan = flags.urls.iter().position(|given| is_plan_name(&given.text));
        let plan = plan.map(|index| flags.urls.remove(index).text);
        plimsoll_plan::Command { plan, environment, flags }
    }

    /// The flags as a patch of the plan, with their names for messages.
    fn to_patch(&self, surroundings: RunEnvironment) -> PlanPatch {
        // Those of a plan that was made are in it.
        let urls = if self.made.get().is_some() { &[][..] } else { &self.urls };
        PlanPatch {
            urls: urls.iter().map(|url| RawValue::new("URL", url.as_str())).collect(),
            default_seed: surroundings.seed,
            key_log: surroundings.key_log,
            script_arguments: self.script_arguments.clone(),
            lua_path: surroundings.lua_path,
            script_host: Some(ScriptHost(Arc::new(Terminal { quiet: surroundings.quiet }))),
            // What the flags of outputs and of control give is read where they are.
            ..self.settings.patch.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::*;
    use crate::command_word::with_command;
    use crate::describe;
    use clap::CommandFactory as _;
    use plimsoll_plan::{Files, KeyLogFile, Plan, Problem, Setting, SettingKind};

    fn rewritten(args: &[&str]) -> Result<Vec<String>, Problem> {
        let args = std::iter::once("plimsoll").chain(args.iter().copied()).map(OsString::from).collect();
        let args = with_command(args)?;
        Ok(args.into_iter().skip(1).map(|arg| arg.into_string().unwrap()).collect())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        let commands: Vec<_> = Cli::command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
        let (mut known, mut defined) = (crate::command_word::commands().collect::<Vec<_>>(), commands);
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
            let patch = run.plan.to_patch(RunEnvironment::default());
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
        let patch = run.plan.to_patch(RunEnvironment {
            seed: 90,
            key_log: Some("91".into()),
            lua_path: Some("92".to_owned()),
            ..RunEnvironment::default()
        });
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
        let plan = Plan::resolve(run.plan.to_patch(RunEnvironment::default()), &Data).unwrap();
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
