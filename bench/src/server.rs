//! The servers under load: our own, nginx and nghttpd, each with one thread on its own core.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::child::Running;
use crate::command::{self, Pinned};
use crate::failure::{Failure, Result};
use crate::machine;
use crate::session::Session;

/// A server that a load can run against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Serves {
    /// `plimsoll sink`, with further flags.
    Sink(Vec<String>),
    /// The sink with TLS.
    SinkTls,
    /// `plimsoll target` and the name of the target, with further flags.
    Target(&'static str, Vec<String>),
    /// nginx, `return 200 "ok"`.
    Nginx,
    /// nginx with TLS 1.3.
    NginxTls,
    /// nginx with HTTP/2, without TLS.
    NginxH2c,
    /// nghttpd with a file of two bytes, HTTP/2 without TLS.
    Nghttpd,
    /// redis-server, which writes nothing to disk.
    Redis,
    /// This program's relay to a server, named by host and port.
    Relay(String),
}

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    running: Running,
    /// URL of the server, such as `http://127.0.0.1:41234/`.
    pub(crate) url: String,
    /// The command line that started it.
    pub(crate) line: String,
    /// File that receives its stderr.
    log: PathBuf,
}

/// Time limit for a server to become usable.
const START: Duration = Duration::from_secs(10);
/// Interval at which a starting server is checked.
const LOOK: Duration = Duration::from_millis(20);

impl Server {
    pub(crate) fn start(session: &Session, serves: &Serves) -> Result<Self> {
        match serves {
            Serves::Sink(flags) => own(session, &["sink"], flags, "http"),
            Serves::Target(name, flags) => own(session, &["target", name], flags, "http"),
            Serves::SinkTls => {
                let (cert, key) = certificate(session)?;
                let flags = ["--tls-cert".to_owned(), cert, "--tls-key".to_owned(), key];
                own(session, &["sink"], &flags, "https")
            }
            Serves::Nginx => nginx(session, Listens::Plain),
            Serves::NginxTls => nginx(session, Listens::Tls),
            Serves::NginxH2c => nginx(session, Listens::H2c),
            Serves::Nghttpd => nghttpd(session),
            Serves::Redis => redis(session),
            Serves::Relay(to) => relay(session, to),
        }
    }

    /// CPU time that it used up to now, in microseconds.
    pub(crate) fn cpu_us(&self) -> Result<f64> {
        machine::process_cpu_us(self.running.pid())
    }

    /// Returns the process id of the server.
    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Interrupts it, waits for its end, and returns its whole stderr.
    pub(crate) fn stop(self) -> Result<String> {
        let Self { running, line, log, .. } = self;
        let failed = |error: &dyn std::fmt::Display| Failure::because(format!("cannot stop `{line}`"), error);
        running.interrupt().map_err(|error| failed(&error))?;
        let usage = running.finish(START).map_err(|error| failed(&error))?;
        let said = fs::read_to_string(&log).map_err(|error| failed(&error))?;
        match usage.code {
            0 => Ok(said),
            code => Err(failed(&format!("exit code {code}: {}", said.trim()))),
        }
    }

    /// Host and port of its URL.
    pub(crate) fn authority(&self) -> &str {
        self.url.split("//").nth(1).unwrap_or_default().trim_end_matches('/')
    }
}

fn own(session: &Session, command: &[&str], flags: &[String], scheme: &str) -> Result<Server> {
    let mut args: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    if !flags.iter().any(|flag| flag == "--listen") {
        args.extend(["--listen", "127.0.0.1:0"].map(str::to_owned));
    }
    // A node of the reference cluster has one for its API, and cannot have more.
    if !command.contains(&"crud-node") {
        args.extend(["--threads", "1"].map(str::to_owned));
    }
    args.extend_from_slice(flags);
    let pinned = session.on_server_core(&session.plimsoll, &args);
    // It says on stderr which port it was given.
    let log = session.directory().join("own.log");
    start(session, &pinned, &log, || said(&log, scheme))
}

/// The relay of this program, before the server at `to`.
fn relay(session: &Session, to: &str) -> Result<Server> {
    let own = std::env::current_exe().map_err(|error| Failure::because("cannot find this program", error))?;
    let log = session.directory().join("relay.log");
    start(session, &session.on_server_core(&own, &["relay", to]), &log, || said(&log, "http"))
}

/// The URL of a server that says in `log` where it listens.
fn said(log: &Path, scheme: &str) -> Option<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    // The line is complete when there is another one, or its end.
    let (_, rest) = text.split_once("listening on ")?;
    let (authority, _) = rest.split_once('\n')?;
    let authority = authority.trim_start_matches("https://").trim_start_matches("http://");
    Some(format!("{scheme}://{}/", authority.trim_end_matches('/')))
}

/// Protocol that nginx speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Listens {
    Plain,
    Tls,
    H2c,
}

fn nginx(session: &Session, listens: Listens) -> Result<Server> {
    let nginx = command::find("nginx")?;
    let directory = session.directory();
    let port = free_port()?;
    let (scheme, parameter, tls) = match listens {
        Listens::Plain => ("http", "", String::new()),
        Listens::H2c => ("http", " http2", String::new()),
        Listens::Tls => {
            let (cert, key) = certificate(session)?;
            let tls = format!("ssl_certificate {cert}; ssl_certificate_key {key}; ssl_protocols TLSv1.3;");
            ("https", " ssl", tls)
        }
    };
    let configuration = nginx_configuration(directory, port, parameter, &tls);
    let (file, log) = (directory.join("nginx.conf"), directory.join("nginx.log"));
    fs::write(&file, configuration)
        .map_err(|error| Failure::because(format!("cannot write {}", file.display()), error))?;
    let [prefix, file, errors] = [directory, &file, &log].map(|path| path.display().to_string());
    let pinned = session.on_server_core(&nginx, &["-p", &prefix, "-c", &file, "-e", &errors]);
    start(session, &pinned, &directory.join("nginx.err"), || connectable(scheme, port))
}

fn nghttpd(session: &Session) -> Result<Server> {
    let nghttpd = command::find("nghttpd")?;
    let content = session.directory().join("htdocs");
    let file = content.join("index.html");
    fs::create_dir_all(&content)
        .and_then(|()| fs::write(&file, "ok"))
        .map_err(|error| Failure::because(format!("cannot write {}", file.display()), error))?;
    let (port, content) = (free_port()?, content.display().to_string());
    let args = ["--no-tls", "-n", "1", "-a", "127.0.0.1", "-d", &content, &port.to_string()];
    let pinned = session.on_server_core(&nghttpd, &args);
    start(session, &pinned, &session.directory().join("nghttpd.err"), || connectable("http", port))
}

fn redis(session: &Session) -> Result<Server> {
    let redis = command::find("redis-server")?;
    let port = free_port()?;
    let number = port.to_string();
    let args = ["--port", &number, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"];
    let directory = session.directory().display().to_string();
    let pinned = session.on_server_core(&redis, &[&args[..], &[&directory]].concat());
    start(session, &pinned, &session.directory().join("redis.err"), || connectable("redis", port))
}

/// The URL of a server that does not say when it is ready: once it can be connected to.
fn connectable(scheme: &str, port: u16) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect(address).ok().map(|_| format!("{scheme}://{address}/"))
}

/// Starts a server and waits until `ready` knows its URL. `log` takes its stderr.
fn start(
    session: &Session,
    pinned: &Pinned,
    log: &Path,
    ready: impl Fn() -> Option<String>,
) -> Result<Server> {
    let cannot = |error: &dyn std::fmt::Display| Failure::because(format!("cannot start `{pinned}`"), error);
    let file = File::create(log).map_err(|error| cannot(&error))?;
    let mut command = pinned.command();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(file));
    let running = Running::start(&mut command).map_err(|error| cannot(&error))?;
    for _ in 0..START.as_millis() / LOOK.as_millis() {
        if let Some(url) = ready() {
            let line = pinned.line(session.directory());
            return Ok(Server { running, url, line, log: log.to_owned() });
        }
        if running.ends_within(LOOK).map_err(|error| cannot(&error))? {
            return Err(cannot(&fs::read_to_string(log).unwrap_or_default().trim()));
        }
    }
    Err(cannot(&format!("not ready within {} s", START.as_secs())))
}

/// A port that nothing listens on. Other people's servers have to be told one; should somebody else take it
/// first, they say so.
fn free_port() -> Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Failure::because("cannot find a free port", error))
}

/// One process without a master, so that ending it leaves no worker behind; it serves like the one worker
/// that it would start. `parameter` says how it listens, `tls` holds further directives.
fn nginx_configuration(directory: &Path, port: u16, parameter: &str, tls: &str) -> String {
    let directory = directory.display();
    let spools: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("  {name}_temp_path {directory}/{name};\n"))
        .concat();
    format!(
        "daemon off;
master_process off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/nginx.log;
events {{ worker_connections 16384; }}
http {{
  access_log off;
  keepalive_requests 100000000;
{spools}  server {{
    listen 127.0.0.1:{port}{parameter} backlog=4096;
    {tls}
    location / {{ return 200 \"ok\"; }}
  }}
}}
"
    )
}

/// A self-signed P-256 certificate and its key, as paths of PEM files. Made once per session.
fn certificate(session: &Session) -> Result<(String, String)> {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| session.directory().join(name));
    let paths = (cert.display().to_string(), key.display().to_string());
    if cert.is_file() {
        return Ok(paths);
    }
    let made = Command::new(command::find("openssl")?)
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-out", &paths.0, "-keyout", &paths.1])
        .output()
        .map_err(|error| Failure::because("cannot start openssl", error))?;
    if made.status.success() {
        Ok(paths)
    } else {
        Err(Failure::because("openssl made no certificate", String::from_utf8_lossy(&made.stderr).trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_writes_only_below_the_directory() {
        let plain = nginx_configuration(Path::new("/d"), 8081, "", "");
        assert!(plain.contains("listen 127.0.0.1:8081 backlog=4096;"), "{plain}");
        assert!(!plain.contains("ssl"), "{plain}");
        assert_eq!(plain.matches("temp_path /d/").count(), 5, "{plain}");
        assert_eq!(plain.matches('{').count(), plain.matches('}').count());
        let tls = nginx_configuration(Path::new("/d"), 8081, " ssl", "ssl_certificate /d/c;");
        assert!(tls.contains("listen 127.0.0.1:8081 ssl backlog=4096;"), "{tls}");
        assert!(tls.contains("\n    ssl_certificate /d/c;\n"), "{tls}");
    }
}
