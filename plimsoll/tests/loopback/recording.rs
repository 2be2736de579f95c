//! `plimsoll record`: a session passes through the proxy, and its plan replays with fresh values.

mod authority;
mod browser;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::loopback::process::{Folder, Process, plimsoll, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance};

/// A shop in which every value is good for one session only: a form with a token against forgery, a login
/// that redirects, an account with a token, and orders.
#[derive(Debug, Default)]
struct Shop {
    made: u64,
    /// The token of the form that a visit was given.
    forms: HashMap<String, String>,
    /// The account of a session.
    sessions: HashMap<String, String>,
    /// The account and its number by its token.
    tokens: HashMap<String, u64>,
    orders: HashMap<String, String>,
    refused: Vec<String>,
}

impl Shop {
    fn start() -> (String, Arc<Mutex<Self>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("an address").to_string();
        let shop = Arc::new(Mutex::new(Self::default()));
        let shared = Arc::clone(&shop);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shop = Arc::clone(&shared);
                std::thread::spawn(move || Self::serve(&shop, &stream));
            }
        });
        (address, shop)
    }

    fn serve(shop: &Mutex<Self>, stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                match line.trim_end() {
                    "" => break,
                    line => lines.push(line.to_owned()),
                }
            }
            let field = |name: &str| {
                lines.iter().find_map(|line| {
                    let (known, value) = line.split_once(':')?;
                    known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
                })
            };
            let mut body =
                vec![0; field("content-length").map_or(0, |length| length.parse().expect("a length"))];
            reader.read_exact(&mut body).ok()?;
            let body = String::from_utf8(body).expect("bodies are text");
            let mut words = lines[0].split(' ');
            let (method, path) = (words.next()?, words.next()?);
            let cookies = field("cookie").unwrap_or_default();
            let authorization = field("authorization").unwrap_or_default();
            let mut shop = shop.lock().expect("no test panics within");
            let (status, fields, content) = shop.answer(method, path, &cookies, &authorization, &body);
            if status == 403 {
                shop.refused.push(lines[0].clone());
            }
            drop(shop);
            let mut stream = stream;
            let length = content.len();
            write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{fields}\r\n{content}")
                .ok()?;
        }
    }

    /// A value that was never there before.
    fn fresh(&mut self, what: &str) -> String {
        self.made += 1;
        format!("{what}{:08x}", self.made.wrapping_mul(2_654_435_761) & 0xffff_ffff)
    }

    /// Status, fields and body.
    fn answer(
        &mut self,
        method: &str,
        path: &str,
        cookies: &str,
        authorization: &str,
        body: &str,
    ) -> (u16, String, String) {
        let cookie = |name: &str| {
            let pairs = cookies.split("; ").filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
        };
        let refused = (403, String::new(), "stale".to_owned());
        let session = cookie("session").and_then(|session| self.sessions.get(&session).cloned());
        match (method, path) {
            ("GET", "/login") => {
                let (visit, form) = (self.fresh("v"), self.fresh("f+/"));
                self.forms.insert(visit.clone(), form.clone());
                let page = format!("<form>\n<input type=hidden name=\"csrf\" value=\"{form}\">\n</form>");
                (200, format!("set-cookie: visit={visit}; Path=/\r\ncontent-type: text/html\r\n"), page)
            }
            ("POST", "/login") => {
                let form = cookie("visit").and_then(|visit| self.forms.remove(&visit));
                let sent = body
                    .strip_prefix("user=ann%40shop.example&csrf=")
                    .map(|csrf| csrf.replace("%2B", "+").replace("%2F", "/"));
                if form.is_none() || form != sent {
                    return refused;
                }
                let (session, account) = (self.fresh("s"), self.fresh("a"));
                self.sessions.insert(session.clone(), account.clone());
                let fields =
                    format!("location: /accounts/{account}\r\nset-cookie: session={session}; Path=/\r\n");
                (302, fields, String::new())
            }
            ("GET", path)
                if path.strip_prefix("/accounts/").map(str::to_owned) == session && session.is_some() =>
            {
                let token = self.fresh("t");
                let number = 100 + self.made;
                self.tokens.insert(token.clone(), number);
                let fields = "content-type: application/json\r\n".to_owned();
                (200, fields, format!(r#"{{"account": {{"token": "{token}", "id": {number}}}}}"#))
            }
            ("POST", "/orders") => {
                let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
                let number = self.tokens.remove(token);
                if session.is_none()
                    || number
                        .is_none_or(|number| body != format!(r#"{{"account": {number}, "item": "book"}}"#))
                {
                    return refused;
                }
                self.made += 1;
                let id = self.made.to_string();
                self.orders.insert(id.clone(), session.unwrap_or_default());
                (201, String::new(), format!(r#"{{"id": "{id}"}}"#))
            }
            ("GET", path) => match path.strip_prefix("/orders/").and_then(|id| self.orders.remove(id)) {
                Some(owner) if Some(&owner) == session.as_ref() => (200, String::new(), "{}".to_owned()),
                _ => refused,
            },
            _ => refused,
        }
    }
}

/// The proxy, and what it writes to.
struct Recorder {
    process: Process,
    folder: Folder,
    proxy: String,
}

impl Recorder {
    fn start(flags: &str) -> Self {
        let folder = Folder::new();
        let (plan, ca, har) = (folder.file("plan.yaml"), folder.file("ca"), folder.file("session.har"));
        let mut process = Process::start(plimsoll(&format!(
            "record {plan} --listen 127.0.0.1:0 --ca {ca} --har {har} {flags}"
        )));
        let line = process.stderr.wait_for("listening on ");
        let proxy = line.rsplit(' ').next().expect("an address").to_owned();
        Self { process, folder, proxy }
    }

    /// Sends a request through the proxy as a browser would, and returns head and body of the response.
    fn curl(&self, args: &[&str]) -> String {
        let jar = self.folder.file("jar");
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--include", "--max-time", "20", "--noproxy", ""]);
        command.args(["--cookie", &jar, "--cookie-jar", &jar, "--proxy", &format!("http://{}", self.proxy)]);
        let output = command.args(args).output().expect("curl is installed");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Ends the recording: the plan's file, and everything that was told.
    fn end(self) -> (Folder, String, String) {
        self.process.signal("INT");
        let finished = self.process.finish();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        let plan = self.folder.file("plan.yaml");
        (self.folder, plan, finished.stderr)
    }
}

/// The text between two others.
fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("`{before}` is not in {text}"));
    rest.split(after).next().expect("there is a first part")
}

/// A visit from the login to an order.
fn visit(recorder: &Recorder, shop: &str) {
    let url = |path: &str| format!("http://{shop}{path}");
    let page = recorder.curl(&[&url("/login")]);
    let csrf = between(&page, "name=\"csrf\" value=\"", "\"").to_owned();
    let (user, csrf) = ("user=ann%40shop.example", format!("csrf={csrf}"));
    let redirect = recorder.curl(&["--data", user, "--data-urlencode", &csrf, &url("/login")]);
    let location = between(&redirect, "location: ", "\r").to_owned();
    let of_account = recorder.curl(&[&url(&location)]);
    let (token, number) = (between(&of_account, "token\": \"", "\""), between(&of_account, "id\": ", "}"));
    let order = format!(r#"{{"account": {number}, "item": "book"}}"#);
    let authorization = format!("authorization: Bearer {token}");
    let typed = ["-H", "content-type: application/json", "-H", authorization.as_str()];
    let created = recorder.curl(&[&typed[..], &["--data", &order, &url("/orders")]].concat());
    let id = between(&created, "id\": \"", "\"").to_owned();
    assert!(recorder.curl(&[&url(&format!("/orders/{id}"))]).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_session_with_login_token_and_redirect_replays_with_fresh_values() {
    let (address, shop) = Shop::start();
    let recorder = Recorder::start("--no-think --expect-status");
    visit(&recorder, &address);
    let (folder, plan, told) = recorder.end();
    assert!(told.contains("5 requests in "), "{told}");
    assert_eq!(shop.lock().expect("it goes on").refused, [""; 0]);
    let result = run(&format!("run {plan} -n 20 -c 2 -o json")).result();
    assert_balance(&result);
    let written = std::fs::read_to_string(&plan).expect("there is a plan");
    assert_eq!(shop.lock().expect("it goes on").refused, [""; 0], "{written}");
    assert_eq!(account(&result, "ok"), 100, "{written}");
    assert_eq!(shop.lock().expect("it goes on").orders.len(), 0);

    // As it was recorded, every value is stale.
    let har = folder.file("session.har");
    let stale = run(&format!("import har {har} --no-correlate --no-think"));
    let stale = folder.write("stale.yaml", stale.stdout);
    let result = run(&format!("run {stale} -n 2 -c 1 -o json")).result();
    assert_eq!(account(&result, "ok"), 2, "the form alone");
}

#[test]
fn tls_is_recorded_by_a_certificate_of_its_own() {
    let sink = Sink::start("--self-signed");
    let recorder = Recorder::start("-k --no-think");
    let ca = format!("{}/ca.pem", recorder.folder.file("ca"));
    let url = format!("https://{}/x?y=1", sink.endpoint);
    let answer = recorder.curl(&["--cacert", &ca, "--data-binary", "@/bin/true", &url]);
    assert!(answer.contains("200"), "{answer}");
    // A client that does not trust it is told of, once.
    let untrusting = Command::new("curl")
        .args(["--silent", "--noproxy", "", "--proxy", &format!("http://{}", recorder.proxy), &url])
        .status();
    assert!(!untrusting.expect("curl is installed").success());
    let (folder, plan, told) = recorder.end();
    assert!(told.contains("not recorded") && told.contains("trust"), "{told}");
    let written = std::fs::read_to_string(&plan).expect("there is a plan");
    assert!(written.contains("post: /x?y=1") && written.contains("body_file"), "{written}");
    let result = run(&format!("run {plan} -k -n 3 -c 1 -o json")).result();
    assert_eq!(account(&result, "ok"), 3, "{written}");
    assert_eq!(sink.stop().truth.of_run(&result).count(), 3);
    let name = between(&written, "body_file: ", "\n").to_owned();
    let kept = std::fs::read(folder.file(&name)).expect("the body is beside the plan");
    assert_eq!(kept, std::fs::read("/bin/true").expect("there is one"));
}

#[test]
fn mistakes_are_told() {
    let folder = Folder::new();
    let (plan, ca) = (folder.file("plan.yaml"), folder.file("ca"));
    let open = run(&format!("record {plan} --ca {ca} --listen 0.0.0.0:0"));
    assert_eq!(open.code, Some(1), "{}", open.stderr);
    assert!(open.stderr.contains("others could use this proxy"), "{}", open.stderr);
    let nowhere = run(&format!("record {}/none/plan.yaml --ca {ca}", folder.file("")));
    assert!(nowhere.stderr.contains("cannot write"), "{}", nowhere.stderr);
    let recorder = Recorder::start("");
    // A browser that opens the proxy as a page, a host that is not there, and a protocol that is not
    // recorded.
    let page = recorder.curl(&["--noproxy", "*", &format!("http://{}/", recorder.proxy)]);
    assert!(page.contains("set it as the HTTP proxy"), "{page}");
    let dead = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    let answer = recorder.curl(&[&format!("http://{dead}/")]);
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("refused"), "{answer}");
    // A server whose certificate nobody vouches for, without -k.
    let sink = Sink::start("--self-signed");
    let ca = format!("{}/ca.pem", recorder.folder.file("ca"));
    let answer = recorder.curl(&["--cacert", &ca, &format!("https://{}/", sink.endpoint)]);
    assert!(answer.contains("HTTP/1.1 502") && answer.contains("ertificate"), "{answer}");
    let socket = ["-H", "connection: upgrade", "-H", "upgrade: websocket", "http://127.0.0.1:1/"];
    assert!(recorder.curl(&socket).starts_with("HTTP/1.1 501"));
    let process = recorder.process;
    process.signal("INT");
    let finished = process.finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("nothing was recorded"), "{}", finished.stderr);
}
