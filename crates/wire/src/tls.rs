//! TLS as a layer: bytes in, plaintext out; plaintext in, bytes out.
//!
//! A thin seam over rustls (with aws-lc-rs), so that neither the engine nor the targets know it. No socket
//! and no clock of our own; certificate validity is checked against the system's clock, inside rustls.
//!
//! [`ClientConfig`] and [`ServerConfig`] are built once and shared; a [`Session`] is one side of one
//! connection.

mod client;
mod error;
mod pem;
mod server;
mod session;
mod verify;

pub use client::{ClientConfig, ClientOptions, Identity, KeyLogSink, Versions};
pub use error::{TlsConfigError, TlsError, TlsFile};
pub use server::ServerConfig;
pub use session::{Received, Session};

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// The one provider of cryptography, passed explicitly: a process-wide default could be another one.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
