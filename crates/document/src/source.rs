//! Where a plan was read from.

use std::path::{Path, PathBuf};

use super::Document;

/// The text of a plan file, and the name of the file in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's name as it was typed.
    pub name: String,
    /// Content of the file.
    pub text: String,
}

/// A plan file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedDocument {
    /// The parsed content of the file.
    pub document: Document,
    /// Text that the document was read from.
    pub source: Source,
    /// The folder that it is in; file names in it are relative to this one.
    pub folder: PathBuf,
}

impl LoadedDocument {
    /// The file that the plan calls `name`: relative to the plan's folder. An absolute name and `-`, the
    /// standard input, stay as they are.
    pub fn path(&self, name: &str) -> PathBuf {
        match name {
            "-" => PathBuf::from(name),
            _ => Path::new(&self.folder).join(name),
        }
    }
}
