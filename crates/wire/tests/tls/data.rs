//! Application data in both directions, and the end of it.

use plimsoll_wire::tls::{ClientConfig, ClientOptions, Session, Versions};

use crate::tls::authority::Authority;
use crate::tls::link::Link;

const NAME: &str = "server.test";

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 31 / 8) as u8).collect()
}

fn link(versions: Versions) -> Link {
    let authority = Authority::new("root");
    let client = ClientConfig::new(&ClientOptions { versions, ..authority.trust() }).unwrap();
    Link::established(&client, &authority.server(&[NAME]), NAME)
}

#[test]
fn data_of_any_size_arrives_both_ways() {
    for versions in [Versions::Tls12, Versions::Tls13] {
        let mut link = link(versions);
        for size in [0, 1, 2, 100, 4_096, 16_383, 16_384, 16_385, 65_537, 1 << 20] {
            let sent = bytes(size);
            let mut wire = Vec::new();
            link.client.session.send(&sent, &mut wire);
            assert!(wire.len() >= size);
            assert!(size < 100 || !wire.windows(50).any(|window| window == &sent[..50]), "in the clear");
            assert_eq!(link.server.take(&wire, usize::MAX).unwrap(), []);
            assert_eq!(std::mem::take(&mut link.server.plain), sent, "{versions:?} {size}");

            wire.clear();
            link.server.session.send(&sent, &mut wire);
            // As a socket's buffer would cut it.
            assert_eq!(link.client.take(&wire, 10_007).unwrap(), []);
            assert_eq!(std::mem::take(&mut link.client.plain), sent, "{versions:?} {size}");
        }
    }
}

#[test]
fn everything_may_arrive_byte_by_byte() {
    let authority = Authority::new("root");
    let server = authority.server(&[NAME]);
    for versions in [Versions::Tls12, Versions::Tls13] {
        let client = ClientConfig::new(&ClientOptions { versions, ..authority.trust() }).unwrap();
        for piece in [1, 3, 1000] {
            let mut link = Link::new(&client, &server, NAME);
            link.piece = piece;
            link.settle().unwrap();
            assert_eq!((link.client.finished, link.server.finished), (1, 1));
            let (sent, mut wire) = (bytes(40_000), Vec::new());
            link.client.session.send(&sent, &mut wire);
            link.server.take(&wire, piece).unwrap();
            assert_eq!(link.server.plain, sent);
        }
    }
}

#[test]
fn what_is_appended_leaves_what_was_there() {
    let mut link = link(Versions::Tls13);
    let mut wire = b"before ".to_vec();
    link.client.session.send(b"one ", &mut wire);
    link.client.session.send(b"two", &mut wire);
    assert!(wire.starts_with(b"before "));
    link.server.plain = b"kept ".to_vec();
    link.server.take(&wire[7..], usize::MAX).unwrap();
    assert_eq!(link.server.plain, b"kept one two");
}

#[test]
fn data_given_too_early_follows_the_handshake() {
    let authority = Authority::new("root");
    for versions in [Versions::Tls12, Versions::Tls13] {
        let client = ClientConfig::new(&ClientOptions { versions, ..authority.trust() }).unwrap();
        let mut link = Link::new(&client, &authority.server(&[NAME]), NAME);
        let (sent, mut wire) = (bytes(200_000), Vec::new());
        link.client.session.send(&sent, &mut wire);
        link.exchange(wire).unwrap();
        assert_eq!(link.server.plain, sent);
    }
}

#[test]
fn the_end_is_announced_and_nothing_follows_it() {
    for versions in [Versions::Tls12, Versions::Tls13] {
        let mut link = link(versions);
        let (mut wire, mut plain) = (Vec::new(), Vec::new());
        link.server.session.send(b"last words", &mut wire);
        link.server.session.close_notify(&mut wire);
        wire.extend_from_slice(&bytes(100_000));
        let received = link.client.session.receive(&wire, &mut plain).unwrap();
        assert!(received.closed && !received.handshake_done_now);
        assert_eq!(plain, b"last words");
        // Later data are ignored too, and the other direction still works until it is closed.
        assert!(link.client.session.receive(&bytes(10), &mut plain).unwrap().closed);
        assert_eq!(plain, b"last words");
        wire.clear();
        link.client.session.send(b"thanks", &mut wire);
        link.client.session.close_notify(&mut wire);
        link.server.take(&wire, usize::MAX).unwrap();
        assert!(link.server.closed);
        assert_eq!(link.server.plain, b"thanks");
    }
}

#[test]
fn an_idle_session_has_nothing_to_say() {
    let mut link = link(Versions::Tls13);
    let mut wire = Vec::new();
    let idle = |session: &mut Session, wire: &mut Vec<u8>| {
        session.transmit(wire);
        session.send(b"", wire);
        session.receive(b"", &mut Vec::new()).unwrap()
    };
    assert_eq!(idle(&mut link.client.session, &mut wire), Default::default());
    assert_eq!(idle(&mut link.server.session, &mut wire), Default::default());
    assert_eq!(wire, []);
}
