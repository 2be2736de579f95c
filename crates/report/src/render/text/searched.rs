//! A search, or a sweep, for people: the answer, then the curve it rests on.

use super::{facts, rows};
use crate::Style;
use crate::contract::result::Finding;
use crate::contract::searched::Searched;
use crate::render::document::Target;
use crate::render::document::searched::SearchDocument;
use crate::render::layout::{Emphasis, Page};

/// Columns of levels that a narrow page has no room for, the one that is left out first before the others.
const LEAST: [&str; 10] = [
    "measured",
    "in flight",
    "p90",
    "for each user",
    "limited by",
    "TTFT p50",
    "p50",
    "answered/s",
    "ITL p99",
    "TTFT p99",
];

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
    if !document.levels.is_empty() {
        page.fitted(&document.levels.titles(Target::Text)[1..], &rows(&document.levels), &LEAST);
        page.blank();
    }
    for (number, (rate, reason)) in document.reasons.iter().enumerate() {
        page.field(if number == 0 { "why" } else { "" }, &format!("{rate}: {reason}"));
    }
    if !document.reasons.is_empty() {
        page.blank();
    }
    facts(&mut page, &document.law);
    page.finish()
}
