//! Messages of the Internet Computer, by its interface specification
//! (<https://internetcomputer.org/docs/current/references/ic-interface-spec>): requests to canisters and
//! their signatures, the answers, and the certificates that prove them.
//!
//! ```text
//! Identity, Call ──► Stencil ──► envelope (CBOR) ──► a replica
//!                                                        │
//!      Verified ◄── Verifier ◄── certificate ◄── Answer ◄┘
//! ```
//!
//! Work for each message does not allocate: a [`Stencil`] writes envelopes, [`Answer::read`] and
//! [`answer::request_status`] read answers. [`Verifier`] checks a certificate, which takes about a
//! millisecond.
//!
//! [`envelope`], [`reply`], [`Authority`] and [`witness`] are the other side, for servers that stand for a
//! replica: they read messages, and write answers and certificates.
//!
//! Nothing here knows a socket or a clock: time is an argument, in nanoseconds since 1970.
#![forbid(unsafe_code)]

pub mod answer;
pub mod cbor;
pub mod envelope;
pub mod expiry;
pub mod reply;
pub mod witness;

mod authority;
mod certificate;
mod der;
mod hash;
mod identity;
mod message;
mod pem;
mod principal;
mod tree;

pub use answer::Answer;
pub use authority::Authority;
pub use cbor::Undecodable;
pub use certificate::{CertificateError, RootKey, Verified, Verifier};
pub use envelope::Envelope;
pub use hash::{Hash, Value, hash_of_map};
pub use identity::{BadKey, Identity, is_signed_by};
pub use message::{Call, Kind, RequestId, Stencil, write_read_state};
pub use principal::{BadPrincipal, Principal};
pub use tree::{Lookup, Tree};
