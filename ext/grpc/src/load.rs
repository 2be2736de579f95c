//! A load on one method of a gRPC service.

use plimsoll_core::Nanos;
use plimsoll_document::{
    Document, Field, Flags, MadeDocument, RequestStep, ScenarioSpec, Settings, StepSpec, TargetSpec,
};
use plimsoll_plan::body_value;
use plimsoll_schedule::parse_duration;
use plimsoll_workloads::WorkloadError;
use serde_json::Value;

use crate::calls::CALL;
use crate::fields::write_timeout;
use crate::schema::inlined;
use crate::spec::GrpcSpec;

/// Keys of the plan whose values are those of one flag of `plimsoll grpc`.
const FLAGS: Flags = Flags::new(&[
    ("server", "HOST:PORT"),
    ("post", "METHOD"),
    ("proto", "--proto"),
    ("descriptor_set", "--descriptors"),
    ("message", "--data"),
    ("messages", "--data-file"),
    ("send", "--send"),
    ("take", "--take"),
    ("wait", "--wait"),
    ("grpc-timeout", "--deadline"),
]);

/// Source of the description of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaFile {
    /// A file as protobuf writes it.
    Proto(String),
    /// A descriptor set.
    DescriptorSet(String),
    /// The content of a descriptor set, from the server's reflection.
    Reflected(Vec<u8>),
}

/// The messages that are sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// An empty message.
    Empty,
    /// A message as JSON, whose strings are templates.
    Message(Value),
    /// Messages of a file with a JSON array, sent in turn.
    File(String),
}

/// Load on one method of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct GrpcLoad {
    /// The server: `HOST:PORT`, or a URL whose scheme is http, https, grpc or grpcs.
    pub server: String,
    /// The method: `package.Service/Method`, perhaps with a slash in front, or with a dot in place of the
    /// slash.
    pub method: String,
    /// The description of the service.
    pub schema: SchemaFile,
    /// The messages.
    pub data: Data,
    /// Compress messages by gzip.
    pub gzip: bool,
    /// Repetitions of the messages in a call with a stream to the server.
    pub send: Option<u32>,
    /// Messages of an answer after which the call is cancelled, where the answer is a stream.
    pub take: Option<u32>,
    /// Send each message but the first when one has come, where both sides stream.
    pub wait: bool,
    /// The deadline that the server is told (`grpc-timeout`).
    pub deadline: Option<Nanos>,
}

/// Returns the value of `grpc-timeout` for a duration such as `1m30s`; `None` if it is none, or zero.
pub fn deadline_of(duration: &str) -> Option<String> {
    let deadline = parse_duration(duration).ok().filter(|time| *time > Nanos::ZERO)?;
    Some(write_timeout(deadline.0))
}

impl GrpcLoad {
    /// Returns the plan.
    ///
    /// # Errors
    /// The server or the method is malformed. The plan itself is checked when it is resolved.
    pub fn document(&self) -> Result<MadeDocument, WorkloadError> {
        let method = method_name(&self.method)?;
        let mut request = RequestStep::new("POST", FLAGS.value("post", format!("/{method}")));
        request.body.add(&CALL, body_value(self.call()));
        if let Some(deadline) = self.deadline {
            let deadline = FLAGS.value("grpc-timeout", write_timeout(deadline.0));
            request.headers.push("grpc-timeout", deadline);
        }
        let mut run = Settings::default();
        run.http2 = Field::new(true);
        let mut document = Document::default();
        document.name = Field::text("grpc");
        document.targets.push("server", TargetSpec::new(FLAGS.value("server", origin(&self.server)?)));
        document.run = Field::new(run);
        let step = StepSpec::from(request).named(method);
        document.scenarios.push(Field::new(ScenarioSpec::new("grpc", [step])));
        Ok(MadeDocument { name: "the plan of `plimsoll grpc`".to_owned(), document, flags: FLAGS })
    }

    fn call(&self) -> GrpcSpec {
        let mut call = GrpcSpec::default();
        match &self.schema {
            SchemaFile::Proto(file) => call.proto = FLAGS.value("proto", file),
            SchemaFile::DescriptorSet(file) => call.descriptor_set = FLAGS.value("descriptor_set", file),
            SchemaFile::Reflected(set) => call.descriptor_set = Field::text(inlined(set)),
        }
        match &self.data {
            Data::Empty => {}
            Data::Message(message) => call.message = FLAGS.value("message", message.clone()),
            Data::File(file) => call.messages = FLAGS.value("messages", file),
        }
        if self.gzip {
            call.compress = Field::text("gzip");
        }
        if let Some(count) = self.send {
            call.send = FLAGS.value("send", count.to_string());
        }
        if let Some(count) = self.take {
            call.take = FLAGS.value("take", count.to_string());
        }
        if self.wait {
            call.wait = FLAGS.value("wait", true);
        }
        call
    }
}

/// The URL of a server.
///
/// # Errors
/// The text is not the address of a server.
pub fn origin(server: &str) -> Result<String, WorkloadError> {
    let (scheme, authority) = match server.split_once("://") {
        None => ("http", server),
        Some(("http" | "grpc", authority)) => ("http", authority),
        Some(("https" | "grpcs", authority)) => ("https", authority),
        Some((scheme, _)) => {
            let message = format!("`{scheme}` is not a scheme of gRPC");
            return Err(WorkloadError::new(message, "write HOST:PORT, or https://HOST:PORT for TLS"));
        }
    };
    let authority = authority.trim_end_matches('/');
    if authority.is_empty() || authority.contains('/') {
        let message = format!("`{server}` is not the address of a server");
        let hint = "write HOST:PORT and the method apart from it: 127.0.0.1:50051 package.Service/Method";
        return Err(WorkloadError::new(message, hint));
    }
    Ok(format!("{scheme}://{authority}"))
}

/// `package.Service/Method` out of the forms in which methods are written.
///
/// # Errors
/// The text does not name a method.
pub fn method_name(text: &str) -> Result<String, WorkloadError> {
    let name = text.trim_start_matches('/');
    let parts = name.split_once('/').or_else(|| name.rsplit_once('.'));
    match parts {
        Some((service, method)) if !service.is_empty() && !method.is_empty() && !method.contains('/') => {
            Ok(format!("{service}/{method}"))
        }
        _ => {
            let message = format!("`{text}` is not a method of gRPC");
            Err(WorkloadError::new(message, "write package.Service/Method"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(load: &GrpcLoad) -> Value {
        serde_json::to_value(load.document().unwrap().document).unwrap()
    }

    fn load() -> GrpcLoad {
        GrpcLoad {
            server: "127.0.0.1:50051".to_owned(),
            method: "shop.v1.Orders/Place".to_owned(),
            schema: SchemaFile::Proto("shop.proto".to_owned()),
            data: Data::Empty,
            gzip: false,
            send: None,
            take: None,
            wait: false,
            deadline: None,
        }
    }

    #[test]
    fn a_load_is_one_step() {
        let document = written(&load());
        assert_eq!(document["targets"], json!({ "server": "http://127.0.0.1:50051" }));
        assert_eq!(document["run"], json!({ "http2": true }));
        let step = &document["scenarios"][0]["steps"][0];
        let expected = json!({
            "name": "shop.v1.Orders/Place", "post": "/shop.v1.Orders/Place", "grpc": { "proto": "shop.proto" },
        });
        assert_eq!(*step, expected);
        let load = GrpcLoad {
            schema: SchemaFile::DescriptorSet("shop.pb".to_owned()),
            data: Data::Message(json!({ "id": "a" })),
            gzip: true,
            send: Some(3),
            take: Some(2),
            wait: true,
            deadline: Some(Nanos(1_500_000_000)),
            ..load()
        };
        let document = written(&load);
        let step = &document["scenarios"][0]["steps"][0];
        assert_eq!(
            step["grpc"],
            json!({
                "descriptor_set": "shop.pb", "message": { "id": "a" }, "compress": "gzip", "send": 3,
                "take": 2, "wait": true,
            })
        );
        assert_eq!(step["headers"], json!({ "grpc-timeout": "1500000u" }));
        let load = GrpcLoad { schema: SchemaFile::Reflected(vec![1, 2]), ..load };
        let document = written(&load);
        assert_eq!(document["scenarios"][0]["steps"][0]["grpc"]["descriptor_set"], "data:;base64,AQI=");
        let load = GrpcLoad { data: Data::File("all.json".to_owned()), ..load };
        assert_eq!(written(&load)["scenarios"][0]["steps"][0]["grpc"]["messages"], "all.json");
    }

    #[test]
    fn servers_and_methods_have_several_forms() {
        for (server, url) in [
            ("a:1", Some("http://a:1")),
            ("grpc://a:1/", Some("http://a:1")),
            ("grpcs://a", Some("https://a")),
            ("https://a:1", Some("https://a:1")),
            ("ftp://a", None),
            ("a:1/shop.v1.Orders/Place", None),
            ("", None),
        ] {
            assert_eq!(origin(server).ok().as_deref(), url, "{server}");
        }
        for (method, name) in [
            ("a.B/C", Some("a.B/C")),
            ("/a.B/C", Some("a.B/C")),
            ("a.B.C", Some("a.B/C")),
            ("B/C", Some("B/C")),
            ("C", None),
            ("a.B/", None),
            ("a/B/C", None),
            ("", None),
        ] {
            assert_eq!(method_name(method).ok().as_deref(), name, "{method}");
        }
    }
}
