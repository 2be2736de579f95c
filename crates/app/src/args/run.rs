//! Flags of `plimsoll run`.

use std::path::PathBuf;

use clap::Args;
use plimsoll_core::Nanos;
use plimsoll_document::{Field, Problem, Problems, Settings};
use plimsoll_plan::PlanPatch;

use crate::args::control::ControlArgs;
use crate::args::fleet::{AgentRunArgs, FleetRunArgs};
use crate::args::live::LiveArgs;
use crate::args::output::OutputArgs;
use crate::args::plan::PlanArgs;
use crate::args::save::SaveArgs;
use crate::args::verify::EvidenceArgs;

/// The flags of the command itself: those of every run, and one that makes none.
#[derive(Debug, Args)]
pub(crate) struct RunCommandArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Print the plan that the flags make, and exit
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub(crate) print_plan: bool,
}

/// Flags of a run: those of its plan, and those beside it.
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// Put the requests of the plan on the built-in server first, and state how much of that speed was used
    #[arg(long, help_heading = "Instrument", hide_short_help = true)]
    pub(crate) calibrate: bool,
    /// Make this many runs, each with new connections and the next seed, and report how they differ
    ///
    /// One run does not show how runs differ, however long it is. From 5 runs on their mean has an
    /// interval. `compare` takes the result as a group of runs. It ends as the worst of them.
    #[arg(long, value_name = "N", help_heading = "Instrument", hide_short_help = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: Option<u32>,
    /// Wait so long between the runs of --repeat, for a server that has work left from the one before
    #[arg(long, value_name = "TIME", help_heading = "Instrument", hide_short_help = true)]
    #[arg(requires = "repeat", value_parser = parse_pause)]
    pub(crate) pause: Option<Nanos>,
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
    /// Add this many clients beside the load that send and read slowly, as over a bad link
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
    pub(crate) evidence: EvidenceArgs,
    #[command(flatten)]
    pub(crate) fleet: FleetRunArgs,
    #[command(flatten)]
    pub(crate) agent: AgentRunArgs,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    #[command(flatten)]
    pub(crate) save: SaveArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl RunArgs {
    /// Returns the URLs, servers or names that the command line has beside the flags, in order.
    pub fn arguments(&self) -> &[String] {
        self.plan.urls()
    }

    /// Returns the words that the command line has behind `--`, in order.
    pub fn words_behind(&self) -> &[String] {
        self.plan.words_behind()
    }

    /// Returns the number of iterations to measure, if the flags give one.
    pub fn iterations(&self) -> Option<u64> {
        self.plan.iterations()
    }

    /// Returns the number of iterations that may be under way at the same time, with this many connections
    /// unless the flags give a number: no limit, if they do so in a way that only a plan understands.
    pub fn at_once(&self, connections: u32) -> u64 {
        self.plan.at_once(connections)
    }

    /// Returns the settings of a plan that give its load a length and connections, as far as the flags give
    /// none.
    pub fn missing_settings(&self, duration: &str, connections: u32) -> Settings {
        let has_end = self.plan.has_end() || self.settings().user_stages.is_some();
        let has_connections = self.settings().connections.is_some() || self.plan.has_users();
        let mut missing = Settings::default();
        if !has_end {
            missing.duration = Field::text(duration);
        }
        if !has_connections {
            missing.connections = Field::text(connections.to_string());
        }
        missing
    }

    /// Returns `true` if the flags give a rate of arrivals.
    pub fn has_rate(&self) -> bool {
        self.plan.has_rate()
    }

    /// Returns `true` if the flags give a number of users.
    pub fn has_users(&self) -> bool {
        self.plan.has_users()
    }

    /// Returns `true` if nothing but results and problems is to be told.
    pub const fn is_quiet(&self) -> bool {
        self.output.quiet
    }

    /// Returns the flags that are settings of the plan.
    pub fn settings(&self) -> &PlanPatch {
        &self.plan.settings.patch
    }

    /// Refuses flags that are of a single run where `flag` asks for several, but for those in `taken`.
    ///
    /// # Errors
    /// All of these flags.
    pub(crate) fn admit_several(&self, flag: &str, taken: &[&str]) -> Result<(), Problems> {
        let singly = [
            ("--repeat", self.repeat.is_some()),
            ("--calibrate", self.calibrate),
            ("--slices", self.slices),
            ("--probe", self.probe.is_some()),
            ("--slow-clients", self.slow_clients.is_some()),
            ("--evidence", self.evidence.evidence.is_some()),
            ("--fleet", self.fleet.is_given()),
        ];
        let mut problems = Problems::default();
        for (other, _) in singly.iter().filter(|(other, given)| *given && !taken.contains(other)) {
            let problem =
                Problem::new(format!("{flag} and {other} exclude each other: that is of a single run"));
            problems.push(problem.with_hint("make the runs one by one, or leave out one of them"));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// A pause between runs.
fn parse_pause(text: &str) -> Result<Nanos, String> {
    plimsoll_schedule::parse_duration(text).map_err(|error| error.to_string())
}
