//! Descriptors of services, and messages by them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read as _};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_wire::length_prefixed::{Messages, write_frame, write_message};
use prost_reflect::prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FileDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    ServiceDescriptor,
};
use protox::Compiler;
use protox::file::{File, FileResolver, GoogleFileResolver};
use serde_json::Value;

/// Reads a file by its path.
type ReadFile<'f> = &'f dyn Fn(&str) -> io::Result<Vec<u8>>;

/// A fault in descriptors or in a message, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError(String);

impl SchemaError {
    pub(super) fn new(message: &str) -> Self {
        Self(message.to_owned())
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SchemaError {}

/// The descriptors of services.
#[derive(Clone, Debug)]
pub struct Schema(DescriptorPool);

/// Files of protobuf that were read so far, by the names under which they are imported.
#[derive(Clone, Default)]
struct Sources(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    texts: HashMap<String, String>,
    /// The last name that was asked for, is not among them and is not a file of protobuf itself.
    missing: Option<String>,
}

impl FileResolver for Sources {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.texts.get(name) {
            Some(text) => File::from_source(name, text),
            // Files of protobuf itself need not be there.
            None => GoogleFileResolver::new().open_file(name).inspect_err(|_| {
                known.missing = Some(name.to_owned());
            }),
        }
    }
}

impl Schema {
    /// Compiles a file of protobuf, and those that it imports, which `read` reads by their paths: they are
    /// beside it.
    ///
    /// # Errors
    /// If a file cannot be read, or is not protobuf: the message names the file, and the line if there is
    /// one.
    pub fn of_proto(path: &str, read: ReadFile<'_>) -> Result<Self, SchemaError> {
        let (folder, name) = path.rfind('/').map_or(("", path), |slash| path.split_at(slash + 1));
        let sources = Sources::default();
        let known = || sources.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wanted = name.to_owned();
        let mut unreadable = Vec::new();
        // The compiler asks for files in its own time, and `read` belongs to the caller's: each that it
        // misses is read, and it starts over.
        loop {
            let file = format!("{folder}{wanted}");
            match read(&file) {
                Ok(content) => {
                    let text = String::from_utf8_lossy(&content).into_owned();
                    known().texts.insert(wanted.clone(), text);
                }
                Err(error) => unreadable.push((wanted.clone(), format!("cannot read `{file}`: {error}"))),
            }
            known().missing = None;
            let compiled = Compiler::with_file_resolver(sources.clone())
                .include_imports(true)
                .open_file(name)
                .map(|compiler| compiler.descriptor_pool());
            let missing = known().missing.take();
            match (compiled, missing) {
                (Ok(pool), _) => return Ok(Self(pool)),
                (Err(error), None) => return Err(SchemaError(in_words(&error))),
                (Err(_), Some(missing)) => match unreadable.iter().find(|(name, _)| *name == missing) {
                    Some((_, why)) => return Err(SchemaError(why.clone())),
                    None => wanted = missing,
                },
            }
        }
    }

    /// Reads a descriptor set that a plan has in place of a file's name: `data:;base64,…` (RFC 2397).
    pub(super) fn inline(text: &str) -> Option<Result<Self, SchemaError>> {
        let base64 = text.strip_prefix(INLINE)?;
        let content =
            STANDARD.decode(base64).map_err(|_| SchemaError::new("the descriptor set is not base64"));
        Some(content.and_then(|content| Self::of_descriptor_set(&content)))
    }

    /// Reads a descriptor set.
    ///
    /// # Errors
    /// If the content is not one, or lacks an import.
    pub fn of_descriptor_set(content: &[u8]) -> Result<Self, SchemaError> {
        DescriptorPool::decode(content).map(Self).map_err(|error| SchemaError(error.to_string()))
    }

    /// The files of the schema, those of protobuf itself that they import included, each behind its imports.
    pub fn files(&self) -> Vec<FileDescription> {
        let described = |file: FileDescriptor| {
            let all: Vec<ServiceDescriptor> =
                self.0.services().filter(|service| service.parent_file() == file).collect();
            let services: Vec<String> = all.iter().map(|service| service.full_name().to_owned()).collect();
            let methods = all.iter().flat_map(|service| {
                service.methods().map(|method| method.full_name().to_owned()).collect::<Vec<_>>()
            });
            let of_file = |message: &MessageDescriptor| message.parent_file() == file;
            let messages = self.0.all_messages().filter(of_file);
            let enums = self.0.all_enums().filter(|one| one.parent_file() == file);
            let symbols = services.iter().cloned().chain(methods);
            let symbols = symbols.chain(messages.map(|message| message.full_name().to_owned()));
            let symbols = symbols.chain(enums.map(|one| one.full_name().to_owned())).collect();
            FileDescription {
                name: file.name().to_owned(),
                imports: file.dependencies().map(|import| import.name().to_owned()).collect(),
                services,
                symbols,
                descriptor: file.encode_to_vec(),
            }
        };
        self.0.files().map(described).collect()
    }

    /// The methods of all services, in their order.
    pub fn methods(&self) -> Vec<MethodDescription> {
        let described = |method: MethodDescriptor| MethodDescription {
            service: method.parent_service().full_name().to_owned(),
            name: method.name().to_owned(),
            client_streams: method.is_client_streaming(),
            server_streams: method.is_server_streaming(),
            example: example(&method.input()),
        };
        let methods = self.0.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        methods.map(described).collect()
    }

    /// The method at a path `/package.Service/Method`.
    ///
    /// # Errors
    /// If there is no such method: the message lists the existing ones.
    pub(super) fn method(&self, path: &str) -> Result<MethodDescriptor, SchemaError> {
        let names = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let found = names.and_then(|(service, method)| {
            let service = self.0.get_service_by_name(service)?;
            service.methods().find(|known| known.name() == method)
        });
        found.ok_or_else(|| {
            let paths = self.0.services().flat_map(|service| {
                let name = service.full_name().to_owned();
                service.methods().map(move |method| format!("/{name}/{}", method.name())).collect::<Vec<_>>()
            });
            let mut paths: Vec<String> = paths.collect();
            let more = if paths.len() > SHOWN { ", …" } else { "" };
            paths.truncate(SHOWN);
            let known = match paths.is_empty() {
                true => "the file has no service".to_owned(),
                false => format!("there are {}{more}", paths.join(", ")),
            };
            SchemaError(format!("no method has the path `{path}`: {known}"))
        })
    }
}

/// One file of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDescription {
    /// The name under which it is imported.
    pub name: String,
    /// The names of the files that it imports.
    pub imports: Vec<String>,
    /// The full names of its services.
    pub services: Vec<String>,
    /// The full names of its services, their methods, its messages and its enums.
    pub symbols: Vec<String>,
    /// The file as an encoded `google.protobuf.FileDescriptorProto`.
    pub descriptor: Vec<u8>,
}

/// One method of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodDescription {
    /// The full name of its service.
    pub service: String,
    /// Name of the method in the service.
    pub name: String,
    /// A message that it takes, made up from the type: a value for each field that does not repeat the
    /// message itself.
    pub example: Value,
    /// Messages to the server are a stream.
    pub client_streams: bool,
    /// Messages from the server are a stream.
    pub server_streams: bool,
}

impl MethodDescription {
    /// Returns the path of the method, `/package.Service/Method`.
    pub fn path(&self) -> String {
        format!("/{}/{}", self.service, self.name)
    }
}

/// Depth of an example message at most: types may contain themselves.
const DEEPEST: usize = 4;

/// A message of this type as JSON, with something in each field.
fn example(message: &MessageDescriptor) -> Value {
    let value = serde_json::to_value(made_up(message, &mut vec![message.full_name().to_owned()]));
    value.unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
}

fn made_up(descriptor: &MessageDescriptor, within: &mut Vec<String>) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    // These have a form of their own in JSON, and mean nothing without their content.
    let is_any = ["google.protobuf.Any", "google.protobuf.Struct", "google.protobuf.Value"];
    if is_any.contains(&descriptor.full_name()) {
        return message;
    }
    for field in descriptor.fields() {
        let is_other = field.containing_oneof().is_some_and(|one| one.fields().next() != Some(field.clone()));
        if is_other {
            continue;
        }
        let Some(value) = made_up_value(&field.kind(), field.name(), within) else { continue };
        let value = match field.is_map() {
            true => continue,
            false if field.is_list() => prost_reflect::Value::List(vec![value]),
            false => value,
        };
        message.set_field(&field, value);
    }
    message
}

fn made_up_value(kind: &Kind, name: &str, within: &mut Vec<String>) -> Option<prost_reflect::Value> {
    use prost_reflect::Value as Reflected;
    Some(match kind {
        Kind::Double => Reflected::F64(1.0),
        Kind::Float => Reflected::F32(1.0),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Reflected::I32(1),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Reflected::I64(1),
        Kind::Uint32 | Kind::Fixed32 => Reflected::U32(1),
        Kind::Uint64 | Kind::Fixed64 => Reflected::U64(1),
        Kind::Bool => Reflected::Bool(true),
        Kind::String => Reflected::String(name.to_owned()),
        Kind::Bytes => Reflected::Bytes(name.as_bytes().to_vec().into()),
        Kind::Enum(one) => {
            let values: Vec<i32> = one.values().map(|value| value.number()).collect();
            // Zero is often "unspecified".
            Reflected::EnumNumber(*values.iter().find(|value| **value != 0).or(values.first())?)
        }
        Kind::Message(inner) => {
            let name = inner.full_name().to_owned();
            if within.len() >= DEEPEST || within.contains(&name) {
                return None;
            }
            within.push(name);
            let message = made_up(inner, within);
            within.pop();
            Reflected::Message(message)
        }
    })
}

/// Prefix of a descriptor set that is written in the plan itself, as a data URL.
const INLINE: &str = "data:;base64,";

/// A descriptor set in a form that a plan can have in place of a file's name.
pub(super) fn inlined(set: &[u8]) -> String {
    format!("{INLINE}{}", STANDARD.encode(set))
}

/// Methods that an error names.
const SHOWN: usize = 8;

/// The fault in a file, with its place.
fn in_words(error: &protox::Error) -> String {
    let place = error.file().map_or(String::new(), |file| format!("`{file}`: "));
    let text = error.to_string();
    let hint = match text.contains("found 'edition'") {
        true => {
            ": editions are not read here; `protoc --include_imports --descriptor_set_out` makes a descriptor set of it"
        }
        false => "",
    };
    format!("{place}{text}{hint}")
}

/// Bytes of a message that was compressed, at most: more is an attack.
const LONGEST_MESSAGE: u64 = 64 << 20;

/// The message that these bytes are by gzip; `None` if they are none, or too long.
pub(super) fn unzipped(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(bytes).take(LONGEST_MESSAGE + 1);
    reader.read_to_end(&mut message).ok()?;
    (message.len() as u64 <= LONGEST_MESSAGE).then_some(message)
}

/// Appends the message that is this JSON, with its prefix, to `out`, compressed by gzip or not.
///
/// # Errors
/// If the JSON is no such message.
pub(super) fn encode(
    method: &MethodDescriptor,
    json: &str,
    gzip: bool,
    out: &mut Vec<u8>,
) -> Result<(), SchemaError> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let message = DynamicMessage::deserialize(method.input(), &mut reader);
    let message = message.and_then(|message| reader.end().map(|()| message));
    let message = message.map_err(|error| no_message(&method.input(), &error.to_string()))?;
    let message = message.encode_to_vec();
    if !gzip {
        write_message(&message, out);
        return Ok(());
    }
    write_frame(true, &zipped(&message), out);
    Ok(())
}

/// The error of a JSON value that is no message of this type.
pub(super) fn no_message(descriptor: &MessageDescriptor, what: &str) -> SchemaError {
    // The place is that in the generated JSON, which is not what was typed.
    let what = what.split(" at line ").next().unwrap_or(what);
    SchemaError(format!("the message is no `{}`: {what}", descriptor.full_name()))
}

/// A message, compressed by gzip.
pub(super) fn zipped(message: &[u8]) -> Vec<u8> {
    let mut zipped = Vec::new();
    // Writing to a vector does not fail, nor does reading from a slice.
    let _ = flate2::read::GzEncoder::new(message, flate2::Compression::default()).read_to_end(&mut zipped);
    zipped
}

/// The messages of a body, decompressed where they may be compressed.
pub(super) fn unframed(body: &[u8], gzip: bool) -> impl Iterator<Item = Result<Cow<'_, [u8]>, String>> {
    let mut messages = Messages::new(body).allow_compressed(gzip);
    std::iter::from_fn(move || {
        let message = messages.next()?.map_err(|error| error.describe().to_owned());
        Some(message.and_then(|message| match messages.is_compressed() {
            false => Ok(message.into()),
            true => match unzipped(message) {
                Some(message) => Ok(message.into()),
                None => Err("a compressed message is not gzip, or too long".to_owned()),
            },
        }))
    })
}

/// Appends a message of this type as JSON to `out`. Returns `false` if it is not such a message.
pub(super) fn decode(descriptor: &MessageDescriptor, message: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(message) = DynamicMessage::decode(descriptor.clone(), message) else { return false };
    let options = prost_reflect::SerializeOptions::new().skip_default_fields(false);
    let mut writer = serde_json::Serializer::new(out);
    message.serialize_with_options(&mut writer, &options).is_ok()
}

/// The elements of an array of messages; an object is one of its own.
///
/// # Errors
/// If the text is neither, or the array is empty.
pub(super) fn messages_of(text: &[u8]) -> Result<Vec<Value>, SchemaError> {
    match serde_json::from_slice(text) {
        Ok(Value::Array(messages)) if !messages.is_empty() => Ok(messages),
        Ok(Value::Array(_)) => Err(SchemaError("the array has no message".to_owned())),
        Ok(message @ Value::Object(_)) => Ok(vec![message]),
        Ok(_) => {
            Err(SchemaError("the file is no JSON object, and no array of them: write [{…}, {…}]".to_owned()))
        }
        Err(error) => Err(SchemaError(format!("the file is not JSON: {error}"))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A service with two imports: a file of its own, and one of protobuf itself.
    pub(crate) fn schema() -> Schema {
        let read = |path: &str| match path {
            "api/shop.proto" => Ok(SHOP.as_bytes().to_vec()),
            "api/money.proto" => Ok(MONEY.as_bytes().to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        Schema::of_proto("api/shop.proto", &read).unwrap()
    }

    const SHOP: &str = r#"syntax = "proto3";
package shop.v1;
import "money.proto";
import "google/protobuf/timestamp.proto";
service Orders {
  rpc Place(Order) returns (Receipt);
  rpc Watch(Order) returns (stream Receipt);
}
message Order {
  string id = 1;
  repeated uint32 counts = 2;
  money.Amount amount = 3;
  google.protobuf.Timestamp at = 4;
  map<string, string> labels = 5;
  enum Kind { PLAIN = 0; GIFT = 1; }
  Kind kind = 6;
  bytes blob = 7;
}
message Receipt { string id = 1; int64 total = 2; bool paid = 3; }
"#;
    const MONEY: &str = r#"syntax = "proto3";
package money;
message Amount { string currency = 1; sint64 cents = 2; }
"#;

    #[test]
    fn messages_are_those_of_the_json_mapping() {
        let method = schema().method("/shop.v1.Orders/Place").unwrap();
        let mut out = Vec::new();
        let json = r#"{"id":"a","counts":[1,300],"amount":{"currency":"EUR","cents":-2},
            "at":"1970-01-01T00:00:01Z","labels":{"k":"v"},"kind":"GIFT","blob":"AQI="}"#;
        encode(&method, json, false, &mut out).unwrap();
        // By hand, from the wire format.
        let expected: &[u8] = b"\x0a\x01a\x12\x03\x01\xac\x02\x1a\x07\x0a\x03EUR\x10\x03\x22\x02\x08\x01\x2a\x06\x0a\x01k\x12\x01v\x30\x01\x3a\x02\x01\x02";
        assert_eq!(out[..5], [0, 0, 0, 0, expected.len() as u8]);
        assert_eq!(out[5..], *expected);
        for (json, said) in [
            ("{\"nothing\":1}", "the message is no `shop.v1.Order`: unrecognized field name 'nothing'"),
            ("{\"id\":1}", "the message is no `shop.v1.Order`: invalid type"),
            ("[]", "the message is no `shop.v1.Order`: invalid type"),
        ] {
            let error = encode(&method, json, false, &mut Vec::new()).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn compressed_messages_are_the_same() {
        let method = schema().method("/shop.v1.Orders/Place").unwrap();
        let (mut plain, mut zipped) = (Vec::new(), Vec::new());
        for (gzip, out) in [(false, &mut plain), (true, &mut zipped)] {
            encode(&method, r#"{"id":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#, gzip, out)
                .unwrap();
        }
        assert_eq!((plain[0], zipped[0]), (0, 1));
        assert_eq!(unzipped(&zipped[5..]).unwrap(), plain[5..]);
        assert_eq!(unzipped(b"no gzip"), None);
        assert_eq!(unzipped(&zipped[5..20]), None);
    }

    #[test]
    fn answers_are_read_as_json() {
        let method = schema().method("/shop.v1.Orders/Place").unwrap();
        let mut json = Vec::new();
        assert!(decode(&method.output(), b"\x0a\x01a\x10\x05", &mut json));
        let json: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json, serde_json::json!({"id": "a", "total": "5", "paid": false}));
        assert!(!decode(&method.output(), b"\x0a\x09a", &mut Vec::new()));
    }

    #[test]
    fn methods_and_files_are_described() {
        let schema = schema();
        let [place, watch] = &schema.methods()[..] else { panic!("{:?}", schema.methods()) };
        assert_eq!((place.path().as_str(), place.server_streams), ("/shop.v1.Orders/Place", false));
        assert!(watch.server_streams && !watch.client_streams);
        let expected = serde_json::json!({
            "id": "id", "counts": [1], "amount": {"currency": "currency", "cents": "1"},
            "at": "1970-01-01T00:00:01.000000001Z", "kind": "GIFT", "blob": "YmxvYg==",
        });
        assert_eq!(place.example, expected);
        encode(
            &schema.method("/shop.v1.Orders/Place").unwrap(),
            &expected.to_string(),
            false,
            &mut Vec::new(),
        )
        .unwrap();
        let files = schema.files();
        let shop = files.iter().find(|file| file.name == "shop.proto").unwrap();
        assert_eq!(shop.imports, ["money.proto", "google/protobuf/timestamp.proto"]);
        assert_eq!(shop.services, ["shop.v1.Orders"]);
        for symbol in ["shop.v1.Orders.Watch", "shop.v1.Receipt", "shop.v1.Order.Kind"] {
            assert!(shop.symbols.iter().any(|known| known == symbol), "{symbol}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        for path in ["/shop.v1.Orders/Cancel", "/shop.v1/Place", "/", "shop.v1.Orders/Place"] {
            let error = schema().method(path).unwrap_err().to_string();
            let known = "there are /shop.v1.Orders/Place, /shop.v1.Orders/Watch";
            assert_eq!(error, format!("no method has the path `{path}`: {known}"));
        }
        let read = |path: &str| match path {
            "bad.proto" => Ok(b"syntax = \"proto3\";\nmessage {}".to_vec()),
            "types.proto" => Ok(b"syntax = \"proto3\"; import \"google/protobuf/timestamp.proto\";\n\
                message M { Nothing n = 1; }"
                .to_vec()),
            "lacks.proto" => Ok(b"syntax = \"proto3\"; import \"none.proto\";".to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        for (path, said) in [
            ("bad.proto", "bad.proto"),
            ("types.proto", "Nothing"),
            ("lacks.proto", "none.proto"),
            ("missing.proto", "missing.proto"),
        ] {
            let error = Schema::of_proto(path, &read).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(Schema::of_descriptor_set(b"no descriptors").is_err());
        assert!(Schema::inline("file.pb").is_none());
        assert!(Schema::inline("data:;base64,!").unwrap().is_err());
        assert!(Schema::inline(&inlined(b"")).unwrap().unwrap().methods().is_empty());
    }
}
