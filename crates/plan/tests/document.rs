//! Plan files: reading, refusals, writing.

mod layers;
mod parts;
mod phases;
mod reading;
mod schema;
mod writing;
