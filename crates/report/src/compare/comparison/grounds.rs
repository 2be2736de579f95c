//! Grounds of a comparison: reasons why two groups of runs cannot be compared, and differences between them
//! beside their figures.

use std::collections::BTreeSet;

use super::{Group, Note};
use crate::contract::result::{ModelKind, RunResult};

/// Rates that were asked for differ if they do by more than this share: the tolerance of the achieved rate.
const RATE_TOLERANCE: f64 = 0.01;

/// A circumstance of a run: its name and value.
type Facet = (&'static str, fn(&RunResult) -> String);

/// Runs that differ in one of these measure different things.
const DECISIVE: [Facet; 3] = [
    ("models", |result| {
        let kind = if result.model.kind == ModelKind::Open { "open" } else { "closed" };
        kind.to_owned()
    }),
    ("arrivals", |result| result.model.arrivals.clone().unwrap_or_default()),
    ("protocols", |result| {
        let spoken: Vec<&str> = result.protocols.keys().map(String::as_str).collect();
        if spoken.is_empty() { "none".to_owned() } else { spoken.join(" and ") }
    }),
];

/// Runs that differ in one of these may differ because of it.
const NOTEWORTHY: [Facet; 8] = [
    ("plans", |result| result.run.plan_hash.clone()),
    ("targets", |result| {
        let authorities: Vec<&str> = result.run.targets.iter().map(|t| t.authority.as_str()).collect();
        authorities.join(", ")
    }),
    ("hosts", |result| result.run.host.hostname.clone()),
    ("CPUs", |result| format!("{} × {}", result.run.host.cpus, result.run.host.cpu_model)),
    ("governors", |result| result.run.host.governor.clone().unwrap_or_else(|| "unknown".to_owned())),
    ("kernels", |result| result.run.host.kernel.clone()),
    ("backends", |result| result.generator.backend.clone()),
    ("versions", |result| format!("{} {}", result.tool.name, result.tool.version)),
];

/// Reason why these groups cannot be compared; empty if they can.
pub(super) fn refusals(a: &Group, b: &Group) -> Vec<String> {
    DECISIVE.iter().filter_map(|facet| difference(*facet, a, b)).collect()
}

/// Reason why nothing should be concluded: runs whose figures cannot be believed.
pub(super) fn doubt(a: &Group, b: &Group) -> Option<String> {
    let of = |name: &str, group: &Group| {
        let invalid: Vec<_> = group.members.iter().filter(|m| !m.result.verdict.valid).collect();
        let first = invalid.first()?;
        let reasons = first.result.verdict.invalid_reasons.join(", ");
        let (count, all) = (invalid.len(), group.members.len());
        Some(format!("{count} of {all} runs of {name} invalid ({}: {reasons})", first.file))
    };
    let found: Vec<String> = [of("A", a), of("B", b)].into_iter().flatten().collect();
    (!found.is_empty()).then(|| found.join("; "))
}

/// Runs of each side that have to be left where invalid ones are left out: two have a mean and a spread.
const FEWEST_VALID: usize = 2;
/// Reasons for which a run is invalid by the generator alone, whatever the target did. A run in which the
/// target is slow may lack connections or ports, and would be missed.
const OWN: [&str; 7] = [
    "bodies_late",
    "cpu_saturation",
    "send_time_uncertain",
    "signing_limited",
    "stall",
    "start_lag",
    "worker_missing",
];

/// The groups without runs that the generator spoiled, and a note on these; `None` if no run is invalid, or
/// too few would be left, or a run is invalid for another reason.
pub(super) fn without_spoiled(a: &Group, b: &Group) -> Option<([Group; 2], Note)> {
    let mut told = Vec::new();
    let mut of = |name: &str, group: &Group| {
        let (valid, spoiled): (Vec<_>, Vec<_>) =
            group.members.iter().partition(|member| member.result.verdict.valid);
        let reasons: BTreeSet<&str> =
            spoiled.iter().flat_map(|member| &member.result.verdict.invalid_reasons).map(|s| &**s).collect();
        let is_enough = valid.len() >= FEWEST_VALID && valid.len() > spoiled.len();
        // Of one without a reason nobody knows whose fault it is.
        let is_told = spoiled.iter().all(|member| !member.result.verdict.invalid_reasons.is_empty());
        if !is_enough || !is_told || !reasons.iter().all(|reason| OWN.contains(reason)) {
            return None;
        }
        if !spoiled.is_empty() {
            let files: Vec<&str> = spoiled.iter().map(|member| member.file.as_str()).collect();
            let reasons: Vec<&str> = reasons.into_iter().collect();
            told.push(format!(
                "{} of {} runs of {name} ({}: {})",
                spoiled.len(),
                group.members.len(),
                files.join(", "),
                reasons.join(", ")
            ));
        }
        Some(Group { name: group.name.clone(), members: valid.into_iter().cloned().collect() })
    };
    let left = [of("A", a)?, of("B", b)?];
    let text = format!("left out, as the generator spoiled them: {}", told.join("; "));
    (!told.is_empty()).then(|| (left, Note::new("left_out", text)))
}

/// Returns notes on circumstances, rates, early ends and lengths in which the runs differ.
pub(super) fn notes(a: &Group, b: &Group) -> Vec<Note> {
    let differences = NOTEWORTHY.iter().filter_map(|facet| difference(*facet, a, b));
    let mut notes: Vec<Note> = differences.map(|text| Note::new("circumstances", text)).collect();
    if !same_rate_asked(a, b) {
        notes.push(Note::new(
            "rates",
            "the rates asked for differ: times depend on them, and the achieved rate is not judged",
        ));
    }
    for (name, group) in [("A", a), ("B", b)] {
        let cut_short = group.members.iter().filter(|member| {
            let run = &member.result.run;
            run.interrupted_by_signal.is_some()
                || run.stopped_by.is_some()
                || run.ended_by_threshold.is_some()
        });
        let files: Vec<&str> = cut_short.map(|member| member.file.as_str()).collect();
        if !files.is_empty() {
            notes.push(Note::new(
                "ended_early",
                format!("ended before their time in {name}: {}", files.join(", ")),
            ));
        }
    }
    let lengths =
        |group: &Group| -> Vec<f64> { group.members.iter().map(|member| member.result.duration_s).collect() };
    let all = [lengths(a), lengths(b)].concat();
    let (shortest, longest) =
        all.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &length| (low.min(length), high.max(length)));
    if longest > 1.1 * shortest {
        notes.push(Note::new("lengths", format!("runs differ in length: {shortest:.1} to {longest:.1} s")));
    }
    notes
}

/// Returns `true` if all runs of the open model were asked for the same rate, and for runs of the closed
/// model.
pub(super) fn same_rate_asked(a: &Group, b: &Group) -> bool {
    let all = a.members.iter().chain(&b.members);
    let rates: Vec<f64> = all.filter_map(|member| member.result.rate.target_per_s).collect();
    let Some(first) = rates.first() else { return true };
    rates.iter().all(|rate| (rate - first).abs() <= RATE_TOLERANCE * first)
}

/// The difference between all runs of one group and those of the other.
fn difference((name, of): Facet, a: &Group, b: &Group) -> Option<String> {
    let values = |group: &Group| -> BTreeSet<String> {
        group.members.iter().map(|member| of(&member.result)).collect()
    };
    let (of_a, of_b) = (values(a), values(b));
    if of_a == of_b && of_a.len() == 1 {
        return None;
    }
    let list = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" | ");
    Some(format!("{name} differ: A {}, B {}", list(of_a), list(of_b)))
}
