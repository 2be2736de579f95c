//! Descriptions that a server gives by reflection (grpc/doc/server-reflection.md).
//!
//! [`Reflection`] holds the open questions and the answers so far. Its caller sends the questions as the
//! body of a call and passes on the body of the answer, until no question is open.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::MethodDescriptor;
use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use serde_json::{Value, json};

use super::schema::{decode, encode, unframed};
use super::{Schema, SchemaError};

/// The messages of reflection, as far as they are needed. The real method has streams.
const PROTO: &str = r#"syntax = "proto3"; package r;
service S { rpc Ask(Request) returns (Response); }
message Request { string file_by_filename = 3; string file_containing_symbol = 4; }
message Response { Files file_descriptor_response = 4; Refusal error_response = 7; }
message Files { repeated bytes file_descriptor_proto = 1; }
message Refusal { int32 error_code = 1; string error_message = 2; }
"#;

/// Files of a description at most: a server could name imports without end.
const MOST_FILES: usize = 10_000;
/// Answers of a server at most, each with the imports of those before: so many files within each other.
const MOST_ANSWERS: u32 = 100;

/// Questions to a server about one service.
#[derive(Debug)]
pub struct Reflection {
    method: MethodDescriptor,
    symbol: String,
    /// Files by their names.
    files: BTreeMap<String, FileDescriptorProto>,
    /// Files that were asked for.
    asked: BTreeSet<String>,
    answers: u32,
}

impl Reflection {
    /// The paths of the method, of the present version and of the one before.
    pub const PATHS: [&'static str; 2] = [
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ];

    /// Begins to ask for the description of a service, by its full name.
    ///
    /// # Panics
    /// Never: its own description is sound.
    pub fn of_service(name: &str) -> Self {
        let schema = Schema::of_proto("r.proto", &|_| Ok(PROTO.as_bytes().to_vec()));
        let method = schema.and_then(|schema| schema.method("/r.S/Ask")).expect("a sound description");
        Self { method, symbol: name.to_owned(), files: BTreeMap::new(), asked: BTreeSet::new(), answers: 0 }
    }

    /// The questions that are open, as the body of a call; empty once all is known.
    pub fn questions(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        let mut put = |question: Value| {
            // A question with one text fits always.
            let _ = encode(&self.method, &question.to_string(), false, &mut body);
        };
        if self.files.is_empty() {
            put(json!({ "fileContainingSymbol": self.symbol }));
            return body;
        }
        let imports = self.files.values().flat_map(|file| &file.dependency);
        let missing: BTreeSet<&String> = imports.filter(|name| !self.files.contains_key(*name)).collect();
        for name in missing {
            if self.asked.insert(name.clone()) {
                put(json!({ "fileByFilename": name }));
            }
        }
        body
    }

    /// Takes in the body of the answer.
    ///
    /// # Errors
    /// The server refuses, or its answer cannot be read.
    pub fn answered(&mut self, body: &[u8]) -> Result<(), SchemaError> {
        if body.is_empty() {
            return Err(SchemaError::new("the server has no reflection"));
        }
        let none = || SchemaError::new("the answer of the server's reflection cannot be understood");
        let known = self.files.len();
        self.answers += 1;
        for message in unframed(body, true) {
            let mut text = Vec::new();
            let message = message.map_err(|error| SchemaError::new(&error))?;
            if !decode(&self.method.output(), &message, &mut text) {
                return Err(none());
            }
            let answer: Value = serde_json::from_slice(&text).map_err(|_| none())?;
            if let Some(said) = answer.pointer("/errorResponse/errorMessage").and_then(Value::as_str) {
                return Err(SchemaError::new(&format!("the server's reflection refuses: {said}")));
            }
            let files = answer.pointer("/fileDescriptorResponse/fileDescriptorProto");
            for file in files.and_then(Value::as_array).into_iter().flatten() {
                let bytes = file.as_str().and_then(|text| STANDARD.decode(text).ok()).ok_or_else(none)?;
                let file = FileDescriptorProto::decode(&bytes[..]).map_err(|_| none())?;
                self.files.insert(file.name().to_owned(), file);
            }
        }
        if self.files.is_empty() {
            return Err(none());
        }
        if self.files.len() == known || self.files.len() > MOST_FILES || self.answers > MOST_ANSWERS {
            return Err(SchemaError::new("the server's reflection names imports without an end"));
        }
        Ok(())
    }

    /// All files so far, as a descriptor set.
    pub fn into_descriptor_set(self) -> Vec<u8> {
        FileDescriptorSet { file: self.files.into_values().collect() }.encode_to_vec()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::length_prefixed::Messages;

    use super::*;

    /// The answer of a server that knows these files, to each question.
    fn answer(reflection: &Reflection, body: &[u8], schema: &Schema) -> Vec<u8> {
        let files = schema.files();
        let mut out = Vec::new();
        for question in Messages::new(body) {
            let asked =
                prost_reflect::DynamicMessage::decode(reflection.method.input(), question.unwrap()).unwrap();
            let asked = serde_json::to_value(&asked).unwrap();
            let text = |key: &str| asked[key].as_str().unwrap_or_default().to_owned();
            let file = files
                .iter()
                .find(|file| {
                    file.name == text("fileByFilename")
                        || file.symbols.contains(&text("fileContainingSymbol"))
                })
                .unwrap();
            let json = json!({ "fileDescriptorResponse": { "fileDescriptorProto": [STANDARD.encode(&file.descriptor)] } });
            let json = json.to_string();
            let mut reader = serde_json::Deserializer::from_str(&json);
            let message =
                prost_reflect::DynamicMessage::deserialize(reflection.method.output(), &mut reader).unwrap();
            plimsoll_wire::length_prefixed::write_message(&message.encode_to_vec(), &mut out);
        }
        out
    }

    #[test]
    fn a_service_is_asked_for_file_by_file() {
        let schema = super::super::schema::tests::schema();
        let mut reflection = Reflection::of_service("shop.v1.Orders");
        let mut rounds = 0;
        loop {
            let questions = reflection.questions();
            if questions.is_empty() {
                break;
            }
            rounds += 1;
            let answered = answer(&reflection, &questions, &schema);
            reflection.answered(&answered).unwrap();
        }
        assert_eq!(rounds, 2, "the service, and what it imports");
        let again = Schema::of_descriptor_set(&reflection.into_descriptor_set()).unwrap();
        assert_eq!(again.methods(), schema.methods());
    }

    /// Each answer has another import: of a file that is known under another name, or of a new one.
    #[test]
    fn imports_without_an_end_are_refused() {
        for named in [|_| "a.proto".to_owned(), |number: u32| format!("{number}.proto")] {
            let mut reflection = Reflection::of_service("s.S");
            let answers = (0..u32::MAX).map(|number| {
                assert!(!reflection.questions().is_empty());
                let (name, dependency) = (Some(named(number)), vec![format!("{}.proto", number + 1)]);
                let file = FileDescriptorProto { name, dependency, ..FileDescriptorProto::default() };
                let files = [STANDARD.encode(file.encode_to_vec())];
                let json = json!({ "fileDescriptorResponse": { "fileDescriptorProto": files } }).to_string();
                let mut reader = serde_json::Deserializer::from_str(&json);
                let output = reflection.method.output();
                let message = prost_reflect::DynamicMessage::deserialize(output, &mut reader).unwrap();
                let mut body = Vec::new();
                plimsoll_wire::length_prefixed::write_message(&message.encode_to_vec(), &mut body);
                reflection.answered(&body)
            });
            let answers: Vec<_> = answers.take(200).take_while(Result::is_ok).collect();
            assert!(answers.len() <= MOST_ANSWERS as usize, "{}", answers.len());
            let error = reflection.answered(b"\0\0\0\0\0").unwrap_err().to_string();
            assert!(error.contains("without an end"), "{error}");
        }
    }

    #[test]
    fn refusals_are_told() {
        let mut reflection = Reflection::of_service("shop.v1.Orders");
        for (body, said) in [
            (&b""[..], "the server has no reflection"),
            (b"<html>", "the body is no sequence of length-prefixed messages"),
            (b"\0\0\0\0\x08\x3a\x06\x08\x05\x12\x02no", "the server's reflection refuses: no"),
            (b"\0\0\0\0\0", "cannot be understood"),
            (b"\0\0\0\0\x05\x22\x03\x0a\x01x", "cannot be understood"),
        ] {
            let error = reflection.answered(body).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
