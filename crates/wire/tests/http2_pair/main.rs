//! The HTTP/2 client and server against each other, in memory.
//!
//! Whatever is submitted, cancelled, answered, reset and cut, and however small the windows and tables are:
//! every request ends exactly once and as it has to, every text comes out as it went in (so the dynamic
//! tables of both sides agree), and nothing waits for ever.

mod books;
mod steps;
mod world;

mod schedules;
mod tables;
