//! Findings made while a source is read: notes and problems.

use std::collections::HashSet;
use std::fmt;

use plimsoll_document::{Document, Problem, Problems};

use crate::Imported;
use crate::unchecked::{Checked, Unchecked};

/// One thing of a source that cannot be said in a plan file, or means something else there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// Place in the source: a JSON Pointer (RFC 6901), a line, or an option.
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
    /// All notes so far, to be found at once: a source may have many.
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

    /// Returns the document, unless there were problems.
    pub(crate) fn finish(self, document: Document) -> Result<Imported, Problems> {
        if self.problems.is_empty() {
            Ok(Imported { document, notes: self.notes })
        } else {
            let notes = self.notes.iter().map(ToString::to_string).collect();
            Err(self.problems.with_notes(notes))
        }
    }

    /// Returns the document of a source whose requests may be such as a plan refuses: their problems are then
    /// problems of the source. The importer decides how the load is carried out, and files need not exist.
    pub(crate) fn finish_requests(self, document: Document) -> Result<Unchecked, Problems> {
        Ok(Unchecked::new(self.finish(document)?, Checked::Requests))
    }

    /// Returns the document of a source that was read as a whole.
    pub fn finish_whole(self, document: Document) -> Result<Unchecked, Problems> {
        Ok(Unchecked::new(self.finish(document)?, Checked::Whole))
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
