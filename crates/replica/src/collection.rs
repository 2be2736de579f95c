//! The items of one model, in the order in which they came.

use std::collections::HashMap;
use std::sync::Arc;

/// Slots that may be empty before the others move together.
const SPARE: usize = 1024;

/// The items of one model. Their order is the same on all nodes, since all carry out the same changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collection {
    /// Items in the order of their creation; empty where one was deleted. At least about half are full.
    slots: Vec<Option<(u128, Arc<str>)>>,
    places: HashMap<u128, u32>,
}

impl Collection {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn contains(&self, id: u128) -> bool {
        self.places.contains_key(&id)
    }

    pub(crate) fn get(&self, id: u128) -> Option<&Arc<str>> {
        let place = *self.places.get(&id)?;
        self.slots[place as usize].as_ref().map(|(_, item)| item)
    }

    /// Adds an item whose id is new, or puts it in place of the old one.
    pub(crate) fn put(&mut self, id: u128, item: &str) {
        let slot = Some((id, Arc::from(item)));
        match self.places.get(&id) {
            Some(&place) => self.slots[place as usize] = slot,
            None => {
                let place = u32::try_from(self.slots.len()).expect("memory ends before 2^32 items");
                self.places.insert(id, place);
                self.slots.push(slot);
            }
        }
    }

    /// Removes an item, and returns `true` if it was there.
    pub(crate) fn remove(&mut self, id: u128) -> bool {
        let Some(place) = self.places.remove(&id) else { return false };
        self.slots[place as usize] = None;
        if self.slots.len() > SPARE + 2 * self.places.len() {
            self.slots.retain(Option::is_some);
            for (place, (id, _)) in self.slots.iter().flatten().enumerate() {
                self.places.insert(*id, place as u32);
            }
        }
        true
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, &Arc<str>)> {
        self.slots.iter().flatten().map(|(id, item)| (*id, item))
    }

    /// The id of any item; `draw` gives numbers below a bound, each as likely as the other.
    pub(crate) fn any(&self, draw: impl Fn(u64) -> u64) -> Option<u128> {
        if self.places.is_empty() {
            return None;
        }
        loop {
            if let Some((id, _)) = &self.slots[draw(self.slots.len() as u64) as usize] {
                return Some(*id);
            }
            // With few items among spare slots it may take long to hit one.
            if self.slots.len() > 8 * self.places.len() {
                let nth = draw(self.places.len() as u64) as usize;
                return self.iter().nth(nth).map(|(id, _)| id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Random;

    use super::*;

    #[test]
    fn order_stays_through_deletion() {
        let mut items = Collection::default();
        for id in 0..10_000 {
            items.put(id, &id.to_string());
        }
        for id in (0..10_000).filter(|id| id % 10 != 3) {
            assert!(items.remove(id));
            assert!(!items.remove(id));
        }
        items.put(13, "changed");
        assert!(items.slots.len() < 4_000, "{}", items.slots.len());
        let left: Vec<u128> = items.iter().map(|(id, _)| id).collect();
        assert_eq!(left, (0..1_000).map(|n| n * 10 + 3).collect::<Vec<_>>());
        assert_eq!((items.get(13).map(|item| &**item), items.len()), (Some("changed"), 1_000));
        assert!(items.get(4).is_none() && !items.contains(4));
    }

    #[test]
    fn any_item_is_drawn() {
        let mut random = Random::new(1, 1);
        let random = std::cell::RefCell::new(&mut random);
        let draw = |bound| random.borrow_mut().below(bound);
        let mut items = Collection::default();
        assert_eq!(items.any(draw), None);
        for id in 0..1_000 {
            items.put(id, "");
        }
        (0..996).for_each(|id| assert!(items.remove(id)));
        let mut drawn: Vec<_> = (0..100).filter_map(|_| items.any(draw)).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, [996, 997, 998, 999]);
    }
}
