//! The log as openraft wants it: in memory for readers, and written by a thread of its own.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{LogState, RaftLogReader, StorageIOError};
use plimsoll_core::Nanos;
use plimsoll_system::clock;
use tokio::sync::oneshot;

use crate::consensus::{Entry, LogId, StorageError, Types, Vote};
use crate::durable;
use crate::error::ReplicaError;
use crate::options::Fsync;
use crate::segment::{Recovered, Segments, push_record};

/// Bytes of entries that go to a follower at once, unless a single one is longer.
const SENT_AT_ONCE: u64 = 4 << 20;

/// The log, for openraft's core and for each of its followers.
#[derive(Clone, Debug)]
pub(crate) struct Log(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    /// From the one after `purged` on.
    entries: VecDeque<(Entry, u64)>,
    purged: Option<LogId>,
    vote: Option<Vote>,
    /// Bytes of all entries since the start.
    written: u64,
    writer: Sender<Order>,
}

/// The thread that writes. It ends when all logs are gone.
#[derive(Debug)]
pub(crate) struct Writer(JoinHandle<()>);

/// Operation for the writing thread.
enum Order {
    Append { first: u64, records: Vec<u8>, lengths: Vec<u64>, done: LogFlushed<Types> },
    Truncate { from: u64, done: Done },
    Purge { upto: LogId, done: Done },
    Vote { vote: Vote, done: Done },
}

type Done = oneshot::Sender<io::Result<()>>;

impl Log {
    /// Reads the log in this folder, which is made if it is missing. Returns, too, how many bytes of a record
    /// that was not whole were cut off.
    pub(crate) fn open(folder: &Path, fsync: Fsync) -> Result<(Self, Writer, u64), ReplicaError> {
        fs::create_dir_all(folder).map_err(ReplicaError::file(folder))?;
        let vote = durable::load(&vote_file(folder))?;
        let purged: Option<LogId> = durable::load(&purged_file(folder))?;
        let Recovered { segments, entries, torn } =
            Segments::open(folder, purged.map(|purged| purged.index))?;
        let (writer, orders) = channel();
        let log_writer = LogWriter { folder: folder.to_owned(), segments, fsync, unsynced: None };
        let thread = std::thread::Builder::new().name("log".to_owned());
        let thread = thread.spawn(move || log_writer.work(&orders)).map_err(ReplicaError::Thread)?;
        // Lengths matter only for entries that go to followers at once.
        let entries = entries.into_iter().map(|entry| (length(&entry), entry)).map(|(n, entry)| (entry, n));
        let kept = Kept { entries: entries.collect(), purged, vote, written: 0, writer };
        Ok((Self(Arc::new(Mutex::new(kept))), Writer(thread), torn))
    }

    /// Bytes of entries that were written since the start.
    pub(crate) fn written(&self) -> u64 {
        self.kept().written
    }

    /// Returns `true` if nothing was ever written.
    pub(crate) fn is_new(&self) -> bool {
        let kept = self.kept();
        kept.entries.is_empty() && kept.purged.is_none() && kept.vote.is_none()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().expect("no panic while the log is locked")
    }

    /// Has something written, and waits until it is.
    async fn order(&self, order: impl FnOnce(Done) -> Order) -> io::Result<()> {
        let (done, is_done) = oneshot::channel();
        self.kept().writer.send(order(done)).map_err(|_| gone())?;
        is_done.await.map_err(|_| gone())?
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that writes the log has ended")
}

fn vote_file(folder: &Path) -> PathBuf {
    folder.join("vote")
}

fn purged_file(folder: &Path) -> PathBuf {
    folder.join("purged")
}

/// Bytes of an entry, nearly.
fn length(entry: &Entry) -> u64 {
    match &entry.payload {
        openraft::EntryPayload::Normal(batch) => batch.0.len() as u64,
        _ => 64,
    }
}

impl Writer {
    /// Waits until all is written.
    pub(crate) fn wait(self) {
        // A thread that has panicked has said so.
        let _ = self.0.join();
    }
}

impl Kept {
    /// Index of the first entry.
    fn first(&self) -> u64 {
        let first = self.entries.front().map(|(entry, _)| entry.log_id.index);
        first.unwrap_or_else(|| self.purged.map_or(0, |purged| purged.index + 1))
    }

    fn range(&self, range: impl RangeBounds<u64>) -> impl Iterator<Item = &(Entry, u64)> {
        let first = self.first();
        let place = |index: u64| (index.saturating_sub(first) as usize).min(self.entries.len());
        let from = match range.start_bound() {
            Bound::Included(&index) => place(index),
            Bound::Excluded(&index) => place(index.saturating_add(1)),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(&index) => place(index.saturating_add(1)),
            Bound::Excluded(&index) => place(index),
            Bound::Unbounded => self.entries.len(),
        };
        self.entries.range(from..to.max(from))
    }
}

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<B: RangeBounds<u64> + Clone + std::fmt::Debug + Send>(
        &mut self,
        range: B,
    ) -> Result<Vec<Entry>, StorageError> {
        Ok(self.kept().range(range).map(|(entry, _)| entry.clone()).collect())
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, StorageError> {
        let kept = self.kept();
        let mut sum = 0;
        let fits = |(_, length): &&(Entry, u64)| {
            let is_first = sum == 0;
            sum += *length;
            is_first || sum <= SENT_AT_ONCE
        };
        Ok(kept.range(start..end).take_while(fits).map(|(entry, _)| entry.clone()).collect())
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let kept = self.kept();
        let last = kept.entries.back().map(|(entry, _)| entry.log_id).or(kept.purged);
        Ok(LogState { last_purged_log_id: kept.purged, last_log_id: last })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let vote = *vote;
        self.order(|done| Order::Vote { vote, done }).await.map_err(|e| StorageIOError::write_vote(&e))?;
        self.kept().vote = Some(vote);
        Ok(())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.kept().vote)
    }

    async fn append<I>(&mut self, entries: I, done: LogFlushed<Types>) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let mut kept = self.kept();
        let (mut records, mut lengths, mut first) = (Vec::new(), Vec::new(), None);
        for entry in entries {
            first.get_or_insert(entry.log_id.index);
            let length = push_record(&mut records, &entry).map_err(|e| StorageIOError::write_logs(&e))?;
            lengths.push(length);
            kept.written += length;
            kept.entries.push_back((entry, length));
        }
        let Some(first) = first else {
            done.log_io_completed(Ok(()));
            return Ok(());
        };
        let sent = kept.writer.send(Order::Append { first, records, lengths, done });
        Ok(sent.map_err(|_| StorageIOError::write_logs(&gone()))?)
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let from = log_id.index;
        self.order(|done| Order::Truncate { from, done })
            .await
            .map_err(|e| StorageIOError::write_logs(&e))?;
        let mut kept = self.kept();
        let left = from.saturating_sub(kept.first()) as usize;
        kept.entries.truncate(left);
        Ok(())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        self.order(|done| Order::Purge { upto: log_id, done })
            .await
            .map_err(|e| StorageIOError::write_logs(&e))?;
        let mut kept = self.kept();
        let gone = ((log_id.index + 1).saturating_sub(kept.first()) as usize).min(kept.entries.len());
        kept.entries.drain(..gone);
        kept.purged = Some(log_id);
        Ok(())
    }
}

/// Carries out the orders to the log.
struct LogWriter {
    folder: PathBuf,
    segments: Segments,
    fsync: Fsync,
    /// Time by which the written bytes have to be on the disk.
    unsynced: Option<Nanos>,
}

impl LogWriter {
    fn work(mut self, orders: &Receiver<Order>) {
        loop {
            let order = match self.unsynced {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => {
                    orders.recv_timeout(Duration::from_nanos(at.0.saturating_sub(clock::monotonic().0)))
                }
            };
            match order {
                Ok(order) => self.carry_out(order),
                // Entries that cannot be synced were not promised to be durable.
                Err(RecvTimeoutError::Timeout) => drop(self.sync()),
                Err(RecvTimeoutError::Disconnected) => break drop(self.sync()),
            }
        }
    }

    fn carry_out(&mut self, order: Order) {
        // The sender of the order may have ended meanwhile.
        match order {
            Order::Append { first, records, lengths, done } => {
                done.log_io_completed(self.append(first, &records, &lengths));
            }
            Order::Truncate { from, done } => drop(done.send(self.segments.truncate(from))),
            Order::Purge { upto, done } => drop(done.send(self.purge(upto))),
            // Without its vote a node could vote twice: that is written in any case.
            Order::Vote { vote, done } => drop(done.send(durable::save(&vote_file(&self.folder), &vote))),
        }
    }

    fn append(&mut self, first: u64, records: &[u8], lengths: &[u64]) -> io::Result<()> {
        self.segments.append(first, records, lengths)?;
        match self.fsync {
            Fsync::Always => self.segments.sync(),
            Fsync::Never => Ok(()),
            Fsync::Every(span) => {
                let due = *self.unsynced.get_or_insert_with(|| clock::monotonic() + span);
                if due <= clock::monotonic() { self.sync() } else { Ok(()) }
            }
        }
    }

    fn purge(&mut self, upto: LogId) -> io::Result<()> {
        // The purge is recorded first: entries before it that still exist are skipped.
        durable::save(&purged_file(&self.folder), &upto)?;
        self.segments.purge(upto.index)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.unsynced = None;
        if self.fsync == Fsync::Never { Ok(()) } else { self.segments.sync() }
    }
}

#[cfg(test)]
mod tests {
    use openraft::testing::{StoreBuilder, Suite};

    use super::*;
    use crate::durable::tests::Folder;
    use crate::machine::Machine;
    use crate::options::ReplicaOptions;
    use crate::snapshot::Snapshots;
    use crate::state::State;
    use crate::views::Views;

    struct Stores;

    impl StoreBuilder<Types, Log, Machine, Folder> for Stores {
        async fn build(&self) -> Result<(Folder, Log, Machine), StorageError> {
            let folder = Folder::new();
            let (log, _, _) = Log::open(&folder.0.join("log"), Fsync::Never).unwrap();
            let options = ReplicaOptions::new(0, folder.0.clone());
            let views = Arc::new(Views::new(&options, State::default()));
            let machine = Machine::new(views, Snapshots::open(&folder.0.join("snapshot")).unwrap(), None);
            Ok((folder, log, machine))
        }
    }

    /// openraft's own tests of its requirements.
    #[test]
    fn the_stores_are_as_openraft_wants_them() {
        Suite::test_all(Stores).unwrap();
    }

    #[tokio::test]
    async fn what_is_kept_is_there_after_a_restart() {
        let folder = Folder::new();
        let (mut log, writer, _) = Log::open(&folder.0, Fsync::Every(Nanos::from_secs(60))).unwrap();
        assert!(log.is_new());
        let vote = Vote::new(3, 1);
        log.save_vote(&vote).await.unwrap();
        let id = |index| LogId::new(openraft::CommittedLeaderId::new(1, 0), index);
        let entries = (0..5).map(|index| Entry { log_id: id(index), payload: openraft::EntryPayload::Blank });
        openraft::storage::RaftLogStorageExt::blocking_append(&mut log, entries).await.unwrap();
        log.purge(id(1)).await.unwrap();
        log.truncate(id(4)).await.unwrap();
        let state = log.get_log_state().await.unwrap();
        drop(log);
        writer.wait();
        let (mut log, ..) = Log::open(&folder.0, Fsync::Always).unwrap();
        assert_eq!(log.get_log_state().await.unwrap(), state);
        assert_eq!((state.last_purged_log_id, state.last_log_id), (Some(id(1)), Some(id(3))));
        assert_eq!(log.read_vote().await.unwrap(), Some(vote));
        assert!(!log.is_new());
        let kept = log.limited_get_log_entries(2, 9).await.unwrap();
        assert_eq!(kept.iter().map(|entry| entry.log_id).collect::<Vec<_>>(), [id(2), id(3)]);
    }
}
