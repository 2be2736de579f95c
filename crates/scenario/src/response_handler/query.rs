//! JSONPath and XPath.

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::Value;
use sxd_xpath::{Context, Factory};

use crate::TemplateError;

/// A JSONPath (RFC 9535).
#[derive(Clone, Debug)]
pub(super) struct JsonPath(JpQuery);

impl JsonPath {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        match parse_json_path(text) {
            Ok(query) => Ok(Self(query)),
            Err(_) => Err(TemplateError::new(format!("`{text}` is not a JSONPath"))
                .with_hint("it starts with `$`, as in `$.orders[0].id` (RFC 9535)")),
        }
    }

    /// The first match: a string as it is, other JSON without white space.
    pub(super) fn first<'s>(&self, document: &Value, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]> {
        let matches = js_path_process(&self.0, document).ok()?;
        scratch.clear();
        match matches.first()?.val {
            Value::String(text) => scratch.extend_from_slice(text.as_bytes()),
            other => serde_json::to_writer(&mut *scratch, other).ok()?,
        }
        Some(scratch)
    }
}

/// An XPath (1.0). Its compiled form cannot be shared by threads, so the text is kept.
#[derive(Clone, Debug)]
pub(super) struct XPath(String);

/// Elements within each other, at most: the time that the library takes grows with the square of it.
const DEPTH_MAX: usize = 1_000;

/// Returns `true` if elements seem to be nested deeper than that. Text in comments that looks like tags
/// counts, too.
fn is_too_deep(body: &[u8]) -> bool {
    let mut depth = 0_usize;
    for at in memchr::memchr_iter(b'<', body) {
        let tag = &body[at + 1..];
        match tag.first() {
            Some(b'/') => depth = depth.saturating_sub(1),
            None | Some(b'!' | b'?') => {}
            Some(_) => {
                let end = memchr::memchr(b'>', tag).unwrap_or(0);
                depth += usize::from(!tag[..end].ends_with(b"/"));
            }
        }
        if depth > DEPTH_MAX {
            return true;
        }
    }
    false
}

impl XPath {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        match Factory::new().build(text) {
            Ok(Some(_)) => Ok(Self(text.to_owned())),
            Ok(None) => Err(TemplateError::new("the XPath is empty")),
            Err(error) => Err(TemplateError::new(format!("`{text}` is not an XPath: {error}"))),
        }
    }

    /// The string value of the first match in document order.
    pub(super) fn first<'s>(&self, body: &[u8], scratch: &'s mut Vec<u8>) -> Option<&'s [u8]> {
        if is_too_deep(body) {
            return None;
        }
        let package = sxd_document::parser::parse(std::str::from_utf8(body).ok()?).ok()?;
        let path = Factory::new().build(&self.0).ok()??;
        let document = package.as_document();
        let value = path.evaluate(&Context::new(), document.root()).ok()?;
        let text = match value {
            sxd_xpath::Value::Nodeset(nodes) => nodes.document_order_first()?.string_value(),
            other => other.string(),
        };
        scratch.clear();
        scratch.extend_from_slice(text.as_bytes());
        Some(scratch)
    }
}
