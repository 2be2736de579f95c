use plimsoll_scenario::Code as _;
use serde_json::json;

use super::super::Schema;
use super::super::schema::encode;
use super::*;

const PROTO: &str = r#"syntax = "proto3";
package all;
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/any.proto";
service Service { rpc Send(Everything) returns (Everything); }
message Everything {
  string text = 1; bytes blob = 2; bool flag = 3; Color color = 4;
  int32 i32 = 5; int64 i64 = 6; uint32 u32 = 7; uint64 u64 = 8;
  sint32 s32 = 9; sint64 s64 = 10;
  fixed32 f32 = 11; fixed64 f64 = 12; sfixed32 sf32 = 13; sfixed64 sf64 = 14;
  float real = 15; double wide = 16;
  repeated string texts = 17; repeated int32 packed = 18; repeated int32 spread = 19 [packed = false];
  map<string, string> labels = 20; map<int32, Inner> inners = 21;
  Inner inner = 22; repeated Inner list = 23;
  oneof choice { string one = 24; int32 other = 25; }
  optional string maybe = 26; google.protobuf.Timestamp at = 27; google.protobuf.Struct free = 28;
  google.protobuf.StringValue wrapped = 29; google.protobuf.Any any = 30; repeated Color colors = 31;
  map<bool, double> marks = 32; repeated google.protobuf.Timestamp times = 33;
}
message Inner { string name = 1; Inner deeper = 2; int64 number = 16; }
enum Color { NONE = 0; RED = 1; BLUE = -2; }
"#;

const OLD: &str = r#"syntax = "proto2";
package old;
service Service { rpc Send(Order) returns (Order); }
message Order {
  required string id = 1; optional Item item = 2; repeated Item items = 3;
  repeated group Line = 4 { optional string text = 1; }
  extensions 100 to 200;
}
message Item { required int32 number = 1; optional string name = 2 [default = "x"]; }
extend Order { optional string note = 100; }
"#;

fn method(text: &str, path: &str) -> MethodDescriptor {
    Schema::of_proto("a.proto", &|_| Ok(text.as_bytes().to_vec())).unwrap().method(path).unwrap()
}

/// The shape of a value in which texts that begin with `$` vary.
fn shape(value: &Value, texts: &mut Vec<String>) -> Shape {
    match value {
        Value::String(text) => match text.strip_prefix('$') {
            Some(text) => {
                texts.push(text.to_owned());
                Shape::Text(texts.len() - 1)
            }
            None => Shape::Fixed(value.clone()),
        },
        Value::Array(items) => Shape::list(items.iter().map(|item| shape(item, texts)).collect()),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let name = shape(&Value::String(name.clone()), texts);
                (name, shape(value, texts))
            });
            Shape::object(members.collect())
        }
        _ => Shape::Fixed(value.clone()),
    }
}

/// The value without the marks of what varies.
fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('$') {
            Some(text @ ("true" | "false")) => Value::Bool(text == "true"),
            text => Value::String(text.unwrap_or(value.as_str().unwrap_or_default()).to_owned()),
        },
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => {
            let bare = |name: &String| name.strip_prefix('$').unwrap_or(name).to_owned();
            Value::Object(members.iter().map(|(name, value)| (bare(name), plain(value))).collect())
        }
        _ => value.clone(),
    }
}

fn coded(method: &MethodDescriptor, value: &Value, gzip: bool) -> Result<Vec<u8>, String> {
    let mut texts = Vec::new();
    let shape = shape(value, &mut texts);
    let code =
        MessageCode::compile(method, &[shape], texts.len(), gzip).map_err(|error| error.to_string())?;
    for (part, text) in texts.iter().enumerate() {
        if let Some(reason) = code.unfit(part, text.as_bytes()) {
            return Err(format!("`{text}` {reason}"));
        }
    }
    let mut out = b"before".to_vec();
    let mut asked = Vec::new();
    code.encode(
        &mut |part, out| {
            asked.push(part);
            out.extend_from_slice(texts[part].as_bytes());
        },
        &mut out,
    );
    asked.sort_unstable();
    assert_eq!(asked, (0..texts.len()).collect::<Vec<_>>(), "each part once");
    let longest = code.longest() + texts.iter().map(String::len).sum::<usize>();
    assert!(gzip || out.len() <= longest + 6, "{} bytes where {longest} are the most", out.len());
    Ok(out.split_off(6))
}

#[test]
fn messages_that_vary_are_those_of_the_json_mapping() {
    let method = method(PROTO, "/all.Service/Send");
    let long = format!("${}", "x".repeat(300));
    for value in [
        json!({}),
        json!({"text": "$a"}),
        json!({"text": "$"}),
        json!({"text": "constant", "blob": "$AQI=", "flag": "$true"}),
        json!({"flag": "$false", "i32": 5}),
        json!({"blob": "$AQI", "text": long}),
        json!({"blob": "$_-8="}),
        json!({"color": "$BLUE", "i32": "$-5", "i64": "$-9223372036854775808", "u32": "$4294967295"}),
        json!({"u64": "$18446744073709551615", "s32": "$-3", "s64": "$9", "f32": "$7", "f64": "$8"}),
        json!({"sf32": "$-7", "sf64": "$-8", "real": "$1.5", "wide": "$-2.25e3"}),
        json!({"i32": "$0", "i64": "$0", "u64": "$0", "real": "$0", "wide": "$0", "f32": "$0", "color": "$NONE"}),
        json!({"wide": "$NaN", "real": "$-Infinity"}),
        json!({"texts": ["a", "$b", "", "$"], "packed": [1, "$300", -1], "spread": ["$7", 0]}),
        json!({"colors": ["RED", "$BLUE", 0]}),
        json!({"labels": {"k": "$v"}}),
        json!({"labels": {"$k": "v"}}),
        json!({"inners": {"5": {"name": "$a"}}}),
        json!({"inner": {"name": "a", "deeper": {"deeper": {"name": "$b", "number": "7"}}}, "text": "last"}),
        json!({"inner": {"deeper": {"name": long, "number": "$1"}}}),
        json!({"list": [{"name": "$a"}, {}, {"number": "$3"}]}),
        json!({"one": "$a"}),
        json!({"other": "$0"}),
        json!({"maybe": "$"}),
        json!({"at": "$2024-01-02T03:04:05.5Z", "times": ["2024-01-02T03:04:05Z", "$1970-01-01T00:00:01Z"]}),
        json!({"free": {"a": ["$b", 1, {"c": "$d"}], "$e": null}}),
        json!({"wrapped": "$x"}),
        json!({"wrapped": "$"}),
        json!({"any": {"@type": "type.googleapis.com/all.Inner", "name": "$n"}}),
        json!({"marks": {"true": 1.5}, "text": "$a"}),
        json!({"list": null, "inner": null, "text": "$a"}),
    ] {
        let json = plain(&value).to_string();
        let mut expected = Vec::new();
        encode(&method, &json, false, &mut expected).unwrap_or_else(|error| panic!("{json}: {error}"));
        let found = coded(&method, &value, false).unwrap_or_else(|error| panic!("{value}: {error}"));
        let read = |bytes: &[u8]| {
            let message = DynamicMessage::decode(method.input(), &bytes[PREFIX..]).unwrap();
            serde_json::to_value(message).unwrap()
        };
        // Entries of maps and elements with a value of zero may be written in two ways.
        assert_eq!(read(&found), read(&expected), "{value}");
        // Entries of maps have no order.
        if !["labels", "inners", "free"].iter().any(|map| json.contains(map)) {
            assert_eq!(found, expected, "{value}");
        }
        let zipped = coded(&method, &value, true).unwrap();
        let unzipped = super::super::schema::unzipped(&zipped[PREFIX..]).unwrap();
        assert_eq!((zipped[0], read(&[&[0; PREFIX], &unzipped[..]].concat())), (1, read(&found)), "{value}");
    }
}

/// Symptom: a method that takes a text or a time as its message was refused every one.
#[test]
fn a_message_may_have_a_form_of_its_own() {
    const PROTO: &str = r#"syntax = "proto3"; package own;
import "google/protobuf/empty.proto"; import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto"; import "google/protobuf/wrappers.proto";
service S { rpc None(google.protobuf.Empty) returns (google.protobuf.Empty);
  rpc At(google.protobuf.Timestamp) returns (google.protobuf.Empty);
  rpc Text(google.protobuf.StringValue) returns (google.protobuf.Empty);
  rpc Any(google.protobuf.Struct) returns (google.protobuf.Empty); }
"#;
    for (path, value) in [
        ("/own.S/None", json!({})),
        ("/own.S/At", json!("1970-01-01T00:00:05Z")),
        ("/own.S/At", json!("$1970-01-01T00:00:05Z")),
        ("/own.S/Text", json!("a")),
        ("/own.S/Text", json!("$a")),
        ("/own.S/Any", json!({"a": ["$b", 1]})),
    ] {
        let method = method(PROTO, path);
        let mut expected = Vec::new();
        encode(&method, &plain(&value).to_string(), false, &mut expected).unwrap();
        assert_eq!(coded(&method, &value, false).unwrap(), expected, "{path} {value}");
    }
    let error = coded(&method(PROTO, "/own.S/At"), &json!("$soon"), false).unwrap_err();
    assert!(error.contains("is no google.protobuf.Timestamp"), "{error}");
}

#[test]
fn whole_numbers_may_have_an_exponent_or_a_point() {
    let method = method(PROTO, "/all.Service/Send");
    let found = coded(&method, &json!({"i32": "$1e3", "u64": "$2.0"}), false);
    assert_eq!(found, coded(&method, &json!({"i32": 1000, "u64": "2", "text": "$"}), false));
}

#[test]
fn what_is_no_message_is_told() {
    let method = method(PROTO, "/all.Service/Send");
    for (value, said) in [
        (json!({"nothing": "$a"}), "unrecognized field name 'nothing'"),
        (json!({"nothing": 1, "text": "$a"}), "unrecognized field name 'nothing'"),
        (json!({"text": 5, "blob": "$"}), "invalid type"),
        (json!({"inner": "$a"}), "the field `inner` wants an object, and has a text"),
        (json!({"inner": {"name": ["$a"]}}), "the field `name` has an array"),
        (json!({"texts": "$a"}), "the field `texts` wants an array, and has a text"),
        (json!({"labels": ["$a"]}), "the field `labels` wants an object, and has an array"),
        (json!({"one": "$a", "other": 5}), "are of the oneof `choice`"),
        (json!({"i32": "$a"}), "`a` is no int32, as the field `all.Everything.i32` wants it"),
        (json!({"i32": "$2147483648"}), "is no int32"),
        (json!({"u64": "$-1"}), "is no uint64"),
        (json!({"u32": "$1.5"}), "is no uint32"),
        (json!({"real": "$1e99"}), "is no float"),
        (json!({"wide": "$inf"}), "is no double"),
        (json!({"flag": "$1"}), "is no bool"),
        (json!({"color": "$GREEN"}), "is no name of the enum"),
        (json!({"blob": "$!"}), "is not base64"),
        (json!({"at": "$yesterday"}), "is no google.protobuf.Timestamp"),
        (json!({"packed": [1, "$x"]}), "is no int32"),
        (json!({"packed": ["x", "$1"]}), "the value `x` of the field `packed` is no int32"),
        (json!({"any": {"@type": "type.googleapis.com/all.None", "name": "$n"}}), "with empty texts"),
        (json!(["$a"]), "the message is no `all.Everything`: it is an array, and no object"),
    ] {
        let error = coded(&method, &value, false).expect_err(&value.to_string());
        assert!(error.contains(said), "{value}: {error}");
    }
    let not_utf8 = MessageCode::compile(&method, &[shape(&json!({"text": "$a"}), &mut Vec::new())], 1, false);
    assert!(not_utf8.unwrap().unfit(0, b"\xff").is_some_and(|reason| reason.starts_with("is not UTF-8")));
}

#[test]
fn required_fields_groups_and_extensions_are_those_of_proto2() {
    let method = method(OLD, "/old.Service/Send");
    let required = |value: Value| coded(&method, &value, false);
    for (value, missing) in [
        (json!({}), "`id`"),
        (json!({"id": "a", "item": {}}), "`number`"),
        (json!({"id": "$a", "items": [{"number": 1}, {"name": "$b"}]}), "`number`"),
    ] {
        let error = required(value).unwrap_err();
        assert!(error.contains(&format!("the required field {missing} is missing")), "{error}");
    }
    let error = required(json!({"id": "a", "line": [{"text": "$a"}]})).unwrap_err();
    assert!(error.contains("takes no variables"), "{error}");
    for value in [
        json!({"id": "$a", "line": [{"text": "b"}], "[old.note]": "c", "item": {"number": 0}}),
        json!({"id": "$", "items": [{"number": "$0", "name": "$x"}]}),
    ] {
        let mut expected = Vec::new();
        encode(&method, &plain(&value).to_string(), false, &mut expected).unwrap();
        assert_eq!(coded(&method, &value, false).unwrap(), expected, "{value}");
    }
}
