//! Flags of `plimsoll agent` and `plimsoll fleet`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use plimsoll_fleet::{AllowedScripts, AllowedTarget};

use crate::args::fleet::BrokerArgs;
use crate::args::output::{OutputFormat, TableOutputFormat};
use crate::args::run::RunArgs;
use crate::args::runs::ExportFormat;

/// Flags of `plimsoll agent`.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    #[command(flatten)]
    pub(crate) broker: BrokerArgs,
    /// Serve a broker without a key: whoever reaches the broker may then give orders to this agent
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Name of this agent: letters, digits, `-` and `_` [default: the name in --creds, or the machine's]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Folder of its runs and their history [default: agents/NAME in the user's data folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Allow load on this host only: HOST, HOST:PORT, or *.DOMAIN; repeatable [default: all]
    ///
    /// Holds for every coordinator: a run with another target, or with servers that its plan does not name,
    /// is refused.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow: Vec<AllowedTarget>,
    /// Let plans have scripts: sandboxed, or system for those that open files [default: none]
    ///
    /// Whoever may give this agent a plan with scripts of the system may run any program as this user.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "sandboxed")]
    pub(crate) allow_scripts: Option<ScriptsAllowed>,
    /// Refuse runs whose shard here exceeds this rate, such as 500/s
    ///
    /// Holds for every coordinator. Runs without a rate are refused, too.
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate: Option<String>,
}

/// Scripts that an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScriptsAllowed {
    /// Without the system's library
    Sandboxed,
    /// With the system's library, where the coordinator asks for it
    System,
}

impl From<ScriptsAllowed> for AllowedScripts {
    fn from(allowed: ScriptsAllowed) -> Self {
        match allowed {
            ScriptsAllowed::Sandboxed => Self::Sandboxed,
            ScriptsAllowed::System => Self::System,
        }
    }
}

/// Flags of `plimsoll fleet`.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(crate) what: FleetCommand,
}

/// The subcommands of `fleet`.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Start a NATS broker with keys for agents and coordinators, and print the commands that use it
    ///
    /// Needs `nats-server`, on the path or named by PLIMSOLL_NATS_SERVER. An agent may publish below its own
    /// name only, and receive its own orders; a coordinator may give orders. Keys and configuration are in
    /// the folder, and stay there for the next `up`.
    Up(FleetUpArgs),
    /// List the agents that can be reached
    List(FleetListArgs),
    /// Carry out a plan on a fleet: the same as `run --fleet URL`
    Run(Box<RunArgs>),
    /// Merge the saved results of agents into the result of a run whose coordinator has gone
    Collect(FleetCollectArgs),
    /// Stop the broker that `up` has started
    Down(FleetDownArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FleetUpArgs {
    /// Address to listen on: IP:PORT; port 0 takes a free one
    ///
    /// Addresses other than those of loopback need --tls.
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:4222")]
    pub(crate) listen: String,
    /// Names of the agents that get a key
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_values = ["agent-1", "agent-2", "agent-3"])]
    pub(crate) agents: Vec<String>,
    /// Encrypt with a new certificate for this name or address of the broker; repeatable
    #[arg(long, value_name = "HOST")]
    pub(crate) tls: Vec<String>,
    #[command(flatten)]
    pub(crate) place: FleetPlaceArgs,
}

/// The folder of a broker's files.
#[derive(Clone, Debug, Args)]
pub(crate) struct FleetPlaceArgs {
    /// Folder of keys, configuration and messages of the broker
    #[arg(long, value_name = "FOLDER", default_value = "fleet")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct FleetDownArgs {
    #[command(flatten)]
    pub(crate) place: FleetPlaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FleetListArgs {
    #[command(flatten)]
    pub(crate) broker: BrokerArgs,
    /// Format of the list
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = TableOutputFormat::Text)]
    pub(crate) output: TableOutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct FleetCollectArgs {
    /// The run, by the id that its command and `fleet list` print
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) broker: BrokerArgs,
    /// Format on stdout, or in the file
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    #[arg(default_value_t = ExportFormat::Run(OutputFormat::Summary))]
    pub(crate) output: ExportFormat,
    /// File to write [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}
