//! Flags for output while a run goes on.

use std::path::Path;

use clap::Args;
use plimsoll_document::{Problems, RawValue};
use plimsoll_plan::PlanPatch;

use crate::args::export::MonitoringArgs;
use crate::args::rotate::{RotateArgs, Rotation};
use crate::args::setting::{LiveOutputSection, SettingArgs};
use crate::args::watch::WatchArgs;

/// Flags for output while the run goes on.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Live output")]
pub(crate) struct LiveArgs {
    #[command(flatten)]
    pub(crate) files: SettingArgs<LiveOutputSection>,
    /// Log only this share of the requests, chosen at random: 1% or 1/100
    #[arg(long, value_name = "SHARE", hide_short_help = true, requires = "log")]
    pub(crate) log_sample: Option<String>,
    /// Write at most this many failed requests [default: 1000]
    #[arg(
        long,
        value_name = "N",
        hide_short_help = true,
        requires = "failed",
        allow_negative_numbers = true
    )]
    pub(crate) failed_limit: Option<String>,
    #[command(flatten)]
    rotate: RotateArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    #[command(flatten)]
    pub(crate) exports: MonitoringArgs,
}

impl LiveArgs {
    /// Returns the rotation of the files that are written during the run.
    ///
    /// # Errors
    /// Every problem with the flags.
    pub(crate) fn rotation(&self) -> Result<Rotation, Problems> {
        self.rotate.rotation(self.files_of_records().iter().any(|(_, file)| file.is_some()))
    }

    /// Returns these flags, with the files that a plan names where no flag does.
    pub(crate) fn or(&self, patch: Option<&PlanPatch>) -> Self {
        Self { files: self.files.or(patch), ..self.clone() }
    }

    /// The file for statistics.
    pub(crate) fn stats(&self) -> Option<&Path> {
        path(&self.files.patch.stats)
    }

    /// The file that gets a line for every request.
    pub(crate) fn log(&self) -> Option<&Path> {
        path(&self.files.patch.log)
    }

    /// The file that gets a line for every stream of events.
    pub(crate) fn stream_log(&self) -> Option<&Path> {
        path(&self.files.patch.stream_log)
    }

    /// The files that grow with the run, each with its flag.
    pub(crate) fn files_of_records(&self) -> [(&'static str, Option<&Path>); 4] {
        [
            ("--stats", self.stats()),
            ("--log", self.log()),
            ("--stream-log", self.stream_log()),
            ("--failed", self.failed()),
        ]
    }

    /// The file for failed requests.
    pub(crate) fn failed(&self) -> Option<&Path> {
        path(&self.files.patch.failed)
    }
}

fn path(given: &Option<RawValue>) -> Option<&Path> {
    given.as_ref().map(|given| Path::new(&given.text))
}
