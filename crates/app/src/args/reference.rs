//! Flags of the commands that describe this program.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for every command into this folder, instead of that of plimsoll to stdout
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReferenceArgs {
    /// The folder that the pages are written into
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}
