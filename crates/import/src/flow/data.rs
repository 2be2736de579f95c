//! CSV files that sources take values from.

use std::path::Path;

use plimsoll_document::{DataSpec, Document, Files, LONGEST_DATA_HEAD};

use super::Variables;
use crate::draft::{self, text};
use crate::findings::Findings;

/// A CSV file as a source describes it.
#[derive(Clone, Debug)]
pub(crate) struct Csv {
    pub(crate) path: String,
    /// One character.
    pub(crate) delimiter: String,
    /// The columns' names; empty if only the file has them.
    pub(crate) names: Vec<String>,
    /// `true` if the first row has names and no values.
    pub(crate) has_head: bool,
}

/// Data sources whose files name their columns: these are written into the document until its variables are
/// settled, and taken out then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headed(Vec<String>);

impl Headed {
    /// Takes the columns out that the files name themselves.
    pub(crate) fn release(self, document: &mut Document) {
        for (name, _, data) in &mut document.data.0 {
            if self.0.iter().any(|headed| headed == name.as_str()) {
                data.columns.clear();
            }
        }
    }
}

impl Variables {
    /// Adds a file as a data source; `data` says how its rows are taken.
    #[allow(clippy::too_many_arguments, reason = "parts of an importer, which borrow from it one by one")]
    pub(crate) fn add_csv(
        &mut self,
        csv: Csv,
        mut data: DataSpec,
        document: &mut Document,
        headed: &mut Headed,
        (folder, files): (&Path, &dyn Files),
        at: &str,
        findings: &mut Findings,
    ) {
        let stem = Path::new(&csv.path).file_stem().and_then(|stem| stem.to_str()).unwrap_or("data");
        let source = self.take(stem);
        let path = self.expanded(&csv.path);
        let path = path.strip_prefix("./").unwrap_or(&path);
        let head = first_row(&folder.join(path), &csv.delimiter, files);
        data.csv = text(draft::escaped(path));
        if csv.delimiter != "," {
            data.delimiter = text(csv.delimiter.as_str());
        }
        let is_named_there = csv.has_head && (csv.names.is_empty() || csv.names == head);
        let names = if csv.names.is_empty() { head } else { csv.names };
        let ours: Vec<String> = names.iter().map(|name| self.name(name)).collect();
        data.columns = ours.iter().map(|column| text(column.as_str())).collect();
        if is_named_there && ours == names {
            headed.0.push(source.clone());
        } else if csv.has_head {
            let becomes = "the first row of the file is data here, since it has other names than the \
                           variables: remove it \
                           from the file";
            findings.note(at, path, becomes);
        }
        document.data.push(source, data);
    }
}

/// Returns the first rows of a data file; none if it cannot be read.
pub(crate) fn first_rows(path: &Path, files: &dyn Files) -> Vec<u8> {
    files.read_head(path, LONGEST_DATA_HEAD).unwrap_or_default()
}

/// The values in the first row of a CSV file; none if it is not there.
fn first_row(path: &Path, delimiter: &str, files: &dyn Files) -> Vec<String> {
    let content = first_rows(path, files);
    let first = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let line = first.trim_start_matches('\u{feff}').trim_end_matches('\r');
    if line.is_empty() || delimiter.is_empty() {
        return Vec::new();
    }
    line.split(delimiter).map(|value| value.trim().trim_matches('"').to_owned()).collect()
}
