//! Sources in XML, as elements with their lines.

use plimsoll_document::Problems;
use plimsoll_xml::XmlBounds;
use roxmltree::NodeType;

use crate::findings::Findings;

/// Deepest nesting of elements: shallow enough for every stack.
const DEEPEST: usize = 128;

/// Most elements, attributes and texts: as many as some hundred thousand requests have.
const MOST_VALUES: usize = 4_000_000;

/// Most attributes of one element. Test plans have a dozen.
const MOST_ATTRIBUTES: usize = 1_000;

/// Most steps of the parser: some ten seconds.
const MOST_PARSER_STEPS: u64 = 400_000_000;

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
    let bounds = XmlBounds {
        values: MOST_VALUES,
        attributes: MOST_ATTRIBUTES,
        levels: DEEPEST,
        steps: MOST_PARSER_STEPS,
        doctype: false,
    };
    let (document, _) = bounds
        .parse(text)
        .map_err(|error| Findings::fail(&format!("line {}", error.line), error.fault, HINT))?;
    let mut lines = Lines { text: text.as_bytes(), at: 0, line: 1 };
    Ok(element(document.root_element(), &mut lines))
}

/// An element with all that is in it. Calls itself at most as often as elements are nested.
fn element(from: roxmltree::Node<'_, '_>, lines: &mut Lines<'_>) -> Element {
    let attributes = from.attributes().map(|one| (one.name().to_owned(), one.value().to_owned()));
    let mut made = Element {
        name: from.tag_name().name().to_owned(),
        attributes: attributes.collect(),
        line: lines.of(from.range().start),
        ..Element::default()
    };
    for child in from.children() {
        match child.node_type() {
            NodeType::Element => made.children.push(element(child, lines)),
            NodeType::Text => made.text.push_str(child.text().unwrap_or_default()),
            NodeType::Root | NodeType::Comment | NodeType::PI => {}
        }
    }
    made
}

/// Lines of places that are asked for in their order.
struct Lines<'t> {
    text: &'t [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    fn of(&mut self, at: usize) -> usize {
        self.line += self.text[self.at..at].iter().filter(|byte| **byte == b'\n').count();
        self.at = at;
        self.line
    }
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

    fn many_attributes(count: usize) -> String {
        (0..count).map(|number| format!(" a{number}='1'")).collect()
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
            (&format!("<a>\n<b{}/></a>", many_attributes(1_001)), "line 2: there are too many attributes"),
            // Without an end, too.
            (&format!("<a{}", many_attributes(300_000)), "line 1: there are too many attributes"),
        ] {
            let problems = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(problems.contains(message), "{text}: {problems}");
        }
        assert!(parse(b"\xff").is_err());
        let many = format!("<a{}/>", many_attributes(1_000));
        assert_eq!(parse(many.as_bytes()).unwrap().attributes.len(), 1_000);
        let wide = format!("<a>{}</a>", "<b/>".repeat(10_000));
        assert_eq!(parse(wide.as_bytes()).unwrap().children.len(), 10_000);
    }
}
