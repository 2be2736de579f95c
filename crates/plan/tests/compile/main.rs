//! From a plan file to what is sent.

mod data;
mod flow;
mod lengths;
mod pace;
mod plans;
mod programs;
mod requests;
mod secrets;
mod targets;
mod tokens;
