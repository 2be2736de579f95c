//! A recording proxy: what a browser or a program sends through it becomes a recording in the format HAR 1.2.
//!
//! It speaks HTTP/1.1 to its clients, as a proxy does: requests with a whole URL, and `CONNECT`, behind which
//! it answers TLS itself, by a certificate that its own [`Authority`] signs for each host. To servers it
//! speaks HTTP/1.1, and it verifies their certificates. Bodies pass through as they come, so that streams
//! of events work; they are asked for without compression, and kept up to a limit. What is sent to other
//! hosts than those of the authority passes through unread.
#![forbid(unsafe_code)]

mod authority;
mod exchange;
mod hosts;
mod proxy;
mod recording;

use core::net::SocketAddr;
use std::fmt;

pub use authority::{Authority, Unusable};
pub use hosts::Hosts;
pub use recording::{BodyFile, Recording};

/// Options of the proxy.
#[derive(Debug)]
pub struct Options {
    /// Address to listen on, of loopback: every client that reaches the proxy can use it.
    pub listen: SocketAddr,
    /// Signs certificates for hosts: those that are recorded.
    pub authority: Authority,
    /// Authorities of servers in the place of the system's, as PEM; `None` for the system's.
    pub authorities: Option<Vec<u8>>,
    /// `true` if any certificate of a server is accepted.
    pub insecure: bool,
    /// Bytes of a body that are kept at most.
    pub most_body: usize,
}

/// Reason why the proxy cannot be started, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    message: String,
    hint: &'static str,
}

impl RecordError {
    fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self { message: message.into(), hint }
    }

    /// Returns advice on resolving the error, for people.
    pub const fn hint(&self) -> &'static str {
        self.hint
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RecordError {}

/// Records until `SIGINT` or `SIGTERM`. `say` gets the address, every exchange, and everything that could
/// not be recorded, a line each, with URLs as they were sent: secrets in them are the caller's to hide.
///
/// # Errors
/// The address cannot be listened on, or is not of loopback; or TLS cannot be set up.
pub fn record(options: Options, say: impl Fn(&str) + 'static) -> Result<Recording, RecordError> {
    if !options.listen.ip().is_loopback() {
        let message = format!("at {} others could use this proxy, and read what passes", options.listen);
        return Err(RecordError::new(message, "listen on 127.0.0.1; `ssh -L` brings other machines there"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        RecordError::new(format!("cannot start: {error}"), "check the limits of this process")
    })?;
    let recording = runtime.block_on(async {
        let signal = proxy::signal_to_end()?;
        proxy::serve(options, Box::new(say), signal).await
    })?;
    // Connections that wait for a server do not hold up the end.
    runtime.shutdown_background();
    Ok(recording)
}
