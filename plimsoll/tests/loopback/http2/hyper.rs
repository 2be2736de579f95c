//! A server on hyper, in this process: it counts for itself, and misbehaves on purpose as others do by
//! accident.

use std::collections::VecDeque;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Barrier;

use crate::loopback::backends::on_each;
use crate::loopback::process::Folder;
use plimsoll_testkit::sink_log::{account, count, delivered, errors};

use super::{assert_all_ok, http2};

/// Longest wait for a word of the server.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of one frame of a streamed body, and the frames of one.
const PIECE_BYTES: u64 = 10_000;
const PIECES: u64 = 30;

/// Settings for serving connections.
#[derive(Clone, Copy, Debug, Default)]
struct Manners {
    /// Concurrent streams that a client may open.
    streams: Option<u32>,
    /// A connection sends GOAWAY after this many requests.
    goodbye_after: Option<u64>,
}

/// Counters of the server.
#[derive(Debug)]
struct Tally {
    connections: AtomicU64,
    requests: AtomicU64,
    body_bytes: AtomicU64,
    /// Told of each request that its client gives up before the answer.
    abandoned: Sender<()>,
    /// Lets requests go on together, as many as there may be streams.
    together: Barrier,
}

/// A running server. It ends with this.
struct Hyper {
    runtime: Option<Runtime>,
    url: String,
    tally: Arc<Tally>,
    abandoned: Receiver<()>,
}

impl Hyper {
    fn start(manners: Manners) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_io()
            .build()
            .expect("a thread can be started");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (tell, abandoned) = channel();
        let tally = Arc::new(Tally {
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            body_bytes: AtomicU64::new(0),
            abandoned: tell,
            together: Barrier::new(manners.streams.unwrap_or(1) as usize),
        });
        let shared = Arc::clone(&tally);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, manners, Arc::clone(&shared)));
            }
        });
        Self { runtime: Some(runtime), url, tally, abandoned }
    }

    fn requests(&self) -> u64 {
        self.tally.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Hyper {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve(stream: TcpStream, manners: Manners, tally: Arc<Tally>) {
    stream.set_nodelay(true).expect("it is a TCP socket");
    tally.connections.fetch_add(1, Ordering::Relaxed);
    let requests = AtomicU64::new(0);
    let service = service_fn(|request| {
        requests.fetch_add(1, Ordering::Relaxed);
        answer(request, Arc::clone(&tally))
    });
    let mut builder = Builder::new(TokioExecutor::new());
    if let Some(streams) = manners.streams {
        builder.max_concurrent_streams(streams);
    }
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut said_goodbye = false;
    // A client that goes away in the middle concerns the test.
    let _ = poll_fn(|context| {
        loop {
            let polled = connection.as_mut().poll(context);
            let enough = manners.goodbye_after.is_some_and(|after| requests.load(Ordering::Relaxed) >= after);
            if polled.is_ready() || said_goodbye || !enough {
                return polled;
            }
            said_goodbye = true;
            connection.as_mut().graceful_shutdown();
        }
    })
    .await;
}

async fn answer(request: Request<Incoming>, tally: Arc<Tally>) -> io::Result<Response<Pieces>> {
    tally.requests.fetch_add(1, Ordering::Relaxed);
    let (head, body) = request.into_parts();
    let received = body.collect().await.map_err(io::Error::other)?.to_bytes();
    tally.body_bytes.fetch_add(received.len() as u64, Ordering::Relaxed);
    let piece = Bytes::from(vec![b'z'; PIECE_BYTES as usize]);
    let pieces = match head.uri.path() {
        "/echo" => Pieces::of([Ok(Frame::data(received))]),
        "/pieces" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("checksum", "none".parse().expect("it is a value"));
            let data = (0..PIECES).map(|_| Ok(Frame::data(piece.clone())));
            Pieces::of(data.chain([Ok(Frame::trailers(trailers))]))
        }
        "/broken" => Pieces::of([Ok(Frame::data(piece)), Err(io::Error::other("broken on purpose"))]),
        "/never" => {
            let _abandoned = OnDrop(&tally.abandoned);
            pending().await
        }
        "/together" => {
            tally.together.wait().await;
            Pieces::of([])
        }
        _ => Pieces::of([Ok(Frame::data(Bytes::from_static(b"hello")))]),
    };
    let mut response = Response::new(pieces);
    if head.uri.path() == "/timed" {
        let timing = "db;dur=1.5, miss".parse().expect("it is a value");
        response.headers_mut().insert("server-timing", timing);
    }
    Ok(response)
}

/// Tells when it goes.
struct OnDrop<'a>(&'a Sender<()>);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        // If the receiver has gone, the test is over.
        let _ = self.0.send(());
    }
}

/// A body of these frames, without a content-length.
struct Pieces(VecDeque<io::Result<Frame<Bytes>>>);

impl Pieces {
    fn of(frames: impl IntoIterator<Item = io::Result<Frame<Bytes>>>) -> Self {
        Self(frames.into_iter().collect())
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(self.0.pop_front())
    }
}

#[test]
fn the_times_of_a_server_stand_beside_slow_requests() {
    let server = Hyper::start(Manners::default());
    on_each(|backend| {
        let load = |path: &str, flags: &str| {
            http2(&format!("{}/{path} -n 50 {flags} --backend {backend}", server.url))
        };
        let timed = load("timed", "--trace-context");
        let timed = &timed["by_step"][0]["slowest"][0];
        let parts = [("db", Some(1_500_000_u64)), ("miss", None)]
            .map(|(name, duration)| json!({"name": name, "duration": duration, "description": null}));
        assert_eq!(timed["server_timing"], json!(parts), "{timed:#}");
        for (path, flags) in [("timed", ""), ("", "--trace-context")] {
            let result = load(path, flags);
            let slowest = &result["by_step"][0]["slowest"][0];
            assert!(
                slowest["response_time"].is_u64() && slowest.get("server_timing").is_none(),
                "{slowest:#}"
            );
        }
    });
}

#[test]
fn it_counts_what_we_count() {
    on_each(|backend| {
        let server = Hyper::start(Manners::default());
        let at = |path: &str, load: &str| http2(&format!("{}{path} {load} --backend {backend}", server.url));
        let usual = at("/", "-n 4000 -c 8 -m 16");
        assert_all_ok(&usual, 4_000, 8);
        let threads = at("/", "-n 4000 -c 8 -m 16 -t 2");
        assert_all_ok(&threads, 4_000, 8);
        let open = at("/", "--rate 500 -d 1s -c 2 -m 50");
        assert_all_ok(&open, 500, 2);
        let streamed = at("/pieces", "-n 100 -c 2 -m 8 --window-bits 16");
        assert_all_ok(&streamed, 100, 2);
        assert!(count(&streamed, "/bytes/received") > 100 * PIECES * PIECE_BYTES, "{}", streamed["bytes"]);
        let runs = [usual, threads, open, streamed];
        assert_eq!(server.requests(), runs.iter().map(delivered).sum::<u64>());
        let opened: u64 = runs.iter().map(|run| count(run, "/connections/opened")).sum();
        // A preflight has one of its own.
        assert_eq!(server.tally.connections.load(Ordering::Relaxed), opened + 4);
    });
}

#[test]
fn bodies_arrive_whole() {
    const BODY_BYTES: u64 = 300_000;
    on_each(|backend| {
        let folder = Folder::new();
        let body = folder.write("body", vec![b'y'; BODY_BYTES as usize]);
        let server = Hyper::start(Manners::default());
        let load = format!("-n 40 -c 2 -m 4 -b @{body} --backend {backend}");
        let result = http2(&format!("{}/echo {load}", server.url));
        assert_all_ok(&result, 40, 2);
        assert_eq!(server.tally.body_bytes.load(Ordering::Relaxed), delivered(&result) * BODY_BYTES);
        assert!(count(&result, "/bytes/received") > 40 * BODY_BYTES, "{}", result["bytes"]);
    });
}

/// Each request is answered when as many are there as streams are allowed: with fewer in flight nothing would
/// be answered, with more some would be refused.
#[test]
fn exactly_as_many_streams_as_allowed() {
    on_each(|backend| {
        let server = Hyper::start(Manners { streams: Some(7), ..Manners::default() });
        let load = format!("-n 700 -c 1 -m 100 --no-preflight --backend {backend}");
        let result = http2(&format!("{}/together {load}", server.url));
        assert_all_ok(&result, 700, 1);
        assert_eq!(count(&result, "/http2/stream_limit"), 7);
        assert_eq!(server.requests(), 700);
    });
}

/// hyper announces its end in two steps, so that no request is lost.
#[test]
fn a_graceful_goodbye_costs_no_request() {
    on_each(|backend| {
        let server = Hyper::start(Manners { goodbye_after: Some(50), ..Manners::default() });
        for load in ["-n 1000 -c 2 -m 4", "--rate 500 -d 1s -c 2 -m 8"] {
            let before = server.requests();
            let result = http2(&format!("{}/ {load} --backend {backend}", server.url));
            assert_eq!(account(&result, "ok"), account(&result, "started"), "{}", result["errors"]);
            assert_eq!(server.requests() - before, delivered(&result));
            let opened = count(&result, "/connections/opened");
            assert!(opened >= account(&result, "started") / 100, "{}", result["connections"]);
            let goodbyes = count(&result, "/http2/go_aways/NO_ERROR");
            assert!(goodbyes >= opened - 2, "{}", result["http2"]);
        }
    });
}

#[test]
fn a_body_that_breaks_off_is_a_stream_reset() {
    on_each(|backend| {
        let server = Hyper::start(Manners::default());
        let load = format!("-n 100 -c 2 -m 8 --no-preflight --backend {backend}");
        let result = crate::loopback::foreign::balanced(&format!("{}/broken {load} --http2", server.url));
        assert_eq!(errors(&result, "stream_reset"), 100, "{}", result["errors"]);
        assert_eq!(count(&result, "/http2/resets/INTERNAL_ERROR"), 100, "{}", result["http2"]);
        assert_eq!(count(&result, "/connections/opened"), 2, "the other streams go on");
        assert_eq!(server.requests(), 100);
    });
}

/// A request without an answer is given up alone: the server hears of it, and the connection is kept.
#[test]
fn timeouts_cancel_their_streams() {
    on_each(|backend| {
        let server = Hyper::start(Manners::default());
        let load = format!("-n 60 -c 2 -m 10 --timeout 200ms --no-preflight --backend {backend}");
        let result = crate::loopback::foreign::balanced(&format!("{}/never {load} --http2", server.url));
        assert_eq!(account(&result, "timed_out"), 60, "{}", result["accounting"]);
        assert_eq!(count(&result, "/response_time/censored"), 60);
        assert_eq!(count(&result, "/http2/cancelled"), 60, "{}", result["http2"]);
        assert_eq!(count(&result, "/connections/opened"), 2, "{}", result["connections"]);
        assert_eq!(server.requests(), 60);
        for _ in 0..60 {
            server.abandoned.recv_timeout(PATIENCE).expect("it hears of every one");
        }
    });
}
