//! Flags of `plimsoll calibrate`.

use std::path::PathBuf;

use clap::Args;

use crate::args::output::TableOutputArgs;
use crate::args::workload::CalibratedArgs;

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Length of each of the two runs per kind of load [default: 2s]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// File of the calibration [default: calibration.json in the user's data folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// System interface: auto, epoll or uring [default: auto]
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    #[command(flatten)]
    pub(crate) instead: CalibratedArgs,
    #[command(flatten)]
    pub(crate) output: TableOutputArgs,
}
