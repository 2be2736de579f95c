//! The bytes of a saved run.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_metrics::histogram::{Delta, Exact};
use plimsoll_metrics::{Censored, Histogram, PhaseRecord, StepRecord, Tally};
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::{SAVED_VERSION, SavedRun, SavedSlice, hdr};
use crate::{ReadError, RunResult};

/// Bytes of text that a saved run may have in any case: five times what one of 3,600 intervals and a hundred
/// steps has.
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
fn possible(counts: impl IntoIterator<Item = u64>) -> Result<(), String> {
    match counts.into_iter().find(|count| *count > MOST_OF_A_COUNT) {
        None => Ok(()),
        Some(count) => Err(format!("a count of {count} is none that a run can have")),
    }
}

/// A saved run as it is written.
#[derive(Serialize, Deserialize)]
struct WrittenRun {
    /// The version; its name tells a saved run from other JSON.
    saved_run: u32,
    result: RunResult,
    plan: Option<String>,
    steps: Vec<WrittenStep>,
    phases: Vec<WrittenPhase>,
    connect_time: Option<WrittenTimes>,
    tls_time: Option<WrittenTimes>,
    ping_time: Option<WrittenTimes>,
    slices: Vec<WrittenSlice>,
}

#[derive(Serialize, Deserialize)]
struct WrittenTimes {
    hdr: String,
    min: u64,
    max: u64,
    sum: u128,
    overflow: u64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct WrittenCensored {
    count: u64,
    from_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct WrittenStep {
    name: String,
    scenario: String,
    ok: u64,
    failed: u64,
    timed_out: u64,
    response_time: Option<WrittenTimes>,
    service_time: Option<WrittenTimes>,
    start_lag: Option<WrittenTimes>,
    first_byte_time: Option<WrittenTimes>,
    failed_response_time: Option<WrittenTimes>,
    response_in_stall: Option<WrittenTimes>,
    service_in_stall: Option<WrittenTimes>,
    statuses: BTreeMap<u16, u64>,
    errors: BTreeMap<String, u64>,
    bytes_sent: u64,
    bytes_received: u64,
    censored_response: Option<WrittenCensored>,
    censored_service: Option<WrittenCensored>,
}

#[derive(Serialize, Deserialize)]
struct WrittenTally {
    started: u64,
    ok: u64,
    failed: u64,
    timed_out: u64,
    completed: u64,
    statuses: [u64; 3],
    errors: BTreeMap<String, u64>,
    bytes_sent: u64,
    bytes_received: u64,
    response_time: String,
    service_time: String,
    response_time_sum: u128,
    #[serde(default)]
    service_time_sum: u128,
    censored: Option<WrittenCensored>,
    limits: Option<(u64, u64)>,
}

#[derive(Serialize, Deserialize)]
struct WrittenPhase {
    name: String,
    at_ns: u64,
    length_ns: u64,
    measured: bool,
    target_per_second: Option<f64>,
    completed: u64,
    /// Not in what earlier versions wrote.
    #[serde(default)]
    iterations: u64,
    tally: WrittenTally,
}

#[derive(Serialize, Deserialize)]
struct WrittenSlice {
    at_ns: u64,
    length_ns: u64,
    warmup: bool,
    drain: bool,
    tally: WrittenTally,
}

pub(super) fn run_to_bytes(run: &SavedRun) -> io::Result<Vec<u8>> {
    let written = WrittenRun {
        saved_run: SAVED_VERSION,
        result: run.result.clone(),
        plan: run.plan.clone(),
        steps: run.steps.iter().map(WrittenStep::new).collect(),
        phases: run.phases.iter().map(WrittenPhase::new).collect(),
        connect_time: WrittenTimes::new(&run.connect_time),
        tls_time: WrittenTimes::new(&run.tls_time),
        ping_time: WrittenTimes::new(&run.ping_time),
        slices: run.slices.iter().map(WrittenSlice::new).collect(),
    };
    compressed(&written)
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
    let read: WrittenRun = serde_json::from_slice(&text).map_err(ReadError::Broken)?;
    read.open().map_err(|damage| ReadError::Broken(serde_json::Error::custom(damage)))
}

/// A value as JSON, compressed. The header of gzip has no time, so equal values have equal bytes.
fn compressed(value: &impl Serialize) -> io::Result<Vec<u8>> {
    // In one piece: JSON is written a few bytes at a time, and each would be a call of the compressor. The
    // fast level is a third of the work, and texts of Base64 get hardly any shorter by more.
    let text = serde_json::to_vec(value)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&text)?;
    encoder.finish()
}

fn decompressed(bytes: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
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

/// Tallies as bytes: what a run that goes on leaves behind, step by step.
///
/// # Errors
/// If they cannot be written as JSON, which none that was measured causes.
pub fn tallies_to_bytes(tallies: &[Tally]) -> io::Result<Vec<u8>> {
    compressed(&tallies.iter().map(WrittenTally::new).collect::<Vec<_>>())
}

/// Reads what [`tallies_to_bytes`] wrote.
///
/// # Errors
/// If it is something else.
pub fn tallies_from_bytes(bytes: &[u8]) -> Result<Vec<Tally>, ReadError> {
    let read: Vec<WrittenTally> = from_compressed(bytes)?;
    let opened: Result<Vec<_>, String> = read.into_iter().map(WrittenTally::open).collect();
    opened.map_err(|damage| ReadError::Broken(serde_json::Error::custom(damage)))
}

fn from_compressed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ReadError> {
    let text = decompressed(bytes).map_err(ReadError::Broken)?;
    serde_json::from_slice(&text).map_err(ReadError::Broken)
}

impl WrittenRun {
    fn open(self) -> Result<SavedRun, String> {
        Ok(SavedRun {
            result: self.result.with_headline(),
            plan: self.plan,
            steps: self.steps.into_iter().map(WrittenStep::open).collect::<Result<_, _>>()?,
            phases: self.phases.into_iter().map(WrittenPhase::open).collect::<Result<_, _>>()?,
            connect_time: WrittenTimes::open(self.connect_time)?,
            tls_time: WrittenTimes::open(self.tls_time)?,
            ping_time: WrittenTimes::open(self.ping_time)?,
            slices: self.slices.into_iter().map(WrittenSlice::open).collect::<Result<_, _>>()?,
        })
    }
}

impl WrittenTimes {
    /// `None` without values.
    fn new(histogram: &Histogram) -> Option<Self> {
        let Exact { min, max, sum, overflow } = histogram.exact();
        let hdr = || hdr::plain(histogram.buckets().map(|bucket| (bucket.highest, bucket.count)));
        (!histogram.is_empty()).then(|| Self { hdr: hdr(), min, max, sum, overflow })
    }

    fn open(times: Option<Self>) -> Result<Histogram, String> {
        let Some(Self { hdr, min, max, sum, overflow }) = times else { return Ok(Histogram::new()) };
        let exact = Exact { min, max, sum, overflow };
        let histogram = Histogram::restore(hdr::values(&hdr)?, exact);
        histogram.ok_or_else(|| "the extremes of a histogram are not those of its values".to_owned())
    }
}

impl WrittenCensored {
    fn new(censored: Censored) -> Option<Self> {
        (censored.count > 0).then_some(Self { count: censored.count, from_ns: censored.from.0 })
    }

    fn open(censored: Option<Self>) -> Censored {
        censored
            .map_or(Censored::default(), |Self { count, from_ns }| Censored { count, from: Nanos(from_ns) })
    }
}

/// The classes of errors that occurred, by name.
fn errors_to_names(errors: &[u64; ErrorClass::COUNT]) -> BTreeMap<String, u64> {
    let counts = ErrorClass::ALL.iter().zip(errors).filter(|(_, count)| **count > 0);
    counts.map(|(class, count)| (class.name().to_owned(), *count)).collect()
}

fn errors_of_names(names: &BTreeMap<String, u64>) -> Result<[u64; ErrorClass::COUNT], String> {
    let mut errors = [0; ErrorClass::COUNT];
    for (name, count) in names {
        let Some(class) = ErrorClass::ALL.iter().find(|class| class.name() == name) else {
            return Err(format!("`{name}` is no class of errors that this version knows"));
        };
        errors[*class as usize] = *count;
    }
    Ok(errors)
}

impl WrittenStep {
    fn new(step: &StepRecord) -> Self {
        Self {
            name: step.name.clone(),
            scenario: step.scenario.clone(),
            ok: step.ok,
            failed: step.failed,
            timed_out: step.timed_out,
            response_time: WrittenTimes::new(&step.response_time),
            service_time: WrittenTimes::new(&step.service_time),
            start_lag: WrittenTimes::new(&step.start_lag),
            first_byte_time: WrittenTimes::new(&step.first_byte_time),
            failed_response_time: WrittenTimes::new(&step.failed_response_time),
            response_in_stall: WrittenTimes::new(&step.response_in_stall),
            service_in_stall: WrittenTimes::new(&step.service_in_stall),
            statuses: step.statuses.clone(),
            errors: errors_to_names(&step.errors),
            bytes_sent: step.bytes_sent,
            bytes_received: step.bytes_received,
            censored_response: WrittenCensored::new(step.censored_response),
            censored_service: WrittenCensored::new(step.censored_service),
        }
    }

    fn open(self) -> Result<StepRecord, String> {
        let counts = [self.ok, self.failed, self.timed_out, self.bytes_sent, self.bytes_received];
        let censored = [self.censored_response, self.censored_service];
        possible(counts.into_iter().chain(self.statuses.values().copied()))?;
        possible(self.errors.values().copied())?;
        possible(censored.into_iter().flatten().map(|censored| censored.count))?;
        Ok(StepRecord {
            name: self.name,
            scenario: self.scenario,
            ok: self.ok,
            failed: self.failed,
            timed_out: self.timed_out,
            response_time: WrittenTimes::open(self.response_time)?,
            service_time: WrittenTimes::open(self.service_time)?,
            start_lag: WrittenTimes::open(self.start_lag)?,
            first_byte_time: WrittenTimes::open(self.first_byte_time)?,
            failed_response_time: WrittenTimes::open(self.failed_response_time)?,
            response_in_stall: WrittenTimes::open(self.response_in_stall)?,
            service_in_stall: WrittenTimes::open(self.service_in_stall)?,
            statuses: self.statuses,
            errors: errors_of_names(&self.errors)?,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            censored_response: WrittenCensored::open(self.censored_response),
            censored_service: WrittenCensored::open(self.censored_service),
            // They are in the result.
            error_examples: BTreeMap::new(),
        })
    }
}

impl WrittenTally {
    fn new(tally: &Tally) -> Self {
        Self {
            started: tally.started,
            ok: tally.ok,
            failed: tally.failed,
            timed_out: tally.timed_out,
            completed: tally.completed,
            statuses: tally.statuses,
            errors: errors_to_names(&tally.errors),
            bytes_sent: tally.bytes_sent,
            bytes_received: tally.bytes_received,
            response_time: hdr::plain(tally.response_time.values()),
            service_time: hdr::plain(tally.service_time.values()),
            response_time_sum: tally.response_time_sum,
            service_time_sum: tally.service_time_sum,
            censored: WrittenCensored::new(tally.censored),
            limits: tally.limits,
        }
    }

    fn open(self) -> Result<Tally, String> {
        possible([self.started, self.ok, self.failed, self.timed_out, self.completed])?;
        possible([self.bytes_sent, self.bytes_received].into_iter().chain(self.statuses))?;
        possible(self.errors.values().copied().chain(self.censored.map(|censored| censored.count)))?;
        if self.response_time_sum.max(self.service_time_sum) > u128::from(MOST_OF_A_COUNT) << 64 {
            return Err("a sum of times is none that a run can have".to_owned());
        }
        let delta = |text: &str| {
            Delta::restore(hdr::values(text)?)
                .ok_or_else(|| "the values of a time are out of order".to_owned())
        };
        Ok(Tally {
            started: self.started,
            ok: self.ok,
            failed: self.failed,
            timed_out: self.timed_out,
            completed: self.completed,
            statuses: self.statuses,
            errors: errors_of_names(&self.errors)?,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            response_time: delta(&self.response_time)?,
            service_time: delta(&self.service_time)?,
            response_time_sum: self.response_time_sum,
            service_time_sum: self.service_time_sum,
            censored: WrittenCensored::open(self.censored),
            limits: self.limits,
        })
    }
}

impl WrittenPhase {
    fn new(phase: &PhaseRecord) -> Self {
        Self {
            name: phase.name.clone(),
            at_ns: phase.at.0,
            length_ns: phase.length.0,
            measured: phase.measured,
            target_per_second: phase.target_per_second,
            completed: phase.completed,
            iterations: phase.iterations,
            tally: WrittenTally::new(&phase.tally),
        }
    }

    fn open(self) -> Result<PhaseRecord, String> {
        possible([self.completed, self.iterations])?;
        Ok(PhaseRecord {
            name: self.name,
            at: Nanos(self.at_ns),
            length: Nanos(self.length_ns),
            measured: self.measured,
            target_per_second: self.target_per_second,
            completed: self.completed,
            iterations: self.iterations,
            tally: self.tally.open()?,
        })
    }
}

impl WrittenSlice {
    fn new(slice: &SavedSlice) -> Self {
        let SavedSlice { at, length, warmup, drain, tally } = slice;
        let tally = WrittenTally::new(tally);
        Self { at_ns: at.0, length_ns: length.0, warmup: *warmup, drain: *drain, tally }
    }

    fn open(self) -> Result<SavedSlice, String> {
        let Self { at_ns, length_ns, warmup, drain, tally } = self;
        let (at, length) = (Nanos(at_ns), Nanos(length_ns));
        Ok(SavedSlice { at, length, warmup, drain, tally: tally.open()? })
    }
}
