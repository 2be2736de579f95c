//! A search, or a sweep, as Markdown: the answer first, then the curve, the rest folded away.

use std::fmt::Write as _;

use plimsoll_core::escape;

use super::run::{facts, findings, table};
use super::{Table, code, details};
use crate::contract::searched::Searched;
use crate::render::document::searched::SearchDocument;
use crate::render::document::{Target, sentence};

/// The whole page.
pub(crate) fn page(searched: &Searched) -> String {
    let document = SearchDocument::new(searched);
    let mut out = String::new();
    // Writing to a string cannot fail, here and below.
    let _ =
        write!(out, "### {}: {}\n\n", escape::markdown(&document.title), escape::markdown(&document.answer));
    if !document.statement.is_empty() {
        let _ = write!(out, "{}\n\n", escape::markdown(&sentence(&document.statement)));
    }
    findings(&mut out, document.findings.iter().map(|finding| ("warning", finding)));
    document.notes.iter().for_each(|note| {
        let _ = writeln!(out, "- {}", escape::markdown(note));
    });
    out.push_str(&facts(document.facts.iter().chain(&document.law)));
    out.push_str(&table(&document.levels, false, true));
    details(&mut out, "Trials", &table(&document.trials, false, true));
    let mut circumstances = Table::of_text(&["", ""]);
    circumstances.row(["command", &code(&document.command)]);
    for fact in document.origin.iter().filter(|fact| fact.shown.on(Target::Markdown)) {
        circumstances.row([fact.label, &escape::markdown(&fact.line().text())]);
    }
    details(&mut out, "How it was made", &circumstances.finish());
    out
}
