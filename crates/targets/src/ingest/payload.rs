//! Payloads as they came, and without their compression.

use std::fmt;
use std::io::{self, Read as _};

use flate2::bufread::MultiGzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

/// A memory for decompressed payloads that is kept for the next one.
const USUAL_BYTES: usize = 4 << 20;

/// The compression of a payload, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// Detects the compression from the first bytes: RFC 1952 section 2.3.1, RFC 8878 section 3.1.1.
    pub(crate) const fn of(payload: &[u8]) -> Self {
        match payload {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "no",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// Reason why a payload cannot be decompressed.
#[derive(Debug)]
pub(crate) enum Damage {
    /// The payload is larger than one may be: the limit in bytes.
    TooLarge(u64),
    /// The content does not match its first bytes.
    Broken(io::Error),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The real server counts it in whole units of 2^20 bytes.
            Self::TooLarge(most) => write!(f, "decompressed payload exceeds {}MB limit", most >> 20),
            Self::Broken(error) => write!(f, "{error}"),
        }
    }
}

/// Decompresses payloads, one after the other, into the same memory.
#[derive(Debug, Default)]
pub(crate) struct Decompressor {
    out: Vec<u8>,
}

impl Decompressor {
    /// The payload without its compression.
    pub(crate) fn plain<'a>(
        &'a mut self,
        compression: Compression,
        payload: &'a [u8],
        most: u64,
    ) -> Result<&'a [u8], Damage> {
        self.out.clear();
        self.out.shrink_to(USUAL_BYTES);
        let taken = match compression {
            Compression::None => return Ok(payload),
            Compression::Gzip => MultiGzDecoder::new(payload).take(most + 1).read_to_end(&mut self.out),
            Compression::Zstd => ZstdDecoder::with_buffer(payload)
                .and_then(|decoder| decoder.take(most + 1).read_to_end(&mut self.out)),
        };
        taken.map_err(Damage::Broken)?;
        if self.out.len() as u64 > most { Err(Damage::TooLarge(most)) } else { Ok(&self.out) }
    }
}

/// A payload of snappy's block format, which begins with its length.
pub(crate) fn unsnapped(body: &[u8], most: u64) -> Result<Vec<u8>, String> {
    let length = snap::raw::decompress_len(body).map_err(|error| error.to_string())?;
    if length as u64 > most {
        return Err(Damage::TooLarge(most).to_string());
    }
    snap::raw::Decoder::new().decompress_vec(body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn plain(payload: &[u8], most: u64) -> Result<Vec<u8>, String> {
        let mut decompressor = Decompressor::default();
        let compression = Compression::of(payload);
        decompressor
            .plain(compression, payload, most)
            .map(<[u8]>::to_vec)
            .map_err(|damage| damage.to_string())
    }

    #[test]
    fn compression_is_found_by_the_first_bytes() {
        let text = b"some text that is text".repeat(100);
        let zstd = zstd::encode_all(&text[..], 1).unwrap();
        assert_eq!(plain(&gzip(&text), 1 << 20), Ok(text.clone()));
        assert_eq!(plain(&zstd, 1 << 20), Ok(text.clone()));
        assert_eq!(plain(&text, 1 << 20), Ok(text.clone()));
        let two = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(plain(&two, 1 << 20), Ok(b"one two".to_vec()));
        assert_eq!(Compression::of(b""), Compression::None);
    }

    #[test]
    fn what_is_too_large_or_broken_is_refused() {
        let bomb = vec![0; 3 << 20];
        let limit = Err("decompressed payload exceeds 1MB limit".to_owned());
        assert_eq!(plain(&gzip(&bomb), 1 << 20), limit);
        assert_eq!(plain(&zstd::encode_all(&bomb[..], 1).unwrap(), 1 << 20), limit);
        assert!(plain(&gzip(&bomb), 3 << 20).is_ok());
        // A bomb is unpacked only until it is recognized.
        for bomb in [gzip(&bomb), zstd::encode_all(&bomb[..], 1).unwrap()] {
            let mut decompressor = Decompressor::default();
            assert!(decompressor.plain(Compression::of(&bomb), &bomb, 1000).is_err());
            assert_eq!(decompressor.out.len(), 1001);
        }
        let whole = gzip(b"some text");
        assert!(plain(&whole[..whole.len() - 3], 100).is_err());
        assert!(plain(&whole[..2], 100).is_err());
        assert!(plain(b"\x28\xb5\x2f\xfdnothing", 100).is_err());
    }
}
