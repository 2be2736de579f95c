//! The slices of a run, kept in its result so that single runs can be compared.

use plimsoll_histogram::Delta;
use plimsoll_metrics::{Model, RunRecord};
use plimsoll_statistics::bootstrap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most bytes that the values of all slices may take in a result.
const MOST_BYTES: usize = 200_000;

/// The measured part of a run in slices of about the same length, with the times that count in its model:
/// response times in the open model, service times in the closed one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlicesResult {
    /// "response_time" or "service_time".
    pub time: String,
    /// Slice by slice, in the order of time: the values in nanoseconds, in ascending order, each with how
    /// often it occurred, as in "1012735:17 1013759:3". Values are those of the histogram: less than 0.1 %
    /// too large. Empty, with a reason in `missing`, if they are too many.
    pub values: Vec<String>,
    /// Reason why there are no slices; null if there are.
    pub missing: Option<String>,
}

impl SlicesResult {
    /// The slices of a run.
    pub(crate) fn new(record: &RunRecord) -> Self {
        let is_open = record.model == Model::Open;
        let text = |delta: &Delta| {
            let pairs: Vec<String> =
                delta.values().map(|(value, count)| format!("{value}:{count}")).collect();
            pairs.join(" ")
        };
        let of = |slice: &plimsoll_metrics::Slice| {
            text(if is_open { &slice.total.response_time } else { &slice.total.service_time })
        };
        let mut values: Vec<String> = record.slices.iter().map(of).collect();
        let bytes: usize = values.iter().map(String::len).sum();
        let missing = (bytes > MOST_BYTES).then(|| {
            values.clear();
            format!("they would take {bytes} bytes, more than {MOST_BYTES}")
        });
        let time = if is_open { "response_time" } else { "service_time" };
        Self { time: time.to_owned(), values, missing }
    }

    /// The slices as values with counts; `None` if a text is not one of them.
    pub(crate) fn counts(&self) -> Option<Vec<bootstrap::Slice>> {
        let pair = |text: &str| {
            let (value, count) = text.split_once(':')?;
            Some((value.parse().ok()?, count.parse().ok()?))
        };
        self.values.iter().map(|slice| slice.split_ascii_whitespace().map(pair).collect()).collect()
    }
}
