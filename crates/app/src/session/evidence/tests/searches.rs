//! Evidence of searches and sweeps: every forgery is found, and named.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_engine::{Backends, Control, Stop, TargetAddress, run};
use plimsoll_metrics::RunRecord;
use plimsoll_plan::Plan;
use plimsoll_report::capacity::SearchResult;
use plimsoll_report::capacity_search::CapacitySearch;
use plimsoll_report::context::Host;
use plimsoll_report::evidence::{Course, Evidence, SearchEvidence, TrialEvidence, Verification, Why};
use plimsoll_report::level_sweep::{LevelSweep, SweepSettings};
use plimsoll_report::trial_run::{TrialCounts, TrialRun};
use plimsoll_report::{RunResult, Searched};
use plimsoll_testkit::{Behaviour, Concurrency, Law, SimOpen, SimOptions};
use serde_json::{Value, json};

use super::forgery::{lines, walk_of};
use super::{Kept, Signed};
use crate::args::cli::Command;
use crate::args::find::FindArgs;
use crate::session::evidence::plan;
use crate::session::evidence::plan_again::{parsed, resolved};
use crate::session::{describe, run as session_run, search};

const PLAN: &str = "\
name: shop
run: {timeout: 400ms, no_preflight: true}
targets: {api: http://sim.test}
thresholds: [p90<20ms, error_rate<5%]
scenarios: [{name: buy, steps: [{get: /}]}]
";
const SEARCH: [&str; 9] =
    ["plimsoll", "find", "plan.yaml", "--from", "40", "--precision", "50%", "--max-time", "25s"];
const SWEEP: [&str; 7] = ["plimsoll", "find", "plan.yaml", "--sweep", "connections=1,2,3", "-d", "1s"];
/// When the search begins, on the clock of the machine.
const BEGUN: Nanos = Nanos::from_secs(500);
const PAUSE: Nanos = Nanos::from_millis(10);

fn args_of(words: &[&str]) -> (Vec<String>, FindArgs) {
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    words.extend(["--seed", "7"].map(str::to_owned));
    let Ok(Command::Find(args)) = parsed(&words) else { panic!("it is a search") };
    (words, *args)
}

fn plan_of(args: &FindArgs, level: Option<&str>) -> Plan {
    let of_flags = resolved(&args.plan, Some(PLAN), 7, |flags| {
        args.amend(flags)?;
        if let (Some(level), Some(Ok(sweep))) = (level, args.sweep()) {
            sweep.setting.set(level, flags);
        }
        Ok(())
    });
    of_flags.expect("it is a plan")
}

fn known(plan: &Plan, args: &[String]) -> SearchResult {
    SearchResult {
        id: "0123456789abcdef".to_owned(),
        name: Some("shop".to_owned()),
        targets: describe::targets(plan).into_iter().flat_map(|target| target.urls).collect(),
        seed: plan.seed,
        started_at_unix_ns: 1_772_366_400_000_000_000,
        args: args.to_vec(),
        plan_hash: plan.fingerprint().to_string(),
        host: Host { hostname: "a".to_owned(), cpu_model: "One CPU".to_owned(), cpus: 4, ..Host::default() },
        load: search::described(plan, &search::objectives(plan).unwrap_or_default()),
        ..SearchResult::default()
    }
}

/// Carries out a plan on a simulated server that answers one request after the other, each in 5 ms.
fn simulated(plan: &Plan, at: Nanos, look: &mut dyn FnMut(&plimsoll_metrics::Interval) -> bool) -> RunRecord {
    let server = Endpoint::Tcp(([127, 0, 0, 1], 80).into());
    let behaviour = Behaviour {
        service: Law::Constant(Nanos::from_millis(5)),
        concurrency: Concurrency::SingleQueue,
        ..Behaviour::default()
    };
    let options = SimOptions {
        latency: Nanos(1),
        servers: vec![(server.clone(), behaviour)],
        seed: 3,
        ..SimOptions::default()
    };
    let addresses: Vec<Arc<[TargetAddress]>> =
        plan.targets.iter().map(|_| vec![server.clone().into()].into()).collect();
    let control = Control::default();
    let mut record = run(plan, &Backends::of(SimOpen::new(options)), &addresses, &control, &mut |progress| {
        if !look(progress.interval) {
            control.stop(Stop::Drain);
        }
    })
    .expect("the run ends");
    record.started_monotonic = BEGUN + at;
    record.started_unix = Nanos::from_secs(1_772_366_400) + at;
    record
}

fn trial_of(
    (at, level): (Nanos, &str),
    (plan, known): (&Plan, &SearchResult),
    run: &TrialRun,
    counts: TrialCounts,
) -> TrialEvidence {
    let context = session_run::context_of(plan, known.args.clone(), known.host.clone());
    let result = RunResult::new(&run.record, context.clone());
    let evidence = Evidence::new(run.record.clone(), context, plan.outline(), None);
    let run = evidence.of_result(&result).expect("a result is JSON");
    TrialEvidence { at, level: level.to_owned(), counts, run }
}

fn whole(evidence: SearchEvidence, result: &Searched) -> SearchEvidence {
    let mut evidence = evidence.of_result(result).expect("a result is JSON");
    evidence.follows_from_plan = Some(plan::following_search(&evidence));
    evidence
}

/// The evidence of a search for the capacity of the server, 200/s.
fn sound() -> SearchEvidence {
    let (words, args) = args_of(&SEARCH);
    let plan = plan_of(&args, None);
    let (known, spec) = (known(&plan, &words), args.to_spec().expect("it is a search"));
    let objectives = search::objectives(&plan).expect("there are thresholds");
    let mut finder = CapacitySearch::new(search::settings(&plan, &spec), objectives);
    let (mut at, mut trials) = (Nanos::ZERO, Vec::new());
    while let Some(next) = finder.next(at) {
        let load = search::load(&next, finder.settings(), finder.objectives());
        let plan = search::trial_plan(&plan, &load, trials.len()).expect("the rate fits");
        let mut counts = TrialCounts::new(finder.objectives().len());
        let record = simulated(&plan, at, &mut |interval| {
            counts.note(interval, finder.objectives());
            !finder.is_clear(&next, &counts)
        });
        let length = record.warmup + record.duration + record.drain + PAUSE;
        let run = TrialRun::of_record(record);
        finder.note(&next, at, &run, &counts);
        trials.push(trial_of((at, ""), (&plan, &known), &run, counts));
        at += length;
    }
    let settings = finder.settings().clone();
    let course = Course::Search { settings, begun: BEGUN, asked: at, ended: at + PAUSE, stopped: false };
    let text = Some(PLAN.to_owned());
    let evidence = SearchEvidence::new(describe::tool(), finder.objectives(), course, trials, text);
    let result = finder.result(known, describe::tool(), at + PAUSE, false);
    whole(evidence, &Searched::Capacity(result))
}

/// The evidence of a sweep over connections.
fn swept() -> SearchEvidence {
    let (words, args) = args_of(&SWEEP);
    let first = plan_of(&args, Some("1"));
    let known = known(&first, &words);
    let objectives = search::objectives(&first).expect("there are thresholds");
    let settings =
        SweepSettings { setting: "connections".to_owned(), is_scaling: true, unit: Nanos::from_secs(1) };
    let mut sweep = LevelSweep::new(settings.clone(), objectives);
    let (mut at, mut trials) = (Nanos::ZERO, Vec::new());
    for level in ["1", "2", "3"] {
        let (plan, _) = search::level_plan(plan_of(&args, Some(level))).expect("it fits");
        let mut counts = TrialCounts::new(sweep.objectives().len());
        let record = simulated(&plan, at, &mut |interval| {
            counts.note(interval, sweep.objectives());
            true
        });
        let length = record.warmup + record.duration + record.drain + PAUSE;
        let run = TrialRun::of_record(record);
        sweep.note(level, &run, &counts, &plan.records());
        trials.push(trial_of((at, level), (&plan, &known), &run, counts));
        at += length;
    }
    let course = Course::Sweep { settings, begun: BEGUN, ended: at, stopped: false };
    let text = Some(PLAN.to_owned());
    let evidence = SearchEvidence::new(describe::tool(), sweep.objectives(), course, trials, text);
    whole(evidence, &Searched::Sweep(sweep.result(known, describe::tool(), at, false)))
}

/// Signs changed evidence anew, and verifies it; an error for evidence that cannot be read.
fn verified(changed: &Value) -> Result<Verification<()>, String> {
    let text = serde_json::to_vec(changed).expect("it is JSON");
    let evidence = SearchEvidence::from_text(&text).map_err(|error| error.to_string())?;
    let evidence = Kept::Search(Box::new(evidence.expect("it is of a search")));
    Ok(Signed { evidence, key: String::new() }.verify().map(|_| ()))
}

fn as_value(evidence: &SearchEvidence) -> Value {
    serde_json::to_value(evidence).expect("it is JSON")
}

#[test]
fn sound_evidence_is_verified_and_is_the_result() {
    for (evidence, trials) in [(sound(), 4..40), (swept(), 3..4)] {
        let bytes = evidence.to_bytes().expect("it is written");
        let read = SearchEvidence::from_bytes(&bytes).expect("it is read").expect("it is of a search");
        assert!(trials.contains(&read.trials.len()), "{}", read.trials.len());
        // A trial is some tens of kilobytes.
        assert!(bytes.len() < 60_000 * read.trials.len(), "{} bytes", bytes.len());
        assert_eq!(as_value(&read), as_value(&evidence));
        let verified = verified(&as_value(&read)).expect("it is read");
        assert_eq!(verified.contradictions, []);
        assert_eq!(verified.of_other_version(), 0);
        let open: Vec<Why> = verified.open.iter().map(|open| open.why).collect();
        assert_eq!(open, [Why::Unused]);
        let follows: BTreeSet<&str> = read.follows_from_plan.iter().flatten().map(String::as_str).collect();
        let last = format!("trials/{}", read.trials.len() - 1);
        for name in ["plan_hash", "seed", "targets", "load", "trials/0", &last] {
            assert!(follows.contains(name), "{name}: {follows:?}");
        }
        let again = read.to_searched().expect("it follows");
        assert_eq!(again.circumstances(), &evidence.circumstances);
    }
}

/// A forgery, and the place and some words of a contradiction that it has to make.
type Forgery = (&'static str, fn(&mut Value), &'static str, &'static str);

/// A rate of the document is another one, wherever it stands.
fn renamed(all: &mut Value, rate: f64) {
    all["result"]["trials"][1]["rate_per_s"] = json!(rate);
    let levels = all["result"]["levels"].as_array_mut().expect("a list");
    levels[0]["rate_per_s"] = json!(rate);
}

const OF_A_SEARCH: [Forgery; 20] = [
    (
        "the lower end",
        |all| all["result"]["capacity"]["low_per_s"] = json!(199.5),
        "/capacity/low_per_s",
        "199.5 is stated",
    ),
    (
        "the upper end",
        |all| all["result"]["capacity"]["high_per_s"] = json!(900),
        "/capacity/high_per_s",
        "900 is stated",
    ),
    (
        "both ends are open",
        |all| all["result"]["capacity"]["high_per_s"] = Value::Null,
        "/capacity/high_per_s",
        "nothing is stated",
    ),
    (
        "the rate after an overload",
        |all| all["result"]["capacity"]["after_overload_per_s"] = json!(190),
        "/capacity/after_overload_per_s",
        "190 is stated",
    ),
    (
        "the confirmation",
        |all| {
            let confirmed = all["result"]["capacity"]["confirmed"].as_bool().expect("it is one");
            all["result"]["capacity"]["confirmed"] = json!(!confirmed);
        },
        "/capacity/confirmed",
        "is stated",
    ),
    (
        "why it ended",
        |all| all["result"]["capacity"]["end"] = json!("generator"),
        "/capacity/end",
        "\"generator\" is stated",
    ),
    (
        "a trial's outcome",
        |all| all["result"]["trials"][0]["finding"] = json!("breaks"),
        "/trials/0/finding",
        "\"breaks\" is stated",
    ),
    (
        "a level's share",
        |all| all["result"]["levels"][0]["shares"][0]["share"] = json!(0.5),
        "/levels/0/shares/0/share",
        "0.5 is stated",
    ),
    (
        "a trial's percentile",
        |all| all["result"]["trials"][0]["p50"] = json!(1),
        "/trials/0/p50",
        "1 is stated",
    ),
    (
        "a trial's bad requests",
        |all| {
            all["trials"][0]["counts"]["portions"][0][3][1] = json!(2);
        },
        "trials/0/counts/portions/0",
        "2 bad of",
    ),
    (
        "bad requests of one interval in another",
        |all| {
            let portions = &mut all["trials"][1]["counts"]["portions"][0];
            let (one, other) = (portions[2].clone(), portions[9].clone());
            let count = |pair: &Value| pair[0].as_u64().expect("a count");
            portions[2][0] = json!(count(&one) + 1);
            portions[9][0] = json!(count(&other) - 1);
        },
        "trials/1/counts/portions/0",
        "requests are counted for p90<20ms until",
    ),
    (
        "a trial is removed from the document",
        |all| {
            all["result"]["trials"].as_array_mut().expect("a list").remove(1);
        },
        "/trials",
        "follows from the record",
    ),
    (
        "a trial is removed from everything",
        |all| {
            all["result"]["trials"].as_array_mut().expect("a list").remove(1);
            all["trials"].as_array_mut().expect("a list").remove(1);
        },
        "trials/1/run/record",
        "arrivals in",
    ),
    (
        "the last trial is removed from everything",
        |all| {
            all["result"]["trials"].as_array_mut().expect("a list").pop();
            let last = all["trials"].as_array_mut().expect("a list").pop().expect("there is one");
            all["course"]["search"]["asked"] = last["at"].clone();
        },
        "trials",
        "the search goes on after",
    ),
    (
        "a trial is made twice",
        |all| {
            let trials = all["trials"].as_array_mut().expect("a list");
            let last = trials[trials.len() - 1].clone();
            trials.push(last);
        },
        "trials/*/at",
        "ends after the next one was",
    ),
    (
        "two trials are swapped in the document",
        |all| {
            all["result"]["trials"].as_array_mut().expect("a list").swap(0, 1);
        },
        "/trials/0/rate_per_s",
        "is stated",
    ),
    (
        "two trials are swapped in everything",
        |all| {
            all["result"]["trials"].as_array_mut().expect("a list").swap(0, 1);
            all["trials"].as_array_mut().expect("a list").swap(0, 1);
            let at = |all: &Value, number: usize| all["trials"][number]["at"].clone();
            let (one, other) = (at(all, 0), at(all, 1));
            all["trials"][0]["at"] = other;
            all["trials"][1]["at"] = one;
        },
        "trials/0/run/record",
        "which the search asks for",
    ),
    ("a rate is renamed", |all| renamed(all, 170.0), "/trials/1/rate_per_s", "170.0 is stated"),
    (
        "it was to be ended",
        |all| all["course"]["search"]["settings"]["max_time"] = json!(9_000_000_000_u64),
        "course/search/settings",
        "follows from the plan and the flags",
    ),
    (
        "a trial ended before its outcome was clear",
        |all| {
            let duration = all["trials"][0]["run"]["record"]["duration"].as_u64().expect("a time");
            all["trials"][0]["run"]["record"]["duration"] = json!(duration / 2);
        },
        "/trials/0/measured_s",
        "is stated",
    ),
];

const OF_A_SWEEP: [Forgery; 6] = [
    (
        "throughput",
        |all| all["result"]["levels"][1]["achieved_per_s"] = json!(900),
        "/levels/1/achieved_per_s",
        "900 is stated",
    ),
    (
        "a level's value",
        |all| all["result"]["levels"][1]["value"] = json!(7),
        "/levels/1/value",
        "7 is stated",
    ),
    (
        "a level's outcome",
        |all| all["result"]["levels"][0]["finding"] = json!("breaks"),
        "/levels/0/finding",
        "\"breaks\" is stated",
    ),
    (
        "a level's setting in everything",
        |all| {
            all["result"]["levels"][1]["value"] = json!(7);
            all["trials"][1]["level"] = json!("7");
        },
        "trials/1",
        "follows from the plan and the flags",
    ),
    (
        "two levels are swapped",
        |all| {
            all["result"]["levels"].as_array_mut().expect("a list").swap(0, 1);
        },
        "/levels/0/value",
        "is stated",
    ),
    (
        "a level is removed",
        |all| {
            all["result"]["levels"].as_array_mut().expect("a list").remove(1);
        },
        "/levels",
        "follows from the record",
    ),
];

/// A place with a star for the number of its trial, if the expected one has a star.
fn starred(found: &str, expected: &str) -> String {
    let number = expected.split('/').position(|part| part == "*");
    let part = |(at, part)| if Some(at) == number { "*" } else { part };
    found.split('/').enumerate().map(part).collect::<Vec<_>>().join("/")
}

#[test]
fn every_forgery_of_a_search_is_named() {
    for (sound, forgeries) in [(sound(), &OF_A_SEARCH[..]), (swept(), &OF_A_SWEEP[..])] {
        let sound = as_value(&sound);
        for (name, forge, place, reason) in forgeries {
            let mut forged = sound.clone();
            forge(&mut forged);
            assert_ne!(forged, sound, "{name}");
            let found = verified(&forged).expect("it is read").contradictions;
            let is_named = |one: &plimsoll_report::evidence::Contradiction| {
                starred(&one.place, place) == *place && one.reason.contains(reason)
            };
            assert!(found.iter().any(is_named), "{name}: {found:#?}");
        }
    }
}

/// Changes every value that only searches have.
#[test]
fn a_forged_search_is_found() {
    let search = sound();
    let fields =
        ["/result", "/tool", "/circumstances", "/objectives", "/course", "/plan", "/follows_from_plan"];
    let fields = fields.into_iter().chain(["/trials/0/at", "/trials/0/level", "/trials/0/counts"]);
    let fields: Vec<&str> = fields.collect();
    let (missed, open) = walk_of(&as_value(&search), &fields, &|_, changed| verified(changed));
    assert_eq!(missed, BTreeSet::new());
    assert_eq!(
        lines(&open),
        ["course/search/asked Unused", "follows_from_plan Plan", "follows_from_plan/* Plan"]
    );
    let (missed, open) = walk_of(&as_value(&swept()), &fields, &|_, changed| verified(changed));
    assert_eq!(missed, BTreeSet::new());
    assert_eq!(lines(&open), ["follows_from_plan Plan", "follows_from_plan/* Plan"]);
}

/// Another version may say the same in other words; figures are compared all the same.
#[test]
fn words_of_another_version_are_left_open() {
    let mut other = as_value(&sound());
    for place in ["/tool/version", "/result/tool/version"] {
        *other.pointer_mut(place).expect("it is there") = json!("0.1.0");
    }
    for trial in other["trials"].as_array_mut().expect("a list") {
        for place in ["/run/context/tool_version", "/run/result/tool/version"] {
            *trial.pointer_mut(place).expect("it is there") = json!("0.1.0");
        }
    }
    other["result"]["capacity"]["statement"] = json!("all is well");
    other["result"]["capacity"]["notes"] = json!(["as good as it gets"]);
    let found = verified(&other).expect("it is read");
    assert!(found.of_other_version() > 0);
    assert_eq!(found.contradictions, []);
    other["result"]["capacity"]["low_per_s"] = json!(1);
    let found = verified(&other).expect("it is read").contradictions;
    assert_eq!(found.iter().map(|one| one.place.as_str()).collect::<Vec<_>>(), ["/capacity/low_per_s"]);
}
