//! The server's side of one connection: bytes, below TLS or not, and the ends of requests in them.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{ClientHello, ResolvesServerCert, ServerConfig};
use rustls::sign::CertifiedKey;
use rustls::{ServerConnection, version};
use socket2::SockRef;

use super::certificates::chain;
use super::sealer::Sealer;
use super::{Alpn, Handshake, Speaks, Tamper, Version};
use crate::http2::PREFACE;
use crate::http2::frame::HEADERS;

/// The longest time without a byte of the client, and without room for one of ours: a client that is silent
/// for longer has hung.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connection.
pub(super) struct Wire {
    stream: TcpStream,
    layer: Layer,
    speaks: Speaks,
    /// Bytes that were received and belong to no request yet.
    inbox: Vec<u8>,
    /// The preface of HTTP/2 was received.
    greeted: bool,
    /// The stream of the last request of HTTP/2.
    pub(super) stream_id: u32,
}

/// The layer between the acts and the socket.
enum Layer {
    Plain,
    Tls(Box<ServerConnection>),
    Sealed(Sealer),
}

/// The client has gone, or its bytes are not worth an answer.
pub(super) fn gone() -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}

impl Wire {
    pub(super) fn new(stream: TcpStream, speaks: Speaks) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, layer: Layer::Plain, speaks, inbox: Vec::new(), greeted: false, stream_id: 1 })
    }

    /// Shakes hands. Where the handshake is cut it is left there, and the acts go on below it.
    pub(super) fn shake(&mut self, handshake: &Handshake, config: &Arc<ServerConfig>) -> io::Result<()> {
        let mut tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        let mut sent = 0;
        loop {
            let mut out = Vec::new();
            while tls.wants_write() {
                tls.write_tls(&mut out)?;
            }
            let cut = tamper(&handshake.tamper, sent, &mut out);
            sent += out.len();
            self.stream.write_all(&out)?;
            if cut {
                return Ok(());
            }
            if !tls.is_handshaking() {
                break;
            }
            if tls.read_tls(&mut self.stream)? == 0 {
                return Err(gone());
            }
            if let Err(error) = tls.process_new_packets() {
                let _ = tls.write_tls(&mut self.stream);
                return Err(io::Error::other(error));
            }
        }
        self.layer = Layer::Tls(Box::new(tls));
        Ok(())
    }

    /// Sends bytes.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.layer {
            Layer::Plain => self.stream.write_all(bytes),
            // Within what rustls buffers.
            Layer::Tls(tls) => bytes.chunks(16_384).try_for_each(|chunk| {
                tls.writer().write_all(chunk)?;
                write_out(tls, &mut self.stream)
            }),
            Layer::Sealed(_) => self.record(23, bytes),
        }
    }

    /// Sends bytes below TLS.
    pub(super) fn send_below(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a record under the keys of the connection, which are ours from then on.
    pub(super) fn record(&mut self, kind: u8, content: &[u8]) -> io::Result<()> {
        self.layer = match std::mem::replace(&mut self.layer, Layer::Plain) {
            Layer::Tls(tls) => Layer::Sealed(Sealer::of(*tls)?),
            Layer::Sealed(sealer) => Layer::Sealed(sealer),
            Layer::Plain => return Err(io::Error::other("there was no handshake")),
        };
        if let Layer::Sealed(sealer) = &mut self.layer {
            let record = sealer.record(kind, content)?;
            self.stream.write_all(&record)?;
        }
        Ok(())
    }

    /// Notifies the client that other keys follow.
    pub(super) fn update_keys(&mut self) -> io::Result<()> {
        let Layer::Tls(tls) = &mut self.layer else { return Err(io::Error::other("there was no handshake")) };
        tls.refresh_traffic_keys().map_err(io::Error::other)?;
        write_out(tls, &mut self.stream)
    }

    /// Sends close_notify.
    pub(super) fn notify(&mut self) -> io::Result<()> {
        if let Layer::Tls(tls) = &mut self.layer {
            tls.send_close_notify();
            return write_out(tls, &mut self.stream);
        }
        self.record(21, &[1, 0])
    }

    /// Waits for the next request.
    pub(super) fn await_request(&mut self) -> io::Result<()> {
        while !self.take_request() {
            self.receive()?;
        }
        Ok(())
    }

    /// Takes a whole request out of the received bytes.
    fn take_request(&mut self) -> bool {
        if matches!(self.speaks, Speaks::Http2) && !self.greeted {
            if !self.inbox.starts_with(PREFACE) {
                return false;
            }
            self.inbox.drain(..PREFACE.len());
            self.greeted = true;
        }
        while let Some(length) = message_length(self.speaks, &self.inbox) {
            if self.inbox.len() < length {
                return false;
            }
            let frame: Vec<u8> = self.inbox.drain(..length).collect();
            if !matches!(self.speaks, Speaks::Http2) {
                return true;
            }
            if frame[3] == HEADERS {
                let id = [frame[5], frame[6], frame[7], frame[8]];
                self.stream_id = u32::from_be_bytes(id) & (u32::MAX >> 1);
                return true;
            }
        }
        false
    }

    /// Receives something, or learns that the client has gone.
    fn receive(&mut self) -> io::Result<()> {
        let mut bytes = [0; 16_384];
        let count = match &mut self.layer {
            Layer::Tls(tls) => loop {
                if let Some(count) = plaintext(tls, &mut bytes)? {
                    break count;
                }
                if tls.read_tls(&mut self.stream)? == 0 {
                    break 0;
                }
                tls.process_new_packets().map_err(io::Error::other)?;
            },
            Layer::Plain | Layer::Sealed(_) => self.stream.read(&mut bytes)?,
        };
        if count == 0 {
            return Err(gone());
        }
        self.inbox.extend_from_slice(&bytes[..count]);
        Ok(())
    }

    /// Reads until the client has gone, or for `limit`.
    pub(super) fn linger(&mut self, limit: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(limit))?;
        let mut bytes = [0; 16_384];
        while self.stream.read(&mut bytes)? > 0 {}
        Err(gone())
    }

    /// Waits, for as long as the client stays.
    pub(super) fn pause(&mut self, length: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(length))?;
        let mut byte = [0];
        let waited = self.stream.peek(&mut byte);
        self.stream.set_read_timeout(Some(PATIENCE))?;
        match waited {
            Ok(0) => Err(gone()),
            Err(error) if !is_timeout(&error) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Sends nothing more.
    pub(super) fn close(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Resets the connection when it is dropped.
    pub(super) fn reset(&self) -> io::Result<()> {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn write_out(tls: &mut ServerConnection, stream: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(stream)?;
    }
    Ok(())
}

/// Plaintext that came; `None` before the first, 0 at the end.
fn plaintext(tls: &mut ServerConnection, bytes: &mut [u8]) -> io::Result<Option<usize>> {
    match tls.reader().read(bytes) {
        Ok(count) => Ok(Some(count)),
        Err(error) if is_timeout(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The length of the message that `bytes` begin with, if it is known yet.
fn message_length(speaks: Speaks, bytes: &[u8]) -> Option<usize> {
    let number = |from: usize, to: usize| {
        bytes.get(from..to).map(|bytes| bytes.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    };
    match speaks {
        Speaks::Http1 => {
            let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
            let fields = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
            let length = fields.split("\r\ncontent-length:").nth(1).and_then(|rest| rest.split('\r').next());
            Some(head + length.and_then(|length| length.trim().parse::<usize>().ok()).unwrap_or(0))
        }
        Speaks::Http2 => Some(9 + number(0, 3)?).filter(|_| bytes.len() >= 9),
        Speaks::Records => Some(5 + number(3, 5)?),
        Speaks::By(length) => length(bytes),
    }
}

/// Tampers with the bytes that are about to be sent after `sent` bytes. `true` if nothing more may follow.
fn tamper(tamper: &Tamper, sent: usize, out: &mut Vec<u8>) -> bool {
    let place = |at: &usize| at.checked_sub(sent).filter(|place| *place < out.len());
    match tamper {
        Tamper::Nothing => {}
        Tamper::Cut(at) => {
            if sent + out.len() >= *at {
                out.truncate(at.saturating_sub(sent));
                return true;
            }
        }
        Tamper::Flip(at) => {
            if let Some(place) = place(at) {
                out[place] ^= 0x55;
            }
        }
        Tamper::Insert(at, bytes) => {
            if let Some(place) = place(at) {
                out.splice(place..place, bytes.iter().copied());
            }
        }
    }
    false
}

/// A certificate that a server shows, though it may not fit the key.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// The configuration of a server that shakes hands like this.
pub(super) fn config(handshake: &Handshake) -> io::Result<Arc<ServerConfig>> {
    let (chain, key) = chain(handshake.identity);
    let key = aws_lc_rs::sign::any_supported_type(&key).map_err(io::Error::other)?;
    // One suite for each version: its records are sealed here.
    let suites = vec![
        aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
        aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ];
    let provider = CryptoProvider { cipher_suites: suites, ..aws_lc_rs::default_provider() };
    let version = match handshake.version {
        Version::Tls12 => &version::TLS12,
        Version::Tls13 => &version::TLS13,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Shown(Arc::new(CertifiedKey::new(chain, key)))));
    config.alpn_protocols = match handshake.alpn {
        Alpn::Unknown => Vec::new(),
        Alpn::Http1 => vec![b"http/1.1".to_vec()],
        Alpn::Http2 => vec![b"h2".to_vec()],
    };
    config.send_tls13_tickets = handshake.tickets;
    config.enable_secret_extraction = true;
    Ok(Arc::new(config))
}
