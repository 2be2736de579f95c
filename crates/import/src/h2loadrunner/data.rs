//! Where the values of variables come from: ranges and CSV files.

use plimsoll_core::gcd;
use plimsoll_document::{DataSpec, Field, Row, Text};

use super::Importer;
use super::variables::{Binding, Variables};
use crate::draft::text;
use crate::source::Object;

/// Most rows of a file that is copied into the plan, because its columns need other names or its rows are of
/// different lengths: with two values of some ten bytes each they fill the 16 MiB that a plan may have.
const MOST_ROWS: usize = 250_000;

/// A CSV file, as far as an import reads it. Its rows may be of different lengths, and of others than its
/// head.
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns `true` if every row has exactly one value for each name in the head.
    fn is_regular(&self) -> bool {
        self.rows.iter().all(|row| row.len() == self.columns.len())
    }

    /// Returns the table with `width` values in every row: a shorter row is filled up with its last value.
    fn of_width(mut self, width: usize) -> Self {
        for row in &mut self.rows {
            let last = row.last().cloned().unwrap_or_default();
            row.resize(width, last);
        }
        self.named(width)
    }

    /// The values of this many requests: the `k`-th has the value `k` of its row, which begins again behind
    /// its last. Rows are as wide as that takes.
    fn of_requests(mut self, requests: usize) -> Self {
        let widths = self.rows.iter().map(|row| row.len().max(1));
        let width = widths.fold(1, |all, width| lcm(all, width).min(requests.max(1)));
        for row in &mut self.rows {
            *row = row.iter().cycle().take(width).cloned().collect();
        }
        self.named(width)
    }

    /// As many names as there are values in a row.
    fn named(mut self, width: usize) -> Self {
        let last = self.columns.last().cloned().unwrap_or_default();
        self.columns.resize(width, last);
        self
    }
}

impl Importer<'_> {
    /// The data of a scenario with this many requests. Returns its variables, and the names of its data
    /// sources.
    pub(super) fn data(&mut self, scenario: &mut Object<'_>, requests: usize) -> (Variables, Vec<String>) {
        let mut variables = Variables::default();
        let mut sources = Vec::new();
        let split = scenario.flag("user-id-range-slicing", &mut self.findings) != Some(false);
        self.user_ids(scenario, split, requests, &mut variables, &mut sources);

        if let Some(file) = scenario.filled("user-variables-input-file", &mut self.findings) {
            let at = scenario.place("user-variables-input-file");
            if let Some((source, names)) = self.table(&at, file, split, None) {
                sources.push(source);
                for (wish, name) in names {
                    self.bind(&at, &mut variables, wish, Binding::Same(name));
                }
            }
        }
        let of_file: Vec<String> = variables.named.keys().cloned().collect();
        let mut ranges: Vec<String> = Vec::new();
        for mut range in scenario.objects("range-based-variables", &mut self.findings) {
            let name = self.named(&mut range);
            let start = range.count("variable-range-start", &mut self.findings);
            let end = range.count("variable-range-end", &mut self.findings);
            range.rest(&mut self.findings, super::is_comment);
            let Some(name) = name else { continue };
            if let Some(source) = self.range(&range.at, name, start, end, split) {
                sources.push(source.clone());
                // If a range and a column, or a table, have the same name, the range is sent.
                if of_file.iter().any(|column| column == name) {
                    variables.named.remove(name);
                }
                ranges.push(name.to_owned());
                self.bind(&range.at, &mut variables, name.to_owned(), Binding::Same(source));
            }
        }
        for mut table in scenario.objects("two-dimensional-variables", &mut self.findings) {
            let name = self.named(&mut table);
            let file = table.filled("file-name", &mut self.findings);
            table.rest(&mut self.findings, super::is_comment);
            if name.is_some_and(|name| ranges.iter().any(|range| range == name)) {
                continue;
            }
            let (Some(name), Some(file)) = (name, file) else {
                if file.is_none() && !table.has("file-name") {
                    self.findings.problem(&table.at, "`file-name` is missing");
                }
                continue;
            };
            if let Some((source, names)) = self.table(&table.at, file, split, Some(requests)) {
                sources.push(source);
                let names = names.into_iter().map(|(_, name)| name).collect();
                self.bind(&table.at, &mut variables, name.to_owned(), per_request(names));
            }
        }
        if !split && !sources.is_empty() && self.clients > 1 {
            let becomes = format!(
                "each of the {} threads goes through all of the data from the first row on; there, each of \
                 the {} clients does, from a row at random",
                self.threads, self.clients
            );
            self.findings.note(scenario.place("user-id-range-slicing"), "false", becomes);
        }
        variables.names = self.names.clone();
        (variables, sources)
    }

    /// The deprecated form: a text that is replaced by the id of the user.
    fn user_ids(
        &mut self,
        scenario: &mut Object<'_>,
        split: bool,
        requests: usize,
        variables: &mut Variables,
        sources: &mut Vec<String>,
    ) {
        const LIST: &str = "user-id-list-file";
        let literal = scenario.filled("user-id-variable-in-path-and-data", &mut self.findings);
        let start = scenario.count("user-id-range-start", &mut self.findings);
        let end = scenario.count("user-id-range-end", &mut self.findings);
        let list = scenario.filled(LIST, &mut self.findings);
        let at = scenario.place("user-id-variable-in-path-and-data");
        let Some(literal) = literal else {
            for key in ["user-id-range-start", "user-id-range-end", LIST] {
                // The editor for the format fills in zeros for absent ranges.
                if scenario.has(key) && (key == LIST && list.is_some() || start.max(end) > Some(0)) {
                    let becomes = "without `user-id-variable-in-path-and-data` it has no effect";
                    self.findings.note(scenario.place(key), "", becomes);
                }
            }
            return;
        };
        if let Some(file) = list {
            if end > Some(0) {
                let becomes = "the ids come from `user-id-list-file`";
                self.findings.note(scenario.place("user-id-range-end"), "", becomes);
            }
            if let Some((source, names)) = self.table(&scenario.place(LIST), file, split, Some(requests)) {
                sources.push(source);
                let names = names.into_iter().map(|(_, name)| name).collect();
                variables.literal = Some((literal.to_owned(), per_request(names)));
            }
            return;
        }
        if start.is_none() && end.is_none() {
            let hint = "give `user-id-range-start` and `user-id-range-end`, or `user-id-list-file`";
            self.findings.hinted(&at, format!("`{literal}` has no values to be replaced by"), hint);
        } else if let Some(source) = self.range(&scenario.at, literal, start, end, split) {
            sources.push(source.clone());
            variables.literal = Some((literal.to_owned(), Binding::Same(source)));
        }
    }

    fn named<'v>(&mut self, object: &mut Object<'v>) -> Option<&'v str> {
        let name = object.filled("variable-name", &mut self.findings);
        if name.is_none() && object.members().get("variable-name").is_none_or(serde_json::Value::is_string) {
            self.findings.problem(&object.at, "`variable-name` is missing");
        }
        name
    }

    fn bind(&mut self, at: &str, variables: &mut Variables, name: String, binding: Binding) {
        if variables.named.contains_key(&name) {
            self.findings.problem(at, format!("there are two variables `{name}`"));
            return;
        }
        variables.named.insert(name, binding);
    }

    /// A range of numbers as wide as its end. Gives the name of the source, which is that of its variable.
    fn range(
        &mut self,
        at: &str,
        wish: &str,
        start: Option<u64>,
        end: Option<u64>,
        split: bool,
    ) -> Option<String> {
        let (start, Some(end)) = (start.unwrap_or(0), end) else {
            self.findings.problem(at, format!("the end of the range of `{wish}` is missing"));
            return None;
        };
        if start >= end {
            let message = format!("the range of `{wish}`, from {start} up to but without {end}, is empty");
            self.findings.hinted(at, message, "the end has to be larger than the start");
            return None;
        }
        let name = self.names.take(wish);
        let mut data = DataSpec::default();
        let (rows, end) = (end - start, end.to_string());
        data.range = vec![text(format!("{start:0width$}", width = end.len())), text(end)];
        self.share(&mut data, split, rows, at);
        self.document.data.push(name.as_str(), data);
        Some(name)
    }

    /// Sets which client gets which of `rows` rows: each client its own part, or every client all of them.
    fn share(&mut self, data: &mut DataSpec, split: bool, rows: u64, at: &str) {
        data.share = text(if split { "split" } else { "whole" });
        if split && self.clients > 1 {
            data.slices = text(self.clients.min(u64::from(u32::MAX)).to_string());
            if rows < self.clients {
                let becomes = format!(
                    "there are {} clients, each with values of its own, and {rows} values: they share them; \
                     there, the program refuses the file",
                    self.clients
                );
                self.findings.note(at, "", becomes);
            }
        }
    }

    /// A CSV file. Gives the name of the source, and for each column its name in the file and the variable
    /// that it goes into. With `requests`, a row has a value for each of them, in order; else its values are
    /// those of the variables that the head names.
    fn table(
        &mut self,
        at: &str,
        file: &str,
        split: bool,
        requests: Option<usize>,
    ) -> Option<(String, Vec<(String, String)>)> {
        let Some(content) = self.file(file) else {
            let hint = self.looked_for();
            self.findings.hinted(at, format!("cannot read the file `{file}`"), hint);
            return None;
        };
        let table = match table(&String::from_utf8_lossy(&content)) {
            Ok(table) => table,
            Err(message) => {
                self.findings.problem(at, format!("{file}: {message}"));
                return None;
            }
        };
        let source = self.names.clone().take(file.rsplit('/').next().and_then(|n| n.split('.').next())?);
        let mut data = DataSpec::default();
        self.share(&mut data, split, table.rows.len() as u64, at);
        let mut names = self.names.clone();
        let source = unused(&self.document, source);
        if table.is_regular() && table.columns.iter().all(|column| names.take_exactly(column)) {
            self.names = names;
            data.csv = text(file);
            self.document.data.push(source.as_str(), data);
            let columns = table.columns.into_iter().map(|column| (column.clone(), column)).collect();
            return Some((source, columns));
        }
        if table.rows.len() > MOST_ROWS {
            let message = match table.is_regular() {
                true => format!("the columns of {file} need other names: letters, digits and `_`, each once"),
                false => format!("the rows of {file} do not all have as many values as its first line"),
            };
            self.findings.hinted(at, message, format!("change it: only {MOST_ROWS} rows are copied"));
            return None;
        }
        // The rows are copied: with other names of their columns, or with as many values in each.
        let table = match requests {
            Some(requests) => table.of_requests(requests),
            None => {
                let width = table.columns.len();
                table.of_width(width)
            }
        };
        let columns: Vec<(String, String)> =
            table.columns.iter().map(|column| (column.clone(), self.names.take(column))).collect();
        data.columns = columns.iter().map(|(_, name)| text(name.as_str())).collect();
        let rows = table.rows.into_iter().map(|row| Field::new(Row(row.into_iter().map(Text).collect())));
        data.list = Field::new(rows.collect());
        self.document.data.push(source.as_str(), data);
        Some((source, columns))
    }
}

/// `name`, or a longer one that no data source has.
fn unused(document: &plimsoll_document::Document, name: String) -> String {
    let taken = |name: &str| document.data.0.iter().any(|(known, ..)| known.as_str() == name);
    let mut candidate = name.clone();
    let mut number = 1_u32;
    while taken(&candidate) {
        number += 1;
        candidate = format!("{name}_{number}");
    }
    candidate
}

/// The least common multiple.
fn lcm(a: usize, b: usize) -> usize {
    a / (gcd(a as u64, b as u64) as usize).max(1) * b
}

fn per_request(mut names: Vec<String>) -> Binding {
    match names.len() {
        1 => Binding::Same(names.remove(0)),
        _ => Binding::PerRequest(names),
    }
}

/// Reads CSV (RFC 4180). The first row has the names of the columns.
fn table(text: &str) -> Result<Table, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows: Vec<Vec<String>> = vec![vec![String::new()]];
    let mut characters = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = characters.next() {
        let row = rows.last_mut().ok_or("it is empty")?;
        let value = row.last_mut().ok_or("it is empty")?;
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                value.push('"');
            }
            '"' if quoted || value.is_empty() => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\r' if !quoted && characters.peek() == Some(&'\n') => {}
            '\n' if !quoted => rows.push(vec![String::new()]),
            other => value.push(other),
        }
    }
    if quoted {
        return Err("a quoted value does not end".to_owned());
    }
    rows.retain(|row| row.len() > 1 || row.first().is_some_and(|value| !value.is_empty()));
    if rows.len() < 2 {
        return Err("it has no row behind the names of its columns".to_owned());
    }
    let columns: Vec<String> = rows.remove(0).iter().map(|name| name.trim().to_owned()).collect();
    Ok(Table { columns, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_short_row_stands_for_those_that_are_missing() {
        let ragged = table("suci\na,b\nc,d,e\nf\n").unwrap();
        assert!(!ragged.is_regular());
        assert_eq!(ragged.of_width(2).rows, [["a", "b"], ["c", "d"], ["f", "f"]]);
        assert!(table("a,b\n1,2\n").unwrap().is_regular());
    }

    /// Lengths of rows × numbers of requests: the value of each request is that of the real program, where
    /// the last value stood for all behind it.
    #[test]
    fn the_values_of_a_row_begin_again_behind_its_last() {
        for widths in [&[1][..], &[2], &[3], &[2, 1], &[3, 2], &[3, 1, 2], &[5, 4, 3], &[7, 2]] {
            for requests in 1..=13 {
                let rows: Vec<Vec<String>> = (0..)
                    .zip(widths)
                    .map(|(row, &width)| (0..width).map(|k| format!("{row}.{k}")).collect())
                    .collect();
                let table = Table { columns: vec!["id".to_owned()], rows: rows.clone() };
                let made = table.of_requests(requests);
                let names: Vec<String> = (0..made.columns.len()).map(|column| column.to_string()).collect();
                let binding = per_request(names);
                for (row, values) in rows.iter().zip(&made.rows) {
                    assert_eq!(values.len(), made.columns.len());
                    for k in 0..requests {
                        let column: usize = binding.variable(k).unwrap().parse().unwrap();
                        assert_eq!(
                            values[column],
                            row[k % row.len()],
                            "{widths:?}, request {k} of {requests}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn tables_are_read_by_rfc_4180() {
        let read = table("\u{feff}a, b\r\n1,\"x,\"\"y\"\"\n\"\r\n\n2,\n").unwrap();
        assert_eq!(read.columns, ["a", "b"]);
        assert_eq!(read.rows, [["1", "x,\"y\"\n"], ["2", ""]]);
        for (text, wrong) in [
            ("", "it has no row behind the names of its columns"),
            ("a\n", "it has no row behind the names of its columns"),
            ("a\n\"x", "a quoted value does not end"),
        ] {
            assert_eq!(table(text).err().as_deref(), Some(wrong), "{text:?}");
        }
    }
}
