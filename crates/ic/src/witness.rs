//! Hash trees that are made: the contents that a replica certifies.

use crate::answer::Reject;
use crate::authority::Authority;
use crate::cbor::{write_array, write_bytes, write_map, write_number, write_self_described, write_text};
use crate::hash::Hash;
use crate::message::RequestId;
use crate::tree::{empty_hash, fork_hash, labelled_hash, leaf_hash, write_leb128};

/// A hash tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// Nothing.
    Empty,
    /// Two trees; the labels of the left one come before those of the right one.
    Fork(Box<[Self; 2]>),
    /// A tree below a label.
    Labelled(Vec<u8>, Box<Self>),
    /// A value.
    Leaf(Vec<u8>),
    /// A tree that was cut off: its hash.
    Pruned(Hash),
}

impl Node {
    /// A tree below a label.
    pub fn labelled(label: &[u8], below: Self) -> Self {
        Self::Labelled(label.to_vec(), Box::new(below))
    }

    /// A value.
    pub fn leaf(value: &[u8]) -> Self {
        Self::Leaf(value.to_vec())
    }

    /// A leaf with this number.
    pub fn number(number: u64) -> Self {
        let mut value = Vec::new();
        write_leb128(number, &mut value);
        Self::Leaf(value)
    }

    /// Trees below labels, side by side, in the order of the labels; of two with the same label the first
    /// one.
    pub fn forest(trees: impl IntoIterator<Item = (Vec<u8>, Self)>) -> Self {
        let mut trees: Vec<_> = trees.into_iter().collect();
        trees.sort_by(|(one, _), (other, _)| one.cmp(other));
        trees.dedup_by(|(one, _), (other, _)| one == other);
        let mut nodes: Vec<Self> =
            trees.into_iter().map(|(label, below)| Self::Labelled(label, Box::new(below))).collect();
        while nodes.len() > 1 {
            let mut pairs = nodes.into_iter();
            nodes = Vec::new();
            while let Some(left) = pairs.next() {
                nodes.push(match pairs.next() {
                    Some(right) => Self::Fork(Box::new([left, right])),
                    None => left,
                });
            }
        }
        nodes.pop().unwrap_or(Self::Empty)
    }

    /// Returns the root hash of the tree.
    pub fn hash(&self) -> Hash {
        match self {
            Self::Empty => empty_hash(),
            Self::Fork(pair) => fork_hash(&pair[0].hash(), &pair[1].hash()),
            Self::Labelled(label, below) => labelled_hash(label, &below.hash()),
            Self::Leaf(value) => leaf_hash(value),
            Self::Pruned(hash) => *hash,
        }
    }

    /// Appends its encoding.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Empty => {
                write_array(out, 1);
                write_number(out, 0);
            }
            Self::Fork(pair) => {
                open_fork(out);
                pair.iter().for_each(|node| node.write(out));
            }
            Self::Labelled(label, below) => {
                open_label(label, out);
                below.write(out);
            }
            Self::Leaf(value) => {
                write_array(out, 2);
                write_number(out, 3);
                write_bytes(out, value);
            }
            Self::Pruned(hash) => write_pruned(hash, out),
        }
    }
}

fn open_fork(out: &mut Vec<u8>) {
    write_array(out, 3);
    write_number(out, 1);
}

fn open_label(label: &[u8], out: &mut Vec<u8>) {
    write_array(out, 3);
    write_number(out, 2);
    write_bytes(out, label);
}

fn write_pruned(hash: &Hash, out: &mut Vec<u8>) {
    write_array(out, 2);
    write_number(out, 4);
    write_bytes(out, hash);
}

/// Appends a certificate up to its tree, which has to follow, and then its [end](close_certificate).
fn open_certificate(out: &mut Vec<u8>, delegated: bool) {
    write_self_described(out);
    write_map(out, if delegated { 3 } else { 2 });
    write_text(out, "tree");
}

fn close_certificate(signature: &[u8], delegation: Option<&Delegation>, out: &mut Vec<u8>) {
    write_text(out, "signature");
    write_bytes(out, signature);
    if let Some(delegation) = delegation {
        write_text(out, "delegation");
        write_map(out, 2);
        write_text(out, "subnet_id");
        write_bytes(out, &delegation.subnet);
        write_text(out, "certificate");
        write_bytes(out, &delegation.certificate);
    }
}

/// A subnet's proof of its key: a certificate of the root subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// The subnet's principal.
    pub subnet: Vec<u8>,
    /// The certificate, which has the subnet's key and canister ranges.
    pub certificate: Vec<u8>,
}

/// The certificate of a whole tree.
pub fn certificate(authority: &Authority, tree: &Node, delegation: Option<&Delegation>) -> Vec<u8> {
    let mut out = Vec::new();
    open_certificate(&mut out, delegation.is_some());
    tree.write(&mut out);
    close_certificate(&authority.sign(&tree.hash()), delegation, &mut out);
    out
}

/// Outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is known of the call.
    Unknown,
    /// The call waits to be carried out.
    Received,
    /// The call is being carried out.
    Processing,
    /// The call was carried out, with this reply.
    Replied(Vec<u8>),
    /// The call was rejected.
    Rejected(Rejection),
}

/// Reason why a call was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The class, as [`Reject::code`] has it.
    pub code: u64,
    /// For people.
    pub message: String,
    /// A finer class, such as `IC0301`, if there is one.
    pub error_code: Option<&'static str>,
}

impl Rejection {
    /// The reject as its reader sees it.
    pub fn reject(&self) -> Reject<'_> {
        Reject { code: self.code, message: &self.message, error_code: self.error_code }
    }
}

impl Outcome {
    /// Returns the tree that a certificate has below the id of a call.
    pub fn tree(&self) -> Node {
        let status = |status: &str| (b"status".to_vec(), Node::leaf(status.as_bytes()));
        Node::forest(match self {
            Self::Unknown => vec![status("unknown")],
            Self::Received => vec![status("received")],
            Self::Processing => vec![status("processing")],
            Self::Replied(reply) => vec![status("replied"), (b"reply".to_vec(), Node::leaf(reply))],
            Self::Rejected(Rejection { code, message, error_code }) => {
                let mut parts = vec![
                    status("rejected"),
                    (b"reject_code".to_vec(), Node::number(*code)),
                    (b"reject_message".to_vec(), Node::leaf(message.as_bytes())),
                ];
                parts.extend(error_code.map(|code| (b"error_code".to_vec(), Node::leaf(code.as_bytes()))));
                parts
            }
        })
    }
}

/// Outcomes of many calls, under one signature. A certificate for any one of them shows that call and the
/// time; the other calls are pruned.
#[derive(Debug)]
pub struct Round {
    /// In the order of their ids.
    calls: Vec<(RequestId, Node)>,
    /// Hashes of the forest, from those of its trees to its root. A node without a neighbour is that of the
    /// level above.
    levels: Vec<Vec<Hash>>,
    time: Node,
    signature: [u8; 48],
}

impl Round {
    /// Signs the outcomes of these calls by `time_ns`, in nanoseconds since 1970. Of two with the same id the
    /// last one counts.
    pub fn sign(authority: &Authority, time_ns: u64, mut calls: Vec<(RequestId, Outcome)>) -> Self {
        calls.reverse();
        calls.sort_by_key(|&(id, _)| id);
        calls.dedup_by_key(|&mut (id, _)| id);
        let calls: Vec<(RequestId, Node)> =
            calls.into_iter().map(|(id, outcome)| (id, outcome.tree())).collect();
        let mut level: Vec<Hash> =
            calls.iter().map(|(id, below)| labelled_hash(&id.0, &below.hash())).collect();
        let mut levels = Vec::new();
        while level.len() > 1 {
            let above = level.chunks(2).map(|pair| match pair {
                [left, right] => fork_hash(left, right),
                // One without a neighbour.
                _ => pair[0],
            });
            let above = above.collect();
            levels.push(std::mem::replace(&mut level, above));
        }
        let forest = level.first().copied().unwrap_or_else(empty_hash);
        levels.push(level);
        let time = Node::labelled(b"time", Node::number(time_ns));
        let root = fork_hash(&labelled_hash(b"request_status", &forest), &time.hash());
        Self { calls, levels, time, signature: authority.sign(&root) }
    }

    /// The place of a call; none if it is not among them.
    pub fn place(&self, id: &RequestId) -> Option<usize> {
        self.calls.binary_search_by_key(id, |&(id, _)| id).ok()
    }

    /// Appends the certificate that shows the call at this [place](Self::place), or beyond the last place no
    /// call.
    pub fn write_certificate(&self, place: usize, out: &mut Vec<u8>) {
        open_certificate(out, false);
        open_fork(out);
        open_label(b"request_status", out);
        match self.calls.get(place) {
            Some((id, below)) => {
                self.write_path(place, out);
                open_label(&id.0, out);
                below.write(out);
                self.close_path(place, out);
            }
            None => match self.levels.last().and_then(|root| root.first()) {
                Some(root) => write_pruned(root, out),
                None => Node::Empty.write(out),
            },
        }
        self.time.write(out);
        close_certificate(&self.signature, None, out);
    }

    /// Appends the forks above a call, from the top, with the subtrees to the left of the path.
    fn write_path(&self, place: usize, out: &mut Vec<u8>) {
        // The last level is the root.
        for (height, level) in self.levels.iter().enumerate().rev().skip(1) {
            let at = place >> height;
            if at % 2 == 1 {
                open_fork(out);
                write_pruned(&level[at - 1], out);
            } else if at + 1 < level.len() {
                open_fork(out);
            }
        }
    }

    /// Appends the subtrees to the right of the path, from the bottom.
    fn close_path(&self, place: usize, out: &mut Vec<u8>) {
        for (height, level) in self.levels.iter().enumerate() {
            let at = place >> height;
            if at.is_multiple_of(2) && at + 1 < level.len() {
                write_pruned(&level[at + 1], out);
            }
        }
    }
}
