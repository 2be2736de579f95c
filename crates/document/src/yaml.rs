//! A plan as YAML text.

use std::fmt::Write as _;

use serde_json::Value;

use super::Document;

impl Document {
    /// The plan as readable YAML: block style, quotes only where the text would be read as something else,
    /// and texts of several lines as they are. Reading it gives an equal plan; comments and places are not
    /// kept.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        match serde_json::to_value(self) {
            Ok(Value::Object(members)) if !members.is_empty() => {
                for (name, value) in &members {
                    write_entry(&mut text, name, value, 0);
                }
            }
            // Every type of the plan can be written as JSON; what is left is a plan without content.
            _ => text.push_str("{}\n"),
        }
        text
    }
}

/// Longest key that is written in front of its `:`, in bytes: YAML 1.2.2 section 7.4.2 has 1024.
const LONGEST_KEY: usize = 1000;

/// `name: value`, with its end of line, where the line has been indented already.
fn write_entry(text: &mut String, name: &str, value: &Value, indent: usize) {
    let name = scalar(name);
    if name.len() > LONGEST_KEY {
        text.push_str("? ");
        text.push_str(&name);
        text.push('\n');
        pad(text, indent);
    } else {
        text.push_str(&name);
    }
    text.push(':');
    write_value(text, value, indent);
}

/// A value behind `name:` or `-`.
fn write_value(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            text.push('\n');
            for (name, value) in members {
                pad(text, indent + 2);
                write_entry(text, name, value, indent + 2);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            for item in items {
                pad(text, indent + 2);
                write_item(text, item, indent + 2);
            }
        }
        Value::String(string) if is_block(string) => {
            let chomping = match (string.ends_with('\n'), string.ends_with("\n\n")) {
                (_, true) => "+",
                (true, false) => "",
                (false, _) => "-",
            };
            // Writing to a String cannot fail.
            let _ = writeln!(text, " |{chomping}");
            for line in string.strip_suffix('\n').unwrap_or(string).split('\n') {
                if !line.is_empty() {
                    pad(text, indent + 2);
                    text.push_str(line);
                }
                text.push('\n');
            }
        }
        Value::String(string) => {
            let _ = writeln!(text, " {}", scalar(string));
        }
        // Empty lists and mappings, numbers, truth values and null are written as in JSON.
        other => {
            let _ = writeln!(text, " {other}");
        }
    }
}

/// `- value`: the first entry of a mapping stands on the same line.
fn write_item(text: &mut String, item: &Value, indent: usize) {
    text.push('-');
    match item {
        Value::Object(members) if !members.is_empty() => {
            for (index, (name, value)) in members.iter().enumerate() {
                if index == 0 {
                    text.push(' ');
                } else {
                    pad(text, indent + 2);
                }
                write_entry(text, name, value, indent + 2);
            }
        }
        other => write_value(text, other, indent),
    }
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

/// Returns `true` if a text reads well as a block: it has several lines, no line needs an escape, and the
/// first is not indented, which would require an indentation indicator.
fn is_block(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\n'])
        && text.chars().all(|c| c == '\n' || is_printable(c))
}

/// Returns `true` if a character may appear in YAML as it is. Characters that some readers take for line
/// breaks may not.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// A text on one line, in quotes if it needs them.
fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if is_printable(c) => quoted.push(c),
            c => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Returns `true` if a text without quotes is read as this text, by this program and by others.
fn is_plain(text: &str) -> bool {
    const INDICATORS: &str = "-?:,[]{}#&*!|>'\"%@`=~ ";
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let starts_well = text.chars().next().is_some_and(|c| !INDICATORS.contains(c));
    let word = text.to_ascii_lowercase();
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "+.".contains(c))
        && text.chars().all(|c| c.is_ascii_hexdigit() || "._+-xob:".contains(c));
    starts_well
        && !is_number
        && !WORDS.contains(&word.as_str())
        && !text.ends_with([' ', ':'])
        && !text.starts_with("...")
        && !text.starts_with("<<")
        && !text.contains(": ")
        && !text.contains(" #")
        && text.chars().all(is_printable)
}
