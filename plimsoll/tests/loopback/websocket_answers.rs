//! Messages that are sent while a user thinks or awaits something else: answers to the heartbeats of the
//! usual protocols, from a server that says nothing more until each is answered, and heartbeats of the
//! client.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::loopback::process::Folder;
use crate::loopback::websocket::{at, result_of};
use crate::loopback::websocket_http2::Server;

/// Sessions of each load, and heartbeats while the user thinks.
const SESSIONS: u64 = 3;
const THINKING: u64 = 20;

/// The heartbeat of a protocol: a rule of the plan, what the server sends as the nth, and what has to come
/// back.
struct Heartbeat {
    name: &'static str,
    rule: Value,
    ask: fn(u64) -> Message,
    answer: fn(u64) -> Message,
}

fn heartbeats() -> Vec<Heartbeat> {
    vec![
        Heartbeat {
            name: "Socket.IO",
            rule: json!({"receive": "2", "send": "3"}),
            ask: |_| Message::text("2"),
            answer: |_| Message::text("3"),
        },
        Heartbeat {
            name: "SignalR",
            rule: json!({"receive": "{\"type\":6}\u{1e}", "send": "{\"type\":6}\u{1e}"}),
            ask: |_| Message::text("{\"type\":6}\u{1e}"),
            answer: |_| Message::text("{\"type\":6}\u{1e}"),
        },
        Heartbeat {
            name: "STOMP",
            rule: json!({"receive": {"equals": "\n"}, "send": "\n"}),
            ask: |_| Message::text("\n"),
            answer: |_| Message::text("\n"),
        },
        Heartbeat {
            name: "graphql-ws",
            rule: json!({"receive": {"json": {"/type": "ping"}}, "send": r#"{"type":"pong"}"#}),
            ask: |number| Message::text(json!({"type": "ping", "payload": number}).to_string()),
            answer: |_| Message::text(r#"{"type":"pong"}"#),
        },
        Heartbeat {
            name: "Phoenix",
            rule: json!({
                "receive": {"json": {"/3": "who"}},
                "extract": {"reference": {"json": "/1"}},
                "send": r#"["1","${reference}","room:1","${user}",{}]"#,
            }),
            ask: |number| Message::text(format!(r#"["1","{number}","room:1","who",{{}}]"#)),
            answer: |number| Message::text(format!(r#"["1","{number}","room:1","ann",{{}}]"#)),
        },
        Heartbeat {
            name: "binary",
            rule: json!({
                "receive": {"starts": "p", "regex": "^ping"},
                "send_file": "pong.bin",
                "binary": true,
            }),
            ask: |number| Message::binary(format!("ping{number}").into_bytes()),
            answer: |_| Message::binary(vec![0xff, 0x00]),
        },
    ]
}

/// Sends heartbeats, each behind the answer to the one before. Other messages are kept.
fn beat<S: Read + Write>(
    socket: &mut WebSocket<S>,
    of: &Heartbeat,
    numbers: std::ops::Range<u64>,
    kept: &mut VecDeque<Message>,
) {
    for number in numbers {
        socket.send((of.ask)(number)).expect("it is sent");
        loop {
            let message = socket.read().unwrap_or_else(|error| panic!("{}, {number}: {error}", of.name));
            if message == (of.answer)(number) {
                break;
            }
            kept.push_back(message);
        }
    }
}

/// The server's part: heartbeats while the user thinks, while it awaits an answer, and once more. Returns
/// what the user has sent beside answers to them.
fn converse<S: Read + Write>(socket: &mut WebSocket<S>, of: &Heartbeat) -> Vec<Message> {
    let mut kept = VecDeque::new();
    beat(socket, of, 0..THINKING, &mut kept);
    if kept.is_empty() {
        kept.push_back(socket.read().expect("a question"));
    }
    beat(socket, of, THINKING..THINKING + 1, &mut kept);
    for message in ["noise", "answer"] {
        socket.send(Message::text(message)).expect("it is sent");
    }
    beat(socket, of, THINKING + 1..THINKING + 2, &mut kept);
    socket.send(Message::text("bye")).expect("it is sent");
    while let Ok(message) = socket.read() {
        kept.push_back(message);
    }
    kept.into_iter().filter(|message| !message.is_close()).collect()
}

/// A server over HTTP/1.1.
fn serve(of: Arc<Heartbeat>, said: Sender<Vec<Message>>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let server = std::thread::spawn(move || {
        let accept = |_| {
            let (stream, _) = listener.accept().expect("a connection");
            let (of, said) = (Arc::clone(&of), said.clone());
            std::thread::spawn(move || {
                let mut socket = tungstenite::accept(stream).expect("a handshake");
                said.send(converse(&mut socket, &of)).expect("the test listens");
            })
        };
        let all: Vec<_> = (0..SESSIONS).map(accept).collect();
        all.into_iter().for_each(|one| one.join().expect("a conversation"));
    });
    (address, server)
}

/// Writes a plan whose sessions make these steps, and returns the name of its file.
fn written(folder: &Folder, address: &str, steps: &Value) -> String {
    let plan = json!({
        "targets": {"chat": format!("ws://{address}")},
        "run": {"iterations": SESSIONS, "connections": SESSIONS},
        "variables": {"user": "ann"},
        "scenarios": [{"steps": steps}],
    });
    folder.write("plan.json", plan.to_string())
}

fn plan(folder: &Folder, of: &Heartbeat, address: &str) -> String {
    folder.write("pong.bin", [0xff, 0x00]);
    let steps = json!([
        {"websocket": {"open": "/", "answer": [of.rule], "subprotocols": "v2", "headers": {"x-user": "ann"}}},
        {"think": "30ms"},
        {"websocket": {"send": "question", "receive": "answer"}},
        {"think": "10ms"},
        {"websocket": {"receive": {"contains": "by"}}},
        {"websocket": {"close": 1000}},
    ]);
    written(folder, address, &steps)
}

fn check(of: &Heartbeat, version: &str, result: &Value, said: &mut dyn Iterator<Item = Vec<Message>>) {
    let name = format!("{} {version}", of.name);
    assert_eq!(at(result, "/accounting/ok"), 4 * SESSIONS, "{name}: {:#}", result["error_examples"]);
    let count = |key: &str| at(result, &format!("/websocket/{key}")).as_u64().expect("a count");
    // A heartbeat for each session and time, noise, an answer and a farewell.
    let beats = SESSIONS * (THINKING + 2);
    assert_eq!((count("answered"), count("messages_received")), (beats, beats + 3 * SESSIONS), "{name}");
    assert_eq!((count("messages_sent"), count("skipped")), (beats + SESSIONS, SESSIONS), "{name}");
    for _ in 0..SESSIONS {
        assert_eq!(said.next(), Some(vec![Message::text("question")]), "{name}");
    }
}

#[test]
fn heartbeats_are_answered_whatever_the_user_does() {
    for of in heartbeats() {
        let of = Arc::new(of);
        let folder = Folder::new();
        let (sender, said) = channel();
        let (address, server) = serve(Arc::clone(&of), sender);
        let file = plan(&folder, &of, &address);
        let result = result_of(&format!("run {file} --no-preflight --quiet -o json"));
        server.join().expect("conversations");
        check(&of, "over HTTP/1.1", &result, &mut said.iter());

        let (sender, said) = channel();
        let sender = Mutex::new(sender);
        let of_server = Arc::clone(&of);
        let server = Server::talking(
            200,
            Arc::new(move |_, mut socket, _| {
                let all = converse(&mut socket, &of_server);
                sender.lock().expect("nobody panicked").send(all).expect("the test listens");
            }),
        );
        let file = plan(&folder, &of, &server.address);
        let result = result_of(&format!("run {file} --http2 --no-preflight --quiet -o json"));
        check(&of, "over HTTP/2", &result, &mut said.iter());
    }
}

/// The heartbeat of Phoenix, whose servers close a connection on which the client says nothing.
const BEAT: &str = r#"[null,"ann","phoenix","heartbeat",{}]"#;

/// The server's part: it says something after some heartbeats, twice, and returns the number of all.
fn await_beats<S: Read + Write>(socket: &mut WebSocket<S>) -> u64 {
    let mut beats = 0;
    while let Ok(message) = socket.read() {
        if message.is_close() {
            continue;
        }
        assert_eq!(message, Message::text(BEAT));
        beats += 1;
        let reply = r#"[null,"ann","phoenix","phx_reply",{"status":"ok"}]"#;
        // The client may have said goodbye.
        let _ = socket.send(Message::text(reply));
        if beats == 3 || beats == 8 {
            socket.send(Message::text("enough")).expect("it is sent");
        }
    }
    beats
}

#[test]
fn heartbeats_are_sent_whatever_the_user_does() {
    let plan = |folder: &Folder, address: &str| {
        let heartbeat = json!({"every": "2ms", "send": r#"[null,"${user}","phoenix","heartbeat",{}]"#});
        let steps = json!([
            {"websocket": {
                "open": "/", "heartbeat": heartbeat, "answer": {"receive": {"json": {"/2": "phoenix"}}},
                "subprotocols": "v2", "headers": {"x-user": "ann"},
            }},
            {"websocket": {"receive": {"any": true}}},
            {"think": "5ms"},
            {"websocket": {"receive": {"any": true}}},
            {"websocket": {"close": 1000}},
        ]);
        written(folder, address, &steps)
    };
    let check = |version: &str, result: &Value, beats: &mut dyn Iterator<Item = u64>| {
        assert_eq!(at(result, "/accounting/ok"), 4 * SESSIONS, "{version}: {:#}", result["error_examples"]);
        let beats: u64 = (0..SESSIONS).filter_map(|_| beats.next()).sum();
        assert!(beats >= 8 * SESSIONS, "{version}: {beats}");
        assert_eq!(at(result, "/websocket/messages_sent"), beats, "{version}");
        assert_eq!(at(result, "/websocket/bytes_sent"), beats * (6 + BEAT.len() as u64), "{version}");
        assert_eq!(at(result, "/websocket/skipped"), 0, "{version}");
    };
    let (sender, beats) = channel();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut socket = tungstenite::accept(stream).expect("a handshake");
                sender.send(await_beats(&mut socket)).expect("the test listens");
            });
        }
    });
    let folder = Folder::new();
    let file = plan(&folder, &address);
    let result = result_of(&format!("run {file} --no-preflight --quiet -o json"));
    check("over HTTP/1.1", &result, &mut beats.iter());

    let (sender, beats) = channel();
    let sender = Mutex::new(sender);
    let conversation = move |_, mut socket: WebSocket<std::os::unix::net::UnixStream>, _: &Mutex<_>| {
        let all = await_beats(&mut socket);
        sender.lock().expect("nobody panicked").send(all).expect("the test listens");
    };
    let server = Server::talking(200, Arc::new(conversation));
    let file = plan(&folder, &server.address);
    let result = result_of(&format!("run {file} --http2 --no-preflight --quiet -o json"));
    at(&result, "/websocket/messages_sent");
    assert_eq!(at(&result, "/accounting/ok"), 4 * SESSIONS, "{:#}", result["error_examples"]);
    let beats: u64 = beats.iter().take(SESSIONS as usize).sum();
    assert_eq!(at(&result, "/websocket/messages_sent"), beats);
}
