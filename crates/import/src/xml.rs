//! Sources in XML, as elements with their lines.

use plimsoll_plan::Problems;
use sxd_document::dom::{ChildOfElement, ChildOfRoot};

use crate::findings::Findings;

/// Deepest nesting of elements: shallow enough for every stack.
const DEEPEST: usize = 128;

/// Most elements: as many as some hundred thousand requests have.
const MOST_ELEMENTS: usize = 2_000_000;

const HINT: &str = "the file has to be XML 1.0 in UTF-8";

/// An element.
#[derive(Clone, Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    /// The text in it, without that of elements within it.
    pub(crate) text: String,
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    pub(crate) children: Vec<Element>,
}

impl Element {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first child of this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }
}

/// Reads a document, and returns its outermost element.
pub(crate) fn parse(text: &[u8]) -> Result<Element, Problems> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(Findings::fail("", "the file is not UTF-8", HINT));
    };
    // The parser looks for namespaces in all elements around one, so that depth has to be examined before.
    let lines = lines(text)?;
    let package = sxd_document::parser::parse(text).map_err(|error| {
        let line =
            text.as_bytes()[..error.location().min(text.len())].iter().filter(|b| **b == b'\n').count();
        Findings::fail(&format!("line {}", line + 1), "this is not XML", HINT)
    })?;
    let document = package.as_document();
    let root = document.root().children().into_iter().find_map(|child| match child {
        ChildOfRoot::Element(element) => Some(element),
        _ => None,
    });
    let Some(root) = root else { return Err(Findings::fail("", "there is no element", HINT)) };
    let mut lines = lines.into_iter();
    Ok(element(root, &mut lines))
}

/// An element with all that is in it. Calls itself at most as often as elements are nested.
fn element(from: sxd_document::dom::Element<'_>, lines: &mut impl Iterator<Item = usize>) -> Element {
    let mut made = Element {
        name: from.name().local_part().to_owned(),
        line: lines.next().unwrap_or_default(),
        ..Element::default()
    };
    for attribute in from.attributes() {
        made.attributes.push((attribute.name().local_part().to_owned(), attribute.value().to_owned()));
    }
    for child in from.children() {
        match child {
            ChildOfElement::Element(inner) => made.children.push(element(inner, lines)),
            ChildOfElement::Text(text) => made.text.push_str(text.text()),
            ChildOfElement::Comment(_) | ChildOfElement::ProcessingInstruction(_) => {}
        }
    }
    made
}

/// The lines on which elements begin, in the order of the file.
fn lines(text: &str) -> Result<Vec<usize>, Problems> {
    let mut lines = Vec::new();
    let (mut depth, mut line) = (0_usize, 1_usize);
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        line += rest[..at].matches('\n').count();
        rest = &rest[at..];
        let length = if let Some(comment) = rest.strip_prefix("<!--") {
            comment.find("-->").map(|end| end + "<!---->".len())
        } else if rest.starts_with("<![CDATA[") {
            rest.find("]]>").map(|end| end + 3)
        } else if rest.starts_with("<?") {
            rest.find("?>").map(|end| end + 2)
        } else if rest.starts_with("<!") {
            let message = "a declaration of a document type is not read";
            return Err(Findings::fail(&format!("line {line}"), message, HINT));
        } else if rest.starts_with("</") {
            depth = depth.saturating_sub(1);
            rest.find('>').map(|end| end + 1)
        } else {
            lines.push(line);
            if lines.len() > MOST_ELEMENTS {
                return Err(Findings::fail(&format!("line {line}"), "there are too many elements", HINT));
            }
            let end = tag_end(rest);
            if end.is_some_and(|end| !rest[..end].ends_with("/>")) {
                depth += 1;
            }
            if depth > DEEPEST {
                return Err(Findings::fail(&format!("line {line}"), "it is nested too deeply", HINT));
            }
            end
        };
        // The parser reports input that is cut off.
        let Some(length) = length else { break };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    Ok(lines)
}

/// Bytes of the tag that `text` begins with. A `>` in quotes does not end it.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return Some(at + 1),
            (Some(open), byte) if byte == open => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_their_lines_texts_and_attributes() {
        let text = "\u{feff}<?xml version=\"1.0\"?>\n<!-- <a> -->\n<r>\n<a b='1 > 2' \
                    c=\"&lt;&#65;\">x<![CDATA[<y>\n]]>\
                    <d/></a>\n<e>z</e></r>";
        let root = parse(text.as_bytes()).unwrap();
        assert_eq!((root.name.as_str(), root.line, root.children.len()), ("r", 3, 2));
        let [a, e] = root.children.as_slice() else { panic!("two children") };
        assert_eq!((a.line, a.attribute("b"), a.attribute("c")), (4, Some("1 > 2"), Some("<A")));
        assert_eq!((a.text.as_str(), a.child("d").unwrap().line), ("x<y>\n", 5));
        assert_eq!((e.line, e.text.as_str()), (6, "z"));
    }

    #[test]
    fn hostile_documents_are_refused() {
        for (text, message) in [
            ("", "this is not XML"),
            ("<a>", "this is not XML"),
            ("<a></b>", "this is not XML"),
            ("<a b=1/>", "this is not XML"),
            ("<a>&unknown;</a>", "this is not XML"),
            ("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "a declaration of a document type is not read"),
            (&"<a>".repeat(200), "it is nested too deeply"),
            (&"<a b=\"\n".repeat(3), "this is not XML"),
        ] {
            let problems = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(problems.contains(message), "{text}: {problems}");
        }
        assert!(parse(b"\xff").is_err());
        let wide = format!("<a>{}</a>", "<b/>".repeat(10_000));
        assert_eq!(parse(wide.as_bytes()).unwrap().children.len(), 10_000);
    }
}
