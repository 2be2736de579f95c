//! The log of the truth: the real course of every request, on the clock of the driver.

use std::fmt;

use plimsoll_core::Nanos;

/// The end of a request that the sink had counted. Every counted request has exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The usual reply was sent.
    Replied,
    /// A reply with a status from [`Faults::statuses`](super::Faults::statuses) was sent.
    Status(u16),
    /// The reply was held back on purpose.
    Dropped,
    /// The connection, or the HTTP/2 stream, was reset in its place.
    Reset,
    /// The HTTP/2 stream was refused.
    Refused,
    /// The service has rejected the call; where clients have to ask for its outcome, they learn it then.
    Rejected,
    /// An answer without a meaning was sent.
    Garbage,
    /// No reply could be sent: the client had reset the stream, the connection had ended, or owed a dropped
    /// reply before this one, or the sink was stopped.
    Abandoned,
}

impl Action {
    /// The name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replied => "replied",
            Self::Status(_) => "status",
            Self::Dropped => "dropped",
            Self::Reset => "reset",
            Self::Refused => "refused",
            Self::Rejected => "rejected",
            Self::Garbage => "garbage",
            Self::Abandoned => "abandoned",
        }
    }
}

/// The name of a request in the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// The header `x-plimsoll-id` if it is a decimal number, else (without that header) the request's number.
    Number(u64),
    /// The header `x-plimsoll-id` if it is something else.
    Text(Box<str>),
}

impl RequestId {
    /// The name of request `number` whose header `x-plimsoll-id` was `header`.
    pub fn new(header: Option<&[u8]>, number: u64) -> Self {
        match header {
            None => Self::Number(number),
            Some(value) => Self::from_header(value),
        }
    }

    fn from_header(value: &[u8]) -> Self {
        let text = String::from_utf8_lossy(value);
        // Only a number that prints as it came is one: `007` and `+7` stay as they are.
        match text.parse::<u64>() {
            Ok(number) if number.to_string() == text => Self::Number(number),
            _ => Self::Text(text.into()),
        }
    }
}

impl fmt::Display for RequestId {
    /// As a CSV field (RFC 4180).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) if text.contains([',', '"', '\r', '\n']) => {
                write!(f, "\"{}\"", text.replace('"', "\"\""))
            }
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The log entry of one request. Times are on `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthRow {
    /// The request's name.
    pub id: RequestId,
    /// The request's number: position in the count of all threads, from 0. Draws and the counter in the reply
    /// go by it.
    pub number: u64,
    /// When its last byte came: the kernel's receive stamp where there is one, else when the sink saw it.
    pub recv: Nanos,
    /// When the end of its reply was handed to the kernel, or to HTTP/2's flow control; none if there was no
    /// reply.
    pub reply: Option<Nanos>,
    /// End of the request.
    pub action: Action,
    /// The status that was sent, if any.
    pub status: Option<u16>,
}

/// First line of the log.
pub(crate) const HEADER: &str = "id,recv_ns,reply_ns,action,status,number\n";

impl fmt::Display for TruthRow {
    /// As a line of CSV without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},", self.id, self.recv.0)?;
        if let Some(reply) = self.reply {
            write!(f, "{}", reply.0)?;
        }
        write!(f, ",{},", self.action.name())?;
        if let Some(status) = self.status {
            write!(f, "{status}")?;
        }
        write!(f, ",{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64, id: Option<&[u8]>) -> TruthRow {
        TruthRow {
            id: RequestId::new(id, number),
            number,
            recv: Nanos(10),
            reply: Some(Nanos(20)),
            action: Action::Status(503),
            status: Some(503),
        }
    }

    #[test]
    fn rows_are_csv() {
        assert_eq!(row(7, None).to_string(), "7,10,20,status,503,7");
        assert_eq!(row(7, Some(b"12")).to_string(), "12,10,20,status,503,7");
        assert_eq!(row(7, Some(b"012")).to_string(), "012,10,20,status,503,7");
        assert_eq!(row(7, Some(b"a,\"b\"")).to_string(), "\"a,\"\"b\"\"\",10,20,status,503,7");
        let dropped = TruthRow { reply: None, status: None, action: Action::Dropped, ..row(1, None) };
        assert_eq!(dropped.to_string(), "1,10,,dropped,,1");
        assert_eq!(HEADER.matches(',').count(), dropped.to_string().matches(',').count());
    }
}
