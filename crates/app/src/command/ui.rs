//! `plimsoll ui`: the page in a browser, served from this machine.

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction};
use plimsoll_core::suggest::closest;
use plimsoll_document::{Problem, Setting};
use plimsoll_driver::Endpoint;
use plimsoll_web::{CommandFlags, FlagValue, Identity, Listen, Options, PermittedFlag, RefusedFlag};
use serde_json::{Value, json};

use crate::args::command_word;
use crate::args::schema::SchemaOf;
use crate::args::setting::{PlanSection, Section as _};
use crate::args::ui::UiArgs;
use crate::args::workload;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::{environment, process, streams};

/// Settings that a page cannot give as flags: they name what is run.
const OF_THE_COMMAND_LINE: [&str; 3] = ["script", "script_allow_system", "allow_files"];
/// Arguments of `run` and `cluster run` beside the settings of a plan that a page can give: they write, open
/// and start nothing.
const OF_BOTH: [&str; 5] = ["slices", "probe", "slow_clients", "slow_client_rate", "tags"];
/// Further ones of `run` alone.
const OF_RUN: [&str; 2] = ["repeat", "pause"];
/// Further ones of `cluster run` alone.
const OF_CLUSTER: [&str; 3] = ["profile", "set", "suite"];
/// Arguments of `find` beside the settings of a plan that a page can give.
const OF_FIND: [&str; 8] = ["slo", "sweep", "from", "to", "precision", "max_time", "at_least", "tags"];
/// Headings of arguments that say where something goes or by whom, and not what is sent.
const OUTPUT_HEADINGS: [&str; 6] = ["Live output", "Control", "Output", "History", "Exports", "Fleet"];
/// Other arguments that are nothing for a form.
const NOT_IN_FORMS: [&str; 15] = [
    "help",
    "version",
    "color",
    "print_plan",
    "h2loadrunner",
    "script_arguments",
    "calibrate",
    "repeat",
    "report",
    "watch_pid",
    "watch_process",
    "summary_file",
    "periodic_output",
    "chart_size",
    "script",
];

/// Serves until a signal ends it.
pub(crate) fn command(args: &UiArgs) -> Result<Exit, Failure> {
    let spec = args.to_spec().map_err(Failure::usage)?;
    // The page works without a history, too.
    let store = args.place.file().ok().map(|(path, _)| path);
    let mut program = command_word::command();
    program.build();
    let options = Options {
        listen: match spec.listen {
            Endpoint::Tcp(address) => Listen::Tcp(address),
            Endpoint::Unix(path) => Listen::Unix(path),
        },
        hosts: args.host.clone(),
        identity: spec.identity.map(|(cert, key)| Identity { cert, key }),
        token: spec.token,
        folder: args.folder.clone(),
        store: store.map(|path| std::path::absolute(&path).unwrap_or(path)),
        program: environment::program(),
        temporary: environment::temporary_folder(),
        run_flags: flags(subcommand(&program, &["run"]), &[&OF_BOTH[..], &OF_RUN].concat()),
        find_flags: flags(subcommand(&program, &["find"]), &OF_FIND),
        cluster_flags: flags(
            subcommand(&program, &["cluster", "run"]),
            &[&OF_BOTH[..], &OF_CLUSTER].concat(),
        ),
        closest: |word, among| closest(word, among.iter().copied()),
        clusters: spec.clusters,
        forms: forms(&program),
        schema,
        lives: process::lives,
        process: process::number_and_arguments,
        given: environment::set_among(&plimsoll_web::EXAMPLE_VARIABLES),
        version: env!("CARGO_PKG_VERSION"),
    };
    let served = plimsoll_web::serve(options, |text| streams::to_stderr(&format!("ui: {text}\n")));
    served.map_err(|error| Failure::environment(Problem::new(error.to_string()).with_hint(error.hint())))?;
    Ok(Exit::Success)
}

fn schema(name: &str) -> Option<Value> {
    let known = [SchemaOf::Plan, SchemaOf::Cluster, SchemaOf::Ndjson].into_iter().chain(SchemaOf::RESULTS);
    known.into_iter().find(|known| known.name() == name).map(SchemaOf::schema)
}

/// The command that these words name.
fn subcommand<'c>(program: &'c clap::Command, words: &[&str]) -> Option<&'c clap::Command> {
    words.iter().try_fold(program, |command, word| command.find_subcommand(word))
}

/// The flags of a command: those that a page may give, and the others with their reasons.
fn flags(command: Option<&clap::Command>, others: &[&str]) -> CommandFlags {
    let permitted = permitted(command, others);
    let is_permitted =
        |name: &String| permitted.iter().any(|flag| flag.name == *name || flag.others.contains(name));
    let all = command.into_iter().flat_map(clap::Command::get_arguments);
    let refused =
        all.filter_map(|arg| flag(arg).map(|flag| (flag, refusal(arg)))).flat_map(|(flag, hint)| {
            let names = [vec![flag.name], flag.others].concat();
            names.into_iter().map(move |name| RefusedFlag { name, hint })
        });
    let others = refused.filter(|refused| !is_permitted(&refused.name)).collect();
    CommandFlags { permitted, others }
}

/// The reason why a page may not give this argument, and what to do instead.
fn refusal(arg: &Arg) -> &'static str {
    match (arg.get_id().as_str(), arg.get_help_heading().unwrap_or_default()) {
        ("help", _) => "the page has its keys behind `?`, and explanations in the text of a plan",
        ("script" | "script_allow_system" | "script_arguments", _) => {
            "a script is a program: run it by the command line, or name it in the plan"
        }
        ("allow_files", _) => "it lets a plan read files outside its folder: give it on the command line",
        ("watch_pid" | "watch_process", _) => {
            "it looks at other programs of this machine: give it on the command line"
        }
        ("calibrate", _) => "it starts a server of its own first: give it on the command line",
        ("clean" | "dir", _) => "it names folders that are removed or kept: give it on the command line",
        ("repeat" | "pause", _) => "several runs of a cluster are a suite: `--set run=1,2,3` makes three",
        ("h2loadrunner", _) => "the page has an import for such files",
        ("name", _) => "the form has a field for the name",
        ("print_plan", _) => "it prints a plan and starts nothing: the text of the plan is in the editor",
        ("color" | "quiet" | "long" | "no_tui" | "no_keys" | "tell_intervals", _) => {
            "it is about the text in a terminal, and the page shows the run"
        }
        ("report" | "json" | "evidence" | "evidence_key", _) | (_, "Output" | "History") => {
            "it says where a result goes: a run of the page is saved, and its page has the downloads"
        }
        (_, "Live output" | "Exports") => {
            "it writes or sends records while a run goes on: give it on the command line"
        }
        (_, "Control") => "the page itself steers its runs: use the buttons of the run",
        (_, "Fleet") => "choose the machines in the form; other flags of a fleet are for the command line",
        _ => "it is of the machine, and not of the load: give it on the command line",
    }
}

/// The flags of a command that a page may give: settings of a plan, and some others.
fn permitted(command: Option<&clap::Command>, others: &[&str]) -> Vec<PermittedFlag> {
    let is_setting = |id: &str| {
        let setting = Setting::by_name(id).filter(|setting| PlanSection::has(setting.heading));
        setting.is_some() && !OF_THE_COMMAND_LINE.contains(&id)
    };
    let arguments = command.into_iter().flat_map(clap::Command::get_arguments);
    let arguments =
        arguments.filter(|arg| is_setting(arg.get_id().as_str()) || others.contains(&arg.get_id().as_str()));
    arguments.filter_map(flag).collect()
}

fn flag(arg: &Arg) -> Option<PermittedFlag> {
    let name = format!("--{}", arg.get_long()?);
    let long = arg.get_all_aliases().into_iter().flatten().map(|alias| format!("--{alias}"));
    let short = arg.get_short().into_iter().chain(arg.get_all_short_aliases().into_iter().flatten());
    let others = long.chain(short.map(|letter| format!("-{letter}"))).collect();
    Some(PermittedFlag { name, others, value: value_of(arg) })
}

fn value_of(arg: &Arg) -> FlagValue {
    if !arg.get_action().takes_values() {
        return FlagValue::Never;
    }
    match arg.get_num_args() {
        Some(number) if number.min_values() == 0 => FlagValue::Optional,
        _ => FlagValue::Always,
    }
}

/// The commands that put load on something, with their arguments in the order of the help.
fn forms(program: &clap::Command) -> Value {
    let names = ["run"].into_iter().chain(workload::names()).chain(["find"]);
    let commands = names.filter_map(|name| program.find_subcommand(name)).map(|command| {
        let arguments = command.get_arguments().filter(|arg| is_in_forms(arg));
        // `ingest` names its store by a flag, which the server does not replace.
        let is_taken = |arg: &&Arg| (command.get_name(), arg.get_id().as_str()) != ("ingest", "urls");
        let arguments = arguments.filter(is_taken).map(argument);
        json!({
            "name": command.get_name(),
            "summary": command.get_about().map(ToString::to_string),
            "arguments": arguments.collect::<Vec<_>>(),
        })
    });
    json!({"commands": commands.collect::<Vec<_>>()})
}

fn is_in_forms(arg: &Arg) -> bool {
    let is_output = arg.get_help_heading().is_some_and(|heading| OUTPUT_HEADINGS.contains(&heading));
    !arg.is_hide_set() && !is_output && !NOT_IN_FORMS.contains(&arg.get_id().as_str())
}

fn argument(arg: &Arg) -> Value {
    let value = arg.get_action().takes_values().then(|| {
        let names = arg.get_value_names().into_iter().flatten().map(clap::builder::Str::as_str);
        names.collect::<Vec<_>>().join(" ")
    });
    let default = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>();
    let several = arg.get_num_args().is_some_and(|number| number.max_values() > 1);
    json!({
        "id": arg.get_id().as_str(),
        "flag": arg.get_long().map(|long| format!("--{long}")),
        "value": value,
        "heading": arg.get_help_heading(),
        "help": arg.get_help().map(ToString::to_string),
        "long_help": arg.get_long_help().map(ToString::to_string),
        "default": (!default.is_empty() && value_of(arg) != FlagValue::Never).then(|| default.join(",")),
        "multiple": matches!(arg.get_action(), ArgAction::Append) || several,
        "possible": possible(arg),
    })
}

fn possible(arg: &Arg) -> Vec<Value> {
    let values = if arg.get_action().takes_values() { arg.get_possible_values() } else { Vec::new() };
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let object = |value: &PossibleValue| json!({"name": value.get_name(), "help": value.get_help().map(ToString::to_string)});
    shown.map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> clap::Command {
        let mut program = command_word::command();
        program.build();
        program
    }

    /// Every user of the page can make the program do what these flags say.
    #[test]
    fn no_flag_of_a_page_writes_a_file_opens_a_port_or_starts_a_program() {
        let of_run = [&OF_BOTH[..], &OF_RUN].concat();
        let of_cluster = [&OF_BOTH[..], &OF_CLUSTER].concat();
        for (words, others) in
            [(&["run"][..], &of_run[..]), (&["find"], &OF_FIND), (&["cluster", "run"], &of_cluster)]
        {
            let (shown, command) = (program(), words.join(" "));
            let shown = subcommand(&shown, words).expect("it is a command");
            let flags = permitted(Some(shown), others);
            assert!(flags.len() > 60, "{}", flags.len());
            for name in others {
                let long = if *name == "tags" {
                    "--tag".to_owned()
                } else {
                    format!("--{}", name.replace('_', "-"))
                };
                assert!(flags.iter().any(|flag| flag.name == long), "{command} has no {long}");
            }
            for arg in shown.get_arguments().filter(|arg| {
                arg.get_help_heading().is_some_and(|heading| OUTPUT_HEADINGS.contains(&heading))
                    && arg.get_id().as_str() != "tags"
            }) {
                let long = format!("--{}", arg.get_long().unwrap_or_default());
                assert!(!flags.iter().any(|flag| flag.name == long), "{command} {long}");
            }
            // Of clusters: folders that are named are removed.
            assert!(!flags.iter().any(|flag| flag.name == "--clean" || flag.name == "--dir"), "{command}");
        }
        let shown = program();
        let flags = permitted(subcommand(&shown, &["run"]), &OF_BOTH);
        let rate = flags.iter().find(|flag| flag.name == "--rate").expect("a rate");
        assert!(rate.others.contains(&"-R".to_owned()) && rate.value == FlagValue::Always, "{rate:?}");
        let value = |name: &str| flags.iter().find(|flag| flag.name == name).map(|flag| flag.value);
        assert_eq!((value("--http2"), value("--probe")), (Some(FlagValue::Never), Some(FlagValue::Optional)));
    }

    /// Symptom: `--repeat` and `--help` were said to write files, open ports or start programs.
    #[test]
    fn what_is_said_of_a_refused_flag_is_true_of_it() {
        let program = program();
        let mut said = std::collections::BTreeMap::<_, std::collections::BTreeSet<_>>::new();
        let of_run = [&OF_BOTH[..], &OF_RUN].concat();
        let of_cluster = [&OF_BOTH[..], &OF_CLUSTER].concat();
        for (words, others) in
            [(&["run"][..], &of_run[..]), (&["find"], &OF_FIND), (&["cluster", "run"], &of_cluster)]
        {
            for RefusedFlag { name, hint } in flags(subcommand(&program, words), others).others {
                said.entry(hint).or_default().insert(name);
            }
        }
        let lines = said.iter().map(|(hint, names)| {
            format!("{hint}\n    {}\n", names.iter().map(String::as_str).collect::<Vec<_>>().join(" "))
        });
        insta::assert_snapshot!(lines.collect::<String>());
    }

    #[test]
    fn forms_have_every_load_and_none_of_its_outputs() {
        let forms = forms(&program());
        let commands = forms["commands"].as_array().expect("a list");
        let names: Vec<_> =
            commands.iter().map(|command| command["name"].as_str().expect("a name")).collect();
        assert_eq!(names, ["run"].into_iter().chain(workload::names()).chain(["find"]).collect::<Vec<_>>());
        for command in commands {
            let arguments = command["arguments"].as_array().expect("a list");
            let has = |id: &str| arguments.iter().any(|argument| argument["id"] == id);
            // A search chooses its rates itself.
            assert!(has("rate") || has("seconds") || has("from"), "{}", command["name"]);
            for id in [
                "out",
                "json",
                "store",
                "control",
                "prometheus",
                "otlp",
                "stats",
                "log",
                "save",
                "print_plan",
            ] {
                assert!(!has(id), "{} {id}", command["name"]);
            }
            for argument in arguments {
                assert!(argument["help"].is_string(), "{argument}");
                assert!(argument["flag"].is_string() || argument["value"].is_string(), "{argument}");
            }
        }
    }
}
