//! The shared nouns of Plimsoll.
//!
//! Nothing here knows a socket, a clock, a protocol or a file: these are the words that every other crate
//! uses to speak to its neighbours. The three to know first are [`Nanos`] (every instant and every span),
//! [`Rate`] (an exact, rational arrival rate for the whole run) and [`Arrival`] (one scheduled start with its
//! intended time, which is carried to the end and never recomputed).
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "Plimsoll measures by interfaces of Linux (io_uring, epoll, the kernel's receive stamps, /proc): see \
     docs/install.md for what to do on macOS and Windows"
);

pub mod arrival;
pub mod calendar;
pub mod characters;
pub mod error_counts;
pub mod error_row;
pub mod escape;
pub mod figure;
pub mod nanos;
pub mod outcome;
pub mod random;
pub mod rate;
pub mod redaction;
pub mod scripts;
pub mod sequence;
pub mod suggest;
pub mod text;

pub use arrival::{Arrival, Shard};
pub use characters::disguises;
pub use error_counts::ErrorCounts;
pub use error_row::{ErrorRow, UnreadableName};
pub use nanos::Nanos;
pub use outcome::{ErrorClass, Outcome};
pub use random::Random;
pub use rate::{Rate, gcd};
pub use redaction::Redaction;
pub use sequence::SequenceAllocator;

/// Returns `true` for the zero of a type, which results leave out: for `skip_serializing_if` of serde.
pub fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
