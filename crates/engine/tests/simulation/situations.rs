//! Situations, and the sentence that an expert would write about each: by its cause, by the figures that
//! prove it, and without what was not tested.

mod pools;
mod queues;
mod silences;
mod slowing;
mod table;

use plimsoll_metrics::{
    Claim, Headline, Limitation, LimitedBy, Reason, ReasonCode, RunFacts, RunOutcome, Verdict, judge,
    judge_thresholds,
};

use self::queues::QUEUES;
use self::silences::SILENCES;
use self::slowing::SLOWING;
use self::table::SITUATIONS;
use super::*;

type Flags = &'static [(&'static str, &'static str)];

/// A situation and what is to be said of it.
struct Situation {
    name: &'static str,
    server: fn() -> Behaviour,
    flags: Flags,
    claim: Claim,
    /// Another claim that is right, too, where chance decides; the table says why.
    perhaps: Option<Claim>,
    /// Words of the evidence.
    words: &'static [&'static str],
    /// Words of the hint.
    hint: &'static str,
    outcome: RunOutcome,
    /// `false` where HTTP/2 makes another situation of it.
    on_http2: bool,
    /// A change to the record before it is judged: what a machine would show, of which there is none here.
    beside: Option<fn(&mut RunRecord)>,
}

/// The seeds of each situation. `PLIMSOLL_SITUATION_SEEDS` sets another number.
const SEEDS: u64 = 3;

fn seeds() -> u64 {
    std::env::var("PLIMSOLL_SITUATION_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

/// Carries out a situation with these flags and judges it.
fn judged(situation: &Situation, flags: &[(&'static str, &str)], seed: u64) -> RunRecord {
    let seed_text = seed.to_string();
    let flags = [flags, &[("--seed", seed_text.as_str())]].concat();
    let plan = plan(&flags);
    let options = SimOptions { seed, ..world((situation.server)()) };
    let (mut record, _) = carry_out(&plan, options);
    record.thresholds = judge_thresholds(&plan.thresholds, &plan.outline(), &record);
    if let Some(change) = situation.beside {
        change(&mut record);
        record.verdict = judge(&record);
    }
    record
}

/// Advice that contradicts a claim, wherever it stands in a verdict.
fn contradicts(claim: Claim) -> &'static [&'static str] {
    /// Advice for a generator that is late by itself.
    const BETTER_GENERATOR: [&str; 6] =
        ["idle machine", "more threads", "--precise", "keep other work", "stop ", "fewer streams"];
    /// Advice of [`BETTER_GENERATOR`], and advice for a load that is too large, too short or not settled.
    const OTHER_LOAD: [&str; 12] = [
        "idle machine",
        "more threads",
        "--precise",
        "keep other work",
        "stop ",
        "fewer streams",
        "lower rate",
        "run longer",
        "--warmup",
        "use -c",
        "leave -c out",
        "more connections",
    ];
    match claim {
        Claim::NoStreams
        | Claim::NoConnections
        | Claim::StoodStill
        | Claim::StoppedAnswering
        | Claim::NeverAnswered
        | Claim::AcceptQueue
        | Claim::Loss
        | Claim::PlanFails
        | Claim::NothingAnswered
        | Claim::NothingSucceeded
        | Claim::OneFreeze
        | Claim::OverloadForAWhile
        | Claim::SlowIntervals
        | Claim::BusyThread
        | Claim::BusyMachine
        | Claim::TargetThrottled
        | Claim::TargetStarved
        | Claim::HeldConnections
        | Claim::Refused
        | Claim::Transfer
        | Claim::SlowSending => &OTHER_LOAD,
        // More connections are advice where those that there are wait for a target that is slow to fail.
        Claim::NotServed | Claim::Queue | Claim::PerhapsQueue | Claim::Overload | Claim::Outgrown => {
            &BETTER_GENERATOR
        }
        Claim::FewConnections | Claim::FewStreams | Claim::FewUsers => &["idle machine", "--precise"],
        // Percentiles of few answers may depend on the length of a run whatever limits it.
        Claim::Delivered => &["lower rate", "idle machine", "more threads", "more connections", "look at"],
        Claim::GrowthUnknown => &["lower rate", "idle machine", "look at the target"],
        Claim::Generator | Claim::GeneratorThrottled => &["look at the target", "give it more"],
        // Any of the causes may be it.
        Claim::LessThanAsked | Claim::NotJudged => &[],
    }
}

/// Every situation.
fn all() -> impl Iterator<Item = &'static Situation> {
    SITUATIONS.iter().chain(QUEUES).chain(SILENCES).chain(SLOWING)
}

/// Returns what is wrong with what is said of a run of the situation.
fn misjudged(situation: &Situation, record: &RunRecord) -> Option<String> {
    let Verdict { reasons, warnings, limited_by, .. } = &record.verdict;
    let Limitation { claim, what, evidence, hint } = limited_by;
    let headline = Headline::of(&RunFacts::of(record));
    let mut wrong = Vec::new();
    if *claim != situation.claim && Some(*claim) != situation.perhaps {
        wrong.push("claim".to_owned());
    }
    if *what != claim.limited_by() {
        wrong.push("limit".to_owned());
    }
    let is_as_expected = *claim == situation.claim;
    if is_as_expected && !situation.words.iter().all(|words| evidence.contains(words)) {
        wrong.push("words".to_owned());
    }
    if (is_as_expected && !hint.contains(situation.hint)) || hint.is_empty() != (*what == LimitedBy::None) {
        wrong.push(format!("hint {hint:?}"));
    }
    if headline.outcome != situation.outcome {
        wrong.push("outcome".to_owned());
    }
    // That the machine is too busy for figures is another matter than what limited the load.
    let is_of_machine = |reason: &&Reason| reason.code == ReasonCode::CpuSaturation;
    let found = reasons.iter().filter(|reason| !is_of_machine(reason)).chain(warnings);
    for given in found.map(|Reason { hint, .. }| hint).chain([hint]) {
        if contradicts(*claim).iter().any(|words| given.contains(words)) {
            wrong.push(format!("advice {given:?}"));
        }
    }
    if wrong.is_empty() {
        return None;
    }
    let reasons: Vec<&str> = reasons.iter().map(|reason| reason.evidence.as_str()).collect();
    let in_flight: Vec<u64> = record.intervals.iter().map(|interval| interval.in_flight).collect();
    Some(format!(
        "{}: {claim:?} \"{evidence}\", {:?} {reasons:?}, in flight {in_flight:?}",
        wrong.join(", "),
        headline.outcome
    ))
}

/// Returns `true` if the sentence blames something, or acquits everything.
fn tells(claim: Claim) -> bool {
    claim.limited_by() != LimitedBy::Unknown
}

/// Of the seeds of a situation, at most this many percent may be called what they are not, and at most this
/// many otherwise than expected: none of [`SEEDS`].
const MOST_FALSE: u64 = 1;
const MOST_OTHERWISE: u64 = 10;

#[test]
fn each_situation_is_called_what_it_is() {
    let (seeds, mut wrong) = (seeds(), Vec::new());
    for situation in all() {
        let protocols: &[&[(&'static str, &str)]] =
            if situation.on_http2 { &[&[], &[("--http2", "")]] } else { &[&[]] };
        for more in protocols {
            let flags = [situation.flags, more].concat();
            let (mut false_claims, mut misjudgements) = (0, Vec::new());
            for seed in 1..=seeds {
                let record = judged(situation, &flags, seed);
                let Some(what) = misjudged(situation, &record) else { continue };
                let claim = record.verdict.limited_by.claim;
                let other = claim != situation.claim && Some(claim) != situation.perhaps;
                false_claims += u64::from(other && tells(claim));
                misjudgements.push(format!("seed {seed}: {what}"));
            }
            let is_wrong = false_claims > seeds * MOST_FALSE / 100
                || misjudgements.len() as u64 > seeds * MOST_OTHERWISE / 100;
            let http2 = if more.is_empty() { "" } else { ", HTTP/2" };
            let found = format!(
                "{}{http2}: {} of {seeds} seeds are misjudged, {false_claims} by a false claim",
                situation.name,
                misjudgements.len()
            );
            // Many seeds take an hour: what is known is told.
            if seeds > SEEDS {
                eprintln!("{found}{}", misjudgements.first().map_or(String::new(), |one| format!("; {one}")));
            }
            if is_wrong {
                wrong.push(format!("{found}:\n  {}", misjudgements.join("\n  ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A sentence without a situation is one that nobody has seen fail.
#[test]
fn each_claim_has_a_situation() {
    for claim in Claim::ALL {
        assert!(all().any(|situation| situation.claim == *claim), "{claim:?} has none");
    }
    let mut names: Vec<&str> = all().map(|situation| situation.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().count(), "a name stands twice");
    assert!(names.len() >= 60, "{}", names.len());
}
