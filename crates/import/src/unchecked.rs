//! Plans of imports, before they are resolved for the first time.

use std::path::Path;

use plimsoll_document::{
    Document, Field, Files, KeyLogFile, PlanCheck, Problem, Problems, Settings, Source, StepKind, StepSpec,
};

use crate::Imported;
use crate::findings::plain;

/// An import whose plan has still to be [checked](Self::check): a source may ask for what no plan allows.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Unchecked {
    imported: Imported,
    checked: Checked,
}

/// Part of a plan that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// The requests, in the protocol that the plan asks for.
    Requests,
    /// All of it, with its files.
    Whole,
}

impl Unchecked {
    pub(crate) const fn new(imported: Imported, checked: Checked) -> Self {
        Self { imported, checked }
    }

    /// Checks the plan, which will be in `folder`, with the files that it names. Certificates and scripts
    /// that the check does not read are left out of it; so is XPath, since it is checked where its engine is
    /// available.
    ///
    /// # Errors
    /// All that is wrong with it, as problems of the source, with the notes.
    pub fn check(
        self,
        folder: &Path,
        files: &dyn Files,
        check: &dyn PlanCheck,
    ) -> Result<Imported, Problems> {
        let document = &self.imported.document;
        let found = match self.checked {
            Checked::Requests => {
                let run = document.run.get().map(protocol).unwrap_or_default();
                refused(document, run, Path::new(""), &AnyEmpty, check)
            }
            Checked::Whole => {
                let mut run = document.run.get().cloned().unwrap_or_default();
                if !check.reads_authorities() {
                    run.cacert = Field::Absent;
                }
                if !check.reads_identity() {
                    (run.cert, run.key) = (Field::Absent, Field::Absent);
                }
                refused(document, run, folder, files, check)
            }
        };
        if found.is_empty() {
            return Ok(self.imported);
        }
        let mut problems = Problems::default();
        for Problem { message, hint, .. } in &found {
            let problem = Problem::new(plain(&format!("a plan does not allow this: {message}")));
            problems.push(Problem { hint: hint.clone(), ..problem });
        }
        Err(problems.with_notes(self.imported.notes.iter().map(ToString::to_string).collect()))
    }
}

/// The settings that choose the protocol.
fn protocol(run: &Settings) -> Settings {
    let mut protocol = Settings::default();
    (protocol.http1, protocol.http2) = (run.http1.clone(), run.http2.clone());
    protocol.http2_prior_knowledge = run.http2_prior_knowledge.clone();
    protocol
}

/// Returns the problems of a document with these settings.
fn refused(
    document: &Document,
    run: Settings,
    folder: &Path,
    files: &dyn Files,
    check: &dyn PlanCheck,
) -> Problems {
    let mut requests = document.clone();
    requests.run = if run == Settings::default() { Field::Absent } else { Field::new(run) };
    for steps in requests.step_lists_mut() {
        without_engines(steps, !check.reads_scripts());
    }
    let name = folder.join("plan.yaml").to_string_lossy().into_owned();
    check.problems(&Source { name, text: requests.to_yaml() }, files)
}

fn without_engines(steps: &mut [Field<StepSpec>], without_scripts: bool) {
    for step in steps {
        if let Field::Given(step, _) = step {
            if let StepKind::Request(request) = &mut step.kind
                && without_scripts
            {
                request.script = Field::Absent;
            }
            for (_, _, extract) in &mut step.extract.0 {
                if let Field::Given(extract, _) = extract
                    && !extract.xpath.is_absent()
                {
                    (extract.xpath, extract.body) = (Field::Absent, Field::new(true));
                }
            }
            match &mut step.kind {
                StepKind::Parallel(all) => without_engines(&mut all.parallel, without_scripts),
                StepKind::Repetition(repetition) => without_engines(&mut repetition.steps, without_scripts),
                StepKind::Branch(branch) => {
                    without_engines(&mut branch.then, without_scripts);
                    without_engines(&mut branch.otherwise, without_scripts);
                }
                _ => {}
            }
        }
    }
}

/// Any file, with nothing in it.
struct AnyEmpty;

impl Files for AnyEmpty {
    fn read(&self, _: &Path) -> std::io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn key_log(&self, _: &Path) -> std::io::Result<KeyLogFile> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}
