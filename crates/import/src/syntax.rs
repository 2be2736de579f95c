//! Concrete syntax trees of programs, with bounds: of Python, Java and the like.

use tree_sitter::{Language, Node, Parser, Tree};

/// Longest program that is read, in bytes.
pub(crate) const LONGEST_PROGRAM: usize = 1 << 20;

/// Deepest nesting of a tree that is read: those who read it call themselves for each level.
pub(crate) const DEEPEST_TREE: usize = 250;

/// A program that cannot be read: the line, from 1, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Parses a program of this language, whose name messages have.
///
/// # Errors
/// It is too long, nested too deeply, or has a mistake in its syntax: then it is the first one.
pub(crate) fn parse(text: &str, language: &Language, name: &str) -> Result<Tree, Refused> {
    let refused = |line: usize, message: String| Refused { line, message };
    if text.len() > LONGEST_PROGRAM {
        return Err(refused(1, format!("it is longer than {} MiB", LONGEST_PROGRAM >> 20)));
    }
    let mut parser = Parser::new();
    parser.set_language(language).map_err(|wrong| refused(1, wrong.to_string()))?;
    let unread = || refused(1, format!("it is not {name}"));
    let tree = parser.parse(text, None).ok_or_else(unread)?;
    check(&tree, text, name)?;
    Ok(tree)
}

/// Looks for the first mistake, and for nesting that is too deep.
fn check(tree: &Tree, text: &str, name: &str) -> Result<(), Refused> {
    let refused = |node, message| Err(Refused { line: line(node), message });
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_missing() {
            return refused(node, format!("it is not {name}: `{}` is missing", node.kind()));
        }
        if node.is_error() {
            let near = crate::findings::quoted(text_of(node, text).lines().next().unwrap_or_default());
            return refused(node, format!("it is not {name}, from `{near}` on"));
        }
        if cursor.depth() as usize > DEEPEST_TREE {
            return refused(node, format!("it is nested deeper than {DEEPEST_TREE} levels"));
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Ok(());
            }
        }
    }
}

/// The line that a node begins in, from 1.
pub(crate) fn line(node: Node<'_>) -> usize {
    node.start_position().row + 1
}

/// The text of a node.
pub(crate) fn text_of<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    text.get(node.byte_range()).unwrap_or_default()
}

/// The named children of a node, without comments.
pub(crate) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children(&mut node.walk()).filter(|child| !child.is_extra()).collect()
}

/// The children of a node that are in this field.
pub(crate) fn in_field<'t>(node: Node<'t>, field: &str) -> Vec<Node<'t>> {
    node.children_by_field_name(field, &mut node.walk()).filter(|child| !child.is_extra()).collect()
}
