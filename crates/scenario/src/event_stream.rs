//! Responses that are streams of events: how their events are told apart, and what an event says.

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
    /// The names in plans, in the order of the variants.
    pub const NAMES: [&'static str; 3] = ["sse", "ndjson", "openai"];

    /// Returns the stream of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        let all = [Self::Sse, Self::Ndjson, Self::OpenAi];
        Self::NAMES.iter().zip(all).find(|(known, _)| **known == name).map(|(_, stream)| stream)
    }

    /// The way in which events are told apart.
    pub const fn format(self) -> EventFormat {
        match self {
            Self::Sse | Self::OpenAi => EventFormat::Sse,
            Self::Ndjson => EventFormat::Ndjson,
        }
    }

    /// Returns `true` if an event has to say that the stream is complete.
    pub const fn has_end(self) -> bool {
        matches!(self, Self::OpenAi)
    }

    /// Returns what an event with this data says. Allocates nothing but for strings with escapes.
    #[inline]
    pub fn read(self, data: &[u8]) -> EventFacts {
        match self {
            Self::Sse | Self::Ndjson => EventFacts { content: true, ..EventFacts::default() },
            Self::OpenAi => openai::read(data),
        }
    }
}
