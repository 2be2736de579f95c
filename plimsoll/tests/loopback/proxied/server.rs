//! A small proxy: CONNECT, requests in absolute form, and SOCKS5. It notes what it is asked for.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// The ways of a proxy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// `user:password` that it wants.
    pub(crate) credentials: Option<&'static str>,
    /// Time before a tunnel is made.
    pub(crate) delay: Duration,
    /// URL to which the proxy redirects the requests that it is handed.
    pub(crate) redirects: Option<String>,
}

impl Options {
    // The delay is what is measured, from outside.
    #[allow(clippy::disallowed_methods)]
    fn wait(&self) {
        thread::sleep(self.delay);
    }
}

/// Something that the proxy was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The first line of a request, or `SOCKS5 host:port`.
    pub(crate) line: String,
    /// The value of Proxy-Authorization.
    pub(crate) authorization: Option<String>,
}

/// A running proxy, which lives as long as the test.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Asked>>>,
}

impl Proxy {
    /// Starts a proxy on a free port of 127.0.0.1.
    pub(crate) fn start(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::<Mutex<Vec<Asked>>>::default();
        let noted = Arc::clone(&seen);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let side = Side { options: options.clone(), seen: Arc::clone(&noted) };
                // A client that breaks off has seen enough.
                thread::spawn(move || drop(side.serve(client)));
            }
        });
        Self { address, seen }
    }

    /// Everything that it was asked for.
    pub(crate) fn seen(&self) -> Vec<Asked> {
        self.seen.lock().expect("nobody panicked with it").clone()
    }
}

/// One connection of a client.
struct Side {
    options: Options,
    seen: Arc<Mutex<Vec<Asked>>>,
}

impl Side {
    fn note(&self, line: String, authorization: Option<String>) {
        self.seen.lock().expect("nobody panicked with it").push(Asked { line, authorization });
    }

    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut first = [0];
        client.read_exact(&mut first)?;
        if first == [5] {
            return self.socks5(client);
        }
        let mut begun = first.to_vec();
        let mut server: Option<TcpStream> = None;
        while let Some((head, body)) = message(&mut client, std::mem::take(&mut begun))? {
            let line = head.lines().next().unwrap_or_default().to_owned();
            let authorization = field(&head, "proxy-authorization");
            let wanted =
                self.options.credentials.map(|user| format!("Basic {}", BASE64_STANDARD.encode(user)));
            let permitted = wanted.is_none() || wanted == authorization;
            self.note(line.clone(), authorization);
            let [method, target, _] = line.split(' ').collect::<Vec<_>>()[..] else { return Ok(()) };
            if !permitted {
                let answer = "HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\
                              content-length: 0\r\n\r\n";
                client.write_all(answer.as_bytes())?;
                continue;
            }
            if method == "CONNECT" {
                self.options.wait();
                let Ok(server) = TcpStream::connect(target) else {
                    return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
                };
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
                return splice(client, server);
            }
            if let Some(location) = &self.options.redirects {
                write!(client, "HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")?;
                continue;
            }
            let url = target.strip_prefix("http://").ok_or(io::ErrorKind::InvalidData)?;
            let slash = url.find('/').unwrap_or(url.len());
            let mut upstream = match server.take() {
                Some(server) => server,
                None => TcpStream::connect(&url[..slash])?,
            };
            let fields = head.lines().skip(1).filter(|line| !line.to_ascii_lowercase().starts_with("proxy-"));
            let fields: String = fields.map(|line| format!("{line}\r\n")).collect();
            write!(upstream, "{method} {} HTTP/1.1\r\n{fields}", &url[slash..])?;
            upstream.write_all(&body)?;
            let (head, body) = message(&mut upstream, Vec::new())?.ok_or(io::ErrorKind::UnexpectedEof)?;
            client.write_all(head.as_bytes())?;
            client.write_all(&body)?;
            server = Some(upstream);
        }
        Ok(())
    }

    /// The rest of SOCKS5 behind its first byte.
    fn socks5(&self, mut client: TcpStream) -> io::Result<()> {
        let methods = text(&mut client)?;
        match self.options.credentials {
            None => client.write_all(&[5, 0])?,
            Some(_) if !methods.contains(&2) => return client.write_all(&[5, 0xff]),
            Some(wanted) => {
                client.write_all(&[5, 2])?;
                take::<1>(&mut client)?;
                let (user, password) = (text(&mut client)?, text(&mut client)?);
                let right = [&user[..], &password].join(&b':') == wanted.as_bytes();
                client.write_all(&[1, u8::from(!right)])?;
                if !right {
                    return Ok(());
                }
            }
        }
        let [_, command, _, kind] = take::<4>(&mut client)?;
        let host = match (command, kind) {
            (1, 1) => std::net::Ipv4Addr::from(take::<4>(&mut client)?).to_string(),
            (1, 3) => String::from_utf8(text(&mut client)?).map_err(io::Error::other)?,
            (1, 4) => format!("[{}]", std::net::Ipv6Addr::from(take::<16>(&mut client)?)),
            _ => return client.write_all(&[5, 7, 0, 1, 0, 0, 0, 0, 0, 0]),
        };
        let to = format!("{host}:{}", u16::from_be_bytes(take::<2>(&mut client)?));
        self.note(format!("SOCKS5 {to}"), None);
        self.options.wait();
        let Ok(server) = TcpStream::connect(&to) else {
            return client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
        };
        client.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 1])?;
        splice(client, server)
    }
}

fn take<const N: usize>(from: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A text behind its length.
fn text(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let [length] = take::<1>(from)?;
    let mut bytes = vec![0; usize::from(length)];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The value of a field of a head.
fn field(head: &str, name: &str) -> Option<String> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().to_owned())
}

/// The next message: its head with the empty line, and its body; `None` at the end. `begun` was read before.
fn message(from: &mut TcpStream, begun: Vec<u8>) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut head = begun;
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if from.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).map_err(io::Error::other)?;
    let length = field(&head, "content-length").map_or(Ok(0), |length| length.parse());
    let mut body = vec![0; length.map_err(io::Error::other)?];
    from.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

/// Passes bytes on in both directions until both have ended.
fn splice(client: TcpStream, server: TcpStream) -> io::Result<()> {
    server.set_nodelay(true)?;
    let pass = |mut from: TcpStream, mut to: TcpStream| {
        move || {
            // An end of either kind is passed on.
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        }
    };
    let back = thread::spawn(pass(server.try_clone()?, client.try_clone()?));
    pass(client, server)();
    back.join().map_err(|_| io::Error::other("it panicked"))
}
