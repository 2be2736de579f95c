//! Tests of the crate by its public interface, as one program.

mod hpack;
mod http1;
mod http2_client;
mod http2_pair;
mod http2_server;
mod tls;
mod tunnel;
mod websocket;
