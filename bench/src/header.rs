//! The head of the document: machine, versions, and the meaning of the figures and its limits.

use std::fmt::Write as _;

use crate::command;
use crate::machine::{self, Machine};
use crate::session::Session;

/// Programs beside Plimsoll whose versions are told, and the flag that asks for them.
const VERSIONED: [(&str, &str); 6] = [
    ("wrk", "--version"),
    ("h2load", "--version"),
    ("nginx", "-v"),
    ("nghttpd", "--version"),
    ("redis-server", "--version"),
    ("openssl", "version"),
];

/// The head of the document.
pub(crate) fn text(session: &Session) -> String {
    let machine = Machine::read();
    let options = &session.options;
    let memory_gib = machine.memory_bytes as f64 / f64::from(1 << 30);
    let mut text = "# Benchmarks\n\n".to_owned();
    let mut item = |name: &str, value: &str| {
        let _ = writeln!(text, "* {name}: {value}");
    };
    item(
        "Machine",
        &format!(
            "{}, {} cores, {memory_gib:.0} GiB, Linux {}",
            machine.cpu_model, machine.cores, machine.kernel
        ),
    );
    item("Plimsoll", &plimsoll(session));
    for (program, flag) in VERSIONED {
        if let Ok(path) = command::find(program) {
            item(program, &machine::version(&path, flag));
        }
    }
    let command_line: Vec<String> = std::env::args().skip(1).collect();
    item("Command", &format!("`cargo run --release -p bench -- {}`", command_line.join(" ")));
    item("Runs", &format!("{} pairs of {} s each, order alternating", options.pairs, options.seconds));
    item("Load averages at the start", &machine::load_averages());
    text.push_str(&caveats(machine.cores));
    text
}

/// Version, and the state of the checkout that it was built from.
fn plimsoll(session: &Session) -> String {
    let version = machine::version(&session.plimsoll, "--version");
    if session.options.plimsoll.is_some() {
        return format!("{version}, built elsewhere");
    }
    format!("{version}, commit {}, profile {}", machine::commit(), session.options.profile.name())
}

fn caveats(cores: usize) -> String {
    let few = if cores < 4 {
        format!(
            "* With {cores} cores, whatever else runs shares one with the server or the tool; the row \"others\" \
             says how much.\n"
        )
    } else {
        String::new()
    };
    format!(
        "
How to read the figures:

* Cells are `median (min..max)` over the runs. Ratios are taken within each pair, then summed up the same way.
* CPU time is the kernel's for the whole process (`wait4`), start-up, drain and report included, divided by
  the completed requests that the tool itself reports. A run with errors of any kind does not count.
* The total is exact to the scheduler's clock. Where the kernel samples at its tick
  (`CONFIG_TICK_CPU_ACCOUNTING`), the split into user and sys is an estimate whose error falls with the length
  of the run.
* On loopback, sys holds part of the server's network work too, and wanders more than user does.
* Peak RSS (`ru_maxrss`) is not below that of this harness, a few MiB: a process keeps the peak of its parent.
* \"Others\" is what the core did beside the measured process, interrupts and stolen time included, in ticks of
  10 ms: a share of a few percent is noise of this counting.
{few}"
    )
}
