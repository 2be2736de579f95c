//! Values for schemas.

use serde_json::{Map, Value, json};

use super::Api;
use crate::source::below;

/// Deepest nesting of a value that is made up.
const DEEPEST: usize = 8;

/// Most schemas that are examined for one value: schemas that refer to each other could otherwise make
/// values that grow without end.
const MOST_SCHEMAS: usize = 2_000;

/// A value that is being made up.
struct Making<'a> {
    /// Number of schemas that may still be visited.
    left: usize,
    /// The schemas that the value is in: one that refers to itself is not gone into again.
    open: Vec<&'a Value>,
}

impl<'a> Api<'a> {
    /// The value that a schema itself gives: an example, a default, its only value or the first of several.
    pub(super) fn schema_example(&mut self, schema: &'a Value) -> Option<Value> {
        let schema = self.resolve(schema, "")?;
        let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|all| all.first());
        ["example", "default", "const"]
            .into_iter()
            .find_map(|key| schema.get(key))
            .or_else(|| first("examples"))
            .or_else(|| first("enum"))
            .cloned()
    }

    /// A value that fits a schema, at most [`DEEPEST`] deep.
    pub(super) fn made_up(&mut self, schema: &'a Value, at: &str, depth: usize) -> Value {
        self.value(schema, at, depth, &mut Making { left: MOST_SCHEMAS, open: Vec::new() })
    }

    fn value(&mut self, schema: &'a Value, at: &str, depth: usize, making: &mut Making<'a>) -> Value {
        if depth > DEEPEST || making.left == 0 {
            self.findings.note(at, "", format!("a value that is nested deeper than {DEEPEST} is left out"));
            return Value::Null;
        }
        making.left -= 1;
        let Some(schema) = self.resolve(schema, at) else { return Value::Null };
        if making.open.iter().any(|open| std::ptr::eq(*open, schema)) {
            return Value::Null;
        }
        making.open.push(schema);
        let value = self.fresh(schema, at, depth, making);
        making.open.pop();
        value
    }

    /// The value of a schema that is not open yet.
    fn fresh(&mut self, schema: &'a Value, at: &str, depth: usize, making: &mut Making<'a>) -> Value {
        if let Some(value) = self.schema_example(schema) {
            return value;
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return self.all_of(schema, parts, at, depth, making);
        }
        for key in ["oneOf", "anyOf"] {
            let is_null = |one: &&Value| one.get("type").is_none_or(|kind| kind != "null");
            let choices = schema.get(key).and_then(Value::as_array);
            if let Some(first) = choices.and_then(|all| all.iter().find(is_null)) {
                return self.value(first, &below(at, key), depth + 1, making);
            }
        }
        match kind(schema) {
            "object" => Value::Object(self.members(schema, at, depth, making)),
            "array" => match schema.get("items") {
                Some(items) => match self.value(items, &below(at, "items"), depth + 1, making) {
                    Value::Null => json!([]),
                    item => json!([item]),
                },
                None => json!([]),
            },
            "integer" => number(schema, 1.0).as_f64().map_or(json!(1), |n| json!(n.ceil() as i64)),
            "number" => number(schema, 1.5),
            "boolean" => json!(true),
            "null" => Value::Null,
            _ => Value::String(string(schema)),
        }
    }

    /// The members of all parts together.
    fn all_of(
        &mut self,
        schema: &'a Value,
        parts: &'a [Value],
        at: &str,
        depth: usize,
        making: &mut Making<'a>,
    ) -> Value {
        let mut members = self.members(schema, at, depth, making);
        for (index, part) in parts.iter().enumerate() {
            let at = below(&below(at, "allOf"), index);
            match self.value(part, &at, depth + 1, making) {
                Value::Object(more) => members.extend(more),
                Value::Null => {}
                // A part that is not an object is the value itself, and the other parts narrow it down.
                other if members.is_empty() => return other,
                _ => {}
            }
        }
        Value::Object(members)
    }

    fn members(
        &mut self,
        schema: &'a Value,
        at: &str,
        depth: usize,
        making: &mut Making<'a>,
    ) -> Map<String, Value> {
        let mut members = Map::new();
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return members };
        let required = schema.get("required").and_then(Value::as_array);
        for (name, property) in properties {
            let resolved = self.resolve(property, at);
            // The server generates read-only members itself.
            let read_only = resolved.and_then(|one| one.get("readOnly")).is_some_and(|flag| flag == true);
            let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
            // An optional member far down would only make the value longer.
            if read_only || (depth + 1 > DEEPEST && !is_required) || making.left == 0 {
                continue;
            }
            let at = below(&below(at, "properties"), name);
            let value = self.value(property, &at, depth + 1, making);
            if !value.is_null() || is_required {
                members.insert(name.clone(), value);
            }
        }
        members
    }
}

/// The type of a schema; of several, the first that is not `null`.
fn kind(schema: &Value) -> &str {
    let named = match schema.get("type") {
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    };
    match named {
        Some(kind) => kind,
        None if schema.get("properties").is_some() => "object",
        None if schema.get("items").is_some() => "array",
        None => "string",
    }
}

/// `usual`, moved into the bounds of the schema.
fn number(schema: &Value, usual: f64) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let mut number = usual;
    if let Some(least) = bound("minimum") {
        number = number.max(least);
    }
    // A number in OpenAPI 3.1, a flag beside `minimum` in 3.0.
    match schema.get("exclusiveMinimum") {
        Some(Value::Bool(true)) => number = number.max(bound("minimum").unwrap_or(usual) + 1.0),
        Some(Value::Number(least)) => number = number.max(least.as_f64().unwrap_or(usual) + 1.0),
        _ => {}
    }
    if let Some(most) = bound("maximum") {
        number = number.min(most);
    }
    json!(number)
}

/// A text of the format, and as long as the schema wants it.
fn string(schema: &Value) -> String {
    let text = match schema.get("format").and_then(Value::as_str).unwrap_or_default() {
        "uuid" => "123e4567-e89b-42d3-a456-426614174000",
        "date" => "2026-01-01",
        "date-time" => "2026-01-01T00:00:00Z",
        "time" => "00:00:00Z",
        "email" => "user@example.com",
        "hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "url" | "iri" => "https://example.com/",
        "byte" => "dGV4dA==",
        _ => "text",
    };
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    // Long enough for every sensible bound, and short enough for every memory.
    let least = bound("minLength").unwrap_or(0).min(4096);
    let most = bound("maxLength").unwrap_or(usize::MAX).max(least);
    text.chars().chain(std::iter::repeat('x')).take(text.len().max(least).min(most)).collect()
}
