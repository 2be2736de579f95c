//! Handshakes that succeed, and the agreed parameters.

use std::sync::{Arc, Mutex};

use plimsoll_wire::tls::{ClientConfig, ClientOptions, Identity, KeyLogSink, ServerConfig, Versions};
use rcgen::KeyPair;

use crate::tls::authority::{Authority, server};
use crate::tls::link::Link;

const NAME: &str = "server.test";

#[test]
fn versions_are_those_that_were_chosen() {
    let authority = Authority::new("root");
    let server = authority.server(&[NAME]);
    for (versions, expected) in
        [(Versions::Both, "TLSv1.3"), (Versions::Tls13, "TLSv1.3"), (Versions::Tls12, "TLSv1.2")]
    {
        let client = ClientConfig::new(&ClientOptions { versions, ..authority.trust() }).unwrap();
        let mut link = Link::new(&client, &server, NAME);
        assert!(link.client.session.is_handshaking() && link.server.session.is_handshaking());
        assert_eq!((link.client.session.version(), link.client.session.cipher()), ("unknown", None));
        link.settle().unwrap();
        assert_eq!((link.client.finished, link.server.finished), (1, 1));
        for side in [&link.client, &link.server] {
            assert!(!side.session.is_handshaking() && !side.session.resumed() && !side.closed);
            assert_eq!(side.session.version(), expected);
            assert_eq!(side.session.alpn(), Some(&b"http/1.1"[..]));
            let cipher = side.session.cipher().unwrap();
            assert_eq!(cipher.starts_with("TLS13_"), expected == "TLSv1.3", "{cipher}");
        }
    }
}

#[test]
fn the_second_connection_resumes_the_first() {
    let authority = Authority::new("root");
    let server = authority.server(&[NAME]);
    for versions in [Versions::Tls12, Versions::Tls13] {
        for resumption in [true, false] {
            let options = ClientOptions { versions, resumption, ..authority.trust() };
            let client = ClientConfig::new(&options).unwrap();
            for connection in 0..4 {
                let link = Link::established(&client.clone(), &server, NAME);
                let expected = resumption && connection > 0;
                assert_eq!(link.client.session.resumed(), expected, "{versions:?} {connection}");
                assert_eq!(link.server.session.resumed(), expected, "{versions:?} {connection}");
            }
            // Another configuration knows nothing of these sessions.
            let other = ClientConfig::new(&options).unwrap();
            assert!(!Link::established(&other, &server, NAME).client.session.resumed());
        }
    }
}

#[test]
fn far_more_sessions_than_a_store_holds_can_be_resumed() {
    let authority = Authority::new("root");
    let server = authority.server(&[NAME]);
    let options = ClientOptions { versions: Versions::Tls12, ..authority.trust() };
    let clients: Vec<_> = (0..300).map(|_| ClientConfig::new(&options).unwrap()).collect();
    for expected in [false, true] {
        let resumed =
            clients.iter().filter(|&c| Link::established(c, &server, NAME).client.session.resumed());
        assert_eq!(resumed.count(), if expected { clients.len() } else { 0 });
    }
}

#[test]
fn addresses_are_names_too() {
    let authority = Authority::new("root");
    let server = authority.server(&[NAME, "127.0.0.1", "::1"]);
    for name in [NAME, "SERVER.test", "127.0.0.1", "::1"] {
        Link::established(&authority.client(), &server, name);
    }
}

#[test]
fn the_application_protocol_is_the_servers_choice_of_the_clients() {
    let authority = Authority::new("root");
    let identity = authority.issue(&[NAME]);
    let protocols = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
    for (offered, spoken, expected) in [
        (protocols(&["http/1.1", "h2"]), protocols(&["h2", "http/1.1"]), Some("h2")),
        (protocols(&["http/1.1"]), protocols(&["h2", "http/1.1"]), Some("http/1.1")),
        (protocols(&[]), protocols(&["h2"]), None),
        (protocols(&["h2"]), protocols(&[]), None),
    ] {
        let server = ServerConfig::new(&identity.cert_pem, &identity.key_pem, &spoken, None).unwrap();
        let client = ClientConfig::new(&ClientOptions { alpn: offered, ..authority.trust() }).unwrap();
        let link = Link::established(&client, &server, NAME);
        assert_eq!(link.client.session.alpn(), expected.map(str::as_bytes));
        assert_eq!(link.server.session.alpn(), expected.map(str::as_bytes));
    }
}

#[test]
fn a_client_shows_its_certificate_when_asked() {
    let (authority, people) = (Authority::new("root"), Authority::new("people"));
    let server = server(&authority.issue(&[NAME]), Some(&people.pem()));
    for versions in [Versions::Tls12, Versions::Tls13] {
        let identity = Some(people.issue(&["client"]));
        let client = ClientConfig::new(&ClientOptions { versions, identity, ..authority.trust() }).unwrap();
        Link::established(&client, &server, NAME);
    }
}

#[test]
fn without_verification_any_certificate_will_do() {
    let stranger = Authority::new("stranger");
    for versions in [Versions::Tls12, Versions::Tls13] {
        let options = ClientOptions { verify: false, versions, ..ClientOptions::default() };
        let client = ClientConfig::new(&options).unwrap();
        let expired = server(&stranger.issue_between(&["other.test"], (2000, 2001)), None);
        Link::established(&client, &expired, NAME);
    }
}

#[test]
fn all_given_authorities_are_trusted() {
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let files = [vec![first.pem(), second.pem()], vec![[first.pem(), second.pem()].concat()]];
    for ca_pem in files {
        let client = ClientConfig::new(&ClientOptions { ca_pem, ..ClientOptions::default() }).unwrap();
        for authority in [&first, &second] {
            Link::established(&client, &authority.server(&[NAME]), NAME);
        }
    }
}

#[test]
fn keys_may_be_pkcs8_sec1_or_pkcs1() {
    let authority = Authority::new("root");
    let keys = [
        (KeyPair::generate().unwrap(), "EC PRIVATE KEY"),
        (KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap(), "RSA PRIVATE KEY"),
    ];
    for (key, label) in keys {
        let cert_pem = authority.issue_for(&[NAME], &key, (2020, 4000));
        let inner = pem(label, inner_key(key.serialized_der()));
        for key_pem in [key.serialize_pem().into_bytes(), inner.into_bytes()] {
            let server = server(&Identity { cert_pem: cert_pem.clone(), key_pem }, None);
            Link::established(&authority.client(), &server, NAME);
        }
    }
}

/// The key inside of PKCS #8: the octet string after the version and the algorithm (RFC 5208).
fn inner_key(pkcs8: &[u8]) -> &[u8] {
    /// Content of the first DER element, and the rest.
    fn element(der: &[u8]) -> (&[u8], &[u8]) {
        let (length, start) = match der[1] {
            short @ 0..0x80 => (usize::from(short), 2),
            long => {
                let bytes = usize::from(long & 0x7f);
                (der[2..2 + bytes].iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), 2 + bytes)
            }
        };
        (&der[start..start + length], &der[start + length..])
    }
    let (_version, rest) = element(element(pkcs8).0);
    let (_algorithm, rest) = element(rest);
    element(rest).0
}

/// DER as PEM (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in der.chunks(48) {
        for group in line.chunks(3) {
            let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(*group.get(at).unwrap_or(&0)));
            for at in 0..4 {
                let digit = ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
                text.push(if at <= group.len() { char::from(digit) } else { '=' });
            }
        }
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

#[derive(Debug, Default)]
struct Lines(Mutex<Vec<String>>);

impl KeyLogSink for Lines {
    fn line(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

#[test]
fn secrets_are_logged_in_the_format_of_nss() {
    let authority = Authority::new("root");
    let server = authority.server(&[NAME]);
    for (versions, labels) in [
        (Versions::Tls12, &["CLIENT_RANDOM"][..]),
        (
            Versions::Tls13,
            &[
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
                "CLIENT_TRAFFIC_SECRET_0",
                "EXPORTER_SECRET",
                "SERVER_HANDSHAKE_TRAFFIC_SECRET",
                "SERVER_TRAFFIC_SECRET_0",
            ],
        ),
    ] {
        let log = Arc::new(Lines::default());
        let sink: Arc<dyn KeyLogSink> = log.clone();
        let options = ClientOptions { versions, key_log: Some(sink), ..authority.trust() };
        Link::established(&ClientConfig::new(&options).unwrap(), &server, NAME);
        let lines = log.0.lock().unwrap();
        let mut seen = Vec::new();
        for line in lines.iter() {
            let [label, random, secret] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            assert!(
                [random, secret].concat().bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            );
            // 32 bytes of random; a master secret has 48, a traffic secret the length of its hash.
            assert_eq!(random.len(), 64);
            assert!(matches!(secret.len(), 64 | 96), "{line}");
            seen.push(label);
        }
        seen.sort_unstable();
        assert_eq!(seen, labels);
    }
}
