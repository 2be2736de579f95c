//! Descriptions of failures, in words.

use plimsoll_core::redaction::is_secret_header;

use super::budget::{Budget, Excess};
use super::place::{Exchange, Parsed, Place};
use super::take::Take;
use super::{
    CheckSpec, ExtractSpec, Failure, JUDGE, Matching, ResponseHandler, STATUS, Source, StatusRange, UNTIL,
};
use crate::pattern::Pattern;
use crate::{Conversion, Received, SentRequest, cookie::CookieJar, first_line};

/// Half of the maximum number of characters of a description.
const LONGEST: usize = 200;
/// Characters of one text in it, at most.
const LONGEST_PART: usize = 70;

impl ResponseHandler {
    /// Describes a failure in words, for the first example of an error: the expectation and, of the response,
    /// the status alone. If the status is what failed, the first line of the body follows; a
    /// [judge](crate::Judge) describes its own failures. At most 400 characters.
    pub fn describe(&self, failure: Failure, received: &Received<'_>) -> String {
        let what = usize::from(failure.what);
        let checks = self.spec.checks.len();
        let text = if let (JUDGE, Some(judge)) = (failure.what, &self.spec.judge) {
            judge.judge.describe(received)
        } else if failure.what == STATUS {
            let text = format!("status {}, expected {}", received.status, expected(&self.spec.statuses));
            // The words of the server, if it sent some and they were kept.
            match first_line(received.body) {
                said if said.is_empty() => text,
                said => format!("{text}: {said}"),
            }
        } else if let Some(excess) = self.excess(failure.what, received) {
            excess
        } else if let Some(check) = self.spec.checks.get(what - 1) {
            let is_there = self.is_there(what, received);
            if check.source == Source::Status && check.matching != Matching::Exists {
                format!("status {} {}", received.status, comparison(check))
            } else {
                checked(check, is_there)
            }
        } else if let Some(take) = self.spec.extract.get(what - 1 - checks) {
            taken(take, self.is_there(what, received))
        } else if let Some(collect) = self.spec.collect.get(what - 1 - checks - self.spec.extract.len()) {
            match collect.each.as_str() {
                "" => "it is not an array, or an element lacks a value".to_owned(),
                each => format!("no array at {}, or an element lacks a value", quoted(each)),
            }
        } else {
            String::new()
        };
        clipped(&text, 2 * LONGEST)
    }

    /// Reports whether the value that was looked for is in the response; `None` if the response cannot show
    /// it.
    fn is_there(&self, what: usize, received: &Received<'_>) -> Option<bool> {
        let (place, _, source) = self.looked_for(what)?;
        if matches!(source, Source::RequestHeader(_) | Source::RequestJsonPointer(_) | Source::Cookie(_)) {
            return None;
        }
        Some(self.search(place, None, received).is_ok())
    }

    /// The bound that the body exceeds for the search that failed.
    fn excess(&self, what: u16, received: &Received<'_>) -> Option<String> {
        let until = self.spec.poll.iter().flat_map(|poll| &poll.until).map(|check| &check.source);
        let mut looked_for = self.until.iter().zip(until);
        let (source, excess) = if what == UNTIL {
            looked_for.find_map(|(check, source)| {
                Some((source, self.search(&check.place, check.pattern(), received).err()??))
            })?
        } else {
            let (place, pattern, source) = self.looked_for(what.into())?;
            (source, self.search(place, pattern, received).err()??)
        };
        Some(format!("{}: {excess}", noun(source)))
    }

    /// The place of the check or of the value with this number, and the regular expression that is looked for
    /// there.
    fn looked_for(&self, what: usize) -> Option<(&Place, Option<&Pattern>, &Source)> {
        match self.checks.get(what - 1) {
            Some(check) => Some((&check.place, check.pattern(), &self.spec.checks.get(what - 1)?.source)),
            None => {
                let number = what - 1 - self.checks.len();
                let Take { place, pattern, .. } = self.takes.get(number)?;
                Some((place, pattern.as_ref(), &self.spec.extract.get(number)?.source))
            }
        }
    }

    /// Looks for a value once more. The error is the bound that the search has exceeded, if that is why there
    /// is none.
    fn search(
        &self,
        place: &Place,
        pattern: Option<&Pattern>,
        received: &Received<'_>,
    ) -> Result<(), Option<Excess>> {
        let (sent, cookies, budget) = (SentRequest::default(), CookieJar::default(), Budget::default());
        let (mut parsed, stream) = (Parsed::new(&budget), self.spec.stream);
        let mut exchange = Exchange { received, sent: &sent, cookies: &cookies, parsed: &mut parsed, stream };
        let fits = |value: &[u8]| pattern.is_none_or(|pattern| budget.is_match(pattern, value));
        let is_there = place.any(&mut exchange, &mut Vec::new(), fits);
        // What makes no match may be that the search was given up.
        if is_there { Ok(()) } else { Err(budget.excess()) }
    }
}

/// Accepted statuses.
fn expected(statuses: &[StatusRange]) -> String {
    if statuses.is_empty() {
        return "below 400".to_owned();
    }
    let one = |range: &StatusRange| match range {
        StatusRange { first, last } if first == last => first.to_string(),
        StatusRange { first, last } => format!("{first}-{last}"),
    };
    statuses.iter().map(one).collect::<Vec<_>>().join(" or ")
}

fn checked(check: &CheckSpec, is_there: Option<bool>) -> String {
    if is_there == Some(false) && !check.negated {
        return missing(&check.source);
    }
    format!("{} {}", noun(&check.source), comparison(check))
}

/// Describes how the text compares, contrary to what was expected.
fn comparison(check: &CheckSpec) -> String {
    let hidden = match &check.source {
        Source::Header(name) | Source::RequestHeader(name) => {
            is_secret_header(name) || name.eq_ignore_ascii_case("set-cookie")
        }
        Source::Cookie(_) => true,
        _ => false,
    };
    let (yes, no, text) = match &check.matching {
        Matching::Exists => return if check.negated { "is there" } else { "is missing" }.to_owned(),
        Matching::Equals(text) => ("is", "is not", text),
        Matching::Starts(text) => ("starts with", "does not start with", text),
        Matching::Ends(text) => ("ends with", "does not end with", text),
        Matching::Contains(text) => ("contains", "does not contain", text),
        Matching::Regex(text) => ("matches", "does not match", text),
    };
    let verb = if check.negated { yes } else { no };
    if hidden { format!("{verb} the value in the plan") } else { format!("{verb} {}", quoted(text)) }
}

fn taken(take: &ExtractSpec, is_there: Option<bool>) -> String {
    let noun = noun(&take.source);
    match (is_there, &take.regex) {
        (Some(false), _) => missing(&take.source),
        (_, Some(regex)) => format!("{noun} has no value by {}", quoted(regex)),
        (_, None) if take.form == Conversion::Path => format!("{noun} is not a path"),
        (_, None) if take.form == Conversion::Url => format!("{noun} is not a URL"),
        (Some(true), None) => format!("{noun} is empty"),
        (None, None) => format!("{noun} is missing or empty"),
    }
}

fn missing(source: &Source) -> String {
    match source {
        Source::JsonPointer(path) | Source::JsonPath(path) | Source::XPath(path) => {
            format!("no value at {}", quoted(path))
        }
        Source::Event { pick, of } if **of != Source::Body => format!("{} in {pick}", missing(of)),
        other => format!("{} is missing", noun(other)),
    }
}

fn noun(source: &Source) -> String {
    match source {
        Source::Status => "status".to_owned(),
        Source::Header(name) => format!("header {}", quoted(&name.to_ascii_lowercase())),
        Source::RequestHeader(name) => format!("request header {}", quoted(&name.to_ascii_lowercase())),
        Source::RequestUrl => "URL of the request".to_owned(),
        Source::Cookie(name) => format!("cookie {}", quoted(name)),
        Source::Body => "body".to_owned(),
        Source::JsonPointer(path) | Source::JsonPath(path) | Source::XPath(path) => {
            format!("value at {}", quoted(path))
        }
        Source::RequestJsonPointer(path) => format!("value at {} of the request", quoted(path)),
        Source::Event { pick, of } if **of == Source::Body => pick.to_string(),
        Source::Event { pick, of } => format!("{} in {pick}", noun(of)),
    }
}

fn quoted(text: &str) -> String {
    format!("`{}`", clipped(&text.escape_debug().to_string(), LONGEST_PART))
}

/// At most `longest` characters, the last of them `…` if there were more.
fn clipped(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest - 1).chain(['…']).collect()
}
