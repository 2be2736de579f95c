//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::case::Case;
use crate::fuzzing::FuzzOptions;

/// Measures what Plimsoll costs per request, paired in one run against the installed peers. Prints Markdown
#[derive(Debug, Parser)]
#[command(name = "bench", max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Options {
    /// Task to carry out instead of a measurement
    #[command(subcommand)]
    pub(crate) task: Option<Task>,
    /// Cases to measure
    #[arg(value_enum, required = true)]
    pub(crate) cases: Vec<Case>,
    /// The peer [default: the one that the case's limit names]
    #[arg(long, value_enum, value_name = "TOOL")]
    pub(crate) vs: Option<Peer>,
    /// Pairs of runs, whose order alternates
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pairs: u32,
    /// Length of every run
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Connections of the case h1
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_value = "1,64,1000,10000")]
    pub(crate) connections: Vec<u32>,
    /// Seconds at which the case memory looks for growth
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], default_values = ["10", "60"])]
    pub(crate) growth: Vec<u32>,
    /// Requests to each hostile server of the case attack
    #[arg(long, value_name = "N", default_value = "200", value_parser = clap::value_parser!(u32).range(20..))]
    pub(crate) requests: u32,
    /// Damaged requests of the case attack
    #[arg(long, value_name = "N", default_value = "280000")]
    pub(crate) damaged: u64,
    /// Hostile servers of the case attack, cells of the case truth, and rows of the case shapes whose name
    /// contains this; outputs of the case observers that are measured: all, ui, page
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) only: String,
    /// Core of the server
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) server_core: usize,
    /// Core of the tools
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) tool_core: usize,
    /// Plimsoll's --backend, on the side of the load
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// Build Plimsoll like this, and measure that
    #[arg(long, value_enum, default_value_t = Profile::Dist)]
    pub(crate) profile: Profile,
    /// Measure this program instead of building one
    #[arg(long, value_name = "PATH")]
    pub(crate) plimsoll: Option<PathBuf>,
    /// Nice value for the scheduling group of server and tools, from -20 to 19; negative ones need root
    ///
    /// Where the kernel groups processes by session, nice has no effect from one session to another, and this
    /// has.
    #[arg(long, value_name = "NICE", allow_negative_numbers = true)]
    pub(crate) autogroup_nice: Option<i32>,
}

/// Tasks of this program other than measurements.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum Task {
    /// Run the fuzz targets, and add what came of them to docs/assurance.md
    Fuzz(FuzzOptions),
    /// Relay connections to a server, as a part of a case
    #[command(hide = true)]
    Relay {
        /// Host and port of the server
        to: String,
    },
    /// Simulate worlds whose seeds were not tried before, and add them to docs/assurance.md
    Worlds {
        /// Number of worlds
        #[arg(value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        worlds: u64,
        /// Build the tests like this: `dev` is how `cargo test` builds them
        #[arg(long, value_name = "PROFILE", default_value = "dev")]
        profile: String,
    },
}

/// The tools to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    Wrk,
    H2load,
}

/// Build profile of Plimsoll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// As it ships: whole-program optimisation, some minutes to build
    Dist,
    /// Faster to build
    Release,
}

impl Profile {
    /// Name of the profile, and of its directory below `target`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dist => "dist",
            Self::Release => "release",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
        let options = Options::try_parse_from(["bench", "h1", "--vs", "wrk"]).unwrap();
        assert_eq!((options.pairs, options.seconds, options.vs), (5, 5, Some(Peer::Wrk)));
        assert_eq!((options.connections, options.growth), (vec![1, 64, 1000, 10_000], vec![10, 60]));
        assert!(Options::try_parse_from(["bench", "h1", "--pairs", "0"]).is_err());
        assert!(Options::try_parse_from(["bench"]).is_err());
        let options = Options::try_parse_from(["bench", "worlds", "4000"]).unwrap();
        assert_eq!(
            (options.task, options.cases),
            (Some(Task::Worlds { worlds: 4000, profile: "dev".to_owned() }), vec![])
        );
        assert!(Options::try_parse_from(["bench", "worlds", "0"]).is_err());
    }

    #[test]
    fn all_is_every_case_once() {
        assert_eq!(Case::expand(&[Case::All, Case::H1]).len(), Case::value_variants().len() - 4);
        assert_eq!(Case::expand(&[Case::All, Case::Attack]).len(), Case::value_variants().len() - 3);
        assert_eq!(Case::expand(&[Case::Tls, Case::H1, Case::Tls]), [Case::H1, Case::Tls]);
    }
}
