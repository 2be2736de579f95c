//! The tables of `docs/assurance.md`, to which each campaign adds a row.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// A Markdown page whose tables grow at their ends.
///
/// The page is read anew for every call, so that rows from other processes stay.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// The ledger in the file at `path`.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let ledger = Self { path: path.into() };
        ledger.read()?;
        Ok(ledger)
    }

    /// Adds a row to the first table below the heading with this text.
    ///
    /// # Errors
    /// There is no such heading or table, the table has another number of columns, or a cell would break its
    /// row. Then the file has not changed.
    pub(crate) fn append(&self, table_heading: &str, cells: &[String]) -> Result<()> {
        let text = self.read()?;
        let table = Table::find(&text, table_heading)?;
        let columns = row(table.header).len();
        if cells.len() != columns {
            let message =
                format!("the table \"{table_heading}\" has {columns} columns, and not {}", cells.len());
            return Err(Failure::new(message));
        }
        if let Some(cell) = cells.iter().find(|cell| cell.contains(['|', '\n', '\r'])) {
            return Err(Failure::new(format!("no cell of a table can be `{cell}`")));
        }
        let (before, after) = text.split_at(table.end);
        let line_end = if before.ends_with('\n') { "" } else { "\n" };
        let grown = format!("{before}{line_end}| {} |\n{after}", cells.join(" | "));
        // As a whole or not at all: an interrupted write would cost all rows.
        let beside = self.path.with_extension("md.new");
        fs::write(&beside, grown)
            .and_then(|()| fs::rename(&beside, &self.path))
            .map_err(|error| Failure::because(self.path.display(), error))
    }

    /// The rows of the first table below the heading with this text, without its header.
    ///
    /// # Errors
    /// There is no such heading or table.
    pub(crate) fn rows(&self, table_heading: &str) -> Result<Vec<Vec<String>>> {
        let text = self.read()?;
        let table = Table::find(&text, table_heading)?;
        Ok(text[table.begin..table.end].lines().map(row).collect())
    }

    fn read(&self) -> Result<String> {
        fs::read_to_string(&self.path).map_err(|error| Failure::because(self.path.display(), error))
    }
}

/// The page of this repository.
pub(crate) fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/assurance.md")
}

/// Where a table stands in a text, in bytes.
struct Table<'t> {
    header: &'t str,
    /// Of the first row, and the end of the last one.
    begin: usize,
    end: usize,
}

impl<'t> Table<'t> {
    fn find(text: &'t str, heading: &str) -> Result<Self> {
        let mut offset = 0;
        let mut lines = text.split_inclusive('\n').map(|line| {
            let begin = offset;
            offset += line.len();
            (begin, line.trim_end())
        });
        let missing = |what| Failure::new(format!("there is no {what} \"{heading}\""));
        lines.find(|(_, line)| heading_of(line) == Some(heading)).ok_or_else(|| missing("heading"))?;
        let mut section = lines.take_while(|(_, line)| heading_of(line).is_none());
        let (_, header) =
            section.find(|(_, line)| line.starts_with('|')).ok_or_else(|| missing("table below"))?;
        // The line of dashes.
        let (rule, dashes) = section.next().ok_or_else(|| missing("table below"))?;
        let begin = text[rule..].find('\n').map_or(text.len(), |end| rule + end + 1);
        if !dashes.starts_with('|') {
            return Err(missing("table below"));
        }
        let rows = section.take_while(|(_, line)| line.starts_with('|'));
        let end =
            rows.last().map_or(begin, |(at, _)| text[at..].find('\n').map_or(text.len(), |end| at + end + 1));
        Ok(Self { header, begin, end })
    }
}

/// The text of a heading of any level.
fn heading_of(line: &str) -> Option<&str> {
    line.starts_with('#').then(|| line.trim_start_matches('#').trim())
}

/// The cells of a row.
fn row(line: &str) -> Vec<String> {
    line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\nWords.\n\n## Worlds\n\nMore words.\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n\
                        ## Fuzzing\n\n| c |\n|---|\n\n## Empty\n";

    fn cells(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|&cell| cell.to_owned()).collect()
    }

    /// A ledger of its own for each test, with this text.
    fn ledger(name: &str, text: &str) -> Ledger {
        let path = std::env::temp_dir().join(format!("plimsoll-ledger-{}-{name}.md", std::process::id()));
        fs::write(&path, text).unwrap();
        Ledger::open(path).unwrap()
    }

    fn end(ledger: Ledger) -> String {
        let text = fs::read_to_string(&ledger.path).unwrap();
        fs::remove_file(&ledger.path).unwrap();
        text
    }

    #[test]
    fn a_row_is_added_at_the_end_of_its_table() {
        let ledger = ledger("row", PAGE);
        ledger.append("Worlds", &cells(&["3", "4"])).unwrap();
        ledger.append("Fuzzing", &cells(&["5"])).unwrap();
        ledger.append("Fuzzing", &cells(&["6"])).unwrap();
        assert_eq!(ledger.rows("Worlds").unwrap(), [["1", "2"], ["3", "4"]]);
        assert_eq!(ledger.rows("Fuzzing").unwrap(), [["5"], ["6"]]);
        let expected = PAGE.replace("| 1 | 2 |\n", "| 1 | 2 |\n| 3 | 4 |\n");
        assert_eq!(end(ledger), expected.replace("|---|\n", "|---|\n| 5 |\n| 6 |\n"));
    }

    #[test]
    fn a_table_at_the_end_of_the_page_grows_without_a_last_line_end() {
        let ledger = ledger("end", "## T\n| a |\n|---|\n| 1 |");
        ledger.append("T", &cells(&["2"])).unwrap();
        assert_eq!(end(ledger), "## T\n| a |\n|---|\n| 1 |\n| 2 |\n");
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let ledger = ledger("refused", PAGE);
        for (heading, row, reason) in [
            ("Words", vec!["1"], "there is no heading \"Words\""),
            ("Empty", vec!["1"], "there is no table below \"Empty\""),
            ("Worlds", vec!["1"], "the table \"Worlds\" has 2 columns, and not 1"),
            ("Fuzzing", vec!["a|b"], "no cell of a table can be `a|b`"),
        ] {
            let refused = ledger.append(heading, &cells(&row)).unwrap_err();
            assert_eq!(refused.to_string(), reason);
        }
        assert_eq!(end(ledger), PAGE);
    }

    #[test]
    fn the_page_of_this_repository_has_its_tables() {
        let ledger = Ledger::open(page()).unwrap();
        for (heading, columns) in [("Simulated worlds", 9), ("Fuzzing", 7)] {
            let rows = ledger.rows(heading).unwrap();
            assert!(rows.iter().all(|row| row.len() == columns), "{heading}: {rows:?}");
        }
    }
}
