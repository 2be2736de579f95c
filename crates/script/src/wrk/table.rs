//! The table `wrk`.

use std::cell::RefCell;
use std::sync::Arc;

use mlua::{Lua, LuaString, Table, Value};

use super::WrkRequest;
use crate::ScriptOptions;
use crate::output::{kind, text_of};

/// Makes the table `wrk` and its functions, and the globals of a state with it.
pub(crate) fn install(lua: &Lua, given: &WrkRequest, options: &ScriptOptions) -> mlua::Result<Table> {
    let wrk = lua.create_table()?;
    wrk.set("scheme", given.scheme.as_str())?;
    wrk.set("host", given.host.as_str())?;
    wrk.set("port", given.port.as_deref())?;
    wrk.set("method", given.method.as_str())?;
    wrk.set("path", given.path.as_str())?;
    let headers = lua.create_table()?;
    for (name, value) in &given.headers {
        headers.set(name.as_str(), value.as_str())?;
    }
    wrk.set("headers", headers)?;
    wrk.set("body", given.body.as_ref().map(|body| lua.create_string(body)).transpose()?)?;

    let (own, buffer) = (wrk.clone(), RefCell::new(Vec::new()));
    let format = move |lua: &Lua, (method, path, headers, body): (Value, Value, Option<Table>, Value)| {
        let mut buffer = buffer.borrow_mut();
        buffer.clear();
        format(lua, &own, (method, path, headers, body), &mut buffer)?;
        lua.create_string(&*buffer)
    };
    wrk.set("format", lua.create_function(format)?)?;

    let host = Arc::clone(&options.host);
    let lookup = move |_: &Lua, (name, service): (String, Value)| {
        let service = match service {
            Value::String(text) => text.to_string_lossy(),
            Value::Integer(port) => port.to_string(),
            Value::Number(port) => format!("{port:.0}"),
            _ => "http".to_owned(),
        };
        host.lookup(&name, &service)
            .map_err(|why| mlua::Error::RuntimeError(format!("wrk.lookup: {name}:{service}: {why}")))
    };
    wrk.set("lookup", lua.create_function(lookup)?)?;
    let host = Arc::clone(&options.host);
    let connect = move |_: &Lua, address: String| Ok(host.can_connect(&address));
    wrk.set("connect", lua.create_function(connect)?)?;
    let host = Arc::clone(&options.host);
    wrk.set("time_us", lua.create_function(move |_, ()| Ok((host.unix_ns() / 1_000) as f64))?)?;

    lua.globals().set("wrk", &wrk)?;
    let own_functions = r#"
        local wrk = wrk
        function wrk.setup(thread)
            if type(setup) == "function" then setup(thread) end
        end
        function wrk.init(args)
            if type(init) == "function" then init(args) end
        end
    "#;
    lua.load(own_functions).set_name("=wrk").exec()?;
    Ok(wrk)
}

/// In a worker: what cannot be done there once the run goes on.
pub(crate) fn forbid_waiting(lua: &Lua, wrk: &Table) -> mlua::Result<()> {
    for name in ["lookup", "connect"] {
        let refuse = move |_: &Lua, _: mlua::MultiValue| -> mlua::Result<()> {
            let message = format!("`wrk.{name}` would hold up the worker: call it in setup or init");
            Err(mlua::Error::RuntimeError(message))
        };
        wrk.set(name, lua.create_function(refuse)?)?;
    }
    Ok(())
}

fn text(lua: &Lua, value: Value, what: &str) -> mlua::Result<LuaString> {
    let value_kind = kind(&value);
    text_of(lua, value)?
        .ok_or_else(|| mlua::Error::RuntimeError(format!("{what} is a {value_kind}, not a string")))
}

/// `given`, or the table's own.
fn or_own(lua: &Lua, wrk: &Table, given: Value, name: &str) -> mlua::Result<LuaString> {
    let value = if given.is_nil() { wrk.raw_get(name)? } else { given };
    text(lua, value, name)
}

/// A request of HTTP/1.1. What is not given is the table's own; Host is that of `wrk.headers`, or of the URL.
fn format(
    lua: &Lua,
    wrk: &Table,
    (method, path, headers, body): (Value, Value, Option<Table>, Value),
    out: &mut Vec<u8>,
) -> mlua::Result<()> {
    out.extend_from_slice(&or_own(lua, wrk, method, "method")?.as_bytes());
    out.push(b' ');
    out.extend_from_slice(&or_own(lua, wrk, path, "path")?.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let is_own = headers.is_none();
    let headers = match headers {
        Some(headers) => headers,
        None => wrk.raw_get::<Table>("headers")?,
    };
    let mut has_host = false;
    headers.for_each(|name: Value, value: Value| {
        let name = text(lua, name, "the name of a header")?;
        let name = name.as_bytes();
        // It follows from the body.
        if name.eq_ignore_ascii_case(b"content-length") {
            return Ok(());
        }
        has_host |= name.eq_ignore_ascii_case(b"host");
        let value = text(lua, value, "the value of a header")?;
        field(out, &name, &value.as_bytes());
        Ok(())
    })?;
    if !has_host {
        let own: Option<Table> = if is_own { None } else { wrk.raw_get("headers")? };
        let own = own.map(|own| own.raw_get::<Option<LuaString>>("Host")).transpose()?.flatten();
        match own {
            Some(host) => field(out, b"Host", &host.as_bytes()),
            None => field(out, b"Host", authority(lua, wrk)?.as_bytes()),
        }
    }
    let body = if body.is_nil() { wrk.raw_get("body")? } else { body };
    if body.is_nil() {
        out.extend_from_slice(b"\r\n");
        return Ok(());
    }
    let body = text(lua, body, "the body")?;
    let body = body.as_bytes();
    field(out, b"Content-Length", body.len().to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&body);
    Ok(())
}

fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Host and port of the table, as Host has them.
pub(crate) fn authority(lua: &Lua, wrk: &Table) -> mlua::Result<String> {
    let port: Value = wrk.raw_get("port")?;
    let port = text_of(lua, port)?.map(|port| port.to_string_lossy());
    let host = text(lua, wrk.raw_get("host")?, "wrk.host")?.to_string_lossy();
    Ok(WrkRequest { host, port, ..WrkRequest::default() }.authority())
}

/// The request that the table describes now.
pub(crate) fn read_request(lua: &Lua, wrk: &Table) -> mlua::Result<WrkRequest> {
    let string = |name: &str| -> mlua::Result<String> {
        let text = text(lua, wrk.raw_get(name)?, &format!("wrk.{name}"))?;
        let text =
            text.to_str().map_err(|_| mlua::Error::RuntimeError(format!("wrk.{name} is not UTF-8")))?;
        Ok(text.to_owned())
    };
    let mut headers = Vec::new();
    let table: Table = wrk
        .raw_get("headers")
        .map_err(|_| mlua::Error::RuntimeError("wrk.headers is not a table".to_owned()))?;
    table.for_each(|name: Value, value: Value| {
        let name = text(lua, name, "the name of a header")?.to_string_lossy();
        let value = text(lua, value, &format!("the header `{name}`"))?.to_string_lossy();
        if !name.eq_ignore_ascii_case("content-length") {
            headers.push((name, value));
        }
        Ok(())
    })?;
    // A table has no order of its own.
    headers.sort_unstable();
    let body: Value = wrk.raw_get("body")?;
    let body = if body.is_nil() { None } else { Some(text(lua, body, "wrk.body")?.as_bytes().to_vec()) };
    let port = text_of(lua, wrk.raw_get("port")?)?.map(|port| port.to_string_lossy());
    Ok(WrkRequest {
        scheme: string("scheme")?,
        host: string("host")?,
        port,
        method: string("method")?,
        path: string("path")?,
        headers,
        body,
    })
}
