//! Bytes that are no TLS, or broken on the way: an error, and never a panic or a wrong byte.

use plimsoll_wire::tls::{ClientConfig, ClientOptions, ServerConfig, Session, Versions};
use proptest::prelude::*;

use crate::tls::authority::Authority;
use crate::tls::link::Link;

const NAME: &str = "server.test";

#[test]
fn a_peer_without_tls_is_told_as_such() {
    let authority = Authority::new("root");
    let (client, server) = (authority.client(), authority.server(&[NAME]));
    for answer in
        [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"SSH-2.0-OpenSSH_9.6\r\n", &[0; 64], &[0xff; 64]]
    {
        for mut session in [Session::client(&client, NAME).unwrap(), Session::server(&server).unwrap()] {
            let error = session.receive(answer, &mut Vec::new()).unwrap_err();
            assert_eq!(error.to_string(), "the peer does not speak TLS on this port");
            assert_eq!(
                error.hint(),
                Some("write http:// if this port is without TLS, or name the port that speaks it")
            );
            assert!(!error.is_certificate());
            // It stays over.
            session.receive(answer, &mut Vec::new()).unwrap_err();
        }
    }
}

#[test]
fn whole_records_before_a_broken_one_count() {
    let authority = Authority::new("root");
    let mut link = Link::established(&authority.client(), &authority.server(&[NAME]), NAME);
    let mut wire = Vec::new();
    link.server.session.send(b"a whole response", &mut wire);
    let start = wire.len();
    link.server.session.send(b"another one", &mut wire);
    wire[start + 7] ^= 1;
    let (alert, error) = link.client.take(&wire, usize::MAX).unwrap_err();
    assert_eq!(link.client.plain, b"a whole response");
    assert_eq!(error.to_string(), "TLS failed: cannot decrypt peer's message");
    assert_eq!(error.hint(), None);
    let (_, error) = link.server.take(&alert, usize::MAX).unwrap_err();
    assert_eq!(error.to_string(), "the peer gave up TLS with the alert BadRecordMac");
}

fn pair(versions: Versions) -> (ClientConfig, ServerConfig) {
    let authority = Authority::new("root");
    let options = ClientOptions { versions, resumption: false, ..authority.trust() };
    (ClientConfig::new(&options).unwrap(), authority.server(&[NAME]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn arbitrary_bytes_bring_no_plaintext(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        cut in 1_usize..100,
    ) {
        let (client, server) = pair(Versions::Both);
        for session in [Session::client(&client, NAME).unwrap(), Session::server(&server).unwrap()] {
            let (mut session, mut plain) = (session, Vec::new());
            for part in bytes.chunks(cut) {
                if session.receive(part, &mut plain).is_err() {
                    break;
                }
            }
            session.transmit(&mut Vec::new());
            session.close_notify(&mut Vec::new());
            prop_assert!(session.is_handshaking() && plain.is_empty());
        }
    }

    #[test]
    fn a_flipped_bit_in_the_handshake_is_noticed(
        tls13: bool,
        at: prop::sample::Index,
        bit in 0_u8..8,
        flight in 0_usize..3,
    ) {
        let (client, server) = pair(if tls13 { Versions::Tls13 } else { Versions::Tls12 });
        let mut link = Link::new(&client, &server, NAME);
        let mut bytes = Vec::new();
        link.client.session.transmit(&mut bytes);
        let mut intact = true;
        for number in 0..6 {
            if number == flight && !bytes.is_empty() {
                // The two version bytes of a record are not protected in TLS 1.3, nor is the one of the first
                // hello anywhere (RFC 8446, 5.1): a change there may go unnoticed, and harms nothing.
                let position = at.index(bytes.len());
                bytes[position] ^= 1 << bit;
                intact = false;
            }
            let side = if number % 2 == 0 { &mut link.server } else { &mut link.client };
            match side.take(&bytes, usize::MAX) {
                Ok(answer) => bytes = answer,
                Err((alert, _)) => {
                    // The alert must not break the other side either.
                    let other = if number % 2 == 0 { &mut link.client } else { &mut link.server };
                    let _ = other.take(&alert, usize::MAX);
                    break;
                }
            }
        }
        prop_assert!(!intact, "the handshake has three flights");
        let (client, server) = (&link.client.session, &link.server.session);
        if !client.is_handshaking() && !server.is_handshaking() {
            // Both agree on the keys nonetheless.
            let (mut wire, sent) = (Vec::new(), b"still the same");
            link.client.session.send(sent, &mut wire);
            if link.server.take(&wire, usize::MAX).is_ok() {
                prop_assert_eq!(&link.server.plain, sent);
            }
        }
    }

    #[test]
    fn a_flipped_bit_in_the_data_is_noticed(
        tls13: bool,
        at: prop::sample::Index,
        bit in 0_u8..8,
        size in 1_usize..3000,
    ) {
        let (client, server) = pair(if tls13 { Versions::Tls13 } else { Versions::Tls12 });
        let mut link = Link::established(&client, &server, NAME);
        let (sent, mut wire) = (vec![7; size], Vec::new());
        link.client.session.send(&sent, &mut wire);
        let position = at.index(wire.len());
        wire[position] ^= 1 << bit;
        let outcome = link.server.take(&wire, usize::MAX);
        // Either the record is refused, or it seems to be longer and waits for its end. The version of a
        // record is not protected, nor in TLS 1.3 its outer type, in place of which the value that it has to
        // have is authenticated (RFC 8446, 5.2): a change there may pass, with the right data.
        match outcome {
            Err(_) => prop_assert!(link.server.plain.is_empty()),
            Ok(_) if link.server.plain.is_empty() => prop_assert!((3..5).contains(&position)),
            Ok(_) => {
                let unprotected = if tls13 { 0..3 } else { 1..3 };
                prop_assert!(unprotected.contains(&position), "position {}", position);
                prop_assert_eq!(&link.server.plain, &sent);
            }
        }
    }
}
