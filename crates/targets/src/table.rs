//! The state of the connections of one thread.

use plimsoll_driver::ConnId;

/// Connections of one thread. A stale id finds none.
#[derive(Debug)]
pub struct Table<C> {
    slots: Vec<Option<(ConnId, C)>>,
}

impl<C> Default for Table<C> {
    fn default() -> Self {
        Self { slots: Vec::new() }
    }
}

impl<C> Table<C> {
    /// Adds a connection.
    pub fn insert(&mut self, id: ConnId, connection: C) {
        let slot = id.slot();
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot] = Some((id, connection));
    }

    /// The connection, unless it is gone.
    #[inline]
    pub fn get(&mut self, id: ConnId) -> Option<&mut C> {
        let (known, connection) = self.slots.get_mut(id.slot())?.as_mut()?;
        (*known == id).then_some(connection)
    }

    /// Takes the connection out, unless it is gone.
    pub fn remove(&mut self, id: ConnId) -> Option<C> {
        self.get(id)?;
        self.slots[id.slot()].take().map(|(_, connection)| connection)
    }

    /// The ids of all connections.
    pub(crate) fn ids(&self) -> Vec<ConnId> {
        self.slots.iter().flatten().map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_id_finds_and_removes_nothing() {
        let mut table = Table::default();
        let (old, new) = (ConnId::new(2, 1), ConnId::new(2, 2));
        table.insert(old, "old");
        table.insert(new, "new");
        assert!(table.get(old).is_none() && table.remove(old).is_none());
        assert_eq!(table.ids(), [new]);
        assert_eq!(table.remove(new), Some("new"));
        assert!(table.get(new).is_none() && table.ids().is_empty());
    }
}
