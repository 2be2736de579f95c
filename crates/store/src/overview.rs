//! Lists that are refreshed all the time: a page of them, and a glance at the latest.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension as _, params, params_from_iter};
use serde::Deserialize;

use crate::reading::{COLUMNS, LATEST_FIRST, kind_of, state_of};
use crate::{Kind, Row, State, Store, StoreError};

/// Most points of a course: a line of a list cannot show more.
const MOST_POINTS: usize = 40;
/// Longest result whose course is read, in bytes: that of some minutes.
const LONGEST_RESULT: i64 = 1 << 20;
/// The columns of an outline.
const OUTLINE: &str = "number, id, kind, coalesce(name, beginning ->> '$.context.name'), state, \
    started_unix_ns, iif(state = 'running', process, NULL)";

/// The name of a run, or else that of its plan.
const NAME_OR_PLAN: &str = " coalesce(name, result ->> '$.run.name') AS name,";
/// Words of outcomes, as lists show them.
const OUTCOMES: [&str; 6] = ["pass", "fail", "done", "no verdict", "no_verdict", "invalid"];
/// The condition that a pattern occurs in the outcome of a run. It reads results, which takes long.
const OF_OUTCOME: &str = " OR replace(coalesce(result ->> '$.verdict.outcome', outcome, ''), '_', ' ') \
    LIKE replace(?1, '\\_', ' ') ESCAPE '\\' OR (valid = 0 AND 'invalid' LIKE ?1 ESCAPE '\\')";
/// Letters from which on a word may mean an outcome.
const FEWEST_LETTERS: usize = 3;

/// A part of a list of runs, and the length of the whole list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The runs, the latest first.
    pub rows: Vec<Row>,
    /// Number of runs in the whole list.
    pub total: u64,
}

/// The little of a run that is read in no time, however large it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outline {
    /// Number of the run in this store.
    pub number: i64,
    /// Id of the run.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// Name of the run; while it goes on and has none, the name of its plan.
    pub name: Option<String>,
    /// Progress of the run.
    pub state: State,
    /// When it began: Unix time in nanoseconds.
    pub started_unix_ns: u64,
    /// The words that identify the process which makes it, as [`Store::begin`] was given them, as long as it
    /// goes on.
    pub process: Option<String>,
}

/// The latest runs in outline, and the number of all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Glance {
    /// The latest runs, the latest first.
    pub latest: Vec<Outline>,
    /// Number of runs.
    pub total: u64,
}

impl Store {
    /// A page of the runs, searches and sweeps in which every one of these words occurs: in the name, which
    /// is that of the plan where a run has none of its own, the id, the URL, a tag or the outcome.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn page(&self, words: &[&str], offset: u64, limit: u64) -> Result<Page, StoreError> {
        let occurs = |(n, word): (usize, &&str)| {
            let of_outcome = if is_of_outcome(word) { OF_OUTCOME } else { "" };
            format!(
                "(name LIKE ?{n} ESCAPE '\\' OR id LIKE ?{n} ESCAPE '\\' OR target LIKE ?{n} ESCAPE '\\' OR \
                 EXISTS (SELECT 1 FROM tags WHERE run = number AND \
                 iif(value = '', tag, tag || '=' || value) LIKE ?{n} ESCAPE '\\') OR \
                 (name IS NULL AND result ->> '$.run.name' LIKE ?{n} ESCAPE '\\'){})",
                of_outcome.replace("?1", &format!("?{n}"))
            )
        };
        let conditions: Vec<String> = (1..).zip(words).map(occurs).collect();
        let conditions = [vec!["TRUE".to_owned()], conditions].concat().join(" AND ");
        let values: Vec<Value> = words.iter().map(|word| pattern(word).into()).collect();
        let bounded = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (limit, offset) = (bounded(limit), bounded(offset));
        let columns = COLUMNS.replacen(" name,", NAME_OR_PLAN, 1);
        let sql = format!(
            "SELECT {columns} FROM runs WHERE {conditions} {LATEST_FIRST} LIMIT {limit} OFFSET {offset}"
        );
        let count = format!("SELECT count(*) FROM runs WHERE {conditions}");
        let page = (|| {
            let total: i64 = self.db.query_row(&count, params_from_iter(&values), |row| row.get(0))?;
            Ok(Page { rows: self.rows(&sql, values)?, total: total.cast_unsigned() })
        })();
        page.map_err(|error| self.failed(error))
    }

    /// The latest runs in outline, at most `limit`, and the number of all.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn glance(&self, limit: u64) -> Result<Glance, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = format!("SELECT {OUTLINE} FROM runs {LATEST_FIRST} LIMIT {limit}");
        let glance = (|| {
            let mut statement = self.db.prepare(&sql)?;
            let latest = statement.query_map([], outline)?.collect::<rusqlite::Result<_>>()?;
            let total: i64 = self.db.query_row("SELECT count(*) FROM runs", [], |row| row.get(0))?;
            Ok(Glance { latest, total: total.cast_unsigned() })
        })();
        glance.map_err(|error| self.failed(error))
    }

    /// Responses per second over the measured part of a run, in a few points of equal length; `None` of a run
    /// that has no result yet, or one that would take long to read.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn course(&self, number: i64) -> Result<Option<Vec<f64>>, StoreError> {
        let sql = "SELECT result FROM runs WHERE number = ?1 AND octet_length(result) <= ?2";
        let result = (|| {
            let mut statement = self.db.prepare(sql)?;
            statement.query_row(params![number, LONGEST_RESULT], |row| row.get::<_, String>(0)).optional()
        })();
        let result = result.map_err(|error| self.failed(error))?;
        Ok(result.and_then(|result| serde_json::from_str::<Told>(&result).ok()).map(|told| told.course()))
    }

    /// The run of this id, in outline; `None` if there is none.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn outline(&self, id: &str) -> Result<Option<Outline>, StoreError> {
        let sql = format!("SELECT {OUTLINE} FROM runs WHERE id = ?1");
        self.db.query_row(&sql, [id], outline).optional().map_err(|error| self.failed(error))
    }
}

/// A result, of which only the rates over time are read.
#[derive(Deserialize)]
struct Told {
    intervals: Vec<Moment>,
}

#[derive(Deserialize)]
struct Moment {
    #[serde(default)]
    warmup: bool,
    #[serde(default)]
    drain: bool,
    achieved_per_s: Option<f64>,
}

impl Told {
    /// Means of neighbouring intervals, whose lengths are nearly equal.
    fn course(&self) -> Vec<f64> {
        let measured = self.intervals.iter().filter(|moment| !moment.warmup && !moment.drain);
        let rates: Vec<f64> = measured.filter_map(|moment| moment.achieved_per_s).collect();
        let joined = rates.len().div_ceil(MOST_POINTS).max(1);
        rates.chunks(joined).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect()
    }
}

fn outline(row: &rusqlite::Row<'_>) -> rusqlite::Result<Outline> {
    Ok(Outline {
        number: row.get(0)?,
        id: row.get(1)?,
        kind: kind_of(&row.get::<_, String>(2)?),
        name: row.get(3)?,
        state: state_of(&row.get::<_, String>(4)?),
        started_unix_ns: row.get::<_, i64>(5)?.cast_unsigned(),
        process: row.get(6)?,
    })
}

/// Returns `true` if a word of a filter may mean an outcome.
fn is_of_outcome(word: &str) -> bool {
    let word = word.to_lowercase();
    word.len() >= FEWEST_LETTERS && OUTCOMES.iter().any(|outcome| outcome.contains(&word))
}

/// A pattern of SQL for texts in which a word occurs.
fn pattern(word: &str) -> String {
    let mut pattern = String::from("%");
    for letter in word.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use plimsoll_report::Searched;
    use rusqlite::Connection;

    use super::*;
    use crate::schema::{MIGRATIONS, migrate};
    use crate::{Labels, Tag};

    /// A store with 10,000 runs, a second after one another; the tenth of each ten goes on, and is tagged.
    fn store() -> Store {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, MIGRATIONS).unwrap();
        db.execute_batch(
            "INSERT INTO runs (id, name, state, started_at, started_unix_ns, tool_version, plan_hash, seed, model, target)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
             SELECT printf('%08x', i), iif(i % 2, 'odd_one', NULL), iif(i % 10, 'finished', 'running'), 't',
                    i * 1000000000, '1', 'hash', 1, 'open', 'http://a.test/' || i FROM n;
             INSERT INTO tags SELECT number, 'branch', 'main' FROM runs WHERE number % 10 = 0;
             INSERT INTO tags SELECT number, '100%', '' FROM runs WHERE number = 7;",
        )
        .unwrap();
        Store::new(db, std::path::Path::new("memory"))
    }

    #[test]
    fn pages_follow_one_another_and_the_whole_is_counted() {
        let store = store();
        let page = store.page(&[], 20, 10).unwrap();
        assert_eq!(page.total, 10_000);
        let numbers: Vec<i64> = page.rows.iter().map(|row| row.number).collect();
        assert_eq!(numbers, (9_971..=9_980).rev().collect::<Vec<_>>());
        assert_eq!(store.page(&[], 9_995, 10).unwrap().rows.len(), 5);
        assert_eq!(store.page(&[], 20_000, 10).unwrap().rows.len(), 0);
        assert_eq!(store.page(&[], 0, 10_000).unwrap().rows.len(), 10_000);
    }

    /// Symptom: a saved search was in no list of the page in the browser. Nobody who opens a run gets one.
    #[test]
    fn a_search_is_in_lists_and_on_pages_and_is_no_run() {
        let json = r#"{"schema_version": 1, "tool": {"name": "plimsoll", "version": "1"},
            "search": {"id": "abcdef01", "seed": 1, "started_at": "t", "started_at_unix_ns": 20000000000000,
                "duration_s": 9.5, "args": [], "plan_hash": "hash", "load": "open", "slo": [],
                "confidence": 0.95, "targets": ["http://b.test/"], "precision": 0.05, "trial_s": 2.0, "host": {"hostname": "",
                "kernel": "", "cpu_model": "", "cpus": 1, "governor": null, "memory_bytes": 0,
                "soft_descriptors": 0}},
            "capacity": {"low_per_s": 800.0, "high_per_s": 835.0, "requests_per_iteration": 1.0,
                "confirmed": true, "after_overload_per_s": null, "end": "narrow", "statement": "",
                "notes": []},
            "levels": [], "trials": []}"#;
        let searched = Searched::from_json(json.as_bytes()).unwrap().expect("it is a search");
        let mut store = store();
        let before = store.glance(3).unwrap();
        let tags = vec![Tag { name: "branch".to_owned(), value: "main".to_owned() }];
        store.keep(&searched, &Labels { name: Some("cap".to_owned()), tags: tags.clone() }).unwrap();
        let row = store.latest(0).unwrap().expect("it began last");
        assert_eq!((row.kind, row.name.as_deref(), &row.tags), (Kind::Search, Some("cap"), &tags));
        let said = (row.answer.as_deref(), row.outcome.as_deref(), row.target.as_str());
        assert_eq!(said, (Some("800/s to 835/s"), Some("done"), "http://b.test/"));
        assert_eq!(store.by_id("abcd").unwrap(), std::slice::from_ref(&row));
        assert_eq!(store.read_search(row.number).unwrap(), Some(searched));
        assert_eq!(store.read(row.number).unwrap(), None);
        assert_eq!(store.read_search(1).unwrap(), None, "it is a run");
        let page = store.page(&[], 0, 1).unwrap();
        assert_eq!((page.total, &page.rows), (10_001, &vec![row.clone()]));
        assert_eq!(store.page(&["cap", "main"], 0, 2).unwrap().total, 1);
        assert_ne!(store.glance(3).unwrap(), before, "a list that is looked at has news");
        assert_eq!(store.outline("abcdef01").unwrap().map(|outline| outline.kind), Some(Kind::Search));
        store.remove(&[row.number]).unwrap();
        assert_eq!(store.by_id("abcd").unwrap(), []);
    }

    #[test]
    fn every_word_has_to_occur_and_means_itself() {
        let store = store();
        let total = |words: &[&str]| store.page(words, 0, 1).unwrap().total;
        assert_eq!((total(&["odd_one"]), total(&["ODD"]), total(&["oddXone"])), (5_000, 5_000, 0));
        assert_eq!((total(&["branch"]), total(&["branch=main"]), total(&["branch=dev"])), (1_000, 1_000, 0));
        assert_eq!((total(&["branch=main", "odd"]), total(&["branch=main", "a.test/10"])), (0, 13));
        assert_eq!((total(&["100%"]), total(&["0%"]), total(&["%"]), total(&["_"])), (1, 1, 1, 5_000));
        assert_eq!((total(&["\\"]), total(&["' OR 1=1 --"]), total(&["0000270f"])), (0, 0, 1));
    }

    /// Symptom: "fail" and "invalid" found no run, and a run without a name of its own was listed by its
    /// target.
    #[test]
    fn a_run_is_found_by_its_outcome_and_by_the_name_of_its_plan() {
        let store = store();
        let set = |number: i64, result: &str, valid: i64| {
            let sql = "UPDATE runs SET result = ?2, valid = ?3 WHERE number = ?1";
            store.db.execute(sql, params![number, result, valid]).unwrap();
        };
        set(2, r#"{"run": {"name": "Shop"}, "verdict": {"outcome": "fail"}}"#, 1);
        set(3, r#"{"run": {"name": "of the plan"}, "verdict": {"outcome": "no_verdict"}}"#, 0);
        let found = |words: &[&str]| {
            let page = store.page(words, 0, 9).unwrap();
            page.rows.into_iter().map(|row| (row.number, row.name)).collect::<Vec<_>>()
        };
        let (shop, odd) = ((2, Some("Shop".to_owned())), (3, Some("odd_one".to_owned())));
        assert_eq!((found(&["FAIL"]), found(&["shop"])), (vec![shop.clone()], vec![shop]));
        assert_eq!((found(&["invalid"]), found(&["no_verdict"])), (vec![odd.clone()], vec![odd.clone()]));
        assert_eq!((found(&["verdict"]), found(&["of", "plan"])), (vec![odd], vec![]));
    }

    /// Symptom: the list had DONE for a run whose page says that it was stopped early.
    #[test]
    fn a_run_that_ended_before_its_time_is_known_as_such() {
        let store = store();
        for (run, expected) in [
            (r#"{"ended_by_threshold": "p99<1ms"}"#, true),
            (r#"{"interrupted_by_signal": 2, "stopped_by": null}"#, true),
            (r#"{"stopped_by": "http"}"#, true),
            (r#"{"ended_by_threshold": null, "interrupted_by_signal": null, "stopped_by": null}"#, false),
            ("{}", false),
        ] {
            let result = format!(r#"{{"run": {run}}}"#);
            store.db.execute("UPDATE runs SET result = ?1 WHERE number = 10000", [result]).unwrap();
            assert_eq!(store.page(&[], 0, 1).unwrap().rows[0].stopped_early, expected, "{run}");
        }
    }

    #[test]
    fn a_course_has_few_points_of_the_measured_part() {
        let store = store();
        let moment = |number: usize| {
            format!("{{\"warmup\": {}, \"achieved_per_s\": {}, \"more\": [1]}}", number < 20, number / 10)
        };
        let result = |count: usize| {
            let moments: Vec<String> = (0..count).map(moment).collect();
            format!("{{\"intervals\": [{}]}}", moments.join(","))
        };
        let keep = |number: i64, result: &str| {
            store
                .db
                .execute("UPDATE runs SET result = ?2 WHERE number = ?1", params![number, result])
                .unwrap();
        };
        keep(1, &result(23));
        keep(2, &result(20 + 80));
        keep(3, "{}");
        keep(4, &format!("{}{}", result(30), " ".repeat(LONGEST_RESULT as usize)));
        assert_eq!(store.course(1).unwrap(), Some(vec![2.0, 2.0, 2.0]));
        let course = store.course(2).unwrap().unwrap();
        assert_eq!((course.len(), course[0], course[39]), (MOST_POINTS, 2.0, 9.0));
        assert_eq!((store.course(3).unwrap(), store.course(4).unwrap()), (None, None));
        assert_eq!((store.course(5).unwrap(), store.course(0).unwrap()), (None, None));
    }

    #[test]
    fn a_glance_has_the_latest_and_tells_of_changes() {
        let store = store();
        let glance = store.glance(3).unwrap();
        let states: Vec<State> = glance.latest.iter().map(|outline| outline.state).collect();
        assert_eq!((glance.total, states), (10_000, vec![State::Running, State::Finished, State::Finished]));
        assert_eq!(store.glance(3).unwrap(), glance);
        store.db.execute("UPDATE runs SET state = 'finished' WHERE number = 10000", []).unwrap();
        assert_ne!(store.glance(3).unwrap(), glance);
        let outline = store.outline("0000000a").unwrap().unwrap();
        assert_eq!((outline.number, outline.state), (10, State::Running));
        assert_eq!(store.outline("0000").unwrap(), None);
        let set = "UPDATE runs SET beginning = '{\"context\": {\"name\": \"Shop\"}}' WHERE number = 10";
        store.db.execute(set, []).unwrap();
        assert_eq!(store.outline("0000000a").unwrap().unwrap().name.as_deref(), Some("Shop"));
    }
}
