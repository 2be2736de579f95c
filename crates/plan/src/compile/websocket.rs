//! Steps on a WebSocket.

use std::sync::Arc;

use plimsoll_document::{
    ExpectSpec, ExtractSpec, Field, Keyed, MatchSpec, Place, Problem, ReceiveSpec, StepSpec, Text,
    WebSocketSpec, WebSocketStep,
};
use plimsoll_scenario::header::is_token;
use plimsoll_scenario::{Body, CheckSpec, Dialect, PollSpec, StatusRange, WebSocketAction};
use plimsoll_wire::websocket::{Deflate, is_valid_close_code};

use super::known::Known;
use super::request::{Headers, over};
use super::scenario::Part;
use super::variables::LAG;
use super::{Compiler, is_on};
use crate::Protocol;
use crate::draft::Draft;
use crate::url::target as checked_path;

/// 22 letters, of which the last one has four bits that are 0, are 16 bytes in base64 (RFC 6455 section 4.1).
const KEY: &str = "${random_hex(21)}A==";

const HINT: &str = "write one of `{open: /path}`, `{send: text}`, `{send: text, receive: {…}}`, \
                    `{receive: {…}}`, `{close: 1000}`";

/// The place of the first of some values.
fn first_place(extract: &Keyed<Field<ExtractSpec>>) -> Option<Place> {
    extract.0.first().map(|(_, place, _)| *place)
}

/// The comparisons of a message that is described.
fn comparisons(spec: &ReceiveSpec) -> Vec<Field<MatchSpec>> {
    type Key = fn(&mut MatchSpec) -> &mut Field<Text>;
    let keys: [(&Field<Text>, Key); 5] = [
        (&spec.equals, |compared| &mut compared.equals),
        (&spec.starts, |compared| &mut compared.starts),
        (&spec.ends, |compared| &mut compared.ends),
        (&spec.contains, |compared| &mut compared.contains),
        (&spec.regex, |compared| &mut compared.regex),
    ];
    let given = keys.into_iter().filter_map(|(text, key)| {
        let mut compared = MatchSpec::default();
        *key(&mut compared) = text.clone();
        Some(Field::Given(compared, text.place()?))
    });
    given.chain(spec.body.iter().cloned()).collect()
}

/// Action of one step.
struct Wanted {
    action: WebSocketAction,
    method: &'static str,
    /// A template.
    path: String,
    /// Headers of the upgrade, and headers of the plan.
    headers: Option<[Headers; 2]>,
    message: Body,
}

impl Compiler<'_, '_> {
    /// Compiles a step on a WebSocket.
    pub(super) fn websocket_step(
        &mut self,
        spec: &StepSpec,
        step: &WebSocketStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let draft = self.websocket_request(spec, step, place, part, known);
        self.send(spec, draft, part, known)
    }

    fn websocket_request(
        &mut self,
        spec: &StepSpec,
        step: &WebSocketStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Draft> {
        let own_place = step.websocket.place().or(place);
        let origin = self.origin_of(Protocol::WebSocket, spec, place, part);
        let own = step.websocket.get()?;
        let wanted = self.websocket_action(own, own_place, part, known);
        let timeout = self.step_timeout(spec);
        let goes_on = self.goes_on(spec);
        let checks = self.expectations(&spec.expect, part, known);
        let extract = self.extractions(&spec.extract, part, known);
        let awaited = match own.receive.is_absent() {
            true => Some(Vec::new()),
            false => self.described(&own.receive, part, known),
        };
        let answers = self.answers(own, part, known);
        let heartbeat = self.heartbeat(own, part, known);
        let stamp = self.stamp(own, part, known);
        let (origin, wanted, awaited) = (origin?, wanted?, awaited?);
        let opens = wanted.action == WebSocketAction::Open;
        if !opens
            && !wanted.action.awaits()
            && let Some(place) = spec.expect.place().or(first_place(&spec.extract))
        {
            let problem = Problem::new(format!("a step that ends with `{}` gets no message", wanted.method));
            return self
                .form(Some(place), problem.with_hint("add `receive`, or do it in a step that has that"));
        }
        let shown = opens.then(|| own.open.get().map(|path| path.0.trim()));
        let name = self.step_name(spec, Some(wanted.method), shown.flatten(), part)?;
        let mut handler = checks?;
        handler.extract = extract?;
        let stamp = stamp?;
        handler.stamp = stamp.as_ref().map(|stamp| stamp.variable);
        handler.extract.extend(stamp);
        (handler.answers, handler.heartbeat) = (answers?, heartbeat?);
        handler.cookies = part.cookies && opens;
        if !awaited.is_empty() {
            handler.poll = Some(PollSpec { until: awaited, ..PollSpec::default() });
        }
        if opens && handler.statuses.is_empty() {
            handler.statuses = vec![match self.preference.websocket() {
                Protocol::WebSocketHttp2 => StatusRange { first: 200, last: 299 },
                _ => StatusRange { first: 101, last: 101 },
            }];
        }
        let is_open = |draft: &Draft| draft.dialect == Dialect::WebSocket(WebSocketAction::Open);
        if !opens && !part.drafts.iter().any(is_open) {
            let problem = Problem::new("no WebSocket is open here");
            return self
                .fail(place, problem.with_hint("open one in a step before: `websocket: {open: /path}`"));
        }
        self.check_streamed(&handler, place)?;
        let prefix = if opens { origin.prefix.as_str() } else { "" };
        let credentials = origin.authorization.map(|value| ("Authorization".to_owned(), value));
        let headers = match wanted.headers {
            Some([base, own]) => {
                let layers = [self.headers.clone(), credentials.into_iter().collect(), own];
                layers.into_iter().fold(base, over)
            }
            None => Headers::new(),
        };
        let draft = Draft {
            server: origin.server,
            authority: origin.authority.clone(),
            dialect: Dialect::WebSocket(wanted.action),
            headers,
            cookies: part.cookies && opens,
            variables: self.variables.clone(),
            handler,
            timeout: timeout?,
            goes_on: goes_on?,
            place,
            ..Draft::new(
                name,
                if opens { "GET" } else { wanted.method }.to_owned(),
                format!("{prefix}{}", wanted.path),
                wanted.message,
            )
        };
        self.check_draft(draft)
    }

    /// The checks of messages that are described; none for any message.
    pub(super) fn described(
        &mut self,
        field: &Field<ReceiveSpec>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Vec<CheckSpec>> {
        let place = field.place();
        let spec = field.get()?;
        let (any, body) = (&spec.any, comparisons(spec));
        match (is_on(any), body.is_empty() && spec.json.0.is_empty()) {
            (true, true) => Some(Vec::new()),
            (false, true) => {
                let problem = Problem::new("`receive` says nothing about the message");
                self.form(
                    place,
                    problem.with_hint(
                        "write `{any: true}` for the next one, or look at it with `contains`, `json` or others",
                    ),
                )
            }
            (true, false) => {
                let problem = Problem::new("`any` and other keys of `receive` exclude each other");
                self.form(any.place(), problem.with_hint("leave one of them out"))
            }
            (false, false) => {
                let mut expected = ExpectSpec::default();
                (expected.body, expected.json) = (body, spec.json.clone());
                self.expectations(&Field::new(expected), part, known).map(|reaction| reaction.checks)
            }
        }
    }

    /// The time in the message that is awaited. `None`: it is there, and is wrong.
    fn stamp(
        &mut self,
        spec: &WebSocketSpec,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Option<plimsoll_scenario::ExtractSpec>> {
        let (field, place) = (&spec.lag, spec.lag.place());
        if field.is_absent() {
            return Some(None);
        }
        if spec.receive.is_absent() {
            let problem = Problem::new("`lag` has no effect: the step awaits no message");
            return self.form(place, problem.with_hint("add `receive`"));
        }
        let lag = field.get()?;
        let extract = self.extraction(self.variable(LAG)?, lag, place, part, known)?;
        self.of_message(std::slice::from_ref(&extract), place)?;
        Some(Some(extract))
    }

    /// The text or the file that is sent as a message.
    pub(super) fn message(
        &mut self,
        send: &Field<Text>,
        send_file: &Field<Text>,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Body> {
        if !send.is_absent() && !send_file.is_absent() {
            let problem = Problem::new("`send` and `send_file` exclude each other");
            return self.form(send_file.place().or(place), problem);
        }
        if send.is_absent() {
            return Some(Body::Raw(Arc::from(self.named_file(send_file)?)));
        }
        let text = self.text(send)?;
        self.template(&text, send.place(), part, known)?;
        Some(Body::Text(text.into_bytes()))
    }

    fn websocket_action(
        &mut self,
        spec: &WebSocketSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Wanted> {
        let WebSocketSpec { open, send, send_file, receive, close, .. } = spec;
        let sends = [send.place(), send_file.place()];
        let verbs =
            [("open", open.place()), ("send", sends.into_iter().flatten().next()), ("close", close.place())];
        let mut given = verbs.into_iter().filter_map(|(verb, place)| Some((verb, place?)));
        let verb = match (given.next(), given.next()) {
            (Some((one, _)), Some((other, place))) => {
                let problem = Problem::new(format!("`{one}` and `{other}` exclude each other"));
                return self.form(Some(place), problem.with_hint(HINT));
            }
            (Some((verb, _)), None) => verb,
            // That there is nothing was told where the mapping was read.
            (None, _) if *spec == WebSocketSpec::default() => return None,
            (None, _) if receive.is_absent() => {
                return self.form(place, Problem::new("the action is missing").with_hint(HINT));
            }
            (None, _) => "receive",
        };
        self.websocket_belonging(spec, verb)?;
        let wanted = |action, method| Wanted {
            action,
            method,
            path: String::new(),
            headers: None,
            message: Body::None,
        };
        match verb {
            "open" => {
                let (path, headers) =
                    (self.websocket_path(open, part, known), self.upgrade(spec, part, known));
                Some(Wanted { path: path?, headers: Some(headers?), ..wanted(WebSocketAction::Open, "OPEN") })
            }
            "send" => {
                let message = self.message(send, send_file, place, part, known)?;
                let action =
                    WebSocketAction::Send { binary: is_on(&spec.binary), answered: !receive.is_absent() };
                Some(Wanted { message, ..wanted(action, "SEND") })
            }
            "close" => {
                let code = self.read(close, |text| match text.trim().parse() {
                    Ok(code) if is_valid_close_code(code) => Ok(code),
                    _ => Err(format!(
                        "`{text}` is not a status to close with: write 1000, or one from 3000 to 4999"
                    )),
                })?;
                Some(wanted(WebSocketAction::Close(code.unwrap_or(1000)), "CLOSE"))
            }
            _ => Some(wanted(WebSocketAction::Receive, "RECEIVE")),
        }
    }

    /// Reports keys that have no effect beside the action.
    fn websocket_belonging(&mut self, spec: &WebSocketSpec, verb: &str) -> Option<()> {
        let headers = spec.headers.0.first().map(|(_, place, _)| *place);
        let keys: [(&str, Option<Place>, &[&str]); 8] = [
            ("subprotocols", spec.subprotocols.place(), &["open"]),
            ("headers", headers, &["open"]),
            ("compress", spec.compress.place(), &["open"]),
            ("heartbeat", spec.heartbeat.place(), &["open"]),
            ("answer", spec.answer.first().and_then(Field::place), &["open"]),
            ("binary", spec.binary.place(), &["send"]),
            ("receive", spec.receive.place(), &["send", "receive"]),
            ("lag", spec.lag.place(), &["send", "receive"]),
        ];
        let foreign = keys.into_iter().filter(|(_, _, verbs)| !verbs.contains(&verb));
        match foreign.filter_map(|(key, place, _)| Some((key, place?))).next() {
            None => Some(()),
            Some((key, place)) => {
                let problem = Problem::new(format!("`{key}` has no effect beside `{verb}`"));
                self.form(Some(place), problem.with_hint(HINT))
            }
        }
    }

    fn websocket_path(&mut self, field: &Field<Text>, part: &mut Part<'_>, known: &Known) -> Option<String> {
        let text = self.text(field)?.trim().to_owned();
        self.template(&text, field.place(), part, known)?;
        if !text.starts_with('/') {
            let problem = Problem::new(format!("`{}` is not a path", text.escape_debug()));
            return self
                .fail(field.place(), problem.with_hint("the target has the URL: write `open: /path`"));
        }
        match checked_path(&text) {
            Ok(path) => Some(path),
            Err(problem) => self.fail(field.place(), problem),
        }
    }

    /// The headers of the request that opens a WebSocket: those of the scenario and the step, and those that
    /// ask for the upgrade.
    fn upgrade(&mut self, spec: &WebSocketSpec, part: &mut Part<'_>, known: &Known) -> Option<[Headers; 2]> {
        let scenario = part.spec;
        let shared = self.own_headers(&scenario.headers, part, known);
        let own = self.own_headers(&spec.headers, part, known);
        let subprotocols = self.plain_given(&spec.subprotocols)?;
        let mut upgrade: Headers = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", KEY),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        if let Some(names) = subprotocols {
            let is_name = |name: &str| !name.is_empty() && name.bytes().all(is_token);
            if let Some(wrong) = names.split(',').map(str::trim).find(|name| !is_name(name)) {
                let problem =
                    Problem::new(format!("`{}` is not a name of a subprotocol", wrong.escape_debug()));
                let hint = "write letters, digits and `.-_`, separated by commas: `chat.v2, chat`";
                return self.form(spec.subprotocols.place(), problem.with_hint(hint));
            }
            upgrade.push(("Sec-WebSocket-Protocol".to_owned(), names));
        }
        if is_on(&spec.compress) {
            upgrade.push(("Sec-WebSocket-Extensions".to_owned(), Deflate::OFFER.to_owned()));
        }
        Some([upgrade, over(shared?, own?)])
    }
}
