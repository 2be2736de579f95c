//! The schema of plan files agrees with the reader.

use std::collections::BTreeSet;

use plimsoll_document::Document;
use serde_json::{Value, json};

use crate::document::parts::PARTS;
use crate::document::reading::read;

/// Calls `see` with every property of the schema: the type that has it, its name and its schema.
fn each_property(schema: &Value, see: &mut dyn FnMut(&str, &str, &Value)) {
    let mut types = vec![("Document", schema)];
    for (name, definition) in schema["$defs"].as_object().expect("definitions") {
        types.push((name, definition));
    }
    for (name, definition) in types {
        let long = definition["anyOf"].as_array().and_then(|forms| forms.last()).unwrap_or(definition);
        let properties = long["properties"].as_object().unwrap_or_else(|| panic!("{name} has properties"));
        assert_eq!(long["additionalProperties"], json!(false), "{name}");
        for (property, schema) in properties {
            see(name, property, schema);
        }
    }
}

#[test]
fn every_property_and_type_has_a_description() {
    let schema = Document::schema(PARTS.document());
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let mut count = 0;
    each_property(&schema, &mut |of, name, schema| {
        count += 1;
        assert!(schema["description"].as_str().is_some_and(|text| text.len() > 3), "{of}.{name}: {schema}");
    });
    assert!(count > 120, "{count} properties were seen");
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        assert!(definition["description"].is_string(), "{name}");
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&schema).unwrap());
}

/// The least value of a schema.
fn least(root: &Value, schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let definition = &root[reference.rsplit('/').next().map_or("", |_| "$defs")];
        let name = reference.rsplit('/').next().unwrap_or_default();
        return least(root, &definition[name]);
    }
    if let Some(forms) = schema["anyOf"].as_array() {
        return least(root, &forms[0]);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or("any");
    match kind {
        "boolean" => json!(true),
        "object" if schema["additionalProperties"].is_object() => {
            json!({"k": least(root, &schema["additionalProperties"])})
        }
        "object" => {
            let (name, first) =
                schema["properties"].as_object().and_then(|all| all.iter().next()).expect("a property");
            json!({name: least(root, first)})
        }
        _ => json!("x"),
    }
}

/// A document in which `value` stands where a value of this type belongs.
fn around(of: &str, value: Value) -> Value {
    let step = |step: Value| json!({"scenarios": [{"steps": [step]}]});
    match of {
        "Document" => value,
        "Settings" => json!({"run": value}),
        "TargetSpec" => json!({"targets": {"a": value}}),
        "RefreshSpec" => json!({"refresh": value}),
        "ScenarioSpec" => json!({"scenarios": [value]}),
        "StepSpec" => step(value),
        "PauseSpec" => step(json!({"think": value})),
        "LineSpec" => step(json!({"line": value})),
        "FormPartSpec" => step(json!({"multipart": [value]})),
        "GreetingSpec" => step(json!({"greeting": value})),
        "AnswerSpec" => step(json!({"websocket": {"open": "/", "answer": [value]}})),
        "HeartbeatSpec" => step(json!({"websocket": {"open": "/", "heartbeat": value}})),
        "ReceiveSpec" => step(json!({"websocket": {"receive": value}})),
        "WebSocketSpec" => step(json!({"websocket": value})),
        "PollSpec" => step(json!({"poll": value})),
        "ExpectSpec" => step(json!({"expect": value})),
        "EventExpectSpec" => step(json!({"expect": {"events": {"last": value}}})),
        "MatchSpec" => step(json!({"expect": {"body": value}})),
        "ExtractSpec" => step(json!({"extract": {"v": value}})),
        "TokenSettings" => json!({"tokens": {"t": value}}),
        "DataSpec" => json!({"data": {"d": value}}),
        "MetricSpec" => json!({"metrics": {"m": value}}),
        "RecordSpec" => step(json!({"record": {"m": value}})),
        "ThresholdSpec" => json!({"thresholds": [value]}),
        "PhaseSpec" => json!({"phases": [value]}),
        "ScriptSettings" => json!({"scripts": value}),
        other => panic!("where does {other} belong?"),
    }
}

#[test]
fn the_reader_knows_every_property_of_the_schema_and_no_other() {
    let root = Document::schema(PARTS.document());
    let mut types = BTreeSet::new();
    each_property(&root, &mut |of, name, schema| {
        types.insert(of.to_owned());
        let text = around(of, json!({name: least(&root, schema)})).to_string();
        let (document, problems) = read(&text);
        assert!(problems.is_empty() && document.is_some(), "{of}.{name}: {problems:?} in {text}");
    });
    assert_eq!(types.len(), 26, "{types:?}");
    for of in &types {
        let text = around(of, json!({"invented": 1})).to_string();
        let (_, problems) = read(&text);
        assert!(problems.to_string().contains("unknown key `invented`"), "{of}: {problems:?}");
    }
    let (_, problems) = read("scenarios: {steps: {get: /, expect: {body: {(plain): x}}}}");
    assert!(problems.to_string().contains("unknown key `(plain)`"), "{problems}");
}
