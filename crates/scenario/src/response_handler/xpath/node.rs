//! Nodes of XML as an XPath sees them, each step of which is counted.

use std::cmp::Ordering;
use std::iter;

use roxmltree::{Attribute, Document, Namespace, Node, NodeId, NodeType};
use xpath_eval::{ExpandedName, NodeKind};

use super::weight::Weight;
use crate::response_handler::budget::Budget;

/// Bytes of text for which one step is taken.
const BYTES: u64 = 24;

/// A search in a document.
pub(super) struct Search<'a> {
    pub(super) document: &'a Document<'a>,
    pub(super) budget: &'a Budget,
    pub(super) weight: Weight,
}

/// A node of the document.
///
/// Once the budget is spent it has neither children nor a parent, no name and no text, so that all loops of
/// the evaluation end; what then comes out of it is not used. The order of nodes and the owner of an
/// attribute stay true, for the evaluation relies on them.
#[derive(Clone, Copy)]
pub(super) struct XmlNode<'a> {
    search: &'a Search<'a>,
    id: NodeId,
    part: Part,
}

/// A node of the document itself, or what an element has, by its number; in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Whole,
    Namespace(u32),
    Attribute(u32),
}

impl Search<'_> {
    fn spend(&self, steps: u64) -> bool {
        self.budget.spend(steps)
    }

    /// Takes the steps for a text that functions go through.
    fn spend_text(&self, length: usize) -> bool {
        self.spend(1 + length as u64 * self.weight.text / BYTES)
    }
}

impl<'a> XmlNode<'a> {
    pub(super) fn root(search: &'a Search<'a>) -> Self {
        Self { search, id: search.document.root().id(), part: Part::Whole }
    }

    fn whole(self, id: NodeId) -> Self {
        Self { id, part: Part::Whole, ..self }
    }

    /// The node, or the element that has it.
    fn node(self) -> Node<'a, 'a> {
        self.search.document.get_node(self.id).unwrap_or_else(|| self.search.document.root())
    }

    fn is_whole(self) -> bool {
        self.part == Part::Whole
    }

    fn attribute(self, number: u32) -> Option<Attribute<'a, 'a>> {
        self.node().attributes().nth(number as usize)
    }

    fn namespace(self, number: u32) -> Option<&'a Namespace<'a>> {
        self.node().namespaces().nth(number as usize)
    }

    /// What the element has of one kind.
    fn parts(self, count: usize, part: fn(u32) -> Part) -> impl Iterator<Item = Self> + 'a {
        (0..count as u32).map_while(move |number| {
            self.search.spend(self.search.weight.any).then_some(Self { part: part(number), ..self })
        })
    }

    /// The text that stands somewhere as it is.
    fn text(self) -> Option<&'a str> {
        match self.part {
            Part::Attribute(number) => self.attribute(number).map(|attribute| attribute.value()),
            Part::Namespace(number) => self.namespace(number).map(Namespace::uri),
            Part::Whole => match self.node().node_type() {
                NodeType::Root | NodeType::Element => None,
                NodeType::PI => Some(self.node().pi().and_then(|pi| pi.value).unwrap_or_default()),
                NodeType::Comment | NodeType::Text => Some(self.node().text().unwrap_or_default()),
            },
        }
    }

    /// The namespace and the local part of the name.
    fn name(self) -> Option<(Option<&'a str>, &'a str)> {
        match self.part {
            Part::Attribute(number) => {
                self.attribute(number).map(|attribute| (attribute.namespace(), attribute.name()))
            }
            Part::Namespace(number) => {
                self.namespace(number).map(|namespace| (None, namespace.name().unwrap_or_default()))
            }
            Part::Whole => match self.node().node_type() {
                NodeType::Element => {
                    let name = self.node().tag_name();
                    // Undone by `xmlns=""`.
                    Some((name.namespace().filter(|uri| !uri.is_empty()), name.name()))
                }
                NodeType::PI => self.node().pi().map(|pi| (None, pi.target)),
                NodeType::Root | NodeType::Comment | NodeType::Text => None,
            },
        }
    }
}

impl PartialEq for XmlNode<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.part == other.part
    }
}

impl Eq for XmlNode<'_> {}

impl<'a> xpath_eval::Node<'a> for XmlNode<'a> {
    fn kind(self) -> NodeKind {
        match self.part {
            Part::Attribute(_) => NodeKind::Attribute,
            Part::Namespace(_) => NodeKind::Namespace,
            Part::Whole => match self.node().node_type() {
                NodeType::Root => NodeKind::Root,
                NodeType::Element => NodeKind::Element,
                NodeType::PI => NodeKind::ProcessingInstruction,
                NodeType::Comment => NodeKind::Comment,
                NodeType::Text => NodeKind::Text,
            },
        }
    }

    fn parent(self) -> Option<Self> {
        let goes_on = self.search.spend(self.search.weight.any);
        if !self.is_whole() {
            return Some(self.whole(self.id));
        }
        self.node().parent().filter(|_| goes_on).map(|parent| self.whole(parent.id()))
    }

    fn children(self) -> impl Iterator<Item = Self> + 'a {
        let mut next = if self.is_whole() { self.node().first_child() } else { None };
        iter::from_fn(move || {
            let child = next?;
            next = child.next_sibling();
            self.search.spend(self.search.weight.any).then(|| self.whole(child.id()))
        })
    }

    fn attributes(self) -> impl Iterator<Item = Self> + 'a {
        let count = if self.is_whole() { self.node().attributes().len() } else { 0 };
        self.parts(count, Part::Attribute)
    }

    fn namespaces(self) -> impl Iterator<Item = Self> + 'a {
        let count = if self.is_whole() { self.node().namespaces().len() } else { 0 };
        self.parts(count, Part::Namespace)
    }

    fn expanded_name(self) -> Option<ExpandedName> {
        let (namespace, local) = self.name()?;
        let length = local.len() + namespace.map_or(0, str::len);
        self.search.spend_text(length).then(|| ExpandedName {
            namespace_uri: namespace.map(str::to_owned),
            local_name: local.to_owned(),
        })
    }

    fn has_expanded_name(self, namespace_uri: Option<&str>, local_name: &str) -> bool {
        // What has the name is a candidate for the filters behind it.
        namespace_uri.is_none_or(|uri| self.search.spend_text(uri.len()))
            && self.name().is_some_and(|name| name == (namespace_uri, local_name))
            && self.search.spend(self.search.weight.named)
    }

    fn string_value(self) -> String {
        let mut text = String::new();
        if let Some(whole) = self.text() {
            if self.search.spend_text(whole.len()) {
                text.push_str(whole);
            }
            return text;
        }
        for node in self.node().descendants() {
            let piece = if node.is_text() { node.text().unwrap_or_default() } else { "" };
            if !self.search.spend_text(piece.len()) {
                break;
            }
            text.push_str(piece);
        }
        text
    }

    fn document_order(self, other: Self) -> Ordering {
        self.search.spend(1);
        (self.id.get(), self.part).cmp(&(other.id.get(), other.part))
    }

    fn with_string_value<R>(self, f: impl FnOnce(&str) -> R) -> R {
        match self.text() {
            Some(text) if self.search.spend_text(text.len()) => f(text),
            Some(_) => f(""),
            None => f(&self.string_value()),
        }
    }
}
