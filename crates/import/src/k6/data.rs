//! Lists and files that a script takes rows from.

use std::path::Path;
use std::rc::Rc;

use plimsoll_document::{DataSpec, Field, Row, Text as DocumentText};

use super::Importer;
use super::syntax::Span;
use super::value::{Counter, Text, Tree, Value};
use crate::draft::text;
use crate::flow::Csv;

/// Most rows of a list that are written into the plan.
const MOST_ROWS: usize = 10_000;

/// A CSV file as a script reads it.
#[derive(Clone, Debug)]
pub(crate) struct CsvFile {
    pub(crate) path: String,
    pub(crate) has_head: bool,
    pub(crate) delimiter: String,
    /// Names of the columns; numbers without a head.
    pub(crate) names: Vec<String>,
    /// Rows without the head.
    pub(crate) rows: usize,
}

/// A source of rows on its way to the document.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    rows: Rows,
    order: Order,
    /// Parts of rows that steps read: the path, `true` for the JSON of that part, and the column.
    columns: Vec<(Vec<String>, bool, String)>,
    at: Span,
}

#[derive(Clone, Debug)]
enum Rows {
    List(Rc<Tree<Vec<Value>>>),
    File(usize),
}

/// The way in which rows are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Random,
    InTurn,
}

impl Importer<'_> {
    /// The text of a file.
    pub(crate) fn read(&mut self, path: &str, span: Span) -> Option<String> {
        let Ok(content) = self.files.read(&self.folder.join(path)) else {
            let at = self.at(span);
            let hint = "files are looked for beside the script";
            self.findings.hinted(&at, format!("`{}` cannot be read", crate::findings::quoted(path)), hint);
            return None;
        };
        String::from_utf8(content).ok()
    }

    /// The CSV file of `papaparse.parse(open(path), …)`.
    pub(crate) fn csv(&mut self, path: &str, has_head: bool, delimiter: String, span: Span) -> Value {
        let content = self.read(path, span).unwrap_or_default();
        let mut lines = content.trim_start_matches('\u{feff}').lines();
        let first = lines.clone().next().unwrap_or_default();
        let values = first.split(delimiter.as_str()).map(|value| value.trim().trim_matches('"').to_owned());
        let names: Vec<String> = match has_head {
            true => values.collect(),
            false => (1..=values.count()).map(|number| format!("column_{number}")).collect(),
        };
        if has_head {
            lines.next();
        }
        let rows = lines.filter(|line| !line.trim().is_empty()).count();
        self.csv_files.push(CsvFile { path: path.to_owned(), has_head, delimiter, names, rows });
        Value::Csv(self.csv_files.len() - 1)
    }

    /// A row of a list or a file, at an index that is not known before the run.
    pub(crate) fn row(&mut self, of: &Value, wish: &str, index: &Value, span: Span) -> Value {
        if let Some(lost) = of.lost() {
            return Value::Lost(Rc::clone(lost));
        }
        let rows = match of {
            Value::Array(rows) => Rows::List(Rc::clone(rows)),
            Value::Csv(file) => Rows::File(*file),
            _ => return Value::Unknown,
        };
        let order = match index {
            Value::Uniform(uniform) => {
                let count = match of {
                    Value::Array(rows) => rows.len(),
                    _ => self.csv_files.last().map_or(0, |file| file.rows),
                };
                if uniform.low != 0.0 || uniform.high + 1.0 < count as f64 {
                    self.note(span, "the row is drawn from all of them");
                }
                Order::Random
            }
            Value::Counter(Counter { is_user: true, .. }) => {
                self.note(span, "users have no numbers: each iteration takes the next row");
                Order::InTurn
            }
            Value::Counter(counter) => {
                self.note_turns(of, counter, span);
                Order::InTurn
            }
            _ => {
                self.note(span, "the index is not known before the run: each iteration takes the next row");
                Order::InTurn
            }
        };
        self.source(rows, order, wish, span)
    }

    /// The number of rows.
    pub(crate) fn rows_of(&self, of: &Value) -> Option<usize> {
        match of {
            Value::Array(rows) => Some(rows.len()),
            Value::Csv(file) => Some(self.csv_files[*file].rows),
            _ => None,
        }
    }

    /// Notes where rows that are taken in turn are others than those that a number of iterations selects.
    fn note_turns(&mut self, of: &Value, counter: &Counter, span: Span) {
        let rows = self.rows_of(of);
        if !(counter.is_shared || self.is_alone) {
            self.note(
                span,
                "each user counts its own iterations there, so that all of them take the same rows: here they \
                 take rows in turn together",
            );
        }
        if counter.shift != 0 {
            self.note(span, "the first iteration takes the first row");
        }
        let is_enough = self.iterations.zip(rows).is_some_and(|(turns, rows)| turns <= rows as u64);
        match counter.wraps {
            None if is_enough => {}
            None => self.note(span, "after the last row the first one follows"),
            Some(by) if Some(by) != rows && !(by > 0 && is_enough && self.iterations <= Some(by as u64)) => {
                self.note(span, "all rows are taken in turn");
            }
            Some(_) => {}
        }
    }

    /// A row that is drawn.
    pub(crate) fn random_row(&mut self, of: &Value, span: Span) -> Value {
        if let Some(lost) = of.lost() {
            return Value::Lost(Rc::clone(lost));
        }
        match of {
            Value::Array(rows) => self.source(Rows::List(Rc::clone(rows)), Order::Random, "item", span),
            Value::Csv(file) => self.source(Rows::File(*file), Order::Random, "row", span),
            _ => Value::Unknown,
        }
    }

    fn source(&mut self, rows: Rows, order: Order, wish: &str, span: Span) -> Value {
        if self.is_first && order == Order::Random {
            self.note_first_draw(span);
        }
        if let Rows::List(list) = &rows
            && list.len() > MOST_ROWS
        {
            let at = self.at(span);
            let message = format!("the list has more than {MOST_ROWS} rows");
            self.findings.hinted(&at, message, "write it as a CSV file, which the plan can read");
            return Value::Unknown;
        }
        let is_same = |known: &Source| match (&known.rows, &rows) {
            (Rows::List(one), Rows::List(other)) => Rc::ptr_eq(one, other),
            (Rows::File(one), Rows::File(other)) => one == other,
            _ => false,
        };
        // Rows that are drawn twice are two rows; the columns of a file have one name.
        let is_file = matches!(rows, Rows::File(_));
        let known = self.sources.iter().position(|known| {
            is_same(known)
                && (is_file || known.order == order && (order != Order::Random || known.at == span))
        });
        if let Some(known) = known
            && is_file
            && (order == Order::Random || self.sources[known].order != order)
        {
            self.note(span, "an iteration takes one row of a file: it is the same one");
        }
        let source = known.unwrap_or_else(|| {
            let name = self.variables.take(wish);
            self.sources.push(Source { name, rows, order, columns: Vec::new(), at: span });
            self.sources.len() - 1
        });
        Value::Row(source, Vec::new())
    }

    /// The slot with a part of a row.
    pub(crate) fn column(&mut self, source: usize, path: &[String], is_json: bool, span: Span) -> Text {
        if let Rows::File(file) = self.sources[source].rows {
            return self.column_of_file(source, file, path, span);
        }
        let known =
            self.sources[source].columns.iter().find(|(known, json, _)| known == path && *json == is_json);
        let name = match known {
            Some((_, _, name)) => name.clone(),
            None => {
                let wish = path.last().cloned().unwrap_or_else(|| self.sources[source].name.clone());
                let name = self.variables.take(&wish);
                self.sources[source].columns.push((path.to_vec(), is_json, name.clone()));
                name
            }
        };
        let Rows::List(rows) = &self.sources[source].rows else { return Text::slot(name) };
        let values: Vec<Value> = rows.iter().map(|row| part_of(row, path)).collect();
        let is_number = is_json
            || values.iter().all(|value| matches!(value, Value::Number(_) | Value::Boolean(_) | Value::Null));
        if !is_json && values.iter().any(|value| matches!(value, Value::Object(_) | Value::Undefined)) {
            self.note(span, "not every row has a text there");
        }
        Text { is_number, ..Text::slot(name) }
    }

    fn column_of_file(&mut self, source: usize, file: usize, path: &[String], span: Span) -> Text {
        let csv = &self.csv_files[file];
        let column = match path {
            [column] if csv.has_head => csv.names.iter().find(|name| *name == column),
            [column] => column.parse::<usize>().ok().and_then(|index| csv.names.get(index)),
            _ => None,
        };
        let Some(column) = column.cloned() else {
            self.note(span, "the file has no such column");
            return self.empty(span);
        };
        let name = self.variables.name(&column);
        self.sources[source].columns.push((path.to_vec(), false, name.clone()));
        Text::slot(name)
    }

    /// Returns `true` if rows have lists or objects there, whose text is JSON.
    pub(crate) fn has_parts(&self, source: usize, path: &[String]) -> bool {
        let Rows::List(rows) = &self.sources[source].rows else { return false };
        rows.iter().any(|row| matches!(part_of(row, path), Value::Array(_) | Value::Object(_)))
    }

    /// Writes the sources into the document.
    pub(crate) fn put_sources(&mut self) {
        for source in std::mem::take(&mut self.sources) {
            if source.columns.is_empty() {
                continue;
            }
            let mut data = DataSpec::default();
            match source.order {
                Order::Random => data.order = text("random"),
                Order::InTurn => {}
            }
            match &source.rows {
                Rows::File(file) => self.put_file(*file, &source, data),
                Rows::List(rows) => {
                    self.put_list(rows, &source, data);
                }
            }
        }
    }

    fn put_file(&mut self, file: usize, source: &Source, data: DataSpec) {
        let CsvFile { path, has_head, delimiter, names, .. } = self.csv_files[file].clone();
        let (csv, at) = (Csv { path, delimiter, names, has_head }, self.at(source.at));
        let place = (self.folder, self.files);
        self.variables.add_csv(
            csv,
            data,
            &mut self.document,
            &mut self.headed,
            place,
            &at,
            &mut self.findings,
        );
    }

    fn put_list(&mut self, rows: &[Value], source: &Source, mut data: DataSpec) {
        let cells: Vec<Vec<DocumentText>> = source
            .columns
            .iter()
            .map(|(path, is_json, _)| {
                rows.iter().map(|row| DocumentText(cell(&part_of(row, path), *is_json))).collect()
            })
            .collect();
        let list = (0..rows.len())
            .map(|row| Field::new(Row(cells.iter().map(|column| column[row].clone()).collect())))
            .collect();
        data.list = Field::new(list);
        data.columns = source.columns.iter().map(|(_, _, name)| text(name.as_str())).collect();
        let mut name = source.name.clone();
        if data.columns.len() == 1 && source.columns[0].2 == name {
            data.columns.clear();
        } else if source.columns.iter().any(|(_, _, column)| *column == name) {
            name = self.variables.take(&name);
        }
        self.document.data.push(name, data);
    }
}

/// The part of a row with this path.
fn part_of(row: &Value, path: &[String]) -> Value {
    path.iter().fold(row.clone(), |value, part| match &value {
        Value::Object(_) => value.member(part).cloned().unwrap_or(Value::Undefined),
        Value::Array(items) => {
            let index = part.parse::<usize>().ok();
            index.and_then(|index| items.get(index).cloned()).unwrap_or(Value::Undefined)
        }
        _ => Value::Undefined,
    })
}

/// The text of a value in a list.
fn cell(value: &Value, is_json: bool) -> String {
    match (is_json, value.json()) {
        (true, Some(json)) => json.to_string(),
        _ => value.constant().or_else(|| value.json().map(|json| json.to_string())).unwrap_or_default(),
    }
}

/// `./a/b.json` without the `./`.
pub(crate) fn relative(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    Path::new(path).to_string_lossy().into_owned()
}
