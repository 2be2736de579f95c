//! SETTINGS (RFC 9113 section 6.5).

use super::ConnectionError;
use super::frame::{MAX_MAX_FRAME_SIZE, MIN_MAX_FRAME_SIZE};
use super::window::{INITIAL_WINDOW, MAX_WINDOW};

/// Identifiers of settings (RFC 9113 section 6.5.2).
pub(super) mod setting {
    pub(in super::super) const HEADER_TABLE_SIZE: u16 = 0x1;
    pub(in super::super) const ENABLE_PUSH: u16 = 0x2;
    pub(in super::super) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
    pub(in super::super) const INITIAL_WINDOW_SIZE: u16 = 0x4;
    pub(in super::super) const MAX_FRAME_SIZE: u16 = 0x5;
    pub(in super::super) const MAX_HEADER_LIST_SIZE: u16 = 0x6;
    /// RFC 8441 section 3.
    pub(in super::super) const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
}

/// The peer's settings; the initial values of the RFC until it sends its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeerSettings {
    /// `true` if the peer allows pushes; `None` if it did not set it.
    pub(super) enable_push: Option<bool>,
    /// The streams that may be open at once; `None` if the peer set no limit.
    pub(super) max_concurrent_streams: Option<u32>,
    /// Bytes that may be sent on each stream at first.
    pub(super) initial_window_size: u32,
    /// The largest payload of a frame to the peer.
    pub(super) max_frame_size: u32,
    /// `true` if the peer takes extended CONNECT requests.
    pub(super) enable_connect_protocol: bool,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            enable_push: None,
            max_concurrent_streams: None,
            initial_window_size: INITIAL_WINDOW,
            max_frame_size: MIN_MAX_FRAME_SIZE,
            enable_connect_protocol: false,
        }
    }
}

impl PeerSettings {
    /// Takes over the payload of a SETTINGS frame (without ACK); unknown settings are ignored. The effect of
    /// a changed initial window on open streams is left to the caller, which compares before and after. Gives
    /// the smallest size of the dynamic table that the payload sets, if it sets one: that is the one that an
    /// encoder has to follow, even if a larger one comes after it (RFC 7541 section 4.2).
    pub(super) fn apply(&mut self, payload: &[u8]) -> Result<Option<u32>, ConnectionError> {
        let (settings, []) = payload.as_chunks::<6>() else {
            return Err(ConnectionError::frame_size("the length of SETTINGS is not a multiple of 6"));
        };
        let mut table_size: Option<u32> = None;
        for &[id0, id1, v0, v1, v2, v3] in settings {
            let (id, value) = (u16::from_be_bytes([id0, id1]), u32::from_be_bytes([v0, v1, v2, v3]));
            match id {
                setting::HEADER_TABLE_SIZE => {
                    table_size = Some(table_size.map_or(value, |before| before.min(value)));
                }
                _ => self.set(id, value)?,
            }
        }
        Ok(table_size)
    }

    fn set(&mut self, id: u16, value: u32) -> Result<(), ConnectionError> {
        match id {
            setting::ENABLE_PUSH if value > 1 => {
                return Err(ConnectionError::protocol("SETTINGS_ENABLE_PUSH is neither 0 nor 1"));
            }
            setting::ENABLE_PUSH => self.enable_push = Some(value == 1),
            setting::MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = Some(value),
            setting::INITIAL_WINDOW_SIZE if value > MAX_WINDOW => {
                return Err(ConnectionError::flow_control("SETTINGS_INITIAL_WINDOW_SIZE is above 2^31 - 1"));
            }
            setting::INITIAL_WINDOW_SIZE => self.initial_window_size = value,
            setting::MAX_FRAME_SIZE if !(MIN_MAX_FRAME_SIZE..=MAX_MAX_FRAME_SIZE).contains(&value) => {
                return Err(ConnectionError::protocol("SETTINGS_MAX_FRAME_SIZE is out of its range"));
            }
            setting::MAX_FRAME_SIZE => self.max_frame_size = value,
            setting::ENABLE_CONNECT_PROTOCOL if value > 1 => {
                return Err(ConnectionError::protocol("SETTINGS_ENABLE_CONNECT_PROTOCOL is neither 0 nor 1"));
            }
            setting::ENABLE_CONNECT_PROTOCOL => self.enable_connect_protocol = value == 1,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ErrorCode;
    use super::*;

    fn apply(settings: &[(u16, u32)]) -> Result<(PeerSettings, Option<u32>), ErrorCode> {
        let bytes = settings.iter().flat_map(|(id, value)| {
            let (id, value) = (id.to_be_bytes(), value.to_be_bytes());
            id.into_iter().chain(value)
        });
        let mut peer = PeerSettings::default();
        let table_size = peer.apply(&bytes.collect::<Vec<u8>>()).map_err(|error| error.code)?;
        Ok((peer, table_size))
    }

    #[test]
    fn values_are_taken_in_order_and_unknown_ones_ignored() {
        let settings =
            [(1, 5), (2, 0), (3, 7), (1, 3), (4, 9), (1, 4), (3, 8), (5, 16_385), (8, 1), (99, u32::MAX)];
        let expected = PeerSettings {
            enable_push: Some(false),
            max_concurrent_streams: Some(8),
            initial_window_size: 9,
            max_frame_size: 16_385,
            enable_connect_protocol: true,
        };
        assert_eq!(apply(&settings), Ok((expected, Some(3))));
        assert_eq!(apply(&[]), Ok((PeerSettings::default(), None)));
    }

    #[test]
    fn values_out_of_range_have_their_codes() {
        let table = [
            (setting::ENABLE_PUSH, 2, ErrorCode::ProtocolError),
            (setting::ENABLE_CONNECT_PROTOCOL, 2, ErrorCode::ProtocolError),
            (setting::INITIAL_WINDOW_SIZE, 1 << 31, ErrorCode::FlowControlError),
            (setting::MAX_FRAME_SIZE, 16_383, ErrorCode::ProtocolError),
            (setting::MAX_FRAME_SIZE, 1 << 24, ErrorCode::ProtocolError),
        ];
        for (id, value, code) in table {
            assert_eq!(apply(&[(id, value)]), Err(code), "{id} = {value}");
        }
        assert!(apply(&[(setting::MAX_FRAME_SIZE, (1 << 24) - 1)]).is_ok());
        assert!(apply(&[(setting::INITIAL_WINDOW_SIZE, (1 << 31) - 1)]).is_ok());
        let mut peer = PeerSettings::default();
        assert_eq!(peer.apply(&[0; 5]).map_err(|error| error.code), Err(ErrorCode::FrameSizeError));
    }
}
