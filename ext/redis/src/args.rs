//! The flags of `plimsoll redis`.

use clap::{Arg, Args};
use plimsoll_app::{Failure, LoadArgs, MadePlan, Note, RunArgs};
use plimsoll_core::figure;
use plimsoll_document::Problem;
use plimsoll_report::RunResult;

use crate::load::{Commands, Keys, RedisLoad};

/// Line of the command in the list of commands.
pub(crate) const SUMMARY: &str = "Put load on a Redis server: SET, GET and INCR, or any command";

/// Description of the command.
pub(crate) const DETAILS: &str = "\
By default a SET and a GET of a key of its own, whose value is compared, for 10 seconds, on 64 connections. \
A command behind the server is sent in place of that: `plimsoll redis HOST:PORT GET 'user:${sequence}'`. \
`--pipeline 16` sends ahead of the replies. The flags make a plan, which --print-plan shows; all flags of \
`run` hold. `plimsoll target redis` is a server to try it on.";

const WORDS_HELP: &str = "The server, host[:port] or a URL [default: 127.0.0.1:6379], and the words of a \
     command; behind `--` words may begin with `-`";

const USAGE: &str = "plimsoll redis [OPTIONS] [HOST:PORT] [COMMAND]...";

/// Bytes of a value that names its key, whichever that is.
const SHORTEST_MARKED: u32 = 48;

/// The server where none is named.
const SERVER: &str = "127.0.0.1:6379";

#[derive(Debug, Args)]
// `--key` of this command chooses keys, so the key of the client certificate is `--client-key`.
#[command(override_usage = USAGE, mut_arg("key", |arg| arg.long("client-key")))]
#[command(mut_arg("urls", words))]
// An argument that is changed goes behind the others, and this one has to be the last.
#[command(mut_arg("script_arguments", |arg| arg.hide(true)))]
pub(crate) struct RedisArgs {
    /// Mix of commands: set+get, one of set, get, incr and del, or weights such as set=1,get=9 [default:
    /// set+get]
    #[arg(long, value_name = "MIX", help_heading = "Workload")]
    mix: Option<String>,
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

/// The arguments: a server, and the words of a command.
fn words(arg: Arg) -> Arg {
    let arg = arg.allow_negative_numbers(true).value_name("SERVER|WORD");
    arg.help(WORDS_HELP).long_help(WORDS_HELP)
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

    fn notes(&self, result: &RunResult) -> Vec<Note> {
        let of_status = |status: &str| {
            let gets = result.by_step.iter().filter(|step| step.step == "GET");
            gets.filter_map(|step| step.statuses.get(status)).sum::<u64>()
        };
        let (hits, misses) = (of_status("200"), of_status("404"));
        let [found, missed, gets] = [hits, misses, hits + misses].map(figure::count);
        let text = format!("{found} hits, {missed} misses of {gets} GETs");
        if misses == 0 { Vec::new() } else { vec![Note { code: "hits", text, is_told: false }] }
    }
}

impl RedisArgs {
    fn to_load(&self) -> Result<RedisLoad, Problem> {
        let all: Vec<&String> = self.run.arguments().iter().chain(self.run.words_behind()).collect();
        let (server, command) = match all.as_slice() {
            [] => (SERVER, &[][..]),
            [server, command @ ..] => (server.as_str(), command),
        };
        let beside = [
            ("--mix", self.mix.is_some()),
            ("--key", self.key_pattern.is_some()),
            ("--keys", self.keys.is_some()),
        ];
        let given = beside.into_iter().find(|(_, given)| *given);
        if let (false, Some((flag, _))) = (command.is_empty(), given) {
            let problem = Problem::new(format!("{flag} has no effect beside a command"));
            return Err(problem.with_hint("leave one of them out: the words of a command are templates"));
        }
        if server.bytes().all(|byte| byte.is_ascii_digit()) {
            let problem = Problem::new(format!("`{server}` is a number, and no server"));
            return Err(problem.with_hint(format!("a port has its host before it: 127.0.0.1:{server}")));
        }
        let server = match server.contains("://") {
            true => server.to_owned(),
            false => format!("redis://{server}"),
        };
        let commands = match command {
            [] => {
                let mix = self.mix.as_deref().unwrap_or("set+get");
                Commands::parse(mix).map_err(|hint| wrong("--mix", mix, hint))?
            }
            // One word with spaces is a command in quotes.
            [text] if text.contains(' ') => {
                Commands::One(crate::words::split(text).map_err(|error| wrong("the command", text, &error))?)
            }
            words => Commands::One(words.iter().map(|word| (*word).clone()).collect()),
        };
        let sizes = self.value_size.strip_prefix("exp:").unwrap_or(&self.value_size);
        if sizes.split('-').any(|size| size.parse::<u32>().is_err()) {
            const FORMS: &str = "write bytes as in 100, 100-2000 or exp:500";
            return Err(wrong("--value-size", &self.value_size, FORMS));
        }
        let settings = self.run.settings();
        let default = if commands == Commands::SetGet { "sequential" } else { "random" };
        let pattern = self.key_pattern.as_deref().unwrap_or(default);
        let keys = Keys::parse(pattern, self.keys).map_err(|hint| wrong("--key", pattern, hint))?;
        let least = self.value_size.split('-').next().and_then(|low| low.parse::<u32>().ok()).unwrap_or(0);
        if commands == Commands::SetGet && !keys.is_own() && least < SHORTEST_MARKED {
            let problem = Problem::new(format!(
                "values of {} bytes may be too short to say to which key they belong",
                self.value_size
            ));
            let hint = format!("write --value-size {SHORTEST_MARKED} or more, or --mix set=1,get=1");
            return Err(problem.with_hint(hint));
        }
        Ok(RedisLoad {
            server,
            commands,
            keys,
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
