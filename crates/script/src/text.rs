//! The source of a script.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The source of a script, and where it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptText {
    /// Name for messages: the file's as given, or `inline`.
    pub(crate) name: Arc<str>,
    /// The chunk's name as Lua takes it: `@` in front of a file, `=` in front of a word.
    pub(crate) chunk: Arc<str>,
    /// Lua.
    pub(crate) source: Arc<[u8]>,
    /// Folders that `require`, `dofile` and `loadfile` search first.
    pub(crate) folder: Option<PathBuf>,
}

impl ScriptText {
    /// The content of a file; `path` is taken as it is given.
    pub fn file(path: &Path, content: &[u8]) -> Self {
        let name: Arc<str> = path.to_string_lossy().into();
        let parent = path.parent().map(|parent| match parent.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => parent.to_owned(),
        });
        Self { chunk: format!("@{name}").into(), name, source: without_shebang(content), folder: parent }
    }

    /// Source that stands in a plan; `folder` is that of the plan's file.
    pub fn inline(source: &str, folder: Option<PathBuf>) -> Self {
        let source = without_shebang(source.as_bytes());
        // A plan that is named without a folder is in this one.
        let here = |folder: PathBuf| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let folder = folder.map(here);
        Self { name: "inline".into(), chunk: "=inline".into(), source, folder }
    }
}

/// As Lua reads a file: a first line that starts with `#` is skipped, but counts as a line.
pub(crate) fn without_shebang(content: &[u8]) -> Arc<[u8]> {
    if content.first() == Some(&b'#') { [b"--", content].concat().into() } else { content.into() }
}
