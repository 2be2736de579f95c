//! Recordings of browsers and proxies: HAR 1.2.
//!
//! The requests become the steps of one scenario, page by page, each page in the order in which its
//! requests were sent. Requests that were sent before the first of them was answered are sent at once. The
//! time between the end of all requests and the start of the next one becomes think time. Values of
//! responses that later requests send become variables, and cookies are those of the session.

mod correlation;
mod instant;

use plimsoll_document::{Document, ExpectSpec, Field, ParallelStep, Problems, Settings, StepSpec};
use serde_json::Value;

use crate::Unchecked;
use crate::draft::{self, Url, text};
use crate::findings::Findings;
use crate::flow;
use crate::source::{self, Object};
use correlation::Answer;

/// Options for reading a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `true` if gaps between requests become think time.
    pub think: bool,
    /// Only requests to this host, if one is given: `host` or `host:port`.
    pub only: Option<String>,
    /// `true` if responses must have the same status as in the recording.
    pub expect_status: bool,
    /// `true` if values of responses that later requests send are extracted, and cookies kept.
    pub correlate: bool,
    /// `true` if requests that were under way together are sent at once.
    pub parallel: bool,
    /// Servers to send to in the place of those of the recording.
    pub servers: Vec<Server>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            think: true,
            only: None,
            expect_status: false,
            correlate: true,
            parallel: true,
            servers: Vec::new(),
        }
    }
}

/// A server in the place of one of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `host` or `host:port` of the recording; `None` for every host.
    pub host: Option<String>,
    /// `http://host:port`, without a path.
    pub url: String,
}

impl Server {
    /// Reads `URL` or `HOST=URL`.
    ///
    /// # Errors
    /// In words: it is no URL of a server.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (host, url) = match text.split_once('=') {
            Some((host, url)) if !host.contains('/') => (Some(host.to_ascii_lowercase()), url),
            _ => (None, text),
        };
        let read = Url::parse(url).map_err(|wrong| format!("`{url}` is no URL of a server: {wrong}"))?;
        if read.path != "/" || read.user.is_some() {
            return Err(format!("`{url}` has more than scheme, host and port"));
        }
        if host.as_deref().is_some_and(str::is_empty) {
            return Err("the host before `=` is missing".to_owned());
        }
        Ok(Self { host, url: read.origin })
    }
}

/// Headers that belong to one connection (RFC 9110 section 7.6.1), that the client makes itself, or that
/// Chrome shows for HTTP/2.
const OWN_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Shortest gap that is a pause: less is the browser's own work. In nanoseconds.
const SHORTEST_PAUSE: i128 = 1_000_000;

/// Least time by which requests overlap, in nanoseconds: starts and lengths may each be rounded to
/// milliseconds.
const LEAST_OVERLAP: i128 = 2_000_000;

/// Requests at once over HTTP/1.1, where each takes a connection: browsers open six for each server.
const MOST_AT_ONCE: usize = 6;

/// Requests at once over HTTP/2: the least number of streams that a server should allow (RFC 9113 section
/// 6.5.2).
const MOST_STREAMS: usize = 100;

/// Reads a recording.
///
/// # Errors
/// All problems with it.
pub fn import(text: &[u8], options: &Options) -> Result<Unchecked, Problems> {
    let value = source::json(text)?;
    let mut findings = Findings::default();
    let Some(mut top) = Object::new(&value, "", &mut findings) else {
        return Err(findings.into_problems());
    };
    let log = top.object("log", &mut findings);
    top.rest(&mut findings, is_comment);
    let Some(mut log) = log else {
        if !top.has("log") {
            findings.hinted("", "`log` is missing", "the file has to be a recording in the format HAR 1.2");
        }
        return Err(findings.into_problems());
    };
    let pages = pages(&mut log, &mut findings);
    let entries = log.objects("entries", &mut findings);
    log.skip(&["version", "creator", "browser", "comment"]);
    log.rest(&mut findings, is_comment);
    let mut recorded: Vec<Recorded> = Vec::new();
    for mut entry in entries {
        recorded.extend(read(&mut entry, options, &pages, &mut findings));
        entry.rest(&mut findings, is_comment);
    }
    if recorded.is_empty() && !findings.has_problems() {
        let hint = match &options.only {
            Some(host) => format!("leave `--only {host}` out"),
            None => "record requests over http or https".to_owned(),
        };
        findings.hinted("/log/entries", "there is no request to send", hint);
    }
    let document = document(recorded, options, &mut findings);
    findings.finish_requests(document)
}

/// Fields of the format's extensions begin with `_`, and do not describe requests.
fn is_comment(key: &str) -> bool {
    key.starts_with('_')
}

/// A request of the recording.
struct Recorded {
    /// Position of its page; requests without a page come last.
    page: usize,
    /// Nanoseconds since 1970, if it is known.
    started: Option<i128>,
    /// The begin of its response.
    answered: Option<i128>,
    ended: Option<i128>,
    origin: String,
    http2: bool,
    step: StepSpec,
    answer: Answer,
}

/// The ids of the pages, in the order of their starts.
fn pages(log: &mut Object<'_>, findings: &mut Findings) -> Vec<String> {
    let mut pages: Vec<(Option<i128>, String)> = Vec::new();
    for mut page in log.objects("pages", findings) {
        let id = page.text("id", findings).unwrap_or_default().to_owned();
        let started = page.text("startedDateTime", findings).and_then(instant::parse);
        page.skip(&["title", "pageTimings", "comment"]);
        page.rest(findings, is_comment);
        pages.push((started, id));
    }
    pages.sort_by_key(|(started, _)| *started);
    pages.into_iter().map(|(_, id)| id).collect()
}

/// Reads one entry; `None` if it is not a request to send.
fn read(
    entry: &mut Object<'_>,
    options: &Options,
    pages: &[String],
    findings: &mut Findings,
) -> Option<Recorded> {
    entry.skip(&["cache", "serverIPAddress", "connection", "comment"]);
    let page = entry.text("pageref", findings);
    let page = page.and_then(|page| pages.iter().position(|known| known == page)).unwrap_or(pages.len());
    let started = entry.text("startedDateTime", findings);
    let milliseconds = entry.value("time").and_then(Value::as_f64).filter(|time| *time >= 0.0);
    // A time that is unknown is -1 there.
    let receiving = entry.value("timings").and_then(|timings| timings.get("receive")).and_then(Value::as_f64);
    let receiving = receiving.filter(|time| *time >= 0.0).unwrap_or_default();
    let from_cache = entry.members().get("_fromCache").filter(|from| !from.is_null());
    let response = entry.object("response", findings);
    let status =
        response.as_ref().and_then(|response| response.members().get("status")).and_then(Value::as_u64);
    if !entry.has("request") {
        findings.problem(&entry.at, "`request` is missing");
    }
    let mut request = entry.object("request", findings)?;
    request.skip(&["cookies", "headersSize", "bodySize", "comment", "queryString"]);
    let method = request.filled("method", findings).unwrap_or("GET");
    let url = request.filled("url", findings).unwrap_or_default();
    let version = request.text("httpVersion", findings).unwrap_or_default().to_ascii_lowercase();
    let at = request.place("url");
    let scheme = url.split(':').next().unwrap_or_default().to_ascii_lowercase();
    if !["http", "https"].contains(&scheme.as_str()) && !scheme.is_empty() {
        findings.note(at, url, "only http and https are sent: it is left out");
        return None;
    }
    let url = match Url::parse(url) {
        Ok(url) => url,
        Err(wrong) => {
            findings.problem(&at, format!("`{url}` is not a URL: {wrong}"));
            return None;
        }
    };
    if options.only.as_deref().is_some_and(|only| !is_host(&url.authority, only)) {
        return None;
    }
    if from_cache.is_some() {
        findings.note(entry.at.as_str(), &url.path, "it came from the browser's cache: it is left out");
        return None;
    }
    if !draft::is_token(method) {
        findings.problem(&request.place("method"), format!("`{method}` is not a method"));
        return None;
    }
    let mut step = draft::request(method, draft::escaped(&url.path));
    headers(&mut request, &mut step, findings);
    body(&mut request, &mut step, findings);
    request.rest(findings, is_comment);
    // A browser asks for things that are not there: their replay is as good as the recording was.
    let has_failed = status.is_some_and(|status| status >= 400);
    if let Some(status) = status.filter(|status| (200..=599).contains(status))
        && (options.expect_status || has_failed)
    {
        if has_failed && !options.expect_status {
            let becomes = format!("the status was {status} in the recording: it is expected");
            findings.note(entry.at.as_str(), &url.path, becomes);
        }
        let mut expect = ExpectSpec::default();
        expect.status = vec![text(status.to_string())];
        step.expect = Field::new(expect);
    }
    let start = started.and_then(instant::parse);
    if let (Some(started), None, true) = (started, start, options.think) {
        let place = entry.place("startedDateTime");
        findings.note(place, started, "it is not a time of ISO 8601: there is no think time around it");
    }
    let ended = start.zip(milliseconds).map(|(start, time)| start + (time * 1e6) as i128);
    let answered = ended.map(|ended| ended - (receiving * 1e6) as i128);
    let http2 = version.starts_with("h2") || version.starts_with("http/2");
    if version.starts_with("h3") || version.starts_with("http/3") {
        findings.note("/log/entries", &version, "HTTP/3 is not spoken yet: HTTP/2 and HTTP/1.1 are offered");
    }
    let http2 = http2 || version.starts_with("h3") || version.starts_with("http/3");
    let server = options.servers.iter().find(|server| {
        let host = server.host.as_deref();
        host.is_none_or(|host| is_host(&url.authority, host))
    });
    let origin = server.map_or(url.origin, |server| server.url.clone());
    let answer = response.as_ref().map(Answer::new).unwrap_or_default();
    Some(Recorded { page, started: start, answered, ended, origin, http2, step, answer })
}

fn is_host(authority: &str, only: &str) -> bool {
    let only = only.to_ascii_lowercase();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    authority == only || host == only
}

fn headers(request: &mut Object<'_>, step: &mut StepSpec, findings: &mut Findings) {
    for mut header in request.objects("headers", findings) {
        header.skip(&["comment"]);
        let name = header.text("name", findings).unwrap_or_default();
        let value = header.text("value", findings).unwrap_or_default();
        header.rest(findings, is_comment);
        let own = OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own));
        if !own && !name.starts_with(':') {
            draft::header(step, name, &draft::escaped(value.trim()), &header.at, findings);
        }
    }
}

fn body(request: &mut Object<'_>, step: &mut StepSpec, findings: &mut Findings) {
    let Some(mut data) = request.object("postData", findings) else { return };
    data.skip(&["comment"]);
    let media_type = data.text("mimeType", findings).unwrap_or_default().to_owned();
    let content = data.text("text", findings);
    let parameters = data.objects("params", findings);
    let file = data.members().get("_file").and_then(Value::as_str);
    let encoding = data.members().get("encoding").or_else(|| data.members().get("_encoding"));
    data.skip(&["encoding"]);
    data.rest(findings, is_comment);
    if encoding.is_some_and(|encoding| encoding == "base64") {
        let hint = "put the bytes into a file, and name it as `body_file` in the plan";
        findings.hinted(&data.at, "the body is not text", hint);
        return;
    }
    match content {
        // Plimsoll's own recordings have bodies there that are not text.
        _ if file.is_some() => step.request_mut().body.body_file = draft::literal(file.unwrap_or_default()),
        Some(content) if !content.is_empty() => step.request_mut().body.body = draft::literal(content),
        _ if media_type.starts_with("multipart/") => form(parameters, &media_type, &data.at, step, findings),
        _ => {
            let pairs: Vec<(&str, &str)> = parameters
                .into_iter()
                .map(|mut pair| {
                    pair.skip(&["comment", "contentType", "fileName"]);
                    let name = pair.text("name", findings).unwrap_or_default();
                    let value = pair.text("value", findings).unwrap_or_default();
                    pair.rest(findings, is_comment);
                    (name, value)
                })
                .collect();
            if !pairs.is_empty() {
                step.request_mut().body.body = draft::literal(&draft::form(pairs));
            }
        }
    }
    let request = step.request_mut();
    let typed = request.headers.0.iter().any(|(name, ..)| name.as_str().eq_ignore_ascii_case("content-type"));
    let has_body = !request.body.body.is_absent() || !request.body.body_file.is_absent();
    if !typed && has_body && !media_type.is_empty() {
        draft::header(step, "content-type", &draft::escaped(&media_type), &data.at, findings);
    }
}

/// A form whose parts were recorded by name. Recordings have the names of files, and not their content.
fn form(
    parameters: Vec<Object<'_>>,
    media_type: &str,
    at: &str,
    step: &mut StepSpec,
    findings: &mut Findings,
) {
    if parameters.is_empty() {
        findings.note(at, media_type, "the parts of the form were not recorded: no body is sent");
        return;
    }
    let mut parts = Vec::new();
    for mut parameter in parameters {
        parameter.skip(&["comment"]);
        let name = draft::escaped(parameter.text("name", findings).unwrap_or_default());
        let value = parameter.text("value", findings).unwrap_or_default();
        let file = parameter.text("fileName", findings).filter(|file| !file.is_empty());
        let content_type = parameter.text("contentType", findings);
        parameter.rest(findings, is_comment);
        let mut part = match file {
            Some(file) => {
                let becomes = "its content was not recorded: an empty file is sent; name yours as `file`";
                findings.note(parameter.at.as_str(), file, becomes);
                flow::empty_file_part(name, file)
            }
            None => flow::value_part(name, draft::escaped(value)),
        };
        if let Some(content_type) = content_type.filter(|content_type| !content_type.is_empty()) {
            part.content_type = draft::literal(content_type);
        }
        parts.push(part);
    }
    flow::put_form(step, parts);
}

fn document(mut recorded: Vec<Recorded>, options: &Options, findings: &mut Findings) -> Document {
    // A stable sort: without times, the order of the file stays.
    recorded.sort_by_key(|request| (request.page, request.started));
    if options.think {
        let mut ended = None;
        for index in 0..recorded.len() {
            let gap = match (ended, recorded[index].started) {
                (Some(ended), Some(started)) => started - ended,
                _ => 0,
            };
            if gap >= SHORTEST_PAUSE && index > 0 {
                // To whole milliseconds: recordings are no more exact.
                let nanos = u64::try_from(gap / 1_000_000 * 1_000_000).unwrap_or(u64::MAX);
                recorded[index - 1].step.think = draft::think(nanos);
            }
            // Requests overlap in a browser; the pause begins when the last of them has ended.
            ended = ended.max(recorded[index].ended);
        }
    }
    let groups = if options.parallel { groups(&recorded) } else { vec![1; recorded.len()] };
    let mut keeps_cookies = false;
    if options.correlate {
        let mut requests: Vec<_> =
            recorded.iter_mut().map(|request| (&mut request.step, &request.answer)).collect();
        keeps_cookies = correlation::correlate(&mut requests, &groups, findings);
    }
    let mut document = Document::default();
    let http2 = recorded.iter().any(|request| request.http2 && request.origin.starts_with("https"));
    let requests = recorded.into_iter().map(|request| (request.origin, request.step)).collect();
    let steps = at_once(draft::place(&mut document, requests), &groups);
    let mut scenario = draft::scenario("recording", steps);
    if keeps_cookies {
        scenario.cookies = Field::new(true);
    }
    document.scenarios.push(Field::new(scenario));
    if http2 {
        let mut settings = Settings::default();
        settings.alpn = text("h2,http/1.1");
        document.run = Field::new(settings);
    }
    document
}

/// Sizes of the groups of requests that were sent before the first one of a group was answered, in their
/// order. No request of a group depends on the response of another one.
fn groups(recorded: &[Recorded]) -> Vec<usize> {
    let mut groups: Vec<usize> = Vec::new();
    // Of the last group: its first request, and the begin of its first response.
    let mut last: Option<(&Recorded, i128)> = None;
    for request in recorded {
        let most = if request.http2 { MOST_STREAMS } else { MOST_AT_ONCE };
        if let (Some((first, first_answer)), Some(size)) = (&mut last, groups.last_mut())
            && (first.page, first.http2) == (request.page, request.http2)
            && *size < most
            && let (Some(started), Some(answered)) = (request.started, request.answered)
            && *first_answer - started >= LEAST_OVERLAP
        {
            *size += 1;
            *first_answer = answered.min(*first_answer);
        } else {
            groups.push(1);
            last = request.answered.map(|answered| (request, answered));
        }
    }
    groups
}

/// Puts the requests of each group into a step that sends them at once, with the pause of the last one
/// behind it.
fn at_once(steps: Vec<StepSpec>, groups: &[usize]) -> Vec<StepSpec> {
    let mut steps = steps.into_iter();
    let mut placed = Vec::new();
    for size in groups {
        let mut group: Vec<StepSpec> = steps.by_ref().take(*size).collect();
        let pause = group.last_mut().filter(|_| *size > 1).map(|last| std::mem::take(&mut last.think));
        match group.len() {
            0 | 1 => placed.extend(group),
            _ => placed.push(ParallelStep::new(group).into()),
        }
        if let Some(think) = pause.filter(|think| !think.is_absent()) {
            let mut step = StepSpec::default();
            step.think = think;
            placed.push(step);
        }
    }
    placed
}
