//! The JSON Schema of plan files, and of other documents that are read like them.

use serde_json::{Map, Value, json};

use super::{Document, DocumentFormat};
use crate::DocumentParts;
use crate::settings::paragraphs;

impl Document {
    /// The JSON Schema (2020-12) of plan files: from the types, with the short forms and the keys of these
    /// parts.
    pub fn schema(parts: DocumentParts) -> Value {
        parts.within(|| Self::FORM.schema::<Self>())
    }
}

/// The schema that was generated of the types of a format, with the short forms.
pub(super) fn finished(mut schema: Value, form: &DocumentFormat) -> Value {
    one_or_list(&mut schema);
    for (name, _) in form.short_forms {
        if let Some(long) = schema.pointer_mut(&format!("/$defs/{name}")) {
            allow_short(long);
        }
    }
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), form.title.into());
    }
    schema
}

/// Lets every list be one value alone, and mends descriptions.
fn one_or_list(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(one_or_list);
            if let Some(Value::String(description)) = members.get_mut("description") {
                *description = prose(description);
            }
            if let ("array", Some(items)) = (
                members.get("type").and_then(Value::as_str).unwrap_or_default(),
                members.get("items").cloned(),
            ) {
                members.retain(|name, _| name == "description");
                let list = json!({"type": "array", "items": items, "minItems": 1});
                members.insert("anyOf".to_owned(), json!([items, list]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(one_or_list),
        _ => {}
    }
}

/// A description on one line, in whole sentences: the help of a flag is a line without a full stop, and
/// paragraphs.
fn prose(description: &str) -> String {
    let sentences = paragraphs(description)
        .map(|line| if line.ends_with(['.', ':', ')']) { line } else { format!("{line}.") });
    sentences.collect::<Vec<_>>().join(" ")
}

/// Lets a type be one of its fields alone. The description stays at its front.
fn allow_short(long: &mut Value) {
    let Some(members) = long.as_object_mut() else { return };
    let mut short = Map::new();
    if let Some(description) = members.remove("description") {
        short.insert("description".to_owned(), description);
    }
    let scalar = json!({"type": ["string", "number", "boolean"]});
    short.insert("anyOf".to_owned(), json!([scalar, Value::Object(std::mem::take(members))]));
    *members = short;
}
