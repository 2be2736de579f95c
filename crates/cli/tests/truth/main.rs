//! Whether the program tells the truth about itself and its surroundings, where that can only be shown on a
//! real machine: real schedulers, real networks, real limits.

mod attribution;
mod stage;
