//! The dynamic table of a decoder (RFC 7541 sections 2.3.2 and 4).

use std::collections::VecDeque;

/// Size of an entry beside its name and value (section 4.1), in bytes.
pub(crate) const ENTRY_OVERHEAD: u32 = 32;

/// The entries of one connection, in the order of their insertion.
///
/// Names and values stand one after the other in one buffer, so that each is one slice. Insertion appends,
/// eviction leaves dead bytes at the front, and these are moved over when they are at least as many as the
/// living: each byte is moved about once, and nothing is allocated once the buffer has the size that it
/// needs. That is at most four times the largest table that the peer has filled; before its first insertion
/// nothing is allocated.
#[derive(Debug)]
pub(super) struct DynamicTable {
    /// First the dead bytes, then those of the entries.
    bytes: Vec<u8>,
    /// The place of `bytes[0]` among all bytes ever inserted.
    base: u64,
    /// The oldest first.
    entries: VecDeque<Entry>,
    /// The sum of the entries' sizes (section 4.1).
    size: u32,
    /// Limit of `size`.
    max_size: u32,
    /// Number of changes of the content or of the largest size.
    changes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The place of the name among all bytes ever inserted; the value follows it.
    start: u64,
    name_len: u32,
    value_len: u32,
}

impl Entry {
    fn size(self) -> u32 {
        self.name_len + self.value_len + ENTRY_OVERHEAD
    }
}

/// The name of a new entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum EntryName<'a> {
    Bytes(&'a [u8]),
    /// The name of the entry at this place, see [`DynamicTable::get`].
    OfEntry(u32),
}

impl DynamicTable {
    pub(super) fn new(max_size: u32) -> Self {
        Self { bytes: Vec::new(), base: 0, entries: VecDeque::new(), size: 0, max_size, changes: 0 }
    }

    /// Returns a number that grows with every change.
    #[inline]
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Name and value of an entry; 0 is the newest.
    #[inline]
    pub(super) fn get(&self, place: u32) -> Option<(&[u8], &[u8])> {
        let entry = self.entry(place)?;
        let from = self.position(entry);
        let fields = self.bytes.get(from..from + entry.name_len as usize + entry.value_len as usize)?;
        fields.split_at_checked(entry.name_len as usize)
    }

    /// Inserts a field whose name and value together have less than 4 GiB, and evicts entries that have no
    /// room beside it: everything, itself included, if it is larger than the table (section 4.4). Of
    /// `OfEntry` the entry has to exist.
    pub(super) fn insert(&mut self, name: EntryName<'_>, value: &[u8]) {
        let name_entry = match name {
            EntryName::Bytes(_) => None,
            EntryName::OfEntry(place) => self.entry(place),
        };
        let name_len = match name {
            EntryName::Bytes(bytes) => bytes.len(),
            EntryName::OfEntry(_) => name_entry.map_or(0, |entry| entry.name_len as usize),
        };
        let length = name_len + value.len();
        if length as u64 + u64::from(ENTRY_OVERHEAD) > u64::from(self.max_size) {
            self.evict_down_to(0);
            return;
        }
        self.forget_dead(length);
        let start = self.base + self.bytes.len() as u64;
        // Copied before anything is evicted: the entry with the name may be the first to go.
        match (name, name_entry) {
            (EntryName::Bytes(bytes), _) => self.bytes.extend_from_slice(bytes),
            (EntryName::OfEntry(_), Some(entry)) => {
                let from = self.position(entry);
                self.bytes.extend_from_within(from..from + name_len);
            }
            (EntryName::OfEntry(_), None) => {}
        }
        self.bytes.extend_from_slice(value);
        let entry = Entry { start, name_len: name_len as u32, value_len: value.len() as u32 };
        self.evict_down_to(self.max_size - entry.size());
        self.entries.push_back(entry);
        self.size += entry.size();
        self.changes += 1;
    }

    /// Sets the maximum size, and evicts entries beyond it (section 4.3).
    pub(super) fn set_max_size(&mut self, max_size: u32) {
        if max_size != self.max_size {
            self.changes += 1;
            self.max_size = max_size;
            self.evict_down_to(max_size);
        }
    }

    fn entry(&self, place: u32) -> Option<Entry> {
        let from_oldest = self.entries.len().checked_sub(place as usize + 1)?;
        self.entries.get(from_oldest).copied()
    }

    fn position(&self, entry: Entry) -> usize {
        (entry.start - self.base) as usize
    }

    fn evict_down_to(&mut self, size: u32) {
        while self.size > size
            && let Some(entry) = self.entries.pop_front()
        {
            self.size -= entry.size();
            self.changes += 1;
        }
    }

    /// Moves the living bytes to the front, if there is no room for `more` and that is worth it.
    fn forget_dead(&mut self, more: usize) {
        if self.bytes.capacity() - self.bytes.len() >= more {
            return;
        }
        let dead = self.entries.front().map_or(self.bytes.len(), |&oldest| self.position(oldest));
        if dead >= self.bytes.len() - dead {
            self.bytes.drain(..dead);
            self.base += dead as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(table: &DynamicTable) -> Vec<(&[u8], &[u8])> {
        (0..).map_while(|place| table.get(place)).collect()
    }

    #[test]
    fn the_oldest_go_first_and_only_as_many_as_have_to() {
        let mut table = DynamicTable::new(110);
        for (name, value) in [("a", "1"), ("bb", "2"), ("c", "33")] {
            table.insert(EntryName::Bytes(name.as_bytes()), value.as_bytes());
        }
        assert_eq!((table.size, table.entries.len()), (34 + 35 + 35, 3));
        table.insert(EntryName::Bytes(b"dddd"), b"444");
        assert_eq!(fields(&table), [(&b"dddd"[..], &b"444"[..]), (b"c", b"33"), (b"bb", b"2")]);
        table.set_max_size(74);
        assert_eq!(fields(&table), [(&b"dddd"[..], &b"444"[..]), (b"c", b"33")]);
        table.set_max_size(73);
        assert_eq!(fields(&table), [(&b"dddd"[..], &b"444"[..])]);
    }

    #[test]
    fn what_is_larger_than_the_table_empties_it() {
        let mut table = DynamicTable::new(40);
        table.insert(EntryName::Bytes(b"name"), b"5678");
        assert_eq!((table.size, table.changes()), (40, 1));
        table.insert(EntryName::Bytes(b"name"), b"56789");
        assert_eq!((table.size, fields(&table).len(), table.changes()), (0, 0, 2));
        table.insert(EntryName::Bytes(b"name"), b"56789");
        assert_eq!(table.changes(), 2, "an empty table that stays empty has not changed");
    }

    #[test]
    fn a_name_may_be_that_of_the_entry_that_has_to_go_for_it() {
        let mut table = DynamicTable::new(64);
        table.insert(EntryName::Bytes(b"a-long-name"), b"one");
        for round in 0..100 {
            let value = format!("value {round}");
            table.insert(EntryName::OfEntry(0), value.as_bytes());
            assert_eq!(fields(&table), [(&b"a-long-name"[..], value.as_bytes())]);
        }
    }

    #[test]
    fn the_buffer_does_not_grow_with_the_number_of_insertions() {
        let mut table = DynamicTable::new(4096);
        let mut largest = 0;
        for round in 0..20_000_u32 {
            let value = vec![b'v'; (round * 7 % 900) as usize];
            table.insert(EntryName::Bytes(b"some-name"), &value);
            let newest = table.get(0);
            assert_eq!(newest, Some((&b"some-name"[..], &value[..])));
            largest = largest.max(table.bytes.capacity());
        }
        assert!(largest <= 4 * 4096, "{largest} bytes");
    }

    #[test]
    fn changes_are_counted_where_there_are_any() {
        let mut table = DynamicTable::new(4096);
        table.set_max_size(4096);
        assert_eq!(table.changes(), 0);
        table.insert(EntryName::Bytes(b"a"), b"");
        let after_insertion = table.changes();
        assert!(after_insertion > 0);
        table.set_max_size(2000);
        assert!(table.changes() > after_insertion, "a later insertion may evict more than before");
    }
}
