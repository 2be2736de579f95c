//! Commands as plans have them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use plimsoll_document::{Field, Place, Problem, Text};
use plimsoll_plan::{BodyContext, InTurnProtocol, StepPart, StepRequest};
use plimsoll_scenario::Body;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::PROTOCOL;
use crate::frame::Command;
use crate::words::split;

/// Commands that a step cannot be, and why. Users share connections, and each command has one answer.
const REFUSED: [(&str, &str); 21] = [
    ("AUTH", USER),
    ("CLIENT", "it changes the connection, which users share"),
    ("DISCARD", TRANSACTION),
    ("EXEC", TRANSACTION),
    ("HELLO", "replies are read in the second version of the protocol"),
    ("MONITOR", PUSH),
    ("MULTI", TRANSACTION),
    ("PSUBSCRIBE", PUSH),
    ("PSYNC", PUSH),
    ("PUNSUBSCRIBE", PUSH),
    ("QUIT", "the load ends its connections: see `disable_keepalive`"),
    ("REPLCONF", "it has no answer"),
    ("RESET", "it changes the connection, which users share"),
    ("SELECT", "write the number of the database into the target's URL: redis://127.0.0.1:6379/2"),
    ("SSUBSCRIBE", PUSH),
    ("SUBSCRIBE", PUSH),
    ("SUNSUBSCRIBE", PUSH),
    ("SYNC", PUSH),
    ("UNSUBSCRIBE", PUSH),
    ("UNWATCH", TRANSACTION),
    ("WATCH", TRANSACTION),
];

const USER: &str = "write user and password into the target's URL: redis://user:password@127.0.0.1:6379";
const TRANSACTION: &str = "users share connections: put what belongs together into one `EVAL`";
const PUSH: &str = "it has more than one answer";

/// A command: a text, whose words are split at spaces, or a list of words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandSpec {
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Text(String),
    Words(Vec<Field<Text>>),
}

impl Default for Form {
    fn default() -> Self {
        Self::Words(Vec::new())
    }
}

impl CommandSpec {
    /// Returns the words with their places: those of a text have none of their own.
    fn words(&self) -> Result<Vec<(String, Option<Place>)>, String> {
        match &self.form {
            Form::Text(text) => Ok(split(text)?.into_iter().map(|word| (word, None)).collect()),
            Form::Words(words) => {
                let word = |word: &Field<Text>| Some((word.get()?.as_str().to_owned(), word.place()));
                Ok(words.iter().filter_map(word).collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for CommandSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = CommandSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command such as `GET key`, or a list of its words")
            }

            fn visit_str<E>(self, text: &str) -> Result<CommandSpec, E> {
                Ok(CommandSpec { form: Form::Text(text.to_owned()) })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<CommandSpec, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = all.next_element()? {
                    words.push(word);
                }
                Ok(CommandSpec { form: Form::Words(words) })
            }
        }
        deserializer.deserialize_any(Words)
    }
}

impl Serialize for CommandSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.form {
            Form::Text(text) => serializer.serialize_str(text),
            Form::Words(words) => words.serialize(serializer),
        }
    }
}

impl JsonSchema for CommandSpec {
    fn schema_name() -> Cow<'static, str> {
        "CommandSpec".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A command of Redis: a text, or a list of its words; templates.",
            "type": ["string", "array"],
            "items": { "type": ["string", "number", "boolean"] }
        })
    }
}

impl StepPart for CommandSpec {
    fn protocol(&self) -> &'static InTurnProtocol {
        &PROTOCOL
    }

    fn title(&self) -> Option<String> {
        let words = self.words().ok()?;
        let (name, _) = words.first()?;
        Some(match words.get(1) {
            Some((key, _)) => format!("{} {key}", name.to_uppercase()),
            None => name.to_uppercase(),
        })
    }

    fn compile(&self, _: &str, place: Option<Place>, context: &mut dyn BodyContext) -> Option<StepRequest> {
        let words = match self.words() {
            Ok(words) => words,
            Err(wrong) => {
                let hint = "write the words as a list: `redis: [SET, key, \"a value\"]`";
                return context.fail_form(place, Problem::new(wrong).with_hint(hint));
            }
        };
        let Some((name, at)) = words.first().filter(|(name, _)| !name.is_empty()) else {
            let problem = Problem::new("the command is missing");
            return context.fail_form(place, problem.with_hint("write `redis: GET key`"));
        };
        if name.contains("${") {
            let problem = Problem::new(format!("the command `{name}` varies"));
            let hint = "write a step for each command: `if` and weights of scenarios choose among them";
            return context.fail_form(at.or(place), problem.with_hint(hint));
        }
        let name = name.to_uppercase();
        if let Some((_, hint)) = REFUSED.into_iter().find(|(refused, _)| *refused == name) {
            let problem = Problem::new(format!("a step cannot be the command {name}"));
            return context.fail_form(at.or(place), problem.with_hint(hint));
        }
        let filled =
            |(word, at): &(String, Option<Place>)| context.template(word, at.or(place)).map(|(text, _)| text);
        // All words are looked at, so that all problems are reported.
        let filled: Vec<Option<String>> = words.iter().map(filled).collect();
        let words: Vec<String> = filled.into_iter().collect::<Option<_>>()?;
        Some(StepRequest {
            method: name,
            target: words[1..].join(" "),
            target_place: place,
            shown: words.get(1).cloned(),
            body: Body::None,
            body_place: None,
            framing: Arc::new(Command { words }),
        })
    }
}
