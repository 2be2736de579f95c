//! h2loadrunner's JSON configuration.
//!
//! Its servers and connections become a target and settings, its scenarios become scenarios. Its rate is
//! requests per second and client, which a plan says with `rps` and `rate_of: requests`: there weights are
//! shares of requests, as they are in the format. Without a rate they become shares of iterations.

mod count;
mod data;
mod load;
mod old_format;
mod request;
mod response;
mod scenario;
mod settings;
mod variables;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plimsoll_document::{Document, Files, Problems, Settings};

use crate::Unchecked;
use crate::draft::text;
use crate::findings::Findings;
use crate::names::Names;
use crate::source::{self, Object};

pub use self::count::note_on_count;

/// Reason why the text of a script cannot be read, if it cannot.
pub type ScriptError<'s> = dyn Fn(&[u8]) -> Option<String> + 's;

/// Reads a configuration. Files that it names are looked for in `folder`, which the plan file has to be in
/// as well. A script with a syntax error is left out.
///
/// # Errors
/// All problems with it.
pub fn import(
    text: &[u8],
    folder: &Path,
    files: &dyn Files,
    syntax_error: &ScriptError<'_>,
) -> Result<Unchecked, Problems> {
    let value = source::json(text)?;
    let mut importer = Importer::new(folder, files, syntax_error);
    let Some(mut top) = Object::new(&value, "", &mut importer.findings) else {
        return Err(importer.findings.into_problems());
    };
    importer.server(&mut top);
    importer.connections(&mut top);
    importer.tls(&mut top);
    importer.http2(&mut top);
    importer.outputs(&mut top);
    let is_old = importer.refuse_old_format(&mut top);
    let shares = importer.scenarios(&mut top, is_old);
    importer.load(&mut top, &shares);
    top.rest(&mut importer.findings, is_comment);
    importer.finish()
}

/// A key that starts with `_` is a field that was commented out.
fn is_comment(key: &str) -> bool {
    key.starts_with('_')
}

/// Protocol spoken with the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoken {
    Http1,
    Http2,
    /// The one that the server chooses.
    Either,
}

/// A configuration on its way to a document.
struct Importer<'a> {
    findings: Findings,
    files: &'a dyn Files,
    syntax_error: &'a ScriptError<'a>,
    folder: PathBuf,
    document: Document,
    settings: Settings,
    /// Names of data sources and of their columns, which are variables.
    names: Names,
    /// `http` or `https`.
    scheme: &'static str,
    /// `host:port`.
    authority: String,
    spoken: Spoken,
    /// Set when requests to other authorities get connections of their own.
    follows_authority: bool,
    /// Origins of these authorities.
    others: BTreeSet<String>,
    threads: u64,
    clients: u64,
}

impl<'a> Importer<'a> {
    fn new(folder: &Path, files: &'a dyn Files, syntax_error: &'a ScriptError<'a>) -> Self {
        Self {
            syntax_error,
            findings: Findings::default(),
            files,
            folder: folder.to_owned(),
            document: Document::default(),
            settings: Settings::default(),
            names: Names::default(),
            scheme: "http",
            authority: String::new(),
            spoken: Spoken::Http2,
            follows_authority: false,
            others: BTreeSet::new(),
            threads: 1,
            clients: 1,
        }
    }

    /// The content of a file that may be there; `None` if it is not.
    fn file(&self, name: &str) -> Option<Vec<u8>> {
        // A text that goes over lines, or is longer than a path can be, names no file; `-` would be the
        // standard input.
        if name.is_empty() || name == "-" || name.len() > 4096 || name.contains(['\n', '\r', '\0', '{']) {
            return None;
        }
        self.files.read(&self.folder.join(name)).ok()
    }

    /// The folders that were searched for files, as a hint.
    fn looked_for(&self) -> String {
        match self.folder.as_os_str().is_empty() {
            true => "files are looked for in the current folder".to_owned(),
            false => format!("files are looked for beside the configuration, in `{}`", self.folder.display()),
        }
    }

    fn finish(mut self) -> Result<Unchecked, Problems> {
        if !self.others.is_empty() {
            let connections = u128::from(self.clients).saturating_mul(self.origins());
            let becomes = format!(
                "each client has a connection to each of the {} authorities: there are {connections}",
                self.others.len() + 1
            );
            self.findings.note("/clients", &self.clients.to_string(), becomes);
            self.settings.connections = text(connections.to_string());
        }
        self.document.run = self.settings.into();
        self.findings.finish_whole(self.document)
    }
}
