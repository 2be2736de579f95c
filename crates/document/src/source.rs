//! Where a plan was read from.

use std::borrow::Cow;
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

/// Origin of a document, in which the places of its values are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentOrigin {
    /// Text that the document was read from.
    Text(Source),
    /// Flags that the document was made from, by its name in messages: see
    /// [`MadeDocument`](crate::MadeDocument).
    Flags(String),
}

/// A plan that can be resolved, with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedDocument {
    /// The content.
    pub document: Document,
    /// Text or flags that the document comes from.
    pub origin: DocumentOrigin,
    /// The folder that it is in; file names in it are relative to this one.
    pub folder: PathBuf,
}

impl LoadedDocument {
    /// Returns the name of the plan in messages: that of its file as it was typed, or that of the plan that
    /// flags come to.
    pub fn name(&self) -> &str {
        match &self.origin {
            DocumentOrigin::Text(source) => &source.name,
            DocumentOrigin::Flags(name) => name,
        }
    }

    /// Returns the text of the plan, for files and for other processes. A document that was made from flags
    /// is written as YAML.
    pub fn source(&self) -> Cow<'_, Source> {
        match &self.origin {
            DocumentOrigin::Text(source) => Cow::Borrowed(source),
            DocumentOrigin::Flags(name) => {
                Cow::Owned(Source { name: name.clone(), text: self.document.to_yaml() })
            }
        }
    }

    /// The file that the plan calls `name`: relative to the plan's folder. An absolute name and `-`, the
    /// standard input, stay as they are.
    pub fn path(&self, name: &str) -> PathBuf {
        match name {
            "-" => PathBuf::from(name),
            _ => Path::new(&self.folder).join(name),
        }
    }
}
