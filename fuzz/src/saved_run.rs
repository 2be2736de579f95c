//! Saved runs and results: any bytes are refused or read, a run that was read is written to the same bytes
//! again, and exports to all formats, whatever its figures are.
//!
//! The input changes a whole run (`base/run.plimsoll`) in up to [`MOST_EDITS`] places: random bytes would
//! never have all of its fields. Each change is [`EDIT_BYTES`] bytes: a place, a kind, and a number.

use std::io::{Read as _, Write as _};
use std::sync::LazyLock;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use plimsoll_report::{Format, RunResult, SavedRun, Style, render_saved, results_from_json};
use serde_json::Value;

const MOST_EDITS: usize = 16;
const EDIT_BYTES: usize = 6;

static BASE: LazyLock<Value> = LazyLock::new(|| {
    let mut text = Vec::new();
    let read = GzDecoder::new(&include_bytes!("../base/run.plimsoll")[..]).read_to_end(&mut text);
    read.expect("the base is compressed");
    serde_json::from_slice(&text).expect("the base is JSON")
});

/// The value at this place in the order of the text, all values counted.
fn nth<'v>(value: &'v mut Value, place: &mut usize) -> Option<&'v mut Value> {
    if *place == 0 {
        return Some(value);
    }
    *place -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, place)),
        Value::Object(members) => members.iter_mut().find_map(|(_, member)| nth(member, place)),
        _ => None,
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

fn edit(
    run: &mut Value,
    values: usize,
    [place_high, place_low, what, high, low, exponent]: [u8; EDIT_BYTES],
) {
    let mut place = usize::from(u16::from_be_bytes([place_high, place_low])) % values;
    let Some(value) = nth(run, &mut place) else { return };
    let number = u64::from(u16::from_be_bytes([high, low])) << (exponent % 49);
    *value = match what % 12 {
        0 => Value::Null,
        1 => (what >= 128).into(),
        2 | 3 => number.into(),
        4 => (-(number as i64)).into(),
        5 => (number as f64 / f64::from(1_u32 << (exponent % 32))).into(),
        6 => (f64::from(low) * 10_f64.powi(i32::from(exponent) * 2 - 255)).into(),
        7 => u64::MAX.into(),
        8 => String::from_utf8_lossy(&[high, low, exponent]).into_owned().into(),
        9 => Value::Array(Vec::new()),
        10 => match value {
            Value::Array(items) if !items.is_empty() => {
                let item = items[usize::from(low) % items.len()].clone();
                let mut items = items.clone();
                items.insert(usize::from(high) % items.len(), item);
                items.into()
            }
            Value::String(text) => text.chars().rev().collect::<String>().into(),
            _ => serde_json::json!({}),
        },
        _ => match value {
            Value::Array(items) => {
                items.iter().skip(1 + usize::from(low)).cloned().collect::<Vec<_>>().into()
            }
            Value::Object(members) => {
                let mut members = members.clone();
                let name = members.keys().nth(usize::from(low) % members.len().max(1)).cloned();
                name.and_then(|name| members.shift_remove(&name));
                members.into()
            }
            _ => Value::Null,
        },
    };
}

fn compressed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).expect("memory takes all bytes");
    encoder.finish().expect("memory takes all bytes")
}

fn check(run: &SavedRun) {
    let bytes = run.to_bytes().expect("a run that was read can be written");
    assert!(SavedRun::is_saved(&bytes));
    let again = SavedRun::from_bytes(&bytes).expect("a run that was written can be read");
    assert_eq!(again.to_bytes().expect("it can be written"), bytes);
    let style = Style { color: true, unicode: true, width: 100, fits: true };
    for format in Format::ALL {
        let mut out = Vec::new();
        let rendered = render_saved(run, format, &style, &mut out);
        assert!(rendered.is_ok() || format.needs_histograms() && !run.has_histograms(), "{format:?}");
    }
    if let Ok(merged) = SavedRun::merge(&[run.clone(), run.clone()]) {
        assert_eq!(merged.total().ok, 2 * run.total().ok);
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let _ = SavedRun::from_bytes(data);
    let _ = RunResult::from_json(data);
    let _ = results_from_json(data);
    let _ = SavedRun::from_bytes(&compressed(data));

    let (edits, _) = data.as_chunks::<EDIT_BYTES>();
    let mut changed = BASE.clone();
    for &bytes in edits.iter().take(MOST_EDITS) {
        let values = count(&changed);
        edit(&mut changed, values, bytes);
    }
    let text = serde_json::to_vec(&changed).expect("it is JSON");
    if let Ok(run) = SavedRun::from_bytes(&compressed(&text)) {
        check(&run);
    }
}
