//! Where the result of a search or a sweep goes: to stdout, to files, to a page, and into the history.

use std::path::{Path, PathBuf};

use plimsoll_report::{Searched, Style};

use crate::args::output::OutputArgs;
use crate::args::save::{SaveArgs, Saving};
use crate::base::failure::Failure;
use crate::session::outputs::Outputs;
use crate::session::page;

/// Everything that a search or a sweep writes at its end.
pub(crate) struct Destinations {
    outputs: Outputs,
    /// The file of the page of HTML, if one is wanted.
    page: Option<PathBuf>,
    /// The place in the history, if it is to be saved.
    saving: Option<Saving>,
    /// Name of the search, if it has one.
    name: Option<String>,
    quiet: bool,
}

impl Destinations {
    /// Reads the destinations from flags, and tries every file.
    ///
    /// # Errors
    /// A file cannot be written, or a format is of single runs only.
    pub(crate) fn of(output: &OutputArgs, report: Option<&Path>, save: &SaveArgs) -> Result<Self, Failure> {
        page::admit_file(report)?;
        let outputs = Outputs::of(output)?;
        outputs.admit_searches()?;
        let saving = save.to_saving(output.quiet).map_err(Failure::usage)?;
        saving.as_ref().map_or(Ok(()), Saving::admit)?;
        let (page, name) = (report.map(Path::to_owned), save.name().map(str::to_owned));
        Ok(Self { outputs, page, saving, name, quiet: output.quiet })
    }

    /// Takes the name of the plan, unless a flag has given one.
    pub(crate) fn or_named(self, name: Option<String>) -> Self {
        Self { name: self.name.or(name), ..self }
    }

    /// Writes the result everywhere. What cannot be written keeps none of the others from being written.
    ///
    /// # Errors
    /// Something could not be written.
    pub(crate) fn write(&self, searched: Searched, style: &Style) -> Result<(), Failure> {
        let searched = searched.with_name(self.name.clone());
        let page = self.page.as_deref();
        let page = page.map_or(Ok(()), |file| page::write(searched.page().as_bytes(), file, self.quiet));
        let saved = self.saving.as_ref().map_or(Ok(()), |saving| saving.keep(&searched));
        let written =
            self.outputs.write(style, &|format, style, out| searched.render(format.into(), style, out));
        written.and(page).and(saved)
    }
}
