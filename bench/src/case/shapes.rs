//! Our own share in the times of every shape of connections: the open model beside the closed one with one
//! connection.
//!
//! The server takes the same time for each request, so that the medians of the two models differ by no more
//! than what the generator adds. A run that is invalid, because the machine disturbed it, is tried again, and
//! the row is not judged if it never is valid.

use serde_json::Value;

use crate::failure::Result;
use crate::report::{Finding, Section};
use crate::session::Session;
use crate::shape::{self, Kind, SHAPES, Shape, Stand};

/// A median of the open model is from that of the closed model at most this far, and [`SHARE`] of it.
const OURS_NS: f64 = 100_000.0;
const SHARE: f64 = 0.05;
/// Tries of a run that is invalid.
const TRIES: u32 = 3;
/// The times whose medians are compared.
const TIMES: [&str; 2] = ["response_time", "connect_time"];
/// The loads: the closed model, and the open ones that are held against it.
const LOADS: [(&str, &[&str]); 3] = [
    ("-c 1", &["-c", "1", "-n", "300", "--duration", "1s"]),
    ("--rate 20", &["--rate", "20", "--duration", "2s"]),
    ("--rate 200", &["--rate", "200", "--duration", "1s"]),
];

/// Flags of a server that takes the same time for every request.
fn constant(shape: &Shape) -> &'static [&'static str] {
    match shape.kind {
        Kind::Sink => &["--delay", "2ms"],
        Kind::Llm => &["--ttft", "constant:2ms", "--gap", "constant:1ms"],
        Kind::Cache => &[],
    }
}

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    let (mut rows, mut wrong, mut disturbed) = (Vec::new(), Vec::new(), Vec::new());
    for shape in &SHAPES {
        for backend in shape::backends(session) {
            let name = format!("{}, {backend}", shape.name);
            if !name.contains(&session.options.only) {
                continue;
            }
            match medians(session, shape, &backend) {
                Ok(Ok(medians)) => {
                    wrong.extend(judge(&medians).into_iter().map(|text| format!("{name}: {text}")));
                    rows.push(row(name, &medians));
                }
                Ok(Err(why)) => disturbed.push(format!("{name}: {why}")),
                // The other rows are still useful.
                Err(failure) => wrong.push(format!("{name}: {failure}")),
            }
        }
    }
    let mut section = Section::titled("Our own share in the times of each shape");
    section.text.push_str(&format!(
        "p50 in µs of the closed model with one connection, and of the open model, which is at most {} µs \
         + {} % away from it.\n",
        OURS_NS / 1e3,
        SHARE * 100.0,
    ));
    let head: Vec<String> = TIMES
        .iter()
        .flat_map(|time| LOADS.map(|(load, _)| format!("{}, {load}", time.replace('_', " "))))
        .collect();
    let head: Vec<&str> = std::iter::once("shape").chain(head.iter().map(String::as_str)).collect();
    section.table(&head, &rows);
    wrong.iter().for_each(|text| section.note(format!("wrong: {text}")));
    disturbed.iter().for_each(|text| section.note(format!("not judged: {text}")));
    section.findings.push(Finding {
        case: "shapes".to_owned(),
        figure: format!("medians away from the closed model's, of {} shapes", rows.len()),
        measured: wrong.len().to_string(),
        limit: "0".to_owned(),
        met: wrong.is_empty() && !rows.is_empty(),
    });
    Ok(vec![section])
}

/// The median of a time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Median {
    ns: f64,
    /// `true` if there is one value: the only connect of a run is the first of its process, whose code and
    /// tables are in no cache yet, and so takes longer than that of others.
    is_single: bool,
}

/// The medians of a shape, of each of [`TIMES`] under each of [`LOADS`].
type Medians = [[Option<Median>; LOADS.len()]; TIMES.len()];

/// Runs a shape under each load, or says why none of the runs of a load was valid.
fn medians(session: &Session, shape: &Shape, backend: &str) -> Result<std::result::Result<Medians, String>> {
    let stand = Stand::start(session, shape, constant(shape))?;
    let mut medians = Medians::default();
    for (column, (load, flags)) in LOADS.iter().enumerate() {
        let flags = [&["--backend", backend], *flags].concat();
        match shape::valid(TRIES, || Ok((stand.load(session, shape, &flags)?, ())))? {
            Ok((result, ())) => {
                for (row, time) in TIMES.iter().enumerate() {
                    medians[row][column] = median(&result[*time]);
                }
            }
            Err(why) => {
                stand.stop()?;
                return Ok(Err(format!("{load}: {why}")));
            }
        }
    }
    stand.stop()?;
    Ok(Ok(medians))
}

/// The median of a time. One value is its own.
fn median(time: &Value) -> Option<Median> {
    let is_single = time["count"] == 1;
    let figure = if is_single { &time["max"] } else { &time["p"]["50"] };
    figure.as_f64().map(|ns| Median { ns, is_single })
}

/// Returns `true` if the open model's median is as far from the closed model's as it may be.
fn is_near(open: Median, closed: Median) -> bool {
    let most = OURS_NS + SHARE * closed.ns;
    open.ns <= closed.ns + most && (closed.is_single || open.ns >= closed.ns - most)
}

/// Returns the medians that are too far from the closed model's, in words.
fn judge(medians: &Medians) -> Vec<String> {
    let mut wrong = Vec::new();
    for (time, row) in TIMES.iter().zip(medians) {
        let [closed, open @ ..] = row;
        for ((load, _), open) in LOADS[1..].iter().zip(open) {
            match (closed, open) {
                (Some(closed), Some(open)) if is_near(*open, *closed) => {}
                (Some(closed), Some(open)) => {
                    let [open, closed] = [open.ns, closed.ns];
                    wrong.push(format!("{time} p50 is {open} ns with {load}, and {closed} ns with -c 1"));
                }
                _ => wrong.push(format!("{time} has no p50 with {load} or with -c 1")),
            }
        }
    }
    wrong
}

fn row(name: String, medians: &Medians) -> Vec<String> {
    let cell = |median: &Option<Median>| {
        median.map_or_else(|| "–".to_owned(), |median| format!("{:.0}", median.ns / 1e3))
    };
    std::iter::once(name).chain(medians.iter().flatten().map(cell)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_median_is_of_several_values_or_the_only_one() {
        let of = |ns, is_single| Some(Median { ns, is_single });
        assert_eq!(median(&json!({"count": 20, "max": 9, "p": {"50": 5}})), of(5.0, false));
        assert_eq!(median(&json!({"count": 1, "max": 9, "p": {"50": null}})), of(9.0, true));
        assert_eq!(median(&json!({"count": 3, "max": 9, "p": {"50": null}})), None);
    }

    #[test]
    fn medians_too_far_from_those_of_the_closed_model_are_named() {
        let of = |ns| Some(Median { ns, is_single: false });
        let good = [of(2_000_000.0), of(2_200_000.0), of(1_800_000.0)];
        let connects = [Some(Median { ns: 300_000.0, is_single: true }), of(415_000.0), of(0.0)];
        assert_eq!(judge(&[good, connects]), Vec::<String>::new());
        let late = [of(2_000_000.0), of(2_200_001.0), None];
        let early = [of(2_000_000.0), of(1_799_999.0), of(2_000_000.0)];
        assert_eq!(judge(&[good, early]).len(), 1);
        assert_eq!(
            judge(&[late, connects]),
            [
                "response_time p50 is 2200001 ns with --rate 20, and 2000000 ns with -c 1",
                "response_time has no p50 with --rate 200 or with -c 1"
            ]
        );
        assert_eq!(row("a".to_owned(), &[late, connects]), ["a", "2000", "2200", "–", "300", "415", "0"]);
    }
}
