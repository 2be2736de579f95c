//! Host functions for scripts: clocks, names and output.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_plan::ScriptHost;
use plimsoll_script::{Host, LuaScripts};
use plimsoll_system::{
    clock,
    resolve::{Family, can_connect, resolve},
};

use crate::base::{messages, streams};

/// Longest wait of `wrk.connect`.
const CONNECT_LIMIT: Nanos = Nanos::from_secs(5);

/// Returns Lua with the clocks and the name service of this machine. Nothing is printed if it is `quiet`.
pub(crate) fn lua(quiet: bool) -> ScriptHost {
    ScriptHost(Arc::new(LuaScripts(Arc::new(Terminal { quiet }))))
}

/// The clocks and the name service of this machine; what scripts print goes to stderr, because stdout carries
/// the result only.
#[derive(Clone, Copy, Debug)]
struct Terminal {
    /// Nothing is printed.
    quiet: bool,
}

impl Host for Terminal {
    fn monotonic(&self) -> Nanos {
        clock::monotonic()
    }

    fn unix_ns(&self) -> u64 {
        clock::unix().0
    }

    fn print(&self, _worker: Option<u32>, text: &[u8]) {
        if !self.quiet && !messages::keep(&String::from_utf8_lossy(text)) {
            // If stderr is closed, there is nobody to report to.
            let _ = streams::try_stderr(text);
        }
    }

    fn lookup(&self, host: &str, service: &str) -> Result<Vec<String>, String> {
        let port = match service {
            "http" => 80,
            "https" => 443,
            other => {
                other.parse().map_err(|_| format!("unknown service `{other}`: give the port's number"))?
            }
        };
        let found = resolve(host, port, Family::Any).map_err(|error| error.to_string())?;
        Ok(found.iter().map(ToString::to_string).collect())
    }

    fn can_connect(&self, address: &str) -> bool {
        address.parse().is_ok_and(|address| can_connect(address, CONNECT_LIMIT))
    }
}
