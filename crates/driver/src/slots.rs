//! The table of connections, and the tokens that name its entries to the kernel.

use crate::ConnId;

/// Generations have 24 bits, so that a token fits 64 bits. After 16.7 million re-uses of one slot an id could
/// be mistaken for a newer one, if it were kept that long.
const GENERATION_MASK: u32 = (1 << 24) - 1;

/// The user data of a request to the kernel, which comes back with its answer: the kind of request, and the
/// table entry that it is about, by slot and generation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Token {
    /// Meaning: the backend's.
    pub(crate) kind: u8,
    pub(crate) slot: u32,
    /// The generation in which the entry was inserted, 24 bits.
    pub(crate) birth: u32,
}

impl Token {
    pub(crate) const fn bits(self) -> u64 {
        (self.kind as u64) << 56 | (self.birth as u64) << 32 | self.slot as u64
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self { kind: (bits >> 56) as u8, birth: (bits >> 32) as u32 & GENERATION_MASK, slot: bits as u32 }
    }

    /// The id that the owner has, or had, of this entry.
    pub(crate) const fn conn(self) -> ConnId {
        ConnId::new(self.slot, self.birth)
    }
}

/// Connections by slot.
///
/// An entry lives in two stages. From [`insert`](Self::insert) to [`expire`](Self::expire) its owner reaches
/// it by its [`ConnId`]. Then the id is stale, but the entry may still have bytes to send or requests in the
/// kernel, and is reached by [`Token`] alone. [`release`](Self::release) frees the slot.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    /// Of the id that is valid now, or will be for the next entry.
    generation: u32,
    /// `generation` when the entry was inserted.
    birth: u32,
    entry: Option<T>,
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// Entries, expired ones included.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, entry: T) -> ConnId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, birth: 0, entry: None });
            // Every entry holds a file descriptor, and those are 31 bits.
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.birth = slot.generation;
        slot.entry = Some(entry);
        ConnId::new(index, slot.generation)
    }

    /// All entries, expired ones included.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.entry.as_ref())
    }

    /// The entry of an id that is not stale.
    pub(crate) fn get(&self, conn: ConnId) -> Option<&T> {
        let slot = self.slots.get(conn.slot())?;
        if slot.generation == conn.generation() { slot.entry.as_ref() } else { None }
    }

    /// The entry of an id that is not stale.
    pub(crate) fn get_mut(&mut self, conn: ConnId) -> Option<&mut T> {
        let slot = self.slots.get_mut(conn.slot())?;
        if slot.generation == conn.generation() { slot.entry.as_mut() } else { None }
    }

    /// The entry that a token was made for, also after its id expired.
    pub(crate) fn by_token(&mut self, token: Token) -> Option<&mut T> {
        let slot = self.slots.get_mut(token.slot as usize)?;
        if slot.birth == token.birth { slot.entry.as_mut() } else { None }
    }

    /// Makes the id stale. The entry stays, for tokens.
    pub(crate) fn expire(&mut self, conn: ConnId) {
        if let Some(slot) = self.slots.get_mut(conn.slot())
            && slot.generation == conn.generation()
            && slot.entry.is_some()
        {
            slot.generation = (slot.generation + 1) & GENERATION_MASK;
        }
    }

    /// Takes the entry out, expired or not; its slot can be used again.
    pub(crate) fn release(&mut self, token: Token) -> Option<T> {
        self.expire(token.conn());
        let slot = self.slots.get_mut(token.slot as usize)?;
        if slot.birth != token.birth {
            return None;
        }
        let entry = slot.entry.take()?;
        self.free.push(token.slot);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(conn: ConnId) -> Token {
        Token { kind: 7, slot: conn.slot() as u32, birth: conn.generation() }
    }

    #[test]
    fn a_token_survives_its_bits() {
        let token = Token { kind: 0xFE, slot: u32::MAX, birth: GENERATION_MASK };
        assert_eq!(Token::from_bits(token.bits()), token);
    }

    #[test]
    fn an_expired_entry_is_reached_by_token_alone() {
        let mut slots = Slots::new();
        let conn = slots.insert("a");
        assert_eq!(slots.get(conn), Some(&"a"));
        slots.expire(conn);
        slots.expire(conn);
        assert_eq!(slots.get(conn), None);
        assert_eq!(slots.get_mut(conn), None);
        assert_eq!(slots.by_token(token(conn)), Some(&mut "a"));
        assert_eq!(slots.len(), 1);
        assert_eq!(slots.release(token(conn)), Some("a"));
        assert_eq!(slots.release(token(conn)), None);
        assert_eq!(slots.len(), 0);
    }

    #[test]
    fn a_slot_is_used_again_under_another_id() {
        let mut slots = Slots::new();
        let first = slots.insert(1);
        assert_eq!(slots.release(token(first)), Some(1));
        let second = slots.insert(2);
        assert_eq!(first.slot(), second.slot());
        assert_ne!(first.generation(), second.generation());
        assert_eq!(slots.get(first), None);
        assert_eq!(slots.by_token(token(first)), None);
        assert_eq!(slots.release(token(first)), None);
        slots.expire(first);
        assert_eq!(slots.get(second), Some(&2));
        assert_eq!(slots.len(), 1);
    }

    #[test]
    fn generations_wrap_where_tokens_do() {
        let mut slots = Slots::new();
        let conn = slots.insert(());
        slots.slots[conn.slot()].generation = GENERATION_MASK;
        slots.slots[conn.slot()].birth = GENERATION_MASK;
        let last = ConnId::new(conn.slot() as u32, GENERATION_MASK);
        assert!(slots.release(token(last)).is_some());
        assert_eq!(slots.insert(()).generation(), 0);
    }
}
