//! JSON documents, one in a line: Elasticsearch's bulk API ("Bulk API", elastic.co) and JSON lines.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use super::super::batch::Decoded;
use super::super::column::Value;
use super::super::rows::{Group, Rows, TOO_LARGE};
use super::super::time::{self, Unit};
use super::finished;

/// The names that an instant of a document may have, if none is given.
const TIMES: [&str; 4] = ["@timestamp", "_time", "time", "timestamp"];

/// The most bytes of a column's name. Names within each other are joined, so that few bytes of a document
/// could otherwise ask for any number of long names.
const LONGEST_NAME: usize = 1024;

/// The content of a bulk request, with an answer to each of its documents.
#[derive(Debug)]
pub(crate) struct Bulk {
    pub(crate) decoded: Decoded,
    pub(crate) items: Vec<Json>,
}

/// Reads a bulk request; documents go to `index` if their action names none.
pub(crate) fn bulk(payload: &[u8], index: Option<&str>, now: i64) -> Result<Bulk, String> {
    if payload.last() != Some(&b'\n') {
        return Err("The bulk request must be terminated by a newline [\\n]".to_owned());
    }
    let mut documents = Vec::new();
    let mut items = Vec::new();
    let mut lines = payload.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let mut number = 0;
    while let Some(action) = lines.next() {
        number += 1;
        let malformed = || format!("Malformed action/metadata line [{number}], expected START_OBJECT");
        let action: Map<String, Json> = serde_json::from_slice(action).map_err(|_| malformed())?;
        let (name, about) = action.iter().next().ok_or_else(malformed)?;
        if !matches!(name.as_str(), "index" | "create") {
            return Err(format!("this target takes index and create, and line [{number}] is `{name}`"));
        }
        let into = about.get("_index").and_then(Json::as_str).or(index);
        let into = into.ok_or("Validation Failed: 1: index is missing;")?;
        let id = about.get("_id").and_then(Json::as_str).map(str::to_owned);
        let id = id.unwrap_or_else(|| format!("{now:x}-{number}"));
        let source = lines.next().ok_or_else(|| format!("line [{number}] has no document behind it"))?;
        let source: Map<String, Json> = serde_json::from_slice(source)
            .map_err(|error| format!("the document behind line [{number}] is invalid: {error}"))?;
        items.push(json!({name.as_str(): {
            "_index": into, "_id": id, "_version": 1, "result": "created",
            "_shards": {"total": 1, "successful": 1, "failed": 0},
            "_seq_no": number - 1, "_primary_term": 1, "status": 201,
        }}));
        documents.push((vec![("_index", into.to_owned()), ("_id", id)], source));
    }
    Ok(Bulk { decoded: stored("documents", &documents, None, now)?, items })
}

/// Reads JSON lines, whose instants have this name.
pub(crate) fn lines(payload: &[u8], time: Option<&str>, now: i64) -> Result<Decoded, String> {
    let lines = payload.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let documents = lines.enumerate().map(|(number, line)| {
        let read = serde_json::from_slice(line);
        let why = |error| format!("line {} is not a JSON object: {error}", number + 1);
        read.map(|document| (Vec::new(), document)).map_err(why)
    });
    let documents = documents.collect::<Result<Vec<_>, _>>()?;
    stored("lines", &documents, time, now)
}

/// A document, with its labels.
type Document = (Vec<(&'static str, String)>, Map<String, Json>);

/// The way in which the values of documents become columns.
enum Shape {
    /// Each as it is, except for numbers in these columns, some of which have a fraction.
    Typed(BTreeSet<String>),
    /// As text.
    Text,
}

/// Makes rows of documents. Where one column had to be of two kinds all values are text.
fn stored(
    measurement: &str,
    documents: &[Document],
    time: Option<&str>,
    now: i64,
) -> Result<Decoded, String> {
    let mut fractions = BTreeSet::new();
    for (_, document) in documents {
        for (name, value) in document {
            note_fractions(&mut fractions, name, value)?;
        }
    }
    let decoded = rows(measurement, documents, time, now, &Shape::Typed(fractions))?;
    match decoded.conflict {
        None => Ok(decoded),
        Some(_) => rows(measurement, documents, time, now, &Shape::Text),
    }
}

/// Notes the columns with numbers that have a fraction; all names are sound then.
fn note_fractions(fractions: &mut BTreeSet<String>, name: &str, value: &Json) -> Result<(), String> {
    if name.len() > LONGEST_NAME {
        let beginning: String = name.chars().take(40).collect();
        return Err(format!("the field `{beginning}…` has a name of more than {LONGEST_NAME} bytes"));
    }
    match value {
        Json::Object(fields) => {
            for (inner, value) in fields {
                note_fractions(fractions, &format!("{name}.{inner}"), value)?;
            }
        }
        Json::Number(number) if number.as_i64().is_none() && !fractions.contains(name) => {
            fractions.insert(name.to_owned());
        }
        _ => {}
    }
    Ok(())
}

fn rows(
    measurement: &str,
    documents: &[Document],
    time: Option<&str>,
    now: i64,
    shape: &Shape,
) -> Result<Decoded, String> {
    let mut rows = Rows::default();
    for (known, document) in documents {
        let names = time.as_ref().map_or(&TIMES[..], std::slice::from_ref);
        let found = names.iter().find_map(|name| document.get_key_value(*name));
        let at = match found {
            Some((name, value)) => {
                instant(value).ok_or_else(|| format!("`{name}` is not an instant: {value}"))?
            }
            None => now,
        };
        let row = rows.begin(measurement, at);
        for (name, value) in known {
            row.set_text(name.as_bytes(), value);
        }
        for (name, value) in document {
            if found.is_none_or(|(time, _)| time != name) {
                set(row, name, value, shape);
            }
        }
        if row.is_full() {
            return Err(TOO_LARGE.to_owned());
        }
    }
    Ok(finished(rows))
}

/// Sets a value; of an object each of its own, with a point between the names.
fn set(row: &mut Group, name: &str, value: &Json, shape: &Shape) {
    let typed = match (value, shape) {
        (Json::Null, _) => return,
        (Json::Object(fields), _) => {
            for (inner, value) in fields {
                set(row, &format!("{name}.{inner}"), value, shape);
            }
            return;
        }
        (Json::String(text), _) => return row.set_text(name.as_bytes(), text),
        (Json::Array(_), _) | (_, Shape::Text) => return row.set_text(name.as_bytes(), &value.to_string()),
        (Json::Bool(bool), Shape::Typed(_)) => Value::Bool(*bool),
        (Json::Number(number), Shape::Typed(fractions)) => match number.as_i64() {
            Some(int) if !fractions.contains(name) => Value::Int(int),
            _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
    };
    row.set_value(name, typed);
}

fn instant(value: &Json) -> Option<i64> {
    match value {
        Json::String(text) => time::parsed(text),
        Json::Number(number) => {
            let number = number.as_i64().or_else(|| number.as_f64().map(|number| number as i64))?;
            Some(Unit::of(number).micros(number))
        }
        _ => None,
    }
}
