//! Expectations on responses.

use plimsoll_document::{EventExpectSpec, ExpectSpec, Field, MatchSpec, Place, Problem, Text};
use plimsoll_scenario::{CheckSpec, EventPick, Matching, ReactionSpec, ResponseHandler, Source, StatusRange};

use super::Compiler;
use super::known::Known;
use super::scenario::Part;

/// Statuses that a response can end with: those below 200 are interim (RFC 9110 section 15.2).
const STATUSES: std::ops::RangeInclusive<u16> = 200..=599;

/// Meaning of a plain text in an expectation.
#[derive(Clone, Copy)]
enum Plain {
    Equal,
    Contained,
}

/// An expectation: where the text is (`None` if that is no place in JSON), the place in the plan, what is
/// expected, and the meaning of a plain text.
type Expected<'s> = (Option<Source>, Place, &'s Field<MatchSpec>, Plain);

impl Compiler<'_, '_> {
    /// Compiles the expectations of a step, without its extractions.
    pub(super) fn expectations(
        &mut self,
        field: &Field<ExpectSpec>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<ReactionSpec> {
        let mut handler = ReactionSpec::default();
        if field.is_absent() {
            return Some(handler);
        }
        let spec = field.get()?;
        let mut complete = Some(());
        for status in &spec.status {
            match self.read(status, parse_statuses) {
                Some(range) => handler.statuses.extend(range),
                None => complete = None,
            }
        }
        let headers = spec.headers.0.iter().map(|(name, place, field)| match name.0.as_str() {
            ":status" => (Some(Source::Status), *place, field, Plain::Equal),
            name => (Some(Source::Header(name.to_ascii_lowercase())), *place, field, Plain::Equal),
        });
        let bodies = spec
            .body
            .iter()
            .map(|field| (Some(Source::Body), field.place().unwrap_or_default(), field, Plain::Contained));
        let values =
            spec.json.0.iter().map(|(at, place, field)| (json_source(&at.0), *place, field, Plain::Equal));
        let all: Vec<Expected<'_>> = headers.chain(bodies).chain(values).collect();
        complete = complete.and(self.checks(all, &mut handler, part, known));
        for (name, place, field) in &spec.events.0 {
            complete = complete.and(self.event_checks(name, *place, field, &mut handler, part, known));
        }
        complete.map(|()| handler)
    }

    /// Adds the expectations on one event of a stream.
    fn event_checks(
        &mut self,
        name: &Text,
        place: Place,
        field: &Field<EventExpectSpec>,
        handler: &mut ReactionSpec,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<()> {
        let pick = match name.0.parse::<EventPick>() {
            Ok(pick) => pick,
            Err(message) => return self.fail(Some(place), Problem::new(message)),
        };
        let spec = field.get()?;
        let event = |source: Source| Source::Event { pick, of: Box::new(source) };
        let data = spec.data.iter().map(|field| {
            (Some(event(Source::Body)), field.place().unwrap_or_default(), field, Plain::Contained)
        });
        let values = spec.json.0.iter();
        let values =
            values.map(|(at, place, field)| (json_source(&at.0).map(event), *place, field, Plain::Equal));
        self.checks(data.chain(values).collect(), handler, part, known)
    }

    /// Adds a check for each of these expectations. Returns `None` if one of them is wrong.
    fn checks(
        &mut self,
        all: Vec<Expected<'_>>,
        handler: &mut ReactionSpec,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<()> {
        let mut complete = Some(());
        for (source, place, field, plain) in all {
            let check = match source {
                Some(source) => self.check(source, Some(place), field, plain, part, known),
                None => self.fail(Some(place), not_a_json_place()),
            };
            match check {
                Some(check) => handler.checks.push(check),
                None => complete = None,
            }
        }
        complete
    }

    fn check(
        &mut self,
        source: Source,
        place: Option<Place>,
        field: &Field<MatchSpec>,
        plain: Plain,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<CheckSpec> {
        let spec = field.get()?;
        type Make = fn(String) -> Matching;
        let texts: [(&Field<Text>, Make); 6] = [
            (
                &spec.plain,
                match plain {
                    Plain::Equal => Matching::Equals,
                    Plain::Contained => Matching::Contains,
                },
            ),
            (&spec.equals, Matching::Equals),
            (&spec.starts, Matching::Starts),
            (&spec.ends, Matching::Ends),
            (&spec.contains, Matching::Contains),
            (&spec.regex, Matching::Regex),
        ];
        let given: Vec<_> = texts.into_iter().filter(|(field, _)| !field.is_absent()).collect();
        if given.len() + usize::from(!spec.exists.is_absent()) != 1 {
            let problem = Problem::new(
                "a match is exactly one of `equals`, `starts`, `ends`, `contains`, `regex`, `exists`",
            );
            return self
                .form(field.place().or(place), problem.with_hint("write a text, or `{starts: text}`"));
        }
        let negated = spec.not.get().copied().unwrap_or(false);
        let mut regex_place = None;
        let (matching, negated) = match given.first() {
            None => (Matching::Exists, negated == *spec.exists.get()?),
            Some((text, make)) => {
                let matching = make(text.get()?.0.clone());
                let matching = match matching {
                    Matching::Regex(regex) => {
                        regex_place = text.place();
                        Matching::Regex(regex)
                    }
                    _ => make(self.compared(text, part, known)?),
                };
                (matching, negated)
            }
        };
        let mut attempt = |check: CheckSpec, place| {
            self.try_handler(ReactionSpec { checks: vec![check], ..ReactionSpec::default() }, place)
        };
        let check = CheckSpec { source, matching, negated };
        // Problems are shown at the expression itself.
        attempt(CheckSpec { matching: Matching::Exists, ..check.clone() }, place)?;
        attempt(check.clone(), regex_place.or(place))?;
        Some(check)
    }

    /// A text that is compared: a template without secrets, which a failed check would show.
    fn compared(&mut self, field: &Field<Text>, part: &mut Part<'_>, known: &Known) -> Option<String> {
        let text = self.text(field)?;
        self.without_secrets(&text, field.place(), "an expectation")?;
        self.template(&text, field.place(), part, known)?;
        Some(text)
    }

    /// Compiles a part of a reaction alone, so that a problem is reported at its place.
    pub(super) fn try_handler(&mut self, spec: ReactionSpec, place: Option<Place>) -> Option<()> {
        match ResponseHandler::compile(&spec, &self.scope(&self.variables, &self.constants)) {
            Ok(_) => Some(()),
            Err(error) => self.fail_template(place, &error),
        }
    }
}

/// A JSON Pointer is empty or begins with `/`, a JSONPath with `$`.
pub(super) fn json_source(text: &str) -> Option<Source> {
    match text.chars().next() {
        None | Some('/') => Some(Source::JsonPointer(text.to_owned())),
        Some('$') => Some(Source::JsonPath(text.to_owned())),
        Some(_) => None,
    }
}

pub(super) fn not_a_json_place() -> Problem {
    Problem::new("not a place in JSON").with_hint("write a JSON Pointer, `/name`, or a JSONPath, `$.name`")
}

/// `200`, `2xx` or `200-204`.
fn parse_statuses(text: &str) -> Result<StatusRange, String> {
    let wrong = || format!("`{text}` is not a status: write 200, 2xx or 200-204");
    let number = |text: &str| text.trim().parse::<u16>().map_err(|_| wrong());
    let lower = text.to_ascii_lowercase();
    let (first, last) = match (lower.strip_suffix("xx"), text.split_once('-')) {
        (Some(class), _) if class.len() == 1 => {
            let class = number(class)?;
            (class * 100, class * 100 + 99)
        }
        (_, Some((first, last))) => (number(first)?, number(last)?),
        _ => (number(text)?, number(text)?),
    };
    if first > last {
        return Err(format!("`{text}` has no status in it: write {last}-{first}"));
    }
    if !(STATUSES.contains(&first) && STATUSES.contains(&last)) {
        return Err(format!("no response ends with the status `{text}`: write one from 200 to 599"));
    }
    Ok(StatusRange { first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses() {
        let parsed = |text| parse_statuses(text).map(|range| (range.first, range.last)).ok();
        for (text, expected) in [
            ("200", Some((200, 200))),
            ("2xx", Some((200, 299))),
            ("4XX", Some((400, 499))),
            ("200-204", Some((200, 204))),
            ("200 - 204", Some((200, 204))),
            ("204-200", None),
            ("99", None),
            ("1xx", None),
            ("600", None),
            ("20x", None),
            ("22xx", None),
            ("", None),
            ("ok", None),
            ("-1", None),
            ("99999", None),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn places_in_json() {
        assert_eq!(json_source("/a/0"), Some(Source::JsonPointer("/a/0".to_owned())));
        assert_eq!(json_source(""), Some(Source::JsonPointer(String::new())));
        assert_eq!(json_source("$.a"), Some(Source::JsonPath("$.a".to_owned())));
        assert_eq!(json_source("a"), None);
    }
}
