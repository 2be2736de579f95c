//! Compression of messages: permessage-deflate (RFC 7692).
//!
//! Each message is compressed by itself. That is always allowed (section 7.1.1.2), and lets all connections
//! of a thread share one compressor, whose memory is several times that of a decompressor. What the peer
//! compresses may refer to its earlier messages, so a connection has a decompressor to itself, from its first
//! compressed message on.

use std::fmt;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::frame::write_compressed;
use super::handshake::HandshakeError;
use super::{Opcode, WebSocketError};

/// Name of the extension.
const NAME: &str = "permessage-deflate";
/// Output of a flush that the sender leaves out, and the receiver puts back (section 7.2.1).
const TAIL: [u8; 4] = [0x00, 0x00, 0xff, 0xff];
/// Window of DEFLATE: the logarithms of the smallest and the largest (section 7.1.2).
const WINDOWS: std::ops::RangeInclusive<u8> = 8..=15;
/// Bytes by which a message grows while it is unpacked.
const STEP: usize = 16 << 10;

/// What both ends have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deflate {
    /// Logarithm of the window of what we send.
    window: u8,
    /// The peer compresses each message by itself, too.
    forgets: bool,
}

impl Deflate {
    /// The offer of a client that takes any parameters.
    pub const OFFER: &str = "permessage-deflate; client_max_window_bits";

    /// What a server has made of the offered extensions; `None` if it has chosen none. Both are as they stand
    /// in the fields.
    ///
    /// # Errors
    /// It has chosen what was not offered, or parameters that cannot be (section 7.1).
    pub(super) fn chosen(offered: &[u8], chosen: &[u8]) -> Result<Option<Self>, HandshakeError> {
        let text = String::from_utf8_lossy(chosen);
        if text.trim().is_empty() {
            return Ok(None);
        }
        let offered = String::from_utf8_lossy(offered);
        let offers = || offered.split(',').map(Extension::read).filter(|offer| offer.name == NAME);
        let extension = Extension::read(&text);
        if extension.name != NAME || text.contains(',') || offers().next().is_none() {
            return Err(HandshakeError::Extension(text.trim().to_owned()));
        }
        let wrong = |parameter: &str| Err(HandshakeError::Deflate(parameter.to_owned()));
        let takes_window =
            offers().any(|offer| offer.parameters.iter().any(|(name, _)| *name == CLIENT_WINDOW));
        let mut agreed = Self { window: *WINDOWS.end(), forgets: false };
        for (place, (name, value)) in extension.parameters.iter().enumerate() {
            if extension.parameters[..place].iter().any(|(before, _)| before == name) {
                return wrong(name);
            }
            match (*name, *value) {
                ("server_no_context_takeover", None) => agreed.forgets = true,
                ("client_no_context_takeover", None) => {}
                ("server_max_window_bits", Some(bits)) if window(bits).is_some() => {}
                (CLIENT_WINDOW, Some(bits)) if takes_window => match window(bits) {
                    Some(bits) => agreed.window = bits,
                    None => return wrong(name),
                },
                _ => return wrong(name),
            }
        }
        Ok(Some(agreed))
    }
}

const CLIENT_WINDOW: &str = "client_max_window_bits";

/// A window in a parameter: 8 to 15, without a leading zero.
fn window(text: &str) -> Option<u8> {
    text.parse().ok().filter(|bits| WINDOWS.contains(bits) && !text.starts_with(['0', '+']))
}

/// An extension in a field: `name; parameter; parameter=value`.
struct Extension<'t> {
    name: &'t str,
    parameters: Vec<(&'t str, Option<&'t str>)>,
}

impl<'t> Extension<'t> {
    fn read(text: &'t str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let parameters = parts.map(|part| match part.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().trim_matches('"'))),
            None => (part, None),
        });
        Self { name, parameters: parameters.collect() }
    }
}

/// Compressor of messages, for all connections of a thread. It has no memory before the first message.
#[derive(Default)]
pub struct Deflater {
    compress: Option<Compress>,
    out: Vec<u8>,
}

impl fmt::Debug for Deflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deflater").field("is_used", &self.compress.is_some()).finish_non_exhaustive()
    }
}

impl Deflater {
    /// Appends a message that is compressed as was agreed.
    pub fn write(
        &mut self,
        agreed: Deflate,
        opcode: Opcode,
        mask: Option<[u8; 4]>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) {
        self.compress(payload, 1 << agreed.window);
        write_compressed(opcode, mask, &self.out, out);
        self.out.clear();
        self.out.shrink_to(STEP);
    }

    /// Compresses a message so that nothing in it refers back by more than the window. The library's own
    /// window is the largest; a smaller one is kept by forgetting everything once as much was compressed.
    fn compress(&mut self, payload: &[u8], window: usize) {
        let compress = self.compress.get_or_insert_with(|| Compress::new(Compression::fast(), false));
        let whole = window == 1 << WINDOWS.end() || payload.is_empty();
        let pieces = payload.chunks(if whole { payload.len().max(1) } else { window });
        // An empty message has a block, too.
        for piece in pieces.chain(payload.is_empty().then_some(payload)) {
            compress.reset();
            let mut left = piece;
            loop {
                self.out.reserve(STEP.max(left.len() / 2));
                let before = compress.total_in();
                // The only error is a missing dictionary.
                let _ = compress.compress_vec(left, &mut self.out, FlushCompress::Sync);
                left = &left[(compress.total_in() - before) as usize..];
                if left.is_empty() && self.out.len() < self.out.capacity() {
                    break;
                }
            }
        }
        if self.out.ends_with(&TAIL) {
            self.out.truncate(self.out.len() - TAIL.len());
        }
        if self.out.is_empty() {
            self.out.push(0);
        }
    }
}

/// Decompressor of the messages of one connection.
pub(super) struct Inflater {
    agreed: Deflate,
    decompress: Option<Decompress>,
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater").field("agreed", &self.agreed).finish_non_exhaustive()
    }
}

impl Inflater {
    pub(super) const fn new(agreed: Deflate) -> Self {
        Self { agreed, decompress: None }
    }

    /// Appends what a message was before it was compressed: at most `limit` bytes, whose number is returned.
    /// A reference to before the first message reads zeros: the library does not tell.
    ///
    /// # Errors
    /// It is longer, or not DEFLATE.
    pub(super) fn inflate(
        &mut self,
        payload: &[u8],
        limit: usize,
        into: &mut Vec<u8>,
    ) -> Result<usize, WebSocketError> {
        let decompress = self.decompress.get_or_insert_with(|| Decompress::new(false));
        let start = into.len();
        for mut input in [payload, &TAIL] {
            loop {
                if into.len() == into.capacity() {
                    into.reserve(STEP);
                }
                let (taken, made) = (decompress.total_in(), into.len());
                let status = decompress.decompress_vec(input, into, FlushDecompress::Sync);
                let Ok(status) = status else { return Err(WebSocketError::Deflate) };
                let count = (decompress.total_in() - taken) as usize;
                input = &input[count..];
                if into.len() - start > limit {
                    return Err(WebSocketError::TooLong);
                }
                if status == Status::StreamEnd {
                    // A last block, behind which others follow all the same (section 7.2.3.4).
                    decompress.reset(false);
                } else if into.len() == into.capacity() {
                    continue;
                } else if !input.is_empty() && count == 0 && into.len() == made {
                    return Err(WebSocketError::Deflate);
                }
                if input.is_empty() {
                    break;
                }
            }
        }
        if self.agreed.forgets {
            self.decompress = None;
        }
        Ok(into.len() - start)
    }
}
