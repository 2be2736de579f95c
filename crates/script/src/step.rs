//! Scripts of steps, as h2loadrunner calls them.
//!
//! - `make_request(response_headers, response_body, request_headers, request_body)` returns the headers and
//!   the body of the request. The first two are those of the user's last response; header tables have
//!   `:method`, `:path`, `:authority`, `:scheme` and `:status`, and names in lower case, on every version of
//!   HTTP. Nil, or no return value, stands for the argument, with the changes made to it. Pseudo-headers that
//!   a new table lacks stay as they are; content-length is always that of the body.
//! - `validate_response(response_headers, response_body)` returns whether the response is good.
//!
//! - `plimsoll.metric(name):add(value, tags)` records a value of a metric that the plan declares.
//!
//! A parameter that a function does not read is not built: it is nil.

use std::any::Any;
use std::sync::Arc;

use mlua::{Function, Table, Value};
use plimsoll_core::{Nanos, Shard};
use plimsoll_scenario::{
    DynamicRequest, FieldList, FieldNeeds, Needs, Received, Scheme, ScriptError, ScriptSource, ScriptValue,
    Scripts, Session, StepScript,
};

use crate::ScriptOptions;
use crate::analysis::Uses;
use crate::fault::{Doing, OWN_CHUNK};
use crate::functions::{self, Shared};
use crate::headers::{self, Headers, Message, write_field};
use crate::machine::Machine;
use crate::metrics::{self, Recorded};
use crate::output::{Sink, kind, text_of};

/// The scripts of all steps of a plan.
#[derive(Debug)]
pub struct StepScripts {
    scripts: Vec<StepScript>,
    found: Vec<Definitions>,
    options: ScriptOptions,
    shared: Arc<Shared>,
}

/// Functions that a script defines, with the parameters that they read.
#[derive(Clone, Copy, Debug, Default)]
struct Definitions {
    make: Option<Uses>,
    check: Option<Uses>,
}

impl StepScripts {
    /// Loads all scripts and runs each once, to find their functions. Their output in this run is not shown.
    ///
    /// # Errors
    /// All scripts that do not load, or define neither function.
    pub fn load(scripts: Vec<StepScript>, options: ScriptOptions) -> Result<Arc<Self>, Vec<ScriptError>> {
        if options.limits.only_syntax {
            let machine = Machine::new(&options, Sink::Nowhere, 0).map_err(|error| vec![error])?;
            let read = scripts.iter().map(|script| machine.read(&script.text, &of_step(&script.step)));
            let errors: Vec<ScriptError> = read.filter_map(Result::err).collect();
            if !errors.is_empty() {
                return Err(errors);
            }
            let found = vec![Definitions::default(); scripts.len()];
            return Ok(Arc::new(Self { scripts, found, options, shared: Arc::default() }));
        }
        let shared = Arc::new(Shared::default());
        let mut errors = Vec::new();
        let mut found = Vec::new();
        for script in &scripts {
            let machine = machine(&options, &shared, Sink::Nowhere, 0);
            match machine.and_then(|(machine, _)| Loaded::load(&machine, script)) {
                Ok(loaded) => found.push(loaded.found()),
                Err(error) => errors.push(error),
            }
        }
        // Values that the scripts stored during this check are not a part of the run.
        let shared = Arc::new(Shared::default());
        if errors.is_empty() { Ok(Arc::new(Self { scripts, found, options, shared })) } else { Err(errors) }
    }

    /// Returns the parts of the response *before* its step that `make_request` reads.
    pub fn make_needs(&self, script: u32) -> Needs {
        needs(self.found(script).make)
    }

    /// Returns the parts of its step's response that `validate_response` reads.
    pub fn check_needs(&self, script: u32) -> Needs {
        needs(self.found(script).check)
    }

    fn found(&self, script: u32) -> Definitions {
        self.found.get(script as usize).copied().unwrap_or_default()
    }
}

fn needs(uses: Option<Uses>) -> Needs {
    let Some(Uses([fields, body, ..])) = uses else { return Needs::default() };
    Needs { fields: if fields { FieldNeeds::All } else { FieldNeeds::Nothing }, body, ..Needs::default() }
}

impl ScriptSource for StepScripts {
    /// Of this step's response and of the one before it, see [`make_needs`](StepScripts::make_needs).
    fn needs(&self, script: u32) -> Needs {
        let (make, check) = (self.make_needs(script), self.check_needs(script));
        let fields = if make.fields == FieldNeeds::Nothing { check.fields } else { make.fields };
        Needs { fields, body: make.body || check.body, ..Needs::default() }
    }

    fn makes_requests(&self, script: u32) -> bool {
        self.found(script).make.is_some()
    }

    fn sees_responses(&self, script: u32) -> bool {
        self.found(script).check.is_some()
    }

    fn open(&self, worker: Shard, _addresses: &[String]) -> Result<Box<dyn Scripts>, ScriptError> {
        self.options.runs()?;
        let sink = Sink::Host(Arc::clone(&self.options.host), Some(worker.index), MARK);
        let (machine, recorded) = machine(&self.options, &self.shared, sink, u64::from(worker.index))?;
        let loaded = self.scripts.iter().map(|script| Loaded::load(&machine, script));
        let scripts = loaded.collect::<Result<Vec<_>, _>>()?;
        // What they record while they are loaded belongs to no request.
        recorded.clear();
        let tables = || -> mlua::Result<(Headers, Headers)> {
            let request =
                Message::Request { request: DynamicRequest::default(), scheme: "http", changed: false };
            let response = Message::Response { status: 0, fields: FieldList::default(), titles: false };
            Ok((Headers::new(&machine.lua, request)?, Headers::new(&machine.lua, response)?))
        };
        let nothing = Doing { script: "inline", line: 0, what: "" };
        let (request, response) = tables().map_err(|error| machine.error(&error, &nothing))?;
        let parts = || -> mlua::Result<(Function, Function, Value)> {
            let tables = (request.opener(), request.closer(), response.opener(), response.closer());
            let (make, check) = machine.lua.load(CALLERS).set_name(OWN_CHUNK).call(tables)?;
            Ok((make, check, Value::String(machine.lua.create_string("")?)))
        };
        let (make, check, empty) = parts().map_err(|error| machine.error(&error, &nothing))?;
        Ok(Box::new(StepWorker { machine, recorded, scripts, request, response, make, check, empty }))
    }
}

/// Mark of what scripts print: a plan of somebody else could print what looks like a message of the program.
const MARK: &str = "script: ";

/// Calls a script's functions. In Lua, because a table, or a string that comes back as it was given, costs
/// much more where it crosses over to Rust.
const CALLERS: &str = r#"
local open_request, close_request, open_response, close_response = ...
local function made(own, own_body, headers, body)
    close_request()
    close_response()
    -- What comes back as it was given, with what was assigned to it, stands for itself.
    if headers == own then headers = nil end
    if body == own_body then body = nil end
    return headers, body
end
local function checked(good)
    close_response()
    return good
end
return function(make, reads_response, response_body, reads_request, own_body)
    local own = reads_request and open_request() or nil
    return made(own, own_body, make(reads_response and open_response() or nil, response_body, own, own_body))
end, function(check, reads_response, response_body)
    return checked(check(reads_response and open_response() or nil, response_body))
end
"#;

/// A state with everything that scripts of steps have.
fn machine(
    options: &ScriptOptions,
    shared: &Arc<Shared>,
    sink: Sink,
    stream: u64,
) -> Result<(Machine, Recorded), ScriptError> {
    let machine = Machine::new(options, sink, stream)?;
    let added = headers::install(&machine.lua)
        .and_then(|()| functions::install(&machine.lua, options, shared, stream))
        .and_then(|()| metrics::install(&machine.lua, &options.limits.metrics));
    match added {
        Ok(recorded) => Ok((machine, recorded)),
        Err(error) => Err(ScriptError::new(format!("cannot make a Lua state: {error}"))),
    }
}

/// A script in a state.
#[derive(Debug)]
struct Loaded {
    name: Arc<str>,
    scheme: &'static str,
    make: Option<Entry>,
    check: Option<Entry>,
}

/// A function of a script.
#[derive(Debug)]
struct Entry {
    function: Function,
    uses: Uses,
    line: u32,
    /// For messages: the function and the step.
    what: String,
}

impl Loaded {
    fn load(machine: &Machine, script: &StepScript) -> Result<Self, ScriptError> {
        let step = &script.step;
        let what = of_step(step);
        let doing = Doing { script: &script.text.name, line: 0, what: &what };
        let of_lua = |error: mlua::Error| machine.error(&error, &doing);
        let globals = own_globals(machine).map_err(of_lua)?;
        machine.run(&script.text, Some(globals.clone()), &what)?;
        let entry = |name: &str| -> Result<Option<Entry>, ScriptError> {
            let function = match globals.raw_get(name).map_err(of_lua)? {
                Value::Nil => return Ok(None),
                Value::Function(function) => function,
                other => {
                    let message = format!("`{name}` is a {}, not a function", kind(&other));
                    return Err(of_lua(mlua::Error::RuntimeError(message)));
                }
            };
            let uses = Uses::of(&machine.util, &function);
            let what = if step.is_empty() { name.to_owned() } else { format!("{name} of step `{step}`") };
            Ok(Some(Entry { line: Machine::line_of(&function), function, uses, what }))
        };
        let (make, check) = (entry("make_request")?, entry("validate_response")?);
        if make.is_none() && check.is_none() {
            let message = "defines neither `make_request` nor `validate_response`: write one of them as a \
                           global function";
            return Err(of_lua(mlua::Error::RuntimeError(message.to_owned())));
        }
        let scheme = if script.scheme == Scheme::Https { "https" } else { "http" };
        Ok(Self { name: Arc::clone(&script.text.name), scheme, make, check })
    }

    fn found(&self) -> Definitions {
        let uses = |entry: &Option<Entry>| entry.as_ref().map(|entry| entry.uses);
        Definitions { make: uses(&self.make), check: uses(&self.check) }
    }
}

/// The script of a step in messages.
fn of_step(step: &str) -> String {
    if step.is_empty() { String::new() } else { format!("the script of step `{step}`") }
}

/// Globals of one script, so that the functions of two do not take each other's place; the library is
/// behind them.
fn own_globals(machine: &Machine) -> mlua::Result<Table> {
    let (globals, meta) = (machine.lua.create_table()?, machine.lua.create_table()?);
    meta.set("__index", machine.lua.globals())?;
    globals.set("_G", &globals)?;
    globals.set_metatable(Some(meta))?;
    Ok(globals)
}

/// The scripts of steps in one worker.
#[derive(Debug)]
struct StepWorker {
    machine: Machine,
    /// Values of metrics.
    recorded: Recorded,
    scripts: Vec<Loaded>,
    request: Headers,
    response: Headers,
    /// Calls a `make_request`.
    make: Function,
    /// Calls a `validate_response`.
    check: Function,
    /// The empty string.
    empty: Value,
}

impl StepWorker {
    /// Takes the parts of a response that a function reads; returns the argument for its body.
    fn response(
        &self,
        uses: Uses,
        status: u16,
        fields: &FieldList,
        body: &[u8],
    ) -> mlua::Result<Option<Value>> {
        if uses.0[0]
            && let Message::Response { status: kept, fields: copy, .. } =
                &mut *self.response.message().borrow_mut()
        {
            *kept = status;
            copy.clear();
            fields.iter().for_each(|(name, value)| copy.push(name, value));
        }
        self.body(uses.0[1], body)
    }

    /// A body as an argument; `None` for the empty one, which is there already.
    fn body(&self, is_used: bool, body: &[u8]) -> mlua::Result<Option<Value>> {
        match (is_used, body) {
            (false, _) => Ok(Some(Value::Nil)),
            (true, []) => Ok(None),
            (true, body) => Ok(Some(Value::String(self.machine.lua.create_string(body)?))),
        }
    }

    fn call_make(
        &self,
        script: &Loaded,
        make: &Entry,
        session: &Session,
        request: &mut DynamicRequest,
    ) -> Result<(), ScriptError> {
        let doing = Doing { script: &script.name, line: make.line, what: &make.what };
        let of_lua = |error: mlua::Error| self.machine.error(&error, &doing);
        let Uses([reads_response, _, reads_request, reads_body]) = make.uses;
        let body = self
            .response(make.uses, session.last_status, &session.last_fields, &session.last_body)
            .map_err(of_lua)?;
        let own_body = self.body(reads_body, &request.body).map_err(of_lua)?;
        let body = body.as_ref().unwrap_or(&self.empty);
        let own_body = own_body.as_ref().unwrap_or(&self.empty);
        let arguments = (&make.function, reads_response, body, reads_request, own_body);
        self.exchange(script.scheme, request);
        let returned = self.machine.call(&self.make, arguments, &doing);
        let changed = self.exchange(script.scheme, request);
        let (headers, body): (Value, Value) = returned?;
        let changed = changed | self.take_headers(headers, script.scheme, request).map_err(of_lua)?;
        let changed = changed | self.take_body(body, request).map_err(of_lua)?;
        if changed {
            request.check().map_err(|why| of_lua(mlua::Error::RuntimeError(why)))?;
        }
        Ok(())
    }

    /// Moves the request into the header tables' message, or out again; whether it was changed there.
    fn exchange(&self, own_scheme: &'static str, outside: &mut DynamicRequest) -> bool {
        let Message::Request { request, scheme, changed } = &mut *self.request.message().borrow_mut() else {
            return false;
        };
        std::mem::swap(request, outside);
        *scheme = own_scheme;
        std::mem::take(changed)
    }

    /// Takes the headers that `make_request` returned; returns `true` if they change the request.
    fn take_headers(&self, headers: Value, scheme: &str, request: &mut DynamicRequest) -> mlua::Result<bool> {
        match headers {
            Value::Nil => Ok(false),
            Value::Table(table) => {
                request.fields.clear();
                // A response's headers are a header table, too: a request has no `:status`.
                table.for_each(|key: Value, value: Value| {
                    write_field(&self.machine.lua, request, scheme, key, value)
                })?;
                Ok(true)
            }
            other => {
                let message = format!("returned a {} as headers, not a table", kind(&other));
                Err(mlua::Error::RuntimeError(message))
            }
        }
    }

    /// Takes the body that it returned; returns `true` if that changes the request.
    fn take_body(&self, body: Value, request: &mut DynamicRequest) -> mlua::Result<bool> {
        let body_kind = kind(&body);
        if body.is_nil() {
            return Ok(false);
        }
        let Some(text) = text_of(&self.machine.lua, body)? else {
            let message = format!("returned a {body_kind} as the body, not a string");
            return Err(mlua::Error::RuntimeError(message));
        };
        let text = text.as_bytes();
        if *text == *request.body {
            return Ok(false);
        }
        request.body.clear();
        request.body.extend_from_slice(&text);
        Ok(true)
    }
}

impl Scripts for StepWorker {
    fn make_request(
        &mut self,
        script: u32,
        session: &Session,
        request: &mut DynamicRequest,
    ) -> Result<(), ScriptError> {
        let Some(script) = self.scripts.get(script as usize) else { return Ok(()) };
        let Some(make) = &script.make else { return Ok(()) };
        let made = self.call_make(script, make, session, request);
        if made.is_err() {
            self.request.close();
            self.response.close();
            self.recorded.clear();
        }
        made
    }

    fn validate_response(&mut self, script: u32, received: &Received<'_>) -> Result<bool, ScriptError> {
        let Some(script) = self.scripts.get(script as usize) else { return Ok(true) };
        let Some(check) = &script.check else { return Ok(true) };
        let doing = Doing { script: &script.name, line: check.line, what: &check.what };
        let of_lua = |error: mlua::Error| self.machine.error(&error, &doing);
        let body = self.response(check.uses, received.status, received.fields, received.body);
        let body = body.map_err(of_lua)?;
        let arguments = (&check.function, check.uses.0[0], body.as_ref().unwrap_or(&self.empty));
        let returned = self.machine.call::<Value>(&self.check, arguments, &doing);
        if returned.is_err() {
            self.response.close();
            self.recorded.clear();
        }
        match returned? {
            Value::Boolean(good) => Ok(good),
            other => {
                let message = format!("returned a {}, not true or false", kind(&other));
                Err(of_lua(mlua::Error::RuntimeError(message)))
            }
        }
    }

    fn delay(&mut self, _script: u32) -> Result<Nanos, ScriptError> {
        Ok(Nanos::ZERO)
    }

    fn take_values(&mut self, values: &mut Vec<ScriptValue>) {
        self.recorded.take(values);
    }

    fn wants_to_stop(&self) -> bool {
        self.machine.is_spent()
    }

    fn finish(self: Box<Self>) -> Box<dyn Any + Send> {
        self.machine.output.flush();
        Box::new(())
    }
}
