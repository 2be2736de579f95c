//! Settings of the server.

use core::net::SocketAddr;
use std::fmt;
use std::path::PathBuf;

use plimsoll_core::Nanos;
use serde_json::Value;

/// Place where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address and a port; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A unix socket, which only its owner can open.
    Unix(PathBuf),
}

/// Returns the number and the command line of a process in the words of the history.
pub type Process = fn(&str) -> Option<(u32, Vec<String>)>;

/// Certificate and key of the server, as PEM.
#[derive(Clone)]
pub struct Identity {
    /// The chain of certificates.
    pub cert: Vec<u8>,
    /// The private key.
    pub key: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// Value of a flag on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagValue {
    /// The flag takes no value: a switch.
    Never,
    /// The flag takes a value.
    Always,
    /// The flag may take a value, behind an equals sign.
    Optional,
}

/// A flag that a run may be started with from the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermittedFlag {
    /// The flag as it is passed on: `--rate`.
    pub name: String,
    /// Other ways to write it: `-R`.
    pub others: Vec<String>,
    /// Value that it takes.
    pub value: FlagValue,
}

/// The flags of a command, as a page may give them.
#[derive(Clone, Debug, Default)]
pub struct CommandFlags {
    /// Those that runs may be started with.
    pub permitted: Vec<PermittedFlag>,
    /// The others, which are for the command line.
    pub others: Vec<RefusedFlag>,
}

/// A flag that a page may not give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedFlag {
    /// One of its names: `--out`, `-o`.
    pub name: String,
    /// Reason, and what to do instead.
    pub hint: &'static str,
}

/// Everything that the server does not find out by itself.
#[derive(Clone)]
pub struct Options {
    /// Place to listen at.
    pub listen: Listen,
    /// Names by which browsers may ask for the server, beside its address.
    pub hosts: Vec<String>,
    /// Certificate and key, without which only loopback is listened on.
    pub identity: Option<Identity>,
    /// The token of the first request; without it one is drawn.
    pub token: Option<String>,
    /// The folder whose plans are shown.
    pub folder: PathBuf,
    /// File of the history; `None` if there is no place for one.
    pub store: Option<PathBuf>,
    /// The file of this program, which does the work.
    pub program: PathBuf,
    /// Folder for temporary files, in which the server makes one of its own.
    pub temporary: PathBuf,
    /// Flags of `run`.
    pub run_flags: CommandFlags,
    /// Flags of `find`.
    pub find_flags: CommandFlags,
    /// Flags of `cluster run`.
    pub cluster_flags: CommandFlags,
    /// Returns the word among others that a mistyped one was probably meant to be.
    pub closest: for<'a> fn(&str, &[&'a str]) -> Option<&'a str>,
    /// `true` if the page may start clusters, whose specs name the programs that are run.
    pub clusters: bool,
    /// Commands and their arguments, for forms.
    pub forms: Value,
    /// Returns the JSON Schema of this name.
    pub schema: fn(&str) -> Option<Value>,
    /// Returns `true` if the process that makes a run, in the words of the history, still exists; the instant
    /// is when it was last heard of.
    pub lives: fn(&str, Nanos) -> bool,
    /// Returns the number and the command line of that process, if it still exists on this machine.
    pub process: Process,
    /// Variables that are set in the environment, of those that [examples](crate::EXAMPLE_VARIABLES) read.
    pub given: Vec<&'static str>,
    /// Version of the program.
    pub version: &'static str,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("listen", &self.listen)
            .field("folder", &self.folder)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
