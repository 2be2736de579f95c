//! Assertions and extractors.

use plimsoll_document::{ExtractSpec, Field, MatchSpec, StepSpec};

use super::Importer;
use super::tree::{items, value};
use crate::amount::Ratio;
use crate::draft::text;
use crate::flow::check::{self, Place};
use crate::xml::Element;

/// Bits of the kind of a response assertion.
const MATCHES: u32 = 1;
const CONTAINS: u32 = 2;
const NOT: u32 = 4;
const EQUALS: u32 = 8;
const SUBSTRING: u32 = 16;
const ANY: u32 = 32;

impl Importer<'_> {
    /// Puts an assertion or an extractor into a step.
    pub(super) fn check(
        &mut self,
        element: &Element,
        at: &str,
        scenario: &str,
        name: &str,
        step: &mut StepSpec,
    ) {
        let kind = element.attribute("testclass").unwrap_or(&element.name);
        let kind = kind.rsplit('.').next().unwrap_or(kind);
        match kind {
            "ResponseAssertion" => self.response_assertion(element, at, step),
            "JSONPathAssertion" => self.json_assertion(element, at, step),
            "DurationAssertion" => self.duration_assertion(element, at, scenario, name),
            "RegexExtractor" => self.regex_extractor(element, at, step),
            "JSONPostProcessor" => self.json_extractor(element, at, step),
            "BoundaryExtractor" => self.boundary_extractor(element, at, step),
            "XPathExtractor" | "XPath2Extractor" => self.xpath_extractor(element, kind, at, step),
            kind => {
                let becomes = "plans have no such check: it is left out";
                self.findings.note(at, kind, becomes);
            }
        }
    }

    fn response_assertion(&mut self, element: &Element, at: &str, step: &mut StepSpec) {
        let field = value(element, "Assertion.test_field").unwrap_or_default();
        let kind: u32 = value(element, "Assertion.test_type")
            .and_then(|kind| kind.trim().parse().ok())
            .unwrap_or(CONTAINS);
        // The name of the list has a letter too few in all versions of JMeter.
        let mut strings = items(element, "Asserion.test_strings");
        if strings.is_empty() {
            strings = items(element, "Assertion.test_strings");
        }
        let strings: Vec<String> = strings.iter().map(|item| item.text.clone()).collect();
        let assumes = value(element, "Assertion.assume_success").is_some_and(|flag| flag.trim() == "true");
        if assumes && field.trim() != "Assertion.response_code" {
            check::expect_status(step, &["200-599".to_owned()], at, "assume_success", &mut self.findings);
        }
        if strings.is_empty() {
            return;
        }
        self.written += strings.iter().map(|string| 1 + string.len() / 16).sum::<usize>();
        let scope = value(element, "Assertion.scope").unwrap_or_default();
        if scope.trim() == "variable" {
            self.findings.note(
                at,
                "Assertion.scope: variable",
                "only responses are looked at: it is left out",
            );
            return;
        }
        match field.trim() {
            "Assertion.response_code" => self.expect_codes(&strings, kind, assumes, at, step),
            "Assertion.response_data" | "Assertion.response_data_as_document" => {
                for spec in self.comparisons(&strings, kind, at) {
                    check::expect(step, &Place::Body, spec, at, "", &mut self.findings);
                }
            }
            "Assertion.response_headers" => self.expect_headers(&strings, kind, at, step),
            other => {
                let becomes = "plans expect statuses, fields of the head and bodies: it is left out";
                self.findings.note(at, other, becomes);
            }
        }
    }

    fn expect_codes(&mut self, strings: &[String], kind: u32, assumes: bool, at: &str, step: &mut StepSpec) {
        let said = strings.join(", ");
        let is_regex = kind & (MATCHES | CONTAINS) != 0;
        let statuses: Option<Vec<Vec<String>>> =
            strings.iter().map(|string| statuses_of(string.trim(), is_regex)).collect();
        let Some(statuses) = statuses else {
            self.findings.note(at, &said, "it is not a list of statuses: it is left out");
            return;
        };
        let all: Vec<String> = statuses.concat();
        match (kind & NOT != 0, all.as_slice()) {
            (false, _) if strings.len() > 1 && kind & ANY == 0 => {
                self.findings.note(at, &said, "a response has one status: each of these is accepted");
                check::expect_status(step, &all, at, &said, &mut self.findings);
            }
            (false, _) => {
                check::expect_status(step, &all, at, &said, &mut self.findings);
                if !assumes && all.iter().any(|status| status.starts_with(['4', '5'])) {
                    let becomes = "there, such a status fails anyway, unless it is ignored";
                    self.findings.note(at, &said, becomes);
                }
            }
            (true, [one]) => match one.parse() {
                Ok(status) => {
                    check::expect_status(step, &check::other_than(status), at, &said, &mut self.findings);
                }
                Err(_) => self.findings.note(at, &said, "only one status can be excluded: it is left out"),
            },
            (true, _) => self.findings.note(at, &said, "only one status can be excluded: it is left out"),
        }
    }

    /// Comparisons of a text with each of the strings, or with all together.
    fn comparisons(&mut self, strings: &[String], kind: u32, at: &str) -> Vec<MatchSpec> {
        let turned = |spec| if kind & NOT != 0 { check::turned(spec) } else { spec };
        if kind & ANY != 0 && strings.len() > 1 {
            let each: Vec<String> =
                strings
                    .iter()
                    .map(|string| {
                        if kind & (SUBSTRING | EQUALS) != 0 { regex::escape(string) } else { string.clone() }
                    })
                    .collect();
            let any = format!("(?:{})", each.join("|"));
            let any = if kind & (MATCHES | EQUALS) != 0 { format!("(?s)^{any}$") } else { any };
            if check::is_regex(&any) && !strings.iter().any(|string| string.contains("${")) {
                return vec![turned(check::matches(any))];
            }
            self.findings.note(at, &strings.join(", "), "plans do not take this as a choice: it is left out");
            return Vec::new();
        }
        let mut specs = Vec::new();
        for string in strings {
            let spec = match () {
                () if kind & EQUALS != 0 => check::equals(self.template(string, at)),
                () if kind & SUBSTRING != 0 => check::contains(self.template(string, at)),
                // Plain texts are read better without being expressions.
                () if kind & CONTAINS != 0 && regex::escape(string) == *string => {
                    check::contains(self.template(string, at))
                }
                () => {
                    let expression =
                        if kind & MATCHES != 0 { format!("(?s)^(?:{string})$") } else { string.clone() };
                    if string.contains("${") || !check::is_regex(&expression) {
                        let becomes = "plans do not take this regular expression: it is left out";
                        self.findings.note(at, string, becomes);
                        continue;
                    }
                    check::matches(expression)
                }
            };
            specs.push(turned(spec));
        }
        specs
    }

    /// `Name: value` in the head.
    fn expect_headers(&mut self, strings: &[String], kind: u32, at: &str, step: &mut StepSpec) {
        for string in strings {
            let becomes = "a field of the head is written `Name: value`: it is left out";
            let Some((name, wanted)) = string.split_once(':') else {
                self.findings.note(at, string, becomes);
                continue;
            };
            let (name, wanted) = (name.trim(), wanted.trim());
            let is_plain = kind & (SUBSTRING | EQUALS) != 0 || regex::escape(wanted) == wanted;
            if !crate::draft::is_token(name) || (kind & ANY != 0 && strings.len() > 1) || !is_plain {
                self.findings.note(at, string, becomes);
                continue;
            }
            let spec = check::contains(self.template(wanted, at));
            let spec = if kind & NOT != 0 { check::turned(spec) } else { spec };
            let place = Place::Header(name.to_ascii_lowercase());
            check::expect(step, &place, spec, at, string, &mut self.findings);
        }
    }

    fn json_assertion(&mut self, element: &Element, at: &str, step: &mut StepSpec) {
        let path = value(element, "JSON_PATH").unwrap_or_default();
        let wanted = value(element, "EXPECTED_VALUE").unwrap_or_default();
        let flag = |key: &str| value(element, key).is_some_and(|text| text.trim() == "true");
        let Some(place) = check::json_path(&path).map(Place::Json) else {
            self.findings.note(at, &path, "plans do not take this JSONPath: it is left out");
            return;
        };
        let spec = match () {
            () if flag("EXPECT_NULL") => check::equals("null".to_owned()),
            () if !flag("JSONVALIDATION") => check::exists(),
            // JMeter matches so by default; a plain text is easier to read.
            () if flag("ISREGEX") && regex::escape(&wanted) != wanted => {
                let expression = format!("^(?:{wanted})$");
                if wanted.contains("${") || !check::is_regex(&expression) {
                    self.findings.note(
                        at,
                        &wanted,
                        "plans do not take this regular expression: it is left out",
                    );
                    return;
                }
                check::matches(expression)
            }
            () => check::equals(self.template(&wanted, at)),
        };
        let spec = if flag("INVERT") { check::turned(spec) } else { spec };
        check::expect(step, &place, spec, at, &path, &mut self.findings);
    }

    fn duration_assertion(&mut self, element: &Element, at: &str, scenario: &str, name: &str) {
        let written = value(element, "DurationAssertion.duration").unwrap_or_default();
        let expanded = self.variables.expanded(written.trim());
        let nanos = Ratio::decimal(expanded.trim())
            .and_then(|number| number.times(Ratio::new(1, 1000)?))
            .and_then(|seconds| seconds.nanos())
            .filter(|nanos| *nanos > 0);
        match nanos {
            Some(nanos) => {
                let threshold = check::slowest(scenario, name, nanos);
                if !self.thresholds.contains(&threshold) {
                    self.thresholds.push(threshold);
                }
                let becomes = "it becomes a threshold for the run: a slow response does not fail by itself";
                self.findings.note(at, &written, becomes);
            }
            None => self.findings.note(at, &written, "it is not a number of milliseconds: it is left out"),
        }
    }

    /// Adds a value to extract; as in JMeter, the default keeps the request from failing without one.
    fn take(&mut self, name: &str, mut spec: ExtractSpec, default: &str, at: &str, step: &mut StepSpec) {
        let name = name.trim();
        if name.is_empty() {
            self.findings.note(at, "", "it has no name for the variable: it is left out");
            return;
        }
        spec.default = text(self.template(default, at));
        let ours = self.variables.name(name);
        if step.extract.0.iter().any(|(known, ..)| known.as_str() == ours) {
            self.findings.note(at, name, "the variable is taken already: the first value is");
            return;
        }
        step.extract.push(ours, Field::new(spec));
    }

    /// Which of several matches is taken: plans take the first.
    fn match_number(&mut self, number: &str, at: &str) {
        let number = number.trim();
        if !["", "1"].contains(&number) {
            let becomes = match number {
                "0" => "the first match is taken, and not one that is drawn".to_owned(),
                "-1" => "the first match is taken, and not all of them".to_owned(),
                number => format!("the first match is taken, and not number {number}"),
            };
            self.findings.note(at, "match number", becomes);
        }
    }

    fn regex_extractor(&mut self, element: &Element, at: &str, step: &mut StepSpec) {
        let read = |key: &str| value(element, &format!("RegexExtractor.{key}")).unwrap_or_default();
        let written = read("regex");
        let template = read("template");
        let template = template.trim();
        let group = match template {
            "" => Some(1),
            template => {
                let inside = template.strip_prefix('$').and_then(|rest| rest.strip_suffix('$'));
                inside.and_then(|group| group.parse().ok())
            }
        };
        let Some(expression) =
            group.and_then(|group| check::only_group(&written, group)).filter(|_| !written.contains("${"))
        else {
            let becomes =
                "plans do not take this regular expression with its template: the value is not taken";
            self.findings.note(at, &format!("{written} {template}"), becomes);
            return;
        };
        let mut spec = match read("useHeaders").trim() {
            "" | "false" | "unescaped" | "as_document" => ExtractSpec::default(),
            "code" => check::extract(&Place::Status),
            "true" => {
                // Fields of the head are examined by name, and not as one text.
                let named = expression
                    .split_once(':')
                    .filter(|(name, _)| crate::draft::is_token(name.trim_start_matches('^')));
                let Some((name, rest)) = named.filter(|(_, rest)| check::is_regex(rest.trim_start())) else {
                    let becomes = "a field of the head is written `Name: (.+)`: the value is not taken";
                    self.findings.note(at, &written, becomes);
                    return;
                };
                let mut spec =
                    check::extract(&Place::Header(name.trim_start_matches('^').to_ascii_lowercase()));
                spec.regex = text(rest.trim_start_matches(' ').trim_start_matches("\\s*"));
                self.match_number(&read("match_number"), at);
                self.take(&read("refname"), spec, &read("default"), at, step);
                return;
            }
            other => {
                let becomes = "only bodies, heads and statuses are looked at: the value is not taken";
                self.findings.note(at, other, becomes);
                return;
            }
        };
        spec.regex = text(expression);
        self.match_number(&read("match_number"), at);
        self.take(&read("refname"), spec, &read("default"), at, step);
    }

    fn json_extractor(&mut self, element: &Element, at: &str, step: &mut StepSpec) {
        let read = |key: &str| value(element, &format!("JSONPostProcessor.{key}")).unwrap_or_default();
        let (names, paths) = (read("referenceNames"), read("jsonPathExprs"));
        let (defaults, numbers) = (read("defaultValues"), read("match_numbers"));
        let list = |text: &str| text.split(';').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
        let (defaults, numbers) = (list(&defaults), list(&numbers));
        for (index, (name, path)) in list(&names).into_iter().zip(list(&paths)).enumerate() {
            match check::json_path(&path) {
                Some(path) => {
                    // 0 draws one of several, and most expressions have only one.
                    let number = numbers.get(index).map_or("", String::as_str);
                    let has_several = path.contains(['*', '?', ':']) || path.contains("..");
                    if has_several || number == "-1" {
                        self.match_number(number, at);
                    }
                    let spec = check::extract(&Place::Json(path));
                    let default = defaults.get(index).cloned().unwrap_or_default();
                    self.take(&name, spec, &default, at, step);
                }
                None => {
                    let becomes = "plans do not take this JSONPath: the value is not taken";
                    self.findings.note(at, &path, becomes);
                }
            }
        }
        if list(&names).len() != list(&paths).len() {
            self.findings.note(
                at,
                &names,
                "there are not as many names as expressions: the further ones are left out",
            );
        }
    }

    fn boundary_extractor(&mut self, element: &Element, at: &str, step: &mut StepSpec) {
        let read = |key: &str| value(element, &format!("BoundaryExtractor.{key}")).unwrap_or_default();
        let (left, right) = (read("lboundary"), read("rboundary"));
        if left.contains("${") || right.contains("${") || !["", "false"].contains(&read("useHeaders").trim())
        {
            let becomes = "only fixed boundaries in bodies are looked for: the value is not taken";
            self.findings.note(at, &format!("{left} … {right}"), becomes);
            return;
        }
        let mut spec = ExtractSpec::default();
        let end = if right.is_empty() { "$".to_owned() } else { regex::escape(&right) };
        spec.regex = text(format!("(?s){}(.*?){end}", regex::escape(&left)));
        self.match_number(&read("match_number"), at);
        self.take(&read("refname"), spec, &read("default"), at, step);
    }

    fn xpath_extractor(&mut self, element: &Element, kind: &str, at: &str, step: &mut StepSpec) {
        let read = |key: &str| value(element, &format!("{kind}.{key}")).unwrap_or_default();
        let query = read("xpathQuery");
        if query.contains("${") || query.trim().is_empty() {
            self.findings.note(at, &query, "only fixed expressions are looked for: the value is not taken");
            return;
        }
        if ["tolerant", "namespace"].iter().any(|key| read(key).trim() == "true") {
            let becomes = "bodies have to be XML, and are read with their namespaces";
            self.findings.note(at, kind, becomes);
        }
        self.match_number(read("matchNumber").trim().trim_start_matches("-1"), at);
        self.take(
            &read("refname"),
            check::extract(&Place::Xpath(query.trim().to_owned())),
            &read("default"),
            at,
            step,
        );
    }
}

/// The statuses that a string means: `200`, `200|201`, `2..` or `2\d\d`.
fn statuses_of(string: &str, is_regex: bool) -> Option<Vec<String>> {
    let string = string.strip_prefix('^').unwrap_or(string);
    let string = string.strip_suffix('$').unwrap_or(string);
    let string = string.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(string);
    let one = |text: &str| {
        if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(text.to_owned());
        }
        let (class, rest) = text.split_at_checked(1)?;
        let is_class = is_regex && ["2", "3", "4", "5"].contains(&class);
        let any = ["..", "\\d\\d", "\\d{2}", "[0-9][0-9]", "[0-9]{2}", ".*", ".+", "\\d+"];
        (is_class && any.contains(&rest)).then(|| format!("{class}xx"))
    };
    let parts: Vec<&str> = if is_regex { string.split('|').collect() } else { vec![string] };
    parts.into_iter().map(|part| one(part.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_for_statuses() {
        for (string, is_regex, statuses) in [
            ("200", false, Some(&["200"][..])),
            ("200|201", true, Some(&["200", "201"])),
            ("^(200|2..)$", true, Some(&["200", "2xx"])),
            ("2\\d\\d", true, Some(&["2xx"])),
            ("3[0-9]{2}", true, Some(&["3xx"])),
            ("2..", false, None),
            ("20.", true, None),
            ("", true, None),
            ("é", true, None),
        ] {
            let found = statuses_of(string, is_regex);
            let found = found.as_ref().map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(found.as_deref(), statuses, "{string}");
        }
    }
}
