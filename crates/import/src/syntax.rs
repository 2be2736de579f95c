//! Concrete syntax trees of programs, with bounds: of Python, Java and the like.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Language, Node, ParseOptions, Parser, Tree};

/// Longest program that is read, in bytes.
pub(crate) const LONGEST_PROGRAM: usize = 1 << 20;

/// Longest time that a program is parsed. A megabyte takes less than a second, and one that is made for it
/// hours: a scanner may look for the end of a text at each bracket.
const LONGEST_PARSE: Duration = Duration::from_secs(5);

/// Deepest nesting of a tree that is read: those who read it call themselves for each level.
pub(crate) const DEEPEST_TREE: usize = 250;

/// Deepest nesting of a tree where calls behind each other, which are nested in each other, are read in one
/// go.
pub(crate) const DEEPEST_CHAIN: usize = 20_000;

/// A program that cannot be read: the line, from 1, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Parses a program of this language, whose name messages have.
///
/// # Errors
/// The place of the first mistake in its syntax, or that the program is too long, takes too long to parse, or
/// is nested too deeply.
pub(crate) fn parse(text: &str, language: &Language, name: &str) -> Result<Tree, Refused> {
    parse_within(text, language, name, DEEPEST_TREE)
}

/// Parses a program as [`parse`] does, into a tree that is at most this deep.
#[expect(clippy::disallowed_methods, reason = "a limit of time, as hostile input has no other bound")]
pub(crate) fn parse_within(
    text: &str,
    language: &Language,
    name: &str,
    deepest: usize,
) -> Result<Tree, Refused> {
    let refused = |line: usize, message: String| Refused { line, message };
    if text.len() > LONGEST_PROGRAM {
        return Err(refused(1, format!("it is longer than {} MiB", LONGEST_PROGRAM >> 20)));
    }
    let mut parser = Parser::new();
    parser.set_language(language).map_err(|wrong| refused(1, wrong.to_string()))?;
    let end = Instant::now() + LONGEST_PARSE;
    let mut progress =
        |_: &_| if Instant::now() < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let tree = parser.parse_with_options(
        &mut |at, _| text.as_bytes().get(at..).unwrap_or_default(),
        None,
        Some(options),
    );
    let unread = || refused(1, format!("it takes longer than {} s to read", LONGEST_PARSE.as_secs()));
    let tree = tree.ok_or_else(unread)?;
    check(&tree, text, name, deepest)?;
    Ok(tree)
}

/// Looks for the first mistake in a tree, and for what is nested too deeply.
fn check(tree: &Tree, text: &str, name: &str, deepest: usize) -> Result<(), Refused> {
    let refused = |line: usize, message: String| Refused { line, message };
    let mut cursor = tree.walk();
    let mut depth = 0_usize;
    loop {
        let node = cursor.node();
        if node.is_missing() {
            return Err(refused(line(node), format!("it is not {name}: `{}` is missing", node.kind())));
        }
        if node.is_error() {
            let near = crate::findings::quoted(text_of(node, text).lines().next().unwrap_or_default());
            return Err(refused(line(node), format!("it is not {name}, from `{near}` on")));
        }
        if depth > deepest {
            return Err(refused(line(node), format!("it is nested deeper than {deepest} levels")));
        }
        if cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Ok(());
            }
            depth -= 1;
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

/// The children of a node with two sides, by their fields.
pub(crate) fn sides<'t>(node: Node<'t>) -> Option<(Node<'t>, Node<'t>)> {
    Some((node.child_by_field_name("left")?, node.child_by_field_name("right")?))
}

/// The text of a program, from which nodes are read.
#[derive(Clone, Copy)]
pub(crate) struct Program<'t>(pub(crate) &'t str);

impl Program<'_> {
    /// The text of a node.
    pub(crate) fn text(self, node: Node<'_>) -> String {
        text_of(node, self.0).to_owned()
    }

    /// The text of the child in this field; empty without one.
    pub(crate) fn field(self, node: Node<'_>, name: &str) -> String {
        node.child_by_field_name(name).map(|node| self.text(node)).unwrap_or_default()
    }

    /// The terms of a sum, which is nested to the left: long sums are lists, and not nested deeply.
    pub(crate) fn terms<'n>(self, sum: Node<'n>) -> Vec<Node<'n>> {
        let (mut terms, mut left) = (Vec::new(), sum);
        while left.kind() == sum.kind()
            && self.field(left, "operator") == "+"
            && let Some((next, right)) = sides(left)
        {
            terms.push(right);
            left = next;
        }
        terms.push(left);
        terms.reverse();
        terms
    }
}
