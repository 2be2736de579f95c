//! Errors in a peer's bytes.

use std::fmt;

use plimsoll_core::ErrorClass;

/// The peer broke the protocol, or a limit. Where the next message would begin is not known any more: the
/// connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProtocolError {
    /// The first bytes cannot be those of an HTTP/1 message: another protocol, or garbage.
    NotHttp,
    /// The client opened with the HTTP/2 connection preface.
    Http2Preface,
    /// A head that is HTTP by its first bytes and malformed after that. Carries a description of the fault.
    Malformed(&'static str),
    /// A head, or the trailers of a chunked body, went beyond [`Limits`](super::Limits).
    HeadTooLarge,
    /// The framing of a chunked body is wrong.
    BadChunk,
    /// The head gives more than one content-length, and they differ.
    ConflictingLength,
    /// More interim (1xx) responses than [`Limits::interim`](super::Limits::interim) before the final one.
    TooManyInterim,
    /// The server switched protocols (101), which no request asked for.
    SwitchedProtocols,
}

impl ProtocolError {
    /// The class under which a request that ended this way is counted.
    pub const fn class(self) -> ErrorClass {
        match self {
            Self::HeadTooLarge => ErrorClass::HeadTooLarge,
            Self::NotHttp
            | Self::Http2Preface
            | Self::Malformed(_)
            | Self::BadChunk
            | Self::ConflictingLength
            | Self::TooManyInterim
            | Self::SwitchedProtocols => ErrorClass::Protocol,
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHttp => f.write_str("the peer does not speak HTTP/1.1"),
            Self::Http2Preface => f.write_str("the client speaks HTTP/2 without having negotiated it"),
            Self::Malformed(what) => write!(f, "malformed HTTP/1.1 message: {what}"),
            Self::HeadTooLarge => f.write_str("the message head or its trailers are larger than the limit"),
            Self::BadChunk => f.write_str("malformed chunked body"),
            Self::ConflictingLength => f.write_str("the message has several content-lengths that differ"),
            Self::TooManyInterim => f.write_str("too many interim (1xx) responses before the final one"),
            Self::SwitchedProtocols => f.write_str("the server switched protocols (101) without being asked"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// The peer closed the connection while a response was incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Truncated {
    /// `true` if a byte of the final response had come; `false` if there were only whole interim (1xx)
    /// responses.
    pub started: bool,
}

impl Truncated {
    /// Returns the class under which the request without a whole response is counted.
    pub const fn class(self) -> ErrorClass {
        if self.started { ErrorClass::ClosedInResponse } else { ErrorClass::ClosedBeforeResponse }
    }
}

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.started {
            "the peer closed the connection in the middle of a response"
        } else {
            "the peer closed the connection before the final response"
        })
    }
}

impl std::error::Error for Truncated {}
