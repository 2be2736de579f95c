//! Bounds on what a search in a body takes.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use plimsoll_xml::{XmlBounds, XmlFault};

use crate::pattern::{Pattern, TooMuchWork, Work};

/// Values of a body that is searched, at most: elements, attributes, texts, or those of JSON. They take some
/// 15 MB.
pub(super) const VALUES_MAX: usize = 100_000;
/// Steps of one search, at most, parsing included. A step takes some 100 ns, all of them as long as a worker
/// may be held up.
pub(super) const STEPS_MAX: u64 = 500_000;
/// Elements of XML within each other, at most, for the parser calls itself for each.
pub(super) const DEPTH_MAX: usize = 1_000;
/// Attributes of one element of XML, at most: the parser compares each with each.
pub(super) const ATTRIBUTES_MAX: usize = 1_000;

/// Bounds of XML that a search parses.
pub(super) const XML: XmlBounds = XmlBounds {
    values: VALUES_MAX,
    attributes: ATTRIBUTES_MAX,
    levels: DEPTH_MAX,
    steps: STEPS_MAX,
    doctype: true,
};

/// A bound that a search has exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// [`VALUES_MAX`], in XML.
    Nodes,
    /// [`VALUES_MAX`], in JSON.
    Values,
    Attributes,
    Depth,
    Steps,
    /// The work of a regular expression.
    Pattern,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes => {
                write!(f, "the body has more than {VALUES_MAX} values (elements, attributes and texts)")
            }
            Self::Values => write!(f, "the body has more than {VALUES_MAX} values"),
            Self::Attributes => write!(f, "an element has more than {ATTRIBUTES_MAX} attributes"),
            Self::Depth => write!(f, "more than {DEPTH_MAX} elements are within each other"),
            Self::Steps => write!(f, "the search took more than {STEPS_MAX} steps"),
            Self::Pattern => f.write_str("the text is too long for the regular expression"),
        }
    }
}

impl Excess {
    /// The bound that a document has exceeded; `None` if it is no XML.
    pub(super) fn of(fault: XmlFault) -> Option<Self> {
        match fault {
            XmlFault::Values => Some(Self::Nodes),
            XmlFault::Attributes => Some(Self::Attributes),
            XmlFault::Levels => Some(Self::Depth),
            XmlFault::Steps => Some(Self::Steps),
            XmlFault::NotXml | XmlFault::Doctype => None,
        }
    }
}

/// What is left of the steps of one search. Whoever makes steps stops where there are none; the result is
/// then worth nothing.
#[derive(Debug, Default)]
pub(super) struct Budget {
    left: Cell<u64>,
    excess: Cell<Option<Excess>>,
    /// Values of the tree that is being built.
    values: Cell<usize>,
    /// Steps for each value that a JSONPath looks at, by the length of its filters.
    price: Cell<u64>,
    /// Regular expressions that the search names by their numbers.
    patterns: RefCell<Arc<[Pattern]>>,
    /// Remaining work of the regular expressions of one search.
    work: Work,
}

impl Budget {
    /// Begins a search.
    pub(super) fn refill(&self) {
        self.left.set(STEPS_MAX);
        self.work.refill();
        self.excess.set(None);
    }

    /// Takes steps away, and returns `true` if there were as many.
    #[inline]
    pub(super) fn spend(&self, steps: u64) -> bool {
        match self.left.get().checked_sub(steps) {
            Some(left) => {
                self.left.set(left);
                true
            }
            None => {
                self.exceed(Excess::Steps);
                false
            }
        }
    }

    /// Ends the search for this reason, unless there is one already.
    pub(super) fn exceed(&self, excess: Excess) {
        self.left.set(0);
        self.excess.set(self.excess.get().or(Some(excess)));
    }

    /// The bound that the search has exceeded.
    pub(super) fn excess(&self) -> Option<Excess> {
        self.excess.get()
    }

    /// Returns `true` if the search is over.
    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        self.excess.get().is_some()
    }

    /// Begins a tree.
    pub(super) fn count_anew(&self) {
        self.values.set(0);
    }

    /// Counts a value of a tree, and returns `true` if it may have that.
    pub(super) fn count_value(&self) -> bool {
        self.values.set(self.values.get() + 1);
        if self.values.get() > VALUES_MAX {
            self.exceed(Excess::Values);
        }
        self.spend(1) && !self.is_spent()
    }

    /// Sets up a search by JSONPath.
    pub(super) fn set_filters(&self, price: u64, patterns: &Arc<[Pattern]>) {
        self.price.set(price);
        self.patterns.replace(Arc::clone(patterns));
    }

    /// Steps for each value that a JSONPath looks at.
    pub(super) fn price(&self) -> u64 {
        self.price.get()
    }

    /// Returns `true` if the pattern of this number matches.
    pub(super) fn is_filtered(&self, pattern: usize, text: &str) -> bool {
        let patterns = self.patterns.borrow();
        self.spend(1) && patterns.get(pattern).is_some_and(|pattern| self.is_match(pattern, text.as_bytes()))
    }

    /// Returns `true` if the expression matches anywhere in `text`.
    pub(super) fn is_match(&self, pattern: &Pattern, text: &[u8]) -> bool {
        self.known(pattern.is_match(text, &self.work))
    }

    /// The first group of the first match, or all of the match if there are no groups.
    pub(super) fn first_group<'t>(&self, pattern: &Pattern, text: &'t [u8]) -> Option<&'t [u8]> {
        self.known(pattern.first_group(text, &self.work))
    }

    /// Ends the search where a regular expression gave up.
    fn known<T: Default>(&self, found: Result<T, TooMuchWork>) -> T {
        found.unwrap_or_else(|TooMuchWork| {
            self.exceed(Excess::Pattern);
            T::default()
        })
    }
}
