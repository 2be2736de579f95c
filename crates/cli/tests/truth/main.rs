//! Tests that the program tells the truth: one for every rule of measurement, R1 to R22, and for what limits
//! a run where that can only be shown on a real machine. `docs/accuracy.md` lists the rules, their tests and
//! the last figures.

mod attribution;
mod counting;
mod instrument;
mod load;
mod rules;
mod sending;
mod stage;
mod statistics;
mod world;
