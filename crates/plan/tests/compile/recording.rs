//! Metrics of the plan's own, and the steps that record values of them.

use plimsoll_metrics::SeriesKind;
use plimsoll_scenario::Op;

use crate::compile::plans::{messages, plan, resolve, steps};

fn ops(text: &str) -> Vec<String> {
    let of = |op: &Op| match op {
        Op::Send(step) => format!("send {step}"),
        Op::Pause(_) => "pause".to_owned(),
        Op::Record(recording) => {
            let tags: Vec<&str> = recording.tags.iter().map(|(name, _)| name.as_str()).collect();
            format!("record {} {}", recording.metric, tags.join(","))
        }
        other => format!("{other:?}"),
    };
    plan(text).scenarios[0].program.ops().iter().map(of).collect()
}

#[test]
fn values_are_recorded_behind_the_answer_and_before_the_pause() {
    let text = steps(
        "- {get: /a, extract: {x: {json: /x}}, record: {total: '${x}', logins: 1}, think: 5ns}
         - record: {total: {value: 2, tags: {shop: north, age: '${x}'}}}
         - {record: {found: 'true'}, think: 1ns}",
    );
    let text = format!("metrics: {{logins: counter, found: {{kind: rate, unit: '%'}}}}\n{text}");
    let expected = ["send 0", "record 2 ", "record 0 ", "pause", "record 2 age,shop", "record 1 ", "pause"];
    assert_eq!(ops(&text), expected);
    let metrics = plan(&text).metrics;
    let of: Vec<_> = metrics.iter().map(|one| (one.name.as_str(), one.kind, one.unit.as_str())).collect();
    let [counter, rate, trend] = [SeriesKind::Counter, SeriesKind::Rate, SeriesKind::Trend];
    // One that is not declared is a trend.
    assert_eq!(of, [("logins", counter, ""), ("found", rate, "%"), ("total", trend, "")]);
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let in_steps = |metrics: &str, text: &str| messages(&format!("{metrics}{}", steps(text)));
    for (metrics, text, message) in [
        (
            "metrics: {total: histogram}\n",
            "- {get: /, record: {total: 1}}",
            "`histogram` is not a kind of metric",
        ),
        ("metrics: {total: trnd}\n", "- {get: /, record: {total: 1}}", "`trnd` is not a kind of metric"),
        (
            "metrics: {login: counter}\n",
            "- {get: /, record: {logins: 1}}",
            "no step records the metric `login`",
        ),
        ("metrics: {'a b': counter}\n", "- get: /", "`a b` cannot be the name of a metric"),
        ("", "- {get: /, record: {'a{': 1}}", "`a{` cannot be the name of a metric"),
        ("", "- {get: /, record: {a: {value: 1, tags: {'b:': 1}}}}", "`b:` cannot be the name of a tag"),
        ("", "- {get: /, record: {a: {tags: {b: 1}}}}", "the value to record is missing"),
        ("", "- {get: /, record: {a: '${x}'}}", "unknown template slot `${x}`"),
        (
            "",
            "- {get: /, on_failure: continue, record: {a: 1}}",
            "`record` and `on_failure: continue` exclude each other",
        ),
        (
            "",
            "- {parallel: [{get: /, record: {a: 1}}, {get: /}]}",
            "`record` cannot be combined with a request within `parallel`",
        ),
        ("", "- {set: {x: '1'}, record: {a: 1}}\n- get: /", "`record` cannot be combined with `set`"),
        ("", "- {record: {a: 1}, timeout: 5s}\n- get: /", "`timeout` cannot be combined with `record`"),
        (
            "metrics: {a: {kind: gauge, unit: a unit of many characters}}\n",
            "- {get: /, record: {a: 1}}",
            "a unit has at most 20 characters",
        ),
        (
            "setup: [{get: /, record: {a: 1}}]\n",
            "- get: /",
            "`record` has no effect here: metrics are those of the load",
        ),
        (
            "thresholds: ['metric(totl).p95<1']\n",
            "- {get: /, record: {total: 1}}",
            "thresholds: there is no metric `totl`",
        ),
        (
            "thresholds: ['metric(total).sum<1']\n",
            "- {get: /, record: {total: 1}}",
            "thresholds: `total` is a trend, which has no sum",
        ),
        ("", "- {record: {a: 1}}", "the scenario `scenario` has no request"),
    ] {
        let found = in_steps(metrics, text);
        assert!(found.iter().any(|found| found == message), "{metrics}{text}: {message}: {found:?}");
    }
    // A secret would be shown.
    let secret = steps("- {get: /, record: {a: {value: 1, tags: {b: '${secret(TOKEN)}'}}}}");
    let problems = resolve(&secret, &[], &[("TOKEN", "topsecret")]).expect_err("it is refused");
    assert_eq!(problems[0].message, "a secret is not allowed in a tag: it would be shown");
    let many: Vec<String> = (0..=200).map(|number| format!("m{number}: 1")).collect();
    let all = in_steps("", &format!("- {{get: /, record: {{{}}}}}", many.join(", ")));
    assert_eq!(all, ["there are more than 200 metrics"]);
}

#[test]
fn metrics_of_two_plans_in_turn_are_told_apart() {
    let of = |metric: &str| {
        let begin = "run: {rate: 10, duration: 2s, seed: 1}\n";
        plan(&format!("{begin}{}", steps(&format!("- {{get: /, record: {{{metric}: 1}}}}"))))
    };
    let both = of("total").interleaved(of("total")).expect("they ask for the same load");
    let names: Vec<&str> = both.metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(names, ["A.total", "B.total"]);
    let metric = |scenario: usize| {
        let ops = both.scenarios[scenario].program.ops().iter();
        ops.filter_map(|op| if let Op::Record(recording) = op { Some(recording.metric) } else { None }).next()
    };
    assert_eq!([metric(0), metric(1)], [Some(0), Some(1)]);
}
