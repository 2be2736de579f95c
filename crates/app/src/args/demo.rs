//! Flags of `plimsoll demo`.

use clap::Args;

use crate::args::output::TableOutputArgs;

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) output: TableOutputArgs,
}
