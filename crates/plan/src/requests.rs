//! Requests and the servers that they go to.

use std::sync::Arc;

use plimsoll_document::Problem;
use plimsoll_scenario::{Body, ScriptSource, Template, TemplateError, check_method, parse_header};

use crate::crud::{self, Crud};
use crate::draft::{Draft, Requests, ScenarioDraft, Work};
use crate::loading::{is_plan_name, not_a_url};
use crate::protocol::{ProtocolPreference, ProtocolRow};
use crate::resolve::Resolver;
use crate::script;
use crate::security::basic_authorization;
use crate::targets::Servers;
use crate::url::Url;
use crate::{Plan, PlanPatch, Protocol};

/// The header of W3C Trace Context.
const TRACEPARENT: &str = "traceparent";
/// Problem with a text that is no link to a trace.
const NO_LINK: &str = "a link to a trace begins with http:// or https:// and has ${trace_id} in it";

/// Reads a link to a trace.
fn parse_link(text: &str) -> Result<String, &'static str> {
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    if is_web && text.contains("${trace_id}") { Ok(text.to_owned()) } else { Err(NO_LINK) }
}

/// The value of `traceparent` of requests of which this share is marked as sampled.
fn parse_sampled(text: &str) -> Result<String, String> {
    let share = if text == "true" { "100%" } else { text };
    let value = format!("${{traceparent({share})}}");
    match Template::parse(value.as_bytes()) {
        Ok(_) => Ok(value),
        Err(_) => Err(format!("`{text}` is not a share: write one from 0% to 100%")),
    }
}

impl Resolver<'_> {
    /// Reads the URLs and everything that goes into a request, and compiles one scenario per URL.
    pub(crate) fn requests(
        &mut self,
        patch: &PlanPatch,
        preference: &ProtocolPreference,
        crud: Option<&Crud>,
    ) -> Option<Requests> {
        let urls = self.urls(patch, crud);
        let routes = self.routes(patch);
        let headers = self.headers(patch, preference);
        let body = self.body(patch);
        let method = self.method(patch);
        let token = self.run_token(patch);
        let authorization = self.authorization(patch, token.as_ref()?.as_deref());
        let mut servers = Servers::default();
        let indices: Option<Vec<usize>> = urls.as_ref().map(|urls| {
            let several = urls.iter().map(|url| {
                let index = servers.add(url);
                let shown = crud.map_or_else(|| url.shown(), |crud| crud.shown(url));
                servers.show(index, self.redaction.in_text(&shown).into_owned());
                index
            });
            several.collect()
        });
        // Without a valid URL it is unknown whether TLS is needed, so TLS flags are not checked.
        let (urls, indices) = (urls?, indices?);
        let targets = self.targets(patch, preference, &servers, routes, false);
        let (headers, authorization) = (headers?, authorization?);
        let (targets, body, method) = (targets?, body?, method?);
        if let Some(crud) = crud {
            self.check_variable(patch, crud, &urls)?;
        }
        let mut work = Work {
            servers,
            variables: crud.iter().map(|_| crud::RESOURCE.to_owned()).collect(),
            tokens: token.into_iter().flatten().collect(),
            closes: headers.iter().any(|(name, value)| closes(name, value)),
            ..Work::default()
        };
        for (url, server) in urls.iter().zip(indices) {
            let mut headers = self.with_authorization(patch, url, &headers, authorization.as_deref())?;
            let (name, mut drafts) = match crud {
                Some(crud) => crud.scenario(url, urls.len() > 1),
                None => single(url, &method, &body),
            };
            let wrk = self.wrk_script(patch, preference, url, &mut headers, &mut drafts[0])?;
            let name = self.redaction.in_text(&name).into_owned();
            let drafts = drafts.into_iter().map(|draft| Draft {
                name: self.redaction.in_text(&draft.name).into_owned(),
                server,
                authority: url.authority.clone(),
                headers: headers.clone(),
                script: wrk.as_ref().map(|_| 0),
                ..draft
            });
            let mut scenario = ScenarioDraft::straight(name, drafts.collect());
            if let Some(script) = wrk {
                scenario.ops = script::ops(&*script);
                work.scripts = Some(Arc::clone(&script) as Arc<dyn ScriptSource>);
                work.wrk = Some(script);
            }
            work.scenarios.push(scenario);
        }
        Some(self.assemble(patch, work, targets))
    }

    fn urls(&mut self, patch: &PlanPatch, crud: Option<&Crud>) -> Option<Vec<Url>> {
        if patch.urls.is_empty() {
            if let Some(loaded) = &patch.document {
                // Scenarios that could not be read were reported.
                let problem = Problem::new("the plan has no scenarios, and no URL is given");
                let hint = format!("add scenarios, or write `plimsoll run {} URL`", loaded.name());
                return self.fail(problem.with_hint(hint));
            }
            let problem = Problem::new("no URL is given");
            return self.fail(problem.with_hint("write `plimsoll run http://127.0.0.1:8080/`"));
        }
        let mut urls = Vec::new();
        for given in &patch.urls {
            if is_plan_name(&given.text) {
                let message = format!("`{}` is not a URL: it looks like a plan file", given.text);
                let problem = Problem::new(message).at(given.place);
                self.problems
                    .push(problem.with_hint("there can be one plan file; a URL begins with http://"));
                continue;
            }
            if let Some(problem) = not_a_url(&given.text, self.files) {
                self.problems.push(problem.at(given.place));
                continue;
            }
            let fill = |tail: &str| match crud {
                Some(crud) => crud.fill(tail),
                None => Ok(tail.to_owned()),
            };
            match Url::parse(&given.text, fill) {
                Ok(url) if !url.scheme.is_http() => {
                    let ProtocolRow { noun, command_hint, .. } = url.scheme;
                    let problem = Problem::new(format!("`{}` is {noun}, which has no pages", given.text));
                    self.problems.push(problem.with_hint(*command_hint).at(given.place));
                }
                Ok(url) => urls.push(url),
                Err(problem) => self.problems.push(problem),
            }
        }
        (urls.len() == patch.urls.len()).then_some(urls)
    }

    fn method(&mut self, patch: &PlanPatch) -> Option<String> {
        match &patch.method {
            // As with curl, a body without a method means POST.
            None if patch.body.is_some() => Some("POST".to_owned()),
            None => Some("GET".to_owned()),
            Some(given) => match check_method(&given.text) {
                Ok(()) => Some(given.text.clone()),
                Err(error) => self.fail(from_template(&error.at(&given.by)).at(given.place)),
            },
        }
    }

    pub(crate) fn headers(
        &mut self,
        patch: &PlanPatch,
        preference: &ProtocolPreference,
    ) -> Option<Vec<(String, String)>> {
        let mut headers = Vec::new();
        for (index, given) in patch.headers.iter().enumerate() {
            match parse_header(&given.text) {
                Ok((name, value)) => {
                    if let Some(problem) = foreign_to_http2(preference, &name, &value) {
                        self.problems.push(problem.at(given.place));
                    }
                    headers.push((name, value));
                }
                Err(error) => {
                    // The problem names its number: the text may be a secret.
                    let place =
                        if patch.headers.len() == 1 { String::new() } else { format!(" {}", index + 1) };
                    let problem = from_template(&error.at(format!("{}{place}", given.by)));
                    self.problems.push(problem.at(given.place));
                }
            }
        }
        let complete = headers.len() == patch.headers.len();
        let share = self.read(patch.trace_context.as_ref(), parse_sampled);
        if let Some(value) = share?
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(TRACEPARENT))
        {
            headers.push((TRACEPARENT.to_owned(), value));
        }
        complete.then_some(headers)
    }

    /// Refuses settings of traces where no request has one.
    pub(crate) fn check_traces(&mut self, patch: &PlanPatch, plan: &Plan) {
        if plan.steps.iter().any(|step| step.request.is_traced()) {
            return;
        }
        let unused = [
            (patch.trace_link.as_ref(), "name the requests to their server: --trace-context"),
            (
                patch.trace_context.as_ref(),
                "leave it out: they have a header `traceparent` of their own, or no header",
            ),
        ];
        for (given, hint) in unused {
            let Some(given) = given else { continue };
            let problem = given.problem(format!("{} has no effect: no request names a trace", given.by));
            self.problems.push(problem.with_hint(hint));
        }
    }

    /// Reads the link to a trace.
    pub(crate) fn trace_link(&mut self, patch: &PlanPatch) -> Option<Option<String>> {
        self.read(patch.trace_link.as_ref(), parse_link)
    }

    /// The body: `@file` as it is, any other text as a template.
    fn body(&mut self, patch: &PlanPatch) -> Option<Body> {
        let Some(given) = &patch.body else { return Some(Body::None) };
        if let Some(path) = given.text.strip_prefix('@') {
            return Some(Body::Raw(Arc::from(self.file(given, path)?)));
        }
        match Template::parse(given.text.as_bytes()) {
            Ok(_) => Some(Body::Text(given.text.clone().into_bytes())),
            Err(error) => self.fail(from_template(&error.at(&given.by)).at(given.place)),
        }
    }

    /// The headers of one URL's request: with the credentials of the flags, or those in the URL.
    fn with_authorization(
        &mut self,
        patch: &PlanPatch,
        url: &Url,
        headers: &[(String, String)],
        authorization: Option<&str>,
    ) -> Option<Vec<(String, String)>> {
        let flag = || patch.credentials().map_or("", |given| &given.by);
        let in_url = match &url.user_info {
            None => None,
            // A user without a password is legal in a URL.
            Some(user) if user.contains(':') => basic_authorization(user),
            Some(user) => basic_authorization(&format!("{user}:")),
        };
        let in_header = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let places = [
            in_header.then(|| "the header `Authorization`".to_owned()),
            authorization.map(|_| flag().to_owned()),
            in_url.as_ref().map(|_| "the user in the URL".to_owned()),
        ];
        let places: Vec<String> = places.into_iter().flatten().collect();
        if places.len() > 1 {
            return self.fail(Problem::new(format!("{} exclude each other", places.join(" and "))));
        }
        let mut headers = headers.to_vec();
        let in_url = in_url.map(|value| Template::escape(&value));
        if let Some(value) = authorization.or(in_url.as_deref()) {
            headers.push(("Authorization".to_owned(), value.to_owned()));
        }
        Some(headers)
    }
}

/// The scenario of one request to a URL: its name and the request.
fn single(url: &Url, method: &str, body: &Body) -> (String, Vec<Draft>) {
    let name = format!("{method} {}", url.shown());
    let draft = Draft::new(name.clone(), method.to_owned(), url.target.clone(), body.clone());
    (name, vec![draft])
}

/// Returns `true` if a header asks for the connection to be closed.
pub(crate) fn closes(name: &str, value: &str) -> bool {
    let close = |option: &str| option.trim().eq_ignore_ascii_case("close");
    name.eq_ignore_ascii_case("connection") && value.split(',').any(close)
}

/// Headers that are about an HTTP/1.1 connection have no place in HTTP/2 (RFC 9113 section 8.2.2): servers
/// reject them, so they would have to be left out silently. An empty value only leaves out a default header.
pub(crate) fn foreign_to_http2(preference: &ProtocolPreference, name: &str, value: &str) -> Option<Problem> {
    const FOREIGN: [&str; 4] = ["connection", "keep-alive", "proxy-connection", "upgrade"];
    let name_is = |other: &str| name.eq_ignore_ascii_case(other);
    let foreign = match preference {
        // `Connection: close` concerns connections, and is refused elsewhere.
        _ if name_is("connection") && value.eq_ignore_ascii_case("close") => false,
        _ if name_is("te") => preference.may_be_http2() && !value.eq_ignore_ascii_case("trailers"),
        // If the server chooses the protocol, the header counts for HTTP/1.1.
        _ => preference.http(true) == Protocol::Http2 && FOREIGN.iter().any(|other| name_is(other)),
    };
    if value.is_empty() || !foreign {
        return None;
    }
    let problem = Problem::new(format!("the header `{name}` is not allowed in HTTP/2"));
    Some(problem.with_hint("leave it out, or speak HTTP/1.1"))
}

pub(crate) fn from_template(error: &TemplateError) -> Problem {
    let problem = Problem::new(error.message());
    match error.hint() {
        Some(hint) => problem.with_hint(hint),
        None => problem,
    }
}
