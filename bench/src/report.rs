//! The Markdown that goes into `RESULTS.md`.

use std::fmt::Write as _;

use crate::run::Run;
use crate::statistic::Spread;

/// One measured figure beside the limit that was set for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) case: String,
    pub(crate) figure: String,
    pub(crate) measured: String,
    pub(crate) limit: String,
    pub(crate) met: bool,
}

/// Result of one case: its text in the report, and its findings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) text: String,
    pub(crate) findings: Vec<Finding>,
}

impl Section {
    pub(crate) fn titled(title: &str) -> Self {
        Self { text: format!("\n## {title}\n\n"), findings: Vec::new() }
    }

    /// A block of command lines.
    pub(crate) fn commands<S: AsRef<str>>(&mut self, lines: &[S]) {
        self.text.push_str("```\n");
        for line in lines {
            self.text.push_str(line.as_ref());
            self.text.push('\n');
        }
        self.text.push_str("```\n");
    }

    /// A table whose first column names the figures.
    pub(crate) fn table<S: AsRef<str>>(&mut self, head: &[&str], rows: &[Vec<S>]) {
        self.text.push_str(&table(head, rows));
    }

    /// A list entry below a table.
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        if !self.text.ends_with("\n\n")
            && !self.text.lines().last().is_some_and(|line| line.starts_with("* "))
        {
            self.text.push('\n');
        }
        self.text.push_str("* ");
        self.text.push_str(text.as_ref());
        self.text.push('\n');
    }
}

/// A Markdown table whose first column is text and whose others are figures.
pub(crate) fn table<S: AsRef<str>>(head: &[&str], rows: &[Vec<S>]) -> String {
    let mut text =
        format!("\n| {} |\n|---|{}\n", head.join(" | "), "---:|".repeat(head.len().saturating_sub(1)));
    for row in rows {
        let cells: Vec<&str> = row.iter().map(AsRef::as_ref).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// The limits of all cases at a glance.
pub(crate) fn summary(findings: &[Finding]) -> String {
    let rows: Vec<Vec<&str>> = findings
        .iter()
        .map(|finding| {
            vec![&*finding.case, &*finding.figure, &*finding.measured, &*finding.limit, verdict(finding.met)]
        })
        .collect();
    format!("\n## Limits\n{}", table(&["case", "figure", "measured", "limit", ""], &rows))
}

pub(crate) fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "**not met**" }
}

/// The median of a figure over runs, with its spread.
pub(crate) fn spread(runs: &[Run], figure: impl Fn(&Run) -> f64) -> Option<Spread> {
    Spread::of(runs.iter().map(figure))
}

/// For a cell of a table.
pub(crate) fn cell(spread: Option<Spread>, places: usize) -> String {
    spread.map_or_else(|| "–".to_owned(), |spread| format!("{spread:.places$}"))
}

/// In how many of the runs Plimsoll called its own result invalid, and why; none if in none.
pub(crate) fn invalid_runs(runs: &[Run]) -> Option<String> {
    let reasons: Vec<&[String]> = runs
        .iter()
        .map(|run| run.reading.detail.invalid_reasons.as_slice())
        .filter(|reasons| !reasons.is_empty())
        .collect();
    let mut distinct: Vec<&str> = reasons.iter().copied().flatten().map(String::as_str).collect();
    distinct.sort_unstable();
    distinct.dedup();
    (!reasons.is_empty()).then(|| format!("{} of {}: {}", reasons.len(), runs.len(), distinct.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_markdown() {
        let mut section = Section::titled("h1");
        section.commands(&["a", "b"]);
        section.table(&["", "x"], &[vec!["total", "1.00"]]);
        section.note("one");
        section.note("two");
        assert_eq!(
            section.text,
            "\n## h1\n\n```\na\nb\n```\n\n|  | x |\n|---|---:|\n| total | 1.00 |\n\n* one\n* two\n"
        );
    }

    #[test]
    fn the_summary_says_which_limits_were_met() {
        let finding = |met| Finding {
            case: "h1".to_owned(),
            figure: "total".to_owned(),
            measured: "0.70".to_owned(),
            limit: "≤ 0.75".to_owned(),
            met,
        };
        let text = summary(&[finding(true), finding(false)]);
        assert!(text.contains("| h1 | total | 0.70 | ≤ 0.75 | met |\n"), "{text}");
        assert!(text.ends_with("| h1 | total | 0.70 | ≤ 0.75 | **not met** |\n"), "{text}");
    }
}
