//! The command line: which flags there are, and what they are called.
//!
//! Flags are not parsed here beyond their text: `plimsoll_plan` does that, so that all problems of a command
//! are reported together and a plan file will be read by the same rules.

use clap::{Parser, Subcommand};

use crate::args::ab::{AB_HELP, AbArgs, LONGEST_COMPARISON, of_comparisons};
use crate::args::calibrate::CalibrateArgs;
use crate::args::compare::{CompareArgs, HistoryArgs};
use crate::args::document::{DocumentArgs, of_one_iteration};
use crate::args::extension::AddedLoad;
use crate::args::find::{CONNECTIONS_OF_TRIALS, FindArgs, of_trials};
use crate::args::fleet_command::{AgentArgs, FleetArgs};
use crate::args::help::ROOT_HELP;
use crate::args::help::{COMPARE_HELP, FIND_HELP, TEMPLATE_HELP};
use crate::args::import::ImportArgs;
use crate::args::output::of_searches;
use crate::args::record::RecordArgs;
use crate::args::reference::{CompletionsArgs, ManArgs, ReferenceArgs};
use crate::args::report::ReportArgs;
use crate::args::run::RunCommandArgs;
use crate::args::runs::{ExportArgs, MergeArgs, RmArgs, RunsArgs, ShowArgs};
pub(crate) use crate::args::schema::SchemaArgs;
use crate::args::server::sink::SinkArgs;
use crate::args::server::target::TargetArgs;
use crate::args::ui::UiArgs;
use crate::args::verify::VerifyArgs;
use crate::args::workload::WorkloadCommand;
use crate::args::workload::cluster::ClusterArgs;
use crate::base::color::ColorChoice;

/// Finds and proves the load line of a server: a load generator whose numbers can be believed
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(after_help = ROOT_HELP)]
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
    /// 5k/s or 300/m, sizes 64KiB. A rate is always for the whole run, except for --rps.
    ///
    /// A plan file (YAML or JSON) has all of this and more; `plimsoll schema plan` describes it. Flags
    /// override its settings, and so do variables such as PLIMSOLL_RATE=5k: PLIMSOLL_ and the setting's name,
    /// lists with one value per line. Other variables of that kind are ignored, unless they look like a
    /// mistake.
    #[command(after_long_help = TEMPLATE_HELP)]
    Run(Box<RunCommandArgs>),
    /// Report all problems of a plan file, or that it is ok
    ///
    /// Does what `run` would do before it opens a connection, with the same flags.
    Check(Box<DocumentArgs>),
    /// Show the plan of a file, or of a URL and flags: each setting and its origin, steps, totals
    Explain(Box<DocumentArgs>),
    /// Carry out each scenario of a plan once, and show every request and response in full
    ///
    /// One iteration of each scenario, one after the other, with the values that steps take from responses
    /// and the check that failed. It is not a measurement: there are no figures, and nothing is saved.
    #[command(mut_args(of_one_iteration))]
    Try(Box<DocumentArgs>),
    #[command(flatten)]
    Workload(WorkloadCommand),
    #[command(flatten)]
    Added(AddedLoad),
    /// Find the highest rate at which a server meets its objectives: an interval, not a number
    ///
    /// Trials in the open model, each of the length -d (2s) or a multiple of it: rates grow until one breaks,
    /// and are bisected until the capacity is near; then it is estimated from trials at it and beside it. The
    /// lower end is tried once more, and again right after an overload. A rate that the generator cannot put
    /// on the server is not blamed on the server; after three such trials in a row the search ends.
    #[command(after_long_help = FIND_HELP)]
    #[command(mut_arg("output", of_searches), mut_arg("long", |flag| flag.hide(true)))]
    #[command(mut_arg("duration", of_trials), mut_arg("rate", |flag| flag.hide(true)))]
    #[command(mut_arg("connections", |flag| flag.help(CONNECTIONS_OF_TRIALS).long_help(CONNECTIONS_OF_TRIALS)))]
    #[command(mut_arg("stages", |flag| flag.hide(true)), mut_arg("rps", |flag| flag.hide(true)))]
    #[command(mut_arg("users", |flag| flag.hide_short_help(true)))]
    #[command(mut_arg("iterations", |flag| flag.hide_short_help(true)))]
    Find(Box<FindArgs>),
    /// Measure how much load this machine can generate, against the built-in server, and save it
    ///
    /// Measures requests per second and thread by protocol, TLS, connections, sizes and scripts, and the time
    /// that this machine adds to response times at half of that rate. Later runs report which share of it
    /// they used, and warn above 50 %. `run --calibrate` does the same with the requests of a plan.
    Calibrate(CalibrateArgs),
    /// Serve a page for the browser: edit plans, run them, watch the runs, and compare the results
    ///
    /// Prints the address to open, which works on this machine and for its user only. Plans are those of the
    /// folder; runs are separate processes, which go on when this one ends.
    Ui(UiArgs),
    /// Run the built-in server: it absorbs load, and can be slow, limited or faulty on purpose
    ///
    /// It speaks HTTP/1.1 and HTTP/2 on the same port: with TLS, ALPN chooses; without, the first bytes do
    /// (HTTP/2 with prior knowledge). Delays and faults apply to single requests, and so to single streams on
    /// HTTP/2.
    Sink(Box<SinkArgs>),
    /// Run a built-in server to test scenarios against
    Target(TargetArgs),
    /// Start the servers under test, break them under load, and check their contents
    ///
    /// A spec describes the nodes and how they start, the faults and the checks. See
    /// docs/clusters.md.
    Cluster(ClusterArgs),
    /// Wait for runs of a fleet, and carry out a shard of each
    ///
    /// Connects to the NATS broker of the fleet and listens on no port. Takes one run at a time, each in a
    /// separate process, and keeps its result.
    Agent(AgentArgs),
    /// Make load from several machines: manage their broker, agents and saved results
    ///
    /// `run --fleet URL` makes a run on them. See docs/guides/several-machines.md.
    Fleet(FleetArgs),
    /// Show a closed and an open run against the built-in server, 5 s each
    Demo(crate::args::demo::DemoArgs),
    /// Print a description of another tool as a plan file
    ///
    /// Notes on stderr name the parts that cannot be imported as they are.
    Import(ImportArgs),
    /// Record the requests of a browser or a program as a plan file, through a proxy
    ///
    /// Values that a response gives and later requests send, as tokens and new ids, become variables, and
    /// cookies those of the session. For https the client has to trust the proxy's own certificate.
    Record(RecordArgs),
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
    /// Say whether target B is slower or faster than A, by one run in which both have the same load
    ///
    /// A and B are two URLs, two plan files, or the two scenarios of one plan. Each iteration goes to A or B
    /// at random, and without a rate each has half of the users: both have the same load at the same time,
    /// and what changes on the machine or in the network changes for both. The run ends as soon as every
    /// figure has an answer, or at -d (2m).
    ///
    /// The intervals of the changes may be looked at at any time: with a probability of 95 %, they hold the
    /// truth at all times of a run. The same: the interval lies within what does not matter (--effect).
    /// Slower or faster: it does not hold zero. Undecided: it holds zero and changes that matter.
    #[command(mut_args(of_comparisons))]
    #[command(after_long_help = AB_HELP, mut_arg("duration", |flag| flag.help(LONGEST_COMPARISON).long_help(LONGEST_COMPARISON)))]
    Ab(Box<AbArgs>),
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
    /// Make results again from their evidence (`run --evidence`, `find --evidence`), and name what does not
    /// follow
    ///
    /// It needs no network. The signature shows that no byte was changed; then counts, percentiles,
    /// intervals, thresholds, the limit and the verdict are made again from the raw record, and compared.
    Verify(VerifyArgs),
    /// Make one result of the shards of a load (`run --shard`)
    ///
    /// Counts and histograms are added up exactly, and thresholds over the whole run are judged by the merged
    /// figures. It ends as the run of one machine would have.
    Merge(MergeArgs),
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
mod tests;
