//! Samplers: requests of HTTP, and pauses.

use std::collections::BTreeSet;

use plimsoll_document::{FormPartSpec, StepSpec};

use super::scope::{Scope, arguments};
use super::tree::{Node, inner, items, value};
use super::{Importer, Within};
use crate::amount;
use crate::draft::{self, text};
use crate::flow::{self, Writing};
use crate::proxy;
use crate::xml::Element;

/// Advice where the server of a request is not known.
const SERVER_HINT: &str = "name the server in the sampler or in `HTTP Request Defaults`, and give \
                           variables in it a value \
                           under `User Defined Variables`";

/// An argument of a sampler.
struct Argument {
    name: String,
    value: String,
    encode: bool,
    with_equals: bool,
}

impl Importer<'_> {
    /// A request, with the pauses before it.
    pub(super) fn sampler(
        &mut self,
        node: &Node<'_>,
        outer: &Scope<'_>,
        within: Within<'_>,
        steps: &mut Vec<StepSpec>,
    ) {
        let at = node.at();
        let mut scope = outer.clone();
        self.enter(&node.below, &mut scope);
        for inner in node.below.iter().filter(|inner| inner.enabled && !super::scope::is_config(inner.kind()))
        {
            self.left_out(inner);
        }
        self.written += scope.size();
        let read = |key: &str| {
            node.filled(key).or_else(|| {
                scope
                    .defaults
                    .iter()
                    .rev()
                    .find_map(|defaults| value(defaults, key).filter(|value| !value.trim().is_empty()))
            })
        };
        let method =
            self.variables.expanded(&node.filled("HTTPSampler.method").unwrap_or_else(|| "GET".to_owned()));
        let method = method.trim().to_ascii_uppercase();
        if !draft::is_token(&method) {
            self.findings.problem(&at, format!("`{method}` is not a method"));
            return;
        }
        let path = self.variables.begun(read("HTTPSampler.path").unwrap_or_default().trim());
        if self.variables.begins_with_slot(&path) {
            self.findings.note(at.as_str(), &path, flow::SLASH_BEFORE);
        }
        let url = url(&read, &path);
        if url.contains("${__P(") || url.contains("${__property(") {
            let becomes = "where it says which server is asked, the default of the property is taken";
            self.findings.note(at.as_str(), &url, becomes);
        }
        let Some(mut address) = self.variables.address(&url, None, &at, SERVER_HINT, &mut self.findings)
        else {
            return;
        };
        let mut all = self.arguments(node, &scope);
        let as_body = node.flag("HTTPSampler.postBodyRaw")
            || (!all.is_empty() && all.iter().all(|argument| argument.name.is_empty()));
        let has_body = !["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"].contains(&method.as_str());
        if !as_body && !has_body && !all.is_empty() {
            let query = self.query(&all, &at);
            address.path.push(if address.path.contains('?') { '&' } else { '?' });
            address.path.push_str(&query);
            all.clear();
        }
        if address.origin.starts_with("https://") {
            self.https.get_or_insert_with(|| at.clone());
        }
        let mut step = address.request(&method, within.continues);
        let name = self.names.take(&flow::title(node.name(), &format!("{method} request")));
        step.name = text(name.as_str());
        for (name, value) in &scope.headers {
            flow::put_header(&mut step, name, value, &at, &mut self.findings);
        }
        self.body(node, &all, as_body, &at, &mut step);
        self.credentials(&scope, &address.origin, &address.path, &at, &mut step);
        if let Some(user) = &address.user {
            let user = String::from_utf8_lossy(&draft::percent_decoded(user)).into_owned();
            let (user, password) = user.split_once(':').unwrap_or((&user, ""));
            let value = flow::basic(&draft::escaped(user), &draft::escaped(password));
            flow::put_header(&mut step, "authorization", &value, &at, &mut self.findings);
        }
        let follows = |key: &str| read(key).is_some_and(|value| value.trim() == "true");
        self.follows.push((
            at.clone(),
            follows("HTTPSampler.follow_redirects") || follows("HTTPSampler.auto_redirects"),
        ));
        if let Some(nanos) =
            read("HTTPSampler.response_timeout").and_then(|text| self.milliseconds(&text, &at))
            && nanos > 0
        {
            step.timeout = text(amount::time(nanos));
        }
        if let Some(nanos) =
            read("HTTPSampler.connect_timeout").and_then(|text| self.milliseconds(&text, &at))
            && nanos > 0
        {
            self.connect_timeout(nanos, &at);
        }
        let proxy = self.proxy(&read, &at);
        self.proxies.push(&at, proxy);
        self.notes_of(node, &read, &at);
        for (check, at) in &scope.checks {
            self.check(check, at, within.scenario, &name, &mut step);
        }
        for timer in &scope.timers {
            steps.push(flow::pause(timer.clone()));
        }
        steps.push(step);
    }

    /// A pause; other actions are noted.
    pub(super) fn action(&mut self, node: &Node<'_>, steps: &mut Vec<StepSpec>) {
        let at = node.at();
        for inner in &node.below {
            if inner.enabled {
                self.left_out(inner);
            }
        }
        let action = node.value("ActionProcessor.action").unwrap_or_default();
        if action.trim() != "1" {
            let becomes = "threads are not stopped by steps: it is left out";
            self.findings.note(at, &format!("action {action}"), becomes);
            return;
        }
        let written = node.value("ActionProcessor.duration").unwrap_or_default();
        if let Some(nanos) = self.milliseconds(&written, &at).filter(|nanos| *nanos > 0) {
            steps.push(flow::pause(flow::uniform(nanos, nanos)));
        }
    }

    /// The run has one limit for connecting.
    fn connect_timeout(&mut self, nanos: u64, at: &str) {
        let limit = text(amount::time(nanos));
        if self.settings.connect_timeout.is_absent() {
            self.settings.connect_timeout = limit;
        } else if self.settings.connect_timeout != limit {
            let becomes = "the run has one limit for connecting: that of the first request is taken";
            self.findings.note(at, "HTTPSampler.connect_timeout", becomes);
        }
    }

    /// The URL of the proxy that a request goes through.
    fn proxy(&mut self, read: &impl Fn(&str) -> Option<String>, at: &str) -> Option<String> {
        let of = |key: &str| {
            read(&format!("HTTPSampler.proxy{key}")).map(|text| self.variables.expanded(text.trim()))
        };
        let (host, port) = (of("Host")?, of("Port").unwrap_or_default());
        let (scheme, user) = (of("Scheme").unwrap_or_else(|| "http".to_owned()), of("User"));
        let password = of("Pass").unwrap_or_default();
        let Some(port) = port.parse().ok().filter(|port| *port > 0 && scheme == "http") else {
            let becomes = "only a proxy of HTTP is taken over, with a number as its port: it is left out";
            self.findings.note(at, &format!("proxy {scheme}://{host}:{port}"), becomes);
            return None;
        };
        let user = user.as_ref().map(|user| (user.as_str(), password.as_str()));
        Some(proxy::url("http", &host, port, user))
    }

    fn notes_of(&mut self, node: &Node<'_>, read: &impl Fn(&str) -> Option<String>, at: &str) {
        let is = |key: &str, value: &str| read(key).is_some_and(|text| text.trim() == value);
        for (key, value, becomes) in [
            (
                "HTTPSampler.image_parser",
                "true",
                "resources of a page are not fetched: make steps of it, perhaps in `parallel`",
            ),
            (
                "HTTPSampler.use_keepalive",
                "false",
                "connections are kept: `disable_keepalive` is for all requests of a run",
            ),
            ("HTTPSampler.md5", "true", "the body is kept as it is"),
        ] {
            if is(key, value) {
                self.findings.note(at, &format!("{key}: {value}"), becomes);
            }
        }
        // Of `embedded_url_re` nothing is said: it chooses embedded resources, which were reported already.
        if read("HTTPSampler.ipSource").is_some() {
            let becomes = "the run has one way to connect for all requests: it is left out";
            self.findings.note(at, "HTTPSampler.ipSource", becomes);
        }
        let encoding = node.filled("HTTPSampler.contentEncoding").unwrap_or_default();
        if !["", "UTF-8", "utf-8", "UTF8"].contains(&encoding.trim()) {
            self.findings.note(at, &encoding, "bodies are written as UTF-8");
        }
    }

    /// The arguments of a sampler, and those of the defaults that it has not.
    fn arguments(&mut self, node: &Node<'_>, scope: &Scope<'_>) -> Vec<Argument> {
        let mut all: Vec<Argument> = arguments(node.element).iter().map(argument).collect();
        if !node.flag("HTTPSampler.postBodyRaw") {
            let mut known: BTreeSet<String> = all.iter().map(|argument| argument.name.clone()).collect();
            for defaults in scope.defaults.iter().rev() {
                for argument in arguments(defaults).iter().map(argument) {
                    if !argument.name.is_empty() && known.insert(argument.name.clone()) {
                        all.push(argument);
                    }
                }
            }
        }
        all
    }

    /// Arguments as a query, which is a template.
    fn query(&mut self, all: &[Argument], at: &str) -> String {
        let mut pairs = Vec::new();
        for argument in all {
            let writing = if argument.encode { Writing::Query } else { Writing::Target };
            let mut written = |text: &str| self.variables.template(text, writing, at, &mut self.findings);
            let (name, value) = (written(&argument.name), written(&argument.value));
            let is_bare = value.is_empty() && !argument.with_equals;
            pairs.push(if is_bare { name } else { format!("{name}={value}") });
        }
        pairs.join("&")
    }

    fn body(&mut self, node: &Node<'_>, all: &[Argument], as_body: bool, at: &str, step: &mut StepSpec) {
        let files: Vec<&Element> = inner(node.element, "HTTPsampler.Files")
            .map(|files| items(files, "HTTPFileArgs.files").iter().collect())
            .unwrap_or_default();
        let file = |file: &Element, key: &str| value(file, key).unwrap_or_default();
        let named: Vec<&&Element> =
            files.iter().filter(|one| !file(one, "File.path").trim().is_empty()).collect();
        if let [one] = named.as_slice()
            && all.is_empty()
            && file(one, "File.paramname").trim().is_empty()
        {
            step.request_mut().body.body_file =
                text(draft::escaped(self.variables.expanded(&file(one, "File.path")).trim()));
            let kind = file(one, "File.mimetype");
            if !kind.trim().is_empty() && !flow::has_header(step, "content-type") {
                flow::put_header(step, "content-type", kind.trim(), at, &mut self.findings);
            }
            return;
        }
        let files: Vec<FormPartSpec> = named
            .into_iter()
            .map(|one| {
                let name = self.template(file(one, "File.paramname").trim(), at);
                let path = self.variables.expanded(&file(one, "File.path"));
                let place = (self.folder, self.files);
                let mut part = flow::file_part(name, path.trim(), place, at, &mut self.findings);
                let kind = file(one, "File.mimetype");
                if !kind.trim().is_empty() {
                    part.content_type = draft::literal(kind.trim());
                }
                part
            })
            .collect();
        if all.is_empty() && files.is_empty() {
            return;
        }
        if as_body && files.is_empty() {
            let whole: String = all.iter().map(|argument| argument.value.as_str()).collect();
            let template = self.template(&whole, at);
            if !template.is_empty() {
                step.request_mut().body.body = text(template);
            }
            return;
        }
        if node.flag("HTTPSampler.DO_MULTIPART_POST") || !files.is_empty() {
            let values = all.iter().map(|argument| {
                flow::value_part(self.template(&argument.name, at), self.template(&argument.value, at))
            });
            let parts = values.collect::<Vec<_>>().into_iter().chain(files).collect();
            flow::put_form(step, parts);
            return;
        }
        let mut pairs = Vec::new();
        for argument in all {
            let writing = if argument.encode { Writing::Form } else { Writing::Plain };
            let mut written = |text: &str| self.variables.template(text, writing, at, &mut self.findings);
            pairs.push(format!("{}={}", written(&argument.name), written(&argument.value)));
        }
        if !flow::has_header(step, "content-type") {
            flow::put_header(
                step,
                "content-type",
                "application/x-www-form-urlencoded",
                at,
                &mut self.findings,
            );
        }
        step.request_mut().body.body = text(pairs.join("&"));
    }

    /// The credentials that are for this URL, of the innermost place that has some.
    fn credentials(&mut self, scope: &Scope<'_>, origin: &str, path: &str, at: &str, step: &mut StepSpec) {
        let url = format!("{origin}{path}");
        let fit =
            |known: &&super::scope::Credentials| known.url.is_empty() || url.starts_with(known.url.trim());
        if let Some(known) = scope.credentials.iter().rev().find(fit)
            && !flow::has_header(step, "authorization")
        {
            let value = flow::basic(&known.user, &known.password);
            flow::put_header(step, "authorization", &value, at, &mut self.findings);
        }
    }
}

/// The URL of a sampler, as it is written there and in the defaults.
fn url(read: &impl Fn(&str) -> Option<String>, path: &str) -> String {
    let part = |key: &str| read(key).unwrap_or_default().trim().to_owned();
    if path.starts_with("http://") || path.starts_with("https://") {
        return path.to_owned();
    }
    let domain = part("HTTPSampler.domain");
    if domain.is_empty() {
        return path.to_owned();
    }
    let protocol = part("HTTPSampler.protocol").to_ascii_lowercase();
    // A variable keeps its case.
    let protocol = if protocol.contains("${") { part("HTTPSampler.protocol") } else { protocol };
    let protocol = if protocol.is_empty() { "http".to_owned() } else { protocol };
    let port = part("HTTPSampler.port");
    let usual =
        matches!((protocol.as_str(), port.as_str()), (_, "" | "0") | ("http", "80") | ("https", "443"));
    let port = if usual { String::new() } else { format!(":{port}") };
    let between = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
    // Some plans have the scheme in the field for the name.
    if domain.contains("://") {
        return format!("{domain}{port}{between}{path}");
    }
    format!("{protocol}://{domain}{port}{between}{path}")
}

fn argument(element: &Element) -> Argument {
    let read = |key: &str| value(element, key).unwrap_or_default();
    Argument {
        name: read("Argument.name").trim().to_owned(),
        value: read("Argument.value"),
        encode: read("HTTPArgument.always_encode").trim() == "true",
        with_equals: read("HTTPArgument.use_equals").trim() != "false",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_put_together_from_their_parts() {
        for (parts, wanted) in [
            (&[("domain", "h"), ("path", "/a")][..], "http://h/a"),
            (&[("domain", "h"), ("port", "443"), ("protocol", "HTTPS"), ("path", "a")], "https://h/a"),
            (&[("domain", "h"), ("port", "8080")], "http://h:8080"),
            (&[("domain", "${host}"), ("protocol", "${Scheme}"), ("path", "/")], "${Scheme}://${host}/"),
            (&[("domain", "h"), ("path", "https://g/a")], "https://g/a"),
            (&[("domain", "http://h"), ("port", "81"), ("path", "/a")], "http://h:81/a"),
            (&[("path", "/a")], "/a"),
        ] {
            let read = |key: &str| {
                let key = key.strip_prefix("HTTPSampler.").unwrap_or_default();
                parts.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(url(&read, &read("HTTPSampler.path").unwrap_or_default()), wanted);
        }
    }
}
