//! Calls of gRPC against a server of tonic.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_testkit::program::Folder;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::{BoxFuture, BoxStream, Context, Poll, Service, http};
use tonic::server::{ClientStreamingService, Grpc, ServerStreamingService, StreamingService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::calls::Note;
use crate::program::run;

const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/echo.proto");

/// Everything that is known of the calls.
#[derive(Debug, Default)]
struct Seen {
    /// Texts of the notes that came, and how often.
    texts: Mutex<BTreeMap<String, u64>>,
    /// Values of `grpc-timeout`.
    timeouts: Mutex<Vec<String>>,
    /// Notes in the store by their names, and those that were dropped from it.
    kept: Mutex<BTreeMap<String, Note>>,
    dropped: Mutex<Vec<Note>>,
    /// The server is to end at once.
    dies: Notify,
}

impl Seen {
    fn note(&self, note: &Note) {
        *self.texts.lock().unwrap_or_else(PoisonError::into_inner).entry(note.text.clone()).or_default() += 1;
    }
}

impl Seen {
    /// Keeps a note under a name of the store's choice.
    #[expect(clippy::unnecessary_wraps, reason = "the form of a method of the store")]
    fn keep(&self, note: &Note) -> Result<Note, Status> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner).len();
        let name = format!("note-{:08x}", (kept.len() + dropped) * 0x9e37_79b1 % 0x1_0000_0000);
        kept.insert(name.clone(), note.clone());
        Ok(Note { text: name, ..note.clone() })
    }

    fn fetch(&self, name: &Note) -> Result<Note, Status> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&name.text).cloned().ok_or_else(|| Status::not_found(name.text.clone()))
    }

    fn drop_note(&self, name: &Note) -> Result<Note, Status> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let note = kept.remove(&name.text).ok_or_else(|| Status::not_found(name.text.clone()))?;
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(note.clone());
        Ok(note)
    }
}

/// The services `echo.v1.Echo` and `store.v1.Store`; no other is implemented.
#[derive(Clone)]
struct Echo {
    seen: Arc<Seen>,
    gzip: bool,
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let mut grpc = Grpc::new(ProstCodec::<Note, Note>::default());
        if self.gzip {
            grpc = grpc.accept_compressed(CompressionEncoding::Gzip);
            grpc = grpc.send_compressed(CompressionEncoding::Gzip);
        }
        if let Some(timeout) = request.headers().get("grpc-timeout") {
            let timeout = timeout.to_str().expect("text").to_owned();
            self.seen.timeouts.lock().unwrap_or_else(PoisonError::into_inner).push(timeout);
        }
        let calls = Calls(Arc::clone(&self.seen));
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/echo.v1.Echo/Say" => grpc.unary(calls, request).await,
                "/echo.v1.Echo/Repeat" => grpc.server_streaming(calls, request).await,
                "/echo.v1.Echo/Gather" => grpc.client_streaming(calls, request).await,
                "/echo.v1.Echo/Chat" => grpc.streaming(calls, request).await,
                "/store.v1.Store/Keep" => grpc.unary(Stored(calls.0, Seen::keep), request).await,
                "/store.v1.Store/Fetch" => grpc.unary(Stored(calls.0, Seen::fetch), request).await,
                "/store.v1.Store/Drop" => grpc.unary(Stored(calls.0, Seen::drop_note), request).await,
                path => Status::unimplemented(path.to_owned()).into_http(),
            })
        })
    }
}

/// The methods.
struct Calls(Arc<Seen>);

/// The failure that a note asks for.
fn failure(note: &Note) -> Result<(), Status> {
    match note.status {
        0 => Ok(()),
        status => Err(Status::new(Code::from(status as i32), "that is über")),
    }
}

impl UnaryService<Note> for Calls {
    type Response = Note;
    type Future = BoxFuture<Response<Note>, Status>;

    fn call(&mut self, request: Request<Note>) -> Self::Future {
        let note = request.into_inner();
        self.0.note(&note);
        Box::pin(async move {
            if note.text == "late" {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            failure(&note)?;
            Ok(Response::new(note))
        })
    }
}

/// A method of the store.
struct Stored(Arc<Seen>, fn(&Seen, &Note) -> Result<Note, Status>);

impl UnaryService<Note> for Stored {
    type Response = Note;
    type Future = BoxFuture<Response<Note>, Status>;

    fn call(&mut self, request: Request<Note>) -> Self::Future {
        let answer = self.1(&self.0, request.get_ref()).map(Response::new);
        Box::pin(async { answer })
    }
}

impl ServerStreamingService<Note> for Calls {
    type Response = Note;
    type ResponseStream = BoxStream<Note>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    /// Sends the note three times, and then what it asks for: a status, or the end of the server.
    fn call(&mut self, request: Request<Note>) -> Self::Future {
        let note = request.into_inner();
        self.0.note(&note);
        let (sender, receiver) = mpsc::channel(8);
        let seen = Arc::clone(&self.0);
        tokio::spawn(async move {
            for _ in 0..3 {
                sender.send(Ok(note.clone())).await.expect("a client that waits");
            }
            if note.text == "die" {
                // Messages that were sent have to leave before.
                tokio::time::sleep(Duration::from_millis(100)).await;
                seen.dies.notify_one();
                std::future::pending::<()>().await;
            }
            if let Err(status) = failure(&note) {
                sender.send(Err(status)).await.expect("a client that waits");
            }
        });
        Box::pin(async { Ok(Response::new(Box::pin(ReceiverStream::new(receiver)) as BoxStream<Note>)) })
    }
}

impl ClientStreamingService<Note> for Calls {
    type Response = Note;
    type Future = BoxFuture<Response<Note>, Status>;

    /// Answers with the number of notes.
    fn call(&mut self, request: Request<Streaming<Note>>) -> Self::Future {
        let (seen, mut notes) = (Arc::clone(&self.0), request.into_inner());
        Box::pin(async move {
            let mut count = 0;
            while let Some(note) = notes.message().await? {
                seen.note(&note);
                failure(&note)?;
                count += 1;
            }
            Ok(Response::new(Note { text: format!("{count} notes"), ..Note::default() }))
        })
    }
}

impl StreamingService<Note> for Calls {
    type Response = Note;
    type ResponseStream = BoxStream<Note>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    /// Sends each note back as it comes.
    fn call(&mut self, request: Request<Streaming<Note>>) -> Self::Future {
        let (seen, mut notes) = (Arc::clone(&self.0), request.into_inner());
        let (sender, receiver) = mpsc::channel(8);
        tokio::spawn(async move {
            // A client that has given up ends the stream by an error.
            while let Ok(Some(note)) = notes.message().await {
                seen.note(&note);
                if note.text == "silence" {
                    continue;
                }
                let answer = failure(&note).map(|()| note);
                let is_over = answer.is_err();
                sender.send(answer).await.expect("a client that waits");
                if is_over {
                    return;
                }
            }
        });
        Box::pin(async { Ok(Response::new(Box::pin(ReceiverStream::new(receiver)) as BoxStream<Note>)) })
    }
}

/// A running server. It ends when this is dropped.
struct TonicServer {
    address: String,
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

impl TonicServer {
    fn start(gzip: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("threads");
        let seen: Arc<Seen> = Arc::default();
        let echo = Echo { seen: Arc::clone(&seen), gzip };
        let incoming = runtime.block_on(async { TcpIncoming::bind(([127, 0, 0, 1], 0).into()) });
        let incoming = incoming.expect("a port");
        let address = incoming.local_addr().expect("a listener").to_string();
        runtime.spawn(Server::builder().serve_with_incoming(echo, incoming));
        let of_server = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            runtime.block_on(of_server.dies.notified());
            // All connections end with their tasks.
            runtime.shutdown_background();
        });
        Self { address, seen, thread: Some(thread) }
    }

    /// Calls a method of the service.
    fn call(&self, method: &str, flags: &str) -> Value {
        let line =
            format!("grpc {} echo.v1.Echo/{method} --proto {PROTO} --quiet -o json {flags}", self.address);
        let finished = run(&line);
        serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{line}: {}", finished.stderr))
    }

    /// The texts that came since the last time, and how often.
    fn texts(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *self.seen.texts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for TonicServer {
    fn drop(&mut self) {
        self.seen.dies.notify_one();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a server that ends");
        }
    }
}

fn at<'a>(result: &'a Value, pointer: &str) -> &'a Value {
    result.pointer(pointer).unwrap_or_else(|| panic!("{pointer}: {result:#}"))
}

#[test]
fn all_four_kinds_of_calls_are_answered() {
    let server = TonicServer::start(false);
    for (method, flags, notes, events) in [
        ("Say", "-d {\"text\":\"a\"}", 1, None),
        ("Repeat", "-d {\"text\":\"a\"}", 1, Some(3)),
        ("Gather", "-d {\"text\":\"a\"} --send 5", 5, None),
        ("Chat", "-d [{\"text\":\"a\"},{\"text\":\"a\"}] --send 3", 6, Some(6)),
    ] {
        let result = server.call(method, &format!("{flags} -n 40 -c 2 --streams 4"));
        assert_eq!(at(&result, "/accounting/ok"), 40, "{method}: {:#}", result["error_examples"]);
        assert_eq!(at(&result, "/protocols/h2"), 40);
        assert_eq!(server.texts(), BTreeMap::from([("a".to_owned(), 40 * notes)]), "{method}");
        let counted = result.pointer("/event_streams/events").and_then(Value::as_u64);
        assert_eq!(counted, events.map(|events| 40 * events), "{method}");
    }
}

/// The server answers a note only when it has come, and ends the call behind the last one.
#[test]
fn messages_of_both_sides_take_turns() {
    let server = TonicServer::start(false);
    let result = server.call("Chat", "-d {\"text\":\"a\"} --send 5 --wait -n 20 -c 2 --streams 3");
    assert_eq!(at(&result, "/accounting/ok"), 20, "{:#}", result["error_examples"]);
    assert_eq!(at(&result, "/event_streams/events"), 100);
    assert_eq!(server.texts(), BTreeMap::from([("a".to_owned(), 100)]));
    // A message that is not answered is the last one.
    let notes = "-d [{\"text\":\"a\"},{\"text\":\"a\"},{\"text\":\"silence\"},{\"text\":\"b\"}]";
    let result = server.call("Chat", &format!("{notes} --wait -n 3 -c 1 --streams 3 --timeout 300ms"));
    assert_eq!(at(&result, "/accounting/timed_out"), 3, "{result:#}");
    assert_eq!(server.texts(), BTreeMap::from([("a".to_owned(), 6), ("silence".to_owned(), 3)]));
    // The server fails while there is more to send.
    let notes = "-d [{\"text\":\"a\"},{\"status\":9},{\"text\":\"b\"}]";
    let result = server.call("Chat", &format!("{notes} --wait -n 3 -c 1"));
    assert_eq!(at(&result, "/errors/grpc_failed_precondition"), 3, "{result:#}");
    assert_eq!(server.texts().get("b"), None);
}

#[test]
fn every_status_is_a_class_of_errors() {
    let server = TonicServer::start(false);
    let notes: Vec<String> = (0..17).map(|status| format!("{{\"status\":{status}}}")).collect();
    let folder = Folder::new();
    let notes = folder.write("notes.json", format!("[{}]", notes.join(",")));
    // The first one's failures are trailers alone, those of the second come behind messages.
    for method in ["Say", "Repeat"] {
        let result = server.call(method, &format!("-D {notes} -n 34 -c 1 --streams 2"));
        assert_eq!(at(&result, "/accounting/ok"), 2, "{method}: {result:#}");
        let errors = at(&result, "/errors").as_object().expect("classes");
        let counted = errors.iter().filter(|(_, count)| **count == 2);
        assert_eq!(counted.filter(|(class, _)| class.starts_with("grpc_")).count(), 16, "{errors:?}");
        let example = at(&result, "/error_examples/grpc_data_loss").as_str().expect("an example");
        assert!(example.contains("status DATA_LOSS: that is über"), "{example}");
    }
}

/// A plan that keeps, fetches and drops a note for each row of its data.
fn store_plan(server: &TonicServer, rows: &[String], status: &str) -> (Folder, String) {
    let folder = Folder::new();
    folder.write("store.proto", include_str!("store.proto"));
    folder.write("rows.csv", format!("name,at,number\n{}\n", rows.join("\n")));
    let plan = format!(
        r#"
run: {{http2: true, connections: 2, max_concurrent_streams: 4, iterations: {}}}
targets: {{store: 'http://{}'}}
data: {{rows: {{csv: rows.csv}}}}
scenarios:
  - steps:
      - post: /store.v1.Store/Keep
        grpc: {{proto: store.proto, message: {{text: 'a ${{name}}', status: '{status}', at: '${{at}}'}}}}
        extract: {{id: {{json: /text}}}}
      - post: /store.v1.Store/Fetch
        grpc: {{proto: store.proto, message: {{text: '${{id}}'}}}}
        extract: {{seen: {{json: /text}}, count: {{json: /status}}}}
      - post: /store.v1.Store/Drop
        headers: {{x-seen: '${{seen}}'}}
        grpc: {{proto: store.proto, compress: gzip, message: {{text: '${{id}}', status: '${{count}}'}}}}
"#,
        rows.len(),
        server.address,
    );
    let plan = folder.write("plan.yaml", plan);
    (folder, plan)
}

/// Symptom: messages knew no variables, so that nothing could be created and then read by its id.
#[test]
fn messages_take_rows_and_what_answers_have_said() {
    let server = TonicServer::start(true);
    let rows: Vec<String> =
        (0..300).map(|row| format!("\"näme \"\"{row}\"\"\",2024-01-02T03:04:05.{row:03}Z,{row}")).collect();
    let (_folder, plan) = store_plan(&server, &rows, "${number}");
    // Symptom: `try` showed bytes, and took nothing from the answers.
    let tried = run(&format!("try {plan}")).stdout;
    for line in [
        r#"> {"text":"a näme \"0\"","status":0,"at":"2024-01-02T03:04:05Z"}"#,
        r#"< {"text":"note-00000000","status":0,"at":"2024-01-02T03:04:05Z"}"#,
        "= id: note-00000000",
        r#"= seen: a näme "0""#,
        "= count: 0",
    ] {
        assert!(tried.contains(line), "{line}\n{tried}");
    }
    server.seen.dropped.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let finished = run(&format!("run {plan} --quiet -o json"));
    let result: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}", finished.stderr));
    assert_eq!(at(&result, "/accounting/ok"), 900, "{:#}", result["error_examples"]);
    assert!(server.seen.kept.lock().unwrap_or_else(PoisonError::into_inner).is_empty());
    let mut dropped =
        std::mem::take(&mut *server.seen.dropped.lock().unwrap_or_else(PoisonError::into_inner));
    dropped.sort_by_key(|note| note.status);
    assert_eq!(dropped.len(), 300);
    for (row, note) in (0..).zip(&dropped) {
        assert_eq!((note.text.as_str(), note.status), (format!("a näme \"{row}\"").as_str(), row));
        let at = note.at.as_ref().expect("a time");
        assert_eq!((at.seconds, at.nanos), (1_704_164_645, row as i32 * 1_000_000));
    }
}

#[test]
fn a_value_that_does_not_fit_its_field_is_named() {
    let server = TonicServer::start(true);
    let rows = ["a,2024-01-02T03:04:05Z,1".to_owned(), "b,2024-01-02T03:04:05Z,many".to_owned()];
    let (_folder, plan) = store_plan(&server, &rows, "${number}");
    let result = run(&format!("run {plan} --quiet -o json")).stdout;
    let result: Value = serde_json::from_str(&result).expect("a result");
    assert_eq!(at(&result, "/accounting/ok"), 3, "{result:#}");
    let examples = at(&result, "/error_examples").to_string();
    let words = "the value `many` is no uint32, as the field `store.v1.Note.status` wants it";
    assert!(examples.contains(words), "{examples}");
    let (_folder, plan) = store_plan(&server, &rows, "${random_int(-2,-1)}");
    let refused = run(&format!("run {plan}"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("is no uint32"), "{}", refused.stderr);
}

#[test]
fn a_service_that_is_not_there_is_unimplemented() {
    let server = TonicServer::start(false);
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/src/service/health.proto");
    let line = format!(
        "grpc {} grpc.health.v1.Health/Check --proto {proto} -n 3 -c 1 --quiet -o json",
        server.address
    );
    let result: Value = serde_json::from_str(&run(&line).stdout).expect("a result");
    assert_eq!(at(&result, "/errors/grpc_unimplemented"), 3, "{result:#}");
}

#[test]
fn deadlines_are_told_and_kept() {
    let server = TonicServer::start(false);
    let result = server.call("Say", "-d {\"text\":\"late\"} --deadline 150ms -n 4 -c 1 --streams 4");
    // The server gives up at the same time, and says so by CANCELLED: its word may come first.
    let ended = |pointer: &str| result.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let gave_up = ended("/errors/grpc_cancelled") + ended("/errors/grpc_deadline_exceeded");
    assert_eq!(ended("/accounting/timed_out") + gave_up, 4, "{result:#}");
    let timeouts = std::mem::take(&mut *server.seen.timeouts.lock().unwrap_or_else(PoisonError::into_inner));
    assert_eq!(timeouts.len(), 4);
    assert!(
        timeouts
            .iter()
            .all(|value| plimsoll_grpc::fields::read_timeout(value.as_bytes()) == Some(150_000_000)),
        "{timeouts:?}"
    );
    let result = server.call("Say", "-d {\"text\":\"a\"} --deadline 20s -n 4 -c 1");
    assert_eq!(at(&result, "/accounting/ok"), 4, "{result:#}");
}

#[test]
fn messages_are_empty_huge_or_larger_than_the_server_takes() {
    let (server, folder) = (TonicServer::start(false), Folder::new());
    let result = server.call("Say", "-n 5 -c 1");
    assert_eq!(at(&result, "/accounting/ok"), 5, "{:#}", result["error_examples"]);
    assert_eq!(server.texts(), BTreeMap::from([(String::new(), 5)]));
    // tonic takes messages of 4 MiB.
    for (bytes, outcome) in [(4_000_000, "/accounting/ok"), (5_000_000, "/errors/grpc_out_of_range")] {
        let text = "x".repeat(bytes);
        let file = folder.write("note.json", format!("[{{\"text\": \"{text}\"}}]"));
        let result = server.call("Say", &format!("-D {file} -n 4 -c 1 --streams 2"));
        assert_eq!(at(&result, outcome), 4, "{bytes}: {:#}", result["error_examples"]);
    }
    assert_eq!(server.texts().into_values().collect::<Vec<_>>(), [4]);
}

#[test]
fn messages_are_compressed_where_both_sides_do() {
    let server = TonicServer::start(true);
    let flags = format!("-d {{\"text\":\"{}\"}} --gzip -n 10 -c 1", "a".repeat(2_000));
    let zipped = server.call("Say", &flags);
    assert_eq!(at(&zipped, "/accounting/ok"), 10, "{:#}", zipped["error_examples"]);
    let bytes = |result: &Value| at(result, "/bytes/received").as_u64().expect("bytes");
    // Symptom: answers of a server that compresses failed all, unless requests were compressed, too.
    let answers = server.call("Say", &flags.replace("--gzip ", ""));
    assert_eq!(at(&answers, "/accounting/ok"), 10, "{:#}", answers["error_examples"]);
    assert_eq!(bytes(&zipped), bytes(&answers));
    let sent = |result: &Value| at(result, "/bytes/sent").as_u64().expect("bytes");
    assert!(sent(&zipped) * 3 < sent(&answers), "{} {}", sent(&zipped), sent(&answers));
    let plain = TonicServer::start(false).call("Say", &flags.replace("--gzip ", ""));
    assert!(bytes(&zipped) * 3 < bytes(&plain), "{} {}", bytes(&zipped), bytes(&plain));
    assert_eq!(server.texts().into_values().collect::<Vec<_>>(), [20]);
    let stream = server.call("Repeat", &flags);
    assert_eq!(at(&stream, "/event_streams/events"), 30, "{:#}", stream["error_examples"]);
    let refuses = TonicServer::start(false);
    let result = refuses.call("Say", &flags);
    assert_eq!(at(&result, "/errors/grpc_unimplemented"), 10, "{result:#}");
    let example = at(&result, "/error_examples/grpc_unimplemented").as_str().expect("an example");
    assert!(example.contains("gzip"), "{example}");
}

#[test]
fn a_stream_ends_early_where_its_server_dies() {
    let server = TonicServer::start(false);
    let result = server.call("Repeat", "-d {\"text\":\"die\"} -n 1 -c 1");
    assert_eq!(at(&result, "/errors/stream_incomplete"), 1, "{result:#}");
    assert_eq!(at(&result, "/accounting/ok"), 0);
}
