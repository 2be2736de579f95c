//! Error codes, and errors of a connection.

use std::fmt;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $value:literal $name:literal,)+) => {
        /// Reason why a stream or a connection was ended (RFC 9113 section 7).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)+
            /// A code that RFC 9113 does not define; it is treated as `INTERNAL_ERROR`.
            Unknown(u32),
        }

        impl ErrorCode {
            /// The name in the RFC, in results too; `UNKNOWN` for all codes without one.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                    Self::Unknown(_) => "UNKNOWN",
                }
            }

            /// The code in frames.
            pub const fn value(self) -> u32 {
                match self {
                    $(Self::$variant => $value,)+
                    Self::Unknown(value) => value,
                }
            }

            /// The code that a frame carries.
            pub const fn from_value(value: u32) -> Self {
                match value {
                    $($value => Self::$variant,)+
                    _ => Self::Unknown(value),
                }
            }
        }
    };
}

error_codes! {
    /// No error: a graceful end.
    NoError = 0x0 "NO_ERROR",
    /// The peer broke a rule that has no code of its own.
    ProtocolError = 0x1 "PROTOCOL_ERROR",
    /// The sender of the code failed by itself.
    InternalError = 0x2 "INTERNAL_ERROR",
    /// The peer sent more than the flow-control windows allow, or made a window too large.
    FlowControlError = 0x3 "FLOW_CONTROL_ERROR",
    /// The peer did not acknowledge SETTINGS in time.
    SettingsTimeout = 0x4 "SETTINGS_TIMEOUT",
    /// A frame came on a stream that its sender had closed.
    StreamClosed = 0x5 "STREAM_CLOSED",
    /// A frame has a length that its kind or the settings do not allow.
    FrameSizeError = 0x6 "FRAME_SIZE_ERROR",
    /// The stream was refused before any processing: the request may be sent again.
    RefusedStream = 0x7 "REFUSED_STREAM",
    /// The stream is not needed any more.
    Cancel = 0x8 "CANCEL",
    /// The header compression state cannot be kept.
    CompressionError = 0x9 "COMPRESSION_ERROR",
    /// The connection of a CONNECT request failed.
    ConnectError = 0xa "CONNECT_ERROR",
    /// The peer behaves in a way that costs too much.
    EnhanceYourCalm = 0xb "ENHANCE_YOUR_CALM",
    /// The transport is not secure enough.
    InadequateSecurity = 0xc "INADEQUATE_SECURITY",
    /// The request has to be made over HTTP/1.1.
    Http11Required = 0xd "HTTP_1_1_REQUIRED",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(value) => write!(f, "UNKNOWN (0x{value:x})"),
            known => f.write_str(known.name()),
        }
    }
}

/// The peer broke a rule that ends the connection (RFC 9113 section 5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionError {
    /// The code of the GOAWAY that answers it.
    pub code: ErrorCode,
    /// Description of the peer's fault.
    pub reason: &'static str,
    /// `true` if the peer's first bytes are not those of an HTTP/2 frame, as in `HTTP/1.1 400 Bad Request`.
    pub wrong_protocol: bool,
}

impl ConnectionError {
    /// A peer that speaks HTTP/2 and broke a rule of it.
    pub(super) const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self { code, reason, wrong_protocol: false }
    }

    /// A broken rule that has no code of its own.
    pub(super) const fn protocol(reason: &'static str) -> Self {
        Self::new(ErrorCode::ProtocolError, reason)
    }

    /// A frame of a wrong length.
    pub(super) const fn frame_size(reason: &'static str) -> Self {
        Self::new(ErrorCode::FrameSizeError, reason)
    }

    /// A window exceeded or too large.
    pub(super) const fn flow_control(reason: &'static str) -> Self {
        Self::new(ErrorCode::FlowControlError, reason)
    }

    /// A peer that costs too much.
    pub(super) const fn calm(reason: &'static str) -> Self {
        Self::new(ErrorCode::EnhanceYourCalm, reason)
    }

    /// First bytes that are not HTTP/2.
    pub(super) const fn wrong_protocol(reason: &'static str) -> Self {
        Self { code: ErrorCode::ProtocolError, reason, wrong_protocol: true }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.code)
    }
}

impl std::error::Error for ConnectionError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_values_agree() {
        for value in 0..0x20 {
            let code = ErrorCode::from_value(value);
            assert_eq!(code.value(), value);
            assert_eq!(code.name() == "UNKNOWN", value > 0xd, "{code}");
        }
        assert_eq!(ErrorCode::from_value(0xd).name(), "HTTP_1_1_REQUIRED");
        assert_eq!(ErrorCode::from_value(0x1234).to_string(), "UNKNOWN (0x1234)");
    }

    #[test]
    fn an_error_names_its_reason_and_code() {
        let error = ConnectionError::calm("too many frames");
        assert_eq!(error.to_string(), "too many frames (ENHANCE_YOUR_CALM)");
    }
}
