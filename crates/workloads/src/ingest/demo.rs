//! The demonstration: a story in four databases of a store with Arc's HTTP API, and the queries about it.
//!
//! The SQL is such that DuckDB, which is in Arc, and SQLite, which is in `plimsoll target ingest`, answer it
//! alike: instants are compared as numbers, by DuckDB's `epoch_ms`. Databases stand in it without quotes: Arc
//! does not find them in any other way.

use plimsoll_synth::campaign::{StoryBatch, span};
use plimsoll_synth::{Format, Kind, Spec};
use serde_json::{Value, json};

use super::reconcile::SQL;
use crate::WorkloadError;

/// The longest name of a database.
const LONGEST: usize = 64;
/// Instants that Arc takes for milliseconds: it guesses units by the size of the number.
const MILLISECONDS: std::ops::Range<u64> = 10_000_000_000..10_000_000_000_000;

/// Prefix of the names of the four databases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// Arc's rule for names of databases, except for hyphens: Arc does not find a quoted name in SQL, and
    /// others cannot have them.
    ///
    /// # Errors
    /// The form of a prefix.
    pub fn new(prefix: &str) -> Result<Self, WorkloadError> {
        let most = LONGEST - Kind::ALL.map(|kind| kind.name().len() + 1).into_iter().max().unwrap_or(0);
        let may = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let good = prefix.starts_with(|first: char| first.is_ascii_alphabetic())
            && prefix.chars().all(may)
            && prefix.len() <= most;
        if good {
            return Ok(Self(prefix.to_owned()));
        }
        Err(WorkloadError::new(
            format!("`{}` cannot begin the names of databases", prefix.escape_debug()),
            format!(
                "it must start with a letter and contain only letters, digits and underscores (at most {most} \
                 characters; Arc takes hyphens, too, but cannot be asked about databases with them)"
            ),
        ))
    }

    /// The database of a kind.
    pub fn database(&self, kind: Kind) -> String {
        format!("{}_{kind}", self.0)
    }

    /// Returns the SQL name of the table with the records of a kind.
    fn table(&self, kind: Kind) -> String {
        format!("{}.{}", self.database(kind), kind.measurement())
    }

    /// SQL for the instant, in milliseconds since the epoch, at which the latest campaign of the databases
    /// began: one row with one number, with null, or with nothing at all if there is none.
    pub fn latest_campaign(&self) -> String {
        format!(
            "SELECT MAX(epoch_ms(e.time)) AS campaign_ms\nFROM {} e\nWHERE e.event_type = \
             'marketing_campaign_started'",
            self.table(Kind::Events)
        )
    }
}

/// Condition: a line is of the time of an event.
const WHILE_IT_LASTS: &str = "l.time BETWEEN e.time AND e.time + INTERVAL (e.duration_ms) MILLISECOND";

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Name for programs.
    pub name: &'static str,
    /// The question in words, for people.
    pub title: &'static str,
    /// The question in SQL. The answer is shorter than 64 KiB.
    pub sql: String,
    /// A condition of the question as Arc's guide has it, with the number behind a time as the interval that
    /// Arc wants there.
    pub with_interval: &'static str,
}

/// A story in the databases of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demo {
    prefix: Prefix,
    campaign_ms: u64,
}

impl Demo {
    /// Kinds in the order of the report.
    pub const KINDS: [Kind; 4] = [Kind::Events, Kind::Metrics, Kind::Logs, Kind::Traces];

    /// The story of a campaign that begins at `campaign_ms`, in milliseconds since the epoch.
    ///
    /// # Errors
    /// The time is one that Arc would read in another unit.
    pub fn new(prefix: Prefix, campaign_ms: u64) -> Result<Self, WorkloadError> {
        let story = span(campaign_ms);
        if campaign_ms < MILLISECONDS.end
            && MILLISECONDS.contains(&story.start)
            && story.end < MILLISECONDS.end
        {
            return Ok(Self { prefix, campaign_ms });
        }
        Err(WorkloadError::new(
            format!("{campaign_ms} ms since 1970 is not a time of a campaign"),
            "it has to lie between 1971 and 2286; a number is in milliseconds, as in 1767225600000",
        ))
    }

    /// When the campaign begins, in milliseconds since the epoch.
    pub fn campaign_ms(&self) -> u64 {
        self.campaign_ms
    }

    /// The database of a kind.
    pub fn database(&self, kind: Kind) -> String {
        self.prefix.database(kind)
    }

    /// The step of a plan that writes a batch of the story. Its body is to be replaced: a plan itself makes
    /// other records.
    pub fn write(&self, batch: &StoryBatch) -> Value {
        let spec = Spec {
            kind: batch.kind,
            format: Format::Columnar,
            batch_size: batch.records as u32,
            ..Spec::default()
        };
        json!({
            "name": batch.kind.name(),
            "post": spec.default_path(),
            "headers": { "x-arc-database": self.database(batch.kind) },
            "batch": spec,
        })
    }

    /// SQL for how many records of a kind the store has of the time of the story: one row with one number, or
    /// nothing at all for none.
    pub fn count(&self, kind: Kind) -> String {
        let within = self.within("time");
        format!("SELECT COUNT(*) AS records\nFROM {}\nWHERE {within}", self.prefix.table(kind))
    }

    /// The questions, in the order in which they are asked.
    pub fn questions(&self) -> [Question; 4] {
        [self.spikes(), self.errors(), self.latest_errors(), self.latency()]
    }

    /// Condition: an instant is of the time of the story.
    fn within(&self, instant: &str) -> String {
        let story = span(self.campaign_ms);
        format!("epoch_ms({instant}) BETWEEN {} AND {}", story.start, story.end - 1)
    }

    fn spikes(&self) -> Question {
        let [events, metrics] = [Kind::Events, Kind::Metrics].map(|kind| self.prefix.table(kind));
        let within = self.within("e.time");
        let sql = format!(
            "SELECT e.time AS event_time, e.event_type, COUNT(*) AS points_above_80, MAX(m.value) AS max_cpu,
       e.metadata
FROM {events} e
JOIN {metrics} m
  ON epoch_ms(m.time) BETWEEN epoch_ms(e.time) AND epoch_ms(e.time) + 300000
 AND m.metric = 'cpu_usage' AND m.value > 80
WHERE e.event_category = 'business' AND {within}
GROUP BY e.time, e.event_type, e.metadata
ORDER BY e.time DESC
LIMIT 20"
        );
        Question {
            name: "spikes",
            title: "What happened when CPU spiked",
            sql,
            with_interval: "m.time BETWEEN e.time AND e.time + INTERVAL 5 MINUTE",
        }
    }

    /// The errors of the campaign, and the campaign.
    fn errors_of_campaign(&self) -> String {
        let [events, logs] = [Kind::Events, Kind::Logs].map(|kind| self.prefix.table(kind));
        format!(
            "FROM {events} e
JOIN {logs} l
  ON epoch_ms(l.time) BETWEEN epoch_ms(e.time) AND epoch_ms(e.time) + e.duration_ms
 AND l.level = 'ERROR'
WHERE {}",
            self.is_campaign()
        )
    }

    /// Condition: an event is the start of the campaign of this story.
    fn is_campaign(&self) -> String {
        let instant = self.campaign_ms;
        format!("e.event_type = 'marketing_campaign_started' AND epoch_ms(e.time) = {instant}")
    }

    fn errors(&self) -> Question {
        let sql = format!(
            "SELECT COUNT(*) AS errors, MIN(l.time) AS first_error, MAX(l.time) AS last_error\n{}",
            self.errors_of_campaign()
        );
        Question { name: "errors", title: "Errors during the campaign", sql, with_interval: WHILE_IT_LASTS }
    }

    fn latest_errors(&self) -> Question {
        let sql = format!(
            "SELECT l.time AS log_time, l.level, l.service, l.message
{}
ORDER BY l.time DESC
LIMIT 10",
            self.errors_of_campaign()
        );
        Question {
            name: "latest_errors",
            title: "The latest errors during the campaign",
            sql,
            with_interval: WHILE_IT_LASTS,
        }
    }

    fn latency(&self) -> Question {
        let [events, traces] = [Kind::Events, Kind::Traces].map(|kind| self.prefix.table(kind));
        let (is_campaign, within) = (self.is_campaign(), self.within("t.time"));
        let sql = format!(
            "SELECT CASE WHEN epoch_ms(t.time) < epoch_ms(e.time) THEN 'before_campaign'
            WHEN epoch_ms(t.time) <= epoch_ms(e.time) + 1800000 THEN 'during_campaign'
            ELSE 'after_campaign' END AS phase,
       COUNT(*) AS request_count,
       AVG(t.duration_ns / 1000000.0) AS avg_latency_ms,
       quantile_cont(t.duration_ns / 1000000.0, 0.95) AS p95_latency_ms
FROM {traces} t
CROSS JOIN {events} e
WHERE {is_campaign}
  AND t.service_name = 'api-gateway' AND {within}
GROUP BY phase
ORDER BY MIN(t.time)"
        );
        Question {
            name: "latency",
            title: "Latency before, during and after the campaign",
            sql,
            with_interval: "t.time BETWEEN e.time AND e.time + INTERVAL 30 MINUTE",
        }
    }
}

/// The step of a plan that asks in SQL. It names no database: Arc refuses those in SQL if one is.
pub fn ask(sql: &str) -> Value {
    json!({ "post": SQL, "json": { "sql": sql } })
}

#[cfg(test)]
mod tests {
    use plimsoll_synth::campaign::story;

    use super::*;

    const CAMPAIGN: u64 = 1_730_282_400_000;

    fn demo(prefix: &str) -> Demo {
        Demo::new(Prefix::new(prefix).unwrap(), CAMPAIGN).unwrap()
    }

    #[test]
    fn prefixes_are_those_that_arc_takes_in_sql() {
        let longest = format!("a{}", "_".repeat(55));
        for good in ["demo", "D2_x", "a", &longest] {
            assert!(Prefix::new(good).is_ok(), "{good}");
        }
        let long = format!("{longest}b");
        for bad in ["", "1demo", "_demo", "my-demo", "a.b", "a b", "a\"b", "dämo", "a;--", &long] {
            let error = Prefix::new(bad).unwrap_err();
            assert!(error.hint().contains("start with a letter"), "{bad}: {error}");
        }
        assert_eq!(demo(&longest).database(Kind::Metrics).len(), LONGEST);
    }

    #[test]
    fn campaigns_are_of_a_time_that_arc_reads_in_milliseconds() {
        let at = |campaign_ms| Demo::new(Prefix::new("demo").unwrap(), campaign_ms);
        let half_an_hour = 1_800_000;
        assert!(at(MILLISECONDS.start + half_an_hour).is_ok());
        for bad in [0, 1_730_282_400, MILLISECONDS.start + half_an_hour - 1, MILLISECONDS.end - 1, u64::MAX] {
            assert!(at(bad).unwrap_err().hint().contains("milliseconds"), "{bad}");
        }
    }

    #[test]
    fn every_batch_goes_to_the_database_of_its_kind() {
        let steps = story(CAMPAIGN, 1).map(|batch| demo("x").write(&batch));
        let of =
            |step: &Value| (step["headers"]["x-arc-database"].clone(), step["batch"]["batch_size"].clone());
        let expected = [("x_metrics", 1_800), ("x_logs", 5_000), ("x_traces", 3_000), ("x_events", 4)];
        assert_eq!(steps.each_ref().map(of), expected.map(|(name, count)| (json!(name), json!(count))));
        assert!(steps.iter().all(|step| step["post"] == "/api/v1/write/msgpack"));
    }

    #[test]
    fn questions_are_about_one_story_in_the_databases_of_one_prefix() {
        for Question { name, sql, .. } in demo("shop").questions() {
            assert!(sql.contains("FROM shop_") && sql.contains("JOIN shop_"), "{name}: {sql}");
            assert!(!sql.contains("demo_") && !sql.contains('"'), "{name}: {sql}");
            assert!(
                sql.contains("1730282400000") || sql.contains("1730280600000 AND 1730285999999"),
                "{sql}"
            );
        }
        let count = demo("shop").count(Kind::Logs);
        assert!(
            count.contains("shop_logs.application_logs\nWHERE epoch_ms(time) BETWEEN 17302806"),
            "{count}"
        );
    }
}
