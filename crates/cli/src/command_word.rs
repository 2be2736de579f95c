//! The first word of the command line: a command, or what stands for `run`.

use std::ffi::OsString;

use plimsoll_plan::Problem;
use plimsoll_scenario::suggest;

/// The commands, for suggestions.
pub(crate) const COMMANDS: [&str; 25] = [
    "run",
    "check",
    "explain",
    "cache",
    "crud",
    "canister",
    "ingest",
    "find",
    "calibrate",
    "sink",
    "target",
    "cluster",
    "demo",
    "import",
    "compare",
    "history",
    "report",
    "runs",
    "show",
    "export",
    "rm",
    "schema",
    "completions",
    "man",
    "reference",
];

/// So many of the last commands are for those who develop the program, and not shown.
const HIDDEN: usize = 1;

/// Inserts `run` where it was left out: `plimsoll URL` and `plimsoll -c 8 URL`. `args` starts with the
/// program's name.
pub(crate) fn with_command(mut args: Vec<OsString>) -> Result<Vec<OsString>, Problem> {
    let Some(first) = args.get(1).map(|first| first.to_string_lossy().into_owned()) else {
        return Ok(args);
    };
    let about_program = ["-h", "--help", "-V", "--version"].contains(&first.as_str());
    if COMMANDS.contains(&first.as_str()) || about_program || first.starts_with("--color") {
        return Ok(args);
    }
    // A word that could only be a command is not taken for a host name: `plimsoll snk` must not send load.
    let address = first == "localhost" || first.contains([':', '/', '.']);
    if !first.starts_with('-') && !address {
        let hint = match suggest::closest(&first, COMMANDS) {
            Some(near) => format!("did you mean `plimsoll {near}`?"),
            None => format!(
                "commands: {}; for a host write http://{first}/",
                COMMANDS[..COMMANDS.len() - HIDDEN].join(", ")
            ),
        };
        let message = format!("unknown command `{}`", first.escape_debug());
        return Err(Problem::new(message).with_hint(hint));
    }
    args.insert(1, "run".into());
    Ok(args)
}
