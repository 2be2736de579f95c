//! The examples of RFC 7541, Appendix C. Those of C.1 stand beside the integers.

use plimsoll_wire::http2::hpack::{Decoder, put_literal, put_string};

use super::{decode, dynamic_table, hex, pairs};

/// One header block: its bytes, the fields that it means, and the dynamic table after it with its size.
struct Example {
    block: &'static str,
    fields: &'static [(&'static str, &'static str)],
    table: &'static [(&'static str, &'static str)],
    table_bytes: usize,
}

fn check(decoder: &mut Decoder, examples: &[Example]) {
    for Example { block, fields, table, table_bytes } in examples {
        assert_eq!(decode(decoder, &hex(block)), Ok(pairs(fields)), "{block}");
        let held = dynamic_table(decoder);
        assert_eq!(held, pairs(table), "{block}");
        let size: usize = held.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        assert_eq!(size, *table_bytes, "{block}");
    }
}

#[test]
fn c2_header_field_representations() {
    let examples = [
        Example {
            block: "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            fields: &[("custom-key", "custom-header")],
            table: &[("custom-key", "custom-header")],
            table_bytes: 55,
        },
        Example {
            block: "040c 2f73 616d 706c 652f 7061 7468",
            fields: &[(":path", "/sample/path")],
            table: &[],
            table_bytes: 0,
        },
        Example {
            block: "1008 7061 7373 776f 7264 0673 6563 7265 74",
            fields: &[("password", "secret")],
            table: &[],
            table_bytes: 0,
        },
        Example { block: "82", fields: &[(":method", "GET")], table: &[], table_bytes: 0 },
    ];
    for example in examples {
        check(&mut Decoder::new(4096), &[example]);
    }
}

const FIRST_REQUEST: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
const SECOND_REQUEST: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "www.example.com"),
    ("cache-control", "no-cache"),
];
const THIRD_REQUEST: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":path", "/index.html"),
    (":authority", "www.example.com"),
    ("custom-key", "custom-value"),
];

/// The requests of C.3 and C.4, which differ in their bytes only.
fn requests(blocks: [&'static str; 3]) -> [Example; 3] {
    [
        Example {
            block: blocks[0],
            fields: FIRST_REQUEST,
            table: &[(":authority", "www.example.com")],
            table_bytes: 57,
        },
        Example {
            block: blocks[1],
            fields: SECOND_REQUEST,
            table: &[("cache-control", "no-cache"), (":authority", "www.example.com")],
            table_bytes: 110,
        },
        Example {
            block: blocks[2],
            fields: THIRD_REQUEST,
            table: &[
                ("custom-key", "custom-value"),
                ("cache-control", "no-cache"),
                (":authority", "www.example.com"),
            ],
            table_bytes: 164,
        },
    ]
}

#[test]
fn c3_requests_without_huffman_coding() {
    let blocks = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    check(&mut Decoder::new(4096), &requests(blocks));
}

#[test]
fn c4_requests_with_huffman_coding() {
    let blocks = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    check(&mut Decoder::new(4096), &requests(blocks));
}

const COOKIE: &str = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

/// The responses of C.5 and C.6, which differ in their bytes only. Entries are evicted.
fn responses(blocks: [&'static str; 3]) -> [Example; 3] {
    [
        Example {
            block: blocks[0],
            fields: &[
                (":status", "302"),
                ("cache-control", "private"),
                ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
                ("location", "https://www.example.com"),
            ],
            table: &[
                ("location", "https://www.example.com"),
                ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
                ("cache-control", "private"),
                (":status", "302"),
            ],
            table_bytes: 222,
        },
        Example {
            block: blocks[1],
            fields: &[
                (":status", "307"),
                ("cache-control", "private"),
                ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
                ("location", "https://www.example.com"),
            ],
            table: &[
                (":status", "307"),
                ("location", "https://www.example.com"),
                ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
                ("cache-control", "private"),
            ],
            table_bytes: 222,
        },
        Example {
            block: blocks[2],
            fields: &[
                (":status", "200"),
                ("cache-control", "private"),
                ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
                ("location", "https://www.example.com"),
                ("content-encoding", "gzip"),
                ("set-cookie", COOKIE),
            ],
            table: &[
                ("set-cookie", COOKIE),
                ("content-encoding", "gzip"),
                ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
            ],
            table_bytes: 215,
        },
    ]
}

/// The responses are for a table of 256 bytes, so an update to that size goes before them.
fn small_table() -> Decoder {
    let mut decoder = Decoder::new(256);
    assert_eq!(decode(&mut decoder, &hex("3fe101")), Ok(vec![]));
    decoder
}

#[test]
fn c5_responses_without_huffman_coding() {
    let blocks = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32
         3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970
         7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61
         6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    check(&mut small_table(), &responses(blocks));
}

#[test]
fn c6_responses_with_huffman_coding() {
    let blocks = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad
         1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2
         e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    check(&mut small_table(), &responses(blocks));
}

/// Strings are written exactly as in the examples with Huffman coding.
#[test]
fn strings_are_written_as_in_the_examples() {
    let examples = [
        ("www.example.com", "8c f1e3 c2e5 f23a 6ba0 ab90 f4ff"),
        ("no-cache", "86 a8eb 1064 9cbf"),
        ("custom-key", "88 25a8 49e9 5ba9 7d7f"),
        ("custom-value", "89 25a8 49e9 5bb8 e8b4 bf"),
        ("302", "82 6402"),
        ("private", "85 aec3 771a 4b"),
        ("Mon, 21 Oct 2013 20:13:21 GMT", "96 d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff"),
        ("https://www.example.com", "91 9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3"),
        ("gzip", "83 9bd9 ab"),
    ];
    for (text, expected) in examples {
        let mut out = Vec::new();
        put_string(&mut out, text.as_bytes());
        assert_eq!(out, hex(expected), "{text}");
    }
    let mut out = Vec::new();
    put_literal(&mut out, b":path", b"/sample/path", false);
    assert_eq!(decode(&mut Decoder::new(4096), &out), Ok(pairs(&[(":path", "/sample/path")])));
    assert_eq!(out[0], 0x04);
}
