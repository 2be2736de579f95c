//! Every format of fixed results, as users see them.

mod contract;
mod fixture;

use plimsoll_report::{Format, RunResult, Style, render};

/// A terminal with everything but colour, which would hide the text in the snapshots.
const TERMINAL: Style = Style { color: false, unicode: true, width: 100 };

fn rendered(result: &RunResult, format: Format, style: &Style) -> String {
    let mut out = Vec::new();
    render(result, format, style, &mut out).expect("writing to memory does not fail");
    String::from_utf8(out).expect("every format is UTF-8")
}

#[test]
fn text_of_an_open_run() {
    insta::assert_snapshot!(rendered(&fixture::open(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_a_closed_run() {
    insta::assert_snapshot!(rendered(&fixture::closed(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_a_run_in_which_everything_failed() {
    insta::assert_snapshot!(rendered(&fixture::all_failed(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_an_empty_run() {
    insta::assert_snapshot!(rendered(&fixture::empty(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_a_run_with_timeouts() {
    insta::assert_snapshot!(rendered(&fixture::timeouts(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_huge_figures() {
    insta::assert_snapshot!(rendered(&fixture::huge(), Format::Text, &TERMINAL));
}

#[test]
fn text_in_plain_style() {
    insta::assert_snapshot!(rendered(&fixture::timeouts(), Format::Text, &Style::PLAIN));
}

#[test]
fn json_of_a_run_with_timeouts() {
    insta::assert_snapshot!(rendered(&fixture::timeouts(), Format::Json, &Style::PLAIN));
}

#[test]
fn csv_of_an_open_run() {
    insta::assert_snapshot!(rendered(&fixture::open(), Format::Csv, &Style::PLAIN));
}

#[test]
fn plain_text_is_ascii_and_colour_only_adds_sequences() {
    for (name, result) in fixture::all() {
        let plain = rendered(&result, Format::Text, &Style::PLAIN);
        assert!(plain.chars().all(|c| c == '\n' || (c.is_ascii() && !c.is_ascii_control())), "{name}");
        let coloured = rendered(&result, Format::Text, &Style { color: true, ..Style::PLAIN });
        assert!(coloured.contains("\x1b[1;3"), "{name}");
        assert_eq!(without_sequences(&coloured), plain, "{name}");
    }
}

/// The text without its `ESC [ … m` sequences.
fn without_sequences(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, rest) = part.split_once('m').expect("a sequence ends with m");
        out.push_str(rest);
    }
    out
}

#[test]
fn text_fits_its_width_and_a_screen() {
    for (name, result) in fixture::all() {
        for width in [80, 100, 140] {
            let text = rendered(&result, Format::Text, &Style { width, ..TERMINAL });
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{name} in {width} columns: {line}");
            }
            // At its usual width a report fits a screen, but for the huge run, whose figures are wrapped.
            let lines = text.lines().count();
            assert!(name == "huge" || width < 100 || lines <= 60, "{name} in {width} columns: {lines} lines");
        }
    }
}

#[test]
fn the_plain_numbers_of_a_run_survive_json() {
    for (name, result) in fixture::all() {
        let json = rendered(&result, Format::Json, &Style::PLAIN);
        let back: RunResult = serde_json::from_str(&json).expect(name);
        assert_eq!(back.accounting, result.accounting, "{name}");
        assert_eq!(back.response_time, result.response_time, "{name}");
        assert_eq!(back.by_step, result.by_step, "{name}");
    }
}

#[test]
fn csv_has_as_many_cells_in_every_row_as_in_its_header() {
    for (name, result) in fixture::all() {
        let csv = rendered(&result, Format::Csv, &Style::PLAIN);
        let cells: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(cells.len(), result.intervals.len() + 1, "{name}");
        assert!(cells.iter().all(|count| *count == cells[0]), "{name}");
    }
}
