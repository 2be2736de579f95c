//! The plan that the flags of `plimsoll redis` stand for.

use serde_json::{Map, Value, json};

/// Keys where a pattern needs a number of them and none is given.
const KEYS: u64 = 10_000;

/// A load on a server.
#[derive(Clone, Debug)]
pub(crate) struct RedisLoad {
    /// URL of the server.
    pub(crate) server: String,
    /// Commands of an iteration.
    pub(crate) commands: Commands,
    /// Pattern of the keys.
    pub(crate) keys: Keys,
    /// Bytes of a value, as `fill` in a template has them.
    pub(crate) value_size: String,
    /// `true` if the flags say when the load ends.
    pub(crate) has_end: bool,
    /// `true` if the flags say how many connections there are.
    pub(crate) has_connections: bool,
}

/// Commands of an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Commands {
    /// A SET, and a GET of the same key that has to return its value.
    SetGet,
    /// One command, each as often as its weight says.
    Weighted(Vec<(&'static str, u32)>),
    /// One command, in words.
    One(Vec<String>),
}

/// Choice of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// One after the other: each once, or this many over and over.
    Sequential(Option<u64>),
    /// Any of this many, each as likely as the others.
    Random(u64),
    /// Any of this many, a few of them very often.
    Zipf(u64),
}

/// Commands that a mix may have.
const NAMES: [&str; 4] = ["set", "get", "incr", "del"];

impl Commands {
    /// Reads `set+get`, one command, or weights: `set=1,get=9`.
    ///
    /// # Errors
    /// If it is none of them: what there is.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        const FORMS: &str =
            "write set+get, or weights from 1 to 1000 of set, get, incr and del, as in set=1,get=9";
        if text == "set+get" {
            return Ok(Self::SetGet);
        }
        let mut parts: Vec<(&'static str, u32)> = Vec::new();
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let name = NAMES.into_iter().find(|known| *known == name.trim()).ok_or(FORMS)?;
            let weight = weight.trim().parse().ok().filter(|weight| (1..=1_000).contains(weight));
            if parts.iter().any(|(other, _)| *other == name) {
                return Err(FORMS);
            }
            parts.push((name, weight.ok_or(FORMS)?));
        }
        Ok(Self::Weighted(parts))
    }
}

impl Keys {
    /// Reads `sequential`, `random` or `zipf`, over `keys` keys.
    ///
    /// # Errors
    /// If it is none of them: what there is.
    pub(crate) fn parse(text: &str, keys: Option<u64>) -> Result<Self, &'static str> {
        if keys.is_some_and(|keys| i64::try_from(keys).is_err() || keys == 0) {
            return Err("write --keys from 1 to 9223372036854775807");
        }
        match text {
            "sequential" => Ok(Self::Sequential(keys)),
            "random" => Ok(Self::Random(keys.unwrap_or(KEYS))),
            "zipf" => Ok(Self::Zipf(keys.unwrap_or(KEYS))),
            _ => Err("there are sequential, random and zipf"),
        }
    }

    /// Returns `true` if no other iteration has the key of one.
    pub(crate) fn is_own(self) -> bool {
        self == Self::Sequential(None)
    }

    /// The template of a key.
    fn template(self) -> String {
        match self {
            Self::Sequential(None) => "key:${sequence}".to_owned(),
            Self::Sequential(Some(keys)) => format!("key:${{range(0,{keys})}}"),
            Self::Random(keys) => format!("key:${{random_int(0,{})}}", keys - 1),
            Self::Zipf(keys) => format!("key:${{zipf({keys},0.99)}}"),
        }
    }
}

impl RedisLoad {
    /// Returns the plan, as the content of a plan file.
    pub(crate) fn document(&self) -> Value {
        let mut run = Map::new();
        if !self.has_end {
            run.insert("duration".to_owned(), "10s".into());
        }
        if !self.has_connections {
            run.insert("connections".to_owned(), 64.into());
        }
        let mut document = json!({
            "name": "redis",
            "targets": { "redis": self.server },
            "scenarios": self.scenarios(),
        });
        if !run.is_empty() {
            document["run"] = run.into();
        }
        document
    }

    fn scenarios(&self) -> Vec<Value> {
        let value = |of: &str| format!("${{fill({},\"{of}-\")}}", self.value_size);
        let key = self.keys.template();
        match &self.commands {
            // A key that is not there is an answer.
            Commands::One(words) => {
                let step = json!({ "redis": words, "expect": { "status": [200, 404] } });
                vec![json!({ "steps": [step] })]
            }
            Commands::SetGet => {
                // Of a key that others have, too, a value that another iteration has set is as good.
                let expected = match self.keys.is_own() {
                    true => json!({ "equals": "${value}" }),
                    false => json!({ "starts": "${key}=" }),
                };
                let steps = json!([
                    { "set": { "key": key } },
                    { "set": { "value": value("${key}=${sequence}") } },
                    { "name": "SET", "redis": ["SET", "${key}", "${value}"],
                      "expect": { "body": { "equals": "OK" } } },
                    { "name": "GET", "redis": ["GET", "${key}"],
                      "expect": { "body": expected } },
                ]);
                vec![json!({ "name": "set+get", "steps": steps })]
            }
            Commands::Weighted(parts) => parts
                .iter()
                .map(|(name, weight)| {
                    let mut step = match *name {
                        "set" => {
                            let command = json!(["SET", key, value("${sequence}")]);
                            json!({ "redis": command, "expect": { "body": { "equals": "OK" } } })
                        }
                        // A key that is not there is an answer, too.
                        "get" => json!({ "redis": ["GET", key], "expect": { "status": [200, 404] } }),
                        // Counters have keys of their own: values of SET are no numbers.
                        "incr" => json!({ "redis": ["INCR", format!("counter:{key}")] }),
                        _ => json!({ "redis": ["DEL", key] }),
                    };
                    step["name"] = name.to_uppercase().into();
                    match parts.len() {
                        1 => json!({ "name": name, "steps": [step] }),
                        _ => json!({ "name": name, "weight": weight, "steps": [step] }),
                    }
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_commands_or_weights() {
        assert_eq!(Commands::parse("set+get"), Ok(Commands::SetGet));
        assert_eq!(Commands::parse("get"), Ok(Commands::Weighted(vec![("get", 1)])));
        let mixed = Commands::Weighted(vec![("set", 1), ("get", 9), ("incr", 2)]);
        assert_eq!(Commands::parse("set=1, get=9,incr=2"), Ok(mixed));
        for wrong in ["", "put", "set=0", "set=1001", "set,set", "get+set", "set=x"] {
            assert!(Commands::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Keys::parse("zipf", None), Ok(Keys::Zipf(KEYS)));
        assert!(Keys::parse("fixed", None).is_err() && Keys::parse("random", Some(0)).is_err());
    }
}
