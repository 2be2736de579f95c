//! Histograms as HdrHistogram writes them: version 2, deflated, in Base64.
//!
//! Our buckets are those of HdrHistogram with 1 ns as the lowest discernible value and three significant
//! digits (`plimsoll_metrics::histogram`), so nothing is lost but what it does not keep: sum and extremes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

/// The largest value that is told apart, as in `plimsoll_metrics::histogram`: 24 hours in nanoseconds.
const RANGE: u64 = 24 * 3600 * 1_000_000_000;
/// Significant digits of our buckets.
const DIGITS: u8 = 3;

/// A histogram of HdrHistogram with these values, each with how often it occurred.
pub(crate) fn histogram(values: impl Iterator<Item = (u64, u64)>) -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, RANGE, DIGITS).expect("the bounds are in order");
    for (value, count) in values {
        // The last bucket ends beyond the range, but the array goes on to the next power of two.
        histogram.record_n(value, count).expect("the buckets are the same");
    }
    histogram
}

/// The text of these values; empty without any.
pub(super) fn text(values: impl Iterator<Item = (u64, u64)>) -> String {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return String::new();
    }
    let mut bytes = Vec::new();
    let written = V2DeflateSerializer::new().serialize(&histogram(values), &mut bytes);
    written.expect("counts of requests are below 2^63");
    STANDARD.encode(bytes)
}

/// The values of a text in ascending order, each the largest of its bucket, with their counts.
///
/// # Errors
/// Why it is no such text.
pub(super) fn values(text: &str) -> Result<Vec<(u64, u64)>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = STANDARD.decode(text).map_err(|error| format!("a histogram is no Base64: {error}"))?;
    let histogram: Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("a histogram is damaged: {error}"))?;
    Ok(histogram.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value())).collect())
}
