//! The state of a wrk script in a worker.

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use mlua::{Function, LuaString, Table, UserData, UserDataFields, UserDataMethods, Value};
use plimsoll_core::{Nanos, Shard};
use plimsoll_scenario::{
    DynamicRequest, FieldList, FieldNeeds, Needs, Received, ScriptError, ScriptSource as _, Scripts, Session,
};

use super::raw::{self, RawRequests};
use super::{Leftover, State, WrkScript, table};
use crate::analysis::Uses;
use crate::fault::{Doing, OWN_CHUNK};
use crate::headers::{Headers, Message};
use crate::machine::Machine;
use crate::output::{Sink, kind};

/// Longest `delay`: a day. More is a mistake in the unit.
const LONGEST_DELAY_MS: f64 = 86_400_000.0;

/// Calls a `response`. In Lua, where making the table of headers costs less.
const CALLER: &str = r#"
local open, close = ...
return function(response, status, reads_headers, body)
    response(status, reads_headers and open() or nil, body)
    close()
end
"#;

/// The object `wrk.thread` of a worker.
struct OwnThread {
    address: String,
    stop: Rc<Cell<bool>>,
}

impl UserData for OwnThread {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |_, thread| Ok(thread.address.clone()));
        fields.add_field_method_set("addr", |_, _, _: Value| -> mlua::Result<()> {
            let message = "thread.addr can be set in `setup` only: the worker is connected to it";
            Err(mlua::Error::RuntimeError(message.to_owned()))
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, _, name: LuaString| lua.globals().raw_get::<Value>(name));
        methods.add_method("set", |lua, _, (name, value): (LuaString, Value)| {
            lua.globals().raw_set(name, value)
        });
        methods.add_method("stop", |_, thread, ()| {
            thread.stop.set(true);
            Ok(())
        });
    }
}

/// Makes the state of a worker and runs `init` in it.
pub(super) fn open(
    script: &WrkScript,
    worker: Shard,
    addresses: &[String],
) -> Result<Box<dyn Scripts>, ScriptError> {
    script.options.runs()?;
    let sink = Sink::Host(Arc::clone(&script.options.host), Some(worker.index), "");
    let state = State::open(script, sink, u64::from(worker.index))?;
    let name = &script.text.name;
    let stop = Rc::new(Cell::new(false));
    // Each process has set up its own threads; a shard's workers are numbered over all processes.
    let setup = script.setups.get().filter(|setups| !setups.is_empty());
    let setup = setup.and_then(|setups| setups.get(worker.index as usize % setups.len()));
    let doing = Doing { script: name, line: 0, what: "init" };
    let of_lua = |error: mlua::Error| state.machine.error(&error, &doing);

    let lua = &state.machine.lua;
    let address = setup.and_then(|setup| setup.address.clone()).or_else(|| addresses.first().cloned());
    let thread = OwnThread { address: address.unwrap_or_default(), stop: Rc::clone(&stop) };
    let prepare = || -> mlua::Result<(Function, Table)> {
        state.wrk.raw_set("thread", lua.create_userdata(thread)?)?;
        for (name, value) in setup.iter().flat_map(|setup| &setup.values) {
            state.globals.raw_set(lua.create_string(name)?, value.give(lua)?)?;
        }
        let headers: Table = state.wrk.raw_get("headers")?;
        if headers.raw_get::<Value>("Host")?.is_nil() {
            headers.raw_set("Host", table::authority(lua, &state.wrk)?)?;
        }
        let arguments = lua.create_table()?;
        for (index, argument) in script.arguments.iter().enumerate() {
            arguments.raw_set(index, argument.as_str())?;
        }
        Ok((state.wrk.raw_get("init")?, arguments))
    };
    let (init, arguments) = prepare().map_err(of_lua)?;
    state.machine.call::<()>(&init, arguments, &doing)?;
    let rest = || -> mlua::Result<(DynamicRequest, Headers, Function, [LuaString; 3])> {
        // `wrk.request` gives the request as it is after `init`.
        let formatted: LuaString = state.wrk.raw_get::<Function>("format")?.call(())?;
        state.wrk.raw_set("request", lua.create_function(move |_, ()| Ok(formatted.clone()))?)?;
        table::forbid_waiting(lua, &state.wrk)?;
        let response = Message::Response { status: 0, fields: FieldList::default(), titles: true };
        let names =
            [lua.create_string("request")?, lua.create_string("response")?, lua.create_string("delay")?];
        let response = Headers::new(lua, response)?;
        let caller = lua.load(CALLER).set_name(OWN_CHUNK);
        let respond = caller.call((response.opener(), response.closer()))?;
        Ok((ready_request(&state)?, response, respond, names))
    };
    let (ready, response, respond, [request_name, response_name, delay_name]) = rest().map_err(of_lua)?;
    ready.check().map_err(|why| of_lua(mlua::Error::RuntimeError(why)))?;
    let has_own_request = state.function("request").is_some();
    Ok(Box::new(WrkWorker {
        name: Arc::clone(name),
        state,
        index: worker.index,
        ready: (!has_own_request).then_some(ready),
        raw: Vec::new(),
        counted: RawRequests::default(),
        stop,
        response,
        respond,
        request_name,
        response_name,
        delay_name,
        needs: script.needs(0),
        analysed: (ptr::null(), Uses([true; 4]), 0),
        keeps_globals: script.has_done,
    }))
}

/// The request that does not change, by its parts: it fits HTTP/2, too.
fn ready_request(state: &State) -> mlua::Result<DynamicRequest> {
    let described = state.read_request()?;
    let mut request = DynamicRequest {
        method: described.method.clone().into_bytes(),
        path: described.path.clone().into_bytes(),
        authority: described.authority().into_bytes(),
        body: described.body.unwrap_or_default(),
        ..DynamicRequest::default()
    };
    for (name, value) in &described.headers {
        if name.eq_ignore_ascii_case("host") {
            request.authority = value.clone().into_bytes();
        } else {
            request.fields.push(name.as_bytes(), value.as_bytes());
        }
    }
    Ok(request)
}

/// A wrk script in one worker.
#[derive(Debug)]
struct WrkWorker {
    name: Arc<str>,
    state: State,
    index: u32,
    /// The request, if the script has no function for it.
    ready: Option<DynamicRequest>,
    /// The last bytes that `request` returned, and the requests in them.
    raw: Vec<u8>,
    counted: RawRequests,
    stop: Rc<Cell<bool>>,
    response: Headers,
    /// Calls `response`.
    respond: Function,
    request_name: LuaString,
    response_name: LuaString,
    delay_name: LuaString,
    /// Parts of responses that are kept.
    needs: Needs,
    /// The function `response` as it was last looked into, its inputs, and the line where it begins.
    analysed: (*const c_void, Uses, u32),
    keeps_globals: bool,
}

impl WrkWorker {
    /// A global as it is now: scripts replace their functions while they run.
    fn function(&self, name: &LuaString) -> Option<Function> {
        match self.state.globals.raw_get(name) {
            Ok(Value::Function(function)) => Some(function),
            _ => None,
        }
    }

    #[cold]
    fn fault(&self, error: &mlua::Error, function: Option<&Function>, what: &str) -> ScriptError {
        let line = function.map_or(0, Machine::line_of);
        self.state.machine.error(error, &Doing { script: &self.name, line, what })
    }

    fn uses(&mut self, response: &Function) -> Uses {
        let pointer = response.to_pointer();
        if !ptr::eq(self.analysed.0, pointer) {
            let uses = Uses::of(&self.state.machine.util, response);
            self.analysed = (pointer, uses, Machine::line_of(response));
        }
        self.analysed.1
    }

    /// Calls `response` with its inputs: the headers, and the body as an argument, as far as it reads them.
    fn call_response(&mut self, response: &Function, received: &Received<'_>) -> mlua::Result<(bool, Value)> {
        let Uses([_, headers, body, _]) = self.uses(response);
        if (headers && self.needs.fields == FieldNeeds::Nothing) || (body && !self.needs.body) {
            let message = "`response` was replaced by a function that reads more: define it in one place";
            return Err(mlua::Error::RuntimeError(message.to_owned()));
        }
        if headers
            && let Message::Response { status, fields, .. } = &mut *self.response.message().borrow_mut()
        {
            *status = received.status;
            fields.clear();
            received.fields.iter().for_each(|(name, value)| fields.push(name, value));
        }
        let lua = &self.state.machine.lua;
        let body = if body { Value::String(lua.create_string(received.body)?) } else { Value::Nil };
        Ok((headers, body))
    }
}

impl Scripts for WrkWorker {
    fn make_request(
        &mut self,
        _script: u32,
        _session: &Session,
        request: &mut DynamicRequest,
    ) -> Result<(), ScriptError> {
        if let Some(ready) = &self.ready {
            copy(ready, request);
            return Ok(());
        }
        let Some(function) = self.function(&self.request_name) else {
            let error = mlua::Error::RuntimeError("`request` is no longer a function".to_owned());
            return Err(self.fault(&error, None, "request"));
        };
        let doing = Doing { script: &self.name, line: 0, what: "request" };
        let returned: Value = self.state.machine.call(&function, (), &doing)?;
        if self.stop.get() && !matches!(returned, Value::String(_)) {
            // Further return values of a request that calls `wrk.thread:stop()` are ignored, as in wrk.
            request.clear();
            return Ok(());
        }
        let Value::String(bytes) = returned else {
            let message = format!("returned a {}, not a string", kind(&returned));
            return Err(self.fault(&mlua::Error::RuntimeError(message), Some(&function), "request"));
        };
        let bytes = bytes.as_bytes();
        if *bytes != *self.raw {
            self.raw.clear();
            self.raw.extend_from_slice(&bytes);
            if let Err(why) = raw::read(&bytes, &mut self.counted) {
                self.raw.clear();
                let error = mlua::Error::RuntimeError(format!("returned {why}"));
                return Err(self.fault(&error, Some(&function), "request"));
            }
        }
        request.clear();
        request.raw.extend_from_slice(&bytes);
        request.raw_count = self.counted.count;
        request.method.extend_from_slice(&self.counted.method);
        Ok(())
    }

    fn validate_response(&mut self, _script: u32, received: &Received<'_>) -> Result<bool, ScriptError> {
        let Some(function) = self.function(&self.response_name) else { return Ok(true) };
        let arguments = self.call_response(&function, received);
        let (headers, body) = arguments.map_err(|error| self.fault(&error, Some(&function), "response"))?;
        let doing = Doing { script: &self.name, line: self.analysed.2, what: "response" };
        let arguments = (&function, received.status, headers, body);
        let returned = self.state.machine.call::<()>(&self.respond, arguments, &doing);
        if returned.is_err() {
            self.response.close();
        }
        returned.map(|()| true)
    }

    fn delay(&mut self, _script: u32) -> Result<Nanos, ScriptError> {
        let Some(function) = self.function(&self.delay_name) else { return Ok(Nanos::ZERO) };
        let doing = Doing { script: &self.name, line: 0, what: "delay" };
        let returned: Value = self.state.machine.call(&function, (), &doing)?;
        let milliseconds = match &returned {
            Value::Integer(number) => Some(*number as f64),
            Value::Number(number) => Some(*number),
            _ => None,
        };
        match milliseconds {
            Some(number) if (0.0..=LONGEST_DELAY_MS).contains(&number) => Ok(Nanos((number * 1e6) as u64)),
            Some(number) => {
                let message = format!("returned {number}: milliseconds from 0 to a day are allowed");
                Err(self.fault(&mlua::Error::RuntimeError(message), Some(&function), "delay"))
            }
            None => {
                let message = format!("returned a {}, not a number of milliseconds", kind(&returned));
                Err(self.fault(&mlua::Error::RuntimeError(message), Some(&function), "delay"))
            }
        }
    }

    fn wants_to_stop(&self) -> bool {
        self.stop.get() || self.state.machine.is_spent()
    }

    fn finish(self: Box<Self>) -> Box<dyn Any + Send> {
        self.state.machine.output.flush();
        let globals = if self.keeps_globals { self.state.portable_globals() } else { Vec::new() };
        Box::new(Leftover { worker: self.index, globals })
    }
}

/// The ready request, in memory that is used again.
fn copy(from: &DynamicRequest, to: &mut DynamicRequest) {
    to.clear();
    to.method.extend_from_slice(&from.method);
    to.path.extend_from_slice(&from.path);
    to.authority.extend_from_slice(&from.authority);
    from.fields.iter().for_each(|(name, value)| to.fields.push(name, value));
    to.body.extend_from_slice(&from.body);
}
