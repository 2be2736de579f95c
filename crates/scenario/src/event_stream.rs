//! Responses that are streams of events: how events are separated, and what they contain.

mod completion;

use plimsoll_wire::events::EventFormat;

/// The streams that a step may have as its responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStream {
    /// Server-sent events; each is content.
    Sse,
    /// JSON in lines; each line is content.
    Ndjson,
    /// The events of a language model's answer: OpenAI's chunks and responses, Anthropic's messages, Ollama's
    /// lines, told apart by what they say.
    Completion,
    /// Length-prefixed messages; each is content. A body decides that its response is one.
    Messages(MessageStream),
}

/// The length-prefixed messages of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageStream {
    /// Messages after which the call is cancelled, which is its good end then. `None`: the server ends it.
    pub take: Option<u32>,
    /// Messages to the server take turns with its own: each but the first is sent when one has come.
    pub in_turn: bool,
}

/// Meaning of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventFacts {
    /// `true` if the event has what a user waits for.
    pub content: bool,
    /// All of that is reasoning, which comes before the answer.
    pub reasoning: bool,
    /// The API that it belongs to, if it shows that.
    pub api: Option<CompletionApi>,
    /// The stream is complete with it, as far as its content goes.
    pub ends: bool,
    /// Set if the event says that the request has failed, or nothing that can be understood.
    pub fault: Option<EventFault>,
    /// The server's count of tokens so far.
    pub usage: Option<Usage>,
}

impl EventFacts {
    /// An event of an API that has a part of an answer, of the reasoning before it, or neither.
    const fn of(api: CompletionApi, answer: bool, reasoning: bool) -> Self {
        Self {
            content: answer || reasoning,
            reasoning: reasoning && !answer,
            api: Some(api),
            ends: false,
            fault: None,
            usage: None,
        }
    }
}

/// The API that the events of a language model belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionApi {
    /// OpenAI's chunks of completions.
    Chunks,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Ollama's lines of JSON.
    Lines,
}

impl CompletionApi {
    /// What says that a stream is complete, in words.
    pub const fn end(self) -> &'static str {
        match self {
            Self::Chunks => "`[DONE]` or a finish_reason",
            Self::Responses => "`response.completed` or `response.incomplete`",
            Self::Messages => "`message_stop` or a stop_reason",
            Self::Lines => "`\"done\": true`",
        }
    }
}

/// Fault of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFault {
    /// The server says that the request has failed.
    Error,
    /// The event is not what the stream consists of.
    Malformed,
}

/// Numbers of tokens, as a server counts them; [`u64::MAX`] for a number that no count can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer.
    pub completion_tokens: Option<u64>,
    /// Of these, tokens of reasoning.
    pub reasoning_tokens: Option<u64>,
}

impl EventStream {
    /// The names in plans, in the order of the variants. Length-prefixed messages have none.
    pub const NAMES: [&'static str; 3] = ["sse", "ndjson", "llm"];

    /// Returns the stream of this name. `openai` is that of `llm` in older plans.
    pub fn by_name(name: &str) -> Option<Self> {
        let name = if name == "openai" { "llm" } else { name };
        let all = [Self::Sse, Self::Ndjson, Self::Completion];
        Self::NAMES.iter().zip(all).find(|(known, _)| **known == name).map(|(_, stream)| stream)
    }

    /// The format that separates events.
    pub const fn format(self) -> EventFormat {
        match self {
            Self::Sse => EventFormat::Sse,
            Self::Completion => EventFormat::SseOrNdjson,
            Self::Ndjson => EventFormat::Ndjson,
            Self::Messages(_) => EventFormat::LengthPrefixed,
        }
    }

    /// Returns `true` if an event has to say that the stream is complete.
    pub const fn has_end(self) -> bool {
        matches!(self, Self::Completion)
    }

    /// Returns the number of events that are enough: the response is broken off behind them.
    pub const fn enough(self) -> Option<u32> {
        match self {
            Self::Messages(MessageStream { take, .. }) => take,
            Self::Sse | Self::Ndjson | Self::Completion => None,
        }
    }

    /// Returns `true` if each event lets another message of the request go.
    pub const fn is_in_turn(self) -> bool {
        matches!(self, Self::Messages(MessageStream { in_turn: true, .. }))
    }

    /// Returns `true` if an event with this data says nothing but that the stream is complete: `[DONE]`.
    pub fn is_end_mark(self, data: &[u8]) -> bool {
        matches!(self, Self::Completion) && completion::is_end_mark(data)
    }

    /// Returns the name that the server gave to the response, if an event with this data tells it: the `id`
    /// of a chunk, a response or a message.
    pub fn id_of(self, data: &[u8]) -> Option<String> {
        match self {
            Self::Sse | Self::Ndjson | Self::Messages(_) => None,
            Self::Completion => completion::id_of(data),
        }
    }

    /// Returns what an event with this data says. Allocates nothing except for strings with escapes.
    #[inline]
    pub fn read(self, data: &[u8]) -> EventFacts {
        match self {
            Self::Sse | Self::Ndjson | Self::Messages(_) => {
                EventFacts { content: true, ..EventFacts::default() }
            }
            Self::Completion => completion::read(data),
        }
    }
}
