//! wrk's scripts, unchanged.
//!
//! As in wrk there is a main state, which runs `setup` and `done`, and a state for each worker, which runs
//! `init`, `request`, `delay` and `response`. Differences:
//!
//! - addresses are strings (`ip:port`), not userdata;
//! - names in the table of response headers are found in any case, and `pairs` gives them as most servers
//!   write them (`Content-Type`), regardless of the server's spelling;
//! - `wrk.lookup` and `wrk.connect` are for `setup` and `init`: a worker cannot wait.

mod raw;
mod summary;
mod table;
mod threads;
mod worker;

use std::any::Any;
use std::sync::{Arc, OnceLock};

use mlua::{Function, Table, Value};
use plimsoll_core::Shard;
use plimsoll_scenario::{
    FieldNeeds, Fingerprint, Needs, ScriptError, ScriptSource, ScriptText, Scripts, UrlRequest, UrlScript,
};

use crate::analysis::Uses;
use crate::fault::Doing;
use crate::machine::Machine;
use crate::output::{Sink, kind};
use crate::portable::Portable;
use crate::{ScriptOptions, headers};

pub use summary::{WrkErrors, WrkStats, WrkSummary};
pub use threads::WrkMain;

/// A script of wrk, loaded and looked at.
#[derive(Debug)]
pub struct WrkScript {
    text: ScriptText,
    given: UrlRequest,
    arguments: Vec<String>,
    options: ScriptOptions,
    /// The request as the script left it.
    request: UrlRequest,
    makes_requests: bool,
    gives_bytes: bool,
    has_delay: bool,
    response: Option<Needs>,
    has_done: bool,
    setups: OnceLock<Vec<ThreadSetup>>,
}

/// Settings that `setup` made for one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadSetup {
    /// The value that the script assigned to `thread.addr`.
    pub(crate) address: Option<String>,
    /// Values that it set.
    pub(crate) values: Vec<(Vec<u8>, Portable)>,
}

impl WrkScript {
    /// Runs the script once, to find its functions. Its output in this run is not shown. `arguments` are
    /// those of `init`: the URL first, as wrk has it in `args[0]`.
    ///
    /// # Errors
    /// It does not load, or does nothing that has an effect.
    pub fn load(
        text: ScriptText,
        request: UrlRequest,
        arguments: Vec<String>,
        options: ScriptOptions,
    ) -> Result<Arc<Self>, ScriptError> {
        let mut script = Self {
            text,
            request: request.clone(),
            given: request,
            arguments,
            options,
            makes_requests: false,
            gives_bytes: false,
            has_delay: false,
            response: None,
            has_done: false,
            setups: OnceLock::new(),
        };
        if script.options.limits.only_syntax {
            Machine::new(&script.options, Sink::Nowhere, 0)?.read(&script.text, "")?;
            return Ok(Arc::new(script));
        }
        let state = State::open(&script, Sink::Nowhere, 0)?;
        script.look(&state)?;
        Ok(Arc::new(script))
    }

    /// Finds the definitions of the script.
    fn look(&mut self, state: &State) -> Result<(), ScriptError> {
        let doing = Doing { script: &self.text.name, line: 0, what: "" };
        let of_lua = |error: mlua::Error| state.machine.error(&error, &doing);
        for name in ["setup", "init", "delay", "request", "response", "done"] {
            let value: Value = state.globals.raw_get(name).map_err(of_lua)?;
            if !value.is_nil() && !value.is_function() {
                let message = format!("`{name}` is a {}, not a function", kind(&value));
                return Err(of_lua(mlua::Error::RuntimeError(message)));
            }
        }
        let defines = |name: &str| state.function(name).is_some();
        // `init` runs in each worker: its definitions and changes are not known before.
        let has_init = defines("init") || state.replaces_init();
        let request = state.read_request().map_err(of_lua)?;
        let response = match state.function("response") {
            Some(function) if !self.mentions("response", 2) => {
                let Uses([_, fields, body, _]) = Uses::of(&state.machine.util, &function);
                let fields = if fields { FieldNeeds::All } else { FieldNeeds::Nothing };
                Some(Needs { fields, body, ..Needs::default() })
            }
            // The function may be replaced later, by one that reads more.
            Some(_) => Some(Needs { fields: FieldNeeds::All, body: true, ..Needs::default() }),
            None if has_init && self.mentions("response", 1) => {
                Some(Needs { fields: FieldNeeds::All, body: true, ..Needs::default() })
            }
            None => None,
        };
        let is_known = ["setup", "delay", "request", "done"].iter().any(|name| defines(name));
        if !is_known && !has_init && response.is_none() && request == self.given {
            let message = "neither defines a function of wrk's (setup, init, delay, request, response, done) \
                           nor changes the table `wrk`: is it a script for wrk?";
            return Err(of_lua(mlua::Error::RuntimeError(message.to_owned())));
        }
        self.gives_bytes = defines("request");
        self.makes_requests = self.gives_bytes || has_init;
        self.has_delay = defines("delay") || (has_init && self.mentions("delay", 1));
        self.has_done = defines("done");
        self.response = response;
        self.request = request;
        Ok(())
    }

    /// Returns `true` if the source has this word at least `times` times.
    fn mentions(&self, word: &str, times: usize) -> bool {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        self.text.source.split(|byte| !is_word(byte)).filter(|found| *found == word.as_bytes()).count()
            >= times
    }

    /// Returns `true` if there is a `done`.
    pub fn has_done(&self) -> bool {
        self.has_done
    }

    /// The address that `setup` chose for this worker, if it did: all its connections go there.
    pub fn address(&self, worker: u32) -> Option<&str> {
        self.setups.get()?.get(worker as usize)?.address.as_deref()
    }

    /// Runs `setup` for each of `workers` workers; `addresses` are those of the target. Call it once, before
    /// the workers [open](ScriptSource::open) their states.
    ///
    /// # Errors
    /// The script's, or it was called before.
    pub fn setup(self: &Arc<Self>, workers: u32, addresses: &[String]) -> Result<WrkMain, ScriptError> {
        let (main, setups) = WrkMain::start(Arc::clone(self), workers, addresses)?;
        if self.setups.set(setups).is_err() {
            return Err(ScriptError::new(format!("{}: setup has run before", self.text.name)));
        }
        Ok(main)
    }
}

impl ScriptSource for WrkScript {
    fn needs(&self, _script: u32) -> Needs {
        self.response.clone().unwrap_or_default()
    }

    fn makes_requests(&self, _script: u32) -> bool {
        self.makes_requests
    }

    fn sees_responses(&self, _script: u32) -> bool {
        self.response.is_some()
    }

    fn open(&self, worker: Shard, addresses: &[String]) -> Result<Box<dyn Scripts>, ScriptError> {
        worker::open(self, worker, addresses)
    }
}

impl UrlScript for WrkScript {
    fn request(&self) -> &UrlRequest {
        &self.request
    }

    /// There is a function `request`. (`init` may still define one.)
    fn gives_bytes(&self) -> bool {
        self.gives_bytes
    }

    fn has_delay(&self) -> bool {
        self.has_delay
    }

    fn fingerprint(&self) -> Fingerprint {
        let fingerprint = Fingerprint::EMPTY.with(&self.text.source);
        self.arguments.iter().fold(fingerprint, |found, argument| found.with(argument.as_bytes()))
    }
}

/// A state with the script in it, before `init`.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) machine: Machine,
    pub(crate) globals: Table,
    pub(crate) wrk: Table,
    /// Our own `wrk.init`.
    init: Function,
    /// Names of the library, and of ours.
    library: Vec<Vec<u8>>,
}

impl State {
    /// Makes a state and runs the script.
    pub(crate) fn open(script: &WrkScript, sink: Sink, stream: u64) -> Result<Self, ScriptError> {
        let machine = Machine::new(&script.options, sink, stream)?;
        let doing = Doing { script: &script.text.name, line: 0, what: "" };
        let made = || -> mlua::Result<(Table, Table, Function, Vec<Vec<u8>>)> {
            headers::install(&machine.lua)?;
            let globals = machine.lua.globals();
            let wrk = table::install(&machine.lua, &script.given, &script.options)?;
            let init = wrk.get("init")?;
            let mut library = Vec::new();
            globals.for_each(|name: mlua::LuaString, _: Value| {
                library.push(name.as_bytes().to_vec());
                Ok(())
            })?;
            Ok((globals, wrk, init, library))
        };
        let (globals, wrk, init, library) = made().map_err(|error| machine.error(&error, &doing))?;
        machine.run(&script.text, None, "")?;
        // A script may have replaced the table.
        let wrk = match globals.raw_get("wrk").map_err(|error| machine.error(&error, &doing))? {
            Value::Table(table) => table,
            _ => wrk,
        };
        Ok(Self { machine, globals, wrk, init, library })
    }

    /// A global function of the script's.
    pub(crate) fn function(&self, name: &str) -> Option<Function> {
        self.globals.raw_get(name).ok()
    }

    fn replaces_init(&self) -> bool {
        self.wrk.raw_get::<Function>("init").map_or(true, |init| init != self.init)
    }

    fn read_request(&self) -> mlua::Result<UrlRequest> {
        table::read_request(&self.machine.lua, &self.wrk)
    }

    /// The simple globals of the script.
    pub(crate) fn portable_globals(&self) -> Vec<(Vec<u8>, Portable)> {
        let mut budget = crate::portable::Budget::default();
        let mut found = Vec::new();
        for pair in self.globals.pairs::<Value, Value>() {
            let Ok((Value::String(name), value)) = pair else { continue };
            let name = name.as_bytes();
            if self.library.iter().any(|known| known[..] == *name) {
                continue;
            }
            let value = Portable::take(&value, &mut budget).unwrap_or_else(Portable::Refused);
            found.push((name.to_vec(), value));
        }
        found
    }
}

/// State of a worker that outlives it.
#[derive(Debug)]
pub(crate) struct Leftover {
    pub(crate) worker: u32,
    pub(crate) globals: Vec<(Vec<u8>, Portable)>,
}

impl Leftover {
    pub(crate) fn of(any: Box<dyn Any + Send>) -> Option<Self> {
        any.downcast().ok().map(|leftover| *leftover)
    }
}
