//! `plimsoll import`: descriptions of other tools, printed as plan files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use plimsoll_import::grpc::{ghz, proto};
use plimsoll_import::{
    artillery, curl, gatling, h2loadrunner, har, jmeter, k6, locust, openapi, postman, vegeta,
};
use plimsoll_plan::{Disk, PlanPatch, Problem, ScriptHost};
use serde_json::json;

use crate::args::document::DocumentFormat;
use crate::args::import::{ImportArgs, ImportFormat};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::script_host::Terminal;
use crate::base::{environment, stdout};
use crate::session::import::{folder, read, tell};

/// The command.
pub(crate) fn command(args: &ImportArgs) -> Result<Exit, Failure> {
    let (imported, strict) = match &args.format {
        ImportFormat::H2loadrunner(from) => {
            let host = ScriptHost(Arc::new(Terminal { quiet: true }));
            let lua_path = environment::surroundings().lua_path;
            let flags = PlanPatch {
                script_host: Some(host),
                only_read_scripts: true,
                lua_path,
                ..PlanPatch::default()
            };
            let imported = h2loadrunner::import_for(&read(&from.file)?, folder(&from.file), &Disk, &flags);
            (imported, from.strictness.strict)
        }
        ImportFormat::Curl(from) => {
            let imported = match from.words.as_slice() {
                // One argument is a command as a shell reads it, or but a URL.
                [command] => curl::import(command, Path::new(""), &Disk),
                words => curl::import_words(words, Path::new(""), &Disk),
            };
            (imported, from.strictness.strict)
        }
        ImportFormat::Har(args) => {
            let options = args.reading.to_options();
            (har::import(&read(&args.from.file)?, &options), args.from.strictness.strict)
        }
        ImportFormat::Openapi(args) => {
            let options = openapi::Options { server: args.server.clone() };
            (openapi::import(&read(&args.from.file)?, &options), args.from.strictness.strict)
        }
        ImportFormat::Vegeta(args) => {
            let options = vegeta::Options { steps: args.steps };
            (vegeta::import(&read(&args.from.file)?, &options), args.from.strictness.strict)
        }
        ImportFormat::Postman(args) => {
            let environment = args.environment.as_deref().map(read).transpose()?;
            let options = postman::Options { environment };
            let from = &args.from;
            (postman::import(&read(&from.file)?, &options, folder(&from.file), &Disk), from.strictness.strict)
        }
        ImportFormat::Artillery(from) => {
            (artillery::import(&read(&from.file)?, folder(&from.file), &Disk), from.strictness.strict)
        }
        ImportFormat::Proto(args) => {
            let (from, options) = (&args.from, proto::Options { server: args.server.clone() });
            let name = file_name(&from.file);
            let imported = proto::import(&name, &options, folder(&from.file), &Disk);
            (imported, from.strictness.strict)
        }
        ImportFormat::Ghz(from) => {
            (ghz::import(&read(&from.file)?, folder(&from.file), &Disk), from.strictness.strict)
        }
        ImportFormat::K6(args) => {
            let from = &args.from;
            let options = k6::Options {
                name: file_name(&from.file),
                environment: environment_of(&args.env)?,
                scenario: args.scenario.clone(),
            };
            let imported = k6::import(&read(&from.file)?, &options, folder(&from.file), &Disk);
            (imported, from.strictness.strict)
        }
        ImportFormat::Gatling(from) => {
            let options = gatling::Options { name: file_name(&from.file) };
            let imported = gatling::import(&read(&from.file)?, &options, folder(&from.file), &Disk);
            (imported, from.strictness.strict)
        }
        ImportFormat::Locust(args) => {
            let from = &args.from;
            let options = locust::Options {
                name: file_name(&from.file),
                environment: environment_of(&args.env)?,
                host: args.host.clone(),
                users: args.users,
                spawn_rate: args.spawn_rate,
                run_time: args.run_time.clone(),
                tasks: Some(args.tasks.get()),
            };
            let imported = locust::import(&read(&from.file)?, &options, folder(&from.file), &Disk);
            (imported, from.strictness.strict)
        }
        ImportFormat::Jmeter(from) => {
            (jmeter::import(&read(&from.file)?, folder(&from.file), &Disk), from.strictness.strict)
        }
    };
    let imported = imported.map_err(Failure::usage)?;
    let as_json = args.output == DocumentFormat::Json;
    tell(&imported, strict, as_json)?;
    let mut text = imported.document.to_yaml();
    if as_json {
        let notes: Vec<String> = imported.notes.iter().map(ToString::to_string).collect();
        text = format!("{:#}\n", json!({ "plan": text, "notes": notes }));
    }
    stdout::to_stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Success)
}

/// The name of a file without its folder; none of the standard input.
fn file_name(file: &Path) -> String {
    let name = file.file_name().filter(|_| file != Path::new("-"));
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// `NAME=VALUE`, by their names.
fn environment_of(given: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |given: &String| match given.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::usage(
            Problem::new(format!("--env: `{}` is not a name with a value", given.escape_debug()))
                .with_hint("write it as --env NAME=VALUE"),
        )),
    };
    given.iter().map(pair).collect()
}
