//! Scripts as modules: their imports, and their statements outside of functions.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use plimsoll_document::Problems;

use super::syntax::{Imported, Script, Span, StatementKind};
use super::value::Value;
use super::{Importer, parse};
use crate::findings::Findings;

impl Importer<'_> {
    /// Reads a script, and carries out its statements. Returns its number.
    pub(crate) fn module(&mut self, name: &str, source: &[u8]) -> Result<usize, Problems> {
        let Ok(text) = std::str::from_utf8(source) else {
            return Err(Findings::fail(
                name,
                "it is not a text in UTF-8",
                "the file has to be a script of k6",
            ));
        };
        let text = text.trim_start_matches('\u{feff}');
        let number = self.scripts.len();
        let body = parse::parse(name, text, number)?;
        let script = Arc::new(Script::new(name, text.to_owned(), body));
        self.scripts.push(Arc::clone(&script));
        self.exports.push(BTreeMap::new());
        let scope = self.open_scope(None);
        for statement in &script.body {
            if let StatementKind::Import { from, names } = &statement.kind {
                self.bring(from, names, scope, statement.span)?;
            }
        }
        self.block(&script.body, scope);
        let mut exports = BTreeMap::new();
        for statement in &script.body {
            if let StatementKind::Export(names) = &statement.kind {
                for (ours, theirs) in names {
                    if let Some(value) = self.scopes[scope].names.get(ours) {
                        exports.insert(theirs.clone(), value.clone());
                    }
                }
            }
        }
        if let Some(value) = self.scopes[scope].names.get("default") {
            exports.insert("default".to_owned(), value.clone());
        }
        self.exports[number] = exports;
        Ok(number)
    }

    /// Binds what another module gives.
    fn bring(&mut self, from: &str, names: &[Imported], scope: usize, span: Span) -> Result<(), Problems> {
        let prefix = match from {
            "k6" => "k6",
            "k6/http" => "http",
            "k6/data" => "data",
            "k6/execution" => "exec",
            "k6/metrics" => "metrics",
            "k6/encoding" => "encoding",
            "k6/crypto" => "crypto",
            _ if from.contains("k6-utils") => "utils",
            _ if from.contains("papaparse") => "papaparse",
            _ if from.contains("jslib.k6.io/url") => "url",
            _ if from.starts_with('.') => return self.bring_own(from, names, scope, span),
            _ => {
                self.note(span, "nothing of this library is carried out: calls of it are noted");
                "library"
            }
        };
        for Imported { theirs, ours } in names {
            let path = match theirs.as_str() {
                "default" | "*" => prefix.to_owned(),
                name => format!("{prefix}.{name}"),
            };
            self.scopes[scope].names.insert(ours.clone(), Value::Builtin(path));
        }
        Ok(())
    }

    /// Binds what a script beside this one gives.
    fn bring_own(
        &mut self,
        from: &str,
        names: &[Imported],
        scope: usize,
        span: Span,
    ) -> Result<(), Problems> {
        let here = self.scripts[span.module].name.clone();
        let path = beside(&here, from);
        let number = match self.known.get(&path) {
            Some(known) => *known,
            None => {
                let Ok(content) = self.files.read(&self.folder.join(&path)) else {
                    self.note(span, "there is no such file beside the script: calls of it are noted");
                    self.known.insert(path, None);
                    return self.unknown(names, scope);
                };
                self.known.insert(path.clone(), None);
                let number = self.module(&path, &content)?;
                self.known.insert(path, Some(number));
                Some(number)
            }
        };
        let Some(number) = number else { return self.unknown(names, scope) };
        for Imported { theirs, ours } in names {
            let value = match theirs.as_str() {
                "*" => {
                    let members = self.exports[number].iter();
                    Value::object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
                }
                name => self.exports[number].get(name).cloned().unwrap_or(Value::Unknown),
            };
            self.scopes[scope].names.insert(ours.clone(), value);
        }
        Ok(())
    }

    fn unknown(&mut self, names: &[Imported], scope: usize) -> Result<(), Problems> {
        for name in names {
            self.scopes[scope].names.insert(name.ours.clone(), Value::Unknown);
        }
        Ok(())
    }
}

/// The path of a file that is named in another one.
fn beside(here: &str, name: &str) -> String {
    let mut path = PathBuf::new();
    let folder = Path::new(here).parent().unwrap_or(Path::new(""));
    for part in folder.join(name).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if path.file_name().is_some_and(|name| name != "..") => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path.to_string_lossy().into_owned()
}
