//! Several runs from the command line: searches and sweeps, repeated runs, calibrations, comparisons.

mod ab;
mod bench;
mod calibrate;
mod compare;
mod find;
mod interruption;
mod repeat;
