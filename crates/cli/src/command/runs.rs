//! The history of runs: `plimsoll runs`, `show`, `export`, `merge` and `rm`.

use std::io::IsTerminal as _;
use std::path::Path;

use plimsoll_core::Nanos;
use plimsoll_metrics::figure;
use plimsoll_plan::{Problem, Problems};
use plimsoll_report::saved::MergeError;
use plimsoll_report::{Format, NoHistograms, SavedRun, Style, render_saved};
use plimsoll_store::{Filter, Row, State, Tag};
use serde_json::{Value, json};

use crate::args::instant::instant;
use crate::args::output::TableOutputFormat;
use crate::args::runs::{ExportArgs, ExportFormat, MergeArgs, RmArgs, RunsArgs, ShowArgs};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::foreign_text::{csv_cell, visible};
use crate::base::streams::Content;
use crate::base::{files, stdout};
use crate::session::run::exit_of;
use crate::session::saved_runs::{History, NamedRun, label};
use crate::session::saving::{DIGITS, failure};

/// The columns of the list as CSV.
const COLUMNS: &str = "id,started_at,name,tags,state,model,target,duration_s,target_per_s,achieved_per_s,time,p50_ns,\
                       p99_ns,started,errors,valid,invalid_reasons,thresholds,outcome,kind,answer";

/// `plimsoll runs`.
pub(crate) fn list(args: &RunsArgs) -> Result<Exit, Failure> {
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
        TableOutputFormat::Text => table(&rows),
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

/// One line per run, in columns as wide as they have to be.
fn table(rows: &[Row]) -> String {
    let digits = digits(rows);
    let mut cells = vec![
        ["id", "when", "name", "tags", "target", "rate", "p50", "p99", "errors", "outcome"]
            .map(str::to_owned),
    ];
    let dash = || "-".to_owned();
    let time = |time: Option<u64>| time.map_or_else(dash, |ns| figure::nanos(Nanos(ns)));
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
            time(row.p50_ns),
            time(row.p99_ns),
            row.errors.map_or_else(dash, figure::count),
            verdict(row),
        ]
    }));
    for row in &mut cells {
        row.iter_mut().for_each(|cell| *cell = one_line(cell));
    }
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..cells[0].len()).map(width).collect();
    let mut text = String::new();
    for row in &cells {
        let padded = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            // Figures are aligned to the right.
            5..=8 => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
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
}
