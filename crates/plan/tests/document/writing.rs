//! Plans written as YAML.

use plimsoll_document::{
    BranchStep, Document, ExpectSpec, Field, Keyed, MatchSpec, PauseSpec, RequestStep, Row, ScenarioSpec,
    StepKind, StepSpec, TargetSpec, Text, ThresholdSpec,
};
use proptest::prelude::*;

use crate::document::reading::good;

fn given(text: impl Into<String>) -> Field<Text> {
    Field::new(Text(text.into()))
}

/// Texts as they come in plans, and every other.
fn any_text() -> impl Strategy<Value = Text> {
    prop_oneof![
        "[ -~]{0,12}",
        "[a-z/:${}#' \"\\\\\n\t-]{0,20}",
        ".{0,8}",
        "(\n| |a|:|#|-){0,12}",
        prop::sample::select(vec![
            "007",
            "1.20",
            "5k/s",
            "true",
            "yes",
            "null",
            "~",
            "",
            "-",
            "---",
            "...",
            "1e3",
            "0x10",
            "a\nb\n",
            "a\n\nb",
            "a\nb\n\n",
            " a\nb",
            "\na",
            "a\n  b\n c\n",
            "a: b",
            "a #b",
            "-5",
            "1_000",
            "a\r\nb",
            "=",
            "<<",
            "\u{feff}a",
            "18446744073709551616",
            "1.0",
            "-0",
            "NaN",
            ".5",
            "*a",
            "&a",
            "!a",
            "@a",
            "`a",
            "%a",
            "|",
            ">"
        ])
        .prop_map(str::to_owned),
    ]
    .prop_map(Text)
}

fn field() -> impl Strategy<Value = Field<Text>> {
    any_text().prop_map(Field::new)
}

fn some() -> impl Strategy<Value = Field<Text>> {
    prop_oneof![Just(Field::Absent), field()]
}

fn several<T: std::fmt::Debug>(one: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<Field<T>>> {
    prop::collection::vec(one.prop_map(Field::new), 0..3)
}

fn keyed<T: std::fmt::Debug + Clone>(one: impl Strategy<Value = T>) -> impl Strategy<Value = Keyed<T>> {
    prop::collection::vec((any_text(), one), 0..3).prop_map(|entries| {
        let mut keyed = Keyed::default();
        for (name, value) in entries {
            // `<<` is a merge key.
            if name.as_str() != "<<" && !keyed.0.iter().any(|(known, ..)| *known == name) {
                keyed.push(name, value);
            }
        }
        keyed
    })
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        any_text().prop_map(|text| text.0.into()),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<u64>().prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
        (-1e9..1e9_f64).prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(serde_json::Value::from),
            prop::collection::vec((any_text(), inner), 0..3).prop_map(|entries| {
                let entries = entries.into_iter().filter(|(name, _)| name.as_str() != "<<");
                serde_json::Value::Object(entries.map(|(name, value)| (name.0, value)).collect())
            }),
        ]
    })
}

fn step() -> impl Strategy<Value = StepSpec> {
    let matching = (some(), some()).prop_filter_map("at least one", |(plain, regex)| {
        let mut spec = MatchSpec::default();
        spec.regex = if plain.is_absent() { regex } else { Field::Absent };
        spec.plain = plain;
        (spec != MatchSpec::default()).then_some(spec)
    });
    (some(), field(), some(), keyed(field()), several(matching), json(), some(), several(any_text()))
        .prop_map(|(name, get, body, headers, bodies, json, fixed, uniform)| {
            let mut request = RequestStep::new("GET", get);
            (request.headers, request.body.body) = (headers, body);
            request.body.json = Field::new(json);
            let mut step = StepSpec::from(request);
            step.name = name;
            let mut expect = ExpectSpec::default();
            expect.body = bodies;
            step.expect = Field::new(expect);
            let mut pause = PauseSpec::default();
            (pause.fixed, pause.uniform) = (fixed, uniform);
            step.think = Field::new(pause);
            step
        })
}

/// A step, or several of them behind a condition.
fn block() -> impl Strategy<Value = StepSpec> {
    (any::<bool>(), several(step()), step()).prop_map(|(is_branch, then, step)| {
        let mut branch = BranchStep::default();
        (branch.condition, branch.then) = (given("${a} == \"b\""), then);
        if is_branch { StepKind::Branch(Box::new(branch)).into() } else { step }
    })
}

fn document() -> impl Strategy<Value = Document> {
    let target = (some(), several(any_text())).prop_map(|(url, share)| {
        let mut target = TargetSpec::default();
        (target.url, target.share) = (url, share);
        target
    });
    let scenario = (some(), several(block())).prop_map(|(name, steps)| {
        let mut scenario = ScenarioSpec::default();
        (scenario.name, scenario.steps) = (name, steps);
        scenario
    });
    let threshold = (some(), some()).prop_map(|(that, window)| {
        let mut threshold = ThresholdSpec::default();
        (threshold.that, threshold.window) = (that, window);
        threshold
    });
    let rows = prop::collection::vec(prop::collection::vec(any_text(), 1..3).prop_map(Row), 1..3);
    (some(), keyed(target), keyed(field()), several(scenario), several(threshold), rows).prop_map(
        |(name, targets, variables, scenarios, thresholds, rows)| {
            let mut document = Document::default();
            (document.name, document.targets, document.variables) = (name, targets, variables);
            (document.scenarios, document.thresholds) = (scenarios, thresholds);
            let mut data = plimsoll_document::DataSpec::default();
            data.list = Field::new(rows.into_iter().map(Field::new).collect());
            document.data.push("d", data);
            document
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_written_reads_back_equal(document in document()) {
        let text = document.to_yaml();
        let (read, problems) = crate::document::reading::read(&text);
        // An empty mapping is a problem, and says nothing about writing.
        let read = read.unwrap_or_else(|| panic!("{problems:?} in:\n{text}"));
        prop_assert_eq!(
            serde_json::to_value(&read).unwrap(),
            serde_json::to_value(&document).unwrap(),
            "{}", text
        );
    }
}

#[test]
fn an_example() {
    let source = "\
name: shop
run:
  duration: 30s
  rate: 5k/s
  headers:
    - \"Accept: text/html\"
  tls: 1.2
targets:
  shop: http://127.0.0.1:8080/api
  pool:
    url: http://a/
    share:
      - b:81
      - c:82
variables:
  id: \"007\"
  pin: 7
scenarios:
  - name: buy
    weight: 2
    steps:
      - get: /items/${id}
        expect:
          status:
            - 200
          body:
            - ok
        extract:
          price:
            json: /price
        think: 100ms
      - post: /orders
        body: |
          {
            \"item\": \"${id}\"
          }
        think:
          uniform:
            - 1s
            - 3s
      - if: ${price} == 0
        then:
          - set:
              free: \"yes\"
thresholds:
  - p99<10ms
  - that: error_rate<0.1%
    abort_on_fail: true
";
    assert_eq!(good(source).to_yaml(), source);
    assert_eq!(Document::default().to_yaml(), "{}\n");
}

/// YAML has no longer keys in front of a colon than 1024 characters, and escapes make a text longer.
#[test]
fn a_long_name_in_json_reads_back_equal() {
    for name in ["a".repeat(1024), "\u{6}".repeat(300), "x y: #".repeat(400)] {
        let json = serde_json::json!({"first": 1, (name.clone()): {(name.clone()): [{(name): 2}]}});
        let mut request = RequestStep::new("POST", given("/"));
        request.body.json = Field::new(json.clone());
        let mut scenario = ScenarioSpec::default();
        scenario.steps.push(Field::new(request.into()));
        let mut document = Document::default();
        document.scenarios.push(Field::new(scenario));
        let again = good(&document.to_yaml());
        let scenario = again.scenarios[0].get().unwrap();
        assert_eq!(scenario.steps[0].get().unwrap().request().unwrap().body.json.get(), Some(&json));
    }
}
