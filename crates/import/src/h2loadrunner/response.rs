//! Expectations on responses, and extractions from them.

use plimsoll_document::{ExpectSpec, ExtractSpec, Field, Keyed, MatchSpec, StepSpec};
use regex::Regex;

use super::variables::{Binding, Variables};
use super::{Importer, request, scenario};
use crate::draft::{self, text};
use crate::source::Object;

/// Statuses that a response can end with (RFC 9110 section 15; those below are interim).
const STATUSES: std::ops::RangeInclusive<u16> = 200..=599;

/// Statuses that are a success where the file expects none.
const GOOD: [&str; 2] = ["2xx", "3xx"];

/// Comparison of a text with an expected value.
enum Compared<'v> {
    Equal(&'v str),
    Start(&'v str),
    End(&'v str),
    Part(&'v str),
    /// The expression as it was written, for the whole value.
    Whole(&'v str),
}

impl Importer<'_> {
    /// Sets the expectations on a response. A script that judges responses replaces all of them.
    pub(super) fn expectation(&mut self, request: &mut Object<'_>, step: &mut StepSpec, judged: bool) {
        let at = request.place("expected-status-code");
        let status = request.count("expected-status-code", &mut self.findings).unwrap_or(0);
        let matched = request.object("response-match", &mut self.findings).map(|all| self.matches(all));
        if judged {
            return;
        }
        let expect = match matched.flatten() {
            Some(expect) => {
                if status != 0 {
                    let becomes = "`response-match` decides alone: it is left out";
                    self.findings.note(at, &status.to_string(), becomes);
                }
                expect
            }
            None => {
                let mut expect = ExpectSpec::default();
                expect.status = match u16::try_from(status) {
                    Ok(0) => GOOD.map(text).to_vec(),
                    Ok(status) if STATUSES.contains(&status) => vec![text(status.to_string())],
                    _ => {
                        self.findings.problem(&at, format!("`{status}` is not a status"));
                        return;
                    }
                };
                expect
            }
        };
        step.expect = Field::new(expect);
    }

    /// All matches of a request; `None` if there are none.
    fn matches(&mut self, mut all: Object<'_>) -> Option<ExpectSpec> {
        let mut expect = ExpectSpec::default();
        let mut statuses: Option<Vec<u16>> = None;
        let mut any = false;
        for mut rule in all.objects("headers", &mut self.findings) {
            any = true;
            // Keys that are left out have the defaults of its schema.
            let name = rule.text("header-name", &mut self.findings).unwrap_or(":status").trim();
            let compared = self.compared(&mut rule, if name == ":status" { "200" } else { "" });
            rule.rest(&mut self.findings, super::is_comment);
            let Some(compared) = compared else { continue };
            if name == ":status" {
                let known = statuses.unwrap_or_else(|| STATUSES.collect());
                let left = matching(&known, &compared);
                if left.is_empty() {
                    let becomes = "no status from 200 to 599 matches: every request fails, as there";
                    self.findings.note(rule.place("input"), compared.input(), becomes);
                    self.add(&mut expect.headers, name.to_owned(), compared, &rule.at);
                }
                statuses = Some(if left.is_empty() { known } else { left });
            } else if draft::is_token(name) {
                self.add(&mut expect.headers, name.to_ascii_lowercase(), compared, &rule.at);
            } else {
                let hint = "write the name of a field, or :status";
                self.findings.hinted(&rule.at, format!("`{name}` is not a header"), hint);
            }
        }
        for mut rule in all.objects("payload", &mut self.findings) {
            any = true;
            let pointer = rule.text("JsonPointer", &mut self.findings).unwrap_or_default();
            let compared = self.compared(&mut rule, "");
            rule.rest(&mut self.findings, super::is_comment);
            let Some(compared) = compared else { continue };
            if pointer.is_empty() {
                expect.body.push(Field::new(compared.spec()));
            } else {
                self.check_pointer(&rule.place("JsonPointer"), pointer);
                if !matches!(compared, Compared::Whole(_)) && is_of_another_form(compared.input()) {
                    self.findings.note(rule.place("input"), compared.input(), OTHER_FORM);
                }
                self.add(&mut expect.json, pointer.to_owned(), compared, &rule.at);
            }
        }
        all.rest(&mut self.findings, super::is_comment);
        if !any {
            return None;
        }
        // Without a condition on the status, every status will do.
        let statuses = statuses.unwrap_or_else(|| STATUSES.collect());
        expect.status = ranges(&statuses).into_iter().map(text).collect();
        Some(expect)
    }

    fn compared<'v>(&mut self, rule: &mut Object<'v>, default: &'static str) -> Option<Compared<'v>> {
        let input = rule.text("input", &mut self.findings).unwrap_or(default);
        let kind = rule.text("matchType", &mut self.findings).unwrap_or("EqualsTo");
        Some(match kind {
            "EqualsTo" => Compared::Equal(input),
            "StartsWith" => Compared::Start(input),
            "EndsWith" => Compared::End(input),
            "Contains" => Compared::Part(input),
            "RegexMatch" => {
                self.check_regex(&rule.place("input"), input)?;
                Compared::Whole(input)
            }
            other => {
                let hint = "write EqualsTo, StartsWith, EndsWith, Contains or RegexMatch";
                let message = format!("`{other}` is not a kind of match");
                self.findings.hinted(&rule.place("matchType"), message, hint);
                return None;
            }
        })
    }

    /// An expression of ECMAScript that has no meaning here is a problem.
    fn check_regex(&mut self, at: &str, expression: &str) -> Option<()> {
        match Regex::new(expression) {
            Ok(_) => Some(()),
            Err(error) => {
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                let message = format!("the expression `{expression}` cannot be used: {reason}");
                let hint =
                    "expressions are those of the Rust crate regex: without lookaround and backreferences";
                self.findings.hinted(at, message, hint);
                None
            }
        }
    }

    fn check_pointer(&mut self, at: &str, pointer: &str) {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let message = format!("`{pointer}` is not a JSON Pointer");
            self.findings.hinted(at, message, "write it with a `/` in front: /a/0");
        }
    }

    /// Adds a match. A plan file has one for each name.
    fn add(&mut self, matches: &mut Keyed<Field<MatchSpec>>, name: String, compared: Compared<'_>, at: &str) {
        if matches.0.iter().any(|(known, ..)| known.as_str() == name) {
            let becomes = "a second match of the same value cannot be said in a plan file: it is left out";
            self.findings.note(at, &name, becomes);
            return;
        }
        matches.push(name, Field::new(compared.spec()));
    }

    /// Which values the requests of a scenario take, each under its variable, which is known from then on.
    pub(super) fn pickers(
        &mut self,
        requests: &mut [Object<'_>],
        parallel: bool,
        variables: &mut Variables,
    ) -> Vec<Keyed<Field<ExtractSpec>>> {
        let mut all = Vec::with_capacity(requests.len());
        for (position, request) in requests.iter_mut().enumerate() {
            let mut picked: Keyed<Field<ExtractSpec>> = Keyed::default();
            for mut picker in request.objects("value-pickers", &mut self.findings) {
                let name = picker.filled("save-to-variable", &mut self.findings);
                let extract = self.picked(&mut picker);
                picker.rest(&mut self.findings, super::is_comment);
                let Some(name) = name else {
                    self.findings.problem(&picker.at, "`save-to-variable` is missing");
                    continue;
                };
                let variable = pick(variables, name, if parallel { usize::MAX } else { position });
                if picked.0.iter().any(|(known, ..)| known.as_str() == variable) {
                    let message = format!("{} picks `{name}` twice", scenario::number(&request.at));
                    self.findings.problem(&picker.at, message);
                } else if let Some(extract) = extract {
                    picked.push(variable, Field::new(extract));
                }
            }
            all.push(picked);
        }
        all
    }

    fn picked(&mut self, picker: &mut Object<'_>) -> Option<ExtractSpec> {
        let place = picker.text("where-to-pickup-from", &mut self.findings);
        let source = picker.text("source", &mut self.findings).unwrap_or_default();
        let expression = picker.text("regexp", &mut self.findings).unwrap_or(".*");
        let at = picker.place("source");
        let mut extract = ExtractSpec::default();
        match place {
            Some("Response-Header") => match request::header_source(source) {
                Ok(header) => extract = header,
                Err(message) => {
                    self.findings.problem(&at, message);
                    return None;
                }
            },
            Some("Request-Header") => extract.request_header = text(source.trim().to_ascii_lowercase()),
            Some("Json-Pointer-In-Request-Payload") => {
                self.check_pointer(&at, source);
                self.findings.note(at, source, OTHER_FORM);
                extract.request_json = text(source);
            }
            Some("Json-Pointer-In-Response-Payload") => {
                self.check_pointer(&at, source);
                self.findings.note(at, source, OTHER_FORM);
                extract.json = text(source);
            }
            other => {
                let message = match other {
                    Some(other) => format!("`{other}` is not a place to pick from"),
                    None => "`where-to-pickup-from` is missing".to_owned(),
                };
                let hint = "write Response-Header, Request-Header, Json-Pointer-In-Response-Payload or \
                            Json-Pointer-In-Request-Payload";
                self.findings.hinted(&picker.at, message, hint);
                return None;
            }
        }
        if ![".*", ""].contains(&expression) {
            self.check_regex(&picker.place("regexp"), expression)?;
            // h2loadrunner takes the whole match; here it would be the first group.
            let whole =
                if expression.contains('(') { format!("({expression})") } else { expression.to_owned() };
            extract.regex = text(whole);
        }
        Some(extract)
    }
}

/// The variable that the request at `position` picks under this name.
fn pick(variables: &mut Variables, name: &str, position: usize) -> String {
    match variables.named.get(name) {
        Some(Binding::Same(variable) | Binding::PickedBy(_, variable)) => variable.clone(),
        _ => {
            let variable = variables.names.take(name);
            variables.named.insert(name.to_owned(), Binding::PickedBy(position, variable.clone()));
            variable
        }
    }
}

impl Compared<'_> {
    /// Texts to compare with are templates in a plan file.
    fn spec(&self) -> MatchSpec {
        let mut spec = MatchSpec::default();
        match self {
            Self::Equal(input) => spec.equals = draft::literal(input),
            Self::Start(input) => spec.starts = draft::literal(input),
            Self::End(input) => spec.ends = draft::literal(input),
            Self::Part(input) => spec.contains = draft::literal(input),
            Self::Whole(input) => spec.regex = text(whole(input)),
        }
        spec
    }

    fn input(&self) -> &str {
        let (Self::Equal(input)
        | Self::Start(input)
        | Self::End(input)
        | Self::Part(input)
        | Self::Whole(input)) = self;
        input
    }

    fn holds(&self, value: &str) -> bool {
        match self {
            Self::Equal(input) => value == *input,
            Self::Start(input) => value.starts_with(input),
            Self::End(input) => value.ends_with(input),
            Self::Part(input) => value.contains(input),
            Self::Whole(input) => Regex::new(&whole(input)).is_ok_and(|regex| regex.is_match(value)),
        }
    }
}

/// The statuses of `known` that match.
fn matching(known: &[u16], compared: &Compared<'_>) -> Vec<u16> {
    known.iter().copied().filter(|status| compared.holds(&status.to_string())).collect()
}

/// Meaning of values in JSON that are neither texts, booleans nor whole numbers from 0 on.
const OTHER_FORM: &str = "a value in JSON is as the body has it: there, a fraction has six decimals (12.500000), an \
                          object is written anew without blanks, and a list, null or a number below 0 is empty";

/// Returns `true` if a text to compare with a value in JSON looks like one that has another form there.
fn is_of_another_form(input: &str) -> bool {
    let is_number = input.parse::<f64>().is_ok_and(f64::is_finite);
    input.starts_with(['{', '[']) || input == "null" || is_number && input.parse::<u64>().is_err()
}

/// The expression for the whole value instead of any part of it.
fn whole(expression: &str) -> String {
    format!("^(?:{expression})$")
}

/// Statuses in ascending order as a plan file has them: `2xx`, `200-204`, `404`.
fn ranges(statuses: &[u16]) -> Vec<String> {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for &status in statuses {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == status => *last = status,
            _ => runs.push((status, status)),
        }
    }
    let written = |&(first, last): &(u16, u16)| match (first, last) {
        (first, last) if first == last => first.to_string(),
        (first, last) if first % 100 == 0 && last == first + 99 => format!("{}xx", first / 100),
        (first, last) => format!("{first}-{last}"),
    };
    runs.iter().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_written_in_short() {
        let matching = |compared: Compared<'_>| {
            let all: Vec<u16> = STATUSES.collect();
            ranges(&matching(&all, &compared)).join(" ")
        };
        assert_eq!(matching(Compared::Equal("201")), "201");
        assert_eq!(matching(Compared::Start("2")), "2xx");
        assert_eq!(matching(Compared::Start("20")), "200-209");
        assert_eq!(matching(Compared::End("04")), "204 304 404 504");
        assert_eq!(matching(Compared::Part("00")), "200 300 400 500");
        assert_eq!(matching(Compared::Whole("20[0-4]|404")), "200-204 404");
        // The whole value has to match.
        assert_eq!(matching(Compared::Whole("20")), "");
        assert_eq!(matching(Compared::Whole(".*")), "200-599");
    }

    #[test]
    fn values_in_json_that_the_program_writes_otherwise_are_known() {
        for other in ["12.5", "-1", "1e3", "{}", "[1]", "null"] {
            assert!(is_of_another_form(other), "{other}");
        }
        for same in ["", "0", "12", "true", "http", "12.5 EUR", "NaN", "inf"] {
            assert!(!is_of_another_form(same), "{same}");
        }
    }
}
