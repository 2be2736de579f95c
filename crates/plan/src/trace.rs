//! Traces: files that say when requests came.

use plimsoll_core::Nanos;
use plimsoll_schedule::{Stage, stages_at};
use serde_json::Value;

/// Longest time of a trace, in milliseconds: that of durations.
const LONGEST_MS: f64 = 1e12;

/// Reads the stages of a trace: lines of JSON with a `timestamp` in milliseconds, as Mooncake's have them.
///
/// # Errors
/// The reason why the content is not a trace.
pub(crate) fn stages(content: &[u8]) -> Result<Vec<Stage>, String> {
    let lines = content.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let mut before = 0.0;
    let instants = lines.map(|(number, line)| {
        let wrong = |what: &str| format!("line {} {what}", number + 1);
        let line: Value = serde_json::from_slice(line).map_err(|_| wrong("is not JSON"))?;
        let at = line.get("timestamp").and_then(Value::as_f64);
        let at = at.ok_or_else(|| wrong("has no `timestamp`, the milliseconds at which its request came"))?;
        if !(0.0..=LONGEST_MS).contains(&at) {
            return Err(wrong("has a `timestamp` that is not a time"));
        }
        if at < before {
            return Err(wrong("has an earlier `timestamp` than the line before: sort the file by it"));
        }
        before = at;
        // A float-to-integer `as` saturates.
        Ok(Nanos((at * 1e6) as u64))
    });
    let instants = instants.collect::<Result<Vec<Nanos>, String>>()?;
    stages_at(instants).ok_or_else(|| "it has no line".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_timestamps_in_their_order() {
        let trace =
            b"{\"timestamp\": 10, \"input_length\": 5}\n\n{\"timestamp\": 12.5}\n{\"timestamp\": 12.5}\n";
        let stages = stages(trace).unwrap();
        let lengths: Vec<u64> = stages.iter().map(|stage| stage.duration.0 / 1_000_000).collect();
        let counts: Vec<f64> = stages.iter().map(|stage| stage.from.per_second_f64() / 1e3).collect();
        assert_eq!((lengths, counts), (vec![1, 1, 1], vec![1.0, 0.0, 2.0]));
        for (bad, said) in [
            ("", "no line"),
            ("x", "line 1 is not JSON"),
            ("{\"timestamp\": 1}\n{}", "line 2 has no `timestamp`"),
            ("{\"timestamp\": -1}", "not a time"),
            ("{\"timestamp\": 2}\n{\"timestamp\": 1}", "line 2 has an earlier"),
        ] {
            let error = super::stages(bad.as_bytes()).unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }
}
