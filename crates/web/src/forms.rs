//! Forms: arguments of a command by their names, and the command line made from them.

use serde_json::{Map, Value};

use crate::options::{CommandFlags, FlagValue};
use crate::refusal::Refusal;

/// The words that follow the command: its positional arguments, then its flags. `forms` has the commands with
/// their arguments; of others nothing is taken.
///
/// # Errors
/// There is no such command or argument, or it has another kind of value.
pub(crate) fn words_of(
    forms: &Value,
    command: &str,
    given: &Map<String, Value>,
) -> Result<Vec<String>, Refusal> {
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let commands = list(forms, "commands");
    let Some(form) = commands.iter().find(|form| form["name"] == command) else {
        let error = format!("there is no form for `{}`", command.escape_debug());
        return Err(Refusal::unprocessable(error, "reload the page"));
    };
    let (mut positional, mut flags) = (Vec::new(), Vec::new());
    let arguments = list(form, "arguments");
    if let Some(unknown) = given.keys().find(|id| !arguments.iter().any(|argument| argument["id"] == **id)) {
        let error = format!("`{command}` has no argument `{}`", unknown.escape_debug());
        return Err(Refusal::unprocessable(error, "reload the page"));
    }
    for argument in &arguments {
        let id = argument["id"].as_str().unwrap_or_default();
        let Some(value) = given.get(id) else { continue };
        let values = values(id, value)?;
        match (argument["flag"].as_str(), argument["value"].as_str()) {
            (Some(flag), None) => {
                if *value != Value::Bool(false) {
                    flags.push(flag.to_owned());
                }
            }
            (Some(flag), Some(_)) => flags.extend(values.iter().map(|value| format!("{flag}={value}"))),
            (None, _) => {
                if let Some(flag) = values.iter().find(|value| value.starts_with('-')) {
                    let error = format!("`{}` is not a value of {id}", flag.escape_debug());
                    return Err(Refusal::unprocessable(error, "a value does not begin with a hyphen here"));
                }
                positional.extend(values);
            }
        }
    }
    positional.extend(flags);
    Ok(positional)
}

/// The texts of a value; none of a switch.
fn values(id: &str, value: &Value) -> Result<Vec<String>, Refusal> {
    let wrong = || {
        let error = format!("the value of {id} is not a text, list of texts or switch");
        Refusal::unprocessable(error, "reload the page")
    };
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(wrong()),
    };
    match value {
        Value::Bool(_) => Ok(Vec::new()),
        Value::Array(values) => values.iter().map(text).collect(),
        value => Ok(vec![text(value)?]),
    }
}

/// Finds the word among others that a mistyped one was probably meant to be.
pub(crate) type Closest = for<'a> fn(&str, &[&'a str]) -> Option<&'a str>;

/// Flags of a run as they were sent, each as one word that the program cannot take for anything else.
///
/// # Errors
/// One is not permitted, or has no value where it should or the other way round.
pub(crate) fn permitted(
    flags: &[String],
    known: &CommandFlags,
    closest: Closest,
) -> Result<Vec<String>, Refusal> {
    let mut words = Vec::new();
    let mut given = flags.iter();
    while let Some(word) = given.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let mut all = known.permitted.iter();
        let Some(flag) = all.find(|flag| flag.name == name || flag.others.iter().any(|other| other == name))
        else {
            return Err(not_permitted(name, known, closest));
        };
        let name = &flag.name;
        match (flag.value, value) {
            (FlagValue::Never, Some(_)) => {
                return Err(Refusal::unprocessable(format!("{name} has no value"), "leave the value out"));
            }
            (FlagValue::Never | FlagValue::Optional, None) => words.push(name.clone()),
            (FlagValue::Always | FlagValue::Optional, Some(value)) => words.push(format!("{name}={value}")),
            (FlagValue::Always, None) => match given.next() {
                Some(value) => words.push(format!("{name}={value}")),
                None => {
                    return Err(Refusal::unprocessable(
                        format!("{name} needs a value"),
                        "write it behind the flag",
                    ));
                }
            },
        }
    }
    Ok(words)
}

/// The refusal of a word that is no flag which a page may give: one of the command line, or none at all.
fn not_permitted(name: &str, known: &CommandFlags, closest: Closest) -> Refusal {
    let shown = name.escape_debug();
    if !name.starts_with('-') {
        let error = format!("`{shown}` is not a flag");
        return Refusal::unprocessable(error, "flags begin with `--`; the load is that of the plan");
    }
    if let Some(refused) = known.others.iter().find(|other| other.name == name) {
        return Refusal::unprocessable(format!("`{shown}` cannot be used from the page"), refused.hint);
    }
    let names: Vec<&str> = known.permitted.iter().map(|flag| flag.name.as_str()).collect();
    let hint = match closest(name, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "the flags are those of the command line, each with its value behind it".to_owned(),
    };
    Refusal::unprocessable(format!("there is no flag `{shown}`"), hint)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::options::{PermittedFlag, RefusedFlag};

    fn forms() -> Value {
        json!({"commands": [{"name": "crud", "arguments": [
            {"id": "server", "flag": null, "value": "URL", "multiple": true},
            {"id": "rate", "flag": "--rate", "value": "RATE", "multiple": false},
            {"id": "header", "flag": "--header", "value": "FIELD", "multiple": true},
            {"id": "http2", "flag": "--http2", "value": null, "multiple": false},
        ]}]})
    }

    fn words(given: &Value) -> Result<Vec<String>, Refusal> {
        words_of(&forms(), "crud", given.as_object().unwrap())
    }

    #[test]
    fn arguments_become_words_that_mean_nothing_else() {
        let given = json!({"http2": true, "rate": "--out=json=/etc/x", "header": ["a: b", "-c"], "server": "http://a/"});
        let expected = ["http://a/", "--rate=--out=json=/etc/x", "--header=a: b", "--header=-c", "--http2"];
        assert_eq!(words(&given).unwrap(), expected);
        assert_eq!(words(&json!({"http2": false})).unwrap(), [""; 0]);
        for wrong in
            [json!({"out": "x"}), json!({"server": "--out=x"}), json!({"rate": {}}), json!({"rate": [[]]})]
        {
            assert!(words(&wrong).is_err(), "{wrong}");
        }
        assert!(words_of(&forms(), "sink", &Map::new()).is_err());
    }

    #[test]
    fn only_known_flags_pass() {
        let flag = |name: &str, other: &str, value| PermittedFlag {
            name: name.to_owned(),
            others: vec![other.to_owned()],
            value,
        };
        let permitted_flags = vec![
            flag("--rate", "-R", FlagValue::Always),
            flag("--http2", "-2", FlagValue::Never),
            flag("--probe", "--probes", FlagValue::Optional),
        ];
        let refused = |(name, hint): (&str, &'static str)| RefusedFlag { name: name.to_owned(), hint };
        let others = [("--out", "a result"), ("-o", "a result"), ("--fleet", "machines")].map(refused);
        let known = CommandFlags { permitted: permitted_flags, others: others.to_vec() };
        fn closest<'a>(word: &str, among: &[&'a str]) -> Option<&'a str> {
            among.iter().copied().find(|one| one.starts_with(word))
        }
        let of = |flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
            permitted(&flags, &known, closest)
        };
        let passed = of(&["-R", "--out=x", "--http2", "--rate=5k/s", "--probe", "--probes=7"]).unwrap();
        assert_eq!(passed, ["--rate=--out=x", "--http2", "--rate=5k/s", "--probe", "--probe=7"]);
        for wrong in [
            &["--out", "json=/etc/x"][..],
            &["--rate"],
            &["--http2=x"],
            &["http://a/"],
            &["--"],
            &[""],
            &["-R5"],
            &["--rat=5"],
        ] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
        // Symptom: a flag that was mistyped was said to write files.
        for (word, error, hint) in [
            ("--out=json=x", "`--out` cannot be used from the page", "a result"),
            ("-o", "`-o` cannot be used from the page", "a result"),
            ("--fleet", "`--fleet` cannot be used from the page", "machines"),
            ("--rat=5", "there is no flag `--rat`", "did you mean `--rate`?"),
            ("--tmeout", "there is no flag `--tmeout`", "the flags are those of the command line"),
            ("2s", "`2s` is not a flag", "flags begin with `--`"),
        ] {
            let refusal = of(&[word]).unwrap_err();
            assert!(refusal.error == error && refusal.hint.starts_with(hint), "{word}: {refusal:?}");
        }
    }
}
