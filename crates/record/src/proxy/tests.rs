use core::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::{self, Runtime};
use tokio::sync::oneshot;

use super::*;

fn runtime() -> Runtime {
    runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A proxy on a thread of its own.
struct Running {
    address: SocketAddr,
    said: Receiver<String>,
    end: oneshot::Sender<()>,
    thread: JoinHandle<Recording>,
    /// That of the clients.
    runtime: Runtime,
}

impl Running {
    fn start(hosts: &[&str]) -> Self {
        let hosts = Hosts::new(hosts.iter().copied()).expect("names");
        let (say, said) = channel();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let options = Options {
                listen: (Ipv4Addr::LOCALHOST, 0).into(),
                authority: Authority::generate(hosts, clock::unix()).expect("there are random numbers"),
                authorities: None,
                insecure: true,
                most_body: 1 << 20,
            };
            let say = move |text: &str| drop(say.send(text.to_owned()));
            let end = async { drop(ended.await) };
            runtime().block_on(serve(options, Box::new(say), end)).expect("it starts")
        });
        let first = said.recv().expect("it says its address");
        let address = first.strip_prefix("listening on ").and_then(|address| address.parse().ok());
        Self { address: address.expect("an address"), said, end, thread, runtime: runtime() }
    }

    fn connect(&self) -> TcpStream {
        self.runtime.block_on(TcpStream::connect(self.address)).expect("it listens")
    }

    /// Sends a text, and reads up to the end.
    fn send(&self, stream: &mut TcpStream, text: &str) -> String {
        let mut answer = String::new();
        let exchange = async {
            stream.write_all(text.as_bytes()).await?;
            stream.read_to_string(&mut answer).await
        };
        self.runtime.block_on(exchange).expect("it reads and answers");
        answer
    }

    /// Everything up to the end of what is answered to one request.
    fn ask(&self, request: &str) -> String {
        self.send(&mut self.connect(), &format!("{request}\r\nconnection: close\r\n\r\n"))
    }

    /// Opens a tunnel, sends a text that is no TLS, and returns the head of the answer and what comes of it.
    fn through_a_tunnel(&self, to: SocketAddr) -> (String, String) {
        let mut stream = self.connect();
        let head = self.runtime.block_on(async {
            let request = format!("CONNECT {to} HTTP/1.1\r\nhost: {to}\r\n\r\n");
            stream.write_all(request.as_bytes()).await.expect("it reads");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.expect("a head"));
            }
            head
        });
        let answer = self.send(&mut stream, "no TLS");
        (String::from_utf8(head).expect("text"), answer)
    }

    /// Ends it: what it recorded and said.
    fn end(self) -> (Recording, Vec<String>) {
        self.end.send(()).expect("it runs");
        (self.thread.join().expect("it does not panic"), self.said.iter().collect())
    }
}

/// A server that answers every connection with what it was sent, as a body.
fn server() -> SocketAddr {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        runtime().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
            tell.send(listener.local_addr().expect("an address")).expect("the test waits");
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let length = stream.read(&mut request).await.unwrap_or_default();
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(&[head.as_bytes(), &request[..length]].concat()).await;
            }
        });
    });
    told.recv().expect("it listens")
}

#[test]
fn the_proxy_is_no_way_to_itself() {
    let running = Running::start(&[]);
    let port = running.address.port();
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]", "[::]"] {
        let answer = running.ask(&format!("GET http://{host}:{port}/ HTTP/1.1\r\nhost: {host}:{port}"));
        assert!(answer.starts_with("HTTP/1.1 508 "), "{host}: {answer}");
        let answer = running.ask(&format!("CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}"));
        assert!(answer.starts_with("HTTP/1.1 508 "), "{host}: {answer}");
    }
    // As a page of a browser that does not use the proxy asks for it.
    let answer = running.ask("GET /?a=1 HTTP/1.1\r\nhost: a.test");
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("text/plain"), "{answer}");
    let (recording, said) = running.end();
    assert!(recording.is_empty(), "{recording:?}");
    assert_eq!(said.iter().filter(|line| line.contains("this is the proxy itself")).count(), 10, "{said:?}");
}

#[test]
fn hosts_that_are_not_named_pass_through_unread_and_are_told_once() {
    let running = Running::start(&["recorded.test"]);
    let server = server();
    for _ in 0..2 {
        let (head, answer) = running.through_a_tunnel(server);
        assert!(head.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nno TLS"), "{head}{answer}");
        let answer =
            running.ask(&format!("GET http://{server}/x HTTP/1.1\r\nhost: {server}\r\naccept-encoding: br"));
        assert!(answer.contains("GET /x HTTP/1.1") && answer.contains("accept-encoding: br"), "{answer}");
    }
    let (recording, said) = running.end();
    assert!(recording.is_empty(), "{recording:?}");
    assert_eq!(said, ["passed through: 127.0.0.1"]);
}

#[test]
fn a_host_that_is_named_is_recorded() {
    let running = Running::start(&["127.0.0.1"]);
    let server = server();
    let answer = running.ask(&format!("GET http://{server}/x HTTP/1.1\r\nhost: {server}"));
    assert!(answer.contains("GET /x HTTP/1.1") && answer.contains("accept-encoding: identity"), "{answer}");
    // Its tunnel has our TLS in it.
    let (_, answer) = running.through_a_tunnel(server);
    assert!(!answer.contains("no TLS"), "{answer}");
    let (recording, said) = running.end();
    assert_eq!(recording.len(), 1);
    assert!(said[0].starts_with("200 GET http://127.0.0.1:"), "{said:?}");
    assert!(said[1].starts_with("127.0.0.1: not recorded: no TLS in the tunnel"), "{said:?}");
}

#[test]
fn the_number_of_connections_is_bounded() {
    let running = Running::start(&[]);
    let mut all: Vec<TcpStream> = (0..MOST_CONNECTIONS).map(|_| running.connect()).collect();
    let mut one_more = running.connect();
    // It is closed, and the others are not.
    assert!(matches!(running.runtime.block_on(one_more.read(&mut [0])), Ok(0) | Err(_)));
    let last = all.last_mut().expect("there are some");
    let mut front = [0; 12];
    running.runtime.block_on(async {
        last.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("it reads");
        last.read_exact(&mut front).await.expect("it answers");
    });
    assert_eq!(&front, b"HTTP/1.1 400");
    running.end();
}

#[test]
fn what_is_told_of_hosts_is_bounded() {
    let running = Running::start(&["recorded.test"]);
    let server = server();
    // Each address of loopback is a host of its own, and the server is on one of them alone.
    for index in 0..MOST_HOSTS + 10 {
        let host = Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + 1 + index as u32);
        let to = format!("{host}:{}", server.port());
        running.ask(&format!("GET http://{to}/ HTTP/1.1\r\nhost: {to}"));
    }
    let (_, said) = running.end();
    let told: Vec<&String> = said.iter().filter(|line| line.starts_with("passed through")).collect();
    assert_eq!(told.len(), MOST_HOSTS);
    assert!(told[MOST_HOSTS - 1].ends_with("further hosts are not told"), "{}", told[MOST_HOSTS - 1]);
}
