//! A run as lines of JSON: its intervals as they came, then the result.

use std::io;

use schemars::JsonSchema;
use serde::Serialize;

use crate::contract::result::{IntervalResult, RunResult};

/// One line of the lines of a run. All but the last are intervals.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    /// An interval, in the order of time.
    Interval(Box<IntervalLine>),
    /// The result, in the last line. Its intervals are empty: they are the lines before.
    Result(Box<RunResult>),
}

/// An interval, and the run that it belongs to.
#[derive(Serialize, JsonSchema)]
struct IntervalLine {
    /// Identity of the run.
    run_id: String,
    /// Figures of the interval.
    #[serde(flatten)]
    interval: IntervalResult,
}

/// Writes all lines of a run.
pub(crate) fn write(result: &RunResult, out: &mut dyn io::Write) -> io::Result<()> {
    for interval in &result.intervals {
        let interval = IntervalLine { run_id: result.run.id.clone(), interval: interval.clone() };
        write_line(&Line::Interval(Box::new(interval)), out)?;
    }
    let rest = RunResult { intervals: Vec::new(), ..result.clone() };
    write_line(&Line::Result(Box::new(rest)), out)
}

fn write_line(line: &Line, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// The JSON Schema of one line of [`Format::Ndjson`](crate::Format::Ndjson).
pub fn schema_ndjson() -> serde_json::Value {
    crate::contract::schema_of_written::<Line>()
}
