//! Plan files: what is read, what is refused, what is written.

mod reading;
mod schema;
mod writing;
