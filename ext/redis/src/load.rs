//! The plan that the flags of `plimsoll redis` stand for.

use plimsoll_workloads::WorkloadError;
use plimsoll_workloads::key_value::{self, KeyPattern, Weights};
use serde_json::{Map, Value, json};

/// Bytes of a value that name its key, whichever that is.
const MARK: u32 = 48;

/// A load on a server.
#[derive(Clone, Debug)]
pub(crate) struct RedisLoad {
    /// URL of the server.
    pub(crate) server: String,
    /// Commands of an iteration.
    pub(crate) commands: Commands,
    /// Pattern of the keys.
    pub(crate) keys: KeyPattern,
    /// Bytes of a value, as `fill` in a template has them.
    pub(crate) value_size: String,
    /// Settings of the run that the flags leave open.
    pub(crate) run: Map<String, Value>,
}

/// Commands of an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Commands {
    /// A SET, and a GET of the same key that has to return its value.
    SetGet,
    /// One command, each as often as its weight says.
    Weighted(Weights),
    /// One command, in words.
    One(Vec<String>),
}

impl Commands {
    /// Reads `set+get`, one command, or weights: `set=1,get=9`.
    ///
    /// # Errors
    /// If it is none of them.
    pub(crate) fn parse(text: &str) -> Result<Self, WorkloadError> {
        if text == "set+get" {
            return Ok(Self::SetGet);
        }
        let weights = key_value::parse_weights(text, &["set", "get", "incr", "del"]);
        weights.map(Self::Weighted).ok_or_else(|| {
            let message = format!("`{}` is not a mix of commands", text.escape_debug());
            let forms =
                "write set+get, or weights from 1 to 1000 of set, get, incr and del, as in set=1,get=9";
            WorkloadError::new(message, forms)
        })
    }
}

impl RedisLoad {
    /// Returns the plan, as the content of a plan file.
    ///
    /// # Errors
    /// If values are too short to be told from each other.
    pub(crate) fn document(self) -> Result<Value, WorkloadError> {
        let scenarios = self.scenarios()?;
        let mut document =
            json!({ "name": "redis", "targets": { "redis": self.server }, "scenarios": scenarios });
        if !self.run.is_empty() {
            document["run"] = self.run.into();
        }
        Ok(document)
    }

    fn scenarios(&self) -> Result<Vec<Value>, WorkloadError> {
        let key = self.keys.template("key:");
        Ok(match &self.commands {
            // A key that is not there is an answer.
            Commands::One(words) => {
                let step = json!({ "redis": words, "expect": { "status": [200, 404] } });
                vec![json!({ "steps": [step] })]
            }
            Commands::SetGet => vec![json!({ "name": "set+get", "steps": self.set_and_get(&key)? })],
            Commands::Weighted(weights) => key_value::weighted(weights, |name| {
                let mut step = match name {
                    "set" => {
                        let command = json!(["SET", key, key_value::value(&self.value_size, "${sequence}")]);
                        json!({ "redis": command, "expect": { "body": { "equals": "OK" } } })
                    }
                    // A key that is not there is an answer, too.
                    "get" => json!({ "redis": ["GET", key], "expect": { "status": [200, 404] } }),
                    // Counters have keys of their own: values of SET are no numbers.
                    "incr" => json!({ "redis": ["INCR", format!("counter:{key}")] }),
                    _ => json!({ "redis": ["DEL", key] }),
                };
                step["name"] = name.to_uppercase().into();
                step
            }),
        })
    }

    fn set_and_get(&self, key: &str) -> Result<Value, WorkloadError> {
        // Of a key that others have, too, a value that another iteration has set is as good.
        let expected = match self.keys.is_shared(u64::MAX) {
            true => {
                key_value::check_marks(&self.value_size, MARK, "--mix set=1,get=1")?;
                json!({ "starts": "${key}=" })
            }
            false => json!({ "equals": "${value}" }),
        };
        Ok(json!([
            { "set": { "key": key } },
            { "set": { "value": key_value::value(&self.value_size, "${key}=${sequence}") } },
            { "name": "SET", "redis": ["SET", "${key}", "${value}"],
              "expect": { "body": { "equals": "OK" } } },
            { "name": "GET", "redis": ["GET", "${key}"], "expect": { "body": expected } },
        ]))
    }
}
