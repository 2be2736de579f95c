//! Refused handshakes and configurations, and their error messages.

use plimsoll_wire::tls::{ClientConfig, ClientOptions, Identity, ServerConfig, Session, TlsError, Versions};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};

use crate::tls::authority::{Authority, server};
use crate::tls::link::{Link, Peer};

const NAME: &str = "server.test";

fn refusal(client: &ClientConfig, server: &ServerConfig, name: &str) -> (Peer, TlsError) {
    Link::new(client, server, name).settle().unwrap_err()
}

#[test]
fn a_bad_certificate_is_told_with_its_reason() {
    let (authority, stranger) = (Authority::new("root"), Authority::new("stranger"));
    let expired = server(&authority.issue_between(&[NAME], (2000, 2001)), None);
    let future = server(&authority.issue_between(&[NAME], (3000, 4000)), None);
    let nameless = server(&authority.issue(&[]), None);
    let of_itself = server(&self_signed(&[NAME], (2020, 4000), IsCa::NoCa), None);
    let for_name = "write a URL with a name that it is for";
    for versions in [Versions::Tls12, Versions::Tls13] {
        let client = ClientConfig::new(&ClientOptions { versions, ..authority.trust() }).unwrap();
        for (server, name, begin, end, hint) in [
            (&expired, NAME, "it expired ", " days ago", "renew it"),
            (&future, NAME, "it is not valid yet, but in ", " days", "look at the clocks"),
            (
                &stranger.server(&[NAME]),
                NAME,
                "its issuer is not trusted",
                "",
                "--cacert FILE names the auth",
            ),
            (&of_itself, NAME, "it is signed by itself, and is not", "", "--cacert FILE with this very"),
            (
                &authority.server(&["a.test"]),
                NAME,
                "it is not for `server.test`, but for `a.test`",
                "",
                for_name,
            ),
            (
                &authority.server(&["a.test", "b.test"]),
                "::1",
                "it is not for `::1`, but for ",
                "`a.test`, `b.test`",
                for_name,
            ),
            (
                &authority.server(&["127.0.0.1"]),
                "127.0.0.2",
                "it is not for `127.0.0.2`, but for ",
                "`127.0.0.1`",
                for_name,
            ),
            (&nameless, NAME, "it is not for `server.test`, but for no name at all", "", for_name),
        ] {
            let (peer, error) = refusal(&client, server, name);
            assert_eq!(peer, Peer::Client);
            assert!(error.is_certificate(), "{error}");
            let text = error.to_string();
            let reason = text.strip_prefix("the certificate was not accepted: ").unwrap_or_default();
            assert!(reason.starts_with(begin) && reason.ends_with(end), "{text}");
            let said = error.hint().unwrap_or_default();
            assert!(said.starts_with(hint) && said.contains("-k "), "{text}: {said}");
        }
    }
}

#[test]
fn a_server_is_told_why_its_certificate_was_not_accepted() {
    let (authority, stranger) = (Authority::new("root"), Authority::new("stranger"));
    let mut link = Link::new(&authority.client(), &stranger.server(&[NAME]), NAME);
    let mut hello = Vec::new();
    link.client.session.transmit(&mut hello);
    let flight = link.server.take(&hello, usize::MAX).unwrap();
    let (alert, error) = link.client.take(&flight, usize::MAX).unwrap_err();
    assert!(error.is_certificate());
    let (_, error) = link.server.take(&alert, usize::MAX).unwrap_err();
    assert!(!error.is_certificate());
    assert_eq!(error.to_string(), "the peer did not accept our certificate (alert UnknownCA)");
}

/// A certificate that signs itself, valid in these years.
fn self_signed(names: &[&str], years: (i32, i32), is_ca: IsCa) -> Identity {
    self_signed_as("itself", names, years, is_ca)
}

/// Makes a certificate that signs itself, valid in these years, of a subject with this common name.
fn self_signed_as(common: &str, names: &[&str], years: (i32, i32), is_ca: IsCa) -> Identity {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, common);
    (params.not_before, params.not_after) =
        (rcgen::date_time_ymd(years.0, 1, 1), rcgen::date_time_ymd(years.1, 1, 1));
    params.is_ca = is_ca;
    let key = KeyPair::generate().unwrap();
    let cert_pem = params.self_signed(&key).unwrap().pem().into_bytes();
    Identity { cert_pem, key_pem: key.serialize_pem().into_bytes() }
}

/// Returns a certificate as `openssl req -x509` makes it by default.
fn of_openssl(names: &[&str], years: (i32, i32)) -> Identity {
    self_signed(names, years, IsCa::Ca(BasicConstraints::Unconstrained))
}

#[test]
fn the_very_certificate_of_a_ca_file_is_accepted_from_a_server_as_curl_does() {
    let own = of_openssl(&[NAME], (2020, 4000));
    let server = server(&own, None);
    let authority = Authority::new("root");
    for versions in [Versions::Tls12, Versions::Tls13] {
        for ca_pem in [vec![own.cert_pem.clone()], vec![authority.pem(), own.cert_pem.clone()]] {
            let options = ClientOptions { versions, ca_pem, ..ClientOptions::default() };
            Link::established(&ClientConfig::new(&options).unwrap(), &server, NAME);
        }
    }
}

/// `openssl req -x509 -subj /CN=server.test` without `-addext`, which has no other name.
#[test]
fn the_very_certificate_of_a_ca_file_may_have_its_name_in_its_subject_only() {
    for is_ca in [IsCa::Ca(BasicConstraints::Unconstrained), IsCa::NoCa] {
        let named = |common: &str, names: &[&str]| self_signed_as(common, names, (2020, 4000), is_ca);
        let tried = |own: &Identity| {
            let ca_pem = vec![own.cert_pem.clone()];
            let client = ClientConfig::new(&ClientOptions { ca_pem, ..ClientOptions::default() }).unwrap();
            Link::new(&client, &server(own, None), NAME).settle().map_err(|(_, error)| error.to_string())
        };
        for common in [NAME, "Server.Test"] {
            assert_eq!(tried(&named(common, &[])), Ok(()));
        }
        let refused = tried(&named("other.test", &[])).unwrap_err();
        assert!(refused.ends_with("it is not for `server.test`, but for `other.test`"), "{refused}");
        // Where there are alternative names, the subject is none (RFC 6125, 6.4.4).
        let refused = tried(&named(NAME, &["a.test"])).unwrap_err();
        assert!(refused.ends_with("it is not for `server.test`, but for `a.test`"), "{refused}");
    }
    // A certificate that an authority signed is not accepted by itself.
    let authority = Authority::new("root");
    let issued = server(&authority.issue(&[]), None);
    let refused = refusal(&authority.client(), &issued, "root").1.to_string();
    assert!(refused.ends_with("but for no name at all"), "{refused}");
}

#[test]
fn the_very_certificate_of_a_ca_file_is_still_verified() {
    let own = of_openssl(&[NAME], (2020, 4000));
    let client = |trusted: &Identity| {
        let ca_pem = vec![trusted.cert_pem.clone()];
        ClientConfig::new(&ClientOptions { ca_pem, ..ClientOptions::default() }).unwrap()
    };
    let said = |trusted: &Identity, shown: &Identity, name: &str| {
        refusal(&client(trusted), &server(shown, None), name).1.to_string()
    };
    let text = said(&own, &own, "other.test");
    assert!(text.ends_with("it is not for `other.test`, but for `server.test`"), "{text}");
    let (old, new) = (of_openssl(&[NAME], (2000, 2001)), of_openssl(&[NAME], (3000, 4000)));
    let text = said(&old, &old, NAME);
    assert!(text.contains("it expired "), "{text}");
    let text = said(&new, &new, NAME);
    assert!(text.contains("it is not valid yet"), "{text}");
    // Another certificate of the same name.
    let twin = of_openssl(&[NAME], (2020, 4000));
    let text = said(&own, &twin, NAME);
    assert!(text.ends_with("it is signed by itself, and is not one that is trusted"), "{text}");
}

#[test]
fn the_certificate_of_an_authority_is_none_of_a_server() {
    let authority = Authority::new("root");
    let mut params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let identity =
        Identity { cert_pem: authority.sign(&params, &key), key_pem: key.serialize_pem().into_bytes() };
    let (_, error) = refusal(&authority.client(), &server(&identity, None), NAME);
    assert!(
        error.to_string().ends_with("it is the certificate of an authority, and not of a server"),
        "{error}"
    );
    // The signature is valid, but the certificate was not given itself.
    assert_eq!(error.hint(), Some("-k accepts any certificate"));
}

#[test]
fn a_server_that_demands_a_certificate_takes_no_other() {
    let (authority, people) = (Authority::new("root"), Authority::new("people"));
    let server = server(&authority.issue(&[NAME]), Some(&people.pem()));
    let stranger = Authority::new("stranger");
    for versions in [Versions::Tls12, Versions::Tls13] {
        for (identity, on_server, on_client) in [
            (None, "the peer showed no certificate", "the server demands a certificate of the client"),
            (
                Some(stranger.issue(&["client"])),
                "the certificate was not accepted: its issuer is not trusted",
                "the peer did not accept our certificate (alert UnknownCA)",
            ),
        ] {
            let client =
                ClientConfig::new(&ClientOptions { versions, identity, ..authority.trust() }).unwrap();
            let mut link = Link::new(&client, &server, NAME);
            let mut hello = Vec::new();
            link.client.session.transmit(&mut hello);
            let flight = link.server.take(&hello, usize::MAX).unwrap();
            let answer = link.client.take(&flight, usize::MAX).unwrap();
            let (alert, error) = link.server.take(&answer, usize::MAX).unwrap_err();
            assert_eq!(error.to_string(), on_server);
            let (_, error) = link.client.take(&alert, usize::MAX).unwrap_err();
            assert_eq!(error.to_string(), on_client, "{versions:?}");
            assert_eq!(error.hint(), Some("--cert and --key give the certificate of the client and its key"));
            assert!(!error.is_certificate());
        }
    }
}

#[test]
fn no_common_application_protocol_ends_the_handshake() {
    let authority = Authority::new("root");
    let identity = authority.issue(&[NAME]);
    let server = ServerConfig::new(&identity.cert_pem, &identity.key_pem, &[b"h2".to_vec()], None).unwrap();
    let (peer, error) = refusal(&authority.client(), &server, NAME);
    assert_eq!(peer, Peer::Server);
    assert_eq!(error.to_string(), "the two sides have no application protocol in common (ALPN)");
}

#[test]
fn names_that_no_server_has() {
    let client = Authority::new("root").client();
    for name in ["", "two words", "-", "a..b", &"x".repeat(300), "[::1]", "1.2.3.4.5:80"] {
        let error = Session::client(&client, name).unwrap_err();
        assert_eq!(error.to_string(), format!("`{name}` is not a valid server name for TLS"));
    }
}

#[test]
fn unusable_files_are_named() {
    let authority = Authority::new("root");
    let (good, other) = (authority.issue(&[NAME]), authority.issue(&[NAME]));
    let mixed = Identity { cert_pem: good.cert_pem.clone(), key_pem: other.key_pem };
    let with = |identity: Identity| ClientOptions { identity: Some(identity), ..authority.trust() };
    let with_key = |key: &str| Identity { cert_pem: good.cert_pem.clone(), key_pem: key.as_bytes().to_vec() };
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let broken = b"-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n".to_vec();
    let nonsense = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
    for (options, expected) in [
        (
            ClientOptions { ca_pem: vec![b"no PEM".to_vec()], ..authority.trust() },
            "the CA file holds no certificate",
        ),
        (
            ClientOptions { ca_pem: vec![authority.pem(), Vec::new()], ..authority.trust() },
            "the CA file holds no",
        ),
        (ClientOptions { ca_pem: vec![broken.clone()], ..authority.trust() }, "the CA file is not valid PEM"),
        (
            ClientOptions { ca_pem: vec![nonsense], ..authority.trust() },
            "the CA file holds a bad certificate",
        ),
        (with(Identity { cert_pem: broken, key_pem: Vec::new() }), "the client certificate is not valid PEM"),
        (with(with_key("")), "the client key holds no private key in PEM format"),
        (with(with_key(encrypted)), "the client key is protected by a passphrase"),
        (with(mixed.clone()), "the client certificate and key do not go together"),
    ] {
        let error = ClientConfig::new(&options).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    for (cert, key, client_ca, expected) in [
        (&b""[..], &good.key_pem[..], None, "the certificate holds no certificate in PEM format"),
        (&good.cert_pem, b"", None, "the key holds no private key in PEM format"),
        (&mixed.cert_pem, &mixed.key_pem, None, "the certificate and key do not go together"),
        (&good.cert_pem, &good.key_pem, Some(&b"x"[..]), "the client CA file holds no certificate"),
    ] {
        let error = ServerConfig::new(cert, key, &[], client_ca).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(!format!("{:?}", with(mixed)).contains("PRIVATE"), "keys are not for logs");
}
