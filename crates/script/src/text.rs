//! The source of a script as Lua takes it.

use std::sync::Arc;

use plimsoll_scenario::ScriptText;

/// The chunk's name: `@` in front of a file, `=` in front of a word.
pub(crate) fn chunk(text: &ScriptText) -> String {
    format!("{}{}", if text.is_file { '@' } else { '=' }, text.name)
}

/// As Lua reads a file: a first line that starts with `#` is skipped, but counts as a line.
pub(crate) fn without_shebang(content: &[u8]) -> Arc<[u8]> {
    if content.first() == Some(&b'#') { [b"--", content].concat().into() } else { content.into() }
}
