//! Data sources: their rows, the order and the receivers of these, and their problems.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering as Atomic};

use plimsoll_core::{Random, Shard};
use plimsoll_scenario::{AtEnd, FeedError, FeedSpec, Feeds, Order, Per, Rows, Share};
use proptest::prelude::*;

/// A file in a place of its own, which goes when this does.
struct Written(PathBuf);

impl Written {
    fn new(text: impl AsRef<[u8]>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Atomic::Relaxed);
        let path = std::env::temp_dir().join(format!("plimsoll-feed-{}-{number}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn csv(&self, header: bool) -> Rows {
        Rows::Csv { path: self.0.clone(), delimiter: b',', header }
    }

    fn json(&self, members: &[&str]) -> Rows {
        let members = members.iter().map(|&name| name.to_owned()).collect();
        Rows::JsonLines { path: self.0.clone(), members }
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn list(rows: &[&[&str]]) -> Rows {
    let row = |row: &&[&str]| row.iter().map(|value| value.as_bytes().to_vec()).collect();
    Rows::List(rows.iter().map(row).collect::<Vec<_>>().into())
}

/// Bytes of files that are examined before a run.
const HEAD: usize = 1 << 20;

/// A source whose columns go into the variables 0, 1 and so on.
fn spec(rows: Rows, columns: u16) -> FeedSpec {
    FeedSpec {
        name: "users".to_owned(),
        rows,
        columns: (0..columns).map(Some).collect(),
        order: Order::Sequential,
        at_end: AtEnd::Stop,
        share: Share::Split,
        per: Per::Iteration,
    }
}

/// One source, as one worker draws from it.
struct Drawing {
    feeds: Feeds,
    random: Random,
    columns: usize,
}

impl Drawing {
    fn open(spec: &FeedSpec, worker: Shard) -> Result<Self, FeedError> {
        let feeds = Feeds::open(std::slice::from_ref(spec), worker, 42)?;
        Ok(Self { feeds, random: Random::new(1, u64::from(worker.index)), columns: spec.columns.len() })
    }

    /// The next row, with `-` between its values.
    fn next(&mut self) -> Result<String, FeedError> {
        let mut variables = vec![b"before".to_vec(); self.columns];
        let mut known = vec![false; self.columns];
        self.feeds.draw(0, &mut self.random, &mut variables, &mut known)?;
        assert_eq!(known, vec![true; self.columns]);
        let values: Vec<_> = variables.iter().map(|value| String::from_utf8_lossy(value)).collect();
        Ok(values.join("-"))
    }

    fn take(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.next().unwrap()).collect()
    }

    /// All rows up to the end.
    fn rest(&mut self) -> Vec<String> {
        let mut rows = Vec::new();
        loop {
            match self.next() {
                Ok(row) => rows.push(row),
                Err(error) => {
                    assert_eq!(error, FeedError::Ended);
                    assert_eq!(self.next(), Err(FeedError::Ended));
                    return rows;
                }
            }
        }
    }
}

fn whole(spec: &FeedSpec) -> Vec<String> {
    Drawing::open(spec, Shard::WHOLE).unwrap().rest()
}

/// The first error, at the opening or later.
fn failure(spec: &FeedSpec) -> String {
    let error = match Drawing::open(spec, Shard::WHOLE) {
        Err(error) => error,
        Ok(mut drawing) => loop {
            if let Err(error) = drawing.next() {
                break error;
            }
        },
    };
    match error {
        FeedError::Failed(reason) => reason,
        FeedError::Ended => panic!("no failure"),
    }
}

#[test]
fn ranges_have_leading_zeros() {
    let range = |start, end, width| whole(&spec(Rows::Range { start, end, width }, 1));
    assert_eq!(range(8, 11, 1), ["8", "9", "10"]);
    assert_eq!(range(0, 2, 4), ["0000", "0001"]);
    assert_eq!(range(99, 101, 3), ["099", "100"]);
    assert_eq!(range(u64::MAX - 1, u64::MAX, 0), ["18446744073709551614"]);
}

#[test]
fn lists_and_files_give_the_same_rows() {
    let expected = ["1-ann", "2-b, \"c\"", "3-"];
    assert_eq!(whole(&spec(list(&[&["1", "ann"], &["2", "b, \"c\""], &["3", ""]]), 2)), expected);
    let csv = Written::new("\u{feff}id,name\r\n1,ann\r\n\r\n\"2\",\"b, \"\"c\"\"\"\n3,");
    assert_eq!(whole(&spec(csv.csv(true), 2)), expected);
    let json = Written::new(
        "{\"name\":\"ann\",\"id\":1}\n\n{\"id\":2,\"x\":{},\"name\":\"b, \\u0022c\\\"\"}\r\n{\"id\":\"3\",\"name\":\"\"}",
    );
    assert_eq!(whole(&spec(json.json(&["id", "name"]), 2)), expected);
    assert_eq!(csv.csv(true).names().unwrap(), ["id", "name"]);
    assert_eq!(json.json(&[]).names().unwrap(), ["name", "id"]);
    assert_eq!(list(&[]).names().unwrap(), [""; 0]);
    for rows in [csv.csv(true), json.json(&["id", "name"])] {
        assert_eq!(spec(rows, 2).problems(HEAD, 3), [""; 0]);
    }
}

#[test]
fn columns_that_are_not_used_may_hold_anything() {
    let csv = Written::new("a,\"x\ny\",b\n");
    let mut spec = spec(csv.csv(false), 0);
    spec.columns = vec![Some(1), None, Some(0)];
    let mut feeds = Feeds::open(&[spec], Shard::WHOLE, 0).unwrap();
    let (mut variables, mut known) = (vec![Vec::new(); 3], [false; 3]);
    feeds.draw(0, &mut Random::new(0, 0), &mut variables, &mut known).unwrap();
    assert_eq!(variables, [b"b".to_vec(), b"a".to_vec(), vec![]]);
    assert_eq!(known, [true, true, false]);
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    for (text, reason) in [
        ("1,a\n2\n", ":2: 1 values, but 2 columns"),
        ("1,a\n\n2,b,c\n", ":3: 3 values, but 2 columns"),
        ("1,a\n2,\"b\n", ":2: a quote that begins in this record is never closed"),
        ("1,a\n2,b\"\"c\n", ":2: a quote within a value that does not begin with one"),
        ("1,a\n2,\"b\" \n", ":2: ` ` behind the closing quote of a value"),
        ("1,a\r2,b\n", ":1: a carriage return outside of quotes"),
        ("1,a\rb\n", ":1: a carriage return outside of quotes"),
        ("", ": there are no rows"),
        ("\u{feff}\r\n\n", ": there are no rows"),
    ] {
        let csv = Written::new(text);
        for order in [Order::Sequential, Order::Shuffled] {
            let found = failure(&FeedSpec { order, ..spec(csv.csv(false), 2) });
            assert!(found.starts_with("data source `users`: "), "{found}");
            assert!(found.contains(&format!("{}{reason}", csv.0.display())), "{text:?}: {found}");
        }
        // Before the run as well.
        let found = spec(csv.csv(false), 2).problems(HEAD, 1).join("\n");
        assert!(found.contains(&format!("{}{reason}", csv.0.display())), "{text:?}: {found}");
    }
    for (text, reason) in [
        ("{\"id\":1}\n{\"x\":1}", ":2: no member `id`"),
        ("{\"id\":1}\n{\"id\":", ":2: not a JSON object: EOF while parsing a value at column 6"),
        ("{\"id\":1}\n[1]", ":2: not a JSON object: invalid type: sequence"),
        ("{\"id\":\"\\ud800\"}", ":1: `id` a string with half of a surrogate pair"),
    ] {
        let json = Written::new(text);
        let spec = spec(json.json(&["id"]), 1);
        for found in [failure(&spec), spec.problems(HEAD, 1).join("\n")] {
            assert!(found.contains(&format!("{}{reason}", json.0.display())), "{text:?}: {found}");
        }
    }
    let header = Written::new("id,name\n");
    for (columns, reason) in [(2, ": there are no rows"), (3, ":1: 2 names of columns, but 3 are expected")] {
        let spec = spec(header.csv(true), columns);
        assert!(failure(&spec).ends_with(reason));
        assert!(spec.problems(HEAD, 1)[0].ends_with(reason));
    }
    let missing = Rows::Csv { path: "no such folder/x.csv".into(), delimiter: b',', header: false };
    assert!(failure(&spec(missing, 1)).contains("no such folder/x.csv: No such file"));
}

/// All problems are told, and a large file is not read whole for them.
#[test]
fn the_head_of_a_file_is_examined_before_the_run() {
    let row =
        |number: usize| if number % 1_000 == 7 { format!("{number}\n") } else { format!("{number},b\n") };
    let text: String = (1..=5_000).map(row).collect();
    let csv = Written::new(&text);
    let lines = |length: usize| {
        let problems = spec(csv.csv(false), 2).problems(length, 1);
        let line = |problem: &String| problem.rsplit(": ").nth(1)?.rsplit(':').next()?.parse().ok();
        problems.iter().filter_map(line).collect::<Vec<usize>>()
    };
    assert_eq!(lines(HEAD), [7, 1_007, 2_007, 3_007, 4_007]);
    let head = text.find("\n2007\n").expect("a row of one value") + 1;
    assert_eq!((lines(head), lines(head + 1)), (vec![7, 1_007], vec![7, 1_007, 2_007]));
    assert_eq!(spec(csv.csv(false), 1).problems(HEAD, 1).len(), 20, "there is an end of them");
    // A row that begins in the head is read whole, as by a run, and no further.
    let open = Written::new(format!("1,a\n2,\"{}\n{}\"", "x".repeat(100), "3,b\n".repeat(2 << 20)));
    let found = spec(open.csv(false), 2).problems(10, 1).join("\n");
    assert!(found.ends_with(":2: a record of more than 4 MiB (is a quote not closed?)"), "{found}");
    let few = Written::new("1,a\n2,b\n");
    for (spec, workers, too_few) in [
        (FeedSpec { at_end: AtEnd::Wrap, ..spec(few.csv(false), 2) }, 2, false),
        (FeedSpec { at_end: AtEnd::Wrap, ..spec(few.csv(false), 2) }, 3, true),
        (FeedSpec { order: Order::Random, ..spec(few.csv(false), 2) }, 3, true),
        (spec(few.csv(false), 2), 3, false),
        (FeedSpec { at_end: AtEnd::Wrap, share: Share::Whole, ..spec(few.csv(false), 2) }, 3, false),
    ] {
        let problems = spec.problems(HEAD, workers);
        assert_eq!(!problems.is_empty(), too_few, "{workers}: {problems:?}");
        let last = Shard { index: workers - 1, of: workers };
        assert_eq!(Feeds::open(&[spec], last, 0).is_err(), too_few, "{workers}: as the run");
    }
}

#[test]
fn what_does_not_fit_together_is_found_before_the_run() {
    let csv = Written::new("1,a\n");
    let delimited = |delimiter| Rows::Csv { path: csv.0.clone(), delimiter, header: false };
    for (rows, columns, reason) in [
        (Rows::Range { start: 3, end: 3, width: 1 }, 1, "the range from 3 to 3 is empty"),
        (Rows::Range { start: 3, end: 4, width: 1 }, 2, "a range has one column, not 2"),
        (list(&[]), 1, "there are no rows"),
        (list(&[&["a"], &["a", "b"]]), 1, "row 2: 2 values, but 1 columns"),
        (delimited(b'"'), 1, "the delimiter of a CSV file cannot be"),
        (delimited(b','), 3, "1: 2 values, but 3 columns"),
        (csv.json(&["a"]), 2, "1 members, but 2 columns"),
        (csv.json(&["a"]), 1, "1: not a JSON object"),
        (Rows::JsonLines { path: "no such file".into(), members: vec![] }, 0, "no such file: No such file"),
    ] {
        let spec = spec(rows, columns);
        let error = spec.problems(HEAD, 1).join("\n");
        assert!(error.contains(reason), "{spec:?}: {error}");
        assert!(Feeds::open(&[spec], Shard::WHOLE, 0).is_err());
    }
}

#[test]
fn the_end_is_as_the_plan_says() {
    let csv = Written::new("1\n2\n3\n");
    for rows in [csv.csv(false), list(&[&["1"], &["2"], &["3"]]), Rows::Range { start: 1, end: 4, width: 0 }]
    {
        let spec = |at_end| FeedSpec { at_end, ..spec(rows.clone(), 1) };
        assert_eq!(whole(&spec(AtEnd::Stop)), ["1", "2", "3"]);
        let mut wrapping = Drawing::open(&spec(AtEnd::Wrap), Shard::WHOLE).unwrap();
        assert_eq!(wrapping.take(7), ["1", "2", "3", "1", "2", "3", "1"]);
        let mut wrapping = Drawing::open(&spec(AtEnd::Wrap), Shard { index: 1, of: 2 }).unwrap();
        assert_eq!(wrapping.take(3), ["2", "2", "2"]);
        assert_eq!(failure(&spec(AtEnd::Fail)), "data source `users`: its rows have ended");
    }
}

#[test]
fn a_worker_without_rows_of_its_own_is_an_error_where_rows_never_end() {
    let csv = Written::new("1\n2\n");
    for rows in [csv.csv(false), list(&[&["1"], &["2"]]), Rows::Range { start: 1, end: 3, width: 0 }] {
        for (order, at_end, is_error) in [
            (Order::Sequential, AtEnd::Wrap, true),
            (Order::Shuffled, AtEnd::Wrap, true),
            (Order::Random, AtEnd::Stop, true),
            (Order::Sequential, AtEnd::Stop, false),
            (Order::Shuffled, AtEnd::Stop, false),
        ] {
            let spec = FeedSpec { order, at_end, ..spec(rows.clone(), 1) };
            match Drawing::open(&spec, Shard { index: 2, of: 3 }) {
                Err(error) => {
                    assert!(is_error && error.to_string().contains("fewer rows than the 3 workers"));
                }
                Ok(mut drawing) => assert!(!is_error && drawing.rest().is_empty()),
            }
            let whole = FeedSpec { share: Share::Whole, ..spec };
            assert!(Drawing::open(&whole, Shard { index: 2, of: 3 }).unwrap().next().is_ok());
        }
    }
}

#[test]
fn random_rows_are_the_workers_own_and_about_as_frequent() {
    let csv = Written::new((0..10).map(|n| format!("{n}\n")).collect::<String>());
    for rows in [csv.csv(false), Rows::Range { start: 0, end: 10, width: 0 }] {
        let spec = FeedSpec { order: Order::Random, ..spec(rows, 1) };
        let mut counts = std::collections::BTreeMap::new();
        for row in Drawing::open(&spec, Shard { index: 1, of: 2 }).unwrap().take(5_000) {
            *counts.entry(row).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.keys().collect::<Vec<_>>(), ["1", "3", "5", "7", "9"]);
        assert!(counts.values().all(|n| (900..1100).contains(n)), "{counts:?}");
    }
}

#[test]
fn a_file_larger_than_any_buffer_is_streamed_whole() {
    let lines: String = (0..200_000).map(|n| format!("{n},\"value {n}\"\r\n")).collect();
    let csv = Written::new(lines);
    let mut next = 2;
    let mut drawing = Drawing::open(&spec(csv.csv(false), 2), Shard { index: 2, of: 3 }).unwrap();
    for row in drawing.rest() {
        assert_eq!(row, format!("{next}-value {next}"));
        next += 3;
    }
    assert_eq!(next, 200_000);
}

/// The numbers from 0 up to `count`, in every form that rows have.
fn forms(count: u64) -> (Written, Written, Vec<Rows>) {
    let csv = Written::new((0..count).map(|n| format!("{n}\n")).collect::<String>());
    let json = Written::new((0..count).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    let rows: Vec<Vec<Vec<u8>>> = (0..count).map(|n| vec![n.to_string().into_bytes()]).collect();
    let forms = vec![
        Rows::Range { start: 0, end: count, width: 0 },
        Rows::List(Arc::from(rows)),
        csv.csv(false),
        json.json(&["n"]),
    ];
    (csv, json, forms)
}

fn numbers(rows: Vec<String>) -> Vec<u64> {
    rows.iter().map(|row| row.parse().unwrap()).collect()
}

fn shards(of: u32) -> Vec<Shard> {
    (0..of).map(|index| Shard { index, of }).collect()
}

proptest! {
    #[test]
    fn every_row_goes_to_one_worker_once(
        count in 1..60_u64,
        workers in 1..9_u32,
        order in prop_oneof![Just(Order::Sequential), Just(Order::Shuffled)],
        seed in any::<u64>(),
    ) {
        let (_csv, _json, forms) = forms(count);
        let mut orders = Vec::new();
        for rows in forms {
            let spec = FeedSpec { order, ..spec(rows, 1) };
            let all = Feeds::open_all(std::slice::from_ref(&spec), &shards(workers), seed).unwrap();
            let mut drawn = Vec::new();
            for (feeds, index) in all.into_iter().zip(0..) {
                let mut drawing = Drawing { feeds, random: Random::new(0, 0), columns: 1 };
                let rows = numbers(drawing.rest());
                prop_assert_eq!(rows.len() as u64, Shard { index, of: workers }.share_of(count));
                let alone = Feeds::open(std::slice::from_ref(&spec), Shard { index, of: workers }, seed);
                let mut alone = Drawing { feeds: alone.unwrap(), random: Random::new(9, 9), columns: 1 };
                prop_assert_eq!(numbers(alone.rest()), rows.clone());
                drawn.extend(rows);
            }
            orders.push(drawn.clone());
            drawn.sort_unstable();
            prop_assert_eq!(drawn, (0..count).collect::<Vec<_>>());
        }
        // The place of the rows does not affect which worker gets which row when.
        prop_assert!(orders.iter().all(|order| *order == orders[0]));
    }

    #[test]
    fn each_worker_has_all_rows_of_a_whole_source_and_after_its_end_the_same_again(
        count in 1..40_u64,
        workers in 1..5_u32,
        order in prop_oneof![Just(Order::Sequential), Just(Order::Shuffled)],
        seed in any::<u64>(),
    ) {
        let (_csv, _json, forms) = forms(count);
        for rows in forms {
            let spec = FeedSpec { order, at_end: AtEnd::Wrap, share: Share::Whole, ..spec(rows, 1) };
            let all = Feeds::open_all(&[spec], &shards(workers), seed).unwrap();
            let mut first = None;
            for feeds in all {
                let mut drawing = Drawing { feeds, random: Random::new(0, 0), columns: 1 };
                let once = numbers(drawing.take(count as usize));
                prop_assert_eq!(&numbers(drawing.take(count as usize)), &once);
                let mut sorted = once.clone();
                sorted.sort_unstable();
                prop_assert_eq!(sorted, (0..count).collect::<Vec<_>>());
                prop_assert_eq!(first.get_or_insert(once.clone()), &once);
            }
        }
    }
}

#[test]
fn whether_rows_suffice_is_known_without_reading_more() {
    let csv = Written::new("a,b\n1,2\n3,4\n5,6\nbroken\n");
    let json = Written::new("{\"a\": 1}\n{\"a\": 2}\n");
    let range = Rows::Range { start: 5, end: 8, width: 1 };
    for (rows, columns, count) in
        [(csv.csv(true), 2, 4), (json.json(&["a"]), 1, 2), (range, 1, 3), (list(&[&["a"]]), 1, 1)]
    {
        let fail = FeedSpec { at_end: AtEnd::Fail, ..spec(rows, columns) };
        let enough: Vec<_> = (0..6).map(|users| fail.suffices(users).unwrap()).collect();
        assert_eq!(enough.iter().filter(|enough| **enough).count(), count + 1, "{fail:?}");
        let counts: Vec<_> = (0..6).map(|most| fail.count_up_to(most).unwrap()).collect();
        assert_eq!(counts, (0..6).map(|most: u64| most.min(count as u64)).collect::<Vec<_>>(), "{fail:?}");
        assert!(FeedSpec { at_end: AtEnd::Wrap, ..fail.clone() }.suffices(99).unwrap());
        assert!(FeedSpec { order: Order::Random, ..fail }.suffices(99).unwrap());
    }
}
