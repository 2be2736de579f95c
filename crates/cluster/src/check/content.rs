//! The whole content of a node: its items by id, canonical, hashed.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use plimsoll_core::Nanos;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::ask;
use crate::pages::Pages;
use crate::spec::Content;

/// Time limit for one page.
const PAGE: Nanos = Nanos::from_secs(30);
/// Differences that are shown.
const SHOWN: usize = 5;
/// Characters of an item that are shown.
const ITEM_SHOWN: usize = 200;
/// Bytes of items that are kept as they are, to be shown: of all nodes of a small cluster that is little.
const TEXTS: usize = 16 << 20;
/// Ids that are kept of those that are stored more than once.
const DUPLICATES_SHOWN: usize = 5;

/// The first half of the SHA-256 of an item's canonical text: for 10^7 items it takes less memory than their
/// texts.
type ItemHash = u128;

/// The items of one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Inventory {
    /// The number of items that the node reported.
    count: Option<u64>,
    /// The hash of each item by its id.
    items: BTreeMap<String, ItemHash>,
    /// Items that were stored more than once, the first ids of them, and how many.
    duplicates: (Vec<String>, u64),
    /// The canonical texts of items, as far as they have room, to be shown.
    texts: BTreeMap<String, String>,
    /// Bytes of them.
    texts_bytes: usize,
}

impl Inventory {
    /// Asks a node for its number of items, and for all of them, page by page.
    ///
    /// # Errors
    /// The question that was not answered.
    pub(super) fn read(address: SocketAddr, content: &Content) -> Result<Self, String> {
        let mut inventory = Self::default();
        if let Some(path) = &content.count {
            let answer = ask::json(address, path, PAGE)?;
            let pointer = &content.count_pointer;
            let count = answer.pointer(pointer).and_then(Value::as_u64);
            inventory.count = Some(count.ok_or_else(|| format!("GET {path}: no number at {pointer}"))?);
        }
        let mut pages = Pages::of(content.page);
        while let Some(&(take, skip)) = pages.pages().first() {
            let path = path(content, take, skip);
            let answer = match ask::get(address, &path, PAGE) {
                Ok(answer) if answer.status == 200 => answer,
                _ if pages.shrink() => continue,
                Ok(answer) => return Err(format!("GET {path}: status {}", answer.status)),
                Err(reason) => return Err(reason),
            };
            if !pages.is_new(&answer.body) {
                break;
            }
            let page = items(&path, &answer.body, content)?;
            if page.len() as u64 > take {
                return Err(format!("GET {path}: {} items on one page", page.len()));
            }
            for item in &page {
                inventory.add(item, content)?;
            }
            pages.came(page.len() as u64);
        }
        Ok(inventory)
    }

    fn add(&mut self, item: &Value, content: &Content) -> Result<(), String> {
        let id = item.pointer(&content.id).map(ask::shown);
        let id = id.ok_or_else(|| format!("an item of {} has nothing at {}", content.list, content.id))?;
        let text = canonical(item).to_string();
        let hash = hash_of(&text);
        if self.texts_bytes < TEXTS {
            self.texts_bytes += text.len();
            self.texts.insert(id.clone(), text);
        }
        if self.items.insert(id.clone(), hash).is_some() {
            self.duplicates.1 += 1;
            if self.duplicates.0.len() < DUPLICATES_SHOWN {
                self.duplicates.0.push(id);
            }
        }
        Ok(())
    }

    /// Checks that the inventory agrees with itself: it has as many items as the node counts, and each once.
    ///
    /// # Errors
    /// A description of the disagreement.
    pub(super) fn is_consistent(&self) -> Result<(), String> {
        let (ids, count) = &self.duplicates;
        if *count > 0 {
            return Err(format!("{count} items are stored more than once: {}", ids.join(", ")));
        }
        match self.count {
            Some(count) if count != self.items.len() as u64 => {
                Err(format!("it counts {count} items, and lists {}", self.items.len()))
            }
            _ => Ok(()),
        }
    }

    /// One number for everything that it has.
    pub(super) fn hash(&self) -> ItemHash {
        let mut hash = Sha256::new();
        for (id, item) in &self.items {
            hash.update((id.len() as u64).to_le_bytes());
            hash.update(id.as_bytes());
            hash.update(item.to_le_bytes());
        }
        hash.update(self.duplicates.1.to_le_bytes());
        folded(hash)
    }

    /// `1,234 items`
    pub(super) fn said(&self) -> String {
        match self.items.len() {
            1 => "1 item".to_owned(),
            count => format!("{count} items"),
        }
    }

    /// The text of an item; its id alone if there was no room for it.
    fn shown(&self, id: &str) -> String {
        let Some(text) = self.texts.get(id) else { return format!("an item {id}") };
        match text.char_indices().nth(ITEM_SHOWN) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.clone(),
        }
    }
}

fn path(content: &Content, take: u64, skip: u64) -> String {
    let separator = if content.list.contains('?') { '&' } else { '?' };
    let Content { list, take: take_name, skip: skip_name, .. } = content;
    format!("{list}{separator}{take_name}={take}&{skip_name}={skip}")
}

fn items(path: &str, page: &[u8], content: &Content) -> Result<Vec<Value>, String> {
    let mut page: Value =
        serde_json::from_slice(page).map_err(|error| format!("GET {path}: no JSON: {error}"))?;
    match page.pointer_mut(&content.items).map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        _ => Err(format!("GET {path}: no list at {}", content.items)),
    }
}

/// Returns the value with the members of objects in the order of their names.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            Value::Object(sorted.into_iter().map(|(name, value)| (name.clone(), canonical(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

fn hash_of(text: &str) -> ItemHash {
    let mut hash = Sha256::new();
    hash.update(text.as_bytes());
    folded(hash)
}

/// The first half of a hash.
fn folded(hash: Sha256) -> u128 {
    let bytes: [u8; 32] = hash.finalize().into();
    bytes[..16].iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// The first differences between the contents of two nodes, or of one at two times.
pub(super) fn differences(
    (one_name, one): (&str, &Inventory),
    (other_name, other): (&str, &Inventory),
) -> Vec<String> {
    let mut found = Vec::new();
    let mut more = 0_u64;
    let mut add = |text: &dyn Fn() -> String| {
        if found.len() < SHOWN {
            found.push(text());
        } else {
            more += 1;
        }
    };
    for (id, hash) in &one.items {
        match other.items.get(id) {
            None => add(&|| format!("only {one_name} has {}", one.shown(id))),
            Some(other_hash) if other_hash != hash => add(&|| {
                let (one, other) = (one.shown(id), other.shown(id));
                format!("{one_name} has {one}, {other_name} has {other}")
            }),
            Some(_) => {}
        }
    }
    for id in other.items.keys().filter(|id| !one.items.contains_key(*id)) {
        add(&|| format!("only {other_name} has {}", other.shown(id)));
    }
    if more > 0 {
        found.push(format!("and {more} more differences"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(items: &[Value]) -> Inventory {
        let content = Content {
            port: "http".to_owned(),
            count: None,
            count_pointer: "/count".to_owned(),
            list: "/l".to_owned(),
            items: "/data".to_owned(),
            id: "/id".to_owned(),
            take: "take".to_owned(),
            skip: "skip".to_owned(),
            page: 10,
        };
        let mut inventory = Inventory::default();
        items.iter().for_each(|item| inventory.add(item, &content).expect("it has an id"));
        inventory
    }

    #[test]
    fn neither_the_order_of_items_nor_of_members_matters() {
        let one = of(&[json!({"id": "a", "x": {"p": 1, "q": 2}}), json!({"id": "b"})]);
        let same = of(&[json!({"id": "b"}), json!({"x": {"q": 2, "p": 1}, "id": "a"})]);
        assert_eq!(one.hash(), same.hash());
        let other = of(&[json!({"id": "b"}), json!({"x": {"q": 2, "p": 3}, "id": "a"})]);
        assert_ne!(one.hash(), other.hash());
        assert_ne!(of(&[json!({"id": "ab"})]).hash(), of(&[json!({"id": "a"}), json!({"id": "b"})]).hash());
    }

    #[test]
    fn differences_are_shown_by_their_ids() {
        let one = of(&[json!({"id": "a"}), json!({"id": "b", "n": 1}), json!({"id": "c"})]);
        let other = of(&[json!({"id": "b", "n": 2}), json!({"id": "c"}), json!({"id": "d"})]);
        let found = differences(("node 0", &one), ("node 1", &other));
        assert_eq!(
            found,
            [
                r#"only node 0 has {"id":"a"}"#,
                r#"node 0 has {"id":"b","n":1}, node 1 has {"id":"b","n":2}"#,
                r#"only node 1 has {"id":"d"}"#,
            ]
        );
    }

    #[test]
    fn what_is_there_twice_or_not_counted_is_told() {
        let mut twice = of(&[json!({"id": 7}), json!({"id": 7})]);
        assert_eq!(twice.is_consistent(), Err("1 items are stored more than once: 7".to_owned()));
        twice.duplicates = (Vec::new(), 0);
        twice.count = Some(2);
        assert_eq!(twice.is_consistent(), Err("it counts 2 items, and lists 1".to_owned()));
        twice.count = Some(1);
        assert_eq!(twice.is_consistent(), Ok(()));
    }
}
