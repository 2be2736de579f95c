//! Cost of a step of a scenario above a static request, in user time: three steps with two variables, one
//! extraction and one check, and the same with a script that does nothing.
//!
//! The variants take turns on one core, in an order that rotates, and the differences are taken within each
//! turn, as ratios are between tools.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::report::{Finding, Section, cell, invalid_runs, spread, verdict};
use crate::run::{Load, Run, run};
use crate::server::{Server, Serves};
use crate::session::Session;
use crate::statistic::Spread;

/// Length of the run of each variant before those that count, in seconds.
const WARM_UP_S: u32 = 1;

/// The sink's replies: a body of 64 bytes, whose content type is the one that `scenario.yaml` expects.
const REPLY: [&str; 2] = ["--body-size", "64"];

/// A plan, and the most that it may cost above the first one, in microseconds of user time per request.
#[derive(Clone, Copy, Debug)]
struct Variant {
    name: &'static str,
    file: &'static str,
    at_most_us: Option<f64>,
}

const VARIANTS: [Variant; 3] = [
    Variant { name: "static request", file: "static.yaml", at_most_us: None },
    Variant { name: "three steps", file: "scenario.yaml", at_most_us: Some(0.5) },
    Variant { name: "three steps, empty make_request", file: "make_request.yaml", at_most_us: Some(1.5) },
];

/// The protocols, and the flags that make them.
const PROTOCOLS: [(&str, &[&str]); 2] =
    [("HTTP/1.1", &["-c", "64"]), ("h2c", &["--http2", "-c", "8", "-m", "64"])];

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    if session.options.vs.is_some() {
        return Err(Failure::new("scenario compares Plimsoll with itself: leave out --vs"));
    }
    PROTOCOLS.iter().map(|(protocol, flags)| compare(session, protocol, flags)).collect()
}

fn compare(session: &Session, protocol: &str, flags: &[&str]) -> Result<Section> {
    let server = Server::start(session, &Serves::Sink(REPLY.map(str::to_owned).to_vec()))?;
    let seconds = session.options.seconds;
    let loads = VARIANTS.map(|variant| Load::plan(session, &path(variant.file), flags));
    for load in &loads {
        run(session, &server, load, WARM_UP_S, &[])?;
    }
    let mut runs: [Vec<Run>; VARIANTS.len()] = Default::default();
    for turn in 0..session.options.pairs as usize {
        for index in order(turn) {
            runs[index].push(run(session, &server, &loads[index], seconds, &[])?);
        }
    }
    let mut section =
        Section::titled(&format!("Steps of scenarios over {protocol}, closed, against the sink"));
    let mut lines = vec![server.line.clone()];
    for load in &loads {
        lines.push(load.pinned(session, &server, seconds)?.line(session.directory()));
    }
    section.commands(&lines);
    tabulate(protocol, &runs, &mut section);
    Ok(section)
}

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("plans").join(file)
}

/// The variants of a turn: each comes first, second and last in turn.
fn order(turn: usize) -> impl Iterator<Item = usize> {
    (0..VARIANTS.len()).map(move |place| (place + turn) % VARIANTS.len())
}

fn tabulate(protocol: &str, runs: &[Vec<Run>; VARIANTS.len()], section: &mut Section) {
    let mut rows = Vec::new();
    for (variant, of_variant) in VARIANTS.iter().zip(runs) {
        let above =
            Spread::of(of_variant.iter().zip(&runs[0]).map(|(run, base)| run.user_us() - base.user_us()));
        let finding = variant.at_most_us.zip(above).map(|(at_most, above)| Finding {
            case: format!("scenario, {protocol}, {}", variant.name),
            figure: "user µs per step above a static request".to_owned(),
            measured: format!("{above:.2}"),
            limit: format!("≤ {at_most:.2}"),
            met: above.median <= at_most,
        });
        rows.push(vec![
            variant.name.to_owned(),
            cell(spread(of_variant, Run::user_us), 2),
            cell(above.filter(|_| finding.is_some()), 2),
            finding.as_ref().map(|finding| finding.limit.clone()).unwrap_or_default(),
            finding.as_ref().map(|finding| verdict(finding.met).to_owned()).unwrap_or_default(),
            cell(spread(of_variant, Run::total_us), 2),
            cell(spread(of_variant, |run| run.reading.per_s), 0),
            cell(spread(of_variant, Run::peak_mib), 1),
            cell(spread(of_variant, |run| run.foreign_share * 100.0), 0),
        ]);
        section.findings.extend(finding);
    }
    let head = [
        "",
        "user µs per request",
        "above a static request",
        "limit",
        "",
        "CPU µs per request",
        "requests/s",
        "peak RSS, MiB",
        "others on the tool's core, %",
    ];
    section.table(&head, &rows);
    let all: Vec<Run> = runs.iter().flatten().cloned().collect();
    if let Some(invalid) = invalid_runs(&all) {
        section.note(format!("Plimsoll's verdict on itself was `invalid` in {invalid}."));
    }
    if let Some(run) = all.first() {
        section.note(format!("Plimsoll's backend: {}.", run.reading.detail.backend));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Reading;

    fn measured(user_us: f64) -> Vec<Run> {
        let reading = Reading { completed: 1, per_s: 1.0, ..Reading::default() };
        vec![Run::undisturbed(user_us, 1.0, reading)]
    }

    #[test]
    fn steps_are_judged_by_their_difference() {
        let mut section = Section::default();
        tabulate("h2c", &[measured(1.0), measured(1.5), measured(2.75)], &mut section);
        assert_eq!(section.findings.iter().map(|finding| finding.met).collect::<Vec<_>>(), [true, false]);
        assert!(section.text.contains("| 1.75 (1.75..1.75) | ≤ 1.50 | **not met** |"), "{}", section.text);
    }

    #[test]
    fn every_variant_comes_first_once() {
        let firsts: Vec<_> = (0..3).map(|turn| order(turn).next()).collect();
        assert_eq!(firsts, [Some(0), Some(1), Some(2)]);
        assert_eq!(order(1).collect::<Vec<_>>(), [1, 2, 0]);
    }
}
