//! The plan that the flags of `plimsoll redis` stand for.

use plimsoll_document::{
    AddedStep, Document, ExpectSpec, Field, Flags, MadeDocument, MatchSpec, ScenarioSpec, SetStep, Settings,
    StepSpec, TargetSpec, Text,
};
use plimsoll_plan::step_value;
use plimsoll_workloads::WorkloadError;
use plimsoll_workloads::key_value::{self, KeyPattern, Weights};

use crate::COMMAND;
use crate::spec::CommandSpec;

/// Keys of the plan whose values are arguments of `plimsoll redis`.
const FLAGS: Flags = Flags::new(&[("redis", "HOST:PORT"), ("words", "COMMAND")]);

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
    pub(crate) run: Settings,
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
    /// Returns the plan.
    ///
    /// # Errors
    /// If values are too short to be told from each other.
    pub(crate) fn document(self) -> Result<MadeDocument, WorkloadError> {
        let mut document = Document::default();
        document.name = Field::text("redis");
        document.targets.push("redis", TargetSpec::new(FLAGS.value("redis", &self.server)));
        document.scenarios = self.scenarios()?.into_iter().map(Field::new).collect();
        if self.run != Settings::default() {
            document.run = Field::new(self.run);
        }
        Ok(MadeDocument { name: "the plan of `plimsoll redis`".to_owned(), document, flags: FLAGS })
    }

    fn scenarios(&self) -> Result<Vec<ScenarioSpec>, WorkloadError> {
        let key = self.keys.template("key:");
        Ok(match &self.commands {
            Commands::One(words) => {
                let words = words.iter().map(|word| FLAGS.value("words", word)).collect();
                let step = step(words).expecting(there_or_not());
                let mut scenario = ScenarioSpec::default();
                scenario.steps = vec![Field::new(step)];
                vec![scenario]
            }
            Commands::SetGet => vec![ScenarioSpec::new("set+get", self.set_and_get(&key)?)],
            Commands::Weighted(weights) => key_value::weighted(weights, |name| {
                let step = match name {
                    "set" => {
                        let value = key_value::value(&self.value_size, "${sequence}");
                        command(&["SET", &key, &value]).expecting(done())
                    }
                    "get" => command(&["GET", &key]).expecting(there_or_not()),
                    // Counters have keys of their own: values of SET are no numbers.
                    "incr" => command(&["INCR", &format!("counter:{key}")]),
                    _ => command(&["DEL", &key]),
                };
                step.named(name.to_uppercase())
            }),
        })
    }

    fn set_and_get(&self, key: &str) -> Result<Vec<StepSpec>, WorkloadError> {
        // Of a key that others have, too, a value that another iteration has set is as good.
        let expected = match self.keys.is_shared(u64::MAX) {
            true => {
                key_value::check_marks(&self.value_size, MARK, "--mix set=1,get=1")?;
                MatchSpec::starts("${key}=")
            }
            false => MatchSpec::equals("${value}"),
        };
        let value = key_value::value(&self.value_size, "${key}=${sequence}");
        Ok(vec![
            SetStep::new("key", key).into(),
            SetStep::new("value", value).into(),
            command(&["SET", "${key}", "${value}"]).named("SET").expecting(done()),
            command(&["GET", "${key}"]).named("GET").expecting(ExpectSpec::body(expected)),
        ])
    }
}

fn command(words: &[&str]) -> StepSpec {
    step(words.iter().copied().map(Field::text).collect())
}

fn step(words: Vec<Field<Text>>) -> StepSpec {
    AddedStep::new(&COMMAND, Field::new(step_value(CommandSpec::new(words)))).into()
}

/// Expectation of the answer to a SET.
fn done() -> ExpectSpec {
    ExpectSpec::body(MatchSpec::equals("OK"))
}

/// Expectation of any answer to a GET: a key that is not there is one, too.
fn there_or_not() -> ExpectSpec {
    ExpectSpec::status(["200", "404"])
}
