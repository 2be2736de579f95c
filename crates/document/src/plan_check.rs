//! Checks of plans that are not run yet.

use crate::{Files, Problems, Source};

/// Check of plans by whoever can resolve them. Importers make documents, and know only the form of these.
pub trait PlanCheck {
    /// Returns the problems that resolving a plan finds, with the files that it names. Nothing of its scripts
    /// runs, and files may lie anywhere: where they have to is decided where the plan is run.
    fn problems(&self, plan: &Source, files: &dyn Files) -> Problems;

    /// Returns `true` if a certificate of authorities that the plan names is read.
    fn reads_authorities(&self) -> bool;

    /// Returns `true` if a certificate of the client and its key, which the plan names, are read.
    fn reads_identity(&self) -> bool;

    /// Returns `true` if scripts are read.
    fn reads_scripts(&self) -> bool;
}
