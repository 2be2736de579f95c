//! `plimsoll import`: descriptions of other tools, printed as plan files.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_document::{Files, Problem, Problems};
use plimsoll_import::{
    Imported, Unchecked, artillery, confined, curl, gatling, har, jmeter, k6, locust, openapi, postman,
    vegeta,
};
use plimsoll_plan::{Confined, Disk, ImportCheck, PlanPatch};
use serde_json::json;

use crate::args::document::DocumentFormat;
use crate::args::extension::{AddedImport, ImportSource};
use crate::args::import::{CurlArgs, ImportArgs, ImportFormat};
use crate::args::imported_file::NamingFileArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::plan_parts::plan_parts;
use crate::base::{environment, script_host, stdout};
use crate::session::import::{failed, folder, of_h2loadrunner, read, tell};

/// The command.
pub(crate) fn command(args: &ImportArgs) -> Result<Exit, Failure> {
    let (imported, strict) = match &args.format {
        ImportFormat::H2loadrunner(args) => {
            let lua_path = environment::surroundings().lua_path;
            let flags = PlanPatch {
                script_host: Some(script_host::lua(true)),
                only_read_scripts: true,
                lua_path,
                ..PlanPatch::default()
            };
            let text = read(&args.source.file)?;
            confined_to_folder(args, |folder, files| of_h2loadrunner(&text, folder, files, &flags))
        }
        ImportFormat::Curl(args) => (curl(args)?, args.strictness.strict),
        ImportFormat::Har(args) => {
            let options = args.reading.to_options();
            (of_requests(har::import(&read(&args.from.file)?, &options)), args.from.strictness.strict)
        }
        ImportFormat::Openapi(args) => {
            let options = openapi::Options { server: args.server.clone() };
            (of_requests(openapi::import(&read(&args.from.file)?, &options)), args.from.strictness.strict)
        }
        ImportFormat::Vegeta(args) => {
            let options = vegeta::Options { steps: args.steps };
            (of_requests(vegeta::import(&read(&args.from.file)?, &options)), args.from.strictness.strict)
        }
        ImportFormat::Postman(args) => {
            let environment = args.environment.as_deref().map(read).transpose()?;
            let options = postman::Options { environment };
            let text = read(&args.from.source.file)?;
            naming(&args.from, |folder, files| postman::import(&text, &options, folder, files))
        }
        ImportFormat::Artillery(args) => {
            let text = read(&args.source.file)?;
            naming(args, |folder, files| artillery::import(&text, folder, files))
        }
        ImportFormat::Added(AddedImport(args)) => {
            let file = args.file();
            let path = &file.source.file;
            let (name, content) = (file_name(path), || read(path).map_err(|failure| failure.problems));
            let flags = PlanPatch { parts: plan_parts(), ..PlanPatch::default() };
            confined_to_folder(file, |folder, files| {
                let unchecked =
                    args.import(&ImportSource { name: &name, folder, files, content: &content })?;
                unchecked.check(folder, files, &ImportCheck::with(&flags))
            })
        }
        ImportFormat::K6(args) => {
            let options = k6::Options {
                name: file_name(&args.from.source.file),
                environment: environment_of(&args.env)?,
                scenario: args.scenario.clone(),
            };
            let text = read(&args.from.source.file)?;
            naming(&args.from, |folder, files| k6::import(&text, &options, folder, files))
        }
        ImportFormat::Gatling(args) => {
            let options = gatling::Options { name: file_name(&args.source.file) };
            let text = read(&args.source.file)?;
            naming(args, |folder, files| gatling::import(&text, &options, folder, files))
        }
        ImportFormat::Locust(args) => {
            let options = locust::Options {
                name: file_name(&args.from.source.file),
                environment: environment_of(&args.env)?,
                host: args.host.clone(),
                users: args.users,
                spawn_rate: args.spawn_rate,
                run_time: args.run_time.clone(),
                tasks: Some(args.tasks.get()),
            };
            let text = read(&args.from.source.file)?;
            naming(&args.from, |folder, files| locust::import(&text, &options, folder, files))
        }
        ImportFormat::Jmeter(args) => {
            let text = read(&args.source.file)?;
            naming(args, |folder, files| jmeter::import(&text, folder, files))
        }
    };
    let imported = imported.map_err(failed)?;
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

/// Checks what was imported from a source of requests, whose files need not exist.
fn of_requests(unchecked: Result<Unchecked, Problems>) -> Result<Imported, Problems> {
    unchecked?.check(Path::new(""), &Disk, &ImportCheck::WITHOUT_FLAGS)
}

/// Imports a file that names others. Returns also whether its notes are errors.
fn naming(
    args: &NamingFileArgs,
    import: impl FnOnce(&Path, &dyn Files) -> Result<Unchecked, Problems>,
) -> (Result<Imported, Problems>, bool) {
    confined_to_folder(args, |folder, files| {
        import(folder, files)?.check(folder, files, &ImportCheck::WITHOUT_FLAGS)
    })
}

/// Imports and checks a file, with the files of its folder.
fn confined_to_folder(
    args: &NamingFileArgs,
    import: impl FnOnce(&Path, &dyn Files) -> Result<Imported, Problems>,
) -> (Result<Imported, Problems>, bool) {
    let folder = folder(&args.source.file);
    let files = Confined::new(folder, &args.reach.to_flags());
    (confined(&files, |files| import(folder, files)), args.source.strictness.strict)
}

/// Imports a command of curl.
fn curl(args: &CurlArgs) -> Result<Result<Imported, Problems>, Failure> {
    let here = Path::new("");
    if let Some(source) = of_others(&args.words) {
        let text = String::from_utf8(read(source)?);
        let text = text.map_err(|_| Failure::usage(Problem::new("the command is not text in UTF-8")))?;
        let folder = folder(source);
        let files = Confined::new(folder, &args.reach.to_flags());
        return Ok(confined(&files, |files| of_requests(curl::import(&text, folder, files))));
    }
    if !args.reach.allow_files.is_empty() {
        let problem = Problem::new("--allow-files has no effect on a command that is typed");
        let hint = "leave it out: its files may be anywhere; a command of somebody else comes from a file, or from stdin, as -";
        return Err(Failure::usage(problem.with_hint(hint)));
    }
    // The files are those of the person who types.
    let files = Confined::new(here, &PlanPatch { is_plan_of_flags: true, ..PlanPatch::default() });
    Ok(confined(&files, |files| {
        of_requests(match args.words.as_slice() {
            // One argument is a command as a shell reads it, or but a URL.
            [command] => curl::import(command, here, files),
            words => curl::import_words(words, here, files),
        })
    }))
}

/// Where a command of curl is read from that is not typed: stdin, or a file, as other formats have it.
fn of_others(words: &[String]) -> Option<&Path> {
    let [word] = words else { return None };
    let source = Path::new(word);
    (word == "-" || source.is_file()).then_some(source)
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
