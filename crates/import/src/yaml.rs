//! Sources in YAML, as the same tree as those in JSON.

use std::collections::HashMap;

use plimsoll_document::Problems;
use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Number, Value};

use crate::findings::{Findings, quoted};

/// Deepest nesting of lists and mappings: shallow enough for every stack.
const DEEPEST: usize = 100;

/// Most values that aliases may repeat, all together: aliases of aliases could otherwise be billions.
const MOST_REPEATED: usize = 100_000;

const HINT: &str = "the file has to be YAML 1.2 or JSON";

/// Reads YAML, or JSON, which is a part of it. Keys are texts as they are written.
pub(crate) fn parse(text: &[u8]) -> Result<Value, Problems> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(Findings::fail("", "the file is not UTF-8", HINT));
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => builder.take(event, &span)?,
            Err(error) => {
                let at = place(error.marker().line(), error.marker().col());
                return Err(Findings::fail(&at, error.info(), HINT));
            }
        }
    }
    Ok(builder.root.unwrap_or(Value::Null))
}

fn place(line: usize, column: usize) -> String {
    format!("line {line}, column {}", column + 1)
}

fn fail(span: &Span, message: impl std::fmt::Display) -> Problems {
    Findings::fail(&place(span.start.line(), span.start.col()), message, HINT)
}

/// A list or mapping that is not complete yet, and the number of its anchor.
enum Open {
    List(Vec<Value>, usize),
    Map(Map<String, Value>, Option<String>, usize),
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Value>,
    documents: usize,
    anchors: HashMap<usize, Value>,
    repeated: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Problems> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(fail(span, "there is a second document in the file"));
                }
            }
            Event::SequenceStart(anchor, _) => self.begin(Open::List(Vec::new(), anchor), span)?,
            Event::MappingStart(anchor, _) => self.begin(Open::Map(Map::new(), None, anchor), span)?,
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items, anchor)) => self.value(Value::Array(items), anchor, span)?,
                Some(Open::Map(members, _, anchor)) => self.value(Value::Object(members), anchor, span)?,
                None => {}
            },
            Event::Scalar(text, style, anchor, tag) => {
                if let Some(Open::Map(members, key @ None, _)) = self.open.last_mut() {
                    if members.contains_key(text.as_ref()) {
                        return Err(fail(span, format!("`{}` is given twice", quoted(&text))));
                    }
                    *key = Some(text.into_owned());
                    return Ok(());
                }
                let plain = style == ScalarStyle::Plain && tag.as_deref().is_none_or(|tag| !is_text(tag));
                let value = if plain { scalar(&text) } else { Value::String(text.into_owned()) };
                self.value(value, anchor, span)?;
            }
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned().unwrap_or(Value::Null);
                self.repeated += size(&value);
                if self.repeated > MOST_REPEATED {
                    return Err(fail(span, "aliases repeat more than 100,000 values"));
                }
                self.value(value, 0, span)?;
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn begin(&mut self, open: Open, span: &Span) -> Result<(), Problems> {
        if let Some(Open::Map(_, None, _)) = self.open.last() {
            return Err(fail(span, "a key has to be a text"));
        }
        if self.open.len() >= DEEPEST {
            return Err(fail(span, "it is nested too deeply"));
        }
        self.open.push(open);
        Ok(())
    }

    fn value(&mut self, value: Value, anchor: usize, span: &Span) -> Result<(), Problems> {
        if anchor > 0 {
            self.repeated += size(&value);
            if self.repeated > MOST_REPEATED {
                return Err(fail(span, "anchors keep more than 100,000 values"));
            }
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(items, _)) => items.push(value),
            Some(Open::Map(members, key, _)) => match key.take() {
                Some(key) => {
                    members.insert(key, value);
                }
                None => return Err(fail(span, "a key has to be a text")),
            },
        }
        Ok(())
    }
}

fn is_text(tag: &Tag) -> bool {
    tag.suffix == "str"
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Resolves a plain scalar by the core schema of YAML 1.2 (section 10.3.2).
fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if !is_number {
        return Value::String(text.to_owned());
    }
    if let Ok(number) = text.trim_start_matches('+').parse::<i64>() {
        return number.into();
    }
    match text.parse::<f64>().ok().and_then(Number::from_f64) {
        Some(number) => Value::Number(number),
        None => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source;

    #[test]
    fn yaml_and_json_are_the_same_tree() {
        let expected: Value =
            serde_json::json!({"a": [1, -2, 0.5, true, null, "x"], "200": {"b": "1"}, "e": "", "t": "5"});
        let text = "a: [1, -2, 0.5, true, null, x]\n200: {b: '1'}\ne: ''\nt: !!str 5\n";
        assert_eq!(parse(text.as_bytes()).unwrap(), expected);
        assert_eq!(parse(expected.to_string().as_bytes()).unwrap(), expected);
        assert_eq!(source::json(expected.to_string().as_bytes()).unwrap(), expected);
    }

    #[test]
    fn aliases_repeat_within_bounds() {
        let value = parse(b"a: &x [1, {b: 2}]\nc: *x\n").unwrap();
        assert_eq!(value["c"], value["a"]);
        let mut bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [before.as_str(); 9].join(",")));
        }
        assert!(parse(bomb.as_bytes()).unwrap_err().to_string().contains("100,000 values"));
        let deep = "[".repeat(200);
        assert!(parse(deep.as_bytes()).unwrap_err().to_string().contains("nested too deeply"));
    }

    #[test]
    fn mistakes_have_their_place() {
        for (text, message) in [
            ("a: 1\na: 2\n", "line 2, column 1: `a` is given twice"),
            ("a: 1\n---\nb: 1\n", "line 2, column 1: there is a second document in the file"),
            ("[a]: 1\n", "line 1, column 1: a key has to be a text"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), message, "{text}");
        }
        assert!(parse(b"a: [").unwrap_err().to_string().starts_with("line "));
        assert!(parse(b"\xff").is_err());
    }
}
