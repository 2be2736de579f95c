//! HTTP/1.1 beside the load: figures that are pushed to a receiver, questions to Prometheus, to the nodes of
//! a cluster and to the control port of a run.
//!
//! [`ask`] is the client. A [`Client`] knows a server and the most bytes that an answer may have; one
//! [`Deadline`] covers everything from the resolution of the name to the last byte of the answer. Nothing is
//! followed, decompressed or sent again: a redirect is an answer like any other.
//!
//! ```text
//! Request ──► Client::ask ──► resolve ──► connect ──► TLS ──► send ──► Answer, or AskError
//!             └──────────────────────── one Deadline ────────────────────────┘
//! ```
//!
//! Calls block the thread, on a backend of their own over epoll. No load passes through here, and `engine`
//! does not know this crate.
#![forbid(unsafe_code)]

pub mod ask;

pub use ask::{Answer, AskError, Client, Deadline, KeptClient, Origin, Request};
