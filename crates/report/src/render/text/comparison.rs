//! A comparison for people.

use plimsoll_core::figure;

use crate::Style;
use crate::compare::comparison::{ChangeResult, Comparison, FigureRow, GroupResult, MetricResult, Word};
use crate::compare::interleaved::SideResult;
use crate::compare::measure::Measure;
use crate::render::layout::{Emphasis, Page, Row};

/// The whole page.
pub(crate) fn page(comparison: &Comparison, style: &Style) -> String {
    let mut page = Page::new(style);
    page.heading(&format!("{} {} · comparison", comparison.tool.name, comparison.tool.version));
    let [a, b] = sides(comparison);
    page.field("A", &a);
    page.field("B", &b);
    if let Some(run) = &comparison.interleaved {
        page.field("load", &run.load_of_both());
    }
    page.field("question", &question(comparison));
    verdict(&mut page, comparison);
    if let Some(run) = &comparison.interleaved {
        page.field("answer", &run.statement);
        for finding in &run.findings {
            page.emphasised_field("", Emphasis::Doubtful, "finding", &format!(": {}", finding.evidence));
        }
    }
    for note in &comparison.notes {
        page.emphasised_field("", Emphasis::Doubtful, "warning", &format!(": {}", note.text));
    }
    page.blank();
    table(&mut page, comparison);
    for (names, reason) in reasons(comparison) {
        page.field("why", &format!("{names}: {reason}"));
    }
    page.field("method", &methods(comparison));
    page.finish()
}

/// Returns the question in words, with the smallest changes that matter and the confidence.
pub(crate) fn question(comparison: &Comparison) -> String {
    let settings = &comparison.settings;
    format!(
        "is B better or worse than A? A change counts if it is real and may be {} or more (errors: {}); confidence {}",
        percent(settings.effect),
        points(settings.error_effect),
        percent(settings.confidence),
    )
}

pub(crate) fn group(group: &GroupResult) -> String {
    let runs = group.runs.len();
    let first = group.runs.iter().map(|run| run.started_at.as_str()).min().unwrap_or_default();
    let last = group.runs.iter().map(|run| run.started_at.as_str()).max().unwrap_or_default();
    if runs == 1 {
        format!("{}: 1 run, {first}", group.name)
    } else {
        format!("{}: {runs} runs, {first} to {last}", group.name)
    }
}

/// Both sides of the comparison: groups of runs, or the targets of the only run.
pub(crate) fn sides(comparison: &Comparison) -> [String; 2] {
    let (a, b) = (&comparison.a, &comparison.b);
    let Some(run) = &comparison.interleaved else { return [group(a), group(b)] };
    [(a, &run.a), (b, &run.b)].map(|(side, requests)| {
        let SideResult { ok, failed, .. } = requests;
        format!("{}: {} requests, {failed} failed", side.name, ok + failed)
    })
}

fn verdict(page: &mut Page<'_>, comparison: &Comparison) {
    if let Some(refused) = &comparison.refused {
        let rest = format!(": {refused}; no conclusions are drawn");
        page.emphasised_field("verdict", Emphasis::Bad, "NOT JUDGED", &rest);
        return;
    }
    if let Some(broken) = comparison.broken() {
        page.emphasised_field("verdict", Emphasis::Bad, "FAIL", &format!(": {}", broken.words()));
        return;
    }
    let named = |word: Word| -> Vec<&str> {
        comparison.metrics.iter().filter(|metric| metric.verdict == Some(word)).map(short).collect()
    };
    let (emphasis, start) = match comparison.verdict {
        Word::Better => (Emphasis::Good, "BETTER"),
        Word::Worse => (Emphasis::Bad, "WORSE"),
        Word::Same => (Emphasis::Good, "SAME"),
        Word::Undecided => (Emphasis::Doubtful, "UNDECIDED"),
    };
    let others = [Word::Worse, Word::Better, Word::Undecided].into_iter();
    let others = others.filter(|word| *word != comparison.verdict && !named(*word).is_empty());
    let mut rest = String::new();
    if comparison.verdict != Word::Same && !named(comparison.verdict).is_empty() {
        rest = format!(": {}", named(comparison.verdict).join(", "));
    }
    others.for_each(|word| rest.push_str(&format!("; {}: {}", word.name(), named(word).join(", "))));
    page.emphasised_field("verdict", emphasis, start, &rest);
}

fn table(page: &mut Page<'_>, comparison: &Comparison) {
    // Intervals that hold at every look have no probability beside them.
    let columns = if comparison.interleaved.is_some() { 4 } else { 5 };
    let row = |metric: &MetricResult| {
        let FigureRow { label, cells, word, .. } = row(metric);
        Row { label, cells: cells[..columns].to_vec(), note: word.to_owned() }
    };
    let rows: Vec<Row> = comparison.metrics.iter().map(row).collect();
    let heads = ["A", "B", "change", "interval", "p"];
    page.fitted(&heads[..columns], &rows, &["p", "interval", "A", "B"]);
}

/// A figure in both groups, for people.
pub(crate) fn row(metric: &MetricResult) -> FigureRow {
    let [a, b] = medians(metric);
    let change = metric.change.as_ref();
    let probability = change.and_then(|change| change.p_adjusted.or(change.p));
    FigureRow {
        label: short(metric).to_owned(),
        cells: [
            a,
            b,
            change.map_or("-".to_owned(), |change| amount(change, Some(change.estimate))),
            change.map_or("-".to_owned(), change_interval),
            probability
                .map_or("-".to_owned(), |p| if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }),
        ],
        verdict: metric.verdict,
        word: word(metric),
    }
}

/// The figure of both groups for people.
pub(crate) fn medians(metric: &MetricResult) -> [String; 2] {
    let measure: Option<Measure> = metric.metric.parse().ok();
    let shown = |value: Option<f64>, at_least: bool| {
        let mark = if at_least { "≥ " } else { "" };
        let own = |value: f64| match metric.unit.as_str() {
            "per_s" => figure::per_second(value),
            "share" => figure::share(value),
            _ => figure::number(value),
        };
        let shown = value.map(|value| measure.map_or_else(|| own(value), |measure| measure.show(value)));
        shown.map_or("-".to_owned(), |shown| format!("{mark}{shown}"))
    };
    [shown(metric.a_median, metric.a_at_least), shown(metric.b_median, metric.b_at_least)]
}

/// Both ends of a change.
pub(crate) fn change_interval(change: &ChangeResult) -> String {
    if change.low.is_none() && change.high.is_none() {
        return "-".to_owned();
    }
    format!("[{}, {}]", amount(change, change.low), amount(change, change.high))
}

/// One end of a change, with its sign.
pub(crate) fn amount(change: &ChangeResult, value: Option<f64>) -> String {
    match value {
        None => "?".to_owned(),
        Some(value) if change.kind == "absolute" => format!("{:+.2} points", value * 100.0),
        Some(value) => format!("{:+.1} %", value * 100.0),
    }
}

/// Reason why figures are undecided or not judged: the figures, and each reason once.
pub(crate) fn reasons(comparison: &Comparison) -> Vec<(String, &str)> {
    let mut reasons: Vec<&str> = Vec::new();
    for reason in comparison.metrics.iter().filter_map(|metric| metric.reason.as_deref()) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    let names = |reason: &str| {
        let metrics = comparison.metrics.iter().filter(|metric| metric.reason.as_deref() == Some(reason));
        metrics.map(short).collect::<Vec<_>>().join(", ")
    };
    reasons.into_iter().map(|reason| (names(reason), reason)).collect()
}

/// The name without the usual kind of time, which is named below the table.
pub(crate) fn short(metric: &MetricResult) -> &str {
    let name = metric.metric.as_str();
    name.strip_prefix("response_time.").or_else(|| name.strip_prefix("service_time.")).unwrap_or(name)
}

pub(crate) fn word(metric: &MetricResult) -> &'static str {
    metric.verdict.map_or("not judged", Word::name)
}

/// The methods of its judgement.
pub(crate) fn methods(comparison: &Comparison) -> String {
    let mut kinds: Vec<&str> =
        comparison.metrics.iter().filter_map(|m| m.metric.split_once('.')).map(|k| k.0).collect();
    kinds.retain(|kind| kind.ends_with("_time"));
    kinds.dedup();
    let has = |method: &str| {
        comparison.metrics.iter().any(|m| m.change.as_ref().is_some_and(|change| change.method == method))
    };
    // Only metrics that could differ at all count: these are the tests that are made at once.
    let tests = comparison.metrics.iter().filter_map(|metric| metric.change.as_ref());
    let tests = tests.filter(|change| change.p_adjusted.is_some() && change.method != "equal").count();
    let mut parts = Vec::new();
    if !kinds.is_empty() {
        parts.push(format!("times are {}", kinds.join(" and ").replace('_', " ")));
    }
    match &comparison.interleaved {
        None => parts.push("values are medians over runs".to_owned()),
        Some(run) => parts.push(format!(
            "one run in which {}, compared in {} blocks; the intervals hold together, at every instant of the \
             run (confidence sequences)",
            run.how(),
            run.blocks
        )),
    }
    if has("ranks") {
        parts.push("changes are Hodges-Lehmann shifts, p is that of Mann-Whitney".to_owned());
    }
    if has("means") {
        parts.push("changes are those of means of few runs, with Welch's interval".to_owned());
    }
    if has("slices") {
        parts
            .push("changes of single runs are those of quantiles, by a bootstrap of their slices".to_owned());
    }
    if tests > 1 {
        parts.push(format!("raised for {tests} figures (Holm)"));
    }
    parts.join("; ")
}

pub(crate) fn percent(share: f64) -> String {
    format!("{} %", plimsoll_core::text::percent(share, 4))
}

pub(crate) fn points(share: f64) -> String {
    format!("{} percentage points", plimsoll_core::text::percent(share, 4))
}
