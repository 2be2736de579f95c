//! What is sent, and to whom.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use plimsoll_scenario::{
    Body, RequestSpec, RequestTemplate, Template, TemplateError, check_method, parse_header,
};

use crate::resolve::Resolver;
use crate::route::Routes;
use crate::security::{TlsSettings, basic_authorization};
use crate::url::Url;
use crate::{Address, PlanPatch, Problem, Step, Target, TlsTarget};

/// The request side of a plan.
pub(crate) struct Requests {
    pub(crate) steps: Vec<Step>,
    pub(crate) targets: Vec<Target>,
    /// Whether a header asks for every connection to be closed.
    pub(crate) closes: bool,
}

impl Resolver<'_> {
    /// Reads the URLs and everything that goes into a request, and compiles one request per URL.
    pub(crate) fn requests(&mut self, patch: &PlanPatch) -> Option<Requests> {
        let urls = self.urls(patch);
        let routes = self.routes(patch);
        let headers = self.headers(patch);
        let body = self.body(patch);
        let method = self.method(patch);
        let authorization = self.authorization(patch);
        let https = urls.as_ref().is_some_and(|urls| urls.iter().any(|url| url.https));
        // Without a valid URL it is not known whether TLS is needed: nothing to say about its flags then.
        let tls = if urls.is_some() { self.tls(patch, https) } else { None };
        let (urls, headers, authorization) = (urls?, headers?, authorization?);
        let mut routes = routes?;

        let targets = self.targets(patch, &urls, &mut routes, tls?);
        self.check_used(&routes);
        let (targets, indices) = targets?;
        let (body, method) = (body?, method?);
        let mut steps = Vec::with_capacity(urls.len());
        for (url, target) in urls.iter().zip(indices) {
            let spec = RequestSpec {
                method: method.clone(),
                target: url.target.clone(),
                authority: url.authority.clone(),
                headers: self.with_authorization(patch, url, &headers, authorization.as_deref())?,
                body: body.clone(),
                keep_alive: !patch.disable_keepalive,
            };
            match RequestTemplate::http1(&spec) {
                Ok(request) => {
                    steps.push(Step { name: format!("{method} {}", url.shown()), target, request });
                }
                Err(error) => self.problems.push(from_template(&error)),
            }
        }
        let closes = headers.iter().any(|(name, value)| {
            let close = |option: &str| option.trim().eq_ignore_ascii_case("close");
            name.eq_ignore_ascii_case("connection") && value.split(',').any(close)
        });
        Some(Requests { steps, targets, closes })
    }

    fn urls(&mut self, patch: &PlanPatch) -> Option<Vec<Url>> {
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
            match Url::parse(&given.text) {
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
            targets.push(Target {
                authority: url.authority.clone(),
                address,
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

    fn headers(&mut self, patch: &PlanPatch) -> Option<Vec<(String, String)>> {
        let mut headers = Vec::new();
        for (index, given) in patch.headers.iter().enumerate() {
            match parse_header(&given.text) {
                Ok(header) => headers.push(header),
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

fn from_template(error: &TemplateError) -> Problem {
    Problem { message: error.message().to_owned(), hint: error.hint().map(str::to_owned) }
}

fn parse_server_name(text: &str) -> Result<String, String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if text.is_empty() || !text.bytes().all(legal) {
        return Err(format!("`{text}` is not a host name"));
    }
    Ok(text.to_ascii_lowercase())
}
