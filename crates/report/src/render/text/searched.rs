//! A search, or a sweep, for people: the answer, then the curve it rests on.

use super::{facts, table};
use crate::Style;
use crate::contract::result::Finding;
use crate::contract::searched::Searched;
use crate::render::document::searched::SearchDocument;
use crate::render::layout::{Emphasis, Page};

/// The whole report.
pub(crate) fn page(searched: &Searched, style: &Style) -> String {
    let document = SearchDocument::new(searched);
    let mut page = Page::new(style);
    page.heading(&format!("{} · {}", document.tool, document.identity));
    facts(&mut page, &document.facts);
    page.blank();
    if !document.statement.is_empty() {
        let statement = format!(": {}", document.statement);
        page.emphasised_field("capacity", document.emphasis, &document.answer, &statement);
    }
    document.notes.iter().for_each(|note| page.field("note", note));
    for Finding { code, evidence, hint } in &document.findings {
        page.emphasised_field("warning", Emphasis::Doubtful, code, &format!(": {evidence}"));
        if !hint.is_empty() {
            page.field("", &format!("hint: {hint}"));
        }
    }
    if !(document.statement.is_empty() && document.findings.is_empty()) {
        page.blank();
    }
    table(&mut page, &document.levels);
    facts(&mut page, &document.law);
    page.finish()
}
