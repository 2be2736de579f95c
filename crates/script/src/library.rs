//! The library as scripts see it: functions that could reach the system are removed, or say how to allow
//! them.

use mlua::{Function, Lua, MultiValue, Table, Value};

use crate::ScriptOptions;
use crate::alarm::reaches_compiled_code;
use crate::fault::OWN_CHUNK;
use crate::output::kind;
use crate::text::without_shebang;

/// Functions that reach files, processes or the environment.
const SYSTEM: [(&str, &[&str]); 2] = [
    ("io", &["open", "popen", "lines", "read", "input", "output", "tmpfile", "close"]),
    ("os", &["execute", "remove", "rename", "exit", "getenv", "tmpname", "setlocale"]),
];

/// Calls in each other that go through coroutines or `load`, as many as PUC-Lua allows of C functions
/// (`LUAI_MAXCCALLS`).
const DEEPEST: u32 = 200;

/// `xpcall` in Lua. A handler of the real one runs inside the hook that throws, and the finalizer of a proxy
/// inside the collector: both with hooks disabled, so that a loop in them could not be stopped.
const GUARDED: &str = r#"
    local pcall, select = pcall, select
    local function finish(handler, ok, ...)
        if ok then return true, ... end
        return false, select(2, pcall(handler, ...))
    end
    function xpcall(f, handler, ...)
        return finish(handler, pcall(f, ...))
    end
"#;

/// Coroutines and `load` that count the calls in each other, and end at the deepest one allowed. Each
/// coroutine has a Lua stack of its own, and each call of ours a native frame: neither ends a recursion
/// through them before the thread's stack is used up, which would abort the process.
const COUNTED: &str = r#"
    local deepest = ...
    local create, resume, load, pcall, error = coroutine.create, coroutine.resume, load, pcall, error
    local depth = 0
    local function enter()
        if depth >= deepest then
            error("stack overflow: more than " .. deepest .. " calls of coroutines and `load` in each other", 3)
        end
        depth = depth + 1
    end
    local function leave(...)
        depth = depth - 1
        return ...
    end
    local function pass(ok, ...)
        if ok then return ... end
        error((...), 0)
    end
    function coroutine.resume(...)
        enter()
        return leave(resume(...))
    end
    function coroutine.wrap(f)
        local routine = create(f)
        return function(...)
            enter()
            return pass(leave(resume(routine, ...)))
        end
    end
    function _G.load(...)
        enter()
        return pass(leave(pcall(load, ...)))
    end
"#;

/// Returns the error of a function that is not allowed, with the way to allow it.
pub(crate) fn refusal(name: &str) -> mlua::Error {
    mlua::Error::RuntimeError(format!(
        "`{name}` is not allowed: scripts have no access to the system unless the command has \
         --script-allow-system"
    ))
}

/// Restricts the library. The compiler is on afterwards if compiled code can be stopped.
pub(crate) fn restrict(lua: &Lua, options: &ScriptOptions) -> mlua::Result<()> {
    let globals = lua.globals();
    if !options.limits.allow_system {
        forbid_system(&globals, lua)?;
    }
    // It would end the process without a report.
    let os: Table = globals.get("os")?;
    let exit = |_: &Lua, _: MultiValue| -> mlua::Result<()> {
        Err(mlua::Error::RuntimeError("`os.exit` is not allowed: use error() or thread:stop()".to_owned()))
    };
    os.set("exit", lua.create_function(exit)?)?;

    let (debug, jit) = (debug_of_scripts(lua)?, jit_of_scripts(lua)?);
    globals.set("debug", &debug)?;
    globals.set("jit", &jit)?;
    globals.set("package", package_of_scripts(lua, debug, jit)?)?;

    lua.load(GUARDED).set_name(OWN_CHUNK).exec()?;
    globals.set("newproxy", Value::Nil)?;

    globals.set("load", lua.create_function(load)?)?;
    let load_string =
        |lua: &Lua, (chunk, name): (Value, Option<mlua::LuaString>)| load(lua, (chunk, name, None, None));
    globals.set("loadstring", lua.create_function(load_string)?)?;
    lua.load(COUNTED).set_name(OWN_CHUNK).call::<()>(DEEPEST)
}

/// Replaces the functions of the [system](SYSTEM) by ones that say how to allow them.
fn forbid_system(globals: &Table, lua: &Lua) -> mlua::Result<()> {
    for (library, names) in SYSTEM {
        let table: Table = globals.get(library)?;
        for name in names {
            let full = format!("{library}.{name}");
            let refuse = move |_: &Lua, _: MultiValue| -> mlua::Result<()> { Err(refusal(&full)) };
            table.set(*name, lua.create_function(refuse)?)?;
        }
    }
    Ok(())
}

/// The library `debug` of scripts: only its traceback.
fn debug_of_scripts(lua: &Lua) -> mlua::Result<Table> {
    let traceback = |lua: &Lua, (message, level): (Option<String>, Option<usize>)| {
        lua.traceback(message.as_deref(), level.unwrap_or(1))
    };
    let debug = lua.create_table()?;
    debug.set("traceback", lua.create_function(traceback)?)?;
    let absent = "it is not there: scripts have `debug.traceback` only, and no `ffi`";
    forbid_others(lua, &debug, "debug", absent)?;
    Ok(debug)
}

/// The library `jit` of scripts, which tells about the compiler and changes nothing; sets the compiler.
fn jit_of_scripts(lua: &Lua) -> mlua::Result<Table> {
    let jit: Table = lua.globals().get("jit")?;
    let is_on = reaches_compiled_code();
    jit.get::<Function>(if is_on { "on" } else { "off" })?.call::<()>(())?;
    let shown = lua.create_table()?;
    for name in ["version", "version_num", "os", "arch"] {
        shown.set(name, jit.get::<Value>(name)?)?;
    }
    shown.set("status", lua.create_function(move |_, ()| Ok(is_on))?)?;
    // These change nothing in what a script does.
    for name in ["on", "off", "flush"] {
        shown.set(name, lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    }
    forbid_others(lua, &shown, "jit", "it is not there: the compiler is set for the whole state")?;
    Ok(shown)
}

/// The table `package` of scripts, without a way to modules of the compiler and `ffi`.
fn package_of_scripts(lua: &Lua, debug: Table, jit: Table) -> mlua::Result<Table> {
    let package: Table = lua.globals().get("package")?;
    let loaded: Table = package.get("loaded")?;
    let preload: Table = package.get("preload")?;
    for name in ["jit.util", "jit.opt", "jit.profile", "ffi"] {
        loaded.set(name, Value::Nil)?;
        preload.set(name, Value::Nil)?;
    }
    loaded.set("jit", jit)?;
    loaded.set("debug", debug)?;
    let kept = lua.create_table()?;
    kept.set("loaded", loaded)?;
    kept.set("preload", preload)?;
    kept.set("config", package.get::<Value>("config")?)?;
    Ok(kept)
}

/// Makes reading any other member of `table` an error.
fn forbid_others(lua: &Lua, table: &Table, name: &'static str, why: &'static str) -> mlua::Result<()> {
    let missing = move |_: &Lua, (_, key): (Table, String)| -> mlua::Result<()> {
        Err(mlua::Error::RuntimeError(format!("`{name}.{key}`: {why}")))
    };
    let meta = lua.create_table()?;
    meta.set("__index", lua.create_function(missing)?)?;
    table.set_metatable(Some(meta))
}

/// `load`, for text: bytecode is not checked by Lua and could do anything.
fn load(
    lua: &Lua,
    (chunk, name, _mode, environment): (
        Value,
        Option<mlua::LuaString>,
        Option<mlua::LuaString>,
        Option<Table>,
    ),
) -> mlua::Result<(Value, Option<String>)> {
    let mut source = Vec::new();
    match &chunk {
        Value::String(text) => source.extend_from_slice(&text.as_bytes()),
        Value::Function(pieces) => loop {
            match pieces.call::<Option<mlua::LuaString>>(())? {
                Some(piece) if !piece.as_bytes().is_empty() => source.extend_from_slice(&piece.as_bytes()),
                _ => break,
            }
        },
        other => {
            let message = format!("bad argument #1 to 'load' (string expected, got {})", kind(other));
            return Err(mlua::Error::RuntimeError(message));
        }
    }
    let name = match name {
        Some(name) => name.to_string_lossy(),
        None => "=(load)".to_owned(),
    };
    Ok(match compile(lua, &source, &name, environment) {
        Ok(function) => (Value::Function(function), None),
        Err(error) => (Value::Nil, Some(reason(&error))),
    })
}

pub(crate) fn compile(
    lua: &Lua,
    source: &[u8],
    name: &str,
    environment: Option<Table>,
) -> mlua::Result<Function> {
    // A NUL in the name would be a panic of the library's.
    let name = name.replace('\0', "?");
    let source = without_shebang(source);
    let chunk = lua.load(&*source).set_name(name).set_mode(mlua::chunk::ChunkMode::Text);
    match environment {
        Some(environment) => chunk.set_environment(environment).into_function(),
        None => chunk.into_function(),
    }
}

/// Returns the syntax error of a script before it is run; `None` if it has none.
pub(crate) fn syntax_error(source: &[u8]) -> Option<String> {
    let lua = Lua::new_with(mlua::StdLib::NONE, mlua::LuaOptions::new()).ok()?;
    compile(&lua, source, "=script", None).err().map(|error| reason(&error))
}

fn reason(error: &mlua::Error) -> String {
    match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}
