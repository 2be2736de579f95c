//! Flow-control windows (RFC 9113 section 5.2 and 6.9).

/// Every window's size until it is set (RFC 9113 section 6.9.2).
pub(super) const INITIAL_WINDOW: u32 = 65_535;

/// The largest window (RFC 9113 section 6.9.1).
pub(super) const MAX_WINDOW: u32 = (1 << 31) - 1;

/// Number of bytes that may be sent. Below zero after the peer lowered the initial size (RFC 9113 section
/// 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SendWindow(i32);

impl SendWindow {
    /// A window of `size` bytes, at most [`MAX_WINDOW`].
    pub(super) const fn new(size: u32) -> Self {
        Self(size as i32)
    }

    /// Bytes that may be sent.
    #[inline]
    pub(super) fn available(self) -> u32 {
        u32::try_from(self.0).unwrap_or(0)
    }

    /// Counts `bytes`, at most [`available`](Self::available), as sent.
    #[inline]
    pub(super) fn take(&mut self, bytes: u32) {
        debug_assert!(bytes <= self.available());
        self.0 -= bytes as i32;
    }

    /// Moves the window, by a WINDOW_UPDATE or a new initial size; `false` and unchanged if it would become
    /// larger than [`MAX_WINDOW`].
    #[must_use]
    pub(super) fn shift(&mut self, by: i64) -> bool {
        match i32::try_from(i64::from(self.0) + by) {
            Ok(size) => {
                self.0 = size;
                true
            }
            Err(_) => false,
        }
    }
}

/// Number of bytes that the peer may send: the unused part of a size, restored when half of it is used.
/// Received bytes are counted and dropped, so they are consumed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceiveWindow {
    size: u32,
    /// Below zero if the peer used an initial size that is larger than ours.
    left: i32,
}

impl ReceiveWindow {
    /// A window of `size` bytes, at most [`MAX_WINDOW`].
    pub(super) const fn new(size: u32) -> Self {
        Self { size, left: size as i32 }
    }

    /// Size of the window, in bytes.
    pub(super) const fn size(&self) -> u32 {
        self.size
    }

    /// Counts received `bytes`; returns `false` if they are more than the window allowed.
    #[inline]
    #[must_use]
    pub(super) fn take(&mut self, bytes: u32) -> bool {
        self.take_down_to(bytes, 0)
    }

    /// Like [`take`](Self::take), from a peer that may not know our settings yet: until then every stream has
    /// the initial window of the RFC.
    #[inline]
    #[must_use]
    pub(super) fn take_unsettled(&mut self, bytes: u32) -> bool {
        self.take_down_to(bytes, (i64::from(self.size) - i64::from(INITIAL_WINDOW)).min(0))
    }

    #[inline]
    fn take_down_to(&mut self, bytes: u32, least: i64) -> bool {
        let left = i64::from(self.left) - i64::from(bytes);
        if left < least {
            return false;
        }
        self.left = left as i32;
        true
    }

    /// The increment of the WINDOW_UPDATE to send, if half of the window is used; it counts as sent.
    #[inline]
    pub(super) fn replenish(&mut self) -> Option<u32> {
        let size = self.size as i32;
        if self.left > size / 2 || self.left == size {
            return None;
        }
        let increment = i64::from(size) - i64::from(self.left);
        self.left = size;
        Some(increment as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_window_goes_below_zero_and_not_above_its_end() {
        let mut window = SendWindow::new(10);
        window.take(10);
        assert!(window.shift(-30));
        assert_eq!(window.available(), 0);
        assert!(window.shift(31));
        assert_eq!(window.available(), 1);
        assert!(window.shift(i64::from(MAX_WINDOW) - 1));
        assert_eq!(window.available(), MAX_WINDOW);
        assert!(!window.shift(1));
        assert_eq!(window.available(), MAX_WINDOW);
        assert!(window.shift(-2 * i64::from(MAX_WINDOW)));
        assert_eq!(window.available(), 0);
    }

    #[test]
    fn a_receive_window_is_given_back_when_half_of_it_is_used() {
        let mut window = ReceiveWindow::new(9);
        assert!(window.take(4));
        assert_eq!(window.replenish(), None);
        assert!(window.take(1));
        assert_eq!(window.replenish(), Some(5));
        assert!(window.take(9));
        assert!(!window.take(1));
        assert_eq!(window.replenish(), Some(9));
        assert_eq!(window.replenish(), None);
        let mut none = ReceiveWindow::new(0);
        assert!(none.take(0) && !none.take(1));
        assert_eq!(none.replenish(), None);
    }

    #[test]
    fn a_peer_that_does_not_know_the_size_may_use_the_initial_one() {
        let mut window = ReceiveWindow::new(10);
        assert!(!window.take(11));
        assert!(window.take_unsettled(65_535));
        assert!(!window.take_unsettled(1));
        assert_eq!(window.replenish(), Some(65_535));
        assert!(window.take(10) && !window.take(1));
        let mut large = ReceiveWindow::new(MAX_WINDOW);
        assert!(large.take_unsettled(MAX_WINDOW) && !large.take_unsettled(1));
        assert_eq!(large.replenish(), Some(MAX_WINDOW));
    }
}
