//! Paired benchmarks of Plimsoll against the peers that are installed.
//!
//! `cargo run --release -p bench -- h1 --vs wrk` starts a server on one core and the tools in turn on the
//! other, accounts their CPU time and memory as the kernel does, and prints Markdown: medians with their
//! spread, the ratios within the pairs, and whether they meet the limits. `RESULTS.md` holds such output.

#![deny(unsafe_code)]

mod case;
mod child;
mod command;
mod duel;
mod failure;
mod fuzzing;
mod header;
mod ledger;
mod machine;
mod options;
mod reading;
mod relay;
mod report;
mod run;
mod server;
mod session;
mod shape;
mod statistic;
mod worlds;

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::case::Case;
use crate::options::{Options, Task};
use crate::session::Session;

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(task) = &options.task {
        return carry_out(task);
    }
    let session = match Session::open(options) {
        Ok(session) => session,
        Err(failure) => {
            complain(&format!("error: {failure}"));
            return ExitCode::FAILURE;
        }
    };
    print(header::text(&session));
    let mut findings = Vec::new();
    let mut failed = false;
    for case in Case::expand(&session.options.cases) {
        complain(&format!("{case:?}…"));
        match case.measure(&session) {
            Ok(sections) => {
                for section in sections {
                    print(&section.text);
                    findings.extend(section.findings);
                }
            }
            // The results of the other cases are still useful.
            Err(failure) => {
                failed = true;
                print(format!("\n## {case:?}: not measured\n\n{failure}\n"));
                complain(&format!("error: {failure}"));
            }
        }
    }
    if !findings.is_empty() {
        print(report::summary(&findings));
    }
    print(format!("\nLoad averages at the end: {}.\n", machine::load_averages()));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Does what is not a measurement.
fn carry_out(task: &Task) -> ExitCode {
    let findings = match task {
        Task::Fuzz(options) => fuzzing::run(options, &mut |text| print(text)),
        Task::Relay { to } => {
            relay::serve(to, |address| complain(&format!("relay: listening on {address}"))).map(|()| 0)
        }
        Task::Worlds { worlds, profile } => worlds::simulate(*worlds, profile, &mut |text| print(text)),
    };
    match findings {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(failure) => {
            complain(&format!("error: {failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a part of the document. Parts are written as they come: an interrupted run leaves what it had
/// measured.
fn print(text: impl Display) {
    let mut out = std::io::stdout().lock();
    // A reader that has seen enough is no failure.
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
