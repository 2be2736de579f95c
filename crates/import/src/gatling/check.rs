//! Checks of responses, and the values that they save.

use plimsoll_document::{ExtractSpec, Field, MatchSpec, StepSpec};

use super::Importer;
use super::steps::{Operation, operations};
use super::tree::{Expression, Span};
use crate::amount;
use crate::draft::text;
use crate::flow::Writing;
use crate::flow::check::{self, Place};

/// Words that change nothing about a check here: the first value, of any type, with a name for reports.
const NEUTRAL: [&str; 15] = [
    "find",
    "ofString",
    "ofInt",
    "ofLong",
    "ofDouble",
    "ofBoolean",
    "ofType",
    "name",
    "silent",
    "withCharset",
    "ofObject",
    "ofList",
    "ofMap",
    "as",
    "any",
];

/// The thing that a check looks at.
enum Subject {
    Status,
    Time,
    /// A place whose value is compared as a whole.
    Value(Place),
    /// A text that is looked for in the body.
    Substring(String),
    /// A regular expression, applied to a header or to the body.
    Regex(Option<String>, String),
}

/// The condition of a check.
enum Asked {
    Is(String),
    Not(String),
    In(Vec<String>),
    Exists,
    Absent,
    /// A limit, and `true` if it may be reached.
    Below(String, bool),
    Other,
}

impl Importer<'_> {
    /// Puts checks into a step; later ones on the status take the place of earlier ones.
    pub(super) fn checks(&mut self, checks: &[Expression], step: &mut StepSpec, scenario: &str, name: &str) {
        let mut all = Vec::new();
        for given in checks {
            match self.items(given) {
                Some(items) => all.extend(items),
                None => all.push(given.clone()),
            }
        }
        for given in &all {
            let resolved = self.resolved(given);
            match resolved.chain() {
                Some((head, links)) => {
                    let operations = operations(head, resolved.span, links);
                    self.check(&operations, given.span, step, scenario, name);
                }
                None => self.note(given.span, "plans have no such check: it is left out"),
            }
        }
    }

    fn check(
        &mut self,
        operations: &[Operation],
        span: Span,
        step: &mut StepSpec,
        scenario: &str,
        name: &str,
    ) {
        let Some((first, rest)) = operations.split_first() else { return };
        let Some(subject) = self.subject(first, span) else { return };
        let (mut asked, mut saved, mut default) = (Vec::new(), None, None);
        for operation in rest {
            let given = operation.first().to_vec();
            let mut texts = Vec::new();
            for one in &given {
                let items = self.items(one).unwrap_or_else(|| vec![one.clone()]);
                for item in &items {
                    texts.push(self.text_of(item));
                }
            }
            let known: Option<Vec<String>> = texts.into_iter().collect();
            let one = known.as_ref().and_then(|known| known.first().cloned());
            match operation.name.as_str() {
                "saveAs" => match one {
                    Some(name) => saved = Some(name),
                    None => self.note(operation.span, "its name is not known before the run: it is left out"),
                },
                "optional" | "dontValidate" => default = Some(String::new()),
                "withDefault" => match one.filter(|one| !one.contains(['#', '$'])) {
                    Some(one) => default = Some(one),
                    None => {
                        default = Some(String::new());
                        let becomes = "the default is not known before the run: it is empty";
                        self.note(operation.span, becomes);
                    }
                },
                "exists" | "notNull" => asked.push(Asked::Exists),
                "notExists" => asked.push(Asked::Absent),
                "is" | "isEL" | "shouldBe" => asked.push(one.map_or(Asked::Other, Asked::Is)),
                "not" | "notEL" => asked.push(one.map_or(Asked::Other, Asked::Not)),
                "in" | "within" => {
                    asked.push(known.filter(|known| !known.is_empty()).map_or(Asked::Other, Asked::In));
                }
                "lt" | "lessThan" => asked.push(one.map_or(Asked::Other, |one| Asked::Below(one, false))),
                "lte" | "lessThanOrEqual" => {
                    asked.push(one.map_or(Asked::Other, |one| Asked::Below(one, true)));
                }
                "find" if !["", "0"].contains(&one.as_deref().unwrap_or_default()) => {
                    let becomes = "plans take the first value: this one is left out";
                    self.note(span, becomes);
                    return;
                }
                name if NEUTRAL.contains(&name) => {}
                _ => {
                    let becomes = "plans have no such part of a check: the check is left out";
                    self.note(span, becomes);
                    return;
                }
            }
        }
        if asked.is_empty() && saved.is_none() && default.is_none() {
            asked.push(Asked::Exists);
        }
        for asked in asked {
            self.expect(&subject, asked, span, step, scenario, name);
        }
        if let Some(saved) = saved {
            self.save(&subject, &saved, default, span, step);
        }
    }

    /// The beginning of a check; `None`, with a note, if plans look at no such thing.
    fn subject(&mut self, first: &Operation, span: Span) -> Option<Subject> {
        let given = first.first().to_vec();
        let mut texts = Vec::new();
        for one in &given {
            texts.push(self.text_of(one));
        }
        let one = texts.first().cloned().flatten();
        let subject = match first.name.as_str() {
            "status" => Some(Subject::Status),
            "responseTimeInMillis" => Some(Subject::Time),
            "bodyString" | "bodyBytes" => Some(Subject::Value(Place::Body)),
            "header" => one.map(|name| Subject::Value(Place::Header(name.to_ascii_lowercase()))),
            "jsonPath" => {
                one.as_deref().and_then(check::json_path).map(|path| Subject::Value(Place::Json(path)))
            }
            "jmesPath" => one.as_deref().and_then(jmes_path).map(|path| Subject::Value(Place::Json(path))),
            "xpath" => one.filter(|path| !path.contains("#{")).map(|path| Subject::Value(Place::Xpath(path))),
            "substring" => one.map(Subject::Substring),
            "regex" => one
                .filter(|expression| check::is_regex(expression))
                .map(|expression| Subject::Regex(None, expression)),
            "headerRegex" => match (one, texts.get(1).cloned().flatten()) {
                (Some(name), Some(expression)) if check::is_regex(&expression) => {
                    Some(Subject::Regex(Some(name.to_ascii_lowercase()), expression))
                }
                _ => None,
            },
            "css" => {
                let becomes = "plans have no CSS selectors: use `regex` or `xpath`; it is left out";
                self.note(span, becomes);
                return None;
            }
            _ => None,
        };
        if subject.is_none() {
            self.note(span, "plans have no such check: it is left out");
        }
        subject
    }

    fn expect(
        &mut self,
        subject: &Subject,
        asked: Asked,
        span: Span,
        step: &mut StepSpec,
        scenario: &str,
        name: &str,
    ) {
        let at = self.at(span);
        let said = self.said(span);
        match (subject, asked) {
            (Subject::Status, Asked::Is(status)) => self.expect_status(step, &[status], &at, &said),
            (Subject::Status, Asked::In(statuses)) => self.expect_status(step, &statuses, &at, &said),
            (Subject::Status, Asked::Not(status)) if status.trim().parse::<u16>().is_ok() => {
                let status = status.trim().parse().unwrap_or_default();
                self.expect_status(step, &check::other_than(status), &at, &said);
            }
            (Subject::Status, Asked::Exists) => {}
            (Subject::Time, Asked::Below(limit, reaches)) => {
                match limit.trim().parse::<u64>().ok().and_then(|limit| limit.checked_mul(1_000_000)) {
                    Some(nanos) => {
                        let mut threshold = check::slowest(scenario, name, nanos);
                        if reaches {
                            threshold.that = text(format!("max<={}", amount::time(nanos)));
                        }
                        self.thresholds.push(threshold);
                    }
                    None => self.note(span, "its limit is not known before the run: it is left out"),
                }
            }
            (Subject::Value(place), asked) if !matches!(place, Place::Xpath(_)) => {
                match self.comparison(asked, span) {
                    Some(spec) => check::expect(step, place, spec, &at, &said, &mut self.findings),
                    None => self.note(span, "plans have no such comparison: it is left out"),
                }
            }
            (Subject::Substring(wanted), Asked::Exists) => {
                let spec = check::contains(self.written(wanted, Writing::Plain, span));
                check::expect(step, &Place::Body, spec, &at, &said, &mut self.findings);
            }
            (Subject::Substring(wanted), Asked::Absent) => {
                let spec = check::turned(check::contains(self.written(wanted, Writing::Plain, span)));
                check::expect(step, &Place::Body, spec, &at, &said, &mut self.findings);
            }
            (Subject::Regex(header, expression), asked @ (Asked::Exists | Asked::Absent))
                if !expression.contains("#{") =>
            {
                let spec = check::matches(expression.clone());
                let spec = if matches!(asked, Asked::Absent) { check::turned(spec) } else { spec };
                let place = header.clone().map_or(Place::Body, Place::Header);
                check::expect(step, &place, spec, &at, &said, &mut self.findings);
            }
            // The value that a group takes: the group is written out in the expression.
            (Subject::Regex(header, expression), Asked::Is(value))
                if !value.contains("#{") && !expression.contains("#{") =>
            {
                match with_group(expression, &value) {
                    Some(expression) => {
                        let place = header.clone().map_or(Place::Body, Place::Header);
                        let spec = check::matches(expression);
                        check::expect(step, &place, spec, &at, &said, &mut self.findings);
                    }
                    None => self.note(span, "plans have no such comparison: it is left out"),
                }
            }
            _ => self.note(span, "plans have no such comparison: it is left out"),
        }
    }

    /// Accepted statuses; those of a request take the place of those of the protocol.
    fn expect_status(&mut self, step: &mut StepSpec, statuses: &[String], at: &str, said: &str) {
        let statuses: Vec<String> = statuses.iter().map(|status| status.trim().to_owned()).collect();
        check::expect_status(step, &statuses, at, said, &mut self.findings);
    }

    fn comparison(&mut self, asked: Asked, span: Span) -> Option<MatchSpec> {
        Some(match asked {
            Asked::Is(value) => check::equals(self.written(&value, Writing::Plain, span)),
            Asked::Not(value) => check::turned(check::equals(self.written(&value, Writing::Plain, span))),
            Asked::In(values) => {
                if values.iter().any(|value| value.contains("#{")) {
                    return None;
                }
                let any: Vec<String> = values.iter().map(|value| regex::escape(value)).collect();
                check::matches(format!("^(?:{})$", any.join("|")))
            }
            Asked::Exists => check::exists(),
            Asked::Absent => check::turned(check::exists()),
            Asked::Below(..) | Asked::Other => return None,
        })
    }

    fn save(
        &mut self,
        subject: &Subject,
        saved: &str,
        default: Option<String>,
        span: Span,
        step: &mut StepSpec,
    ) {
        let mut spec = match subject {
            Subject::Status => check::extract(&Place::Status),
            Subject::Value(place) => check::extract(place),
            Subject::Regex(header, expression) if !expression.contains("#{") => {
                let mut spec = match header {
                    Some(name) => check::extract(&Place::Header(name.clone())),
                    None => ExtractSpec::default(),
                };
                spec.regex = text(expression.as_str());
                spec
            }
            Subject::Regex(..) | Subject::Substring(_) | Subject::Time => {
                self.note(span, "plans take no such value: it is left out");
                return;
            }
        };
        let name = self.variables.name(saved);
        if let Some(default) = default {
            if default.is_empty() {
                self.optional.insert(name.clone());
            }
            spec.default = text(default);
        }
        if step.extract.0.iter().any(|(known, ..)| known.as_str() == name) {
            self.note(span, "the variable is taken already: the first value is");
            return;
        }
        step.extract.push(name, Field::new(spec));
    }
}

/// A path of JMESPath that has names and numbers of elements only, as a JSONPath.
fn jmes_path(path: &str) -> Option<String> {
    let is_plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "_.[]".contains(c));
    if is_plain { check::json_path(path) } else { None }
}

/// The expression with this text in the place of its only group; `None` if it has no such group.
fn with_group(expression: &str, value: &str) -> Option<String> {
    let open = expression.find('(');
    let value = regex::escape(value);
    let only = match open {
        None => format!("^{value}$"),
        Some(open) => {
            let close = open + expression[open..].find(')')?;
            let (before, behind) = (&expression[..open], &expression[close + 1..]);
            let is_simple = !behind.contains('(')
                && !before.contains(['\\', '['])
                && !expression[open + 1..close].contains(['(', '\\', '?'])
                && !behind.starts_with(['*', '+', '?', '{']);
            if !is_simple {
                return None;
            }
            format!("{before}{value}{behind}")
        }
    };
    (open.is_some() && check::is_regex(&only)).then_some(only)
}
