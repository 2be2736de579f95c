//! Server reflection (grpc/doc/server-reflection.md), of both versions, whose messages are the same.

use std::collections::HashMap;

use plimsoll_wire::protobuf::{self, Malformed};

use crate::FileDescription;

/// Services that no file describes.
const OWN: [&str; 2] = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

const NOT_FOUND: u8 = 5;
const INVALID_ARGUMENT: u8 = 3;

/// The files of a server, and where each name is described.
#[derive(Debug)]
pub(super) struct Reflection {
    files: Vec<FileDescription>,
    by_name: HashMap<String, usize>,
    by_symbol: HashMap<String, usize>,
}

/// A question: one of the fields of `ServerReflectionRequest.message_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question<'a> {
    File(&'a [u8]),
    Symbol(&'a [u8]),
    Services,
    /// About extensions, of which no file here has any; or nothing.
    Other,
}

impl Reflection {
    pub(super) fn new(files: Vec<FileDescription>) -> Self {
        let by_name = files.iter().enumerate().map(|(at, file)| (file.name.clone(), at)).collect();
        let symbols = files.iter().enumerate();
        let by_symbol =
            symbols.flat_map(|(at, file)| file.symbols.iter().map(move |symbol| (symbol.clone(), at)));
        Self { by_symbol: by_symbol.collect(), by_name, files }
    }

    /// The `ServerReflectionResponse` to a `ServerReflectionRequest`.
    pub(super) fn answer(&self, request: &[u8]) -> Vec<u8> {
        let mut answer = Vec::new();
        let (mut host, mut question) = (&b""[..], Question::Other);
        let read = protobuf::fields(request, |number, value| {
            match number {
                1 => host = value.bytes()?,
                3 => question = Question::File(value.bytes()?),
                4 => question = Question::Symbol(value.bytes()?),
                7 => question = Question::Services,
                _ => {}
            }
            Ok::<(), Malformed>(())
        });
        put_bytes(1, host, &mut answer);
        put_bytes(2, request, &mut answer);
        if read.is_err() {
            put_error(INVALID_ARGUMENT, "the request is not a message", &mut answer);
            return answer;
        }
        let known = |names: &HashMap<String, usize>, name: &[u8]| {
            std::str::from_utf8(name).ok().and_then(|name| names.get(name)).copied()
        };
        match question {
            Question::Services => {
                let mut list = Vec::new();
                for name in self.services() {
                    let mut service = Vec::new();
                    put_bytes(1, name.as_bytes(), &mut service);
                    put_bytes(1, &service, &mut list);
                }
                put_bytes(6, &list, &mut answer);
            }
            Question::File(name) => self.put_file(known(&self.by_name, name), name, &mut answer),
            Question::Symbol(name) => self.put_file(known(&self.by_symbol, name), name, &mut answer),
            Question::Other => put_error(NOT_FOUND, "there are no extensions", &mut answer),
        }
        answer
    }

    /// The services, in the order of their files.
    fn services(&self) -> impl Iterator<Item = &str> {
        let services = self.files.iter().flat_map(|file| &file.services);
        services.map(String::as_str).chain(OWN)
    }

    /// Appends a file and those that it needs, or an error if it is not known.
    fn put_file(&self, file: Option<usize>, name: &[u8], answer: &mut Vec<u8>) {
        let Some(first) = file else {
            let name = String::from_utf8_lossy(name);
            return put_error(NOT_FOUND, &format!("`{name}` is not known"), answer);
        };
        let mut needed = vec![first];
        let mut at = 0;
        while let Some(&file) = needed.get(at) {
            let imports = self.files[file].imports.iter().filter_map(|name| self.by_name.get(name));
            for import in imports {
                if !needed.contains(import) {
                    needed.push(*import);
                }
            }
            at += 1;
        }
        let mut files = Vec::new();
        for file in needed {
            put_bytes(1, &self.files[file].descriptor, &mut files);
        }
        put_bytes(4, &files, answer);
    }
}

fn put_error(code: u8, message: &str, answer: &mut Vec<u8>) {
    let mut error = vec![0x08, code];
    put_bytes(2, message.as_bytes(), &mut error);
    put_bytes(7, &error, answer);
}

/// Appends a field with bytes, of a number below 16.
fn put_bytes(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reflection() -> Reflection {
        let file = |name: &str, imports: &[&str], services: &[&str], symbols: &[&str]| FileDescription {
            name: name.to_owned(),
            imports: imports.iter().map(|name| (*name).to_owned()).collect(),
            services: services.iter().map(|name| (*name).to_owned()).collect(),
            symbols: symbols.iter().map(|name| (*name).to_owned()).collect(),
            descriptor: name.as_bytes().to_vec(),
        };
        Reflection::new(vec![
            file("a", &["b", "not_there"], &["p.S"], &["p.S", "p.S.M"]),
            file("b", &["a"], &[], &["p.T"]),
        ])
    }

    #[test]
    fn files_come_with_those_that_they_import() {
        let reflection = reflection();
        for (request, answered) in [
            (&b"\x1a\x01a"[..], &b"\x0a\0\x12\x03\x1a\x01a\x22\x06\x0a\x01a\x0a\x01b"[..]),
            (b"\x22\x03p.T", b"\x0a\0\x12\x05\x22\x03p.T\x22\x06\x0a\x01b\x0a\x01a"),
            (b"\x22\x05p.S.M", b"\x0a\0\x12\x07\x22\x05p.S.M\x22\x06\x0a\x01a\x0a\x01b"),
        ] {
            assert_eq!(reflection.answer(request), answered, "{}", request.escape_ascii());
        }
    }

    #[test]
    fn what_is_not_known_is_told() {
        let reflection = reflection();
        for request in [&b"\x1a\x01c"[..], b"\x22\x01c", b"\x22\x01\xff", b"\x32\x01c", b"", b"\x22\x09"] {
            let answer = reflection.answer(request);
            let mut is_error = false;
            protobuf::fields(&answer, |number, _| {
                is_error |= number == 7;
                Ok::<(), Malformed>(())
            })
            .unwrap();
            assert!(is_error, "{}", request.escape_ascii());
        }
        let services = reflection.answer(b"\x0a\x01h\x3a\0");
        assert!(services.starts_with(b"\x0a\x01h\x12\x05\x0a\x01h\x3a\0\x32"));
        assert!(services.windows(3).any(|name| name == b"p.S"));
    }
}
