//! Setup and teardown: plans of their own, whose values the load gets.

use plimsoll_core::{Nanos, Random};
use plimsoll_document::{Problem, RawValue};
use plimsoll_plan::{GivenValue, Load, Plan, PlanPatch, SharedText};
use plimsoll_scenario::{Context, Op};

use crate::compile::plans::{resolve, resolve_with};

const PLAN: &str = "
targets: {auth: http://auth.test, api: http://api.test}
variables: {token: none, page: '1'}
setup:
  - post: /login
    target: auth
    extract: {token: {json: /token}}
  - if: ${token} == x
    then: [{set: {role: admin}}]
    else: [{set: {role: reader}}]
scenarios:
  - name: read
    target: api
    steps: [{get: '/${role}/${page}', headers: {authorization: 'Bearer ${token}'}}]
  - name: plain
    target: api
    steps: [{get: /}]
teardown:
  - delete: /session/${token}
    target: auth
";

fn good(text: &str) -> Plan {
    resolve(text, &[], &[]).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn problems(text: &str) -> Vec<String> {
    let problems: Vec<Problem> = resolve(text, &[], &[]).expect_err(text);
    problems.into_iter().map(|problem| problem.message).collect()
}

/// The values that the first instructions of a scenario set, by the names of their variables.
fn given(plan: &Plan, scenario: usize) -> Vec<(String, String)> {
    let scenario = &plan.scenarios[scenario];
    let set = |op: &Op| match op {
        Op::Set { variable, value } => (
            plan.variables[usize::from(*variable)].clone(),
            String::from_utf8_lossy(value.literals()).into_owned(),
        ),
        other => panic!("{other:?} sets nothing"),
    };
    scenario.program.ops()[..scenario.given].iter().map(set).collect()
}

#[test]
fn each_part_is_a_plan_with_the_servers_that_it_asks() {
    let plan = good(PLAN);
    let authorities =
        |plan: &Plan| -> Vec<String> { plan.targets.iter().map(|target| target.authority.clone()).collect() };
    let (setup, teardown) = (plan.setup.as_deref().unwrap(), plan.teardown.as_deref().unwrap());
    assert_eq!(authorities(&plan), ["api.test"], "the load opens no connection to the other one");
    assert_eq!(
        (authorities(setup), authorities(teardown)),
        (vec!["auth.test".into()], vec!["auth.test".into()])
    );
    assert!(plan.steps.iter().all(|step| step.target == 0) && setup.steps[0].target == 0);
    for once in [setup, teardown] {
        assert!(matches!(once.load, Load::Closed) && !once.preflight, "{once:?}");
        assert_eq!((once.end.iterations, once.end.duration, once.threads), (Some(1), None, 1));
        let ops = once.scenarios[0].program.ops();
        let pool = once.leaves.unwrap();
        assert!(matches!(ops.last(), Some(Op::Keep(last)) if *last == pool), "{ops:?}");
    }
    let left = &setup.pools[usize::from(setup.leaves.unwrap())];
    let names: Vec<&str> =
        left.columns.iter().map(|column| &*setup.variables[usize::from(*column)]).collect();
    assert_eq!(names, ["token", "role"]);
    assert_eq!(plan.leaves, None);
}

#[test]
fn values_are_given_where_they_are_read_and_change_no_hash() {
    let mut plan = good(PLAN);
    let before = plan.fingerprint();
    let value = |name: &str, value: &str| (name.to_owned(), GivenValue::Fixed(value.as_bytes().to_vec()));
    plan.give(&[value("token", "t ${x}"), value("role", "reader")]);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    // A value is no template, and the plan's first value of the token is not read any more.
    assert_eq!(given(&plan, 0), [pair("token", "t ${x}"), pair("role", "reader")]);
    assert_eq!(given(&plan, 1), [], "it reads none");
    assert_eq!(given(plan.teardown.as_deref().unwrap(), 0), [pair("token", "t ${x}")]);
    assert_eq!(plan.fingerprint(), before);
    let other = good(&PLAN.replace("/login", "/other"));
    assert_ne!(other.fingerprint(), before, "the steps are a part of the plan");
    let own = "    variables: {role: guest}\n    steps: [{get: '/${role}";
    let mut own = good(&PLAN.replace("    steps: [{get: '/${role}", own));
    own.give(&[value("role", "reader")]);
    assert_eq!(given(&own, 0).len(), 1, "the scenario's own first value is nearer");
}

#[test]
fn mistakes_are_told_once_and_in_words() {
    let scenarios = "targets: {a: http://a.test}\nscenarios: [{steps: [{get: '/${x}'}]}]\n";
    for (around, message) in [
        ("setup: [{get: /, target: b}]", "there is no target `b`"),
        ("teardown: [{get: '/${y}'}]", "unknown template slot `${y}`"),
        ("setup: [{set: {x: 1}}]", "the scenario `setup` has no request"),
        // It is not certain.
        (
            "setup: [{get: /, extract: {y: {status: true}}}, {if: '${y} == 1', then: [{set: {x: 1}}]}]",
            "`x` may not be set by the setup",
        ),
        (
            "setup: [{get: /, extract: {x: {status: true}}}]\nteardown: [{timeout: 1s}]",
            "the step does nothing",
        ),
        ("setup: [{name: a, get: /}, {name: a, get: /}]", "two steps are called `a`"),
        (
            "data: {x: {list: [1]}}\nsetup: [{get: /, extract: {x: {status: true}}}]",
            "`x` is set by the setup, and is a column of `x`, too",
        ),
    ] {
        let found = problems(&format!("{scenarios}{around}\n"));
        assert_eq!(found.iter().filter(|found| *found == message).count(), 1, "{around}: {found:?}");
    }
    let alone = problems("setup: [{get: http://a.test/}]\n");
    assert!(alone.contains(&"`setup` has no effect: the plan has no scenarios".to_owned()), "{alone:?}");
    // A row of the setup alone is a use of its source.
    let rows = "data: {user: {list: [anna]}}\nsetup: [{get: '/${user}', extract: {x: {status: true}}}]\n";
    let plan = good(&format!("{scenarios}{rows}"));
    assert_eq!(given(&plan, 0).len(), 1);
}

/// The plan with this refresh.
fn with_refresh(refresh: &str) -> String {
    PLAN.replace("scenarios:", &format!("refresh: {refresh}\nscenarios:"))
}

#[test]
fn a_refresh_is_the_setup_once_more_or_steps_of_its_own() {
    let plan = good(&with_refresh("{every: 4m}"));
    let refresh = plan.refresh.as_ref().expect("there is one");
    assert_eq!((refresh.every, refresh.steps.steps.len()), (Nanos::from_secs(240), 1));
    assert_eq!(
        refresh.steps.left().collect::<Vec<_>>(),
        plan.setup.as_ref().unwrap().left().collect::<Vec<_>>()
    );

    let own = "{every: 90s, steps: [{post: '/again/${token}', target: auth, extract: {token: {json: /t}}}]}";
    let mut plan = good(&with_refresh(own));
    let of_setup = plan.fingerprint();
    let refresh = plan.refresh.as_ref().expect("there is one");
    assert_eq!(refresh.steps.left().collect::<Vec<_>>(), ["token"]);
    assert_eq!(given(&refresh.steps, 0), [("token".to_owned(), String::new())]);
    assert_ne!(good(&with_refresh(&own.replace("90s", "91s"))).fingerprint(), of_setup);
    assert_ne!(good(PLAN).fingerprint(), of_setup);

    // The load, the refresh and the teardown have the same text, which can be replaced.
    let text = SharedText::new(b"t1");
    plan.give(&[("token".to_owned(), GivenValue::Refreshed(text.clone()))]);
    let rendered = |plan: &Plan| {
        let Op::Set { value, .. } = &plan.scenarios[0].program.ops()[0] else { panic!("it is given") };
        let mut out = Vec::new();
        value.render(&Context::default(), &mut Random::new(1, 1), &mut out);
        String::from_utf8(out).expect("it is text")
    };
    let all = |plan: &Plan| {
        let refresh = plan.refresh.as_ref().expect("there is one");
        [plan, &*refresh.steps, plan.teardown.as_deref().expect("there is one")].map(rendered)
    };
    assert_eq!(all(&plan), ["t1"; 3]);
    text.set(b"t2");
    assert_eq!(all(&plan), ["t2"; 3]);
}

#[test]
fn a_refresh_that_replaces_nothing_is_refused() {
    let refused = |refresh: &str| problems(&with_refresh(refresh));
    let never = "{steps: [{post: /login, target: auth, extract: {token: {json: /token}}}]}";
    assert_eq!(refused(never), ["`refresh` does not say how often"]);
    assert!(refused("{every: 10ms}")[0].contains("`10ms` is too short"));
    let other = "{every: 1m, steps: [{post: /x, target: auth, extract: {another: {json: /t}}}]}";
    assert_eq!(refused(other), ["the refresh replaces no value of the setup"]);
    let alone = "refresh: {every: 1m}\nscenarios: [{steps: [{get: http://a.test/}]}]";
    assert_eq!(problems(alone), ["`refresh` has no effect: the plan has no `setup`"]);
    let unknown = with_refresh("{every: 1m, often: 2}");
    assert!(problems(&unknown)[0].contains("often"), "{:?}", problems(&unknown));
}

/// The coordinator of a fleet has the secrets of its setup; its agents do not need them.
#[test]
fn what_only_a_setup_elsewhere_needs_may_be_missing_from_the_environment() {
    let text = "
targets: {api: http://api.test}
setup:
  - post: /login/${env(REALM)}
    headers: {authorization: 'Basic ${secret(PASSWORD)}'}
    extract: {token: {json: /token}}
refresh: {every: 5m}
scenarios: [{steps: [{get: /, headers: {authorization: 'Bearer ${token}'}}]}]
";
    let flags = |is_set_up_elsewhere| PlanPatch {
        is_set_up_elsewhere,
        seed: Some(RawValue::new("--seed", "1")),
        shard: Some(RawValue::new("--shard", "1/2")),
        ..PlanPatch::default()
    };
    let refused = resolve_with(flags(false), text, &[], &[]).expect_err("three things are wrong");
    let messages: Vec<&str> = refused.iter().map(|problem| &*problem.message).collect();
    for part in ["`REALM` is not set", "`PASSWORD` is not set", "each shard would carry out"] {
        assert!(messages.iter().any(|message| message.contains(part)), "{part}: {messages:?}");
    }
    let with = |environment: &[(&str, &str)], text: &str| {
        resolve_with(flags(true), text, &[], environment).unwrap_or_else(|problems| panic!("{problems:#?}"))
    };
    let plan = with(&[], text);
    assert_eq!(given(&plan, 0), [("token".to_owned(), String::new())]);
    assert!(plan.setup.is_none() && plan.refresh.is_none(), "they are the other process's");
    // Results of agents are merged by the hashes of their plans, whatever their environments have.
    assert_eq!(with(&[("REALM", "a"), ("PASSWORD", "b")], text).fingerprint(), plan.fingerprint());
    with(&[], &text.replace("post: /login/", "post: https://${env(AUTH_HOST)}/login/"));
    // The load itself needs all of its own.
    let load = text.replace("get: /,", "get: '/${env(PAGE)}',");
    let refused = resolve_with(flags(true), &load, &[], &[]).expect_err("it has no PAGE");
    assert!(refused.len() == 1 && refused[0].message.contains("`PAGE`"), "{refused:?}");
}
