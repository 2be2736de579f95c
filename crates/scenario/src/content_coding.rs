//! Content codings of bodies (RFC 9110, section 8.4): compressed content is unpacked before it is read.

use std::cell::Cell;
use std::io::{self, Read};

use flate2::bufread::GzDecoder;
use flate2::read::{DeflateDecoder, ZlibDecoder};

use crate::message::FieldList;

/// More codings in a row than any server uses.
const MOST_CODINGS: usize = 2;
/// Members of a gzip file, each of which may be empty: 16 MiB of them would take seconds.
const MOST_MEMBERS: usize = 1_000;
/// Compressed bytes that may have no content, beside as many as there is content.
const WITHOUT_CONTENT: u64 = 256 << 10;
/// Bytes of content that are unpacked at once.
const PART: usize = 16 << 10;
/// Size of the decoder's buffer for Brotli, in bytes.
const BROTLI_BUFFER: usize = 4096;

/// Unpacks a body by the `content-encoding` of its fields: `gzip`, `deflate`, `br` and `zstd`, also several
/// of them. Content of `limit` bytes or more is cut off there, in each layer, so that a small body does not
/// become a huge one.
///
/// # Errors
/// A coding that is not known, or content that is not what the field says, as a sentence. The body is then
/// empty.
pub fn decode_content(fields: &FieldList, body: &mut Vec<u8>, limit: usize) -> Result<(), String> {
    if body.is_empty() {
        return Ok(());
    }
    let codings: Vec<String> = fields
        .all("content-encoding")
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(|coding| String::from_utf8_lossy(coding).trim().to_ascii_lowercase())
        .filter(|coding| !coding.is_empty() && coding != "identity")
        .collect();
    if codings.len() > MOST_CODINGS {
        body.clear();
        return Err(format!("the body has {} content codings, more than {MOST_CODINGS}", codings.len()));
    }
    // They are listed in the order in which they were applied.
    for coding in codings.iter().rev() {
        match decoded(coding, body, limit) {
            Ok(content) => *body = content,
            Err(error) => {
                body.clear();
                let coding = coding.escape_debug();
                return Err(format!("the body is not `{coding}`, as its content-encoding says: {error}"));
            }
        }
    }
    Ok(())
}

fn decoded(coding: &str, body: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    let limit = limit as u64;
    let made = Cell::new(0);
    let source = Source { left: body, taken: 0, made: &made };
    match coding {
        "gzip" | "x-gzip" => members(body, limit),
        // The zlib format, which some servers leave out.
        "deflate" if has_zlib_header(body) => all(ZlibDecoder::new(source).take(limit), &made),
        "deflate" => all(DeflateDecoder::new(source).take(limit), &made),
        "br" => all(brotli_decompressor::Decompressor::new(source, BROTLI_BUFFER).take(limit), &made),
        "zstd" => all(zstd::Decoder::new(source)?.take(limit), &made),
        _ => Err(io::Error::other("gzip, deflate, br and zstd are known")),
    }
}

/// Compressed bytes that a decoder takes. Blocks without content, of which 16 MiB would take seconds, end
/// them.
#[derive(Debug)]
struct Source<'b> {
    left: &'b [u8],
    taken: u64,
    /// Bytes of content so far.
    made: &'b Cell<u64>,
}

impl Read for Source<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // No coding makes content longer by more than a hundredth.
        if self.taken > 2 * self.made.get() + WITHOUT_CONTENT {
            return Err(io::Error::other("it is many blocks without content"));
        }
        let taken = self.left.read(into)?;
        self.taken += taken as u64;
        Ok(taken)
    }
}

/// The whole content, whose length so far is in `made`.
fn all(mut decoder: impl Read, made: &Cell<u64>) -> io::Result<Vec<u8>> {
    let (mut content, mut part) = (Vec::new(), [0; PART]);
    loop {
        match decoder.read(&mut part) {
            Ok(0) => return Ok(content),
            Ok(len) => content.extend_from_slice(&part[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        made.set(content.len() as u64);
    }
}

/// The content of all members of a gzip file (RFC 1952, section 2.2), up to `limit` bytes.
fn members(mut body: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    for _ in 0..MOST_MEMBERS {
        let mut member = GzDecoder::new(body);
        (&mut member).take(limit - content.len() as u64).read_to_end(&mut content)?;
        body = member.into_inner();
        if body.is_empty() || content.len() as u64 >= limit {
            return Ok(content);
        }
    }
    Err(io::Error::other(format!("it has more than {MOST_MEMBERS} members")))
}

/// Returns `true` if the content begins as RFC 1950, section 2.2, says.
fn has_zlib_header(body: &[u8]) -> bool {
    let [method, flags, ..] = *body else { return false };
    method & 0x0f == 8 && (u16::from(method) << 8 | u16::from(flags)).is_multiple_of(31)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 1 << 16;
    /// `hello, hello, hello` as the reference implementation compresses it (Brotli 1.2, quality 5).
    const BROTLI: [u8; 14] =
        [0x1b, 0x12, 0x00, 0x00, 0xa4, 0x40, 0x58, 0x6a, 0x90, 0x68, 0x2a, 0xf1, 0x9c, 0x2e];

    fn coded(coding: &str, content: &[u8]) -> Vec<u8> {
        match coding {
            "gzip" | "x-gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            "deflate" => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            "zstd" => zstd::encode_all(content, 1).unwrap(),
            other => unreachable!("{other}"),
        }
    }

    fn decode(coding: &str, body: &[u8]) -> (Result<(), String>, Vec<u8>) {
        let mut fields = FieldList::default();
        fields.push(b"content-encoding", coding.as_bytes());
        let mut body = body.to_vec();
        let result = decode_content(&fields, &mut body, LIMIT);
        (result, body)
    }

    #[test]
    fn content_is_unpacked_by_each_coding() {
        for coding in ["gzip", "x-gzip", "deflate", "zstd"] {
            assert_eq!(decode(coding, &coded(coding, b"hello")), (Ok(()), b"hello".to_vec()), "{coding}");
        }
        assert_eq!(decode("br", &BROTLI), (Ok(()), b"hello, hello, hello".to_vec()));
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(b"hello").unwrap();
        assert_eq!(decode("deflate", &raw.finish().unwrap()), (Ok(()), b"hello".to_vec()));
        let members = [coded("gzip", b"hel"), coded("gzip", b"lo")].concat();
        assert_eq!(decode("GZIP", &members), (Ok(()), b"hello".to_vec()));
        // Applied in the order of the list.
        let twice = coded("gzip", &coded("zstd", b"hello"));
        assert_eq!(decode("identity, zstd ,gzip", &twice), (Ok(()), b"hello".to_vec()));
    }

    #[test]
    fn bodies_without_a_coding_stay() {
        assert_eq!(decode("identity", b"hello"), (Ok(()), b"hello".to_vec()));
        assert_eq!(decode("", b"hello"), (Ok(()), b"hello".to_vec()));
        // An answer to HEAD.
        assert_eq!(decode("gzip", b""), (Ok(()), Vec::new()));
    }

    #[test]
    fn content_that_is_something_else_is_told() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let (result, body) = decode(coding, b"\xffhello");
            let told = result.unwrap_err();
            let expected = format!("the body is not `{coding}`, as its content-encoding says: ");
            assert!(told.starts_with(&expected), "{told}");
            assert!(body.is_empty());
        }
        let cut = coded("gzip", b"hello");
        assert!(decode("gzip", &cut[..cut.len() - 1]).0.is_err());
        let told = decode("compress", b"hello").0.unwrap_err();
        assert!(told.ends_with("gzip, deflate, br and zstd are known"), "{told}");
        let told = decode("gzip,gzip,gzip", b"hello").0.unwrap_err();
        assert_eq!(told, "the body has 3 content codings, more than 2");
        // Symptom: an answer of 245 bytes held a worker for seconds.
        let empty = coded("gzip", b"").repeat(MOST_MEMBERS + 1);
        for (coding, body) in [("gzip", empty.clone()), ("gzip, gzip", coded("gzip", &empty))] {
            let told = decode(coding, &body).0.unwrap_err();
            assert!(told.ends_with("it has more than 1000 members"), "{told}");
        }
        assert_eq!(decode("gzip", &coded("gzip", b"").repeat(MOST_MEMBERS)), (Ok(()), Vec::new()));
    }

    /// Symptom: 16 MiB of Brotli without content held a worker for two seconds.
    #[test]
    fn blocks_without_content_have_an_end() {
        // Brotli: a window of 64 KiB (0), then metadata blocks without a byte: 0, 11, 0, 00, and padding.
        let brotli = [&[0x0c][..], &vec![0x06; 1 << 20]].concat();
        // Deflate: stored blocks of no byte.
        let deflate = b"\x00\x00\x00\xff\xff".repeat(200_000);
        // Zstandard: frames that are skipped.
        let zstd = b"\x50\x2a\x4d\x18\x08\0\0\0\0\0\0\0\0\0\0\0".repeat(60_000);
        for (coding, body) in [("br", brotli), ("deflate", deflate), ("zstd", zstd)] {
            let told = decode(coding, &body).0.unwrap_err();
            assert!(told.ends_with("it is many blocks without content"), "{coding}: {told}");
        }
    }

    #[test]
    fn a_small_body_does_not_become_a_huge_one() {
        let zeros = vec![0; 64 * LIMIT];
        for coding in ["gzip", "deflate", "zstd"] {
            let (result, body) = decode(coding, &coded(coding, &zeros));
            assert_eq!((result, body.len()), (Ok(()), LIMIT), "{coding}");
        }
    }

    proptest! {
        #[test]
        fn any_content_comes_back(content in prop::collection::vec(any::<u8>(), 1..2000)) {
            for coding in ["gzip", "deflate", "zstd"] {
                prop_assert_eq!(decode(coding, &coded(coding, &content)), (Ok(()), content.clone()));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(content in prop::collection::vec(any::<u8>(), 0..300)) {
            for coding in ["gzip", "deflate", "br", "zstd"] {
                let (result, body) = decode(coding, &content);
                prop_assert!(result.is_ok() || body.is_empty());
                prop_assert!(body.len() <= LIMIT);
            }
        }
    }
}
