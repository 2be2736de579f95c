//! The sink and the ingest server on real sockets, on both backends of the driver.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod added;
mod canister;
mod client;
mod crud;
mod http1;
mod http2;
mod ingest;
mod server;
mod streams;
mod websocket;

use plimsoll_core::Nanos;
use plimsoll_driver::{BackendOptions, Endpoint, KernelBackend};
use plimsoll_targets::{Delay, Reply, Service, Sink, SinkOptions, SinkReport, StartError, Truth};

pub(crate) fn plain() -> SinkOptions {
    SinkOptions {
        seed: 7,
        truth: Truth::Memory,
        ..SinkOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()))
    }
}

/// The plain sink with another reply.
pub(crate) fn replying(reply: Reply) -> SinkOptions {
    SinkOptions { service: Service::Reply(reply), ..plain() }
}

pub(crate) fn start(options: SinkOptions, backend: KernelBackend) -> Sink {
    Sink::start(options, backend).expect("the sink starts")
}

pub(crate) fn assert_identity(report: &SinkReport) {
    let faults = report.statuses + report.dropped + report.resets + report.refusals;
    let of_canisters = report.rejections + report.garbage;
    assert_eq!(report.counter, report.replied + of_canisters + faults + report.abandoned, "{report:?}");
    assert!(report.http1_connections + report.http2_connections <= report.connections, "{report:?}");
    assert_eq!(report.truth_failure, None);
    if !report.truth.is_empty() {
        let numbers: Vec<_> = report.truth.iter().map(|row| row.number).collect();
        assert_eq!(numbers, (0..report.counter).collect::<Vec<_>>(), "one row for each request");
        for row in &report.truth {
            assert_eq!(row.reply.is_some(), row.status.is_some(), "{row:?}");
            assert!(row.reply.is_none_or(|reply| reply >= row.recv), "{row:?}");
        }
    }
}

#[test]
fn what_cannot_be_started_is_explained() {
    let backend = KernelBackend::Epoll(BackendOptions::default());
    let message = |options| Sink::start(options, backend).unwrap_err().to_string();
    let taken = start(plain(), backend);
    let again = SinkOptions { listen: taken.endpoint().clone(), ..plain() };
    let expected =
        format!("the server cannot listen on {}: Address already in use (os error 98)", taken.endpoint());
    assert_eq!(message(again), expected);
    let log = SinkOptions { truth: Truth::File("/nonexistent/log.csv".into()), ..plain() };
    let expected =
        "the truth log /nonexistent/log.csv cannot be written: No such file or directory (os error 2)";
    assert_eq!(message(log), expected);
    let two = SinkOptions { queue: true, threads: 2, delay: Delay::Constant(Nanos(1)), ..plain() };
    assert_eq!(message(two), "the queue is one for the whole sink: use one thread with it");
    assert!(matches!(
        Sink::start(SinkOptions { threads: 0, ..plain() }, backend),
        Err(StartError::Options(_))
    ));
}
