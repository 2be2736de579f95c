//! Files of gRPC services, and configurations of ghz.

use std::path::Path;

use plimsoll_document::{Document, Files, KeyLogFile, Problems, Source};
use plimsoll_grpc::{PARTS, ghz, proto};
use plimsoll_import::{Imported, Unchecked};
use plimsoll_plan::{ImportCheck, PlanPatch};

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

/// Notes and plan, or the problems. The plan can be read back and means the same.
fn shown(unchecked: Result<Unchecked, Problems>) -> String {
    let flags = PlanPatch { parts: PARTS, ..PlanPatch::default() };
    let check = ImportCheck::with(&flags);
    match unchecked.and_then(|plan| plan.check(Path::new("api"), &files(), &check)) {
        Ok(Imported { document, notes }) => {
            let yaml = document.to_yaml();
            let source = Source { name: "plan.yaml".to_owned(), text: yaml.clone() };
            let mut problems = Problems::default();
            let read = Document::read(&source, PARTS.document(), &mut problems);
            assert!(problems.is_empty(), "{problems}\n{yaml}");
            assert_eq!(read.map(|document| document.to_yaml()), Some(yaml.clone()));
            notes.iter().map(|note| format!("note: {note}\n")).chain([yaml]).collect()
        }
        Err(problems) => {
            let hint = |hint: &String| format!("hint: {hint}\n");
            let line = |problem: &plimsoll_document::Problem| {
                let hint = problem.hint.as_ref().map(hint).unwrap_or_default();
                format!("error: {}\n{hint}", problem.message)
            };
            problems.iter().map(line).collect()
        }
    }
}

const PROTO: &[u8] = b"syntax = \"proto3\";
package shop.v1;
import \"money.proto\";
service Orders {
  rpc Place(Order) returns (Order);
  rpc Watch(Nothing) returns (stream Order);
}
message Nothing {}
message Order { string id = 1; repeated uint32 counts = 2; money.Amount amount = 3; Order before = 4; }
";
const MONEY: &[u8] = b"syntax = \"proto3\"; package money; message Amount { sint64 cents = 1; }";

fn files() -> Named<'static> {
    Named(&[("api/shop.proto", PROTO), ("api/money.proto", MONEY)])
}

#[test]
fn every_method_of_a_service_is_a_step() {
    let options = proto::Options { server: "https://127.0.0.1:443".to_owned() };
    let plan = shown(proto::import("shop.proto", &options, Path::new("api"), &files()));
    assert_eq!(
        plan,
        "note: /shop.v1.Orders/Watch: it answers with a stream, which the server ends: add `take` to cancel it before
run:
  http2: true
targets:
  server: https://127.0.0.1:443
scenarios:
  - name: methods
    steps:
      - name: shop.v1.Orders/Place
        post: /shop.v1.Orders/Place
        grpc:
          proto: shop.proto
          message:
            id: id
            counts:
              - 1
            amount:
              cents: \"1\"
      - name: shop.v1.Orders/Watch
        post: /shop.v1.Orders/Watch
        grpc:
          proto: shop.proto
"
    );
    for (name, server, said) in [
        ("none.proto", "http://h", "cannot read `none.proto`"),
        ("money.proto", "http://h", "the file has no service with a method"),
        ("shop.proto", "h", "it is not a URL"),
    ] {
        let options = proto::Options { server: server.to_owned() };
        let told = shown(proto::import(name, &options, Path::new("api"), &files()));
        assert!(told.starts_with("error: ") && told.contains(said), "{told}");
    }
}

fn of_ghz(config: &str) -> String {
    shown(ghz::import(config.as_bytes()))
}

#[test]
fn a_configuration_of_ghz_is_a_plan() {
    let plan = of_ghz(
        r#"{"proto": "shop.proto", "call": "shop.v1.Orders.Place", "host": "127.0.0.1:50051", "insecure": true,
            "total": 2000, "concurrency": 50, "connections": 5, "timeout": "5s", "name": "orders",
            "data": {"id": "o-{{.RequestNumber}} ${x}", "counts": [1]}, "enable-compression": true,
            "metadata": {"x-id": "{{newUUID}}", "x-any": "{{.Other}}"}, "max-duration": "1m", "cpus": 2}"#,
    );
    assert_eq!(
        plan,
        "note: /metadata/x-any: `.Other`: plans have no such function: it is sent as it is written
note: /max-duration: `1m`: a run has one end: the number of calls is taken
name: orders
run:
  connections: 5
  iterations: 2000
  users: 50
  http2: true
  max_concurrent_streams: 10
targets:
  server: http://127.0.0.1:50051
scenarios:
  - name: calls
    steps:
      - name: shop.v1.Orders/Place
        post: /shop.v1.Orders/Place
        headers:
          x-id: ${uuid}
          x-any: \"{{.Other}}\"
          grpc-timeout: 5000000u
        grpc:
          proto: shop.proto
          message:
            id: o-${sequence} $${x}
            counts:
              - 1
          compress: gzip
        timeout: 5s
"
    );
    let plan = of_ghz(
        r#"{"proto": "shop.proto", "call": "shop.v1.Orders/Watch", "host": "h:1", "rps": 100, "duration": "10s",
            "streamCallCount": 3, "skipTLS": true}"#,
    );
    for part in ["rate: 100", "duration: 10s", "take: 3", "https://h:1", "insecure: true", "timeout: 20s"] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    assert!(!plan.contains("users") && !plan.contains("iterations"), "{plan}");
}

/// Symptom: a slash in front gave the path `//shop.v1.Orders/Place`, which no service has.
#[test]
fn a_method_is_written_in_the_forms_of_ghz() {
    for call in ["shop.v1.Orders.Place", "shop.v1.Orders/Place", "/shop.v1.Orders/Place"] {
        let plan = of_ghz(&format!(r#"{{"proto": "shop.proto", "call": "{call}", "host": "h:1"}}"#));
        assert!(plan.contains("post: /shop.v1.Orders/Place\n"), "{call}: {plan}");
    }
}

#[test]
fn what_is_wrong_with_a_configuration_is_told() {
    for (config, said) in [
        ("proto = \"shop.proto\"", "is not an object of JSON"),
        ("{}", "neither `proto` nor `protoset` is given"),
        ("{\"proto\": \"shop.proto\"}", "`call` is missing"),
        ("{\"proto\": \"shop.proto\", \"call\": \"x\", \"host\": \"h\"}", "`x` is not a method"),
        ("{\"proto\": \"shop.proto\", \"call\": \"a.B.C\"}", "`host` is missing"),
        (
            "{\"proto\": \"shop.proto\", \"call\": \"a.B.C\", \"host\": \"h\"}",
            "no method has the path `/a.B/C`",
        ),
    ] {
        let told = of_ghz(config);
        assert!(told.contains("error: ") && told.contains(said), "{config}: {told}");
    }
}
