//! `config`: the server, settings of HTTP, variables, data and conditions for the run.

use plimsoll_document::{DataSpec, Field, ThresholdSpec};
use serde_json::Value;

use super::{Importer, is_extension, plain, time};
use crate::amount;
use crate::draft::{self, text};
use crate::flow::{self, Csv, Writing, first_rows, in_quotes};
use crate::source::{Object, below, shown};

/// Most values of a variable that are written out.
const MOST_VALUES: usize = 1_000;

impl Importer<'_> {
    pub(super) fn config(&mut self, config: &mut Object<'_>) {
        let target = config.value("target").map(plain).unwrap_or_default();
        self.variables(config);
        self.payloads(config);
        self.http(config);
        self.phases(config);
        self.ensure(config);
        self.target = self.variables.expanded(target.trim());
        if self.target.is_empty() || !self.target.contains("://") {
            let hint = "write the URL of the server as `target`: http://host:port";
            let message = match self.target.as_str() {
                "" => "`target` is missing".to_owned(),
                target => format!("`{}` is not a URL of a server", crate::findings::quoted(target)),
            };
            self.findings.hinted(&config.place("target"), message, hint);
        }
        for (key, becomes) in [
            ("environments", "the script is read without an environment: write its values into `config`"),
            ("processor", "functions in JavaScript are not carried out: calls of them are noted"),
            ("engines", "only the engine `http` is taken over: it is left out"),
            ("socketio", "only HTTP is taken over: it is left out"),
            ("ws", "only HTTP is taken over: it is left out"),
            ("statsInterval", "use --interval: it is left out"),
            ("apdex", "plans have thresholds instead of Apdex: write `p95<500ms`; it is left out"),
            ("bundling", "it has no effect here, and is left out"),
            ("includeFiles", "it has no effect here, and is left out"),
        ] {
            if let Some(value) = config.value(key) {
                self.findings.note(config.place(key), &shown(value), becomes);
            }
        }
        config.rest(&mut self.findings, is_extension);
    }

    /// Variables: one value, or several of which each user draws one.
    fn variables(&mut self, config: &mut Object<'_>) {
        let Some(variables) = config.object("variables", &mut self.findings) else { return };
        for (name, value) in variables.members() {
            let at = variables.place(name);
            match value {
                Value::Array(items) => {
                    let texts: Option<Vec<String>> = items
                        .iter()
                        .take(MOST_VALUES + 1)
                        .map(|item| match item {
                            Value::Array(_) | Value::Object(_) => None,
                            item => {
                                Some(plain(item)).filter(|text| !text.contains("{{") && !text.contains("${"))
                            }
                        })
                        .map(|text| text.and_then(|text| in_quotes(&text)))
                        .collect();
                    match texts.filter(|texts| !texts.is_empty() && texts.len() <= MOST_VALUES) {
                        Some(texts) => {
                            self.variables.define_template(
                                name,
                                format!("${{pick({})}}", texts.join(", ")),
                                &at,
                            );
                        }
                        None => {
                            let becomes = "a list for a variable has from 1 to 1000 plain values in a \
                                           plan: it is left out; \
                                           a file of `data` may do";
                            self.findings.note(at, "a list", becomes);
                        }
                    }
                }
                Value::Object(_) => {
                    self.findings.note(at, "an object", "variables are texts here: it is left out");
                }
                value => {
                    if !value.is_string() {
                        self.typed.insert(name.clone());
                    }
                    self.variables.define(name, &plain(value), &at);
                }
            }
        }
    }

    /// CSV files.
    fn payloads(&mut self, config: &mut Object<'_>) {
        let at = config.place("payload");
        let items: Vec<(&Value, String)> = match config.value("payload") {
            None => return,
            Some(Value::Array(items)) => {
                items.iter().enumerate().map(|(index, item)| (item, below(&at, index))).collect()
            }
            Some(one) => vec![(one, at)],
        };
        for (item, at) in items {
            let Some(mut payload) = Object::new(item, at, &mut self.findings) else { continue };
            self.payload(&mut payload);
            payload.rest(&mut self.findings, is_extension);
        }
    }

    fn payload(&mut self, payload: &mut Object<'_>) {
        payload.skip(&["skipEmptyLines"]);
        let casts = payload.flag("cast", &mut self.findings) != Some(false);
        let Some(path) = payload.filled("path", &mut self.findings) else {
            self.findings.problem(&payload.at, "`path` is missing");
            return;
        };
        let mut data = DataSpec::default();
        match payload.text("order", &mut self.findings) {
            Some("sequence") => {}
            None | Some("random") => data.order = text("random"),
            Some(other) => self.findings.note(
                payload.place("order"),
                other,
                "there is no such order: rows are taken in turn",
            ),
        }
        let delimiter = payload.filled("delimiter", &mut self.findings).unwrap_or(",").to_owned();
        for (key, becomes) in [
            ("loadAll", "each iteration takes one row: a list of all rows cannot be had"),
            ("name", "the columns are variables of their own: the name is left out"),
        ] {
            if let Some(value) = payload.value(key).filter(|value| **value != Value::Bool(false)) {
                self.findings.note(payload.place(key), &shown(value), becomes);
            }
        }
        let fields: Vec<String> =
            payload.list("fields", &mut self.findings).into_iter().map(|(field, _)| plain(field)).collect();
        let skips = payload.flag("skipHeader", &mut self.findings) == Some(true);
        if fields.is_empty() {
            self.findings.hinted(
                &payload.at,
                "`fields` is missing",
                "name the columns: fields: [user, password]",
            );
            return;
        }
        if casts {
            // Numbers of the file are numbers there.
            let content = first_rows(&self.folder.join(path), self.files);
            let row = content.split(|byte| *byte == b'\n').nth(usize::from(skips)).unwrap_or_default();
            let row = String::from_utf8_lossy(row);
            for (field, value) in fields.iter().zip(row.trim_end().split(delimiter.as_str())) {
                if amount::Ratio::decimal(value.trim()).is_some() {
                    self.typed.insert(field.clone());
                }
            }
        }
        let csv = Csv { path: path.to_owned(), delimiter, names: fields, has_head: skips };
        let at = payload.place("path");
        let place = (self.folder, self.files);
        self.variables.add_csv(
            csv,
            data,
            &mut self.document,
            &mut self.headed,
            place,
            &at,
            &mut self.findings,
        );
    }

    fn http(&mut self, config: &mut Object<'_>) {
        if let Some(mut defaults) = config.object("defaults", &mut self.findings) {
            self.defaults(&mut defaults);
        }
        if let Some(mut http) = config.object("http", &mut self.findings) {
            if let Some(value) = http.value("timeout") {
                match time(value).filter(|nanos| *nanos > 0) {
                    Some(nanos) => self.settings.timeout = text(amount::time(nanos)),
                    None => self.findings.note(
                        http.place("timeout"),
                        &shown(value),
                        "it is not a time: it is left out",
                    ),
                }
            }
            if let Some(pool) = http.count("pool", &mut self.findings).filter(|pool| *pool > 0) {
                self.settings.connections = text(pool.to_string());
                let becomes = "all users share this many connections, and wait for them";
                self.findings.note(http.place("pool"), &pool.to_string(), becomes);
            }
            if let Some(mut defaults) = http.object("defaults", &mut self.findings) {
                self.defaults(&mut defaults);
            }
            http.skip(&["extendedMetrics"]);
            for (key, becomes) in [
                (
                    "maxSockets",
                    "connections are opened as they are needed; `connections` limits them: it is left out",
                ),
                ("cookieJarOptions", "cookies are kept by RFC 6265: it is left out"),
            ] {
                if let Some(value) = http.value(key) {
                    self.findings.note(http.place(key), &shown(value), becomes);
                }
            }
            http.rest(&mut self.findings, is_extension);
        }
        if let Some(mut tls) = config.object("tls", &mut self.findings) {
            if tls.flag("rejectUnauthorized", &mut self.findings) == Some(false) {
                self.settings.insecure = Field::new(true);
            }
            for key in ["ca", "cert", "key", "pfx", "passphrase", "servername", "client"] {
                if tls.has(key) {
                    let becomes = "give certificates with --cacert, --cert and --key: it is left out";
                    self.findings.note(tls.place(key), key, becomes);
                }
            }
            tls.skip(&["ca", "cert", "key", "pfx", "passphrase", "servername", "client"]);
            tls.rest(&mut self.findings, is_extension);
        }
        config.skip(&["http2"]);
    }

    /// Headers of all requests.
    fn defaults(&mut self, defaults: &mut Object<'_>) {
        if let Some(headers) = defaults.object("headers", &mut self.findings) {
            for (name, value) in headers.members() {
                let at = headers.place(name);
                if flow::is_own_header(name) || !draft::is_token(name) {
                    self.findings.note(
                        at,
                        name,
                        "the header belongs to the connection, or is invalid: left out",
                    );
                    continue;
                }
                let value = self.variables.template(&plain(value), Writing::Plain, &at, &mut self.findings);
                if !value.is_empty() {
                    self.headers.push((name.clone(), value));
                }
            }
        }
        defaults.skip(&["strictCapture"]);
        if let Some(value) = defaults.value("cookie") {
            let becomes = "cookies of all requests cannot be given: write a header `cookie`";
            self.findings.note(defaults.place("cookie"), &shown(value), becomes);
        }
        defaults.rest(&mut self.findings, is_extension);
    }

    /// Conditions for the run, in all the places where Artillery has had them.
    fn ensure(&mut self, config: &mut Object<'_>) {
        if let Some(mut ensure) = config.object("ensure", &mut self.findings) {
            self.conditions(&mut ensure);
        }
        let Some(mut plugins) = config.object("plugins", &mut self.findings) else { return };
        if let Some(value) = plugins.value("ensure").filter(|value| value.is_object())
            && let Some(mut ensure) = Object::new(value, plugins.place("ensure"), &mut self.findings)
        {
            self.conditions(&mut ensure);
        }
        plugins.skip(&["ensure", "expect", "metrics-by-endpoint"]);
        for (name, value) in plugins.members() {
            if !["ensure", "expect", "metrics-by-endpoint"].contains(&name.as_str()) {
                let becomes = "the plugin is left out; figures go elsewhere with --export and --out";
                self.findings.note(plugins.place(name), &shown(value), becomes);
            }
        }
    }

    fn conditions(&mut self, ensure: &mut Object<'_>) {
        for limits in ensure.objects("thresholds", &mut self.findings) {
            for (metric, limit) in limits.members() {
                let at = limits.place(metric);
                self.threshold(metric, "<", &plain(limit), &at, &format!("{metric}: {}", plain(limit)));
            }
        }
        for mut condition in ensure.objects("conditions", &mut self.findings) {
            let expression = condition.text("expression", &mut self.findings).unwrap_or_default();
            condition.skip(&["strict"]);
            let at = condition.place("expression");
            let parts: Vec<&str> = expression.split(" and ").map(str::trim).collect();
            for part in parts {
                let found = ["<=", ">=", "<", ">"].iter().find_map(|operator| {
                    part.split_once(operator).map(|(metric, limit)| (metric.trim(), *operator, limit.trim()))
                });
                match found {
                    Some((metric, operator, limit)) => self.threshold(metric, operator, limit, &at, part),
                    None => self.no_threshold(&at, part),
                }
            }
        }
        ensure.skip(&["thresholds", "conditions"]);
        for (metric, limit) in ensure.members() {
            if !["thresholds", "conditions"].contains(&metric.as_str()) {
                let at = ensure.place(metric);
                self.threshold(metric, "<", &plain(limit), &at, &format!("{metric}: {}", plain(limit)));
            }
        }
    }

    fn no_threshold(&mut self, at: &str, said: &str) {
        self.findings.note(at, said, "plans have no such threshold: it is left out");
    }

    fn threshold(&mut self, metric: &str, operator: &str, limit: &str, at: &str, said: &str) {
        let figure = metric.strip_prefix("http.response_time.").unwrap_or(metric);
        let limit = limit.trim();
        let is_number = !limit.is_empty() && limit.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let that = match figure {
            _ if !is_number || amount::Ratio::decimal(limit).is_none() => None,
            // The times there are of every response, good or not.
            "min" | "max" | "mean" => Some(format!("{figure}{{all}}{operator}{limit}ms")),
            "median" => Some(format!("p50{{all}}{operator}{limit}ms")),
            "maxErrorRate" => Some(format!("error_rate{operator}{limit}%")),
            "http.request_rate" => Some(format!("rate{operator}{limit}")),
            figure => match figure.strip_prefix('p') {
                Some("999") => Some(format!("p99.9{{all}}{operator}{limit}ms")),
                Some(digits) if digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                    Some(format!("p{digits}{{all}}{operator}{limit}ms"))
                }
                _ => None,
            },
        };
        match that {
            Some(that) => {
                let mut threshold = ThresholdSpec::default();
                threshold.that = text(that);
                if !self.thresholds.contains(&threshold) {
                    self.thresholds.push(threshold);
                }
            }
            None => self.no_threshold(at, said),
        }
    }
}
