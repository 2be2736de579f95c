//! Another implementation (the crate `httlib-hpack`) as the other end of the connection.

use httlib_hpack::Encoder;
use plimsoll_wire::http2::hpack::Decoder;
use plimsoll_wire::http2::{BlockId, Field, FieldValue, HeaderBlockCache, Indexing};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{Pair, decode};

fn name() -> impl Strategy<Value = Vec<u8>> {
    let known = select(vec![
        ":authority",
        ":method",
        ":path",
        ":status",
        "accept",
        "accept-encoding",
        "authorization",
        "content-length",
        "cookie",
        "user-agent",
        "x-a",
        "x-b",
    ]);
    prop_oneof![known.prop_map(str::to_owned), "[a-z-]{1,60}"].prop_map(String::into_bytes)
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let known = select(vec!["", "GET", "200", "/", "gzip, deflate", "a", "b", "0123456789"]);
    prop_oneof![
        4 => known.prop_map(|value| value.as_bytes().to_vec()),
        2 => "[ -~]{0,80}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..300),
        1 => (0_usize..3000).prop_map(|length| vec![b'z'; length]),
    ]
}

/// A field for a book; a value of `None` is variable.
fn field() -> impl Strategy<Value = Field> {
    (name(), prop::option::weighted(0.8, value()), prop::bool::weighted(0.1)).prop_map(
        |(name, value, never_indexed)| {
            let value = value.map_or(FieldValue::Variable, FieldValue::Fixed);
            Field { name, value, never_indexed }
        },
    )
}

/// Returns the fields of a block in which the nth variable value is `variable` followed by its number.
fn meaning(fields: &[Field], variable: &[u8]) -> Vec<Pair> {
    let mut nth = 0;
    let pair = |field: &Field| {
        let value = match &field.value {
            FieldValue::Fixed(value) => value.clone(),
            FieldValue::Variable => {
                nth += 1;
                [variable, &[nth]].concat()
            }
        };
        (field.name.clone(), value)
    };
    fields.iter().map(pair).collect()
}

fn write(book: &HeaderBlockCache, block: BlockId, indexing: &mut Indexing, variable: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    book.write(block, indexing, &mut out, |nth, out| {
        out.extend_from_slice(variable);
        out.push(nth as u8 + 1);
    });
    out
}

/// Events before a block is written: changes of the peer's settings.
fn settings() -> impl Strategy<Value = Vec<u32>> {
    let size = select(vec![0, 64, 500, 2000, 4096, 65_536]);
    prop_oneof![9 => Just(Vec::new()), 1 => prop::collection::vec(size, 1..3)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn its_blocks_are_decoded(
        blocks in prop::collection::vec(
            (
                prop::collection::vec((name(), value(), any::<[bool; 4]>()), 0..10),
                prop::option::of(select(vec![0_u32, 50, 200, 1000, 4096])),
            ),
            1..12,
        ),
    ) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::new(4096));
        for (fields, size) in blocks {
            let mut block = Vec::new();
            if let Some(size) = size {
                encoder.update_max_dynamic_size(size, &mut block).expect("a size below the initial one");
            }
            let mut expected = Vec::new();
            for (name, value, [best, huffman, index, never]) in fields {
                let huffman_flags = if huffman { Encoder::HUFFMAN_NAME | Encoder::HUFFMAN_VALUE } else { 0 };
                let flags = huffman_flags
                    | if best { Encoder::BEST_FORMAT } else { 0 }
                    | if index { Encoder::WITH_INDEXING } else { 0 }
                    | if never && !index { Encoder::NEVER_INDEXED } else { 0 };
                let field = (name.clone(), value.clone(), flags);
                encoder.encode(field, &mut block).expect("any field can be encoded");
                expected.push((name, value));
            }
            prop_assert_eq!(decode(&mut decoder, &block), Ok(expected));
        }
    }

    #[test]
    fn it_decodes_the_blocks_of_a_book_in_any_order(
        own_limit in select(vec![0_u32, 300, 4096, 65_536]),
        blocks in prop::collection::vec(prop::collection::vec(field(), 0..12), 1..8),
        messages in prop::collection::vec((any::<Index>(), value(), settings()), 1..30),
    ) {
        let mut book = HeaderBlockCache::new();
        let all: Vec<_> = blocks.into_iter().map(|fields| (book.add(fields.clone()), fields)).collect();
        book.seal();
        let mut indexing = Indexing::new(own_limit);
        let mut theirs = httlib_hpack::Decoder::with_dynamic_size(4096);
        let mut ours = Decoder::new(65_536);
        for (chosen, variable, settings) in messages {
            for size in settings {
                indexing.peer_limit(size);
            }
            let (id, fields) = chosen.get(&all);
            let mut block = write(&book, *id, &mut indexing, &variable);
            let expected = meaning(fields, &variable);
            prop_assert_eq!(decode(&mut ours, &block), Ok(expected.clone()));
            let mut read = Vec::new();
            theirs.decode(&mut block, &mut read).expect("it knows all representations");
            let read: Vec<Pair> = read.into_iter().map(|(name, value, _)| (name, value)).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
