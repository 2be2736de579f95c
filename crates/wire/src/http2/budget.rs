//! Frames that cost their receiver something and move nothing forward.

use super::ConnectionError;

/// Number of such frames that may come between two completed messages. A peer that pings, resets or changes
/// its settings for a reason stays far below it; one that does nothing else is cut off after some
/// milliseconds of work.
const FRAMES: u32 = 10_000;
/// Number of WINDOW_UPDATE frames that may come between two completed messages and let nothing be sent: a
/// server may open both windows for each frame of a hundred long requests.
const UPDATES: u32 = 1_000_000;

/// Counts the frames that carry no message: SETTINGS, PING, RST_STREAM, PRIORITY, empty DATA, frames of
/// unknown types and those on closed streams. The RST_STREAM of a client that has waited for its reply in
/// vain is not counted. Without the budget, flooding a connection with such frames is not against the rules
/// (RFC 9113 section 10.5).
#[derive(Debug)]
pub(super) struct Budget {
    left: u32,
    updates: u32,
}

impl Budget {
    /// A whole budget.
    pub(super) const fn new() -> Self {
        Self { left: FRAMES, updates: UPDATES }
    }

    /// Counts one more of these frames.
    #[inline]
    pub(super) fn spend(&mut self) -> Result<(), ConnectionError> {
        take_one(&mut self.left, "too many frames that carry no message")
    }

    /// Counts a WINDOW_UPDATE that let nothing be sent.
    #[inline]
    pub(super) fn spend_update(&mut self) -> Result<(), ConnectionError> {
        take_one(&mut self.updates, "too many WINDOW_UPDATE frames that let nothing be sent")
    }

    /// Restores the whole budget after a completed message.
    #[inline]
    pub(super) fn renew(&mut self) {
        *self = Self::new();
    }
}

#[inline]
fn take_one(left: &mut u32, otherwise: &'static str) -> Result<(), ConnectionError> {
    *left = left.checked_sub(1).ok_or_else(|| ConnectionError::calm(otherwise))?;
    Ok(())
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
            for _ in 0..UPDATES {
                assert!(budget.spend_update().is_ok());
            }
            assert_eq!(budget.spend_update().unwrap_err().code, ErrorCode::EnhanceYourCalm);
            budget.renew();
        }
    }
}
