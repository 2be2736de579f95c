//! The static table (RFC 7541 Appendix A).

/// Number of entries of the static table; the dynamic table's indices begin after them.
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
        let cases = [
            ((":authority", ""), Some(1)),
            ((":authority", "a"), None),
            ((":method", "POST"), Some(3)),
            ((":path", "/index.html"), Some(5)),
            ((":scheme", "https"), Some(7)),
            ((":status", "500"), Some(14)),
            (("accept-encoding", "gzip, deflate"), Some(16)),
            (("content-length", "5"), None),
            (("www-authenticate", ""), Some(61)),
            (("x-own", ""), None),
        ];
        for ((name, value), index) in cases {
            assert_eq!(find_field(name.as_bytes(), value.as_bytes()), index, "{name}: {value}");
        }
    }

    #[test]
    fn names_are_found_under_their_first_number() {
        let cases = [
            (":authority", Some(1)),
            (":method", Some(2)),
            (":path", Some(4)),
            (":status", Some(8)),
            ("accept-charset", Some(15)),
            ("accept", Some(19)),
            ("content-length", Some(28)),
            ("user-agent", Some(58)),
            ("www-authenticate", Some(61)),
            ("Accept", None),
            ("x-own", None),
        ];
        for (name, index) in cases {
            assert_eq!(find_name(name.as_bytes()), index, "{name}");
        }
    }
}
