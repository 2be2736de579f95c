//! Synthetic observability data: metrics, logs, traces and events, in the formats of stores for such data.
//!
//! A [`Spec`] describes the data; [`Spec::validate`] finds its problems. A [`Synthesizer`] of a valid one
//! makes batches, each a pure function of the spec, a seed, its index and an instant: batch 7 has the same
//! bytes on every thread. There is no clock, no socket and no thread in here, and after the first batches
//! nothing is allocated.
//!
//! Inside, a kind ([`kind`]) draws a table of columns, cell by cell as small numbers; a format
//! ([`mod@format`]) has made its words ready before, so that writing a cell is copying a piece of fixed size.
#![forbid(unsafe_code)]

pub mod campaign;
mod columnar;
mod compression;
mod digits;
mod draw;
mod encoding;
pub mod format;
pub mod kind;
mod lexicon;
mod pace;
mod pen;
mod program;
mod receivers;
mod series;
mod slots;
pub mod spec;
mod synthesizer;
mod table;
mod unique;

pub use format::{Compression, Format};
pub use kind::Kind;
pub use spec::{Problem, Shape, Spec, TimeUnit, precision_in};
pub use synthesizer::{Batch, Synthesizer};
