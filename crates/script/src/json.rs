//! `require "cjson"` and `require "cjson.safe"`: JSON for scripts, with the functions and the meaning of the
//! compiled module of that name, which most scripts for wrk take.

use mlua::{Function, Lua, Table, Value};
use serde_json::{Map, Number, Value as Json};

/// Levels of nesting that are written; as many are read (`serde_json`).
const MOST_LEVELS: usize = 128;
/// An array whose largest index is above this, and above twice its entries, is refused: most of it would be
/// `null`.
const DENSE: usize = 10;

/// The loader of this module, if it is one of the two.
pub(crate) fn loader(lua: &Lua, name: &str) -> Option<mlua::Result<Function>> {
    let safe = match name {
        "cjson" => false,
        "cjson.safe" => true,
        _ => return None,
    };
    Some(lua.create_function(move |lua, ()| module(lua, safe)))
}

/// The table of functions. The safe ones return nil and a message instead of raising an error.
fn module(lua: &Lua, safe: bool) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let answer = move |lua: &Lua, result: mlua::Result<Value>| match result {
        Err(mlua::Error::RuntimeError(message)) if safe => {
            Ok((Value::Nil, Some(lua.create_string(message)?)))
        }
        other => other.map(|value| (value, None)),
    };
    table.set(
        "encode",
        lua.create_function(move |lua, value: Value| {
            let text = encoded(&value, 1).map(|json| json.to_string());
            answer(lua, text.and_then(|text| lua.create_string(text).map(Value::String)))
        })?,
    )?;
    table.set(
        "decode",
        lua.create_function(move |lua, text: mlua::LuaString| answer(lua, decoded(lua, &text.as_bytes())))?,
    )?;
    table.set("new", lua.create_function(move |lua, ()| module(lua, safe))?)?;
    table.set("null", Value::NULL)?;
    table.set("_NAME", if safe { "cjson.safe" } else { "cjson" })?;
    Ok(table)
}

fn fault(message: impl Into<String>) -> mlua::Error {
    mlua::Error::RuntimeError(message.into())
}

fn encoded(value: &Value, level: usize) -> mlua::Result<Json> {
    Ok(match value {
        Value::Nil => Json::Null,
        null if *null == Value::NULL => Json::Null,
        Value::Boolean(value) => Json::Bool(*value),
        Value::Integer(value) => Json::Number((*value).into()),
        Value::Number(value) => Json::Number(
            Number::from_f64(*value)
                .ok_or_else(|| fault("Cannot serialise number: must not be NaN or Infinity"))?,
        ),
        Value::String(text) => Json::String(
            text.to_str().map_err(|_| fault("Cannot serialise string: it is not UTF-8"))?.to_owned(),
        ),
        Value::Table(_) if level > MOST_LEVELS => {
            return Err(fault(format!("Cannot serialise, excessive depth ({level})")));
        }
        Value::Table(table) => match array_length(table)? {
            Some(length) => {
                let entries = (1..=length).map(|index| encoded(&table.raw_get(index)?, level + 1));
                Json::Array(entries.collect::<mlua::Result<_>>()?)
            }
            None => Json::Object(object(table, level)?),
        },
        other => return Err(fault(format!("Cannot serialise {}: type not supported", other.type_name()))),
    })
}

/// The largest index of a table that is an array: one with positive whole numbers as keys, and nothing else.
/// An empty table is an object.
fn array_length(table: &Table) -> mlua::Result<Option<usize>> {
    let (mut largest, mut count) = (0, 0_usize);
    for pair in table.pairs::<Value, Value>() {
        let index = match pair?.0 {
            Value::Integer(index) => usize::try_from(index).unwrap_or(0),
            _ => 0,
        };
        if index == 0 {
            return Ok(None);
        }
        (largest, count) = (largest.max(index), count + 1);
    }
    if largest > DENSE && largest > 2 * count {
        return Err(fault("Cannot serialise table: excessively sparse array"));
    }
    Ok(Some(largest).filter(|largest| *largest > 0))
}

fn object(table: &Table, level: usize) -> mlua::Result<Map<String, Json>> {
    let mut object = Map::new();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let key = match key {
            Value::String(key) => key.to_str().map(|key| key.to_owned()),
            Value::Integer(key) => Ok(key.to_string()),
            Value::Number(key) => Ok(key.to_string()),
            _ => return Err(fault("Cannot serialise table: table key must be a number or string")),
        };
        let key = key.map_err(|_| fault("Cannot serialise table: a key is not UTF-8"))?;
        object.insert(key, encoded(&value, level + 1)?);
    }
    Ok(object)
}

fn decoded(lua: &Lua, text: &[u8]) -> mlua::Result<Value> {
    let json = serde_json::from_slice(text).map_err(|error| fault(format!("not JSON: {error}")))?;
    value_of(lua, &json)
}

fn value_of(lua: &Lua, json: &Json) -> mlua::Result<Value> {
    Ok(match json {
        Json::Null => Value::NULL,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(value) => Value::Number(value.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::String(lua.create_string(text)?),
        Json::Array(entries) => {
            let table = lua.create_table_with_capacity(entries.len(), 0)?;
            for (index, entry) in entries.iter().enumerate() {
                table.raw_set(index + 1, value_of(lua, entry)?)?;
            }
            Value::Table(table)
        }
        Json::Object(members) => {
            let table = lua.create_table_with_capacity(0, members.len())?;
            for (key, member) in members {
                table.raw_set(key.as_str(), value_of(lua, member)?)?;
            }
            Value::Table(table)
        }
    })
}
