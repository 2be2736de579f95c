//! A relay before a server: a proxy by CONNECT and by SOCKS5, a front that answers as HTTP/1.0 does, with the
//! end of the connection for the end of the body, and for anything else the way to the server and back.
//!
//! The hidden command `relay` serves it as a process of its own, which can be pinned to the core of the
//! server. One thread serves all connections: threads that hand bytes to each other on the server's core
//! would wait there, which is no time of the generator. The first bytes of a connection say what it is.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, copy_bidirectional, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::time::sleep;

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
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        listening(&listener.local_addr().map_err(failed)?.to_string());
        while let Ok((client, _)) = listener.accept().await {
            let to = to.to_owned();
            // A client or a server that breaks off ends its own connection only.
            tokio::spawn(async move { drop(relay(client, &to).await) });
        }
        Ok(())
    })
}

/// Serves a connection.
async fn relay(mut client: TcpStream, to: &str) -> io::Result<()> {
    client.set_nodelay(true)?;
    let first = client.read_u8().await?;
    if first == SOCKS5 {
        return socks5(client, to).await;
    }
    if !first.is_ascii_uppercase() {
        let mut server = connect(to).await?;
        server.write_u8(first).await?;
        return pass_late(client, server).await;
    }
    let head = head(&mut client, &[first]).await?;
    let mut server = connect(to).await?;
    if head.starts_with(b"CONNECT ") {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        return copy_bidirectional(&mut client, &mut server).await.map(drop);
    }
    until_close(client, server, &head).await
}

async fn connect(to: &str) -> io::Result<TcpStream> {
    let server = TcpStream::connect(to).await?;
    server.set_nodelay(true)?;
    Ok(server)
}

/// The rest of SOCKS5 behind its first byte: no credentials, and a connection to the server whatever name is
/// asked for.
async fn socks5(mut client: TcpStream, to: &str) -> io::Result<()> {
    let methods = client.read_u8().await?;
    copy(&mut (&mut client).take(methods.into()), &mut sink()).await?;
    client.write_all(&[SOCKS5, 0]).await?;
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let address = match request[3] {
        1 => 4,
        3 => u64::from(client.read_u8().await?),
        _ => 16,
    };
    copy(&mut (&mut client).take(address + 2), &mut sink()).await?;
    let mut server = connect(to).await?;
    client.write_all(&[SOCKS5, 0, 0, 1, 127, 0, 0, 1, 0, 1]).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// Passes a request on, and the answer back without its length.
async fn until_close(mut client: TcpStream, mut server: TcpStream, request: &[u8]) -> io::Result<()> {
    server.write_all(request).await?;
    let answer = head(&mut server, &[]).await?;
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
    client.write_all(front.as_bytes()).await?;
    copy(&mut server.take(length), &mut client).await?;
    client.shutdown().await
}

/// A head with its empty line. `begun` was read before. A message of this harness has no body behind it.
async fn head(from: &mut TcpStream, begun: &[u8]) -> io::Result<Vec<u8>> {
    let mut head = begun.to_vec();
    let mut peeked = [0; 1024];
    while head.len() < HEAD_BYTES {
        let there = from.peek(&mut peeked).await?;
        if there == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The bytes behind the empty line stay where they are: they belong to the body.
        let old = head.len();
        head.extend_from_slice(&peeked[..there]);
        let end = head.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| at + 4);
        head.truncate(end.unwrap_or(head.len()));
        from.read_exact(&mut peeked[..head.len() - old]).await?;
        if end.is_some() {
            return Ok(head);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Passes bytes on in both directions until both have ended, those of the server after a delay, which stands
/// for the work of one that has no flag for it.
async fn pass_late(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    tokio::spawn(async move {
        copy(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await
    });
    let mut bytes = [0; HEAD_BYTES];
    while let count @ 1.. = from_server.read(&mut bytes).await? {
        sleep(OTHERS).await;
        to_client.write_all(&bytes[..count]).await?;
    }
    to_client.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc;
    use std::thread;

    /// A server that answers every request with `hello`, and a relay before it.
    fn relayed() -> String {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = server.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for mut client in server.incoming().map_while(io::Result::ok) {
                thread::spawn(move || {
                    let requests = BufReader::new(client.try_clone().unwrap()).lines();
                    for _ in requests.filter(|line| line.as_ref().unwrap().is_empty()) {
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
