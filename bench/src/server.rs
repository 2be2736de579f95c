//! The servers that the tools are measured against.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use crate::child::{Background, Line};

/// Time for a server to come up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which program serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerKind {
    /// plimsoll's sink
    Sink,
    /// nginx with one worker
    Nginx,
}

/// A server to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerSpec {
    pub(crate) kind: ServerKind,
    pub(crate) tls: bool,
    /// CPU time that the server burns per request.
    pub(crate) work_us: Option<u32>,
}

/// A server that accepts connections, until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    process: Background,
    pub(crate) url: String,
    /// As it was called.
    pub(crate) typed: String,
}

impl ServerSpec {
    /// For the heading of a table.
    pub(crate) fn describe(self) -> String {
        let kind = match self.kind {
            ServerKind::Sink => "the sink",
            ServerKind::Nginx => "nginx (`return 200`)",
        };
        let work = self.work_us.map_or(String::new(), |us| format!(", {us} µs of work per request"));
        format!("{kind}{}{work}", if self.tls { ", TLS" } else { "" })
    }

    /// Programs that it takes, with their Debian packages.
    pub(crate) fn packages(self) -> Vec<(&'static str, &'static str)> {
        let nginx = (self.kind == ServerKind::Nginx).then_some(("nginx", "nginx-light"));
        let openssl = self.tls.then_some(("openssl", "openssl"));
        nginx.into_iter().chain(openssl).collect()
    }

    /// Starts it on a free port of `core`, and returns when it accepts connections.
    pub(crate) fn start(self, plimsoll: &Path, core: u32, scratch: &Path) -> Result<Server, String> {
        let port = free_port()?;
        if self.tls {
            make_certificate(scratch)?;
        }
        let line = match self.kind {
            ServerKind::Sink => self.sink_line(plimsoll, port, scratch),
            ServerKind::Nginx => {
                let configuration = scratch.join("nginx.conf");
                fs::write(&configuration, nginx_configuration(port, self.tls, scratch))
                    .map_err(|error| format!("{}: {error}", configuration.display()))?;
                Line::new(["nginx", "-p", &scratch.to_string_lossy(), "-c", &configuration.to_string_lossy()])
            }
        };
        let process = Background::start(&line, core, scratch)?;
        let scheme = if self.tls { "https" } else { "http" };
        let url = format!("{scheme}://127.0.0.1:{port}/");
        let mut server = Server { process, url, typed: line.typed() };
        server.await_port(port)?;
        Ok(server)
    }

    fn sink_line(self, plimsoll: &Path, port: u16, scratch: &Path) -> Line {
        let listen = format!("127.0.0.1:{port}");
        let mut line = Line::new([&plimsoll.to_string_lossy(), "sink", "--quiet"]).and([
            "--listen",
            &listen,
            "--threads",
            "1",
        ]);
        if let Some(us) = self.work_us {
            line = line.and(["--work", &format!("{us}us")]);
        }
        if self.tls {
            let (certificate, key) = (scratch.join("cert.pem"), scratch.join("key.pem"));
            line =
                line.and(["--tls-cert", &certificate.to_string_lossy(), "--tls-key", &key.to_string_lossy()]);
        }
        line
    }
}

impl Server {
    fn await_port(&mut self, port: u16) -> Result<(), String> {
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            self.process.check()?;
            if began.elapsed() > PATIENCE {
                return Err(format!("does not accept connections: {}", self.typed));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // Another server on the port would also accept.
        self.process.check()
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16, String> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| format!("no free port: {error}"))
}

/// A self-signed P-256 certificate, made once.
fn make_certificate(scratch: &Path) -> Result<(), String> {
    let (certificate, key) = (scratch.join("cert.pem"), scratch.join("key.pem"));
    if certificate.exists() {
        return Ok(());
    }
    let output = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-days",
            "2",
        ])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .map_err(|error| format!("openssl: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("openssl: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// One worker, no log, connections that are never closed for having served enough requests.
fn nginx_configuration(port: u16, tls: bool, scratch: &Path) -> String {
    let folder = scratch.to_string_lossy();
    let (suffix, certificate) = if tls {
        (" ssl", format!("ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;"))
    } else {
        ("", String::new())
    };
    format!(
        "daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
events {{ worker_connections 32768; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port}{suffix} backlog=16384;
    {certificate}
    location / {{ return 200 \"ok\"; }}
  }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_of_nginx_is_balanced_and_names_the_port() {
        for tls in [false, true] {
            let text = nginx_configuration(8081, tls, Path::new("/scratch"));
            assert_eq!(text.matches('{').count(), text.matches('}').count());
            assert_eq!(text.contains("listen 127.0.0.1:8081 ssl backlog"), tls);
            assert_eq!(text.contains("ssl_certificate /scratch/cert.pem;"), tls);
        }
    }

    #[test]
    fn the_sink_is_told_everything() {
        let spec = ServerSpec { kind: ServerKind::Sink, tls: true, work_us: Some(20) };
        let typed = spec.sink_line(Path::new("plimsoll"), 8081, Path::new("/scratch")).typed();
        let expected = "plimsoll sink --quiet --listen 127.0.0.1:8081 --threads 1 --work 20us \
                        --tls-cert /scratch/cert.pem --tls-key /scratch/key.pem";
        assert_eq!(typed, expected);
    }
}
