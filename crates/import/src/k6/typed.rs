//! Conditions on values of JSON, which have types: `0`, `false`, `null` and `""` are not each other's texts.

use super::Language;
use super::evaluate::not;
use super::value::{Test, Value, shown};
use crate::flow::check::{self as checks, Place};

/// A test that holds if the value at `path` is there and the filter, which names it `@`, holds. `None` for
/// the root, which no filter can select.
///
/// A value that is found is never an empty text, so that a condition can ask whether it was.
pub(super) fn holds(request: usize, path: &[String], filter: &str) -> Option<Test> {
    let (_, parents) = path.split_last()?;
    let (parent, whole) = (json_path(parents), json_path(path));
    let place = Place::Json(format!("{parent}[?@ == {whole} && {filter}]"));
    Some(Test::Value(request, place, checks::exists()))
}

/// The test of a value that counts as true.
pub(super) fn truth(language: Language, request: usize, path: &[String]) -> Option<Test> {
    let filter = match language {
        Language::JavaScript => r#"@ != null && @ != false && @ != 0 && @ != """#,
        Language::Python => "(@ == true || @ < 0 || @ > 0 || length(@) > 0)",
    };
    holds(request, path, filter)
}

/// The test of `value operator right`. `None` if texts do for it, or there is none.
pub(super) fn compared(
    language: Language,
    operator: &str,
    (request, path): (usize, &[String]),
    right: &Value,
) -> Option<Test> {
    let is_python = language == Language::Python;
    let is_other = matches!(operator, "!==" | "!=" | "is not");
    if !is_other && !matches!(operator, "===" | "==" | "is") {
        return None;
    }
    let is_loose = operator == "==" || operator == "!=";
    let filter = match right {
        // A value that is missing is `None`, and loosely equal to `null`.
        Value::Null if is_python || is_loose => {
            let is_something = holds(request, path, "@ != null")?;
            return Some(if is_other { is_something } else { not(is_something) });
        }
        Value::Undefined if is_loose => {
            let is_something = holds(request, path, "@ != null")?;
            return Some(if is_other { is_something } else { not(is_something) });
        }
        right => equal(language, operator, right)?,
    };
    let is_equal = holds(request, path, &filter)?;
    Some(if is_other { not(is_equal) } else { is_equal })
}

/// The filter of values that equal this one. `None` for texts that no other value is written as.
fn equal(language: Language, operator: &str, right: &Value) -> Option<String> {
    let is_python = language == Language::Python;
    let is_loose = operator == "==" || operator == "!=";
    Some(match right {
        Value::Null => "@ == null".to_owned(),
        Value::Boolean(flag) if is_python && !operator.starts_with("is") => {
            format!("(@ == {flag} || @ == {})", u8::from(*flag))
        }
        Value::Boolean(flag) if is_loose => {
            let number = u8::from(*flag);
            let empty = if *flag { "" } else { " || @ == \"\"" };
            format!("(@ == {flag} || @ == {number} || @ == \"{number}\"{empty})")
        }
        Value::Boolean(flag) => format!("@ == {flag}"),
        Value::Number(number) if !number.is_finite() => return None,
        // In Python `True == 1`.
        Value::Number(number) if is_python && (*number == 0.0 || *number == 1.0) => {
            format!("(@ == {} || @ == {})", shown(*number), *number == 1.0)
        }
        Value::Number(number) if !is_python && is_loose => {
            format!("(@ == {0} || @ == \"{0}\")", shown(*number))
        }
        Value::Number(number) => format!("@ == {}", shown(*number)),
        Value::String(text) if serde_json::from_str::<serde_json::Value>(text).is_ok() => {
            let number = text.trim().parse::<f64>().ok().filter(|_| !is_python && is_loose);
            match number {
                Some(number) => format!("(@ == {} || @ == {})", literal(text), shown(number)),
                None => format!("@ == {}", literal(text)),
            }
        }
        _ => return None,
    })
}

/// The test of a value that is one of several. `None` if one of them is not known.
pub(super) fn one_of(language: Language, request: usize, path: &[String], all: &[Value]) -> Option<Test> {
    let filter = |value: &Value| match value {
        Value::String(text) => Some(format!("@ == {}", literal(text))),
        value => equal(language, "===", value),
    };
    let filters: Vec<String> = all.iter().map(filter).collect::<Option<_>>()?;
    if filters.is_empty() {
        return None;
    }
    holds(request, path, &format!("({})", filters.join(" || ")))
}

/// The test of a list, an object or a text that contains this, as `in` of Python means it.
pub(crate) fn contains(request: usize, path: &[String], wanted: &Value) -> Option<Test> {
    let whole = json_path(path);
    // Only a list has an element 0.
    let element = |filter: String| format!("{whole}[0] && {whole}[?{filter}]");
    let filter = match wanted {
        Value::String(text) => {
            let (text, pattern) = (literal(text), literal(&regex::escape(text)));
            format!("(@[{text}] || {} || search(@, {pattern}))", element(format!("@ == {text}")))
        }
        _ => element(equal(Language::Python, "===", wanted)?),
    };
    holds(request, path, &filter)
}

/// The test of a length.
pub(super) fn length(request: usize, path: &[String], operator: &str, number: f64) -> Option<Test> {
    let operator = match operator {
        "===" | "==" => "==",
        "!==" | "!=" => "!=",
        operator => operator,
    };
    // A value without a length has none that is another one.
    let has_one = if operator == "!=" { "length(@) >= 0 && " } else { "" };
    holds(request, path, &format!("{has_one}length(@) {operator} {}", shown(number)))
}

/// The last name in the path of a value that has to [hold](holds) something.
pub(super) fn name(path: &str) -> &str {
    let whole = path.split_once("@ == ").map_or("", |(_, rest)| rest);
    let whole = whole.split_once(" && ").map_or(whole, |(whole, _)| whole);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = whole.rsplit(|c| !is_name(c));
    let known = names.find(|part| part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
    known.unwrap_or("value")
}

/// A JSONPath of names and places.
fn json_path(path: &[String]) -> String {
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let part = |part: &String| match part.as_str() {
        part if is_name(part) => format!(".{part}"),
        part if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => format!("[{part}]"),
        part => format!("[{}]", literal(part)),
    };
    std::iter::once("$".to_owned()).chain(path.iter().map(part)).collect()
}

/// A text in quotes.
fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
