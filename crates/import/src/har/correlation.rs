//! Correlation: values of a recording that change from session to session.
//!
//! A value that a response gave and that later requests send (a token, the id of something that was created)
//! is extracted from the response and sent as a variable. A value that was sent before any response had it is
//! the client's own and stays. Cookies that responses set are kept by the scenario.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use plimsoll_document::{ExtractSpec, Field, StepSpec, Text};
use regex::Regex;
use serde_json::Value;

use crate::draft::{self, percent_decoded};
use crate::findings::Findings;
use crate::flow::check::{self, Place};
use crate::names::Names;
use crate::source::{Object, below};

/// Least length of a value with a digit that is told from a word or a number that is there by chance.
const LEAST_WITH_DIGIT: usize = 8;
/// Least length of a value without a digit that is told from a word that is there by chance.
const LEAST_WITHOUT_DIGIT: usize = 20;
/// Longest value that is looked for.
const LONGEST: usize = 4096;
/// Longest body of a response that is searched.
const LONGEST_BODY: usize = 2 << 20;
/// Variables at most.
const MOST_VARIABLES: usize = 1_000;
/// Characters that words of a text end with, URLs taken apart.
const WORD_ENDS: [char; 14] = ['"', '\'', '<', '>', ' ', '\n', '\r', '\t', '/', '?', '&', '=', ';', ','];
/// Characters in front of a value that a regular expression begins with, tried in this order.
const CONTEXTS: [usize; 3] = [48, 120, 300];

/// Fields of requests that say how the client is, and not what a server told it.
const OF_THE_CLIENT: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-type",
    "cookie",
    "dnt",
    "origin",
    "pragma",
    "priority",
    "upgrade-insecure-requests",
    "user-agent",
];

/// Fields of responses that later requests do not send back.
const OF_THE_SERVER: &[&str] = &[
    "accept-ranges",
    "age",
    "alt-svc",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "expires",
    "keep-alive",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "vary",
];

/// A response, as far as values are looked for in it.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Place of the response in the recording.
    at: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    body: Option<String>,
}

impl Answer {
    /// Reads the response of an entry; everything that is not there is empty.
    pub(super) fn new(response: &Object<'_>) -> Self {
        let member = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let fields = response.members().get("headers").and_then(Value::as_array);
        let headers = fields
            .into_iter()
            .flatten()
            .filter_map(|field| Some((member(field, "name")?.to_ascii_lowercase(), member(field, "value")?)));
        let content = response.members().get("content");
        let encoded = content.is_some_and(|content| content.get("encoding").is_some_and(|e| !e.is_null()));
        let body = content.filter(|_| !encoded).and_then(|content| member(content, "text"));
        Self {
            at: response.at.clone(),
            headers: headers.collect(),
            body: body.filter(|body| body.len() <= LONGEST_BODY),
        }
    }

    /// Names of the cookies that it sets.
    fn cookies(&self) -> impl Iterator<Item = &str> {
        let fields = self.headers.iter().filter(|(name, _)| name == "set-cookie");
        // Some programs write all fields of the name into one, line by line.
        fields.flat_map(|(_, value)| value.lines()).filter_map(|line| Some(line.split_once('=')?.0.trim()))
    }
}

/// A place in a response that has a value.
#[derive(Clone, Debug)]
struct Origin {
    /// Index of the request.
    request: usize,
    /// The name of the value there, if it has one.
    name: String,
    /// Names of the objects around it.
    within: Vec<String>,
    extract: ExtractSpec,
}

impl Origin {
    /// Returns `true` if a request that sends `value` under a name, or in its path, has it from here, and
    /// not by chance.
    fn gives(&self, name: &str, value: &str) -> bool {
        let is_related = || {
            name.is_empty()
                || is_identifier(name)
                || self.within.iter().any(|around| around.eq_ignore_ascii_case(name))
        };
        is_rare(value) || is_identifier(&self.name) && is_related()
    }
}

/// A value that was found, and the variable that it goes into.
#[derive(Debug)]
struct Variable {
    name: String,
    origin: Origin,
    uses: usize,
}

/// Correlates requests in the order in which they are sent. `groups` are the numbers of requests that are
/// sent at once; none of them has values of another one's response. Returns `true` if the scenario has to
/// keep cookies.
pub(super) fn correlate(
    requests: &mut [(&mut StepSpec, &Answer)],
    groups: &[usize],
    findings: &mut Findings,
) -> bool {
    let mut finder = Finder::default();
    let mut cookies: BTreeSet<String> = BTreeSet::new();
    let mut keeps_cookies = false;
    let mut first = 0;
    for size in groups {
        let group = first..requests.len().min(first + size);
        for (step, _) in &mut requests[group.clone()] {
            keeps_cookies |= drop_cookies(step, &cookies);
            finder.replace(step);
        }
        for index in group {
            let (_, answer) = &requests[index];
            cookies.extend(answer.cookies().map(str::to_owned));
            finder.learn(index, answer);
        }
        first += size;
    }
    if keeps_cookies {
        findings.note("/log/entries", "Set-Cookie", "cookies that responses set are kept by the scenario");
    }
    let mut variables: Vec<Variable> = finder.variables.into_values().collect();
    variables.sort_by(|a, b| (a.origin.request, &a.name).cmp(&(b.origin.request, &b.name)));
    for Variable { name, origin, uses } in variables {
        let (step, answer) = &mut requests[origin.request];
        let times = if uses == 1 { "once".to_owned() } else { format!("{uses} times") };
        let becomes = format!("the value is extracted here, as later requests send it ({times})");
        findings.note(answer.at.as_str(), &name, becomes);
        step.extract.push(name, Field::new(origin.extract));
    }
    keeps_cookies
}

/// Takes the cookies of these names out of a request; `true` if there was one.
fn drop_cookies(step: &mut StepSpec, names: &BTreeSet<String>) -> bool {
    let mut dropped = false;
    let headers = &mut step.request_mut().headers.0;
    headers.retain_mut(|(name, _, value)| {
        let Field::Given(Text(value), _) = value else { return true };
        if !name.as_str().eq_ignore_ascii_case("cookie") {
            return true;
        }
        let is_set = |pair: &&str| !names.contains(pair.split('=').next().unwrap_or_default());
        let kept: Vec<&str> = value.split("; ").filter(is_set).collect();
        dropped |= kept.len() < value.split("; ").count();
        *value = kept.join("; ");
        !value.is_empty()
    });
    dropped
}

/// Values of the responses so far, and variables that were made of them.
#[derive(Default)]
struct Finder {
    /// The first place of each value.
    origins: HashMap<String, Origin>,
    /// Bodies without a structure, with their requests, and as another session may have them.
    texts: Vec<(usize, String, OnceCell<String>)>,
    /// Words of those bodies: index of the body, and position in it.
    words: HashMap<String, (usize, usize)>,
    /// Values that the client sent before a response had them.
    own: BTreeSet<String>,
    names: Names,
    variables: HashMap<String, Variable>,
}

impl Finder {
    /// Notes the values of a response.
    fn learn(&mut self, request: usize, answer: &Answer) {
        for (name, value) in &answer.headers {
            if OF_THE_SERVER.contains(&name.as_str()) {
                continue;
            }
            let whole = check::extract(&Place::Header(name.clone()));
            let origin = |extract| Origin { request, name: name.clone(), within: Vec::new(), extract };
            self.origins.entry(value.clone()).or_insert_with(|| origin(whole.clone()));
            if name == "location" {
                for piece in value.split(['/', '?', '&', '=', '#']).filter(|piece| is_rare(piece)) {
                    let at = piece.as_ptr().addr() - value.as_ptr().addr();
                    let Some(pattern) = pattern(value, &OnceCell::new(), at, piece) else { continue };
                    let mut part = whole.clone();
                    part.regex = draft::text(pattern);
                    self.origins.entry(decoded(piece)).or_insert_with(|| origin(part));
                }
            }
        }
        let Some(body) = &answer.body else { return };
        match serde_json::from_str::<Value>(body) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => {
                self.leaves(request, &value, "", "");
            }
            _ => {
                let text = self.texts.len();
                // Whole attributes, lines and quotations, and parts of URLs.
                for ends in [&['"', '\'', '<', '>', ' ', '\n', '\r', '\t'][..], &WORD_ENDS[..]] {
                    for word in body.split(ends) {
                        let at = word.as_ptr().addr() - body.as_ptr().addr();
                        if !is_rare(word) && !is_named_identifier(body, at, word) {
                            continue;
                        }
                        self.words.entry(word.to_owned()).or_insert((text, at));
                    }
                }
                self.texts.push((request, body.clone(), OnceCell::new()));
            }
        }
    }

    /// Notes the texts and numbers of the JSON value at `pointer`.
    fn leaves(&mut self, request: usize, value: &Value, pointer: &str, name: &str) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    self.leaves(request, value, &below(pointer, name), name);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    self.leaves(request, value, &below(pointer, index), name);
                }
            }
            _ => {
                let Some(leaf) = leaf(value) else { return };
                let extract = || check::extract(&Place::Json(pointer.to_owned()));
                let within = || pointer.split('/').rev().skip(1).map(str::to_owned).collect();
                let origin =
                    || Origin { request, name: name.to_owned(), within: within(), extract: extract() };
                self.origins.entry(leaf).or_insert_with(origin);
            }
        }
    }

    /// Replaces the values of a request that responses before it gave.
    fn replace(&mut self, step: &mut StepSpec) {
        let request = step.request_mut();
        let json = request.headers.0.iter().any(|(name, _, value)| {
            name.as_str().eq_ignore_ascii_case("content-type")
                && value.get().is_some_and(|Text(value)| value.contains("json"))
        });
        if let Some(Text(url)) = request.address.url_mut() {
            self.replace_pieces(url, &['/', '?', '&', '=', '#', ';'], Written::InUrl);
        }
        for (name, _, value) in &mut request.headers.0 {
            let Field::Given(Text(value), _) = value else { continue };
            let name = name.as_str().to_ascii_lowercase();
            match name.as_str() {
                "cookie" => self.replace_pieces(value, &[';', '=', ' '], Written::Plain),
                "referer" => self.replace_pieces(value, &['/', '?', '&', '=', '#'], Written::InUrl),
                _ if OF_THE_CLIENT.contains(&name.as_str()) || name.starts_with("sec-") => {}
                // A scheme, as `Bearer`, stands before the value.
                _ => {
                    let start = value.rfind(' ').map_or(0, |blank| blank + 1);
                    if let Some(variable) = self.variable(&name, &value[start..]) {
                        value.replace_range(start.., &Written::Plain.slot(&variable));
                    }
                }
            }
        }
        if let Field::Given(Text(body), _) = &mut request.body.body {
            match serde_json::from_str::<Value>(body) {
                Ok(Value::Object(_) | Value::Array(_)) => self.replace_scalars(body),
                _ if json => {}
                _ => self.replace_pieces(body, &['&', '='], Written::InForm),
            }
        }
    }

    /// Replaces whole pieces of a text between separators.
    fn replace_pieces(&mut self, text: &mut String, separators: &[char], written: Written) {
        let mut made = String::with_capacity(text.len());
        let mut name = String::new();
        let mut is_value = false;
        for piece in text.split_inclusive(separators) {
            let (value, end) = match piece.char_indices().next_back() {
                Some((at, last)) if separators.contains(&last) => piece.split_at(at),
                _ => (piece, ""),
            };
            let read = if written == Written::InForm { value.replace('+', " ") } else { value.to_owned() };
            let read = if written == Written::Plain { read } else { decoded(&read) };
            // A name stands before a `=`, and is never a value of a server; neither is a template.
            let found = (end != "=" && !value.contains('$'))
                .then(|| self.variable(if is_value { &name } else { "" }, &read))
                .flatten();
            match found {
                Some(variable) => made.push_str(&written.slot(&variable)),
                None => made.push_str(value),
            }
            made.push_str(end);
            is_value = end == "=";
            value.clone_into(&mut name);
        }
        *text = made;
    }

    /// Replaces texts and numbers of a body of JSON, which stays as it was written otherwise.
    fn replace_scalars(&mut self, body: &mut String) {
        let mut made = String::with_capacity(body.len());
        let mut end = 0;
        for Scalar { name, at } in scalars(body) {
            let Ok(value) = serde_json::from_str::<Value>(&body[at.clone()]) else { continue };
            let Some(variable) = leaf(&value).and_then(|leaf| self.variable(&name, &leaf)) else { continue };
            made.push_str(&body[end..at.start]);
            if value.is_string() {
                made.push_str(&format!("\"{}\"", Written::InJson.slot(&variable)));
            } else {
                made.push_str(&Written::Plain.slot(&variable));
            }
            end = at.end;
        }
        made.push_str(&body[end..]);
        *body = made;
    }

    /// The variable of a value that a request sends under a name, if a response before it gave the value.
    fn variable(&mut self, name: &str, value: &str) -> Option<String> {
        if value.is_empty() || value.len() > LONGEST || self.own.contains(value) {
            return None;
        }
        if let Some(variable) = self.variables.get_mut(value) {
            return variable.origin.gives(name, value).then(|| {
                variable.uses += 1;
                variable.name.clone()
            });
        }
        let origin = self.origins.get(value).filter(|origin| origin.gives(name, value));
        let origin = origin.cloned();
        let origin = origin.or_else(|| self.in_text(value).filter(|origin| origin.gives(name, value)));
        // A recording with more of them is no user's session.
        let Some(origin) = origin.filter(|_| self.variables.len() < MOST_VARIABLES) else {
            self.own.insert(value.to_owned());
            return None;
        };
        let wish = if origin.name.is_empty() { name } else { origin.name.as_str() };
        let name = self.names.take(&wish.to_ascii_lowercase());
        self.variables.insert(value.to_owned(), Variable { name: name.clone(), origin, uses: 1 });
        Some(name)
    }

    /// The first body without a structure that has the value as a word.
    fn in_text(&self, value: &str) -> Option<Origin> {
        let (text, at) = *self.words.get(value)?;
        let (request, text, other) = &self.texts[text];
        let pattern = pattern(text, other, at, value)?;
        let name = named(&text[..at]);
        let mut extract = ExtractSpec::default();
        extract.regex = draft::text(pattern);
        Some(Origin { request: *request, name, within: Vec::new(), extract })
    }
}

/// Encoding of a variable in a text, from which the server reads its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Plain,
    InUrl,
    InForm,
    InJson,
}

impl Written {
    fn slot(self, variable: &str) -> String {
        match self {
            Self::Plain => format!("${{{variable}}}"),
            Self::InUrl | Self::InForm => format!("${{urlencode(${{{variable}}})}}"),
            Self::InJson => format!("${{json(${{{variable}}})}}"),
        }
    }
}

/// A text or a number, as a request would send it.
fn leaf(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn decoded(text: &str) -> String {
    String::from_utf8_lossy(&percent_decoded(text)).into_owned()
}

/// Returns `true` if a value is hardly twice in a recording by chance.
fn is_rare(value: &str) -> bool {
    let least =
        if value.bytes().any(|byte| byte.is_ascii_digit()) { LEAST_WITH_DIGIT } else { LEAST_WITHOUT_DIGIT };
    let is_word = |c: char| !c.is_whitespace() && !c.is_control();
    (least..=LONGEST).contains(&value.len()) && value.chars().all(is_word)
}

/// Returns `true` if a word of a text that may be there by chance stands behind a name of an identifier.
fn is_named_identifier(text: &str, at: usize, word: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !(LEAST_WITH_DIGIT..=LONGEST).contains(&word.len()) || !word.chars().all(is_word) {
        return false;
    }
    let start = text.ceil_char_boundary(at.saturating_sub(LONGEST_NAME));
    is_identifier(&named(&text[start..at]))
}

/// Returns `true` if values of this name tell things or sessions from each other.
fn is_identifier(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = ["id", "ids", "uuid", "token", "csrf", "xsrf", "nonce", "key", "version", "etag", "cursor"];
    ends.iter().any(|end| name.ends_with(end))
}

/// A text or a number in a text of JSON.
struct Scalar {
    /// The name of the member that it is, or that the list is which it is in.
    name: String,
    at: Range<usize>,
}

/// The texts and numbers of a valid text of JSON.
fn scalars(json: &str) -> Vec<Scalar> {
    let bytes = json.as_bytes();
    let mut found = Vec::new();
    // Names of the objects and lists around.
    let mut around: Vec<String> = Vec::new();
    let mut member: Option<String> = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' | b'[' => around.push(member.take().or_else(|| around.last().cloned()).unwrap_or_default()),
            b'}' | b']' => {
                around.pop();
            }
            b',' => member = None,
            b'"' => {
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
                let rest = json[at..].trim_start();
                if rest.starts_with(':') {
                    member = serde_json::from_str(&json[start..at]).ok();
                } else {
                    let name = member.take().or_else(|| around.last().cloned()).unwrap_or_default();
                    found.push(Scalar { name, at: start..at });
                }
            }
            b'-' | b'0'..=b'9' => {
                let in_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                at += bytes[at..].iter().take_while(|byte| in_number(byte)).count();
                let name = member.take().or_else(|| around.last().cloned()).unwrap_or_default();
                found.push(Scalar { name, at: start..at });
            }
            _ => {}
        }
    }
    found
}

/// A regular expression whose first group takes the `value` at this position of `text`: it begins with the
/// text before it, from the name in front of the value on, and without other values that may change from
/// session to session. It takes the value in that place of [another session](another_session), too, whose
/// text is made when it is first needed.
fn pattern(text: &str, other: &OnceCell<String>, at: usize, value: &str) -> Option<String> {
    let ends = match text[at + value.len()..].chars().next() {
        Some(next) if !value.contains(next) => format!("([^{}]+)", regex::escape(&next.to_string())),
        None if !value.contains(['/', '?', '&']) => "([^/?&]+)".to_owned(),
        _ => format!("({})", ".".repeat(value.chars().count())),
    };
    let here = Some(at..at + value.len());
    let tried = |length: &usize, is_anchored: bool| {
        let start = text.ceil_char_boundary(at.saturating_sub(*length));
        // From the line or the element on in which the value stands.
        let context = &text[start..at];
        let line = context.rfind('\n').map_or(0, |end| end + 1);
        let context = &context[line.max(context.rfind('<').unwrap_or(0))..];
        let is_constant = || random_words(context).all(|word| word.len() < LEAST_WITH_DIGIT);
        let context = if is_anchored { behind_random(context) } else { context };
        let pattern = format!("{}{ends}", regex::escape(context));
        let regex = Regex::new(&pattern).ok()?;
        let taken = |text: &str| Some(regex.captures(text)?.get(1)?.range());
        let is_sure = || match is_anchored {
            true => {
                let other = other.get_or_init(|| another_session(text));
                context.contains(|c: char| c.is_ascii_alphabetic()) && taken(other) == here
            }
            false => is_constant(),
        };
        (taken(text) == here && is_sure()).then_some(pattern)
    };
    let anchored = CONTEXTS.iter().find_map(|length| tried(length, true));
    // Short words with digits are names more often than not.
    anchored.or_else(|| CONTEXTS.iter().find_map(|length| tried(length, false)))
}

/// Bytes before a value in which its name is looked for.
const LONGEST_NAME: usize = 128;
/// Least length of a word with a digit that may be random, or a time.
const LEAST_RANDOM: usize = 6;

/// Least length of a word of letters alone that may be random.
const LEAST_OF_LETTERS: usize = 12;

/// The words of a text that may be others in another session, by their places: long ones with digits, and
/// those of letters that nobody would write.
fn random_words(text: &str) -> impl DoubleEndedIterator<Item = Range<usize>> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+.".contains(&byte);
    let mut words = Vec::new();
    let mut start = None;
    for (at, byte) in text.bytes().chain([b' ']).enumerate() {
        match start {
            None if is_word(byte) => start = Some(at),
            Some(from) if !is_word(byte) => {
                words.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    let is_random = |word: &Range<usize>| {
        let word = &text.as_bytes()[word.clone()];
        word.len() >= LEAST_RANDOM && word.iter().any(u8::is_ascii_digit) || is_of_drawn_letters(word)
    };
    words.into_iter().filter(is_random).collect::<Vec<_>>().into_iter()
}

/// Returns `true` if a word has capital letters where few names have them: between two small ones that stand
/// alone, or two at once, as in `UvNGKFmUiYNlkjaO`.
fn is_of_drawn_letters(word: &[u8]) -> bool {
    let is = |byte: &u8, wanted: u8| match wanted {
        b'A' => byte.is_ascii_uppercase(),
        _ => byte.is_ascii_lowercase(),
    };
    let has = |form: &[u8]| {
        word.windows(form.len()).any(|part| part.iter().zip(form).all(|(byte, wanted)| is(byte, *wanted)))
    };
    word.len() >= LEAST_OF_LETTERS && (has(b"AaA") || has(b"aAAa"))
}

/// The end of a text from the first name behind its last random word on, with its quotation mark.
fn behind_random(context: &str) -> &str {
    let Some(last) = random_words(context).next_back() else { return context };
    let rest = &context[last.end..];
    let name = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
    let quoted = rest[..name].ends_with(['"', '\'']);
    &rest[name - usize::from(quoted)..]
}

/// The text as another session may have it: each random word is another one of that length.
fn another_session(text: &str) -> String {
    let mut other = text.to_owned().into_bytes();
    for word in random_words(text) {
        for byte in &mut other[word] {
            *byte = match *byte {
                b'9' => b'0',
                b'f' | b'z' => b'a',
                b'F' | b'Z' => b'A',
                byte if byte.is_ascii_alphanumeric() => byte + 1,
                byte => byte,
            };
        }
    }
    // Letters and digits have become others.
    String::from_utf8(other).unwrap_or_default()
}

/// The name of the field, the attribute or the member that ends with this text.
fn named(before: &str) -> String {
    let element = &before[before.rfind(['<', '\n', '{', ',']).unwrap_or(0)..];
    let quoted = |attribute: &str| {
        let (_, rest) = element.rsplit_once(attribute)?;
        let quote = rest.chars().next().filter(|c| ['"', '\''].contains(c))?;
        Some(rest[1..].split(quote).next()?.to_owned())
    };
    let word = || {
        let text = element.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let start = text.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
        Some(text[start.map_or(0, |at| at + 1)..].to_owned())
    };
    quoted(" name=")
        .or_else(|| quoted(" id="))
        .or_else(word)
        .filter(|name| !name.is_empty())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_take_the_value_that_was_there() {
        let of = |text: &str, value: &str| pattern(text, &OnceCell::new(), text.rfind(value).unwrap(), value);
        let form = r#"<form><input name="a" value="11111111"><input name="csrf" value="zq81xx92">"#;
        assert_eq!(of(form, "zq81xx92").unwrap(), r#"<input name="csrf" value="([^"]+)"#);
        assert_eq!(named(&form[..form.find("zq81").unwrap()]), "csrf");
        assert_eq!(of("http://h/orders/88421234", "88421234").unwrap(), "http://h/orders/([^/?&]+)");
        // The same text stands before another value, and there is no more of it.
        assert_eq!(of("v=1\nv=22222222\n", "22222222"), None);
        let long = format!("x=a1 {} x=b2", "l".repeat(60));
        assert!(of(&long, "b2").unwrap().contains("lll"));
    }

    /// Symptom: a token without a digit in it was taken for a word, once in thirty recordings.
    #[test]
    fn letters_behind_the_name_of_an_identifier_are_no_words() {
        let page = r#"<script>window.__CFG__={"nonce":"UvNGKFmUiYNlkjaO","theme":"midnightblue"}</script>"#;
        for (word, is_one) in [("UvNGKFmUiYNlkjaO", true), ("midnightblue", false), ("nonce", false)] {
            assert_eq!(is_named_identifier(page, page.find(word).unwrap(), word), is_one, "{word}");
        }
        for (word, is_drawn) in [
            ("UvNGKFmUiYNlkjaO", true),
            ("abcdefABCDEFghijk", false),
            ("removeAttribute", false),
            ("authorization", false),
            ("XMLHttpRequest", false),
            ("kQzPdAbXwRtY", true),
        ] {
            assert_eq!(is_of_drawn_letters(word.as_bytes()), is_drawn, "{word}");
        }
        // Such a word is in no pattern of another value.
        let page = r#"<script>c={"nonce":"UvNGKFmUiYNlkjaO","apiToken":"399e2c508a5fd81e36ac"}</script>"#;
        let at = page.find("399e").unwrap();
        assert_eq!(
            pattern(page, &OnceCell::new(), at, "399e2c508a5fd81e36ac").unwrap(),
            r#""apiToken":"([^"]+)"#
        );
    }

    /// Symptom: the end of one token stood in the pattern of the next, so that every replay of a page with an
    /// inline configuration failed.
    #[test]
    fn patterns_have_no_other_value_that_changes() {
        let token = "399e2c508a5fd81e36ac8b19e1f7696cab326";
        for (text, value, before, end) in [
            (
                format!(r#"<script>window.__CFG__={{"apiToken":"{token}","nonce":"8f3c1b2a9d"}}</script>"#),
                "8f3c1b2a9d",
                r#""nonce":""#,
                '"',
            ),
            (
                format!("<a href='/go?sid={token}&page=1&key=77abc123xyz'>"),
                "77abc123xyz",
                "page=1&key=",
                '\'',
            ),
            ("at 2026-11-28T10:00:00.123Z id=88421234;".to_owned(), "88421234", "id=", ';'),
            (
                r#"{"items":[{"id":"aaaa1111"},{"id":"bbbb2222","csrf":"cccc3333"}]}"#.to_owned(),
                "cccc3333",
                r#""csrf":""#,
                '"',
            ),
            (r#"<p class="c-7ba5bd90" data-key="k1k2k3k4">"#.to_owned(), "k1k2k3k4", r#"data-key=""#, '"'),
            // A short word with a digit is a name.
            ("<i>cfg.id1=\"k1k2k3k4\"".to_owned(), "k1k2k3k4", "<i>cfg.id1=\"", '"'),
        ] {
            let found = pattern(&text, &OnceCell::new(), text.rfind(value).unwrap(), value);
            let expected = format!("{}([^{end}]+)", regex::escape(before));
            assert_eq!(found.as_deref(), Some(expected.as_str()), "{text}");
            let other = text.replace(token, "0000000000000000000000").replace(value, "another-1");
            let regex = Regex::new(&expected).unwrap();
            assert_eq!(&regex.captures(&other).unwrap()[1], "another-1", "{other}");
        }
        // There is nothing between two values but a mark that others have, too.
        assert_eq!(pattern("a,11111111,22222222,33333333", &OnceCell::new(), 11, "22222222"), None);
        assert_eq!(another_session("v1 ab9f0z11 Token utf-8 10:59:59"), "v1 bc0a1a22 Token utf-8 10:59:59");
    }

    #[test]
    fn names_are_those_of_fields_attributes_or_members() {
        for (before, name) in [
            (r#"<meta name="csrf-token" content=""#, "csrf-token"),
            (r#"<input type=hidden id='t' value='"#, "t"),
            ("var token = '", "token"),
            (r#"{"a": 1, "sessionKey":""#, "sessionKey"),
            ("", ""),
        ] {
            assert_eq!(named(before), name, "{before}");
        }
    }

    #[test]
    fn scalars_of_json_are_found_with_the_names_of_their_members() {
        let json =
            r#"{"a": 17, "b\"c" : [ "x:\"y", -1.5e3, {"d": "", "e": null, "f": true}, 2], "g": {"h": "z"}}"#;
        let found: Vec<(String, &str)> =
            scalars(json).into_iter().map(|scalar| (scalar.name, &json[scalar.at])).collect();
        let expected = [
            ("a", "17"),
            ("b\"c", r#""x:\"y""#),
            ("b\"c", "-1.5e3"),
            ("d", r#""""#),
            ("b\"c", "2"),
            ("h", r#""z""#),
        ];
        assert_eq!(found, expected.map(|(name, text)| (name.to_owned(), text)));
        assert_eq!(scalars(r#""open"#).len(), 1);
    }
}
