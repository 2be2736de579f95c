//! Output of scripts.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use mlua::{Function, Lua, MultiValue, Table, Value, Variadic};

use crate::Host;

/// Bytes of one line that are held back at most.
const LONGEST_LINE: usize = 64 << 10;

/// Destination of printed output.
#[derive(Debug)]
pub(crate) enum Sink {
    /// Nowhere: a script that is only analysed.
    Nowhere,
    /// To the host, as this worker's, each line behind a mark.
    Host(Arc<dyn Host>, Option<u32>, &'static str),
    /// A buffer, in which the output is kept.
    Kept,
}

/// Text that a state has printed and not handed on yet.
#[derive(Debug)]
pub(crate) struct Output {
    sink: RefCell<Sink>,
    held: RefCell<Vec<u8>>,
}

impl Output {
    pub(crate) fn new(sink: Sink) -> Rc<Self> {
        Rc::new(Self { sink: RefCell::new(sink), held: RefCell::default() })
    }

    fn write(&self, text: &[u8]) {
        let mut held = self.held.borrow_mut();
        match &*self.sink.borrow() {
            Sink::Nowhere => {}
            Sink::Kept => held.extend_from_slice(text),
            Sink::Host(host, worker, mark) => {
                held.extend_from_slice(text);
                let whole = held.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
                let whole = if held.len() - whole > LONGEST_LINE { held.len() } else { whole };
                if whole > 0 {
                    host.print(*worker, &marked(&held[..whole], mark));
                    held.drain(..whole);
                }
            }
        }
    }

    /// Shows a line that was not ended.
    pub(crate) fn flush(&self) {
        if let Sink::Host(host, worker, mark) = &*self.sink.borrow() {
            let held = std::mem::take(&mut *self.held.borrow_mut());
            if !held.is_empty() {
                host.print(*worker, &marked(&held, mark));
            }
        }
    }

    /// Keeps printed output from now on.
    pub(crate) fn keep(&self) {
        self.flush();
        self.sink.replace(Sink::Kept);
    }

    /// Takes the text that was kept.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.held.borrow_mut())
    }
}

/// Each line behind `mark`.
fn marked(text: &[u8], mark: &str) -> Vec<u8> {
    text.split_inclusive(|&byte| byte == b'\n').flat_map(|line| [mark.as_bytes(), line].concat()).collect()
}

/// Makes `print`, `io.write`, `io.stdout` and `io.stderr` write to `output`.
pub(crate) fn install(lua: &Lua, output: &Rc<Output>) -> mlua::Result<()> {
    let globals = lua.globals();
    let tostring: Function = globals.get("tostring")?;
    let to = Rc::clone(output);
    let print = lua.create_function(move |_, values: MultiValue| {
        let mut line = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                line.push(b'\t');
            }
            line.extend_from_slice(&tostring.call::<mlua::LuaString>(value)?.as_bytes());
        }
        line.push(b'\n');
        to.write(&line);
        Ok(())
    })?;
    globals.set("print", print)?;

    let io: Table = globals.get("io")?;
    let to = Rc::clone(output);
    io.set("write", lua.create_function(move |lua, values| write(lua, &to, values).map(|()| true))?)?;
    let stream = lua.create_table()?;
    let to = Rc::clone(output);
    let write_to =
        move |lua: &Lua, (stream, values): (Value, Variadic<Value>)| write(lua, &to, values).map(|()| stream);
    stream.set("write", lua.create_function(write_to)?)?;
    for name in ["flush", "setvbuf"] {
        stream.set(name, lua.create_function(|_, _: MultiValue| Ok(true))?)?;
    }
    io.set("stdout", &stream)?;
    io.set("stderr", stream)?;
    io.set("flush", lua.create_function(|_, _: MultiValue| Ok(true))?)
}

fn write(lua: &Lua, output: &Output, values: Variadic<Value>) -> mlua::Result<()> {
    for (index, value) in values.into_iter().enumerate() {
        let name = kind(&value);
        let Some(text) = text_of(lua, value)? else {
            let message = format!("bad argument #{} to 'write' (string expected, got {name})", index + 1);
            return Err(mlua::Error::RuntimeError(message));
        };
        output.write(&text.as_bytes());
    }
    Ok(())
}

/// The type of a value as Lua calls it.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        value => value.type_name(),
    }
}

/// Strings and numbers as text, as Lua writes them.
pub(crate) fn text_of(lua: &Lua, value: Value) -> mlua::Result<Option<mlua::LuaString>> {
    match value {
        Value::String(text) => Ok(Some(text)),
        Value::Integer(_) | Value::Number(_) => lua.coerce_string(value),
        _ => Ok(None),
    }
}
