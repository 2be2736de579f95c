//! The history of runs: `plimsoll runs`, `show`, `export`, `merge` and `rm`.

use std::io::IsTerminal as _;
use std::path::Path;

use plimsoll_core::{Nanos, characters::visible, figure};
use plimsoll_document::{Problem, Problems};
use plimsoll_report::saved::MergeError;
use plimsoll_report::{Format, NoHistograms, SavedRun, Style, render_saved};
use plimsoll_store::{Filter, Row, State, Tag};
use serde_json::{Value, json};

use crate::args::instant::instant;
use crate::args::output::TableOutputFormat;
use crate::args::runs::{ExportArgs, ExportFormat, MergeArgs, RmArgs, RunsArgs, ShowArgs};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::foreign_text::csv_cell;
use crate::base::streams::Content;
use crate::base::{files, stdout};
use crate::session::run::exit_of;
use crate::session::saved_runs::{History, NamedRun, label};
use crate::session::saving::{DIGITS, failure};

/// The columns of the list as CSV.
const COLUMNS: &str = "id,started_at,name,tags,state,model,target,duration_s,target_per_s,achieved_per_s,time,p50_ns,\
                       p99_ns,started,errors,valid,invalid_reasons,thresholds,outcome,kind,answer,at_least";

/// `plimsoll runs`.
pub(crate) fn list(args: &RunsArgs, style: &Style) -> Result<Exit, Failure> {
    let mut history = History::at(&args.place)?;
    let filter = filter(args).map_err(Failure::usage)?;
    let rows = match history.store()? {
        Some(store) => store.list(&filter).map_err(|error| failure(&error))?,
        None => Vec::new(),
    };
    let text = match args.output {
        TableOutputFormat::Text if rows.is_empty() => {
            let all = Filter { limit: filter.limit, ..Filter::default() };
            let which = if filter == all { "" } else { " such" };
            format!("no{which} runs in {}; `plimsoll run --save` saves one\n", history.path().display())
        }
        TableOutputFormat::Text => table(&rows, style),
        TableOutputFormat::Json => {
            let list = json!({"store": history.path(), "runs": rows.iter().map(object).collect::<Vec<_>>()});
            format!("{list:#}\n")
        }
        TableOutputFormat::Csv => {
            let lines: Vec<String> = rows.iter().map(line).collect();
            format!("{COLUMNS}\n{}", lines.concat())
        }
    };
    stdout::to_stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Success)
}

/// `plimsoll show`.
pub(crate) fn show(args: &ShowArgs, style: &Style) -> Result<Exit, Failure> {
    let mut history = History::at(&args.place)?;
    if let Some(document) = history.document(&args.run)? {
        document.admit(args.output)?;
        stdout::to_stdout(|out| document.write(args.output, style, out))?;
        return Ok(Exit::Success);
    }
    let shown = history.run(&args.run)?;
    admit(&shown.run, args.output.into())?;
    stdout::to_stdout(|out| render_saved(&shown.run, args.output.into(), style, out))?;
    Ok(Exit::Success)
}

/// `plimsoll export`.
pub(crate) fn export(args: &ExportArgs, style: &Style) -> Result<Exit, Failure> {
    admit_stdout(args.output, args.file.as_deref())?;
    let exported = History::at(&args.place)?.run(&args.run)?.run;
    put_out(&exported, args.output, args.file.as_deref(), style)?;
    Ok(Exit::Success)
}

/// `plimsoll merge`: the shards of a load as one run, which ends the command as its run would have.
pub(crate) fn merge(args: &MergeArgs, style: &Style) -> Result<Exit, Failure> {
    admit_stdout(args.output, args.file.as_deref())?;
    let mut history = History::at(&args.place)?;
    let named = args.runs.iter().map(|word| history.run(word)).collect::<Result<Vec<NamedRun>, Failure>>()?;
    let shards: Vec<SavedRun> = named.into_iter().map(|named| named.run).collect();
    let merged = SavedRun::merge_shards(&shards).map_err(|error| {
        let hint = match &error {
            MergeError::NoHistograms { .. } => "shards are merged as they were saved: `plimsoll run --save`",
            MergeError::NoShard { .. } => "`plimsoll run --shard 1/3` carries out a shard",
            MergeError::Missing { .. } => "name all of them: the result is of the whole load",
            MergeError::Twice { .. } => "leave one of them out",
            MergeError::Nothing | MergeError::OtherPlan { .. } | MergeError::OtherLoad { .. } => {
                "the shards of a load have one plan, one --seed and one -t"
            }
        };
        Failure::usage(Problem::new(error.to_string()).with_hint(hint))
    })?;
    put_out(&merged, args.output, args.file.as_deref(), style)?;
    Ok(exit_of(&merged.result))
}

/// Refuses to write a saved run to a terminal.
pub(crate) fn admit_stdout(format: ExportFormat, file: Option<&Path>) -> Result<(), Failure> {
    if format == ExportFormat::Saved && file.is_none() && std::io::stdout().is_terminal() {
        let problem = Problem::new("a saved run is binary, and stdout is a terminal");
        return Err(Failure::usage(problem.with_hint("name a file: --file run.plimsoll")));
    }
    Ok(())
}

/// Writes a run to a file, or to stdout.
pub(crate) fn put_out(
    run: &SavedRun,
    format: ExportFormat,
    file: Option<&Path>,
    style: &Style,
) -> Result<(), Failure> {
    if let ExportFormat::Run(format) = format {
        admit(run, format.into())?;
    }
    // Exported files and piped output are read on other terminals, so they have no colours.
    let style = if file.is_some() { &Style::PLAIN } else { style };
    match file {
        Some(path) => files::to_file(path, |out| write(run, format, style, out)),
        None if format == ExportFormat::Saved => {
            stdout::content_to_stdout(Content::Bytes, |out| write(run, format, style, out))
        }
        None => stdout::to_stdout(|out| write(run, format, style, out)),
    }
}

fn write(
    run: &SavedRun,
    format: ExportFormat,
    style: &Style,
    out: &mut dyn std::io::Write,
) -> std::io::Result<()> {
    match format {
        ExportFormat::Run(format) => render_saved(run, format.into(), style, out),
        ExportFormat::Saved => out.write_all(&run.to_bytes()?),
    }
}

/// Fails if a run lacks data that a format needs.
fn admit(run: &SavedRun, format: Format) -> Result<(), Failure> {
    if !format.needs_histograms() || run.has_histograms() {
        return Ok(());
    }
    let problem = Problem::new(NoHistograms(format).to_string());
    Err(Failure::usage(problem.with_hint("runs that were saved have them: `plimsoll run --save`")))
}

/// `plimsoll rm`.
pub(crate) fn remove(args: &RmArgs) -> Result<Exit, Failure> {
    let mut history = History::at(&args.place)?;
    let mut rows: Vec<Row> = Vec::new();
    match &args.older_than {
        Some(text) => {
            let before_unix_ns = Some(instant("--older-than", text).map_err(Failure::usage)?);
            if let Some(store) = history.store()? {
                let filter = Filter { before_unix_ns, ..Filter::default() };
                rows = store.list(&filter).map_err(|error| failure(&error))?;
                rows.retain(|row| row.state != State::Running);
            }
        }
        None => {
            // All problems at once, and nothing is removed if there is one.
            let mut problems = Problems::default();
            for word in &args.runs {
                match history.row(word) {
                    Ok(row) if row.state == State::Running => problems.push(
                        Problem::new(format!("{} is still running", label(&row)))
                            .with_hint("wait for its end"),
                    ),
                    Ok(row) if rows.iter().any(|other| other.number == row.number) => {}
                    Ok(row) => rows.push(row),
                    Err(failure) if failure.exit == Exit::Usage => problems.extend(failure.problems),
                    Err(failure) => return Err(failure),
                }
            }
            if !problems.is_empty() {
                return Err(Failure::usage(problems));
            }
        }
    }
    let numbers: Vec<i64> = rows.iter().map(|row| row.number).collect();
    if let Some(store) = history.store()? {
        store.remove(&numbers).map_err(|error| failure(&error))?;
    }
    let line = |row: &Row| format!("removed {}, {}, {}\n", label(row), row.started_at, visible(&row.target));
    let mut text: String = rows.iter().map(line).collect();
    if rows.is_empty() {
        text = "no run is that old\n".to_owned();
    }
    stdout::to_stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Success)
}

fn filter(args: &RunsArgs) -> Result<Filter, Problems> {
    let mut problems = Problems::default();
    let mut tags = Vec::new();
    for text in &args.tags {
        match text.parse::<Tag>() {
            Ok(tag) => tags.push(tag),
            Err(bad) => problems.push(Problem::new(format!("--tag: {bad}"))),
        }
    }
    let since = args.since.as_ref().map(|text| instant("--since", text)).transpose();
    let since_unix_ns = since.unwrap_or_else(|problem| {
        problems.push(problem);
        None
    });
    if !problems.is_empty() {
        return Err(problems);
    }
    let limit = (args.limit > 0).then_some(args.limit);
    Ok(Filter { name: args.name.clone(), tags, since_unix_ns, before_unix_ns: None, limit })
}

/// Describes the outcome of a run, in a word or two.
fn verdict(row: &Row) -> String {
    let invalid = || if row.valid == Some(false) { row.invalid_reasons.join(" ") } else { String::new() };
    if let Some(answer) = &row.answer {
        let outcome = row.outcome.as_deref().unwrap_or_default().replace('_', " ").to_uppercase();
        return format!("{outcome} {}: {answer}", row.kind.name());
    }
    let with_reasons = |word: &str| format!("{word} {}", invalid()).trim_end().to_owned();
    match (row.state, row.outcome.as_deref(), row.thresholds.as_deref()) {
        (State::Running, ..) => "running".to_owned(),
        (State::Killed, ..) => "killed".to_owned(),
        (_, Some(outcome), _) => with_reasons(&outcome.replace('_', " ").to_uppercase()),
        // Runs of earlier versions have no outcome.
        (_, None, _) if row.valid == Some(false) => with_reasons("NO VERDICT"),
        (_, None, Some("fail")) => "FAIL".to_owned(),
        (_, None, Some("pass")) => "PASS".to_owned(),
        (_, None, _) => "DONE".to_owned(),
    }
}

/// Longest text of a cell, in characters.
const LONGEST_CELL: usize = 200;

/// The ways in which the list gets narrower, in the order in which they are taken: columns that are shortened
/// to so many characters, or left out. The outcome keeps its first words.
const NARROWER: [(&str, usize); 13] = [
    ("target", 24),
    ("tags", 0),
    ("p50", 0),
    ("when", "2026-03-01 12:00".len()),
    ("rate", 0),
    ("name", 12),
    ("target", 12),
    ("errors", 0),
    ("outcome", 40),
    ("p99", 0),
    ("outcome", 24),
    ("target", 0),
    ("when", "2026-03-01".len()),
];

/// Columns between two columns of the list.
const GAP: usize = 2;

fn widths(cells: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    (0..cells[0].len()).map(width).collect()
}

/// Makes the list as narrow as a terminal is, or as narrow as it can be.
fn fit(cells: &mut [Vec<String>], most: usize) {
    for (name, length) in NARROWER {
        let widths = widths(cells);
        if widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1) <= most {
            return;
        }
        let Some(column) = cells[0].iter().position(|head| head == name) else { continue };
        for row in cells.iter_mut() {
            match length {
                0 => drop(row.remove(column)),
                _ => row[column] = within(&row[column], length),
            }
        }
    }
}

/// A text of so many characters at most. A time is as good without its seconds.
fn within(text: &str, length: usize) -> String {
    match text.chars().count() > length {
        true if text.ends_with('Z') && text.contains(':') => text.chars().take(length).collect(),
        true => text.chars().take(length - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// One line per run, in columns as wide as they have to be.
fn table(rows: &[Row], style: &Style) -> String {
    let digits = digits(rows);
    let heads = ["id", "when", "name", "tags", "target", "rate", "p50", "p99", "errors", "outcome"];
    let mut cells = vec![heads.map(str::to_owned).to_vec()];
    let dash = || "-".to_owned();
    let time = |row: &Row, time: Option<u64>, percentile: &str| {
        let bound = if row.is_at_least(percentile) { "≥ " } else { "" };
        time.map_or_else(dash, |ns| format!("{bound}{}", figure::nanos(Nanos(ns))))
    };
    cells.extend(rows.iter().map(|row| {
        let tags: Vec<String> = row.tags.iter().map(Tag::to_string).collect();
        [
            row.id.get(..digits).unwrap_or(&row.id).to_owned(),
            // To the second, in UTC as in results.
            row.started_at.get(..19).map_or_else(dash, |at| format!("{}Z", at.replace('T', " "))),
            row.name.clone().unwrap_or_else(dash),
            if tags.is_empty() { dash() } else { tags.join(" ") },
            row.target.clone(),
            row.achieved_per_s.map_or_else(dash, figure::per_second),
            time(row, row.p50_ns, "50"),
            time(row, row.p99_ns, "99"),
            row.errors.map_or_else(dash, figure::count),
            verdict(row),
        ]
        .to_vec()
    }));
    for row in &mut cells {
        row.iter_mut().for_each(|cell| *cell = one_line(cell));
    }
    if style.fits {
        fit(&mut cells, style.width);
    }
    let (widths, heads) = (widths(&cells), cells[0].clone());
    let mut text = String::new();
    for row in &cells {
        let padded = row.iter().zip(&widths).zip(&heads).map(|((cell, width), head)| match head.as_str() {
            // Figures are aligned to the right.
            "rate" | "p50" | "p99" | "errors" => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        text.push_str(padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end());
        text.push('\n');
    }
    text
}

/// The text of a cell: a name may be long, and have line ends in it.
fn one_line(text: &str) -> String {
    let text = visible(text).replace('\n', "\\n");
    match text.char_indices().nth(LONGEST_CELL) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// As many digits as tell these ids apart, eight at least.
fn digits(rows: &[Row]) -> usize {
    let most = rows.iter().map(|row| row.id.len()).max().unwrap_or(0);
    let apart = |digits: &usize| {
        let mut begins: Vec<&str> = rows.iter().map(|row| row.id.get(..*digits).unwrap_or(&row.id)).collect();
        begins.sort_unstable();
        begins.windows(2).all(|pair| pair[0] != pair[1])
    };
    (DIGITS..most).find(apart).unwrap_or(most.max(DIGITS))
}

fn object(row: &Row) -> Value {
    let tags: serde_json::Map<String, Value> =
        row.tags.iter().map(|tag| (tag.name.clone(), tag.value.clone().into())).collect();
    json!({
        "id": row.id,
        "kind": row.kind.name(),
        "started_at": row.started_at,
        "started_at_unix_ns": row.started_unix_ns,
        "name": row.name,
        "tags": tags,
        "state": row.state.name(),
        "plan_hash": row.plan_hash,
        "model": row.model,
        "target": row.target,
        "duration_s": row.duration_s,
        "target_per_s": row.target_per_s,
        "achieved_per_s": row.achieved_per_s,
        "time": row.time,
        "p50_ns": row.p50_ns,
        "p99_ns": row.p99_ns,
        "at_least": row.at_least,
        "started": row.started,
        "errors": row.errors,
        "valid": row.valid,
        "invalid_reasons": row.invalid_reasons,
        "thresholds": row.thresholds,
        "outcome": row.outcome,
        "answer": row.answer,
    })
}

fn line(row: &Row) -> String {
    let number = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let real = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let tags: Vec<String> = row.tags.iter().map(Tag::to_string).collect();
    let cells = [
        row.id.clone(),
        row.started_at.clone(),
        csv_cell(row.name.as_deref().unwrap_or_default()),
        csv_cell(&tags.join(" ")),
        row.state.name().to_owned(),
        row.model.clone(),
        csv_cell(&row.target),
        real(row.duration_s),
        real(row.target_per_s),
        real(row.achieved_per_s),
        row.time.to_owned(),
        number(row.p50_ns),
        number(row.p99_ns),
        number(row.started),
        number(row.errors),
        row.valid.map_or(String::new(), |valid| valid.to_string()),
        row.invalid_reasons.join(" "),
        row.thresholds.clone().unwrap_or_default(),
        row.outcome.clone().unwrap_or_default(),
        row.kind.name().to_owned(),
        csv_cell(row.answer.as_deref().unwrap_or_default()),
        row.at_least.join(" "),
    ];
    format!("{}\n", cells.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line_of_bounded_length() {
        assert_eq!(one_line("a\n::error::\x1b[31mb"), "a\\n::error::\u{fffd}[31mb");
        let long = "ä".repeat(70_000);
        assert_eq!(one_line(&long).chars().count(), LONGEST_CELL + 1);
    }

    /// Symptom: at 80 columns each run took two or three lines.
    #[test]
    fn the_list_fits_a_terminal_and_keeps_the_outcomes() {
        let row = |name: &str, target: &str, outcome: &str| {
            let figures = ["12,400/s", "1.23 ms", "45.6 ms", "1,204"];
            let cells = ["0e77921f", "2026-03-01 12:00:00Z", name, "branch=main commit=0123abc", target];
            cells.into_iter().chain(figures).chain([outcome]).map(str::to_owned).collect::<Vec<_>>()
        };
        let heads = ["id", "when", "name", "tags", "target", "rate", "p50", "p99", "errors", "outcome"];
        let whole = vec![
            heads.map(str::to_owned).to_vec(),
            row("nightly-of-the-shop", "http://shop.example.com:8080/items?page=1", "FAIL"),
            row("-", "http://127.0.0.1:8080/", "NO VERDICT cpu_saturation, start_lag"),
            row("levels", "http://127.0.0.1:8080/", "DONE sweep: 6 levels of connections, 12,400/s at most"),
        ];
        for width in [60, 80, 100, 120, 160, 300] {
            let mut cells = whole.clone();
            fit(&mut cells, width);
            let widths = widths(&cells);
            let total = widths.iter().sum::<usize>() + GAP * (widths.len() - 1);
            assert!(total <= width, "{total} of {width}: {cells:?}");
            for (outcome, words) in cells[1..].iter().zip(["FAIL", "NO VERDICT", "DONE sweep: 6 levels"]) {
                assert!(outcome.last().is_some_and(|last| last.starts_with(words)), "{width}: {outcome:?}");
            }
            assert_eq!(cells == whole, width == 300);
        }
    }
}
