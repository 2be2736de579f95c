//! The control port of a run, as its client.

use core::net::SocketAddr;
use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest time for an answer. The run may have every processor of the machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer, in bytes. A result of an hour has some megabytes.
const LONGEST: u64 = 64 << 20;
/// Beginning of the message by which a run announces its control port.
const ANNOUNCEMENT: &str = "control: http://";

/// Address and token of a control port.
#[derive(Clone)]
pub(crate) struct Control {
    address: SocketAddr,
    token: String,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("address", &self.address).finish_non_exhaustive()
    }
}

/// An answer of a control port.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Control {
    /// Finds the address in a message of a run.
    pub(crate) fn announced(message: &str, token: &str) -> Option<Self> {
        let address = message.strip_prefix(ANNOUNCEMENT)?.trim_end().trim_end_matches('/').parse().ok()?;
        Some(Self { address, token: token.to_owned() })
    }

    /// Asks for something.
    ///
    /// # Errors
    /// Nothing listens there, or another server answers.
    pub(crate) async fn get(&self, path: &str) -> io::Result<Reply> {
        self.ask("GET", path, "").await
    }

    /// Tells it something.
    ///
    /// # Errors
    /// Nothing listens there, or another server answers.
    pub(crate) async fn post(&self, path: &str, body: &str) -> io::Result<Reply> {
        self.ask("POST", path, body).await
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> io::Result<Reply> {
        let Self { address, token } = self;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             x-plimsoll-control: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let exchange = async {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(body.as_bytes()).await?;
            let mut answer = Vec::new();
            stream.take(LONGEST).read_to_end(&mut answer).await?;
            reply(answer).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        timeout(PATIENCE, exchange).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

/// The status and the body of an answer whose end is that of its connection.
fn reply(answer: Vec<u8>) -> Option<Reply> {
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    // A truncated answer does not count.
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    (length.is_none_or(|length| length == body.len())).then(|| Reply { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_its_message_only() {
        let found = Control::announced("control: http://127.0.0.1:4711/", "t").unwrap();
        assert_eq!(found.address, "127.0.0.1:4711".parse().unwrap());
        for other in ["control: http://x/", "a control: http://127.0.0.1:1/", "control: https://127.0.0.1:1/"]
        {
            assert!(Control::announced(other, "t").is_none(), "{other}");
        }
        assert!(!format!("{found:?}").contains("token"));
    }

    #[test]
    fn an_answer_is_whole_or_none() {
        let of = |text: &str| reply(text.as_bytes().to_vec());
        let whole = of("HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nno").unwrap();
        assert_eq!(whole, Reply { status: 409, body: "no".to_owned() });
        assert_eq!(of("HTTP/1.1 200 OK\r\n\r\n").unwrap().body, "");
        for cut in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nno", "x\r\n\r\n"]
        {
            assert_eq!(of(cut), None, "{cut}");
        }
    }
}
