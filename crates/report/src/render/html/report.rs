//! The parts of the page of one run.

use plimsoll_core::figure;

use super::markup::{Markup, class};
use super::{ShownRun, mark};
use crate::build::headline::Standing;
use crate::contract::result::Finding;
use crate::render::document::times::Distribution;
use crate::render::document::{self, Document, Line, Span};
use crate::render::format::behind_name;
use crate::render::layout::Emphasis;
use crate::render::text::range;

/// A part of the page.
pub(super) struct Part {
    pub(super) id: &'static str,
    /// The text of the link to it.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Charts at its start.
    pub(super) charts: &'static [&'static str],
    pub(super) write: fn(&mut Markup, &ShownRun<'_>),
}

pub(super) const PARTS: [Part; 8] = [
    Part { id: "verdict", name: "Verdict", title: "Verdict", charts: &[], write: verdict },
    Part {
        id: "times",
        name: "Times",
        title: "Response and service time",
        charts: &["spectrum", "histogram"],
        write: |page, run| {
            let Document { times, remarks, other_times, streams, beside, .. } = &run.document;
            page.table(times);
            page.notes(remarks);
            distribution(page, &run.document.distribution);
            page.table(other_times);
            streams.iter().for_each(|section| page.part(section));
            beside.iter().for_each(|section| page.part(section));
        },
    },
    Part {
        id: "course",
        name: "Over time",
        title: "Over time",
        charts: &["course", "heat"],
        write: |page, run| {
            let Document { pace, phases, changes, stalls, .. } = &run.document;
            page.facts(pace);
            [phases, changes, stalls].into_iter().for_each(|table| page.table(table));
        },
    },
    Part {
        id: "accounting",
        name: "Accounting",
        title: "Accounting",
        charts: &[],
        write: |page, run| page.facts(&run.document.accounts),
    },
    Part {
        id: "answers",
        name: "Answers",
        title: "Answers, errors and connections",
        charts: &[],
        write: |page, run| answers(page, &run.document),
    },
    Part {
        id: "steps",
        name: "Steps",
        title: "Steps",
        charts: &[],
        write: |page, run| {
            page.table(&run.document.steps);
            page.table(&run.document.slowest);
            run.document.metrics.iter().for_each(|section| page.part(section));
        },
    },
    Part {
        id: "machine",
        name: "Machine",
        title: "Generator and machine",
        charts: &["machine"],
        write: |page, run| run.document.generator.iter().for_each(|section| page.part(section)),
    },
    Part {
        id: "origin",
        name: "Origin",
        title: "Methods, plan and origin",
        charts: &[],
        write: |page, run| origin(page, &run.document, run.saved.plan.as_deref()),
    },
];

/// The outcome of a run, with everything that belongs to it.
fn verdict(page: &mut Markup, run: &ShownRun<'_>) {
    let document = &run.document;
    page.within("div", "outcome", |page| {
        page.within("div", "", |page| outcome(page, document));
        // Of several runs there is one picture of all.
        if run.is_alone {
            page.open("div", &[("class", "picture"), ("data-chart", "picture")]);
            page.close("div");
        }
    });
    if !document.reasons.is_empty() {
        page.element("h3", "", "Why it is invalid");
        findings(page, Emphasis::Bad, &document.reasons);
    }
    thresholds(page, document);
    page.facts(&document.records);
    warnings(page, &document.warnings);
    page.notes(&document.notes);
}

/// The outcome itself, in words and in its main figures.
fn outcome(page: &mut Markup, document: &Document) {
    let opening = &document.opening;
    let class = class(Emphasis::of(opening.outcome));
    page.within("div", &format!("verdict {class}"), |page| {
        mark(page, class);
        page.within("div", "", |page| {
            for (class, span) in [("word", &opening.word), ("", &opening.summary)] {
                page.open("p", &[("class", class)]);
                page.span(span);
                page.close("p");
            }
            let class = if opening.is_valid { "validity" } else { "validity bad" };
            page.element("p", class, &opening.validity);
        });
    });
    if !opening.ended.is_empty() {
        page.element("p", "notice", &document::sentence(&opening.ended));
    }
    if !opening.shared.is_empty() {
        page.element("p", "notice", &document::sentence(&opening.shared));
    }
    tiles(page, document);
    limited_by(page, document);
}

/// The warnings in one line, which opens; nothing without any.
pub(super) fn warnings(page: &mut Markup, warnings: &[Finding]) {
    if warnings.is_empty() {
        return;
    }
    let mut names: Vec<String> = warnings.iter().map(|warning| warning.code.replace('_', " ")).collect();
    names.dedup();
    let number = if warnings.len() == 1 { "1 warning" } else { &format!("{} warnings", warnings.len()) };
    page.open("details", &[("class", "warnings")]);
    page.within("summary", "", |page| {
        mark(page, class(Emphasis::Doubtful));
        page.text(" ");
        page.element("strong", "", number);
        page.text(&format!(": {}", names.join(", ")));
    });
    findings(page, Emphasis::Doubtful, warnings);
    page.close("details");
}

fn findings(page: &mut Markup, emphasis: Emphasis, findings: &[Finding]) {
    let class = class(emphasis);
    page.within("ul", &format!("findings {class}"), |page| {
        for finding in findings {
            page.within("li", "", |page| {
                mark(page, class);
                page.within("div", "", |page| {
                    let name = finding.code.replace('_', " ");
                    page.element("strong", "", &name);
                    page.text(&behind_name(&name, &finding.evidence));
                    hint(page, &finding.hint);
                });
            });
        }
    });
}

fn hint(page: &mut Markup, hint: &str) {
    if !hint.is_empty() {
        page.element("p", "hint", &format!("Hint: {hint}"));
    }
}

fn limited_by(page: &mut Markup, document: &Document) {
    let opening = &document.opening;
    page.within("div", "limited", |page| {
        page.open("p", &[]);
        page.element("strong", "sentence", opening.limited_by);
        if !opening.evidence.is_empty() {
            page.text(" – ");
            page.text(&opening.evidence);
        }
        page.close("p");
        hint(page, &document.hint);
    });
}

fn tiles(page: &mut Markup, document: &Document) {
    page.within("div", "tiles", |page| {
        for tile in &document.tiles {
            page.within("div", "tile", |page| {
                page.element("span", "label", &tile.label);
                page.within("span", "value", |page| page.span(&tile.value));
                page.element("span", "below", &tile.below);
            });
        }
    });
}

fn thresholds(page: &mut Markup, document: &Document) {
    if document.thresholds.is_empty() {
        return;
    }
    let rows = document.thresholds.iter().map(|threshold| {
        let (emphasis, word) = match threshold.standing {
            Standing::Holds => (Emphasis::Good, "✓ pass"),
            Standing::Fails => (Emphasis::Bad, "✗ fail"),
            Standing::NotShown => (Emphasis::Doubtful, "? not shown"),
            Standing::NotJudged => (Emphasis::Doubtful, "! not judged"),
        };
        // The word first, so that it is in sight on a narrow screen.
        let word = Line::from(Span::emphasised(emphasis, word));
        vec![word, threshold.condition.as_str().into(), threshold.seen.clone()]
    });
    page.rows("Thresholds", &["", "threshold", "observed"], &rows.collect::<Vec<_>>());
    if document.thresholds.iter().any(|threshold| threshold.standing == Standing::NotJudged) {
        page.element(
            "p",
            "hint",
            "An invalid measurement proves nothing about thresholds that are not judged.",
        );
    }
}

/// The distribution of the time that the model is about.
fn distribution(page: &mut Markup, distribution: &Distribution) {
    let Distribution { name, rows, count, largest } = distribution;
    if rows.is_empty() {
        page.element("p", "empty", &format!("No request has a {name}: none ended well or timed out."));
        return;
    }
    page.open("details", &[]);
    page.element("summary", "", &format!("Table: {}", distribution.title()));
    page.open(
        "div",
        &[("class", "table"), ("role", "group"), ("tabindex", "0"), ("aria-label", "Distribution")],
    );
    page.open("table", &[("class", "distribution")]);
    page.open("thead", &[]);
    page.within("tr", "", |page| {
        [name, "", "requests", "share"].iter().for_each(|title| page.column(title));
    });
    page.close("thead");
    page.within("tbody", "", |page| {
        for row in rows {
            page.open("tr", &[]);
            page.open("th", &[("scope", "row")]);
            page.text(&range(row));
            page.close("th");
            page.open("td", &[]);
            page.bar(row.count as f64 / *largest as f64);
            page.close("td");
            page.element("td", "", &figure::count(row.count));
            page.element("td", "", &figure::share(row.count as f64 / *count as f64));
            page.close("tr");
        }
    });
    page.close("table");
    page.close("div");
    page.close("details");
}

/// Statuses, protocols, errors and connections.
fn answers(page: &mut Markup, document: &Document) {
    page.within("div", "columns", |page| {
        page.table(&document.statuses);
        if document.statuses.is_empty() {
            page.element("p", "empty", "Not one response came.");
        }
        page.table(&document.errors);
        if document.errors.is_empty() {
            page.element("p", "empty", &document.no_errors);
        }
        page.table(&document.protocols);
    });
    page.facts(&document.connections);
}

/// The methods of the figures, and the settings that reproduce the run.
fn origin(page: &mut Markup, document: &Document, plan: Option<&str>) {
    page.element("h3", "", "Load");
    page.notes(&document.model);
    document.origin.iter().for_each(|section| page.part(section));
    page.element("h3", "", "Command");
    preformatted(page, &document.command);
    if let Some(plan) = plan {
        page.open("details", &[]);
        page.element("summary", "", "The plan as it was written");
        preformatted(page, plan);
        page.close("details");
    }
}

pub(super) fn preformatted(page: &mut Markup, text: &str) {
    page.open("pre", &[("tabindex", "0")]);
    page.text(text);
    page.close("pre");
}
