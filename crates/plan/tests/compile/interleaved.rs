//! Two plans as one.

use plimsoll_core::Nanos;
use plimsoll_plan::{Dealing, Plan};
use plimsoll_scenario::Op;

use crate::compile::plans::resolve;

fn plan(text: &str) -> Plan {
    resolve(text, &[], &[]).unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

fn refusals(a: &str, b: &str) -> Vec<String> {
    let problems = plan(a).interleaved(plan(b)).err().unwrap_or_default();
    problems.iter().map(|problem| problem.message.clone()).collect()
}

const RUN: &str = "run: {rate: 10, duration: 2s, seed: 1}\n";

fn sends(plan: &Plan, scenario: usize) -> Vec<u32> {
    let ops = plan.scenarios[scenario].program.ops().iter();
    ops.filter_map(|op| if let Op::Send(step) = op { Some(*step) } else { None }).collect()
}

#[test]
fn scenarios_of_both_plans_have_half_of_the_load_each() {
    let a = plan(&format!(
        "{RUN}targets: {{one: http://one.test}}\nscenarios:\n\
         - {{name: a, weight: 3, steps: [{{get: /a}}, {{get: /b}}]}}\n\
         - {{name: b, weight: 1, steps: [{{get: /c}}]}}\nthresholds: ['p99<1s']"
    ));
    let b = plan(&format!(
        "{RUN}targets: {{two: http://two.test}}\nvariables: {{x: 1}}\n\
         data: {{numbers: {{range: [1, 9]}}}}\nscenarios:\n\
         - {{name: c, weight: 7, steps: [{{get: '/${{numbers}}'}}, \
         {{parallel: [{{get: /d}}, {{get: /e}}]}}]}}"
    ));
    let both = a.clone().interleaved(b.clone()).expect("they ask for the same load");
    let shape = |plan: &Plan| -> Vec<_> {
        plan.scenarios.iter().map(|one| (one.name.clone(), one.weight, one.steps.clone())).collect()
    };
    let named = |name: &str, weight, steps| (name.to_owned(), weight, steps);
    assert_eq!(shape(&both), [named("a", 21, 0..2), named("b", 7, 2..3), named("c", 28, 3..6)]);
    assert_eq!(both.steps.iter().map(|step| step.target).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1]);
    assert_eq!((sends(&both, 0), sends(&both, 2)), (vec![0, 1], vec![3]));
    let forks =
        both.scenarios[2].program.ops().iter().any(|op| matches!(op, Op::Fork(steps) if *steps == (4..6)));
    assert!(forks, "{:?}", both.scenarios[2].program);
    assert_eq!((both.variables.clone(), both.feeds.len()), (b.variables.clone(), 1));
    assert_eq!((both.dealing, both.thresholds.len()), (Dealing::Shuffled, 0));
    assert!(both.fingerprint() != a.fingerprint() && both.fingerprint() != b.fingerprint());
}

#[test]
fn data_of_both_is_shared_if_it_is_the_same() {
    let of = |host: &str, range: &str| {
        plan(&format!(
            "{RUN}targets: {{one: http://{host}}}\ndata: {{n: {{range: {range}}}}}\n\
             scenarios: [{{steps: [{{get: '/${{n}}'}}]}}]"
        ))
    };
    let draws = |plan: &Plan| -> Vec<u16> {
        let ops = plan.scenarios.iter().flat_map(|one| one.program.ops());
        ops.filter_map(|op| if let Op::Draw(feed) = op { Some(*feed) } else { None }).collect()
    };
    let same = of("one.test", "[1, 9]").interleaved(of("two.test", "[1, 9]")).expect("alike");
    assert_eq!((same.feeds.len(), draws(&same)), (1, vec![0, 0]));
    let other =
        of("one.test", "[1, 9]").interleaved(of("two.test", "[1, 5]")).expect("alike but for the data");
    assert_eq!((other.feeds.len(), draws(&other)), (2, vec![0, 1]));
}

#[test]
fn plans_that_cannot_be_one_are_refused_with_every_reason() {
    let of = |run: &str, rest: &str| {
        format!("run: {{{run}}}\ntargets: {{t: http://t.test}}\nscenarios: [{{{rest} steps: [{{get: /}}]}}]")
    };
    let (same, later) = (of("rate: 9, duration: 2s", ""), of("rate: 9, duration: 2s", "start_after: 1s,"));
    assert_eq!(refusals(&same, &same), [""; 0]);
    let found = refusals(&same, &of("rate: 8, duration: 2s", ""));
    assert!(
        found.len() == 1 && found[0].starts_with("the plans ask for different loads: `stage "),
        "{found:?}"
    );
    let found = refusals(&of("rate: 9, duration: 2s", ""), &of("duration: 2s", "start_after: 1s,"));
    assert!(found.len() == 2 && found[1].contains("start_after"), "{found:?}");
    assert_eq!(refusals(&same, &later).len(), 1);
    let token = |claims: &str| {
        format!("{same}\ntokens: {{me: {{key: 'env:K', claims: {{{claims}}}}}}}")
            .replace("get: /", "get: '/${token(me)}'")
    };
    let resolve = |text: &str| {
        let keyed = resolve(text, &[], &[("K", "secret")]);
        keyed.unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
    };
    let (x, y) = (resolve(&token("a: x")), resolve(&token("a: y")));
    assert_eq!(x.clone().interleaved(x.clone()).expect("the same tokens").tokens.len(), 1);
    let problems = x.interleaved(y).expect_err("other tokens");
    assert!(problems.iter().any(|problem| problem.message.contains("tokens of their own")), "{problems:?}");
    assert_eq!(plan(&same).warmup, Nanos::ZERO);
}

#[test]
fn iterations_are_dealt_evenly_or_shuffled() {
    let of = |deal: &str| {
        format!("run: {{rate: 9{deal}}}\ntargets: {{t: http://t.test}}\nscenarios: [{{steps: [{{get: /}}]}}]")
    };
    assert_eq!(plan(&of("")).dealing, Dealing::Even);
    assert_eq!(plan(&of(", deal: even")).fingerprint(), plan(&of("")).fingerprint());
    let shuffled = plan(&of(", deal: shuffled"));
    assert_eq!(shuffled.dealing, Dealing::Shuffled);
    assert_ne!(shuffled.fingerprint(), plan(&of("")).fingerprint());
    let problems = resolve(&of(", deal: anyhow"), &[], &[]).expect_err("no such order");
    let found =
        problems.iter().any(|problem| problem.message == "run.deal: `anyhow` is not one of even, shuffled");
    assert!(found, "{problems:?}");
}
