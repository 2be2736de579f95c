//! The protocol of HTTP: the server and the settings that all requests have.

use super::Importer;
use super::steps::{Operation, operations};
use super::tree::{Expression, Kind, Span};
use crate::draft;
use crate::flow::{self, Writing};
use crate::proxy;

/// The settings of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Protocol {
    /// The URL that paths are relative to, and its place.
    pub(super) base: Option<String>,
    /// Templates by the names of headers.
    pub(super) headers: Vec<(String, String)>,
    /// Requests do not follow redirects.
    pub(super) without_redirects: bool,
    /// Most redirects in a row, as a plan has it.
    pub(super) most_redirects: Option<String>,
    /// Checks of all requests.
    pub(super) checks: Vec<Expression>,
    pub(super) without_pauses: bool,
    /// The URL of the proxy.
    pub(super) proxy: Option<String>,
}

/// Methods of the protocol and of requests that set one header.
pub(super) fn header_of(method: &str) -> Option<&'static str> {
    Some(match method {
        "acceptHeader" => "accept",
        "acceptCharsetHeader" => "accept-charset",
        "acceptEncodingHeader" => "accept-encoding",
        "acceptLanguageHeader" => "accept-language",
        "authorizationHeader" => "authorization",
        "connectionHeader" => "connection",
        "contentTypeHeader" => "content-type",
        "doNotTrackHeader" => "dnt",
        "originHeader" => "origin",
        "userAgentHeader" => "user-agent",
        "upgradeInsecureRequestsHeader" => "upgrade-insecure-requests",
        _ => return None,
    })
}

impl Importer<'_> {
    /// Reads `http.baseUrl(…)…`; it is a copy of `before` with what this says above it.
    pub(super) fn protocol(&mut self, expression: &Expression, before: &Protocol) -> Protocol {
        let mut protocol = before.clone();
        let resolved = self.resolved(expression);
        if let Kind::List(items) = &resolved.kind {
            for item in items.iter() {
                protocol = self.protocol(item, &protocol);
            }
            return protocol;
        }
        let Some(("http", links)) = resolved.chain() else {
            self.note(expression.span, "only the protocol of HTTP is taken over: it is left out");
            return protocol;
        };
        let operations = operations("http", resolved.span, links);
        for operation in &operations[1..] {
            self.setting(operation, &mut protocol);
        }
        protocol
    }

    fn setting(&mut self, operation: &Operation, protocol: &mut Protocol) {
        let span = operation.span;
        let given = operation.first().to_vec();
        match operation.name.as_str() {
            "baseUrl" => {
                protocol.base = given.first().and_then(|url| self.text_of(url));
                if protocol.base.is_none() {
                    let at = self.at(span);
                    let hint = "write the URL of the server, or give its property a default";
                    self.findings.hinted(&at, "the base URL is not known before the run", hint);
                }
            }
            "baseUrls" => {
                let items = match given.as_slice() {
                    [one] => self.items(one).unwrap_or_else(|| given.clone()),
                    _ => given.clone(),
                };
                protocol.base = items.first().and_then(|url| self.text_of(url));
                if items.len() > 1 {
                    let becomes = "each user has one of several servers there: the first one is taken";
                    self.note(span, becomes);
                }
            }
            "header" | "headers" | "basicAuth" => {
                for (name, value) in self.headers_of(operation) {
                    self.put(protocol, &name, &value, span);
                }
            }
            "disableFollowRedirect" => protocol.without_redirects = true,
            "maxRedirects" => {
                let most = given.first().and_then(|most| self.count(most));
                protocol.most_redirects = most.map(|most| most.to_string());
            }
            "check" => protocol.checks.extend(given),
            // Nothing is cached here, and names are resolved once.
            "disableCaching"
            | "disableWarmUp"
            | "warmUp"
            | "disableAutoReferer"
            | "disableAutoOrigin"
            | "shareDnsCache"
            | "perUserNameResolution" => {}
            "shareConnections" => {
                let becomes = "iterations of a plan share connections anyway: it has no effect";
                self.note_call(span, "shareConnections", becomes);
            }
            "inferHtmlResources" => {
                let becomes = "pages are not read for their resources: write the requests for them; it is \
                               left out";
                self.note_call(span, "inferHtmlResources", becomes);
            }
            "proxy" => {
                protocol.proxy = given.first().and_then(|proxy| self.proxy(proxy));
                if protocol.proxy.is_none() {
                    let becomes =
                        "only a proxy of HTTP or SOCKS5 with a host and a port is taken over: it is left out";
                    self.note(span, becomes);
                }
            }
            "noProxyFor" => {
                self.note(span, "all requests of a plan go through its proxy: it is left out");
            }
            name => match header_of(name) {
                Some(header) => {
                    if let Some(value) = given.first().and_then(|value| self.template(value, Writing::Plain))
                    {
                        self.put(protocol, header, &value, span);
                    }
                }
                None => self.note(span, "plans have no such setting of requests: it is left out"),
            },
        }
    }

    /// The URL of `Proxy(host, port)`, with the calls behind it.
    fn proxy(&mut self, expression: &Expression) -> Option<String> {
        let resolved = self.resolved(expression);
        let (_, links) = resolved.chain().filter(|(name, _)| *name == "Proxy")?;
        let operations = operations("Proxy", resolved.span, links);
        let [host, port] = operations.first()?.first() else { return None };
        let (host, port) = (self.text_of(host)?, self.count(port)?);
        let (mut scheme, mut user) = ("http", None);
        for operation in &operations[1..] {
            match (operation.name.as_str(), operation.first()) {
                // The name goes to the proxy there.
                ("socks5", _) => scheme = "socks5h",
                ("http", _) => {}
                ("credentials", [name, password]) => {
                    user = Some((self.text_of(name)?, self.text_of(password)?));
                }
                _ => return None,
            }
        }
        let user = user.as_ref().map(|(name, password)| (name.as_str(), password.as_str()));
        Some(proxy::url(scheme, &host, u16::try_from(port).ok().filter(|port| *port > 0)?, user))
    }

    /// A header of all requests; one of the same name is replaced.
    fn put(&mut self, protocol: &mut Protocol, name: &str, value: &str, span: Span) {
        if flow::is_own_header(name)
            || !draft::is_token(name)
            || value.is_empty()
            || value.contains(['\r', '\n'])
        {
            let becomes = "the header belongs to the connection, or is invalid: it is left out";
            self.note_call(span, name, becomes);
            return;
        }
        protocol.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        protocol.headers.push((name.to_owned(), value.to_owned()));
    }

    /// The headers of `header`, `headers` and `basicAuth`, as templates.
    pub(super) fn headers_of(&mut self, operation: &Operation) -> Vec<(String, String)> {
        let given = operation.first().to_vec();
        let mut headers = Vec::new();
        match (operation.name.as_str(), given.as_slice()) {
            ("header", [name, value]) => {
                if let Some(name) = self.text_of(name)
                    && let Some(value) = self.template(value, Writing::Plain)
                {
                    headers.push((name, value));
                }
            }
            ("headers", [all]) => match self.pairs(all) {
                Some(pairs) => {
                    for (name, value) in pairs {
                        if let Some(value) = self.template(&value, Writing::Plain) {
                            headers.push((name, value));
                        }
                    }
                }
                None => self.note(operation.span, "they are not known before the run: they are left out"),
            },
            ("basicAuth", [user, password]) => {
                let user = self.template(user, Writing::Plain);
                if let Some((user, password)) = user.zip(self.template(password, Writing::Plain)) {
                    headers.push(("authorization".to_owned(), flow::basic(&user, &password)));
                }
            }
            _ => self.note(operation.span, "it is not known before the run: it is left out"),
        }
        headers
    }

    /// The pairs of a map that is written out: `Map.of("a", 1)`, `Map("a" -> 1)`, `{a: 1}`.
    pub(super) fn pairs(&mut self, expression: &Expression) -> Option<Vec<(String, Expression)>> {
        let resolved = self.resolved(expression);
        match &resolved.kind {
            Kind::Pairs(pairs) => {
                let name = |key: &Expression| match &key.kind {
                    Kind::String(name) => Some(name.clone()),
                    _ => None,
                };
                pairs.iter().map(|(key, value)| Some((name(key)?, value.clone()))).collect()
            }
            Kind::List(items) => items.iter().map(|item| self.pair(item)).collect(),
            _ => {
                let (name, links) = resolved.chain()?;
                let [link] = links else { return None };
                let given = link.arguments.clone()?;
                match (name, link.name.as_str()) {
                    ("Map", "of") => {
                        if !given.len().is_multiple_of(2) {
                            return None;
                        }
                        let both = |pair: &[Expression]| Some((self.text_of(&pair[0])?, pair[1].clone()));
                        given.chunks(2).map(both).collect()
                    }
                    ("Map" | "ListMap" | "Seq" | "List", "" | "ofEntries" | "apply" | "of") => {
                        given.iter().map(|item| self.pair(item)).collect()
                    }
                    _ => None,
                }
            }
        }
    }

    /// `"a" -> 1`, `Map.entry("a", 1)`, `entry("a", 1)`, or a list of both.
    fn pair(&mut self, expression: &Expression) -> Option<(String, Expression)> {
        let resolved = self.resolved(expression);
        match &resolved.kind {
            Kind::Pair(pair) => Some((self.text_of(&pair.0)?, pair.1.clone())),
            Kind::List(items) if items.len() == 2 => Some((self.text_of(&items[0])?, items[1].clone())),
            _ => {
                let (name, links) = resolved.chain()?;
                let [link] = links else { return None };
                let given = link.arguments.clone()?;
                match (name, link.name.as_str(), given.as_ref()) {
                    ("Map", "entry", [key, value]) | ("entry", "", [key, value]) => {
                        Some((self.text_of(key)?, value.clone()))
                    }
                    _ => None,
                }
            }
        }
    }
}
