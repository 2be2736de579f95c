//! `plimsoll ws` and steps on WebSockets: against `plimsoll sink --websocket`, whose log has the truth, and
//! against tungstenite, as a server and as a client of the sink.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tungstenite::handshake::server::{Request, Response};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

use crate::loopback::process::{Folder, run};
use crate::loopback::sink::Sink;

pub(crate) fn result_of(line: &str) -> Value {
    let finished = run(line);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{line}: {}", finished.stderr))
}

/// A load of messages on a sink.
fn load(sink: &Sink, flags: &str) -> Value {
    result_of(&format!("ws ws://{}/chat --quiet -o json {flags}", sink.endpoint))
}

pub(crate) fn at<'a>(result: &'a Value, pointer: &str) -> &'a Value {
    result.pointer(pointer).unwrap_or_else(|| panic!("{pointer}: {result:#}"))
}

/// Flags for the version of HTTP that opens WebSockets, and the status of the answer that does.
const VERSIONS: [(&str, u16); 2] = [("", 101), ("--http2", 200)];

#[test]
fn messages_are_echoed_over_plain_text_and_tls() {
    for (version, status) in VERSIONS {
        let sink = Sink::start("--websocket --threads 1");
        let flags = "-n 20 -c 4 --messages 10 --message hello-${sequence} --expect hello-";
        let result = load(&sink, &format!("{flags} {version}"));
        // An upgrade, ten messages and a close each.
        assert_eq!(at(&result, "/accounting/ok"), 240, "{version}: {:#}", result["error_examples"]);
        assert_eq!(at(&result, "/protocols/websocket"), 240);
        let record = at(&result, "/websocket");
        assert_eq!(
            (&record["messages_sent"], &record["messages_received"]),
            (&json!(200), &json!(200)),
            "{record}"
        );
        assert_eq!(
            (&record["opened"], &record["skipped"], &record["dropped"]),
            (&json!(20), &json!(0), &json!(0))
        );
        assert_eq!(at(&result, &format!("/by_step/0/statuses/{status}")), 20);
        assert_eq!(at(&result, "/by_step/1/ok"), 200);
        let saw = sink.stop();
        assert_eq!(saw.truth.ended(&result, "replied"), 220);

        let sink = Sink::start("--websocket --self-signed");
        let line = format!("ws wss://{}/ -k -n 5 -c 2 --messages 3 --binary", sink.endpoint);
        let result = result_of(&format!("{line} --quiet -o json {version}"));
        assert_eq!(at(&result, "/accounting/ok"), 25, "{version}: {:#}", result["error_examples"]);
    }
}

#[test]
fn messages_come_at_a_rate_and_connections_too() {
    let sink = Sink::start("--websocket --threads 1");
    let result = load(&sink, "--rate 400/s --rate-of requests -d 1s --messages 5 -c 50");
    assert!(at(&result, "/accounting/failed") == 0, "{:#}", result["error_examples"]);
    assert_eq!(at(&result, "/accounting/scheduled"), 400);
    let result = load(&sink, "--rate 40/s -d 1s --messages 3");
    assert_eq!(at(&result, "/iterations/started"), 40);
    assert_eq!(at(&result, "/accounting/failed"), 0, "{:#}", result["error_examples"]);
    let result = load(&sink, "-n 6 -c 3 --messages 50 --no-answer");
    assert_eq!(at(&result, "/accounting/ok"), 6 * 52, "{:#}", result["error_examples"]);
    assert_eq!(at(&result, "/websocket/messages_sent"), 300);
}

#[test]
fn faults_of_the_sink_have_their_classes() {
    for (version, _) in VERSIONS {
        let sink = Sink::start("--websocket --fail 20%:503 --delay 1ms");
        let result = load(&sink, &format!("-n 60 -c 4 --messages 4 {version}"));
        let saw = sink.stop();
        let failed = saw.truth.ended(&result, "status 503");
        let classes = ["/errors/status_5xx", "/errors/websocket_closed"]
            .map(|class| at(&result, class).as_u64().unwrap());
        assert_eq!(classes.iter().sum::<u64>(), failed, "{result:#}");
        let example = at(&result, "/error_examples/websocket_closed").as_str().unwrap();
        assert!(example.contains("the server closed the WebSocket with 1011"), "{example}");

        let sink = Sink::start("--websocket --drop 20%");
        let result = load(&sink, &format!("-n 30 -c 10 --messages 3 --timeout 300ms {version}"));
        let saw = sink.stop();
        assert_eq!(*at(&result, "/accounting/timed_out"), saw.truth.ended(&result, "dropped"), "{result:#}");

        let sink = Sink::start("--websocket --reset 20%");
        let result = load(&sink, &format!("-n 40 -c 4 --messages 3 {version}"));
        let saw = sink.stop();
        assert_eq!(*at(&result, "/errors/reset"), saw.truth.ended(&result, "reset"), "{result:#}");

        // The client has sent the third message when the server goes away, or is about to.
        let sink = Sink::start("--websocket --goaway-after 3");
        let result = load(&sink, &format!("-n 4 -c 1 --messages 9 {version}"));
        assert_eq!(at(&result, "/errors/websocket_closed"), 4, "{result:#}");
        assert_eq!(at(&result, "/websocket/closed_by_server"), 4);
    }
}

#[test]
fn a_server_of_http_refuses_the_upgrade() {
    let sink = Sink::start("--status 403");
    let result = load(&sink, "-n 5 -c 1");
    assert_eq!(at(&result, "/errors/status_4xx"), 5, "{result:#}");
    assert_eq!(at(&result, "/websocket/refused"), 5);
    let sink = Sink::start("");
    let result = load(&sink, "-n 5 -c 1");
    let example = at(&result, "/error_examples/check").as_str().unwrap();
    assert!(example.contains("200") && example.contains("101"), "{example}");
    // Its settings say so before it is asked.
    let finished = run(&format!("ws ws://{}/chat --http2 --quiet -n 5 -c 1", sink.endpoint));
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("takes no WebSockets over HTTP/2"), "{}", finished.stderr);
}

/// Requests and messages that a tungstenite server received.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) targets: Vec<String>,
    pub(crate) texts: u64,
    pub(crate) binary_bytes: usize,
    pub(crate) pongs: u64,
    pub(crate) closes: Vec<Option<u16>>,
}

/// A server of tungstenite that serves this many connections. It welcomes each, pings it, and answers each
/// text with something else first.
fn serve(connections: usize) -> (String, JoinHandle<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let server = std::thread::spawn(move || {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let all: Vec<_> = (0..connections)
            .map(|number| {
                let (stream, _) = listener.accept().expect("a connection");
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || serve_one(number, stream, &seen))
            })
            .collect();
        all.into_iter().for_each(|one| one.join().expect("a connection that ends"));
        Arc::into_inner(seen).expect("all have ended").into_inner().expect("nobody panicked")
    });
    (address, server)
}

#[allow(clippy::result_large_err)]
fn serve_one(number: usize, stream: TcpStream, seen: &Mutex<Seen>) {
    let choose = |request: &Request, mut response: Response| {
        seen.lock().expect("nobody panicked").targets.push(request.uri().to_string());
        assert!(request.headers().get("x-user").is_some());
        response.headers_mut().insert("sec-websocket-protocol", "v2".parse().expect("a value"));
        Ok(response)
    };
    let Ok(socket) = tungstenite::accept_hdr(stream, choose) else { return };
    converse(number, socket, seen);
}

/// The server's part of a conversation.
pub(crate) fn converse<S: Read + Write>(number: usize, mut socket: WebSocket<S>, seen: &Mutex<Seen>) {
    let welcome = json!({ "type": "welcome", "session": format!("s{number}") });
    socket.send(Message::text(welcome.to_string())).expect("it is sent");
    socket.send(Message::Ping(b"alive".as_slice().into())).expect("it is sent");
    loop {
        match socket.read() {
            Ok(Message::Text(text)) => {
                let asked: Value = serde_json::from_str(&text).expect("JSON");
                assert_eq!(asked["session"], format!("s{number}"));
                seen.lock().expect("nobody panicked").texts += 1;
                for answer in [json!({ "id": "none" }), json!({ "id": asked["id"], "ok": true })] {
                    socket.send(Message::text(answer.to_string())).expect("it is sent");
                }
            }
            Ok(Message::Binary(bytes)) => seen.lock().expect("nobody panicked").binary_bytes += bytes.len(),
            Ok(Message::Pong(bytes)) => {
                assert_eq!(&bytes[..], b"alive");
                seen.lock().expect("nobody panicked").pongs += 1;
            }
            Ok(Message::Close(frame)) => {
                seen.lock().expect("nobody panicked").closes.push(frame.map(|frame| frame.code.into()));
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// Writes a plan of six conversations with the server at an address.
pub(crate) fn conversations(folder: &Folder, address: &str) -> String {
    folder.write("blob.bin", [0xff; 70_000]);
    folder.write(
        "plan.yaml",
        format!(
            r#"
targets: {{chat: "ws://{address}"}}
run: {{iterations: 6, connections: 2, seed: 3}}
scenarios:
  - steps:
      - websocket: {{open: "/room?n=1", subprotocols: "v2, v1", headers: {{x-user: ann}}}}
        extract: {{version: {{header: sec-websocket-protocol}}}}
      - name: welcome
        websocket: {{receive: {{json: {{/type: welcome}}}}}}
        extract: {{session: {{json: /session}}}}
      - set: {{id: "${{uuid}}"}}
      - name: ask
        websocket:
          send: '{{"id": "${{id}}", "session": "${{session}}", "version": "${{version}}"}}'
          receive: {{json: {{/id: "${{id}}"}}}}
        expect: {{json: {{/ok: "true"}}}}
      - name: tell
        websocket: {{send_file: blob.bin, binary: true}}
      - websocket: {{close: 3001}}
"#
        ),
    )
}

#[test]
fn a_plan_talks_to_a_server_of_tungstenite() {
    let (address, server) = serve(6);
    let folder = Folder::new();
    let plan = conversations(&folder, &address);
    let result = result_of(&format!("run {plan} --no-preflight --quiet -o json"));
    assert_eq!(at(&result, "/accounting/ok"), 30, "{:#}", result["error_examples"]);
    let steps: Vec<&str> =
        result["by_step"].as_array().unwrap().iter().map(|s| s["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["OPEN /room?n=1", "welcome", "ask", "tell", "CLOSE"]);
    check_conversations(&result, &server.join().expect("the server ends"));
}

/// Checks the result of the six conversations against what the server saw of them.
pub(crate) fn check_conversations(result: &Value, seen: &Seen) {
    assert_eq!((at(result, "/websocket/skipped"), at(result, "/websocket/pings")), (&json!(6), &json!(6)));
    assert_eq!(seen.targets, ["/room?n=1"; 6]);
    assert_eq!((seen.texts, seen.binary_bytes, seen.pongs), (6, 6 * 70_000, 6));
    assert_eq!(seen.closes, [Some(3001); 6]);
}

#[test]
fn an_iteration_that_does_not_close_says_goodbye() {
    let (address, server) = serve(3);
    let folder = Folder::new();
    let plan = folder.write(
        "plan.yaml",
        format!(
            "targets: {{chat: 'ws://{address}'}}\nrun: {{iterations: 3, connections: 1}}\nscenarios:\n\
             - steps:\n  - websocket: {{open: /, subprotocols: v2, headers: {{x-user: bob}}}}\n  \
             - websocket: {{receive: {{any: true}}}}\n"
        ),
    );
    let result = result_of(&format!("run {plan} --no-preflight --quiet -o json"));
    assert_eq!(at(&result, "/accounting/ok"), 6, "{:#}", result["error_examples"]);
    let seen = server.join().expect("the server ends");
    // The last one may be left at the end of the run.
    assert_eq!(seen.closes.len(), 3);
    assert!(seen.closes.iter().all(|code| matches!(code, Some(1000 | 1001))), "{seen:?}");
}

/// A client of tungstenite at a sink.
fn client(sink: &Sink) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(&sink.endpoint).expect("a connection");
    tungstenite::client(format!("ws://{}/", sink.endpoint), stream).expect("a handshake").0
}

#[test]
fn tungstenite_is_a_client_of_the_sink() {
    for args in ["--websocket", "--websocket --delay 2ms"] {
        let sink = Sink::start(args);
        let mut socket = client(&sink);
        let messages = [
            Message::text("é"),
            Message::binary(vec![7; 70_000]),
            Message::text(""),
            Message::text("a".repeat(126)),
        ];
        for message in &messages {
            socket.send(message.clone()).expect("it is sent");
        }
        for message in &messages {
            assert_eq!(socket.read().expect("an echo"), *message);
        }
        socket.send(Message::Ping(b"p".as_slice().into())).expect("it is sent");
        assert_eq!(socket.read().expect("a pong"), Message::Pong(b"p".as_slice().into()));
        socket.send(Message::text("last")).expect("it is sent");
        socket.close(Some(CloseFrame { code: CloseCode::Away, reason: "bye".into() })).expect("it is sent");
        assert_eq!(socket.read().expect("an echo"), Message::text("last"));
        let Ok(Message::Close(Some(frame))) = socket.read() else { panic!("no close") };
        assert_eq!(frame.code, CloseCode::Away);
        assert!(matches!(socket.read(), Err(tungstenite::Error::ConnectionClosed)));
        assert_eq!(sink.stop().truth.rows.len(), 6);
    }
}

#[test]
fn a_sink_broadcasts() {
    let sink = Sink::start("--websocket --broadcast --threads 1");
    let mut clients = [client(&sink), client(&sink)];
    for (sender, message) in [(0, Message::text("here")), (1, Message::binary(b"x".to_vec()))] {
        clients[sender].send(message.clone()).expect("it is sent");
        for socket in &mut clients {
            assert_eq!(socket.read().expect("a message"), message);
        }
    }
}

/// A server that answers each request for an upgrade in these words, in which `ACCEPT` is the right proof.
fn answering(words: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                request.extend(byte);
            }
            let request = String::from_utf8_lossy(&request);
            let mut lines = request.lines();
            let key = lines.find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).expect("a key");
            let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
            let words = words.replace("ACCEPT", &accept).replace('\n', "\r\n");
            let _ = stream.write_all(format!("HTTP/1.1 101 Switching\r\n{words}\r\n\r\n").as_bytes());
        }
    });
    address
}

#[test]
fn a_wrong_handshake_is_named_with_what_helps() {
    const UPGRADE: &str = "Connection: Upgrade\nUpgrade: websocket\n";
    let with = |more: &str| -> &'static str { format!("{UPGRADE}{more}").leak() };
    for (words, flags, told, helps) in [
        (with("Sec-WebSocket-Accept: abc"), "", "Sec-WebSocket-Accept", "the key of this request"),
        (
            with("Sec-WebSocket-Accept: ACCEPT\nSec-WebSocket-Extensions: permessage-deflate"),
            "",
            "`permessage-deflate`, which was not offered",
            "--compress",
        ),
        (
            with("Sec-WebSocket-Accept: ACCEPT\nSec-WebSocket-Extensions: x-own"),
            "-H Sec-WebSocket-Extensions:x-own",
            "`x-own`",
            "permessage-deflate",
        ),
        (
            with(
                "Sec-WebSocket-Accept: ACCEPT\n\
                 Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=10",
            ),
            "-H Sec-WebSocket-Extensions:permessage-deflate",
            "wrong `client_max_window_bits`",
            "--compress",
        ),
        (
            with("Sec-WebSocket-Accept: ACCEPT\nSec-WebSocket-Protocol: chat"),
            "",
            "subprotocol `chat`",
            "--subprotocol",
        ),
        ("Connection: Upgrade\nUpgrade: h2c", "", "not to websocket", "the path of a WebSocket"),
    ] {
        let finished = run(&format!("ws ws://{}/chat {flags} --quiet -n 1 -c 1", answering(words)));
        assert_eq!(finished.code, Some(1), "{words}: {}", finished.stderr);
        let shown = finished.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("opens no WebSocket: ") && shown.contains(told), "{words}: {shown}");
        let (_, hint) = shown.split_once("hint: ").expect("a hint");
        assert!(hint.contains(helps) && !hint.contains("TLS"), "{words}: {hint}");
    }
}
