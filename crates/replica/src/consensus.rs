//! The types that openraft is used with.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::change::Reply;

openraft::declare_raft_types!(
    /// A node's number is all that the members know of it: addresses are in the flags of each node.
    pub(crate) Types:
        D = Batch,
        R = Replies,
        NodeId = u64,
        Node = openraft::EmptyNode,
        SnapshotData = Vec<u8>,
);

/// Changes that stand in one entry: see [`crate::change::decode`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Batch(pub(crate) Bytes);

/// Results of the changes of one [`Batch`], in their order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Replies(pub(crate) Vec<Reply>);

pub(crate) type Raft = openraft::Raft<Types>;
pub(crate) type Entry = openraft::Entry<Types>;
pub(crate) type LogId = openraft::LogId<u64>;
pub(crate) type Vote = openraft::Vote<u64>;
pub(crate) type Membership = openraft::StoredMembership<u64, openraft::EmptyNode>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<u64, openraft::EmptyNode>;
pub(crate) type Snapshot = openraft::Snapshot<Types>;
pub(crate) type StorageError = openraft::StorageError<u64>;
