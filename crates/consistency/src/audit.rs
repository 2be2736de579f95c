//! Comparison of a server's items with the writes that it acknowledged.

use std::collections::{HashMap, HashSet};

use crate::content::{Content, Witness};
use crate::key::Key;
use crate::ledger::{Doubt, Ledger};

/// Bytes of an item that evidence shows, at most.
const LONGEST: usize = 300;

/// A finding, with the number of its occurrences and some of their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Number of occurrences.
    pub count: u64,
    /// Ids of some, with the server's version if it has one. At most [`Audit::EXAMPLES`].
    pub examples: Vec<String>,
}

impl Evidence {
    fn add(&mut self, key: &Key, item: Option<&[u8]>) {
        self.count += 1;
        if self.examples.len() < Audit::EXAMPLES {
            let shown = item.map(|item| {
                let text = String::from_utf8_lossy(item);
                let end = text.char_indices().map(|(at, _)| at).find(|&at| at >= LONGEST);
                format!(": {}", &text[..end.unwrap_or(text.len())])
            });
            self.examples.push(format!("{key}{}", shown.unwrap_or_default()));
        }
    }
}

/// The result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Items that the server has.
    pub stored: u64,
    /// Part of them: they were there before.
    pub before: u64,
    /// Part of them: creates whose answer was lost, and that did happen.
    pub recovered: u64,
    /// Part of them: writes of these overlapped, so that their content is not known.
    pub unchecked: u64,
    /// Items that have to be there and are not: their last write was acknowledged.
    pub missing: Evidence,
    /// Items that were there before and are not any more, although the load did not delete them.
    pub gone: Evidence,
    /// Items whose content is not that of their last acknowledged write.
    pub wrong: Evidence,
    /// Items that are there although their deletion was acknowledged.
    pub resurrected: Evidence,
    /// Items that were never sent, or less often.
    pub surplus: Evidence,
    /// Items that are listed more than once.
    pub twice: Evidence,
    /// Listed items without an id.
    pub nameless: u64,
}

impl Findings {
    /// Returns `true` if the server has everything that it should, and nothing else.
    pub const fn is_consistent(&self) -> bool {
        self.missing.count == 0
            && self.gone.count == 0
            && self.wrong.count == 0
            && self.resurrected.count == 0
            && self.surplus.count == 0
            && self.twice.count == 0
            && self.nameless == 0
    }
}

/// An audit under way: show it every [item](Self::item) of a server once, then [end](Self::end) it.
#[derive(Debug)]
pub struct Audit<'l> {
    ledger: &'l Ledger,
    /// Hashes of the keys that were shown.
    seen: HashSet<u64>,
    /// Creates without an id that were found, by content.
    found: HashMap<Witness, u32>,
    findings: Findings,
}

impl<'l> Audit<'l> {
    /// Examples of each kind of finding, at most.
    pub const EXAMPLES: usize = 20;

    pub(crate) fn new(ledger: &'l Ledger) -> Self {
        Self { ledger, seen: HashSet::new(), found: HashMap::new(), findings: Findings::default() }
    }

    /// Takes an item: a JSON object.
    pub fn item(&mut self, item: &[u8]) {
        self.findings.stored += 1;
        let Some(key) = self.ledger.resource.key(item) else {
            self.findings.nameless += 1;
            return;
        };
        if !self.seen.insert(key.hash64()) {
            self.findings.twice.add(&key, Some(item));
            return;
        }
        match self.ledger.items.get(&key) {
            None if self.ledger.before.get(&key).is_some() => self.findings.before += 1,
            None if self.is_unnamed(item) => self.findings.recovered += 1,
            None => self.findings.surplus.add(&key, Some(item)),
            Some(state) if state.is_deleted() => self.findings.resurrected.add(&key, Some(item)),
            Some(state) if state.is_contended() => self.findings.unchecked += 1,
            Some(state) => {
                let Some(witness) = state.witness() else {
                    self.findings.unchecked += 1;
                    return;
                };
                let names = &self.ledger.names;
                let content = Content::read_known(item, names).unwrap_or_default();
                let shows = |witness: Witness| content.shows(witness, names);
                let doubts = || self.ledger.doubts.get(&key).into_iter().flatten();
                let doubted = || {
                    doubts().any(|doubt| match doubt {
                        Doubt::Update(Some(witness)) => shows(*witness),
                        Doubt::Update(None) => true,
                        Doubt::Delete => false,
                    })
                };
                if !shows(witness) && !doubted() {
                    self.findings.wrong.add(&key, Some(item));
                }
            }
        }
    }

    /// Returns `true` if an item may come from a create without a known id: its content was sent, and more
    /// often than it has been found so far.
    fn is_unnamed(&mut self, item: &[u8]) -> bool {
        let names = &self.ledger.names;
        let Some(content) = Content::read_known(item, names) else { return false };
        for (shape, members) in names.all_shapes() {
            let hash = content.hash_over(members);
            let Some(witness) = hash.map(|hash| Witness { shape, hash }) else { continue };
            let Some(&sent) = self.ledger.unnamed.get(&witness) else { continue };
            let found = self.found.entry(witness).or_default();
            if *found < sent {
                *found += 1;
                return true;
            }
        }
        false
    }

    /// Ends the audit after all items: the missing items, and the findings.
    pub fn end(mut self) -> Findings {
        let may_be_gone = |key: &Key| {
            let doubts = self.ledger.doubts.get(key).into_iter().flatten();
            doubts.into_iter().any(|doubt| matches!(doubt, Doubt::Delete))
        };
        let seen = &self.seen;
        let lost = |keys: &mut dyn Iterator<Item = Key>| {
            let (mut lost, mut count) = (Vec::new(), 0);
            for key in keys.filter(|key| !seen.contains(&key.hash64()) && !may_be_gone(key)) {
                count += 1;
                if lost.len() < Self::EXAMPLES {
                    lost.push(key);
                }
            }
            lost.sort();
            Evidence { count, examples: lost.iter().map(Key::to_string).collect() }
        };
        let items = self.ledger.items.iter();
        let missing = lost(&mut items.filter(|(_, state)| !state.is_deleted()).map(|(key, _)| key));
        let untouched = |key: &Key| self.ledger.items.get(key).is_none();
        let gone = lost(&mut self.ledger.before.iter().map(|(key, ())| key).filter(untouched));
        (self.findings.missing, self.findings.gone) = (missing, gone);
        self.findings
    }
}
