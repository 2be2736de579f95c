//! Frames that cost their receiver something and move nothing forward.

use super::ConnectionError;

/// Number of such frames that may come between two completed messages. A peer that pings, resets or changes
/// its settings for a reason stays far below it; one that does nothing else is cut off after some
/// milliseconds of work.
const FRAMES: u32 = 10_000;

/// Counts the frames that carry no message: SETTINGS, PING, RST_STREAM, PRIORITY, empty DATA, frames of
/// unknown types and those on closed streams. The RST_STREAM of a client that has waited for its reply in
/// vain is not counted. Without the budget, flooding a connection with such frames is not against the rules
/// (RFC 9113 section 10.5).
#[derive(Debug)]
pub(super) struct Budget {
    left: u32,
}

impl Budget {
    /// A whole budget.
    pub(super) const fn new() -> Self {
        Self { left: FRAMES }
    }

    /// Counts one more of these frames.
    #[inline]
    pub(super) fn spend(&mut self) -> Result<(), ConnectionError> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(ConnectionError::calm("too many frames that carry no message")),
        }
    }

    /// Restores the whole budget after a completed message.
    #[inline]
    pub(super) fn renew(&mut self) {
        self.left = FRAMES;
    }
}

#[cfg(test)]
mod tests {
    use super::super::ErrorCode;
    use super::*;

    #[test]
    fn a_budget_lasts_for_so_many_frames_and_is_renewed_whole() {
        let mut budget = Budget::new();
        for _ in 0..2 {
            for _ in 0..FRAMES {
                assert!(budget.spend().is_ok());
            }
            assert_eq!(budget.spend().unwrap_err().code, ErrorCode::EnhanceYourCalm);
            budget.renew();
        }
    }
}
