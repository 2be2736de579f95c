//! A client and a server that are connected by two vectors.

use plimsoll_wire::tls::{ClientConfig, Received, ServerConfig, Session, TlsError};

/// One side and its received bytes.
pub(crate) struct Side {
    pub(crate) session: Session,
    pub(crate) plain: Vec<u8>,
    /// Times that the end of the handshake was announced.
    pub(crate) finished: u32,
    pub(crate) closed: bool,
}

/// The side that gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Client,
    Server,
}

pub(crate) struct Link {
    pub(crate) client: Side,
    pub(crate) server: Side,
    /// Bytes that the receiver is given at once.
    pub(crate) piece: usize,
}

impl Side {
    fn new(session: Session) -> Self {
        Self { session, plain: Vec::new(), finished: 0, closed: false }
    }

    /// Takes ciphertext in pieces and gives the answer.
    pub(crate) fn take(&mut self, bytes: &[u8], piece: usize) -> Result<Vec<u8>, (Vec<u8>, TlsError)> {
        let mut answer = Vec::new();
        for part in bytes.chunks(piece) {
            let received = self.session.receive(part, &mut self.plain);
            self.session.transmit(&mut answer);
            match received {
                Ok(Received { handshake_done_now, closed }) => {
                    self.finished += u32::from(handshake_done_now);
                    self.closed |= closed;
                }
                Err(error) => return Err((answer, error)),
            }
        }
        Ok(answer)
    }
}

impl Link {
    pub(crate) fn new(client: &ClientConfig, server: &ServerConfig, name: &str) -> Self {
        let client = Side::new(Session::client(client, name).unwrap());
        Self { client, server: Side::new(Session::server(server).unwrap()), piece: usize::MAX }
    }

    /// Hands bytes to and fro until both sides are silent, the client's first.
    pub(crate) fn settle(&mut self) -> Result<(), (Peer, TlsError)> {
        let mut to_server = Vec::new();
        self.client.session.transmit(&mut to_server);
        self.exchange(to_server)
    }

    /// Delivers bytes of the client, and then the answers.
    pub(crate) fn exchange(&mut self, mut to_server: Vec<u8>) -> Result<(), (Peer, TlsError)> {
        while !to_server.is_empty() {
            let to_client =
                self.server.take(&to_server, self.piece).map_err(|(_, error)| (Peer::Server, error))?;
            to_server =
                self.client.take(&to_client, self.piece).map_err(|(_, error)| (Peer::Client, error))?;
        }
        Ok(())
    }

    /// A link whose handshake is over.
    pub(crate) fn established(client: &ClientConfig, server: &ServerConfig, name: &str) -> Self {
        let mut link = Self::new(client, server, name);
        link.settle().unwrap();
        assert!(!link.client.session.is_handshaking() && !link.server.session.is_handshaking());
        link
    }
}
