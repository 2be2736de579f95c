//! A reference receiver for the ingest of metrics, logs, traces and events.
#![allow(dead_code)]
mod batch;
mod column;
mod liar;
mod msgpack;
mod options;
mod query;
mod rows;
mod store;
mod time;
