//! Client of the control port of a run.

use core::net::SocketAddr;
use std::fmt;
use std::io;
use std::thread::Builder;

use plimsoll_core::Nanos;
use plimsoll_http::{Answer, Client, Deadline, Origin, Request};
use tokio::sync::oneshot;

/// Longest time for an answer. The run may have every processor of the machine.
const PATIENCE: Nanos = Nanos::from_secs(10);
/// Longest answer, in bytes. A result of an hour has some megabytes.
const LONGEST: usize = 64 << 20;
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
    /// Body of the answer.
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

    /// Asks on a thread of its own. The runtime's threads for such work would hold up its end for as long as
    /// a run does not answer.
    async fn ask(&self, method: &'static str, path: &str, body: &str) -> io::Result<ControlReply> {
        let (port, path, body) = (self.clone(), path.to_owned(), body.to_owned());
        let (tell, told) = oneshot::channel();
        // It is no matter if nobody waits for the answer any more.
        let work = move || drop(tell.send(port.answer(method, &path, &body)));
        Builder::new().name("control".to_owned()).spawn(work)?;
        told.await.map_err(|_| io::Error::other("the thread that asks the control port has ended"))?
    }

    fn answer(&self, method: &str, path: &str, body: &str) -> io::Result<ControlReply> {
        let authorization = format!("Bearer {}", self.token);
        let request = Request::new(method, path)
            .with_field("authorization", &authorization)
            .with_field("x-plimsoll-control", "1")
            .with_body("text/plain", body.as_bytes());
        let client = Client::plain(Origin::from(self.address), LONGEST);
        let answer = client.ask(&request, Deadline::within(PATIENCE));
        let answer = answer.map_err(|error| io::Error::new(error.kind(), error.about("the control port")))?;
        reply(answer).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

/// The reply in an answer; `None` if it is no text.
fn reply(answer: Answer) -> Option<ControlReply> {
    let intervals = answer.field("x-plimsoll-intervals").and_then(|value| value.parse().ok());
    Some(ControlReply { status: answer.status, body: String::from_utf8(answer.body).ok()?, intervals })
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
    fn an_answer_is_text_and_may_count_intervals() {
        let of = |field: &str, body: &[u8]| {
            let fields = vec![("X-Plimsoll-Intervals".to_owned(), field.to_owned())];
            reply(Answer { status: 409, fields, body: body.to_vec() })
        };
        let told = |intervals| Some(ControlReply { status: 409, body: "no".to_owned(), intervals });
        assert_eq!(of("12", b"no"), told(Some(12)));
        assert_eq!(of("-", b"no"), told(None));
        assert_eq!(of("12", b"\xff"), None);
    }
}
