//! Requests of `self.client`, and its settings.

use plimsoll_document::Field;

use crate::amount;
use crate::draft::text;
use crate::flow;
use crate::k6::http::Made;
use crate::k6::syntax::Span;
use crate::k6::value::{Part, Text, Value};
use crate::k6::{Importer, Item, escaped};

/// Settings of the client of one user.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    headers: Vec<(String, Value)>,
    cookies: Vec<(String, Value)>,
    auth: Option<Value>,
    /// In front of paths.
    pub(crate) host: Option<Value>,
    /// The class whose method is followed, by its number.
    pub(crate) class: usize,
}

/// A request that a script sends.
struct Call {
    method: String,
    url: Value,
    data: Option<Value>,
    json: Option<Value>,
}

/// Arguments of a request beside what it sends and where to, in front of them the settings of the client.
struct Options {
    headers: Vec<(String, Value)>,
    cookies: Vec<(String, Value)>,
    auth: Option<Value>,
    /// Parameters behind the URL.
    query: Option<Value>,
    /// Redirects are followed.
    follows: bool,
    /// Parameters as those of k6.
    others: Vec<(String, Value)>,
}

impl Options {
    /// The settings of the client alone.
    fn of(session: &Session) -> Self {
        Self {
            headers: session.headers.clone(),
            cookies: session.cookies.clone(),
            auth: session.auth.clone(),
            query: None,
            follows: true,
            others: Vec::new(),
        }
    }
}

/// Arguments of requests that say nothing about what is sent.
const WITHOUT_EFFECT: [&str; 2] = ["catch_response", "stream"];

impl Session {
    /// Replaces a header, without regard to case.
    fn put_header(&mut self, name: &str, value: Value) {
        put(&mut self.headers, name, value);
    }

    /// The settings behind a condition, from those of its sides.
    pub(crate) fn joined(&self, other: &Self, join: &mut dyn FnMut(&Value, &Value) -> Value) -> Self {
        let one =
            |ours: &Option<Value>, theirs: &Option<Value>, join: &mut dyn FnMut(&Value, &Value) -> Value| {
                match (ours, theirs) {
                    (None, None) => None,
                    (ours, theirs) => {
                        let of = |side: &Option<Value>| side.clone().unwrap_or(Value::Undefined);
                        Some(join(&of(ours), &of(theirs)))
                    }
                }
            };
        Self {
            headers: joined(&self.headers, &other.headers, join),
            cookies: joined(&self.cookies, &other.cookies, join),
            auth: one(&self.auth, &other.auth, join),
            host: one(&self.host, &other.host, join),
            class: self.class,
        }
    }
}

/// The values of two sides of a condition, by their names. A value that one side lacks is lost.
fn joined(
    ours: &[(String, Value)],
    theirs: &[(String, Value)],
    join: &mut dyn FnMut(&Value, &Value) -> Value,
) -> Vec<(String, Value)> {
    let mut all = ours.to_vec();
    all.extend(theirs.iter().filter(|(name, _)| !ours.iter().any(|(known, _)| known == name)).cloned());
    for (name, value) in &mut all {
        let of = |side: &[(String, Value)]| {
            let found = side.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            found.unwrap_or(Value::Undefined)
        };
        *value = join(&of(ours), &of(theirs));
    }
    all
}

fn put(headers: &mut Vec<(String, Value)>, name: &str, value: Value) {
    headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    if !matches!(value, Value::Null | Value::Undefined) {
        headers.push((name.to_owned(), value));
    }
}

impl Importer<'_> {
    /// A function of `self.client`.
    pub(super) fn client(
        &mut self,
        function: &str,
        values: &[Value],
        named: &[(String, Value)],
        span: Span,
    ) -> Value {
        let value = |index: usize| values.get(index).cloned();
        let keyword = |name: &str| named.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let (method, url, data, json) = match function {
            "get" | "head" | "delete" | "options" => {
                (function.to_ascii_uppercase(), value(0), keyword("data"), keyword("json"))
            }
            "post" | "put" | "patch" => (
                function.to_ascii_uppercase(),
                value(0),
                value(1).or_else(|| keyword("data")),
                value(2).or_else(|| keyword("json")),
            ),
            "request" | "rest" => {
                let Some(method) = value(0).or_else(|| keyword("method")).and_then(|one| one.constant())
                else {
                    self.left_out(span, "its method is not known before the run: the request is left out");
                    return Value::Unknown;
                };
                (method.to_ascii_uppercase(), value(1), keyword("data"), keyword("json"))
            }
            "headers.update" | "cookies.update" | "cookies.set" | "headers.pop" => {
                self.change_session(function, values, named, span);
                return Value::Undefined;
            }
            "close" => return Value::Undefined,
            _ => return self.not_followed(values, span),
        };
        let given = values.iter().chain(named.iter().map(|(_, value)| value));
        if let Some(lost) = given.into_iter().find_map(Value::lost) {
            self.refuse(span, lost);
        }
        let Some(url) = url.or_else(|| keyword("url")).or_else(|| keyword("path")) else {
            self.left_out(span, "its URL is not known before the run: the request is left out");
            return Value::Unknown;
        };
        let mut options = Options::of(&self.session);
        options.follows = function != "head";
        if function == "rest" {
            put(&mut options.headers, "content-type", Value::text("application/json"));
            put(&mut options.headers, "accept", Value::text("application/json"));
        }
        for (name, value) in named {
            self.option(name, value, &mut options, span);
        }
        self.send(Call { method, url, data, json }, options, span)
    }

    /// A function that changes the settings of the client.
    fn change_session(&mut self, function: &str, values: &[Value], named: &[(String, Value)], span: Span) {
        let first = values.first().cloned();
        if function.ends_with(".update") {
            let given = first.unwrap_or_else(|| Value::object(named.to_vec()));
            if let Value::Lost(lost) = &given {
                self.refuse(span, lost);
            }
            let Value::Object(members) = &given else {
                self.note(span, "the values are not known before the run: they are left out");
                return;
            };
            for (name, value) in members.iter() {
                let value = self.assigned(value.clone());
                match function {
                    "headers.update" => self.session.put_header(name, value),
                    _ => put(&mut self.session.cookies, name, value),
                }
            }
            return;
        }
        match (function, first.and_then(|name| name.constant()), values.get(1)) {
            ("headers.pop", Some(name), _) => self.session.put_header(&name, Value::Null),
            ("headers.pop", None, _) => {}
            (_, Some(name), Some(value)) => {
                let value = self.assigned(value.clone());
                put(&mut self.session.cookies, &name, value);
            }
            _ => self.note(span, "the name is not known before the run: it is left out"),
        }
    }

    /// Takes over an argument of a request that has a name.
    fn option(&mut self, name: &str, value: &Value, options: &mut Options, span: Span) {
        match (name, value) {
            ("data" | "json" | "url" | "path" | "method", _) => {}
            (name, _) if WITHOUT_EFFECT.contains(&name) => {}
            (_, Value::Null) => {}
            ("headers", Value::Object(given)) => {
                given.iter().for_each(|(name, value)| put(&mut options.headers, name, value.clone()));
            }
            ("cookies", Value::Object(given)) => {
                given.iter().for_each(|(name, value)| put(&mut options.cookies, name, value.clone()));
            }
            ("headers" | "cookies", _) => {
                let at = self.at(span);
                let becomes = "they are not known before the run: they are left out";
                self.findings.note(at, name, becomes);
            }
            ("params", value) => options.query = Some(value.clone()),
            ("auth", value) => options.auth = Some(value.clone()),
            ("name", value) => {
                let tags = Value::object(vec![("name".to_owned(), value.clone())]);
                options.others.push(("tags".to_owned(), tags));
            }
            ("allow_redirects", value) => options.follows = value.truth() != Some(false),
            ("verify", value) if value.truth() == Some(false) => self.without_verification(span),
            ("verify", Value::Boolean(true)) => {}
            ("timeout", value) => {
                let seconds = match value {
                    Value::Array(both) => both.last().and_then(Value::number),
                    value => value.number(),
                };
                let value = seconds.map_or(Value::Unknown, |seconds| Value::Number(seconds * 1e3));
                options.others.push(("timeout".to_owned(), value));
            }
            ("files", _) => {
                let becomes = "a form with files is not taken over: put it into a file, and name it as \
                               `body_file`";
                self.note(span, becomes);
            }
            (_, value) => options.others.push((name.to_owned(), value.clone())),
        }
    }

    /// Sends a request, as the function of k6 does.
    fn send(&mut self, call: Call, options: Options, span: Span) -> Value {
        let Call { method, url, data, json } = call;
        let Options { mut headers, cookies, auth, query, follows, others: mut members } = options;
        if !follows {
            members.push(("redirects".to_owned(), Value::Number(0.0)));
        }
        if let Some(auth) = auth {
            match self.basic(&auth, span) {
                Some(value) => put(&mut headers, "authorization", value),
                None => {
                    self.note(span, "these credentials are not taken over: only names with passwords are");
                }
            }
        }
        let body = match (json, data) {
            (Some(json), _) if !matches!(json, Value::Null) => {
                if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                    headers.push(("content-type".to_owned(), Value::text("application/json")));
                }
                match json {
                    Value::Unknown => Value::Unknown,
                    json => Value::in_json(json),
                }
            }
            (_, Some(data)) => pairs(&data).map_or(data, Value::object),
            _ => Value::Undefined,
        };
        members.push(("headers".to_owned(), Value::object(headers)));
        if !cookies.is_empty() {
            members.push(("cookies".to_owned(), Value::object(cookies)));
        }
        let url = self.placed(url, query, span);
        let parameters = Value::object(members);
        match self.made(Made { method, url, body, parameters: &parameters, span }) {
            Some(request) => {
                self.push(Item::Request(request));
                Value::Response(request)
            }
            None => Value::Unknown,
        }
    }

    /// The whole URL: the server in front of a path, and the parameters behind it.
    fn placed(&mut self, url: Value, parameters: Option<Value>, span: Span) -> Value {
        let is_path = match &url {
            Value::String(text) => !text.starts_with("http://") && !text.starts_with("https://"),
            Value::Text(text) => match text.parts.first() {
                Some(Part::Literal(text)) => !text.starts_with("http://") && !text.starts_with("https://"),
                Some(Part::Environment(_, default)) => {
                    !default.as_ref().is_some_and(|default| default.contains("://"))
                }
                _ => false,
            },
            _ => false,
        };
        let mut whole = url;
        if let (true, Some(host)) = (is_path, self.session.host.clone()) {
            whole = self.joined(host, whole, span);
        }
        let Some(parameters) = parameters else { return whole };
        if matches!(whole, Value::Unknown) {
            return whole;
        }
        let mut text = self.text_of(&whole, span);
        let has_query =
            text.parts.iter().any(|part| matches!(part, Part::Literal(text) if text.contains('?')));
        let mut between = if has_query { "&" } else { "?" };
        let given = match (&parameters, pairs(&parameters)) {
            (_, Some(given)) => given,
            (parameters, None) => {
                if let Some(query) = parameters.constant() {
                    text.push(Part::Literal(format!("{between}{query}")));
                } else {
                    self.note(span, "the parameters are not known before the run: they are left out");
                }
                Vec::new()
            }
        };
        for (name, value) in given {
            let name = self.encoded_text(&Value::String(name), span);
            let value = self.encoded_text(&value, span);
            text.push(Part::Literal(between.to_owned()));
            text.append(name);
            text.push(Part::Literal("=".to_owned()));
            text.append(value);
            between = "&";
        }
        Value::Text(Text { is_number: false, ..text })
    }

    /// The header for a name with a password.
    fn basic(&mut self, auth: &Value, span: Span) -> Option<Value> {
        if let Some(lost) = auth.lost() {
            self.refuse(span, lost);
        }
        let Value::Array(both) = auth else { return None };
        let [user, password] = both.as_slice() else { return None };
        let value = match (user.constant(), password.constant()) {
            (Some(user), Some(password)) => flow::basic(&escaped(&user), &escaped(&password)),
            _ => {
                let (user, password) = (self.text_of(user, span), self.text_of(password, span));
                let plain = crate::k6::value::Writing::Plain;
                let (user, password) = (self.written(&user, plain), self.written(&password, plain));
                let template = flow::basic(&user, &password);
                let slot = template.strip_prefix("Basic ${").and_then(|slot| slot.strip_suffix('}'))?;
                let mut text = Text::of(Part::Literal("Basic ".to_owned()));
                text.push(Part::Slot(slot.to_owned()));
                return Some(Value::Text(text));
            }
        };
        Some(Value::String(value))
    }

    fn without_verification(&mut self, span: Span) {
        self.note(span, "certificates are verified for all requests of a plan, or for none: for none");
        self.settings.insecure = Field::new(true);
    }

    /// `self.client.headers["X-A"] = value` and the like.
    pub(crate) fn set_client(&mut self, path: &str, key: &str, value: Value, span: Span) {
        let value = self.assigned(value);
        match (path, key, &value) {
            ("client", "headers", Value::Lost(lost)) => self.refuse(span, lost),
            ("client.headers", name, _) => self.session.put_header(name, value),
            ("client.cookies", name, _) => put(&mut self.session.cookies, name, value),
            ("client", "headers", Value::Object(members)) => self.session.headers = members.to_vec(),
            ("client", "auth", _) => self.session.auth = Some(value),
            ("client", "verify", Value::Boolean(false)) => self.without_verification(span),
            ("client", "verify", Value::Boolean(true)) => {}
            ("client", "base_url", _) => self.session.host = Some(value),
            _ => self.note(span, "it is not carried out: it is left out"),
        }
    }

    /// Settings that a class of users has as attributes.
    pub(super) fn client_setting(&mut self, name: &str, value: &Value, at: &str) -> bool {
        match (name, value) {
            ("default_headers", Value::Object(members)) => self.session.headers = members.to_vec(),
            ("network_timeout" | "connection_timeout", value) => match value.number() {
                Some(seconds) if seconds > 0.0 && name == "network_timeout" => {
                    self.settings.timeout = text(amount::time(amount::nanos(seconds)));
                }
                _ => {
                    let becomes = "`timeout` of a plan is for the whole of a request: it is left out";
                    self.findings.note(at, name, becomes);
                }
            },
            ("max_redirects", value) if value.number().is_some() => {
                self.most_redirects = crate::k6::value::shown(value.number().unwrap_or_default());
            }
            ("insecure", value) => {
                self.settings.insecure =
                    if value.truth() == Some(true) { Field::new(true) } else { Field::Absent };
            }
            _ => return false,
        }
        true
    }
}

/// Names and values of a form or a query: a list of values is several of them, and None is none. `None` if
/// it is a text.
fn pairs(value: &Value) -> Option<Vec<(String, Value)>> {
    let given: Vec<(String, Value)> = match value {
        Value::Object(members) => members.to_vec(),
        Value::Array(items) => items
            .iter()
            .map(|item| match item {
                Value::Array(pair) => match pair.as_slice() {
                    [name, value] => Some((name.constant()?, value.clone())),
                    _ => None,
                },
                _ => None,
            })
            .collect::<Option<_>>()?,
        _ => return None,
    };
    let mut pairs = Vec::new();
    for (name, value) in given {
        match value {
            Value::Null | Value::Undefined => {}
            Value::Array(values) => {
                pairs.extend(values.iter().map(|value| (name.clone(), value.clone())));
            }
            value => pairs.push((name, value)),
        }
    }
    Some(pairs)
}
