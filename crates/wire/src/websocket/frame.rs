//! Frames: heads, masks, and how they are written.

/// Most bytes of the payload of a control frame (RFC 6455 section 5.5).
pub const LONGEST_CONTROL: usize = 125;

const FIN: u8 = 0x80;
pub(super) const RESERVED: u8 = 0x70;
/// The reserved bit of a message that is compressed (RFC 7692 section 6).
pub(super) const COMPRESSED: u8 = 0x40;
const MASKED: u8 = 0x80;

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation,
    /// A message that is text, or its first fragment.
    Text,
    /// A message that is any bytes, or its first fragment.
    Binary,
    /// The end.
    Close,
    /// A question for a sign of life.
    Ping,
    /// The answer to it, or a sign of life without a question.
    Pong,
}

impl Opcode {
    /// The opcode of these four bits, if it has a meaning.
    pub(super) const fn read(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::Continuation),
            1 => Some(Self::Text),
            2 => Some(Self::Binary),
            8 => Some(Self::Close),
            9 => Some(Self::Ping),
            10 => Some(Self::Pong),
            _ => None,
        }
    }

    /// Returns `true` if the frame is no part of a message.
    pub const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }
}

/// Appends a frame: the last one of its message if `fin`. A client gives a `mask`, a server none.
#[inline]
pub fn write_frame(fin: bool, opcode: Opcode, mask: Option<[u8; 4]>, payload: &[u8], out: &mut Vec<u8>) {
    put_frame(opcode.bits() | if fin { FIN } else { 0 }, mask, payload, out);
}

/// Appends a message whose payload is compressed.
pub(super) fn write_compressed(opcode: Opcode, mask: Option<[u8; 4]>, payload: &[u8], out: &mut Vec<u8>) {
    put_frame(opcode.bits() | FIN | COMPRESSED, mask, payload, out);
}

/// Appends a frame that begins with this byte.
#[inline]
fn put_frame(first: u8, mask: Option<[u8; 4]>, payload: &[u8], out: &mut Vec<u8>) {
    out.reserve(14 + payload.len());
    out.push(first);
    let masked = if mask.is_some() { MASKED } else { 0 };
    match payload.len() {
        length @ 0..=125 => out.push(masked | length as u8),
        length @ 126..=0xffff => {
            out.push(masked | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(masked | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    let Some(mask) = mask else { return out.extend_from_slice(payload) };
    out.extend_from_slice(&mask);
    let start = out.len();
    out.extend_from_slice(payload);
    apply_mask(mask, 0, &mut out[start..]);
}

/// Appends a close frame with a status and a reason, which is cut to what a frame can have; without a status
/// it is empty.
pub fn write_close(code: Option<u16>, reason: &str, mask: Option<[u8; 4]>, out: &mut Vec<u8>) {
    let mut payload = [0; LONGEST_CONTROL];
    let length = match code {
        None => 0,
        Some(code) => {
            payload[..2].copy_from_slice(&code.to_be_bytes());
            let length = reason.floor_char_boundary(LONGEST_CONTROL - 2);
            payload[2..2 + length].copy_from_slice(&reason.as_bytes()[..length]);
            2 + length
        }
    };
    write_frame(true, Opcode::Close, mask, &payload[..length], out);
}

/// The status in the payload of a close frame that was read, if it has one.
pub fn close_code(payload: &[u8]) -> Option<u16> {
    payload.first_chunk::<2>().map(|code| u16::from_be_bytes(*code))
}

/// Returns `true` if a close frame may have this status: those of RFC 6455 section 7.4.1 and of the registry
/// of IANA that are not for the inside of an endpoint alone, and those of applications.
pub const fn is_valid_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Masks or unmasks bytes of a payload that come after `offset` others of it. Eight bytes at a time.
#[inline]
pub(super) fn apply_mask(mask: [u8; 4], offset: usize, bytes: &mut [u8]) {
    let mut turned = mask;
    turned.rotate_left(offset % 4);
    let half = u64::from(u32::from_ne_bytes(turned));
    let wide = half << 32 | half;
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(turned.iter().cycle()) {
        *byte ^= key;
    }
}

/// Bytes of the longest head: two, eight of the length, and four of the mask.
const LONGEST_HEAD: usize = 14;

/// The head of a frame as it comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadBuffer {
    bytes: [u8; LONGEST_HEAD],
    count: usize,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// The first two bytes.
    pub(super) front: [u8; 2],
    pub(super) mask: Option<[u8; 4]>,
    pub(super) length: u64,
    /// The length was written in the fewest bytes, and its highest bit is 0.
    pub(super) is_short: bool,
}

impl Head {
    pub(super) const fn fin(&self) -> bool {
        self.front[0] & FIN != 0
    }
}

impl HeadBuffer {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; LONGEST_HEAD], count: 0 }
    }

    /// Takes bytes of the head from the front of `input`; the head, once it is whole. Its first two bytes
    /// can be looked at [before](Self::front).
    #[inline]
    pub(super) fn take(&mut self, input: &mut &[u8]) -> Option<Head> {
        loop {
            let wanted = self.wanted();
            let count = (wanted - self.count).min(input.len());
            self.bytes[self.count..self.count + count].copy_from_slice(&input[..count]);
            *input = &input[count..];
            self.count += count;
            if self.count < wanted {
                return None;
            }
            if wanted == self.wanted() {
                break;
            }
        }
        let head = self.read();
        self.count = 0;
        Some(head)
    }

    /// The first two bytes, once they are there.
    pub(super) const fn front(&self) -> Option<[u8; 2]> {
        if self.count < 2 { None } else { Some([self.bytes[0], self.bytes[1]]) }
    }

    /// Returns `true` if a part of a head has come.
    pub(super) const fn is_begun(&self) -> bool {
        self.count > 0
    }

    /// Bytes of the whole head, as far as that is known.
    const fn wanted(&self) -> usize {
        if self.count < 2 {
            return 2;
        }
        let mask = if self.bytes[1] & MASKED == 0 { 0 } else { 4 };
        match self.bytes[1] & !MASKED {
            126 => 4 + mask,
            127 => 10 + mask,
            _ => 2 + mask,
        }
    }

    fn read(&self) -> Head {
        let [first, second, ..] = self.bytes;
        let at = |place: usize, count: usize| {
            self.bytes[place..place + count].iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
        };
        let (length, end, is_short) = match second & !MASKED {
            126 => (at(2, 2), 4, at(2, 2) > 125),
            127 => (at(2, 8), 10, at(2, 8) > 0xffff && at(2, 8) >> 63 == 0),
            length => (u64::from(length), 2, true),
        };
        let key = || [self.bytes[end], self.bytes[end + 1], self.bytes[end + 2], self.bytes[end + 3]];
        let mask = (second & MASKED != 0).then(key);
        Head { front: [first, second], mask, length, is_short }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_are_those_of_the_rfc() {
        // Section 5.7.
        let mut out = Vec::new();
        write_frame(true, Opcode::Text, None, b"Hello", &mut out);
        assert_eq!(out, [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
        out.clear();
        write_frame(true, Opcode::Text, Some([0x37, 0xfa, 0x21, 0x3d]), b"Hello", &mut out);
        assert_eq!(out, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
        for (length, head) in [
            (125, vec![0x82, 125]),
            (126, vec![0x82, 126, 0, 126]),
            (256, vec![0x82, 126, 1, 0]),
            (65_535, vec![0x82, 126, 255, 255]),
            (65_536, vec![0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            out.clear();
            write_frame(true, Opcode::Binary, None, &vec![7; length], &mut out);
            assert_eq!(out[..head.len()], head);
            assert_eq!(out.len(), head.len() + length);
        }
        out.clear();
        write_close(Some(1000), &"é".repeat(100), None, &mut out);
        // 61 letters of two bytes, not half of the next.
        assert_eq!((out[0], out[1], out.len()), (0x88, 124, 126));
        assert!(std::str::from_utf8(&out[4..]).is_ok());
        assert_eq!(close_code(&out[2..]), Some(1000));
    }

    #[test]
    fn codes_of_the_inside_are_not_sent() {
        for (code, valid) in
            [(999, false), (1000, true), (1004, false), (1005, false), (1006, false), (1015, false)]
        {
            assert_eq!(is_valid_close_code(code), valid, "{code}");
        }
        assert!(is_valid_close_code(4999) && !is_valid_close_code(5000) && !is_valid_close_code(2999));
    }

    proptest! {
        #[test]
        fn masks_by_words_are_masks_by_bytes(
            mask: [u8; 4], offset in 0..9_usize, bytes in prop::collection::vec(any::<u8>(), 0..70),
        ) {
            let mut masked = bytes.clone();
            apply_mask(mask, offset, &mut masked);
            for (place, (byte, before)) in masked.iter().zip(&bytes).enumerate() {
                prop_assert_eq!(*byte, before ^ mask[(offset + place) % 4]);
            }
            apply_mask(mask, offset, &mut masked);
            prop_assert_eq!(masked, bytes);
        }
    }
}
