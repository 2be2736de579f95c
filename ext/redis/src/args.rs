//! The flags of `plimsoll redis`.

use clap::{Arg, Args};
use plimsoll_app::{Failure, KeyArgs, LoadArgs, Note, RunArgs, hits_note, of_flag};
use plimsoll_document::{MadeDocument, Problem};
use plimsoll_report::RunResult;

use crate::load::{Commands, RedisLoad};
use crate::words::split;

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

const KEY_HELP: &str = "Choice of keys: sequential, random, fixed, zipf or zipf:EXPONENT [default: \
     sequential for set+get, random for a mix]";

const USAGE: &str = "plimsoll redis [OPTIONS] [HOST:PORT] [COMMAND]...";

/// The server where none is named.
const SERVER: &str = "127.0.0.1:6379";
/// Length and connections of a load, unless the flags give others.
const DURATION: &str = "10s";
const CONNECTIONS: u32 = 64;

#[derive(Debug, Args)]
// `--key` of this command chooses keys, so the key of the client certificate is `--client-key`.
#[command(override_usage = USAGE, mut_arg("key", |arg| arg.long("client-key")))]
#[command(mut_arg("urls", words), mut_arg("key_pattern", |arg| arg.help(KEY_HELP)))]
// An argument that is changed goes behind the others, and this one has to be the last.
#[command(mut_arg("script_arguments", |arg| arg.hide(true)))]
pub(crate) struct RedisArgs {
    /// Mix of commands: set+get, one of set, get, incr and del, or weights such as set=1,get=9 [default:
    /// set+get]
    #[arg(long, value_name = "MIX", help_heading = "Workload")]
    mix: Option<String>,
    #[command(flatten)]
    keys: KeyArgs,
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

    fn plan(&self) -> Result<MadeDocument, Failure> {
        let load = self.to_load().map_err(Failure::usage)?;
        load.document().map_err(|error| Failure::usage(of_flag("--value-size", &error)))
    }

    fn notes(&self, result: &RunResult) -> Vec<Note> {
        Vec::from_iter(hits_note(result, "GET", "values are stored by --mix set, or --mix set+get"))
    }
}

impl RedisArgs {
    fn to_load(&self) -> Result<RedisLoad, Problem> {
        let mut words = self.run.arguments().iter().chain(self.run.words_behind());
        let server = words.next().map_or(SERVER, String::as_str);
        if server.bytes().all(|byte| byte.is_ascii_digit()) {
            let problem = Problem::new(format!("`{server}` is a number, and no server"));
            return Err(problem.with_hint(format!("a port has its host before it: 127.0.0.1:{server}")));
        }
        let scheme = if server.contains("://") { "" } else { "redis://" };
        let commands = self.commands(&words.cloned().collect::<Vec<_>>())?;
        let default = if commands == Commands::SetGet { "sequential" } else { "random" };
        let (keys, value_size) = self.keys.read(default)?;
        Ok(RedisLoad {
            server: format!("{scheme}{server}"),
            commands,
            keys,
            value_size,
            run: self.run.missing_settings(DURATION, CONNECTIONS),
        })
    }

    /// The commands of an iteration: those of the mix, unless the command line ends with the words of one.
    fn commands(&self, words: &[String]) -> Result<Commands, Problem> {
        let mix = [("--mix", self.mix.is_some())];
        let beside = mix.into_iter().chain(self.keys.given()).find(|(_, given)| *given);
        match (words, beside) {
            ([], _) => {
                let mix = self.mix.as_deref().unwrap_or("set+get");
                Commands::parse(mix).map_err(|error| of_flag("--mix", &error))
            }
            (_, Some((flag, _))) => Err(Problem::new(format!("{flag} has no effect beside a command"))
                .with_hint("leave one of them out: the words of a command are templates")),
            // One word with spaces is a command in quotes.
            ([text], None) if text.contains(' ') => split(text).map(Commands::One).map_err(Problem::new),
            (words, None) => Ok(Commands::One(words.to_vec())),
        }
    }
}
