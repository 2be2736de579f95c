//! wrk's main state: `setup` and `done`.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use mlua::{AnyUserData, Function, Lua, UserData, UserDataFields, UserDataMethods, Value};
use plimsoll_scenario::ScriptError;

use super::{Leftover, State, ThreadSetup, WrkScript, WrkSummary};
use crate::fault::Doing;
use crate::machine::Machine;
use crate::output::{Sink, kind};
use crate::portable::{Budget, Portable};

/// The main state of a script of wrk, between `setup` and `done`. It stays in its thread.
#[derive(Debug)]
pub struct WrkMain {
    script: Arc<WrkScript>,
    state: State,
    workers: Vec<Rc<RefCell<Worker>>>,
    is_over: Rc<Cell<bool>>,
}

/// A worker as the main state sees it.
#[derive(Debug, Default)]
struct Worker {
    setup: ThreadSetup,
    /// Globals of the worker: before the run those of the script, after it those that the worker left behind.
    globals: Vec<(Vec<u8>, Portable)>,
}

/// The object `thread` of the main state.
struct Thread {
    worker: Rc<RefCell<Worker>>,
    is_over: Rc<Cell<bool>>,
    address: String,
}

fn error(message: impl Into<String>) -> mlua::Error {
    mlua::Error::RuntimeError(message.into())
}

impl UserData for Thread {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |_, thread| {
            let worker = thread.worker.borrow();
            Ok(worker.setup.address.clone().unwrap_or_else(|| thread.address.clone()))
        });
        fields.add_field_method_set("addr", |_, thread, address: Value| match address {
            Value::String(address) => {
                thread.worker.borrow_mut().setup.address = Some(address.to_string_lossy());
                Ok(())
            }
            other => Err(error(format!("thread.addr is a {}: give it one of wrk.lookup()", kind(&other)))),
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, thread, name: mlua::LuaString| {
            let worker = thread.worker.borrow();
            let set = worker.setup.values.iter().filter(|_| !thread.is_over.get());
            let mut known = set.rev().chain(&worker.globals);
            match known.find(|(known, _)| *known == *name.as_bytes()) {
                Some((_, Portable::Refused(why))) => {
                    Err(error(format!("thread:get: `{}` {why}", name.to_string_lossy())))
                }
                Some((_, value)) => value.give(lua),
                None => Ok(Value::Nil),
            }
        });
        methods.add_method("set", |_, thread, (name, value): (mlua::LuaString, Value)| {
            if thread.is_over.get() {
                return Err(error("thread:set: the run is over"));
            }
            let value = Portable::take(&value, &mut Budget::default())
                .map_err(|why| error(format!("thread:set: `{}` {why}", name.to_string_lossy())))?;
            thread.worker.borrow_mut().setup.values.push((name.as_bytes().to_vec(), value));
            Ok(())
        });
        methods.add_method("stop", |_, _, ()| -> mlua::Result<()> {
            Err(error(
                "thread:stop() is for a thread that runs: call wrk.thread:stop() in request or response",
            ))
        });
    }
}

impl WrkMain {
    /// Makes the main state and runs `setup` for each worker.
    pub(super) fn start(
        script: Arc<WrkScript>,
        workers: u32,
        addresses: &[String],
    ) -> Result<(Self, Vec<ThreadSetup>), ScriptError> {
        let sink = Sink::Host(Arc::clone(&script.options.host), None, "");
        // A stream of random numbers that no worker has.
        let state = State::open(&script, sink, u64::MAX)?;
        let globals = state.portable_globals();
        let is_over = Rc::new(Cell::new(false));
        let make = |_| Rc::new(RefCell::new(Worker { globals: globals.clone(), ..Worker::default() }));
        let workers: Vec<_> = (0..workers).map(make).collect();
        let doing = Doing { script: &script.text.name, line: 0, what: "setup" };
        let of_lua = |error: mlua::Error| state.machine.error(&error, &doing);
        let setup: Function = state.wrk.raw_get("setup").map_err(of_lua)?;
        for worker in &workers {
            let thread = Thread {
                worker: Rc::clone(worker),
                is_over: Rc::clone(&is_over),
                address: addresses.first().cloned().unwrap_or_default(),
            };
            let thread: AnyUserData = state.machine.lua.create_userdata(thread).map_err(of_lua)?;
            state.machine.call::<()>(&setup, thread, &doing)?;
        }
        state.machine.output.flush();
        let setups = workers.iter().map(|worker| worker.borrow().setup.clone()).collect();
        Ok((Self { script, state, workers, is_over }, setups))
    }

    /// Runs `done` with the results of [`finish`](plimsoll_scenario::Scripts::finish) of each worker; returns
    /// its output, which belongs on the standard output.
    ///
    /// # Errors
    /// The script's.
    pub fn done(
        self,
        leftovers: Vec<Box<dyn Any + Send>>,
        summary: &WrkSummary,
    ) -> Result<String, ScriptError> {
        self.is_over.set(true);
        for leftover in leftovers.into_iter().filter_map(Leftover::of) {
            if let Some(worker) = self.workers.get(leftover.worker as usize) {
                worker.borrow_mut().globals = leftover.globals;
            }
        }
        let Some(done) = self.state.function("done") else { return Ok(String::new()) };
        let machine = &self.state.machine;
        let line = Machine::line_of(&done);
        let doing = Doing { script: &self.script.text.name, line, what: "done" };
        machine.output.keep();
        let arguments = arguments(&machine.lua, summary).map_err(|error| machine.error(&error, &doing))?;
        machine.call::<()>(&done, arguments, &doing)?;
        Ok(String::from_utf8_lossy(&machine.output.take()).into_owned())
    }
}

fn arguments(lua: &Lua, summary: &WrkSummary) -> mlua::Result<(mlua::Table, AnyUserData, AnyUserData)> {
    Ok((
        summary.table(lua)?,
        lua.create_userdata(summary.latency.clone())?,
        lua.create_userdata(summary.requests_per_second.clone())?,
    ))
}
