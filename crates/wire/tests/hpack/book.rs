//! Blocks that a book of header blocks writes.

use plimsoll_wire::http2::hpack::{Decoder, put_integer, put_literal, put_string};
use plimsoll_wire::http2::{BlockId, Field, FieldValue, HeaderBlockCache, Indexing};

use super::{Pair, decode, dynamic_table, hex, pairs};

fn fixed(name: &str, value: &str) -> Field {
    Field { name: name.into(), value: FieldValue::Fixed(value.into()), never_indexed: false }
}

fn variable(name: &str) -> Field {
    Field { name: name.into(), value: FieldValue::Variable, never_indexed: false }
}

fn secret(field: Field) -> Field {
    Field { never_indexed: true, ..field }
}

/// A book of these blocks, sealed.
fn book<const N: usize>(blocks: [Vec<Field>; N]) -> (HeaderBlockCache, [BlockId; N]) {
    let mut book = HeaderBlockCache::new();
    let ids = blocks.map(|fields| book.add(fields));
    book.seal();
    (book, ids)
}

fn write(book: &HeaderBlockCache, block: BlockId, indexing: &mut Indexing) -> Vec<u8> {
    write_with(book, block, indexing, &[])
}

fn write_with(book: &HeaderBlockCache, block: BlockId, indexing: &mut Indexing, values: &[&str]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    let mut asked = 0;
    book.write(block, indexing, &mut out, |nth, out| {
        assert_eq!(nth, asked, "values are asked for in their order");
        asked += 1;
        out.extend_from_slice(values[nth].as_bytes());
    });
    assert_eq!(asked, values.len());
    out.split_off(b"before".len())
}

fn request(path: &str) -> Vec<Field> {
    vec![
        fixed(":method", "GET"),
        fixed(":scheme", "http"),
        fixed(":authority", "www.example.com"),
        fixed(":path", path),
    ]
}

/// The first request of C.4.1 in RFC 7541, but for the order of its fields.
#[test]
fn the_first_block_inserts_and_the_next_one_refers() {
    let (book, [block]) = book([request("/")]);
    let mut indexing = Indexing::default();
    assert_eq!(write(&book, block, &mut indexing), hex("8286 418c f1e3 c2e5 f23a 6ba0 ab90 f4ff 84"));
    for _ in 0..3 {
        assert_eq!(write(&book, block, &mut indexing), hex("8286 be84"));
    }
}

#[test]
fn each_connection_begins_anew() {
    let (book, [block]) = book([request("/")]);
    let mut first = Indexing::default();
    let whole = write(&book, block, &mut first);
    write(&book, block, &mut first);
    assert_eq!(write(&book, block, &mut Indexing::default()), whole);
}

#[test]
fn blocks_share_their_fields() {
    let (book, [one, two]) = book([request("/one"), request("/two")]);
    let (mut indexing, mut decoder) = (Indexing::default(), Decoder::new(4096));
    let first = write(&book, one, &mut indexing);
    decode(&mut decoder, &first).unwrap();
    let second = write(&book, two, &mut indexing);
    assert_eq!(
        decode(&mut decoder, &second).unwrap()[2..],
        pairs(&[(":authority", "www.example.com"), (":path", "/two")])
    );
    let table = [(":path", "/two"), (":path", "/one"), (":authority", "www.example.com")];
    assert_eq!(dynamic_table(&mut decoder), pairs(&table));
    assert_eq!(write(&book, one, &mut indexing), hex("8286 c0bf"));
    assert_eq!(write(&book, two, &mut indexing), hex("8286 c0be"));
}

/// A connection may never see the first block of the book: the fields of the blocks that it does see are
/// inserted all the same.
#[test]
fn a_connection_that_sends_other_blocks_inserts_their_fields() {
    let (book, [one, two]) = book([request("/one"), request("/two")]);
    let (mut indexing, mut decoder) = (Indexing::default(), Decoder::new(4096));
    decode(&mut decoder, &write(&book, two, &mut indexing)).unwrap();
    assert_eq!(write(&book, two, &mut indexing), hex("8286 bfbe"));
    decode(&mut decoder, &write(&book, one, &mut indexing)).unwrap();
    let table = [(":path", "/one"), (":path", "/two"), (":authority", "www.example.com")];
    assert_eq!(dynamic_table(&mut decoder), pairs(&table));
    assert_eq!(write(&book, two, &mut indexing), hex("8286 c0bf"));
    assert_eq!(write(&book, one, &mut indexing), hex("8286 c0be"));
}

#[test]
fn a_field_that_stands_twice_in_a_block_is_inserted_once() {
    let (book, [block]) = book([vec![fixed("x-a", "b"), fixed("x-a", "b")]]);
    let mut indexing = Indexing::default();
    let first = write(&book, block, &mut indexing);
    assert_eq!(first.last(), Some(&0xbe));
    assert_eq!(write(&book, block, &mut indexing), hex("bebe"));
}

#[test]
fn values_of_any_length_are_rendered_in_place() {
    let fields = [request("/"), vec![variable("x-request-id"), fixed("accept", "*/*"), variable("cookie")]];
    let (book, [block]) = book([fields.concat()]);
    for length in [0, 1, 126, 127, 128, 300, 20_000] {
        let value = "v".repeat(length);
        for mut indexing in [Indexing::default(), Indexing::new(0)] {
            let mut decoder = Decoder::new(4096);
            // The slow way, then the two precompiled forms.
            for round in 0..3 {
                let written = write_with(&book, block, &mut indexing, &[&value, "crumb"]);
                let read = decode(&mut decoder, &written).unwrap();
                let expected = [("x-request-id", &value[..]), ("accept", "*/*"), ("cookie", "crumb")];
                assert_eq!(read[4..], pairs(&expected), "{length} bytes, round {round}");
            }
        }
    }
}

#[test]
fn rendered_values_are_neither_coded_nor_inserted() {
    let (book, [block]) = book([vec![variable("x-a"), secret(variable("x-b"))]]);
    let mut expected = vec![0];
    put_string(&mut expected, b"x-a");
    expected.extend_from_slice(b"\x03www\x10");
    put_string(&mut expected, b"x-b");
    expected.extend_from_slice(b"\x00");
    let mut indexing = Indexing::default();
    for _ in 0..2 {
        assert_eq!(write_with(&book, block, &mut indexing, &["www", ""]), expected);
    }
}

#[test]
fn secrets_are_never_indexed() {
    // `authorization` with an empty value is in the static table: still a secret.
    let secrets = [("authorization", "Bearer 1"), ("authorization", ""), ("x-key", "2")];
    let (book, [block]) = book([secrets.map(|(name, value)| secret(fixed(name, value))).to_vec()]);
    let mut expected = Vec::new();
    for (name, value) in secrets {
        put_literal(&mut expected, name.as_bytes(), value.as_bytes(), true);
    }
    assert_eq!(expected[0] & 0xf0, 0x10);
    let mut indexing = Indexing::default();
    for _ in 0..2 {
        assert_eq!(write(&book, block, &mut indexing), expected);
    }
}

/// Returns the content of the table after each block was written several times, when nothing changes any
/// more.
fn settled(book: &HeaderBlockCache, blocks: &[BlockId]) -> Vec<Pair> {
    let (mut indexing, mut decoder) = (Indexing::default(), Decoder::new(4096));
    let mut epoch = 0;
    for round in 0..3 {
        for &block in blocks {
            decode(&mut decoder, &write(book, block, &mut indexing)).expect("the block is ours");
        }
        assert!(round == 0 || decoder.epoch() == epoch, "the first round inserts everything");
        epoch = decoder.epoch();
    }
    dynamic_table(&mut decoder)
}

#[test]
fn the_budget_goes_to_what_blocks_have_in_common_first() {
    // 60 paths of 70 bytes are more than the table holds.
    let paths = std::array::from_fn::<_, 60, _>(|nth| format!("/path/{nth:027}"));
    let with_own_header = |path: &String| {
        [request(path), vec![fixed("content-length", "12345"), fixed("x-common", "value")]].concat()
    };
    let (book, blocks) = book(paths.each_ref().map(with_own_header));
    let table = settled(&book, &blocks);
    let size: usize = table.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
    assert!(size > 4096 - 71 && size <= 4096, "{size} bytes");
    for common in
        pairs(&[(":authority", "www.example.com"), ("x-common", "value"), ("content-length", "12345")])
    {
        assert!(table.contains(&common));
    }
    assert!(table.contains(&(b":path".to_vec(), paths[0].clone().into_bytes())));
    assert!(!table.contains(&(b":path".to_vec(), paths[59].clone().into_bytes())));
}

#[test]
fn what_does_not_fit_is_passed_over() {
    let large = "l".repeat(4096 - 32 - 7 - 40);
    let too_large = "t".repeat(4096);
    let fields = [("x-large", &large[..]), ("x-huge", &too_large), ("x-next", "too much"), ("x", "small")];
    let (book, [block]) = book([fields.map(|(name, value)| fixed(name, value)).to_vec()]);
    assert_eq!(settled(&book, &[block]), pairs(&[("x", "small"), ("x-large", &large)]));
}

#[test]
fn many_entries_have_indices_of_two_bytes() {
    let fields: Vec<Field> = (0..100).map(|nth| fixed(&format!("x{nth}"), "")).collect();
    let (book, [block]) = book([fields]);
    assert_eq!(settled(&book, &[block]).len(), 100);
    let mut indexing = Indexing::default();
    write(&book, block, &mut indexing);
    let mut expected = Vec::new();
    for index in (62..162).rev() {
        put_integer(&mut expected, 7, 0x80, index);
    }
    assert_eq!(expected.len(), 135);
    assert_eq!(write(&book, block, &mut indexing), expected);
}

/// The request without a table.
fn plain_request() -> Vec<u8> {
    hex("8286 018c f1e3 c2e5 f23a 6ba0 ab90 f4ff 84")
}

#[test]
fn an_own_limit_below_the_need_means_no_indexing() {
    let (book, [block]) = book([request("/")]);
    let need = ":authority".len() + "www.example.com".len() + 32;
    let mut indexing = Indexing::new(need as u32 - 1);
    for _ in 0..2 {
        assert_eq!(write(&book, block, &mut indexing), plain_request());
    }
    assert_eq!(write(&book, block, &mut Indexing::new(need as u32))[2], 0x41);
}

#[test]
fn a_peer_without_room_is_told_that_nothing_is_indexed() {
    let (book, [block]) = book([request("/")]);
    for written_before in 0..3 {
        let mut indexing = Indexing::default();
        for _ in 0..written_before {
            write(&book, block, &mut indexing);
        }
        indexing.peer_limit(56);
        let expected = [vec![0x20], plain_request()].concat();
        assert_eq!(write(&book, block, &mut indexing), expected, "after {written_before} blocks");
        assert_eq!(write(&book, block, &mut indexing), plain_request());
        // More room later is not used, and no update remains to be sent.
        indexing.peer_limit(4096);
        indexing.peer_limit(0);
        assert_eq!(write(&book, block, &mut indexing), plain_request());
    }
}

#[test]
fn a_peer_with_less_room_that_is_enough_is_told_so() {
    let (book, [block]) = book([request("/")]);
    for written_before in 0..3 {
        let (mut indexing, mut decoder) = (Indexing::default(), Decoder::new(4096));
        for _ in 0..written_before {
            decode(&mut decoder, &write(&book, block, &mut indexing)).unwrap();
        }
        let twin = &mut indexing.clone();
        // Only the smallest of several sizes matters.
        for size in [200, 100, 4096] {
            indexing.peer_limit(size);
        }
        let update = hex("3f45");
        assert_eq!(write(&book, block, &mut indexing), [update, write(&book, block, twin)].concat());
        assert_eq!(write(&book, block, &mut indexing), hex("8286 be84"));
        indexing.peer_limit(1 << 20);
        indexing.peer_limit(100);
        assert_eq!(write(&book, block, &mut indexing), hex("8286 be84"));
    }
}

#[test]
fn a_larger_limit_of_the_peer_changes_nothing() {
    let (book, [block]) = book([request("/")]);
    let mut indexing = Indexing::default();
    indexing.peer_limit(1 << 20);
    let first = write(&book, block, &mut indexing);
    assert_eq!(first, write(&book, block, &mut Indexing::default()));
    indexing.peer_limit(8192);
    assert_eq!(write(&book, block, &mut indexing), hex("8286 be84"));
}

#[test]
fn nothing_is_indexed_before_a_book_is_sealed() {
    let mut open = HeaderBlockCache::new();
    let block = open.add(request("/"));
    assert_eq!(write(&open, block, &mut Indexing::default()), plain_request());
    open.seal();
    assert_eq!(write(&open, block, &mut Indexing::default())[2], 0x41);
    let added = open.add(request("/index.html"));
    for block in [block, added] {
        assert_eq!(write(&open, block, &mut Indexing::default())[2], 0x01);
    }
    open.seal();
    let (sealed_at_once, _) = book([request("/"), request("/index.html")]);
    assert_eq!(open, sealed_at_once);
}

#[test]
fn blocks_without_fields_are_empty() {
    let (book, [empty]) = book([vec![]]);
    assert_eq!(write(&book, empty, &mut Indexing::default()), []);
}

#[test]
fn a_debug_print_holds_no_secret() {
    let mut book = HeaderBlockCache::new();
    let field = |name: &str, value: &str, never_indexed| Field {
        name: name.as_bytes().to_vec(),
        value: FieldValue::Fixed(value.as_bytes().to_vec()),
        never_indexed,
    };
    book.add(vec![field("authorization", "Bearer topsecret", true), field("x-a", "shown", false)]);
    book.seal();
    let text = format!("{book:?}");
    assert!(text.contains("x-a: shown") && text.contains("authorization: <secret>"), "{text}");
    assert!(!text.contains("topsecret"), "{text}");
}
