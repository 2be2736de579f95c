//! The cases of the Autobahn test suite for WebSocket, as a table: with a raw
//! client at the sink, and with a raw server that our client talks to. It is a client of echo for that, by a
//! plan with a loop.
//!
//! The suite itself runs against both by `bench/scripts/autobahn_suite.py`.

mod table;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::backends::on_each;
use crate::process::{Folder, run};
use crate::sink::Sink;
use table::{Answer, Case, End, Frame, cases};

/// Much longer than anything here takes: a peer that is silent for so long hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The key of RFC 6455 section 1.3, and what answers it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The side of a connection that the test plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// A frame that came.
#[derive(Debug)]
struct Came {
    first: u8,
    is_masked: bool,
    payload: Vec<u8>,
}

/// One end of a WebSocket, byte by byte: it knows no more of the protocol than the lengths of frames.
struct Peer {
    stream: TcpStream,
    side: Side,
    answers: Vec<Answer>,
    /// The close frame that came: its status.
    closed: Option<Option<u16>>,
}

impl Peer {
    fn new(stream: TcpStream, side: Side) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, side, answers: Vec::new(), closed: None })
    }

    /// Reads up to the empty line behind a head.
    fn read_head(&mut self) -> io::Result<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        Ok(String::from_utf8_lossy(&head).into_owned())
    }

    /// Opens a WebSocket as a client.
    fn connect(address: &str) -> io::Result<Self> {
        let mut peer = Self::new(TcpStream::connect(address)?, Side::Client)?;
        let request = format!(
            "GET / HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        peer.stream.write_all(request.as_bytes())?;
        let head = peer.read_head()?;
        assert!(head.starts_with("HTTP/1.1 101 ") && head.contains(ACCEPT), "{head}");
        Ok(peer)
    }

    /// Opens one as a server.
    fn accept(stream: TcpStream) -> io::Result<Self> {
        let mut peer = Self::new(stream, Side::Server)?;
        let head = peer.read_head()?;
        assert!(head.contains(KEY), "{head}");
        let response = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
        );
        peer.stream.write_all(response.as_bytes())?;
        Ok(peer)
    }

    fn write(&mut self, frames: &[Frame], chop: usize) -> io::Result<()> {
        let mut bytes = Vec::new();
        for Frame { first, length, payload } in frames {
            let mask_bit = if self.side == Side::Client { 0x80 } else { 0 };
            bytes.push(*first);
            match length {
                0..126 => bytes.push(mask_bit | *length as u8),
                126..65_536 => {
                    bytes.push(mask_bit | 126);
                    bytes.extend((*length as u16).to_be_bytes());
                }
                _ => {
                    bytes.push(mask_bit | 127);
                    bytes.extend((*length as u64).to_be_bytes());
                }
            }
            match self.side {
                Side::Server => bytes.extend(payload),
                Side::Client => {
                    const MASK: [u8; 4] = [0x9a, 0x01, 0xf3, 0x5c];
                    bytes.extend(MASK);
                    bytes
                        .extend(payload.iter().zip(MASK.into_iter().cycle()).map(|(byte, mask)| byte ^ mask));
                }
            }
        }
        bytes.chunks(chop.min(1 << 20)).try_for_each(|piece| self.stream.write_all(piece))
    }

    /// The next frame; `None` at the end of the connection.
    fn read(&mut self) -> io::Result<Option<Came>> {
        let mut head = [0; 2];
        match self.stream.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if is_end(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        let length = match head[1] & 0x7f {
            126 => {
                let mut bytes = [0; 2];
                self.stream.read_exact(&mut bytes)?;
                u64::from(u16::from_be_bytes(bytes))
            }
            127 => {
                let mut bytes = [0; 8];
                self.stream.read_exact(&mut bytes)?;
                u64::from_be_bytes(bytes)
            }
            length => u64::from(length),
        };
        let is_masked = head[1] & 0x80 != 0;
        let mut mask = [0; 4];
        if is_masked {
            self.stream.read_exact(&mut mask)?;
        }
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload)?;
        payload.iter_mut().zip(mask.into_iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        Ok(Some(Came { first: head[0], is_masked, payload }))
    }

    /// Reads until that many answers have come, or a close frame, or the end of the connection.
    fn read_until(&mut self, answers: usize) -> Result<(), String> {
        while self.answers.len() < answers && self.closed.is_none() {
            let Some(came) = self.read().map_err(|error| format!("while it is read: {error}"))? else {
                return Ok(());
            };
            if came.is_masked != (self.side == Side::Server) {
                return Err(format!("masked: {}", came.is_masked));
            }
            let Came { first, payload, .. } = came;
            match first {
                0x81 => self.answers.push(Answer::Text(payload)),
                0x82 => self.answers.push(Answer::Binary(payload)),
                0x8a => self.answers.push(Answer::Pong(payload)),
                0x88 => self.closed = Some(payload.first_chunk().map(|code| u16::from_be_bytes(*code))),
                _ => return Err(format!("a frame that begins with {first:#x}")),
            }
        }
        Ok(())
    }

    /// Plays a case. `strict`: answers that were due before a violation must have come.
    fn play(mut self, case: &Case, strict: bool) -> Result<(), String> {
        let breaks = matches!(case.end, End::Failed(_));
        for round in 1..=case.rounds {
            match self.write(&case.frames, case.chop) {
                // The other side may have left in the middle of it.
                Err(_) if breaks || matches!(case.end, End::Closed(_)) => {}
                Err(error) => return Err(format!("while it is written: {error}")),
                Ok(()) => {}
            }
            let due = round * case.answers.len();
            self.read_until(if case.end == End::Close { due } else { usize::MAX })?;
        }
        if case.end == End::Close {
            self.write(&[Frame { first: 0x88, length: 2, payload: vec![3, 0xe8] }], usize::MAX)
                .map_err(|error| format!("while it is closed: {error}"))?;
            self.read_until(usize::MAX)?;
        }
        let due: Vec<&Answer> = std::iter::repeat_n(&case.answers, case.rounds).flatten().collect();
        let came: Vec<&Answer> = self.answers.iter().collect();
        if came != due && (strict || !breaks || !due.starts_with(&came)) {
            return Err(format!("{} answers, and {} are due: {}", came.len(), due.len(), shown(&came)));
        }
        let allowed: &[u16] = match case.end {
            End::Close => &[1000],
            End::Closed(codes) | End::Failed(codes) => codes,
        };
        match self.closed {
            None if breaks => {}
            None => return Err("no close frame".to_owned()),
            Some(Some(code)) if !allowed.contains(&code) => return Err(format!("closed with {code}")),
            Some(_) => {}
        }
        if self.side == Side::Server && !breaks {
            // It is the server who ends the connection.
            return Ok(());
        }
        match self.read() {
            Ok(None) => Ok(()),
            Ok(Some(came)) => Err(format!("a frame after the end: {:#x}", came.first)),
            Err(error) => Err(format!("the connection does not end: {error}")),
        }
    }
}

/// The other side has gone, perhaps before it had read everything.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

fn shown(answers: &[&Answer]) -> String {
    let mut text = format!("{answers:?}");
    text.truncate(300);
    text
}

#[test]
fn the_table_has_all_numbers_once() {
    let mut groups = BTreeMap::<String, usize>::new();
    let mut numbers = Vec::new();
    for case in cases() {
        let group = case.number.split('.').next().expect("a number").to_owned();
        *groups.entry(group).or_default() += 1;
        numbers.push(case.number);
    }
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
    let groups: Vec<(&str, usize)> = groups.iter().map(|(group, count)| (&**group, *count)).collect();
    let of_the_suite =
        [("1", 16), ("10", 1), ("2", 11), ("3", 7), ("4", 10), ("5", 20), ("6", 145), ("7", 37), ("9", 54)];
    assert_eq!(groups, of_the_suite);
}

#[test]
fn the_sink_passes_the_cases_of_the_autobahn_test_suite() {
    for args in ["--websocket --threads 1", "--websocket --delay 1us"] {
        let sink = Sink::start(args);
        let mut failed = Vec::new();
        for case in cases() {
            let played = match Peer::connect(&sink.endpoint) {
                Ok(peer) => peer.play(&case, true),
                Err(error) => Err(error.to_string()),
            };
            failed.extend(played.err().map(|error| format!("{}: {error}", case.number)));
        }
        assert!(failed.is_empty(), "{args}\n{}\n", failed.join("\n"));
    }
}

/// A server that plays one of these cases on each connection, until `over` is set. Returns the numbers of
/// those that failed, each with the reason.
fn serve(listener: &TcpListener, cases: &[&Case], over: &AtomicBool) -> Vec<String> {
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for case in cases {
            let (stream, _) = listener.accept().expect("a connection");
            if over.load(Ordering::Relaxed) {
                failed.lock().expect("nobody panicked").push(format!("{}: no connection", case.number));
                return;
            }
            let failed = &failed;
            scope.spawn(move || {
                let played = match Peer::accept(stream) {
                    Ok(peer) => peer.play(case, false),
                    Err(error) => Err(error.to_string()),
                };
                let error = played.err().map(|error| format!("{}: {error}", case.number));
                failed.lock().expect("nobody panicked").extend(error);
            });
        }
    });
    failed.into_inner().expect("nobody panicked")
}

/// The steps that send every message back, until the server ends it.
const LOOP: &str = "      - set: {message: none}
      - while: exists message
        steps:
          - websocket: {receive: {any: true}}
            extract: {message: {body: true, default: ''}}
          - websocket: {send: '${message}', binary: BINARY}
";

/// The steps that answer one message by the content of a file.
const ONCE: &str = "      - websocket: {receive: {any: true}}
      - websocket: {send_file: message, binary: BINARY}
      - websocket: {receive: {any: true}}
";

/// Plays cases whose messages are all text or all binary, and compares classes of errors.
fn client(backend: &str, own: &[&Case], binary: bool, steps: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (folder, count) = (Folder::new(), own.len());
    if let Some(message) = own[0].message_for_a_file() {
        folder.write("message", message);
    }
    let steps = steps.replace("BINARY", if binary { "true" } else { "false" });
    let plan = format!(
        "targets: {{suite: 'ws://{address}'}}
run: {{iterations: {count}, connections: 4, timeout: 30s}}
scenarios:
  - steps:
      - websocket: {{open: /, headers: {{sec-websocket-key: {KEY}}}}}
{steps}"
    );
    let plan = folder.write("plan.yaml", plan);
    let over = AtomicBool::new(false);
    let (failed, finished) = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, own, &over));
        let finished = run(&format!("run {plan} --no-preflight --quiet -o json --backend {backend}"));
        // Connections that never came are waited for no longer.
        over.store(true, Ordering::Relaxed);
        let _wake_up = TcpStream::connect(&address);
        (server.join().expect("a server that ends"), finished)
    });
    let result: Value = serde_json::from_str(&finished.stdout).expect(&finished.stderr);
    assert!(failed.is_empty(), "{backend}\n{}\n{:#}", failed.join("\n"), result["error_examples"]);
    let broken = own.iter().filter(|case| matches!(case.end, End::Failed(_))).count();
    let expected = [("protocol", broken), ("websocket_closed", count - broken)];
    let expected: BTreeMap<&str, u64> = expected
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| (class, count as u64))
        .collect();
    let counted: BTreeMap<&str, u64> = result["errors"]
        .as_object()
        .expect("classes")
        .iter()
        .filter_map(|(class, count)| Some((&**class, count.as_u64().filter(|count| *count > 0)?)))
        .collect();
    assert_eq!(counted, expected, "{backend}: {:#}", result["error_examples"]);
}

#[test]
fn our_client_passes_the_cases_of_the_autobahn_test_suite() {
    let all = cases();
    let (files, variables): (Vec<&Case>, Vec<&Case>) =
        all.iter().partition(|case| case.message_for_a_file().is_some());
    let (binary, text): (Vec<&Case>, Vec<&Case>) = variables.into_iter().partition(|case| case.is_binary());
    on_each(|backend| {
        client(backend, &text, false, LOOP);
        client(backend, &binary, true, LOOP);
        for case in &files {
            client(backend, &[case], case.is_binary(), ONCE);
        }
    });
}
