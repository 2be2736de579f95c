//! Requests for HTTP/2: their header blocks, decoded by the wire's own decoder, and their bodies.

mod connection;
mod properties;
mod tables;
