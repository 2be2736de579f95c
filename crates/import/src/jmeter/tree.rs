//! The tree of a test plan: each element is followed by a `hashTree` with its children.

use crate::findings::quoted;
use crate::xml::Element;

/// An element with its children.
#[derive(Debug)]
pub(super) struct Node<'e> {
    pub(super) element: &'e Element,
    /// The names of the elements around it and its own.
    path: String,
    pub(super) enabled: bool,
    pub(super) below: Vec<Node<'e>>,
}

/// The elements of a `hashTree`.
pub(super) fn nodes<'e>(tree: Option<&'e Element>, path: &str) -> Vec<Node<'e>> {
    let mut nodes = Vec::new();
    let children = tree.map_or(&[][..], |tree| tree.children.as_slice());
    for (index, element) in children.iter().enumerate() {
        if element.name == "hashTree" {
            continue;
        }
        let name = element.attribute("testname").map(str::trim).filter(|name| !name.is_empty());
        let name = quoted(name.unwrap_or(&element.name));
        let path = if path.is_empty() { name } else { format!("{path} > {name}") };
        let below = children.get(index + 1).filter(|next| next.name == "hashTree");
        let below = nodes_below(below, &path);
        let enabled = element.attribute("enabled") != Some("false");
        nodes.push(Node { element, path, enabled, below });
    }
    nodes
}

fn nodes_below<'e>(tree: Option<&'e Element>, path: &str) -> Vec<Node<'e>> {
    if tree.is_some() { nodes(tree, path) } else { Vec::new() }
}

impl<'e> Node<'e> {
    /// The name of its class, or of the element.
    pub(super) fn kind(&self) -> &'e str {
        let name = self.element.attribute("testclass").unwrap_or(&self.element.name);
        name.rsplit('.').next().unwrap_or(name)
    }

    /// Returns the name of the element in the test plan.
    pub(super) fn name(&self) -> &'e str {
        self.element.attribute("testname").unwrap_or_default()
    }

    /// Returns the place of the element: the names around it, and its line.
    pub(super) fn at(&self) -> String {
        format!("{} (line {})", self.path, self.element.line)
    }

    /// The value of a property.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        value(self.element, name)
    }

    /// The value of a property, unless it is empty.
    pub(super) fn filled(&self, name: &str) -> Option<String> {
        self.value(name).filter(|value| !value.trim().is_empty())
    }

    /// Returns `true` if the property is `true`.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value.trim() == "true")
    }

    /// An element or a collection that is a property.
    pub(super) fn inner(&self, name: &str) -> Option<&'e Element> {
        inner(self.element, name)
    }
}

/// The value of a property of `element`.
pub(super) fn value(element: &Element, name: &str) -> Option<String> {
    for child in &element.children {
        if child.attribute("name") == Some(name)
            && !["elementProp", "collectionProp"].contains(&child.name.as_str())
        {
            return Some(child.text.clone());
        }
        // Beans write numbers with name and value as elements.
        if child.child("name").is_some_and(|inner| inner.text.trim() == name) {
            return child.child("value").map(|value| value.text.clone());
        }
    }
    None
}

/// An element or a collection that is a property of `element`.
pub(super) fn inner<'e>(element: &'e Element, name: &str) -> Option<&'e Element> {
    element.children.iter().find(|child| child.attribute("name") == Some(name))
}

/// The elements of a collection that is a property of `element`.
pub(super) fn items<'e>(element: &'e Element, name: &str) -> &'e [Element] {
    inner(element, name).map_or(&[], |collection| collection.children.as_slice())
}
