//! Accounts of messages: each that was received was awaited by a step, answered by a rule, or skipped.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::loopback::process::Folder;
use crate::loopback::websocket::{at, result_of};
use crate::loopback::websocket_http2::Server;

/// Sessions of each load, and questions in each.
const SESSIONS: u64 = 2;
const QUESTIONS: u64 = 3;

/// Messages of a server: at the opening, and after each question.
#[derive(Clone, Copy, Debug)]
struct Behavior {
    name: &'static str,
    welcome: &'static [&'static str],
    /// Each so many times.
    answers: &'static [(&'static str, usize)],
    /// Way in which the server ends the connection after the second question: with a close frame or without.
    ends: Option<bool>,
}

const LASTING: Behavior = Behavior { name: "", welcome: &[], answers: &[], ends: None };

const SERVERS: [Behavior; 9] = [
    Behavior { name: "echoes", answers: &[("answer", 1)], ..LASTING },
    Behavior { name: "answers twice", answers: &[("answer", 2)], ..LASTING },
    Behavior { name: "welcomes", welcome: &["hello"], answers: &[("answer", 1)], ..LASTING },
    Behavior { name: "makes noise", answers: &[("noise", 1), ("answer", 1)], ..LASTING },
    Behavior { name: "beats", welcome: &["2"], answers: &[("2", 1), ("answer", 1), ("2", 1)], ..LASTING },
    Behavior { name: "is silent", ..LASTING },
    Behavior { name: "floods", answers: &[("noise", 1_500), ("answer", 1)], ..LASTING },
    Behavior { name: "closes", answers: &[("noise", 1), ("answer", 2)], ends: Some(true), ..LASTING },
    Behavior { name: "drops", answers: &[("noise", 1), ("answer", 2)], ends: Some(false), ..LASTING },
];

fn converse<S: Read + Write>(mut socket: WebSocket<S>, behavior: Behavior) {
    let say = |socket: &mut WebSocket<S>, text: &str| {
        // The client may have gone.
        let _ = socket.send(Message::text(text));
    };
    behavior.welcome.iter().for_each(|text| say(&mut socket, text));
    let mut questions = 0;
    while let Ok(message) = socket.read() {
        if message != Message::text("question") {
            continue;
        }
        questions += 1;
        for (text, times) in behavior.answers {
            (0..*times).for_each(|_| say(&mut socket, text));
        }
        match behavior.ends.filter(|_| questions == 2) {
            None => {}
            Some(true) => drop(socket.close(None)),
            Some(false) => return,
        }
    }
}

/// A server over HTTP/1.1, which lasts as long as the test.
fn serve(behavior: Behavior) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let accepted = tungstenite::accept(stream);
                accepted.into_iter().for_each(|socket| converse(socket, behavior));
            });
        }
    });
    address
}

/// Sessions by their names: the keys beside `open`, and the steps behind it. Steps that await a message are
/// called so that it shows.
fn sessions(server: &Behavior) -> Vec<(&'static str, Value, Value)> {
    // Nothing waits for it but where nothing comes.
    let timeout = if server.answers.is_empty() { "60ms" } else { "10s" };
    let ask = |receive: Value| {
        json!({"repeat": QUESTIONS, "steps": [{
            "name": "await", "websocket": {"send": "question", "receive": receive},
            "timeout": timeout, "on_failure": "continue",
        }]})
    };
    let tell = json!({"repeat": QUESTIONS, "steps": [{"name": "tell", "websocket": {"send": "question"}}]});
    let listen = json!({"repeat": QUESTIONS, "steps": [{
        "name": "await", "websocket": {"receive": {"any": true}},
        "timeout": timeout, "on_failure": "continue",
    }]});
    let close = json!({"name": "close", "websocket": {"close": 1000}});
    let rules = json!([{"receive": "2", "send": "3"}, {"receive": "noise"}]);
    vec![
        ("asks for anything", json!({}), json!([ask(json!({"any": true})), close])),
        ("asks for an answer", json!({}), json!([ask(json!("answer")), close])),
        ("tells", json!({}), json!([tell, close])),
        ("tells, and listens", json!({}), json!([tell, listen, close])),
        ("leaves without a word", json!({}), json!([ask(json!("answer")), tell])),
        // The last beat comes behind the last answer, and is to come before the close.
        ("has rules", json!({"answer": rules}), json!([ask(json!("answer")), {"think": "50ms"}, close])),
        ("tells, thinks and asks", json!({}), json!([tell, {"think": "5ms"}, ask(json!("answer")), close])),
    ]
}

fn plan(folder: &Folder, address: &str, (_, open, steps): &(&str, Value, Value)) -> String {
    let mut open = open.clone();
    open["open"] = json!("/");
    open["subprotocols"] = json!("v2");
    open["headers"] = json!({"x-user": "ann"});
    let mut all = vec![json!({"name": "open", "websocket": open})];
    all.extend(steps.as_array().expect("steps").iter().cloned());
    let plan = json!({
        "targets": {"chat": format!("ws://{address}")},
        "run": {"iterations": SESSIONS, "connections": SESSIONS},
        "scenarios": [{"steps": all}],
    });
    folder.write("plan.json", plan.to_string())
}

/// Messages of a load that are known for certain: received, awaited, answered and skipped, for each session.
fn certain(session: &str, server: &str) -> Option<[u64; 4]> {
    let n = QUESTIONS;
    match (session, server) {
        (_, "is silent") => Some([0; 4]),
        ("asks for anything" | "asks for an answer", "echoes") => Some([n, n, 0, 0]),
        ("asks for anything" | "asks for an answer", "answers twice") => Some([2 * n, n, 0, n]),
        ("asks for an answer", "welcomes") => Some([n + 1, n, 0, 1]),
        ("asks for an answer", "makes noise") => Some([2 * n, n, 0, n]),
        ("asks for an answer", "floods") => Some([1_501 * n, n, 0, 1_500 * n]),
        ("tells", "echoes") => Some([n, 0, 0, n]),
        ("tells", "floods") => Some([1_501 * n, 0, 0, 1_501 * n]),
        ("tells, and listens", "echoes") => Some([n, n, 0, 0]),
        ("tells, and listens", "answers twice") => Some([2 * n, n, 0, n]),
        ("has rules", "beats") => Some([3 * n + 1, n, 2 * n + 1, 0]),
        ("has rules", "floods") => Some([1_501 * n, n, 1_500 * n, 0]),
        _ => None,
    }
}

#[test]
fn each_message_is_awaited_answered_or_skipped() {
    for server in SERVERS {
        let of_http1 = serve(server);
        let of_http2 = Server::talking(200, Arc::new(move |_, socket, _| converse(socket, server)));
        for session in &sessions(&server) {
            for (address, version) in [(&of_http1, ""), (&of_http2.address, "--http2")] {
                let name = format!("a server that {}, a user who {} {version}", server.name, session.0);
                let folder = Folder::new();
                let file = plan(&folder, address, session);
                let result = result_of(&format!("run {file} {version} --no-preflight --quiet -o json"));
                let count = |key: &str| at(&result, &format!("/websocket/{key}")).as_u64().expect("a count");
                let steps = result["by_step"].as_array().expect("steps");
                let awaiting = steps.iter().filter(|step| step["step"] == "await");
                let awaited = awaiting.map(|step| step["ok"].as_u64().expect("a count")).sum::<u64>();
                let counts = [count("messages_received"), awaited, count("answered"), count("skipped")];
                let [received, parts @ ..] = counts;
                assert_eq!(received, parts.iter().sum::<u64>(), "{name}: {counts:?}\n{result:#}");
                if let Some(certain) = certain(session.0, server.name) {
                    assert_eq!(counts, certain.map(|count| SESSIONS * count), "{name}");
                }
            }
        }
    }
}
