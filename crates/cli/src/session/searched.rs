//! Where the result of a search or a sweep goes: to stdout, to files, and to a page.

use std::path::{Path, PathBuf};

use plimsoll_report::{Searched, Style};

use crate::args::output::OutputArgs;
use crate::base::failure::Failure;
use crate::session::outputs::Outputs;
use crate::session::page;

/// Everything that a search or a sweep writes at its end.
pub(crate) struct Destinations {
    outputs: Outputs,
    /// The file of the page of HTML, if one is wanted.
    page: Option<PathBuf>,
    quiet: bool,
}

impl Destinations {
    /// Those that flags ask for, after trying every file.
    ///
    /// # Errors
    /// A file cannot be written, or a format is of single runs only.
    pub(crate) fn of(output: &OutputArgs, report: Option<&Path>) -> Result<Self, Failure> {
        page::admit_file(report)?;
        let outputs = Outputs::of(output)?;
        outputs.admit_searches()?;
        Ok(Self { outputs, page: report.map(Path::to_owned), quiet: output.quiet })
    }

    /// Writes the result everywhere. What cannot be written keeps none of the others from being written.
    ///
    /// # Errors
    /// Something could not be written.
    pub(crate) fn write(&self, searched: &Searched, style: &Style) -> Result<(), Failure> {
        let page = self.page.as_deref();
        let page = page.map_or(Ok(()), |file| page::write(searched.page().as_bytes(), file, self.quiet));
        let written =
            self.outputs.write(style, &|format, style, out| searched.render(format.into(), style, out));
        written.and(page)
    }
}
