//! What monitoring systems are told, read as they read it.

mod fixture;
mod otlp;
mod prometheus;
mod receivers;
