//! Streams of completions as other people's servers send them, written by hand from their documentation: what
//! is content, what ends, and how many tokens the server counts.

use plimsoll_scenario::{EventStream, Usage};
use plimsoll_wire::events::EventReader;

/// Events, events with content, the last count of tokens, and whether the end was told.
fn read(stream: &[u8], cut: usize) -> (u64, u64, Option<Usage>, bool) {
    let judge = EventStream::Completion;
    let (mut reader, mut told) = (EventReader::new(judge.format()), (0, 0, None, false));
    for piece in stream.chunks(cut) {
        let fed = reader.feed(piece, |event| {
            let facts = judge.read(event.data);
            assert_eq!(facts.fault, None, "{}", String::from_utf8_lossy(event.data));
            told.0 += 1;
            told.1 += u64::from(facts.content);
            told.2 = facts.usage.or(told.2);
            told.3 |= facts.ends;
        });
        fed.expect("events are short");
    }
    assert!(reader.finish(|_| panic!("an event behind the last")));
    told
}

#[test]
fn dialects_of_other_servers_are_understood() {
    let usage = |prompt, completion| {
        Some(Usage {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            reasoning_tokens: None,
        })
    };
    let cases: [(&str, &[u8], _); 3] = [
        // The role alone is not a token, reasoning is one.
        ("vLLM", include_bytes!("dialects/vllm_chat.sse"), (7, 3, usage(12, 4), true)),
        ("llama.cpp", include_bytes!("dialects/llama_cpp_chat.sse"), (7, 3, usage(9, 3), true)),
        // The role is in every chunk, and the usage in the last of them.
        ("TGI", include_bytes!("dialects/tgi_chat.sse"), (4, 2, usage(17, 3), true)),
    ];
    for (server, stream, expected) in cases {
        for cut in [1, 7, 64, stream.len()] {
            assert_eq!(read(stream, cut), expected, "{server} in pieces of {cut}");
        }
    }
}
