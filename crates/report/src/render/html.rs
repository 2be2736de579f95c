//! The report as one page of HTML, which opens from disk and asks nothing of any network.
//!
//! Every figure that stands on the page as text is written here, in the words and with the formatting of the
//! text report, and can be read without JavaScript. The script, which is built from `web/`, draws charts in
//! the places that the page has for them, from [`chart::ChartData`].

mod chart;
mod comparing;
mod heat;
mod interleaved;
mod markup;
mod plot;
mod report;
mod searched;
mod time_series;

use std::io;

pub use interleaved::render_comparison_page;
pub(crate) use searched::page as searched;

use chart::ChartData;
use markup::{Markup, json_in_script};
use plimsoll_core::{characters::visible, escape};
use plimsoll_histogram::Histogram;

use crate::compare::comparison::{Comparison, Incomparable};
use crate::contract::result::RunResult;
use crate::render::document::Document;
use crate::saved::{SavedRun, SavedStep};

/// The page without its content: style sheet and script. It is built from `web/` and committed, so that a
/// build of the program needs no Node.js and no network; `.ci/run` holds it against its sources.
const TEMPLATE: &str = include_str!("../../page/report.html");

/// The place of the page's title in the template.
const TITLE: &str = "<!--title-->";
/// The place of the content.
const CONTENT: &str = "<!--content-->";

/// Notice for a run of which only the result is left.
const WITHOUT_HISTOGRAMS: &str = "Of this run only its result was kept, so there is no heat map, and the \
    spectrum goes straight from one percentile of the result to the next. Runs with --save keep their histograms.";

/// A run on a page.
#[derive(Clone, Copy, Debug)]
pub struct NamedRun<'a> {
    /// Name of the run on the page.
    pub name: &'a str,
    /// The run.
    pub run: &'a SavedRun,
}

/// A run on a page, with its derived parts.
struct ShownRun<'a> {
    name: String,
    result: &'a RunResult,
    saved: &'a SavedRun,
    document: Document,
    /// `true` if no other run is on the page.
    is_alone: bool,
    /// All steps together; `None` if no histograms were kept.
    total: Option<SavedStep>,
}

impl<'a> ShownRun<'a> {
    fn new(named: &NamedRun<'a>, is_alone: bool) -> Self {
        let saved = named.run;
        let total = saved.has_histograms().then(|| saved.total());
        Self {
            name: visible(named.name).into_owned(),
            result: &saved.result,
            document: Document::new(&saved.result),
            saved,
            is_alone,
            total,
        }
    }

    /// The histogram of a time, by its key in the result.
    fn histogram_of(&self, time: &str) -> Option<&Histogram> {
        let total = self.total.as_ref()?;
        Some(if time == "response_time" { &total.response_time } else { &total.service_time })
    }
}

/// Writes the report on a run, or on several with the comparisons between them.
///
/// # Errors
/// The errors of the writer.
pub fn render(
    runs: &[NamedRun<'_>],
    comparisons: &[Result<Comparison, Incomparable>],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    out.write_all(page(runs, comparisons)?.as_bytes())
}

/// The template with a title and content.
fn page(runs: &[NamedRun<'_>], comparisons: &[Result<Comparison, Incomparable>]) -> io::Result<String> {
    let is_alone = runs.len() == 1;
    let runs: Vec<ShownRun<'_>> = runs.iter().map(|run| ShownRun::new(run, is_alone)).collect();
    let mut page = Markup::default();
    match &runs[..] {
        [run] => one(&mut page, run),
        several => overlaid(&mut page, several, comparisons),
    }
    let data = serde_json::to_string(&ChartData::new(&runs))?;
    page.open("script", &[("type", "application/json"), ("id", "chart-data")]);
    let content = page.finish() + &json_in_script(&data) + "</script>";
    Ok(whole(&title(&runs), &content))
}

/// The template with this title and this content, which is markup already.
fn whole(title: &str, content: &str) -> String {
    // Each mark is replaced once: the content may contain these marks, too.
    let (head, rest) = TEMPLATE.split_once(TITLE).unwrap_or((TEMPLATE, ""));
    let (middle, tail) = rest.split_once(CONTENT).unwrap_or((rest, ""));
    [head, &escape::html(title), middle, content, tail].concat()
}

fn title(runs: &[ShownRun<'_>]) -> String {
    match runs {
        [run] => {
            let on = match &run.result.run.name {
                Some(_) => format!(" on {}", targets(run.result)),
                None => String::new(),
            };
            format!("{} – {}{on} – Plimsoll", run.result.verdict.outcome.word(), heading(run.result))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|run| run.name.as_str()).collect();
            format!("{} – Plimsoll", names.join(", "))
        }
    }
}

/// Returns the name of the run, else its targets.
fn heading(result: &RunResult) -> String {
    match &result.run.name {
        Some(name) => visible(name).into_owned(),
        None => targets(result),
    }
}

/// Returns the authorities of the targets, separated by commas.
fn targets(result: &RunResult) -> String {
    let authorities: Vec<&str> = result.run.targets.iter().map(|target| target.authority.as_str()).collect();
    authorities.join(", ")
}

/// The page of one run.
fn one(page: &mut Markup, run: &ShownRun<'_>) {
    page.open("header", &[("class", "page")]);
    page.element("p", "brand", &run.document.tool);
    page.element("h1", "", &heading(run.result));
    run.document.targets.iter().for_each(|target| page.element("p", "target", target));
    page.element("p", "target", &run.document.model.join(" · "));
    let begun = format!("{}, run {}", run.result.run.started_at, run.document.run_id);
    page.element("p", "target", &begun);
    page.close("header");
    let links = report::PARTS.map(|part| (part.id, part.name));
    contents(page, &links);
    page.open("main", &[("id", "main")]);
    page.open("div", &[("data-run", "0")]);
    for part in report::PARTS {
        page.section(part.id, part.title, |page| {
            part.charts.iter().for_each(|chart| page.chart(chart));
            (part.write)(page, run);
        });
    }
    page.close("div");
    page.close("main");
}

/// The page of several runs: their common parts on top, then each of them.
fn overlaid(page: &mut Markup, runs: &[ShownRun<'_>], comparisons: &[Result<Comparison, Incomparable>]) {
    page.open("header", &[("class", "page")]);
    page.element("p", "brand", runs.first().map_or("", |run| &run.document.tool));
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    page.element("h1", "", &names.join(", "));
    page.close("header");
    let mut parts =
        vec![("times", "Times"), ("course", "Over time"), ("machine", "Machine"), ("runs", "Runs")];
    if !comparisons.is_empty() {
        parts.insert(0, ("comparison", "Comparison"));
    }
    contents(page, &parts);
    page.open("main", &[("id", "main")]);
    if !comparisons.is_empty() {
        page.section("comparison", "Comparison", |page| {
            comparisons.iter().for_each(|comparison| comparing::comparison(page, comparison));
        });
    }
    for part in report::PARTS.iter().filter(|part| !part.charts.is_empty()) {
        page.section(part.id, part.title, |page| {
            if part.id == "times" {
                comparing::side_by_side(page, runs);
            }
            part.charts.iter().for_each(|chart| page.chart(chart));
        });
    }
    page.section("runs", "Run by run", |page| {
        for (index, run) in runs.iter().enumerate() {
            page.open("details", &[("class", "run"), ("data-run", &index.to_string())]);
            page.element("summary", "", &format!("{}: {}", run.name, heading(run.result)));
            for part in report::PARTS {
                if part.id != "verdict" {
                    page.element("h3", "", part.title);
                }
                (part.write)(page, run);
            }
            page.close("details");
        }
    });
    page.close("main");
}

/// Links to the parts of the page.
fn contents(page: &mut Markup, parts: &[(&str, &str)]) {
    page.open("nav", &[("aria-label", "Parts of this page")]);
    for (id, title) in parts {
        page.open("a", &[("href", &format!("#{id}"))]);
        page.text(title);
        page.close("a");
    }
    page.close("nav");
}

/// A sign beside words, for the eye: words say the same.
fn mark(page: &mut Markup, class: &'static str) {
    let sign = match class {
        "good" => "✓",
        "bad" => "✗",
        "done" => "•",
        _ => "!",
    };
    page.open("span", &[("class", &format!("sign {class}")), ("aria-hidden", "true")]);
    page.text(sign);
    page.close("span");
}

#[cfg(test)]
mod tests;
