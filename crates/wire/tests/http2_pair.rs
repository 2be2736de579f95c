//! The HTTP/2 client and server against each other, in memory.
//!
//! For any sequence of submissions, cancellations, answers, resets and cuts, and for windows and tables of
//! any size: every request ends exactly once and as it has to, every text comes out as it went in (so the
//! dynamic tables of both sides agree), and nothing waits for ever.

mod books;
mod steps;
mod world;

mod schedules;
mod tables;
