//! Plan files: what is read, what is refused, what is written.

mod layers;
mod phases;
mod reading;
mod schema;
mod writing;
