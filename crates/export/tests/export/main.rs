//! Exports to monitoring systems, read in the way that these systems read them.

mod fixture;
mod otlp;
mod prometheus;
mod receivers;
