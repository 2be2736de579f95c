//! Findings made while a source is read: notes and problems.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use plimsoll_document::{
    Document, ExtractSpec, Field, Files, KeyLogFile, Problem, Problems, RawValue, Settings, Source, StepKind,
    StepSpec,
};
use plimsoll_plan::{Command, PlanPatch, PlanSource, Switch};

use crate::{Imported, draft};

/// One thing of a source that cannot be said in a plan file, or means something else there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// Its place: a JSON Pointer (RFC 6901), a line, or an option.
    pub at: String,
    /// Short quotation from the source.
    pub said: String,
    /// The action taken instead, or the meaning in the plan file.
    pub becomes: String,
}

/// `at: said: becomes`, without the middle part if there is nothing to quote.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.at)?;
        if !self.said.is_empty() {
            write!(f, "`{}`: ", self.said)?;
        }
        f.write_str(&self.becomes)
    }
}

/// Most characters of a source that a note or a problem quotes.
const LONGEST_QUOTE: usize = 60;

/// `text` on one line and not too long, for messages.
pub fn quoted(text: &str) -> String {
    let line = plain(text);
    match line.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// `text` on one line, with a blank for each control character: names of members stand in places, and a
/// source may be hostile.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Collects findings. Equal notes are kept once.
#[derive(Debug, Default)]
pub struct Findings {
    notes: Vec<Note>,
    /// The same, to be found at once: a source may have many.
    known: HashSet<Note>,
    problems: Problems,
    /// The first thing that is left out and may have requests.
    first_lost: Option<String>,
}

impl Findings {
    /// Adds a note.
    pub fn note(&mut self, at: impl Into<String>, said: &str, becomes: impl Into<String>) {
        let note = Note { at: plain(&at.into()), said: quoted(said), becomes: plain(&becomes.into()) };
        if self.known.insert(note.clone()) {
            self.notes.push(note);
        }
    }

    /// Adds a problem: `at: message`.
    pub fn problem(&mut self, at: &str, message: impl fmt::Display) {
        self.problems.push(Problem::new(located(at, message)));
    }

    /// Adds a problem with advice.
    pub fn hinted(&mut self, at: &str, message: impl fmt::Display, hint: impl Into<String>) {
        self.problems.push(Problem::new(located(at, message)).with_hint(hint));
    }

    /// Returns `true` if there is a problem so far: further gaps may merely follow from it.
    pub fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// The end: the document, unless there were problems.
    pub(crate) fn finish(self, document: Document) -> Result<Imported, Problems> {
        if self.problems.is_empty() {
            Ok(Imported { document, notes: self.notes })
        } else {
            let notes = self.notes.iter().map(ToString::to_string).collect();
            Err(self.problems.with_notes(notes))
        }
    }

    /// The same for a source whose requests may be such as a plan refuses: their problems are then problems
    /// of the source. The importer decides how the load is carried out, and files need not exist.
    pub(crate) fn finish_checked(self, document: Document) -> Result<Imported, Problems> {
        let mut protocol = Settings::default();
        if let Some(run) = document.run.get() {
            (protocol.http1, protocol.http2) = (run.http1.clone(), run.http2.clone());
            protocol.http2_prior_knowledge = run.http2_prior_knowledge.clone();
        }
        self.finish_with(document, protocol, Path::new(""), &AnyEmpty, &PlanPatch::default())
    }

    /// Finishes a document that was read as a whole. The plan will be in `folder`, with these files, and run
    /// with these flags: certificates that they replace are not read, and scripts are run once where they
    /// have a host for them. Without flags, neither are examined.
    pub fn finish_whole(
        self,
        document: Document,
        folder: &Path,
        files: &dyn Files,
        flags: Option<&PlanPatch>,
    ) -> Result<Imported, Problems> {
        let mut run = document.run.get().cloned().unwrap_or_default();
        if flags.is_none_or(|flags| flags.cacert.is_some() || flags.insecure.is_on()) {
            run.cacert = Field::Absent;
        }
        if flags.is_none_or(|flags| flags.cert.is_some() || flags.key.is_some()) {
            (run.cert, run.key) = (Field::Absent, Field::Absent);
        }
        self.finish_with(document, run, folder, files, flags.unwrap_or(&PlanPatch::default()))
    }

    fn finish_with(
        mut self,
        document: Document,
        run: Settings,
        folder: &Path,
        files: &dyn Files,
        flags: &PlanPatch,
    ) -> Result<Imported, Problems> {
        if self.problems.is_empty() {
            for problem in &refused(&document, run, folder, files, flags) {
                let hint = problem.hint.clone();
                let message = format!("a plan does not allow this: {}", problem.message);
                let problem = Problem::new(plain(&message));
                self.problems.push(match hint {
                    Some(hint) => problem.with_hint(hint),
                    None => problem,
                });
            }
        }
        self.finish(document)
    }

    /// The end of a source that could not be read at all.
    pub fn fail(at: &str, message: impl fmt::Display, hint: impl Into<String>) -> Problems {
        Problem::new(located(at, message)).with_hint(hint).into()
    }

    /// The problems so far, for a source that is given up.
    pub fn into_problems(self) -> Problems {
        self.problems
    }

    /// Adds a note on something that is left out, and may have requests.
    pub(crate) fn lose(&mut self, at: &str, said: &str, becomes: &str) {
        self.note(at, said, becomes);
        if self.first_lost.is_none() {
            self.first_lost = Some(format!("{at}: `{}`", quoted(said)));
        }
    }

    /// Adds the problem that nothing is left to send, with the place of the first thing that was lost.
    pub(crate) fn without_requests(&mut self, at: &str, hint: &str) {
        let message = match &self.first_lost {
            Some(lost) => {
                format!("no request can be taken over; the first that is left out is {}", plain(lost))
            }
            None => "there is no request that can be taken over".to_owned(),
        };
        self.hinted(at, message, hint);
    }
}

/// Returns the problems that resolving a plan of the document with these settings finds. XPath is left out,
/// since it is checked where its engine is available; so are scripts where the flags have no host for them.
fn refused(
    document: &Document,
    run: Settings,
    folder: &Path,
    files: &dyn Files,
    flags: &PlanPatch,
) -> Problems {
    let mut requests = document.clone();
    requests.run = if run == Settings::default() { Field::Absent } else { Field::new(run) };
    for steps in requests.step_lists_mut() {
        without_engines(steps, flags.script_host.is_none());
    }
    let name = folder.join("plan.yaml").to_string_lossy().into_owned();
    let plan = Source { name, text: requests.to_yaml() };
    let flags = PlanPatch {
        script_host: flags.script_host.clone(),
        parts: flags.parts,
        // An import runs nothing. Where the files may lie is decided where the plan is run.
        only_read_scripts: true,
        script_allow_system: Switch::on("--script-allow-system"),
        allow_files: vec![RawValue::new("--allow-files", "/")],
        lua_path: flags.lua_path.clone(),
        ..PlanPatch::default()
    };
    let command = Command { plan: Some(PlanSource::Text(plan)), flags, ..Command::default() };
    command.resolve(files).err().map(|refused| refused.problems).unwrap_or_default()
}

/// Returns `true` if a plan takes a value from there.
pub(crate) fn takes(extract: &ExtractSpec) -> bool {
    let mut step = draft::request("GET", "http://localhost/");
    step.extract.push("value", Field::new(extract.clone()));
    let mut document = Document::default();
    document.scenarios.push(Field::new(draft::scenario("one", vec![step])));
    refused(&document, Settings::default(), Path::new(""), &AnyEmpty, &PlanPatch::default()).is_empty()
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

fn located(at: &str, message: impl fmt::Display) -> String {
    plain(&if at.is_empty() { message.to_string() } else { format!("{at}: {message}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_quote_in_short_and_come_once() {
        let mut findings = Findings::default();
        for _ in 0..2 {
            findings.note("/a", &"x\n".repeat(40), "left out");
        }
        let Imported { notes, .. } = findings.finish(Document::default()).unwrap();
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].to_string(), format!("/a: `{}…`: left out", "x ".repeat(30)));
    }

    /// Symptom: a key with an escape sequence or a line break stood in notes as it was.
    #[test]
    fn notes_and_problems_are_one_line_of_signs() {
        let mut findings = Findings::default();
        findings.note("/a\u{1b}[31m\nb", "", "what `\u{7}` means");
        let Imported { notes, .. } = findings.finish(Document::default()).unwrap();
        assert_eq!(notes[0].to_string(), "/a [31m b: what ` ` means");
        let mut findings = Findings::default();
        findings.problem("/a\rb", "no option `-\u{1}`");
        assert_eq!(findings.into_problems().to_string(), "/a b: no option `- `");
    }

    #[test]
    fn problems_win_over_the_document() {
        let mut findings = Findings::default();
        findings.problem("", "a");
        findings.hinted("/b", "c", "d");
        let problems = findings.finish(Document::default()).unwrap_err();
        assert_eq!(problems.to_string(), "a\n/b: c");
    }
}
