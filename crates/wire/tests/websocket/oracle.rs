//! Properties, with `tungstenite` as the other side.

use std::io::{self, Read, Write};

use plimsoll_wire::websocket::{
    ClientHandshake, HandshakeProgress, Opcode, Role, write_close, write_frame, write_upgrade_response,
};
use plimsoll_wire::websocket::{accept_of, key_of};
use proptest::prelude::*;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::Role as OtherRole;
use tungstenite::{Message, WebSocket};

use crate::websocket::{Told, read};

/// A connection whose input is known.
#[derive(Debug, Default)]
struct Recorded {
    input: Vec<u8>,
    read: usize,
    output: Vec<u8>,
}

impl Read for Recorded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(self.input.len() - self.read);
        into[..count].copy_from_slice(&self.input[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

impl Write for Recorded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn message() -> impl Strategy<Value = Told> {
    let bytes = |most: usize| prop::collection::vec(any::<u8>(), 0..most);
    prop_oneof![
        ".{0,200}".prop_map(Told::Text),
        bytes(300).prop_map(Told::Binary),
        prop::sample::select(vec![125, 126, 65_535, 65_536]).prop_map(|length| Told::Binary(vec![9; length])),
        bytes(126).prop_map(Told::Ping),
        bytes(126).prop_map(Told::Pong),
    ]
}

/// Cuts bytes at these places.
fn cut<'b>(bytes: &'b [u8], cuts: &[prop::sample::Index]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    places.push(bytes.len());
    let mut from = 0;
    places.into_iter().map(|to| &bytes[std::mem::replace(&mut from, to)..to]).collect()
}

/// Everything that `tungstenite` reads out of bytes.
fn read_by_other(role: OtherRole, bytes: &[u8]) -> Vec<Told> {
    let stream = Recorded { input: bytes.to_vec(), ..Recorded::default() };
    let mut other = WebSocket::from_raw_socket(stream, role, None);
    let mut told = Vec::new();
    while let Ok(message) = other.read() {
        told.push(match message {
            Message::Text(text) => Told::Text(text.as_str().to_owned()),
            Message::Binary(bytes) => Told::Binary(bytes.to_vec()),
            Message::Ping(bytes) => Told::Ping(bytes.to_vec()),
            Message::Pong(bytes) => Told::Pong(bytes.to_vec()),
            Message::Close(None) => Told::Close(None, String::new()),
            Message::Close(Some(CloseFrame { code, reason })) => {
                Told::Close(Some(code.into()), reason.as_str().to_owned())
            }
            Message::Frame(_) => unreachable!("messages are whole"),
        });
    }
    told
}

proptest! {
    #[test]
    fn messages_of_ours_are_read_by_the_other(
        messages in prop::collection::vec(message(), 0..8),
        parts in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..4),
        mask: Option<[u8; 4]>,
        close in prop::option::of((1000..1004_u16, ".{0,50}")),
    ) {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for told in &messages {
            let (opcode, payload) = match told {
                Told::Text(text) => (Opcode::Text, text.as_bytes()),
                Told::Binary(bytes) => (Opcode::Binary, &bytes[..]),
                Told::Ping(bytes) => (Opcode::Ping, &bytes[..]),
                Told::Pong(bytes) => (Opcode::Pong, &bytes[..]),
                Told::Close(..) => unreachable!("not drawn"),
            };
            if opcode.is_control() {
                write_frame(true, opcode, mask, payload, &mut bytes);
                expected.push(told.clone());
                continue;
            }
            // Fragments, with pings between some of them.
            let place = |(at, ping): &(prop::sample::Index, bool)| (at.index(payload.len() + 1), *ping);
            let mut places: Vec<_> = parts.iter().map(place).collect();
            places.sort_unstable();
            let (mut from, mut first) = (0, true);
            for (to, ping) in places {
                let opcode = if std::mem::take(&mut first) { opcode } else { Opcode::Continuation };
                write_frame(false, opcode, mask, &payload[from..to], &mut bytes);
                from = to;
                if ping {
                    write_frame(true, Opcode::Ping, mask, b"between", &mut bytes);
                    expected.push(Told::Ping(b"between".to_vec()));
                }
            }
            let opcode = if first { opcode } else { Opcode::Continuation };
            write_frame(true, opcode, mask, &payload[from..], &mut bytes);
            expected.push(told.clone());
        }
        if let Some((code, reason)) = &close {
            write_close(Some(*code), reason, mask, &mut bytes);
            let cut = &reason[..reason.floor_char_boundary(123)];
            expected.push(Told::Close(Some(*code), cut.to_owned()));
        }
        let (role, own) = match mask {
            Some(_) => (OtherRole::Server, Role::Server),
            None => (OtherRole::Client, Role::Client),
        };
        prop_assert_eq!(&read_by_other(role, &bytes), &expected);
        prop_assert_eq!(read(own, &[&bytes], 1 << 20), (expected, None));
    }

    #[test]
    fn messages_of_the_other_are_read_however_they_are_cut(
        messages in prop::collection::vec(message(), 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        as_client: bool,
    ) {
        let role = if as_client { OtherRole::Client } else { OtherRole::Server };
        let mut other = WebSocket::from_raw_socket(Recorded::default(), role, None);
        for told in &messages {
            let message = match told.clone() {
                Told::Text(text) => Message::text(text),
                Told::Binary(bytes) => Message::binary(bytes),
                Told::Ping(bytes) => Message::Ping(bytes.into()),
                Told::Pong(bytes) => Message::Pong(bytes.into()),
                Told::Close(..) => unreachable!("not drawn"),
            };
            other.send(message).expect("it is written");
        }
        other.flush().expect("it is written");
        let bytes = &other.get_ref().output;
        let own = if as_client { Role::Server } else { Role::Client };
        prop_assert_eq!(&read(own, &cut(bytes, &cuts), 1 << 20), &(messages.clone(), None));
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(read(own, &single, 1 << 20), (messages, None));
    }

    #[test]
    fn frames_of_any_bits_are_read_alike(
        frames in prop::collection::vec(
            (0..16_u8, any::<bool>(), prop::collection::vec(any::<u8>(), 0..20)),
            1..6,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut bytes = Vec::new();
        for (opcode, fin, payload) in &frames {
            bytes.extend([*opcode | u8::from(*fin) << 7, payload.len() as u8]);
            bytes.extend(payload);
        }
        let (told, error) = read(Role::Client, &[&bytes], 1 << 20);
        prop_assert_eq!(&read(Role::Client, &cut(&bytes, &cuts), 1 << 20), &(told.clone(), error));
        // tungstenite accepts all that we accept: it is more lenient after a close frame and with its status.
        let closes = frames.iter().any(|(opcode, ..)| *opcode == 8);
        let other = read_by_other(OtherRole::Client, &bytes);
        if closes {
            let before = |told: &[Told]| {
                told.iter().take_while(|told| !matches!(told, Told::Close(..))).cloned().collect::<Vec<_>>()
            };
            prop_assert_eq!(before(&told), before(&other));
        } else {
            prop_assert_eq!(told, other);
        }
    }
}

#[test]
fn the_other_accepts_our_handshake_and_we_accept_its() {
    let request = b"GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: 0123456789abcdef01234A==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let stream = Recorded { input: request.to_vec(), ..Recorded::default() };
    let mut server = tungstenite::accept(stream).expect("a handshake");
    server.send(Message::text("hello")).expect("it is written");
    let answer = server.get_ref().output.clone();
    let mut handshake = ClientHandshake::new(request);
    let mut input = &answer[..];
    assert!(matches!(handshake.read(&mut input), Ok(HandshakeProgress::Open { .. })));
    assert_eq!(read(Role::Client, &[input], 100).0, [Told::Text("hello".to_owned())]);

    let key = tungstenite::handshake::client::generate_key();
    let request = format!("GET / HTTP/1.1\r\nSec-WebSocket-Key: {key}\r\n\r\n");
    let accept = accept_of(key_of(request.as_bytes(), "Sec-WebSocket-Key").expect("a key"));
    assert_eq!(accept, tungstenite::handshake::derive_accept_key(key.as_bytes()).as_bytes());
    let mut response = Vec::new();
    write_upgrade_response(&accept, None, &mut response);
    assert!(response.ends_with(b"\r\n\r\n"));
}
