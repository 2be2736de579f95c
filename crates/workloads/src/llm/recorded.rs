//! Recorded conversations: messages in the words of an API, with calls of tools and their results.

use serde_json::{Map, Value};

/// Members of a line that are sent with its messages.
const MEMBERS: [&str; 6] =
    ["tools", "tool_choice", "parallel_tool_calls", "functions", "system", "instructions"];

/// A recorded conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recorded {
    messages: Vec<Value>,
    /// The number of messages before each answer, and at the end if something is there that was not answered;
    /// with the tokens of the answer, as far as they are known.
    turns: Vec<(usize, Option<u64>)>,
    members: Map<String, Value>,
}

impl Recorded {
    /// Reads the messages of a line (`messages`, or `input` of a response); `None` if it has none that ask
    /// for an answer.
    pub(super) fn read(line: &Value, bytes_per_token: f64) -> Option<Self> {
        let messages = line.get("messages").or_else(|| line.get("input"))?.as_array()?.clone();
        let told = ["output_tokens", "output_length"];
        let told = told.into_iter().find_map(|name| line.get(name)?.as_u64()).map(|tokens| tokens.max(1));
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
        let members = MEMBERS.iter().filter_map(|name| Some(((*name).to_owned(), line.get(name)?.clone())));
        let members = members.collect();
        (!turns.is_empty()).then_some(Self { messages, turns, members })
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

    /// Members that are sent beside the messages.
    pub(super) const fn members(&self) -> &Map<String, Value> {
        &self.members
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
        assert_eq!((recorded.tokens(0), recorded.members().len()), (Some(5), 1));
    }
}
