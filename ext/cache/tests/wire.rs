//! The protocol of the Carbon cache: the bytes that the real server was seen to send and take, and properties
//! over generated and arbitrary bytes.

mod properties;
mod reading;
mod replies;
mod requests;
