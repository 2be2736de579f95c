//! Flags of `plimsoll report`.

use std::path::PathBuf;

use clap::Args;

use crate::args::save::PlaceArgs;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Files that --json wrote, folders of such files, quoted patterns, names, tags and ids of saved runs, or
    /// latest
    ///
    /// Several runs are drawn over each other, and those of each further argument are compared with those of
    /// the first. Saved runs have the most to show. A search, a sweep, a comparison or a suite has a page of
    /// its own.
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    /// File of the page [default: report-ID.html]; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Former name of --file; in all other commands, a format.
    #[arg(short, long, value_name = "FILE", hide = true)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// No messages on stderr
    #[arg(long)]
    pub(crate) quiet: bool,
}
