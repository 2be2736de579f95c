//! CONNECT of HTTP/1.1 (RFC 9110 section 9.3.6).

use super::{Destination, TunnelError};
use crate::http1::{Capture, HeadMemo, Limits, PendingRequest, ResponseClient};

/// Bytes of a status line that a message quotes.
const LONGEST_QUOTE: usize = 200;

/// Any response to CONNECT ends with its head: what follows a success is the tunnel, whatever the fields say
/// about a body, and what follows a refusal is of no interest.
const ANSWER: PendingRequest = PendingRequest { head_request: true, capture: Capture::Headers };

/// The head of a request for a tunnel.
pub(super) fn head(destination: &Destination, authorization: Option<&str>) -> Vec<u8> {
    let authorization = authorization.map(|value| format!("Proxy-Authorization: {value}\r\n"));
    let authorization = authorization.unwrap_or_default();
    let user_agent = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));
    format!(
        "CONNECT {destination} HTTP/1.1\r\nHost: {destination}\r\nUser-Agent: {user_agent}\r\n\
         {authorization}\r\n"
    )
    .into_bytes()
}

/// Reads the answer.
#[derive(Debug, Default)]
pub(super) struct Connect(ResponseClient);

impl Connect {
    pub(super) fn receive(&mut self, limits: &Limits, input: &mut &[u8]) -> Result<bool, TunnelError> {
        match self.0.next(limits, &mut HeadMemo::new(), ANSWER, input) {
            Ok(None) => Ok(false),
            Ok(Some(response)) if (200..300).contains(&response.status) => Ok(true),
            Ok(Some(_)) => Err(TunnelError::Refused(quoted(self.0.status_line()))),
            Err(error) => Err(TunnelError::Invalid(error.to_string())),
        }
    }
}

/// The start of a status line, for a message.
fn quoted(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(&line[..line.len().min(LONGEST_QUOTE)]);
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}
