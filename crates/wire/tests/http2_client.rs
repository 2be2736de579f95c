//! The HTTP/2 client against scripted servers: every rule of RFC 9113 that it keeps, frame by frame.

mod content;
pub(crate) mod frames;
mod lifecycle;
mod link;
mod properties;
mod responses;
mod streams;
mod violations;
