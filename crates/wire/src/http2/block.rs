//! Header blocks that come in several frames.

use super::ConnectionError;
use super::frame::{FrameHead, flag, kind};

/// CONTINUATION frames of one block. Honest senders fill frames of 16 KiB, so this is far more than the bytes
/// allow them to use; a flood of empty ones ends here.
const CONTINUATIONS: u32 = 128;

/// The bytes of a block may exceed those of the list that it stands for by so much: a list that is too large
/// fails its stream only (it still has to be decoded for the dynamic table), a block beyond this fails the
/// connection.
const EXCESS: u32 = 16 * 1024;

/// A header block that is put together from HEADERS and CONTINUATION frames (RFC 9113 section 4.3). A block
/// that comes in one frame does not go through here.
#[derive(Debug)]
pub(super) struct BlockAssembly {
    /// The stream of the block that is incomplete; 0 if there is none.
    stream: u32,
    end_stream: bool,
    continuations: u32,
    bytes: Vec<u8>,
    bytes_max: u32,
}

/// A block that is whole.
#[derive(Debug)]
pub(super) struct WholeBlock {
    pub(super) stream: u32,
    pub(super) end_stream: bool,
    pub(super) bytes: Vec<u8>,
}

impl BlockAssembly {
    /// For lists of fields up to `list_bytes`.
    pub(super) const fn new(list_bytes: u32) -> Self {
        let bytes_max = list_bytes.saturating_add(EXCESS);
        Self { stream: 0, end_stream: false, continuations: 0, bytes: Vec::new(), bytes_max }
    }

    /// Checks that a frame of this kind may come now: while a block is incomplete only its continuation may
    /// (RFC 9113 section 6.10).
    #[inline]
    pub(super) fn admit(&self, head: FrameHead) -> Result<(), ConnectionError> {
        let continues = head.kind == kind::CONTINUATION;
        if self.stream == 0 && !continues {
            return Ok(());
        }
        if self.stream == 0 {
            return Err(ConnectionError::protocol("CONTINUATION without a header block"));
        }
        if !continues || head.stream != self.stream {
            return Err(ConnectionError::protocol("a header block is interrupted by another frame"));
        }
        Ok(())
    }

    /// Checks that a block of `bytes` is small enough.
    #[inline]
    pub(super) fn admit_size(&self, bytes: usize) -> Result<(), ConnectionError> {
        if bytes > self.bytes_max as usize {
            return Err(ConnectionError::calm("a header block is too large"));
        }
        Ok(())
    }

    /// Keeps the first fragment of a block that goes on in CONTINUATION frames.
    #[cold]
    pub(super) fn begin(&mut self, head: FrameHead, fragment: &[u8]) -> Result<(), ConnectionError> {
        self.stream = head.stream;
        self.end_stream = head.has(flag::END_STREAM);
        self.continuations = 0;
        self.bytes.clear();
        self.append(fragment)
    }

    /// Takes in the fragment of an admitted CONTINUATION frame; gives the block if this was its last.
    #[cold]
    pub(super) fn go_on(
        &mut self,
        head: FrameHead,
        fragment: &[u8],
    ) -> Result<Option<WholeBlock>, ConnectionError> {
        self.continuations += 1;
        if self.continuations > CONTINUATIONS {
            return Err(ConnectionError::calm("a header block has too many CONTINUATION frames"));
        }
        self.append(fragment)?;
        if !head.has(flag::END_HEADERS) {
            return Ok(None);
        }
        Ok(Some(WholeBlock {
            stream: std::mem::take(&mut self.stream),
            end_stream: self.end_stream,
            bytes: std::mem::take(&mut self.bytes),
        }))
    }

    fn append(&mut self, fragment: &[u8]) -> Result<(), ConnectionError> {
        self.admit_size(self.bytes.len() + fragment.len())?;
        self.bytes.extend_from_slice(fragment);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ErrorCode;
    use super::*;

    fn head(kind: u8, flags: u8, stream: u32) -> FrameHead {
        FrameHead { length: 0, kind, flags, stream }
    }

    #[test]
    fn fragments_are_put_together_in_order() {
        let mut assembly = BlockAssembly::new(100);
        assembly.begin(head(kind::HEADERS, flag::END_STREAM, 5), b"ab").unwrap();
        assert!(assembly.go_on(head(kind::CONTINUATION, 0, 5), b"").unwrap().is_none());
        let last = head(kind::CONTINUATION, flag::END_HEADERS, 5);
        let whole = assembly.go_on(last, b"c").unwrap().unwrap();
        assert_eq!((whole.stream, whole.end_stream, &whole.bytes[..]), (5, true, &b"abc"[..]));
        assert!(assembly.admit(head(kind::DATA, 0, 5)).is_ok());
    }

    #[test]
    fn nothing_may_interrupt_a_block() {
        let mut assembly = BlockAssembly::new(100);
        assert!(assembly.admit(head(kind::CONTINUATION, 0, 5)).is_err());
        assembly.begin(head(kind::HEADERS, 0, 5), b"").unwrap();
        assert!(assembly.admit(head(kind::CONTINUATION, 0, 5)).is_ok());
        for (kind, stream) in [(kind::CONTINUATION, 7), (kind::DATA, 5), (kind::PING, 0), (0x42, 5)] {
            let error = assembly.admit(head(kind, 0, stream)).unwrap_err();
            assert_eq!(error.code, ErrorCode::ProtocolError, "{kind} {stream}");
        }
    }

    #[test]
    fn blocks_are_bounded_by_bytes_and_by_frames() {
        let mut assembly = BlockAssembly::new(100);
        let most = vec![0; 100 + EXCESS as usize];
        assembly.begin(head(kind::HEADERS, 0, 1), &most).unwrap();
        let error = assembly.go_on(head(kind::CONTINUATION, 0, 1), &[0]).unwrap_err();
        assert_eq!(error.code, ErrorCode::EnhanceYourCalm);
        let mut assembly = BlockAssembly::new(100);
        assembly.begin(head(kind::HEADERS, 0, 1), &[]).unwrap();
        for _ in 0..CONTINUATIONS {
            assert!(assembly.go_on(head(kind::CONTINUATION, 0, 1), &[]).unwrap().is_none());
        }
        let error = assembly.go_on(head(kind::CONTINUATION, 0, 1), &[]).unwrap_err();
        assert_eq!(error.code, ErrorCode::EnhanceYourCalm);
    }
}
