//! `require`, `dofile` and `loadfile`: Lua in the folders of the scripts.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mlua::{Function, Lua, Table, Value};
use plimsoll_scenario::regular_file;

use crate::library::{compile, refusal};
use crate::{ScriptOptions, json};

/// Folders of a system's compiled modules of Lua 5.1.
const COMPILED_FOLDERS: [&str; 3] =
    ["/usr/local/lib/lua/5.1", "/usr/lib/x86_64-linux-gnu/lua/5.1", "/usr/lib/aarch64-linux-gnu/lua/5.1"];

/// Most bytes of a module.
const LARGEST_MODULE: u64 = 16 << 20;

/// The folders that are searched for files of Lua.
#[derive(Debug)]
pub(crate) struct Modules {
    /// Folders of the scripts, then those of the options.
    folders: RefCell<Vec<PathBuf>>,
    options: Vec<PathBuf>,
    /// Patterns of `LUA_PATH`.
    patterns: Vec<String>,
    allow_system: bool,
    /// Folders of the system's modules.
    system: Vec<PathBuf>,
}

impl Modules {
    /// Adds the functions to a state.
    pub(crate) fn install(lua: &Lua, options: &ScriptOptions) -> mlua::Result<Rc<Self>> {
        let patterns = options.limits.lua_path.as_deref().unwrap_or_default().split(';');
        let modules = Rc::new(Self {
            folders: RefCell::default(),
            options: options.limits.path.clone(),
            // An empty pattern (`;;`) stands for Lua's own path, which would be that of another Lua.
            patterns: patterns.filter(|pattern| pattern.contains('?')).map(str::to_owned).collect(),
            allow_system: options.limits.allow_system,
            system: options.system_path.clone(),
        });
        let globals = lua.globals();
        let known = Rc::clone(&modules);
        globals.set("require", lua.create_function(move |lua, name: String| known.require(lua, &name))?)?;
        let known = Rc::clone(&modules);
        let do_file = move |lua: &Lua, name: String| {
            known.load_file(lua, "dofile", &name)?.call::<mlua::MultiValue>(())
        };
        globals.set("dofile", lua.create_function(do_file)?)?;
        let known = Rc::clone(&modules);
        let load_file = move |lua: &Lua, name: String| match known.load_file(lua, "loadfile", &name) {
            Ok(function) => Ok((Value::Function(function), None)),
            Err(error @ mlua::Error::SyntaxError { .. }) => Ok((Value::Nil, Some(error.to_string()))),
            Err(error) => Err(error),
        };
        globals.set("loadfile", lua.create_function(load_file)?)?;
        Ok(modules)
    }

    /// Files of this folder may be required from now on.
    pub(crate) fn add_folder(&self, folder: &Path) {
        let mut folders = self.folders.borrow_mut();
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_owned());
        }
    }

    fn require(&self, lua: &Lua, name: &str) -> mlua::Result<Value> {
        let package: Table = lua.globals().raw_get("package")?;
        let loaded: Table = package.get("loaded")?;
        let known: Value = loaded.get(name)?;
        if !known.is_nil() {
            return Ok(known);
        }
        let preload: Table = package.get("preload")?;
        let loader = match preload.get::<Option<Function>>(name)? {
            Some(loader) => loader,
            None => self.find(lua, name)?,
        };
        let given: Value = loader.call(name)?;
        let set: Value = loaded.get(name)?;
        let value = match (given, set) {
            (Value::Nil, Value::Nil) => Value::Boolean(true),
            (Value::Nil, set) => set,
            (given, _) => given,
        };
        loaded.set(name, &value)?;
        Ok(value)
    }

    fn find(&self, lua: &Lua, name: &str) -> mlua::Result<Function> {
        let path = name.replace('.', "/");
        let mut tried = String::new();
        for candidate in self.candidates(&path) {
            match self.read(&candidate) {
                Ok(source) => return compile(lua, &source, &format!("@{}", candidate.display()), None),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    tried.push_str(&format!("\n\tno file '{}'", candidate.display()));
                }
                Err(error) => tried.push_str(&format!("\n\t'{}': {error}", candidate.display())),
            }
        }
        // Files of the script with that name have precedence.
        if let Some(loader) = json::loader(lua, name) {
            return loader;
        }
        let is_compiled = |folder: &&&str| Path::new(folder).join(format!("{path}.so")).exists();
        let hint = match name {
            "ffi" | "jit.util" | "jit.opt" => " (it is not there for scripts)".to_owned(),
            _ if !self.allow_system && self.of_system(&path).iter().any(|file| file.exists()) => {
                " (the system's modules are for scripts with --script-allow-system)".to_owned()
            }
            _ => match COMPILED_FOLDERS.iter().find(is_compiled) {
                Some(folder) => format!(
                    " ({folder}/{path}.so is compiled code, which could not be stopped and is not loaded: take a \
                     module that is written in Lua)"
                ),
                None => String::new(),
            },
        };
        Err(mlua::Error::RuntimeError(format!("module '{name}' not found{hint}:{tried}")))
    }

    /// The content of a candidate. One in a folder of the scripts is in it even if links are followed.
    fn read(&self, candidate: &Path) -> std::io::Result<Vec<u8>> {
        let folders = self.folders.borrow();
        let folder = folders.iter().chain(&self.options).find(|folder| candidate.starts_with(folder));
        if let (Some(folder), false) = (folder, self.allow_system) {
            let (real, folder) = (candidate.canonicalize()?, folder.canonicalize()?);
            if !real.starts_with(folder) {
                return Err(std::io::Error::other("it is outside of the script's folders"));
            }
        }
        regular_file::read(candidate, LARGEST_MODULE)
    }

    fn candidates(&self, path: &str) -> Vec<PathBuf> {
        // `require "../../etc/x"` would leave the folders.
        let stays = !path.starts_with('/') && path.split('/').all(|part| part != ".." && !part.is_empty());
        if !stays && !self.allow_system {
            return Vec::new();
        }
        let mut candidates = Vec::new();
        for folder in self.folders.borrow().iter().chain(&self.options) {
            candidates.push(folder.join(format!("{path}.lua")));
            candidates.push(folder.join(path).join("init.lua"));
        }
        candidates.extend(self.patterns.iter().map(|pattern| PathBuf::from(pattern.replace('?', path))));
        if self.allow_system {
            candidates.extend(self.of_system(path));
        }
        candidates
    }

    /// The places in which the system would have the module of this path.
    fn of_system(&self, path: &str) -> Vec<PathBuf> {
        let files = [format!("{path}.lua"), format!("{path}/init.lua")];
        self.system.iter().flat_map(|folder| files.iter().map(|file| folder.join(file))).collect()
    }

    /// A file by its name: relative to the folders, and in one of them.
    fn load_file(&self, lua: &Lua, by: &str, name: &str) -> mlua::Result<Function> {
        let folders: Vec<PathBuf> = self.folders.borrow().iter().chain(&self.options).cloned().collect();
        for folder in &folders {
            // Links are followed before it is decided whether the file is inside.
            let Ok(real) = folder.join(name).canonicalize() else { continue };
            let inside = folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
            if !inside && !self.allow_system {
                return Err(refusal(&format!("{by} outside of the script's folders")));
            }
            let source = regular_file::read(&real, LARGEST_MODULE)
                .map_err(|error| mlua::Error::RuntimeError(format!("{name}: {error}")))?;
            return compile(lua, &source, &format!("@{name}"), None);
        }
        Err(mlua::Error::RuntimeError(format!("{by}: no file '{name}' in the script's folders")))
    }
}
