//! Refusals of a decoder, and the memory that it keeps.

use plimsoll_wire::http2::hpack::{Decoder, FieldLimits, HpackError, put_integer, put_literal, put_string};
use proptest::prelude::*;

use super::{Pair, decode, dynamic_table, hex, pairs};

/// A literal that is inserted.
fn inserted(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0x40];
    put_string(&mut block, name.as_bytes());
    put_string(&mut block, value.as_bytes());
    block
}

fn size_update(size: u64) -> Vec<u8> {
    let mut block = Vec::new();
    put_integer(&mut block, 5, 0x20, size);
    block
}

#[test]
fn malformed_blocks_are_refused() {
    let cases: [(&str, HpackError); 21] = [
        // Index 0, and behind both tables.
        ("80", HpackError::Index),
        ("be", HpackError::Index),
        ("8286 be", HpackError::Index),
        ("ff 80 80 80 08", HpackError::Index),
        // The same as a name.
        ("7e 01 61", HpackError::Index),
        ("0f 2f 01 61", HpackError::Index),
        // Integers.
        ("ff", HpackError::Truncated),
        ("ff 80", HpackError::Truncated),
        ("ff ff ff ff ff ff ff", HpackError::Integer),
        ("ff ff ff ff ff ff 01", HpackError::Integer),
        // Strings.
        ("40", HpackError::Truncated),
        ("40 01", HpackError::Truncated),
        ("40 01 61", HpackError::Truncated),
        ("40 01 61 02 61", HpackError::Truncated),
        ("00 7f ff ff ff ff 0f 61", HpackError::Integer),
        ("00 7f 80 ff ff ff 0f 61", HpackError::Truncated),
        // Huffman: padding with zeros, a byte of padding, EOS.
        ("04 81 00", HpackError::Huffman),
        ("04 82 1f ff", HpackError::Huffman),
        ("04 84 ff ff ff ff", HpackError::Huffman),
        // Size updates: after a field, and too large.
        ("82 20", HpackError::TableSize),
        ("3f e2 1f", HpackError::TableSize),
    ];
    for (block, error) in cases {
        assert!(error.is_fatal());
        assert_eq!(decode(&mut Decoder::new(4096), &hex(block)), Err(error), "{block}");
    }
}

#[test]
fn an_empty_block_has_no_fields() {
    assert_eq!(decode(&mut Decoder::new(4096), &[]), Ok(vec![]));
}

#[test]
fn size_updates_stand_at_the_begin_and_keep_to_what_was_advertised() {
    let mut decoder = Decoder::new(8192);
    decode(&mut decoder, &inserted("a", "b")).unwrap();
    decode(&mut decoder, &inserted("c", "d")).unwrap();
    // Several, as after several settings; the smallest evicts.
    let block = [size_update(34), size_update(8192), inserted("e", "f")].concat();
    assert_eq!(decode(&mut decoder, &block), Ok(pairs(&[("e", "f")])));
    assert_eq!(dynamic_table(&mut decoder), pairs(&[("e", "f"), ("c", "d")]));
    assert_eq!(decode(&mut decoder, &size_update(8193)), Err(HpackError::TableSize));
}

#[test]
fn the_table_has_its_initial_size_until_an_update_whatever_was_advertised() {
    for advertised in [0, 100, 4096, 1 << 20] {
        let mut decoder = Decoder::new(advertised);
        let value = "v".repeat(4096 - 32 - 1);
        decode(&mut decoder, &inserted("n", &value)).unwrap();
        assert_eq!(dynamic_table(&mut decoder), pairs(&[("n", &value)]), "{advertised} bytes advertised");
        decode(&mut decoder, &inserted("n", &format!("{value}!"))).unwrap();
        assert_eq!(dynamic_table(&mut decoder), [], "{advertised} bytes advertised");
    }
}

#[test]
fn a_peer_that_does_not_know_of_a_smaller_table_may_use_the_initial_one() {
    let mut decoder = Decoder::new(100);
    assert_eq!(decode(&mut decoder, &size_update(4096)), Ok(vec![]));
    decoder.acknowledged();
    assert_eq!(decode(&mut decoder, &size_update(100)), Ok(vec![]));
    assert_eq!(decode(&mut decoder, &size_update(101)), Err(HpackError::TableSize));
}

#[test]
fn a_list_beyond_the_limits_fails_alone() {
    let fields = [("first", "1"), ("second", "2"), ("third", "3")];
    let block = fields.map(|(name, value)| inserted(name, value)).concat();
    let sizes = fields.map(|(name, value)| (name.len() + value.len() + 32) as u32);
    let (two, three) = (sizes[0] + sizes[1], sizes.iter().sum::<u32>());
    let cases = [
        (FieldLimits { list_bytes: three, fields: 3 }, 3),
        (FieldLimits { list_bytes: three - 1, fields: 3 }, 2),
        (FieldLimits { list_bytes: two, fields: 3 }, 2),
        (FieldLimits { list_bytes: two - 1, fields: 3 }, 1),
        (FieldLimits { list_bytes: three, fields: 2 }, 2),
        (FieldLimits { list_bytes: 0, fields: 3 }, 0),
        (FieldLimits { list_bytes: three, fields: 0 }, 0),
    ];
    for (limits, told) in cases {
        let mut decoder = Decoder::new(4096);
        let mut heard = Vec::new();
        let result =
            decoder.decode(&block, &limits, |name, value| heard.push((name.to_vec(), value.to_vec())));
        let expected = if told == 3 { Ok(()) } else { Err(HpackError::ListTooLarge) };
        assert_eq!(result, expected, "{limits:?}");
        assert_eq!(heard, pairs(&fields[..told]), "{limits:?}");
        // The table has all fields nonetheless.
        let mut table = pairs(&fields);
        table.reverse();
        assert_eq!(dynamic_table(&mut decoder), table, "{limits:?}");
    }
    assert!(!HpackError::ListTooLarge.is_fatal());
}

/// A field that is too large is not the last word: a smaller one after it is not told either.
#[test]
fn after_a_field_beyond_the_limits_none_is_told() {
    let mut block = Vec::new();
    put_literal(&mut block, b"x-large", &[b'v'; 100], false);
    put_literal(&mut block, b"x-small", b"v", false);
    let mut heard = 0;
    let limits = FieldLimits { list_bytes: 100, fields: 10 };
    let result = Decoder::new(4096).decode(&block, &limits, |_, _| heard += 1);
    assert_eq!((result, heard), (Err(HpackError::ListTooLarge), 0));
}

#[test]
fn the_epoch_stays_while_a_block_would_mean_the_same_again() {
    let mut decoder = Decoder::new(4096);
    let mut epoch = decoder.epoch();
    let mut literal = Vec::new();
    put_literal(&mut literal, b"x-own", b"value", false);
    for block in [literal.clone(), hex("82 86 84"), size_update(4096), Vec::new()] {
        let first = decode(&mut decoder, &block);
        assert_eq!(decoder.epoch(), epoch, "{}", block.escape_ascii());
        assert_eq!(decode(&mut decoder, &block), first);
    }
    let evicted_at_once = inserted("n", &"v".repeat(5000));
    for (block, changes) in [
        (evicted_at_once.clone(), false),
        (inserted("n", "v"), true),
        (hex("be"), false),
        (inserted("n", "v"), true),
        (evicted_at_once, true),
        (size_update(100), true),
        (size_update(100), false),
    ] {
        decode(&mut decoder, &block).unwrap();
        assert_eq!(decoder.epoch() != epoch, changes, "{}", block.escape_ascii());
        epoch = decoder.epoch();
    }
}

/// A field as it may be written: inserted or not, with or without a name that is known already.
fn written_field() -> impl Strategy<Value = (Pair, Vec<u8>)> {
    let name = prop_oneof![
        prop::sample::select(vec!["accept", ":path", "x-a", "x-b"]).prop_map(|name| name.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[ -~]{0,60}".prop_map(String::into_bytes),
        (0_usize..1500).prop_map(|length| vec![b'v'; length]),
    ];
    (name, value, 0_u8..3).prop_map(|(name, value, form)| {
        let mut block = Vec::new();
        if form == 0 {
            block.push(0x40);
            put_string(&mut block, &name);
            put_string(&mut block, &value);
        } else {
            put_literal(&mut block, &name, &value, form == 2);
        }
        ((name, value), block)
    })
}

/// A byte that is the start of a representation more often than not.
fn plausible_byte() -> impl Strategy<Value = u8> {
    prop_oneof![any::<u8>(), 0x80_u8..0xd0, Just(0x40), Just(0x3f), 0_u8..8]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_fields_are_read_back(
        blocks in prop::collection::vec(prop::collection::vec(written_field(), 0..6), 1..8),
    ) {
        let mut decoder = Decoder::new(4096);
        for fields in blocks {
            let (fields, block): (Vec<Pair>, Vec<Vec<u8>>) = fields.into_iter().unzip();
            prop_assert_eq!(decode(&mut decoder, &block.concat()), Ok(fields));
            let table = dynamic_table(&mut decoder);
            let size: usize = table.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
            prop_assert!(size <= 4096);
        }
    }

    /// A block that is cut within a field is an error; one that is cut between fields is a shorter block.
    #[test]
    fn a_cut_block_is_told_from_a_whole_one(fields in prop::collection::vec(written_field(), 1..4)) {
        let (pairs, blocks): (Vec<Pair>, Vec<Vec<u8>>) = fields.into_iter().unzip();
        let whole = blocks.concat();
        for cut in 0..whole.len() {
            let ends = blocks.iter().scan(0, |end, block| {
                *end += block.len();
                Some(*end)
            });
            let before = ends.take_while(|&end| end <= cut).collect::<Vec<_>>();
            let is_between = cut == 0 || before.last() == Some(&cut);
            let expected =
                if is_between { Ok(pairs[..before.len()].to_vec()) } else { Err(HpackError::Truncated) };
            prop_assert_eq!(decode(&mut Decoder::new(4096), &whole[..cut]), expected);
        }
    }

    #[test]
    fn noise_never_panics_and_a_quiet_epoch_means_the_same_again(
        blocks in prop::collection::vec(prop::collection::vec(plausible_byte(), 0..40), 1..5),
    ) {
        let limits = FieldLimits { list_bytes: 500, fields: 8 };
        let mut decoder = Decoder::new(4096);
        let mut list_bytes = |block: &[u8]| {
            let mut bytes = 0;
            let result = decoder.decode(block, &limits, |name, value| bytes += name.len() + value.len() + 32);
            (result, bytes, decoder.epoch())
        };
        let (_, _, mut epoch) = list_bytes(&[]);
        for block in blocks {
            let (result, bytes, epoch_after) = list_bytes(&block);
            prop_assert!(bytes <= 500);
            if epoch_after == epoch {
                prop_assert_eq!(list_bytes(&block), (result, bytes, epoch));
            }
            epoch = epoch_after;
            if result.is_err_and(HpackError::is_fatal) {
                break;
            }
        }
    }
}
