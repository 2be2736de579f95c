//! Descriptions of other tools: whatever its content, an import ends with a plan that reads back to the same,
//! or with problems; and no message has a line break or another control character.

use std::path::Path;

use plimsoll_document::{Document, Files, KeyLogFile, Problems, Source};
use plimsoll_grpc::PARTS;
use plimsoll_import::{
    Imported, Unchecked, curl as of_curl, gatling as of_gatling, h2loadrunner as of_h2loadrunner,
};
use plimsoll_import::{
    artillery as of_artillery, jmeter as of_jmeter, k6 as of_k6, locust as of_locust, postman as of_postman,
};
use plimsoll_import::{har as of_har, openapi as of_openapi, vegeta as of_vegeta};
use plimsoll_plan::ImportCheck;

const PROTO: &[u8] =
    b"syntax = \"proto3\"; package shop; service Orders { rpc Place(Order) returns (Order); }
message Order { string id = 1; }";

/// The files that descriptions may name.
struct Folder;

impl Files for Folder {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match path.file_name().and_then(|name| name.to_str()) {
            Some("users.csv") => Ok(b"name,age\nann,1\nbob,2\n".to_vec()),
            Some("api.proto") => Ok(PROTO.to_vec()),
            Some("body") => Ok(b"some bytes\xff".to_vec()),
            Some("script.lua") => Ok(b"function make_request(a) return a end".to_vec()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    }

    fn key_log(&self, _: &Path) -> std::io::Result<KeyLogFile> {
        Err(std::io::ErrorKind::PermissionDenied.into())
    }
}

/// A command line of curl.
pub fn curl(data: &[u8]) {
    let Ok(command) = std::str::from_utf8(data) else { return };
    check(data, of_curl::import(command, Path::new(""), &Folder));
}

/// A configuration of h2loadrunner.
pub fn h2loadrunner(data: &[u8]) {
    check(data, of_h2loadrunner::import(data, Path::new(""), &Folder, &|_| None));
}

/// A recording of a browser.
pub fn har(data: &[u8]) {
    let options =
        of_har::Options { expect_status: data.len().is_multiple_of(2), ..of_har::Options::default() };
    check(data, of_har::import(data, &options));
}

/// A description of an interface.
pub fn openapi(data: &[u8]) {
    check(data, of_openapi::import(data, &of_openapi::Options { server: None }));
}

/// Targets of vegeta.
pub fn vegeta(data: &[u8]) {
    for steps in [false, true] {
        check(data, of_vegeta::import(data, &of_vegeta::Options { steps }));
    }
}

/// A collection of Postman, and the same bytes as an environment.
pub fn postman(data: &[u8]) {
    for environment in [None, Some(data.to_vec())] {
        let options = of_postman::Options { environment };
        check(data, of_postman::import(data, &options, Path::new(""), &Folder));
    }
}

/// A script of Artillery.
pub fn artillery(data: &[u8]) {
    check(data, of_artillery::import(data, Path::new(""), &Folder));
}

/// A script of k6.
pub fn k6(data: &[u8]) {
    check(data, of_k6::import(data, &of_k6::Options::default(), Path::new(""), &Folder));
}

/// A simulation of Gatling, in the language that its text tells.
pub fn gatling(data: &[u8]) {
    check(data, of_gatling::import(data, &of_gatling::Options::default(), Path::new(""), &Folder));
}

/// A locustfile.
pub fn locust(data: &[u8]) {
    check(data, of_locust::import(data, &of_locust::Options::default(), Path::new(""), &Folder));
}

/// A test plan of JMeter.
pub fn jmeter(data: &[u8]) {
    check(data, of_jmeter::import(data, Path::new(""), &Folder));
}

fn check(data: &[u8], unchecked: Result<Unchecked, Problems>) {
    check_with(data, unchecked, &ImportCheck::WITHOUT_FLAGS);
}

/// Checks what an importer returned: a plan that reads back to the same, or problems in plain lines.
pub(crate) fn check_with(data: &[u8], unchecked: Result<Unchecked, Problems>, check: &ImportCheck<'_>) {
    match unchecked.and_then(|plan| plan.check(Path::new(""), &Folder, check)) {
        Ok(Imported { document, notes }) => {
            let yaml = document.to_yaml();
            let source = Source { name: "plan.yaml".to_owned(), text: yaml.clone() };
            let mut problems = Problems::default();
            let read = Document::read(&source, PARTS.document(), &mut problems);
            assert!(problems.is_empty(), "{problems}\n{yaml}");
            assert_eq!(read.map(|document| document.to_yaml()).as_deref(), Some(&*yaml));
            notes.iter().for_each(|note| assert_plain(&note.to_string()));
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "of {} bytes", data.len());
            problems.iter().for_each(|problem| assert_plain(&problem.message));
        }
    }
}

fn assert_plain(message: &str) {
    assert!(!message.is_empty() && !message.contains(char::is_control), "{message:?}");
}
