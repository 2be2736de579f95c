//! The flags of formats that are read from a file.

use std::path::PathBuf;

use clap::Args;
use plimsoll_document::RawValue;
use plimsoll_plan::PlanPatch;

/// Flags that all formats have in common.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Strictness {
    /// Refuse parts that cannot be imported exactly, instead of noting them
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// The file; - reads stdin. File names in it stay as they are: write the plan beside it
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) strictness: Strictness,
}

/// A file whose content names others, which are read.
#[derive(Debug, Args)]
pub struct NamingFileArgs {
    #[command(flatten)]
    pub(crate) source: FileArgs,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Permissions of what is imported.
#[derive(Debug, Args)]
pub(crate) struct Reach {
    /// Let the import read files below this folder, too; may be given several times
    ///
    /// Without it, the files that the import names are below its own folder, and below the current one if it
    /// comes from stdin.
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_files: Vec<String>,
}

impl Reach {
    /// The permissions as flags of a plan.
    pub(crate) fn to_flags(&self) -> PlanPatch {
        let folders = self.allow_files.iter().map(|folder| RawValue::new("--allow-files", folder.as_str()));
        PlanPatch { allow_files: folders.collect(), ..PlanPatch::default() }
    }
}
