//! The functions that h2loadrunner gives its scripts, as far as they make sense inside a worker.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use mlua::{Lua, LuaString, MultiValue, Value};
use plimsoll_core::Random;

use crate::ScriptOptions;
use crate::library::refusal;
use crate::portable::{Budget, Portable};

/// State that scripts share across the workers. It takes a lock, but only scripts that ask for it come here.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    values: Mutex<HashMap<Vec<u8>, Portable>>,
    /// Resolved names: the first address, and until when it holds, in nanoseconds since 1970.
    names: Mutex<HashMap<String, (String, u64)>>,
}

/// Adds the functions to a state.
pub(crate) fn install(
    lua: &Lua,
    options: &ScriptOptions,
    shared: &Arc<Shared>,
    stream: u64,
) -> mlua::Result<()> {
    let globals = lua.globals();
    let host = Arc::clone(&options.host);
    let milliseconds = move |_: &Lua, ()| Ok((host.unix_ns() / 1_000_000) as f64);
    globals.set("time_since_epoch", lua.create_function(milliseconds)?)?;

    // Unlike math.random's, these must not repeat from run to run: they become names of resources.
    let random = Random::new(options.limits.seed ^ options.host.unix_ns(), stream);
    let random = Rc::new(RefCell::new(random));
    let uuid = move |_: &Lua, ()| {
        let mut random = random.borrow_mut();
        Ok(uuid_v4(random.bits(), random.bits()))
    };
    globals.set("generate_uuid_v4", lua.create_function(uuid)?)?;

    let store = Arc::clone(shared);
    let store = move |_: &Lua, (key, value): (LuaString, Value)| {
        let value = Portable::take(&value, &mut Budget::default())
            .map_err(|why| mlua::Error::RuntimeError(format!("store_value: the value {why}")))?;
        store.values.lock().unwrap_or_else(PoisonError::into_inner).insert(key.as_bytes().to_vec(), value);
        Ok(())
    };
    globals.set("store_value", lua.create_function(store)?)?;
    let known = Arc::clone(shared);
    let get = move |lua: &Lua, key: LuaString| {
        let values = known.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(&*key.as_bytes()).map_or(Ok(Value::Nil), |value| value.give(lua))
    };
    globals.set("get_value", lua.create_function(get)?)?;
    let known = Arc::clone(shared);
    let delete = move |_: &Lua, key: LuaString| {
        let mut values = known.values.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(values.remove(&*key.as_bytes()).is_some())
    };
    globals.set("delete_value", lua.create_function(delete)?)?;

    let (options, names) = (options.clone(), Arc::clone(shared));
    let resolve =
        move |_: &Lua, (name, ttl): (String, Option<f64>)| names.resolve(&options, &name, ttl.unwrap_or(0.0));
    globals.set("resolve_hostname", lua.create_function(resolve)?)?;

    // A worker carries many users at once: a script that waited would hold up all of them.
    let replaced = [
        ("send_http_request_and_await_response", "make the request a step of its own, before this one"),
        ("sleep_for_ms", "give the step a think time (`think: 100ms`)"),
    ];
    for (name, instead) in replaced {
        let refuse = move |_: &Lua, _: MultiValue| -> mlua::Result<()> {
            let message = format!("`{name}` would hold up all users of the worker: {instead}");
            Err(mlua::Error::RuntimeError(message))
        };
        globals.set(name, lua.create_function(refuse)?)?;
    }
    Ok(())
}

impl Shared {
    /// The first address of a host, asked for again after `ttl_ms`.
    fn resolve(&self, options: &ScriptOptions, name: &str, ttl_ms: f64) -> mlua::Result<String> {
        if !options.limits.allow_system {
            return Err(refusal("resolve_hostname"));
        }
        let now = options.host.unix_ns();
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((address, until)) = names.get(name)
            && now < *until
        {
            return Ok(address.clone());
        }
        let found = options.host.lookup(name, "0");
        let found =
            found.map_err(|why| mlua::Error::RuntimeError(format!("resolve_hostname: {name}: {why}")))?;
        let first = found.first().map(String::as_str).unwrap_or_default();
        // `ip:0` or `[ip]:0`: the port was only asked for because there had to be one.
        let address = first.rsplit_once(':').map_or(first, |(ip, _)| ip).trim_matches(['[', ']']).to_owned();
        let until = now.saturating_add((ttl_ms.max(0.0) * 1e6) as u64);
        names.insert(name.to_owned(), (address.clone(), until));
        Ok(address)
    }
}

/// RFC 9562 section 5.4.
fn uuid_v4(high: u64, low: u64) -> String {
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}
