//! Requests: their URLs, headers and bodies.

use plimsoll_document::StepSpec;
use serde_json::Value;

use super::auth::Auth;
use super::{Importer, SERVER_HINT, is_own, plain};
use crate::draft::{self, text};
use crate::flow::{self, Writing};
use crate::proxy;
use crate::source::{Object, shown};

impl Importer<'_> {
    /// The step of a request. `None` if it cannot be sent, which is reported.
    pub(super) fn request(&mut self, value: &Value, at: &str, inherited: &Auth) -> Option<StepSpec> {
        if let Value::String(url) = value {
            let (base, query) = cut(url);
            self.proxies.push(at, None);
            let mut step = self.address_of(base, query.map(str::to_owned), "GET", at, inherited)?;
            inherited.put(&mut step, &mut self.variables, at, &mut self.findings);
            return Some(step);
        }
        let mut request = Object::new(value, at, &mut self.findings)?;
        request.skip(&["description"]);
        let method = request.filled("method", &mut self.findings).unwrap_or("GET").to_ascii_uppercase();
        if !draft::is_token(&method) {
            self.findings.problem(&request.place("method"), format!("`{method}` is not a method"));
            return None;
        }
        let own = self.auth(&mut request, at);
        let auth = own.as_ref().unwrap_or(inherited);
        let (base, query) = self.url(&mut request, at)?;
        let mut step = self.address_of(&base, query, &method, at, auth)?;
        self.headers(&mut request, &mut step);
        self.body(&mut request, &method, &mut step);
        auth.put(&mut step, &mut self.variables, at, &mut self.findings);
        let proxy = self.proxy(&mut request);
        self.proxies.push(&request.place("proxy"), proxy);
        if request.has("certificate") {
            let becomes = "the run has one way to connect for all requests: it is left out";
            self.findings.note(request.place("certificate"), "certificate", becomes);
        }
        request.skip(&["certificate"]);
        request.rest(&mut self.findings, is_own);
        Some(step)
    }

    /// The URL of the proxy that a request goes through, if it is one for all URLs.
    fn proxy(&mut self, request: &mut Object<'_>) -> Option<String> {
        if !request.has("proxy") {
            return None;
        }
        let at = request.place("proxy");
        let mut proxy = request.object("proxy", &mut self.findings)?;
        if proxy.flag("disabled", &mut self.findings) == Some(true) {
            proxy.skip(&["match", "host", "port", "tunnel"]);
            return None;
        }
        proxy.skip(&["tunnel"]);
        let matched = proxy.text("match", &mut self.findings).unwrap_or("*://*/*").to_owned();
        let host = proxy.text("host", &mut self.findings).unwrap_or_default().to_owned();
        let port = proxy.value("port").map_or_else(|| "8080".to_owned(), plain);
        proxy.rest(&mut self.findings, is_own);
        let is_for_all = ["http+https://*/*", "*://*/*", "http+https://*:*/*"].contains(&matched.as_str());
        let is_host = draft::Url::parse(&format!("http://{host}/")).is_ok();
        match port.parse().ok().filter(|port| *port > 0 && is_for_all && is_host) {
            Some(port) => Some(proxy::url("http", &host, port, None)),
            None => {
                let becomes =
                    "only a proxy for all URLs, with a host and a port, is taken over: it is left out";
                self.findings.note(at, &format!("{host}:{port} for {matched}"), becomes);
                None
            }
        }
    }

    fn address_of(
        &mut self,
        base: &str,
        query: Option<String>,
        method: &str,
        at: &str,
        auth: &Auth,
    ) -> Option<StepSpec> {
        let mut url = base.to_owned();
        let mut pairs: Vec<String> = query.into_iter().filter(|query| !query.is_empty()).collect();
        if let Some((name, value)) = auth.query() {
            pairs.push(format!("{name}={value}"));
        }
        if !pairs.is_empty() {
            url.push('?');
            url.push_str(&pairs.join("&"));
        }
        let address = self.variables.address(&url, None, at, SERVER_HINT, &mut self.findings)?;
        let mut step = address.request(method, true);
        if let Some(user) = &address.user {
            let user = String::from_utf8_lossy(&draft::percent_decoded(user)).into_owned();
            let (name, password) = user.split_once(':').unwrap_or((&user, ""));
            flow::put_header(
                &mut step,
                "authorization",
                &flow::basic(name, password),
                at,
                &mut self.findings,
            );
        }
        Some(step)
    }

    /// A URL without its query, and the query.
    fn url(&mut self, request: &mut Object<'_>, at: &str) -> Option<(String, Option<String>)> {
        match request.value("url") {
            Some(Value::String(url)) => {
                let (base, query) = cut(url);
                return Some((base.to_owned(), query.map(str::to_owned)));
            }
            Some(Value::Object(_)) => {}
            _ => {
                self.findings.problem(at, "the request has no URL");
                return None;
            }
        }
        let mut url = request.object("url", &mut self.findings)?;
        let raw = url.text("raw", &mut self.findings).unwrap_or_default();
        let (raw, raw_query) = cut(raw);
        url.skip(&["hash", "auth"]);
        let protocol = url.text("protocol", &mut self.findings).map(str::to_owned);
        let host = joined(url.value("host"), ".");
        let port = url.value("port").map(plain).filter(|port| !port.is_empty());
        let path = joined(url.value("path"), "/");
        let mut base = raw.to_owned();
        if base.is_empty() {
            base = protocol.map(|protocol| format!("{protocol}://")).unwrap_or_default();
            base.push_str(&host);
            base.push_str(&port.map(|port| format!(":{port}")).unwrap_or_default());
            if !path.is_empty() {
                base.push('/');
                base.push_str(&path);
            }
        }
        for mut variable in url.objects("variable", &mut self.findings) {
            variable.skip(&["description", "type", "id", "disabled"]);
            let key = variable.text("key", &mut self.findings).unwrap_or_default();
            let value = variable.value("value").map(plain).unwrap_or_default();
            variable.rest(&mut self.findings, is_own);
            if !key.is_empty() {
                base = with_segment(&base, key, &value);
            }
        }
        let query = if url.has("query") {
            let mut pairs = Vec::new();
            for mut pair in url.objects("query", &mut self.findings) {
                pair.skip(&["description", "type", "id", "uuid"]);
                let key = pair.value("key").map(plain).unwrap_or_default();
                let value = pair.value("value").map(plain);
                let disabled = pair.flag("disabled", &mut self.findings) == Some(true);
                pair.rest(&mut self.findings, is_own);
                if !disabled {
                    pairs.push(value.map_or(key.clone(), |value| format!("{key}={value}")));
                }
            }
            Some(pairs.join("&"))
        } else {
            raw_query.map(str::to_owned)
        };
        url.rest(&mut self.findings, is_own);
        Some((base, query))
    }

    fn headers(&mut self, request: &mut Object<'_>, step: &mut StepSpec) {
        let place = request.place("header");
        if let Some(Value::String(lines)) = request.value("header") {
            for line in lines.lines().filter(|line| !line.trim().is_empty()) {
                match line.split_once(':') {
                    Some((name, value)) => self.header(step, name.trim(), value.trim(), &place),
                    None => self.findings.note(place.as_str(), line, "it is not a header, and is left out"),
                }
            }
            return;
        }
        for mut header in request.objects("header", &mut self.findings) {
            header.skip(&["description", "type", "name", "system", "id", "uuid", "warning"]);
            let name = header.text("key", &mut self.findings).unwrap_or_default();
            let value = header.value("value").map(plain).unwrap_or_default();
            let disabled = header.flag("disabled", &mut self.findings) == Some(true);
            header.rest(&mut self.findings, is_own);
            if !disabled && !name.is_empty() {
                self.header(step, name, value.trim(), &header.at);
            }
        }
    }

    fn header(&mut self, step: &mut StepSpec, name: &str, value: &str, at: &str) {
        if flow::is_own_header(name) {
            self.findings.note(at, name, "the header belongs to the connection: it is left out");
            return;
        }
        let name = self.variables.expanded(name);
        let value = self.variables.template(value, Writing::Plain, at, &mut self.findings);
        draft::header(step, &name, &value, at, &mut self.findings);
    }

    fn body(&mut self, request: &mut Object<'_>, method: &str, step: &mut StepSpec) {
        let Some(mut body) = request.object("body", &mut self.findings) else { return };
        let mode = body.text("mode", &mut self.findings).unwrap_or_default();
        let disabled = body.flag("disabled", &mut self.findings) == Some(true);
        let at = body.at.clone();
        body.skip(&["raw", "urlencoded", "formdata", "file", "graphql", "options"]);
        let language = body.members().get("options").and_then(|all| all.pointer("/raw/language"));
        let language = language.and_then(Value::as_str).unwrap_or_default();
        body.rest(&mut self.findings, is_own);
        if disabled || mode.is_empty() || body.members().get(mode).is_none_or(is_empty) {
            return;
        }
        if ["GET", "HEAD"].contains(&method) {
            let becomes = "a body is not sent with this method, as there";
            self.findings.note(at, mode, becomes);
            return;
        }
        let mut typed = |step: &mut StepSpec, kind: &str| {
            if !flow::has_header(step, "content-type") {
                flow::put_header(step, "content-type", kind, &at, &mut self.findings);
            }
        };
        match mode {
            "raw" => {
                match language {
                    "json" => typed(step, "application/json"),
                    "xml" => typed(step, "application/xml"),
                    "html" => typed(step, "text/html"),
                    "javascript" => typed(step, "application/javascript"),
                    _ => typed(step, "text/plain"),
                }
                let raw = body.text("raw", &mut self.findings).unwrap_or_default();
                let template = self.variables.template(raw, Writing::Plain, &at, &mut self.findings);
                step.request_mut().body.body = text(template);
            }
            "graphql" => {
                typed(step, "application/json");
                let Some(mut graphql) = body.object("graphql", &mut self.findings) else { return };
                let query = graphql.value("query").map(plain).unwrap_or_default();
                let variables = graphql.value("variables").map(plain).unwrap_or_default();
                let operation = graphql.value("operationName").map(plain);
                graphql.rest(&mut self.findings, is_own);
                let variables = if variables.trim().is_empty() { "{}" } else { variables.trim() };
                let operation = operation.filter(|name| !name.is_empty());
                let operation = operation.map(|name| format!("\"operationName\":{},", Value::from(name)));
                let json = format!(
                    "{{{}\"query\":{},\"variables\":{variables}}}",
                    operation.unwrap_or_default(),
                    Value::from(query)
                );
                let template = self.variables.template(&json, Writing::Plain, &at, &mut self.findings);
                step.request_mut().body.body = text(template);
            }
            "urlencoded" => {
                typed(step, "application/x-www-form-urlencoded");
                let pairs = self.pairs(&mut body, "urlencoded");
                let mut written = Vec::new();
                for Pair { name, value, .. } in pairs {
                    let mut encoded =
                        |text: &str| self.variables.template(text, Writing::Form, &at, &mut self.findings);
                    written.push(format!("{}={}", encoded(&name), encoded(&value)));
                }
                step.request_mut().body.body = text(written.join("&"));
            }
            "formdata" => self.form_data(&mut body, step),
            "file" => {
                let source = body.members().get("file").and_then(|file| file.get("src"));
                let name = source.and_then(Value::as_str).unwrap_or_default();
                if self.is_there(name) {
                    step.request_mut().body.body_file = text(name);
                } else {
                    let becomes =
                        "the file is not there: no body is sent; name it as `body_file` in the plan";
                    self.findings.note(at, name, becomes);
                }
            }
            other => self.findings.note(at, other, "there is no such kind of body: none is sent"),
        }
    }

    /// The enabled pairs of a form.
    fn pairs(&mut self, body: &mut Object<'_>, key: &'static str) -> Vec<Pair> {
        if let Some(Value::String(form)) = body.members().get(key) {
            let decoded = |text: &str| {
                String::from_utf8_lossy(&draft::percent_decoded(&text.replace('+', " "))).into_owned()
            };
            let pairs = form.split('&').filter(|pair| !pair.is_empty());
            return pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .map(|(name, value)| Pair { name, value, is_file: false, content_type: None })
                .collect();
        }
        let mut pairs = Vec::new();
        for mut pair in body.objects(key, &mut self.findings) {
            pair.skip(&["description", "uuid", "id", "fileName"]);
            let name = pair.value("key").map(plain).unwrap_or_default();
            let is_file = pair.text("type", &mut self.findings) == Some("file");
            let value = pair.value(if is_file { "src" } else { "value" });
            let content_type = pair.text("contentType", &mut self.findings).map(str::to_owned);
            pair.skip(&["src", "value"]);
            let disabled = pair.flag("disabled", &mut self.findings) == Some(true);
            pair.rest(&mut self.findings, is_own);
            if !disabled {
                // Several files of one field are several parts of that name.
                let values = match value {
                    Some(Value::Array(several)) if is_file => several.iter().map(plain).collect(),
                    value => vec![value.map(plain).unwrap_or_default()],
                };
                let pair =
                    |value| Pair { name: name.clone(), value, is_file, content_type: content_type.clone() };
                pairs.extend(values.into_iter().map(pair));
            }
        }
        pairs
    }

    fn is_there(&self, file: &str) -> bool {
        !file.is_empty() && flow::is_file(self.folder, file, self.files)
    }

    /// A form of several parts.
    fn form_data(&mut self, body: &mut Object<'_>, step: &mut StepSpec) {
        let at = body.at.clone();
        let mut parts = Vec::new();
        for Pair { name, value, is_file, content_type } in self.pairs(body, "formdata") {
            let mut template =
                |text: &str| self.variables.template(text, Writing::Plain, &at, &mut self.findings);
            let mut part = match is_file {
                true => {
                    let name = template(&name);
                    flow::file_part(name, &value, (self.folder, self.files), &at, &mut self.findings)
                }
                false => flow::value_part(template(&name), template(&value)),
            };
            if let Some(content_type) = content_type {
                let written = self.variables.template(&content_type, Writing::Plain, &at, &mut self.findings);
                part.content_type = text(written);
            }
            parts.push(part);
        }
        if !parts.is_empty() {
            flow::put_form(step, parts);
        }
    }
}

/// A field of a form.
struct Pair {
    name: String,
    /// Value of the field, or the path of its file.
    value: String,
    is_file: bool,
    content_type: Option<String>,
}

/// Splits a URL into the part before its query, and the query. A `?` within a slot does not count.
fn cut(url: &str) -> (&str, Option<&str>) {
    let url = url.split('#').next().unwrap_or_default();
    match url.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (url, None),
    }
}

/// A list of parts as one text.
fn joined(value: Option<&Value>, between: &str) -> String {
    match value {
        Some(Value::Array(parts)) => {
            let part = |part: &Value| match part {
                // v2.1 has objects for variables in paths.
                Value::Object(members) => members.get("value").map(plain).unwrap_or_default(),
                other => plain(other),
            };
            parts.iter().map(part).collect::<Vec<_>>().join(between)
        }
        Some(other) => plain(other),
        None => String::new(),
    }
}

/// A URL with a value in place of its segment `:name`.
fn with_segment(url: &str, name: &str, value: &str) -> String {
    let wanted = format!(":{name}");
    let segments = url.split('/').enumerate().map(|(index, segment)| {
        // The first ones are the scheme and the host.
        if index > 0 && segment == wanted { value } else { segment }
    });
    segments.collect::<Vec<_>>().join("/")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        other => shown(other).is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_cut_at_their_query() {
        assert_eq!(cut("http://h/a?b=c#d"), ("http://h/a", Some("b=c")));
        assert_eq!(cut("{{base}}/a#?"), ("{{base}}/a", None));
    }

    #[test]
    fn segments_get_their_values() {
        assert_eq!(
            with_segment("{{base}}/users/:id/:idea", "id", "{{user}}"),
            "{{base}}/users/{{user}}/:idea"
        );
        assert_eq!(with_segment(":id/a", "id", "x"), ":id/a");
    }
}
