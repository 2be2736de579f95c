//! Distribution of values over time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::build::distribution::{range_of, start_of};
use crate::contract::result::ModelKind;
use crate::saved::SavedRun;

/// Columns at most, by joining neighbours.
const MOST_COLUMNS: usize = 300;

/// Counts by time and value.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Heat {
    /// The key of the time.
    time: &'static str,
    /// Begin and end of each column, in seconds since the start of the run.
    columns: Vec<(f64, f64)>,
    /// Limits of the rows in nanoseconds, one more than there are rows.
    limits_ns: Vec<u64>,
    /// Column, row, and how many values; those without are left out.
    cells: Vec<(usize, usize, u64)>,
}

impl Heat {
    /// From the slices of a saved run; `None` if it has none with values.
    pub(super) fn new(run: &SavedRun) -> Option<Self> {
        let is_open = run.result.model.kind == ModelKind::Open;
        let time = if is_open { "response_time" } else { "service_time" };
        // A slice without a length holds only requests that ended in the drain, after the load, and gets no
        // column.
        let slices: Vec<_> = run.slices.iter().filter(|slice| slice.length.0 > 0).collect();
        let per_column = slices.len().div_ceil(MOST_COLUMNS).max(1);
        let mut columns = Vec::new();
        let mut counts: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for (column, group) in slices.chunks(per_column).enumerate() {
            let (first, last) = (group.first()?, group.last()?);
            columns.push(((first.at - first.length).as_secs_f64(), last.at.as_secs_f64()));
            for slice in group {
                let delta = if is_open { &slice.tally.response_time } else { &slice.tally.service_time };
                for (value, count) in delta.values() {
                    *counts.entry((column, range_of(value))).or_default() += count;
                }
            }
        }
        let lowest = counts.keys().map(|(_, range)| *range).min()?;
        let highest = counts.keys().map(|(_, range)| *range).max()?;
        Some(Self {
            time,
            columns,
            limits_ns: (lowest..=highest + 1).map(start_of).collect(),
            cells: counts.into_iter().map(|((column, range), n)| (column, range - lowest, n)).collect(),
        })
    }
}
