//! Feeders, which become sources of data.

use plimsoll_document::{DataSpec, Field, Row, Text};
use serde_json::Value;

use super::Importer;
use super::steps::{In, Operation, operations};
use super::tree::{Expression, Span};
use crate::draft::text;
use crate::flow::{Csv, plain};

/// Most rows of a list that are written into a plan.
const MOST_ROWS: usize = 10_000;

/// Rows of a feeder.
enum Rows {
    File(Csv),
    /// Names of columns, and rows of their values.
    List(Vec<String>, Vec<Vec<String>>),
}

impl Importer<'_> {
    pub(super) fn feed(&mut self, operation: &Operation, within: &mut In<'_>) {
        let given = operation.first().to_vec();
        let Some(feeder) = given.first() else { return };
        if within.in_loop {
            let becomes =
                "an iteration takes one row of each source: all turns of the loop have the same one";
            self.note(operation.span, becomes);
        }
        if given.len() > 1 {
            self.note(operation.span, "one row is taken, and not several at once");
        }
        let resolved = self.resolved(feeder);
        let key = self.said(resolved.span);
        let name = resolved.chain().map(|(name, links)| operations(name, resolved.span, links));
        if !self.fed.insert(key) {
            return;
        }
        let mut data = DataSpec::default();
        // At the end of a feeder the run ends there.
        let mut at_end = "stop";
        let mut rest = Vec::new();
        for strategy in name.iter().flatten().skip(1) {
            match strategy.name.as_str() {
                "random" => {
                    data.order = text("random");
                    at_end = "wrap";
                }
                "shuffle" => data.order = text("shuffled"),
                "circular" => at_end = "wrap",
                "queue" | "eager" | "batch" | "unzip" => {}
                "shard" => {
                    let becomes = "the processes of a fleet have their own parts of the rows anyway";
                    self.note_call(strategy.span, "shard", becomes);
                }
                name => rest.push((strategy.span, name.to_owned())),
            }
        }
        if at_end != "wrap" {
            data.at_end = text(at_end);
        }
        let rows = match (name.as_deref().and_then(<[Operation]>::first), rest.as_slice()) {
            (Some(first), []) => self.rows(first, &resolved),
            _ => None,
        };
        match rows {
            Some(Rows::File(csv)) => {
                let at = self.at(operation.span);
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
            Some(Rows::List(names, rows)) => self.add_list(names, rows, data, operation.span),
            None => {
                let becomes = "a feeder that a program makes is not carried out: its variables have no \
                               values; write them as `data`, or as functions in `variables`";
                self.note(operation.span, becomes);
            }
        }
    }

    fn rows(&mut self, first: &Operation, whole: &Expression) -> Option<Rows> {
        let given = first.first().to_vec();
        let delimiter = match first.name.as_str() {
            "csv" => ",".to_owned(),
            "ssv" => ";".to_owned(),
            "tsv" => "\t".to_owned(),
            "separatedValues" => self.text_of(given.get(1)?)?,
            "json" | "jsonFile" => {
                let path = self.text_of(given.first()?)?;
                let path = self.resource(&path, first.span);
                return self.json(&path, first.span);
            }
            "jsonUrl" => return None,
            "arrayFeeder" | "listFeeder" => {
                let items = self.items(given.first()?)?;
                return self.list(&items);
            }
            _ => {
                // `Array(Map("a" -> 1), …).random`: the strategy is behind the list.
                let (name, links) = whole.chain()?;
                let list = Expression::name(name, whole.span).followed(links.get(..1)?);
                let items = self.items(&list)?;
                return self.list(&items);
            }
        };
        let path = self.text_of(given.first()?)?;
        let path = self.resource(&path, first.span);
        Some(Rows::File(Csv { path, delimiter, names: Vec::new(), has_head: true }))
    }

    /// Maps that are written out.
    fn list(&mut self, items: &[Expression]) -> Option<Rows> {
        if items.len() > MOST_ROWS {
            return None;
        }
        let mut names: Vec<String> = Vec::new();
        let mut rows = Vec::new();
        for item in items {
            let mut row = Vec::new();
            for (name, value) in self.pairs(item)? {
                let value = self.text_of(&value)?;
                let at = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                    names.push(name.clone());
                    names.len() - 1
                });
                row.resize(row.len().max(at + 1), String::new());
                row[at] = value;
            }
            rows.push(row);
        }
        (!names.is_empty()).then_some(Rows::List(names, rows))
    }

    /// A file with an array of objects.
    fn json(&mut self, path: &str, span: Span) -> Option<Rows> {
        let content = self.files.read(&self.folder.join(path)).ok()?;
        let Ok(Value::Array(items)) = serde_json::from_slice(&content) else {
            self.note(span, "the file is no array of objects");
            return None;
        };
        if items.len() > MOST_ROWS {
            let at = self.at(span);
            let message = format!("`{path}` has more than {MOST_ROWS} rows");
            self.findings.hinted(&at, message, "write it as a file of JSON lines, which plans can read");
            return None;
        }
        let mut names: Vec<String> = Vec::new();
        for item in &items {
            for (name, value) in item.as_object()? {
                if value.is_object() || value.is_array() {
                    self.note(span, "values within others are texts of JSON here");
                }
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        let row =
            |item: &Value| names.iter().map(|name| item.get(name).map(plain).unwrap_or_default()).collect();
        let rows = items.iter().map(row).collect();
        (!names.is_empty()).then_some(Rows::List(names, rows))
    }

    fn add_list(&mut self, names: Vec<String>, rows: Vec<Vec<String>>, mut data: DataSpec, span: Span) {
        let source = self.variables.take("rows");
        let mut all = Vec::new();
        for mut row in rows {
            row.resize(names.len(), String::new());
            // Values of lists are no templates.
            if row.iter().any(|value| value.contains("#{")) {
                self.note(span, "slots in rows are sent as they are written");
            }
            all.push(Field::new(Row(row.into_iter().map(Text).collect())));
        }
        data.list = Field::new(all);
        data.columns = names.iter().map(|name| text(self.variables.name(name))).collect();
        self.document.data.push(source, data);
    }
}
