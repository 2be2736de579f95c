//! Other people's servers (nginx, Python's http.server), and our own over TLS, unix sockets and IPv6.

use std::process::Command;

use plimsoll_testkit::skip;
use serde_json::Value;

use crate::loopback::backends::on_each;
use crate::loopback::process::{Folder, Process, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, count, delivered, errors};

/// Starts Python; `None`, and a word on stderr, if there is none.
pub(crate) fn python(args: &[&str]) -> Option<Process> {
    let started = Process::try_start(Command::new("python3").args(args).env("PYTHONUNBUFFERED", "1"));
    if started.is_none() {
        skip::without_program("python3");
    }
    started
}

/// A run whose accounts balance.
pub(crate) fn balanced(args: &str) -> Value {
    let result = run(&format!("run {args} -o json")).result();
    assert_balance(&result);
    result
}

/// A certificate for `localhost` and 127.0.0.1 that signed itself, and its key, as files.
pub(crate) struct Certificate {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Certificate {
    pub(crate) fn new(folder: &Folder) -> Self {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("names are valid");
        Self {
            certificate: folder.write("certificate.pem", made.cert.pem()),
            key: folder.write("key.pem", made.signing_key.serialize_pem()),
        }
    }
}

/// Size of nginx's file: more than any buffer between it and us.
const FILE_BYTES: u64 = 1 << 20;

/// A running nginx with the same content on three listeners.
pub(crate) struct Nginx {
    _process: Process,
    folder: Folder,
    plain: String,
    /// Here a client has half a second to send the head of a request.
    pub(crate) impatient: String,
    tls: String,
    unix: String,
    certificate: Certificate,
}

impl Nginx {
    /// `None`, and a word on stderr, if nginx is not installed.
    pub(crate) fn start() -> Option<Self> {
        // Between finding a port and listening on it another process may take it: then nginx ends, and the
        // next attempt finds another.
        for _ in 0..5 {
            let folder = Folder::new();
            let certificate = Certificate::new(&folder);
            let [plain, impatient, tls] = [(); 3].map(|()| free_address());
            let unix = folder.file("nginx.sock");
            let plains = [&*plain, &format!("unix:{unix}")];
            let configuration = configuration(&plains, &impatient, &tls, &certificate);
            let configuration = folder.write("nginx.conf", configuration);
            folder.write("file.html", vec![b'x'; FILE_BYTES as usize]);
            let prefix = folder.path().display().to_string();
            let mut command = Command::new("nginx");
            command.args(["-p", &prefix, "-c", &configuration, "-e", "stderr"]);
            let Some(mut process) = Process::try_start(&mut command) else {
                skip::without_program("nginx");
                return None;
            };
            // It listens before it says where it runs, or else ends.
            if process.stderr.find(" OS: ").is_some() {
                return Some(Self { _process: process, folder, plain, impatient, tls, unix, certificate });
            }
        }
        panic!("nginx does not start");
    }
}

/// An address of 127.0.0.1 that was free a moment ago.
pub(crate) fn free_address() -> String {
    let sink = Sink::start("");
    let address = sink.endpoint.clone();
    sink.stop();
    address
}

fn configuration(plain: &[&str], impatient: &str, tls: &str, files: &Certificate) -> String {
    let listens: String = plain.iter().map(|address| format!("listen {address};\n")).collect();
    let Certificate { certificate, key } = files;
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr notice;
        events {{ worker_connections 256; }}
        http {{
            access_log off; gzip off; keepalive_requests 100000; types {{ text/html html; }}
            client_body_temp_path temp; proxy_temp_path temp; fastcgi_temp_path temp; uwsgi_temp_path temp;
            scgi_temp_path temp;
            server {{ listen {impatient}; client_header_timeout 500ms; location / {{ return 200 hello; }} }}
            server {{
                {listens}
                listen {tls} ssl; ssl_certificate {certificate}; ssl_certificate_key {key};
                ssl_protocols TLSv1.2 TLSv1.3;
                root .;
                location = / {{ return 200 hello; }}
                location = /moved {{ return 302 /; }}
                location = /away {{ return 302 http://example.invalid/; }}
                location = /dead {{ return 302 http://127.0.0.1:1/; }}
                location = /chunked.html {{ ssi on; alias file.html; }}
                location /once {{ keepalive_timeout 0; return 200 hello; }}
            }}
        }}"
    )
}

#[test]
fn nginx_plain() {
    let Some(nginx) = Nginx::start() else { return };
    on_each(|backend| {
        let at = |path: &str, load: &str| {
            balanced(&format!("http://{}{path} {load} --backend {backend}", nginx.plain))
        };
        let kept = at("/", "-n 2000 -c 8");
        assert_eq!((account(&kept, "ok"), count(&kept, "/connections/opened")), (2_000, 8));
        let piped = at("/", "-n 2000 -c 8 --pipeline 8");
        assert_eq!((account(&piped, "ok"), count(&piped, "/statuses/200")), (2_000, 2_000));
        let closing = at("/once", "-n 50 -c 5");
        assert_eq!((account(&closing, "ok"), count(&closing, "/connections/opened")), (50, 50));
        let missing = at("/missing", "-n 50 -c 5");
        assert_eq!((errors(&missing, "status_4xx"), count(&missing, "/statuses/404")), (50, 50));
        let open = at("/", "--rate 500 -d 1s");
        assert_eq!((account(&open, "scheduled"), account(&open, "ok")), (500, 500));
    });
}

#[test]
fn nginx_bodies() {
    let Some(nginx) = Nginx::start() else { return };
    on_each(|backend| {
        let at = |path: &str, load: &str| {
            balanced(&format!("http://{}{path} {load} --backend {backend}", nginx.plain))
        };
        for path in ["/file.html", "/chunked.html"] {
            let result = at(path, "-n 40 -c 4");
            assert_eq!((account(&result, "ok"), count(&result, "/connections/opened")), (40, 4), "{path}");
            let received = count(&result, "/bytes/received");
            assert!(received > 40 * FILE_BYTES && received < 41 * FILE_BYTES, "{path}: {received}");
        }
        let heads = at("/file.html", "-n 40 -c 4 -X HEAD");
        assert_eq!((account(&heads, "ok"), count(&heads, "/connections/opened")), (40, 4));
        assert!(count(&heads, "/bytes/received") < 40 * 1_000, "{}", heads["bytes"]);
        let refused = at("/file.html", "-n 40 -c 4 -b text");
        assert_eq!(count(&refused, "/statuses/405"), 40, "nginx takes no POST for a file");
    });
}

#[test]
fn nginx_redirects() {
    let Some(nginx) = Nginx::start() else { return };
    let at = |path: &str, load: &str| balanced(&format!("http://{}{path} {load}", nginx.plain));
    let left = at("/moved", "-n 20 -c 2");
    assert_eq!((account(&left, "ok"), count(&left, "/statuses/302")), (20, 20));
    let followed = at("/moved", "-n 20 -c 2 --follow-redirects");
    assert_eq!((account(&followed, "ok"), count(&followed, "/statuses/200")), (20, 20));
    assert_eq!(account(&followed, "redirects_followed"), 20);
    let away = at("/away", "-n 20 -c 2 --follow-redirects --no-preflight");
    assert_eq!(errors(&away, "resolve"), 20, "there is no such host");
    // Symptom: the server that had redirected was asked for, as if it had refused the connection.
    let dead = at("/dead", "-n 20 -c 2 --follow-redirects");
    assert_eq!(errors(&dead, "connect_refused"), 20);
    let example = dead["error_examples"]["connect_refused"].as_str().unwrap_or_default();
    assert!(example.contains("connect to `127.0.0.1:1`: "), "{}", dead["error_examples"]);
}

#[test]
fn nginx_tls() {
    let Some(nginx) = Nginx::start() else { return };
    let (url, ca) = (format!("https://{}/", nginx.tls), &nginx.certificate.certificate);
    run(&url).assert_refused(1, "certificate");
    on_each(|backend| {
        for version in ["1.2", "1.3"] {
            let load = format!("--tls {version} -n 400 -c 4 --backend {backend}");
            for trust in [format!("--cacert {ca}"), "-k".to_owned()] {
                let result = balanced(&format!("{url} {load} {trust}"));
                assert_eq!(account(&result, "ok"), 400, "{}", result["errors"]);
                assert_eq!(
                    count(&result, &format!("/tls_versions/TLSv{version}")),
                    4,
                    "{}",
                    result["tls_versions"]
                );
                assert_eq!(count(&result, "/tls_time/count"), 4);
            }
        }
        let file = balanced(&format!("{url}file.html -k -n 20 -c 2 --backend {backend}"));
        assert_eq!(account(&file, "ok"), 20);
        assert!(count(&file, "/bytes/received") > 20 * FILE_BYTES);
    });
    let named = url.replace("127.0.0.1", "localhost");
    assert_eq!(account(&balanced(&format!("{named} -4 --cacert {ca} -n 10 -c 1")), "ok"), 10);
    let sni = format!("{url} --cacert {ca} --sni elsewhere.example");
    run(&sni).assert_refused(1, "certificate");
    let resumed = balanced(&format!("{url} --cacert {ca} -n 40 -c 2 --disable-keepalive"));
    assert!(count(&resumed, "/connections/tls_resumed") > 0, "{}", resumed["connections"]);
}

#[test]
fn nginx_unix_socket() {
    let Some(nginx) = Nginx::start() else { return };
    assert!(nginx.folder.path().is_dir());
    on_each(|backend| {
        let load = format!("http://localhost/ --unix-socket {} -n 1000 -c 4 --backend {backend}", nginx.unix);
        let result = balanced(&load);
        assert_eq!((account(&result, "ok"), count(&result, "/connections/opened")), (1_000, 4));
    });
}

/// Python's http.server with a folder in its root, and its URL.
fn python_http_server(folder: &Folder) -> Option<(Process, String)> {
    std::fs::create_dir_all(folder.path().join("folder")).expect("it is ours");
    folder.write("folder/index.html", "<p>hello</p>");
    let directory = folder.path().display().to_string();
    let arguments = ["-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", &directory];
    let mut server = python(&arguments)?;
    let line = server.stdout.wait_for("Serving HTTP on");
    let url = line.split(['(', ')']).find(|part| part.starts_with("http://")).expect("it says where");
    Some((server, url.to_owned()))
}

/// HTTP/1.0: every response ends with its connection.
#[test]
fn python_closes_every_connection() {
    let folder = Folder::new();
    let Some((_server, url)) = python_http_server(&folder) else { return };
    on_each(|backend| {
        let at = |path: &str, load: &str| balanced(&format!("{url}{path} {load} --backend {backend}"));
        let closing = at("folder/", "-n 60 -c 4");
        assert_eq!((account(&closing, "ok"), count(&closing, "/connections/opened")), (60, 60));
        let open = at("folder/", "--rate 50 -d 1s");
        assert_eq!(account(&open, "ok"), 50, "{}", open["errors"]);
        assert_eq!(errors(&at("missing", "-n 20 -c 2"), "status_4xx"), 20);
        assert_eq!(account(&at("folder/", "-n 20 -c 2 -X HEAD"), "ok"), 20);
    });
}

/// Python's http.server redirects a folder without its slash, and logs every request.
#[test]
fn python_redirects() {
    on_each(|backend| {
        let folder = Folder::new();
        let Some((server, url)) = python_http_server(&folder) else { return };
        let load = "-n 20 -c 2 --follow-redirects";
        let result = balanced(&format!("{url}folder {load} --backend {backend}"));
        assert_eq!((account(&result, "ok"), account(&result, "redirects_followed")), (20, 20));
        let warm = "--rate 50 --warmup 300ms -d 300ms --follow-redirects";
        let warmed = balanced(&format!("{url}folder {warm} --backend {backend}"));
        assert_eq!(account(&warmed, "redirects_followed"), account(&warmed, "ok"));
        server.signal("TERM");
        let log = server.finish().stderr;
        let logged = log.matches("\"GET /folder").count() as u64;
        assert_eq!(logged, delivered(&result) + delivered(&warmed), "{}", warmed["accounting"]);
    });
}

#[test]
fn our_sink_over_tls() {
    let folder = Folder::new();
    let Certificate { certificate, key } = Certificate::new(&folder);
    on_each(|backend| {
        let sink = Sink::start(&format!("--tls-cert {certificate} --tls-key {key} --backend {backend}"));
        let url = format!("https://{}/", sink.endpoint);
        let loads = ["-n 1000 -c 8", "-n 40 -c 4 --disable-keepalive", "--rate 500 -d 1s"];
        let mut requests = 0;
        for load in loads {
            let result = balanced(&format!("{url} {load} --cacert {certificate} --backend {backend}"));
            assert_eq!(account(&result, "ok"), account(&result, "started"), "{}", result["errors"]);
            requests += delivered(&result);
        }
        run(&format!("{url} --backend {backend}")).assert_refused(1, "certificate");
        assert_eq!(sink.stop().requests, requests, "a handshake that failed brought no request");
    });
}

#[test]
fn tls_and_plain_mixed_up() {
    let folder = Folder::new();
    let Certificate { certificate, key } = Certificate::new(&folder);
    on_each(|backend| {
        let plain = Sink::start(&format!("--backend {backend}"));
        let tls = Sink::start(&format!("--tls-cert {certificate} --tls-key {key} --backend {backend}"));
        for (url, message, class) in [
            (format!("https://{}/", plain.endpoint), "the peer does not speak TLS on this port", "tls"),
            (format!("http://{}/", tls.endpoint), "speaks TLS, and was sent plain HTTP", "protocol"),
        ] {
            let common = format!("{url} --backend {backend}");
            run(&common).assert_refused(1, message);
            let result = balanced(&format!("{common} -n 20 -c 4 --no-preflight"));
            assert_eq!(errors(&result, class), 20, "{url}: {}", result["errors"]);
            assert_eq!(account(&result, "ok"), 0);
        }
    });
}

#[test]
fn our_sink_over_a_unix_socket_and_ipv6() {
    let folder = Folder::new();
    on_each(|backend| {
        let path = folder.file(backend);
        let unix = Sink::listen(&format!("unix:{path}"), &format!("--backend {backend}"));
        let load = format!("-n 1000 -c 8 --backend {backend}");
        let result = balanced(&format!("http://localhost/ --unix-socket {path} {load}"));
        assert_eq!(account(&result, "ok"), 1_000, "{}", result["errors"]);
        assert_eq!(unix.stop().requests, delivered(&result));
        let v6 = Sink::listen("[::1]:0", &format!("--backend {backend}"));
        let result = balanced(&format!("{} {load}", v6.url()));
        assert_eq!(account(&result, "ok"), 1_000, "{}", result["errors"]);
        assert_eq!(v6.stop().requests, delivered(&result));
    });
}
