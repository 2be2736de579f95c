//! `plimsoll try`: each scenario of a plan once, with every request and response in full.

use std::fmt::Write as _;

use plimsoll_core::redaction::HIDDEN;
use plimsoll_core::{Nanos, Outcome, characters::visible, text::plural};
use plimsoll_document::Problem;
use plimsoll_driver::{BackendOptions, KernelBackend};
use plimsoll_engine::{Control, Once, SetValue, run_once};
use plimsoll_metrics::log::Message;
use plimsoll_metrics::{FailedExchange, Log, LogBatch, LogOptions};
use plimsoll_plan::{End, GivenValue, Load, Plan, Protocol};
use plimsoll_scenario::reference::path_of;
use plimsoll_scenario::{FieldList, Received, SentRequest, Session};
use plimsoll_schedule::Population;
use plimsoll_system::clock;
use serde_json::{Value, json};

use crate::args::document::{DocumentArgs, DocumentFormat};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::foreign_text::in_lines;
use crate::base::{problems, stdout};
use crate::session::request::PlanRequest;
use crate::session::{backend, run};

/// Exchanges that are shown at most: an iteration may loop.
const MOST: u64 = 1_000;
/// Bytes of a head, and of a body, that are shown at most.
const LONGEST: usize = 1 << 20;

pub(crate) fn command(args: &DocumentArgs) -> Result<Exit, Failure> {
    let tried = PlanRequest::named(&args.plan, false).resolve().and_then(|resolved| tried(resolved.plan));
    match (tried, args.output) {
        (Err(failure), DocumentFormat::Json) => {
            problems::to_stdout_as_json(&failure)?;
            Ok(failure.exit)
        }
        (Err(failure), DocumentFormat::Text) => Err(failure),
        (Ok(tried), format) => {
            let text = match format {
                DocumentFormat::Text => tried.to_text(),
                DocumentFormat::Json => format!("{:#}\n", tried.to_json()),
            };
            stdout::to_stdout(|out| out.write_all(text.as_bytes()))?;
            Ok(if tried.has_failed() { Exit::NothingSucceeded } else { Exit::Success })
        }
    }
}

/// The exchanges of one iteration of each scenario, those of the setup and the teardown among them.
#[derive(Default)]
struct Tried {
    exchanges: Vec<TriedExchange>,
    scenarios: usize,
    /// Iterations that ended before all of their steps were carried out.
    unfinished: u64,
    /// Iterations that never began, because the setup did not finish.
    untried: u64,
    /// Reason why an iteration failed without an exchange that shows it.
    message: Option<String>,
    /// Exchanges beyond those that are shown.
    more: u64,
}

/// One exchange, as it is shown: without credentials.
struct TriedExchange {
    scenario: String,
    step: String,
    method: String,
    url: String,
    status: u16,
    request: ShownMessage,
    response: Option<ShownMessage>,
    service_time: Option<Nanos>,
    /// Class and reason.
    error: Option<(&'static str, String)>,
    /// Reason why it is not the last exchange of its request: a redirect that was followed, or a poll.
    went_on: Option<String>,
    /// Checks of the step beside that of the status.
    checks: usize,
    /// Name and value of each variable that the step takes.
    extracted: Vec<(String, Option<String>)>,
}

struct ShownMessage {
    head: String,
    body: String,
    cut: u64,
}

/// Carries out each scenario once.
fn tried(mut plan: Plan) -> Result<Tried, Failure> {
    if plan.wrk.is_some() {
        let hint = "`plimsoll run -s SCRIPT URL -n 1 --log FILE` sends one request of it";
        let problem = Problem::new("a script for wrk has no scenario that could be tried").with_hint(hint);
        return Err(Failure::usage(problem));
    }
    plan.load = Load::Closed;
    // One user does all iterations, one after the other, so the exchanges come in their order.
    (plan.users, plan.threads) = (Some(Population::constant(1)), 1);
    plan.end = End { duration: None, iterations: Some(plan.scenarios.len() as u64) };
    plan.scenarios.iter_mut().for_each(|scenario| (scenario.weight, scenario.start_after) = (1, Nanos::ZERO));
    plan.phases.clear();
    plan.thresholds.clear();
    (plan.warmup, plan.preflight, plan.client_faults) = (Nanos::ZERO, false, None);
    plan.connections.initial = plan.connections.initial.min(1);
    backend::fit_descriptors(&mut plan, 0).map_err(Failure::environment)?;

    let mut all = Tried::default();
    if let Some(setup) = plan.setup.clone() {
        let (tried, values) = tried_part(&setup)?;
        all.add(tried);
        let Some(values) = values else {
            // Without the values of the setup there is nothing to try.
            let scenarios = plan.scenarios.len();
            all.add(Tried { scenarios, untried: scenarios as u64, ..Tried::default() });
            return Ok(all);
        };
        let fixed = |(name, value)| (name, GivenValue::Fixed(value));
        plan.give(&values.into_iter().map(fixed).collect::<Vec<_>>());
    }
    all.add(tried_part(&plan)?.0);
    if let Some(teardown) = &plan.teardown {
        all.add(tried_part(teardown)?.0);
    }
    Ok(all)
}

/// Carries out each scenario of a plan of one user once: of the setup, of the load, or of the teardown.
/// Returns the values that it leaves, too.
fn tried_part(plan: &Plan) -> Result<(Tried, Option<Vec<SetValue>>), Failure> {
    let options = LogOptions {
        share: 0.0,
        failed: MOST,
        good_too: true,
        writes: false,
        streams: false,
        longest: LONGEST,
        seed: plan.seed,
    };
    let (log, receive) = Log::new(options);
    let (once, exchanges) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut all = Vec::new();
            for batch in receive {
                match batch {
                    LogBatch::Failed(exchange) => all.push(*exchange),
                    LogBatch::Entries(_) | LogBatch::Streams(_) | LogBatch::Writes(_) => {}
                    LogBatch::End => break,
                }
            }
            all
        });
        let backend = KernelBackend::Epoll(BackendOptions::default());
        let once = run_once(plan, &backend.into(), &Control::default(), &log);
        log.end();
        (once, reader.join().unwrap_or_default())
    });
    let Once { record, values } = once.map_err(run::failure)?;
    let scenarios = plan.scenarios.len();
    let mut sessions = vec![Session::new(plan.variables.len()); scenarios];
    let mut shown: Vec<TriedExchange> =
        exchanges.iter().map(|exchange| shown(plan, &mut sessions, exchange)).collect();
    name_schemes(&mut shown);
    let requests = shown.iter().filter(|exchange| exchange.went_on.is_none()).count() as u64;
    let explained = shown.iter().any(|exchange| exchange.error.is_some());
    let iterations = record.iterations;
    let message = (record.error_examples.values().next().filter(|_| !explained).cloned())
        .map(|text| plan.redaction.in_text(&text).into_owned());
    let tried = Tried {
        scenarios,
        untried: 0,
        unfinished: (scenarios as u64).saturating_sub(iterations.completed),
        message,
        more: record.accounting.started.saturating_sub(requests),
        exchanges: shown,
    };
    Ok((tried, values))
}

/// An exchange without credentials. The session of its scenario takes its values.
fn shown(plan: &Plan, sessions: &mut [Session], exchange: &FailedExchange) -> TriedExchange {
    let FailedExchange { entry, reason, request, response } = exchange;
    let (outline, redaction) = (plan.outline(), &plan.redaction);
    let step = &plan.steps[entry.step as usize];
    let target = &plan.targets[step.target];
    let sent = sent(request, &target.authority);
    let scheme = target.scheme();
    // A request that is no HTTP has no head: it is shown as the words that its protocol gives it.
    let is_http = !matches!(target.protocol, Protocol::InTurn(_));
    let [method, authority, path] = [&sent.method, &sent.authority, &sent.path].map(|part| text_of(part));
    let (url, words) = match is_http {
        true => (redaction.in_text(&format!("{scheme}://{authority}{path}")).into_owned(), None),
        false => {
            let words = redaction.in_text(&format!("{method} {path}")).into_owned();
            (format!("{scheme}://{}", target.authority), Some(words))
        }
    };
    let scenario = outline.scenario_of(entry.step).unwrap_or_default();
    let error = match entry.outcome {
        Outcome::Ok => None,
        Outcome::Failed(class) => Some((class.name(), redaction.in_text(reason).into_owned())),
        Outcome::TimedOut => Some(("timed_out", "no whole response came in time".to_owned())),
    };
    let went_on = (entry.outcome == Outcome::Ok && !reason.is_empty()).then(|| reason.clone());
    let extracted = match sessions.get_mut(scenario) {
        // Values are taken from the last exchange.
        Some(session) if went_on.is_none() => extracted(plan, session, exchange, sent),
        _ => Vec::new(),
    };
    let body = |message: &Message, is_request: bool| {
        let whole = (message.cut == 0).then(|| step.handler.show_body(&message.body, is_request));
        whole.flatten().unwrap_or_else(|| body_of(&message.body))
    };
    let message = |message: &Message, is_request: bool| ShownMessage {
        head: match &words {
            None => (text_of(&message.head).lines())
                .map(|line| redaction.in_header(line).into_owned())
                .collect::<Vec<_>>()
                .join("\n"),
            Some(words) if is_request => words.clone(),
            Some(_) => String::new(),
        },
        body: match is_request {
            true => redaction.in_body(&body(message, true)).into_owned(),
            false => body(message, false),
        },
        cut: message.cut,
    };
    TriedExchange {
        scenario: outline.scenarios.get(scenario).map_or(String::new(), |scenario| scenario.name.clone()),
        step: step.name.clone(),
        method,
        url,
        status: entry.status,
        request: message(request, true),
        response: (entry.status > 0).then(|| message(response, false)),
        service_time: entry.service_time,
        error,
        checks: if went_on.is_some() { 0 } else { step.handler.checks() },
        went_on,
        extracted,
    }
}

/// Gives the exchanges behind a redirect the scheme that it led to: the messages of HTTP/1.1 do not have it.
fn name_schemes(exchanges: &mut [TriedExchange]) {
    let mut led: Option<String> = None;
    for exchange in exchanges {
        if let Some(scheme) = led.take()
            && let Some((_, rest)) = exchange.url.split_once("://")
        {
            exchange.url = format!("{scheme}://{rest}");
        }
        let Some(response) = exchange.response.as_ref().filter(|_| exchange.went_on.is_some()) else {
            continue;
        };
        let of_location = response.head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("location").then(|| value.trim().to_ascii_lowercase())
        });
        let Some(location) = of_location else { continue };
        let absolute =
            ["http", "https"].into_iter().find(|scheme| location.starts_with(&format!("{scheme}:")));
        let same = exchange.url.split("://").next().map(str::to_owned);
        led = absolute.map(str::to_owned).or(same);
    }
}

/// Takes the values of an exchange into the session, and returns those that its step names.
fn extracted(
    plan: &Plan,
    session: &mut Session,
    exchange: &FailedExchange,
    sent: SentRequest,
) -> Vec<(String, Option<String>)> {
    let step = &plan.steps[exchange.entry.step as usize];
    if !step.handler.takes_values() {
        return Vec::new();
    }
    let authority = sent.authority.clone();
    session.sent = sent;
    let (_, fields) = fields(&exchange.response.head);
    let received = Received {
        host: authority.split(|byte| *byte == b':').next().unwrap_or_default(),
        authority: &authority,
        secure: plan.targets[step.target].tls.is_some(),
        unix_s: clock::unix().0 / 1_000_000_000,
        ..Received::new(exchange.entry.status, &fields, &exchange.response.body)
    };
    let taken: Vec<usize> = step.handler.taken_variables().collect();
    for &number in &taken {
        session.known[number] = false;
    }
    // `apply` takes cookies, `salvage` the values of a failed exchange.
    let _ = step.handler.apply(&received, session);
    step.handler.salvage(&received, session);
    let value = |number: usize| {
        let name = plan.variables.get(number).cloned().unwrap_or_default();
        let value = session.known[number].then(|| text_of(&session.variables[number]));
        let hidden = plan.redaction.hides(&name);
        (name, value.map(|value| if hidden { HIDDEN.to_owned() } else { value }))
    };
    taken.into_iter().map(value).collect()
}

/// The request of a message, as scenarios see it.
fn sent(message: &Message, authority: &str) -> SentRequest {
    let (first, fields) = fields(&message.head);
    let pseudo = |name: &str| fields.get(name).map(<[u8]>::to_vec);
    let mut words = first.split(' ').map(|word| word.as_bytes().to_vec());
    let host = pseudo(":authority").or_else(|| pseudo("host"));
    SentRequest {
        method: pseudo(":method").or_else(|| words.next()).unwrap_or_default(),
        // A proxy that forwards requests was told the whole URL.
        path: pseudo(":path")
            .or_else(|| words.next().map(|target| path_of(&target).to_vec()))
            .unwrap_or_default(),
        authority: host.unwrap_or_else(|| authority.as_bytes().to_vec()),
        body: message.body.clone(),
        fields,
    }
}

/// The first line of a head, if it is not a field, and its fields.
fn fields(head: &[u8]) -> (String, FieldList) {
    let (mut first, mut fields) = (String::new(), FieldList::default());
    for (number, line) in head.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Pseudo-headers of HTTP/2 begin with a colon.
        let colon = line.iter().skip(1).position(|byte| *byte == b':').map(|at| at + 1);
        match colon {
            _ if number == 0 && !line.starts_with(b":") => first = text_of(line),
            Some(colon) => fields.push(&line[..colon], line[colon + 1..].trim_ascii()),
            None => {}
        }
    }
    (first, fields)
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes of a body that is no text which are shown.
const BYTES_SHOWN: usize = 32;

/// A body as text. One that is no text, as CBOR or a picture, is named so, with its first bytes as numbers.
fn body_of(bytes: &[u8]) -> String {
    let is_control = |byte: &u8| byte.is_ascii_control() && !b"\t\n\r\x1b".contains(byte);
    let Err(error) = std::str::from_utf8(bytes) else { return text_of(bytes) };
    // Text in another encoding begins as text, and has no control characters.
    if error.valid_up_to() > 0 && !bytes.iter().any(is_control) {
        return text_of(bytes);
    }
    let first = bytes.iter().take(BYTES_SHOWN).map(|byte| format!(" {byte:02x}")).collect::<String>();
    let rest = if bytes.len() > BYTES_SHOWN { " …" } else { "" };
    format!("({} bytes that are no text:{first}{rest})", bytes.len())
}

impl Tried {
    /// Adds what came after it.
    fn add(&mut self, later: Self) {
        self.exchanges.extend(later.exchanges);
        self.scenarios += later.scenarios;
        self.unfinished += later.unfinished;
        self.untried += later.untried;
        self.message = self.message.take().or(later.message);
        self.more += later.more;
    }

    fn has_failed(&self) -> bool {
        self.unfinished > 0
            || self.untried > 0
            || self.exchanges.iter().any(|exchange| exchange.error.is_some())
    }

    /// Iterations that did not finish or were not tried, in words.
    fn rest(&self) -> String {
        match self.untried {
            0 => format!("{} of {} did not finish", self.unfinished, iterations(self.scenarios as u64)),
            1 => "the setup did not finish, so 1 iteration was not tried".to_owned(),
            untried => format!("the setup did not finish, so {untried} iterations were not tried"),
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "ok": !self.has_failed(),
            "iterations": self.scenarios,
            "unfinished": self.unfinished,
            "untried": self.untried,
            "message": self.message,
            "more_exchanges": self.more,
            "exchanges": self.exchanges.iter().map(TriedExchange::to_json).collect::<Vec<_>>(),
        })
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let mut scenario = None;
        for exchange in &self.exchanges {
            if scenario.is_none_or(|last: &String| *last != exchange.scenario) {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "scenario {}\n", exchange.scenario);
            }
            scenario = Some(&exchange.scenario);
            exchange.write_text(&mut text);
        }
        if self.more > 0 {
            let _ = writeln!(text, "{} more not shown", exchanges(self.more));
        }
        if let Some(message) = &self.message {
            let _ = writeln!(text, "failed: {message}");
        }
        let failed = self.exchanges.iter().filter(|exchange| exchange.error.is_some()).count();
        let _ = match self.has_failed() {
            false => match self.exchanges.len() as u64 {
                1 => writeln!(text, "1 exchange, and it is good"),
                many => writeln!(text, "{}, all of them good", exchanges(many)),
            },
            true => writeln!(
                text,
                "{failed} of {} failed; {}",
                exchanges(self.exchanges.len() as u64),
                self.rest()
            ),
        };
        text
    }
}

fn exchanges(count: u64) -> String {
    plural(count, "exchange")
}

fn iterations(count: u64) -> String {
    plural(count, "iteration")
}

impl TriedExchange {
    fn to_json(&self) -> Value {
        let message = |message: &ShownMessage| json!({ "head": message.head, "body": message.body, "cut_bytes": message.cut });
        let mut request = message(&self.request);
        (request["method"], request["url"]) = (json!(self.method), json!(self.url));
        let response = self.response.as_ref().map(|response| {
            let mut response = message(response);
            response["status"] = json!(self.status);
            response
        });
        let extracted = self.extracted.iter().map(|(name, value)| json!({ "name": name, "value": value }));
        let error = self.error.as_ref().map(|(class, message)| json!({ "class": class, "message": message }));
        let check = match &self.error {
            Some((class @ "check", message)) => {
                vec![json!({ "check": class, "passed": false, "message": message })]
            }
            None if self.checks > 0 => {
                let all = format!("{} checks of the response", self.checks);
                vec![json!({ "check": all, "passed": true, "message": null })]
            }
            _ => Vec::new(),
        };
        json!({
            "scenario": self.scenario,
            "step": self.step,
            "request": request,
            "response": response,
            "service_time_s": self.service_time.map(Nanos::as_secs_f64),
            "error": error,
            "went_on": self.went_on,
            "checks": check,
            "extracted": extracted.collect::<Vec<_>>(),
        })
    }

    fn write_text(&self, text: &mut String) {
        let time = self
            .service_time
            .map_or(String::new(), |time| format!(" in {}", plimsoll_core::figure::nanos(time)));
        let status = if self.response.is_some() { format!("  {}", self.status) } else { String::new() };
        let _ = writeln!(text, "{}  {}{status}{time}", self.step, self.url);
        for (sign, message) in [('>', Some(&self.request)), ('<', self.response.as_ref())] {
            let Some(message) = message else { continue };
            for line in message.head.lines() {
                let _ = writeln!(text, "{sign} {}", visible(line));
            }
            if !message.body.is_empty() {
                if !message.head.is_empty() {
                    let _ = writeln!(text, "{sign}");
                }
                for line in message.body.lines() {
                    let _ = writeln!(text, "{sign} {}", visible(line));
                }
            }
            if message.cut > 0 {
                let _ = writeln!(text, "{sign} ({} more bytes)", message.cut);
            }
        }
        for (name, value) in &self.extracted {
            let _ = match value {
                Some(value) => writeln!(text, "= {name}: {}", in_lines(&visible(value))),
                None => writeln!(text, "= {name}: nothing to take"),
            };
        }
        if let Some(reason) = &self.went_on {
            let _ = writeln!(text, "= {reason}");
        }
        if let Some((class, reason)) = &self.error {
            let _ = writeln!(text, "! {class}: {}", in_lines(&visible(reason)));
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::body_of;

    #[test]
    fn bodies_that_are_no_text_are_shown_as_numbers() {
        assert_eq!(body_of(b"{\"a\": 1}"), "{\"a\": 1}");
        assert_eq!(body_of(b"caf\xe9, au lait"), "caf\u{fffd}, au lait");
        assert_eq!(
            body_of(b"\xa1fstatusbok"),
            "(11 bytes that are no text: a1 66 73 74 61 74 75 73 62 6f 6b)"
        );
        let picture = [&b"\x89PNG\r\n\x1a\n"[..], &[0; 40]].concat();
        assert!(body_of(&picture).starts_with("(48 bytes that are no text: 89 50 4e 47 0d 0a 1a 0a 00"));
        assert!(body_of(&picture).ends_with(" 00 …)"));
    }
}
