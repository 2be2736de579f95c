//! OTLP/HTTP with protobuf ("OTLP Specification", opentelemetry.io), the numbers of whose fields are those of
//! `opentelemetry-proto` 1.x.

use plimsoll_core::text::hex;
use serde_json::Value as Json;

use super::super::batch::Decoded;
use super::super::column::Value;
use super::super::rows::{Group, Rows};
use super::finished;
use super::protobuf::{Refused, Wire, fields};

/// Lists in lists of an attribute's value that are followed.
const DEPTH: u32 = 8;

/// The kind of telemetry in an export request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Metrics,
    Logs,
    Traces,
}

impl Signal {
    const fn measurement(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Logs => "logs",
            Self::Traces => "spans",
        }
    }
}

/// Reads an export request: a row for each data point, log record or span. Records without a time get `now`
/// (microseconds).
pub(crate) fn decode(signal: Signal, payload: &[u8], now: i64) -> Result<Decoded, Refused> {
    let mut rows = Rows::default();
    fields(payload, |number, resource| match number {
        1 => of_resource(signal, resource.bytes()?, &mut rows, now),
        _ => Ok(()),
    })?;
    Ok(finished(rows))
}

fn of_resource(signal: Signal, message: &[u8], rows: &mut Rows, now: i64) -> Result<(), Refused> {
    // The resource may follow the data that belong to it.
    let mut attributes: Vec<&[u8]> = Vec::new();
    fields(message, |number, resource| match number {
        1 => fields(resource.bytes()?, |number, attribute| match number {
            1 => {
                attributes.push(attribute.bytes()?);
                Ok(())
            }
            _ => Ok(()),
        }),
        _ => Ok(()),
    })?;
    fields(message, |number, scope| match number {
        2 => fields(scope.bytes()?, |number, item| match (number, signal) {
            (2, Signal::Metrics) => metric(item.bytes()?, &attributes, rows, now),
            (2, Signal::Logs) => log(item.bytes()?, &attributes, rows, now),
            (2, Signal::Traces) => span(item.bytes()?, &attributes, rows, now),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })
}

fn metric(message: &[u8], resource: &[&[u8]], rows: &mut Rows, now: i64) -> Result<(), Refused> {
    let mut name = &b""[..];
    fields(message, |number, field| {
        if number == 1 {
            name = field.bytes()?;
        }
        Ok(())
    })?;
    fields(message, |number, data| {
        let kind = match number {
            5 => "gauge",
            7 => "sum",
            9 => "histogram",
            10 => "exponential_histogram",
            11 => "summary",
            _ => return Ok(()),
        };
        fields(data.bytes()?, |number, point| match number {
            1 => data_point(name, kind, point.bytes()?, resource, rows, now),
            _ => Ok(()),
        })
    })
}

fn data_point(
    name: &[u8],
    kind: &str,
    message: &[u8],
    resource: &[&[u8]],
    rows: &mut Rows,
    now: i64,
) -> Result<(), Refused> {
    let is_number = matches!(kind, "gauge" | "sum");
    let attributes_at = match kind {
        "histogram" => 9,
        "exponential_histogram" => 1,
        _ => 7,
    };
    let (mut time, mut value, mut count, mut attributes) = (now, None, None, Vec::new());
    fields(message, |number, field| {
        match (number, field) {
            (3, Wire::Fixed64(nanos)) => time = micros(nanos, now),
            // A double, or a whole number, of a data point; of the others the count and the sum.
            (4, Wire::Fixed64(bits)) if is_number => value = Some(f64::from_bits(bits)),
            (6, Wire::Fixed64(bits)) if is_number => value = Some(bits as i64 as f64),
            (4, Wire::Fixed64(number)) => count = Some(number),
            (5, Wire::Fixed64(bits)) if !is_number => value = Some(f64::from_bits(bits)),
            (number, Wire::Bytes(attribute)) if number == attributes_at => attributes.push(attribute),
            _ => {}
        }
        Ok(())
    })?;
    let row = rows.begin(Signal::Metrics.measurement(), time);
    row.set_text(b"name", &String::from_utf8_lossy(name));
    row.set_text(b"type", kind);
    row.set_value("value", value.map_or(Value::Null, Value::Float));
    // Set even without a count: an attribute of this name would turn the column into text.
    let count = count.map(|count| Value::Int(i64::try_from(count).unwrap_or(i64::MAX)));
    row.set_value("count", count.unwrap_or(Value::Null));
    set_attributes(row, &attributes, resource)
}

fn log(message: &[u8], resource: &[&[u8]], rows: &mut Rows, now: i64) -> Result<(), Refused> {
    let (mut time, mut observed, mut severity) = (0, 0, 0);
    let (mut text, mut body, mut trace, mut span) = (&b""[..], None, &b""[..], &b""[..]);
    let mut attributes = Vec::new();
    fields(message, |number, field| {
        match number {
            1 => time = field.number()?,
            2 => severity = field.number()?,
            3 => text = field.bytes()?,
            5 => body = Some(field.bytes()?),
            6 => attributes.push(field.bytes()?),
            9 => trace = field.bytes()?,
            10 => span = field.bytes()?,
            11 => observed = field.number()?,
            _ => {}
        }
        Ok(())
    })?;
    let row = rows.begin(Signal::Logs.measurement(), micros(if time == 0 { observed } else { time }, now));
    row.set_value("severity_number", Value::Int(severity as i64));
    row.set_text(b"severity_text", &String::from_utf8_lossy(text));
    if let Some(body) = body {
        match any(body, DEPTH)? {
            Json::String(text) => row.set_text(b"body", &text),
            other => row.set_text(b"body", &other.to_string()),
        }
    }
    row.set_text(b"trace_id", &hex(trace));
    row.set_text(b"span_id", &hex(span));
    set_attributes(row, &attributes, resource)
}

fn span(message: &[u8], resource: &[&[u8]], rows: &mut Rows, now: i64) -> Result<(), Refused> {
    let mut ids = [&b""[..]; 3];
    let (mut name, mut kind, mut start, mut end, mut status) = (&b""[..], 0, 0, 0, 0);
    let mut attributes = Vec::new();
    fields(message, |number, field| {
        match number {
            1 => ids[0] = field.bytes()?,
            2 => ids[1] = field.bytes()?,
            4 => ids[2] = field.bytes()?,
            5 => name = field.bytes()?,
            6 => kind = field.number()?,
            7 => start = field.number()?,
            8 => end = field.number()?,
            9 => attributes.push(field.bytes()?),
            15 => fields(field.bytes()?, |number, field| {
                if number == 3 {
                    status = field.number()?;
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    let row = rows.begin(Signal::Traces.measurement(), micros(start, now));
    for (column, id) in [&b"trace_id"[..], b"span_id", b"parent_span_id"].into_iter().zip(ids) {
        row.set_text(column, &hex(id));
    }
    row.set_text(b"name", &String::from_utf8_lossy(name));
    row.set_value("kind", Value::Int(kind as i64));
    row.set_value("duration_ns", Value::Int(end.saturating_sub(start) as i64));
    row.set_value("status_code", Value::Int(status as i64));
    set_attributes(row, &attributes, resource)
}

/// Sets attributes as text; those of the item go before those of its resource. Nothing more of a payload is
/// read when its rows are full.
fn set_attributes(row: &mut Group, own: &[&[u8]], resource: &[&[u8]]) -> Result<(), Refused> {
    for attribute in own.iter().chain(resource) {
        let (key, value) = pair(attribute, DEPTH)?;
        match value {
            Json::String(text) => row.set_text(key, &text),
            other => row.set_text(key, &other.to_string()),
        }
    }
    if row.is_full() { Err(Refused::TooLarge) } else { Ok(()) }
}

/// A key and its value.
fn pair(message: &[u8], depth: u32) -> Result<(&[u8], Json), Refused> {
    let (mut key, mut value) = (&b""[..], Json::from(""));
    fields(message, |number, field| {
        match number {
            1 => key = field.bytes()?,
            2 => value = any(field.bytes()?, depth)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok((key, value))
}

/// A value of any kind as JSON: values other than lists and maps become text.
fn any(message: &[u8], depth: u32) -> Result<Json, Refused> {
    let mut value = Json::from("");
    fields(message, |number, field| {
        value = match (number, field) {
            (1, Wire::Bytes(text)) => String::from_utf8_lossy(text).into(),
            (2, Wire::Varint(flag)) => (flag != 0).to_string().into(),
            (3, Wire::Varint(number)) => (number as i64).to_string().into(),
            (4, Wire::Fixed64(bits)) => f64::from_bits(bits).to_string().into(),
            (5 | 6, Wire::Bytes(_)) if depth == 0 => "…".into(),
            (5, Wire::Bytes(list)) => {
                let mut items = Vec::new();
                fields(list, |_, item| {
                    items.push(any(item.bytes()?, depth - 1)?);
                    Ok(())
                })?;
                items.into()
            }
            (6, Wire::Bytes(list)) => {
                let mut pairs = serde_json::Map::new();
                fields(list, |_, item| {
                    let (key, value) = pair(item.bytes()?, depth - 1)?;
                    pairs.insert(String::from_utf8_lossy(key).into_owned(), value);
                    Ok(())
                })?;
                pairs.into()
            }
            (7, Wire::Bytes(bytes)) => hex(bytes).into(),
            (1..=7, _) => return Err(Refused::Broken),
            // A kind of a later version.
            _ => return Ok(()),
        };
        Ok(())
    })?;
    Ok(value)
}

/// Microseconds of an instant in nanoseconds; 0 means the current time.
const fn micros(nanos: u64, now: i64) -> i64 {
    if nanos == 0 { now } else { (nanos / 1000) as i64 }
}
