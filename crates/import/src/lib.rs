//! Descriptions of other tools become plan files.
//!
//! Every importer takes the text of a source and gives a [`Document`], the same as a plan file says, and
//! [notes](Note): features that a plan file lacks, or that mean something else there. What would send
//! something else than the source, because only a program can decide it, is an error. Errors of a source are
//! a list of problems, each with a line and column, or a JSON Pointer (RFC 6901).
//!
//! ```text
//! h2loadrunner ─┐
//! curl          │
//! HAR           │
//! OpenAPI       │
//! vegeta        ├──► Unchecked ──► Imported { document, notes } ──► YAML, or a run
//! Postman       │
//! Artillery     │
//! JMeter        │
//! k6            │
//! Gatling       │
//! Locust       ─┘
//! ```
//!
//! Importers know the form of plans, and not what becomes of one: whoever resolves plans
//! [checks](Unchecked::check) the document. A change of the load generator builds no importer again.
//!
//! [`draft`], [`findings`] and [`source`] are what importers of other crates are made of.
//!
//! Nothing here prints or opens a connection; files that a source names are read through
//! [`plimsoll_document::Files`], on a disk through [`confined`].
#![forbid(unsafe_code)]

pub mod artillery;
pub mod curl;
pub mod draft;
pub mod findings;
pub mod gatling;
pub mod h2loadrunner;
pub mod har;
pub mod jmeter;
pub mod k6;
pub mod locust;
pub mod openapi;
pub mod postman;
pub mod source;
pub mod vegeta;

mod amount;
mod course;
mod flow;
mod javascript;
mod json_path;
mod names;
mod proxy;
mod refusals;
mod syntax;
mod unchecked;
mod xml;
mod yaml;

pub use findings::Note;
use plimsoll_document::{Document, MOST_STEPS};
pub use refusals::confined;
pub use unchecked::Unchecked;

/// Result of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The plan file.
    pub document: Document,
    /// Parts of the source that are left out or differ, in the order of the source.
    pub notes: Vec<Note>,
}
