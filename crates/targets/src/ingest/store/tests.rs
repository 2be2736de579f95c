use super::super::batch::decode;
use super::*;

const SECOND: Nanos = Nanos::from_secs(1);

const LIMITS: Limits = Limits {
    flush_delay: Nanos::from_secs(5),
    flush_rows: 100,
    keep: 1000,
    max_memory: 1 << 20,
    full_after: None,
};

/// A batch of this many rows of one column of this kind.
fn batch(measurement: &str, rows: usize, value: rmpv::Value) -> Vec<Batch> {
    let columns = rmpv::Value::Map(vec![("v".into(), rmpv::Value::Array(vec![value; rows]))]);
    let payload = rmpv::Value::Map(vec![("m".into(), measurement.into()), ("columns".into(), columns)]);
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &payload).unwrap();
    decode(&bytes, 0).unwrap().batches
}

fn write(store: &Store, rows: usize, fate: Fate, now: Nanos) {
    store.write("db", batch("m", rows, 1.into()), 10, fate, now).unwrap();
}

/// Rows that are seen, those of them that are kept, and those in the buffer.
fn rows(store: &Store, now: Nanos) -> (u64, u64, u64) {
    let counts = store.acknowledged(now).pop().unwrap();
    let tables = store.tables(|database, _| database == "db", now);
    let seen = tables.first().map_or((0, 0), |table| {
        assert_eq!(table.chunks.iter().map(|chunk| chunk.rows as u64).sum::<u64>(), table.kept);
        (table.rows, table.kept)
    });
    assert_eq!(seen, (counts.visible, counts.kept));
    (counts.visible, counts.kept, counts.buffered)
}

#[test]
fn rows_are_seen_after_the_delay_of_the_first_of_them() {
    let store = Store::new(LIMITS);
    write(&store, 10, Fate::Stored, SECOND);
    write(&store, 10, Fate::Stored, Nanos(3 * SECOND.0));
    assert_eq!(rows(&store, Nanos(6 * SECOND.0 - 1)), (0, 0, 20));
    assert_eq!(rows(&store, Nanos(6 * SECOND.0)), (20, 20, 0));
    // Later rows have a wait of their own, even without a query in between.
    write(&store, 1, Fate::Stored, Nanos(7 * SECOND.0));
    write(&store, 2, Fate::Stored, Nanos(13 * SECOND.0));
    assert_eq!(rows(&store, Nanos(13 * SECOND.0)), (21, 21, 2));
}

#[test]
fn rows_are_seen_when_there_are_enough_of_them_or_a_flush_is_asked_for() {
    let store = Store::new(LIMITS);
    write(&store, 99, Fate::Stored, SECOND);
    assert_eq!(rows(&store, SECOND), (0, 0, 99));
    write(&store, 1, Fate::Stored, SECOND);
    assert_eq!(rows(&store, SECOND), (100, 100, 0));
    write(&store, 5, Fate::Stored, SECOND);
    store.flush();
    assert_eq!(rows(&store, SECOND), (105, 105, 0));
}

#[test]
fn a_change_of_the_columns_flushes_what_was_before_and_makes_text_of_them() {
    let store = Store::new(LIMITS);
    write(&store, 5, Fate::Stored, SECOND);
    store.write("db", batch("m", 3, 1.5.into()), 10, Fate::Stored, SECOND).unwrap();
    assert_eq!(rows(&store, SECOND), (5, 5, 3));
    store.flush();
    let tables = store.tables(|_, _| true, SECOND);
    assert_eq!(tables[0].columns, [("time".into(), false), ("v".into(), true)]);
}

#[test]
fn the_oldest_values_are_forgotten_and_their_rows_still_counted() {
    let store = Store::new(LIMITS);
    for _ in 0..35 {
        write(&store, 100, Fate::Stored, SECOND);
    }
    assert_eq!(rows(&store, SECOND), (3500, 1000, 0));
    write(&store, 50, Fate::Stored, SECOND);
    assert_eq!(rows(&store, Nanos(9 * SECOND.0)), (3550, 1050, 0), "a batch is forgotten as a whole");
    let none = Store::new(Limits { keep: 0, ..LIMITS });
    write(&none, 100, Fate::Stored, SECOND);
    assert_eq!(rows(&none, SECOND), (100, 0, 0));
    assert_eq!(none.inner().bytes, 0);
}

#[test]
fn memory_is_bounded_over_all_measurements() {
    let store = Store::new(Limits { max_memory: 20_000, keep: u64::MAX, flush_rows: u64::MAX, ..LIMITS });
    for number in 0..200 {
        let measurement = format!("m{}", number % 3);
        store.write("db", batch(&measurement, 100, 1.into()), 10, Fate::Stored, SECOND).unwrap();
        let inner = store.inner();
        let bytes: u64 = inner.databases["db"].values().map(|table| table.bytes).sum();
        assert!(inner.bytes <= 20_000 && inner.bytes == bytes, "{} {bytes}", inner.bytes);
    }
    let counts = store.acknowledged(SECOND);
    assert_eq!(counts.iter().map(|of| of.rows).sum::<u64>(), 20_000);
    assert_eq!(counts.iter().map(|of| of.visible + of.buffered).sum::<u64>(), 20_000);
}

#[test]
fn lies_are_counted() {
    let store = Store::new(LIMITS);
    for (fate, rows) in [
        (Fate::Lost, 1),
        (Fate::Late, 2),
        (Fate::Duplicated, 4),
        (Fate::Unacknowledged, 8),
        (Fate::Stored, 16),
    ] {
        write(&store, rows, fate, SECOND);
    }
    store.flush();
    let expected = Acknowledged {
        database: "db".to_owned(),
        measurement: "m".to_owned(),
        batches: 4,
        rows: 23,
        visible: 8 + 8 + 16,
        buffered: 0,
        kept: 8 + 8 + 16,
        lost: 1,
        duplicated: 4,
        late: 2,
        unacknowledged: 8,
    };
    assert_eq!(store.acknowledged(Nanos(100 * SECOND.0)), [expected]);
}

#[test]
fn a_full_disk_and_too_many_measurements_are_refused() {
    let store = Store::new(Limits { full_after: Some(25), ..LIMITS });
    write(&store, 1, Fate::Stored, SECOND);
    write(&store, 1, Fate::Stored, SECOND);
    let full = store.write("db", batch("m", 1, 1.into()), 10, Fate::Stored, SECOND);
    assert_eq!(full, Err("write data: no space left on device".to_owned()));
    store.write("db", batch("m", 1, 1.into()), 5, Fate::Stored, SECOND).unwrap();
    assert_eq!(store.acknowledged(SECOND)[0].rows, 3);
    let store = Store::new(LIMITS);
    let many: Vec<Batch> =
        (0..MOST_MEASUREMENTS).flat_map(|n| batch(&format!("m{n}"), 1, 1.into())).collect();
    store.write("db", many, 10, Fate::Stored, SECOND).unwrap();
    let refused = store.write("other", batch("m", 1, 1.into()), 10, Fate::Stored, SECOND);
    assert_eq!(refused, Err("this target takes at most 10000 measurements".to_owned()));
    assert_eq!(store.names(SECOND).len(), 1, "nothing was made for it");
    assert_eq!((store.create("other"), store.create("db")), (Ok(true), Ok(false)));
}

#[test]
fn databases_and_names_of_columns_are_bounded() {
    let store = Store::new(LIMITS);
    for number in 0..MOST_DATABASES {
        assert_eq!(store.create(&format!("d{number}")), Ok(true));
    }
    assert_eq!(store.create("d0"), Ok(false));
    let many = Err("this target takes at most 10000 databases".to_owned());
    assert_eq!(store.create("more"), many.clone().map(|()| true));
    assert_eq!(store.write("more", batch("m", 1, 1.into()), 1, Fate::Stored, SECOND), many);

    let store = Store::new(LIMITS);
    let named = |first: char| {
        let mut one = batch("m", 1, 1.into());
        one[0].columns[0].0 = first.to_string().repeat(15 << 20).into();
        one
    };
    for first in ['a', 'b', 'c', 'd'] {
        assert_eq!(store.write("db", named(first), 1, Fate::Stored, SECOND), Ok(()));
    }
    let names = Err("this target takes at most 64 MiB of names of columns".to_owned());
    assert_eq!(store.write("db", named('e'), 1, Fate::Stored, SECOND), names);
    assert_eq!(store.write("db", named('a'), 1, Fate::Stored, SECOND), Ok(()), "it is known");
}

#[test]
fn small_batches_count_with_what_they_take_beside_their_values() {
    let store = Store::new(Limits { keep: u64::MAX, flush_rows: 1, ..LIMITS });
    for _ in 0..10_000 {
        write(&store, 1, Fate::Stored, SECOND);
    }
    let kept = store.acknowledged(SECOND).pop().unwrap().kept;
    let least = (CHUNK_UPKEEP + 2 * COLUMN_UPKEEP) as u64;
    assert!(kept > 100 && kept * least <= LIMITS.max_memory, "{kept}");
}
