//! One side of one TLS connection.

use std::io::{BufRead as _, Write as _};

use rustls::{Connection, Error, HandshakeKind, ProtocolVersion};
use rustls_pki_types::ServerName;

use super::{ClientConfig, ServerConfig, TlsConfigError, TlsError};

/// One side of one TLS connection: no socket, no clock.
///
/// After creating a client, and after each [`receive`](Self::receive), call [`transmit`](Self::transmit) and
/// send its output, also after an error. [`send`](Self::send) is for the time from the end of the handshake
/// on.
pub struct Session {
    connection: Connection,
    was_handshaking: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("handshaking", &self.is_handshaking()).finish_non_exhaustive()
    }
}

/// The result of receiving one piece of input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The handshake ended with it.
    pub handshake_done_now: bool,
    /// The peer said that it sends nothing more (close_notify).
    pub closed: bool,
}

impl Session {
    /// The client side, for a server of that name: a host name, or an IP literal.
    ///
    /// # Errors
    /// If the name cannot be one of a server.
    pub fn client(config: &ClientConfig, server_name: &str) -> Result<Self, TlsConfigError> {
        let name = ServerName::try_from(server_name.to_owned()).map_err(|_| {
            TlsConfigError::new(format!("`{server_name}` is not a valid server name for TLS"))
        })?;
        let connection = rustls::ClientConnection::new(config.0.clone(), name)?;
        Ok(Self::new(connection.into()))
    }

    /// The server side.
    ///
    /// # Errors
    /// If rustls refuses the configuration.
    pub fn server(config: &ServerConfig) -> Result<Self, TlsConfigError> {
        Ok(Self::new(rustls::ServerConnection::new(config.0.clone())?.into()))
    }

    fn new(mut connection: Connection) -> Self {
        // With a limit, `send` would take a part of a large body and drop the rest. Sent bytes are fetched at
        // once, so nothing piles up.
        connection.set_buffer_limit(None);
        Self { connection, was_handshaking: true }
    }

    /// Takes all of the ciphertext and appends the plaintext to `plain`. Input after the peer's close_notify
    /// is ignored.
    ///
    /// # Errors
    /// If the peer broke the protocol or its certificate was not accepted: the connection is over. Plaintext
    /// that came before is in `plain`, and an alert for the peer may be waiting to be
    /// [transmitted](Self::transmit).
    pub fn receive(&mut self, mut input: &[u8], plain: &mut Vec<u8>) -> Result<Received, TlsError> {
        let mut received = Received::default();
        while !input.is_empty() {
            // Takes a few KiB at once. Reading from a slice fails only if a buffer is full, and they are
            // emptied below.
            let taken = self.connection.read_tls(&mut input).unwrap_or(0);
            let processed = self.connection.process_new_packets();
            self.drain(plain);
            let state = processed.map_err(|error| self.failure(error))?;
            received.closed = state.peer_has_closed();
            if taken == 0 {
                if received.closed {
                    break;
                }
                // Going on would lose bytes, or take for ever.
                return Err(self.failure(Error::General("a message is too large".to_owned())));
            }
        }
        if self.was_handshaking && !self.connection.is_handshaking() {
            self.was_handshaking = false;
            received.handshake_done_now = true;
        }
        Ok(received)
    }

    /// Appends the plaintext that rustls holds.
    fn drain(&mut self, plain: &mut Vec<u8>) {
        let mut reader = self.connection.reader();
        // It ends with an empty chunk or, without a close_notify, with an error that says to come back later.
        while let Ok(chunk @ [_, ..]) = reader.fill_buf() {
            plain.extend_from_slice(chunk);
            let count = chunk.len();
            reader.consume(count);
        }
    }

    fn failure(&self, error: Error) -> TlsError {
        TlsError::new(error, self.connection.protocol_version().is_some())
    }

    /// Encrypts `plain` and appends the records to `out`. Bytes that are given before the end of the
    /// handshake follow it.
    pub fn send(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        // Without a buffer limit a write takes everything.
        let _ = self.connection.writer().write_all(plain);
        self.transmit(out);
    }

    /// Appends the records that are waiting: handshake messages, tickets, alerts.
    pub fn transmit(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // Writing to a vector cannot fail.
            if self.connection.write_tls(out).is_err() {
                break;
            }
        }
    }

    /// Appends the announcement that nothing more will be sent.
    pub fn close_notify(&mut self, out: &mut Vec<u8>) {
        self.connection.send_close_notify();
        self.transmit(out);
    }

    /// Returns `true` while application data cannot be sent yet.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// The protocol that ALPN agreed on.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// `TLSv1.2` or `TLSv1.3`; `unknown` before the handshake has chosen.
    pub fn version(&self) -> &'static str {
        match self.connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "unknown",
        }
    }

    /// Name of the cipher suite, once it is chosen.
    pub fn cipher(&self) -> Option<String> {
        self.connection.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite()))
    }

    /// Returns `true` if the session resumed an earlier one.
    pub fn resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }
}
