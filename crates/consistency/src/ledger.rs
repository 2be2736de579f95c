//! The ledger of a load: its writes, and their fates.

use std::collections::HashMap;

use plimsoll_scenario::TemplateError;
use plimsoll_scenario::pointer::JsonPointer;

use crate::audit::Audit;
use crate::content::{Content, Names, Witness};
use crate::key::{Key, KeyMap};

/// Members that servers set themselves, as far as is known before a load.
const OWNED: [&str; 2] = ["created_at", "updated_at"];
/// Resolution of the instants of a ledger: 100 µs. In 32 bits that is 119 hours.
const TICK_NS: u64 = 100_000;

/// The collection whose items are written.
#[derive(Clone, Debug)]
pub struct Resource {
    path: String,
    id: JsonPointer,
}

impl Resource {
    /// The collection at a path (`/api/products`), and where the id of an item is in it: a JSON Pointer.
    ///
    /// # Errors
    /// If that is not JSON Pointer.
    pub fn new(path: &str, id: &str) -> Result<Self, TemplateError> {
        Ok(Self { path: path.trim_end_matches('/').to_owned(), id: JsonPointer::parse(id)? })
    }

    /// The id of an item.
    pub(crate) fn key(&self, item: &[u8]) -> Option<Key> {
        let mut scratch = Vec::new();
        let text = self.id.find(item)?.text(&mut scratch)?;
        (!text.is_empty()).then(|| Key::new(text))
    }
}

/// A request that may have changed something, with its answer.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Method of the request.
    pub method: &'a str,
    /// Path of the request; a query does not matter.
    pub path: &'a str,
    /// Body of the request.
    pub request: &'a [u8],
    /// Status of the response; 0 if none came.
    pub status: u16,
    /// The body of the response.
    pub response: &'a [u8],
    /// When it was sent, in nanoseconds since any instant that is the same for all.
    pub sent: u64,
    /// When its answer came, or was given up.
    pub done: u64,
}

/// Number of writes by fate. A bulk counts as the items that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Creates that were acknowledged.
    pub created: u64,
    /// Updates that were acknowledged.
    pub updated: u64,
    /// Deletes that were acknowledged.
    pub deleted: u64,
    /// Writes that were refused: the server said that nothing had changed (3xx, 4xx).
    pub refused: u64,
    /// Writes that may have happened or not: no answer, or a 5xx.
    pub uncertain: u64,
    /// Acknowledged creates whose answer named no id: they are known by their content alone.
    pub nameless: u64,
    /// Writes to something else than the resource: they are not followed.
    pub elsewhere: u64,
    /// Writes that a server redirected to one that could not be reached: nothing has changed.
    pub undelivered: u64,
    /// Ids that were acknowledged for more than one create.
    pub reissued: u64,
}

/// State of an item as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    hash: u64,
    shape: u16,
    flags: u8,
    /// When the last write of it was done, in ticks.
    done: u32,
}

/// Set once it was acknowledged that the item is gone.
const DELETED: u8 = 1;
/// Set if writes of the item overlapped: which of them came last is not known.
const CONTENDED: u8 = 2;
/// Set if there is something to be seen of the item.
const WITNESSED: u8 = 4;
/// Set once the creation of the item was acknowledged, and noted.
const CREATED: u8 = 8;

impl State {
    pub(crate) const fn is_deleted(self) -> bool {
        self.flags & DELETED != 0
    }

    pub(crate) const fn is_contended(self) -> bool {
        self.flags & CONTENDED != 0
    }

    pub(crate) const fn witness(self) -> Option<Witness> {
        if self.flags & WITNESSED == 0 {
            return None;
        }
        Some(Witness { shape: self.shape, hash: self.hash })
    }
}

/// A write of an item that may have happened or not.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Doubt {
    Update(Option<Witness>),
    Delete,
}

/// The writes of a load, and the items that have to be there after them.
///
/// It takes 33 bytes for an item whose id is a UUID, rounded up to the next power of two of items: 10^7 of
/// them fit in 1 GiB, also while it grows and is audited (`ten_million_writes_take_less_than_a_gibibyte`).
/// Writes to the resource from elsewhere during the load look like faults of the server.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(crate) resource: Resource,
    pub(crate) names: Names,
    pub(crate) items: KeyMap<State>,
    pub(crate) doubts: HashMap<Key, Vec<Doubt>>,
    /// Creates without an id: how many there were with a content.
    pub(crate) unnamed: HashMap<Witness, u32>,
    /// Items that were there before.
    pub(crate) before: KeyMap<()>,
    /// Members whose values the server sets, or changes.
    owned: Vec<u16>,
    /// Members that the server adds: clients did not send them, and other servers may spell them otherwise.
    added: Vec<u16>,
    counts: Counts,
    reissued: Vec<Key>,
    start: Option<u64>,
}

impl Ledger {
    /// An empty one, for one resource.
    pub fn new(resource: Resource) -> Self {
        let mut names = Names::default();
        let owned: Vec<u16> = OWNED.iter().filter_map(|name| names.number(name.as_bytes())).collect();
        Self {
            resource,
            names,
            items: KeyMap::default(),
            doubts: HashMap::new(),
            unnamed: HashMap::new(),
            before: KeyMap::default(),
            added: owned.clone(),
            owned,
            counts: Counts::default(),
            reissued: Vec::new(),
            start: None,
        }
    }

    /// Notes an item that is there before the load. False if it has no id.
    pub fn note_before(&mut self, item: &[u8]) -> bool {
        let key = self.resource.key(item);
        key.map(|key| self.before.insert(&key, ())).is_some()
    }

    /// Notes a write. Those of one item have to come in the order in which they ended, unless they were made
    /// by different threads: those are ordered by their times.
    pub fn note(&mut self, write: &Write<'_>) {
        let path = write.path.split(['?', '#']).next().unwrap_or_default();
        let within = path.strip_prefix(self.resource.path.as_str());
        let segment = within.map(|within| within.trim_matches('/'));
        match (write.method, segment) {
            ("POST", Some("" | "_bulk")) => self.note_create(write),
            ("PUT" | "PATCH", Some(segment)) if is_item(segment) => self.note_update(write, segment),
            ("DELETE", Some(segment)) if is_item(segment) => self.note_delete(write, segment),
            _ => self.counts.elsewhere += 1,
        }
    }

    /// Notes a write that a server redirected to another, which never got it.
    pub const fn note_undelivered(&mut self) {
        self.counts.undelivered += 1;
    }

    /// Returns the number of writes by fate.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Ids that were acknowledged for more than one create, some of them.
    pub fn reissued(&self) -> impl Iterator<Item = String> + '_ {
        self.reissued.iter().map(Key::to_string)
    }

    /// Members whose values the server sets itself, as far as its answers show.
    pub fn owned(&self) -> Vec<String> {
        self.names.texts(&self.owned)
    }

    /// Items that have to be there, without those that were there before.
    pub fn living(&self) -> u64 {
        self.items.iter().filter(|(_, state)| !state.is_deleted()).count() as u64
    }

    /// Begins to compare the items of a server with it.
    pub fn audit(&self) -> Audit<'_> {
        Audit::new(self)
    }

    fn note_create(&mut self, write: &Write<'_>) {
        let requests = elements(write.request);
        let fate = Fate::of(write.status);
        match fate {
            Fate::Refused => self.counts.refused += requests.len() as u64,
            Fate::Uncertain => {
                self.counts.uncertain += requests.len() as u64;
                requests.iter().for_each(|request| self.note_unnamed(request));
            }
            Fate::Acknowledged => {
                let answers = elements(write.response);
                for (at, request) in requests.iter().enumerate() {
                    self.counts.created += 1;
                    let answer = answers.get(at).copied().unwrap_or_default();
                    match self.resource.key(answer) {
                        Some(key) => self.note_created(&key, (request, answer), (write.sent, write.done)),
                        None => {
                            self.counts.nameless += 1;
                            self.note_unnamed(request);
                        }
                    }
                }
            }
        }
    }

    fn note_unnamed(&mut self, request: &[u8]) {
        let content = Content::read(request, &mut self.names);
        let witness = content.and_then(|content| content.witness(&self.owned, &mut self.names));
        if let Some(witness) = witness {
            *self.unnamed.entry(witness).or_default() += 1;
        }
    }

    fn note_created(&mut self, key: &Key, (request, answer): (&[u8], &[u8]), (sent, done): (u64, u64)) {
        let contents = self.contents(request, answer);
        if let [Some(sent), Some(answered)] = &contents {
            let added = answered.others_than(sent).filter(|name| !self.added.contains(name));
            let added: Vec<u16> = added.collect();
            self.added.extend(added);
        }
        let witness = self.witness(contents);
        let state = self.state(witness, CREATED, done);
        let sent = self.tick(sent);
        match self.items.get_mut(key) {
            None => {
                self.items.insert(key, state);
            }
            // Another thread has changed or deleted it since, and its report came first.
            Some(old) if old.flags & CREATED == 0 => old.flags |= CREATED,
            // The id is free again.
            Some(old) if old.is_deleted() && sent >= old.done => *old = state,
            Some(old) => {
                if !old.is_deleted() {
                    *old = state;
                }
                self.counts.reissued += 1;
                if self.reissued.len() < Audit::EXAMPLES {
                    self.reissued.push(key.clone());
                }
            }
        }
    }

    fn note_update(&mut self, write: &Write<'_>, segment: &str) {
        let key = Key::of_segment(segment);
        match Fate::of(write.status) {
            Fate::Refused => self.counts.refused += 1,
            Fate::Uncertain => {
                self.counts.uncertain += 1;
                let content = Content::read(write.request, &mut self.names);
                let witness = content.and_then(|content| content.witness(&self.owned, &mut self.names));
                self.doubts.entry(key).or_default().push(Doubt::Update(witness));
            }
            Fate::Acknowledged => {
                self.counts.updated += 1;
                let contents = self.contents(write.request, write.response);
                let witness = self.witness(contents);
                let sent = self.tick(write.sent);
                let old = self.items.get(&key).copied();
                let flags = match old {
                    Some(old) if sent < old.done => old.flags & !WITNESSED | CONTENDED,
                    Some(old) => old.flags & (CONTENDED | CREATED),
                    None => 0,
                };
                let mut state = self.state(witness, flags, write.done);
                state.done = state.done.max(old.map_or(0, |old| old.done));
                self.items.insert(&key, state);
            }
        }
    }

    fn note_delete(&mut self, write: &Write<'_>, segment: &str) {
        let key = Key::of_segment(segment);
        match Fate::of(write.status) {
            Fate::Refused => self.counts.refused += 1,
            Fate::Uncertain => {
                self.counts.uncertain += 1;
                self.doubts.entry(key).or_default().push(Doubt::Delete);
            }
            Fate::Acknowledged => {
                self.counts.deleted += 1;
                let state = self.state(None, DELETED, write.done);
                match self.items.get_mut(&key) {
                    // Nothing creates the item again, so it is gone whatever else was done to it.
                    Some(old) => {
                        let (flags, done) = (state.flags | (old.flags & CREATED), old.done.max(state.done));
                        *old = State { flags, done, ..state };
                    }
                    None => {
                        self.items.insert(&key, state);
                    }
                }
            }
        }
    }

    /// Returns the witness of an item after an acknowledged write. It is made of the answer if that is the
    /// item, else of the request. Members that the server adds are left out: Lithair answers a create with a
    /// time that ends in `+00:00`, and lists it with one that ends in `Z`.
    fn witness(&mut self, contents: [Option<Content>; 2]) -> Option<Witness> {
        match contents {
            [Some(sent), Some(answered)] if answered.covers(&sent) => {
                for name in sent.differing(&answered) {
                    if !self.owned.contains(&name) {
                        self.owned.push(name);
                    }
                }
                answered.witness(&self.added, &mut self.names)
            }
            [Some(sent), _] => sent.witness(&self.owned, &mut self.names),
            [None, _] => None,
        }
    }

    /// Reads the request and the answer, each as far as it is an object.
    fn contents(&mut self, request: &[u8], answer: &[u8]) -> [Option<Content>; 2] {
        [request, answer].map(|text| Content::read(text, &mut self.names))
    }

    fn state(&mut self, witness: Option<Witness>, flags: u8, done: u64) -> State {
        // Operations that begin in the same tick may have overlapped.
        let done = self.tick(done).saturating_add(1);
        match witness {
            Some(Witness { shape, hash }) => State { hash, shape, flags: flags | WITNESSED, done },
            None => State { hash: 0, shape: 0, flags, done },
        }
    }

    fn tick(&mut self, at: u64) -> u32 {
        // The first operation that is noted need not be the earliest one.
        let start = *self.start.get_or_insert(at.saturating_sub(60_000_000_000));
        u32::try_from(at.saturating_sub(start) / TICK_NS).unwrap_or(u32::MAX)
    }
}

/// The fate of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Acknowledged,
    Refused,
    Uncertain,
}

impl Fate {
    /// By the status of its answer, 0 for none. A server that ran out of time (408) may have gone on.
    const fn of(status: u16) -> Self {
        match status {
            200..=299 => Self::Acknowledged,
            408 | 499 => Self::Uncertain,
            300..=498 => Self::Refused,
            _ => Self::Uncertain,
        }
    }
}

fn is_item(segment: &str) -> bool {
    !segment.is_empty() && !segment.contains('/') && segment != "_bulk"
}

/// The elements of an array, or the one thing that there is.
fn elements(body: &[u8]) -> Vec<&[u8]> {
    let Some(whole) = JsonPointer::default().find(body) else { return vec![body] };
    let mut all = Vec::new();
    let read = whole.each_element(|element| {
        all.push(element.raw());
        true
    });
    if read.is_some() { all } else { vec![whole.raw()] }
}
