//! Seeded simulations with known answers: statements of the statistics have to be right as often as they
//! claim.

mod coverage;
mod overload;
mod queue;
mod steady;
