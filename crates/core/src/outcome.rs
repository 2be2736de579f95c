//! Outcomes of requests.

use std::fmt;
use std::ops::{Deref, DerefMut};

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
    /// gRPC status 1 in a whole response: the call was cancelled.
    GrpcCancelled = "grpc_cancelled",
    /// gRPC status 2 in a whole response: the status is unknown to the client, or there is none.
    GrpcUnknown = "grpc_unknown",
    /// gRPC status 3 in a whole response: the client gave a wrong argument.
    GrpcInvalidArgument = "grpc_invalid_argument",
    /// gRPC status 4 in a whole response: the deadline passed at the server.
    GrpcDeadlineExceeded = "grpc_deadline_exceeded",
    /// gRPC status 5 in a whole response: something that was asked for does not exist.
    GrpcNotFound = "grpc_not_found",
    /// gRPC status 6 in a whole response: something that was to be created exists.
    GrpcAlreadyExists = "grpc_already_exists",
    /// gRPC status 7 in a whole response: the caller may not do this.
    GrpcPermissionDenied = "grpc_permission_denied",
    /// gRPC status 8 in a whole response: a quota or some other resource is used up.
    GrpcResourceExhausted = "grpc_resource_exhausted",
    /// gRPC status 9 in a whole response: the system is not in the state that the call needs.
    GrpcFailedPrecondition = "grpc_failed_precondition",
    /// gRPC status 10 in a whole response: the call was aborted, as after a conflict of transactions.
    GrpcAborted = "grpc_aborted",
    /// gRPC status 11 in a whole response: the call went past the valid range.
    GrpcOutOfRange = "grpc_out_of_range",
    /// gRPC status 12 in a whole response: the server has no such method.
    GrpcUnimplemented = "grpc_unimplemented",
    /// gRPC status 13 in a whole response: an invariant of the server is broken.
    GrpcInternal = "grpc_internal",
    /// gRPC status 14 in a whole response: the service is unavailable at the moment.
    GrpcUnavailable = "grpc_unavailable",
    /// gRPC status 15 in a whole response: data is lost or damaged.
    GrpcDataLoss = "grpc_data_loss",
    /// gRPC status 16 in a whole response: the caller has no valid credentials.
    GrpcUnauthenticated = "grpc_unauthenticated",
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

    /// The classes of the gRPC status codes from 1 on.
    pub const GRPC: [Self; 16] = [
        Self::GrpcCancelled,
        Self::GrpcUnknown,
        Self::GrpcInvalidArgument,
        Self::GrpcDeadlineExceeded,
        Self::GrpcNotFound,
        Self::GrpcAlreadyExists,
        Self::GrpcPermissionDenied,
        Self::GrpcResourceExhausted,
        Self::GrpcFailedPrecondition,
        Self::GrpcAborted,
        Self::GrpcOutOfRange,
        Self::GrpcUnimplemented,
        Self::GrpcInternal,
        Self::GrpcUnavailable,
        Self::GrpcDataLoss,
        Self::GrpcUnauthenticated,
    ];

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
        matches!(
            self,
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
                | Self::Rejected
        ) || (self as usize >= Self::GrpcCancelled as usize
            && self as usize <= Self::GrpcUnauthenticated as usize)
    }
}

/// Counts by class: `counts[class as usize]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCounts([u64; ErrorClass::COUNT]);

impl Default for ErrorCounts {
    fn default() -> Self {
        Self([0; ErrorClass::COUNT])
    }
}

impl IntoIterator for ErrorCounts {
    type Item = u64;
    type IntoIter = std::array::IntoIter<u64, { ErrorClass::COUNT }>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Deref for ErrorCounts {
    type Target = [u64; ErrorClass::COUNT];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for ErrorCounts {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
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
