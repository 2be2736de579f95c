//! Request templates, compiled to segments.
//!
//! Text with slots (`${uuid}`) is parsed once, before the run; rendering appends bytes to a buffer and does
//! nothing else. No clock, no socket and no global random state: the time and the arrival index come in a
//! [`Context`], random numbers from the caller's seeded stream, so that the same seed renders the same bytes.
//!
//! [`Template`] is any text with slots; [`RequestTemplate`] is one whole HTTP/1.1 request, validated, with
//! its `content-length` kept true; [`RequestSpec`] is what it is compiled from.
#![forbid(unsafe_code)]

pub mod error;
pub mod fingerprint;
pub mod header;
pub mod redirect;
mod request;
pub mod slot;
pub mod suggest;
pub mod template;

pub use error::TemplateError;
pub use fingerprint::Fingerprint;
pub use header::parse_header;
pub use request::{Body, RequestSpec, RequestTemplate, check_method};
pub use slot::{Context, Slot};
pub use template::Template;
