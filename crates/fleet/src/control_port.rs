//! Client of the control port of a run.

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
#[derive(Clone, PartialEq, Eq)]
pub struct ControlPort {
    address: SocketAddr,
    token: String,
}

impl fmt::Debug for ControlPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPort").field("address", &self.address).finish_non_exhaustive()
    }
}

/// An answer of a control port.
#[derive(Debug, PartialEq, Eq)]
pub struct ControlReply {
    /// Status of HTTP.
    pub status: u16,
    /// Its content.
    pub body: String,
    /// Number of all intervals of a result, including those that were not requested.
    pub intervals: Option<usize>,
}

impl ControlPort {
    /// Finds the address in a message of a run.
    pub fn announced(message: &str, token: &str) -> Option<Self> {
        let address = message.strip_prefix(ANNOUNCEMENT)?.trim_end().trim_end_matches('/').parse().ok()?;
        Some(Self { address, token: token.to_owned() })
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// Nothing listens there, or the answer is not that of a control port.
    pub async fn get(&self, path: &str) -> io::Result<ControlReply> {
        self.ask("GET", path, "").await
    }

    /// Sends a POST request.
    ///
    /// # Errors
    /// Nothing listens there, or the answer is not that of a control port.
    pub async fn post(&self, path: &str, body: &str) -> io::Result<ControlReply> {
        self.ask("POST", path, body).await
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> io::Result<ControlReply> {
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
fn reply(answer: Vec<u8>) -> Option<ControlReply> {
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    // A truncated answer does not count.
    let number = |field: &str| {
        head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(field).then(|| value.trim().parse::<usize>().ok())?
        })
    };
    let is_whole = number("content-length").is_none_or(|length| length == body.len());
    let intervals = number("x-plimsoll-intervals");
    is_whole.then(|| ControlReply { status, body: body.to_owned(), intervals })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_its_message_only() {
        let found = ControlPort::announced("control: http://127.0.0.1:4711/", "t").unwrap();
        assert_eq!(found.address, "127.0.0.1:4711".parse().unwrap());
        for other in ["control: http://x/", "a control: http://127.0.0.1:1/", "control: https://127.0.0.1:1/"]
        {
            assert!(ControlPort::announced(other, "t").is_none(), "{other}");
        }
        assert!(!format!("{found:?}").contains("token"));
    }

    #[test]
    fn an_answer_is_whole_or_none() {
        let of = |text: &str| reply(text.as_bytes().to_vec());
        let whole = of("HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nno").unwrap();
        assert_eq!(whole, ControlReply { status: 409, body: "no".to_owned(), intervals: None });
        let counted = of("HTTP/1.1 200 OK\r\nX-Plimsoll-Intervals: 12\r\n\r\n{}").unwrap();
        assert_eq!(counted.intervals, Some(12));
        assert_eq!(of("HTTP/1.1 200 OK\r\n\r\n").unwrap().body, "");
        for cut in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nno", "x\r\n\r\n"]
        {
            assert_eq!(of(cut), None, "{cut}");
        }
    }
}
