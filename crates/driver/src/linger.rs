//! Connections that their owner closed, that have sent everything, and that wait for the peer to close too.

use std::collections::VecDeque;

use plimsoll_core::Nanos;

use crate::slots::Token;

/// The waiting connections, oldest first.
///
/// A TCP socket that is closed while it has unread bytes, or gets bytes after it is closed, answers with a
/// reset, and a reset makes the peer drop its unread bytes: the end of our answer. So after the last byte
/// only our direction is ended, and further input is read and dropped until the peer ends its own, or for
/// [`TIME`](Self::TIME) at most.
#[derive(Debug, Default)]
pub(crate) struct Lingering {
    queue: VecDeque<(Token, Nanos)>,
}

impl Lingering {
    /// Longer than a peer across the world needs to answer a FIN, its retransmission included; short enough
    /// that peers that never close do not use up the descriptors.
    const TIME: Nanos = Nanos::from_secs(2);

    pub(crate) fn push(&mut self, token: Token, now: Nanos) {
        self.queue.push_back((token, now + Self::TIME));
    }

    /// The next one whose time is over. It may be gone already.
    pub(crate) fn pop_over(&mut self, now: Nanos) -> Option<Token> {
        let (token, over) = *self.queue.front()?;
        if over > now {
            return None;
        }
        self.queue.pop_front();
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_out_in_order_when_their_time_is_over() {
        let token = |slot| Token { kind: 0, slot, birth: 0 };
        let mut lingering = Lingering::default();
        lingering.push(token(1), Nanos(10));
        lingering.push(token(2), Nanos(20));
        assert_eq!(lingering.pop_over(Nanos(9) + Lingering::TIME), None);
        assert_eq!(lingering.pop_over(Nanos(10) + Lingering::TIME), Some(token(1)));
        assert_eq!(lingering.pop_over(Nanos(10) + Lingering::TIME), None);
        assert_eq!(lingering.pop_over(Nanos::MAX), Some(token(2)));
        assert_eq!(lingering.pop_over(Nanos::MAX), None);
    }
}
