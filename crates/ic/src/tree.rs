//! Hash trees of certificates, read where they lie.

use crate::cbor::{Item, Reader, Undecodable};
use crate::hash::{Hash, sha256};

/// Maximum nesting depth of a tree's nodes. A subnet's tree has four labels above each other, and between two
/// of them as many forks as its number of requests has digits in base two.
const MAX_DEPTH: usize = 192;

/// A hash tree, as a certificate contains it. Reading other bytes gives errors; nothing is checked ahead.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a>(Reader<'a>);

/// Result of looking up the value at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup<'a> {
    /// The path has this value.
    Found(&'a [u8]),
    /// The path has no value.
    Absent,
    /// Unknown: that part of the tree was pruned.
    Unknown,
}

/// Result of looking up the part of a tree below a path.
pub(crate) enum Branch<'a> {
    There(Tree<'a>),
    Absent,
    Unknown,
}

/// The head of one node; those below it follow.
enum Node<'a> {
    Empty,
    Fork,
    Labelled(&'a [u8]),
    Leaf(&'a [u8]),
    Pruned(&'a [u8]),
}

/// Reads the head of a node ("Certificates" in the interface specification).
#[inline]
fn node<'a>(reader: &mut Reader<'a>) -> Result<Node<'a>, Undecodable> {
    let Item::Array(Some(items)) = reader.untagged()? else {
        return Err(reader.error("no node of a hash tree"));
    };
    let Item::Unsigned(kind) = reader.next_item()? else {
        return Err(reader.error("a node of a hash tree without a kind"));
    };
    Ok(match (kind, items) {
        (0, 1) => Node::Empty,
        (1, 3) => Node::Fork,
        (2, 3) => Node::Labelled(reader.bytes()?),
        (3, 2) => Node::Leaf(reader.bytes()?),
        (4, 2) => Node::Pruned(reader.bytes()?),
        _ => return Err(reader.error("a node of a hash tree of no known kind")),
    })
}

impl<'a> Tree<'a> {
    /// The tree that is about to be read.
    pub const fn at(reader: Reader<'a>) -> Self {
        Self(reader)
    }

    /// The value at this path.
    ///
    /// # Errors
    /// The bytes that were read are not a hash tree.
    pub fn lookup(&self, path: &[&[u8]]) -> Result<Lookup<'a>, Undecodable> {
        match self.branch(path)? {
            Branch::There(Self(mut reader)) => Ok(match node(&mut reader)? {
                Node::Leaf(value) => Lookup::Found(value),
                Node::Pruned(_) => Lookup::Unknown,
                Node::Empty | Node::Fork | Node::Labelled(_) => Lookup::Absent,
            }),
            Branch::Absent => Ok(Lookup::Absent),
            Branch::Unknown => Ok(Lookup::Unknown),
        }
    }

    /// The part of the tree below this path.
    pub(crate) fn branch(&self, path: &[&[u8]]) -> Result<Branch<'a>, Undecodable> {
        let mut tree = *self;
        for label in path {
            match tree.below(label)? {
                Branch::There(below) => tree = below,
                other => return Ok(other),
            }
        }
        Ok(Branch::There(tree))
    }

    /// The part of the tree below one label.
    fn below(&self, wanted: &[u8]) -> Result<Branch<'a>, Undecodable> {
        // Something was cut off between the greatest label below the wanted one and here.
        let mut gap = false;
        let found = self.each(|label, tree| {
            Ok(match label {
                None => {
                    gap = true;
                    None
                }
                Some(label) if label < wanted => {
                    gap = false;
                    None
                }
                Some(label) => Some((label == wanted).then_some(tree)),
            })
        })?;
        Ok(match found.flatten() {
            Some(tree) => Branch::There(tree),
            None if gap => Branch::Unknown,
            None => Branch::Absent,
        })
    }

    /// Calls `see` with each label at the top of this tree and its subtree, and with no label where a part
    /// was cut off, from left to right, until it gives something.
    ///
    /// # Errors
    /// The bytes are not a hash tree; errors of `see`.
    pub fn each<T>(
        &self,
        mut see: impl FnMut(Option<&'a [u8]>, Self) -> Result<Option<T>, Undecodable>,
    ) -> Result<Option<T>, Undecodable> {
        let mut reader = self.0;
        // Nodes come in preorder, so that the forks above need not be remembered, only what they still
        // promise.
        let mut promised = 1_u32;
        while promised > 0 {
            promised -= 1;
            match node(&mut reader)? {
                Node::Fork => promised += 2,
                Node::Labelled(label) => {
                    if let Some(seen) = see(Some(label), Self(reader))? {
                        return Ok(Some(seen));
                    }
                    reader.skip()?;
                }
                Node::Pruned(_) => {
                    if let Some(seen) = see(None, Self(reader))? {
                        return Ok(Some(seen));
                    }
                }
                Node::Empty | Node::Leaf(_) => {}
            }
        }
        Ok(None)
    }

    /// The hash of the tree's root.
    ///
    /// # Errors
    /// The bytes are not a hash tree, or it is deeper than any subnet's.
    pub fn root_hash(&self) -> Result<Hash, Undecodable> {
        hash_at(&mut self.0.clone(), MAX_DEPTH)
    }
}

/// The hash of the node that comes next.
fn hash_at(reader: &mut Reader<'_>, depth: usize) -> Result<Hash, Undecodable> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(reader.error("a hash tree deeper than any subnet's"));
    };
    Ok(match node(reader)? {
        Node::Empty => empty_hash(),
        Node::Fork => {
            let left = hash_at(reader, depth)?;
            fork_hash(&left, &hash_at(reader, depth)?)
        }
        Node::Labelled(label) => labelled_hash(label, &hash_at(reader, depth)?),
        Node::Leaf(value) => leaf_hash(value),
        Node::Pruned(hash) => {
            hash.try_into().map_err(|_| reader.error("a hash in a hash tree that does not have 32 bytes"))?
        }
    })
}

// Each domain is preceded by its length.

pub(crate) fn empty_hash() -> Hash {
    sha256(&[b"\x11ic-hashtree-empty"])
}

pub(crate) fn fork_hash(left: &Hash, right: &Hash) -> Hash {
    sha256(&[b"\x10ic-hashtree-fork", left, right])
}

pub(crate) fn labelled_hash(label: &[u8], below: &Hash) -> Hash {
    sha256(&[b"\x13ic-hashtree-labeled", label, below])
}

pub(crate) fn leaf_hash(value: &[u8]) -> Hash {
    sha256(&[b"\x10ic-hashtree-leaf", value])
}

/// A number as certificates have it in their leaves: unsigned LEB128. None if it is cut off or has more than
/// 64 bits.
pub(crate) fn leb128(bytes: &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for (index, &byte) in bytes.iter().enumerate() {
        let low = u64::from(byte & 0x7f);
        if index == 9 && low > 1 {
            return None;
        }
        number |= low.checked_shl(7 * index as u32)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends a number as certificates have it in their leaves: unsigned LEB128.
pub(crate) fn write_leb128(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        // The low seven bits.
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
