//! What is found while a source is read: notes and problems.

use std::fmt;

use plimsoll_plan::document::Document;
use plimsoll_plan::{Problem, Problems};

use crate::Imported;

/// One thing of a source that cannot be said in a plan file, or means something else there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where it stands: a JSON Pointer (RFC 6901), a line, or an option.
    pub at: String,
    /// What the source says, in short.
    pub said: String,
    /// What happens instead.
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
pub(crate) fn quoted(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Collects what is found. Equal notes are kept once.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    notes: Vec<Note>,
    problems: Problems,
}

impl Findings {
    /// Adds a note.
    pub(crate) fn note(&mut self, at: impl Into<String>, said: &str, becomes: impl Into<String>) {
        let note = Note { at: at.into(), said: quoted(said), becomes: becomes.into() };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a problem: `at: message`.
    pub(crate) fn problem(&mut self, at: &str, message: impl fmt::Display) {
        self.problems.push(Problem::new(located(at, message)));
    }

    /// Adds a problem with advice.
    pub(crate) fn hinted(&mut self, at: &str, message: impl fmt::Display, hint: impl Into<String>) {
        self.problems.push(Problem::new(located(at, message)).with_hint(hint));
    }

    /// Whether something is wrong so far: what is missing then may only follow from that.
    pub(crate) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// The end: the document, unless there were problems.
    pub(crate) fn finish(self, document: Document) -> Result<Imported, Problems> {
        if self.problems.is_empty() {
            Ok(Imported { document, notes: self.notes })
        } else {
            Err(self.problems)
        }
    }

    /// The end of a source that could not be read at all.
    pub(crate) fn fail(at: &str, message: impl fmt::Display, hint: impl Into<String>) -> Problems {
        Problem::new(located(at, message)).with_hint(hint).into()
    }

    /// The problems so far, for a source that is given up.
    pub(crate) fn into_problems(self) -> Problems {
        self.problems
    }
}

fn located(at: &str, message: impl fmt::Display) -> String {
    if at.is_empty() { message.to_string() } else { format!("{at}: {message}") }
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

    #[test]
    fn problems_win_over_the_document() {
        let mut findings = Findings::default();
        findings.problem("", "a");
        findings.hinted("/b", "c", "d");
        let problems = findings.finish(Document::default()).unwrap_err();
        assert_eq!(problems.to_string(), "a\n/b: c");
    }
}
