//! Limits change the reported fields of a block, but not the table after it; and decoded fields can be
//! written by a book and decoded again.

use plimsoll_wire::http2::hpack::{Decoder, FieldLimits, HpackError};
use plimsoll_wire::http2::{Field, FieldValue, HeaderBlockCache, Indexing};

type Pair = (Vec<u8>, Vec<u8>);

const NO_LIMITS: FieldLimits = FieldLimits { list_bytes: u32::MAX, fields: u32::MAX };

fn decode(decoder: &mut Decoder, limits: &FieldLimits, block: &[u8]) -> (Vec<Pair>, Result<(), HpackError>) {
    let mut pairs = Vec::new();
    let result = decoder.decode(block, limits, |name, value| pairs.push((name.to_vec(), value.to_vec())));
    (pairs, result)
}

/// The rest of the input as blocks, each behind a byte with its length.
fn blocks(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (&length, after) = rest.split_first()?;
        let (block, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        Some(block)
    })
}

/// Writes all blocks with one book, twice, and reads them back. Every third value is a variable one.
fn write_again(blocks: &[Vec<Pair>]) {
    let mut book = HeaderBlockCache::new();
    let field = |(nth, (name, value)): (usize, &Pair)| Field {
        name: name.clone(),
        value: if nth % 3 == 2 { FieldValue::Variable } else { FieldValue::Fixed(value.clone()) },
        never_indexed: nth % 5 == 4,
    };
    let ids: Vec<_> =
        blocks.iter().map(|pairs| book.add(pairs.iter().enumerate().map(field).collect())).collect();
    book.seal();
    let (mut indexing, mut decoder) = (Indexing::default(), Decoder::new(4096));
    for (&id, pairs) in ids.iter().zip(blocks).rev().cycle().take(2 * blocks.len()) {
        let mut out = Vec::new();
        let value = |nth: usize, out: &mut Vec<u8>| out.extend_from_slice(&pairs[3 * nth + 2].1);
        book.write(id, &mut indexing, &mut out, value);
        assert_eq!(decode(&mut decoder, &NO_LIMITS, &out), (pairs.clone(), Ok(())));
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[bytes, fields], rest)) = data.split_first_chunk() else { return };
    let limits = FieldLimits { list_bytes: 4 * u32::from(bytes), fields: u32::from(fields) };
    let (mut free, mut narrow) = (Decoder::new(8192), Decoder::new(8192));
    let mut read = Vec::new();
    for block in blocks(rest) {
        let epoch = free.epoch();
        let (pairs, result) = decode(&mut free, &NO_LIMITS, block);
        let (told, narrow_result) = decode(&mut narrow, &limits, block);
        assert_eq!(free.epoch(), narrow.epoch());
        assert!(pairs.starts_with(&told));
        assert!(told.len() as u64 <= u64::from(limits.fields));
        match result {
            Ok(()) if told == pairs => assert_eq!(narrow_result, Ok(())),
            Ok(()) => assert_eq!(narrow_result, Err(HpackError::ListTooLarge)),
            Err(error) => {
                assert!(error.is_fatal());
                assert_eq!(narrow_result, Err(error));
                break;
            }
        }
        if free.epoch() == epoch {
            assert_eq!(decode(&mut free, &NO_LIMITS, block), (pairs.clone(), Ok(())));
        }
        read.push(pairs);
    }
    write_again(&read);
}
