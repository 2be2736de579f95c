//! XML that others wrote, parsed within bounds.
#![forbid(unsafe_code)]

use std::fmt;
use std::ops::ControlFlow;

use memchr::memmem::find;
use roxmltree::{Document, ParsingOptions};

/// Bounds on a document that is parsed.
///
/// The parser recurses with the levels of elements, compares all attributes of an element with each other,
/// copies the namespaces in scope for each element that declares one, and joins texts by copying. So the tags
/// are looked over before it starts, in one pass without memory of their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XmlBounds {
    /// Elements, attributes, texts, comments and processing instructions.
    pub values: usize,
    /// Attributes of one element, declarations of namespaces included.
    pub attributes: usize,
    /// Elements within each other.
    pub levels: usize,
    /// Steps of some 100 ns that the parser takes, as far as the tags tell.
    pub steps: u64,
    /// `true` if a document type may be named. One with declarations of its own is never read.
    pub doctype: bool,
}

/// Reason why a document is not parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmlFault {
    /// The text is not well-formed, or its document type has declarations of its own.
    NotXml,
    /// A document type is declared, and must not be.
    Doctype,
    /// More than [`XmlBounds::values`].
    Values,
    /// More than [`XmlBounds::attributes`].
    Attributes,
    /// More than [`XmlBounds::levels`].
    Levels,
    /// More than [`XmlBounds::steps`].
    Steps,
}

/// A document that is not parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XmlError {
    /// The reason.
    pub fault: XmlFault,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for XmlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotXml => "this is not XML",
            Self::Doctype => "a declaration of a document type is not read",
            Self::Values => "there are too many elements, attributes and texts",
            Self::Attributes => "there are too many attributes",
            Self::Levels => "it is nested too deeply",
            Self::Steps => "it takes too long to parse",
        })
    }
}

impl XmlBounds {
    /// Parses a document, and returns it with the [steps](Self::steps) that this took.
    ///
    /// # Errors
    /// The first bound that it exceeds, or where it is malformed.
    pub fn parse<'t>(&self, text: &'t str) -> Result<(Document<'t>, u64), XmlError> {
        let line_at = |at: usize| 1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count();
        let mut survey = Survey::new(self, text.as_bytes());
        if let ControlFlow::Break(fault) = survey.run() {
            return Err(XmlError { fault, line: line_at(survey.at) });
        }
        let options = ParsingOptions { allow_dtd: self.doctype, nodes_limit: self.values as u32 + 2 };
        match Document::parse_with_options(text, options) {
            Ok(document) => Ok((document, survey.steps)),
            Err(error) => Err(match error {
                roxmltree::Error::NodesLimitReached => XmlError { fault: XmlFault::Values, line: 1 },
                // These two have no position.
                roxmltree::Error::UnexpectedEndOfStream | roxmltree::Error::UnclosedRootNode => {
                    XmlError { fault: XmlFault::NotXml, line: line_at(text.len()) }
                }
                error => XmlError { fault: XmlFault::NotXml, line: error.pos().row as usize },
            }),
        }
    }
}

/// A look over the tags of a document. Where it is malformed the look ends, as the parser will.
struct Survey<'t> {
    bounds: &'t XmlBounds,
    text: &'t [u8],
    at: usize,
    values: usize,
    steps: u64,
    /// For each open element, the declarations of namespaces in scope.
    scopes: Vec<u32>,
    /// Bytes of the text that the next piece of text is joined with.
    joined: usize,
}

/// What is said about one tag.
#[derive(Default)]
struct Tag {
    attributes: usize,
    declarations: u32,
    prefixed: u64,
    name_bytes: u64,
    ends_itself: bool,
}

impl<'t> Survey<'t> {
    fn new(bounds: &'t XmlBounds, text: &'t [u8]) -> Self {
        Self { bounds, text, at: 0, values: 0, steps: 0, scopes: Vec::new(), joined: 0 }
    }

    fn run(&mut self) -> ControlFlow<XmlFault> {
        // The parser reserves room for as many nodes and attributes.
        for byte in [b'<', b'='] {
            if memchr::memchr_iter(byte, self.text).nth(self.bounds.values.saturating_mul(4)).is_some() {
                return ControlFlow::Break(XmlFault::Values);
            }
        }
        while let Some(length) = memchr::memchr(b'<', &self.text[self.at..]) {
            self.text(length)?;
            self.at += length;
            let rest = &self.text[self.at..];
            let length = if rest.starts_with(b"<!--") {
                self.value()?;
                self.joined = 0;
                find(&rest[4..], b"-->").map(|end| end + 7)
            } else if rest.starts_with(b"<![CDATA[") {
                let end = find(rest, b"]]>");
                self.text(end.unwrap_or_default())?;
                end.map(|end| end + 3)
            } else if rest.starts_with(b"<?") {
                self.value()?;
                self.joined = 0;
                find(rest, b"?>").map(|end| end + 2)
            } else if rest.starts_with(b"<!") {
                if !self.bounds.doctype {
                    return ControlFlow::Break(XmlFault::Doctype);
                }
                self.doctype()?
            } else if rest.starts_with(b"</") {
                self.scopes.pop();
                self.joined = 0;
                memchr::memchr(b'>', rest).map(|end| end + 1)
            } else {
                self.joined = 0;
                self.element()?
            };
            let Some(length) = length else { return ControlFlow::Continue(()) };
            self.spend(length as u64 / 12)?;
            self.at += length;
        }
        ControlFlow::Continue(())
    }

    fn spend(&mut self, steps: u64) -> ControlFlow<XmlFault> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.bounds.steps {
            ControlFlow::Break(XmlFault::Steps)
        } else {
            ControlFlow::Continue(())
        }
    }

    fn value(&mut self) -> ControlFlow<XmlFault> {
        self.values += 1;
        if self.values > self.bounds.values {
            return ControlFlow::Break(XmlFault::Values);
        }
        self.spend(1)
    }

    /// A piece of text, which is copied together with the one in front of it.
    fn text(&mut self, length: usize) -> ControlFlow<XmlFault> {
        if length == 0 {
            return ControlFlow::Continue(());
        }
        self.value()?;
        let copied = if self.joined > 0 { (self.joined + length) as u64 / 512 } else { 0 };
        self.joined += length;
        let text = &self.text[self.at..self.at + length];
        // The parser goes through text with references and carriage returns byte by byte.
        let bytes = if memchr::memchr2(b'&', b'\r', text).is_some() { 8 } else { 24 };
        self.spend(copied + length as u64 / bytes)
    }

    /// The length of a declaration of a document type. One with declarations of its own is refused: a few
    /// bytes of an entity stand for any number.
    fn doctype(&self) -> ControlFlow<XmlFault, Option<usize>> {
        let mut quote = None;
        for (at, &byte) in self.text[self.at..].iter().enumerate().skip(1) {
            match (quote, byte) {
                (_, b'[' | b'<') => return ControlFlow::Break(XmlFault::NotXml),
                (None, b'>') => return ControlFlow::Continue(Some(at + 1)),
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(open), byte) if byte == open => quote = None,
                _ => {}
            }
        }
        ControlFlow::Continue(None)
    }

    /// The length of a tag that begins an element.
    fn element(&mut self) -> ControlFlow<XmlFault, Option<usize>> {
        if self.scopes.len() >= self.bounds.levels {
            return ControlFlow::Break(XmlFault::Levels);
        }
        self.value()?;
        let mut tag = Tag::default();
        let length = self.tag(&mut tag)?;
        let scope = u64::from(self.scopes.last().copied().unwrap_or_default());
        let (attributes, name_bytes) = (tag.attributes as u64, tag.name_bytes);
        self.spend(attributes * attributes / 64 + attributes * name_bytes / 1024)?;
        let all = scope + u64::from(tag.declarations);
        if tag.declarations > 0 {
            self.spend(4 * u64::from(tag.declarations) + all * all / 32)?;
        }
        self.spend(tag.prefixed * all * (1 + name_bytes / 64) / 16)?;
        if !tag.ends_itself {
            self.scopes.push(all as u32);
        }
        ControlFlow::Continue(length)
    }

    /// Reads a tag up to its end.
    fn tag(&mut self, tag: &mut Tag) -> ControlFlow<XmlFault, Option<usize>> {
        let rest = &self.text[self.at..];
        let (mut at, mut word) = (1, 1);
        let mut is_first = true;
        while let Some(&byte) = rest.get(at) {
            match byte {
                b'>' => {
                    if is_first {
                        tag.name(&rest[word..at]);
                    }
                    tag.ends_itself = rest[at - 1] == b'/';
                    return ControlFlow::Continue(Some(at + 1));
                }
                b' ' | b'\t' | b'\r' | b'\n' => {
                    if is_first {
                        tag.name(&rest[word..at]);
                        is_first = false;
                    }
                    // A space may be between the name and its `=`.
                    let next = rest[at..].iter().position(|byte| !byte.is_ascii_whitespace());
                    at += next.unwrap_or(1);
                    if rest.get(at) != Some(&b'=') {
                        word = at;
                    }
                    continue;
                }
                b'=' => {
                    let name = rest[word..at].trim_ascii_end();
                    tag.declarations += u32::from(name.starts_with(b"xmlns"));
                    tag.name(name);
                }
                b'"' | b'\'' => {
                    tag.attributes += 1;
                    if tag.attributes > self.bounds.attributes {
                        return ControlFlow::Break(XmlFault::Attributes);
                    }
                    self.value()?;
                    let Some(end) = memchr::memchr(byte, &rest[at + 1..]) else { break };
                    at += end + 1;
                }
                b'<' => break,
                _ => {}
            }
            at += 1;
        }
        ControlFlow::Continue(None)
    }
}

impl Tag {
    /// The name of the element, or of an attribute.
    fn name(&mut self, name: &[u8]) {
        self.name_bytes += name.len() as u64;
        self.prefixed += u64::from(name.contains(&b':'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;

    const BOUNDS: XmlBounds =
        XmlBounds { values: 1_000, attributes: 10, levels: 10, steps: 10_000, doctype: true };

    #[test]
    fn a_fault_has_its_line() {
        let many: String = (0..11).map(|number| format!("\na{number}='1'")).collect();
        for (text, fault, line) in [
            (format!("<a>\n<b{many}/></a>"), XmlFault::Attributes, 2),
            ("<a>\n".repeat(11), XmlFault::Levels, 11),
            ("<a>\n</b>".to_owned(), XmlFault::NotXml, 2),
            ("<a>\n\n".to_owned(), XmlFault::NotXml, 3),
            ("<!DOCTYPE a [\n]><a/>".to_owned(), XmlFault::NotXml, 1),
            (format!("<a>\n{}</a>", "<b/>".repeat(1_000)), XmlFault::Values, 2),
        ] {
            assert_eq!(BOUNDS.parse(&text).unwrap_err(), XmlError { fault, line }, "{text}");
        }
        let error = XmlBounds { doctype: false, ..BOUNDS }.parse("\n<!DOCTYPE a><a/>").unwrap_err();
        assert_eq!(error, XmlError { fault: XmlFault::Doctype, line: 2 });
    }

    proptest! {
        #[test]
        fn nothing_that_the_parser_finds_is_overlooked(
            pieces in proptest::collection::vec(select(vec![
                "<a>", "</a>", "<a b='>'>", "<a b = \"'\" c='/'/>", "<a\t/>", "<a xmlns:p='u' p:b='1'>",
                "<p:a/>", "text", " ", "\n", "'", "\"", ">", "/>", "<!-- <a b='1'> -->", "&lt;", "]]>", "<",
                "<![CDATA[<a b='1'>]]>", "<?p <a> ?>", "<!DOCTYPE a>", "<!DOCTYPE a SYSTEM 'x>y'>",
                "<!DOCTYPE a SYSTEM \"<a b='\">", "=",
            ]), 0..12),
        ) {
            let text = format!("{}</a>", pieces.concat());
            let mut survey = Survey::new(&BOUNDS, text.as_bytes());
            let fault = survey.run();
            let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
            let parsed = Document::parse_with_options(&text, options);
            if let (ControlFlow::Continue(()), Ok(document)) = (fault, parsed) {
                let nodes = document.descendants().skip(1);
                let values: usize = nodes.map(|node| 1 + node.attributes().len()).sum();
                prop_assert!(survey.values >= values, "{} of {values}: {text}", survey.values);
                prop_assert!(survey.scopes.is_empty(), "{text}");
            }
        }
    }
}
