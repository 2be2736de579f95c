//! WebSockets of clients that do not read.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use plimsoll_driver::{BackendOptions, Endpoint, KernelBackend};
use plimsoll_targets::sink::service::WebSocket;
use plimsoll_targets::{Service, SinkOptions};

use crate::sink::client::Client;
use crate::sink::{plain, start};

const UPGRADE: &[u8] = b"GET / HTTP/1.1\r\nhost: sink\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Symptom: messages to all clients grew without a bound for those that never sent anything themselves.
#[test]
fn who_only_listens_and_does_not_read_is_cut_off() {
    let service = Service::WebSocket(WebSocket { broadcasts: true });
    let options = SinkOptions { service, ..plain() };
    let sink = start(options, KernelBackend::Epoll(BackendOptions::default()));
    let Endpoint::Tcp(address) = sink.endpoint() else { panic!("it listens on TCP") };
    let mut listener = TcpStream::connect(address).expect("it listens");
    listener.write_all(UPGRADE).expect("it reads");
    let mut answer = [0; 12];
    listener.read_exact(&mut answer).expect("it answers");
    assert_eq!(&answer, b"HTTP/1.1 101");
    let mut client = Client::new();
    let sender = client.connect(sink.endpoint());
    client.send(sender, UPGRADE);
    assert_eq!(client.head_response(sender).status, 101);
    // With a mask of zeros the content is itself.
    let length = 1_u64 << 20;
    let message = [&[0x82, 0xff], &length.to_be_bytes()[..], &[0; 4], &vec![b'x'; length as usize]].concat();
    let sent = (0..200).find(|_| {
        client.send(sender, &message);
        let mut back = 0;
        client.wait_for("the message", |client| {
            back += client.take(sender).len();
            (back == message.len() - 4).then_some(())
        });
        // The error is reported even if there are bytes to read.
        listener.take_error().expect("it is a socket").is_some()
    });
    assert!(sent.is_some(), "200 MiB are kept for a client that reads nothing");
    let report = sink.stop();
    assert_eq!((report.refused, report.connections), (1, 2), "{report:?}");
}
