//! JSON Schemas, as pages for people.

use serde_json::Value;

use super::markdown::{MADE, cell};

/// The page of one schema.
pub(super) fn page(title: &str, schema: Value) -> String {
    format!("{MADE}# {title}\n{}", content("", &schema, 2))
}

/// A section of a page of several schemas; `name` sets its links apart from those of the others.
pub(super) fn section(title: &str, name: &str, schema: Value) -> String {
    format!("\n## {title}\n{}", content(name, &schema, 3))
}

fn content(name: &str, schema: &Value, level: usize) -> String {
    let mut text = object(name, schema);
    let parts = schema.get("$defs").and_then(Value::as_object);
    for (part, of_part) in parts.into_iter().flatten() {
        text.push_str(&format!(
            "\n<a id=\"{}\"></a>\n{} {part}\n{}",
            anchor(name, part),
            "#".repeat(level),
            object(name, of_part)
        ));
    }
    text
}

fn anchor(name: &str, part: &str) -> String {
    format!("{name}{}{}", if name.is_empty() { "" } else { "-" }, part.to_lowercase())
}

/// Describes an object: its purpose, and its fields or the values of a choice.
fn object(name: &str, schema: &Value) -> String {
    let mut text = String::new();
    let said = description(schema);
    if !said.is_empty() {
        text.push_str(&format!("\n{said}\n"));
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        text.push_str("\n| field | is | meaning |\n|---|---|---|\n");
        for (field, of_field) in properties {
            let (kind, meaning) = (kind(name, of_field), description(of_field));
            text.push_str(&format!("| `{field}` | {kind} | {meaning} |\n"));
        }
    } else {
        let choices = schema.get("oneOf").or(schema.get("anyOf")).and_then(Value::as_array);
        let choices: Vec<String> = choices
            .into_iter()
            .flatten()
            .map(|choice| match description(choice) {
                said if said.is_empty() => format!("- {}\n", kind(name, choice)),
                said => format!("- {}: {said}\n", kind(name, choice)),
            })
            .collect();
        match choices.is_empty() {
            true => text.push_str(&format!("\nIs {}.\n", kind(name, schema))),
            false => text.push_str(&format!("\nOne of\n\n{}", choices.concat())),
        }
    }
    text
}

fn description(schema: &Value) -> String {
    schema.get("description").and_then(Value::as_str).map(cell).unwrap_or_default()
}

/// Describes the type of a value, with a link to its definition.
fn kind(name: &str, schema: &Value) -> String {
    if let Some(part) = schema.get("$ref").and_then(Value::as_str) {
        let part = part.trim_start_matches("#/$defs/");
        return format!("[{part}](#{})", anchor(name, part));
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return either(values.iter().map(|value| format!("`{value}`")).collect());
    }
    let choices = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(*key)?.as_array());
    if let Some(choices) = choices {
        return either(choices.iter().map(|choice| kind(name, choice)).collect());
    }
    let of = |key: &str| schema.get(key).filter(|value| value.is_object()).map(|value| kind(name, value));
    let one = |word: &str| match word {
        "array" => of("items").map_or_else(|| "list".to_owned(), |items| format!("list of {items}")),
        "object" => of("additionalProperties")
            .map_or_else(|| "object".to_owned(), |values| format!("object with {values} for each key")),
        word => word.to_owned(),
    };
    match schema.get("type") {
        Some(Value::String(word)) => one(word),
        Some(Value::Array(words)) => either(words.iter().filter_map(Value::as_str).map(one).collect()),
        _ => "anything".to_owned(),
    }
}

fn either(mut kinds: Vec<String>) -> String {
    let last = kinds.pop().unwrap_or_default();
    if kinds.is_empty() { last } else { format!("{} or {last}", kinds.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_choices_and_links_are_said() {
        let schema = serde_json::json!({
            "description": "A thing.",
            "properties": {
                "name": {"type": ["string", "null"], "description": "What it is\ncalled."},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
                "by_name": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
            "$defs": {
                "Part": {"oneOf": [{"const": "a", "description": "The first."}, {"const": "b"}]},
            },
        });
        let text = section("Things", "things", schema);
        for expected in [
            "\n## Things\n\nA thing.\n",
            "| `name` | string or null | What it is called. |\n",
            "| `parts` | list of [Part](#things-part) |  |\n",
            "| `by_name` | object with integer for each key |  |\n",
            "<a id=\"things-part\"></a>\n### Part\n\nOne of\n\n- `\"a\"`: The first.\n- `\"b\"`\n",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
    }
}
