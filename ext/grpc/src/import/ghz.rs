//! Configurations of ghz, in JSON.

use plimsoll_document::{Field, Problems, Settings, StepSpec};
use plimsoll_import::Unchecked;
use plimsoll_import::draft::{self, literal, text};
use plimsoll_import::findings::{Findings, quoted};
use plimsoll_import::source::{self, Object, shown};
use serde_json::Value;

use super::{call, document};
use crate::{GrpcSpec, deadline_of, method_name};

/// Requests of ghz where nothing else is said.
const TOTAL: u64 = 200;
/// Requests at a time, likewise.
const CONCURRENCY: u64 = 50;
/// The deadline of a call, likewise.
const TIMEOUT: &str = "20s";

/// Reads a configuration. The plan will be beside the files that it names.
///
/// # Errors
/// Everything that is wrong with it.
pub fn import(content: &[u8]) -> Result<Unchecked, Problems> {
    let start = content.iter().find(|byte| !byte.is_ascii_whitespace());
    if start.is_some_and(|byte| *byte != b'{') {
        let hint = "write a configuration in TOML as JSON first: the keys are the same";
        return Err(Findings::fail("", "the configuration is not an object of JSON", hint));
    }
    let value = source::json(content)?;
    let mut findings = Findings::default();
    let Some(mut top) = Object::new(&value, "", &mut findings) else {
        return Err(findings.into_problems());
    };
    let Some((step, host)) = the_call(&mut top, &mut findings) else {
        return Err(findings.into_problems());
    };
    let is_plain = top.flag("insecure", &mut findings).unwrap_or(false);
    let scheme = if is_plain { "http" } else { "https" };
    let (mut document, mut settings) = document(&format!("{scheme}://{host}"), "calls", vec![step]);
    if let Some(name) = top.filled("name", &mut findings) {
        document.name = literal(name);
    }
    load(&mut top, &mut settings, &mut findings);
    if top.flag("skipTLS", &mut findings) == Some(true) {
        settings.insecure = Field::new(true);
    }
    for (key, field) in
        [("cacert", &mut settings.cacert), ("cert", &mut settings.cert), ("key", &mut settings.key)]
    {
        if let Some(file) = top.filled(key, &mut findings) {
            *field = literal(file);
        }
    }
    if let Some(name) = top.filled("cname", &mut findings) {
        settings.sni = literal(name);
    }
    top.skip(&["output", "format", "debug", "cpus", "tags", "count-errors", "countErrors", "skipFirst"]);
    document.run = Field::new(settings);
    top.rest(&mut findings, |_| false);
    findings.finish_whole(document)
}

/// The step of the call, and the server.
fn the_call(top: &mut Object<'_>, findings: &mut Findings) -> Option<(StepSpec, String)> {
    let mut spec = GrpcSpec::default();
    let (proto, set) = (top.filled("proto", findings), top.filled("protoset", findings));
    match (proto, set) {
        (Some(file), _) => spec.proto = literal(file),
        (None, Some(file)) => spec.descriptor_set = literal(file),
        (None, None) => {
            let hint = "fetch the description of the service first: a plan names a file";
            findings.hinted("/proto", "neither `proto` nor `protoset` is given", hint);
        }
    }
    let path = top.filled("call", findings).and_then(|call| {
        let name = method_name(call).ok();
        if name.is_none() {
            let message = format!("`{}` is not a method", quoted(call));
            findings.hinted("/call", message, "write package.Service.Method");
        }
        name.map(|name| format!("/{name}"))
    });
    if !top.has("call") {
        findings.hinted("/call", "`call` is missing", "write package.Service.Method");
    }
    let host = top.filled("host", findings).map(str::to_owned);
    if host.is_none() && !findings.has_problems() {
        findings.hinted("/host", "`host` is missing", "write host:port");
    }
    if let Some(data) = top.value("data") {
        let mut data = data.clone();
        templates(&mut data, "/data", findings);
        match data {
            // ghz sends the messages of a list in turn; a plan takes such a list from a file.
            Value::Array(messages) => {
                let mut messages = messages.into_iter();
                spec.message = messages.next().map_or(Field::Absent, Field::new);
                if messages.next().is_some() {
                    let becomes = "a list of messages is a file (`messages`): the first one is taken";
                    findings.note("/data", "", becomes);
                }
            }
            message => spec.message = Field::new(message),
        }
    }
    for key in ["data-file", "dataFile"] {
        if let Some(file) = top.filled(key, findings) {
            spec.messages = literal(file);
        }
    }
    for key in ["enable-compression", "enableCompression"] {
        if top.flag(key, findings) == Some(true) {
            spec.compress = text("gzip");
        }
    }
    for key in ["stream-call-count", "streamCallCount"] {
        if let Some(count) = top.count(key, findings).filter(|count| *count > 0) {
            spec.take = text(count.to_string());
        }
    }
    let mut step = call(&path?, spec);
    if let Some(metadata) = top.object("metadata", findings) {
        for (name, value) in metadata.members() {
            let at = metadata.place(name);
            let mut value = value.clone();
            templates(&mut value, &at, findings);
            match value {
                Value::String(value) => draft::header(&mut step, name, &value, &at, findings),
                other => findings.problem(&at, format!("`{}` is not a text", shown(&other))),
            }
        }
    }
    let timeout = top.filled("timeout", findings).unwrap_or(TIMEOUT);
    step.timeout = text(timeout);
    // ghz tells the server, too.
    if let Some(deadline) = deadline_of(timeout) {
        draft::header(&mut step, "grpc-timeout", &deadline, "/timeout", findings);
    }
    Some((step, host?))
}

/// Reads the connections, the users or the rate, and the end of the load.
fn load(top: &mut Object<'_>, settings: &mut Settings, findings: &mut Findings) {
    let concurrency = top.count("concurrency", findings).filter(|count| *count > 0).unwrap_or(CONCURRENCY);
    let connections = top.count("connections", findings).filter(|count| *count > 0).unwrap_or(1);
    let rate = top.number("rps", findings).filter(|rate| !rate.is_zero());
    let total = top.count("total", findings).filter(|count| *count > 0);
    settings.connections = text(connections.to_string());
    match rate {
        Some(rate) => {
            settings.rate = text(rate.rate());
            let becomes =
                "calls start at the rate, however many are under way: ghz has at most `concurrency`";
            findings.note("/rps", &rate.rate(), becomes);
        }
        None => settings.users = text(concurrency.to_string()),
    }
    // Streams of the users of one connection.
    settings.max_concurrent_streams = text(concurrency.div_ceil(connections).max(1).to_string());
    match top.filled("duration", findings) {
        Some(duration) => settings.duration = text(duration),
        None => settings.iterations = text(total.unwrap_or(TOTAL).to_string()),
    }
    for key in ["max-duration", "maxDuration"] {
        if let Some(longest) = top.filled(key, findings) {
            findings.note(format!("/{key}"), longest, "a run has one end: the number of calls is taken");
        }
    }
}

/// Functions of ghz, and those of plans for them.
const FUNCTIONS: [(&str, &str); 6] = [
    (".RequestNumber", "sequence"),
    (".UUID", "uuid"),
    ("newUUID", "uuid"),
    (".TimestampUnix", "timestamp_s"),
    (".TimestampUnixMilli", "timestamp_ms"),
    (".TimestampUnixNano", "timestamp_ns"),
];

/// Writes ghz's templates in the texts of a value as those of plans.
fn templates(value: &mut Value, at: &str, findings: &mut Findings) {
    match value {
        Value::String(text) => *text = template(text, at, findings),
        Value::Array(items) => items.iter_mut().for_each(|item| templates(item, at, findings)),
        Value::Object(members) => members.values_mut().for_each(|item| templates(item, at, findings)),
        _ => {}
    }
}

fn template(text: &str, at: &str, findings: &mut Findings) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, slot, behind)) = rest.split_once("{{").and_then(|(before, behind)| {
        let (slot, behind) = behind.split_once("}}")?;
        Some((before, slot.trim().trim_matches('-').trim(), behind))
    }) {
        written.push_str(&draft::escaped(before));
        let known = FUNCTIONS.iter().find(|(name, _)| *name == slot);
        let words: Vec<&str> = slot.split_whitespace().collect();
        match (known, words.as_slice()) {
            (Some((_, function)), _) => written.push_str(&format!("${{{function}}}")),
            (None, ["randomInt", low, high]) => written.push_str(&format!("${{random_int({low}, {high})}}")),
            (None, ["randomString", _, length]) => written.push_str(&format!("${{random_string({length})}}")),
            _ => {
                findings.note(at, slot, "plans have no such function: it is sent as it is written");
                written.push_str(&draft::escaped(&format!("{{{{{slot}}}}}")));
            }
        }
        rest = behind;
    }
    written.push_str(&draft::escaped(rest));
    written
}
