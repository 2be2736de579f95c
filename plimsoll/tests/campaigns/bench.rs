//! Tools for measurements: the command, and sinks of it.

use std::process::{Command, Output, Stdio};

use plimsoll_testkit::machine;
use plimsoll_testkit::program::{self, Process};

use crate::loopback::sink::unhurried;

/// A server of this program in a process of its own, ended with the test.
pub(crate) struct Server {
    _process: Process,
    pub(crate) address: String,
}

impl Server {
    /// Starts the server that these words name on a port of its own.
    pub(crate) fn start(args: &[&str]) -> Self {
        let args = unhurried(&args.join(" "));
        let mut command = plimsoll(&args.split(' ').collect::<Vec<_>>());
        command.args(["--listen", "127.0.0.1:0"]);
        let program::Server { process, address } = program::Server::start(command);
        Self { _process: process, address }
    }
}

/// A sink, and the right to put loads on it.
pub(crate) struct Sink {
    _server: Server,
    pub(crate) url: String,
    _turn: machine::Turn,
}

impl Sink {
    /// Starts a sink for loads that are counted.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::within(machine::load(), args)
    }

    /// Starts a sink for loads that are counted and light.
    pub(crate) fn light(args: &[&str]) -> Self {
        Self::within(machine::light_load(), args)
    }

    /// Starts a sink for loads whose times decide what the test sees.
    pub(crate) fn measured(args: &[&str]) -> Self {
        Self::within(machine::quiet(), args)
    }

    fn within(turn: machine::Turn, args: &[&str]) -> Self {
        let server = Server::start(&[&["sink"], args].concat());
        Self { url: format!("http://{}/", server.address), _server: server, _turn: turn }
    }
}

/// The command, without environment variables that change its output.
pub(crate) fn plimsoll(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(args).env("NO_COLOR", "1").stdin(Stdio::null());
    for name in ["COLUMNS", "CLICOLOR_FORCE", "FORCE_COLOR", "SSLKEYLOGFILE"] {
        command.env_remove(name);
    }
    command
}

/// Runs the command to its end, and returns its output.
pub(crate) fn output(args: &[&str]) -> Output {
    plimsoll(args).output().expect("the binary was built")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
