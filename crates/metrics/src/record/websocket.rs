//! Counts of WebSockets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts of WebSockets (RFC 6455), beside those that every connection has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebSocketRecord {
    /// Connections that a server has upgraded.
    pub opened: u64,
    /// Upgrades that a server has refused by an ordinary response.
    pub refused: u64,
    /// Messages sent in the measured part.
    pub messages_sent: u64,
    /// Their bytes with the heads of their frames.
    pub bytes_sent: u64,
    /// Messages that came in the measured part.
    pub messages_received: u64,
    /// Their bytes, without the heads of their frames, unpacked if they were compressed.
    pub bytes_received: u64,
    /// Messages received that no step has awaited, those that waited at the end of their connection or of the
    /// run included.
    pub skipped: u64,
    /// Messages received that rules of `answer` took. Their answers are among the messages sent.
    #[serde(default)]
    pub answered: u64,
    /// Pings that came, of which each was answered at once.
    pub pings: u64,
    /// WebSockets that the server closed by a close frame.
    pub closed_by_server: u64,
    /// WebSockets whose connection ended without a close frame.
    pub dropped: u64,
}

impl WebSocketRecord {
    /// Returns `true` if no connection was to become a WebSocket.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds another worker's.
    pub const fn merge(&mut self, other: &Self) {
        self.opened += other.opened;
        self.refused += other.refused;
        self.messages_sent += other.messages_sent;
        self.bytes_sent += other.bytes_sent;
        self.messages_received += other.messages_received;
        self.bytes_received += other.bytes_received;
        self.skipped += other.skipped;
        self.answered += other.answered;
        self.pings += other.pings;
        self.closed_by_server += other.closed_by_server;
        self.dropped += other.dropped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up() {
        let one = WebSocketRecord { opened: 1, skipped: 2, dropped: 3, ..WebSocketRecord::default() };
        let mut sum = WebSocketRecord::default();
        assert!(sum.is_empty());
        sum.merge(&one);
        assert_eq!(sum, one);
        sum.merge(&one);
        assert_eq!((sum.opened, sum.skipped, sum.dropped, sum.is_empty()), (2, 4, 6, false));
    }
}
