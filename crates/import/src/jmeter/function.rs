//! Functions in texts of JMeter: `${__name(arguments)}`.

use crate::flow::Slot;

/// The meaning of the text between `${` and `}`.
pub(super) fn slot(inside: &str) -> Slot {
    let Some(function) = inside.strip_prefix("__") else { return Slot::Variable(inside.to_owned()) };
    let (name, arguments) = match function.split_once('(') {
        Some((name, rest)) => (name, rest.trim_end().strip_suffix(')').unwrap_or(rest)),
        None => (function, ""),
    };
    let arguments = arguments_of(arguments);
    let argument = |index: usize| arguments.get(index).map_or("", |text| text.trim());
    let template = |text: &str| Slot::Template(text.to_owned());
    let unknown = || Slot::Unknown("plans have no such function: it is sent as it is written".to_owned());
    match name {
        "UUID" => template("uuid"),
        "Random" => match (argument(0).parse::<i64>(), argument(1).parse::<i64>()) {
            (Ok(low), Ok(high)) if low <= high => Slot::Template(format!("random_int({low}, {high})")),
            _ => unknown(),
        },
        "RandomString" => match argument(0).parse::<u32>() {
            Ok(length @ 1..=4096) => {
                let template = format!("random_string({length})");
                match argument(1) {
                    "" => Slot::Template(template),
                    _ => Slot::Noted(
                        template,
                        "letters and digits are drawn, and not those that are named".to_owned(),
                    ),
                }
            }
            _ => unknown(),
        },
        "time" | "timeShift" if argument(0).is_empty() && name == "time" => template("timestamp_ms"),
        "time" if argument(0) == "/1000" => template("timestamp_s"),
        "counter" => {
            let becomes = "it numbers the iterations of the whole run, from 0";
            Slot::Noted("sequence".to_owned(), becomes.to_owned())
        }
        "P" => property(argument(0), arguments.get(1).map_or("1", |text| text.trim())),
        "property" => property(argument(0), arguments.get(2).map_or("", |text| text.trim())),
        _ => unknown(),
    }
}

/// A property, which `-Jname=value` sets there and a variable of the environment here.
fn property(name: &str, default: &str) -> Slot {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = name.chars().map(|c| if is_name(c) { c } else { '?' }).collect();
    // The text behind the comma is taken as it is.
    let is_plain =
        !default.contains(['{', '}', '(', ')', '$', '"', '\'']) && !default.contains(char::is_control);
    let is_slot = default.starts_with("${") && default.ends_with('}') && !default.contains(char::is_control);
    if name.is_empty() || name.contains('?') || !(is_plain || is_slot) || default.trim() != default {
        return Slot::Unknown("it names no property of a plan: it is sent as it is written".to_owned());
    }
    let name = name.replace(['.', '-'], "_");
    // Another slot stands for the default: its value is taken.
    if is_slot {
        return Slot::Default(default.to_owned(), format!("env({name},)"));
    }
    let template =
        if default.is_empty() { format!("env({name},)") } else { format!("env({name}, {default})") };
    Slot::Default(default.to_owned(), template)
}

/// Arguments of a function: `\,` is a comma in one of them.
fn arguments_of(text: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if matches!(chars.peek(), Some(',' | '\\' | '$')) => {
                let escaped = chars.next().unwrap_or_default();
                arguments.last_mut().unwrap_or(&mut String::new()).push(escaped);
            }
            ',' => arguments.push(String::new()),
            c => arguments.last_mut().unwrap_or(&mut String::new()).push(c),
        }
    }
    arguments
}

/// A condition of an If Controller as plans write it: two sides that are compared, or a variable that is
/// `true`. `None` for anything else. `name` gives a variable's name in the plan.
pub(super) fn condition(written: &str, mut name: impl FnMut(&str) -> String) -> Option<String> {
    let mut inside = written.trim();
    for function in ["${__jexl3(", "${__jexl2(", "${__groovy(", "${__javaScript("] {
        if let Some(rest) = inside.strip_prefix(function) {
            // A second argument is the variable that the result goes into.
            let rest = rest.strip_suffix(")}")?;
            inside = rest.trim_end().trim_end_matches(',').trim();
        }
    }
    if let Some(variable) = variable_of(inside) {
        return Some(format!("${{{}}} == true", name(&variable)));
    }
    let operators = ["==", "!=", "<=", ">=", "<", ">"];
    let (at, operator) = inside
        .char_indices()
        .filter_map(|(at, _)| operators.iter().find(|op| inside[at..].starts_with(*op)).map(|op| (at, *op)))
        .next()?;
    let mut side = |text: &str| {
        let text = text.trim();
        let unquoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
        let bare = unquoted('"').or_else(|| unquoted('\'')).unwrap_or(text);
        if let Some(variable) = variable_of(bare) {
            return Some(format!("${{{}}}", name(&variable)));
        }
        // `vars.get("a")` of Groovy.
        if let Some(variable) = text.strip_prefix("vars.get(").and_then(|rest| rest.strip_suffix(')')) {
            let variable = variable.trim().trim_matches(['"', '\'']);
            if variable.is_empty() || variable.contains(['"', '\'', '(', ')']) {
                return None;
            }
            return Some(format!("${{{}}}", name(variable)));
        }
        let is_literal = bare.len() < text.len() || bare.parse::<f64>().is_ok_and(f64::is_finite);
        let is_simple = !bare.contains(['$', '"', '\'', '(', '&', '|', '<', '>', '=']);
        (is_literal && is_simple)
            .then(|| format!("\"{bare}\""))
            .or_else(|| ["true", "false"].contains(&bare).then(|| bare.to_owned()))
    };
    let (left, right) = (side(&inside[..at])?, side(&inside[at + operator.len()..])?);
    Some(format!("{left} {operator} {right}"))
}

/// The name in `${name}`, if the text is that alone and no function.
fn variable_of(text: &str) -> Option<String> {
    let inside = text.trim().strip_prefix("${")?.strip_suffix('}')?.trim();
    (!inside.is_empty() && !inside.starts_with("__") && !inside.contains(['{', '}', '$', '(']))
        .then(|| inside.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_become_those_of_plans() {
        let template = |text: &str| Slot::Template(text.to_owned());
        for (inside, meaning) in [
            ("user", Slot::Variable("user".to_owned())),
            ("__UUID", template("uuid")),
            ("__UUID()", template("uuid")),
            ("__Random(1,100)", template("random_int(1, 100)")),
            ("__Random(-5, 5, x)", template("random_int(-5, 5)")),
            ("__RandomString(8,,)", template("random_string(8)")),
            ("__time", template("timestamp_ms")),
            ("__time()", template("timestamp_ms")),
            ("__time(/1000,)", template("timestamp_s")),
            ("__P(users,10)", Slot::Default("10".to_owned(), "env(users, 10)".to_owned())),
            ("__P(users)", Slot::Default("1".to_owned(), "env(users, 1)".to_owned())),
            ("__property(my.host,,h:80)", Slot::Default("h:80".to_owned(), "env(my_host, h:80)".to_owned())),
            ("__P(a,)", Slot::Default(String::new(), "env(a,)".to_owned())),
            ("__P(a,b\\,c)", Slot::Default("b,c".to_owned(), "env(a, b,c)".to_owned())),
        ] {
            assert_eq!(slot(inside), meaning, "{inside}");
        }
        for inside in [
            "__Random(a,b)",
            "__Random(9,1)",
            "__groovy(1+1)",
            "__P(,1)",
            "__P(a b,1)",
            "__time(yyyy,)",
            "__",
        ] {
            assert!(matches!(slot(inside), Slot::Unknown(_)), "{inside}");
        }
        assert!(matches!(slot("__counter(TRUE,)"), Slot::Noted(..)));
    }

    #[test]
    fn conditions_compare_two_sides() {
        for (written, ours) in [
            ("\"${role}\" == \"admin\"", Some("${role} == \"admin\"")),
            ("${__jexl3(\"${role}\" != \"admin\",)}", Some("${role} != \"admin\"")),
            ("${__groovy(vars.get(\"n\") == '5')}", Some("${n} == \"5\"")),
            ("${count} < 10", Some("${count} < \"10\"")),
            ("${__jexl3(${ok})}", Some("${ok} == true")),
            ("${ok}", Some("${ok} == true")),
            ("${a} == ${b}", Some("${a} == ${b}")),
            ("${a} == true", Some("${a} == true")),
            ("${a} == \"b\" && ${c} == \"d\"", None),
            ("${__groovy(vars.get('n').toInteger() > 5)}", None),
            ("${JMeterThread.last_sample_ok}", Some("${JMeterThread.last_sample_ok} == true")),
            ("", None),
            ("a", None),
        ] {
            assert_eq!(condition(written, str::to_owned).as_deref(), ours, "{written}");
        }
    }
}
