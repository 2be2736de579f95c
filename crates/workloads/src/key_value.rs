//! Parts of loads on stores of keys and values: which keys are asked for, how large values are, and mixes of
//! operations.

use plimsoll_document::{Field, ScenarioSpec, StepSpec};

use crate::WorkloadError;

/// Keys where a pattern needs a number of them and none is given.
pub const DEFAULT_KEYS: u64 = 10_000;
/// Largest weight of an operation in a mix.
const LARGEST_WEIGHT: u32 = 1_000;

/// Operations, each with its weight.
pub type Weights = Vec<(&'static str, u32)>;

/// Which keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyPattern {
    /// One after the other: each once, or this many over and over.
    Sequential(Option<u64>),
    /// Any of this many, each as likely as the others.
    Random(Option<u64>),
    /// Always the same.
    Fixed,
    /// Any of this many, a few of them very often: an exponent in thousandths.
    Zipf(Option<u64>, u32),
}

impl KeyPattern {
    /// Reads `sequential`, `random`, `fixed` or `zipf[:exponent]`, over `keys` keys.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn parse(text: &str, keys: Option<u64>) -> Result<Self, WorkloadError> {
        match keys {
            Some(0) => return Err(WorkloadError::new("there are no keys", "write --keys 1 or more")),
            Some(keys) if i64::try_from(keys).is_err() => {
                let most = i64::MAX;
                return Err(WorkloadError::new(
                    format!("{keys} keys are too many"),
                    format!("write --keys {most} or less"),
                ));
            }
            _ => {}
        }
        let (name, exponent) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let thousandths = |text: &str| {
            let number = text.parse::<f64>().ok().filter(|number| (0.001..=20.0).contains(number))?;
            Some((number * 1_000.0).round() as u32)
        };
        match (name, exponent) {
            ("sequential", None) => Ok(Self::Sequential(keys)),
            ("random", None) => Ok(Self::Random(keys)),
            ("fixed", None) if keys.is_none() => Ok(Self::Fixed),
            ("fixed", None) => {
                Err(WorkloadError::new("--keys has no effect: there is one key", "leave it out"))
            }
            ("zipf", exponent) => match exponent.map_or(Some(990), thousandths) {
                Some(thousandths) => Ok(Self::Zipf(keys, thousandths)),
                None => Err(WorkloadError::new(
                    format!("`{text}` has no exponent from 0.001 to 20"),
                    "write zipf, which has 0.99, or zipf:1.2",
                )),
            },
            _ => Err(WorkloadError::new(
                format!("`{text}` is not a pattern of keys"),
                "there are sequential, random, fixed, zipf and zipf:EXPONENT",
            )),
        }
    }

    /// Returns the template of a key that begins with `prefix`.
    pub fn template(self, prefix: &str) -> String {
        match self {
            Self::Sequential(None) => format!("{prefix}${{sequence}}"),
            Self::Sequential(Some(keys)) => format!("{prefix}${{range(0,{keys})}}"),
            Self::Random(keys) => format!("{prefix}${{random_int(0,{})}}", keys.unwrap_or(DEFAULT_KEYS) - 1),
            Self::Fixed => format!("{prefix}fixed"),
            Self::Zipf(keys, thousandths) => format!(
                "{prefix}${{zipf({},{}.{:03})}}",
                keys.unwrap_or(DEFAULT_KEYS),
                thousandths / 1_000,
                thousandths % 1_000
            ),
        }
    }

    /// Returns `true` if every rendering draws a new key, even within an iteration.
    pub const fn is_drawn(self) -> bool {
        matches!(self, Self::Random(_) | Self::Zipf(..))
    }

    /// Returns `true` if two of so many iterations in flight may have the same key, so that one reads the
    /// value of the other.
    pub fn is_shared(self, at_once: u64) -> bool {
        match self {
            Self::Sequential(keys) => keys.is_some_and(|keys| keys <= at_once),
            _ => true,
        }
    }
}

/// Reads a mix of some of these operations: one of them, or weights such as `set=1,get=9`. `None` if it is
/// neither.
pub fn parse_weights(text: &str, operations: &[&'static str]) -> Option<Weights> {
    let mut weights = Weights::new();
    for part in text.split(',') {
        let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
        let name = operations.iter().find(|known| **known == name.trim())?;
        let weight = weight.trim().parse().ok().filter(|weight| (1..=LARGEST_WEIGHT).contains(weight))?;
        if weights.iter().any(|(other, _)| other == name) {
            return None;
        }
        weights.push((name, weight));
    }
    Some(weights)
}

/// Returns the scenarios of a mix, each with the one step that `step` makes of its operation.
pub fn weighted(weights: &Weights, step: impl Fn(&str) -> StepSpec) -> Vec<ScenarioSpec> {
    let scenario = |(name, weight): &(&str, u32)| {
        let mut scenario = ScenarioSpec::new(*name, [step(name)]);
        if weights.len() > 1 {
            scenario.weight = Field::text(weight.to_string());
        }
        scenario
    };
    weights.iter().map(scenario).collect()
}

/// Checks the size of a value: `100`, `100-2000` (uniform), `exp:500` (exponential).
///
/// # Errors
/// If it is none of them.
pub fn check_value_size(text: &str) -> Result<(), WorkloadError> {
    let sizes = text.strip_prefix("exp:").unwrap_or(text);
    if sizes.split('-').all(|size| size.parse::<u32>().is_ok()) {
        return Ok(());
    }
    let message = format!("`{}` is not a length", text.escape_debug());
    Err(WorkloadError::new(message, "write bytes as in 100, 100-2000 or exp:500"))
}

/// Returns the template of a value of this size that begins with `mark` and a `-`, as far as there is room.
pub fn value(size: &str, mark: &str) -> String {
    format!("${{fill({size},\"{mark}-\")}}")
}

/// Checks that values of this size have `mark` bytes, which say to which of several shared keys they belong.
///
/// # Errors
/// If some may be shorter; the hint names `instead`, too.
pub fn check_marks(size: &str, mark: u32, instead: &str) -> Result<(), WorkloadError> {
    let least = size.split('-').next().and_then(|low| low.parse::<u32>().ok()).unwrap_or(0);
    if least >= mark {
        return Ok(());
    }
    Err(WorkloadError::new(
        format!("values of {size} bytes may be too short to say to which key they belong"),
        format!("write --value-size {mark} or more, or {instead}"),
    ))
}

#[cfg(test)]
mod tests {
    use plimsoll_document::RequestStep;
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_are_templates() {
        for (text, keys, template) in [
            ("sequential", None, "k${sequence}"),
            ("sequential", Some(7), "k${range(0,7)}"),
            ("random", None, "k${random_int(0,9999)}"),
            ("fixed", None, "kfixed"),
            ("zipf", Some(20), "k${zipf(20,0.990)}"),
            ("zipf:1.5", None, "k${zipf(10000,1.500)}"),
        ] {
            assert_eq!(KeyPattern::parse(text, keys).unwrap().template("k"), template);
        }
        for (text, keys) in [
            ("any", None),
            ("random", Some(0)),
            ("fixed", Some(1)),
            ("zipf:0", None),
            ("random", Some(1 << 63)),
        ] {
            assert!(KeyPattern::parse(text, keys).is_err(), "{text} {keys:?}");
        }
    }

    #[test]
    fn mixes_are_operations_or_weights() {
        const OPERATIONS: [&str; 3] = ["set", "get", "incr"];
        let parse = |text| parse_weights(text, &OPERATIONS);
        assert_eq!(parse("get"), Some(vec![("get", 1)]));
        assert_eq!(parse("set=1, get=9,incr"), Some(vec![("set", 1), ("get", 9), ("incr", 1)]));
        for wrong in ["", "put", "set=0", "set=1001", "set,set", "get+set", "set=x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        let step = |name: &str| StepSpec::from(RequestStep::new("GET", Field::text(format!("/{name}"))));
        let written = |weights: Weights| serde_json::to_value(weighted(&weights, step)).unwrap();
        let both = written(vec![("set", 1), ("get", 9)]);
        let get = json!({ "name": "get", "weight": 9, "steps": [{ "get": "/get" }] });
        assert_eq!(both[1], get);
        assert_eq!(written(vec![("set", 1)])[0].get("weight"), None);
    }

    #[test]
    fn sizes_are_bytes() {
        for (text, is_size) in
            [("100", true), ("1-20", true), ("exp:500", true), ("1k", false), ("", false), ("exp:", false)]
        {
            assert_eq!(check_value_size(text).is_ok(), is_size, "{text}");
        }
        for (text, fits) in [("48", true), ("48-90", true), ("47", false), ("exp:500", false)] {
            assert_eq!(check_marks(text, 48, "").is_ok(), fits, "{text}");
        }
    }
}
