//! From an error of Lua to one line for people.

use mlua::Error;
use plimsoll_scenario::ScriptError;

/// The name of Lua that is ours: places in it are not shown.
pub(crate) const OWN_CHUNK: &str = "=(plimsoll)";

/// The activity that failed, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doing<'a> {
    /// Name of the script.
    pub(crate) script: &'a str,
    /// Line where the function that was called begins; 0 for the whole script.
    pub(crate) line: u32,
    /// The function, and the step it is for.
    pub(crate) what: &'a str,
}

/// `script.lua:12: reason, in make_request of step x`. Without memory the state is of no use any more.
pub(crate) fn script_error(error: &Error, doing: &Doing<'_>, memory_limit: usize) -> ScriptError {
    let found = text(error);
    let ends_run = matches!(found.reason, Reason::Memory);
    let mut message = match found.reason {
        Reason::Memory => format!("needs more memory than the limit of {}", size(memory_limit)),
        Reason::Text(text) => text,
    };
    // Error values that are not strings, memory errors, and what C functions throw have no position.
    if !has_position(&message) {
        let place = found.place.unwrap_or_else(|| match doing.line {
            0 => doing.script.to_owned(),
            line => format!("{}:{line}", doing.script),
        });
        message = format!("{place}: {message}");
    }
    if !doing.what.is_empty() {
        message.push_str(", in ");
        message.push_str(doing.what);
    }
    ScriptError { message, ends_run }
}

enum Reason {
    Memory,
    Text(String),
}

struct ErrorText {
    reason: Reason,
    /// The innermost line of Lua in the trace: `script.lua:12`.
    place: Option<String>,
}

fn text(error: &Error) -> ErrorText {
    let plain = |text: &str| {
        let (message, trace) = match text.find("\nstack traceback:") {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let reason = match message.contains("not enough memory") {
            true => Reason::Memory,
            false => Reason::Text(without_own_place(message.trim_end()).to_owned()),
        };
        ErrorText { reason, place: innermost(trace) }
    };
    match error {
        Error::SyntaxError { message, .. } => plain(message),
        Error::RuntimeError(message) => plain(message),
        Error::MemoryError(message) => ErrorText { reason: Reason::Memory, ..plain(message) },
        Error::CallbackError { traceback, cause } => {
            let inner = text(cause);
            ErrorText { place: inner.place.or_else(|| innermost(traceback)), ..inner }
        }
        Error::WithContext { cause, .. } => text(cause),
        other => plain(&other.to_string()),
    }
}

/// Returns `true` if a message starts with `name:12:`.
fn has_position(message: &str) -> bool {
    let first = message.lines().next().unwrap_or_default();
    first.split(": ").next().and_then(|place| place.rsplit_once(':')).is_some_and(|(name, line)| {
        !name.is_empty() && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Without the place, if it is in our own Lua.
fn without_own_place(message: &str) -> &str {
    let rest = message.strip_prefix(&OWN_CHUNK[1..]).and_then(|rest| rest.strip_prefix(':'));
    match rest.and_then(|rest| rest.split_once(": ")) {
        Some((line, rest)) if line.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => message,
    }
}

/// The first line of a trace that is Lua's.
fn innermost(trace: &str) -> Option<String> {
    let places = trace.lines().map(str::trim).filter_map(|line| line.split(": ").next());
    let mut places = places.filter(|place| !place.starts_with("[C]") && !place.starts_with(&OWN_CHUNK[1..]));
    places.find(|place| has_position(&format!("{place}: "))).map(str::to_owned)
}

fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(error: &Error) -> String {
        let doing = Doing { script: "s.lua", line: 3, what: "make_request" };
        script_error(error, &doing, 1 << 20).message
    }

    #[test]
    fn an_error_says_where() {
        let lua = Error::RuntimeError("s.lua:7: boom\nstack traceback:\n\t[C]: in ?\n\ts.lua:7: in x".into());
        assert_eq!(message(&lua), "s.lua:7: boom, in make_request");
        let thrown = Error::RuntimeError("boom".into());
        assert_eq!(message(&thrown), "s.lua:3: boom, in make_request");
        let traceback =
            "stack traceback:\n\t[C]: in function 'open'\n\ts.lua:9: in function <s.lua:8>".into();
        let native = Error::CallbackError { traceback, cause: Error::RuntimeError("refused".into()).into() };
        assert_eq!(message(&native), "s.lua:9: refused, in make_request");
        let memory = Error::MemoryError("not enough memory".into());
        assert_eq!(message(&memory), "s.lua:3: needs more memory than the limit of 1 MiB, in make_request");
    }
}
