//! A relay before a server: a proxy by CONNECT and by SOCKS5, a front that answers as HTTP/1.0 does, with the
//! end of the connection for the end of the body, and for anything else the way to the server and back.
//!
//! The hidden command `relay` serves it as a process of its own, which can be pinned to the core of the
//! server. Each connection has a thread of its own; the first bytes say what it is.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::failure::{Failure, Result};

/// First byte of SOCKS5 (RFC 1928).
const SOCKS5: u8 = 5;
/// Delay of answers of neither: on a server that answers at once, the generator's wake-up is a large share of
/// a time.
const OTHERS: Duration = Duration::from_millis(2);
/// The most bytes of a head.
const HEAD_BYTES: usize = 16 << 10;

/// Serves until the process ends. `to` is the server; `listening` is told the address of the relay.
pub(crate) fn serve(to: &str, listening: impl FnOnce(&str)) -> Result<()> {
    let failed = |error| Failure::because("the relay cannot listen", error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    listening(&listener.local_addr().map_err(failed)?.to_string());
    for client in listener.incoming().map_while(io::Result::ok) {
        let to = to.to_owned();
        // A client or a server that breaks off ends its own connection only.
        thread::spawn(move || drop(relay(client, &to)));
    }
    Ok(())
}

/// Serves a connection.
fn relay(mut client: TcpStream, to: &str) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut first = [0];
    client.read_exact(&mut first)?;
    if first == [SOCKS5] {
        return socks5(client, to);
    }
    if !first[0].is_ascii_uppercase() {
        let mut server = TcpStream::connect(to)?;
        server.set_nodelay(true)?;
        server.write_all(&first)?;
        return splice(client, server, OTHERS);
    }
    let head = head(&mut client, &first)?;
    let server = TcpStream::connect(to)?;
    server.set_nodelay(true)?;
    if head.starts_with(b"CONNECT ") {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
        return splice(client, server, Duration::ZERO);
    }
    until_close(client, server, &head)
}

/// The rest of SOCKS5 behind its first byte: no credentials, and a connection to the server whatever name is
/// asked for.
fn socks5(mut client: TcpStream, to: &str) -> io::Result<()> {
    let methods = take::<1>(&mut client)?[0];
    io::copy(&mut (&client).take(methods.into()), &mut io::sink())?;
    client.write_all(&[SOCKS5, 0])?;
    let address = match take::<4>(&mut client)?[3] {
        1 => 4,
        3 => u64::from(take::<1>(&mut client)?[0]),
        _ => 16,
    };
    io::copy(&mut (&client).take(address + 2), &mut io::sink())?;
    let server = TcpStream::connect(to)?;
    server.set_nodelay(true)?;
    client.write_all(&[SOCKS5, 0, 0, 1, 127, 0, 0, 1, 0, 1])?;
    splice(client, server, Duration::ZERO)
}

/// Passes a request on, and the answer back without its length.
fn until_close(mut client: TcpStream, mut server: TcpStream, request: &[u8]) -> io::Result<()> {
    server.write_all(request)?;
    let answer = head(&mut server, &[])?;
    let answer = String::from_utf8_lossy(&answer);
    let mut lines = answer.trim_end().lines();
    let status = lines.next().unwrap_or_default().replacen("HTTP/1.1", "HTTP/1.0", 1);
    let (mut length, mut front) = (0, status);
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().map_err(io::Error::other)?,
            "connection" | "keep-alive" => {}
            _ => front.extend(["\r\n", line]),
        }
    }
    front.push_str("\r\n\r\n");
    client.write_all(front.as_bytes())?;
    io::copy(&mut server.take(length), &mut client)?;
    client.shutdown(Shutdown::Write)
}

/// A head with its empty line. `begun` was read before. A message of this harness has no body behind it.
fn head(from: &mut TcpStream, begun: &[u8]) -> io::Result<Vec<u8>> {
    let mut head = begun.to_vec();
    let mut peeked = [0; 1024];
    while head.len() < HEAD_BYTES {
        let there = from.peek(&mut peeked)?;
        if there == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The bytes behind the empty line stay where they are: they belong to the body.
        let old = head.len();
        head.extend_from_slice(&peeked[..there]);
        let end = head.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| at + 4);
        head.truncate(end.unwrap_or(head.len()));
        from.read_exact(&mut peeked[..head.len() - old])?;
        if end.is_some() {
            return Ok(head);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn take<const N: usize>(from: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Passes bytes on in both directions until both have ended, those of the server after a delay.
fn splice(client: TcpStream, server: TcpStream, delay: Duration) -> io::Result<()> {
    let (from, to) = (server.try_clone()?, client.try_clone()?);
    let back = thread::spawn(move || pass(from, to, delay));
    pass(client, server, Duration::ZERO);
    back.join().map_err(|_| io::Error::other("a thread of the relay panicked"))
}

/// Passes bytes on in one direction. An end of either kind is passed on, too.
// The delay stands for the work of a server that has no flag for it.
#[allow(clippy::disallowed_methods)]
fn pass(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    if delay.is_zero() {
        let _ = io::copy(&mut from, &mut to);
    }
    let mut bytes = [0; HEAD_BYTES];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        thread::sleep(delay);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A server that answers every request with `hello`, and a relay before it.
    fn relayed() -> String {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = server.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for mut client in server.incoming().map_while(io::Result::ok) {
                thread::spawn(move || {
                    while head(&mut client, &[]).is_ok() {
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx: y\r\n\r\nhello";
                        client.write_all(answer).unwrap();
                    }
                });
            }
        });
        let (tell, told) = mpsc::channel();
        thread::spawn(move || serve(&to, |address| tell.send(address.to_owned()).unwrap()));
        told.recv().unwrap()
    }

    #[test]
    fn the_end_of_the_connection_is_that_of_the_body() {
        let mut client = TcpStream::connect(relayed()).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "HTTP/1.0 200 OK\r\nx: y\r\n\r\nhello");
    }

    #[test]
    fn tunnels_of_both_kinds_reach_the_server() {
        let relay = relayed();
        let connect: (&[u8], &[u8]) =
            (b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n", b"HTTP/1.1 200 Connection established\r\n\r\n");
        let greeting: (&[u8], &[u8]) = (&[5, 1, 0], &[5, 0]);
        let address: (&[u8], &[u8]) = (&[5, 1, 0, 3, 1, b'a', 0, 80], &[5, 0, 0, 1, 127, 0, 0, 1, 0, 1]);
        let other: (&[u8], &[u8]) = (b"\n", b"");
        let request: (&[u8], &[u8]) = (
            b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx: y\r\n\r\nhello",
        );
        for steps in [vec![connect, request, request], vec![greeting, address, request], vec![other, request]]
        {
            let mut client = TcpStream::connect(&relay).unwrap();
            for (sent, answered) in steps {
                client.write_all(sent).unwrap();
                let mut answer = vec![0; answered.len()];
                client.read_exact(&mut answer).unwrap();
                assert_eq!(answer, answered);
            }
        }
    }
}
