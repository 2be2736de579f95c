//! The log of the truth: when each chunk of an answer was handed to the kernel.

use std::fmt;

use plimsoll_core::Nanos;
use plimsoll_targets::RequestId;

/// First line of the log.
pub(crate) const HEADER: &str = "id,number,recv_ns,start_ns,end,prompt_tokens,tokens,content_ns\n";

/// The end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamEnd {
    /// All of it was sent.
    Whole,
    /// An error was sent in its middle.
    Error,
    /// The connection was closed, or the stream of HTTP/2 reset, in its middle.
    Cut,
    /// Nothing more came on purpose.
    Stalled,
    /// The client, or the end of the server, broke it off.
    Abandoned,
}

impl StreamEnd {
    /// The name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Error => "error",
            Self::Cut => "cut",
            Self::Stalled => "stalled",
            Self::Abandoned => "abandoned",
        }
    }
}

/// The log entry of one completion. Times are on `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmTruthRow {
    /// The request's name: the header `x-plimsoll-id`, else its number.
    pub id: RequestId,
    /// The request's number: position in the count of all threads, from 0. Draws go by it.
    pub number: u64,
    /// When its last byte came: the kernel's receive stamp where there is one, else when the server saw it.
    pub recv: Nanos,
    /// When it got its slot; none if it never did.
    pub start: Option<Nanos>,
    /// End of the answer.
    pub end: StreamEnd,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens that were sent.
    pub tokens: u64,
    /// When each chunk with content was handed to the kernel; for an answer without a stream, when the answer
    /// was.
    pub content: Vec<Nanos>,
}

impl fmt::Display for LlmTruthRow {
    /// As a line of CSV without its end; the instants of the chunks are separated by spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{},", self.id, self.number, self.recv.0)?;
        if let Some(start) = self.start {
            write!(f, "{}", start.0)?;
        }
        write!(f, ",{},{},{},", self.end.name(), self.prompt_tokens, self.tokens)?;
        for (place, at) in self.content.iter().enumerate() {
            write!(f, "{}{}", if place > 0 { " " } else { "" }, at.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_csv() {
        let row = LlmTruthRow {
            id: RequestId::Number(7),
            number: 7,
            recv: Nanos(10),
            start: Some(Nanos(11)),
            end: StreamEnd::Cut,
            prompt_tokens: 5,
            tokens: 2,
            content: vec![Nanos(20), Nanos(30)],
        };
        assert_eq!(row.to_string(), "7,7,10,11,cut,5,2,20 30");
        let waited = LlmTruthRow { start: None, content: vec![], ..row };
        assert_eq!(waited.to_string(), "7,7,10,,cut,5,2,");
        assert_eq!(HEADER.matches(',').count(), waited.to_string().matches(',').count());
    }
}
