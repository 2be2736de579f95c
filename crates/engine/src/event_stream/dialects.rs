//! Every dialect of language models × what a stream of it may do × how its bytes are cut.
//!
//! The events are written after the public documentation of each API. What is expected follows from which of
//! them have content, and from where their last bytes are.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_metrics::EventStreamRecord;
use plimsoll_scenario::EventStream;

use super::{Receipt, StreamState, StreamedStep};

/// Kind of content in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Reasoning,
    Answer,
    Neither,
}

/// The events of one API.
struct Dialect {
    name: &'static str,
    /// Before and behind the data of each event.
    around: (&'static str, &'static str),
    role: &'static [&'static str],
    text: &'static [&'static str],
    reasoning: &'static [&'static str],
    /// A call of a tool: its name, or all of it, and then parts of its arguments.
    tool: &'static [&'static str],
    /// Empty content, and what else says nothing.
    nothing: &'static [&'static str],
    /// The end with the numbers of tokens: `PROMPT` and `TOKENS`.
    counted_end: &'static [&'static str],
    end: &'static [&'static str],
    error: &'static str,
    /// Part of the message about a missing end.
    missing: &'static str,
}

const DIALECTS: [Dialect; 6] = [
    Dialect {
        name: "chat",
        around: ("data: ", "\n\n"),
        role: &[r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#],
        text: &[r#"{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#],
        reasoning: &[r#"{"choices":[{"delta":{"content":null,"reasoning_content":"h"}}]}"#],
        tool: &[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}"#,
        ],
        nothing: &[r#"{"choices":[],"prompt_filter_results":[]}"#, r#"{"choices":[{"delta":{}}]}"#],
        counted_end: &[
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":PROMPT,"completion_tokens":TOKENS}}"#,
            "[DONE]",
        ],
        end: &[r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#],
        error: r#"{"error":{"message":"out of memory","code":500}}"#,
        missing: "[DONE]",
    },
    Dialect {
        name: "completions",
        around: ("data: ", "\n\n"),
        role: &[],
        text: &[r#"{"choices":[{"index":0,"text":"a","finish_reason":null}]}"#],
        reasoning: &[],
        tool: &[],
        nothing: &[r#"{"choices":[{"text":""}]}"#],
        counted_end: &[
            r#"{"choices":[{"text":"","finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"completion_tokens":TOKENS,"prompt_tokens":PROMPT}}"#,
            "[DONE]",
        ],
        end: &["[DONE]"],
        error: r#"{"object":"error","message":"out of memory"}"#,
        missing: "[DONE]",
    },
    Dialect {
        name: "responses",
        around: ("event: named\ndata: ", "\n\n"),
        role: &[
            r#"{"type":"response.created","response":{"id":"r","error":null,"output":[],"usage":null}}"#,
            r#"{"type":"response.in_progress","response":{"id":"r","status":"in_progress"}}"#,
            r#"{"type":"response.output_item.added","item":{"type":"message","role":"assistant","content":[]}}"#,
            r#"{"type":"response.content_part.added","part":{"type":"output_text","text":""}}"#,
        ],
        text: &[r#"{"type":"response.output_text.delta","item_id":"m","delta":"a","sequence_number":4}"#],
        reasoning: &[
            r#"{"type":"response.reasoning_text.delta","delta":"h"}"#,
            r#"{"delta":"h","type":"response.reasoning_summary_text.delta"}"#,
        ],
        tool: &[
            r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","delta":"{}"}"#,
        ],
        nothing: &[
            r#"{"type":"response.output_text.delta","delta":""}"#,
            r#"{"type":"response.output_text.done","text":"aaaa"}"#,
            r#"{"type":"response.output_item.done","item":{"name":"f","content":[{"text":"aaaa"}]}}"#,
            r#"{"type":"response.compaction.compacting"}"#,
        ],
        counted_end: &[
            r#"{"type":"response.completed","response":{"error":null,"usage":{"input_tokens":PROMPT,"input_tokens_details":{"cached_tokens":1},"output_tokens":TOKENS,"output_tokens_details":{"reasoning_tokens":2}}}}"#,
        ],
        end: &[
            r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#,
        ],
        error: r#"{"type":"response.failed","response":{"error":{"message":"out of memory"}}}"#,
        missing: "response.completed",
    },
    Dialect {
        name: "anthropic",
        around: ("event: named\ndata: ", "\n\n"),
        role: &[
            r#"{"type":"message_start","message":{"role":"assistant","content":[],"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"ping"}"#,
        ],
        text: &[r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#],
        reasoning: &[r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"h"}}"#],
        tool: &[
            r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        ],
        nothing: &[
            r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"x"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"one_of_tomorrow"}"#,
        ],
        counted_end: &[
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":PROMPT,"output_tokens":TOKENS}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        end: &[r#"{"type":"message_stop"}"#],
        error: r#"{"type":"error","error":{"type":"overloaded_error","message":"out of memory"}}"#,
        missing: "message_stop",
    },
    Dialect {
        name: "ollama chat",
        around: ("", "\n"),
        role: &[r#"{"model":"m","message":{"role":"assistant","content":""},"done":false}"#],
        text: &[
            r#"{"model":"m","created_at":"x","message":{"role":"assistant","content":"a"},"done":false}"#,
        ],
        reasoning: &[r#"{"message":{"role":"assistant","content":"","thinking":"h"},"done":false}"#],
        tool: &[
            r#"{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":false}"#,
        ],
        nothing: &[r#"{"message":{"content":"","tool_calls":[]},"done":false}"#],
        counted_end: &[
            r#"{"message":{"content":""},"done":true,"prompt_eval_count":PROMPT,"eval_count":TOKENS}"#,
        ],
        end: &[r#"{"message":{"content":""},"done_reason":"stop","done":true}"#],
        error: r#"{"error":"out of memory"}"#,
        missing: "\"done\": true",
    },
    Dialect {
        name: "ollama generate",
        around: ("", "\n"),
        role: &[],
        text: &[r#"{"model":"m","response":"a","done":false}"#],
        reasoning: &[r#"{"response":"","thinking":"h","done":false}"#],
        tool: &[],
        nothing: &[r#"{"response":"","done":false}"#],
        counted_end: &[
            r#"{"response":"","done":true,"context":[1,2],"prompt_eval_count":PROMPT,"eval_count":TOKENS}"#,
        ],
        end: &[r#"{"response":"","done":true}"#],
        error: r#"{"error":"out of memory"}"#,
        missing: "\"done\": true",
    },
];

/// The end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Counted,
    Uncounted,
    /// The server says that it has failed.
    Error,
    /// In the middle of an event.
    Cut,
    /// Behind an event, without a word.
    Early,
}

/// Tokens of the prompt and of the answer that a server counts.
const COUNTS: [u64; 2] = [9, 40];

impl Dialect {
    /// The events of this front and end.
    fn stream(&self, front: &[(&[&str], Is)], end: End) -> Vec<(String, Is)> {
        let written = |data: &str| {
            let [prompt, tokens] = COUNTS.map(|count| count.to_string());
            let data = data.replace("PROMPT", &prompt).replace("TOKENS", &tokens);
            format!("{}{data}{}", self.around.0, self.around.1)
        };
        let mut events: Vec<(String, Is)> = Vec::new();
        for (all, is) in front {
            events.extend(all.iter().map(|data| (written(data), *is)));
        }
        let last: &[&str] = match end {
            End::Counted => self.counted_end,
            End::Uncounted => self.end,
            End::Error => &[self.error],
            End::Cut => self.text,
            End::Early => &[],
        };
        events.extend(last.iter().map(|data| (written(data), Is::Neither)));
        if let (End::Cut, Some((last, _))) = (end, events.last_mut()) {
            last.truncate(last.len() - 3);
        }
        events
    }
}

/// Reads a stream in pieces that come at instants 1, 2 and so on, and compares everything with what follows
/// from its events.
fn check(dialect: &Dialect, events: &[(String, Is)], end: End, cut: usize) {
    let at = format!("{}, {end:?}, in pieces of {cut}: {events:#?}", dialect.name);
    let step = StreamedStep { stream: EventStream::Completion, drains: true, logs: false };
    let (mut state, mut record) = (StreamState::new(step.stream), EventStreamRecord::default());
    let bytes: String = events.iter().map(|(event, _)| event.as_str()).collect();
    for (piece, at) in bytes.as_bytes().chunks(cut).zip(1..) {
        let came = Receipt { at: Nanos(at), behind: Nanos::ZERO };
        state.read(step, &mut piece.to_vec(), came, &mut record);
    }
    let ended = state.finish(step, &mut record);
    // An event is there with the piece that has its last byte.
    let mut length = 0;
    let instants: Vec<(Nanos, Is)> = events
        .iter()
        .map(|(event, is)| {
            length += event.len();
            (Nanos(length.div_ceil(cut) as u64), *is)
        })
        .collect();
    let content: Vec<Nanos> =
        instants.iter().filter(|(_, is)| *is != Is::Neither).map(|(at, _)| *at).collect();
    let facts = state.facts;
    let first_event = instants.first().filter(|_| end != End::Cut || events.len() > 1);
    assert_eq!(facts.first, first_event.map_or(Nanos::MAX, |(at, _)| *at), "{at}");
    assert_eq!(facts.first_content, content.first().copied().unwrap_or(Nanos::MAX), "{at}");
    let answer = instants.iter().find(|(_, is)| *is == Is::Answer);
    assert_eq!(facts.first_answer, answer.map_or(Nanos::MAX, |(at, _)| *at), "{at}");
    assert_eq!(facts.reasoned, instants.iter().any(|(_, is)| *is == Is::Reasoning), "{at}");
    assert_eq!(facts.last_content, content.last().copied().unwrap_or(Nanos::MAX), "{at}");
    assert_eq!((facts.content_events, record.content_events), (content.len() as u64, content.len() as u64));
    let gaps: u128 = content.windows(2).map(|pair| u128::from(pair[1].0 - pair[0].0)).sum();
    assert_eq!(
        (record.gap.count(), record.gap.sum()),
        (content.len().saturating_sub(1) as u64, gaps),
        "{at}"
    );
    let [prompt, tokens] = COUNTS.map(|count| (end == End::Counted).then_some(count));
    assert_eq!(facts.tokens, tokens, "{at}");
    // A message says at its front how long its prompt is.
    let of_front = (dialect.name == "anthropic" && bytes.contains("message_start")).then_some(7);
    assert_eq!(facts.prompt_tokens, prompt.or(of_front), "{at}");
    match (end, ended) {
        (End::Counted | End::Uncounted, ended) => assert_eq!(ended, Ok(()), "{at}"),
        (End::Error, Err((class, why))) => {
            assert!(class == ErrorClass::Rejected && why.contains("out of memory"), "{why}: {at}");
        }
        (End::Cut | End::Early, Err((class, why))) => {
            assert_eq!(class, ErrorClass::StreamIncomplete, "{why}: {at}");
            // A line of JSON needs no line end, so that one which is cut is broken.
            assert!(end != End::Early || events.is_empty() || why.contains(dialect.missing), "{why}: {at}");
        }
        (_, Ok(())) => panic!("it is whole: {at}"),
    }
}

#[test]
fn dialects_differ_in_words_only() {
    for dialect in &DIALECTS {
        let Dialect { role, text, reasoning, tool, nothing, .. } = *dialect;
        let [role, none] = [role, nothing].map(|events| (events, Is::Neither));
        let [text, tool] = [text, tool].map(|events| (events, Is::Answer));
        let thought = (reasoning, Is::Reasoning);
        let fronts: [&[(&[&str], Is)]; 8] = [
            &[],
            &[text],
            &[text, text, text, none],
            &[role],
            &[role, text, text],
            &[role, none, thought, thought, none, text, text],
            &[role, tool, tool],
            &[role, thought, none],
        ];
        for front in fronts {
            for end in [End::Counted, End::Uncounted, End::Error, End::Cut, End::Early] {
                let events = dialect.stream(front, end);
                for cut in [1, 2, 7, 64, 1 << 20] {
                    check(dialect, &events, end, cut);
                }
            }
        }
    }
}
