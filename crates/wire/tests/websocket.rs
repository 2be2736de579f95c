//! WebSocket: our reader and writer against those of `tungstenite`, and what is refused.

mod compression;
mod oracle;
mod violations;

use plimsoll_wire::websocket::{MessageReader, Received, Role, WebSocketError};

/// Something that came, as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
}

/// Reads pieces of a connection.
pub(crate) fn read(role: Role, pieces: &[&[u8]], limit: usize) -> (Vec<Told>, Option<WebSocketError>) {
    let mut reader = MessageReader::new(role, limit);
    let (mut told, mut into) = (Vec::new(), b"before".to_vec());
    for piece in pieces {
        let mut input = *piece;
        loop {
            match reader.next(&mut input, &mut into) {
                Ok(Some(received)) => told.push(value(received, &reader, &mut into)),
                Ok(None) => break,
                Err(error) => return (told, Some(error)),
            }
        }
        assert!(input.is_empty());
    }
    (told, None)
}

fn value(received: Received, reader: &MessageReader, into: &mut Vec<u8>) -> Told {
    let control = || reader.control().to_vec();
    match received {
        Received::Message { binary, length } => {
            let message = into.split_off(6);
            assert_eq!(message.len(), length);
            if binary {
                Told::Binary(message)
            } else {
                Told::Text(String::from_utf8(message).expect("UTF-8"))
            }
        }
        Received::Ping => Told::Ping(control()),
        Received::Pong => Told::Pong(control()),
        Received::Close { code } => Told::Close(code, reader.close_reason().to_owned()),
    }
}
