//! Header tables: tables that read a field list when they are read.
//!
//! A script gets an empty table whose metatable looks into the fields of the message and writes to them. It
//! stays empty, so that every access goes there. `pairs` and `next` know these tables and walk through a
//! copy, which only then is made.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::{Function, Lua, LuaString, Table, Value};
use plimsoll_scenario::{DynamicRequest, FieldList};

use crate::fault::OWN_CHUNK;
use crate::output::{kind, text_of};

/// The message behind a header table.
#[derive(Debug)]
pub(crate) enum Message {
    /// A request that is being made. It moves in here for the call, and out again.
    Request {
        request: DynamicRequest,
        scheme: &'static str,
        /// Set when the script has written to it.
        changed: bool,
    },
    Response {
        status: u16,
        fields: FieldList,
        /// Names as most servers write them (`Content-Type`), for wrk's scripts, and no `:status`.
        titles: bool,
    },
}

/// The header tables of one kind in one state.
#[derive(Debug)]
pub(crate) struct Headers {
    message: Rc<RefCell<Message>>,
    open: Function,
    close: Function,
}

/// Which table stands for the message now is known in Lua, so that a call that makes a table and reads
/// nothing of it never comes to Rust. Tables of earlier calls are errors to read: their message is gone, and
/// another message's fields would be wrong.
const TABLES: &str = r#"
local get, set, copy = ...
local setmetatable, error = setmetatable, error
-- What stands for the message, and the copy of it that `next` walks through.
local current, walked
local function check(t)
    if t ~= current then
        -- Without a place: the script's is found in the trace.
        error("these are the headers of an earlier call: copy the values that are needed later", 0)
    end
end
local meta = {
    __index = function(t, name)
        check(t)
        return get(name)
    end,
    __newindex = function(t, name, value)
        check(t)
        walked = nil
        set(name, value)
    end,
    -- Not a metamethod: `pairs` and `next` ask for it.
    copy = function(t)
        check(t)
        if not walked then walked = copy() end
        return walked
    end,
}
return function()
    current, walked = setmetatable({}, meta), nil
    return current
end, function()
    current, walked = nil, nil
end
"#;

impl Headers {
    /// Header tables for `message`.
    pub(crate) fn new(lua: &Lua, message: Message) -> mlua::Result<Self> {
        let message = Rc::new(RefCell::new(message));
        let of = Rc::clone(&message);
        let get = lua.create_function(move |lua, key: Value| match key {
            Value::String(name) => of.borrow().get(lua, &name),
            _ => Ok(Value::Nil),
        })?;
        let of = Rc::clone(&message);
        let set = move |lua: &Lua, (key, value): (Value, Value)| of.borrow_mut().set(lua, key, value);
        let set = lua.create_function(set)?;
        let of = Rc::clone(&message);
        let copy = lua.create_function(move |lua, ()| of.borrow().copy(lua))?;
        let (open, close) = lua.load(TABLES).set_name(OWN_CHUNK).call((get, set, copy))?;
        Ok(Self { message, open, close })
    }

    /// In Lua: gives a table for the message as it is when it is read; tables of earlier calls are void.
    pub(crate) const fn opener(&self) -> &Function {
        &self.open
    }

    /// In Lua: makes the table void.
    pub(crate) const fn closer(&self) -> &Function {
        &self.close
    }

    /// A call did not come to its end: makes the table void.
    #[cold]
    pub(crate) fn close(&self) {
        // If there is no memory for the call, there is none for reading the table either.
        let _ = self.close.call::<()>(());
    }

    pub(crate) fn message(&self) -> &RefCell<Message> {
        &self.message
    }
}

/// Makes `pairs`, `next` and `rawget` work with header tables.
pub(crate) fn install(lua: &Lua) -> mlua::Result<()> {
    // In Lua, so that ordinary tables pay for one comparison and not for a call.
    let wrap = r#"
        local getmetatable, pairs, next, rawget, type = getmetatable, pairs, next, rawget, type
        local function walked(t)
            if type(t) ~= "table" then return t end
            local meta = getmetatable(t)
            if type(meta) == "table" then
                local copy = rawget(meta, "copy")
                if copy and rawget(meta, "__newindex") then return copy(t) end
            end
            return t
        end
        return function(t) return pairs(walked(t)) end,
            function(t, key) return next(walked(t), key) end,
            function(t, key) return rawget(walked(t), key) end
    "#;
    let (pairs, next, rawget): (Function, Function, Function) = lua.load(wrap).set_name(OWN_CHUNK).eval()?;
    let globals = lua.globals();
    globals.set("pairs", pairs)?;
    globals.set("next", next)?;
    globals.set("rawget", rawget)
}

impl Message {
    fn get(&self, lua: &Lua, name: &LuaString) -> mlua::Result<Value> {
        let name = name.as_bytes();
        let text = |bytes: &[u8]| lua.create_string(bytes).map(Value::String);
        match self {
            Self::Request { request, scheme, .. } => match &*name {
                b":method" => text(&request.method),
                b":path" => text(&request.path),
                b":authority" => text(&request.authority),
                b":scheme" => text(scheme.as_bytes()),
                b"content-length" if !request.body.is_empty() => {
                    text(request.body.len().to_string().as_bytes())
                }
                name => joined(lua, &request.fields, name),
            },
            // There is no response before the first one.
            Self::Response { status: 1.., titles: false, .. } if &*name == b":status" => {
                text(self.status().as_bytes())
            }
            Self::Response { fields, titles, .. } => {
                // wrk's scripts write names as servers do.
                let lower = name.to_ascii_lowercase();
                joined(lua, fields, if *titles { &lower } else { &name })
            }
        }
    }

    fn status(&self) -> String {
        match self {
            Self::Response { status, .. } => status.to_string(),
            Self::Request { .. } => String::new(),
        }
    }

    fn set(&mut self, lua: &Lua, key: Value, value: Value) -> mlua::Result<()> {
        let Self::Request { request, scheme, changed } = self else {
            let message = "the headers of a response cannot be changed";
            return Err(mlua::Error::RuntimeError(message.to_owned()));
        };
        *changed = true;
        write_field(lua, request, scheme, key, value)
    }

    /// All fields as an ordinary table.
    fn copy(&self, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        let fields = match self {
            Self::Request { request, scheme, .. } => {
                table.raw_set(":method", lua.create_string(&request.method)?)?;
                table.raw_set(":path", lua.create_string(&request.path)?)?;
                table.raw_set(":authority", lua.create_string(&request.authority)?)?;
                table.raw_set(":scheme", *scheme)?;
                if !request.body.is_empty() {
                    table.raw_set("content-length", request.body.len().to_string())?;
                }
                &request.fields
            }
            Self::Response { status, fields, titles } => {
                if !titles && *status > 0 {
                    table.raw_set(":status", self.status())?;
                }
                fields
            }
        };
        let titles = matches!(self, Self::Response { titles: true, .. });
        for (name, _) in fields.iter() {
            let key = if titles { lua.create_string(title(name))? } else { lua.create_string(name)? };
            table.raw_set(key, joined(lua, fields, name)?)?;
        }
        Ok(table)
    }
}

/// The values of all fields of this name: RFC 9110 section 5.3, and RFC 9113 section 8.2.3 for cookies.
fn joined(lua: &Lua, fields: &FieldList, name: &[u8]) -> mlua::Result<Value> {
    let mut values = fields.iter().filter(|(known, _)| *known == name).map(|(_, value)| value);
    let Some(first) = values.next() else { return Ok(Value::Nil) };
    let Some(second) = values.next() else { return lua.create_string(first).map(Value::String) };
    let separator: &[u8] = if name == b"cookie" { b"; " } else { b", " };
    let mut text = [first, separator, second].concat();
    for value in values {
        text.extend_from_slice(separator);
        text.extend_from_slice(value);
    }
    lua.create_string(text).map(Value::String)
}

/// `content-type` as `Content-Type`.
fn title(name: &[u8]) -> Vec<u8> {
    let mut start = true;
    let letters = name.iter().map(|&byte| {
        let letter = if start { byte.to_ascii_uppercase() } else { byte };
        start = byte == b'-';
        letter
    });
    letters.collect()
}

/// Sets one header of a request as a script gives it.
pub(crate) fn write_field(
    lua: &Lua,
    request: &mut DynamicRequest,
    scheme: &str,
    key: Value,
    value: Value,
) -> mlua::Result<()> {
    let error = |message: String| Err(mlua::Error::RuntimeError(message));
    let key_kind = kind(&key);
    let Value::String(name) = key else {
        return error(format!("the name of a header is a {key_kind}, not a string"));
    };
    let name = name.as_bytes();
    let shown = String::from_utf8_lossy(&name);
    let value_kind = kind(&value);
    let absent = value.is_nil();
    let text = match value {
        Value::Boolean(value) => Some(lua.create_string(if value { "true" } else { "false" })?),
        value => text_of(lua, value)?,
    };
    let text = match &text {
        Some(text) => Some(text.as_bytes()),
        None if absent => None,
        None => return error(format!("the header `{shown}` is a {value_kind}, not a string")),
    };
    let part = match &*name {
        b":method" => Some(&mut request.method),
        b":path" => Some(&mut request.path),
        b":authority" => Some(&mut request.authority),
        b":scheme" => {
            if text.as_deref() == Some(scheme.as_bytes()) || text.is_none() {
                return Ok(());
            }
            return error(format!("`:scheme` cannot be changed: it is {scheme}, as the step's URL says"));
        }
        // It follows from the body.
        b"content-length" => return Ok(()),
        name if name.first() == Some(&b':') => {
            return error(format!("`{shown}` is not a pseudo-header of a request"));
        }
        _ => None,
    };
    match (part, text) {
        (Some(part), Some(text)) => {
            part.clear();
            part.extend_from_slice(&text);
        }
        (Some(_), None) => return error(format!("a request needs its `{shown}`")),
        (None, text) => replace(&mut request.fields, &name, text.as_deref()),
    }
    Ok(())
}

/// Replaces all fields of this name by one, or none.
fn replace(fields: &mut FieldList, name: &[u8], value: Option<&[u8]>) {
    let lower = name.to_ascii_lowercase();
    if !fields.iter().any(|(known, _)| known == lower) {
        if let Some(value) = value {
            fields.push(&lower, value);
        }
        return;
    }
    let old = std::mem::take(fields);
    let mut value = value;
    for (known, kept) in old.iter() {
        if known != lower {
            fields.push(known, kept);
        } else if let Some(value) = value.take() {
            fields.push(known, value);
        }
    }
}
