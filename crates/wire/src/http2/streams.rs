//! Which streams are open, and where their state is.

/// Finds the slot of a stream by its identifier.
///
/// Slots are small dense numbers for the caller's arrays; a freed slot is the next to be used again. The
/// table is open addressing with linear probing and backward-shift deletion. Identifiers of one side are
/// sequential, so their low bits are the hash: streams that are open together rarely meet, and one that stays
/// open for ever costs nothing but its entry.
#[derive(Debug)]
pub(super) struct StreamTable {
    /// A power of two of entries, at most half of them used; identifier 0 is a vacant one.
    entries: Vec<Entry>,
    /// Slots below `slots` that are not in use.
    free: Vec<u32>,
    /// Slots ever used.
    slots: u32,
    /// Streams in the table.
    open: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    stream: u32,
    slot: u32,
}

/// Entries of an empty table: 128 bytes.
const FIRST_ENTRIES: usize = 16;

impl StreamTable {
    /// A table without streams.
    pub(super) fn new() -> Self {
        Self { entries: vec![Entry::default(); FIRST_ENTRIES], free: Vec::new(), slots: 0, open: 0 }
    }

    /// Streams in the table.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.open
    }

    /// The slot of a stream, if it is in the table.
    #[inline]
    pub(super) fn find(&self, stream: u32) -> Option<u32> {
        if stream == 0 {
            return None;
        }
        let mut at = self.home(stream);
        loop {
            let entry = self.entries[at];
            if entry.stream == stream {
                return Some(entry.slot);
            }
            if entry.stream == 0 {
                return None;
            }
            at = self.after(at);
        }
    }

    /// Enters a stream, which is not 0 and not in the table, and gives its slot: at most the number of
    /// streams that were in the table at once before.
    #[inline]
    pub(super) fn insert(&mut self, stream: u32) -> u32 {
        debug_assert!(stream != 0 && self.find(stream).is_none());
        if (self.len() as usize + 1) * 2 > self.entries.len() {
            self.grow();
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.place(Entry { stream, slot });
        self.open += 1;
        slot
    }

    /// Takes a stream out and gives the slot that it had, which is free.
    #[inline]
    pub(super) fn remove(&mut self, stream: u32) -> Option<u32> {
        let slot = self.retire(stream)?;
        self.reuse(slot);
        Some(slot)
    }

    /// Frees the slot of a stream that was [retired](Self::retire).
    #[inline]
    pub(super) fn reuse(&mut self, slot: u32) {
        debug_assert!(!self.free.contains(&slot), "the slot is free");
        self.free.push(slot);
    }

    /// Takes a stream out; its slot stays taken until [`reuse`](Self::reuse).
    #[inline]
    pub(super) fn retire(&mut self, stream: u32) -> Option<u32> {
        if stream == 0 {
            return None;
        }
        let mut at = self.home(stream);
        while self.entries[at].stream != stream {
            if self.entries[at].stream == 0 {
                return None;
            }
            at = self.after(at);
        }
        let slot = self.entries[at].slot;
        self.close_gap(at);
        self.open -= 1;
        Some(slot)
    }

    /// The streams in the table with their slots, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.entries.iter().filter(|entry| entry.stream != 0).map(|entry| (entry.stream, entry.slot))
    }

    /// Identifiers of one side differ by two, so that streams that were opened one after the other leave a
    /// vacant entry between them: a removal that had to look through a run of them would cost as much as
    /// there are streams.
    #[inline]
    fn home(&self, stream: u32) -> usize {
        stream as usize & (self.entries.len() - 1)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }

    #[inline]
    fn place(&mut self, entry: Entry) {
        let mut at = self.home(entry.stream);
        while self.entries[at].stream != 0 {
            at = self.after(at);
        }
        self.entries[at] = entry;
    }

    /// Empties the entry at `gap` and moves those behind it that could not be found any more.
    #[inline]
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.entries.len() - 1;
        let mut at = gap;
        loop {
            at = self.after(at);
            let entry = self.entries[at];
            if entry.stream == 0 {
                break;
            }
            // It may move to the gap if that is not before its home.
            let from_home = at.wrapping_sub(self.home(entry.stream)) & mask;
            let from_gap = at.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.entries[gap] = entry;
                gap = at;
            }
        }
        self.entries[gap] = Entry::default();
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![Entry::default(); self.entries.len() * 2];
        for entry in std::mem::replace(&mut self.entries, larger) {
            if entry.stream != 0 {
                self.place(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_table_is_a_map_with_dense_slots(
            steps in prop::collection::vec((0_u32..200, any::<bool>()), 1..400),
            base in 0_u32..(1 << 31) - 500,
        ) {
            let (mut table, mut map) = (StreamTable::new(), BTreeMap::new());
            let mut most = 0;
            for (offset, enter) in steps {
                let stream = (base + offset) | 1;
                if !enter {
                    prop_assert_eq!(table.remove(stream), map.remove(&stream));
                } else if map.contains_key(&stream) {
                    prop_assert_eq!(table.find(stream), map.get(&stream).copied());
                } else {
                    let slot = table.insert(stream);
                    most = most.max(map.len() as u32 + 1);
                    prop_assert!(slot < most, "slot {} of {} streams", slot, most);
                    prop_assert!(map.values().all(|&taken| taken != slot));
                    map.insert(stream, slot);
                }
                prop_assert_eq!(table.len() as usize, map.len());
            }
            let mut left: Vec<_> = table.iter().collect();
            left.sort_unstable();
            prop_assert_eq!(left, map.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_stream_that_stays_does_not_make_the_table_grow() {
        let mut table = StreamTable::new();
        let stays = table.insert(1);
        for stream in (3..200_001).step_by(2) {
            let slot = table.insert(stream);
            assert_eq!(slot, 1);
            assert_eq!(table.remove(stream), Some(slot));
        }
        assert_eq!(table.find(1), Some(stays));
        assert_eq!(table.entries.len(), FIRST_ENTRIES);
        assert_eq!(table.find(0), None);
        assert_eq!(table.remove(0), None);
    }
}
