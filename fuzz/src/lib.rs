//! The bodies of the fuzz targets: each takes any bytes and panics where something does not hold.
//!
//! They are functions of a library, so that `cargo test` runs the committed seeds through them with any
//! toolchain. The programs in `fuzz_targets/` hand them to libFuzzer, see `README.md`.

#![forbid(unsafe_code)]

#[path = "../../ext/cache/fuzz.rs"]
pub mod cache;
pub mod canister;
pub mod control;
pub mod cookie;
pub mod documents;
pub mod events;
#[path = "../../ext/grpc/fuzz.rs"]
pub mod grpc;
pub mod hash_tree;
pub mod hpack;
pub mod http1_request;
pub mod http1_response;
pub mod http2_client;
pub mod http2_pair;
pub mod http2_server;
pub mod import;
pub mod line_protocol;
pub mod location;
pub mod loki;
pub mod msgpack;
pub mod otlp;
pub mod plan;
#[path = "../../ext/redis/fuzz.rs"]
pub mod redis;
pub mod remote_write;
pub mod saved_run;
pub mod websocket;

mod cutting;

pub use cutting::Cutting;

/// A target: its name, which is also that of its program and of the folder of its seeds, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, by name.
pub const TARGETS: &[Target] = &[
    ("cache", cache::run),
    ("canister", canister::run),
    ("control", control::run),
    ("cookie", cookie::run),
    ("documents", documents::run),
    ("events", events::run),
    ("grpc", grpc::run),
    ("hash_tree", hash_tree::run),
    ("hpack", hpack::run),
    ("http1_request", http1_request::run),
    ("http1_response", http1_response::run),
    ("http2_client", http2_client::run),
    ("http2_pair", http2_pair::run),
    ("http2_server", http2_server::run),
    ("import_artillery", import::artillery),
    ("import_curl", import::curl),
    ("import_gatling", import::gatling),
    ("import_ghz", grpc::ghz),
    ("import_h2loadrunner", import::h2loadrunner),
    ("import_har", import::har),
    ("import_jmeter", import::jmeter),
    ("import_k6", import::k6),
    ("import_locust", import::locust),
    ("import_openapi", import::openapi),
    ("import_postman", import::postman),
    ("import_vegeta", import::vegeta),
    ("line_protocol", line_protocol::run),
    ("location", location::run),
    ("loki", loki::run),
    ("msgpack", msgpack::run),
    ("otlp", otlp::run),
    ("plan", plan::run),
    ("redis", redis::run),
    ("remote_write", remote_write::run),
    ("saved_run", saved_run::run),
    ("websocket", websocket::run),
];
