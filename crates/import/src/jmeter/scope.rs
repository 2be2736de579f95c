//! Settings that hold for all samplers below a place of the tree.

use plimsoll_document::{DataSpec, PauseSpec};

use super::Importer;
use super::tree::{Node, inner, items, value};
use crate::amount::Ratio;
use crate::draft::{self, text};
use crate::flow::{self, Csv};
use crate::xml::Element;

/// Settings, timers and checks of a place, with those of the places around it.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope<'e> {
    /// Elements with defaults of requests; those of inner places come last.
    pub(super) defaults: Vec<&'e Element>,
    /// Headers: names and templates.
    pub(super) headers: Vec<(String, String)>,
    pub(super) cookies: bool,
    pub(super) timers: Vec<PauseSpec>,
    /// Credentials, by the beginning of the URLs that they are for.
    pub(super) credentials: Vec<Credentials>,
    /// Assertions and extractors, with their places.
    pub(super) checks: Vec<(&'e Element, String)>,
}

impl Scope<'_> {
    /// Amount of it that is written to each request.
    pub(super) fn size(&self) -> usize {
        let headers: usize =
            self.headers.iter().map(|(name, value)| 1 + (name.len() + value.len()) / 16).sum();
        let defaults: usize = self.defaults.iter().map(|element| 1 + arguments(element).len()).sum();
        let checks: usize = self.checks.iter().map(|(element, _)| 1 + element.children.len()).sum();
        headers + defaults + checks + self.timers.len() + self.credentials.len()
    }
}

/// Name and password, as templates.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    /// Empty for all.
    pub(super) url: String,
    pub(super) user: String,
    pub(super) password: String,
}

/// Returns `true` for elements that say something about the samplers beside and below them.
pub(super) fn is_config(kind: &str) -> bool {
    ["ConfigTestElement", "HeaderManager", "CookieManager", "AuthManager", "CSVDataSet", "Arguments"]
        .contains(&kind)
        || kind.ends_with("Assertion")
        || kind.ends_with("Extractor")
        || kind.ends_with("Extractor2")
        || kind.ends_with("Timer")
        || ["JSONPostProcessor", "RandomVariableConfig", "CounterConfig", "CacheManager", "HTTPFormConfig"]
            .contains(&kind)
        || kind.ends_with("PostProcessor")
        || kind.ends_with("PreProcessor")
        || kind.ends_with("Config")
        || ["DNSCacheManager", "KeystoreConfig", "UserParameters"].contains(&kind)
        || kind.ends_with("Listener")
        || kind.ends_with("Visualizer")
        || ["ResultCollector", "Summariser"].contains(&kind)
}

impl Importer<'_> {
    /// Takes over the elements of a place that apply to all samplers there.
    pub(super) fn enter<'e>(&mut self, below: &[Node<'e>], scope: &mut Scope<'e>) {
        for node in below.iter().filter(|node| is_config(node.kind()) || !node.enabled) {
            if !node.enabled {
                self.findings.note(node.at(), node.kind(), "it is disabled there: it is left out");
                continue;
            }
            self.config(node, scope);
        }
    }

    fn config<'e>(&mut self, node: &Node<'e>, scope: &mut Scope<'e>) {
        let at = node.at();
        match node.kind() {
            "ConfigTestElement" | "HTTPFormConfig" => scope.defaults.push(node.element),
            "HeaderManager" => {
                for header in items(node.element, "HeaderManager.headers") {
                    let name = value(header, "Header.name").unwrap_or_default().trim().to_owned();
                    let written = value(header, "Header.value").unwrap_or_default();
                    self.header(&name, &written, &at, scope);
                }
            }
            "CookieManager" => {
                scope.cookies = true;
                if !items(node.element, "CookieManager.cookies").is_empty() {
                    let becomes = "cookies of its own cannot be given: write a header `cookie`";
                    self.findings.note(at.as_str(), "cookies", becomes);
                }
                if node.flag("CookieManager.controlledByThreadGroup") {
                    let becomes = "cookies are kept for one iteration: there the thread group decides, which keeps \
                                   them for the next one unless each iteration is another user";
                    self.findings.note(at, "CookieManager.controlledByThreadGroup", becomes);
                } else if !node.flag("CookieManager.clearEachIteration") {
                    let becomes = "cookies are kept for one iteration, and not for the next";
                    self.findings.note(at, "CookieManager.clearEachIteration", becomes);
                }
            }
            "AuthManager" => {
                for item in items(node.element, "AuthManager.auth_list") {
                    let mechanism = value(item, "Authorization.mechanism").unwrap_or_default();
                    if !["", "BASIC", "BASIC_DIGEST"].contains(&mechanism.as_str()) {
                        let becomes = "only Basic authentication is taken over: it is left out";
                        self.findings.note(at.as_str(), &mechanism, becomes);
                        continue;
                    }
                    let read = |key: &str| value(item, key).unwrap_or_default();
                    let user = self.template(&read("Authorization.username"), &at);
                    let password = self.template(&read("Authorization.password"), &at);
                    let url = self.variables.expanded(read("Authorization.url").trim());
                    scope.credentials.push(Credentials { url, user, password });
                }
            }
            "CSVDataSet" => self.csv(node),
            "Arguments" => self.define(node, node.element),
            "RandomVariableConfig" => {
                let name = node.value("variableName").unwrap_or_default();
                let number = |key: &str| node.value(key).and_then(|text| text.trim().parse::<i64>().ok());
                match (number("minimumValue"), number("maximumValue")) {
                    (Some(low), Some(high)) if low <= high && !name.is_empty() => {
                        self.variables.define_template(&name, format!("${{random_int({low}, {high})}}"), &at);
                    }
                    _ => self.findings.note(at, &name, "it has no whole numbers as limits: it is left out"),
                }
            }
            "CounterConfig" => self.counter(node),
            "ConstantThroughputTimer" => self.throughput(node),
            "VariableThroughputTimer" => self.shaped_throughput(node),
            "ConstantTimer" | "UniformRandomTimer" | "GaussianRandomTimer" | "PoissonRandomTimer" => {
                scope.timers.extend(self.timer(node));
            }
            kind if kind.ends_with("Assertion")
                || kind.contains("Extractor")
                || kind == "JSONPostProcessor" =>
            {
                scope.checks.push((node.element, at));
            }
            "CacheManager" => {
                self.findings.note(at, "CacheManager", "nothing is cached: every request is sent");
            }
            "DNSCacheManager" => {
                self.findings.note(
                    at,
                    "DNSCacheManager",
                    "`resolve` and `connect_to` do the same: it is left out",
                );
            }
            _ => self.left_out(node),
        }
    }

    /// A header; one of the same name in a place around it is replaced.
    fn header(&mut self, name: &str, written: &str, at: &str, scope: &mut Scope<'_>) {
        if name.is_empty() {
            return;
        }
        if flow::is_own_header(name) || !draft::is_token(name) {
            self.findings.note(at, name, "the header belongs to the connection, or is invalid: left out");
            return;
        }
        let value = self.template(written.trim(), at);
        if value.is_empty() || value.contains(['\r', '\n', '\0']) {
            self.findings.note(
                at,
                name,
                "a header without a value cannot be sent, or one with a line break: it is left out",
            );
            return;
        }
        self.written += scope.headers.len();
        if self.written > super::MOST_WRITTEN {
            // The next step reports it.
            return;
        }
        scope.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        scope.headers.push((name.to_owned(), value));
    }

    /// User defined variables.
    pub(super) fn define(&mut self, node: &Node<'_>, arguments: &Element) {
        let at = node.at();
        for item in items(arguments, "Arguments.arguments") {
            let name = value(item, "Argument.name").unwrap_or_default().trim().to_owned();
            let written = value(item, "Argument.value").unwrap_or_default();
            if !name.is_empty() && !self.variables.define(&name, &written, &at) {
                self.findings.note(
                    at.as_str(),
                    &name,
                    "the variable is defined already: the first value is taken",
                );
            }
        }
    }

    fn csv(&mut self, node: &Node<'_>) {
        let at = node.at();
        let Some(path) = node.filled("filename") else {
            self.findings.problem(&at, "the data set names no file");
            return;
        };
        let delimiter = node.value("delimiter").unwrap_or_default();
        let delimiter = match delimiter.as_str() {
            "" => ",".to_owned(),
            "\\t" => "\t".to_owned(),
            other => other.to_owned(),
        };
        let names: Vec<String> = node
            .filled("variableNames")
            .map(|names| names.split(',').map(|name| name.trim().to_owned()).collect())
            .unwrap_or_default();
        let has_head = names.is_empty() || node.flag("ignoreFirstLine");
        let mut data = DataSpec::default();
        if node.value("recycle").is_some_and(|recycle| recycle.trim() == "false") {
            data.at_end = text("stop");
            if !node.flag("stopThread") {
                let becomes = "no iteration begins after the last row, where variables would be `<EOF>`";
                self.findings.note(at.as_str(), "recycle: false", becomes);
            }
        }
        match node.value("shareMode").unwrap_or_default().as_str() {
            "" | "shareMode.all" => {}
            "shareMode.thread" => {
                data.share = text("whole");
                let becomes = "each thread of a worker has the whole file, and users share it";
                self.findings.note(at.as_str(), "shareMode.thread", becomes);
            }
            other => {
                let becomes = "the rows are shared by all users";
                self.findings.note(at.as_str(), other, becomes);
            }
        }
        let encoding = node.filled("fileEncoding").unwrap_or_default();
        if !["", "UTF-8", "utf-8", "UTF8"].contains(&encoding.as_str()) && !encoding.contains("${") {
            self.findings.note(at.as_str(), &encoding, "files are read as UTF-8");
        }
        let csv = Csv { path, delimiter, names, has_head };
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

    /// Numbers in turn.
    fn counter(&mut self, node: &Node<'_>) {
        let at = node.at();
        let name = node.value("CounterConfig.name").unwrap_or_default();
        let number = |key: &str, default: u64| match node.filled(key) {
            None => Some(default),
            Some(text) => text.trim().parse::<u64>().ok(),
        };
        let first = number("CounterConfig.start", 0);
        let last = number("CounterConfig.end", 1_000_000_000);
        let step = number("CounterConfig.incr", 1);
        match (first, last, step) {
            (Some(first), Some(last), Some(1)) if first <= last && last < u64::MAX && !name.is_empty() => {
                let ours = self.variables.name(&name);
                let mut data = DataSpec::default();
                data.range = vec![text(first.to_string()), text((last + 1).to_string())];
                self.document.data.push(ours, data);
                if node.flag("CounterConfig.per_user") {
                    let becomes = "the numbers are shared by all users";
                    self.findings.note(at.as_str(), "CounterConfig.per_user", becomes);
                }
                if node.filled("CounterConfig.format").is_some() {
                    self.findings.note(
                        at,
                        "CounterConfig.format",
                        "the numbers are written without a format",
                    );
                }
            }
            _ => self.findings.note(at, &name, "numbers go up by 1 in a plan: it is left out"),
        }
    }

    /// The pause of a timer, which comes before each request there.
    fn timer(&mut self, node: &Node<'_>) -> Option<PauseSpec> {
        let at = node.at();
        let written = node.value("ConstantTimer.delay").unwrap_or_default();
        let delay = self.milliseconds(&written, &at)?;
        let written = node.value("RandomTimer.range").unwrap_or_else(|| "0".to_owned());
        let range = if node.kind() == "ConstantTimer" { 0 } else { self.milliseconds(&written, &at)? };
        let pause = match node.kind() {
            "ConstantTimer" => flow::uniform(delay, delay),
            "UniformRandomTimer" => flow::uniform(delay, delay.saturating_add(range)),
            "PoissonRandomTimer" => {
                let becomes = "plans have no Poisson pauses: it is always its mean";
                self.findings.note(at, "PoissonRandomTimer", becomes);
                let mean = delay.saturating_add(range);
                flow::uniform(mean, mean)
            }
            _ => {
                // A uniform distribution with the same deviation is √3 times as wide to each side.
                let wide = range.saturating_mul(1732) / 1000 / 1_000_000 * 1_000_000;
                let becomes =
                    "plans have no Gaussian pauses: it is uniform, with the same mean and deviation";
                self.findings.note(at, "GaussianRandomTimer", becomes);
                flow::uniform(delay.saturating_sub(wide), delay.saturating_add(wide))
            }
        };
        (pause.fixed != text("0s")).then_some(pause)
    }

    /// Milliseconds as nanoseconds; other text is noted.
    pub(super) fn milliseconds(&mut self, written: &str, at: &str) -> Option<u64> {
        let expanded = self.variables.expanded(written.trim());
        let nanos = Ratio::decimal(expanded.trim())
            .and_then(|number| number.times(Ratio::new(1, 1000)?))
            .and_then(|seconds| seconds.nanos());
        if nanos.is_none() {
            self.findings.note(at, written, "it is not a number of milliseconds: it is left out");
        }
        nanos
    }

    /// A rate of requests.
    fn throughput(&mut self, node: &Node<'_>) {
        let at = node.at();
        let written = node.value("throughput").unwrap_or_default();
        let per_minute = Ratio::decimal(self.variables.expanded(written.trim()).trim());
        let mode = node.value("calcMode").unwrap_or_default();
        match per_minute.filter(|rate| !rate.is_zero()) {
            Some(rate) if self.throughput.is_none() => {
                let becomes = "a rate of requests for the whole run: each starts at its time, and users \
                               are as many as are \
                               needed";
                self.findings.note(at.as_str(), "ConstantThroughputTimer", becomes);
                // The first of its modes counts for each thread by itself.
                self.throughput = Some((rate, ["0", "", "this thread only"].contains(&mode.trim()), at));
            }
            Some(_) => self.findings.note(
                at,
                "ConstantThroughputTimer",
                "a run has one rate: this further one is left out",
            ),
            None => self.findings.note(at, &written, "it is not a rate: it is left out"),
        }
    }
}

/// The arguments of a sampler or of defaults.
pub(super) fn arguments(element: &Element) -> &[Element] {
    inner(element, "HTTPsampler.Arguments").map_or(&[], |arguments| items(arguments, "Arguments.arguments"))
}
