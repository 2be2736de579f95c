//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

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
    /// Hostile servers of the case attack whose protocol or name contains this
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

/// A case that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// Closed keep-alive GET against the sink
    H1,
    /// The same against a server that needs 20 µs of CPU per request
    Slow,
    /// The same against nginx
    Nginx,
    /// POST with a unique body of 300 bytes per request
    Post,
    /// GET over TLS 1.3, against the sink and against nginx
    Tls,
    /// The open model: 5,000/s against h2load, and the start lag of --precise
    Rate,
    /// Memory of 10,000 idle connections, and growth over time
    Memory,
    /// HTTP/2 without TLS, GET, against the sink, nghttpd and nginx
    H2,
    /// HTTP/2 over TLS 1.3, GET, against the sink
    H2tls,
    /// Create, update and delete resources over HTTP/2, with replies that never come and failures
    Crud,
    /// Memory of 1,000 HTTP/2 connections with 100 streams each
    H2memory,
    /// Cost of steps with variables, an extraction and a check above a static request, with and without Lua
    Scenario,
    /// wrk's scripts, in Plimsoll and in wrk
    Scripts,
    /// PUT and GET of the cache protocol, beside SET and GET by redis-benchmark
    Cache,
    /// Batches of observability data: made, sent, and at the rates of Arc's guide
    Ingest,
    /// Cost of creating, changing and deleting the items of a REST resource above plain requests
    Resource,
    /// Queries of a canister that were signed before the run, beside plain requests
    Canister,
    /// Cost of every output turned on above none
    Observers,
    /// Hostile servers against Plimsoll on both backends, and damaged requests against its servers
    Attack,
    /// All of these but attack
    All,
}

impl Case {
    /// The cases that are asked for, each once, in the order of their definition.
    pub(crate) fn expand(asked: &[Self]) -> Vec<Self> {
        let single = Self::value_variants().iter().filter(|case| **case != Self::All);
        let all = |case: &Self| asked.contains(&Self::All) && *case != Self::Attack;
        single.copied().filter(|case| asked.contains(case) || all(case)).collect()
    }
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
        assert_eq!(Case::expand(&[Case::All, Case::H1]).len(), Case::value_variants().len() - 2);
        assert_eq!(Case::expand(&[Case::All, Case::Attack]).len(), Case::value_variants().len() - 1);
        assert_eq!(Case::expand(&[Case::Tls, Case::H1, Case::Tls]), [Case::H1, Case::Tls]);
    }
}
