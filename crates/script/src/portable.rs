//! Values that go from one state to another.

use crate::output::kind;
use mlua::{Lua, Table, Value};

/// Tables in tables, at most.
const DEEPEST: usize = 16;
/// Values of one transfer, tables' members included.
const MOST_VALUES: usize = 1 << 18;
/// Bytes of strings in one transfer: 16 MiB.
const MOST_BYTES: usize = 16 << 20;

/// A value without a state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Portable {
    Nil,
    Boolean(bool),
    Number(f64),
    Text(Vec<u8>),
    Table(Vec<(Portable, Portable)>),
    /// A value that cannot be carried, with the reason.
    Refused(String),
}

/// Number of values and bytes that may still be carried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    values: usize,
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { values: MOST_VALUES, bytes: MOST_BYTES }
    }
}

impl Portable {
    /// Takes a value out of its state.
    ///
    /// # Errors
    /// It, or something in it, cannot be carried.
    pub(crate) fn take(value: &Value, budget: &mut Budget) -> Result<Self, String> {
        Self::take_at(value, budget, 0)
    }

    fn take_at(value: &Value, budget: &mut Budget, depth: usize) -> Result<Self, String> {
        let too_large = || "is too large to be carried to another thread".to_owned();
        budget.values = budget.values.checked_sub(1).ok_or_else(too_large)?;
        match value {
            Value::Nil => Ok(Self::Nil),
            Value::Boolean(value) => Ok(Self::Boolean(*value)),
            Value::Integer(value) => Ok(Self::Number(*value as f64)),
            Value::Number(value) => Ok(Self::Number(*value)),
            Value::String(text) => {
                let text = text.as_bytes();
                budget.bytes = budget.bytes.checked_sub(text.len()).ok_or_else(too_large)?;
                Ok(Self::Text(text.to_vec()))
            }
            Value::Table(_) if depth == DEEPEST => {
                Err(format!("has more than {DEEPEST} tables in each other, or contains itself"))
            }
            Value::Table(table) => {
                let mut pairs = Vec::new();
                for pair in table.pairs::<Value, Value>() {
                    let (key, value) = pair.map_err(|error| error.to_string())?;
                    let key = Self::take_at(&key, budget, depth + 1)?;
                    pairs.push((key, Self::take_at(&value, budget, depth + 1)?));
                }
                Ok(Self::Table(pairs))
            }
            other => Err(format!(
                "is a {}: only nil, booleans, numbers, strings and tables of them go from thread to thread",
                kind(other)
            )),
        }
    }

    /// Makes the value anew in a state.
    ///
    /// # Errors
    /// The value could not be carried, or the state has no memory for it.
    pub(crate) fn give(&self, lua: &Lua) -> mlua::Result<Value> {
        Ok(match self {
            Self::Nil => Value::Nil,
            Self::Boolean(value) => Value::Boolean(*value),
            Self::Number(value) => Value::Number(*value),
            Self::Text(text) => Value::String(lua.create_string(text)?),
            Self::Table(pairs) => {
                let table: Table = lua.create_table_with_capacity(0, pairs.len())?;
                for (key, value) in pairs {
                    table.raw_set(key.give(lua)?, value.give(lua)?)?;
                }
                Value::Table(table)
            }
            Self::Refused(why) => return Err(mlua::Error::RuntimeError(why.clone())),
        })
    }
}
