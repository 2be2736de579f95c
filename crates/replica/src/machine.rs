//! The state as openraft wants it.

use std::sync::Arc;

use openraft::storage::RaftStateMachine;
use openraft::{EntryPayload, RaftSnapshotBuilder, StorageIOError};
use plimsoll_system::clock;

use crate::consensus::{Entry, LogId, Membership, Replies, Snapshot, SnapshotMeta, StorageError, Types};
use crate::snapshot::{self, Snapshots};
use crate::state::State;
use crate::views::Views;

/// Applies the entries that a majority has in its logs.
#[derive(Debug)]
pub(crate) struct Machine {
    views: Arc<Views>,
    snapshots: Snapshots,
    applied: Option<LogId>,
    membership: Membership,
}

impl Machine {
    /// Goes on from the state of a snapshot, if there was one.
    pub(crate) fn new(views: Arc<Views>, snapshots: Snapshots, meta: Option<&SnapshotMeta>) -> Self {
        let applied = meta.and_then(|meta| meta.last_log_id);
        let membership = meta.map(|meta| meta.last_membership.clone()).unwrap_or_default();
        Self { views, snapshots, applied, membership }
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), StorageError> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Replies>, StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let now = clock::monotonic();
        let mut all = Vec::new();
        for Entry { log_id, payload } in entries {
            let replies = match payload {
                EntryPayload::Blank => Vec::new(),
                EntryPayload::Normal(batch) => self
                    .views
                    .apply(log_id.index, &batch.0, now)
                    .map_err(|error| StorageIOError::apply(log_id, &error))?,
                EntryPayload::Membership(membership) => {
                    self.membership = Membership::new(Some(log_id), membership);
                    Vec::new()
                }
            };
            self.applied = Some(log_id);
            all.push(Replies(replies));
        }
        Ok(all)
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        let meta = SnapshotMeta {
            last_log_id: self.applied,
            last_membership: self.membership.clone(),
            snapshot_id: self.applied.map_or_else(String::new, |last| last.to_string()),
        };
        // A copy of pointers to items, not of their texts.
        Builder { state: self.views.look(Clone::clone), snapshots: self.snapshots.clone(), meta }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Vec<u8>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        content: Box<Vec<u8>>,
    ) -> Result<(), StorageError> {
        let read = snapshot::decode(&content).ok_or_else(|| {
            let error = std::io::Error::other("the snapshot is damaged");
            StorageIOError::read_snapshot(Some(meta.signature()), &error)
        })?;
        let kept = self.snapshots.keep(meta, &content);
        kept.map_err(|error| StorageIOError::write_snapshot(Some(meta.signature()), &error))?;
        self.views.replace(read.1);
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, StorageError> {
        let latest = self.snapshots.latest().map_err(|error| StorageIOError::read_snapshot(None, &error))?;
        Ok(latest.and_then(|(_, content)| {
            let (meta, _) = snapshot::decode(&content)?;
            Some(Snapshot { meta, snapshot: Box::new(content) })
        }))
    }
}

/// Writes the state of the moment in which it was made.
#[derive(Debug)]
pub(crate) struct Builder {
    state: State,
    snapshots: Snapshots,
    meta: SnapshotMeta,
}

impl RaftSnapshotBuilder<Types> for Builder {
    async fn build_snapshot(&mut self) -> Result<Snapshot, StorageError> {
        let (state, snapshots, meta) =
            (std::mem::take(&mut self.state), self.snapshots.clone(), self.meta.clone());
        // Writing it must not hold up the rest.
        let written = tokio::task::spawn_blocking(move || {
            let content = snapshot::encode(&meta, &state);
            snapshots.keep(&meta, &content).map(|()| content)
        });
        let meta = self.meta.clone();
        let written = written.await.map_err(std::io::Error::other).and_then(|written| written);
        let content =
            written.map_err(|error| StorageIOError::write_snapshot(Some(meta.signature()), &error))?;
        Ok(Snapshot { meta, snapshot: Box::new(content) })
    }
}
