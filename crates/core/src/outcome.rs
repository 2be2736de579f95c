//! Outcomes of requests.

use std::fmt;

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
        /// Why a request or a connection failed, by cause. The names are part of the result contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorClass { $($(#[$doc])* $variant,)+ }

        impl ErrorClass {
            /// Every class, in the order of their discriminants.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in results, in snake case.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
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
    /// authority is none.
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
    /// We closed the connection, because nothing came on it for the inactivity limit.
    Inactive = "connection_inactive",
    /// The peer speaks another protocol than the one that was chosen.
    WrongProtocol = "wrong_protocol",
    /// A whole response came, but without a value that a later step of its scenario needs.
    Extraction = "extraction",
    /// A whole response came, and it is not what its step expects: another status below 400, or a check that
    /// does not hold.
    Check = "check",
    /// A whole response came whose status is good and whose content says that the request was rejected.
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
    /// The number of classes, for arrays indexed by `class as usize`.
    pub const COUNT: usize = Self::ALL.len();

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
        )
    }

    /// Returns `true` if the failure is an answer of the target: a whole response, a response that violates
    /// the protocol, or a refused connection. A generator that stands still cannot cause such a failure. It
    /// can cause a timeout, or a connection that the peer closes because nothing arrived on it.
    pub const fn is_answer(self) -> bool {
        matches!(
            self,
            Self::Status4xx
                | Self::Status5xx
                | Self::ConnectRefused
                | Self::Protocol
                | Self::HeadTooLarge
                | Self::UnsolicitedData
                | Self::WrongProtocol
                | Self::Redirect
                | Self::Extraction
                | Self::Check
                | Self::Rejected
        )
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
    fn discriminants_index_the_table_and_names_are_unique() {
        for (index, class) in ErrorClass::ALL.iter().enumerate() {
            assert_eq!(*class as usize, index);
        }
        let mut names: Vec<_> = ErrorClass::ALL.iter().map(|c| c.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ErrorClass::COUNT);
    }
}
