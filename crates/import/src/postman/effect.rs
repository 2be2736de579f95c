//! Effects of scripts: expectations, extractions and variables of a step; everything else is noted.

use plimsoll_document::{Field, StepSpec, ThresholdSpec};

use super::script::{Part, arguments, parts, split, unquoted};
use super::value::{Aliases, SCOPES, Value, is_number, value};
use crate::draft::{self, escaped};
use crate::findings::Findings;
use crate::flow::check::{self, Place};
use crate::flow::{Variables, Writing, set};

/// The step that a script belongs to, and its surroundings.
pub(super) struct Around<'a> {
    pub(super) variables: &'a mut Variables,
    pub(super) findings: &'a mut Findings,
    pub(super) thresholds: &'a mut Vec<ThresholdSpec>,
    /// Names of the scenario and the step, in reports.
    pub(super) scenario: &'a str,
    pub(super) step: &'a str,
}

/// Most statements and blocks of a script that are examined.
const MOST_PARTS: usize = 10_000;

/// Note for a statement that is left out, unless there is more to say about it.
const LEFT_OUT: &str = "scripts are not carried out, and nothing in a plan is the same: it is left out";

const CONDITION: &str =
    "conditions, loops and functions of scripts are not carried out: this and its contents are left out";

/// Reads a script that is carried out before a request. Returns the step that sets its variables, if it does.
pub(super) fn before(source: &str, at: &str, around: &mut Around<'_>) -> Option<StepSpec> {
    let mut reader = Reader { around, at, aliases: Aliases::new(), step: None, sets: Vec::new() };
    reader.read(source);
    let sets = reader.sets;
    (!sets.is_empty()).then(|| set(sets))
}

/// Reads a script that looks at the response. Returns the step that sets variables after the request, if it
/// does.
pub(super) fn after(
    source: &str,
    at: &str,
    step: &mut StepSpec,
    around: &mut Around<'_>,
) -> Option<StepSpec> {
    let mut reader = Reader { around, at, aliases: Aliases::new(), step: Some(step), sets: Vec::new() };
    reader.read(source);
    let sets = reader.sets;
    (!sets.is_empty()).then(|| set(sets))
}

struct Reader<'r, 'a> {
    around: &'r mut Around<'a>,
    at: &'r str,
    aliases: Aliases,
    /// The request whose response there is.
    step: Option<&'r mut StepSpec>,
    /// Variables that get a value that is not from the response.
    sets: Vec<(String, String)>,
}

impl Reader<'_, '_> {
    fn read(&mut self, source: &str) {
        // Depth of open blocks within one that is left out.
        let mut left_out = 0_usize;
        for (index, (line, part)) in parts(source).into_iter().enumerate() {
            if index == MOST_PARTS {
                self.note(line, "", "the script is too long: the rest is left out");
                return;
            }
            match part {
                Part::Open(_) | Part::Close if left_out > 0 => {
                    if part == Part::Close {
                        left_out -= 1;
                    } else {
                        left_out += 1;
                    }
                }
                _ if left_out > 0 => {}
                Part::Open(head) if is_transparent(&head) => {}
                Part::Open(head) if is_success(&head) && self.step.is_some() => {
                    let becomes = "values are taken from good responses only: the condition is taken to hold";
                    self.note(line, &head, becomes);
                }
                Part::Open(head) => {
                    let becomes = if head.starts_with("pm.sendRequest") {
                        "requests of scripts are not sent: make them steps of their own"
                    } else if head.starts_with("pm.test.skip") {
                        "a test that is skipped there is left out"
                    } else {
                        CONDITION
                    };
                    self.note(line, &head, becomes);
                    left_out = 1;
                }
                Part::Close => {}
                Part::Statement(text) => self.statement(line, &text),
            }
        }
    }

    fn note(&mut self, line: usize, said: &str, becomes: &str) {
        self.around.findings.note(format!("{}, line {line}", self.at), said, becomes);
    }

    fn place(&self, line: usize) -> String {
        format!("{}, line {line}", self.at)
    }

    fn statement(&mut self, line: usize, text: &str) {
        let mut text = text;
        // A test whose function is one expression; there is no reason for more than one within another.
        for _ in 0..4 {
            let Some((inside, _)) = text.strip_prefix("pm.test").and_then(arguments) else { break };
            let [_, function] = split(inside, ',')[..] else { break };
            let Some((_, expression)) = function.split_once("=>") else { break };
            text = expression.trim();
        }
        let known = self.declares(text) || self.sets(line, text) || self.expects(line, text);
        if known || text.starts_with(['"', '\'']) && unquoted(text).is_some() {
            return;
        }
        let becomes = match () {
            () if text.starts_with("pm.sendRequest") => {
                "requests of scripts are not sent: make them steps of their own"
            }
            () if text.contains("etNextRequest") => "steps are carried out in order: it is left out",
            () if text.starts_with("console.") => "nothing is logged: it is left out",
            () if text.contains(".unset(")
                || text.contains(".clear(")
                || text.contains("clearEnvironmentV") =>
            {
                "variables are those of one iteration: nothing has to be cleared, and it is left out"
            }
            () => LEFT_OUT,
        };
        self.note(line, text, becomes);
    }

    /// `let a = pm.response.json().b`.
    fn declares(&mut self, text: &str) -> bool {
        let declared = ["var ", "let ", "const "].iter().find_map(|word| text.strip_prefix(word));
        let Some((name, expression)) = declared.unwrap_or(text).split_once('=') else { return false };
        let name = name.trim();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$') {
            return false;
        }
        if let Some(Value::Json(path)) = value(expression, &self.aliases) {
            self.aliases.insert(name.to_owned(), path);
            return true;
        }
        false
    }

    /// `pm.environment.set("a", b)`.
    fn sets(&mut self, line: usize, text: &str) -> bool {
        let scoped = SCOPES.iter().find_map(|scope| text.strip_prefix(scope)?.strip_prefix(".set"));
        let old = ["postman.setEnvironmentVariable", "postman.setGlobalVariable"]
            .iter()
            .find_map(|call| text.strip_prefix(call));
        let Some((inside, rest)) = scoped.or(old).and_then(arguments) else { return false };
        let [name, expression] = split(inside, ',')[..] else { return false };
        let (Some(name), "") = (unquoted(name), rest.trim()) else { return false };
        let Some(value) = value(expression, &self.aliases) else {
            let becomes = "no value of a plan is like this: the variable is not set";
            self.note(line, text, becomes);
            return true;
        };
        if let (Some(place), Some(step)) = (value.place(), &mut self.step) {
            let name = self.around.variables.name(&name);
            if step.extract.0.iter().any(|(known, ..)| known.as_str() == name) {
                let becomes = "the variable is set from this response already: the first value is taken";
                self.note(line, text, becomes);
            } else {
                step.extract.push(name, Field::new(check::extract(&place)));
            }
            return true;
        }
        let at = self.place(line);
        match self.template(&value, &at) {
            Some(template) => {
                let name = self.around.variables.name(&name);
                self.sets.push((name, template));
            }
            None => self.note(line, text, "no value of a plan is like this: the variable is not set"),
        }
        true
    }

    /// A value that is not from a response, as a template.
    fn template(&mut self, value: &Value, at: &str) -> Option<String> {
        Some(match value {
            Value::Literal(text) => escaped(text),
            Value::Slot(slot) => format!("${{{slot}}}"),
            Value::Variable(name) => format!("${{{}}}", self.around.variables.name(name)),
            Value::Text(text) => {
                self.around.variables.template(text, Writing::Plain, at, self.around.findings)
            }
            Value::Joined(parts) => {
                let parts: Option<Vec<String>> = parts.iter().map(|part| self.template(part, at)).collect();
                parts?.concat()
            }
            Value::Json(_) | Value::Response(_) | Value::Time => return None,
        })
    }

    fn expects(&mut self, line: usize, text: &str) -> bool {
        if let Some(chain) = text.strip_prefix("pm.response.to.").and_then(Chain::parse) {
            return self.expects_of_response(line, text, &chain);
        }
        if let Some((inside, rest)) =
            ["pm.expect", "expect"].iter().find_map(|call| arguments(text.strip_prefix(call)?))
        {
            let Some(subject) = split(inside, ',').first().and_then(|subject| value(subject, &self.aliases))
            else {
                return false;
            };
            let chain = rest.trim().strip_prefix('.').and_then(Chain::parse);
            return chain.is_some_and(|chain| self.expects_of_value(line, text, subject, &chain));
        }
        // tests["name"] = a === b;
        let Some(expression) =
            text.strip_prefix("tests[").and_then(|rest| rest.split_once("] ")).map(|(_, e)| e)
        else {
            return false;
        };
        let Some(expression) = expression.trim().strip_prefix('=') else { return false };
        let expression = expression.trim();
        if let Some((inside, "")) = expression.strip_prefix("responseBody.has").and_then(arguments) {
            let chain = Chain { not: false, verb: "include".to_owned(), arguments: Some(inside) };
            return self.expects_of_value(line, text, Value::Response(Place::Body), &chain);
        }
        for (operator, verb) in [("===", "equal"), ("==", "equal"), ("<", "below")] {
            if let Some((left, right)) = expression.split_once(operator)
                && let Some(subject) = value(left, &self.aliases)
            {
                let chain = Chain { not: false, verb: verb.to_owned(), arguments: Some(right) };
                return self.expects_of_value(line, text, subject, &chain);
            }
        }
        false
    }

    fn status(&mut self, line: usize, said: &str, statuses: &[String]) -> bool {
        let at = self.place(line);
        let Some(step) = &mut self.step else { return false };
        check::expect_status(step, statuses, &at, said, self.around.findings);
        true
    }

    fn expect(&mut self, line: usize, said: &str, place: &Place, spec: plimsoll_document::MatchSpec) -> bool {
        let at = self.place(line);
        let Some(step) = &mut self.step else { return false };
        check::expect(step, place, spec, &at, said, self.around.findings);
        true
    }

    fn expects_of_response(&mut self, line: usize, said: &str, chain: &Chain<'_>) -> bool {
        let argument = |index: usize| {
            let list = chain.arguments.map(|inside| split(inside, ',')).unwrap_or_default();
            list.get(index).filter(|text| !text.is_empty()).map(|text| (*text).to_owned())
        };
        let statuses: &[&str] = match (chain.verb.as_str(), chain.not) {
            ("ok", false) => &["200"],
            ("success", false) => &["2xx"],
            ("redirection", false) => &["3xx"],
            ("clientError", false) => &["4xx"],
            ("serverError", false) => &["5xx"],
            ("error", false) => &["4xx", "5xx"],
            ("error", true) => &["200-399"],
            ("accepted", false) => &["202"],
            ("badRequest", false) => &["400"],
            ("unauthorized", false) => &["401"],
            ("forbidden", false) => &["403"],
            ("notFound", false) => &["404"],
            ("rateLimited", false) => &["429"],
            _ => &[],
        };
        if !statuses.is_empty() && chain.arguments.is_none() {
            let statuses: Vec<String> = statuses.iter().map(|status| (*status).to_owned()).collect();
            return self.status(line, said, &statuses);
        }
        let turned = |spec| if chain.not { check::turned(spec) } else { spec };
        match (chain.verb.as_str(), argument(0), argument(1)) {
            ("status", Some(status), None) => {
                let number = unquoted(&status).map_or(status.parse().ok(), |reason| of_reason(&reason));
                match (number, chain.not) {
                    (Some(number), false) => self.status(line, said, &[number.to_string()]),
                    (Some(number), true) => self.status(line, said, &check::other_than(number)),
                    (None, _) => false,
                }
            }
            ("header", Some(name), wanted) => {
                let Some(name) = unquoted(&name) else { return false };
                let spec = match wanted {
                    None => check::exists(),
                    Some(wanted) => match value(&wanted, &self.aliases).and_then(|wanted| wanted.literal()) {
                        Some(wanted) => check::equals(wanted),
                        None => return false,
                    },
                };
                self.expect(line, said, &Place::Header(name), turned(spec))
            }
            ("json" | "jsonBody", None, None) if !chain.not => {
                let header = Place::Header("content-type".to_owned());
                self.note(
                    line,
                    said,
                    "the content type has to say that it is JSON; the body is not looked at",
                );
                self.expect(line, said, &header, check::contains("json".to_owned()))
            }
            ("jsonBody", Some(path), None) => {
                let Some(path) = unquoted(&path).and_then(|path| check::json_path(&path)) else {
                    return false;
                };
                self.expect(line, said, &Place::Json(path), turned(check::exists()))
            }
            ("body", Some(wanted), None) => {
                let Some(wanted) = unquoted(&wanted) else { return false };
                self.expect(line, said, &Place::Body, turned(check::equals(escaped(&wanted))))
            }
            _ => false,
        }
    }

    fn expects_of_value(&mut self, line: usize, said: &str, subject: Value, chain: &Chain<'_>) -> bool {
        let arguments = chain.arguments.map(|inside| split(inside, ',')).unwrap_or_default();
        match &subject {
            Value::Time => return self.slowest(line, said, chain, &arguments),
            Value::Response(Place::Status) => return self.expects_status(line, said, chain, &arguments),
            _ => {}
        }
        let Some(mut place) = subject.place() else { return false };
        let wanted = |index: usize| arguments.get(index).and_then(|text| value(text, &self.aliases));
        let at = self.place(line);
        let spec = match (chain.verb.as_str(), arguments.as_slice()) {
            ("eql" | "eq" | "equal" | "equals", [_]) => {
                match wanted(0).and_then(|v| self.template(&v, &at)) {
                    Some(wanted) => check::equals(wanted),
                    None => return false,
                }
            }
            ("include" | "includes" | "contain" | "contains" | "string", [_]) => {
                match wanted(0).and_then(|v| self.template(&v, &at)) {
                    Some(wanted) => check::contains(wanted),
                    None => return false,
                }
            }
            ("oneOf", [list]) => match one_of(list) {
                Some(expression) => check::matches(expression),
                None => return false,
            },
            ("match", [expression]) => match regex(expression) {
                Some(expression) => check::matches(expression),
                None => return false,
            },
            ("true" | "false" | "null", []) => check::equals(chain.verb.clone()),
            ("exist" | "ok", []) => check::exists(),
            ("undefined", []) => check::turned(check::exists()),
            ("empty", []) => check::equals(String::new()),
            ("a" | "an", [kind]) if !chain.not => {
                let becomes = format!("types are not looked at ({kind}): the value has to be there");
                self.note(line, said, &becomes);
                check::exists()
            }
            ("property", [name, rest @ ..]) => {
                let (Value::Json(path), Some(name)) = (&subject, unquoted(name)) else { return false };
                let mut path = path.clone();
                path.push(name);
                place = Place::Json(check::json_pointer(&path));
                match rest {
                    [] => check::exists(),
                    [wanted] => match value(wanted, &self.aliases).and_then(|v| self.template(&v, &at)) {
                        Some(wanted) => check::equals(wanted),
                        None => return false,
                    },
                    _ => return false,
                }
            }
            _ => return false,
        };
        self.expect(line, said, &place, if chain.not { check::turned(spec) } else { spec })
    }

    fn expects_status(&mut self, line: usize, said: &str, chain: &Chain<'_>, arguments: &[&str]) -> bool {
        let number = |text: &str| text.trim_matches(['"', '\'']).parse::<u16>().ok();
        match (chain.verb.as_str(), arguments, chain.not) {
            ("eql" | "eq" | "equal" | "equals", [status], not) => match (number(status), not) {
                (Some(status), false) => self.status(line, said, &[status.to_string()]),
                (Some(status), true) => self.status(line, said, &check::other_than(status)),
                _ => false,
            },
            ("oneOf", [list], false) => {
                let Some(inside) = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')) else {
                    return false;
                };
                let numbers: Option<Vec<String>> =
                    split(inside, ',').into_iter().map(|text| number(text).map(|n| n.to_string())).collect();
                numbers.is_some_and(|numbers| self.status(line, said, &numbers))
            }
            ("within", [first, last], false) => match (number(first), number(last)) {
                (Some(first), Some(last)) => self.status(line, said, &[format!("{first}-{last}")]),
                _ => false,
            },
            ("below" | "lessThan" | "lt", [status], false) => match number(status) {
                Some(status) => self.status(line, said, &[format!("200-{}", status.saturating_sub(1))]),
                None => false,
            },
            _ => false,
        }
    }

    fn slowest(&mut self, line: usize, said: &str, chain: &Chain<'_>, arguments: &[&str]) -> bool {
        let is_limit = ["below", "lessThan", "lt", "most", "lte"].contains(&chain.verb.as_str());
        let ([limit], true, false) = (arguments, is_limit, chain.not) else { return false };
        let Some(limit) = limit.parse::<u64>().ok().filter(|&limit| (1..=86_400_000).contains(&limit)) else {
            return false;
        };
        let threshold = check::slowest(self.around.scenario, self.around.step, limit * 1_000_000);
        if !self.around.thresholds.contains(&threshold) {
            self.around.thresholds.push(threshold);
        }
        let becomes = "it becomes a threshold for the run: a slow response does not fail by itself";
        self.note(line, said, becomes);
        true
    }
}

/// `to.not.have.status(200)`, without the words that have no meaning.
struct Chain<'t> {
    not: bool,
    verb: String,
    /// `None` without parentheses.
    arguments: Option<&'t str>,
}

impl<'t> Chain<'t> {
    /// Words that are there for people.
    const FILLERS: [&'static str; 16] = [
        "to", "be", "been", "is", "that", "which", "and", "has", "have", "with", "at", "of", "same", "but",
        "does", "still",
    ];

    fn parse(text: &'t str) -> Option<Self> {
        let mut not = false;
        let mut rest = text.trim();
        loop {
            let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            let behind = behind.trim();
            if let Some((inside, behind)) = arguments(behind) {
                // Nothing may follow: a further word would be about something else.
                let is_last = behind.trim().is_empty();
                return is_last.then(|| Self { not, verb: word.to_owned(), arguments: Some(inside) });
            }
            match (word, behind) {
                ("", _) => return None,
                (word, "") => return Some(Self { not, verb: word.to_owned(), arguments: None }),
                ("not", _) => not = !not,
                ("deep", _) => {}
                (word, _) if Self::FILLERS.contains(&word) => {}
                _ => return None,
            }
            rest = behind.strip_prefix('.')?.trim();
        }
    }
}

/// Blocks whose statements are carried out in any case.
fn is_transparent(head: &str) -> bool {
    let is_test = head.strip_prefix("pm.test").is_some_and(|rest| rest.starts_with('('))
        && (head.ends_with("=>") || head.contains("function"));
    is_test || head.is_empty() || head == "try"
}

/// Conditions that hold for good responses.
fn is_success(head: &str) -> bool {
    let plain: String = head.chars().filter(|c| !c.is_whitespace()).collect();
    let Some((condition, "")) = plain.strip_prefix("if").and_then(arguments) else { return false };
    let sides = condition.split_once("===").or_else(|| condition.split_once("=="));
    sides.is_some_and(|(left, right)| {
        ["pm.response.code", "responseCode.code"].contains(&left) && ["200", "201"].contains(&right)
    })
}

/// `["a", "b"]` as a regular expression.
fn one_of(list: &str) -> Option<String> {
    let inside = list.strip_prefix('[')?.strip_suffix(']')?;
    let texts: Option<Vec<String>> = split(inside, ',')
        .into_iter()
        .map(|text| unquoted(text).or_else(|| is_number(text).then(|| text.to_owned())))
        .map(|text| text.map(|text| regex::escape(&text)))
        .collect();
    Some(format!("^(?:{})$", texts?.join("|")))
}

/// `/a/i` as plans write it.
fn regex(text: &str) -> Option<String> {
    let (inside, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    let expression = match flags {
        "" => inside.to_owned(),
        "i" => format!("(?i){inside}"),
        _ => return None,
    };
    let expression = expression.replace("\\/", "/");
    check::is_regex(&expression).then_some(expression)
}

/// The status with this reason (RFC 9110 section 15).
fn of_reason(reason: &str) -> Option<u16> {
    let reasons = [
        ("ok", 200),
        ("created", 201),
        ("accepted", 202),
        ("no content", 204),
        ("partial content", 206),
        ("moved permanently", 301),
        ("found", 302),
        ("see other", 303),
        ("not modified", 304),
        ("bad request", 400),
        ("unauthorized", 401),
        ("forbidden", 403),
        ("not found", 404),
        ("method not allowed", 405),
        ("conflict", 409),
        ("gone", 410),
        ("unprocessable entity", 422),
        ("too many requests", 429),
        ("internal server error", 500),
        ("bad gateway", 502),
        ("service unavailable", 503),
    ];
    let reason = reason.to_ascii_lowercase();
    reasons.iter().find(|(known, _)| *known == reason).map(|(_, status)| *status)
}

/// The name of a step in reports.
pub(super) fn step_name(name: &str) -> plimsoll_document::Field<plimsoll_document::Text> {
    draft::text(escaped(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_read_without_their_fillers() {
        for (text, not, verb, arguments) in [
            ("have.status(200)", false, "status", Some("200")),
            ("to.not.be.error", true, "error", None),
            ("to.be.oneOf([1, 2])", false, "oneOf", Some("[1, 2]")),
            ("to.deep.equal({a: 1})", false, "equal", Some("{a: 1}")),
            ("to.be.at.most(5)", false, "most", Some("5")),
        ] {
            let chain = Chain::parse(text).unwrap();
            assert_eq!((chain.not, chain.verb.as_str(), chain.arguments), (not, verb, arguments), "{text}");
        }
        assert!(Chain::parse("to.have.property('a').that.equals(1)").is_none());
        assert!(Chain::parse("").is_none() && Chain::parse(".to").is_none());
    }

    #[test]
    fn blocks_that_are_carried_out_in_any_case() {
        for head in ["pm.test('a', function ()", "pm.test(\"a\", () =>", "try", ""] {
            assert!(is_transparent(head), "{head}");
        }
        assert!(!is_transparent("if (a)") && !is_transparent("pm.test.skip('a', () =>"));
        assert!(is_success("if (pm.response.code === 200)") && is_success("if(responseCode.code==201)"));
        assert!(!is_success("if (pm.response.code === 404)") && !is_success("if (a) b"));
    }

    #[test]
    fn lists_and_expressions_become_regular_expressions() {
        assert_eq!(one_of("['a.b', \"c\", 5]").as_deref(), Some("^(?:a\\.b|c|5)$"));
        assert_eq!(one_of("[a]"), None);
        assert_eq!(regex("/^a\\/b$/i").as_deref(), Some("(?i)^a/b$"));
        assert_eq!(regex("/(?=a)/"), None);
    }
}
