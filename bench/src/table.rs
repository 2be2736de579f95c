//! Markdown tables.

use crate::pairs::{Contestant, Figures, Spread, ratios};

/// One row per tool, and the ratios of the first tool to each other one.
pub(crate) fn contest(contestants: &[Contestant]) -> String {
    let mut out = String::from(
        "| tool | CPU µs/request | user | sys | requests/s | peak MiB | start lag p99 µs | notes |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for contestant in contestants {
        let column = |figure: fn(&Figures) -> f64, digits| {
            cell(Spread::of(contestant.runs.iter().map(figure)), digits)
        };
        let lags = Spread::of(contestant.runs.iter().filter_map(|run| run.start_lag_p99_us));
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            contestant.tool.name(),
            column(|run| run.cpu_us, 2),
            column(|run| run.user_us, 2),
            column(|run| run.system_us, 2),
            column(|run| run.per_second, 0),
            column(|run| run.peak_mib, 1),
            cell(lags, 1),
            notes(contestant),
        ));
    }
    for (index, other) in contestants.iter().enumerate().skip(1) {
        let ours = &contestants[0];
        out.push_str(&format!(
            "\nPaired ratio {} / {}: CPU {}, user {}, requests/s {}.{}",
            ours.tool.name(),
            other.tool.name(),
            cell(ratios(ours, other, |run| run.cpu_us), 2),
            cell(ratios(ours, other, |run| run.user_us), 2),
            cell(ratios(ours, other, |run| run.per_second), 2),
            if index + 1 == contestants.len() { "\n" } else { "  " },
        ));
    }
    out
}

/// What a reader must not overlook.
fn notes(contestant: &Contestant) -> String {
    let failed: u64 = contestant.runs.iter().map(|run| run.failed).sum();
    let invalid = contestant.runs.iter().filter(|run| !run.valid).count();
    let mut notes = Vec::new();
    if failed > 0 {
        notes.push(format!("{failed} failed"));
    }
    if invalid > 0 {
        notes.push(format!("{invalid} of {} runs invalid", contestant.runs.len()));
    }
    notes.join(", ")
}

/// `median (min..max)`.
fn cell(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or("–".to_owned(), |Spread { median, min, max }| {
        format!("{median:.digits$} ({min:.digits$}..{max:.digits$})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::Line;
    use crate::tool::Tool;

    #[test]
    fn a_table_shows_medians_spreads_ratios_and_failures() {
        let run = |cpu_us| Figures {
            cpu_us,
            user_us: 1.0,
            system_us: cpu_us - 1.0,
            per_second: 100_000.0,
            peak_mib: 4.25,
            valid: true,
            ..Figures::default()
        };
        let contestant = |tool, runs: Vec<Figures>| Contestant { tool, line: Line::new(["x"]), runs };
        let ours = contestant(Tool::Plimsoll, vec![run(4.0), run(5.0), run(6.0)]);
        let failed = Figures { failed: 2, valid: false, ..run(12.0) };
        let theirs = contestant(Tool::Wrk, vec![run(8.0), run(10.0), failed]);
        let expected = "\
| tool | CPU µs/request | user | sys | requests/s | peak MiB | start lag p99 µs | notes |
|---|---|---|---|---|---|---|---|
| plimsoll | 5.00 (4.00..6.00) | 1.00 (1.00..1.00) | 4.00 (3.00..5.00) | \
100000 (100000..100000) | 4.2 (4.2..4.2) | – |  |
| wrk | 10.00 (8.00..12.00) | 1.00 (1.00..1.00) | 9.00 (7.00..11.00) | \
100000 (100000..100000) | 4.2 (4.2..4.2) | – | 2 failed, 1 of 3 runs invalid |

Paired ratio plimsoll / wrk: CPU 0.50 (0.50..0.50), user 1.00 (1.00..1.00), requests/s 1.00 (1.00..1.00).
";
        assert_eq!(contest(&[ours, theirs]), expected);
    }
}
