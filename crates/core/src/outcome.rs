//! Outcomes of requests.

use std::fmt;

use crate::ErrorRow;

/// Outcome of a started request. Every started request ends in exactly one of these, or is still in flight
/// when the run stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A whole response came, and it is what its step expects: without more, a status below 400.
    Ok,
    /// The request ended without a good response.
    Failed(ErrorClass),
    /// No whole response came within the timeout. Its response time is censored: at least the timeout.
    TimedOut,
}

impl Outcome {
    /// Returns `true` if the request failed or timed out, unless it was aborted on purpose.
    pub const fn is_bad(self) -> bool {
        !matches!(self, Self::Ok | Self::Failed(ErrorClass::AbortedByUs))
    }
}

macro_rules! error_classes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// Reason why a request or a connection failed, by cause. The names are part of the result contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorClass {
            $($(#[$doc])* $variant,)+
            /// A class that an extension has, or that another program had whose results were read.
            Other(&'static ErrorRow),
        }

        /// Places of the core's classes in arrays.
        #[derive(Clone, Copy)]
        enum Slot { $($variant,)+ }

        impl ErrorClass {
            /// The classes of the core, in the order of their [indexes](Self::index).
            pub const CORE: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in results, in snake case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                    Self::Other(row) => row.name,
                }
            }

            /// Returns the place of a class of the core in arrays as long as [`CORE`](Self::CORE).
            #[inline]
            pub const fn index(self) -> Option<usize> {
                match self {
                    $(Self::$variant => Some(Slot::$variant as usize),)+
                    Self::Other(_) => None,
                }
            }
        }
    };
}

error_classes! {
    /// A whole response came with a status from 400 to 499.
    Status4xx = "status_4xx",
    /// A whole response came with a status of 500 or more.
    Status5xx = "status_5xx",
    /// The peer refused the connection.
    ConnectRefused = "connect_refused",
    /// The connection was not made within the connect timeout.
    ConnectTimeout = "connect_timeout",
    /// The connection could not be made: unreachable host or network, or another error of the system.
    ConnectFailed = "connect_failed",
    /// No local port was left for a new connection.
    PortsExhausted = "ports_exhausted",
    /// No file descriptor was left for a new connection.
    DescriptorsExhausted = "descriptors_exhausted",
    /// The proxy refused a tunnel to the target, or did not speak its protocol before there was one.
    Proxy = "proxy",
    /// The TLS handshake or a TLS record failed.
    Tls = "tls",
    /// The peer reset the connection while a response was owed.
    Reset = "reset",
    /// The peer closed the connection while a response was owed, before its first byte.
    ClosedBeforeResponse = "closed_before_response",
    /// The peer closed the connection in the middle of a response (a body shorter than its content-length).
    ClosedInResponse = "closed_in_response",
    /// The connection ended without TLS's close_notify, which alone would have said that a body without a
    /// length was whole (RFC 9112 section 9.8).
    TlsTruncated = "tls_truncated",
    /// The peer sent something that is not a valid response of the protocol.
    Protocol = "protocol",
    /// A response head grew beyond the limit.
    HeadTooLarge = "head_too_large",
    /// The peer sent bytes that no request had asked for.
    UnsolicitedData = "unsolicited_data",
    /// A redirect could not be followed: no or bad location, or too many in a row.
    Redirect = "redirect",
    /// A server that came up while the run went on has no address: its name could not be resolved, or the
    /// authority is invalid.
    Resolve = "resolve",
    /// More servers came up while the run went on than a run may have.
    TooManyServers = "too_many_servers",
    /// The peer reset the stream of the request (HTTP/2).
    StreamReset = "stream_reset",
    /// The peer refused the stream of the request before processing it (HTTP/2).
    StreamRefused = "stream_refused",
    /// The peer said that it goes away and that it had not processed the request (HTTP/2).
    GoAway = "go_away",
    /// A stream of events ended before its end: in the middle of an event, without the event that says it is
    /// over, or with its connection.
    StreamIncomplete = "stream_incomplete",
    /// The answer to the upgrade to a WebSocket says that it switches, and is not valid: a wrong proof, or
    /// something that was not offered.
    WebSocketHandshake = "websocket_handshake",
    /// The server closed the WebSocket by a close frame, and a message was owed, or one was to be sent.
    WebSocketClosed = "websocket_closed",
    /// The connection of a WebSocket ended without a close frame, or in the middle of a message.
    WebSocketDropped = "websocket_dropped",
    /// We closed the connection, because nothing came on it for the inactivity limit.
    Inactive = "connection_inactive",
    /// The peer speaks another protocol than the one that was chosen.
    WrongProtocol = "wrong_protocol",
    /// A whole response came, but without a value that a later step of its scenario needs.
    Extraction = "extraction",
    /// A whole response came, and it is not what its step expects: another status below 400, or a check that
    /// does not hold.
    Check = "check",
    /// A whole response with a good status came whose content says that the request was rejected.
    Rejected = "rejected",
    /// A script failed, or could not make the request.
    Script = "script",
    /// A scenario could not go on: its data has ended or could not be read, or it never sends anything.
    Scenario = "scenario",
    /// Any other error of the system on an open connection.
    Io = "io",
    /// We aborted the request on purpose, as a fault of the client: no failure, and counted apart from those.
    AbortedByUs = "aborted_by_us",
}

impl ErrorClass {
    /// Returns the class of the core that has this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::CORE.iter().copied().find(|class| class.name() == name)
    }

    /// Returns `true` if the request was certainly not handed to the target: it failed before a byte of it
    /// was written.
    pub const fn is_connect(self) -> bool {
        matches!(
            self,
            Self::ConnectRefused
                | Self::ConnectTimeout
                | Self::ConnectFailed
                | Self::PortsExhausted
                | Self::DescriptorsExhausted
                | Self::Proxy
        )
    }

    /// Returns `true` if the failure is an answer of the target: a whole response, a response that violates
    /// the protocol, or a refused connection. A generator that stands still cannot cause such a failure. It
    /// can cause a timeout, or a connection that the peer closes because nothing arrived on it.
    pub const fn is_answer(self) -> bool {
        match self {
            Self::Status4xx
            | Self::Status5xx
            | Self::ConnectRefused
            | Self::Protocol
            | Self::HeadTooLarge
            | Self::UnsolicitedData
            | Self::WrongProtocol
            | Self::WebSocketHandshake
            | Self::Redirect
            | Self::Extraction
            | Self::Check
            | Self::Rejected => true,
            Self::Other(row) => row.is_answer,
            _ => false,
        }
    }

    /// Returns `true` if the target says by this failure that the fault is its own.
    pub const fn is_of_server(self) -> bool {
        match self {
            Self::Status5xx => true,
            Self::Other(row) => row.is_of_server,
            _ => false,
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_the_core_have_their_indexes_and_names_of_their_own() {
        for (index, class) in ErrorClass::CORE.iter().enumerate() {
            assert_eq!(class.index(), Some(index));
            assert_eq!(ErrorClass::from_name(class.name()), Some(*class));
        }
    }
}
