//! Permissions of scripts, and their access to the world.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_scenario::ScriptError;

/// Folders in which systems have modules of Lua 5.1, and wrk's Lua finds them.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/local/share/lua/5.1", "/usr/share/lua/5.1"];

/// Services that scripts need of the world: this crate reads no clock, opens no socket and prints nothing.
///
/// Called from the workers' threads.
pub trait Host: fmt::Debug + Send + Sync {
    /// A clock that never goes back, for the time limit.
    fn monotonic(&self) -> Nanos;

    /// Nanoseconds since 1970.
    fn unix_ns(&self) -> u64;

    /// Shows the output of a script: whole lines, except for the last one of a script. `worker` is `None` for
    /// wrk's `setup`.
    fn print(&self, worker: Option<u32>, text: &[u8]);

    /// The addresses (`ip:port`) of a host and a service, which is a port or a name; wrk's `wrk.lookup`.
    ///
    /// # Errors
    /// The reason why it cannot be resolved.
    fn lookup(&self, host: &str, service: &str) -> Result<Vec<String>, String>;

    /// Returns `true` if a connection to this address can be opened; wrk's `wrk.connect`.
    fn can_connect(&self, address: &str) -> bool;
}

/// Permissions and limits of scripts.
#[derive(Clone, Debug)]
pub struct ScriptOptions {
    /// The world.
    pub host: Arc<dyn Host>,
    /// `true` if they may open files, start processes and resolve names.
    pub allow_system: bool,
    /// `true` if scripts are only read: nothing of them runs, so that what they define is not known.
    pub only_syntax: bool,
    /// Longest time of one call, counted from when it is found to take long, which is after at most 20 ms. As
    /// a clock may stand still (in a simulation), a call may from then on also not take more than
    /// [`INSTRUCTIONS_PER_NANOSECOND`](Self::INSTRUCTIONS_PER_NANOSECOND) for each nanosecond of it.
    pub time_limit: Nanos,
    /// Most memory of one worker's state, in bytes; 0 for no limit.
    pub memory_limit: usize,
    /// Folders in which `require` looks, after that of the script.
    pub path: Vec<PathBuf>,
    /// The value of `LUA_PATH`, whose patterns (`/folder/?.lua;…`) come after these.
    pub lua_path: Option<String>,
    /// Folders of the system's modules, which come last, and for scripts with `allow_system` only.
    pub system_path: Vec<PathBuf>,
    /// Seed of `math.random` and of UUIDs; every worker has a stream of its own.
    pub seed: u64,
}

impl ScriptOptions {
    /// Default of [`time_limit`](Self::time_limit).
    pub const TIME_LIMIT: Nanos = Nanos::from_secs(1);

    /// Default of [`memory_limit`](Self::memory_limit): 256 MiB.
    pub const MEMORY_LIMIT: usize = 256 << 20;

    /// More than LuaJIT's interpreter carries out in a nanosecond, by several times.
    pub const INSTRUCTIONS_PER_NANOSECOND: u64 = 2;

    /// Checks that the scripts may run.
    ///
    /// # Errors
    /// The scripts were only read.
    pub(crate) fn runs(&self) -> Result<(), ScriptError> {
        match self.only_syntax {
            true => Err(ScriptError::new("the script was only read".to_owned())),
            false => Ok(()),
        }
    }

    /// The defaults.
    pub fn new(host: Arc<dyn Host>) -> Self {
        Self {
            host,
            allow_system: false,
            only_syntax: false,
            time_limit: Self::TIME_LIMIT,
            memory_limit: Self::MEMORY_LIMIT,
            path: Vec::new(),
            lua_path: None,
            system_path: SYSTEM_FOLDERS.map(PathBuf::from).to_vec(),
            seed: 0,
        }
    }
}
