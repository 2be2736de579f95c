//! From flags to a plan: what is accepted, and what is refused in which words.

mod accepted;
mod crud;
mod fingerprint;
mod flags;
mod protocol;
mod refused;
mod security;
