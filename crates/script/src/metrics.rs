//! `plimsoll.metric(NAME):add(VALUE, TAGS)`: scripts of steps record values of the plan's own metrics.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::{Lua, Table, Value};
use plimsoll_core::suggest;
use plimsoll_scenario::ScriptValue;

use crate::output::kind;

/// Values that one call of a script may record.
const MOST_VALUES: usize = 1_000;
/// Tags that a value may have.
const MOST_TAGS: usize = 16;

/// The values that were recorded and not yet taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded(Rc<RefCell<Vec<ScriptValue>>>);

impl Recorded {
    /// Moves the values behind others.
    pub(crate) fn take(&self, values: &mut Vec<ScriptValue>) {
        values.append(&mut self.0.borrow_mut());
    }

    /// Forgets the values of a call that has failed.
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    fn add(&self, value: ScriptValue) -> Result<(), String> {
        let mut values = self.0.borrow_mut();
        if values.len() >= MOST_VALUES {
            return Err(format!("one call records at most {MOST_VALUES} values"));
        }
        values.push(value);
        Ok(())
    }
}

/// Adds the table `plimsoll` to a state whose scripts may record values of these metrics.
pub(crate) fn install(lua: &Lua, names: &[String]) -> mlua::Result<Recorded> {
    let recorded = Recorded::default();
    let (names, into) = (names.to_vec(), recorded.clone());
    let metric = move |lua: &Lua, name: Value| handle(lua, &names, &into, &name);
    let table = lua.create_table()?;
    table.set("metric", lua.create_function(metric)?)?;
    lua.globals().set("plimsoll", table)?;
    Ok(recorded)
}

/// The table of a metric, with the function `add`.
fn handle(lua: &Lua, names: &[String], recorded: &Recorded, name: &Value) -> mlua::Result<Table> {
    let number = number_of(names, name).map_err(failed)?;
    let (into, name) = (recorded.clone(), names[usize::from(number)].clone());
    let add = move |_: &Lua, (of, value, tags): (Value, Value, Value)| {
        let recorded = match of {
            Value::Table(_) => value_of(number, &value, &tags).and_then(|value| into.add(value)),
            _ => Err("write `metric:add(VALUE)`, with a colon".to_owned()),
        };
        recorded.map_err(|why| failed(format!("metric `{name}`: {why}")))
    };
    let table = lua.create_table()?;
    table.set("add", lua.create_function(add)?)?;
    Ok(table)
}

fn failed(why: String) -> mlua::Error {
    mlua::Error::RuntimeError(why)
}

/// The position of the metric with this name.
fn number_of(names: &[String], name: &Value) -> Result<u16, String> {
    let Value::String(name) = name else {
        return Err(format!("the name of a metric is a string, not a {}", kind(name)));
    };
    let name = name.to_string_lossy();
    let found = names.iter().position(|known| *known == name).and_then(|place| u16::try_from(place).ok());
    found.ok_or_else(|| match suggest::closest(&name, names.iter().map(String::as_str)) {
        Some(near) => format!("no metric is called `{}`: did you mean `{near}`?", name.escape_debug()),
        None => {
            format!("no metric is called `{}`: declare it in `metrics` of the plan", name.escape_debug())
        }
    })
}

fn value_of(metric: u16, value: &Value, tags: &Value) -> Result<ScriptValue, String> {
    let value = match value {
        Value::Nil => return Err("`add` needs a value".to_owned()),
        value => {
            text(value).ok_or_else(|| format!("a value is a number, true or false, not a {}", kind(value)))?
        }
    };
    Ok(ScriptValue { metric, value, tags: tags_of(tags)? })
}

fn tags_of(tags: &Value) -> Result<Vec<(String, String)>, String> {
    let table = match tags {
        Value::Nil => return Ok(Vec::new()),
        Value::Table(table) => table,
        other => return Err(format!("tags are a table such as {{shop = \"a\"}}, not a {}", kind(other))),
    };
    let mut all = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (name, value) = pair.map_err(|error| error.to_string())?;
        let name = match &name {
            Value::String(name) if is_name(&name.to_string_lossy()) => name.to_string_lossy(),
            Value::String(name) => {
                let name = name.to_string_lossy();
                return Err(format!("`{}` cannot be the name of a tag", name.escape_debug()));
            }
            other => return Err(format!("the name of a tag is a string, not a {}", kind(other))),
        };
        let Some(text) = text(&value) else {
            return Err(format!("the tag `{name}` is a {}, not a string", kind(&value)));
        };
        if all.len() == MOST_TAGS {
            return Err(format!("a value has at most {MOST_TAGS} tags"));
        }
        all.push((name, text));
    }
    all.sort_unstable();
    Ok(all)
}

/// Names of tags are those that a plan may write.
fn is_name(name: &str) -> bool {
    let begins = name.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_');
    begins && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
}

/// Strings, numbers and truths as text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string_lossy()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Boolean(truth) => Some(truth.to_string()),
        _ => None,
    }
}
