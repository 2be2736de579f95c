//! Where the result of a search or a sweep goes: to stdout, to files, to a page, and into the history.

use std::path::{Path, PathBuf};

use plimsoll_document::Problem;
use plimsoll_report::evidence::SearchEvidence;
use plimsoll_report::{Searched, Style};

use crate::args::output::OutputArgs;
use crate::args::save::{SaveArgs, Saving};
use crate::args::verify::EvidenceArgs;
use crate::base::failure::Failure;
use crate::base::messages;
use crate::session::evidence::EvidenceFile;
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
    /// The file of its evidence, if that is wanted.
    evidence: Option<EvidenceFile>,
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
        Ok(Self { outputs, page, saving, name, evidence: None, quiet: output.quiet })
    }

    /// Takes the file of the evidence, tried.
    ///
    /// # Errors
    /// It cannot be written, or the key cannot be read.
    pub(crate) fn proving(self, args: &EvidenceArgs) -> Result<Self, Failure> {
        let key = args.evidence_key.as_deref();
        let evidence = args.evidence.as_deref().map(|file| EvidenceFile::new(file, key)).transpose()?;
        Ok(Self { evidence, ..self })
    }

    /// Returns `true` if evidence is wanted.
    pub(crate) const fn wants_evidence(&self) -> bool {
        self.evidence.is_some()
    }

    /// Takes the name of the plan, unless a flag has given one.
    pub(crate) fn or_named(self, name: Option<String>) -> Self {
        Self { name: self.name.or(name), ..self }
    }

    /// Writes the result everywhere. What cannot be written keeps none of the others from being written.
    ///
    /// # Errors
    /// Something could not be written.
    pub(crate) fn write(
        &self,
        searched: Searched,
        evidence: Option<SearchEvidence>,
        style: &Style,
    ) -> Result<(), Failure> {
        let searched = searched.with_name(self.name.clone());
        let proven = match (&self.evidence, evidence) {
            (Some(file), Some(evidence)) => evidence
                .of_result(&searched)
                .map_err(|error| Problem::new(format!("cannot write evidence: {error}")))
                .and_then(|evidence| file.write_search(evidence))
                .map(|said| messages::say(self.quiet)(&said))
                .map_err(Failure::environment),
            _ => Ok(()),
        };
        let page = self.page.as_deref();
        let page = page.map_or(Ok(()), |file| page::write(searched.page().as_bytes(), file, self.quiet));
        let saved = self.saving.as_ref().map_or(Ok(()), |saving| saving.keep(&searched));
        let written =
            self.outputs.write(style, &|format, style, out| searched.render(format.into(), style, out));
        written.and(page).and(saved).and(proven)
    }
}
