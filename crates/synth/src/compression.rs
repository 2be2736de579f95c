//! Compressing whole batches.

use libdeflater::{CompressionLvl, Compressor as Deflater};

use crate::format::Compression;

/// A compressor whose memory is used again for each batch.
pub(crate) enum Compressor {
    None,
    Gzip(Deflater),
    Zstd(zstd::bulk::Compressor<'static>),
    Snappy(Box<snap::raw::Encoder>),
}

impl Compressor {
    /// For a level that [`Spec::validate`](crate::Spec::validate) found good.
    pub(crate) fn new(compression: Compression) -> Self {
        match compression {
            Compression::None => Self::None,
            Compression::Gzip { level } => {
                let level = CompressionLvl::new(level.into()).expect("levels 1 to 9 exist");
                Self::Gzip(Deflater::new(level))
            }
            Compression::Zstd { level } => {
                let compressor = zstd::bulk::Compressor::new(level.into()).expect("levels -7 to 19 exist");
                Self::Zstd(compressor)
            }
            Compression::Snappy => Self::Snappy(Box::new(snap::raw::Encoder::new())),
        }
    }

    /// Replaces the content of `out` by the compressed `raw`.
    pub(crate) fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::None => {
                out.clear();
                out.extend_from_slice(raw);
            }
            Self::Gzip(compressor) => {
                out.resize(compressor.gzip_compress_bound(raw.len()), 0);
                let written = compressor.gzip_compress(raw, out).expect("there is room for the worst case");
                out.truncate(written);
            }
            Self::Zstd(compressor) => {
                out.clear();
                out.reserve(zstd::zstd_safe::compress_bound(raw.len()));
                compressor.compress_to_buffer(raw, out).expect("there is room for the worst case");
            }
            Self::Snappy(encoder) => {
                out.resize(snap::raw::max_compress_len(raw.len()), 0);
                let written = encoder.compress(raw, out).expect("there is room for the worst case");
                out.truncate(written);
            }
        }
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Self::None => "None",
            Self::Gzip(_) => "Gzip",
            Self::Zstd(_) => "Zstd",
            Self::Snappy(_) => "Snappy",
        };
        f.write_str(name)
    }
}
