//! A comparison as Markdown, for a pull request.

use std::fmt::Write as _;

use plimsoll_core::escape;

use crate::compare::comparison::{Comparison, MetricResult, Word};
use crate::render::markdown::{Table, code, details};
use crate::render::text::comparison::{
    amount, change_interval, medians, percent, points, short, sides, word,
};

/// The whole page.
pub(crate) fn page(comparison: &Comparison) -> String {
    let mut out = String::new();
    let word = match (&comparison.refused, comparison.broken()) {
        (Some(_), _) => "not judged",
        (None, Some(broken)) => broken.words(),
        (None, None) => comparison.verdict.name(),
    };
    // Writing to a string cannot fail, here and below.
    let _ = write!(out, "### Load test comparison: {word}\n\n");
    if let Some(refused) = &comparison.refused {
        let _ = write!(out, "{}; no conclusions are drawn.\n\n", escape::markdown(refused));
    }
    if let Some(run) = &comparison.interleaved {
        let _ = write!(out, "**{}**\n\n", escape::markdown(&run.statement));
    }
    let [a, b] = sides(comparison);
    let _ = writeln!(out, "**A** {}  ", escape::markdown(&a));
    let _ = write!(out, "**B** {}\n\n", escape::markdown(&b));
    for note in &comparison.notes {
        let _ = writeln!(out, "- **warning**: {}", escape::markdown(&note.text));
    }
    out.push_str(&table(comparison));
    let reasons = comparison.metrics.iter().filter_map(|metric| Some((metric, metric.reason.as_ref()?)));
    for (metric, reason) in reasons {
        let _ = writeln!(out, "- {}: {}", code(short(metric)), escape::markdown(reason));
    }
    out.push('\n');
    let settings = &comparison.settings;
    let values = match &comparison.interleaved {
        None => "values are medians over runs".to_owned(),
        Some(run) => format!("{} in one run, and the intervals hold at every instant of it", run.how()),
    };
    let method = format!(
        "\nChanges are those from A to B; {values}. A change counts if it is real and may be {} or more (errors: {}); confidence {}.\n",
        percent(settings.effect),
        points(settings.error_effect),
        percent(settings.confidence),
    );
    details(&mut out, "How it was judged", &method);
    out
}

fn table(comparison: &Comparison) -> String {
    let mut table = Table::new(&["", "A", "B", "change", "interval", "verdict"]);
    for metric in &comparison.metrics {
        let change = metric.change.as_ref();
        let [a, b] = medians(metric);
        table.row([
            code(short(metric)).as_str(),
            &a,
            &b,
            &change.map_or("-".to_owned(), |change| amount(change, Some(change.estimate))),
            &change.map_or("-".to_owned(), change_interval),
            &verdict(metric),
        ]);
    }
    table.finish()
}

/// The word, with a mark beside it, so that a change is seen at once.
fn verdict(metric: &MetricResult) -> String {
    match metric.verdict {
        Some(Word::Better) => "✔ **better**".to_owned(),
        Some(Word::Worse) => "✘ **worse**".to_owned(),
        Some(Word::Same | Word::Undecided) | None => word(metric).to_owned(),
    }
}
