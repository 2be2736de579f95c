//! Values that are known before the run, and texts with Gatling's expressions in them.

use std::sync::Arc;

use super::Importer;
use super::tree::{Expression, Head, Kind, Link, Span};
use crate::amount::Ratio;
use crate::flow::{Slot, Syntax, Writing};

/// Gatling's way of writing slots; the older one, `${…}`, is written so before texts are read.
pub(super) const SYNTAX: Syntax = Syntax { open: "#{", close: "}", slot };

/// Calls that change nothing about a value here.
const CASTS: [&str; 15] = [
    "toInt",
    "toLong",
    "toDouble",
    "toString",
    "intValue",
    "longValue",
    "doubleValue",
    "trim",
    "asJava",
    "asScala",
    "toSeq",
    "toList",
    "toArray",
    "stripLineEnd",
    "iterator",
];

/// The meaning of the text between `#{` and `}`.
fn slot(inside: &str) -> Slot {
    let unknown = |note: &str| Slot::Unknown(note.to_owned());
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    if is_name(inside) {
        return Slot::Variable(inside.to_owned());
    }
    let Some((name, arguments)) = inside.split_once('(') else {
        return unknown("variables are texts here, without members: it is sent as it is written");
    };
    let arguments = arguments.trim_end().strip_suffix(')').unwrap_or(arguments);
    let numbers: Vec<Option<i64>> = arguments.split(',').map(|text| text.trim().parse().ok()).collect();
    match (name.trim(), numbers.as_slice()) {
        ("randomUuid" | "randomSecureUuid", _) if arguments.trim().is_empty() => {
            Slot::Template("uuid".to_owned())
        }
        ("currentTimeMillis", _) if arguments.trim().is_empty() => Slot::Template("timestamp_ms".to_owned()),
        // The end is not a part of the range there.
        ("randomInt" | "randomLong", [Some(low), Some(high)]) if *low >= 0 && low < high => {
            Slot::Template(format!("random_int({low}, {})", high - 1))
        }
        ("randomInt", _) if arguments.trim().is_empty() => Slot::Noted(
            "random_int(0, 2147483647)".to_owned(),
            "random numbers are not negative here".to_owned(),
        ),
        ("randomAlphanumeric", [Some(length)]) if (1..=4096).contains(length) => {
            Slot::Template(format!("random_string({length})"))
        }
        ("randomDouble", _) if !arguments.trim().is_empty() => {
            let parts: Vec<Option<Ratio>> =
                arguments.split(',').map(|text| Ratio::decimal(text.trim())).collect();
            let whole = |ratio: &Ratio| ratio.is_whole().then(|| ratio.ceil());
            match parts.as_slice() {
                [Some(low), Some(high), rest @ ..] if rest.len() <= 1 => match (whole(low), whole(high)) {
                    (Some(low), Some(high)) if low < high => {
                        let digits = rest.first().copied().flatten().and_then(|digits| whole(&digits));
                        Slot::Template(format!("random_float({low}, {high}, {})", digits.unwrap_or(9).min(9)))
                    }
                    _ => unknown("plans draw between whole numbers: it is sent as it is written"),
                },
                _ => unknown("plans have no such function: it is sent as it is written"),
            }
        }
        _ => unknown("plans have no such function: it is sent as it is written"),
    }
}

/// A text whose older slots, `${…}`, are written as `#{…}`.
pub(super) fn expressions(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let is_escaped = rest[..at].ends_with('$');
        let name = rest[at + 2..].split('}').next().unwrap_or_default();
        let is_slot = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && !name.contains(['{', ' ', '\n', '"'])
            && rest[at + 2..].contains('}');
        match (is_escaped, is_slot) {
            (true, _) => {
                written.push_str(&rest[..at - 1]);
                written.push_str("${");
            }
            (false, true) => {
                written.push_str(&rest[..at]);
                written.push_str("#{");
            }
            (false, false) => written.push_str(&rest[..at + 2]),
        }
        rest = &rest[at + 2..];
    }
    written.push_str(rest);
    written
}

/// The name of the variable that a text is, `#{name}` alone.
pub(super) fn only_variable(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("#{")?.strip_suffix('}')?.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    is_name.then_some(name)
}

impl Importer<'_> {
    /// A text that is known before the run, with its slots written as `#{…}`; `None` for anything else.
    pub(super) fn text_of(&mut self, expression: &Expression) -> Option<String> {
        self.depth += 1;
        let found = if self.depth > super::tree::DEEPEST { None } else { self.text_within(expression) };
        self.depth -= 1;
        found
    }

    fn text_within(&mut self, expression: &Expression) -> Option<String> {
        let expression = self.resolved(expression);
        match &expression.kind {
            Kind::String(text) => Some(expressions(text)),
            Kind::Number(digits) => Some(digits.clone()),
            Kind::Boolean(value) => Some(value.to_string()),
            Kind::Product(pair) => {
                let (one, other) = (self.number(&pair.0)?, self.number(&pair.1)?);
                decimal(&one.times(other)?)
            }
            Kind::Sum(terms) => {
                if !self.goes_on(terms.len(), expression.span) {
                    return None;
                }
                let mut texts = Vec::new();
                let mut numbers = true;
                for term in terms.iter() {
                    numbers &= self.is_number(term);
                    texts.push(self.text_of(term)?);
                }
                if numbers {
                    let sum =
                        texts.iter().try_fold(Ratio::whole(0), |sum, text| sum.plus(Ratio::decimal(text)?));
                    return decimal(&sum?);
                }
                Some(texts.concat())
            }
            Kind::Lambda(function) if function.parameters.is_empty() => {
                let function = Arc::clone(function);
                let result = self.result(&function, &[], expression.span)?;
                self.text_of(&result)
            }
            Kind::Chain(chain) => {
                let (name, links) = match &chain.head {
                    Head::Name(name) => (name.as_str(), chain.links.as_slice()),
                    Head::Value(value) => {
                        let value = value.as_ref().clone();
                        return self.changed(&value, &chain.links);
                    }
                };
                self.outside_value(name, links, expression.span)
            }
            _ => None,
        }
    }

    /// Returns `true` for a number that is written as one.
    fn is_number(&mut self, expression: &Expression) -> bool {
        match &self.resolved(expression).kind {
            Kind::Number(_) | Kind::Product(_) => true,
            Kind::Chain(chain) => matches!(&chain.head, Head::Name(name)
                if ["Integer", "Long", "Double"].contains(&name.as_str())),
            _ => false,
        }
    }

    /// A known value after calls that change its form.
    fn changed(&mut self, value: &Expression, links: &[Link]) -> Option<String> {
        let mut text = self.text_of(value)?;
        for link in links {
            match link.name.as_str() {
                "stripMargin" => {
                    let lines: Vec<&str> = text
                        .split('\n')
                        .map(|line| line.trim_start().strip_prefix('|').unwrap_or(line))
                        .collect();
                    text = lines.join("\n");
                }
                name if CASTS.contains(&name) => {}
                "" | "apply" => {}
                _ => return None,
            }
        }
        Some(text)
    }

    /// Values of properties and the environment: their defaults are taken, with a note.
    fn outside_value(&mut self, name: &str, links: &[Link], span: Span) -> Option<String> {
        let arguments = |link: &Link| link.arguments.clone().unwrap_or_default();
        let first = links.first()?;
        let is_cast = |link: &Link| CASTS.contains(&link.name.as_str());
        match (name, first.name.as_str()) {
            (
                "Integer" | "Long" | "Double" | "Float",
                "parseInt" | "parseLong" | "parseDouble" | "valueOf" | "parseFloat",
            )
            | ("String", "valueOf") => {
                let given = arguments(first);
                if !links[1..].iter().all(is_cast) {
                    return None;
                }
                return self.text_of(given.first()?);
            }
            ("parseInt" | "parseFloat" | "Number" | "String" | "RawString", "") => {
                let given = arguments(first);
                return self.text_of(given.first()?);
            }
            // What is in it may have no value: the call behind it says which one is taken then.
            ("Option" | "Optional" | "Try", "" | "ofNullable" | "of" | "apply") => {
                let other =
                    links.iter().find(|link| ["getOrElse", "orElse"].contains(&link.name.as_str()))?;
                let given = arguments(other);
                return self.default_of(given.first()?, span);
            }
            _ => {}
        }
        let names = [
            ("System", "getProperty"),
            ("System", "getenv"),
            ("Integer", "getInteger"),
            ("Long", "getLong"),
            ("getParameter", ""),
            ("getEnvironmentVariable", ""),
            ("sys", "props"),
            ("sys", "env"),
        ];
        if !names.contains(&(name, first.name.as_str())) {
            return None;
        }
        let other = links.iter().find(|link| {
            ["getOrElse", "getOrDefault", "orElse", "getProperty"].contains(&link.name.as_str())
        });
        let given =
            other.map(arguments).filter(|given| !given.is_empty()).unwrap_or_else(|| arguments(first));
        match given.as_ref() {
            [_, default] => self.default_of(default, span),
            [default] if other.is_some_and(given_alone) => self.default_of(default, span),
            _ => {
                self.note(span, "it has no value here, and no default");
                None
            }
        }
    }

    fn default_of(&mut self, default: &Expression, span: Span) -> Option<String> {
        let value = self.text_of(default)?;
        self.note(span, &format!("its default is taken: {}", crate::findings::quoted(&value)));
        Some(value)
    }

    /// A number from 0 that is known before the run.
    pub(super) fn number(&mut self, expression: &Expression) -> Option<Ratio> {
        Ratio::decimal(self.text_of(expression)?.trim())
    }

    /// A whole number from 0.
    pub(super) fn count(&mut self, expression: &Expression) -> Option<u64> {
        let number = self.number(expression)?;
        if number.is_whole() { u64::try_from(number.ceil()).ok() } else { None }
    }

    /// A time in nanoseconds; a number alone is one of seconds.
    pub(super) fn time(&mut self, expression: &Expression) -> Option<u64> {
        let expression = self.resolved(expression);
        match &expression.kind {
            Kind::Pairs(pairs) => {
                let member = |wanted: &str| {
                    pairs.iter().find(|(key, _)| matches!(&key.kind, Kind::String(key) if key == wanted))
                };
                let (amount, unit) = (member("amount")?.1.clone(), member("unit")?.1.clone());
                let unit = self.text_of(&unit)?;
                self.number(&amount)?.times(unit_of(&unit)?)?.nanos()
            }
            Kind::Chain(chain) => {
                let links = chain.links.as_slice();
                let (head, call) = match &chain.head {
                    // `Duration.ofSeconds(5)`
                    Head::Name(name) if name == "Duration" => {
                        let call = links.first()?;
                        let given = call.arguments.clone()?;
                        let unit = call.name.strip_prefix("of").unwrap_or(&call.name);
                        let unit =
                            if call.name.is_empty() { None } else { unit_of(&unit.to_ascii_lowercase()) };
                        return match (unit, given.as_ref()) {
                            (Some(unit), [amount]) => self.number(amount)?.times(unit)?.nanos(),
                            // `Duration(5, "seconds")` of Scala.
                            (None, [amount, unit]) => {
                                let written = self.said(unit.span).to_ascii_lowercase();
                                let written = written.trim_matches('"').rsplit('.').next()?.to_owned();
                                self.number(amount)?.times(unit_of(&written)?)?.nanos()
                            }
                            _ => None,
                        };
                    }
                    Head::Name(name) => {
                        let last = links.last()?;
                        let head =
                            Expression::name(name, expression.span).followed(&links[..links.len() - 1]);
                        (head, last)
                    }
                    Head::Value(value) => {
                        let last = links.last()?;
                        let head = value.as_ref().clone().followed(&links[..links.len() - 1]);
                        (head, last)
                    }
                };
                // `5.seconds`, `users seconds`
                match unit_of(&call.name.to_ascii_lowercase()) {
                    Some(unit) => self.number(&head)?.times(unit)?.nanos(),
                    None => self.number(&expression)?.nanos(),
                }
            }
            _ => self.number(&expression)?.nanos(),
        }
    }

    /// A text as a template of a plan; `None`, with a note, if it is not known before the run.
    pub(super) fn template(&mut self, expression: &Expression, writing: Writing) -> Option<String> {
        let Some(text) = self.text_of(expression) else {
            self.note(expression.span, "it is not known before the run: it is left out");
            return None;
        };
        Some(self.written(&text, writing, expression.span))
    }

    /// Writes a text that is known as a template of a plan.
    pub(super) fn written(&mut self, text: &str, writing: Writing, span: Span) -> String {
        let at = self.at(span);
        self.variables.template(text, writing, &at, &mut self.findings)
    }
}

/// Returns `true` for a call whose only argument is the default: `sys.env.get("A").getOrElse("b")`.
fn given_alone(link: &Link) -> bool {
    link.name == "orElse" || link.name == "getOrElse"
}

/// A unit of time in seconds.
fn unit_of(name: &str) -> Option<Ratio> {
    Some(match name {
        "ns" | "nanos" | "nano" | "nanoseconds" | "nanosecond" => Ratio::new(1, 1_000_000_000)?,
        "micros" | "microseconds" | "microsecond" => Ratio::new(1, 1_000_000)?,
        "ms" | "millis" | "milli" | "milliseconds" | "millisecond" => Ratio::new(1, 1_000)?,
        "s" | "seconds" | "second" => Ratio::whole(1),
        "minutes" | "minute" => Ratio::whole(60),
        "hours" | "hour" => Ratio::whole(3_600),
        "days" | "day" => Ratio::whole(86_400),
        _ => return None,
    })
}

/// A number as digits; `None` if it has too many of them.
fn decimal(number: &Ratio) -> Option<String> {
    if number.is_whole() {
        return Some(number.ceil().to_string());
    }
    let billions = number.times_whole(1_000_000_000)?;
    if !billions.is_whole() {
        return None;
    }
    let billions = billions.ceil();
    let digits = format!("{}.{:09}", billions / 1_000_000_000, billions % 1_000_000_000);
    Some(digits.trim_end_matches('0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_their_functions() {
        let template = |text: &str| Slot::Template(text.to_owned());
        for (inside, meaning) in [
            ("id", Slot::Variable("id".to_owned())),
            ("randomUuid()", template("uuid")),
            ("randomInt(1, 10)", template("random_int(1, 9)")),
            ("randomLong(0,2)", template("random_int(0, 1)")),
            ("randomAlphanumeric(8)", template("random_string(8)")),
            ("randomDouble(1, 3, 2)", template("random_float(1, 3, 2)")),
            ("currentTimeMillis()", template("timestamp_ms")),
        ] {
            assert_eq!(slot(inside), meaning, "{inside}");
        }
        for inside in ["a.b", "list(0)", "list.size()", "randomInt(9, 1)", "a.exists()", "randomDouble(1)"] {
            assert!(matches!(slot(inside), Slot::Unknown(_)), "{inside}");
        }
    }

    #[test]
    fn older_slots_are_written_as_newer_ones() {
        for (written, text) in [
            ("/a/${id}/#{x}", "/a/#{id}/#{x}"),
            ("$${id}", "${id}"),
            ("${a b}", "${a b}"),
            ("${", "${"),
            ("${}", "${}"),
        ] {
            assert_eq!(expressions(written), text, "{written}");
        }
        assert_eq!(only_variable(" #{a} "), Some("a"));
        assert_eq!(only_variable("#{a}b"), None);
    }
}
