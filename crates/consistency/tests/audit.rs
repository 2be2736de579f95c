//! A load on a small server that keeps its word, or does not: its lies are found, and nothing else.

use std::collections::BTreeMap;

use plimsoll_consistency::{Findings, Ledger, Resource, Write};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A server in memory: items by id.
#[derive(Clone, Default)]
struct Server {
    items: BTreeMap<String, Value>,
    made: u32,
}

/// The fate of a write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// The write is done and acknowledged.
    Good,
    /// The write is refused, and not done.
    Refused,
    /// The write is done, and the answer is lost.
    Deaf,
    /// The write is lost.
    Lost,
    /// The write is acknowledged and not done.
    Lie,
}

#[derive(Clone, Debug)]
enum Deed {
    Create(u32),
    Patch(usize, u32),
    Put(usize, u32),
    Delete(usize),
}

/// A load with its server and its ledger, in step.
struct World {
    server: Server,
    ledger: Ledger,
    /// Ids that were acknowledged and may be written again.
    pool: Vec<String>,
    lies: usize,
    now: u64,
}

fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

impl World {
    fn new() -> Self {
        let resource = Resource::new("/api/products", "/id").expect("a pointer");
        let ledger = Ledger::new(resource);
        Self { server: Server::default(), ledger, pool: Vec::new(), lies: 0, now: 1_000_000_000 }
    }

    fn do_it(&mut self, deed: &Deed, fate: Fate) {
        let place = |index: usize| (!self.pool.is_empty()).then(|| index % self.pool.len());
        let done = matches!(fate, Fate::Good | Fate::Deaf);
        let (method, path, body, answer, key) = match *deed {
            Deed::Create(count) => {
                let sent: Vec<Value> = (0..count.max(1))
                    .map(|at| json!({"name": format!("n{}-{at}", self.server.made), "price": 1.50}))
                    .collect();
                let stored: Vec<Value> = sent
                    .iter()
                    .map(|item| {
                        self.server.made += 1;
                        let mut item = item.clone();
                        item["id"] = id(self.server.made).into();
                        item["created_at"] = self.now.into();
                        item
                    })
                    .collect();
                if done {
                    self.server.items.extend(stored.iter().map(|item| (text(&item["id"]), item.clone())));
                }
                if matches!(fate, Fate::Good | Fate::Lie) {
                    self.pool.extend(stored.iter().map(|item| text(&item["id"])));
                    self.lies += if fate == Fate::Lie { stored.len() } else { 0 };
                }
                match count {
                    0 => ("POST", "/api/products".to_owned(), sent[0].clone(), stored[0].clone(), None),
                    _ => ("POST", "/api/products/_bulk".to_owned(), json!(sent), json!(stored), None),
                }
            }
            Deed::Patch(index, price) | Deed::Put(index, price) => {
                let Some(at) = place(index) else { return };
                let key = self.pool.remove(at);
                let Some(old) = self.server.items.get(&key).cloned() else { return };
                let mut new = old.clone();
                new["price"] = price.into();
                new["updated_at"] = self.now.into();
                if done {
                    self.server.items.insert(key.clone(), new.clone());
                }
                let whole = matches!(deed, Deed::Put(..));
                let mut sent = json!({"price": price});
                if whole {
                    sent = old;
                    sent["price"] = price.into();
                }
                let method = if whole { "PUT" } else { "PATCH" };
                (method, format!("/api/products/{key}"), sent, new, Some(key))
            }
            Deed::Delete(index) => {
                let Some(at) = place(index) else { return };
                let key = self.pool.remove(at);
                if done {
                    self.server.items.remove(&key);
                }
                self.lies += usize::from(fate == Fate::Lie && self.server.items.contains_key(&key));
                ("DELETE", format!("/api/products/{key}"), Value::Null, Value::Null, None)
            }
        };
        if let (Some(key), Fate::Lie) = (&key, fate) {
            // Otherwise the lie could not be seen. (The time of the change is ignored.)
            self.lies += usize::from(self.server.items[key]["price"] != answer["price"]);
        }
        // A row whose request failed is not kept.
        if let (Some(key), Fate::Good | Fate::Lie) = (key, fate) {
            self.pool.push(key);
        }
        let status = match fate {
            Fate::Good | Fate::Lie => 200,
            Fate::Refused => 409,
            Fate::Deaf | Fate::Lost => [0, 503][self.now as usize / 1_000 % 2],
        };
        let (request, response) = (body.to_string(), answer.to_string());
        self.ledger.note(&Write {
            method,
            path: &path,
            request: request.as_bytes(),
            status,
            response: if status == 200 { response.as_bytes() } else { b"" },
            sent: self.now,
            done: self.now + 900_000,
        });
        self.now += 1_001_000;
    }

    fn audit(&self) -> Findings {
        let mut audit = self.ledger.audit();
        self.server.items.values().for_each(|item| audit.item(item.to_string().as_bytes()));
        audit.end()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => Just(Deed::Create(0)),
        1 => (1_u32..5).prop_map(Deed::Create),
        2 => (any::<usize>(), 0_u32..5).prop_map(|(index, price)| Deed::Patch(index, price)),
        2 => (any::<usize>(), 0_u32..5).prop_map(|(index, price)| Deed::Put(index, price)),
        1 => any::<usize>().prop_map(Deed::Delete),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Good),
        1 => Just(Fate::Refused),
        1 => Just(Fate::Deaf),
        1 => Just(Fate::Lost),
    ]
}

proptest! {
    #[test]
    fn a_server_that_keeps_its_word_is_believed(
        deeds in proptest::collection::vec((deed(), fate()), 0..200),
    ) {
        let mut world = World::new();
        deeds.iter().for_each(|(deed, fate)| world.do_it(deed, *fate));
        let findings = world.audit();
        prop_assert!(findings.is_consistent(), "{findings:?}");
        prop_assert_eq!(findings.stored, world.server.items.len() as u64);
        prop_assert_eq!(findings.unchecked, 0);
    }

    #[test]
    fn the_last_lie_is_found(
        deeds in proptest::collection::vec((deed(), fate()), 0..100), lie in deed(),
    ) {
        let mut world = World::new();
        deeds.iter().for_each(|(deed, fate)| world.do_it(deed, *fate));
        let before = world.lies;
        world.do_it(&lie, Fate::Lie);
        let findings = world.audit();
        let found = findings.missing.count + findings.wrong.count + findings.resurrected.count;
        prop_assert_eq!(found, (world.lies - before) as u64, "{:?} {:?}", lie, findings);
    }
}

#[test]
fn what_is_there_too_often_or_was_never_sent_is_named() {
    let mut world = World::new();
    world.ledger.note_before(br#"{"id":"old"}"#);
    for _ in 0..3 {
        world.do_it(&Deed::Create(0), Fate::Good);
    }
    world.do_it(&Deed::Create(0), Fate::Lost);
    let items: Vec<String> = world.server.items.values().map(Value::to_string).collect();
    let strange = r#"{"id":"x","name":"nobody's","price":1}"#.to_owned();
    let mut lost = world.server.items[&id(1)].clone();
    (lost["id"], lost["name"]) = ("y".into(), "n3-0".into());
    let lost_again = lost.to_string().replace("\"y\"", "\"z\"");
    let mut audit = world.ledger.audit();
    for item in items.iter().chain([&items[0], &strange, &lost.to_string(), &lost_again]) {
        audit.item(item.as_bytes());
    }
    audit.item(br#"{"name":"without an id"}"#);
    let found = audit.end();
    assert_eq!((found.stored, found.recovered, found.nameless), (8, 1, 1));
    assert_eq!((found.twice.count, found.surplus.count, found.missing.count), (1, 2, 0));
    assert_eq!((found.gone.count, &*found.gone.examples[0]), (1, "old"));
    assert!(found.twice.examples[0].starts_with(&id(1)), "{found:?}");
    assert!(found.surplus.examples[0].starts_with("x: {") && found.surplus.examples[1].starts_with("z: {"));
    assert!(!found.is_consistent());
}

#[test]
fn writes_that_overlapped_are_not_judged_by_their_content() {
    let resource = || Resource::new("/api/products/", "/id").expect("a pointer");
    let write = |path, price: u32, (sent, done): (u64, u64)| {
        (path, format!("{{\"price\":{price}}}"), sent * 1_000_000, done * 1_000_000)
    };
    let noted = |writes: &[(&str, String, u64, u64)]| {
        let mut ledger = Ledger::new(resource());
        for (path, request, sent, done) in writes {
            ledger.note(&Write {
                method: "PATCH",
                path,
                request: request.as_bytes(),
                status: 200,
                response: b"",
                sent: *sent,
                done: *done,
            });
        }
        ledger
    };
    let one = "/api/products/a?x=1";
    for (writes, wrong, unchecked) in [
        (vec![write(one, 1, (10, 20)), write(one, 2, (30, 40))], 1, 0),
        (vec![write(one, 2, (10, 20)), write(one, 1, (30, 40))], 0, 0),
        (vec![write(one, 1, (10, 35)), write(one, 2, (30, 40))], 0, 1),
        // Told by another thread, and late.
        (vec![write(one, 1, (30, 40)), write(one, 2, (10, 20))], 0, 1),
    ] {
        let ledger = noted(&writes);
        let mut audit = ledger.audit();
        audit.item(br#"{"id":"a","price":1}"#);
        let found = audit.end();
        assert_eq!((found.wrong.count, found.unchecked), (wrong, unchecked), "{writes:?}");
    }
    let ledger = noted(&[write("/elsewhere/a", 1, (1, 2)), write("/api/products/a/b", 1, (1, 2))]);
    assert_eq!(ledger.counts().elsewhere, 2);
}

#[test]
fn ids_that_are_given_twice_and_creates_without_one_are_counted() {
    let mut ledger = Ledger::new(Resource::new("/api/products", "/id").unwrap());
    let mut create = |response: &str| {
        ledger.note(&Write {
            method: "POST",
            path: "/api/products",
            request: br#"{"name":"n"}"#,
            status: 201,
            response: response.as_bytes(),
            sent: 1,
            done: 2,
        });
    };
    create(r#"{"id":"a","name":"N"}"#);
    create(r#"{"id":"a","name":"N"}"#);
    create("");
    let counts = ledger.counts();
    assert_eq!((counts.created, counts.reissued, counts.nameless), (3, 1, 1));
    assert_eq!(ledger.reissued().collect::<Vec<_>>(), ["a"]);
    assert_eq!(ledger.owned(), ["created_at", "name", "updated_at"], "the server has changed the name");
    assert_eq!(ledger.living(), 1);
}

#[test]
fn ten_million_writes_take_less_than_a_gibibyte() {
    // A sixteenth of them: tables double, so that this one is as full as that of all.
    const ITEMS: u32 = 10_000_000 / 16;
    let measured = allocation_counter::measure(|| {
        let mut ledger = Ledger::new(Resource::new("/api/products", "/id").unwrap());
        for number in 0..ITEMS {
            let item = format!(r#"{{"id":"{}","name":"n{number}"}}"#, id(number));
            ledger.note(&Write {
                method: "POST",
                path: "/api/products",
                request: br#"{"name":"n"}"#,
                status: 201,
                response: item.as_bytes(),
                sent: u64::from(number),
                done: u64::from(number),
            });
        }
        assert_eq!(ledger.living(), u64::from(ITEMS));
        let mut audit = ledger.audit();
        for number in 0..ITEMS {
            audit.item(format!(r#"{{"id":"{}","name":"n{number}"}}"#, id(number)).as_bytes());
        }
        assert!(audit.end().is_consistent());
    });
    assert!(measured.bytes_max < (1 << 30) / 16, "{} bytes", measured.bytes_max);
}

#[test]
fn what_the_server_adds_may_be_spelled_otherwise_in_a_list() {
    let mut ledger = Ledger::new(Resource::new("/api/products", "/id").unwrap());
    for (at, (method, path, request, response)) in (1..).zip([
        (
            "POST",
            "/api/products",
            r#"{"name":"n","price":1}"#,
            r#"{"id":"a","name":"N","price":1,"version":1,"updated_at":"x"}"#,
        ),
        (
            "PATCH",
            "/api/products/a",
            r#"{"price":2}"#,
            r#"{"id":"a","name":"N","price":2,"version":2,"updated_at":"y"}"#,
        ),
    ]) {
        let (request, response, sent) = (request.as_bytes(), response.as_bytes(), at * 1_000_000);
        ledger.note(&Write { method, path, request, status: 200, response, sent, done: sent });
    }
    for (item, wrong) in [
        (r#"{"id":"a","name":"N","price":2.0,"version":"2"}"#, 0),
        (r#"{"id":"a","name":"n","price":2,"version":2}"#, 1),
        (r#"{"id":"a","name":"N","price":1,"version":1}"#, 1),
    ] {
        let mut audit = ledger.audit();
        audit.item(item.as_bytes());
        assert_eq!(audit.end().wrong.count, wrong, "{item}");
    }
}

/// Threads hand over their writes in batches: a deletion may be heard of before the creation.
#[test]
fn what_one_thread_tells_late_does_not_undo_what_another_has_told() {
    let write = |method, path, request, response, at: u64| Write {
        method,
        path,
        request,
        status: 200,
        response,
        sent: at * 1_000_000,
        done: at * 1_000_000 + 500_000,
    };
    let of_item = "/api/products/a";
    let create = write("POST", "/api/products", br#"{"price":1}"#, br#"{"id":"a","price":1}"#, 10);
    let change = write("PATCH", of_item, br#"{"price":2}"#, b"", 20);
    let delete = write("DELETE", of_item, b"", b"", 30);
    for (order, stored, is_fine) in [
        ([&delete, &create].as_slice(), None, true),
        (&[&delete, &create], Some(1), false),
        (&[&change, &create], Some(2), true),
        (&[&change, &create], Some(1), false),
        (&[&change, &create], None, false),
        (&[&create, &change, &delete], None, true),
    ] {
        let mut ledger = Ledger::new(Resource::new("/api/products", "/id").unwrap());
        order.iter().for_each(|write| ledger.note(write));
        let mut audit = ledger.audit();
        if let Some(price) = stored {
            audit.item(format!(r#"{{"id":"a","price":{price}}}"#).as_bytes());
        }
        let found = audit.end();
        assert_eq!(found.is_consistent(), is_fine, "{order:?} {stored:?}: {found:?}");
        assert_eq!(ledger.counts().reissued, 0);
    }
    // An id may come again once it is free, and only then.
    let again = write("POST", "/api/products", br#"{"price":3}"#, br#"{"id":"a","price":3}"#, 40);
    for (order, reissued) in [([create, delete, again].as_slice(), 0), (&[create, again], 1)] {
        let mut ledger = Ledger::new(Resource::new("/api/products", "/id").unwrap());
        order.iter().for_each(|write| ledger.note(write));
        let mut audit = ledger.audit();
        audit.item(br#"{"id":"a","price":3}"#);
        assert!(audit.end().is_consistent());
        assert_eq!(ledger.counts().reissued, reissued);
    }
}

/// An item that no write created is not called acknowledged when it is gone.
#[test]
fn what_was_there_before_and_is_not_any_more_is_not_called_acknowledged() {
    let mut world = World::new();
    world.ledger.note_before(br#"{"id":"old"}"#);
    let findings = world.ledger.audit().end();
    assert_eq!((findings.missing.count, findings.gone.count), (0, 1));
    assert_eq!((&*findings.gone.examples[0], findings.is_consistent()), ("old", false));
}
