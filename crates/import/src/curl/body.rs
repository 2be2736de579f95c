//! Bodies that a curl command sends.

use std::io;
use std::path::Path;

use plimsoll_document::{Files, FormPartSpec, StepSpec};

use super::Argument;
use super::options::Use;
use crate::draft::{self, text};
use crate::findings::Findings;
use crate::flow;

/// Reads files that options name.
pub(super) struct Reader<'a> {
    pub(super) folder: &'a Path,
    pub(super) files: &'a dyn Files,
}

impl Reader<'_> {
    /// Has `read` take what the file has. Without one, that is an error of the command, as it is for curl.
    fn found(
        &self,
        name: &str,
        at: &str,
        findings: &mut Findings,
        read: impl FnOnce(&Path) -> io::Result<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        if name == "-" {
            let hint = "put it into a file, and name it: --data-binary @file";
            findings.hinted(at, "the standard input is not read", hint);
            return None;
        }
        match read(&self.folder.join(name)) {
            Ok(content) => Some(content),
            Err(error) => {
                findings.problem(at, format!("cannot read `{name}`: {error}"));
                None
            }
        }
    }

    fn read_text(&self, name: &str, at: &str, findings: &mut Findings) -> Option<String> {
        let content = self.found(name, at, findings, |path| self.files.read(path))?;
        match String::from_utf8(content) {
            Ok(content) => Some(content),
            Err(_) => {
                let hint = "send the file alone, as it is: --data-binary @file";
                findings.hinted(at, format!("`{name}` is not UTF-8, so it cannot be joined with text"), hint);
                None
            }
        }
    }
}

/// The body of the requests.
#[derive(Debug, Default)]
pub(super) struct Content {
    kind: Kind,
    content_type: Option<String>,
    accept: Option<&'static str>,
}

#[derive(Debug, Default)]
enum Kind {
    #[default]
    None,
    Text(String),
    File(String),
    Form(Vec<FormPartSpec>),
}

impl Content {
    pub(super) fn is_none(&self) -> bool {
        matches!(self.kind, Kind::None)
    }

    /// Returns the content as the query behind the `?` of a URL (`-G`), if it is text.
    pub(super) fn as_query(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::None | Kind::File(_) | Kind::Form(_) => None,
        }
    }

    /// Puts it into a step, with the headers that curl adds unless they are given.
    pub(super) fn put(
        &self,
        step: &mut StepSpec,
        headers: &[(String, String, String)],
        findings: &mut Findings,
    ) {
        for (name, value) in [("content-type", self.content_type.as_deref()), ("accept", self.accept)] {
            let given = headers.iter().any(|(known, ..)| known.eq_ignore_ascii_case(name));
            if let (Some(value), false) = (value, given) {
                draft::header(step, name, value, "-d", findings);
            }
        }
        match &self.kind {
            Kind::None => {}
            Kind::Text(content) => step.request_mut().body.body = draft::literal(content),
            Kind::File(name) => step.request_mut().body.body_file = text(name.as_str()),
            Kind::Form(parts) => flow::put_form(step, parts.clone()),
        }
    }
}

/// Puts the body together from all options.
pub(super) fn read(given: &[Argument], reader: &Reader<'_>, findings: &mut Findings) -> Content {
    let is_form = |given: &&Argument| matches!(given.used, Use::Form | Use::FormString);
    let is_data = |given: &&Argument| {
        matches!(given.used, Use::Data | Use::DataBinary | Use::DataRaw | Use::DataUrlencode | Use::Json)
    };
    let forms: Vec<&Argument> = given.iter().filter(is_form).collect();
    let data: Vec<&Argument> = given.iter().filter(is_data).collect();
    let as_query = given.iter().any(|given| given.used == Use::Get);
    let uploads = given.iter().find(|given| given.used == Use::Upload);
    let kinds = [uploads, forms.first().copied(), data.first().copied()];
    let kinds: Vec<&Argument> = kinds.into_iter().flatten().collect();
    if let [first, second, ..] = kinds.as_slice() {
        let message = format!("{} and {} exclude each other", first.at, second.at);
        findings.hinted("", message, "a request has one body");
    }
    match (data.is_empty(), forms.is_empty()) {
        (false, _) => joined(&data, as_query, reader, findings),
        (true, false) => multipart(&forms, reader, findings),
        (true, true) => Content::default(),
    }
}

/// `-d`, `--data-…` and `--json`, in their order.
fn joined(data: &[&Argument], as_query: bool, reader: &Reader<'_>, findings: &mut Findings) -> Content {
    let is_json = data.iter().any(|given| given.used == Use::Json);
    let (content_type, accept) = match is_json {
        true => ("application/json", Some("application/json")),
        false => ("application/x-www-form-urlencoded", None),
    };
    let mut content = Content { kind: Kind::None, content_type: Some(content_type.to_owned()), accept };
    if let ([only], false) = (data, as_query)
        && matches!(only.used, Use::DataBinary | Use::Json)
        && let Some(name) = only.value.strip_prefix('@').filter(|name| *name != "-")
    {
        content.kind = Kind::File(name.to_owned());
        return content;
    }
    let mut all = String::new();
    for (position, given) in data.iter().enumerate() {
        if position > 0 && given.used != Use::Json {
            all.push('&');
        }
        if let Some(piece) = piece(given, reader, findings) {
            all.push_str(&piece);
        }
    }
    content.kind = Kind::Text(all);
    content
}

fn piece(given: &Argument, reader: &Reader<'_>, findings: &mut Findings) -> Option<String> {
    let Argument { used, value, at } = given;
    let file = value.strip_prefix('@');
    match (used, file) {
        (Use::Data, Some(name)) => {
            // Line ends are taken out, as curl does.
            Some(reader.read_text(name, at, findings)?.replace(['\r', '\n', '\0'], ""))
        }
        (Use::DataBinary | Use::Json, Some(name)) => reader.read_text(name, at, findings),
        (Use::DataUrlencode, _) => urlencoded(value, at, reader, findings),
        _ => Some(value.clone()),
    }
}

/// `content`, `=content`, `name=content`, `@file` or `name@file`.
fn urlencoded(value: &str, at: &str, reader: &Reader<'_>, findings: &mut Findings) -> Option<String> {
    let (name, content) = match value.find(['=', '@']) {
        Some(cut) if value[cut..].starts_with('=') => (&value[..cut], value[cut + 1..].to_owned()),
        Some(cut) => (&value[..cut], reader.read_text(&value[cut + 1..], at, findings)?),
        None => ("", value.to_owned()),
    };
    let encoded = draft::percent_encoded(&content, b"");
    Some(if name.is_empty() { encoded } else { format!("{name}={encoded}") })
}

/// A form in parts (RFC 7578).
fn multipart(forms: &[&Argument], reader: &Reader<'_>, findings: &mut Findings) -> Content {
    let mut parts = Vec::new();
    for given in forms {
        let Some((name, value)) = given.value.split_once('=') else {
            let message = format!("`{}` is not a part of a form", given.value);
            findings.hinted(&given.at, message, "write name=value or name=@file");
            continue;
        };
        parts.extend(part(name, value, given, reader, findings));
    }
    Content { kind: Kind::Form(parts), content_type: None, accept: None }
}

fn part(
    name: &str,
    value: &str,
    given: &Argument,
    reader: &Reader<'_>,
    findings: &mut Findings,
) -> Option<FormPartSpec> {
    let name = draft::escaped(name);
    if given.used == Use::FormString {
        return Some(flow::value_part(name, draft::escaped(value)));
    }
    let (value, parameters) = parameters(value);
    let parameter =
        |wanted: &str| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    for (name, value) in parameters.iter().filter(|(name, _)| !["type", "filename"].contains(&name.as_str()))
    {
        findings.note(given.at.as_str(), value, format!("`;{name}=` of a form is not known: it is left out"));
    }
    let (mut part, default_type) = match (value.strip_prefix('@'), value.strip_prefix('<')) {
        (Some(file), _) => {
            // The plan sends it, whose length has no bound.
            reader.found(file, &given.at, findings, |path| reader.files.read_head(path, 1))?;
            let place = (reader.folder, reader.files);
            (flow::file_part(name, file, place, &given.at, findings), Some(media_type(file)))
        }
        (None, Some(file)) => {
            let content = reader.read_text(file, &given.at, findings)?;
            (flow::value_part(name, draft::escaped(&content)), None)
        }
        (None, None) => (flow::value_part(name, draft::escaped(value)), None),
    };
    part.filename = parameter("filename").map(draft::literal).unwrap_or_default();
    part.content_type = parameter("type").or(default_type).map(draft::literal).unwrap_or_default();
    Some(part)
}

/// Cuts `value;type=…;filename=…`.
fn parameters(value: &str) -> (&str, Vec<(String, String)>) {
    let mut pieces = value.split(';');
    let first = pieces.next().unwrap_or_default();
    let mut length = first.len();
    let mut parameters: Vec<(String, String)> = Vec::new();
    for piece in pieces {
        match piece.trim().split_once('=') {
            Some((name, value)) if ["type", "filename", "encoder", "headers"].contains(&name) => {
                parameters.push((name.to_owned(), value.trim_matches('"').to_owned()));
            }
            // A parameter of a media type, such as `charset=utf-8`.
            _ if !parameters.is_empty() => {
                if let Some((_, before)) = parameters.last_mut() {
                    before.push(';');
                    before.push_str(piece);
                }
            }
            _ => length += 1 + piece.len(),
        }
    }
    (&value[..length], parameters)
}

/// The types that curl knows by the ends of names.
fn media_type(file: &str) -> &'static str {
    match file.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default() {
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "htm" | "html" => "text/html",
        "pdf" => "application/pdf",
        "xml" => "application/xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_parameters() {
        for (text, value, expected) in [
            ("a", "a", vec![]),
            ("a;b", "a;b", vec![]),
            ("@f;type=text/plain;charset=utf-8", "@f", vec![("type", "text/plain;charset=utf-8")]),
            ("@f;filename=\"x\"", "@f", vec![("filename", "x")]),
        ] {
            let (cut, parameters) = parameters(text);
            let parameters: Vec<_> =
                parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!((cut, parameters), (value, expected), "{text}");
        }
    }
}
