//! The fault proxy between a client and a server with given answers.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use plimsoll_cluster::fault::Impairment;
use plimsoll_cluster::proxy::{LinkName, Proxy};
use plimsoll_core::Nanos;
use plimsoll_system::clock;

/// Time limit of a test: one that waits longer hangs.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes that pass at all usually do so within this time; later ones can only make a test weaker.
const MOMENT: Duration = Duration::from_millis(50);

/// A server that echoes, and a link to it.
struct Stage {
    proxy: Proxy,
    port: u16,
    /// Error, if any, with which each connection to the server ended.
    ends: Receiver<Option<ErrorKind>>,
}

impl Stage {
    fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback works");
        let to = listener.local_addr().expect("loopback works").port();
        let (send, ends) = channel();
        std::thread::spawn(move || {
            for accepted in listener.incoming().map_while(Result::ok) {
                let send = send.clone();
                std::thread::spawn(move || send.send(echo(accepted)));
            }
        });
        let mut proxy = Proxy::new();
        let name = LinkName { from: None, to: 0, port: "http".to_owned() };
        let port = proxy.open(name, 0, to, 1).expect("loopback works");
        Self { proxy, port, ends }
    }

    fn client(&self) -> TcpStream {
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("loopback works");
        client.set_read_timeout(Some(PATIENCE)).expect("loopback works");
        client
    }

    fn begin(&self, impairment: Impairment) {
        assert_eq!(self.proxy.begin(7, impairment, |_| true), 1);
    }
}

/// Echoes the input; returns how that ended.
fn echo(mut stream: TcpStream) -> Option<ErrorKind> {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return None,
            Ok(length) => stream.write_all(&buffer[..length]).ok()?,
            Err(error) => return Some(error.kind()),
        }
    }
}

/// Sends a text and reads as much back.
fn asked(client: &mut TcpStream, text: &str) -> String {
    client.write_all(text.as_bytes()).expect("loopback works");
    let mut answer = vec![0; text.len()];
    client.read_exact(&mut answer).expect("loopback works");
    String::from_utf8(answer).expect("loopback works")
}

/// Returns `true` if nothing arrives for a moment.
fn is_silent(client: &mut TcpStream) -> bool {
    client.set_read_timeout(Some(MOMENT)).expect("loopback works");
    let read = client.read(&mut [0; 1]);
    client.set_read_timeout(Some(PATIENCE)).expect("loopback works");
    matches!(read, Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

#[test]
fn without_a_fault_everything_passes_both_ways_and_ends_are_told() {
    let stage = Stage::new();
    let mut client = stage.client();
    assert_eq!(asked(&mut client, "hello"), "hello");
    let large = "x".repeat(1 << 20);
    let mut writer = client.try_clone().unwrap();
    let sent = large.clone();
    let writing = std::thread::spawn(move || writer.write_all(sent.as_bytes()).unwrap());
    let mut answer = vec![0; large.len()];
    client.read_exact(&mut answer).unwrap();
    writing.join().unwrap();
    assert_eq!(answer, large.as_bytes());
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(stage.ends.recv_timeout(PATIENCE).unwrap(), None);
}

#[test]
fn what_is_sent_into_a_cut_comes_when_it_is_over_and_nothing_before() {
    let stage = Stage::new();
    let mut old = stage.client();
    assert_eq!(asked(&mut old, "a"), "a");
    stage.begin(Impairment::Cut);
    let mut new = stage.client();
    for client in [&mut old, &mut new] {
        client.write_all(b"b").unwrap();
        assert!(is_silent(client));
    }
    stage.proxy.end(7);
    for client in [&mut old, &mut new] {
        let mut answer = [0];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"b");
    }
}

#[test]
fn a_reset_ends_both_sides_and_refuses_who_comes() {
    let stage = Stage::new();
    let mut old = stage.client();
    assert_eq!(asked(&mut old, "a"), "a");
    stage.begin(Impairment::Reset);
    assert_eq!(old.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(stage.ends.recv_timeout(PATIENCE).unwrap(), Some(ErrorKind::ConnectionReset));
    let is_reset = |stage: &Stage| match TcpStream::connect((Ipv4Addr::LOCALHOST, stage.port)) {
        Ok(mut client) => client.read(&mut [0; 1]).is_err(),
        Err(_) => true,
    };
    assert!(is_reset(&stage));
    stage.proxy.end(7);
    assert_eq!(asked(&mut stage.client(), "b"), "b");
}

#[test]
fn loss_takes_its_share_of_new_connections_and_none_of_the_others() {
    let stage = Stage::new();
    let mut old = stage.client();
    assert_eq!(asked(&mut old, "a"), "a");
    stage.begin(Impairment::Loss(0.5));
    let lost = (0..100).filter(|_| {
        let Ok(mut client) = TcpStream::connect((Ipv4Addr::LOCALHOST, stage.port)) else { return true };
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"x").is_err() || client.read_exact(&mut [0; 1]).is_err()
    });
    // The draws are seeded.
    let lost = lost.count();
    assert!((30..=70).contains(&lost), "{lost} of 100");
    assert_eq!(asked(&mut old, "b"), "b");
}

/// A lower bound of a time holds on a busy machine, too.
#[test]
fn a_delay_holds_up_each_piece_in_both_directions_and_keeps_their_order() {
    let stage = Stage::new();
    let mut client = stage.client();
    assert_eq!(asked(&mut client, "a"), "a");
    let time = Nanos::from_millis(20);
    stage.begin(Impairment::Delay { time, spread: Nanos::from_millis(10) });
    let begun = clock::monotonic();
    let text: String = (0..50).map(|number| format!("{number:04}")).collect();
    assert_eq!(asked(&mut client, &text), text);
    assert!(clock::monotonic() - begun >= time + time);
}

#[test]
fn a_bandwidth_is_not_exceeded() {
    let stage = Stage::new();
    let mut client = stage.client();
    stage.begin(Impairment::Bandwidth(20_000));
    let begun = clock::monotonic();
    let text = "x".repeat(2_000);
    assert_eq!(asked(&mut client, &text), text);
    // The way there; the way back goes on meanwhile.
    assert!(clock::monotonic() - begun >= Nanos::from_millis(100));
}

#[test]
fn who_is_half_open_hears_nothing_while_the_server_has_gone() {
    let stage = Stage::new();
    let mut old = stage.client();
    assert_eq!(asked(&mut old, "a"), "a");
    stage.begin(Impairment::HalfOpen);
    assert_eq!(stage.ends.recv_timeout(PATIENCE).unwrap(), Some(ErrorKind::ConnectionReset));
    let mut new = stage.client();
    for client in [&mut old, &mut new] {
        client.write_all(b"b").unwrap();
        assert!(is_silent(client));
    }
    stage.proxy.end(7);
    assert!(is_silent(&mut old), "what was half open stays so");
    assert_eq!(asked(&mut stage.client(), "c"), "c");
}

#[test]
fn a_server_that_is_not_there_resets_and_a_proxy_that_ends_leaves_nobody_listening() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let mut proxy = Proxy::new();
    let name = LinkName { from: Some(0), to: 1, port: "raft".to_owned() };
    let port = proxy.open(name, 0, closed, 1).unwrap();
    assert_eq!(proxy.port(Some(0), 1, "raft"), Some(port));
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    drop(proxy);
    let refused = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err();
    // The thread of the listener closes it when it is woken.
    assert!(std::iter::repeat_with(refused).take(100_000).any(|refused| refused));
}
