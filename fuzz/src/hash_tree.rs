//! Hash trees of certificates, made of the input and read again: the same hash, and each path leads to the
//! same content as in the original tree. Any bytes read as a tree give an error or a hash, and no path leads
//! out of it.

use plimsoll_ic::cbor::Reader;
use plimsoll_ic::witness::Node;
use plimsoll_ic::{Lookup, Tree};

/// Nodes within each other, below the bound that readers have.
const DEPTH: u32 = 24;

/// A tree as the bytes say.
fn node(data: &mut &[u8], depth: u32) -> Node {
    let Some((&choice, rest)) = data.split_first() else { return Node::Empty };
    *data = rest;
    let label = |data: &mut &[u8]| {
        let (label, rest) = data.split_at(usize::from(choice >> 5).min(data.len()));
        *data = rest;
        label.to_vec()
    };
    match choice % 8 {
        0 => Node::Empty,
        1 => Node::Pruned([choice; 32]),
        2 | 3 => Node::Leaf(label(data)),
        4 if depth > 0 => {
            let trees: Vec<_> = (0..choice >> 4).map(|_| (label(data), node(data, depth - 1))).collect();
            Node::forest(trees)
        }
        _ if depth > 0 => Node::Labelled(label(data), Box::new(node(data, depth - 1))),
        _ => Node::Empty,
    }
}

/// The labels at the top of a tree from left to right, each with its subtree; no label where something was
/// cut off.
fn tops<'t>(tree: &'t Node, into: &mut Vec<Option<(&'t [u8], &'t Node)>>) {
    match tree {
        Node::Fork(pair) => pair.iter().for_each(|node| tops(node, into)),
        Node::Labelled(label, below) => into.push(Some((label, below))),
        Node::Pruned(_) => into.push(None),
        Node::Empty | Node::Leaf(_) => {}
    }
}

/// Follows every path of a tree.
fn follow(tree: &Node, read: &Tree<'_>, path: &mut Vec<Vec<u8>>) {
    let mut labels = Vec::new();
    tops(tree, &mut labels);
    for (label, below) in labels.into_iter().flatten() {
        path.push(label.to_vec());
        let borrowed: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
        let found = read.lookup(&borrowed).expect("it is a tree");
        match below {
            Node::Leaf(value) => assert_eq!(found, Lookup::Found(value), "{path:?}"),
            Node::Pruned(_) => assert_eq!(found, Lookup::Unknown, "{path:?}"),
            Node::Empty | Node::Fork(_) | Node::Labelled(..) => assert_eq!(found, Lookup::Absent, "{path:?}"),
        }
        follow(below, read, path);
        path.pop();
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let any = Tree::at(Reader::new(data));
    let _ = any.root_hash();
    let _ = any.lookup(&[b"time"]);
    let _ = any.lookup(&[b"request_status", &[7; 32], b"reply"]);

    let mut rest = data;
    let tree = node(&mut rest, DEPTH);
    let mut bytes = Vec::new();
    tree.write(&mut bytes);
    let read = Tree::at(Reader::new(&bytes));
    assert_eq!(read.root_hash(), Ok(tree.hash()));
    follow(&tree, &read, &mut Vec::new());
    // A tree that ends too soon is none.
    assert!(Tree::at(Reader::new(&bytes[..bytes.len() - 1])).root_hash().is_err());
}
