//! Values in scripts of Postman: extracted, generated or literal.

use std::collections::BTreeMap;

use super::script::{arguments, split, unquoted};
use crate::draft::escaped;
use crate::flow::check::{Place, json_pointer};

/// The meaning of an expression of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A value of the JSON in the response, by its way from the root.
    Json(Vec<String>),
    /// Something else of the response.
    Response(Place),
    /// Response time of the request.
    Time,
    /// A text as it is; numbers and the like as they are written.
    Literal(String),
    /// A slot of a plan, without `${` and `}`.
    Slot(String),
    /// A variable of the collection.
    Variable(String),
    /// A text with slots of the collection.
    Text(String),
    /// One after the other.
    Joined(Vec<Value>),
}

/// Names that a script has given to values of the response.
pub(super) type Aliases = BTreeMap<String, Vec<String>>;

/// The scopes in which Postman keeps variables.
pub(super) const SCOPES: &[&str] =
    &["pm.environment", "pm.collectionVariables", "pm.globals", "pm.variables", "pm.iterationData"];

/// Expressions within expressions, at most: they are read by functions that call themselves.
const DEEPEST: usize = 20;

/// Reads an expression. `None` if it says something that is not known here.
pub(super) fn value(text: &str, aliases: &Aliases) -> Option<Value> {
    within(text, aliases, 0)
}

fn within(text: &str, aliases: &Aliases, depth: usize) -> Option<Value> {
    let text = text.trim().trim_end_matches(';').trim();
    if depth > DEEPEST || text.is_empty() {
        return None;
    }
    if let Some(text) = unquoted(text) {
        return Some(Value::Literal(text));
    }
    if is_number(text) || ["true", "false", "null"].contains(&text) {
        return Some(Value::Literal(text.to_owned()));
    }
    if let Some((inside, "")) = arguments(text) {
        return within(inside, aliases, depth + 1);
    }
    let known = of_response(text)
        .or_else(|| of_json(text, aliases))
        .or_else(|| made_up(text))
        .or_else(|| variable(text));
    if known.is_some() {
        return known;
    }
    for call in ["String", "Number", "parseInt", "parseFloat"] {
        if let Some((inside, "")) = text.strip_prefix(call).and_then(arguments) {
            return within(split(inside, ',').first()?, aliases, depth + 1);
        }
    }
    for end in [".toString()", ".trim()"] {
        if let Some(inside) = text.strip_suffix(end) {
            return within(inside, aliases, depth + 1);
        }
    }
    let parts = split(text, '+');
    if parts.len() > 1 {
        let parts: Option<Vec<Value>> =
            parts.into_iter().map(|part| within(part, aliases, depth + 1)).collect();
        let is_text = |part: &Value| match part {
            Value::Literal(text) => !is_number(text),
            _ => false,
        };
        // Two numbers are added, and not joined.
        return parts.filter(|parts| parts.iter().any(is_text)).map(Value::Joined);
    }
    None
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty()
        && text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

fn of_response(text: &str) -> Option<Value> {
    let place = match text {
        "pm.response.code" | "responseCode.code" => Place::Status,
        "pm.response.text()" | "responseBody" => Place::Body,
        "pm.response.responseTime" | "responseTime" => return Some(Value::Time),
        _ => {
            for (call, place) in [
                ("pm.response.headers.get", Place::Header as fn(String) -> Place),
                ("postman.getResponseHeader", Place::Header),
                ("pm.cookies.get", Place::Cookie),
            ] {
                if let Some((inside, "")) = text.strip_prefix(call).and_then(arguments) {
                    return Some(Value::Response(place(unquoted(inside)?)));
                }
            }
            return None;
        }
    };
    Some(Value::Response(place))
}

fn of_json(text: &str, aliases: &Aliases) -> Option<Value> {
    for root in ["pm.response.json()", "JSON.parse(responseBody)", "JSON.parse(pm.response.text())"] {
        if let Some(rest) = text.strip_prefix(root) {
            return path(rest).map(Value::Json);
        }
    }
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).unwrap_or(text.len());
    let mut from = aliases.get(&text[..end])?.clone();
    from.extend(path(&text[end..])?);
    Some(Value::Json(from))
}

/// `.a["b"][0]`, part by part.
pub(super) fn path(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let optional = rest.strip_prefix("?.");
        let bracket = optional.unwrap_or(rest).strip_prefix('[');
        if let Some(inside) = bracket {
            let end = inside.find(']')?;
            let key = inside[..end].trim();
            let is_index = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
            parts.push(if is_index { key.to_owned() } else { unquoted(key)? });
            rest = &inside[end + 1..];
        } else {
            let name = optional.or_else(|| rest.strip_prefix('.'))?;
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            let end = name.find(|c| !is_part(c)).unwrap_or(name.len());
            // A method, the length of a list, or no name at all.
            if end == 0 || name[end..].trim_start().starts_with('(') || &name[..end] == "length" {
                return None;
            }
            parts.push(name[..end].to_owned());
            rest = &name[end..];
        }
        rest = rest.trim_start();
    }
    Some(parts)
}

fn made_up(text: &str) -> Option<Value> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let slot = match plain.as_str() {
        "Date.now()" | "newDate().getTime()" | "newDate().valueOf()" | "+newDate()" => {
            "timestamp_ms".to_owned()
        }
        "Math.floor(Date.now()/1000)"
        | "Math.round(Date.now()/1000)"
        | "Math.floor(newDate().getTime()/1000)"
        | "Math.round(newDate().getTime()/1000)" => "timestamp_s".to_owned(),
        "require('uuid').v4()"
        | "require(\"uuid\").v4()"
        | "uuid.v4()"
        | "uuidv4()"
        | "crypto.randomUUID()" => "uuid".to_owned(),
        plain => {
            let inside = plain.strip_prefix("Math.floor(Math.random()*")?;
            let (count, behind) = inside.split_once(')')?;
            let count: u64 = count.parse().ok().filter(|&count| count > 0)?;
            let first: u64 = match behind.strip_prefix('+') {
                Some(first) => first.parse().ok()?,
                None if behind.is_empty() => 0,
                None => return None,
            };
            format!("random_int({first}, {})", first.checked_add(count - 1)?)
        }
    };
    Some(Value::Slot(slot))
}

fn variable(text: &str) -> Option<Value> {
    if let Some((inside, "")) = text.strip_prefix("pm.variables.replaceIn").and_then(arguments) {
        return unquoted(inside).map(Value::Text);
    }
    for scope in SCOPES {
        if let Some((inside, "")) =
            text.strip_prefix(scope).and_then(|rest| rest.strip_prefix(".get")).and_then(arguments)
        {
            return unquoted(inside).map(Value::Variable);
        }
    }
    for call in ["postman.getEnvironmentVariable", "postman.getGlobalVariable"] {
        if let Some((inside, "")) = text.strip_prefix(call).and_then(arguments) {
            return unquoted(inside).map(Value::Variable);
        }
    }
    None
}

impl Value {
    /// The place in a response that it is taken from; `None` if it is from elsewhere.
    pub(super) fn place(&self) -> Option<Place> {
        match self {
            Self::Json(path) => Some(Place::Json(json_pointer(path))),
            Self::Response(place) => Some(place.clone()),
            _ => None,
        }
    }

    /// The text of a literal as a template.
    pub(super) fn literal(&self) -> Option<String> {
        match self {
            Self::Literal(text) => Some(escaped(text)),
            _ => None,
        }
    }
}
