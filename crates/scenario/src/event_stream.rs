//! Responses that are streams of events: how events are separated, and what they contain.

mod openai;

use plimsoll_wire::events::EventFormat;

/// The streams that a step may have as its responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStream {
    /// Server-sent events; each is content.
    Sse,
    /// JSON in lines; each line is content.
    Ndjson,
    /// Chunks of a completion as OpenAI's API sends them, as server-sent events.
    OpenAi,
    /// Messages of gRPC; each is content. A call has it by its method.
    Grpc(MessageStream),
}

/// The messages of a call of gRPC whose answer is a stream.
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
    /// It has what a user waits for.
    pub content: bool,
    /// The stream is complete with it, as far as its content goes.
    pub ends: bool,
    /// It says that the request has failed, or nothing that can be understood.
    pub fault: Option<EventFault>,
    /// The server's count of tokens so far.
    pub usage: Option<Usage>,
}

/// Fault of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFault {
    /// The server says that the request has failed.
    Error,
    /// It is not what the stream consists of.
    Malformed,
}

/// Numbers of tokens, as a server counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
}

impl EventStream {
    /// The names in plans, in the order of the variants. That of gRPC has none.
    pub const NAMES: [&'static str; 3] = ["sse", "ndjson", "openai"];

    /// Returns the stream of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        let all = [Self::Sse, Self::Ndjson, Self::OpenAi];
        Self::NAMES.iter().zip(all).find(|(known, _)| **known == name).map(|(_, stream)| stream)
    }

    /// The format that separates events.
    pub const fn format(self) -> EventFormat {
        match self {
            Self::Sse | Self::OpenAi => EventFormat::Sse,
            Self::Ndjson => EventFormat::Ndjson,
            Self::Grpc(_) => EventFormat::Grpc,
        }
    }

    /// Returns `true` if an event has to say that the stream is complete.
    pub const fn has_end(self) -> bool {
        matches!(self, Self::OpenAi)
    }

    /// Returns the number of events that are enough: the response is broken off behind them.
    pub const fn enough(self) -> Option<u32> {
        match self {
            Self::Grpc(MessageStream { take, .. }) => take,
            Self::Sse | Self::Ndjson | Self::OpenAi => None,
        }
    }

    /// Returns `true` if each event lets another message of the request go.
    pub const fn is_in_turn(self) -> bool {
        matches!(self, Self::Grpc(MessageStream { in_turn: true, .. }))
    }

    /// Returns `true` if an event with this data says nothing but that the stream is complete: `[DONE]`.
    pub fn is_end_mark(self, data: &[u8]) -> bool {
        matches!(self, Self::OpenAi) && openai::is_end_mark(data)
    }

    /// Returns the name that the server gave to the response, if an event with this data tells it: the `id`
    /// of a chunk.
    pub fn id_of(self, data: &[u8]) -> Option<String> {
        match self {
            Self::Sse | Self::Ndjson | Self::Grpc(_) => None,
            Self::OpenAi => openai::id_of(data),
        }
    }

    /// Returns what an event with this data says. Allocates nothing except for strings with escapes.
    #[inline]
    pub fn read(self, data: &[u8]) -> EventFacts {
        match self {
            Self::Sse | Self::Ndjson | Self::Grpc(_) => EventFacts { content: true, ..EventFacts::default() },
            Self::OpenAi => openai::read(data),
        }
    }
}
