//! Flags of evidence: the file that a run or a search writes, and its check.

use std::path::PathBuf;

use clap::Args;

/// The evidence of a run or a search.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EvidenceArgs {
    /// Write everything that the result was made of, signed, so that others can check it
    ///
    /// `plimsoll verify FILE` makes every figure and the verdict again from it. It has the plan without its
    /// credentials, raw counts and histograms, the calibration, and the activity of the machine.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) evidence: Option<PathBuf>,
    /// Key that signs the evidence: Ed25519 in PEM [default: a new one, which shows that nothing was changed]
    #[arg(long, value_name = "FILE", requires = "evidence", hide_short_help = true)]
    pub(crate) evidence_key: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Files that `run --evidence FILE` or `find --evidence FILE` wrote
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Accept evidence of this key alone: the public key as `verify` prints it
    #[arg(long, value_name = "KEY")]
    pub(crate) signed_by: Option<String>,
}
