//! The static table (RFC 7541 Appendix A).

/// How many entries the static table has; the dynamic table's indices begin after them.
pub(crate) const STATIC_ENTRIES: u32 = 61;

/// The entries 1 to 61, at 0 to 60.
pub(super) static STATIC_TABLE: [(&[u8], &[u8]); STATIC_ENTRIES as usize] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// The index of the first entry with this name. A linear search: for blocks that are encoded once.
pub(crate) fn find_name(name: &[u8]) -> Option<u32> {
    (1..).zip(&STATIC_TABLE).find(|&(_, &(known, _))| known == name).map(|(index, _)| index)
}

/// The index of the entry with this name and value.
pub(crate) fn find_field(name: &[u8], value: &[u8]) -> Option<u32> {
    (1..).zip(&STATIC_TABLE).find(|&(_, &known)| known == (name, value)).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_under_their_numbers_in_the_rfc() {
        let cases: [(&[u8], &[u8], Option<u32>, Option<u32>); 9] = [
            (b":authority", b"", Some(1), Some(1)),
            (b":authority", b"a", None, Some(1)),
            (b":method", b"POST", Some(3), Some(2)),
            (b":status", b"500", Some(14), Some(8)),
            (b"accept-encoding", b"gzip, deflate", Some(16), Some(16)),
            (b"content-length", b"5", None, Some(28)),
            (b"user-agent", b"x", None, Some(58)),
            (b"www-authenticate", b"", Some(61), Some(61)),
            (b"x-own", b"", None, None),
        ];
        for (name, value, field, by_name) in cases {
            assert_eq!(find_field(name, value), field, "{}", name.escape_ascii());
            assert_eq!(find_name(name), by_name, "{}", name.escape_ascii());
        }
    }
}
