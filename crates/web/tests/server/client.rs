//! A server of a test's own, and requests to it byte by byte.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;

use plimsoll_web::{CommandFlags, Listen, Options, serve};
use serde_json::{Value, json};

/// A folder that goes with this.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("plimsoll-web-test-{}-{number}", std::process::id()));
        fs::create_dir_all(path.join("opened")).expect("the temporary folder can be written");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in the folder that is opened.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join("opened").join(name), text).expect("the folder can be written");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that lives as long as the process of the tests.
pub(crate) struct Server {
    /// `127.0.0.1:PORT`
    pub(crate) address: String,
    pub(crate) token: String,
    pub(crate) folder: Folder,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        let body =
            if head.contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_owned() };
        Self { status, head: head.to_owned(), body }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A field of the head.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// Asserts that it is a refusal with this status, with a hint.
    pub(crate) fn assert_refused(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
        let object = self.json();
        assert!(object["error"].as_str().is_some_and(|error| !error.is_empty()), "{self:?}");
        assert!(object["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{self:?}");
    }
}

fn unchunked(mut text: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("the size of a chunk");
        body.push_str(&rest[..size]);
        text = rest[size..].trim_start_matches("\r\n");
        if size == 0 {
            break;
        }
    }
    body
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// Starts one with other options.
    pub(crate) fn start_with(amend: impl FnOnce(&mut Options)) -> Self {
        let folder = Folder::new();
        let mut options = Options {
            listen: Listen::Tcp("127.0.0.1:0".parse().expect("an address")),
            hosts: Vec::new(),
            identity: None,
            token: None,
            folder: folder.path().join("opened"),
            store: Some(folder.path().join("history.db")),
            program: "/bin/false".into(),
            temporary: folder.path().to_owned(),
            run_flags: CommandFlags::default(),
            find_flags: CommandFlags::default(),
            cluster_flags: CommandFlags::default(),
            closest: |_, _| None,
            clusters: true,
            forms: json!({"commands": []}),
            schema: |name| (name == "plan").then(|| json!({"title": "A plan"})),
            lives: |_, _| true,
            process: |_| None,
            given: Vec::new(),
            version: "1.2.3",
        };
        amend(&mut options);
        let (send, said) = channel();
        std::thread::spawn(move || {
            serve(options, |text| {
                let _ = send.send(text.to_owned());
            })
        });
        let said = said.recv().expect("it says where it listens");
        let (before, token) = said.split_once("/#token=").expect("a token");
        let address = before.rsplit("//").next().expect("an address").to_owned();
        Self { address, token: token.to_owned(), folder }
    }

    /// Sends bytes, and reads up to the end of the connection.
    pub(crate) fn send(&self, bytes: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        // A server that refuses a large body closes before all of it was sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Reply::of(&String::from_utf8_lossy(&answer))
    }

    /// The head and body of a request as our page makes it, but for its fields.
    pub(crate) fn request(&self, line: &str, fields: &[(&str, &str)], body: &str) -> Reply {
        let mut text = format!("{line} HTTP/1.1\r\nconnection: close\r\n");
        for (name, value) in fields {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.send(text.as_bytes())
    }

    /// The origin of our page.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Exchanges the token for a cookie.
    pub(crate) fn session(&self) -> String {
        let origin = self.origin();
        let body = json!({"token": self.token}).to_string();
        let reply = self.request("POST /api/session", &self.post_fields(&origin), &body);
        assert_eq!(reply.status, 200, "{reply:?}");
        let cookie = reply.field("set-cookie").expect("a cookie");
        cookie.split(';').next().expect("a pair").to_owned()
    }

    /// Fields of a POST without a session.
    pub(crate) fn post_fields<'a>(&'a self, origin: &'a str) -> Vec<(&'a str, &'a str)> {
        vec![
            ("host", &self.address),
            ("origin", origin),
            ("sec-fetch-site", "same-origin"),
            ("x-plimsoll-ui", "1"),
            ("content-type", "application/json"),
        ]
    }

    pub(crate) fn get(&self, cookie: &str, path: &str) -> Reply {
        self.request(&format!("GET {path}"), &[("host", &self.address), ("cookie", cookie)], "")
    }

    pub(crate) fn post(&self, cookie: &str, path: &str, body: &Value) -> Reply {
        let origin = self.origin();
        let mut fields = self.post_fields(&origin);
        fields.push(("cookie", cookie));
        self.request(&format!("POST {path}"), &fields, &body.to_string())
    }
}
