//! A curl command line.
//!
//! Each URL becomes a step. Options for printing or saving have no meaning for a load test, and are noted;
//! those for the transfer that are not supported here (other credentials, two proxies) are problems.

mod body;
mod effect;
mod options;
mod shell;

use core::net::IpAddr;
use std::path::Path;

use base64::Engine as _;
use plimsoll_document::{Document, Field, Files, ParallelStep, Problems, Settings, StepSpec};

use crate::Unchecked;
use crate::amount::{self, Ratio};
use crate::draft::{self, Url, text};
use crate::findings::{Findings, quoted};
use crate::flow;
use crate::proxy;
use options::{Means, Use};

/// Redirects that curl follows with `--location`.
const REDIRECTS: &str = "50";

/// The port of a proxy where curl is given none.
const PROXY_PORT: u16 = 1080;

/// Most redirects in a row that a plan can ask for.
const MOST_REDIRECTS: u32 = 100;

/// Reads a command as a shell would: `curl -X POST 'http://…'`, over several lines perhaps. Files that it
/// names are looked for in `folder`, which the plan file has to be in as well.
///
/// # Errors
/// All problems with it.
pub fn import(command: &str, folder: &Path, files: &dyn Files) -> Result<Unchecked, Problems> {
    import_words(&shell::words(command)?, folder, files)
}

/// Reads a command in words that a shell has cut already. The first one may be `curl`.
///
/// # Errors
/// All problems with them.
pub fn import_words(words: &[String], folder: &Path, files: &dyn Files) -> Result<Unchecked, Problems> {
    let is_program = |word: &&String| word.rsplit('/').next().is_some_and(|name| name.starts_with("curl"));
    let words = match words.first().filter(is_program).filter(|word| !word.contains("://")) {
        Some(_) => &words[1..],
        None => words,
    };
    let mut findings = Findings::default();
    let given = parse(words, &mut findings);
    let reader = body::Reader { folder, files };
    let mut command = Command::default();
    for option in &given {
        command.apply(option, &mut findings);
    }
    let document = command.document(&given, &reader, &mut findings);
    findings.finish_requests(document)
}

/// An option that was given, or a URL.
#[derive(Debug)]
pub(crate) struct Argument {
    used: Use,
    value: String,
    /// As it was typed.
    at: String,
}

/// Cuts words into options with their values.
fn parse(words: &[String], findings: &mut Findings) -> Vec<Argument> {
    let mut given = Vec::new();
    let mut words = words.iter();
    let mut only_urls = false;
    while let Some(word) = words.next() {
        if only_urls || word == "-" || !word.starts_with('-') {
            given.push(Argument { used: Use::Url, value: word.clone(), at: quoted(word) });
        } else if word == "--" {
            only_urls = true;
        } else if let Some(name) = word.strip_prefix("--") {
            match options::long(name) {
                Some((_, means)) => take(word, means, || words.next().cloned(), &mut given, findings),
                None => unknown(word, name, findings),
            }
        } else {
            for (index, letter) in word[1..].char_indices() {
                let at = format!("-{letter}");
                let Some((_, means)) = options::short(letter) else {
                    findings.hinted("", format!("curl has no option `{at}`, or it is not known here"), HELP);
                    break;
                };
                let attached = &word[1 + index + letter.len_utf8()..];
                let mut took_rest = false;
                let value = || {
                    took_rest = !attached.is_empty();
                    if attached.is_empty() { words.next().cloned() } else { Some(attached.to_owned()) }
                };
                take(&at, means, value, &mut given, findings);
                if took_rest {
                    break;
                }
            }
        }
    }
    given
}

const HELP: &str = "leave it out if the request does not depend on it";

fn unknown(word: &str, name: &str, findings: &mut Findings) {
    let (name, value) = name.split_once('=').unwrap_or((name, ""));
    let message = format!("curl has no option `{}`, or it is not known here", quoted(word));
    match options::near(name) {
        Some(near) if near == name => {
            findings.hinted("", message, format!("write --{name} {}", quoted(value)));
        }
        Some(near) => findings.hinted("", message, format!("did you mean `--{near}`?")),
        None => findings.hinted("", message, HELP),
    }
}

fn take(
    at: &str,
    means: Means,
    value: impl FnOnce() -> Option<String>,
    given: &mut Vec<Argument>,
    findings: &mut Findings,
) {
    let mut missing = || findings.problem(at, "its value is missing");
    match means {
        Means::Switch(used) => given.push(Argument { used, value: String::new(), at: at.to_owned() }),
        Means::Value(used) => match value() {
            Some(value) => given.push(Argument { used, value, at: at.to_owned() }),
            None => missing(),
        },
        Means::Idle => findings.note(at, "", "it has no meaning for a load test, and is left out"),
        Means::IdleValue => match value() {
            Some(value) => {
                findings.note(at, &value, "it has no meaning for a load test, and is left out");
            }
            None => missing(),
        },
        Means::Refused(hint) => findings.hinted(at, "this cannot be done here", hint),
    }
}

/// Combined effect of the options of one command.
#[derive(Default)]
struct Command {
    urls: Vec<(String, String)>,
    method: Option<String>,
    settings: Settings,
    /// Name, value, and the option; values are literal.
    headers: Vec<(String, String, String)>,
    as_query: bool,
    head: bool,
    globoff: bool,
    parallel: bool,
    digest: bool,
    /// `user:password` of `-u`, and the option.
    user: Option<(String, String)>,
    upload: Option<String>,
    request_target: Option<String>,
    /// The proxy and its user, as they were typed.
    proxy: Option<(String, String)>,
    proxy_user: Option<(String, String)>,
}

impl Command {
    fn apply(&mut self, given: &Argument, findings: &mut Findings) {
        let Argument { used, value, at } = given;
        let settings = &mut self.settings;
        let flag = || Field::new(true);
        match used {
            Use::Url => match value.strip_prefix('@') {
                Some(file) => {
                    let hint = format!(
                        "a file that has a command is named without `@`: plimsoll import curl {file}"
                    );
                    findings.hinted("", format!("`{at}` is not a URL"), hint);
                }
                None => self.urls.push((value.clone(), at.clone())),
            },
            Use::Request => self.method = Some(value.clone()),
            Use::Header => self.header(value, at, findings),
            Use::UserAgent => self.headers.push(("user-agent".into(), value.clone(), at.clone())),
            Use::Referer => self.headers.push(("referer".into(), value.clone(), at.clone())),
            Use::Range => self.headers.push(("range".into(), format!("bytes={value}"), at.clone())),
            Use::Cookie => self.cookie(value, at, findings),
            Use::Compressed => {
                self.headers.push(("accept-encoding".into(), "deflate, gzip, br, zstd".into(), at.clone()));
            }
            Use::Basic if value.contains(':') => self.user = Some((value.clone(), at.clone())),
            Use::Basic => {
                findings.hinted(at, "curl would ask for the password", "write -u user:password");
            }
            Use::Digest => self.digest = true,
            // As a header: the setting would read `@name` as a file, and excludes other credentials.
            Use::Bearer => {
                self.headers.push(("authorization".into(), format!("Bearer {value}"), at.clone()));
            }
            Use::Get => self.as_query = true,
            Use::Head => self.head = true,
            Use::Globoff => self.globoff = true,
            Use::Parallel => self.parallel = true,
            Use::Upload => self.upload = Some(value.clone()),
            Use::RequestTarget => self.request_target = Some(value.clone()),
            Use::Insecure => settings.insecure = flag(),
            Use::CaCert => settings.cacert = text(value.as_str()),
            Use::Cert => match value.rsplit_once(':') {
                Some(_) => {
                    let hint = "name a file whose key has no password, without a `:`";
                    findings.hinted(at, "keys with passwords cannot be read", hint);
                }
                None => settings.cert = text(value.as_str()),
            },
            Use::Key => settings.key = text(value.as_str()),
            Use::Tls12 => findings.note(at.as_str(), "", "TLS 1.2 and 1.3 are both offered anyway"),
            Use::Tls13 => settings.tls = text("1.3"),
            // The last one counts, there as here.
            Use::Http1 | Use::Http2 | Use::Http2PriorKnowledge => {
                let only = |this| if *used == this { flag() } else { Field::Absent };
                settings.http1 = only(Use::Http1);
                settings.http2 = only(Use::Http2);
                settings.http2_prior_knowledge = only(Use::Http2PriorKnowledge);
            }
            Use::Ipv4 => (settings.ipv4, settings.ipv6) = (flag(), Field::Absent),
            Use::Ipv6 => (settings.ipv4, settings.ipv6) = (Field::Absent, flag()),
            Use::NoKeepalive => {
                findings.note(
                    at.as_str(),
                    "",
                    "TCP keep-alive is never on here, and connections are used again",
                );
            }
            Use::Interface => match value.parse::<IpAddr>() {
                // The last one counts.
                Ok(_) => settings.source_ip = Field::new(vec![text(value.as_str())]),
                Err(_) => findings.hinted(at, format!("`{value}` is not an address"), "write its IP address"),
            },
            Use::Resolve => draft::add(&mut settings.resolve, value.trim_start_matches('+')),
            Use::ConnectTo => draft::add(&mut settings.connect_to, value.as_str()),
            // The last one counts, and an empty one is none.
            Use::Proxy => self.proxy = (!value.is_empty()).then(|| (value.clone(), at.clone())),
            Use::Socks5 => self.proxy = Some((format!("socks5://{value}"), at.clone())),
            Use::Socks5Hostname => self.proxy = Some((format!("socks5h://{value}"), at.clone())),
            Use::ProxyUser => self.proxy_user = Some((value.clone(), at.clone())),
            Use::NoProxy => findings.note(at.as_str(), value, "all requests of a plan go through its proxy"),
            Use::UnixSocket => settings.unix_socket = text(value.as_str()),
            Use::MaxTime => settings.timeout = seconds(value, at, findings),
            Use::ConnectTimeout => settings.connect_timeout = seconds(value, at, findings),
            Use::Location => self.follow(at, findings),
            Use::MaxRedirs => self.follow_at_most(value, at, findings),
            // `body` reads the data that is sent.
            Use::Data | Use::DataBinary | Use::DataRaw | Use::DataUrlencode | Use::Json => {}
            Use::Form | Use::FormString | Use::AsHere => {}
        }
    }

    fn follow(&mut self, at: &str, findings: &mut Findings) {
        if self.settings.follow_redirects.is_absent() {
            self.settings.follow_redirects = text(REDIRECTS);
        }
        if at == "--location-trusted" {
            findings.note(at, "", "redirects to another server are followed without credentials");
        }
    }

    fn follow_at_most(&mut self, value: &str, at: &str, findings: &mut Findings) {
        match value.parse::<u32>() {
            Ok(most) if most > MOST_REDIRECTS => {
                findings.note(at, value, format!("at most {MOST_REDIRECTS} are followed"));
                self.settings.follow_redirects = text(MOST_REDIRECTS.to_string());
            }
            Ok(_) => self.settings.follow_redirects = text(value),
            Err(_) => findings.hinted(at, format!("`{value}` is not a number"), "write a number from 0"),
        }
    }

    fn header(&mut self, line: &str, at: &str, findings: &mut Findings) {
        if let Some(file) = line.strip_prefix('@') {
            let hint = "write each header out: -H 'Name: value'";
            findings.hinted(at, format!("headers are not read from the file `{file}`"), hint);
            return;
        }
        // `Name:` takes a header away, `Name;` sends it without a value.
        match line.split_once(':') {
            Some((name, value)) if is_close(name, value) => {
                findings.note(
                    at,
                    line,
                    "a plan asks for that for all requests: every connection is used once",
                );
                self.settings.disable_keepalive = Field::new(true);
            }
            Some((name, value)) => {
                self.headers.push((name.trim().to_owned(), value.trim().to_owned(), at.to_owned()));
            }
            None => match line.trim_end().strip_suffix(';') {
                Some(name) => {
                    findings.note(at, name, "a header without a value cannot be sent: it is left out");
                }
                None => findings.hinted(at, format!("`{line}` is not a header"), "write -H 'Name: value'"),
            },
        }
    }

    fn cookie(&mut self, value: &str, at: &str, findings: &mut Findings) {
        if value.contains('=') {
            self.headers.push(("cookie".into(), value.to_owned(), at.to_owned()));
        } else {
            let hint = "write the cookies out: -b 'name=value; other=value'";
            findings.hinted(at, format!("cookies are not read from the file `{value}`"), hint);
        }
    }

    /// Returns `true` if the requests have credentials of their own, which are sent in place of those in the
    /// URL.
    fn has_authorization(&self) -> bool {
        let header = |(name, ..): &(String, String, String)| name.eq_ignore_ascii_case("authorization");
        self.user.is_some() || self.headers.iter().any(header)
    }

    fn document(
        mut self,
        given: &[Argument],
        reader: &body::Reader<'_>,
        findings: &mut Findings,
    ) -> Document {
        let mut document = Document::default();
        let content = body::read(given, reader, findings);
        if self.urls.is_empty() && !findings.has_problems() {
            findings.hinted("", "there is no URL", "write curl https://host/path");
        }
        if self.method.as_deref().is_some_and(|method| !draft::is_token(method)) {
            let method = self.method.take().unwrap_or_default();
            findings.hinted("-X", format!("`{method}` is not a method"), "write GET, POST, PUT, …");
        }
        if let Some(target) = self.request_target.take_if(|target| !target.starts_with('/')) {
            let message = format!("`{}` does not begin with `/`", quoted(&target));
            findings.hinted("--request-target", message, "write a path");
        }
        self.credentials(findings);
        let mut requests = Vec::new();
        for (url, at) in std::mem::take(&mut self.urls) {
            requests.extend(self.request(&url, &at, &content, findings).into_iter().flatten());
        }
        self.proxy(findings);
        let origins: Vec<String> = requests.iter().map(|(origin, _)| origin.clone()).collect();
        self.fit(&origins, given, findings);
        let mut steps = draft::place(&mut document, requests);
        if self.parallel && steps.len() > 1 {
            steps = vec![ParallelStep::new(steps).into()];
        }
        document.scenarios.push(Field::new(draft::scenario("curl", steps)));
        if self.settings != Settings::default() {
            document.run = Field::new(self.settings);
        }
        document
    }

    /// The header of the credentials of `-u`, as one: the setting would read `@name` as a file.
    fn credentials(&mut self, findings: &mut Findings) {
        match self.user.take_if(|_| !self.digest) {
            Some((pair, at)) => {
                let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
                self.headers.push(("authorization".into(), format!("Basic {encoded}"), at));
            }
            None if self.digest && self.user.is_none() => {
                findings.hinted("--digest", "there are no credentials", "write -u user:password");
            }
            None if self.digest && self.parallel => {
                let hint = "leave --parallel out";
                findings.hinted(
                    "--digest",
                    "a request follows its challenge, and is not sent with others",
                    hint,
                );
            }
            None => {}
        }
    }

    /// The proxy, with what curl assumes where its text says nothing.
    fn proxy(&mut self, findings: &mut Findings) {
        let Some((text_of_proxy, at)) = self.proxy.take() else {
            if let Some((_, at)) = &self.proxy_user {
                findings.note(at.as_str(), "", "there is no proxy: it is left out");
            }
            return;
        };
        let (scheme, rest) = text_of_proxy.split_once("://").unwrap_or(("http", &text_of_proxy));
        let scheme = scheme.to_ascii_lowercase();
        if !["http", "socks5", "socks5h"].contains(&scheme.as_str()) {
            let hint = "give a proxy by http://, socks5:// or socks5h://";
            findings.hinted(&at, format!("proxies of `{}` are not supported", quoted(&scheme)), hint);
            return;
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, authority) = match rest.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, rest),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok().filter(|port| *port != 0)),
            _ => (authority, Some(PROXY_PORT)),
        };
        let Some(port) = port.filter(|_| draft::Url::parse(&format!("http://{host}/")).is_ok()) else {
            findings.hinted(&at, "it is not host:port", "write -x http://127.0.0.1:3128");
            return;
        };
        let decoded = |text: &str| String::from_utf8_lossy(&draft::percent_decoded(text)).into_owned();
        let cut =
            |user: &str| user.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()));
        let user = match (&self.proxy_user, user) {
            (Some((user, _)), _) => Some(cut(user).unwrap_or((user.clone(), String::new()))),
            (None, Some(user)) => {
                let (user, password) = cut(user).unwrap_or((user.to_owned(), String::new()));
                Some((decoded(&user), decoded(&password)))
            }
            (None, None) => None,
        };
        let user = user.as_ref().map(|(user, password)| (user.as_str(), password.as_str()));
        self.settings.proxy = text(proxy::url(&scheme, host, port, user));
    }

    /// One URL as a step, or as two with its challenge, with its origin.
    fn request(
        &self,
        url: &str,
        at: &str,
        content: &body::Content,
        findings: &mut Findings,
    ) -> Option<Vec<(String, StepSpec)>> {
        let mut url = self.url(url, at, findings)?;
        if let (true, Some(query)) = (self.as_query, content.as_query()) {
            url.path.push(if url.path.contains('?') { '&' } else { '?' });
            url.path.push_str(query);
        }
        let sends = !self.as_query && !content.is_none();
        let method = match &self.method {
            Some(method) => method,
            None if self.head => "HEAD",
            None if self.upload.is_some() => "PUT",
            None if sends => "POST",
            None => "GET",
        };
        let path = self.request_target.as_deref().unwrap_or(&url.path);
        let mut step = draft::request(method, draft::escaped(path));
        if let Some(user) = url.user.as_ref().filter(|_| !self.has_authorization()) {
            let decoded = draft::percent_decoded(user);
            let encoded = base64::engine::general_purpose::STANDARD.encode(decoded);
            draft::header(&mut step, "authorization", &format!("Basic {encoded}"), at, findings);
        }
        for (name, value, at) in &self.headers {
            if name.eq_ignore_ascii_case("content-length") {
                findings.note(at.as_str(), value, "the length is always that of the body: it is left out");
            } else if value.is_empty() && ["host", "user-agent"].iter().any(|n| name.eq_ignore_ascii_case(n))
            {
                // An empty value leaves out what would be sent otherwise, there and here.
                step.request_mut().headers.push(name.as_str(), text(""));
            } else if !value.is_empty() {
                draft::header(&mut step, name, &draft::escaped(value), at, findings);
            }
        }
        if let Some(file) = &self.upload {
            step.request_mut().body.body_file = text(file.as_str());
        }
        if sends {
            content.put(&mut step, &self.headers, findings);
        }
        let steps = match &self.user {
            Some((pair, _)) if self.digest => {
                flow::with_digest(step, &draft::escaped(pair), method, &draft::escaped(path)).into()
            }
            _ => vec![step],
        };
        Some(steps.into_iter().map(|step| (url.origin.clone(), step)).collect())
    }

    fn url(&self, url: &str, at: &str, findings: &mut Findings) -> Option<Url> {
        // curl assumes http for a URL without a scheme.
        let whole = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let behind_host = whole.splitn(4, '/').nth(3).unwrap_or_default();
        let globs = whole.contains(['{', '}']) || behind_host.contains(['[', ']']);
        if globs && !self.globoff {
            let hint = "write every URL out, or add -g if the brackets are meant as they are";
            findings.hinted("", format!("`{}` stands for several URLs", quoted(url)), hint);
            return None;
        }
        match Url::parse(&whole) {
            Ok(url) => Some(url),
            Err(wrong) => {
                findings.problem("", format!("`{at}` is not a URL: {wrong}"));
                None
            }
        }
    }
}

/// Returns `true` if a header asks for the connection to be closed, which in a plan is a setting of the whole
/// run.
fn is_close(name: &str, value: &str) -> bool {
    name.trim().eq_ignore_ascii_case("connection") && value.trim().eq_ignore_ascii_case("close")
}

/// A number of seconds with decimals, as curl takes it.
fn seconds(value: &str, at: &str, findings: &mut Findings) -> Field<plimsoll_document::Text> {
    match Ratio::decimal(value).and_then(|time| time.nanos()) {
        // 0 means no limit.
        Some(0) => Field::Absent,
        Some(nanos) => text(amount::time(nanos)),
        None => {
            findings.hinted(at, format!("`{value}` is not a time"), "write a number of seconds, such as 2.5");
            Field::Absent
        }
    }
}
