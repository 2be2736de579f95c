//! Request steps.

use plimsoll_core::Nanos;
use plimsoll_document::{
    AddressSpec, BY_SCRIPT, Field, Keyed, Place, Problem, RequestStep, SAME_URL, StepSpec, Text,
};
use plimsoll_scenario::{Body, Dialect, Op, RequestTemplate, ResponseHandler, check_method, parse_header_in};
use plimsoll_schedule::{parse_count, parse_duration};

use super::known::{Known, Last};
use super::scenario::{Part, keep_path};
use super::server::Origin;
use super::variables::LAST_PATH;
use super::{Compiler, is_on};
use crate::draft::Draft;
use crate::parts::body_part;
use crate::protocol::{Protocol, ProtocolRow};
use crate::requests::{closes, foreign_to_http2, from_template};
use crate::url::target as checked_path;

/// Names and values of headers.
pub(super) type Headers = Vec<(String, String)>;

/// Records of a request, at most: the largest that fit into a body of 1 GiB, a byte for each.
const MOST_RECORDS: u64 = 1 << 30;

/// The destination of a request, and its path.
struct Aim {
    origin: Origin,
    /// Path and query; a template.
    path: String,
    /// Path or URL in the name of the request, for reports.
    shown: String,
    /// `true` if the path may turn out to be a whole URL, which then determines the server.
    strays: bool,
}

impl Compiler<'_, '_> {
    /// Compiles a step that is a request over HTTP.
    pub(super) fn request_step(
        &mut self,
        spec: &StepSpec,
        request: &RequestStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let cleared = match request.clear_cookies.is_absent() {
            true => Some(()),
            false => self.clear_cookies(request, part),
        };
        let draft = self.request(spec, request, place, part, known);
        self.send(spec, draft, part, known)?;
        cleared
    }

    fn clear_cookies(&mut self, request: &RequestStep, part: &mut Part<'_>) -> Option<()> {
        if !part.cookies {
            let problem = Problem::new("`clear_cookies` has no effect: the scenario keeps no cookies");
            return self.fail(
                request.clear_cookies.place(),
                problem.with_hint("write `cookies: true` in the scenario"),
            );
        }
        if is_on(&request.clear_cookies) {
            part.ops.push(Op::ClearCookies);
        }
        Some(())
    }

    /// Compiles a request up to its templates.
    pub(super) fn request(
        &mut self,
        spec: &StepSpec,
        request: &RequestStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Draft> {
        let aim = self.aim(spec, request, place, part, known);
        let body = self.body(request, part, known);
        let method = self.method(request);
        let own = self.own_headers(&request.headers, part, known);
        let scenario = part.spec;
        let shared = self.own_headers(&scenario.headers, part, known);
        let timeout = self.step_timeout(spec);
        let goes_on = self.goes_on(spec);
        let checks = self.expectations(&spec.expect, part, known);
        let extract = self.extractions(&spec.extract, part, known);
        let collect = self.collections(request);
        let poll = self.poll(request, part, known);
        let stream = self.stream(request, body.as_ref().and_then(|body| body.stream));
        let records = self
            .records(request, body.as_ref().is_some_and(|body| matches!(body.body, Body::Supplied { .. })));
        let shown = aim.as_ref().map(|aim| aim.shown.as_str());
        let name = match (method.as_deref(), shown) {
            (method, Some(shown)) => self.step_name(spec, method, Some(shown), part),
            _ => None,
        };
        let script = self.script(&request.script, name.as_deref());
        let (aim, body, method, name) = (aim?, body?, method?, name?);
        if !aim.origin.scheme.is_http() {
            let ProtocolRow { noun, step_hint, .. } = aim.origin.scheme;
            let message = format!("`{}` is {noun}, and does not speak HTTP", aim.origin.authority);
            return self.fail(place, Problem::new(message).with_hint(*step_hint));
        }
        let mut handler = checks?;
        handler.extract = extract?;
        handler.collect = collect?;
        handler.poll = poll?;
        handler.stream = stream?;
        handler.judge = body.judge;
        handler.cookies = part.cookies;
        self.check_streamed(&handler, request.stream.place().or(place))?;
        let credentials = aim.origin.authorization.map(|value| ("Authorization".to_owned(), value));
        let layers = [shared?, body.headers, own?].into_iter().fold(Headers::new(), over);
        // The credentials of the run and of the target's URL are not sent to servers that a response names.
        let is_secret = |name: &str| name.eq_ignore_ascii_case("authorization");
        let common = self.headers.iter().filter(|(name, _)| !is_secret(name)).cloned().collect();
        let away = aim.strays.then(|| over(common, layers.clone()));
        let layers = [credentials.into_iter().collect(), layers];
        let headers = layers.into_iter().fold(self.headers.clone(), over);
        handler.decodes = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"));
        let draft = Draft {
            server: aim.origin.server,
            authority: aim.origin.authority,
            deadline: body_part(&request.body).and_then(|(body, _)| body.deadline(&headers)),
            headers,
            away,
            cookies: part.cookies,
            variables: self.variables.clone(),
            handler,
            timeout: timeout?,
            goes_on: goes_on?,
            script: script?,
            records: records?,
            place,
            ..Draft::new(name, method, aim.path, body.body)
        };
        self.check_draft(draft)
    }

    /// The step's own limit, if it has one. `None`: it is there, and is wrong.
    pub(super) fn step_timeout(&mut self, spec: &StepSpec) -> Option<Option<Nanos>> {
        match self.read(&spec.timeout, parse_duration) {
            Some(Some(Nanos::ZERO)) => {
                self.fail(spec.timeout.place(), Problem::new("a timeout must be above 0"))
            }
            timeout => timeout,
        }
    }

    /// The records that each request carries; `has_own` if its body says it itself.
    fn records(&mut self, request: &RequestStep, has_own: bool) -> Option<u32> {
        let place = request.records.place();
        if has_own && !request.records.is_absent() {
            let problem = Problem::new("`records` has no effect: bodies of this kind say it themselves");
            return self.form(place, problem.with_hint("leave it out"));
        }
        match self.read(&request.records, parse_count)? {
            None => Some(0),
            Some(records @ 1..=MOST_RECORDS) => Some(records as u32),
            Some(_) => {
                let problem = Problem::new(format!("a request carries 1 to {MOST_RECORDS} records"));
                self.fail(place, problem.with_hint("leave it out where it carries none"))
            }
        }
    }

    /// Returns `true` if the iteration goes on after the request has failed.
    pub(super) fn goes_on(&mut self, spec: &StepSpec) -> Option<bool> {
        let given = self.read(&spec.on_failure, |text| match text {
            "continue" => Ok(true),
            "end" => Ok(false),
            _ => Err(format!("`{text}` is not one of end, continue")),
        });
        given.map(|given| given.unwrap_or(false))
    }

    /// The server of a step that names none in its path: its target, or that of the scenario.
    fn step_origin(&mut self, spec: &StepSpec, place: Option<Place>, part: &Part<'_>) -> Option<Origin> {
        match spec.target.is_absent() {
            true => self.default_origin(place, part),
            false => self.named_target(&spec.target),
        }
    }

    /// Resolves the server of a step that speaks another protocol than HTTP.
    pub(super) fn origin_of(
        &mut self,
        protocol: Protocol,
        spec: &StepSpec,
        place: Option<Place>,
        part: &Part<'_>,
    ) -> Option<Origin> {
        let origin = self.step_origin(spec, place, part)?;
        if origin.scheme.protocol == Some(protocol) {
            return Some(origin);
        }
        let ProtocolRow { noun, target_hint, .. } = protocol.scheme(false);
        let problem = Problem::new(format!("`{}` is not {noun}", origin.authority));
        self.fail(place, problem.with_hint(*target_hint))
    }

    /// Compiles the request once, to find its problems together with all others.
    pub(super) fn check_draft(&mut self, draft: Draft) -> Option<Draft> {
        let scope = self.scope(&draft.variables, &self.constants);
        let spec = draft.spec(self.servers.get(draft.server), true, None);
        let request = RequestTemplate::compile(&spec, &scope, None).map(|_| ());
        let handler = ResponseHandler::compile(&draft.handler, &scope).map(|_| ());
        match request.and(handler) {
            Ok(()) => Some(draft),
            Err(error) => self.fail_template(draft.place, &error),
        }
    }

    /// Resolves the server and the path of a request.
    fn aim(
        &mut self,
        spec: &StepSpec,
        request: &RequestStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Aim> {
        let Some((_, field)) = request.address.given_url() else {
            if !request.address.same_url.is_absent() {
                return self.same_aim(spec, &request.address, place, part, known);
            }
            let origin = self.step_origin(spec, place, part)?;
            // The script decides what is requested.
            let path = format!("{}/", origin.prefix);
            return Some(Aim { origin, path, shown: BY_SCRIPT.to_owned(), strays: false });
        };
        let named = match spec.target.is_absent() {
            true => None,
            false => Some(self.named_target(&spec.target)),
        };
        let text = self.text(field)?.trim().to_owned();
        self.template(&text, field.place(), part, known)?;
        if has_scheme(&text) {
            if named.is_some() {
                let problem = Problem::new("`target` has no effect beside a whole URL");
                return self
                    .fail(spec.target.place(), problem.with_hint("write the path alone, or leave it out"));
            }
            let (origin, path) = self.absolute(&text, field.place())?;
            // As it was typed, but never with a password.
            let shown = match text.contains('@') {
                true => path.clone(),
                false => field.get()?.0.trim().to_owned(),
            };
            return Some(Aim { origin, path, shown, strays: false });
        }
        let from_variable = text.starts_with("${");
        if !(text.starts_with('/') || from_variable || text == "*") {
            let problem = Problem::new(format!("`{}` is neither a path nor a URL", text.escape_debug()));
            let hint = format!("write `/{text}` for a path, `http://{text}` for a URL");
            return self.fail(field.place(), problem.with_hint(hint));
        }
        let origin = match named {
            Some(origin) => origin?,
            None => self.default_origin(place, part)?,
        };
        let shown = field.get()?.0.trim().to_owned();
        let path = match checked_path(&text) {
            Ok(path) => path,
            Err(problem) => return self.fail(field.place(), problem),
        };
        // A variable that begins a path is a whole path: it was taken from a response, with its prefix.
        let path = match from_variable || text == "*" {
            true => text,
            false => format!("{}{path}", origin.prefix),
        };
        Some(Aim { origin, path, shown, strays: from_variable })
    }

    fn default_origin(&mut self, place: Option<Place>, part: &Part<'_>) -> Option<Origin> {
        if let Some(origin) = &part.origin {
            return Some(origin.clone());
        }
        if !part.spec.target.is_absent() || self.only_target().is_some() {
            // The target is wrong, and was reported.
            return None;
        }
        if std::mem::replace(&mut self.misses_target, true) {
            // The problem is the same for every step, so it is reported once.
            return None;
        }
        let problem = Problem::new("no server for the path");
        let names = self.target_names();
        let hint = match names.is_empty() {
            true => "write a whole URL, or give the plan a target: `targets: {api: http://127.0.0.1:8080}`"
                .to_owned(),
            false => {
                format!("choose one with `target`, in the scenario or in the step: {}", names.join(", "))
            }
        };
        self.fail(place, problem.with_hint(hint))
    }

    /// The URL of the request before.
    fn same_aim(
        &mut self,
        spec: &StepSpec,
        address: &AddressSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Aim> {
        if !is_on(&address.same_url) {
            let problem = Problem::new("`same_url: false` sends no request");
            return self.form(
                address.same_url.place(),
                problem.with_hint("write `get: /path`, or `same_url: true`"),
            );
        }
        if !spec.target.is_absent() {
            let problem = Problem::new("`target` has no effect beside `same_url`");
            return self.fail(spec.target.place(), problem);
        }
        let variable = self.variable(LAST_PATH)?;
        let before = match known.last {
            Last::Nothing => {
                let problem = Problem::new("there is no request before this one on every way to it");
                return self
                    .fail(address.same_url.place(), problem.with_hint("write the path: `get: /path`"));
            }
            Last::One(index) => index,
            Last::Several => {
                part.asks_again = Some(place);
                part.drafts.len().checked_sub(1)?
            }
        };
        // If the step before was wrong, nothing can be said about this one.
        let draft = part.drafts.get_mut(before)?;
        if draft.dialect != Dialect::Http {
            let noun = self.servers.get(draft.server).url.scheme.noun;
            let problem = Problem::new(format!("the step before asks {noun}, which has no URLs"));
            return self.fail(address.same_url.place(), problem.with_hint("write the path: `get: /path`"));
        }
        let is_static = known.last != Last::Several && !draft.target.contains("${");
        let strays = draft.away.is_some();
        let path = match is_static {
            true => draft.target.clone(),
            false => {
                keep_path(draft, variable);
                format!("${{{LAST_PATH}}}")
            }
        };
        let origin = Origin {
            server: draft.server,
            authority: draft.authority.clone(),
            prefix: String::new(),
            authorization: None,
            scheme: self.servers.get(draft.server).url.scheme,
        };
        Some(Aim { origin, path, shown: SAME_URL.to_owned(), strays })
    }

    fn method(&mut self, request: &RequestStep) -> Option<String> {
        let AddressSpec { method, .. } = &request.address;
        if let Some((word, _)) = request.address.given_url().filter(|(word, _)| *word != "request") {
            if !method.is_absent() {
                let problem = Problem::new(format!("`method` has no effect beside `{word}`"));
                return self
                    .form(method.place(), problem.with_hint("write `request: /path` for another method"));
            }
            return Some(word.to_ascii_uppercase());
        }
        let Some(given) = self.plain_given(method)? else {
            return Some(request.default_method().to_owned());
        };
        match check_method(&given) {
            Ok(()) => Some(given),
            Err(error) => self.fail(method.place(), from_template(&error)),
        }
    }

    /// A text that may be absent. `None`: it is there, and is wrong.
    pub(super) fn plain_given(&mut self, field: &Field<Text>) -> Option<Option<String>> {
        match field.is_absent() {
            true => Some(None),
            false => self.plain(field).map(Some),
        }
    }

    /// Headers of a scenario or a step.
    pub(super) fn own_headers(
        &mut self,
        headers: &Keyed<Field<Text>>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Headers> {
        let mut checked = Vec::new();
        for (name, place, field) in &headers.0 {
            checked.push(self.header(&name.0, Some(*place), field, part, known));
        }
        checked.into_iter().collect()
    }

    fn header(
        &mut self,
        name: &str,
        place: Option<Place>,
        field: &Field<Text>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<(String, String)> {
        let value = self.text(field)?;
        if name.contains(':') {
            let problem =
                Problem::new(format!("`:` is not allowed in the header's name `{}`", name.escape_debug()));
            return self.fail(place, problem);
        }
        let scope = self.scope(&self.variables, &self.constants);
        let (name, value) = match parse_header_in(&format!("{name}: {value}"), &scope) {
            Ok(header) => header,
            Err(error) => return self.fail_template(place, &error),
        };
        if closes(&name, &value) {
            let problem = Problem::new("`Connection: close` applies to the whole run");
            return self.fail(place, problem.with_hint("write `disable_keepalive: true` under `run`"));
        }
        if let Some(problem) = foreign_to_http2(self.preference, &name, &value) {
            return self.fail(place, problem);
        }
        self.template(&value, field.place(), part, known)?;
        Some((name, value))
    }

    /// The name of a step; each is named once in its scenario.
    pub(super) fn step_name(
        &mut self,
        spec: &StepSpec,
        method: Option<&str>,
        shown: Option<&str>,
        part: &mut Part<'_>,
    ) -> Option<String> {
        if let Some(name) = self.plain_given(&spec.name)? {
            self.check_name(&name, spec.name.place());
            if !part.names.give(&name) {
                let problem = Problem::new(format!("two steps of the scenario are called `{name}`"));
                return self.form(spec.name.place(), problem.with_hint("reports refer to steps by name"));
            }
            return Some(self.resolver.redaction.in_text(&name).into_owned());
        }
        let method = method?;
        Some(match shown {
            Some(shown) => part.names.make(&format!("{method} {}", self.resolver.redaction.in_text(shown))),
            None => part.names.make(method),
        })
    }
}

/// Headers over others: a name that occurs again replaces the value below.
pub(super) fn over(below: Headers, above: Headers) -> Headers {
    let named = |name: &str| above.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let mut all: Headers = below.into_iter().filter(|(name, _)| !named(name)).collect();
    all.extend(above);
    all
}

/// Returns `true` if a text is a URL rather than a path.
fn has_scheme(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_headers_replace_earlier_ones() {
        let headers = |text: &str| -> Headers {
            text.split_whitespace()
                .filter_map(|pair| pair.split_once('='))
                .map(|(a, b)| (a.into(), b.into()))
                .collect()
        };
        let all = over(over(headers("A=1 B=1 b=2 C=1"), headers("B=3")), headers("c= D=1"));
        assert_eq!(all, headers("A=1 B=3 c= D=1"));
    }

    #[test]
    fn urls_and_paths() {
        for (text, url) in [
            ("http://a/", true),
            ("HTTPS://a", true),
            ("/a?to=http://b", false),
            ("${base}://x", false),
            ("localhost:80/", false),
            ("://a", false),
        ] {
            assert_eq!(has_scheme(text), url, "{text}");
        }
    }
}
