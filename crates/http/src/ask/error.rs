//! Reasons why there is no answer.

use core::net::SocketAddr;
use std::{fmt, io};

use plimsoll_driver::SystemError;
use plimsoll_system::resolve::ResolveError;
use plimsoll_wire::http1::ProtocolError;

/// Reason why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// A part of the request would be read as something else. Carries the part.
    Unwritable(String),
    /// The name of the server has no address.
    NoAddress(ResolveError),
    /// The system has no descriptor or no thread left.
    System(SystemError),
    /// No address of the server takes a connection. Carries the last one.
    NotConnected(SocketAddr, SystemError),
    /// There was no connection in time.
    NotReached,
    /// The whole answer was not there in time.
    Late,
    /// The connection ended before the whole answer was there.
    Closed,
    /// The connection broke.
    Broken(SystemError),
    /// TLS could not be spoken, or the certificate is not trusted.
    Tls(String),
    /// The answer is not one of HTTP/1.1.
    NotHttp(ProtocolError),
    /// The body of the answer has more than this many bytes.
    TooLarge(usize),
}

impl AskError {
    /// The message, with the server called by `name`: `the receiver gave no answer in time`.
    pub fn about(&self, name: &str) -> String {
        match self {
            Self::Unwritable(part) => format!("`{}` cannot be in a request", part.escape_debug()),
            Self::NoAddress(error) => error.to_string(),
            Self::System(error) | Self::Broken(error) => error.to_string(),
            Self::NotConnected(address, error) => format!("cannot connect to {address}: {error}"),
            Self::NotReached => format!("{name} was not reached in time"),
            Self::Late => format!("{name} gave no answer in time"),
            Self::Closed => format!("{name} closed the connection without a response"),
            Self::Tls(error) => error.clone(),
            Self::NotHttp(error) => format!("{name} speaks no HTTP: {error}"),
            Self::TooLarge(most) => format!("{name} answers with more than {most} bytes"),
        }
    }

    /// The kind of the error among those of input and output.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Unwritable(_) => io::ErrorKind::InvalidInput,
            Self::NoAddress(_) => io::ErrorKind::NotFound,
            Self::System(error) | Self::Broken(error) | Self::NotConnected(_, error) => {
                io::Error::from_raw_os_error(error.errno).kind()
            }
            Self::NotReached | Self::Late => io::ErrorKind::TimedOut,
            Self::Closed => io::ErrorKind::UnexpectedEof,
            Self::Tls(_) | Self::NotHttp(_) | Self::TooLarge(_) => io::ErrorKind::InvalidData,
        }
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.about("the server"))
    }
}

impl std::error::Error for AskError {}
