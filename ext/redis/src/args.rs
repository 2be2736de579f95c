//! The flags of `plimsoll redis`.

use clap::Args;
use plimsoll_app::{Failure, LoadArgs, MadePlan, RunArgs};
use plimsoll_plan::Problem;

use crate::load::{Commands, Keys, RedisLoad};

/// Line of the command in the list of commands.
pub(crate) const SUMMARY: &str = "Put load on a Redis server: SET, GET and INCR, or any command";

/// Description of the command.
pub(crate) const DETAILS: &str = "\
By default a SET and a GET of a key of its own, whose value is compared, for 10 seconds, on 64 connections. \
A command behind the server is sent in place of that: `plimsoll redis HOST:PORT GET 'user:${sequence}'`. \
`--pipeline 16` sends ahead of the replies. The flags make a plan, which --print-plan shows; all flags of \
`run` hold. `plimsoll target redis` is a server to try it on.";

const USAGE: &str = "plimsoll redis [OPTIONS] [HOST:PORT] [COMMAND]...";

/// The server where none is named.
const SERVER: &str = "127.0.0.1:6379";

#[derive(Debug, Args)]
// `--key` of this command chooses keys, so the key of the client certificate is `--client-key`.
#[command(override_usage = USAGE, mut_arg("key", |arg| arg.long("client-key")))]
pub(crate) struct RedisArgs {
    /// Mix of commands: set+get, one of set, get, incr and del, or weights such as set=1,get=9
    #[arg(long, value_name = "MIX", help_heading = "Workload", default_value = "set+get")]
    mix: String,
    /// Choice of keys: sequential, random or zipf [default: sequential for set+get, random for a mix]
    #[arg(long = "key", value_name = "PATTERN", help_heading = "Workload")]
    key_pattern: Option<String>,
    /// Number of keys [default: sequential: a new one each time; random, zipf: 10000]
    #[arg(long, value_name = "N", help_heading = "Workload")]
    keys: Option<u64>,
    /// Bytes of a value: 100, 100-2000 (uniform) or exp:500
    #[arg(long, value_name = "BYTES", help_heading = "Workload", default_value = "100")]
    value_size: String,
    /// Print the plan that the flags make, and exit
    #[arg(long, help_heading = "Workload")]
    print_plan: bool,
    #[command(flatten)]
    run: RunArgs,
}

impl LoadArgs for RedisArgs {
    fn run(&self) -> &RunArgs {
        &self.run
    }

    fn print_plan(&self) -> bool {
        self.print_plan
    }

    fn plan(&self) -> Result<MadePlan, Failure> {
        let load = self.to_load().map_err(Failure::usage)?;
        Ok(MadePlan::new("the plan of `plimsoll redis`", load.document().to_string(), &[]))
    }
}

impl RedisArgs {
    fn to_load(&self) -> Result<RedisLoad, Problem> {
        let (server, command) = match self.run.arguments() {
            [] => (SERVER, &[][..]),
            [server, command @ ..] => (server.as_str(), command),
        };
        let server = match server.contains("://") {
            true => server.to_owned(),
            false => format!("redis://{server}"),
        };
        let commands = match command {
            [] => Commands::parse(&self.mix).map_err(|hint| wrong("--mix", &self.mix, hint))?,
            // One word with spaces is a command in quotes.
            [text] if text.contains(' ') => {
                Commands::One(crate::words::split(text).map_err(|error| wrong("the command", text, &error))?)
            }
            words => Commands::One(words.to_vec()),
        };
        let settings = self.run.settings();
        let default = if commands == Commands::SetGet { "sequential" } else { "random" };
        let pattern = self.key_pattern.as_deref().unwrap_or(default);
        Ok(RedisLoad {
            server,
            commands,
            keys: Keys::parse(pattern, self.keys).map_err(|hint| wrong("--key", pattern, hint))?,
            value_size: self.value_size.clone(),
            has_end: settings.duration.is_some()
                || settings.iterations.is_some()
                || settings.stages.is_some()
                || settings.user_stages.is_some(),
            has_connections: settings.connections.is_some()
                || settings.users.is_some()
                || settings.user_stages.is_some(),
        })
    }
}

fn wrong(flag: &str, value: &str, hint: &str) -> Problem {
    Problem::new(format!("{flag}: `{}` is not understood", value.escape_debug())).with_hint(hint)
}
