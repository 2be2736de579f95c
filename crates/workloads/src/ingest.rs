//! Ingest of observability data: batches of metrics, logs, traces and events, at a number of records per
//! second.

mod acknowledgement;
mod advice;
mod batches;
pub mod demo;
mod preset;
mod reconcile;

use plimsoll_document::{
    Document, Field, Flags, MadeDocument, RequestStep, ScenarioSpec, Settings, StepSpec, TargetSpec,
    ThresholdSpec,
};
use plimsoll_synth::{Format, Kind, Problem, Spec, TimeUnit};
use serde_json::Value;

use crate::WorkloadError;
pub use advice::advice;
pub use batches::BATCH;
pub use preset::Preset;
pub use reconcile::{Check, Interface, Store, TableContents, UNKNOWN_TABLE, Window};

/// Default address of the store, as in Arc's scripts.
pub const DEFAULT_URL: &str = "http://127.0.0.1:8000";

/// Keys of the plan whose values are those of one flag of `plimsoll ingest`.
const FLAGS: Flags = Flags::new(&[("store", "--url"), ("x-arc-database", "--database")]);

/// A workload on a store.
#[derive(Clone, Debug, PartialEq)]
pub struct IngestLoad {
    /// URL of the store: scheme, host and port; with a path, batches go there, in any format.
    pub url: String,
    /// Streams of data to send, each with its own rate. Either all of them have a rate, or none has.
    pub streams: Vec<Stream>,
    /// Connections.
    pub connections: Option<u32>,
    /// Batches after which the run ends; where their number is left to us, there are no more connections.
    pub batches: Option<u64>,
    /// Length of the run in seconds, if the load has one of its own.
    pub seconds: Option<u32>,
    /// Thresholds that the run has to meet.
    pub thresholds: Vec<String>,
}

/// Data of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Specification of the data.
    pub spec: Spec,
    /// The database that they go to, as Arc's header names it.
    pub database: Option<String>,
    /// Records per second in total; `None`: as fast as the store answers.
    pub records_per_second: Option<f64>,
}

impl From<Problem> for WorkloadError {
    /// By the names that fields have as flags.
    fn from(Problem { field, message, hint }: Problem) -> Self {
        let flag = match field {
            "start_ms" => "--start-time".to_owned(),
            field => format!("--{}", field.replace('_', "-")),
        };
        let hint = match hint.strip_prefix(field) {
            Some(hint) => format!("{flag}{}", hint.replacen(": ", " ", 1)),
            None => hint,
        };
        Self::new(format!("{flag}: {message}"), hint)
    }
}

/// Records per second of each kind that Arc's script for all of them asks for.
pub const fn unified_rate(kind: Kind) -> f64 {
    match kind {
        Kind::Metrics => 1_000_000.0,
        Kind::Logs | Kind::Events => 500_000.0,
        Kind::Traces => 400_000.0,
    }
}

/// Batches per second that one connection carries if a store answers within 100 ms: most batches take a
/// millisecond, but a flush of the store holds some up for hundreds, and arrivals are not to wait for those.
const BATCHES_PER_CONNECTION: f64 = 10.0;
/// Connections at least and at most where their number is left to us. Arc's own load tests have 50 workers.
const CONNECTIONS: (f64, f64) = (50.0, 500.0);
/// Weights are whole numbers, and of several rates the smallest has this one at least.
const FINEST_WEIGHT: f64 = 1_000.0;

impl IngestLoad {
    /// Batches per second of all streams; `None` without rates.
    ///
    /// # Errors
    /// Some streams have a rate, and some have none.
    pub fn batches_per_second(&self) -> Result<Option<f64>, WorkloadError> {
        let rates: Vec<f64> = self.streams.iter().filter_map(Stream::batches_per_second).collect();
        match rates.len() {
            0 => Ok(None),
            count if count == self.streams.len() => Ok(Some(rates.iter().sum())),
            _ => Err(WorkloadError::new(
                "some kinds have a rate and some have none",
                "give a rate to each kind, or to none",
            )),
        }
    }

    /// Connections: those that are asked for, else enough for the rate; for Prometheus one, which keeps
    /// samples in their order.
    ///
    /// # Errors
    /// As [`batches_per_second`](Self::batches_per_second).
    pub fn connections(&self) -> Result<u32, WorkloadError> {
        let rate = self.batches_per_second()?;
        let (least, most) = CONNECTIONS;
        let enough = match rate {
            _ if self.needs_order() => 1.0,
            Some(rate) => (rate / BATCHES_PER_CONNECTION).ceil().clamp(least, most),
            None => least,
        };
        let most = self.batches.map_or(u32::MAX, |batches| u32::try_from(batches).unwrap_or(u32::MAX).max(1));
        Ok(self.connections.unwrap_or((enough as u32).min(most)))
    }

    /// Returns `true` if the samples of a series have to arrive in the order of their times.
    fn needs_order(&self) -> bool {
        self.streams.iter().any(|stream| stream.spec.format == Format::RemoteWrite)
    }

    /// Returns the plan.
    ///
    /// # Errors
    /// If settings do not go together. Problems of the plan itself show when it is resolved.
    pub fn document(&self) -> Result<MadeDocument, WorkloadError> {
        let rate = self.batches_per_second()?;
        let mut run = Settings::default();
        run.connections = Field::text(self.connections()?.to_string());
        // A request before the load would leave rows in the store that are in no count.
        run.no_preflight = Field::new(true);
        if let Some(rate) = rate {
            run.rate = Field::text(Value::from(rate).to_string());
        }
        if let Some(seconds) = self.seconds {
            run.duration = Field::text(format!("{seconds}s"));
        }
        let mut document = Document::default();
        document.name = Field::text("ingest");
        document.targets.push("store", TargetSpec::new(FLAGS.value("store", self.origin())));
        document.run = Field::new(run);
        let smallest = self.streams.iter().filter_map(Stream::batches_per_second).fold(f64::MAX, f64::min);
        for stream in &self.streams {
            if let Err(problems) = stream.spec.validate() {
                let first = problems.into_iter().next().expect("an error has a problem");
                return Err(first.into());
            }
            stream.spec.check_path(&self.path_of(stream))?;
            let mut scenario = ScenarioSpec::new(self.name(stream), [self.step(stream)]);
            if let (Some(rate), true) = (stream.batches_per_second(), self.streams.len() > 1) {
                let weight = (rate / smallest * FINEST_WEIGHT).round() as u64;
                scenario.weight = Field::text(weight.to_string());
            }
            document.scenarios.push(Field::new(scenario));
        }
        let thresholds = self.thresholds.iter().map(|condition| Field::new(ThresholdSpec::new(condition)));
        document.thresholds = thresholds.collect();
        Ok(MadeDocument { name: "the plan of `plimsoll ingest`".to_owned(), document, flags: FLAGS })
    }

    fn step(&self, stream: &Stream) -> StepSpec {
        let mut request = RequestStep::new("POST", Field::text(self.path_of(stream)));
        request.body.add(&BATCH, batches::batch(&stream.paced()));
        if let Some(database) = &stream.database {
            request.headers.push("x-arc-database", FLAGS.value("x-arc-database", database));
        }
        StepSpec::from(request).named(self.name(stream))
    }

    /// Returns the name that distinguishes a stream: its kind and, if they go to several databases,
    /// its database.
    fn name(&self, stream: &Stream) -> String {
        let kind = stream.spec.kind.name();
        let is_one_of_several = self.streams.iter().any(|other| other.database != stream.database);
        match stream.database.as_deref().filter(|_| is_one_of_several) {
            Some(database) => format!("{kind} {database}"),
            None => kind.to_owned(),
        }
    }

    /// The path for the batches of a stream, with everything that their format needs there.
    fn path_of(&self, stream: &Stream) -> String {
        let spec = &stream.spec;
        self.path().map_or_else(|| spec.default_path(), |path| spec.path_with_precision(&path))
    }

    /// A stream like this one for each of this many databases, whose names have its own, or `default`, in
    /// front and a number from 1 behind. They share its rate.
    #[must_use]
    pub fn over_databases(self, count: u32) -> Self {
        let in_database = |stream: &Stream, number| Stream {
            database: Some(format!("{}_{number}", stream.database.as_deref().unwrap_or("default"))),
            records_per_second: stream.records_per_second.map(|rate| rate / f64::from(count)),
            ..stream.clone()
        };
        let streams =
            (1..=count).flat_map(|number| self.streams.iter().map(move |stream| in_database(stream, number)));
        Self { streams: streams.collect(), ..self }
    }

    /// Returns the reasons why the store may not have every record that it acknowledges, one sentence each,
    /// with advice. `threads` and `connections` are those of the plan.
    pub fn notes(&self, threads: u32, connections: u32) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for note in self.streams.iter().filter_map(|stream| stream.alike(threads)) {
            // Streams that differ only in their databases have the same note.
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        if self.needs_order() && connections > 1 {
            notes.push(format!(
                "batches may overtake each other on {connections} connections, and Prometheus refuses samples \
                 that are older than the newest of their series, or leaves them out although it acknowledges \
                 them: --workers 1 helps, or an out_of_order_time_window in its configuration"
            ));
        }
        notes
    }

    /// When the times of the data begin, in milliseconds since 1970, if that is not when they are made.
    pub fn starts_ms(&self) -> Option<u64> {
        self.streams.iter().filter_map(|stream| stream.spec.start_ms).min()
    }

    /// Scheme, host and port of the store.
    pub fn origin(&self) -> &str {
        self.path_start().map_or(&self.url, |start| &self.url[..start])
    }

    /// The path, if the URL has one that says something.
    fn path(&self) -> Option<String> {
        let path = &self.url[self.path_start()?..];
        (path != "/").then(|| path.to_owned())
    }

    fn path_start(&self) -> Option<usize> {
        let host = self.url.find("://").map_or(0, |scheme| scheme + 3);
        self.url[host..].find('/').map(|slash| host + slash)
    }
}

impl Stream {
    /// Returns the spec of the records, with their times as far apart as their rate says.
    fn paced(&self) -> Spec {
        let mut spec = self.spec.clone();
        if let (None, Some(rate)) = (spec.step_ns, self.records_per_second) {
            spec.step_ns = Some(spec.step_at(rate));
        }
        spec
    }

    /// Returns advice about records with the same series and time, if the store may merge them.
    fn alike(&self, threads: u32) -> Option<String> {
        let spec = self.paced();
        if !spec.knows_points_by_time() || spec.keeps_points_apart(threads) {
            return None;
        }
        let finer = || Spec { time_unit: TimeUnit::Ns, ..self.spec.clone() };
        let finer = (spec.format.has_unit() && spec.time_unit != TimeUnit::Ns).then(finer);
        let is_finer_enough =
            finer.is_some_and(|spec| Self { spec, ..self.clone() }.paced().keeps_points_apart(threads));
        // Without a rate, as many as the step implies.
        let rate = self.records_per_second.unwrap_or(1e9 / spec.step() as f64);
        let cardinality = spec.cardinality_apart(rate, threads).map(|count| format!("--cardinality {count}"));
        let ways = [cardinality, is_finer_enough.then(|| "--time-unit ns".to_owned())];
        let ways: Vec<String> = ways.into_iter().flatten().collect();
        let what_helps = if ways.is_empty() { "a lower rate".to_owned() } else { ways.join(" or ") };
        Some(format!(
            "some {} may have the series and the time (in {}) of others, and a store that knows them by these keeps \
             one of them: {what_helps} helps",
            spec.kind,
            spec.time_unit.name(),
        ))
    }

    fn batches_per_second(&self) -> Option<f64> {
        self.records_per_second.map(|records| records / f64::from(self.spec.batch_size.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(load: &IngestLoad) -> Value {
        serde_json::to_value(load.document().unwrap().document).unwrap()
    }

    fn load(streams: Vec<Stream>) -> IngestLoad {
        IngestLoad {
            url: DEFAULT_URL.to_owned(),
            streams,
            batches: None,
            connections: None,
            seconds: None,
            thresholds: Vec::new(),
        }
    }

    fn stream(kind: Kind, records_per_second: Option<f64>) -> Stream {
        Stream { spec: Spec { kind, ..Spec::default() }, database: None, records_per_second }
    }

    #[test]
    fn a_rate_is_one_of_records() {
        let mut one = load(vec![stream(Kind::Metrics, Some(500_000.0))]);
        one.streams[0].spec.batch_size = 2_000;
        one.streams[0].database = Some("load".to_owned());
        let document = written(&one);
        assert_eq!(document["run"], json!({ "connections": 50, "no_preflight": true, "rate": 250.0 }));
        let step = &document["scenarios"][0]["steps"][0];
        assert_eq!(step["post"], "/api/v1/write/msgpack");
        assert_eq!(step["headers"], json!({ "x-arc-database": "load" }));
        assert_eq!(step["batch"]["batch_size"], 2_000);
        assert_eq!(step["batch"]["step_ns"], 2_000);
        assert_eq!(document["targets"]["store"], "http://127.0.0.1:8000");
    }

    #[test]
    fn all_kinds_have_their_share() {
        let all = load(Kind::ALL.map(|kind| stream(kind, Some(unified_rate(kind)))).to_vec());
        let document = written(&all);
        assert_eq!(
            (&document["run"]["rate"], &document["run"]["connections"]),
            (&json!(2_400.0), &json!(240))
        );
        let weights = [0, 1, 2, 3].map(|number| document["scenarios"][number]["weight"].as_u64().unwrap());
        assert_eq!(weights, [2_500, 1_250, 1_000, 1_250]);
        let mixed = load(vec![stream(Kind::Metrics, Some(1.0)), stream(Kind::Logs, None)]);
        assert!(mixed.document().is_err());
    }

    #[test]
    fn a_path_of_the_url_is_where_batches_go() {
        let to = |url: &str| {
            let load = IngestLoad { url: url.to_owned(), ..load(vec![stream(Kind::Logs, None)]) };
            let document = written(&load);
            let step = document["scenarios"][0]["steps"][0].clone();
            (
                document["targets"]["store"].as_str().unwrap().to_owned(),
                step["post"].as_str().unwrap().to_owned(),
            )
        };
        let expected = ("http://h:1".to_owned(), "/api/v1/write/msgpack".to_owned());
        assert_eq!(to("http://h:1"), expected);
        assert_eq!(to("http://h:1/"), expected);
        assert_eq!(to("http://h:1/take/it"), ("http://h:1".to_owned(), "/take/it".to_owned()));
    }

    #[test]
    fn line_protocol_goes_out_with_its_precision() {
        let to = |url: &str, time_unit| {
            let mut load = IngestLoad { url: url.to_owned(), ..load(vec![stream(Kind::Logs, None)]) };
            load.streams[0].spec.format = Format::InfluxLine;
            load.streams[0].spec.time_unit = time_unit;
            load.document().map(|_| written(&load)["scenarios"][0]["steps"][0]["post"].clone())
        };
        let own = "/api/v1/write/line-protocol";
        for (path, unit, expected) in [
            ("", TimeUnit::Us, "/api/v2/write?precision=us"),
            (own, TimeUnit::Ms, "/api/v1/write/line-protocol?precision=ms"),
            (own, TimeUnit::Ns, "/api/v1/write/line-protocol?precision=ns"),
            ("/write?db=x", TimeUnit::Ms, "/write?db=x&precision=ms"),
            ("/write?db=x&precision=n", TimeUnit::Ns, "/write?db=x&precision=n"),
            // InfluxDB 1 answers `us` with 204 and reads nanoseconds.
            ("/write?db=x", TimeUnit::Us, "/write?db=x&precision=u"),
            ("/api/v2/write?bucket=x", TimeUnit::Us, "/api/v2/write?bucket=x&precision=us"),
        ] {
            assert_eq!(to(&format!("http://h:1{path}"), unit).unwrap(), expected);
        }
        let error = to("http://h:1/write?precision=s", TimeUnit::Ms).unwrap_err();
        assert!(error.to_string().contains("`precision=s` says another unit"), "{error}");
        let error = to("http://h:1/write?precision=us", TimeUnit::Us).unwrap_err();
        assert!(error.to_string().contains("reads such times in ns"), "{error}");
    }

    #[test]
    fn several_databases_share_the_rate() {
        let one = load(vec![stream(Kind::Metrics, Some(9_000.0)), stream(Kind::Logs, Some(3_000.0))]);
        let load = one.over_databases(3);
        let document = written(&load);
        assert_eq!(document["run"]["rate"], 12.0);
        let scenarios = document["scenarios"].as_array().unwrap();
        let of = |scenario: &Value| {
            let step = &scenario["steps"][0];
            assert_eq!(scenario["name"], step["name"]);
            (step["name"].clone(), step["headers"]["x-arc-database"].clone(), scenario["weight"].clone())
        };
        let weight = |kind| if kind == "metrics" { 3_000 } else { 1_000 };
        let expected = [1, 2, 3].into_iter().flat_map(|number| {
            let database = format!("default_{number}");
            ["metrics", "logs"]
                .map(|kind| (json!(format!("{kind} {database}")), json!(database), json!(weight(kind))))
        });
        assert_eq!(scenarios.iter().map(of).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn what_the_store_will_not_keep_is_said_with_what_helps() {
        let notes = |kind, format, rate: Option<f64>, time_unit, connections| {
            let mut load = load(vec![stream(kind, rate)]);
            load.streams[0].spec.format = format;
            load.streams[0].spec.time_unit = time_unit;
            load.notes(1, connections)
        };
        let (remote, line) = (Format::RemoteWrite, Format::InfluxLine);
        for (kind, format, rate, unit, connections, ways) in [
            (Kind::Metrics, Format::Columnar, Some(1e7), TimeUnit::Ms, 9, vec![]),
            (Kind::Logs, Format::LokiPush, None, TimeUnit::Ms, 9, vec![]),
            (Kind::Metrics, remote, Some(6e5), TimeUnit::Ms, 1, vec![]),
            (Kind::Metrics, remote, None, TimeUnit::Ms, 1, vec![]),
            (Kind::Metrics, remote, Some(8e5), TimeUnit::Ms, 1, vec![": --cardinality 800 helps"]),
            (Kind::Metrics, remote, Some(2e6), TimeUnit::Ms, 1, vec![": --cardinality 2000 helps"]),
            (
                Kind::Metrics,
                remote,
                Some(1e3),
                TimeUnit::Ms,
                4,
                vec!["on 4 connections", "--workers 1 helps"],
            ),
            (
                Kind::Metrics,
                line,
                Some(8e5),
                TimeUnit::Ms,
                4,
                vec![": --cardinality 800 or --time-unit ns helps"],
            ),
            (Kind::Logs, line, Some(5e3), TimeUnit::Ms, 4, vec!["some logs may", ": --time-unit ns helps"]),
            (Kind::Logs, line, Some(5e3), TimeUnit::Us, 4, vec![]),
            (Kind::Traces, line, None, TimeUnit::Us, 4, vec![": --time-unit ns helps"]),
            (Kind::Traces, line, None, TimeUnit::Ns, 4, vec![]),
        ] {
            let said = notes(kind, format, rate, unit, connections);
            assert_eq!(said.len(), usize::from(!ways.is_empty()), "{kind} {format} {rate:?}: {said:?}");
            assert!(ways.iter().all(|way| said[0].contains(way)), "{kind} {format} {rate:?}: {said:?}");
        }
        let mut fast = load(vec![stream(Kind::Metrics, Some(2e6))]);
        fast.streams[0].spec.format = remote;
        assert_eq!(fast.connections().unwrap(), 1);
        let said = fast.notes(2, 2);
        assert!(
            said[0].ends_with(": a lower rate helps") && said[1].contains("on 2 connections"),
            "{said:?}"
        );
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let mut wrong = load(vec![stream(Kind::Metrics, None)]);
        wrong.streams[0].spec.batch_size = 0;
        let error = wrong.document().unwrap_err();
        assert_eq!(error.to_string(), "--batch-size: a batch cannot have 0 records");
        assert_eq!(error.hint(), "--batch-size is from 1 to 1000000");
        wrong.streams[0].spec = Spec { format: Format::LokiPush, ..Spec::default() };
        let error = wrong.document().unwrap_err();
        assert_eq!(error.to_string(), "--format: loki-push has no metrics");
        assert!(error.hint().starts_with("--format columnar, row, "), "{}", error.hint());
    }
}
