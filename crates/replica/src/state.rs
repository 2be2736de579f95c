//! The stored state. It is the same on all nodes that have carried out the same entries, lies aside.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::change::{Change, Fate, New, Reply, What, decode};
use crate::collection::Collection;
use crate::fields::{Fields, object, string, with_id};
use crate::identifier;
use crate::lies::{Confession, FaultInjector, InjectedFault, LieKind};

/// Changes of one entry that are distinguished when it is chosen which of them diverge.
const CHANGES_PER_ENTRY: u64 = 1 << 20;

/// All items, and the lies that were told about them.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) models: BTreeMap<String, Collection>,
    pub(crate) lies: Confession,
}

impl State {
    pub(crate) fn get(&self, model: &str, id: u128) -> Option<&Arc<str>> {
        self.models.get(model)?.get(id)
    }

    /// Carries out the entry with this index, and returns the outcomes of its changes. `injector` says which
    /// values this node alone changes.
    pub(crate) fn apply(
        &mut self,
        index: u64,
        entry: &[u8],
        injector: &FaultInjector,
    ) -> Result<Vec<Reply>, postcard::Error> {
        let numbers = index.wrapping_mul(CHANGES_PER_ENTRY)..;
        let mut numbers = numbers.into_iter();
        decode(entry)
            .map(|change| {
                let change = change?;
                let items = self.models.entry_of(change.model);
                let mut carried = Carried {
                    items,
                    lies: &mut self.lies,
                    model: change.model,
                    injector,
                    numbers: &mut numbers,
                };
                Ok(carried.out(&change))
            })
            .collect()
    }
}

/// Finds or makes an entry without making a name that is there already.
trait EntryOf {
    fn entry_of(&mut self, name: &str) -> &mut Collection;
}

impl EntryOf for BTreeMap<String, Collection> {
    fn entry_of(&mut self, name: &str) -> &mut Collection {
        if !self.contains_key(name) {
            self.insert(name.to_owned(), Collection::default());
        }
        self.get_mut(name).expect("it is there now")
    }
}

/// State and context that a change works on.
struct Carried<'a, N> {
    items: &'a mut Collection,
    lies: &'a mut Confession,
    model: &'a str,
    injector: &'a FaultInjector,
    numbers: &'a mut N,
}

impl<N: Iterator<Item = u64>> Carried<'_, N> {
    fn out(&mut self, change: &Change<'_>) -> Reply {
        match &change.what {
            What::Create(new) => self.create(new),
            What::Replace { id, object, at } => {
                self.update(*id, change.lost, |item| replaced(item, object, at))
            }
            What::Merge { id, object, at } => self.update(*id, change.lost, |item| merged(item, object, at)),
            What::Delete { id } if change.lost && self.items.contains(*id) => {
                self.tell(LieKind::Resurrect, "delete", *id, None);
                Reply::Deleted
            }
            What::Delete { id } if self.items.remove(*id) => Reply::Deleted,
            What::Delete { .. } => Reply::NotFound,
        }
    }

    fn create(&mut self, new: &[New<'_>]) -> Reply {
        if let Some(known) = new.iter().find(|new| self.items.contains(new.id)) {
            return Reply::Exists(known.id);
        }
        for New { id, item, fate } in new {
            match fate {
                Fate::Lost => self.tell(LieKind::Lose, "create", *id, None),
                Fate::Stored => self.store("create", *id, item),
                Fate::Duplicated(other) => {
                    self.store("create", *id, item);
                    self.items.put(*other, &with_id(item, &identifier::format(*other)));
                    self.tell(LieKind::Duplicate, "create", *id, Some(*other));
                }
            }
        }
        Reply::Created
    }

    fn update(&mut self, id: u128, lost: bool, change: impl FnOnce(&str) -> Result<String, Reply>) -> Reply {
        let Some(item) = self.items.get(id) else { return Reply::NotFound };
        match change(item) {
            Err(reply) => reply,
            Ok(item) => {
                if lost {
                    self.tell(LieKind::Lose, "update", id, None);
                } else {
                    self.store("update", id, &item);
                }
                Reply::Updated(item)
            }
        }
    }

    /// Stores an item, or on a node that diverges something else.
    fn store(&mut self, operation: &str, id: u128, item: &str) {
        let number = self.numbers.next().expect("numbers do not end");
        if self.injector.lies_about(LieKind::Diverge, number) {
            self.items.put(id, &diverged(item));
            self.tell(LieKind::Diverge, operation, id, None);
        } else {
            self.items.put(id, item);
        }
    }

    fn tell(&mut self, kind: LieKind, operation: &str, id: u128, duplicate: Option<u128>) {
        self.lies.add(InjectedFault {
            kind,
            operation: operation.to_owned(),
            model: self.model.to_owned(),
            id: Some(identifier::format(id)),
            duplicate: duplicate.map(identifier::format),
        });
    }
}

/// Replaces an item as a whole: each field of the stored one has to be sent.
fn replaced(item: &str, sent: &str, at: &str) -> Result<String, Reply> {
    let (stored, sent) = (parse(item), parse(sent));
    if stored.others().any(|(name, _)| sent.get(name).is_none()) {
        return Err(Reply::Incomplete);
    }
    changed(&stored, &sent, sent.others(), at, true)
}

/// An item with some fields changed.
fn merged(item: &str, sent: &str, at: &str) -> Result<String, Reply> {
    let (stored, sent) = (parse(item), parse(sent));
    let kept = stored.others().map(|(name, value)| (name, sent.get(name).unwrap_or(value)));
    let added = sent.others().filter(|(name, _)| stored.get(name).is_none());
    changed(&stored, &sent, kept.chain(added), at, false)
}

/// An item with these fields, and its own id and instant of creation, which must equal the sent ones: if any
/// were sent, or in any case.
fn changed<'a>(
    stored: &Fields<'_>,
    sent: &Fields<'_>,
    fields: impl Iterator<Item = (&'a str, &'a str)>,
    at: &str,
    needed: bool,
) -> Result<String, Reply> {
    let same = |name: &str| match sent.get(name) {
        Some(value) => string(value).is_some() && string(value) == stored.text(name),
        None => !needed,
    };
    // An id may be written in either case.
    let id = stored.text("id").unwrap_or_default();
    if !same("id") && sent.text("id").and_then(|text| identifier::parse(&text)) != identifier::parse(&id) {
        return Err(Reply::OtherId);
    }
    if !same("created_at") {
        return Err(Reply::OtherCreation);
    }
    Ok(object(&id, fields, &stored.text("created_at").unwrap_or_default(), at))
}

fn parse(object: &str) -> Fields<'_> {
    // Bytes that are not an object were refused before they came into the log.
    Fields::parse(object.as_bytes()).unwrap_or_default()
}

/// An item with one value that was never sent.
fn diverged(item: &str) -> String {
    let stored = parse(item);
    let changed = stored.others().find_map(|(name, value)| {
        let other = match value.as_bytes().first()? {
            b'"' => format!("{}?\"", &value[..value.len() - 1]),
            b'0'..=b'9' | b'-' => (value.parse::<f64>().ok()? + 1.0).to_string(),
            _ => return None,
        };
        Some((name.to_owned(), other))
    });
    let (name, value) = changed.unwrap_or(("diverged".to_owned(), "true".to_owned()));
    let kept = stored.others().map(|field| if field.0 == name { (field.0, &value[..]) } else { field });
    let added = stored.get(&name).is_none().then_some((&name[..], &value[..]));
    let text = |name: &str| stored.text(name).unwrap_or_default().into_owned();
    object(&text("id"), kept.chain(added), &text("created_at"), &text("updated_at"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lies::Lie;

    const ITEM: &str = r#"{"id":"00000000-0000-0000-0000-000000000001","name":"a","price":1,"created_at":"c","updated_at":"u"}"#;

    fn apply(state: &mut State, what: What<'_>, lost: bool) -> Reply {
        let entry = Change { model: "m", what, lost }.encode();
        state.apply(1, &entry, &FaultInjector::new(None, 0)).unwrap().remove(0)
    }

    fn create(state: &mut State, fate: Fate) -> Reply {
        apply(state, What::Create(vec![New { id: 1, item: ITEM, fate }]), false)
    }

    fn item(state: &State) -> Option<&str> {
        state.get("m", 1).map(|item| &**item)
    }

    #[test]
    fn items_are_made_changed_and_deleted() {
        let mut state = State::default();
        assert_eq!(create(&mut state, Fate::Stored), Reply::Created);
        assert_eq!(create(&mut state, Fate::Stored), Reply::Exists(1));
        let price = r#"{"price":2.50,"new":[]}"#;
        let merged = apply(&mut state, What::Merge { id: 1, object: price, at: "v" }, false);
        let expected = ITEM.replace(":1,", r#":2.50,"new":[],"#).replace(r#""u""#, r#""v""#);
        assert_eq!(merged, Reply::Updated(expected.clone()));
        assert_eq!(item(&state), Some(&expected[..]));
        assert_eq!(apply(&mut state, What::Delete { id: 1 }, false), Reply::Deleted);
        assert_eq!(apply(&mut state, What::Delete { id: 1 }, false), Reply::NotFound);
        assert_eq!(apply(&mut state, What::Merge { id: 1, object: price, at: "v" }, false), Reply::NotFound);
        assert!(state.lies.told().is_empty());
    }

    #[test]
    fn an_item_is_replaced_by_a_whole_one_of_the_same_origin() {
        let mut state = State::default();
        create(&mut state, Fate::Stored);
        let mut replace = |object: &str| apply(&mut state, What::Replace { id: 1, object, at: "v" }, false);
        assert_eq!(replace(&ITEM.replace(r#""price":1,"#, "")), Reply::Incomplete);
        assert_eq!(replace(&ITEM.replace("0001\"", "0002\"")), Reply::OtherId);
        assert_eq!(replace(r#"{"name":"b","price":1,"created_at":"c"}"#), Reply::OtherId);
        assert_eq!(replace(&ITEM.replace("\"c\"", "\"d\"")), Reply::OtherCreation);
        let changed = ITEM.replace("\"a\"", "\"b\"");
        assert_eq!(replace(&changed), Reply::Updated(changed.replace("\"u\"", "\"v\"")));
    }

    #[test]
    fn nothing_of_a_creation_is_stored_if_an_id_is_known() {
        let mut state = State::default();
        create(&mut state, Fate::Stored);
        let new = [2, 1].map(|id| New { id, item: ITEM, fate: Fate::Stored });
        assert_eq!(apply(&mut state, What::Create(new.into()), false), Reply::Exists(1));
        assert_eq!(state.models["m"].len(), 1);
    }

    #[test]
    fn lies_are_acknowledged_and_confessed() {
        let mut state = State::default();
        assert_eq!(create(&mut state, Fate::Lost), Reply::Created);
        assert_eq!(item(&state), None);
        assert_eq!(create(&mut state, Fate::Duplicated(2)), Reply::Created);
        let second = state.get("m", 2).unwrap();
        assert_eq!(&**second, ITEM.replace("0001\"", "0002\""));
        let change = What::Merge { id: 1, object: "{\"price\":3}", at: "v" };
        assert!(matches!(apply(&mut state, change, true), Reply::Updated(_)));
        assert_eq!(apply(&mut state, What::Delete { id: 1 }, true), Reply::Deleted);
        assert_eq!(apply(&mut state, What::Delete { id: 9 }, true), Reply::NotFound);
        assert_eq!(item(&state), Some(ITEM));
        let told = state.lies.told().iter().map(|told| (told.kind, &told.operation[..]));
        use LieKind::{Duplicate, Lose, Resurrect};
        let expected = [(Lose, "create"), (Duplicate, "create"), (Lose, "update"), (Resurrect, "delete")];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_node_diverges_by_itself() {
        let injector = FaultInjector::new(Some(Lie { kind: LieKind::Diverge, share: 1.0 }), 0);
        let mut state = State::default();
        let what = What::Create(vec![New { id: 1, item: ITEM, fate: Fate::Stored }]);
        state.apply(1, &Change { model: "m", what, lost: false }.encode(), &injector).unwrap();
        assert_eq!(item(&state), Some(&ITEM.replace("\"a\"", "\"a?\"")[..]));
        assert_eq!(state.lies.told()[0].kind, LieKind::Diverge);
        assert_eq!(diverged(&ITEM.replace("\"name\":\"a\",", "")).matches(r#""price":2"#).count(), 1);
        assert!(diverged(r#"{"id":"i","created_at":"","updated_at":""}"#).contains(r#""diverged":true"#));
    }
}
