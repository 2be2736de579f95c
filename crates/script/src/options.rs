//! Permissions of scripts, and their access to the world.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_scenario::{ScriptError, ScriptLimits};

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

/// Permissions and limits of scripts, and the world that they see.
#[derive(Clone, Debug)]
pub struct ScriptOptions {
    /// The world.
    pub host: Arc<dyn Host>,
    /// Permissions and limits. The longest time of a call counts from when the call is found to take long,
    /// which is after at most 20 ms. As a clock may stand still (in a simulation), a call may from then on
    /// also not take more than [`INSTRUCTIONS_PER_NANOSECOND`](Self::INSTRUCTIONS_PER_NANOSECOND) for each
    /// nanosecond of it.
    pub limits: ScriptLimits,
    /// Folders of the system's modules, which come last, and for scripts that may reach the system only.
    pub system_path: Vec<PathBuf>,
}

impl ScriptOptions {
    /// More than LuaJIT's interpreter carries out in a nanosecond, by several times.
    pub const INSTRUCTIONS_PER_NANOSECOND: u64 = 2;

    /// Checks that the scripts may run.
    ///
    /// # Errors
    /// The scripts were only read.
    pub(crate) fn runs(&self) -> Result<(), ScriptError> {
        match self.limits.only_syntax {
            true => Err(ScriptError::new("the script was only read".to_owned())),
            false => Ok(()),
        }
    }

    /// These limits, and the folders that systems have.
    pub fn new(host: Arc<dyn Host>, limits: ScriptLimits) -> Self {
        Self { host, limits, system_path: SYSTEM_FOLDERS.map(PathBuf::from).to_vec() }
    }
}
