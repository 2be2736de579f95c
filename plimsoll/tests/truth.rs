//! Tests that the program tells the truth: one for every rule of measurement, R1 to R22, and for the limits
//! of a run that only a real machine can show. `docs/accuracy.md` lists the rules, their tests and the last
//! figures.

mod attribution;
mod counting;
mod evidence;
mod instrument;
mod load;
mod rules;
mod sending;
mod stage;
mod statistics;
mod world;
