//! Plan files: reading, refusals, writing.

mod layers;
mod phases;
mod reading;
mod schema;
mod writing;
