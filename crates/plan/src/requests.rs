//! What is sent, and to whom.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_scenario::{
    Body, Extract, Needs, Op, Program, Reaction, RequestSpec, RequestTemplate, Scheme, Scope, Template,
    TemplateError, check_method, parse_header,
};
use plimsoll_script::WrkScript;
use plimsoll_wire::http2::HeaderBook;

use crate::crud::{self, Crud};
use crate::protocol::Wish;
use crate::resolve::Resolver;
use crate::route::Routes;
use crate::script;
use crate::security::{TlsSettings, basic_authorization};
use crate::url::Url;
use crate::{Address, PlanPatch, Problem, Protocol, Scenario, Step, Target, TlsTarget};

/// The request side of a plan.
pub(crate) struct Requests {
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) steps: Vec<Step>,
    pub(crate) targets: Vec<Target>,
    /// Variables of one iteration.
    pub(crate) variables: usize,
    /// Whether a header asks for every connection to be closed.
    pub(crate) closes: bool,
    /// The script of wrk's that makes them.
    pub(crate) wrk: Option<Arc<WrkScript>>,
}

/// One request of a scenario, before it is compiled.
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) method: String,
    /// Path and query; a template.
    pub(crate) target: String,
    pub(crate) body: Body,
    /// Variables that the target may name.
    pub(crate) variables: Vec<String>,
    pub(crate) extract: Vec<Extract>,
}

impl Resolver<'_> {
    /// Reads the URLs and everything that goes into a request, and compiles one scenario per URL.
    pub(crate) fn requests(
        &mut self,
        patch: &PlanPatch,
        wish: &Wish,
        crud: Option<&Crud>,
    ) -> Option<Requests> {
        let urls = self.urls(patch, crud);
        let routes = self.routes(patch);
        let headers = self.headers(patch, wish);
        let body = self.body(patch);
        let method = self.method(patch);
        let authorization = self.authorization(patch);
        let https = urls.as_ref().is_some_and(|urls| urls.iter().any(|url| url.https));
        // Without a valid URL it is not known whether TLS is needed: nothing to say about its flags then.
        let tls = if urls.is_some() { self.tls(patch, wish, https) } else { None };
        if let Some(urls) = &urls {
            self.check_schemes(patch, wish, urls.iter().any(|url| !url.https), https);
        }
        let (urls, headers, authorization) = (urls?, headers?, authorization?);
        let mut routes = routes?;

        let targets = self.targets(patch, wish, &urls, &mut routes, tls?);
        self.check_used(&routes);
        let (targets, indices) = targets?;
        let (body, method) = (body?, method?);
        if let Some(crud) = crud {
            self.check_variable(patch, crud, &urls)?;
        }
        let mut requests = Requests {
            scenarios: Vec::with_capacity(urls.len()),
            steps: Vec::with_capacity(urls.len()),
            targets,
            variables: if crud.is_some() { crud::VARIABLES } else { 0 },
            closes: headers.iter().any(|(name, value)| {
                let close = |option: &str| option.trim().eq_ignore_ascii_case("close");
                name.eq_ignore_ascii_case("connection") && value.split(',').any(close)
            }),
            wrk: None,
        };
        for (url, target) in urls.iter().zip(indices) {
            let mut headers = self.with_authorization(patch, url, &headers, authorization.as_deref())?;
            let (name, mut drafts) = match crud {
                Some(crud) => crud.scenario(url, urls.len() > 1),
                None => single(url, &method, &body),
            };
            let wrk = self.wrk_script(patch, wish, url, &mut headers, &mut drafts[0])?;
            let shown = crud.map_or_else(|| url.shown(), |crud| crud.shown(url));
            let known = &mut requests.targets[target].urls;
            if !known.contains(&shown) {
                known.push(shown);
            }
            let start = requests.steps.len() as u32;
            for draft in drafts {
                self.compile(patch, url, &headers, draft, target, &mut requests);
            }
            let steps = start..requests.steps.len() as u32;
            let mut program = Program::new(steps.clone().map(Op::Send).collect());
            if let (Some(script), Some(step)) = (wrk, requests.steps.last_mut()) {
                script::attach(&script, step);
                program = script::program(&script, start);
                requests.wrk = Some(script);
            }
            requests.scenarios.push(Scenario { name, steps, program, weight: 1, start_after: Nanos::ZERO });
        }
        for book in requests.targets.iter_mut().filter_map(|target| target.book.as_mut()) {
            book.seal();
        }
        Some(requests)
    }

    /// Compiles one request to `target` and adds it.
    fn compile(
        &mut self,
        patch: &PlanPatch,
        url: &Url,
        headers: &[(String, String)],
        draft: Draft,
        target: usize,
        requests: &mut Requests,
    ) {
        let spec = RequestSpec {
            method: draft.method,
            scheme: if url.https { Scheme::Https } else { Scheme::Http },
            target: draft.target,
            authority: url.authority.clone(),
            headers: headers.to_vec(),
            body: draft.body,
            keep_alive: !patch.disable_keepalive,
        };
        let scope = Scope { variables: &draft.variables };
        match RequestTemplate::compile(&spec, &scope, requests.targets[target].book.as_mut()) {
            Ok(request) => {
                requests.steps.push(Step {
                    name: draft.name,
                    target,
                    request,
                    extract: draft.extract,
                    reaction: Reaction::default(),
                    needs: Needs::default(),
                    timeout: None,
                    make_script: None,
                    check_script: None,
                });
            }
            Err(error) => self.problems.push(from_template(&error)),
        }
    }

    fn urls(&mut self, patch: &PlanPatch, crud: Option<&Crud>) -> Option<Vec<Url>> {
        if patch.urls.is_empty() {
            let problem = Problem::new("no URL is given");
            return self.fail(problem.with_hint("write `plimsoll run http://127.0.0.1:8080/`"));
        }
        let mut urls = Vec::new();
        for given in &patch.urls {
            if [".yaml", ".yml", ".json"].iter().any(|end| given.text.ends_with(end))
                && !given.text.contains("://")
            {
                let message = format!("`{}` looks like a plan file: those are not supported yet", given.text);
                self.problems.push(Problem::new(message).with_hint("give a URL, with http:// in front"));
                continue;
            }
            let fill = |tail: &str| match crud {
                Some(crud) => crud.fill(tail),
                None => Ok(tail.to_owned()),
            };
            match Url::parse(&given.text, fill) {
                Ok(url) => urls.push(url),
                Err(problem) => self.problems.push(problem),
            }
        }
        (urls.len() == patch.urls.len()).then_some(urls)
    }

    /// The servers behind the URLs, each once, and for every URL the index of its server.
    fn targets(
        &mut self,
        patch: &PlanPatch,
        wish: &Wish,
        urls: &[Url],
        routes: &mut Routes,
        tls: Option<TlsSettings>,
    ) -> Option<(Vec<Target>, Vec<usize>)> {
        let sni = self.read(patch.sni.as_ref(), parse_server_name)?;
        let mut known: Vec<&Url> = Vec::new();
        let mut targets = Vec::new();
        let mut indices = Vec::new();
        for url in urls {
            let same =
                |other: &&Url| (other.https, &other.host, other.port) == (url.https, &url.host, url.port);
            if let Some(index) = known.iter().position(same) {
                indices.push(index);
                continue;
            }
            let address = routes.address(url);
            self.check_family(patch, &address);
            indices.push(known.len());
            known.push(url);
            let protocol = wish.protocol(url.https);
            targets.push(Target {
                authority: url.authority.clone(),
                urls: Vec::new(),
                address,
                protocol,
                book: protocol.may_be_http2().then(HeaderBook::new),
                tls: tls.as_ref().filter(|_| url.https).map(|tls| TlsTarget {
                    config: tls.config.clone(),
                    settings: tls.fingerprint,
                    server_name: sni.clone().unwrap_or_else(|| url.host.clone()),
                }),
            });
        }
        Some((targets, indices))
    }

    /// Refuses `-4` and `-6` for addresses that are known to be of the other family.
    fn check_family(&mut self, patch: &PlanPatch, address: &Address) {
        let ips: Vec<IpAddr> = match address {
            Address::Host { host, .. } => host.parse().into_iter().collect(),
            Address::Fixed(addresses) => addresses.iter().map(SocketAddr::ip).collect(),
            Address::Unix(_) => Vec::new(),
        };
        for (only, flag, family) in [(patch.ipv4, "-4", "IPv4"), (patch.ipv6, "-6", "IPv6")] {
            if let (true, Some(ip)) = (only, ips.iter().find(|ip| ip.is_ipv4() != (flag == "-4"))) {
                self.problems.push(Problem::new(format!("{flag}: {ip} is not an {family} address")));
            }
        }
    }

    fn method(&mut self, patch: &PlanPatch) -> Option<String> {
        match &patch.method {
            // As curl: a body without a method is a POST.
            None if patch.body.is_some() => Some("POST".to_owned()),
            None => Some("GET".to_owned()),
            Some(given) => match check_method(&given.text) {
                Ok(()) => Some(given.text.clone()),
                Err(error) => self.fail(from_template(&error.at(&given.by))),
            },
        }
    }

    fn headers(&mut self, patch: &PlanPatch, wish: &Wish) -> Option<Vec<(String, String)>> {
        let mut headers = Vec::new();
        for (index, given) in patch.headers.iter().enumerate() {
            match parse_header(&given.text) {
                Ok((name, value)) => {
                    if let Some(problem) = foreign_to_http2(wish, &name, &value) {
                        self.problems.push(problem);
                    }
                    headers.push((name, value));
                }
                Err(error) => {
                    // By its number: the text may be a secret.
                    let place =
                        if patch.headers.len() == 1 { String::new() } else { format!(" {}", index + 1) };
                    self.problems.push(from_template(&error.at(format!("{}{place}", given.by))));
                }
            }
        }
        (headers.len() == patch.headers.len()).then_some(headers)
    }

    /// The body: `@file` as it is, any other text as a template.
    fn body(&mut self, patch: &PlanPatch) -> Option<Body> {
        let Some(given) = &patch.body else { return Some(Body::None) };
        if let Some(path) = given.text.strip_prefix('@') {
            return Some(Body::Raw(Arc::from(self.file(given, path)?)));
        }
        match Template::parse(given.text.as_bytes()) {
            Ok(_) => Some(Body::Text(given.text.clone().into_bytes())),
            Err(error) => self.fail(from_template(&error.at(&given.by))),
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
        let flag = || patch.basic.as_ref().or(patch.bearer.as_ref()).map_or("", |given| &given.by);
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
        if let Some(value) = authorization.or(in_url.as_deref()) {
            headers.push(("Authorization".to_owned(), Template::escape(value)));
        }
        Some(headers)
    }
}

/// The scenario of one request to a URL: its name and the request.
fn single(url: &Url, method: &str, body: &Body) -> (String, Vec<Draft>) {
    let name = format!("{method} {}", url.shown());
    let draft = Draft {
        name: name.clone(),
        method: method.to_owned(),
        target: url.target.clone(),
        body: body.clone(),
        variables: Vec::new(),
        extract: Vec::new(),
    };
    (name, vec![draft])
}

/// Headers that are about an HTTP/1.1 connection have no place in HTTP/2 (RFC 9113 section 8.2.2): servers
/// reject them, so they would have to be left out silently. An empty value only leaves out a default header.
fn foreign_to_http2(wish: &Wish, name: &str, value: &str) -> Option<Problem> {
    const FOREIGN: [&str; 4] = ["connection", "keep-alive", "proxy-connection", "upgrade"];
    let name_is = |other: &str| name.eq_ignore_ascii_case(other);
    let foreign = match wish {
        // `Connection: close` is a wish about connections, and refused as that.
        _ if name_is("connection") && value.eq_ignore_ascii_case("close") => false,
        _ if name_is("te") => wish.may_be_http2() && !value.eq_ignore_ascii_case("trailers"),
        // With a choice, it is for the case that HTTP/1.1 is chosen.
        _ => wish.protocol(true) == Protocol::Http2 && FOREIGN.iter().any(|other| name_is(other)),
    };
    if value.is_empty() || !foreign {
        return None;
    }
    let problem = Problem::new(format!("the header `{name}` has no place in HTTP/2"));
    Some(problem.with_hint("leave it out, or speak HTTP/1.1"))
}

pub(crate) fn from_template(error: &TemplateError) -> Problem {
    Problem { message: error.message().to_owned(), hint: error.hint().map(str::to_owned), place: None }
}

fn parse_server_name(text: &str) -> Result<String, String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if text.is_empty() || !text.bytes().all(legal) {
        return Err(format!("`{text}` is not a host name"));
    }
    Ok(text.to_ascii_lowercase())
}
