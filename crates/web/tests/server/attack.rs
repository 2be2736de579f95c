//! Requests of pages of other sites, of names that lead to our address, and of other users.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_web::{Identity, Listen};
use serde_json::json;

use crate::client::{Reply, Server};

/// Every combination of client, host name, page and method. Only requests of our own page with a session are
/// carried out.
#[test]
fn a_request_is_carried_out_only_if_all_of_it_is_ours() {
    let server = Server::start();
    server.folder.write("a.yaml", "secret of the folder");
    let session = server.session();
    let port = server.address.rsplit_once(':').unwrap().1;
    let localhost = format!("localhost:{port}");
    let rebound = format!("evil.test:{port}");
    let hosts = [
        (&*server.address, true),
        (&*localhost, true),
        (&*rebound, false),
        ("127.0.0.1", false),
        ("", false),
    ];
    let wrong_word = format!("{}x", &session[..session.len() - 1]);
    let cookies = [(Some(&*session), true), (Some(&*wrong_word), false), (None, false)];
    let sites = [None, Some("same-origin"), Some("none"), Some("same-site"), Some("cross-site")];
    let mut admitted = 0;
    for (host, is_our_host) in hosts {
        let own = format!("http://{host}");
        let other_port = "http://127.0.0.1:1".to_owned();
        let origins = [
            None,
            Some((own.clone(), true)),
            Some(("null".to_owned(), false)),
            Some(("http://evil.test".to_owned(), false)),
            Some((other_port, false)),
        ];
        for origin in &origins {
            for (cookie, is_session) in cookies {
                for method in ["GET", "POST", "PUT"] {
                    for field in [Some("1"), Some("0"), None] {
                        for site in sites {
                            let mut fields = vec![("host", host), ("content-type", "application/json")];
                            fields.extend(origin.as_ref().map(|(origin, _)| ("origin", &**origin)));
                            fields.extend(cookie.map(|cookie| ("cookie", cookie)));
                            fields.extend(field.map(|field| ("x-plimsoll-ui", field)));
                            fields.extend(site.map(|site| ("sec-fetch-site", site)));
                            let body = if method == "POST" {
                                r#"{"path":"a.yaml","text":"x","etag":null}"#
                            } else {
                                ""
                            };
                            let reply =
                                server.request(&format!("{method} /api/file?path=a.yaml"), &fields, body);
                            let posts = method == "POST";
                            let from_us =
                                origin.as_ref().map_or(!posts, |(_, is_ours)| *is_ours && is_our_host);
                            let near = match site {
                                None | Some("same-origin") => true,
                                Some("none") => !posts,
                                _ => false,
                            };
                            let expected =
                                if !is_our_host || !near || !from_us || (posts && field != Some("1")) {
                                    403
                                } else if !is_session {
                                    401
                                } else {
                                    admitted += 1;
                                    // A POST that is let in finds the file there already.
                                    match method {
                                        "GET" => 200,
                                        "POST" => 409,
                                        _ => 405,
                                    }
                                };
                            let what = (method, host, origin, cookie.is_some(), field, site);
                            assert_eq!(reply.status, expected, "{what:?} {reply:?}");
                            assert_eq!(reply.body.contains("secret"), expected == 200, "{what:?} {reply:?}");
                            assert!(!reply.head.contains("access-control-"), "{reply:?}");
                        }
                    }
                }
            }
        }
    }
    assert!(admitted > 50, "only {admitted} were let in");
}

/// DNS rebinding: a name of the attacker leads to our address, and its page asks us under that name.
#[test]
fn no_other_name_is_answered_whatever_its_form() {
    let server = Server::start();
    let session = server.session();
    let port = server.address.rsplit_once(':').unwrap().1;
    let names = [
        "evil.test",
        "127.0.0.1.evil.test",
        "localhost.evil.test",
        "127.0.0.1.nip.io",
        "evil.test.",
        "localhost.",
        "0.0.0.0",
        "127.1",
        "127.0.0.2",
        "2130706433",
        "0x7f000001",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::1%lo]",
        "evil@localhost",
        "localhost@evil.test",
        "LOCALHOST.EVIL.TEST",
        "xn--lcalhost-30a",
        "local host",
        "\u{a0}localhost",
    ];
    for name in names {
        for host in [format!("{name}:{port}"), name.to_owned()] {
            for path in ["/", "/api/about", "/assets/app.js", "/api/session", "/nothing"] {
                let reply =
                    server.request(&format!("GET {path}"), &[("host", &host), ("cookie", &session)], "");
                assert!(matches!(reply.status, 400 | 403), "{host} {path}: {reply:?}");
                assert!(!reply.body.contains("<html"), "{host}: {reply:?}");
            }
        }
    }
    // Two names, none, and a whole address for another server in the request line.
    let two = [("host", &*server.address), ("host", "evil.test"), ("cookie", &*session)];
    assert_eq!(server.request("GET /api/about", &two, "").status, 400);
    assert_eq!(server.request("GET /api/about", &[("cookie", &*session)], "").status, 403);
    let ours = [("host", &*server.address), ("cookie", &*session)];
    assert_eq!(server.request("GET http://evil.test/api/about", &ours, "").status, 403);
    assert_eq!(server.request("GET /api/about", &ours, "").status, 200);
}

#[test]
fn only_the_token_begins_a_session_and_its_cookie_is_kept_from_scripts() {
    let server = Server::start();
    assert!(server.token.len() == 64 && server.token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let origin = server.origin();
    let fields = server.post_fields(&origin);
    let begin =
        |token: &str| server.request("POST /api/session", &fields, &json!({"token": token}).to_string());
    for token in ["", "0", &server.token[1..], &server.token.to_uppercase(), &format!("{} ", server.token)] {
        let reply = begin(token);
        if token != server.token {
            reply.assert_refused(401);
            assert!(reply.field("set-cookie").is_none(), "{reply:?}");
        }
    }
    let reply = begin(&server.token);
    let cookie = reply.field("set-cookie").expect("a cookie");
    for attribute in ["; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains(&server.token) && !cookie.contains("Domain"), "{cookie}");
    assert_ne!(server.session(), server.session());
    // The token is not a session, nor does it count in an address.
    let port = server.address.rsplit_once(':').unwrap().1;
    server.get(&format!("plimsoll-ui-{port}={}", server.token), "/api/about").assert_refused(401);
    server.get("", &format!("/api/about?token={}", server.token)).assert_refused(401);
    let text = format!("{} {}", server.session(), server.get(&server.session(), "/api/about").body);
    assert!(!text.contains(&server.token));
}

#[test]
fn every_answer_is_safe_for_a_browser() {
    let server = Server::start();
    let session = server.session();
    let evil = [("host", "evil.test")];
    let replies = [
        server.get("", "/"),
        server.get("", "/assets/app.js"),
        server.get("", "/assets/app.css"),
        server.get(&session, "/api/about"),
        server.get("", "/api/about"),
        server.get(&session, "/nothing"),
        server.post(&session, "/api/about", &json!({})),
        server.post(&session, "/api/check", &json!([])),
        server.request("GET /", &evil, ""),
    ];
    for reply in &replies {
        let field = |name: &str| reply.field(name).unwrap_or_else(|| panic!("no {name}: {reply:?}"));
        let policy = field("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self';",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert_eq!(field("x-content-type-options"), "nosniff");
        assert_eq!(field("referrer-policy"), "no-referrer");
        assert_eq!(field("cross-origin-opener-policy"), "same-origin");
        assert_eq!(field("cross-origin-resource-policy"), "same-origin");
        let cached = field("cache-control");
        assert!(cached == "no-store" || (cached == "no-cache" && reply.status == 200), "{reply:?}");
    }
    let nonce = |reply: &Reply| {
        let nonce =
            reply.body.split("name=\"csp-nonce\" content=\"").nth(1).and_then(|rest| rest.split('"').next());
        let nonce = nonce.expect("a nonce").to_owned();
        assert!(
            nonce.len() == 32 && reply.head.contains(&format!("style-src 'self' 'nonce-{nonce}'")),
            "{nonce}"
        );
        nonce
    };
    assert_ne!(nonce(&server.get("", "/")), nonce(&server.get("", "/")));
}

#[test]
fn what_is_malformed_is_refused_in_json() {
    let server = Server::start();
    let session = server.session();
    server.get(&session, "/api/nothing").assert_refused(404);
    server.get(&session, "/../etc/passwd").assert_refused(404);
    let reply = server.request("DELETE /api/about", &[("host", &server.address), ("cookie", &session)], "");
    reply.assert_refused(405);
    assert_eq!(reply.field("allow"), Some("GET,HEAD"));
    let origin = server.origin();
    for media in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", ""]
    {
        let mut fields = server.post_fields(&origin);
        fields.retain(|(name, _)| *name != "content-type");
        fields.extend([("content-type", media), ("cookie", &session)]);
        server.request("POST /api/check", &fields, "{}").assert_refused(415);
    }
    let large = format!("{{\"path\": null, \"text\": \"{}\"}}", "x".repeat(4 << 20));
    let mut fields = server.post_fields(&origin);
    fields.push(("cookie", &session));
    server.request("POST /api/check", &fields, &large).assert_refused(413);
    // Without a length it is counted.
    let mut text =
        String::from("POST /api/check HTTP/1.1\r\nconnection: close\r\ntransfer-encoding: chunked\r\n");
    fields.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
    text.push_str("\r\n");
    for _ in 0..5 {
        text.push_str(&format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20)));
    }
    text.push_str("0\r\n\r\n");
    server.send(text.as_bytes()).assert_refused(413);
    for body in ["{", "[]", "{}", "{\"text\": 5}", "\u{0}"] {
        server.request("POST /api/check", &fields, body).assert_refused(400);
    }
    for path in ["/api/file", "/api/file?x=1", "/api/runs?limit=many"] {
        server.get(&session, path).assert_refused(400);
    }
    assert_eq!(server.send(b"\x16\x03\x01 nothing of HTTP\r\n\r\n").status, 400);
}

/// Symptom: 300 connections with half a head of a request, which need no token, blocked the page for the 30 s
/// that a head may take.
#[test]
fn half_heads_and_idle_connections_give_way_to_requests() {
    let server = Server::start();
    let half = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(&server.address).expect("it listens");
        stream.write_all(bytes).expect("it reads");
        stream
    };
    let whole = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
    for bytes in [b"GET / HTTP/1.1\r\nhost: ".as_slice(), b"", whole.as_bytes()] {
        let mut held: Vec<TcpStream> = (0..300).map(|_| half(bytes)).collect();
        let answered = half(whole.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes());
        answered.set_read_timeout(Some(Duration::from_secs(20))).expect("it is a socket");
        let mut text = Vec::new();
        (&answered).read_to_end(&mut text).expect("it answers before others have to be done");
        assert!(text.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&text));
        // The oldest one has given way.
        held[0].set_read_timeout(Some(Duration::from_secs(20))).expect("it is a socket");
        held[0].read_to_end(&mut text).expect("it is closed");
    }
}

#[test]
fn a_unix_socket_is_for_its_owner_and_needs_a_session_too() {
    let folder = std::env::temp_dir().join(format!("plimsoll-web-unix-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("ui");
    let listen = Listen::Unix(path.clone());
    let _server = Server::start_with(move |options| options.listen = listen);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let ask = |host: &str| {
        let mut stream = UnixStream::connect(&path).unwrap();
        let head = format!("GET /api/about HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        Reply::of(&answer).status
    };
    assert_eq!((ask("localhost"), ask("localhost:8000"), ask("evil.test")), (401, 401, 403));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn with_a_certificate_the_page_is_served_by_tls_only() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let identity =
        Identity { cert: made.cert.pem().into_bytes(), key: made.signing_key.serialize_pem().into_bytes() };
    let server = Server::start_with(|options| options.identity = Some(identity));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let ask = |origin: &str| {
        let session = rustls::ClientConnection::new(config.clone(), "localhost".try_into().unwrap()).unwrap();
        let stream = std::net::TcpStream::connect(&server.address).unwrap();
        let mut stream = rustls::StreamOwned::new(session, stream);
        let body = json!({"token": server.token}).to_string();
        let head = format!(
            "POST /api/session HTTP/1.1\r\nhost: {}\r\norigin: {origin}\r\nx-plimsoll-ui: 1\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            server.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Reply::of(&String::from_utf8_lossy(&answer))
    };
    let reply = ask(&format!("https://{}", server.address));
    assert!(reply.status == 200 && reply.field("set-cookie").unwrap().contains("; Secure"), "{reply:?}");
    ask(&format!("http://{}", server.address)).assert_refused(403);
    // A client without TLS gets no answer.
    let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

/// A spec names programs: where others may reach the page, it starts none unless that was asked for.
#[test]
fn clusters_are_started_only_where_that_is_allowed() {
    let server = Server::start_with(|options| options.clusters = false);
    let session = server.session();
    let start = |command: &str, fleet: serde_json::Value| {
        let run =
            json!({"path": null, "text": "nodes: {}", "command": command, "name": null, "fleet": fleet});
        server.post(&session, "/api/live", &run)
    };
    start("cluster", json!(null)).assert_refused(403);
    // Its spec can be checked, which starts nothing; the program of these tests fails.
    let draft = json!({"path": null, "text": "nodes: {}", "kind": "cluster"});
    assert_ne!(server.post(&session, "/api/check", &draft).status, 403);
    let kinds = json!({"path": null, "text": "", "kind": "shell"});
    server.post(&session, "/api/check", &kinds).assert_refused(400);
    start("shell", json!(null)).assert_refused(400);
    // The key of a broker is a file of the folder.
    for creds in ["/etc/ssl/private.key", "../outside.key", ".hidden.key", "none.key", "a.yaml"] {
        let broker = json!({"nats": "nats://127.0.0.1:1", "creds": creds, "ca": null});
        let reply = server.post(&session, "/api/fleet", &broker);
        assert!(matches!(reply.status, 403 | 404), "{creds}: {reply:?}");
        let reply = start("run", json!({"broker": broker, "agents": null}));
        assert!(matches!(reply.status, 403 | 404), "{creds}: {reply:?}");
    }
    let broker = json!({"nats": "nats://127.0.0.1:1", "creds": null, "ca": null});
    start("find", json!({"broker": broker, "agents": null})).assert_refused(422);
}
