//! The cutting of a received byte stream into frames, in pieces of any size.

use super::ConnectionError;
use super::frame::{FrameHead, Front, HEAD_BYTES, flag, front};

/// A piece of the received bytes, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'i> {
    /// The head of a DATA frame, with the bytes of content and of padding in it. They are dropped as they
    /// come.
    Data { head: FrameHead, content: u32 },
    /// Content of the DATA frame that began last, on this stream; only where it was
    /// [asked for](FrameReader::tell_content).
    Content { stream: u32, bytes: &'i [u8] },
    /// The last byte came of a DATA frame with END_STREAM, on this stream.
    End { stream: u32 },
    /// The head of a frame of an unknown type; its payload is dropped.
    Unknown { head: FrameHead },
    /// Any other frame, whole.
    Whole { head: FrameHead, payload: &'i [u8] },
}

/// Cuts received bytes into frames. Keeps the beginning of a frame that has to be whole between two calls;
/// keeps nothing of DATA.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    partial: Vec<u8>,
    /// Set once `partial` was returned as a piece.
    spent: bool,
    /// Bytes to come that are dropped, or passed on as content first.
    skip: u32,
    /// Number of these bytes, at their end, that are padding; all of them, if they are not content.
    padding: u32,
    /// The stream whose content they are.
    stream: u32,
    /// Set if content is passed on.
    tells: bool,
    /// The stream that ends with them; 0 if none does.
    ends: u32,
}

/// A buffer that grew beyond this for a large frame is given back after it: one frame of the initial
/// SETTINGS_MAX_FRAME_SIZE fits.
const PARTIAL_KEPT: usize = 32 * 1024;

impl FrameReader {
    /// The next piece at the front of `input`, which moves on behind it; `None` when all is consumed.
    /// Payloads over `max_frame_size` are an error, after which nothing more may be read.
    #[inline(always)]
    pub(super) fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
        max_frame_size: u32,
    ) -> Result<Option<Piece<'a>>, ConnectionError> {
        if (self.skip > 0 || self.ends > 0)
            && let Some(piece) = self.drop_content(input)
        {
            return Ok(Some(piece));
        }
        if self.skip > 0 {
            return Ok(None);
        }
        if !self.partial.is_empty() {
            if !self.spent {
                return self.next_cut(input, max_frame_size);
            }
            self.give_back();
        }
        let front = front(input, max_frame_size)?;
        let taken = match front {
            Front::Cut { .. } => {
                self.partial.extend_from_slice(input);
                *input = &[];
                return Ok(None);
            }
            Front::Whole { payload, .. } => HEAD_BYTES + payload.len(),
            Front::Data { taken, .. } => taken,
            Front::Unknown { .. } => HEAD_BYTES,
        };
        *input = &input[taken..];
        self.note_dropped(&front);
        Ok(piece(front))
    }

    /// Makes the reader pass content on from here on, instead of only dropping it.
    pub(super) fn tell_content(&mut self) {
        self.tells = true;
    }

    /// Returns `true` if the next piece begins at the front of the input, with nothing kept or dropped of one
    /// before it.
    #[inline]
    pub(super) fn is_between_frames(&self) -> bool {
        self.skip == 0 && self.ends == 0 && (self.spent || self.partial.is_empty())
    }

    /// The first bytes of the frame at the front of `input`, as many as came of its head, with the kept part.
    /// Only between frames that are whole.
    pub(super) fn peek<'r>(&self, input: &[u8], room: &'r mut [u8; HEAD_BYTES]) -> &'r [u8] {
        let kept = if self.spent { &[] } else { &self.partial[..] };
        let mut length = 0;
        for (place, byte) in room.iter_mut().zip(kept.iter().chain(input)) {
            *place = *byte;
            length += 1;
        }
        &room[..length]
    }

    /// Returns the head of the frame that is cut at the end of the input, if that much of it came. Not for
    /// DATA.
    #[inline]
    pub(super) fn cut_head(&self) -> Option<FrameHead> {
        if self.spent {
            return None;
        }
        self.partial.first_chunk().map(FrameHead::read)
    }

    /// Returns the first piece of the frame whose beginning is in `partial`, completed from `input`.
    #[cold]
    fn next_cut(
        &mut self,
        input: &mut &[u8],
        max_frame_size: u32,
    ) -> Result<Option<Piece<'_>>, ConnectionError> {
        while let Front::Cut { needed } = front(&self.partial, max_frame_size)? {
            if input.is_empty() {
                return Ok(None);
            }
            let (more, rest) = input.split_at(input.len().min(needed - self.partial.len()));
            self.partial.extend_from_slice(more);
            *input = rest;
        }
        self.spent = true;
        // The kept part of the front is borrowed from the reader, and the rest is noted beside it.
        let partial = std::mem::take(&mut self.partial);
        let noted = front(&partial, max_frame_size).map(|front| self.note_dropped(&front));
        self.partial = partial;
        noted?;
        Ok(piece(front(&self.partial, max_frame_size)?))
    }

    /// Notes the bytes behind a piece that are dropped, and the stream that ends with them.
    #[inline(always)]
    fn note_dropped(&mut self, front: &Front<'_>) {
        match *front {
            Front::Data { head, padding, follows, .. } => {
                self.ends = if head.has(flag::END_STREAM) { head.stream } else { 0 };
                (self.skip, self.padding, self.stream) = (follows, padding, head.stream);
            }
            Front::Unknown { follows, .. } => (self.skip, self.padding, self.ends) = (follows, follows, 0),
            Front::Whole { .. } | Front::Cut { .. } => (self.skip, self.ends) = (0, 0),
        }
    }

    /// Drops the content that came, or returns it. Then returns the stream that ended with its last byte.
    #[inline]
    fn drop_content<'i>(&mut self, input: &mut &'i [u8]) -> Option<Piece<'i>> {
        if self.tells && self.skip > self.padding && !input.is_empty() {
            let there = input.len().min((self.skip - self.padding) as usize);
            let (bytes, rest) = input.split_at(there);
            *input = rest;
            self.skip -= there as u32;
            return Some(Piece::Content { stream: self.stream, bytes });
        }
        let dropped = input.len().min(self.skip as usize);
        *input = &input[dropped..];
        self.skip -= dropped as u32;
        if self.skip > 0 || self.ends == 0 {
            return None;
        }
        Some(Piece::End { stream: std::mem::take(&mut self.ends) })
    }

    fn give_back(&mut self) {
        self.spent = false;
        self.partial.clear();
        self.partial.shrink_to(PARTIAL_KEPT);
    }
}

#[inline(always)]
fn piece(front: Front<'_>) -> Option<Piece<'_>> {
    match front {
        Front::Data { head, padding, follows, .. } => Some(Piece::Data { head, content: follows - padding }),
        Front::Unknown { head, .. } => Some(Piece::Unknown { head }),
        Front::Whole { head, payload } => Some(Piece::Whole { head, payload }),
        Front::Cut { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frame::{kind, put_head, put_ping, put_settings_ack};
    use super::*;

    fn pieces<'p>(parts: impl Iterator<Item = &'p [u8]>) -> (Vec<String>, Result<(), ConnectionError>) {
        let (mut frame_reader, mut pieces) = (FrameReader::default(), Vec::new());
        for mut input in parts {
            loop {
                match frame_reader.next(&mut input, 100) {
                    Ok(Some(piece)) => pieces.push(format!("{piece:?}")),
                    Ok(None) => break,
                    Err(error) => return (pieces, Err(error)),
                }
            }
            assert!(input.is_empty());
        }
        (pieces, Ok(()))
    }

    #[test]
    fn data_is_told_when_it_begins_and_when_its_stream_ends() {
        let mut bytes = Vec::new();
        put_head(&mut bytes, 5, kind::DATA, flag::PADDED, 3);
        bytes.extend_from_slice(&[2, b'a', b'b', 0, 0]);
        put_head(&mut bytes, 2, kind::DATA, flag::END_STREAM, 3);
        bytes.extend_from_slice(b"cd");
        put_head(&mut bytes, 0, kind::DATA, flag::END_STREAM, 5);
        put_head(&mut bytes, 1, 0x77, 0xff, 0);
        bytes.push(b'?');
        put_ping(&mut bytes, true, *b"12345678");
        let (whole, result) = pieces([&bytes[..]].into_iter());
        assert_eq!(result, Ok(()));
        let kinds: Vec<_> = whole.iter().map(|piece| piece.split(' ').next().unwrap()).collect();
        assert_eq!(kinds, ["Data", "Data", "End", "Data", "End", "Unknown", "Whole"]);
        assert!(whole[0].ends_with("content: 2 }"), "{}", whole[0]);
        assert_eq!(whole[4], "End { stream: 5 }");
    }

    proptest! {
        #[test]
        fn pieces_do_not_depend_on_the_cuts(
            frames in prop::collection::vec((0_u8..12, any::<u8>(), 0_u32..4, 0_usize..110), 0..12),
            cuts in prop::collection::vec(1_usize..40, 1..5),
        ) {
            let mut bytes = Vec::new();
            for (kind, flags, stream, length) in frames {
                put_head(&mut bytes, length as u32, kind, flags, stream);
                bytes.extend((0..length).map(|at| at as u8));
            }
            put_settings_ack(&mut bytes);
            let whole = pieces([&bytes[..]].into_iter());
            prop_assert_eq!(&pieces(bytes.chunks(1)), &whole);
            let (mut rest, mut sizes) = (&bytes[..], cuts.iter().cycle());
            let parts = std::iter::from_fn(|| {
                let size = rest.len().min(*sizes.next()?);
                let (part, later) = rest.split_at(size);
                rest = later;
                (size > 0).then_some(part)
            });
            prop_assert_eq!(&pieces(parts), &whole);
        }
    }
}
