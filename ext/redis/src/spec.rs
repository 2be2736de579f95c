//! Commands as plans have them.

use std::sync::Arc;

use plimsoll_document::{Field, Place, Problem, Text};
use plimsoll_plan::{BodyContext, InTurnProtocol, StepPart, StepRequest};
use plimsoll_scenario::Body;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::PROTOCOL;
use crate::frame::Command;
use crate::words::split;

/// A command of Redis: a text, which is split at its spaces, or a list of its words; templates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CommandSpec(Vec<Field<Text>>);

impl CommandSpec {
    /// A command in words, which are templates.
    pub(crate) const fn new(words: Vec<Field<Text>>) -> Self {
        Self(words)
    }

    /// Returns the words with their places: those of a text have none of their own.
    fn words(&self) -> Result<Vec<(String, Option<Place>)>, String> {
        if let [Field::Given(text, _)] = self.0.as_slice() {
            return Ok(split(text.as_str())?.into_iter().map(|word| (word, None)).collect());
        }
        let word = |word: &Field<Text>| Some((word.get()?.as_str().to_owned(), word.place()));
        Ok(self.0.iter().filter_map(word).collect())
    }
}

impl Serialize for CommandSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [text] => text.serialize(serializer),
            words => words.serialize(serializer),
        }
    }
}

impl StepPart for CommandSpec {
    fn protocol(&self) -> &'static InTurnProtocol {
        &PROTOCOL
    }

    fn title(&self) -> Option<String> {
        let words = self.words().ok()?;
        let (name, _) = words.first()?;
        let key = words.get(1).map(|(key, _)| format!(" {key}")).unwrap_or_default();
        Some(name.to_uppercase() + &key)
    }

    fn compile(&self, _: &str, place: Option<Place>, context: &mut dyn BodyContext) -> Option<StepRequest> {
        if self.0.iter().any(|word| word.get().is_none()) {
            // What is wrong with it was reported.
            return None;
        }
        let words = match self.words() {
            Ok(words) => words,
            Err(wrong) => {
                let hint = "write the words as a list: `redis: [SET, key, \"a value\"]`";
                return context.fail_form(place, Problem::new(wrong).with_hint(hint));
            }
        };
        let (name, at) = words.first().cloned().unwrap_or_default();
        if let Err(problem) = check_name(&name) {
            return context.fail_form(at.or(place), problem);
        }
        let filled =
            |(word, at): &(String, Option<Place>)| context.template(word, at.or(place)).map(|(text, _)| text);
        // All words are looked at, so that all problems are reported.
        let filled: Vec<Option<String>> = words.iter().map(filled).collect();
        let words: Vec<String> = filled.into_iter().collect::<Option<_>>()?;
        Some(StepRequest {
            method: name.to_uppercase(),
            target: words[1..].join(" "),
            target_place: place,
            shown: words.get(1).cloned(),
            body: Body::None,
            body_place: None,
            framing: Arc::new(Command { words }),
        })
    }
}

/// Refuses the name of a command that a step cannot be. Users share connections, and each command has one
/// answer.
fn check_name(name: &str) -> Result<(), Problem> {
    if name.is_empty() {
        return Err(Problem::new("the command is missing").with_hint("write `redis: GET key`"));
    }
    if name.contains("${") {
        let hint = "write a step for each command: `if` and weights of scenarios choose among them";
        return Err(Problem::new(format!("the command `{name}` varies")).with_hint(hint));
    }
    let name = name.to_uppercase();
    let hint = match name.as_str() {
        "AUTH" => "write user and password into the target's URL: redis://user:password@127.0.0.1:6379",
        "CLIENT" | "RESET" => "it changes the connection, which users share",
        "DISCARD" | "EXEC" | "MULTI" | "UNWATCH" | "WATCH" => {
            "users share connections: put what belongs together into one `EVAL`"
        }
        "HELLO" => "replies are read in the second version of the protocol",
        "MONITOR" | "PSYNC" | "SYNC" | "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" | "UNSUBSCRIBE"
        | "PUNSUBSCRIBE" | "SUNSUBSCRIBE" => "it has more than one answer",
        "QUIT" => "the load ends its connections: see `disable_keepalive`",
        "REPLCONF" => "it has no answer",
        "SELECT" => "write the number of the database into the target's URL: redis://127.0.0.1:6379/2",
        _ => return Ok(()),
    };
    Err(Problem::new(format!("a step cannot be the command {name}")).with_hint(hint))
}
