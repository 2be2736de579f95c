//! Loki's push API ("Loki HTTP API", grafana.com): streams of labels with lines.

use serde_json::{Map, Value as Json};

use super::super::batch::Decoded;
use super::super::rows::{Group, Rows, TOO_LARGE};
use super::finished;
use super::protobuf::{Refused, fields, pair};

const MEASUREMENT: &str = "entries";
const NO_LABELS: &str = "error at least one label pair is required per stream";

/// Reads a push in protobuf: a row for each line.
pub(crate) fn packed(payload: &[u8]) -> Result<Decoded, String> {
    let mut rows = Rows::default();
    let mut refused = None;
    let read = fields(payload, |number, stream| {
        if number != 1 {
            return Ok(());
        }
        let (mut labels, mut entries) = (&b""[..], Vec::new());
        fields(stream.bytes()?, |number, field| {
            match number {
                1 => labels = field.bytes()?,
                2 => entries.push(field.bytes()?),
                _ => {}
            }
            Ok(())
        })?;
        let text = String::from_utf8_lossy(labels);
        let Some(labels) = labels_of(&text) else {
            refused.get_or_insert_with(|| format!("couldn't parse labels: {text}"));
            return Ok(());
        };
        if labels.is_empty() {
            refused.get_or_insert_with(|| NO_LABELS.to_owned());
        }
        for entry in entries {
            let (mut seconds, mut nanos, mut line, mut metadata) = (0, 0, &b""[..], Vec::new());
            fields(entry, |number, field| {
                match number {
                    1 => fields(field.bytes()?, |number, field| {
                        match number {
                            1 => seconds = field.number()? as i64,
                            2 => nanos = field.number()? as i64,
                            _ => {}
                        }
                        Ok(())
                    })?,
                    2 => line = field.bytes()?,
                    3 => metadata.push(pair(field.bytes()?)?),
                    _ => {}
                }
                Ok(())
            })?;
            let micros = seconds.saturating_mul(1_000_000).saturating_add(nanos / 1000);
            let row = rows.begin(MEASUREMENT, micros);
            row.set_text(b"line", &String::from_utf8_lossy(line));
            for (name, value) in &labels {
                row.set_text(name.as_bytes(), value);
            }
            for (name, value) in metadata {
                row.set_text(name, &String::from_utf8_lossy(value));
            }
            if row.is_full() {
                return Err(Refused::TooLarge);
            }
        }
        Ok(())
    });
    read.map_err(|why| why.to_string())?;
    refused.map_or_else(|| Ok(finished(rows)), Err)
}

/// Reads a push in JSON.
pub(crate) fn json(payload: &[u8]) -> Result<Decoded, String> {
    let push: Json = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
    let mut rows = Rows::default();
    let streams = push.get("streams").and_then(Json::as_array).ok_or("there is no list of `streams`")?;
    for stream in streams {
        let labels = stream.get("stream").and_then(Json::as_object).filter(|labels| !labels.is_empty());
        let labels = labels.ok_or(NO_LABELS)?;
        let values = stream.get("values").and_then(Json::as_array).ok_or("a stream has no `values`")?;
        for value in values {
            let Some([time, line, metadata @ ..]) = value.as_array().map(Vec::as_slice) else {
                return Err("a value is not [time, line]".to_owned());
            };
            let nanos = time.as_str().and_then(|time| time.parse::<i64>().ok());
            let nanos = nanos.ok_or("a time is not a text of nanoseconds since 1970")?;
            let row = rows.begin(MEASUREMENT, nanos / 1000);
            row.set_text(b"line", line.as_str().ok_or("a line is not a text")?);
            set_labels(row, labels)?;
            if let Some(metadata) = metadata.first() {
                set_labels(row, metadata.as_object().ok_or("structured metadata are not an object")?)?;
            }
            if row.is_full() {
                return Err(TOO_LARGE.to_owned());
            }
        }
    }
    Ok(finished(rows))
}

fn set_labels(row: &mut Group, labels: &Map<String, Json>) -> Result<(), String> {
    for (name, value) in labels {
        row.set_text(name.as_bytes(), value.as_str().ok_or_else(|| format!("label `{name}` is not a text"))?);
    }
    Ok(())
}

/// The labels of `{a="b", c="d"}`.
fn labels_of(text: &str) -> Option<Vec<(&str, String)>> {
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let mut labels = Vec::new();
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=')?;
        let mut chars = behind.trim_start().strip_prefix('"')?.char_indices();
        let (mut value, mut end) = (String::new(), None);
        while let Some((place, char)) = chars.next() {
            match char {
                '"' => {
                    end = Some(place + 1);
                    break;
                }
                '\\' => match chars.next()?.1 {
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    other => value.push(other),
                },
                other => value.push(other),
            }
        }
        labels.push((name.trim(), value));
        rest = behind.trim_start().strip_prefix('"')?.get(end?..)?.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Some(labels)
}
