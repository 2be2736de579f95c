//! Data sources and the variables that their columns go into.

use plimsoll_document::Problem;
use plimsoll_scenario::{AtEnd, Order, Per, Rows, Share};

use crate::compile::plans::resolve;

const USERS: &str = "\u{feff}id,name,\"a, b\"\n1,x,y\n";

fn text(data: &str, steps: &str) -> String {
    format!("data: {data}\ntargets: {{a: http://a.test}}\nscenarios: [{{steps: {steps}}}]")
}

fn wrong(data: &str, steps: &str) -> Vec<Problem> {
    let files = [("plans/users.csv", USERS), ("plans/items.jsonl", "{\"id\": 1, \"name\": \"x\"}\n")];
    resolve(&text(data, steps), &files, &[]).err().unwrap_or_default()
}

#[test]
fn columns_that_are_read_get_a_variable() {
    let files = [("plans/users.csv", USERS), ("plans/items.jsonl", "\n{\"sku\": 1, \"price\": 2}\n")];
    let data =
        "{users: {csv: users.csv, order: shuffled, at_end: stop, share: whole}, items: {jsonl: items.jsonl}}";
    let plan = resolve(&text(data, "[{get: '/${name}/${price}'}]"), &files, &[]).unwrap();
    let [users, items] = plan.feeds.as_slice() else { panic!("two feeds") };
    let Rows::Csv { path, delimiter, header } = &users.rows else { panic!("a CSV file") };
    assert_eq!((path.to_str(), *delimiter, *header), (Some("plans/users.csv"), b',', true));
    assert_eq!(users.columns.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!((users.order, users.at_end, users.share), (Order::Shuffled, AtEnd::Stop, Share::Whole));
    let Rows::JsonLines { members, .. } = &items.rows else { panic!("JSON lines") };
    assert_eq!(items.columns.len(), members.len());
    let price = members.iter().position(|member| member == "price").unwrap();
    assert!(items.columns[price].is_some() && items.columns.iter().flatten().count() == 1);
    assert_eq!((items.order, items.at_end, items.share), (Order::Sequential, AtEnd::Wrap, Share::Split));
}

/// Symptom: 30 rows for 100 arrivals were no word of `check` and `explain`.
#[test]
fn rows_that_are_fewer_than_the_arrivals_are_told() {
    let said = |run: &str, rows: &str, scenarios: &str| {
        let text = format!(
            "run: {{{run}}}\ndata: {{u: {{{rows}}}}}\ntargets: {{a: http://a.test}}\nscenarios: {scenarios}"
        );
        let files = [("plans/users.csv", "id\n1\n2\n3\n")];
        resolve(&text, &files, &[]).unwrap_or_else(|problems| panic!("{text}: {problems:?}")).lacking_rows()
    };
    let one = "[{steps: [{get: '/${u}'}]}]";
    let (rate, stops) = ("rate: 10, duration: 10s", "range: [0, 30], at_end: stop");
    let found = said(rate, stops, one);
    assert_eq!(
        found,
        ["data `u` has 30 rows, and 100 arrivals take one each: no more are started when they have ended; \
          more rows, or `at_end: wrap`, would do"]
    );
    let of = |run: &str, rows: &str, scenarios: &str| {
        let found = said(run, rows, scenarios);
        found.first().and_then(|said| Some(said.split_once(" take one each")?.0.to_owned()))
    };
    let words = |rows: &str, arrivals: u32| Some(format!("data `u` has {rows}, and {arrivals} arrivals"));
    assert_eq!(of(rate, "range: [0, 99], at_end: fail", one), words("99 rows", 100));
    assert_eq!(of("rate: 10, duration: 10s, warmup: 2s", stops, one), words("30 rows", 120));
    assert_eq!(of("rate: 10, iterations: 40, arrival: poisson", stops, one), words("30 rows", 40));
    assert_eq!(
        of("rate: 10, duration: 10s, threads: 3", &format!("{stops}, share: whole"), one),
        words("30 rows for each thread", 100)
    );
    let shared = "[{weight: 3, name: a, steps: [{get: '/${u}'}]}, {name: b, steps: [{get: /}]}]";
    assert_eq!(of(rate, stops, shared), words("30 rows", 75));
    for (run, rows, scenarios) in [
        (rate, "range: [0, 100], at_end: stop", one),
        (rate, "range: [0, 30]", one),
        (rate, "range: [0, 75], at_end: stop", shared),
        ("rate: 10, iterations: 30", stops, one),
        ("duration: 10s", stops, one),
        ("iterations: 100", stops, one),
        ("rate: 10, duration: 10s, threads: 4", "range: [0, 30], at_end: stop, share: whole", one),
    ] {
        assert_eq!(said(run, rows, scenarios), [""; 0], "{run}, {rows}");
    }
}

#[test]
fn ranges_keep_the_zeros_that_were_typed() {
    for (range, expected) in [
        ("[1, 100]", (1, 100, 1)),
        ("[0000, 1000]", (0, 1000, 4)),
        ("[0, 0100]", (0, 100, 4)),
        ("[0, 10]", (0, 10, 1)),
        ("[00, 7]", (0, 7, 2)),
    ] {
        let plan =
            resolve(&text(&format!("{{n: {{range: {range}}}}}"), "[{get: '/${n}'}]"), &[], &[]).unwrap();
        let Rows::Range { start, end, width } = plan.feeds[0].rows else { panic!("a range") };
        assert_eq!((start, end, width), expected, "{range}");
    }
}

#[test]
fn lists() {
    let data = "{pair: {list: [[a, 1], [b, 2]], columns: [x, y]}, one: {list: [p, q]}}";
    let plan = resolve(&text(data, "[{get: '/${x}/${one}'}]"), &[], &[]).unwrap();
    let Rows::List(rows) = &plan.feeds[0].rows else { panic!("a list") };
    assert_eq!(rows[1], [b"b".to_vec(), b"2".to_vec()]);
    assert_eq!(plan.feeds[0].columns.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
    assert_eq!(plan.feeds[1].columns.len(), 1);
}

#[test]
fn what_is_wrong_with_data() {
    for (data, steps, expected) in [
        ("{u: {csv: users.csv}}", "[{get: /}]", "the data source `u` is not used"),
        ("{u: {csv: none.csv}}", "[{get: '/${id}'}]", "cannot read `none.csv`: entity not found"),
        ("{u: {csv: users.csv}}", "[{get: '/${nam}'}]", "unknown template slot `${nam}`"),
        (
            "{u: {csv: users.csv, columns: [a]}}",
            "[{get: '/${a}'}]",
            "1 names for the 3 columns of `plans/users.csv`",
        ),
        (
            "{u: {csv: users.csv, columns: [a, uuid, c]}}",
            "[{get: '/${a}'}]",
            "the column `uuid` of `u` has the name of a template function",
        ),
        (
            "{u: {jsonl: users.csv}}",
            "[{get: '/${a}'}]",
            "the first line of `plans/users.csv` is not a JSON object",
        ),
        (
            "{u: {jsonl: items.jsonl, columns: [nme]}}",
            "[{get: '/${nme}'}]",
            "the first object of `plans/items.jsonl` has no `nme`",
        ),
        (
            "{u: {csv: users.csv}, v: {jsonl: items.jsonl}}",
            "[{get: '/${id}'}]",
            "both `u` and `v` have a column `id`",
        ),
        ("{u: {range: [9, 3]}}", "[{get: '/${u}'}]", "empty range from 9 to below 3"),
        ("{u: {range: [a, 3]}}", "[{get: '/${u}'}]", "`a` is not a whole number"),
        ("{u: {list: [a], order: backwards}}", "[{get: '/${u}'}]", "`backwards` is not an order"),
        (
            "{u: {list: [a], order: random, at_end: stop}}",
            "[{get: '/${u}'}]",
            "`at_end` has no effect: rows that are drawn at random have no end",
        ),
    ] {
        let found: Vec<String> = wrong(data, steps).into_iter().map(|problem| problem.message).collect();
        assert_eq!(found, [expected], "{data}");
    }
}

#[test]
fn a_scenario_that_lists_its_sources_uses_no_other() {
    let text = "
data: {a: {range: [1, 9]}, b: {range: [1, 9]}}
targets: {a: http://a.test}
scenarios: [{data: [a], steps: [{get: '/${b}'}]}, {steps: [{get: '/${b}'}]}]";
    let problems = resolve(text, &[], &[]).unwrap_err();
    let found: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(found, ["`b` is a column of `b`, which the scenario does not use"]);
}

/// A plan of the closed model with three users, or with these settings.
fn of_users(settings: &str, data: &str) -> Result<plimsoll_plan::Plan, Vec<String>> {
    let rest = text(&format!("{{u: {{{data}}}}}"), "[{get: '/${u}'}]");
    let found = resolve(&format!("run: {{{settings}}}\n{rest}"), &[("plans/users.csv", "u\n1\n")], &[]);
    found.map_err(|problems| problems.into_iter().map(|problem| problem.message).collect())
}

#[test]
fn rows_of_users() {
    let plan = of_users("connections: 3", "range: [0, 3], per: user").unwrap();
    assert_eq!((plan.feeds[0].per, plan.feeds[0].at_end, plan.lasting_users()), (Per::User, AtEnd::Fail, 3));
    let plan = of_users("connections: 3, pipeline: 2", "range: [0, 5], per: user, at_end: wrap").unwrap();
    assert_eq!((plan.feeds[0].at_end, plan.lasting_users()), (AtEnd::Wrap, 6));
    let plan = of_users("connections: 3", "range: [0, 2], per: iteration").unwrap();
    assert_eq!((plan.feeds[0].per, plan.feeds[0].at_end), (Per::Iteration, AtEnd::Wrap));
    // The rows of a file are counted when the run begins.
    assert!(of_users("connections: 3", "csv: users.csv, per: user").is_ok());
    assert!(of_users("connections: 3", "range: [0, 2], order: random, per: user").is_ok());
}

#[test]
fn rows_that_users_cannot_keep() {
    for (settings, data, expected) in [
        ("connections: 3", "range: [0, 2], per: user", "`u` has 2 rows for 3 users"),
        (
            "http2: true, connections: 3, max_concurrent_streams: 2",
            "list: [a, b, c, d, e], per: user",
            "`u` has 5 rows for 6 users",
        ),
        (
            "rate: 5",
            "range: [0, 100], per: user",
            "`per: user` has no effect: the open model has no lasting users",
        ),
        (
            "connections: 3",
            "range: [0, 9], per: user, at_end: stop",
            "`at_end: stop` has no meaning for rows that users keep",
        ),
        (
            "connections: 3",
            "range: [0, 9], per: user, share: whole",
            "`share: whole` gives every row to a user of every worker",
        ),
        ("connections: 3", "range: [0, 9], per: run", "`run` is not a use of a row"),
    ] {
        assert_eq!(of_users(settings, data).err(), Some(vec![expected.to_owned()]), "{settings} {data}");
    }
}
