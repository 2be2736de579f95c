//! The simulation's own reading and writing of header blocks (RFC 7541).
//!
//! Like [`mod@crate::request`] deliberately not the code of the product, and written for shortness: a table
//! of code lengths from which the canonical Huffman code follows, and a decoder that goes bit by bit. Replies
//! never use the dynamic table, so a client's use of its own table can be seen in isolation.

use std::collections::VecDeque;

/// A name and a value.
pub(crate) type Field = (Vec<u8>, Vec<u8>);

/// A block that means nothing: it breaks the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotABlock;

/// The dynamic table's limit: the initial value of SETTINGS_HEADER_TABLE_SIZE (RFC 9113 section 6.5.2), which
/// the simulated servers leave as it is.
const TABLE_BYTES: usize = 4096;

/// RFC 7541 Appendix A: names in order, with the values that are not empty.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// RFC 7541 Appendix B: bits of the code of each byte, and of the end of string. The code is canonical: codes
/// count upwards by length, then by symbol.
#[rustfmt::skip]
const CODE_BITS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26, 30,
];

/// Reads the header blocks of one connection.
#[derive(Debug)]
pub(crate) struct BlockReader {
    /// The symbols by length of code, then by value: the order of their codes.
    symbols: Vec<u16>,
    /// Newest first.
    table: VecDeque<Field>,
    size: usize,
    limit: usize,
}

impl BlockReader {
    pub(crate) fn new() -> Self {
        let mut symbols: Vec<u16> = (0..CODE_BITS.len() as u16).collect();
        symbols.sort_by_key(|&symbol| (CODE_BITS[symbol as usize], symbol));
        Self { symbols, table: VecDeque::new(), size: 0, limit: TABLE_BYTES }
    }

    /// The fields of a whole block.
    pub(crate) fn read(&mut self, mut block: &[u8]) -> Result<Vec<Field>, NotABlock> {
        let mut fields = Vec::new();
        while let Some(&first) = block.first() {
            if first & 0x80 != 0 {
                fields.push(self.entry(integer(&mut block, 7)?)?);
            } else if first & 0xe0 == 0x20 {
                let limit = integer(&mut block, 5)?;
                if !fields.is_empty() || limit > TABLE_BYTES {
                    return Err(NotABlock);
                }
                self.limit = limit;
                self.evict();
            } else {
                let indexed = first & 0x40 != 0;
                let name = match integer(&mut block, if indexed { 6 } else { 4 })? {
                    0 => self.string(&mut block)?,
                    index => self.entry(index)?.0,
                };
                let field = (name, self.string(&mut block)?);
                if indexed {
                    self.size += size(&field);
                    self.table.push_front(field.clone());
                    self.evict();
                }
                fields.push(field);
            }
        }
        Ok(fields)
    }

    fn evict(&mut self) {
        while self.size > self.limit
            && let Some(oldest) = self.table.pop_back()
        {
            self.size -= size(&oldest);
        }
    }

    /// RFC 7541 section 2.3.3: the static table first, then the dynamic one; there is no entry 0.
    fn entry(&self, index: usize) -> Result<Field, NotABlock> {
        let index = index.checked_sub(1).ok_or(NotABlock)?;
        match STATIC.get(index) {
            Some((name, value)) => Ok((name.as_bytes().to_vec(), value.as_bytes().to_vec())),
            None => self.table.get(index - STATIC.len()).cloned().ok_or(NotABlock),
        }
    }

    fn string(&self, block: &mut &[u8]) -> Result<Vec<u8>, NotABlock> {
        let huffman = block.first().ok_or(NotABlock)? & 0x80 != 0;
        let length = integer(block, 7)?;
        let (bytes, rest) = block.split_at_checked(length).ok_or(NotABlock)?;
        *block = rest;
        if huffman { self.unpack(bytes) } else { Ok(bytes.to_vec()) }
    }

    /// Decodes a canonical code: among the codes of one length a symbol is found by counting.
    fn unpack(&self, bytes: &[u8]) -> Result<Vec<u8>, NotABlock> {
        let mut out = Vec::new();
        // The code so far, its length, the first code of that length, and the place of its symbol.
        let (mut code, mut length, mut first, mut place) = (0_usize, 0_u8, 0_usize, 0_usize);
        let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| usize::from(byte >> bit & 1)));
        for bit in bits {
            (code, first, length) = (code << 1 | bit, first << 1, length + 1);
            let count = CODE_BITS.iter().filter(|&&bits| bits == length).count();
            if code - first < count {
                let symbol = self.symbols[place + code - first];
                out.push(u8::try_from(symbol).map_err(|_| NotABlock)?);
                (code, length, first, place) = (0, 0, 0, 0);
            } else {
                (first, place) = (first + count, place + count);
            }
        }
        // The remaining bits must be the beginning of the end-of-string code, less than a byte (RFC 7541
        // section 5.2).
        if length < 8 && code == (1 << length) - 1 { Ok(out) } else { Err(NotABlock) }
    }
}

fn size(field: &Field) -> usize {
    field.0.len() + field.1.len() + 32
}

/// RFC 7541 section 5.1, with a prefix of this many bits.
fn integer(block: &mut &[u8], prefix: u32) -> Result<usize, NotABlock> {
    let mut next = || {
        let (&byte, rest) = block.split_first().ok_or(NotABlock)?;
        *block = rest;
        Ok(usize::from(byte))
    };
    let most = (1 << prefix) - 1;
    let mut value = next()? & most;
    if value < most {
        return Ok(value);
    }
    // Five bytes carry 35 bits, more than any length here.
    for shift in (0..35).step_by(7) {
        let byte = next()?;
        value += (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(NotABlock)
}

/// Appends a field: from the static table if all of it is there, else as a literal that is not indexed.
pub(crate) fn write(out: &mut Vec<u8>, name: &str, value: &str) {
    if let Some(index) = STATIC.iter().position(|&entry| entry == (name, value)) {
        out.push(0x80 | (index as u8 + 1));
        return;
    }
    write_literal(out, name, value);
}

/// Appends a literal field that is not indexed, with a name that is not either (RFC 7541 section 6.2.2).
pub(crate) fn write_literal(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(0);
    for text in [name, value] {
        write_length(out, text.len());
        out.extend_from_slice(text.as_bytes());
    }
}

fn write_length(out: &mut Vec<u8>, length: usize) {
    if length < 0x7f {
        return out.push(length as u8);
    }
    out.push(0x7f);
    let mut rest = length - 0x7f;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn text(fields: Vec<Field>) -> Vec<String> {
        let join =
            |(name, value): Field| [name, value].map(|part| String::from_utf8(part).unwrap()).join(": ");
        fields.into_iter().map(join).collect()
    }

    /// RFC 7541 Appendix C.4: requests with Huffman coding.
    #[test]
    fn the_examples_of_the_rfc_are_read() {
        let mut reader = BlockReader::new();
        let rows = [
            ("828684418cf1e3c2e5f23a6ba0ab90f4ff", vec!["/"], 57),
            ("828684be5886a8eb10649cbf", vec!["/", "cache-control: no-cache"], 110),
            (
                "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
                vec!["/index.html", "custom-key: custom-value"],
                164,
            ),
        ];
        for (block, expected, size) in &rows {
            let fields = text(reader.read(&bytes(block)).unwrap());
            assert_eq!(fields[0], ":method: GET");
            assert_eq!(fields[2], format!(":path: {}", expected[0]));
            assert_eq!(fields[3], ":authority: www.example.com");
            assert_eq!(fields[4..], expected[1..]);
            assert_eq!(reader.size, *size);
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let long = "v".repeat(300);
        let mut block = Vec::new();
        for (name, value) in [(":status", "200"), (":status", "503"), ("a", ""), ("b", &long)] {
            write(&mut block, name, value);
        }
        let fields = text(BlockReader::new().read(&block).unwrap());
        assert_eq!(fields, [":status: 200", ":status: 503", "a: ", &format!("b: {long}")]);
        for cut in 2..block.len() {
            let whole = BlockReader::new().read(&block[..cut]).map(|fields| fields.len());
            assert!(matches!(whole, Err(NotABlock) | Ok(1..4)), "{cut}: {whole:?}");
        }
    }

    #[test]
    fn the_table_forgets_its_oldest_entries() {
        let mut reader = BlockReader::new();
        // A limit of 70 bytes holds two entries of 34.
        assert_eq!(reader.read(&bytes("3f27 400161 0131 400162 0132 400163 0133")).unwrap().len(), 3);
        assert_eq!(text(reader.read(&[0xbe, 0xbf]).unwrap()), ["c: 3", "b: 2"]);
        assert_eq!(reader.read(&[0xc0]), Err(NotABlock));
        assert_eq!(reader.read(&bytes("3fe21f")), Err(NotABlock), "4,097 is beyond the setting");
        assert_eq!(reader.read(&[0x80]), Err(NotABlock));
    }

    #[test]
    fn bad_huffman_endings_are_refused() {
        let mut reader = BlockReader::new();
        // "a" is 00011: padding with zeros, a whole byte of padding, and the end of string itself.
        for value in ["8118", "821fff", "84ffffffff"] {
            assert_eq!(reader.read(&bytes(&format!("0001 61 {value}"))), Err(NotABlock), "{value}");
        }
        assert_eq!(text(reader.read(&bytes("000161 811f")).unwrap()), ["a: a"]);
    }
}
