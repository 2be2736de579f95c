//! Blocks that nghttp2 wrote (`nghttp2.txt`): requests, replies, a small table, sizes that change, entries
//! that push each other out.
//!
//! The library itself is C and would take unsafe code to call, so its output is kept here.

use plimsoll_wire::http2::hpack::Decoder;

use super::{Pair, decode, hex};

/// A block and the fields that it means, in one connection.
type Block = (Vec<u8>, Vec<Pair>);

fn connections() -> Vec<Vec<Block>> {
    let mut connections: Vec<Vec<Block>> = Vec::new();
    for line in include_str!("nghttp2.txt").lines() {
        if let Some(digits) = line.strip_prefix("block ") {
            let last = connections.last_mut().expect("a connection goes before its blocks");
            last.push((hex(digits), Vec::new()));
        } else if line == "connection" {
            connections.push(Vec::new());
        } else if !line.starts_with('#') && !line.starts_with("size ") {
            // The name of a pseudo-header begins with a colon.
            let colon = 1 + line[1..].find(':').expect("a field has a colon after its name");
            let value = line[colon + 1..].trim_start();
            let last = connections.last_mut().and_then(|blocks| blocks.last_mut());
            last.expect("a block goes before its fields").1.push((line[..colon].into(), value.into()));
        }
    }
    connections
}

#[test]
fn blocks_of_nghttp2_mean_what_it_was_told() {
    let connections = connections();
    assert_eq!(connections.iter().map(Vec::len).collect::<Vec<_>>(), [12, 10, 14, 6]);
    for blocks in connections {
        let mut decoder = Decoder::new(4096);
        for (block, fields) in blocks {
            assert!(!fields.is_empty());
            assert_eq!(decode(&mut decoder, &block), Ok(fields));
        }
    }
}
