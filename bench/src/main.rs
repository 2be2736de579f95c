//! Paired benchmarks against installed peers: how a claim of speed is made.
//!
//! The server runs on one core and the tools take turns on another, within one run, because the speed of a
//! virtual machine drifts by a third over minutes: only the ratio of neighbouring runs is compared. The
//! figure is the CPU time of the whole tool process per completed request (`wait4`), not the rate, which
//! depends on the server.
//!
//! ```text
//! cargo run --release -p bench -- h1 --vs wrk -c 1,64,1000,10000
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a command")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock and waits")]

mod cases;
mod child;
mod machine;
mod pairs;
mod server;
mod table;
mod tool;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;

use crate::cases::{Case, Request};
use crate::server::ServerKind;
use crate::tool::Peer;

/// Compare the CPU cost per request of plimsoll with that of another tool
#[derive(Debug, Parser)]
#[command(name = "bench", max_term_width = 100)]
struct Arguments {
    /// What to compare
    #[arg(value_enum)]
    case: Case,
    /// The other tool [default: wrk; h2load for the case rate]
    #[arg(long, value_enum, value_name = "TOOL")]
    vs: Option<Peer>,
    /// Connections, one table row block each [default: 64; for memory 100,10000]
    #[arg(short, long, value_delimiter = ',', value_name = "N,…")]
    connections: Vec<u32>,
    /// Total rates of the case rate
    #[arg(long, value_delimiter = ',', value_name = "R,…", default_values_t = [5_000, 50_000])]
    rate: Vec<u32>,
    /// The server, where the case leaves a choice
    #[arg(long, value_enum)]
    server: Option<ServerKind>,
    /// Pairs of runs
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Seconds of one run [default: 5; for memory 60]
    #[arg(short, long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
    duration: Option<u32>,
    /// Core of the server, and core of the tools
    #[arg(long, value_delimiter = ',', num_args = 1, default_values_t = [0, 1], value_name = "SERVER,TOOL")]
    cores: Vec<u32>,
    /// Use this plimsoll instead of building one with the release profile
    #[arg(long, value_name = "PATH")]
    plimsoll: Option<PathBuf>,
    /// Further flags for plimsoll, such as `--backend epoll`
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), String> {
    let [server_core, tool_core] = arguments.cores[..] else {
        return Err("--cores takes two numbers, such as 0,1".to_owned());
    };
    let plimsoll = match arguments.plimsoll {
        Some(path) => path,
        None => build_plimsoll()?,
    };
    let request = Request {
        case: arguments.case,
        peer: arguments.vs,
        connections: arguments.connections,
        rates: arguments.rate,
        server: arguments.server,
        pairs: arguments.pairs,
        duration_s: arguments.duration,
        flags: arguments.flags,
        plimsoll,
        server_core,
        tool_core,
    };
    child::raise_descriptors()?;
    let experiments = request.experiments()?;
    request.require_programs(&experiments)?;
    let scratch = Scratch::new()?;
    println!("{}", machine::describe(&request, &experiments));
    for experiment in &experiments {
        println!("{}", experiment.carry_out(&request, scratch.path())?);
    }
    Ok(())
}

/// Builds the release binary, which is beside this one.
fn build_plimsoll() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", "plimsoll-cli"])
        .current_dir(root)
        .status()
        .map_err(|error| format!("cargo could not be run: {error}"))?;
    if !status.success() {
        return Err("plimsoll could not be built".to_owned());
    }
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let built = this.with_file_name("plimsoll");
    if built.exists() {
        Ok(built)
    } else {
        Err(format!(
            "{} is missing: run this with --release, or name a binary with --plimsoll",
            built.display()
        ))
    }
}

/// A folder for configurations and outputs that is gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("plimsoll-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that stays behind does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
