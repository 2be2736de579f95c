//! From flags to a plan: what is accepted, and what is refused in which words.

mod accepted;
mod fingerprint;
mod flags;
mod refused;
mod security;
