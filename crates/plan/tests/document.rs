//! Plan files: reading, refusals, writing.

mod layers;
mod lines;
mod made;
mod parts;
mod phases;
mod reading;
mod schema;
mod writing;
