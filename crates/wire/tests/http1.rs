//! HTTP/1 as RFC 9112 has it: tables of its rules, and properties over generated and arbitrary bytes.

mod properties;
mod reading;
mod requests;
mod responses;
