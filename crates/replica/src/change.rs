//! A write as it stands in the log.

use serde::{Deserialize, Serialize};

/// One write, checked as far as it can be without the items. Items are stored as text.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change<'a> {
    pub(crate) model: &'a str,
    #[serde(borrow)]
    pub(crate) what: What<'a>,
    /// `true` if the change is acknowledged and not carried out.
    pub(crate) lost: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What<'a> {
    /// All of them, or none if one of the ids is there already.
    #[serde(borrow)]
    Create(Vec<New<'a>>),
    /// The item as a client sent it, and when.
    Replace {
        id: u128,
        object: &'a str,
        at: &'a str,
    },
    /// Fields as a client sent them, and when.
    Merge {
        id: u128,
        object: &'a str,
        at: &'a str,
    },
    Delete {
        id: u128,
    },
}

/// An item to be stored.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct New<'a> {
    pub(crate) id: u128,
    pub(crate) item: &'a str,
    pub(crate) fate: Fate,
}

/// Fate of an item whose creation is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fate {
    Stored,
    Lost,
    /// Stored once more under this id.
    Duplicated(u128),
}

impl Change<'_> {
    /// Encodes the change.
    pub(crate) fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("a change is made of texts and numbers")
    }
}

/// The changes of an entry, in order; an error if it holds something else.
pub(crate) fn decode(entry: &[u8]) -> impl Iterator<Item = Result<Change<'_>, postcard::Error>> {
    let mut rest = entry;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        Some(postcard::take_from_bytes(rest).map(|(change, after)| {
            rest = after;
            change
        }))
    })
}

/// Result of a change, the same on all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    Created,
    /// There is an item with this id.
    Exists(u128),
    /// The item is now this.
    Updated(String),
    Deleted,
    NotFound,
    /// A field of the item is missing in its replacement.
    Incomplete,
    /// The id is missing, or another one.
    OtherId,
    /// The instant of creation is missing, or another one.
    OtherCreation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_they_were_written() {
        let changes = [
            Change {
                model: "m",
                what: What::Create(vec![
                    New { id: 1, item: "{}", fate: Fate::Stored },
                    New { id: u128::MAX, item: "ü", fate: Fate::Duplicated(7) },
                ]),
                lost: false,
            },
            Change { model: "n", what: What::Replace { id: 3, object: "o", at: "t" }, lost: true },
            Change { model: "n", what: What::Delete { id: 3 }, lost: false },
        ];
        let entry: Vec<u8> = changes.iter().flat_map(Change::encode).collect();
        assert_eq!(decode(&entry).collect::<Result<Vec<_>, _>>().unwrap(), changes);
        assert!(decode(&entry[..entry.len() - 1]).any(|change| change.is_err()));
    }
}
