//! WebSockets over HTTP/2 (RFC 8441): against a server of hyper and tungstenite, and the same two as a client
//! of the sink.

use std::convert::Infallible;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::ext::Protocol;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

use crate::loopback::process::Folder;
use crate::loopback::sink::Sink;
use crate::loopback::websocket::{Seen, at, check_conversations, conversations, converse, result_of};

fn runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("threads")
}

/// The stream of HTTP/2 as one that blocks, for tungstenite. Must be called within a runtime.
fn blocking(upgraded: Upgraded) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    theirs.set_nonblocking(true).expect("a socket");
    let mut theirs = tokio::net::UnixStream::from_std(theirs).expect("a socket");
    tokio::spawn(async move {
        // The end of either side is the end of both.
        let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(upgraded), &mut theirs).await;
    });
    ours
}

/// The server's part of a conversation on a WebSocket.
pub(crate) type Conversation = dyn Fn(usize, WebSocket<UnixStream>, &Mutex<Seen>) + Send + Sync;

/// A server that talks over streams of HTTP/2 to whoever asks for them.
pub(crate) struct Server {
    pub(crate) address: String,
    seen: Arc<Mutex<Seen>>,
    _runtime: Runtime,
}

impl Server {
    /// One that answers requests for a WebSocket with this status.
    fn start(status: u16) -> Self {
        Self::talking(status, Arc::new(converse))
    }

    /// One that has this conversation.
    pub(crate) fn talking(status: u16, conversation: Arc<Conversation>) -> Self {
        let runtime = runtime();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("a listener").to_string();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let of_server = Arc::clone(&seen);
        runtime.spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let seen = Arc::clone(&of_server);
                let conversation = Arc::clone(&conversation);
                let service = service_fn(move |request| {
                    let (seen, conversation) = (Arc::clone(&seen), Arc::clone(&conversation));
                    let answer = answer(request, number, status, seen, conversation);
                    async move { Ok::<_, Infallible>(answer) }
                });
                tokio::spawn(async move {
                    let mut builder = Builder::new(TokioExecutor::new());
                    builder.enable_connect_protocol();
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, seen, _runtime: runtime }
    }
}

fn answer(
    mut request: Request<Incoming>,
    number: usize,
    status: u16,
    seen: Arc<Mutex<Seen>>,
    conversation: Arc<Conversation>,
) -> Response<Empty<Bytes>> {
    assert_eq!((request.method(), request.version()), (&Method::CONNECT, Version::HTTP_2));
    assert_eq!(request.extensions().get::<Protocol>().map(Protocol::as_str), Some("websocket"));
    for gone in ["upgrade", "connection", "sec-websocket-key", "host"] {
        assert!(request.headers().get(gone).is_none(), "{gone}");
    }
    assert_eq!(request.headers()["sec-websocket-version"], "13");
    let target = request.uri().path_and_query().expect("a path").to_string();
    seen.lock().expect("nobody panicked").targets.push(target);
    let response = Response::builder().status(status);
    if !(200..300).contains(&status) {
        return response.header("x-why", "no").body(Empty::new()).expect("a response");
    }
    assert_eq!(request.headers()["x-user"], "ann");
    let request_offers_compression = request.headers().contains_key("sec-websocket-extensions");
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(&mut request).await.expect("a stream");
        let stream = blocking(upgraded);
        std::thread::spawn(move || {
            conversation(number, WebSocket::from_raw_socket(stream, Role::Server, None), &seen);
        });
    });
    let response = match request_offers_compression {
        true => response.header("sec-websocket-extensions", "permessage-deflate"),
        false => response,
    };
    response.header("sec-websocket-protocol", "v2").body(Empty::new()).expect("a response")
}

/// The result of six conversations with a server.
fn result_at(server: &Server) -> Value {
    let folder = Folder::new();
    let plan = conversations(&folder, &server.address);
    result_of(&format!("run {plan} --http2 --no-preflight --quiet -o json"))
}

#[test]
fn a_plan_talks_to_a_server_of_hyper() {
    let server = Server::start(200);
    let result = result_at(&server);
    assert_eq!(at(&result, "/accounting/ok"), 30, "{:#}", result["error_examples"]);
    check_conversations(&result, &server.seen.lock().expect("nobody panicked"));
}

#[test]
fn a_refusal_is_judged_as_any_response() {
    let server = Server::start(403);
    let result = result_at(&server);
    assert_eq!(at(&result, "/errors/status_4xx"), 6, "{result:#}");
    assert_eq!(at(&result, "/websocket/refused"), 6);
    assert_eq!(server.seen.lock().expect("nobody panicked").targets.len(), 6);
}

/// A client of hyper and tungstenite at the sink, on a connection of its own.
fn client(sink: &Sink, runtime: &Runtime) -> WebSocket<UnixStream> {
    let stream = runtime.block_on(async {
        let stream = TcpStream::connect(&sink.endpoint).await.expect("a connection");
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.expect("settings");
        tokio::spawn(connection);
        let request = Request::builder()
            .method(Method::CONNECT)
            .version(Version::HTTP_2)
            .uri(format!("http://{}/chat", sink.endpoint))
            .header("sec-websocket-version", "13")
            .header("sec-websocket-protocol", "chat, superchat")
            .extension(Protocol::from_static("websocket"))
            .body(Empty::<Bytes>::new())
            .expect("a request");
        let response = sender.send_request(request).await.expect("a response");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
        blocking(hyper::upgrade::on(response).await.expect("a stream"))
    });
    WebSocket::from_raw_socket(stream, Role::Client, None)
}

#[test]
fn hyper_is_a_client_of_the_sink() {
    let runtime = runtime();
    for args in ["--websocket", "--websocket --delay 2ms"] {
        let sink = Sink::start(args);
        let mut socket = client(&sink, &runtime);
        // More than the client's windows allow at once.
        let messages =
            [Message::text("é"), Message::binary(vec![7; 9 << 20]), Message::text("a".repeat(126))];
        for message in &messages {
            socket.send(message.clone()).expect("it is sent");
            assert!(socket.read().expect("an echo") == *message);
        }
        socket.send(Message::Ping(b"p".as_slice().into())).expect("it is sent");
        assert_eq!(socket.read().expect("a pong"), Message::Pong(b"p".as_slice().into()));
        socket.close(None).expect("it is sent");
        assert!(matches!(socket.read(), Ok(Message::Close(_))));
        assert_eq!(sink.stop().truth.rows.len(), 4);
    }
}

#[test]
fn a_sink_broadcasts_over_both_versions() {
    let runtime = runtime();
    let sink = Sink::start("--websocket --broadcast --threads 1");
    let mut clients = [client(&sink, &runtime), client(&sink, &runtime)];
    for (sender, message) in [(0, Message::text("here")), (1, Message::binary(b"x".to_vec()))] {
        clients[sender].send(message.clone()).expect("it is sent");
        for socket in &mut clients {
            assert_eq!(socket.read().expect("a message"), message);
        }
    }
}
