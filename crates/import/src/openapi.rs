//! Descriptions of interfaces: OpenAPI 3.0 and 3.1.
//!
//! Every operation becomes a step, with the examples of the description as its values. Where there is no
//! example, a value is made up from the schema.

mod body;
mod example;
mod parameter;

use plimsoll_document::{Document, Field, Problems};
use serde_json::Value;

use crate::draft::{self, Url};
use crate::findings::Findings;
use crate::source::Object;
use crate::{Unchecked, yaml};

/// Options for reading a description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The server to ask, instead of the first one of the description.
    pub server: Option<String>,
}

/// Methods of operations, in the order of the specification.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// Reads a description, in YAML or JSON.
///
/// # Errors
/// All problems with it.
pub fn import(text: &[u8], options: &Options) -> Result<Unchecked, Problems> {
    let value = yaml::parse(text)?;
    let mut findings = Findings::default();
    let Some(mut top) = Object::new(&value, "", &mut findings) else {
        return Err(findings.into_problems());
    };
    check_version(&mut top, &mut findings);
    let mut api = Api { root: &value, findings };
    let (origin, base) = api.server(&mut top, options);
    top.skip(&["info", "tags", "externalDocs", "components", "jsonSchemaDialect"]);
    let secured = top.value("security").is_some_and(is_required);
    if let Some(webhooks) = top.value("webhooks") {
        let becomes = "requests that the server sends are not answered: they are left out";
        api.findings.note("/webhooks", &crate::source::shown(webhooks), becomes);
    }
    let mut requests = Vec::new();
    if let Some(paths) = top.object("paths", &mut api.findings) {
        for (path, item) in paths.members().iter().filter(|(path, _)| !is_extension(path)) {
            let at = paths.place(path);
            for step in api.path(path, item, &at, &base, secured) {
                requests.push((origin.clone(), step));
            }
        }
    }
    top.rest(&mut api.findings, is_extension);
    let mut findings = api.findings;
    if requests.is_empty() && !findings.has_problems() {
        findings.hinted("/paths", "there is no operation", "a path has operations such as `get` and `post`");
    }
    let mut document = Document::default();
    if let Some(title) = value.pointer("/info/title").and_then(Value::as_str) {
        document.name = draft::text(title);
    }
    let steps = draft::place(&mut document, requests);
    document.scenarios.push(Field::new(draft::scenario("operations", steps)));
    findings.finish_requests(document)
}

/// Keys that begin with `x-` are extensions.
fn is_extension(key: &str) -> bool {
    key.starts_with("x-")
}

fn is_required(security: &Value) -> bool {
    let any = |list: &Vec<Value>| {
        // An empty requirement makes it optional.
        !list.is_empty() && list.iter().all(|one| one.as_object().is_some_and(|one| !one.is_empty()))
    };
    security.as_array().is_some_and(any)
}

fn check_version(top: &mut Object<'_>, findings: &mut Findings) {
    let hint = "OpenAPI 3.0 and 3.1 can be read";
    match (top.value("openapi"), top.value("swagger")) {
        (Some(Value::String(version)), _) if version.starts_with("3.0") || version.starts_with("3.1") => {}
        (Some(version), _) => {
            let version = crate::source::shown(version);
            findings.hinted("/openapi", format!("the version {version} is not known"), hint);
        }
        (None, Some(_)) => {
            findings.hinted("/swagger", "this is Swagger 2.0", "convert it to OpenAPI 3 first");
        }
        (None, None) => findings.hinted("", "`openapi` is missing", hint),
    }
}

/// A description that is being read.
pub(crate) struct Api<'a> {
    root: &'a Value,
    findings: Findings,
}

impl<'a> Api<'a> {
    /// The origin and the path of the server to ask.
    fn server(&mut self, top: &mut Object<'_>, options: &Options) -> (String, String) {
        let servers = top.objects("servers", &mut self.findings);
        let (written, at) = match (&options.server, servers.into_iter().next()) {
            (Some(server), _) => (server.clone(), "--server".to_owned()),
            (None, Some(mut first)) => (self.server_url(&mut first), first.place("url")),
            (None, None) => {
                let hint = "add --server http://host:port";
                self.findings.hinted("/servers", "the description names no server", hint);
                return (String::new(), String::new());
            }
        };
        match Url::parse(&written) {
            Ok(url) => (url.origin, url.path.trim_end_matches('/').to_owned()),
            Err(wrong) => {
                let hint =
                    if at == "--server" { "write http://host:port" } else { "add --server http://host:port" };
                self.findings.hinted(&at, format!("`{written}` is not a URL: {wrong}"), hint);
                (String::new(), String::new())
            }
        }
    }

    /// The URL of a server, with the defaults of its variables.
    fn server_url(&mut self, server: &mut Object<'_>) -> String {
        let mut url = server.filled("url", &mut self.findings).unwrap_or_default().to_owned();
        server.skip(&["description", "name"]);
        if let Some(variables) = server.object("variables", &mut self.findings) {
            for (name, variable) in variables.members() {
                if let Some(default) = variable.get("default").and_then(Value::as_str) {
                    url = url.replace(&format!("{{{name}}}"), default);
                }
            }
        }
        server.rest(&mut self.findings, is_extension);
        url
    }

    /// Follows `value` if it is a `$ref` into this file, and returns it unchanged if it is not a reference.
    fn resolve(&mut self, value: &'a Value, at: &str) -> Option<&'a Value> {
        let mut value = value;
        // References to references are followed only so far: they may go in circles.
        for _ in 0..16 {
            let Some(reference) = value.get("$ref") else { return Some(value) };
            let reference = reference.as_str().unwrap_or_default();
            let pointer = reference
                .strip_prefix('#')
                .map(|pointer| String::from_utf8_lossy(&draft::percent_decoded(pointer)).into_owned());
            match pointer.and_then(|pointer| self.root.pointer(&pointer)) {
                Some(found) => value = found,
                None => {
                    let hint = "references have to be to a place in this file: #/components/…";
                    self.findings.hinted(at, format!("`{reference}` is not there"), hint);
                    return None;
                }
            }
        }
        self.findings.problem(at, "the reference goes in circles");
        None
    }
}
