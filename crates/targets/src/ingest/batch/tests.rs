use rmpv::Value as Packed;

use super::super::column::Kind;
use super::*;

const NOW: i64 = 1_700_000_000_000_000;

/// JSON as MessagePack, by a foreign encoder. Numbers with a fraction are floats.
pub(crate) fn packed(json: &str) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &of(&value)).unwrap();
    bytes
}

fn of(value: &serde_json::Value) -> Packed {
    match value {
        serde_json::Value::Null => Packed::Nil,
        serde_json::Value::Bool(bool) => (*bool).into(),
        serde_json::Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => number.as_f64().unwrap().into(),
        },
        serde_json::Value::String(text) => text.as_str().into(),
        serde_json::Value::Array(items) => Packed::Array(items.iter().map(of).collect()),
        serde_json::Value::Object(pairs) => {
            Packed::Map(pairs.iter().map(|(key, value)| (key.as_str().into(), of(value))).collect())
        }
    }
}

/// Batches as text: `cpu[time=1 v=2; time=…]`.
fn told(json: &str) -> String {
    let decoded = decode(&packed(json), NOW).unwrap();
    assert_eq!(decoded.conflict, None, "{json}");
    let batches = decoded.batches.iter().map(|batch| {
        let row = |row: usize| {
            let cells = batch.columns.iter().map(|(name, column)| {
                assert_eq!(column.len(), batch.rows, "{name}");
                match column.get(row) {
                    Cell::Time(micros) => format!("{name}={micros}"),
                    cell => {
                        format!("{name}={}", cell.text().map_or("null".into(), std::borrow::Cow::into_owned))
                    }
                }
            });
            cells.collect::<Vec<_>>().join(" ")
        };
        format!("{}[{}]", batch.measurement, (0..batch.rows).map(row).collect::<Vec<_>>().join("; "))
    });
    batches.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_form_of_payload_is_read() {
    for (json, expected) in [
        (
            r#"{"m":"cpu","columns":{"time":[1700000000,1700000001],"host":["a","b"],"v":[1.5,null]}}"#,
            "cpu[time=1700000000000000 host=a v=1.5; time=1700000001000000 host=b v=null]",
        ),
        // The measurement may come last, and the time may be missing.
        (r#"{"columns":{"v":[1,2]},"m":"cpu"}"#, "cpu[time=1700000000000000 v=1; time=1700000000000000 v=2]"),
        (r#"{"m":7,"columns":{"v":[true]}}"#, "measurement_7[time=1700000000000000 v=true]"),
        (
            r#"{"m":"cpu","t":1700000000000,"h":"a","fields":{"v":1.5,"n":2},"tags":{"env":"prod","id":3}}"#,
            "cpu[time=1700000000000000 v=1.5 n=2 env=prod id=3 host=a]",
        ),
        (r#"{"m":"cpu","f":[1,"x"]}"#, "cpu[time=1700000000000000 field_0=1 field_1=x host=unknown]"),
        (r#"{"m":"cpu","h":5,"fields":{"v":1}}"#, "cpu[time=1700000000000000 v=1 host=host_5]"),
        (
            r#"{"batch":[{"m":"a","t":1,"h":"x","fields":{"v":1}},{"m":"b","columns":{"time":[2],"v":[2]}},
                {"m":"a","t":3,"h":"y","fields":{"w":2.5}}]}"#,
            "b[time=2000000 v=2] a[time=1000000 v=1 host=x w=null; time=3000000 v=null host=y w=2.5]",
        ),
        (
            r#"[{"m":"a","columns":{"time":[1],"v":[1]}},{"batch":[{"m":"b","columns":{"time":[1],"v":[1]}}]}]"#,
            "a[time=1000000 v=1] b[time=1000000 v=1]",
        ),
        // A column of nulls only is not one, nor is a value that is not an array; the last of one name
        // counts.
        (r#"{"m":"a","columns":{"time":[1],"n":[null],"x":5,"v":[1]}}"#, "a[time=1000000 v=1]"),
        (r#"{"m":"a","columns":{"time":[],"v":[]}}"#, ""),
        (r#"[]"#, ""),
        (r#"{"m":"a","columns":{"time":[1.9],"v":[1]}}"#, "a[time=1000000 v=1]"),
    ] {
        assert_eq!(told(json), expected, "{json}");
    }
}

#[test]
fn all_units_of_time_are_guessed() {
    for time in ["1730246400", "1730246400000", "1730246400000000", "1730246400000000000", "1730246400000.0"]
    {
        let json = format!(r#"{{"m":"a","columns":{{"time":[{time}],"v":[1]}}}}"#);
        assert_eq!(told(&json), "a[time=1730246400000000 v=1]");
        let json = format!(r#"{{"m":"a","t":{time},"h":"h","fields":{{"v":1}}}}"#);
        assert_eq!(told(&json), "a[time=1730246400000000 v=1 host=h]");
    }
}

#[test]
fn what_is_wrong_with_a_payload_is_told_in_the_words_of_the_real_server() {
    for (json, expected) in [
        (r#"{"columns":{"v":[1]}}"#, "missing required field 'm' (measurement)"),
        (r#"{"m":null,"columns":{"v":[1]}}"#, "missing required field 'm' (measurement)"),
        (r#"{"m":1.5,"columns":{"v":[1]}}"#, "invalid measurement type: float64"),
        (
            r#"{"m":"a","columns":{"v":[1],"time":[1,2]}}"#,
            "columnar format: array length mismatch (expected 1, got 2 for 'time')",
        ),
        (r#"{"m":"a","columns":{}}"#, "columnar format requires non-empty 'columns' dict"),
        (
            r#"{"m":"a","columns":{"time":["x"],"v":[1]}}"#,
            "failed to normalize timestamps: invalid timestamp type in columnar format: string",
        ),
        (
            r#"{"m":"a","columns":{"time":[null],"v":[1]}}"#,
            "failed to normalize timestamps: invalid timestamp type in columnar format: <nil>",
        ),
        (
            r#"{"m":"a","columns":{"time":[1,"x"],"v":[1,2]}}"#,
            "failed to normalize timestamps: invalid timestamp type in columnar format: string",
        ),
        (r#"{"m":"a","t":"x","fields":{"v":1}}"#, "invalid timestamp type: string"),
        (r#"{"m":"a","t":1}"#, "missing required field 'fields' or 'f'"),
        ("5", "unsupported msgpack payload type: int8"),
        (r#""x""#, "unsupported msgpack payload type: string"),
    ] {
        assert_eq!(decode(&packed(json), NOW), Err(expected.to_owned()), "{json}");
    }
    let expected = "failed to unmarshal msgpack: msgpack: unknown code c1 decoding interface{}";
    assert_eq!(decode(b"\x81\xa1m\xc1", NOW), Err(expected.to_owned()));
    assert_eq!(decode(b"", NOW), Err("failed to unmarshal msgpack: unexpected EOF".to_owned()));
    let wide = Packed::Map((0..5000).map(|n| (n.to_string().into(), Packed::Array(vec![]))).collect());
    let mut bytes = Vec::new();
    let wide = Packed::Map(vec![("m".into(), "a".into()), ("columns".into(), wide)]);
    rmpv::encode::write_value(&mut bytes, &wide).unwrap();
    assert_eq!(decode(&bytes, NOW), Err("5000 columns, and this target takes at most 4096".to_owned()));
}

#[test]
fn a_float_in_a_column_of_whole_numbers_loses_its_fraction_and_a_text_is_a_conflict() {
    assert_eq!(
        told(r#"{"m":"a","columns":{"time":[1,2],"v":[1,2.5]}}"#),
        "a[time=1000000 v=1; time=2000000 v=2]",
        "as the real server does, without a word"
    );
    let conflict = |json: &str| decode(&packed(json), NOW).unwrap().conflict.unwrap();
    let mixed = conflict(r#"{"m":"a","columns":{"time":[1,2],"v":[1,"x"]}}"#);
    assert_eq!(mixed, "cannot convert string to int64 in column 'v'");
    let nested = conflict(r#"{"m":"a","columns":{"time":[1],"v":[[1]]}}"#);
    assert_eq!(nested, "cannot convert []interface {} to any column in column 'v'");
    let rows = conflict(r#"[{"m":"a","fields":{"v":1}},{"m":"a","fields":{"v":"x"}}]"#);
    assert_eq!(rows, "cannot convert string to int64 in column 'v'");
}

#[test]
fn items_of_a_list_that_mean_nothing_are_passed_over_and_counted() {
    let json = r#"{"batch":[{"fields":{"v":1}},5,{"m":"a","t":1,"h":"h","fields":{"v":1}},{"m":"a"}]}"#;
    let decoded = decode(&packed(json), NOW).unwrap();
    assert_eq!(
        (decoded.batches[0].rows, decoded.skipped, decoded.measurements),
        (1, 3, vec!["a".to_owned()])
    );
    // Bytes that cannot be read cannot be skipped as an item.
    let mut bytes = packed(json);
    // Its last item is the text `a`, of two bytes.
    bytes.truncate(bytes.len() - 2);
    bytes.push(0xc1);
    assert!(decode(&bytes, NOW).is_err());
}

#[test]
fn names_are_known_also_of_measurements_without_rows() {
    let decoded = decode(&packed(r#"{"m":"bad name","columns":{"time":[],"v":[]}}"#), NOW).unwrap();
    assert_eq!(decoded.measurements, ["bad name"]);
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Packed> {
        prop_oneof![
            Just(Packed::Nil),
            any::<bool>().prop_map(Packed::from),
            any::<i64>().prop_map(Packed::from),
            any::<f64>().prop_map(Packed::from),
            "[a-zé]{0,40}".prop_map(Packed::from),
        ]
    }

    /// Columns of one kind each, with nulls among their values.
    fn columns() -> impl Strategy<Value = (usize, Vec<Vec<Packed>>)> {
        (1_usize..40).prop_flat_map(|rows| {
            let of = |value: BoxedStrategy<Packed>| {
                let value = prop_oneof![4 => value, 1 => Just(Packed::Nil)];
                proptest::collection::vec(value, rows)
            };
            let kinds = prop_oneof![
                of(any::<i64>().prop_map(Packed::from).boxed()),
                of(any::<f64>().prop_map(Packed::from).boxed()),
                of(any::<bool>().prop_map(Packed::from).boxed()),
                of("[a-zé]{0,40}".prop_map(Packed::from).boxed()),
            ];
            (Just(rows), proptest::collection::vec(kinds, 1..6))
        })
    }

    fn matches(cell: &Cell<'_>, value: &Packed) -> bool {
        match (cell, value) {
            (Cell::Null, Packed::Nil) => true,
            (Cell::Bool(cell), Packed::Boolean(value)) => cell == value,
            (Cell::Int(cell), Packed::Integer(value)) => value.as_i64() == Some(*cell),
            (Cell::Float(cell), Packed::F64(value)) => cell.to_bits() == value.to_bits(),
            (Cell::Text(cell), Packed::String(value)) => value.as_str() == Some(cell),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn what_an_encoder_packed_comes_out_again((rows, columns) in columns()) {
            let named = columns.iter().enumerate();
            let map = named.map(|(n, column)| (format!("c{n}").into(), Packed::Array(column.clone())));
            let payload = vec![("m".into(), "m".into()), ("columns".into(), Packed::Map(map.collect()))];
            let mut bytes = Vec::new();
            rmpv::encode::write_value(&mut bytes, &Packed::Map(payload)).unwrap();
            let decoded = decode(&bytes, NOW).unwrap();
            prop_assert_eq!(&decoded.conflict, &None);
            let batch = &decoded.batches[0];
            prop_assert_eq!((batch.rows, &*batch.columns[0].0), (rows, "time"));
            prop_assert_eq!(batch.columns[0].1.kind(), Kind::Time);
            for (n, column) in columns.iter().enumerate() {
                let name = format!("c{n}");
                match batch.columns.iter().find(|(known, _)| **known == *name) {
                    None => prop_assert!(column.iter().all(Packed::is_nil)),
                    Some((_, found)) => for (row, value) in column.iter().enumerate() {
                        let cell = found.get(row);
                        prop_assert!(matches(&cell, value), "{:?} is not {}", cell, value);
                    },
                }
            }
        }

        #[test]
        fn no_payload_makes_it_fail_otherwise(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes, NOW);
        }

        #[test]
        fn columns_of_any_mixture_are_decoded(values in proptest::collection::vec(value(), 1..30)) {
            let rows = values.len();
            let columns = Packed::Map(vec![("v".into(), Packed::Array(values.clone()))]);
            let mut bytes = Vec::new();
            let payload = Packed::Map(vec![("m".into(), "m".into()), ("columns".into(), columns)]);
            rmpv::encode::write_value(&mut bytes, &payload).unwrap();
            let decoded = decode(&bytes, NOW).unwrap();
            prop_assert_eq!(decoded.batches[0].rows, rows);
            for cut in 0..bytes.len() {
                prop_assert!(decode(&bytes[..cut], NOW).is_err());
            }
        }
    }
}
