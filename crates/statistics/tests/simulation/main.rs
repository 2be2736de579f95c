//! Seeded simulations with known answers: what the statistics say has to be right as often as they claim.

mod coverage;
mod overload;
mod queue;
mod steady;
