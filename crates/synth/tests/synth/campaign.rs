//! The story of the campaign.

use std::collections::BTreeMap;

use plimsoll_synth::Kind;
use plimsoll_synth::campaign::story;

use crate::synth::{Record, decoders};

const BEGIN: u64 = 1_730_246_400_000;
const MINUTE: f64 = 60_000.0;

fn told(seed: u64) -> BTreeMap<&'static str, Vec<Record>> {
    let batches = story(BEGIN, seed).into_iter().map(|batch| {
        let (measurement, records) = decoders::columnar(&batch.body);
        assert_eq!(measurement, batch.kind.measurement());
        assert_eq!(records.len() as u64, batch.records);
        (batch.kind.name(), records)
    });
    batches.collect()
}

/// Minutes after the start of the campaign.
fn minute(record: &Record) -> f64 {
    (record["time"].number() - BEGIN as f64) / MINUTE
}

/// The records before, during and after the campaign.
fn parts(records: &[Record]) -> [Vec<&Record>; 3] {
    let from_to = [(-30.0, 0.0), (0.0, 30.0), (30.0, 60.0)];
    from_to.map(|(from, to)| records.iter().filter(|record| (from..to).contains(&minute(record))).collect())
}

#[test]
fn it_has_as_many_records_as_the_guide_says_and_the_same_ones_by_seed() {
    let told_once = told(7);
    let counts: Vec<_> = told_once.iter().map(|(&kind, records)| (kind, records.len())).collect();
    assert_eq!(counts, [("events", 4), ("logs", 5_000), ("metrics", 1_800), ("traces", 3_000)]);
    assert_eq!(story(BEGIN, 7).map(|batch| batch.kind), Kind::ALL);
    assert_eq!(story(BEGIN, 7), story(BEGIN, 7));
    assert_ne!(story(BEGIN, 7), story(BEGIN, 8));
    for (kind, records) in &told_once {
        let within = records.iter().filter(|record| (-30.0..=60.0).contains(&minute(record))).count();
        assert_eq!(within, records.len(), "{kind}");
    }
}

#[test]
fn its_tables_have_the_columns_of_the_script() {
    let told = told(7);
    for (kind, columns) in [
        (
            "events",
            "time event_type event_category severity source environment user_id resource_id metadata \
             duration_ms success amount",
        ),
        ("metrics", "time host metric value environment"),
        ("logs", "time level message service host environment"),
        (
            "traces",
            "time trace_id span_id parent_span_id service_name operation_name span_kind duration_ns \
             status_code http_method environment region error",
        ),
    ] {
        for column in columns.split(' ') {
            assert!(told[kind].iter().all(|record| record.contains_key(column)), "{kind} {column}");
        }
        assert!(told[kind].iter().all(|record| record["environment"].text() == "production"), "{kind}");
    }
    let asked = told["traces"].iter().filter(|span| span["http_method"].text() == "POST");
    assert!(asked.clone().all(|span| span["service_name"].text() == "api-gateway"));
    assert_eq!(asked.count(), 1_000);
}

#[test]
fn events_tell_what_happens() {
    let events = &told(7)["events"];
    let lines = events.iter().map(|event| {
        let amount = event["amount"].number();
        format!("{} {} {} {amount}", minute(event), event["event_type"].text(), event["severity"].text())
    });
    let expected = [
        "0 marketing_campaign_started info 0",
        "5 autoscale_triggered warning 0",
        "10 alert_triggered critical 0",
        "30 marketing_campaign_ended info 1247500",
    ];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
    for event in events {
        serde_json::from_str::<serde_json::Value>(event["metadata"].text()).unwrap();
    }
    assert_eq!(events[0]["duration_ms"].number(), 30.0 * MINUTE);
}

#[test]
fn processors_are_busy_while_it_lasts() {
    let metrics = &told(7)["metrics"];
    for (name, bounds) in [
        ("cpu_usage", [(20.0, 30.0), (75.0, 95.0), (25.0, 40.0)]),
        ("memory_usage", [(40.0, 50.0), (65.0, 85.0), (45.0, 55.0)]),
    ] {
        for (part, (low, high)) in parts(metrics).into_iter().zip(bounds) {
            let values: Vec<f64> = part
                .iter()
                .filter(|record| record["metric"].text() == name)
                .map(|record| record["value"].number())
                .collect();
            assert_eq!(values.len(), 300);
            assert!(values.iter().all(|value| (low..=high).contains(value)), "{name}");
            let mean = values.iter().sum::<f64>() / 300.0;
            assert!((mean - (low + high) / 2.0).abs() < (high - low) / 10.0, "{name}: {mean}");
        }
    }
}

#[test]
fn errors_and_long_answers_come_with_it() {
    let told = told(7);
    let shares = parts(&told["logs"]).map(|part| {
        let errors = part.iter().filter(|record| record["level"].text() == "ERROR").count();
        errors as f64 / part.len() as f64
    });
    // Three standard deviations of a share of 1,667 lines.
    for (share, expected) in shares.into_iter().zip([0.01_f64, 0.1, 0.03]) {
        let margin = 3.0 * (expected * (1.0 - expected) / 1_667.0).sqrt();
        assert!((share - expected).abs() < margin, "{share} {expected}");
    }
    let means = parts(&told["traces"]).map(|part| {
        let gateways: Vec<f64> = part
            .iter()
            .filter(|span| span["service_name"].text() == "api-gateway")
            .map(|span| span["duration_ns"].number() / 1e6)
            .collect();
        gateways.iter().sum::<f64>() / gateways.len() as f64
    });
    // As measured on the script: 29.8, 172 and 38.2 ms.
    assert!((means[0] - 30.0).abs() < 2.0 && (means[1] - 165.0).abs() < 15.0, "{means:?}");
    assert!((means[2] - 37.5).abs() < 3.0, "{means:?}");
    let failed = parts(&told["traces"]).map(|part| part.iter().filter(|span| span["error"].flag()).count());
    assert!(failed[0] == 0 && failed[2] == 0 && (7..=28).contains(&failed[1]), "{failed:?}");
}

#[test]
fn its_spans_lie_within_their_parents() {
    let told = told(7);
    for trace in told["traces"].chunks(3) {
        assert_eq!(trace[0]["parent_span_id"].text(), "");
        for pair in trace.windows(2) {
            assert_eq!(pair[0]["trace_id"], pair[1]["trace_id"]);
            assert_eq!(pair[0]["span_id"], pair[1]["parent_span_id"]);
            let end = |span: &Record| span["time"].number() * 1e6 + span["duration_ns"].number();
            assert!(pair[0]["time"].number() < pair[1]["time"].number() && end(&pair[1]) <= end(&pair[0]));
        }
    }
}
