//! Tests of the crate by its public interface, as one program.

mod attacks;
mod campaigns;
mod examples;
mod flags;
mod h2loadrunner;
mod history;
mod import;
mod loopback;
mod other_tools;
mod plans;
mod printed_commands;
mod printed_plan;
mod scripts;
mod truth;
mod written;
