//! Phases: one course of the load, with marks in it.

use plimsoll_core::{Nanos, Rate};
use plimsoll_plan::{Command, Load, Plan, PlanPatch, PlanSource};
use plimsoll_schedule::Stage;

use crate::document::layers::Memory;

fn plan(run: &str, phases: &str) -> Plan {
    let text = format!(
        "run: {run}\nphases: [{phases}]\n\
         targets: {{api: http://a.test}}\nscenarios: [{{steps: [{{get: /}}]}}]"
    );
    let files = Memory([("plan.yaml".to_owned(), text.into_bytes())].into());
    let command = Command {
        plan: Some(PlanSource::File("plan.yaml".to_owned())),
        flags: PlanPatch::default(),
        ..Command::default()
    };
    match command.resolve(&files) {
        Ok(resolved) => resolved.plan,
        Err(refused) => panic!("{:?}", refused.problems),
    }
}

fn seconds(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

fn marks(plan: &Plan) -> Vec<(&str, Nanos, Nanos, bool)> {
    plan.phases.iter().map(|phase| (phase.name.as_str(), phase.at, phase.end(), phase.measured)).collect()
}

#[test]
fn phases_of_rates_are_one_profile() {
    let plan = plan(
        "{arrival: poisson}",
        "{name: a, rate: 10, duration: 2s, measured: false},
         {name: b, stages: '1s@10,3s@=20', measured: false},
         {name: c, stages: '4s@40,1s@=5'}, {name: d, rate: 7, duration: 1s}",
    );
    let Load::Open { profile, .. } = &plan.load else { panic!("closed") };
    let stage = |length, from, to| Stage {
        duration: seconds(length),
        from: Rate::per_second(from),
        to: Rate::per_second(to),
    };
    let stages = [stage(2, 10, 10), stage(1, 10, 10), stage(3, 20, 20), stage(4, 20, 40)];
    assert_eq!(profile.stages(), [&stages[..], &[stage(1, 5, 5), stage(1, 7, 7)]].concat());
    assert_eq!((plan.warmup, plan.end.duration, plan.end.iterations), (seconds(6), Some(seconds(6)), None));
    let expected = [("a", 0, 2, false), ("b", 2, 6, false), ("c", 6, 11, true), ("d", 11, 12, true)];
    assert_eq!(
        marks(&plan),
        expected.map(|(name, at, end, measured)| (name, seconds(at), seconds(end), measured))
    );
    assert_eq!(plan.cuts(), [2, 6, 11, 12].map(seconds));
}

#[test]
fn phases_of_users_are_one_population() {
    let plan = plan(
        "{threads: 1}",
        "{name: a, users: 3, duration: 2s, measured: false}, {name: b, user_stages: 2s@7},
         {name: c, users: 0, duration: 1s}",
    );
    assert!(matches!(plan.load, Load::Closed));
    let users = plan.users.as_ref().expect("a course");
    assert_eq!([0, 1, 2, 3, 4, 5].map(|at| users.at(seconds(at))), [3, 3, 3, 5, 0, 0]);
    assert_eq!((plan.warmup, plan.end.duration), (seconds(2), Some(seconds(3))));
    assert_eq!((plan.connections.initial, plan.connections.max), (3, 7));
    assert_eq!(marks(&plan)[1], ("b", seconds(2), seconds(4), true));
}
