//! The flags of the commands that look at a plan: `check`, `explain` and `try`.

use clap::{Arg, Args, ValueEnum};

use crate::args::plan::PlanArgs;

/// A plan, and the format of the report on it.
#[derive(Debug, Args)]
pub(crate) struct DocumentArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Format on stdout
    #[arg(short, long, value_enum, default_value_t = DocumentFormat::Text, value_name = "FORMAT")]
    #[arg(help_heading = "Output")]
    pub(crate) output: DocumentFormat,
}

/// A flag where each scenario is carried out once: how much load there is, and what its figures have to be,
/// is without effect there, and help leaves it out.
pub(crate) fn of_one_iteration(flag: Arg) -> Arg {
    const OF_LOAD: [&str; 4] = ["Load", "Misbehaving clients", "Instrument", "Thresholds"];
    // These change what is sent.
    const OF_REQUESTS: [&str; 3] = ["seed", "backend", "max_head_bytes"];
    let is_of_load = flag.get_help_heading().is_some_and(|heading| OF_LOAD.contains(&heading));
    let is_hidden = is_of_load && !OF_REQUESTS.contains(&flag.get_id().as_str());
    if is_hidden { flag.hide(true) } else { flag }
}

/// Format of the report on a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// For people
    Text,
    /// For editors and other programs; problems of the plan are part of it
    Json,
}
