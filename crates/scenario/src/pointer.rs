//! JSON Pointer (RFC 6901), found in a text without building a tree.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;

use crate::TemplateError;

/// A JSON Pointer, compiled: `/orders/0/id`.
///
/// [`find`](Self::find) reads the text once, from its start to the value, and looks at nothing behind it:
/// text that is not JSON is noticed only where it is in the way. Of members with the same name the first
/// counts. It allocates nothing, and does not recurse.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct JsonPointer {
    tokens: Box<[Token]>,
}

/// One step down.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    /// The name of a member.
    name: Box<[u8]>,
    /// The name as a place in an array, if it is one.
    index: Option<u64>,
}

/// A value as it stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonText<'a>(&'a [u8]);

impl JsonPointer {
    /// Compiles one. The empty pointer is the whole document.
    ///
    /// # Errors
    /// If it is not empty and does not start with `/`, or has a `~` that is neither `~0` nor `~1`.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.is_empty() {
            return Ok(Self { tokens: Box::default() });
        }
        let Some(inner) = text.strip_prefix('/') else {
            return Err(TemplateError::new(format!("`{text}` is not a JSON Pointer"))
                .with_hint(format!("it starts with `/`: write `/{}`", text.replace('.', "/"))));
        };
        let tokens = inner.split('/').map(|token| {
            if token.replace("~0", "").replace("~1", "").contains('~') {
                return Err(TemplateError::new(format!("`~` in the JSON Pointer `{text}` stands alone"))
                    .with_hint("write ~0 for `~`, and ~1 for `/`"));
            }
            let name = token.replace("~1", "/").replace("~0", "~");
            // Section 4: no leading zeros.
            let is_index =
                name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
            let index = if is_index { name.parse().ok() } else { None };
            Ok(Token { name: name.into_bytes().into(), index })
        });
        Ok(Self { tokens: tokens.collect::<Result<_, _>>()? })
    }

    /// The value that it points at.
    pub fn find<'a>(&self, json: &'a [u8]) -> Option<JsonText<'a>> {
        let mut scanner = Scanner { text: json, at: 0 };
        scanner.skip_space();
        for token in &self.tokens {
            match scanner.next()? {
                b'{' => scanner.enter_member(&token.name)?,
                b'[' => scanner.enter_element(token.index?)?,
                _ => return None,
            }
        }
        scanner.value()
    }
}

impl fmt::Debug for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JsonPointer(")?;
        for token in &self.tokens {
            write!(f, "/{}", token.name.escape_ascii())?;
        }
        f.write_str(")")
    }
}

impl<'a> JsonText<'a> {
    /// The value as it stands there: a string with its quotes and escapes.
    pub fn raw(self) -> &'a [u8] {
        self.0
    }

    /// The inside of a string without its escapes, or another value as it stands there. `None` for a string
    /// with illegal escapes. Overwrites `scratch`, but only if there are escapes.
    pub fn text<'s>(self, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        match self.inside() {
            None => Some(self.0),
            Some(inside) if memchr::memchr(b'\\', inside).is_none() => Some(inside),
            Some(inside) => {
                scratch.clear();
                unescape(inside, |bytes| {
                    scratch.extend_from_slice(bytes);
                    true
                })
                .then_some(scratch.as_slice())
            }
        }
    }

    /// Passes the elements of an array to `element` in turn, as long as it returns `true`. `None` if it is
    /// not an array, or is malformed up to where it was read.
    pub fn each_element(self, mut element: impl FnMut(JsonText<'a>) -> bool) -> Option<()> {
        let mut scanner = Scanner { text: self.0, at: 0 };
        if !scanner.enters(b'[', b']')? {
            return Some(());
        }
        loop {
            if !element(scanner.value()?) {
                return Some(());
            }
            if scanner.ends(b']')? {
                return Some(());
            }
        }
    }

    /// Passes the members of an object in turn: the name, as it stands between its quotes, and the value.
    /// `None` if it is not an object, or is malformed; members in front of the mistake were given.
    pub fn each_member(self, mut member: impl FnMut(&'a [u8], JsonText<'a>)) -> Option<()> {
        let mut scanner = Scanner { text: self.0, at: 0 };
        if !scanner.enters(b'{', b'}')? {
            return Some(());
        }
        loop {
            let name = scanner.string()?;
            scanner.skip_space();
            if scanner.next()? != b':' {
                return None;
            }
            scanner.skip_space();
            member(name, scanner.value()?);
            if scanner.ends(b'}')? {
                return Some(());
            }
        }
    }

    /// Returns the bytes between the quotes of a string.
    fn inside(self) -> Option<&'a [u8]> {
        self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")
    }

    /// Returns what [`text`](Self::text) does without a scratch buffer, for where speed does not matter.
    pub fn to_text(self) -> Option<Cow<'a, [u8]>> {
        let mut scratch = Vec::new();
        let text = self.text(&mut scratch)?;
        Some(match text == self.0 {
            true => Cow::Borrowed(self.0),
            false => Cow::Owned(text.to_vec()),
        })
    }
}

/// A place in a text.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Into a container: whether there is something in it.
    fn enters(&mut self, open: u8, close: u8) -> Option<bool> {
        if self.next()? != open {
            return None;
        }
        self.skip_space();
        Some(self.peek()? != close)
    }

    /// Behind a value of a container: whether that was the last one. Else the next one begins here.
    fn ends(&mut self, close: u8) -> Option<bool> {
        self.skip_space();
        let byte = self.next()?;
        self.skip_space();
        match byte {
            b',' => Some(false),
            byte => (byte == close).then_some(true),
        }
    }

    /// The value that begins here.
    fn value(&mut self) -> Option<JsonText<'a>> {
        let start = self.at;
        self.skip_value()?;
        Some(JsonText(&self.text[start..self.at]))
    }

    /// From behind a `{` to the value of the first member of this name.
    fn enter_member(&mut self, name: &[u8]) -> Option<()> {
        loop {
            self.skip_space();
            let key = self.string()?;
            self.skip_space();
            if self.next()? != b':' {
                return None;
            }
            self.skip_space();
            if is_name(key, name) {
                return Some(());
            }
            self.next_item()?;
        }
    }

    /// From behind a `[` to the value at this place.
    fn enter_element(&mut self, index: u64) -> Option<()> {
        self.skip_space();
        for _ in 0..index {
            self.next_item()?;
            self.skip_space();
        }
        // The end of an array is not a value, and is refused there.
        Some(())
    }

    /// Over a value and the comma behind it.
    fn next_item(&mut self) -> Option<()> {
        self.skip_value()?;
        self.skip_space();
        (self.next()? == b',').then_some(())
    }

    /// A string: the text between its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        if self.next()? != b'"' {
            return None;
        }
        let start = self.at;
        loop {
            self.at += memchr2(b'"', b'\\', &self.text[self.at..])?;
            if self.text[self.at] == b'"' {
                self.at += 1;
                return Some(&self.text[start..self.at - 1]);
            }
            // The escaped character never ends the string.
            self.at += 2;
            if self.at > self.text.len() {
                return None;
            }
        }
    }

    fn skip_value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(|_| ()),
            b'{' | b'[' => self.skip_container(),
            _ => self.skip_scalar(),
        }
    }

    /// Brackets are counted regardless of their kind: in JSON they match.
    fn skip_container(&mut self) -> Option<()> {
        let mut depth = 0_u64;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// A number, `true`, `false` or `null`.
    fn skip_scalar(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        let scalar = &rest[..rest.iter().position(is_end).unwrap_or(rest.len())];
        let is_number = || {
            let digits = scalar.strip_prefix(b"-").unwrap_or(scalar);
            digits.first().is_some_and(u8::is_ascii_digit)
                && digits.iter().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte))
        };
        if !matches!(scalar, b"true" | b"false" | b"null") && !is_number() {
            return None;
        }
        self.at += scalar.len();
        Some(())
    }
}

/// Returns `true` if a key, given without its quotes, is this name.
fn is_name(key: &[u8], name: &[u8]) -> bool {
    if memchr::memchr(b'\\', key).is_none() {
        return key == name;
    }
    let mut rest = name;
    let same = unescape(key, |bytes| match rest.strip_prefix(bytes) {
        Some(after) => {
            rest = after;
            true
        }
        None => false,
    });
    same && rest.is_empty()
}

/// Passes the pieces of a string's inside without its escapes (RFC 8259 section 7) to `piece`, as long as
/// that is true. False if it was not, or if an escape is illegal.
fn unescape(mut inside: &[u8], mut piece: impl FnMut(&[u8]) -> bool) -> bool {
    while let Some(at) = memchr::memchr(b'\\', inside) {
        if !piece(&inside[..at]) {
            return false;
        }
        let Some((&letter, after)) = inside[at + 1..].split_first() else { return false };
        inside = after;
        let byte = match letter {
            b'"' | b'\\' | b'/' => letter,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let Some((character, after)) = unicode(inside) else { return false };
                inside = after;
                if !piece(character.encode_utf8(&mut [0; 4]).as_bytes()) {
                    return false;
                }
                continue;
            }
            _ => return false,
        };
        if !piece(&[byte]) {
            return false;
        }
    }
    piece(inside)
}

/// The character behind a `\u`, which may be two halves, and the rest.
fn unicode(text: &[u8]) -> Option<(char, &[u8])> {
    let (high, rest) = hex4(text)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Some((char::from_u32(high)?, rest));
    }
    let (low, rest) = hex4(rest.strip_prefix(b"\\u")?)?;
    if !(0xdc00..0xe000).contains(&low) {
        return None;
    }
    Some((char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))?, rest))
}

fn hex4(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let digit = |value: u32, &byte: &u8| Some(value << 4 | char::from(byte).to_digit(16)?);
    Some((digits.iter().try_fold(0, digit)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn found(pointer: &str, json: &str) -> Option<String> {
        let value = JsonPointer::parse(pointer).unwrap().find(json.as_bytes())?;
        let text = value.to_text()?;
        Some(String::from_utf8(text.into_owned()).unwrap())
    }

    #[test]
    fn parts_come_in_turn() {
        let whole = JsonPointer::default();
        let elements = |json: &str| {
            let mut all = Vec::new();
            let end = whole.find(json.as_bytes())?.each_element(|element| {
                all.push(String::from_utf8_lossy(element.raw()).into_owned());
                true
            });
            end.map(|()| all)
        };
        assert_eq!(elements(" [ 1 , {\"a\":[2,3]}, \"x,]\" ]").unwrap(), ["1", "{\"a\":[2,3]}", "\"x,]\""]);
        assert_eq!(elements("[ ]"), Some(Vec::new()));
        for wrong in ["{}", "3", "[1 2]", "[1,]"] {
            assert_eq!(elements(wrong), None, "{wrong}");
        }
        let mut parts = Vec::new();
        let object = whole.find(br#"{ "a" : 1 ,"b":{"c":2}}"#).unwrap();
        object.each_member(|name, value| parts.push((name.to_vec(), value.raw().to_vec()))).unwrap();
        assert_eq!(parts, [(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"{\"c\":2}".to_vec())]);
        assert_eq!(whole.find(b"[1]").unwrap().each_member(|_, _| {}), None);
    }

    #[test]
    fn the_examples_of_rfc_6901_section_5() {
        let json = r#"{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5,
            "k\"l": 6, " ": 7, "m~n": 8}"#;
        for (pointer, value) in [
            ("", json),
            ("/foo", r#"["bar", "baz"]"#),
            ("/foo/0", "bar"),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(found(pointer, json).as_deref(), Some(value), "{pointer:?}");
        }
    }

    #[test]
    fn values_of_every_kind_deep_inside() {
        let json = r#" { "a" : [ { "skip" : "}]\"{[" , "x\u0041\ud83d\ude00": -1.5e+3 } , true, null ,
            [ ], { } , "tab\there\/" ] , "a~": {"0": "first"}, "10": false } "#;
        for (pointer, value) in [
            ("/a/0/xA😀", Some("-1.5e+3")),
            ("/a/0/skip", Some("}]\"{[")),
            ("/a/1", Some("true")),
            ("/a/2", Some("null")),
            ("/a/3", Some("[ ]")),
            ("/a/4", Some("{ }")),
            ("/a/5", Some("tab\there/")),
            ("/a~0/0", Some("first")),
            ("/10", Some("false")),
            ("/a/6", None),
            ("/a/3/0", None),
            ("/a/4/x", None),
            ("/a/00", None),
            ("/a/01", None),
            ("/a/-", None),
            ("/a/-1", None),
            ("/a/99999999999999999999", None),
            ("/a/1/x", None),
            ("/b", None),
            ("/10/0", None),
        ] {
            assert_eq!(found(pointer, json).as_deref(), value, "{pointer:?}");
        }
    }

    #[test]
    fn what_is_no_json_has_no_value_where_it_is_in_the_way() {
        for (pointer, json) in [
            ("", ""),
            ("", " "),
            ("", "nul"),
            ("", "+1"),
            ("", "-"),
            ("", "\"open"),
            ("", "\"open\\"),
            ("", "\"bad \\x escape\""),
            ("", "\"\\ud800\""),
            ("", "\"\\ud800\\u0041\""),
            ("", "\"\\udc00\""),
            ("", "\"\\u12\""),
            ("", "[1"),
            ("", "]"),
            ("/a", "{\"a\"}"),
            ("/a", "{\"a\" 1}"),
            ("/a", "{a: 1}"),
            ("/a", "{\"a\":}"),
            ("/b", "{\"a\": 1 \"b\": 2}"),
            ("/1", "[1 2]"),
            ("/1", "[1,]"),
            ("/0", "[]"),
            ("/a", "<html>"),
        ] {
            assert_eq!(found(pointer, json), None, "{pointer:?} in {json:?}");
        }
        assert_eq!(found("/a", "{\"a\": 1, broken").as_deref(), Some("1"), "nothing behind it is read");
    }

    #[test]
    fn malformed_pointers_have_advice() {
        let error = JsonPointer::parse("a.b").unwrap_err();
        assert_eq!(error.message(), "`a.b` is not a JSON Pointer");
        assert_eq!(error.hint(), Some("it starts with `/`: write `/a/b`"));
        for text in ["/a~", "/~2", "/~~0", "a"] {
            assert!(JsonPointer::parse(text).is_err(), "{text}");
        }
        assert!(JsonPointer::parse("/~01/~10").is_ok());
    }

    fn json() -> impl Strategy<Value = Value> {
        let text = "[a-c/~\"\\\\\u{e4}\u{1f600}\n\u{1}0-2]{0,4}";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(text, inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Every pointer into a value, and some that lead nowhere.
    fn pointers(value: &Value, at: String, all: &mut Vec<String>) {
        all.extend([format!("{at}/nowhere"), format!("{at}/7"), format!("{at}/-"), format!("{at}/00")]);
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointers(item, format!("{at}/{index}"), all);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    pointers(member, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), all);
                }
            }
            _ => {}
        }
        all.push(at);
    }

    /// Returns the value as JSON with every character of its strings escaped.
    fn escaped(value: &Value) -> String {
        let string = |text: &str| {
            let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            format!("\"{units}\"")
        };
        match value {
            Value::String(text) => string(text),
            Value::Array(items) => {
                format!("[ {} ]", items.iter().map(escaped).collect::<Vec<_>>().join(" ,\n"))
            }
            Value::Object(members) => {
                let member =
                    |(name, value): (&String, &Value)| format!("{}\t: {}", string(name), escaped(value));
                format!("{{{}\r\n}}", members.iter().map(member).collect::<Vec<_>>().join(" , "))
            }
            other => other.to_string(),
        }
    }

    proptest! {
        #[test]
        fn it_finds_what_serde_json_finds(value in json(), spread in any::<bool>()) {
            let text = if spread { escaped(&value) } else { value.to_string() };
            let mut all = Vec::new();
            pointers(&value, String::new(), &mut all);
            for pointer in all {
                let found = JsonPointer::parse(&pointer).unwrap().find(text.as_bytes());
                let raw = found.map(|found| serde_json::from_slice::<Value>(found.raw()).unwrap());
                prop_assert_eq!(raw.as_ref(), value.pointer(&pointer), "{} in {}", pointer, text);
                if let Some(Value::String(string)) = value.pointer(&pointer) {
                    let unescaped = found.and_then(JsonText::to_text);
                    prop_assert_eq!(unescaped.as_deref(), Some(string.as_bytes()), "{} in {}", pointer, text);
                }
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(
            value in json(), cut in any::<proptest::sample::Index>(), byte in any::<u8>(),
        ) {
            let mut text = value.to_string().into_bytes();
            let at = cut.index(text.len());
            text[at] = byte;
            for pointer in ["", "/0", "/a", "/0/a", "/a/0/1", "/b/c"] {
                let pointer = JsonPointer::parse(pointer).unwrap();
                for text in [&text[..], &text[..at]] {
                    let _ = pointer.find(text).and_then(JsonText::to_text);
                }
            }
        }
    }
}
