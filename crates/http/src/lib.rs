//! HTTP/1.1 beside the load: figures that are pushed to a receiver, questions to Prometheus, to the nodes of
//! a cluster and to the control port of a run; and the ports of a run themselves.
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
//! [`serve`] is the server: a thread that reads requests, within bounds and after a decision about who may
//! ask, and calls a function for each of them.
//!
//! ```text
//! bytes ──► RequestReader ──► Access ──► Handler ──► Reply
//!            400, 411, 413     401, 403
//! ```
//!
//! Calls block the thread, on a backend of their own over epoll. No load passes through here, and `engine`
//! does not know this crate.
#![forbid(unsafe_code)]

pub mod ask;
pub mod serve;

use plimsoll_driver::epoll::Epoll;
use plimsoll_driver::{BackendOptions, Open as _, OpenEpoll, SystemError};

pub use ask::{Answer, AskError, Client, Deadline, KeptClient, Origin, Request};

/// Opens a backend: there is a request now and then, so epoll will do whatever the load runs on.
fn open() -> Result<Epoll, SystemError> {
    OpenEpoll(BackendOptions { receive_stamps: false, ..BackendOptions::default() }).open()
}
