//! Imports as users see them: the plan as YAML, with the notes; or the problems, with hints.

mod artillery;
mod checked;
mod conditions;
mod curl;
mod gatling;
mod h2loadrunner;
mod har;
mod hostile;
mod jmeter;
mod k6;
mod locust;
mod migrated;
mod openapi;
mod postman;
mod proxies;
mod state;
mod vegeta;

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_document::{Document, DocumentParts, Files, KeyLogFile, Problems, Source};
use plimsoll_import::{Imported, Unchecked};
use plimsoll_plan::ImportCheck;

/// Files by name.
struct Named<'a>(&'a [(&'a str, &'a [u8])]);

impl Files for Named<'_> {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        let found = self.0.iter().find(|(name, _)| path == Path::new(name));
        found.map(|(_, content)| content.to_vec()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    fn key_log(&self, _: &Path) -> std::io::Result<KeyLogFile> {
        Err(std::io::ErrorKind::PermissionDenied.into())
    }
}

/// Checks what was imported, as the command does. The plan will be in `folder`, with these files.
pub(crate) fn checked(
    unchecked: Result<Unchecked, Problems>,
    folder: &Path,
    files: &dyn Files,
) -> Result<Imported, Problems> {
    unchecked?.check(folder, files, &ImportCheck::WITHOUT_FLAGS)
}

/// Checks what was imported from a source that names no files.
pub(crate) fn checked_alone(unchecked: Result<Unchecked, Problems>) -> Result<Imported, Problems> {
    checked(unchecked, Path::new(""), &Named(&[]))
}

/// Renders the output of the command. Asserts that every printed plan can be read back and means the same.
fn shown(imported: &Result<Imported, Problems>) -> String {
    let mut text = String::new();
    match imported {
        Ok(Imported { document, notes }) => {
            let yaml = document.to_yaml();
            assert_readable(&yaml);
            for note in notes {
                let _ = writeln!(text, "note: {note}");
            }
            text.push_str(&yaml);
        }
        Err(problems) => {
            for problem in problems {
                let _ = writeln!(text, "error: {}", problem.message);
                if let Some(hint) = &problem.hint {
                    let _ = writeln!(text, "hint: {hint}");
                }
            }
        }
    }
    text
}

fn assert_readable(yaml: &str) {
    let source = Source { name: "plan.yaml".to_owned(), text: yaml.to_owned() };
    let mut problems = Problems::default();
    let read = Document::read(&source, DocumentParts::NONE, &mut problems);
    assert!(problems.is_empty(), "{problems}\n{yaml}");
    assert_eq!(read.map(|document| document.to_yaml()).as_deref(), Some(yaml));
}
