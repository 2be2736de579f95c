//! Series: exactly as many as were asked for, and as many new ones.

use std::collections::BTreeSet;

use plimsoll_synth::{Format, Spec, Synthesizer};

use crate::synth::{NOW, Record, decoders, spec};

/// The tags of a record, and with the shape `host` its measurement.
fn series_of(measurement: &str, record: &Record) -> String {
    let tags = ["node", "host", "metric_name", "region", "environment", "env"];
    let tags = tags.iter().filter_map(|&tag| record.get(tag).map(|cell| format!("{tag}={}", cell.text())));
    format!("{measurement} {}", tags.collect::<Vec<_>>().join(" "))
}

/// The series of batches at a moment.
fn series(spec: &Spec, batches: std::ops::Range<u64>, now: u64) -> BTreeSet<String> {
    let mut synthesizer = Synthesizer::new(spec, 4).unwrap();
    let mut out = Vec::new();
    let mut series = BTreeSet::new();
    for index in batches {
        synthesizer.batch(index, now, &mut out);
        let (measurement, records) = decoders::columnar(&out);
        series.extend(records.iter().map(|record| series_of(&measurement, record)));
    }
    series
}

#[test]
fn there_are_exactly_as_many_series_as_were_asked_for() {
    let count = |json: &str, batches| series(&spec(json), batches, NOW).len();
    assert_eq!(count("{}", 0..3), 700);
    assert_eq!(count(r#"{"shape":"small"}"#, 0..3), 700);
    assert_eq!(count(r#"{"shape":"host"}"#, 0..12), 3_000);
    assert_eq!(count(r#"{"hosts":13}"#, 5..7), 91);
    for cardinality in [1, 2, 10, 999, 12_345] {
        let json = format!(r#"{{"cardinality":{cardinality}}}"#);
        // All of them come in the first cycle, and in any two.
        let batches = u64::from(cardinality as u32).div_ceil(1_000);
        assert_eq!(count(&json, 0..batches), cardinality);
        assert_eq!(count(&json, 1_000_000..1_000_000 + 2 * batches), cardinality);
    }
    assert_eq!(count(r#"{"cardinality":50,"hosts":100}"#, 0..2), 50);
    assert_eq!(count(r#"{"cardinality":500,"shape":"host"}"#, 0..3), 500);
    assert_eq!(count(r#"{"cardinality":4,"shape":"host","batch_size":2}"#, 0..6), 4);
}

#[test]
fn a_host_stays_where_it_is() {
    let records = crate::synth::records(&spec(r#"{"hosts":40}"#), 1, 2);
    let places: BTreeSet<_> = records
        .iter()
        .map(|record| ["node", "region", "environment"].map(|name| record[name].text().to_owned()))
        .collect();
    assert_eq!(places.len(), 40);
}

#[test]
fn churn_replaces_the_asked_share_of_the_series_and_keeps_their_number() {
    for (churn, hosts) in [(0.01, 1_000), (0.25, 100), (1.0, 30)] {
        let spec = Spec { churn, hosts: Some(hosts), ..Spec::default() };
        let batches = u64::from(hosts * 7).div_ceil(1_000) + 1;
        let at = |second: u64| series(&spec, 0..batches, NOW + second * 1_000_000_000);
        let total = f64::from(hosts * 7);
        let before = at(0);
        assert_eq!(before.len() as f64, total);
        for seconds in [1, 2, 60] {
            let after = at(seconds);
            assert_eq!(after.len() as f64, total);
            let replaced = after.difference(&before).count() as f64;
            // To the seven series of one host.
            let expected = (churn * seconds as f64).min(1.0) * total;
            assert!((replaced - expected).abs() <= 7.0, "{churn} {seconds}: {replaced} {expected}");
        }
    }
    // Hosts without any series are not among those that are replaced.
    for json in [
        r#"{"churn":0.1,"hosts":100,"cardinality":50}"#,
        r#"{"churn":0.1,"hosts":100,"cardinality":60,"shape":"host"}"#,
    ] {
        let spec = spec(json);
        for second in 0..20 {
            let at = |second: u64| series(&spec, 0..3, NOW + second * 1_000_000_000);
            let (before, after) = (at(second), at(second + 1));
            assert_eq!(after.len() as u32, spec.cardinality.unwrap());
            let replaced = after.difference(&before).count();
            assert!((5..=6).contains(&replaced), "{json}: {replaced}");
        }
    }
    // Without it, nothing ever changes.
    let spec = Spec::default();
    assert_eq!(series(&spec, 0..2, NOW), series(&spec, 0..2, NOW + 86_400_000_000_000));
}

#[test]
fn churn_is_the_same_in_every_format() {
    let spec = Spec { churn: 0.3, shape: plimsoll_synth::Shape::Host, ..Spec::default() };
    let row = Spec { format: Format::Row, ..spec.clone() };
    let (mut columns, mut rows) = (Synthesizer::new(&spec, 4).unwrap(), Synthesizer::new(&row, 4).unwrap());
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for index in 0..9 {
        let now = NOW + index * 700_000_000;
        columns.batch(index, now, &mut one);
        rows.batch(index, now, &mut other);
        assert_eq!(decoders::columnar(&one), decoders::rows(&other));
    }
}
