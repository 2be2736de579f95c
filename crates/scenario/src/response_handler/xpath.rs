//! XPath (1.0).

mod node;
mod weight;

use std::sync::Arc;

use roxmltree::Document;
use xpath_eval::{EvaluationContext, Expr, Node as _, Value, evaluate, parse};

use self::node::{Search, XmlNode};
use self::weight::Weight;
use super::budget::Budget;
use crate::TemplateError;

/// Characters of an expression, at most.
const LONGEST: usize = 4_096;
/// Brackets within each other, at most, and minus signs in front of each other: the parser calls itself.
const NESTED_MAX: usize = 32;

/// An XPath, compiled.
#[derive(Clone, Debug)]
pub(super) struct XPath {
    expression: Arc<Expr>,
    weight: Weight,
}

impl XPath {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.trim().is_empty() {
            return Err(TemplateError::new("the XPath is empty"));
        }
        let refused = |reason: &str| TemplateError::new(format!("`{text}` is not an XPath: {reason}"));
        if text.len() > LONGEST {
            return Err(TemplateError::new(format!("the XPath has more than {LONGEST} characters")));
        }
        if is_nested_deeply(text) {
            return Err(refused(&format!("it has more than {NESTED_MAX} brackets within each other")));
        }
        let expression = parse(text).map_err(|error| {
            refused(&format!("{} at character {}", error.message, text[..error.position].chars().count() + 1))
        })?;
        let weight = Weight::of(&expression).map_err(|fault| match fault.hint {
            Some(hint) => refused(&fault.reason).with_hint(hint),
            None => refused(&fault.reason),
        })?;
        Ok(Self { expression: Arc::new(expression), weight })
    }

    /// The string value of the first match in document order. Prefixes of names are those that the outermost
    /// element declares.
    pub(super) fn first<'s>(
        &self,
        document: &Document<'_>,
        budget: &Budget,
        scratch: &'s mut Vec<u8>,
    ) -> Option<&'s [u8]> {
        let search = Search { document, budget, weight: self.weight };
        let outermost = document.root_element();
        let namespaces = |prefix: &str| match prefix {
            "xml" => Some(roxmltree::NS_XML_URI.to_owned()),
            _ => outermost.lookup_namespace_uri(Some(prefix)).map(str::to_owned),
        };
        let mut context = EvaluationContext::new(XmlNode::root(&search));
        context.namespaces = Some(&namespaces);
        let value = evaluate(&self.expression, &context).ok()?;
        let text = match value {
            Value::NodeSet(nodes) => {
                nodes.into_iter().min_by(|a, b| a.document_order(*b)).map(XmlNode::string_value)
            }
            other => Some(other.to_xpath_string()),
        };
        if budget.is_spent() {
            return None;
        }
        scratch.clear();
        scratch.extend_from_slice(text?.as_bytes());
        Some(scratch)
    }
}

/// Returns `true` if parsing the text, or dropping what it becomes, may take too much of the stack. Brackets
/// in quotes do not count.
fn is_nested_deeply(text: &str) -> bool {
    let (mut depth, mut signs, mut quote) = (0_usize, 0, None);
    for byte in text.bytes() {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'(' | b'[') => depth += 1,
            (None, b')' | b']') => depth = depth.saturating_sub(1),
            (None, b'-') => signs += 1,
            (None, byte) if !byte.is_ascii_whitespace() => signs = 0,
            (None, _) => {}
        }
        if depth > NESTED_MAX || signs > NESTED_MAX {
            return true;
        }
    }
    false
}
