use plimsoll_core::Nanos;
use plimsoll_synth::Kind;
use plimsoll_workloads::ingest::demo::{Demo, Prefix};

use super::super::batch::decode;
use super::super::batch::tests::packed;
use super::super::fault_injector::Fate;
use super::super::store::Limits;
use super::*;

/// The instant of the campaign of the stories below.
const START: i64 = 1_730_282_400_000;

fn store() -> Store {
    let (keep, max_memory) = (100, 1 << 30);
    let flush_delay = Nanos::from_secs(5);
    Store::new(Limits { flush_delay, flush_rows: 1000, keep, max_memory, full_after: None })
}

/// Writes a payload of JSON and makes it visible.
fn write(store: &Store, database: &str, json: &str) {
    let decoded = decode(&packed(json), START * 1000).unwrap();
    store.write(database, decoded.batches, 1, Fate::Stored, Nanos(0)).unwrap();
    store.flush();
}

fn ask(store: &Store, sql: &str) -> Result<QueryResult, Refused> {
    run(store, sql, "default", Nanos(0), || true)
}

/// Columns and rows as JSON.
fn found(store: &Store, sql: &str) -> String {
    let found = ask(store, sql).unwrap_or_else(|refused| panic!("{sql}: {refused:?}"));
    format!("{} {}", found.columns.join(","), found.data)
}

#[test]
fn a_number_behind_a_time_is_refused_with_what_to_write() {
    let store = store();
    write(&store, "default", r#"{"m":"cpu","columns":{"time":[1],"v":[1]}}"#);
    let Err(Refused::Failed(said)) = ask(&store, "SELECT * FROM cpu WHERE time + 300000 > 0") else {
        panic!("it was taken")
    };
    assert!(said.contains("epoch_ms(e.time) + 300000") && said.contains("INTERVAL 5 MINUTE"), "{said}");
}

#[test]
fn times_of_a_whole_measurement_are_those_that_a_walk_over_it_finds() {
    let store = store();
    write(&store, "other", r#"{"m":"cpu","columns":{"time":[1700000000,1700000009],"v":[1,2]}}"#);
    write(&store, "other", r#"{"m":"cpu","columns":{"time":[1600000000],"host":["a"]}}"#);
    let sql = "SELECT COUNT(*), COUNT(CASE WHEN epoch_ms(time) NOT BETWEEN 1700000000000 AND 1700000005000 THEN 1 \
               END), epoch_ms(MIN(time)), epoch_ms(MAX(time)) FROM other.cpu";
    assert!(Words::of(sql).whole_times().is_some());
    let walk = format!("{sql} ORDER BY 1");
    assert!(Words::of(&walk).whole_times().is_none());
    let [known, walked] = [sql, &walk].map(|sql| ask(&store, sql).unwrap());
    assert_eq!(known.data, "[[3,2,1600000000000,1700000009000]]");
    assert_eq!((known.data, known.rows, known.forgotten), (walked.data, walked.rows, walked.forgotten));
    let Err(Refused::Failed(why)) = ask(&store, &sql.replace("cpu", "gpu")) else {
        panic!("it is not there")
    };
    assert!(why.contains("gpu does not exist"), "{why}");
}

#[test]
fn measurements_are_found_by_database_and_name() {
    let store = store();
    write(&store, "default", r#"{"m":"cpu","columns":{"time":[1,2],"host":["a","b"],"v":[1.5,3.0]}}"#);
    write(&store, "other", r#"{"m":"cpu","columns":{"time":[1],"v":[7]}}"#);
    write(&store, "my-db", r#"{"m":"x-y","columns":{"time":[1],"ok":[true],"select":["\"q\"\n"]}}"#);
    for (sql, expected) in [
        ("SELECT COUNT(*) AS n FROM cpu", "n [[2]]"),
        ("SELECT COUNT(*) AS n FROM default.cpu", "n [[2]]"),
        ("SELECT COUNT(*) AS n FROM other.cpu;", "n [[1]]"),
        ("select a.v + b.v as s from \"default\".cpu a, other.cpu b order by s", "s [[8.5],[10]]"),
        (
            "SELECT * FROM cpu ORDER BY v DESC LIMIT 1",
            "time,host,v [[\"1970-01-01T00:00:02.000000Z\",\"b\",3]]",
        ),
        ("SELECT ok, \"select\" FROM \"my-db\".\"x-y\"", "ok,select [[1,\"\\\"q\\\"\\n\"]]"),
        ("SELECT 1 AS one, NULL AS none, 9e999 AS much", "one,none,much [[1,null,null]]"),
        ("SELECT AVG(v) AS a FROM cpu WHERE host = 'zzz'", "a [[null]]"),
    ] {
        assert_eq!(found(&store, sql), expected, "{sql}");
    }
}

/// Symptom: the tables of the demo are in `demo_events` and so on, and a question in `demo` succeeded without
/// columns or rows.
#[test]
fn a_table_that_is_not_there_is_an_error_that_names_those_there() {
    let store = store();
    let questions = ["SELECT COUNT(*) FROM absent", "SELECT * FROM nowhere.cpu", "SELECT v FROM default.mem"];
    for sql in questions {
        assert_eq!(found(&store, sql), " []", "{sql} of nothing at all");
    }
    write(&store, "default", r#"{"m":"cpu","columns":{"time":[1],"v":[1]}}"#);
    write(&store, "demo_events", r#"{"m":"system_events","columns":{"time":[1],"v":[1]}}"#);
    for (sql, said) in [
        (
            questions[0],
            "absent does not exist in the database default: there is default.cpu, demo_events.system_events",
        ),
        (
            questions[1],
            "cpu does not exist in the database nowhere: there is default.cpu, demo_events.system_events",
        ),
        ("SELECT * FROM system_events", "there is default.cpu, demo_events.system_events"),
        ("SELECT * FROM demo.system_events", "there is demo_events.system_events, default.cpu"),
    ] {
        let Err(Refused::Failed(text)) = ask(&store, sql) else { panic!("{sql}: it was taken") };
        assert!(text.starts_with("Catalog Error: Table with name ") && text.ends_with(said), "{sql}: {text}");
    }
    // Rows that are not visible yet are of a table that is there.
    let decoded = decode(&packed(r#"{"m":"mem","columns":{"time":[1],"v":[1]}}"#), START * 1000).unwrap();
    store.write("default", decoded.batches, 1, Fate::Stored, Nanos(0)).unwrap();
    assert_eq!(found(&store, questions[2]), " []");
}

#[test]
fn what_is_wrong_is_told() {
    let store = store();
    write(&store, "default", r#"{"m":"cpu","columns":{"time":[1],"v":[1]}}"#);
    let failed = |text: &str| Err(Refused::Failed(text.to_owned()));
    let told = |sql: &str| match ask(&store, sql) {
        Err(Refused::Failed(text)) => text.split(" in SELECT").next().unwrap_or_default().to_owned(),
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(told("SELEC 1"), "Parser Error: near \"SELEC\": syntax error");
    assert_eq!(told("SELECT w FROM cpu"), "Binder Error: no such column: w");
    assert_eq!(told("SELECT nope(v) FROM cpu"), "Binder Error: no such function: nope");
    assert_eq!(ask(&store, "SELECT epoch_ms('x')"), failed("`x` is not an instant"));
    assert_eq!(ask(&store, "SELECT quantile_cont(v, 2) FROM cpu"), failed("2 is not a quantile from 0 to 1"));
    let own = "WITH x AS (SELECT 1) REPLACE INTO plimsoll.acknowledged (rows) SELECT * FROM x";
    assert_eq!(ask(&store, own), Err(Refused::Dangerous));
    for sql in ["DROP TABLE cpu", "WITH x AS (SELECT 1) DELETE FROM absent", "ATTACH 'f' AS g"] {
        assert_eq!(ask(&store, sql), Err(Refused::Dangerous), "{sql}");
    }
    assert_eq!(ask(&store, "SELECT 1; SELECT 2"), Err(Refused::Multiple));
    let long = "SELECT COUNT(*) FROM generate_series(0, 1000000000)";
    let Err(Refused::Failed(why)) = run(&store, long, "default", Nanos(0), || false) else {
        panic!("it ended")
    };
    assert!(why.starts_with("the query was interrupted"), "{why}");
}

#[test]
fn counts_stay_exact_beyond_what_is_kept() {
    let store = store();
    for _ in 0..30 {
        write(&store, "default", r#"{"m":"cpu","columns":{"v":[1,2,3,4,5,6,7,8,9,10]}}"#);
    }
    let [known, walked] = ["", " WHERE 1"]
        .map(|end| ask(&store, &format!("SELECT COUNT(*) AS n FROM default.cpu{end}")).unwrap());
    assert_eq!((&known, &*known.data, known.forgotten), (&walked, "[[300]]", 200));
    let counted = ask(&store, "SELECT COUNT(*), COUNT(v), SUM(v) FROM cpu").unwrap();
    assert_eq!((&*counted.data, counted.forgotten), ("[[300,100,550]]", 200));
    let known = found(&store, "SELECT measurement, rows, kept FROM plimsoll.acknowledged");
    assert_eq!(known, "measurement,rows,kept [[\"cpu\",300,100]]");
}

#[test]
fn columns_come_and_go_and_change_their_kind() {
    let store = store();
    write(&store, "default", r#"{"m":"m","columns":{"time":[1],"v":[1],"old":["x"]}}"#);
    write(&store, "default", r#"{"m":"m","columns":{"time":[2],"new":[true],"v":[1.5]}}"#);
    assert_eq!(
        found(&store, "SELECT v, old, \"new\" FROM m ORDER BY time"),
        "v,old,new [[\"1\",\"x\",null],[\"1.5\",null,1]]",
        "a column whose kind has changed is of text, as in the real server"
    );
}

#[test]
fn functions_of_duckdb_are_there() {
    let store = store();
    write(&store, "default", r#"{"m":"m","columns":{"time":[1730282400123,2],"v":[1,2]}}"#);
    for (sql, expected) in [
        ("SELECT epoch_ms(time) AS t FROM m WHERE v = 1", "t [[1730282400123]]"),
        ("SELECT epoch_us(time) AS t FROM m WHERE v = 1", "t [[1730282400123000]]"),
        ("SELECT epoch_ms(1730282400123) AS t", "t [[\"2024-10-30T10:00:00.123000Z\"]]"),
        ("SELECT epoch_ms(NULL) AS t", "t [[null]]"),
        ("SELECT quantile_cont(v, 0.25) AS q, median(v) AS m FROM m", "q,m [[1.25,1.5]]"),
        ("SELECT quantile_cont(v, 0.5) AS q FROM m WHERE v > 5", "q [[null]]"),
        ("SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY m.v) AS q FROM m", "q [[1.25]]"),
    ] {
        assert_eq!(found(&store, sql), expected, "{sql}");
    }
}

#[test]
fn the_correlations_of_the_seed_are_answered() {
    let store = store();
    let at = |minutes: i64| START + minutes * 60_000;
    let events = format!(
        r#"{{"m":"system_events","columns":{{"time":[{},{},{}],
            "event_type":["marketing_campaign_started","autoscale_triggered","marketing_campaign_ended"],
            "event_category":["business","infrastructure","business"],"duration_ms":[1800000,0,0],
            "metadata":["{{}}","a","b"]}}}}"#,
        at(0),
        at(5),
        at(30)
    );
    write(&store, "demo_events", &events);
    let metrics = format!(
        r#"{{"m":"system_metrics","columns":{{"time":[{},{},{},{},{}],
            "metric":["cpu_usage","cpu_usage","cpu_usage","memory_usage","cpu_usage"],
            "value":[25.5,91.0,85.0,99.0,30.0]}}}}"#,
        at(-5),
        at(1),
        at(4),
        at(2),
        at(31)
    );
    write(&store, "demo_metrics", &metrics);
    let logs = format!(
        r#"{{"m":"application_logs","columns":{{"time":[{},{},{},{}],"level":["ERROR","INFO","ERROR","ERROR"],
            "service":["a","b","c","d"],"message":["before","fine","pool exhausted","timeout"]}}}}"#,
        at(-1),
        at(2),
        at(11),
        at(12)
    );
    write(&store, "demo_logs", &logs);
    let traces = format!(
        r#"{{"m":"distributed_traces","columns":{{"time":[{},{},{},{},{}],
            "service_name":["api-gateway","api-gateway","api-gateway","order-service","api-gateway"],
            "duration_ns":[45000000,200000000,300000000,1,50000000]}}}}"#,
        at(-10),
        at(1),
        at(30),
        at(2),
        at(40)
    );
    write(&store, "demo_traces", &traces);
    let demo = Demo::new(Prefix::new("demo").unwrap(), START as u64).unwrap();
    let answers = demo.questions().map(|question| found(&store, &question.sql));
    let expected = [
        r#"event_time,event_type,points_above_80,max_cpu,metadata "#.to_owned()
            + r#"[["2024-10-30T10:00:00.000000Z","marketing_campaign_started",2,91,"{}"]]"#,
        r#"errors,first_error,last_error "#.to_owned()
            + r#"[[2,"2024-10-30T10:11:00.000000Z","2024-10-30T10:12:00.000000Z"]]"#,
        r#"log_time,level,service,message "#.to_owned()
            + r#"[["2024-10-30T10:12:00.000000Z","ERROR","d","timeout"],"#
            + r#"["2024-10-30T10:11:00.000000Z","ERROR","c","pool exhausted"]]"#,
        r#"phase,request_count,avg_latency_ms,p95_latency_ms [["before_campaign",1,45,45],"#.to_owned()
            + r#"["during_campaign",2,250,295],["after_campaign",1,50,50]]"#,
    ];
    assert_eq!(answers, expected);
    let counts = Demo::KINDS.map(|kind| found(&store, &demo.count(kind)));
    assert_eq!(counts, [3, 5, 4, 5].map(|count| format!("records [[{count}]]")));
    let latest = found(&store, &Prefix::new("demo").unwrap().latest_campaign());
    assert_eq!(latest, format!("campaign_ms [[{START}]]"));
    // The queries find nothing of another story.
    let later = Demo::new(Prefix::new("demo").unwrap(), START as u64 + 5_400_000).unwrap();
    assert_eq!(found(&store, &later.count(Kind::Logs)), "records [[0]]");
    assert_eq!(
        later.questions().map(|question| found(&store, &question.sql).split_once(' ').unwrap().1.to_owned()),
        ["[]", "[[0,null,null]]", "[]", "[]"]
    );
}
