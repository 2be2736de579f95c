//! The state in a file, or on its way to another node.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::collection::Collection;
use crate::consensus::SnapshotMeta;
use crate::durable;
use crate::error::ReplicaError;
use crate::lies::Confession;
use crate::state::State;

/// Contents of a snapshot file: the entries that the state has carried out, and the state.
#[derive(Debug, Serialize, Deserialize)]
struct Kept<'a> {
    meta: SnapshotMeta,
    #[serde(borrow)]
    models: BTreeMap<&'a str, Vec<(u128, &'a str)>>,
    lies: Confession,
}

/// The text of a snapshot, with its sum at the end.
pub(crate) fn encode(meta: &SnapshotMeta, state: &State) -> Vec<u8> {
    let models = state.models.iter().map(|(name, items)| (&name[..], texts(items))).collect();
    let kept = Kept { meta: meta.clone(), models, lies: state.lies.clone() };
    let mut content = postcard::to_stdvec(&kept).expect("a state is made of texts and numbers");
    content.extend(crc32fast::hash(&content).to_le_bytes());
    content
}

fn texts(items: &Collection) -> Vec<(u128, &str)> {
    items.iter().map(|(id, item)| (id, &**item)).collect()
}

/// Reads a snapshot written by [`encode`]; `None` if it is damaged.
pub(crate) fn decode(content: &[u8]) -> Option<(SnapshotMeta, State)> {
    let kept: Kept<'_> = postcard::from_bytes(durable::checked(content)?).ok()?;
    let mut state = State { models: BTreeMap::new(), lies: kept.lies };
    for (name, items) in kept.models {
        let collection = state.models.entry(name.to_owned()).or_default();
        items.into_iter().for_each(|(id, item)| collection.put(id, item));
    }
    Some((kept.meta, state))
}

/// The folder with the latest snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Snapshots {
    folder: PathBuf,
    /// Bytes of the latest one.
    length: Arc<AtomicU64>,
}

impl Snapshots {
    /// The folder is made if it is missing.
    pub(crate) fn open(folder: &Path) -> Result<Self, ReplicaError> {
        fs::create_dir_all(folder).map_err(ReplicaError::file(folder))?;
        Ok(Self { folder: folder.to_owned(), length: Arc::default() })
    }

    /// Bytes of the latest one that was read or kept.
    pub(crate) fn length(&self) -> u64 {
        // Relaxed: it publishes nothing else.
        self.length.load(Ordering::Relaxed)
    }

    /// The latest one, as it was written.
    pub(crate) fn latest(&self) -> io::Result<Option<(PathBuf, Vec<u8>)>> {
        let Some(path) = self.paths()?.pop() else { return Ok(None) };
        let content = fs::read(&path)?;
        self.length.store(content.len() as u64, Ordering::Relaxed);
        Ok(Some((path, content)))
    }

    /// The latest one, read.
    pub(crate) fn load(&self) -> Result<Option<(SnapshotMeta, State)>, ReplicaError> {
        let Some((path, content)) = self.latest().map_err(ReplicaError::file(&self.folder))? else {
            return Ok(None);
        };
        match decode(&content) {
            Some(read) => Ok(Some(read)),
            None => Err(ReplicaError::Corrupt { path, at: 0, why: "its sum is wrong" }),
        }
    }

    /// Keeps one in place of those before it.
    pub(crate) fn keep(&self, meta: &SnapshotMeta, content: &[u8]) -> io::Result<()> {
        let before = self.paths()?;
        let index = meta.last_log_id.map_or(0, |last| last.index);
        let path = self.folder.join(format!("{index:020}.snapshot"));
        durable::replace(&path, content)?;
        self.length.store(content.len() as u64, Ordering::Relaxed);
        before.iter().filter(|old| **old != path).try_for_each(fs::remove_file)
    }

    /// All of them, the latest last.
    fn paths(&self) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "snapshot") {
                paths.push(path);
            }
        }
        paths.sort_unstable();
        Ok(paths)
    }
}
