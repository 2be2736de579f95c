//! The table `wrk`.

use std::sync::Arc;

use mlua::{Lua, LuaString, Table, Value};
use plimsoll_scenario::UrlRequest;

use crate::ScriptOptions;
use crate::fault::OWN_CHUNK;
use crate::output::{kind, text_of};

/// The functions that call none of ours. `format` is in Lua because a call from Lua to Rust costs more than
/// the few lines that it has. It writes into a buffer, for every string that it made on the way would be
/// looked up among all others.
const FUNCTIONS: &str = r#"
local wrk, authority = ...
local text = require("string.buffer").new()
local type, pairs, lower, error = type, pairs, string.lower, error

local function check(value, what)
    local kind = type(value)
    if kind ~= "string" and kind ~= "number" then
        -- Without a place: the script's is found in the trace.
        error(what .. " is a " .. kind .. ", not a string", 0)
    end
end

-- What is not given is the table's own; Host is that of `wrk.headers`, or of the URL.
function wrk.format(method, path, headers, body)
    method, path, body = method or wrk.method, path or wrk.path, body or wrk.body
    check(method, "the method")
    check(path, "the path")
    local own = wrk.headers
    headers = headers or own
    text:reset():put(method, " ", path, " HTTP/1.1\r\n")
    local host
    for name, value in pairs(headers) do
        if type(name) ~= "string" then
            error("the name of a header is a " .. type(name) .. ", not a string", 0)
        end
        local size = #name
        if size == 14 and lower(name) == "content-length" then
            -- It follows from the body.
        else
            if size == 4 and lower(name) == "host" then host = true end
            check(value, "the value of a header")
            text:put(name, ": ", value, "\r\n")
        end
    end
    if not host then
        -- A script's metamethod may come back here, and write.
        local before = text:get()
        host = headers ~= own and own.Host or authority()
        text:set(before):put("Host: ", host, "\r\n")
    end
    if body == nil then return text:put("\r\n"):get() end
    check(body, "the body")
    body = body .. ""
    return text:put("Content-Length: ", #body, "\r\n\r\n", body):get()
end

function wrk.setup(thread)
    if type(setup) == "function" then setup(thread) end
end

function wrk.init(args)
    if type(init) == "function" then init(args) end
end
"#;

/// Makes the table `wrk` and its functions, and the globals of a state with it.
pub(crate) fn install(lua: &Lua, given: &UrlRequest, options: &ScriptOptions) -> mlua::Result<Table> {
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
    let own = wrk.clone();
    let authority = lua.create_function(move |lua, ()| authority(lua, &own))?;
    lua.load(FUNCTIONS).set_name(OWN_CHUNK).call::<()>((&wrk, authority))?;
    Ok(wrk)
}

/// Replaces the functions that a worker cannot use during the run.
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

/// Host and port of the table, as Host has them.
pub(crate) fn authority(lua: &Lua, wrk: &Table) -> mlua::Result<String> {
    let port: Value = wrk.raw_get("port")?;
    let port = text_of(lua, port)?.map(|port| port.to_string_lossy());
    let host = text(lua, wrk.raw_get("host")?, "wrk.host")?.to_string_lossy();
    Ok(UrlRequest { host, port, ..UrlRequest::default() }.authority())
}

/// The request that the table describes now.
pub(crate) fn read_request(lua: &Lua, wrk: &Table) -> mlua::Result<UrlRequest> {
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
    Ok(UrlRequest {
        scheme: string("scheme")?,
        host: string("host")?,
        port,
        method: string("method")?,
        path: string("path")?,
        headers,
        body,
    })
}
