//! The bytes of a saved run.

use std::borrow::Cow;
use std::io::{self, Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use plimsoll_metrics::{Interval, StepRecord, Tally};
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::{SAVED_VERSION, SavedRun};
use crate::ReadError;

/// Bytes of text that a saved run may have in any case: five times that of a run of 3,600 intervals and a
/// hundred steps.
const ANY_TEXT: u64 = 64 << 20;
/// Largest ratio of the length of a larger text to that of its compressed bytes. Real runs have ratios of 4
/// to 12; DEFLATE gets to 1,032 (RFC 1951: a match of 258 bytes of two bits).
const MOST_RATIO: u64 = 32;
/// The most bytes of text.
const MOST_TEXT: u64 = 1 << 30;

/// The largest count that is read: a thousand times the bytes that 100 Gbit/s are in a year, and sixty runs
/// can be merged without an overflow.
const MOST_OF_A_COUNT: u64 = 1 << 58;

/// Refuses counts that no run can have, and whose sums could overflow.
pub(crate) fn possible(counts: impl IntoIterator<Item = u64>) -> Result<(), String> {
    match counts.into_iter().find(|count| *count > MOST_OF_A_COUNT) {
        None => Ok(()),
        Some(count) => Err(format!("no run can have a count of {count}")),
    }
}

/// Refuses a step with counts that no run can have.
pub(crate) fn check_step(step: &StepRecord) -> Result<(), String> {
    possible([step.ok, step.failed, step.timed_out, step.bytes_sent, step.bytes_received])?;
    possible(step.statuses.values().copied().chain(step.errors.iter().map(|(_, count)| count)))?;
    possible([step.censored_response.count, step.censored_service.count])
}

/// Refuses a tally with counts that no run can have.
pub(crate) fn check_tally(tally: &Tally) -> Result<(), String> {
    possible([tally.started, tally.ok, tally.failed, tally.timed_out, tally.completed, tally.carried])?;
    possible([tally.bytes_sent, tally.bytes_received, tally.censored.count])?;
    possible(tally.statuses.into_iter().chain(tally.errors.iter().map(|(_, count)| count)))?;
    let limits = [tally.limits, tally.failed_limits];
    if limits.into_iter().flatten().any(|(low, high)| low > high) {
        return Err("the extremes of a time are out of order".to_owned());
    }
    let sums = [tally.response_time_sum, tally.service_time_sum, tally.failed_time_sum];
    if sums.into_iter().any(|sum| sum > u128::from(MOST_OF_A_COUNT) << 64) {
        return Err("no run can have such a sum of times".to_owned());
    }
    Ok(())
}

/// Refuses a run with counts that none can have.
fn check_run(run: &SavedRun) -> Result<(), String> {
    run.steps.iter().try_for_each(check_step)?;
    run.phases.iter().try_for_each(|phase| possible([phase.completed, phase.iterations]))?;
    run.phases.iter().map(|phase| &phase.tally).try_for_each(check_tally)?;
    run.slices.iter().map(|slice| &slice.tally).try_for_each(check_tally)
}

/// A saved run as it is written.
#[derive(Serialize)]
struct WrittenRun<'a> {
    /// The version; the name of this field distinguishes a saved run from other JSON.
    saved_run: u32,
    #[serde(flatten)]
    run: &'a SavedRun,
}

pub(super) fn run_to_bytes(run: &SavedRun) -> io::Result<Vec<u8>> {
    compressed(&WrittenRun { saved_run: SAVED_VERSION, run })
}

pub(super) fn run_from_bytes(bytes: &[u8]) -> Result<SavedRun, ReadError> {
    /// Fields that distinguish a saved run from other JSON.
    #[derive(Deserialize)]
    struct Mark {
        saved_run: Option<u32>,
        result: Option<IgnoredAny>,
    }
    let text = decompressed(bytes).map_err(ReadError::Broken)?;
    let Mark { saved_run, result } = serde_json::from_slice(&text).map_err(ReadError::NotJson)?;
    match (saved_run, result) {
        (Some(found), Some(_)) if found > SAVED_VERSION => {
            return Err(ReadError::TooNew { found, known: SAVED_VERSION });
        }
        (Some(_), Some(_)) => {}
        _ => return Err(ReadError::NotAResult),
    }
    let run: SavedRun = serde_json::from_slice(&text).map_err(ReadError::Broken)?;
    check_run(&run).map_err(broken)?;
    Ok(SavedRun { result: run.result.with_headline(), ..run })
}

/// A value as JSON, compressed. The header of gzip has no time, so equal values have equal bytes.
pub(crate) fn compressed(value: &impl Serialize) -> io::Result<Vec<u8>> {
    // In one piece: JSON is written a few bytes at a time, and each would be a call of the compressor. The
    // fast level is a third of the work, and texts of Base64 get hardly any shorter by more.
    let text = serde_json::to_vec(value)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&text)?;
    encoder.finish()
}

pub(crate) fn decompressed(bytes: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let most = (bytes.len() as u64).saturating_mul(MOST_RATIO).clamp(ANY_TEXT, MOST_TEXT);
    let mut text = Vec::new();
    let read = GzDecoder::new(bytes).take(most + 1).read_to_end(&mut text);
    match read {
        Ok(length) if length as u64 > most => {
            let why = format!("its {} bytes are more than {most} without compression", bytes.len());
            Err(serde_json::Error::custom(why))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(serde_json::Error::custom(format!("it cannot be decompressed: {error}"))),
    }
}

/// Tallies as bytes: the form in which a run that goes on stores them, step by step.
///
/// # Errors
/// If they cannot be written as JSON, which none that was measured causes.
pub fn tallies_to_bytes(tallies: &[Tally]) -> io::Result<Vec<u8>> {
    compressed(&tallies)
}

/// Reads the bytes of [`tallies_to_bytes`].
///
/// # Errors
/// If it is something else.
pub fn tallies_from_bytes(bytes: &[u8]) -> Result<Vec<Tally>, ReadError> {
    let tallies: Vec<Tally> = from_compressed(bytes)?;
    tallies.iter().try_for_each(check_tally).map_err(broken)?;
    Ok(tallies)
}

/// An interval as one line of text, with its steps and the status of its workers: the form in which the
/// process of a run sends it to its parent.
///
/// # Errors
/// If it cannot be written as JSON, which none that was measured causes.
pub fn interval_to_line(interval: &Interval) -> io::Result<String> {
    Ok(serde_json::to_string(&ToldInterval { interval: Cow::Borrowed(interval) })?)
}

/// A line of [`interval_to_line`] as bytes, which are shorter; `None` if the line is something else.
pub fn interval_line_to_bytes(line: &str) -> Option<Vec<u8>> {
    if !line.starts_with("{\"interval\":") {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(line.as_bytes()).ok()?;
    encoder.finish().ok()
}

/// Reads the bytes of [`interval_line_to_bytes`].
///
/// # Errors
/// If it is something else, or has counts that no run can have.
pub fn interval_from_bytes(bytes: &[u8]) -> Result<Interval, ReadError> {
    let ToldInterval { interval } = from_compressed(bytes)?;
    let interval = interval.into_owned();
    interval.steps.iter().try_for_each(check_tally).map_err(broken)?;
    let Interval { scheduled, iterations, resent, in_flight, connections, .. } = interval;
    let accounts = interval.worker_statuses.iter().flat_map(|status| {
        let accounts = &status.accounting;
        [accounts.scheduled, accounts.started, status.completed, status.waiting]
    });
    let counts = [scheduled, iterations, resent, in_flight, connections];
    possible(counts.into_iter().chain(accounts)).map_err(broken)?;
    Ok(interval)
}

#[derive(Serialize, Deserialize)]
struct ToldInterval<'a> {
    interval: Cow<'a, Interval>,
}

fn from_compressed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ReadError> {
    let text = decompressed(bytes).map_err(ReadError::Broken)?;
    serde_json::from_slice(&text).map_err(ReadError::Broken)
}

/// The error of damaged contents.
pub(crate) fn broken(damage: String) -> ReadError {
    ReadError::Broken(serde_json::Error::custom(damage))
}
