//! Recorded requests: messages in the words of an API, with calls of tools and their results, and the
//! parameters beside them.

use serde_json::{Map, Value};

use super::api::extend;

/// Members of a line that are no parameters of its request: what is said, what the plan says, and what files
/// of prompts, traces and answers have beside.
const BESIDE: [&str; 22] = [
    "messages",
    "input",
    "prompt",
    "conversations",
    "model",
    "stream",
    "stream_options",
    "output_tokens",
    "output_length",
    "input_length",
    "input_tokens",
    "hash_ids",
    "timestamp",
    "id",
    "custom_id",
    "session_id",
    "note",
    "usage",
    "choices",
    "created",
    "object",
    "response",
];
/// Members with the number of tokens at most, in all APIs.
const LIMITS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/// Parameters of a recorded request: everything beside what is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters(Map<String, Value>);

impl Parameters {
    /// Those of a line.
    pub(super) fn of(line: &Value) -> Self {
        let members = line.as_object().into_iter().flatten();
        let parameters = members.filter(|(name, _)| !BESIDE.contains(&name.as_str()));
        Self(parameters.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// The number of tokens at most.
    pub(super) fn limit(&self) -> Option<u64> {
        let limit = LIMITS.iter().find_map(|name| self.0.get(*name));
        limit.or_else(|| self.0.get("options")?.get("num_predict"))?.as_u64()
    }

    /// Adds them to a request that asks for so many tokens. A limit has the name that the recording gave it.
    pub(super) fn extend(&self, request: &mut Map<String, Value>, tokens: u64) {
        if LIMITS.iter().any(|name| self.0.contains_key(*name)) {
            request.retain(|name, _| !LIMITS.contains(&name.as_str()));
        }
        extend(request, &self.0);
        for name in LIMITS {
            if let Some(limit) = request.get_mut(name) {
                *limit = tokens.into();
            }
        }
        if let Some(limit) = request.get_mut("options").and_then(|options| options.get_mut("num_predict")) {
            *limit = tokens.into();
        }
    }
}

/// The request of a line of a batch, which has it as its `body`; other lines are requests themselves.
pub(super) fn request_of(line: &Value) -> &Value {
    line.get("body").filter(|body| body.is_object()).unwrap_or(line)
}

/// A recorded conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recorded {
    messages: Vec<Value>,
    /// The number of messages before each answer, and at the end if something is there that was not answered;
    /// with the tokens of the answer, as far as they are known.
    turns: Vec<(usize, Option<u64>)>,
    parameters: Parameters,
}

impl Recorded {
    /// Reads the messages of a line (`messages`, or `input` of a response); `None` if it has none that ask
    /// for an answer.
    pub(super) fn read(line: &Value, bytes_per_token: f64) -> Option<Self> {
        let messages = line.get("messages").or_else(|| line.get("input"))?.as_array()?.clone();
        let told = ["output_tokens", "output_length"];
        let parameters = Parameters::of(line);
        let told = told.into_iter().find_map(|name| line.get(name)?.as_u64()).map(|tokens| tokens.max(1));
        let told = told.or_else(|| parameters.limit());
        let mut turns: Vec<(usize, Option<u64>)> = Vec::new();
        let mut place = 0;
        while place < messages.len() {
            // The parts of an answer may be several: reasoning, calls, a text.
            let answers = messages[place..].iter().take_while(|message| is_answer(message)).count();
            if answers > 0 && place > 0 {
                let bytes: usize = messages[place..place + answers].iter().map(bytes).sum();
                let tokens = ((bytes as f64 / bytes_per_token).round() as u64).max(1);
                turns.push((place, told.or(Some(tokens))));
            }
            place += answers.max(1);
        }
        if messages.last().is_some_and(|last| !is_answer(last)) {
            turns.push((messages.len(), told));
        }
        (!turns.is_empty()).then_some(Self { messages, turns, parameters })
    }

    /// Requests that it has been, or would be.
    pub(super) const fn turns(&self) -> usize {
        self.turns.len()
    }

    /// What was said before the answer of a turn.
    pub(super) fn messages(&self, turn: usize) -> &[Value] {
        &self.messages[..self.turns[turn].0]
    }

    /// Tokens of the answer of a turn, if they are known.
    pub(super) fn tokens(&self, turn: usize) -> Option<u64> {
        self.turns[turn].1
    }

    /// Parameters that are sent with the messages.
    pub(super) const fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

/// Returns `true` for what a model has said: a message, or an item of a response such as the call of a tool.
fn is_answer(message: &Value) -> bool {
    let kind = message.get("type").and_then(Value::as_str).unwrap_or_default();
    message.get("role").is_some_and(|role| role == "assistant")
        || kind == "reasoning"
        || kind.ends_with("_call")
}

/// Bytes of what a model has said, about.
fn bytes(message: &Value) -> usize {
    match message.get("content") {
        Some(Value::String(text)) if message.get("tool_calls").is_none() => text.len(),
        _ => message.to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_ends_where_the_model_speaks() {
        let user = json!({"role": "user", "content": "a"});
        let answer = json!({"role": "assistant", "content": "12345678"});
        let thought = json!({"type": "reasoning", "summary": []});
        let call = json!({"type": "function_call", "name": "f", "arguments": "{}"});
        let result = json!({"type": "function_call_output", "output": "x"});
        for (messages, ends) in [
            (vec![&user], vec![1]),
            (vec![&user, &answer], vec![1]),
            (vec![&user, &answer, &user], vec![1, 3]),
            (vec![&user, &thought, &call, &result, &answer], vec![1, 4]),
            // A conversation that the model opened.
            (vec![&answer, &user, &answer], vec![2]),
            (vec![&answer], vec![]),
            (vec![], vec![]),
        ] {
            for name in ["messages", "input"] {
                let recorded = Recorded::read(&json!({ name: messages }), 4.0);
                let found: Vec<usize> =
                    recorded.iter().flat_map(|recorded| &recorded.turns).map(|(end, _)| *end).collect();
                assert_eq!(found, ends, "{messages:?}");
            }
        }
        let line = json!({"messages": [user, answer], "output_tokens": 5, "system": "s", "note": 1});
        let recorded = Recorded::read(&line, 4.0).unwrap();
        assert_eq!((recorded.tokens(0), recorded.parameters().0.len()), (Some(5), 1));
    }

    #[test]
    fn parameters_are_sent_as_they_were_recorded() {
        let plain = json!({"model": "m", "messages": [], "max_tokens": 64, "stream": true});
        let of_ollama = json!({"model": "m", "messages": [], "options": {"num_predict": 64}, "stream": true});
        for (line, request, tokens, expected) in [
            (
                json!({"messages": [1], "model": "other", "stream": false, "temperature": 0.5, "stop": ["a"], "n": 2}),
                &plain,
                64,
                json!({"model": "m", "messages": [], "max_tokens": 64, "stream": true, "temperature": 0.5,
                    "stop": ["a"], "n": 2}),
            ),
            (
                json!({"messages": [1], "max_tokens": 7, "seed": 3}),
                &plain,
                7,
                json!({"model": "m", "messages": [], "max_tokens": 7, "stream": true, "seed": 3}),
            ),
            // Models that reason know no other name of it.
            (
                json!({"messages": [1], "max_completion_tokens": 7, "reasoning_effort": "low"}),
                &plain,
                9,
                json!({"model": "m", "messages": [], "max_completion_tokens": 9, "stream": true,
                    "reasoning_effort": "low"}),
            ),
            (
                json!({"messages": [1], "options": {"num_predict": 7, "temperature": 0}, "format": "json"}),
                &of_ollama,
                7,
                json!({"model": "m", "messages": [], "options": {"num_predict": 7, "temperature": 0},
                    "stream": true, "format": "json"}),
            ),
        ] {
            let mut made = request.as_object().unwrap().clone();
            let parameters = Parameters::of(&line);
            parameters.extend(&mut made, tokens);
            assert_eq!(Value::Object(made), expected, "{line}");
        }
        for (line, limit) in [
            (json!({"max_tokens": 7}), Some(7)),
            (json!({"max_completion_tokens": 8}), Some(8)),
            (json!({"max_output_tokens": 9}), Some(9)),
            (json!({"options": {"num_predict": 10}}), Some(10)),
            (json!({"options": {}, "temperature": 1}), None),
        ] {
            assert_eq!(Parameters::of(&line).limit(), limit, "{line}");
        }
    }

    #[test]
    fn a_line_of_a_batch_has_its_request_as_a_body() {
        let line =
            json!({"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"seed": 1}});
        assert_eq!(request_of(&line), &json!({"seed": 1}));
        assert_eq!(request_of(&json!({"body": "text"})), &json!({"body": "text"}));
    }
}
