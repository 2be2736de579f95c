//! Files that the program writes about itself: shell completions, manual pages, and the reference pages of
//! `docs/`.

mod coming_from;
mod commands;
mod markdown;
mod schemas;

use std::path::Path;

use clap::CommandFactory as _;
use plimsoll_cluster::document::ClusterDocument;
use plimsoll_document::{Document, Problem, Setting};

use self::markdown::{MADE, cell};
use crate::args::cli::Cli;
use crate::args::reference::{CompletionsArgs, ManArgs, ReferenceArgs};
use crate::args::schema::SchemaOf;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::plan_parts::plan_parts;
use crate::base::{files, stdout};

/// `plimsoll completions SHELL`.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "plimsoll", &mut script);
    stdout::to_stdout(|out| out.write_all(&script))?;
    Ok(Exit::Success)
}

/// `plimsoll man`.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, Failure> {
    let command = Cli::command();
    match &args.folder {
        None => stdout::to_stdout(|out| clap_mangen::Man::new(command).render(out))?,
        Some(folder) => {
            make(folder)?;
            clap_mangen::generate_to(command, folder).map_err(|error| {
                Failure::environment(Problem::new(format!("cannot write to {}: {error}", folder.display())))
            })?;
        }
    }
    Ok(Exit::Success)
}

/// `plimsoll reference`.
pub(crate) fn reference(args: &ReferenceArgs) -> Result<Exit, Failure> {
    make(&args.folder)?;
    let pages = [
        ("commands.md", commands::page(Cli::command())),
        ("plan.md", schemas::page("Plan files", Document::schema(plan_parts().document()))),
        ("cluster.md", schemas::page("Specs of clusters", ClusterDocument::schema())),
        ("results.md", results()),
        ("exit-codes.md", exit_codes()),
        ("environment.md", environment()),
        ("coming-from.md", coming_from::page()),
    ];
    for (name, page) in pages {
        files::to_file(&args.folder.join(name), |out| out.write_all(page.as_bytes()))?;
    }
    Ok(Exit::Success)
}

fn make(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::environment(Problem::new(format!("cannot make {}: {error}", folder.display())))
    })
}

/// The results that have a schema, in one page.
fn results() -> String {
    let mut page = format!("{MADE}# Results\n\n");
    page.push_str(
        "What the commands write with `--output json`. `plimsoll schema NAME` prints each as a JSON Schema. Fields are\n\
         added without notice; one that changes its meaning or goes raises `schema_version`.\n",
    );
    for of in SchemaOf::RESULTS {
        page.push_str(&schemas::section(of.title(), of.name(), of.schema()));
    }
    page
}

fn exit_codes() -> String {
    let mut page = format!("{MADE}# Exit codes\n\n| code | meaning |\n|---|---|\n");
    for exit in Exit::KINDS {
        page.push_str(&format!("| {} | {} |\n", exit.code(), cell(exit.meaning())));
    }
    page.push_str("\nAn interrupted run writes its partial result before it ends.\n");
    page
}

/// Environment variables that are not settings.
const VARIABLES: &[(&str, &str)] = &[
    ("CI", "if it is set: no live screen"),
    ("COLUMNS", "width of reports that do not go to a terminal"),
    ("GITHUB_STEP_SUMMARY", "the file that `--step-summary` appends to"),
    ("HOME", "where the user's folders are, if the XDG variables do not say so"),
    (
        "LC_ALL, LC_CTYPE, LANG",
        "whether reports may have characters beyond ASCII: not if a locale is named that has none",
    ),
    ("LUA_PATH", "where scripts find modules"),
    ("NO_COLOR", "if it is not empty: no colour, unless `--color always` asks for it"),
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        "where `--otlp` without a URL sends to",
    ),
    ("OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_METRICS_HEADERS", "headers of the requests of `--otlp`"),
    ("OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME", "attributes of the figures of `--otlp`"),
    (
        "PLIMSOLL_CONFINED",
        "if it is set: files that flags name lie below the current folder, as those of a plan",
    ),
    ("PLIMSOLL_ENDS_WITH", "the process with which a built-in server ends: its parent, by its number"),
    ("PLIMSOLL_NO_TUI", "if it is set: no live screen"),
    ("PLIMSOLL_SAVE", "`true`: every run is saved in the history"),
    ("PLIMSOLL_STORE", "the file of the history"),
    ("PLIMSOLL_TELL_TRIALS", "if it is set: `find` tells each trial that it begins, as the web UI shows it"),
    ("SSLKEYLOGFILE", "a file that takes the keys of TLS, for Wireshark and the like"),
    ("TERM", "`dumb`: no colour, and no live display"),
    ("XDG_DATA_HOME", "the user's folder for data, in which `plimsoll` has its own"),
];

fn environment() -> String {
    let mut page = format!("{MADE}# Environment\n\n| variable | meaning |\n|---|---|\n");
    for (name, what) in VARIABLES {
        page.push_str(&format!("| `{}` | {} |\n", name.replace(", ", "`, `"), cell(what)));
    }
    page.push_str(
        "\n## Settings\n\nEvery setting of a plan's `run` can be given by a variable, too. It goes above the plan file \
         and below flags.\nLists have one value per line.\n\n| variable | setting |\n|---|---|\n",
    );
    for setting in Setting::in_plan_files() {
        let summary = &setting.paragraphs()[0];
        page.push_str(&format!("| `{}` | {} |\n", setting.variable(), cell(summary)));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_one_line_without_markup() {
        assert_eq!(cell("a | b\n  <c>"), "a \\| b &lt;c>");
        assert_eq!(cell("<a> `p95<1s` <b>"), "&lt;a> `p95<1s` &lt;b>");
    }

    #[test]
    fn every_setting_has_its_variable() {
        let page = environment();
        for name in ["PLIMSOLL_RATE", "PLIMSOLL_CONNECTIONS", "PLIMSOLL_HTTP2"] {
            assert!(page.contains(&format!("| `{name}` | ")), "{name} is not in {page}");
        }
    }
}
