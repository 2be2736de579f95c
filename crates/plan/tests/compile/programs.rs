//! Instructions that scenarios are compiled to.

use plimsoll_core::Nanos;
use plimsoll_scenario::{Op, Pause};

use crate::compile::plans::{messages, plan, steps};

/// The instructions of the only scenario of a plan, in short.
fn ops(text: &str) -> Vec<String> {
    let plan = plan(text);
    plan.scenarios[0].program.ops().iter().map(short).collect()
}

fn short(op: &Op) -> String {
    match op {
        Op::Send(step) => format!("send {step}"),
        Op::Fork(steps) => format!("fork {}..{}", steps.start, steps.end),
        Op::Pause(Pause::Fixed(time)) => format!("pause {}", time.0),
        Op::Pause(Pause::Uniform(low, high)) => format!("pause {}..{}", low.0, high.0),
        Op::Pause(Pause::Exponential(mean)) => format!("pause ~{}", mean.0),
        Op::Pace(time) => format!("pace {}", time.0),
        Op::ScriptPause(script) => format!("script pause {script}"),
        Op::Set { variable, .. } => format!("set {variable}"),
        Op::Draw(feed) => format!("draw {feed}"),
        Op::Record(recording) => format!("record {}", recording.metric),
        Op::Keep(pool) => format!("keep {pool}"),
        Op::Pick { pool, leaves: false } => format!("pick {pool}"),
        Op::Pick { pool, leaves: true } => format!("take {pool}"),
        Op::ClearCookies => "clear".to_owned(),
        Op::Jump(to) => format!("jump {to}"),
        Op::Unless(_, to) => format!("unless {to}"),
        Op::Repeat { counter, .. } => format!("repeat {counter}"),
        Op::CountDown { counter, end } => format!("count {counter} {end}"),
    }
}

#[test]
fn steps_one_after_the_other() {
    let text = steps(
        "- {get: /a, think: 5ns}
         - {get: /b, clear_cookies: true}
         - think: {uniform: [1ns, 3ns]}
         - think: {exponential: 2ns}
         - think: {pace: 9ns}
         - set: {x: '1'}",
    );
    let expected = ["send 0", "pause 5", "clear", "send 1", "pause 1..3", "pause ~2", "pace 9", "set 0"];
    assert_eq!(ops(&text), expected);
}

#[test]
fn conditions_lead_around_what_does_not_hold() {
    let text = steps(
        "- set: {x: '1'}
         - {if: '${x} == 1', then: [{get: /a}]}
         - {if: '${x} == 1', then: [{get: /b}], else: [{get: /c}]}
         - get: /d",
    );
    let expected = ["set 0", "unless 3", "send 0", "unless 6", "send 1", "jump 7", "send 2", "send 3"];
    assert_eq!(ops(&text), expected);
}

#[test]
fn what_is_kept_is_for_all_scenarios() {
    let text = "targets: {t: http://h}
scenarios:
  - steps: [{take: carts}, {if: exists id, then: [{delete: '/${id}'}], else: [{get: /}]}]
  - steps:
      - {post: /, extract: {id: {json: /id}, at: {json: /at}}}
      - keep: {carts: [id, at], names: at}
      - pick: names
      - {if: exists at, then: [{get: '/${at}'}]}
";
    let plan = plan(text);
    let all: Vec<Vec<String>> =
        plan.scenarios.iter().map(|scenario| scenario.program.ops().iter().map(short).collect()).collect();
    assert_eq!(all[0], ["take 0", "unless 4", "send 0", "jump 5", "send 1"]);
    assert_eq!(all[1], ["send 2", "keep 0", "keep 1", "pick 1", "unless 6", "send 3"]);
    let pools: Vec<_> = plan.pools.iter().map(|pool| (pool.name.as_str(), pool.columns.len())).collect();
    assert_eq!(pools, [("carts", 2), ("names", 1)]);
    assert_eq!(plan.pools[0].columns[1], plan.pools[1].columns[0]);
}

#[test]
fn rows_are_collected_into_the_pools_that_others_keep() {
    let text = "targets: {t: http://h}
scenarios:
  - steps:
      - {post: /many, collect: {carts: {each: /data, at: /at, id: /id}, names: {name: ''}}}
  - steps:
      - {post: /, extract: {id: {json: /id}, at: {json: /at}}}
      - keep: {carts: [id, at]}
      - take: carts
      - pick: names
      - {if: exists name, then: [{get: '/${name}'}]}
";
    let plan = plan(text);
    let pools: Vec<_> = plan.pools.iter().map(|pool| (pool.name.as_str(), pool.columns.len())).collect();
    assert_eq!(pools, [("carts", 2), ("names", 1)]);
    assert!(plan.steps[0].needs.body, "what is collected is read");
    assert_eq!(plan.scenarios[0].program.ops().len(), 1);
}

#[test]
fn what_is_wrong_with_what_is_collected() {
    for (text, message) in [
        ("- {post: /, collect: {carts: {each: /data}}}\n- take: carts", "no variable is kept in `carts`"),
        ("- {post: /, collect: {carts: {id: id}}}\n- take: carts", "`id` is not a JSON Pointer"),
        (
            "- {post: /, collect: {carts: {each: data, id: /id}}}\n- take: carts",
            "`data` is not a JSON Pointer",
        ),
        ("- {post: /, collect: {carts: {id: /id}}}", "the rows kept in `carts` are never used"),
        ("- {post: /, collect: {carts: {id: /id}}}\n- take: carts\n- get: '/${id}'", "may not be set"),
        ("- {collect: {carts: {id: /id}}, set: {id: x}}\n- take: carts", "`set`"),
        (
            "- {post: /, collect: {carts: {id: /id}}}\n- {post: /, collect: {carts: {at: /at}}}\n- take: carts",
            "elsewhere, `carts` is kept with id",
        ),
    ] {
        let found = messages(&steps(text));
        assert!(found.iter().any(|found| found.contains(message)), "{text}: {found:?}");
    }
}

#[test]
fn what_is_wrong_with_what_is_kept() {
    let make = "- {post: /, extract: {id: {json: /id}}}\n";
    for (text, message) in [
        ("- take: cart\n- get: /", "no step keeps rows in a pool `cart`"),
        ("- keep: {carts: id}\n- take: cart\n- get: /", "no step keeps rows in a pool `cart`"),
        ("- keep: {carts: id}", "the rows kept in `carts` are never used"),
        ("- keep: {carts: [id, id]}\n- take: carts", "`id` is kept twice in `carts`"),
        (
            "- keep: {carts: id}\n- keep: {carts: [id, id2]}\n- take: carts",
            "elsewhere, `carts` is kept with id",
        ),
        ("- keep: {carts: idd}\n- take: carts", "`idd` is never set"),
        ("- keep: {carts: id}\n- take: carts\n- get: '/${id}'", "`id` may not be set here"),
        ("- {keep: {carts: id}, get: /}\n- take: carts", "`keep` and `get` exclude each other"),
        ("- parallel: [{get: /a}, {keep: {carts: id}}]\n- take: carts", "cannot be a part of `parallel`"),
    ] {
        let found = messages(&steps(&format!("{make}{text}")));
        assert!(found.iter().any(|found| found.contains(message)), "{text}: {found:?}");
    }
    let early =
        messages(&steps("- keep: {carts: id}\n- {post: /, extract: {id: {json: /id}}}\n- take: carts"));
    assert!(early.iter().any(|found| found.contains("`id` may not be set here")), "{early:?}");
    let first = "targets: {t: http://h}\nvariables: {id: x}\n\
                 scenarios: [{steps: [{keep: {carts: id}}, {take: carts}, {get: '/${id}'}]}]";
    let found = messages(first);
    assert!(found.iter().any(|found| found.contains("has a first value")), "{found:?}");
}

#[test]
fn loops_come_back() {
    let text = steps(
        "- set: {x: '1'}
         - {repeat: 3, steps: [{repeat: '${x}', steps: [{get: /a}]}]}
         - {while: '${x} == 2', steps: [{get: /b}]}
         - get: /c",
    );
    let expected = [
        "set 0",
        "repeat 0",
        "count 0 8",
        "repeat 1",
        "count 1 7",
        "send 0",
        "jump 4",
        "jump 2",
        "unless 11",
        "send 1",
        "jump 8",
        "send 2",
    ];
    assert_eq!(ops(&text), expected);
}

#[test]
fn requests_at_once() {
    let text = steps("- get: /\n- parallel: [{get: /a}, {get: /b}, {get: /c}]\n- get: /d");
    assert_eq!(ops(&text), ["send 0", "fork 1..4", "send 4"]);
}

#[test]
fn first_values_are_made_only_if_they_are_read() {
    let text = "
variables: {unused: '1', base: /x, path: '${base}/y', late: '2'}
data: {ids: {range: [1, 9]}, others: {list: [a]}}
targets: {a: http://a.test}
scenarios:
  - data: [ids, others]
    steps:
      - get: ${path}
      - set: {late: '3'}
      - get: /${late}/${ids}
";
    // The number of a variable is its place in the plan.
    assert_eq!(ops(text), ["draw 0", "draw 1", "set 1", "set 2", "send 0", "set 3", "send 1"]);
    // Jumps are counted from behind the first values.
    let text = format!("variables: {{x: '1'}}\n{}", steps("- {if: '${x} == 1', then: [{get: /}]}"));
    assert_eq!(ops(&text), ["set 0", "unless 3", "send 0"]);
}

#[test]
fn several_scenarios_have_their_shares_and_times() {
    let plan = plan(
        "
targets: {a: http://a.test}
scenarios:
  - {name: x, weight: 3, steps: [{get: /1}, {get: /2}]}
  - {start_after: 2s, steps: [{get: /3}, {parallel: [{get: /4}, {get: /5}]}]}",
    );
    let [x, y] = plan.scenarios.as_slice() else { panic!("two scenarios") };
    assert_eq!((x.name.as_str(), x.weight, x.start_after, x.steps.clone()), ("x", 3, Nanos::ZERO, 0..2));
    assert_eq!((y.name.as_str(), y.weight, y.steps.clone()), ("scenario 2", 1, 2..5));
    assert_eq!(y.start_after, Nanos::from_secs(2));
    assert_eq!(y.program.ops().iter().map(short).collect::<Vec<_>>(), ["send 2", "fork 3..5"]);
}

#[test]
fn loops_have_to_take_time() {
    for (step, expected) in [
        ("- {while: '1 == 1', steps: [{set: {x: '1'}}]}\n- get: /", "a loop without a request"),
        ("- {repeat: 0, steps: [{get: /}]}", "the loop never runs"),
        ("- {repeat: often, steps: [{get: /}]}", "`often` is not a number of turns"),
        ("- think: 1s", "the scenario `scenario` has no request"),
        ("- {get: /, think: {uniform: [3s, 1s]}}", "the shortest think time is longer than the longest"),
    ] {
        assert_eq!(messages(&steps(step)), [expected], "{step}");
    }
    assert!(messages(&steps("- {while: '1 == 1', steps: [{think: 1s}]}\n- get: /")).is_empty());
}
