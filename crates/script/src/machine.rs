//! One guarded Lua state.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::{FromLuaMulti, Function, IntoLuaMulti, Lua, LuaOptions, StdLib, Table};
use plimsoll_scenario::{ScriptError, ScriptText};

use crate::analysis;
use crate::fault::{Doing, script_error};
use crate::guard::Guard;
use crate::library;
use crate::modules::Modules;
use crate::output::{self, Output, Sink};
use crate::text::chunk;
use crate::{ScriptOptions, strings};

/// One guarded Lua state. It stays in its thread.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) lua: Lua,
    guard: Rc<Guard>,
    pub(crate) output: Rc<Output>,
    modules: Rc<Modules>,
    memory_limit: usize,
    /// Set by the error that leaves the state without use: a call was stopped, or its memory is full.
    spent: RefCell<Option<ScriptError>>,
    /// LuaJIT's view into functions.
    pub(crate) util: Table,
}

impl Machine {
    /// A state with the restricted library. `stream` keeps the random numbers of the states of a run apart.
    pub(crate) fn new(options: &ScriptOptions, sink: Sink, stream: u64) -> Result<Self, ScriptError> {
        Self::build(options, sink, stream)
            .map_err(|error| ScriptError::new(format!("cannot make a Lua state: {error}")))
    }

    fn build(options: &ScriptOptions, sink: Sink, stream: u64) -> mlua::Result<Self> {
        let libraries = StdLib::TABLE
            | StdLib::IO
            | StdLib::OS
            | StdLib::STRING
            | StdLib::BIT
            | StdLib::MATH
            | StdLib::PACKAGE
            | StdLib::JIT;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        let util = analysis::util(&lua)?;
        library::restrict(&lua, options)?;
        let output = Output::new(sink);
        output::install(&lua, &output)?;
        let modules = Modules::install(&lua, options)?;
        let math: Table = lua.globals().get("math")?;
        // 53 bits: LuaJIT takes the seed as a double.
        let seed = plimsoll_core::Random::new(options.limits.seed, stream).bits() >> 11;
        math.get::<Function>("randomseed")?.call::<()>(seed as f64)?;
        let guard = Guard::install(&lua, options)?;
        strings::install(&lua, &guard)?;
        if options.limits.memory_limit > 0 {
            lua.set_memory_limit(options.limits.memory_limit)?;
        }
        let memory_limit = options.limits.memory_limit;
        Ok(Self { lua, guard, output, modules, memory_limit, spent: RefCell::default(), util })
    }

    /// Compiles and runs a script with these globals, or the state's.
    pub(crate) fn run(
        &self,
        text: &ScriptText,
        globals: Option<Table>,
        what: &str,
    ) -> Result<(), ScriptError> {
        if let Some(folder) = &text.folder {
            self.modules.add_folder(folder);
        }
        let function = self.compiled(text, globals, what)?;
        self.call(&function, (), &Doing { script: &text.name, line: 0, what })
    }

    /// Reads a script without running anything of it.
    ///
    /// # Errors
    /// The text is not Lua.
    pub(crate) fn read(&self, text: &ScriptText, what: &str) -> Result<(), ScriptError> {
        self.compiled(text, None, what).map(|_| ())
    }

    fn compiled(
        &self,
        text: &ScriptText,
        globals: Option<Table>,
        what: &str,
    ) -> Result<Function, ScriptError> {
        let doing = Doing { script: &text.name, line: 0, what };
        let compiled = library::compile(&self.lua, &text.source, &chunk(text), globals);
        compiled.map_err(|error| script_error(&error, &doing, self.memory_limit))
    }

    /// Returns `true` if the state is of no use any more: every call fails.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent.borrow().is_some()
    }

    /// Calls a function within the limits.
    #[inline]
    pub(crate) fn call<R: FromLuaMulti>(
        &self,
        function: &Function,
        arguments: impl IntoLuaMulti,
        doing: &Doing<'_>,
    ) -> Result<R, ScriptError> {
        if let Some(error) = &*self.spent.borrow() {
            return Err(error.clone());
        }
        self.guard.begin();
        let result = function.call(arguments);
        let verdict = self.guard.end();
        let (error, stopped) = match (result, verdict) {
            (Ok(result), None) => return Ok(result),
            (_, Some(verdict)) => (mlua::Error::RuntimeError(verdict), true),
            (Err(error), None) => (error, false),
        };
        // An error behind a tail call has no line of its own.
        let line = if doing.line == 0 { Self::line_of(function) } else { doing.line };
        let error = script_error(&error, &Doing { line, ..*doing }, self.memory_limit);
        // The next call would take as long, and may find anything half done.
        Err(self.remember(ScriptError { ends_run: error.ends_run || stopped, ..error }))
    }

    /// An error of this state in words.
    #[cold]
    pub(crate) fn error(&self, error: &mlua::Error, doing: &Doing<'_>) -> ScriptError {
        self.remember(script_error(error, doing, self.memory_limit))
    }

    /// Keeps an error that ends the run, so that later calls fail with it. A state without memory does not
    /// recover: the memory belongs to values that the script, or its error, still has, and LuaJIT collects
    /// none of them when it finds no more. A call after it would fail at its first string.
    fn remember(&self, error: ScriptError) -> ScriptError {
        if error.ends_run {
            self.spent.replace(Some(error.clone()));
        }
        error
    }

    /// The line where a function begins.
    pub(crate) fn line_of(function: &Function) -> u32 {
        function.info().line_defined.map_or(0, |line| u32::try_from(line).unwrap_or(0))
    }
}

/// A state for the tests of the library.
#[cfg(test)]
pub(crate) fn tests_machine() -> Lua {
    #[derive(Debug)]
    struct Still;
    impl crate::Host for Still {
        fn monotonic(&self) -> plimsoll_core::Nanos {
            plimsoll_core::Nanos::ZERO
        }
        fn unix_ns(&self) -> u64 {
            0
        }
        fn print(&self, _: Option<u32>, _: &[u8]) {}
        fn lookup(&self, _: &str, _: &str) -> Result<Vec<String>, String> {
            Ok(Vec::new())
        }
        fn can_connect(&self, _: &str) -> bool {
            false
        }
    }
    let options = ScriptOptions::new(std::sync::Arc::new(Still), plimsoll_scenario::ScriptLimits::default());
    Machine::new(&options, Sink::Nowhere, 0).expect("a state").lua
}
