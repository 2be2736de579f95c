//! Calls of gRPC against a server on hyper, which answers by the number in each message.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_testkit::program::{Finished, Folder};
use plimsoll_testkit::verdict;
use prost::Message as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::time::Sleep;

use crate::program::run;

/// The file of the service.
const PROTO: &str = include_str!("echo.proto");

/// The messages of the service, as `prost` has them: written by hand, so that what is sent is read by other
/// descriptors than those that made it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Note {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
    #[prost(uint32, tag = "2")]
    pub(crate) status: u32,
    #[prost(message, optional, tag = "3")]
    pub(crate) at: Option<Timestamp>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

/// A server of `echo.v1.Echo`. It counts the texts of the notes that came.
struct EchoServer {
    address: String,
    seen: Arc<Mutex<BTreeMap<String, u64>>>,
    _runtime: Runtime,
}

impl EchoServer {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("threads");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("a listener").to_string();
        let seen: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
        let of_server = Arc::clone(&seen);
        runtime.spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let seen = Arc::clone(&of_server);
                let service = service_fn(move |request| answer(request, Arc::clone(&seen)));
                tokio::spawn(async move {
                    let io = TokioIo::new(stream);
                    let _ = Builder::new(TokioExecutor::new()).serve_connection(io, service).await;
                });
            }
        });
        Self { address, seen, _runtime: runtime }
    }

    /// Returns the count of each text that came, and starts anew.
    fn take_seen(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

type Reply = Response<http_body_util::combinators::BoxBody<Bytes, std::io::Error>>;

/// A body of these frames. An error resets the stream, but not before the others have been sent: a reset
/// discards what is still to be written.
struct Frames {
    frames: VecDeque<Result<Frame<Bytes>, std::io::Error>>,
    sent: Pin<Box<Sleep>>,
}

impl hyper::body::Body for Frames {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if let Some(Err(_)) = self.frames.front()
            && self.sent.as_mut().poll(context).is_pending()
        {
            return Poll::Pending;
        }
        Poll::Ready(self.frames.pop_front())
    }
}

/// Three times the messages that came, and then the end that the status of the first note asks for: 97 breaks
/// off, 98 ends in the middle of a message, 99 has no status.
fn stream(body: &Bytes, status: u32, trailers: HeaderMap) -> Frames {
    let mut frames: VecDeque<_> = (0..3).map(|_| Ok(Frame::data(body.clone()))).collect();
    match status {
        97 => frames.push_back(Err(std::io::ErrorKind::BrokenPipe.into())),
        98 => frames.push_back(Ok(Frame::data(body.slice(..body.len() - 1)))),
        _ => {}
    }
    if status != 99 {
        frames.push_back(Ok(Frame::trailers(trailers)));
    }
    Frames { frames, sent: Box::pin(tokio::time::sleep(Duration::from_millis(50))) }
}

/// Answers a note with itself, or with its status and nothing else. Status 99 says that it is to come without
/// trailers, 98 with a broken frame.
async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<BTreeMap<String, u64>>>,
) -> Result<Reply, hyper::Error> {
    let path = request.uri().path().to_owned();
    assert!(["/echo.v1.Echo/Say", "/echo.v1.Echo/Chat"].contains(&&*path), "{path}");
    assert_eq!(request.headers()["content-type"], "application/grpc+proto");
    assert_eq!(request.headers()["te"], "trailers");
    let body = request.into_body().collect().await?.to_bytes();
    let (prefix, message) = body.split_at(5);
    let length = u32::from_be_bytes(*prefix.last_chunk().expect("a length")) as usize;
    let message = &message[..length];
    assert_eq!((prefix[0], path.ends_with("Chat") || body.len() == 5 + length), (0, true));
    let note = Note::decode(message).expect("a note");
    *seen.lock().unwrap_or_else(PoisonError::into_inner).entry(note.text.clone()).or_default() += 1;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", note.status.to_string().parse().expect("a value"));
    trailers.insert("grpc-message", "that%20is%20%C3%BCber".parse().expect("a value"));
    let head = Response::builder().header("content-type", "application/grpc+proto");
    if path.ends_with("Chat") {
        if note.status >= 97 {
            trailers.insert("grpc-status", "0".parse().expect("a value"));
        }
        return Ok(head.body(stream(&body, note.status, trailers).boxed()).expect("a reply"));
    }
    let never = |never: Infallible| -> std::io::Error { match never {} };
    let reply = match note.status {
        0 => {
            let whole = Full::new(body).with_trailers(async { Some(Ok(trailers)) });
            head.body(whole.map_err(never).boxed())
        }
        98 => {
            trailers.insert("grpc-status", "0".parse().expect("a value"));
            let half = Full::new(body.slice(..body.len() - 1));
            head.body(half.with_trailers(async { Some(Ok(trailers)) }).map_err(never).boxed())
        }
        99 => head.body(Full::new(body).map_err(never).boxed()),
        // Trailers alone: they are the head.
        _ => {
            let mut reply = head.body(Full::new(Bytes::new()).map_err(never).boxed()).expect("a reply");
            reply.headers_mut().extend(trailers);
            Ok(reply)
        }
    };
    Ok(reply.expect("a reply"))
}

/// Carries out a plan with one step, whose other lines are `step`, beside these flags.
fn load(server: &EchoServer, folder: &Folder, step: &str, flags: &str) -> Finished {
    load_of(server, folder, "Say", step, flags)
}

/// Carries out a plan with one step that calls this method.
fn load_of(server: &EchoServer, folder: &Folder, method: &str, step: &str, flags: &str) -> Finished {
    std::fs::write(folder.file("echo.proto"), PROTO).expect("it is written");
    let plan = format!(
        "targets: {{echo: 'http://{}'}}
run: {{http2: true}}
scenarios:
  - steps:
      - name: say
        post: /echo.v1.Echo/{method}
{step}",
        server.address
    );
    let file = folder.file("plan.yaml");
    std::fs::write(&file, plan).expect("it is written");
    run(&format!("run {file} --quiet -o json {flags}"))
}

fn result(finished: &Finished) -> Value {
    assert!(verdict::ran(finished.code) || finished.code == Some(1), "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}", finished.stderr))
}

#[test]
fn messages_arrive_as_the_plan_has_them_and_answers_are_read() {
    let (server, folder) = (EchoServer::start(), Folder::new());
    let step = "        grpc: {proto: echo.proto, message: {text: 'no ${sequence} \"of\" many', at: '2001-09-09T01:46:40Z'}}
        expect:
          json: {/status: '0', /at: '2001-09-09T01:46:40Z'}
        extract: {said: {json: /text}}
      - post: /echo.v1.Echo/Say
        grpc: {proto: echo.proto}
";
    let result = result(&load(&server, &folder, step, "-n 200 -c 3 --streams 4"));
    assert_eq!(result["accounting"]["ok"], 400, "{:#}", result["error_examples"]);
    let seen = server.take_seen();
    assert_eq!(seen.len(), 201, "another one each time, and the empty one");
    assert_eq!(seen[""], 200);
    assert!(seen.keys().all(|text| text.is_empty() || text.ends_with(" \"of\" many")), "{seen:?}");
    assert_eq!(result["protocols"]["h2"], 400);
}

#[test]
fn every_status_is_a_class_of_errors_with_its_message() {
    let (server, folder) = (EchoServer::start(), Folder::new());
    let notes: Vec<Value> =
        (0..17).map(|status| serde_json::json!({"text": format!("n{status}"), "status": status})).collect();
    std::fs::write(folder.file("notes.json"), Value::from(notes).to_string()).expect("it is written");
    let step = "        grpc: {proto: echo.proto, messages: notes.json}\n";
    let result = result(&load(&server, &folder, step, "-n 170 -c 1"));
    assert_eq!(result["accounting"]["ok"], 10, "{result:#}");
    let errors = result["errors"].as_object().expect("classes");
    assert_eq!(errors.len(), 16, "{errors:?}");
    assert!(errors.values().all(|count| *count == 10), "{errors:?}");
    assert_eq!(errors["grpc_unauthenticated"], 10);
    let example = result["error_examples"]["grpc_unavailable"].as_str().expect("an example");
    assert!(example.contains("status UNAVAILABLE: that is über"), "{example}");
    assert!(server.take_seen().values().all(|count| *count == 10));
}

/// Symptom: an empty line in front of a step made another load of it, and other messages in a file did not.
#[test]
fn the_checksum_of_a_load_is_that_of_its_messages() {
    let (server, folder) = (EchoServer::start(), Folder::new());
    let checksum = |step: &str| {
        let finished = load(&server, &folder, step, "-n 2 -c 1 --seed 1");
        result(&finished)["run"]["load_checksum"].as_str().expect("a checksum").to_owned()
    };
    let notes = |text: &str| {
        let file = folder.file("notes.json");
        std::fs::write(file, format!("[{{\"text\": \"{text}\"}}]")).expect("it is written");
        checksum("        grpc: {proto: echo.proto, messages: notes.json}\n")
    };
    assert_eq!(notes("one"), notes("one"));
    assert_ne!(notes("one"), notes("two"));
    let message = "        grpc: {proto: echo.proto, message: {text: 'n${sequence}'}}\n";
    assert_eq!(checksum(message), checksum(&format!("\n\n{message}")));
    assert_ne!(checksum(message), checksum(&message.replace("'n$", "'m$")));
}

#[test]
fn answers_that_are_not_whole_are_no_success() {
    let (server, folder) = (EchoServer::start(), Folder::new());
    for (status, class, said) in [
        (99, "grpc_unknown", "the answer has no grpc-status"),
        (98, "check", "the body ends within a message"),
    ] {
        let step = format!("        grpc: {{proto: echo.proto, message: {{text: x, status: {status}}}}}\n");
        let result = result(&load(&server, &folder, &step, "-n 5 -c 1"));
        assert_eq!(result["errors"][class], 5, "{result:#}");
        let example = result["error_examples"][class].as_str().expect("an example");
        assert!(example.contains(said), "{example}");
    }
}

#[test]
fn streams_that_end_early_are_told_apart_from_those_that_fail() {
    let (server, folder) = (EchoServer::start(), Folder::new());
    for (status, class, said) in [
        (0, "", ""),
        (14, "grpc_unavailable", "status UNAVAILABLE: that is über"),
        (97, "stream_incomplete", "INTERNAL_ERROR"),
        (98, "stream_incomplete", "in the middle of a message, after 7 whole ones"),
        (99, "grpc_unknown", "the answer has no grpc-status"),
    ] {
        let notes = format!("[{{text: a, status: {status}}}, {{text: b}}]");
        let step = format!("        grpc: {{proto: echo.proto, message: {notes}}}\n");
        let finished = load_of(&server, &folder, "Chat", &step, "-n 6 -c 1 --streams 2");
        let result = result(&finished);
        if class.is_empty() {
            assert_eq!(result["accounting"]["ok"], 6, "{:#}", result["error_examples"]);
            assert_eq!(result["event_streams"]["events"], 36);
            continue;
        }
        assert_eq!(result["errors"][class], 6, "{status}: {:#}", result["errors"]);
        let example = result["error_examples"][class].as_str().expect("an example");
        assert!(example.contains(said), "{example}");
    }
}

#[test]
fn what_cannot_be_called_is_told_before_anything_is_sent() {
    let (server, folder) = (EchoServer::start(), Folder::new());
    for (step, flags, said) in [
        ("grpc: {proto: echo.proto, message: {txt: x}}", "", "the message is no `echo.v1.Note`: "),
        ("grpc: {proto: echo.proto, message: {status: many}}", "", "the message is no `echo.v1.Note`: "),
        ("grpc: {proto: none.proto}", "", "cannot read `none.proto`"),
        ("grpc: {message: {text: x}}", "", "a call of gRPC needs either `proto` or `descriptor_set`"),
        ("grpc: {proto: echo.proto, messages: echo.proto}", "", "the file is not JSON"),
        ("grpc: {proto: echo.proto, message: {text: '${nothing}'}}", "", "nothing"),
        ("grpc: {descriptor_set: echo.proto}", "", "descriptor"),
        ("grpc: {proto: echo.proto}", "--http1.1", "gRPC is spoken over HTTP/2 alone"),
    ] {
        let finished = load(&server, &folder, &format!("        {step}\n"), flags);
        assert_eq!(finished.code, Some(2), "{step}: {}", finished.stderr);
        assert!(finished.stderr.contains(said), "{step}: {}", finished.stderr);
    }
    let plan = std::fs::read_to_string(folder.file("plan.yaml")).expect("the last plan");
    for (path, said) in [
        (
            "/echo.v1.Echo/Shout",
            "no method has the path `/echo.v1.Echo/Shout`: there are /echo.v1.Echo/Say, ",
        ),
        ("/echo.v1.Nothing/Say", "no method has the path `/echo.v1.Nothing/Say`"),
    ] {
        let file = folder.file("other.yaml");
        std::fs::write(&file, plan.replace("/echo.v1.Echo/Say", path)).expect("it is written");
        let finished = run(&format!("check {file}"));
        assert_eq!(finished.code, Some(2), "{}", finished.stderr);
        assert!(finished.stderr.contains(said) || finished.stdout.contains(said), "{}", finished.stderr);
    }
    assert!(server.take_seen().is_empty());
}
