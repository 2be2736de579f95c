//! Load on a cache: values are stored under keys, read back and forgotten.

use plimsoll_document::{
    AddedStep, Document, ExpectSpec, Field, Flags, MadeDocument, MatchSpec, RequestStep, ScenarioSpec,
    SetStep, Settings, StepSpec, TargetSpec, Text, ThresholdSpec,
};
use plimsoll_plan::step_value;
use plimsoll_workloads::WorkloadError;
use plimsoll_workloads::key_value::{self, DEFAULT_KEYS, KeyPattern, Weights};
use serde_json::json;

use crate::REQUEST;
use crate::spec::CacheSpec;

/// Keys of the plan whose values are those of one flag of `plimsoll cache`.
const FLAGS: Flags = Flags::new(&[
    ("server", "--server or --cache"),
    ("http", "--compare-http"),
    ("value_size", "--value-size"),
]);
/// Bytes of the longest key that the patterns make: filling up to a length must not lose any of them.
const SHORTEST_FILLED_KEY: u32 = 32;
/// Bytes of a payload of the protocol at most: a longer frame ends the connection.
const LONGEST_PAYLOAD: u64 = 8 << 20;
/// Bytes of a payload beside names, keys and values: the operation, and three lengths.
const PAYLOAD_HEAD: u64 = 13;
/// Bytes of the longest key that has no length of its own: `key-` and a number of 64 bits.
const LONGEST_KEY: u32 = 24;
/// A key that is always the same, as Carbon's load test has it.
const FIXED_KEY: &str = "fixed-key";
/// Operations of a mix.
const OPERATIONS: [&str; 3] = ["put", GET, "delete"];
/// The step of a GET.
pub(crate) const GET: &str = "get";
/// Carbon's target of its average, in milliseconds.
pub(crate) const CARBON_AVERAGE_MS: f64 = 1.0;
/// Bytes of a value that say which key it belongs to, at most.
const LONGEST_MARK: u32 = 48;

/// A workload on a cache.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CacheLoad {
    /// `host[:port]` of the server.
    pub(crate) server: String,
    /// Name of the cache.
    pub(crate) cache: String,
    /// API through which the cache is accessed.
    pub(crate) api: Api,
    /// Operations of an iteration.
    pub(crate) mix: Mix,
    /// Pattern of the keys.
    pub(crate) keys: KeyPattern,
    /// Bytes of a key; `None`: as short as they come.
    pub(crate) key_size: Option<u32>,
    /// Bytes of a value, as `fill` in a template has them: `100`, `100-2000`, `exp:500`.
    pub(crate) value_size: String,
    /// `true` if a GET has to return the value that was put.
    pub(crate) verify: bool,
    /// Iterations, connections and rate that are part of the workload: flags replace them.
    pub(crate) size: Size,
    /// `true` if the size, or a flag that replaces it, sets a number of iterations per second.
    pub(crate) is_paced: bool,
    /// Iterations that may be under way at the same time, at most.
    pub(crate) at_once: u64,
    /// Performance targets that the run has to meet.
    pub(crate) targets: Targets,
}

/// API of a cache. Keys and values are the same for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Api {
    /// By its protocol of framed TCP.
    #[default]
    Tcp,
    /// By its HTTP API at this URL, without a slash at its end.
    Http(String),
}

/// Size of the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Iterations, if they are limited.
    pub(crate) iterations: Option<u64>,
    /// Connections.
    pub(crate) connections: u32,
    /// Iterations per second, if there is a rate.
    pub(crate) rate: Option<u64>,
}

/// The test scenarios of Carbon's own description of its load test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preset {
    /// "Maximum Throughput".
    Max,
    /// "Sustained Load".
    Sustained,
    /// "High Concurrency".
    Concurrency,
    /// "Rate-Limited".
    RateLimited,
}

impl Preset {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Max, Self::Sustained, Self::Concurrency, Self::RateLimited];

    /// The word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Sustained => "sustained",
            Self::Concurrency => "concurrency",
            Self::RateLimited => "rate-limited",
        }
    }

    /// Returns the size of the load.
    pub(crate) const fn size(self) -> Size {
        let (iterations, connections, rate) = match self {
            Self::Max => (50_000, 200, None),
            Self::Sustained => (100_000, 50, Some(5_000)),
            Self::Concurrency => (10_000, 500, None),
            Self::RateLimited => (60_000, 10, Some(1_000)),
        };
        Size { iterations: Some(iterations), connections, rate }
    }
}

/// Performance targets of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Targets {
    /// Nothing.
    #[default]
    None,
    /// The table of targets in Carbon's description of its load test. The target for the throughput is about
    /// the server's capacity: it is left out where the load has a rate. That of the average is one of wall
    /// time by operations, which a throughput on target implies; it is one of response times where there is a
    /// rate.
    Carbon,
}

/// Operations that one iteration performs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// A PUT, and then a GET of the same key.
    PutGet,
    /// A PUT, a GET and a DELETE of the same key, one after the other.
    PutGetDelete,
    /// One operation, each as often as its weight says.
    Weighted(Weights),
}

/// Requirement on the result of a GET.
enum Wanted {
    /// A value or none.
    Anything,
    /// Any value.
    Found,
    /// A value with this prefix.
    Begins(String),
    /// This value.
    Is(String),
}

impl Mix {
    /// Returns `true` if a GET comes after the PUT of its key, whose value it has to have.
    pub(crate) const fn knows_values(&self) -> bool {
        matches!(self, Self::PutGet | Self::PutGetDelete)
    }

    /// Reads `put+get`, `put+get+delete`, one operation, or weights: `put=1,get=9`.
    ///
    /// # Errors
    /// If it is none of them.
    pub(crate) fn parse(text: &str) -> Result<Self, WorkloadError> {
        match text {
            "put+get" => return Ok(Self::PutGet),
            "put+get+delete" => return Ok(Self::PutGetDelete),
            _ => {}
        }
        key_value::parse_weights(text, &OPERATIONS).map(Self::Weighted).ok_or_else(|| {
            WorkloadError::new(
                format!("`{text}` is not a mix of operations"),
                "write put+get, put+get+delete, put, get, delete, or weights from 1 to 1000 such as put=1,get=9",
            )
        })
    }
}

impl Default for CacheLoad {
    /// As Carbon's own load test: 10,000 times a PUT and a GET of a key of its own, on 100 connections.
    fn default() -> Self {
        Self {
            server: "127.0.0.1:5500".to_owned(),
            cache: "perf_test".to_owned(),
            api: Api::Tcp,
            mix: Mix::PutGet,
            keys: KeyPattern::Sequential(None),
            key_size: None,
            value_size: "100".to_owned(),
            verify: true,
            size: Size { iterations: Some(10_000), connections: 100, rate: None },
            is_paced: false,
            at_once: 100,
            targets: Targets::None,
        }
    }
}

impl CacheLoad {
    /// Returns the plan.
    ///
    /// # Errors
    /// If settings do not go together. Problems of the plan itself show when it is resolved.
    pub(crate) fn document(&self) -> Result<MadeDocument, WorkloadError> {
        let Size { iterations, connections, rate } = self.size;
        self.check_sizes()?;
        // A connection without an iteration would be an error.
        let connections = iterations.map_or(connections, |all| u64::from(connections).min(all) as u32);
        let mut run = Settings::default();
        run.connections = Field::text(connections.to_string());
        if let Some(iterations) = iterations {
            run.iterations = Field::text(iterations.to_string());
        }
        if let Some(rate) = rate {
            run.rate = Field::text(rate.to_string());
        }
        let target = match &self.api {
            Api::Tcp => FLAGS.value("server", format!("carbon://{}/{}", self.server, self.cache)),
            Api::Http(url) => FLAGS.value("http", url),
        };
        let mut document = Document::default();
        document.name = Field::text("cache");
        document.targets.push("cache", TargetSpec::new(target));
        document.run = Field::new(run);
        document.scenarios = self.scenarios()?.into_iter().map(Field::new).collect();
        let thresholds = self.thresholds().into_iter();
        document.thresholds = thresholds.map(|condition| Field::new(ThresholdSpec::new(condition))).collect();
        Ok(MadeDocument { name: "the plan of `plimsoll cache`".to_owned(), document, flags: FLAGS })
    }

    fn scenarios(&self) -> Result<Vec<ScenarioSpec>, WorkloadError> {
        match &self.mix {
            Mix::PutGet => Ok(vec![ScenarioSpec::new("put+get", self.put_and_get()?)]),
            Mix::PutGetDelete if self.keys.is_shared(self.at_once) => Err(WorkloadError::new(
                "put+get+delete needs keys that no other iteration has: it would delete what others read",
                "write --key sequential, without --keys or with more than there are connections",
            )),
            Mix::PutGetDelete => Ok(vec![ScenarioSpec::new("put+get+delete", self.put_get_and_delete()?)]),
            Mix::Weighted(_) if self.verify => Err(WorkloadError::new(
                "only put+get and put+get+delete know which value a GET has to have",
                "leave out --verify, or use --mix put+get",
            )),
            Mix::Weighted(parts) => {
                let key = self.filled(&self.key())?;
                Ok(key_value::weighted(parts, |operation| match operation {
                    "put" => self.put(&key, self.value("${sequence}")),
                    // The key need not exist: a miss is an answer.
                    GET => self.get(&key, &Wanted::Anything),
                    _ => self.delete(&key),
                }))
            }
        }
    }

    fn put_get_and_delete(&self) -> Result<Vec<StepSpec>, WorkloadError> {
        let mut steps = self.put_and_get()?;
        // A key that differs at each use was drawn before, and one of these would be shared.
        let delete = self.delete(&self.filled(&self.key())?);
        steps.push(delete);
        Ok(steps)
    }

    /// A PUT and a GET, and before them the steps that both need.
    fn put_and_get(&self) -> Result<Vec<StepSpec>, WorkloadError> {
        let mut set = SetStep::default();
        let template = self.filled(&self.key())?;
        let is_shared = self.keys.is_shared(self.at_once);
        // A drawn key differs at each use, and the expectation for a reply can name only variables.
        let is_set = self.keys.is_drawn() || (self.verify && is_shared && self.keys != KeyPattern::Fixed);
        let key = match is_set {
            true => {
                set.set.push("key", Field::text(template));
                "${key}".to_owned()
            }
            false => template,
        };
        // A value names its key, and the iteration that has put it.
        let mark = format!("{}:", if is_set { key.clone() } else { self.key() });
        let value = format!("{mark}${{sequence}}");
        let made = self.value(&value);
        let (put, get) = match (self.verify, is_shared) {
            (false, _) => (self.put(&key, made), self.get(&key, &Wanted::Found)),
            // A value that another iteration has put is as good, as long as it belongs to the key.
            (true, true) => {
                self.check_marks()?;
                (self.put(&key, made), self.get(&key, &Wanted::Begins(mark)))
            }
            (true, false) => {
                set.set.push("value", made);
                let value = "${value}";
                (self.put(&key, Field::text(value)), self.get(&key, &Wanted::Is(value.to_owned())))
            }
        };
        let before = (!set.set.is_empty()).then(|| set.into());
        Ok(before.into_iter().chain([put, get]).collect())
    }

    fn put(&self, key: &str, value: Field<Text>) -> StepSpec {
        let step = match self.resource(key) {
            None => {
                let put = CacheSpec { put: Field::text(key), value, ..CacheSpec::default() };
                step(put)
            }
            Some(resource) => {
                let mut request = RequestStep::new("PUT", Field::text(resource));
                let text = value.get().map_or("", Text::as_str);
                request.body.json = Field::Given(json!({ "value": text }), value.place().unwrap_or_default());
                request.into()
            }
        };
        step.named("put")
    }

    /// A GET, and the expectation for its answer.
    fn get(&self, key: &str, wanted: &Wanted) -> StepSpec {
        let resource = self.resource(key);
        let is_http = resource.is_some();
        let step = match resource {
            None => {
                let get = CacheSpec { get: Field::text(key), ..CacheSpec::default() };
                step(get)
            }
            Some(resource) => RequestStep::new("GET", Field::text(resource)).into(),
        };
        let step = step.named("get");
        let with = |value: MatchSpec| match is_http {
            true => ExpectSpec::json("/value", value),
            false => ExpectSpec::body(value),
        };
        match wanted {
            Wanted::Anything if is_http => step,
            Wanted::Anything => step.expecting(ExpectSpec::status(["200", "404"])),
            Wanted::Found if is_http => step.expecting(with(MatchSpec::exists())),
            Wanted::Found => step,
            Wanted::Begins(mark) => step.expecting(with(MatchSpec::starts(mark))),
            Wanted::Is(value) => step.expecting(with(MatchSpec::equals(value))),
        }
    }

    fn delete(&self, key: &str) -> StepSpec {
        let step = match self.resource(key) {
            None => {
                let delete = CacheSpec { delete: Field::text(key), ..CacheSpec::default() };
                step(delete)
            }
            Some(resource) => RequestStep::new("DELETE", Field::text(resource)).into(),
        };
        step.named("delete")
    }

    /// The resource of a key, if it is one of an HTTP API.
    fn resource(&self, key: &str) -> Option<String> {
        match &self.api {
            Api::Tcp => None,
            Api::Http(_) => Some(format!("/cache/{}/{key}", self.cache)),
        }
    }

    /// The template of a key, without its filling.
    fn key(&self) -> String {
        match self.keys {
            KeyPattern::Fixed => FIXED_KEY.to_owned(),
            keys => keys.template("key-"),
        }
    }

    /// A value that begins with this text.
    fn value(&self, of: &str) -> Field<Text> {
        FLAGS.value("value_size", key_value::value(&self.value_size, of))
    }

    /// A key of the length that is asked for.
    fn filled(&self, key: &str) -> Result<String, WorkloadError> {
        match self.key_size {
            None => Ok(key.to_owned()),
            Some(size) if size < SHORTEST_FILLED_KEY => Err(WorkloadError::new(
                format!("keys of {size} bytes would not be distinct"),
                format!("write --key-size {SHORTEST_FILLED_KEY} or more, or leave it out"),
            )),
            Some(size) => Ok(format!("${{fill({size},\"{key}-\")}}")),
        }
    }

    /// Values of shared keys are recognised by their beginning: it has to be whole.
    fn check_marks(&self) -> Result<(), WorkloadError> {
        let mark = LONGEST_MARK.max(self.key_size.map_or(0, |size| size + 1));
        key_value::check_marks(&self.value_size, mark, "--no-verify")
    }

    /// The protocol has a limit for a PUT with its names.
    fn check_sizes(&self) -> Result<(), WorkloadError> {
        let key = self.key_size.unwrap_or(LONGEST_KEY);
        let around = PAYLOAD_HEAD + self.cache.len() as u64 + u64::from(key);
        let longest = self.value_size.rsplit('-').next().and_then(|most| most.parse::<u64>().ok());
        if self.api != Api::Tcp || around + longest.unwrap_or(0) <= LONGEST_PAYLOAD {
            return Ok(());
        }
        let most = LONGEST_PAYLOAD.saturating_sub(around);
        Err(WorkloadError::new(
            format!(
                "a value of {} bytes does not fit into a frame of the protocol, which has 8 MiB",
                self.value_size
            ),
            match most {
                0 => "write a smaller --key-size".to_owned(),
                most => format!("write --value-size {most} or less: key and names are in the frame, too"),
            },
        ))
    }

    /// Returns notes for the user to read before the load: on the targets, and on keys that Carbon's own test
    /// would draw from more.
    pub(crate) fn notes(&self) -> Vec<String> {
        let is_closed = self.targets == Targets::Carbon && !self.is_paced && self.at_once < u64::MAX;
        let on_average = is_closed.then(|| {
            let needed = self.at_once.saturating_mul(1_000);
            format!(
                "Carbon's average is the wall time by the operations; the mean response time of {} operations in \
                 flight is below 1 ms from {needed} operations per second on",
                self.at_once
            )
        });
        let on_keys = (self.keys == KeyPattern::Random(None)).then(|| {
            format!(
                "keys are drawn from {DEFAULT_KEYS}: --keys {} draws them as Carbon's test does",
                i64::MAX
            )
        });
        on_average.into_iter().chain(on_keys).collect()
    }

    fn thresholds(&self) -> Vec<&'static str> {
        if self.targets == Targets::None {
            return Vec::new();
        }
        let first = if self.is_paced { "mean<1ms" } else { "rate>10000" };
        vec![first, "p95<5ms", "p99<10ms", "error_rate<0.1%"]
    }
}

/// The step of a request over the cache's own protocol.
fn step(request: CacheSpec) -> StepSpec {
    AddedStep::new(&REQUEST, Field::new(step_value(request))).into()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn written(load: &CacheLoad) -> Value {
        serde_json::to_value(load.document().unwrap().document).unwrap()
    }

    fn steps(load: &CacheLoad) -> Value {
        written(load)["scenarios"][0]["steps"].clone()
    }

    #[test]
    fn the_default_is_carbons_own_load_test() {
        let document = written(&CacheLoad::default());
        assert_eq!(document["targets"]["cache"], "carbon://127.0.0.1:5500/perf_test");
        assert_eq!(document["run"], json!({ "connections": 100, "iterations": 10_000 }));
        let value = "${fill(100,\"key-${sequence}:${sequence}-\")}";
        let expected = json!([
            { "set": { "value": value } },
            { "name": "put", "cache": { "put": "key-${sequence}", "value": "${value}" } },
            { "name": "get", "cache": { "get": "key-${sequence}" }, "expect": { "body": [{ "equals": "${value}" }] } },
        ]);
        assert_eq!(document["scenarios"][0]["steps"], expected);
        assert!(document.get("thresholds").is_none());
    }

    #[test]
    fn shared_keys_are_compared_by_what_begins_their_values() {
        for (text, keys) in
            [("random", None), ("zipf:1.5", Some(20)), ("fixed", None), ("sequential", Some(100))]
        {
            let keys = KeyPattern::parse(text, keys).unwrap();
            let steps = steps(&CacheLoad { keys, ..CacheLoad::default() });
            let get = steps.as_array().unwrap().last().unwrap();
            let mark =
                get["expect"]["body"][0]["starts"].as_str().unwrap_or_else(|| panic!("{text}: {steps:#}"));
            assert!(mark.ends_with(':'), "{text}: {mark}");
        }
        let drawn = KeyPattern::parse("zipf:1.5", Some(20)).unwrap();
        let first = steps(&CacheLoad { keys: drawn, ..CacheLoad::default() })[0].clone();
        assert_eq!(first, json!({ "set": { "key": "key-${zipf(20,1.500)}" } }));
        // With more keys than iterations under way, each iteration has a key of its own.
        let own = KeyPattern::parse("sequential", Some(101)).unwrap();
        let steps = steps(&CacheLoad { keys: own, ..CacheLoad::default() });
        assert_eq!(steps[2]["expect"]["body"][0]["equals"], "${value}");
        assert_eq!(steps[1]["cache"]["put"], "key-${range(0,101)}");
    }

    #[test]
    fn over_http_keys_and_values_are_the_same() {
        let api = || Api::Http("http://127.0.0.1:8080".to_owned());
        let over = |api: Api, keys: &str| {
            let keys = KeyPattern::parse(keys, None).unwrap();
            steps(&CacheLoad { api, keys, ..CacheLoad::default() })
        };
        for keys in ["sequential", "zipf"] {
            let (tcp, http) = (over(Api::Tcp, keys), over(api(), keys));
            assert_eq!(tcp[0], http[0], "what is set");
            let key = tcp[1]["cache"]["put"].as_str().unwrap();
            assert_eq!(http[1]["put"], format!("/cache/perf_test/{key}"));
            assert_eq!(http[1]["json"]["value"], tcp[1]["cache"]["value"]);
            assert_eq!(http[2]["get"], http[1]["put"]);
            assert_eq!(http[2]["expect"]["json"]["/value"], tcp[2]["expect"]["body"][0]);
        }
        let mix = Mix::parse("get=9,delete=1").unwrap();
        let load = CacheLoad { api: api(), mix, verify: false, ..CacheLoad::default() };
        let document = written(&load);
        assert_eq!(document["targets"]["cache"], "http://127.0.0.1:8080");
        let first = |scenario: usize| document["scenarios"][scenario]["steps"][0].clone();
        // A miss has the status 200 there.
        assert_eq!(first(0), json!({ "name": "get", "get": "/cache/perf_test/key-${sequence}" }));
        assert_eq!(first(1), json!({ "name": "delete", "delete": "/cache/perf_test/key-${sequence}" }));
    }

    #[test]
    fn weights_become_scenarios() {
        let mix = Mix::parse("put=1, get=9").unwrap();
        let load = CacheLoad { mix, verify: false, ..CacheLoad::default() };
        let scenarios = written(&load)["scenarios"].clone();
        assert_eq!((&scenarios[0]["weight"], &scenarios[1]["weight"]), (&json!(1), &json!(9)));
        assert_eq!(scenarios[1]["steps"][0]["expect"], json!({ "status": [200, 404] }));
        for wrong in ["", "put+delete", "put=0", "put,put", "put=1,list=2", "get=x"] {
            assert!(Mix::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn presets_and_targets_are_those_of_the_description() {
        let sizes = Preset::ALL.map(Preset::size);
        let told = sizes.map(|size| (size.iterations.unwrap(), size.connections, size.rate));
        let expected =
            [(50_000, 200, None), (100_000, 50, Some(5_000)), (10_000, 500, None), (60_000, 10, Some(1_000))];
        assert_eq!(told, expected);
        let thresholds = |size: Size| {
            let is_paced = size.rate.is_some();
            let load = CacheLoad { size, is_paced, targets: Targets::Carbon, ..CacheLoad::default() };
            written(&load)["thresholds"].clone()
        };
        let closed = ["rate>10000", "p95<5ms", "p99<10ms", "error_rate<0.1%"];
        let open = ["mean<1ms", "p95<5ms", "p99<10ms", "error_rate<0.1%"];
        assert_eq!(sizes.map(thresholds), [closed, open, closed, open].map(|all| json!(all)));
    }

    #[test]
    fn the_mean_that_connections_can_have_is_said() {
        let size = Preset::Max.size();
        let max = CacheLoad { size, at_once: 200, targets: Targets::Carbon, ..CacheLoad::default() };
        assert!(max.notes()[0].ends_with(
            "the mean response time of 200 operations in flight is below 1 ms from 200000 operations per second on"
        ));
        assert_eq!(CacheLoad { is_paced: true, ..max.clone() }.notes(), [""; 0]);
        assert_eq!(CacheLoad { targets: Targets::None, ..max.clone() }.notes(), [""; 0]);
        let keys = KeyPattern::Random(None);
        assert!(
            CacheLoad { is_paced: true, keys, ..max.clone() }.notes()[0]
                .starts_with("keys are drawn from 10000")
        );
        let keys = KeyPattern::Random(Some(5));
        assert_eq!(CacheLoad { is_paced: true, keys, ..max }.notes(), [""; 0]);
    }

    #[test]
    fn values_that_no_frame_has_room_for_name_the_limit() {
        let sized = |value_size: &str, key_size| {
            let load = CacheLoad { value_size: value_size.to_owned(), key_size, ..CacheLoad::default() };
            load.document().map(|_| ()).map_err(|error| format!("{error} ({})", error.hint()))
        };
        let most = (8 << 20) - 13 - 9 - 24;
        for (value, key) in
            [("8388500", None), (&*most.to_string(), None), ("1-2000", None), ("exp:500", None)]
        {
            assert_eq!(sized(value, key), Ok(()), "{value}");
        }
        for value in ["8388608", "100-8388608", &(most + 1).to_string()] {
            let error = sized(value, None).unwrap_err();
            assert!(
                error.contains("which has 8 MiB") && error.contains(&format!("--value-size {most} or")),
                "{error}"
            );
        }
        assert!(sized("8388500", Some(1_000)).is_err());
        let error = sized("100", Some(8_388_608)).unwrap_err();
        assert!(error.contains("a smaller --key-size"), "{error}");
        let api = Api::Http("http://h".to_owned());
        let over_http = CacheLoad { api, value_size: "8388608".to_owned(), ..CacheLoad::default() };
        assert!(over_http.document().is_ok());
    }
}
