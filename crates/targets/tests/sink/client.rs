//! The client of the tests, and its connections with TLS.

use plimsoll_driver::Endpoint;
use plimsoll_testkit::client::Layer;
pub(crate) use plimsoll_testkit::client::{Client, End, Response};
use plimsoll_wire::tls::{ClientConfig, Session};

/// TLS between a socket and a test.
#[derive(Debug)]
struct Tls(Session);

impl Layer for Tls {
    fn receive(&mut self, bytes: &[u8], inbox: &mut Vec<u8>) -> bool {
        self.0.receive(bytes, inbox).unwrap().closed
    }

    fn send(&mut self, content: &[u8], out: &mut Vec<u8>) {
        self.0.send(content, out);
    }

    fn transmit(&mut self, out: &mut Vec<u8>) {
        self.0.transmit(out);
    }

    fn is_ready(&self) -> bool {
        !self.0.is_handshaking()
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.0.alpn()
    }
}

/// Opens a connection with TLS.
pub(crate) fn connect_tls(client: &mut Client, to: &Endpoint, config: &ClientConfig) -> usize {
    client.connect_over(to, Box::new(Tls(Session::client(config, "localhost").unwrap())))
}
